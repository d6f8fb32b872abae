//! A URI as characters that are compared by meaning, not by spelling.

use alloc::vec::Vec;

/// One character of a URI.
///
/// `é` and `%C3%A9`, `a` and `%61` are the same key. `/` and `%2F` are not: an encoded reserved character
/// is data, a raw one is structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u32);

/// A reserved character that was percent-encoded.
const ENCODED: u32 = 1 << 31;
/// An encoded byte that is not part of UTF-8.
const OPAQUE: u32 = 1 << 30;

impl Key {
    pub(super) const fn raw(c: char) -> Self {
        Self(c as u32)
    }

    fn encoded(c: char) -> Self {
        Self(c as u32 | if is_reserved(c) { ENCODED } else { 0 })
    }

    /// The character, `None` if it is a byte that is not part of UTF-8.
    pub(super) const fn char(self) -> Option<char> {
        if self.0 & OPAQUE == 0 { char::from_u32(self.0 & !ENCODED) } else { None }
    }

    /// The character if it stands for itself and is reserved: structure.
    pub(super) fn delimiter(self) -> Option<char> {
        char::from_u32(self.0).filter(|c| is_reserved(*c))
    }

    /// Whether it is a reserved character that was encoded although it may stand for itself in some values.
    pub(super) const fn is_encoded_delimiter(self) -> bool {
        self.0 & ENCODED != 0
    }
}

/// The characters of `uri`; an error at a `%` without two hexadecimal digits.
#[derive(Debug, Clone)]
pub(super) struct Keys<'u> {
    rest: &'u str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

pub(super) const fn keys(uri: &str) -> Keys<'_> {
    Keys { rest: uri }
}

pub(super) fn collect(uri: &str) -> Option<Vec<Key>> {
    let mut all = Vec::with_capacity(uri.len());
    for key in keys(uri) {
        all.push(key.ok()?);
    }
    Some(all)
}

impl Iterator for Keys<'_> {
    type Item = Result<Key, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.rest.chars().next()?;
        if first != '%' {
            self.rest = &self.rest[first.len_utf8()..];
            return Some(Ok(Key::raw(first)));
        }
        let Some((key, length)) = encoded(self.rest) else { return Some(Err(Malformed)) };
        self.rest = &self.rest[length..];
        Some(Ok(key))
    }
}

/// The percent-encoded character at the start of `text`, and how many bytes its triplets take.
pub(super) fn encoded(text: &str) -> Option<(Key, usize)> {
    let first = triplet(text.as_bytes())?;
    let length = match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    let mut bytes = [first; 4];
    let mut triplets = text.as_bytes().chunks(3);
    for byte in &mut bytes[..length] {
        *byte = triplets.next().and_then(triplet).unwrap_or(0);
    }
    match core::str::from_utf8(&bytes[..length]).ok().and_then(|text| text.chars().next()) {
        Some(c) => Some((Key::encoded(c), 3 * length)),
        None => Some((Key(OPAQUE | u32::from(first)), 3)),
    }
}

fn triplet(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
}

pub(super) const fn is_unreserved(c: char) -> bool {
    matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~')
}

pub(super) const fn is_reserved(c: char) -> bool {
    matches!(
        c,
        ':' | '/'
            | '?'
            | '#'
            | '['
            | ']'
            | '@'
            | '!'
            | '$'
            | '&'
            | '\''
            | '('
            | ')'
            | '*'
            | '+'
            | ','
            | ';'
            | '='
    )
}
