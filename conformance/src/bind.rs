//! Binding the messages of an exchange to a revision and a transport.
//!
//! An exchange says what matters; the binder adds what every message of the revision has: `jsonrpc`, an id, and
//! in the modern era the metadata of a request. What the exchange writes itself wins.

use serde_json::{Map, Value, json};

use crate::exchange::Send;
use crate::pattern::{Implied, Scope, template};
use crate::revision::Revision;

/// The key prefix of the protocol's own metadata.
pub(crate) const META: &str = "io.modelcontextprotocol/";

/// Binds the messages of one exchange.
#[derive(Debug, Clone)]
pub struct Binder {
    revision: Revision,
    capabilities: Value,
    next_id: u64,
}

/// A message ready to be sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Bound {
    /// The whole message.
    pub message: Value,
    /// The bytes to write, with what the step puts before and after the message.
    pub bytes: Vec<u8>,
    /// The id, if it is a request.
    pub id: Option<Value>,
}

impl Binder {
    /// A binder for one connection; `capabilities` is what the client side declares, as a template.
    ///
    /// # Errors
    ///
    /// Says why the capabilities cannot be filled.
    pub fn new(revision: Revision, capabilities: &Value) -> Result<Self, String> {
        let filled = template::fill(capabilities, &Scope::new(revision))?;
        Ok(Self { revision, capabilities: filled.unwrap_or_else(|| json!({})), next_id: 1 })
    }

    /// The capabilities the client side declares.
    #[must_use]
    pub const fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    /// The message of a step, bound. A request that has a name is noted in the scope.
    ///
    /// # Errors
    ///
    /// Says why the template cannot be filled.
    pub fn bind(&mut self, send: &Send, scope: &mut Scope) -> Result<Bound, String> {
        let message = self.fill(&send.message, scope)?;
        let id = message.get("id").filter(|_| message.get("method").is_some()).cloned();
        if let (Some(name), Some(id)) = (&send.name, &id) {
            scope.ids.insert(name.clone(), id.clone());
        }
        let bytes = [send.lead.as_bytes(), message.to_string().as_bytes(), send.end.as_bytes()].concat();
        Ok(Bound { message, bytes, id })
    }

    /// The message of a template, with what every message of the revision has.
    pub(crate) fn fill(&mut self, template: &Value, scope: &Scope) -> Result<Value, String> {
        let mut template = template.clone();
        if let Value::Object(members) = &mut template {
            self.complete(members);
        }
        Ok(template::fill(&template, scope)?.unwrap_or_default())
    }

    /// The opening of a legacy session: the `initialize` request and the notification after its result.
    #[must_use]
    pub fn handshake(&mut self) -> [Value; 2] {
        let initialize = json!({
            "jsonrpc": "2.0",
            "id": self.id(),
            "method": "initialize",
            "params": {
                "protocolVersion": self.revision.as_str(),
                "capabilities": self.capabilities,
                "clientInfo": client_info(),
            },
        });
        [initialize, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})]
    }

    /// A request that no exchange wrote.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let mut members =
            Map::from_iter([("method".to_owned(), json!(method)), ("params".to_owned(), params)]);
        self.complete(&mut members);
        Value::Object(members)
    }

    fn complete(&mut self, members: &mut Map<String, Value>) {
        members.entry("jsonrpc").or_insert_with(|| json!("2.0"));
        let method = members.get("method").and_then(Value::as_str).unwrap_or("request");
        if method.starts_with("notifications/") {
            return;
        }
        if !members.contains_key("id") {
            let id = self.id();
            members.insert("id".to_owned(), id);
        }
        if self.revision.is_modern() {
            self.metadata(members);
        }
    }

    /// Adds to `params._meta` what the exchange does not write itself. An operator in place of `params` or
    /// `_meta` is left as it is.
    fn metadata(&self, members: &mut Map<String, Value>) {
        let plain =
            |value: &Value| value.as_object().is_some_and(|inner| template::operator(inner).is_none());
        let params = members.entry("params").or_insert_with(|| json!({}));
        if !plain(params) {
            return;
        }
        let Value::Object(params) = params else { return };
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if !plain(meta) {
            return;
        }
        let Value::Object(meta) = meta else { return };
        let mut add = |name: &str, value: Value| {
            meta.entry(format!("{META}{name}")).or_insert(value);
        };
        add("protocolVersion", json!(self.revision.as_str()));
        add("clientInfo", client_info());
        add("clientCapabilities", self.capabilities.clone());
    }

    fn id(&mut self) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        json!(id)
    }
}

/// What a pattern for a response or notification need not name on this revision.
pub(crate) fn implied(
    revision: Revision,
    method: Option<&str>,
) -> Vec<(&'static str, &'static str, Implied)> {
    let mut implied = vec![("/result", "_meta", Implied::Anything), ("/params", "_meta", Implied::Anything)];
    if revision.is_modern() {
        implied.push(("/result", "resultType", Implied::Text("complete")));
        if method.is_some_and(crate::invariants::cacheable) {
            implied.push(("/result", "ttlMs", Implied::Anything));
            implied.push(("/result", "cacheScope", Implied::Anything));
        }
    }
    implied
}

fn client_info() -> Value {
    json!({"name": "mcp-conformance", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Action, parse};

    const HEAD: &str = r#"{"exchange":"a/b","about":"A.","side":"server","revisions":["*"],"transports":["stdio"],"requires":["W01"]}"#;

    fn bound(revision: Revision, step: &str) -> Bound {
        let exchange = parse("x", &format!("{HEAD}\n{step}")).unwrap();
        let Action::Send(send) = &exchange.steps[0].action else { panic!("not a send") };
        let mut binder = Binder::new(revision, &json!({"roots": {}})).unwrap();
        let mut scope = Scope::new(revision);
        let bound = binder.bind(send, &mut scope).unwrap();
        assert_eq!(scope.ids.get("call").cloned(), send.name.as_ref().and_then(|_| bound.id.clone()));
        bound
    }

    #[test]
    fn a_legacy_request_gets_an_id_and_nothing_else() {
        let bound = bound(Revision::V2025_11_25, r#"{"send":{"method":"tools/list"},"as":"call"}"#);
        assert_eq!(bound.message, json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        assert_eq!(bound.bytes, [bound.message.to_string().as_bytes(), b"\n"].concat());
    }

    #[test]
    fn a_modern_request_carries_its_metadata() {
        let step = r#"{"send":{"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}}"#;
        let bound = bound(Revision::V2026_07_28, step);
        let meta = &bound.message["params"]["_meta"];
        assert_eq!(meta["progressToken"], 7);
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({"roots": {}}));
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "mcp-conformance");
    }

    #[test]
    fn a_notification_gets_neither_id_nor_metadata() {
        let step = r#"{"send":{"method":"notifications/cancelled","params":{"requestId":1}}}"#;
        let message = bound(Revision::V2026_07_28, step).message;
        assert_eq!(
            message,
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        );
    }

    #[test]
    fn what_the_exchange_writes_or_takes_away_wins() {
        let revision = Revision::V2026_07_28;
        let step = r#"{"send":{"method":"ping","id":"x","jsonrpc":{"$absent":true},"params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"$absent":true},"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}}}"#;
        let message = bound(revision, step).message;
        assert_eq!((message.get("jsonrpc"), &message["id"]), (None, &json!("x")));
        let meta = message["params"]["_meta"].as_object().unwrap();
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2099-01-01");
        assert!(!meta.contains_key("io.modelcontextprotocol/clientInfo"));
        let bare = bound(revision, r#"{"send":{"method":"ping","params":{"$absent":true}}}"#).message;
        assert_eq!(bare, json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
        let bare =
            bound(revision, r#"{"send":{"method":"ping","params":{"_meta":{"$absent":true}}}}"#).message;
        assert_eq!(bare["params"], json!({}));
    }
}
