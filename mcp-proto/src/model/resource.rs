//! Resources, templates of them, and their contents. [spec: server/resources]

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{
    Annotations, CacheScope, Icon, Meta, ResultBody, Str, content::encode_base64, decode_base64, number,
};

/// A resource that can be read, as listed. [spec: server/resources#resource]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// Where it is; unique in the list.
    pub uri: Str,
    /// Name for programs, and for people if there is no title.
    pub name: Str,
    /// Name for people. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
    /// What it is; a hint to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Str>,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<Str>,
    /// Size of the raw content in bytes, before any encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Icons in several sizes. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Hints to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Resource {
    /// The resource at this URI.
    #[must_use]
    pub fn new(uri: impl Into<Str>, name: impl Into<Str>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: None,
            annotations: None,
            meta: None,
        }
    }

    setters! {
        title: Str, description: Str, mime_type: Str, icons: Vec<Icon>, annotations: Annotations,
        meta: Meta,
    }
    plain_setters! { size: u64 }

    /// What a revision without links in content is told instead.
    pub(crate) fn as_text(&self) -> String {
        format!("{}: {}", self.title.as_ref().unwrap_or(&self.name), self.uri)
    }
}

/// A family of resources, by an RFC 6570 URI template. [spec: server/resources#resource-templates]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The template.
    pub uri_template: Str,
    /// Name for programs, and for people if there is no title.
    pub name: Str,
    /// Name for people. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
    /// What it is for; a hint to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Str>,
    /// Media type, if all resources of the template have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<Str>,
    /// Icons in several sizes. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Hints to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ResourceTemplate {
    /// The resources of this URI template.
    #[must_use]
    pub fn new(uri_template: impl Into<Str>, name: impl Into<Str>) -> Self {
        Self {
            uri_template: uri_template.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            icons: None,
            annotations: None,
            meta: None,
        }
    }

    setters! {
        title: Str, description: Str, mime_type: Str, icons: Vec<Icon>, annotations: Annotations, meta: Meta,
    }
}

/// What a resource holds: text or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceContents {
    /// Text.
    Text(TextResourceContents),
    /// Bytes.
    Blob(BlobResourceContents),
}

/// The text of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextResourceContents {
    /// Where it is.
    pub uri: Str,
    /// Media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<Str>,
    /// The text.
    pub text: Str,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The bytes of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BlobResourceContents {
    /// Where it is.
    pub uri: Str,
    /// Media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<Str>,
    /// The bytes in standard base64 with padding.
    pub blob: Str,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ResourceContents {
    /// Text at this URI.
    #[must_use]
    pub fn text(uri: impl Into<Str>, text: impl Into<Str>) -> Self {
        Self::Text(TextResourceContents::new(uri, text))
    }

    /// Bytes at this URI; they are encoded.
    #[must_use]
    pub fn blob(uri: impl Into<Str>, bytes: &[u8]) -> Self {
        Self::Blob(BlobResourceContents::new(uri, bytes))
    }

    /// Where it is.
    #[must_use]
    pub fn uri(&self) -> &str {
        match self {
            Self::Text(contents) => &contents.uri,
            Self::Blob(contents) => &contents.uri,
        }
    }

    /// Sets the media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<Str>) -> Self {
        *match &mut self {
            Self::Text(contents) => &mut contents.mime_type,
            Self::Blob(contents) => &mut contents.mime_type,
        } = Some(mime_type.into());
        self
    }

    /// The bytes: those of the text, or the decoded blob; `None` if that is no base64.
    #[must_use]
    pub fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Text(contents) => Some(Cow::Borrowed(contents.text.as_bytes())),
            Self::Blob(contents) => decode_base64(&contents.blob).map(Cow::Owned),
        }
    }
}

impl TextResourceContents {
    /// This text at this URI.
    #[must_use]
    pub fn new(uri: impl Into<Str>, text: impl Into<Str>) -> Self {
        Self { uri: uri.into(), mime_type: None, text: text.into(), meta: None }
    }

    setters! { mime_type: Str, meta: Meta }
}

impl BlobResourceContents {
    /// These bytes at this URI; they are encoded.
    #[must_use]
    pub fn new(uri: impl Into<Str>, bytes: &[u8]) -> Self {
        Self { uri: uri.into(), mime_type: None, blob: encode_base64(bytes), meta: None }
    }

    setters! { mime_type: Str, meta: Meta }
}

impl From<TextResourceContents> for ResourceContents {
    fn from(contents: TextResourceContents) -> Self {
        Self::Text(contents)
    }
}

impl From<BlobResourceContents> for ResourceContents {
    fn from(contents: BlobResourceContents) -> Self {
        Self::Blob(contents)
    }
}

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(contents) => contents.serialize(serializer),
            Self::Blob(contents) => contents.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", expecting = "the contents of a resource")]
        struct Contents {
            uri: Str,
            mime_type: Option<Str>,
            text: Option<Str>,
            blob: Option<Str>,
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }

        let Contents { uri, mime_type, text, blob, meta } = Contents::deserialize(deserializer)?;
        match (text, blob) {
            (Some(text), None) => Ok(Self::Text(TextResourceContents { uri, mime_type, text, meta })),
            (None, Some(blob)) => Ok(Self::Blob(BlobResourceContents { uri, mime_type, blob, meta })),
            _ => Err(D::Error::custom("expected either `text` or `blob` in the contents of a resource")),
        }
    }
}

list_result! {
    /// Answer to `resources/list`.
    ListResourcesResult {
        /// One page of resources.
        resources: Resource
    }
}

list_result! {
    /// Answer to `resources/templates/list`.
    ListResourceTemplatesResult {
        /// One page of templates.
        resource_templates: ResourceTemplate
    }
}

/// Answer to `resources/read`. A resource that does not exist is an error, not an empty list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// The contents; several if the resource stands for more than one, such as a directory.
    pub contents: Vec<ResourceContents>,
    /// How long the answer stays fresh, in milliseconds; 0 = not at all. Since 2026-07-28.
    #[serde(default, deserialize_with = "number::millis")]
    pub ttl_ms: u64,
    /// Who may share a cached answer. Since 2026-07-28.
    #[serde(default, deserialize_with = "super::result::scope")]
    pub cache_scope: CacheScope,
    /// Metadata, written with the envelope.
    #[serde(rename = "_meta", default, skip_serializing)]
    pub meta: Option<Meta>,
}

impl ReadResourceResult {
    /// These contents.
    #[must_use]
    pub fn new(contents: impl Into<Vec<ResourceContents>>) -> Self {
        Self { contents: contents.into(), ..Self::default() }
    }

    /// Text at this URI.
    #[must_use]
    pub fn text(uri: impl Into<Str>, text: impl Into<Str>) -> Self {
        Self::new([ResourceContents::text(uri, text)])
    }

    /// Bytes at this URI; they are encoded.
    #[must_use]
    pub fn blob(uri: impl Into<Str>, bytes: &[u8]) -> Self {
        Self::new([ResourceContents::blob(uri, bytes)])
    }

    setters! { meta: Meta }
    cache_setter! {}
}

impl ResultBody for ReadResourceResult {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }
}
