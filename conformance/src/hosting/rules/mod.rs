//! Rules that every message and request of a client is held against, whatever the exchange.
//!
//! The ledger follows both directions: which requests are open, what the server declared and listed, what it asked
//! for, which rounds of input are due.

mod headers;
mod params;
mod rounds;

pub(super) use headers::annotation_problem;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::stage::WebRequest;
use crate::exchange::Transport;
use crate::invariants::Breach;
use crate::requirement::{self, Level};
use crate::revision::Revision;
use crate::text::{printable, shorten};
use rounds::Round;

/// Where the rules of a modern request are told apart: its stamp.
const STAMP: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// What has passed between the suite's server and a client, as far as the rules need it.
#[derive(Debug)]
pub(super) struct Ledger {
    revision: Revision,
    transport: Transport,
    /// The client's requests on the connection at hand.
    requests: Vec<Sent>,
    /// The server's requests.
    asked: Vec<Asked>,
    handshake: Handshake,
    /// The revision the handshake settled.
    settled: Option<Revision>,
    /// What the client declared at the handshake.
    pub(super) declared: Value,
    /// What the server declared at the handshake.
    server: Value,
    /// The tools as listed, by name, with why one may not be called over HTTP.
    tools: BTreeMap<String, (Value, Option<String>)>,
    rounds: Vec<Round>,
    /// By task: keys that wait for an answer, and keys that had one.
    inputs: BTreeMap<String, (Vec<String>, Vec<String>)>,
    /// The id of the session, and those that are over.
    pub(super) session: Option<String>,
    pub(super) over: Vec<String>,
}

/// A request of the client.
#[derive(Debug, Clone)]
struct Sent {
    id: Value,
    method: String,
    params: Value,
    modern: bool,
    token: Option<Value>,
    answered: bool,
    cancelled: bool,
}

/// A request of the server.
#[derive(Debug, Clone)]
struct Asked {
    id: Value,
    method: String,
    params: Value,
    answered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handshake {
    None,
    Begun,
    Answered,
    Done,
}

impl Ledger {
    pub(super) fn new(revision: Revision, transport: Transport) -> Self {
        Self {
            revision,
            transport,
            requests: Vec::new(),
            asked: Vec::new(),
            handshake: Handshake::None,
            settled: None,
            declared: Value::Null,
            server: Value::Null,
            tools: BTreeMap::new(),
            rounds: Vec::new(),
            inputs: BTreeMap::new(),
            session: None,
            over: Vec::new(),
        }
    }

    /// A new run of the server program: nothing of the connection goes on.
    pub(super) fn restarted(&mut self) {
        self.requests.clear();
        self.asked.clear();
        self.handshake = Handshake::None;
        self.settled = None;
    }

    /// Notes a message of the server.
    pub(super) fn sent(&mut self, message: &Value) {
        let id = message.get("id").filter(|id| !id.is_null());
        let Some(id) = id else { return self.told(message) };
        if let Some(method) = message.get("method").and_then(Value::as_str) {
            let params = message.get("params").cloned().unwrap_or_default();
            self.asked.push(Asked { id: id.clone(), method: method.to_owned(), params, answered: false });
            return;
        }
        let Some(index) = self.requests.iter().rposition(|sent| sent.id == *id) else { return };
        self.requests[index].answered = true;
        let request = self.requests[index].clone();
        let Some(result) = message.get("result") else { return };
        match request.method.as_str() {
            "initialize" if !request.modern => {
                self.handshake = Handshake::Answered;
                let version = result.get("protocolVersion").and_then(Value::as_str);
                self.settled = version.and_then(Revision::from_date);
                self.server = result.get("capabilities").cloned().unwrap_or_default();
            }
            "tools/list" => self.listed(&request, result),
            "tasks/get" => self.wanted(result),
            _ => {}
        }
        if result.get("resultType").and_then(Value::as_str) == Some("input_required") {
            self.rounds.push(Round::new(&request.id, &request.method, &request.params, result));
        }
        // A task goes on under its token; so the token stays taken.
        if result.get("task").is_none() && result.get("taskId").is_none() {
            self.requests[index].token = None;
        }
    }

    fn told(&mut self, message: &Value) {
        if message.get("method").and_then(Value::as_str) == Some("notifications/tasks") {
            self.wanted(message.get("params").unwrap_or(&Value::Null));
        }
    }

    fn listed(&mut self, request: &Sent, result: &Value) {
        if request.params.get("cursor").is_none() {
            self.tools.clear();
        }
        for tool in result.get("tools").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let problem = annotation_problem(tool.get("inputSchema").unwrap_or(&Value::Null));
            self.tools.insert(name.to_owned(), (tool.clone(), problem));
        }
    }

    /// Notes the input that a task waits for.
    fn wanted(&mut self, task: &Value) {
        let Some(id) = task.get("taskId").and_then(Value::as_str) else { return };
        let requests = task.get("inputRequests").and_then(Value::as_object);
        let (wanted, _) = self.inputs.entry(id.to_owned()).or_default();
        for key in requests.into_iter().flat_map(Map::keys) {
            if !wanted.contains(key) {
                wanted.push(key.clone());
            }
        }
    }

    /// Reads what should be one message, or a batch where there are batches.
    pub(super) fn read(&self, bytes: &[u8]) -> Result<Vec<Value>, Breach> {
        let ids: &[&str] = match self.transport {
            Transport::Stdio => &["B-BASE-02", "C-STDIO-02", "B-STDIO-01"],
            Transport::Http => &["B-BASE-02", "C-HTTP-01"],
        };
        let text = std::str::from_utf8(bytes).map_err(|_| {
            self.breach("utf-8", Level::Must, &["B-TRANS-01", "B-BASE-02"], "", "UTF-8", printable(bytes))
        })?;
        let message: Value = serde_json::from_str(text).map_err(|error| {
            self.breach(
                "json",
                Level::Must,
                ids,
                "",
                &format!("one JSON object ({error})"),
                shorten(text, 300),
            )
        })?;
        match message {
            Value::Array(items) if self.speaks() == Revision::V2025_03_26 && !items.is_empty() => Ok(items),
            Value::Object(_) => Ok(vec![message]),
            other => {
                let ids = [ids, &["LC-BATCH-03", "C-HTTP-04"]].concat();
                Err(self.must("message", &ids, "", "one JSON object", &other))
            }
        }
    }

    /// Holds a message against every rule, and notes it.
    pub(super) fn received(&mut self, message: &Value, web: Option<&WebRequest>) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let Value::Object(members) = message else {
            return vec![self.must("message", &["B-BASE-02"], "", "a JSON object", message)];
        };
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            let got = message.get("jsonrpc").unwrap_or(&Value::Null);
            breaches.push(self.must("envelope", &["B-BASE-02"], "/jsonrpc", "\"2.0\"", got));
        }
        self.nulls(message, "", &mut breaches);
        if let Some(web) = web {
            headers::check(self, message, web, &mut breaches);
        }
        match members.get("method").map(|method| method.as_str().ok_or(method)) {
            Some(Ok(method)) => self.call(method, members, message, &mut breaches),
            Some(Err(other)) => {
                breaches.push(self.must("envelope", &["B-BASE-02"], "/method", "a string", other));
            }
            None => self.answer(members, message, &mut breaches),
        }
        breaches
    }

    /// Holds an HTTP request without a message against the rules.
    pub(super) fn requested(&self, web: &WebRequest) -> Vec<Breach> {
        let mut breaches = Vec::new();
        headers::check_plain(self, web, &mut breaches);
        breaches
    }

    /// What is still owed when the exchange is over.
    pub(super) fn finish(&self) -> Vec<Breach> {
        let mut breaches = Vec::new();
        if self.handshake == Handshake::Answered && self.requests.len() > 2 {
            let expected = "`notifications/initialized` after the handshake";
            breaches.push(self.breach(
                "handshake",
                Level::Must,
                &["LC-LIFE-02"],
                "",
                expected,
                "requests without it".to_owned(),
            ));
        }
        breaches
    }

    /// The client's request with this id may come once more.
    pub(super) fn forget(&mut self, id: &Value) {
        self.requests.retain(|sent| sent.id != *id);
    }

    /// The client's request with this id gets no answer any more.
    pub(super) fn dropped(&mut self, id: &Value) {
        if let Some(sent) = self.requests.iter_mut().rev().find(|sent| sent.id == *id) {
            sent.answered = true;
            sent.token = None;
        }
    }

    /// The revision by whose schema the client speaks.
    pub(super) fn speaks_now(&self, revision: Revision) -> Revision {
        self.settled.unwrap_or(revision)
    }

    fn call(
        &mut self,
        method: &str,
        members: &Map<String, Value>,
        message: &Value,
        breaches: &mut Vec<Breach>,
    ) {
        let empty = Value::Object(Map::new());
        let params = members.get("params").unwrap_or(&empty);
        if !params.is_object() {
            breaches.push(self.must("params", &["W01", "B-BASE-02"], "/params", "an object", params));
            return;
        }
        params::check(self, method, params, members.contains_key("id"), breaches);
        if method.starts_with("notifications/") {
            if let Some(id) = members.get("id") {
                breaches.push(self.must("notification", &["B-BASE-05"], "/id", "no such member", id));
            }
            self.notified(method, params, breaches);
            return;
        }
        let Some(id) = members.get("id") else {
            let expected = "an id, since it is no notification";
            breaches.push(self.must("id", &["C-BASE-01"], "/id", expected, message));
            return;
        };
        let whole = id.is_i64() || id.is_u64();
        if !(id.is_string() || whole) {
            let ids = ["C-BASE-01", "C-BASE-02", "LB-LIFE-08"];
            breaches.push(self.must("id", &ids, "/id", "a string or an integer", id));
        }
        let modern = message.pointer(STAMP).is_some() || self.revision.is_modern() && method != "initialize";
        self.identity(id, method, modern, breaches);
        if modern {
            self.metadata(method, params, breaches);
        } else {
            self.in_session(method, params, breaches);
        }
        let token = params.pointer("/_meta/progressToken").cloned();
        if let Some(token) = &token {
            self.token(token, breaches);
        }
        let request = Sent {
            id: id.clone(),
            method: method.to_owned(),
            params: params.clone(),
            modern,
            token,
            answered: false,
            cancelled: false,
        };
        if modern {
            rounds::check(self, &request.id, method, params, breaches);
        }
        if method == "tasks/update" {
            self.updated(params, breaches);
        }
        self.requests.push(request);
    }

    fn identity(&self, id: &Value, method: &str, modern: bool, breaches: &mut Vec<Breach>) {
        let same = |sent: &&Sent| sent.id == *id;
        let Some(earlier) = self.requests.iter().rev().find(same) else { return };
        let taken = format!("an id other than that of `{}`", earlier.method);
        if !earlier.answered && !earlier.cancelled {
            breaches.push(self.must("id", &["C-BASE-03", "LB-LIFE-07"], "/id", &taken, id));
        } else if !modern && !earlier.modern && method != "initialize" {
            breaches.push(self.must("id", &["LB-LIFE-07"], "/id", &taken, id));
        }
    }

    fn token(&self, token: &Value, breaches: &mut Vec<Breach>) {
        if !(token.is_string() || token.is_i64() || token.is_u64()) {
            let at = "/params/_meta/progressToken";
            breaches.push(self.must("token", &["C-PROG-01"], at, "a string or an integer", token));
        }
        let live = |sent: &Sent| !sent.answered && !sent.cancelled || sent.token.is_some() && sent.answered;
        if self.requests.iter().any(|sent| live(sent) && sent.token.as_ref() == Some(token)) {
            let at = "/params/_meta/progressToken";
            breaches.push(self.must("token", &["C-PROG-02"], at, "a token of its own", token));
        }
    }

    /// What every request of the modern era bears.
    fn metadata(&self, method: &str, params: &Value, breaches: &mut Vec<Breach>) {
        let meta = params.get("_meta").unwrap_or(&Value::Null);
        let at = |name: &str| format!("/params/_meta/io.modelcontextprotocol~1{name}");
        let member = |name: &str| meta.get(format!("io.modelcontextprotocol/{name}")).unwrap_or(&Value::Null);
        let ids = ["C-META-01", "C-WIRE-01"];
        if !member("protocolVersion").is_string() {
            breaches.push(self.must("metadata", &ids, &at("protocolVersion"), "a string", meta));
        }
        if !member("clientCapabilities").is_object() {
            breaches.push(self.must("metadata", &ids, &at("clientCapabilities"), "an object", meta));
        } else {
            params::capabilities(self, member("clientCapabilities"), breaches);
        }
        match member("clientInfo") {
            Value::Null => {
                breaches.push(self.should("identity", &["C-META-02"], &at("clientInfo"), "an object", meta));
            }
            info => params::implementation(self, info, &at("clientInfo"), breaches),
        }
        let gone = ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
        if self.revision.is_modern() && gone.contains(&method) {
            let expected = "a method of this revision";
            breaches.push(self.must("method", &["B-BASE-01"], "/method", expected, &Value::from(method)));
        }
    }

    /// What requests of a legacy session keep to.
    fn in_session(&mut self, method: &str, params: &Value, breaches: &mut Vec<Breach>) {
        let got = Value::from(method);
        match method {
            "initialize" => {
                if self.transport == Transport::Stdio && self.handshake != Handshake::None {
                    let expected = "one handshake on a connection";
                    breaches.push(self.must("handshake", &["LB-LIFE-02"], "/method", expected, &got));
                }
                self.handshake = Handshake::Begun;
                self.declared = params.get("capabilities").cloned().unwrap_or_default();
            }
            "ping" => {}
            _ => match self.handshake {
                Handshake::None => {
                    let ids = ["LB-LIFE-02", "LC-LIFE-01"];
                    breaches.push(self.must("handshake", &ids, "/method", "the handshake first", &got));
                }
                Handshake::Begun => {
                    let expected = "nothing but `ping` before the answer to `initialize`";
                    breaches.push(self.should("handshake", &["LC-LIFE-03"], "/method", expected, &got));
                }
                Handshake::Answered => {
                    let expected = "`notifications/initialized` before it";
                    breaches.push(self.must("handshake", &["LC-LIFE-02"], "/method", expected, &got));
                }
                Handshake::Done => params::allowed(self, method, params, breaches),
            },
        }
    }

    fn notified(&mut self, method: &str, params: &Value, breaches: &mut Vec<Breach>) {
        match method {
            "notifications/initialized" => {
                if self.handshake != Handshake::Answered {
                    let expected = "it once, after the answer to `initialize`";
                    let got = Value::from(method);
                    breaches.push(self.must("handshake", &["LC-LIFE-02", "LB-LIFE-01"], "", expected, &got));
                }
                self.handshake = Handshake::Done;
            }
            "notifications/cancelled" => self.cancel(params, breaches),
            "notifications/roots/list_changed" if self.revision.is_modern() => {
                let got = Value::from(method);
                breaches.push(self.must(
                    "method",
                    &["B-BASE-01"],
                    "/method",
                    "a method of this revision",
                    &got,
                ));
            }
            _ => {}
        }
    }

    fn cancel(&mut self, params: &Value, breaches: &mut Vec<Breach>) {
        let at = "/params/requestId";
        let Some(id) = params.get("requestId") else {
            if self.speaks() != Revision::V2025_11_25 {
                let ids = ["B-WIRE-01", "W01"];
                breaches.push(self.must("cancellation", &ids, at, "the id of a request", params));
            }
            return;
        };
        let Some(index) = self.requests.iter().rposition(|sent| sent.id == *id) else {
            let ids = ["C-CANCEL-02", "LB-CANCEL-01"];
            breaches.push(self.must("cancellation", &ids, at, "the id of a request of its own", id));
            return;
        };
        if self.requests[index].method == "initialize" {
            let expected = "`initialize` is never cancelled";
            breaches.push(self.must("cancellation", &["LC-CANCEL-01"], at, expected, id));
        }
        if self.requests[index].modern && self.transport == Transport::Http {
            let expected = "the end of the connection in place of a notification";
            breaches.push(self.should("cancellation", &["B-CANCEL-02"], "/method", expected, params));
        }
        self.requests[index].cancelled = true;
    }

    fn updated(&mut self, params: &Value, breaches: &mut Vec<Breach>) {
        let task = params.get("taskId").and_then(Value::as_str).unwrap_or_default();
        let keys = params.get("inputResponses").and_then(Value::as_object);
        let keys: Vec<_> = keys.into_iter().flat_map(Map::keys).cloned().collect();
        let (wanted, had) = self.inputs.entry(task.to_owned()).or_default();
        let wrong: Vec<_> = keys.iter().filter(|key| !wanted.contains(key)).cloned().collect();
        let again: Vec<_> = keys.iter().filter(|key| had.contains(key)).cloned().collect();
        had.extend(keys);
        let at = "/params/inputResponses";
        if let Some(key) = wrong.first() {
            let got = Value::from(key.as_str());
            breaches.push(self.must("input", &["C-TASK-11"], at, "keys that were asked for", &got));
        }
        if let Some(key) = again.first() {
            let got = Value::from(key.as_str());
            breaches.push(self.should("input", &["C-TASK-12"], at, "each key once", &got));
        }
    }

    /// An answer to a request of the server.
    fn answer(&mut self, members: &Map<String, Value>, message: &Value, breaches: &mut Vec<Breach>) {
        if self.revision.is_modern() && self.handshake == Handshake::None {
            let ids = ["C-STDIO-03", "C-HTTP-05", "S03"];
            breaches.push(self.must("response", &ids, "", "requests and notifications only", message));
            return;
        }
        let both = members.contains_key("result") == members.contains_key("error");
        if both {
            let ids = ["LB-LIFE-09", "B-BASE-02"];
            breaches.push(self.must("response", &ids, "", "either `result` or `error`", message));
        }
        let id = members.get("id").unwrap_or(&Value::Null);
        let Some(index) = self.asked.iter().rposition(|asked| asked.id == *id) else {
            let ids = ["B-BASE-04", "S03", "B-BASE-02"];
            breaches.push(self.must("response", &ids, "/id", "the id of a request of the server", message));
            return;
        };
        let asked = self.asked[index].clone();
        if asked.answered {
            breaches.push(self.must("response", &["B-BASE-02"], "/id", "one answer to a request", message));
        }
        self.asked[index].answered = true;
        if let Some(error) = members.get("error") {
            let whole = error.get("code").is_some_and(|code| code.is_i64());
            if !whole || !error.get("message").is_some_and(Value::is_string) {
                breaches.push(self.must("error", &["W01"], "/error", "an integer code and a message", error));
            }
        }
        if let Some(result) = members.get("result") {
            for name in ["resultType", "ttlMs", "cacheScope"] {
                if let Some(got) = result.get(name) {
                    let at = format!("/result/{name}");
                    breaches.push(self.must("era", &["V09"], &at, "no such member", got));
                }
            }
            params::input(self, &asked.method, result, Some(&asked.params), "/result", breaches);
        }
    }

    /// No member is null where it could have been left out.
    fn nulls(&self, value: &Value, at: &str, breaches: &mut Vec<Breach>) {
        /// Below these, null is a value of the user's.
        const FREE: [&str; 10] = [
            "arguments",
            "data",
            "metadata",
            "experimental",
            "extensions",
            "structuredContent",
            "input",
            "inputSchema",
            "outputSchema",
            "value",
        ];
        match value {
            Value::Object(members) => {
                for (name, value) in members.iter().filter(|(name, _)| !FREE.contains(&name.as_str())) {
                    let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                    if value.is_null() && name != "id" {
                        breaches.push(self.must("null", &["E09"], &at, "no member rather than null", value));
                    }
                    self.nulls(value, &at, breaches);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.nulls(item, &format!("{at}/{index}"), breaches);
                }
            }
            _ => {}
        }
    }

    /// The revision by whose rules the client speaks in a session.
    fn speaks(&self) -> Revision {
        self.settled.unwrap_or(self.revision)
    }

    /// Whether the handshake is over.
    pub(super) fn in_use(&self) -> bool {
        matches!(self.handshake, Handshake::Answered | Handshake::Done)
    }

    fn must(
        &self,
        rule: &'static str,
        ids: &[&'static str],
        at: &str,
        expected: &str,
        got: &Value,
    ) -> Breach {
        self.breach(rule, Level::Must, ids, at, expected, shorten(&got.to_string(), 300))
    }

    fn should(
        &self,
        rule: &'static str,
        ids: &[&'static str],
        at: &str,
        expected: &str,
        got: &Value,
    ) -> Breach {
        self.breach(rule, Level::Should, ids, at, expected, shorten(&got.to_string(), 300))
    }

    fn breach(
        &self,
        rule: &'static str,
        level: Level,
        ids: &[&'static str],
        at: &str,
        expected: &str,
        got: String,
    ) -> Breach {
        let binds = |id: &&'static str| {
            requirement::by_id(id)
                .is_some_and(|row| row.applies(self.revision) && row.concerns(self.transport))
        };
        let requires: Vec<_> = ids.iter().copied().filter(binds).collect();
        // What only a SHOULD of this revision asks for is no more than that.
        let cited = requirement::strongest(requires.iter().copied(), self.revision);
        let level = level.min(cited.unwrap_or(Level::Must));
        Breach { rule, requires, level, at: at.to_owned(), expected: expected.to_owned(), got }
    }
}
