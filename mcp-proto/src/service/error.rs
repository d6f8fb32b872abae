//! How a handler fails, and what a call ends with.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use super::ask::AskError;
use crate::model::method::{CallTool, Complete, GetPrompt, ReadResource};
use crate::model::{
    CallToolResult, CompleteResult, GetPromptResult, Json, ProtocolVersion, ReadResourceResult, Str,
};
use crate::rpc::{Error, code};
use crate::server::{Channel, ClientFeatures, Connection, Pending, RequestKey, Untyped, missing_capability};

/// How a handler fails.
///
/// Any error converts into it with `?`: a tool then answers an `isError` result with the error's text, so
/// that the model can react; prompts, resources and completions answer `-32603` with it. Two kinds keep
/// their own meaning: an [`Error`] is answered as it is, and an [`AskError`] by what went wrong.
/// [spec: server/tools#error-handling]
#[derive(Debug, Clone)]
pub struct ToolError(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Message(Str),
    Result(CallToolResult),
    Protocol(Error),
    NotFound(Str),
    MissingCapability(ClientFeatures, Str),
}

impl ToolError {
    /// The call failed, in words for the model.
    pub fn new(message: impl Into<Str>) -> Self {
        Self(Kind::Message(message.into()))
    }

    /// The call failed, with content of any kind. Only tools can say that; elsewhere it is `-32603`.
    #[must_use]
    pub fn with_result(mut result: CallToolResult) -> Self {
        result.is_error = Some(true);
        Self(Kind::Result(result))
    }

    /// A JSON-RPC error instead of a result.
    #[must_use]
    pub const fn protocol(error: Error) -> Self {
        Self(Kind::Protocol(error))
    }

    /// The resource does not exist: the code of the client's revision, with the URI.
    pub fn resource_not_found(uri: impl Into<Str>) -> Self {
        Self(Kind::NotFound(uri.into()))
    }

    /// What a tool answers.
    pub(crate) fn into_tool_reply(self, version: ProtocolVersion) -> Reply {
        match self.0 {
            Kind::Message(message) => Reply::Tool(CallToolResult::error(message)),
            Kind::Result(result) => Reply::Tool(result),
            Kind::MissingCapability(_, message) if !version.is_modern() => {
                Reply::Tool(CallToolResult::error(message))
            }
            _ => Reply::Error(self.into_error(version)),
        }
    }

    /// What everything else answers.
    pub(crate) fn into_error(self, version: ProtocolVersion) -> Error {
        match self.0 {
            Kind::Message(message) => Error::new(code::INTERNAL_ERROR, message),
            Kind::Result(_) => Error::internal(),
            Kind::Protocol(error) => error,
            Kind::NotFound(uri) => resource_not_found(version, &uri),
            Kind::MissingCapability(required, _) => missing_capability(required, version),
        }
    }
}

/// The answer to a URI that leads nowhere.
pub(crate) fn resource_not_found(version: ProtocolVersion, uri: &str) -> Error {
    #[derive(serde::Serialize)]
    struct Data<'a> {
        uri: &'a str,
    }
    Error::new(version.resource_not_found_code(), "Resource not found").with_data(&Data { uri })
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Message(message) | Kind::MissingCapability(_, message) => f.write_str(message),
            Kind::Result(_) => f.write_str("the call failed"),
            Kind::Protocol(error) => error.fmt(f),
            Kind::NotFound(uri) => write!(f, "no resource {uri}"),
        }
    }
}

impl<E: core::error::Error + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let any: &dyn Any = &error;
        if let Some(error) = any.downcast_ref::<Error>() {
            return Self::protocol(error.clone());
        }
        if let Some(AskError::MissingCapability(required)) = any.downcast_ref::<AskError>() {
            return Self(Kind::MissingCapability(*required, Str::Owned(error.to_string())));
        }
        Self::new(error.to_string())
    }
}

/// What a call ends with.
pub(crate) enum Reply {
    Tool(CallToolResult),
    Prompt(GetPromptResult),
    Read(ReadResourceResult),
    Complete(CompleteResult),
    Raw(Json),
    Error(Error),
}

impl Reply {
    /// Writes the answer, as the revision of the call has it.
    pub(crate) fn write(
        self,
        connection: &mut Connection,
        key: RequestKey,
        version: ProtocolVersion,
        out: &mut Vec<u8>,
    ) {
        // A call that was cancelled in the meantime is answered by nothing.
        let _ = match self {
            Self::Tool(result) => connection.respond(Pending::<CallTool>::new(key), &result, out),
            Self::Prompt(result) => connection.respond(Pending::<GetPrompt>::new(key), &result, out),
            Self::Read(result) if result.contents.is_empty() && version.is_modern() => {
                // An empty `contents` would say "exists, but has nothing". [spec: server/resources#error-handling]
                connection.fail(Pending::<ReadResource>::new(key), &Error::internal(), out)
            }
            Self::Read(result) => connection.respond(Pending::<ReadResource>::new(key), &result, out),
            Self::Complete(result) => connection.respond(Pending::<Complete>::new(key), &result, out),
            Self::Raw(json) => {
                connection.respond_raw(Pending::<Untyped>::new(key), json.get().as_bytes(), out)
            }
            Self::Error(error) => connection.fail(Pending::<Untyped>::new(key), &error, out),
        };
    }
}
