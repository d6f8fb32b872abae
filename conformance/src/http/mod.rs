//! HTTP as the suite speaks it: messages bound to requests, answers read back into messages.
//!
//! `Web` does no input or output: it says which requests to send and is told what comes back. `wire` reads
//! answers off a socket. Both keep heads and bodies as they are on the wire, since those are under test; a client
//! library would hide what is wrong with them.

mod binding;
mod endpoint;
pub(crate) mod framing;
mod stream;
mod tokens;
mod web;
pub(crate) mod wire;

pub(crate) use binding::{Headers, Mirrors, modern as expected};
pub use endpoint::Endpoint;
pub(crate) use stream::{Purpose, Stream};
pub use tokens::{TokenKind, Tokens};
pub(crate) use web::{Order, Web};

/// A part of what a server answers to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an answer has a head, a body and an end")]
pub enum Answer {
    /// The status and the header lines, as they came.
    Head {
        /// The status code.
        status: u16,
        /// Names and values in their order.
        headers: Vec<(String, String)>,
    },
    /// Some bytes of the body.
    Body(Vec<u8>),
    /// Nothing more comes; what went wrong, if something did.
    End(Option<String>),
}
