//! The client's side: what a [`Client`](mcp_proto::service::client::Client) is connected to, and the loop that drives it.
//!
//! ```text
//!   Client::new(…) ── Connect::connect ──► Target::connect ──► drive: Link ◄──► Io
//!                                          Child                 │
//!                                          ByteStream            └── Runtime: spawn, timer
//!                                          Memory
//!                                          Remote ──────────────► HttpLink ◄──► Agent
//! ```

mod child;
mod config;
mod connect;
mod drive;
mod host;
#[cfg(feature = "http")]
pub mod http;

mod memory;

pub use child::{Child, Exit, Process, Stderr};
pub use config::{ConfigError, Entry, Servers, Way};
pub use connect::{Connect, ConnectError, Target};
pub use host::{Happened, Host, HostEvent, HostEvents, Offer, Offered, Refused, Served, ServerState};
pub use memory::Memory;
