//! Responses: whose they are, and what a result holds in the era.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::calls::input_request;
use super::envelope::is_id;
use super::{Breach, Ledger, Request, schemas, tables, tasks};
use crate::revision::Revision;
use crate::text::shorten;

/// From here on not every whole number has a double of its own.
const EXACT: f64 = 9_007_199_254_740_992.0;

const TASKS: &str = "io.modelcontextprotocol/tasks";

pub(super) fn check(ledger: &mut Ledger, members: &Map<String, Value>, breaches: &mut Vec<Breach>) {
    let Some(request) = correlate(ledger, members, breaches) else { return };
    let Some(result) = members.get("result") else { return };
    if request.modern {
        modern(ledger, &request, result, breaches);
    } else {
        legacy(ledger, &request, result, breaches);
    }
    let complete = result.get("resultType").is_none_or(|kind| kind == "complete");
    if complete && !is_task(&request, result) {
        tables::result(ledger, &request.method, result, breaches);
        offered(ledger, &request, result, breaches);
        unique(ledger, &request.method, result, breaches);
        if request.method == "tools/list" {
            schemas::check(ledger, request.modern, result, breaches);
        }
        if matches!(request.method.as_str(), "tasks/get" | "tasks/cancel") {
            tasks::told(ledger, result, "/result", breaches);
        }
    }
}

/// What a list offers was declared, if it is known what was declared.
fn offered(ledger: &mut Ledger, request: &Request, result: &Value, breaches: &mut Vec<Breach>) {
    if request.method == "tools/call" {
        return embedded_resources(ledger, request, result, breaches);
    }
    let (member, capability, ids): (_, _, &[&'static str]) = match request.method.as_str() {
        "server/discover" => {
            ledger.discovered = Some(result.get("capabilities").cloned().unwrap_or_default());
            return;
        }
        "tools/list" => ("tools", "tools", &["S-TOOL-01", "LS-LIFE-06"]),
        "prompts/list" => ("prompts", "prompts", &["S-PROMPT-01", "LB-LIFE-03", "LB-LIFE-04", "LS-LIFE-06"]),
        "resources/list" => ("resources", "resources", &["S-RES-01", "LS-LIFE-06"]),
        "resources/templates/list" => ("resourceTemplates", "resources", &["S-RES-01", "LS-LIFE-06"]),
        _ => return,
    };
    let declared = if request.modern { &ledger.discovered } else { &ledger.server };
    let undeclared = declared.as_ref().is_some_and(|all| !super::declares(all, capability));
    let some = result.get(member).and_then(Value::as_array).is_some_and(|items| !items.is_empty());
    if undeclared && some {
        let at = format!("/result/{member}");
        let expected = format!("no {member}, as `{capability}` is not declared");
        breaches.push(ledger.must("offered-declared", ids, &at, &expected, &result[member]));
    }
}

/// A server whose tools embed resources declares them.
fn embedded_resources(ledger: &Ledger, request: &Request, result: &Value, breaches: &mut Vec<Breach>) {
    let declared = if request.modern { &ledger.discovered } else { &ledger.server };
    if declared.as_ref().is_none_or(|all| super::declares(all, "resources")) {
        return;
    }
    let blocks = result.get("content").and_then(Value::as_array);
    for (index, block) in blocks.into_iter().flatten().enumerate() {
        if block.get("type").is_some_and(|kind| kind == "resource") {
            let at = format!("/result/content/{index}");
            let expected = "no embedded resource, as `resources` is not declared";
            breaches.push(ledger.should("embedded-declared", &["S-TOOL-11"], &at, expected, block));
        }
    }
}

/// A name that stands twice in a page of tools names neither.
fn unique(ledger: &Ledger, method: &str, result: &Value, breaches: &mut Vec<Breach>) {
    if method != "tools/list" || ledger.revision < Revision::V2025_11_25 {
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, tool) in result.get("tools").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
        if !seen.insert(name) {
            let at = format!("/result/tools/{index}/name");
            let got = Value::from(name);
            breaches.push(ledger.should("unique-names", &["S-TOOL-10"], &at, "a name of its own", &got));
        }
    }
}

/// The open request that the response answers.
fn correlate(
    ledger: &mut Ledger,
    members: &Map<String, Value>,
    breaches: &mut Vec<Breach>,
) -> Option<Request> {
    let id = members.get("id").unwrap_or(&Value::Null);
    // The envelope's to report; once is enough.
    if !is_id(id) && (!id.is_null() || !members.contains_key("error")) {
        return None;
    }
    if id.is_null() {
        if ledger.unreadable == 0 {
            let expected = "the id of a request, as nothing unreadable was sent";
            breaches.push(ledger.must("echo-id", &["S-BASE-04", "S-BASE-01"], "/id", expected, id));
        } else {
            ledger.unreadable -= 1;
        }
        return None;
    }
    if let Some(request) = ledger.requests.iter_mut().find(|request| request.id == *id && !request.answered) {
        request.answered = true;
        let found = request.clone();
        ledger.listens.iter_mut().filter(|listen| listen.id == *id).for_each(super::Listen::end);
        return Some(found);
    }
    let answered = ledger.requests.iter().any(|request| request.id == *id);
    let (rule, expected) = if answered {
        ("one-response", "one response a request".to_owned())
    } else {
        ("echo-id", exact_id(ledger, id))
    };
    // JSON lets a reader limit the precision of numbers [RFC 8259, section 6].
    let rounded = |request: &Request| {
        let (sent, got) = (request.id.as_f64(), id.as_f64());
        sent.is_some_and(|sent| sent.abs() >= EXACT) && sent == got
    };
    let breach = if ledger.requests.iter().any(rounded) { Ledger::should } else { Ledger::must };
    let breach = breach(ledger, rule, &["S-BASE-01"], "/id", &expected, id);
    breaches.push(breach);
    None
}

/// Which id a response should have borne in place of this one: the one it was made from, if that can be seen.
pub(super) fn exact_id(ledger: &Ledger, got: &Value) -> String {
    let open: Vec<&Value> =
        ledger.requests.iter().filter(|request| !request.answered).map(|request| &request.id).collect();
    let digits = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned).parse::<f64>().ok();
    // A number in place of a text or the other way round, or what a double makes of a number.
    let alike = open.iter().copied().find(|id| digits(id).is_some() && digits(id) == digits(got));
    let only = || (open.len() == 1).then(|| open[0]);
    match alike.or_else(only) {
        Some(id) => {
            let kind = if id.is_string() { "string" } else { "number" };
            format!(
                "the id of the request exactly as it was sent, the {kind} {}",
                shorten(&id.to_string(), 100)
            )
        }
        None => "the id of an open request, exactly as it was sent".to_owned(),
    }
}

fn legacy(ledger: &mut Ledger, request: &Request, result: &Value, breaches: &mut Vec<Breach>) {
    for name in ["resultType", "ttlMs", "cacheScope"] {
        if let Some(value) = result.get(name) {
            let expected = format!("no `{name}` in the legacy era");
            breaches.push(ledger.must("era", &["V09"], &format!("/result/{name}"), &expected, value));
        }
    }
    match request.method.as_str() {
        "initialize" => {
            ledger.server = Some(result.get("capabilities").cloned().unwrap_or_default());
            ledger.follow(result.get("protocolVersion"));
        }
        "tasks/get" | "tasks/list" | "tasks/cancel" => {
            let at = "/_meta/io.modelcontextprotocol~1related-task";
            if let Some(related) = result.pointer(at) {
                let expected = "no such member, as the id of the task stands in the result";
                let at = format!("/result{at}");
                breaches.push(ledger.should("related-task", &["LB-TASK-21"], &at, expected, related));
            }
        }
        "tools/call" if is_task(request, result) => {
            let tasks = "tasks.requests.tools.call";
            if ledger.server.as_ref().is_some_and(|server| !super::declares(server, tasks)) {
                let expected = format!("no task, as `{tasks}` is not declared");
                let ids = ["LB-TASK-01", "LB-TASK-07"];
                let got = &result["task"];
                breaches.push(ledger.must("task-declared", &ids, "/result/task", &expected, got));
            }
            tasks::made(ledger, request, &result["task"], "/result/task", breaches);
        }
        "resources/unsubscribe" => {
            let uri = request.params.get("uri").and_then(Value::as_str).unwrap_or_default();
            ledger.subscribed.retain(|known| known != uri);
        }
        _ => {}
    }
    if is_task(request, result) {
        keep_token(ledger, request);
    }
}

fn modern(ledger: &mut Ledger, request: &Request, result: &Value, breaches: &mut Vec<Breach>) {
    match result.get("resultType") {
        Some(Value::String(kind)) => match kind.as_str() {
            "complete" => complete(ledger, request, result, breaches),
            "input_required" => input_required(ledger, request, result, breaches),
            "task" => task(ledger, request, result, breaches),
            _ => {
                let got = Value::from(kind.as_str());
                let expected = "`complete`, `input_required`, or a value of a negotiated extension";
                breaches.push(ledger.must(
                    "result-type",
                    &["B-BASE-03"],
                    "/result/resultType",
                    expected,
                    &got,
                ));
            }
        },
        other => {
            let got = other.unwrap_or(&Value::Null);
            breaches.push(ledger.must("result-type", &["S-BASE-03"], "/result/resultType", "a string", got));
        }
    }
    server_info(ledger, result, breaches);
}

fn complete(ledger: &Ledger, request: &Request, result: &Value, breaches: &mut Vec<Breach>) {
    if tables::cacheable(&request.method) {
        let ttl = result.get("ttlMs").unwrap_or(&Value::Null);
        if !(ttl.is_i64() || ttl.is_u64()) {
            breaches.push(ledger.must("cache-hints", &["S-CACHE-01"], "/result/ttlMs", "an integer", ttl));
        } else if ttl.as_i64().is_some_and(|ttl| ttl < 0) {
            breaches.push(ledger.must("cache-hints", &["S-CACHE-02"], "/result/ttlMs", "0 or more", ttl));
        }
        let scope = result.get("cacheScope").unwrap_or(&Value::Null);
        if !matches!(scope.as_str(), Some("public" | "private")) {
            let expected = "`public` or `private`";
            breaches.push(ledger.must("cache-hints", &["S-CACHE-01"], "/result/cacheScope", expected, scope));
        }
    }
    let structured = result.get("structuredContent").filter(|value| !value.is_object());
    if let Some(structured) = structured.filter(|_| request.method == "tools/call") {
        let blocks = result.get("content").and_then(Value::as_array);
        if !blocks.is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "text")) {
            let expected = "the structured content as text, too, as it is no object";
            breaches.push(ledger.must(
                "structured-text",
                &["S-SEPX-01"],
                "/result/content",
                expected,
                structured,
            ));
        }
    }
    if request.method == "subscriptions/listen" {
        let at = "/_meta/io.modelcontextprotocol~1subscriptionId";
        let tag = result.pointer(at).unwrap_or(&Value::Null);
        if *tag != request.id {
            let expected = format!("the id of the request, {}", request.id);
            breaches.push(ledger.must(
                "subscription-tag",
                &["S-WIRE-07"],
                &format!("/result{at}"),
                &expected,
                tag,
            ));
        }
    }
}

fn input_required(ledger: &mut Ledger, request: &Request, result: &Value, breaches: &mut Vec<Breach>) {
    if !["tools/call", "prompts/get", "resources/read"].contains(&request.method.as_str()) {
        let got = Value::from("input_required");
        let expected = format!("`complete` for {}", request.method);
        breaches.push(ledger.must(
            "input-required-where",
            &["S-MRTR-02"],
            "/result/resultType",
            &expected,
            &got,
        ));
    }
    let (asked, state) = (result.get("inputRequests"), result.get("requestState"));
    if asked.is_none() && state.is_none() {
        let expected = "`inputRequests` or `requestState`";
        breaches.push(ledger.must("input-required-members", &["S-MRTR-12"], "/result", expected, result));
    }
    if let Some(state) = state.filter(|state| !state.is_string()) {
        breaches.push(ledger.must("known-members", &["W01"], "/result/requestState", "a string", state));
    }
    for open in ledger.requests.iter_mut().filter(|open| open.id == request.id) {
        open.asked_back = true;
    }
    match asked {
        None => {}
        Some(Value::Object(asked)) => {
            for (key, value) in asked {
                let at = format!("/result/inputRequests/{}", key.replace('~', "~0").replace('/', "~1"));
                embedded(ledger, request, &at, value, breaches);
            }
        }
        Some(other) => {
            let at = "/result/inputRequests";
            breaches.push(ledger.must("known-members", &["S-MRTR-04", "W01"], at, "an object", other));
        }
    }
}

/// An input request is bare: a method and its params, of a kind this request declared.
fn embedded(ledger: &Ledger, request: &Request, at: &str, value: &Value, breaches: &mut Vec<Breach>) {
    for name in ["jsonrpc", "id"] {
        if let Some(found) = value.get(name) {
            let expected = format!("no `{name}` in an input request");
            breaches.push(ledger.must(
                "bare-input-request",
                &["S-WIRE-14"],
                &format!("{at}/{name}"),
                &expected,
                found,
            ));
        }
    }
    let method = value.get("method").and_then(Value::as_str).unwrap_or_default();
    if !["elicitation/create", "sampling/createMessage", "roots/list"].contains(&method) {
        let expected = "elicitation/create, sampling/createMessage or roots/list";
        let got = value.get("method").unwrap_or(&Value::Null);
        breaches.push(ledger.must(
            "input-request-kind",
            &["S-MRTR-04"],
            &format!("{at}/method"),
            expected,
            got,
        ));
        return;
    }
    let params = value.get("params").unwrap_or(&Value::Null);
    input_request(ledger, &request.capabilities, method, params, at, breaches);
}

fn task(ledger: &mut Ledger, request: &Request, result: &Value, breaches: &mut Vec<Breach>) {
    let declared = request.capabilities.get("extensions").is_some_and(|all| all.get(TASKS).is_some());
    if request.method != "tools/call" {
        let got = Value::from("task");
        breaches.push(ledger.must(
            "task-where",
            &["S-TASK-04"],
            "/result/resultType",
            "no task but for tools/call",
            &got,
        ));
    } else if !declared {
        let got = Value::from("task");
        let expected = "no task, as this request did not declare the extension";
        breaches.push(ledger.must("task-undeclared", &["S-TASK-01"], "/result/resultType", expected, &got));
    }
    if let Some(nested) = result.get("task") {
        breaches.push(ledger.must(
            "flat-task",
            &["S-WIRE-18"],
            "/result/task",
            "the members of the task beside `resultType`",
            nested,
        ));
    }
    tables::task(ledger, result, "/result", breaches);
    tasks::made(ledger, request, result, "/result", breaches);
    keep_token(ledger, request);
}

fn is_task(request: &Request, result: &Value) -> bool {
    request.method == "tools/call" && request.params.get("task").is_some() && result.get("task").is_some()
}

fn keep_token(ledger: &mut Ledger, request: &Request) {
    for open in ledger.requests.iter_mut().filter(|open| open.id == request.id) {
        open.became_task = true;
    }
}

/// At most one warning a connection: the same omission on every result says nothing new.
fn server_info(ledger: &mut Ledger, result: &Value, breaches: &mut Vec<Breach>) {
    let at = "/_meta/io.modelcontextprotocol~1serverInfo";
    match result.pointer(at) {
        Some(info) => {
            let named = ["name", "version"].iter().all(|name| info.get(name).is_some_and(Value::is_string));
            if !named {
                let expected = "`name` and `version`";
                breaches.push(ledger.must(
                    "server-info",
                    &["B-WIRE-02"],
                    &format!("/result{at}"),
                    expected,
                    info,
                ));
            }
        }
        None if !std::mem::replace(&mut ledger.anonymous, true) => {
            let got = Value::Null;
            let expected = "the identity of the server";
            breaches.push(ledger.should(
                "server-info",
                &["S-META-06"],
                &format!("/result{at}"),
                expected,
                &got,
            ));
        }
        None => {}
    }
}
