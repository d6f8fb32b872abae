//! Why a call, or a connection, came to nothing.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::http::Unauthorized;
use crate::model::view::WriteError;
use crate::model::{ClientCapabilities, ElicitUrl, Str};
use crate::rpc::{self, Short};

/// Why a call came to nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered with an error.
    Rpc(rpc::Error),
    /// 2025-11-25: the user has to visit these URLs, and then the call can be made again.
    /// [spec: 2025-11-25 client/elicitation#url-elicitation-required-error]
    UrlElicitationRequired(Vec<ElicitUrl>),
    /// No answer in time. The server was told, except where that is not allowed.
    TimedOut,
    /// This side cancelled it.
    Cancelled,
    /// The connection ended.
    Closed,
    /// The server asked for input more often than the call allows.
    TooManyRounds,
    /// The task of the call was cancelled.
    TaskCancelled,
    /// The answer is none: what was expected, what came and where.
    Malformed(String),
    /// The answer is of a kind that this side does not know or did not declare.
    UnknownResultType(String),
    /// The server asks for what this side did not declare.
    Undeclared(ClientCapabilities),
    /// A question of the server has no answer: which, and why. The call was given up.
    Unanswered(String),
    /// The server, or the revision that both speak, does not have the method.
    NotOffered(Str),
    /// The params have no JSON form, or not that of an object.
    Invalid(String),
    /// Too many calls are open.
    TooManyCalls,
    /// There is no such call, or not in that state.
    NoSuchCall,
    /// No revision that this side speaks.
    NoCommonVersion(Box<VersionMismatch>),
    /// The server does not speak a revision without a handshake, and others were excluded.
    NotModern,
    /// HTTP: the answer has this status and says nothing that the protocol knows.
    Http {
        /// The status code.
        status: u16,
        /// The beginning of the body, for people.
        detail: String,
    },
    /// HTTP: the server asks for an access token, or for one that allows more.
    Unauthorized(Box<Unauthorized>),
    /// HTTP: the connection broke before the answer was there. The call may have been carried out.
    Lost(String),
}

/// Two sides without a common revision.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionMismatch {
    /// What this side offered.
    pub offered: Str,
    /// What the server says it speaks, or answered with.
    pub supported: Vec<Str>,
}

impl VersionMismatch {
    pub(crate) fn error(offered: impl Into<Str>, supported: Vec<Str>) -> CallError {
        CallError::NoCommonVersion(Box::new(Self { offered: offered.into(), supported }))
    }
}

impl CallError {
    pub(crate) fn malformed(reason: impl fmt::Display) -> Self {
        Self::Malformed(alloc::format!("{reason}"))
    }
}

impl From<rpc::Error> for CallError {
    fn from(error: rpc::Error) -> Self {
        Self::Rpc(error)
    }
}

impl From<WriteError> for CallError {
    fn from(error: WriteError) -> Self {
        Self::malformed_params(error)
    }
}

impl CallError {
    pub(crate) fn malformed_params(reason: impl fmt::Display) -> Self {
        Self::Invalid(alloc::format!("{reason}"))
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(error) => write!(f, "the server answered: {error}"),
            Self::UrlElicitationRequired(urls) => {
                write!(f, "the user has to visit {} first", urls.first().map_or("a URL", |url| &url.url))
            }
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Closed => f.write_str("the connection ended"),
            Self::TooManyRounds => f.write_str("the server asked for input too often"),
            Self::TaskCancelled => f.write_str("the task was cancelled"),
            Self::Malformed(reason) => write!(f, "the answer cannot be read: {reason}"),
            Self::UnknownResultType(kind) => {
                write!(f, "the answer is of an unknown kind: {:?}", Short(kind).0)
            }
            Self::Undeclared(_) => f.write_str("the server asks for what this client did not declare"),
            Self::Unanswered(reason) => write!(f, "a question of the server has no answer: {reason}"),
            Self::NotOffered(method) => write!(f, "the server does not offer {method}"),
            Self::Invalid(reason) => write!(f, "the request cannot be written: {reason}"),
            Self::TooManyCalls => f.write_str("too many calls are open"),
            Self::NoSuchCall => f.write_str("there is no such call, or it is in another state"),
            Self::NoCommonVersion(mismatch) => write!(
                f,
                "no common revision: the server speaks {}, this side offered {}",
                mismatch.supported.first().map_or("none that it names", |name| name),
                mismatch.offered
            ),
            Self::NotModern => f.write_str("the server speaks no revision without a handshake"),
            Self::Http { status, detail } if detail.is_empty() => write!(f, "HTTP status {status}"),
            Self::Http { status, detail } => write!(f, "HTTP status {status}: {detail}"),
            Self::Unauthorized(why) => why.fmt(f),
            Self::Lost(reason) => write!(f, "the connection broke: {reason}"),
        }
    }
}

impl core::error::Error for CallError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Rpc(error) => Some(error),
            Self::Unauthorized(why) => Some(&**why),
            _ => None,
        }
    }
}
