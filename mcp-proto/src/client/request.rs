//! What a client sends: one type for each method, with what its answer is read as.

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

use crate::model::method::ServerMethod;
use crate::model::{
    CallToolResult, CompleteResult, CompletionReference, DetailedTask, DiscoverResult, EmptyResult,
    GetPromptResult, InputResponses, InvalidJson, Json, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListTasksResult, ListToolsResult, LoggingLevel, Members, OutputCheck,
    ReadResourceResult, Str, Task, setters,
};
use crate::rpc::de::{self, DecodeError};

/// The params of a request, which know their method and their answer. They serialise to an object.
///
/// Implement it for a type of your own to call a custom method; [`Custom`] does without a type.
pub trait Request: Serialize {
    /// The result.
    type Result: DeserializeOwned;
    /// The name on the wire; empty if it differs from value to value.
    const METHOD: &'static str;

    /// The name on the wire.
    fn method(&self) -> &str {
        Self::METHOD
    }

    /// What the request is about: the name of a tool or prompt, the URI of a resource, the id of a task.
    /// Over HTTP a header repeats it. [spec: basic/transports/streamable-http]
    fn subject(&self) -> Option<&str> {
        None
    }

    /// Reads the result.
    ///
    /// # Errors
    ///
    /// It does not fit.
    fn decode(json: &str) -> Result<Self::Result, DecodeError> {
        de::from_str(json)
    }

    /// Notes in the result of a tool whether it is what the tool promises.
    fn note(_: &mut Self::Result, _: OutputCheck) {}
}

/// A request that lists page by page. [spec: server/utilities/pagination]
pub trait PageRequest: Request + Clone {
    /// The same request for the page at `cursor`; the first one without.
    #[must_use]
    fn at(&self, cursor: Option<Str>) -> Self;

    /// Where the page after this one starts.
    fn next_cursor(page: &Self::Result) -> Option<&Str>;
}

macro_rules! pages {
    ($($(#[$doc:meta])* $name:ident => $result:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
        #[non_exhaustive]
        pub struct $name {
            /// Where the page starts; absent for the first one.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub cursor: Option<Str>,
        }

        impl $name {
            /// The first page.
            #[must_use]
            pub const fn new() -> Self {
                Self { cursor: None }
            }

            setters! { cursor: Str }
        }

        impl PageRequest for $name {
            fn at(&self, cursor: Option<Str>) -> Self {
                Self { cursor }
            }

            fn next_cursor(page: &$result) -> Option<&Str> {
                page.next_cursor.as_ref()
            }
        }
    )+};
}

pages! {
    /// `tools/list`
    ListTools => ListToolsResult;
    /// `resources/list`
    ListResources => ListResourcesResult;
    /// `resources/templates/list`
    ListResourceTemplates => ListResourceTemplatesResult;
    /// `prompts/list`
    ListPrompts => ListPromptsResult;
    /// `tasks/list`. Only 2025-11-25.
    ListTasks => ListTasksResult;
}

/// `tools/call`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CallTool {
    /// The tool.
    pub name: Str,
    /// An object; absent counts as `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
}

impl CallTool {
    /// A call without arguments.
    #[must_use]
    pub fn new(name: impl Into<Str>) -> Self {
        Self { name: name.into(), arguments: None }
    }

    setters! { arguments: Json }

    /// A call with the arguments that `arguments` serialises to.
    ///
    /// # Errors
    ///
    /// It has no JSON form.
    pub fn with<T: Serialize + ?Sized>(name: impl Into<Str>, arguments: &T) -> Result<Self, InvalidJson> {
        Ok(Self { name: name.into(), arguments: Some(Json::from_serialize(arguments)?) })
    }
}

/// `prompts/get`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GetPrompt {
    /// The prompt.
    pub name: Str,
    /// Its arguments by name.
    #[serde(skip_serializing_if = "Members::is_empty")]
    pub arguments: Members<Str>,
}

impl GetPrompt {
    /// A prompt without arguments.
    #[must_use]
    pub fn new(name: impl Into<Str>) -> Self {
        Self { name: name.into(), arguments: Members::new() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, name: impl Into<Str>, value: impl Into<Str>) -> Self {
        self.arguments.insert(name, value.into());
        self
    }
}

macro_rules! of_uri {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[non_exhaustive]
        pub struct $name {
            /// The resource.
            pub uri: Str,
        }

        impl $name {
            /// The resource at this URI.
            #[must_use]
            pub fn new(uri: impl Into<Str>) -> Self {
                Self { uri: uri.into() }
            }
        }
    )+};
}

of_uri! {
    /// `resources/read`
    ReadResource;
    /// `resources/subscribe`. Until 2025-11-25; after that, [listen](crate::client::Connection::listen).
    Subscribe;
    /// `resources/unsubscribe`. Until 2025-11-25.
    Unsubscribe;
}

/// `completion/complete`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "CompleteRequestParams")]
#[non_exhaustive]
pub struct Complete {
    /// Whose argument it is.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument, and what the user has typed.
    pub argument: CompleteArgument,
    /// Arguments that are known already. Since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<CompleteContext>,
}

/// An argument, and what the user has typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CompleteArgument {
    /// Its name.
    pub name: Str,
    /// What the user has typed.
    pub value: Str,
}

/// What helps to complete an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CompleteContext {
    /// Other arguments, by name.
    pub arguments: Members<Str>,
}

impl Complete {
    /// Completes `value` as this argument.
    #[must_use]
    pub fn new(reference: CompletionReference, name: impl Into<Str>, value: impl Into<Str>) -> Self {
        let argument = CompleteArgument { name: name.into(), value: value.into() };
        Self { reference, argument, context: None }
    }

    /// Adds an argument that is known already.
    #[must_use]
    pub fn known(mut self, name: impl Into<Str>, value: impl Into<Str>) -> Self {
        self.context.get_or_insert_default().arguments.insert(name, value.into());
        self
    }
}

/// `logging/setLevel`. Until 2025-11-25; after that, an option of each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SetLevel {
    /// The least level of interest.
    pub level: LoggingLevel,
}

impl SetLevel {
    /// The least level of interest.
    #[must_use]
    pub const fn new(level: LoggingLevel) -> Self {
        Self { level }
    }
}

macro_rules! bare {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        #[non_exhaustive]
        pub struct $name {}

        impl $name {
            /// The request.
            #[must_use]
            pub const fn new() -> Self {
                Self {}
            }
        }
    )+};
}

bare! {
    /// `ping`. Until 2025-11-25.
    Ping;
    /// `server/discover`. Since 2026-07-28. What it says becomes what the connection
    /// [knows of the server](crate::client::Connection::server).
    Discover;
}

macro_rules! of_task {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            /// The task.
            pub task_id: Str,
        }

        impl $name {
            /// The task of this id.
            #[must_use]
            pub fn new(task_id: impl Into<Str>) -> Self {
                Self { task_id: task_id.into() }
            }
        }
    )+};
}

of_task! {
    /// `tasks/get` with the tasks extension of 2026-07-28.
    GetTask;
    /// `tasks/get` as 2025-11-25 has it: the task without its outcome.
    GetLegacyTask;
    /// `tasks/cancel`
    CancelTask;
    /// `tasks/result`: waits until the task is over. Only 2025-11-25.
    TaskResult;
}

/// `tasks/update`: answers questions of a task. Since 2026-07-28.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTask {
    /// The task.
    pub task_id: Str,
    /// The answers by the key of their question.
    pub input_responses: InputResponses,
}

impl UpdateTask {
    /// These answers for the task of this id.
    #[must_use]
    pub fn new(task_id: impl Into<Str>, input_responses: InputResponses) -> Self {
        Self { task_id: task_id.into(), input_responses }
    }
}

/// A method that the specification does not have, or params that this crate does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Custom {
    /// The name on the wire.
    pub method: Str,
    /// An object; absent counts as `{}`.
    pub params: Option<Json>,
}

impl Custom {
    /// A request without params.
    #[must_use]
    pub fn new(method: impl Into<Str>) -> Self {
        Self { method: method.into(), params: None }
    }

    setters! { params: Json }
}

impl Serialize for Custom {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.params {
            Some(params) => params.serialize(serializer),
            None => Members::<Json>::new().serialize(serializer),
        }
    }
}

impl Request for Custom {
    type Result = Json;
    const METHOD: &'static str = "";

    fn method(&self) -> &str {
        &self.method
    }
}

macro_rules! requests {
    ($($name:ident: $wire:ident $(of $subject:ident)? => $result:ty;)+) => {$(
        impl Request for $name {
            type Result = $result;
            const METHOD: &'static str = ServerMethod::$wire.as_str();

            $(fn subject(&self) -> Option<&str> {
                Some(&self.$subject)
            })?
        }
    )+};
}

requests! {
    ListResources: ListResources => ListResourcesResult;
    ListResourceTemplates: ListResourceTemplates => ListResourceTemplatesResult;
    ListPrompts: ListPrompts => ListPromptsResult;
    ListTasks: ListTasks => ListTasksResult;
    GetPrompt: GetPrompt of name => GetPromptResult;
    ReadResource: ReadResource of uri => ReadResourceResult;
    Subscribe: Subscribe => EmptyResult;
    Unsubscribe: Unsubscribe => EmptyResult;
    Complete: Complete => CompleteResult;
    SetLevel: SetLevel => EmptyResult;
    Ping: Ping => EmptyResult;
    Discover: Discover => DiscoverResult;
    GetTask: GetTask of task_id => DetailedTask;
    GetLegacyTask: GetTask of task_id => Task;
    UpdateTask: UpdateTask of task_id => EmptyResult;
    CancelTask: CancelTask of task_id => EmptyResult;
    TaskResult: TaskResult of task_id => CallToolResult;
}

impl Request for CallTool {
    type Result = CallToolResult;
    const METHOD: &'static str = ServerMethod::CallTool.as_str();

    fn subject(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn note(result: &mut CallToolResult, check: OutputCheck) {
        result.output = check;
    }
}

/// One tool that cannot be read does not cost the others:
/// [`Completed::tools`](crate::client::Completed::tools) also says which were left out.
impl Request for ListTools {
    type Result = ListToolsResult;
    const METHOD: &'static str = ServerMethod::ListTools.as_str();

    fn decode(json: &str) -> Result<ListToolsResult, DecodeError> {
        ListToolsResult::decode_each(json).map(|(page, _)| page)
    }
}
