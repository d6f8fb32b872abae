//! Notifications and requests of the subject.

use serde_json::{Map, Value};

use super::{Breach, Ledger, asks, subscriptions, tables, tasks};
use crate::revision::Revision;

pub(super) fn check(ledger: &mut Ledger, members: &Map<String, Value>, breaches: &mut Vec<Breach>) {
    let method = members.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let empty = Value::Object(Map::new());
    let params = members.get("params").unwrap_or(&empty);
    if let Some(id) = members.get("id") {
        if !method.starts_with("notifications/") {
            request(ledger, id, &method, params, breaches);
        }
        return;
    }
    tables::notification(ledger, &method, params, breaches);
    if matches!(method.as_str(), "notifications/tasks" | "notifications/tasks/status") {
        tasks::told(ledger, params, "/params", breaches);
    }
    match method.as_str() {
        "notifications/progress" => progress(ledger, params, breaches),
        "notifications/message" => log(ledger, params, breaches),
        _ if !ledger.has_session() || subscriptions::concerns(ledger, params) => {
            subscriptions::check(ledger, &method, params, breaches);
        }
        _ => unasked(ledger, &method, params, breaches),
    }
}

/// Whether the capabilities declare the path, such as `elicitation.url`.
pub(crate) fn declares(capabilities: &Value, path: &str) -> bool {
    let found = path.split('.').try_fold(capabilities, |value, step| value.get(step));
    // `listChanged: false` declares nothing.
    found.is_some_and(|value| *value != Value::Bool(false) && !value.is_null())
}

fn progress(ledger: &mut Ledger, params: &Value, breaches: &mut Vec<Breach>) {
    let token = params.get("progressToken").unwrap_or(&Value::Null);
    let given = |request: &&mut super::Request| request.token.as_ref() == Some(token);
    let Some(request) = ledger.requests.iter_mut().rev().find(given) else {
        let expected = "a token that a request gave";
        let ids: &[&'static str] =
            if tasks::reports(ledger) { &["S-PROG-03", "C06", "LB-PROG-01"] } else { &["S-PROG-03", "C06"] };
        breaches.push(ledger.must("progress-token", ids, "/params/progressToken", expected, token));
        return;
    };
    let before = request.progress;
    let late = request.answered && !request.became_task;
    let value = params.get("progress").cloned().unwrap_or_default();
    request.progress = value.as_f64().or(before);
    if late {
        let expected = "no progress after the response";
        breaches.push(ledger.must(
            "progress-after-response",
            &["S-PROG-04"],
            "/params/progressToken",
            expected,
            token,
        ));
    }
    tasks::progress(ledger, token, breaches);
    if let (Some(before), Some(now)) = (before, value.as_f64())
        && now <= before
    {
        let expected = format!("more than {before}");
        breaches.push(ledger.must(
            "progress-increases",
            &["S-PROG-01"],
            "/params/progress",
            &expected,
            &value,
        ));
    }
}

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

fn log(ledger: &Ledger, params: &Value, breaches: &mut Vec<Breach>) {
    let level = params.get("level").unwrap_or(&Value::Null);
    if ledger.has_session() {
        if ledger.server.as_ref().is_some_and(|server| !declares(server, "logging")) {
            let expected = "no log messages, as `logging` is not declared";
            breaches.push(ledger.must(
                "log-declared",
                &["S-LOG-01", "LS-LIFE-06"],
                "/method",
                expected,
                &Value::from("notifications/message"),
            ));
        }
        return;
    }
    let rank = |level: &Value| LEVELS.iter().position(|name| level == name);
    let asked = |request: &super::Request| {
        request.params.pointer("/_meta/io.modelcontextprotocol~1logLevel").and_then(rank)
    };
    let open = ledger.requests.iter().filter(|request| !request.answered);
    let Some(lowest) = open.filter_map(asked).min() else {
        let expected = "no log message, as no open request asks for any";
        breaches.push(ledger.must("log-asked", &["S-LOG-02"], "/params/level", expected, level));
        return;
    };
    if rank(level).is_some_and(|rank| rank < lowest) {
        let expected = format!("`{}` or graver", LEVELS[lowest]);
        breaches.push(ledger.must("log-level", &["S-LOG-02"], "/params/level", &expected, level));
    }
}

/// Notifications that a legacy server sends on its own need a declared capability or a subscription.
fn unasked(ledger: &Ledger, method: &str, params: &Value, breaches: &mut Vec<Breach>) {
    let got = Value::from(method);
    let negotiated: &[&'static str] = &["LB-LIFE-03", "LB-LIFE-04"];
    if let Some(path) = match method {
        "notifications/tools/list_changed" => Some("tools.listChanged"),
        "notifications/prompts/list_changed" => Some("prompts.listChanged"),
        "notifications/resources/list_changed" => Some("resources.listChanged"),
        _ => None,
    } {
        if ledger.server.as_ref().is_some_and(|server| !declares(server, path)) {
            let expected = format!("no {method}, as `{path}` is not declared");
            breaches.push(ledger.must("negotiated", negotiated, "/method", &expected, &got));
        }
        return;
    }
    let since = |revision| ledger.revision >= revision;
    match method {
        "notifications/cancelled" => {
            let id = params.get("requestId").unwrap_or(&Value::Null);
            if ledger.foreign_tasks.contains(id) {
                let expected = "`tasks/cancel` for a request that asked for a task";
                let at = "/params/requestId";
                breaches.push(ledger.must("cancels-task", &["LB-CANCEL-02"], at, expected, id));
            }
            // A task may be meant by an id in its metadata alone.
            if !id.is_null() && !ledger.foreign.contains(id) {
                let expected = "the id of a request of the server";
                breaches.push(ledger.must(
                    "cancels-own",
                    &["LB-CANCEL-01"],
                    "/params/requestId",
                    expected,
                    id,
                ));
            }
        }
        "notifications/resources/updated" if ledger.subscribed.is_empty() => {
            let uri = params.get("uri").unwrap_or(&Value::Null);
            let expected = "no update, as nothing is subscribed to";
            breaches.push(ledger.must("update-subscribed", &["LS-RES-02"], "/params/uri", expected, uri));
        }
        "notifications/elicitation/complete" | "notifications/tasks/status"
            if !since(Revision::V2025_11_25) =>
        {
            breaches.push(ledger.must(
                "negotiated",
                negotiated,
                "/method",
                "a notification of this revision",
                &got,
            ));
        }
        "notifications/subscriptions/acknowledged" | "notifications/tasks" => {
            breaches.push(ledger.must("era", &["V09"], "/method", "a notification of this era", &got));
        }
        _ => {}
    }
}

fn request(ledger: &mut Ledger, id: &Value, method: &str, params: &Value, breaches: &mut Vec<Breach>) {
    if !ledger.has_session() {
        let got = Value::from(method);
        let expected = "no request of the server";
        breaches.push(ledger.must(
            "no-server-requests",
            &["S-BASE-08", "S-STDIO-02"],
            "/method",
            expected,
            &got,
        ));
        return;
    }
    if ledger.foreign.contains(id) {
        breaches.push(ledger.must("fresh-id", &["LB-LIFE-07"], "/id", "an id the server has not used", id));
    }
    ledger.foreign.push(id.clone());
    if params.get("task").is_some() && ledger.revision == Revision::V2025_11_25 {
        ledger.foreign_tasks.push(id.clone());
    }
    if !ledger.opened && method != "ping" {
        let got = Value::from(method);
        let expected = "no request but `ping` before `initialized`";
        breaches.push(ledger.should("before-initialized", &["LS-LIFE-02"], "/method", expected, &got));
    }
    let known = match method {
        "ping" | "roots/list" | "sampling/createMessage" => true,
        "elicitation/create" => ledger.revision >= Revision::V2025_06_18,
        "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" => {
            ledger.revision == Revision::V2025_11_25
        }
        _ => false,
    };
    if !known {
        let got = Value::from(method);
        let ids = ["LB-LIFE-03", "LB-LIFE-04"];
        breaches.push(ledger.must("negotiated", &ids, "/method", "a request of this revision", &got));
        return;
    }
    let capabilities = ledger.client.clone();
    let part = match method {
        "sampling/createMessage" => "tasks.requests.sampling.createMessage",
        _ => "tasks.requests.elicitation.create",
    };
    if let Some(task) = params.get("task").filter(|_| !declares(&capabilities, part)) {
        let expected = format!("no task, as the client does not declare `{part}`");
        let ids = ["LB-TASK-02", "LB-TASK-03"];
        breaches.push(ledger.should("client-tasks", &ids, "/params/task", &expected, task));
    }
    input_request(ledger, &capabilities, method, params, "", breaches);
}

/// What a server asks of the user, the model or the file system needs a capability of the client, whether it
/// comes as a request (legacy) or inside a result (modern).
pub(super) fn input_request(
    ledger: &Ledger,
    capabilities: &Value,
    method: &str,
    params: &Value,
    at: &str,
    breaches: &mut Vec<Breach>,
) {
    let undeclared = |path: &str, ids: &[&'static str], breaches: &mut Vec<Breach>| {
        if !declares(capabilities, path) {
            let expected = format!("no {method} of this kind, as the client does not declare `{path}`");
            breaches.push(ledger.must(
                "client-capability",
                ids,
                &format!("{at}/method"),
                &expected,
                &Value::from(method),
            ));
        }
    };
    match method {
        "roots/list" => {
            undeclared("roots", &["S-MRTR-13", "LB-LIFE-03", "LB-LIFE-04", "S-ROOT-04"], breaches);
        }
        "sampling/createMessage" => {
            undeclared("sampling", &["S-MRTR-13", "LB-LIFE-03", "LB-LIFE-04"], breaches);
            if params.get("tools").is_some() || params.get("toolChoice").is_some() {
                undeclared("sampling.tools", &["S-SAMP-01", "S-MRTR-13"], breaches);
            }
            let context = params.get("includeContext").and_then(Value::as_str);
            if context.is_some_and(|context| context != "none") {
                let got = params.get("includeContext").unwrap_or(&Value::Null);
                let at = format!("{at}/params/includeContext");
                breaches.push(ledger.should(
                    "context",
                    &["S-SAMP-02"],
                    &at,
                    "`none`, or no such member",
                    got,
                ));
            }
            asks::dialog(ledger, params, &format!("{at}/params"), breaches);
            if context.is_some_and(|context| context != "none")
                && ledger.revision >= Revision::V2025_11_25
                && !declares(capabilities, "sampling.context")
            {
                let got = params.get("includeContext").unwrap_or(&Value::Null);
                let where_ = format!("{at}/params/includeContext");
                breaches.push(ledger.should("client-capability", &["S-SAMP-03"], &where_, "`none`", got));
            }
        }
        "elicitation/create" => {
            undeclared("elicitation", &["S-ELIC-03", "S-MRTR-13", "LB-LIFE-03"], breaches);
            let url = params.get("mode").is_some_and(|mode| mode == "url");
            let inner = format!("{at}/params");
            if url {
                asks::address(ledger, params, &inner, breaches);
            } else {
                asks::form(ledger, params, &inner, breaches);
            }
            let modes = capabilities.get("elicitation");
            let empty = modes.and_then(Value::as_object).is_some_and(Map::is_empty);
            if ledger.revision >= Revision::V2025_11_25 && modes.is_some() {
                if url {
                    undeclared("elicitation.url", &["S-ELIC-03", "S-MRTR-13"], breaches);
                } else if !empty {
                    undeclared("elicitation.form", &["S-ELIC-03", "S-MRTR-13"], breaches);
                }
            }
        }
        _ => {}
    }
    tables::input_request(ledger, method, params, at, breaches);
}
