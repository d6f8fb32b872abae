//! Taking results apart.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use core::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::{
    CallToolResult, ElicitForm, ElicitResult, Json, Members, ReadResourceResult, ResourceContents,
};
use crate::rpc;
use crate::rpc::de::DecodeError;

/// Why a value could not be taken out of the result of a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ToolFailure {
    /// The tool says that it failed: its texts, for the model or for people.
    Failed(String),
    /// The result holds no such value: what was expected and what came.
    Unfit(String),
}

impl CallToolResult {
    /// The result, unless the tool says that it failed.
    ///
    /// # Errors
    ///
    /// It failed.
    pub fn ok(self) -> Result<Self, ToolFailure> {
        if self.failed() { Err(ToolFailure::Failed(self.texts())) } else { Ok(self) }
    }

    /// All blocks of text, a line break between them.
    #[must_use]
    pub fn texts(&self) -> String {
        let mut texts = String::new();
        for text in self.content.iter().filter_map(|block| block.as_text()) {
            if !texts.is_empty() {
                texts.push('\n');
            }
            texts.push_str(text);
        }
        texts
    }

    /// The value for programs. A server before 2025-06-18, or one that gives none, may have it as its only
    /// text.
    ///
    /// # Errors
    ///
    /// The tool failed, or the value is another.
    pub fn into_structured<T: DeserializeOwned>(self) -> Result<T, ToolFailure> {
        let result = self.ok()?;
        let unfit = |why: String| ToolFailure::Unfit(why);
        if let Some(value) = &result.structured_content {
            let read = value.decode::<T>().map_err(|fault| fault.within("/structuredContent"));
            return read.map_err(|fault| unfit(alloc::format!("{fault}")));
        }
        match &*result.content {
            [only] if only.as_text().is_some() => {
                let text = only.as_text().unwrap_or_default();
                crate::rpc::de::from_str(text).map_err(|fault| {
                    unfit(alloc::format!("no `structuredContent`, and the text is none: {fault}"))
                })
            }
            blocks => Err(unfit(alloc::format!(
                "expected `structuredContent` or one block of text, found {} blocks",
                blocks.len()
            ))),
        }
    }
}

impl ReadResourceResult {
    /// The text of the resource, if it is one text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &*self.contents {
            [ResourceContents::Text(only)] => Some(&only.text),
            _ => None,
        }
    }
}

impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(texts) => write!(f, "the tool failed: {texts}"),
            Self::Unfit(why) => write!(f, "the result does not fit: {why}"),
        }
    }
}

impl core::error::Error for ToolFailure {}

impl ElicitForm {
    /// What the fields hold at first, as far as they say.
    #[must_use]
    pub fn defaults(&self) -> Members<Json> {
        let mut defaults = Members::new();
        for (name, field) in self.requested_schema.properties().iter() {
            let Ok(field) = Json::from_serialize(field) else { continue };
            let value = rpc::Members::from_json(field.get()).and_then(|field| field.get("default"));
            if let Some(value) = value {
                defaults.insert(name.clone(), Json::from(value.to_owned()));
            }
        }
        defaults
    }

    /// Accepts the form as it is shown at first. It does not fit if a field that is required has no default.
    #[must_use]
    pub fn accept_defaults(&self) -> ElicitResult {
        ElicitResult::accept(self.defaults())
    }
}

impl ElicitResult {
    /// Accepts a form with the members of this value.
    ///
    /// # Errors
    ///
    /// It has no JSON form, or not that of an object.
    pub fn accept_with<T: Serialize + ?Sized>(value: &T) -> Result<Self, DecodeError> {
        let json = Json::from_serialize(value).map_err(|why| DecodeError::new(why.to_string()))?;
        Ok(Self::accept(json.decode()?))
    }
}
