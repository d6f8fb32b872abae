//! A child that runs.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::process::ExitStatus;
use std::task::{Context, Poll};
use std::time::Duration;

use super::body::{Body, Times};
use super::system::{self, Reading, Watch, Writing};
use super::tail::Tail;
use crate::{Io, Runtime, Timer};

/// A child that is killed goes at once, unless the system itself keeps it.
const KILLED: Duration = Duration::from_secs(1);

/// Reads of standard error within one poll.
const TURNS: usize = 16;

/// A [`Child`](super::Child) that runs: its standard streams as a byte stream, and its end.
///
/// The stream ends when the child does, also if something that it has started holds its standard output open.
///
/// Dropped, it takes the child with it, with the steps of [`shutdown`](Self::shutdown) in a thread. That thread ends
/// with this process at the latest: await `shutdown` where it must not leave children that ignore the end of
/// their input.
pub struct Process<R: Runtime> {
    runtime: R,
    input: Option<Writing<R>>,
    output: Option<Reading<R>>,
    errors: Option<Reading<R>>,
    tail: Tail,
    watch: Watch<R>,
    times: Times,
    exit: Option<Exit>,
    /// After the pipes: the end of its input is the first that it sees of ours.
    body: Body,
}

/// How a child ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Exit {
    /// Its status; `None` if it is not known, because it was taken by someone else or the system keeps the child.
    pub status: Option<ExitStatus>,
    /// The end of what it wrote to standard error, if that was [captured](super::Stderr::Capture): at most 8 KiB,
    /// without control characters.
    pub last_words: String,
}

impl<R: Runtime> Process<R> {
    pub(super) fn new(runtime: &R, mut child: std::process::Child, times: Times) -> io::Result<Self> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // From here on an error ends the child.
        let body = Body::new(child, times);
        let child = body.child().ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            runtime: runtime.clone(),
            input: stdin.map(|pipe| Writing::new(runtime, pipe)).transpose()?,
            output: stdout.map(|pipe| Reading::new(runtime, pipe)).transpose()?,
            errors: stderr.map(|pipe| Reading::new(runtime, pipe)).transpose()?,
            tail: Tail::default(),
            watch: Watch::new(runtime, child)?,
            times,
            exit: None,
            body,
        })
    }

    /// The number of the process. `None` once its status is taken.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.body.child().map(|child| super::body::lock(child).id())
    }

    /// Ready once the child has ended. Its status is had from [`shutdown`](Self::shutdown).
    pub fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.exit.is_some() {
            return Poll::Ready(());
        }
        self.listen(cx);
        self.watch.poll(cx)
    }

    /// Ends the child and what it has started: closes its standard input and waits, tells it to end (SIGTERM, to
    /// its group) and waits, kills. What it still writes is thrown away. A child that has ended, or that ends at
    /// the end of its input, gets no signal.
    ///
    /// Processes that it has moved to a group of their own are not reached. Dropping the future leaves the rest to
    /// a thread, as dropping this does. Called again it says the same.
    pub async fn shutdown(&mut self) -> Exit {
        if let Some(exit) = &self.exit {
            return exit.clone();
        }
        self.input = None;
        if !self.is_gone_within(self.times.closed).await {
            self.body.terminate();
            if !self.is_gone_within(self.times.told).await {
                self.body.kill();
                self.is_gone_within(KILLED).await;
            }
        }
        let status = self.body.reap();
        self.hear_out();
        let exit = Exit { status, last_words: self.tail.text() };
        (self.output, self.errors) = (None, None);
        self.exit.insert(exit).clone()
    }

    /// Whether the child ends in time, and all that have its standard output.
    async fn is_gone_within(&mut self, most: Duration) -> bool {
        let mut timer = self.runtime.timer(self.runtime.now() + most);
        let mut scratch = [0; 4096];
        poll_fn(|cx| {
            self.listen(cx);
            let mut turns = 0;
            while let Some(output) = &mut self.output {
                match output.poll_read(cx, &mut scratch) {
                    Poll::Ready(Ok(0) | Err(_)) => self.output = None,
                    Poll::Ready(Ok(_)) if turns < TURNS => turns += 1,
                    Poll::Ready(Ok(_)) => {
                        cx.waker().wake_by_ref();
                        break;
                    }
                    Poll::Pending => break,
                }
            }
            if self.watch.poll(cx).is_ready() && self.output.is_none() {
                return Poll::Ready(true);
            }
            timer.poll(cx).map(|()| false)
        })
        .await
    }

    /// Reads what the child says on standard error.
    fn listen(&mut self, cx: &mut Context<'_>) {
        let mut words = [0; 2048];
        for _ in 0..TURNS {
            let Some(errors) = &mut self.errors else { return };
            match errors.poll_read(cx, &mut words) {
                Poll::Pending => return,
                Poll::Ready(Ok(0) | Err(_)) => self.errors = None,
                Poll::Ready(Ok(got)) => self.tail.push(&words[..got]),
            }
        }
        cx.waker().wake_by_ref();
    }

    /// Reads what the child has said, all of it: nothing follows.
    fn hear_out(&mut self) {
        let mut words = [0; 2048];
        let Some(errors) = &mut self.errors else { return };
        // As much as a pipe holds.
        for _ in 0..512 {
            match errors.read(&mut words) {
                Ok(0) | Err(_) => return,
                Ok(got) => self.tail.push(&words[..got]),
            }
        }
    }
}

impl<R: Runtime> Io for Process<R> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.listen(cx);
        let Some(output) = &mut self.output else { return Poll::Ready(Ok(0)) };
        if let Poll::Ready(got) = output.poll_read(cx, buf) {
            return Poll::Ready(got);
        }
        std::task::ready!(self.watch.poll(cx));
        // It has ended, and what it wrote before is in the pipe, even if the runtime does not know of that yet.
        match output.read(buf) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Ready(Ok(0)),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Poll::Pending,
            got => Poll::Ready(got),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.listen(cx);
        match &mut self.input {
            Some(input) => input.poll_write(cx, buf),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.input {
            Some(input) => input.poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input = None;
        Poll::Ready(Ok(()))
    }
}

/// "exited with status 1; its last words: …"
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            None => f.write_str("has ended")?,
            Some(status) => match (status.code(), system::describe(status)) {
                (Some(code), _) => write!(f, "exited with status {code}")?,
                (None, Some(how)) => f.write_str(&how)?,
                (None, None) => write!(f, "has ended ({status})")?,
            },
        }
        match &*self.last_words {
            "" => Ok(()),
            words => write!(f, "; its last words: {words}"),
        }
    }
}

impl<R: Runtime> fmt::Debug for Process<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.id()).field("exit", &self.exit).finish_non_exhaustive()
    }
}
