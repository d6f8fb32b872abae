//! Smol as the loop sees it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_io::{Runtime, clock};
use mcp_proto::time::Instant;
use smol::{Executor, Timer};

/// Smol: its global executor, or one of yours.
#[derive(Debug, Clone, Default)]
pub struct Smol {
    handlers: Option<Arc<Executor<'static>>>,
}

impl Smol {
    /// Handlers run on the global executor, that of [`smol::spawn`], whatever polls `serve`.
    #[must_use]
    pub const fn current() -> Self {
        Self { handlers: None }
    }

    /// Handlers run on `executor`, which must be run by someone.
    #[must_use]
    pub const fn on(executor: Arc<Executor<'static>>) -> Self {
        Self { handlers: Some(executor) }
    }
}

impl Runtime for Smol {
    type Timer = Alarm;
    #[cfg(unix)]
    type Fd = Fd;

    fn now(&self) -> Instant {
        clock::from_std(std::time::Instant::now())
    }

    fn timer(&self, deadline: Instant) -> Alarm {
        Alarm(Timer::at(clock::to_std(deadline)))
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        match &self.handlers {
            Some(executor) => executor.spawn(future).detach(),
            None => smol::spawn(future).detach(),
        }
    }

    #[cfg(unix)]
    fn watch(&self, end: mcp_io::End) -> std::io::Result<Fd> {
        Fd::new(end)
    }
}

#[cfg(feature = "http")]
impl mcp_io::client::http::Network for Smol {
    type Tcp = crate::Duplex<smol::net::TcpStream>;

    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<std::net::SocketAddr>> {
        smol::net::resolve((host, port)).await
    }

    async fn connect(&self, address: std::net::SocketAddr) -> std::io::Result<Self::Tcp> {
        let stream = smol::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(crate::Duplex::new(stream))
    }
}

/// A timer of smol.
#[derive(Debug)]
pub struct Alarm(Timer);

impl mcp_io::Timer for Alarm {
    fn reset(&mut self, deadline: Instant) {
        self.0.set_at(clock::to_std(deadline));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(|_| ())
    }
}

#[cfg(unix)]
pub use fd::Fd;

#[cfg(unix)]
mod fd {
    use std::io;
    use std::task::{Context, Poll, ready};

    use mcp_io::{End, Io};
    use smol::Async;

    /// A pipe or a socket that smol watches.
    #[derive(Debug)]
    pub struct Fd {
        end: Async<End>,
        /// The last call left nothing to move: the next one would only say so.
        dry: Dry,
    }

    #[derive(Debug, Default)]
    struct Dry {
        read: bool,
        write: bool,
    }

    impl Fd {
        pub(super) fn new(end: End) -> io::Result<Self> {
            Ok(Self { end: Async::new_nonblocking(end)?, dry: Dry::default() })
        }
    }

    impl Io for Fd {
        fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
            loop {
                if self.dry.read {
                    ready!(self.end.poll_readable(cx))?;
                    self.dry.read = false;
                }
                match self.end.get_ref().read(buf) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.dry.read = true,
                    got => {
                        self.dry.read = got.as_ref().is_ok_and(|&got| 0 < got && got < buf.len());
                        return Poll::Ready(got);
                    }
                }
            }
        }

        fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            loop {
                if self.dry.write {
                    ready!(self.end.poll_writable(cx))?;
                    self.dry.write = false;
                }
                match self.end.get_ref().write(buf) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.dry.write = true,
                    written => {
                        self.dry.write = written.as_ref().is_ok_and(|&written| written < buf.len());
                        return Poll::Ready(written);
                    }
                }
            }
        }
    }
}
