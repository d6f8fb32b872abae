//! Subscriptions as streams of what changes.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::handle::Handle;
use super::shared::{Command, Shared};
use super::slot::{MOST_TEXT, text_of};
use crate::client::{CallError, CallId, CallOptions, Change};
use crate::model::{SubscriptionFilter, Task};

/// Most that waits to be heard; more of it, or too much text in it, becomes [`Heard::Gap`].
const MOST_HEARD: usize = 256;

/// What a [`Subscription`] tells.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heard {
    /// Something changed.
    Changed(Change),
    /// Where a task stands.
    Task(Task),
    /// Something may have been missed: the connection broke and was made again, or too much waits to be
    /// heard. Look at everything anew.
    Gap,
    /// Nothing is told from now on until the next [`Gap`](Self::Gap): the stream is gone on which a legacy
    /// server over HTTP does so, and was not to be had again. It is tried again when the server takes a call.
    Silence,
}

/// Opens a subscription when it is awaited. See [`Client::listen`](super::Client::listen).
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Listen {
    handle: Arc<Handle>,
    filter: Option<SubscriptionFilter>,
    options: CallOptions,
    subscription: Option<Subscription>,
}

/// An open subscription. It outlives a restart of the connection; dropping it ends it.
#[derive(Debug)]
pub struct Subscription {
    handle: Arc<Handle>,
    feed: Arc<Feed>,
}

/// Where the driver and a subscription meet.
#[derive(Debug, Default)]
pub(super) struct Feed(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    call: Option<CallId>,
    granted: Option<SubscriptionFilter>,
    heard: VecDeque<Heard>,
    /// Bytes of text in what was heard.
    text: usize,
    end: Option<Result<(), CallError>>,
    waker: Option<Waker>,
    dropped: bool,
}

impl Heard {
    fn text(&self) -> usize {
        match self {
            Self::Changed(Change::Resource(uri)) => uri.len(),
            Self::Task(task) => text_of(task),
            Self::Changed(_) | Self::Gap | Self::Silence => 0,
        }
    }
}

impl Feed {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// `false` if nobody listens any more.
    pub(super) fn open(&self, call: CallId) -> bool {
        let mut state = self.lock();
        state.call = Some(call);
        !state.dropped
    }

    pub(super) fn is_dropped(&self) -> bool {
        self.lock().dropped
    }

    pub(super) fn granted(&self, granted: SubscriptionFilter) {
        self.change(|state| {
            if state.granted.replace(granted).is_some() {
                state.hear(Heard::Gap);
            }
        });
    }

    pub(super) fn hear(&self, heard: Heard) {
        self.change(|state| state.hear(heard));
    }

    pub(super) fn end(&self, end: Result<(), CallError>) {
        self.change(|state| {
            state.call = None;
            state.end.get_or_insert(end);
        });
    }

    fn give_up(&self, shared: &Arc<Shared>) {
        let mut state = self.lock();
        state.dropped = true;
        let call = state.call.take();
        drop(state);
        if let Some(call) = call {
            let _ = shared.submit(Command::Cancel(call));
        }
    }
}

impl State {
    fn hear(&mut self, heard: Heard) {
        let is_of_stream = |heard: &Heard| matches!(heard, Heard::Gap | Heard::Silence);
        if is_of_stream(&heard) {
            // Of these the last says how it stands.
            self.heard.retain(|earlier| *earlier != heard);
        } else if self.heard.contains(&heard) {
            return;
        }
        self.text += heard.text();
        if self.heard.len() >= MOST_HEARD || self.text > MOST_TEXT {
            let last = self.heard.iter().rev().find(|heard| is_of_stream(heard)).cloned();
            self.heard.clear();
            self.heard.push_back(Heard::Gap);
            self.heard
                .extend([last, Some(heard)].into_iter().flatten().filter(|heard| *heard == Heard::Silence));
            self.text = 0;
            return;
        }
        self.heard.push_back(heard);
    }

    fn next(&mut self) -> Option<Heard> {
        let heard = self.heard.pop_front()?;
        self.text -= heard.text();
        Some(heard)
    }

    fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}

impl Listen {
    pub(super) fn new(handle: Arc<Handle>, filter: SubscriptionFilter) -> Self {
        let options = handle.options.clone();
        Self { handle, filter: Some(filter), options, subscription: None }
    }

    /// How long the server may take to acknowledge it.
    pub fn timeout(mut self, timeout: impl Into<Option<core::time::Duration>>) -> Self {
        self.options.timeout = timeout.into();
        self
    }
}

impl Future for Listen {
    type Output = Result<Subscription, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(filter) = this.filter.take() {
            let feed = Arc::new(Feed::default());
            let options = this.options.clone();
            let command = Command::Listen { filter, options, feed: Arc::clone(&feed) };
            if this.handle.shared.submit(command).is_err() {
                return Poll::Ready(Err(CallError::Closed));
            }
            this.subscription = Some(Subscription { handle: Arc::clone(&this.handle), feed });
        }
        let Some(subscription) = &this.subscription else { return Poll::Pending };
        let mut state = subscription.feed.lock();
        if let Some(Err(error)) = &state.end {
            return Poll::Ready(Err(error.clone()));
        }
        if state.granted.is_none() && state.end.is_none() {
            state.wait(cx);
            return Poll::Pending;
        }
        drop(state);
        this.subscription.take().map_or(Poll::Pending, |subscription| Poll::Ready(Ok(subscription)))
    }
}

impl Subscription {
    /// What of it the server grants; the rest will never be heard.
    #[must_use]
    pub fn granted(&self) -> SubscriptionFilter {
        self.feed.lock().granted.clone().unwrap_or_default()
    }

    /// The next thing; `None` when it has ended. Changes of the same kind that were not heard yet are one.
    ///
    /// # Errors
    ///
    /// It broke off, once.
    pub async fn next(&mut self) -> Option<Result<Heard, CallError>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`next`](Self::next) for those who poll: what a `Stream` needs.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Heard, CallError>>> {
        let mut state = self.feed.lock();
        if let Some(heard) = state.next() {
            return Poll::Ready(Some(Ok(heard)));
        }
        match &mut state.end {
            Some(end) => Poll::Ready(core::mem::replace(end, Ok(())).err().map(Err)),
            None => {
                state.wait(cx);
                Poll::Pending
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.feed.give_up(&self.handle.shared);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Of a gap and a silence the last one counts, also where too much waits.
    #[test]
    fn the_last_word_on_the_stream_stays_the_last() {
        let mut state = State::default();
        let all = |state: &mut State| core::iter::from_fn(|| state.next()).collect::<Vec<_>>();
        for heard in [Heard::Silence, Heard::Gap, Heard::Silence, Heard::Silence] {
            state.hear(heard);
        }
        assert_eq!(all(&mut state), [Heard::Gap, Heard::Silence]);
        for heard in [Heard::Gap, Heard::Silence, Heard::Gap] {
            state.hear(heard);
        }
        assert_eq!(all(&mut state), [Heard::Silence, Heard::Gap]);
        for last in [Heard::Gap, Heard::Silence] {
            state.hear(last.clone());
            for at in 0..MOST_HEARD {
                state.hear(Heard::Changed(Change::Resource(alloc::format!("a:{at}").into())));
            }
            assert_eq!(all(&mut state).last(), Some(&last));
            assert_eq!(state.text, 0);
        }
    }
}
