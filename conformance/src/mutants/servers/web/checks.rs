//! What the small server compares before it serves.

use base64::Engine as _;
use serde_json::Value;

use super::{Request, Server, VERSION};

impl Server {
    /// The header that does not say what the body says.
    pub(super) fn mismatch(&self, request: &Request, message: &Value) -> Option<&'static str> {
        let same = |header: &str, said: &str, wanted: &str| {
            if self.is("values-in-any-case") {
                return said.eq_ignore_ascii_case(wanted);
            }
            said == wanted && (request.count(header) == 1 || self.is("first-line-counts"))
        };
        let params = &message["params"];
        let version = params["_meta"][VERSION].as_str().unwrap_or_default();
        let name = "mcp-protocol-version";
        match request.header(name) {
            None if self.is("version-may-lack") => {}
            said if !same(name, said.unwrap_or("\0"), version) && !self.is("no-version-check") => {
                return Some(name);
            }
            _ => {}
        }
        let name = "mcp-method";
        let said = request.header(name).unwrap_or("\0");
        if !same(name, said, message["method"].as_str().unwrap_or_default()) && !self.is("no-method-check") {
            return Some(name);
        }
        if message["method"] != "tools/call" {
            return None;
        }
        let called = params["name"].as_str().unwrap_or_default();
        let name = "mcp-name";
        let said = self.decoded(request.header(name));
        if !same(name, said.as_deref().unwrap_or("\0"), called) && !self.is("no-name-check") {
            return Some(name);
        }
        if called != "test_x_mcp_header" || self.is("no-argument-check") {
            return None;
        }
        let name = "mcp-param-region";
        let untrimmed = request.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &value[1..]);
        let said = self.decoded(if self.is("no-trim") { untrimmed } else { request.header(name) });
        match params["arguments"]["region"].as_str() {
            Some(_) if said.is_none() && self.is("argument-may-lack") && request.count(name) == 0 => None,
            Some(value) => (!same(name, said.as_deref().unwrap_or("\0"), value)).then_some(name),
            None => (request.count(name) > 0 && !self.is("surplus-header")).then_some(name),
        }
    }

    /// The value that a header stands for; `None` if it cannot be read.
    pub(super) fn decoded(&self, said: Option<&str>) -> Option<String> {
        let said = said?;
        if !said.is_ascii() && !self.is("raw-text") {
            return None;
        }
        let lower = said.to_ascii_lowercase();
        let marked = if self.is("markers-in-any-case") { &lower } else { said };
        let inner = marked.starts_with("=?base64?") && marked.ends_with("?=");
        if !inner || self.is("no-decoding") {
            return Some(said.to_owned());
        }
        let text = &said["=?base64?".len()..said.len() - 2];
        let bytes = base64::engine::general_purpose::STANDARD.decode(text);
        match bytes {
            Ok(bytes) => String::from_utf8(bytes).ok(),
            Err(_) if self.is("undecodable-is-literal") => Some("echo".to_owned()),
            Err(_) => None,
        }
    }
}
