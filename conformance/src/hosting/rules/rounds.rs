//! Rounds of input: what a retry bears, and what nothing else may bear.

use serde_json::{Map, Value};

use super::{Ledger, params};
use crate::invariants::Breach;

/// A result that asked for input.
#[derive(Debug, Clone)]
pub(super) struct Round {
    id: Value,
    method: String,
    /// The parameters without metadata and without what belongs to a round.
    base: Value,
    state: Option<Value>,
    /// What was asked for, by key.
    requests: Map<String, Value>,
    used: bool,
}

impl Round {
    pub(super) fn new(id: &Value, method: &str, params: &Value, result: &Value) -> Self {
        Self {
            id: id.clone(),
            method: method.to_owned(),
            base: base(params),
            state: result.get("requestState").cloned(),
            requests: result.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default(),
            used: false,
        }
    }
}

fn base(params: &Value) -> Value {
    let mut base = params.clone();
    if let Value::Object(members) = &mut base {
        members.retain(|name, _| !["_meta", "inputResponses", "requestState"].contains(&name.as_str()));
    }
    base
}

/// Holds a request against the rounds that are due.
pub(super) fn check(ledger: &mut Ledger, id: &Value, method: &str, sent: &Value, breaches: &mut Vec<Breach>) {
    if method.starts_with("tasks/") {
        return;
    }
    let (state, responses) = (sent.get("requestState"), sent.get("inputResponses"));
    if state.is_none() && responses.is_none() {
        return;
    }
    let base = base(sent);
    let empty = Map::new();
    let given = responses.and_then(Value::as_object).unwrap_or(&empty);
    let keys = |round: &Round| round.requests.keys().all(|key| given.contains_key(key));
    let due = |round: &Round| !round.used && round.method == method && round.base == base;
    let exact = |round: &Round| due(round) && round.state.as_ref() == state && keys(round);
    let found = ledger.rounds.iter().position(exact).or_else(|| ledger.rounds.iter().position(due));
    let Some(index) = found else {
        let expected = "no input and no state of another request";
        breaches.push(ledger.must("round", &["C-MRTR-06"], "/params", expected, sent));
        return;
    };
    ledger.rounds[index].used = true;
    let round = ledger.rounds[index].clone();
    let at = "/params/requestState";
    match (&round.state, state) {
        (Some(wanted), got) if got != Some(wanted) => {
            let expected = format!("the state as it came, {wanted}");
            let got = got.unwrap_or(&Value::Null);
            breaches.push(ledger.must("round", &["C-MRTR-03", "C-MRTR-01"], at, &expected, got));
        }
        (None, Some(got)) => {
            breaches.push(ledger.must("round", &["C-MRTR-04"], at, "no state, since none came", got));
        }
        _ => {}
    }
    if round.id == *id {
        breaches.push(ledger.must("round", &["C-MRTR-05"], "/id", "another id than before", id));
    }
    if !keys(&round) {
        let expected = format!("an answer to each of {:?}", round.requests.keys().collect::<Vec<_>>());
        let got = responses.unwrap_or(&Value::Null);
        breaches.push(ledger.must("round", &["C-MRTR-02"], "/params/inputResponses", &expected, got));
    }
    for (key, value) in given {
        let at = format!("/params/inputResponses/{key}");
        let Some(request) = round.requests.get(key) else {
            breaches.push(ledger.must("round", &["C-MRTR-06"], &at, "an answer to what was asked", value));
            continue;
        };
        if ["method", "jsonrpc", "resultType"].iter().any(|name| value.get(*name).is_some()) {
            breaches.push(ledger.must("round", &["C-WIRE-06"], &at, "a bare result", value));
        }
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
        params::input(ledger, method, value, request.get("params"), &at, breaches);
    }
}
