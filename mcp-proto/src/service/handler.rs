//! Handlers as typed functions, and what they take and give.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::{BoxFuture, Ctx};
use super::error::{Reply, ToolError};
use super::schema;
use crate::model::method::CompleteParams;
use crate::model::{
    CallToolResult, CompleteResult, ContentBlock, GetPromptResult, Json, JsonSchema as Schema,
    PromptArgument, PromptMessage, ProtocolVersion, ReadResourceResult, ResourceContents, Role, Str,
};
use crate::rpc::{Error, de, write_str};
use crate::server::Incoming;

/// Runs a tool: decodes its arguments while the frame is there, and gives the future of the rest.
pub(crate) type ToolCall = Arc<dyn Fn(Ctx, &str) -> Result<BoxFuture<Reply>, Reply> + Send + Sync>;
pub(crate) type PromptCall = Arc<dyn Fn(Ctx, PromptRequest) -> Result<BoxFuture<Reply>, Reply> + Send + Sync>;
pub(crate) type ResourceRead =
    Arc<dyn Fn(Ctx, ResourceRequest) -> Result<BoxFuture<Reply>, Reply> + Send + Sync>;
pub(crate) type Completer = Arc<dyn Fn(Ctx, CompletionRequest) -> BoxFuture<Reply> + Send + Sync>;
pub(crate) type Custom = Arc<dyn Fn(Ctx, CustomRequest) -> BoxFuture<Reply> + Send + Sync>;

/// The arguments of a tool or prompt that takes none.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize, JsonSchema)]
#[schemars(inline)]
#[allow(clippy::exhaustive_structs)] // it has no members and never will
pub struct NoArguments {}

/// A result that is data: the tool declares the schema of `T` and answers `structuredContent`, with the
/// same as text for clients that do not read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // a wrapper to construct and take apart
pub struct Structured<T>(pub T);

/// What a tool may give.
pub trait IntoToolResult {
    /// The schema of the structured content, if there is one.
    fn output_schema() -> Option<Schema> {
        None
    }

    /// The result.
    ///
    /// # Errors
    ///
    /// The value does not serialise.
    fn into_tool_result(self) -> Result<CallToolResult, ToolError>;
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(self)
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::new(Vec::new()))
    }
}

impl<T: Serialize + JsonSchema> IntoToolResult for Structured<T> {
    fn output_schema() -> Option<Schema> {
        Some(schema::of::<T>())
    }

    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::structured(&self.0)?)
    }
}

macro_rules! text_result {
    ($($t:ty),*) => { $(
        impl IntoToolResult for $t {
            fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
                Ok(CallToolResult::text(self))
            }
        }
        impl IntoPrompt for $t {
            fn into_prompt(self) -> GetPromptResult {
                GetPromptResult::new(alloc::vec![PromptMessage::new(Role::User, ContentBlock::text(self))])
            }
        }
        impl IntoContents for $t {
            fn into_contents(self, uri: &str, mime_type: Option<&Str>) -> ReadResourceResult {
                let contents = ResourceContents::text(uri.to_string(), self);
                ReadResourceResult::new(alloc::vec![with_mime_type(contents, mime_type)])
            }
        }
    )* };
}

text_result!(String, &'static str, Str);

impl IntoToolResult for ContentBlock {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::new(alloc::vec![self]))
    }
}

impl IntoToolResult for Vec<ContentBlock> {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::new(self))
    }
}

/// What a prompt may give.
pub trait IntoPrompt {
    /// The messages; a text is one message of the user.
    fn into_prompt(self) -> GetPromptResult;
}

impl IntoPrompt for GetPromptResult {
    fn into_prompt(self) -> GetPromptResult {
        self
    }
}

impl IntoPrompt for PromptMessage {
    fn into_prompt(self) -> GetPromptResult {
        GetPromptResult::new(alloc::vec![self])
    }
}

impl IntoPrompt for Vec<PromptMessage> {
    fn into_prompt(self) -> GetPromptResult {
        GetPromptResult::new(self)
    }
}

/// What a resource may give.
pub trait IntoContents {
    /// The contents, under the URI that was read and with the MIME type that was declared.
    fn into_contents(self, uri: &str, mime_type: Option<&Str>) -> ReadResourceResult;
}

impl IntoContents for Vec<u8> {
    fn into_contents(self, uri: &str, mime_type: Option<&Str>) -> ReadResourceResult {
        let contents = ResourceContents::blob(uri.to_string(), &self);
        ReadResourceResult::new(alloc::vec![with_mime_type(contents, mime_type)])
    }
}

impl IntoContents for ResourceContents {
    fn into_contents(self, _: &str, _: Option<&Str>) -> ReadResourceResult {
        ReadResourceResult::new(alloc::vec![self])
    }
}

impl IntoContents for Vec<ResourceContents> {
    fn into_contents(self, _: &str, _: Option<&Str>) -> ReadResourceResult {
        ReadResourceResult::new(self)
    }
}

impl IntoContents for ReadResourceResult {
    fn into_contents(self, _: &str, _: Option<&Str>) -> ReadResourceResult {
        self
    }
}

fn with_mime_type(contents: ResourceContents, mime_type: Option<&Str>) -> ResourceContents {
    match mime_type {
        Some(mime_type) => contents.mime_type(mime_type.clone()),
        None => contents,
    }
}

/// The arguments of one `prompts/get`.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PromptRequest {
    /// Arguments by name, in the order received.
    pub arguments: Vec<(String, String)>,
}

impl PromptRequest {
    pub(crate) fn new(arguments: Vec<(Cow<'_, str>, Cow<'_, str>)>) -> Self {
        Self { arguments: arguments.into_iter().map(|(k, v)| (k.into_owned(), v.into_owned())).collect() }
    }

    /// The arguments as a JSON object of strings.
    fn to_json(&self) -> String {
        let mut out = Vec::new();
        out.push(b'{');
        for (at, (name, value)) in self.arguments.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_str(&mut out, name);
            out.push(b':');
            write_str(&mut out, value);
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }
}

/// One `resources/read`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResourceRequest {
    /// The URI as the client sent it.
    pub uri: String,
    /// The variables of the template in its order, percent-decoded once; one that is absent is empty.
    pub variables: Vec<(String, String)>,
}

impl ResourceRequest {
    pub(crate) fn new(uri: &str, variables: Vec<(String, String)>) -> Self {
        Self { uri: uri.into(), variables }
    }

    /// The value of a variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(n, _)| n == name).map(|(_, v)| &**v)
    }
}

/// What a resource handler takes: a tuple of strings for the variables of its template, `()` for a fixed
/// URI, or the whole [`ResourceRequest`].
pub trait FromVariables: Sized {
    /// How many variables the template must have; `None` = any number.
    const COUNT: Option<usize>;

    /// The value. `variables` has the right number.
    fn from_request(request: ResourceRequest) -> Option<Self>;
}

impl FromVariables for ResourceRequest {
    const COUNT: Option<usize> = None;
    fn from_request(request: ResourceRequest) -> Option<Self> {
        Some(request)
    }
}

impl FromVariables for () {
    const COUNT: Option<usize> = Some(0);
    fn from_request(_: ResourceRequest) -> Option<Self> {
        Some(())
    }
}

type S = String;
macro_rules! all_tuples {
    ($(($count:literal: $($name:ident),*)),*) => { $(
        impl FromVariables for ($(all_tuples!(@s $name),)*) {
            const COUNT: Option<usize> = Some($count);
            fn from_request(request: ResourceRequest) -> Option<Self> {
                let mut values = request.variables.into_iter();
                $(let $name = values.next()?.1;)*
                Some(($($name,)*))
            }
        }
    )* };
    (@s $name:ident) => { S };
}

all_tuples!((1: a), (2: a, b), (3: a, b, c), (4: a, b, c, d));

/// One `completion/complete`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// The argument or variable that is completed.
    pub argument: String,
    /// What the user has typed.
    pub value: String,
    /// Arguments that are already known.
    pub context: Vec<(String, String)>,
}

impl CompletionRequest {
    pub(crate) fn new(params: CompleteParams<'_>) -> Self {
        Self {
            argument: params.argument.into_owned(),
            value: params.value.into_owned(),
            context: params.context.into_iter().map(|(k, v)| (k.into_owned(), v.into_owned())).collect(),
        }
    }

    /// Those of `values` that start with what the user has typed.
    #[must_use]
    pub fn filter<T: AsRef<str>>(&self, values: impl IntoIterator<Item = T>) -> Vec<String> {
        values
            .into_iter()
            .filter(|v| v.as_ref().starts_with(&self.value))
            .map(|v| v.as_ref().to_string())
            .collect()
    }
}

/// One request of a custom method.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CustomRequest {
    /// The method.
    pub method: String,
    /// The params but `_meta`, by name, each value verbatim.
    pub params: Vec<(String, Json)>,
}

impl CustomRequest {
    pub(crate) fn new(incoming: &Incoming<'_>) -> Self {
        Self {
            method: incoming.method.clone().into_owned(),
            params: incoming
                .params
                .members()
                .iter()
                .map(|(name, value)| (name.into(), Json::from(alloc::borrow::ToOwned::to_owned(value))))
                .collect(),
        }
    }

    /// Decodes the params.
    ///
    /// # Errors
    ///
    /// `-32602`, saying what was expected, what came and where.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let mut out = Vec::new();
        out.push(b'{');
        for (at, (name, value)) in self.params.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_str(&mut out, name);
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
        out.push(b'}');
        de::from_str(core::str::from_utf8(&out).unwrap_or("{}"))
            .map_err(|e| Error::invalid_params(format!("Invalid params: {e}")))
    }
}

/// A typed tool handler as the service calls it.
pub(crate) fn tool_call<P, R, F, Fut>(handler: F) -> ToolCall
where
    P: DeserializeOwned,
    R: IntoToolResult,
    F: Fn(Ctx, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    Arc::new(move |ctx, arguments| {
        let version = ctx.version();
        let params = de::from_str(arguments).map_err(|e| bad_arguments(version, &e.to_string()))?;
        let future = handler(ctx, params);
        Ok(Box::pin(async move { tool_reply(future.await, version) }))
    })
}

/// A tool handler that takes its arguments as they are.
pub(crate) fn raw_tool_call<R, F, Fut>(handler: F) -> ToolCall
where
    R: IntoToolResult,
    F: Fn(Ctx, Json) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    Arc::new(move |ctx, arguments| {
        let version = ctx.version();
        let arguments = Json::parse(arguments).map_err(|e| bad_arguments(version, &e.to_string()))?;
        let future = handler(ctx, arguments);
        Ok(Box::pin(async move { tool_reply(future.await, version) }))
    })
}

fn tool_reply<R: IntoToolResult>(outcome: Result<R, ToolError>, version: ProtocolVersion) -> Reply {
    match outcome.and_then(IntoToolResult::into_tool_result) {
        Ok(result) => Reply::Tool(result),
        Err(error) => error.into_tool_reply(version),
    }
}

/// Arguments that do not fit: the model can mend a result, so newer revisions get one; older ones demand
/// an error.
pub(crate) fn bad_arguments(version: ProtocolVersion, why: &str) -> Reply {
    let message = format!("Invalid arguments {why}");
    if version.reports_bad_arguments_as_result() {
        Reply::Tool(CallToolResult::error(message))
    } else {
        Reply::Error(Error::invalid_params(message))
    }
}

pub(crate) fn prompt_call<P, R, F, Fut>(handler: F) -> PromptCall
where
    P: DeserializeOwned,
    R: IntoPrompt,
    F: Fn(Ctx, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    Arc::new(move |ctx, request| {
        let version = ctx.version();
        let params = de::from_str(&request.to_json())
            .map_err(|e| Reply::Error(Error::invalid_params(format!("Invalid prompt arguments {e}"))))?;
        let future = handler(ctx, params);
        Ok(Box::pin(async move {
            match future.await {
                Ok(prompt) => Reply::Prompt(prompt.into_prompt()),
                Err(error) => Reply::Error(error.into_error(version)),
            }
        }))
    })
}

pub(crate) fn resource_read<V, R, F, Fut>(handler: F, mime_type: Option<Str>) -> ResourceRead
where
    V: FromVariables,
    R: IntoContents,
    F: Fn(Ctx, V) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    Arc::new(move |ctx, request| {
        let version = ctx.version();
        let uri = request.uri.clone();
        let mime_type = mime_type.clone();
        let variables = V::from_request(request).ok_or_else(|| Reply::Error(Error::internal()))?;
        let future = handler(ctx, variables);
        Ok(Box::pin(async move {
            match future.await {
                Ok(contents) => Reply::Read(contents.into_contents(&uri, mime_type.as_ref())),
                Err(error) => Reply::Error(error.into_error(version)),
            }
        }))
    })
}

pub(crate) fn completer<F, Fut>(handler: F) -> Completer
where
    F: Fn(Ctx, CompletionRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<String>, ToolError>> + Send + 'static,
{
    Arc::new(move |ctx, request| {
        let version = ctx.version();
        let future = handler(ctx, request);
        Box::pin(async move {
            match future.await {
                Ok(values) => Reply::Complete(CompleteResult::new(values)),
                Err(error) => Reply::Error(error.into_error(version)),
            }
        })
    })
}

pub(crate) fn custom<R, F, Fut>(handler: F) -> Custom
where
    R: Serialize,
    F: Fn(Ctx, CustomRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    Arc::new(move |ctx, request| {
        let version = ctx.version();
        let future = handler(ctx, request);
        Box::pin(async move {
            match future.await.map(|value| Json::from_serialize(&value)) {
                Ok(Ok(json)) if json.is_object() => Reply::Raw(json),
                Ok(_) => Reply::Error(Error::internal()),
                Err(error) => Reply::Error(error.into_error(version)),
            }
        })
    })
}

/// The arguments of a prompt, from the type its handler takes.
pub(crate) fn prompt_arguments<P: JsonSchema>() -> Vec<PromptArgument> {
    schema::properties::<P>()
        .into_iter()
        .map(|property| {
            let argument = PromptArgument::new(property.name).required(property.required);
            match property.description {
                Some(description) => argument.description(description),
                None => argument,
            }
        })
        .collect()
}
