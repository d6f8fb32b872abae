//! Signed input state: what a server remembers between the rounds of one call, kept by the client.
//! [spec: basic/patterns/mrtr]
//!
//! A server that answers `input_required` forgets the call. What it has learnt so far goes out as
//! `requestState` and comes back with the answers, through hands that may do with it as they like. So
//! the state is bound to the call it belongs to and signed with HMAC-SHA256:
//!
//! ```text
//! v1.<base64url(body)>.<base64url(tag)>                    no padding
//! body = key id (8) | expiry, ms since 1970 (8) | nonce (16) | caller (16) | request (16)
//!        | arguments (16) | payload
//! tag  = HMAC(key, "tag" | the text before the last dot)
//! ```
//!
//! `caller`, `request` and `arguments` are truncated HMACs over the nonce and the [`Binding`], so the
//! token tells nobody the names in it. Whole numbers are big-endian; every text goes in with its length
//! in front, so that no two bindings are written alike.
//!
//! The payload is signed, **not encrypted**: a client can read it. Keep secrets out of it.
//!
//! The signature does not make the state single-use: until it expires, it can be sent again, for the
//! same call with the same arguments. Where once is a must, let a [`StateStore`] remember the nonces
//! ([`OpenedState::claim`]).
//!
//! ```
//! use mcp_proto::random::OsRandom;
//! use mcp_proto::state::{Binding, KeyRing, UnverifiedState, digest_arguments};
//! use mcp_proto::time::UnixTime;
//!
//! # #[cfg(feature = "getrandom")] fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut random = OsRandom::new()?;
//! let keys = KeyRing::random(&mut random);
//! let binding = Binding {
//!     audience: "https://example.com/mcp",
//!     principal: Some("alice"),
//!     method: "tools/call",
//!     target: "deploy",
//!     arguments: digest_arguments(Some(r#"{"env": "prod"}"#)),
//! };
//! let state = keys.seal(&binding, b"journal", UnixTime::from_millis(600_000), &mut random)?;
//!
//! let opened = UnverifiedState::new(state.as_str()).open(&keys, &binding, UnixTime::from_millis(0))?;
//! assert_eq!(opened.payload(), b"journal");
//! # Ok(()) }
//! # #[cfg(not(feature = "getrandom"))] fn main() {}
//! ```

mod arguments;
mod keys;
mod store;

#[cfg(test)]
mod tests;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::random::{self, Random};
use crate::rpc;
use crate::time::UnixTime;

pub use arguments::{Digest, digest_arguments};
use keys::{Fingerprint, Key, KeyId, Part};
pub use keys::{KeyRing, WeakSecret};
pub use store::{MemoryStateStore, StateStore};

const VERSION: &str = "v1.";
const HEAD: usize = size_of::<KeyId>() + 8 + 16 + 3 * size_of::<Fingerprint>();
const TAG: usize = 32;

/// The call that a state belongs to. Sealing and opening must be given the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // one more claim must break whoever makes bindings
pub struct Binding<'a> {
    /// Who the state is for: the server's own name, for HTTP best its canonical URI. Servers that share
    /// keys and should not take each other's state differ here.
    pub audience: &'a str,
    /// Who makes the call, as authorization established it; `None` without authorization.
    pub principal: Option<&'a str>,
    /// The method, such as `tools/call`.
    pub method: &'a str,
    /// The tool's or prompt's name, or the resource's URI.
    pub target: &'a str,
    /// The call's arguments.
    pub arguments: Digest,
}

/// A token as [`KeyRing::seal`] made it, to be sent as `requestState`.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(String);

/// A `requestState` as it came. There is nothing to be had from it but by [`open`](Self::open).
#[derive(Clone)]
pub struct UnverifiedState<'a>(Cow<'a, str>);

/// What a verified state held.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenedState {
    payload: Vec<u8>,
    nonce: Nonce,
    expires: UnixTime,
}

/// The random name of one sealed state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce([u8; 16]);

/// A state was refused.
///
/// Outwardly every refusal is the same, code and words, so that nobody can search for a state that
/// passes. [`reason`](Self::reason) and the `Debug` form say more: they are for the server's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateError(Refusal);

/// Why a state was refused. Not for the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// Longer than [`Limits::max_state`](crate::limits::Limits::max_state).
    TooLong,
    /// No token of a version that this crate reads.
    Malformed,
    /// Signed with a key that is not in the ring: an older one, or another server's.
    UnknownKey,
    /// The signature does not fit.
    Forged,
    /// Authentic, but its time is over.
    Expired,
    /// Authentic, but made for another audience or principal.
    OtherCaller,
    /// Authentic, but made for another method or target.
    OtherRequest,
    /// Authentic, but made for other arguments.
    OtherArguments,
    /// Authentic, but used before, or the store could not remember it.
    Used,
}

/// A payload that would make the token longer than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateTooLarge {
    /// What the token's length in bytes would be.
    pub len: usize,
    /// What it may be.
    pub max: usize,
}

impl KeyRing {
    /// Signs a state that holds `payload` and is good until `expires`, exclusively, for the call that
    /// `binding` describes.
    ///
    /// # Errors
    ///
    /// [`StateTooLarge`] when the token would be longer than the bound.
    pub fn seal(
        &self,
        binding: &Binding<'_>,
        payload: &[u8],
        expires: UnixTime,
        random: &mut dyn Random,
    ) -> Result<Sealed, StateTooLarge> {
        let len = VERSION.len() + base64_len(HEAD + payload.len()) + 1 + base64_len(TAG);
        if len > self.max_state {
            return Err(StateTooLarge { len, max: self.max_state });
        }
        let key = self.signing();
        let nonce = Nonce(random::bytes(random));
        let mut body = Vec::with_capacity(HEAD + payload.len());
        body.extend_from_slice(&key.id());
        body.extend_from_slice(&expires.as_millis().to_be_bytes());
        body.extend_from_slice(&nonce.0);
        for part in Part::ALL {
            body.extend_from_slice(&key.fingerprint(part, &nonce, binding));
        }
        body.extend_from_slice(payload);

        let mut token = String::with_capacity(len);
        token.push_str(VERSION);
        URL_SAFE_NO_PAD.encode_string(&body, &mut token);
        let tag = key.tag(token.as_bytes());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(tag, &mut token);
        Ok(Sealed(token))
    }
}

impl<'a> UnverifiedState<'a> {
    /// Takes a `requestState` from the wire.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self(text.into())
    }

    /// Verifies the state for the call at hand. The signature comes first: nothing of an inauthentic
    /// token is looked at but its key id.
    ///
    /// # Errors
    ///
    /// [`StateError`], which reads the same for the peer whatever was wrong.
    pub fn open(
        &self,
        keys: &KeyRing,
        binding: &Binding<'_>,
        now: UnixTime,
    ) -> Result<OpenedState, StateError> {
        open(&self.0, keys, binding, now).map_err(StateError)
    }

    /// The same without a borrow of the message.
    #[must_use]
    pub fn into_owned(self) -> UnverifiedState<'static> {
        UnverifiedState(Cow::Owned(self.0.into_owned()))
    }
}

fn open(token: &str, keys: &KeyRing, binding: &Binding<'_>, now: UnixTime) -> Result<OpenedState, Refusal> {
    if token.len() > keys.max_state {
        return Err(Refusal::TooLong);
    }
    let (signed, tag) = token.rsplit_once('.').ok_or(Refusal::Malformed)?;
    let body = signed.strip_prefix(VERSION).ok_or(Refusal::Malformed)?;
    // Strict: one text per body, no stray bits in the last character.
    let mut body = URL_SAFE_NO_PAD.decode(body).map_err(|_| Refusal::Malformed)?;
    let mut tag_bytes = [0; TAG];
    match URL_SAFE_NO_PAD.decode_slice(tag, &mut tag_bytes) {
        Ok(TAG) => {}
        _ => return Err(Refusal::Malformed),
    }
    let (head, _) = body.split_at_checked(HEAD).ok_or(Refusal::Malformed)?;

    let (id, head) = take(head);
    let key: &Key = keys.find(id).ok_or(Refusal::UnknownKey)?;
    if !key.verifies(signed.as_bytes(), &tag_bytes) {
        return Err(Refusal::Forged);
    }

    let (expires, head) = take(head);
    let expires = UnixTime::from_millis(u64::from_be_bytes(expires));
    let (nonce, mut head) = take(head);
    let nonce = Nonce(nonce);
    if now >= expires {
        return Err(Refusal::Expired);
    }
    for part in Part::ALL {
        let (fingerprint, rest) = take(head);
        if !key.fingerprint_fits(part, &nonce, binding, &fingerprint) {
            return Err(part.refusal());
        }
        head = rest;
    }
    body.drain(..HEAD);
    Ok(OpenedState { payload: body, nonce, expires })
}

/// Splits off `N` bytes; of fewer there are only in a body shorter than [`HEAD`], refused before.
fn take<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    bytes.split_first_chunk().map_or(([0; N], &[]), |(first, rest)| (*first, rest))
}

/// The length of `bytes` bytes as base64 without padding.
const fn base64_len(bytes: usize) -> usize {
    bytes / 3 * 4 + [0, 2, 3][bytes % 3]
}

impl Sealed {
    /// The token.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The token, owned.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl OpenedState {
    /// The payload, as it was sealed.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The payload, owned.
    #[must_use]
    pub fn into_payload(self) -> Vec<u8> {
        self.payload
    }

    /// What tells this state from every other.
    #[must_use]
    pub const fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// The moment from which it is refused.
    #[must_use]
    pub const fn expires(&self) -> UnixTime {
        self.expires
    }

    /// Lets the state be used once: `store` remembers it.
    ///
    /// # Errors
    ///
    /// [`StateError`] when it was used before, or when the store cannot remember it.
    pub fn claim<S: StateStore + ?Sized>(self, store: &mut S, now: UnixTime) -> Result<Self, StateError> {
        if store.claim(self.nonce, self.expires, now) { Ok(self) } else { Err(StateError(Refusal::Used)) }
    }
}

impl Nonce {
    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl StateError {
    /// The one code of all refusals, `-32602`.
    pub const CODE: i32 = rpc::code::INVALID_PARAMS;
    /// The one sentence of all refusals.
    pub const MESSAGE: &'static str = "The request state is not valid for this request";

    /// Why, for the log. Not for the peer.
    #[must_use]
    pub const fn reason(&self) -> Refusal {
        self.0
    }
}

impl From<StateError> for rpc::Error {
    fn from(_: StateError) -> Self {
        Self::new(StateError::CODE, StateError::MESSAGE)
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::MESSAGE)
    }
}

impl core::error::Error for StateError {}

impl fmt::Display for StateTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request state would be {} bytes long, {} are allowed", self.len, self.max)
    }
}

impl core::error::Error for StateTooLarge {}

impl fmt::Display for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// A token is as good as its call until it expires: none of these types shows it in a log.

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

impl fmt::Debug for UnverifiedState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnverifiedState({} bytes)", self.0.len())
    }
}

impl fmt::Debug for OpenedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedState")
            .field("payload", &format_args!("{} bytes", self.payload.len()))
            .field("nonce", &self.nonce)
            .field("expires", &self.expires)
            .finish()
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
