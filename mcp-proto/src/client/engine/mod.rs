//! What is the same on every transport: eras, calls, rounds, tasks, subscriptions, requests of the server.

mod ask;
mod call;
mod http;
mod kept;
mod listen;
mod notice;
mod open;
mod response;
mod round;
mod table;
mod task;
mod time;
mod write;

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;

use self::ask::Asks;
use self::open::Phase;
use self::table::Table;
use super::cache::Cache;
use super::config::{Config, Verdict};
use super::error::CallError;
use super::event::{CallId, Event, ServerFacts, Violation, ViolationKind};
use super::outbox::{Answering, Origin, Outbox};
use super::tools::Tools;
use crate::model::ProtocolVersion;
use crate::rpc::{self, Malformed, Message};
use crate::time::Instant;

pub(crate) use self::response::wire_of;

/// The machine behind a [`Connection`](super::Connection) and an HTTP client.
///
/// One call takes one message and returns at most one event. What is due besides waits in a backlog, and
/// [`next_deadline`](Self::next_deadline) then says "now".
#[derive(Debug)]
pub(crate) struct Engine {
    config: Arc<Config>,
    phase: Phase,
    facts: Option<ServerFacts>,
    /// What was found out, kept over a restart of the stream.
    verdict: Option<Verdict>,
    table: Table,
    /// Calls that wait until it is known what the server speaks, in the order in which they were made.
    queue: BTreeSet<CallId>,
    /// A call that was refused by a server that may be another than was remembered, and how.
    doubted: Option<(CallId, CallError)>,
    backlog: VecDeque<Event<'static>>,
    asks: Asks,
    tools: Tools,
    cache: Cache,
    /// What a legacy session was told last of what is to be logged: by which call, and its params.
    level: Option<(CallId, Box<str>)>,
    /// Whether arguments of calls are repeated in headers.
    mirrors: bool,
}

impl Engine {
    pub(crate) fn new(config: Arc<Config>, mirrors: bool) -> Self {
        let limits = &config.limits;
        let (tools, cache) = (Tools::new(limits), Cache::new(limits));
        let verdict = config.assumed;
        Self {
            config,
            phase: Phase::Idle,
            facts: None,
            verdict,
            table: Table::default(),
            queue: BTreeSet::new(),
            doubted: None,
            backlog: VecDeque::new(),
            asks: Asks::default(),
            tools,
            cache,
            level: None,
            mirrors,
        }
    }

    pub(crate) const fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// What is known of the server; `None` before it is ready.
    pub(crate) fn server(&self) -> Option<&ServerFacts> {
        self.facts.as_ref().filter(|_| matches!(self.phase, Phase::Ready))
    }

    /// What is to be remembered of the server.
    pub(crate) const fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// The revision that both speak, once it is settled.
    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        self.server().map(|facts| facts.version)
    }

    /// How many calls are open, subscriptions included.
    pub(crate) fn open_calls(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn is_open(&self, call: CallId) -> bool {
        self.table.get(call).is_some()
    }

    /// Takes one message.
    pub(crate) fn handle<'b, O: Outbox>(
        &mut self,
        message: Message<'b>,
        origin: Origin,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        match message {
            Message::Request { id, method, params } => self.request(id, method, params, origin, out),
            Message::Notification { method, params } => self.notification(method, params, origin, now, out),
            Message::Result { id, result } => self.response(id, Ok(result), origin, now, out),
            Message::Error { id: Some(id), error } => self.response(id, Err(error), origin, now, out),
            Message::Error { id: None, error } => self.anonymous_error(&error, origin, now, out),
        }
    }

    /// Takes what is no message. A response that cannot be read still ends its call.
    pub(crate) fn malformed<O: Outbox>(
        &mut self,
        malformed: Malformed,
        origin: Origin,
        now: Instant,
        out: &mut O,
    ) -> Event<'static> {
        let Malformed { id, error, has_method, is_response, is_id_too_long, .. } = malformed;
        if is_id_too_long {
            // No request of this side has such an id; one of a legacy server is answered.
            let is_asked = has_method && self.version().is_some_and(|version| !version.is_modern());
            if let Some(id) = id.filter(|_| is_asked) {
                out.response(Answering::Machine, |out| rpc::write_error(out, Some(&id), &error));
            }
            let kind = if is_response { ViolationKind::UnknownResponse } else { ViolationKind::Request };
            return Event::Violation(Violation::new(kind, error.message, None));
        }
        if !has_method
            && let Some(wire) = id.as_ref().and_then(response::wire_of)
            && self.accepts(wire, origin)
        {
            let error = CallError::malformed(&error.message);
            if let Some(event) = self.fail_wire(wire, error, now, out) {
                return event;
            }
        }
        Event::Violation(Violation::new(ViolationKind::Malformed, error.message, id))
    }

    /// The stream ended. Whatever is open fails, one event after the other; subscriptions are kept.
    pub(crate) fn eof(&mut self) -> Option<Event<'static>> {
        self.stream_ended()
    }

    fn fail_later(&mut self, call: CallId, error: CallError) {
        self.backlog.push_back(Event::Failed { call, error });
    }
}

#[cfg(test)]
mod steps;
#[cfg(test)]
mod tests;
