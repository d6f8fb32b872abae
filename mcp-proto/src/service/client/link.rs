//! One byte stream of a client: what an adapter drives.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::{Context, Poll};

use super::builder::Hooks;
use super::hub::Hub;
use super::machine::Machine;
use super::respond::Job;
use super::shared::Shared;
use crate::client::{Config, Violation, ViolationKind};
use crate::codec::{Frame, LineBuffer};
use crate::model::Root;
use crate::time::Instant;

/// The client's end of one byte stream. The adapter owns bytes, timers and spawning; everything else is here.
///
/// ```text
///   start
///   bytes read ──► spare / commit ──► process ──► next_job ──► spawn
///                                        │
///   bytes written ◄── output / advance ◄─┘◄── poll_ready: a call was made, a responder finished
///   timer        ──► handle_timeout
///   end of the bytes ──► end_of_input ──► wants_restart? is_cut_off? ──► restart
///   is_done ──► close the stream, and drop the link
/// ```
///
/// After [`poll_ready`](Self::poll_ready) call [`process`](Self::process): calls are made there, where it is
/// known what time it is. Dropping the link fails what is open, with
/// [`CallError::Closed`](crate::client::CallError::Closed).
#[derive(Debug)]
pub struct Link {
    hub: Hub,
    lines: LineBuffer,
    /// Bytes of the output that answer what the server sent unasked.
    provoked: usize,
    is_ended: bool,
}

impl Link {
    pub(super) fn new(config: Arc<Config>, shared: Arc<Shared>, hooks: Box<Hooks>, roots: Vec<Root>) -> Self {
        let lines = LineBuffer::new(config.limits.max_message);
        let hub = Hub::new(Machine::bytes(config), shared, hooks, roots);
        Self { hub, lines, provoked: 0, is_ended: false }
    }

    /// Begins, on a fresh stream: asks the server what it speaks, unless that is known.
    pub fn start(&mut self, now: Instant) {
        self.is_ended = false;
        if let Some(event) = self.hub.machine.start(now) {
            self.hub.route(event, now);
        }
        self.hub.work(now);
    }

    /// Room for `want` bytes to be read into, at least one and at most 1 MiB; tell how many came with [`commit`](Self::commit).
    pub fn spare(&mut self, want: usize) -> &mut [u8] {
        self.lines.spare(want)
    }

    /// The first `got` bytes of the room were filled. Then [`process`](Self::process) them.
    pub fn commit(&mut self, got: usize) {
        self.lines.commit(got);
    }

    /// Whether to read on. `false` while the server does not read what its own requests made this side write.
    /// Calls never stop the reading, or two sides that write at once would wait for each other.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.is_ended && !self.is_over() && !self.is_flooded()
    }

    fn is_flooded(&self) -> bool {
        self.provoked >= self.hub.machine.config().limits.output_high_water.max(1)
    }

    /// Whether there is more to [`process`](Self::process), now that output was written. Look after each
    /// [`advance`](Self::advance).
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.hub.holds_back() || (self.lines.buffered() > 0 && !self.is_flooded() && !self.is_ended)
    }

    /// Makes the calls that wait to be made and handles what was read. Responders are polled once in place;
    /// those that do not finish come out of [`next_job`](Self::next_job).
    pub fn process(&mut self, now: Instant) {
        self.hub.work(now);
        while !self.is_over() && !self.is_flooded() {
            let Some(frame) = self.lines.next_frame() else { break };
            let before = self.hub.machine.backlog();
            Self::take(&mut self.hub, frame, now);
            self.provoked += self.hub.machine.backlog().saturating_sub(before);
            self.hub.settle(now);
        }
    }

    fn take(hub: &mut Hub, frame: Frame<'_>, now: Instant) {
        let line = match frame {
            Frame::Line(line) => line,
            Frame::TooLong { limit } => {
                let detail = alloc::format!("expected a message of at most {limit} bytes, found more");
                return hub.violation(Violation::new(ViolationKind::Malformed, detail, None));
            }
        };
        let Machine::Bytes(bytes) = &mut hub.machine else { return };
        let Some(event) = bytes.connection.handle(line, now, bytes.out.bytes_mut()) else { return };
        let Some(batch) = hub.route(event, now) else { return };
        for message in batch {
            let Machine::Bytes(bytes) = &mut hub.machine else { return };
            let event = bytes.connection.handle_member(message, now, bytes.out.bytes_mut());
            if let Some(event) = event {
                hub.route(event, now);
            }
            hub.settle(now);
        }
    }

    /// The next responder that needs more than one poll: spawn it. It ends by itself.
    pub fn next_job(&mut self) -> Option<Job> {
        self.hub.jobs.pop_front()
    }

    /// The bytes to write next; say how many were with [`advance`](Self::advance).
    #[must_use]
    pub fn output(&self) -> &[u8] {
        match &self.hub.machine {
            Machine::Bytes(bytes) => bytes.out.pending(),
            Machine::Http(_) => &[],
        }
    }

    /// What was meant for a stream that is gone is for no other.
    fn forget_output(&mut self) {
        let left = self.output().len();
        self.advance(left);
    }

    /// So many bytes of [`output`](Self::output) were written.
    pub fn advance(&mut self, written: usize) {
        let Machine::Bytes(bytes) = &mut self.hub.machine else { return };
        bytes.out.advance(written);
        self.provoked = self.provoked.min(bytes.out.len());
    }

    /// Ready when there is something to [`process`](Self::process) or to write, or when the link
    /// [is done](Self::is_done). Otherwise the waker is kept and called then.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.output().is_empty() || self.is_done() {
            return Poll::Ready(());
        }
        self.hub.shared.poll_inbox(cx)
    }

    /// Ready when there is something to [`process`](Self::process), whether or not the server takes what is to be
    /// written. Otherwise the waker is kept and called then.
    pub fn poll_calls(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.hub.shared.poll_inbox(cx)
    }

    /// Whether it pays to let others run before [`process`](Self::process), though there is something to do: more
    /// calls have ended than were made since, and whoever made them may be about to make another. All that are made
    /// by then go out in one write. Wait for it once, no longer: nothing says that they will.
    #[must_use]
    pub fn expects_calls(&self) -> bool {
        self.hub.expects_calls()
    }

    /// Whether nothing more is wanted of the server, though not all that is due to it may be written yet.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.is_over()
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

    /// No more bytes will come: the server closed its end, or broke off. What came is handled, also a last
    /// line without its end; then what is open fails. Only subscriptions, and calls that were not sent yet,
    /// are kept for [`restart`](Self::restart).
    pub fn end_of_input(&mut self, now: Instant) {
        if self.is_ended {
            return;
        }
        self.process(now);
        while !self.is_over()
            && let Some(frame) = self.lines.finish()
        {
            Self::take(&mut self.hub, frame, now);
            self.hub.settle(now);
        }
        self.is_ended = true;
        self.hub.stream_ended();
        let Machine::Bytes(bytes) = &mut self.hub.machine else { return };
        let event = bytes.connection.eof();
        self.forget_output();
        if let Some(event) = event {
            self.hub.route(event, now);
        }
        self.hub.settle(now);
    }

    /// Whether the server ended at the first message, which it did not know: start it again, then
    /// [`restart`](Self::restart).
    #[must_use]
    pub const fn wants_restart(&self) -> bool {
        self.hub.wants_restart
    }

    /// Whether a server that was of use has ended, and the client is not closed: start it again, if it can be, then
    /// [`restart`](Self::restart). Until then call [`process`](Self::process) and
    /// [`handle_timeout`](Self::handle_timeout) as before: calls wait, and may be given up.
    ///
    /// How often to do so is for the adapter to say; that it will be done it tells with
    /// [`will_restart`](Self::will_restart). To give up, drop the link.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.is_ended && !self.is_over() && self.hub.shared.server().is_some()
    }

    /// The server will be started again: those who [want to know](super::Client::restarts) are told.
    pub fn will_restart(&mut self) {
        if self.is_cut_off() {
            self.hub.shared.restarting();
        }
    }

    /// There is a new stream to the same server: begins again on it. Subscriptions are opened again.
    pub fn restart(&mut self, now: Instant) {
        self.end_of_input(now);
        self.forget_output();
        self.hub.wants_restart = false;
        self.lines = LineBuffer::new(self.hub.machine.config().limits.max_message);
        self.start(now);
    }

    /// Whether the stream is to be closed: no handle is left or the client was closed, and what was to be
    /// sent is sent; or the server cannot be used.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.hub.unusable || (self.hub.closing && (self.is_ended || self.output().is_empty()))
    }

    fn is_over(&self) -> bool {
        self.hub.unusable || self.hub.closing
    }
}
