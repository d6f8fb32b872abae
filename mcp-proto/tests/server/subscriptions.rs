//! What changes, told to those who asked.

use mcp_proto::model::{EmptyResult, ProtocolVersion as V, SubscriptionFilter};
use mcp_proto::server::{Call, Change, Channel, Delivery, Event};
use serde_json::{Value, json};

use super::pair::{LEGACY, Pair, cancel, config, legacy, limits, modern};

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

/// Opens a subscription and grants all it asks for.
fn listen(pair: &mut Pair, id: &str, notifications: &str) -> Value {
    let frame = modern(id, "subscriptions/listen", &format!(r#""notifications":{notifications}"#));
    let Ok(Call::Listen(pending, params)) = pair.request(&frame).typed() else { panic!() };
    assert!(pair.server.acknowledge(pending, &params.notifications, &mut pair.out).is_written());
    pair.message()
}

fn flush(pair: &mut Pair) -> Vec<Value> {
    pair.server.flush_subscriptions(&mut pair.out);
    pair.messages()
}

/// U01, S-SUBS-01, S-SUBS-02, S-SUBS-03, S-META-07, S-WIRE-08, S-WIRE-09: acknowledged first, tagged with
/// the id in its type, only what was asked for, each once however often it changed.
#[test]
fn u01_only_what_was_asked_for() {
    let mut pair = Pair::new();
    let frame = modern(
        "\"s\"",
        "subscriptions/listen",
        r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["u:1"]}"#,
    );
    let Ok(Call::Listen(pending, params)) = pair.request(&frame).typed() else { panic!() };
    // Changes while it opens say nothing yet.
    for _ in 0..1_000 {
        pair.server.publish(&Change::Tools);
    }
    pair.server.flush_subscriptions(&mut pair.out);
    pair.silent();
    assert!(pair.server.acknowledge(pending, &params.notifications, &mut pair.out).is_written());
    assert_eq!(
        pair.message(),
        json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "_meta": {TAG: "s"},
            "notifications": {"toolsListChanged": true, "resourceSubscriptions": ["u:1"]}}})
    );
    let ack = listen(&mut pair, "1", r#"{"promptsListChanged":true}"#);
    assert_eq!(ack["params"], json!({"_meta": {TAG: 1}, "notifications": {"promptsListChanged": true}}));
    assert_eq!(pair.server.subscriptions(), 2);

    assert!(flush(&mut pair).is_empty());
    for _ in 0..1_000 {
        assert!(pair.server.publish(&Change::Tools));
        pair.server.publish(&Change::Resource("u:1"));
        pair.server.publish(&Change::Resource("u:2"));
        pair.server.publish(&Change::Resources);
        pair.server.publish(&Change::Prompts);
    }
    pair.silent();
    let mut messages = flush(&mut pair);
    messages.sort_by_key(|m| m.to_string());
    let mut expected = vec![
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {TAG: "s"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"_meta": {TAG: "s"}, "uri": "u:1"}}),
        json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed", "params": {"_meta": {TAG: 1}}}),
    ];
    expected.sort_by_key(|m| m.to_string());
    assert_eq!(messages, expected);
    assert!(flush(&mut pair).is_empty(), "told once");

    // Cancelled: nothing more for "s", not even what was already marked.
    pair.server.publish(&Change::Tools);
    assert!(matches!(pair.send(&cancel("\"s\"")), Some(Event::Cancelled { .. })));
    assert!(flush(&mut pair).is_empty());
    assert_eq!(pair.server.subscriptions(), 1);
}

/// U01, S-SUBS-04, S-CANCEL-01, S-CANCEL-03, S-WIRE-07: an orderly end tells each subscriber and takes no
/// new ones; calls go on.
#[test]
fn u01_close_ends_every_subscription() {
    let mut pair = Pair::new();
    listen(&mut pair, "\"s\"", r#"{"toolsListChanged":true}"#);
    listen(&mut pair, "1", r#"{"promptsListChanged":true}"#);
    let open = modern("2", "subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#);
    let Ok(Call::Listen(unacknowledged, params)) = pair.request(&open).typed() else { panic!() };
    let frame = modern("3", "tools/call", "\"name\":\"t\"");
    let (call, _) = pair.tool(&frame);
    pair.server.publish(&Change::Tools);
    pair.server.close(&mut pair.out);
    let messages = pair.messages();
    // What was due is told first.
    assert_eq!(messages[0]["method"], "notifications/tools/list_changed");
    for id in [json!("s"), json!(1)] {
        let of_id: Vec<_> =
            messages[1..].iter().filter(|m| m["params"]["requestId"] == id || m["id"] == id).collect();
        assert_eq!(of_id.len(), 2, "{messages:?}");
        assert_eq!(of_id[0]["method"], "notifications/cancelled");
        assert_eq!(
            of_id[1]["result"],
            json!({"resultType": "complete", "_meta": {
                "io.modelcontextprotocol/serverInfo": {"name": "fixture", "version": "1.0.0"}, TAG: id}})
        );
    }
    assert_eq!(messages.len(), 5);
    assert_eq!((pair.server.subscriptions(), pair.server.in_flight()), (0, 2));
    // One that was about to open is refused, and so is one that comes now.
    assert!(pair.server.acknowledge(unacknowledged, &params.notifications, &mut pair.out).is_written());
    let answer = pair.message();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32603)), "{answer}");
    let late = modern("4", "subscriptions/listen", r#""notifications":{}"#);
    assert_eq!(pair.error(&late)["error"]["code"], -32603);
    // Calls are answered as ever, and closing twice says nothing more.
    pair.server.close(&mut pair.out);
    pair.silent();
    assert!(pair.server.fail(call, &mcp_proto::rpc::Error::internal(), &mut pair.out).is_written());
    assert_eq!(pair.server.in_flight(), 0);
}

/// The honored part may be smaller than what was asked for: the rest is not told.
#[test]
fn only_the_honored_part_is_told() {
    let mut pair = Pair::new();
    let frame = modern(
        "1",
        "subscriptions/listen",
        r#""notifications":{"toolsListChanged":true,"promptsListChanged":true,"taskIds":["t"]}"#,
    );
    let Ok(Call::Listen(pending, _)) = pair.request(&frame).typed() else { panic!() };
    let honored = SubscriptionFilter::new().prompts_list_changed();
    assert!(pair.server.acknowledge(pending, &honored, &mut pair.out).is_written());
    assert_eq!(pair.message()["params"]["notifications"], json!({"promptsListChanged": true}));
    for change in
        [Change::Tools, Change::Prompts, Change::Resource("t"), Change::Task { id: "t", body: "{}" }]
    {
        pair.server.publish(&change);
    }
    let told = flush(&mut pair);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["method"], "notifications/prompts/list_changed");
}

/// Of a task the newest form is told, tagged.
#[test]
fn tasks_are_told_with_their_newest_form() {
    let mut pair = Pair::new();
    listen(&mut pair, "1", r#"{"taskIds":["a","b"]}"#);
    for body in [r#"{"taskId":"a","status":"working"}"#, r#"{"taskId":"a","status":"completed"}"#] {
        assert!(pair.server.publish(&Change::Task { id: "a", body }));
    }
    pair.server.publish(&Change::Task { id: "z", body: "{}" });
    assert_eq!(
        flush(&mut pair),
        [json!({"jsonrpc": "2.0", "method": "notifications/tasks",
            "params": {"_meta": {TAG: 1}, "taskId": "a", "status": "completed"}})]
    );
}

/// Bounds: subscriptions of a stream, and what one may name.
#[test]
fn subscriptions_are_bounded() {
    let mut pair = Pair::of(
        config()
            .limits(limits(|l| {
                l.max_listens = 2;
                l.max_subscribed_uris = 3;
                l.max_in_flight = 1;
            }))
            .build(),
    );
    let refused = |pair: &mut Pair, id: &str, notifications: &str| {
        let frame = modern(id, "subscriptions/listen", &format!(r#""notifications":{notifications}"#));
        let Ok(Call::Listen(pending, params)) = pair.request(&frame).typed() else { panic!() };
        assert!(pair.server.acknowledge(pending, &params.notifications, &mut pair.out).is_written());
        pair.message()["error"]["code"].as_i64()
    };
    assert_eq!(refused(&mut pair, "1", r#"{"resourceSubscriptions":["1","2","3","4"]}"#), Some(-32602));
    assert_eq!(
        refused(&mut pair, "1", r#"{"resourceSubscriptions":["1","2"],"taskIds":["3","4"]}"#),
        Some(-32602)
    );
    listen(&mut pair, "1", r#"{"resourceSubscriptions":["1","2","3"]}"#);
    listen(&mut pair, "2", "{}");
    assert_eq!(refused(&mut pair, "3", "{}"), Some(-32603));
    // Subscriptions do not take the place of calls.
    pair.open(&modern("4", "tools/call", "\"name\":\"t\""));
    assert_eq!(pair.error(&modern("5", "tools/call", "\"name\":\"t\""))["error"]["code"], -32603);
    pair.send(&cancel("1"));
    pair.send(&cancel("4"));
    listen(&mut pair, "6", "{}");
}

/// A legacy session hears of lists without asking and of resources it subscribed to; without tags.
#[test]
fn a_legacy_session_hears_of_what_is_declared() {
    for version in LEGACY {
        let mut pair = Pair::session(version);
        for change in [Change::Tools, Change::Prompts, Change::Resources, Change::Resource("u:1")] {
            pair.server.publish(&change);
        }
        assert_eq!(
            flush(&mut pair),
            ["tools", "prompts", "resources"].map(
                |list| json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")})
            )
        );
        let frame = legacy("1", "resources/subscribe", r#""uri":"u:1""#);
        let Ok(Call::Subscribe(pending, params)) = pair.request(&frame).typed() else { panic!() };
        assert_eq!(params.uri, "u:1");
        assert!(pair.server.respond(pending, &EmptyResult::new(), &mut pair.out).is_written());
        assert_eq!(pair.message(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        for _ in 0..10 {
            pair.server.publish(&Change::Resource("u:1"));
            pair.server.publish(&Change::Resource("u:2"));
        }
        assert_eq!(
            flush(&mut pair),
            [
                json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "u:1"}})
            ]
        );
        let frame = legacy("2", "resources/unsubscribe", r#""uri":"u:1""#);
        let Ok(Call::Unsubscribe(pending, _)) = pair.request(&frame).typed() else { panic!() };
        assert!(pair.server.respond(pending, &EmptyResult::new(), &mut pair.out).is_written());
        pair.text();
        pair.server.publish(&Change::Resource("u:1"));
        assert!(flush(&mut pair).is_empty());
    }
}

/// A subscription that the handler refused, or that the client gave up, is none.
#[test]
fn a_refused_subscription_is_none() {
    let mut pair = Pair::session(V::V2025_06_18);
    let frame = legacy("1", "resources/subscribe", r#""uri":"u:1""#);
    let Ok(Call::Subscribe(pending, _)) = pair.request(&frame).typed() else { panic!() };
    assert!(
        pair.server.fail(pending, &mcp_proto::rpc::Error::invalid_params("no"), &mut pair.out).is_written()
    );
    let Ok(Call::Subscribe(pending, _)) = pair.request(&frame).typed() else { panic!() };
    pair.send(&cancel("1"));
    assert_eq!(pair.server.respond(pending, &EmptyResult::new(), &mut pair.out), Delivery::Discarded);
    pair.text();
    pair.server.publish(&Change::Resource("u:1"));
    assert!(flush(&mut pair).is_empty());
}

/// The bound of a session holds however requests and answers are interleaved; asking again for a resource
/// that is subscribed to takes no room.
#[test]
fn a_session_subscribes_to_so_many_resources() {
    let mut pair = Pair::of(
        config()
            .limits(limits(|l| {
                l.max_subscribed_uris = 2;
                l.max_uri = 10;
            }))
            .build(),
    )
    .with_session(V::V2025_06_18, "{}");
    let frames: Vec<_> =
        (0..4).map(|n| legacy(&n.to_string(), "resources/subscribe", &format!(r#""uri":"u:{n}""#))).collect();
    let mut open = Vec::new();
    let mut refused = 0;
    for frame in &frames {
        match pair.send(frame) {
            Some(Event::Request(incoming)) => match incoming.typed() {
                Ok(Call::Subscribe(pending, _)) => open.push(pending),
                other => panic!("{other:?}"),
            },
            Some(Event::Rejected(violation)) => {
                assert_eq!(violation.error.code, -32602);
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((open.len(), refused), (2, 2));
    for pending in open {
        assert!(pair.server.respond(pending, &EmptyResult::new(), &mut pair.out).is_written());
    }
    pair.text();
    pair.open(&legacy("9", "resources/subscribe", r#""uri":"u:1""#));
    assert_eq!(
        pair.error(&legacy("10", "resources/subscribe", r#""uri":"u:456789012""#))["error"]["code"],
        -32602
    );
    assert_eq!(pair.error(&legacy("10", "resources/subscribe", ""))["error"]["code"], -32602);
    for n in 0..4 {
        pair.server.publish(&Change::Resource(&format!("u:{n}")));
    }
    assert_eq!(flush(&mut pair).len(), 2);
}

/// A modern subscription on the stream of a session: neither hears what is the other's.
#[test]
fn both_kinds_on_one_stream() {
    let mut pair = Pair::session(V::V2025_11_25);
    listen(&mut pair, "\"m\"", r#"{"resourceSubscriptions":["u:1"]}"#);
    pair.server.publish(&Change::Resource("u:1"));
    pair.server.publish(&Change::Tools);
    let told = flush(&mut pair);
    assert_eq!(told.len(), 2);
    assert_eq!(told[0]["params"]["_meta"][TAG], "m");
    assert_eq!(told[1], json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
}
