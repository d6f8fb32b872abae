//! How a server introduces itself, in both eras. [spec: server/discover]

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{CacheScope, Implementation, Meta, ResultBody, ServerCapabilities, Str, number};

/// Answer to `server/discover`. Since 2026-07-28. Who the server is stands in the metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The revisions served.
    pub supported_versions: Vec<Str>,
    /// What the server can do.
    pub capabilities: ServerCapabilities,
    /// How to use the server; a hint to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Str>,
    /// How long the answer stays fresh, in milliseconds; 0 = not at all.
    #[serde(default, deserialize_with = "number::millis")]
    pub ttl_ms: u64,
    /// Who may share a cached answer.
    #[serde(default, deserialize_with = "super::result::scope")]
    pub cache_scope: CacheScope,
    /// Metadata, written with the envelope.
    #[serde(rename = "_meta", default, skip_serializing)]
    pub meta: Option<Meta>,
}

impl DiscoverResult {
    /// A server of these revisions and capabilities.
    #[must_use]
    pub fn new(supported_versions: impl Into<Vec<Str>>, capabilities: ServerCapabilities) -> Self {
        Self { supported_versions: supported_versions.into(), capabilities, ..Self::default() }
    }

    setters! { instructions: Str, meta: Meta }
    cache_setter! {}
}

impl ResultBody for DiscoverResult {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }
}

/// Answer to `initialize`. Until 2025-11-25.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The revision that the session speaks from now on.
    pub protocol_version: Str,
    /// What the server can do.
    pub capabilities: ServerCapabilities,
    /// Who the server is.
    pub server_info: Implementation,
    /// How to use the server; a hint to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Str>,
    /// Metadata, written with the envelope.
    #[serde(rename = "_meta", default, skip_serializing)]
    pub meta: Option<Meta>,
}

impl InitializeResult {
    /// A session of this revision with this server.
    #[must_use]
    pub fn new(
        protocol_version: impl Into<Str>,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        Self {
            protocol_version: protocol_version.into(),
            capabilities,
            server_info,
            instructions: None,
            meta: None,
        }
    }

    setters! { instructions: Str, meta: Meta }
}

impl ResultBody for InitializeResult {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }
}
