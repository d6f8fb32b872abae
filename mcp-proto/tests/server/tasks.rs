//! Answers that are tasks, in the form of each revision.

use mcp_proto::model::{Implementation, ProtocolVersion as V, ServerCapabilities};
use mcp_proto::server::{Channel, Config};
use serde_json::json;

use super::pair::{LEGACY, Pair, call, legacy, modern, modern_of};

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
    let missing = pair.server.become_task(pending, TASK, &mut pair.out).unwrap_err();
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
            Err(missing) => {
                assert!(version < V::V2025_11_25, "{version}");
                pair.silent();
                assert!(pair.server.refuse_missing(missing, &mut pair.out).is_written());
                assert_eq!(pair.message()["error"]["code"], -32600);
            }
        }
    }
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
