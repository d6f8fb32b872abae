//! What a message of a server means to the driver.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::error::CallError;
use super::http::Unauthorized;
use super::request::Request;
use super::tools::Listed;
#[cfg(feature = "validate")]
use crate::model::OutputCheck;
use crate::model::method::ServerMethod;
use crate::model::{
    Implementation, InputRequest, InputRequests, ListToolsResult, LogMessage, Meta, Progress,
    ProtocolVersion, ServerCapabilities, Str, SubscriptionFilter, Task, Tool,
};
use crate::rpc::de::DecodeError;
use crate::rpc::{self, Params, RequestId};

/// Names one call, from its beginning to its end: over rounds of input, retries and the polling of a task,
/// while the ids on the wire change.
#[derive(Debug, Clone, Copy, Hash)]
#[cfg_attr(not(all(test, feature = "std")), derive(PartialEq, Eq, PartialOrd, Ord))] // which tests count
#[cfg_attr(all(test, feature = "std"), allow(clippy::derived_hash_with_manual_eq))]
pub struct CallId(pub(crate) u64);

/// Names one request of a legacy server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub(crate) u64);

/// What a frame, or the passing of time, means to the driver. It borrows the frame, never the machine.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // made in order to be matched: a box would only cost
pub enum Event<'b> {
    /// It is known what the server speaks: see [`Connection::server`](super::Connection::server).
    Ready,
    /// This server cannot be used. Calls that were waiting fail one by one.
    Unusable(CallError),
    /// The server ended at the probe, or at the handshake on the same stream: start it again and call
    /// [`start`](super::Connection::start) for the new stream. Waiting calls are kept.
    Respawn,
    /// A call has its result.
    Complete(Completed<'b>),
    /// A call came to nothing.
    Failed {
        /// The call.
        call: CallId,
        /// Why.
        error: CallError,
    },
    /// A call, or its task, waits for input: [`answer`](super::Connection::answer) it.
    InputRequired {
        /// The call.
        call: CallId,
        /// What is asked.
        round: Round,
    },
    /// How far a call has come.
    Progress {
        /// The call.
        call: CallId,
        /// How far.
        progress: Progress,
    },
    /// A log message.
    Log {
        /// The call in whose course it was sent, where the transport tells.
        call: Option<CallId>,
        /// The message.
        message: LogMessage,
    },
    /// A request of a legacy server: [`respond`](super::Connection::respond) to it.
    Asked(Asked),
    /// The server no longer wants an answer. One that is given is discarded.
    AskCancelled {
        /// The request.
        ask: AskId,
        /// Why, for logs.
        reason: Option<Str>,
    },
    /// Something changed on the server. Results that were kept are no longer used.
    Changed {
        /// The subscription; `None` from a legacy server, which tells unasked.
        subscription: Option<CallId>,
        /// What changed.
        change: Change,
    },
    /// A subscription has begun.
    Acknowledged {
        /// The subscription.
        subscription: CallId,
        /// What of it is granted. [spec: basic/patterns/subscriptions]
        granted: SubscriptionFilter,
    },
    /// A subscription has ended.
    ListenEnded {
        /// The subscription.
        subscription: CallId,
        /// Whether it can be [opened again](super::Connection::relisten): its stream broke.
        lost: bool,
    },
    /// Where a task stands.
    TaskStatus {
        /// The call that became the task, or the subscription that told.
        call: Option<CallId>,
        /// The task.
        task: Task,
    },
    /// 2025-11-25: what the user was sent to by URL is done.
    ElicitationComplete {
        /// The elicitation.
        elicitation_id: Str,
    },
    /// A notification that the machine does not handle itself.
    Notification(Notice<'b>),
    /// An array of messages: hand each to [`handle_member`](super::Connection::handle_member).
    Batch(rpc::Batch<'b>),
    /// HTTP: something waits for an access token:
    /// [`authorize`](super::http::Client::authorize) or [`decline`](super::http::Client::decline).
    Unauthorized(Unauthorized),
    /// HTTP: the stream is gone on which a legacy server says what belongs to no call, and was not to be had
    /// again; why. It tells no changes meanwhile, and may have nowhere to ask. The stream is tried again when
    /// it takes a request, at most once within [`Reconnect::max_wait`](super::http::Reconnect::max_wait).
    /// Told once, until there is one again. [spec: 2025-11-25 basic/transports#listening-for-messages-from-the-server]
    StreamLost(CallError),
    /// HTTP: after [`StreamLost`](Self::StreamLost) there is such a stream again. What would have been told
    /// meanwhile was not.
    StreamRestored,
    /// The server broke the protocol, or sent what nobody waits for. Nothing came of it: this is for logs.
    Violation(Violation),
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

/// What a call waits for. [spec: basic/patterns/mrtr]
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Round {
    /// The questions, by key. May be empty with [`Rounds::Manual`](super::Rounds::Manual): then the answer
    /// is just a retry.
    pub requests: InputRequests,
    /// Whether the call has become a task, which goes on meanwhile.
    pub of_task: bool,
}

/// A request of a legacy server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Asked {
    /// Its name.
    pub ask: AskId,
    /// What is asked.
    pub request: InputRequest,
    /// The call in whose course it is asked, where that is known.
    pub call: Option<CallId>,
}

/// What changed on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and of templates.
    Resources,
    /// The resource at this URI, or a part of what was subscribed to.
    Resource(Str),
}

/// What is known of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The revision that both speak.
    pub version: ProtocolVersion,
    /// Who it says it is, for people and logs.
    pub identity: Option<Implementation>,
    /// What it can do; `None` if it was not asked.
    pub capabilities: Option<ServerCapabilities>,
    /// How to use it; a hint to the model.
    pub instructions: Option<Str>,
}

impl ServerFacts {
    /// The name that it gives itself, for people and logs: any server can give itself any name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.identity.as_ref().map(|identity| &*identity.name)
    }
}

/// A result, raw.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completed<'b> {
    /// The call.
    pub call: CallId,
    /// The result object as received, with `resultType` and `_meta`.
    pub result: Cow<'b, RawValue>,
    /// Whether it stood for a new answer, being still fresh.
    pub cached: bool,
    pub(crate) method: Str,
    pub(crate) kind: Kind,
    /// The definition of the tool that was called, if it was listed.
    pub(crate) tool: Option<Arc<Listed>>,
    /// Whether arguments are mirrored, so that a tool with a bad annotation cannot be called.
    pub(crate) mirrors: bool,
}

/// What a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Result,
    /// The task that the call became, in the form of any revision.
    Task,
}

impl Completed<'_> {
    /// The method of the call.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Reads the result as that of `R`, which must be what was called.
    ///
    /// # Errors
    ///
    /// It does not fit, is a [task](Self::task), or another method was called.
    pub fn decode<R: Request>(&self) -> Result<R::Result, DecodeError> {
        self.check::<R>()?;
        if self.mirrors && R::METHOD == ServerMethod::ListTools.as_str() {
            // A tool whose annotations are wrong cannot be called over HTTP.
            let tools = self.tools()?;
            return match serde_json::to_string(&tools.page) {
                Ok(json) => R::decode(&json),
                Err(_) => R::decode(self.result.get()),
            };
        }
        R::decode(self.result.get())
    }

    /// The task, if the call became one and [`TaskUse::Expose`](super::TaskUse::Expose) was chosen.
    #[must_use]
    pub fn task(&self) -> Option<Task> {
        (self.kind == Kind::Task)
            .then(|| rpc::de::from_str::<crate::model::CreateTaskResult>(self.result.get()).ok())
            .flatten()
            .map(|created| created.task)
    }

    /// Reads the answer to `tools/list` and says which tools were left out, and why.
    ///
    /// # Errors
    ///
    /// It is no list of tools.
    pub fn tools(&self) -> Result<ToolPage, DecodeError> {
        let (mut page, mut faults) = ListToolsResult::decode_each(self.result.get())?;
        if self.mirrors {
            page.tools.retain(|tool| match tool.input_schema.header_arguments() {
                Ok(_) => true,
                Err(fault) => {
                    faults.push(DecodeError::new(alloc::format!("the tool {:?}: {fault}", tool.name)));
                    false
                }
            });
        }
        Ok(ToolPage { page, faults })
    }

    /// The metadata of the result. `None` also if it cannot be read.
    #[must_use]
    pub fn meta(&self) -> Option<Meta> {
        let members = rpc::Members::from_json(self.result.get())?;
        rpc::de::from_str(members.get("_meta")?.get()).ok()
    }

    /// The definition of the tool that was called, if the machine saw it in a list.
    #[must_use]
    pub fn tool(&self) -> Option<&Tool> {
        self.tool.as_deref().map(|listed| &listed.tool)
    }

    /// Holds the result of `tools/call` against the output schema with which the tool was listed. A result
    /// that says that the tool failed need not fit, and a tool without a schema, or one that was never listed,
    /// promises nothing. A schema that cannot be used, for it is none or refers to another document, is
    /// [`OutputCheck::Unchecked`]: nothing is fetched. [spec: server/tools#output-schema]
    ///
    /// # Errors
    ///
    /// The server does not keep what it declared.
    #[cfg(feature = "validate")]
    #[cfg_attr(docsrs, doc(cfg(feature = "validate")))]
    pub fn check_output(&self) -> Result<OutputCheck, InvalidOutput> {
        let Some(schema) = self.tool.as_ref().and_then(|listed| listed.output()) else {
            return Ok(OutputCheck::Unpromised);
        };
        let members = rpc::Members::from_json(self.result.get()).unwrap_or_default();
        if self.kind == Kind::Task || members.get("isError").is_some_and(|flag| flag.get() == "true") {
            return Ok(OutputCheck::Unpromised);
        }
        let Some(content) = members.get("structuredContent") else { return Err(InvalidOutput::Missing) };
        let schema = match schema {
            Ok(schema) => schema,
            Err(reason) => return Ok(OutputCheck::Unchecked(reason.clone())),
        };
        let value: serde_json::Value = serde_json::from_str(content.get())
            .map_err(|error| InvalidOutput::Mismatch(error.to_string()))?;
        match schema.iter_errors(&value).next() {
            None => Ok(OutputCheck::Fits),
            Some(error) => Err(InvalidOutput::Mismatch(crate::model::schema_check::describe(&error))),
        }
    }

    /// The same result, without a borrow.
    pub fn into_owned(self) -> Completed<'static> {
        Completed { result: Cow::Owned(self.result.into_owned()), ..self }
    }

    fn check<R: Request>(&self) -> Result<(), DecodeError> {
        if self.kind == Kind::Task {
            return Err(DecodeError::new("expected a result, found a task".to_string()));
        }
        if R::METHOD.is_empty() || R::METHOD == self.method {
            return Ok(());
        }
        Err(DecodeError::new(alloc::format!(
            "expected the answer to {}, found one to {}",
            R::METHOD,
            self.method
        )))
    }
}

/// What a tool gave is not what its output schema promises.
#[cfg(feature = "validate")]
#[cfg_attr(docsrs, doc(cfg(feature = "validate")))]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidOutput {
    /// There is no `structuredContent`.
    Missing,
    /// It does not fit: where, and why.
    Mismatch(String),
}

#[cfg(feature = "validate")]
impl core::fmt::Display for InvalidOutput {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Missing => f.write_str("the result lacks the `structuredContent` that the tool promises"),
            Self::Mismatch(reason) => {
                write!(f, "`structuredContent` is not what the tool promises: {reason}")
            }
        }
    }
}

#[cfg(feature = "validate")]
impl core::error::Error for InvalidOutput {}

/// One page of tools, and what is wrong with those that were left out.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolPage {
    /// The tools that can be called.
    pub page: ListToolsResult,
    /// One line for each of the others, with its place in the list or its name.
    pub faults: Vec<DecodeError>,
}

/// What a server did wrong.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Violation {
    /// What kind of fault.
    pub kind: ViolationKind,
    /// In words, for logs.
    pub detail: String,
    /// The id of the message, if it has one that could be read.
    pub id: Option<RequestId>,
}

/// Kinds of faults of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViolationKind {
    /// No message: no JSON, or not that of JSON-RPC.
    Malformed,
    /// An answer to a request that is over: cancelled, timed out, or answered before. Harmless: a
    /// cancellation may cross the answer.
    Late,
    /// An answer to a request that was never made.
    UnknownResponse,
    /// An error that says to no request what it is about.
    AnonymousError,
    /// An answer where another request's answer was due.
    Misplaced,
    /// Progress with a token that no open call has.
    UnknownProgress,
    /// Progress that does not grow.
    StaleProgress,
    /// A notification of a subscription that is not open, or of none.
    UnknownSubscription,
    /// A notification that the subscription did not ask for, or before it was acknowledged.
    Unsubscribed,
    /// A request from a server of 2026-07-28, which has none, or one that was refused.
    Request,
    /// A notification whose params cannot be read.
    Params,
    /// A batch where there are none.
    Batch,
    /// HTTP: a notification or an answer of this side was refused.
    Refused,
}

impl Violation {
    pub(crate) fn new(kind: ViolationKind, detail: impl ToString, id: Option<RequestId>) -> Self {
        Self { kind, detail: detail.to_string(), id }
    }
}

impl Event<'_> {
    pub(crate) fn violation(kind: ViolationKind, detail: impl ToString) -> Event<'static> {
        Event::Violation(Violation::new(kind, detail, None))
    }
}
