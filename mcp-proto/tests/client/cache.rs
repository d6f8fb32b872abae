//! Answers that stay fresh. (revisions 1.8)

use mcp_proto::client::request::{GetPrompt, ListPrompts, ListResources, ListTools, ReadResource, Request};
use mcp_proto::client::{CallOptions, Event};
use mcp_proto::model::{InputResponses, Json, ProtocolVersion as V, SubscriptionFilter};
use serde_json::json;

use super::script::{Script, at, config, limits, notification, result};

/// Calls, and answers with this body if the server is asked at all. Whether it was.
fn ask<R: Request>(script: &mut Script, request: &R, options: &CallOptions, body: &str) -> bool {
    let call = script.client.call(request, options, script.now, &mut script.out).unwrap();
    let sent = script.sent();
    match &sent[..] {
        [] => {
            match &script.due()[..] {
                [Event::Complete(done)] => {
                    assert!(done.call == call && done.cached && done.method() == request.method());
                }
                other => panic!("{other:?}"),
            }
            false
        }
        [sent] => {
            let done = script.completed(&result(&sent["id"], body));
            assert!(!done.cached);
            true
        }
        more => panic!("{more:?}"),
    }
}

fn tools(ttl: &str) -> String {
    format!(r#"{{"resultType":"complete","tools":[],"ttlMs":{ttl},"cacheScope":"private"}}"#)
}

fn read(ttl: u64) -> String {
    format!(r#"{{"resultType":"complete","contents":[],"ttlMs":{ttl},"cacheScope":"public"}}"#)
}

#[test]
fn an_answer_is_used_again_for_as_long_as_the_server_says() {
    // C-CACHE-03 to C-CACHE-07
    let options = CallOptions::new();
    for (ttl, millis) in
        [("0", 0), ("-5", 0), ("1000", 1000), ("1000.0", 1000), ("null", 0), ("\"1\"", 0), ("1e400", 0)]
    {
        let mut script = Script::modern();
        assert!(ask(&mut script, &ListTools::new(), &options, &tools(ttl)));
        if millis > 0 {
            script.now = at(1_000 + millis - 1);
            assert!(!ask(&mut script, &ListTools::new(), &options, ""), "{ttl}");
            // It says so and does not ask on its own. (C-CACHE-08)
            assert_eq!(script.client.next_deadline(), None);
        }
        script.now = at(1_000 + millis);
        assert!(ask(&mut script, &ListTools::new(), &options, &tools("1000")), "{ttl}");
        assert!(!ask(&mut script, &ListTools::new(), &options, ""), "{ttl}");
    }
    let mut script = Script::modern();
    assert!(ask(&mut script, &ListTools::new(), &options, r#"{"tools":[]}"#));
    assert!(ask(&mut script, &ListTools::new(), &options, r#"{"tools":[]}"#));
}

#[test]
fn an_answer_is_that_of_its_method_and_params() {
    // C-CACHE-01, C-CACHE-10
    let options = CallOptions::new();
    let mut script = Script::modern();
    assert!(ask(&mut script, &ListTools::new(), &options, &tools("1000")));
    assert!(ask(&mut script, &ListTools::new().cursor("a"), &options, &tools("1000")));
    assert!(ask(&mut script, &ListTools::new().cursor(""), &options, &tools("1000")));
    assert!(ask(&mut script, &ListPrompts::new(), &options, r#"{"prompts":[],"ttlMs":1000}"#));
    assert!(ask(&mut script, &ReadResource::new("a:b"), &options, &read(1000)));
    assert!(ask(&mut script, &ReadResource::new("a:c"), &options, &read(1000)));
    for _ in 0..2 {
        assert!(!ask(&mut script, &ListTools::new(), &options, ""));
        assert!(!ask(&mut script, &ListTools::new().cursor("a"), &options, ""));
        assert!(!ask(&mut script, &ReadResource::new("a:b"), &options, ""));
    }
    // Other methods have no such hints, whatever they say.
    for _ in 0..2 {
        assert!(ask(&mut script, &GetPrompt::new("p"), &options, r#"{"messages":[],"ttlMs":1000}"#));
    }
    // A caller may insist, and so refreshes.
    assert!(ask(&mut script, &ListTools::new(), &CallOptions::new().use_cache(false), &tools("0")));
    assert!(ask(&mut script, &ListTools::new(), &options, &tools("1000")));
    // Legacy servers say nothing of freshness.
    let mut script = Script::legacy(V::V2025_11_25);
    for _ in 0..2 {
        assert!(ask(&mut script, &ListTools::new(), &options, &tools("1000")));
    }
}

#[test]
fn a_change_ends_it_at_once() {
    let options = CallOptions::new();
    let mut script = Script::modern();
    let filter =
        SubscriptionFilter::new().tools_list_changed().resources_list_changed().resource("file:///a");
    let listen = script.client.listen(filter, &options, script.now, &mut script.out).unwrap();
    let wire = script.one()["id"].clone();
    let meta = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{wire}}}"#);
    let ack = format!(
        r#"{{"notifications":{{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///a"]}},{meta}}}"#
    );
    let _ = script.send(&notification("notifications/subscriptions/acknowledged", &ack));
    let fill = |script: &mut Script| {
        ask(script, &ListTools::new(), &options, &tools("100000"));
        ask(script, &ListResources::new(), &options, r#"{"resources":[],"ttlMs":100000}"#);
        for uri in ["file:///a", "file:///a/b", "file:///z"] {
            ask(script, &ReadResource::new(uri), &options, &read(100_000));
        }
    };
    let stale = |script: &mut Script| {
        let mut all = Vec::new();
        if ask(script, &ListTools::new(), &options, &tools("100000")) {
            all.push("tools");
        }
        if ask(script, &ListResources::new(), &options, r#"{"resources":[],"ttlMs":100000}"#) {
            all.push("resources");
        }
        for uri in ["file:///a", "file:///a/b", "file:///z"] {
            if ask(script, &ReadResource::new(uri), &options, &read(100_000)) {
                all.push(uri);
            }
        }
        all
    };
    fill(&mut script);
    assert!(stale(&mut script).is_empty());
    for (method, params, gone) in [
        ("notifications/tools/list_changed", format!("{{{meta}}}"), vec!["tools"]),
        ("notifications/resources/list_changed", format!("{{{meta}}}"), vec!["resources"]),
        // The resource, or a part of it: both readings are out of date.
        (
            "notifications/resources/updated",
            format!(r#"{{"uri":"file:///a",{meta}}}"#),
            vec!["file:///a", "file:///a/b"],
        ),
        (
            "notifications/resources/updated",
            format!(r#"{{"uri":"file:///a/b/c",{meta}}}"#),
            vec!["file:///a", "file:///a/b"],
        ),
    ] {
        match script.send(&notification(method, &params)) {
            Some(Event::Changed { subscription, .. }) => assert_eq!(subscription, Some(listen)),
            other => panic!("{other:?}"),
        }
        assert_eq!(stale(&mut script), gone, "{method}");
    }
    // An answer that was on its way when the change came is not kept.
    let (_, sent) = script.call(&ListTools::new(), &CallOptions::new().use_cache(false));
    let _ = script.send(&notification("notifications/tools/list_changed", &format!("{{{meta}}}")));
    script.completed(&result(&sent["id"], &tools("100000")));
    assert_eq!(stale(&mut script), ["tools"]);
}

#[test]
fn answers_after_rounds_are_never_kept() {
    // C-CACHE-02
    let options = CallOptions::new();
    let mut script = Script::modern();
    for _ in 0..2 {
        let (call, sent) = script.call(&ReadResource::new("a:b"), &options);
        let round = json!({"resultType": "input_required", "requestState": "s", "ttlMs": 9999, "inputRequests": {"k": {"method": "roots/list"}}});
        script.asked(&result(&sent["id"], &round.to_string()));
        let given: InputResponses = [("k", Json::parse(r#"{"roots":[]}"#).unwrap())].into_iter().collect();
        script.client.answer(call, &given, script.now, &mut script.out).unwrap();
        let sent = script.one();
        script.completed(&result(&sent["id"], &read(100_000)));
    }
}

/// A call that goes on with answers is one of its own, whatever is known of others.
#[test]
fn a_call_that_was_resumed_is_never_answered_by_what_is_kept() {
    let options = CallOptions::new();
    let mut script = Script::modern();
    let (call, sent) = script.call(&ReadResource::new("a:b"), &options);
    let round = json!({"resultType": "input_required", "requestState": "s", "inputRequests": {"k": {"method": "roots/list"}}});
    script.asked(&result(&sent["id"], &round.to_string()));
    let parked = script.client.park(call).unwrap();
    assert!(ask(&mut script, &ReadResource::new("a:b"), &options, &read(100_000)));
    assert!(!ask(&mut script, &ReadResource::new("a:b"), &options, &read(100_000)), "it is kept");
    let given: InputResponses = [("k", Json::parse(r#"{"roots":[]}"#).unwrap())].into_iter().collect();
    script.client.resume(parked, &given, &options, script.now, &mut script.out).unwrap();
    assert_eq!(script.one()["params"]["requestState"], "s");
}

#[test]
fn what_is_kept_is_bounded() {
    let options = CallOptions::new();
    let bounds = limits(|limits| {
        limits.max_cached = 3;
        limits.max_cached_bytes = 2000;
    });
    let mut script = Script::modern_of(config().limits(bounds).build());
    for uri in ["a:1", "a:2", "a:3", "a:4"] {
        assert!(ask(&mut script, &ReadResource::new(uri), &options, &read(100_000)));
    }
    // The oldest made room.
    assert!(!ask(&mut script, &ReadResource::new("a:4"), &options, ""));
    assert!(ask(&mut script, &ReadResource::new("a:1"), &options, &read(100_000)));
    let large = format!(r#"{{"contents":[],"x":"{}","ttlMs":100000}}"#, "x".repeat(1900));
    assert!(ask(&mut script, &ReadResource::new("a:5"), &options, &large));
    assert!(ask(&mut script, &ReadResource::new("a:5"), &options, &large));
    let middle = format!(r#"{{"contents":[],"x":"{}","ttlMs":100000}}"#, "x".repeat(1500));
    assert!(ask(&mut script, &ReadResource::new("a:6"), &options, &middle));
    assert!(!ask(&mut script, &ReadResource::new("a:6"), &options, ""));
    assert!(ask(&mut script, &ReadResource::new("a:4"), &options, &read(100_000)));
    // Replaced a thousand times, it is still one.
    for _ in 0..1000 {
        assert!(ask(
            &mut script,
            &ReadResource::new("a:1"),
            &CallOptions::new().use_cache(false),
            &read(100_000)
        ));
    }
    assert!(!ask(&mut script, &ReadResource::new("a:1"), &options, ""));
}

#[test]
fn another_process_is_asked_anew() {
    let options = CallOptions::new();
    let mut script = Script::modern();
    assert!(ask(&mut script, &ListTools::new(), &options, &tools("1000")));
    assert!(!ask(&mut script, &ListTools::new(), &options, ""));
    assert!(script.client.eof().is_none());
    assert!(matches!(script.start(), None | Some(Event::Ready)));
    assert!(ask(&mut script, &ListTools::new(), &options, &tools("1000")));
}
