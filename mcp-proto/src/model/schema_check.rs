//! Values held against JSON Schemas, with the feature `validate`.
//!
//! A schema may come from a peer: patterns run in linear time, and nothing is fetched.
//! [spec: basic#ref-resolution]

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

use jsonschema::{Retrieve, Uri, Validator};
use serde_json::Value;

use super::JsonSchema;

/// Makes a schema ready for use.
///
/// # Errors
///
/// It cannot be used: it is none, or refers to something outside of itself.
pub(crate) fn compile(schema: &JsonSchema) -> Result<Validator, String> {
    let value: Value = serde_json::from_str(schema.get()).map_err(|e| e.to_string())?;
    jsonschema::options()
        .with_retriever(Nothing)
        .with_pattern_options(jsonschema::PatternOptions::regex())
        .build(&value)
        .map_err(|e| e.to_string())
}

/// Where a value does not fit, and why.
pub(crate) fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let at = error.instance_path().to_string();
    let text: String = error.to_string().chars().take(300).collect();
    if at.is_empty() { format!("at the root: {text}") } else { format!("at {at}: {text}") }
}

/// Gives nothing: a reference that leaves the schema is an error.
struct Nothing;

impl Retrieve for Nothing {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn core::error::Error + Send + Sync>> {
        Err(format!("{uri} is outside of the schema and nothing is fetched").into())
    }
}
