//! Signed access tokens: JSON Web Tokens of one issuer, with its public keys at hand.
//!
//! Nothing is fetched here. The host gives the issuer's key set (`jwks_uri` of its metadata) as text, and
//! gives it anew when a token names a key that is not in it.
//!
//! [spec: basic/authorization#token-handling] [RFC 7519, RFC 8725, RFC 9068]

mod algorithm;
mod claims;
mod keys;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::sync::{PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub use algorithm::Algorithm;
pub use keys::InvalidKeys;

use super::{BoxFuture, TokenError, TokenVerifier, Verified};
use crate::http::bearer::MAX_TOKEN;
use crate::model::Str;
use crate::rpc::Members;
use keys::Keys;

/// The longest name of a key that is looked for, in bytes.
const MAX_KID: usize = 256;

/// Verifies signed tokens of one issuer. Cheap to clone; clones share the keys.
///
/// A token counts if all of this holds:
///
/// - it is signed with an allowed [`Algorithm`] by a key of the set that is made for it. There is no
///   algorithm without a key or with a shared secret here, so none can be confused with these;
/// - its type, if it has one, is `JWT` or `at+jwt`, and no extension in it is critical;
/// - `iss` is the issuer, byte for byte;
/// - `exp` and `sub` are there; the time may be off by the [leeway](JwtVerifierBuilder::leeway);
/// - no member stands twice.
///
/// The [`Authorizer`](super::Authorizer) checks audience and time of what comes out.
///
/// The caller's id is `iss`, a space and `sub`. Scopes are those of `scope` and `scp`.
#[derive(Clone)]
pub struct JwtVerifier(Arc<Inner>);

struct Inner {
    policy: Policy,
    algorithms: Vec<Algorithm>,
    access_tokens_only: bool,
    on_unknown_key: Option<OnUnknownKey>,
    keys: RwLock<Arc<Keys>>,
}

type OnUnknownKey = Box<dyn Fn(&str) + Send + Sync>;

/// How claims are read.
struct Policy {
    issuer: Str,
    leeway: Duration,
    roles: Option<Str>,
}

impl JwtVerifier {
    /// For the tokens of this issuer, as its metadata and its tokens spell it.
    pub fn builder(issuer: impl Into<Str>) -> JwtVerifierBuilder {
        JwtVerifierBuilder {
            policy: Policy { issuer: issuer.into(), leeway: Duration::from_secs(30), roles: None },
            algorithms: Algorithm::ALL.to_vec(),
            access_tokens_only: false,
            on_unknown_key: None,
        }
    }

    /// Replaces all keys, as after a rotation. Tokens that are being verified finish with the old ones.
    /// Returns how many of the new ones can be used.
    ///
    /// # Errors
    ///
    /// The text is no key set: then the old keys stay.
    pub fn replace_keys(&self, jwks: &str) -> Result<usize, InvalidKeys> {
        let keys = Keys::parse(jwks)?;
        let usable = keys.len();
        *self.0.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
        Ok(usable)
    }

    /// [`TokenVerifier::verify`] at once: nothing here waits.
    ///
    /// # Errors
    ///
    /// [`TokenError::UnknownKey`] if other keys may help, else [`TokenError::Invalid`].
    pub fn verify_now(&self, token: &str) -> Result<Verified, TokenError> {
        if token.len() > MAX_TOKEN {
            return Err(invalid("it is too long"));
        }
        let parts = || {
            let (message, signature) = token.rsplit_once('.')?;
            let (header, payload) = message.split_once('.')?;
            (!payload.contains('.')).then_some((message, header, payload, signature))
        };
        let (message, header, payload, signature) =
            parts().ok_or_else(|| invalid("it has not three parts"))?;
        let header = decoded(header).ok_or_else(|| invalid("its header is no base64url of text"))?;
        let signature =
            URL_SAFE_NO_PAD.decode(signature).map_err(|_| invalid("its signature is no base64url"))?;

        let (algorithm, kid) = self.read_header(&header)?;
        let keys = Arc::clone(&self.0.keys.read().unwrap_or_else(PoisonError::into_inner));
        match keys.verify(algorithm, kid.as_deref(), message.as_bytes(), &signature) {
            keys::Outcome::Genuine => {}
            keys::Outcome::Forged => return Err(invalid("its signature does not fit")),
            keys::Outcome::Ambiguous => return Err(invalid("it names no key, and several could be meant")),
            keys::Outcome::NoKey => {
                let kid = kid.unwrap_or_default();
                if let Some(tell) = &self.0.on_unknown_key {
                    tell(&kid);
                }
                return Err(TokenError::UnknownKey(kid));
            }
        }
        let payload = decoded(payload).ok_or_else(|| invalid("its payload is no base64url of text"))?;
        claims::read(&payload, &self.0.policy).map_err(invalid)
    }

    fn read_header(&self, header: &str) -> Result<(Algorithm, Option<String>), TokenError> {
        let header = Members::from_json(header)
            .ok_or_else(|| invalid("its header is no JSON object, or a member stands twice"))?;
        let text = |name| header.text(name).map_err(|_| invalid("a member of its header is no string"));
        if header.get("crit").is_some() {
            return Err(invalid("it has critical extensions"));
        }
        let algorithm = text("alg")?
            .and_then(|name| Algorithm::parse(&name))
            .filter(|algorithm| self.0.algorithms.contains(algorithm))
            .ok_or_else(|| invalid("its algorithm is not allowed"))?;
        // A token made for another purpose by the same issuer is no access token. [RFC 8725, section 3.11]
        let typ = text("typ")?;
        let is = |wanted: &str| {
            typ.as_deref().is_some_and(|typ| {
                let plain = match typ.split_at_checked("application/".len()) {
                    Some((start, rest)) if start.eq_ignore_ascii_case("application/") => rest,
                    _ => typ,
                };
                plain.eq_ignore_ascii_case(wanted)
            })
        };
        if !(is("at+jwt") || !self.0.access_tokens_only && (typ.is_none() || is("jwt"))) {
            return Err(invalid("its type is not that of an access token"));
        }
        let kid = text("kid")?;
        if kid.as_ref().is_some_and(|kid| kid.len() > MAX_KID) {
            return Err(invalid("the name of its key is too long"));
        }
        Ok((algorithm, kid.map(Into::into)))
    }
}

impl TokenVerifier for JwtVerifier {
    fn verify(&self, token: &str) -> BoxFuture<Result<Verified, TokenError>> {
        Box::pin(core::future::ready(self.verify_now(token)))
    }
}

impl fmt::Debug for JwtVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtVerifier").field("issuer", &self.0.policy.issuer).finish_non_exhaustive()
    }
}

/// A [`JwtVerifier`] in the making.
#[must_use]
pub struct JwtVerifierBuilder {
    policy: Policy,
    algorithms: Vec<Algorithm>,
    access_tokens_only: bool,
    on_unknown_key: Option<OnUnknownKey>,
}

impl JwtVerifierBuilder {
    /// The algorithms that are allowed. Without this all that there are: none of them is weak.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// By how much the clocks of the issuer and this machine may differ. 30 seconds without this.
    pub const fn leeway(mut self, leeway: Duration) -> Self {
        self.policy.leeway = leeway;
        self
    }

    /// Takes the caller's roles from this claim, an array of strings. Without this there are none.
    pub fn roles_claim(mut self, name: impl Into<Str>) -> Self {
        self.policy.roles = Some(name.into());
        self
    }

    /// Takes only tokens of the type `at+jwt`. Do so if the issuer marks its access tokens.
    /// [RFC 9068, section 2.1]
    pub const fn access_tokens_only(mut self) -> Self {
        self.access_tokens_only = true;
        self
    }

    /// Hears of tokens that name a key which is not in the set: the name, empty if the token names none
    /// and there is no key for its algorithm. A hint to fetch the set anew; bound how often, for anyone can
    /// make up a name. It must not block.
    pub fn on_unknown_key(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_unknown_key = Some(Box::new(tell));
        self
    }

    /// With these keys: a JSON Web Key Set as text. Keys that are not for signatures, or of a kind that is
    /// not known, are passed over, and a set may be empty until it is
    /// [replaced](JwtVerifier::replace_keys).
    ///
    /// # Errors
    ///
    /// See [`InvalidKeys`].
    pub fn build(self, jwks: &str) -> Result<JwtVerifier, InvalidKeys> {
        let keys = RwLock::new(Arc::new(Keys::parse(jwks)?));
        let Self { policy, algorithms, access_tokens_only, on_unknown_key } = self;
        Ok(JwtVerifier(Arc::new(Inner { policy, algorithms, access_tokens_only, on_unknown_key, keys })))
    }
}

impl fmt::Debug for JwtVerifierBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtVerifierBuilder").field("issuer", &self.policy.issuer).finish_non_exhaustive()
    }
}

const fn invalid(why: &'static str) -> TokenError {
    TokenError::Invalid(Str::Borrowed(why))
}

fn decoded(part: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
