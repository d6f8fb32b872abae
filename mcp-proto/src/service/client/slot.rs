//! Where a call's future and the driver meet.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::task::{Context, Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::shared::{Command, Shared};
use crate::client::{CallError, CallId, Completed, Parked, Round};
use crate::model::{Progress, Task};

/// Most news of a call that wait for its future to be polled; the oldest go first.
const MOST_NEWS: usize = 256;

/// Most bytes of text in what waits to be heard. A server writes as much of it as it likes.
pub(super) const MOST_TEXT: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Slot(Mutex<State>);

#[derive(Default)]
struct State {
    /// The call's name in the machine, once it has one.
    call: Option<CallId>,
    outcome: Option<Outcome>,
    news: VecDeque<News>,
    /// Bytes of text in the news.
    text: usize,
    waker: Option<Waker>,
    /// Nobody waits any more.
    dropped: bool,
}

/// What a call, or a part of it, ends with.
pub(super) enum Outcome {
    Complete(Completed<'static>),
    Failed(CallError),
    /// By hand: the call waits for answers.
    Input(Round),
    /// The answer to [`Command::Park`].
    Parked(Option<Parked>),
}

/// What happens meanwhile.
pub(super) enum News {
    Progress(Progress),
    Task(Task),
}

impl News {
    fn text(&self) -> usize {
        match self {
            Self::Progress(progress) => progress.message.as_ref().map_or(0, |message| message.len()),
            Self::Task(task) => text_of(task),
        }
    }
}

/// Bytes of text in what is told of a task.
pub(super) fn text_of(task: &Task) -> usize {
    let message = task.status_message.as_ref().map_or(0, |message| message.len());
    task.task_id.len() + task.created_at.len() + task.last_updated_at.len() + message
}

impl State {
    /// The newest says most: it stays, whatever it takes.
    fn tell(&mut self, news: News) {
        self.text += news.text();
        self.news.push_back(news);
        while self.news.len() > MOST_NEWS || (self.news.len() > 1 && self.text > MOST_TEXT) {
            self.text -= self.news.pop_front().map_or(0, |oldest| oldest.text());
        }
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call was made; `false` if nobody waits for it any more.
    pub(super) fn open(&self, call: CallId) -> bool {
        let mut state = self.lock();
        state.call = Some(call);
        !state.dropped
    }

    pub(super) fn call(&self) -> Option<CallId> {
        self.lock().call
    }

    pub(super) fn is_dropped(&self) -> bool {
        self.lock().dropped
    }

    pub(super) fn finish(&self, outcome: Outcome) {
        let mut state = self.lock();
        if !matches!(outcome, Outcome::Input(_)) {
            state.call = None;
        }
        state.outcome = Some(outcome);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(super) fn tell(&self, news: News) {
        let mut state = self.lock();
        if state.dropped {
            return;
        }
        state.tell(news);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// All news first, then the end.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> (VecDeque<News>, Poll<Outcome>) {
        let mut state = self.lock();
        let news = core::mem::take(&mut state.news);
        state.text = 0;
        if let Some(outcome) = state.outcome.take() {
            return (news, Poll::Ready(outcome));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        (news, Poll::Pending)
    }

    /// Nobody waits any more: a call that is still open is cancelled.
    pub(super) fn give_up(&self, shared: &Arc<Shared>) {
        let mut state = self.lock();
        state.dropped = true;
        let call = state.call.take();
        drop(state);
        if let Some(call) = call {
            let _ = shared.submit(Command::Cancel(call));
        }
    }
}
