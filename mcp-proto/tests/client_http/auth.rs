//! Servers that ask for a token.

use std::time::Duration;

use mcp_proto::client::http::Token;
use mcp_proto::client::{CallError, request};
use serde_json::json;

use crate::driver::*;

const CHALLENGE: &str = "Bearer resource_metadata=\"http://localhost:8000/.well-known/oauth-protected-resource/mcp\", \
     scope=\"mcp:basic\"";

fn token(text: &str) -> Token {
    Token::bearer(text).unwrap()
}

fn refuse(driver: &mut Driver, sent: &Sent, status: u16, challenge: &str) {
    driver.respond(sent, status, &[("WWW-Authenticate", challenge)], "no");
}

#[test]
fn without_a_driver_that_gets_tokens_the_call_fails() {
    let mut driver = Driver::modern();
    let call = driver.tool("a", json!({}));
    let sent = driver.one();
    refuse(&mut driver, &sent, 401, CHALLENGE);
    let Seen::Failed(failed, CallError::Unauthorized(why)) = driver.event() else { panic!() };
    assert_eq!((failed, why.call, why.status), (call, Some(call), 401));
    let bearer = why.bearer().unwrap();
    assert_eq!(bearer.scope(), Some("mcp:basic"));
    assert_eq!(
        bearer.resource_metadata(),
        Some("http://localhost:8000/.well-known/oauth-protected-resource/mcp")
    );
    assert!(driver.sent().is_empty());
}

#[test]
fn with_a_token_it_is_sent_again() {
    let mut driver = Driver::new(config().build(), settings().gets_tokens(true));
    let call = driver.tool("a", json!({}));
    let probe = driver.one();
    assert_eq!(probe.header("authorization"), None);
    refuse(&mut driver, &probe, 401, CHALLENGE);
    let Seen::Unauthorized(why) = driver.event() else { panic!() };
    assert_eq!((why.call, why.status), (None, 401));
    // The user thinks, and nothing runs out meanwhile.
    driver.pass(Duration::from_secs(600));
    assert!(driver.sent().is_empty() && driver.events().is_empty());
    driver.with(|client, now, out| client.authorize(token("t-1"), now, out));
    let probe = driver.one();
    assert_eq!((&*probe.rpc(), probe.header("authorization")), ("server/discover", Some("Bearer t-1")));
    driver.json(&probe, 200, &discovered(&probe));
    assert!(matches!(driver.event(), Seen::Ready));
    let sent = driver.one();
    // A04: a token that allows too little.
    refuse(&mut driver, &sent, 403, "Bearer error=\"insufficient_scope\", scope=\"mcp:write\"");
    let Seen::Unauthorized(why) = driver.event() else { panic!() };
    assert!(why.is_insufficient_scope());
    assert_eq!((why.call, why.bearer().unwrap().scope()), (Some(call), Some("mcp:write")));
    driver.pass(Duration::from_secs(600));
    assert!(driver.sent().is_empty() && driver.events().is_empty());
    driver.with(|client, now, out| client.authorize(token("t-2"), now, out));
    let again = driver.one();
    assert_eq!(again.header("authorization"), Some("Bearer t-2"));
    assert_eq!((again.body(), again.header("mcp-name")), (sent.body(), Some("a")));
    driver.pass(Duration::from_secs(59));
    driver.json(&again, 200, &result(&again, text("A")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
}

/// B-CACHE-01: what was kept for one user is not for the next, unless it is for all.
#[test]
fn with_another_token_what_was_kept_is_asked_for_again() {
    let mut driver = Driver::modern();
    let ask = |driver: &mut Driver, uri: &'static str, scope: &str| {
        driver.call(&request::ReadResource::new(uri));
        let sent = driver.sent();
        for sent in &sent {
            let kept = json!({"contents": [], "ttlMs": 300_000, "cacheScope": scope});
            driver.json(sent, 200, &result(sent, kept));
        }
        assert!(matches!(driver.event(), Seen::Complete(..)));
        sent.len()
    };
    for (uri, scope) in [("a:own", "private"), ("a:all", "public")] {
        assert_eq!((ask(&mut driver, uri, scope), ask(&mut driver, uri, scope)), (1, 0), "{uri}");
    }
    driver.with(|client, now, out| client.authorize(token("t-2"), now, out));
    assert_eq!((ask(&mut driver, "a:own", "private"), ask(&mut driver, "a:all", "public")), (1, 0));
}

/// A04, A05: a server that always refuses is not asked for ever.
#[test]
fn tokens_are_asked_for_a_few_times() {
    for status in [401, 403] {
        let verdict = mcp_proto::client::Verdict::new(mcp_proto::model::ProtocolVersion::V2026_07_28);
        let mut driver = Driver::new(config().assume(verdict).build(), settings().gets_tokens(true));
        driver.events();
        let call = driver.tool("a", json!({}));
        for _ in 0..3 {
            let sent = driver.one();
            refuse(&mut driver, &sent, status, CHALLENGE);
            assert!(matches!(driver.event(), Seen::Unauthorized(_)));
            driver.with(|client, now, out| client.authorize(token("t"), now, out));
        }
        let sent = driver.one();
        refuse(&mut driver, &sent, status, CHALLENGE);
        assert!(matches!(driver.event(), Seen::Failed(failed, CallError::Unauthorized(_)) if failed == call));
        assert!(driver.sent().is_empty());
        // Another call begins anew.
        driver.tool("a", json!({}));
        let sent = driver.one();
        refuse(&mut driver, &sent, status, CHALLENGE);
        assert!(matches!(driver.event(), Seen::Unauthorized(_)));
    }
}

#[test]
fn one_question_for_all_that_wait() {
    let verdict = mcp_proto::client::Verdict::new(mcp_proto::model::ProtocolVersion::V2026_07_28);
    let mut driver = Driver::new(config().assume(verdict).build(), settings().gets_tokens(true));
    driver.events();
    let calls = [driver.tool("a", json!({})), driver.tool("b", json!({})), driver.tool("c", json!({}))];
    for sent in driver.sent() {
        refuse(&mut driver, &sent, 401, CHALLENGE);
    }
    assert!(matches!(driver.event(), Seen::Unauthorized(_)));
    assert!(driver.with(|client, now, out| client.cancel(calls[1], None, now, out)));
    driver.with(|client, now, out| client.decline(now, out));
    let events = driver.events();
    assert!(
        matches!(&events[..], [Seen::Failed(a, CallError::Unauthorized(_)), Seen::Failed(c, CallError::Unauthorized(_))]
            if *a == calls[0] && *c == calls[2]),
        "{events:?}"
    );
    driver.with(|client, now, out| client.authorize(token("late"), now, out));
    assert!(driver.sent().is_empty());
}

/// A 403 that asks for nothing is about something else: the origin, or a firewall.
#[test]
fn a_plain_403_is_no_question() {
    let verdict = mcp_proto::client::Verdict::new(mcp_proto::model::ProtocolVersion::V2026_07_28);
    let mut driver = Driver::new(config().assume(verdict).build(), settings().gets_tokens(true));
    driver.events();
    driver.tool("a", json!({}));
    let sent = driver.one();
    driver.respond(&sent, 403, &[], "Forbidden");
    assert!(
        matches!(driver.event(), Seen::Failed(_, CallError::Http { status: 403, detail }) if detail == "Forbidden")
    );
}

/// A05: also the stream of a session.
#[test]
fn a_stream_may_need_a_token_too() {
    let (mut driver, stream) =
        Driver::legacy_with("2025-11-25", settings().gets_tokens(true).token(token("old")));
    assert_eq!(stream.header("authorization"), Some("Bearer old"));
    driver.body(&stream, "id: e-1\nretry: 20\ndata:\n\n");
    driver.end(&stream);
    driver.pass(Duration::from_millis(20));
    let again = driver.one();
    refuse(&mut driver, &again, 401, CHALLENGE);
    assert!(matches!(driver.event(), Seen::Unauthorized(why) if why.call.is_none()));
    driver.with(|client, now, out| client.authorize(token("new"), now, out));
    let again = driver.one();
    assert_eq!((again.method(), again.header("authorization")), ("GET", Some("Bearer new")));
    assert_eq!(again.header("last-event-id"), Some("e-1"));
}

/// Keys of the caller go along, and a token goes before them.
#[test]
fn headers_of_the_caller_go_with_every_request() {
    let settings =
        settings().header("X-Api-Key", "k").unwrap().header("Authorization", "Basic eA==").unwrap();
    let (mut driver, stream) = Driver::legacy_with("2025-06-18", settings);
    assert_eq!((stream.header("x-api-key"), stream.header("authorization")), (Some("k"), Some("Basic eA==")));
    driver.with(|client, now, out| client.authorize(token("t"), now, out));
    driver.tool("a", json!({}));
    let sent = driver.one();
    assert_eq!((sent.header("x-api-key"), sent.header("authorization")), (Some("k"), Some("Bearer t")));
    assert_eq!(sent.request.headers.iter().filter(|(name, _)| name == "authorization").count(), 1);
}

/// What waits for a token while its session ends is not sent into that session any more: it has not run, and is sent in the
/// next one.
#[test]
fn what_waits_for_a_token_moves_to_the_next_session() {
    let (mut driver, _stream) = Driver::legacy_with("2025-11-25", settings().gets_tokens(true));
    let waiting = driver.tool("a", json!({}));
    let refused = driver.tool("b", json!({}));
    let [a, b] = &driver.sent()[..] else { panic!() };
    refuse(&mut driver, a, 401, CHALLENGE);
    assert!(matches!(driver.event(), Seen::Unauthorized(_)));
    driver.status(b, 404);
    driver.shake_hands("2025-11-25", "s-2");
    let sent = driver.sent();
    let [a, b] = &sent[..] else { panic!("{sent:#?}") };
    for sent in [a, b] {
        assert_eq!(sent.header("mcp-session-id"), Some("s-2"));
    }
    driver.json(b, 200, &result(b, text("B")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == refused));
    refuse(&mut driver, a, 401, CHALLENGE);
    assert!(matches!(driver.event(), Seen::Unauthorized(_)));
    driver.with(|client, now, out| client.authorize(token("t-1"), now, out));
    let a = driver.one();
    assert_eq!((a.header("mcp-session-id"), a.header("authorization")), (Some("s-2"), Some("Bearer t-1")));
    driver.json(&a, 200, &result(&a, text("A")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == waiting));
}

/// The stream of an answer that waits for a token: its call may have run, and is not made again.
#[test]
fn an_answer_that_waits_for_a_token_ends_with_the_session() {
    let (mut driver, _stream) = Driver::legacy_with("2025-11-25", settings().gets_tokens(true));
    let began = driver.tool("a", json!({}));
    let a = driver.one();
    driver.sse(&a);
    driver.body(&a, "id: 1\nretry: 20\ndata:\n\n");
    driver.end(&a);
    driver.pass(Duration::from_millis(20));
    let again = driver.one();
    refuse(&mut driver, &again, 401, CHALLENGE);
    assert!(matches!(driver.event(), Seen::Unauthorized(_)));
    driver.tool("b", json!({}));
    let b = driver.one();
    driver.status(&b, 404);
    assert!(matches!(driver.event(), Seen::Failed(failed, CallError::Lost(_)) if failed == began));
    driver.shake_hands("2025-11-25", "s-2");
    assert_eq!(driver.one().body()["params"]["name"], "b");
    driver.with(|client, now, out| client.authorize(token("t-1"), now, out));
    assert!(driver.sent().is_empty(), "it may have run");
}
