//! Holding messages against the official schemas, where the user has them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::invariants::Breach;
use crate::requirement::Level;
use crate::revision::Revision;
use crate::text::shorten;

type Compiled = BTreeMap<(&'static str, String), Option<Arc<Validator>>>;

/// The schemas of a folder, one for each revision that has one.
#[derive(Debug)]
pub struct Schemas {
    documents: BTreeMap<&'static str, Value>,
    /// Compiled definitions by revision and name; `None` where the document has no such definition.
    compiled: Mutex<Compiled>,
}

impl Schemas {
    /// Reads `DIR/<revision>/schema.json` for every revision that has one there.
    ///
    /// # Errors
    ///
    /// Names the file that cannot be read, or says that there is none.
    pub fn load(folder: &Path) -> Result<Self, String> {
        let mut documents = BTreeMap::new();
        for revision in Revision::ALL {
            let path = folder.join(revision.as_str()).join("schema.json");
            if !path.exists() {
                continue;
            }
            let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let document =
                serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            documents.insert(revision.as_str(), document);
        }
        if documents.is_empty() {
            return Err(format!("{}: expected <revision>/schema.json in it, got none", folder.display()));
        }
        Ok(Self { documents, compiled: Mutex::default() })
    }

    /// What a message breaks; `method` is that of the request, if the message is a response.
    #[must_use]
    pub fn check(&self, revision: Revision, message: &Value, method: Option<&str>) -> Vec<Breach> {
        let Some((name, part, at)) = definition(revision, message, method) else { return Vec::new() };
        self.hold(revision, &name, part, at)
    }

    /// What a message breaks as an instance of this definition.
    pub(crate) fn check_as(&self, revision: Revision, message: &Value, name: &str) -> Vec<Breach> {
        self.hold(revision, name, message, "")
    }

    fn hold(&self, revision: Revision, name: &str, part: &Value, at: &str) -> Vec<Breach> {
        let Some(validator) = self.validator(revision, name) else { return Vec::new() };
        let breach = |error: jsonschema::ValidationError<'_>| Breach {
            rule: "schema",
            requires: vec!["W01"],
            level: Level::Must,
            at: format!("{at}{}", error.instance_path()),
            expected: format!("{name} of the {revision} schema: {}", shorten(&error.to_string(), 200)),
            got: shorten(&error.instance().to_string(), 300),
        };
        validator.iter_errors(part).take(3).map(breach).collect()
    }

    fn validator(&self, revision: Revision, name: &str) -> Option<Arc<Validator>> {
        let document = self.documents.get(revision.as_str())?;
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (revision.as_str(), name.to_owned());
        compiled.entry(key).or_insert_with(|| compile(document, name).map(Arc::new)).clone()
    }
}

fn compile(document: &Value, name: &str) -> Option<Validator> {
    let keyword = if document.get("$defs").is_some() { "$defs" } else { "definitions" };
    document.get(keyword)?.get(name)?;
    let mut schema = json!({keyword: document.get(keyword)?, "$ref": format!("#/{keyword}/{name}")});
    if let (Value::Object(schema), Some(dialect)) = (&mut schema, document.get("$schema")) {
        schema.insert("$schema".to_owned(), dialect.clone());
    }
    jsonschema::validator_for(&schema).ok()
}

/// The definition a message is an instance of, the part of the message that is, and where that stands.
fn definition<'m>(
    revision: Revision,
    message: &'m Value,
    method: Option<&str>,
) -> Option<(String, &'m Value, &'static str)> {
    if let Some(own) = message.get("method").and_then(Value::as_str) {
        let name = match own {
            "notifications/progress" => "ProgressNotification",
            "notifications/message" => "LoggingMessageNotification",
            "notifications/cancelled" => "CancelledNotification",
            "notifications/tools/list_changed" => "ToolListChangedNotification",
            "notifications/prompts/list_changed" => "PromptListChangedNotification",
            "notifications/resources/list_changed" => "ResourceListChangedNotification",
            "notifications/resources/updated" => "ResourceUpdatedNotification",
            "notifications/subscriptions/acknowledged" => "SubscriptionsAcknowledgedNotification",
            "notifications/elicitation/complete" => "ElicitationCompleteNotification",
            "notifications/tasks/status" => "TaskStatusNotification",
            "ping" => "PingRequest",
            "roots/list" => "ListRootsRequest",
            "sampling/createMessage" => "CreateMessageRequest",
            "elicitation/create" => "ElicitRequest",
            _ => return None,
        };
        return Some((name.to_owned(), message, ""));
    }
    if message.get("error").is_some() {
        // An error without a readable id is the business of the ledger.
        let whole = message.get("id").is_some_and(|id| !id.is_null());
        let name = if revision >= Revision::V2025_11_25 { "JSONRPCErrorResponse" } else { "JSONRPCError" };
        return whole.then(|| (name.to_owned(), message, ""));
    }
    let result = message.get("result")?;
    let name = match result.get("resultType").and_then(Value::as_str) {
        Some("input_required") => "InputRequiredResult",
        // The tasks extension has a schema of its own.
        Some("task") => return None,
        _ => match method? {
            "initialize" => "InitializeResult",
            "server/discover" => "DiscoverResult",
            "tools/list" => "ListToolsResult",
            "tools/call" if result.get("task").is_some() && revision == Revision::V2025_11_25 => {
                "CreateTaskResult"
            }
            "tools/call" => "CallToolResult",
            "resources/list" => "ListResourcesResult",
            "resources/templates/list" => "ListResourceTemplatesResult",
            "resources/read" => "ReadResourceResult",
            "prompts/list" => "ListPromptsResult",
            "prompts/get" => "GetPromptResult",
            "completion/complete" => "CompleteResult",
            "subscriptions/listen" => "SubscriptionsListenResult",
            "tasks/get" if revision == Revision::V2025_11_25 => "GetTaskResult",
            "tasks/cancel" if revision == Revision::V2025_11_25 => "CancelTaskResult",
            "tasks/list" if revision == Revision::V2025_11_25 => "ListTasksResult",
            _ => "Result",
        },
    };
    Some((name.to_owned(), result, "/result"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::print_stdout, reason = "a skipped test says so")]
    fn schemas() -> Option<Schemas> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/spec/schema");
        if !folder.exists() {
            println!("skipped: {} is not there", folder.display());
            return None;
        }
        Some(Schemas::load(&folder).unwrap())
    }

    #[test]
    fn a_folder_without_schemas_is_an_error() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert!(Schemas::load(&folder).unwrap_err().contains("expected <revision>/schema.json"));
    }

    #[test]
    fn a_result_is_held_against_the_definition_of_its_method() {
        let Some(schemas) = schemas() else { return };
        for revision in Revision::ALL {
            let good = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}});
            assert_eq!(schemas.check(revision, &good, Some("tools/list")), [], "{revision}");
            let mut bad = good;
            bad["result"]["tools"][0]["name"] = json!(5);
            let breaches = schemas.check(revision, &bad, Some("tools/list"));
            assert_eq!(breaches.len(), 1, "{revision}: {breaches:?}");
            assert_eq!(breaches[0].at, "/result/tools/0/name");
        }
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "y"}});
        assert!(!schemas.check(Revision::V2026_07_28, &error, Some("tools/list")).is_empty());
    }
}
