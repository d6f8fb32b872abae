//! A byte stream, the time and the tasks of a runtime, as hyper wants them.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{self, ReadBufCursor};

use crate::{Io, Runtime, Timer, clock, room};

/// What every connection of HTTP/2 begins with. [RFC 9113, section 3.4]
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A peer that is told no while it still sends would hear nothing of it if the connection were closed under its
/// hands, for what is not read makes the system reset it. For so long it may go on, with so many bytes.
const LINGER: Duration = Duration::from_secs(2);
const MOST_DISCARDED: usize = 64 << 20;

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// A stream with what was read ahead of hyper.
pub(super) struct Stream<I, R: Runtime> {
    io: I,
    runtime: R,
    ahead: Vec<u8>,
    closing: Closing<R::Timer>,
    /// A request was refused that had a body: perhaps the peer still sends it.
    refused: Arc<AtomicBool>,
}

enum Closing<T> {
    NotYet,
    /// The peer was told that nothing follows.
    Told,
    /// What it still sends is read and forgotten.
    Lingering(T, usize),
}

impl<I: Io, R: Runtime> Stream<I, R> {
    pub(super) fn new(io: I, runtime: R, refused: Arc<AtomicBool>) -> Self {
        Self { io, runtime, ahead: Vec::new(), closing: Closing::NotYet, refused }
    }

    /// Reads until it is clear what is spoken. `None` if the peer hangs up before.
    pub(super) async fn version(&mut self) -> io::Result<Option<Version>> {
        loop {
            let seen = self.ahead.len().min(PREFACE.len());
            if self.ahead[..seen] != PREFACE[..seen] {
                return Ok(Some(Version::Http1));
            }
            if seen == PREFACE.len() {
                return Ok(Some(Version::Http2));
            }
            let Self { io, ahead, .. } = &mut *self;
            let mut read = |cx: &mut Context<'_>, room: &mut [u8]| {
                let got = ready!(io.poll_read(cx, room))?;
                ahead.extend_from_slice(&room[..got]);
                Poll::Ready(io::Result::Ok(got))
            };
            if poll_fn(|cx| room::with(|room| read(cx, room))).await? == 0 {
                return Ok(None);
            }
        }
    }
}

// It is never pinned: `Io` is polled by reference.
impl<I, R: Runtime> Unpin for Stream<I, R> {}

impl<I: Io, R: Runtime> rt::Read for Stream<I, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { io, ahead, .. } = &mut *self;
        if !ahead.is_empty() {
            let take = ahead.len().min(buf.remaining());
            buf.put_slice(&ahead[..take]);
            ahead.drain(..take);
            if ahead.is_empty() {
                *ahead = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        room::with(|room| {
            let most = buf.remaining().min(room.len());
            if most > 0 {
                let got = ready!(io.poll_read(cx, &mut room[..most]))?;
                buf.put_slice(&room[..got]);
            }
            Poll::Ready(Ok(()))
        })
    }
}

impl<I: Io, R: Runtime> rt::Write for Stream<I, R> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.io.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if pieces.iter().all(|piece| piece.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        self.io.poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, runtime, closing, refused, .. } = &mut *self;
        if matches!(closing, Closing::NotYet) {
            ready!(io.poll_flush(cx))?;
            ready!(io.poll_close(cx))?;
            *closing = Closing::Told;
            if refused.load(Ordering::Relaxed) {
                *closing = Closing::Lingering(runtime.timer(runtime.now() + LINGER), 0);
            }
        }
        loop {
            let read = room::with(|room| io.poll_read(cx, room));
            match (read, &mut *closing) {
                // Nothing is unread, so nothing is lost.
                (Poll::Pending, Closing::Told | Closing::NotYet) | (Poll::Ready(Ok(0) | Err(_)), _) => {
                    return Poll::Ready(Ok(()));
                }
                (Poll::Pending, Closing::Lingering(timer, _)) => return timer.poll(cx).map(Ok),
                (Poll::Ready(Ok(got)), Closing::Lingering(_, discarded)) => {
                    *discarded += got;
                    if *discarded > MOST_DISCARDED {
                        return Poll::Ready(Ok(()));
                    }
                }
                (Poll::Ready(Ok(got)), _) => {
                    *closing = Closing::Lingering(runtime.timer(runtime.now() + LINGER), got);
                }
            }
        }
    }
}

/// The time and the tasks of a runtime.
#[derive(Debug, Clone)]
pub(crate) struct Within<R>(pub(crate) R);

// A runtime is a handle: nothing in it is pinned.
impl<R> Unpin for Within<R> {}

impl<R: Runtime> rt::Timer for Within<R> {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Sleep::new(&self.0, self.0.now() + duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Sleep::new(&self.0, clock::from_std(deadline)))
    }

    fn now(&self) -> Instant {
        clock::to_std(self.0.now())
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep<R::Timer>>() {
            Some(mut sleep) => {
                sleep.0.get_mut().unwrap_or_else(|e| e.into_inner()).reset(clock::from_std(deadline));
            }
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

impl<R: Runtime, F: Future<Output = ()> + Send + 'static> rt::Executor<F> for Within<R> {
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}

/// Timers are not `Sync`, and hyper wants them to be; no one ever waits for the lock.
struct Sleep<T>(Mutex<T>);

impl<T: Timer> Sleep<T> {
    fn new<R: Runtime<Timer = T>>(runtime: &R, deadline: mcp_proto::time::Instant) -> Self {
        Self(Mutex::new(runtime.timer(deadline)))
    }
}

// It is never pinned: `Timer` is polled by reference.
impl<T> Unpin for Sleep<T> {}

impl<T: Timer> Future for Sleep<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.get_mut().unwrap_or_else(|e| e.into_inner()).poll(cx)
    }
}

impl<T: Timer + 'static> rt::Sleep for Sleep<T> {}
