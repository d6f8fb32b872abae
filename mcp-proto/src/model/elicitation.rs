//! Questions to the user: by form, or by a URL that the user visits. [spec: client/elicitation]

use alloc::{borrow::Cow, string::String};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{Json, Members, Meta, ProtocolVersion, ResultBody, Str, json, view::WriteError};
use crate::rpc::de::{self, DecodeError};

mod check;
mod schema;

pub use check::InvalidContent;
pub use schema::{
    BooleanSchema, FormSchema, MultiSelectSchema, NumberSchema, PrimitiveSchema, SelectOption,
    SingleSelectSchema, StringFormat, StringSchema,
};

/// Params of `elicitation/create` in form mode. Since 2025-06-18. Not for secrets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename = "ElicitRequestFormParams", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitForm {
    mode: Form,
    /// What the user reads.
    pub message: Str,
    /// The fields of the form.
    pub requested_schema: FormSchema,
}

/// Params of `elicitation/create` in URL mode. Since 2025-11-25.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "ElicitRequestURLParams", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitUrl {
    mode: Url,
    /// What the user reads.
    pub message: Str,
    /// Where the user goes, if they consent. Holds nothing secret.
    pub url: Str,
    /// Names the elicitation in `notifications/elicitation/complete`. Only 2025-11-25, and required
    /// there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<Str>,
}

literal! { Form = "form", Url = "url" }

impl ElicitForm {
    /// This message above this form.
    #[must_use]
    pub fn new(message: impl Into<Str>, requested_schema: FormSchema) -> Self {
        Self { mode: Form, message: message.into(), requested_schema }
    }

    /// This message above the form of a JSON Schema that was made elsewhere; every keyword is kept.
    ///
    /// # Errors
    ///
    /// If the text is no schema of one object of plain fields.
    pub fn from_schema_json(message: impl Into<Str>, schema: &str) -> Result<Self, DecodeError> {
        FormSchema::from_json(de::from_str(schema)?).map(|schema| Self::new(message, schema))
    }

    /// The question as `version` can express it. Before 2025-11-25 there is no choice of several, and a
    /// choice of one with titles has its old form.
    pub(crate) fn fitted(&self, version: ProtocolVersion) -> Result<Cow<'_, Self>, WriteError> {
        if !version.has_elicitation() {
            return Err(WriteError::new(alloc::format!("{version} has no elicitation")));
        }
        Ok(match self.requested_schema.fitted(version)? {
            Cow::Borrowed(_) => Cow::Borrowed(self),
            Cow::Owned(schema) => Cow::Owned(Self::new(self.message.clone(), schema)),
        })
    }
}

impl ElicitUrl {
    /// This message beside this URL.
    #[must_use]
    pub fn new(message: impl Into<Str>, url: impl Into<Str>) -> Self {
        Self { mode: Url, message: message.into(), url: url.into(), elicitation_id: None }
    }

    setters! { elicitation_id: Str }

    /// Whether `version` can express the question.
    pub(crate) fn check(&self, version: ProtocolVersion) -> Result<(), WriteError> {
        if !version.has_elicitation_modes() {
            return Err(WriteError::new(alloc::format!("{version} has no elicitation by URL")));
        }
        if version.has_elicitation_ids() && self.elicitation_id.is_none() {
            return Err(WriteError::new(alloc::format!("{version} needs an `elicitationId`")));
        }
        Ok(())
    }
}

/// The params of `elicitation/create` in either mode, as received. A missing mode is form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub(crate) enum Elicit {
    Form(ElicitForm),
    Url(ElicitUrl),
}

impl<'de> Deserialize<'de> for Elicit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", expecting = "the params of an elicitation")]
        struct Params {
            mode: Option<Str>,
            message: Str,
            requested_schema: Option<FormSchema>,
            url: Option<Str>,
            elicitation_id: Option<Str>,
        }

        let Params { mode, message, requested_schema, url, elicitation_id } =
            Params::deserialize(deserializer)?;
        match mode.as_deref() {
            None | Some("form") => {
                let schema = requested_schema.ok_or_else(|| D::Error::missing_field("requestedSchema"))?;
                Ok(Self::Form(ElicitForm::new(message, schema)))
            }
            Some("url") => {
                let url = url.ok_or_else(|| D::Error::missing_field("url"))?;
                Ok(Self::Url(ElicitUrl { elicitation_id, ..ElicitUrl::new(message, url) }))
            }
            Some(other) => Err(D::Error::unknown_variant(other, &["form", "url"])),
        }
    }
}

macro_rules! one_mode {
    ($type:ident, $variant:ident, $expected:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match Elicit::deserialize(deserializer)? {
                    Elicit::$variant(params) => Ok(params),
                    _ => Err(D::Error::custom($expected)),
                }
            }
        }
    };
}

one_mode! { ElicitForm, Form, "expected an elicitation by form" }
one_mode! { ElicitUrl, Url, "expected an elicitation by URL" }

names! {
    /// What the user did with a question.
    pub enum ElicitAction {
        /// Answered, or for a URL: agreed to visit it.
        Accept = "accept",
        /// Refused.
        Decline = "decline",
        /// Went away without a choice.
        Cancel = "cancel",
    }
}

/// Answer of a client to `elicitation/create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ElicitResult {
    /// What the user did.
    pub action: ElicitAction,
    /// The values of the form; only if it was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Members<Json>>,
    /// Metadata. Until 2025-11-25.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ElicitResult {
    /// The user filled in the form.
    #[must_use]
    pub const fn accept(content: Members<Json>) -> Self {
        Self { action: ElicitAction::Accept, content: Some(content), meta: None }
    }

    /// The user agreed to visit the URL. Whether they did what it asks is not known.
    #[must_use]
    pub const fn accept_url() -> Self {
        Self { action: ElicitAction::Accept, content: None, meta: None }
    }

    /// The user refused.
    #[must_use]
    pub const fn decline() -> Self {
        Self { action: ElicitAction::Decline, content: None, meta: None }
    }

    /// The user went away without a choice.
    #[must_use]
    pub const fn cancel() -> Self {
        Self { action: ElicitAction::Cancel, content: None, meta: None }
    }

    setters! { meta: Meta }

    /// The values as the JSON text of an object; `{}` if there are none.
    #[must_use]
    pub fn content_text(&self) -> String {
        let text = self.content.as_ref().and_then(|content| serde_json::to_string(content).ok());
        text.unwrap_or_else(|| String::from("{}"))
    }

    /// Reads the values as a `T`.
    pub fn decode<T: serde::de::DeserializeOwned>(&self) -> Result<T, DecodeError> {
        de::from_str(&self.content_text())
    }

    /// Checks an accepted form against the fields that were asked for. Nothing is asked of the content
    /// of a form that was not accepted.
    pub fn check(&self, schema: &FormSchema) -> Result<(), InvalidContent> {
        match (self.action, &self.content) {
            (ElicitAction::Accept, Some(content)) => schema.check(content),
            (ElicitAction::Accept, None) => schema.check(&Members::new()),
            _ => Ok(()),
        }
    }
}

/// The metadata is part of the body: the answer has no envelope of its own in 2026-07-28.
impl ResultBody for ElicitResult {}

/// Content is looked at only if the form was accepted: peers send odd ones with a refusal.
impl<'de> Deserialize<'de> for ElicitResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(expecting = "the answer to an elicitation")]
        struct Answer {
            action: ElicitAction,
            #[serde(default, deserialize_with = "json::present")]
            content: Option<Json>,
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }

        let Answer { action, content, meta } = Answer::deserialize(deserializer)?;
        let content = match content {
            Some(json) if action == ElicitAction::Accept && !json.is_null() => {
                Some(json.decode().map_err(|error| D::Error::custom(error.within("/content")))?)
            }
            _ => None,
        };
        Ok(Self { action, content, meta })
    }
}

#[cfg(test)]
mod tests {
    use alloc::{string::ToString, vec::Vec};

    use ProtocolVersion as V;

    use super::*;
    use crate::model::view;

    fn text(version: V, form: &ElicitForm) -> Result<String, WriteError> {
        let mut out = Vec::new();
        view::write(&mut out, version, &*form.fitted(version)?)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn read(text: &str) -> Result<ElicitResult, DecodeError> {
        de::from_str(text)
    }

    #[test]
    fn only_three_actions_and_content_only_of_an_accepted_form() {
        // M03
        assert_eq!(read(r#"{"action":"decline"}"#).unwrap(), ElicitResult::decline());
        assert_eq!(read(r#"{"action":"cancel","content":null}"#).unwrap(), ElicitResult::cancel());
        assert_eq!(read(r#"{"action":"decline","content":{"x":1}}"#).unwrap(), ElicitResult::decline());
        assert_eq!(read(r#"{"action":"cancel","content":[1]}"#).unwrap(), ElicitResult::cancel());
        assert_eq!(read(r#"{"action":"accept","content":null}"#).unwrap(), ElicitResult::accept_url());
        assert_eq!(read(r#"{"action":"accept"}"#).unwrap(), ElicitResult::accept_url());
        for (bad, reason) in [
            (r#"{"action":"maybe"}"#, "at /action"),
            ("{}", "at /action"),
            (r#"{"action":"accept","content":[1]}"#, "/content"),
            (r#"["accept"]"#, "at the root"),
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains(reason), "{bad}: {error}");
        }
    }

    #[test]
    fn accepted_content_is_checked_and_decoded() {
        // M03, S-ELIC-25
        let schema = FormSchema::new().required("n", NumberSchema::integer());
        assert!(ElicitResult::decline().check(&schema).is_ok());
        assert!(ElicitResult::accept_url().check(&schema).is_err());
        assert!(read(r#"{"action":"accept","content":{"n":"x"}}"#).unwrap().check(&schema).is_err());
        let answer = read(r#"{"action":"accept","content":{"n":3.0}}"#).unwrap();
        assert!(answer.check(&schema).is_ok());
        #[derive(Deserialize)]
        struct N {
            n: u8,
        }
        assert_eq!(answer.decode::<N>().unwrap().n, 3);
    }

    #[test]
    fn the_mode_is_written_where_there_are_modes() {
        let form = ElicitForm::new("m", FormSchema::new().required("a", BooleanSchema::new()));
        let schema =
            r#""requestedSchema":{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"]}}"#;
        assert_eq!(text(V::V2025_06_18, &form).unwrap(), alloc::format!(r#"{{"message":"m",{schema}"#));
        for version in [V::V2025_11_25, V::V2026_07_28] {
            assert_eq!(
                text(version, &form).unwrap(),
                alloc::format!(r#"{{"mode":"form","message":"m",{schema}"#)
            );
        }
        for version in [V::V2024_11_05, V::V2025_03_26] {
            assert!(text(version, &form).is_err());
        }
        let back: ElicitForm = de::from_str(&text(V::V2025_06_18, &form).unwrap()).unwrap(); // C-ELIC-07
        assert_eq!(back.message, "m");
        assert!(de::from_str::<ElicitUrl>(&text(V::V2025_11_25, &form).unwrap()).is_err());
        assert!(de::from_str::<ElicitForm>(r#"{"mode":"voice","message":"m"}"#).is_err());
    }

    #[test]
    fn a_url_carries_an_id_only_in_one_revision() {
        let url = ElicitUrl::new("m", "https://example.com/x");
        assert!(url.check(V::V2026_07_28).is_ok() && url.check(V::V2025_11_25).is_err()); // LS-ELIC-02
        let url = url.elicitation_id("e");
        let write = |version| {
            let mut out = Vec::new();
            view::write(&mut out, version, &url).map(|()| String::from_utf8(out).unwrap()).unwrap()
        };
        let new = r#"{"mode":"url","message":"m","url":"https://example.com/x"}"#;
        assert_eq!(write(V::V2026_07_28), new);
        assert_eq!(write(V::V2025_11_25), new.replace('}', ",\"elicitationId\":\"e\"}"));
        assert!(url.check(V::V2025_06_18).is_err());
    }
}
