//! What a frame can mean to the driver.

use alloc::borrow::Cow;
use alloc::string::String;

use serde_json::value::RawValue;

use super::features::ClientFeatures;
use super::pending::{AskKey, Pending, RequestKey};
use crate::model::ProtocolVersion;
use crate::model::method::{
    CallTool, CallToolParams, CancelTask, Complete, CompleteParams, GetPrompt, GetPromptParams, GetTask,
    ListPrompts, ListResourceTemplates, ListResources, ListTasks, ListTools, Listen, ListenParams, Method,
    PageParams, ReadResource, ReadResourceParams, ServerMethod, Subscribe, TaskParams, TaskResult,
    Unsubscribe, UpdateTask, UpdateTaskParams, UriParams,
};
use crate::rpc::{self, Error, Params, RequestId};

/// What a frame, or the passing of time, means to the driver. It borrows the frame, never the machine.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub enum Event<'b> {
    /// A request that wants an answer.
    Request(Incoming<'b>),
    /// A call towards a legacy client whose questions are answered: handle it again.
    Resumed(Resumed),
    /// A notification that the machine does not handle itself.
    Notification(Notice<'b>),
    /// The handshake is over: a legacy client may now be asked things.
    Initialized,
    /// An array of messages: hand each to [`handle_member`](super::Connection::handle_member).
    Batch(rpc::Batch<'b>),
    /// The client gave up. An answer for this key will be discarded.
    Cancelled {
        /// The request.
        key: RequestKey,
        /// Why, for logs.
        reason: Option<Cow<'b, str>>,
    },
    /// The request took too long and was answered with an error. An answer for this key will be discarded.
    TimedOut {
        /// The request.
        key: RequestKey,
    },
    /// A legacy client answered a request of ours, or did not in time.
    Answer(Answer<'b>),
    /// The peer broke the protocol. Whatever answer was due is already in `out`: this is for logs.
    Rejected(Violation),
}

/// A request as received.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Incoming<'b> {
    /// The right to answer.
    pub pending: Pending,
    /// The method.
    pub method: Cow<'b, str>,
    /// The params: members that no method knows are kept, for gateways.
    pub params: Params<'b>,
    /// The revision this request speaks.
    pub version: ProtocolVersion,
    /// What this client can be asked for in the course of this request.
    pub features: ClientFeatures,
}

impl<'b> Incoming<'b> {
    /// Reads the params as those of method `M`.
    ///
    /// # Errors
    ///
    /// The right to answer together with the error to answer: `-32602`.
    pub fn decode<M: Method>(self) -> Result<(Pending<M>, M::Params<'b>), Refusal> {
        match M::decode(&self.params) {
            Ok(params) => Ok((self.pending.cast(), params)),
            Err(error) => Err(Refusal { pending: self.pending, error }),
        }
    }

    /// Reads the params by the method's name.
    ///
    /// # Errors
    ///
    /// The right to answer together with the error to answer: `-32602`.
    pub fn typed(self) -> Result<Call<'b>, Refusal> {
        use ServerMethod as M;
        macro_rules! call {
            ($($name:ident),*) => {
                match ServerMethod::parse(&self.method) {
                    $(Some(M::$name) => { let (pending, params) = self.decode::<$name>()?; Call::$name(pending, params) })*
                    _ => Call::Other(self),
                }
            };
        }
        Ok(call!(
            ListTools,
            CallTool,
            ListResources,
            ListResourceTemplates,
            ReadResource,
            Subscribe,
            Unsubscribe,
            ListPrompts,
            GetPrompt,
            Complete,
            Listen,
            GetTask,
            UpdateTask,
            CancelTask,
            TaskResult,
            ListTasks
        ))
    }

    /// Refuses the request as a method that is not offered: `-32601`.
    pub fn not_found(self) -> Refusal {
        let error = Error::method_not_found(&self.method);
        Refusal { pending: self.pending, error }
    }
}

/// A request that is to be answered with an error: hand it to [`refuse`](super::Channel::refuse).
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Refusal {
    /// The right to answer.
    pub pending: Pending,
    /// The answer.
    pub error: Error,
}

/// The typed view of a request.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // made in order to be matched: a box would only cost
pub enum Call<'b> {
    /// `tools/list`
    ListTools(Pending<ListTools>, PageParams<'b>),
    /// `tools/call`
    CallTool(Pending<CallTool>, CallToolParams<'b>),
    /// `resources/list`
    ListResources(Pending<ListResources>, PageParams<'b>),
    /// `resources/templates/list`
    ListResourceTemplates(Pending<ListResourceTemplates>, PageParams<'b>),
    /// `resources/read`
    ReadResource(Pending<ReadResource>, ReadResourceParams<'b>),
    /// `resources/subscribe`: answer it with an empty result to subscribe.
    Subscribe(Pending<Subscribe>, UriParams<'b>),
    /// `resources/unsubscribe`: answer it with an empty result to unsubscribe.
    Unsubscribe(Pending<Unsubscribe>, UriParams<'b>),
    /// `prompts/list`
    ListPrompts(Pending<ListPrompts>, PageParams<'b>),
    /// `prompts/get`
    GetPrompt(Pending<GetPrompt>, GetPromptParams<'b>),
    /// `completion/complete`
    Complete(Pending<Complete>, CompleteParams<'b>),
    /// `subscriptions/listen`: hand it to [`acknowledge`](super::Connection::acknowledge).
    Listen(Pending<Listen>, ListenParams),
    /// `tasks/get`
    GetTask(Pending<GetTask>, TaskParams<'b>),
    /// `tasks/update`
    UpdateTask(Pending<UpdateTask>, UpdateTaskParams<'b>),
    /// `tasks/cancel`
    CancelTask(Pending<CancelTask>, TaskParams<'b>),
    /// `tasks/result`
    TaskResult(Pending<TaskResult>, TaskParams<'b>),
    /// `tasks/list`
    ListTasks(Pending<ListTasks>, PageParams<'b>),
    /// A method the specification does not have.
    Other(Incoming<'b>),
}

impl Call<'_> {
    /// The right to answer, whatever the method.
    pub fn into_pending(self) -> Pending {
        macro_rules! pending {
            ($($name:ident),*) => {
                match self {
                    $(Self::$name(pending, _) => pending.cast(),)*
                    Self::Other(incoming) => incoming.pending,
                }
            };
        }
        pending!(
            ListTools,
            CallTool,
            ListResources,
            ListResourceTemplates,
            ReadResource,
            Subscribe,
            Unsubscribe,
            ListPrompts,
            GetPrompt,
            Complete,
            Listen,
            GetTask,
            UpdateTask,
            CancelTask,
            TaskResult,
            ListTasks
        )
    }

    /// Refuses the call as one that is not offered: `-32601`.
    pub fn not_found(self) -> Refusal {
        let error = Error::new(rpc::code::METHOD_NOT_FOUND, "Method not found");
        Refusal { pending: self.into_pending(), error }
    }
}

/// A notification as received.
#[derive(Debug)]
#[non_exhaustive]
pub struct Notice<'b> {
    /// The method.
    pub method: Cow<'b, str>,
    /// The params.
    pub params: Params<'b>,
}

/// A legacy client's answer to a request of ours.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer<'b> {
    /// Which request of ours.
    pub ask: AskKey,
    /// The call in the course of which it was asked.
    pub request: Option<RequestKey>,
    /// The raw result, or the error; `-32603` of our own if the client took too long.
    pub outcome: Result<&'b RawValue, Error>,
}

/// A call that goes on: the same method and params, now with the answers in `inputResponses` and with the
/// `requestState` of the last round.
#[derive(Debug)]
#[non_exhaustive]
pub struct Resumed {
    pub(crate) key: RequestKey,
    pub(crate) method: ServerMethod,
    pub(crate) params: String,
    pub(crate) version: ProtocolVersion,
    pub(crate) features: ClientFeatures,
}

impl Resumed {
    /// The name of the request: the same as before.
    #[must_use]
    pub const fn key(&self) -> RequestKey {
        self.key
    }

    /// The request, to be handled like a new one. Call it once: the right to answer is in it.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming {
            pending: Pending::new(self.key),
            method: Cow::Borrowed(self.method.as_str()),
            params: Params::from_json(&self.params).unwrap_or_default(),
            version: self.version,
            features: self.features,
        }
    }
}

/// What a peer did wrong.
#[derive(Debug)]
#[non_exhaustive]
pub struct Violation {
    /// The error, in the words the peer was or would have been told.
    pub error: Error,
    /// The id of the message, if it had a readable one.
    pub id: Option<RequestId>,
    /// Whether the peer was told.
    pub answered: bool,
}
