//! Bounds that a peer runs into.

use mcp_proto::model::{CallToolResult, InputRequest, ProtocolVersion as V};
use mcp_proto::server::{AskError, Channel};
use serde_json::json;

use super::pair::{EVERY_CAPABILITY, Pair, call, cancel, config, legacy, limits, modern, result};

/// One request more than may be open is refused, by id; a cancellation still gets through and makes room.
/// What the machine answers itself needs no room.
#[test]
fn open_requests_are_bounded() {
    for version in V::ALL {
        let mut pair = Pair::of(config().limits(limits(|l| l.max_in_flight = 3)).build());
        if !version.is_modern() {
            pair = pair.with_session(version, "{}");
        }
        for id in ["1", "2", "3"] {
            pair.open(&call(version, id, "t"));
        }
        let answer = pair.error(&call(version, "4", "t"));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(4), &json!(-32603)));
        let own =
            if version.is_modern() { modern("5", "server/discover", "") } else { legacy("5", "ping", "") };
        assert!(pair.send(&own).is_none());
        assert!(pair.message().get("result").is_some());
        assert!(pair.send(&cancel("2")).is_some());
        let frame = call(version, "4", "t");
        let (pending, _) = pair.tool(&frame);
        assert_eq!(pair.server.in_flight(), 3);
        assert!(pair.server.respond(pending, &CallToolResult::text("x"), &mut pair.out).is_written());
        assert_eq!(pair.server.in_flight(), 2);
    }
}

/// Thousands of open requests: each is found, whatever the order in which they end.
#[test]
fn many_open_requests() {
    let mut pair = Pair::of(config().limits(limits(|l| l.max_in_flight = 5_000)).build());
    let frames: Vec<_> = (0..5_000).map(|n| call(V::LATEST, &n.to_string(), "t")).collect();
    let mut open: Vec<_> = frames.iter().map(|frame| Some(pair.tool(frame).0)).collect();
    for n in 0..5_000 {
        let n = n * 7 % 5_000;
        if n % 2 == 0 {
            assert!(pair.send(&cancel(&n.to_string())).is_some());
        } else {
            let pending = open[n].take().unwrap();
            assert!(pair.server.respond(pending, &CallToolResult::text("x"), &mut pair.out).is_written());
        }
    }
    assert_eq!((pair.server.in_flight(), pair.messages().len()), (0, 2_500));
}

/// Requests of ours are bounded as well.
#[test]
fn open_questions_are_bounded() {
    let mut pair = Pair::of(config().limits(limits(|l| l.max_client_requests = 2)).build())
        .with_session(V::V2025_06_18, EVERY_CAPABILITY);
    let Pair { server, out, now } = &mut pair;
    assert!(server.ask_client(&InputRequest::ListRoots, *now, out).is_ok());
    assert!(server.ping(*now, out).is_ok());
    assert_eq!(server.ask_client(&InputRequest::ListRoots, *now, out), Err(AskError::TooMany));
    assert_eq!(server.ping(*now, out), Err(AskError::TooMany));
    let id = pair.messages()[0]["id"].clone();
    assert!(pair.send(&result(&id, "{}")).is_some());
    let Pair { server, out, now } = &mut pair;
    assert!(server.ping(*now, out).is_ok());
}

/// Members of params and metadata, and the depth of a message.
#[test]
fn members_and_depth_are_bounded() {
    let mut pair = Pair::of(
        config()
            .limits(limits(|l| {
                l.max_members = 10;
                l.max_depth = 6;
            }))
            .build(),
    );
    let members = |n: usize| (0..n).map(|n| format!("\"m{n}\":1")).collect::<Vec<_>>().join(",");
    pair.open(&modern("1", "x/y", &members(10)));
    assert_eq!(pair.error(&modern("2", "x/y", &members(11)))["error"]["code"], -32602);
    let meta = |n: usize| super::pair::modern_of("3", "x/y", "", "{}", &members(n));
    pair.open(&meta(8));
    assert_eq!(pair.error(&meta(9).replace("\"id\":3", "\"id\":4"))["error"]["code"], -32602);
    let deep = |n: usize| modern("5", "x/y", &format!("\"a\":{}{}", "[".repeat(n), "]".repeat(n)));
    pair.open(&deep(4));
    assert_eq!(pair.error(&deep(5).replace("\"id\":5", "\"id\":6"))["error"]["code"], -32600);
}
