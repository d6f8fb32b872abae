//! Smol's listening sockets.

use std::io;
use std::net::{TcpListener as StdTcpListener, TcpStream as StdTcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mcp_io::Accept;
use smol::Async;
#[cfg(unix)]
use smol::net::unix::UnixStream;

#[cfg(unix)]
use crate::Duplex;
use crate::Socket;

/// A TCP socket that accepts connections.
#[derive(Debug)]
pub struct Tcp(pub(crate) Arc<Async<StdTcpListener>>);

impl Accept for Tcp {
    type Connection = Async<StdTcpStream>;
    type Io = Socket;
    const OPEN_TO_BROWSERS: bool = true;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Connection>> {
        let (stream, _) = ready!(poll_accept(&self.0, cx, StdTcpListener::accept))?;
        Poll::Ready(Async::new(stream))
    }

    fn open(connection: Self::Connection) -> Socket {
        Socket::new(connection)
    }
}

#[cfg(feature = "http")]
impl mcp_io::http::FromStd for Tcp {
    fn from_std(listener: StdTcpListener) -> io::Result<Self> {
        Async::new_nonblocking(listener).map(|listener| Self(Arc::new(listener)))
    }
}

/// A Unix socket that accepts connections.
#[cfg(unix)]
#[derive(Debug)]
pub struct Unix(pub(crate) Arc<Async<StdUnixListener>>);

#[cfg(unix)]
impl Accept for Unix {
    type Connection = UnixStream;
    type Io = Duplex<UnixStream>;
    const OPEN_TO_BROWSERS: bool = false;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<UnixStream>> {
        let (stream, _) = ready!(poll_accept(&self.0, cx, StdUnixListener::accept))?;
        Poll::Ready(Async::new(stream).map(UnixStream::from))
    }

    fn open(connection: UnixStream) -> Duplex<UnixStream> {
        Duplex::new(connection)
    }
}

fn poll_accept<L, C>(
    listener: &Async<L>,
    cx: &mut Context<'_>,
    accept: impl Fn(&L) -> io::Result<C>,
) -> Poll<io::Result<C>> {
    loop {
        match accept(listener.get_ref()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(listener.poll_readable(cx))?,
            accepted => return Poll::Ready(accepted),
        }
    }
}
