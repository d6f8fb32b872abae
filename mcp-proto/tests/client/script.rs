//! The client's end of a stream whose other end is a script: frames go in, lines come out, time moves when
//! told to.

use std::sync::Arc;
use std::time::Duration;

use mcp_proto::client::{
    CallId, CallOptions, Completed, Config, ConfigBuilder, Connection, Event, Round, Violation,
    ViolationKind,
    request::{CallTool, Request},
};
use mcp_proto::limits::Limits;
use mcp_proto::model::{ClientCapabilities, Implementation, Json, ProtocolVersion, TASKS_EXTENSION};
use mcp_proto::rpc;
use mcp_proto::time::Instant;
use serde_json::Value;

/// The revisions with a handshake.
pub(crate) const LEGACY: [ProtocolVersion; 4] = [
    ProtocolVersion::V2024_11_05,
    ProtocolVersion::V2025_03_26,
    ProtocolVersion::V2025_06_18,
    ProtocolVersion::V2025_11_25,
];

/// What a server can declare, in the words of any revision.
pub(crate) const EVERY_CAPABILITY: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// Whatever a client can be asked for.
pub(crate) fn capabilities() -> ClientCapabilities {
    ClientCapabilities::new()
        .form_elicitation()
        .url_elicitation()
        .sampling()
        .sampling_tools()
        .sampling_context()
        .roots_list_changed()
        .extension(TASKS_EXTENSION, Json::empty_object())
}

/// A client that can be asked for everything.
pub(crate) fn config() -> ConfigBuilder {
    Config::builder(Implementation::new("host", "1.0.0")).capabilities(capabilities())
}

/// Default bounds, changed by `change`.
pub(crate) fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// Time since the origin.
pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(millis))
}

/// A success response.
pub(crate) fn result(id: &Value, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// An error response; `data` is JSON, or nothing.
pub(crate) fn error(id: &Value, code: i32, data: &str) -> String {
    let data = if data.is_empty() { String::new() } else { format!(r#","data":{data}"#) };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"{data}}}}}"#)
}

/// A notification; `params` is an object.
pub(crate) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// A request of a legacy server; `params` is an object.
pub(crate) fn ask(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// The answer to `server/discover`.
pub(crate) fn discovered(versions: &[&str]) -> String {
    let versions = serde_json::to_string(versions).unwrap();
    format!(
        r#"{{"resultType":"complete","supportedVersions":{versions},"capabilities":{EVERY_CAPABILITY},"instructions":"Mind the gap.","ttlMs":0,"cacheScope":"public","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"fixture","version":"9"}}}}}}"#
    )
}

/// The answer to `initialize`.
pub(crate) fn initialized(version: &str) -> String {
    format!(
        r#"{{"protocolVersion":"{version}","capabilities":{EVERY_CAPABILITY},"serverInfo":{{"name":"fixture","version":"9"}},"instructions":"Mind the gap."}}"#
    )
}

/// The client's machine, the clock and what was written.
pub(crate) struct Script {
    pub(crate) client: Connection,
    pub(crate) now: Instant,
    pub(crate) out: Vec<u8>,
}

impl Script {
    pub(crate) fn of(config: Arc<Config>) -> Self {
        Self { client: Connection::new(config), now: at(1_000), out: Vec::new() }
    }

    /// A stream on which the client has asked what the server speaks.
    pub(crate) fn started(config: Arc<Config>) -> Self {
        let mut script = Self::of(config);
        assert!(script.start().is_none());
        script
    }

    /// A stream to a server of 2026-07-28 that offers everything.
    pub(crate) fn modern() -> Self {
        Self::modern_of(config().build())
    }

    pub(crate) fn modern_of(config: Arc<Config>) -> Self {
        let mut script = Self::started(config);
        let probe = script.one();
        assert_eq!(probe["method"], "server/discover");
        assert!(matches!(
            script.send(&result(&probe["id"], &discovered(&["2026-07-28"]))),
            Some(Event::Ready)
        ));
        script
    }

    /// A stream to a legacy server that offers everything, after the handshake.
    pub(crate) fn legacy(version: ProtocolVersion) -> Self {
        Self::legacy_of(config(), version)
    }

    pub(crate) fn legacy_of(config: ConfigBuilder, version: ProtocolVersion) -> Self {
        let mut script = Self::started(config.mode(mcp_proto::client::Mode::Legacy).build());
        let hello = script.one();
        assert_eq!(hello["method"], "initialize");
        assert!(matches!(
            script.send(&result(&hello["id"], &initialized(version.as_str()))),
            Some(Event::Ready)
        ));
        assert_eq!(script.one()["method"], "notifications/initialized");
        script
    }

    /// A stream of the revision.
    pub(crate) fn speaking(version: ProtocolVersion) -> Self {
        if version.is_modern() { Self::modern() } else { Self::legacy(version) }
    }

    pub(crate) fn start(&mut self) -> Option<Event<'static>> {
        self.client.start(self.now, &mut self.out)
    }

    /// One frame from the server. It is leaked, so that the event can be kept.
    pub(crate) fn send(&mut self, frame: &str) -> Option<Event<'static>> {
        let frame: &'static str = frame.to_owned().leak();
        self.client.handle(frame.as_bytes(), self.now, &mut self.out)
    }

    /// A frame that breaks the protocol.
    pub(crate) fn violation(&mut self, frame: &str) -> Violation {
        match self.send(frame) {
            Some(Event::Violation(violation)) => violation,
            other => panic!("expected a violation by {frame}, got {other:?}"),
        }
    }

    pub(crate) fn strange(&mut self, frame: &str) -> ViolationKind {
        self.violation(frame).kind
    }

    /// A frame that completes a call.
    pub(crate) fn completed(&mut self, frame: &str) -> Completed<'static> {
        match self.send(frame) {
            Some(Event::Complete(completed)) => completed,
            other => panic!("expected a result, got {other:?}"),
        }
    }

    /// A frame that ends a call without a result.
    pub(crate) fn failed(&mut self, frame: &str) -> (CallId, mcp_proto::client::CallError) {
        match self.send(frame) {
            Some(Event::Failed { call, error }) => (call, error),
            other => panic!("expected a failure, got {other:?}"),
        }
    }

    /// A frame that asks for input.
    pub(crate) fn asked(&mut self, frame: &str) -> (CallId, Round) {
        match self.send(frame) {
            Some(Event::InputRequired { call, round }) => (call, round),
            other => panic!("expected questions, got {other:?}"),
        }
    }

    /// Makes a call and returns its name and what was sent.
    pub(crate) fn call<R: Request>(&mut self, request: &R, options: &CallOptions) -> (CallId, Value) {
        let call = self.client.call(request, options, self.now, &mut self.out).unwrap();
        (call, self.one())
    }

    /// Calls a tool without arguments.
    pub(crate) fn tool(&mut self, name: &'static str, options: &CallOptions) -> (CallId, Value) {
        self.call(&CallTool::new(name), options)
    }

    /// The messages written since the last look.
    pub(crate) fn sent(&mut self) -> Vec<Value> {
        let out = std::mem::take(&mut self.out);
        assert!(out.is_empty() || out.ends_with(b"\n"), "a line is not finished");
        let mut limits = Limits::default();
        limits.max_id = usize::MAX; // what comes back as it came
        out.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                assert!(rpc::parse(line, &limits).is_ok());
                serde_json::from_slice(line).unwrap()
            })
            .collect()
    }

    /// The only message written since the last look.
    pub(crate) fn one(&mut self) -> Value {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// Lets time pass up to `millis` after the origin and returns what is due by then.
    pub(crate) fn pass(&mut self, millis: u64) -> Vec<Event<'static>> {
        self.now = self.now.max(at(millis));
        let mut due = Vec::new();
        while let Some(event) = self.client.handle_timeout(self.now, &mut self.out) {
            due.push(event);
            assert!(due.len() < 1_000_000, "time does not pass");
        }
        due
    }

    /// What is due at once.
    pub(crate) fn due(&mut self) -> Vec<Event<'static>> {
        self.pass(0)
    }
}
