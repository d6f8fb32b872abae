//! Answering what a server asks: responders as futures.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use core::any::Any;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use super::shared::{Command, Shared};
use crate::client::http::{Token, Unauthorized};
use crate::client::{AskId, CallId, ServerFacts};
use crate::model::{
    CreateMessage, CreateMessageResult, ElicitForm, ElicitResult, ElicitUrl, InputRequest, InputResponse, Str,
};
use crate::rpc::{Error, code};
use crate::service::BoxFuture;

/// The context of one question. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Asking {
    pub(super) server: Option<Arc<ServerFacts>>,
    pub(super) key: Option<Str>,
    pub(super) is_of_task: bool,
}

impl Asking {
    /// Who asks: show it to the user, so that they know whom they answer.
    #[must_use]
    pub fn server(&self) -> Option<&ServerFacts> {
        self.server.as_deref()
    }

    /// The name of the question within its call. Servers until 2025-11-25 give none.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Whether a task asks, which goes on meanwhile. Since 2026-07-28.
    #[must_use]
    pub const fn is_of_task(&self) -> bool {
        self.is_of_task
    }
}

/// Why a question of a server has no answer.
///
/// Any error converts into it with `?`. A legacy server is answered with a JSON-RPC error; in 2026-07-28 there
/// is no way to say so, and the call that asked is given up with
/// [`CallError::Unanswered`](crate::client::CallError::Unanswered). The user's "no" to a form is no refusal
/// but an answer: [`ElicitResult::decline`].
#[derive(Debug, Clone)]
pub struct Refusal {
    /// What the caller reads.
    pub(super) text: Str,
    /// What the server reads.
    pub(super) error: Error,
}

impl Refusal {
    /// In words that the server may read.
    #[must_use]
    pub fn new(reason: impl Into<Str>) -> Self {
        Self::protocol(Error::new(code::INTERNAL_ERROR, reason.into()))
    }

    /// The user does not want a model to be asked. [spec: client/sampling]
    #[must_use]
    pub fn by_user() -> Self {
        Self::protocol(Error::new(code::SAMPLING_REFUSED, "User rejected sampling request"))
    }

    /// This error.
    #[must_use]
    pub fn protocol(error: Error) -> Self {
        Self { text: Str::Owned(error.message.to_string()), error }
    }

    /// What stays on this side.
    pub(super) fn private(text: impl Into<Str>) -> Self {
        Self { text: text.into(), error: Error::internal() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: core::error::Error + 'static> From<E> for Refusal {
    fn from(error: E) -> Self {
        match (&error as &dyn Any).downcast_ref::<Error>() {
            Some(error) => Self::protocol(error.clone()),
            // What went wrong here is nothing to a server.
            None => Self::private(error.to_string()),
        }
    }
}

/// A responder of any kind.
pub(super) type Responder<Q, A> = Arc<dyn Fn(Q, Asking) -> BoxFuture<Result<A, Refusal>> + Send + Sync>;

pub(super) fn responder<Q, A, F, Fut>(respond: F) -> Responder<Q, A>
where
    F: Fn(Q, Asking) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<A, Refusal>> + Send + 'static,
{
    Arc::new(move |question, asking| Box::pin(respond(question, asking)))
}

/// Those that were registered.
#[derive(Clone, Default)]
pub(super) struct Responders {
    pub(super) elicit: Option<Responder<ElicitForm, ElicitResult>>,
    pub(super) elicit_url: Option<Responder<ElicitUrl, ElicitResult>>,
    pub(super) sample: Option<Responder<CreateMessage, CreateMessageResult>>,
    #[allow(clippy::type_complexity)] // used once
    pub(super) token: Option<Arc<dyn Fn(Unauthorized) -> BoxFuture<Result<Token, Refusal>> + Send + Sync>>,
}

/// What a job comes to.
pub(super) type Answer = Result<Given, Refusal>;

#[allow(clippy::large_enum_variant)] // made in order to be matched: a box would only cost
pub(super) enum Given {
    Response(InputResponse),
    Token(Token),
}

impl<T: Into<InputResponse>> From<T> for Given {
    fn from(response: T) -> Self {
        Self::Response(response.into())
    }
}

impl Responders {
    /// Puts a question. What is not registered was not declared either, and is not asked.
    pub(super) fn respond(&self, request: InputRequest, asking: Asking) -> BoxFuture<Answer> {
        let begun = AssertUnwindSafe(|| self.begin(request, asking));
        catch_unwind(begun).unwrap_or_else(|_| refused(panicked()))
    }

    fn begin(&self, request: InputRequest, asking: Asking) -> BoxFuture<Answer> {
        match request {
            InputRequest::ElicitForm(form) => match &self.elicit {
                Some(respond) => {
                    let schema = form.requested_schema.clone();
                    let answer = respond(*form, asking);
                    Box::pin(async move {
                        let answer = answer.await?;
                        answer.check(&schema).map_err(|why| {
                            Refusal::private(alloc::format!("the answer does not fit the form: {why}"))
                        })?;
                        Ok(answer.into())
                    })
                }
                None => refused(undeclared()),
            },
            InputRequest::ElicitUrl(url) => into(self.elicit_url.as_ref(), *url, asking),
            InputRequest::CreateMessage(message) => into(self.sample.as_ref(), *message, asking),
            _ => refused(undeclared()),
        }
    }
}

impl Responders {
    /// Asks for a token.
    pub(super) fn token(&self, why: Unauthorized) -> BoxFuture<Answer> {
        let Some(get) = &self.token else { return refused(undeclared()) };
        match catch_unwind(AssertUnwindSafe(|| get(why))) {
            Ok(token) => Box::pin(async move { Ok(Given::Token(token.await?)) }),
            Err(_) => refused(panicked()),
        }
    }
}

fn into<Q, A>(respond: Option<&Responder<Q, A>>, question: Q, asking: Asking) -> BoxFuture<Answer>
where
    A: Into<Given> + Send + 'static,
{
    match respond {
        Some(respond) => {
            let answer = respond(question, asking);
            Box::pin(async move { Ok(answer.await?.into()) })
        }
        None => refused(undeclared()),
    }
}

fn refused(refusal: Refusal) -> BoxFuture<Answer> {
    Box::pin(core::future::ready(Err(refusal)))
}

fn undeclared() -> Refusal {
    Refusal::private("nothing is registered that could answer")
}

fn panicked() -> Refusal {
    Refusal::private("what should have answered panicked")
}

/// Where an answer goes.
#[derive(Debug, Clone)]
pub(super) enum Address {
    Round { call: CallId, key: Str },
    Ask(AskId),
    Authorization,
}

/// Stops a job from outside.
#[derive(Default)]
pub(super) struct Control {
    cancelled: AtomicBool,
    job: Mutex<Option<Waker>>,
}

impl Control {
    /// Nobody wants the answer any more: the responder is dropped.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).take();
        job.into_iter().for_each(Waker::wake);
    }

    fn poll_cancelled(&self, cx: &Context<'_>) -> bool {
        // Registered before the flag is read: a cancellation in between wakes.
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        self.cancelled.load(Ordering::Acquire)
    }
}

/// A responder at work. Spawn it; it ends by itself, also when its answer is no longer wanted.
#[must_use = "futures do nothing unless polled"]
pub struct Job {
    future: Option<BoxFuture<Answer>>,
    to: Address,
    control: Arc<Control>,
    shared: Arc<Shared>,
}

impl Job {
    /// Polls the responder once, in place. The job comes back if that was not enough.
    pub(super) fn start(
        future: BoxFuture<Answer>,
        to: Address,
        control: Arc<Control>,
        shared: Arc<Shared>,
    ) -> Result<Answer, Self> {
        let mut job = Self { future: Some(future), to, control, shared };
        match job.poll_responder(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Ok(answer),
            Poll::Pending => Err(job),
        }
    }

    fn poll_responder(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(future) = &mut self.future else { return Poll::Pending };
        let answer = match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(answer)) => answer,
            Err(_) => Err(panicked()),
        };
        self.discard();
        Poll::Ready(answer)
    }

    /// Dropping runs code of the responder's.
    fn discard(&mut self) -> bool {
        let future = self.future.take();
        let was_at_work = future.is_some();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
        was_at_work
    }

    fn answer(&self, answer: Answer) {
        // If the link is gone, so is whoever asked.
        let _ = self.shared.submit(Command::Answered { to: self.to.clone(), answer });
    }
}

impl Future for Job {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.control.poll_cancelled(cx) {
            self.discard();
        }
        if self.future.is_none() {
            return Poll::Ready(());
        }
        let answer = core::task::ready!(self.poll_responder(cx));
        self.answer(answer);
        Poll::Ready(())
    }
}

/// A job that is dropped before its end, as when the runtime shuts down, leaves no question open.
impl Drop for Job {
    fn drop(&mut self) {
        if self.discard() && !self.control.cancelled.load(Ordering::Acquire) {
            self.answer(Err(Refusal::private("what should have answered was dropped")));
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("to", &self.to).finish_non_exhaustive()
    }
}
