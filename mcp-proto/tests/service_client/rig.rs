//! A server that the test plays itself, line by line, and an executor of one thread.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use mcp_proto::client::{CallError, Mode};
use mcp_proto::service::client::{Client, ClientBuilder, Job, Link};
use mcp_proto::time::Instant;
use serde_json::{Value, json};

pub(crate) struct Rig {
    pub(crate) link: Link,
    pub(crate) now: Duration,
    jobs: Vec<Pin<Box<Job>>>,
}

#[derive(Default)]
pub(crate) struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Flag {
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

/// Polls once.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("expected to be ready at once"),
    }
}

pub(crate) fn error<T: std::fmt::Debug>(poll: Poll<Result<T, CallError>>) -> CallError {
    match poll {
        Poll::Ready(Err(error)) => error,
        other => panic!("expected an error, found {other:?}"),
    }
}

impl Rig {
    pub(crate) fn of(link: Link) -> Self {
        Self { link, now: Duration::from_secs(1), jobs: Vec::new() }
    }

    /// Connected to a server of 2026-07-28 with these capabilities.
    pub(crate) fn modern(builder: ClientBuilder, capabilities: Value) -> (Client, Self) {
        let (mut connecting, link) = builder.mode(Mode::Modern).link();
        let mut rig = Self::of(link);
        rig.link.start(rig.time());
        let probe = rig.one();
        assert_eq!(probe["method"], "server/discover");
        assert!(poll(&mut connecting).is_pending());
        rig.answer(
            &probe,
            json!({
                "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "resultType": "complete",
            }),
        );
        (now(&mut connecting).unwrap(), rig)
    }

    /// Connected to a server of 2025-11-25 with these capabilities.
    pub(crate) fn legacy(builder: ClientBuilder, capabilities: Value) -> (Client, Self) {
        let (mut connecting, link) = builder.mode(Mode::Legacy).link();
        let mut rig = Self::of(link);
        rig.link.start(rig.time());
        rig.initialize(capabilities);
        (now(&mut connecting).unwrap(), rig)
    }

    pub(crate) fn initialize(&mut self, capabilities: Value) {
        let hello = self.one();
        assert_eq!(hello["method"], "initialize");
        self.answer(
            &hello,
            json!({
                "protocolVersion": "2025-11-25", "capabilities": capabilities,
                "serverInfo": {"name": "scripted", "version": "1"},
            }),
        );
        assert_eq!(self.one()["method"], "notifications/initialized");
    }

    pub(crate) fn time(&self) -> Instant {
        Instant::from_origin(self.now)
    }

    /// Everything moves that can.
    pub(crate) fn settle(&mut self) {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&flag));
        let mut cx = Context::from_waker(&waker);
        while flag.take() {
            self.link.process(self.time());
            while let Some(job) = self.link.next_job() {
                self.jobs.push(Box::pin(job));
            }
            self.jobs.retain_mut(|job| job.as_mut().poll(&mut cx).is_pending());
            if self.link.poll_ready(&mut cx).is_ready() && self.link.output().is_empty() {
                assert!(self.link.is_done(), "ready for nothing");
            }
        }
    }

    /// What the client wrote since the last look.
    pub(crate) fn lines(&mut self) -> Vec<Value> {
        self.settle();
        let lines = self.link.output().split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        let written = self.link.output().len();
        self.link.advance(written);
        lines
    }

    pub(crate) fn one(&mut self) -> Value {
        let mut lines = self.lines();
        assert_eq!(lines.len(), 1, "{lines:#?}");
        lines.remove(0)
    }

    pub(crate) fn nothing(&mut self) {
        let lines = self.lines();
        assert!(lines.is_empty(), "{lines:#?}");
    }

    pub(crate) fn text(&mut self, text: &str) {
        for bytes in format!("{text}\n").into_bytes().chunks(64 << 10) {
            self.link.spare(bytes.len())[..bytes.len()].copy_from_slice(bytes);
            self.link.commit(bytes.len());
            self.settle();
        }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.text(&message.to_string());
    }

    pub(crate) fn answer(&mut self, request: &Value, result: Value) {
        assert!(!request["id"].is_null(), "{request}");
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    pub(crate) fn fail(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn ask(&mut self, id: Value, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.link.handle_timeout(self.time());
        self.settle();
    }

    /// How many responders are at work.
    pub(crate) fn at_work(&mut self) -> usize {
        self.settle();
        self.jobs.len()
    }
}

pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "resultType": "complete"})
}

pub(crate) struct Unpark(pub(crate) Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[allow(clippy::disallowed_methods)] // so that a lost wake-up fails instead of hanging
pub(crate) fn park() {
    let before = std::time::Instant::now();
    std::thread::park_timeout(Duration::from_secs(60));
    assert!(before.elapsed() < Duration::from_secs(60), "nobody woke this thread");
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
        park();
    }
}
