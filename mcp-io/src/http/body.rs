//! The body of a response.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use mcp_proto::http::ResponseHead;
use mcp_proto::service::http::Exchange;
use mcp_proto::time::Instant;

use crate::{Runtime, Timer, clock};

/// The body of a response of a [`Responder`](super::Responder).
///
/// Dropping it before its end says that the client is gone.
pub struct HttpBody<R: Runtime>(Kind<R>);

enum Kind<R: Runtime> {
    Full(Bytes),
    Running(Box<Running<R>>),
}

impl<R: Runtime> HttpBody<R> {
    pub(super) fn full(bytes: Vec<u8>) -> Self {
        Self(Kind::Full(bytes.into()))
    }

    pub(super) fn running(running: Box<Running<R>>) -> Self {
        Self(Kind::Running(running))
    }
}

impl<R: Runtime> Body for HttpBody<R> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => None,
            Kind::Full(bytes) => Some(std::mem::take(bytes)),
            Kind::Running(running) => std::task::ready!(running.poll_piece(cx)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Running(_) => SizeHint::default(),
        }
    }
}

// What is in it is polled by reference.
impl<R: Runtime> Unpin for HttpBody<R> {}

impl<R: Runtime> fmt::Debug for HttpBody<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBody").finish_non_exhaustive()
    }
}

/// An exchange with the runtime that drives it.
pub(super) struct Running<R: Runtime> {
    exchange: Exchange,
    runtime: R,
    alarm: Option<(Instant, R::Timer)>,
    _permit: Permit,
}

impl<R: Runtime> Running<R> {
    pub(super) fn new(exchange: Exchange, runtime: R, permit: Permit) -> Self {
        Self { exchange, runtime, alarm: None, _permit: permit }
    }

    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<ResponseHead> {
        loop {
            self.spawn_jobs();
            if let Poll::Ready(head) = self.exchange.poll_head(cx) {
                return Poll::Ready(head);
            }
            std::task::ready!(self.poll_alarm(cx));
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            self.spawn_jobs();
            let mut piece = Vec::new();
            match self.exchange.poll_body(cx, &mut piece) {
                Poll::Ready(true) => return Poll::Ready(Some(piece.into())),
                Poll::Ready(false) => return Poll::Ready(None),
                Poll::Pending => std::task::ready!(self.poll_alarm(cx)),
            }
        }
    }

    fn spawn_jobs(&mut self) {
        while let Some(job) = self.exchange.next_job() {
            self.runtime.spawn(job);
        }
    }

    /// Lets time pass if the deadline of the exchange has come. Ready then.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.exchange.next_deadline() else { return Poll::Pending };
        let (set_for, timer) = self.alarm.get_or_insert_with(|| (deadline, self.runtime.timer(deadline)));
        if *set_for != deadline {
            timer.reset(deadline);
            *set_for = deadline;
        }
        std::task::ready!(timer.poll(cx));
        self.alarm = None;
        self.exchange.handle_timeout(self.runtime.now(), clock::unix_now());
        Poll::Ready(())
    }
}

/// So many requests are being handled.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    /// One more, unless there are so many already.
    pub(super) fn enter(&self, most: usize) -> Option<Permit> {
        let permit = Permit(self.clone());
        (self.0.fetch_add(1, Ordering::Relaxed) < most).then_some(permit)
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The right to be handled.
#[derive(Debug)]
pub(super) struct Permit(InFlight);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// So many bytes of bodies are in memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Budget(Arc<AtomicUsize>);

impl Budget {
    /// A share that is empty so far.
    pub(super) fn reserve(&self) -> Reserved {
        Reserved { budget: self.clone(), bytes: 0 }
    }
}

/// A share of a budget, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    budget: Budget,
    bytes: usize,
}

impl Reserved {
    /// Takes so much more, unless all shares together would be more than the most.
    pub(super) fn grow(&mut self, more: usize, most: usize) -> bool {
        let fits = |taken: usize| taken.checked_add(more).filter(|sum| *sum <= most);
        let taken = self.budget.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if taken {
            self.bytes += more;
        }
        taken
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
