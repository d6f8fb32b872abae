//! JSON text, walked once: what is a value, where it ends, how deep it goes.
//!
//! The envelope of a message needs no values, only their places. This finds them without looking at a byte
//! twice, and takes and refuses the same texts as `serde_json` does when it skips a value; tests hold the
//! one against the other.

use alloc::borrow::Cow;

use serde::de::value::{BorrowedStrDeserializer, Error as ValueError};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::id::str_from_json;

/// Nesting that is walked here. Below that `serde_json` goes on, whose stack grows.
const DEEPEST: u32 = u128::BITS;

/// The text is no JSON from about this byte on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault(usize);

impl Fault {
    /// Line and column, from 1, in the words of `serde_json` where it sees a fault as well.
    #[cold]
    pub(super) fn place(self, text: &str) -> (usize, usize) {
        if let Err(e) = serde_json::from_str::<IgnoredAny>(text) {
            return (e.line(), e.column());
        }
        let before = &text.as_bytes()[..self.0.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        (line, before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1)
    }
}

/// A place in a text, always between two characters.
pub(super) struct Scanner<'b> {
    text: &'b str,
    at: usize,
    depth: u32,
    deepest: u32,
}

impl<'b> Scanner<'b> {
    pub(super) const fn new(text: &'b str) -> Self {
        Self { text, at: 0, depth: 0, deepest: 0 }
    }

    /// Whether arrays and objects were nested deeper than `max` in what was walked; all of it must have been.
    pub(super) fn went_deeper_than(&self, max: usize) -> bool {
        self.deepest as usize > max || (self.deepest > DEEPEST && deeper_than(self.text.as_bytes(), max))
    }

    /// The first byte of the next token.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Nothing but white space follows.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        if self.peek().is_none() { Ok(()) } else { Err(self.fault()) }
    }

    /// Walks an object: `member` must take the value of the name it is given.
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'b, str>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.token(b'{')?;
        self.enter(1);
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                let name = self.name()?;
                self.token(b':')?;
                member(self, name)?;
                if self.peek() != Some(b',') {
                    break self.token(b'}')?;
                }
                self.at += 1;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Walks an array: `item` must take the item that is next.
    pub(super) fn array(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.token(b'[')?;
        self.enter(1);
        if self.peek() == Some(b']') {
            self.at += 1;
        } else {
            loop {
                item(self)?;
                if self.peek() != Some(b',') {
                    break self.token(b']')?;
                }
                self.at += 1;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// The next value.
    pub(super) fn value(&mut self) -> Result<&'b RawValue, Fault> {
        let first = self.peek();
        let from = self.at;
        match first {
            Some(b'"') => {
                self.at += 1;
                self.string()?;
            }
            Some(b'{' | b'[') => self.nested()?,
            _ => self.scalar()?,
        }
        Ok(raw(&self.text[from..self.at]))
    }

    /// A member's name. One with an escape that stands for no character is no name.
    fn name(&mut self) -> Result<Cow<'b, str>, Fault> {
        self.token(b'"')?;
        let from = self.at;
        if self.string()? {
            return str_from_json(&self.text[from - 1..self.at]).ok_or(Fault(from));
        }
        Ok(Cow::Borrowed(&self.text[from..self.at - 1]))
    }

    /// Walks an array or object. What encloses the current value is a list of bits, 1 for an object.
    fn nested(&mut self) -> Result<(), Fault> {
        let from = self.at;
        let (mut enclosing, mut level) = (0u128, 0u32);
        'value: loop {
            let first = self.peek();
            match first {
                Some(open @ (b'{' | b'[')) => {
                    if level == DEEPEST {
                        return self.deeper(from);
                    }
                    let object = open == b'{';
                    enclosing = enclosing << 1 | u128::from(object);
                    level += 1;
                    self.at += 1;
                    // The closing bracket is two above the opening one.
                    if self.peek() != Some(open + 2) {
                        if object {
                            self.skip_name()?;
                        }
                        continue 'value;
                    }
                }
                Some(b'"') => {
                    self.at += 1;
                    self.string()?;
                }
                _ => self.scalar()?,
            }
            self.enter(level);
            self.depth -= level;
            loop {
                let object = enclosing & 1 == 1;
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if object {
                            self.skip_name()?;
                        }
                        continue 'value;
                    }
                    Some(b'}') if object => self.at += 1,
                    Some(b']') if !object => self.at += 1,
                    _ => return Err(self.fault()),
                }
                enclosing >>= 1;
                level -= 1;
                if level == 0 {
                    return Ok(());
                }
            }
        }
    }

    /// The value that begins at `from` is nested deeper than the list of bits is long.
    #[cold]
    fn deeper(&mut self, from: usize) -> Result<(), Fault> {
        self.deepest = DEEPEST + 1;
        let mut values = serde_json::Deserializer::from_str(&self.text[from..]).into_iter::<&RawValue>();
        let Some(Ok(value)) = values.next() else { return Err(self.fault()) };
        self.at = from + value.get().len();
        Ok(())
    }

    fn skip_name(&mut self) -> Result<(), Fault> {
        self.token(b'"')?;
        self.string()?;
        self.token(b':')
    }

    fn token(&mut self, byte: u8) -> Result<(), Fault> {
        if self.peek() != Some(byte) {
            return Err(self.fault());
        }
        self.at += 1;
        Ok(())
    }

    /// Notes that the walk is so many levels deeper.
    fn enter(&mut self, levels: u32) {
        self.depth += levels;
        self.deepest = self.deepest.max(self.depth);
    }

    /// From behind the opening quote to behind the closing one. Whether there is an escape.
    fn string(&mut self) -> Result<bool, Fault> {
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        loop {
            self.at = plain(bytes, self.at);
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.at += match bytes.get(self.at + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                        Some(b'u') => match bytes.get(self.at + 2..self.at + 6) {
                            Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => 6,
                            _ => return Err(self.fault()),
                        },
                        _ => return Err(self.fault()),
                    };
                }
                _ => return Err(self.fault()),
            }
        }
    }

    fn scalar(&mut self) -> Result<(), Fault> {
        let rest = &self.text.as_bytes()[self.at..];
        let len = match rest {
            [b't', b'r', b'u', b'e', ..] | [b'n', b'u', b'l', b'l', ..] => 4,
            [b'f', b'a', b'l', b's', b'e', ..] => 5,
            _ => number(rest).ok_or_else(|| self.fault())?,
        };
        self.at += len;
        Ok(())
    }

    #[cold]
    fn fault(&self) -> Fault {
        Fault(self.at)
    }
}

/// How long the number is that `bytes` begin with.
fn number(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let mut at = digits(sign);
    // No digit at all, or more behind a zero.
    if at == sign || (at > sign + 1 && bytes[sign] == b'0') {
        return None;
    }
    if bytes.get(at) == Some(&b'.') {
        let to = digits(at + 1);
        if to == at + 1 {
            return None;
        }
        at = to;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let from = at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let to = digits(from);
        if to == from {
            return None;
        }
        at = to;
    }
    Some(at)
}

/// The first byte from `at` on that cannot stand in a JSON string as it is, or the end.
pub(super) fn plain(bytes: &[u8], mut at: usize) -> usize {
    const WORD: usize = 8;
    const BLOCK: usize = 64;
    // Most strings are short, so whole blocks are tried only behind four words.
    let mut words = 0;
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<WORD>) {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += WORD;
        words += 1;
        if words == 4 {
            while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
                if block.iter().fold(false, |any, byte| any | is_special(*byte)) {
                    break;
                }
                at += BLOCK;
            }
        }
    }
    at + bytes[at..].iter().position(|byte| is_special(*byte)).unwrap_or(bytes.len() - at)
}

const fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Not 0 if one of eight bytes is special. Its lowest bit is in the first of them; above that one it means
/// nothing, for a borrow may run through.
const fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const fn below(word: u64, least: u8) -> u64 {
        word.wrapping_sub(ONES * least as u64) & !word
    }
    let control = below(word, 0x20);
    let quote = below(word ^ (ONES * b'"' as u64), 1);
    let backslash = below(word ^ (ONES * b'\\' as u64), 1);
    (control | quote | backslash) & (ONES << 7)
}

/// A text that is known to be one JSON value, without white space around it.
fn raw(text: &str) -> &RawValue {
    match <&RawValue>::deserialize(Known(text)) {
        Ok(raw) => raw,
        // Not while `serde_json` asks for a raw value as it does: then it may look at the text itself.
        Err(_) => serde_json::from_str(text).unwrap_or(RawValue::NULL),
    }
}

/// Gives `serde_json` a raw value the way its own deserializer does: as a map of one member, whose name is
/// that of the struct it asks for.
struct Known<'b>(&'b str);

impl<'de> Deserializer<'de> for Known<'de> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_map(KnownMember { name: Some(name), text: self.0 })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct KnownMember<'b> {
    name: Option<&'static str>,
    text: &'b str,
}

impl<'de> MapAccess<'de> for KnownMember<'de> {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ValueError> {
        self.name.take().map(|name| seed.deserialize(BorrowedStrDeserializer::new(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ValueError> {
        seed.deserialize(BorrowedStrDeserializer::new(self.text))
    }
}

/// Whether valid JSON nests deeper than `max`.
#[cold]
fn deeper_than(json: &[u8], max: usize) -> bool {
    let (mut depth, mut at) = (0usize, 0usize);
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while let Some(step) = memchr::memchr2(b'"', b'\\', json.get(at..).unwrap_or_default()) {
                    at += step;
                    if json[at] == b'"' {
                        break;
                    }
                    at += 2;
                }
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests;
