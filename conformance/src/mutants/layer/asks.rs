//! Faults of what is asked of the user and the model, and of tasks.

use serde_json::{Value, json};

use super::envelope::answer;
use super::message::{CAPABILITIES, is_modern, is_result, method, put, take, text};
use super::{Plant, Turn};

pub(super) const FAULTS: &[(&str, Plant)] = &[
    ("any-state", Plant::Both(any_state, state_issued)),
    ("state-of-any-request", Plant::Both(state_of_any_request, state_of_a_request)),
    ("asks-as-complete", Plant::Down(asks_as_complete)),
    ("asks-nothing", Plant::Down(asks_nothing)),
    ("lists-ask", Plant::Down(lists_ask)),
    ("asks-what-it-likes", Plant::Down(asks_what_it_likes)),
    ("assumes-forms", Plant::Up(assumes_forms)),
    ("assumes-urls", Plant::Up(assumes_urls)),
    ("assumes-sampling-tools", Plant::Up(assumes_sampling_tools)),
    ("capability-unnamed", Plant::Down(capability_unnamed)),
    ("capability-is-bad-params", Plant::Down(capability_is_bad_params)),
    ("form-without-schema", Plant::Down(form_without_schema)),
    ("form-of-objects", Plant::Down(form_of_objects)),
    ("url-by-path", Plant::Down(url_by_path)),
    ("decline-is-accept", Plant::Up(decline_is_accept)),
    ("unnamed-elicitations", Plant::Down(unnamed_elicitations)),
    ("task-of-the-other-era", Plant::Down(task_of_the_other_era)),
    ("task-is-complete", Plant::Down(task_is_complete)),
    ("undeclared-tasks", Plant::Up(undeclared_tasks)),
    ("task-without-ttl", Plant::Down(task_without_ttl)),
    ("task-times-in-millis", Plant::Down(task_times_in_millis)),
    ("task-cancelled-twice", Plant::Up(task_cancelled_twice)),
    ("task-goes-on", Plant::Up(task_goes_on)),
    ("task-unknown-is-internal", Plant::Down(task_unknown_is_internal)),
    ("task-result-unrelated", Plant::Down(task_result_unrelated)),
    ("task-failure-is-completed", Plant::Down(task_failure_is_completed)),
    ("task-error-flag-is-failure", Plant::Down(task_error_flag_is_failure)),
    ("task-without-result", Plant::Down(task_without_result)),
    ("task-asks-in-silence", Plant::Down(task_asks_in_silence)),
    ("task-update-gives-the-task", Plant::Down(task_update_gives_the_task)),
    ("tasks-of-all", Plant::Up(tasks_of_all)),
];

/// Whatever state comes back, the latest that was given out counts.
fn any_state(turn: &mut Turn<'_>, mut message: Value) {
    if message.pointer("/params/requestState").is_some()
        && let Some(latest) = turn.memory.kept.last().cloned()
        && !turn.memory.kept.contains(&message["params"]["requestState"])
    {
        put(&mut message, "/params", "requestState", latest);
    }
    turn.on(message);
}

fn state_issued(turn: &mut Turn<'_>, message: Value) {
    if let Some(state) = message.pointer("/result/requestState") {
        let state = state.clone();
        turn.memory.kept.push(state);
    }
    turn.on(message);
}

/// State of one request is taken for another: the first request stands for all that bring it.
fn state_of_any_request(turn: &mut Turn<'_>, mut message: Value) {
    let state = text(&message, "/params/requestState").to_owned();
    if let Some(first) = turn.memory.named.get(&state) {
        let (name, arguments) = (first["params"]["name"].clone(), first["params"]["arguments"].clone());
        put(&mut message, "/params", "name", name);
        put(&mut message, "/params", "arguments", arguments);
    }
    turn.on(message);
}

fn state_of_a_request(turn: &mut Turn<'_>, message: Value) {
    if let Some(state) = message.pointer("/result/requestState").and_then(Value::as_str) {
        let request = turn.request.clone();
        turn.memory.named.insert(state.to_owned(), request);
    }
    turn.on(message);
}

fn asks(message: &Value) -> bool {
    text(message, "/result/resultType") == "input_required"
}

fn asks_as_complete(turn: &mut Turn<'_>, mut message: Value) {
    if asks(&message) {
        put(&mut message, "/result", "resultType", json!("complete"));
    }
    turn.on(message);
}

/// A result that wants input says neither what nor how to go on.
fn asks_nothing(turn: &mut Turn<'_>, mut message: Value) {
    if asks(&message) {
        take(&mut message, "/result", "inputRequests");
        take(&mut message, "/result", "requestState");
    }
    turn.on(message);
}

/// A list wants to know something first.
fn lists_ask(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "tools/list" && is_modern(&turn.request) {
        let question = json!({"ok": {"method": "roots/list", "params": {}}});
        put(&mut message, "", "result", json!({"resultType": "input_required", "inputRequests": question}));
    }
    turn.on(message);
}

/// A question is none of those that there are.
fn asks_what_it_likes(turn: &mut Turn<'_>, mut message: Value) {
    if asks(&message)
        && let Some(Value::Object(questions)) = message.pointer_mut("/result/inputRequests")
    {
        questions.values_mut().for_each(|question| put(question, "", "method", json!("user/ask")));
    }
    turn.on(message);
}

/// Declares something on behalf of the client, in either era.
fn declare(turn: &mut Turn<'_>, mut message: Value, capability: &str, value: &Value) {
    let legacy = "/params/capabilities";
    let place = if is_modern(&message) { CAPABILITIES } else { legacy };
    if is_modern(&message) || method(&message) == "initialize" {
        put(&mut message, place, capability, value.clone());
    }
    turn.on(message);
}

/// Every client is taken for one with forms.
fn assumes_forms(turn: &mut Turn<'_>, message: Value) {
    declare(turn, message, "elicitation", &json!({}));
}

/// Every client is taken for one that opens URLs.
fn assumes_urls(turn: &mut Turn<'_>, message: Value) {
    declare(turn, message, "elicitation", &json!({"form": {}, "url": {}}));
}

/// Every client is taken for one that samples with tools.
fn assumes_sampling_tools(turn: &mut Turn<'_>, message: Value) {
    declare(turn, message, "sampling", &json!({"tools": {}}));
}

const MISSING_CAPABILITY: i64 = -32021;

fn lacks_capability(message: &Value) -> bool {
    message.pointer("/error/code").is_some_and(|code| *code == json!(MISSING_CAPABILITY))
}

fn capability_unnamed(turn: &mut Turn<'_>, mut message: Value) {
    if lacks_capability(&message) {
        take(&mut message, "/error", "data");
    }
    turn.on(message);
}

fn capability_is_bad_params(turn: &mut Turn<'_>, mut message: Value) {
    if lacks_capability(&message) {
        put(&mut message, "/error", "code", json!(-32602));
    }
    turn.on(message);
}

/// Does something to each elicitation that the fixture asks for, in either era.
fn questions(message: &mut Value, change: fn(&mut Value)) {
    if method(message) == "elicitation/create"
        && let Some(params) = message.get_mut("params")
    {
        change(params);
    }
    let questions = message.pointer_mut("/result/inputRequests").and_then(Value::as_object_mut);
    for question in questions.into_iter().flat_map(|all| all.values_mut()) {
        if method(question) == "elicitation/create"
            && let Some(params) = question.get_mut("params")
        {
            change(params);
        }
    }
}

fn form_without_schema(turn: &mut Turn<'_>, mut message: Value) {
    questions(&mut message, |params| drop(take(params, "", "requestedSchema")));
    turn.on(message);
}

/// A form has a field that is an object.
fn form_of_objects(turn: &mut Turn<'_>, mut message: Value) {
    questions(&mut message, |params| {
        let nested = json!({"type": "object", "properties": {"inner": {"type": "string"}}});
        put(params, "/requestedSchema/properties", "more", nested);
    });
    turn.on(message);
}

/// A URL to open names no server.
fn url_by_path(turn: &mut Turn<'_>, mut message: Value) {
    questions(&mut message, |params| {
        if params.get("url").is_some() {
            put(params, "", "url", json!("/sign-in"));
        }
    });
    turn.on(message);
}

/// A user who declines is taken for one who accepts.
fn decline_is_accept(turn: &mut Turn<'_>, mut message: Value) {
    let accept = |answer: &mut Value| {
        if text(answer, "/action") == "decline" {
            put(answer, "", "action", json!("accept"));
            put(answer, "", "content", json!({"confirm": true, "region": "eu", "name": "suite", "ok": true}));
        }
    };
    if let Some(result) = message.get_mut("result") {
        accept(result);
    }
    if let Some(Value::Object(answers)) = message.pointer_mut("/params/inputResponses") {
        answers.values_mut().for_each(accept);
    }
    turn.on(message);
}

/// An elicitation at a URL has no id.
fn unnamed_elicitations(turn: &mut Turn<'_>, mut message: Value) {
    questions(&mut message, |params| drop(take(params, "", "elicitationId")));
    for one in
        message.pointer_mut("/error/data/elicitations").and_then(Value::as_array_mut).into_iter().flatten()
    {
        take(one, "", "elicitationId");
    }
    turn.on(message);
}

/// Whether it gives a task, in either era.
fn gives_task(message: &Value) -> bool {
    text(message, "/result/resultType") == "task" || message.pointer("/result/task").is_some()
}

/// A task is told in the way of the other era.
fn task_of_the_other_era(turn: &mut Turn<'_>, mut message: Value) {
    if text(&message, "/result/resultType") == "task"
        && let Some(mut task) = take(&mut message, "", "result")
    {
        take(&mut task, "", "resultType");
        put(&mut message, "", "result", json!({"resultType": "complete", "task": task}));
    }
    turn.on(message);
}

fn task_is_complete(turn: &mut Turn<'_>, mut message: Value) {
    if gives_task(&message) && is_modern(&turn.request) {
        put(&mut message, "/result", "resultType", json!("complete"));
    }
    turn.on(message);
}

/// Every client is taken for one that knows tasks.
fn undeclared_tasks(turn: &mut Turn<'_>, message: Value) {
    declare(turn, message, "extensions", &json!({"io.modelcontextprotocol/tasks": {}}));
}

fn task_without_ttl(turn: &mut Turn<'_>, mut message: Value) {
    for (place, name) in [("/result/task", "ttl"), ("/result", "ttlMs"), ("/result", "ttl")] {
        if gives_task(&message) || method(&turn.request).starts_with("tasks/") {
            take(&mut message, place, name);
        }
    }
    turn.on(message);
}

fn task_times_in_millis(turn: &mut Turn<'_>, mut message: Value) {
    for place in ["/result/task", "/result"] {
        if message.pointer(place).is_some_and(|task| task.get("createdAt").is_some()) {
            put(&mut message, place, "createdAt", json!(1_700_000_000_000_u64));
        }
    }
    turn.on(message);
}

/// A task that has ended can be cancelled.
fn task_cancelled_twice(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message) == "tasks/cancel" && !is_modern(&message) {
        put(&mut message, "", "method", json!("tasks/get"));
    }
    turn.on(message);
}

/// Cancelling a task is acknowledged, and it goes on.
fn task_goes_on(turn: &mut Turn<'_>, message: Value) {
    if method(&message) == "tasks/cancel" && is_modern(&message) {
        return answer(turn, &message, json!({"resultType": "complete"}));
    }
    turn.on(message);
}

fn task_unknown_is_internal(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request).starts_with("tasks/") {
        put(&mut message, "/error", "code", json!(-32603));
    }
    turn.on(message);
}

/// The result of a task does not say which task it belongs to.
fn task_result_unrelated(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "tasks/result" {
        take(&mut message, "/result", "_meta");
    }
    turn.on(message);
}

fn task_failure_is_completed(turn: &mut Turn<'_>, mut message: Value) {
    if text(&message, "/result/status") == "failed" {
        put(&mut message, "/result", "status", json!("completed"));
    }
    turn.on(message);
}

/// A result that is an error makes the task one that failed.
fn task_error_flag_is_failure(turn: &mut Turn<'_>, mut message: Value) {
    if is_modern(&turn.request)
        && message.pointer("/result/result/isError").is_some_and(|flag| *flag == json!(true))
    {
        put(&mut message, "/result", "status", json!("failed"));
    }
    turn.on(message);
}

fn task_without_result(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "tasks/get" && is_result(&message) {
        take(&mut message, "/result", "result");
    }
    turn.on(message);
}

/// A task that waits for input does not say for what.
fn task_asks_in_silence(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "tasks/get" {
        take(&mut message, "/result", "inputRequests");
    }
    turn.on(message);
}

fn task_update_gives_the_task(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "tasks/update" {
        let id = turn.request["params"]["taskId"].clone();
        put(&mut message, "/result", "taskId", id);
        put(&mut message, "/result", "status", json!("working"));
    }
    turn.on(message);
}

/// An unknown id stands for the task that was read last.
fn tasks_of_all(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message).starts_with("tasks/") {
        let id = text(&message, "/params/taskId").to_owned();
        if id.len() >= 16 {
            turn.memory.texts.insert("task".to_owned(), id);
        } else if let Some(known) = turn.memory.texts.get("task") {
            put(&mut message, "/params", "taskId", json!(known));
        }
    }
    turn.on(message);
}
