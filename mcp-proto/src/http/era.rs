//! The era of a POST: it is decided for each message, by what the message says of itself.
//! [spec: basic/versioning#dual-era]

use super::head::{Head, Repeated};
use super::value;
use crate::model::ProtocolVersion;

/// What a POST carries, as far as its era depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // a body is one of these
pub enum Body<'m> {
    /// A request or a notification.
    Call {
        /// Its method.
        method: &'m str,
        /// Whether its `_meta` has `io.modelcontextprotocol/protocolVersion`, whatever the value.
        stamped: bool,
    },
    /// A result or an error.
    Response,
    /// An array.
    Batch,
}

/// How a POST is to be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // whoever serves them has to serve all
pub enum Route<'h> {
    /// Without a session, on what the message itself says. A call that lacks its metadata or its headers is
    /// refused on that way.
    Modern,
    /// The handshake of a session, or of a connection without one.
    Initialize,
    /// In the legacy session with this id, if there is one; else the status is 404.
    Session {
        /// Visible ASCII.
        id: &'h str,
        /// What `MCP-Protocol-Version` says: a legacy revision that is served.
        version: Option<ProtocolVersion>,
    },
    /// Legacy, and no session is named. The status is 400 where the server needs one.
    Sessionless {
        /// What `MCP-Protocol-Version` says, or 2025-03-26, which had no such header.
        version: ProtocolVersion,
    },
    /// Not at all.
    Refused(Refusal<'h>),
}

/// Why a POST is not served. But for [`UnknownSession`](Self::UnknownSession) the status is 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal<'h> {
    /// `MCP-Protocol-Version` or `Mcp-Session-Id` stands there more than once: this one.
    Repeated(&'static str),
    /// `MCP-Protocol-Version` names nothing that is served; its value without white space around it, or
    /// nothing if it is no text.
    UnsupportedVersion(&'h str),
    /// There is no `MCP-Protocol-Version`, and no revision from before that header is served.
    NoVersion,
    /// The session id is one that no server gives: the status is 404, as of any unknown session.
    UnknownSession,
    /// A response, or an array, where the revision has no such thing.
    NotInRevision(ProtocolVersion),
    /// A response that names no session: nothing was asked.
    NoSession,
}

/// Decides how a POST is served. `served` are the revisions of the server.
///
/// A call whose body says that it is modern is modern; so is one whose header names a modern revision. Then
/// `initialize` begins a session, and a session id continues one. What is left is legacy without a session:
/// of the revision in `MCP-Protocol-Version`, or without that header, of 2025-03-26. Responses and arrays
/// are legacy. A server without legacy revisions looks at nothing of this: all calls are modern.
pub fn classify<'h>(head: &'h impl Head, body: Body<'_>, served: &[ProtocolVersion]) -> Route<'h> {
    let newest = |modern: bool| served.iter().copied().filter(|v| v.is_modern() == modern).max();
    let (modern, legacy) = (newest(true), newest(false));
    match (body, modern, legacy) {
        (Body::Call { stamped: true, .. }, Some(_), _) | (Body::Call { .. }, Some(_), None) => {
            return Route::Modern;
        }
        (Body::Response | Body::Batch, Some(modern), None) => {
            return Route::Refused(Refusal::NotInRevision(modern));
        }
        _ => {}
    }
    let is_call = matches!(body, Body::Call { .. });
    let is_initialize = matches!(body, Body::Call { method: "initialize", .. });
    let version = match head.value("mcp-protocol-version") {
        Err(Repeated) => return Route::Refused(Refusal::Repeated("MCP-Protocol-Version")),
        Ok(None) => None,
        Ok(Some(raw)) => {
            let name = value::plain(raw).unwrap_or_default();
            match ProtocolVersion::parse(name) {
                Some(version) if version.is_modern() && modern.is_some() => {
                    return if is_call {
                        Route::Modern
                    } else {
                        Route::Refused(Refusal::NotInRevision(version))
                    };
                }
                Some(version) if served.contains(&version) => Some(version),
                // The handshake has the version in its body; the header is for what comes after it.
                _ if is_initialize => None,
                _ => return Route::Refused(Refusal::UnsupportedVersion(name)),
            }
        }
    };
    if is_initialize {
        return Route::Initialize;
    }
    match head.value("mcp-session-id") {
        Err(Repeated) => Route::Refused(Refusal::Repeated("Mcp-Session-Id")),
        Ok(Some(raw)) => match core::str::from_utf8(value::trim(raw)) {
            Ok(id) if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Route::Session { id, version }
            }
            _ => Route::Refused(Refusal::UnknownSession),
        },
        Ok(None) if body == Body::Response => Route::Refused(Refusal::NoSession),
        Ok(None) => sessionless(version, body, served),
    }
}

fn sessionless(
    version: Option<ProtocolVersion>,
    body: Body<'_>,
    served: &[ProtocolVersion],
) -> Route<'static> {
    let version = match version {
        Some(version) => version,
        None if served.contains(&ProtocolVersion::WITHOUT_HEADER) => ProtocolVersion::WITHOUT_HEADER,
        None => return Route::Refused(Refusal::NoVersion),
    };
    if body == Body::Batch && !version.has_batches() {
        return Route::Refused(Refusal::NotInRevision(version));
    }
    Route::Sessionless { version }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::TestHead;
    use crate::model::ProtocolVersion as V;

    const ALL: &[V] = &V::ALL;
    const LEGACY: &[V] = &[V::V2024_11_05, V::V2025_03_26, V::V2025_06_18, V::V2025_11_25];
    const NO_OLD: &[V] = &[V::V2025_06_18, V::V2025_11_25, V::V2026_07_28];
    const MODERN: &[V] = &[V::V2026_07_28];

    const PLAIN: Body<'_> = Body::Call { method: "tools/list", stamped: false };
    const STAMPED: Body<'_> = Body::Call { method: "tools/list", stamped: true };
    const INITIALIZE: Body<'_> = Body::Call { method: "initialize", stamped: false };
    const STAMPED_INITIALIZE: Body<'_> = Body::Call { method: "initialize", stamped: true };

    type Row<'a> = (Body<'a>, Option<&'a str>, Option<&'a str>, Route<'a>);

    fn check(served: &[V], rows: &[Row<'_>]) {
        for (body, version, session, route) in rows {
            let mut head = TestHead::new();
            if let Some(version) = version {
                head = head.with("MCP-Protocol-Version", version);
            }
            if let Some(session) = session {
                head = head.with("Mcp-Session-Id", session);
            }
            assert_eq!(classify(&head, *body, served), *route, "{body:?} {version:?} {session:?}");
        }
    }

    const fn session(id: &str, version: Option<V>) -> Route<'_> {
        Route::Session { id, version }
    }

    const fn free(version: V) -> Route<'static> {
        Route::Sessionless { version }
    }

    const fn unsupported(name: &str) -> Route<'_> {
        Route::Refused(Refusal::UnsupportedVersion(name))
    }

    const fn not_in(version: V) -> Route<'static> {
        Route::Refused(Refusal::NotInRevision(version))
    }

    /// The order of the rules is that of the specification's text on servers of both eras.
    #[test]
    fn a_server_of_both_eras_asks_the_message() {
        let none = None;
        check(
            ALL,
            &[
                // The body comes first: a modern body is never served as a legacy one.
                (STAMPED, none, none, Route::Modern),
                (STAMPED, Some("2026-07-28"), none, Route::Modern),
                (STAMPED, Some("2025-11-25"), Some("s"), Route::Modern),
                (STAMPED, Some("v999.0.0"), none, Route::Modern),
                (STAMPED_INITIALIZE, none, none, Route::Modern),
                // Then the header.
                (PLAIN, Some("2026-07-28"), none, Route::Modern),
                (PLAIN, Some(" 2026-07-28\t"), Some("s"), Route::Modern),
                (INITIALIZE, Some("2026-07-28"), none, Route::Modern),
                // Then the handshake, whose header does not count.
                (INITIALIZE, none, none, Route::Initialize),
                (INITIALIZE, none, Some("ended"), Route::Initialize),
                (INITIALIZE, Some("2025-11-25"), none, Route::Initialize),
                (INITIALIZE, Some("2027-01-01"), none, Route::Initialize),
                // Then the session.
                (PLAIN, none, Some("s"), session("s", None)),
                (PLAIN, Some("2025-06-18"), Some(" s "), session("s", Some(V::V2025_06_18))),
                (Body::Response, none, Some("s"), session("s", None)),
                (Body::Response, Some("2025-11-25"), Some("s"), session("s", Some(V::V2025_11_25))),
                (Body::Batch, none, Some("s"), session("s", None)),
                (PLAIN, none, Some(""), Route::Refused(Refusal::UnknownSession)),
                (PLAIN, none, Some("a b"), Route::Refused(Refusal::UnknownSession)),
                (PLAIN, none, Some("é"), Route::Refused(Refusal::UnknownSession)),
                // Then what is left. LS-VER-01
                (PLAIN, Some("2025-11-25"), none, free(V::V2025_11_25)),
                (PLAIN, Some("2024-11-05"), none, free(V::V2024_11_05)),
                (PLAIN, none, none, free(V::V2025_03_26)),
                (Body::Response, none, none, Route::Refused(Refusal::NoSession)),
                (Body::Batch, none, none, free(V::V2025_03_26)),
                (Body::Batch, Some("2025-03-26"), none, free(V::V2025_03_26)),
                (Body::Batch, Some("2025-06-18"), none, not_in(V::V2025_06_18)),
                // Responses and arrays are legacy.
                (Body::Response, Some("2026-07-28"), Some("s"), not_in(V::V2026_07_28)),
                (Body::Batch, Some("2026-07-28"), none, not_in(V::V2026_07_28)),
            ],
        );
    }

    /// LS-VER-02
    #[test]
    fn an_invalid_version_is_refused() {
        for session in [None, Some("s")] {
            for name in ["2027-01-01", "", "2025-11-25, 2025-11-25", "V2025-11-25", "2025-11-2"] {
                check(ALL, &[(PLAIN, Some(name), session, unsupported(name))]);
                check(ALL, &[(Body::Response, Some(name), session, unsupported(name))]);
            }
            check(ALL, &[(PLAIN, Some("2025-11-25é"), session, unsupported(""))]);
            check(LEGACY, &[(PLAIN, Some("2026-07-28"), session, unsupported("2026-07-28"))]);
            check(NO_OLD, &[(PLAIN, Some("2025-03-26"), session, unsupported("2025-03-26"))]);
        }
    }

    #[test]
    fn a_repeated_header_is_refused_unless_the_body_decides() {
        let twice = |name| TestHead::new().with(name, "2025-11-25").with(name, "2025-11-25");
        let version = twice("mcp-protocol-version");
        for body in [PLAIN, INITIALIZE, Body::Response, Body::Batch] {
            let refused = Route::Refused(Refusal::Repeated("MCP-Protocol-Version"));
            assert_eq!(classify(&version, body, ALL), refused);
        }
        assert_eq!(classify(&version, STAMPED, ALL), Route::Modern); // refused there
        let session = twice("mcp-session-id");
        assert_eq!(classify(&session, PLAIN, ALL), Route::Refused(Refusal::Repeated("Mcp-Session-Id")));
        assert_eq!(classify(&session, INITIALIZE, ALL), Route::Initialize);
    }

    /// S-COMPAT-03: a modern server does not look at sessions. What is missing is refused on the modern way.
    #[test]
    fn a_modern_server_takes_all_calls_for_modern() {
        for version in [None, Some("2026-07-28"), Some("2025-11-25"), Some("x")] {
            for session in [None, Some("s")] {
                for body in [PLAIN, STAMPED, INITIALIZE] {
                    check(MODERN, &[(body, version, session, Route::Modern)]);
                }
                for body in [Body::Response, Body::Batch] {
                    check(MODERN, &[(body, version, session, not_in(V::V2026_07_28))]);
                }
            }
        }
    }

    #[test]
    fn a_legacy_server_does_not_see_the_stamp() {
        check(
            LEGACY,
            &[
                (STAMPED, None, None, free(V::V2025_03_26)),
                (STAMPED, None, Some("s"), session("s", None)),
                (STAMPED, Some("2026-07-28"), None, unsupported("2026-07-28")),
                (STAMPED_INITIALIZE, Some("2026-07-28"), None, Route::Initialize),
            ],
        );
    }

    /// S-HDR-04
    #[test]
    fn without_old_revisions_the_header_is_required() {
        check(
            NO_OLD,
            &[
                (PLAIN, None, None, Route::Refused(Refusal::NoVersion)),
                (Body::Batch, None, None, Route::Refused(Refusal::NoVersion)),
                (PLAIN, None, Some("s"), session("s", None)), // the session knows
                (INITIALIZE, None, None, Route::Initialize),
            ],
        );
    }
}
