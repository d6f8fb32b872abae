//! What a server says that asks for a token.

use alloc::vec::Vec;
use core::fmt;

use super::{Challenge, Url};
use crate::client::CallId;

/// A request was refused for the lack of a token, or of a better one. [spec: basic/authorization]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unauthorized {
    /// The call, if it was one: not the question of what the server speaks, nor a stream.
    pub call: Option<CallId>,
    /// 401: there was no token, or it does not count. 403: it allows too little.
    pub status: u16,
    /// What the server asks for. May be empty: not every server says it.
    pub challenges: Vec<Challenge>,
    /// What was asked for.
    pub url: Url,
}

impl Unauthorized {
    /// The challenge that asks for a bearer token.
    #[must_use]
    pub fn bearer(&self) -> Option<&Challenge> {
        self.challenges.iter().find(|challenge| challenge.is_bearer())
    }

    /// Whether the token is good but allows too little: more scopes are to be asked for, not the same token
    /// again. [spec: basic/authorization#scope-challenge-handling]
    #[must_use]
    pub fn is_insufficient_scope(&self) -> bool {
        self.status == 403 && self.bearer().and_then(Challenge::error) == Some("insufficient_scope")
    }
}

impl fmt::Display for Unauthorized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.status == 403 { "a token that allows more" } else { "an access token" };
        write!(f, "the server asks for {what} (status {})", self.status)?;
        match self.bearer().and_then(Challenge::scope) {
            Some(scope) => write!(f, ", with the scopes {scope:?}"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Unauthorized {}
