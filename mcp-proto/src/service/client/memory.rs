//! A client and a server within one thread, without a runtime: for tests.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::task::Wake;
use std::thread::Thread;

use super::builder::ClientBuilder;
use super::handle::Client;
use super::link::Link;
use super::respond::Job;
use crate::client::CallError;
use crate::service::{Job as ServerJob, Service, Session};
use crate::time::{Instant, UnixTime};

/// 28 July 2026, when it begins.
const EPOCH: Duration = Duration::from_millis(1_785_196_800_000);

impl ClientBuilder {
    /// Connects to a server within this thread and runs `test` with the client: no runtime, no process, no
    /// port, but every byte as on a pipe.
    ///
    /// ```
    /// use mcp_proto::service::client::Client;
    /// use mcp_proto::service::{Server, Structured};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Add { a: f64, b: f64 }
    /// # #[derive(serde::Serialize, schemars::JsonSchema)]
    /// # struct Sum { sum: f64 }
    ///
    /// let server = Server::new("demo", "1.0.0")
    ///     .tool("add", |_, p: Add| async move { Ok(Structured(Sum { sum: p.a + p.b })) })
    ///     .build()?;
    /// let sum = Client::new("test", "1.0.0").in_memory(&server, async |client| {
    ///     client.call_tool("add", serde_json::json!({ "a": 1, "b": 2 })).await
    /// })??;
    /// assert_eq!(sum.into_structured::<serde_json::Value>()?["sum"], 3.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Time stands still while anything can be done, and then jumps to the next deadline: what takes minutes
    /// takes none, and comes out the same every time. Work that goes on elsewhere, in other threads, is not
    /// waited for while a deadline is set: test that on a runtime.
    ///
    /// # Errors
    ///
    /// Client and server have no revision in common. Whatever happens later is the test's.
    pub fn in_memory<T>(
        self,
        service: &Service,
        test: impl AsyncFnOnce(Client) -> T,
    ) -> Result<T, CallError> {
        let (connecting, link) = self.link();
        let mut pair = Pair::new(link, service);
        let test = pin!(async move { Ok(test(connecting.await?).await) });
        pair.run(test)
    }
}

/// Both ends, and what they have at work.
struct Pair {
    link: Link,
    session: Session,
    asked: Vec<Pin<alloc::boxed::Box<Job>>>,
    called: Vec<Pin<alloc::boxed::Box<ServerJob>>>,
    now: Duration,
}

struct Bell {
    rung: AtomicBool,
    thread: Thread,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Pair {
    fn new(link: Link, service: &Service) -> Self {
        let session = Session::new(service);
        let mut pair = Self { link, session, asked: Vec::new(), called: Vec::new(), now: Duration::ZERO };
        pair.link.start(pair.time().0);
        pair
    }

    fn time(&self) -> (Instant, UnixTime) {
        let unix = u64::try_from((EPOCH + self.now).as_millis()).unwrap_or(u64::MAX);
        (Instant::from_origin(self.now), UnixTime::from_millis(unix))
    }

    fn run<T>(&mut self, mut test: Pin<&mut impl Future<Output = T>>) -> T {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), thread: std::thread::current() });
        let waker = Waker::from(Arc::clone(&bell));
        let mut cx = Context::from_waker(&waker);
        loop {
            while bell.rung.swap(false, Ordering::AcqRel) {
                if let Poll::Ready(value) = test.as_mut().poll(&mut cx) {
                    return value;
                }
                while self.turn(&mut cx) {}
            }
            match self.next_deadline() {
                Some(at) => {
                    self.now = self.now.max(at.since_origin());
                    bell.rung.store(true, Ordering::Release);
                }
                None => std::thread::park(),
            }
        }
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
        self.called.extend(core::iter::from_fn(|| self.session.next_job()).map(alloc::boxed::Box::pin));
        self.called.retain_mut(|job| job.as_mut().poll(cx).is_pending());
        let output = self.session.output();
        let back = fill(self.link.spare(output.len()), output);
        self.link.commit(back);
        self.session.advance(back);
        self.link.process(now);
        self.asked.extend(core::iter::from_fn(|| self.link.next_job()).map(alloc::boxed::Box::pin));
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
