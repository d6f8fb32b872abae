//! Calls that become tasks. (revisions 6)

use mcp_proto::client::request::{
    CallTool, CancelTask, GetLegacyTask, GetTask, ListTasks, ListTools, TaskResult, UpdateTask,
};
use mcp_proto::client::{CallError, CallId, CallOptions, Event, Parked, Round, TaskUse, ViolationKind};
use mcp_proto::model::{
    ClientCapabilities, InputResponses, Json, ProtocolVersion as V, SubscriptionFilter, TaskStatus,
};
use serde_json::{Value, json};

use super::script::{Script, at, config, error, notification, result};

/// A task as 2026-07-28 has it, with further members.
fn task(status: &str, more: &Value) -> String {
    let mut task = json!({
        "resultType": "complete", "taskId": "t1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": null, "pollIntervalMs": 500,
    });
    for (name, value) in more.as_object().unwrap() {
        task[name] = value.clone();
    }
    task.to_string()
}

fn created() -> String {
    task("working", &json!({"resultType": "task"}))
}

fn form(key: &str) -> Value {
    json!({"inputRequests": {key: {"method": "elicitation/create", "params": {"message": key, "requestedSchema": {"type": "object", "properties": {}}}}}})
}

fn answers(keys: &[&'static str]) -> InputResponses {
    keys.iter().map(|key| (*key, Json::parse(r#"{"action":"accept"}"#).unwrap())).collect()
}

/// A call that has become a task.
fn started(script: &mut Script) -> CallId {
    let (call, sent) = script.tool("t", &CallOptions::new());
    match script.send(&result(&sent["id"], &created())) {
        Some(Event::TaskStatus { call: Some(of), task }) => {
            assert_eq!((of, &*task.task_id, task.status), (call, "t1", TaskStatus::Working));
        }
        other => panic!("{other:?}"),
    }
    assert!(script.sent().is_empty());
    call
}

/// Lets the time to the next poll pass and returns what is sent.
fn poll(script: &mut Script) -> Value {
    let due = script.client.next_deadline().unwrap();
    script.now = script.now.max(due);
    assert!(script.due().is_empty());
    let sent = script.one();
    assert_eq!((&sent["method"], &sent["params"]["taskId"]), (&json!("tasks/get"), &json!("t1")));
    sent
}

fn questions(event: Option<Event<'static>>) -> (CallId, Round) {
    match event {
        Some(Event::InputRequired { call, round }) => (call, round),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_task_is_asked_for_until_it_has_a_result() {
    // C-TASK-01, C-TASK-03, C-TASK-04
    let mut script = Script::modern();
    let call = started(&mut script);
    assert_eq!(script.client.next_deadline(), Some(at(1_500)));
    assert!(script.pass(1_499).is_empty() && script.sent().is_empty());
    let sent = poll(&mut script);
    assert_eq!(sent["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    // Nothing new: no event. The interval may change.
    assert!(script.send(&result(&sent["id"], &task("working", &json!({"pollIntervalMs": 2000})))).is_none());
    assert_eq!(script.client.next_deadline(), Some(at(3_500)));
    let sent = poll(&mut script);
    let outcome = json!({"result": {"content": [{"type": "text", "text": "42"}], "isError": true}});
    let done = script.completed(&result(&sent["id"], &task("completed", &outcome)));
    assert_eq!((done.call, done.method()), (call, "tools/call"));
    let answer = done.decode::<CallTool>().unwrap();
    assert_eq!(answer.is_error, Some(true));
    assert_eq!((script.client.open_calls(), script.client.next_deadline()), (0, None));
}

#[test]
fn a_task_that_is_over_otherwise() {
    let mut script = Script::modern();
    let call = started(&mut script);
    let sent = poll(&mut script);
    let outcome = json!({"error": {"code": -32603, "message": "boom"}});
    match script.failed(&result(&sent["id"], &task("failed", &outcome))) {
        (failed, CallError::Rpc(error)) => assert!(failed == call && error.message == "boom"),
        other => panic!("{other:?}"),
    }
    let call = started(&mut script);
    let sent = poll(&mut script);
    let (failed, reason) = script.failed(&result(&sent["id"], &task("cancelled", &json!({}))));
    assert!(failed == call && matches!(reason, CallError::TaskCancelled));
    // It is gone.
    let call = started(&mut script);
    let sent = poll(&mut script);
    let (failed, reason) = script.failed(&error(&sent["id"], -32602, ""));
    assert!(failed == call && matches!(reason, CallError::Rpc(_)));
    // A status without what it must bring along, and no task at all.
    for odd in [
        task("completed", &json!({})),
        task("failed", &json!({"error": 5})),
        task("zzz", &json!({})),
        "{}".to_owned(),
    ] {
        started(&mut script);
        let sent = poll(&mut script);
        let (_, reason) = script.failed(&result(&sent["id"], &odd));
        assert!(matches!(reason, CallError::Malformed(_)), "{odd}");
    }
    assert_eq!(script.client.open_calls(), 0);
}

#[test]
fn questions_of_a_task_are_asked_once_and_answered_bit_by_bit() {
    // C-TASK-06 to C-TASK-12
    let mut script = Script::modern();
    let call = started(&mut script);
    let sent = poll(&mut script);
    let (asked, round) = questions(script.send(&result(&sent["id"], &task("input_required", &form("a")))));
    assert!(asked == call && round.of_task && round.requests.len() == 1);
    // The same again with another one: only that is new.
    let sent = poll(&mut script);
    let mut both = form("a");
    both["inputRequests"]["b"] = form("b")["inputRequests"]["b"].clone();
    let (_, round) = questions(script.send(&result(&sent["id"], &task("input_required", &both))));
    assert!(round.requests.get("a").is_none() && round.requests.get("b").is_some());
    let sent = poll(&mut script);
    assert!(script.send(&result(&sent["id"], &task("input_required", &both))).is_none());

    let nothing = script.client.answer(call, &answers(&["zzz"]), script.now, &mut script.out);
    assert!(matches!(nothing, Err(CallError::Invalid(_))) && script.sent().is_empty());
    script.client.answer(call, &answers(&["b", "zzz"]), script.now, &mut script.out).unwrap();
    let update = script.one();
    assert_eq!((&update["method"], &update["params"]["taskId"]), (&json!("tasks/update"), &json!("t1")));
    assert_eq!(update["params"]["inputResponses"], json!({"b": {"action": "accept"}}));
    assert!(script.send(&result(&update["id"], r#"{"resultType":"complete"}"#)).is_none());
    // Answered, though the server is slow to notice: not asked again.
    let sent = poll(&mut script);
    assert!(script.send(&result(&sent["id"], &task("input_required", &both))).is_none());
    assert!(script.client.answer(call, &answers(&["b"]), script.now, &mut script.out).is_err());
    script.client.answer(call, &answers(&["a"]), script.now, &mut script.out).unwrap();
    let update = script.one();
    assert!(script.send(&result(&update["id"], "{}")).is_none());
    let sent = poll(&mut script);
    assert!(matches!(
        script.send(&result(&sent["id"], &task("working", &json!({})))),
        Some(Event::TaskStatus { .. })
    ));
    let sent = poll(&mut script);
    script.completed(&result(&sent["id"], &task("completed", &json!({"result": {"content": []}}))));

    // An update that is refused ends the call.
    let call = started(&mut script);
    let sent = poll(&mut script);
    let _ = script.send(&result(&sent["id"], &task("input_required", &form("a"))));
    script.client.answer(call, &answers(&["a"]), script.now, &mut script.out).unwrap();
    let update = script.one();
    assert_eq!(script.failed(&error(&update["id"], -32602, "")).0, call);
}

#[test]
fn a_task_may_ask_only_for_what_was_declared() {
    // C-TASK-15
    let tasks = ClientCapabilities::new().extension("io.modelcontextprotocol/tasks", Json::empty_object());
    let mut script = Script::modern_of(config().capabilities(tasks).build());
    let call = started(&mut script);
    let sent = poll(&mut script);
    let (failed, reason) = script.failed(&result(&sent["id"], &task("input_required", &form("a"))));
    assert!(failed == call && matches!(reason, CallError::Undeclared(_)));
    assert_eq!(script.one()["method"], "tasks/cancel");
}

#[test]
fn a_task_is_cancelled_by_its_own_method() {
    // C-TASK-13, LB-CANCEL-02
    let mut script = Script::modern();
    let call = started(&mut script);
    assert!(script.client.cancel(call, Some("no"), &mut script.out));
    let sent = script.one();
    assert_eq!((&sent["method"], &sent["params"]["taskId"]), (&json!("tasks/cancel"), &json!("t1")));
    assert!(script.send(&result(&sent["id"], "{}")).is_none());
    assert_eq!((script.client.open_calls(), script.client.next_deadline()), (0, None));
    // While a poll is on its way, that one request is cancelled too.
    let call = started(&mut script);
    let polled = poll(&mut script);
    assert!(script.client.cancel(call, None, &mut script.out));
    let sent = script.sent();
    assert_eq!(sent[0]["params"], json!({"requestId": polled["id"]}));
    assert_eq!(sent[1]["method"], "tasks/cancel");
    assert_eq!(script.strange(&result(&polled["id"], "{}")), ViolationKind::Late);
    // The cap of a call is one of its task.
    let options = CallOptions::new().max_time(std::time::Duration::from_secs(2));
    let (_, sent) = script.tool("t", &options);
    let _ = script.send(&result(
        &sent["id"],
        &task("working", &json!({"resultType": "task", "pollIntervalMs": 99_999})),
    ));
    let due = script.pass(5_000);
    assert!(matches!(due[..], [Event::Failed { error: CallError::TimedOut, .. }]), "{due:?}");
    assert_eq!(script.one()["method"], "tasks/cancel");
}

#[test]
fn a_task_can_be_left_to_the_caller() {
    let mut script = Script::modern();
    let options = CallOptions::new().tasks(TaskUse::Expose);
    let (_, sent) = script.tool("t", &options);
    let done = script.completed(&result(&sent["id"], &created()));
    assert_eq!(done.task().unwrap().poll_interval_ms, Some(500));
    assert!(done.decode::<CallTool>().is_err());
    assert_eq!(script.client.open_calls(), 0);
    let (_, sent) = script.call(&GetTask::new("t1"), &options);
    let done = script.completed(&result(&sent["id"], &task("working", &json!({}))));
    assert!(done.task().is_none());
    assert_eq!(done.decode::<GetTask>().unwrap().task.status, TaskStatus::Working);
    let (_, sent) = script.call(&UpdateTask::new("t1", answers(&["a"])), &options);
    assert_eq!(sent["params"]["inputResponses"], json!({"a": {"action": "accept"}}));
    script.completed(&result(&sent["id"], "{}")).decode::<UpdateTask>().unwrap();
    let (_, sent) = script.call(&CancelTask::new("t1"), &options);
    script.completed(&result(&sent["id"], "{}")).decode::<CancelTask>().unwrap();
    // What went with 2025-11-25.
    for failed in [
        script.client.call(&TaskResult::new("t1"), &options, script.now, &mut script.out),
        script.client.call(&ListTasks::new(), &options, script.now, &mut script.out),
    ] {
        assert!(matches!(failed, Err(CallError::NotOffered(_))));
    }
}

#[test]
fn a_task_nobody_declared_is_no_answer() {
    // B-BASE-03, C-TASK-02
    let mut script = Script::modern_of(config().capabilities(ClientCapabilities::new()).build());
    let (_, sent) = script.tool("t", &CallOptions::new());
    let (_, reason) = script.failed(&result(&sent["id"], &created()));
    assert!(matches!(reason, CallError::UnknownResultType(kind) if kind == "task"));
    let mut script = Script::modern();
    for odd in [r#"{"resultType":"task"}"#, r#"{"resultType":"task","taskId":5}"#] {
        let (_, sent) = script.tool("t", &CallOptions::new());
        let (_, reason) = script.failed(&result(&sent["id"], odd));
        assert!(matches!(reason, CallError::Malformed(_)), "{odd}");
    }
    // Two calls cannot be one task.
    started(&mut script);
    let (_, sent) = script.tool("t", &CallOptions::new());
    let (_, reason) = script.failed(&result(&sent["id"], &created()));
    assert!(matches!(reason, CallError::Malformed(_)));
    assert_eq!(script.client.open_calls(), 1);
}

#[test]
fn a_server_that_wants_to_be_asked_all_the_time_is_not() {
    let mut script = Script::modern();
    let (_, sent) = script.tool("t", &CallOptions::new());
    let _ = script
        .send(&result(&sent["id"], &task("working", &json!({"resultType": "task", "pollIntervalMs": 0}))));
    assert_eq!(script.client.next_deadline(), Some(at(1_020)));
}

#[test]
fn a_task_is_parked_and_polled_by_another_process() {
    // C-TASK-05
    let mut script = Script::modern();
    let call = started(&mut script);
    let parked = script.client.park(call).unwrap();
    assert_eq!((parked.task_id(), script.client.open_calls()), (Some("t1"), 0));
    assert!(script.sent().is_empty(), "it is not cancelled");
    let stored = serde_json::to_string(&parked).unwrap();
    let parked: Parked = serde_json::from_str(&stored).unwrap();
    for early in [true, false] {
        let mut other = if early { Script::started(config().build()) } else { Script::modern() };
        let probe = early.then(|| other.one());
        let call = other
            .client
            .resume(parked.clone(), &InputResponses::new(), &CallOptions::new(), other.now, &mut other.out)
            .unwrap();
        if let Some(probe) = probe {
            let _ = other.due();
            assert!(other.sent().is_empty());
            let _ = other.send(&result(&probe["id"], &super::script::discovered(&["2026-07-28"])));
        }
        let sent = poll(&mut other);
        let outcome = json!({"result": {"content": []}});
        let done = other.completed(&result(&sent["id"], &task("completed", &outcome)));
        assert_eq!((done.call, done.method()), (call, "tools/call"));
    }
}

#[test]
fn a_subscription_tells_of_tasks() {
    let mut script = Script::modern();
    let call = started(&mut script);
    let listen = script
        .client
        .listen(
            SubscriptionFilter::new().task("t1").task("t2"),
            &CallOptions::new(),
            script.now,
            &mut script.out,
        )
        .unwrap();
    let sent = script.one();
    let wire = &sent["id"];
    let tagged = |body: &str| {
        let mut params: Value = serde_json::from_str(body).unwrap();
        params.as_object_mut().unwrap().remove("resultType");
        params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": wire});
        notification("notifications/tasks", &params.to_string())
    };
    let ack = format!(
        r#"{{"notifications":{{"taskIds":["t1","t2"]}},"_meta":{{"io.modelcontextprotocol/subscriptionId":{wire}}}}}"#
    );
    let _ = script.send(&notification("notifications/subscriptions/acknowledged", &ack));
    // One that is nobody's call.
    match script.send(&tagged(&task("working", &json!({"taskId": "t2"})))) {
        Some(Event::TaskStatus { call, task }) => assert_eq!((call, &*task.task_id), (Some(listen), "t2")),
        other => panic!("{other:?}"),
    }
    // Questions and results of a call come the same way as by a poll.
    let (asked, _) = questions(script.send(&tagged(&task("input_required", &form("a")))));
    assert_eq!(asked, call);
    let outcome = json!({"result": {"content": []}});
    assert_eq!(script.completed(&tagged(&task("completed", &outcome))).call, call);
    assert_eq!(script.client.next_deadline(), None);
    assert_eq!(
        script.strange(&notification("notifications/tasks", &task("working", &json!({})))),
        ViolationKind::UnknownSubscription
    );
}

/// A task as 2025-11-25 has it.
fn legacy(status: &str) -> String {
    format!(
        r#"{{"taskId":"t1","status":"{status}","createdAt":"x","lastUpdatedAt":"x","ttl":60000,"pollInterval":500}}"#
    )
}

#[test]
fn k03_tasks_of_2025_11_25() {
    // LB-TASK-04, LB-TASK-05, LB-TASK-13, LC-TASK-01, LC-TASK-02, LC-TASK-03
    let options = CallOptions::new().task_ttl_ms(60_000).progress(true);
    for (status, by_notice) in
        [("completed", false), ("failed", false), ("input_required", false), ("completed", true)]
    {
        let mut script = Script::legacy(V::V2025_11_25);
        let (call, sent) = script.tool("t", &options);
        assert_eq!(sent["params"]["task"], json!({"ttl": 60000}));
        let created = format!(r#"{{"task":{}}}"#, legacy("working"));
        assert!(
            matches!(script.send(&result(&sent["id"], &created)), Some(Event::TaskStatus { call: Some(of), .. }) if of == call)
        );
        // LB-PROG-01: the token stays.
        let progress = notification(
            "notifications/progress",
            &format!(r#"{{"progressToken":{},"progress":1}}"#, sent["id"]),
        );
        assert!(matches!(script.send(&progress), Some(Event::Progress { call: of, .. }) if of == call));
        if by_notice {
            assert!(matches!(
                script.send(&notification("notifications/tasks/status", &legacy(status))),
                Some(Event::TaskStatus { call: Some(of), .. }) if of == call
            ));
        } else {
            let sent = poll(&mut script);
            assert_eq!(sent["params"], json!({"taskId": "t1"}));
            let news = script.send(&result(&sent["id"], &legacy(status)));
            assert!(matches!(news, Some(Event::TaskStatus { .. })));
        }
        let _ = script.due();
        let wanted = script.one();
        assert_eq!(
            (&wanted["method"], &wanted["params"]),
            (&json!("tasks/result"), &json!({"taskId": "t1"}))
        );
        // It blocks, and nothing is polled meanwhile; questions come as requests of the server.
        assert!(script.pass(120_000).is_empty() && script.sent().is_empty());
        let ask = super::script::ask(
            "1",
            "roots/list",
            r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}"#,
        );
        assert!(matches!(script.send(&ask), Some(Event::Asked(asked)) if asked.call == Some(call)));
        let body = r#"{"content":[],"isError":true,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}"#;
        let done = script.completed(&result(&wanted["id"], body));
        assert_eq!(done.call, call);
        assert_eq!(done.decode::<CallTool>().unwrap().is_error, Some(true));
        assert_eq!(script.strange(&progress), ViolationKind::UnknownProgress);
    }
}

#[test]
fn a_legacy_task_that_is_cancelled_or_exposed() {
    let options = CallOptions::new().task_ttl_ms(60_000);
    let created = format!(r#"{{"task":{}}}"#, legacy("working"));
    let mut script = Script::legacy(V::V2025_11_25);
    let (call, sent) = script.tool("t", &options);
    let _ = script.send(&result(&sent["id"], &created));
    assert!(script.client.cancel(call, None, &mut script.out));
    assert_eq!(script.one()["method"], "tasks/cancel");
    // By the server.
    let (call, sent) = script.tool("t", &options);
    let _ = script.send(&result(&sent["id"], &created));
    let sent = poll(&mut script);
    let _ = script.send(&result(&sent["id"], &legacy("cancelled")));
    let wanted = script.one();
    let (failed, reason) = script.failed(&error(&wanted["id"], -32602, ""));
    assert!(failed == call && matches!(reason, CallError::TaskCancelled));
    // Step by step.
    let (_, sent) = script.tool("t", &options.clone().tasks(TaskUse::Expose));
    let done = script.completed(&result(&sent["id"], &created));
    assert_eq!(done.task().unwrap().ttl_ms, Some(60_000));
    let (_, sent) = script.call(&GetLegacyTask::new("t1"), &options);
    let done = script.completed(&result(&sent["id"], &legacy("working")));
    assert_eq!(done.decode::<GetLegacyTask>().unwrap().status, TaskStatus::Working);
    let (_, sent) = script.call(&TaskResult::new("t1"), &options);
    script.completed(&result(&sent["id"], r#"{"content":[]}"#)).decode::<TaskResult>().unwrap();
    let (_, sent) = script.call(&ListTasks::new(), &options);
    let list = format!(r#"{{"tasks":[{}]}}"#, legacy("working"));
    assert_eq!(script.completed(&result(&sent["id"], &list)).decode::<ListTasks>().unwrap().tasks.len(), 1);
}

#[test]
fn a_task_is_asked_for_where_server_and_tool_have_them() {
    let tools = r#"{"tools":[
        {"name":"no","inputSchema":{"type":"object"}},
        {"name":"never","inputSchema":{"type":"object"},"execution":{"taskSupport":"forbidden"}},
        {"name":"may","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},
        {"name":"must","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}
    ]}"#
    .replace('\n', "");
    let mut script = Script::legacy(V::V2025_11_25);
    let (_, sent) = script.call(&ListTools::new(), &CallOptions::new());
    script.completed(&result(&sent["id"], &tools));
    let with = CallOptions::new().task_ttl_ms(1);
    for (name, options, asks) in [
        ("no", &with, None),
        ("never", &with, None),
        ("may", &with, Some(json!({"ttl": 1}))),
        ("may", &CallOptions::new(), None),
        ("must", &CallOptions::new(), Some(json!({}))),
        ("unlisted", &with, Some(json!({"ttl": 1}))),
        ("unlisted", &CallOptions::new(), None),
    ] {
        let (_, sent) = script.call(&CallTool::new(name), options);
        assert_eq!(sent["params"].get("task"), asks.as_ref(), "{name}");
    }
    // A result with a member `task` that was not asked for is a result.
    let (_, sent) = script.tool("no", &with);
    script.completed(&result(&sent["id"], &format!(r#"{{"content":[],"task":{}}}"#, legacy("working"))));
    for version in [V::V2025_06_18, V::LATEST] {
        let mut script = Script::speaking(version);
        let (_, sent) = script.tool("t", &with);
        assert_eq!(sent["params"].get("task"), None, "{version}");
    }
}
