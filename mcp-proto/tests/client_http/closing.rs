//! How a client ends: what the server was told is not taken back, and nothing is waited for without an end.

use std::time::Duration;

use mcp_proto::client::{CallOptions, Mode};
use mcp_proto::model::SubscriptionFilter;
use serde_json::json;

use crate::driver::*;

/// The default of `Settings::linger`.
const LINGER: Duration = Duration::from_secs(5);
const BEFORE: Duration = Duration::from_millis(4999);

/// A session whose subscription was just given up: `resources/unsubscribe` is on its way.
fn unsubscribing() -> (Driver, Sent, Sent) {
    let (mut driver, stream) = Driver::legacy("2025-11-25");
    driver.events();
    let filter = SubscriptionFilter::new().resource("a:1");
    let id =
        driver.with(|client, now, out| client.listen(filter, &CallOptions::default(), now, out).unwrap());
    let sent = driver.one();
    driver.json(&sent, 200, &result(&sent, json!({})));
    assert!(matches!(driver.event(), Seen::Acknowledged(..)));
    driver.with(|client, now, out| client.cancel(id, None, now, out));
    let sent = driver.one();
    assert_eq!(sent.rpc(), "resources/unsubscribe");
    (driver, stream, sent)
}

fn close(driver: &mut Driver) {
    driver.with(|client, now, out| client.close(now, out));
}

/// LC-SESS-04: the session ends after what was said in it.
#[test]
fn what_the_server_was_told_gets_there() {
    let (mut driver, stream, sent) = unsubscribing();
    close(&mut driver);
    assert_eq!(driver.closed, [stream.exchange]);
    assert!(driver.sent().is_empty() && !driver.client.is_closed());
    driver.json(&sent, 200, &result(&sent, json!({})));
    let end = driver.one();
    assert_eq!((end.method(), end.header("mcp-session-id")), ("DELETE", Some("s-1")));
    driver.status(&end, 204);
    assert!(driver.client.is_closed() && driver.events().is_empty());
    assert_eq!(driver.closed, [stream.exchange]);
}

/// So does the answer to a question of the server; that it is refused concerns nobody any more.
#[test]
fn answers_get_there() {
    for status in [202, 400, 401, 404] {
        let (mut driver, stream) = Driver::legacy("2025-06-18");
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {"message": "?",
            "requestedSchema": {"type": "object", "properties": {}}}});
        driver.event_of(&stream, &ask);
        let Seen::Asked(asked) = driver.event() else { panic!() };
        driver.with(|client, now, out| client.respond(asked.ask, Ok(decline()), now, out));
        let answer = driver.one();
        close(&mut driver);
        assert!(driver.sent().is_empty() && !driver.closed.contains(&answer.exchange));
        driver.status(&answer, status);
        assert_eq!(driver.one().method(), "DELETE", "{status}");
        assert!(driver.events().is_empty(), "{status}");
    }
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for() {
    let (mut driver, _stream, sent) = unsubscribing();
    close(&mut driver);
    driver.pass(BEFORE);
    assert!(driver.sent().is_empty() && !driver.closed.contains(&sent.exchange));
    driver.pass(LINGER - BEFORE);
    assert!(driver.closed.contains(&sent.exchange));
    let end = driver.one();
    assert_eq!(end.method(), "DELETE");
    // It may be told to go elsewhere: that takes no more time than another.
    driver.respond(&end, 307, &[("location", "/other")], "");
    assert_eq!(driver.one().request.url.as_str(), "http://localhost:8000/other");
    driver.pass(BEFORE);
    assert!(!driver.client.is_closed());
    driver.pass(LINGER - BEFORE);
    assert!(driver.client.is_closed() && driver.sent().is_empty() && driver.events().is_empty());
}

/// What was not sent yet is not sent any more.
#[test]
fn what_still_waits_is_dropped() {
    let verdict = mcp_proto::client::Verdict::new(mcp_proto::model::ProtocolVersion::V2025_11_25);
    let mut driver = Driver::new(config().assume(verdict).build(), settings());
    let init = driver.one();
    driver.json_with(&init, 200, &[("mcp-session-id", "s-1")], &handshake(&init, "2025-11-25"));
    let begins = driver.one();
    assert_eq!(begins.rpc(), "notifications/initialized");
    assert!(
        driver.with(|client, now, out| client.notify("notifications/x", now, out, |out| out.extend(b"{}")))
    );
    assert!(driver.sent().is_empty(), "it does not overtake");
    driver.events();
    close(&mut driver);
    assert!(driver.sent().is_empty() && driver.closed.is_empty());
    driver.status(&begins, 202);
    let end = driver.one();
    assert_eq!(end.method(), "DELETE");
    driver.lost(&end);
    assert!(driver.client.is_closed() && driver.events().is_empty());
}

/// 2024-11-05: the stream is the connection, so it ends last. What still comes on it means nothing.
#[test]
fn the_oldest_connection_ends_last() {
    let mut driver = Driver::new(config().mode(Mode::Legacy).capabilities(all()).build(), settings());
    let init = driver.one();
    driver.status(&init, 405);
    let stream = driver.one();
    driver.sse(&stream);
    driver.body(&stream, "event: endpoint\ndata: /messages\n\n");
    let init = driver.one();
    driver.status(&init, 202);
    driver.event_of(&stream, &handshake(&init, "2024-11-05"));
    let note = driver.one();
    driver.events();
    close(&mut driver);
    assert!(driver.sent().is_empty() && driver.closed.iter().all(|closed| *closed == init.exchange));
    driver.event_of(&stream, &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    driver.event_of(&stream, &json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
    driver.status(&note, 202);
    assert!(driver.closed.contains(&stream.exchange) && driver.client.is_closed());
    assert!(driver.sent().is_empty() && driver.events().is_empty());
}
