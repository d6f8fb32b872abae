//! Output: how a message is wrapped, and the bytes that wait to be written.

use alloc::vec::Vec;

use super::kept;

/// Bytes on their way out, with a cursor: a partial write moves the cursor, not the bytes.
///
/// ```
/// use mcp_proto::codec::OutBuf;
///
/// let mut out = OutBuf::new();
/// out.bytes_mut().extend_from_slice(b"hello");
/// out.advance(2); // what write() returned
/// assert_eq!(out.pending(), b"llo");
/// ```
#[derive(Debug, Clone, Default)]
pub struct OutBuf {
    buf: Vec<u8>,
    /// How much of `buf` is already written. The owner of a `&mut Vec` may make `buf` shorter than that.
    written: usize,
}

impl OutBuf {
    /// Empty; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { buf: Vec::new(), written: 0 }
    }

    /// Where to append. The vector may begin with bytes that are already written, so append only.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        // Paid for by as many bytes written since the last move. Without this a connection that is
        // never quite drained would grow for ever.
        if self.written > 0 && self.written >= self.len() {
            self.buf.drain(..self.written.min(self.buf.len()));
            self.written = 0;
        }
        &mut self.buf
    }

    /// Counts `n` of the [`pending`](Self::pending) bytes as written; at most all of them.
    ///
    /// Once all are written, no more than 64 KiB of capacity stay; or as much as was just needed, up to
    /// 1 MiB, until less is needed.
    pub fn advance(&mut self, n: usize) {
        self.written = self.written.saturating_add(n);
        if self.written >= self.buf.len() {
            let keep = kept(self.buf.capacity(), self.buf.len());
            self.buf.clear();
            self.buf.shrink_to(keep);
            self.written = 0;
        }
    }

    /// What is still to be written.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        self.buf.get(self.written..).unwrap_or_default()
    }

    /// How many bytes are still to be written. To be held against
    /// [`Limits::output_high_water`](crate::limits::Limits::output_high_water).
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending().len()
    }

    /// Whether all is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How one JSON-RPC message is wrapped on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrap {
    /// Followed by a newline. `[spec: basic/transports/stdio]`
    Line,
    /// As the data of one server-sent event without a name or an id.
    /// `[spec: basic/transports/streamable-http]`
    Sse,
    /// As it is: the body of an HTTP response.
    Bare,
}

impl Wrap {
    /// Appends the one JSON text that `write` appends, wrapped.
    ///
    /// JSON taken over as raw text may be pretty-printed, and neither framing allows a newline inside
    /// a message (B-STDIO-01). In JSON an unescaped CR or LF can only be white space between tokens, so
    /// each becomes a space.
    pub fn write(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        if self == Self::Sse {
            out.extend_from_slice(b"data: ");
        }
        let from = out.len();
        write(out);
        let text = out.get_mut(from..).unwrap_or_default();
        let mut at = 0;
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &text[at..]) {
            at += found;
            text[at] = b' ';
            at += 1;
        }
        match self {
            Self::Line => out.push(b'\n'),
            Self::Sse => out.extend_from_slice(b"\n\n"),
            Self::Bare => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec};

    use proptest::prelude::*;

    use super::super::{BUSY, RETAIN};
    use super::*;

    fn wrapped(wrap: Wrap, text: &str) -> Vec<u8> {
        let mut out = b"before\r\n".to_vec();
        wrap.write(&mut out, |out| out.extend_from_slice(text.as_bytes()));
        out.split_off(8)
    }

    #[test]
    fn each_wrap_has_its_ending() {
        assert_eq!(wrapped(Wrap::Line, "{}"), b"{}\n");
        assert_eq!(wrapped(Wrap::Sse, "{}"), b"data: {}\n\n");
        assert_eq!(wrapped(Wrap::Bare, "{}"), b"{}");
    }

    /// B-STDIO-01: raw values keep the newlines of pretty-printed input.
    #[test]
    fn pretty_printed_raw_values_stay_on_one_line() {
        let pretty = "{\r\n  \"a\": [\n\n1\r]\n}\n";
        let flat = "{    \"a\": [  1 ] } ";
        assert_eq!(wrapped(Wrap::Line, pretty), format!("{flat}\n").as_bytes());
        assert_eq!(wrapped(Wrap::Sse, pretty), format!("data: {flat}\n\n").as_bytes());
        assert_eq!(wrapped(Wrap::Bare, pretty), flat.as_bytes());
        let escaped = r#"{"a":"x\ny\r"}"#;
        assert_eq!(wrapped(Wrap::Bare, escaped), escaped.as_bytes(), "escapes are not newlines");
    }

    #[test]
    fn what_stands_before_is_untouched() {
        let mut out = b"a\nb\r".to_vec();
        Wrap::Line.write(&mut out, |out| out.extend_from_slice(b"c\nd"));
        assert_eq!(out, b"a\nb\rc d\n");
    }

    #[test]
    fn a_partial_write_moves_the_cursor_only() {
        let mut out = OutBuf::new();
        out.bytes_mut().extend_from_slice(b"abcdef");
        let at = out.pending().as_ptr();
        out.advance(2);
        assert_eq!(out.pending(), b"cdef");
        assert_eq!(out.pending().as_ptr(), at.wrapping_add(2));
        assert_eq!(out.len(), 4);
        out.advance(usize::MAX);
        assert!(out.is_empty());
        assert_eq!(out.len(), 0);
    }

    #[test]
    fn capacity_shrinks_after_a_spike() {
        let mut out = OutBuf::new();
        out.bytes_mut().resize(BUSY + 1, b'a');
        out.advance(BUSY);
        out.advance(1);
        assert!(out.buf.capacity() <= RETAIN, "{}", out.buf.capacity());
    }

    #[test]
    fn a_stream_of_large_messages_keeps_its_room_until_one_is_short() {
        let mut out = OutBuf::new();
        for _ in 0..3 {
            out.bytes_mut().resize(300 << 10, b'a');
            let at = out.pending().as_ptr();
            out.advance(300 << 10);
            assert!((300 << 10..=BUSY).contains(&out.buf.capacity()), "{}", out.buf.capacity());
            assert_eq!(out.buf.as_ptr(), at);
        }
        out.bytes_mut().push(b'a');
        out.advance(1);
        assert!(out.buf.capacity() <= RETAIN, "{}", out.buf.capacity());
    }

    #[test]
    fn a_connection_that_never_drains_does_not_grow() {
        let mut out = OutBuf::new();
        out.bytes_mut().extend_from_slice(b"ab");
        for _ in 0..1000 {
            out.bytes_mut().extend_from_slice(b"ab");
            out.advance(2);
            assert_eq!(out.pending(), b"ab");
        }
        assert!(out.buf.capacity() < 64, "{}", out.buf.capacity());
    }

    #[test]
    fn a_vector_made_shorter_is_no_panic() {
        let mut out = OutBuf::new();
        out.bytes_mut().extend_from_slice(b"abcdef");
        out.advance(2);
        *out.bytes_mut() = vec![b'x'];
        assert_eq!(out.pending(), b"");
        out.bytes_mut().push(b'y');
        assert_eq!(out.pending(), b"y");
        out.bytes_mut().clear();
        out.advance(1);
        assert_eq!(out.pending(), b"");
    }

    proptest! {
        /// The bytes come out in order, whatever is written when.
        #[test]
        fn first_in_first_out(steps in proptest::collection::vec((0usize..50, 0usize..50), 0..60)) {
            let mut out = OutBuf::new();
            let mut model = Vec::new();
            let mut next = 0u8;
            for (append, write) in steps {
                for _ in 0..append {
                    out.bytes_mut().push(next);
                    model.push(next);
                    next = next.wrapping_add(1);
                }
                let write = write.min(out.len());
                prop_assert_eq!(&out.pending()[..write], &model[..write]);
                out.advance(write);
                model.drain(..write);
                prop_assert_eq!(out.pending(), &model[..]);
            }
        }
    }
}
