//! Redirects: within the origin, a few times, and never into another method.

use alloc::string::String;
use core::fmt;

use super::Url;

/// How many in a row.
const MOST: u8 = 5;

/// Why a redirect is not followed. A client sends its credentials and its messages to the origin that it was
/// given, and to no other. [spec: basic/authorization#token-handling]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadRedirect {
    /// There is no `Location`, there are several, or it is no URL.
    NoLocation,
    /// It leads to another scheme, host or port: here.
    OtherOrigin(String),
    /// A message would have to be sent as `GET`.
    OtherMethod,
    /// There were too many in a row.
    TooMany,
}

/// Whether a status redirects, as far as this protocol is concerned.
pub(crate) const fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Where a redirect leads. `followed` counts those before it. [RFC 9110 section 15.4]
pub(crate) fn follow<'h>(
    status: u16,
    method: &str,
    from: &Url,
    mut locations: impl Iterator<Item = &'h [u8]>,
    followed: u8,
) -> Result<Url, BadRedirect> {
    if followed >= MOST {
        return Err(BadRedirect::TooMany);
    }
    let (Some(location), None) = (locations.next(), locations.next()) else {
        return Err(BadRedirect::NoLocation);
    };
    let location = core::str::from_utf8(location).map_err(|_| BadRedirect::NoLocation)?;
    let to = from.join(location.trim_matches([' ', '\t'])).map_err(|_| BadRedirect::NoLocation)?;
    if !to.is_same_origin(from) {
        return Err(BadRedirect::OtherOrigin(to.origin().into()));
    }
    // 301 and 302 are followed with GET by habit, 303 by definition.
    if method != "GET" && !matches!(status, 307 | 308) {
        return Err(BadRedirect::OtherMethod);
    }
    Ok(to)
}

impl fmt::Display for BadRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLocation => f.write_str("expected a redirect with one `Location`"),
            Self::OtherOrigin(origin) => {
                write!(
                    f,
                    "expected a redirect within the origin, found one to {origin}; connect there if it is meant"
                )
            }
            Self::OtherMethod => {
                f.write_str("expected status 307 or 308 of a redirect, found one that drops the body")
            }
            Self::TooMany => write!(f, "more than {MOST} redirects in a row"),
        }
    }
}

impl core::error::Error for BadRedirect {}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn to(status: u16, method: &str, locations: &[&str]) -> Result<String, BadRedirect> {
        let from = Url::parse("https://h/a/mcp").unwrap();
        let locations: Vec<&[u8]> = locations.iter().map(|text| text.as_bytes()).collect();
        follow(status, method, &from, locations.into_iter(), 0).map(|url| url.as_str().into())
    }

    /// A05
    #[test]
    fn redirects_stay_within_the_origin() {
        for (location, url) in [
            ("/mcp/", "https://h/mcp/"),
            ("mcp/", "https://h/a/mcp/"),
            ("https://H:443/x", "https://H:443/x"),
            ("//h/x", "https://h/x"),
        ] {
            for status in [307, 308] {
                assert_eq!(to(status, "POST", &[location]).as_deref(), Ok(url));
            }
            for status in [301, 302, 303] {
                assert_eq!(to(status, "GET", &[location]).as_deref(), Ok(url));
                assert_eq!(to(status, "POST", &[location]), Err(BadRedirect::OtherMethod));
                assert_eq!(to(status, "DELETE", &[location]), Err(BadRedirect::OtherMethod));
            }
        }
        for location in ["https://evil.example/mcp", "//evil.example/a", "http://h/a/mcp", "https://h:444/"] {
            assert!(matches!(to(307, "POST", &[location]), Err(BadRedirect::OtherOrigin(_))), "{location}");
            assert!(matches!(to(302, "GET", &[location]), Err(BadRedirect::OtherOrigin(_))), "{location}");
        }
        for locations in [&[][..], &["/a", "/a"], &["javascript:alert(1)"], &["https://u:p@h/"], &["/a\r\nb"]]
        {
            assert_eq!(to(307, "POST", locations), Err(BadRedirect::NoLocation), "{locations:?}");
        }
    }

    #[test]
    fn a_few_are_enough() {
        let url = Url::parse("https://h/a").unwrap();
        let hop = |followed| follow(307, "POST", &url, [&b"/a"[..]].into_iter(), followed);
        assert!(hop(MOST - 1).is_ok());
        assert_eq!(hop(MOST), Err(BadRedirect::TooMany));
    }
}
