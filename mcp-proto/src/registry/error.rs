//! Why a registry cannot be built, and what a caller is told.

use alloc::format;
use alloc::string::String;
use core::fmt;

use serde::Serialize;

use super::Kind;
use super::uri_template::TemplateError;
use crate::model::view::WriteError;
use crate::model::{InvalidHeaderArgument, InvalidToolName, ProtocolVersion};
use crate::rpc::{Error, Short};

/// An item that cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildError {
    /// What it is.
    pub kind: Kind,
    /// Its name, URI or URI template.
    pub name: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with an item.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Another item of its kind has the same name, URI or URI template.
    Duplicate,
    /// The tool's name breaks a rule.
    ToolName(InvalidToolName),
    /// The root of the input schema does not say `"type":"object"`.
    InputSchema,
    /// An `x-mcp-header` annotation of the input schema breaks a rule.
    Header(InvalidHeaderArgument),
    /// The URI does not start with a scheme and a colon.
    NoScheme,
    /// The URI has a character that has to be percent-encoded, or a `%` that starts no encoding.
    UriCharacter(char),
    /// The URI template cannot be read.
    Template(TemplateError),
    /// The prompt has no name.
    NoName,
    /// An argument of the prompt has no name.
    NoArgumentName,
    /// Two arguments of the prompt have this name.
    DuplicateArgument(String),
    /// It has no JSON form.
    Unwritable(WriteError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`: ", self.kind, Short(&self.name))?;
        match &self.problem {
            Problem::Duplicate if matches!(self.kind, Kind::Resource | Kind::ResourceTemplate) => {
                write!(f, "it is registered twice; each {} must be unique", self.kind)
            }
            Problem::Duplicate => write!(f, "it is registered twice; names of {}s must be unique", self.kind),
            Problem::ToolName(reason) => reason.fmt(f),
            Problem::InputSchema => f.write_str(
                r#"the root of the input schema must say "type":"object", for arguments are an object"#,
            ),
            Problem::Header(reason) => write!(f, "invalid `x-mcp-header` in the input schema: {reason}"),
            Problem::NoScheme => f.write_str("a URI starts with a scheme and a colon, such as `file:`"),
            Problem::UriCharacter('%') => f.write_str("`%` in a URI is followed by two hexadecimal digits"),
            Problem::UriCharacter(c) => write!(f, "a URI cannot hold {c:?} unless it is percent-encoded"),
            Problem::Template(reason) => reason.fmt(f),
            Problem::NoName => f.write_str("the name must not be empty"),
            Problem::NoArgumentName => f.write_str("an argument has an empty name"),
            Problem::DuplicateArgument(name) => {
                write!(f, "two arguments are called {name:?}; argument names must be unique")
            }
            Problem::Unwritable(reason) => reason.fmt(f),
        }
    }
}

impl core::error::Error for BuildError {}

/// What one is told of a tool that does not exist, or not for oneself. [spec: server/tools#error-handling]
pub(crate) fn unknown_tool(name: &str) -> Error {
    Error::invalid_params(format!("Unknown tool: {}", Short(name)))
}

/// The same of a prompt. [spec: server/prompts#error-handling]
pub(crate) fn unknown_prompt(name: &str) -> Error {
    Error::invalid_params(format!("Unknown prompt: {}", Short(name)))
}

/// The same of what `completion/complete` refers to. [spec: server/utilities/completion#error-handling]
pub(crate) fn unknown_reference(uri: &str) -> Error {
    Error::invalid_params(format!("Unknown resource template: {}", Short(uri)))
}

/// The same of a resource. [spec: server/resources#error-handling]
pub(crate) fn resource_not_found(version: ProtocolVersion, uri: &str) -> Error {
    /// A longer URI is not sent back.
    const MOST: usize = 8 << 10;
    #[derive(Serialize)]
    struct Data<'a> {
        uri: &'a str,
    }
    let error = Error::new(version.resource_not_found_code(), format!("Resource not found: {}", Short(uri)));
    if uri.len() > MOST { error } else { error.with_data(&Data { uri }) }
}

/// [spec: server/utilities/pagination#error-handling]
pub(crate) fn invalid_cursor() -> Error {
    Error::invalid_params("Invalid params at /params/cursor: this is not a cursor of this list")
}
