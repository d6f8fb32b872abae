//! Tokio's listening sockets.

use std::io;
use std::task::{Context, Poll};

use mcp_io::Accept;
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

use crate::Duplex;

/// A TCP socket that accepts connections.
#[derive(Debug)]
pub struct Tcp(pub(crate) TcpListener);

impl Accept for Tcp {
    type Connection = TcpStream;
    type Io = Duplex<TcpStream>;
    const OPEN_TO_BROWSERS: bool = true;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        self.0.poll_accept(cx).map_ok(|(stream, _)| stream)
    }

    fn open(connection: TcpStream) -> Duplex<TcpStream> {
        // All that is due goes out in one write, so nothing is gained by waiting for more.
        let _ = connection.set_nodelay(true);
        Duplex::new(connection)
    }
}

#[cfg(feature = "http")]
impl mcp_io::http::FromStd for Tcp {
    fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        TcpListener::from_std(listener).map(Self)
    }
}

/// A Unix socket that accepts connections.
#[cfg(unix)]
#[derive(Debug)]
pub struct Unix(pub(crate) UnixListener);

#[cfg(unix)]
impl Accept for Unix {
    type Connection = UnixStream;
    type Io = Duplex<UnixStream>;
    const OPEN_TO_BROWSERS: bool = false;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<UnixStream>> {
        self.0.poll_accept(cx).map_ok(|(stream, _)| stream)
    }

    fn open(connection: UnixStream) -> Duplex<UnixStream> {
        Duplex::new(connection)
    }
}
