//! Holding what a client sends against the official schemas, where the user has them.

use serde_json::Value;

use super::rules::Ledger;
use crate::invariants::Breach;
use crate::revision::Revision;
use crate::schema::Schemas;

/// What a message of the client breaks.
pub(super) fn check(schemas: &Schemas, ledger: &Ledger, revision: Revision, message: &Value) -> Vec<Breach> {
    let method = message.get("method").and_then(Value::as_str);
    let revision = ledger.speaks_now(revision);
    match method.and_then(definition) {
        Some(name) => schemas.check_as(revision, message, name),
        None => Vec::new(),
    }
}

/// The definition of what a client sends with this method.
fn definition(method: &str) -> Option<&'static str> {
    Some(match method {
        "initialize" => "InitializeRequest",
        "server/discover" => "DiscoverRequest",
        "ping" => "PingRequest",
        "tools/list" => "ListToolsRequest",
        "tools/call" => "CallToolRequest",
        "resources/list" => "ListResourcesRequest",
        "resources/templates/list" => "ListResourceTemplatesRequest",
        "resources/read" => "ReadResourceRequest",
        "resources/subscribe" => "SubscribeRequest",
        "resources/unsubscribe" => "UnsubscribeRequest",
        "prompts/list" => "ListPromptsRequest",
        "prompts/get" => "GetPromptRequest",
        "completion/complete" => "CompleteRequest",
        "logging/setLevel" => "SetLevelRequest",
        "subscriptions/listen" => "SubscriptionsListenRequest",
        "notifications/initialized" => "InitializedNotification",
        "notifications/cancelled" => "CancelledNotification",
        "notifications/progress" => "ProgressNotification",
        "notifications/roots/list_changed" => "RootsListChangedNotification",
        _ => return None,
    })
}
