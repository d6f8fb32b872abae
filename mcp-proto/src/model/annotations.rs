//! Who something is for, how important it is, and when it changed.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Str, number};

names! {
    /// Who speaks, or whom something is for.
    pub enum Role {
        /// The person, or the application on their behalf.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}

/// Hints to the client about content or a resource. [spec: server/resources#annotations]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// Whom it is for; several are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// From 0 (optional) to 1 (in effect required).
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::option::serialize")]
    pub priority: Option<f64>,
    /// When it last changed, as an ISO 8601 time such as `2025-01-12T15:00:58Z`. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<Str>,
}

impl Annotations {
    /// No hints.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! { audience: Vec<Role>, last_modified: Str }
    plain_setters! { priority: f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_hints_are_not_written() {
        assert_eq!(serde_json::to_string(&Annotations::new()).unwrap(), "{}"); // E09
        let full =
            Annotations::new().audience([Role::User, Role::Assistant]).priority(1.0).last_modified("2025");
        let text = r#"{"audience":["user","assistant"],"priority":1,"lastModified":"2025"}"#;
        assert_eq!(serde_json::to_string(&full).unwrap(), text);
        assert_eq!(serde_json::from_str::<Annotations>(text).unwrap(), full);
        assert!(serde_json::from_str::<Role>("\"User\"").is_err());
    }
}
