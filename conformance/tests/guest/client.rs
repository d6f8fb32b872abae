//! The connection: era, handshake, messages in and out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{PipeWriter, Write};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use base64::Engine as _;
use mcp_conformance::hosting::{Invitation, Place};
use serde_json::{Map, Value, json};

use super::jobs::{Job, Kind};
use super::wire::{PROBE, Pipes, Said, Web, pair};

pub(crate) const MODERN: &str = "2026-07-28";

pub(crate) enum Way {
    Pipes(Option<Pipes>),
    Web(Web),
}

pub(crate) struct Client {
    pub(crate) fault: &'static str,
    place: Place,
    pub(crate) way: Way,
    heard: Receiver<Said>,
    tell: std::sync::mpsc::Sender<Said>,
    url: String,
    /// Over HTTP+SSE: where messages are posted.
    posts: Option<String>,
    output: PipeWriter,
    pub(crate) plan: Value,
    /// The revision at hand; none before the era is known.
    pub(crate) version: Option<String>,
    pub(crate) server: Value,
    session: Option<String>,
    stream: Option<u64>,
    next: i64,
    pub(crate) jobs: Vec<Job>,
    /// Wire ids to jobs.
    pub(crate) open: BTreeMap<i64, usize>,
    /// Numbers of HTTP requests to wire ids.
    numbers: BTreeMap<u64, i64>,
    resumed: BTreeSet<u64>,
    heads: BTreeMap<u64, Vec<(String, String)>>,
    pub(crate) tools: BTreeMap<String, Value>,
    pub(crate) cache: BTreeMap<String, (Value, Instant)>,
    pub(crate) notes: Vec<Value>,
    pub(crate) roots: Option<Value>,
    pub(crate) level: Option<String>,
    broken: Option<String>,
    again: bool,
    junk: usize,
}

/// Runs a client to the end of its plan.
pub(crate) fn run(fault: &'static str, invitation: &Invitation, output: PipeWriter) {
    let (tell, heard) = pair();
    let (way, url) = match &invitation.place {
        Place::Url(url) => (Way::Web(Web::new(fault, tell.clone())), url.clone()),
        Place::Relay(address) => (Way::Pipes(Pipes::start(*address, &tell)), String::new()),
    };
    let plan = invitation.context["plan"].clone();
    let roots = plan["answers"].get("roots").cloned();
    let mut client = Client {
        fault,
        place: invitation.place.clone(),
        way,
        heard,
        tell,
        url,
        posts: None,
        output,
        plan,
        version: None,
        server: Value::Null,
        session: None,
        stream: None,
        next: 1,
        jobs: Vec::new(),
        open: BTreeMap::new(),
        numbers: BTreeMap::new(),
        resumed: BTreeSet::new(),
        heads: BTreeMap::new(),
        tools: BTreeMap::new(),
        cache: BTreeMap::new(),
        notes: Vec::new(),
        roots,
        level: None,
        broken: None,
        again: false,
        junk: 0,
    };
    if let Err(problem) = client.connect() {
        client.broken = Some(problem);
    }
    client.follow();
    client.close();
}

impl Client {
    pub(crate) fn is(&self, fault: &str) -> bool {
        self.fault == fault
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.version.as_deref() == Some(MODERN)
    }

    pub(crate) fn print(&mut self, report: &Value) {
        let _ = writeln!(self.output, "{report}");
    }

    fn follow(&mut self) {
        let steps = self.plan["steps"].as_array().cloned().unwrap_or_default();
        for step in steps {
            if let Some(problem) = self.broken.clone() {
                let report = json!({"step": "connect", "as": step.get("as"), "ok": false, "error": problem});
                self.print(&report);
                continue;
            }
            self.step(&step);
        }
        while self.jobs.iter().any(|job| !job.is_done() && !matches!(job.kind, Kind::Listen { .. })) {
            if !self.pump(Instant::now() + Duration::from_secs(20)) {
                break;
            }
        }
    }

    fn close(&mut self) {
        let session = self.session.clone();
        match &mut self.way {
            Way::Pipes(Some(pipes)) => pipes.close(),
            Way::Pipes(None) => {}
            Way::Web(web) => {
                if session.is_some() && web.fault != "no-delete" {
                    let headers = self.session_headers();
                    if let Way::Web(web) = &mut self.way {
                        let url = self.url.clone();
                        let number = web.send(&url, "DELETE", &headers, None);
                        let until = Instant::now() + Duration::from_secs(2);
                        while Instant::now() < until {
                            match self.heard.recv_timeout(Duration::from_secs(2)) {
                                Ok(Said::End(ended, ..)) if ended == number => break,
                                Ok(_) => {}
                                Err(_) => break,
                            }
                        }
                    }
                }
                if let Way::Web(web) = &mut self.way {
                    web.close();
                }
            }
        }
    }

    fn connect(&mut self) -> Result<(), String> {
        self.version = Some(MODERN.to_owned());
        let probe = self.request("server/discover", json!({}), Kind::Raw);
        self.wait(probe, PROBE * if matches!(self.way, Way::Web(_)) { 10 } else { 1 });
        self.jobs[probe].ended = true;
        let outcome = self.jobs[probe].outcome.clone();
        let status = self.jobs[probe].status;
        if matches!(&self.way, Way::Web(_))
            && matches!(status, 401 | 403 | 500..)
            && !self.is("401-is-legacy")
        {
            return Err(format!("status {status}"));
        }
        if let Some(Ok(result)) = &outcome
            && result.get("resultType").is_some()
        {
            self.server = result["capabilities"].clone();
            return Ok(());
        }
        if let Some(Err(error)) = &outcome {
            let code = error["code"].as_i64().unwrap_or(0);
            if code == -32022 && !self.is("modern-error-is-legacy") {
                let supported = error["data"]["supported"].as_array().cloned().unwrap_or_default();
                if supported.iter().any(|version| version == MODERN) {
                    let again = self.request("server/discover", json!({}), Kind::Raw);
                    self.wait(again, Duration::from_secs(5));
                    self.jobs[again].ended = true;
                    return match self.jobs[again].outcome.clone() {
                        Some(Ok(result)) => {
                            self.server = result["capabilities"].clone();
                            Ok(())
                        }
                        other => Err(format!("{other:?}")),
                    };
                }
                if !supported.iter().any(|version| version.as_str().is_some_and(|date| date < MODERN)) {
                    return Err("no common version".to_owned());
                }
            } else if matches!(code, -32020 | -32021) && !self.is("modern-error-is-legacy") {
                return Ok(());
            } else if self.is("one-code") && code != -32601 {
                return Err("not -32601".to_owned());
            }
        }
        if self.is("one-code") && outcome.is_none() && matches!(self.way, Way::Pipes(_)) {
            return Err("no answer".to_owned());
        }
        self.open.clear();
        if std::mem::take(&mut self.again) {
            if self.is("no-respawn") {
                return Err("gone".to_owned());
            }
            self.respawn();
        }
        self.handshake()
    }

    fn respawn(&mut self) {
        if let Place::Relay(address) = self.place {
            self.way = Way::Pipes(Pipes::start(address, &self.tell));
        }
    }

    fn handshake(&mut self) -> Result<(), String> {
        self.version = None;
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": self.capabilities(),
            "clientInfo": {"name": "guest", "version": "1"},
        });
        let mut job = self.request("initialize", params.clone(), Kind::Raw);
        let limit = self.plan["timeout"].as_u64().unwrap_or(5_000);
        self.wait(job, Duration::from_millis(limit));
        if matches!(self.jobs[job].status, 400 | 404 | 405)
            && self.jobs[job].outcome.is_none()
            && self.posts.is_none()
        {
            self.fall_back_to_sse()?;
            job = self.request("initialize", params, Kind::Raw);
            self.wait(job, Duration::from_secs(5));
        }
        if self.jobs[job].outcome.is_none() && std::mem::take(&mut self.again) && !self.is("no-respawn") {
            self.jobs[job].ended = true;
            self.respawn();
            return self.handshake();
        }
        self.jobs[job].ended = true;
        let Some(Ok(result)) = self.jobs[job].outcome.clone() else {
            if self.is("cancels-initialize") {
                self.notify("notifications/cancelled", json!({"requestId": self.jobs[job].id}));
            }
            return Err(format!("no handshake: {:?}", self.jobs[job].outcome));
        };
        let version = result["protocolVersion"].as_str().unwrap_or_default().to_owned();
        let known = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
        if !known.contains(&version.as_str()) && !self.is("any-version") {
            return Err(format!("version {version}"));
        }
        self.version = Some(version);
        self.server = result["capabilities"].clone();
        if !self.is("no-initialized") {
            self.notify("notifications/initialized", Value::Null);
        }
        if self.posts.is_none() && matches!(self.way, Way::Web(_)) && !self.is("no-get") {
            self.listen_to_session(None);
        }
        Ok(())
    }

    fn listen_to_session(&mut self, last: Option<String>) {
        let mut headers = self.session_headers();
        headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
        if let Some(last) = last {
            headers.push(("Last-Event-ID".to_owned(), last));
        }
        let url = self.url.clone();
        if let Way::Web(web) = &mut self.way {
            self.stream = Some(web.send(&url, "GET", &headers, None));
        }
    }

    fn fall_back_to_sse(&mut self) -> Result<(), String> {
        let url = self.url.clone();
        if let Way::Web(web) = &mut self.way {
            let headers = [("Accept".to_owned(), "text/event-stream".to_owned())];
            self.stream = Some(web.send(&url, "GET", &headers, None));
        }
        let until = Instant::now() + Duration::from_secs(2);
        while self.posts.is_none() && Instant::now() < until {
            match self.heard.recv_timeout(Duration::from_secs(2)) {
                Ok(Said::Event(kind, data)) if kind == "endpoint" => {
                    let rest = url.trim_start_matches("http://");
                    let authority = rest.split('/').next().unwrap_or_default();
                    self.posts =
                        Some(if data.starts_with('/') { format!("http://{authority}{data}") } else { data });
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if self.posts.is_some() { Ok(()) } else { Err("no server of any era".to_owned()) }
    }

    pub(crate) fn capabilities(&self) -> Value {
        let answers = &self.plan["answers"];
        let mut capabilities = json!({});
        if answers.get("roots").is_some() {
            capabilities["roots"] = if self.is_modern() { json!({}) } else { json!({"listChanged": true}) };
        }
        if answers.get("sampling").is_some() || self.is("declares-all") {
            capabilities["sampling"] = json!({});
        }
        if answers.get("elicitation").is_some() || answers.get("form").is_some() {
            capabilities["elicitation"] = json!({"form": {}});
        }
        if answers.get("url").is_some() {
            capabilities["elicitation"]["url"] = json!({});
        }
        if self.plan["tasks"] == true && self.is_modern() {
            capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        if self.is("nulls") {
            capabilities["experimental"] = Value::Null;
            capabilities["roots"] = Value::Null;
        }
        capabilities
    }

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
    fn post(&mut self, message: &Value) -> Option<u64> {
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

    fn session_headers(&self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        if let Some(session) = self.session.as_ref().filter(|_| !self.is("no-session")) {
            headers.push(("Mcp-Session-Id".to_owned(), session.clone()));
        }
        if let Some(version) = self.version.as_ref().filter(|_| !self.is("no-version-header")) {
            headers.push(("MCP-Protocol-Version".to_owned(), version.clone()));
        }
        headers
    }

    fn headers(&self, message: &Value) -> Vec<(String, String)> {
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

    fn mirror(&self, schema: &Value, arguments: &Value, headers: &mut Vec<(String, String)>) {
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

    fn encode(&self, text: &str) -> String {
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

    /// Pumps until the job is done or so long.
    pub(crate) fn wait(&mut self, job: usize, limit: Duration) {
        let until = Instant::now() + limit;
        while !self.jobs[job].is_done() && Instant::now() < until && !self.again {
            self.pump(until);
        }
    }

    /// Takes one thing that came; whether something may still come.
    pub(crate) fn pump(&mut self, until: Instant) -> bool {
        let next = self.jobs.iter().filter(|job| job.report.is_none()).filter_map(|job| job.due()).min();
        let until = next.map_or(until, |deadline| until.min(deadline));
        let left = until.saturating_duration_since(Instant::now());
        match self.heard.recv_timeout(left) {
            Ok(said) => self.take(said),
            Err(_) => {
                let before = Instant::now();
                self.late(before);
                return next.is_some();
            }
        }
        true
    }

    fn take(&mut self, said: Said) {
        match said {
            Said::Junk(line) => {
                self.junk += 1;
                if self.is("answers-junk") && self.junk < 50 {
                    let error = json!({"code": -32700, "message": line});
                    self.respond(&Value::Null, Err(error));
                }
                if self.is("dies-of-junk") {
                    self.broken = Some("junk".to_owned());
                    self.fail_all("junk");
                }
            }
            Said::Head(number, headers) => {
                let session = headers.iter().find(|(name, _)| name == "mcp-session-id");
                if let Some((_, session)) = session
                    && self.numbers.get(&number).is_some_and(|id| self.open.contains_key(id))
                {
                    self.session = Some(session.clone());
                }
                self.heads.insert(number, headers);
            }
            Said::Event(..) => {}
            Said::Message(number, Value::Array(items)) => {
                if self.version.as_deref() == Some("2025-03-26") && !self.is("no-batches") {
                    for item in items {
                        self.message(number, &item);
                    }
                }
            }
            Said::Message(number, message) => self.message(number, &message),
            Said::End(number, status, body, last, retry) => self.ended(number, status, &body, last, retry),
            Said::Gone => {
                self.again = true;
                if self.is_modern() && !self.is("no-second-listen") && !self.server.is_null() {
                    let listens = |job: &Job| matches!(job.kind, Kind::Listen { acknowledged: true });
                    if let Some(job) = self.jobs.iter().position(listens) {
                        self.open.clear();
                        self.fail_all("the server has gone");
                        let params = self.jobs[job].params.clone();
                        self.jobs[job].report = None;
                        self.send(job, "subscriptions/listen", params);
                        return;
                    }
                }
                if self.version.is_some() && !self.jobs.is_empty() {
                    self.fail_all("the server has gone");
                }
                self.open.clear();
            }
        }
    }

    fn fail_all(&mut self, problem: &str) {
        for job in 0..self.jobs.len() {
            let listens = matches!(self.jobs[job].kind, Kind::Listen { acknowledged: true });
            if !self.jobs[job].is_done() && !listens {
                self.fail(job, problem);
            }
        }
    }

    fn ended(&mut self, number: u64, status: u16, body: &str, last: Option<String>, retry: Option<u64>) {
        if self.stream == Some(number) {
            if status == 200 && last.is_some() && !self.is("no-resume") {
                self.listen_to_session(last);
            }
            return;
        }
        let Some(id) = self.numbers.remove(&number) else { return };
        let Some(job) = self.open.get(&id).copied() else { return };
        self.jobs[job].status = status;
        if self.posts.is_some() && (200..300).contains(&status) {
            return;
        }
        if status == 404 && self.session.is_some() && body.is_empty() && !self.is_modern() {
            let old = self.session.take();
            if self.is("old-session") {
                self.session = old;
            }
            let (method, params) = (self.jobs[job].method.clone(), self.jobs[job].params.clone());
            self.open.remove(&id);
            if !std::mem::replace(&mut self.jobs[job].retried, true)
                && !self.is("no-new-session")
                && self.handshake().is_ok()
            {
                self.send(job, &method, params);
                return;
            }
            self.fail(job, "the session is over");
            return;
        }
        let redirect = self.heads.get(&number).and_then(|headers| {
            headers.iter().find(|(name, _)| name == "location").map(|(_, value)| value.clone())
        });
        if let Some(place) = redirect.filter(|_| matches!(status, 307 | 308)) {
            let origin = |url: &str| url.split('/').take(3).collect::<Vec<_>>().join("/");
            let place = if place.starts_with('/') { format!("{}{place}", origin(&self.url)) } else { place };
            let same = origin(&place) == origin(&self.url);
            if same || self.is("follows-anywhere") {
                let mut params = self.jobs[job].params.clone();
                if let Some(inner) = params.as_object_mut() {
                    inner.remove("_meta");
                }
                let method = self.jobs[job].method.clone();
                let kept = std::mem::replace(&mut self.url, place);
                self.send(job, &method, params);
                self.url = kept;
                return;
            }
        }
        if status == 200
            && !self.is_modern()
            && last.is_some()
            && !self.is("no-resume")
            && self.resumed.len() < 5
        {
            // The stream was closed before the answer: it goes on elsewhere.
            self.resumed.insert(number);
            if !self.is("no-retry-time") {
                std::thread::sleep(Duration::from_millis(retry.unwrap_or(0)));
            }
            let mut headers = self.session_headers();
            headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
            if !self.is("no-last-event-id") {
                headers.push(("Last-Event-ID".to_owned(), last.unwrap_or_default()));
            }
            let url = self.url.clone();
            if let Way::Web(web) = &mut self.way {
                let number = web.send(&url, "GET", &headers, None);
                self.numbers.insert(number, id);
            }
            return;
        }
        self.open.remove(&id);
        if self.jobs[job].outcome.is_none() {
            self.jobs[job].ended = true;
            self.fail(job, &format!("status {status}: {body}"));
        }
    }

    fn message(&mut self, number: u64, message: &Value) {
        if let Some(method) = message["method"].as_str() {
            match message.get("id") {
                Some(id) => self.asked(method, id, &message["params"]),
                None => self.noticed(method, &message["params"]),
            }
            return;
        }
        let id = match &message["id"] {
            Value::Number(id) => id.as_i64(),
            Value::String(id) if self.is("loose-ids") => id.parse().ok(),
            Value::Null if self.is("error-without-id-fails-all") && message.get("error").is_some() => {
                self.fail_all("an error without id");
                None
            }
            _ => None,
        };
        let job = id.and_then(|id| self.open.remove(&id));
        let job = match job {
            None if self.is("takes-any-response") && !self.open.is_empty() => {
                self.open.pop_first().map(|(_, job)| job)
            }
            other => other,
        };
        let Some(job) = job else { return };
        let _ = number;
        if message.get("result").is_some() == message.get("error").is_some_and(|error| !error.is_null())
            && !self.is("both-is-fine")
        {
            self.fail(job, "neither a result nor an error");
            return;
        }
        match message.get("error").filter(|error| !error.is_null()) {
            Some(error) => self.refused(job, error.clone()),
            None => self.done(job, message["result"].clone()),
        }
    }
}

pub(crate) fn object(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Object(Map::from_iter(pairs.into_iter().map(|(name, value)| (name.to_owned(), value))))
}
