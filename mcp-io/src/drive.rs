//! The loop: one future for each byte stream.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_proto::server::Principal;
use mcp_proto::service::{Service, Session};
use mcp_proto::time::Instant;

use crate::clock;

/// Turns of the loop within one poll. A peer that never pauses gets no more before others have theirs.
const TURNS: usize = 32;

/// A byte stream in both directions.
///
/// As with every poll function, `Pending` means that the waker of `cx` will be called. Dropping a future
/// that polls this must lose no bytes: what was read is in `buf`, or still unread.
pub trait Io: Send {
    /// Reads into `buf`, which is not empty. `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// Any. Those that say that the peer has gone end the session quietly.
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes from `buf`, which is not empty; says how many bytes it took.
    ///
    /// # Errors
    /// Any. Those that say that the peer has gone end the session quietly.
    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>>;

    /// As [`poll_write`](Self::poll_write), from several pieces one after the other, not all of them empty. It is
    /// of use to those who say so with [`is_write_vectored`](Self::is_write_vectored); others write the first piece.
    ///
    /// # Errors
    /// As [`poll_write`](Self::poll_write).
    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match pieces.iter().find(|piece| !piece.is_empty()) {
            Some(piece) => self.poll_write(cx, piece),
            None => Poll::Ready(Ok(0)),
        }
    }

    /// Whether several pieces cost no more than one. A large body is not copied then to be written with its head.
    fn is_write_vectored(&self) -> bool {
        false
    }

    /// Passes on what was taken but not yet written.
    ///
    /// # Errors
    /// As [`poll_write`](Self::poll_write).
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Tells the peer that nothing will follow. Called once all is flushed.
    ///
    /// # Errors
    /// Any; they are ignored.
    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What the loop needs of an asynchronous runtime.
pub trait Runtime: Clone + Send + Sync + 'static {
    /// Wakes the loop at a moment.
    type Timer: Timer;

    /// A pipe or a socket that tells when it is ready.
    #[cfg(unix)]
    type Fd: Io;

    /// The moment on the monotonic clock of [`clock`].
    fn now(&self) -> Instant;

    /// A timer that goes off at `deadline`.
    fn timer(&self, deadline: Instant) -> Self::Timer;

    /// Runs `future` beside the caller, to its end.
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static);

    /// Watches one standard stream of the process or of a child.
    ///
    /// # Errors
    /// The system's, if the descriptor cannot be watched.
    #[cfg(unix)]
    fn watch(&self, end: crate::End) -> io::Result<Self::Fd>;
}

/// A timer that can be moved.
pub trait Timer: Send {
    /// Moves it.
    fn reset(&mut self, deadline: Instant);

    /// Ready from the deadline on.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// What is set for each stream.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Who is at the other end, if that is known.
    pub principal: Option<Principal>,
    /// The time from the end of the input to the end of the stream, at most. 5 seconds.
    ///
    /// A stream ends as soon as all that was accepted is answered and the peer has taken the answers. Calls
    /// that take longer are cancelled. A peer that does not read is not waited for any longer either: what
    /// it has not taken by then is not sent, and an answer that comes at the last moment gets no time of
    /// its own.
    pub drain: Duration,
    /// Hang up on a peer whose first byte cannot begin a JSON-RPC message. Off.
    ///
    /// A web page can make a browser send a request to any TCP port, and a line of its body would be
    /// taken for a message.
    pub json_only: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { principal: None, drain: Duration::from_secs(5), json_only: false }
    }
}

/// Serves one byte stream until its input ends or `shutdown` completes, then finishes the calls that were
/// accepted, writes their answers and closes the stream.
///
/// Dropping the future cancels the calls that it has accepted.
///
/// # Errors
/// Those of `io`. A peer that has gone (broken pipe, connection reset) is no error: its calls are
/// cancelled, and the future completes.
pub async fn drive<R: Runtime, I: Io>(
    service: &Service,
    io: I,
    runtime: &R,
    settings: Settings,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    service.use_clock(clock::unix_now);
    let mut shutdown = pin!(shutdown);
    let mut stream = Stream {
        session: Session::with_principal(service, settings.principal),
        io,
        runtime,
        alarm: Alarm::new(runtime),
        drain: settings.drain,
        room: ReadSize::default(),
        unseen: settings.json_only,
        closing: None,
        flushed: true,
    };
    if !poll_fn(|cx| stream.poll(cx, shutdown.as_mut())).await? {
        return Ok(());
    }
    poll_fn(|cx| stream.poll_close(cx)).await
}

struct Stream<'r, R: Runtime, I> {
    session: Session,
    io: I,
    runtime: &'r R,
    alarm: Alarm<'r, R>,
    drain: Duration,
    room: ReadSize,
    /// The first byte is still to be judged.
    unseen: bool,
    /// The input has ended; by when all has to be over.
    closing: Option<Instant>,
    flushed: bool,
}

enum Wrote {
    Nothing,
    Something,
    Blocked,
}

impl<R: Runtime, I: Io> Stream<'_, R, I> {
    /// Ready with whether there is a peer left to close the stream for.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Poll<io::Result<bool>> {
        if self.closing.is_none() && shutdown.poll(cx).is_ready() {
            self.end_of_input();
        }
        for _ in 0..TURNS {
            let (wrote, read) = match self.turn(cx) {
                Ok(moved) => moved,
                Err(error) => {
                    self.session.abort();
                    return Poll::Ready(if is_gone(&error) { Ok(false) } else { Err(error) });
                }
            };
            if self.session.is_done() {
                return Poll::Ready(Ok(true));
            }
            if read || matches!(wrote, Wrote::Something) {
                continue;
            }
            // While the peer does not read, more output changes nothing.
            if !matches!(wrote, Wrote::Blocked) && self.session.poll_ready(cx).is_ready() {
                continue;
            }
            if self.poll_alarm(cx).is_ready() {
                continue;
            }
            return Poll::Pending;
        }
        let _ = self.poll_alarm(cx);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes once, then reads once.
    fn turn(&mut self, cx: &mut Context<'_>) -> io::Result<(Wrote, bool)> {
        let wrote = self.write(cx)?;
        if matches!(wrote, Wrote::Something) && self.session.holds_back() {
            self.process();
        }
        Ok((wrote, self.read(cx)?))
    }

    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<Wrote> {
        let mut wrote = Wrote::Nothing;
        let pending = self.session.output();
        if !pending.is_empty() {
            match self.io.poll_write(cx, pending)? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => {
                    let all = written == pending.len();
                    self.session.advance(written);
                    self.flushed = false;
                    wrote = Wrote::Something;
                    if !all {
                        return Ok(wrote);
                    }
                }
                Poll::Pending => return Ok(Wrote::Blocked),
            }
        }
        if !self.flushed {
            self.flushed = self.io.poll_flush(cx)?.is_ready();
        }
        Ok(wrote)
    }

    /// Whether anything came.
    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if !self.session.wants_input() {
            return Ok(false);
        }
        let buf = self.session.spare(self.room.0);
        let len = buf.len();
        let got = match self.io.poll_read(cx, buf) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(got)) => got,
            // A TLS peer that hangs up without saying so.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            Poll::Ready(Err(error)) => return Err(error),
        };
        if got == 0 {
            self.end_of_input();
            return Ok(true);
        }
        if self.unseen
            && let Some(first) = buf[..got].iter().find(|byte| !byte.is_ascii_whitespace())
        {
            if !matches!(first, b'{' | b'[' | b'\xEF') {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            self.unseen = false;
        }
        self.session.commit(got);
        self.room.adapt(got, len);
        self.process();
        Ok(true)
    }

    fn process(&mut self) {
        self.session.process(self.runtime.now(), clock::unix_now());
        self.spawn_jobs();
    }

    fn end_of_input(&mut self) {
        let now = self.runtime.now();
        self.closing = Some(now + self.drain);
        self.session.end_of_input(now, clock::unix_now(), self.drain);
        self.spawn_jobs();
    }

    fn spawn_jobs(&mut self) {
        while let Some(job) = self.session.next_job() {
            self.runtime.spawn(job);
        }
    }

    /// Lets time pass if the session's deadline has come. Ready then.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.session.next_deadline() else { return Poll::Pending };
        std::task::ready!(self.alarm.poll_until(cx, deadline));
        self.session.handle_timeout(self.runtime.now(), clock::unix_now());
        self.spawn_jobs();
        Poll::Ready(())
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.flushed {
            match self.io.poll_flush(cx) {
                Poll::Ready(Ok(())) => self.flushed = true,
                Poll::Ready(Err(error)) if is_gone(&error) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        // Whether the peer hears of the end is its own affair: all answers are written.
        if self.flushed && self.io.poll_close(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        match self.closing {
            Some(deadline) if self.runtime.now() < deadline => self.alarm.poll_until(cx, deadline).map(Ok),
            _ => Poll::Ready(Ok(())),
        }
    }
}

/// How much is read at a time. It grows while reads fill it.
pub(crate) struct ReadSize(pub(crate) usize);

impl ReadSize {
    const LEAST: usize = 8 << 10;
    const MOST: usize = 64 << 10;

    /// A read found `got` bytes for `room`.
    pub(crate) fn adapt(&mut self, got: usize, room: usize) {
        if got == room {
            self.0 = (self.0 * 2).min(Self::MOST);
        } else if got < room / 4 {
            self.0 = (self.0 / 2).max(Self::LEAST);
        }
    }
}

impl Default for ReadSize {
    fn default() -> Self {
        Self(Self::LEAST)
    }
}

/// One timer for deadlines that move.
pub(crate) struct Alarm<'r, R: Runtime> {
    runtime: &'r R,
    set: Option<(Instant, R::Timer)>,
}

impl<'r, R: Runtime> Alarm<'r, R> {
    pub(crate) const fn new(runtime: &'r R) -> Self {
        Self { runtime, set: None }
    }

    /// Ready once `deadline` has come. A timer that is set for an earlier moment is left alone until it
    /// goes off: deadlines move with every request, mostly away.
    pub(crate) fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        loop {
            let (set_for, timer) = self.set.get_or_insert_with(|| (deadline, self.runtime.timer(deadline)));
            if *set_for > deadline {
                timer.reset(deadline);
                *set_for = deadline;
            }
            std::task::ready!(timer.poll(cx));
            if *set_for >= deadline || self.runtime.now() >= deadline {
                self.set = None;
                return Poll::Ready(());
            }
            timer.reset(deadline);
            *set_for = deadline;
        }
    }
}

/// Whether an error says no more than that the peer is no longer there.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionReset | ConnectionAborted | NotConnected)
}
