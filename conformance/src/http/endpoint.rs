//! Where a server is.

use std::fmt;

use super::{TokenKind, Tokens};

/// The address of an MCP endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// The host to connect to, an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Host and port as in the URL: the `Host` of a request.
    pub authority: String,
    /// Path and query.
    pub target: String,
    /// Whether it is the stream of the transport of 2024-11-05 (HTTP+SSE), which says where messages are posted to.
    pub is_sse: bool,
    /// The tokens that open it.
    pub tokens: Tokens,
}

impl Endpoint {
    /// Reads `http://HOST[:PORT][/PATH]`.
    ///
    /// # Errors
    ///
    /// Says what was expected and what came.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = |expected: &str| format!("expected {expected}, got `{url}`");
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
                return Err(wrong("a URL that begins with `http://` (TLS is not in this version yet)"));
            }
            _ => return Err(wrong("a URL that begins with `http://`")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().map_err(|_| wrong("a port from 1 to 65535"))?)
            }
            _ => (authority, 80),
        };
        if host.is_empty() || host.contains('@') {
            return Err(wrong("a host without user and password"));
        }
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self {
            host,
            port,
            authority: authority.to_owned(),
            target,
            is_sse: false,
            tokens: Tokens::default(),
        })
    }

    /// The same place as the stream of the transport of 2024-11-05.
    #[must_use]
    pub fn sse(mut self) -> Self {
        self.is_sse = true;
        self
    }

    /// The same place, opened by these tokens.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = tokens;
        self
    }

    /// What every request says of who sends it.
    pub(crate) fn credentials(&self) -> Option<(String, String)> {
        let token = self.tokens.of(TokenKind::First)?;
        Some(("Authorization".to_owned(), format!("Bearer {token}")))
    }

    /// The target that a reference names from here.
    ///
    /// # Errors
    ///
    /// It names another server.
    pub(crate) fn resolve(&self, reference: &str) -> Result<String, String> {
        let reference = reference.split('#').next().unwrap_or_default();
        if reference.contains("://") && !reference.starts_with(['/', '?']) {
            let elsewhere = || format!("expected a URI of {}, got `{reference}`", self.authority);
            let named = Self::parse(reference).map_err(|_| elsewhere())?;
            let here = named.port == self.port && named.host.eq_ignore_ascii_case(&self.host);
            return if here { Ok(named.target) } else { Err(elsewhere()) };
        }
        if reference.starts_with("//") {
            return self.resolve(&format!("http:{reference}"));
        }
        let path = self.target.split('?').next().unwrap_or_default();
        Ok(match reference.as_bytes().first() {
            None => self.target.clone(),
            Some(b'/') => reference.to_owned(),
            Some(b'?') => format!("{path}{reference}"),
            Some(_) => format!("{}/{reference}", path.rsplit_once('/').map_or("", |(folder, _)| folder)),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        for (url, host, port, target) in [
            ("http://127.0.0.1:80/mcp", "127.0.0.1", 80, "/mcp"),
            ("HTTP://localhost", "localhost", 80, "/"),
            ("http://[::1]:3000/a/b?c=d#e", "::1", 3000, "/a/b?c=d"),
            ("http://h?x", "h", 80, "/?x"),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!((&*endpoint.host, endpoint.port, &*endpoint.target), (host, port, target), "{url}");
        }
        let base = Endpoint::parse("http://127.0.0.1:80/a/sse?x").unwrap();
        for (reference, target) in [
            ("/m?s=1", "/m?s=1"),
            ("m?s=1", "/a/m?s=1"),
            ("?s=1", "/a/sse?s=1"),
            ("http://127.0.0.1/m?s=http://x/", "/m?s=http://x/"),
            ("//127.0.0.1:80/m", "/m"),
            ("/m?next=http://h/", "/m?next=http://h/"),
        ] {
            assert_eq!(base.resolve(reference).as_deref(), Ok(target), "{reference}");
        }
        for reference in
            ["http://127.0.0.1:81/m", "http://evil.example/m", "//evil.example/m", "https://127.0.0.1/m"]
        {
            assert!(base.resolve(reference).unwrap_err().contains("expected a URI of"), "{reference}");
        }
        for url in ["", "ftp://h/", "https://h/", "http://", "http://h:x/", "http://u:p@h/"] {
            assert!(Endpoint::parse(url).unwrap_err().contains("expected"), "{url}");
        }
    }
}
