//! What a script is made of. A script is what was drawn, before it is written as an exchange.

use serde_json::Value;

use super::form::Form;
use crate::exchange::Transport;
use crate::revision::Revision;

/// One script: operations in their order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Script {
    pub(super) seed: u64,
    pub(super) number: u64,
    pub(super) revision: Revision,
    pub(super) transport: Transport,
    /// What the subject has to offer for it, as `needs.tools` names it.
    pub(super) tools: Vec<String>,
    pub(super) operations: Vec<Operation>,
}

/// What is drawn, by name. Tests hold the generator to drawing each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// `ping`, or in the modern era `server/discover`.
    Ping,
    /// One page of a list.
    List,
    /// A cursor that nobody gave.
    NoCursor,
    /// A listed resource.
    Read,
    /// A resource that is not there.
    NoResource,
    /// A listed prompt.
    Prompt,
    /// A prompt that is not there.
    NoPrompt,
    /// Completion of an argument.
    Complete,
    /// The level of log messages.
    Level,
    /// A tool that gives its argument back.
    Echo,
    /// Two numbers whose sum is known.
    Add,
    /// A tool with arguments that its schema allows.
    Call,
    /// A tool with arguments that its schema forbids.
    Refused,
    /// A tool that is not there.
    NoTool,
    /// A method that nobody knows.
    NoMethod,
    /// Parameters of a known method that cannot be right.
    OddParams,
    /// A request with members that the protocol does not know.
    Unknown,
    /// A text far longer than a buffer.
    Huge,
    /// Nested beyond reason.
    Deep,
    /// A notification that nobody knows.
    Notice,
    /// A cancellation of a request that is not there.
    Stray,
    /// Two requests in flight with one id.
    Twin,
    /// A request that is cancelled while it may be running.
    Raced,
    /// A subscription of the modern era.
    Listen,
    /// Bytes that are no JSON.
    Spoiled,
    /// JSON that is no message.
    Odd,
}

/// One thing that is done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operation {
    /// Messages in one write; over HTTP one request each, side by side.
    Say(Vec<Message>, Cuts),
    /// All that is owed so far has to come.
    Await,
    /// A list page by page, with the cursors that it gives.
    Pages { method: &'static str, hops: usize },
    /// Cancels the request with this id.
    Cancel(Value),
    /// A call of `slow` that is known to be running is cancelled, and is silent from then on.
    Stop { id: Value, form: Form },
}

/// Where a write is cut; over HTTP, where the body of each message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cuts {
    None,
    Every,
    /// At so many places that this number decides.
    Some {
        seed: u64,
        most: usize,
    },
}

/// One message, or what stands in the place of one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) body: Body,
    pub(super) form: Form,
    /// Over HTTP: what decides how the header lines are written.
    pub(super) headers: Option<u64>,
    /// The pattern of the response without its id; none is owed if absent.
    pub(super) owed: Option<Value>,
    /// What a missing or other response breaks.
    pub(super) requires: &'static [&'static str],
    /// A breach is a warning only.
    pub(super) lenient: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    Json(Value),
    /// As it stands, without the line end.
    Text(String),
}

impl Message {
    pub(super) fn id(&self) -> Option<&Value> {
        match &self.body {
            Body::Json(message) => message.get("id"),
            Body::Text(_) => None,
        }
    }

    /// The text as it goes out, without the line end.
    pub(super) fn text(&self) -> String {
        match &self.body {
            Body::Json(message) => self.form.write(message),
            Body::Text(text) => text.clone(),
        }
    }
}

impl Script {
    /// The messages, in their order.
    pub(super) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.operations.iter().flat_map(|operation| match operation {
            Operation::Say(messages, _) => messages.as_slice(),
            _ => &[],
        })
    }

    /// The name of the exchange that it becomes.
    pub(super) fn name(&self) -> String {
        let Self { seed, number, revision, transport, .. } = self;
        format!("torture/seed-{seed}-script-{number}-{revision}-{}", transport.as_str())
    }
}
