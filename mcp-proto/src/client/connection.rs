//! One byte stream: lines in, lines out.

use alloc::sync::Arc;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::config::{CallOptions, Config, Verdict};
use super::engine::Engine;
use super::error::CallError;
use super::event::{AskId, CallId, Event, ServerFacts, ViolationKind};
use super::outbox::{About, Answering, Notice, Origin, Outbox};
use super::pages::Pages;
use super::parked::Parked;
use super::request::{PageRequest, Request};
use crate::model::{InputResponse, InputResponses, ProtocolVersion, SubscriptionFilter};
use crate::rpc::{self, Error, Parsed};
use crate::time::Instant;

/// The client's side of one byte stream.
///
/// ```text
///   start ──► out                                    server/discover, or initialize
///   frame ──► handle ──► Event::Ready                 it is known what the server speaks
///   call  ──► out, CallId
///   frame ──► handle ──► Event::Complete(result)      result.decode::<request::CallTool>()
///                 └────► Event::InputRequired ──► answer ──► out
/// ```
///
/// Every call is complete: what it causes is in its return value and in `out`, which gets whole lines. One
/// frame yields at most one event. What is due besides waits, and [`next_deadline`](Self::next_deadline) then
/// lies in the past: so call [`handle_timeout`](Self::handle_timeout) until it returns `None` whenever that is
/// due, also after [`call`](Self::call) and [`eof`](Self::eof).
///
/// Calls may be made at once: they wait until it is known what the server speaks.
#[derive(Debug)]
pub struct Connection {
    engine: Engine,
}

/// Lines on a byte stream.
struct Lines<'o>(&'o mut Vec<u8>);

impl Outbox for Lines<'_> {
    fn request(&mut self, _: &About<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        self.line(write);
    }

    fn notification(&mut self, _: &Notice<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        self.line(write);
    }

    fn response(&mut self, _: Answering, write: impl FnOnce(&mut Vec<u8>)) {
        self.line(write);
    }

    fn abandon(&mut self, _: i64, _: ProtocolVersion) -> bool {
        true
    }
}

impl Lines<'_> {
    fn line(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self.0);
        self.0.push(b'\n');
    }
}

impl Connection {
    /// A fresh stream.
    #[must_use]
    pub fn new(config: Arc<Config>) -> Self {
        Self { engine: Engine::new(config, false) }
    }

    /// Begins: asks the server what it speaks, or makes the handshake, or nothing if that is known. After
    /// [`eof`](Self::eof) it begins again on a new stream: subscriptions are opened again, and what was found
    /// out is not asked again.
    pub fn start(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Event<'static>> {
        self.engine.start(now, &mut Lines(out))
    }

    /// Calls a method.
    ///
    /// # Errors
    ///
    /// Nothing was sent: the params cannot be written, the server does not offer the method or cannot be
    /// used, or too many calls are open.
    pub fn call<R: Request>(
        &mut self,
        request: &R,
        options: &CallOptions,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<CallId, CallError> {
        self.engine.call(request, options, now, &mut Lines(out))
    }

    /// A walk over the pages of a list, at most [`Limits::max_pages`](crate::limits::Limits::max_pages) of
    /// them.
    #[must_use]
    pub fn pages<R: PageRequest>(&self, request: R) -> Pages<R> {
        Pages::new(request, self.engine.config().limits.max_pages)
    }

    /// Takes one frame: at most one event comes back.
    pub fn handle<'b>(&mut self, frame: &'b [u8], now: Instant, out: &mut Vec<u8>) -> Option<Event<'b>> {
        let out = &mut Lines(out);
        match rpc::parse(frame, &self.engine.config().limits) {
            Ok(Parsed::Message(message)) => self.engine.handle(message, Origin::Shared, now, out),
            Ok(Parsed::Batch(batch)) => {
                if self.engine.version().is_some_and(ProtocolVersion::has_batches) {
                    return Some(Event::Batch(batch));
                }
                Some(Event::violation(ViolationKind::Batch, "this revision has no batches"))
            }
            Err(malformed) => Some(self.engine.malformed(malformed, Origin::Shared, now, out)),
        }
    }

    /// Takes one message of [`Event::Batch`]. Each request in it is answered on a line of its own.
    pub fn handle_member<'b>(
        &mut self,
        message: &'b RawValue,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<Event<'b>> {
        let out = &mut Lines(out);
        match rpc::parse(message.get().as_bytes(), &self.engine.config().limits) {
            Ok(Parsed::Message(message)) => self.engine.handle(message, Origin::Shared, now, out),
            Ok(Parsed::Batch(_)) => Some(Event::violation(ViolationKind::Batch, "a batch inside a batch")),
            Err(malformed) => Some(self.engine.malformed(malformed, Origin::Shared, now, out)),
        }
    }

    /// The moment at which to call [`handle_timeout`](Self::handle_timeout), if nothing happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.engine.next_deadline()
    }

    /// Lets time pass. Call it until it returns `None`.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Event<'static>> {
        self.engine.handle_timeout(now, &mut Lines(out))
    }

    /// Answers [`Event::InputRequired`]: the call goes on. Each question of a round must be answered; those
    /// of a task may be answered bit by bit.
    ///
    /// # Errors
    ///
    /// The call does not wait for input, or a question is not answered. It goes on waiting.
    pub fn answer(
        &mut self,
        call: CallId,
        responses: &InputResponses,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<(), CallError> {
        self.engine.answer(call, responses, now, &mut Lines(out))
    }

    /// Takes a call that waits for input, or that has become a task, out of the machine, to be stored and
    /// [resumed](Self::resume). `None` if it is in another state. The name of the call means nothing after.
    pub fn park(&mut self, call: CallId) -> Option<Parked> {
        self.engine.park(call)
    }

    /// Goes on with a call that was parked, here or in another process. The answers are those to
    /// [`Parked::requests`]; for a task they are given when it asks again.
    ///
    /// # Errors
    ///
    /// A question is not answered, or as [`call`](Self::call).
    pub fn resume(
        &mut self,
        parked: Parked,
        responses: &InputResponses,
        options: &CallOptions,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<CallId, CallError> {
        self.engine.resume(parked, responses, options, now, &mut Lines(out))
    }

    /// Gives up a call or a subscription: the server is told, and no event will follow. Returns whether it was
    /// open. A call that has become a task is cancelled as one. [spec: basic/patterns/cancellation]
    pub fn cancel(&mut self, call: CallId, reason: Option<&str>, out: &mut Vec<u8>) -> bool {
        self.engine.cancel(call, reason, &mut Lines(out))
    }

    /// Answers [`Event::Asked`]. Returns whether anything was written: the server may have taken the request
    /// back. A user's refusal of sampling is [`SAMPLING_REFUSED`](rpc::code::SAMPLING_REFUSED).
    pub fn respond(&mut self, ask: AskId, answer: Result<InputResponse, Error>, out: &mut Vec<u8>) -> bool {
        self.engine.respond(ask, answer, &mut Lines(out))
    }

    /// Opens a subscription: [`Event::Acknowledged`], then [`Event::Changed`] for each change, until it is
    /// [cancelled](Self::cancel) or [`Event::ListenEnded`]. On a legacy server the machine makes up for it.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn listen(
        &mut self,
        filter: SubscriptionFilter,
        options: &CallOptions,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<CallId, CallError> {
        self.engine.listen(filter, options, now, &mut Lines(out))
    }

    /// Opens a subscription again whose stream broke.
    ///
    /// # Errors
    ///
    /// It is open, or over.
    pub fn relisten(
        &mut self,
        subscription: CallId,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<(), CallError> {
        self.engine.relisten(subscription, now, &mut Lines(out))
    }

    /// Sends a notification: `params` appends an object, or nothing. The only one of the specification is
    /// `notifications/roots/list_changed`, until 2025-11-25. Returns whether it was written: not before the
    /// server is ready.
    pub fn notify(&mut self, method: &str, out: &mut Vec<u8>, params: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.engine.notify(method, &mut Lines(out), params)
    }

    /// The stream ended. Calls fail one by one with [`CallError::Closed`] as
    /// [`handle_timeout`](Self::handle_timeout) is called; subscriptions, and calls that were never sent, wait
    /// for [`start`](Self::start) on a new stream.
    pub fn eof(&mut self) -> Option<Event<'static>> {
        self.engine.eof()
    }

    /// What is known of the server, once it is ready.
    #[must_use]
    pub fn server(&self) -> Option<&ServerFacts> {
        self.engine.server()
    }

    /// What was found out, to be given to [`ConfigBuilder::assume`](super::ConfigBuilder::assume) next time.
    #[must_use]
    pub const fn verdict(&self) -> Option<Verdict> {
        self.engine.verdict()
    }

    /// Whether a call or subscription is open.
    #[must_use]
    pub fn is_open(&self, call: CallId) -> bool {
        self.engine.is_open(call)
    }

    /// How many calls and subscriptions are open.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.engine.open_calls()
    }

    /// What the stream was configured with.
    #[must_use]
    pub const fn config(&self) -> &Arc<Config> {
        self.engine.config()
    }
}
