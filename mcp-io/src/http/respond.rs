//! From a request to its response.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Buf;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use http_body::Body;
use mcp_proto::http::{Response, ResponseHead};
use mcp_proto::rpc::{Error, code};
use mcp_proto::server::Principal;
use mcp_proto::service::http::{HttpService, Reply};

use super::body::{Budget, HttpBody, InFlight, Reserved, Running};
use crate::{Runtime, Timer, clock};

/// How often sessions are looked through for those that are over.
pub(super) const SWEEP: Duration = Duration::from_secs(5);

/// Answers the requests of HTTP. It is what [`http`](super::Http) serves, and a `tower::Service` for a
/// server that you have already. Cheap to clone: all clones share their sessions and limits.
///
/// An endpoint that is mounted in another server checks `Host` and `Origin` all the same. If no
/// [`Authorizer`](mcp_proto::service::Authorizer) is set, a [`Principal`] among the extensions of a request
/// says who sent it.
pub struct Responder<R>(Arc<Inner<R>>);

struct Inner<R> {
    http: HttpService,
    runtime: R,
    options: Options,
    in_flight: InFlight,
    bodies: Budget,
    draining: AtomicBool,
    /// When sessions were looked through, in milliseconds of the clock.
    swept: AtomicU64,
}

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) path: Option<String>,
    pub(super) readiness: Option<String>,
    pub(super) max_in_flight: usize,
    pub(super) body_budget: usize,
    pub(super) header_timeout: Duration,
    pub(super) body_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: Some("/mcp".into()),
            readiness: Some("/healthz".into()),
            max_in_flight: 4096,
            body_budget: 256 << 20,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
        }
    }
}

impl<R: Runtime> Responder<R> {
    /// Answers with what `http` says, on `runtime`.
    pub fn new(http: HttpService, runtime: R) -> Self {
        Self::with_options(http, runtime, Options::default())
    }

    pub(super) fn with_options(http: HttpService, runtime: R, options: Options) -> Self {
        http.service().use_clock(clock::unix_now);
        Self(Arc::new(Inner {
            http,
            runtime,
            options,
            in_flight: InFlight::default(),
            bodies: Budget::default(),
            draining: AtomicBool::new(false),
            swept: AtomicU64::new(0),
        }))
    }

    /// The path of the endpoint; 404 elsewhere. `/mcp` by default.
    #[must_use]
    pub fn path(self, path: impl Into<String>) -> Self {
        self.set(|options| options.path = Some(path.into()))
    }

    /// Answers whatever the path is: for a server that has routed the request already.
    #[must_use]
    pub fn any_path(self) -> Self {
        self.set(|options| (options.path, options.readiness) = (None, None))
    }

    /// Where a probe is told whether the server is ready: 200, or 503 once it [ends](Self::close). `None` =
    /// nowhere. `/healthz` by default.
    #[must_use]
    pub fn readiness(self, path: Option<&str>) -> Self {
        self.set(|options| options.readiness = path.map(Into::into))
    }

    /// Most requests at once, streams included; one more is answered with 503. 4,096 by default.
    #[must_use]
    pub fn max_in_flight(self, most: usize) -> Self {
        self.set(|options| options.max_in_flight = most)
    }

    /// Most bytes of the bodies of all requests together that are read and not handed over yet; a request that
    /// would bring more is answered with 503. 256 MiB by default. A body that alone is longer gets 413.
    #[must_use]
    pub fn body_budget(self, most: usize) -> Self {
        self.set(|options| options.body_budget = most)
    }

    /// The time that a client has to send the body of a request. 30 seconds by default.
    #[must_use]
    pub fn body_timeout(self, most: Duration) -> Self {
        self.set(|options| options.body_timeout = most)
    }

    /// For connections that [`serve_connection`](Self::serve_connection) serves: the time that a client has
    /// to send the head of a request, and how long one of HTTP/1 may stay open unused. 30 seconds by default.
    #[must_use]
    pub fn header_timeout(self, most: Duration) -> Self {
        self.set(|options| options.header_timeout = most)
    }

    pub(super) fn head_within(&self) -> Duration {
        self.0.options.header_timeout
    }

    pub(super) fn runtime(&self) -> &R {
        &self.0.runtime
    }

    /// A responder of its own, with its own limits; the sessions are those of the service.
    fn set(self, set: impl FnOnce(&mut Options)) -> Self {
        let mut options = self.0.options.clone();
        set(&mut options);
        Self::with_options(self.0.http.clone(), self.0.runtime.clone(), options)
    }

    /// What it answers with.
    #[must_use]
    pub fn service(&self) -> &HttpService {
        &self.0.http
    }

    /// How many requests are being handled.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.0.in_flight.count()
    }

    /// Tells a probe that the server is not ready, and serves on: what distributes requests has the time to
    /// notice, before the [end](Self::close).
    pub fn unready(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    /// Begins the end: subscriptions end with their results, streams of sessions once they are written, and
    /// a probe is told 503. Calls go on: then wait for the responses that are under way.
    pub fn close(&self) {
        self.unready();
        self.0.http.close();
    }

    /// Ends what has gone on for too long. It is done every few seconds with the requests that come; call it
    /// if none may come for long.
    pub fn sweep(&self) {
        let now = self.0.runtime.now();
        self.0.swept.store(millis(now.since_origin()), Ordering::Relaxed);
        for job in self.0.http.sweep(now, clock::unix_now()) {
            self.0.runtime.spawn(job);
        }
    }

    fn sweep_if_due(&self) {
        let now = millis(self.0.runtime.now().since_origin());
        let swept = self.0.swept.load(Ordering::Relaxed);
        let due = swept + millis(SWEEP) <= now;
        if due && self.0.swept.compare_exchange(swept, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.sweep();
        }
    }

    /// Answers a request.
    ///
    /// Dropping the future, or the body of the response, says that the client is gone.
    pub async fn respond<B>(&self, request: Request<B>) -> http::Response<HttpBody<R>>
    where
        B: Body,
        B::Error: fmt::Display,
    {
        let (head, body) = request.into_parts();
        let shared = self.0.http.endpoint().cors_headers(&head);
        let mut response = self.answer(head, body).await;
        for (name, value) in shared {
            append(response.headers_mut(), name, &value);
        }
        response
    }

    async fn answer<B>(&self, head: Parts, body: B) -> http::Response<HttpBody<R>>
    where
        B: Body,
        B::Error: fmt::Display,
    {
        let this = &*self.0;
        let path = head.uri.path();
        if this.options.readiness.as_deref() == Some(path) {
            return full(self.probed(head.method.as_str()));
        }
        if let Some(response) = this.http.metadata(&head) {
            return full(response);
        }
        if this.options.path.as_deref().is_some_and(|expected| expected != path) && !this.http.has_path(path)
        {
            return full(Response::refused(404, "there is nothing at this path"));
        }
        if let Err(response) = this.http.admit(&head) {
            return full(response);
        }
        self.sweep_if_due();
        let Some(permit) = this.in_flight.enter(this.options.max_in_flight) else {
            return full(busy());
        };
        let principal = match this.http.authenticate(&head, clock::unix_now()) {
            Some(authenticating) => match authenticating.await {
                Ok(principal) => Some(principal),
                Err(response) => return full(response),
            },
            None => head.extensions.get::<Principal>().cloned(),
        };
        let body = match self.collect(&head.headers, body).await {
            Ok(body) => body,
            Err(response) => return full(response),
        };
        let now = this.runtime.now();
        match this.http.handle(&head, &body.bytes, principal, now, clock::unix_now()) {
            Reply::Full(response) => full(response),
            Reply::Exchange(exchange) => {
                // What a handler was given is its own.
                drop(body);
                self.run(Running::new(exchange, this.runtime.clone(), permit)).await
            }
        }
    }

    async fn run(&self, running: Running<R>) -> http::Response<HttpBody<R>> {
        let mut running = Box::new(running);
        let head = poll_fn(|cx| running.poll_head(cx)).await;
        with_head(&head, HttpBody::running(running))
    }

    fn probed(&self, method: &str) -> Response {
        match method {
            "GET" | "HEAD" => {
                let status = if self.0.draining.load(Ordering::Relaxed) { 503 } else { 200 };
                Response::empty(ResponseHead::new(status).with("cache-control", "no-store"))
            }
            _ => Response::method_not_allowed("GET, HEAD"),
        }
    }

    /// The whole body, if it comes in time and is not too long.
    async fn collect<B>(&self, headers: &HeaderMap, body: B) -> Result<Collected, Response>
    where
        B: Body,
        B::Error: fmt::Display,
    {
        /// What is set aside at once, whatever the client says that it will send.
        const AHEAD: u64 = 64 << 10;
        /// And how many times as much as has come, once that is full: it is not moved about then as it grows.
        const MORE: usize = 7;
        let budget = self.0.options.body_budget;
        let most = self.0.http.max_body().min(budget);
        let too_large = || match most == budget {
            true => Response::refused(413, format_args!("longer than {budget} bytes")),
            false => self.0.http.too_large(),
        };
        let said = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let length = said.unwrap_or_else(|| body.size_hint().lower());
        if length > most as u64 {
            return Err(too_large());
        }
        let mut reserved = self.0.bodies.reserve();
        let mut bytes = Vec::with_capacity(usize::try_from(length.min(AHEAD)).unwrap_or_default());
        let mut body = pin!(body);
        let mut timer = None;
        poll_fn(|cx| {
            loop {
                let Poll::Ready(frame) = body.as_mut().poll_frame(cx) else {
                    let Inner { runtime, options, .. } = &*self.0;
                    let timer =
                        timer.get_or_insert_with(|| runtime.timer(runtime.now() + options.body_timeout));
                    let late = || Err(Response::refused(408, "the body did not come in time"));
                    return timer.poll(cx).map(|()| late());
                };
                match frame {
                    None => return Poll::Ready(Ok(())),
                    Some(Err(error)) => {
                        let why = format_args!("the body cannot be read: {error}");
                        return Poll::Ready(Err(Response::refused(400, why)));
                    }
                    Some(Ok(frame)) => {
                        // Trailers say nothing here.
                        let Ok(mut data) = frame.into_data() else { continue };
                        if data.remaining() > most - bytes.len() {
                            return Poll::Ready(Err(too_large()));
                        }
                        if !reserved.grow(data.remaining(), budget) {
                            return Poll::Ready(Err(full_of_bodies(budget)));
                        }
                        if data.remaining() > bytes.capacity() - bytes.len() {
                            let rest = usize::try_from(length).unwrap_or(most).saturating_sub(bytes.len());
                            let more = rest.min(bytes.len().saturating_mul(MORE));
                            if more >= data.remaining() {
                                bytes.reserve_exact(more);
                            }
                        }
                        while data.has_remaining() {
                            let chunk = data.chunk();
                            bytes.extend_from_slice(chunk);
                            let taken = chunk.len();
                            data.advance(taken);
                        }
                    }
                }
            }
        })
        .await?;
        Ok(Collected { bytes, _reserved: reserved })
    }
}

/// A body, and its share of the budget.
struct Collected {
    bytes: Vec<u8>,
    _reserved: Reserved,
}

fn full_of_bodies(budget: usize) -> Response {
    try_again(format!("The requests that are being read have more than {budget} bytes together"))
}

fn busy() -> Response {
    try_again("Too many requests are being handled".to_owned())
}

fn try_again(why: String) -> Response {
    let error = Error::new(code::INTERNAL_ERROR, why);
    let mut response = Response::error(503, None, &error);
    response.head = response.head.with("retry-after", "1");
    response
}

fn full<R: Runtime>(response: Response) -> http::Response<HttpBody<R>> {
    with_head(&response.head, HttpBody::full(response.body))
}

fn with_head<B>(head: &ResponseHead, body: B) -> http::Response<B> {
    let mut response = http::Response::new(body);
    *response.status_mut() = StatusCode::from_u16(head.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in &head.headers {
        append(response.headers_mut(), name, value);
    }
    response
}

fn append(headers: &mut HeaderMap, name: &'static str, value: &str) {
    // Both are fit for a header: nothing is left out.
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.append(name, value);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl<R> Clone for Responder<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> fmt::Debug for Responder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("options", &self.0.options).finish_non_exhaustive()
    }
}

/// A response that is being made.
pub type Responding<R> =
    Pin<Box<dyn Future<Output = Result<http::Response<HttpBody<R>>, Infallible>> + Send>>;

impl<R, B> tower_service::Service<Request<B>> for Responder<R>
where
    R: Runtime,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: fmt::Display + Send,
{
    type Response = http::Response<HttpBody<R>>;
    type Error = Infallible;
    type Future = Responding<R>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Responding<R> {
        hyper::service::Service::call(self, request)
    }
}

impl<R, B> hyper::service::Service<Request<B>> for Responder<R>
where
    R: Runtime,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: fmt::Display + Send,
{
    type Response = http::Response<HttpBody<R>>;
    type Error = Infallible;
    type Future = Responding<R>;

    fn call(&self, request: Request<B>) -> Responding<R> {
        let this = self.clone();
        Box::pin(async move { Ok(this.respond(request).await) })
    }
}
