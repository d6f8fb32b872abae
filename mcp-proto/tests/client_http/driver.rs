#![allow(dead_code)]
//! A client whose server is the test: it sees each request, and answers it when and how it likes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_proto::client::http::{
    Action, Client, ExchangeId, Lost, Reader, Request, Settings, Unauthorized, Url,
};
use mcp_proto::client::request::{self, Request as Call};
use mcp_proto::client::{
    Asked, CallError, CallId, CallOptions, Change, Config, ConfigBuilder, Event, Round, Violation,
};
use mcp_proto::model::{
    ElicitResult, Implementation, InputKind, InputResponse, ProtocolVersion, SubscriptionFilter,
};
use mcp_proto::time::Instant;
use serde_json::{Value, json};

pub(crate) const URL: &str = "http://localhost:8000/mcp";

/// What happened.
#[derive(Debug, Clone)]
pub(crate) enum Seen {
    Ready,
    Unusable(CallError),
    Complete(CallId, Value),
    Failed(CallId, CallError),
    Input(CallId, Round),
    Progress(CallId, f64),
    Asked(Asked),
    Acknowledged(CallId, SubscriptionFilter),
    Changed(Option<CallId>, Change),
    Ended(CallId, bool),
    Unauthorized(Unauthorized),
    Violation(Violation),
    Batch(usize),
    StreamLost(CallError),
    StreamRestored,
    Other(String),
}

impl Seen {
    fn of(event: Event<'_>) -> Self {
        match event {
            Event::Ready => Self::Ready,
            Event::Unusable(error) => Self::Unusable(error),
            Event::Complete(done) => {
                Self::Complete(done.call, serde_json::from_str(done.result.get()).unwrap())
            }
            Event::Failed { call, error } => Self::Failed(call, error),
            Event::InputRequired { call, round } => Self::Input(call, round),
            Event::Progress { call, progress } => Self::Progress(call, progress.progress),
            Event::Asked(asked) => Self::Asked(asked),
            Event::Acknowledged { subscription, granted } => Self::Acknowledged(subscription, granted),
            Event::Changed { subscription, change } => Self::Changed(subscription, change),
            Event::ListenEnded { subscription, lost } => Self::Ended(subscription, lost),
            Event::Unauthorized(why) => Self::Unauthorized(why),
            Event::Violation(violation) => Self::Violation(violation),
            Event::Batch(batch) => Self::Batch(batch.len()),
            Event::StreamLost(why) => Self::StreamLost(why),
            Event::StreamRestored => Self::StreamRestored,
            other => Self::Other(format!("{other:?}")),
        }
    }
}

/// A request that is on its way.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) exchange: ExchangeId,
    pub(crate) request: Request,
}

impl Sent {
    pub(crate) fn method(&self) -> &'static str {
        self.request.method
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.request.header(name)
    }

    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.request.body).expect("a JSON body")
    }

    /// The method of the message.
    pub(crate) fn rpc(&self) -> String {
        self.body()["method"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn id(&self) -> Value {
        self.body()["id"].clone()
    }
}

pub(crate) struct Driver {
    pub(crate) client: Client,
    pub(crate) now: Instant,
    actions: Vec<Action>,
    readers: BTreeMap<ExchangeId, Reader>,
    /// Requests that the test has not looked at.
    sent: Vec<Sent>,
    pub(crate) closed: Vec<ExchangeId>,
    events: Vec<Seen>,
}

pub(crate) fn config() -> ConfigBuilder {
    Config::builder(Implementation::new("test", "1"))
}

pub(crate) fn settings() -> Settings {
    Settings::new(Url::parse(URL).unwrap())
}

impl Driver {
    pub(crate) fn new(config: Arc<Config>, settings: Settings) -> Self {
        let mut driver = Self {
            client: Client::new(config, settings),
            now: Instant::from_origin(Duration::from_secs(100)),
            actions: Vec::new(),
            readers: BTreeMap::new(),
            sent: Vec::new(),
            closed: Vec::new(),
            events: Vec::new(),
        };
        let event = driver.client.start(driver.now, &mut driver.actions);
        driver.events.extend(event.map(Seen::of));
        driver.settle();
        driver
    }

    /// One that knows that its server is modern.
    pub(crate) fn modern() -> Self {
        let verdict = mcp_proto::client::Verdict::new(ProtocolVersion::V2026_07_28);
        let mut driver = Self::new(config().assume(verdict).build(), settings());
        assert!(matches!(driver.events()[..], [Seen::Ready]));
        driver
    }

    /// One after the handshake of a legacy revision, with the session `s-1` and an open stream.
    pub(crate) fn legacy(version: &str) -> (Self, Sent) {
        Self::legacy_with(version, settings())
    }

    pub(crate) fn legacy_with(version: &str, settings: Settings) -> (Self, Sent) {
        let version = ProtocolVersion::parse(version).unwrap();
        let assumed = mcp_proto::client::Verdict::new(version);
        let mut driver = Self::new(config().assume(assumed).capabilities(all()).build(), settings);
        let stream = driver.shake_hands(version.as_str(), "s-1");
        (driver, stream)
    }

    /// Answers `initialize` and what follows; returns the stream of the session.
    pub(crate) fn shake_hands(&mut self, version: &str, session: &str) -> Sent {
        let init = self.one();
        assert_eq!(init.rpc(), "initialize");
        assert_eq!(init.header("mcp-session-id"), None);
        assert_eq!(init.header("mcp-protocol-version"), None);
        self.json_with(&init, 200, &[("Mcp-Session-Id", session)], &handshake(&init, version));
        let note = self.one();
        assert_eq!(note.rpc(), "notifications/initialized");
        assert_eq!(note.header("mcp-session-id"), Some(session));
        self.status(&note, 202);
        let stream = self.one();
        assert_eq!((stream.method(), stream.header("mcp-session-id")), ("GET", Some(session)));
        self.head(&stream, 200, &[("content-type", "text/event-stream")]);
        assert!(self.events().iter().any(|event| matches!(event, Seen::Ready)));
        stream
    }

    /// Does what is due.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            for action in std::mem::take(&mut self.actions) {
                match action {
                    Action::Open { exchange, request } => self.sent.push(Sent { exchange, request }),
                    Action::Close(exchange) => {
                        self.readers.remove(&exchange);
                        self.sent.retain(|sent| sent.exchange != exchange);
                        self.closed.push(exchange);
                    }
                }
            }
            if self.client.next_deadline().is_none_or(|at| at > self.now) && self.actions.is_empty() {
                return;
            }
            let event = self.client.handle_timeout(self.now, &mut self.actions);
            self.events.extend(event.map(Seen::of));
        }
        panic!("the client does not come to rest: {:?}", &self.events);
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.settle();
    }

    pub(crate) fn events(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.events)
    }

    #[track_caller]
    pub(crate) fn event(&mut self) -> Seen {
        let mut all = self.events();
        assert_eq!(all.len(), 1, "{all:#?}");
        all.remove(0)
    }

    pub(crate) fn sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    #[track_caller]
    pub(crate) fn one(&mut self) -> Sent {
        let mut all = self.sent();
        assert_eq!(all.len(), 1, "{all:#?}; {:#?}", self.events);
        all.remove(0)
    }

    pub(crate) fn call<R: Call>(&mut self, request: &R) -> CallId {
        self.call_with(request, &CallOptions::default())
    }

    pub(crate) fn call_with<R: Call>(&mut self, request: &R, options: &CallOptions) -> CallId {
        let call = self.client.call(request, options, self.now, &mut self.actions).expect("a call");
        self.settle();
        call
    }

    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> CallId {
        self.call(&request::CallTool::with(name.to_owned(), &arguments).unwrap())
    }

    pub(crate) fn with<T>(&mut self, use_it: impl FnOnce(&mut Client, Instant, &mut Vec<Action>) -> T) -> T {
        let done = use_it(&mut self.client, self.now, &mut self.actions);
        self.settle();
        done
    }

    pub(crate) fn head(&mut self, sent: &Sent, status: u16, headers: &[(&str, &str)]) {
        let reader = self.client.head(sent.exchange, status, headers, self.now, &mut self.actions);
        self.readers.insert(sent.exchange, reader);
        self.settle();
    }

    pub(crate) fn body(&mut self, sent: &Sent, bytes: impl AsRef<[u8]>) {
        let Some(reader) = self.readers.get_mut(&sent.exchange) else { return };
        let mut input = bytes.as_ref();
        while let Some(frame) = reader.next_frame(&mut input) {
            let event = self.client.handle(frame, self.now, &mut self.actions);
            self.events.extend(event.map(Seen::of));
        }
        self.settle();
    }

    pub(crate) fn end(&mut self, sent: &Sent) {
        self.finish(sent, Ok(()));
    }

    pub(crate) fn finish(&mut self, sent: &Sent, outcome: Result<(), Lost>) {
        let Some(mut reader) = self.readers.remove(&sent.exchange) else { return };
        match self.client.end(&mut reader, outcome, self.now, &mut self.actions) {
            Some(Event::Batch(batch)) => {
                self.events.push(Seen::Batch(batch.len()));
                for message in batch {
                    let event =
                        self.client.handle_member(sent.exchange, message, self.now, &mut self.actions);
                    self.events.extend(event.map(Seen::of));
                }
            }
            event => self.events.extend(event.map(Seen::of)),
        }
        self.settle();
    }

    pub(crate) fn lost(&mut self, sent: &Sent) {
        self.client.lost(sent.exchange, Lost("no connection".into()), self.now, &mut self.actions);
        self.settle();
    }

    /// A whole response without a body.
    pub(crate) fn status(&mut self, sent: &Sent, status: u16) {
        self.respond(sent, status, &[], "");
    }

    pub(crate) fn respond(&mut self, sent: &Sent, status: u16, headers: &[(&str, &str)], body: &str) {
        self.head(sent, status, headers);
        self.body(sent, body);
        self.end(sent);
    }

    pub(crate) fn json(&mut self, sent: &Sent, status: u16, body: &Value) {
        self.json_with(sent, status, &[], body);
    }

    pub(crate) fn json_with(&mut self, sent: &Sent, status: u16, headers: &[(&str, &str)], body: &Value) {
        let headers = [&[("Content-Type", "application/json; charset=utf-8")], headers].concat();
        self.respond(sent, status, &headers, &body.to_string());
    }

    /// Begins a stream of events.
    pub(crate) fn sse(&mut self, sent: &Sent) {
        self.head(sent, 200, &[("content-TYPE", "Text/Event-Stream;charset=utf-8")]);
    }

    pub(crate) fn event_of(&mut self, sent: &Sent, message: &Value) {
        self.body(sent, format!("data: {message}\n\n"));
    }
}

/// A client that can be asked for everything.
pub(crate) fn all() -> mcp_proto::model::ClientCapabilities {
    serde_json::from_value(json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}))
        .unwrap()
}

pub(crate) fn handshake(init: &Sent, version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": init.id(), "result": {"protocolVersion": version,
        "capabilities": {"tools": {}, "resources": {"subscribe": true}, "prompts": {}, "logging": {}}, "serverInfo": {"name": "s", "version": "1"}}})
}

pub(crate) fn result(sent: &Sent, mut result: Value) -> Value {
    if sent.header("mcp-protocol-version") == Some("2026-07-28") && result.get("resultType").is_none() {
        result["resultType"] = json!("complete");
    }
    json!({"jsonrpc": "2.0", "id": sent.id(), "result": result})
}

pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

pub(crate) fn error(sent: &Sent, code: i32, data: Option<Value>) -> Value {
    let mut error = json!({"code": code, "message": "no"});
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({"jsonrpc": "2.0", "id": sent.id(), "error": error})
}

pub(crate) fn discovered(sent: &Sent) -> Value {
    result(
        sent,
        json!({"supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "public",
            "capabilities": {"tools": {"listChanged": true}, "resources": {}, "prompts": {}}}),
    )
}

/// What a user filled in.
pub(crate) fn accept(content: &Value) -> InputResponse {
    let json = json!({"action": "accept", "content": content}).to_string();
    InputResponse::decode_as(InputKind::Elicit, &json).unwrap()
}

pub(crate) fn decline() -> InputResponse {
    InputResponse::Elicit(ElicitResult::decline())
}
