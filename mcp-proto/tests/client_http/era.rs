//! What a server speaks, by what it answers.

use mcp_proto::client::{CallError, Mode};
use mcp_proto::model::ProtocolVersion;
use serde_json::json;

use crate::driver::*;

fn fresh() -> (Driver, Sent) {
    let mut driver = Driver::new(config().build(), settings());
    let probe = driver.one();
    assert_eq!((probe.method(), &*probe.rpc()), ("POST", "server/discover"));
    assert_eq!(probe.header("mcp-method"), Some("server/discover"));
    assert_eq!(probe.header("mcp-protocol-version"), Some("2026-07-28"));
    (driver, probe)
}

fn verdict(driver: &Driver) -> Option<&'static str> {
    driver.client.verdict().map(|verdict| verdict.version().as_str())
}

#[test]
fn a_modern_server_answers() {
    let (mut driver, probe) = fresh();
    let call = driver.tool("add", json!({}));
    assert!(driver.sent().is_empty(), "it waits");
    driver.json(&probe, 200, &discovered(&probe));
    assert!(matches!(driver.event(), Seen::Ready));
    assert_eq!(verdict(&driver), Some("2026-07-28"));
    let sent = driver.one();
    assert_eq!((&*sent.rpc(), sent.header("mcp-name")), ("tools/call", Some("add")));
    driver.json(&sent, 200, &result(&sent, text("3")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
}

/// C-VER-01: request-metadata of the official suite.
#[test]
fn an_unsupported_version_is_tried_with_one_that_both_have() {
    let (mut driver, probe) = fresh();
    let data = json!({"supported": ["2025-11-25"], "requested": "2026-07-28"});
    driver.json(&probe, 400, &error(&probe, -32022, Some(data)));
    let init = driver.one();
    assert_eq!(init.rpc(), "initialize");
    assert_eq!(init.body()["params"]["protocolVersion"], "2025-11-25");
}

/// A server that knows the era and refuses something else is modern.
#[test]
fn other_modern_errors_are_modern() {
    for (status, code) in [(400, -32020), (400, -32021), (404, -32601)] {
        let (mut driver, probe) = fresh();
        driver.json(&probe, status, &error(&probe, code, None));
        let events = driver.events();
        assert!(matches!(events[..], [Seen::Ready]), "{code}: {events:?}");
        assert_eq!(verdict(&driver), Some("2026-07-28"), "{code}");
        assert!(driver.sent().is_empty());
    }
}

/// C-COMPAT-05
#[test]
fn what_is_refused_otherwise_is_tried_with_a_handshake() {
    let plain: &[(u16, &str)] = &[
        (400, ""),
        (400, "Bad Request: No valid session ID provided"),
        (404, "<html>not found</html>"),
        (405, ""),
        (406, "no"),
        (415, "no"),
        (422, "{}"),
    ];
    for (status, body) in plain {
        let (mut driver, probe) = fresh();
        driver.respond(&probe, *status, &[("content-type", "text/html")], body);
        assert_eq!(driver.one().rpc(), "initialize", "{status} {body}");
    }
    for (status, code) in [(400, -32600), (400, -32000), (200, -32601), (200, -32602), (404, -32001)] {
        let (mut driver, probe) = fresh();
        driver.json(&probe, status, &error(&probe, code, None));
        assert_eq!(driver.one().rpc(), "initialize", "{status} {code}");
    }
    // A lax legacy server answers whatever it is asked.
    let (mut driver, probe) = fresh();
    driver.json(&probe, 200, &json!({"jsonrpc": "2.0", "id": probe.id(), "result": {}}));
    assert_eq!(driver.one().rpc(), "initialize");
}

#[test]
fn a_legacy_server_is_shaken_hands_with() {
    let (mut driver, probe) = fresh();
    driver.status(&probe, 400);
    let stream = driver.shake_hands("2025-11-25", "s-1");
    assert_eq!(stream.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(stream.header("accept"), Some("text/event-stream"));
    assert_eq!(verdict(&driver), Some("2025-11-25"));
}

/// What is in front of a server, or out of order, is no evidence.
#[test]
fn some_answers_say_nothing() {
    for status in [403, 408, 429, 500, 502, 503] {
        let (mut driver, probe) = fresh();
        let call = driver.tool("t", json!({}));
        driver.respond(&probe, status, &[("content-type", "text/plain")], "busy");
        assert!(driver.sent().is_empty(), "{status}");
        let events = driver.events();
        assert!(
            matches!(&events[..], [Seen::Unusable(CallError::Http { status: found, detail }), Seen::Failed(failed, _)]
                if *found == status && detail == "busy" && *failed == call),
            "{status}: {events:?}"
        );
        assert_eq!(verdict(&driver), None);
    }
    let (mut driver, probe) = fresh();
    driver.lost(&probe);
    assert!(driver.sent().is_empty());
    assert!(matches!(driver.event(), Seen::Unusable(CallError::Lost(_))));
    let (mut driver, _) = fresh();
    driver.pass(std::time::Duration::from_secs(59));
    assert!(driver.sent().is_empty() && driver.events().is_empty());
    driver.pass(std::time::Duration::from_secs(1));
    assert!(driver.sent().is_empty());
    assert!(matches!(driver.event(), Seen::Unusable(CallError::TimedOut)));
    let (mut driver, probe) = fresh();
    driver.respond(&probe, 401, &[("www-authenticate", "Bearer")], "");
    assert!(driver.sent().is_empty());
    assert!(matches!(driver.event(), Seen::Unusable(CallError::Unauthorized(_))));
}

/// LC-COMPAT-01, LC-COMPAT-02, LC-SSE-01: 2024-11-05 over two URLs.
#[test]
fn the_oldest_transport_is_found() {
    for status in [400, 404, 405] {
        let (mut driver, probe) = fresh();
        driver.status(&probe, 405);
        let init = driver.one();
        driver.status(&init, status);
        let stream = driver.one();
        assert_eq!((stream.method(), stream.request.url.as_str()), ("GET", URL));
        driver.sse(&stream);
        let call = driver.tool("add", json!({}));
        assert!(driver.sent().is_empty());
        driver.body(&stream, "event: endpoint\ndata: /messages?session=7\n\n");
        let init = driver.one();
        assert_eq!(init.request.url.as_str(), "http://localhost:8000/messages?session=7");
        assert_eq!(init.rpc(), "initialize");
        driver.respond(&init, 202, &[("content-type", "text/plain")], "Accepted");
        driver.body(&stream, format!("event: message\ndata: {}\n\n", handshake(&init, "2024-11-05")));
        let note = driver.one();
        assert_eq!(note.rpc(), "notifications/initialized");
        assert_eq!(note.header("mcp-protocol-version"), None);
        assert_eq!(note.request.url.as_str(), "http://localhost:8000/messages?session=7");
        assert!(matches!(driver.event(), Seen::Ready));
        driver.status(&note, 202);
        let sent = driver.one();
        assert_eq!(sent.rpc(), "tools/call");
        driver.status(&sent, 200);
        assert!(driver.events().is_empty(), "the answer comes on the stream");
        driver.event_of(&stream, &result(&sent, text("3")));
        assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
        assert_eq!(verdict(&driver), Some("2024-11-05"));
        // Without the stream there is no connection.
        let call = driver.tool("add", json!({}));
        driver.end(&stream);
        let events = driver.events();
        assert!(
            matches!(&events[..], [Seen::Failed(failed, CallError::Closed)] if *failed == call),
            "{events:?}"
        );
        // Another is begun after a while, and again if the server is not there yet.
        let call = driver.tool("add", json!({}));
        assert!(driver.sent().is_empty());
        driver.pass(std::time::Duration::from_secs(1));
        let init = driver.one();
        driver.lost(&init);
        assert!(driver.events().is_empty());
        driver.pass(std::time::Duration::from_secs(2));
        let init = driver.one();
        assert_eq!((&*init.rpc(), init.request.url.as_str()), ("initialize", URL));
        for wait in [4, 8, 16] {
            let init = if wait == 4 { init.clone() } else { driver.one() };
            driver.lost(&init);
            driver.pass(std::time::Duration::from_secs(wait));
        }
        // Not for ever.
        let init = driver.one();
        driver.lost(&init);
        let events = driver.events();
        assert!(
            matches!(&events[..], [Seen::Unusable(CallError::Lost(_)), Seen::Failed(failed, _)] if *failed == call),
            "{events:?}"
        );
        driver.pass(std::time::Duration::from_secs(3600));
        assert!(driver.sent().is_empty());
    }
}

/// C-COMPAT-01: a modern verdict that does not hold any more, to a server that says so as a message.
#[test]
fn what_was_remembered_is_asked_again_if_it_is_refused() {
    for (status, code) in [(400, -32600), (400, -32000), (400, -32601), (404, -32001)] {
        let mut driver = Driver::modern();
        let call = driver.tool("a", json!({}));
        let sent = driver.one();
        driver.json(&sent, status, &error(&sent, code, None));
        let probe = driver.one();
        assert_eq!(probe.rpc(), "server/discover", "{status} {code}");
        driver.status(&probe, 400);
        driver.shake_hands("2025-11-25", "s-1");
        let again = driver.one();
        assert_eq!((&*again.rpc(), again.header("mcp-session-id")), ("tools/call", Some("s-1")));
        driver.json(&again, 200, &result(&again, text("A")));
        assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
        // It was right: asked once, and the call is refused as it is.
        let mut driver = Driver::modern();
        let call = driver.tool("a", json!({}));
        let sent = driver.one();
        driver.json(&sent, status, &error(&sent, code, None));
        let probe = driver.one();
        driver.json(&probe, 200, &discovered(&probe));
        assert!(driver.sent().is_empty(), "it may have run");
        let events = driver.events();
        assert!(
            matches!(&events[..], [Seen::Ready, Seen::Failed(failed, CallError::Rpc(why))]
                if *failed == call && why.code == code),
            "{events:?}"
        );
    }
}

#[test]
fn an_endpoint_elsewhere_is_refused() {
    for endpoint in
        ["https://evil.example/messages", "//evil.example/", "http://localhost:8001/", "javascript:x"]
    {
        let (mut driver, probe) = fresh();
        driver.status(&probe, 404);
        let init = driver.one();
        driver.status(&init, 404);
        let stream = driver.one();
        driver.sse(&stream);
        driver.body(&stream, format!("event: endpoint\ndata: {endpoint}\n\n"));
        assert!(driver.sent().is_empty(), "{endpoint}");
        assert!(matches!(driver.event(), Seen::Unusable(CallError::Malformed(_))), "{endpoint}");
        assert!(driver.closed.contains(&stream.exchange));
    }
}

#[test]
fn a_page_is_no_server_of_any_age() {
    let (mut driver, probe) = fresh();
    driver.status(&probe, 404);
    let init = driver.one();
    driver.status(&init, 404);
    let stream = driver.one();
    driver.respond(&stream, 200, &[("content-type", "text/html")], "<html>");
    assert!(matches!(driver.event(), Seen::Unusable(CallError::Http { status: 404, .. })));
    assert!(driver.sent().is_empty());
}

/// The deadline of the handshake covers the stream that says nothing.
#[test]
fn a_stream_that_says_nothing_is_not_waited_for() {
    let (mut driver, probe) = fresh();
    driver.status(&probe, 404);
    let init = driver.one();
    driver.status(&init, 404);
    let stream = driver.one();
    driver.sse(&stream);
    driver.pass(std::time::Duration::from_secs(61));
    assert!(matches!(driver.event(), Seen::Unusable(CallError::TimedOut)));
    assert!(driver.closed.contains(&stream.exchange));
}

#[test]
fn modes_are_kept_to() {
    let mut driver = Driver::new(config().mode(Mode::Legacy).build(), settings());
    assert_eq!(driver.one().rpc(), "initialize");
    let mut driver = Driver::new(config().mode(Mode::Modern).build(), settings());
    let probe = driver.one();
    driver.status(&probe, 404);
    assert!(driver.sent().is_empty());
    assert!(matches!(driver.event(), Seen::Unusable(CallError::NotModern)));
    let newer = [ProtocolVersion::V2026_07_28, ProtocolVersion::V2025_11_25];
    let mut driver = Driver::new(config().versions(newer).build(), settings());
    let probe = driver.one();
    driver.status(&probe, 404);
    let init = driver.one();
    driver.status(&init, 404);
    assert!(driver.sent().is_empty(), "2024-11-05 is not spoken");
    assert!(matches!(driver.event(), Seen::Unusable(CallError::Http { status: 404, .. })));
}

/// C-COMPAT-01: what was remembered is tried first, and asked again when it does not hold.
#[test]
fn a_verdict_that_does_not_hold_is_found_again() {
    let mut driver = Driver::modern();
    let call = driver.tool("add", json!({}));
    let sent = driver.one();
    driver.status(&sent, 400);
    let probe = driver.one();
    assert_eq!(probe.rpc(), "server/discover");
    driver.status(&probe, 400);
    driver.shake_hands("2025-06-18", "s-9");
    let again = driver.one();
    assert_eq!(again.rpc(), "tools/call");
    assert_eq!(again.header("mcp-session-id"), Some("s-9"));
    assert_eq!(again.header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(again.header("mcp-method"), None);
    driver.json(&again, 200, &result(&again, text("3")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));

    // The other way round: a server that has become modern.
    let assumed = mcp_proto::client::Verdict::new(ProtocolVersion::V2025_11_25);
    let mut driver = Driver::new(config().assume(assumed).build(), settings());
    let init = driver.one();
    driver.json(&init, 400, &error(&init, -32020, None));
    assert_eq!(driver.one().rpc(), "server/discover");
}
