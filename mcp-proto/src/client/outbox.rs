//! The seam between the machine and a transport: a line on a byte stream, a POST over HTTP.

use alloc::vec::Vec;

use super::event::{AskId, CallId};
use crate::model::{HeaderArgument, ProtocolVersion};

/// Where the machine's messages go. Each `write` appends one message, without a line ending.
pub(crate) trait Outbox {
    fn request(&mut self, about: &About<'_>, write: impl FnOnce(&mut Vec<u8>));

    fn notification(&mut self, about: &Notice<'_>, write: impl FnOnce(&mut Vec<u8>));

    /// Answers a request of the server.
    fn response(&mut self, to: Answering, write: impl FnOnce(&mut Vec<u8>));

    /// Lets go of a request that is still open. Returns whether the server is to be told by a notification:
    /// always on a byte stream; over HTTP not in 2026-07-28, where closing the response says it.
    fn abandon(&mut self, wire: i64, version: ProtocolVersion) -> bool;
}

/// What a request is about, for those who address it. What else headers repeat is read in the message.
#[derive(Debug)]
pub(crate) struct About<'a> {
    /// The id on the wire. Never used again.
    pub(crate) wire: i64,
    pub(crate) purpose: Purpose,
    pub(crate) method: &'a str,
    pub(crate) version: ProtocolVersion,
    /// The arguments of `tools/call` that headers repeat; empty if the tool was never listed.
    pub(crate) headers: &'a [HeaderArgument],
}

/// What a request of ours is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// `server/discover`, to find out the era.
    Probe,
    /// `initialize`
    Handshake,
    /// What the driver called.
    Call(CallId),
    /// `subscriptions/listen`
    Listen(CallId),
    /// `tasks/get` of the task that a call has become.
    Poll(CallId),
    /// `tasks/result` of such a task.
    Outcome(CallId),
    /// `tasks/update` of such a task.
    Update(CallId),
    /// `resources/subscribe` for a subscription on a legacy server. The subscription has no request of its own.
    Subscribe(CallId),
    /// A request whose answer does not matter: `tasks/cancel` of a call that is over, `resources/unsubscribe`.
    Aside,
}

impl Purpose {
    pub(crate) const fn call(self) -> Option<CallId> {
        match self {
            Self::Call(call)
            | Self::Listen(call)
            | Self::Poll(call)
            | Self::Outcome(call)
            | Self::Update(call) => Some(call),
            Self::Probe | Self::Handshake | Self::Subscribe(_) | Self::Aside => None,
        }
    }
}

/// What a notification is about.
#[derive(Debug)]
pub(crate) struct Notice<'a> {
    pub(crate) method: &'a str,
    pub(crate) version: ProtocolVersion,
}

/// Which request of the server is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answering {
    /// One that the driver was asked.
    Ask(AskId),
    /// One that the machine answers itself: on whatever stream comes next.
    Machine,
}

/// Where a message came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A stream that all messages share: bytes, or the GET stream of a legacy session.
    Shared,
    /// The response to the request with this id on the wire.
    Response(i64),
}
