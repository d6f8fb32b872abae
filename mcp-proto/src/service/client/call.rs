//! Calls as futures.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use super::by_hand::ByHand;
use super::handle::Handle;
use super::shared::Command;
use super::slot::{News, Outcome, Slot};
use crate::client::request::Request;
use crate::client::{CallError, CallOptions, Completed, Parked, Rounds, TaskUse};
use crate::model::{InputResponses, LoggingLevel, Meta, Progress, Task};

/// A call that is made when it is awaited. Dropping it before its end cancels it.
///
/// What a server asks in its course is answered by the client's responders, however often: see
/// [`by_hand`](Self::by_hand) for more control. A call that becomes a task is polled to its end.
#[must_use = "a call that is not awaited is not made"]
pub struct Call<'p, R: Request> {
    handle: Arc<Handle>,
    begin: Option<Begin<R>>,
    options: CallOptions,
    is_by_hand: bool,
    on_progress: Option<Box<dyn FnMut(Progress) + Send + 'p>>,
    on_task: Option<Box<dyn FnMut(Task) + Send + 'p>>,
    slot: Option<Arc<Slot>>,
    result: PhantomData<fn() -> R::Result>,
}

/// How it begins.
enum Begin<R> {
    Call(R),
    Resume(Box<Parked>, InputResponses),
    Fail(CallError),
}

/// Nothing in it is pinned.
impl<R: Request> Unpin for Call<'_, R> {}

impl<R: Request> Call<'static, R> {
    pub(super) fn new(handle: Arc<Handle>, request: Result<R, CallError>) -> Self {
        Self::of(handle, request.map_or_else(Begin::Fail, Begin::Call))
    }

    pub(super) fn resumed(handle: Arc<Handle>, parked: Parked, responses: InputResponses) -> Self {
        Self::of(handle, Begin::Resume(Box::new(parked), responses))
    }

    fn of(handle: Arc<Handle>, begin: Begin<R>) -> Self {
        let options = handle.options.clone();
        Self {
            handle,
            begin: Some(begin),
            options,
            is_by_hand: false,
            on_progress: None,
            on_task: None,
            slot: None,
            result: PhantomData,
        }
    }
}

impl<'p, R: Request> Call<'p, R> {
    /// How the call is made, all at once. What is done by hand is for [`by_hand`](Self::by_hand) to say.
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// How long to wait for an answer; `None` = no bound. Time in which the server waits for this side does
    /// not count.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.options.timeout = timeout.into();
        self
    }

    /// How long the call may take with all its rounds; `None` = no bound.
    pub fn max_time(mut self, max_time: impl Into<Option<Duration>>) -> Self {
        self.options.max_time = max_time.into();
        self
    }

    /// Each progress starts the timeout anew.
    pub const fn reset_on_progress(mut self) -> Self {
        self.options.reset_on_progress = true;
        self
    }

    /// Hears of progress, in order and before the result: where the call is awaited. If that is not often
    /// enough, the oldest of more than 256 are left out, or of more than 64 KiB of text.
    pub fn on_progress<'q>(mut self, hear: impl FnMut(Progress) + Send + 'q) -> Call<'q, R>
    where
        'p: 'q,
    {
        self.options.progress = true;
        let mut call: Call<'q, R> = self;
        call.on_progress = Some(Box::new(hear));
        call
    }

    /// Hears that the call has become a task, and where that stands.
    pub fn on_task<'q>(self, hear: impl FnMut(Task) + Send + 'q) -> Call<'q, R>
    where
        'p: 'q,
    {
        let mut call: Call<'q, R> = self;
        call.on_task = Some(Box::new(hear));
        call
    }

    /// Since 2026-07-28: which log messages of this call are wanted.
    pub const fn log_level(mut self, level: LoggingLevel) -> Self {
        self.options.log_level = Some(level);
        self
    }

    /// Members of `_meta`.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.options.meta = Some(meta);
        self
    }

    /// Asks the server also if an answer is known that is still fresh.
    pub const fn no_cache(mut self) -> Self {
        self.options.use_cache = false;
        self
    }

    /// How often the server may ask for input before the call fails. 8.
    pub const fn max_rounds(mut self, max: u32) -> Self {
        self.options.rounds = Rounds::Auto { max };
        self
    }

    /// 2025-11-25: asks for a task that is kept for so long.
    pub fn task_ttl(mut self, ttl: Duration) -> Self {
        self.options.task_ttl_ms = u64::try_from(ttl.as_millis()).ok();
        self
    }

    /// Awaiting it gives the next thing that the caller has to decide: questions of the server are not
    /// answered by the responders.
    pub fn by_hand(mut self) -> ByHand<'p, R> {
        self.options.rounds = Rounds::Manual;
        self.is_by_hand = true;
        ByHand::new(self)
    }

    pub(super) fn options_mut(&mut self) -> &mut CallOptions {
        &mut self.options
    }

    pub(super) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// The call that goes on, to be taken over by another future.
    pub(super) fn take_slot(&mut self) -> Option<Arc<Slot>> {
        self.slot.take()
    }

    /// Goes on with a call that is open.
    pub(super) fn go_on(handle: Arc<Handle>, slot: Arc<Slot>) -> Self {
        let options = handle.options.clone();
        Self {
            handle,
            begin: None,
            options,
            is_by_hand: false,
            on_progress: None,
            on_task: None,
            slot: Some(slot),
            result: PhantomData,
        }
    }
}

impl<R: Request + Send + 'static> Call<'_, R> {
    fn begin(&mut self, begin: Begin<R>) -> Result<(), CallError> {
        let slot = Arc::new(Slot::default());
        let mut options = self.options.clone();
        options.progress |= self.on_progress.is_some();
        let by_hand = self.is_by_hand;
        if !by_hand {
            // Nobody would be there to decide.
            options.tasks = TaskUse::Drive;
            if options.rounds == Rounds::Manual {
                options.rounds = CallOptions::default().rounds;
            }
        }
        let command = match begin {
            Begin::Fail(error) => return Err(error),
            Begin::Call(request) => {
                Command::Call { request: Box::new(request), options, slot: Arc::clone(&slot), by_hand }
            }
            Begin::Resume(parked, responses) => {
                if !R::METHOD.is_empty() && R::METHOD != parked.method() {
                    return Err(CallError::Invalid(alloc::format!(
                        "expected a call of {}, found one of {}",
                        R::METHOD,
                        parked.method()
                    )));
                }
                Command::Resume { parked, responses, options, slot: Arc::clone(&slot) }
            }
        };
        self.handle.shared.submit(command)?;
        self.slot = Some(slot);
        Ok(())
    }

    /// What the call, or this part of it, comes to.
    pub(super) fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        if let Some(begin) = self.begin.take()
            && let Err(error) = self.begin(begin)
        {
            return Poll::Ready(Outcome::Failed(error));
        }
        let Some(slot) = &self.slot else { return Poll::Pending };
        let (news, outcome) = slot.poll(cx);
        for news in news {
            match (news, &mut self.on_progress, &mut self.on_task) {
                (News::Progress(progress), Some(hear), _) => hear(progress),
                (News::Task(task), _, Some(hear)) => hear(task),
                _ => {}
            }
        }
        outcome
    }
}

pub(super) fn decode<R: Request>(handle: &Handle, completed: &Completed<'_>) -> Result<R::Result, CallError> {
    let check = handle.outputs.check(completed)?;
    let mut result =
        completed.decode::<R>().map_err(|fault| CallError::malformed(fault.within("/result")))?;
    R::note(&mut result, check);
    Ok(result)
}

impl<R: Request + Send + 'static> Future for Call<'_, R> {
    type Output = Result<R::Result, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = core::task::ready!(self.poll_outcome(cx));
        self.slot = None;
        Poll::Ready(match outcome {
            Outcome::Complete(completed) => decode::<R>(&self.handle, &completed),
            Outcome::Failed(error) => Err(error),
            Outcome::Input(_) | Outcome::Parked(_) => Err(CallError::NoSuchCall),
        })
    }
}

impl<R: Request> Drop for Call<'_, R> {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            slot.give_up(&self.handle.shared);
        }
    }
}

impl<R: Request> fmt::Debug for Call<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &R::METHOD).finish_non_exhaustive()
    }
}
