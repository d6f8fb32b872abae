//! Where a server is: an absolute `http` or `https` URL, and what may be reached from it.
//!
//! Nothing is normalised: what is given is what is sent and compared. Only the origin is compared by what it
//! means (letter case of the host, the usual port).

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::http::origin::Origin;
use crate::rpc::Short;

/// The longest URL in bytes. 8 KiB.
const MAX: usize = 8 << 10;

/// The absolute URL of an endpoint, without a fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    text: Box<str>,
    /// Where the path begins; if it is empty, the end of the authority.
    path: usize,
    origin: Origin,
}

impl Url {
    /// Reads `https://host:port/path?query`. A fragment is dropped.
    ///
    /// # Errors
    ///
    /// It is no such URL, it has a user name or password, or it is longer than 8 KiB.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let invalid = |problem| InvalidUrl { text: format!("{}", Short(text)).into(), problem };
        if text.len() > MAX {
            return Err(invalid(Problem::TooLong));
        }
        if let Some(odd) = text.chars().find(|c| !c.is_ascii_graphic() || *c == '\\') {
            return Err(invalid(Problem::Character(odd)));
        }
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let (scheme, rest) = text.split_once("://").ok_or_else(|| invalid(Problem::Relative))?;
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return Err(invalid(Problem::Scheme));
        }
        let authority = rest.find(['/', '?']).map_or(rest, |at| &rest[..at]);
        if authority.contains('@') {
            return Err(invalid(Problem::User));
        }
        let path = scheme.len() + 3 + authority.len();
        let origin = Origin::parse(&text.as_bytes()[..path]).ok_or_else(|| invalid(Problem::Host))?;
        Ok(Self { text: text.into(), path, origin })
    }

    /// The URL as it was given, without a fragment.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is `https`.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.origin.scheme() == "https"
    }

    /// Host and port as given: what `Host` and `:authority` say.
    #[must_use]
    pub fn authority(&self) -> &str {
        let start = self.text.find("://").map_or(0, |at| at + 3);
        &self.text[start..self.path]
    }

    /// Scheme, host and port, as given.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.text[..self.path]
    }

    /// Path and query: what the first line of a request of HTTP/1 says. At least `/`.
    #[must_use]
    pub fn target(&self) -> String {
        let target = self.raw_target();
        if target.starts_with('/') { target.to_owned() } else { format!("/{target}") }
    }

    /// Path and query as given.
    pub(crate) fn raw_target(&self) -> &str {
        &self.text[self.path..]
    }

    /// Whether both are of the same scheme, host and port.
    #[must_use]
    pub fn is_same_origin(&self, other: &Self) -> bool {
        self.origin == other.origin
    }

    /// What a reference on this URL means: absolute, or relative to it. [RFC 3986 section 5.2]
    ///
    /// # Errors
    ///
    /// It leads to no `http` or `https` URL.
    pub fn join(&self, reference: &str) -> Result<Self, InvalidUrl> {
        let reference = reference.split_once('#').map_or(reference, |(before, _)| before);
        if has_scheme(reference) {
            return Self::parse(reference);
        }
        if reference.starts_with("//") {
            return Self::parse(&format!("{}:{reference}", self.origin.scheme()));
        }
        let base = self.raw_target();
        let (base_path, _) = split_query(base);
        let (path, query) = split_query(reference);
        let target = if reference.is_empty() {
            base.to_owned()
        } else if path.is_empty() {
            format!("{base_path}{query}")
        } else if path.starts_with('/') {
            format!("{}{query}", without_dots(path))
        } else {
            let folder = base_path.rfind('/').map_or("/", |at| &base_path[..=at]);
            format!("{}{query}", without_dots(&format!("{folder}{path}")))
        };
        Self::parse(&format!("{}{target}", self.origin()))
    }
}

/// Whether a reference is absolute: a scheme and a colon before anything else.
fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// The path, and the query with its `?`.
fn split_query(target: &str) -> (&str, &str) {
    target.find('?').map_or((target, ""), |at| target.split_at(at))
}

/// A path that begins with `/`, without `.` and `..`. [RFC 3986 section 5.2.4]
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut steps = path[1..].split('/').peekable();
    while let Some(step) = steps.next() {
        let is_last = steps.peek().is_none();
        match step {
            "." if is_last => kept.push(""),
            "." => {}
            ".." => {
                kept.pop();
                if is_last {
                    kept.push("");
                }
            }
            step => kept.push(step),
        }
    }
    format!("/{}", kept.join("/"))
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({})", self.text)
    }
}

impl core::str::FromStr for Url {
    type Err = InvalidUrl;
    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        Self::parse(text)
    }
}

/// What is no URL of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidUrl {
    /// The beginning of what came.
    text: Box<str>,
    problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    TooLong,
    Character(char),
    Relative,
    Scheme,
    User,
    Host,
}

impl fmt::Display for InvalidUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a URL such as https://example.com/mcp, found {:?}: ", self.text)?;
        match self.problem {
            Problem::TooLong => write!(f, "longer than {MAX} bytes"),
            Problem::Character(odd) => write!(f, "it holds {odd:?}"),
            Problem::Relative => f.write_str("it has no scheme"),
            Problem::Scheme => f.write_str("its scheme is neither http nor https"),
            Problem::User => f.write_str("credentials do not belong into a URL"),
            Problem::Host => f.write_str("its host cannot be read"),
        }
    }
}

impl core::error::Error for InvalidUrl {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn parts_are_as_they_were_given() {
        for (text, authority, target, secure) in [
            ("https://example.com/mcp", "example.com", "/mcp", true),
            ("http://localhost:8000", "localhost:8000", "/", false),
            ("HTTP://LocalHost:8000/", "LocalHost:8000", "/", false),
            ("https://h?a=b", "h", "/?a=b", true),
            ("https://[::1]:8443/a//b/?q=%20#frag", "[::1]:8443", "/a//b/?q=%20", true),
        ] {
            let url = url(text);
            assert_eq!((url.authority(), &*url.target(), url.is_secure()), (authority, target, secure));
            assert_eq!(url.as_str(), text.split('#').next().unwrap());
        }
    }

    #[test]
    fn what_is_no_url_of_a_server_is_refused() {
        for text in [
            "",
            "/mcp",
            "example.com/mcp",
            "ftp://h/",
            "file:///etc/passwd",
            "javascript://h/",
            "https://user:secret@h/",
            "https://user@h/",
            "https://h@evil.example",
            "https://",
            "https:///mcp",
            "https://h:99999/",
            "https://h:x/",
            "https://h\\@evil.example/",
            "https://h/a b",
            "https://h/\r\nx: y",
            "https://h/é",
            "https://[::1/",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
        assert!(Url::parse(&format!("https://h/{}", "a".repeat(MAX))).is_err());
        let shown = Url::parse("https://user:secret@h/").unwrap_err().to_string();
        assert!(shown.ends_with("credentials do not belong into a URL"), "{shown}");
    }

    #[test]
    fn origins_are_compared_by_what_they_mean() {
        let same = |a, b| url(a).is_same_origin(&url(b));
        assert!(same("https://h/a", "HTTPS://H:443/b"));
        assert!(same("http://h", "http://h:80/x"));
        assert!(same("http://[::1]/", "http://[0:0:0:0:0:0:0:1]:80/"));
        for other in ["http://h/", "https://h:444/", "https://h.evil/", "https://x.h/", "https://127.0.0.1/"]
        {
            assert!(!same("https://h/a", other), "{other}");
        }
    }

    /// The examples of RFC 3986 section 5.4, as far as they lead to HTTP.
    #[test]
    fn references_are_resolved() {
        let base = url("http://a/b/c/d;p?q");
        for (reference, resolved) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("https://x:1/y?z", "https://x:1/y?z"),
            ("/messages?session=a:b", "http://a/messages?session=a:b"),
        ] {
            assert_eq!(base.join(reference).unwrap().as_str(), resolved, "{reference}");
        }
        assert_eq!(url("http://a").join("g").unwrap().as_str(), "http://a/g");
        assert_eq!(url("http://a?x").join("?y").unwrap().as_str(), "http://a?y");
        for other in ["mailto:x@y", "javascript:alert(1)", "//", "/a b", "http:g"] {
            assert!(base.join(other).is_err(), "{other}");
        }
    }

    proptest! {
        /// A relative reference with one slash, or none, stays where it is.
        #[test]
        fn a_path_leads_nowhere_else(reference in "/?([a-z.?=&%-]{1,4}/?){0,6}") {
            let base = url("https://h:1/a/b");
            let joined = base.join(&reference).unwrap();
            prop_assert!(joined.is_same_origin(&base));
            prop_assert!(joined.target().starts_with('/'));
        }

        #[test]
        fn nothing_panics(reference in any::<String>()) {
            let _ = Url::parse(&reference);
            let _ = url("https://h/a?b").join(&reference);
        }
    }
}
