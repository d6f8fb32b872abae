//! The messages and servers that benchmarks and allocation counts are taken of.
#![allow(dead_code)] // each user takes a part

use std::sync::Arc;

use mcp_proto::model::{
    CallToolResult, Implementation, JsonSchema, ProtocolVersion, ServerCapabilities, Tool,
};
use mcp_proto::registry::Registry;
use mcp_proto::server::{Call, Channel, Config, Connection, Event};
use mcp_proto::time::Instant;

/// The members of a `tools/call` of 2026-07-28 with an integer id, 472 bytes long, in the usual order.
pub(crate) fn modern_call() -> Vec<u8> {
    let frame = envelope(["jsonrpc", "id", "method", "params"], &modern_params(true));
    assert_eq!(frame.len(), 472);
    frame
}

/// The same members, backwards at each level.
pub(crate) fn modern_call_reordered() -> Vec<u8> {
    let frame = envelope(["params", "method", "id", "jsonrpc"], &modern_params(false));
    assert_eq!(frame.len(), 472);
    frame
}

/// The same call in a legacy session: without the metadata that 2026-07-28 wants.
pub(crate) fn legacy_call() -> Vec<u8> {
    let params = format!(r#"{{"name":"echo","arguments":{ARGUMENTS},"_meta":{{"progressToken":77}}}}"#);
    envelope(["jsonrpc", "id", "method", "params"], &params)
}

/// A `tools/call` of 2026-07-28 whose argument is a string of so many bytes.
pub(crate) fn large_call(bytes: usize) -> Vec<u8> {
    let text = "Plain words without anything to escape. ".repeat(bytes / 40 + 1);
    let params = format!(r#"{{"name":"echo","arguments":{{"text":"{}"}},{META}}}"#, &text[..bytes]);
    envelope(["jsonrpc", "id", "method", "params"], &params)
}

/// A `tools/list` of 2026-07-28, or of a legacy session.
pub(crate) fn list(modern: bool) -> Vec<u8> {
    let meta = if modern { META } else { r#""_meta":{}"# };
    let frame = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{{meta}}}}}"#);
    frame.into_bytes()
}

const ARGUMENTS: &str = r#"{"text":"The quick brown fox jumps over the lazy dog, again. And then once more over the same lazy dog, who does not mind.","count":3,"exact":true}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"example-client","version":"1.2.0"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"progressToken":77}"#;
const META_BACKWARDS: &str = r#""_meta":{"progressToken":77,"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"version":"1.2.0","name":"example-client"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

fn modern_params(forwards: bool) -> String {
    match forwards {
        true => format!(r#"{{"name":"echo","arguments":{ARGUMENTS},{META}}}"#),
        false => format!(r#"{{{META_BACKWARDS},"arguments":{ARGUMENTS},"name":"echo"}}"#),
    }
}

fn envelope(order: [&str; 4], params: &str) -> Vec<u8> {
    let members = order.map(|name| match name {
        "jsonrpc" => r#""jsonrpc":"2.0""#.to_owned(),
        "id" => r#""id":1234"#.to_owned(),
        "method" => r#""method":"tools/call""#.to_owned(),
        _ => format!(r#""params":{params}"#),
    });
    format!("{{{}}}", members.join(",")).into_bytes()
}

/// A server that answers every call at once with the same short text.
pub(crate) struct Machine {
    connection: Connection,
    registry: Registry<usize>,
    result: CallToolResult,
    pub(crate) out: Vec<u8>,
}

impl Machine {
    /// With so many tools; `echo` is one of them. With the handshake of 2025-11-25 if not `modern`.
    pub(crate) fn new(tools: usize, modern: bool) -> Self {
        let registry = (0..tools)
            .map(|n| if n == tools / 2 { "echo".to_owned() } else { format!("tool-{n}") })
            .fold(Registry::builder().page_size(100), |builder, name| {
                builder.tool(Tool::new(name, JsonSchema::any_object()).description("Says it again."), 0)
            })
            .build()
            .unwrap();
        let config = Config::builder(Implementation::new("bench", "1.0.0"))
            .capabilities(ServerCapabilities::new().tools(true))
            .build();
        let mut machine = Self {
            connection: Connection::new(Arc::clone(&config)),
            registry,
            result: CallToolResult::text("The quick brown fox jumps over the lazy dog, again."),
            out: Vec::new(),
        };
        if !modern {
            machine.handle(br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"example-client","version":"1.2.0"}}}"#);
            machine.handle(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            assert_eq!(machine.connection.session_version(), Some(ProtocolVersion::LATEST_LEGACY));
        }
        machine
    }

    /// From the frame to the answer in `out`, as a driver would do it.
    #[inline(never)]
    pub(crate) fn handle(&mut self, frame: &[u8]) {
        self.out.clear();
        let event = self.connection.handle(frame, Instant::ZERO, &mut self.out);
        let Some(Event::Request(incoming)) = event else { return };
        let version = incoming.version;
        let _ = match incoming.typed() {
            Ok(Call::CallTool(pending, params)) => match self.registry.tool(version, None, &params.name) {
                Ok(_) => self.connection.respond(pending, &self.result, &mut self.out),
                Err(error) => self.connection.fail(pending, &error, &mut self.out),
            },
            Ok(Call::ListTools(pending, params)) => {
                self.connection.respond_with(pending, &mut self.out, |out, version| {
                    self.registry.list_tools(version, None, params.cursor.as_deref(), out)
                })
            }
            Ok(other) => self.connection.refuse(other.not_found(), &mut self.out),
            Err(refusal) => self.connection.refuse(refusal, &mut self.out),
        };
    }

    /// The machine alone: what is called is not looked at, and the answer is ready.
    #[inline(never)]
    pub(crate) fn handle_alone(&mut self, frame: &[u8]) {
        const BODY: &[u8] =
            br#"{"content":[{"type":"text","text":"The quick brown fox jumps over the lazy dog, again."}]}"#;
        self.out.clear();
        let event = self.connection.handle(frame, Instant::ZERO, &mut self.out);
        if let Some(Event::Request(incoming)) = event {
            let _ = self.connection.respond_raw(incoming.pending, BODY, &mut self.out);
        }
    }

    /// The answer is a result that contains `part`.
    pub(crate) fn assert_answered(&self, part: &str) {
        let out = std::str::from_utf8(&self.out).unwrap();
        assert!(out.contains("\"result\":{") && out.contains(part), "{out}");
    }
}

/// What any parser of `serde_json` has to do at least.
#[inline(never)]
pub(crate) fn scan(frame: &[u8]) {
    serde_json::from_slice::<serde::de::IgnoredAny>(std::hint::black_box(frame)).unwrap();
}
