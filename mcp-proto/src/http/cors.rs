//! Web pages that may read what they are answered: CORS. [Fetch, section 3.2]
//!
//! Which pages those are is said by [`Origins`]; the protocol itself says nothing of CORS.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::head::{Head, ResponseHead};
use super::origin::Origins;
use super::response::Response;
use super::value::trim;

/// What a page may send besides what every page may. `Mcp-Param-…` is added as it is asked for.
const HEADERS: &str = "Content-Type, Authorization, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, \
                       Last-Event-ID";

/// What a page may see of an answer besides what every page may.
const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate";

/// The headers of mirrored arguments, whose names differ from tool to tool.
const PARAM: &[u8] = b"mcp-param-";

/// So many of them are allowed at a time.
const MOST_PARAMS: usize = 64;

/// How pages are let in to read answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cors {
    /// How long a browser may remember what a page may send. 10 minutes.
    pub max_age: Duration,
}

impl Default for Cors {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(600) }
    }
}

impl Cors {
    /// Whether a browser asks what a page may send.
    pub(crate) fn is_preflight(head: &impl Head) -> bool {
        let has = |name| head.values(name).next().is_some();
        head.method() == "OPTIONS" && has("origin") && has("access-control-request-method")
    }

    /// The answer to that. What says which page it is for is among [the headers of all answers](Self::shared).
    pub(crate) fn preflight(self, head: &impl Head, methods: &'static str) -> Response {
        let mut names = String::from(HEADERS);
        let asked = head.values("access-control-request-headers").flat_map(|line| line.split(|b| *b == b','));
        let is_param = |name: &&[u8]| {
            name.len() > PARAM.len()
                && name[..PARAM.len()].eq_ignore_ascii_case(PARAM)
                && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
        };
        for name in asked.map(trim).filter(is_param).take(MOST_PARAMS) {
            names.push_str(", ");
            names.extend(name.iter().map(|byte| char::from(*byte)));
        }
        let head = ResponseHead::new(204)
            .with("access-control-allow-methods", methods)
            .with("access-control-allow-headers", names)
            .with("access-control-max-age", self.max_age.as_secs().to_string());
        Response::empty(head)
    }

    /// What every answer says: whether the page that asks may read it, and what of its head. There are no
    /// cookies here, so credentials are not allowed.
    pub(crate) fn shared(head: &impl Head, origins: &Origins) -> Vec<(&'static str, Cow<'static, str>)> {
        let mut said = alloc::vec![("vary", Cow::Borrowed("Origin"))];
        if let Ok(Some(origin)) = head.value("origin")
            && origins.allows(origin)
            && let Ok(origin) = core::str::from_utf8(trim(origin))
            && origin.bytes().all(|byte| byte.is_ascii_graphic())
        {
            said.push(("access-control-allow-origin", Cow::Owned(origin.to_string())));
            said.push(("access-control-expose-headers", Cow::Borrowed(EXPOSED)));
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::TestHead;
    use crate::http::{Endpoint, Settings};
    use crate::model::Implementation;
    use crate::server::Config;

    fn endpoint(settings: Settings) -> Endpoint {
        Endpoint::new(Config::builder(Implementation::new("s", "1")).build(), settings)
    }

    fn open() -> Endpoint {
        let mut settings = Settings::default().with_cors();
        settings.origins = Origins::loopback().allow_origin("https://app.example").unwrap();
        endpoint(settings)
    }

    fn asks(origin: Option<&str>) -> TestHead {
        let mut head =
            TestHead::new().with("host", "localhost").with("access-control-request-method", "POST");
        head.method = "OPTIONS";
        match origin {
            Some(origin) => head.with("origin", origin),
            None => head,
        }
    }

    fn said(endpoint: &Endpoint, head: &TestHead, name: &str) -> Option<String> {
        let all = endpoint.cors_headers(head);
        all.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value.into_owned())
    }

    #[test]
    fn a_page_that_is_allowed_may_send_and_read() {
        let head = asks(Some("https://app.example"))
            .with("access-control-request-headers", "content-type, Mcp-Param-Region,mcp-param-a.b")
            .with("access-control-request-headers", "x-other, mcp-param-, mcp-param-\"x");
        let response = open().admit(&head).unwrap_err();
        assert_eq!((response.head.status, response.body.len()), (204, 0));
        let allowed = response.head.header("access-control-allow-headers").unwrap();
        for name in [
            "Content-Type",
            "Authorization",
            "MCP-Protocol-Version",
            "Mcp-Session-Id",
            "Mcp-Method",
            "Mcp-Name",
            "Last-Event-ID",
            "Mcp-Param-Region",
            "mcp-param-a.b",
        ] {
            assert!(allowed.split(", ").any(|known| known == name), "{name}: {allowed}");
        }
        assert_eq!(allowed.split(", ").count(), 9, "nothing else: {allowed}");
        assert_eq!(response.head.header("access-control-allow-methods"), Some("GET, POST, DELETE"));
        assert_eq!(response.head.header("access-control-max-age"), Some("600"));
        let origin = said(&open(), &head, "access-control-allow-origin");
        assert_eq!(origin.as_deref(), Some("https://app.example"));
        let exposed = said(&open(), &head, "access-control-expose-headers");
        assert_eq!(exposed.as_deref(), Some("Mcp-Session-Id, WWW-Authenticate"));
        assert_eq!(said(&open(), &head, "vary").as_deref(), Some("Origin"));
        assert_eq!(said(&open(), &head, "access-control-allow-credentials"), None);
    }

    #[test]
    fn a_foreign_page_is_refused_and_told_nothing() {
        for origin in
            ["https://evil.example", "https://app.example.evil.example", "null", "http://app.example"]
        {
            let head = asks(Some(origin));
            assert_eq!(open().admit(&head).unwrap_err().head.status, 403, "{origin}");
            assert_eq!(said(&open(), &head, "access-control-allow-origin"), None, "{origin}");
            assert_eq!(said(&open(), &head, "vary").as_deref(), Some("Origin"), "caches must know");
        }
        // Also where the name of the server is not its own.
        let mut rebound = asks(Some("https://app.example"));
        rebound.headers.retain(|(name, _)| *name != "host");
        assert_eq!(open().admit(&rebound.with("host", "evil.example")).unwrap_err().head.status, 403);
    }

    #[test]
    fn without_a_page_there_is_nothing_to_ask() {
        let response = open().admit(&asks(None)).unwrap_err();
        assert_eq!((response.head.status, response.head.header("allow")), (405, Some("GET, POST, DELETE")));
        assert_eq!(said(&open(), &asks(None), "access-control-allow-origin"), None);
        let mut head = asks(Some("https://app.example"));
        head.headers.retain(|(name, _)| !name.starts_with("access-control"));
        assert_eq!(open().admit(&head).unwrap_err().head.status, 405, "OPTIONS alone asks nothing");
    }

    #[test]
    fn it_is_off_by_default() {
        let origins = Origins::loopback().allow_origin("https://app.example").unwrap();
        let closed = endpoint(Settings { origins, ..Settings::default() });
        let head = asks(Some("https://app.example"));
        assert_eq!(closed.admit(&head).unwrap_err().head.status, 405);
        assert!(closed.cors_headers(&head).is_empty());
    }

    #[test]
    fn no_more_names_come_back_than_the_bound() {
        let many = alloc::vec!["mcp-param-x"; 1000].join(",");
        let head = asks(Some("https://app.example")).with("access-control-request-headers", many);
        let response = open().admit(&head).unwrap_err();
        let allowed = response.head.header("access-control-allow-headers").unwrap();
        assert_eq!(allowed.split(", ").count(), 7 + MOST_PARAMS);
    }
}
