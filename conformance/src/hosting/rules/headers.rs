//! The headers of a client's HTTP requests, and the annotations that ask for some of them.

use std::collections::BTreeSet;

use base64::Engine as _;
use serde_json::Value;

use super::{Ledger, STAMP};
use crate::http::{Headers, Mirrors, expected};
use crate::invariants::Breach;
use crate::requirement::Level;
use crate::revision::Revision;

use super::super::stage::WebRequest;

/// Holds a POST and its message against the rules.
pub(super) fn check(ledger: &Ledger, message: &Value, web: &WebRequest, breaches: &mut Vec<Breach>) {
    media(ledger, web, breaches);
    let stamp = message.pointer(STAMP);
    let method = message.get("method").and_then(Value::as_str);
    if stamp.is_some() {
        modern(ledger, message, web, breaches);
    } else if method != Some("initialize") {
        session(ledger, web, breaches);
    } else if let Some(id) = web.header("mcp-session-id") {
        let expected = "no session id with `initialize`";
        breaches.push(wrong(ledger, &["LC-SESS-03"], "Mcp-Session-Id", expected, Some(id)));
    }
}

/// Holds a request without a message against the rules.
pub(super) fn check_plain(ledger: &Ledger, web: &WebRequest, breaches: &mut Vec<Breach>) {
    if ledger.revision == Revision::V2024_11_05 || web.elsewhere {
        return;
    }
    if web.method == "GET" {
        let accept = web.header("accept").unwrap_or_default();
        if !accept.contains("text/event-stream") {
            let expected = "`text/event-stream`";
            breaches.push(wrong(ledger, &["LC-HTTP-03"], "Accept", expected, Some(accept)));
        }
    }
    if matches!(web.method.as_str(), "GET" | "DELETE") && ledger.in_use() {
        session(ledger, web, breaches);
    }
    secrets(ledger, web, breaches);
}

fn media(ledger: &Ledger, web: &WebRequest, breaches: &mut Vec<Breach>) {
    secrets(ledger, web, breaches);
    let content = web.header("content-type").unwrap_or_default();
    let media = content.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media != "application/json" {
        let ids = ["C-HTTP-01", "B-BASE-02"];
        breaches.push(wrong(ledger, &ids, "Content-Type", "`application/json`", Some(content)));
    }
    if ledger.revision == Revision::V2024_11_05 {
        return;
    }
    let accept = web.header("accept").unwrap_or_default().to_ascii_lowercase();
    if !(accept.contains("application/json") && accept.contains("text/event-stream")) {
        let expected = "both `application/json` and `text/event-stream`";
        breaches.push(wrong(ledger, &["C-HTTP-02"], "Accept", expected, Some(accept)));
    }
}

fn secrets(ledger: &Ledger, web: &WebRequest, breaches: &mut Vec<Breach>) {
    let query = web.target.split_once('?').map(|(_, query)| query).unwrap_or_default();
    if query.contains("access_token") || query.contains("token=") {
        let expected = "no token in the query";
        breaches.push(wrong(ledger, &["C-AUTH-22"], "the target", expected, Some(web.target.clone())));
    }
}

/// The headers of a request that says its version itself.
fn modern(ledger: &Ledger, message: &Value, web: &WebRequest, breaches: &mut Vec<Breach>) {
    let name = message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
    let call = message.get("method").and_then(Value::as_str) == Some("tools/call");
    let tool = ledger.tools.get(name).filter(|_| call);
    if let Some((_, Some(problem))) = tool {
        let expected = format!("no call of a tool with a bad annotation ({problem})");
        let got = name.to_owned();
        breaches.push(ledger.breach(
            "annotation",
            Level::Must,
            &["C-HDR-08"],
            "/params/name",
            &expected,
            got,
        ));
        return;
    }
    let mut lines = Headers::new();
    let mirrors = Mirrors::of(tool.map(|(tool, _)| tool));
    expected(message, ledger.revision.as_str(), &mirrors, &mut lines);
    let mut known = BTreeSet::new();
    for (name, wanted) in &lines {
        known.insert(name.to_ascii_lowercase());
        let ids: &[&'static str] = match name.as_str() {
            "MCP-Protocol-Version" => &["C-HDR-01", "C-HDR-02", "C-HTTP-03"],
            "Mcp-Method" => &["C-HDR-03", "C-HTTP-03"],
            "Mcp-Name" => &["C-HDR-04", "C-HDR-05", "C-TASK-14"],
            _ => &[
                "C-HDR-07",
                "C-HDR-12",
                "C-HDR-13",
                "C-HDR-14",
                "C-HDR-15",
                "C-HDR-17",
                "C-SEPX-01",
                "C-SEPX-03",
            ],
        };
        let got = web.header(name);
        if got.as_deref().is_none_or(|got| !says(got, wanted)) {
            let expected = format!("`{wanted}`, as the body says");
            breaches.push(wrong(ledger, ids, name, &expected, got));
        }
    }
    for (name, value) in &web.headers {
        let lower = name.to_ascii_lowercase();
        if lower.starts_with("mcp-param-") && !known.contains(&lower) {
            let ids = ["C-HDR-18", "C-HDR-19", "C-HDR-15"];
            let expected = "no such line, since no argument with a value asks for it";
            breaches.push(wrong(ledger, &ids, name, expected, Some(value.clone())));
        }
        if lower == "last-event-id" {
            let expected = "no such line in this revision";
            breaches.push(wrong(ledger, &["C-HTTP-08"], name, expected, Some(value.clone())));
        }
    }
}

/// Whether a line says the value. One that needs no encoding may be encoded.
fn says(got: &str, wanted: &str) -> bool {
    got == wanted || !wanted.starts_with("=?base64?") && decode(got).as_deref() == Some(wanted)
}

fn decode(text: &str) -> Option<String> {
    let inner = text.strip_prefix("=?base64?")?.strip_suffix("?=")?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(inner).ok()?;
    String::from_utf8(bytes).ok()
}

/// The headers of what belongs to a legacy session.
fn session(ledger: &Ledger, web: &WebRequest, breaches: &mut Vec<Breach>) {
    let here = ledger.speaks();
    if here == Revision::V2024_11_05 || here.is_modern() {
        return;
    }
    let got = web.header("mcp-session-id");
    if let Some(old) = got.as_ref().filter(|id| ledger.over.contains(id)) {
        // What was on its way when the session ended may say so.
        if web.informed {
            let expected = "no id of a session that is over";
            breaches.push(wrong(ledger, &["LC-SESS-03"], "Mcp-Session-Id", expected, Some(old.clone())));
        }
    } else if got != ledger.session && ledger.in_use() {
        let expected = match &ledger.session {
            Some(id) => format!("`{id}`"),
            None => "no such line, since the server gave no id".to_owned(),
        };
        breaches.push(wrong(ledger, &["LC-SESS-02"], "Mcp-Session-Id", &expected, got));
    }
    let version = web.header("mcp-protocol-version");
    let settled = ledger.settled.is_some();
    if here >= Revision::V2025_06_18
        && ledger.in_use()
        && settled
        && version.as_deref() != Some(here.as_str())
    {
        let expected = format!("`{here}`");
        breaches.push(wrong(ledger, &["LC-VER-01", "LC-VER-02"], "MCP-Protocol-Version", &expected, version));
    }
}

fn wrong(ledger: &Ledger, ids: &[&'static str], name: &str, expected: &str, got: Option<String>) -> Breach {
    let got = got.map_or_else(|| "no such line".to_owned(), |got| format!("`{}`", got.escape_debug()));
    ledger.breach("header", Level::Must, ids, "", &format!("header {name}: {expected}"), got)
}

/// Why a tool's annotations may not be followed, if so.
pub(in crate::hosting) fn annotation_problem(schema: &Value) -> Option<String> {
    let mut names = BTreeSet::new();
    let mut reached = 0;
    let problem = reachable(schema, &mut names, &mut reached, 0);
    // One that is not reached through `properties` alone counts as bad.
    problem.or_else(|| (count(schema, 0) > reached).then(|| "out of reach".to_owned()))
}

fn reachable(
    schema: &Value,
    names: &mut BTreeSet<String>,
    reached: &mut usize,
    depth: usize,
) -> Option<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (property, schema) in properties.into_iter().flatten().take(1000) {
        if let Some(name) = schema.get("x-mcp-header") {
            *reached += 1;
            let Some(name) = name.as_str() else { return Some(format!("{property}: not a string")) };
            let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            if name.is_empty() || !name.chars().all(token) {
                return Some(format!("{property}: `{}` is no name", name.escape_debug()));
            }
            if !names.insert(name.to_ascii_lowercase()) {
                return Some(format!("{property}: `{name}` stands twice"));
            }
            let kind = schema.get("type").and_then(Value::as_str);
            if !matches!(kind, Some("string" | "integer" | "boolean")) {
                return Some(format!("{property}: its type has no header"));
            }
        }
        if depth < 32
            && let Some(problem) = reachable(schema, names, reached, depth + 1)
        {
            return Some(problem);
        }
    }
    None
}

fn count(schema: &Value, depth: usize) -> usize {
    if depth > 32 {
        return 0;
    }
    let inner = |(name, value): (&String, &Value)| match value {
        // Below `properties` names are the user's.
        Value::Object(members) if name == "properties" => {
            members.values().map(|schema| count(schema, depth + 1)).sum()
        }
        _ => count(value, depth + 1),
    };
    match schema {
        Value::Object(members) => {
            usize::from(members.contains_key("x-mcp-header"))
                + members.iter().filter(|(name, _)| !data(name)).map(inner).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(|item| count(item, depth + 1)).sum(),
        _ => 0,
    }
}

/// Keywords below which stand values and no schemas.
fn data(name: &str) -> bool {
    matches!(name, "default" | "const" | "enum" | "examples")
}
