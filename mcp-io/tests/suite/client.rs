//! A client that speaks lines, on no runtime.

use std::future::poll_fn;

use mcp_io::{Io, MemoryStream};
use serde_json::{Value, json};

pub(crate) struct Client<I = MemoryStream> {
    io: I,
    unread: Vec<u8>,
}

impl<I: Io> Client<I> {
    pub(crate) fn new(io: I) -> Self {
        Self { io, unread: Vec::new() }
    }

    pub(crate) fn into_io(self) -> I {
        self.io
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let mut bytes = bytes.as_ref();
        while !bytes.is_empty() {
            let written = poll_fn(|cx| self.io.poll_write(cx, bytes)).await.unwrap();
            bytes = &bytes[written..];
        }
    }

    /// The next message; `None` at the end of the stream.
    pub(crate) async fn receive(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
                let line: Vec<_> = self.unread.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let mut buf = [0; 4096];
            match poll_fn(|cx| self.io.poll_read(cx, &mut buf)).await.unwrap() {
                0 if self.unread.is_empty() => return None,
                0 => panic!("half a message at the end: {:?}", String::from_utf8_lossy(&self.unread)),
                got => self.unread.extend_from_slice(&buf[..got]),
            }
        }
    }

    /// Nothing more will be sent.
    pub(crate) async fn finish(&mut self) {
        poll_fn(|cx| self.io.poll_close(cx)).await.unwrap();
    }

    /// The answers to come until the end of the stream, by id.
    pub(crate) async fn rest(&mut self) -> Vec<(u64, String)> {
        let mut rest = Vec::new();
        while let Some(message) = self.receive().await {
            rest.push((message["id"].as_u64().unwrap(), text(&message)));
        }
        rest.sort();
        rest
    }
}

/// A `tools/call` of 2026-07-28, with its line end.
pub(crate) fn call(id: u64, tool: &str, arguments: &Value) -> String {
    let params = json!({
        "name": tool,
        "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "suite", "version": "1" },
        },
    });
    let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    format!("{call}\n")
}

pub(crate) fn echo(id: u64, text: &str) -> String {
    call(id, "echo", &json!({ "text": text }))
}

pub(crate) fn gate(id: u64, name: &str) -> String {
    call(id, "gate", &json!({ "text": name }))
}

/// The text of an answer.
pub(crate) fn text(answer: &Value) -> String {
    let text = &answer["result"]["content"][0]["text"];
    text.as_str().unwrap_or_else(|| panic!("no text in {answer}")).to_owned()
}
