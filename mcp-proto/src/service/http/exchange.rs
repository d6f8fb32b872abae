//! One HTTP request whose answer is not there yet.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::{Context, Poll};

use super::super::dispatch;
use super::super::job::Job;
use super::super::session::Shared;
use super::Reply;
use crate::codec::sse::{write_comment, write_event};
use crate::http::endpoint::{Settings, unknown_session};
use crate::http::exchange::Silence;
use crate::http::media::Accepts;
use crate::http::reply::{Reply as Body, events_head};
use crate::http::session::{NO_STREAM, already_open, not_resumable};
use crate::http::writer::Writer;
use crate::http::{Endpoint, Response, ResponseHead};
use crate::time::{Instant, UnixTime};

/// Bytes of events that one piece of a body holds, about. A client that does not read has the driver hold one or two.
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
    /// How much of `body` is handed over. All of it is never: then it begins anew.
    handed: usize,
    silence: Silence,
    over: bool,
}

enum Kind {
    Modern(Body),
    Legacy(Writer),
    /// The one stream of a 2024-11-05 session: everything the server sends.
    Sse,
    /// A message that is answered elsewhere.
    Accepted,
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
        asked: bool,
        now: Instant,
    ) -> Option<Self> {
        let settings = endpoint.settings();
        let mut state = shared.lock();
        let streaming = state.streaming.as_mut().filter(|streaming| !streaming.router.is_ended())?;
        let reader = streaming.router.open_post(accepts.sse);
        drop(state);
        let writer = Writer::post(reader, accepts, asked, settings);
        Some(Self::new(shared, Kind::Legacy(writer), settings, now))
    }

    /// The GET stream of a session, or one that is resumed.
    #[allow(clippy::result_large_err)] // the error is what is sent
    pub(crate) fn stream_of(
        shared: &Arc<Shared>,
        endpoint: &Endpoint,
        last_event_id: Option<&str>,
        now: Instant,
    ) -> Result<Self, Response> {
        let settings = endpoint.settings();
        let mut state = shared.lock();
        let state = &mut *state;
        let Some(streaming) = state.streaming.as_mut().filter(|streaming| !streaming.router.is_ended())
        else {
            return Err(unknown_session(None));
        };
        let reader = match last_event_id {
            Some(id) => streaming.router.resume(id).ok_or_else(not_resumable)?,
            None => streaming.router.open_get().ok_or_else(already_open)?,
        };
        streaming.replaced(&reader);
        streaming.settle(&mut state.connection, &mut state.out);
        let writer = Writer::get(reader, settings);
        Ok(Self::new(shared, Kind::Legacy(writer), settings, now))
    }

    fn new(shared: &Arc<Shared>, kind: Kind, settings: &Settings, now: Instant) -> Self {
        Self {
            shared: Arc::clone(shared),
            jobs: Vec::new(),
            kind,
            head: None,
            body: Vec::new(),
            handed: 0,
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
            Kind::Legacy(writer) => writer.reader().map_or(NO_STREAM, |reader| reader.stream().number()),
            _ => 0,
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
            self.hand_over(out);
            let mut state = self.shared.lock();
            state.unwritten = self.body.len() - self.handed;
            state.written();
            return Poll::Ready(true);
        }
        if self.over { Poll::Ready(false) } else { Poll::Pending }
    }

    fn hand_over(&mut self, out: &mut Vec<u8>) {
        if self.handed == 0 && self.body.len() <= PIECE && out.is_empty() {
            core::mem::swap(out, &mut self.body);
            return;
        }
        let rest = self.body.get(self.handed..).unwrap_or_default();
        let piece = rest.get(..PIECE).unwrap_or(rest);
        out.extend_from_slice(piece);
        self.handed += piece.len();
        if self.handed == self.body.len() {
            (self.body, self.handed) = (Vec::new(), 0);
        }
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
        self.shared.tick(now, unix);
        dispatch::timeout(&self.shared, now, &mut self.jobs);
        self.shared.lock().wake_driver();
        self.settle();
        // What waits to be written shows the same.
        if self.over || !self.silence.is_over(now) || !self.body.is_empty() {
            return;
        }
        match &mut self.kind {
            Kind::Modern(body) => {
                body.keep_alive(&mut self.body);
                self.head = self.head.take().or_else(|| body.take_head());
            }
            Kind::Legacy(writer) => {
                let mut state = self.shared.lock();
                if let Some(streaming) = &mut state.streaming {
                    writer.keep_alive(&mut streaming.router, &mut self.body);
                }
                self.head = self.head.take().or_else(|| writer.take_head());
            }
            Kind::Sse => write_comment(&mut self.body, ""),
            Kind::Accepted => {}
        }
    }

    fn wait(&mut self, cx: &mut Context<'_>) {
        let mut state = self.shared.lock();
        let state = &mut *state;
        match (&self.kind, &mut state.streaming) {
            (Kind::Legacy(writer), Some(streaming)) => {
                if let Some(reader) = writer.reader() {
                    streaming.wait(reader, cx.waker());
                }
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
                if body.is_plain()
                    && let Some((text, end)) = state.connection.drain_sole(&mut state.out)
                {
                    body.end_plainly(&text, end);
                    self.body = text;
                } else {
                    let out = &mut self.body;
                    state.connection.drain(&mut state.out, |text, mark| body.message(text, mark.end, out));
                }
                state.taken(self.body.len());
                self.head = self.head.take().or_else(|| body.take_head());
                self.over = body.is_over() || state.aborted;
            }
            Kind::Legacy(writer) => {
                let Some(streaming) = &mut state.streaming else { return };
                if writer.is_get(&streaming.router) {
                    // What was marked while the client was slow.
                    streaming.settle(&mut state.connection, &mut state.out);
                }
                self.over = writer.write(&mut streaming.router, PIECE, &mut self.body);
                self.head = self.head.take().or_else(|| writer.take_head());
                if self.over {
                    // Who waited for the client to read has nobody to wait for.
                    state.written();
                }
            }
            Kind::Sse => {
                if state.out.is_empty() {
                    state.connection.flush_subscriptions(&mut state.out);
                }
                for line in state.out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let _ = write_event(&mut self.body, None, Some("message"), line);
                }
                state.out.clear();
                state.taken(self.body.len());
                self.over = state.aborted;
            }
            Kind::Accepted => {}
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
            Kind::Legacy(writer) => {
                let mut state = self.shared.lock();
                if let Some(streaming) = &mut state.streaming {
                    if let Some(reader) = writer.reader() {
                        streaming.forget(reader);
                    }
                    writer.release(&mut streaming.router);
                }
                state.written();
            }
            Kind::Accepted => {}
        }
    }
}

impl core::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Exchange").field("over", &self.over).finish_non_exhaustive()
    }
}
