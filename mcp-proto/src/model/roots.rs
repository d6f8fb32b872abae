//! The files and folders that a client lets a server work on. Deprecated since 2026-07-28.
//! [spec: client/roots]

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Meta, ResultBody, Str};

/// A file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// A `file://` URI.
    pub uri: Str,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Root {
    /// The file or folder at this `file://` URI.
    #[must_use]
    pub fn new(uri: impl Into<Str>) -> Self {
        Self { uri: uri.into(), name: None, meta: None }
    }

    setters! { name: Str, meta: Meta }
}

/// Answer of a client to `roots/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListRootsResult {
    /// All roots.
    pub roots: Vec<Root>,
    /// Metadata. Until 2025-11-25.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListRootsResult {
    /// These roots.
    #[must_use]
    pub fn new(roots: impl Into<Vec<Root>>) -> Self {
        Self { roots: roots.into(), meta: None }
    }

    setters! { meta: Meta }
}

/// The metadata is part of the body: the answer has no envelope of its own in 2026-07-28.
impl ResultBody for ListRootsResult {}
