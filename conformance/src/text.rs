//! Small matters of text that reports and errors share.

use std::borrow::Cow;

use serde_json::Value;

/// The text, cut at a character so that at most about `limit` bytes stay, with the length named if cut.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} bytes)", &text[..end], text.len())
}

/// Bytes as text: UTF-8 where it is, escapes where it is not.
pub(crate) fn printable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

/// Reads JSON that came from a subject. Half of a surrogate pair, written as an escape, is within the grammar of JSON
/// [RFC 8259, section 8.2], and no text: it becomes the replacement character.
pub(crate) fn read_json(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(bytes).or_else(|error| match whole_pairs(bytes) {
        Cow::Owned(mended) => serde_json::from_slice(&mended),
        Cow::Borrowed(_) => Err(error),
    })
}

/// The text with each escape of half a pair replaced; borrowed if there is none.
fn whole_pairs(bytes: &[u8]) -> Cow<'_, [u8]> {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut mended = Cow::Borrowed(bytes);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += match (byte, unit(at)) {
            (b'\\', Some(0xD800..=0xDBFF)) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            (b'\\', Some(0xD800..=0xDFFF)) => {
                mended.to_mut()[at..at + 6].copy_from_slice(b"\\ufffd");
                6
            }
            // The escape of a backslash begins no other escape.
            (b'\\', _) => 2,
            _ => 1,
        };
    }
    mended
}

/// Matches `*` in the pattern against any run of characters.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(previous) = last.replace(part) {
            let Some(at) = str::find(rest, previous) else { return false };
            rest = &rest[at + previous.len()..];
        }
    }
    last.map_or(rest.is_empty(), |end: &str| rest.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(shorten("aéb", 2), "a… (4 bytes)");
    }

    #[test]
    fn half_a_surrogate_pair_is_read_as_no_character() {
        let read = |text: &str| read_json(text.as_bytes()).map(|value| value.to_string());
        assert_eq!(read(r#"["a\ud83d b","\uDE00"]"#).unwrap(), "[\"a\u{fffd} b\",\"\u{fffd}\"]");
        assert_eq!(
            read(r#"["\ud83d\ude00","\ud83d\ud83d\ude00"]"#).unwrap(),
            "[\"\u{1f600}\",\"\u{fffd}\u{1f600}\"]"
        );
        assert_eq!(read(r#"["\\ud83d","\ud83d"]"#).unwrap(), r#"["\\ud83d","�"]"#);
        assert!(read(r#"["\ud83d",]"#).is_err());
        assert!(read(r#"["\ud8"]"#).is_err());
        assert!(read(r#"["\ud83d"#).is_err());
    }

    #[test]
    fn a_star_stands_for_any_run() {
        assert!(glob("tools/*", "tools/list"));
        assert!(glob("*list*", "tools/list-pages"));
        assert!(glob("tools/list", "tools/list"));
        assert!(glob("*", ""));
        assert!(!glob("tools/list", "tools/list-pages"));
        assert!(!glob("a*ab", "ab"));
        assert!(glob("a*b*c", "a1b2bc"));
        assert!(!glob("tools/*", "prompts/list"));
    }
}
