//! Prompts and the messages they make. [spec: server/prompts]

use alloc::{borrow::Cow, vec::Vec};

use serde::{Deserialize, Serialize};

use super::{ContentBlock, Icon, Meta, ProtocolVersion, ResultBody, Role, Str};

/// A prompt, as listed. [spec: server/prompts#prompt]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Prompt {
    /// Unique name.
    pub name: Str,
    /// Name for people. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Str>,
    /// What it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<PromptArgument>>,
    /// Icons in several sizes. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Prompt {
    /// A prompt of this name.
    #[must_use]
    pub fn new(name: impl Into<Str>) -> Self {
        Self { name: name.into(), title: None, description: None, arguments: None, icons: None, meta: None }
    }

    setters! {
        title: Str, description: Str, arguments: Vec<PromptArgument>, icons: Vec<Icon>, meta: Meta,
    }
}

/// One argument of a prompt. Its value is always a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Name, unique within the prompt.
    pub name: Str,
    /// Name for people. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Str>,
    /// Whether it must be given. Taken as false if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

impl PromptArgument {
    /// An argument of this name.
    #[must_use]
    pub fn new(name: impl Into<Str>) -> Self {
        Self { name: name.into(), title: None, description: None, required: None }
    }

    setters! { title: Str, description: Str }
    plain_setters! { required: bool }
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: ContentBlock,
}

impl PromptMessage {
    /// A message of this role.
    #[must_use]
    pub fn new(role: Role, content: impl Into<ContentBlock>) -> Self {
        Self { role, content: content.into() }
    }

    /// What the user says.
    #[must_use]
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content)
    }

    /// What the model says.
    #[must_use]
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

list_result! {
    /// Answer to `prompts/list`.
    ListPromptsResult {
        /// One page of prompts.
        prompts: Prompt
    }
}

/// Answer to `prompts/get`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GetPromptResult {
    /// What the prompt is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Str>,
    /// The messages in order.
    pub messages: Vec<PromptMessage>,
    /// Metadata, written with the envelope.
    #[serde(rename = "_meta", default, skip_serializing)]
    pub meta: Option<Meta>,
}

impl GetPromptResult {
    /// These messages.
    #[must_use]
    pub fn new(messages: impl Into<Vec<PromptMessage>>) -> Self {
        Self { messages: messages.into(), ..Self::default() }
    }

    /// One text of the user.
    #[must_use]
    pub fn text(text: impl Into<Str>) -> Self {
        Self::new([PromptMessage::user(ContentBlock::text(text))])
    }

    setters! { description: Str, meta: Meta }
}

impl ResultBody for GetPromptResult {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// Blocks of an unknown kind become text.
    fn fitted(&self, version: ProtocolVersion) -> Cow<'_, Self> {
        if self.messages.iter().all(|message| message.content.fitted(version).is_none()) {
            return Cow::Borrowed(self);
        }
        let mut result = self.clone();
        for message in &mut result.messages {
            if let Some(fitted) = message.content.fitted(version) {
                message.content = fitted;
            }
        }
        Cow::Owned(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ProtocolVersion as V, Resource};

    #[test]
    fn messages_fit_the_revision() {
        let result = GetPromptResult::new([
            PromptMessage::user("hi"),
            PromptMessage::assistant(Resource::new("a:b", "n")),
            PromptMessage::user(ContentBlock::audio(b"", "audio/wav")),
        ]);
        let kinds = |version| -> Vec<&str> {
            let fitted = result.fitted(version);
            fitted.messages.iter().map(|m| m.content.kind()).collect()
        };
        assert_eq!(kinds(V::V2024_11_05), ["text", "text", "text"]);
        assert_eq!(kinds(V::V2025_03_26), ["text", "text", "audio"]);
        assert_eq!(kinds(V::V2025_06_18), ["text", "resource_link", "audio"]);
        assert!(matches!(result.fitted(V::V2025_06_18), Cow::Borrowed(_)));
    }

    #[test]
    fn absent_members_are_not_written() {
        let text = r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}]}"#;
        assert_eq!(serde_json::to_string(&GetPromptResult::text("a")).unwrap(), text); // E09
        assert_eq!(serde_json::from_str::<GetPromptResult>(text).unwrap(), GetPromptResult::text("a"));
        let full = Prompt::new("p").title("P").arguments([PromptArgument::new("a").required(true)]);
        let text = r#"{"name":"p","title":"P","arguments":[{"name":"a","required":true}]}"#;
        assert_eq!(serde_json::to_string(&full).unwrap(), text);
    }
}
