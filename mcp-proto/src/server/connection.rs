//! One byte stream: what may happen on it, in both eras at once.

mod admit;
mod ask;
mod listen;
mod task;

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use serde_json::value::RawValue;

pub use self::ask::AskError;
use self::task::TaskLink;
use super::batch::Batches;
use super::channel::{Channel, Log, Progress, sealed, write_progress};
use super::config::Config;
use super::event::{Answer, Event, Notice, Violation};
use super::inflight::{InFlight, Kind, Slot};
use super::legacy::{Session, write_cancelled};
use super::pending::{AskKey, Delivery, Pending, RequestKey};
use super::route::{End, Mark, Routes};
use crate::model::method;
use crate::model::{Implementation, InputRequired, ProtocolVersion};
use crate::rpc::{self, Error, Malformed, Message, Params, Parsed, RequestId};
use crate::time::Instant;

/// The server's side of one byte stream.
///
/// Requests of 2026-07-28 and a legacy session may share the stream: the era is decided for each message.
/// [spec: basic/versioning#dual-era]
///
/// ```text
///   frame ──► handle ──► Event::Request ──► your handler ──► respond / fail / require_input ──► out
///                │  └──► answered here: initialize, discover, ping, setLevel, all refusals ──► out
///                └─────► Event::Cancelled, Event::Answer, …
/// ```
///
/// Every call is complete: what it causes is in its return value and in `out`. The one exception is
/// [`publish`](Self::publish), which only marks; write the marks with
/// [`flush_subscriptions`](Self::flush_subscriptions) when the stream can take them.
#[derive(Debug)]
pub struct Connection {
    config: Arc<Config>,
    number: u32,
    inflight: InFlight,
    listens: usize,
    session: Option<Session>,
    batches: Batches,
    pub(crate) routes: Routes,
    /// The 2025-11-25 requests that have become tasks.
    tasks: BTreeMap<RequestKey, TaskLink>,
    /// Parked calls that can go on at once.
    ready: VecDeque<RequestKey>,
    any_due: bool,
    closed: bool,
    input_ended: bool,
    /// Whether there is no handshake here: every request says of itself what it needs.
    modern: bool,
}

/// Tells connections apart, so that a key of one finds nothing in another.
static NEXT: AtomicU32 = AtomicU32::new(1);

impl Connection {
    /// A fresh stream.
    #[must_use]
    pub fn new(config: Arc<Config>) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            config,
            number,
            inflight: InFlight::new(number),
            listens: 0,
            session: None,
            batches: Batches::default(),
            routes: Routes::default(),
            tasks: BTreeMap::new(),
            ready: VecDeque::new(),
            any_due: false,
            closed: false,
            input_ended: false,
            modern: false,
        }
    }

    /// One POST of 2026-07-28: no handshake, and what is written belongs to its response.
    pub(crate) fn modern(config: Arc<Config>) -> Self {
        let mut connection = Self::new(config);
        connection.modern = true;
        connection.routes.turn_on();
        connection
    }

    /// A legacy session over HTTP: what is written is noted by stream.
    pub(crate) fn routed(config: Arc<Config>) -> Self {
        let mut connection = Self::new(config);
        connection.routes.turn_on();
        connection
    }

    /// Takes one frame: at most one event comes back, and every byte that is due without you is in `out`.
    pub fn handle<'b>(&mut self, frame: &'b [u8], now: Instant, out: &mut Vec<u8>) -> Option<Event<'b>> {
        self.batches.give_up(&mut self.routes, out);
        match rpc::parse(frame, &self.config.limits) {
            Ok(parsed) => self.take_parsed(parsed, now, out),
            Err(malformed) => Some(self.malformed(malformed, out)),
        }
    }

    /// [`handle`](Self::handle) for a frame that was parsed already.
    pub(crate) fn take_parsed<'b>(
        &mut self,
        parsed: Parsed<'b>,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<Event<'b>> {
        self.batches.give_up(&mut self.routes, out);
        match parsed {
            Parsed::Message(message) => self.message(message, now, out),
            Parsed::Batch(batch) => self.batch(batch, out),
        }
    }

    /// Takes the messages out of `lines`, each without its newline, and says where it belongs.
    pub(crate) fn drain(&mut self, lines: &mut Vec<u8>, mut message: impl FnMut(&[u8], Mark)) {
        let mut at = 0;
        while let Some(mark) = self.routes.next() {
            let line = lines.get(at..at + mark.len).unwrap_or_default();
            at += mark.len;
            message(line.strip_suffix(b"\n").unwrap_or(line), mark);
        }
        lines.clear();
    }

    /// What [`drain`](Self::drain) would hand over, without a copy, if that is the last message of a request alone.
    #[cfg(feature = "service")]
    pub(crate) fn drain_sole(&mut self, lines: &mut Vec<u8>) -> Option<(Vec<u8>, End)> {
        let end = self.routes.take_sole_end()?;
        let mut text = core::mem::take(lines);
        text.pop_if(|last| *last == b'\n');
        Some((text, end))
    }

    /// Ends whatever is open, without an answer; names the request, if there was one.
    pub(crate) fn forget_any(&mut self) -> Option<RequestKey> {
        let key = self.inflight.keys().next()?;
        self.forget(key, &mut Vec::new());
        Some(key)
    }

    /// Ends all that is open, without an answer, and what was written but not [taken](Self::drain).
    #[cfg(feature = "service")]
    pub(crate) fn forget_all(&mut self) {
        while self.forget_any().is_some() {}
        self.drain(&mut Vec::new(), |_, _| ());
    }

    /// Takes one message of [`Event::Batch`]. Hand over all of them, in order: the answers leave as one
    /// array when the last is there. The next [`handle`](Self::handle) ends what was not handed over.
    pub fn handle_member<'b>(
        &mut self,
        message: &'b RawValue,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<Event<'b>> {
        let event = match rpc::parse(message.get().as_bytes(), &self.config.limits) {
            Ok(Parsed::Message(message)) => self.message(message, now, out),
            Ok(Parsed::Batch(_)) => {
                let error = Error::invalid_request("Invalid request: a batch inside a batch");
                Some(self.reject(None, error, out))
            }
            Err(malformed) => Some(self.malformed(malformed, out)),
        };
        self.batches.member_read(&mut self.routes, out);
        event
    }

    /// The moment at which to call [`handle_timeout`](Self::handle_timeout), if nothing happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        // What is ready, and questions whose time has not begun, want a look at the clock now.
        if !self.ready.is_empty() || self.session.as_ref().is_some_and(Session::waits_for_clock) {
            return Some(Instant::ZERO);
        }
        let request = self.inflight.next_deadline().map(|(at, _)| at);
        let ask = self.session.as_ref().and_then(Session::next_deadline);
        request.into_iter().chain(ask).min()
    }

    /// Lets time pass. Call it until it returns `None`.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Event<'static>> {
        while let Some(key) = self.ready.pop_front() {
            if let Some(slot) = self.inflight.get(key)
                && let Kind::Bridged(parked) = &slot.kind
            {
                return Some(Event::Resumed(parked.resume(key, slot.version, slot.features)));
            }
        }
        if let Some((deadline, key)) = self.inflight.next_deadline()
            && deadline <= now
        {
            let error = Error::new(rpc::code::INTERNAL_ERROR, "Request timed out");
            let _ = self.fail(Pending::<method::CallTool>::new(key), &error, out);
            return Some(Event::TimedOut { key });
        }
        let session = self.session.as_mut()?;
        session.start_clocks(now, self.config.limits.client_request_timeout);
        let (number, ask) = session.expire(now)?;
        // Where it was asked.
        let stream = ask.request.and_then(|key| self.inflight.get(key)).map(|slot| slot.stream);
        self.routes.line(out, stream, |out| write_cancelled(out, number, "timed out"));
        let error = Error::new(rpc::code::INTERNAL_ERROR, "The client did not answer in time");
        match (ask.bridge, ask.request) {
            (Some(_), Some(key)) => {
                let _ = self.fail(Pending::<method::CallTool>::new(key), &error, out);
                Some(Event::TimedOut { key })
            }
            (_, request) => Some(Event::Answer(Answer {
                ask: AskKey { connection: self.number, number },
                request,
                outcome: Err(error),
            })),
        }
    }

    /// Tells a legacy client that what it was sent to by URL is done. Discarded in every other revision.
    /// [spec: 2025-11-25 client/elicitation]
    pub fn elicitation_complete(&mut self, elicitation_id: &str, out: &mut Vec<u8>) -> Delivery {
        if !self.session.as_ref().is_some_and(|s| s.version.has_elicitation_ids()) {
            return Delivery::Discarded;
        }
        self.notify("notifications/elicitation/complete", out, |out| {
            out.extend_from_slice(b"{\"elicitationId\":");
            rpc::write_str(out, elicitation_id);
            out.push(b'}');
        })
    }

    /// Sends a notification to a legacy client: `params` appends an object, or nothing. Discarded if there
    /// is no legacy client: 2026-07-28 has no notifications outside of requests and subscriptions.
    pub fn notify(&mut self, method: &str, out: &mut Vec<u8>, params: impl FnOnce(&mut Vec<u8>)) -> Delivery {
        if self.session.is_none() {
            return Delivery::Discarded;
        }
        self.routes.line(out, None, |out| rpc::write_notification(out, method, params));
        Delivery::Written
    }

    /// Logs outside of any request. Only a legacy client can hear it, at its level.
    pub fn log_session(&mut self, log: Log<'_>, out: &mut Vec<u8>) -> Delivery {
        self.log_legacy(log, None, None, out)
    }

    /// Logs towards a legacy client, in the course of what came on `stream`, or of a task.
    fn log_legacy(
        &mut self,
        log: Log<'_>,
        stream: Option<u64>,
        task: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Delivery {
        let threshold = self.config.default_log_level;
        match &self.session {
            Some(session)
                if self.config.gates().logging && log.level >= session.log_level.unwrap_or(threshold) =>
            {
                self.routes.line(out, stream, |out| log.write(task, out));
                if let Some(task) = task {
                    self.routes.tag(task, false);
                }
                Delivery::Written
            }
            _ => Delivery::Discarded,
        }
    }

    /// Tells the peer that a line above [`Limits::max_message`](crate::limits::Limits::max_message) was
    /// skipped, where its revision has a form for that.
    pub fn refuse_oversized(&mut self, out: &mut Vec<u8>) -> Event<'static> {
        let most = self.config.limits.max_message;
        let error = Error::invalid_request(alloc::format!("Invalid request: longer than {most} bytes"));
        self.reject(None, error, out)
    }

    /// Gives up a request whose right to answer was lost, as when a handler panicked: answers `-32603`.
    pub fn abandon(&mut self, key: RequestKey, out: &mut Vec<u8>) -> Delivery {
        self.fail(Pending::<method::CallTool>::new(key), &Error::internal(), out)
    }

    /// A number that no other stream of this process has.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether a request is open, or its task is, and its client wants to hear of progress.
    #[cfg(feature = "service")]
    pub(crate) fn wants_progress(&self, key: RequestKey) -> bool {
        match self.inflight.get(key) {
            Some(slot) => slot.progress_token.is_some(),
            None => self.tasks.get(&key).is_some_and(|task| task.progress_token.is_some()),
        }
    }

    /// How many requests are open, subscriptions included.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.inflight.len()
    }

    /// How many subscriptions are open.
    #[must_use]
    pub const fn subscriptions(&self) -> usize {
        self.listens
    }

    /// Whether the request is still open: an answer would be delivered.
    #[must_use]
    pub fn is_open(&self, key: RequestKey) -> bool {
        self.inflight.get(key).is_some()
    }

    /// The revision that the handshake settled, if there was one.
    #[must_use]
    pub fn session_version(&self) -> Option<ProtocolVersion> {
        self.session.as_ref().map(|s| s.version)
    }

    /// Who the legacy client says it is.
    #[must_use]
    pub fn session_client(&self) -> Option<&Implementation> {
        self.session.as_ref().map(|s| &s.client)
    }

    /// What the stream was configured with.
    #[must_use]
    pub const fn config(&self) -> &Arc<Config> {
        &self.config
    }

    fn message<'b>(&mut self, message: Message<'b>, now: Instant, out: &mut Vec<u8>) -> Option<Event<'b>> {
        match message {
            Message::Request { id, method, params } => self.request(id, method, params, now, out),
            Message::Notification { method, params } => self.notification(method, params, out),
            Message::Result { id, result } => self.response(Some(id), Ok(result), out),
            Message::Error { id, error } => self.response(id, Err(error), out),
        }
    }

    fn malformed(&mut self, malformed: Malformed, out: &mut Vec<u8>) -> Event<'static> {
        let Malformed { id, error, is_response, .. } = malformed;
        if is_response {
            return Event::Rejected(Violation { error, id, answered: false });
        }
        self.reject(id, error, out)
    }

    /// Tells the peer, where its revision has a form for it: an error without an id exists since
    /// 2025-11-25 only.
    fn reject(&mut self, id: Option<RequestId>, error: Error, out: &mut Vec<u8>) -> Event<'static> {
        let answered = id.is_some() || self.session_version().is_none_or(|v| v.allows_error_without_id());
        if answered {
            let batch = self.batches.current();
            let stream = self.routes.current();
            self.batches.answer(batch, stream, &mut self.routes, out, |out| {
                rpc::write_error(out, id.as_ref(), &error);
                End::Refused(error.code)
            });
        }
        // One that is too long is not for logs either.
        let id = id.filter(|id| !id.is_longer_than(self.config.limits.max_id));
        Event::Rejected(Violation { error, id, answered })
    }

    fn batch<'b>(&mut self, batch: rpc::Batch<'b>, out: &mut Vec<u8>) -> Option<Event<'b>> {
        if !self.session_version().is_some_and(ProtocolVersion::has_batches) {
            let error = Error::invalid_request("Invalid request: this revision has no batches");
            return Some(self.reject(None, error, out));
        }
        self.batches.begin(batch.len(), &mut self.routes, out);
        Some(Event::Batch(batch))
    }

    fn notification<'b>(
        &mut self,
        method: Cow<'b, str>,
        params: Params<'b>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'b>> {
        match &*method {
            "notifications/cancelled" => self.cancelled(&params, out),
            "notifications/initialized" if self.session.is_some() => {
                self.session.iter_mut().for_each(|session| session.initialized = true);
                Some(Event::Initialized)
            }
            _ => Some(Event::Notification(Notice { method, params })),
        }
    }

    /// Malformed and unknown cancellations are ignored. [spec: basic/patterns/cancellation]
    fn cancelled<'b>(&mut self, params: &Params<'b>, out: &mut Vec<u8>) -> Option<Event<'b>> {
        params.check().ok()?;
        let members = params.members();
        let id = RequestId::parse(members.get("requestId")?.get(), self.config.limits.max_id)?;
        let key = self.inflight.find(&id)?;
        let reason = members.text("reason").ok().flatten();
        self.forget(key, out);
        Some(Event::Cancelled { key, reason })
    }

    /// Ends a request without an answer.
    fn forget(&mut self, key: RequestKey, out: &mut Vec<u8>) {
        if let Some(slot) = self.take(key, out) {
            self.batches.closed(slot.batch, &mut self.routes, out);
            if slot.batch.is_none() {
                self.routes.end(slot.stream);
            }
        }
    }

    /// Takes a request out of the table, and back what was asked in the course of it.
    fn take(&mut self, key: RequestKey, out: &mut Vec<u8>) -> Option<Slot> {
        let slot = self.inflight.remove(key)?;
        if matches!(slot.kind, Kind::Listen(_)) {
            self.listens -= 1;
        }
        if let Some(session) = &mut self.session {
            session.withdraw(key, |number| {
                let stream = Some(slot.stream);
                self.routes.line(out, stream, |out| write_cancelled(out, number, "the call is over"));
            });
        }
        Some(slot)
    }
}

impl sealed::Sealed for Connection {
    fn slot(&self, key: RequestKey) -> Option<&Slot> {
        self.inflight.get(key)
    }

    fn finish(
        &mut self,
        key: RequestKey,
        granted: bool,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>, &Slot, &Config) -> End,
    ) -> Delivery {
        let Some(slot) = self.take(key, out) else { return Delivery::Discarded };
        let (config, routes) = (&self.config, &mut self.routes);
        self.batches.answer(slot.batch, slot.stream, routes, out, |out| write(out, &slot, config));
        self.batches.closed(slot.batch, routes, out);
        if let (Kind::Subscribe { uri, on }, true, Some(session)) = (slot.kind, granted, &mut self.session) {
            if on {
                session.listen.subscribe(&uri);
            } else {
                session.listen.unsubscribe(&uri);
            }
        }
        Delivery::Written
    }

    fn begin_task(&mut self, key: RequestKey, task: &[u8]) {
        self.link_task(key, task);
    }

    fn bridge(&mut self, key: RequestKey, input: &InputRequired, out: &mut Vec<u8>) -> Delivery {
        self.ask_round(key, input, out)
    }
}

impl Channel for Connection {
    fn progress_of(&mut self, key: RequestKey, progress: Progress<'_>, out: &mut Vec<u8>) -> Delivery {
        let Some(slot) = self.inflight.get_mut(key) else { return self.task_progress(key, progress, out) };
        let stream = Some(slot.stream);
        let written = self.routes.line_if(out, stream, |out| {
            let token = slot.progress_token.as_ref();
            write_progress(out, slot.version, None, token, &mut slot.progress, progress).is_written()
        });
        if written { Delivery::Written } else { Delivery::Discarded }
    }

    fn log_of(&mut self, key: RequestKey, log: Log<'_>, out: &mut Vec<u8>) -> Delivery {
        let Some(slot) = self.inflight.get(key) else { return self.task_log(key, log, out) };
        if !slot.version.is_modern() {
            let stream = slot.stream;
            return self.log_legacy(log, Some(stream), None, out);
        }
        // Without a level on this request nothing is sent. [spec: server/utilities/logging]
        let wanted = slot.log_level.is_some_and(|least| log.level >= least);
        if !wanted || !self.config.gates().logging {
            return Delivery::Discarded;
        }
        self.routes.line(out, Some(slot.stream), |out| log.write(None, out));
        Delivery::Written
    }
}
