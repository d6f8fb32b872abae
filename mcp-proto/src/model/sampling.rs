//! Text from the client's model. Deprecated since 2026-07-28. [spec: client/sampling]

use alloc::{borrow::Cow, boxed::Box, string::String, vec::Vec};
use core::{fmt, slice};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{
        Error, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

use super::{
    AudioContent, ContentBlock, ImageContent, Json, Meta, ProtocolVersion, ResultBody, Role, Str,
    TextContent, Tool,
    content::{Block, need},
    number,
    view::WriteError,
};

mod pairing;

pub use pairing::{ToolUseFault, check_tool_use};

/// Params of `sampling/createMessage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename = "CreateMessageRequestParams", rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessage {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Which model is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// What the model is told first. The client may change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<Str>,
    /// Context of which servers is wanted. Other than `none` only with the capability
    /// `sampling.context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// How freely the model chooses.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option::serialize")]
    pub temperature: Option<f64>,
    /// The most tokens of the answer.
    pub max_tokens: u64,
    /// Texts at which the model stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<Str>>,
    /// Anything for the model's provider: an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// Tools that the model may use. Since 2025-11-25, with the capability `sampling.tools`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// How the model may use tools. Since 2025-11-25, with the capability `sampling.tools`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
}

impl CreateMessage {
    /// The next message of this conversation, of at most so many tokens.
    #[must_use]
    pub fn new(messages: impl Into<Vec<SamplingMessage>>, max_tokens: u64) -> Self {
        Self {
            messages: messages.into(),
            model_preferences: None,
            system_prompt: None,
            include_context: None,
            temperature: None,
            max_tokens,
            stop_sequences: None,
            metadata: None,
            tools: None,
            tool_choice: None,
        }
    }

    setters! {
        model_preferences: ModelPreferences, system_prompt: Str, include_context: IncludeContext,
        stop_sequences: Vec<Str>, metadata: Json, tools: Vec<Tool>, tool_choice: ToolChoice,
    }
    plain_setters! { temperature: f64 }

    /// Whether the model may use tools, which needs the capability `sampling.tools`.
    #[must_use]
    pub fn uses_tools(&self) -> bool {
        self.tools.is_some()
            || self.tool_choice.is_some()
            || self.messages.iter().any(|m| m.content.uses_tools())
    }

    /// Whether context of servers is wanted, which needs the capability `sampling.context`.
    #[must_use]
    pub fn wants_context(&self) -> bool {
        self.include_context.is_some_and(|context| context != IncludeContext::None)
    }

    /// The request as `version` can express it: without several blocks in a message before 2025-11-25,
    /// without audio before 2025-03-26. Tool uses and results cannot be said before 2025-11-25.
    pub(crate) fn fitted(&self, version: ProtocolVersion) -> Result<Cow<'_, Self>, WriteError> {
        let mut fitted = Cow::Borrowed(self);
        if self.messages.iter().any(|message| !message.content.fits(version)) {
            let messages = self.messages.iter().map(|message| message.split(version));
            fitted.to_mut().messages = messages.collect::<Result<Vec<_>, _>>()?.concat();
        }
        if let Some(tools) = &self.tools
            && version.has_member("CreateMessageRequestParams", "tools")
            && tools.iter().any(|tool| tool.fitted(version).is_some())
        {
            let tools = tools.iter().map(|tool| tool.fitted(version).unwrap_or_else(|| tool.clone()));
            fitted.to_mut().tools = Some(tools.collect());
        }
        Ok(fitted)
    }
}

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SamplingMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: SamplingContent,
    /// Metadata. Since 2025-11-25.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SamplingMessage {
    /// A message of this role.
    #[must_use]
    pub fn new(role: Role, content: impl Into<SamplingContent>) -> Self {
        Self { role, content: content.into(), meta: None }
    }

    /// What the user says, or what tools answered.
    #[must_use]
    pub fn user(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::User, content)
    }

    /// What the model says, or which tools it uses.
    #[must_use]
    pub fn assistant(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::Assistant, content)
    }

    setters! { meta: Meta }

    /// This message as `version` can express it: before 2025-11-25 one message for each block.
    fn split(&self, version: ProtocolVersion) -> Result<Vec<Self>, WriteError> {
        let fitted = |block: &SamplingBlock| block.fitted(version);
        let content = match &self.content {
            SamplingContent::One(block) => fitted(block)?.into(),
            SamplingContent::Many(blocks) => {
                let blocks = blocks.iter().map(fitted).collect::<Result<Vec<_>, _>>()?;
                if !version.has_sampling_tools() {
                    return Ok(blocks.into_iter().map(|block| Self::new(self.role, block)).collect());
                }
                SamplingContent::Many(blocks)
            }
        };
        Ok(alloc::vec![Self { content, ..self.clone() }])
    }
}

/// What a message says: one block, or since 2025-11-25 several.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_enums)] // a JSON value or an array of them: there is no third form
pub enum SamplingContent {
    /// One block.
    One(SamplingBlock),
    /// An array of blocks.
    Many(Vec<SamplingBlock>),
}

impl SamplingContent {
    /// The blocks, in either form.
    #[must_use]
    pub const fn blocks(&self) -> &[SamplingBlock] {
        match self {
            Self::One(block) => slice::from_ref(block),
            Self::Many(blocks) => blocks.as_slice(),
        }
    }

    fn uses_tools(&self) -> bool {
        self.blocks().iter().any(|b| matches!(b, SamplingBlock::ToolUse(_) | SamplingBlock::ToolResult(_)))
    }

    fn fits(&self, version: ProtocolVersion) -> bool {
        (version.has_sampling_tools() || matches!(self, Self::One(_)))
            && self.blocks().iter().all(|block| block.fits(version))
    }
}

/// One piece of a sampling message. The JSON member `type` tells which.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SamplingBlock {
    /// `text`
    Text(TextContent),
    /// `image`
    Image(ImageContent),
    /// `audio`; since 2025-03-26.
    Audio(AudioContent),
    /// `tool_use`; since 2025-11-25.
    ToolUse(Box<ToolUseContent>),
    /// `tool_result`; since 2025-11-25.
    ToolResult(Box<ToolResultContent>),
}

/// The model uses a tool. Since 2025-11-25.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolUseContent {
    #[serde(rename = "type")]
    kind: ToolUse,
    /// Names this use, for its result.
    pub id: Str,
    /// The tool.
    pub name: Str,
    /// Its arguments: an object.
    pub input: Json,
    /// Metadata; keep it in later requests.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// What a tool answered. Since 2025-11-25.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    #[serde(rename = "type")]
    kind: ToolResult,
    /// The use that it answers.
    pub tool_use_id: Str,
    /// What the model reads.
    pub content: Vec<ContentBlock>,
    /// What programs read; `null` is a value. Before 2026-07-28 only an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Json>,
    /// The tool failed. Taken as false if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata; keep it in later requests.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

literal! { ToolUse = "tool_use", ToolResult = "tool_result" }

impl ToolUseContent {
    /// The use of this name, of this tool, with these arguments.
    #[must_use]
    pub fn new(id: impl Into<Str>, name: impl Into<Str>, input: Json) -> Self {
        Self { kind: ToolUse, id: id.into(), name: name.into(), input, meta: None }
    }

    setters! { meta: Meta }
}

impl ToolResultContent {
    /// The answer to the use of this name.
    #[must_use]
    pub fn new(tool_use_id: impl Into<Str>, content: impl Into<Vec<ContentBlock>>) -> Self {
        Self {
            kind: ToolResult,
            tool_use_id: tool_use_id.into(),
            content: content.into(),
            structured_content: None,
            is_error: None,
            meta: None,
        }
    }

    setters! { structured_content: Json, meta: Meta }
    plain_setters! { is_error: bool }

    fn carries_too_much(&self, version: ProtocolVersion) -> bool {
        !version.has_any_structured_content()
            && self.structured_content.as_ref().is_some_and(|json| !json.is_object())
    }
}

impl SamplingBlock {
    /// Text.
    #[must_use]
    pub fn text(text: impl Into<Str>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The text, if this is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }

    fn fits(&self, version: ProtocolVersion) -> bool {
        match self {
            Self::Text(_) | Self::Image(_) => true,
            Self::Audio(_) => version.has_audio(),
            Self::ToolUse(_) => version.has_sampling_tools(),
            Self::ToolResult(result) => version.has_sampling_tools() && !result.carries_too_much(version),
        }
    }

    fn fitted(&self, version: ProtocolVersion) -> Result<Self, WriteError> {
        match self {
            Self::Audio(audio) if !version.has_audio() => Ok(Self::text(audio.as_text())),
            Self::ToolUse(_) | Self::ToolResult(_) if !version.has_sampling_tools() => {
                Err(WriteError::new(alloc::format!("{version} has no tools in sampling")))
            }
            Self::ToolResult(result) if result.carries_too_much(version) => {
                let mut result = result.clone();
                result.structured_content = None;
                Ok(Self::ToolResult(result))
            }
            other => Ok(other.clone()),
        }
    }
}

impl From<&'static str> for SamplingBlock {
    fn from(text: &'static str) -> Self {
        Self::text(text)
    }
}

impl From<String> for SamplingBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<ToolUseContent> for SamplingBlock {
    fn from(content: ToolUseContent) -> Self {
        Self::ToolUse(Box::new(content))
    }
}

impl From<ToolResultContent> for SamplingBlock {
    fn from(content: ToolResultContent) -> Self {
        Self::ToolResult(Box::new(content))
    }
}

impl<T: Into<SamplingBlock>> From<T> for SamplingContent {
    fn from(block: T) -> Self {
        Self::One(block.into())
    }
}

impl From<Vec<SamplingBlock>> for SamplingContent {
    fn from(blocks: Vec<SamplingBlock>) -> Self {
        Self::Many(blocks)
    }
}

impl Serialize for SamplingBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(content) => content.serialize(serializer),
            Self::Image(content) => content.serialize(serializer),
            Self::Audio(content) => content.serialize(serializer),
            Self::ToolUse(content) => content.serialize(serializer),
            Self::ToolResult(content) => content.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SamplingBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let block = Block::deserialize(deserializer)?;
        match &*block.kind {
            "tool_use" => {
                let input = need(block.input, "input")?;
                if !input.is_object() {
                    return Err(D::Error::invalid_type(
                        super::json::unexpected(&input),
                        &"an object as `input`",
                    ));
                }
                Ok(Self::from(ToolUseContent {
                    kind: ToolUse,
                    id: need(block.id, "id")?,
                    name: need(block.name, "name")?,
                    input,
                    meta: block.meta,
                }))
            }
            "tool_result" => Ok(Self::from(ToolResultContent {
                kind: ToolResult,
                tool_use_id: need(block.tool_use_id, "toolUseId")?,
                content: need(block.content, "content")?,
                structured_content: block.structured_content,
                is_error: block.is_error,
                meta: block.meta,
            })),
            "text" | "image" | "audio" => match block.into_content()? {
                ContentBlock::Text(content) => Ok(Self::Text(content)),
                ContentBlock::Image(content) => Ok(Self::Image(content)),
                ContentBlock::Audio(content) => Ok(Self::Audio(content)),
                _ => Err(D::Error::custom("expected text, an image or audio")),
            },
            other => {
                Err(D::Error::unknown_variant(other, &["text", "image", "audio", "tool_use", "tool_result"]))
            }
        }
    }
}

impl Serialize for SamplingContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(block) => block.serialize(serializer),
            Self::Many(blocks) => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SamplingContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Content;

        impl<'de> Visitor<'de> for Content {
            type Value = SamplingContent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a content block or an array of them")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                SamplingBlock::deserialize(MapAccessDeserializer::new(map)).map(SamplingContent::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(SamplingContent::Many)
            }
        }

        deserializer.deserialize_any(Content)
    }
}

/// Which model is wanted. The client decides. [spec: client/sampling#model-preferences]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Names or parts of names, the best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// How much a low price matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option::serialize")]
    pub cost_priority: Option<f64>,
    /// How much speed matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option::serialize")]
    pub speed_priority: Option<f64>,
    /// How much ability matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option::serialize")]
    pub intelligence_priority: Option<f64>,
}

impl ModelPreferences {
    /// No preference.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! { hints: Vec<ModelHint> }
    plain_setters! { cost_priority: f64, speed_priority: f64, intelligence_priority: f64 }
}

/// A hint at a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelHint {
    /// A part of the model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
}

impl ModelHint {
    /// A model whose name contains this.
    #[must_use]
    pub fn new(name: impl Into<Str>) -> Self {
        Self { name: Some(name.into()) }
    }
}

names! {
    /// Context of which servers a model shall see.
    pub enum IncludeContext {
        /// Of none.
        None = "none",
        /// Of the server that asks. Deprecated.
        ThisServer = "thisServer",
        /// Of all servers. Deprecated.
        AllServers = "allServers",
    }
}

/// How a model may use tools. Since 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolChoice {
    /// Taken as `auto` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

impl ToolChoice {
    /// In this way.
    #[must_use]
    pub const fn new(mode: ToolChoiceMode) -> Self {
        Self { mode: Some(mode) }
    }
}

names! {
    /// Whether a model uses tools. Since 2025-11-25.
    pub enum ToolChoiceMode {
        /// The model decides.
        Auto = "auto",
        /// At least one.
        Required = "required",
        /// None.
        None = "none",
    }
}

/// Answer of a client to `sampling/createMessage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// The model's.
    pub role: Role,
    /// What the model says.
    pub content: SamplingContent,
    /// Name of the model.
    pub model: Str,
    /// Why it stopped, such as [`stop_reason::END_TURN`]; an open set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<Str>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Known values of [`CreateMessageResult::stop_reason`].
pub mod stop_reason {
    /// The model had said all.
    pub const END_TURN: &str = "endTurn";
    /// It met a stop sequence.
    pub const STOP_SEQUENCE: &str = "stopSequence";
    /// It met the limit of tokens.
    pub const MAX_TOKENS: &str = "maxTokens";
    /// It wants to use tools. Since 2025-11-25.
    pub const TOOL_USE: &str = "toolUse";
}

impl CreateMessageResult {
    /// What this model says.
    #[must_use]
    pub fn new(model: impl Into<Str>, content: impl Into<SamplingContent>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
            model: model.into(),
            stop_reason: None,
            meta: None,
        }
    }

    setters! { stop_reason: Str, meta: Meta }
}

/// The metadata is part of the body: the answer has no envelope of its own in 2026-07-28.
impl ResultBody for CreateMessageResult {
    /// Before 2025-11-25 there is one block: the texts joined, or else the first block that the revision
    /// knows.
    fn fitted(&self, version: ProtocolVersion) -> Cow<'_, Self> {
        if self.content.fits(version) {
            return Cow::Borrowed(self);
        }
        let blocks: Vec<SamplingBlock> =
            self.content.blocks().iter().filter_map(|block| block.fitted(version).ok()).collect();
        let content = if version.has_sampling_tools() {
            SamplingContent::Many(blocks)
        } else {
            let texts: Vec<&str> = blocks.iter().filter_map(SamplingBlock::as_text).collect();
            match blocks.first() {
                Some(first) if texts.is_empty() => SamplingContent::One(first.clone()),
                _ => SamplingContent::from(texts.join("\n")),
            }
        };
        Cow::Owned(Self { content, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use ProtocolVersion as V;

    use alloc::string::ToString;

    use super::*;
    use crate::{model::view, rpc::de};

    fn text(version: V, request: &CreateMessage) -> Result<String, WriteError> {
        let mut out = Vec::new();
        view::write(&mut out, version, &*request.fitted(version)?)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn content_is_one_block_or_an_array() {
        // M07
        let answer = |content: &str| {
            de::from_str::<CreateMessageResult>(&alloc::format!(
                r#"{{"role":"assistant","model":"m","content":{content}}}"#
            ))
        };
        for content in [
            r#"{"type":"text","text":"a"}"#,
            r#"[{"type":"text","text":"a"}]"#,
            "[]",
            r#"[{"type":"tool_use","id":"1","name":"t","input":{"a":1.0}},{"type":"tool_use","id":"2","name":"t","input":{}}]"#,
            r#"{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"r"}],"structuredContent":null,"isError":false}"#,
        ] {
            let result = answer(content).unwrap();
            assert_eq!(serde_json::to_string(&result.content).unwrap(), content);
        }
        for (content, reason) in [
            (r#"{"type":"zzz"}"#, "zzz"),
            ("{}", "at /content/type"),
            ("\"text\"", "at /content: expected a content block or an array of them"),
            (r#"[{"type":"text"}]"#, "at /content/0/text"),
            (r#"{"type":"resource","resource":{"uri":"a","text":""}}"#, "resource"),
            (r#"{"type":"tool_use","id":"1","name":"t","input":[]}"#, "object"),
        ] {
            let error = answer(content).unwrap_err().to_string();
            assert!(error.contains(reason), "{content}: {error}");
        }
    }

    #[test]
    fn a_request_fits_the_revision() {
        // M07
        let request = CreateMessage::new(
            [
                SamplingMessage::user(alloc::vec!["a".into(), "b".into()]),
                SamplingMessage::assistant(SamplingBlock::Audio(AudioContent::new(b"", "audio/wav"))),
            ],
            10,
        )
        .temperature(1.0)
        .tools([Tool::new("t", crate::model::JsonSchema::any_object())])
        .tool_choice(ToolChoice::new(ToolChoiceMode::Auto));
        let new = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":{"type":"audio","data":"","mimeType":"audio/wav"}}],"temperature":1,"maxTokens":10,"tools":[{"name":"t","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"auto"}}"#;
        let old = r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"text","text":"b"}},{"role":"assistant","content":{"type":"audio","data":"","mimeType":"audio/wav"}}],"temperature":1,"maxTokens":10}"#;
        assert_eq!(text(V::V2026_07_28, &request).unwrap(), new);
        assert_eq!(text(V::V2025_11_25, &request).unwrap(), new);
        assert_eq!(text(V::V2025_06_18, &request).unwrap(), old);
        assert_eq!(text(V::V2025_03_26, &request).unwrap(), old);
        assert!(text(V::V2024_11_05, &request).unwrap().contains("[audio of type audio/wav"));
        assert!(matches!(request.fitted(V::V2025_11_25), Ok(Cow::Borrowed(_))));
        assert_eq!(de::from_str::<CreateMessage>(new).unwrap(), request);
    }

    #[test]
    fn tools_cannot_be_said_before_they_existed() {
        let result = ToolResultContent::new("1", []).structured_content(Json::from(1));
        let request = CreateMessage::new([SamplingMessage::user(alloc::vec![result.into()])], 1);
        assert!(request.uses_tools());
        assert!(text(V::V2026_07_28, &request).unwrap().contains("structuredContent"));
        let object_only = text(V::V2025_11_25, &request).unwrap();
        assert!(
            object_only.contains("\"content\":[{\"type\":\"tool_result\"")
                && !object_only.contains("structuredContent")
        );
        let error = text(V::V2025_06_18, &request).unwrap_err().to_string();
        assert!(error.contains("2025-06-18 has no tools in sampling"), "{error}");
    }

    #[test]
    fn an_answer_is_one_block_for_older_peers() {
        let many = CreateMessageResult::new("m", alloc::vec!["a".into(), "b".into()]);
        assert_eq!(many.fitted(V::V2025_06_18).content, SamplingContent::from("a\nb"));
        assert!(matches!(many.fitted(V::V2025_11_25), Cow::Borrowed(_)));
        let image = SamplingBlock::Image(ImageContent::new(b"", "image/png"));
        let one = CreateMessageResult::new("m", alloc::vec![image.clone()]);
        assert_eq!(one.fitted(V::V2024_11_05).content, SamplingContent::One(image));
    }
}
