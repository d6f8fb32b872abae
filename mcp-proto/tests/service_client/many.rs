//! Very many calls at once, and servers that tell without end.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_proto::client::{CallError, Change};
use mcp_proto::limits::Limits;
use mcp_proto::model::SubscriptionFilter;
use mcp_proto::service::client::{Call, Heard};
use serde_json::json;

use crate::basics::client;
use crate::rig::{Rig, now, poll, text};

const MANY: usize = 100_000;

/// How often one call was woken, and all of them together.
struct Count {
    own: AtomicUsize,
    all: Arc<AtomicUsize>,
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.own.fetch_add(1, Ordering::Relaxed);
        self.all.fetch_add(1, Ordering::Relaxed);
    }
}

struct Many {
    rig: Rig,
    calls: Vec<Call<'static, mcp_proto::client::request::CallTool>>,
    counts: Vec<Arc<Count>>,
    all: Arc<AtomicUsize>,
}

impl Many {
    fn waiting() -> Self {
        let mut limits = Limits::default();
        limits.output_high_water = usize::MAX;
        let (client, mut rig) = Rig::modern(client().limits(limits), json!({"tools": {}}));
        let all = Arc::new(AtomicUsize::new(0));
        let counts: Vec<_> =
            (0..MANY).map(|_| Arc::new(Count { own: AtomicUsize::new(0), all: Arc::clone(&all) })).collect();
        let mut calls: Vec<_> = (0..MANY).map(|_| client.call_tool("x", ())).collect();
        for (call, count) in calls.iter_mut().zip(&counts) {
            assert!(Self::poll(call, count).is_pending());
        }
        rig.settle();
        skip(&mut rig);
        assert_eq!(all.load(Ordering::Relaxed), 0, "nothing has happened yet");
        Self { rig, calls, counts, all }
    }

    fn poll<F: Future + Unpin>(call: &mut F, count: &Arc<Count>) -> Poll<F::Output> {
        std::pin::Pin::new(call).poll(&mut Context::from_waker(&Waker::from(Arc::clone(count))))
    }

    fn answer(&mut self, n: usize) {
        self.rig.text(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":[]}}}}", n + 2));
    }

    /// Call `n` was woken now, once, and no other.
    fn woke_only(&self, n: usize, before: usize) {
        assert_eq!(self.counts[n].own.load(Ordering::Relaxed), 1, "call {n}");
        assert_eq!(self.all.load(Ordering::Relaxed), before + 1, "not only call {n}");
    }
}

fn skip(rig: &mut Rig) {
    let written = rig.link.output().len();
    rig.link.advance(written);
}

#[test]
fn each_answer_wakes_its_own_call_and_no_other() {
    let mut many = Many::waiting();
    for before in 0..MANY {
        let n = (before * 7_919 + 13) % MANY;
        many.answer(n);
        many.woke_only(n, before);
        assert!(Many::poll(&mut many.calls[n], &many.counts[n]).is_ready());
    }
    assert_eq!(many.rig.link.next_deadline(), None);
}

#[test]
fn calls_that_are_given_up_wake_nobody_and_those_that_time_out_wake_once() {
    let mut many = Many::waiting();
    let rest = many.calls.split_off(MANY / 2);
    drop(std::mem::replace(&mut many.calls, rest));
    many.rig.settle();
    assert_eq!(many.all.load(Ordering::Relaxed), 0);
    many.rig.pass(Duration::from_secs(60));
    assert_eq!(many.all.load(Ordering::Relaxed), MANY / 2);
    for (call, count) in many.calls.iter_mut().zip(&many.counts[MANY / 2..]) {
        assert_eq!(count.own.load(Ordering::Relaxed), 1);
        assert!(matches!(Many::poll(call, count), Poll::Ready(Err(CallError::TimedOut))));
    }
    let written = many.rig.link.output();
    assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), MANY);
    assert_eq!(many.rig.link.next_deadline(), None);
}

/// What waits for a future that is not polled is bounded in number and in bytes, and the newest stays.
#[test]
fn progress_that_is_not_heard_is_bounded_in_bytes() {
    let (client, mut rig) = Rig::modern(client(), json!({"tools": {}}));
    let mut heard = Vec::new();
    let mut call = client.call_tool("x", ()).on_progress(|progress| {
        heard.push((progress.progress, progress.message.map_or(0, |message| message.len())));
    });
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    let mut other = client.call_tool("x", ());
    assert!(poll(&mut other).is_pending());
    let unharmed = rig.one();
    let tell = |rig: &mut Rig, step: usize, message: &str| {
        let token = &request["id"];
        rig.notify(
            "notifications/progress",
            json!({"progressToken": token, "progress": step, "message": message}),
        );
    };
    for step in 1..=100 {
        tell(&mut rig, step, &"m".repeat(1 << 10));
    }
    assert!(poll(&mut call).is_pending());
    // One alone may be longer than all of them together: it is the newest.
    tell(&mut rig, 101, "small");
    tell(&mut rig, 102, &"m".repeat(1 << 20));
    assert!(poll(&mut call).is_pending());
    tell(&mut rig, 103, &"m".repeat(1 << 20));
    tell(&mut rig, 104, "small");
    rig.answer(&request, text("done"));
    rig.answer(&unharmed, text("other"));
    assert_eq!(now(&mut call).unwrap().texts(), "done");
    assert_eq!(now(other).unwrap().texts(), "other");
    drop(call);
    let mut expected: Vec<_> = (37..=100).map(|step| (f64::from(step), 1 << 10)).collect();
    expected.extend([(102.0, 1 << 20), (104.0, 5)]);
    assert_eq!(heard, expected);
}

/// A subscription that is not looked at says that something was missed.
#[test]
fn changes_that_are_not_heard_are_bounded_in_bytes_and_become_a_gap() {
    let (client, mut rig) = Rig::modern(client(), json!({"resources": {"subscribe": true}}));
    let mut listen = client.listen(SubscriptionFilter::new().resource("file:///"));
    assert!(poll(&mut listen).is_pending());
    let request = rig.one();
    let meta = json!({"io.modelcontextprotocol/subscriptionId": request["id"]});
    rig.notify(
        "notifications/subscriptions/acknowledged",
        json!({"notifications": {"resourceSubscriptions": ["file:///"]}, "_meta": meta}),
    );
    let mut subscription = now(listen).unwrap();
    let change = |rig: &mut Rig, uri: &str| {
        rig.notify("notifications/resources/updated", json!({"uri": uri, "_meta": meta}));
    };
    let long = |n: usize| format!("file:///{n:08}{}", "u".repeat(1 << 10));
    for n in 0..63 {
        change(&mut rig, &long(n));
    }
    for n in 0..63 {
        let heard = now(subscription.next()).unwrap().unwrap();
        assert_eq!(heard, Heard::Changed(Change::Resource(long(n).into())), "63 KiB are kept");
    }
    for n in 0..100 {
        change(&mut rig, &long(n));
    }
    change(&mut rig, "file:///last");
    assert_eq!(now(subscription.next()).unwrap().unwrap(), Heard::Gap);
    let mut rest = Vec::new();
    while let Poll::Ready(heard) = subscription.poll_next(&mut Context::from_waker(Waker::noop())) {
        rest.push(heard.unwrap().unwrap());
    }
    assert!(rest.len() < 40, "{}", rest.len());
    assert_eq!(rest.last(), Some(&Heard::Changed(Change::Resource("file:///last".into()))));
}
