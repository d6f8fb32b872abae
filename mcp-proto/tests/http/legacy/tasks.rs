//! Tasks of 2025-11-25 in a session.

use serde_json::{Value, json};

use super::{net, text, yes};

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
