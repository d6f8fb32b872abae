//! How responses begin and end.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::auth::Unauthorized;
use super::challenge::Challenge;
use super::client::Client;
use super::fields::Fields;
use super::reader::Kind;
use super::redirect::{follow, is_redirect};
use super::resume::Resume;
use super::traffic::{Asked, Exchange, First, Out, Parked, Refusal, Role, Timer, Transport};
use super::{Action, ExchangeId, Lost};
use crate::client::outbox::Purpose;
use crate::client::{CallError, Event, ViolationKind};
use crate::http::media;
use crate::time::Instant;

/// The longest session id that is taken, in bytes. What is longer is none.
const MAX_SESSION: usize = 4 << 10;
/// How often one call waits for a token. [spec: basic/authorization#step-up-authorization-flow]
const TOKEN_TRIES: u8 = 3;

impl Client {
    /// What the body of a response is, as far as it is wanted.
    pub(super) fn begin<F: Fields + ?Sized>(
        &mut self,
        id: ExchangeId,
        status: u16,
        fields: &F,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> Kind {
        let Some(exchange) = self.traffic.open.get_mut(&id) else { return Kind::Nothing };
        if exchange.status.is_some_and(|earlier| earlier >= 200) {
            // A response begins once: what it was for may be on its way elsewhere, or taken.
            return Kind::Nothing;
        }
        exchange.status = Some(status);
        if is_redirect(status) && !matches!(exchange.role, Role::Over) {
            self.redirect(id, status, fields, now, out);
            return Kind::Nothing;
        }
        if matches!(status, 401 | 403) {
            let challenges = Challenge::parse_all(fields.values("www-authenticate"));
            if status == 401 || !challenges.is_empty() {
                self.unauthorized(id, status, challenges, now, out);
                return Kind::Nothing;
            }
        }
        let content = fields.first("content-type").map_or(&b""[..], media::essence);
        let is = |kind: &[u8]| content.eq_ignore_ascii_case(kind);
        let kind = if is(b"text/event-stream") {
            Kind::Events
        } else if is(b"application/json") {
            Kind::Json
        } else {
            Kind::Other
        };
        let is_success = exchange.is_success();
        match &mut exchange.role {
            Role::Request(asked) if is_success => {
                if asked.purpose == Purpose::Handshake {
                    // A session id is visible ASCII. [spec: 2025-11-25 basic/transports#session-management]
                    let session = fields.first("mcp-session-id").and_then(|id| core::str::from_utf8(id).ok());
                    let is_id = |id: &&str| {
                        (1..=MAX_SESSION).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic())
                    };
                    self.traffic.session = session.map(str::trim).filter(is_id).map(Into::into);
                    self.renewals.opened(now);
                }
                exchange.is_events = kind == Kind::Events;
                let is_of_session = !asked.version.is_modern() && asked.purpose != Purpose::Handshake;
                // Nothing is sent again that was taken.
                exchange.request.body = Arc::from([]);
                if exchange.is_events {
                    asked.resume.opened(now);
                }
                if is_of_session {
                    Out { traffic: &mut self.traffic, actions: out, now }.listen_again();
                }
                kind
            }
            // An answer with such a status is one body, whatever it says it is.
            Role::Request(_) => {
                if kind == Kind::Json {
                    Kind::Json
                } else {
                    Kind::Other
                }
            }
            Role::Listen(resume) if is_success && kind == Kind::Events => {
                exchange.is_events = true;
                resume.opened(now);
                self.traffic.has_listened = true;
                if self.traffic.deaf.take().is_some() {
                    self.backlog.push_back(Event::StreamRestored);
                }
                kind
            }
            Role::Events if is_success && kind == Kind::Events => {
                exchange.is_events = true;
                kind
            }
            Role::Note if !is_success => {
                let detail = alloc::format!("a notification or an answer was refused with status {status}");
                self.backlog.push_back(Event::violation(ViolationKind::Refused, detail));
                Kind::Nothing
            }
            _ => Kind::Nothing,
        }
    }

    fn redirect<F: Fields + ?Sized>(
        &mut self,
        id: ExchangeId,
        status: u16,
        fields: &F,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        let Some(exchange) = self.traffic.open.get(&id) else { return };
        let followed = exchange.redirects;
        let from = &exchange.request.url;
        let to = follow(status, exchange.request.method, from, fields.values("location"), followed);
        let Some((role, mut request)) = self.traffic.settle(id, now) else { return };
        match to {
            Ok(url) => {
                request.url = url;
                let mut out = Out { traffic: &mut self.traffic, actions: out, now };
                // What takes the place of one that all wait for does not wait for it.
                let waits = out.traffic.is_waited_for(id);
                let next = out.open_now(role, request, followed + 1);
                if waits {
                    out.pass_on(id, next);
                }
                if out.traffic.is_closing {
                    out.traffic.linger(next, now);
                }
            }
            Err(why) => {
                let error = CallError::Http { status, detail: why.to_string() };
                self.come_to_nothing(role, error, now, out);
            }
        }
    }

    /// Something that is no call may come to nothing as well.
    pub(super) fn come_to_nothing(
        &mut self,
        role: Role,
        error: CallError,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        match role {
            Role::Request(asked) => self.fail_request(&asked, error, now, out),
            Role::Events => self.events_ended(error, now, out),
            Role::Note => {
                let detail = alloc::format!("a notification or an answer did not get through: {error}");
                self.backlog.push_back(Event::violation(ViolationKind::Refused, detail));
            }
            Role::Listen(_) => self.stream_lost(error, now),
            Role::End | Role::Over => {}
        }
    }

    /// The stream of the session is not to be had. That is told once, until there is one again.
    fn stream_lost(&mut self, error: CallError, now: Instant) {
        if self.traffic.deaf.replace(now).is_none() {
            self.backlog.push_back(Event::StreamLost(error));
        }
    }

    /// A request comes to nothing; so does a repair, if it was for one.
    pub(super) fn fail_request(
        &mut self,
        asked: &Asked,
        error: CallError,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        if !self.repair_failed(asked.wire, now, out) {
            self.fail(asked.wire, asked.purpose, error, now, out);
        }
    }

    fn unauthorized(
        &mut self,
        id: ExchangeId,
        status: u16,
        challenges: Vec<Challenge>,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        Out { traffic: &mut self.traffic, actions: out, now }.passed(id);
        let Some((role, request)) = self.traffic.settle(id, now) else { return };
        let call = match &role {
            Role::Request(asked) => asked.purpose.call(),
            _ => None,
        };
        let why = Unauthorized { call, status, challenges, url: request.url.clone() };
        let tries = match &role {
            Role::Request(asked) => match self.traffic.tries(asked.purpose) {
                Some(tries) => &mut tries.token,
                None => &mut self.traffic.opening_tries,
            },
            _ => &mut self.traffic.opening_tries,
        };
        *tries = tries.saturating_add(1);
        let tries = *tries;
        let may_wait = self.traffic.settings.gets_tokens
            && tries <= TOKEN_TRIES
            && matches!(role, Role::Request(_) | Role::Listen(_) | Role::Note | Role::Events);
        if !may_wait {
            let error = CallError::Unauthorized(alloc::boxed::Box::new(why));
            return self.come_to_nothing(role, error, now, out);
        }
        // The time that the user takes is none of the server's.
        match &role {
            Role::Request(Asked { purpose: Purpose::Probe | Purpose::Handshake, .. }) => {
                self.engine.suspend_all();
            }
            Role::Request(asked) => self.engine.hold(asked.wire),
            _ => {}
        }
        if self.traffic.parked.is_empty() {
            self.backlog.push_back(Event::Unauthorized(why.clone()));
        }
        self.traffic.parked.push(Parked { role, request, why });
    }

    /// A response is over, or there was none.
    pub(super) fn ended(
        &mut self,
        id: ExchangeId,
        last_event_id: &str,
        retry: Option<Duration>,
        outcome: Result<(), Lost>,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        if !self.traffic.open.contains_key(&id) {
            return;
        }
        let Some(mut exchange) = self.traffic.remove(id) else { return };
        let mut about = Out { traffic: &mut self.traffic, actions: out, now };
        about.passed(id);
        if about.traffic.is_closing {
            return about.leave();
        }
        match core::mem::replace(&mut exchange.role, Role::Over) {
            Role::Request(asked) => {
                self.request_ended(asked, exchange, (last_event_id, retry), outcome, now, out);
            }
            Role::Note => {
                if let (None, Err(lost)) = (exchange.status, outcome) {
                    self.come_to_nothing(Role::Note, CallError::Lost(lost.0), now, out);
                }
            }
            Role::Listen(resume) => {
                self.stream_ended(resume, &exchange, (last_event_id, retry), outcome, now, out);
            }
            Role::Events => {
                let error = match outcome {
                    Err(lost) => CallError::Lost(lost.0),
                    Ok(()) if exchange.is_events => CallError::Closed,
                    Ok(()) => CallError::Http {
                        status: exchange.status.unwrap_or_default(),
                        detail: "expected a stream of events of 2024-11-05".into(),
                    },
                };
                self.events_ended(error, now, out);
            }
            Role::End | Role::Over => {}
        }
    }

    /// The stream of the session has ended, or there was none.
    fn stream_ended(
        &mut self,
        mut resume: Resume,
        exchange: &Exchange,
        (last_event_id, retry): (&str, Option<Duration>),
        outcome: Result<(), Lost>,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        let is_over = match exchange.status {
            None | Some(429 | 500..=599) => false,
            _ => !exchange.is_events,
        };
        if is_over && !self.traffic.has_listened {
            // The server has none: what it has to say comes with the answers. H05
            return;
        }
        if resume.has_begun()
            && exchange.status == Some(404)
            && self.renew_session(exchange.session, now, out)
        {
            return;
        }
        let settings = &self.traffic.settings.reconnect;
        if !is_over && let Some(at) = resume.broke(last_event_id, retry, settings, now) {
            return self.traffic.reopen(at, Role::Listen(resume));
        }
        let error = match (outcome, exchange.status) {
            (_, Some(status)) if !exchange.is_events => {
                CallError::Http { status, detail: "expected the stream of the session".into() }
            }
            (Err(lost), _) => CallError::Lost(lost.0),
            (Ok(()), _) => CallError::Lost("it ended again and again without anything new".into()),
        };
        self.stream_lost(error, now);
    }

    fn request_ended(
        &mut self,
        mut asked: Asked,
        exchange: Exchange,
        (last_event_id, retry): (&str, Option<Duration>),
        outcome: Result<(), Lost>,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        let status = exchange.status;
        if exchange.answered {
            return;
        }
        let is_of_now = exchange.session.is_none_or(|session| session == self.traffic.generation);
        let resumes = !asked.version.is_modern()
            && asked.purpose != Purpose::Handshake
            && is_of_now
            && matches!(self.traffic.transport, Transport::Streamable);
        if asked.is_resumed && !exchange.is_events {
            // It may be out of order for a while, or know nothing of the stream.
            if matches!(status, None | Some(429 | 500..=599))
                && let Some(at) = asked.resume.broke("", retry, &self.traffic.settings.reconnect, now)
            {
                return self.traffic.reopen(at, Role::Request(asked));
            }
            if status == Some(404) && self.renew_session(exchange.session, now, out) {
                // The call may have run: it fails with the session.
                return;
            }
            let reason = match status {
                None => lost(outcome),
                Some(status) => {
                    alloc::format!("the stream of the answer cannot be taken up again (status {status})")
                }
            };
            return self.fail_request(&asked, CallError::Lost(reason), now, out);
        }
        let Some(status) = status else {
            return self.fail_request(&asked, CallError::Lost(lost(outcome)), now, out);
        };
        if !exchange.is_success() {
            return self.refused(asked, exchange, status, now, out);
        }
        if matches!(self.traffic.transport, Transport::Events { .. }) {
            // The answer comes on the stream.
            return;
        }
        if exchange.is_events {
            if resumes
                && (!last_event_id.is_empty() || asked.resume.last_event_id().is_some())
                && let Some(at) =
                    asked.resume.broke(last_event_id, retry, &self.traffic.settings.reconnect, now)
            {
                return self.traffic.reopen(at, Role::Request(asked));
            }
            let reason = match outcome {
                Err(lost) => lost.0,
                Ok(()) => "the events ended before the answer".into(),
            };
            return self.fail_request(&asked, CallError::Lost(reason), now, out);
        }
        let error = match (outcome, exchange.refusal) {
            (Err(lost), _) => CallError::Lost(lost.0),
            (Ok(()), Some(Refusal::Text(text))) => CallError::Malformed(text),
            (Ok(()), _) => CallError::Http { status, detail: "expected an answer, found none".into() },
        };
        self.fail_request(&asked, error, now, out);
    }

    /// 2024-11-05: begins another connection after a while. Whether that is due at all.
    pub(super) fn start_later(&mut self, now: Instant) -> bool {
        let at = self.restart.broke("", None, &self.traffic.settings.reconnect, now);
        match at {
            Some(at) if self.has_stream => self.traffic.set_timer(at, Timer::Start),
            _ => return false,
        }
        self.engine.suspend();
        true
    }

    /// 2024-11-05: without the stream there is no connection.
    fn events_ended(&mut self, error: CallError, now: Instant, out: &mut Vec<Action>) {
        let transport = core::mem::replace(&mut self.traffic.transport, Transport::Streamable);
        self.traffic.version = None;
        if let Transport::Events { first: Some(first), .. } = transport {
            let First { asked, refused, .. } = *first;
            if matches!(error, CallError::Lost(_) | CallError::Unauthorized(_)) {
                return self.fail(asked.wire, asked.purpose, error, now, out);
            }
            // It is no such server either: what it said at first says more.
            let event = self.through(now, out, |engine, out| engine.fail_wire(asked.wire, refused, now, out));
            return self.backlog.extend(event);
        }
        if !self.engine.is_ready() {
            let event = self.engine.give_up(error);
            return self.backlog.push_back(event);
        }
        let open: Vec<ExchangeId> = self.traffic.open.keys().copied().collect();
        for id in open {
            Out { traffic: &mut self.traffic, actions: out, now }.close(id);
        }
        let event = self.engine.eof();
        self.backlog.extend(event);
        while let Some(event) = self.through(now, out, |engine, out| engine.handle_timeout(now, out)) {
            self.note_end(Some(&event));
            self.backlog.push_back(event);
        }
        self.has_stream = true;
        self.start_later(now);
    }
}

fn lost(outcome: Result<(), Lost>) -> String {
    match outcome {
        Err(lost) => lost.0,
        Ok(()) => "there was no response".into(),
    }
}
