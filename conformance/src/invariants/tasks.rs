//! Tasks of either era: whose they are, which questions they ask, when their progress ends.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Breach, Ledger, Request};
use crate::exchange::Transport;
use crate::revision::Revision;

/// A task that the server made.
#[derive(Debug, Clone)]
pub(super) struct Task {
    id: Value,
    /// The token that its request gave.
    token: Option<Value>,
    over: bool,
    /// How it ended, as a response told.
    end: Option<String>,
    /// What it has asked, by key.
    asked: BTreeMap<String, Value>,
}

/// Notes a task that was made for a request.
pub(super) fn made(
    ledger: &mut Ledger,
    request: &Request,
    task: &Value,
    at: &str,
    breaches: &mut Vec<Breach>,
) {
    let id = task.get("taskId").cloned().unwrap_or_default();
    if !id.is_string() {
        return;
    }
    if ledger.tasks.iter().any(|known| known.id == id) {
        let expected = "an id that no other task has";
        let ids = ["S-TASK-39", "LB-TASK-08"];
        breaches.push(ledger.must("task-ids-differ", &ids, &format!("{at}/taskId"), expected, &id));
    }
    if ledger.tasks.len() < 1000 {
        ledger.tasks.push(Task {
            id,
            token: request.token.clone(),
            over: false,
            end: None,
            asked: BTreeMap::new(),
        });
    }
}

/// Notes what is told of a task, by whatever message.
pub(super) fn told(ledger: &mut Ledger, task: &Value, at: &str, breaches: &mut Vec<Breach>) {
    let Some(index) = ledger.tasks.iter().position(|known| Some(&known.id) == task.get("taskId")) else {
        return;
    };
    let status = task.get("status").and_then(Value::as_str).unwrap_or_default();
    let known = &ledger.tasks[index];
    // Notifications may be late.
    if let Some(end) = known.end.as_ref().filter(|end| at == "/result" && *end != status) {
        let expected = format!("`{end}`, as the task has ended so");
        let ids = ["LB-TASK-10", "LB-TASK-09"];
        let at = format!("{at}/status");
        breaches.push(ledger.must("task-ended", &ids, &at, &expected, &Value::from(status)));
    }
    if ["completed", "failed", "cancelled"].contains(&status) {
        let known = &mut ledger.tasks[index];
        known.over = true;
        if at == "/result" {
            known.end.get_or_insert_with(|| status.to_owned());
        }
    }
    for (key, asked) in task.get("inputRequests").and_then(Value::as_object).into_iter().flatten() {
        // A question may be worded anew; what it asks for stays.
        let part = |name: &str| asked.pointer(&format!("/params/{name}")).cloned();
        let gist = json!([asked.get("method"), part("requestedSchema"), part("url"), part("messages")]);
        let before = ledger.tasks[index].asked.insert(key.clone(), gist.clone());
        if before.is_some_and(|before| before != gist) {
            let at = format!("{at}/inputRequests/{}", super::shape::escape(key));
            let ids = ["S-TASK-19", "S-TASK-17"];
            breaches.push(ledger.must("task-keys-differ", &ids, &at, "a key of its own", asked));
        }
    }
}

/// Progress of a task ends with it. Over HTTP messages of several streams have no order.
pub(super) fn progress(ledger: &Ledger, token: &Value, breaches: &mut Vec<Breach>) {
    let over = |task: &Task| task.token.as_ref() == Some(token) && task.over;
    if ledger.transport == Transport::Stdio && ledger.tasks.iter().any(over) {
        let expected = "no progress of a task that has ended";
        let at = "/params/progressToken";
        breaches.push(ledger.must("progress-of-ended-task", &["LB-PROG-02"], at, expected, token));
    }
}

/// Whether a task of 2025-11-25 goes on that reports progress.
pub(super) fn reports(ledger: &Ledger) -> bool {
    ledger.revision == Revision::V2025_11_25
        && ledger.tasks.iter().any(|task| task.token.is_some() && !task.over)
}
