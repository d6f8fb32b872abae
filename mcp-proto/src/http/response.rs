//! Whole responses: those that need no stream.

use alloc::vec::Vec;
use core::fmt::Display;

use super::head::ResponseHead;
use crate::rpc::{self, Error, RequestId};

/// A response that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// Status and headers. `Content-Length` is the driver's business.
    pub head: ResponseHead,
    /// The body; empty if there is none.
    pub body: Vec<u8>,
}

impl Response {
    /// A head without a body.
    #[must_use]
    pub const fn empty(head: ResponseHead) -> Self {
        Self { head, body: Vec::new() }
    }

    /// JSON, one text.
    #[must_use]
    pub fn json(status: u16, body: Vec<u8>) -> Self {
        Self { head: ResponseHead::new(status).with("content-type", "application/json"), body }
    }

    /// The message was taken and is not answered. [spec: basic/transports/streamable-http]
    #[must_use]
    pub const fn accepted() -> Self {
        Self::empty(ResponseHead::new(202))
    }

    /// A JSON-RPC error. Without an id it belongs to no request.
    #[must_use]
    pub fn error(status: u16, id: Option<&RequestId>, error: &Error) -> Self {
        let mut body = Vec::new();
        rpc::write_error(&mut body, id, error);
        Self::json(status, body)
    }

    /// A refusal before the message was looked at.
    #[must_use]
    pub fn refused(status: u16, why: impl Display) -> Self {
        Self::error(status, None, &Error::invalid_request(alloc::format!("Invalid request: {why}")))
    }

    /// There is no such method here: these are there.
    #[must_use]
    pub fn method_not_allowed(allow: &'static str) -> Self {
        let mut response = Self::refused(405, format_args!("expected one of the methods {allow}"));
        response.head = response.head.with("allow", allow);
        response
    }
}
