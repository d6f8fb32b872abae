//! Spans of calls.

use std::fmt;
use std::sync::{Arc, Mutex};

use mcp_proto::service::{NoArguments, Server};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::harness::Client;

/// Writes down what happens to spans.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

struct Fields<'n>(&'n mut Vec<String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push(format!("{field}={value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push(format!("{field}={value}"));
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() || metadata.target() == "test"
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut notes = self.0.lock().unwrap();
        notes.push(format!("new {}", span.metadata().name()));
        span.record(&mut Fields(&mut notes));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&mut self.0.lock().unwrap()));
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        self.0.lock().unwrap().push("event".into());
    }
    fn enter(&self, _: &Id) {
        self.0.lock().unwrap().push("enter".into());
    }
    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().push("exit".into());
    }
}

fn notes(meta: Value) -> Vec<String> {
    let service = Server::new("test", "1")
        .tool("hear", |_, _: NoArguments| async {
            tracing::info!(target: "test", "heard");
            Ok("heard")
        })
        .build()
        .unwrap();
    let notes = Notes::default();
    tracing::subscriber::with_default(notes.clone(), || {
        let mut client = Client::legacy(&service, "2025-11-25", json!({}));
        let params = json!({ "name": "hear", "arguments": {}, "_meta": meta });
        client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
        assert_eq!(client.take()[0]["result"]["content"][0]["text"], "heard");
    });
    notes.0.lock().unwrap().clone()
}

/// B-META-08: the trace that a call belongs to is that of its `_meta`.
#[test]
fn a_handler_runs_in_the_span_of_its_call() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let noted = notes(json!({ "traceparent": parent, "tracestate": "a=1", "baggage": "user=7" }));
    let expected = [
        "new mcp",
        "otel.kind=server",
        "mcp.method.name=tools/call",
        "mcp.target=hear",
        "mcp.protocol.version=2025-11-25",
        "otel.name=tools/call hear",
        &format!("traceparent={parent}"),
        "tracestate=a=1",
        "baggage=user=7",
        "enter",
        "event",
        "exit",
    ];
    assert_eq!(noted[..expected.len()], expected);
}

#[test]
fn what_is_no_trace_is_left_out() {
    let noted = notes(json!({ "traceparent": "00-x", "tracestate": "a=1", "baggage": "two\nlines" }));
    assert!(noted.iter().any(|note| note == "event"));
    for field in ["traceparent", "tracestate", "baggage"] {
        assert!(!noted.iter().any(|note| note.starts_with(field)), "{noted:?}");
    }
}
