//! What all results share.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize};

use super::view::{self, WriteError};
use super::{Meta, ProtocolVersion};

/// The body of an answer: what stands in `result` besides `resultType` and `_meta`, which are written
/// with the envelope.
pub trait ResultBody: Serialize {
    /// Metadata of the answer.
    fn meta(&self) -> Option<&Meta> {
        None
    }

    /// The body with values changed that `version` cannot express, such as a kind of content that it
    /// does not know. Borrowed, without allocation, if there is nothing to change. Members that the
    /// revision lacks are left out later, by [`view::write`].
    fn fitted(&self, version: ProtocolVersion) -> Cow<'_, Self>
    where
        Self: Clone,
    {
        let _ = version;
        Cow::Borrowed(self)
    }

    /// Appends the body as `version` has it, without `resultType` and `_meta`.
    ///
    /// # Errors
    ///
    /// A value does not serialise; then `out` is as it was.
    fn write(&self, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), WriteError>
    where
        Self: Clone,
    {
        view::write(out, version, &*self.fitted(version))
    }
}

names! {
    /// Who may share a cached answer. [spec: server/utilities/caching]
    #[derive(Default)]
    pub enum CacheScope {
        /// Anyone: the answer does not depend on who asks.
        Public = "public",
        /// Only the one who asked.
        #[default]
        Private = "private",
    }
}

/// Reads a scope of which only `public` matters: whatever else a peer says, nothing is shared.
pub(super) fn scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CacheScope, D::Error> {
    let json = super::Json::deserialize(deserializer)?;
    let name = serde_json::from_str::<super::Str>(json.get()).ok();
    Ok(name.and_then(|name| CacheScope::parse(&name)).unwrap_or_default())
}

/// An answer that says only that the request was carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmptyResult {
    /// Metadata, written with the envelope.
    #[serde(rename = "_meta", default, skip_serializing)]
    pub meta: Option<Meta>,
}

impl EmptyResult {
    /// Done.
    #[must_use]
    pub const fn new() -> Self {
        Self { meta: None }
    }

    setters! { meta: Meta }
}

impl ResultBody for EmptyResult {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ListToolsResult;

    /// C-CACHE-05, E08: a hint that is none shares nothing, and costs nothing else.
    #[test]
    fn only_public_is_public() {
        let scope = |member: &str| {
            let list: ListToolsResult =
                serde_json::from_str(&alloc::format!(r#"{{"tools":[],"ttlMs":1{member}}}"#)).unwrap();
            (list.cache_scope, list.ttl_ms)
        };
        assert_eq!(scope(r#","cacheScope":"public""#), (CacheScope::Public, 1));
        assert_eq!(scope(r#","cacheScope":"p\u0075blic""#), (CacheScope::Public, 1));
        assert_eq!(scope(""), (CacheScope::Private, 1));
        for odd in [
            r#""private""#,
            r#""Public""#,
            r#""""#,
            "null",
            "7",
            "true",
            r#"["public"]"#,
            r#"{"a":"public"}"#,
        ] {
            assert_eq!(scope(&alloc::format!(r#","cacheScope":{odd}"#)), (CacheScope::Private, 1), "{odd}");
        }
    }
}
