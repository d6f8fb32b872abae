//! What stands in `data` of the errors that the specification names. [spec: basic#error-codes]

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{ClientCapabilities, ElicitUrl, ProtocolVersion, Str};

/// Data of the error that a version is not served: `-32022`, or `-32602` of `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnsupportedVersionData {
    /// The versions served.
    pub supported: Vec<Str>,
    /// The version asked for.
    pub requested: Str,
}

impl UnsupportedVersionData {
    /// These versions are served, this one was asked for.
    #[must_use]
    pub fn new(supported: impl IntoIterator<Item = ProtocolVersion>, requested: impl Into<Str>) -> Self {
        let supported = supported.into_iter().map(|version| Str::Borrowed(version.as_str())).collect();
        Self { supported, requested: requested.into() }
    }
}

/// Data of the error that the client lacks a capability: `-32021`. Since 2026-07-28.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RequiredCapabilities {
    /// What the client would have to declare.
    pub required_capabilities: ClientCapabilities,
}

impl RequiredCapabilities {
    /// The client would have to declare this.
    #[must_use]
    pub const fn new(required_capabilities: ClientCapabilities) -> Self {
        Self { required_capabilities }
    }
}

/// Data of the error that the user must visit a URL first: `-32042`. Only 2025-11-25.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequiredElicitations {
    /// The URLs to visit; each needs an `elicitationId`.
    pub elicitations: Vec<ElicitUrl>,
}

impl RequiredElicitations {
    /// The user must visit these URLs first.
    #[must_use]
    pub fn new(elicitations: impl Into<Vec<ElicitUrl>>) -> Self {
        Self { elicitations: elicitations.into() }
    }
}

/// Data of the error that a resource does not exist: `-32002`, and `-32602` since 2026-07-28.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceNotFoundData {
    /// The resource.
    pub uri: Str,
}

impl ResourceNotFoundData {
    /// There is no resource at this URI.
    #[must_use]
    pub fn new(uri: impl Into<Str>) -> Self {
        Self { uri: uri.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::de;

    #[test]
    fn data_round_trips() {
        let versions = UnsupportedVersionData::new([ProtocolVersion::LATEST], "1900-01-01");
        let text = r#"{"supported":["2026-07-28"],"requested":"1900-01-01"}"#;
        assert_eq!(serde_json::to_string(&versions).unwrap(), text);
        assert_eq!(de::from_str::<UnsupportedVersionData>(text).unwrap(), versions);

        let lacking = RequiredCapabilities::new(ClientCapabilities::new().sampling());
        let text = r#"{"requiredCapabilities":{"sampling":{}}}"#;
        assert_eq!(serde_json::to_string(&lacking).unwrap(), text);
        assert_eq!(de::from_str::<RequiredCapabilities>(text).unwrap(), lacking);

        let visit = RequiredElicitations::new([ElicitUrl::new("m", "u").elicitation_id("e")]);
        let text = r#"{"elicitations":[{"mode":"url","message":"m","url":"u","elicitationId":"e"}]}"#; // LS-ELIC-06
        assert_eq!(serde_json::to_string(&visit).unwrap(), text);
        assert_eq!(de::from_str::<RequiredElicitations>(text).unwrap(), visit);
        assert!(de::from_str::<RequiredElicitations>(r#"{"elicitations":[{"mode":"form"}]}"#).is_err());
    }
}
