//! The shapes of what a client sends: parameters, capabilities, input for a server.

use serde_json::{Map, Value};

use super::Ledger;
use crate::invariants::Breach;
use crate::revision::Revision;

/// A member that a method's parameters have, and the type it has.
struct Member(&'static str, &'static str, bool, fn(&Value) -> bool, &'static str);

fn text(value: &Value) -> bool {
    value.is_string()
}

fn object(value: &Value) -> bool {
    value.is_object()
}

fn texts(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.values().all(Value::is_string))
}

fn level(value: &Value) -> bool {
    const LEVELS: [&str; 8] =
        ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    value.as_str().is_some_and(|level| LEVELS.contains(&level))
}

fn reference(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some_and(Value::is_string);
    match value.get("type").and_then(Value::as_str) {
        Some("ref/prompt") => has("name"),
        Some("ref/resource") => has("uri"),
        _ => false,
    }
}

fn argument(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some_and(Value::is_string);
    has("name") && has("value")
}

fn filter(value: &Value) -> bool {
    let Some(members) = value.as_object() else { return false };
    members.iter().all(|(name, value)| match name.as_str() {
        "resourceSubscriptions" | "taskIds" => {
            value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
        }
        _ => value.is_boolean(),
    })
}

/// Method, member, whether it must be there, its type.
const MEMBERS: [Member; 26] = [
    Member("tools/call", "name", true, text, "a string"),
    Member("tools/call", "arguments", false, object, "an object"),
    Member("prompts/get", "name", true, text, "a string"),
    Member("prompts/get", "arguments", false, texts, "an object of strings"),
    Member("resources/read", "uri", true, text, "a string"),
    Member("resources/subscribe", "uri", true, text, "a string"),
    Member("resources/unsubscribe", "uri", true, text, "a string"),
    Member("completion/complete", "ref", true, reference, "a reference to a prompt or a template"),
    Member("completion/complete", "argument", true, argument, "a name and a value"),
    Member("logging/setLevel", "level", true, level, "a level"),
    Member("subscriptions/listen", "notifications", true, filter, "a filter"),
    Member("tools/list", "cursor", false, text, "a string"),
    Member("prompts/list", "cursor", false, text, "a string"),
    Member("resources/list", "cursor", false, text, "a string"),
    Member("resources/templates/list", "cursor", false, text, "a string"),
    Member("tasks/list", "cursor", false, text, "a string"),
    Member("tasks/get", "taskId", true, text, "a string"),
    Member("tasks/cancel", "taskId", true, text, "a string"),
    Member("tasks/result", "taskId", true, text, "a string"),
    Member("tasks/update", "taskId", true, text, "a string"),
    Member("tasks/update", "inputResponses", true, object, "an object"),
    Member("initialize", "protocolVersion", true, text, "a string"),
    Member("initialize", "capabilities", true, object, "an object"),
    Member("initialize", "clientInfo", true, object, "an object"),
    Member("tools/call", "requestState", false, text, "a string"),
    Member("tools/call", "inputResponses", false, object, "an object"),
];

/// Holds the parameters of a request or notification against the shapes of its method.
pub(super) fn check(
    ledger: &Ledger,
    method: &str,
    params: &Value,
    _request: bool,
    breaches: &mut Vec<Breach>,
) {
    for Member(of, name, required, fits, expected) in &MEMBERS {
        if *of != method {
            continue;
        }
        let ids = ["LC-LIFE-01", "C-WIRE-02", "C-WIRE-04", "C-WIRE-07", "W01"];
        let ids: &[&'static str] = match method {
            "initialize" => &ids[..1],
            "subscriptions/listen" => &ids[1..2],
            "completion/complete" => &ids[2..],
            "tasks/update" => &ids[3..],
            _ => &ids[4..],
        };
        let at = format!("/params/{name}");
        match params.get(name) {
            None if *required => breaches.push(ledger.must("params", ids, &at, expected, params)),
            Some(value) if !fits(value) => breaches.push(ledger.must("params", ids, &at, expected, value)),
            _ => {}
        }
    }
    if method == "initialize" {
        implementation(ledger, &params["clientInfo"], "/params/clientInfo", breaches);
        capabilities(ledger, &params["capabilities"], breaches);
    }
    let here = ledger.speaks();
    if method == "completion/complete" && here < Revision::V2025_06_18 && params.get("context").is_some() {
        let expected = "no such member in this revision";
        breaches.push(ledger.must("params", &["W01"], "/params/context", expected, &params["context"]));
    }
    let meta = params.get("_meta");
    if let Some(meta) = meta.filter(|meta| !meta.is_object()) {
        breaches.push(ledger.must("params", &["W01"], "/params/_meta", "an object", meta));
    }
}

/// An identity has a name and a version.
pub(super) fn implementation(ledger: &Ledger, info: &Value, at: &str, breaches: &mut Vec<Breach>) {
    for name in ["name", "version"] {
        if !info.get(name).is_some_and(Value::is_string) {
            let ids = ["B-WIRE-02", "LC-LIFE-01"];
            breaches.push(ledger.must("identity", &ids, &format!("{at}/{name}"), "a string", info));
        }
    }
}

/// Declared capabilities are objects, and those of the revision.
pub(super) fn capabilities(ledger: &Ledger, declared: &Value, breaches: &mut Vec<Breach>) {
    for (name, value) in declared.as_object().into_iter().flatten() {
        if !value.is_object() {
            let at = format!("/capabilities/{name}");
            breaches.push(ledger.must("capabilities", &["W01"], &at, "an object", value));
        }
    }
    if ledger.revision.is_modern() && declared.get("tasks").is_some() {
        let expected = "no such capability in this revision";
        breaches.push(ledger.must("capabilities", &["B-BASE-01"], "/capabilities/tasks", expected, declared));
    }
}

/// A client uses only what the server declared.
pub(super) fn allowed(ledger: &Ledger, method: &str, params: &Value, breaches: &mut Vec<Breach>) {
    let path = match method {
        "tools/list" | "tools/call" => "/tools",
        "prompts/list" | "prompts/get" => "/prompts",
        "resources/list" | "resources/templates/list" | "resources/read" => "/resources",
        "resources/subscribe" | "resources/unsubscribe" => "/resources/subscribe",
        "completion/complete" if ledger.speaks() > Revision::V2024_11_05 => "/completions",
        "logging/setLevel" => "/logging",
        "tasks/list" => "/tasks/list",
        "tasks/cancel" => "/tasks/cancel",
        "tasks/get" | "tasks/result" => "/tasks",
        _ => return,
    };
    let got = Value::from(method);
    let declares = |path: &str| {
        ledger.server.pointer(path).is_some_and(|value| value.is_object() || *value == Value::Bool(true))
    };
    if !declares(path) {
        let expected = format!("only what the server declared, here `{}`", &path[1..]);
        let ids = ["LB-LIFE-03", "LB-LIFE-04"];
        breaches.push(ledger.must("capability", &ids, "/method", &expected, &got));
    }
    if params.get("task").is_some() && !declares("/tasks/requests/tools/call") {
        let expected = "no task, since the server declared none";
        breaches.push(ledger.must("capability", &["LC-TASK-01"], "/params/task", expected, &params["task"]));
    }
}

/// Holds what a client gives to a server against its shape; `asked` are the parameters, where they are known.
pub(super) fn input(
    ledger: &Ledger,
    method: &str,
    result: &Value,
    asked: Option<&Value>,
    at: &str,
    breaches: &mut Vec<Breach>,
) {
    let mut wrong = |ids: &[&'static str], name: &str, expected: &str| {
        let got = result.get(name).unwrap_or(result);
        breaches.push(ledger.must("input", ids, &format!("{at}/{name}"), expected, got));
    };
    match method {
        "ping" if result.as_object().is_none_or(|members| members.keys().any(|name| name != "_meta")) => {
            breaches.push(ledger.must("input", &["LB-PING-01"], at, "an empty object", result));
        }
        "roots/list" => {
            let Some(roots) = result.get("roots").and_then(Value::as_array) else {
                return wrong(&["C-WIRE-05", "W01"], "roots", "an array");
            };
            let local = |root: &Value| {
                root.get("uri").and_then(Value::as_str).is_some_and(|uri| uri.starts_with("file://"))
            };
            if !roots.iter().all(local) {
                wrong(&["C-ROOT-02"], "roots", "URIs that begin with `file://`");
            }
        }
        "sampling/createMessage" => {
            let role = result.get("role").and_then(Value::as_str);
            if !matches!(role, Some("user" | "assistant")) {
                wrong(&["C-WIRE-03", "W01"], "role", "`user` or `assistant`");
            }
            if !result.get("model").is_some_and(Value::is_string) {
                wrong(&["C-WIRE-03", "W01"], "model", "a string");
            }
            let content = result.get("content").unwrap_or(&Value::Null);
            let arrays = ledger.speaks() >= Revision::V2025_11_25;
            let block = |content: &Value| content.get("type").is_some_and(Value::is_string);
            let fits = match content {
                Value::Array(blocks) => arrays && blocks.iter().all(block),
                one => block(one),
            };
            if !fits {
                wrong(&["C-WIRE-03", "M07"], "content", "content as this revision has it");
            }
        }
        "elicitation/create" => elicited(ledger, result, asked, at, breaches),
        _ => {}
    }
}

fn elicited(ledger: &Ledger, result: &Value, asked: Option<&Value>, at: &str, breaches: &mut Vec<Breach>) {
    let mut wrong = |ids: &[&'static str], name: &str, expected: &str| {
        let got = result.get(name).unwrap_or(result);
        breaches.push(ledger.must("input", ids, &format!("{at}/{name}"), expected, got));
    };
    let action = result.get("action").and_then(Value::as_str);
    if !matches!(action, Some("accept" | "decline" | "cancel")) {
        wrong(&["C-WIRE-06", "M03"], "action", "`accept`, `decline` or `cancel`");
    }
    let arrays = ledger.speaks() >= Revision::V2025_11_25;
    let fits = |value: &Value| match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Array(items) => arrays && items.iter().all(Value::is_string),
        _ => false,
    };
    let content = result.get("content");
    if content.is_some_and(|content| content.as_object().is_none_or(|all| !all.values().all(fits))) {
        wrong(&["C-WIRE-06", "W01"], "content", "strings, numbers, booleans and what else this revision has");
    }
    let visit = asked.and_then(|asked| asked.get("mode")).and_then(Value::as_str) == Some("url");
    if visit && content.is_some() {
        wrong(&["W01", "M03"], "content", "no content for an address");
    }
    let required = asked.and_then(|asked| asked.pointer("/requestedSchema/required"));
    let empty = Map::new();
    let given = content.and_then(Value::as_object).unwrap_or(&empty);
    for name in required.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if action == Some("accept") && !given.contains_key(name) {
            wrong(&["LB-ELIC-01", "C-ELIC-21"], "content", "what the form requires");
            return;
        }
    }
}
