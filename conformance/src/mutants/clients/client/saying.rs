//! What the client says, and with which headers.

use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

use super::{Client, Job, Kind, MODERN, Said, Way};

impl Client {
    /// Sends a request for a new job.
    pub(crate) fn request(&mut self, method: &str, params: Value, kind: Kind) -> usize {
        let job = self.jobs.len();
        self.jobs.push(Job::new(method, params.clone(), kind));
        self.send(job, method, params);
        job
    }

    /// Sends a request for a job that is there.
    pub(crate) fn send(&mut self, job: usize, method: &str, mut params: Value) {
        let repeats = self.is("one-id") || self.is("retry-same-id") && params.get("inputResponses").is_some();
        let id = if repeats && self.jobs[job].id != 0 || self.is("one-id") {
            self.jobs[job].id.max(1)
        } else {
            self.next += 1;
            self.next - 1
        };
        self.jobs[job].id = id;
        if self.jobs[job].first == 0 {
            self.jobs[job].first = id;
        }
        if params.is_null() {
            params = json!({});
        }
        if self.is_modern() {
            let mut meta = params.get("_meta").cloned().unwrap_or_else(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            if !self.is("no-capabilities") {
                meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities();
            }
            if !self.is("no-client-info") {
                meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "guest", "version": "1"});
            }
            if let Some(level) = &self.level {
                meta["io.modelcontextprotocol/logLevel"] = json!(level);
            }
            params["_meta"] = meta;
        }
        if self.is("null-cursor") && method.ends_with("/list") && params.get("cursor").is_none() {
            params["cursor"] = Value::Null;
        }
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if params.as_object().is_some_and(|params| !params.is_empty()) {
            message["params"] = params;
        }
        if self.is("float-id") {
            message["id"] = json!(id as f64 + 0.5);
        }
        self.open.insert(id, job);
        let number = self.post(&message);
        if let Some(number) = number {
            self.numbers.insert(number, id);
            self.jobs[job].number = Some(number);
        }
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        if let Some(number) = self.post(&message) {
            // It is acknowledged before anything else is said.
            let until = Instant::now() + Duration::from_secs(2);
            let mut kept = Vec::new();
            while Instant::now() < until {
                match self.heard.recv_timeout(Duration::from_secs(2)) {
                    Ok(Said::End(ended, status, body, ..)) if ended == number => {
                        if self.is("strict-ack") && (status != 202 || !body.is_empty()) {
                            self.broken = Some("odd acknowledgment".to_owned());
                        }
                        break;
                    }
                    Ok(Said::Head(of, ..)) if of == number => {}
                    Ok(said) => kept.push(said),
                    Err(_) => break,
                }
            }
            for said in kept {
                let _ = self.tell.send(said);
            }
        }
    }

    pub(crate) fn respond(&mut self, id: &Value, body: Result<Value, Value>) {
        let mut message = match body {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        };
        if self.is("result-type-in-answers") {
            message["result"]["resultType"] = json!("complete");
        }
        self.post(&message);
    }

    /// Puts a message on the wire.
    pub(super) fn post(&mut self, message: &Value) -> Option<u64> {
        let text = message.to_string();
        let headers = self.headers(message);
        let url = self.posts.clone().unwrap_or_else(|| self.url.clone());
        if self.is_modern() && std::mem::take(&mut self.again) {
            self.respawn();
        }
        match &mut self.way {
            Way::Pipes(Some(pipes)) => {
                if self.fault == "batches" {
                    pipes.write(format!("[{text}]\n").as_bytes());
                } else {
                    pipes.write(format!("{text}\n").as_bytes());
                }
                None
            }
            Way::Pipes(None) => None,
            Way::Web(web) => Some(web.send(&url, "POST", &headers, Some(&text))),
        }
    }

    pub(super) fn session_headers(&self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        if let Some(session) = self.session.as_ref().filter(|_| !self.is("no-session")) {
            headers.push(("Mcp-Session-Id".to_owned(), session.clone()));
        }
        if let Some(version) = self.version.as_ref().filter(|_| !self.is("no-version-header")) {
            headers.push(("MCP-Protocol-Version".to_owned(), version.clone()));
        }
        headers
    }

    pub(super) fn headers(&self, message: &Value) -> Vec<(String, String)> {
        let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        let accept =
            if self.is("json-only") { "application/json" } else { "application/json, text/event-stream" };
        headers.push(("Accept".to_owned(), accept.to_owned()));
        if let Some(token) = self.plan["token"].as_str() {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        if !self.is_modern() {
            if message["method"] != "initialize" || self.is("old-session") {
                headers.extend(self.session_headers());
            }
            return headers;
        }
        if !self.is("no-version-header") {
            headers.push(("MCP-Protocol-Version".to_owned(), MODERN.to_owned()));
        }
        let method = message["method"].as_str().unwrap_or_default();
        if !self.is("no-method-header") {
            headers.push(("Mcp-Method".to_owned(), method.to_owned()));
        }
        let params = &message["params"];
        let named = match method {
            "tools/call" | "prompts/get" => &params["name"],
            "resources/read" => &params["uri"],
            "tasks/get" | "tasks/update" | "tasks/cancel" if !self.is("no-task-name") => &params["taskId"],
            _ => &Value::Null,
        };
        if let Some(name) = named.as_str().filter(|_| !self.is("no-name-header")) {
            headers.push(("Mcp-Name".to_owned(), self.encode(name)));
        }
        if method == "tools/call" && !self.is("no-params") {
            let tool = params["name"].as_str().and_then(|name| self.tools.get(name));
            let schema = tool.map_or(&Value::Null, |tool| &tool["inputSchema"]);
            self.mirror(schema, &params["arguments"], &mut headers);
        }
        headers
    }

    pub(super) fn mirror(&self, schema: &Value, arguments: &Value, headers: &mut Vec<(String, String)>) {
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let value = &arguments[name];
            if let Some(header) = schema["x-mcp-header"].as_str() {
                let text = match value {
                    Value::String(text) if text.is_empty() && self.is("no-empty") => continue,
                    Value::String(text) => text.clone(),
                    Value::Bool(true) if self.is("upper-booleans") => "True".to_owned(),
                    Value::Bool(flag) => flag.to_string(),
                    Value::Number(number) if self.is("float-numbers") => {
                        format!("{:.1}", number.as_f64().unwrap_or(0.0))
                    }
                    Value::Number(number) => number.to_string(),
                    Value::Null if self.is("null-mirrored") && !arguments[name].is_string() => {
                        "null".to_owned()
                    }
                    _ => continue,
                };
                headers.push((format!("Mcp-Param-{header}"), self.encode(&text)));
            }
            if !self.is("no-nested") {
                self.mirror(schema, value, headers);
            }
        }
    }

    pub(super) fn encode(&self, text: &str) -> String {
        let plain = text.chars().all(|c| (' '..='~').contains(&c));
        let edges = text.trim() != text && !self.is("raw-edges");
        let looks = text.starts_with("=?base64?") && text.ends_with("?=") && !self.is("raw-sentinel");
        if plain && !edges && !looks || self.is("raw-text") && !text.contains(['\r', '\n']) {
            return text.to_owned();
        }
        let text =
            if self.is("latin") { text.replace(|c: char| !c.is_ascii(), "?") } else { text.to_owned() };
        format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(text))
    }
}
