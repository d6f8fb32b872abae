//! 2025-03-26 to 2025-11-25: sessions.

use std::time::Duration;

use mcp_proto::http::{Events, Settings};
use mcp_proto::limits::Limits;
use serde_json::{Value, json};

use crate::harness::{Net, Request, Session, call, initialize};
use crate::kit::Kit;

const VERSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

fn net() -> (Net, Kit) {
    let kit = Kit::default();
    (Net::new(&kit.service()), kit)
}

fn plain(id: impl Into<Value>, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method})
}

fn note(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn answer(question: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
}

fn yes(question: &Value) -> Value {
    answer(question, json!({"action": "accept", "content": {"confirm": true}}))
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"))
}

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

/// LS-HTTP-02, LS-HTTP-10: statuses that belong to the shape.
#[test]
fn what_is_no_request_is_accepted() {
    for version in VERSIONS {
        let (mut net, _) = net();
        let session = net.session(version, json!({}));
        for message in [
            note("notifications/roots/list_changed", json!({})),
            note("notifications/made-up", json!({})),
            note("notifications/cancelled", json!({"requestId": 77})),
            json!({"jsonrpc": "2.0", "id": 5, "result": {}}),
            json!({"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "x"}}),
        ] {
            let got = net.send(&session.post(&message));
            assert_eq!((net.status(got), net.at(got).body.len()), (202, 0), "{message}");
            assert!(net.is_done(got));
        }
        let got = net.send(&session.get().set("Accept", "application/json"));
        assert_eq!(net.status(got), 406);
        let got = net.send(&Request::new("PUT"));
        assert_eq!(net.status(got), 405);
        assert_eq!(net.header(got, "allow").as_deref(), Some("GET, POST, DELETE"));
        let modern = session.get().set("MCP-Protocol-Version", "2026-07-28");
        let got = net.send(&modern);
        assert_eq!(net.status(got), 405);
    }
}

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

/// Questions go out on the POST's stream; the answer is another POST.
#[test]
fn questions_go_out_on_the_stream_of_their_call() {
    for (version, tool, method, result, expected) in [
        (
            "2025-06-18",
            "confirm",
            "elicitation/create",
            json!({"action": "accept", "content": {"confirm": true}}),
            "true",
        ),
        (
            "2025-03-26",
            "sample",
            "sampling/createMessage",
            json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}),
            "m",
        ),
        ("2025-11-25", "roots", "roots/list", json!({"roots": [{"uri": "file:///a"}]}), "1"),
    ] {
        let (mut net, _) = net();
        let all = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        let session = net.session(version, all.clone());
        let other = net.session(version, all);
        let get = net.send(&session.get());
        let post = net.send(&session.post(&call(1, tool, json!({}))));
        let question = net.one(post);
        assert_eq!(question["method"], method);
        // Another session's answer under the same id answers nothing.
        let foreign = net.send(&other.post(&answer(&question, result.clone())));
        assert_eq!(net.status(foreign), 202);
        assert!(net.messages(post).is_empty());
        let got = net.send(&session.post(&answer(&question, result.clone())));
        assert_eq!((net.status(got), net.at(got).body.len()), (202, 0));
        assert_eq!(text(&net.one(post)), expected);
        assert!(net.is_done(post) && net.messages(get).is_empty());
        let twice = net.send(&session.post(&answer(&question, result)));
        assert_eq!(net.status(twice), 202);
    }
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

/// A question whose stream was cut is asked again to whoever resumes it.
#[test]
fn a_question_waits_for_the_client_to_come_back() {
    let (mut net, _) = net();
    let session = net.session("2025-11-25", json!({"elicitation": {}}));
    let post = net.send(&session.post(&call(1, "confirm", json!({}))));
    let events = net.events(post);
    let question: Value = serde_json::from_str(events[1].data.as_ref().unwrap()).unwrap();
    net.disconnect(post);
    let back = net.send(&session.resume(events[0].id.as_ref().unwrap()));
    assert_eq!(net.one(back), question);
    net.send(&session.post(&yes(&question)));
    assert_eq!(text(&net.one(back)), "true");
}

/// A question that is not answered in time is withdrawn where it was asked, and the call fails.
#[test]
fn a_question_that_times_out_is_withdrawn_on_its_stream() {
    let (mut net, _) = net();
    let session = net.session("2025-11-25", json!({"elicitation": {}}));
    let get = net.send(&session.get());
    net.events(get);
    let post = net.send(&session.post(&call(1, "confirm", json!({}))));
    let question = net.one(post);
    net.pass(Duration::from_secs(600));
    let messages = net.messages(post);
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0]["method"], "notifications/cancelled");
    assert_eq!(messages[0]["params"]["requestId"], question["id"]);
    assert_eq!(messages[1]["id"], 1);
    assert!(net.messages(get).is_empty());
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

/// `notifications/cancelled`: the handler goes, and nothing is answered.
#[test]
fn a_cancelled_request_is_not_answered() {
    let (mut net, kit) = net();
    let session = net.session("2025-11-25", json!({}));
    let other = net.session("2025-11-25", json!({}));
    let post = net.send(&session.post(&call(1, "wait", json!({}))));
    let steps = net.send(&session.post(&call(2, "steps", json!({}))));
    assert_eq!(net.messages(steps).len(), 2);
    net.send(&other.post(&note("notifications/cancelled", json!({"requestId": 1}))));
    assert_eq!(kit.dropped(), 0);
    for id in [1, 2] {
        let got = net.send(&session.post(&note("notifications/cancelled", json!({"requestId": id}))));
        assert_eq!(net.status(got), 202);
    }
    assert_eq!((kit.dropped(), net.jobs()), (1, 0));
    assert!(net.is_done(post) && net.is_done(steps));
    // S-HTTP-08: a request is answered with JSON or a stream; this one ends without anything to come back for.
    assert!(net.is_sse(post));
    assert_eq!((net.status(post), net.at(post).body.len()), (200, 0));
    assert!(net.messages(steps).is_empty());
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

/// S08, LS-BATCH-01: arrays of 2025-03-26.
#[test]
fn s08_batches() {
    let kit = Kit::default();
    let mut net = Net::new(&kit.service());
    let session = net.session("2025-03-26", json!({}));
    let batch = json!([
        plain(1, "ping"),
        note("notifications/x", json!({})),
        call(2, "add", json!({"a": 1, "b": 2}))
    ]);
    let (status, array) = net.ask(&session.post(&batch));
    assert_eq!(status, 200);
    let ids: Vec<_> = array.as_array().unwrap().iter().map(|m| m["id"].clone()).collect();
    assert_eq!(ids, [1, 2]);
    let notes = json!([note("notifications/x", json!({})), json!({"jsonrpc": "2.0", "id": 9, "result": {}})]);
    let got = net.send(&session.post(&notes));
    assert_eq!((net.status(got), net.at(got).body.len()), (202, 0));
    let empty = net.send(&session.post(&json!([])));
    assert_eq!(net.status(empty), 400);
    // Two at once, and a call between them.
    let one = net
        .send(&session.post(&json!([call(1, "wait", json!({})), call(2, "add", json!({"a": 1, "b": 1}))])));
    let two = net
        .send(&session.post(&json!([call(3, "add", json!({"a": 3, "b": 1})), call(4, "chatty", json!({}))])));
    let (_, single) = net.ask(&session.post(&call(5, "add", json!({"a": 5, "b": 0}))));
    assert_eq!(text(&single), "5");
    let messages = net.messages(two);
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["method"], "notifications/progress");
    assert_eq!(messages[1].as_array().unwrap().len(), 2);
    assert!(!net.has_head(one) && net.is_done(two));
    kit.gate.open();
    net.settle();
    let array = net.one(one);
    let mut ids: Vec<_> = array.as_array().unwrap().iter().map(|m| m["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    // A member that is cancelled is left out; if all are, nothing is answered.
    let kit = Kit::default();
    let mut net = Net::new(&kit.service());
    let session = net.session("2025-03-26", json!({}));
    let got = net.send(&session.post(&json!([call(1, "wait", json!({}))])));
    net.send(&session.post(&note("notifications/cancelled", json!({"requestId": 1}))));
    assert_eq!((net.status(got), net.is_done(got)), (202, true));
}

/// S08: no other revision has them, and the POST is answered at once.
#[test]
fn s08_no_batches_elsewhere() {
    for version in ["2025-06-18", "2025-11-25"] {
        let (mut net, _) = net();
        let session = net.session(version, json!({}));
        for batch in [json!([plain(1, "ping")]), json!([note("notifications/x", json!({}))]), json!([])] {
            let got = net.send(&session.post(&batch));
            assert!(net.is_done(got), "{version} {batch}: not answered");
            assert_eq!(net.status(got), 400);
            let bare = Session { version: None, ..session.clone() };
            let got = net.send(&bare.post(&batch));
            assert!(net.is_done(got) && net.status(got) == 400);
        }
    }
}

/// Nothing that a client may send in a session leaves its POST without an answer.
#[test]
fn every_post_is_answered() {
    for version in VERSIONS {
        let (mut net, _) = net();
        let session = net.session(version, json!({}));
        for message in [
            plain(1, "initialize"),
            plain(1, "made/up"),
            plain(1, "tools/call"),
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}),
            json!({"jsonrpc": "2.0", "id": null, "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}),
            json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 1}),
            json!({"jsonrpc": "2.0", "id": [], "result": {}}),
            json!({"jsonrpc": "2.0", "method": 5}),
            json!([1]),
            json!([[plain(1, "ping")]]),
            json!([{"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}]),
            call(1, "nothing", json!({})),
            call(1, "add", json!({})),
        ] {
            let got = net.send(&session.post(&message));
            assert!(net.is_done(got) && net.has_head(got), "{version} {message}");
        }
        let open = net.send(&session.post(&call("x", "wait", json!({}))));
        let same = net.send(&session.post(&call("x", "wait", json!({}))));
        assert!(!net.is_done(open));
        assert_eq!(net.one(same)["error"]["code"], -32600);
    }
}

/// A handler that panics answers `-32603`.
#[test]
fn a_panic_is_an_answer() {
    let (mut net, _) = net();
    let session = net.session("2025-11-25", json!({}));
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (status, message) = net.ask(&session.post(&call(1, "panics", json!({"region": "x"}))));
    std::panic::set_hook(hook);
    assert_eq!((status, &message["error"]["code"]), (200, &json!(-32603)));
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

fn task_client() -> Value {
    json!({"elicitation": {}, "tasks": {"requests": {}}})
}

fn start(id: i64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}, "task": {}}})
}

fn about(id: i64, method: &str, task: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"taskId": task}})
}

fn created(message: &Value) -> Value {
    let id = message["result"]["task"]["taskId"].clone();
    assert!(id.is_string(), "{message}");
    id
}

/// Tasks of 2025-11-25: `tasks/result` waits on its stream.
#[test]
fn a_result_waits_on_its_stream() {
    let (mut net, kit) = net();
    let session = net.session("2025-11-25", task_client());
    let (_, message) = net.ask(&session.post(&start(1, "job")));
    let task = created(&message);
    assert_eq!(net.ask(&session.post(&about(2, "tasks/get", &task))).1["result"]["status"], "working");
    let waiting = net.send(&session.post(&about(3, "tasks/result", &task)));
    let second = net.send(&session.post(&about(4, "tasks/result", &task)));
    assert!(!net.is_done(waiting));
    kit.gate.open();
    net.settle();
    for (got, id) in [(waiting, 3), (second, 4)] {
        let messages = net.messages(got);
        let last = messages.last().unwrap();
        assert_eq!((text(last), &last["id"]), ("opened", &json!(id)));
        assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task);
        assert!(net.is_done(got));
    }
    // Another session has no such task.
    let other = net.session("2025-11-25", task_client());
    assert_eq!(net.ask(&other.post(&about(2, "tasks/get", &task))).1["error"]["code"], -32602);
}

/// A question of a task reaches a client that has no GET stream: on the stream of `tasks/result`, whether
/// it was opened before the question or after.
#[test]
fn a_question_of_a_task_goes_where_its_result_is_awaited() {
    for early in [true, false] {
        let (mut net, kit) = net();
        let session = net.session("2025-11-25", task_client());
        let (_, message) = net.ask(&session.post(&start(1, "job_waits_and_asks")));
        let task = created(&message);
        let (_, message) = net.ask(&session.post(&start(2, "job")));
        let unrelated = created(&message);
        let other = net.send(&session.post(&about(3, "tasks/result", &unrelated)));
        let result = about(4, "tasks/result", &task);
        let early_one = early.then(|| net.send(&session.post(&result)));
        // Only this task goes on.
        kit.gate.open();
        net.settle();
        let waiting = early_one.unwrap_or_else(|| net.send(&session.post(&result)));
        let messages = net.messages(waiting);
        let question = messages.iter().find(|m| m["method"] == "elicitation/create");
        let question = question.unwrap_or_else(|| panic!("not asked: {messages:?}")).clone();
        assert_eq!(question["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task);
        assert!(net.messages(other).iter().all(|m| m["method"] != "elicitation/create"));
        net.send(&session.post(&yes(&question)));
        assert_eq!(text(net.messages(waiting).last().unwrap()), "true");
        // It was sent once.
        let get = net.send(&session.get());
        assert!(net.messages(get).iter().all(|m| m["method"] != "elicitation/create"));
    }
}

/// With a GET stream it goes there, also one that is opened later.
#[test]
fn a_question_of_a_task_goes_to_the_get_stream() {
    for early in [true, false] {
        let (mut net, _) = net();
        let session = net.session("2025-11-25", task_client());
        let early_one = early.then(|| net.send(&session.get()));
        let (_, message) = net.ask(&session.post(&start(1, "job_asks")));
        let task = created(&message);
        let get = early_one.unwrap_or_else(|| net.send(&session.get()));
        let question = net.messages(get).into_iter().find(|m| m["method"] == "elicitation/create").unwrap();
        let waiting = net.send(&session.post(&about(4, "tasks/result", &task)));
        net.send(&session.post(&yes(&question)));
        assert_eq!(text(&net.one(waiting)), "true");
    }
}

/// A task whose session ends cannot ask any more.
#[test]
fn the_questions_of_a_task_end_with_the_session() {
    let (mut net, kit) = net();
    let session = net.session("2025-11-25", task_client());
    net.ask(&session.post(&start(1, "job_asks")));
    net.ask(&session.post(&start(2, "job_waits_and_asks")));
    assert_eq!(net.jobs(), 2);
    net.send(&session.delete());
    kit.gate.open();
    net.settle();
    assert_eq!(net.jobs(), 0, "a task waits for an answer that cannot come");
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

/// A client has to take both; which of them it names is looked at only if the endpoint is strict.
#[test]
fn an_accept_of_one_type_is_refused_if_strict() {
    let kit = Kit::default();
    for (strict, expected) in [(false, 200), (true, 406)] {
        let mut settings = Settings::default();
        settings.strict = strict;
        let mut net = Net::with(&kit.service(), settings);
        let opening = Request::post(initialize("2025-11-25", json!({})).to_string());
        for accept in ["application/json", "text/event-stream", "application/json, text/*;q=0"] {
            let got = net.send(&opening.clone().set("Accept", accept));
            assert_eq!(net.status(got), expected, "{accept}");
        }
        for accept in ["*/*", "text/event-stream, application/json;q=0.1", "application/*, text/*"] {
            let got = net.send(&opening.clone().set("Accept", accept));
            assert_eq!(net.status(got), 200, "{accept}");
        }
        let got = net.send(&opening.clone().without("Accept"));
        assert_eq!(net.status(got), 200, "without the header everything is taken");
    }
}
