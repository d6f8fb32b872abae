//! How much looking the tables do for very many calls: names of calls are compared, and tests count how often.
#![cfg(feature = "std")]

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::cmp::Ordering;
use core::time::Duration;

use super::Engine;
use crate::client::config::{CallOptions, Config, Verdict};
use crate::client::event::{CallId, Event};
use crate::client::outbox::{About, Answering, Notice, Origin, Outbox};
use crate::client::request::CallTool;
use crate::limits::Limits;
use crate::model::{Implementation, ProtocolVersion};
use crate::rpc::{self, Parsed};
use crate::time::Instant;

std::thread_local! {
    static COMPARED: Cell<u64> = const { Cell::new(0) };
}

fn compared() -> u64 {
    COMPARED.take()
}

impl PartialEq for CallId {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for CallId {}

impl PartialOrd for CallId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CallId {
    fn cmp(&self, other: &Self) -> Ordering {
        COMPARED.set(COMPARED.get() + 1);
        self.0.cmp(&other.0)
    }
}

/// Whatever goes out is lost.
struct Nowhere;

impl Outbox for Nowhere {
    fn request(&mut self, _: &About<'_>, _: impl FnOnce(&mut Vec<u8>)) {}

    fn notification(&mut self, _: &Notice<'_>, _: impl FnOnce(&mut Vec<u8>)) {}

    fn response(&mut self, _: Answering, _: impl FnOnce(&mut Vec<u8>)) {}

    fn abandon(&mut self, _: i64, _: ProtocolVersion) -> bool {
        true
    }
}

#[derive(Clone, Copy)]
enum Due {
    Apart,
    Together,
}

fn at(millis: usize) -> Instant {
    Instant::from_origin(Duration::from_millis(millis as u64))
}

fn shuffled(many: usize) -> impl Iterator<Item = usize> {
    (0..many).map(move |n| (n * 7_919 + 13) % many)
}

/// An engine with `many` open calls. Where they are due one by one, it is in an order of their own.
fn waiting(many: usize, due: Due) -> (Engine, Vec<CallId>) {
    let config: Arc<Config> = Config::builder(Implementation::new("host", "1"))
        .assume(Verdict::new(ProtocolVersion::LATEST))
        .build();
    let mut engine = Engine::new(config, false);
    assert!(matches!(engine.start(at(0), &mut Nowhere), Some(Event::Ready)));
    let calls = shuffled(many).map(|n| {
        let timeout = Duration::from_millis(1_000 + if matches!(due, Due::Apart) { n as u64 } else { 0 });
        let options = CallOptions::new().progress(true).timeout(timeout);
        engine.call(&CallTool::new("t"), &options, at(0), &mut Nowhere).unwrap()
    });
    let calls = calls.collect();
    (engine, calls)
}

fn take(engine: &mut Engine, frame: &str) {
    let Ok(Parsed::Message(message)) = rpc::parse(frame.as_bytes(), &Limits::default()) else { panic!() };
    let event = engine.handle(message, Origin::Shared, at(0), &mut Nowhere);
    assert!(matches!(event, Some(Event::Progress { .. } | Event::Complete(_))), "{event:?}");
}

fn answer(engine: &mut Engine, n: usize) {
    take(engine, &alloc::format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[]}}}}"#, n + 1));
}

fn progress(engine: &mut Engine, n: usize) {
    let params = alloc::format!(r#"{{"progressToken":{},"progress":1}}"#, n + 1);
    take(
        engine,
        &alloc::format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#),
    );
}

/// Eight times as many calls take eight times as much looking, and what the logarithm adds.
fn is_linear(name: &str, due: Due, end: impl Fn(&mut Engine, &[CallId])) {
    let cost = |many: usize| {
        compared();
        let (mut engine, calls) = waiting(many, due);
        let made = compared();
        end(&mut engine, &calls);
        let ended = compared();
        assert_eq!((engine.open_calls(), engine.next_deadline()), (0, None), "{name}");
        [made, ended]
    };
    let (few, many) = (cost(1_000), cost(8_000));
    for (few, many) in few.into_iter().zip(many) {
        assert!(few >= 1_000 && many <= 8 * few * 3 / 2, "{name}: {many} comparisons against {few}");
    }
}

#[test]
fn answers_find_their_calls_without_looking_at_the_others() {
    is_linear("in order", Due::Apart, |engine, calls| (0..calls.len()).for_each(|n| answer(engine, n)));
    is_linear("in reverse", Due::Apart, |engine, calls| {
        (0..calls.len()).rev().for_each(|n| answer(engine, n));
    });
    is_linear("shuffled", Due::Apart, |engine, calls| {
        shuffled(calls.len()).for_each(|n| progress(engine, n));
        shuffled(calls.len()).for_each(|n| answer(engine, n));
    });
}

#[test]
fn giving_up_a_call_does_not_look_at_the_others() {
    is_linear("given up", Due::Apart, |engine, calls| {
        shuffled(calls.len()).for_each(|n| assert!(engine.cancel(calls[n], None, &mut Nowhere)));
    });
}

#[test]
fn what_is_due_is_found_without_looking_at_what_is_not() {
    is_linear("all at once", Due::Together, |engine, calls| {
        for _ in calls {
            assert!(engine.handle_timeout(at(1_000), &mut Nowhere).is_some());
        }
    });
    is_linear("one by one", Due::Apart, |engine, calls| {
        for now in 1_000..1_000 + calls.len() {
            assert_eq!(engine.next_deadline(), Some(at(now)));
            assert!(engine.handle_timeout(at(now), &mut Nowhere).is_some());
            assert!(engine.handle_timeout(at(now), &mut Nowhere).is_none());
        }
    });
}

#[test]
fn the_end_of_the_stream_looks_at_each_call_once() {
    is_linear("end of the stream", Due::Apart, |engine, calls| {
        engine.eof();
        for _ in calls {
            assert!(engine.handle_timeout(at(0), &mut Nowhere).is_some());
        }
    });
}
