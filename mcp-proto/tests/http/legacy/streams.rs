//! Which message goes on which stream, and what becomes of it when that is cut.

use std::time::Duration;

use mcp_proto::http::{Events, Settings};
use serde_json::{Value, json};

use super::{VERSIONS, net, text, yes};
use crate::harness::{Net, Request, call, initialize};
use crate::kit::Kit;

/// JSON or events, as in the other era.
#[test]
fn json_or_events() {
    for always in [false, true] {
        let mut settings = Settings::default();
        settings.events = if always { Events::Always } else { Events::WhenNeeded };
        let mut net = Net::with(&Kit::default().service(), settings);
        let session = net.session("2025-06-18", json!({}));
        for (name, accept, sse, count) in [
            ("add", "*/*", always, 1),
            ("add", "application/json", false, 1),
            ("add", "text/event-stream", true, 1),
            ("chatty", "*/*", true, 2),
            ("chatty", "application/json", false, 1),
            ("chatty", "text/event-stream", true, 2),
        ] {
            let request = session.post(&call(1, name, json!({"a": 1, "b": 2}))).set("Accept", accept);
            let got = net.send(&request);
            assert_eq!((net.status(got), net.is_sse(got)), (200, sse), "{name} {accept} {always}");
            let messages = net.messages(got);
            assert_eq!(messages.len(), count, "{name} {accept} {always} {messages:?}");
            assert_eq!(messages.last().unwrap()["id"], 1);
            assert!(net.is_done(got));
        }
    }
}

/// LS-HTTP-04, LS-HTTP-05: the priming event, in 2025-11-25 only.
#[test]
fn streams_are_primed_in_2025_11_25_only() {
    for version in VERSIONS {
        let kit = Kit::default();
        let mut net = Net::new(&kit.service());
        let session = net.session(version, json!({}));
        let primed = version == "2025-11-25";
        let get = net.send(&session.get());
        let post = net.send(&session.post(&call(1, "steps", json!({}))));
        for got in [get, post] {
            assert!(net.is_sse(got) && net.status(got) == 200);
            let events = net.events(got);
            let is_priming = |e: &crate::harness::Event| e.data.as_deref() == Some("") && e.id.is_some();
            assert_eq!(events.first().is_some_and(is_priming), primed, "{events:?}");
            if primed {
                assert_eq!(events[0].retry, Some(1000));
            }
            let rest = if primed { &events[1..] } else { &events[..] };
            assert_eq!(rest.len(), if got == get { 0 } else { 2 });
            assert!(rest.iter().all(|e| e.id.is_some() && e.retry.is_none()));
        }
    }
}

/// LS-HTTP-06, 08, 09, 14, 15: each message on its own stream.
#[test]
fn messages_stay_on_their_stream() {
    for version in VERSIONS {
        let kit = Kit::default();
        let mut net = Net::new(&kit.service());
        let session = net.session(version, json!({}));
        let get = net.send(&session.get());
        let one = net.send(&session.post(&call(1, "steps", json!({}))));
        let two = net.send(&session.post(&call(2, "wait", json!({}))));
        let (_, quick) = net.ask(&session.post(&call(3, "add", json!({"a": 1, "b": 2}))));
        assert_eq!(text(&quick), "3");
        let first: Vec<_> = net.messages(one).iter().map(|m| m["method"].clone()).collect();
        assert_eq!(first, ["notifications/progress", "notifications/message"]);
        kit.gate.open();
        net.settle();
        assert_eq!(net.one(one)["params"]["progress"], 2.0);
        assert!(net.is_done(two));
        assert_eq!((net.one(two)["id"].clone(), net.is_sse(two)), (json!(2), false));
        kit.after.open();
        net.settle();
        assert_eq!(text(&net.one(one)), "stepped");
        assert!(net.is_done(one) && !net.is_done(get));
        assert!(net.messages(get).is_empty());
    }
}

/// A second GET stream is refused; after the first is gone there may be one.
#[test]
fn one_get_stream() {
    let (mut net, _) = net();
    let session = net.session("2025-11-25", json!({}));
    let first = net.send(&session.get());
    assert_eq!(net.status(first), 200);
    let second = net.send(&session.get());
    assert_eq!(net.status(second), 409);
    let other = net.session("2025-11-25", json!({}));
    let theirs = net.send(&other.get());
    assert_eq!(net.status(theirs), 200);
    net.disconnect(first);
    let third = net.send(&session.get());
    assert_eq!(net.status(third), 200);
}

/// LS-HTTP-11, LS-RES-02, LS-RES-03: changes, as marks while no GET stream is open.
#[test]
fn changes_go_to_the_get_stream() {
    let (mut net, _) = net();
    let session = net.session("2025-06-18", json!({}));
    let subscribe = |on: bool| {
        let method = if on { "resources/subscribe" } else { "resources/unsubscribe" };
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": "doc://a"}})
    };
    assert_eq!(net.ask(&session.post(&subscribe(true))).0, 200);
    for _ in 0..100 {
        net.http.service().changes().tools();
        net.http.service().changes().resource("doc://a");
        net.http.service().changes().resource("doc://b");
    }
    let methods = |messages: Vec<Value>| {
        let mut all: Vec<_> = messages.iter().map(|m| m["method"].as_str().unwrap().to_owned()).collect();
        all.sort();
        all
    };
    let get = net.send(&session.get());
    assert_eq!(
        methods(net.messages(get)),
        ["notifications/resources/updated", "notifications/tools/list_changed"]
    );
    // A POST that runs meanwhile sees none of it.
    let (_, changed) = net.ask(&session.post(&call(2, "change", json!({}))));
    assert_eq!(text(&changed), "changed");
    assert!(!methods(net.messages(get)).is_empty());
    // A reader that does not read is told once for many changes.
    net.at(get).paused = true;
    for _ in 0..1000 {
        net.http.service().changes().resource("doc://a");
    }
    net.at(get).resume();
    net.settle();
    let told = methods(net.messages(get)).len();
    assert!((1..=2).contains(&told), "{told}");
    assert_eq!(net.ask(&session.post(&subscribe(false))).0, 200);
    net.http.service().changes().resource("doc://a");
    net.settle();
    assert!(net.messages(get).is_empty());
}

/// LS-CANCEL-01, H15: who comes back gets the rest, on the same stream, whatever happened meanwhile.
#[test]
fn h15_a_disconnect_cancels_nothing() {
    for version in VERSIONS {
        let kit = Kit::default();
        let mut net = Net::new(&kit.service());
        let session = net.session(version, json!({}));
        let get = net.send(&session.get());
        let post = net.send(&session.post(&call(1, "steps", json!({}))));
        let last = net.events(post).last().unwrap().id.clone().unwrap();
        net.disconnect(post);
        kit.gate.open();
        net.settle();
        let resumed = net.send(&session.resume(&last));
        assert_eq!(net.status(resumed), 200);
        assert_eq!(net.one(resumed)["params"]["progress"], 2.0);
        // And once more, while it is being read: the newest reader has it.
        let again = net.send(&session.resume(&last));
        net.settle();
        assert!(net.is_done(resumed), "the old reader ends");
        assert_eq!(net.one(again)["params"]["progress"], 2.0);
        kit.after.open();
        net.settle();
        assert_eq!(text(&net.one(again)), "stepped");
        assert!(net.is_done(again) && net.messages(resumed).is_empty());
        assert!(net.messages(get).is_empty() && !net.is_done(get));
        // After the end, too.
        let after = net.send(&session.resume(&last));
        let messages = net.messages(after);
        assert_eq!(messages.len(), 2);
        assert!(net.is_done(after));
        for id in ["9999-1", "x", "", "0-0-0-0"] {
            let got = net.send(&session.resume(id));
            assert_eq!(net.status(got), 400, "{id}: 404 would end the session");
        }
    }
}

/// The GET stream is resumed with what it missed.
#[test]
fn the_get_stream_is_resumed() {
    let (mut net, _) = net();
    let session = net.session("2025-11-25", json!({}));
    let get = net.send(&session.get());
    let primed = net.events(get)[0].id.clone().unwrap();
    net.http.service().changes().tools();
    net.settle();
    assert_eq!(net.one(get)["method"], "notifications/tools/list_changed");
    net.disconnect(get);
    net.http.service().changes().prompts();
    let resumed = net.send(&session.resume(&primed));
    let methods: Vec<_> = net.messages(resumed).iter().map(|m| m["method"].clone()).collect();
    assert_eq!(methods, ["notifications/tools/list_changed", "notifications/prompts/list_changed"]);
    net.http.service().changes().resources();
    net.settle();
    assert_eq!(net.one(resumed)["method"], "notifications/resources/list_changed");
    assert!(!net.is_done(resumed));
}

/// LS-HTTP-05: a response that its handler ends, and the client that comes back for the rest.
#[test]
fn a_handler_ends_its_response() {
    for version in VERSIONS {
        let (mut net, _) = net();
        let session = net.session(version, json!({}));
        let post = net.send(&session.post(&call(1, "lets_go", json!({}))));
        let events = net.events(post);
        assert!(net.is_done(post));
        if version != "2025-11-25" {
            assert_eq!(events.len(), 2);
            continue;
        }
        assert_eq!(events[0].retry, Some(1000));
        // What was there goes along, the rest waits.
        let back = net.send(&session.resume(events.last().unwrap().id.as_ref().unwrap()));
        let all = events.len() - 1 + net.messages(back).len();
        assert_eq!(all, 2);
        assert!(net.is_done(back));
        // Without events nothing can be ended.
        let post = session.post(&call(2, "lets_go", json!({}))).set("Accept", "application/json");
        assert_eq!(text(&net.ask(&post).1), "false");
    }
}

/// A client that takes only JSON hears what precedes its answer on the GET stream, if anywhere.
#[test]
fn a_client_without_events() {
    let kit = Kit::default();
    let mut net = Net::new(&kit.service());
    let session = net.session("2025-06-18", json!({"elicitation": {}}));
    let json = |message: Value| session.post(&message).set("Accept", "application/json");
    // However much it is: the handler does not wait for a reader that there is not.
    let flood = net.send(&json(call(1, "flood", json!({}))));
    assert!(net.is_done(flood), "stuck after {}", kit.sent());
    assert_eq!(text(&net.one(flood)), "flooded");
    let get = net.send(&session.get());
    net.messages(get);
    let post = net.send(&json(call(2, "confirm", json!({}))));
    assert!(!net.has_head(post));
    let question = net.one(get);
    assert_eq!(question["method"], "elicitation/create");
    net.send(&session.post(&yes(&question)));
    assert_eq!(text(&net.one(post)), "true");
    assert!(!net.is_sse(post));
}

/// Comments keep streams alive; the first one begins the stream.
#[test]
fn keep_alive_comments() {
    for version in VERSIONS {
        let kit = Kit::default();
        let mut net = Net::new(&kit.service());
        let session = net.session(version, json!({}));
        let get = net.send(&session.get());
        let post = net.send(&session.post(&call(1, "wait", json!({}))));
        net.events(get);
        net.pass(Duration::from_secs(15));
        assert_eq!(net.events(get).iter().map(|e| e.comments).sum::<usize>(), 1);
        assert!(net.is_sse(post));
        net.events(post);
        net.pass(Duration::from_secs(15));
        assert_eq!(net.events(post).iter().map(|e| e.comments).sum::<usize>(), 1);
        kit.gate.open();
        net.settle();
        assert_eq!(text(&net.one(post)), "opened");
    }
}

/// The handshake is answered as all else is.
#[test]
fn a_handshake_is_an_event_where_answers_always_are() {
    let kit = Kit::default();
    let mut settings = Settings::default();
    settings.events = Events::Always;
    let mut net = Net::with(&kit.service(), settings);
    for (accept, is_event) in [("application/json, text/event-stream", true), ("application/json", false)] {
        let opening = Request::post(initialize("2025-11-25", json!({})).to_string()).set("Accept", accept);
        let got = net.send(&opening);
        assert_eq!((net.status(got), net.is_sse(got)), (200, is_event), "{accept}");
        assert!(net.header(got, "mcp-session-id").is_some());
        assert_eq!(net.one(got)["result"]["protocolVersion"], "2025-11-25");
    }
}
