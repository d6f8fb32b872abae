//! What calls cost that wait: each the same, however many there are.
#![cfg(feature = "service")]
#![allow(missing_docs, clippy::unwrap_used)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use allocation_counter::{AllocationInfo, measure};
use mcp_proto::client::Mode;
use mcp_proto::limits::Limits;
use mcp_proto::service::client::{Client, Link};
use mcp_proto::time::Instant;

fn read(link: &mut Link, line: &str) {
    link.spare(line.len())[..line.len()].copy_from_slice(line.as_bytes());
    link.commit(line.len());
    link.process(Instant::ZERO);
}

fn skip(link: &mut Link) {
    let written = link.output().len();
    link.advance(written);
}

fn connect() -> (Client, Link) {
    let mut limits = Limits::default();
    limits.output_high_water = usize::MAX;
    let (connecting, mut link) = Client::new("test", "1").mode(Mode::Modern).limits(limits).link();
    link.start(Instant::ZERO);
    skip(&mut link);
    let facts = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}"#;
    read(&mut link, &format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{facts}}}\n"));
    let mut connecting = pin!(connecting);
    let client = match connecting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(client) => client.unwrap(),
        std::task::Poll::Pending => unreachable!("the answer is there"),
    };
    (client, link)
}

/// Makes `many` calls, all of which wait; then they are answered.
fn cost(many: usize) -> AllocationInfo {
    let (client, mut link) = connect();
    measure(|| {
        let mut calls: Vec<_> = (0..many).map(|_| client.call_tool("x", ())).collect();
        for call in &mut calls {
            let _ = pin!(call).poll(&mut Context::from_waker(Waker::noop()));
        }
        link.process(Instant::ZERO);
        skip(&mut link);
        for at in 0..many {
            read(
                &mut link,
                &format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":[]}}}}\n", at + 2),
            );
        }
        for call in &mut calls {
            assert!(pin!(call).poll(&mut Context::from_waker(Waker::noop())).is_ready());
        }
    })
}

#[test]
fn a_call_costs_the_same_among_many() {
    let few = cost(1_000);
    let many = cost(20_000);
    assert!(few.count_total >= 1_000);
    // Growth of tables, by doubling, is all that is not one call's own.
    assert!(
        many.count_total <= 20 * few.count_total + 100,
        "{} against {}",
        many.count_total,
        few.count_total
    );
    let (a, b) = (few.bytes_max / 1_000, many.bytes_max / 20_000);
    assert!(b <= 2 * a, "{b} bytes of a call against {a}");
    // The request, its slot, its params and its place in the tables.
    assert!(b < 4_000, "a call that waits costs {b} bytes");
    assert!(few.count_total / 1_000 <= 40, "a call allocates {} times", few.count_total / 1_000);
}

/// What a server tells a call that nobody polls is kept up to a bound, however much it is; the others go on.
#[test]
fn a_flood_of_progress_that_nobody_hears_is_bounded() {
    let (client, mut link) = connect();
    let mut newest = 0.0;
    let mut deaf = client.call_tool("x", ()).on_progress(|progress| newest = progress.progress);
    let mut other = client.call_tool("x", ());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(&mut deaf).poll(&mut cx).is_pending() && pin!(&mut other).poll(&mut cx).is_pending());
    link.process(Instant::ZERO);
    skip(&mut link);
    let flood = measure(|| {
        for step in 0..100_000 {
            let message = format!("{step:0>80}");
            let params = format!("{{\"progressToken\":2,\"progress\":{step},\"message\":\"{message}\"}}");
            read(
                &mut link,
                &format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{params}}}\n"
                ),
            );
        }
    });
    // 256 of them, with at most 64 KiB of text, and the room to read in.
    assert!(flood.bytes_current < 160 << 10, "{} bytes are kept", flood.bytes_current);
    assert!(flood.bytes_max < 192 << 10, "{} bytes at a time", flood.bytes_max);
    assert!(link.output().is_empty(), "nothing is answered");
    for id in [2, 3] {
        read(&mut link, &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\n"));
    }
    assert!(pin!(&mut other).poll(&mut cx).is_ready() && pin!(&mut deaf).poll(&mut cx).is_ready());
    drop(deaf);
    assert!((newest - 99_999.0).abs() < f64::EPSILON, "the newest is heard last");
}
