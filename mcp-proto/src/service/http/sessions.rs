//! The legacy sessions of one URL.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::super::Principal;
use super::super::session::Shared;
use crate::limits::Limits;
use crate::time::Instant;

/// By id. The ids are ours and random, so comparing them tells no one how close a guess was to another.
#[derive(Default)]
pub(crate) struct Sessions {
    by_id: BTreeMap<Box<str>, Entry>,
}

struct Entry {
    shared: Arc<Shared>,
    used: Instant,
}

impl Entry {
    /// Nobody waits for anything of it.
    fn is_idle(&self) -> bool {
        let state = self.shared.lock();
        state.connection.in_flight() == 0
            && state.streaming.as_ref().is_none_or(|streaming| !streaming.router.has_readers())
            && !state.has_driver()
    }

    fn belongs_to(&self, principal: Option<&Principal>) -> bool {
        self.shared.principal.as_ref().map(Principal::id) == principal.map(Principal::id)
    }
}

impl Sessions {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The session of that id, if it is this caller's: someone else's is as unknown as one that never was.
    pub(crate) fn find(
        &mut self,
        id: &str,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Option<Arc<Shared>> {
        let entry = self.by_id.get_mut(id).filter(|entry| entry.belongs_to(principal))?;
        if entry.shared.lock().aborted {
            self.by_id.remove(id);
            return None;
        }
        entry.used = now;
        Some(Arc::clone(&entry.shared))
    }

    pub(crate) fn remove(&mut self, id: &str, principal: Option<&Principal>) -> Option<Arc<Shared>> {
        self.by_id.get(id).filter(|entry| entry.belongs_to(principal))?;
        self.by_id.remove(id).map(|entry| entry.shared)
    }

    /// Keeps a session. If there are too many, those that were idle longest make room: they are handed back
    /// to be ended. `false` if none is idle.
    pub(crate) fn insert(
        &mut self,
        id: &str,
        shared: &Arc<Shared>,
        now: Instant,
        limits: &Limits,
    ) -> (bool, Vec<Arc<Shared>>) {
        let mut dropped = Vec::new();
        if self.by_id.len() >= limits.max_sessions {
            // A sixteenth at a time, so that a flood of sessions does not look at all of them for each.
            let mut idle: Vec<_> = self
                .by_id
                .iter()
                .filter(|(_, entry)| entry.is_idle())
                .map(|(id, entry)| (entry.used, id.clone()))
                .collect();
            idle.sort_unstable();
            for (_, id) in idle.into_iter().take(limits.max_sessions / 16 + 1) {
                dropped.extend(self.by_id.remove(&id).map(|entry| entry.shared));
            }
        }
        let room = self.by_id.len() < limits.max_sessions;
        if room {
            self.by_id.insert(id.into(), Entry { shared: Arc::clone(shared), used: now });
        }
        (room, dropped)
    }

    /// Takes out the sessions that were idle for too long; the others are named, too.
    pub(crate) fn sweep(
        &mut self,
        now: Instant,
        most: Option<Duration>,
    ) -> (Vec<Arc<Shared>>, Vec<Arc<Shared>>) {
        let mut expired = Vec::new();
        if let Some(most) = most {
            self.by_id.retain(|_, entry| {
                // What is in use now begins to be idle at the earliest now.
                if !entry.is_idle() {
                    entry.used = now;
                }
                let keep = entry.used + most > now;
                if !keep {
                    expired.push(Arc::clone(&entry.shared));
                }
                keep
            });
        }
        // Only where a clock runs is there something to do.
        let live = self
            .by_id
            .values()
            .filter(|entry| entry.shared.lock().connection.next_deadline().is_some_and(|at| at <= now))
            .map(|entry| Arc::clone(&entry.shared))
            .collect();
        (expired, live)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Shared>> {
        self.by_id.values().map(|entry| Arc::clone(&entry.shared)).collect()
    }

    pub(crate) fn take_all(&mut self) -> Vec<Arc<Shared>> {
        core::mem::take(&mut self.by_id).into_values().map(|entry| entry.shared).collect()
    }
}
