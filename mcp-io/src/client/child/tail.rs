//! The last words of a child.

use std::collections::VecDeque;

/// Most bytes that are kept.
const MOST: usize = 8 << 10;

/// The end of what was written to standard error.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
    /// Something before them was dropped.
    cut: bool,
}

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(MOST)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(MOST);
        self.cut |= excess > 0 || kept.len() < bytes.len();
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
    }

    /// As text that does no harm to a terminal or a log: without control characters, from the beginning of a
    /// line if something was dropped.
    pub(super) fn text(&self) -> String {
        let (first, second) = self.bytes.as_slices();
        let bytes = [first, second].concat();
        let mut kept = &*bytes;
        if self.cut
            && let Some(end) = kept.iter().position(|&byte| byte == b'\n')
            && end + 1 < kept.len()
        {
            kept = &kept[end + 1..];
        }
        let text = String::from_utf8_lossy(kept);
        let harmless = |c: char| match c {
            '\n' | '\t' => c,
            c if c.is_control() => '\u{FFFD}',
            c => c,
        };
        text.replace("\r\n", "\n").trim_end().chars().map(harmless).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_from_the_beginning_of_a_line() {
        let mut tail = Tail::default();
        assert_eq!(tail.text(), "");
        tail.push(b"one\r\n\x1b[31mtwo\n");
        assert_eq!(tail.text(), "one\n\u{FFFD}[31mtwo");
        for line in 0..2000 {
            tail.push(format!("line {line}\n").as_bytes());
        }
        let text = tail.text();
        assert!(text.len() <= MOST && text.len() > MOST - 20);
        assert!(text.starts_with("line 1") && text.ends_with("\nline 1999"), "{text}");
    }

    #[test]
    fn one_endless_line_is_bounded_too() {
        let mut tail = Tail::default();
        tail.push(&vec![b'x'; 10 * MOST]);
        tail.push(&[0xC3]);
        assert_eq!(tail.bytes.len(), MOST);
        assert!(tail.text().ends_with("x\u{FFFD}"));
    }
}
