//! Clients of one URL, and an executor of one thread that polls only what was woken: a wake-up that is lost
//! shows as an answer that does not come. The clock stands still until it is moved.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_proto::http::{Head, Response, ResponseHead, Settings};
use mcp_proto::service::http::{Exchange, HttpService, Reply};
use mcp_proto::service::{Job, Principal, Service};
use mcp_proto::time::{Instant, UnixTime};
use serde_json::{Value, json};

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    /// With the query, if there is one.
    pub(crate) path: &'static str,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &'static str) -> Self {
        Self { method, path: "/mcp", headers: Vec::new(), body: Vec::new() }.with("Host", "localhost:8000")
    }

    pub(crate) fn post(body: impl AsRef<[u8]>) -> Self {
        let mut request = Self::new("POST")
            .with("Content-Type", "application/json")
            .with("Accept", "application/json, text/event-stream");
        request.body = body.as_ref().to_vec();
        request
    }

    /// A request of 2026-07-28 with all the headers that it needs.
    pub(crate) fn modern(message: &Value) -> Self {
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        let mut request = Self::post(message.to_string());
        if let Some(version) = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str() {
            request = request.with("MCP-Protocol-Version", version);
        }
        request = request.with("Mcp-Method", method);
        let name = ["name", "uri", "taskId"].into_iter().find_map(|member| params[member].as_str());
        if let Some(name) = name {
            request = request.with("Mcp-Name", name);
        }
        request
    }

    pub(crate) fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.into(), value.as_ref().to_vec()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn set(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.without(name).with(name, value)
    }
}

impl Head for Request {
    fn method(&self) -> &str {
        self.method
    }
    fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }
    fn query(&self) -> Option<&str> {
        self.path.split_once('?').map(|(_, query)| query)
    }
    fn authority(&self) -> Option<&str> {
        None
    }
    fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        let name = name.to_owned();
        self.headers.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(&name)).map(|(_, value)| &value[..])
    }
}

/// A modern request with these params and client capabilities.
pub(crate) fn modern(id: impl Into<Value>, method: &str, mut params: Value, capabilities: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}}})
}

pub(crate) fn initialize(version: &str, capabilities: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    }})
}

/// Counts how often it was woken.
#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let count = Arc::<Self>::default();
        (Arc::clone(&count), Waker::from(count))
    }
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
    fn take(&self) -> bool {
        self.0.swap(0, Ordering::SeqCst) > 0
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Task {
    job: Pin<Box<Job>>,
    woken: Arc<Count>,
    fresh: bool,
}

/// One response.
pub(crate) struct Open {
    pub(crate) exchange: Option<Exchange>,
    pub(crate) head: Option<ResponseHead>,
    pub(crate) body: Vec<u8>,
    pub(crate) done: bool,
    /// How much of the body was looked at.
    seen: usize,
    woken: Arc<Count>,
    fresh: bool,
    /// The client does not read.
    pub(crate) paused: bool,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
    pub(crate) data: Option<String>,
    pub(crate) comments: usize,
}

pub(crate) fn events(body: &[u8]) -> Vec<Event> {
    let text = std::str::from_utf8(body).unwrap();
    assert!(text.is_empty() || text.ends_with("\n\n"), "a torn event: {text:?}");
    text.split("\n\n")
        .filter(|block| !block.is_empty())
        .map(|block| {
            let mut event = Event { id: None, retry: None, data: None, comments: 0 };
            for line in block.lines() {
                match line.split_once(':').map(|(name, value)| (name, value.trim_start())) {
                    Some(("", _)) => event.comments += 1,
                    Some(("id", id)) => event.id = Some(id.into()),
                    Some(("retry", retry)) => event.retry = Some(retry.parse().unwrap()),
                    Some(("data", data)) => event.data = Some(data.into()),
                    _ if line == "data" => event.data = Some(String::new()),
                    _ => panic!("{line:?}"),
                }
            }
            event
        })
        .collect()
}

pub(crate) const EPOCH: u64 = 1_785_231_000_000;

/// A server and all of its clients.
pub(crate) struct Net {
    pub(crate) http: HttpService,
    now: Duration,
    jobs: Vec<Task>,
    opens: Vec<Open>,
}

/// A response, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Got(usize);

impl Net {
    pub(crate) fn new(service: &Service) -> Self {
        Self::with(service, Settings::default())
    }

    pub(crate) fn with(service: &Service, settings: Settings) -> Self {
        Self::over(HttpService::new(service, settings))
    }

    pub(crate) fn over(http: HttpService) -> Self {
        Self { http, now: Duration::from_secs(1), jobs: Vec::new(), opens: Vec::new() }
    }

    pub(crate) fn time(&self) -> (Instant, UnixTime) {
        let now = Instant::from_origin(self.now);
        (now, UnixTime::from_millis(EPOCH + self.now.as_millis() as u64))
    }

    /// As an adapter does it: metadata, admit, authenticate, handle.
    pub(crate) fn send(&mut self, request: &Request) -> Got {
        let got = self.post_only(request);
        self.settle();
        got
    }

    /// [`send`](Self::send) without letting anything else happen.
    pub(crate) fn post_only(&mut self, request: &Request) -> Got {
        let (_, unix) = self.time();
        if let Some(response) = self.http.metadata(request) {
            return self.full(response);
        }
        if let Err(response) = self.http.admit(request) {
            return self.full(response);
        }
        let principal = match self.http.authenticate(request, unix) {
            None => None,
            Some(mut verifying) => match verifying.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(principal)) => Some(principal),
                Poll::Ready(Err(response)) => return self.full(response),
                Poll::Pending => panic!("the verifier of a test waits"),
            },
        };
        self.handle(request, principal)
    }

    pub(crate) fn handle(&mut self, request: &Request, principal: Option<Principal>) -> Got {
        let (now, unix) = self.time();
        match self.http.handle(request, &request.body, principal, now, unix) {
            Reply::Full(response) => self.full(response),
            Reply::Exchange(exchange) => self.open(Some(exchange), None, Vec::new()),
        }
    }

    fn full(&mut self, response: Response) -> Got {
        let got = self.open(None, Some(response.head), response.body);
        self.opens[got.0].done = true;
        got
    }

    fn open(&mut self, exchange: Option<Exchange>, head: Option<ResponseHead>, body: Vec<u8>) -> Got {
        let (woken, _) = Count::new();
        self.opens.push(Open {
            exchange,
            head,
            body,
            done: false,
            seen: 0,
            woken,
            fresh: true,
            paused: false,
        });
        self.spawn();
        Got(self.opens.len() - 1)
    }

    fn spawn(&mut self) {
        for open in &mut self.opens {
            while let Some(job) = open.exchange.as_mut().and_then(Exchange::next_job) {
                let (woken, _) = Count::new();
                self.jobs.push(Task { job: Box::pin(job), woken, fresh: true });
            }
        }
    }

    /// Polls what was woken until nothing is.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut moved = false;
            let mut at = 0;
            while at < self.jobs.len() {
                let task = &mut self.jobs[at];
                if !(task.woken.take() | std::mem::take(&mut task.fresh)) {
                    at += 1;
                    continue;
                }
                moved = true;
                let waker = Waker::from(Arc::clone(&task.woken));
                if task.job.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                    drop(self.jobs.remove(at));
                } else {
                    at += 1;
                }
            }
            for open in &mut self.opens {
                if open.paused || open.done || open.exchange.is_none() {
                    continue;
                }
                if open.woken.take() | std::mem::take(&mut open.fresh) {
                    moved = true;
                    open.poll();
                }
            }
            self.spawn();
            if !moved {
                return;
            }
        }
        panic!("the service does not come to rest");
    }

    /// Lets time pass in one step, and does what is due.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        let (now, unix) = self.time();
        for open in &mut self.opens {
            let Some(exchange) = &mut open.exchange else { continue };
            if exchange.next_deadline().is_some_and(|at| at <= now) {
                exchange.handle_timeout(now, unix);
                open.fresh = true;
            }
        }
        self.spawn();
        self.settle();
    }

    pub(crate) fn sweep(&mut self) {
        let (now, unix) = self.time();
        for job in self.http.sweep(now, unix) {
            let (woken, _) = Count::new();
            self.jobs.push(Task { job: Box::pin(job), woken, fresh: true });
        }
        self.settle();
    }

    /// The client closes the connection.
    pub(crate) fn disconnect(&mut self, got: Got) {
        self.opens[got.0].exchange = None;
        self.opens[got.0].done = true;
        self.settle();
    }

    pub(crate) fn at(&mut self, got: Got) -> &mut Open {
        &mut self.opens[got.0]
    }

    pub(crate) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn status(&self, got: Got) -> u16 {
        self.opens[got.0].head.as_ref().expect("the head is there").status
    }

    pub(crate) fn has_head(&self, got: Got) -> bool {
        self.opens[got.0].head.is_some()
    }

    pub(crate) fn header(&self, got: Got, name: &str) -> Option<String> {
        self.opens[got.0].head.as_ref().and_then(|head| head.header(name)).map(str::to_owned)
    }

    pub(crate) fn is_sse(&self, got: Got) -> bool {
        self.header(got, "content-type").as_deref() == Some("text/event-stream")
    }

    pub(crate) fn is_done(&self, got: Got) -> bool {
        self.opens[got.0].done
    }

    /// The events that came since the last look.
    pub(crate) fn events(&mut self, got: Got) -> Vec<Event> {
        assert!(self.is_sse(got));
        let open = &mut self.opens[got.0];
        let fresh = &open.body[open.seen..];
        open.seen = open.body.len();
        events(fresh)
    }

    /// The messages that came since the last look, of JSON and of events.
    pub(crate) fn messages(&mut self, got: Got) -> Vec<Value> {
        if !self.has_head(got) {
            return Vec::new();
        }
        if self.is_sse(got) {
            return self
                .events(got)
                .iter()
                .filter_map(|event| event.data.as_ref().filter(|data| !data.is_empty()))
                .map(|data| serde_json::from_str(data).unwrap())
                .collect();
        }
        let open = &mut self.opens[got.0];
        let fresh = &open.body[open.seen..];
        open.seen = open.body.len();
        if fresh.is_empty() { Vec::new() } else { vec![serde_json::from_slice(fresh).unwrap()] }
    }

    /// The one message that came since the last look.
    pub(crate) fn one(&mut self, got: Got) -> Value {
        let mut all = self.messages(got);
        assert_eq!(all.len(), 1, "{all:#?}");
        all.remove(0)
    }

    /// Sends and takes the one message of the answer, which must be complete.
    pub(crate) fn ask(&mut self, request: &Request) -> (u16, Value) {
        let got = self.send(request);
        assert!(self.is_done(got), "not answered");
        (self.status(got), self.one(got))
    }

    /// A session after its handshake.
    pub(crate) fn session(&mut self, version: &str, capabilities: Value) -> Session {
        self.session_of(version, capabilities, None)
    }

    pub(crate) fn session_of(
        &mut self,
        version: &str,
        capabilities: Value,
        authorization: Option<&str>,
    ) -> Session {
        let auth = |request: Request| match authorization {
            Some(token) => request.with("Authorization", format!("Bearer {token}")),
            None => request,
        };
        let request = auth(Request::post(initialize(version, capabilities).to_string()));
        let got = self.send(&request);
        assert_eq!(self.status(got), 200);
        assert_eq!(self.one(got)["result"]["protocolVersion"], version);
        let id = self.header(got, "mcp-session-id").expect("a session id");
        let version = (version >= "2025-06-18").then(|| version.to_owned());
        let session = Session { id, version, authorization: authorization.map(str::to_owned) };
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let got = self.send(&session.post(&note));
        assert_eq!(self.status(got), 202);
        session
    }
}

impl Open {
    /// As a driver that has room for everything.
    pub(crate) fn poll(&mut self) {
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut cx = Context::from_waker(&waker);
        let Some(exchange) = &mut self.exchange else { return };
        if self.head.is_none() {
            match exchange.poll_head(&mut cx) {
                Poll::Ready(head) => self.head = Some(head),
                Poll::Pending => return,
            }
        }
        loop {
            match exchange.poll_body(&mut cx, &mut self.body) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => break,
                Poll::Pending => return,
            }
        }
        self.done = true;
        self.exchange = None;
    }

    /// The client reads again.
    pub(crate) fn resume(&mut self) {
        self.paused = false;
        self.fresh = true;
    }
}

/// What a legacy client knows of its session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) version: Option<String>,
    pub(crate) authorization: Option<String>,
}

impl Session {
    fn own(&self, mut request: Request) -> Request {
        request = request.with("Mcp-Session-Id", &self.id);
        if let Some(version) = &self.version {
            request = request.with("MCP-Protocol-Version", version);
        }
        if let Some(token) = &self.authorization {
            request = request.with("Authorization", format!("Bearer {token}"));
        }
        request
    }

    pub(crate) fn post(&self, message: &Value) -> Request {
        self.own(Request::post(message.to_string()))
    }

    pub(crate) fn get(&self) -> Request {
        self.own(Request::new("GET").with("Accept", "text/event-stream"))
    }

    pub(crate) fn resume(&self, last_event_id: &str) -> Request {
        self.get().with("Last-Event-ID", last_event_id)
    }

    pub(crate) fn delete(&self) -> Request {
        self.own(Request::new("DELETE"))
    }
}
