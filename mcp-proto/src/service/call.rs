//! One call as its handler sees it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::ask::Asks;
use super::session::Shared;
use super::{Changes, Service};
use crate::model::LoggingLevel;
use crate::model::{Implementation, Meta, ProtocolVersion};
use crate::rpc::Error;
use crate::server::{Channel, ClientFeatures, Log, Principal, Progress, RequestKey, Scopes};
use crate::task::TaskKey;

/// The context of one call. Cheap to clone; every clone speaks for the same call.
#[derive(Clone)]
pub struct Ctx {
    pub(crate) call: Arc<Call>,
}

/// What is known of a call while it runs.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) key: RequestKey,
    pub(crate) version: ProtocolVersion,
    pub(crate) features: ClientFeatures,
    /// Who is calling, with what the token of this very request allows.
    pub(crate) principal: Option<Principal>,
    /// The members of `_meta` that are not the machine's own business.
    pub(crate) meta: Meta,
    cancelled: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) asks: Asks,
    /// An error that the handler cannot swallow: the answer of the call.
    pub(crate) failed: Option<Error>,
    /// The handler wants to go on as a task.
    pub(crate) wants_task: bool,
    /// The task that this call has become.
    pub(crate) task: Option<TaskKey>,
    /// What the tool needs of the caller's token: whoever looks at the task needs it, too.
    pub(crate) scopes: Scopes,
    /// The time to live that a 2025-11-25 client wants for its task; `Some(None)` = without end.
    pub(crate) task_ttl: Option<Option<Duration>>,
    /// The job that polls the handler.
    pub(crate) job: Option<Waker>,
    /// Futures of the handler that wait for something of this call.
    wakers: Vec<Waker>,
}

impl Inner {
    pub(crate) fn wait(&mut self, waker: &Waker) {
        if !self.wakers.iter().any(|w| w.will_wake(waker)) {
            self.wakers.push(waker.clone());
        }
    }
}

impl Call {
    pub(crate) fn new(
        shared: Arc<Shared>,
        key: RequestKey,
        version: ProtocolVersion,
        features: ClientFeatures,
        principal: Option<Principal>,
        meta: Meta,
        asks: Asks,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared,
            key,
            version,
            features,
            principal,
            meta,
            cancelled: AtomicBool::new(false),
            inner: Mutex::new(Inner { asks, ..Inner::default() }),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Stops the call: its handler is dropped at its next await.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.wake();
    }

    /// Wakes the job and whatever waits within it.
    pub(crate) fn wake(&self) {
        let (job, wakers) = {
            let mut inner = self.lock();
            (inner.job.take(), core::mem::take(&mut inner.wakers))
        };
        wakers.into_iter().chain(job).for_each(Waker::wake);
    }
}

impl Ctx {
    /// The revision that the client speaks in this call.
    #[must_use]
    pub fn version(&self) -> ProtocolVersion {
        self.call.version
    }

    /// What the client can be asked for in this call.
    #[must_use]
    pub fn features(&self) -> ClientFeatures {
        self.call.features
    }

    /// Who is calling, if it was authenticated.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.call.principal.as_ref()
    }

    /// Who the client says it is.
    #[must_use]
    pub fn client(&self) -> Option<Implementation> {
        if self.call.version.is_modern() {
            let info = self.call.meta.get(crate::model::meta::key::CLIENT_INFO)?;
            return crate::rpc::de::from_str(info.get()).ok();
        }
        self.call.shared.lock().connection.session_client().cloned()
    }

    /// The `_meta` of the request without what the protocol itself uses: `traceparent`, keys of extensions.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.call.meta
    }

    /// The service that this call belongs to.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.call.shared.service
    }

    /// Tells subscribers that something changed.
    #[must_use]
    pub fn changes(&self) -> Changes {
        self.service().changes()
    }

    /// Whether the client has given up. A handler that is waiting is dropped by itself; one that works
    /// without waiting can look here.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// Completes when the client gives up. For work that was started elsewhere.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { call: Arc::clone(&self.call) }
    }

    /// Whether the client asked to hear of progress and still can: worth a look before costly steps are
    /// counted.
    #[must_use]
    pub fn wants_progress(&self) -> bool {
        self.call.shared.lock().connection.wants_progress(self.call.key)
    }

    /// Reports progress: not sent unless the client asked for it and the value has grown. Waits while the
    /// client is slow to read.
    /// [spec: basic/patterns/progress]
    pub async fn progress(&self, progress: Progress<'_>) {
        self.call.shared.writable(self.call.key).await;
        let mut state = self.call.shared.lock();
        let state = &mut *state;
        if state.connection.progress_of(self.call.key, progress, &mut state.out).is_written() {
            state.wake_driver();
        }
    }

    /// Tells a 2025-11-25 client that what it sent its user to by URL is done, under the `elicitation_id`
    /// of the question. Other revisions have no word for it: nothing is sent.
    /// [spec: 2025-11-25 client/elicitation]
    pub fn elicitation_complete(&self, elicitation_id: &str) {
        let mut state = self.call.shared.lock();
        let state = &mut *state;
        if state.connection.elicitation_complete(elicitation_id, &mut state.out).is_written() {
            state.wake_driver();
        }
    }

    /// Ends the HTTP response of this call while the call goes on: the client comes back for the rest when it
    /// was told to wait, so that no connection is held open for a long time. What is sent from now on waits
    /// for it, within [`Limits::event_log_bytes`](crate::limits::Limits::event_log_bytes).
    ///
    /// Only 2025-11-25 over HTTP has this; elsewhere nothing happens. Whether it was done.
    /// [spec: 2025-11-25 basic/transports#sending-messages-to-the-server]
    pub fn close_stream(&self) -> bool {
        let mut state = self.call.shared.lock();
        let state = &mut *state;
        state.streaming.as_mut().is_some_and(|streaming| streaming.let_go(&state.connection, self.call.key))
    }

    /// Logs any value: not sent below the level that the client asked for. Waits while the client is slow
    /// to read.
    /// [spec: server/utilities/logging]
    pub async fn log(&self, level: LoggingLevel, data: impl Serialize) {
        self.log_as(level, None, data).await;
    }

    /// [`log`](Self::log) with the name of a logger.
    pub async fn log_as(&self, level: LoggingLevel, logger: Option<&str>, data: impl Serialize) {
        let Ok(data) = serde_json::value::to_raw_value(&data) else { return };
        self.call.shared.writable(self.call.key).await;
        let mut log = Log::new(level, &data);
        log.logger = logger;
        let mut state = self.call.shared.lock();
        let state = &mut *state;
        if state.connection.log_of(self.call.key, log, &mut state.out).is_written() {
            state.wake_driver();
        }
    }
}

impl core::fmt::Debug for Ctx {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ctx").field("key", &self.call.key).field("version", &self.call.version).finish()
    }
}

/// See [`Ctx::cancelled`].
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    call: Arc<Call>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Registered before the flag is read: a cancellation in between wakes.
        self.call.lock().wait(cx.waker());
        if self.call.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl core::fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Cancelled")
    }
}

/// A future that may move between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;
