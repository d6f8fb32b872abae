//! One POST of 2026-07-28 and its response.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::endpoint::{Endpoint, Post};
use super::head::ResponseHead;
use super::reply::Reply;
use crate::model::method;
use crate::model::{InputRequired, SubscriptionFilter};
use crate::server::channel::sealed::Sealed;
use crate::server::inflight::Slot;
use crate::server::route::End;
use crate::server::{
    Change, Channel, Config, Connection, Delivery, Event, Log, Pending, Progress, RequestKey,
};
use crate::time::Instant;

/// The server's side of one POST.
///
/// The bytes of the response's body are appended to `out`. After each call, see whether
/// [`take_head`](Self::take_head) has the head: it goes first. Once the exchange [is over](Self::is_over),
/// the body ends.
#[derive(Debug)]
pub struct Exchange {
    connection: Connection,
    reply: Reply,
    /// What the machine writes, before it is wrapped for the response.
    lines: Vec<u8>,
    silence: Silence,
}

/// When a stream was silent for too long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Silence {
    most: Option<Duration>,
    until: Option<Instant>,
}

impl Silence {
    pub(crate) fn new(most: Option<Duration>, now: Instant) -> Self {
        Self { most, until: most.map(|most| now + most) }
    }

    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// Whether it was; the time starts again.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        let over = self.until.is_some_and(|until| until <= now);
        if over {
            self.until = self.most.map(|most| now + most);
        }
        over
    }
}

impl Exchange {
    /// Begins with what [`Endpoint::take`] made of the request. A message that is no request is answered
    /// with 202 at once.
    pub fn start<'r>(
        endpoint: &Endpoint,
        post: Post<'r>,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> (Self, Option<Event<'r>>) {
        let settings = endpoint.settings();
        let mut exchange = Self {
            connection: Connection::modern(Arc::clone(endpoint.config())),
            reply: Reply::new(post.accepts, settings.events),
            lines: Vec::new(),
            silence: Silence::new(settings.keep_alive, now),
        };
        let wants_answer = post.has_request();
        let event = exchange.connection.take_parsed(post.parsed, now, &mut exchange.lines);
        if !wants_answer {
            exchange.reply.message(b"", Some(End::Done), out);
        }
        exchange.settle(out);
        (exchange, event)
    }

    /// The head of the response, once, as soon as it is known.
    pub const fn take_head(&mut self) -> Option<ResponseHead> {
        self.reply.take_head()
    }

    /// Whether the response is complete.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.reply.is_over()
    }

    /// The client has closed the response: that cancels the request. Whatever is answered now is discarded.
    /// [spec: basic/patterns/cancellation]
    pub fn peer_closed(&mut self) -> Option<RequestKey> {
        self.connection.forget_any()
    }

    /// The moment at which to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.is_over() {
            return None;
        }
        self.connection.next_deadline().into_iter().chain(self.silence.deadline()).min()
    }

    /// Lets time pass. Call it until it returns `None`.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Event<'static>> {
        let event = self.connection.handle_timeout(now, &mut self.lines);
        self.settle(out);
        if self.silence.is_over(now) {
            self.reply.keep_alive(out);
        }
        event
    }

    /// See [`Connection::acknowledge`].
    pub fn acknowledge(
        &mut self,
        pending: Pending<method::Listen>,
        honored: &SubscriptionFilter,
        out: &mut Vec<u8>,
    ) -> Delivery {
        self.through(out, |connection, lines| connection.acknowledge(pending, honored, lines))
    }

    /// See [`Connection::publish`].
    pub fn publish(&mut self, change: &Change<'_>) -> bool {
        self.connection.publish(change)
    }

    /// See [`Connection::flush_subscriptions`].
    pub fn flush_subscriptions(&mut self, out: &mut Vec<u8>) {
        self.through(out, |connection, lines| connection.flush_subscriptions(lines));
    }

    /// Ends a subscription gracefully, with its result. A call goes on.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.through(out, |connection, lines| connection.close(lines));
    }

    /// See [`Connection::abandon`].
    pub fn abandon(&mut self, key: RequestKey, out: &mut Vec<u8>) -> Delivery {
        self.through(out, |connection, lines| connection.abandon(key, lines))
    }

    /// Does something with the machine, and moves what it writes into the response.
    fn through<T>(
        &mut self,
        out: &mut Vec<u8>,
        use_it: impl FnOnce(&mut Connection, &mut Vec<u8>) -> T,
    ) -> T {
        let done = use_it(&mut self.connection, &mut self.lines);
        self.settle(out);
        done
    }

    /// Moves what the machine wrote into the response.
    fn settle(&mut self, out: &mut Vec<u8>) {
        self.connection.drain(&mut self.lines, |text, mark| self.reply.message(text, mark.end, out));
    }
}

impl Sealed for Exchange {
    fn slot(&self, key: RequestKey) -> Option<&Slot> {
        self.connection.slot(key)
    }

    fn finish(
        &mut self,
        key: RequestKey,
        granted: bool,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>, &Slot, &Config) -> End,
    ) -> Delivery {
        self.through(out, |connection, lines| connection.finish(key, granted, lines, write))
    }

    fn bridge(&mut self, key: RequestKey, input: &InputRequired, out: &mut Vec<u8>) -> Delivery {
        self.through(out, |connection, lines| connection.bridge(key, input, lines))
    }

    fn begin_task(&mut self, key: RequestKey, task: &[u8]) {
        self.connection.begin_task(key, task);
    }
}

impl Channel for Exchange {
    fn progress_of(&mut self, key: RequestKey, progress: Progress<'_>, out: &mut Vec<u8>) -> Delivery {
        self.through(out, |connection, lines| connection.progress_of(key, progress, lines))
    }

    fn log_of(&mut self, key: RequestKey, log: Log<'_>, out: &mut Vec<u8>) -> Delivery {
        self.through(out, |connection, lines| connection.log_of(key, log, lines))
    }
}
