//! Small matters of text that reports and errors share.

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
