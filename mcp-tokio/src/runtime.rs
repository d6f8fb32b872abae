//! Tokio as the loop sees it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_io::{Runtime, Timer, clock};
use mcp_proto::time::Instant;
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep_until};

/// Tokio: the runtime that polls `serve`, or another one for the handlers.
#[derive(Debug, Clone, Default)]
pub struct Tokio {
    handlers: Option<Handle>,
}

impl Tokio {
    /// Handlers run on the runtime that polls `serve`.
    #[must_use]
    pub const fn current() -> Self {
        Self { handlers: None }
    }

    /// Handlers run on the runtime of `handle`.
    #[must_use]
    pub const fn on(handle: Handle) -> Self {
        Self { handlers: Some(handle) }
    }
}

impl Runtime for Tokio {
    type Timer = Alarm;
    #[cfg(unix)]
    type Fd = Fd;

    fn now(&self) -> Instant {
        clock::from_std(tokio::time::Instant::now().into_std())
    }

    fn timer(&self, deadline: Instant) -> Alarm {
        Alarm(Box::pin(sleep_until(clock::to_std(deadline).into())))
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        match &self.handlers {
            Some(handle) => drop(handle.spawn(future)),
            None => drop(tokio::spawn(future)),
        }
    }

    #[cfg(unix)]
    fn watch(&self, end: mcp_io::End) -> std::io::Result<Fd> {
        Fd::new(end)
    }
}

#[cfg(feature = "http")]
impl mcp_io::client::http::Network for Tokio {
    type Tcp = crate::Duplex<tokio::net::TcpStream>;

    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<std::net::SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }

    async fn connect(&self, address: std::net::SocketAddr) -> std::io::Result<Self::Tcp> {
        let stream = tokio::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(crate::Duplex::new(stream))
    }
}

/// A timer of tokio.
#[derive(Debug)]
pub struct Alarm(Pin<Box<Sleep>>);

impl Timer for Alarm {
    fn reset(&mut self, deadline: Instant) {
        self.0.as_mut().reset(clock::to_std(deadline).into());
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

#[cfg(unix)]
pub use fd::Fd;

#[cfg(unix)]
mod fd {
    use std::io;
    use std::task::{Context, Poll, ready};

    use mcp_io::{End, Io};
    use tokio::io::unix::AsyncFd;

    /// A pipe or a socket that tokio watches.
    #[derive(Debug)]
    pub struct Fd(AsyncFd<End>);

    impl Fd {
        pub(super) fn new(end: End) -> io::Result<Self> {
            // Deprecated for types whose descriptor may change while it is watched. That of an `End`
            // cannot: it owns it and lends it out only.
            #[allow(deprecated)]
            AsyncFd::new(end).map(Self)
        }
    }

    // A call that moves less than it could leaves nothing more to move: the next one would only say so.
    // The system tells when that changes.

    impl Io for Fd {
        fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
            loop {
                let mut ready = ready!(self.0.poll_read_ready(cx))?;
                match ready.get_inner().read(buf) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                    got => {
                        if got.as_ref().is_ok_and(|&got| 0 < got && got < buf.len()) {
                            ready.clear_ready();
                        }
                        return Poll::Ready(got);
                    }
                }
            }
        }

        fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            loop {
                let mut ready = ready!(self.0.poll_write_ready(cx))?;
                match ready.get_inner().write(buf) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                    written => {
                        if written.as_ref().is_ok_and(|&written| written < buf.len()) {
                            ready.clear_ready();
                        }
                        return Poll::Ready(written);
                    }
                }
            }
        }
    }
}
