//! What calls of the machine cost that wait: each the same, however many there are and however they end.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout)] // the figures

use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use mcp_proto::client::request::CallTool;
use mcp_proto::client::{CallError, CallId, CallOptions, Config, Connection, Event, Mode};
use mcp_proto::model::Implementation;
use mcp_proto::time::Instant;

const FEW: usize = 25_000;
const MANY: usize = 4 * FEW;

fn at(millis: usize) -> Instant {
    Instant::from_origin(Duration::from_millis(millis as u64))
}

/// The numbers below `many` in an order of their own: each step is prime to every `many` that is used.
fn shuffled(many: usize) -> impl Iterator<Item = usize> {
    (0..many).map(move |n| (n * 7_919 + 13) % many)
}

/// `many` calls that wait, each for as long as `timeout` says. Bounds are the usual ones.
struct Waiting {
    client: Connection,
    calls: Vec<CallId>,
    out: Vec<u8>,
}

impl Waiting {
    fn new(many: usize, timeout: impl Fn(usize) -> usize) -> Self {
        let config = Config::builder(Implementation::new("host", "1")).mode(Mode::Modern).build();
        let (mut client, mut out) = (Connection::new(config), Vec::with_capacity(many * 512));
        client.start(at(0), &mut out);
        let facts =
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}"#;
        let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{facts}}}");
        assert!(matches!(client.handle(frame.as_bytes(), at(0), &mut out), Some(Event::Ready)));
        let mut waiting = Self { client, calls: Vec::with_capacity(many), out };
        for n in 0..many {
            let options = CallOptions::new().progress(true).timeout(Duration::from_millis(timeout(n) as u64));
            let call = waiting.client.call(&CallTool::new("t"), &options, at(0), &mut waiting.out).unwrap();
            waiting.calls.push(call);
        }
        waiting.out.clear();
        waiting
    }

    fn answer(&mut self, n: usize) {
        let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":[]}}}}", n + 2);
        match self.client.handle(frame.as_bytes(), at(1), &mut self.out) {
            Some(Event::Complete(completed)) => assert_eq!(completed.call, self.calls[n]),
            other => panic!("expected the result of call {n}, got {other:?}"),
        }
    }

    fn progress(&mut self, n: usize) {
        let frame = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{},\"progress\":1}}}}",
            n + 2
        );
        match self.client.handle(frame.as_bytes(), at(1), &mut self.out) {
            Some(Event::Progress { call, .. }) => assert_eq!(call, self.calls[n]),
            other => panic!("expected progress of call {n}, got {other:?}"),
        }
    }

    fn cancel(&mut self, n: usize) {
        assert!(self.client.cancel(self.calls[n], None, &mut self.out));
        self.out.clear();
    }

    fn time_out(&mut self, now: usize) -> Option<CallId> {
        let event = self.client.handle_timeout(at(now), &mut self.out);
        self.out.clear();
        match event {
            Some(Event::Failed { call, error: CallError::TimedOut }) => Some(call),
            None => None,
            other => panic!("expected a call that is over, got {other:?}"),
        }
    }

    fn nothing_is_left(&self) {
        assert_eq!((self.client.open_calls(), self.client.next_deadline()), (0, None));
    }
}

/// What it costs that `many` calls are made and then end like this.
fn cost(many: usize, timeout: impl Fn(usize) -> usize, end: impl FnOnce(&mut Waiting)) -> AllocationInfo {
    measure(|| {
        let mut waiting = Waiting::new(many, timeout);
        assert_eq!(waiting.client.open_calls(), many);
        end(&mut waiting);
        waiting.nothing_is_left();
    })
}

/// Four times as many calls cost four times as much, and a little for tables that grow.
fn is_linear(name: &str, timeout: impl Fn(usize) -> usize, end: impl Fn(&mut Waiting)) {
    let few = cost(FEW, &timeout, &end);
    let many = cost(MANY, &timeout, &end);
    println!(
        "{name}: {} and {} allocations, {} and {} bytes, at most {} a call",
        few.count_total,
        many.count_total,
        few.bytes_total,
        many.bytes_total,
        many.bytes_max / MANY as u64
    );
    for (few, many) in [(few.count_total, many.count_total), (few.bytes_total, many.bytes_total)] {
        assert!(few >= FEW as u64 && many * 10 <= few * 44, "{name}: {many} against {few}");
    }
    assert!(many.bytes_max / (MANY as u64) < 3_000, "{name}: {} bytes at a time", many.bytes_max);
}

fn minute(_: usize) -> usize {
    60_000
}

#[test]
fn a_hundred_thousand_calls_are_answered_in_any_order() {
    is_linear("answered", minute, |waiting| {
        let many = waiting.calls.len();
        let order: Vec<usize> = shuffled(many).collect();
        order.iter().for_each(|n| waiting.progress(*n));
        // A third in order, a third in reverse, the rest shuffled.
        (0..many / 3).for_each(|n| waiting.answer(n));
        (many / 3..many * 2 / 3).rev().for_each(|n| waiting.answer(n));
        order.iter().filter(|n| **n >= many * 2 / 3).for_each(|n| waiting.answer(*n));
    });
}

#[test]
fn a_hundred_thousand_calls_are_given_up_or_time_out_at_once() {
    is_linear("given up, or all at once", minute, |waiting| {
        let many = waiting.calls.len();
        shuffled(many).filter(|n| *n < many / 2).for_each(|n| waiting.cancel(n));
        assert_eq!(waiting.client.next_deadline(), Some(at(60_000)));
        assert_eq!(waiting.time_out(59_999), None);
        let mut over = Vec::with_capacity(many);
        while let Some(call) = waiting.time_out(60_000) {
            over.push(call);
        }
        assert_eq!(over, waiting.calls[many / 2..]);
    });
}

/// Each has a deadline of its own, and they are not made in the order in which they end.
#[test]
fn a_hundred_thousand_calls_time_out_one_after_the_other() {
    for many in [FEW, MANY] {
        let order: Vec<usize> = shuffled(many).collect();
        let mut met = order.clone();
        met.sort_unstable();
        assert!(met.into_iter().eq(0..many), "not every number comes once");
    }
    is_linear(
        "one by one",
        |n| 1_000 + (n * 7_919 + 13) % FEW + FEW * (n / FEW),
        |waiting| {
            for now in 1_000..1_000 + waiting.calls.len() {
                assert_eq!(waiting.client.next_deadline(), Some(at(now)));
                let over = waiting.time_out(now);
                assert!(over.is_some(), "nothing was due at {now}");
                assert_eq!(waiting.time_out(now), None, "two at a time");
            }
        },
    );
}

/// A stream that ends takes all of them along.
#[test]
fn a_hundred_thousand_calls_fail_with_their_stream() {
    is_linear("end of the stream", minute, |waiting| {
        waiting.client.eof();
        for call in waiting.calls.clone() {
            match waiting.client.handle_timeout(at(1), &mut waiting.out) {
                Some(Event::Failed { call: over, error: CallError::Closed }) => assert_eq!(over, call),
                other => panic!("expected the end of a call, got {other:?}"),
            }
        }
    });
}

/// What a server tells without end is handed on and kept nowhere.
#[test]
fn a_million_notifications_leave_nothing_behind() {
    let mut waiting = Waiting::new(3, minute);
    let log =
        br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"flood"}}"#;
    let flood = |waiting: &mut Waiting, many: usize, from: usize| {
        measure(|| {
            for n in from..from + many {
                if n.is_multiple_of(2) {
                    let event = waiting.client.handle(log, at(1), &mut waiting.out);
                    assert!(matches!(event, Some(Event::Log { .. })), "{event:?}");
                    continue;
                }
                let frame = format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":3,\"progress\":{n}}}}}"
                );
                let event = waiting.client.handle(frame.as_bytes(), at(1), &mut waiting.out);
                assert!(matches!(event, Some(Event::Progress { .. })), "{event:?}");
            }
        })
    };
    flood(&mut waiting, 1_000, 0);
    let million = flood(&mut waiting, 1_000_000, 1_000);
    assert_eq!(million.bytes_current, 0, "something is kept");
    assert!(million.bytes_max < 4_096, "{} bytes at a time", million.bytes_max);
    assert!(waiting.out.is_empty(), "notifications are not answered");
    // The others are unharmed.
    (0..3).for_each(|n| waiting.answer(n));
    waiting.nothing_is_left();
}
