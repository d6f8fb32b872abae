//! What the small client does: the steps of a plan, one job each.

mod course;
mod results;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Client;

/// What a job is for.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// The connection itself.
    Raw,
    List {
        member: &'static str,
        items: Vec<Value>,
        cursors: Vec<String>,
    },
    Call,
    Plain,
    Listen {
        acknowledged: bool,
    },
    /// Task extension: what is polled.
    Poll {
        task: Value,
        answered: Vec<String>,
    },
    /// A task of 2025-11-25: `tasks/result` is awaited.
    Result,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) kind: Kind,
    pub(crate) id: i64,
    /// The id of its first request.
    pub(crate) first: i64,
    pub(crate) number: Option<u64>,
    pub(crate) name: Option<String>,
    pub(crate) status: u16,
    pub(crate) ended: bool,
    pub(crate) retried: bool,
    /// For the connection's own.
    pub(crate) outcome: Option<Result<Value, Value>>,
    pub(crate) report: Option<Value>,
    pub(crate) deadline: Option<Instant>,
    most: Option<Instant>,
    give_up: Option<Instant>,
    timeout: Duration,
    cancel: Option<Value>,
    token: Option<Value>,
    progress: Vec<Value>,
    logs: Vec<Value>,
    rounds: u64,
    told: bool,
}

impl Job {
    pub(crate) fn new(method: &str, params: Value, kind: Kind) -> Self {
        Self {
            method: method.to_owned(),
            params,
            kind,
            id: 0,
            first: 0,
            number: None,
            name: None,
            status: 0,
            ended: false,
            retried: false,
            outcome: None,
            report: None,
            deadline: None,
            most: None,
            give_up: None,
            timeout: Duration::from_secs(30),
            cancel: None,
            token: None,
            progress: Vec::new(),
            logs: Vec::new(),
            rounds: 0,
            told: false,
        }
    }

    /// When something has to be done for it.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.deadline.into_iter().chain(self.give_up).min()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.outcome.is_some() || self.report.is_some() || self.ended
    }
}

impl Client {
    /// Does one step of the plan.
    pub(crate) fn step(&mut self, step: &Value) {
        let text = |name: &str| step[name].as_str().map(str::to_owned);
        let arguments = || step.get("arguments").cloned();
        let background = step["background"] == true;
        if let Some(kind) = text("list") {
            return self.list(&kind, step);
        }
        let (method, mut params, kind) = if let Some(name) = text("call") {
            let mut params = json!({"name": name});
            if let Some(arguments) = arguments() {
                params["arguments"] = arguments;
            }
            let here = !self.is_modern() && self.server.pointer("/tasks/requests/tools/call").is_some();
            if step["task"] == true && (here || self.is("tasks-anywhere")) {
                params["task"] = json!({"ttl": 60000});
            }
            ("tools/call", params, Kind::Call)
        } else if let Some(uri) = text("read") {
            ("resources/read", json!({"uri": uri}), Kind::Call)
        } else if let Some(name) = text("prompt") {
            let mut params = json!({"name": name});
            if let Some(arguments) = arguments() {
                params["arguments"] = arguments;
            }
            ("prompts/get", params, Kind::Call)
        } else if let Some(complete) = step.get("complete") {
            let mut complete = complete.clone();
            if !self.is_modern()
                && self.version.as_deref() < Some("2025-06-18")
                && let Some(members) = complete.as_object_mut()
            {
                members.remove("context");
            }
            ("completion/complete", complete, Kind::Plain)
        } else if let Some(uri) = text("subscribe") {
            ("resources/subscribe", json!({"uri": uri}), Kind::Plain)
        } else if let Some(uri) = text("unsubscribe") {
            ("resources/unsubscribe", json!({"uri": uri}), Kind::Plain)
        } else if let Some(level) = text("level") {
            if self.is_modern() {
                self.level = Some(level);
                return self.print(&json!({"step": "level", "ok": true}));
            }
            ("logging/setLevel", json!({"level": level}), Kind::Plain)
        } else if step["ping"] == true {
            if self.is_modern() {
                return self.print(&json!({"step": "ping", "ok": true}));
            }
            ("ping", json!({}), Kind::Plain)
        } else if let Some(filter) = step.get("listen") {
            if !self.is_modern() {
                return self.listen_before(filter, step);
            }
            ("subscriptions/listen", json!({"notifications": filter}), Kind::Listen { acknowledged: false })
        } else {
            return self.other(step);
        };
        let mut token = None;
        if step["progress"] == true || step["cancel"] == "progress" {
            let number = if self.is("one-token") { 7 } else { self.jobs.len() as u64 + 1 };
            token = Some(json!(number));
            params["_meta"] = json!({"progressToken": number});
        }
        let job = self.request(method, params, kind);
        self.set(job, step, token);
        if !background {
            self.join(job);
        }
    }

    fn set(&mut self, job: usize, step: &Value, token: Option<Value>) {
        let default = self.plan["timeout"].as_u64().unwrap_or(30_000);
        let timeout = Duration::from_millis(step["timeout"].as_u64().unwrap_or(default));
        let now = Instant::now();
        let job = &mut self.jobs[job];
        job.name = step["as"].as_str().map(str::to_owned);
        job.timeout = timeout;
        job.deadline = Some(now + timeout);
        job.most = step["most"].as_u64().map(|most| now + Duration::from_millis(most));
        if let Some(most) = job.most {
            job.deadline = job.deadline.map(|deadline| deadline.min(most));
        }
        job.cancel = step.get("cancel").cloned();
        if let Some(after) = step["cancel"].as_u64() {
            job.give_up = Some(now + Duration::from_millis(after));
        }
        job.token = token;
    }

    /// Waits for the end of a job, or for the acknowledgment of a subscription.
    fn join(&mut self, job: usize) {
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until {
            let there = matches!(self.jobs[job].kind, Kind::Listen { acknowledged: true });
            if self.jobs[job].report.is_some() || there {
                return;
            }
            self.pump(until);
        }
    }

    fn other(&mut self, step: &Value) {
        let name = step["as"].as_str();
        if let Some(millis) = step["wait"].as_u64() {
            let until = Instant::now() + Duration::from_millis(millis);
            while Instant::now() < until {
                self.pump(until);
            }
        } else if let Some(method) = step["watch"].as_str() {
            let until = Instant::now() + Duration::from_millis(step["timeout"].as_u64().unwrap_or(5_000));
            loop {
                if let Some(at) = self.notes.iter().position(|note| note["method"] == method) {
                    let note = self.notes.remove(at);
                    let report = json!({"step": "watch", "as": name, "ok": true, "method": method, "params": note["params"]});
                    return self.print(&strip(report));
                }
                if Instant::now() >= until {
                    let report = json!({"step": "watch", "as": name, "ok": false, "error": "nothing came"});
                    return self.print(&strip(report));
                }
                self.pump(until);
            }
        } else if let Some(wanted) = step["join"].as_str() {
            if let Some(job) = self.jobs.iter().position(|job| job.name.as_deref() == Some(wanted)) {
                self.join(job);
            }
        } else if let Some(wanted) = step["unlisten"].as_str() {
            if let Some(job) = self.jobs.iter().position(|job| job.name.as_deref() == Some(wanted)) {
                self.give_up(job);
            }
        } else if let Some(roots) = step.get("roots") {
            self.roots = Some(roots.clone());
            if !self.is_modern() && !self.is("silent-roots") {
                self.notify("notifications/roots/list_changed", Value::Null);
            }
        } else {
            self.print(&json!({"unsupported": step.to_string()}));
        }
    }

    fn listen_before(&mut self, filter: &Value, step: &Value) {
        for uri in filter["resourceSubscriptions"].as_array().cloned().unwrap_or_default() {
            let job = self.request("resources/subscribe", json!({"uri": uri}), Kind::Raw);
            self.wait(job, Duration::from_secs(5));
        }
        self.print(&strip(json!({"step": "subscriptions/listen", "as": step.get("as"), "ok": true})));
    }

    fn list(&mut self, kind: &str, step: &Value) {
        let (method, member) = match kind {
            "tools" => ("tools/list", "tools"),
            "resources" => ("resources/list", "resources"),
            "templates" => ("resources/templates/list", "resourceTemplates"),
            _ => ("prompts/list", "prompts"),
        };
        let gate = if kind == "templates" { "resources" } else { kind };
        if self.server.get(gate).is_none() && !self.is("asks-anything") {
            let report = json!({"step": method, "ok": false, "error": "not offered"});
            return self.print(&report);
        }
        if let Some((result, until)) = self.cache.get(method)
            && (Instant::now() < *until || self.is("cache-forever"))
            && step["fresh"] != true
        {
            let report = json!({"step": method, "as": step.get("as"), "ok": true, "result": result});
            return self.print(&strip(report));
        }
        let kind = Kind::List { member, items: Vec::new(), cursors: Vec::new() };
        let job = self.request(method, json!({}), kind);
        self.set(job, step, None);
        if step["background"] != true {
            self.join(job);
        }
    }
}

/// Without a name that is none.
fn strip(mut report: Value) -> Value {
    if report["as"].is_null()
        && let Some(members) = report.as_object_mut()
    {
        members.remove("as");
    }
    report
}

/// Whether a structured result fits, as far as numbers are concerned.
fn fits(schema: &Value, value: &Value) -> bool {
    let numbers = schema["properties"].as_object().into_iter().flatten();
    numbers.filter(|(_, schema)| schema["type"] == "number").all(|(name, _)| value[name].is_number())
}

/// Whether the annotations of a schema may not be followed.
fn bad(schema: &Value, names: &mut Vec<String>) -> bool {
    let elsewhere = ["items", "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "$defs"];
    if elsewhere.iter().any(|name| schema[*name].to_string().contains("x-mcp-header")) {
        return true;
    }
    schema["properties"].as_object().into_iter().flatten().any(|(_, schema)| {
        if let Some(name) = schema.get("x-mcp-header") {
            let Some(name) = name.as_str() else { return true };
            let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            let typed = matches!(schema["type"].as_str(), Some("string" | "integer" | "boolean"));
            let lower = name.to_ascii_lowercase();
            if name.is_empty() || !name.chars().all(token) || !typed || names.contains(&lower) {
                return true;
            }
            names.push(lower);
        }
        bad(schema, names)
    })
}
