//! Listen streams of the modern era: acknowledged first, tagged always, only what was asked for.

use serde_json::Value;

use super::{Breach, Ledger};

const TAG: &str = "/_meta/io.modelcontextprotocol~1subscriptionId";

/// One `subscriptions/listen` request.
#[derive(Debug, Clone)]
pub(super) struct Listen {
    pub(super) id: Value,
    asked: Value,
    acknowledged: bool,
    ended: bool,
    /// Cancelled by us: what was on its way may still arrive.
    cancelled: bool,
}

impl Listen {
    pub(super) const fn new(id: Value, asked: Value) -> Self {
        Self { id, asked, acknowledged: false, ended: false, cancelled: false }
    }

    pub(super) const fn cancel(&mut self) {
        self.cancelled = true;
    }

    pub(super) const fn end(&mut self) {
        self.ended = true;
    }

    fn asks(&self, method: &str, params: &Value) -> bool {
        let flag = |name: &str| self.asked.get(name) == Some(&Value::Bool(true));
        let names = |name: &str| {
            let all = self.asked.get(name).and_then(Value::as_array).into_iter().flatten();
            all.filter_map(Value::as_str)
        };
        match method {
            "notifications/tools/list_changed" => flag("toolsListChanged"),
            "notifications/prompts/list_changed" => flag("promptsListChanged"),
            "notifications/resources/list_changed" => flag("resourcesListChanged"),
            "notifications/resources/updated" => {
                let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
                // The update may concern a part of what was subscribed to.
                names("resourceSubscriptions").any(|asked| uri.starts_with(asked))
            }
            "notifications/tasks" => {
                let id = params.get("taskId").and_then(Value::as_str).unwrap_or_default();
                names("taskIds").any(|asked| asked == id)
            }
            _ => false,
        }
    }
}

/// Whether a notification on a connection with a session belongs to a subscription all the same.
pub(super) fn concerns(ledger: &Ledger, params: &Value) -> bool {
    let names = |listen: &Listen| params.get("requestId") == Some(&listen.id);
    ledger.modern() && (params.pointer(TAG).is_some() || ledger.listens.iter().any(names))
}

pub(super) fn check(ledger: &mut Ledger, method: &str, params: &Value, breaches: &mut Vec<Breach>) {
    let at = format!("/params{TAG}");
    let tag = params.pointer(TAG).unwrap_or(&Value::Null).clone();
    if method == "notifications/cancelled" {
        let id = params.get("requestId").unwrap_or(&Value::Null);
        if !ledger.listens.iter().any(|listen| listen.id == *id) {
            let expected = "the id of a listen request";
            let ids = ["S-CANCEL-03", "S-CANCEL-02"];
            breaches.push(ledger.must("server-cancels", &ids, "/params/requestId", expected, id));
        }
        return;
    }
    let streamed = method.ends_with("/list_changed")
        || [
            "notifications/resources/updated",
            "notifications/subscriptions/acknowledged",
            "notifications/tasks",
        ]
        .contains(&method);
    if !streamed {
        return;
    }
    let Some(index) = ledger.listens.iter().position(|listen| listen.id == tag) else {
        let expected = "the id of a listen request, with its type";
        breaches.push(ledger.must("subscription-tag", &["S-META-07", "U01"], &at, expected, &tag));
        return;
    };
    let listen = ledger.listens[index].clone();
    let got = Value::from(method);
    if listen.ended {
        let expected = "nothing on a subscription that has ended";
        breaches.push(ledger.must("subscription-ended", &["U01", "S-SUBS-04"], &at, expected, &got));
    }
    if method == "notifications/subscriptions/acknowledged" {
        if listen.acknowledged {
            let expected = "one acknowledgment a subscription";
            breaches.push(ledger.must("acknowledge-once", &["S-SUBS-02"], "/method", expected, &got));
        }
        ledger.listens[index].acknowledged = true;
        honored(ledger, &listen, params, breaches);
        return;
    }
    if !listen.acknowledged && !listen.cancelled {
        let expected = "the acknowledgment first";
        let ids = ["S-SUBS-02", "S-SUBS-03"];
        breaches.push(ledger.must("acknowledge-first", &ids, "/method", expected, &got));
    }
    if !listen.asks(method, params) {
        let expected = format!("only what was asked for: {}", listen.asked);
        breaches.push(ledger.must("subscription-filter", &["S-SUBS-01"], "/method", &expected, &got));
    }
}

/// What is acknowledged is part of what was asked.
fn honored(ledger: &Ledger, listen: &Listen, params: &Value, breaches: &mut Vec<Breach>) {
    let Some(Value::Object(honored)) = params.get("notifications") else { return };
    for (name, value) in honored {
        let asked = listen.asked.get(name).unwrap_or(&Value::Bool(false));
        let within = match (value, asked) {
            (Value::Array(all), Value::Array(asked)) => all.iter().all(|one| asked.contains(one)),
            (Value::Array(all), _) => all.is_empty(),
            (Value::Bool(false), _) => true,
            _ => value == asked,
        };
        if !within {
            let at = format!("/params/notifications/{name}");
            let expected = format!("a part of what was asked, {asked}");
            breaches.push(ledger.must(
                "acknowledged-subset",
                &["S-WIRE-08", "S-SUBS-01"],
                &at,
                &expected,
                value,
            ));
        }
    }
}
