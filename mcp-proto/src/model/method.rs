//! The methods a client may call, at the value level and at the type level.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::LoggingLevel;
use super::SubscriptionFilter;
use super::result::ResultBody;
use super::{
    CallToolResult, CancelTaskResult, CompleteResult, DetailedTask, EmptyResult, GetPromptResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, ListToolsResult,
    ReadResourceResult,
};
use crate::rpc::{Error, Members, Params, PointerToken, str_from_json, unfit};

macro_rules! server_methods {
    ($($(#[$doc:meta])* $name:ident = $wire:literal,)*) => {
        /// A method of the specification that a client calls on a server, in any revision.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ServerMethod { $($(#[$doc])* $name,)* }

        impl ServerMethod {
            /// Every method.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The method of that name. Names are case-sensitive.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                Some(match name { $($wire => Self::$name,)* _ => return None })
            }

            /// The name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $wire,)* }
            }
        }
    };
}

server_methods! {
    /// `initialize`
    Initialize = "initialize",
    /// `server/discover`
    Discover = "server/discover",
    /// `ping`
    Ping = "ping",
    /// `logging/setLevel`
    SetLevel = "logging/setLevel",
    /// `tools/list`
    ListTools = "tools/list",
    /// `tools/call`
    CallTool = "tools/call",
    /// `resources/list`
    ListResources = "resources/list",
    /// `resources/templates/list`
    ListResourceTemplates = "resources/templates/list",
    /// `resources/read`
    ReadResource = "resources/read",
    /// `resources/subscribe`
    Subscribe = "resources/subscribe",
    /// `resources/unsubscribe`
    Unsubscribe = "resources/unsubscribe",
    /// `prompts/list`
    ListPrompts = "prompts/list",
    /// `prompts/get`
    GetPrompt = "prompts/get",
    /// `completion/complete`
    Complete = "completion/complete",
    /// `subscriptions/listen`
    Listen = "subscriptions/listen",
    /// `tasks/get`
    GetTask = "tasks/get",
    /// `tasks/update`
    UpdateTask = "tasks/update",
    /// `tasks/cancel`
    CancelTask = "tasks/cancel",
    /// `tasks/result`
    TaskResult = "tasks/result",
    /// `tasks/list`
    ListTasks = "tasks/list",
}

/// A method at the type level: its name, how its params are read, what its result is.
///
/// Implement it for a type of your own to serve a custom method with the same guarantees.
pub trait Method {
    /// The name on the wire.
    const NAME: &'static str;
    /// The params, borrowed from the frame.
    type Params<'b>;
    /// The result.
    type Result: ResultBody + Clone;

    /// Reads the params.
    ///
    /// # Errors
    ///
    /// `-32602`, saying what was expected, what came and where.
    fn decode<'b>(params: &Params<'b>) -> Result<Self::Params<'b>, Error>;
}

/// A method whose answer may be `input_required`. [spec: basic/patterns/mrtr]
pub trait MayRequireInput: Method {}

/// A method whose answer may be a task.
pub trait MayBecomeTask: Method {}

macro_rules! typed {
    ($($(#[$doc:meta])* $name:ident: $wire:ident, $params:ident $(<$life:lifetime>)? => $result:ty;)*) => { $(
        $(#[$doc])*
        #[derive(Debug)]
        #[allow(clippy::exhaustive_enums)] // a name at the type level: it has no values
        pub enum $name {}

        impl Method for $name {
            const NAME: &'static str = ServerMethod::$wire.as_str();
            type Params<'b> = $params $(<$life>)?;
            type Result = $result;
            fn decode<'b>(params: &Params<'b>) -> Result<Self::Params<'b>, Error> {
                params.check()?;
                $params::decode(params.members())
            }
        }
    )* };
}

typed! {
    /// `tools/list`
    ListTools: ListTools, PageParams<'b> => ListToolsResult;
    /// `tools/call`
    CallTool: CallTool, CallToolParams<'b> => CallToolResult;
    /// `resources/list`
    ListResources: ListResources, PageParams<'b> => ListResourcesResult;
    /// `resources/templates/list`
    ListResourceTemplates: ListResourceTemplates, PageParams<'b> => ListResourceTemplatesResult;
    /// `resources/read`
    ReadResource: ReadResource, ReadResourceParams<'b> => ReadResourceResult;
    /// `resources/subscribe`
    Subscribe: Subscribe, UriParams<'b> => EmptyResult;
    /// `resources/unsubscribe`
    Unsubscribe: Unsubscribe, UriParams<'b> => EmptyResult;
    /// `prompts/list`
    ListPrompts: ListPrompts, PageParams<'b> => ListPromptsResult;
    /// `prompts/get`
    GetPrompt: GetPrompt, GetPromptParams<'b> => GetPromptResult;
    /// `completion/complete`
    Complete: Complete, CompleteParams<'b> => CompleteResult;
    /// `subscriptions/listen`
    Listen: Listen, ListenParams => EmptyResult;
    /// `tasks/get`
    GetTask: GetTask, TaskParams<'b> => DetailedTask;
    /// `tasks/update`
    UpdateTask: UpdateTask, UpdateTaskParams<'b> => EmptyResult;
    /// `tasks/cancel`
    CancelTask: CancelTask, TaskParams<'b> => CancelTaskResult;
    /// `tasks/result`
    TaskResult: TaskResult, TaskParams<'b> => CallToolResult;
    /// `tasks/list`
    ListTasks: ListTasks, PageParams<'b> => ListTasksResult;
}

impl MayRequireInput for CallTool {}
impl MayRequireInput for GetPrompt {}
impl MayRequireInput for ReadResource {}
impl MayBecomeTask for CallTool {}

/// Params of a method that lists. [spec: server/utilities/pagination]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PageParams<'b> {
    /// Where to go on; an empty string is a cursor like any other.
    pub cursor: Option<Cow<'b, str>>,
}

impl<'b> PageParams<'b> {
    fn decode(members: &Members<'b>) -> Result<Self, Error> {
        Ok(Self { cursor: members.text("cursor")? })
    }
}

/// What a retry brings along. [spec: basic/patterns/mrtr]
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Retry<'b> {
    /// The answers by key, raw: decode each by what was asked.
    pub input_responses: Option<Members<'b>>,
    /// The state of the last `input_required`, exactly as the client echoed it. Attacker-controlled.
    pub request_state: Option<Cow<'b, str>>,
}

impl<'b> Retry<'b> {
    fn decode(members: &Members<'b>) -> Result<Self, Error> {
        let input_responses = match members.object("inputResponses")? {
            None => None,
            Some(raw) => Some(Members::from_json(raw.get()).ok_or_else(|| {
                Error::invalid_params(
                    "Invalid params at /params/inputResponses: a member is given twice or there are too many",
                )
            })?),
        };
        Ok(Self { input_responses, request_state: members.text("requestState")? })
    }
}

/// Params of `tools/call`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallToolParams<'b> {
    /// The tool.
    pub name: Cow<'b, str>,
    /// The JSON text of an object; absent counts as `{}`.
    pub arguments: Option<&'b RawValue>,
    /// Answers to what was asked before.
    pub retry: Retry<'b>,
    /// 2025-11-25: the client asks for a task. The JSON text of an object.
    pub task: Option<&'b RawValue>,
}

impl<'b> CallToolParams<'b> {
    fn decode(members: &Members<'b>) -> Result<Self, Error> {
        Ok(Self {
            name: members.required_text("name")?,
            arguments: members.object("arguments")?,
            retry: Retry::decode(members)?,
            task: members.object("task")?,
        })
    }
}

/// Params of `resources/read`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadResourceParams<'b> {
    /// The resource.
    pub uri: Cow<'b, str>,
    /// Answers to what was asked before.
    pub retry: Retry<'b>,
}

impl<'b> ReadResourceParams<'b> {
    fn decode(members: &Members<'b>) -> Result<Self, Error> {
        Ok(Self { uri: members.required_text("uri")?, retry: Retry::decode(members)? })
    }
}

/// Params that name a resource.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UriParams<'b> {
    /// The resource.
    pub uri: Cow<'b, str>,
}

impl<'b> UriParams<'b> {
    fn decode(members: &Members<'b>) -> Result<Self, Error> {
        Ok(Self { uri: members.required_text("uri")? })
    }
}

/// Params of `prompts/get`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GetPromptParams<'b> {
    /// The prompt.
    pub name: Cow<'b, str>,
    /// Arguments by name, in the order received.
    pub arguments: Vec<(Cow<'b, str>, Cow<'b, str>)>,
    /// Answers to what was asked before.
    pub retry: Retry<'b>,
}

impl<'b> GetPromptParams<'b> {
    fn decode(members: &Members<'b>) -> Result<Self, Error> {
        Ok(Self {
            name: members.required_text("name")?,
            arguments: strings(members, "arguments")?,
            retry: Retry::decode(members)?,
        })
    }
}

/// Strings by name, in the order received.
type Strings<'b> = Vec<(Cow<'b, str>, Cow<'b, str>)>;

/// A map of strings under `name`.
fn strings<'b>(members: &Members<'b>, name: &str) -> Result<Strings<'b>, Error> {
    let Some(raw) = members.object(name)? else { return Ok(Vec::new()) };
    let Some(inner) = Members::from_json(raw.get()) else {
        return Err(unfit(name, "an object with distinct members", Some(raw)));
    };
    inner
        .into_iter()
        .map(|(key, value)| match str_from_json(value.get()) {
            Some(text) => Ok((key, text)),
            None => Err(unfit(&alloc::format!("{name}/{}", PointerToken(&key)), "a string", Some(value))),
        })
        .collect()
}

/// What is completed. [spec: server/utilities/completion]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompletionReference<'b> {
    /// An argument of a prompt.
    Prompt(Cow<'b, str>),
    /// A variable of a resource template.
    Resource(Cow<'b, str>),
}

/// Params of `completion/complete`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CompleteParams<'b> {
    /// Whose argument it is.
    pub reference: CompletionReference<'b>,
    /// The argument's name.
    pub argument: Cow<'b, str>,
    /// What the user has typed.
    pub value: Cow<'b, str>,
    /// Arguments that are already known.
    pub context: Vec<(Cow<'b, str>, Cow<'b, str>)>,
}

impl<'b> CompleteParams<'b> {
    fn decode(members: &Members<'b>) -> Result<Self, Error> {
        let inner = |name: &str| {
            let raw = members.required_object(name)?;
            Members::from_json(raw.get())
                .ok_or_else(|| unfit(name, "an object with distinct members", Some(raw)))
        };
        let reference = inner("ref")?;
        let kind = reference
            .required_text("type")
            .map_err(|_| unfit("ref/type", "a string", reference.get("type")))?;
        let field = |name: &str| {
            reference
                .required_text(name)
                .map_err(|_| unfit(&alloc::format!("ref/{name}"), "a string", reference.get(name)))
        };
        let reference = match &*kind {
            "ref/prompt" => CompletionReference::Prompt(field("name")?),
            "ref/resource" => CompletionReference::Resource(field("uri")?),
            _ => return Err(unfit("ref/type", "\"ref/prompt\" or \"ref/resource\"", reference.get("type"))),
        };
        let argument = inner("argument")?;
        let field = |name: &str| {
            argument
                .required_text(name)
                .map_err(|_| unfit(&alloc::format!("argument/{name}"), "a string", argument.get(name)))
        };
        let context = match members.object("context")? {
            None => Vec::new(),
            Some(raw) => match Members::from_json(raw.get()) {
                Some(context) => strings(&context, "arguments")?,
                None => return Err(unfit("context", "an object with distinct members", Some(raw))),
            },
        };
        Ok(Self { reference, argument: field("name")?, value: field("value")?, context })
    }
}

/// Params of `subscriptions/listen`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListenParams {
    /// What the client wants to hear of.
    pub notifications: SubscriptionFilter,
}

impl ListenParams {
    fn decode(members: &Members<'_>) -> Result<Self, Error> {
        let raw = members.required_object("notifications")?;
        let notifications = crate::rpc::de::from_str(raw.get()).map_err(|e| {
            Error::invalid_params(alloc::format!("Invalid params at /params/notifications{e}"))
        })?;
        Ok(Self { notifications })
    }
}

/// Params that name a task.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskParams<'b> {
    /// The task.
    pub task_id: Cow<'b, str>,
}

impl<'b> TaskParams<'b> {
    fn decode(members: &Members<'b>) -> Result<Self, Error> {
        Ok(Self { task_id: members.required_text("taskId")? })
    }
}

/// Params of `tasks/update`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UpdateTaskParams<'b> {
    /// The task.
    pub task_id: Cow<'b, str>,
    /// The answers by key, raw: decode each by what was asked.
    pub input_responses: Members<'b>,
}

impl<'b> UpdateTaskParams<'b> {
    fn decode(members: &Members<'b>) -> Result<Self, Error> {
        let raw = members.required_object("inputResponses")?;
        Ok(Self {
            task_id: members.required_text("taskId")?,
            input_responses: Members::from_json(raw.get())
                .ok_or_else(|| unfit("inputResponses", "an object with distinct members", Some(raw)))?,
        })
    }
}

/// The level of `logging/setLevel`.
pub(crate) fn decode_level(members: &Members<'_>) -> Result<LoggingLevel, Error> {
    let level = members.required_text("level")?;
    LoggingLevel::parse(&level)
        .ok_or_else(|| unfit("level", "a logging level such as \"info\"", members.get("level")))
}
