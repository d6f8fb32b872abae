//! The keys that sign and verify.

use alloc::vec::Vec;
use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

use super::{Binding, Nonce, Refusal};
use crate::limits::Limits;
use crate::random::{self, Random};

const BLOCK: usize = 64;

pub(super) type KeyId = [u8; 8];
pub(super) type Fingerprint = [u8; 16];

/// Keys for input state: the first one signs, all of them verify.
///
/// Every process that may receive the next round of a call needs the keys of the one that answered the
/// last. With [`KeyRing::random`] that is this process alone, until it ends.
///
/// To rotate without refusing what is under way: add the new key everywhere as one that verifies, then
/// make it the first, then drop the old one when the longest-lived state has expired.
#[derive(Clone)]
pub struct KeyRing {
    /// Never empty.
    keys: Vec<Key>,
    pub(super) max_state: usize,
}

/// A secret shorter than 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // there is no more to say
pub struct WeakSecret;

impl KeyRing {
    /// A ring of one key, made from at least 32 bytes that nobody can guess.
    ///
    /// # Errors
    ///
    /// [`WeakSecret`] for fewer bytes.
    pub fn new(secret: &[u8]) -> Result<Self, WeakSecret> {
        Ok(Self { keys: alloc::vec![Key::new(secret)?], max_state: Limits::default().max_state })
    }

    /// A ring of one fresh key. State signed with it is void when the process ends, and to every other
    /// process.
    #[must_use]
    pub fn random(random: &mut dyn Random) -> Self {
        Self {
            keys: alloc::vec![Key::of_32_bytes(&random::bytes(random))],
            max_state: Limits::default().max_state,
        }
    }

    /// The same ring with one more key that verifies but does not sign.
    ///
    /// # Errors
    ///
    /// [`WeakSecret`] for fewer than 32 bytes.
    pub fn accepting(mut self, secret: &[u8]) -> Result<Self, WeakSecret> {
        let key = Key::new(secret)?;
        if self.find(key.id).is_none() {
            self.keys.push(key);
        }
        Ok(self)
    }

    /// Makes `secret` the signing key; those before it go on verifying.
    ///
    /// # Errors
    ///
    /// [`WeakSecret`] for fewer than 32 bytes.
    pub fn rotate(&mut self, secret: &[u8]) -> Result<(), WeakSecret> {
        let key = Key::new(secret)?;
        self.put_first(key);
        Ok(())
    }

    /// Makes a fresh random key the signing key; those before it go on verifying.
    pub fn rotate_random(&mut self, random: &mut dyn Random) {
        self.put_first(Key::of_32_bytes(&random::bytes(random)));
    }

    /// Keeps the signing key and the `verifying` keys that signed most recently; forgets the others.
    pub fn retire(&mut self, verifying: usize) {
        self.keys.truncate(verifying.saturating_add(1));
    }

    /// The same ring with the token length bound of `limits`. Default 64 KiB.
    #[must_use]
    pub fn with_limits(mut self, limits: &Limits) -> Self {
        self.max_state = limits.max_state;
        self
    }

    pub(super) fn signing(&self) -> &Key {
        &self.keys[0]
    }

    pub(super) fn find(&self, id: KeyId) -> Option<&Key> {
        self.keys.iter().find(|key| key.id == id)
    }

    fn put_first(&mut self, key: Key) {
        self.keys.retain(|other| other.id != key.id);
        self.keys.insert(0, key);
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

impl fmt::Display for WeakSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret for input state must have at least 32 bytes")
    }
}

impl core::error::Error for WeakSecret {}

/// The parts of a binding that a state is told apart by.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Caller,
    Request,
    Arguments,
}

impl Part {
    pub(super) const ALL: [Self; 3] = [Self::Caller, Self::Request, Self::Arguments];

    pub(super) const fn refusal(self) -> Refusal {
        match self {
            Self::Caller => Refusal::OtherCaller,
            Self::Request => Refusal::OtherRequest,
            Self::Arguments => Refusal::OtherArguments,
        }
    }
}

/// One key, ready for use: the secret itself is not kept.
#[derive(Clone)]
pub(super) struct Key {
    /// Derived from the secret, so that all who have the secret agree on it.
    id: KeyId,
    /// HMAC with the key schedule done. Every use clones it.
    keyed: Hmac<Sha256>,
}

impl Key {
    fn new(secret: &[u8]) -> Result<Self, WeakSecret> {
        if secret.len() < 32 {
            return Err(WeakSecret);
        }
        // HMAC's own rule for keys: hashed if longer than a block, padded with zeros to a block.
        let mut block = [0; BLOCK];
        if secret.len() > BLOCK {
            block[..32].copy_from_slice(&Sha256::digest(secret));
        } else {
            block[..secret.len()].copy_from_slice(secret);
        }
        Ok(Self::of_block(&block))
    }

    fn of_32_bytes(secret: &[u8; 32]) -> Self {
        let mut block = [0; BLOCK];
        block[..32].copy_from_slice(secret);
        Self::of_block(&block)
    }

    fn of_block(block: &[u8; BLOCK]) -> Self {
        let keyed = Hmac::<Sha256>::new(block.into());
        let mut mac = keyed.clone();
        mac.update(b"key\0");
        let mut id = KeyId::default();
        let len = id.len();
        id.copy_from_slice(&mac.finalize().into_bytes()[..len]);
        Self { id, keyed }
    }

    pub(super) const fn id(&self) -> KeyId {
        self.id
    }

    pub(super) fn tag(&self, signed: &[u8]) -> [u8; 32] {
        self.tag_of(signed).finalize().into_bytes().into()
    }

    /// In constant time.
    pub(super) fn verifies(&self, signed: &[u8], tag: &[u8; 32]) -> bool {
        self.tag_of(signed).verify_slice(tag).is_ok()
    }

    pub(super) fn fingerprint(&self, part: Part, nonce: &Nonce, binding: &Binding<'_>) -> Fingerprint {
        let mut fingerprint = Fingerprint::default();
        let len = fingerprint.len();
        fingerprint.copy_from_slice(&self.print_of(part, nonce, binding).finalize().into_bytes()[..len]);
        fingerprint
    }

    /// In constant time.
    pub(super) fn fingerprint_fits(
        &self,
        part: Part,
        nonce: &Nonce,
        binding: &Binding<'_>,
        fingerprint: &Fingerprint,
    ) -> bool {
        self.print_of(part, nonce, binding).verify_truncated_left(fingerprint).is_ok()
    }

    fn tag_of(&self, signed: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        mac.update(b"tag\0");
        mac.update(signed);
        mac
    }

    fn print_of(&self, part: Part, nonce: &Nonce, binding: &Binding<'_>) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        match part {
            Part::Caller => {
                mac.update(b"caller\0");
                mac.update(&nonce.0);
                field(&mut mac, binding.audience.as_bytes());
                mac.update(&[binding.principal.is_some().into()]);
                field(&mut mac, binding.principal.unwrap_or_default().as_bytes());
            }
            Part::Request => {
                mac.update(b"request\0");
                mac.update(&nonce.0);
                field(&mut mac, binding.method.as_bytes());
                field(&mut mac, binding.target.as_bytes());
            }
            Part::Arguments => {
                mac.update(b"arguments\0");
                mac.update(&nonce.0);
                field(&mut mac, binding.arguments.as_bytes());
            }
        }
        mac
    }
}

fn field(mac: &mut Hmac<Sha256>, bytes: &[u8]) {
    mac.update(&(bytes.len() as u64).to_be_bytes());
    mac.update(bytes);
}
