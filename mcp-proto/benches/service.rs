//! One request through the service layer: decoded arguments, a handler that is a future, its answer.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{large_call, modern_call, modern_call_reordered};
use divan::{Bencher, counter::BytesCount};
use mcp_proto::service::{Server, Session};
use mcp_proto::time::{Instant, UnixTime};

fn main() {
    divan::main();
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn run(bencher: Bencher<'_, '_>, tools: usize, mut frame: Vec<u8>) {
    let server = (1..tools).fold(Server::new("bench", "1.0.0"), |server, n| {
        server.tool(format!("tool-{n}"), |_, _: Nothing| async { Ok("") })
    });
    let service = server.tool("echo", |_, echo: Echo| async move { Ok(echo.text) }).build().unwrap();
    let mut session = Session::new(&service);
    frame.push(b'\n');
    let mut turn = || {
        session.spare(frame.len())[..frame.len()].copy_from_slice(&frame);
        session.commit(frame.len());
        session.process(Instant::ZERO, UnixTime::default());
        let written = session.output().len();
        session.advance(written);
        written
    };
    assert!(turn() > 150);
    bencher.counter(BytesCount::of_slice(&frame)).bench_local(turn);
}

#[divan::bench(args = [2, 5000], max_time = 1)]
fn modern_call_with_tools(bencher: Bencher<'_, '_>, tools: usize) {
    run(bencher, tools, modern_call());
}

#[divan::bench(max_time = 1)]
fn modern_call_in_another_order(bencher: Bencher<'_, '_>) {
    run(bencher, 2, modern_call_reordered());
}

#[divan::bench(max_time = 2)]
fn call_of_256_kib(bencher: Bencher<'_, '_>) {
    run(bencher, 2, large_call(256 << 10));
}
