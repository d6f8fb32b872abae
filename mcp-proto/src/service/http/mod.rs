//! A service over Streamable HTTP, without sockets and without a runtime: what an adapter drives.
//!
//! ```text
//!   head ──► admit ──► (token) ──► body ──► handle ──► Reply::Full ──────────────► write it
//!                                             │
//!                                             └──────► Reply::Exchange
//!                                                        next_job ──► spawn
//!                                                        poll_head ──► write the head
//!                                                        poll_body ──► write pieces, until the end
//!                                                        next_deadline / handle_timeout
//!                                                        drop: the client is gone
//! ```
//!
//! Besides, call [`HttpService::sweep`] every few seconds.

mod exchange;
mod legacy;
mod sessions;
mod sse;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use exchange::Exchange;
pub(crate) use legacy::Streaming;
use sessions::Sessions;

use super::dispatch;
use super::session::Shared;
use super::{Authorizer, BoxFuture, Principal, Service};
use crate::http::endpoint::{Post, Taken, unknown_session};
use crate::http::session::{NO_STREAM, handshake, refuse_batch};
use crate::http::{Endpoint, Head, Response, Settings, TokenState};
use crate::rpc::{Error, Message, Parsed, RequestId, code};
use crate::server::Connection;
use crate::time::{Instant, UnixTime};

/// A service at one URL. Cheap to clone: all clones share their sessions.
#[derive(Clone)]
pub struct HttpService(Arc<Inner>);

struct Inner {
    service: Service,
    endpoint: Endpoint,
    sessions: Mutex<Sessions>,
    authorizer: Option<Authorizer>,
    /// Something of the service needs scopes.
    scoped: bool,
}

/// What is answered.
#[derive(Debug)]
#[must_use]
#[allow(clippy::exhaustive_enums)] // either it is there, or it is not
#[allow(clippy::large_enum_variant)] // made in order to be matched
pub enum Reply {
    /// All of it.
    Full(Response),
    /// What is not known yet.
    Exchange(Exchange),
}

impl HttpService {
    /// A service with these settings that asks nobody for a token. What needs scopes is refused to those whom
    /// the host does not vouch for with a principal that has them.
    #[must_use]
    pub fn new(service: &Service, settings: Settings) -> Self {
        Self::assemble(service, settings, None)
    }

    /// A service that asks every request for a token.
    #[must_use]
    pub fn with_authorizer(service: &Service, settings: Settings, authorizer: Authorizer) -> Self {
        Self::assemble(service, settings, Some(authorizer))
    }

    fn assemble(service: &Service, settings: Settings, authorizer: Option<Authorizer>) -> Self {
        Self(Arc::new(Inner {
            service: service.clone(),
            endpoint: Endpoint::new(Arc::clone(service.config()), settings),
            sessions: Mutex::default(),
            authorizer,
            scoped: service.declares_scopes(),
        }))
    }

    /// The service.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.0.service
    }

    /// The rules of the URL.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// Whether a path belongs to this service besides the one that it is served at.
    #[must_use]
    pub fn has_path(&self, path: &str) -> bool {
        let sse = self.0.endpoint.settings().sse.as_ref();
        sse.is_some_and(|sse| path == sse.stream || path == sse.messages)
            || self.0.authorizer.as_ref().is_some_and(|auth| auth.resource().is_metadata_path(path))
    }

    /// Looks at the head alone. Call it before the body is read.
    ///
    /// # Errors
    ///
    /// The answer. Nothing has run.
    #[allow(clippy::result_large_err)] // the error is what is sent
    pub fn admit(&self, head: &impl Head) -> Result<(), Response> {
        self.0.endpoint.admit(head)
    }

    /// What a resource server says of itself, if that is what the request asks for. It is for everyone, so
    /// look for it before [`admit`](Self::admit). [RFC 9728]
    #[must_use]
    pub fn metadata(&self, head: &impl Head) -> Option<Response> {
        let resource = self.0.authorizer.as_ref()?.resource();
        if !resource.is_metadata_path(head.path()) {
            return None;
        }
        if let Some(answer) = self.0.endpoint.preflight(head) {
            return Some(answer);
        }
        Some(match head.method() {
            "GET" => {
                let mut response = Response::empty(resource.metadata_head());
                response.body = resource.metadata().to_vec();
                response
            }
            "HEAD" => Response::empty(resource.metadata_head()),
            _ => Response::method_not_allowed("GET, HEAD"),
        })
    }

    /// Who sent a request that was [admitted](Self::admit), by its token; `None` if no one is asked for one.
    /// The error of the future is the answer. Nothing has run.
    pub fn authenticate<H: Head>(
        &self,
        head: &H,
        unix: UnixTime,
    ) -> Option<BoxFuture<Result<Principal, Response>>> {
        let verifying = self.0.authorizer.as_ref()?.authenticate(head, unix);
        Some(Box::pin(async move { verifying.await.map_err(|denied| Response::empty(denied.head)) }))
    }

    /// The longest body that is worth reading. A longer one is answered with [`too_large`](Self::too_large).
    #[must_use]
    pub fn max_body(&self) -> usize {
        self.0.service.config().limits.max_message
    }

    /// The answer to a body that is too long.
    #[must_use]
    pub fn too_large(&self) -> Response {
        Response::refused(413, format_args!("longer than {} bytes", self.max_body()))
    }

    /// Handles a request that was [admitted](Self::admit). Handlers are polled once in place.
    pub fn handle(
        &self,
        head: &impl Head,
        body: &[u8],
        principal: Option<Principal>,
        now: Instant,
        unix: UnixTime,
    ) -> Reply {
        self.0.service.saw(unix);
        if let (Some(authorizer), None) = (&self.0.authorizer, &principal) {
            let resource = authorizer.resource();
            let head = resource.challenge_unauthorized(resource.scopes_supported(), TokenState::Absent);
            return Reply::Full(Response::empty(head));
        }
        if let Some(reply) = self.sse(head, body, principal.as_ref(), now, unix) {
            return reply;
        }
        match self.0.endpoint.take(head, body) {
            Taken::Refused(response) => Reply::Full(response),
            Taken::Modern(post) => match self.permit(&post.parsed, principal.as_ref()) {
                Ok(()) => self.modern(head, post, principal, now, unix),
                Err(response) => Reply::Full(response),
            },
            Taken::Initialize(post) => self.initialize(post, principal, now, unix),
            Taken::Session(id, post) => {
                let found = self.session(head, id, post.request_id(), principal.as_ref(), now);
                match found.and_then(|shared| {
                    self.permit(&post.parsed, principal.as_ref())?;
                    Ok(shared)
                }) {
                    Ok(shared) => self.legacy(&shared, post, principal, now, unix),
                    Err(response) => Reply::Full(response),
                }
            }
            Taken::Stream { session, last_event_id } => {
                match self.session(head, session, None, principal.as_ref(), now) {
                    Ok(shared) => self.stream(&shared, last_event_id, now),
                    Err(response) => Reply::Full(response),
                }
            }
            Taken::End(id) => match self.session(head, id, None, principal.as_ref(), now) {
                Ok(shared) => {
                    let _ = self.sessions().remove(id, principal.as_ref());
                    end(&shared);
                    Reply::Full(Response::empty(crate::http::ResponseHead::new(204)))
                }
                Err(response) => Reply::Full(response),
            },
        }
    }

    /// The session that a request names, if it is this caller's.
    #[allow(clippy::result_large_err)] // the error is what is sent
    fn session(
        &self,
        head: &impl Head,
        id: &str,
        request: Option<&RequestId>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Arc<Shared>, Response> {
        let found = self.sessions().find(id, principal, now);
        let shared = found.ok_or_else(|| unknown_session(request))?;
        let version = shared.lock().connection.session_version();
        if let Some(version) = version {
            self.0.endpoint.check_session_version(head, version)?;
        }
        Ok(shared)
    }

    /// Ends what has gone on for too long: sessions that nobody uses, requests and tasks whose time is
    /// over. Call it every few seconds.
    pub fn sweep(&self, now: Instant, unix: UnixTime) -> Vec<super::Job> {
        let limits = &self.0.service.config().limits;
        self.0.service.saw(unix);
        let (expired, live) = self.sessions().sweep(now, limits.session_idle);
        expired.iter().for_each(|shared| end(shared));
        let mut jobs = Vec::new();
        for shared in live {
            shared.tick(now, unix);
            dispatch::timeout(&shared, now, &mut jobs);
            shared.lock().wake_driver();
        }
        self.0.service.expire_tasks(unix);
        jobs
    }

    /// How many legacy sessions there are.
    #[must_use]
    pub fn sessions_open(&self) -> usize {
        self.sessions().len()
    }

    /// Ends every subscription with its result, and every session's streams once they are written. Calls go
    /// on. For a graceful end: stop accepting, call this, wait for the exchanges.
    pub fn close(&self) {
        self.0.service.close_all();
        let sessions = self.sessions().all();
        for shared in sessions {
            let mut state = shared.lock();
            if let Some(streaming) = &mut state.streaming {
                streaming.close_get();
            }
        }
    }

    /// Ends every session, and cancels what runs in it: the end after the graceful one. Calls of 2026-07-28
    /// are cancelled by dropping their exchanges.
    pub fn abort(&self) {
        let sessions = self.sessions().take_all();
        sessions.iter().for_each(|shared| end(shared));
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the caller's scopes allow every request of a body. [spec: basic/authorization#scope-challenge-handling]
    #[allow(clippy::result_large_err)] // the error is what is sent
    fn permit(&self, parsed: &Parsed<'_>, principal: Option<&Principal>) -> Result<(), Response> {
        if !self.0.scoped {
            return Ok(());
        }
        let service = &self.0.service;
        let check = |message: &Message<'_>| match (message, &self.0.authorizer, principal) {
            (Message::Request { method, params, .. }, Some(authorizer), Some(principal)) => authorizer
                .permit(service, method, params, principal)
                .map_err(|denied| Response::empty(denied.head)),
            (Message::Request { id, method, params }, _, principal) => service
                .check_scopes(method, params, principal)
                .map_err(|insufficient| Response::error(403, Some(id), &insufficient.to_error())),
            _ => Ok(()),
        };
        match parsed {
            Parsed::Message(message) => check(message),
            Parsed::Batch(batch) => {
                let limits = &self.0.service.config().limits;
                batch.iter().try_for_each(|raw| match crate::rpc::parse(raw.get().as_bytes(), limits) {
                    Ok(Parsed::Message(message)) => check(&message),
                    // The machine says what is wrong with it.
                    _ => Ok(()),
                })
            }
        }
    }

    fn modern(
        &self,
        head: &impl Head,
        post: Post<'_>,
        principal: Option<Principal>,
        now: Instant,
        unix: UnixTime,
    ) -> Reply {
        let service = &self.0.service;
        let shared = Shared::new(service, principal, Connection::modern(Arc::clone(service.config())));
        shared.tick(now, unix);
        let mut exchange = Exchange::modern(&shared, &self.0.endpoint, post.accepts, now);
        let notification = !post.has_request();
        let lookup = |name: &str| head.value(name);
        dispatch::post(&shared, post.parsed, None, 0, Some(&lookup), now, exchange.jobs_mut());
        if notification {
            return Reply::Full(Response::accepted());
        }
        exchange.into_reply()
    }

    fn initialize(
        &self,
        post: Post<'_>,
        principal: Option<Principal>,
        now: Instant,
        unix: UnixTime,
    ) -> Reply {
        let service = &self.0.service;
        let (request, accepts) = (post.request_id().cloned(), post.accepts);
        let (connection, version, out) = match handshake(service.config(), post, now) {
            Ok(opened) => opened,
            Err(response) => return Reply::Full(response),
        };
        let shared = Shared::new(service, principal, connection);
        shared.tick(now, unix);
        let id = session_id(&service.random_bytes());
        let limits = &service.config().limits;
        shared.lock().streaming = Some(Streaming::new(version, limits));
        let (kept, dropped) = self.sessions().insert(&id, &shared, now, limits);
        dropped.iter().for_each(|shared| end(shared));
        if !kept {
            return Reply::Full(too_many_sessions(request.as_ref()));
        }
        service.register(&shared);
        let mut response = Response::json(200, out);
        response.head = response.head.with("mcp-session-id", id);
        Reply::Full(accepts.preferring(self.0.endpoint.settings().events).wrap(response))
    }

    fn legacy(
        &self,
        shared: &Arc<Shared>,
        post: Post<'_>,
        caller: Option<Principal>,
        now: Instant,
        unix: UnixTime,
    ) -> Reply {
        shared.tick(now, unix);
        let refused = refuse_batch(&shared.lock().connection, &post);
        if let Some(response) = refused {
            return Reply::Full(response);
        }
        if !post.has_request() {
            let mut jobs = Vec::new();
            dispatch::post(shared, post.parsed, Some(caller), NO_STREAM, None, now, &mut jobs);
            shared.lock().wake_driver();
            // What is no request starts no handler.
            return Reply::Full(Response::accepted());
        }
        let (accepts, asked) = (post.accepts, post.request_id().is_some());
        let Some(mut exchange) = Exchange::post(shared, &self.0.endpoint, accepts, asked, now) else {
            return Reply::Full(unknown_session(post.request_id()));
        };
        let stream = exchange.stream();
        dispatch::post(shared, post.parsed, Some(caller), stream, None, now, exchange.jobs_mut());
        shared.lock().wake_driver();
        exchange.into_reply()
    }

    fn stream(&self, shared: &Arc<Shared>, last_event_id: Option<&str>, now: Instant) -> Reply {
        match Exchange::stream_of(shared, &self.0.endpoint, last_event_id, now) {
            Ok(exchange) => Reply::Exchange(exchange),
            Err(response) => Reply::Full(response),
        }
    }
}

/// 128 bits in hexadecimal: visible ASCII. [spec: basic/transports#session-management]
fn session_id(random: &[u8; 16]) -> alloc::string::String {
    use core::fmt::Write as _;
    random.iter().fold(alloc::string::String::with_capacity(32), |mut id, byte| {
        let _ = write!(id, "{byte:02x}"); // a String takes everything
        id
    })
}

fn too_many_sessions(id: Option<&RequestId>) -> Response {
    let error = Error::new(code::INTERNAL_ERROR, "Too many sessions are open");
    let mut response = Response::error(503, id, &error);
    response.head = response.head.with("retry-after", "10");
    response
}

/// The session is over: what runs in it is cancelled, its streams end, and its tasks cannot ask any more.
fn end(shared: &Shared) {
    let (calls, unanswerable) = {
        let mut state = shared.lock();
        if let Some(streaming) = &mut state.streaming {
            streaming.end();
        }
        let unanswerable = state.calls.input_ended();
        (state.abort(), unanswerable)
    };
    for call in calls {
        call.cancel();
    }
    for (call, key) in unanswerable {
        call.deliver(&key, Err(super::ask::connection_closed()));
    }
}

impl core::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HttpService").field("service", &self.0.service).finish_non_exhaustive()
    }
}
