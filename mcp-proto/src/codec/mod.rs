//! Framing: bytes to frames and back. Nothing here knows JSON-RPC.
//!
//! ```text
//!  read() ──► LineBuffer ──► Frame::Line ──► machine ──► Wrap::Line ──► OutBuf ──► write()      stdio
//!  body   ──► SseDecoder ──► SseEvent    ──► machine ──► Wrap::Sse  ──► OutBuf ──► body         HTTP
//! ```
//!
//! The buffers belong to the caller, not to a machine: a half-read line lives in its [`LineBuffer`], so
//! a reader that is dropped and made anew loses nothing. A frame borrows its buffer and nothing else.
//!
//! Everything a peer sends is bounded. What is too long is reported once and skipped; the bytes after
//! it are read as usual.

pub mod line;
pub mod output;
pub mod sse;

pub use line::{Frame, LineBuffer};
pub use output::{OutBuf, Wrap};
pub use sse::{InvalidField, SseDecoder, SseEvent, SseFrame};

/// Capacity that an empty buffer may keep. One huge message must not cost its size for the rest of
/// the connection, and everyday messages must not cost an allocation each.
const RETAIN: usize = 64 << 10;

/// Beyond this much, room is given back at once: it was for one message and not for a stream of them.
const BUSY: usize = 1 << 20;

/// The capacity that an empty buffer keeps when `used` bytes of it were in use since it was last empty. A
/// stream of large messages keeps its room, for memory that is given back and taken again costs more than
/// the message; the next short message gives it back.
const fn kept(capacity: usize, used: usize) -> usize {
    if capacity <= RETAIN || (used <= BUSY && capacity / 4 <= used) {
        return capacity;
    }
    if used > BUSY || used * 2 < RETAIN { RETAIN } else { used * 2 }
}

/// U+FEFF in UTF-8. Some programs put it in front of whatever they write.
const BOM: &[u8] = b"\xEF\xBB\xBF";
