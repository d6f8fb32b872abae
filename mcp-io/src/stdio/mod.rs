//! Standard input and output as a byte stream of the protocol's own.

mod claim;
#[cfg(unix)]
mod end;
pub(crate) mod thread;

use std::future::Future;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_proto::server::Principal;
use mcp_proto::service::Service;

use crate::{Io, Runtime, ServeError, Settings, Transport, drive};
use claim::{Claim, Way};
#[cfg(unix)]
pub use end::End;
use thread::{Reader, Writer};

/// The standard streams of this process: a message a line. `[spec: basic/transports/stdio]`
///
/// Pipes and sockets are used without a thread between, and without a change that a process which shares
/// them could notice: a pipe is opened anew (Linux), a socket is told with each call not to block. Where
/// neither is possible (terminals, files, pipes on other systems or of another user) a thread reads and a
/// thread writes.
///
/// While it is served, standard output belongs to the protocol: what the process or a child of it prints
/// goes to standard error, and what it reads from standard input is empty. Afterwards both are as before.
/// (Unix only; elsewhere a handler must not print.) One server at a time can have the standard streams.
#[derive(Debug)]
pub struct Stdio<R> {
    runtime: R,
    settings: Settings,
}

impl<R: Runtime> Stdio<R> {
    /// The standard streams on `runtime`.
    pub fn new(runtime: R) -> Self {
        Self { runtime, settings: Settings::default() }
    }

    /// Who is at the other end. No one in particular by default.
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.settings.principal = Some(principal);
        self
    }

    /// The time from the end of standard input to the end of the stream, at most: for accepted calls and for a peer
    /// that reads slowly. See [`Settings::drain`]. 5 seconds by default.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.settings.drain = drain;
        self
    }

    /// Where handlers and timers run, if not where the future of `serve` is polled.
    #[must_use]
    pub fn runtime(mut self, runtime: R) -> Self {
        self.runtime = runtime;
        self
    }
}

impl<R: Runtime> Transport for Stdio<R> {
    async fn run(
        self,
        service: Service,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let io = StdioIo::claim(&self.runtime)?;
        Ok(drive(&service, io, &self.runtime, self.settings, shutdown).await?)
    }
}

/// The standard streams as bytes, as long as it lives.
#[derive(Debug)]
pub struct StdioIo<R: Runtime> {
    input: Input<R>,
    output: Output<R>,
    /// Last, so that the streams are given back when nothing uses them any more.
    _claim: Claim,
}

enum Input<R: Runtime> {
    #[cfg(unix)]
    Watched(R::Fd),
    Thread(Reader, std::marker::PhantomData<fn() -> R>),
}

enum Output<R: Runtime> {
    #[cfg(unix)]
    Watched(R::Fd),
    Thread(Writer, std::marker::PhantomData<fn() -> R>),
}

impl<R: Runtime> StdioIo<R> {
    /// Takes the standard streams.
    ///
    /// # Errors
    /// `ResourceBusy` if they are taken; the system's if they cannot be copied or watched.
    pub fn claim(runtime: &R) -> io::Result<Self> {
        let (claim, input, output) = Claim::take()?;
        Ok(Self {
            input: match input {
                #[cfg(unix)]
                Way::Watch(end) => Input::Watched(runtime.watch(end)?),
                Way::Block(file) => Input::Thread(Reader::new(file)?, std::marker::PhantomData),
            },
            output: match output {
                #[cfg(unix)]
                Way::Watch(end) => Output::Watched(runtime.watch(end)?),
                Way::Block(file) => Output::Thread(Writer::new(file)?, std::marker::PhantomData),
            },
            _claim: claim,
        })
    }
}

impl<R: Runtime> Io for StdioIo<R> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match &mut self.input {
            #[cfg(unix)]
            Input::Watched(fd) => fd.poll_read(cx, buf),
            Input::Thread(reader, _) => reader.poll_read(cx, buf),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.output {
            #[cfg(unix)]
            Output::Watched(fd) => fd.poll_write(cx, buf),
            Output::Thread(writer, _) => writer.poll_write(cx, buf),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.output {
            #[cfg(unix)]
            Output::Watched(_) => Poll::Ready(Ok(())),
            Output::Thread(writer, _) => writer.poll_flush(cx),
        }
    }
}

impl<R: Runtime> std::fmt::Debug for Input<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            #[cfg(unix)]
            Self::Watched(_) => "Watched",
            Self::Thread(..) => "Thread",
        })
    }
}

impl<R: Runtime> std::fmt::Debug for Output<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            #[cfg(unix)]
            Self::Watched(_) => "Watched",
            Self::Thread(..) => "Thread",
        })
    }
}
