//! The machine of either transport, as one type.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crate::client::request::Request;
use crate::client::{
    AskId, CallError, CallId, CallOptions, Config, Connection, Event, Parked, ServerFacts, Verdict, http,
};
use crate::codec::OutBuf;
use crate::model::{InputResponse, InputResponses, SubscriptionFilter};
use crate::rpc;
use crate::time::Instant;

pub(super) enum Machine {
    Bytes(Box<Bytes>),
    Http(Box<Http>),
}

pub(super) struct Bytes {
    pub(super) connection: Connection,
    pub(super) out: OutBuf,
}

pub(super) struct Http {
    pub(super) client: http::Client,
    pub(super) actions: Vec<http::Action>,
}

/// A request of any type.
pub(super) trait Erased: Send {
    fn call(&self, machine: &mut Machine, options: &CallOptions, now: Instant) -> Result<CallId, CallError>;
}

impl<R: Request + Send> Erased for R {
    fn call(&self, machine: &mut Machine, options: &CallOptions, now: Instant) -> Result<CallId, CallError> {
        // How params serialise may be the caller's own code.
        let call = AssertUnwindSafe(|| machine.call(self, options, now));
        catch_unwind(call).unwrap_or_else(|_| Err(CallError::Invalid("serialising it panicked".into())))
    }
}

/// Does the same to the machine of either transport.
macro_rules! through {
    ($self:ident, $machine:ident, $out:ident => $does:expr) => {
        match $self {
            Machine::Bytes(bytes) => {
                let ($machine, $out) = (&mut bytes.connection, bytes.out.bytes_mut());
                $does
            }
            Machine::Http(http) => {
                let ($machine, $out) = (&mut http.client, &mut http.actions);
                $does
            }
        }
    };
}

impl Machine {
    pub(super) fn bytes(config: Arc<Config>) -> Self {
        Self::Bytes(Box::new(Bytes { connection: Connection::new(config), out: OutBuf::new() }))
    }

    pub(super) fn http(config: Arc<Config>, settings: http::Settings) -> Self {
        Self::Http(Box::new(Http { client: http::Client::new(config, settings), actions: Vec::new() }))
    }

    pub(super) fn start(&mut self, now: Instant) -> Option<Event<'static>> {
        through!(self, machine, out => machine.start(now, out))
    }

    fn call<R: Request>(
        &mut self,
        request: &R,
        options: &CallOptions,
        now: Instant,
    ) -> Result<CallId, CallError> {
        through!(self, machine, out => machine.call(request, options, now, out))
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<Event<'static>> {
        through!(self, machine, out => machine.handle_timeout(now, out))
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Bytes(bytes) => bytes.connection.next_deadline(),
            Self::Http(http) => http.client.next_deadline(),
        }
    }

    pub(super) fn answer(
        &mut self,
        call: CallId,
        responses: &InputResponses,
        now: Instant,
    ) -> Result<(), CallError> {
        through!(self, machine, out => machine.answer(call, responses, now, out))
    }

    pub(super) fn park(&mut self, call: CallId) -> Option<Parked> {
        match self {
            Self::Bytes(bytes) => bytes.connection.park(call),
            Self::Http(http) => http.client.park(call),
        }
    }

    pub(super) fn resume(
        &mut self,
        parked: Parked,
        responses: &InputResponses,
        options: &CallOptions,
        now: Instant,
    ) -> Result<CallId, CallError> {
        through!(self, machine, out => machine.resume(parked, responses, options, now, out))
    }

    pub(super) fn cancel(&mut self, call: CallId, reason: Option<&str>, now: Instant) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.connection.cancel(call, reason, bytes.out.bytes_mut()),
            Self::Http(http) => http.client.cancel(call, reason, now, &mut http.actions),
        }
    }

    pub(super) fn respond(&mut self, ask: AskId, answer: Result<InputResponse, rpc::Error>, now: Instant) {
        match self {
            Self::Bytes(bytes) => {
                bytes.connection.respond(ask, answer, bytes.out.bytes_mut());
            }
            Self::Http(http) => {
                http.client.respond(ask, answer, now, &mut http.actions);
            }
        }
    }

    pub(super) fn listen(
        &mut self,
        filter: SubscriptionFilter,
        options: &CallOptions,
        now: Instant,
    ) -> Result<CallId, CallError> {
        through!(self, machine, out => machine.listen(filter, options, now, out))
    }

    pub(super) fn relisten(&mut self, subscription: CallId, now: Instant) -> Result<(), CallError> {
        through!(self, machine, out => machine.relisten(subscription, now, out))
    }

    pub(super) fn notify(&mut self, method: &str, params: Option<&str>, now: Instant) -> bool {
        let write = |out: &mut Vec<u8>| out.extend_from_slice(params.unwrap_or_default().as_bytes());
        match self {
            Self::Bytes(bytes) => bytes.connection.notify(method, bytes.out.bytes_mut(), write),
            Self::Http(http) => http.client.notify(method, now, &mut http.actions, write),
        }
    }

    pub(super) fn server(&self) -> Option<&ServerFacts> {
        match self {
            Self::Bytes(bytes) => bytes.connection.server(),
            Self::Http(http) => http.client.server(),
        }
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        match self {
            Self::Bytes(bytes) => bytes.connection.verdict(),
            Self::Http(http) => http.client.verdict(),
        }
    }

    pub(super) fn config(&self) -> &Arc<Config> {
        match self {
            Self::Bytes(bytes) => bytes.connection.config(),
            Self::Http(http) => http.client.config(),
        }
    }

    /// Bytes that wait to be written; none over HTTP, where each message goes its own way.
    pub(super) fn backlog(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.out.len(),
            Self::Http(_) => 0,
        }
    }

    /// Nothing more is wanted of the server. On a byte stream its end says so.
    pub(super) fn close(&mut self, now: Instant) {
        if let Self::Http(http) = self {
            http.client.close(now, &mut http.actions);
        }
    }

    /// The token that was asked for, or none.
    pub(super) fn authorize(&mut self, token: Option<http::Token>, now: Instant) {
        match (self, token) {
            (Self::Http(http), Some(token)) => http.client.authorize(token, now, &mut http.actions),
            (Self::Http(http), None) => http.client.decline(now, &mut http.actions),
            (Self::Bytes(_), _) => {}
        }
    }
}
