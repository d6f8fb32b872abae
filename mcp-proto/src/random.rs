//! Randomness as an argument: keys, nonces and task ids come from a source that the caller owns.

use alloc::boxed::Box;

/// A source of bytes that nobody else can predict.
///
/// Filling cannot fail: what cannot give such bytes must not be made into a `Random`. Keys of input
/// state, its nonces and the ids of tasks rest on this alone.
pub trait Random {
    /// Fills `bytes`.
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<R: Random + ?Sized> Random for &mut R {
    fn fill(&mut self, bytes: &mut [u8]) {
        (**self).fill(bytes);
    }
}

impl<R: Random + ?Sized> Random for Box<R> {
    fn fill(&mut self, bytes: &mut [u8]) {
        (**self).fill(bytes);
    }
}

/// `N` fresh bytes.
pub(crate) fn bytes<const N: usize>(random: &mut dyn Random) -> [u8; N] {
    let mut bytes = [0; N];
    random.fill(&mut bytes);
    bytes
}

#[cfg(feature = "getrandom")]
pub use os::{NoRandomness, OsRandom};

#[cfg(feature = "getrandom")]
mod os {
    use core::fmt;

    use hmac::{Hmac, KeyInit, Mac};
    use sha2::Sha256;

    use super::Random;

    /// The operating system's source.
    ///
    /// A system without randomness is found out when the value is made, where it can be reported. Should
    /// the source fail later (a sandbox that takes the system call away), the bytes come from HMAC-SHA256
    /// over a counter, keyed with a seed of 32 bytes drawn at the start: still unpredictable, never a
    /// panic. Do not carry a value across `fork`: both sides would then share that seed.
    pub struct OsRandom {
        reserve: Reserve,
    }

    /// The operating system gave no random bytes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[allow(clippy::exhaustive_structs)] // there is no more to say
    pub struct NoRandomness;

    impl OsRandom {
        /// Opens the source.
        ///
        /// # Errors
        ///
        /// [`NoRandomness`] when the operating system gives no bytes.
        pub fn new() -> Result<Self, NoRandomness> {
            let mut seed = [0; 32];
            getrandom::fill(&mut seed).map_err(|_| NoRandomness)?;
            Ok(Self { reserve: Reserve::new(&seed) })
        }
    }

    impl Random for OsRandom {
        fn fill(&mut self, bytes: &mut [u8]) {
            if getrandom::fill(bytes).is_err() {
                self.reserve.fill(bytes);
            }
        }
    }

    impl fmt::Debug for OsRandom {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("OsRandom")
        }
    }

    impl fmt::Display for NoRandomness {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the operating system gave no random bytes")
        }
    }

    impl core::error::Error for NoRandomness {}

    /// A stream of pseudo-random blocks; none is given twice.
    pub(super) struct Reserve {
        keyed: Hmac<Sha256>,
        next: u128,
    }

    impl Reserve {
        pub(super) fn new(seed: &[u8; 32]) -> Self {
            // HMAC pads a short key with zeros to its block length of 64 bytes; so does this.
            let mut block = [0; 64];
            block[..32].copy_from_slice(seed);
            Self { keyed: Hmac::new(&block.into()), next: 0 }
        }

        pub(super) fn fill(&mut self, bytes: &mut [u8]) {
            for chunk in bytes.chunks_mut(32) {
                let mut mac = self.keyed.clone();
                mac.update(&self.next.to_be_bytes());
                self.next += 1;
                chunk.copy_from_slice(&mac.finalize().into_bytes()[..chunk.len()]);
            }
        }
    }
}

/// Bytes that anybody who knows the seed can tell: for tests, whose output must be the same each time.
///
/// Keys and task ids made from it protect nothing.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct PredictableRandom(u64);

impl PredictableRandom {
    /// The sequence that belongs to `seed`.
    #[must_use]
    pub const fn for_tests(seed: u64) -> Self {
        Self(seed)
    }
}

impl Random for PredictableRandom {
    /// SplitMix64.
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictable_bytes_are_a_function_of_the_seed() {
        let draw = |seed| bytes::<20>(&mut PredictableRandom::for_tests(seed));
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        // First output of SplitMix64 for seed 0, as published with the algorithm.
        assert_eq!(draw(0)[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
        let mut boxed: Box<dyn Random> = Box::new(PredictableRandom::for_tests(7));
        assert_eq!(bytes::<20>(&mut boxed), draw(7));
    }

    #[cfg(feature = "getrandom")]
    #[test]
    fn the_systems_bytes_differ_from_draw_to_draw() {
        let mut random = OsRandom::new().unwrap();
        let draws: alloc::vec::Vec<[u8; 16]> = (0..8).map(|_| bytes(&mut random)).collect();
        for (i, draw) in draws.iter().enumerate() {
            assert!(!draws[..i].contains(draw) && *draw != [0; 16]);
        }
    }

    /// What a failing source leaves us with is neither zeros nor a repetition.
    #[cfg(feature = "getrandom")]
    #[test]
    fn the_reserve_never_repeats_and_depends_on_its_seed() {
        let stream = |seed| {
            let mut reserve = os::Reserve::new(&[seed; 32]);
            let (mut a, mut b) = ([0; 50], [0; 50]);
            reserve.fill(&mut a);
            reserve.fill(&mut b);
            (a, b)
        };
        let (a, b) = stream(1);
        assert_ne!(a, b);
        assert_ne!(a[..32], b[..32]);
        assert_ne!(a[..18], a[32..]);
        assert_ne!(stream(2).0, a);
        assert_eq!(stream(1), (a, b));
    }
}
