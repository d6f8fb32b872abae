use std::cell::RefCell;
use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_proto::model::{CallToolResult, Json, LoggingLevel, Meta, TaskSupport};
use mcp_proto::rpc::Error;
use mcp_proto::service::{Ctx, NoArguments, Progress, Server, Service, ToolError, tool};
use serde_json::{Value, json};

use crate::harness::{Client, request, turns};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    confirm: bool,
}

fn service() -> Service {
    Server::new("demo", "1")
        .add(
            tool("slow", |_, _: NoArguments| async move {
                turns(3).await;
                Ok("done")
            })
            .task(TaskSupport::Optional),
        )
        .add(
            tool("failing", |_, _: NoArguments| async move { Err::<String, _>(ToolError::new("no luck")) })
                .task(TaskSupport::Required),
        )
        .add(
            tool("broken", |_, _: NoArguments| async move {
                Err::<String, _>(ToolError::protocol(Error::new(-32000, "broken")))
            })
            .task(TaskSupport::Required),
        )
        .add(
            tool("asks", |ctx, _: NoArguments| async move {
                let answer: Confirm = ctx.ask("sure", "Sure?").await?;
                Ok(format!("{}", answer.confirm))
            })
            .task(TaskSupport::Optional),
        )
        .add(
            tool("forever", |_, _: NoArguments| async move {
                std::future::pending::<()>().await;
                Ok("never")
            })
            .task(TaskSupport::Optional),
        )
        .add(
            tool("later", |ctx, _: NoArguments| async move {
                let first: Confirm = ctx.ask("first", "First?").await?;
                let task = ctx.become_task().await;
                Ok(format!("{} {task}", first.confirm))
            })
            .becomes_task(),
        )
        .add(
            tool("marked", |_, _: NoArguments| async move {
                let meta = Meta::default().with("com.example/mark", Json::string("x"));
                Ok(CallToolResult::text("done").meta(meta))
            })
            .task(TaskSupport::Optional),
        )
        .add(
            tool("stuck", |ctx, _: NoArguments| async move {
                ctx.progress(Progress::new(1.0)).await;
                LATE.with_borrow_mut(|late| late.push(ctx.clone()));
                std::future::pending::<()>().await;
                Ok("never")
            })
            .task(TaskSupport::Optional),
        )
        .add(
            tool("reports", |ctx, _: NoArguments| async move {
                for step in 1..=2 {
                    ctx.progress(Progress::new(f64::from(step))).await;
                    ctx.log(LoggingLevel::Error, step).await;
                    turns(2).await;
                }
                // The work of a task that is over still runs here: nothing of it may be heard.
                LATE.with_borrow_mut(|late| late.push(ctx.clone()));
                Ok("done")
            })
            .task(TaskSupport::Optional),
        )
        .tool("plain", |_, _: NoArguments| async move { Ok("plain") })
        .build()
        .unwrap()
}

thread_local! {
    /// Contexts of calls that have ended.
    static LATE: RefCell<Vec<Ctx>> = const { RefCell::new(Vec::new()) };
}

fn extension() -> Value {
    json!({"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}})
}

/// K01: the extension's face, from creation to the end.
#[test]
fn k01_a_modern_task() {
    let mut client = Client::new(&service());
    client.send(&request(1, "tools/call", json!({"name":"slow"}), extension()));
    let seen = client.take();
    let created = &seen[0]["result"];
    assert_eq!(created["resultType"], "task");
    assert_eq!(created["status"], "working");
    assert_eq!(created["ttlMs"], 3_600_000);
    assert_eq!(created["createdAt"], "2026-07-28T09:30:01.000Z");
    for absent in ["task", "result", "ttl", "pollInterval", "inputRequests", "requestState"] {
        assert!(created[absent].is_null());
    }
    let got = client.modern(2, "tasks/get", json!({"taskId":created["taskId"]}), extension());
    assert_eq!(got["result"]["status"], "completed");
    assert_eq!(got["result"]["resultType"], "complete");
    assert_eq!(got["result"]["result"]["content"][0]["text"], "done");
    // Without the extension: no task, and none of its methods.
    assert_eq!(
        client.modern(3, "tools/call", json!({"name":"slow"}), json!({}))["result"]["content"][0]["text"],
        "done"
    );
    assert_eq!(
        client.modern(4, "tasks/get", json!({"taskId":created["taskId"]}), json!({}))["error"]["code"],
        -32021
    );
    assert_eq!(client.modern(5, "tools/call", json!({"name":"failing"}), json!({}))["error"]["code"], -32021);
    for method in ["tasks/result", "tasks/list"] {
        assert_eq!(client.modern(6, method, json!({}), extension())["error"]["code"], -32601);
    }
    assert_eq!(client.modern(7, "tasks/get", json!({"taskId":"nope"}), extension())["error"]["code"], -32602);
    client.pass(Duration::from_secs(3601));
    assert_eq!(
        client.modern(8, "tasks/get", json!({"taskId":created["taskId"]}), extension())["error"]["code"],
        -32602
    );
}

#[test]
fn a_modern_task_fails_or_reports_an_error() {
    let mut client = Client::new(&service());
    let mut end = |name: &str| {
        client.send(&request(1, "tools/call", json!({"name":name}), extension()));
        let id = client.take()[0]["result"]["taskId"].clone();
        client.modern(2, "tasks/get", json!({"taskId":id}), extension())["result"].clone()
    };
    let failing = end("failing");
    assert_eq!((&failing["status"], &failing["result"]["isError"]), (&json!("completed"), &json!(true)));
    let broken = end("broken");
    assert_eq!((&broken["status"], &broken["error"]["code"]), (&json!("failed"), &json!(-32000)));
    assert!(broken["result"].is_null());
}

#[test]
fn a_modern_task_asks_and_is_watched() {
    let mut client = Client::new(&service());
    client.send(&request(1, "tools/call", json!({"name":"asks"}), extension()));
    let id = client.take()[0]["result"]["taskId"].clone();
    let listen = client.modern(
        9,
        "subscriptions/listen",
        json!({"notifications":{"taskIds":[id, "foreign"]}}),
        extension(),
    );
    assert_eq!(listen["params"]["notifications"], json!({"taskIds":[id]}));
    let got = client.modern(2, "tasks/get", json!({"taskId":id}), extension());
    assert_eq!(got["result"]["status"], "input_required");
    assert_eq!(got["result"]["inputRequests"]["sure"]["method"], "elicitation/create");
    let update = json!({"taskId":id,"inputResponses":{"sure":{"action":"accept","content":{"confirm":true}},"other":{}}});
    client.send(&request(3, "tasks/update", update, extension()));
    let seen = client.take();
    assert_eq!(seen[0]["id"], 3);
    assert_eq!(seen[0]["result"].as_object().unwrap().keys().collect::<Vec<_>>(), ["_meta", "resultType"]);
    let last = seen.last().unwrap();
    assert_eq!(last["method"], "notifications/tasks");
    assert_eq!(last["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 9);
    assert_eq!(last["params"]["result"]["content"][0]["text"], "true");
}

/// A round of questions first, then a task.
#[test]
fn a_call_becomes_a_task_after_its_questions() {
    let mut client = Client::new(&service());
    let first = client.modern(1, "tools/call", json!({"name":"later"}), extension());
    assert_eq!(first["result"]["resultType"], "input_required");
    let retry = json!({"name":"later","requestState":first["result"]["requestState"],
        "inputResponses":{"first":{"action":"accept","content":{"confirm":true}}}});
    let task = client.modern(2, "tools/call", retry, extension());
    assert_eq!(task["result"]["resultType"], "task");
    let got = client.modern(3, "tasks/get", json!({"taskId":task["result"]["taskId"]}), extension());
    assert_eq!(got["result"]["result"]["content"][0]["text"], "true true");
}

fn core(client: &mut Client, id: u64, name: &str, task: Value) -> Value {
    client.send(&json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":name,"task":task}}));
    client.take().remove(0)
}

fn legacy() -> Client {
    Client::legacy(&service(), "2025-11-25", json!({"elicitation":{}}))
}

/// K01, K03: the core's face.
#[test]
fn k03_a_core_task() {
    let mut client = legacy();
    let created = core(&mut client, 1, "slow", json!({"ttl":60000}));
    let task = &created["result"]["task"];
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60000)));
    let ask = |client: &mut Client, method: &str, params: Value| {
        client.send(&json!({"jsonrpc":"2.0","id":5,"method":method,"params":params}));
        client.take().into_iter().find(|m| m["id"] == 5).unwrap()
    };
    let id = json!({"taskId":task["taskId"]});
    assert_eq!(ask(&mut client, "tasks/get", id.clone())["result"]["status"], "completed");
    let result = ask(&mut client, "tasks/result", id.clone());
    assert_eq!(result["result"]["content"][0]["text"], "done");
    assert_eq!(result["result"]["_meta"]["io.modelcontextprotocol/related-task"], id);
    assert!(result["result"]["resultType"].is_null());
    assert_eq!(ask(&mut client, "tasks/list", json!({}))["result"]["tasks"].as_array().unwrap().len(), 1);
    // K02
    assert_eq!(ask(&mut client, "tasks/cancel", id)["error"]["code"], -32602);
    // Metadata of the result stands beside the task's, in one object.
    let marked = core(&mut client, 2, "marked", json!({}));
    client.send(&json!({"jsonrpc":"2.0","id":6,"method":"tasks/result","params":{"taskId":marked["result"]["task"]["taskId"]}}));
    let result = client.take().into_iter().find(|m| m["id"] == 6).unwrap();
    assert_eq!(result.to_string().matches("_meta").count(), 1);
    assert_eq!(result["result"]["_meta"]["com.example/mark"], "x");
    assert!(result["result"]["_meta"]["io.modelcontextprotocol/related-task"].is_object());
    assert_eq!(result["result"]["content"][0]["text"], "done");
    // isError is a failed task here.
    let failing = core(&mut client, 2, "failing", json!({}));
    let id = json!({"taskId":failing["result"]["task"]["taskId"]});
    assert_eq!(ask(&mut client, "tasks/get", id.clone())["result"]["status"], "failed");
    assert_eq!(ask(&mut client, "tasks/result", id)["result"]["isError"], true);
    for (name, task) in [("plain", json!({})), ("slow", json!({"ttl":-1})), ("slow", json!({"ttl":1.5}))] {
        assert!(core(&mut client, 3, name, task)["error"].is_object(), "{name}");
    }
    client.send(&json!({"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"failing"}}));
    assert_eq!(client.one()["error"]["code"], -32601);
}

/// K02, K03: a waiter gets its answer when the task is cancelled; it stays cancelled.
#[test]
fn k03_a_waiter_is_answered() {
    let mut client = legacy();
    let created = core(&mut client, 1, "forever", json!({}));
    let id = json!({"taskId":created["result"]["task"]["taskId"]});
    client.send(&json!({"jsonrpc":"2.0","id":2,"method":"tasks/result","params":id}));
    assert!(client.take().is_empty());
    client.send(&json!({"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":id}));
    let seen = client.take();
    let of = |id: u64| seen.iter().find(|m| m["id"] == id).unwrap();
    assert_eq!(of(3)["result"]["status"], "cancelled");
    assert_eq!(of(2)["error"]["code"], -32602);
}

/// The questions of a core task are requests that name it.
#[test]
fn a_core_task_asks_by_requests() {
    let mut client = legacy();
    let created = core(&mut client, 1, "asks", json!({}));
    let id = created["result"]["task"]["taskId"].clone();
    client.send(&json!({"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":id}}));
    client.take();
    let mut client = legacy();
    client.send(&json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asks","task":{}}}));
    let seen = client.take();
    let question = seen.iter().find(|m| m["method"] == "elicitation/create").unwrap();
    let id = &seen[0]["result"]["task"]["taskId"];
    assert_eq!(&question["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id);
    client.send(&json!({"jsonrpc":"2.0","id":question["id"],"result":{"action":"accept","content":{"confirm":false}}}));
    client.send(&json!({"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":id}}));
    let result = client.take().into_iter().find(|m| m["id"] == 2).unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "false");
}

/// The progress token of a 2025-11-25 call is good until its task has ended; what belongs to the task says
/// so. [spec: 2025-11-25 basic/utilities/tasks#task-progress-notifications]
#[test]
fn a_core_task_reports_until_its_end() {
    let mut client = legacy();
    client.send(&json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{
        "name":"reports","task":{},"_meta":{"progressToken":"p"}}}));
    let seen = client.take();
    let task = json!({"taskId": seen[0]["result"]["task"]["taskId"]});
    let related = json!({"io.modelcontextprotocol/related-task": task});
    let of = |method: &str| -> Vec<_> {
        seen.iter().filter(|m| m["method"] == method).map(|m| m["params"].clone()).collect()
    };
    assert_eq!(
        of("notifications/progress"),
        [1, 2].map(|n| json!({"_meta": related, "progressToken": "p", "progress": n}))
    );
    assert_eq!(
        of("notifications/message"),
        [1, 2].map(|n| json!({"_meta": related, "level": "error", "data": n}))
    );
    let last = seen.last().unwrap();
    assert_eq!(
        (&last["method"], &last["params"]["status"]),
        (&json!("notifications/tasks/status"), &json!("completed"))
    );
    late(&mut client);
}

/// A cancelled task and one whose time is over are silent as well.
#[test]
fn a_core_task_is_silent_when_cancelled_or_expired() {
    for cancel in [true, false] {
        let mut client = legacy();
        client.send(&json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{
            "name":"stuck","task":{"ttl":1000},"_meta":{"progressToken":"p"}}}));
        let seen = client.take();
        assert_eq!(seen.iter().filter(|m| m["method"] == "notifications/progress").count(), 1);
        let id = &seen[0]["result"]["task"]["taskId"];
        if cancel {
            client.send(&json!({"jsonrpc":"2.0","id":2,"method":"tasks/cancel","params":{"taskId":id}}));
            assert!(client.take().iter().any(|m| m["result"]["status"] == "cancelled"));
        } else {
            client.pass(Duration::from_secs(2));
        }
        late(&mut client);
    }
}

/// Tasks of the extension have neither progress nor log messages. [spec: extensions/tasks]
#[test]
fn a_modern_task_does_not_report() {
    let mut client = Client::new(&service());
    let mut call = request(1, "tools/call", json!({"name":"reports"}), extension());
    call["params"]["_meta"]["progressToken"] = json!("p");
    call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    client.send(&call);
    let seen = client.take();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0]["result"]["resultType"], "task");
    late(&mut client);
}

/// Whatever a call says after its end is not heard.
fn late(client: &mut Client) {
    let late = LATE.take();
    for ctx in &late {
        assert!(!ctx.wants_progress());
        let mut cx = Context::from_waker(Waker::noop());
        let _ = std::pin::pin!(ctx.progress(Progress::new(99.0))).poll(&mut cx);
    }
    client.take().iter().for_each(|m| assert!(m["params"]["progress"].is_null(), "{m}"));
}

/// An answer that does not fit what was asked fails the update, not the task: it goes on waiting.
/// [spec: extensions/tasks]
#[test]
fn a_malformed_answer_fails_the_update_only() {
    let mut client = Client::new(&service());
    client.send(&request(1, "tools/call", json!({"name":"asks"}), extension()));
    let id = client.take()[0]["result"]["taskId"].clone();
    let mut update = |answer: Value| {
        let params = json!({"taskId":id,"inputResponses":{"sure":answer}});
        let answer = client.modern(2, "tasks/update", params, extension());
        (answer, client.modern(3, "tasks/get", json!({"taskId":id}), extension())["result"].clone())
    };
    for bad in [
        json!({}),
        json!(7),
        json!({"action":"maybe"}),
        json!({"action":"accept"}),
        json!({"action":"accept","content":{"confirm":"yes"}}),
        json!({"roots":[]}),
    ] {
        let (answer, task) = update(bad.clone());
        assert_eq!(answer["error"]["code"], -32602, "{bad}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("/params/inputResponses/sure"), "{message}");
        assert_eq!(task["status"], "input_required", "{bad}");
        assert!(task["inputRequests"]["sure"].is_object());
    }
    let (answer, task) = update(json!({"action":"accept","content":{"confirm":true}}));
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(
        (&task["status"], &task["result"]["content"][0]["text"]),
        (&json!("completed"), &json!("true"))
    );
}
