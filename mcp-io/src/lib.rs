//! What the adapters of `mcp-proto` share, on no runtime: the loop that drives a
//! [`Session`](mcp_proto::service::Session) over bytes, and the standard streams of the process without
//! a thread between.
//!
//! Servers use it through `mcp-tokio` or `mcp-smol`. To run on another runtime, bring three things:
//!
//! - a [`Runtime`]: time, timers, spawning, and readiness of file descriptors;
//! - an [`Io`] for each kind of byte stream, two functions that poll;
//! - for a server that accepts connections, an [`Accept`].
//!
//! [`Stdio`], [`ByteStream`] and [`Listen`] then are transports that [`Serve`] takes.
//!
//! ```text
//!   Server / Service ── Serve::serve ──► Transport::run ──► drive: Session ◄──► Io
//!                                        Stdio                │
//!                                        ByteStream           └── Runtime: spawn, timer
//!                                        Listen (many)
//! ```

pub mod client;
pub mod clock;
mod drive;
mod house;
#[cfg(feature = "http")]
pub mod http;
mod listen;
mod pair;
#[cfg(feature = "http")]
mod room;
mod serve;
mod stdio;
mod stream;

pub use drive::{Io, Runtime, Settings, Timer, drive};
pub use listen::{Accept, Listen};
pub use pair::{MemoryStream, pair};
pub use serve::{Serve, ServeError, Transport};
#[cfg(unix)]
pub use stdio::End;
pub use stdio::{Stdio, StdioIo};
pub use stream::ByteStream;
