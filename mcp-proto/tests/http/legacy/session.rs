//! How a session begins and ends, and who may speak in it.

use std::time::Duration;

use mcp_proto::http::Settings;
use mcp_proto::limits::Limits;
use serde_json::json;

use super::{VERSIONS, answer, net, plain, text};
use crate::harness::{Net, Request, Session, call, initialize};
use crate::kit::Kit;

/// LS-SESS-01, LS-SESS-02, LS-LIFE-01: the handshake gives an id.
#[test]
fn a_handshake_begins_a_session() {
    for version in VERSIONS {
        let (mut net, _) = net();
        let one = net.session(version, json!({}));
        let two = net.session(version, json!({}));
        assert_ne!(one.id, two.id);
        assert!(one.id.len() >= 32 && one.id.bytes().all(|b| b.is_ascii_graphic()));
        assert_eq!(net.http.sessions_open(), 2);
        let (status, pong) = net.ask(&one.post(&plain(1, "ping")));
        assert_eq!((status, pong), (200, json!({"jsonrpc": "2.0", "id": 1, "result": {}})));
    }
}

/// V01, V02: what is not known is negotiated; `ping` before the handshake is over.
#[test]
fn v01_the_version_is_negotiated() {
    let (mut net, _) = net();
    for offered in ["2099-01-01", "2026-07-28", ""] {
        let (status, message) = net.ask(&Request::post(initialize(offered, json!({})).to_string()));
        assert_eq!((status, &message["result"]["protocolVersion"]), (200, &json!("2025-11-25")), "{offered}");
    }
    let bad = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let (status, message) = net.ask(&Request::post(bad.to_string()));
    assert_eq!((status, &message["error"]["code"], &message["id"]), (400, &json!(-32602), &json!(1)));
    assert_eq!(net.http.sessions_open(), 3);
    // The header of the handshake does not matter; a client that takes only events gets one.
    let request = Request::post(initialize("2025-11-25", json!({})).to_string())
        .with("MCP-Protocol-Version", "2099-01-01")
        .set("Accept", "text/event-stream");
    let got = net.send(&request);
    assert!(net.is_sse(got) && net.header(got, "mcp-session-id").is_some());
    assert_eq!(net.one(got)["result"]["protocolVersion"], "2025-11-25");
}

/// LS-SESS-03, LS-SESS-04, H04, LS-VER-02: who may speak in a session.
#[test]
fn h04_what_names_no_session() {
    let (mut net, kit) = net();
    let session = net.session("2025-11-25", json!({}));
    let list = plain(1, "tools/list");
    let no_session = Request::post(list.to_string());
    let (status, message) = net.ask(&no_session);
    assert_eq!((status, &message["id"]), (400, &json!(1)));
    for get in [Request::new("GET").with("Accept", "text/event-stream"), Request::new("DELETE")] {
        let got = net.send(&get);
        assert_eq!(net.status(got), 400);
    }
    let got = net.send(&Request::post(answer(&list, json!({})).to_string()));
    assert_eq!(net.status(got), 400);
    for id in ["0".repeat(32), "bad id".into(), session.id.to_uppercase() + "x"] {
        let unknown = Session { id, ..session.clone() };
        let (status, message) = net.ask(&unknown.post(&list));
        assert_eq!((status, &message["id"]), (404, &json!(1)));
        for request in [
            unknown.get(),
            unknown.delete(),
            unknown.resume("0-1"),
            unknown.post(&call(1, "wait", json!({}))),
        ] {
            let got = net.send(&request);
            assert_eq!(net.status(got), 404);
        }
    }
    assert_eq!(kit.began(), 0);
    let wrong = Session { version: Some("2099-01-01".into()), ..session.clone() };
    for request in [wrong.post(&list), wrong.get(), wrong.delete()] {
        let got = net.send(&request);
        assert_eq!(net.status(got), 400, "{request:?}");
    }
    // The header may be missing. [LS-VER-01]
    let bare = Session { version: None, ..session.clone() };
    assert_eq!(net.ask(&bare.post(&list)).0, 200);
    // The end.
    let got = net.send(&session.delete());
    assert_eq!((net.status(got), net.at(got).body.len()), (204, 0));
    for request in [session.post(&list), session.get(), session.delete()] {
        let got = net.send(&request);
        assert_eq!(net.status(got), 404);
    }
    assert_eq!(net.http.sessions_open(), 0);
}

/// DELETE ends streams and calls.
#[test]
fn the_end_of_a_session_ends_all_of_it() {
    let (mut net, kit) = net();
    let session = net.session("2025-11-25", json!({}));
    let get = net.send(&session.get());
    let undecided = net.send(&session.post(&call(1, "wait", json!({}))));
    let begun = net.send(&session.post(&call(2, "steps", json!({}))));
    let json = net.send(&session.post(&call(3, "wait", json!({}))).set("Accept", "application/json"));
    net.messages(get);
    net.messages(begun);
    assert_eq!(net.jobs(), 3);
    net.send(&session.delete());
    for got in [get, undecided, begun, json] {
        assert!(net.is_done(got));
    }
    // Who has heard nothing yet hears that the session is gone.
    assert_eq!((net.status(undecided), net.status(json)), (404, 404));
    assert!(net.messages(get).is_empty() && net.messages(begun).is_empty());
    assert_eq!((net.jobs(), kit.dropped()), (0, 2));
}

/// Sessions that nobody uses end; those that someone uses do not.
#[test]
fn idle_sessions_end() {
    let (mut net, kit) = net();
    let minute = Duration::from_secs(60);
    let idle = net.session("2025-11-25", json!({}));
    let reads = net.session("2025-11-25", json!({}));
    let runs = net.session("2025-11-25", json!({}));
    let get = net.send(&reads.get());
    let call = net.send(&runs.post(&call(1, "wait", json!({}))));
    for _ in 0..29 {
        net.pass(minute);
        net.sweep();
    }
    assert_eq!(net.http.sessions_open(), 3);
    net.pass(minute);
    net.sweep();
    assert_eq!(net.http.sessions_open(), 2);
    let got = net.send(&idle.post(&plain(1, "ping")));
    assert_eq!(net.status(got), 404);
    // What was in use until now is not idle for half an hour already.
    net.disconnect(get);
    kit.gate.open();
    net.settle();
    assert!(net.is_done(call));
    net.sweep();
    assert_eq!(net.http.sessions_open(), 2);
    net.pass(29 * minute);
    net.sweep();
    assert_eq!(net.ask(&reads.post(&plain(1, "ping"))).0, 200);
    net.pass(minute);
    net.sweep();
    assert_eq!(net.http.sessions_open(), 1);
}

/// Too many sessions: those idle longest make room, those in use do not.
#[test]
fn the_number_of_sessions_is_bounded() {
    let kit = Kit::default();
    let mut limits = Limits::default();
    limits.max_sessions = 3;
    let mut net = Net::new(&kit.service_with(limits));
    let oldest = net.session("2025-11-25", json!({}));
    let get = net.send(&oldest.get());
    net.pass(Duration::from_secs(1));
    let older = net.session("2025-11-25", json!({}));
    net.pass(Duration::from_secs(1));
    let newer = net.session("2025-11-25", json!({}));
    let fourth = net.session("2025-11-25", json!({}));
    assert_eq!(net.http.sessions_open(), 3);
    let got = net.send(&older.post(&plain(1, "ping")));
    assert_eq!(net.status(got), 404);
    assert!(!net.is_done(get));
    for session in [&newer, &fourth] {
        net.send(&session.post(&call(1, "wait", json!({}))));
    }
    let (status, message) = net.ask(&Request::post(initialize("2025-11-25", json!({})).to_string()));
    assert_eq!((status, &message["id"]), (503, &json!("init")));
    assert_eq!(net.http.sessions_open(), 3);
}

/// A graceful end: what waits for the GET stream is written, then it ends; calls go on, resumed or not.
#[test]
fn a_graceful_end() {
    let (mut net, kit) = net();
    let session = net.session("2025-11-25", json!({}));
    let get = net.send(&session.get());
    let post = net.send(&session.post(&call(1, "wait", json!({}))));
    let steps = net.send(&session.post(&call(2, "steps", json!({}))));
    let last = net.events(steps).last().unwrap().id.clone().unwrap();
    net.events(get);
    net.disconnect(steps);
    let steps = net.send(&session.resume(&last));
    net.at(get).paused = true;
    net.http.service().changes().tools();
    net.settle();
    net.http.close();
    net.at(get).resume();
    net.settle();
    assert_eq!(net.one(get)["method"], "notifications/tools/list_changed");
    assert!(net.is_done(get) && !net.is_done(post) && !net.is_done(steps));
    kit.gate.open();
    kit.after.open();
    net.settle();
    assert_eq!(text(&net.one(post)), "opened");
    assert_eq!(text(net.messages(steps).last().unwrap()), "stepped");
}

/// LB-LIFE, C and D: the version that was settled on counts; that a header names another that is served
/// changes nothing, unless the endpoint is strict.
#[test]
fn another_served_version_in_the_header_is_refused_if_strict() {
    let kit = Kit::default();
    for strict in [false, true] {
        let mut settings = Settings::default();
        settings.strict = strict;
        let mut net = Net::with(&kit.service(), settings);
        let refused = if strict { 400 } else { 200 };
        for version in VERSIONS {
            let session = net.session(version, json!({}));
            let ping = session.post(&plain(1, "ping"));
            let (status, _) = net.ask(&ping);
            assert_eq!(status, 200, "{version}");
            // 2025-03-26 has no such header.
            let refused = if version == "2025-03-26" { 200 } else { refused };
            let other = if version == "2025-06-18" { "2025-11-25" } else { "2025-06-18" };
            for (request, named) in [
                (ping.clone().set("MCP-Protocol-Version", other), other),
                (ping.clone().without("MCP-Protocol-Version"), "none"),
            ] {
                let (status, message) = net.ask(&request);
                assert_eq!(status, refused, "{version}: {named}");
                let told = message["error"]["message"].as_str().unwrap_or_default();
                assert!(refused == 200 || (told.contains(version) && told.contains(named)), "{told}");
            }
            for request in [session.get(), session.delete()] {
                let got = net.send(&request.set("MCP-Protocol-Version", other));
                let allowed = [200, 204, refused];
                assert!(allowed.contains(&net.status(got)) && (refused == 200 || net.status(got) == refused));
            }
            // What is not served is refused in any case. LS-VER-02
            let (status, _) = net.ask(&ping.set("MCP-Protocol-Version", "2099-01-01"));
            assert_eq!(status, 400);
        }
    }
}
