//! Server-sent events, both ways. `[spec: basic/transports/streamable-http]`
//!
//! Reading follows the event stream format of the HTML standard to the letter, with two additions: an
//! event has a bound, and what the stream says of its last id and of `retry` is at hand for a reconnect.

mod decode;
mod encode;

pub use decode::{SseDecoder, SseEvent, SseFrame};
pub use encode::{InvalidField, write_comment, write_event, write_retry};
