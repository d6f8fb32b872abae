//! Streamable HTTP on hyper, for any runtime. [spec: basic/transports/streamable-http]
//!
//! ```text
//!   Http ── bind ──► HttpListener ── accept ──► connection (hyper: HTTP/1, HTTP/2)
//!                                                   │
//!   a server of yours ── tower::Service ──►  Responder ──► HttpService of mcp-proto
//!                                                   │
//!                                               HttpBody ◄── Exchange
//! ```

mod body;
mod connection;
pub(crate) mod io;
mod respond;
mod serve;

pub use body::HttpBody;
pub use respond::{Responder, Responding};
pub use serve::{FromStd, Http, HttpListener};
