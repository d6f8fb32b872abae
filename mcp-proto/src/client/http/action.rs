//! What a driver is to do.

use alloc::string::String;
use core::fmt;

use super::Request;

/// Names one request and its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub(crate) u64);

/// What the driver of a [`Client`](super::Client) is to do, in this order.
#[derive(Debug)]
#[allow(clippy::exhaustive_enums)] // a driver that does not know one of them does not work
pub enum Action {
    /// Send this request, and hand in what becomes of it under this name.
    Open {
        /// The name. Never used again.
        exchange: ExchangeId,
        /// The request.
        request: Request,
    },
    /// Nothing of this exchange is wanted any more: drop its response, or its request if there is none.
    Close(ExchangeId),
}

/// Why there is no response, or not all of it: in words, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // there is nothing more to say
pub struct Lost(pub String);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Lost {}
