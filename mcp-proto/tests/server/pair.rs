//! Both ends of one stream without the stream: frames go in, lines come out, time moves when told to.

use std::sync::Arc;
use std::time::Duration;

use mcp_proto::limits::Limits;
use mcp_proto::model::method::{CallTool, CallToolParams};
use mcp_proto::model::{Implementation, Json, ProtocolVersion, ServerCapabilities, TASKS_EXTENSION};
use mcp_proto::server::{
    Call, Config, ConfigBuilder, Connection, Event, Incoming, Pending, RequestKey, Violation,
};
use mcp_proto::time::Instant;
use serde_json::Value;

/// The metadata that every request of 2026-07-28 carries, as a member of `params`.
pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// What a client can declare, in the words of any revision.
pub(crate) const EVERY_CAPABILITY: &str = r#"{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// The revisions with a handshake.
pub(crate) const LEGACY: [ProtocolVersion; 4] = [
    ProtocolVersion::V2024_11_05,
    ProtocolVersion::V2025_03_26,
    ProtocolVersion::V2025_06_18,
    ProtocolVersion::V2025_11_25,
];

/// A server that offers everything.
pub(crate) fn config() -> ConfigBuilder {
    let capabilities = ServerCapabilities::new()
        .tools(true)
        .prompts(true)
        .resources(true, true)
        .completions()
        .logging()
        .core_tasks(true, true)
        .extension(TASKS_EXTENSION, Json::parse("{}").unwrap());
    Config::builder(Implementation::new("fixture", "1.0.0"))
        .capabilities(capabilities)
        .instructions("Mind the gap.")
}

/// Default bounds, changed by `change`.
pub(crate) fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// A request of 2026-07-28; `params` are members without the braces.
pub(crate) fn modern(id: &str, method: &str, params: &str) -> String {
    modern_of(id, method, params, "{}", "")
}

/// A request of 2026-07-28 with these client capabilities and further members of `_meta`.
pub(crate) fn modern_of(id: &str, method: &str, params: &str, capabilities: &str, meta: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    let more = if meta.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}{more}{meta}}}}}}}"#
    )
}

/// A request of the legacy era; `params` are members without the braces.
pub(crate) fn legacy(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
}

/// A `tools/call` of the era of `version`.
pub(crate) fn call(version: ProtocolVersion, id: &str, tool: &str) -> String {
    let params = format!(r#""name":"{tool}","arguments":{{}}"#);
    if version.is_modern() { modern(id, "tools/call", &params) } else { legacy(id, "tools/call", &params) }
}

/// A `tools/call` of the era of `version` with a progress token.
pub(crate) fn call_with_token(version: ProtocolVersion, id: &str, token: &str) -> String {
    let token = format!(r#""progressToken":{token}"#);
    if version.is_modern() {
        modern_of(id, "tools/call", r#""name":"t""#, "{}", &token)
    } else {
        legacy(id, "tools/call", &format!(r#""name":"t","_meta":{{{token}}}"#))
    }
}

/// `initialize` that offers `version`.
pub(crate) fn initialize(id: &str, version: &str, capabilities: &str) -> String {
    legacy(
        id,
        "initialize",
        &format!(
            r#""protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"client","version":"2"}}"#
        ),
    )
}

/// `notifications/cancelled` for the request `id`.
pub(crate) fn cancel(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

/// A notification without params.
pub(crate) fn notification(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

/// A success response to a request of the server.
pub(crate) fn result(id: &Value, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Time since the origin.
pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(millis))
}

/// The server's machine, the clock and what was written.
pub(crate) struct Pair {
    pub(crate) server: Connection,
    pub(crate) now: Instant,
    pub(crate) out: Vec<u8>,
}

impl Pair {
    /// A fresh stream to a server that offers everything.
    pub(crate) fn new() -> Self {
        Self::of(config().build())
    }

    pub(crate) fn of(config: Arc<Config>) -> Self {
        Self { server: Connection::new(config), now: at(1_000), out: Vec::new() }
    }

    /// A stream on which both sides are done with the handshake.
    pub(crate) fn session(version: ProtocolVersion) -> Self {
        Self::new().with_session(version, EVERY_CAPABILITY)
    }

    pub(crate) fn with_session(mut self, version: ProtocolVersion, capabilities: &str) -> Self {
        assert!(self.send(&initialize("\"init\"", version.as_str(), capabilities)).is_none());
        let answer = self.message();
        assert_eq!(answer["result"]["protocolVersion"], version.as_str(), "{answer}");
        assert!(matches!(self.send(&notification("notifications/initialized")), Some(Event::Initialized)));
        self
    }

    /// A stream of the revision: after the handshake if it has one.
    pub(crate) fn speaking(version: ProtocolVersion) -> Self {
        if version.is_modern() { Self::new() } else { Self::session(version) }
    }

    /// One frame from the client.
    pub(crate) fn send<'b>(&mut self, frame: &'b str) -> Option<Event<'b>> {
        self.server.handle(frame.as_bytes(), self.now, &mut self.out)
    }

    /// A frame that is a request which reaches the driver.
    pub(crate) fn request<'b>(&mut self, frame: &'b str) -> Incoming<'b> {
        match self.send(frame) {
            Some(Event::Request(incoming)) => incoming,
            other => panic!("expected a request, got {other:?} and {}", self.text()),
        }
    }

    /// A frame that is a request which stays open.
    pub(crate) fn open(&mut self, frame: &str) -> RequestKey {
        self.request(frame).pending.key()
    }

    /// A frame that is a `tools/call` which reaches the driver.
    pub(crate) fn tool<'b>(&mut self, frame: &'b str) -> (Pending<CallTool>, CallToolParams<'b>) {
        match self.request(frame).typed() {
            Ok(Call::CallTool(pending, params)) => (pending, params),
            other => panic!("expected tools/call, got {other:?}"),
        }
    }

    /// A frame that is refused by the machine.
    pub(crate) fn refused(&mut self, frame: &str) -> Violation {
        match self.send(frame) {
            Some(Event::Rejected(violation)) => violation,
            other => panic!("expected a refusal of {frame}, got {other:?} and {}", self.text()),
        }
    }

    /// A frame that is refused with exactly one error response, which is returned.
    pub(crate) fn error(&mut self, frame: &str) -> Value {
        let violation = self.refused(frame);
        assert!(violation.answered, "{violation:?}");
        let answer = self.message();
        assert_eq!(answer["error"]["code"], violation.error.code, "{answer}");
        answer
    }

    /// Lets time pass up to `millis` after the start and returns what is due by then.
    pub(crate) fn pass(&mut self, millis: u64) -> Vec<Event<'static>> {
        self.now = self.now.max(at(millis));
        let mut due = Vec::new();
        while let Some(event) = self.server.handle_timeout(self.now, &mut self.out) {
            due.push(event);
        }
        assert!(self.server.next_deadline().is_none_or(|deadline| deadline > self.now), "all that was due");
        due
    }

    /// Takes what was written: nothing but complete lines of JSON, one object or array each.
    pub(crate) fn text(&mut self) -> String {
        let text = String::from_utf8(core::mem::take(&mut self.out)).expect("UTF-8 (B-TRANS-01)");
        assert!(text.is_empty() || text.ends_with('\n'), "complete lines: {text:?}");
        for line in text.lines() {
            let value: Value =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("S-STDIO-01: {e}: {line}"));
            assert!(value.is_object() || value.is_array(), "{line}");
        }
        text
    }

    /// Takes what was written, message by message.
    pub(crate) fn messages(&mut self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Takes the one message that was written.
    pub(crate) fn message(&mut self) -> Value {
        let mut messages = self.messages();
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages.remove(0)
    }

    /// Nothing was written.
    pub(crate) fn silent(&mut self) {
        assert_eq!(self.text(), "");
    }
}
