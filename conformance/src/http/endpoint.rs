//! Where a server is.

use std::fmt;

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
        Ok(Self { host, port, authority: authority.to_owned(), target })
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
        for url in ["", "ftp://h/", "https://h/", "http://", "http://h:x/", "http://u:p@h/"] {
            assert!(Endpoint::parse(url).unwrap_err().contains("expected"), "{url}");
        }
    }
}
