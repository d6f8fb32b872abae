//! What the messages of scripts have in common.

use serde_json::{Value, json};

use crate::revision::Revision;

/// The request that shows that a connection lives, and what its silence breaks.
pub(super) const fn alive(modern: bool) -> (&'static str, &'static [&'static str]) {
    if modern { ("server/discover", &["S-BASE-01"]) } else { ("ping", &["LB-PING-01"]) }
}

/// The metadata that each request of the modern era has.
pub(super) fn meta(revision: Revision) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": revision.as_str(),
        "io.modelcontextprotocol/clientInfo": {"name": "mcp-conformance", "version": env!("CARGO_PKG_VERSION")},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// The member of a page that holds the items.
pub(super) fn member(method: &str) -> &'static str {
    match method {
        "tools/list" => "tools",
        "prompts/list" => "prompts",
        "resources/list" => "resources",
        _ => "resourceTemplates",
    }
}

/// The pattern of an error with one of these codes.
pub(super) fn error(codes: &[i64]) -> Value {
    json!({"error": {"code": {"$oneOf": codes}, "message": {"$type": "string"}, "$rest": true}})
}

/// The pattern of a refusal of arguments: an error, or a result that says so.
pub(super) fn refusal() -> Value {
    json!({
        "result": {"$optional": {"isError": true, "$rest": true}},
        "error": {"$optional": {"code": {"$type": "integer"}, "$rest": true}},
    })
}
