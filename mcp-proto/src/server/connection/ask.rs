//! Requests of ours: what a legacy client is asked, and what it answers.

use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::Connection;
use crate::model::method;
use crate::model::{InputRequest, InputRequired, Str};
use crate::rpc::{self, Error, RequestId};
use crate::server::channel::Channel;
use crate::server::event::{Answer, Event, Violation};
use crate::server::features::ClientFeatures;
use crate::server::inflight::Kind;
use crate::server::legacy::{Ask, Session};
use crate::server::pending::{AskKey, Delivery, Pending, RequestKey};
use crate::server::route::Routes;
use crate::time::Instant;

impl Connection {
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
        if let Some(required) = slot.features.missing([question]) {
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
        if let Some(required) = session.features.missing([question]) {
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
        let (session, routes) = self.session_for_ask()?;
        if let Some(required) = session.features.missing([question]) {
            return Err(AskError::MissingCapability(required));
        }
        if !session.expresses(question) {
            return Err(AskError::Inexpressible);
        }
        let mut number = 0;
        routes.task_line(out, task, true, |out| {
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
        let (session, routes) = self.session_for_ask()?;
        let mut number = 0;
        routes.line(out, None, |out| number = session.ping(deadline, out));
        Ok(AskKey { connection: self.number, number })
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

    pub(super) fn response<'b>(
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
        name: Str,
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
        let stream = request.and_then(|key| self.inflight.get(key)).map(|slot| slot.stream);
        let (session, routes) = self.session_for_ask()?;
        if !session.expresses(question) {
            return Err(AskError::Inexpressible);
        }
        let mut number = 0;
        let ask = Ask::new(request, deadline);
        routes.line(out, stream, |out| number = session.ask(ask, question, None, out));
        Ok(AskKey { connection: self.number, number })
    }

    fn session_for_ask(&mut self) -> Result<(&mut Session, &mut Routes), AskError> {
        let most = self.config.limits.max_client_requests;
        let session = self.session.as_mut().ok_or(AskError::Modern)?;
        if self.input_ended {
            return Err(AskError::InputEnded);
        }
        if session.open_asks() >= most {
            return Err(AskError::TooMany);
        }
        Ok((session, &mut self.routes))
    }

    /// Sends the questions that a client of 2026-07-28 would be answered with.
    pub(super) fn ask_round(
        &mut self,
        key: RequestKey,
        input: &InputRequired,
        out: &mut Vec<u8>,
    ) -> Delivery {
        let limits = self.config.limits.clone();
        let Some(slot) = self.inflight.get_mut(key) else { return Delivery::Discarded };
        let stream = slot.stream;
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
                self.routes.line(out, Some(stream), |out| {
                    session.ask(ask, question, None, out);
                });
            }
        }
        Delivery::Written
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
    /// The client did not declare what it would have to: all of this.
    MissingCapability(ClientFeatures),
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
