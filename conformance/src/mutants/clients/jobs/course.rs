//! What happens to jobs meanwhile: requests, notifications, time, refusals, tasks.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::{Job, Kind, strip};
use crate::mutants::clients::client::{Client, Way};

impl Client {
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
                let live = |job: &&mut Job| !job.is_done();
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

    pub(super) fn progressed(&mut self, params: &Value) {
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

    pub(super) fn give_up(&mut self, job: usize) {
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

    pub(super) fn poll_later(&mut self, job: usize, task: Value, answered: Vec<String>) {
        let every = task["pollIntervalMs"].as_u64().unwrap_or(20).min(5_000);
        let every = if self.is("polls-at-once") { 0 } else { every };
        if self.is("no-poll") {
            return self.finish(job, Ok(task));
        }
        self.jobs[job].deadline = Some(Instant::now() + Duration::from_millis(every));
        self.jobs[job].kind = Kind::Poll { task, answered };
    }

    pub(super) fn polled(&mut self, job: usize, task: Value, mut answered: Vec<String>) {
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

    pub(super) fn finish(&mut self, job: usize, outcome: Result<Value, Value>) {
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
