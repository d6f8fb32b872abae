//! Single use of input state.

use alloc::collections::BTreeSet;

use super::Nonce;
use crate::time::UnixTime;

/// Remembers which states were used. A server of several processes needs one that they share.
pub trait StateStore {
    /// Whether this is the first claim of `nonce`. The claim must be remembered until `expires`, and two
    /// claims at once must not both be the first. A store that cannot remember says `false`.
    fn claim(&mut self, nonce: Nonce, expires: UnixTime, now: UnixTime) -> bool;
}

/// A store in memory, for one process.
///
/// It forgets what has expired and holds a bounded number of claims. Full of claims that have not, it
/// refuses further states rather than let one be used twice. A clock that is set back makes no difference:
/// what has expired once stays expired.
#[derive(Debug, Clone)]
pub struct MemoryStateStore {
    /// Ordered by expiry. A nonce has one expiry, for both are signed together.
    claimed: BTreeSet<(UnixTime, Nonce)>,
    capacity: usize,
    /// The latest time that it was told. Claims that had expired by then are forgotten.
    latest: UnixTime,
}

impl MemoryStateStore {
    /// A store for at most `capacity` claims at a time, of about 24 bytes each.
    #[must_use]
    pub const fn new(capacity: usize) -> Self {
        Self { claimed: BTreeSet::new(), capacity, latest: UnixTime::from_millis(0) }
    }

    /// How many claims it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.claimed.len()
    }

    /// Whether it holds no claim.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.claimed.is_empty()
    }
}

impl StateStore for MemoryStateStore {
    fn claim(&mut self, nonce: Nonce, expires: UnixTime, now: UnixTime) -> bool {
        let now = now.max(self.latest);
        self.latest = now;
        while let Some(oldest) = self.claimed.first()
            && oldest.0 <= now
        {
            self.claimed.pop_first();
        }
        expires > now && self.claimed.len() < self.capacity && self.claimed.insert((expires, nonce))
    }
}
