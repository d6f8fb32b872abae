//! `_meta`: metadata that travels with a message or an object. [spec: basic#_meta]

use alloc::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ClientCapabilities, Implementation, Json, LoggingLevel, Members, Str};
use crate::rpc::de::DecodeError;

/// The `_meta` object: an open set of members, kept verbatim and in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta(Members<Json>);

impl Meta {
    /// An empty object.
    #[must_use]
    pub const fn new() -> Self {
        Self(Members::new())
    }

    /// Adds a member, or replaces its value.
    #[must_use]
    pub fn with(mut self, key: impl Into<Str>, value: impl Into<Json>) -> Self {
        self.0.insert(key, value.into());
        self
    }

    /// Adds a member, or replaces its value and returns the old one.
    pub fn insert(&mut self, key: impl Into<Str>, value: Json) -> Option<Json> {
        self.0.insert(key, value)
    }

    /// Takes a member out.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        self.0.remove(key)
    }

    /// The value of a member.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.get(key)
    }

    /// The members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> + '_ {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `progressToken`, a string or an integer: its type is kept, so it is JSON here.
    #[must_use]
    pub fn progress_token(&self) -> Option<&Json> {
        self.get(key::PROGRESS_TOKEN)
    }

    /// The id of the listen request that a message belongs to; its type is kept, so it is JSON here.
    #[must_use]
    pub fn subscription_id(&self) -> Option<&Json> {
        self.get(key::SUBSCRIPTION_ID)
    }

    /// The revision that a request is written in, if the member is a string.
    #[must_use]
    pub fn protocol_version(&self) -> Option<Cow<'_, str>> {
        self.get(key::PROTOCOL_VERSION)?.as_str()
    }

    /// What the client can do, as this request declares it.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<Result<ClientCapabilities, DecodeError>> {
        self.get(key::CLIENT_CAPABILITIES).map(Json::decode)
    }

    /// Who asks. `None` also if it cannot be read: it is for people and logs.
    #[must_use]
    pub fn client_info(&self) -> Option<Implementation> {
        self.get(key::CLIENT_INFO)?.decode().ok()
    }

    /// Who answers. `None` also if it cannot be read: it is for people and logs.
    #[must_use]
    pub fn server_info(&self) -> Option<Implementation> {
        self.get(key::SERVER_INFO)?.decode().ok()
    }

    /// The level from which the client wants log messages of this request.
    #[must_use]
    pub fn log_level(&self) -> Option<Result<LoggingLevel, DecodeError>> {
        self.get(key::LOG_LEVEL).map(Json::decode)
    }

    /// The 2025-11-25 task that a message belongs to.
    #[must_use]
    pub fn related_task(&self) -> Option<Str> {
        #[derive(Deserialize)]
        struct Related {
            #[serde(rename = "taskId")]
            task_id: Str,
        }
        Some(self.get(key::RELATED_TASK)?.decode::<Related>().ok()?.task_id)
    }

    /// Names the 2025-11-25 task that a message belongs to.
    #[must_use]
    pub fn with_related_task(self, task_id: &str) -> Self {
        #[derive(Serialize)]
        struct Related<'a> {
            #[serde(rename = "taskId")]
            task_id: &'a str,
        }
        match Json::from_serialize(&Related { task_id }) {
            Ok(value) => self.with(key::RELATED_TASK, value),
            Err(_) => self, // a struct of strings always has a JSON form
        }
    }
}

impl<N: Into<Str>> FromIterator<(N, Json)> for Meta {
    fn from_iter<I: IntoIterator<Item = (N, Json)>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Members::deserialize(deserializer).map(Self)
    }
}

/// The keys that the protocol gives a meaning, and the grammar of all keys.
pub mod key {
    /// Request: opts in to progress. All revisions.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// Request: the revision it is written in. Required since 2026-07-28.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Request: what the client can do. Required since 2026-07-28.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Request: who asks. Since 2026-07-28.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// Request: opts in to log messages of this level and above. Since 2026-07-28, deprecated.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Result: who answers. Since 2026-07-28.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Messages of a listen stream and its result: the id of the listen request. Since 2026-07-28.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Any message that belongs to a task. Only 2025-11-25.
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// Creation of a task: text that the model may read at once. Only 2025-11-25, provisional.
    pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
    /// W3C Trace Context. Since 2026-07-28.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C Trace Context. Since 2026-07-28.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C Baggage. Since 2026-07-28.
    pub const BAGGAGE: &str = "baggage";

    /// Whether `key` follows the grammar `[prefix/]name`. [spec: basic#_meta]
    ///
    /// A prefix is labels joined by dots; a label starts with a letter, ends with a letter or digit and
    /// holds letters, digits and hyphens. A name is empty, or starts and ends with a letter or digit and
    /// holds letters, digits, hyphens, underscores and dots.
    #[must_use]
    pub fn is_valid(key: &str) -> bool {
        match key.split_once('/') {
            Some((prefix, name)) => prefix.split('.').all(is_label) && is_name(name),
            None => is_name(key),
        }
    }

    /// Whether the protocol keeps the prefix of `key` to itself: its second label is
    /// `modelcontextprotocol` or `mcp`. This is the rule since 2025-11-25.
    #[must_use]
    pub fn is_reserved(key: &str) -> bool {
        let Some((prefix, _)) = key.split_once('/') else { return false };
        matches!(prefix.split('.').nth(1), Some("modelcontextprotocol" | "mcp"))
    }

    fn is_label(label: &str) -> bool {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphabetic)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    }

    fn is_name(name: &str) -> bool {
        let bytes = name.as_bytes();
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return true };
        first.is_ascii_alphanumeric()
            && last.is_ascii_alphanumeric()
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn keys_follow_the_grammar() {
        // B-META-02, B-META-03, B-META-05
        for good in [
            key::PROTOCOL_VERSION,
            key::PROGRESS_TOKEN,
            key::RELATED_TASK,
            key::TRACEPARENT,
            "com.example/",
            "a/b",
            "x-1.y2/n_a.m-e",
            "",
        ] {
            assert!(key::is_valid(good), "{good:?}");
        }
        for bad in ["/a", "1a/b", "a-/b", "a..b/c", "a/b/c", "_x", "x_", "a b", "a/-", "é", "a./b"] {
            assert!(!key::is_valid(bad), "{bad:?}");
        }
    }

    #[test]
    fn the_second_label_reserves_a_prefix() {
        for reserved in
            ["io.modelcontextprotocol/x", "dev.mcp/", "org.modelcontextprotocol.api/x", "com.mcp.tools/y"]
        {
            assert!(key::is_reserved(reserved), "{reserved}");
        }
        for free in ["com.example.mcp/x", "mcp/x", "progressToken", "io.mcpx/y"] {
            assert!(!key::is_reserved(free), "{free}");
        }
    }

    #[test]
    fn known_members_are_read() {
        let text = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/serverInfo":{"name":5},"io.modelcontextprotocol/logLevel":"loud","io.modelcontextprotocol/subscriptionId":7}"#;
        let meta: Meta = serde_json::from_str(text).unwrap();
        assert_eq!(meta.protocol_version().as_deref(), Some("2026-07-28"));
        assert!(meta.client_capabilities().unwrap().unwrap().supports_roots());
        assert_eq!(meta.client_info().unwrap().name, "c");
        assert_eq!(meta.server_info(), None);
        assert!(meta.log_level().unwrap().is_err());
        assert_eq!(meta.subscription_id().unwrap().get(), "7");
        assert!(Meta::new().client_capabilities().is_none() && Meta::new().log_level().is_none());
    }

    #[test]
    fn unknown_members_stay_verbatim_and_in_order() {
        let text = r#"{"z":{"b":1.0,"a":[]},"progressToken":"7","io.modelcontextprotocol/related-task":{"taskId":"t"}}"#;
        let meta: Meta = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&meta).unwrap(), text);
        assert_eq!(meta.progress_token().unwrap().get(), "\"7\"");
        assert_eq!(meta.related_task().as_deref(), Some("t"));
        assert_eq!(meta.protocol_version(), None);
        assert_eq!(
            Meta::new().with_related_task("t").get(key::RELATED_TASK).unwrap().to_string(),
            r#"{"taskId":"t"}"#
        );
        for bad in ["[]", "null", "\"x\"", "1"] {
            assert!(serde_json::from_str::<Meta>(bad).is_err(), "{bad}");
        }
    }
}
