//! From the token of a request to the caller, for servers over HTTP. Nothing of this is for stdio.
//!
//! [spec: basic/authorization#token-handling]

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::{BoxFuture, InsufficientScope, Service};
use crate::http::{BadAuthorization, Head, ProtectedResource, ResponseHead, TokenState, bearer};
use crate::model::Str;
use crate::rpc::Params;
use crate::server::{Principal, Scopes};
use crate::time::UnixTime;

/// Finds out what a token says, and that the authorization server said it: by a signature, or by asking.
///
/// Whether the token is for this server and in time is checked by the [`Authorizer`], so it cannot be
/// forgotten here. The feature `jwt` has one for signed tokens.
pub trait TokenVerifier: Send + Sync {
    /// What the token says. It has the characters of a bearer token and at most
    /// [`MAX_TOKEN`](crate::http::bearer::MAX_TOKEN) of them; keep it no longer than needed, and out of logs.
    fn verify(&self, token: &str) -> BoxFuture<Result<Verified, TokenError>>;
}

/// What a genuine token says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Verified {
    /// Whom it speaks for. The id must be unique over all authorization servers that are trusted.
    pub principal: Principal,
    /// What it allows.
    pub scopes: Scopes,
    /// The first moment at which it is no longer good; `None` = the verifier has just asked.
    pub expires: Option<UnixTime>,
    /// The first moment at which it is good.
    pub not_before: Option<UnixTime>,
    /// Whom it was made for.
    pub audience: Audience,
}

/// Whom a token was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Audience {
    /// These, as the token says. One of them must be this server.
    Named(Vec<String>),
    /// The verifier made sure that it is this server: say so only if the authorization server was asked
    /// and has answered for exactly this resource.
    Checked,
}

impl Verified {
    /// A token of this caller that names these audiences.
    pub fn new(principal: Principal, audience: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::with_audience(principal, Audience::Named(audience.into_iter().map(Into::into).collect()))
    }

    /// A token of this caller, made [for this server](Audience::Checked), which was made sure of.
    #[must_use]
    pub const fn with_checked_audience(principal: Principal) -> Self {
        Self::with_audience(principal, Audience::Checked)
    }

    const fn with_audience(principal: Principal, audience: Audience) -> Self {
        Self { principal, scopes: Scopes::NONE, expires: None, not_before: None, audience }
    }

    /// Sets what it allows.
    #[must_use]
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }

    /// Sets the first moment at which it is no longer good.
    #[must_use]
    pub const fn expires(mut self, at: UnixTime) -> Self {
        self.expires = Some(at);
        self
    }

    /// Sets the first moment at which it is good.
    #[must_use]
    pub const fn not_before(mut self, at: UnixTime) -> Self {
        self.not_before = Some(at);
        self
    }

    /// The caller with the scopes of the token, if the token is for this server and in time.
    ///
    /// # Errors
    ///
    /// [`TokenError::Audience`], [`TokenError::Expired`] or [`TokenError::NotYetValid`].
    pub fn admit(self, resource: &ProtectedResource, now: UnixTime) -> Result<Principal, TokenError> {
        match &self.audience {
            Audience::Named(named) if !named.iter().any(|audience| resource.is_audience(audience)) => {
                return Err(TokenError::Audience);
            }
            _ => {}
        }
        if self.expires.is_some_and(|expires| expires <= now) {
            return Err(TokenError::Expired);
        }
        if self.not_before.is_some_and(|start| now < start) {
            return Err(TokenError::NotYetValid);
        }
        Ok(self.principal.with_scopes(self.scopes))
    }
}

/// Why a token does not count. For logs: the client is told `invalid_token` and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenError {
    /// It is not genuine, or says nothing that can be used.
    Invalid(Str),
    /// It names a key that is not known; perhaps the keys have changed. Whoever fetches keys because of
    /// this must bound how often: anyone can make up a name.
    UnknownKey(String),
    /// It was made for another server.
    Audience,
    /// It is no longer good.
    Expired,
    /// It is not good yet.
    NotYetValid,
    /// It could not be checked at all, for the authorization server cannot be reached. The client is told
    /// `503` and may try again with the same token.
    Unavailable(Str),
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => write!(f, "the token is invalid: {why}"),
            Self::UnknownKey(kid) => write!(f, "the token names the key {kid:?}, which is not known"),
            Self::Audience => f.write_str("the token is for another audience"),
            Self::Expired => f.write_str("the token has expired"),
            Self::NotYetValid => f.write_str("the token is not valid yet"),
            Self::Unavailable(why) => write!(f, "the token could not be checked: {why}"),
        }
    }
}

impl core::error::Error for TokenError {}

/// Authorizes requests: each on its own, before anything else is done with it. Cheap to clone.
///
/// ```text
///   head ──► authenticate ──► principal ──► permit ──► dispatch
///                 │                           │
///                400, 401, 503                403
/// ```
#[derive(Clone)]
pub struct Authorizer {
    resource: ProtectedResource,
    verifier: Arc<dyn TokenVerifier>,
}

impl Authorizer {
    /// For this resource, with tokens that this verifier understands.
    pub fn new(resource: ProtectedResource, verifier: impl TokenVerifier + 'static) -> Self {
        Self { resource, verifier: Arc::new(verifier) }
    }

    /// What the server says of itself.
    #[must_use]
    pub const fn resource(&self) -> &ProtectedResource {
        &self.resource
    }

    /// Who sent a request of any method. The future does not keep the head.
    ///
    /// Sessions are no authentication: ask for every request, and compare the caller with that of the
    /// session. [spec: basic/authorization#token-requirements]
    ///
    /// # Errors
    ///
    /// The response to send, and why.
    pub fn authenticate<H: Head>(&self, head: &H, now: UnixTime) -> BoxFuture<Result<Principal, Denied>> {
        let verifying = match bearer(head) {
            Ok(Some(token)) => self.verifier.verify(token),
            Ok(None) => return ready(Err(self.denied(Denial::NoToken))),
            Err(bad) => return ready(Err(self.denied(Denial::BadAuthorization(bad)))),
        };
        let this = self.clone();
        Box::pin(async move {
            verifying
                .await
                .and_then(|verified| verified.admit(&this.resource, now))
                .map_err(|error| this.denied(Denial::Token(error)))
        })
    }

    /// Whether the token of the caller allows this request.
    ///
    /// # Errors
    ///
    /// The response to send, and why.
    pub fn permit(
        &self,
        service: &Service,
        method: &str,
        params: &Params<'_>,
        principal: &Principal,
    ) -> Result<(), Denied> {
        service
            .check_scopes(method, params, Some(principal))
            .map_err(|insufficient| self.denied(Denial::Scope(insufficient)))
    }

    fn denied(&self, why: Denial) -> Denied {
        let challenge = |token| self.resource.challenge_unauthorized(&Scopes::NONE, token);
        let head = match &why {
            Denial::NoToken => challenge(TokenState::Absent),
            Denial::BadAuthorization(_) => self.resource.challenge_invalid_request(),
            Denial::Token(TokenError::Unavailable(_)) => ResponseHead::new(503),
            Denial::Token(_) => challenge(TokenState::Invalid),
            Denial::Scope(needed) => self.resource.challenge_insufficient_scope(&needed.scopes),
        };
        Denied { head, why }
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("resource", &self.resource).finish_non_exhaustive()
    }
}

fn ready<T: Send + 'static>(value: T) -> BoxFuture<T> {
    Box::pin(core::future::ready(value))
}

/// A request that is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// The response. It says no more than the specification wants.
    pub head: ResponseHead,
    /// Why, for logs.
    pub why: Denial,
}

/// Why a request is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denial {
    /// It has no token.
    NoToken,
    /// Its authorization cannot be read.
    BadAuthorization(BadAuthorization),
    /// Its token does not count.
    Token(TokenError),
    /// Its token allows too little.
    Scope(InsufficientScope),
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken => f.write_str("there is no token"),
            Self::BadAuthorization(why) => why.fmt(f),
            Self::Token(why) => why.fmt(f),
            Self::Scope(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.head.status, self.why)
    }
}

impl core::error::Error for Denied {}
