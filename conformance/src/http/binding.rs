//! The headers that a message has by the rules of its revision.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde_json::{Map, Value};

/// Header lines in their order.
pub(crate) type Headers = Vec<(String, String)>;

/// Which arguments of which tool are mirrored into headers, as the listed definitions say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mirrors {
    tools: BTreeMap<String, Vec<Mirror>>,
}

#[derive(Debug, Clone)]
struct Mirror {
    /// The names from the arguments down to the value.
    path: Vec<String>,
    /// The header, without `Mcp-Param-`.
    name: String,
}

impl Mirrors {
    /// Reads the definitions of tools.
    pub(crate) fn of<'t>(tools: impl IntoIterator<Item = &'t Value>) -> Self {
        let mut mirrors = Self::default();
        for tool in tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let mut found = Vec::new();
            collect(tool.get("inputSchema").unwrap_or(&Value::Null), &mut Vec::new(), &mut found);
            if !found.is_empty() {
                mirrors.tools.insert(name.to_owned(), found);
            }
        }
        mirrors
    }

    fn add(&self, params: &Value, headers: &mut Headers) {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        for mirror in self.tools.get(name).into_iter().flatten() {
            let arguments = params.get("arguments").unwrap_or(&Value::Null);
            let value = mirror.path.iter().try_fold(arguments, |value, name| value.get(name));
            if let Some(text) = value.and_then(text_of) {
                headers.push((format!("Mcp-Param-{}", mirror.name), encode(&text)));
            }
        }
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirror>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (property, schema) in properties.into_iter().flatten() {
        path.push(property.clone());
        if let Some(name) = schema.get("x-mcp-header").and_then(Value::as_str) {
            found.push(Mirror { path: path.clone(), name: name.to_owned() });
        }
        if path.len() < 16 {
            collect(schema, path, found);
        }
        path.pop();
    }
}

/// What a header says for a value; nothing for one that has no header.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_i64() && !number.is_u64() && float.fract() == 0.0 => {
                Some(format!("{float:.0}"))
            }
            _ => Some(number.to_string()),
        },
        _ => None,
    }
}

/// A value as header text: as it is, or in the base64 form where it could not be told apart otherwise.
pub(crate) fn encode(text: &str) -> String {
    let plain = |byte: u8| (b' '..=b'~').contains(&byte) || byte == b'\t';
    let padded = text.trim_matches([' ', '\t']).len() != text.len();
    let sentinel = text.starts_with("=?base64?") && text.ends_with("?=");
    if text.bytes().all(plain) && !padded && !sentinel {
        return text.to_owned();
    }
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(text))
}

/// Whether a request says that it is of the modern era.
pub(crate) fn is_stamped(message: &Value) -> bool {
    message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some()
}

/// The headers of a modern request: its version, its method, what it names, its mirrored arguments.
pub(crate) fn modern(message: &Value, revision: &str, mirrors: &Mirrors, headers: &mut Headers) {
    let stamp = message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion");
    let version = stamp.and_then(Value::as_str).unwrap_or(revision);
    headers.push(("MCP-Protocol-Version".to_owned(), encode(version)));
    let Some(method) = message.get("method").and_then(Value::as_str) else { return };
    headers.push(("Mcp-Method".to_owned(), encode(method)));
    let empty = Value::Object(Map::new());
    let params = message.get("params").unwrap_or(&empty);
    let named = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return,
    };
    if let Some(name) = params.get(named).and_then(Value::as_str) {
        headers.push(("Mcp-Name".to_owned(), encode(name)));
    }
    if method == "tools/call" {
        mirrors.add(params, headers);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_the_specification_says() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("a b", "a b"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode(text), header);
        }
    }

    #[test]
    fn what_a_definition_annotates_is_mirrored() {
        let tool = json!({"name": "t", "inputSchema": {"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "inner": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "free": {"type": "string"}}}});
        let mirrors = Mirrors::of([&tool]);
        let call = |arguments: Value| {
            let message = json!({"method": "tools/call", "params": {"name": "t", "arguments": arguments}});
            let mut headers = Vec::new();
            modern(&message, "2026-07-28", &mirrors, &mut headers);
            headers.into_iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
        };
        let standard = ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: t"];
        assert_eq!(call(json!({"region": null, "free": "x"})), standard);
        let all = call(json!({"region": "x", "inner": {"n": 42.0}, "dry": true}));
        assert_eq!(all[..3], standard);
        assert_eq!(all[3..], ["Mcp-Param-Dry: true", "Mcp-Param-N: 42", "Mcp-Param-Region: x"]);
    }
}
