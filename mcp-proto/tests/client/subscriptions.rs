//! Subscriptions. (revisions 5)

use mcp_proto::client::{CallError, CallId, CallOptions, Change, Event, ViolationKind};
use mcp_proto::model::{ProtocolVersion as V, SubscriptionFilter};
use serde_json::{Value, json};

use super::script::{LEGACY, Script, at, config, error, initialized, notification, result};

fn all() -> SubscriptionFilter {
    SubscriptionFilter::new()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed()
        .resource("file:///a")
}

fn listen(script: &mut Script, filter: SubscriptionFilter) -> CallId {
    script.client.listen(filter, &CallOptions::new(), script.now, &mut script.out).unwrap()
}

/// A notification of the subscription `id`; `params` are members without braces.
fn tagged(id: &Value, method: &str, params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    let meta = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    notification(&format!("notifications/{method}"), &format!("{{{params}{comma}{meta}}}"))
}

fn acknowledge(script: &mut Script, id: &Value, granted: &str) -> SubscriptionFilter {
    match script.send(&tagged(id, "subscriptions/acknowledged", &format!(r#""notifications":{granted}"#))) {
        Some(Event::Acknowledged { granted, .. }) => granted,
        other => panic!("{other:?}"),
    }
}

fn changed(event: Option<Event<'static>>) -> (Option<CallId>, Change) {
    match event {
        Some(Event::Changed { subscription, change }) => (subscription, change),
        other => panic!("{other:?}"),
    }
}

const ALL: &str = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///a"]}"#;

#[test]
fn a_subscription_is_acknowledged_then_told_and_then_ended() {
    // C-SUBS-01
    let mut script = Script::modern();
    let id = listen(&mut script, all());
    let sent = script.one();
    assert_eq!(sent["method"], "subscriptions/listen");
    assert_eq!(sent["params"]["notifications"], serde_json::from_str::<Value>(ALL).unwrap());
    assert_eq!(sent["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    let wire = &sent["id"];
    // Nothing before the acknowledgment.
    assert_eq!(script.strange(&tagged(wire, "tools/list_changed", "")), ViolationKind::Unsubscribed);
    let granted =
        acknowledge(&mut script, wire, r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}"#);
    assert!(granted.tools_list_changed && !granted.prompts_list_changed);
    assert_eq!(
        script.strange(&tagged(wire, "subscriptions/acknowledged", r#""notifications":{}"#)),
        ViolationKind::Unsubscribed
    );
    // It has no time of its own from here on.
    assert_eq!(script.client.next_deadline(), None);
    assert_eq!(changed(script.send(&tagged(wire, "tools/list_changed", ""))), (Some(id), Change::Tools));
    let part = tagged(wire, "resources/updated", r#""uri":"file:///a/b""#);
    assert_eq!(changed(script.send(&part)), (Some(id), Change::Resource("file:///a/b".into())));
    assert_eq!(script.strange(&tagged(wire, "prompts/list_changed", "")), ViolationKind::Unsubscribed);
    for odd in [r#""uri":5"#, ""] {
        assert_eq!(script.strange(&tagged(wire, "resources/updated", odd)), ViolationKind::Params);
    }
    let end =
        format!(r#"{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{wire}}}}}"#);
    let event = script.send(&result(wire, &end));
    assert!(matches!(event, Some(Event::ListenEnded { subscription, lost: false }) if subscription == id));
    assert_eq!(script.strange(&tagged(wire, "tools/list_changed", "")), ViolationKind::UnknownSubscription);
    assert_eq!(script.client.open_calls(), 0);
}

#[test]
fn notifications_go_to_the_subscription_that_they_name() {
    // C-STDIO-04
    let mut script = Script::modern();
    let (a, b) =
        (listen(&mut script, all()), listen(&mut script, SubscriptionFilter::new().tools_list_changed()));
    let sent = script.sent();
    let (wire_a, wire_b) = (&sent[0]["id"], &sent[1]["id"]);
    acknowledge(&mut script, wire_b, r#"{"toolsListChanged":true}"#);
    acknowledge(&mut script, wire_a, ALL);
    assert_eq!(changed(script.send(&tagged(wire_b, "tools/list_changed", ""))).0, Some(b));
    assert_eq!(changed(script.send(&tagged(wire_a, "tools/list_changed", ""))).0, Some(a));
    let (_, call) = script.tool("t", &CallOptions::new());
    for unknown in [json!(99), json!("x"), json!(null), json!({}), call["id"].clone()] {
        assert_eq!(
            script.strange(&tagged(&unknown, "tools/list_changed", "")),
            ViolationKind::UnknownSubscription
        );
    }
    assert_eq!(
        script.strange(&notification("notifications/tools/list_changed", "{}")),
        ViolationKind::UnknownSubscription
    );
    assert_eq!(
        script.strange(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
        ViolationKind::UnknownSubscription
    );
    assert_eq!(
        script.strange(&notification("notifications/subscriptions/acknowledged", r#"{"notifications":{}}"#)),
        ViolationKind::UnknownSubscription
    );
    assert_eq!(
        script.strange(&tagged(wire_a, "subscriptions/acknowledged", r#""notifications":5"#)),
        ViolationKind::Params
    );
}

#[test]
fn a_subscription_is_cancelled_from_either_side() {
    let mut script = Script::modern();
    let id = listen(&mut script, all());
    let wire = script.one()["id"].clone();
    acknowledge(&mut script, &wire, ALL);
    assert!(script.client.cancel(id, None, &mut script.out));
    assert_eq!(
        script.one(),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": wire}})
    );
    assert_eq!(script.strange(&tagged(&wire, "tools/list_changed", "")), ViolationKind::UnknownSubscription);

    // By the server: whichever of notification and result comes first is the end.
    let id = listen(&mut script, all());
    let wire = script.one()["id"].clone();
    acknowledge(&mut script, &wire, ALL);
    let (call, sent) = script.tool("t", &CallOptions::new());
    let other = notification("notifications/cancelled", &format!(r#"{{"requestId":{}}}"#, sent["id"]));
    assert!(script.send(&other).is_none(), "only subscriptions can be cancelled by a server");
    assert!(script.client.is_open(call));
    let event = script.send(&notification("notifications/cancelled", &format!(r#"{{"requestId":{wire}}}"#)));
    assert!(matches!(event, Some(Event::ListenEnded { subscription, lost: false }) if subscription == id));
    // The other of the two is no news, but more than that is too much.
    assert!(script.send(&result(&wire, "{}")).is_none());
    assert_eq!(script.strange(&result(&wire, "{}")), ViolationKind::Late);
}

#[test]
fn a_server_that_cannot_says_so() {
    let mut script = Script::modern();
    let id = listen(&mut script, all());
    let wire = script.one()["id"].clone();
    let (failed, reason) = script.failed(&error(&wire, -32601, ""));
    assert!(failed == id && matches!(reason, CallError::Rpc(error) if error.code == -32601));
    // And silence is no acknowledgment.
    let id = listen(&mut script, all());
    script.one();
    let due = script.pass(61_000);
    assert!(matches!(due[..], [Event::Failed { call, error: CallError::TimedOut }] if call == id), "{due:?}");
    assert_eq!(script.one()["method"], "notifications/cancelled");
}

#[test]
fn after_a_restart_it_is_asked_for_again() {
    // C-SUBS-02, C-STDIO-07
    let mut script = Script::modern();
    let (a, b) = (listen(&mut script, all()), listen(&mut script, SubscriptionFilter::new().task("t1")));
    let first = script.sent();
    acknowledge(&mut script, &first[0]["id"], ALL);
    script.tool("t", &CallOptions::new());
    script.client.eof();
    let due = script.due();
    assert!(matches!(due[..], [Event::Failed { error: CallError::Closed, .. }]), "{due:?}");
    assert!(script.client.is_open(a) && script.client.is_open(b));
    // One is given up while there is no server.
    assert!(script.client.cancel(b, None, &mut script.out));
    assert!(script.sent().is_empty());
    assert!(matches!(script.start(), Some(Event::Ready)));
    let again = script.one();
    assert_ne!(again["id"], first[0]["id"]);
    assert_eq!(again["params"]["notifications"], first[0]["params"]["notifications"]);
    assert_eq!(
        script.strange(&tagged(&first[0]["id"], "tools/list_changed", "")),
        ViolationKind::UnknownSubscription
    );
    acknowledge(&mut script, &again["id"], ALL);
    assert_eq!(changed(script.send(&tagged(&again["id"], "tools/list_changed", ""))).0, Some(a));
    // It is open: there is nothing to open again.
    assert!(matches!(script.client.relisten(a, script.now, &mut script.out), Err(CallError::NoSuchCall)));
    assert!(matches!(script.client.relisten(b, script.now, &mut script.out), Err(CallError::NoSuchCall)));
}

#[test]
fn on_a_legacy_server_the_machine_makes_up_for_it() {
    for version in LEGACY {
        let mut script = Script::legacy(version);
        // Unasked: nobody subscribed to anything.
        let news = notification("notifications/tools/list_changed", "{}");
        assert_eq!(changed(script.send(&news)), (None, Change::Tools));
        let a = listen(&mut script, all().resource("file:///a").task("t"));
        let sent = script.one();
        assert_eq!(
            (&sent["method"], &sent["params"]),
            (&json!("resources/subscribe"), &json!({"uri": "file:///a"}))
        );
        // What is done next may reach the server before this request does, over HTTP.
        assert!(script.due().is_empty());
        assert_eq!(changed(script.send(&news)), (None, Change::Tools));
        match script.send(&result(&sent["id"], "{}")) {
            Some(Event::Acknowledged { subscription, granted }) => {
                assert_eq!(subscription, a);
                assert!(granted.tools_list_changed && granted.task_ids.is_empty());
                assert_eq!(granted.resource_subscriptions, ["file:///a"]);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(script.client.next_deadline(), None);
        // A second one to the same resource needs no second request.
        let b = listen(&mut script, SubscriptionFilter::new().resource("file:///a"));
        assert!(script.sent().is_empty());
        script.due();
        assert_eq!(changed(script.send(&news)), (Some(a), Change::Tools));
        assert!(script.due().is_empty());
        let update = notification("notifications/resources/updated", r#"{"uri":"file:///a"}"#);
        assert_eq!(changed(script.send(&update)).0, Some(a));
        match &script.due()[..] {
            [Event::Changed { subscription, .. }] => assert_eq!(*subscription, Some(b)),
            other => panic!("{other:?}"),
        }
        // The last one out says so.
        assert!(script.client.cancel(a, None, &mut script.out));
        assert!(script.sent().is_empty());
        assert!(script.client.cancel(b, None, &mut script.out));
        let sent = script.one();
        assert_eq!(
            (&sent["method"], &sent["params"]),
            (&json!("resources/unsubscribe"), &json!({"uri": "file:///a"}))
        );
    }
}

#[test]
fn a_legacy_subscription_is_what_the_server_declared_and_outlives_a_restart() {
    let mut script = Script::started(config().mode(mcp_proto::client::Mode::Legacy).build());
    let hello = script.one();
    let id = listen(&mut script, all());
    let bare = initialized("2025-06-18")
        .replace(r#""resources":{"subscribe":true,"listChanged":true}"#, r#""resources":{}"#);
    assert!(matches!(script.send(&result(&hello["id"], &bare)), Some(Event::Ready)));
    assert_eq!(script.one()["method"], "notifications/initialized");
    match &script.due()[..] {
        [Event::Acknowledged { granted, .. }] => {
            assert!(granted.tools_list_changed && !granted.resources_list_changed);
            assert!(granted.resource_subscriptions.is_empty());
        }
        other => panic!("{other:?}"),
    }
    script.client.eof();
    assert!(script.due().is_empty() && script.client.is_open(id));
    script.start();
    let hello = script.one();
    script.send(&result(&hello["id"], &initialized("2025-06-18")));
    let sent = script.sent();
    assert_eq!(sent[1]["method"], "resources/subscribe");
    assert!(script.due().is_empty());
    let event = script.send(&result(&sent[1]["id"], "{}"));
    assert!(matches!(event, Some(Event::Acknowledged { subscription, .. }) if subscription == id));
}

#[test]
fn what_a_legacy_server_refuses_is_not_granted_and_silence_is_no_acknowledgment() {
    let mut script = Script::legacy(V::V2025_11_25);
    let filter = || SubscriptionFilter::new().resource("a:1").resource("a:2");
    let id = listen(&mut script, filter());
    let sent = script.sent();
    let refused = script.send(&error(&sent[0]["id"], -32002, ""));
    assert!(refused.is_none(), "{refused:?}");
    match script.send(&result(&sent[1]["id"], "{}")) {
        Some(Event::Acknowledged { subscription, granted }) => {
            assert_eq!((subscription, &*granted.resource_subscriptions), (id, &["a:2".into()][..]));
        }
        other => panic!("{other:?}"),
    }
    // One that was never acknowledged is no reason to leave out the request of another.
    let silent = listen(&mut script, SubscriptionFilter::new().resource("a:3"));
    let other = listen(&mut script, SubscriptionFilter::new().resource("a:3"));
    assert_eq!(script.sent().len(), 2);
    let due = script.pass(120_000);
    let timed_out = |event: &Event<'_>| matches!(event, Event::Failed { error: CallError::TimedOut, .. });
    assert!(due.len() == 2 && due.iter().all(timed_out), "{due:?}");
    assert!(!script.client.is_open(silent) && !script.client.is_open(other) && script.client.is_open(id));
    assert_eq!(script.one()["method"], "resources/unsubscribe");
}

#[test]
fn a_flood_of_changes_is_bounded_by_what_the_driver_takes() {
    // Each frame yields one event; what the other subscriptions hear waits, and waits once.
    let mut script = Script::legacy(V::V2025_11_25);
    for _ in 0..8 {
        listen(&mut script, SubscriptionFilter::new().tools_list_changed());
    }
    script.due();
    for _ in 0..1000 {
        let _ = script.send(&notification("notifications/tools/list_changed", "{}"));
    }
    assert_eq!(script.due().len(), 7);
    assert_eq!(script.now, at(1_000));
}
