//! Calls whose rounds the caller decides on.

use alloc::sync::Arc;
use core::fmt;
use core::future::{Future, poll_fn};
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::call::{Call, decode};
use super::handle::Handle;
use super::shared::Command;
use super::slot::{Outcome, Slot};
use crate::client::request::Request;
use crate::client::{CallError, Parked, Round, TaskUse};
use crate::model::{InputRequests, InputResponses, Task};

/// A [`Call`] by hand. Dropping it before its end cancels it.
#[must_use = "a call that is not awaited is not made"]
pub struct ByHand<'p, R: Request>(Call<'p, R>);

/// What a call by hand comes to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Turn<R: Request> {
    /// The result.
    Done(R::Result),
    /// The server asks before it answers.
    Input(Paused<R>),
    /// The call has become a task; see [`ByHand::expose_task`].
    Task(Task),
}

/// A call that waits for answers. Dropping it cancels the call.
pub struct Paused<R: Request> {
    handle: Arc<Handle>,
    slot: Option<Arc<Slot>>,
    round: Round,
    request: PhantomData<fn() -> R>,
}

impl<'p, R: Request> ByHand<'p, R> {
    pub(super) fn new(call: Call<'p, R>) -> Self {
        Self(call)
    }

    /// A call that becomes a task is [`Turn::Task`], and no longer this client's: ask for it with
    /// [`GetTask`](crate::client::request::GetTask), or listen.
    pub fn expose_task(mut self) -> Self {
        self.0.options_mut().tasks = TaskUse::Expose;
        self
    }
}

impl<R: Request + Send + 'static> Future for ByHand<'_, R> {
    type Output = Result<Turn<R>, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = core::task::ready!(self.0.poll_outcome(cx));
        let slot = self.0.take_slot();
        Poll::Ready(match outcome {
            Outcome::Complete(completed) => match completed.task() {
                Some(task) => Ok(Turn::Task(task)),
                None => decode::<R>(self.0.handle(), &completed).map(Turn::Done),
            },
            Outcome::Input(round) => {
                let handle = Arc::clone(self.0.handle());
                Ok(Turn::Input(Paused { handle, slot, round, request: PhantomData }))
            }
            Outcome::Failed(error) => Err(error),
            Outcome::Parked(_) => Err(CallError::NoSuchCall),
        })
    }
}

impl<R: Request> fmt::Debug for ByHand<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ByHand").field(&self.0).finish()
    }
}

impl<R: Request> Paused<R> {
    /// The questions by key. Without any the server only wants to be called again.
    #[must_use]
    pub const fn requests(&self) -> &InputRequests {
        &self.round.requests
    }

    /// Whether the call has become a task, which goes on meanwhile.
    #[must_use]
    pub const fn is_of_task(&self) -> bool {
        self.round.of_task
    }

    /// Answers all questions: the call goes on.
    pub fn answer(mut self, responses: InputResponses) -> ByHand<'static, R> {
        let handle = Arc::clone(&self.handle);
        let slot = self.slot.take().unwrap_or_default();
        let command = Command::Next { slot: Arc::clone(&slot), responses };
        if handle.shared.submit(command).is_err() {
            slot.finish(Outcome::Failed(CallError::Closed));
        }
        ByHand(Call::go_on(handle, slot))
    }

    /// Takes the call out of this client, to be stored and [resumed](super::Client::resume) by any process.
    ///
    /// # Errors
    ///
    /// It is over.
    pub async fn park(mut self) -> Result<Parked, CallError> {
        let Some(slot) = self.slot.take() else { return Err(CallError::NoSuchCall) };
        let command = Command::Park { slot: Arc::clone(&slot) };
        self.handle.shared.submit(command)?;
        match poll_fn(|cx| slot.poll(cx).1).await {
            Outcome::Parked(Some(parked)) => Ok(parked),
            Outcome::Failed(error) => Err(error),
            _ => Err(CallError::NoSuchCall),
        }
    }
}

impl<R: Request> Drop for Paused<R> {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            slot.give_up(&self.handle.shared);
        }
    }
}

impl<R: Request> fmt::Debug for Paused<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paused").field("round", &self.round).finish_non_exhaustive()
    }
}
