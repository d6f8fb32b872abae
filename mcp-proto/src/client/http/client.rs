//! The client of one server over HTTP.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::fields::Fields;
use super::reader::{Frame, Part, Reader};
use super::repair::Repair;
use super::request::{Request as HttpRequest, Token};
use super::resume::Resume;
use super::settings::Settings;
use super::traffic::{Asked, First, Out, Refusal, Role, Timer, Traffic, Transport};
use super::{Action, ExchangeId, Lost};
use crate::client::engine::Engine;
use crate::client::outbox::{Origin, Purpose};
use crate::client::request::Request;
use crate::client::{
    AskId, CallError, CallId, CallOptions, Config, Event, Parked, ServerFacts, Verdict, Violation,
    ViolationKind,
};
use crate::model::{InputResponse, InputResponses, SubscriptionFilter};
use crate::rpc::{self, Message, Parsed};
use crate::time::Instant;

/// A client of one server over Streamable HTTP, or over HTTP+SSE if the server knows nothing newer.
///
/// Its driver sends what the [`Action`]s say and hands back what comes:
///
/// ```text
///  Action::Open ──► send the request ──► head(status, headers) ──► Reader
///                                    body ──► Reader::next_frame ──► handle(frame) ──► Event
///                            end of the body ──► end(reader) ──► Event
///                        no response at all ──► lost(exchange)
///  Action::Close ──► drop the response, or the request if there is none yet
/// ```
///
/// What one can rely on:
///
/// - A frame is borrowed from its [`Reader`], which the driver owns; an event borrows the frame.
/// - One call yields at most one event. What is due besides waits, and [`next_deadline`](Self::next_deadline)
///   then says "now": so call [`handle_timeout`](Self::handle_timeout) until it returns `None` whenever that
///   moment has come.
/// - After `Close`, and for exchanges that are over, whatever is still handed in means nothing.
/// - Every request goes to the origin of the settings' URL. Credentials go nowhere else.
#[derive(Debug)]
pub struct Client {
    pub(super) engine: Engine,
    pub(super) traffic: Traffic,
    pub(super) repair: Repair,
    pub(super) backlog: VecDeque<Event<'static>>,
    /// Whether a modern server has answered as one.
    pub(super) is_confirmed: bool,
    /// Whether there was a stream of 2024-11-05, and how often another was tried.
    pub(super) has_stream: bool,
    pub(super) restart: Resume,
    /// How often in a row a session was over soon after its stream had begun.
    pub(super) renewals: Resume,
}

impl Client {
    /// For the server at the URL of the settings. Nothing is sent before [`start`](Self::start).
    #[must_use]
    pub fn new(config: Arc<Config>, settings: Settings) -> Self {
        let traffic = Traffic::new(settings, config.limits.clone());
        Self {
            engine: Engine::new(config, true),
            traffic,
            repair: Repair::default(),
            backlog: VecDeque::new(),
            is_confirmed: false,
            has_stream: false,
            restart: Resume::default(),
            renewals: Resume::default(),
        }
    }

    /// Begins: asks what the server speaks, unless that is known. Calls may be made before, and wait.
    pub fn start(&mut self, now: Instant, out: &mut Vec<Action>) -> Option<Event<'static>> {
        let Self { engine, traffic, .. } = self;
        engine.start(now, &mut Out { traffic, actions: out, now })
    }

    /// Makes a call. It waits if it is not known yet what the server speaks.
    ///
    /// # Errors
    ///
    /// The request cannot be made: it has no JSON form, the server does not offer it, or too many are open.
    pub fn call<R: Request>(
        &mut self,
        request: &R,
        options: &CallOptions,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> Result<CallId, CallError> {
        self.through(now, out, |engine, out| engine.call(request, options, now, out))
    }

    /// Gives up a call. Its response is closed, which tells a server of 2026-07-28; others are told by a
    /// notification. Whether it was open.
    pub fn cancel(
        &mut self,
        call: CallId,
        reason: Option<&str>,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> bool {
        self.traffic.tries.remove(&call);
        self.through(now, out, |engine, out| engine.cancel(call, reason, out))
    }

    /// Answers [`Event::InputRequired`]: the call goes on. See
    /// [`Connection::answer`](crate::client::Connection::answer).
    ///
    /// # Errors
    ///
    /// The call does not wait for input, or a question is not answered. It goes on waiting.
    pub fn answer(
        &mut self,
        call: CallId,
        responses: &InputResponses,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> Result<(), CallError> {
        self.through(now, out, |engine, out| engine.answer(call, responses, now, out))
    }

    /// Takes a call that waits for input, or that has become a task, out of the machine. See
    /// [`Connection::park`](crate::client::Connection::park).
    pub fn park(&mut self, call: CallId) -> Option<Parked> {
        self.engine.park(call)
    }

    /// Goes on with a call that was parked. See [`Connection::resume`](crate::client::Connection::resume).
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
        out: &mut Vec<Action>,
    ) -> Result<CallId, CallError> {
        self.through(now, out, |engine, out| engine.resume(parked, responses, options, now, out))
    }

    /// Answers [`Event::Asked`]. Returns whether anything was sent: the server may have taken the request
    /// back. See [`Connection::respond`](crate::client::Connection::respond).
    pub fn respond(
        &mut self,
        ask: AskId,
        answer: Result<InputResponse, rpc::Error>,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> bool {
        self.through(now, out, |engine, out| engine.respond(ask, answer, out))
    }

    /// Opens a subscription. See [`Connection::listen`](crate::client::Connection::listen).
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn listen(
        &mut self,
        filter: SubscriptionFilter,
        options: &CallOptions,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> Result<CallId, CallError> {
        self.through(now, out, |engine, out| engine.listen(filter, options, now, out))
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
        out: &mut Vec<Action>,
    ) -> Result<(), CallError> {
        self.through(now, out, |engine, out| engine.relisten(subscription, now, out))
    }

    /// Sends a notification. See [`Connection::notify`](crate::client::Connection::notify).
    pub fn notify(
        &mut self,
        method: &str,
        now: Instant,
        out: &mut Vec<Action>,
        params: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        self.through(now, out, |engine, out| engine.notify(method, out, params))
    }

    /// The response to an exchange begins. Its body is to be read with what is returned.
    pub fn head<F: Fields + ?Sized>(
        &mut self,
        exchange: ExchangeId,
        status: u16,
        fields: &F,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> Reader {
        let kind = self.begin(exchange, status, fields, now, out);
        if self.traffic.open.contains_key(&exchange) {
            let mut out = Out { traffic: &mut self.traffic, actions: out, now };
            out.passed(exchange);
        }
        Reader::new(exchange, kind, self.traffic.limits.max_message)
    }

    /// Takes a part of a body that its reader found.
    pub fn handle<'b>(&mut self, frame: Frame<'b>, now: Instant, out: &mut Vec<Action>) -> Option<Event<'b>> {
        let id = frame.exchange;
        let exchange = self.traffic.open.get_mut(&id)?;
        let is_success = exchange.is_success();
        match (&exchange.role, frame.content) {
            (Role::Events, Part::Endpoint(bytes)) => {
                self.endpoint(bytes, now, out);
                None
            }
            (Role::Request(asked), Part::Message(bytes) | Part::Other(bytes)) if !is_success => {
                let refusal = Refusal::read(bytes, asked.wire, &self.traffic.limits);
                exchange.refusal = Some(refusal);
                None
            }
            (Role::Request(_), Part::Other(bytes)) => {
                exchange.refusal = Some(Refusal::Text(super::refused::beginning(bytes)));
                None
            }
            (Role::Request(_), Part::TooLong(limit)) if !exchange.is_events => {
                exchange.refusal =
                    Some(Refusal::Text(alloc::format!("expected at most {limit} bytes, found more")));
                None
            }
            (Role::Request(_) | Role::Listen(_) | Role::Events, Part::TooLong(limit)) => {
                let detail = alloc::format!("expected a message of at most {limit} bytes, found more");
                Some(Event::violation(ViolationKind::Malformed, detail))
            }
            (Role::Request(_) | Role::Listen(_) | Role::Events, Part::Message(bytes)) => {
                self.message(id, bytes, now, out)
            }
            _ => None,
        }
    }

    /// Takes one message of an [`Event::Batch`], which came with this exchange. A body that is an array is over
    /// once each of its messages was taken.
    pub fn handle_member<'b>(
        &mut self,
        exchange: ExchangeId,
        message: &'b RawValue,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> Option<Event<'b>> {
        let event = self.member(exchange, message, now, out);
        if let Some(open) = self.traffic.open.get_mut(&exchange)
            && open.members > 0
        {
            open.members -= 1;
            if open.members == 0 {
                self.ended(exchange, "", None, Ok(()), now, out);
            }
        }
        event
    }

    fn member<'b>(
        &mut self,
        exchange: ExchangeId,
        message: &'b RawValue,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> Option<Event<'b>> {
        match rpc::parse(message.get().as_bytes(), &self.traffic.limits) {
            Ok(Parsed::Message(message)) => self.take(exchange, message, now, out),
            Ok(Parsed::Batch(_)) => {
                Some(Event::violation(ViolationKind::Batch, "expected a message, found an array in an array"))
            }
            Err(malformed) => {
                let origin = self.origin(exchange);
                Some(self.through(now, out, |engine, out| engine.malformed(malformed, origin, now, out)))
            }
        }
    }

    /// The body of a response has ended: as it should, or because something broke.
    pub fn end<'r>(
        &mut self,
        reader: &'r mut Reader,
        outcome: Result<(), Lost>,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> Option<Event<'r>> {
        let (exchange, last, retry) =
            (reader.exchange(), String::from(reader.last_event_id()), reader.retry());
        let frame = if outcome.is_ok() { reader.finish() } else { None };
        let event = frame.and_then(|frame| self.handle(frame, now, out));
        // The answer may be in an array whose messages are still to be taken.
        if self.traffic.open.get(&exchange).is_none_or(|open| open.members == 0) {
            self.ended(exchange, &last, retry, outcome, now, out);
        }
        event
    }

    /// There is no response: no connection, or it broke before the head was there.
    pub fn lost(&mut self, exchange: ExchangeId, lost: Lost, now: Instant, out: &mut Vec<Action>) {
        self.ended(exchange, "", None, Err(lost), now, out);
    }

    /// The moment at which to call [`handle_timeout`](Self::handle_timeout), if nothing happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        if !self.backlog.is_empty() {
            return Some(Instant::ZERO);
        }
        self.engine.next_deadline().into_iter().chain(self.traffic.next_deadline()).min()
    }

    /// Lets time pass. Call it until it returns `None`.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Action>) -> Option<Event<'static>> {
        if let Some(event) = self.backlog.pop_front() {
            return Some(event);
        }
        while let Some(timer) = self.traffic.due(now) {
            let mut out = Out { traffic: &mut self.traffic, actions: out, now };
            match timer {
                Timer::Close(id) => {
                    out.close(id);
                    out.leave();
                }
                Timer::Reopen(role) => out.take_up(*role),
                Timer::Release(generation) if generation == out.traffic.generation => out.release(),
                Timer::Release(_) => {}
                Timer::Start => {
                    let event = self.engine.start(now, &mut out);
                    self.backlog.extend(event);
                }
            }
        }
        let event = self.through(now, out, |engine, out| engine.handle_timeout(now, out));
        self.note_end(event.as_ref());
        event
    }

    /// The token that goes with requests from now on. What waited for one is sent again.
    pub fn authorize(&mut self, token: Token, now: Instant, out: &mut Vec<Action>) {
        self.traffic.settings.token = Some(token);
        self.engine.change_context();
        let parked = core::mem::take(&mut self.traffic.parked);
        let mut opening = false;
        for parked in parked {
            match &parked.role {
                Role::Request(Asked { purpose: Purpose::Probe | Purpose::Handshake, .. }) => {
                    opening = true;
                    continue;
                }
                Role::Request(asked) => self.engine.let_go(asked.wire, now),
                _ => {}
            }
            Out { traffic: &mut self.traffic, actions: out, now }.open(parked.role, parked.request, 0);
        }
        if opening {
            let event = self.through(now, out, |engine, out| engine.go_on(now, out));
            self.backlog.extend(event);
        }
    }

    /// There will be no token: what waits for one fails.
    pub fn decline(&mut self, now: Instant, out: &mut Vec<Action>) {
        for parked in core::mem::take(&mut self.traffic.parked) {
            let error = CallError::Unauthorized(alloc::boxed::Box::new(parked.why));
            self.come_to_nothing(parked.role, error, now, out);
        }
    }

    /// Ends it: whatever is open fails, and responses are closed. What the server is told and nobody waits for
    /// (notifications, answers, the end of a subscription) still gets there if it was sent; then a session is
    /// ended. That is over once [`is_closed`](Self::is_closed) says so, and takes no longer than twice the
    /// [`linger`](Settings::linger) of the settings.
    pub fn close(&mut self, now: Instant, out: &mut Vec<Action>) {
        if core::mem::replace(&mut self.traffic.is_closing, true) {
            return;
        }
        self.engine.end(&CallError::Closed);
        self.repair = Repair::default();
        let mut out = Out { traffic: &mut self.traffic, actions: out, now };
        out.traffic.keep_timers(|_| false);
        out.traffic.parked.clear();
        out.traffic.tries.clear();
        out.traffic.forget_gate();
        // 2024-11-05: without its stream there would be nobody to tell.
        let stream = out.traffic.stream();
        if let Some(stream) = stream.and_then(|id| out.traffic.open.get_mut(&id)) {
            stream.role = Role::Over;
        }
        let open: Vec<ExchangeId> =
            out.traffic.open.keys().copied().filter(|id| Some(*id) != stream).collect();
        for id in open {
            if out.traffic.is_told(id) {
                out.traffic.settle(id, now);
            } else {
                out.close(id);
            }
        }
        out.leave();
    }

    /// Whether [`close`](Self::close) was called and nothing is on its way any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.traffic.is_closing && self.traffic.open.is_empty()
    }

    /// Does something with the machine.
    pub(super) fn through<T>(
        &mut self,
        now: Instant,
        out: &mut Vec<Action>,
        use_it: impl FnOnce(&mut Engine, &mut Out<'_>) -> T,
    ) -> T {
        let Self { engine, traffic, .. } = self;
        use_it(engine, &mut Out { traffic, actions: out, now })
    }

    fn origin(&self, exchange: ExchangeId) -> Origin {
        match self.traffic.open.get(&exchange).map(|exchange| &exchange.role) {
            Some(Role::Request(asked)) => Origin::Response(asked.wire),
            _ => Origin::Shared,
        }
    }

    fn message<'b>(
        &mut self,
        id: ExchangeId,
        bytes: &'b [u8],
        now: Instant,
        out: &mut Vec<Action>,
    ) -> Option<Event<'b>> {
        match rpc::parse(bytes, &self.traffic.limits) {
            Ok(Parsed::Message(message)) => self.take(id, message, now, out),
            Ok(Parsed::Batch(batch)) => {
                if self.traffic.version.is_some_and(|version| version.has_batches()) {
                    if let Some(open) = self.traffic.open.get_mut(&id)
                        && matches!(open.role, Role::Request(_))
                        && !open.is_events
                    {
                        open.members = batch.len();
                    }
                    return Some(Event::Batch(batch));
                }
                Some(Event::violation(ViolationKind::Batch, "expected a message, found an array"))
            }
            Err(malformed) => {
                let exchange = self.traffic.open.get_mut(&id)?;
                if matches!(exchange.role, Role::Request(_)) && !exchange.is_events {
                    // The body was the answer.
                    exchange.refusal = Some(Refusal::Text(malformed.error.message.into_owned()));
                    return None;
                }
                let origin = self.origin(id);
                Some(self.through(now, out, |engine, out| engine.malformed(malformed, origin, now, out)))
            }
        }
    }

    /// Takes a message from where it came.
    pub(super) fn take<'b>(
        &mut self,
        id: ExchangeId,
        message: Message<'b>,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> Option<Event<'b>> {
        let origin = self.origin(id);
        let exchange = self.traffic.open.get_mut(&id)?;
        if let Role::Request(asked) = &exchange.role {
            let is_answer = match &message {
                Message::Result { id, .. } | Message::Error { id: Some(id), .. } => {
                    crate::client::engine::wire_of(id) == Some(asked.wire)
                }
                Message::Error { id: None, .. } => true,
                _ => false,
            };
            let (wire, is_modern) = (asked.wire, asked.version.is_modern());
            if exchange.answered && is_modern {
                let detail = "a message after the answer on the same response";
                return Some(Event::Violation(Violation::new(ViolationKind::Late, detail, None)));
            }
            if is_answer {
                exchange.answered = true;
                self.is_confirmed |= is_modern;
                self.traffic.linger(id, now);
                if self.repairs(id, &message, now, out) {
                    return None;
                }
                self.traffic.forget_wire(wire);
            }
        }
        let event = self.through(now, out, |engine, out| engine.handle(message, origin, now, out));
        self.note_end(event.as_ref());
        event
    }

    /// A call that is over is not tried again.
    pub(super) fn note_end(&mut self, event: Option<&Event<'_>>) {
        match event {
            Some(Event::Complete(completed)) => drop(self.traffic.tries.remove(&completed.call)),
            Some(Event::Failed { call, .. }) => drop(self.traffic.tries.remove(call)),
            _ => {}
        }
    }

    /// A request comes to nothing.
    pub(super) fn fail(
        &mut self,
        wire: i64,
        purpose: Purpose,
        error: CallError,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        let event = match purpose {
            Purpose::Probe | Purpose::Handshake => {
                // A server that is started again cannot be reached for a while.
                let may_pass =
                    matches!(error, CallError::Lost(_) | CallError::Http { status: 429 | 500..=599, .. });
                if may_pass && self.start_later(now) {
                    return;
                }
                Some(self.engine.give_up(error))
            }
            _ => self.through(now, out, |engine, out| engine.fail_wire(wire, error, now, out)),
        };
        self.note_end(event.as_ref());
        self.backlog.extend(event);
    }

    /// 2024-11-05: the server says where messages go. It must be the same server.
    fn endpoint(&mut self, bytes: &[u8], now: Instant, out: &mut Vec<Action>) {
        let settings = &self.traffic.settings;
        let found = core::str::from_utf8(bytes)
            .ok()
            .and_then(|text| settings.url.join(text.trim()).ok())
            .filter(|url| url.is_same_origin(&settings.url));
        let Transport::Events { endpoint, first, stream } = &mut self.traffic.transport else { return };
        if endpoint.is_some() {
            return;
        }
        let stream = *stream;
        let Some(first) = first.take() else { return };
        let First { asked, body, .. } = *first;
        match found {
            Some(url) => {
                let request = HttpRequest::post(&url, &body);
                *endpoint = Some(url);
                self.restart.opened(now);
                Out { traffic: &mut self.traffic, actions: out, now }.open(Role::Request(asked), request, 0);
            }
            None => {
                let found = super::refused::beginning(bytes);
                let error = CallError::Malformed(alloc::format!(
                    "expected an `endpoint` of the same origin as {}, found {found:?}",
                    self.traffic.settings.url
                ));
                Out { traffic: &mut self.traffic, actions: out, now }.close(stream);
                self.fail(asked.wire, asked.purpose, error, now, out);
            }
        }
    }

    /// What is known of the server; `None` before [`Event::Ready`].
    #[must_use]
    pub fn server(&self) -> Option<&ServerFacts> {
        self.engine.server()
    }

    /// What is to be remembered of the origin, to be given to
    /// [`ConfigBuilder::assume`](crate::client::ConfigBuilder::assume) next time.
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

    /// What the client was configured with.
    #[must_use]
    pub const fn config(&self) -> &Arc<Config> {
        self.engine.config()
    }
}
