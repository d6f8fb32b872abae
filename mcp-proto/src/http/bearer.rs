//! The token of a request.

use core::fmt;

use super::Head;

/// The longest token that is looked at, in bytes. 16 KiB: tokens that list groups have several.
pub const MAX_TOKEN: usize = 16 << 10;

/// An authorization that is not one: the answer is [`400`](super::ProtectedResource::challenge_invalid_request).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadAuthorization {
    /// The header `Authorization` stands more than once.
    Repeated,
    /// `Bearer` is not followed by a token as RFC 6750 has it, or by more than that.
    Malformed,
    /// The token is longer than [`MAX_TOKEN`].
    TooLong,
    /// The token stands in the query, where logs and caches keep it. It may be valid: treat it as leaked.
    InQuery,
}

impl fmt::Display for BadAuthorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated => f.write_str("the header `authorization` stands more than once"),
            Self::Malformed => f.write_str("`Bearer` is followed by something other than one token"),
            Self::TooLong => write!(f, "the token is longer than {MAX_TOKEN} bytes"),
            Self::InQuery => f.write_str("there is an `access_token` in the query"),
        }
    }
}

impl core::error::Error for BadAuthorization {}

/// The token of `Authorization: Bearer`. `None` if the request has no credentials, or those of another
/// scheme. [spec: basic/authorization#token-requirements]
///
/// # Errors
///
/// Everything that two readers could understand in two ways, and tokens in the query.
pub fn bearer<H: Head>(head: &H) -> Result<Option<&str>, BadAuthorization> {
    if head.query().is_some_and(has_access_token) {
        return Err(BadAuthorization::InQuery);
    }
    let Some(value) = head.value("authorization").map_err(|_| BadAuthorization::Repeated)? else {
        return Ok(None);
    };
    let value = value.trim_ascii();
    let end = value.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(value.len());
    let (scheme, token) = value.split_at(end);
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Ok(None);
    }
    // Spaces only: a tab is no separator between a scheme and its credentials. [RFC 9110, section 11.4]
    let start = token.iter().position(|b| *b != b' ').unwrap_or(token.len());
    let token = &token[start..];
    if token.len() > MAX_TOKEN {
        return Err(BadAuthorization::TooLong);
    }
    if !is_b64token(token) {
        return Err(BadAuthorization::Malformed);
    }
    core::str::from_utf8(token).map(Some).map_err(|_| BadAuthorization::Malformed)
}

/// `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`
fn is_b64token(token: &[u8]) -> bool {
    let padding = token.iter().rev().take_while(|b| **b == b'=').count();
    let text = &token[..token.len() - padding];
    !text.is_empty()
        && text
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/'))
}

/// Whether a query has a parameter `access_token`, however it is encoded.
fn has_access_token(query: &str) -> bool {
    query.split('&').any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        percent_decoded(name).eq(b"access_token".iter().copied())
    })
}

fn percent_decoded(text: &str) -> impl Iterator<Item = u8> {
    let mut rest = text.as_bytes();
    core::iter::from_fn(move || {
        let (first, after) = rest.split_first()?;
        if *first == b'%'
            && let [high, low, after @ ..] = after
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            rest = after;
            return Some(high << 4 | low);
        }
        rest = after;
        Some(*first)
    })
}

const fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    struct Request<'a> {
        query: Option<&'a str>,
        authorization: Vec<&'a [u8]>,
    }

    impl Head for Request<'_> {
        fn method(&self) -> &str {
            "POST"
        }
        fn path(&self) -> &str {
            "/mcp"
        }
        fn query(&self) -> Option<&str> {
            self.query
        }
        fn authority(&self) -> Option<&str> {
            None
        }
        fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
            let found: &[&[u8]] = if name == "authorization" { &self.authorization } else { &[] };
            found.iter().copied()
        }
    }

    fn of(value: &str) -> Result<Option<alloc::string::String>, BadAuthorization> {
        let request = Request { query: None, authorization: alloc::vec![value.as_bytes()] };
        bearer(&request).map(|token| token.map(Into::into))
    }

    #[test]
    fn the_token_of_the_header() {
        for value in ["Bearer a.B-9_~+/==", "bearer a.B-9_~+/==", "BEARER   a.B-9_~+/== "] {
            assert_eq!(of(value).unwrap().as_deref(), Some("a.B-9_~+/=="), "{value}");
        }
        let none = Request { query: Some("a=b&access_tokens=1&x=access_token"), authorization: Vec::new() };
        assert_eq!(bearer(&none), Ok(None));
        for other in ["Basic YTpi", "BearerX a", "DPoP abc", ""] {
            assert_eq!(of(other), Ok(None), "{other}");
        }
    }

    #[test]
    fn what_is_no_token_is_a_bad_request_s_auth_11() {
        for value in [
            "Bearer",
            "Bearer ",
            "Bearer =",
            "Bearer a b",
            "Bearer a,b",
            "Bearer a, Bearer b",
            "Bearer a=b",
            "Bearer \"a\"",
            "Bearer\ta",
            "Bearer a\u{e9}",
            "Bearer token=\"a\"",
            "Bearer a\0",
        ] {
            assert_eq!(of(value), Err(BadAuthorization::Malformed), "{value:?}");
        }
        let longest = format!("Bearer {}", "a".repeat(MAX_TOKEN));
        assert!(of(&longest).is_ok_and(|token| token.is_some()));
        assert_eq!(of(&format!("{longest}a")), Err(BadAuthorization::TooLong));
    }

    #[test]
    fn two_headers_are_refused_even_if_they_are_equal_s_auth_11() {
        let twice = Request { query: None, authorization: alloc::vec![b"Bearer a", b"Bearer a"] };
        assert_eq!(bearer(&twice), Err(BadAuthorization::Repeated));
        let mixed = Request { query: None, authorization: alloc::vec![b"Basic a", b"Bearer a"] };
        assert_eq!(bearer(&mixed), Err(BadAuthorization::Repeated));
    }

    #[test]
    fn no_token_is_taken_from_the_query_a06() {
        for query in
            ["access_token=a", "x=1&access_token=a", "access%5Ftoken=a", "access_token", "%61ccess_token="]
        {
            let request = Request { query: Some(query), authorization: Vec::new() };
            assert_eq!(bearer(&request), Err(BadAuthorization::InQuery), "{query}");
            let both = Request { query: Some(query), authorization: alloc::vec![b"Bearer a"] };
            assert_eq!(bearer(&both), Err(BadAuthorization::InQuery), "{query}");
        }
    }
}
