//! What a server asks of a user or a model, beyond the types of its members.

use std::collections::BTreeSet;

use serde_json::Value;

use super::shape::escape;
use super::{Breach, Ledger};
use crate::revision::Revision;

/// Names of fields that hold a secret whatever the form is about.
const SECRETS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "accesstoken",
    "refreshtoken",
    "clientsecret",
    "secretkey",
    "privatekey",
    "creditcard",
    "creditcardnumber",
    "cardnumber",
    "cvv",
    "cvc",
];

/// A form asks for no secret, and shows no link.
pub(super) fn form(ledger: &Ledger, params: &Value, at: &str, breaches: &mut Vec<Breach>) {
    let link = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str).unwrap_or_default();
        text.contains("https://") || text.contains("http://")
    };
    let fields = params.pointer("/requestedSchema/properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let at = format!("{at}/requestedSchema/properties/{}", escape(name));
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        if SECRETS.contains(&plain.to_ascii_lowercase().as_str()) {
            // What a name means is a guess, however good.
            let ids = ["S-ELIC-01", "S-ELIC-02", "LS-ELIC-01"];
            let expected = "no form that asks for a secret";
            breaches.push(ledger.should("no-secrets", &ids, &at, expected, &Value::from(name.as_str())));
        }
        for member in ["title", "description"] {
            if link(field.get(member)) {
                let at = format!("{at}/{member}");
                breaches.push(ledger.should("no-links", &["S-ELIC-21"], &at, "no URL", &field[member]));
            }
        }
    }
}

/// The address that a user is sent to.
pub(super) fn address(ledger: &Ledger, params: &Value, at: &str, breaches: &mut Vec<Breach>) {
    let Some(url) = params.get("url").and_then(Value::as_str) else { return };
    let at = format!("{at}/url");
    let got = Value::from(url);
    let Some((scheme, rest)) = url.split_once(':') else {
        return breaches.push(ledger.must("valid-url", &["S-ELIC-07"], &at, "a URL", &got));
    };
    if !is_scheme(scheme) || rest.is_empty() || rest.contains(char::is_whitespace) {
        return breaches.push(ledger.must("valid-url", &["S-ELIC-07"], &at, "a URL", &got));
    }
    let host = rest.trim_start_matches('/');
    let local = ["localhost", "127.", "[::1]"].iter().any(|name| host.starts_with(name));
    if scheme.eq_ignore_ascii_case("http") && !local {
        breaches.push(ledger.should("https-url", &["S-ELIC-22"], &at, "an https URL", &got));
    }
}

/// The scheme of a URI. [RFC 3986, section 3.1]
pub(super) fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Each use of a tool in the messages for a model is answered by the next message, which holds nothing else.
pub(super) fn dialog(ledger: &Ledger, params: &Value, at: &str, breaches: &mut Vec<Breach>) {
    let Some(Value::Array(messages)) = params.get("messages") else { return };
    let mut known = BTreeSet::new();
    let mut due: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("{at}/messages/{index}");
        if ledger.revision >= Revision::V2026_07_28 {
            let role = message.get("role").and_then(Value::as_str);
            if !matches!(role, Some("user" | "assistant")) || message.get("content").is_none() {
                let expected = "a `role` of `user` or `assistant`, and `content`";
                breaches.push(ledger.must("sampling-message", &["B-SAMP-03"], &at, expected, message));
            }
        }
        let content = message.get("content").unwrap_or(&Value::Null);
        let blocks = content.as_array().map_or_else(|| std::slice::from_ref(content), Vec::as_slice);
        let of = |kind: &str| blocks.iter().filter(|block| block["type"] == kind).collect::<Vec<_>>();
        let results = of("tool_result");
        let answered: Vec<_> = results.iter().filter_map(|result| result["toolUseId"].as_str()).collect();
        let from_user = message.get("role").is_some_and(|role| role == "user");
        let missing = due.iter().find(|id| !answered.contains(*id) || !from_user);
        if let Some(missing) = missing {
            let expected = format!("a user message with the result of tool use `{missing}`");
            let ids = ["S-SAMP-05", "S-SAMP-06"];
            breaches.push(ledger.must("tool-uses-answered", &ids, &at, &expected, message));
        }
        if from_user && !results.is_empty() && results.len() < blocks.len() {
            let expected = "tool results alone";
            breaches.push(ledger.must("tool-results-alone", &["S-SAMP-04"], &at, expected, message));
        }
        if let Some(odd) = answered.iter().find(|id| !known.contains(*id)) {
            let got = Value::from(*odd);
            let expected = "the id of an earlier tool use";
            breaches.push(ledger.must("tool-use-known", &["S-SAMP-07"], &at, expected, &got));
        }
        due = of("tool_use").iter().filter_map(|used| used["id"].as_str()).collect();
        known.extend(due.iter().copied());
    }
    if let Some(missing) = due.first() {
        let expected = format!("a user message with the result of tool use `{missing}` at the end");
        let ids = ["S-SAMP-05", "S-SAMP-06"];
        let got = messages.last().unwrap_or(&Value::Null);
        breaches.push(ledger.must("tool-uses-answered", &ids, &format!("{at}/messages"), &expected, got));
    }
}
