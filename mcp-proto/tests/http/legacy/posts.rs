//! What a client may post in a session, and what it is answered.

use mcp_proto::http::Settings;
use serde_json::json;

use super::{VERSIONS, net, note, plain, text};
use crate::harness::{Net, Request, Session, call, initialize};
use crate::kit::Kit;

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
