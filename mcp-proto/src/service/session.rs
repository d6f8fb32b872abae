//! One byte stream with handlers on it: what an adapter drives.
//!
//! The adapter owns bytes, timers and spawning; everything else is here. Its loop:
//!
//! ```text
//!   bytes read ──► spare / commit ──► process ──► next_job ──► spawn
//!                                        │
//!   bytes written ◄── output / advance ◄─┘◄── poll_ready: a handler finished, something changed
//!   timer        ──► handle_timeout
//! ```

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Service;
use super::call::Call;
use super::calls::Calls;
use super::http::Streaming;
use super::job::Job;
use crate::codec::{Frame, LineBuffer, OutBuf};
use crate::server::{Change, Connection, Principal, RequestKey};
use crate::time::{Instant, UnixTime};

/// Bytes that are read ahead while the output is at its high-water mark. More than the pipe or the socket
/// pair of a child holds, so that the end of the input behind them is seen.
const READ_AHEAD: usize = 256 << 10;

/// Room for output that an exchange over HTTP keeps.
const ROOM: usize = 64 << 10;

/// The service's end of one byte stream.
pub struct Session {
    shared: Arc<Shared>,
    lines: LineBuffer,
    writing: OutBuf,
    jobs: Vec<Job>,
    /// Messages wait in `lines` until output is written.
    held_back: bool,
    /// No more bytes will come.
    ending: bool,
    /// No more messages will come: all of the bytes are handled, too.
    input_ended: bool,
    drain_deadline: Option<Instant>,
}

/// What the stream and the handlers of its calls share.
pub(crate) struct Shared {
    pub(crate) service: Service,
    /// Whom the stream belongs to: that never changes.
    pub(crate) principal: Option<Principal>,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) connection: Connection,
    /// The same caller with what the newest token allows.
    pub(crate) caller: Option<Principal>,
    /// Bytes that are due, not yet taken by the adapter.
    pub(crate) out: Vec<u8>,
    /// Bytes taken by the adapter but not yet written.
    pub(crate) unwritten: usize,
    pub(crate) calls: Calls,
    pub(crate) now: Instant,
    pub(crate) unix: UnixTime,
    driver: Option<Waker>,
    /// A legacy session over HTTP: where its messages go.
    pub(crate) streaming: Option<Box<Streaming>>,
    /// Handlers that wait until the peer reads.
    writers: Vec<Waker>,
    /// Nothing more is wanted: the stream is gone or the time is up.
    pub(crate) aborted: bool,
}

impl Shared {
    pub(crate) fn new(service: &Service, principal: Option<Principal>, connection: Connection) -> Arc<Self> {
        Arc::new(Self {
            service: service.clone(),
            principal: principal.clone(),
            state: Mutex::new(State {
                caller: principal,
                connection,
                out: Vec::new(),
                unwritten: 0,
                calls: Calls::default(),
                now: Instant::ZERO,
                unix: UnixTime::default(),
                driver: None,
                streaming: None,
                writers: Vec::new(),
                aborted: false,
            }),
        })
    }

    /// The time goes on.
    pub(crate) fn tick(&self, now: Instant, unix: UnixTime) {
        let mut state = self.lock();
        state.now = now;
        state.unix = unix;
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes when the output that waits where a request's messages go is below the high-water mark.
    pub(crate) async fn writable(&self, request: RequestKey) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.aborted || state.backlog(request) < self.high_water() {
                return Poll::Ready(());
            }
            if !state.writers.iter().any(|w| w.will_wake(cx.waker())) {
                state.writers.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// At least one byte, or nothing would ever be handled.
    fn high_water(&self) -> usize {
        self.service.config().limits.output_high_water.max(1)
    }

    /// Marks a change and wakes the stream if someone on it wants to know.
    pub(crate) fn publish(&self, change: &Change<'_>) {
        let mut state = self.lock();
        if state.connection.publish(change) {
            state.wake_driver();
        }
    }
}

impl State {
    /// There is output, or something has ended.
    pub(crate) fn wake_driver(&mut self) {
        if let Some(streaming) = &mut self.streaming {
            streaming.settle(&mut self.connection, &mut self.out);
        } else if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Keeps the waker of the one who writes the output.
    pub(crate) fn set_driver(&mut self, waker: &Waker) {
        match &mut self.driver {
            Some(driver) => driver.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// An exchange over HTTP has taken the output, and so many bytes of it wait there. Its room goes back: an
    /// exchange may last, and be silent.
    pub(crate) fn taken(&mut self, unwritten: usize) {
        self.unwritten = unwritten;
        if self.out.capacity() > ROOM {
            self.out = Vec::new();
        }
    }

    /// Whether someone waits for output.
    pub(crate) const fn has_driver(&self) -> bool {
        self.driver.is_some()
    }

    /// The output was written, or some of it.
    pub(crate) fn written(&mut self) {
        self.writers.drain(..).for_each(Waker::wake);
    }

    /// Cancels whatever runs for the stream, for good.
    pub(crate) fn abort(&mut self) -> Vec<Arc<Call>> {
        self.aborted = true;
        self.connection.forget_all();
        self.out.clear();
        self.wake_driver();
        self.written();
        self.calls.take_all()
    }

    /// Bytes that wait where the messages of a request go.
    fn backlog(&self, request: RequestKey) -> usize {
        match &self.streaming {
            Some(streaming) => streaming.router.backlog(&self.connection, request),
            None => self.out.len() + self.unwritten,
        }
    }
}

impl Session {
    /// A fresh stream for `service`.
    #[must_use]
    pub fn new(service: &Service) -> Self {
        Self::with_principal(service, None)
    }

    /// A fresh stream of an authenticated caller.
    #[must_use]
    pub fn with_principal(service: &Service, principal: Option<Principal>) -> Self {
        let config = service.config();
        let shared = Shared::new(service, principal, Connection::new(Arc::clone(config)));
        service.register(&shared);
        Self {
            lines: LineBuffer::new(config.limits.max_message),
            shared,
            writing: OutBuf::default(),
            jobs: Vec::new(),
            held_back: false,
            ending: false,
            input_ended: false,
            drain_deadline: None,
        }
    }

    /// For the messages from now on the caller has other roles and scopes: a stream that outlives a request
    /// gets a new token with each. Calls that run keep what they began with.
    ///
    /// Returns whether that was done. It is not if this is another caller, or if the stream had none: then
    /// the message must not be handed in.
    #[must_use = "a message of another caller must not be handed in"]
    pub fn renew_principal(&mut self, principal: &Principal) -> bool {
        let same = self.shared.principal.as_ref() == Some(principal);
        if same {
            self.shared.lock().caller = Some(principal.clone());
        }
        same
    }

    /// Whether to read on. `false` while the peer does not read what it is sent and has sent more than a
    /// little meanwhile: stop reading then, so that it is slowed down instead of buffered for. The little
    /// is 256 KiB, which are kept but not handled: behind them the end of the input may be.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.ending
            && !self.shared.lock().aborted
            && (self.is_below_mark() || self.lines.buffered() < READ_AHEAD)
    }

    /// Whether messages that were read wait until output is written. Call [`process`](Self::process)
    /// again after each [`advance`](Self::advance) then.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.held_back
    }

    fn is_below_mark(&self) -> bool {
        self.shared.lock().out.len() + self.writing.len() < self.shared.high_water()
    }

    /// Room for at least `want` bytes to be read into; tell how many came with [`commit`](Self::commit).
    pub fn spare(&mut self, want: usize) -> &mut [u8] {
        self.lines.spare(want)
    }

    /// The first `got` bytes of the room were filled.
    pub fn commit(&mut self, got: usize) {
        self.lines.commit(got);
    }

    /// Handles what was read. Handlers are polled once in place; those that do not finish come out of
    /// [`next_job`](Self::next_job). Returns early when the output reaches the high-water mark, and
    /// [holds back](Self::holds_back) what is left: call it again when some was written.
    pub fn process(&mut self, now: Instant, unix: UnixTime) {
        self.shared.tick(now, unix);
        while !self.input_ended {
            self.held_back = !self.is_below_mark();
            if self.held_back {
                return;
            }
            let frame = if self.ending { self.lines.finish() } else { self.lines.next_frame() };
            match frame {
                Some(Frame::Line(frame)) => super::dispatch::frame(&self.shared, frame, now, &mut self.jobs),
                Some(_) => super::dispatch::too_long(&self.shared),
                None if self.ending => self.finish_input(),
                None => return,
            }
        }
    }

    /// All that came is handled, and nothing follows.
    fn finish_input(&mut self) {
        self.input_ended = true;
        let mut state = self.shared.lock();
        let State { connection, out, calls, .. } = &mut *state;
        connection.end_of_input(out);
        let unanswerable = calls.input_ended();
        drop(state);
        unanswerable.into_iter().for_each(|(call, key)| {
            call.deliver(&key, Err(super::ask::connection_closed()));
        });
    }

    /// The next call that needs more than one poll: spawn it. It ends by itself, also when the client
    /// cancels or the stream goes away.
    pub fn next_job(&mut self) -> Option<Job> {
        self.jobs.pop()
    }

    /// No more bytes will come. What came is handled, also a last line without its end. Accepted calls go
    /// on; subscriptions end with their result; questions to the client are given up, for no answer can
    /// come.
    ///
    /// All of it may take `drain`, the writing included. Then the session aborts: what still runs is
    /// cancelled, and what is not written is not sent.
    pub fn end_of_input(&mut self, now: Instant, unix: UnixTime, drain: Duration) {
        if self.ending {
            return;
        }
        self.ending = true;
        self.drain_deadline = Some(now + drain);
        self.process(now, unix);
    }

    /// The stream is broken, or the server must stop now: everything that runs is cancelled, nothing more
    /// is written.
    pub fn abort(&mut self) {
        self.jobs.clear();
        let calls = self.shared.lock().abort();
        for call in calls {
            call.cancel();
        }
        let len = self.writing.len();
        self.writing.advance(len);
    }

    /// The bytes to write next; say how many were with [`advance`](Self::advance).
    pub fn output(&mut self) -> &[u8] {
        if self.writing.is_empty() {
            let mut state = self.shared.lock();
            let State { connection, out, .. } = &mut *state;
            if out.is_empty() {
                connection.flush_subscriptions(out);
            }
            core::mem::swap(out, self.writing.bytes_mut());
            state.unwritten = self.writing.len();
        }
        self.writing.pending()
    }

    /// So many bytes of [`output`](Self::output) were written.
    pub fn advance(&mut self, written: usize) {
        self.writing.advance(written);
        let mut state = self.shared.lock();
        state.unwritten = self.writing.len();
        if !state.writers.is_empty() && state.out.len() + state.unwritten < self.shared.high_water() {
            state.written();
        }
    }

    /// Ready when there is output, or when the session [is done](Self::is_done). Otherwise the waker is
    /// kept and called then.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.output().is_empty() || self.is_done() {
            return Poll::Ready(());
        }
        let mut state = self.shared.lock();
        if !state.out.is_empty() {
            return Poll::Ready(());
        }
        state.set_driver(cx.waker());
        drop(state);
        // Something may have been published between the look and the registration.
        if self.output().is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// The moment at which to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let (connection, now, unix) = {
            let state = self.shared.lock();
            (state.connection.next_deadline(), state.now, state.unix)
        };
        let task = self.shared.service.next_task_deadline(now, unix);
        connection.into_iter().chain(self.drain_deadline).chain(task).min()
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Instant, unix: UnixTime) {
        self.shared.tick(now, unix);
        super::dispatch::timeout(&self.shared, now, &mut self.jobs);
        self.shared.service.expire_tasks(unix);
        if self.drain_deadline.is_some_and(|deadline| deadline <= now) {
            self.drain_deadline = None;
            self.abort();
        }
    }

    /// Whether the stream can be closed: the input has ended, everything is answered and written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let state = self.shared.lock();
        state.aborted
            || (self.input_ended
                && self.jobs.is_empty()
                && state.calls.is_empty()
                && state.connection.in_flight() == 0
                && state.out.is_empty()
                && self.writing.is_empty())
    }
}

/// The stream is gone: whatever still runs on it is cancelled.
impl Drop for Session {
    fn drop(&mut self) {
        self.abort();
    }
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session").field("input_ended", &self.input_ended).finish_non_exhaustive()
    }
}
