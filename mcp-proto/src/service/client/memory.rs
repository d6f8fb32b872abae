//! A client and a server within one future, without a runtime: for tests.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::builder::ClientBuilder;
use super::handle::Client;
use super::link::Link;
use super::respond::Job;
use crate::client::CallError;
use crate::service::{Job as ServerJob, Service, Session};
use crate::time::{Instant, UnixTime};

/// 28 July 2026, when it begins.
const EPOCH: Duration = Duration::from_millis(1_785_196_800_000);

/// Turns within one poll. Whoever polls may have to be polled again before anything else can go on.
const TURNS: usize = 256;

impl ClientBuilder {
    /// Connects to a server within this future and runs `test` with the client: no process, no port, but every
    /// byte as on a pipe. Any executor will do, also one that blocks: `#[tokio::test]`, `smol::block_on`.
    ///
    /// ```
    /// use mcp_proto::service::client::Client;
    /// use mcp_proto::service::{Server, Structured};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Add { a: f64, b: f64 }
    /// # #[derive(serde::Serialize, schemars::JsonSchema)]
    /// # struct Sum { sum: f64 }
    ///
    /// # async fn test() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::new("demo", "1.0.0")
    ///     .tool("add", |_, p: Add| async move { Ok(Structured(Sum { sum: p.a + p.b })) })
    ///     .build()?;
    /// let test = Client::new("test", "1.0.0").in_memory(&server, async |client| {
    ///     client.call_tool("add", serde_json::json!({ "a": 1, "b": 2 })).await
    /// });
    /// assert_eq!(test.await??.into_structured::<serde_json::Value>()?["sum"], 3.0);
    /// # Ok(())
    /// # }
    /// # let mut test = std::pin::pin!(test());
    /// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let std::task::Poll::Ready(done) = test.as_mut().poll(&mut cx) else { panic!("it waits") };
    /// # done.unwrap();
    /// ```
    ///
    /// Time stands still while anything can be done, and then jumps to the next deadline: what takes minutes
    /// takes none, and comes out the same every time. Work that goes on elsewhere, in other tasks or threads,
    /// is waited for only while no deadline is set, and every call has two unless it is made with
    /// `timeout(None)` and `max_time(None)`. Test such handlers with the `memory` of an adapter, where time is
    /// real.
    ///
    /// The future may move between threads if that of `test` may.
    ///
    /// # Errors
    ///
    /// Client and server have no revision in common. Whatever happens later is the test's.
    pub fn in_memory<T, F>(
        self,
        service: &Service,
        test: F,
    ) -> impl Future<Output = Result<T, CallError>> + use<T, F>
    where
        F: AsyncFnOnce(Client) -> T,
    {
        let (connecting, link) = self.link();
        let mut pair = Pair::new(link, service);
        async move {
            let mut test = pin!(async move { Ok(test(connecting.await?).await) });
            poll_fn(|cx| pair.poll(test.as_mut(), cx)).await
        }
    }
}

/// Both ends, and what they have at work.
struct Pair {
    link: Link,
    session: Session,
    asked: Vec<Pin<Box<Job>>>,
    called: Vec<Pin<Box<ServerJob>>>,
    now: Duration,
    bell: Arc<Bell>,
}

/// Says within one poll whether anything was woken, for time stands still until then, and between two polls that
/// it is time for the next.
#[derive(Default)]
struct Bell(Mutex<Rung>);

#[derive(Default)]
struct Rung {
    rung: bool,
    /// Whoever polls the whole, while it sleeps.
    sleeper: Option<Waker>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.lock();
        state.rung = true;
        let sleeper = state.sleeper.take();
        drop(state);
        sleeper.into_iter().for_each(Waker::wake);
    }
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, Rung> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> bool {
        core::mem::take(&mut self.lock().rung)
    }

    /// Whether `waker` is woken from now on. It is not if the bell has rung meanwhile.
    fn sleep(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        if !state.rung {
            state.sleeper = Some(waker.clone());
        }
        !state.rung
    }
}

impl Pair {
    fn new(link: Link, service: &Service) -> Self {
        let (session, bell) = (Session::new(service), Arc::default());
        let mut pair =
            Self { link, session, asked: Vec::new(), called: Vec::new(), now: Duration::ZERO, bell };
        pair.bell.wake_by_ref();
        pair.link.start(pair.time().0);
        pair
    }

    fn time(&self) -> (Instant, UnixTime) {
        let unix = u64::try_from((EPOCH + self.now).as_millis()).unwrap_or(u64::MAX);
        (Instant::from_origin(self.now), UnixTime::from_millis(unix))
    }

    fn poll<T>(&mut self, mut test: Pin<&mut impl Future<Output = T>>, outer: &Context<'_>) -> Poll<T> {
        let waker = Waker::from(Arc::clone(&self.bell));
        let mut cx = Context::from_waker(&waker);
        let mut moved = true;
        for _ in 0..TURNS {
            if self.bell.take() {
                if let Poll::Ready(value) = test.as_mut().poll(&mut cx) {
                    return Poll::Ready(value);
                }
            } else if !moved {
                match self.next_deadline() {
                    Some(at) => self.now = self.now.max(at.since_origin()),
                    None if self.bell.sleep(outer.waker()) => return Poll::Pending,
                    None => continue,
                }
            }
            moved = self.turn(&mut cx);
        }
        outer.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether anything moved.
    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let (now, unix) = self.time();
        self.session.handle_timeout(now, unix);
        self.link.process(now);
        let output = self.link.output();
        let there = fill(self.session.spare(output.len()), output);
        self.session.commit(there);
        self.link.advance(there);
        self.session.process(now, unix);
        self.called.extend(core::iter::from_fn(|| self.session.next_job()).map(Box::pin));
        self.called.retain_mut(|job| job.as_mut().poll(cx).is_pending());
        let output = self.session.output();
        let back = fill(self.link.spare(output.len()), output);
        self.link.commit(back);
        self.session.advance(back);
        self.link.process(now);
        self.asked.extend(core::iter::from_fn(|| self.link.next_job()).map(Box::pin));
        self.asked.retain_mut(|job| job.as_mut().poll(cx).is_pending());
        let ready = self.link.poll_ready(cx).is_ready() && !self.link.is_done();
        ready || self.session.poll_ready(cx).is_ready() || there + back > 0
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.link.next_deadline().into_iter().chain(self.session.next_deadline()).min()
    }
}

/// Copies what fits.
fn fill(room: &mut [u8], bytes: &[u8]) -> usize {
    let fits = bytes.len().min(room.len());
    room[..fits].copy_from_slice(&bytes[..fits]);
    fits
}
