//! 2026-07-28.

use std::time::Duration;

use mcp_proto::client::http::Lost;
use mcp_proto::client::{CallError, CallOptions, ViolationKind, request};
use mcp_proto::model::SubscriptionFilter;
use serde_json::json;

use crate::driver::*;

/// C-HTTP-01, C-HTTP-06: each call on its own POST, answered in either form, in any order.
#[test]
fn calls_are_answered_in_either_form() {
    let mut driver = Driver::modern();
    let first = driver.tool("a", json!({}));
    let second = driver.tool("b", json!({}));
    let [a, b] = &driver.sent()[..] else { panic!() };
    driver.sse(b);
    driver.body(b, ": hello\n\nevent: message\r\ndata: ");
    driver.json(a, 200, &result(a, text("A")));
    driver.body(b, format!("{}\r", result(b, text("B"))));
    driver.body(b, "\n\r\n");
    let events = driver.events();
    assert!(
        matches!(&events[..], [Seen::Complete(one, _), Seen::Complete(two, done)]
            if *one == first && *two == second && done["content"][0]["text"] == "B"),
        "{events:?}"
    );
    driver.end(b);
    assert!(driver.events().is_empty());
}

#[test]
fn progress_comes_with_the_answer() {
    let mut driver = Driver::modern();
    let options = CallOptions::default().progress(true);
    let call = driver.call_with(&request::CallTool::new("slow"), &options);
    let sent = driver.one();
    driver.sse(&sent);
    let token = sent.body()["params"]["_meta"]["progressToken"].clone();
    driver.event_of(
        &sent,
        &json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": token, "progress": 1}}),
    );
    assert!(matches!(driver.event(), Seen::Progress(of, 1.0) if of == call));
}

/// H15, C-CANCEL-01: closing the response says it, and nothing else is sent.
#[test]
fn closing_the_response_cancels() {
    let mut driver = Driver::modern();
    let call = driver.tool("slow", json!({}));
    let sent = driver.one();
    driver.sse(&sent);
    assert!(driver.with(|client, now, out| client.cancel(call, Some("enough"), now, out)));
    assert_eq!(driver.closed, [sent.exchange]);
    assert!(driver.sent().is_empty() && driver.events().is_empty());
    // A call that takes too long is cancelled the same way.
    let call = driver.tool("slow", json!({}));
    let sent = driver.one();
    driver.pass(Duration::from_secs(60));
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::TimedOut) if failed == call));
    assert_eq!(driver.closed.last(), Some(&sent.exchange));
    assert!(driver.sent().is_empty());
}

/// C-HTTP-08: what was lost is lost; whoever wants it makes the call again, under another id.
#[test]
fn a_stream_that_ends_too_early_fails_its_call_alone() {
    let mut driver = Driver::modern();
    let call = driver.tool("a", json!({}));
    let other = driver.tool("b", json!({}));
    let [a, b] = &driver.sent()[..] else { panic!() };
    driver.sse(a);
    driver.body(a, "id: e-1\nretry: 10\ndata: \n\ndata: {\"jsonrpc\":\"2.0\",");
    driver.end(a);
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::Lost(_)) if failed == call));
    driver.pass(Duration::from_secs(5));
    assert!(driver.sent().is_empty(), "no GET, no Last-Event-ID");
    driver.json(b, 200, &result(b, text("B")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == other));
    driver.tool("a", json!({}));
    let again = driver.one();
    assert!(again.id() != a.id() && again.id() != b.id());
    driver.lost(&again);
    assert!(matches!(driver.event(), Seen::Failed(_, CallError::Lost(why)) if why == "no connection"));
}

#[test]
fn nothing_after_the_answer_counts() {
    let mut driver = Driver::modern();
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.sse(&sent);
    driver.event_of(&sent, &result(&sent, text("A")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
    driver.event_of(&sent, &result(&sent, text("again")));
    assert!(matches!(driver.event(), Seen::Violation(v) if v.kind == ViolationKind::Late));
    driver.event_of(&sent, &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    assert!(matches!(driver.event(), Seen::Violation(v) if v.kind == ViolationKind::Late));
    // A response that does not end is let go of.
    driver.pass(Duration::from_secs(5));
    assert_eq!(driver.closed, [sent.exchange]);
}

/// An answer that belongs to another call is none, there or here.
#[test]
fn answers_come_on_their_own_response() {
    let mut driver = Driver::modern();
    let first = driver.tool("a", json!({}));
    let second = driver.tool("b", json!({}));
    let [a, b] = &driver.sent()[..] else { panic!() };
    driver.sse(a);
    driver.event_of(a, &result(b, text("B")));
    assert!(matches!(driver.event(), Seen::Violation(v) if v.kind == ViolationKind::Misplaced));
    driver.event_of(a, &json!({"jsonrpc": "2.0", "id": 4711, "result": {"resultType": "complete"}}));
    assert!(matches!(driver.event(), Seen::Violation(v) if v.kind == ViolationKind::UnknownResponse));
    driver.end(a);
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::Lost(_)) if failed == first));
    driver.json(b, 200, &result(b, text("B")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == second));
}

#[test]
fn errors_of_the_server_have_a_status_and_a_body() {
    for (status, code) in [(400, -32602), (404, -32601), (200, -32603), (500, -32603), (400, -32021)] {
        let mut driver = Driver::modern();
        let call = driver.tool("a", json!({}));
        let sent = driver.one();
        driver.json(&sent, status, &error(&sent, code, None));
        let event = driver.event();
        assert!(
            matches!(&event, Seen::Failed(failed, CallError::Rpc(e)) if *failed == call && e.code == code),
            "{status} {code}: {event:?}"
        );
    }
    // One that names no request is about the request that it answers, once it is sure that the server is modern: an older
    // one refuses what it does not know so, too.
    let mut driver = Driver::modern();
    driver.tool("a", json!({}));
    let sent = driver.one();
    driver.json(&sent, 200, &result(&sent, text("A")));
    assert!(matches!(driver.event(), Seen::Complete(..)));
    driver.tool("a", json!({}));
    let sent = driver.one();
    driver.json(&sent, 400, &json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "x"}}));
    assert!(matches!(driver.event(), Seen::Failed(_, CallError::Rpc(e)) if e.code == -32700));
    // One about another request is none.
    let mut driver = Driver::modern();
    driver.tool("a", json!({}));
    let sent = driver.one();
    driver.json(&sent, 500, &json!({"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "x"}}));
    assert!(matches!(driver.event(), Seen::Failed(_, CallError::Http { status: 500, .. })));
}

/// S-SUBS on the client's side: the acknowledgment, changes, and both ends.
#[test]
fn a_subscription_is_a_long_response() {
    let mut driver = Driver::modern();
    let filter: SubscriptionFilter = serde_json::from_value(json!({"toolsListChanged": true})).unwrap();
    let listen = |driver: &mut Driver| {
        let filter = filter.clone();
        let id =
            driver.with(|client, now, out| client.listen(filter, &CallOptions::default(), now, out).unwrap());
        let sent = driver.one();
        assert_eq!(
            (&*sent.rpc(), sent.header("mcp-method")),
            ("subscriptions/listen", Some("subscriptions/listen"))
        );
        driver.sse(&sent);
        let tag = json!({"io.modelcontextprotocol/subscriptionId": sent.id()});
        driver.event_of(
            &sent,
            &json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": {"toolsListChanged": true}, "_meta": tag}}),
        );
        assert!(matches!(driver.event(), Seen::Acknowledged(of, _) if of == id));
        driver.body(&sent, ": keep-alive\n\n");
        driver.event_of(
            &sent,
            &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": tag}}),
        );
        assert!(matches!(driver.event(), Seen::Changed(of, _) if of == Some(id)));
        (id, sent, tag)
    };
    let (id, sent, tag) = listen(&mut driver);
    driver.event_of(
        &sent,
        &json!({"jsonrpc": "2.0", "id": sent.id(), "result": {"resultType": "complete", "_meta": tag}}),
    );
    assert!(matches!(driver.event(), Seen::Ended(of, false) if of == id));
    driver.end(&sent);
    assert!(driver.events().is_empty());

    let (id, sent, _) = listen(&mut driver);
    driver.finish(&sent, Err(Lost("reset".into())));
    assert!(matches!(driver.event(), Seen::Ended(of, true) if of == id));
    driver.with(|client, now, out| client.relisten(id, now, out).unwrap());
    let sent = driver.one();
    assert_eq!(sent.rpc(), "subscriptions/listen");
    assert!(driver.with(|client, now, out| client.cancel(id, None, now, out)));
    assert_eq!(driver.closed.last(), Some(&sent.exchange));
}

/// C-VER-01
#[test]
fn a_version_that_is_no_longer_served_is_replaced() {
    let mut driver = Driver::modern();
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    let data = json!({"supported": ["2099-01-01"], "requested": "2026-07-28"});
    driver.json(&sent, 400, &error(&sent, -32022, Some(data)));
    assert!(
        matches!(driver.event(), Seen::Failed(failed, CallError::Rpc(e)) if failed == call && e.code == -32022)
    );
}

/// A05: credentials and messages stay within the origin.
#[test]
fn redirects_are_followed_within_the_origin() {
    let mut driver = Driver::modern();
    let call = driver.tool("a", json!({}));
    let first = driver.one();
    driver.respond(&first, 307, &[("Location", "/mcp/")], "moved");
    let second = driver.one();
    assert_eq!(second.request.url.as_str(), "http://localhost:8000/mcp/");
    assert_eq!((second.body(), second.header("mcp-name")), (first.body(), Some("a")));
    driver.json(&second, 200, &result(&second, text("A")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));

    driver.tool("a", json!({}));
    let mut sent = driver.one();
    for _ in 0..5 {
        driver.respond(&sent, 308, &[("location", "/mcp")], "");
        sent = driver.one();
    }
    driver.respond(&sent, 308, &[("location", "/mcp")], "");
    assert!(matches!(driver.event(), Seen::Failed(_, CallError::Http { status: 308, .. })));

    for (status, location) in [(307, "https://evil.example/mcp"), (302, "/mcp/"), (307, "")] {
        driver.tool("a", json!({}));
        let sent = driver.one();
        driver.respond(&sent, status, &[("location", location)], "");
        if location.is_empty() {
            // The same place.
            driver.one();
            continue;
        }
        assert!(driver.sent().is_empty(), "{location}");
        assert!(matches!(driver.event(), Seen::Failed(_, CallError::Http { .. })), "{location}");
    }
}

#[test]
fn closing_ends_everything() {
    let mut driver = Driver::modern();
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.with(|client, now, out| client.close(now, out));
    assert_eq!(driver.closed, [sent.exchange]);
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::Closed) if failed == call));
    assert!(driver.client.is_closed());
    assert!(driver.sent().is_empty(), "there is no session to end");
}
