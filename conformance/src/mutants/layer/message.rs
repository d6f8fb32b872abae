//! What faults look for in messages, and how they change them.

use serde_json::{Value, json};

/// Where the version of a modern request stands.
pub(super) const VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
/// Where its capabilities stand.
pub(super) const CAPABILITIES: &str = "/params/_meta/io.modelcontextprotocol~1clientCapabilities";

/// The method, empty if there is none.
pub(super) fn method(message: &Value) -> &str {
    message.get("method").and_then(Value::as_str).unwrap_or_default()
}

/// Whether it is a request.
pub(super) fn is_request(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_some()
}

/// Whether it is a response with a result.
pub(super) fn is_result(message: &Value) -> bool {
    message.get("result").is_some_and(Value::is_object)
}

/// Whether it is a request of the modern era.
pub(super) fn is_modern(message: &Value) -> bool {
    message.pointer(VERSION).is_some()
}

/// Whether it calls this tool.
pub(super) fn calls(message: &Value, tool: &str) -> bool {
    method(message) == "tools/call" && message.pointer("/params/name").is_some_and(|name| name == tool)
}

/// Whether it asks for a list.
pub(super) fn lists(message: &Value) -> bool {
    method(message).ends_with("/list") && method(message) != "roots/list"
}

/// The text at a place, empty if there is none.
pub(super) fn text<'m>(message: &'m Value, place: &str) -> &'m str {
    message.pointer(place).and_then(Value::as_str).unwrap_or_default()
}

/// Puts a member into the object at a place, if there is one.
pub(super) fn put(message: &mut Value, place: &str, name: &str, value: Value) {
    if let Some(Value::Object(members)) = message.pointer_mut(place) {
        members.insert(name.to_owned(), value);
    }
}

/// Takes a member out of the object at a place.
pub(super) fn take(message: &mut Value, place: &str, name: &str) -> Option<Value> {
    message.pointer_mut(place)?.as_object_mut()?.remove(name)
}

/// The id as text, with its type.
pub(super) fn key(message: &Value) -> String {
    message.get("id").map(Value::to_string).unwrap_or_default()
}

/// A notification.
pub(super) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// A result for the request.
pub(super) fn result(request: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

/// An error for the request.
pub(super) fn error(request: &Value, code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "planted"}})
}

/// Does something to every text inside.
pub(super) fn texts(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| texts(item, change)),
        Value::Object(members) => members.values_mut().for_each(|member| texts(member, change)),
        _ => {}
    }
}
