//! The table of open requests of one connection.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::features::ClientFeatures;
use super::legacy::Parked;
use super::pending::RequestKey;
use super::subscription::Listen;
use crate::model::LoggingLevel;
use crate::model::ProtocolVersion;
use crate::rpc::{ProgressToken, RequestId};
use crate::time::Instant;

/// Up to this many open requests an id is found by looking at each; above it, by a map. The map compares
/// and does not hash, so a peer cannot choose ids that collide.
const LINEAR: usize = 16;
const NONE: u32 = u32::MAX;

/// What is known of an open request.
#[derive(Debug)]
#[allow(unreachable_pub, unnameable_types, clippy::exhaustive_structs)] // named by the sealed half of `Channel`
pub struct Slot {
    pub(crate) id: RequestId,
    pub(crate) version: ProtocolVersion,
    pub(crate) features: ClientFeatures,
    pub(crate) progress_token: Option<ProgressToken>,
    /// The last progress that was sent: the next one must be greater.
    pub(crate) progress: Option<f64>,
    /// 2026-07-28: the level this request asked for.
    pub(crate) log_level: Option<LoggingLevel>,
    /// 2025-11-25: it asked to be answered with a task.
    pub(crate) asks_task: bool,
    pub(crate) deadline: Option<Instant>,
    /// The batch whose array the answer goes into.
    pub(crate) batch: Option<u32>,
    /// The stream that it came on, if the transport has several.
    pub(crate) stream: u64,
    pub(crate) kind: Kind,
}

/// What an open request is besides a call.
#[derive(Debug)]
pub(crate) enum Kind {
    Call,
    /// A legacy call whose questions may become requests to the client.
    Bridged(Box<Parked>),
    /// `resources/subscribe` or `resources/unsubscribe`: the URI, and which of both.
    Subscribe {
        uri: Box<str>,
        on: bool,
    },
    /// An acknowledged `subscriptions/listen`.
    Listen(Box<Listen>),
}

#[derive(Debug)]
struct Entry {
    generation: u32,
    slot: Option<Slot>,
    /// Where `open` lists this entry.
    position: u32,
    /// Neighbours in the order of deadlines, which is the order of arrival.
    earlier: u32,
    later: u32,
}

#[derive(Debug, Default)]
pub(crate) struct InFlight {
    connection: u32,
    entries: Vec<Entry>,
    free: Vec<u32>,
    open: Vec<u32>,
    by_id: BTreeMap<RequestId, u32>,
    /// First and last entry that has a deadline.
    deadlines: Option<(u32, u32)>,
}

impl InFlight {
    pub(crate) fn new(connection: u32) -> Self {
        Self { connection, ..Self::default() }
    }

    pub(crate) const fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn insert(&mut self, slot: Slot) -> RequestKey {
        let at = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, slot: None, position: 0, earlier: NONE, later: NONE });
            (self.entries.len() - 1) as u32
        });
        if self.open.len() == LINEAR {
            for &open in &self.open {
                if let Some(slot) = &self.entries[open as usize].slot {
                    self.by_id.insert(slot.id.clone(), open);
                }
            }
        }
        if self.open.len() >= LINEAR {
            self.by_id.insert(slot.id.clone(), at);
        }
        if slot.deadline.is_some() {
            self.link(at);
        }
        let entry = &mut self.entries[at as usize];
        entry.slot = Some(slot);
        entry.position = self.open.len() as u32;
        self.open.push(at);
        RequestKey { connection: self.connection, slot: at, generation: entry.generation }
    }

    pub(crate) fn remove(&mut self, key: RequestKey) -> Option<Slot> {
        self.get(key)?;
        let entry = &mut self.entries[key.slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        let slot = entry.slot.take()?;
        let position = entry.position as usize;
        self.open.swap_remove(position);
        if let Some(&moved) = self.open.get(position) {
            self.entries[moved as usize].position = position as u32;
        }
        if !self.by_id.is_empty() {
            self.by_id.remove(&slot.id);
            if self.open.len() <= LINEAR {
                self.by_id.clear();
            }
        }
        if slot.deadline.is_some() {
            self.unlink(key.slot);
        }
        self.free.push(key.slot);
        Some(slot)
    }

    pub(crate) fn get(&self, key: RequestKey) -> Option<&Slot> {
        let entry = self.entries.get(key.slot as usize)?;
        (key.connection == self.connection && key.generation == entry.generation)
            .then_some(entry.slot.as_ref())
            .flatten()
    }

    pub(crate) fn get_mut(&mut self, key: RequestKey) -> Option<&mut Slot> {
        let entry = self.entries.get_mut(key.slot as usize)?;
        (key.connection == self.connection && key.generation == entry.generation)
            .then_some(entry.slot.as_mut())
            .flatten()
    }

    pub(crate) fn find(&self, id: &RequestId) -> Option<RequestKey> {
        let at = if self.by_id.is_empty() {
            self.open
                .iter()
                .copied()
                .find(|&at| self.entries[at as usize].slot.as_ref().is_some_and(|slot| slot.id == *id))?
        } else {
            *self.by_id.get(id)?
        };
        Some(self.key(at))
    }

    /// Every open request, in no particular order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = RequestKey> {
        self.open.iter().map(|&at| self.key(at))
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.entries.iter().filter_map(|entry| entry.slot.as_ref())
    }

    pub(crate) fn slots_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.entries.iter_mut().filter_map(|entry| entry.slot.as_mut())
    }

    /// The earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<(Instant, RequestKey)> {
        let (first, _) = self.deadlines?;
        let deadline = self.entries[first as usize].slot.as_ref()?.deadline?;
        Some((deadline, self.key(first)))
    }

    fn key(&self, at: u32) -> RequestKey {
        RequestKey { connection: self.connection, slot: at, generation: self.entries[at as usize].generation }
    }

    /// All deadlines lie equally far from the arrival, so the newest is the last.
    fn link(&mut self, at: u32) {
        let last = self.deadlines.map_or(NONE, |(_, last)| last);
        self.entries[at as usize].earlier = last;
        self.entries[at as usize].later = NONE;
        match self.deadlines {
            Some((first, last)) => {
                self.entries[last as usize].later = at;
                self.deadlines = Some((first, at));
            }
            None => self.deadlines = Some((at, at)),
        }
    }

    fn unlink(&mut self, at: u32) {
        let Entry { earlier, later, .. } = self.entries[at as usize];
        if earlier != NONE {
            self.entries[earlier as usize].later = later;
        }
        if later != NONE {
            self.entries[later as usize].earlier = earlier;
        }
        self.deadlines = match self.deadlines {
            Some((first, last)) if first == at && last == at => None,
            Some((first, last)) if first == at => Some((later, last)),
            Some((first, last)) if last == at => Some((first, earlier)),
            other => other,
        };
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn slot(id: RequestId, deadline: Option<u64>) -> Slot {
        Slot {
            id,
            version: ProtocolVersion::LATEST,
            features: ClientFeatures::default(),
            progress_token: None,
            progress: None,
            log_level: None,
            asks_task: false,
            deadline: deadline.map(|s| Instant::from_origin(Duration::from_secs(s))),
            batch: None,
            stream: 0,
            kind: Kind::Call,
        }
    }

    proptest::proptest! {
        /// Held against a plain list: same ids found, same earliest deadline, stale keys find nothing.
        #[test]
        fn behaves_like_a_list(ops in proptest::collection::vec((0u8..4, 0i64..40), 1..300)) {
            let mut table = InFlight::new(7);
            let mut model: Vec<(RequestKey, i64, Option<u64>)> = Vec::new();
            let mut stale = Vec::new();
            for (step, (op, n)) in ops.into_iter().enumerate() {
                let open = model.iter().position(|(_, id, _)| *id == n);
                match (op, open) {
                    (0 | 1, None) => {
                        let deadline = (op == 0).then_some(step as u64);
                        model.push((table.insert(slot(n.into(), deadline)), n, deadline));
                    }
                    (2 | 3, Some(at)) => {
                        let (key, id, _) = model.swap_remove(at);
                        proptest::prop_assert_eq!(table.remove(key).map(|s| s.id), Some(id.into()));
                        stale.push(key);
                    }
                    _ => {}
                }
                proptest::prop_assert_eq!(table.len(), model.len());
                for id in 0..40 {
                    let want = model.iter().find(|(_, i, _)| *i == id).map(|(k, ..)| *k);
                    proptest::prop_assert_eq!(table.find(&id.into()), want);
                }
                let want = model.iter().filter_map(|(k, _, d)| d.map(|d| (d, *k))).min_by_key(|(d, _)| *d);
                proptest::prop_assert_eq!(table.next_deadline().map(|(_, k)| k), want.map(|(_, k)| k));
                for key in &stale {
                    proptest::prop_assert!(table.get(*key).is_none() && table.remove(*key).is_none());
                }
            }
        }
    }

    #[test]
    fn keys_of_another_connection_find_nothing() {
        let (mut a, mut b) = (InFlight::new(1), InFlight::new(2));
        let key = a.insert(slot(1.into(), None));
        b.insert(slot(1.into(), None));
        assert!(b.get(key).is_none() && b.remove(key).is_none() && a.get(key).is_some());
    }
}
