//! Whether a server offers a method.

use crate::model::method::ServerMethod as M;
use crate::model::{ProtocolVersion, ServerCapabilities};

/// Whether the revision has the method, and the capabilities, where they are known, declare it.
pub(super) fn offers(version: ProtocolVersion, capabilities: Option<&ServerCapabilities>, method: M) -> bool {
    if !version.has_method(method) {
        return false;
    }
    let Some(has) = capabilities else { return true };
    match method {
        M::Initialize | M::Discover | M::Ping | M::Listen => true,
        M::SetLevel => has.has_logging(),
        M::ListTools | M::CallTool => has.has_tools(),
        M::ListResources | M::ListResourceTemplates | M::ReadResource => has.has_resources(),
        M::Subscribe | M::Unsubscribe => has.has_resource_subscriptions(),
        M::ListPrompts | M::GetPrompt => has.has_prompts(),
        M::Complete => has.has_completions() || !version.has_completions_capability(),
        // A task may outlive the session in which it was made, and what is declared there.
        M::GetTask | M::UpdateTask | M::CancelTask => true,
        M::TaskResult | M::ListTasks => has.members().get("tasks").is_some(),
    }
}
