//! The response to one POST of 2026-07-28: JSON or a stream of events, decided as late as possible.

use alloc::vec::Vec;

use super::endpoint::Events;
use super::head::ResponseHead;
use super::media::Accepts;
use crate::codec::Wrap;
use crate::codec::sse::write_comment;
use crate::rpc::code;
use crate::server::route::End;

/// ```text
///              message ──────────► Events ── last message ──┐
///   Undecided ─┤                                            ├─► Over
///              last message ── JSON ────────────────────────┘
/// ```
#[derive(Debug)]
pub(crate) struct Reply {
    accepts: Accepts,
    events: Events,
    phase: Phase,
    head: Option<ResponseHead>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Undecided,
    Events,
    Over,
}

impl Reply {
    pub(crate) const fn new(accepts: Accepts, events: Events) -> Self {
        Self { accepts, events, phase: Phase::Undecided, head: None }
    }

    /// The head, once, as soon as it is decided.
    pub(crate) const fn take_head(&mut self) -> Option<ResponseHead> {
        self.head.take()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// One message, without a newline.
    pub(crate) fn message(&mut self, text: &[u8], end: Option<End>, out: &mut Vec<u8>) {
        let Some(end) = end else {
            if self.begin_events() {
                Wrap::Sse.write(out, |out| out.extend_from_slice(text));
            }
            return;
        };
        if self.phase == Phase::Undecided && (text.is_empty() || self.is_plain()) {
            self.end_plainly(text, end);
            out.extend_from_slice(text);
        } else if self.begin_events_with(status(end)) && !text.is_empty() {
            Wrap::Sse.write(out, |out| out.extend_from_slice(text));
        }
        self.phase = Phase::Over;
    }

    /// Whether the next message would be the whole answer, if it is the last.
    pub(crate) fn is_plain(&self) -> bool {
        self.phase == Phase::Undecided
            && (!self.accepts.sse || (self.accepts.json && self.events == Events::WhenNeeded))
    }

    /// The answer is this text and nothing else.
    pub(crate) fn end_plainly(&mut self, text: &[u8], end: End) {
        self.head = Some(match text.is_empty() {
            true => ResponseHead::new(202),
            false => ResponseHead::new(status(end)).with("content-type", "application/json"),
        });
        self.phase = Phase::Over;
    }

    /// From here on the answer is a stream of events. `false` if the client does not take one, or if the
    /// response is over.
    pub(crate) fn begin_events(&mut self) -> bool {
        self.begin_events_with(200)
    }

    fn begin_events_with(&mut self, status: u16) -> bool {
        if self.phase == Phase::Undecided && self.accepts.sse {
            self.phase = Phase::Events;
            self.head = Some(events_head(status));
        }
        self.phase == Phase::Events
    }

    /// Shows that the stream is alive.
    pub(crate) fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if self.begin_events() {
            write_comment(out, "");
        }
    }
}

/// The head of a stream of events.
pub(crate) fn events_head(status: u16) -> ResponseHead {
    ResponseHead::new(status)
        .with("content-type", "text/event-stream")
        .with("cache-control", "no-cache")
        // Proxies that collect a response before they pass it on would hold the events back.
        .with("x-accel-buffering", "no")
}

/// The status of an answer. [spec: basic/transports/streamable-http]
fn status(end: End) -> u16 {
    let (End::Failed(code) | End::Refused(code)) = end else { return 200 };
    match code {
        code::METHOD_NOT_FOUND => 404,
        code::HEADER_MISMATCH
        | code::MISSING_REQUIRED_CLIENT_CAPABILITY
        | code::UNSUPPORTED_PROTOCOL_VERSION => 400,
        // What a handler does not like about the params is an answer like any other.
        code::PARSE_ERROR | code::INVALID_REQUEST | code::INVALID_PARAMS
            if matches!(end, End::Refused(_)) =>
        {
            400
        }
        _ => 200,
    }
}
