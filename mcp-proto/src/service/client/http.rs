//! A client over HTTP: what an adapter drives.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::{Context, Poll};

use super::builder::Hooks;
use super::hub::Hub;
use super::machine::{Http, Machine};
use super::respond::Job;
use super::shared::Shared;
use crate::client::http::{Action, ExchangeId, Fields, Frame, Lost, Reader, Settings};
use crate::client::{Config, Event, Verdict};
use crate::model::Root;
use crate::time::Instant;

/// The client's end of a connection over HTTP. The adapter owns sockets, timers and spawning; everything else
/// is here.
///
/// ```text
///   start
///   next_action ──► Open: send the request ──► head ──► body, body, … ──► end
///               └─► Close: drop the response, or the request
///   next_job ──► spawn
///   poll_ready: a call was made, a responder finished ──► process
///   timer ──► handle_timeout
///   is_done ──► drop the link
/// ```
///
/// Each of these calls can make new actions and jobs: take all of them after it. What is handed in of an
/// exchange that is over means nothing.
#[derive(Debug)]
pub struct HttpLink {
    hub: Hub,
    readers: BTreeMap<ExchangeId, Reader>,
    actions: VecDeque<Action>,
}

impl HttpLink {
    pub(super) fn new(
        config: Arc<Config>,
        settings: Settings,
        shared: Arc<Shared>,
        hooks: Box<Hooks>,
        roots: Vec<Root>,
    ) -> Self {
        let hub = Hub::new(Machine::http(config, settings), shared, hooks, roots);
        Self { hub, readers: BTreeMap::new(), actions: VecDeque::new() }
    }

    /// Begins: asks the server what it speaks, unless that is known.
    pub fn start(&mut self, now: Instant) {
        if let Some(event) = self.hub.machine.start(now) {
            self.hub.route(event, now);
        }
        self.hub.work(now);
    }

    /// What was found out about the server, or assumed so far, if it [learns](Self::learns) anything. To be kept
    /// for the URL, and given to [`ClientBuilder::assume`](super::ClientBuilder::assume).
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.hub.machine.verdict().filter(|_| self.learns())
    }

    /// Whether what it finds out is about the server. One that speaks no revision without a handshake, or is
    /// told not to, does not ask for it.
    #[must_use]
    pub fn learns(&self) -> bool {
        self.hub.machine.config().preferred_modern().is_some()
    }

    /// Makes the calls that wait to be made.
    pub fn process(&mut self, now: Instant) {
        self.hub.work(now);
    }

    /// The next thing to do.
    pub fn next_action(&mut self) -> Option<Action> {
        if self.actions.is_empty()
            && let Machine::Http(http) = &mut self.hub.machine
        {
            self.actions.extend(http.actions.drain(..));
        }
        let action = self.actions.pop_front()?;
        if let Action::Close(exchange) = &action {
            self.readers.remove(exchange);
        }
        Some(action)
    }

    /// The head of a response.
    pub fn head<F: Fields + ?Sized>(&mut self, exchange: ExchangeId, status: u16, fields: &F, now: Instant) {
        let Machine::Http(http) = &mut self.hub.machine else { return };
        let reader = http.client.head(exchange, status, fields, now, &mut http.actions);
        self.readers.insert(exchange, reader);
        self.hub.work(now);
    }

    /// Bytes of the body of a response.
    pub fn body(&mut self, exchange: ExchangeId, mut bytes: &[u8], now: Instant) {
        // Out of the map meanwhile, for a frame borrows it.
        let Some(mut reader) = self.readers.remove(&exchange) else { return };
        while let Some(frame) = reader.next_frame(&mut bytes) {
            Self::take(&mut self.hub, exchange, frame, now);
        }
        self.readers.insert(exchange, reader);
        self.hub.work(now);
    }

    fn take(hub: &mut Hub, exchange: ExchangeId, frame: Frame<'_>, now: Instant) {
        let Machine::Http(http) = &mut hub.machine else { return };
        if let Some(event) = http.client.handle(frame, now, &mut http.actions) {
            Self::route(hub, exchange, event, now);
        }
        hub.settle(now);
    }

    fn route(hub: &mut Hub, exchange: ExchangeId, event: Event<'_>, now: Instant) {
        let Some(batch) = hub.route(event, now) else { return };
        for message in batch {
            let Machine::Http(http) = &mut hub.machine else { return };
            if let Some(event) = http.client.handle_member(exchange, message, now, &mut http.actions) {
                hub.route(event, now);
            }
            hub.settle(now);
        }
    }

    /// The body has ended; or there is no response, or not all of it.
    pub fn end(&mut self, exchange: ExchangeId, outcome: Result<(), Lost>, now: Instant) {
        let Machine::Http(http) = &mut self.hub.machine else { return };
        let Http { client, actions } = &mut **http;
        match (self.readers.remove(&exchange), outcome) {
            (Some(mut reader), outcome) => {
                if let Some(event) = client.end(&mut reader, outcome, now, actions) {
                    Self::route(&mut self.hub, exchange, event, now);
                }
            }
            (None, Err(lost)) => client.lost(exchange, lost, now, actions),
            (None, Ok(())) => client.lost(exchange, Lost("no response".into()), now, actions),
        }
        self.hub.work(now);
    }

    /// The next responder that needs more than one poll: spawn it. It ends by itself.
    pub fn next_job(&mut self) -> Option<Job> {
        self.hub.jobs.pop_front()
    }

    /// Ready when there is something to [`process`](Self::process), or when the link
    /// [is done](Self::is_done). Otherwise the waker is kept and called then.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_done() {
            return Poll::Ready(());
        }
        self.hub.shared.poll_inbox(cx)
    }

    /// The moment at which to call [`handle_timeout`](Self::handle_timeout), if nothing happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.hub.next_deadline()
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.hub.work(now);
    }

    /// Whether all is over: no handle is left or the client was closed, and the session is ended; or the
    /// server cannot be used. Requests that are still on their way can be dropped.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let Machine::Http(http) = &self.hub.machine else { return true };
        self.hub.unusable
            || (self.hub.closing
                && self.actions.is_empty()
                && http.actions.is_empty()
                && http.client.is_closed())
    }
}
