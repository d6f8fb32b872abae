//! `server.serve(transport)`.

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;

use mcp_proto::service::{BuildError, Server, Service};

/// Where a service is offered: the standard streams, one byte stream, a listening socket.
pub trait Transport: Send + Sized {
    /// Serves until the peers have gone, or until `shutdown` completes and what they asked for is
    /// answered.
    fn run(
        self,
        service: Service,
        shutdown: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = Result<(), ServeError>> + Send;
}

/// Runs a [`Server`] or a [`Service`] on a [`Transport`].
///
/// The input's end and a peer that goes away (broken pipe, connection reset) are how a session ends, not
/// errors: the result is `Ok`. After the end of the input the calls that were accepted are finished and
/// answered, for as long as the transport's drain time allows; then they are cancelled. A peer that goes
/// away has its calls cancelled at once.
///
/// Dropping the future stops everything at once. `[spec: basic/transports/stdio#shutdown]`
pub trait Serve: Sized {
    /// Serves until the transport ends.
    ///
    /// # Errors
    /// [`ServeError::Build`] if the server is not well-formed, [`ServeError::Io`] if the transport fails.
    fn serve<T: Transport>(self, transport: T) -> impl Future<Output = Result<(), ServeError>> + Send {
        self.serve_until(transport, pending())
    }

    /// Serves until the transport ends or `shutdown` completes. Then nothing more is read, and the end is
    /// the same as that of the input.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    fn serve_until<T: Transport>(
        self,
        transport: T,
        shutdown: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = Result<(), ServeError>> + Send;
}

impl Serve for Service {
    fn serve_until<T: Transport>(
        self,
        transport: T,
        shutdown: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = Result<(), ServeError>> + Send {
        transport.run(self, shutdown)
    }
}

impl Serve for Server {
    fn serve_until<T: Transport>(
        self,
        transport: T,
        shutdown: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = Result<(), ServeError>> + Send {
        let service = self.build();
        async move { transport.run(service?, shutdown).await }
    }
}

/// Why serving ended badly.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The server is not well-formed; nothing was served.
    Build(BuildError),
    /// The transport failed for another reason than that the peer has gone.
    Io(io::Error),
    /// Other machines can reach this address, and it was not said under which names the server is called
    /// there; nothing was served. See `origins` of the transport.
    Exposed(SocketAddr),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(_) => f.write_str("the server cannot be built"),
            Self::Io(_) => f.write_str("the transport failed"),
            Self::Exposed(address) => write!(
                f,
                "other machines can reach {address}: say with `origins` under which names the server is called"
            ),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            Self::Io(error) => Some(error),
            Self::Exposed(_) => None,
        }
    }
}

impl From<BuildError> for ServeError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<io::Error> for ServeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
