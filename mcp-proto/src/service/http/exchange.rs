//! One HTTP request whose answer is not there yet.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::{Context, Poll};

use super::super::dispatch;
use super::super::job::Job;
use super::super::session::{Shared, State};
use super::Reply;
use crate::codec::sse::{write_comment, write_event};
use crate::http::endpoint::Settings;
use crate::http::exchange::Silence;
use crate::http::media::Accepts;
use crate::http::reply::{Reply as Body, events_head};
use crate::http::streams::{Progress, Reader};
use crate::http::{Endpoint, Response, ResponseHead};
use crate::time::{Instant, UnixTime};

/// Bytes of events that one piece of a body holds, about.
const PIECE: usize = 64 << 10;

/// A response in the making. Dropping it says that the client is gone: that cancels a request of
/// 2026-07-28, and lets a legacy client come back for the rest.
#[must_use = "dropping it says that the client is gone"]
pub struct Exchange {
    shared: Arc<Shared>,
    jobs: Vec<Job>,
    kind: Kind,
    head: Option<ResponseHead>,
    body: Vec<u8>,
    silence: Silence,
    over: bool,
}

enum Kind {
    Modern(Body),
    Legacy(Legacy),
    /// The one stream of a 2024-11-05 session: everything the server sends.
    Sse,
    /// A message that is answered elsewhere.
    Accepted,
}

struct Legacy {
    /// `None` once the response is complete.
    reader: Option<Reader>,
    accepts: Accepts,
    settings: Settings,
    /// It is a stream of events.
    begun: bool,
    /// A stream that a GET opened.
    get: bool,
}

impl Exchange {
    pub(crate) fn modern(shared: &Arc<Shared>, endpoint: &Endpoint, accepts: Accepts, now: Instant) -> Self {
        let settings = endpoint.settings();
        let body = Body::new(accepts, settings.events);
        Self::new(shared, Kind::Modern(body), settings, now)
    }

    /// A stream for a POST of a session. `None` if the session has ended.
    pub(crate) fn post(
        shared: &Arc<Shared>,
        endpoint: &Endpoint,
        accepts: Accepts,
        now: Instant,
    ) -> Option<Self> {
        let mut state = shared.lock();
        let streaming = state.streaming.as_mut().filter(|streaming| !streaming.is_ended())?;
        let (_, reader) = streaming.streams.open_post();
        streaming.opened();
        drop(state);
        Some(Self::legacy(shared, endpoint, reader, accepts, false, now))
    }

    /// The GET stream of a session, or one that is resumed.
    #[allow(clippy::result_large_err)] // the error is what is sent
    pub(crate) fn stream_of(
        shared: &Arc<Shared>,
        endpoint: &Endpoint,
        last_event_id: Option<&str>,
        now: Instant,
    ) -> Result<Self, Response> {
        let mut state = shared.lock();
        let state = &mut *state;
        let Some(streaming) = state.streaming.as_mut().filter(|streaming| !streaming.is_ended()) else {
            return Err(crate::http::endpoint::unknown_session(None));
        };
        let reader = match last_event_id {
            Some(id) => streaming.streams.resume(id).map_err(|_| {
                Response::refused(400, "`Last-Event-ID` names no event that can be resumed from")
            })?,
            None => streaming
                .streams
                .open_get()
                .map_err(|_| Response::refused(409, "the session has a GET stream already"))?,
        };
        streaming.opened();
        streaming.settle(&mut state.connection, &mut state.out);
        let accepts = Accepts { json: false, sse: true };
        Ok(Self::legacy(shared, endpoint, reader, accepts, true, now))
    }

    fn legacy(
        shared: &Arc<Shared>,
        endpoint: &Endpoint,
        reader: Reader,
        accepts: Accepts,
        get: bool,
        now: Instant,
    ) -> Self {
        let settings = endpoint.settings();
        let legacy = Legacy { reader: Some(reader), accepts, settings: settings.clone(), begun: false, get };
        Self::new(shared, Kind::Legacy(legacy), settings, now)
    }

    fn new(shared: &Arc<Shared>, kind: Kind, settings: &Settings, now: Instant) -> Self {
        Self {
            shared: Arc::clone(shared),
            jobs: Vec::new(),
            kind,
            head: None,
            body: Vec::new(),
            silence: Silence::new(settings.keep_alive, now),
            over: false,
        }
    }

    /// The stream of a 2024-11-05 client, which begins with where to post.
    pub(crate) fn sse(shared: &Arc<Shared>, endpoint: &Endpoint, post_to: &str, now: Instant) -> Self {
        let mut exchange = Self::new(shared, Kind::Sse, endpoint.settings(), now);
        exchange.head = Some(events_head(200));
        // Its path is ours, and the rest is a number: there is nothing in it that an event cannot hold.
        let _ = write_event(&mut exchange.body, None, Some("endpoint"), post_to.as_bytes());
        exchange
    }

    /// The answer to a message whose own answer goes elsewhere.
    pub(crate) fn accepted(shared: &Arc<Shared>, endpoint: &Endpoint, now: Instant) -> Self {
        let mut exchange = Self::new(shared, Kind::Accepted, endpoint.settings(), now);
        exchange.head = Some(ResponseHead::new(202));
        exchange.over = true;
        exchange
    }

    pub(crate) const fn jobs_mut(&mut self) -> &mut Vec<Job> {
        &mut self.jobs
    }

    /// The number of the stream that a POST of a session opened.
    pub(crate) fn stream(&self) -> u64 {
        match &self.kind {
            Kind::Legacy(Legacy { reader: Some(reader), .. }) => reader.stream().number(),
            _ => u64::MAX,
        }
    }

    /// All of it, if all of it is there.
    pub(crate) fn into_reply(mut self) -> Reply {
        self.settle();
        if self.over
            && self.jobs.is_empty()
            && let Some(head) = self.head.take()
        {
            let body = core::mem::take(&mut self.body);
            return Reply::Full(Response { head, body });
        }
        Reply::Exchange(self)
    }

    /// The next call that needs more than one poll: spawn it. It ends by itself.
    pub fn next_job(&mut self) -> Option<Job> {
        self.jobs.pop()
    }

    /// Ready once the head is known.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<ResponseHead> {
        self.settle();
        if self.head.is_none() && !self.over {
            self.wait(cx);
            self.settle();
        }
        match self.head.take() {
            Some(head) => Poll::Ready(head),
            // It has ended without one: nobody will read it.
            None if self.over => Poll::Ready(ResponseHead::new(202)),
            None => Poll::Pending,
        }
    }

    /// Appends the next piece of the body. Ready with `false` once there is no more.
    pub fn poll_body(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<bool> {
        if self.body.is_empty() {
            self.settle();
        }
        if self.body.is_empty() && !self.over {
            self.wait(cx);
            self.settle();
        }
        if !self.body.is_empty() {
            if out.is_empty() {
                core::mem::swap(out, &mut self.body);
            } else {
                out.append(&mut self.body);
            }
            self.shared.lock().written();
            return Poll::Ready(true);
        }
        if self.over { Poll::Ready(false) } else { Poll::Pending }
    }

    /// The moment at which to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.over {
            return None;
        }
        let connection = self.shared.lock().connection.next_deadline();
        connection.into_iter().chain(self.silence.deadline()).min()
    }

    /// Lets time pass. Poll again afterwards, and spawn the jobs that came of it.
    pub fn handle_timeout(&mut self, now: Instant, unix: UnixTime) {
        super::tick(&self.shared, now, unix);
        dispatch::timeout(&self.shared, now, &mut self.jobs);
        self.shared.lock().wake_driver();
        self.settle();
        if self.over || !self.silence.is_over(now) {
            return;
        }
        match &mut self.kind {
            Kind::Modern(body) => {
                body.keep_alive(&mut self.body);
                self.head = self.head.take().or_else(|| body.take_head());
            }
            Kind::Legacy(legacy) if legacy.accepts.sse => {
                let mut state = self.shared.lock();
                let (head, out) = (&mut self.head, &mut self.body);
                if !legacy.begin(&mut state, head, out) {
                    write_comment(out, "");
                }
            }
            Kind::Legacy(_) => {}
            Kind::Sse => write_comment(&mut self.body, ""),
            Kind::Accepted => {}
        }
    }

    fn wait(&mut self, cx: &mut Context<'_>) {
        let mut state = self.shared.lock();
        let state = &mut *state;
        match (&self.kind, &mut state.streaming) {
            (Kind::Legacy(Legacy { reader: Some(reader), .. }), Some(streaming)) => {
                streaming.wait(reader, cx.waker());
            }
            _ => state.set_driver(cx.waker()),
        }
    }

    /// Takes what there is to write, up to a piece.
    fn settle(&mut self) {
        if self.over || !self.body.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        let state = &mut *state;
        match &mut self.kind {
            Kind::Modern(body) => {
                if state.out.is_empty() {
                    state.connection.flush_subscriptions(&mut state.out);
                }
                let out = &mut self.body;
                state.connection.drain(&mut state.out, |text, mark| body.message(text, mark.end, out));
                self.head = self.head.take().or_else(|| body.take_head());
                self.over = body.is_over() || state.aborted;
            }
            Kind::Legacy(legacy) => self.over = legacy.settle(state, &mut self.head, &mut self.body),
            Kind::Sse => {
                if state.out.is_empty() {
                    state.connection.flush_subscriptions(&mut state.out);
                }
                for line in state.out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let _ = write_event(&mut self.body, None, Some("message"), line);
                }
                state.out.clear();
                self.over = state.aborted;
            }
            Kind::Accepted => {}
        }
    }
}

impl Legacy {
    /// Whether the response is complete.
    fn settle(&mut self, state: &mut State, head: &mut Option<ResponseHead>, out: &mut Vec<u8>) -> bool {
        let Some(reader) = &self.reader else { return true };
        let Some(streaming) = &mut state.streaming else { return true };
        if streaming.is_ended() || (self.get && streaming.is_closing()) {
            head.get_or_insert_with(|| events_head(200));
            self.release(state);
            return true;
        }
        if self.accepts.sse && streaming.is_let_go(reader) {
            self.begin(state, head, out);
            if let (Some(streaming), Some(reader)) = (&mut state.streaming, &self.reader) {
                while streaming.streams.write(reader, PIECE, out) == Progress::More {}
            }
            self.release(state);
            return true;
        }
        let whole = self.accepts.json
            && !self.begun
            && (!self.accepts.sse || self.settings.events == crate::http::Events::WhenNeeded);
        if whole && let Some(text) = streaming.streams.take_single(reader) {
            let response = Response::json(200, text);
            *head = Some(response.head);
            *out = response.body;
            self.release(state);
            return true;
        }
        if !self.accepts.sse {
            return self.settle_json(state, head, out);
        }
        if self.get {
            self.begin(state, head, out);
        }
        let Some(streaming) = &mut state.streaming else { return true };
        let Some(reader) = &self.reader else { return true };
        if !self.begun && streaming.streams.pending(reader) == 0 {
            if !streaming.streams.is_over(reader) {
                return false;
            }
            // There was nothing to answer.
            *head = Some(ResponseHead::new(202));
            self.release(state);
            return true;
        }
        self.begin(state, head, out);
        let Some(streaming) = &mut state.streaming else { return true };
        let Some(reader) = &self.reader else { return true };
        match streaming.streams.write(reader, PIECE, out) {
            Progress::Pending | Progress::More => false,
            Progress::Finished | Progress::Stale => {
                self.release(state);
                true
            }
        }
    }

    /// For a client that takes no events: only the last message counts.
    fn settle_json(&mut self, state: &mut State, head: &mut Option<ResponseHead>, out: &mut Vec<u8>) -> bool {
        let Some(streaming) = &mut state.streaming else { return true };
        let Some(reader) = &self.reader else { return true };
        if !streaming.streams.is_over(reader) {
            return false;
        }
        match streaming.streams.take_last(reader) {
            Some(text) => {
                let response = Response::json(200, text);
                *head = Some(response.head);
                *out = response.body;
            }
            None => *head = Some(ResponseHead::new(202)),
        }
        self.release(state);
        true
    }

    /// Makes the response a stream of events. Whether it was none before.
    fn begin(&mut self, state: &mut State, head: &mut Option<ResponseHead>, out: &mut Vec<u8>) -> bool {
        let (Some(streaming), Some(reader)) = (&mut state.streaming, &self.reader) else { return false };
        if core::mem::replace(&mut self.begun, true) {
            return false;
        }
        *head = Some(events_head(200));
        streaming.streams.prime(reader, self.settings.retry, out);
        true
    }

    fn release(&mut self, state: &mut State) {
        if let (Some(reader), Some(streaming)) = (self.reader.take(), &mut state.streaming) {
            streaming.closed(reader);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        match &mut self.kind {
            Kind::Modern(_) | Kind::Sse => {
                // What has become a task goes on by itself. [spec: basic/patterns/cancellation]
                let calls = self.shared.lock().abort();
                for call in calls {
                    call.cancel();
                }
            }
            Kind::Legacy(legacy) => legacy.release(&mut self.shared.lock()),
            Kind::Accepted => {}
        }
    }
}

impl core::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Exchange").field("over", &self.over).finish_non_exhaustive()
    }
}
