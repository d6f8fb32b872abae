//! Text in a header: as it is, or in base64 between markers if a header cannot hold it.
//! [spec: basic/transports/streamable-http#value-encoding]

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const START: &str = "=?base64?";
const END: &str = "?=";

/// Reads a header's value: without the white space around it, and out of base64 if it stands between the
/// markers `=?base64?` and `?=`. The markers are lower case; whatever else looks similar is plain text.
///
/// # Errors
///
/// The value holds what no header may hold, or what is between the markers is no base64 of UTF-8.
pub fn decode(raw: &[u8]) -> Result<Cow<'_, str>, Undecodable> {
    let text = plain(raw)?;
    let Some(inner) = text.strip_prefix(START).and_then(|text| text.strip_suffix(END)) else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = STANDARD.decode(inner).map_err(|_| Undecodable::Base64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Undecodable::Utf8)
}

/// Reads a header's value that is never in base64: without the white space around it.
///
/// # Errors
///
/// The value holds what no header may hold.
pub(crate) fn plain(raw: &[u8]) -> Result<&str, Undecodable> {
    let raw = trim(raw);
    match core::str::from_utf8(raw) {
        Ok(text) if raw.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) => Ok(text),
        _ => Err(Undecodable::Character),
    }
}

/// Without optional white space around it: blanks and tabs. [RFC 9110 section 5.6.3]
pub(crate) fn trim(mut raw: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = raw {
        raw = rest;
    }
    raw
}

/// Writes text for a header: as it is if a reader sees the same text again, else in base64.
#[must_use]
pub fn encode(value: &str) -> Cow<'_, str> {
    let printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let edge = value.starts_with(' ') || value.ends_with(' ');
    let marked = value.starts_with(START) && value.ends_with(END);
    if printable && !edge && !marked {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(START.len() + value.len().div_ceil(3) * 4 + END.len());
    out.push_str(START);
    STANDARD.encode_string(value, &mut out);
    out.push_str(END);
    Cow::Owned(out)
}

/// A header's value that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Undecodable {
    /// A character that no header holds: a control character, or one outside ASCII.
    Character,
    /// What is between the markers is no standard base64 with padding.
    Base64,
    /// What is in base64 is no UTF-8.
    Utf8,
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Character => "a character that no header can hold",
            Self::Base64 => "something other than standard base64 between `=?base64?` and `?=`",
            Self::Utf8 => "base64 of something that is not UTF-8",
        })
    }
}

impl core::error::Error for Undecodable {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// C-HDR-11, C-HDR-13, C-HDR-14, B-HDR-02: the specification's own examples and the edges next to them.
    #[test]
    fn values_are_encoded_where_a_header_cannot_hold_them() {
        for (value, header) in [
            ("us-west1", "us-west1"),
            ("us west 1", "us west 1"),
            ("", ""),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            (" us-west1", "=?base64?IHVzLXdlc3Qx?="),
            ("us-west1 ", "=?base64?dXMtd2VzdDEg?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="),
            ("\tindented", "=?base64?CWluZGVudGVk?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            // Start and end share a `?`: both marks are there, so a strict reader may take it for one.
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
            ("=?base64?open", "=?base64?open"),
            ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
            ("\u{7f}", "=?base64?fw==?="),
        ] {
            assert_eq!(encode(value), header, "{value:?}");
            assert_eq!(decode(header.as_bytes()).as_deref(), Ok(value), "{header}");
        }
    }

    /// B-HDR-03, S-HDR-12
    #[test]
    fn values_are_trimmed_and_decoded() {
        for (header, value) in [
            (&b" \t tools/call\t "[..], "tools/call"),
            (b"  =?base64?SGVsbG8=?= ", "Hello"),
            (b"=?base64??=", ""),
            (b"=?base64?=", "=?base64?="),
            (b"=?Base64?SGVsbG8=?=", "=?Base64?SGVsbG8=?="),
            (b"SGVsbG8=?=", "SGVsbG8=?="),
            (b"=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
            (b"a\tb", "a\tb"),
            (b" \t ", ""),
        ] {
            assert_eq!(decode(header).as_deref(), Ok(value), "{header:?}");
        }
    }

    /// S-HDR-13
    #[test]
    fn what_cannot_be_decoded_is_an_error() {
        for (header, error) in [
            (&b"=?base64?SGVsbG8?="[..], Undecodable::Base64), // no padding
            (b"=?base64?SGVs!!!bG8=?=", Undecodable::Base64),
            (b"=?base64?SGVsbG9=?=", Undecodable::Base64), // bits left over
            (b"=?base64?SGVs bG8=?=", Undecodable::Base64),
            (b"=?base64?_-8=?=", Undecodable::Base64), // the other alphabet
            (b"=?base64?/w==?=", Undecodable::Utf8),
            ("Hello, 世界".as_bytes(), Undecodable::Character),
            (b"\xff", Undecodable::Character),
            (b"a\nb", Undecodable::Character),
            (b"a\0", Undecodable::Character),
            (b"a\x7f", Undecodable::Character),
        ] {
            assert_eq!(decode(header), Err(error), "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in any::<String>()) {
            let header = encode(&value);
            prop_assert!(header.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            prop_assert_eq!(decode(header.as_bytes()), Ok(Cow::Borrowed(&*value)));
        }

        #[test]
        fn what_looks_marked_is_read_too(value in "=?\\?base64\\?[ -~]{0,6}\\??=?") {
            let header = encode(&value);
            prop_assert_eq!(decode(header.as_bytes()), Ok(Cow::Borrowed(&*value)));
        }

        #[test]
        fn nothing_panics(raw in any::<alloc::vec::Vec<u8>>()) {
            let _ = decode(&raw);
        }
    }
}
