//! A client of lines and an executor of one thread, with a clock that stands still until it is moved.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_proto::service::{Job, Principal, Service, Session};
use mcp_proto::time::{Instant, UnixTime};
use serde_json::{Value, json};

pub(crate) struct Client {
    session: Session,
    jobs: Vec<Job>,
    now: Duration,
    seen: Vec<Value>,
}

struct Flag(AtomicBool);
impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub(crate) const EPOCH: u64 = 1_785_231_000_000;

impl Client {
    pub(crate) fn new(service: &Service) -> Self {
        Self::of(service, None)
    }

    pub(crate) fn of(service: &Service, principal: Option<Principal>) -> Self {
        Self {
            session: Session::with_principal(service, principal),
            jobs: Vec::new(),
            now: Duration::from_secs(1),
            seen: Vec::new(),
        }
    }

    /// After the handshake of a legacy revision.
    pub(crate) fn legacy(service: &Service, version: &str, capabilities: Value) -> Self {
        let mut client = Self::new(service);
        client.send(&json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }}));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let answer = client.take();
        assert_eq!(answer[0]["result"]["protocolVersion"], version);
        client
    }

    fn time(&self) -> (Instant, UnixTime) {
        let now = Instant::from_origin(self.now);
        (now, UnixTime::from_millis(EPOCH + self.now.as_millis() as u64))
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    pub(crate) fn line(&mut self, line: &str) {
        let bytes = format!("{line}\n").into_bytes();
        self.session.spare(bytes.len())[..bytes.len()].copy_from_slice(&bytes);
        self.session.commit(bytes.len());
        let (now, unix) = self.time();
        self.session.process(now, unix);
        self.settle();
    }

    /// Polls everything until nothing moves.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1000 {
            let (now, unix) = self.time();
            self.session.handle_timeout(now, unix);
            while let Some(job) = self.session.next_job() {
                self.jobs.push(job);
            }
            let flag = Arc::new(Flag(AtomicBool::new(false)));
            let waker = Waker::from(Arc::clone(&flag));
            let mut cx = Context::from_waker(&waker);
            self.jobs.retain_mut(|job| pin!(job).poll(&mut cx).is_pending());
            let moved = !self.session.output().is_empty();
            let bytes = self.session.output().to_vec();
            self.session.advance(bytes.len());
            for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
                self.seen.push(serde_json::from_slice(line).unwrap());
            }
            if !moved && !flag.0.load(Ordering::SeqCst) {
                return;
            }
        }
        panic!("the service does not come to rest");
    }

    /// What came since the last look.
    pub(crate) fn take(&mut self) -> Vec<Value> {
        self.settle();
        std::mem::take(&mut self.seen)
    }

    /// The one message that came since the last look.
    pub(crate) fn one(&mut self) -> Value {
        let mut all = self.take();
        assert_eq!(all.len(), 1, "{all:#?}");
        all.remove(0)
    }

    /// A modern request with these params and client capabilities.
    pub(crate) fn modern(&mut self, id: u64, method: &str, params: Value, capabilities: Value) -> Value {
        self.send(&request(id, method, params, capabilities));
        self.one()
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.settle();
    }

    pub(crate) fn end_of_input(&mut self) {
        let (now, unix) = self.time();
        self.session.end_of_input(now, unix, Duration::from_secs(5));
        self.settle();
    }

    pub(crate) fn is_done(&self) -> bool {
        self.session.is_done()
    }
}

pub(crate) fn request(id: u64, method: &str, mut params: Value, capabilities: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A future that is pending until it was polled `n` more times.
pub(crate) fn turns(mut n: usize) -> impl Future<Output = ()> {
    std::future::poll_fn(move |cx| {
        if n == 0 {
            return Poll::Ready(());
        }
        n -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}
