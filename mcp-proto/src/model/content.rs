//! What a tool returns and a prompt says: blocks of text, images, audio and resources.
//! [spec: server/tools#tool-result]

use alloc::{borrow::Cow, boxed::Box, format, string::String, vec::Vec};

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{
    Annotations, BlobResourceContents, Icon, Json, Meta, ProtocolVersion, Resource, ResourceContents, Str,
    TextResourceContents, json,
};

/// One piece of content. The JSON member `type` tells which.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ContentBlock {
    /// `text`
    Text(TextContent),
    /// `image`
    Image(ImageContent),
    /// `audio`; since 2025-03-26.
    Audio(AudioContent),
    /// `resource_link`: a resource that can be read, not its contents; since 2025-06-18.
    ResourceLink(Box<Resource>),
    /// `resource`: the contents of a resource.
    Resource(Box<EmbeddedResource>),
}

/// Text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TextContent {
    #[serde(rename = "type")]
    kind: Text,
    /// The text.
    pub text: Str,
    /// Hints to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    #[serde(rename = "type")]
    kind: Image,
    /// The bytes in standard base64 with padding.
    pub data: Str,
    /// Media type, such as `image/png`.
    pub mime_type: Str,
    /// Hints to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Audio. Since 2025-03-26.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    #[serde(rename = "type")]
    kind: Audio,
    /// The bytes in standard base64 with padding.
    pub data: Str,
    /// Media type, such as `audio/wav`.
    pub mime_type: Str,
    /// Hints to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The contents of a resource within a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EmbeddedResource {
    #[serde(rename = "type")]
    kind: Embedded,
    /// The contents.
    pub resource: ResourceContents,
    /// Hints to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

literal! { Text = "text", Image = "image", Audio = "audio", Link = "resource_link", Embedded = "resource" }

impl ContentBlock {
    /// Text.
    #[must_use]
    pub fn text(text: impl Into<Str>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// An image of this media type; the bytes are encoded.
    #[must_use]
    pub fn image(bytes: &[u8], mime_type: impl Into<Str>) -> Self {
        Self::Image(ImageContent::new(bytes, mime_type))
    }

    /// Audio of this media type; the bytes are encoded.
    #[must_use]
    pub fn audio(bytes: &[u8], mime_type: impl Into<Str>) -> Self {
        Self::Audio(AudioContent::new(bytes, mime_type))
    }

    /// A resource that the client may read or show.
    #[must_use]
    pub fn resource_link(resource: Resource) -> Self {
        Self::ResourceLink(Box::new(resource))
    }

    /// The contents of a resource that is text.
    #[must_use]
    pub fn embedded_text(uri: impl Into<Str>, text: impl Into<Str>) -> Self {
        Self::embedded(TextResourceContents::new(uri, text))
    }

    /// The contents of a resource that is bytes; they are encoded.
    #[must_use]
    pub fn embedded_blob(uri: impl Into<Str>, bytes: &[u8]) -> Self {
        Self::embedded(BlobResourceContents::new(uri, bytes))
    }

    /// The contents of a resource.
    #[must_use]
    pub fn embedded(resource: impl Into<ResourceContents>) -> Self {
        Self::Resource(Box::new(EmbeddedResource::new(resource)))
    }

    /// The value of `type`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::ResourceLink(_) => "resource_link",
            Self::Resource(_) => "resource",
        }
    }

    /// The text, if this is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }

    /// Adds hints to the client.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        *match &mut self {
            Self::Text(content) => &mut content.annotations,
            Self::Image(content) => &mut content.annotations,
            Self::Audio(content) => &mut content.annotations,
            Self::ResourceLink(resource) => &mut resource.annotations,
            Self::Resource(content) => &mut content.annotations,
        } = Some(annotations);
        self
    }

    /// Adds metadata.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        *match &mut self {
            Self::Text(content) => &mut content.meta,
            Self::Image(content) => &mut content.meta,
            Self::Audio(content) => &mut content.meta,
            Self::ResourceLink(resource) => &mut resource.meta,
            Self::Resource(content) => &mut content.meta,
        } = Some(meta);
        self
    }

    /// This block as text, if `version` does not know its kind.
    pub(crate) fn fitted(&self, version: ProtocolVersion) -> Option<Self> {
        let (text, annotations) = match self {
            Self::ResourceLink(link) if !version.has_resource_links() => (link.as_text(), &link.annotations),
            Self::Audio(audio) if !version.has_audio() => (audio.as_text(), &audio.annotations),
            _ => return None,
        };
        let mut content = TextContent::new(text);
        content.annotations.clone_from(annotations);
        Some(Self::Text(content))
    }

    /// The blocks with those replaced that `version` does not know; borrowed if it knows all.
    pub(crate) fn fit_all(blocks: &[Self], version: ProtocolVersion) -> Cow<'_, [Self]> {
        if blocks.iter().all(|block| block.fitted(version).is_none()) {
            return Cow::Borrowed(blocks);
        }
        Cow::Owned(
            blocks.iter().map(|block| block.fitted(version).unwrap_or_else(|| block.clone())).collect(),
        )
    }
}

impl From<&'static str> for ContentBlock {
    fn from(text: &'static str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<Resource> for ContentBlock {
    fn from(resource: Resource) -> Self {
        Self::resource_link(resource)
    }
}

impl From<ResourceContents> for ContentBlock {
    fn from(resource: ResourceContents) -> Self {
        Self::embedded(resource)
    }
}

impl TextContent {
    /// Whether there is nothing but the text.
    pub(crate) const fn is_plain(&self) -> bool {
        self.annotations.is_none() && self.meta.is_none()
    }

    /// This text.
    #[must_use]
    pub fn new(text: impl Into<Str>) -> Self {
        Self { kind: Text, text: text.into(), annotations: None, meta: None }
    }

    setters! { annotations: Annotations, meta: Meta }
}

impl ImageContent {
    /// These bytes, of this media type.
    #[must_use]
    pub fn new(bytes: &[u8], mime_type: impl Into<Str>) -> Self {
        let (data, mime_type) = (encode_base64(bytes), mime_type.into());
        Self { kind: Image, data, mime_type, annotations: None, meta: None }
    }

    setters! { annotations: Annotations, meta: Meta }
}

impl AudioContent {
    /// These bytes, of this media type.
    #[must_use]
    pub fn new(bytes: &[u8], mime_type: impl Into<Str>) -> Self {
        let (data, mime_type) = (encode_base64(bytes), mime_type.into());
        Self { kind: Audio, data, mime_type, annotations: None, meta: None }
    }

    setters! { annotations: Annotations, meta: Meta }

    /// What a revision without audio is told instead.
    pub(super) fn as_text(&self) -> String {
        format!("[audio of type {}, which this protocol version cannot carry]", self.mime_type)
    }
}

impl EmbeddedResource {
    /// These contents.
    #[must_use]
    pub fn new(resource: impl Into<ResourceContents>) -> Self {
        Self { kind: Embedded, resource: resource.into(), annotations: None, meta: None }
    }

    setters! { annotations: Annotations, meta: Meta }
}

pub(crate) fn encode_base64(bytes: &[u8]) -> Str {
    Cow::Owned(BASE64_STANDARD.encode(bytes))
}

/// The bytes of `data` or `blob`.
///
/// Peers are asked for standard base64 with padding. Missing padding, the URL-safe alphabet and white
/// space are understood as well, for none of them can be mistaken; anything else is `None`.
#[must_use]
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    if let Ok(bytes) = LENIENT.decode(text) {
        return Some(bytes);
    }
    let standard: Vec<u8> = text
        .bytes()
        .filter(|b| !b.is_ascii_whitespace())
        .map(|b| match b {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        })
        .collect();
    LENIENT.decode(standard).ok()
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(content) => content.serialize(serializer),
            Self::Image(content) => content.serialize(serializer),
            Self::Audio(content) => content.serialize(serializer),
            Self::ResourceLink(resource) => ResourceLink::of(resource).serialize(serializer),
            Self::Resource(content) => content.serialize(serializer),
        }
    }
}

/// A [`Resource`] with a `type`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLink<'a> {
    #[serde(rename = "type")]
    kind: Link,
    uri: &'a Str,
    name: &'a Str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: &'a Option<Str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: &'a Option<Str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: &'a Option<Str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icons: &'a Option<Vec<Icon>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: &'a Option<Annotations>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: &'a Option<Meta>,
}

impl<'a> ResourceLink<'a> {
    const fn of(resource: &'a Resource) -> Self {
        let Resource { uri, name, title, description, mime_type, size, icons, annotations, meta } = resource;
        Self { kind: Link, uri, name, title, description, mime_type, size: *size, icons, annotations, meta }
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Block::deserialize(deserializer)?.into_content()
    }
}

/// The members of every kind of block. `type` may come last, so all are read before it is looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a content block")]
pub(super) struct Block {
    #[serde(rename = "type")]
    pub(super) kind: Str,
    text: Option<Str>,
    data: Option<Str>,
    mime_type: Option<Str>,
    uri: Option<Str>,
    pub(super) name: Option<Str>,
    title: Option<Str>,
    description: Option<Str>,
    size: Option<u64>,
    icons: Option<Vec<Icon>>,
    resource: Option<ResourceContents>,
    annotations: Option<Annotations>,
    #[serde(rename = "_meta")]
    pub(super) meta: Option<Meta>,
    pub(super) id: Option<Str>,
    pub(super) input: Option<Json>,
    pub(super) tool_use_id: Option<Str>,
    pub(super) content: Option<Vec<ContentBlock>>,
    #[serde(default, deserialize_with = "json::present")]
    pub(super) structured_content: Option<Json>,
    pub(super) is_error: Option<bool>,
}

impl Block {
    pub(super) fn into_content<E: Error>(self) -> Result<ContentBlock, E> {
        let Self { annotations, meta, .. } = self;
        Ok(match &*self.kind {
            "text" => ContentBlock::Text(TextContent {
                kind: Text,
                text: need(self.text, "text")?,
                annotations,
                meta,
            }),
            "image" => ContentBlock::Image(ImageContent {
                kind: Image,
                data: need(self.data, "data")?,
                mime_type: need(self.mime_type, "mimeType")?,
                annotations,
                meta,
            }),
            "audio" => ContentBlock::Audio(AudioContent {
                kind: Audio,
                data: need(self.data, "data")?,
                mime_type: need(self.mime_type, "mimeType")?,
                annotations,
                meta,
            }),
            "resource_link" => ContentBlock::ResourceLink(Box::new(Resource {
                uri: need(self.uri, "uri")?,
                name: need(self.name, "name")?,
                title: self.title,
                description: self.description,
                mime_type: self.mime_type,
                size: self.size,
                icons: self.icons,
                annotations,
                meta,
            })),
            "resource" => ContentBlock::Resource(Box::new(EmbeddedResource {
                kind: Embedded,
                resource: need(self.resource, "resource")?,
                annotations,
                meta,
            })),
            other => {
                return Err(E::unknown_variant(
                    other,
                    &["text", "image", "audio", "resource_link", "resource"],
                ));
            }
        })
    }
}

/// A member without which a block of its kind says nothing.
pub(super) fn need<T, E: Error>(member: Option<T>, name: &'static str) -> Result<T, E> {
    member.ok_or_else(|| E::missing_field(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) -> ContentBlock {
        let block: ContentBlock = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&block).unwrap(), text);
        block
    }

    #[test]
    fn every_kind_round_trips() {
        let meta = r#""annotations":{"priority":0.5},"_meta":{"k":1}}"#;
        round_trip(&format!(r#"{{"type":"text","text":"a",{meta}"#));
        round_trip(&format!(r#"{{"type":"image","data":"AA==","mimeType":"image/png",{meta}"#));
        round_trip(&format!(r#"{{"type":"audio","data":"","mimeType":"audio/wav",{meta}"#));
        round_trip(&format!(r#"{{"type":"resource","resource":{{"uri":"a:b","text":"t"}},{meta}"#));
        round_trip(
            r#"{"type":"resource","resource":{"uri":"a:b","mimeType":"x/y","blob":"+/8=","_meta":{}}}"#,
        );
        let all = r#""title":"T","description":"D","mimeType":"x/y","size":3,"icons":[{"src":"s"}]"#;
        round_trip(&format!(r#"{{"type":"resource_link","uri":"a:b","name":"n",{all},{meta}"#));
    }

    #[test]
    fn type_may_come_last_and_unknown_members_are_ignored() {
        let text = r#"{"new":[1],"text":"a","annotations":null,"type":"text"}"#;
        assert_eq!(serde_json::from_str::<ContentBlock>(text).unwrap(), ContentBlock::text("a"));
    }

    #[test]
    fn what_is_no_block_is_refused_with_a_reason() {
        for (text, reason) in [
            (r#"{"type":"zzz"}"#, "unknown variant `zzz`"),
            ("{}", "missing field `type`"),
            (r#"{"type":"text"}"#, "missing field `text`"),
            (r#"{"type":"image","data":"AA=="}"#, "missing field `mimeType`"),
            (r#"{"type":"resource","resource":{"uri":"a"}}"#, "`text` or `blob`"),
            (r#"{"type":"resource","resource":{"uri":"a","text":"","blob":""}}"#, "`text` or `blob`"),
            (r#"{"type":"tool_use","id":"1","name":"n","input":{}}"#, "unknown variant `tool_use`"),
        ] {
            let error = format!("{}", serde_json::from_str::<ContentBlock>(text).unwrap_err());
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn bytes_are_standard_base64_and_odd_forms_are_understood() {
        // R03
        let bytes: Vec<u8> = (0..=0xFE).cycle().take(1020).chain([0xFB, 0xFF, 0xFE]).collect();
        for bytes in [&bytes[..], &[], &[0xFB], &[0xFB, 0xFF], &[0xFB, 0xFF, 0xFE]] {
            let text = encode_base64(bytes);
            assert!(text.len().is_multiple_of(4) && !text.contains(['-', '_', '\n']));
            assert_eq!(decode_base64(&text).unwrap(), bytes);
            assert_eq!(decode_base64(text.trim_end_matches('=')).unwrap(), bytes);
            assert_eq!(decode_base64(&text.replace('+', "-").replace('/', "_")).unwrap(), bytes);
            let lines: String = text.chars().flat_map(|c| [c, '\n']).collect();
            assert_eq!(decode_base64(&lines).unwrap(), bytes);
        }
        for bad in ["A", "AA=A", "A*==", "=", "é"] {
            assert_eq!(decode_base64(bad), None, "{bad}");
        }
    }

    #[test]
    fn unknown_kinds_become_text_in_older_revisions() {
        use ProtocolVersion as V;
        let link = ContentBlock::resource_link(Resource::new("file:///a", "a").title("The A"));
        let audio = ContentBlock::audio(b"x", "audio/wav").annotations(Annotations::new().priority(1.0));
        for version in V::ALL {
            assert_eq!(link.fitted(version).is_some(), version < V::V2025_06_18);
            assert_eq!(audio.fitted(version).is_some(), version < V::V2025_03_26);
        }
        assert_eq!(link.fitted(V::V2024_11_05).unwrap().as_text(), Some("The A: file:///a"));
        let ContentBlock::Text(text) = audio.fitted(V::V2024_11_05).unwrap() else { panic!() };
        assert!(text.text.contains("audio/wav") && text.annotations.is_some());
    }
}
