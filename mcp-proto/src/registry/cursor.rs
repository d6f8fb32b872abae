//! Cursors: names for the places in a list at which a page can start.

use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// A cursor's text. 96 bits of a digest: it cannot be hit by chance.
type Text = [u8; 16];

/// The cursors of one list, made once.
///
/// A cursor is a digest of the list's identity (its kind, its items in order, a secret if there is one)
/// and of a position. So it needs no memory per client and is the same in every process that offers the
/// same; one of another list, or a made-up one, is not found; and it does not tell how many items are
/// hidden before that position, as a number would.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    /// The cursor that leads to item `n + 1`.
    texts: Vec<Text>,
    /// Positions, ordered by their cursors.
    order: Vec<u32>,
}

impl Cursors {
    pub(crate) fn new<'a>(secret: &[u8], kind: &str, keys: impl ExactSizeIterator<Item = &'a str>) -> Self {
        let mut identity = Sha256::new();
        // Each part with its length, so that no two lists look the same.
        let mut part = |part: &[u8]| {
            identity.update(number(part.len()));
            identity.update(part);
        };
        let count = keys.len();
        part(secret);
        part(kind.as_bytes());
        keys.for_each(|key| part(key.as_bytes()));
        let identity = identity.finalize();
        let texts: Vec<Text> = (1..count)
            .map(|position| {
                let digest = Sha256::new().chain_update(identity).chain_update(number(position)).finalize();
                let mut text = Text::default();
                // 12 bytes are 16 characters, exactly.
                let _ = URL_SAFE_NO_PAD.encode_slice(&digest[..12], &mut text);
                text
            })
            .collect();
        let mut order: Vec<u32> = (0..).take(texts.len()).collect();
        order.sort_unstable_by_key(|at| texts[*at as usize]);
        Self { texts, order }
    }

    /// The cursor of a page that starts at `position`, if one can.
    pub(crate) fn text(&self, position: usize) -> Option<&str> {
        core::str::from_utf8(self.texts.get(position.checked_sub(1)?)?).ok()
    }

    /// Where the page of this cursor starts; `None` if it is no cursor of this list.
    pub(crate) fn position(&self, cursor: &str) -> Option<usize> {
        let text = |at: &u32| &self.texts[*at as usize][..];
        let at = self.order.binary_search_by(|at| text(at).cmp(cursor.as_bytes())).ok()?;
        Some(self.order[at] as usize + 1)
    }
}

const fn number(n: usize) -> [u8; 8] {
    (n as u64).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    fn made(secret: &[u8], kind: &str, keys: &[&str]) -> Cursors {
        Cursors::new(secret, kind, keys.iter().copied())
    }

    #[test]
    fn every_position_but_the_first_has_a_cursor() {
        let keys: Vec<String> = (0..300).map(|n| n.to_string()).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let cursors = made(b"", "tool", &keys);
        for position in 1..300 {
            let text = cursors.text(position).unwrap();
            assert!(text.len() == 16 && text.is_ascii());
            assert_eq!(cursors.position(text), Some(position));
        }
        assert_eq!((cursors.text(0), cursors.text(300)), (None, None));
        assert_eq!(made(b"", "tool", &[]).position(""), None);
        assert_eq!(made(b"", "tool", &["a"]).text(1), None);
    }

    /// P01: another list's cursor is as good as a made-up one.
    #[test]
    fn a_cursor_belongs_to_one_list() {
        let keys = ["a", "b", "c"];
        let list = made(b"", "tool", &keys);
        let text = list.text(1).unwrap();
        assert_eq!(made(b"", "tool", &keys).position(text), Some(1), "the same in another process");
        for other in [
            made(b"s", "tool", &keys),
            made(b"", "prompt", &keys),
            made(b"", "tool", &["b", "a", "c"]),
            made(b"", "tool", &["a", "b"]),
            made(b"", "tool", &["ab", "", "c"]),
        ] {
            assert_eq!(other.position(text), None);
        }
        for bad in ["", "1", "bogus", &text[1..], &(text.to_string() + "="), &text.to_ascii_lowercase()] {
            assert_eq!(list.position(bad), None, "{bad:?}");
        }
    }
}
