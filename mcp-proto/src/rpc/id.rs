//! Request ids and progress tokens: exact, typed, bounded.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// The id of a request, or a progress token: a JSON string or integer.
///
/// `1` and `"1"` are different ids. An integer keeps its value whatever its size: beyond 64 bits its
/// digits are kept. The order is arbitrary but total, for maps.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(Repr);

/// A progress token has the form of an id. [spec: basic/patterns/progress]
pub type ProgressToken = RequestId;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Repr {
    Int(i64),
    /// Decimal digits, with a sign if negative, of an integer that is no `i64`.
    Big(Box<str>),
    Str(Box<str>),
}

impl RequestId {
    /// Reads an id from the JSON text of one value. `None` if it is no string or integer, if it is
    /// written as a fraction or with an exponent, or if it is longer than `max` bytes: a string as it is
    /// without its escapes, an integer as it is written.
    #[must_use]
    pub fn parse(json: &str, max: usize) -> Option<Self> {
        Self::read(json, max).ok()
    }

    pub(crate) fn read(json: &str, max: usize) -> Result<Self, NoId> {
        match json.as_bytes() {
            [b'"', ..] => {
                // No escape is longer for what it stands for than this.
                const ESCAPE: usize = 6;
                if json.len().saturating_sub(2) / ESCAPE > max {
                    return Err(NoId::TooLong);
                }
                let text = str_from_json(json).ok_or(NoId::Other)?;
                if text.len() > max {
                    return Err(NoId::TooLong);
                }
                Ok(Self(Repr::Str(text.into_owned().into_boxed_str())))
            }
            // A number with zeros in front is no JSON.
            [b'-', rest @ ..] | rest
                if matches!(rest, [b'0'] | [b'1'..=b'9', ..]) && rest.iter().all(u8::is_ascii_digit) =>
            {
                if json.len() > max {
                    return Err(NoId::TooLong);
                }
                Ok(Self(json.parse().map_or_else(|_| Repr::Big(json.into()), Repr::Int)))
            }
            _ => Err(NoId::Other),
        }
    }

    /// Whether it is longer than `max` bytes, as [`parse`](Self::parse) counts them.
    pub(crate) fn is_longer_than(&self, max: usize) -> bool {
        match &self.0 {
            Repr::Int(i) => itoa::Buffer::new().format(*i).len() > max,
            Repr::Big(text) | Repr::Str(text) => text.len() > max,
        }
    }

    /// The value, if it is an integer that fits.
    #[must_use]
    pub const fn as_i64(&self) -> Option<i64> {
        match self.0 {
            Repr::Int(i) => Some(i),
            _ => None,
        }
    }

    /// The value, if it is a string.
    #[must_use]
    pub const fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::Str(s) => Some(s),
            _ => None,
        }
    }

    /// Appends the id as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Int(i) => out.extend_from_slice(itoa::Buffer::new().format(*i).as_bytes()),
            Repr::Big(digits) => out.extend_from_slice(digits.as_bytes()),
            Repr::Str(s) => super::write_str(out, s),
        }
    }
}

/// Why a value cannot be taken as an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoId {
    TooLong,
    /// It is of another type, or has an escape that stands for no character.
    Other,
}

impl From<i64> for RequestId {
    fn from(value: i64) -> Self {
        Self(Repr::Int(value))
    }
}

impl From<&str> for RequestId {
    fn from(value: &str) -> Self {
        Self(Repr::Str(value.into()))
    }
}

/// The JSON form, for logs and messages.
impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Int(i) => write!(f, "{i}"),
            Repr::Big(digits) => f.write_str(digits),
            Repr::Str(s) => write!(f, "{s:?}"),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Int(i) => serializer.serialize_i64(*i),
            Repr::Str(s) => serializer.serialize_str(s),
            Repr::Big(digits) => {
                let raw: &serde_json::value::RawValue =
                    serde_json::from_str(digits).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get(), usize::MAX).ok_or_else(|| de::Error::custom("expected a string or an integer"))
    }
}

/// A string that is borrowed where the JSON has no escapes.
pub(crate) struct CowStr<'b>(pub(crate) Cow<'b, str>);

impl<'de> Deserialize<'de> for CowStr<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = CowStr<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<CowStr<'de>, E> {
                Ok(CowStr(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<CowStr<'de>, E> {
                Ok(CowStr(Cow::Owned(v.into())))
            }
        }
        deserializer.deserialize_str(V)
    }
}

/// Decodes the JSON text of one value as a string, borrowed where it has no escapes. `None` if it is
/// no string, or has an escape that stands for no character (a lone surrogate).
pub(crate) fn str_from_json(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<CowStr<'_>>(json).ok().map(|s| s.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn echo(json: &str) -> Option<String> {
        let mut out = Vec::new();
        RequestId::parse(json, 64)?.write(&mut out);
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn ids_echo_exactly() {
        for id in [
            "0",
            "1",
            "-7",
            "9007199254740993",
            "9223372036854775807",
            "18446744073709551616",
            "-9223372036854775809",
            "\"\"",
            "\"1\"",
            "\"a b\"",
            "\"\\u0000\"",
            "\"é\"",
        ] {
            assert_eq!(echo(id).as_deref(), Some(id));
        }
        assert_eq!(echo("\"\\u0061\"").as_deref(), Some("\"a\""));
    }

    #[test]
    fn other_values_are_no_ids() {
        let zeros = ["01", "-00", "00204807115922877859020"];
        for id in ["", "null", "true", "1.0", "1e3", "-", "[1]", "{}", "\"\\ud83d\"", "1.5"]
            .into_iter()
            .chain(zeros)
        {
            assert_eq!(echo(id), None, "{id}");
        }
        assert_eq!(RequestId::parse("\"abcd\"", 3), None);
        assert!(RequestId::parse("\"abc\"", 3).is_some());
        assert_eq!(RequestId::parse("\"ab\"", 1), None);
        assert_eq!((RequestId::parse("1234", 3), RequestId::parse("123", 3)), (None, Some(123.into())));
        assert_eq!((RequestId::parse("-123", 3), RequestId::parse("-12", 3)), (None, Some((-12).into())));
    }

    /// What an id is counts, not how it is written.
    #[test]
    fn the_length_is_that_of_the_text() {
        let escaped = |count| alloc::format!("\"{}\"", "\\u0061".repeat(count));
        assert_eq!(RequestId::parse(&escaped(3), 3), Some("aaa".into()));
        assert_eq!(RequestId::read(&escaped(4), 3), Err(NoId::TooLong));
        assert_eq!(RequestId::read(&escaped(1000), 3), Err(NoId::TooLong));
        assert_eq!(RequestId::parse("\"\\ud83d\\ude00\"", 4), Some("😀".into()));
        assert_eq!(RequestId::read("\"\\ud83d\\ude00\"", 3), Err(NoId::TooLong));
        assert_eq!(RequestId::read("\"\"", 0), Ok("".into()));
        assert_eq!(RequestId::read(&alloc::format!("\"{}\"", "\\ud83d".repeat(3)), 9), Err(NoId::Other));
        for (id, max, is) in
            [(RequestId::from("abc"), 2, true), ("abc".into(), 3, false), (100.into(), 2, true)]
        {
            assert_eq!(id.is_longer_than(max), is, "{id}");
        }
    }

    #[test]
    fn a_string_is_never_a_number() {
        assert_ne!(RequestId::from(1), RequestId::from("1"));
        assert_ne!(RequestId::parse("0", 9), RequestId::parse("\"0\"", 9));
    }
}
