//! Heads of requests and responses, as far as this protocol looks at them.

use alloc::borrow::Cow;
use alloc::vec::Vec;

/// The head of an HTTP request. Implement it for the type that your HTTP stack has; with feature `http`
/// it is implemented for `http::request::Parts`.
pub trait Head {
    /// The method, as sent: `POST`.
    fn method(&self) -> &str;

    /// The path, as sent, without the query: `/mcp`.
    fn path(&self) -> &str;

    /// What follows the `?`, as sent.
    fn query(&self) -> Option<&str>;

    /// The host and port of the request's target: `:authority` of HTTP/2, or an absolute target of HTTP/1.
    /// It counts before the header `Host`.
    fn authority(&self) -> Option<&str>;

    /// Every value of a header, in the order they came. `name` is in lower case; the case that was sent
    /// does not count.
    fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]>;

    /// The value of a header that may stand once only. `Err` if it stands more than once.
    ///
    /// # Errors
    ///
    /// [`Repeated`]: two values, even if they are equal. Two readers of one message must not see different
    /// values.
    fn value<'h>(&'h self, name: &str) -> Result<Option<&'h [u8]>, Repeated> {
        let mut values = self.values(name);
        let first = values.next();
        if values.next().is_some() { Err(Repeated) } else { Ok(first) }
    }
}

/// A header that may stand once stands more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // there is nothing more to say
pub struct Repeated;

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// Names in lower case and their values, which are fit for a header.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
}

impl ResponseHead {
    /// A response without headers.
    #[must_use]
    pub const fn new(status: u16) -> Self {
        Self { status, headers: Vec::new() }
    }

    /// With one more header. A value with control characters or outside ASCII is left out: nothing that a
    /// peer sent can split a response.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        let value = value.into();
        if value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
            self.headers.push((name, value));
        }
        self
    }

    /// The first value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| *n == name).map(|(_, value)| &**value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_split_the_response() {
        let head = ResponseHead::new(401).with("www-authenticate", "Bearer\r\nx: y").with("allow", "POST");
        assert_eq!(head.header("www-authenticate"), None);
        assert_eq!(head.header("allow"), Some("POST"));
    }
}
