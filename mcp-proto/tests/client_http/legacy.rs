//! 2025-03-26 to 2025-11-25: sessions, streams that are taken up again, requests of the server.

use std::time::Duration;

use mcp_proto::client::http::Lost;
use mcp_proto::client::{CallError, CallOptions, ViolationKind, request};
use mcp_proto::model::{LoggingLevel, SubscriptionFilter};
use serde_json::json;

use crate::driver::*;

const REVISIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// LC-SESS-02, LC-VER-01, LC-LIFE-02, LC-HTTP-03
#[test]
fn every_request_names_session_and_version() {
    for version in REVISIONS {
        let (mut driver, stream) = Driver::legacy(version);
        let named = (version != "2025-03-26").then_some(version);
        assert_eq!(stream.header("mcp-protocol-version"), named);
        assert_eq!(stream.header("last-event-id"), None);
        let call = driver.tool("add", json!({}));
        let sent = driver.one();
        assert_eq!(sent.header("mcp-session-id"), Some("s-1"));
        assert_eq!(sent.header("mcp-protocol-version"), named);
        assert_eq!(sent.header("mcp-method"), None);
        assert_eq!(sent.header("accept"), Some("application/json, text/event-stream"));
        driver.json(&sent, 200, &result(&sent, text("3")));
        assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
    }
}

/// A server may have no sessions.
#[test]
fn without_an_id_there_is_no_session() {
    let verdict = mcp_proto::client::Verdict::new(mcp_proto::model::ProtocolVersion::V2025_11_25);
    let mut driver = Driver::new(config().assume(verdict).build(), settings());
    let init = driver.one();
    driver.json(&init, 200, &handshake(&init, "2025-11-25"));
    let note = driver.one();
    assert_eq!(note.header("mcp-session-id"), None);
    assert_eq!(note.header("mcp-protocol-version"), Some("2025-11-25"));
    driver.status(&note, 202);
    let stream = driver.one();
    driver.status(&stream, 405);
    driver.events();
    // H04: no loop of handshakes.
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.status(&sent, 404);
    assert!(driver.sent().is_empty());
    assert!(matches!(driver.event(), Seen::Failed(f, CallError::Http { status: 404, .. }) if f == call));
    driver.with(|client, now, out| client.close(now, out));
    assert!(driver.sent().is_empty() && driver.client.is_closed());
}

/// A call does not overtake `notifications/initialized`, nor the stream on which the server may ask.
#[test]
fn calls_wait_for_the_beginning_of_the_session() {
    for (streams, wait) in [(true, 0), (false, 250)] {
        let verdict = mcp_proto::client::Verdict::new(mcp_proto::model::ProtocolVersion::V2025_11_25);
        let mut driver = Driver::new(config().assume(verdict).build(), settings());
        driver.tool("a", json!({}));
        let init = driver.one();
        driver.json_with(&init, 200, &[("mcp-session-id", "s")], &handshake(&init, "2025-11-25"));
        let note = driver.one();
        assert_eq!(note.rpc(), "notifications/initialized");
        driver.pass(Duration::from_secs(1));
        assert!(driver.sent().is_empty());
        driver.status(&note, 202);
        let stream = driver.one();
        assert_eq!(stream.method(), "GET");
        if streams {
            driver.sse(&stream);
        } else {
            driver.pass(millis(wait - 1));
            assert!(driver.sent().is_empty());
            driver.pass(millis(1));
        }
        assert_eq!(driver.one().rpc(), "tools/call");
    }
}

/// H03
#[test]
fn acknowledgments_may_look_as_they_like() {
    for (status, headers, body) in [
        (202, &[][..], ""),
        (202, &[("content-type", "text/plain")], "Accepted"),
        (200, &[], ""),
        (200, &[("content-type", "application/json")], ""),
        (200, &[("content-type", "text/event-stream")], ": hello\n\n"),
        (204, &[], ""),
    ] {
        let (mut driver, stream) = Driver::legacy("2025-11-25");
        driver.event_of(&stream, &json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
        let pong = driver.one();
        assert_eq!(pong.body(), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        assert_eq!(pong.header("mcp-session-id"), Some("s-1"));
        driver.respond(&pong, status, headers, body);
        assert!(driver.events().is_empty(), "{status}");
        driver.tool("a", json!({}));
        let sent = driver.one();
        driver.json(&sent, 200, &result(&sent, text("A")));
        assert!(matches!(driver.event(), Seen::Complete(..)));
    }
    for status in [400, 404, 500] {
        let (mut driver, stream) = Driver::legacy("2025-11-25");
        driver.event_of(&stream, &json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
        let pong = driver.one();
        driver.respond(&pong, status, &[], "no");
        assert!(driver.sent().is_empty(), "no new session because of that");
        assert!(matches!(driver.event(), Seen::Violation(v) if v.kind == ViolationKind::Refused));
    }
}

/// H05
#[test]
fn a_stream_that_is_none_is_not_asked_for_again() {
    for (status, kind) in [
        (405, ""),
        (404, ""),
        (406, ""),
        (400, ""),
        (200, "text/plain"),
        (200, "application/json"),
        (204, ""),
    ] {
        let verdict = mcp_proto::client::Verdict::new(mcp_proto::model::ProtocolVersion::V2025_11_25);
        let mut driver = Driver::new(config().assume(verdict).build(), settings());
        let init = driver.one();
        driver.json_with(&init, 200, &[("mcp-session-id", "s")], &handshake(&init, "2025-11-25"));
        let note = driver.one();
        driver.status(&note, 202);
        let stream = driver.one();
        driver.respond(&stream, status, &[("content-type", kind)], "hello");
        assert!(matches!(driver.event(), Seen::Ready));
        driver.pass(Duration::from_secs(3600));
        assert!(driver.sent().is_empty(), "{status} {kind}");
        driver.tool("a", json!({}));
        let sent = driver.one();
        driver.json(&sent, 200, &result(&sent, text("A")));
        assert!(matches!(driver.event(), Seen::Complete(..)), "{status} {kind}");
    }
}

/// H05, LC-HTTP-01, LC-HTTP-02, LC-HTTP-04
#[test]
fn the_stream_of_a_session_is_opened_again() {
    let (mut driver, mut stream) = Driver::legacy("2025-11-25");
    let mut count = 0;
    loop {
        driver.end(&stream);
        driver.pass(Duration::from_secs(31));
        let Some(next) = driver.sent().pop() else { break };
        assert_eq!((next.method(), next.header("mcp-session-id")), ("GET", Some("s-1")));
        count += 1;
        assert!(count < 100, "it is bounded");
        stream = next;
        driver.sse(&stream);
    }
    assert_eq!(count, 5);

    let (mut driver, mut stream) = Driver::legacy("2025-11-25");
    for event in 0..50 {
        driver.body(&stream, format!("id: e-{event}\nretry: 700\ndata:\n\n"));
        driver.end(&stream);
        driver.pass(millis(699));
        assert!(driver.sent().is_empty());
        driver.pass(millis(1));
        stream = driver.one();
        assert_eq!(stream.header("last-event-id"), Some(&*format!("e-{event}")));
        driver.sse(&stream);
    }
    // A server that is out of order for a while.
    driver.finish(&stream, Err(Lost("reset".into())));
    driver.pass(Duration::from_secs(2));
    let stream = driver.one();
    driver.status(&stream, 503);
    driver.pass(Duration::from_secs(4));
    let stream = driver.one();
    driver.lost(&stream);
    driver.pass(Duration::from_secs(8));
    assert_eq!(driver.one().header("last-event-id"), Some("e-49"));
}

/// sse-retry of the official suite.
#[test]
fn an_answer_may_come_on_the_second_response() {
    let (mut driver, _stream) = Driver::legacy("2025-11-25");
    let call = driver.tool("test_reconnection", json!({}));
    let sent = driver.one();
    driver.sse(&sent);
    driver.body(&sent, "id: event-1\nretry: 500\ndata: \n\n");
    driver.pass(millis(50));
    driver.end(&sent);
    driver.pass(millis(499));
    assert!(driver.sent().is_empty() && driver.events().is_empty());
    driver.pass(millis(1));
    let again = driver.one();
    assert_eq!((again.method(), again.header("last-event-id")), ("GET", Some("event-1")));
    assert_eq!(again.header("mcp-session-id"), Some("s-1"));
    driver.sse(&again);
    driver.event_of(&again, &result(&sent, text("done")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
    driver.end(&again);
    driver.pass(Duration::from_secs(60));
    assert!(driver.sent().is_empty() && driver.events().is_empty());
}

#[test]
fn a_broken_response_is_taken_up_if_it_can_be() {
    // Not without an id of an event: the call may have run.
    let (mut driver, _stream) = Driver::legacy("2025-06-18");
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.sse(&sent);
    driver.finish(&sent, Err(Lost("reset".into())));
    assert!(
        matches!(driver.event(), Seen::Failed(failed, CallError::Lost(why)) if failed == call && why == "reset")
    );
    // With one, as often as something new comes.
    let patient = CallOptions::default().timeout(None);
    let call = driver.call_with(&request::CallTool::new("a"), &patient);
    let sent = driver.one();
    driver.sse(&sent);
    driver.body(
        &sent,
        "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\nid: 2\ndata: half",
    );
    driver.events();
    driver.finish(&sent, Err(Lost("reset".into())));
    driver.pass(Duration::from_secs(1));
    let again = driver.one();
    assert_eq!(again.header("last-event-id"), Some("1"));
    driver.lost(&again);
    driver.pass(Duration::from_secs(2));
    let again = driver.one();
    // It is no answer from there.
    driver.sse(&again);
    driver.event_of(&again, &json!({"jsonrpc": "2.0", "id": 4711, "result": {}}));
    assert!(matches!(driver.event(), Seen::Violation(_)));
    driver.end(&again);
    let mut count = 0;
    loop {
        driver.pass(Duration::from_secs(31));
        let Some(again) = driver.sent().pop() else { break };
        count += 1;
        assert!(count < 100);
        driver.sse(&again);
        driver.end(&again);
    }
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::Lost(_)) if failed == call));
    // A server that does not know the stream any more.
    for status in [400, 404, 405, 200] {
        let (mut driver, _stream) = Driver::legacy("2025-11-25");
        let call = driver.tool("a", json!({}));
        let sent = driver.one();
        driver.sse(&sent);
        driver.body(&sent, "id: 1\nretry: 20\ndata:\n\n");
        driver.end(&sent);
        driver.pass(millis(20));
        let again = driver.one();
        driver.status(&again, status);
        assert!(
            matches!(driver.event(), Seen::Failed(failed, CallError::Lost(_)) if failed == call),
            "{status}"
        );
    }
}

/// A call that is given up while its stream waits is given up.
#[test]
fn what_waits_can_be_cancelled() {
    let (mut driver, _stream) = Driver::legacy("2025-11-25");
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.sse(&sent);
    driver.body(&sent, "id: 1\nretry: 500\ndata:\n\n");
    driver.end(&sent);
    assert!(driver.with(|client, now, out| client.cancel(call, None, now, out)));
    // LC-CANCEL-02
    let note = driver.one();
    assert_eq!(note.body()["params"], json!({"requestId": sent.id()}));
    driver.status(&note, 202);
    driver.pass(Duration::from_secs(60));
    assert!(driver.sent().is_empty() && driver.events().is_empty());
}

/// LC-CANCEL-02, LB-LIFE-05
#[test]
fn a_cancellation_is_a_message() {
    let (mut driver, _stream) = Driver::legacy("2025-11-25");
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.with(|client, now, out| client.cancel(call, Some("enough"), now, out));
    let note = driver.one();
    assert_eq!(note.rpc(), "notifications/cancelled");
    assert_eq!(note.body()["params"], json!({"requestId": sent.id(), "reason": "enough"}));
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.pass(Duration::from_secs(60));
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::TimedOut) if failed == call));
    assert_eq!(driver.one().body()["params"]["requestId"], sent.id());
}

/// H04, LC-SESS-03
#[test]
fn a_session_that_is_over_is_replaced_once() {
    let (mut driver, stream) = Driver::legacy("2025-11-25");
    let refused = driver.tool("a", json!({"n": 1}));
    let running = driver.tool("b", json!({}));
    let undecided = driver.tool("c", json!({}));
    let [a, b, c] = &driver.sent()[..] else { panic!() };
    driver.sse(b);
    driver.json(
        a,
        404,
        &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}}),
    );
    // What runs may never be answered now, and is not made again.
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::Lost(_)) if failed == running));
    assert!(driver.closed.contains(&stream.exchange) && driver.closed.contains(&b.exchange));
    // The other one is told the same: no second handshake.
    driver.status(c, 404);
    let new = driver.shake_hands("2025-11-25", "s-2");
    let sent = driver.sent();
    assert_eq!(sent.len(), 2, "{sent:#?}");
    for (sent, old, call) in [(&sent[0], a, refused), (&sent[1], c, undecided)] {
        assert_eq!(sent.header("mcp-session-id"), Some("s-2"));
        assert_eq!(sent.body()["params"]["name"], old.body()["params"]["name"]);
        assert!(sent.id() != old.id());
        driver.json(sent, 200, &result(sent, text("A")));
        assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
    }
    // The stream of the new session is another one.
    assert!(!driver.closed.contains(&new.exchange));

    // A server that never knows its sessions is not asked for ever.
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.status(&sent, 404);
    driver.shake_hands("2025-11-25", "s-3");
    let sent = driver.one();
    driver.status(&sent, 404);
    let events = driver.events();
    assert!(
        matches!(events[..], [Seen::Failed(failed, CallError::Http { status: 404, .. })] if failed == call)
    );
}

/// A redirect that comes after the session has ended leads into it all the same, and says nothing of the next one.
#[test]
fn a_redirected_call_belongs_to_the_session_that_it_names() {
    let (mut driver, _stream) = Driver::legacy("2025-11-25");
    let redirected = driver.tool("a", json!({}));
    let refused = driver.tool("b", json!({}));
    let [a, b] = &driver.sent()[..] else { panic!() };
    driver.status(b, 404);
    let init = driver.one();
    driver.respond(a, 307, &[("Location", "/mcp/")], "");
    let a = driver.one();
    assert_eq!(a.header("mcp-session-id"), Some("s-1"));
    driver.status(&a, 404);
    assert!(driver.sent().is_empty() && driver.events().is_empty());
    driver.json_with(&init, 200, &[("Mcp-Session-Id", "s-2")], &handshake(&init, "2025-11-25"));
    let note = driver.one();
    driver.status(&note, 202);
    let stream = driver.one();
    driver.sse(&stream);
    assert!(matches!(driver.event(), Seen::Ready));
    let sent = driver.sent();
    assert_eq!(sent.len(), 2, "{sent:#?}");
    for sent in &sent {
        assert_eq!(sent.header("mcp-session-id"), Some("s-2"));
        driver.json(sent, 200, &result(sent, text("A")));
    }
    let mut done: Vec<_> = driver
        .events()
        .into_iter()
        .map(|event| match event {
            Seen::Complete(done, _) => done,
            other => panic!("{other:?}"),
        })
        .collect();
    done.sort();
    assert_eq!(done, [redirected, refused]);
}

/// An answer that begins in a session that is over is not looked for in the next one.
#[test]
fn a_stream_is_not_taken_up_in_another_session() {
    let (mut driver, _stream) = Driver::legacy("2025-11-25");
    let late = driver.tool("a", json!({}));
    driver.tool("b", json!({}));
    let [a, b] = &driver.sent()[..] else { panic!() };
    driver.status(b, 404);
    driver.sse(a);
    driver.body(a, "id: 1\nretry: 20\ndata:\n\n");
    driver.shake_hands("2025-11-25", "s-2");
    assert_eq!(driver.one().body()["params"]["name"], "b");
    driver.end(a);
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::Lost(_)) if failed == late));
    driver.pass(millis(1000));
    assert!(driver.sent().is_empty());
}

/// LC-SESS-03: a stream that there was is not known any more, so the session is over.
#[test]
fn a_stream_that_is_not_found_any_more_ends_the_session() {
    let (mut driver, stream) = Driver::legacy("2025-11-25");
    let filter = SubscriptionFilter::new().resource("file:///a");
    let subscription =
        driver.with(|client, now, out| client.listen(filter, &CallOptions::default(), now, out).unwrap());
    let subscribe = driver.one();
    driver.json(&subscribe, 200, &result(&subscribe, json!({})));
    assert!(matches!(driver.event(), Seen::Acknowledged(id, _) if id == subscription));
    let running = driver.tool("b", json!({}));
    let undecided = driver.tool("c", json!({}));
    let [b, c] = &driver.sent()[..] else { panic!() };
    driver.sse(b);
    driver.end(&stream);
    driver.pass(Duration::from_secs(1));
    let again = driver.one();
    assert_eq!((again.method(), again.header("mcp-session-id")), ("GET", Some("s-1")));
    driver.status(&again, 404);
    // What runs is not made again, what the server has not said anything about may still be answered.
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::Lost(_)) if failed == running));
    let new = driver.shake_hands("2025-11-25", "s-2");
    let subscribe = driver.one();
    assert_eq!((&*subscribe.rpc(), subscribe.header("mcp-session-id")), ("resources/subscribe", Some("s-2")));
    driver.json(&subscribe, 200, &result(&subscribe, json!({})));
    assert!(matches!(driver.event(), Seen::Acknowledged(id, _) if id == subscription));
    driver.status(c, 404);
    let c = driver.one();
    assert_eq!(c.header("mcp-session-id"), Some("s-2"));
    driver.json(&c, 200, &result(&c, text("C")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == undecided));
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "file:///a"}});
    driver.event_of(&new, &changed);
    assert!(matches!(driver.event(), Seen::Changed(Some(id), _) if id == subscription));
}

/// LC-SESS-03: the same holds where the stream of an answer is taken up again.
#[test]
fn an_answer_that_is_not_found_any_more_ends_the_session() {
    let (mut driver, stream) = Driver::legacy("2025-11-25");
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.sse(&sent);
    driver.body(&sent, "id: 1\nretry: 20\ndata:\n\n");
    driver.end(&sent);
    driver.pass(millis(20));
    let again = driver.one();
    driver.status(&again, 404);
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::Lost(_)) if failed == call));
    assert!(driver.closed.contains(&stream.exchange));
    driver.shake_hands("2025-11-25", "s-2");
    assert!(driver.sent().is_empty(), "it may have run");
}

/// A server whose streams end at once and are never found again is not asked for sessions for ever.
#[test]
fn sessions_that_end_with_their_streams_are_bounded() {
    let (mut driver, mut stream) = Driver::legacy("2025-11-25");
    let mut sessions = 1;
    loop {
        driver.body(&stream, "retry: 0\n\n");
        driver.end(&stream);
        driver.pass(Duration::from_secs(1));
        let again = driver.one();
        driver.status(&again, 404);
        if matches!(&driver.events()[..], [Seen::StreamLost(CallError::Http { status: 404, .. })]) {
            break;
        }
        sessions += 1;
        assert!(sessions < 100);
        stream = driver.shake_hands("2025-11-25", &format!("s-{sessions}"));
    }
    assert_eq!(sessions, 6);
    assert!(driver.sent().is_empty());
    // A session that lasts begins the count anew.
    driver.pass(Duration::from_secs(30));
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.status(&sent, 404);
    let stream = driver.shake_hands("2025-11-25", "t");
    let sent = driver.one();
    driver.json(&sent, 200, &result(&sent, text("A")));
    let events = driver.events();
    assert!(matches!(&events[..], [Seen::Complete(done, _)] if *done == call), "{events:?}");
    driver.pass(Duration::from_secs(30));
    driver.end(&stream);
    driver.pass(Duration::from_secs(2));
    let again = driver.one();
    driver.status(&again, 404);
    driver.shake_hands("2025-11-25", "t-2");
}

/// Nor is one that does not know the session any more in which it is told what it is told in each: what to log, and which
/// resources are listened to.
#[test]
fn sessions_that_end_at_what_each_is_told_are_bounded() {
    for listens in [false, true] {
        let (mut driver, _stream) = Driver::legacy("2025-11-25");
        if listens {
            let filter = SubscriptionFilter::new().resource("file:///a");
            driver.with(|client, now, out| client.listen(filter, &CallOptions::default(), now, out).unwrap());
        } else {
            driver.call(&request::SetLevel::new(LoggingLevel::Info));
        }
        let sent = driver.one();
        driver.json(&sent, 200, &result(&sent, json!({})));
        driver.events();
        let call = driver.tool("a", json!({}));
        let sent = driver.one();
        driver.status(&sent, 404);
        let (mut sessions, mut events) = (1, Vec::new());
        for _ in 0..100 {
            for sent in driver.sent() {
                if driver.closed.contains(&sent.exchange) {
                    continue;
                }
                if sent.method() == "GET" {
                    driver.status(&sent, 405);
                    continue;
                }
                match &*sent.rpc() {
                    "initialize" => {
                        sessions += 1;
                        let session = format!("s-{sessions}");
                        let headers = [("Mcp-Session-Id", session.as_str())];
                        driver.json_with(&sent, 200, &headers, &handshake(&sent, "2025-11-25"));
                    }
                    "notifications/initialized" => driver.status(&sent, 202),
                    "logging/setLevel" | "resources/subscribe" => driver.status(&sent, 404),
                    _ => driver.json(&sent, 200, &result(&sent, text("A"))),
                }
            }
            events.extend(driver.events());
            driver.pass(millis(100));
        }
        assert_eq!(sessions, 7, "the one that was, one for the call, five for what each is told");
        assert!(driver.sent().is_empty());
        let ends =
            |event: &&Seen| matches!(event, Seen::Complete(done, _) | Seen::Failed(done, _) if *done == call);
        assert_eq!(events.iter().filter(ends).count(), 1, "{events:?}");
    }
}

/// A stream that is gone is no secret, and is tried again when the server takes a request.
#[test]
fn a_stream_that_is_gone_is_told_and_tried_again() {
    for status in [503, 400, 405, 200] {
        let (mut driver, stream) = Driver::legacy("2025-11-25");
        driver.end(&stream);
        let mut tries = 0;
        loop {
            driver.pass(Duration::from_secs(31));
            let Some(again) = driver.sent().pop() else { break };
            driver.status(&again, status);
            tries += 1;
        }
        assert_eq!(tries, if status == 503 { 5 } else { 1 });
        let event = driver.event();
        assert!(
            matches!(event, Seen::StreamLost(CallError::Http { status: why, .. }) if why == status),
            "{event:?}"
        );
        let answered = |driver: &mut Driver| {
            driver.tool("a", json!({}));
            let sent = driver.one();
            driver.json(&sent, 200, &result(&sent, text("A")));
            assert!(matches!(driver.events()[..], [Seen::Complete(..)]));
            driver.sent()
        };
        // Once in a while, and told once.
        for _ in 0..3 {
            driver.pass(Duration::from_secs(30));
            let again = answered(&mut driver);
            let [again] = &again[..] else { panic!("{again:?}") };
            assert_eq!((again.method(), again.header("mcp-session-id")), ("GET", Some("s-1")));
            driver.status(again, 405);
            driver.pass(Duration::from_secs(29));
            assert!(answered(&mut driver).is_empty() && driver.events().is_empty());
        }
        driver.pass(Duration::from_secs(30));
        let [again] = &answered(&mut driver)[..] else { panic!() };
        driver.pass(Duration::from_secs(30));
        assert!(answered(&mut driver).is_empty(), "it is on its way");
        driver.sse(again);
        assert!(matches!(driver.event(), Seen::StreamRestored));
        driver.pass(Duration::from_secs(60));
        assert!(answered(&mut driver).is_empty(), "it is there");
    }
}

/// An answer with status 404 is one, if it is about the call and not about the session.
#[test]
fn an_error_of_the_call_is_its_answer() {
    for (status, code) in [
        (404, -32601),
        (404, -32602),
        (404, -32002),
        (404, -32603),
        (404, -32021),
        (400, -32600),
        (400, -32000),
    ] {
        let (mut driver, _stream) = Driver::legacy("2025-11-25");
        let call = driver.tool("a", json!({}));
        let sent = driver.one();
        driver.json(&sent, status, &error(&sent, code, None));
        assert!(driver.sent().is_empty(), "{status} {code}");
        assert!(
            matches!(driver.event(), Seen::Failed(failed, CallError::Rpc(e)) if failed == call && e.code == code)
        );
    }
    let (mut driver, _stream) = Driver::legacy("2025-11-25");
    driver.tool("a", json!({}));
    let sent = driver.one();
    driver.json(&sent, 404, &error(&sent, -32600, None));
    assert_eq!(driver.one().rpc(), "initialize");
    // One that names no call is about the session, whatever its code.
    let (mut driver, _stream) = Driver::legacy("2025-11-25");
    driver.tool("a", json!({}));
    let sent = driver.one();
    driver.json(
        &sent,
        404,
        &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32601, "message": "x"}}),
    );
    assert_eq!(driver.one().rpc(), "initialize");
}

/// Requests of the server on any stream are answered by POST.
#[test]
fn the_server_asks_on_any_stream() {
    let (mut driver, stream) = Driver::legacy("2025-11-25");
    driver.tool("a", json!({}));
    let sent = driver.one();
    driver.sse(&sent);
    let ask = |id: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {
            "message": "Sure?", "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}}}})
    };
    for (on, id) in [(&sent, "on-post"), (&stream, "on-get")] {
        driver.event_of(on, &ask(id));
        let Seen::Asked(asked) = driver.event() else { panic!() };
        assert!(driver.with(|client, now, out| client.respond(asked.ask, Ok(decline()), now, out)));
        let answer = driver.one();
        assert_eq!(answer.method(), "POST");
        assert_eq!(answer.header("mcp-session-id"), Some("s-1"));
        assert_eq!(answer.body()["id"], id);
        assert_eq!(answer.body()["result"]["action"], "decline");
        driver.status(&answer, 202);
    }
    driver.event_of(&sent, &result(&sent, text("A")));
    assert!(matches!(driver.event(), Seen::Complete(..)));
}

/// LC-SESS-04, Z04
#[test]
fn a_session_is_ended_and_not_waited_for() {
    for status in [200, 204, 404, 405, 500] {
        let (mut driver, stream) = Driver::legacy("2025-11-25");
        driver.with(|client, now, out| client.close(now, out));
        assert!(driver.closed.contains(&stream.exchange));
        let end = driver.one();
        assert_eq!((end.method(), end.header("mcp-session-id")), ("DELETE", Some("s-1")));
        assert_eq!(end.header("mcp-protocol-version"), Some("2025-11-25"));
        assert!(!driver.client.is_closed());
        driver.status(&end, status);
        assert!(driver.client.is_closed() && driver.events().is_empty(), "{status}");
    }
    let (mut driver, _stream) = Driver::legacy("2025-11-25");
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.with(|client, now, out| client.close(now, out));
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::Closed) if failed == call));
    let end = driver.one();
    driver.pass(Duration::from_secs(5));
    assert!(driver.client.is_closed());
    assert!(driver.closed.contains(&end.exchange) && driver.closed.contains(&sent.exchange));
    driver.with(|client, now, out| client.close(now, out));
    assert!(driver.sent().is_empty(), "it is over");
}

/// LC-BATCH-02
#[test]
fn arrays_are_taken_where_there_are_any() {
    for version in REVISIONS {
        let (mut driver, stream) = Driver::legacy(version);
        let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        driver.event_of(&stream, &json!([note, note]));
        let event = driver.event();
        match version {
            "2025-03-26" => assert!(matches!(event, Seen::Batch(2))),
            _ => assert!(matches!(event, Seen::Violation(v) if v.kind == ViolationKind::Batch)),
        }
    }
}

/// LB-BATCH-01
#[test]
fn an_array_may_be_the_answer_of_a_post() {
    let (mut driver, _stream) = Driver::legacy("2025-03-26");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.json(&sent, 200, &json!([note, result(&sent, text("one")), note]));
    let events = driver.events();
    assert!(
        matches!(&events[..], [Seen::Batch(3), Seen::Changed(..), Seen::Complete(done, value), Seen::Changed(..)]
            if *done == call && *value == text("one")),
        "{events:#?}"
    );
    assert_eq!(driver.client.open_calls(), 0);
}

/// LB-BATCH-01: what is expected is known to be missing once the last message was taken.
#[test]
fn an_array_without_the_answer_fails_the_call() {
    let (mut driver, _stream) = Driver::legacy("2025-03-26");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    driver.json(&sent, 200, &json!([note, 7]));
    let events = driver.events();
    assert!(
        matches!(events.last(), Some(Seen::Failed(failed, CallError::Http { status: 200, .. })) if *failed == call),
        "{events:#?}"
    );
    assert_eq!(driver.client.open_calls(), 0);
}
