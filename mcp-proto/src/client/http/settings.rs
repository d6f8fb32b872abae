//! What an HTTP client is set to.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::request::{Field, Token, is_value};
use super::{Reconnect, Url};

/// Where the server is, and how it is reached.
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The endpoint.
    pub url: Url,
    /// The access token to begin with. Sent with every request, and nowhere but to the origin of the URL.
    pub token: Option<Token>,
    /// Whether the driver gets tokens: then what is refused for the lack of one waits for
    /// [`authorize`](super::Client::authorize) or [`decline`](super::Client::decline), and is not failed at
    /// once. Off.
    pub gets_tokens: bool,
    /// How streams of legacy servers are taken up again.
    pub reconnect: Reconnect,
    /// Whether the stream of a legacy session is opened on which the server sends what belongs to no
    /// request. On.
    pub listen: bool,
    /// How long a response may go on after its answer, how long closing waits for notifications and answers
    /// that are on their way, and how long the `DELETE` after them may take. 5 seconds.
    pub linger: Duration,
    pub(crate) headers: Vec<Field>,
}

impl Settings {
    /// The defaults, for the endpoint at this URL.
    #[must_use]
    pub fn new(url: Url) -> Self {
        Self {
            url,
            token: None,
            gets_tokens: false,
            reconnect: Reconnect::default(),
            listen: true,
            linger: Duration::from_secs(5),
            headers: Vec::new(),
        }
    }

    /// Sends one more header with every request, an API key for example.
    ///
    /// # Errors
    ///
    /// The name is no token, is one that the protocol or HTTP itself sets, or the value holds something
    /// other than visible ASCII and blanks within.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, InvalidHeader> {
        let lower = name.to_ascii_lowercase();
        let is_token = !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
        if !is_token {
            return Err(InvalidHeader { name: name.into(), problem: "its name is no token" });
        }
        if lower.starts_with("mcp-") || TAKEN.contains(&&*lower) {
            return Err(InvalidHeader { name: name.into(), problem: "it is not the caller's to set" });
        }
        if !is_value(value) {
            return Err(InvalidHeader { name: name.into(), problem: "no header can hold its value" });
        }
        self.headers.push((Cow::Owned(lower), Cow::Owned(String::from(value))));
        Ok(self)
    }

    /// Sets [`token`](field@Self::token).
    #[must_use]
    pub fn token(mut self, token: impl Into<Option<Token>>) -> Self {
        self.token = token.into();
        self
    }

    /// Sets [`gets_tokens`](field@Self::gets_tokens).
    #[must_use]
    pub const fn gets_tokens(mut self, on: bool) -> Self {
        self.gets_tokens = on;
        self
    }

    /// Sets [`reconnect`](field@Self::reconnect).
    #[must_use]
    pub const fn reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = reconnect;
        self
    }

    /// Sets [`listen`](field@Self::listen).
    #[must_use]
    pub const fn listen(mut self, on: bool) -> Self {
        self.listen = on;
        self
    }
}

/// What a request says anyway, or what would change where it ends. A key of another kind may stand in
/// `Authorization`.
const TAKEN: &[&str] = &[
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("Settings")
            .field("url", &self.url)
            .field("token", &self.token)
            .field("gets_tokens", &self.gets_tokens)
            .field("reconnect", &self.reconnect)
            .field("listen", &self.listen)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// A header that cannot be sent with every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidHeader {
    name: String,
    problem: &'static str,
}

impl fmt::Display for InvalidHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the header {:?} cannot be added: {}", self.name, self.problem)
    }
}

impl core::error::Error for InvalidHeader {}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn headers_of_the_caller_are_checked() {
        let settings = || Settings::new(Url::parse("https://h/mcp").unwrap());
        let with = settings().header("X-Api-Key", "k e y").unwrap();
        assert_eq!(with.headers, [("x-api-key".into(), "k e y".into())]);
        assert!(!format!("{with:?}").contains("k e y"));
        assert!(settings().header("Authorization", "Basic YTpi").is_ok());
        for (name, value) in [
            ("", "v"),
            ("a b", "v"),
            ("a\r\nb", "v"),
            ("a", "v\r\nb: c"),
            ("a", " v"),
            ("a", "é"),
            ("Mcp-Session-Id", "x"),
            ("mcp-protocol-version", "x"),
            ("Content-Type", "x"),
            ("HOST", "x"),
        ] {
            assert!(settings().header(name, value).is_err(), "{name:?} {value:?}");
        }
    }
}
