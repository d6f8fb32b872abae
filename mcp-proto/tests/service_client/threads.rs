//! Handles on many threads, one driver: no call is lost, no wake-up either.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_proto::service::Session;
use mcp_proto::service::client::{Client, Link};
use mcp_proto::time::{Instant, UnixTime};
use serde_json::json;

use crate::basics::{client, demo};
use crate::rig::{Unpark, block_on, park};

/// Until the client is done.
fn drive(mut link: Link) {
    let service = demo();
    let mut session = Session::new(&service);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    let now = Instant::from_origin(Duration::from_secs(1));
    link.start(now);
    while !link.is_done() {
        link.process(now);
        let output = link.output();
        let there = output.len().min(1 << 20);
        session.spare(there)[..there].copy_from_slice(&output[..there]);
        session.commit(there);
        link.advance(there);
        session.process(now, UnixTime::default());
        assert!(session.next_job().is_none(), "what is called finishes at once");
        let output = session.output();
        let back = output.len().min(1 << 20);
        link.spare(back)[..back].copy_from_slice(&output[..back]);
        link.commit(back);
        session.advance(back);
        link.process(now);
        if there + back == 0 && link.poll_ready(&mut cx).is_pending() {
            park();
        }
    }
}

async fn work(client: Client, seed: usize) {
    for at in 0..400 {
        let mut call = client.call_tool("add", json!({"a": at, "b": seed}));
        if (at + seed).is_multiple_of(7) {
            // Given up, at whatever moment.
            let _ = std::future::poll_fn(|cx| Poll::Ready(pin!(&mut call).poll(cx).is_ready())).await;
            continue;
        }
        assert_eq!(call.await.unwrap().texts(), format!("{{\"sum\":{}.0}}", at + seed));
    }
}

#[test]
fn handles_work_on_many_threads() {
    let (connecting, link) = client().link();
    let driver = std::thread::spawn(|| drive(link));
    let client = block_on(connecting).unwrap();
    let workers: Vec<_> = (0..4)
        .map(|seed| {
            let client = client.clone();
            std::thread::spawn(move || block_on(work(client, seed)))
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    // The last handle ends the driver.
    drop(client);
    driver.join().unwrap();
}
