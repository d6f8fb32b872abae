//! Servers that answer with anything.

use std::time::Duration;

use mcp_proto::client::http::Lost;
use mcp_proto::client::{CallError, ViolationKind};
use mcp_proto::limits::Limits;
use proptest::prelude::*;
use serde_json::json;

use crate::driver::*;

fn small() -> Driver {
    let mut limits = Limits::default();
    limits.max_message = 2000;
    let verdict = mcp_proto::client::Verdict::new(mcp_proto::model::ProtocolVersion::V2026_07_28);
    let mut driver = Driver::new(config().assume(verdict).limits(limits).build(), settings());
    driver.events();
    driver
}

type Row<'a> = (&'a str, u16, &'a [(&'a str, &'a str)], &'a str);

/// Whatever is wrong with one answer, the call fails with a reason, and others are not touched.
#[test]
fn bad_answers_fail_their_call_alone() {
    let json = &[("content-type", "application/json")][..];
    let sse = &[("content-type", "text/event-stream")][..];
    let huge = format!("{{\"jsonrpc\":\"2.0\",\"x\":\"{}\"}}", "x".repeat(5000));
    let event = format!("data: {huge}\n\n");
    let fine = r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[]}}"#;
    let after = format!("{fine}{fine}");
    let rows: Vec<Row<'_>> = vec![
        ("no body", 200, json, ""),
        ("blank", 200, json, " \n"),
        ("no JSON", 200, json, "hello"),
        ("half of it", 200, json, "{\"jsonrpc\":\"2.0\",\"id\":ID,"),
        ("bytes after the end", 200, json, &after),
        ("too long", 200, json, &huge),
        ("an array", 200, json, "[]"),
        ("another id", 200, json, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#),
        ("no result", 200, json, r#"{"jsonrpc":"2.0","id":ID}"#),
        ("a result of another kind", 200, json, r#"{"jsonrpc":"2.0","id":ID,"result":[]}"#),
        ("a notification", 200, json, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#),
        ("a request", 200, json, r#"{"jsonrpc":"2.0","id":ID,"method":"ping"}"#),
        ("no type", 200, &[], fine),
        ("another type", 200, &[("content-type", "text/html")], "<html>"),
        ("accepted", 202, &[], ""),
        ("no content", 204, &[], ""),
        ("events without one", 200, sse, ": nothing\n\n"),
        ("an event that is too long", 200, sse, &event),
        ("half an event", 200, sse, "data: {\"jsonrpc\":\"2.0\""),
        ("no message", 200, sse, "data: hello\n\n"),
        ("a redirect to nowhere", 302, &[], ""),
        ("an odd status", 600, json, fine),
        ("no status", 0, json, fine),
        ("informational", 101, &[], ""),
    ];
    for (name, status, headers, body) in rows {
        let mut driver = small();
        let call = driver.tool("a", json!({}));
        let other = driver.tool("b", json!({}));
        let [a, b] = &driver.sent()[..] else { panic!() };
        driver.respond(a, status, headers, &body.replace("ID", &a.id().to_string()));
        let events = driver.events();
        assert!(
            events.iter().any(|event| matches!(event, Seen::Failed(failed, _) if *failed == call)),
            "{name}: {events:?}"
        );
        assert!(!events.iter().any(|event| matches!(event, Seen::Complete(..))), "{name}");
        driver.json(b, 200, &result(b, text("B")));
        assert!(matches!(driver.event(), Seen::Complete(done, _) if done == other), "{name}");
    }
}

#[test]
fn reasons_are_told() {
    let mut driver = small();
    driver.tool("a", json!({}));
    let sent = driver.one();
    driver.respond(&sent, 200, &[("content-type", "application/json")], &"x".repeat(3000));
    let Seen::Failed(_, CallError::Malformed(why)) = driver.event() else { panic!() };
    assert_eq!(why, "expected at most 2000 bytes, found more");
    driver.tool("a", json!({}));
    let sent = driver.one();
    driver.respond(&sent, 502, &[("content-type", "text/html")], "<h1>Bad\r\nGateway\u{1b}[31m</h1>");
    let Seen::Failed(_, CallError::Http { status, detail }) = driver.event() else { panic!() };
    assert_eq!((status, &*detail), (502, "<h1>Bad  Gateway [31m</h1>"));
}

/// H12: a stream that never ends is ended by the time that the call has.
#[test]
fn a_stream_that_never_ends_is_let_go_of() {
    let mut driver = small();
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.sse(&sent);
    for _ in 0..59 {
        driver.body(&sent, ": x\n\n: y\n\ndata:\n\nevent: ping\ndata: {}\n\n".repeat(1000));
        driver.pass(Duration::from_secs(1));
        assert!(driver.events().is_empty());
    }
    driver.pass(Duration::from_secs(1));
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::TimedOut) if failed == call));
    assert_eq!(driver.closed, [sent.exchange]);
    // What still comes of it means nothing.
    driver.event_of(&sent, &result(&sent, text("late")));
    assert!(driver.events().is_empty());
}

/// A body that never ends, of a refusal that was understood, is let go of as well.
#[test]
fn a_refusal_that_never_ends_is_let_go_of() {
    let mut driver = small();
    driver.tool("a", json!({}));
    let sent = driver.one();
    driver.head(&sent, 401, &[]);
    assert!(matches!(driver.event(), Seen::Failed(_, CallError::Unauthorized(_))));
    driver.body(&sent, vec![b'x'; 100_000]);
    assert!(driver.closed.is_empty());
    driver.pass(Duration::from_secs(5));
    assert_eq!(driver.closed, [sent.exchange]);
}

#[test]
fn requests_of_a_modern_server_are_refused() {
    let mut driver = small();
    driver.tool("a", json!({}));
    let sent = driver.one();
    driver.sse(&sent);
    driver.event_of(&sent, &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    assert!(matches!(driver.event(), Seen::Violation(v) if v.kind == ViolationKind::Request));
    // C-HTTP-05
    assert!(driver.sent().is_empty());
}

/// Names of exchanges that were never given, or are over, mean nothing.
#[test]
fn what_comes_twice_counts_once() {
    let mut driver = small();
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.json(&sent, 200, &result(&sent, text("A")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
    driver.json(&sent, 200, &result(&sent, text("A")));
    driver.lost(&sent);
    driver.status(&sent, 401);
    assert!(driver.events().is_empty() && driver.sent().is_empty());
}

/// A second head changes nothing about a response that has begun: its request was taken and is not sent again.
#[test]
fn a_response_begins_once() {
    for status in [307, 401, 404] {
        let mut driver = small();
        let call = driver.tool("a", json!({}));
        let sent = driver.one();
        driver.head(&sent, 200, &[("content-type", "application/json")]);
        driver.head(&sent, status, &[("location", "/a")]);
        assert!(driver.sent().is_empty() && driver.events().is_empty(), "{status}");
        driver.with(|client, now, out| assert!(client.cancel(call, None, now, out)));
    }
}

/// One thing that a driver may do with a request that is on its way.
#[derive(Debug, Clone)]
enum Act {
    Call,
    Cancel(usize),
    Head(usize, u16, usize),
    Body(usize, Vec<u8>),
    Answer(usize),
    End(usize, bool),
    Lost(usize),
    Pass(u64),
    Authorize,
    Decline,
    Close,
}

fn act() -> impl Strategy<Value = Act> {
    let status =
        prop::sample::select(vec![0, 100, 200, 202, 204, 302, 307, 400, 401, 403, 404, 405, 429, 500]);
    let body = prop_oneof![
        Just(b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n".to_vec()),
        Just(b"id: 7\nretry: 5\ndata:\n\n".to_vec()),
        Just(b"event: endpoint\ndata: /messages\n\n".to_vec()),
        Just(b"data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n\n".to_vec()),
        Just(b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32020,\"message\":\"x\"}}".to_vec()),
        Just(b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32022,\"message\":\"x\",\"data\":{\"supported\":[\"2025-06-18\"]}}}".to_vec()),
        any::<Vec<u8>>(),
    ];
    let at = 0..8_usize;
    prop_oneof![
        3 => Just(Act::Call),
        1 => at.clone().prop_map(Act::Cancel),
        6 => (at.clone(), status, 0..5_usize).prop_map(|(at, status, kind)| Act::Head(at, status, kind)),
        4 => (at.clone(), body).prop_map(|(at, body)| Act::Body(at, body)),
        4 => at.clone().prop_map(Act::Answer),
        4 => (at.clone(), any::<bool>()).prop_map(|(at, ok)| Act::End(at, ok)),
        1 => at.prop_map(Act::Lost),
        2 => (0..40_000_u64).prop_map(Act::Pass),
        1 => Just(Act::Authorize),
        1 => Just(Act::Decline),
        1 => Just(Act::Close),
    ]
}

proptest! {
    /// Whatever comes in whatever order: no panic, no call without an end, and never more on its way than
    /// was asked for.
    #[test]
    fn anything_may_happen(acts in prop::collection::vec(act(), 0..60), modern in any::<bool>()) {
        let version = mcp_proto::client::Verdict::new(if modern {
            mcp_proto::model::ProtocolVersion::V2026_07_28
        } else {
            mcp_proto::model::ProtocolVersion::V2025_11_25
        });
        let config = config().assume(acts.len().is_multiple_of(3).then_some(version)).capabilities(all()).build();
        let mut driver = Driver::new(config, settings().gets_tokens(acts.len().is_multiple_of(2)));
        let (mut sent, mut calls, mut over) = (Vec::new(), Vec::new(), 0);
        for act in acts.iter().chain([&Act::Close, &Act::Pass(100_000), &Act::Pass(100_000)]) {
            sent.extend(driver.sent());
            let at = |at: &usize| sent.len().checked_sub(1 + at % sent.len().max(1)).map(|at: usize| sent[at].clone());
            match act {
                Act::Call => {
                    let request = mcp_proto::client::request::CallTool::new("t");
                    let made = driver.with(|client, now, out| client.call(&request, &Default::default(), now, out));
                    calls.extend(made);
                }
                Act::Cancel(at) => {
                    if let Some(call) = calls.get(*at).copied() {
                        over += usize::from(driver.with(|client, now, out| client.cancel(call, None, now, out)));
                    }
                }
                Act::Head(n, status, kind) => {
                    let kinds = ["application/json", "text/event-stream", "text/html", "", "x"];
                    let headers = [("content-type", kinds[*kind]), ("location", "/a"), ("mcp-session-id", "s")];
                    if let Some(sent) = at(n) {
                        driver.head(&sent, *status, &headers);
                    }
                }
                Act::Body(n, body) => {
                    if let Some(sent) = at(n) {
                        driver.body(&sent, body);
                    }
                }
                Act::Answer(n) => {
                    if let Some(sent) = at(n) && sent.method() == "POST" {
                        let body = match &*sent.rpc() {
                            "initialize" => handshake(&sent, "2025-11-25"),
                            "server/discover" => discovered(&sent),
                            _ => result(&sent, text("A")),
                        };
                        driver.json_with(&sent, 200, &[("mcp-session-id", "s")], &body);
                    }
                }
                Act::End(n, ok) => {
                    if let Some(sent) = at(n) {
                        driver.finish(&sent, if *ok { Ok(()) } else { Err(Lost("x".into())) });
                    }
                }
                Act::Lost(n) => {
                    if let Some(sent) = at(n) {
                        driver.lost(&sent);
                    }
                }
                Act::Pass(millis) => driver.pass(Duration::from_millis(*millis)),
                Act::Authorize => {
                    let token = mcp_proto::client::http::Token::bearer("t").unwrap();
                    driver.with(|client, now, out| client.authorize(token, now, out));
                }
                Act::Decline => driver.with(|client, now, out| client.decline(now, out)),
                Act::Close => driver.with(|client, now, out| client.close(now, out)),
            }
            over += driver.events().iter().filter(|event| matches!(event, Seen::Complete(..) | Seen::Failed(..))).count();
        }
        prop_assert!(driver.client.is_closed());
        prop_assert_eq!(driver.client.open_calls(), 0);
        prop_assert_eq!(over, calls.len(), "each call ends once");
    }
}
