//! Answers that are tasks, in the form of each revision.

use mcp_proto::model::{
    CallToolResult, CancelTaskResult, DetailedTask, Implementation, Json, ListTasksResult,
    ProtocolVersion as V, ServerCapabilities, TASKS_EXTENSION, Task, TaskStatus,
};
use mcp_proto::rpc::Error;
use mcp_proto::server::{Call, Channel, Config, Delivery, Event, NoTask, Progress};
use serde_json::json;

use super::pair::{LEGACY, Pair, call, initialize, legacy, modern, modern_of};

const TASK: &[u8] = br#"{"taskId":"x","status":"working","ttlMs":null}"#;
const EXTENSION: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// S-WIRE-18: flat in 2026-07-28, for a client that declared the extension on this request.
#[test]
fn a_modern_task_is_flat_and_declared() {
    let mut pair = Pair::new();
    let frame = modern_of("1", "tools/call", "\"name\":\"t\"", EXTENSION, "");
    let (pending, _) = pair.tool(&frame);
    assert!(pair.server.become_task(pending, TASK, &mut pair.out).unwrap().is_written());
    let result = &pair.message()["result"];
    assert_eq!(result["resultType"], "task");
    assert_eq!((&result["taskId"], &result["ttlMs"]), (&json!("x"), &json!(null)));
    assert!(result.get("task").is_none());

    let frame = call(V::LATEST, "2", "t");
    let (pending, _) = pair.tool(&frame);
    let Err(NoTask::MissingCapability(missing)) = pair.server.become_task(pending, TASK, &mut pair.out)
    else {
        panic!("expected a missing capability")
    };
    pair.silent();
    assert!(pair.server.refuse_missing(missing, &mut pair.out).is_written());
    let answer = pair.message();
    assert_eq!(answer["error"]["code"], -32021);
    assert_eq!(
        answer["error"]["data"]["requiredCapabilities"],
        json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
    );
}

/// Nested in 2025-11-25, for a request that asked for a task; in older revisions there is no such answer.
#[test]
fn a_legacy_task_is_nested_or_impossible() {
    for version in LEGACY {
        let mut pair = Pair::session(version);
        let frame = legacy("1", "tools/call", r#""name":"t","task":{"ttl":1000}"#);
        let (pending, _) = pair.tool(&frame);
        match pair.server.become_task(pending, TASK, &mut pair.out) {
            Ok(delivery) => {
                assert!(delivery.is_written() && version == V::V2025_11_25, "{version}");
                assert_eq!(
                    pair.message()["result"],
                    json!({"task": {"taskId": "x", "status": "working", "ttlMs": null}})
                );
            }
            Err(none) => {
                assert!(matches!(none, NoTask::NotAsked(_)) && version < V::V2025_11_25, "{version}");
                pair.silent();
                let pending = none.into_pending();
                assert!(pair.server.fail(pending, &Error::internal(), &mut pair.out).is_written());
                assert_eq!(pair.message()["error"]["code"], -32603);
            }
        }
    }
}

/// In 2025-11-25 the client decides: a call that did not ask for a task gets none, and can be answered
/// otherwise. [spec: 2025-11-25 basic/utilities/tasks]
#[test]
fn a_core_task_is_asked_for() {
    for task in ["", r#","task":null"#] {
        let mut pair = Pair::session(V::V2025_11_25);
        let frame = legacy("1", "tools/call", &format!(r#""name":"t"{task}"#));
        let (pending, _) = pair.tool(&frame);
        let Err(NoTask::NotAsked(pending)) = pair.server.become_task(pending, TASK, &mut pair.out) else {
            panic!("not asked for")
        };
        pair.silent();
        assert!(pair.server.respond(pending, &CallToolResult::text("x"), &mut pair.out).is_written());
        assert_eq!(pair.message()["result"]["content"][0]["text"], "x");
    }
}

/// Progress of a core task goes on under the key of its request, where it stood, and ends when told to.
#[test]
fn progress_goes_on_in_a_core_task() {
    let mut pair = Pair::session(V::V2025_11_25);
    let frame = legacy("1", "tools/call", r#""name":"t","task":{},"_meta":{"progressToken":7}"#);
    let (pending, _) = pair.tool(&frame);
    let key = pending.key();
    let Pair { server, out, .. } = &mut pair;
    assert!(server.progress(&pending, Progress::new(1.0), out).is_written());
    assert!(server.become_task(pending, TASK, out).unwrap().is_written());
    for (value, written) in [(1.0, false), (2.0, true), (0.5, false)] {
        assert_eq!(server.progress_of(key, Progress::new(value), out).is_written(), written);
    }
    server.end_task(key);
    assert_eq!(server.progress_of(key, Progress::new(3.0), out), Delivery::Discarded);
    let messages = pair.messages();
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0]["params"], json!({"progressToken": 7, "progress": 1}));
    assert_eq!(
        messages[2]["params"],
        json!({"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "x"}}, "progressToken": 7, "progress": 2})
    );
}

/// The methods of tasks: only in the form that the revision has and the server offers.
#[test]
fn task_methods_by_revision() {
    let config =
        |capabilities| Config::builder(Implementation::new("f", "1")).capabilities(capabilities).build();
    let core = || config(ServerCapabilities::new().tools(false).core_tasks(true, true));
    for version in LEGACY {
        for method in ["tasks/get", "tasks/cancel", "tasks/result", "tasks/list", "tasks/update"] {
            let mut pair = Pair::of(core()).with_session(version, "{}");
            let frame = legacy("1", method, r#""taskId":"x""#);
            if version == V::V2025_11_25 && method != "tasks/update" {
                pair.open(&frame);
            } else {
                assert_eq!(pair.error(&frame)["error"]["code"], -32601, "{version} {method}");
            }
        }
    }
    // The core form is no extension.
    let mut pair = Pair::of(core());
    assert_eq!(pair.error(&modern("1", "tasks/get", r#""taskId":"x""#))["error"]["code"], -32601);
}

/// The extension is none of 2025-11-25: `initialize` does not show it, and it gives no client tasks there.
/// Other extensions are shown. [spec: extensions/tasks]
#[test]
fn the_extension_is_not_of_2025_11_25() {
    let core = ServerCapabilities::new().tools(false).core_tasks(true, true);
    for (capabilities, shown) in [
        (ServerCapabilities::new().tools(false), json!({"tools": {}})),
        (
            core,
            json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}, "list": {}, "cancel": {}}}),
        ),
    ] {
        let both = capabilities.extension(TASKS_EXTENSION, Json::empty_object());
        let other = both.clone().extension("com.example/x", Json::empty_object());
        let mut with_other = shown.clone();
        with_other["extensions"] = json!({"com.example/x": {}});
        for (offered, shown) in [(both, shown), (other, with_other)] {
            let config = Config::builder(Implementation::new("f", "1")).capabilities(offered).build();
            let mut pair = Pair::of(config);
            assert!(pair.send(&initialize("0", "2025-11-25", EXTENSION)).is_none());
            assert_eq!(pair.message()["result"]["capabilities"], shown);
            let _ = pair.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            if shown["tasks"].is_null() {
                let answer = pair.error(&legacy("1", "tasks/get", r#""taskId":"x""#));
                assert_eq!(answer["error"]["code"], -32601);
            }
        }
    }
}

/// The answers to the methods of tasks have the types that the specification gives them, by revision.
#[test]
fn answers_to_task_methods() {
    let task = || Task::new("x", "2026-01-01T00:00:00Z");
    let failed = r#"{"content":[],"isError":true}"#;
    let body = |members: serde_json::Value| {
        let mut all = json!({"taskId": "x", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"});
        all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        all
    };
    for version in [V::V2025_11_25, V::V2026_07_28] {
        let mut pair = Pair::speaking(version);
        let mut ask = |method: &str| {
            let frame = if version.is_modern() {
                modern_of("1", method, r#""taskId":"x""#, EXTENSION, "")
            } else {
                legacy("1", method, r#""taskId":"x""#)
            };
            let Pair { server, out, .. } = &mut pair;
            let done = match server.handle(frame.as_bytes(), super::pair::at(0), out) {
                Some(Event::Request(incoming)) => match incoming.typed().unwrap() {
                    Call::GetTask(pending, _) => {
                        let result = DetailedTask::completed(task(), Json::parse(failed).unwrap());
                        server.respond(pending, &result, out)
                    }
                    Call::CancelTask(pending, _) => {
                        let result = CancelTaskResult::new(task().status(TaskStatus::Cancelled));
                        server.respond(pending, &result, out)
                    }
                    Call::ListTasks(pending, _) => {
                        server.respond(pending, &ListTasksResult::new([task()]).next_cursor("c"), out)
                    }
                    other => panic!("{other:?}"),
                },
                other => panic!("{method}: {other:?}"),
            };
            assert!(done.is_written());
            let mut answer = pair.message()["result"].take();
            if version.is_modern() {
                let head = answer.as_object_mut().unwrap();
                assert_eq!(head.remove("resultType").unwrap(), "complete");
                head.remove("_meta").unwrap();
            }
            answer
        };
        if version.is_modern() {
            let result: serde_json::Value = serde_json::from_str(failed).unwrap();
            assert_eq!(
                ask("tasks/get"),
                body(json!({"status": "completed", "ttlMs": null, "result": result}))
            );
            assert_eq!(ask("tasks/cancel"), json!({}));
        } else {
            assert_eq!(ask("tasks/get"), body(json!({"status": "failed", "ttl": null})));
            assert_eq!(ask("tasks/cancel"), body(json!({"status": "cancelled", "ttl": null})));
            let page = json!({"tasks": [body(json!({"status": "working", "ttl": null}))], "nextCursor": "c"});
            assert_eq!(ask("tasks/list"), page);
        }
    }
}
