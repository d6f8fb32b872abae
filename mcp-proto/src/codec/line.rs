//! Newline framing: one message a line, as on stdio. `[spec: basic/transports/stdio]`

use alloc::vec::Vec;

use super::{BOM, kept};

/// Most bytes that [`LineBuffer::spare`] lends at once.
const MAX_SPARE: usize = 1 << 20;

/// Splits a byte stream into lines. Owned by the caller, one for each stream.
///
/// Feed it with [`spare`](Self::spare) and [`commit`](Self::commit), which read straight into the
/// buffer, or with [`extend`](Self::extend), which copies; then take frames until there are none:
///
/// ```
/// use mcp_proto::codec::{Frame, LineBuffer};
///
/// fn serve(mut stdin: impl std::io::Read, mut handle: impl FnMut(&[u8])) -> std::io::Result<()> {
///     let mut lines = LineBuffer::new(16 << 20);
///     loop {
///         let n = stdin.read(lines.spare(8 << 10))?;
///         lines.commit(n);
///         while let Some(frame) = if n == 0 { lines.finish() } else { lines.next_frame() } {
///             match frame {
///                 Frame::Line(line) => handle(line),
///                 Frame::TooLong { limit } => eprintln!("skipped a line of more than {limit} bytes"),
///             }
///         }
///         if n == 0 {
///             return Ok(());
///         }
///     }
/// }
///
/// let mut seen = Vec::new();
/// serve(&b"{\"id\":1}\r\n\r\n{\"id\":2}"[..], |line| seen.push(line.to_vec()))?;
/// assert_eq!(seen, [b"{\"id\":1}", b"{\"id\":2}"]);
/// # std::io::Result::Ok(())
/// ```
///
/// What one can rely on:
///
/// - The frames depend on the bytes alone, never on how they were cut into reads.
/// - A line ends with LF or CRLF; neither is part of the frame. Lines of nothing but spaces, tabs and
///   CRs are skipped. One byte order mark at the very start of the stream is dropped; elsewhere it is
///   an ordinary part of its line.
/// - A caller who takes all frames after each read makes this hold at most the limit and one read. When
///   all is consumed, no more than 64 KiB of capacity stay; or as much as was just needed, up to
///   1 MiB, until less is needed.
/// - The time is linear in the number of bytes, also if they come one by one.
#[derive(Debug, Clone)]
pub struct LineBuffer {
    /// Initialised memory; only `start..end` holds bytes of the stream that are still to be framed.
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// There is no newline in `start..scanned`.
    scanned: usize,
    /// How many bytes after `end` the caller may still `commit`.
    lent: usize,
    limit: usize,
    /// The most bytes in use since the buffer was last empty.
    peak: usize,
    /// Inside a line that was already reported as too long.
    skipping: bool,
    /// Nothing was framed yet, so a byte order mark may still come.
    at_stream_start: bool,
    /// Bytes looked at and bytes moved, to prove that time is linear.
    #[cfg(test)]
    work: usize,
}

/// What [`LineBuffer`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // a line fits or it does not; a driver should handle both
pub enum Frame<'b> {
    /// A line without its ending. Not blank; not known to be UTF-8 or JSON.
    Line(&'b [u8]),
    /// A line is longer than the limit. Reported once, as soon as it is known; the line is dropped up
    /// to its end and framing goes on after it.
    TooLong {
        /// The most bytes a line may have, without its ending.
        limit: usize,
    },
}

/// A [`Frame`] by position, so that finding one does not borrow the buffer.
enum Found {
    Line { from: usize, to: usize },
    TooLong,
}

impl LineBuffer {
    /// For lines of up to `max_line` bytes, line ending not counted. Allocates nothing yet.
    #[must_use]
    pub const fn new(max_line: usize) -> Self {
        Self {
            buf: Vec::new(),
            start: 0,
            end: 0,
            scanned: 0,
            lent: 0,
            limit: max_line,
            peak: 0,
            skipping: false,
            at_stream_start: true,
            #[cfg(test)]
            work: 0,
        }
    }

    /// Lends room to read into; say with [`commit`](Self::commit) how much of it was filled.
    ///
    /// The room has `want` bytes, but at least one (an empty read looks like the end of the stream)
    /// and at most 1 MiB. What it contains is unspecified. Room that was lent before and not committed
    /// is taken back.
    #[must_use]
    pub fn spare(&mut self, want: usize) -> &mut [u8] {
        let want = want.clamp(1, MAX_SPARE);
        self.make_room(want);
        self.lent = want;
        &mut self.buf[self.end..self.end + want]
    }

    /// Takes the first `got` bytes of the room that [`spare`](Self::spare) lent as read. What was not
    /// lent cannot be committed: a larger `got` counts as all that was lent.
    pub fn commit(&mut self, got: usize) {
        self.end += got.min(self.lent);
        self.peak = self.peak.max(self.end);
        self.lent = 0;
    }

    /// Appends a copy of `bytes`.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.lent = 0;
        self.make_room(bytes.len());
        self.buf[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
        self.peak = self.peak.max(self.end);
    }

    /// The next complete line, or `None` when more bytes are needed.
    #[must_use]
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        let found = self.find()?;
        Some(self.lend(found))
    }

    /// Like [`next_frame`](Self::next_frame), at the end of the stream: what comes after the last
    /// newline is a line too. Call it until it returns `None`.
    #[must_use]
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        let found = self.find().or_else(|| self.find_rest())?;
        Some(self.lend(found))
    }

    /// Forgets all bytes and is ready for the start of another stream.
    pub fn clear(&mut self) {
        (self.start, self.end, self.scanned, self.lent) = (0, 0, 0, 0);
        self.skipping = false;
        self.at_stream_start = true;
        self.shrink();
    }

    /// How many bytes wait for the rest of their line or to be taken by
    /// [`next_frame`](Self::next_frame).
    #[must_use]
    pub const fn buffered(&self) -> usize {
        self.end - self.start
    }

    fn find(&mut self) -> Option<Found> {
        if self.at_stream_start && !self.skip_bom() {
            return None;
        }
        while let Some(at) = memchr::memchr(b'\n', &self.buf[self.scanned..self.end]) {
            self.count(at + 1);
            let (from, newline) = (self.start, self.scanned + at);
            self.start = newline + 1;
            self.scanned = newline + 1;
            if core::mem::take(&mut self.skipping) {
                continue;
            }
            if let Some(found) = self.line(from, newline) {
                return Some(found);
            }
        }
        self.count(self.end - self.scanned);
        self.scanned = self.end;
        if self.skipping {
            self.start = self.end;
        } else if self.rest_is_too_long() {
            self.skipping = true;
            self.start = self.end;
            return Some(Found::TooLong);
        }
        if self.lent == 0 {
            self.compact();
        }
        None
    }

    /// After `find` returned `None`, so the rest has no newline.
    fn find_rest(&mut self) -> Option<Found> {
        let (from, to) = (self.start, self.end);
        self.start = to;
        self.scanned = to;
        self.at_stream_start = false;
        if core::mem::take(&mut self.skipping) {
            return None;
        }
        self.line(from, to)
    }

    /// The frame of the line whose bytes are `from..to`, `None` if it is blank.
    fn line(&self, from: usize, to: usize) -> Option<Found> {
        let line = &self.buf[from..to];
        let to = if line.last() == Some(&b'\r') { to - 1 } else { to };
        if to - from > self.limit {
            return Some(Found::TooLong);
        }
        let blank = line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r'));
        (!blank).then_some(Found::Line { from, to })
    }

    /// A CR behind a line of just the permitted length may be half of its ending.
    fn rest_is_too_long(&self) -> bool {
        let rest = &self.buf[self.start..self.end];
        let length = rest.len() - usize::from(rest.last() == Some(&b'\r'));
        length > self.limit
    }

    /// Whether the start of the stream is settled: no mark, or a mark that is now skipped.
    fn skip_bom(&mut self) -> bool {
        let head = &self.buf[self.start..self.end];
        if head.starts_with(BOM) {
            self.start += BOM.len();
            self.scanned = self.start;
        } else if BOM.starts_with(head) {
            return false;
        }
        self.at_stream_start = false;
        true
    }

    fn lend(&self, found: Found) -> Frame<'_> {
        match found {
            Found::Line { from, to } => Frame::Line(&self.buf[from..to]),
            Found::TooLong => Frame::TooLong { limit: self.limit },
        }
    }

    /// Makes `end..end + want` exist.
    fn make_room(&mut self, want: usize) {
        self.compact();
        let need = self.end + want;
        if need > self.buf.capacity() {
            // Double, but not beyond what a caller who takes all frames can ever need.
            let useful = self.limit.saturating_add(1).saturating_add(want);
            let target = self.buf.capacity().saturating_mul(2).min(useful).max(need);
            self.count(self.end);
            self.buf.reserve_exact(target - self.buf.len());
        }
        if need > self.buf.len() {
            self.buf.resize(need, 0);
        }
    }

    /// Moves the waiting bytes to the front when that is paid for: by as many bytes consumed before
    /// them, or by their being the start of one single line, which no later call will move again.
    fn compact(&mut self) {
        let waiting = self.end - self.start;
        if self.start > 0 && (self.start >= waiting || self.scanned == self.end) {
            self.count(waiting);
            self.buf.copy_within(self.start..self.end, 0);
            self.scanned -= self.start;
            self.start = 0;
            self.end = waiting;
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        if self.end == 0 && self.peak > 0 {
            let keep = kept(self.buf.capacity(), core::mem::take(&mut self.peak));
            self.buf.truncate(keep);
            self.buf.shrink_to(keep);
        }
    }

    #[cfg(test)]
    fn count(&mut self, bytes: usize) {
        self.work += bytes;
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    const fn count(&mut self, _bytes: usize) {}
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::vec;

    use proptest::prelude::*;

    use super::super::{BUSY, RETAIN};
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Owned {
        Line(Vec<u8>),
        TooLong,
    }

    use Owned::TooLong;

    fn line(text: &str) -> Owned {
        Owned::Line(text.as_bytes().to_owned())
    }

    fn owned(frame: Frame<'_>) -> Owned {
        match frame {
            Frame::Line(line) => Owned::Line(line.to_owned()),
            Frame::TooLong { .. } => TooLong,
        }
    }

    fn take_all(lines: &mut LineBuffer, into: &mut Vec<Owned>) {
        while let Some(frame) = lines.next_frame() {
            into.push(owned(frame));
        }
    }

    fn frames(limit: usize, bytes: &[u8]) -> Vec<Owned> {
        let mut lines = LineBuffer::new(limit);
        let mut found = Vec::new();
        lines.extend(bytes);
        take_all(&mut lines, &mut found);
        while let Some(frame) = lines.finish() {
            found.push(owned(frame));
        }
        assert_eq!(lines.buffered(), 0);
        found
    }

    /// The rules once more, over the whole stream and without any care for time.
    fn reference(limit: usize, bytes: &[u8]) -> Vec<Owned> {
        let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
        bytes
            .split(|b| *b == b'\n')
            .filter_map(|line| {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if line.len() > limit {
                    Some(TooLong)
                } else if line.iter().all(|b| b" \t\r".contains(b)) {
                    None
                } else {
                    Some(Owned::Line(line.to_owned()))
                }
            })
            .collect()
    }

    #[test]
    fn s01_one_leading_bom_is_dropped_and_only_there() {
        assert_eq!(frames(9, b"\xEF\xBB\xBFa\nb\n"), [line("a"), line("b")]);
        assert_eq!(frames(9, b"\xEF\xBB\xBF\xEF\xBB\xBFa\n"), [line("\u{feff}a")]);
        assert_eq!(frames(9, b"a\n\xEF\xBB\xBFb\n"), [line("a"), line("\u{feff}b")]);
        assert_eq!(frames(9, b"\n\xEF\xBB\xBFb\n"), [line("\u{feff}b")], "a blank line starts the stream");
        // Half a mark is no mark, and its bytes are not lost.
        assert_eq!(frames(9, b"\xEF\xBBa\n"), [Owned::Line(b"\xEF\xBBa".to_vec())]);
        assert_eq!(frames(9, b"\xEF"), [Owned::Line(b"\xEF".to_vec())]);
        // The mark does not count towards the length.
        assert_eq!(frames(1, b"\xEF\xBB\xBFa\n"), [line("a")]);
        assert_eq!(frames(0, b"\xEF\xBB\xBF\n"), []);
    }

    #[test]
    fn s02_crlf_blank_lines_and_two_values_on_a_line() {
        let input = b"\r\n\n{1}\r\n   \n{2} \t\r\n{3}{\"x\":1}\n{4}\n";
        let expected = [line("{1}"), line("{2} \t"), line("{3}{\"x\":1}"), line("{4}")];
        assert_eq!(frames(99, input), expected);
        assert_eq!(frames(99, b"a\rb\r\r\n"), [line("a\rb\r")], "only the last CR belongs to the ending");
        assert_eq!(frames(99, b"\x0b\n\x0c\n"), [line("\x0b"), line("\x0c")], "no white space in JSON");
    }

    #[test]
    fn s04_no_hidden_limit() {
        let mut input = vec![b'a'; 5 << 20];
        let expected = Owned::Line(input.clone());
        input.push(b'\n');
        assert!(frames(16 << 20, &input) == [expected.clone()]);
        assert!(frames(5 << 20, &input) == [expected], "a line of just the limit fits");
        assert!(frames((5 << 20) - 1, &input) == [TooLong]);
    }

    #[test]
    fn s04_an_endless_line_is_reported_once_and_memory_stays_bounded() {
        const LIMIT: usize = 1 << 20;
        const READ: usize = 8 << 10;
        let mut lines = LineBuffer::new(LIMIT);
        let mut found = Vec::new();
        for _ in 0..(32 << 20) / READ {
            let room = lines.spare(READ);
            room.fill(b'a');
            lines.commit(READ);
            assert!(lines.buf.capacity() <= LIMIT + 2 * READ, "{}", lines.buf.capacity());
            take_all(&mut lines, &mut found);
        }
        assert_eq!(found, [TooLong]);
        assert!(lines.buf.capacity() <= RETAIN);
        lines.extend(b"aa\n{2}\n");
        take_all(&mut lines, &mut found);
        assert_eq!(found, [TooLong, line("{2}")]);
    }

    #[test]
    fn s04_an_over_long_line_is_reported_before_it_ends() {
        let mut lines = LineBuffer::new(2);
        lines.extend(b"abc");
        assert_eq!(lines.next_frame(), Some(Frame::TooLong { limit: 2 }));
        assert_eq!(lines.next_frame(), None);
        assert_eq!(lines.finish(), None);
        // Two bytes and a CR may still become a line of two bytes.
        let mut lines = LineBuffer::new(2);
        lines.extend(b"ab\r");
        assert_eq!(lines.next_frame(), None);
        lines.extend(b"\n");
        assert_eq!(lines.next_frame(), Some(Frame::Line(b"ab")));
    }

    #[test]
    fn a_stream_of_large_messages_keeps_its_room_until_one_is_short() {
        let mut lines = LineBuffer::new(16 << 20);
        let mut large = vec![b'a'; 300 << 10];
        large.push(b'\n');
        for _ in 0..3 {
            lines.extend(&large);
            assert!(lines.next_frame().is_some());
            assert_eq!(lines.next_frame(), None);
            assert!((300 << 10..=BUSY).contains(&lines.buf.capacity()), "{}", lines.buf.capacity());
        }
        lines.extend(b"a\n");
        assert!(lines.next_frame().is_some());
        assert_eq!(lines.next_frame(), None);
        assert!(lines.buf.capacity() <= RETAIN, "{}", lines.buf.capacity());
    }

    #[test]
    fn s04_capacity_shrinks_after_a_huge_message_without_another_read() {
        let mut lines = LineBuffer::new(16 << 20);
        lines.extend(&vec![b'a'; 4 << 20]);
        lines.extend(b"\n");
        assert!(lines.next_frame().is_some());
        assert!(lines.buf.capacity() > RETAIN);
        assert_eq!(lines.next_frame(), None);
        assert!(lines.buf.capacity() <= RETAIN);
    }

    #[test]
    fn s05_a_character_cut_at_any_byte_arrives_whole() {
        let text = "{\"text\":\"读—🎉é\"}";
        for cut in 0..text.len() {
            let mut lines = LineBuffer::new(99);
            lines.extend(&text.as_bytes()[..cut]);
            assert_eq!(lines.next_frame(), None);
            lines.extend(&text.as_bytes()[cut..]);
            lines.extend(b"\n");
            assert_eq!(lines.next_frame(), Some(Frame::Line(text.as_bytes())), "cut at {cut}");
        }
    }

    #[test]
    fn the_last_line_needs_no_newline() {
        assert_eq!(frames(9, b"a\nb"), [line("a"), line("b")]);
        assert_eq!(frames(9, b"a\n \r"), [line("a")]);
        assert_eq!(frames(1, b"a\nbb"), [line("a"), TooLong]);
        let mut lines = LineBuffer::new(9);
        lines.extend(b"a\nb");
        assert_eq!(lines.finish(), Some(Frame::Line(b"a")), "complete lines first");
        assert_eq!(lines.finish(), Some(Frame::Line(b"b")));
        assert_eq!(lines.finish(), None);
    }

    #[test]
    fn spare_and_commit_take_any_argument() {
        let mut lines = LineBuffer::new(9);
        lines.commit(usize::MAX);
        assert_eq!(lines.buffered(), 0, "nothing was lent");
        assert_eq!(lines.spare(0).len(), 1);
        assert_eq!(lines.spare(usize::MAX).len(), MAX_SPARE);
        lines.spare(3).copy_from_slice(b"ab\n");
        lines.commit(usize::MAX);
        lines.commit(5);
        assert_eq!(lines.buffered(), 3);
        // Frames may be taken between lending and committing.
        lines.spare(2).copy_from_slice(b"c\n");
        assert_eq!(lines.next_frame(), Some(Frame::Line(b"ab")));
        assert_eq!(lines.next_frame(), None);
        lines.commit(2);
        assert_eq!(lines.next_frame(), Some(Frame::Line(b"c")));
        // What is not committed is not part of the stream.
        lines.spare(2).copy_from_slice(b"d\n");
        lines.extend(b"e\n");
        lines.commit(2);
        assert_eq!(lines.next_frame(), Some(Frame::Line(b"e")));
        assert_eq!(lines.next_frame(), None);
        assert_eq!(LineBuffer::new(usize::MAX).spare(1).len(), 1);
    }

    #[test]
    fn clear_starts_another_stream() {
        let mut lines = LineBuffer::new(3);
        lines.extend(b"abcdef");
        assert!(lines.next_frame().is_some());
        lines.clear();
        lines.extend(b"\xEF\xBB\xBFa\n");
        assert_eq!(lines.next_frame(), Some(Frame::Line(b"a")));
    }

    #[test]
    fn work_is_linear_byte_by_byte() {
        const LENGTH: usize = 1 << 20;
        let mut lines = LineBuffer::new(16 << 20);
        for i in 0..LENGTH {
            // Some short lines first, so that the long one does not begin at the front.
            lines.extend(if i < 100 && i % 2 == 1 { b"\n" } else { b"a" });
            while lines.next_frame().is_some() {}
        }
        assert!(lines.work < 4 * LENGTH, "{} bytes of work", lines.work);
    }

    #[test]
    fn work_is_linear_when_frames_are_taken_one_by_one() {
        // A big backlog of small lines: each call consumes one line and adds one.
        const LINES: usize = 50_000;
        let mut lines = LineBuffer::new(16 << 20);
        lines.extend(&b"abc\n".repeat(LINES));
        for _ in 0..LINES {
            assert_eq!(lines.next_frame(), Some(Frame::Line(b"abc")));
            lines.extend(b"abc\n");
        }
        assert!(lines.work < 4 * 8 * LINES, "{} bytes of work", lines.work);
        assert!(lines.buf.capacity() <= 4 * 4 * LINES, "{}", lines.buf.capacity());
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just(&b"\n"[..]),
            3 => Just(&b"\r"[..]),
            2 => Just(&b"\r\n"[..]),
            2 => Just(&b" "[..]),
            1 => Just(&b"\t"[..]),
            4 => Just(&b"a"[..]),
            2 => Just(&b"{\"id\":1}"[..]),
            2 => Just(BOM),
            1 => Just(&BOM[..2]),
            1 => Just("读🎉".as_bytes()),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_frames(
            bytes in stream(),
            limit in 0usize..14,
            cuts in proptest::collection::vec((1usize..9, any::<bool>(), any::<bool>()), 1..20),
        ) {
            let expected = reference(limit, &bytes);
            prop_assert_eq!(&frames(limit, &bytes), &expected);

            let mut found = Vec::new();
            let mut one_by_one = LineBuffer::new(limit);
            for byte in &bytes {
                one_by_one.extend(&[*byte]);
                take_all(&mut one_by_one, &mut found);
            }
            while let Some(frame) = one_by_one.finish() {
                found.push(owned(frame));
            }
            prop_assert_eq!(&found, &expected);

            found.clear();
            let mut split = LineBuffer::new(limit);
            let mut rest = &bytes[..];
            for (length, copy, take_one_only) in cuts.into_iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (head, tail) = rest.split_at(length.min(rest.len()));
                rest = tail;
                if copy {
                    split.extend(head);
                } else {
                    split.spare(9)[..head.len()].copy_from_slice(head);
                    split.commit(head.len());
                }
                if take_one_only {
                    found.extend(split.next_frame().map(owned));
                } else {
                    take_all(&mut split, &mut found);
                }
            }
            while let Some(frame) = split.finish() {
                found.push(owned(frame));
            }
            prop_assert_eq!(&found, &expected);
        }
    }
}
