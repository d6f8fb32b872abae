//! Answers with a status that says no.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::client::Client;
use super::era::{self, Evidence};
use super::request::Request;
use super::traffic::{Asked, Exchange, First, Out, Refusal, Role, Transport};
use super::{Action, ExchangeId};
use crate::client::CallError;
use crate::client::outbox::{Origin, Purpose};
use crate::limits::Limits;
use crate::model::ProtocolVersion;
use crate::rpc::{self, Message, Parsed, code};
use crate::time::Instant;

impl Refusal {
    pub(super) fn read(bytes: &[u8], wire: i64, limits: &Limits) -> Self {
        match rpc::parse(bytes, limits) {
            Ok(Parsed::Message(Message::Error { id, error })) => {
                let own = id.as_ref().and_then(crate::client::engine::wire_of);
                if id.is_some() && own != Some(wire) {
                    return Self::Text(alloc::format!("an error about another request: {error}"));
                }
                Self::Error { error, is_own: id.is_some() }
            }
            _ => Self::Text(beginning(bytes)),
        }
    }
}

/// The beginning of a text, for people. One line, printable.
pub(super) fn beginning(bytes: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MOST)]);
    text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl Client {
    /// A request was answered with a status that is no success.
    pub(super) fn refused(
        &mut self,
        asked: Asked,
        exchange: Exchange,
        status: u16,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        let (error, is_own, detail) = match exchange.refusal {
            Some(Refusal::Error { error, is_own }) => (Some(error), is_own, String::new()),
            Some(Refusal::Text(text)) => (None, false, text),
            None => (None, false, String::new()),
        };
        let plain = CallError::Http { status, detail };
        match asked.purpose {
            Purpose::Probe => match era::of_discover(status, error.as_ref()) {
                Evidence::Answer => self.answer_error(&asked, error, plain, now, out),
                Evidence::Modern => {
                    let event = self.through(now, out, |engine, out| engine.go_on_modern(now, out));
                    self.backlog.extend(event);
                }
                Evidence::Older => {
                    let event = self.through(now, out, |engine, out| engine.fall_back(plain, now, out));
                    self.backlog.extend(event);
                }
                Evidence::None => self.fail_request(&asked, error.map_or(plain, CallError::Rpc), now, out),
            },
            Purpose::Handshake => match era::of_initialize(status, error.as_ref(), is_own) {
                Evidence::Answer | Evidence::Modern => self.answer_error(&asked, error, plain, now, out),
                Evidence::Older if self.may_be_oldest() => {
                    let refused = error.map_or(plain, CallError::Rpc);
                    self.try_events(First { asked, body: exchange.request.body, refused }, now, out);
                }
                Evidence::Older => self.assumption_failed(&asked, plain, now, out),
                Evidence::None => self.fail_request(&asked, error.map_or(plain, CallError::Rpc), now, out),
            },
            _ if status == 404 && !asked.version.is_modern() && exchange.session.is_some() => {
                // A server that knows the session may still say that it does not know the method or what it
                // is about. [spec: 2025-11-25 basic/transports#session-management]
                // What servers say of the session itself is one of these; after anything else the call may have run.
                let is_answer = error.as_ref().is_some_and(|error| {
                    is_own && !matches!(error.code, code::INVALID_REQUEST | -32000 | -32001)
                });
                if is_answer {
                    return self.answer_error(&asked, error, plain, now, out);
                }
                self.session_lost(asked, exchange.session, plain, now, out);
            }
            _ if asked.version.is_modern()
                && !self.is_confirmed
                // A modern server says this of a call.
                && error.as_ref().is_none_or(|error| error.code != code::INVALID_PARAMS)
                && era::of_discover(status, error.as_ref()) == Evidence::Older =>
            {
                // What was remembered of the server may be out of date: an older one runs nothing of a message that it
                // refuses.
                self.is_confirmed = true;
                let wire = asked.wire;
                let refusal = error.clone().map_or_else(|| plain.clone(), CallError::Rpc);
                let is_asked =
                    self.through(now, out, |engine, out| engine.ask_again(wire, refusal, now, out));
                if !is_asked {
                    self.answer_error(&asked, error, plain, now, out);
                }
            }
            _ => self.answer_error(&asked, error, plain, now, out),
        }
    }

    /// The body is the answer, if it was one.
    fn answer_error(
        &mut self,
        asked: &Asked,
        error: Option<rpc::Error>,
        plain: CallError,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        let Some(error) = error else { return self.fail_request(asked, plain, now, out) };
        self.is_confirmed |= asked.version.is_modern();
        if self.may_repair(asked, &error) {
            return self.begin_repair(asked.wire, error, now, out);
        }
        if self.repair_failed(asked.wire, now, out) {
            return;
        }
        let origin = Origin::Response(asked.wire);
        let message = Message::Error { id: Some(asked.wire.into()), error };
        let event = self.through(now, out, |engine, out| engine.handle(message, origin, now, out));
        // An error borrows nothing.
        self.note_end(event.as_ref());
        self.backlog.extend(event);
    }

    fn may_be_oldest(&self) -> bool {
        matches!(self.traffic.transport, Transport::Streamable)
            && self.engine.config().versions.contains(&ProtocolVersion::V2024_11_05)
    }

    /// The handshake was refused, and there is nothing older.
    fn assumption_failed(&mut self, asked: &Asked, error: CallError, now: Instant, out: &mut Vec<Action>) {
        let wire = asked.wire;
        let event = self.through(now, out, |engine, out| engine.fail_wire(wire, error, now, out));
        self.backlog.extend(event);
    }

    /// The server may be one of 2024-11-05: asks for its stream. LC-COMPAT-01, LC-COMPAT-02
    fn try_events(&mut self, first: First, now: Instant, out: &mut Vec<Action>) {
        let mut out = Out { traffic: &mut self.traffic, actions: out, now };
        let url = out.traffic.settings.url.clone();
        let stream = out.open(Role::Events, Request::get(&url, None), 0);
        out.traffic.transport = Transport::Events { stream, endpoint: None, first: Some(Box::new(first)) };
    }

    /// The session is over: begins another, without the old id, and makes the call again that was refused
    /// because of it, once. Nothing of it ran. LC-SESS-03, H04
    fn session_lost(
        &mut self,
        asked: Asked,
        session: Option<u32>,
        plain: CallError,
        now: Instant,
        out: &mut Vec<Action>,
    ) {
        let wire = asked.wire;
        // What nobody called is said in every session: it is no reason to begin sessions without end.
        if asked.purpose.call().is_none() {
            self.fail_request(&asked, plain, now, out);
            self.renew_session(session, now, out);
            return;
        }
        let again = self.traffic.tries(asked.purpose).is_some_and(|tries| {
            tries.session += 1;
            tries.session <= 1
        });
        if session == Some(self.traffic.generation) {
            let refused = if again { &[wire][..] } else { &[] };
            if !again {
                self.fail_request(&asked, plain, now, out);
            }
            self.end_session(refused, now, out);
        } else if !again || !self.through(now, out, |engine, out| engine.resend_when_ready(wire, now, out)) {
            self.fail_request(&asked, plain, now, out);
        }
    }

    /// The session is over, whatever was on its way in it: a stream that there was is not known any more, or what is said
    /// in every session is refused. Begins another, if this did not happen too often in a row. Whether it does.
    /// LC-SESS-03
    pub(super) fn renew_session(
        &mut self,
        session: Option<u32>,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> bool {
        if session != Some(self.traffic.generation)
            || self.renewals.broke("", None, &self.traffic.settings.reconnect, now).is_none()
        {
            return false;
        }
        self.end_session(&[], now, out);
        true
    }

    /// Lets go of the session and begins another, in which what was `refused` is sent again.
    fn end_session(&mut self, refused: &[i64], now: Instant, out: &mut Vec<Action>) {
        let session = Some(self.traffic.generation);
        let mut through = Out { traffic: &mut self.traffic, actions: out, now };
        let mut undecided = Vec::new();
        let open: Vec<(ExchangeId, bool)> = through
            .traffic
            .open
            .iter()
            .filter(|(_, exchange)| exchange.session == session)
            .map(|(id, exchange)| match &exchange.role {
                // It will be told the same, or run nevertheless.
                Role::Request(asked) if exchange.status.is_none() && !asked.is_resumed => {
                    undecided.push(asked.wire);
                    (*id, false)
                }
                Role::Note | Role::Over | Role::End => (*id, false),
                _ => (*id, true),
            })
            .collect();
        through.release();
        for (id, _) in open.into_iter().filter(|(_, ends)| *ends) {
            through.close(id);
        }
        let mut refused = refused.to_vec();
        for parked in through.traffic.unpark_session() {
            // It was asked for a token and has not run, unless it is the stream of an answer that began; what nobody called
            // is said anew in each session.
            if let Role::Request(asked) = parked.role
                && asked.purpose.call().is_some()
                && !asked.is_resumed
            {
                self.engine.let_go(asked.wire, now);
                refused.push(asked.wire);
            }
        }
        let through = Out { traffic: &mut self.traffic, actions: out, now };
        through.traffic.forget_streams();
        through.traffic.session = None;
        through.traffic.version = None;
        through.traffic.generation += 1;
        let error = CallError::Lost("the session ended".into());
        self.through(now, out, |engine, out| engine.renew(&refused, &undecided, &error, now, out));
    }
}
