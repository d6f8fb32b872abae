//! What the suite's server does by itself: discovery, handshake, lists, and no to everything of the other era.

use serde_json::{Map, Value, json};

use crate::bind::META;
use crate::exchange::Hosted;
use crate::pattern::{Scope, template};
use crate::revision::{Revision, Selector};

/// The server behind one exchange.
#[derive(Debug)]
pub(super) struct House {
    revision: Revision,
    speaks: Selector,
    serves: Map<String, Value>,
    handshake: bool,
}

impl House {
    pub(super) fn new(
        hosted: &Hosted,
        revision: Revision,
        handshake: bool,
        scope: &Scope,
    ) -> Result<Self, String> {
        let serves = template::fill(&Value::Object(hosted.serves.clone()), scope)?;
        let Some(Value::Object(serves)) = serves else { return Err("`serves` is no object".to_owned()) };
        let speaks = hosted.speaks.unwrap_or_else(|| std::iter::once(revision).collect());
        Ok(Self { revision, speaks, serves, handshake })
    }

    /// The answer to a request that is left to the server, if it has one.
    pub(super) fn answer(&self, request: &Value) -> Option<Value> {
        let method = request.get("method").and_then(Value::as_str)?;
        let empty = Value::Null;
        let params = request.get("params").unwrap_or(&empty);
        let stamp = params.get("_meta").and_then(|meta| meta.get(format!("{META}protocolVersion")));
        if !self.handshake && matches!(method, "server/discover" | "initialize") {
            return None;
        }
        match stamp {
            Some(version) => self.modern(method, version),
            None if method == "initialize" => Some(self.initialize(params)),
            None => self.common(method),
        }
    }

    fn modern(&self, method: &str, version: &Value) -> Option<Value> {
        let served: Vec<_> = self.speaks.revisions().filter(|revision| revision.is_modern()).collect();
        if served.is_empty() {
            return Some(error(-32601, &format!("no method {method}")));
        }
        if !served.iter().any(|revision| version.as_str() == Some(revision.as_str())) {
            let supported: Vec<_> = self.speaks.revisions().map(Revision::as_str).collect();
            return Some(json!({"error": {
                "code": -32022,
                "message": "the version is not served",
                "data": {"supported": supported, "requested": version},
            }}));
        }
        match method {
            "server/discover" => {
                let versions: Vec<_> = self.speaks.revisions().map(Revision::as_str).collect();
                let mut result = json!({"supportedVersions": versions, "capabilities": self.capabilities()});
                self.instruct(&mut result);
                Some(json!({"result": result}))
            }
            "initialize" | "ping" => Some(error(-32601, &format!("no method {method}"))),
            _ => self.common(method),
        }
    }

    fn initialize(&self, params: &Value) -> Value {
        let legacy: Vec<_> = self.speaks.revisions().filter(|revision| !revision.is_modern()).collect();
        let Some(latest) = legacy.last() else {
            return error(-32601, "no method initialize");
        };
        let offered = params.get("protocolVersion").and_then(Value::as_str).and_then(Revision::from_date);
        let settled = offered.filter(|offered| legacy.contains(offered)).unwrap_or(*latest);
        let mut result = json!({
            "protocolVersion": settled.as_str(),
            "capabilities": self.capabilities(),
            "serverInfo": identity(),
        });
        self.instruct(&mut result);
        json!({"result": result})
    }

    fn instruct(&self, result: &mut Value) {
        if let Some(instructions) = self.serves.get("instructions") {
            result["instructions"] = instructions.clone();
        }
    }

    fn common(&self, method: &str) -> Option<Value> {
        let (name, member) = match method {
            "ping" => return Some(json!({"result": {}})),
            "tools/list" => ("tools", "tools"),
            "resources/list" => ("resources", "resources"),
            "resources/templates/list" => ("templates", "resourceTemplates"),
            "prompts/list" => ("prompts", "prompts"),
            _ => return None,
        };
        let items = match self.serves.get(name) {
            Some(items) => items.clone(),
            None if name == "tools" => json!([echo()]),
            None => json!([]),
        };
        Some(json!({"result": {member: items}}))
    }

    /// What it declares: what the exchange says, or what its lists need.
    pub(super) fn capabilities(&self) -> Value {
        if let Some(capabilities) = self.serves.get("capabilities") {
            return capabilities.clone();
        }
        let mut capabilities = json!({"tools": {"listChanged": true}});
        if self.serves.contains_key("resources") || self.serves.contains_key("templates") {
            capabilities["resources"] = json!({"subscribe": true, "listChanged": true});
        }
        if self.serves.contains_key("prompts") {
            capabilities["prompts"] = json!({"listChanged": true});
        }
        if let Some(extensions) = self.serves.get("extensions").filter(|_| self.revision.is_modern()) {
            capabilities["extensions"] = extensions.clone();
        }
        capabilities
    }
}

/// The tool that a server has whose exchange says nothing else.
fn echo() -> Value {
    json!({
        "name": "echo",
        "description": "Gives the text back",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    })
}

pub(super) fn identity() -> Value {
    json!({"name": "mcp-conformance", "version": env!("CARGO_PKG_VERSION")})
}

fn error(code: i64, message: &str) -> Value {
    json!({"error": {"code": code, "message": message}})
}

/// Adds to an answer what every answer of the revision has. What the exchange writes itself wins.
pub(super) fn complete(body: &mut Value, modern: bool, method: &str, request: &Value) {
    let Some(Value::Object(result)) = body.get_mut("result").filter(|_| modern) else { return };
    if template::operator(result).is_some() {
        return;
    }
    let kind = result.entry("resultType").or_insert_with(|| json!("complete")).clone();
    if crate::invariants::cacheable(method) && kind == "complete" {
        result.entry("ttlMs").or_insert_with(|| json!(0));
        result.entry("cacheScope").or_insert_with(|| json!("private"));
    }
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    let Value::Object(meta) = meta else { return };
    if template::operator(meta).is_some() {
        return;
    }
    meta.entry(format!("{META}serverInfo")).or_insert_with(identity);
    if method == "subscriptions/listen" {
        let id = request.get("id").cloned().unwrap_or_default();
        meta.entry(format!("{META}subscriptionId")).or_insert(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::parse;

    fn house(revision: Revision, more: &str) -> House {
        let text = format!(
            "{{\"exchange\":\"a/b\",\"about\":\"A.\",\"side\":\"client\",\"revisions\":[\"*\"],\"transports\":[\"stdio\"],\"requires\":[\"W01\"],\"plan\":{{}}{more}}}\n{{\"wait\":0}}"
        );
        let exchange = parse("x", &text).unwrap();
        House::new(exchange.hosted.as_ref().unwrap(), revision, true, &Scope::new(revision)).unwrap()
    }

    fn stamped(method: &str, version: &str) -> Value {
        json!({"id": 1, "method": method, "params": {"_meta": {format!("{META}protocolVersion"): version}}})
    }

    #[test]
    fn each_era_refuses_the_other() {
        let modern = house(Revision::V2026_07_28, "");
        let discovered = modern.answer(&stamped("server/discover", "2026-07-28")).unwrap();
        assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]));
        let refused = modern.answer(&stamped("server/discover", "2027-01-01")).unwrap();
        assert_eq!(refused["error"]["code"], -32022);
        let opened = json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
        assert_eq!(modern.answer(&opened).unwrap()["error"]["code"], -32601);
        let legacy = house(Revision::V2025_03_26, "");
        assert_eq!(legacy.answer(&opened).unwrap()["result"]["protocolVersion"], "2025-03-26");
        assert!(legacy.answer(&stamped("server/discover", "2026-07-28")).unwrap().get("error").is_some());
        let both = house(Revision::V2025_03_26, ",\"speaks\":\"*\"");
        assert_eq!(both.answer(&opened).unwrap()["result"]["protocolVersion"], "2025-06-18");
    }

    #[test]
    fn what_a_modern_answer_has_is_added_and_what_is_written_wins() {
        let request = json!({"id": 7, "method": "tools/list"});
        let mut body = json!({"result": {"tools": [], "ttlMs": 5}});
        complete(&mut body, true, "tools/list", &request);
        assert_eq!(body["result"]["ttlMs"], 5);
        assert_eq!(body["result"]["cacheScope"], "private");
        assert_eq!(body["result"]["resultType"], "complete");
        let mut body = json!({"result": {"tools": []}});
        complete(&mut body, false, "tools/list", &request);
        assert_eq!(body, json!({"result": {"tools": []}}));
    }
}
