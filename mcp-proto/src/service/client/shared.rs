//! What the handles of a client, its calls and the one who drives its link have in common.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
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
    /// Why there is no server.
    failed: Option<CallError>,
    /// The link is gone.
    gone: bool,
    waiting: Vec<Waker>,
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
        Self::tell(facts);
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
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Ready when it is known what the server speaks, or that it cannot be used.
    pub(super) fn poll_connected(&self, cx: &mut Context<'_>) -> Poll<Result<Arc<ServerFacts>, CallError>> {
        let mut facts = self.facts();
        if let Some(server) = &facts.server {
            return Poll::Ready(Ok(Arc::clone(server)));
        }
        if let Some(error) = &facts.failed {
            return Poll::Ready(Err(error.clone()));
        }
        wait(&mut facts.waiting, cx);
        Poll::Pending
    }

    /// Ready when the link is gone.
    pub(super) fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut facts = self.facts();
        if facts.gone {
            return Poll::Ready(());
        }
        wait(&mut facts.waiting, cx);
        Poll::Pending
    }

    pub(super) fn server(&self) -> Option<Arc<ServerFacts>> {
        self.facts().server.clone()
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.facts().verdict
    }
}

fn wait(waiting: &mut Vec<Waker>, cx: &Context<'_>) {
    if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
        waiting.push(cx.waker().clone());
    }
}
