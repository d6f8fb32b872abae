//! What the handles of a client, its calls and the one who drives its link have in common.

use alloc::boxed::Box;
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::{Context, Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::listen::Feed;
use super::machine::Erased;
use super::respond::{Address, Answer};
use super::slot::Slot;
use crate::client::{CallError, CallId, CallOptions, Parked, ServerFacts, Verdict};
use crate::model::{InputResponses, LoggingLevel, Root, Str, SubscriptionFilter};

/// What is to be done with the machine. It belongs to the driver alone: handles leave word in the inbox.
pub(super) enum Command {
    Call {
        request: Box<dyn Erased>,
        options: CallOptions,
        slot: Arc<Slot>,
        by_hand: bool,
    },
    Resume {
        parked: Box<Parked>,
        responses: InputResponses,
        options: CallOptions,
        slot: Arc<Slot>,
    },
    /// By hand: the next round of a call.
    Next {
        slot: Arc<Slot>,
        responses: InputResponses,
    },
    Park {
        slot: Arc<Slot>,
    },
    Listen {
        filter: SubscriptionFilter,
        options: CallOptions,
        feed: Arc<Feed>,
    },
    Cancel(CallId),
    /// A responder has come to an end.
    Answered {
        to: Address,
        answer: Answer,
    },
    Roots(Vec<Root>),
    Notify {
        method: Str,
        params: Option<Box<str>>,
    },
    Level(LoggingLevel),
    Close,
}

pub(super) struct Shared {
    inbox: Mutex<Inbox>,
    facts: Mutex<Facts>,
}

#[derive(Default)]
struct Inbox {
    commands: VecDeque<Command>,
    driver: Option<Waker>,
    /// Nobody takes anything out any more.
    over: bool,
}

#[derive(Default)]
struct Facts {
    server: Option<Arc<ServerFacts>>,
    verdict: Option<Verdict>,
    /// How often the server was started again, and began to be: odd while it is.
    turns: u64,
    /// Why there is no server.
    failed: Option<CallError>,
    /// The link is gone.
    gone: bool,
    waiting: BTreeMap<u64, Waker>,
    next_place: u64,
}

/// The place of one who waits to hear of the server. Given up when it is dropped.
pub(super) struct Place {
    shared: Arc<Shared>,
    at: Option<u64>,
}

impl Place {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), at: None }
    }

    /// However many wait, one more costs no look at the others.
    fn wait(&mut self, facts: &mut Facts, cx: &Context<'_>) {
        let at = *self.at.get_or_insert_with(|| {
            facts.next_place += 1;
            facts.next_place
        });
        match facts.waiting.entry(at) {
            Entry::Occupied(mut waker) => waker.get_mut().clone_from(cx.waker()),
            Entry::Vacant(place) => drop(place.insert(cx.waker().clone())),
        }
    }

    /// Ready when it is known what the server speaks, or that it cannot be used.
    pub(super) fn poll_connected(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Arc<ServerFacts>, CallError>> {
        let shared = Arc::clone(&self.shared);
        let mut facts = shared.facts();
        if let Some(server) = &facts.server {
            return Poll::Ready(Ok(Arc::clone(server)));
        }
        if let Some(error) = &facts.failed {
            return Poll::Ready(Err(error.clone()));
        }
        self.wait(&mut facts, cx);
        Poll::Pending
    }

    /// Ready when the link is gone.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let shared = Arc::clone(&self.shared);
        let mut facts = shared.facts();
        if facts.gone {
            return Poll::Ready(());
        }
        self.wait(&mut facts, cx);
        Poll::Pending
    }

    /// Ready when there is another turn than `seen`; `None` when the link is gone.
    pub(super) fn poll_turn(&mut self, seen: u64, cx: &mut Context<'_>) -> Poll<Option<u64>> {
        let shared = Arc::clone(&self.shared);
        let mut facts = shared.facts();
        if facts.turns != seen {
            return Poll::Ready(Some(facts.turns));
        }
        if facts.gone {
            return Poll::Ready(None);
        }
        self.wait(&mut facts, cx);
        Poll::Pending
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(at) = self.at {
            // A waker may do anything when it is dropped: not under the lock.
            let waker = self.shared.facts().waiting.remove(&at);
            drop(waker);
        }
    }
}

impl Shared {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { inbox: Mutex::default(), facts: Mutex::default() })
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves word for the driver.
    ///
    /// # Errors
    ///
    /// There is none any more.
    pub(super) fn submit(&self, command: Command) -> Result<(), CallError> {
        let mut inbox = self.inbox();
        if inbox.over {
            return Err(CallError::Closed);
        }
        inbox.commands.push_back(command);
        let driver = inbox.driver.take();
        drop(inbox);
        driver.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Everything that is to be done, in exchange for a queue that is empty.
    pub(super) fn take(&self, empty: VecDeque<Command>) -> VecDeque<Command> {
        core::mem::replace(&mut self.inbox().commands, empty)
    }

    /// Nothing is taken in from now on. What is left comes back.
    pub(super) fn end(&self) -> VecDeque<Command> {
        let mut inbox = self.inbox();
        inbox.over = true;
        inbox.driver = None;
        core::mem::take(&mut inbox.commands)
    }

    /// How much there is to be done.
    pub(super) fn len(&self) -> usize {
        self.inbox().commands.len()
    }

    pub(super) fn is_over(&self) -> bool {
        self.inbox().over
    }

    /// Ready when something is to be done.
    pub(super) fn poll_inbox(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inbox = self.inbox();
        if !inbox.commands.is_empty() {
            return Poll::Ready(());
        }
        match &mut inbox.driver {
            Some(driver) => driver.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// It is known what the server speaks, perhaps anew.
    pub(super) fn ready(&self, server: Option<&ServerFacts>, verdict: Option<Verdict>) {
        let mut facts = self.facts();
        if let Some(server) = server.filter(|server| facts.server.as_deref() != Some(*server)) {
            facts.server = Some(Arc::new(server.clone()));
        }
        facts.verdict = verdict;
        facts.turns += facts.turns % 2;
        Self::tell(facts);
    }

    /// A server that was there is being started again.
    pub(super) fn restarting(&self) {
        let mut facts = self.facts();
        if facts.server.is_some() && facts.turns.is_multiple_of(2) {
            facts.turns += 1;
            Self::tell(facts);
        }
    }

    pub(super) fn turns(&self) -> u64 {
        self.facts().turns
    }

    pub(super) fn failed(&self, error: &CallError) {
        let mut facts = self.facts();
        facts.failed.get_or_insert_with(|| error.clone());
        Self::tell(facts);
    }

    /// The link is gone.
    pub(super) fn gone(&self) {
        let mut facts = self.facts();
        facts.gone = true;
        facts.failed.get_or_insert(CallError::Closed);
        Self::tell(facts);
    }

    fn tell(mut facts: MutexGuard<'_, Facts>) {
        let waiting = core::mem::take(&mut facts.waiting);
        drop(facts);
        waiting.into_values().for_each(Waker::wake);
    }

    pub(super) fn server(&self) -> Option<Arc<ServerFacts>> {
        self.facts().server.clone()
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.facts().verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each who waits has a place, and leaves it.
    #[test]
    fn places_are_given_up() {
        let shared = Shared::new();
        let cx = &mut Context::from_waker(Waker::noop());
        let mut places: Vec<_> = (0..10_000).map(|_| Place::new(&shared)).collect();
        for _ in 0..2 {
            assert!(places.iter_mut().all(|place| place.poll_gone(cx).is_pending()));
            assert_eq!(shared.facts().waiting.len(), 10_000);
        }
        places.truncate(10);
        assert_eq!(shared.facts().waiting.len(), 10);
        shared.gone();
        assert!(shared.facts().waiting.is_empty());
        assert!(places.iter_mut().all(|place| place.poll_gone(cx).is_ready()));
    }
}
