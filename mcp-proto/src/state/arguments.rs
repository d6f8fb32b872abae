//! What two ways of writing the same arguments have in common.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use sha2::{Digest as _, Sha256};

/// Deepest nesting that is read; deeper arguments are compared as text.
const MAX_DEPTH: u32 = 128;

/// SHA-256 of a call's arguments in a canonical form.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::hex(&self.0, f)
    }
}

/// The digest of arguments, the same for every way of writing them down.
///
/// - The order of an object's members, white space and the escapes in strings make no difference.
/// - Numbers are compared by exact decimal value: `30`, `30.0` and `3e1` are one, `0` and `-0` are one,
///   and nothing is rounded, so `9007199254740993` and `9007199254740992` differ.
/// - Absent arguments are an empty object.
/// - A member that is given twice stays two members, in their order. Such arguments are never equal to
///   those with one of the two.
/// - What is no JSON, is nested deeper than 128, or has an exponent beyond 64 bits is compared as text.
///
/// Takes time proportional to the length of the text, but for the sorting of names.
#[must_use]
pub fn digest_arguments(raw_json: Option<&str>) -> Digest {
    let text = raw_json.unwrap_or("{}");
    let mut hash = Sha256::new();
    let mut reader = Reader { text: text.as_bytes(), at: 0, out: Vec::new() };
    match reader.document() {
        Some(()) => {
            hash.update(b"value\0");
            hash.update(&reader.out);
        }
        None => {
            hash.update(b"text\0");
            hash.update(text);
        }
    }
    Digest(hash.finalize().into())
}

/// Reads JSON and writes each value in a form that ends by itself:
///
/// ```text
/// n | t | f                                    null, true, false
/// 0                                            zero
/// + or -, exponent (8), length (8), digits     another number: digits times ten to the exponent,
///                                              neither first nor last digit is 0
/// s, length (8), UTF-8                         string; a lone surrogate as three bytes
/// [ values ]                                   array
/// { SHA-256                                    object: hash of its members, sorted
/// ```
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    out: Vec<u8>,
}

impl Reader<'_> {
    fn document(&mut self) -> Option<()> {
        self.value(MAX_DEPTH)?;
        self.skip_space();
        (self.at == self.text.len()).then_some(())
    }

    fn value(&mut self, depth: u32) -> Option<()> {
        self.skip_space();
        match self.text.get(self.at)? {
            b'{' => self.object(depth.checked_sub(1)?),
            b'[' => self.array(depth.checked_sub(1)?),
            b'"' => {
                self.out.push(b's');
                let len = self.out.len();
                self.out.extend_from_slice(&[0; 8]);
                let text = self.string()?;
                self.out[len..len + 8].copy_from_slice(&(text.len() as u64).to_be_bytes());
                Some(())
            }
            b'n' => self.word("null"),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: u32) -> Option<()> {
        let start = self.out.len();
        let mut members: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        self.at += 1;
        if !self.closes(b'}') {
            loop {
                self.skip_space();
                let name = self.string()?;
                self.skip_space();
                self.expect(b':')?;
                let value = self.out.len();
                self.value(depth)?;
                members.push((name, value..self.out.len()));
                if !self.goes_on(b'}')? {
                    break;
                }
            }
        }
        // Stable: members of one name keep their order.
        let out = &self.out;
        members.sort_by(|a, b| out[a.0.clone()].cmp(&out[b.0.clone()]));
        let mut hash = Sha256::new();
        hash.update(b"object\0");
        for (name, value) in members {
            hash.update((name.len() as u64).to_be_bytes());
            hash.update(&out[name]);
            hash.update(&out[value]);
        }
        self.out.truncate(start);
        self.out.push(b'{');
        self.out.extend_from_slice(&hash.finalize());
        Some(())
    }

    fn array(&mut self, depth: u32) -> Option<()> {
        self.out.push(b'[');
        self.at += 1;
        if !self.closes(b']') {
            loop {
                self.value(depth)?;
                if !self.goes_on(b']')? {
                    break;
                }
            }
        }
        self.out.push(b']');
        Some(())
    }

    /// Appends the string's content and says where it is.
    fn string(&mut self) -> Option<Range<usize>> {
        let start = self.out.len();
        self.expect(b'"')?;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..0x20))?;
            self.out.extend_from_slice(&rest[..plain]);
            self.at += plain + 1;
            match rest[plain] {
                b'"' => return Some(start..self.out.len()),
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let escape = *self.text.get(self.at)?;
        self.at += 1;
        self.out.push(match escape {
            b'"' | b'\\' | b'/' => escape,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode_escape(),
            _ => return None,
        });
        Some(())
    }

    fn unicode_escape(&mut self) -> Option<()> {
        let mut code = self.four_hex_digits()?;
        if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with(b"\\u") {
            let before = self.at;
            self.at += 2;
            let low = self.four_hex_digits()?;
            if (0xdc00..0xe000).contains(&low) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            } else {
                self.at = before;
            }
        }
        match char::from_u32(code) {
            Some(c) => self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            // What UTF-8 would make of a surrogate, were it allowed: unlike any text.
            None => self.out.extend_from_slice(&[
                0xe0 | (code >> 12) as u8,
                0x80 | (code >> 6 & 0x3f) as u8,
                0x80 | (code & 0x3f) as u8,
            ]),
        }
        Some(())
    }

    fn four_hex_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))
    }

    fn number(&mut self) -> Option<()> {
        let negative = self.eat(b'-');
        let whole = self.digits();
        if whole.is_empty() || (whole.len() > 1 && self.text[whole.start] == b'0') {
            return None;
        }
        let fraction = if self.eat(b'.') { Some(self.digits()).filter(|f| !f.is_empty())? } else { 0..0 };
        let exponent = if self.eat(b'e') || self.eat(b'E') {
            let start = self.at;
            let _ = self.eat(b'-') || self.eat(b'+');
            if self.digits().is_empty() {
                return None;
            }
            core::str::from_utf8(&self.text[start..self.at]).ok()?.parse::<i64>().ok()?
        } else {
            0
        };

        let start = self.out.len();
        self.out.push(if negative { b'-' } else { b'+' });
        self.out.extend_from_slice(&[0; 16]);
        let first = self.out.len();
        for digit in whole.chain(fraction.clone()) {
            let digit = self.text[digit];
            if digit != b'0' || self.out.len() > first {
                self.out.push(digit);
            }
        }
        let all = self.out.len();
        while self.out.len() > first && self.out.last() == Some(&b'0') {
            self.out.pop();
        }
        if self.out.len() == first {
            self.out.truncate(start);
            self.out.push(b'0');
            return Some(());
        }
        let shift = (all - self.out.len()) as i64 - fraction.len() as i64;
        let exponent = exponent.checked_add(shift)?;
        let len = (self.out.len() - first) as u64;
        self.out[start + 1..start + 9].copy_from_slice(&exponent.to_be_bytes());
        self.out[start + 9..first].copy_from_slice(&len.to_be_bytes());
        Some(())
    }

    fn digits(&mut self) -> Range<usize> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        start..self.at
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.text[self.at..].starts_with(word.as_bytes()).then(|| {
            self.at += word.len();
            self.out.push(word.as_bytes()[0]);
        })
    }

    /// Whether the container that was just opened is empty; eats its end if so.
    fn closes(&mut self, end: u8) -> bool {
        self.skip_space();
        self.eat(end)
    }

    /// Eats a comma, or the end of the container.
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        self.skip_space();
        if self.eat(b',') {
            return Some(true);
        }
        self.expect(end).map(|()| false)
    }

    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(eaten);
        eaten
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.eat(byte).then_some(())
    }
}
