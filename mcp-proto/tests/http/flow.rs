//! Wakers and backpressure.

use std::future::Future;
use std::task::{Context, Poll};

use mcp_proto::limits::Limits;
use mcp_proto::service::http::{Exchange, Reply};
use serde_json::json;

use crate::harness::{Count, Net, Request, call, modern};
use crate::kit::Kit;

fn flood() -> Request {
    let params = json!({"name": "flood", "arguments": {}, "_meta": {"progressToken": 1}});
    Request::modern(&modern(1, "tools/call", params, json!({})))
}

/// A reader that does not read: the handler waits, and memory stays where it is.
#[test]
fn a_slow_reader_slows_the_handler() {
    let mut limits = Limits::default();
    limits.output_high_water = 64 << 10;
    for legacy in [false, true] {
        let kit = Kit::default();
        let mut net = Net::new(&kit.service_with(limits.clone()));
        let session = net.session("2025-11-25", json!({}));
        let request = if legacy { session.post(&call(1, "flood", json!({}))) } else { flood() };
        let got = net.post_only(&request);
        net.at(got).paused = true;
        net.settle();
        let first = kit.sent();
        assert!((10..200).contains(&first), "{first}");
        assert_eq!(net.jobs(), 1);
        net.settle();
        assert_eq!(kit.sent(), first);
        // One look takes some, and the handler goes on for as much.
        net.at(got).poll();
        net.settle();
        let second = kit.sent();
        assert!(second > first && second < 1000, "{second}");
        net.at(got).resume();
        net.settle();
        assert_eq!(kit.sent(), 5000);
        let messages = net.messages(got);
        assert_eq!(messages.len(), 5001);
        assert_eq!(messages[5000]["id"], 1);
        for (at, message) in messages[..5000].iter().enumerate() {
            assert_eq!(message["params"]["progress"], at as f64 + 1.0);
        }
    }
}

/// A legacy client that goes away lets its call go on, also one that waited for it to read.
#[test]
fn a_lost_reader_does_not_hold_the_handler() {
    let mut limits = Limits::default();
    limits.output_high_water = 64 << 10;
    let kit = Kit::default();
    let mut net = Net::new(&kit.service_with(limits));
    let session = net.session("2025-11-25", json!({}));
    let got = net.post_only(&session.post(&call(1, "flood", json!({}))));
    net.at(got).paused = true;
    net.settle();
    assert!(kit.sent() < 200);
    net.disconnect(got);
    assert_eq!((kit.sent(), net.jobs()), (5000, 0));
}

fn exchange(net: &Net, request: &Request) -> Exchange {
    let (now, unix) = net.time();
    match net.http.handle(request, &request.body, None, now, unix) {
        Reply::Exchange(exchange) => exchange,
        Reply::Full(response) => panic!("{response:?}"),
    }
}

/// What an exchange holds of an answer counts, too, and it is handed over in pieces: a client that reads slowly
/// costs the high-water mark and a piece, not that for each place where bytes can wait.
#[test]
fn what_waits_stays_below_the_mark() {
    const MARK: usize = 256 << 10;
    const PIECE: usize = 64 << 10;
    let mut limits = Limits::default();
    limits.output_high_water = MARK;
    let kit = Kit::default();
    let net = Net::new(&kit.service_with(limits));
    let mut open = exchange(&net, &flood());
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let mut job = Box::pin(open.next_job().unwrap());
    assert!(open.poll_head(&mut cx).is_ready());
    let (mut read, mut most) = (Vec::new(), 0);
    while Future::poll(job.as_mut(), &mut cx).is_pending() {
        let mut piece = Vec::new();
        assert_eq!(open.poll_body(&mut cx, &mut piece), Poll::Ready(true));
        assert!(piece.len() <= PIECE, "{}", piece.len());
        read.append(&mut piece);
        // At least what each message says.
        most = most.max((kit.sent() * 1000).saturating_sub(read.len()));
    }
    assert!((MARK / 2..MARK).contains(&most), "{most}");
    while open.poll_body(&mut cx, &mut read) == Poll::Ready(true) {}
    let messages = crate::harness::events(&read);
    assert_eq!(messages.len(), 5001);
}

/// Polled until it is pending, then something happens: the newest waker is called.
#[test]
fn no_wake_up_is_lost() {
    for legacy in [false, true] {
        let mut net = Net::new(&Kit::default().service());
        let session = net.session("2025-11-25", json!({}));
        let listen = json!({"notifications": {"toolsListChanged": true}});
        let listen = Request::modern(&modern(1, "subscriptions/listen", listen, json!({})));
        let request = if legacy { session.get() } else { listen };
        let mut open = exchange(&net, &request);
        let (old, old_waker) = Count::new();
        let (new, new_waker) = Count::new();
        let mut body = Vec::new();
        assert!(open.poll_head(&mut Context::from_waker(&old_waker)).is_ready());
        while open.poll_body(&mut Context::from_waker(&old_waker), &mut body).is_ready() {}
        assert!(open.poll_body(&mut Context::from_waker(&new_waker), &mut body).is_pending());
        assert_eq!((old.get(), new.get()), (0, 0));
        net.http.service().changes().tools();
        assert_eq!((old.get(), new.get()), (0, 1), "the newest waker alone");
        assert_eq!(open.poll_body(&mut Context::from_waker(&new_waker), &mut body), Poll::Ready(true));
        assert!(open.poll_body(&mut Context::from_waker(&new_waker), &mut body).is_pending());
        net.http.close();
        assert_eq!(new.get(), 2);
    }
}

/// The answer wakes whoever waits for the head.
#[test]
fn the_head_is_waited_for() {
    for legacy in [false, true] {
        let kit = Kit::default();
        let mut net = Net::new(&kit.service());
        let session = net.session("2025-11-25", json!({}));
        let params = json!({"name": "wait", "arguments": {}});
        let request = if legacy {
            session.post(&call(1, "wait", json!({})))
        } else {
            Request::modern(&modern(1, "tools/call", params, json!({})))
        };
        let mut open = exchange(&net, &request);
        let mut job = Box::pin(open.next_job().unwrap());
        let (woken, waker) = Count::new();
        let (ran, job_waker) = Count::new();
        let mut cx = Context::from_waker(&waker);
        assert!(open.poll_head(&mut cx).is_pending());
        let mut poll = || std::future::Future::poll(job.as_mut(), &mut Context::from_waker(&job_waker));
        assert!(poll().is_pending());
        kit.gate.open();
        assert_eq!((ran.get(), woken.get()), (1, 0));
        assert!(poll().is_ready());
        assert_eq!(woken.get(), 1);
        let Poll::Ready(head) = open.poll_head(&mut cx) else { panic!("no head") };
        assert_eq!(head.status, 200);
        let mut body = Vec::new();
        assert_eq!(open.poll_body(&mut cx, &mut body), Poll::Ready(true));
        assert_eq!(open.poll_body(&mut cx, &mut body), Poll::Ready(false));
        assert!(serde_json::from_slice::<serde_json::Value>(&body).unwrap()["result"].is_object());
    }
}

/// A reader that is replaced ends at once, and its end does not take the new one's waker along.
#[test]
fn a_reader_that_is_replaced_is_told() {
    let kit = Kit::default();
    let mut net = Net::new(&kit.service());
    let session = net.session("2025-11-25", json!({}));
    let first = net.send(&session.get());
    let id = net.events(first)[0].id.clone().unwrap();
    let (old, old_waker) = Count::new();
    let (new, new_waker) = Count::new();
    let mut body = Vec::new();
    let open = net.at(first).exchange.as_mut().unwrap();
    assert!(open.poll_body(&mut Context::from_waker(&old_waker), &mut body).is_pending());
    let mut second = exchange(&net, &session.resume(&id));
    assert_eq!(old.get(), 1, "the old reader hears of it");
    let mut cx = Context::from_waker(&new_waker);
    assert!(second.poll_head(&mut cx).is_ready());
    while second.poll_body(&mut cx, &mut body).is_ready() {}
    let open = net.at(first).exchange.as_mut().unwrap();
    assert_eq!(open.poll_body(&mut Context::from_waker(&old_waker), &mut body), Poll::Ready(false));
    net.disconnect(first);
    net.http.service().changes().tools();
    assert_eq!(new.get(), 1, "the new reader is woken");
}
