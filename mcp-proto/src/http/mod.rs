//! Streamable HTTP, without sockets: a request's head and body in, a response's head and body out.
//!
//! [spec: basic/transports/streamable-http]

pub mod auth;
pub mod bearer;
pub mod head;
#[allow(dead_code)] // sessions are built on it
mod streams;

pub use auth::{InvalidResource, InvalidUrl, ProtectedResource, ProtectedResourceBuilder, TokenState};
pub use bearer::{BadAuthorization, bearer};
pub use head::{Head, ResponseHead};
