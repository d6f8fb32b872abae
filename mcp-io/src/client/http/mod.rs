//! Requests of HTTP on hyper, for any runtime.
//!
//! ```text
//!   Agent ── send ──► pool of an origin ──► idle connection, or Network: resolve, connect, TLS, hyper
//!                           ▲                          │
//!                           └──── body at its end ◄────┘ Response
//! ```

mod agent;
mod body;
mod connection;
mod dial;
mod io;
mod link;
mod pool;
mod queue;
mod remote;
#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
mod tls;

use std::future::Future;
use std::io as std_io;
use std::net::SocketAddr;

use crate::{Io, Runtime};

pub use agent::{Agent, Lane, Options, Versions};
pub use body::Body;
pub use dial::Failure;
pub use remote::Remote;

/// What requests need of a runtime besides.
pub trait Network: Runtime {
    /// A TCP connection.
    type Tcp: Io + 'static;

    /// The addresses of a host, where looking them up may block.
    ///
    /// # Errors
    /// The system's.
    fn resolve(&self, host: &str, port: u16) -> impl Future<Output = std_io::Result<Vec<SocketAddr>>> + Send;

    /// Connects to one address.
    ///
    /// # Errors
    /// The system's.
    fn connect(&self, address: SocketAddr) -> impl Future<Output = std_io::Result<Self::Tcp>> + Send;
}
