//! Suggestions for the arguments of prompts and resource templates. [spec: server/utilities/completion]

use alloc::{borrow::Cow, vec::Vec};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{Meta, ProtocolVersion, ResultBody, Str, content::need};

/// What an argument belongs to. The JSON member `type` tells which.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompletionReference {
    /// `ref/prompt`
    Prompt(PromptReference),
    /// `ref/resource`
    Resource(ResourceTemplateReference),
}

/// A prompt, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PromptReference {
    #[serde(rename = "type")]
    kind: RefPrompt,
    /// Name of the prompt.
    pub name: Str,
    /// Its name for people. Since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
}

/// A resource template, by its URI template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResourceTemplateReference {
    #[serde(rename = "type")]
    kind: RefResource,
    /// The URI template, or a URI.
    pub uri: Str,
}

literal! { RefPrompt = "ref/prompt", RefResource = "ref/resource" }

impl CompletionReference {
    /// An argument of the prompt of this name.
    #[must_use]
    pub fn prompt(name: impl Into<Str>) -> Self {
        Self::Prompt(PromptReference { kind: RefPrompt, name: name.into(), title: None })
    }

    /// A variable of this URI template.
    #[must_use]
    pub fn resource(uri: impl Into<Str>) -> Self {
        Self::Resource(ResourceTemplateReference { kind: RefResource, uri: uri.into() })
    }
}

impl Serialize for CompletionReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Prompt(reference) => reference.serialize(serializer),
            Self::Resource(reference) => reference.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for CompletionReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(expecting = "a reference to a prompt or a resource template")]
        struct Reference {
            #[serde(rename = "type")]
            kind: Str,
            name: Option<Str>,
            title: Option<Str>,
            uri: Option<Str>,
        }

        let Reference { kind, name, title, uri } = Reference::deserialize(deserializer)?;
        match &*kind {
            "ref/prompt" => {
                Ok(Self::Prompt(PromptReference { kind: RefPrompt, name: need(name, "name")?, title }))
            }
            "ref/resource" => {
                Ok(Self::Resource(ResourceTemplateReference { kind: RefResource, uri: need(uri, "uri")? }))
            }
            other => Err(D::Error::unknown_variant(other, &["ref/prompt", "ref/resource"])),
        }
    }
}

/// Answer to `completion/complete`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteResult {
    /// The suggestions.
    pub completion: Completion,
    /// Metadata, written with the envelope.
    #[serde(rename = "_meta", default, skip_serializing)]
    pub meta: Option<Meta>,
}

/// Suggestions, the best first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// At most [`Completion::MAX_VALUES`]; more are cut off where the answer is written.
    pub values: Vec<Str>,
    /// How many there are in all, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// The most values of one answer.
    pub const MAX_VALUES: usize = 100;

    /// All suggestions, the best first. If there are too many for one answer, `total` and `has_more`
    /// say so.
    #[must_use]
    pub fn new<V: Into<Str>>(values: impl IntoIterator<Item = V>) -> Self {
        let mut values = values.into_iter();
        let kept: Vec<Str> = values.by_ref().take(Self::MAX_VALUES).map(Into::into).collect();
        match values.count() {
            0 => Self { values: kept, total: None, has_more: None },
            more => Self { total: Some((kept.len() + more) as u64), has_more: Some(true), values: kept },
        }
    }

    plain_setters! { total: u64, has_more: bool }
}

impl CompleteResult {
    /// All suggestions, the best first; see [`Completion::new`].
    #[must_use]
    pub fn new<V: Into<Str>>(values: impl IntoIterator<Item = V>) -> Self {
        Completion::new(values).into()
    }

    setters! { meta: Meta }
}

impl From<Completion> for CompleteResult {
    fn from(completion: Completion) -> Self {
        Self { completion, meta: None }
    }
}

impl ResultBody for CompleteResult {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// Values beyond the limit are cut off.
    fn fitted(&self, _: ProtocolVersion) -> Cow<'_, Self> {
        let Completion { values, total, .. } = &self.completion;
        if values.len() <= Completion::MAX_VALUES {
            return Cow::Borrowed(self);
        }
        let mut completion = Completion::new(values.iter().cloned());
        completion.total = total.or(completion.total);
        Cow::Owned(Self { completion, meta: self.meta.clone() })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn at_most_a_hundred_values_are_sent() {
        // M01
        for (given, sent, more, total) in [
            (99, 99, None, None),
            (100, 100, None, None),
            (101, 100, Some(true), Some(101)),
            (5000, 100, Some(true), Some(5000)),
        ] {
            let Completion { values, total: t, has_more } =
                Completion::new((0..given).map(|i| i.to_string()));
            assert_eq!((values.len(), has_more, t), (sent, more, total));
        }
        let mut result = CompleteResult::new(["a"]);
        assert!(matches!(result.fitted(ProtocolVersion::LATEST), Cow::Borrowed(_)));
        result.completion.values = alloc::vec![Str::Borrowed("x"); 101];
        let fitted = result.fitted(ProtocolVersion::LATEST).into_owned();
        assert_eq!((fitted.completion.values.len(), fitted.completion.total), (100, Some(101)));
    }

    #[test]
    fn references_round_trip() {
        for text in
            [r#"{"type":"ref/prompt","name":"p","title":"P"}"#, r#"{"type":"ref/resource","uri":"a:{b}"}"#]
        {
            let reference: CompletionReference = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&reference).unwrap(), text);
        }
        for bad in [
            r#"{"type":"ref/tool","name":"p"}"#,
            r#"{"type":"ref/prompt"}"#,
            r#"{"type":"ref/resource","name":"p"}"#,
        ] {
            assert!(serde_json::from_str::<CompletionReference>(bad).is_err(), "{bad}");
        }
        let text = r#"{"completion":{"values":["a","b"]}}"#; // E09
        assert_eq!(serde_json::to_string(&CompleteResult::new(["a", "b"])).unwrap(), text);
    }
}
