//! What is on its way: requests, their responses, and streams that are taken up again later.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::auth::Unauthorized;
use super::request::Request;
use super::resume::Resume;
use super::settings::Settings;
use super::{Action, ExchangeId, Url};
use crate::client::outbox::{About, Answering, Notice, Outbox, Purpose};
use crate::client::{CallError, CallId};
use crate::limits::Limits;
use crate::model::ProtocolVersion;
use crate::rpc;
use crate::time::Instant;

/// How long calls wait at most for the stream of a new session, without which a server may have nowhere to
/// ask. Some servers say nothing before they have something to say.
const STREAM_WAIT: Duration = Duration::from_millis(250);

/// A request of the machine.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) wire: i64,
    pub(super) purpose: Purpose,
    pub(super) version: ProtocolVersion,
    pub(super) is_tool_call: bool,
    pub(super) resume: Resume,
    /// Its response is taken up again with GET.
    pub(super) is_resumed: bool,
}

/// What a request is for.
#[derive(Debug)]
pub(super) enum Role {
    Request(Asked),
    /// A notification, or the answer to a request of the server.
    Note,
    /// The stream of a legacy session.
    Listen(Resume),
    /// 2024-11-05: the stream on which everything comes.
    Events,
    /// Ends a session.
    End,
    /// Whatever still comes means nothing.
    Over,
}

/// What is known of a response that is no success.
#[derive(Debug)]
pub(super) enum Refusal {
    Error { error: rpc::Error, is_own: bool },
    Text(String),
}

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) role: Role,
    /// As it would be sent again: without what the settings add.
    pub(super) request: Request,
    pub(super) redirects: u8,
    /// Once there is a response.
    pub(super) status: Option<u16>,
    /// The session it belongs to; `None` of those without.
    pub(super) session: Option<u32>,
    pub(super) is_events: bool,
    pub(super) answered: bool,
    pub(super) refusal: Option<Refusal>,
    /// How many messages of the array that was its body are still to be taken.
    pub(super) members: usize,
}

/// A request that waits for a token.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) role: Role,
    pub(super) request: Request,
    pub(super) why: Unauthorized,
}

#[derive(Debug)]
pub(super) enum Timer {
    /// Whatever still comes is not waited for.
    Close(ExchangeId),
    Reopen(Box<Role>),
    /// Calls wait no longer for the stream of this session.
    Release(u32),
    /// 2024-11-05: another connection is begun.
    Start,
}

/// How messages travel.
#[derive(Debug)]
pub(super) enum Transport {
    Streamable,
    /// 2024-11-05
    Events {
        stream: ExchangeId,
        /// Where messages go, once the server has said it.
        endpoint: Option<Url>,
        /// `initialize`, which waits for that.
        first: Option<Box<First>>,
    },
}

/// `initialize`, which was refused where it was sent first.
#[derive(Debug)]
pub(super) struct First {
    pub(super) asked: Asked,
    pub(super) body: Arc<[u8]>,
    pub(super) refused: CallError,
}

/// What is not sent yet.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Calls wait for this exchange: `notifications/initialized`, then the stream of the session.
    until: Option<(ExchangeId, Until)>,
    held: Vec<(ExchangeId, Request)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Initialized,
    Stream,
}

/// How often a call was tried again, by reason.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tries {
    pub(super) session: u8,
    pub(super) mirror: u8,
    pub(super) token: u8,
}

#[derive(Debug)]
pub(super) struct Traffic {
    pub(super) settings: Settings,
    pub(super) limits: Limits,
    next: u64,
    pub(super) open: BTreeMap<ExchangeId, Exchange>,
    by_wire: BTreeMap<i64, ExchangeId>,
    timers: BTreeMap<(Instant, u64), Timer>,
    pub(super) parked: Vec<Parked>,
    pub(super) transport: Transport,
    /// The id that the server gave.
    pub(super) session: Option<Box<str>>,
    /// Counts the sessions.
    pub(super) generation: u32,
    /// The revision of the session.
    pub(super) version: Option<ProtocolVersion>,
    /// Whether the server had a stream for a session once.
    pub(super) has_listened: bool,
    /// When it was given up last to open the one of this session.
    pub(super) deaf: Option<Instant>,
    pub(super) gate: Gate,
    pub(super) tries: BTreeMap<CallId, Tries>,
    /// Refusals of the questions that no call asked, for the lack of a token.
    pub(super) opening_tries: u8,
    pub(super) is_closing: bool,
}

impl Exchange {
    pub(super) fn is_success(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

impl Traffic {
    pub(super) fn new(settings: Settings, limits: Limits) -> Self {
        Self {
            settings,
            limits,
            next: 0,
            open: BTreeMap::new(),
            by_wire: BTreeMap::new(),
            timers: BTreeMap::new(),
            parked: Vec::new(),
            transport: Transport::Streamable,
            session: None,
            generation: 0,
            version: None,
            has_listened: false,
            deaf: None,
            gate: Gate::default(),
            tries: BTreeMap::new(),
            opening_tries: 0,
            is_closing: false,
        }
    }

    pub(super) fn tries(&mut self, purpose: Purpose) -> Option<&mut Tries> {
        Some(self.tries.entry(purpose.call()?).or_default())
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn due(&mut self, now: Instant) -> Option<Timer> {
        let first = self.timers.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    pub(super) fn set_timer(&mut self, at: Instant, timer: Timer) {
        self.next += 1;
        self.timers.insert((at, self.next), timer);
    }

    /// Drops the timers that are not wanted any more.
    pub(super) fn keep_timers(&mut self, keep: impl Fn(&Timer) -> bool) {
        self.timers.retain(|_, timer| keep(timer));
    }

    /// A stream is to be taken up again then.
    pub(super) fn reopen(&mut self, at: Instant, role: Role) {
        self.set_timer(at, Timer::Reopen(Box::new(role)));
    }

    /// Whether there is a stream of the session, or one is tried.
    fn is_listening(&self) -> bool {
        let open = self.open.values().map(|exchange| &exchange.role);
        let parked = self.parked.iter().map(|parked| &parked.role);
        let later = self.timers.values().filter_map(|timer| match timer {
            Timer::Reopen(role) => Some(&**role),
            _ => None,
        });
        open.chain(parked).chain(later).any(|role| matches!(role, Role::Listen(_)))
    }

    /// Takes an exchange off the books.
    pub(super) fn remove(&mut self, id: ExchangeId) -> Option<Exchange> {
        let exchange = self.open.remove(&id)?;
        if let Role::Request(asked) = &exchange.role
            && self.by_wire.get(&asked.wire) == Some(&id)
        {
            self.by_wire.remove(&asked.wire);
        }
        self.keep_timers(|timer| !matches!(timer, Timer::Close(closing) if *closing == id));
        Some(exchange)
    }

    /// An exchange has nothing more to say. Its body may still be read to the end, for a while.
    pub(super) fn settle(&mut self, id: ExchangeId, now: Instant) -> Option<(Role, Request)> {
        let exchange = self.open.get_mut(&id)?;
        let role = core::mem::replace(&mut exchange.role, Role::Over);
        let request = exchange.request.clone();
        if let Role::Request(asked) = &role {
            self.by_wire.remove(&asked.wire);
        }
        self.linger(id, now);
        Some((role, request))
    }

    /// The request with this id is answered.
    pub(super) fn forget_wire(&mut self, wire: i64) {
        self.by_wire.remove(&wire);
    }

    /// What waits for a token and belongs to a session.
    pub(super) fn unpark_session(&mut self) -> Vec<Parked> {
        let of_session = |parked: &mut Parked| parked.request.header("mcp-session-id").is_some();
        self.parked.extract_if(.., of_session).collect()
    }

    /// No stream is taken up again.
    pub(super) fn forget_streams(&mut self) {
        self.keep_timers(|timer| !matches!(timer, Timer::Reopen(_)));
    }

    pub(super) fn is_waited_for(&self, id: ExchangeId) -> bool {
        self.gate.until.is_some_and(|(waited, _)| waited == id)
    }

    /// Nothing more waits for the beginning of the session.
    pub(super) const fn forget_gate(&mut self) {
        self.gate.until = None;
    }

    /// Whether it tells the server something for which nobody waits, and the server may not have read it yet.
    pub(super) fn is_told(&self, id: ExchangeId) -> bool {
        self.open.get(&id).is_some_and(|exchange| {
            exchange.status.is_none()
                && matches!(exchange.role, Role::Note | Role::Request(Asked { purpose: Purpose::Aside, .. }))
                && self.gate.held.iter().all(|(held, _)| *held != id)
        })
    }

    /// 2024-11-05: the stream that is the connection.
    pub(super) const fn stream(&self) -> Option<ExchangeId> {
        match &self.transport {
            Transport::Events { stream, .. } => Some(*stream),
            Transport::Streamable => None,
        }
    }

    pub(super) fn linger(&mut self, id: ExchangeId, now: Instant) {
        self.set_timer(now + self.settings.linger, Timer::Close(id));
    }

    fn post_url(&self) -> &Url {
        match &self.transport {
            Transport::Events { endpoint: Some(url), .. } => url,
            _ => &self.settings.url,
        }
    }
}

/// [`Traffic`] with somewhere to write to.
#[derive(Debug)]
pub(super) struct Out<'a> {
    pub(super) traffic: &'a mut Traffic,
    pub(super) actions: &'a mut Vec<Action>,
    pub(super) now: Instant,
}

impl Out<'_> {
    /// Sends a request, or keeps it until its time has come.
    pub(super) fn open(&mut self, role: Role, request: Request, redirects: u8) -> ExchangeId {
        let waits = self.traffic.gate.until.is_some() && matches!(role, Role::Request(_) | Role::Note);
        self.open_as(role, request, redirects, waits)
    }

    /// Sends a request that waits for nothing.
    pub(super) fn open_now(&mut self, role: Role, request: Request, redirects: u8) -> ExchangeId {
        self.open_as(role, request, redirects, false)
    }

    fn open_as(&mut self, role: Role, request: Request, redirects: u8, waits: bool) -> ExchangeId {
        let traffic = &mut *self.traffic;
        traffic.next += 1;
        let id = ExchangeId(traffic.next);
        let mut outgoing = request.clone();
        for (name, value) in &traffic.settings.headers {
            outgoing.set(name.clone(), value.clone());
        }
        if let Some(token) = &traffic.settings.token {
            outgoing.headers.retain(|(name, _)| name != "authorization");
            outgoing.set("authorization", token.authorization());
        }
        match (&role, &mut traffic.transport) {
            (Role::Request(asked), _) => drop(traffic.by_wire.insert(asked.wire, id)),
            (Role::Events, Transport::Events { stream, .. }) => *stream = id,
            _ => {}
        }
        // What was redirected may name a session that is over.
        let is_of_now = |id: &str| traffic.session.as_deref() == Some(id);
        let session = request
            .header("mcp-session-id")
            .map(|id| if is_of_now(id) { traffic.generation } else { traffic.generation.wrapping_sub(1) });
        traffic.open.insert(
            id,
            Exchange {
                role,
                request,
                redirects,
                status: None,
                session,
                is_events: false,
                answered: false,
                refusal: None,
                members: 0,
            },
        );
        if waits {
            traffic.gate.held.push((id, outgoing));
        } else {
            self.actions.push(Action::Open { exchange: id, request: outgoing });
        }
        id
    }

    /// Lets go of a response.
    pub(super) fn close(&mut self, id: ExchangeId) -> bool {
        if self.traffic.remove(id).is_none() {
            return false;
        }
        let held = &mut self.traffic.gate.held;
        let before = held.len();
        held.retain(|(waiting, _)| *waiting != id);
        if held.len() == before {
            self.actions.push(Action::Close(id));
            self.passed(id);
            return true;
        }
        false
    }

    /// Ends the connection if it is to be ended and the server has been told all else.
    pub(super) fn leave(&mut self) {
        let stream = self.traffic.stream();
        if !self.traffic.is_closing || self.traffic.open.keys().any(|id| Some(*id) != stream) {
            return;
        }
        if let Some(stream) = stream {
            self.close(stream);
        }
        if let Some(session) = self.traffic.session.take() {
            let mut request = Request::delete(&self.traffic.settings.url);
            request.belong(Some(&session), self.traffic.version);
            let id = self.open_now(Role::End, request, 0);
            self.traffic.linger(id, self.now);
        }
    }

    /// The answer to `notifications/initialized`, or the stream of the session, is there, or will not be.
    pub(super) fn passed(&mut self, id: ExchangeId) {
        let until = match self.traffic.gate.until {
            Some((waited, until)) if waited == id => until,
            _ => return,
        };
        let is_streamable = matches!(self.traffic.transport, Transport::Streamable);
        if until == Until::Initialized && self.traffic.settings.listen && is_streamable {
            let stream = self.listen(Resume::default());
            self.traffic.gate.until = Some((stream, Until::Stream));
            let (at, generation) = (self.now + STREAM_WAIT, self.traffic.generation);
            return self.traffic.set_timer(at, Timer::Release(generation));
        }
        self.release();
    }

    /// Sends what was kept.
    pub(super) fn release(&mut self) {
        self.traffic.gate.until = None;
        for (exchange, request) in self.traffic.gate.held.drain(..) {
            self.actions.push(Action::Open { exchange, request });
        }
    }

    /// What waits for an exchange waits for the one that takes its place.
    pub(super) fn pass_on(&mut self, id: ExchangeId, next: ExchangeId) {
        if let Some((waited, _)) = &mut self.traffic.gate.until
            && *waited == id
        {
            *waited = next;
        }
    }

    /// The server takes requests: perhaps it has a stream by now, too. Not asked more often than the longest
    /// wait between two tries.
    pub(super) fn listen_again(&mut self) {
        let traffic = &self.traffic;
        let wait = traffic.settings.reconnect.max_wait;
        let is_due = traffic.deaf.is_some_and(|since| self.now.saturating_duration_since(since) >= wait);
        if is_due && !traffic.is_listening() {
            self.traffic.deaf = Some(self.now);
            self.listen(Resume::default());
        }
    }

    /// Opens the stream of the session.
    fn listen(&mut self, resume: Resume) -> ExchangeId {
        let mut request = Request::get(&self.traffic.settings.url, resume.last_event_id());
        request.belong(self.traffic.session.as_deref(), self.traffic.version);
        self.open(Role::Listen(resume), request, 0)
    }

    /// Takes up a stream again.
    pub(super) fn take_up(&mut self, mut role: Role) {
        let resume = match &mut role {
            Role::Request(asked) => {
                asked.is_resumed = true;
                &asked.resume
            }
            Role::Listen(resume) => resume,
            _ => return,
        };
        let mut request = Request::get(&self.traffic.settings.url, resume.last_event_id());
        request.belong(self.traffic.session.as_deref(), self.traffic.version);
        self.open(role, request, 0);
    }

    fn post(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Request {
        let mut body = Vec::new();
        write(&mut body);
        Request::post(self.traffic.post_url(), &body)
    }

    /// Ties a request to the session, or to the revision of a server without one.
    fn belong(&self, request: &mut Request, version: ProtocolVersion) {
        if !version.is_modern() {
            request.belong(self.traffic.session.as_deref(), self.traffic.version);
        }
    }
}

impl Outbox for Out<'_> {
    fn request(&mut self, about: &About<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut request = self.post(write);
        if about.version.is_modern() {
            request.mirror(about.version, &self.traffic.limits, |_| Some(about.headers));
        } else if about.purpose != Purpose::Handshake {
            self.belong(&mut request, about.version);
        }
        let asked = Asked {
            wire: about.wire,
            purpose: about.purpose,
            version: about.version,
            is_tool_call: about.method == "tools/call",
            resume: Resume::default(),
            is_resumed: false,
        };
        self.open(Role::Request(asked), request, 0);
    }

    fn notification(&mut self, about: &Notice<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        let begins = about.method == "notifications/initialized";
        if begins {
            self.traffic.version = Some(about.version);
        }
        let mut request = self.post(write);
        if about.version.is_modern() {
            request.mirror(about.version, &self.traffic.limits, |_| None);
        } else {
            self.belong(&mut request, about.version);
        }
        let id = self.open(Role::Note, request, 0);
        if begins {
            // A call must not overtake it.
            self.traffic.gate.until = Some((id, Until::Initialized));
        }
    }

    fn response(&mut self, _: Answering, write: impl FnOnce(&mut Vec<u8>)) {
        let mut request = self.post(write);
        request.belong(self.traffic.session.as_deref(), self.traffic.version);
        self.open(Role::Note, request, 0);
    }

    fn abandon(&mut self, wire: i64, version: ProtocolVersion) -> bool {
        let tells = !version.is_modern();
        if let Some(id) = self.traffic.by_wire.get(&wire).copied() {
            return self.close(id) && tells;
        }
        let is_of = |role: &Role| matches!(role, Role::Request(asked) if asked.wire == wire);
        self.traffic.keep_timers(|timer| !matches!(timer, Timer::Reopen(role) if is_of(role)));
        let before = self.traffic.parked.len();
        self.traffic.parked.retain(|parked| !is_of(&parked.role));
        let was_parked = self.traffic.parked.len() < before;
        if let Transport::Events { first, stream, .. } = &mut self.traffic.transport
            && first.as_ref().is_some_and(|first| first.asked.wire == wire)
        {
            *first = None;
            let stream = *stream;
            self.close(stream);
        }
        tells && !was_parked
    }
}
