//! What a client wants to be told. [spec: basic/patterns/subscriptions]

use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize};

use super::{EmptyResult, Str};

/// The answer to `subscriptions/listen`, at its graceful end. Its `_meta` names the subscription and is
/// written with the envelope.
pub type ListenResult = EmptyResult;

/// The kinds of notification that `subscriptions/listen` asks for, or that its acknowledgment grants.
/// A kind that is absent, false or empty is not asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// `notifications/tools/list_changed`
    #[serde(skip_serializing_if = "is_false", deserialize_with = "or_default")]
    pub tools_list_changed: bool,
    /// `notifications/prompts/list_changed`
    #[serde(skip_serializing_if = "is_false", deserialize_with = "or_default")]
    pub prompts_list_changed: bool,
    /// `notifications/resources/list_changed`
    #[serde(skip_serializing_if = "is_false", deserialize_with = "or_default")]
    pub resources_list_changed: bool,
    /// `notifications/resources/updated` for these URIs.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub resource_subscriptions: Vec<Str>,
    /// `notifications/tasks` for these tasks; with the tasks extension.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub task_ids: Vec<Str>,
}

impl SubscriptionFilter {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes of the list of tools.
    #[must_use]
    pub const fn tools_list_changed(mut self) -> Self {
        self.tools_list_changed = true;
        self
    }

    /// Changes of the list of prompts.
    #[must_use]
    pub const fn prompts_list_changed(mut self) -> Self {
        self.prompts_list_changed = true;
        self
    }

    /// Changes of the lists of resources and of templates.
    #[must_use]
    pub const fn resources_list_changed(mut self) -> Self {
        self.resources_list_changed = true;
        self
    }

    /// Changes of the resource at this URI.
    #[must_use]
    pub fn resource(mut self, uri: impl Into<Str>) -> Self {
        self.resource_subscriptions.push(uri.into());
        self
    }

    /// Changes of this task.
    #[must_use]
    pub fn task(mut self, task_id: impl Into<Str>) -> Self {
        self.task_ids.push(task_id.into());
        self
    }

    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature is serde's
const fn is_false(value: &bool) -> bool {
    !*value
}

/// `null` counts as absent.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::de;

    #[test]
    fn only_what_is_asked_for_is_written() {
        let filter = SubscriptionFilter::new().tools_list_changed().resource("a:b").task("t");
        let text = r#"{"toolsListChanged":true,"resourceSubscriptions":["a:b"],"taskIds":["t"]}"#;
        assert_eq!(serde_json::to_string(&filter).unwrap(), text);
        assert_eq!(de::from_str::<SubscriptionFilter>(text).unwrap(), filter);
        let odd = r#"{"toolsListChanged":false,"promptsListChanged":null,"taskIds":[],"new":1}"#;
        assert!(de::from_str::<SubscriptionFilter>(odd).unwrap().is_empty());
        for bad in ["[]", r#"{"toolsListChanged":1}"#, r#"{"taskIds":"t"}"#] {
            assert!(de::from_str::<SubscriptionFilter>(bad).is_err(), "{bad}");
        }
    }
}
