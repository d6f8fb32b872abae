//! How connections begin and end.

use mcp_proto::client::{CallError, Mode};
use mcp_proto::service::client::Client;
use serde_json::json;

use crate::basics::client;
use crate::rig::{Rig, error, now, poll, text};

fn tools() -> serde_json::Value {
    json!({"tools": {}})
}

#[test]
fn the_last_handle_ends_the_link() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let other = client.clone();
    drop(client);
    rig.settle();
    assert!(!rig.link.is_done());
    // A call keeps it open, too.
    let mut call = other.call_tool("x", ());
    drop(other);
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    assert!(!rig.link.is_done());
    rig.answer(&request, text("done"));
    now(call).unwrap();
    rig.settle();
    assert!(rig.link.is_done());
    assert!(!rig.link.wants_input());
}

#[test]
fn what_is_to_be_sent_is_sent_before_the_end() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let mut call = client.call_tool("x", ());
    assert!(poll(&mut call).is_pending());
    rig.one();
    drop(call);
    drop(client);
    rig.settle();
    assert!(!rig.link.is_done());
    assert_eq!(rig.one()["method"], "notifications/cancelled");
    assert!(rig.link.is_done());
}

#[test]
fn closing_fails_what_is_open_and_completes_with_the_link() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let mut call = client.call_tool("x", ());
    let mut close = Box::pin(client.close());
    assert!(poll(&mut call).is_pending());
    rig.one();
    assert!(poll(&mut close).is_pending());
    rig.settle();
    assert!(rig.link.is_done() && client.is_closed());
    assert!(matches!(error(poll(&mut call)), CallError::Closed));
    assert!(matches!(now(client.call_tool("x", ())), Err(CallError::Closed)));
    assert!(poll(&mut close).is_pending(), "the adapter still has the stream");
    drop(rig.link);
    now(close);
}

#[test]
fn a_link_that_is_dropped_fails_everything() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let (mut sent, mut unsent) = (client.call_tool("x", ()), client.call_tool("x", ()));
    assert!(poll(&mut sent).is_pending());
    rig.one();
    assert!(poll(&mut unsent).is_pending());
    drop(rig.link);
    assert!(matches!(error(poll(&mut sent)), CallError::Closed));
    assert!(matches!(error(poll(&mut unsent)), CallError::Closed));
    now(client.closed());
    let (mut connecting, link) = Client::new("test", "1").link();
    drop(link);
    assert!(matches!(error(poll(&mut connecting)), CallError::Closed));
}

#[test]
fn giving_up_while_connecting_ends_the_link() {
    let (connecting, mut link) = Client::new("test", "1").link();
    link.start(mcp_proto::time::Instant::ZERO);
    drop(connecting);
    link.process(mcp_proto::time::Instant::ZERO);
    let written = link.output().len();
    link.advance(written);
    assert!(link.is_done());
}

/// The last line counts without its end, and then everything that was sent has failed.
#[test]
fn the_end_of_the_stream_fails_what_was_sent() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let (mut one, mut two) = (client.call_tool("one", ()), client.call_tool("two", ()));
    assert!(poll(&mut one).is_pending() && poll(&mut two).is_pending());
    let sent = rig.lines();
    let last = json!({"jsonrpc": "2.0", "id": sent[0]["id"], "result": text("just in time")}).to_string();
    rig.link.spare(last.len())[..last.len()].copy_from_slice(last.as_bytes());
    rig.link.commit(last.len());
    rig.link.end_of_input(rig.time());
    assert_eq!(now(one).unwrap().texts(), "just in time");
    assert!(matches!(error(poll(&mut two)), CallError::Closed));
    assert!(!rig.link.wants_restart() && !rig.link.wants_input());
    assert!(rig.link.is_cut_off());

    // A new stream to the same server: what was found out is not asked again.
    let mut waits = client.call_tool("three", ());
    assert!(poll(&mut waits).is_pending());
    rig.link.restart(rig.time());
    let request = rig.one();
    assert_eq!(request["params"]["name"], "three");
    assert!(!rig.link.is_cut_off());
    rig.answer(&request, text("three"));
    now(waits).unwrap();

    // Nobody wants the server any more. (Calls count, also those that have ended, until they are dropped.)
    rig.link.end_of_input(rig.time());
    assert!(rig.link.is_cut_off());
    drop((client, two));
    rig.link.process(rig.time());
    assert!(!rig.link.is_cut_off() && rig.link.is_done());
}

/// C-COMPAT-03: some legacy servers end at the first message they do not know.
#[test]
fn a_server_that_ends_at_the_probe_is_started_again() {
    let (mut connecting, link) = client().mode(Mode::Auto).link();
    let mut rig = Rig::of(link);
    rig.link.start(rig.time());
    assert_eq!(rig.one()["method"], "server/discover");
    rig.link.end_of_input(rig.time());
    assert!(rig.link.wants_restart() && !rig.link.is_cut_off());
    assert!(poll(&mut connecting).is_pending());
    rig.link.restart(rig.time());
    assert!(!rig.link.wants_restart());
    rig.initialize(tools());
    assert_eq!(now(connecting).unwrap().server().version.as_str(), "2025-11-25");
}

#[test]
fn a_server_that_cannot_be_used_is_an_error_of_connecting() {
    let (mut connecting, link) = client().mode(Mode::Legacy).link();
    let mut rig = Rig::of(link);
    rig.link.start(rig.time());
    let hello = rig.one();
    rig.answer(&hello, json!({
        "protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {"name": "old", "version": "0"},
    }));
    let error = error(poll(&mut connecting));
    assert!(matches!(&error, CallError::NoCommonVersion(_)), "{error}");
    assert!(rig.link.is_done());
}

#[test]
fn garbage_is_a_violation_and_nothing_else() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(0));
    let count = std::sync::Arc::clone(&seen);
    let mut limits = mcp_proto::limits::Limits::default();
    limits.max_message = 1000;
    let builder = client().limits(limits).on_violation(move |_| {
        *count.lock().unwrap() += 1;
        panic!("a hook that panics costs nobody else");
    });
    let (client, mut rig) = Rig::modern(builder, tools());
    rig.text("hello");
    rig.text("[]");
    rig.text(&"x".repeat(2000));
    rig.text(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    rig.text(r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#);
    assert_eq!(*seen.lock().unwrap(), 5);
    let mut call = client.call_tool("x", ());
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    rig.answer(&request, text("still there"));
    now(call).unwrap();
}

#[test]
fn notifications_go_both_ways() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = std::sync::Arc::clone(&seen);
    let builder = client().on_notification(move |method, params| {
        heard.lock().unwrap().push(format!("{method} {}", params.get()));
    });
    // All hear of it that were set, whatever becomes of one.
    let last = std::sync::Arc::new(std::sync::Mutex::new(0));
    let counted = std::sync::Arc::clone(&last);
    let builder = builder.on_notification(|_, _| panic!("on purpose")).on_notification(move |_, _| {
        *counted.lock().unwrap() += 1;
    });
    let (client, mut rig) = Rig::modern(builder, tools());
    rig.notify("com.example/hi", json!({"a": [1]}));
    rig.send(&json!({"jsonrpc": "2.0", "method": "com.example/bare"}));
    assert_eq!(*seen.lock().unwrap(), ["com.example/hi {\"a\":[1]}", "com.example/bare {}"]);
    assert_eq!(*last.lock().unwrap(), 2);
    client.notify("com.example/back", json!({"b": 2})).unwrap();
    assert_eq!(rig.one()["params"]["b"], 2);
    assert!(client.notify("com.example/back", 5).is_err());
}

/// What is said while there is no stream is not the first thing that the next one hears.
#[test]
fn nothing_comes_before_the_handshake_of_a_new_stream() {
    let root = || [mcp_proto::model::Root::new("file:///a")];
    let (client, mut rig) = Rig::legacy(client().roots(root()), tools());
    rig.link.end_of_input(rig.time());
    client.set_roots(root());
    client.notify("com.example/hi", ()).unwrap();
    rig.settle();
    rig.link.restart(rig.time());
    rig.initialize(tools());
    client.set_roots(root());
    assert_eq!(rig.one()["method"], "notifications/roots/list_changed");
}

#[test]
fn a_call_that_is_made_while_the_client_is_closed_fails() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let mut close = Box::pin(client.close());
    assert!(poll(&mut close).is_pending());
    let mut call = client.call_tool("x", ());
    assert!(poll(&mut call).is_pending());
    rig.nothing();
    assert!(matches!(error(poll(&mut call)), CallError::Closed));
}
