//! 2025-03-26 to 2025-11-25: sessions.

mod posts;
mod questions;
mod session;
mod streams;
mod tasks;

use serde_json::{Value, json};

use crate::harness::Net;
use crate::kit::Kit;

const VERSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

fn net() -> (Net, Kit) {
    let kit = Kit::default();
    (Net::new(&kit.service()), kit)
}

fn plain(id: impl Into<Value>, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method})
}

fn note(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn answer(question: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
}

fn yes(question: &Value) -> Value {
    answer(question, json!({"action": "accept", "content": {"confirm": true}}))
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"))
}
