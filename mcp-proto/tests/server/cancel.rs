//! Giving up: by the client, by the clock, by the handler.

use std::time::Duration;

use mcp_proto::model::{CallToolResult, ProtocolVersion as V};
use mcp_proto::rpc::Error;
use mcp_proto::server::{Channel, Delivery, Event, Log, Progress};
use serde_json::json;

use super::pair::{Pair, at, call, call_with_token, cancel, config, limits};

/// C01: ids `0` and `""` are ids, `"1"` is not `1`, and a bad cancellation is ignored (B-CANCEL-07).
#[test]
fn c01_cancellation_matches_the_exact_id() {
    for version in V::ALL {
        let mut pair = Pair::speaking(version);
        let keys: Vec<_> = ["0", "\"\"", "1", "\"1\""].map(|id| pair.open(&call(version, id, "t"))).into();
        for bad in ["{}", "null", "77", "[0]", "0.0", "\"0\"", "false"] {
            assert!(pair.send(&cancel(bad)).is_none(), "{bad}");
        }
        for bad in [
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[0]}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"requestId":1}}"#,
        ] {
            assert!(pair.send(bad).is_none(), "{bad}");
        }
        assert_eq!(pair.server.in_flight(), 4);
        for (id, at) in [("0", 0), ("\"\"", 1), ("\"1\"", 3)] {
            match pair.send(&cancel(id)) {
                Some(Event::Cancelled { key, reason: None }) => assert_eq!(key, keys[at], "{id}"),
                other => panic!("{id}: {other:?}"),
            }
            assert!(pair.send(&cancel(id)).is_none(), "cancelled once");
        }
        assert!(pair.server.is_open(keys[2]) && pair.server.in_flight() == 1);
        pair.silent();
    }
}

/// B-CANCEL-06: the reason reaches the driver; whatever is wrong with it does not matter.
#[test]
fn the_reason_reaches_the_log() {
    let mut pair = Pair::new();
    for (reason, seen) in [(r#""too \"slow\"""#, Some("too \"slow\"")), ("null", None), ("7", None)] {
        pair.open(&call(V::LATEST, "1", "t"));
        let frame = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,"reason":{reason}}}}}"#
        );
        match pair.send(&frame) {
            Some(Event::Cancelled { reason, .. }) => assert_eq!(reason.as_deref(), seen),
            other => panic!("{other:?}"),
        }
    }
}

/// C04, S-CANCEL-06, S-STDIO-04, B-CANCEL-05: after a cancellation nothing is written for the request,
/// whatever the handler still tries; the id is free again.
#[test]
fn c04_nothing_follows_a_cancellation() {
    for version in V::ALL {
        let mut pair = Pair::speaking(version);
        let frame = call_with_token(version, "5", "\"p\"");
        let (pending, _) = pair.tool(&frame);
        let key = pending.key();
        assert!(matches!(pair.send(&cancel("5")), Some(Event::Cancelled { .. })));
        let Pair { server, out, .. } = &mut pair;
        assert_eq!(server.progress(&pending, Progress::new(1.0), out), Delivery::Discarded);
        assert_eq!(server.respond(pending, &CallToolResult::text("late"), out), Delivery::Discarded);
        assert_eq!(server.abandon(key, out), Delivery::Discarded);
        pair.silent();
        // A new request may have the id; what belongs to the old one does not reach it.
        let again = call(version, "5", "t");
        let (pending, _) = pair.tool(&again);
        assert_ne!(pending.key(), key);
        let Pair { server, out, .. } = &mut pair;
        assert_eq!(server.abandon(key, out), Delivery::Discarded);
        assert!(server.respond(pending, &CallToolResult::text("new"), out).is_written());
        assert_eq!(pair.message()["result"]["content"][0]["text"], "new");
    }
}

/// S-STDIO-04: no log message either, where it belongs to the request.
#[test]
fn c04_no_log_after_a_cancellation() {
    let mut pair = Pair::new();
    let frame = super::pair::modern_of(
        "1",
        "tools/call",
        "\"name\":\"t\"",
        "{}",
        r#""io.modelcontextprotocol/logLevel":"debug""#,
    );
    let (pending, _) = pair.tool(&frame);
    pair.send(&cancel("1"));
    let data = serde_json::value::to_raw_value("x").unwrap();
    let log = Log::new(mcp_proto::model::LoggingLevel::Emergency, &data);
    assert_eq!(pair.server.log(&pending, log, &mut pair.out), Delivery::Discarded);
    pair.silent();
}

/// An answer is delivered once; the right to it belongs to one stream.
#[test]
fn answers_of_other_streams_are_discarded() {
    let (mut one, mut other) = (Pair::new(), Pair::new());
    let frame = call(V::LATEST, "1", "t");
    let (mine, _) = one.tool(&frame);
    let (theirs, _) = other.tool(&frame);
    assert_eq!(one.server.respond(theirs, &CallToolResult::text("x"), &mut one.out), Delivery::Discarded);
    one.silent();
    assert!(one.server.respond(mine, &CallToolResult::text("x"), &mut one.out).is_written());
    assert!(other.server.in_flight() == 1 && one.server.in_flight() == 0);
}

/// An id that is in use cannot be taken by a second request, and the first one is not harmed.
#[test]
fn an_open_id_is_not_given_twice() {
    for version in V::ALL {
        let mut pair = Pair::speaking(version);
        let frame = call(version, "1", "t");
        let (pending, _) = pair.tool(&frame);
        assert_eq!(pair.error(&frame)["error"]["code"], -32600);
        if !version.is_modern() {
            assert_eq!(pair.error(&super::pair::legacy("1", "ping", ""))["error"]["code"], -32600);
        }
        assert!(pair.server.respond(pending, &CallToolResult::text("x"), &mut pair.out).is_written());
        assert_eq!(pair.message()["id"], 1);
        pair.open(&frame);
    }
}

/// A handler that is lost ends its request with an error that says nothing about the inside.
#[test]
fn abandoned_requests_are_answered() {
    let mut pair = Pair::new();
    let frame = call(V::LATEST, "1", "t");
    let (pending, _) = pair.tool(&frame);
    let key = pending.key();
    drop(pending);
    assert!(pair.server.abandon(key, &mut pair.out).is_written());
    let answer = pair.message();
    assert_eq!(answer, json!({"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}));
    assert_eq!(pair.server.abandon(key, &mut pair.out), Delivery::Discarded);
}

/// Requests end at their deadline, in the order in which they came, and not before.
#[test]
fn requests_time_out() {
    for version in V::ALL {
        let config = config().limits(limits(|l| l.request_timeout = Some(Duration::from_secs(5)))).build();
        let mut pair = Pair::of(config);
        if !version.is_modern() {
            pair = pair.with_session(version, "{}");
        }
        assert_eq!(pair.server.next_deadline(), None);
        let one = pair.open(&call(version, "1", "t"));
        assert_eq!(pair.server.next_deadline(), Some(at(6_000)));
        assert!(pair.pass(2_000).is_empty());
        let frame = call(version, "2", "t");
        let (two, _) = pair.tool(&frame);
        let three = pair.open(&call(version, "3", "t"));
        assert!(pair.pass(5_999).is_empty());
        pair.silent();
        match &pair.pass(6_000)[..] {
            [Event::TimedOut { key }] => assert_eq!(*key, one),
            other => panic!("{other:?}"),
        }
        let answer = pair.message();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
        assert_eq!(pair.server.next_deadline(), Some(at(7_000)));
        // One that is answered in time has no deadline any more.
        assert!(pair.server.fail(two, &Error::internal(), &mut pair.out).is_written());
        pair.text();
        match &pair.pass(60_000)[..] {
            [Event::TimedOut { key }] => assert_eq!(*key, three),
            other => panic!("{other:?}"),
        }
        assert_eq!(pair.message()["id"], 3);
        assert_eq!(pair.server.next_deadline(), None);
    }
}
