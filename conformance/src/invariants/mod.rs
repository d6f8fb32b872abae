//! Rules that every received message is held against, whatever the exchange.
//!
//! The ledger follows both directions of one connection: which requests are open, which tokens live, what each
//! subscription asked for. A breach names the rule, the obligations behind it, where, what was expected and
//! what came.

mod asks;
mod calls;
mod cited;
mod envelope;
mod http;
mod line;
mod results;
mod schemas;
mod shape;
mod subscriptions;
mod tables;
mod tasks;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub(crate) use calls::declares;
pub use cited::citing;
pub(crate) use tables::cacheable;

use crate::exchange::Transport;
use crate::requirement::{self, Level};
use crate::revision::Revision;
use crate::text::shorten;
use subscriptions::Listen;

/// One rule broken by one message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Breach {
    /// A short name of the rule.
    pub rule: &'static str,
    /// The obligations behind the rule that bind the revision.
    pub requires: Vec<&'static str>,
    /// What the breach counts as.
    pub level: Level,
    /// JSON pointer into the message.
    pub at: String,
    /// What the rule asks for.
    pub expected: String,
    /// What came.
    pub got: String,
}

/// What has passed on one connection, as far as the rules need it.
#[derive(Debug, Clone)]
pub struct Ledger {
    revision: Revision,
    transport: Transport,
    /// What the client side declares: for a session, or on each modern request that says nothing else.
    client: Value,
    /// What the server declared at the handshake.
    server: Option<Value>,
    /// What it declared at discovery.
    discovered: Option<Value>,
    opened: bool,
    /// Whether a handshake was begun, so that a modern connection has a legacy session, too.
    session: bool,
    /// The version that the handshake settled.
    settled: Option<Revision>,
    requests: Vec<Request>,
    listens: Vec<Listen>,
    subscribed: Vec<String>,
    /// Ids of the server's own requests.
    foreign: Vec<Value>,
    /// Those among them that may become tasks of the client.
    foreign_tasks: Vec<Value>,
    tasks: Vec<tasks::Task>,
    /// Ids of requests that were cancelled.
    cancelled: Vec<Value>,
    /// How many errors without an id are owed to input without a readable one.
    unreadable: usize,
    /// Whether an array was sent, so that an array may come back.
    batched: bool,
    started: bool,
    anonymous: bool,
}

/// A request of ours.
#[derive(Debug, Clone)]
struct Request {
    id: Value,
    method: String,
    params: Value,
    /// Whether it is answered by the rules of the modern era. Both eras may share a connection.
    modern: bool,
    /// The capabilities the client declared on this request, or for the session.
    capabilities: Value,
    token: Option<Value>,
    progress: Option<f64>,
    answered: bool,
    /// Whether the response asked for input.
    asked_back: bool,
    /// A task goes on after its request was answered, and so does its token.
    became_task: bool,
}

impl Ledger {
    /// A ledger for a new connection.
    #[must_use]
    pub fn new(revision: Revision, transport: Transport, client_capabilities: Value) -> Self {
        Self {
            revision,
            transport,
            client: client_capabilities,
            server: None,
            discovered: None,
            opened: false,
            session: false,
            settled: None,
            requests: Vec::new(),
            listens: Vec::new(),
            subscribed: Vec::new(),
            foreign: Vec::new(),
            foreign_tasks: Vec::new(),
            tasks: Vec::new(),
            cancelled: Vec::new(),
            unreadable: 0,
            batched: false,
            started: false,
            anonymous: false,
        }
    }

    /// Notes a message that was sent.
    pub fn sent(&mut self, message: &Value) {
        let Value::Object(members) = message else {
            // JSON that is no message; an array is a batch.
            self.unreadable += 1;
            if let Value::Array(items) = message {
                self.batched = true;
                items.iter().filter(|item| item.is_object()).for_each(|item| self.sent(item));
            }
            return;
        };
        let id = members.get("id").filter(|id| id.is_string() || id.is_number());
        let method = members.get("method").and_then(Value::as_str);
        match (id, method) {
            // An answer of ours.
            (Some(_), None) if members.contains_key("result") || members.contains_key("error") => {}
            (Some(id), method) => {
                // JSON-RPC answers an invalid request with a null id, even where the id could be read.
                let valid = method.is_some()
                    && members.get("jsonrpc").is_some_and(|version| version == "2.0")
                    && members.get("params").is_none_or(Value::is_object);
                self.unreadable += usize::from(!valid);
                self.requested(id, method.unwrap_or_default(), members);
            }
            (None, Some("notifications/initialized")) => self.opened = true,
            (None, Some(method)) if method.starts_with("notifications/") => self.cancelled(method, members),
            // A receiver may take it for a notification, or for a request whose id it cannot read.
            (None, _) => self.unreadable += 1,
        }
    }

    /// Notes bytes that were sent as they stand.
    pub fn sent_raw(&mut self, bytes: &[u8]) {
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            match serde_json::from_slice::<Value>(line) {
                Ok(message) => self.sent(&message),
                Err(_) => self.spoiled(line),
            }
        }
    }

    /// Notes that a reader may not have been able to read what was sent.
    pub fn may_be_unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// The method of the request that a response with this id belongs to.
    #[must_use]
    pub fn method_of(&self, id: &Value) -> Option<&str> {
        self.requests.iter().rev().find(|request| request.id == *id).map(|request| request.method.as_str())
    }

    /// The revision whose rules a received message has to keep.
    #[must_use]
    pub fn revision_of(&self, message: &Value) -> Revision {
        let answered = message.get("id").filter(|_| message.get("method").is_none());
        let empty = Value::Null;
        let modern = answered.and_then(|id| self.is_modern(id)).unwrap_or_else(|| {
            !self.has_session() || subscriptions::concerns(self, message.get("params").unwrap_or(&empty))
        });
        if modern { Revision::V2026_07_28 } else { self.settled.unwrap_or(self.revision) }
    }

    /// Reads a line of the subject's output; the messages in it, in order.
    ///
    /// # Errors
    ///
    /// The breach that makes the line no message.
    pub fn line(&mut self, bytes: &[u8]) -> Result<Vec<Value>, Box<Breach>> {
        let first = !std::mem::replace(&mut self.started, true);
        line::read(self, bytes, first).map_err(Box::new)
    }

    /// Reads the text of a message that came over HTTP; the messages in it, in order.
    ///
    /// # Errors
    ///
    /// The breach that makes the text no message.
    pub(crate) fn text(&self, bytes: &[u8]) -> Result<Vec<Value>, Box<Breach>> {
        line::read_text(self, bytes).map_err(Box::new)
    }

    /// Holds a received message against every rule, and notes it.
    pub fn received(&mut self, message: &Value) -> Vec<Breach> {
        let Value::Object(members) = message else {
            return vec![self.must("message", &["B-BASE-02"], "", "a JSON object", message)];
        };
        let mut breaches = Vec::new();
        envelope::check(self, members, &mut breaches);
        tables::nulls(self, message, &mut breaches);
        tables::meta_keys(self, message, &mut breaches);
        if members.contains_key("method") {
            calls::check(self, members, &mut breaches);
        } else {
            results::check(self, members, &mut breaches);
        }
        breaches
    }

    fn requested(&mut self, id: &Value, method: &str, members: &Map<String, Value>) {
        let params = members.get("params").cloned().unwrap_or(Value::Null);
        let declared = params.pointer("/_meta/io.modelcontextprotocol~1clientCapabilities");
        let stamped = params.pointer("/_meta/io.modelcontextprotocol~1protocolVersion").is_some();
        let modern = stamped || (self.revision.is_modern() && !self.session && method != "initialize");
        let capabilities = match method {
            _ if modern => Some(declared.cloned().unwrap_or(Value::Null)),
            "initialize" => params.get("capabilities").cloned(),
            _ => None,
        };
        if method == "initialize" && !modern {
            self.client = capabilities.clone().unwrap_or(Value::Null);
            self.session = true;
        }
        let token = params.pointer("/_meta/progressToken").cloned();
        if method == "subscriptions/listen" {
            self.listens
                .push(Listen::new(id.clone(), params.get("notifications").cloned().unwrap_or_default()));
        }
        if let ("resources/subscribe", Some(uri)) = (method, params.get("uri").and_then(Value::as_str)) {
            self.subscribed.push(uri.to_owned());
        }
        self.requests.push(Request {
            id: id.clone(),
            method: method.to_owned(),
            capabilities: capabilities.unwrap_or_else(|| self.client.clone()),
            params,
            modern,
            token,
            progress: None,
            answered: false,
            asked_back: false,
            became_task: false,
        });
    }

    fn cancelled(&mut self, method: &str, members: &Map<String, Value>) {
        let id = members.get("params").and_then(|params| params.get("requestId"));
        if let ("notifications/cancelled", Some(id)) = (method, id) {
            self.listens.iter_mut().filter(|listen| listen.id == *id).for_each(Listen::cancel);
            self.cancelled.push(id.clone());
        }
    }

    /// A line that is not JSON may still bear an id that a lenient reader finds, so an answer to any id that
    /// stands in it is allowed.
    fn spoiled(&mut self, line: &[u8]) {
        self.unreadable += 1;
        let text = String::from_utf8_lossy(line);
        let mut rest = text.as_ref();
        while let Some(at) = rest.find("\"id\":") {
            rest = &rest[at + 5..];
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            if let Some(Ok(id)) = values.next()
                && (id.is_string() || id.is_number())
            {
                let method = String::new();
                let capabilities = self.client.clone();
                self.requests.push(Request {
                    id,
                    method,
                    modern: self.revision.is_modern(),
                    params: Value::Null,
                    capabilities,
                    token: None,
                    progress: None,
                    answered: false,
                    asked_back: false,
                    became_task: false,
                });
            }
        }
    }

    fn modern(&self) -> bool {
        self.revision.is_modern()
    }

    /// Whether the request with this id is answered by the rules of the modern era.
    pub(crate) fn is_modern(&self, id: &Value) -> Option<bool> {
        self.requests.iter().rev().find(|request| request.id == *id).map(|request| request.modern)
    }

    /// Whether what no request of ours explains is judged by the legacy era.
    fn has_session(&self) -> bool {
        self.session || !self.modern()
    }

    /// A legacy session speaks the version that the server settled on, which may be another than the offered.
    fn follow(&mut self, version: Option<&Value>) {
        let settled = version.and_then(Value::as_str).and_then(Revision::from_date);
        self.settled = settled.filter(|settled| !settled.is_modern());
        if let Some(settled) = self.settled.filter(|_| !self.modern()) {
            self.revision = settled;
        }
    }

    fn must(
        &self,
        rule: &'static str,
        ids: &[&'static str],
        at: &str,
        expected: &str,
        got: &Value,
    ) -> Breach {
        self.breach(Level::Must, rule, ids, at, expected, shorten(&got.to_string(), 300))
    }

    fn should(
        &self,
        rule: &'static str,
        ids: &[&'static str],
        at: &str,
        expected: &str,
        got: &Value,
    ) -> Breach {
        self.breach(Level::Should, rule, ids, at, expected, shorten(&got.to_string(), 300))
    }

    fn breach(
        &self,
        level: Level,
        rule: &'static str,
        ids: &[&'static str],
        at: &str,
        expected: &str,
        got: String,
    ) -> Breach {
        self.breach_in(self.revision, level, rule, ids, at, expected, got)
    }

    #[allow(clippy::too_many_arguments, reason = "what a breach is made of")]
    fn breach_in(
        &self,
        revision: Revision,
        level: Level,
        rule: &'static str,
        ids: &[&'static str],
        at: &str,
        expected: &str,
        got: String,
    ) -> Breach {
        let binds = |id: &&'static str| requirement::by_id(id).is_some_and(|row| row.applies(revision));
        let requires: Vec<_> = ids.iter().copied().filter(binds).collect();
        // A rule may rest on a MUST in one revision and on a SHOULD in another.
        let level = requirement::strongest(requires.iter().copied(), revision)
            .map_or(level, |cited| level.min(cited));
        #[cfg(test)]
        tests::note(rule, &requires);
        Breach { rule, requires, level, at: at.to_owned(), expected: expected.to_owned(), got }
    }
}
