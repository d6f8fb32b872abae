//! Who a client or server is, and icons.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Str;

/// The name and version of a client or server. Self-reported: for people and logs, not for decisions.
/// [spec: basic#_meta]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// Name for programs, and for people if there is no title.
    pub name: Str,
    /// Version of the program, in any form.
    pub version: Str,
    /// Name for people. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
    /// What it does. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Str>,
    /// Where to read more. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<Str>,
    /// Icons in several sizes. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
}

impl Implementation {
    /// A program of this name and version.
    #[must_use]
    pub fn new(name: impl Into<Str>, version: impl Into<Str>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            description: None,
            website_url: None,
            icons: None,
        }
    }

    setters! { title: Str, description: Str, website_url: Str, icons: Vec<Icon> }
}

/// A picture that a client may show. Since 2025-11-25. [spec: basic#icons]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: Str,
    /// Media type, if the source does not tell or tells something too general.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<Str>,
    /// Sizes such as `48x48`, or `any` for a format that scales.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<Str>>,
    /// The background it is made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

names! {
    /// The background that an icon is made for.
    pub enum IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}

impl Icon {
    /// The icon at this URI.
    #[must_use]
    pub fn new(src: impl Into<Str>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: None, theme: None }
    }

    setters! { mime_type: Str, sizes: Vec<Str>, theme: IconTheme }
}
