//! What the small client does: the steps of a plan, one job each.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::client::{Client, Way, object};

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

    /// A result has come.
    pub(crate) fn done(&mut self, job: usize, result: Value) {
        if self.jobs[job].is_done() && !self.is("late-counts") {
            return;
        }
        let kind = self.jobs[job].kind.clone();
        if result.get("resultType").is_some_and(|kind| !kind.is_string()) && self.is_modern() {
            return self.fail(job, "a resultType that is no text");
        }
        match result["resultType"].as_str() {
            _ if matches!(kind, Kind::Raw) => {
                self.jobs[job].outcome = Some(Ok(result));
                return;
            }
            Some("input_required") if self.is_modern() && matches!(kind, Kind::Call) => {
                return self.round(job, &result);
            }
            Some("task")
                if self.plan["tasks"] == true
                    && (self.jobs[job].method == "tools/call" || self.is("tasks-of-anything")) =>
            {
                return self.poll_later(job, result, Vec::new());
            }
            Some("complete") => {}
            None if self.is_modern() && self.is("needs-result-type") => {
                return self.fail(job, "no resultType");
            }
            None => {}
            Some(_) if self.is("any-result-type") => {}
            Some(other) => {
                let other = other.to_owned();
                return self.fail(job, &format!("resultType {other}"));
            }
        }
        match kind {
            Kind::List { member, items, cursors } => self.page(job, &result, member, items, cursors),
            Kind::Poll { answered, .. } => self.polled(job, result, answered),
            Kind::Listen { .. } => self.finish(job, Ok(result)),
            Kind::Call if result.get("task").is_some() && self.jobs[job].params.get("task").is_some() => {
                let id = result["task"]["taskId"].clone();
                self.jobs[job].kind = Kind::Result;
                self.send(job, "tasks/result", json!({"taskId": id}));
            }
            Kind::Call => {
                let member = match self.jobs[job].method.as_str() {
                    "tools/call" => "content",
                    "resources/read" => "contents",
                    _ => "messages",
                };
                let name = self.jobs[job].params["name"].as_str().unwrap_or_default();
                let schema = self.tools.get(name).map_or(&Value::Null, |tool| &tool["outputSchema"]);
                let failed = result["isError"] == true && !self.is("errors-need-results");
                if !failed && !fits(schema, &result["structuredContent"]) && !self.is("no-validation") {
                    self.fail(job, "the structured result does not fit");
                } else if result[member].is_array() || self.is("any-shape") {
                    self.finish(job, Ok(result));
                } else {
                    self.fail(job, &format!("no {member}"));
                }
            }
            _ => self.finish(job, Ok(result)),
        }
    }

    fn page(
        &mut self,
        job: usize,
        result: &Value,
        member: &'static str,
        mut items: Vec<Value>,
        mut cursors: Vec<String>,
    ) {
        let Some(page) = result[member].as_array() else { return self.fail(job, "no list") };
        for item in page {
            let good = item["name"].is_string() && (member != "tools" || item["inputSchema"].is_object());
            if !good {
                if self.is("bad-tool-spoils") {
                    return self.fail(job, "a bad tool");
                }
                continue;
            }
            let http = matches!(self.way, Way::Web(_)) && self.is_modern();
            if member == "tools"
                && http
                && bad(&item["inputSchema"], &mut Vec::new())
                && !self.is("keeps-bad-tools")
            {
                continue;
            }
            items.push(item.clone());
        }
        let cursor = result["nextCursor"].as_str().map(str::to_owned);
        let cursor = cursor.filter(|cursor| !(cursor.is_empty() && self.is("empty-ends")));
        if let Some(cursor) = cursor {
            if (cursors.contains(&cursor) || cursors.len() > 200) && !self.is("pages-forever") {
                return self.fail(job, "pages without an end");
            }
            cursors.push(cursor.clone());
            let method = self.jobs[job].method.clone();
            self.jobs[job].kind = Kind::List { member, items, cursors };
            let cursor = if self.is("trims-cursors") { cursor.trim().to_owned() } else { cursor };
            if self.is("first-page-only") {
                return self.finish(job, Ok(json!({})));
            }
            return self.send(job, &method, json!({"cursor": cursor}));
        }
        if member == "tools" {
            let named = |tool: &Value| (tool["name"].as_str().unwrap_or_default().to_owned(), tool.clone());
            self.tools = items.iter().map(named).collect();
        }
        let whole = object([(member, Value::Array(items))]);
        let ttl = result["ttlMs"].as_u64().unwrap_or(0).min(3_600_000);
        if self.is_modern() && (ttl > 0 && !self.is("no-cache") || self.is("cache-forever")) {
            let until = Instant::now() + Duration::from_millis(ttl);
            self.cache.insert(self.jobs[job].method.clone(), (whole.clone(), until));
        }
        self.finish(job, Ok(whole));
    }

    /// A server asks for input before it answers.
    fn round(&mut self, job: usize, result: &Value) {
        self.jobs[job].rounds += 1;
        let cap = self.plan["rounds"].as_u64().unwrap_or(8);
        if self.jobs[job].rounds > cap && !self.is("rounds-forever") {
            return self.fail(job, "too many rounds");
        }
        let mut responses = Map::new();
        for (key, request) in result["inputRequests"].as_object().into_iter().flatten() {
            let method = request["method"].as_str().unwrap_or_default();
            match self.input(method, &request["params"]) {
                Ok(answer) => drop(responses.insert(key.clone(), answer)),
                Err(_) => return self.fail(job, "cannot answer"),
            }
        }
        let mut params = self.jobs[job].params.clone();
        if !responses.is_empty() && !self.is("no-input") {
            params["inputResponses"] = Value::Object(responses);
        }
        if let Some(state) = result.get("requestState") {
            let text = state.as_str().unwrap_or_default();
            params["requestState"] = match self.fault {
                "state-trimmed" => json!(text.trim()),
                "state-dropped" => Value::Null,
                _ => state.clone(),
            };
            if self.is("state-dropped")
                && let Some(members) = params.as_object_mut()
            {
                members.remove("requestState");
            }
        } else if self.is("invents-state") {
            params["requestState"] = json!("");
        }
        if self.is("changes-arguments") {
            params["arguments"] = json!({"changed": true});
        }
        let method = self.jobs[job].method.clone();
        if self.is("state-leaks") {
            for other in 0..self.jobs.len() {
                if other != job && !self.jobs[other].is_done() && matches!(self.jobs[other].kind, Kind::Call)
                {
                    self.jobs[other].params["requestState"] = params["requestState"].clone();
                }
            }
        }
        self.send(job, &method, params);
    }

    /// What the plan says to a request for input.
    fn input(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let unknown = || json!({"code": -32601, "message": "no such method"});
        let answers = self.plan["answers"].clone();
        match method {
            "roots/list" => match &self.roots {
                Some(_) if self.is("odd-roots") => Ok(json!({"roots": [{"uri": "/tmp"}]})),
                Some(roots) => Ok(json!({"roots": roots})),
                None => Err(unknown()),
            },
            "sampling/createMessage" => {
                let Some(answer) = answers.get("sampling") else { return Err(unknown()) };
                if !params["messages"].is_array() {
                    return Err(json!({"code": -32602, "message": "no messages"}));
                }
                if ["tools", "toolChoice"].iter().any(|name| params.get(*name).is_some())
                    && !self.is("samples-with-tools")
                {
                    return Err(json!({"code": -32602, "message": "tools were not declared"}));
                }
                Ok(answer.clone())
            }
            "elicitation/create" if params["mode"] == "url" => match answers["url"].as_str() {
                Some(action) if self.is("content-for-a-url") => Ok(json!({"action": action, "content": {}})),
                Some(action) => Ok(json!({"action": action})),
                None if self.is("any-mode") => Ok(json!({"action": "accept"})),
                None => Err(json!({"code": -32602, "message": "the mode was not declared"})),
            },
            "elicitation/create" => {
                if let Some(action) = answers["form"].as_str() {
                    let action = if self.is("odd-action") { "refuse" } else { action };
                    return Ok(json!({"action": action}));
                }
                let Some(answer) = answers.get("elicitation") else { return Err(unknown()) };
                let mut content = answer.clone();
                for (name, schema) in
                    params["requestedSchema"]["properties"].as_object().into_iter().flatten()
                {
                    if content.get(name).is_none()
                        && let Some(default) = schema.get("default")
                        && !self.is("no-defaults")
                    {
                        content[name] = default.clone();
                    }
                }
                Ok(json!({"action": "accept", "content": content}))
            }
            _ => Err(unknown()),
        }
    }

    /// A server of the legacy era asks for something.
    pub(crate) fn asked(&mut self, method: &str, id: &Value, params: &Value) {
        if self.is_modern() {
            if self.is("answers-modern") {
                self.respond(id, Ok(json!({})));
            }
            return;
        }
        if self.is("silent") {
            return;
        }
        let answer = match method {
            "ping" if self.is("odd-pong") => Ok(json!({"pong": true})),
            "ping" => Ok(json!({})),
            _ => self.input(method, params),
        };
        let answer = if self.is("answers-unknown") { answer.or_else(|_| Ok(json!({}))) } else { answer };
        let twice = self.is("answers-twice");
        if twice {
            self.respond(id, answer.clone());
        }
        self.respond(id, answer);
    }

    pub(crate) fn noticed(&mut self, method: &str, params: &Value) {
        match method {
            "notifications/progress" => self.progressed(params),
            "notifications/message" => {
                let live = |job: &&mut super::jobs::Job| !job.is_done();
                if let Some(job) = self.jobs.iter_mut().rfind(live) {
                    job.logs.push(params.clone());
                }
            }
            "notifications/subscriptions/acknowledged" => {
                let id = &params["_meta"]["io.modelcontextprotocol/subscriptionId"];
                if let Some(job) = self.jobs.iter_mut().find(|job| *id == job.id)
                    && let Kind::Listen { acknowledged } = &mut job.kind
                {
                    *acknowledged = true;
                    job.deadline = None;
                    if std::mem::replace(&mut job.told, true) {
                        return;
                    }
                    let report =
                        json!({"step": "subscriptions/listen", "as": job.name, "ok": true, "result": params});
                    self.print(&strip(report));
                }
            }
            _ => {
                if self.is_modern() {
                    let id = &params["_meta"]["io.modelcontextprotocol/subscriptionId"];
                    let live = self.jobs.iter().any(|job| {
                        *id == job.id
                            && matches!(job.kind, Kind::Listen { acknowledged: true })
                            && job.report.is_none()
                    });
                    if !live && !self.is("untagged-counts") {
                        return;
                    }
                }
                if method.ends_with("list_changed") && !self.is("ignores-changes") {
                    let part = method.trim_start_matches("notifications/").trim_end_matches("/list_changed");
                    self.cache.remove(&format!("{part}/list"));
                }
                self.notes.push(json!({"method": method, "params": params}));
            }
        }
    }

    fn progressed(&mut self, params: &Value) {
        let token = &params["progressToken"];
        let loose = self.is("loose-tokens");
        let fits = |job: &Job| {
            let same = job.token.as_ref() == Some(token);
            let near = loose
                && job
                    .token
                    .as_ref()
                    .is_some_and(|own| token.as_str().is_some_and(|text| own.as_u64() == text.parse().ok()));
            !job.is_done() && (same || near)
        };
        let Some(job) = self.jobs.iter().position(fits) else { return };
        self.jobs[job].progress.push(params["progress"].clone());
        if self.jobs[job].cancel.as_ref().is_some_and(|cancel| cancel == "progress") {
            return self.give_up(job);
        }
        let no_cap = self.is("no-cap");
        let no_reset = self.is("no-reset");
        let job = &mut self.jobs[job];
        if !no_reset {
            let next = Instant::now() + job.timeout;
            job.deadline = Some(job.most.filter(|_| !no_cap).map_or(next, |most| next.min(most)));
        }
    }

    /// Time has gone by: what is due is given up, or polled again.
    pub(crate) fn late(&mut self, now: Instant) {
        for job in 0..self.jobs.len() {
            let due = self.jobs[job].due().is_some_and(|due| due <= now);
            if !due || self.jobs[job].is_done() {
                continue;
            }
            if self.jobs[job].give_up.is_some_and(|due| due <= now) {
                self.give_up(job);
                continue;
            }
            if let Kind::Poll { task, .. } = &self.jobs[job].kind {
                let id = task["taskId"].clone();
                self.jobs[job].deadline = None;
                self.send(job, "tasks/get", json!({"taskId": id}));
                continue;
            }
            self.give_up(job);
        }
    }

    fn give_up(&mut self, job: usize) {
        let id = self.jobs[job].id;
        self.jobs[job].deadline = None;
        self.jobs[job].give_up = None;
        if let Kind::Poll { task, .. } = self.jobs[job].kind.clone() {
            if self.is("cancels-tasks-by-message") {
                let first = self.jobs[job].first;
                self.notify("notifications/cancelled", json!({"requestId": first}));
            }
            let task = task["taskId"].clone();
            let cancel = self.request("tasks/cancel", json!({"taskId": task}), Kind::Raw);
            self.wait(cancel, Duration::from_secs(2));
            return self.fail(job, "cancelled");
        }
        let http = matches!(self.way, Way::Web(_));
        if self.is("silent-cancel") {
        } else if http && self.is_modern() && !self.is("cancel-by-message") {
            let number = self.jobs[job].number;
            if let (Way::Web(web), Some(number)) = (&mut self.way, number) {
                web.hang_up(number);
            }
        } else {
            let id = if self.is("cancels-others") { id + 1000 } else { id };
            self.notify("notifications/cancelled", json!({"requestId": id, "reason": "not wanted"}));
        }
        if !self.is("late-counts") {
            self.open.remove(&id);
            self.fail(job, "cancelled");
        }
    }

    pub(crate) fn fail(&mut self, job: usize, problem: &str) {
        if matches!(self.jobs[job].kind, Kind::Raw) {
            self.jobs[job].ended = true;
            return;
        }
        self.finish(job, Err(json!({"error": problem})));
    }

    /// An error of the server has come.
    pub(crate) fn refused(&mut self, job: usize, error: Value) {
        if matches!(self.jobs[job].kind, Kind::Raw) {
            self.jobs[job].outcome = Some(Err(error));
            return;
        }
        let again =
            error["code"] == -32020 && !self.jobs[job].retried && self.jobs[job].method == "tools/call";
        if again && self.is_modern() && !self.is("no-repair") {
            self.jobs[job].retried = true;
            let kind = Kind::List { member: "tools", items: Vec::new(), cursors: Vec::new() };
            let list = self.request("tools/list", json!({}), kind);
            self.jobs[list].told = true;
            self.join(list);
            let params = self.jobs[job].params.clone();
            return self.send(job, "tools/call", params);
        }
        if self.is("needs-data") && error.get("data").is_none() {
            return;
        }
        let mut report = json!({"error": error["message"], "code": error["code"]});
        if let Some(data) = error.get("data") {
            report["data"] = data.clone();
        }
        self.finish(job, Err(report));
    }

    fn poll_later(&mut self, job: usize, task: Value, answered: Vec<String>) {
        let every = task["pollIntervalMs"].as_u64().unwrap_or(20).min(5_000);
        let every = if self.is("polls-at-once") { 0 } else { every };
        if self.is("no-poll") {
            return self.finish(job, Ok(task));
        }
        self.jobs[job].deadline = Some(Instant::now() + Duration::from_millis(every));
        self.jobs[job].kind = Kind::Poll { task, answered };
    }

    fn polled(&mut self, job: usize, task: Value, mut answered: Vec<String>) {
        match task["status"].as_str() {
            // The acknowledgment of an update.
            None => {
                let Kind::Poll { task, answered } = self.jobs[job].kind.clone() else { return };
                self.poll_later(job, task, answered);
            }
            Some("completed") => self.finish(job, Ok(task["result"].clone())),
            Some("failed") => self.refused(job, task["error"].clone()),
            Some("cancelled") => self.fail(job, "cancelled by the server"),
            Some("input_required") => {
                let mut responses = Map::new();
                for (key, request) in task["inputRequests"].as_object().into_iter().flatten() {
                    if answered.contains(key) && !self.is("answers-again") {
                        continue;
                    }
                    let method = request["method"].as_str().unwrap_or_default();
                    if let Ok(answer) = self.input(method, &request["params"]) {
                        responses.insert(key.clone(), answer);
                        answered.push(key.clone());
                    }
                }
                if self.is("odd-keys") {
                    responses.insert("other".to_owned(), json!({"action": "accept"}));
                }
                if responses.is_empty() || self.is("ignores-input") {
                    return self.poll_later(job, task, answered);
                }
                let id = task["taskId"].clone();
                self.jobs[job].kind = Kind::Poll { task, answered };
                self.send(job, "tasks/update", json!({"taskId": id, "inputResponses": responses}));
            }
            Some(_) => self.poll_later(job, task, answered),
        }
    }

    fn finish(&mut self, job: usize, outcome: Result<Value, Value>) {
        if self.jobs[job].report.is_some() {
            return;
        }
        let one = &mut self.jobs[job];
        let mut report = json!({"step": one.method, "as": one.name, "ok": outcome.is_ok()});
        match outcome {
            Ok(result) => report["result"] = result,
            Err(Value::Object(members)) => {
                for (name, value) in members {
                    report[&name] = value;
                }
            }
            Err(_) => {}
        }
        if !one.progress.is_empty() {
            report["progress"] = Value::Array(one.progress.clone());
        }
        if !one.logs.is_empty() {
            report["logs"] = Value::Array(one.logs.clone());
        }
        one.deadline = None;
        let report = strip(report);
        one.report = Some(report.clone());
        if !one.told {
            self.print(&report);
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
