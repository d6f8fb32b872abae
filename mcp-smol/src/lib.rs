//! Runs `mcp-proto` on smol: servers on standard input and output, on Unix and TCP sockets, and on any
//! other byte stream.
//!
//! ```
//! use mcp_proto::service::{NoArguments, Server};
//! use mcp_smol::{Serve, stdio};
//!
//! # fn main_() -> Result<(), mcp_smol::ServeError> {
//! let server = Server::new("demo", "1.0.0").tool("hello", |_, _: NoArguments| async { Ok("Hello!") });
//! smol::block_on(server.serve(stdio()))
//! # }
//! ```
//!
//! - [`stdio()`]: the standard streams of this process, without a thread between where that can be.
//! - [`duplex`] and [`stream`]: anything that implements `AsyncRead` and `AsyncWrite`.
//! - [`unix`] and [`tcp`]: a listening socket, many peers.
//! - [`pair`]: a stream within the process, for tests.
//!
//! Each is a [`Transport`] with the same settings: whose stream it is (`principal`), how long accepted
//! calls may go on after the end of the input (`drain`), and where handlers run (`runtime`).
//! [`Serve::serve`] runs it to its end, [`Serve::serve_until`] until you say so.

mod io;
mod listen;
mod runtime;
mod watch;

pub use io::{Duplex, Split, Stream};
pub use listen::Tcp;
#[cfg(unix)]
pub use listen::Unix;
#[cfg(feature = "http")]
pub use mcp_io::client::http::{Options, Versions};
pub use mcp_io::client::{
    Child, ConfigError, Connect, ConnectError, Entry, Exit, Happened, HostEvent, HostEvents, Memory, Offer,
    Offered, Process, Refused, Served, ServerState, Servers, Stderr, Target, Way,
};
#[cfg(feature = "http")]
pub use mcp_io::http::{HttpBody, HttpListener, Responding};
pub use mcp_io::{ByteStream, Listen, MemoryStream, Serve, ServeError, Stdio, Transport};
pub use runtime::{Alarm, Smol};
use smol::io::{AsyncRead, AsyncWrite};
use smol::net::TcpListener;
#[cfg(unix)]
use smol::net::unix::UnixListener;
#[cfg(unix)]
pub use watch::Fd;
pub use watch::Socket;

/// The standard streams of this process. See [`Stdio`].
#[must_use]
pub fn stdio() -> Stdio<Smol> {
    Stdio::new(Smol::current())
}

/// A stream that is read and written in one: a socket, a TLS session.
pub fn duplex<S: AsyncRead + AsyncWrite + Send + Unpin>(stream: S) -> ByteStream<Smol, Duplex<S>> {
    ByteStream::new(Smol::current(), Duplex::new(stream))
}

/// A stream that is read at one place and written at another: the pipes of a child, a named pipe.
pub fn stream<I, O>(input: I, output: O) -> ByteStream<Smol, Split<I, O>>
where
    I: AsyncRead + Send + Unpin,
    O: AsyncWrite + Send + Unpin,
{
    ByteStream::new(Smol::current(), Split::new(input, output))
}

/// A listening Unix socket. Who may connect may call: that is said by the permissions of its folder.
#[cfg(unix)]
#[must_use]
pub fn unix(listener: UnixListener) -> Listen<Smol, Unix> {
    Listen::new(Smol::current(), Unix(listener.into()))
}

/// A listening TCP socket. Any program of this machine may connect, and of other machines too if it does
/// not listen on a loopback address. It hangs up on what a browser can be made to send.
#[must_use]
pub fn tcp(listener: TcpListener) -> Listen<Smol, Tcp> {
    Listen::new(Smol::current(), Tcp(listener.into()))
}

/// Streamable HTTP at `address`: `127.0.0.1:8000`, or port 0 for any that is free. The endpoint is `/mcp`.
///
/// See [`Http`](mcp_io::http::Http) for what can be set.
#[cfg(feature = "http")]
#[must_use]
pub fn http(address: impl std::net::ToSocketAddrs) -> Http {
    Http::new(Smol::current(), address)
}

/// Streamable HTTP as a transport: see [`http()`].
#[cfg(feature = "http")]
pub type Http = mcp_io::http::Http<Smol, Tcp>;

/// A server at a URL as what a client connects to: see [`Remote`](mcp_io::client::http::Remote).
#[cfg(feature = "http")]
#[must_use]
pub fn url(url: &str) -> Remote {
    Remote::new(Smol::current(), url)
}

/// A server at a URL: see [`url`].
#[cfg(feature = "http")]
pub type Remote = mcp_io::client::http::Remote<Smol>;

/// Sends requests of HTTP, and keeps connections for the next. Several [`Remote`]s may have one.
#[cfg(feature = "http")]
pub type Agent = mcp_io::client::http::Agent<Smol>;

/// Answers the requests of any HTTP server that takes a `tower::Service`.
#[cfg(feature = "http")]
pub type Responder = mcp_io::http::Responder<Smol>;

/// A server that is started as a child of this process. See [`Child`].
#[must_use]
pub fn child(program: impl AsRef<std::ffi::OsStr>) -> Child<Smol> {
    Child::new(Smol::current(), program)
}

/// Many servers, each with a client like `client`. See [`Host`](mcp_io::client::Host).
#[must_use]
pub fn host(client: mcp_proto::service::client::ClientBuilder) -> Host {
    Host::new(Smol::current(), client)
}

/// Many servers, one client each: see [`host`].
pub type Host = mcp_io::client::Host<Smol>;

/// A server within this process as what a client connects to: see [`Memory`].
#[must_use]
pub fn memory(server: mcp_proto::service::Server) -> Memory<Smol> {
    Memory::new(Smol::current(), server)
}

/// A stream within the process: the server's end, and the client's.
///
/// Each direction holds at most `capacity` bytes before the writer has to wait.
#[must_use]
pub fn pair(capacity: usize) -> (ByteStream<Smol, MemoryStream>, Stream<MemoryStream>) {
    let (server, client) = mcp_io::pair(capacity);
    (ByteStream::new(Smol::current(), server), Stream::new(client))
}
