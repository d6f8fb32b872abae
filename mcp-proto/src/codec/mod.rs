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

/// U+FEFF in UTF-8. Some programs put it in front of whatever they write.
const BOM: &[u8] = b"\xEF\xBB\xBF";
