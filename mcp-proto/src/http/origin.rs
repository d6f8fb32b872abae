//! Who may talk to a server: the web page that a request comes from, and the name it was sent to.
//!
//! A page can make a browser send requests to servers that only the user's machine reaches, and by DNS
//! rebinding it can do so under a host name of its own. Both names are in the head, and a page cannot
//! change them. [spec: basic/transports/streamable-http#security--endpoint]

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::head::{Head, Repeated};
use super::printable;
use super::value::trim;

/// Which pages (`Origin`) may send requests, and which names (`Host`) the server answers to.
///
/// A request without `Origin` does not come from a web page and passes. Check the heads of all requests,
/// whatever their method, before anything else is looked at.
///
/// ```
/// # use mcp_proto::http::Origins;
/// // On this machine, and for one web application.
/// let local = Origins::loopback().allow_origin("https://app.example")?;
/// // Under a name of its own.
/// let public = Origins::closed().allow_host("mcp.example.com")?.allow_origin("https://app.example")?;
/// # Ok::<(), mcp_proto::http::origin::Invalid>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Origins {
    loopback: bool,
    any_origin: bool,
    any_host: bool,
    origins: Vec<Origin>,
    hosts: Vec<Authority>,
}

impl Default for Origins {
    fn default() -> Self {
        Self::loopback()
    }
}

impl Origins {
    /// For a server that listens on this machine alone: `localhost`, `127.0.0.0/8` and `[::1]` with any
    /// port, as hosts, and as origins with `http` or `https`.
    pub const fn loopback() -> Self {
        let mut origins = Self::closed();
        origins.loopback = true;
        origins
    }

    /// No host and no origin: add those that are meant.
    pub const fn closed() -> Self {
        Self { loopback: false, any_origin: false, any_host: false, origins: Vec::new(), hosts: Vec::new() }
    }

    /// Allows pages of one origin: `https://app.example`, `http://localhost:8080`,
    /// `vscode-webview://panel`. The port is part of it, where the scheme has another one than usual.
    ///
    /// # Errors
    ///
    /// This is no origin: a scheme, `://`, a host and maybe a port, without a path.
    pub fn allow_origin(mut self, origin: &str) -> Result<Self, Invalid> {
        let parsed = Origin::parse(origin.strip_suffix('/').unwrap_or(origin).as_bytes());
        self.origins.push(parsed.ok_or_else(|| Invalid { text: origin.to_owned(), expected: "an origin" })?);
        Ok(self)
    }

    /// Answers to a host name or address. `mcp.example.com` is that name with any port,
    /// `mcp.example.com:8443` with that port; an IPv6 address stands in brackets.
    ///
    /// # Errors
    ///
    /// This is no host.
    pub fn allow_host(mut self, host: &str) -> Result<Self, Invalid> {
        let parsed = Authority::parse(host.as_bytes());
        self.hosts.push(parsed.ok_or_else(|| Invalid { text: host.to_owned(), expected: "a host" })?);
        Ok(self)
    }

    /// Lets pages of any origin in, `null` too: only for a server that relies on nothing but the tokens that
    /// its clients send.
    pub const fn any_origin(mut self) -> Self {
        self.any_origin = true;
        self
    }

    /// Answers to any name: only where something before this server checks the name, or where a stranger
    /// who reaches the server gains nothing.
    pub const fn any_host(mut self) -> Self {
        self.any_host = true;
        self
    }

    /// Whether a request with this head may be looked at.
    ///
    /// # Errors
    ///
    /// What came and what is allowed. The status of the answer is 403.
    pub fn check(&self, head: &impl Head) -> Result<(), Refused> {
        if !self.any_origin {
            match head.value("origin") {
                Ok(None) => {}
                Ok(Some(origin)) if self.allows(origin) => {}
                Ok(Some(origin)) => return Err(self.refuse(Part::Origin, Found::Other(printable(origin)))),
                Err(Repeated) => return Err(self.refuse(Part::Origin, Found::Repeated)),
            }
        }
        if self.any_host { Ok(()) } else { self.check_host(head) }
    }

    /// Whether pages of this origin, the value of an `Origin` header, may send requests. Also what an answer
    /// to a preflight request depends on.
    #[must_use]
    pub fn allows(&self, origin: &[u8]) -> bool {
        self.any_origin
            || Origin::parse(trim(origin)).is_some_and(|origin| {
                self.origins.contains(&origin) || (self.loopback && origin.is_loopback())
            })
    }

    fn check_host(&self, head: &impl Head) -> Result<(), Refused> {
        let header = head.value("host").map_err(|Repeated| self.refuse(Part::Host, Found::Repeated))?;
        let (first, second) = match (head.authority(), header) {
            (None, None) => return Err(self.refuse(Part::Host, Found::Nothing)),
            (None, Some(host)) => (host, None),
            (Some(authority), host) => (authority.as_bytes(), host),
        };
        let other = |host: &[u8]| self.refuse(Part::Host, Found::Other(printable(host)));
        let host = Authority::parse(trim(first)).ok_or_else(|| other(first))?;
        if let Some(second) = second {
            let same = Authority::parse(trim(second)).is_some_and(|second| host.is_same(&second));
            if !same {
                let found = Found::Two(printable(first), printable(second));
                return Err(self.refuse(Part::Host, found));
            }
        }
        let allowed = self.hosts.iter().any(|allowed| allowed.allows(&host))
            || (self.loopback && host.host.is_loopback());
        if allowed { Ok(()) } else { Err(other(first)) }
    }

    fn refuse(&self, part: Part, found: Found) -> Refused {
        use fmt::Write as _;
        /// So many of the allowed are named.
        const MOST: usize = 8;
        let mut allowed = String::new();
        if self.loopback {
            allowed.push_str("localhost, 127.0.0.1 and [::1] with any port");
        }
        let mut name = |name: &dyn fmt::Display| {
            let comma = if allowed.is_empty() { "" } else { ", " };
            let _ = write!(allowed, "{comma}{name}"); // a String takes everything
        };
        match part {
            Part::Origin => self.origins.iter().take(MOST).for_each(|origin| name(origin)),
            Part::Host => self.hosts.iter().take(MOST).for_each(|host| name(host)),
        }
        if allowed.is_empty() {
            allowed.push_str("none");
        }
        Refused { part, found, allowed: allowed.into() }
    }
}

/// A request that comes from a page that may not send any, or was sent to another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    part: Part,
    found: Found,
    allowed: Box<str>,
}

impl Refused {
    /// The status of the answer.
    pub const STATUS: u16 = 403;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Origin,
    Host,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Nothing,
    Repeated,
    Other(String),
    Two(String, String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.part {
            Part::Origin => "Origin",
            Part::Host => "Host",
        };
        match &self.found {
            Found::Nothing => write!(f, "the request names no host")?,
            Found::Repeated => write!(f, "`{name}` stands more than once")?,
            Found::Other(found) => write!(f, "{name} `{found}` is not allowed")?,
            Found::Two(a, b) => write!(f, "the request names two hosts, `{a}` and `{b}`")?,
        }
        write!(f, "; allowed: {}", self.allowed)
    }
}

impl core::error::Error for Refused {}

/// What was to be allowed cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    text: String,
    expected: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let example = match self.expected {
            "an origin" => "https://app.example:8443",
            _ => "mcp.example.com or 127.0.0.1:8080",
        };
        write!(f, "expected {} such as {example}, found {:?}", self.expected, self.text)
    }
}

impl core::error::Error for Invalid {}

/// `scheme://host:port`; the port that a web scheme has anyway is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: Box<str>,
    authority: Authority,
}

impl Origin {
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let colon = text.iter().position(|byte| *byte == b':')?;
        let (scheme, rest) = text.split_at(colon);
        let tail = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        if !scheme.first()?.is_ascii_alphabetic() || !scheme.iter().all(tail) {
            return None;
        }
        let scheme = core::str::from_utf8(scheme).ok()?.to_ascii_lowercase();
        let mut authority = Authority::parse(rest.strip_prefix(b"://")?)?;
        if matches!((&*scheme, authority.port), ("http", Some(80)) | ("https", Some(443))) {
            authority.port = None;
        }
        Some(Self { scheme: scheme.into(), authority })
    }

    /// In lower case.
    pub(crate) fn scheme(&self) -> &str {
        &self.scheme
    }

    fn is_loopback(&self) -> bool {
        matches!(&*self.scheme, "http" | "https") && self.authority.host.is_loopback()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

/// `host:port`
#[derive(Debug, Clone, PartialEq, Eq)]
struct Authority {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    /// In lower case, without a dot at the end.
    Name(Box<str>),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

impl Authority {
    /// Nothing but a host and maybe a port: no user, no path, no encoded characters.
    fn parse(text: &[u8]) -> Option<Self> {
        let text = core::str::from_utf8(text).ok()?;
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
            (Host::V6(address.parse().ok()?), port)
        } else {
            let (name, port) = match text.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            };
            (Host::named(name)?, port)
        };
        let port = match port {
            None | Some("") => None, // an empty port stands for the usual one
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port.parse().ok()?),
            Some(_) => return None,
        };
        Some(Self { host, port })
    }

    /// Whether a request for `other` is meant when this is allowed.
    fn allows(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.is_same(other))
    }

    /// The same place. Without a port it is the usual one of the scheme, which is not known here.
    fn is_same(&self, other: &Self) -> bool {
        let usual = |port: Option<u16>| matches!(port, None | Some(80 | 443));
        let same_port = match (self.port, other.port) {
            (Some(a), Some(b)) => a == b,
            (a, b) => usual(a) && usual(b),
        };
        self.host == other.host && same_port
    }
}

impl Host {
    fn named(name: &str) -> Option<Self> {
        const LONGEST: usize = 253;
        if let Ok(address) = name.parse() {
            return Some(Self::V4(address));
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        let label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        (name.len() <= LONGEST && name.split('.').all(label))
            .then(|| Self::Name(name.to_ascii_lowercase().into()))
    }

    fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => &**name == "localhost",
            Self::V4(address) => address.is_loopback(),
            Self::V6(address) => address.is_loopback(),
        }
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => f.write_str(name)?,
            Host::V4(address) => write!(f, "{address}")?,
            Host::V6(address) => write!(f, "[{address}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::http::testing::TestHead;

    fn host(value: impl AsRef<[u8]>) -> TestHead {
        TestHead::new().with("Host", value)
    }

    fn from(origin: impl AsRef<[u8]>) -> TestHead {
        host("localhost:8000").with("Origin", origin)
    }

    fn passes(origins: &Origins, head: &TestHead) -> bool {
        origins.check(head).is_ok()
    }

    /// H14
    #[test]
    fn loopback_hosts_are_ones_own() {
        for own in [
            "localhost:8000",
            "127.0.0.1:8000",
            "[::1]:8000",
            "localhost",
            "LOCALHOST:8000",
            "localhost.",
            "localhost.:8000",
            "localhost:",
            "[0:0:0:0:0:0:0:1]",
            "127.0.0.2",
            " localhost ",
        ] {
            assert_eq!(Origins::default().check(&host(own)), Ok(()), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "evil.example:8000",
            "127.0.0.1.evil.example:8000",
            "localhost.evil.example",
            "localhost:8000@evil.example",
            "evil.example@localhost",
            "localhost@evil.example",
            "localhost:80:80",
            "localhost:99999",
            "localhost:+80",
            "localhost:80x",
            "localhost..",
            ".localhost",
            ".",
            "xlocalhost",
            "localhost/",
            "localhost#",
            "localhost, evil.example",
            "local host",
            "127.0.0.1%2eevil",
            "127.1",
            "0177.0.0.1",
            "0.0.0.0",
            "[::]",
            "[::1",
            "[::1]evil",
            "[::1%25lo]",
            "::1",
            "http://localhost",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(!passes(&Origins::default(), &host(other)), "{other}");
        }
        assert!(!passes(&Origins::default(), &host(b"localhost\xff")));
        assert!(!passes(&Origins::default(), &host("a".repeat(100_000))));
        assert!(!passes(&Origins::default(), &TestHead::new()));
    }

    /// S-HTTP-02, S-HTTP-03, H14
    #[test]
    fn only_loopback_pages_reach_a_loopback_server() {
        for own in [
            "http://localhost:8000",
            "http://localhost",
            "https://localhost:6274",
            "http://127.0.0.1:3000",
            "http://[::1]:8000",
            "HTTP://LOCALHOST:8000",
            "http://localhost.:8000",
        ] {
            assert_eq!(Origins::default().check(&from(own)), Ok(()), "{own}");
        }
        assert_eq!(Origins::default().check(&host("localhost")), Ok(()));
        for other in [
            "",
            "null",
            "*",
            "localhost",
            "//localhost",
            "http:localhost",
            "http:/localhost",
            "http://evil.example",
            "http://localhost.evil.example",
            "http://localhost:8000.evil.example",
            "http://127.0.0.1.evil.example",
            "http://127.0.0.1@evil.example",
            "http://evil.example@127.0.0.1",
            "http://evil.example#localhost",
            "http://evil.example/localhost",
            "http://localhost/",
            "http://localhost http://evil.example",
            "http://evil.example http://localhost",
            "http://localhost\\.evil.example",
            "http://",
            "://localhost",
            "file://localhost",
            "ws://localhost",
            "chrome-extension://localhost",
        ] {
            assert!(!passes(&Origins::default(), &from(other)), "{other}");
        }
        assert!(!passes(&Origins::default(), &from("http://localhost").with("origin", "http://localhost")));
    }

    /// What the official suite sends: `Host` and `Origin` of a stranger, then one's own.
    #[test]
    fn dns_rebinding_is_refused() {
        let rebound = host("evil.example.com").with("origin", "http://evil.example.com");
        let refused = Origins::default().check(&rebound).unwrap_err();
        assert_eq!(Refused::STATUS, 403);
        assert_eq!(
            refused.to_string(),
            "Origin `http://evil.example.com` is not allowed; allowed: localhost, 127.0.0.1 and [::1] with any port"
        );
        // Each of the two is enough.
        assert!(!passes(&Origins::default(), &host("evil.example.com")));
        assert!(!passes(&Origins::default(), &from("http://evil.example.com")));
        assert!(passes(
            &Origins::default(),
            &host("127.0.0.1:41231").with("origin", "http://127.0.0.1:41231")
        ));
    }

    /// H14: HTTP/2 has `:authority`, which counts; a `Host` besides it must not say something else.
    #[test]
    fn an_authority_counts_before_the_header() {
        let to = |authority| TestHead::new().to(authority);
        assert!(passes(&Origins::default(), &to("localhost:8000")));
        assert!(passes(&Origins::default(), &to("localhost:8000").with("host", "LocalHost:8000")));
        assert!(passes(&Origins::default(), &to("localhost").with("host", "localhost:443")));
        for (authority, second) in [
            ("localhost:8000", "evil.example"),
            ("evil.example", "localhost:8000"),
            ("localhost:8000", "localhost:8001"),
            ("localhost:8000", "localhost"),
            ("localhost:8000", "127.0.0.1:8000"),
            ("localhost", ""),
        ] {
            assert!(
                !passes(&Origins::default(), &to(authority).with("host", second)),
                "{authority} {second}"
            );
        }
        assert!(!passes(&Origins::default(), &to("evil.example")));
        assert!(!passes(&Origins::default(), &to("user@localhost")));
        let twice = host("localhost").with("host", "localhost");
        assert!(!passes(&Origins::default(), &twice));
        assert!(passes(&Origins::default().any_host(), &twice));
    }

    #[test]
    fn more_can_be_allowed() {
        let origins = Origins::closed()
            .allow_host("MCP.example.com")
            .unwrap()
            .allow_host("10.0.0.1:8443")
            .unwrap()
            .allow_origin("https://App.example/")
            .unwrap()
            .allow_origin("vscode-webview://panel-1")
            .unwrap();
        for own in ["mcp.example.com", "mcp.example.com:8443", "mcp.example.com.", "10.0.0.1:8443"] {
            assert!(passes(&origins, &host(own)), "{own}");
        }
        for other in ["localhost", "10.0.0.1", "10.0.0.1:1", "example.com", "a.mcp.example.com"] {
            assert!(!passes(&origins, &host(other)), "{other}");
        }
        // The usual ports are as good as none.
        let usual = Origins::closed().allow_host("mcp.example.com:443").unwrap();
        assert!(passes(&usual, &host("mcp.example.com")) && !passes(&usual, &host("mcp.example.com:80")));
        let from = |origin: &str| host("mcp.example.com").with("origin", origin);
        for own in ["https://app.example", "https://APP.example:443", "vscode-webview://panel-1"] {
            assert!(passes(&origins, &from(own)), "{own}");
        }
        for other in [
            "http://app.example",
            "https://app.example:8443",
            "https://mcp.example.com",
            "https://a.app.example",
            "vscode-webview://panel-2",
            "http://localhost",
            "null",
        ] {
            assert!(!passes(&origins, &from(other)), "{other}");
        }
        assert_eq!(
            origins.check(&host("localhost")).unwrap_err().to_string(),
            "Host `localhost` is not allowed; allowed: mcp.example.com, 10.0.0.1:8443"
        );
        assert!(passes(
            &Origins::default().any_origin(),
            &from("null").without("host").with("host", "[::1]")
        ));
        assert!(passes(&Origins::closed().any_host().any_origin(), &from("null")));
    }

    #[test]
    fn what_is_to_be_allowed_is_checked() {
        for bad in
            ["", "null", "*", "app.example", "https://", "https://a/b", "https://*.example", "https://a b"]
        {
            assert!(Origins::closed().allow_origin(bad).is_err(), "{bad}");
        }
        for bad in ["", "*", "https://a", "a/b", "a:b", "::1", "*.example", "a@b"] {
            assert!(Origins::closed().allow_host(bad).is_err(), "{bad}");
        }
        assert_eq!(
            Origins::closed().allow_origin("app.example").unwrap_err().to_string(),
            r#"expected an origin such as https://app.example:8443, found "app.example""#
        );
    }

    #[test]
    fn a_refusal_repeats_little_and_nothing_odd() {
        let refused = Origins::default().check(&from("x\r\ny".repeat(10_000))).unwrap_err().to_string();
        assert!(refused.len() < 400 && !refused.contains('\n'), "{refused}");
    }
}
