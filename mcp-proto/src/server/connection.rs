//! One byte stream: what may happen on it, in both eras at once.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use serde_json::value::RawValue;

use super::batch::Batches;
use super::channel::{Channel, Log, Progress, sealed, write_progress, write_result};
use super::config::Config;
use super::event::{Answer, Event, Incoming, Notice, Violation};
use super::features::ClientFeatures;
use super::inflight::{InFlight, Kind, Slot};
use super::legacy::{Ask, Parked, Session, unsupported_version, write_cancelled};
use super::pending::{AskKey, Delivery, Pending, RequestKey};
use super::subscription::{Change, Listen, write_tag};
use crate::codec::Wrap;
use crate::model::LoggingLevel;
use crate::model::meta::key as meta_key;
use crate::model::method::{self, ServerMethod, decode_level};
use crate::model::{Implementation, InputRequest, InputRequired, ProtocolVersion, SubscriptionFilter};
use crate::rpc::{self, Error, Malformed, Message, Params, Parsed, RequestId, str_from_json};
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
    /// Parked calls that can go on at once.
    ready: VecDeque<RequestKey>,
    any_due: bool,
    closed: bool,
    input_ended: bool,
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
            ready: VecDeque::new(),
            any_due: false,
            closed: false,
            input_ended: false,
        }
    }

    /// Takes one frame: at most one event comes back, and every byte that is due without you is in `out`.
    pub fn handle<'b>(&mut self, frame: &'b [u8], now: Instant, out: &mut Vec<u8>) -> Option<Event<'b>> {
        self.batches.give_up(out);
        match rpc::parse(frame, &self.config.limits) {
            Ok(Parsed::Message(message)) => self.message(message, now, out),
            Ok(Parsed::Batch(batch)) => self.batch(batch, out),
            Err(malformed) => Some(self.malformed(malformed, out)),
        }
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
        self.batches.member_read(out);
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
        let mut expired = None;
        let mark = out.len();
        Wrap::Line.write(out, |out| expired = session.expire(now, out));
        let Some((number, ask)) = expired else {
            out.truncate(mark);
            return None;
        };
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

    /// Marks a change for every subscriber on this stream that wants it. Nothing is written yet. Whether
    /// there is now something to [flush](Self::flush_subscriptions).
    pub fn publish(&mut self, change: &Change<'_>) -> bool {
        if self.listens > 0 {
            for slot in self.inflight.slots_mut() {
                if let Kind::Listen(listen) = &mut slot.kind {
                    self.any_due |= listen.mark(change);
                }
            }
        }
        if let Some(session) = &mut self.session {
            self.any_due |= session.listen.mark(change);
        }
        self.any_due
    }

    /// Writes the changes that were marked, each once however often it was published.
    pub fn flush_subscriptions(&mut self, out: &mut Vec<u8>) {
        if !core::mem::take(&mut self.any_due) {
            return;
        }
        for Slot { id, kind, .. } in self.inflight.slots_mut() {
            if let Kind::Listen(listen) = kind {
                listen.flush(Some(id), |write| Wrap::Line.write(out, |out| write(out)));
            }
        }
        if let Some(session) = &mut self.session {
            session.listen.flush(None, |write| Wrap::Line.write(out, |out| write(out)));
        }
    }

    /// Opens a subscription: acknowledges the part of the filter that is honored, and from then on writes
    /// what changes. It is registered before the acknowledgment is written, so nothing falls between.
    /// [spec: basic/patterns/subscriptions]
    pub fn acknowledge(
        &mut self,
        pending: Pending<method::Listen>,
        honored: &SubscriptionFilter,
        out: &mut Vec<u8>,
    ) -> Delivery {
        let limits = &self.config.limits;
        let uris = honored.resource_subscriptions.len() + honored.task_ids.len();
        let refusal = if self.closed {
            Some(Error::new(rpc::code::INTERNAL_ERROR, "The server is closing"))
        } else if self.listens >= limits.max_listens {
            Some(Error::new(rpc::code::INTERNAL_ERROR, "Too many subscriptions are open"))
        } else if uris > limits.max_subscribed_uris {
            Some(Error::invalid_params("Too many resources in one subscription"))
        } else {
            None
        };
        if let Some(error) = refusal {
            return self.fail(pending, &error, out);
        }
        let Some(slot) = self.inflight.get_mut(pending.key) else { return Delivery::Discarded };
        slot.kind = Kind::Listen(Box::new(Listen::new(honored)));
        self.listens += 1;
        let id = &slot.id;
        Wrap::Line.write(out, |out| {
            rpc::write_notification(out, "notifications/subscriptions/acknowledged", |out| {
                out.push(b'{');
                write_tag(out, id);
                out.extend_from_slice(b",\"notifications\":");
                super::config::write_or_empty(out, ProtocolVersion::LATEST, honored);
                out.push(b'}');
            });
        });
        Delivery::Written
    }

    /// Asks a legacy client something in the course of a call. The answer comes as [`Event::Answer`]; it
    /// is withdrawn if the call ends before.
    ///
    /// # Errors
    ///
    /// See [`AskError`].
    pub fn ask(
        &mut self,
        request: RequestKey,
        question: &InputRequest,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<AskKey, AskError> {
        let slot = self.inflight.get(request).ok_or(AskError::RequestOver)?;
        if slot.version.is_modern() {
            return Err(AskError::Modern);
        }
        if let Some(required) = slot.features.missing(question) {
            return Err(AskError::MissingCapability(required));
        }
        self.ask_session(Some(request), question, now, out)
    }

    /// Asks a legacy client something outside of any call, once [`Event::Initialized`] was there.
    ///
    /// # Errors
    ///
    /// See [`AskError`].
    pub fn ask_client(
        &mut self,
        question: &InputRequest,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<AskKey, AskError> {
        let session = self.session.as_ref().ok_or(AskError::Modern)?;
        if !session.initialized {
            return Err(AskError::TooEarly);
        }
        if let Some(required) = session.features.missing(question) {
            return Err(AskError::MissingCapability(required));
        }
        self.ask_session(None, question, now, out)
    }

    /// Asks a legacy client something in the course of a core task, which it is tied to by its id. The
    /// request that made the task is answered already.
    /// [spec: 2025-11-25 basic/utilities/tasks]
    ///
    /// # Errors
    ///
    /// See [`AskError`].
    pub fn ask_for_task(
        &mut self,
        question: &InputRequest,
        task: &str,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<AskKey, AskError> {
        let deadline = self.config.limits.client_request_timeout.map(|t| now + t);
        let session = self.session_for_ask()?;
        if let Some(required) = session.features.missing(question) {
            return Err(AskError::MissingCapability(required));
        }
        if !session.expresses(question) {
            return Err(AskError::Inexpressible);
        }
        let mut number = 0;
        Wrap::Line.write(out, |out| {
            number = session.ask(Ask::new(None, deadline), question, Some(task), out);
        });
        Ok(AskKey { connection: self.number, number })
    }

    /// Asks a legacy client whether it is still there.
    ///
    /// # Errors
    ///
    /// See [`AskError`].
    pub fn ping(&mut self, now: Instant, out: &mut Vec<u8>) -> Result<AskKey, AskError> {
        let deadline = self.config.limits.client_request_timeout.map(|t| now + t);
        let session = self.session_for_ask()?;
        let mut number = 0;
        Wrap::Line.write(out, |out| number = session.ping(deadline, out));
        Ok(AskKey { connection: self.number, number })
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
        Wrap::Line.write(out, |out| rpc::write_notification(out, method, params));
        Delivery::Written
    }

    /// Logs outside of any request. Only a legacy client can hear it, at its level.
    pub fn log_session(&mut self, log: Log<'_>, out: &mut Vec<u8>) -> Delivery {
        let threshold = self.config.default_log_level;
        match &self.session {
            Some(session)
                if self.config.gates().logging && log.level >= session.log_level.unwrap_or(threshold) =>
            {
                Wrap::Line.write(out, |out| log.write(out));
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

    /// Ends all subscriptions gracefully: each gets `notifications/cancelled` and then its result.
    /// Open calls go on. [spec: basic/patterns/subscriptions#ending, basic/patterns/cancellation]
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.closed = true;
        self.flush_subscriptions(out);
        let listens: Vec<_> = self
            .inflight
            .keys()
            .filter(|key| matches!(self.inflight.get(*key).map(|s| &s.kind), Some(Kind::Listen(_))))
            .collect();
        for key in listens {
            if let Some(slot) = self.inflight.get(key) {
                Wrap::Line.write(out, |out| {
                    rpc::write_notification(out, "notifications/cancelled", |out| {
                        out.extend_from_slice(b"{\"requestId\":");
                        slot.id.write(out);
                        out.extend_from_slice(b",\"reason\":\"the server is closing\"}");
                    });
                });
            }
            let _ = sealed::Sealed::finish(self, key, true, out, |out, slot, config| {
                out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                slot.id.write(out);
                out.extend_from_slice(b",\"result\":{\"resultType\":\"complete\",");
                out.extend_from_slice(&config.modern_meta);
                out.extend_from_slice(b",\"io.modelcontextprotocol/subscriptionId\":");
                slot.id.write(out);
                out.extend_from_slice(b"}}}");
            });
        }
    }

    /// A number that no other stream of this process has.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// No more frames will come: [closes](Self::close), and gives up what the client was asked, for no
    /// answer can come. Calls whose questions the machine asked end with an error; others go on.
    pub fn end_of_input(&mut self, out: &mut Vec<u8>) {
        self.close(out);
        self.input_ended = true;
        let Some(session) = &mut self.session else { return };
        for ask in session.forget_asks() {
            if let (Some(_), Some(key)) = (ask.bridge, ask.request) {
                let error = Error::new(rpc::code::INTERNAL_ERROR, "The client is gone");
                let _ = self.fail(Pending::<method::CallTool>::new(key), &error, out);
            }
        }
    }

    /// Whether a request is open and its client wants to hear of progress.
    #[cfg(feature = "service")]
    pub(crate) fn wants_progress(&self, key: RequestKey) -> bool {
        self.inflight.get(key).is_some_and(|slot| slot.progress_token.is_some())
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
            self.batches.answer(batch, out, |out| rpc::write_error(out, id.as_ref(), &error));
        }
        Event::Rejected(Violation { error, id, answered })
    }

    fn batch<'b>(&mut self, batch: rpc::Batch<'b>, out: &mut Vec<u8>) -> Option<Event<'b>> {
        if !self.session_version().is_some_and(ProtocolVersion::has_batches) {
            let error = Error::invalid_request("Invalid request: this revision has no batches");
            return Some(self.reject(None, error, out));
        }
        self.batches.begin(batch.len(), out);
        Some(Event::Batch(batch))
    }

    fn request<'b>(
        &mut self,
        id: RequestId,
        method: Cow<'b, str>,
        params: Params<'b>,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<Event<'b>> {
        let known = ServerMethod::parse(&method);
        // A server of handshakes only does not know what the stamp means.
        let stamped = self.config.is_modern() && params.meta().get(meta_key::PROTOCOL_VERSION).is_some();
        let admitted = if stamped {
            self.admit_modern(&params)
        } else if known == Some(ServerMethod::Initialize) {
            return self.initialize(id, &params, out);
        } else {
            self.admit_legacy(known, &params)
        };
        let (version, features) = match admitted {
            Ok(admitted) => admitted,
            Err(error) => return Some(self.reject(Some(id), error, out)),
        };
        if version.is_modern() && self.batches.current().is_some() {
            let error = Error::invalid_request("Invalid request: its revision has no batches");
            return Some(self.reject(Some(id), error, out));
        }
        if known.is_some_and(|known| !self.config.offers(version, known)) {
            return Some(self.reject(Some(id), Error::method_not_found(&method), out));
        }
        if let Err(error) = params.check() {
            return Some(self.reject(Some(id), error, out));
        }
        if self.inflight.find(&id).is_some() {
            let error =
                Error::invalid_request("Invalid request: the id belongs to a request that is still open");
            return Some(self.reject(Some(id), error, out));
        }
        if let Some(known) = known
            && let Some(answer) = self.answer_here(known, version, &params)
        {
            return match answer {
                Ok(body) => {
                    let slot = self.slot_of(id, version, features, &params, None);
                    self.batches.answer(slot.batch, out, |out| {
                        write_result_of_machine(out, &slot, &self.config, body);
                    });
                    None
                }
                Err(error) => Some(self.reject(Some(id), error, out)),
            };
        }
        if self.inflight.len() - self.listens >= self.config.limits.max_in_flight {
            let error =
                Error::new(rpc::code::INTERNAL_ERROR, "Too many requests are open on this connection");
            return Some(self.reject(Some(id), error, out));
        }
        if known == Some(ServerMethod::Listen) && self.closed {
            let error = Error::new(rpc::code::INTERNAL_ERROR, "The server is closing");
            return Some(self.reject(Some(id), error, out));
        }
        let kind = match self.kind_of(known, version, &params) {
            Ok(kind) => kind,
            Err(error) => return Some(self.reject(Some(id), error, out)),
        };
        // A subscription is meant to stay open.
        let timeout = self.config.limits.request_timeout.filter(|_| known != Some(ServerMethod::Listen));
        let mut slot = self.slot_of(id, version, features, &params, timeout.map(|t| now + t));
        slot.kind = kind;
        self.batches.opened(slot.batch);
        let key = self.inflight.insert(slot);
        Some(Event::Request(Incoming { pending: Pending::new(key), method, params, version, features }))
    }

    /// What 2026-07-28 demands of every request. [spec: basic#meta]
    fn admit_modern(&self, params: &Params<'_>) -> Result<(ProtocolVersion, ClientFeatures), Error> {
        params.check()?;
        let meta = params.meta();
        let missing = |name: &str, expected: &str| {
            Error::invalid_params(alloc::format!(
                "Invalid params at /params/_meta/{}: expected {expected}",
                name.replace('/', "~1")
            ))
        };
        let version = meta
            .get(meta_key::PROTOCOL_VERSION)
            .and_then(|raw| str_from_json(raw.get()))
            .ok_or_else(|| missing(meta_key::PROTOCOL_VERSION, "a string"))?;
        let features = meta
            .get(meta_key::CLIENT_CAPABILITIES)
            .filter(|raw| raw.get().starts_with('{'))
            .and_then(|raw| ClientFeatures::from_json(raw.get()))
            .ok_or_else(|| missing(meta_key::CLIENT_CAPABILITIES, "an object"))?;
        if let Some(level) = meta.get(meta_key::LOG_LEVEL)
            && level.get() != "null"
            && str_from_json(level.get()).and_then(|level| LoggingLevel::parse(&level)).is_none()
        {
            return Err(missing(meta_key::LOG_LEVEL, "a logging level such as \"info\""));
        }
        match self.config.served(&version) {
            Some(served) if served.is_modern() => Ok((served, features)),
            _ => Err(unsupported_version(&self.config, ProtocolVersion::LATEST, &version)),
        }
    }

    /// What the session knows. Before it, only `ping` is served.
    fn admit_legacy(
        &self,
        known: Option<ServerMethod>,
        params: &Params<'_>,
    ) -> Result<(ProtocolVersion, ClientFeatures), Error> {
        match (&self.session, self.config.latest_legacy()) {
            (Some(session), _) => Ok((session.version, session.features)),
            (None, Some(latest)) if known == Some(ServerMethod::Ping) => {
                Ok((latest, ClientFeatures::default()))
            }
            (None, Some(latest)) if !self.config.is_modern() => match known {
                Some(known) if !latest.has_method(known) => Err(Error::method_not_found(known.as_str())),
                _ => Err(Error::invalid_params("Invalid params: expected `initialize` first")),
            },
            (None, _) => {
                params.check()?;
                Err(Error::invalid_params(alloc::format!(
                    "Invalid params at /params/_meta/{}: expected a protocol version, or `initialize` first",
                    meta_key::PROTOCOL_VERSION.replace('/', "~1")
                )))
            }
        }
    }

    /// The methods that the machine answers itself.
    fn answer_here(
        &mut self,
        method: ServerMethod,
        version: ProtocolVersion,
        params: &Params<'_>,
    ) -> Option<Result<Body, Error>> {
        match method {
            ServerMethod::Discover => Some(Ok(Body::Discover)),
            ServerMethod::Ping => Some(Ok(Body::Empty)),
            ServerMethod::SetLevel if !version.is_modern() => {
                Some(decode_level(params.members()).map(|level| {
                    if let Some(session) = &mut self.session {
                        session.log_level = Some(level);
                    }
                    Body::Empty
                }))
            }
            _ => None,
        }
    }

    fn initialize(
        &mut self,
        id: RequestId,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'static>> {
        if self.session.is_some() {
            let error = Error::invalid_request("Invalid request: the session is initialized already");
            return Some(self.reject(Some(id), error, out));
        }
        if self.inflight.find(&id).is_some() {
            let error =
                Error::invalid_request("Invalid request: the id belongs to a request that is still open");
            return Some(self.reject(Some(id), error, out));
        }
        match Session::open(params, &self.config) {
            Ok(session) => {
                Wrap::Line.write(out, |out| {
                    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                    id.write(out);
                    out.extend_from_slice(b",\"result\":");
                    session.write_initialize_result(&self.config, out);
                    out.push(b'}');
                });
                self.session = Some(session);
                None
            }
            Err(error) => Some(self.reject(Some(id), error, out)),
        }
    }

    fn slot_of(
        &self,
        id: RequestId,
        version: ProtocolVersion,
        features: ClientFeatures,
        params: &Params<'_>,
        deadline: Option<Instant>,
    ) -> Slot {
        let meta = params.meta();
        let text = |name: &str| meta.get(name).and_then(|raw| str_from_json(raw.get()));
        Slot {
            id,
            version,
            features,
            progress_token: meta
                .get(meta_key::PROGRESS_TOKEN)
                .and_then(|raw| RequestId::parse(raw.get(), self.config.limits.max_id)),
            progress: None,
            log_level: if version.is_modern() {
                text(meta_key::LOG_LEVEL).and_then(|level| LoggingLevel::parse(&level))
            } else {
                None
            },
            deadline,
            batch: self.batches.current(),
            kind: Kind::Call,
        }
    }

    fn kind_of(
        &self,
        method: Option<ServerMethod>,
        version: ProtocolVersion,
        params: &Params<'_>,
    ) -> Result<Kind, Error> {
        use ServerMethod as M;
        Ok(match method {
            Some(method @ (M::CallTool | M::GetPrompt | M::ReadResource))
                if self.config.bridge_input && !version.is_modern() =>
            {
                Kind::Bridged(Box::new(Parked::new(method, params.members())))
            }
            Some(method @ (M::Subscribe | M::Unsubscribe)) => {
                let uri = params.members().required_text("uri")?;
                let limits = &self.config.limits;
                if uri.len() > limits.max_uri {
                    return Err(Error::invalid_params("Invalid params at /params/uri: too long"));
                }
                if method == M::Subscribe && !self.has_room_for(&uri) {
                    return Err(Error::invalid_params("Too many resources are subscribed to"));
                }
                Kind::Subscribe { uri: uri.into(), on: method == M::Subscribe }
            }
            _ => Kind::Call,
        })
    }

    /// Whether the session may subscribe to one more resource. Those that are about to be granted count.
    fn has_room_for(&self, uri: &str) -> bool {
        let Some(session) = &self.session else { return false };
        let about_to = self.inflight.slots().filter(|s| matches!(s.kind, Kind::Subscribe { on: true, .. }));
        session.listen.subscribes_to(uri)
            || session.listen.uri_count() + about_to.count() < self.config.limits.max_subscribed_uris
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

    fn response<'b>(
        &mut self,
        id: Option<RequestId>,
        outcome: Result<&'b RawValue, Error>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'b>> {
        let asked = id.as_ref().and_then(|id| self.session.as_mut()?.answered(id));
        let Some((number, ask)) = asked else {
            let error = outcome.err().unwrap_or_else(|| Error::invalid_request("A response to no request"));
            return Some(Event::Rejected(Violation { error, id, answered: false }));
        };
        if let (Some(name), Some(key)) = (ask.bridge, ask.request) {
            return self.bridged_answer(key, name, outcome, out);
        }
        let ask_key = AskKey { connection: self.number, number };
        Some(Event::Answer(Answer { ask: ask_key, request: ask.request, outcome }))
    }

    fn bridged_answer(
        &mut self,
        key: RequestKey,
        name: crate::model::Str,
        outcome: Result<&RawValue, Error>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'static>> {
        let slot = self.inflight.get_mut(key)?;
        let Kind::Bridged(parked) = &mut slot.kind else { return None };
        match outcome {
            Ok(result) => parked
                .take_answer(name, result)
                .then(|| Event::Resumed(parked.resume(key, slot.version, slot.features))),
            Err(error) => {
                let error = Error::new(
                    rpc::code::INTERNAL_ERROR,
                    alloc::format!("The client refused to answer: {}", rpc::Short(&error.message)),
                );
                let _ = self.fail(Pending::<method::CallTool>::new(key), &error, out);
                Some(Event::Cancelled { key, reason: Some(error.message) })
            }
        }
    }

    fn ask_session(
        &mut self,
        request: Option<RequestKey>,
        question: &InputRequest,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<AskKey, AskError> {
        let deadline = self.config.limits.client_request_timeout.map(|t| now + t);
        let session = self.session_for_ask()?;
        if !session.expresses(question) {
            return Err(AskError::Inexpressible);
        }
        let mut number = 0;
        Wrap::Line.write(out, |out| number = session.ask(Ask::new(request, deadline), question, None, out));
        Ok(AskKey { connection: self.number, number })
    }

    fn session_for_ask(&mut self) -> Result<&mut Session, AskError> {
        let most = self.config.limits.max_client_requests;
        let session = self.session.as_mut().ok_or(AskError::Modern)?;
        if self.input_ended {
            return Err(AskError::InputEnded);
        }
        if session.open_asks() >= most {
            return Err(AskError::TooMany);
        }
        Ok(session)
    }

    /// Ends a request without an answer.
    fn forget(&mut self, key: RequestKey, out: &mut Vec<u8>) {
        if let Some(slot) = self.take(key, out) {
            self.batches.closed(slot.batch, out);
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
                Wrap::Line.write(out, |out| write_cancelled(out, number, "the call is over"));
            });
        }
        Some(slot)
    }
}

/// Why a legacy client cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// The call is over.
    RequestOver,
    /// There is no handshake: a client of 2026-07-28 is asked through `input_required`.
    Modern,
    /// The client has not said yet that the handshake is over.
    TooEarly,
    /// No answer can come: see [`Connection::end_of_input`].
    InputEnded,
    /// The client did not declare what it would have to: the JSON text of a `ClientCapabilities` object.
    MissingCapability(&'static str),
    /// [`Limits::max_client_requests`](crate::limits::Limits::max_client_requests) requests are open.
    TooMany,
    /// The revision of the session has no words for it, such as a choice of several before 2025-11-25.
    Inexpressible,
}

impl core::fmt::Display for AskError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::RequestOver => f.write_str("the call is over"),
            Self::Modern => f.write_str("there is no legacy session to ask"),
            Self::TooEarly => f.write_str("the handshake is not over"),
            Self::InputEnded => f.write_str("the client is gone"),
            Self::MissingCapability(required) => write!(f, "the client did not declare {required}"),
            Self::TooMany => f.write_str("too many requests to the client are open"),
            Self::Inexpressible => f.write_str("the client's revision cannot express the question"),
        }
    }
}

impl core::error::Error for AskError {}

/// The results that the machine writes itself.
enum Body {
    Empty,
    Discover,
}

fn write_result_of_machine(out: &mut Vec<u8>, slot: &Slot, config: &Config, body: Body) {
    match body {
        Body::Empty => write_result(out, slot, config, "complete", None, |out| {
            out.extend_from_slice(b"{}");
            true
        }),
        Body::Discover => {
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            slot.id.write(out);
            out.extend_from_slice(b",\"result\":{\"resultType\":\"complete\",");
            out.extend_from_slice(&config.discover);
            out.extend_from_slice(b"}}");
        }
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
        write: impl FnOnce(&mut Vec<u8>, &Slot, &Config),
    ) -> Delivery {
        let Some(slot) = self.take(key, out) else { return Delivery::Discarded };
        self.batches.answer(slot.batch, out, |out| write(out, &slot, &self.config));
        self.batches.closed(slot.batch, out);
        if let (Kind::Subscribe { uri, on }, true, Some(session)) = (slot.kind, granted, &mut self.session) {
            if on {
                session.listen.subscribe(&uri);
            } else {
                session.listen.unsubscribe(&uri);
            }
        }
        Delivery::Written
    }

    fn bridge(&mut self, key: RequestKey, input: &InputRequired, out: &mut Vec<u8>) -> Delivery {
        let limits = self.config.limits.clone();
        let Some(slot) = self.inflight.get_mut(key) else { return Delivery::Discarded };
        let Kind::Bridged(parked) = &mut slot.kind else {
            return self.abandon(key, out);
        };
        let questions = input.input_requests.len();
        if input.is_empty() {
            return self.abandon(key, out);
        }
        let open = self.session.as_ref().map_or(0, Session::open_asks);
        if parked.rounds >= limits.max_rounds || open + questions > limits.max_client_requests {
            let error = Error::new(rpc::code::INTERNAL_ERROR, "The call asks too many questions");
            return self.fail(Pending::<method::CallTool>::new(key), &error, out);
        }
        if self.input_ended && questions > 0 {
            let error = Error::new(rpc::code::INTERNAL_ERROR, "The client is gone");
            return self.fail(Pending::<method::CallTool>::new(key), &error, out);
        }
        let session = self.session.as_ref();
        if input.input_requests.iter().any(|(_, q)| session.is_some_and(|session| !session.expresses(q))) {
            let error =
                Error::new(rpc::code::INTERNAL_ERROR, "The question cannot be asked in this revision");
            return self.fail(Pending::<method::CallTool>::new(key), &error, out);
        }
        parked.begin_round(questions, input.request_state.clone());
        if questions == 0 {
            self.ready.push_back(key);
        }
        if let Some(session) = &mut self.session {
            for (name, question) in input.input_requests.iter() {
                let ask = Ask::without_clock(key, name.clone());
                Wrap::Line.write(out, |out| {
                    session.ask(ask, question, None, out);
                });
            }
        }
        Delivery::Written
    }
}

impl Channel for Connection {
    fn progress_of(&mut self, key: RequestKey, progress: Progress<'_>, out: &mut Vec<u8>) -> Delivery {
        let Some(slot) = self.inflight.get_mut(key) else { return Delivery::Discarded };
        let mark = out.len();
        let mut delivery = Delivery::Discarded;
        Wrap::Line.write(out, |out| delivery = write_progress(out, slot, progress));
        if !delivery.is_written() {
            out.truncate(mark);
        }
        delivery
    }

    fn log_of(&mut self, key: RequestKey, log: Log<'_>, out: &mut Vec<u8>) -> Delivery {
        let Some(slot) = self.inflight.get(key) else { return Delivery::Discarded };
        if !slot.version.is_modern() {
            return self.log_session(log, out);
        }
        // Without a level on this request nothing is sent. [spec: server/utilities/logging]
        let wanted = slot.log_level.is_some_and(|least| log.level >= least);
        if !wanted || !self.config.gates().logging {
            return Delivery::Discarded;
        }
        Wrap::Line.write(out, |out| log.write(out));
        Delivery::Written
    }
}
