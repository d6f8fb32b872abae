//! What a refusal says about the era of a server. [spec: basic/versioning#dual-era]

use crate::rpc::{Error, code};

/// What follows from a status and an error, if the body was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// The body is an answer like any other: it says what is wrong.
    Answer,
    /// The server speaks 2026-07-28, and does not offer what was asked.
    Modern,
    /// The server does not know what was asked: go on with what is older.
    Older,
    /// It says nothing about the era: whoever asks later may get another answer.
    None,
}

/// Of the refusal of `server/discover`.
///
/// Statuses that come from something in front of the server, from a server that is out of order, or that are
/// about credentials or load are no evidence: a verdict that is kept must not come from those.
pub(crate) const fn of_discover(status: u16, error: Option<&Error>) -> Evidence {
    match error {
        Some(error) if is_modern(error) => Evidence::Answer,
        // Only a modern server answers what it does not offer with this status and a message.
        Some(error) if status == 404 && error.code == code::METHOD_NOT_FOUND => Evidence::Modern,
        _ if is_about_the_request(status) => Evidence::Older,
        _ => Evidence::None,
    }
}

/// Of the refusal of `initialize`: older is then the transport of 2024-11-05. `is_own` says whether the error
/// names the request.
pub(crate) const fn of_initialize(status: u16, error: Option<&Error>, is_own: bool) -> Evidence {
    match error {
        // The URL of a stream may take no POST, and say so as a message.
        _ if status == 405 => Evidence::Older,
        // Whoever answers the request speaks JSON-RPC over POST, so it is no server of that transport.
        Some(error) if is_about_the_request(status) && (is_own || is_modern(error)) => Evidence::Answer,
        _ if is_about_the_request(status) => Evidence::Older,
        _ => Evidence::None,
    }
}

const fn is_modern(error: &Error) -> bool {
    matches!(
        error.code,
        code::HEADER_MISMATCH | code::MISSING_REQUIRED_CLIENT_CAPABILITY | code::UNSUPPORTED_PROTOCOL_VERSION
    )
}

const fn is_about_the_request(status: u16) -> bool {
    matches!(status, 400..=499) && !matches!(status, 401 | 403 | 407 | 408 | 421 | 425 | 429)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modern_errors_need_no_id() {
        let error = Error::new(code::HEADER_MISMATCH, "x");
        assert_eq!(of_initialize(400, Some(&error), false), Evidence::Answer);
    }

    #[test]
    fn the_era_is_decided_by_status_and_body_c_compat_05() {
        for code in [-32020, -32021, -32022] {
            let error = Error::new(code, "x");
            assert_eq!(of_discover(400, Some(&error)), Evidence::Answer, "{code}");
        }
        let not_found = Error::method_not_found("server/discover");
        assert_eq!(of_discover(404, Some(&not_found)), Evidence::Modern);
        assert_eq!(of_discover(400, Some(&not_found)), Evidence::Older);
        for code in [-32700, -32600, -32602, -32000, -32001] {
            let error = Error::new(code, "x");
            assert_eq!(of_discover(400, Some(&error)), Evidence::Older, "{code}");
        }
        for status in [400, 404, 405, 406, 415, 422] {
            assert_eq!(of_discover(status, None), Evidence::Older, "{status}");
            assert_eq!(of_initialize(status, None, false), Evidence::Older, "{status}");
            assert_eq!(of_initialize(status, Some(&not_found), false), Evidence::Older, "{status}");
            let answer = if status == 405 { Evidence::Older } else { Evidence::Answer };
            assert_eq!(of_initialize(status, Some(&not_found), true), answer, "{status}");
        }
        for status in [401, 403, 407, 408, 429, 500, 502, 503, 504] {
            assert_eq!(of_discover(status, None), Evidence::None, "{status}");
            assert_eq!(of_discover(status, Some(&not_found)), Evidence::None, "{status}");
            assert_eq!(of_initialize(status, None, false), Evidence::None, "{status}");
        }
    }
}
