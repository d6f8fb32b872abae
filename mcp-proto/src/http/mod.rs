//! Streamable HTTP, without sockets: a request's head and body in, a response's head and body out.
//!
//! [spec: basic/transports/streamable-http]

pub mod head;

pub use head::{Head, ResponseHead};
