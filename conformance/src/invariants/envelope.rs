//! The JSON-RPC envelope.

use serde_json::{Map, Value};

use super::{Breach, Ledger};
use crate::revision::Revision;

pub(super) fn check(ledger: &Ledger, members: &Map<String, Value>, breaches: &mut Vec<Breach>) {
    let absent = Value::Null;
    match members.get("jsonrpc") {
        Some(Value::String(version)) if version == "2.0" => {}
        other => {
            let got = other.unwrap_or(&absent);
            breaches.push(ledger.must("jsonrpc", &["B-BASE-02"], "/jsonrpc", "\"2.0\"", got));
        }
    }
    let (known, what): (&[&str], _) = if members.contains_key("method") {
        (&["jsonrpc", "id", "method", "params"], "a request or notification")
    } else {
        (&["jsonrpc", "id", "result", "error"], "a response")
    };
    for (name, value) in members.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
        let expected = format!("no member `{name}` in {what}");
        breaches.push(ledger.must("envelope-members", &["B-BASE-02"], &format!("/{name}"), &expected, value));
    }
    if members.contains_key("method") {
        call(ledger, members, breaches);
    } else {
        response(ledger, members, breaches);
    }
}

fn call(ledger: &Ledger, members: &Map<String, Value>, breaches: &mut Vec<Breach>) {
    let method = members.get("method").unwrap_or(&Value::Null);
    if !method.is_string() {
        breaches.push(ledger.must("method-type", &["B-BASE-02"], "/method", "a string", method));
    }
    if let Some(id) = members.get("id") {
        let notification = method.as_str().is_some_and(|name| name.starts_with("notifications/"));
        if notification {
            breaches.push(ledger.must(
                "no-id-on-notifications",
                &["B-BASE-05"],
                "/id",
                "no id on a notification",
                id,
            ));
        } else if !is_id(id) {
            breaches.push(ledger.must(
                "id-type",
                &["LB-LIFE-08", "B-BASE-02"],
                "/id",
                "a string or an integer",
                id,
            ));
        }
    }
    if let Some(params) = members.get("params").filter(|params| !params.is_object()) {
        breaches.push(ledger.must("params-type", &["B-BASE-02"], "/params", "an object", params));
    }
}

fn response(ledger: &Ledger, members: &Map<String, Value>, breaches: &mut Vec<Breach>) {
    let whole = Value::Object(members.clone());
    match (members.get("result"), members.get("error")) {
        (Some(result), None) if !result.is_object() => {
            breaches.push(ledger.must("result-type", &["S-BASE-02", "W01"], "/result", "an object", result));
        }
        (Some(_), None) => {}
        (None, Some(error)) => self::error(ledger, members.get("id"), error, breaches),
        _ => breaches.push(ledger.must(
            "result-or-error",
            &["LB-LIFE-09", "S-BASE-02", "S-BASE-05", "B-BASE-02"],
            "",
            "either `result` or `error`",
            &whole,
        )),
    }
    match members.get("id") {
        Some(id) if is_id(id) => {}
        None | Some(Value::Null) if members.contains_key("error") => {}
        other => {
            let got = other.unwrap_or(&Value::Null);
            let expected = super::results::exact_id(ledger, got);
            breaches.push(ledger.must("id-type", &["S-BASE-01", "S-BASE-04"], "/id", &expected, got));
        }
    }
}

fn error(ledger: &Ledger, id: Option<&Value>, error: &Value, breaches: &mut Vec<Breach>) {
    let Value::Object(members) = error else {
        breaches.push(ledger.must("error-type", &["S-BASE-05", "W01"], "/error", "an object", error));
        return;
    };
    let code = members.get("code").unwrap_or(&Value::Null);
    if !code.is_i64() {
        breaches.push(ledger.must("error-code-type", &["S-BASE-06"], "/error/code", "an integer", code));
    }
    let message = members.get("message").unwrap_or(&Value::Null);
    if !message.is_string() {
        breaches.push(ledger.must(
            "error-message",
            &["S-BASE-05", "W01"],
            "/error/message",
            "a string",
            message,
        ));
    }
    for (name, value) in
        members.iter().filter(|(name, _)| !["code", "message", "data"].contains(&name.as_str()))
    {
        let at = format!("/error/{name}");
        breaches.push(ledger.must(
            "error-members",
            &["B-BASE-02"],
            &at,
            "`code`, `message` and `data` only",
            value,
        ));
    }
    let modern = id.and_then(|id| ledger.is_modern(id)).unwrap_or_else(|| !ledger.has_session());
    match code.as_i64() {
        Some(code) if modern => modern_code(ledger, code, members, breaches),
        Some(-32042) if ledger.revision == Revision::V2025_11_25 => {
            url_required(ledger, members.get("data").unwrap_or(&Value::Null), breaches);
        }
        _ => {}
    }
    if message.as_str().is_some_and(|text| text.trim_end().contains('\n')) {
        let expected = "one sentence";
        breaches.push(ledger.should("concise", &["S-BASE-07"], "/error/message", expected, message));
    }
}

/// The code that says where the user has to go first.
fn url_required(ledger: &Ledger, data: &Value, breaches: &mut Vec<Breach>) {
    let at = "/error/data/elicitations";
    let asked = data.get("elicitations").and_then(Value::as_array);
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
        let ids = ["LS-ELIC-06", "LS-ELIC-05"];
        return breaches.push(ledger.must("url-required", &ids, at, "the elicitations that are due", data));
    };
    for (index, one) in asked.iter().enumerate() {
        let text = |name: &str| one.get(name).is_some_and(Value::is_string);
        let at = format!("{at}/{index}");
        if one.get("mode").is_none_or(|mode| mode != "url") || !text("elicitationId") {
            let expected = "`mode` \"url\" and an `elicitationId`";
            breaches.push(ledger.must("url-required", &["LS-ELIC-09"], &at, expected, one));
        } else if !text("url") || !text("message") {
            breaches.push(ledger.must("url-required", &["S-ELIC-06"], &at, "`url` and `message`", one));
        }
    }
}

/// The codes that the modern revision closes, and the data of those it defines.
fn modern_code(ledger: &Ledger, code: i64, error: &Map<String, Value>, breaches: &mut Vec<Breach>) {
    let got = Value::from(code);
    let data = error.get("data").unwrap_or(&Value::Null);
    let mut push = |rule, ids: &[&'static str], at: &str, expected: &str, got: &Value| {
        breaches.push(ledger.must(rule, ids, at, expected, got));
    };
    match code {
        -32002 | -32042 => push("retired-code", &["B-ERR-06"], "/error/code", "no retired code", &got),
        -32020 if ledger.transport == crate::exchange::Transport::Stdio => {
            push(
                "code-meaning",
                &["B-ERR-05"],
                "/error/code",
                "no header mismatch where there are no headers",
                &got,
            );
        }
        -32021 if !data.get("requiredCapabilities").is_some_and(Value::is_object) => {
            let at = "/error/data/requiredCapabilities";
            push(
                "missing-capability-data",
                &["S-WIRE-02", "S-META-04"],
                at,
                "the missing capabilities",
                data,
            );
        }
        -32022 => {
            let supported = data.get("supported").and_then(Value::as_array);
            if !supported.is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string)) {
                push(
                    "unsupported-version-data",
                    &["S-WIRE-01"],
                    "/error/data/supported",
                    "an array of versions",
                    data,
                );
            }
            if !data.get("requested").is_some_and(Value::is_string) {
                push("unsupported-version-data", &["S-WIRE-01"], "/error/data/requested", "a version", data);
            }
        }
        -32099..=-32023 => {
            push("reserved-code", &["B-ERR-04"], "/error/code", "a code that is defined", &got);
        }
        -32019..=-32000 => {
            let expected = "no code from -32000 to -32019";
            breaches.push(ledger.should("closed-code", &["B-ERR-02"], "/error/code", expected, &got));
        }
        -32700 | -32603..=-32600 => {}
        -32768..=-32100 => {
            let expected = "a code outside the range that JSON-RPC reserves";
            breaches.push(ledger.should("reserved-range", &["B-ERR-07"], "/error/code", expected, &got));
        }
        _ => {}
    }
}

pub(super) fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}
