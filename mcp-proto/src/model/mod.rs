//! The protocol's types. The vocabulary is that of 2026-07-28; older revisions are views of it, made
//! where bytes are written.
//!
//! - A type serialises to its JSON in 2026-07-28; [`view::write`] writes it as any revision has it.
//! - An absent member is never `null`, and a whole number never has a fraction.
//! - Texts are [`Str`]: constants cost nothing. Values whose shape is the application's business are
//!   [`Json`], kept verbatim.
//! - Results do not hold `resultType`, and do not serialise their `_meta`: both are written with the
//!   envelope.

#[macro_use]
mod macros;

mod annotations;
mod capability;
mod completion;
mod content;
mod elicitation;
mod error;
mod header;
mod implementation;
mod input;
mod json;
mod lifecycle;
mod members;
pub mod meta;
pub mod method;
mod notification;
mod number;
#[cfg(all(test, feature = "std"))]
mod official;
mod prompt;
mod resource;
pub mod result;
mod roots;
mod sampling;
#[cfg(feature = "validate")]
pub(crate) mod schema_check;
mod subscription;
mod task;
mod tool;
pub mod version;
pub mod view;

/// A text of the model: borrowed if it is a constant of the program, else owned.
pub type Str = alloc::borrow::Cow<'static, str>;

pub(crate) use macros::setters;

pub use annotations::{Annotations, Role};
pub use capability::{ClientCapabilities, ServerCapabilities, TASKS_EXTENSION};
pub use completion::{
    CompleteResult, Completion, CompletionReference, PromptReference, ResourceTemplateReference,
};
pub use content::{AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent, decode_base64};
pub use elicitation::{
    BooleanSchema, ElicitAction, ElicitForm, ElicitResult, ElicitUrl, FormSchema, InvalidContent,
    MultiSelectSchema, NumberSchema, PrimitiveSchema, SelectOption, SingleSelectSchema, StringFormat,
    StringSchema,
};
pub use error::{RequiredCapabilities, RequiredElicitations, ResourceNotFoundData, UnsupportedVersionData};
pub use header::{HeaderArgument, HeaderArgumentProblem, HeaderArgumentType, InvalidHeaderArgument};
pub use implementation::{Icon, IconTheme, Implementation};
pub use input::{InputKind, InputRequest, InputRequests, InputRequired, InputResponse, InputResponses};
pub use json::{InvalidJson, Json, JsonSchema};
pub use lifecycle::{DiscoverResult, InitializeResult};
pub use members::Members;
pub use meta::Meta;
pub use notification::{
    ElicitationComplete, LogMessage, LoggingLevel, Progress, ProgressParams, ResourceUpdated,
    SubscriptionsAcknowledged,
};
pub use prompt::{GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage};
pub use resource::{
    BlobResourceContents, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate, TextResourceContents,
};
pub use result::{CacheScope, EmptyResult, ResultBody};
pub use roots::{ListRootsResult, Root};
pub use sampling::{
    CreateMessage, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences, SamplingBlock,
    SamplingContent, SamplingMessage, ToolChoice, ToolChoiceMode, ToolResultContent, ToolUseContent,
    ToolUseFault, check_tool_use, stop_reason,
};
pub use subscription::{ListenResult, SubscriptionFilter};
pub use task::{
    CancelTaskResult, CreateTaskResult, DetailedTask, LegacyTask, LegacyTaskResult, ListTasksResult, Task,
    TaskDetail, TaskStatus,
};
pub use tool::{
    CallToolResult, InvalidToolName, ListToolsResult, OutputCheck, TaskSupport, Tool, ToolAnnotations,
    ToolExecution, ToolName,
};
pub use version::{Era, ProtocolVersion};
