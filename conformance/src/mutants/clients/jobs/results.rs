//! What results mean to jobs, and the answers to what they ask.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::{Kind, bad, fits};
use crate::mutants::clients::client::{Client, Way, object};

impl Client {
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

    pub(super) fn page(
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
    pub(super) fn round(&mut self, job: usize, result: &Value) {
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
    pub(super) fn input(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
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
}
