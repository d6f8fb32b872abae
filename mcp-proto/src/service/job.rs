//! A call in progress: the handler's future and what becomes of what it does.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::call::{BoxFuture, Call};
use super::error::Reply;
use crate::model::method::{CallTool, GetPrompt, Method, ReadResource, ServerMethod};
use crate::model::{InputRequired, Str};
use crate::rpc::{Error, code};
use crate::server::{AskError, Channel, Connection, Pending};
use crate::state::digest_arguments;

/// A call that runs. Spawn it; it ends by itself when the call is answered or cancelled.
#[must_use = "futures do nothing unless polled"]
pub struct Job {
    call: Arc<Call>,
    /// `None` = a custom method, which `target` names.
    method: Option<ServerMethod>,
    /// The tool, prompt, URI or custom method.
    target: Box<str>,
    /// The JSON text of the arguments. Kept only if the handler did not finish at once.
    arguments: Option<Box<str>>,
    future: Option<BoxFuture<Reply>>,
}

impl Job {
    /// Polls the handler once, in place. The job comes back if that was not enough.
    pub(crate) fn start(
        call: Arc<Call>,
        method: Option<ServerMethod>,
        target: &str,
        arguments: Option<&str>,
        as_task: bool,
        future: BoxFuture<Reply>,
    ) -> Option<Self> {
        #[cfg(feature = "tracing")]
        let future = super::trace::within(&call, method, target, future);
        let mut job = Self { call, method, target: Box::from(""), arguments: None, future: Some(future) };
        if as_task {
            job.call.lock().wants_task = true;
        } else if job.poll_handler(&mut Context::from_waker(Waker::noop())).is_ready() {
            return None;
        }
        job.target = target.into();
        job.arguments = arguments.map(Box::from);
        // What the handler asked in its first poll is handled at once as well.
        job.call.shared.lock().calls.start(&job.call);
        if job.settle().is_ready() { None } else { Some(job) }
    }

    /// Polls the handler; an answer is written. Ready when the call is over.
    fn poll_handler(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(future) = &mut self.future else { return Poll::Ready(()) };
        // A panic in a handler is the handler's, not the server's. Nothing of its text leaves.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(reply)) => self.answer(reply),
            Err(_) => self.answer(Reply::Error(Error::internal())),
        }
        Poll::Ready(())
    }

    /// Looks at what the handler left behind when it parked. Ready when the call is over.
    fn settle(&mut self) -> Poll<()> {
        let mut inner = self.call.lock();
        if let Some(error) = inner.failed.take() {
            drop(inner);
            self.answer(Reply::Error(error));
            return Poll::Ready(());
        }
        if core::mem::take(&mut inner.wants_task) {
            drop(inner);
            if let Err(error) = super::tasks::create(&self.call) {
                self.answer(Reply::Error(error));
                return Poll::Ready(());
            }
            // The handler goes on now that the client has its task.
            self.call.wake();
            return Poll::Pending;
        }
        if !inner.asks.is_parked() {
            return Poll::Pending;
        }
        let most = self.call.shared.service.config().limits.max_rounds;
        if inner.asks.rounds() >= most {
            drop(inner);
            let error = Error::new(code::INTERNAL_ERROR, "The call asks too many questions");
            self.answer(Reply::Error(error));
            return Poll::Ready(());
        }
        if inner.task.is_some() {
            inner.asks.count_round();
            let unsent = inner.asks.take_unsent();
            drop(inner);
            super::tasks::ask(&self.call, unsent);
            return Poll::Pending;
        }
        if self.call.version.is_modern() {
            let Some(method) = self.method.filter(|method| may_require_input(*method)) else {
                // The specification has no questions here, so the handler learns that it cannot ask.
                let unsent = inner.asks.take_unsent();
                drop(inner);
                for (key, _) in unsent {
                    let error = Error::new(code::INTERNAL_ERROR, "this method cannot ask the client");
                    self.call.deliver(&key, Err(error));
                }
                return Poll::Pending;
            };
            drop(inner);
            self.park(method);
            return Poll::Ready(());
        }
        inner.asks.count_round();
        let unsent = inner.asks.take_unsent();
        drop(inner);
        for (key, request) in unsent {
            if let Err(error) = self.ask_client(&key, &request) {
                self.call.deliver(&key, Err(error));
            }
        }
        Poll::Pending
    }

    /// 2026-07-28: the handler is dropped, the questions are answered; the next round replays it.
    fn park(&mut self, method: ServerMethod) {
        self.future = None;
        let call = &self.call;
        let (input_requests, journal, _) = call.lock().asks.park();
        let service = &call.shared.service;
        let arguments = digest_arguments(self.arguments.as_deref());
        let sealed = service.seal(call, method, &self.target, arguments, &journal);
        let state = match sealed {
            Ok(state) => state,
            Err(error) => return self.answer(Reply::Error(error)),
        };
        let input = InputRequired::new(input_requests).request_state(Str::Owned(state));
        let mut state = call.shared.lock();
        let state = &mut *state;
        state.calls.end(call.key);
        let (connection, out) = (&mut state.connection, &mut state.out);
        match method {
            ServerMethod::GetPrompt => require::<GetPrompt>(connection, call, &input, out),
            ServerMethod::ReadResource => require::<ReadResource>(connection, call, &input, out),
            _ => require::<CallTool>(connection, call, &input, out),
        }
        state.wake_driver();
    }

    /// A legacy session: the question goes out as a request of ours.
    fn ask_client(&self, key: &Str, request: &crate::model::InputRequest) -> Result<(), Error> {
        let mut state = self.call.shared.lock();
        let state = &mut *state;
        if !state.calls.can_ask() {
            return Err(super::ask::connection_closed());
        }
        let request = super::ask::with_elicitation_id(request, self.call.version, &self.call.shared.service);
        match state.connection.ask(self.call.key, &request, state.now, &mut state.out) {
            Ok(ask) => {
                state.calls.asked(ask, &self.call, key.clone());
                state.wake_driver();
                Ok(())
            }
            Err(why @ AskError::TooMany) => Err(Error::new(code::INTERNAL_ERROR, alloc::format!("{why}"))),
            Err(_) => Err(super::ask::connection_closed()),
        }
    }

    fn answer(&mut self, reply: Reply) {
        self.future = None;
        if self.call.lock().task.is_some() {
            super::tasks::finish(&self.call, reply);
            self.call.shared.lock().calls.end(self.call.key);
            return;
        }
        let mut state = self.call.shared.lock();
        let state = &mut *state;
        state.calls.end(self.call.key);
        reply.write(&mut state.connection, self.call.key, self.call.version, &mut state.out);
        state.wake_driver();
    }
}

/// The methods whose answer may be `input_required`. [spec: basic/patterns/mrtr]
const fn may_require_input(method: ServerMethod) -> bool {
    matches!(method, ServerMethod::CallTool | ServerMethod::GetPrompt | ServerMethod::ReadResource)
}

fn require<M: Method + crate::model::method::MayRequireInput>(
    connection: &mut Connection,
    call: &Call,
    input: &InputRequired,
    out: &mut alloc::vec::Vec<u8>,
) {
    // Capabilities were checked when the question was asked; the request may be over, which is fine too.
    if let Err(missing) = connection.require_input(Pending::<M>::new(call.key), input, out) {
        let _ = connection.refuse_missing(missing, out);
    }
}

impl Future for Job {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.future.is_none() {
            return Poll::Ready(());
        }
        // Registered before the flag is read: a cancellation in between wakes.
        self.call.lock().job = Some(cx.waker().clone());
        if self.call.is_cancelled() {
            // Dropping runs code of the handler's.
            let future = self.future.take();
            let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
            let call = Arc::clone(&self.call);
            // One that became a task while its stream went away; any other has ended already.
            super::tasks::finish(&call, Reply::Error(Error::internal()));
            let mut state = call.shared.lock();
            state.calls.end(call.key);
            state.wake_driver();
            return Poll::Ready(());
        }
        if self.poll_handler(cx).is_ready() || self.settle().is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

/// A job that is dropped before its end, as when the runtime shuts down, leaves no request open.
impl Drop for Job {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
            super::tasks::finish(&self.call, Reply::Error(Error::internal()));
            let mut state = self.call.shared.lock();
            let state = &mut *state;
            state.calls.end(self.call.key);
            if !state.aborted && !self.call.is_cancelled() {
                let _ = state.connection.abandon(self.call.key, &mut state.out);
            }
            state.wake_driver();
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("target", &self.target).finish_non_exhaustive()
    }
}
