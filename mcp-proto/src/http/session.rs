//! One legacy session over Streamable HTTP, for people with a loop of their own: 2025-03-26 to 2025-11-25.
//! [spec: 2025-11-25 basic/transports#streamable-http]
//!
//! Unlike an [`Exchange`](super::Exchange), which is one POST of 2026-07-28 and its response, a session has
//! many requests and responses at a time. What is answered goes to the stream of the POST that asked; what
//! belongs to no request goes to the stream that a GET opened. A [`Stream`] is one response that writes one
//! of them.
//!
//! ```
//! use mcp_proto::http::session::Session;
//! use mcp_proto::http::{Endpoint, Head, Response, Settings, Taken};
//! use mcp_proto::model::{EmptyResult, Implementation};
//! use mcp_proto::server::{Channel, Config, Event};
//! use mcp_proto::time::Instant;
//!
//! /// What one request is answered with, in a server of one session. `out` is the body.
//! fn serve(
//!     endpoint: &Endpoint,
//!     session: &mut Option<Session>,
//!     head: &impl Head,
//!     body: &[u8],
//!     now: Instant,
//!     out: &mut Vec<u8>,
//! ) -> Result<mcp_proto::http::ResponseHead, Response> {
//!     let (post, session) = match endpoint.take(head, body) {
//!         Taken::Initialize(post) => {
//!             // An id that nobody can guess: 128 random bits.
//!             let (opened, response) = Session::initialize(endpoint, post, "5b1c-example", now)?;
//!             *session = Some(opened);
//!             return Err(response);
//!         }
//!         Taken::Session(id, post) => match session {
//!             Some(session) if session.id() == id => (post, session),
//!             _ => return Err(mcp_proto::http::endpoint::unknown_session(post.request_id())),
//!         },
//!         Taken::Refused(response) => return Err(response),
//!         _ => return Err(Response::method_not_allowed("POST")),
//!     };
//!     let (stream, event) = session.post(post, now)?;
//!     if let Some(Event::Request(incoming)) = event {
//!         // The machine has answered `ping`; whatever else there is has no handler here.
//!         let refusal = incoming.not_found();
//!         let _ = session.refuse(refusal, &mut Vec::new());
//!     }
//!     let Some(mut stream) = stream else { return Err(Response::accepted()) };
//!     // All is answered, so all of it can be written at once.
//!     while !session.write(&mut stream, 64 << 10, out) {}
//!     Ok(stream.take_head().expect("it is decided with the first bytes"))
//! }
//!
//! # struct Post(Vec<(&'static str, &'static str)>);
//! # impl Head for Post {
//! #     fn method(&self) -> &str { "POST" }
//! #     fn path(&self) -> &str { "/mcp" }
//! #     fn query(&self) -> Option<&str> { None }
//! #     fn authority(&self) -> Option<&str> { None }
//! #     fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
//! #         let name = name.to_owned();
//! #         self.0.iter().filter(move |(n, _)| *n == name).map(|(_, v)| v.as_bytes())
//! #     }
//! # }
//! let config = Config::builder(Implementation::new("demo", "1.0.0")).build();
//! let endpoint = Endpoint::new(config, Settings::default());
//! let (mut session, mut out) = (None, Vec::new());
//! let head = Post(vec![("host", "localhost"), ("content-type", "application/json")]);
//! let body = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",
//!     "capabilities":{},"clientInfo":{"name":"client","version":"1"}}}"#;
//! let response = serve(&endpoint, &mut session, &head, body, Instant::ZERO, &mut out).unwrap_err();
//! assert_eq!(response.head.header("mcp-session-id"), Some("5b1c-example"));
//!
//! let head = Post([&head.0[..], &[("mcp-session-id", "5b1c-example")]].concat());
//! let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
//! let head = serve(&endpoint, &mut session, &head, ping, Instant::ZERO, &mut out).unwrap();
//! assert_eq!((head.status, &out[..]), (200, &br#"{"jsonrpc":"2.0","id":1,"result":{}}"#[..]));
//! ```

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::endpoint::{Endpoint, Post, Settings, unknown_session};
use super::exchange::Silence;
use super::head::ResponseHead;
use super::response::Response;
use super::router::Router;
use super::streams::StreamId;
use super::writer::Writer;
use crate::model::method::TaskResult;
use crate::model::{InputRequest, InputRequired, ProtocolVersion};
use crate::rpc::Parsed;
use crate::server::channel::sealed::Sealed;
use crate::server::inflight::Slot;
use crate::server::route::End;
use crate::server::{
    AskError, AskKey, Change, Channel, Config, Connection, Delivery, Event, Log, Pending, Progress,
    RequestKey,
};
use crate::time::Instant;

/// The number of no stream: what is no request comes on it.
pub(crate) const NO_STREAM: u64 = u64::MAX;

/// The server's side of one session.
///
/// Whoever answers does it through [`Channel`], as on every other transport. Only the `out` of its methods
/// stays as it is: what they write goes to the streams, and [`next_ready`](Self::next_ready) says which of
/// them have something to [write](Self::write). So after each call here, write those.
///
/// A client that goes away cancels nothing: [`disconnect`](Self::disconnect) its stream, and it can
/// [resume](Self::resume) it.
#[derive(Debug)]
pub struct Session {
    id: Box<str>,
    connection: Connection,
    router: Router,
    settings: Settings,
    /// What the machine writes, before it is in its stream.
    lines: Vec<u8>,
    /// Streams that have something new.
    ready: Vec<StreamId>,
}

/// One response of a session, which writes one of its streams.
///
/// Give it back with [`Session::disconnect`] if the client goes away before [`Session::write`] has said that
/// it is complete; otherwise the session takes it for one that is slow to read.
#[derive(Debug)]
#[must_use = "a stream that is lost is one that nobody reads"]
pub struct Stream {
    writer: Writer,
    silence: Silence,
    number: u64,
}

impl Stream {
    /// Which of the session's streams it writes.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The head of the response, once, as soon as it is known. It goes before the body.
    pub const fn take_head(&mut self) -> Option<ResponseHead> {
        self.writer.take_head()
    }

    /// The moment at which to call [`Session::keep_alive`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.writer.reader().and_then(|_| self.silence.deadline())
    }
}

/// Handles `initialize`: the machine of a new session, and the JSON text of the answer.
///
/// # Errors
///
/// The answer, if there is no session.
#[allow(clippy::result_large_err)] // the error is what is sent
pub(crate) fn handshake(
    config: &Arc<Config>,
    post: Post<'_>,
    now: Instant,
) -> Result<(Connection, ProtocolVersion, Vec<u8>), Response> {
    let accepts = post.accepts;
    let mut connection = Connection::routed(Arc::clone(config));
    let (mut lines, mut answer) = (Vec::new(), Vec::new());
    let _ = connection.take_parsed(post.parsed, now, &mut lines);
    connection.drain(&mut lines, |text, _| answer.extend_from_slice(text));
    match connection.session_version() {
        Some(version) => Ok((connection, version, answer)),
        None if answer.is_empty() => Err(Response::accepted()),
        None => Err(accepts.wrap(Response::json(400, answer))),
    }
}

/// The refusal of an array where there are none. [spec: 2025-06-18 changelog]
pub(crate) fn refuse_batch(connection: &Connection, post: &Post<'_>) -> Option<Response> {
    let has_batches = connection.session_version().is_some_and(ProtocolVersion::has_batches);
    (matches!(post.parsed, Parsed::Batch(_)) && !has_batches)
        .then(|| Response::refused(400, "this revision has no batches"))
}

impl Session {
    /// Begins with what [`Taken::Initialize`](super::Taken::Initialize) brought. `id` is the session's: it
    /// must be visible ASCII that nobody can guess, such as 128 random bits in hexadecimal.
    ///
    /// The session and the response to send come back.
    ///
    /// # Errors
    ///
    /// The response to send, if the handshake failed.
    #[allow(clippy::result_large_err)] // the error is what is sent
    pub fn initialize(
        endpoint: &Endpoint,
        post: Post<'_>,
        id: &str,
        now: Instant,
    ) -> Result<(Self, Response), Response> {
        let config = endpoint.config();
        let accepts = post.accepts;
        let (connection, version, answer) = handshake(config, post, now)?;
        let mut response = Response::json(200, answer);
        response.head = response.head.with("mcp-session-id", String::from(id));
        let session = Self {
            id: id.into(),
            connection,
            router: Router::new(version, &config.limits),
            settings: endpoint.settings().clone(),
            lines: Vec::new(),
            ready: Vec::new(),
        };
        Ok((session, accepts.preferring(endpoint.settings().events).wrap(response)))
    }

    /// What the client names it by. Compare the caller, too: an id is no proof of who sends it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The machine of the session, to look at.
    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Takes the messages of a POST. Without a stream the answer is [202](Response::accepted).
    ///
    /// With an [`Event::Batch`], hand over [each of its members](Self::handle_member) before anything else.
    ///
    /// # Errors
    ///
    /// The answer. Nothing has happened.
    #[allow(clippy::result_large_err, clippy::type_complexity)] // the error is what is sent
    pub fn post<'r>(
        &mut self,
        post: Post<'r>,
        now: Instant,
    ) -> Result<(Option<Stream>, Option<Event<'r>>), Response> {
        if self.router.is_ended() {
            return Err(unknown_session(post.request_id()));
        }
        if let Some(response) = refuse_batch(&self.connection, &post) {
            return Err(response);
        }
        let (accepts, asked) = (post.accepts, post.request_id().is_some());
        let stream = post.has_request().then(|| {
            let reader = self.router.open_post(accepts.sse);
            let number = reader.stream().number();
            let silence = Silence::new(self.settings.keep_alive, now);
            Stream { writer: Writer::post(reader, accepts, asked, &self.settings), silence, number }
        });
        let number = stream.as_ref().map_or(NO_STREAM, Stream::number);
        self.connection.routes.set_current(number);
        let event = self.connection.take_parsed(post.parsed, now, &mut self.lines);
        self.settle();
        Ok((stream, event))
    }

    /// See [`Connection::handle_member`].
    pub fn handle_member<'b>(&mut self, message: &'b RawValue, now: Instant) -> Option<Event<'b>> {
        self.through(|connection, lines| connection.handle_member(message, now, lines))
    }

    /// The stream of what belongs to no request, for a GET.
    ///
    /// # Errors
    ///
    /// The answer: 409 if it is read already, 404 if the session has ended.
    #[allow(clippy::result_large_err)] // the error is what is sent
    pub fn get(&mut self, now: Instant) -> Result<Stream, Response> {
        self.open(now, |router| router.open_get().ok_or_else(already_open))
    }

    /// What followed an event, on its stream, for a GET with `Last-Event-ID`. A response that reads the same
    /// stream is over then.
    ///
    /// # Errors
    ///
    /// The answer: 400 if nothing can be resumed from there, 404 if the session has ended.
    #[allow(clippy::result_large_err)] // the error is what is sent
    pub fn resume(&mut self, last_event_id: &str, now: Instant) -> Result<Stream, Response> {
        self.open(now, |router| router.resume(last_event_id).ok_or_else(not_resumable))
    }

    #[allow(clippy::result_large_err)] // the error is what is sent
    fn open(
        &mut self,
        now: Instant,
        open: impl FnOnce(&mut Router) -> Result<super::streams::Reader, Response>,
    ) -> Result<Stream, Response> {
        if self.router.is_ended() {
            return Err(unknown_session(None));
        }
        let reader = open(&mut self.router)?;
        let stream = reader.stream();
        // The one before must notice.
        note(&mut self.ready, stream);
        self.settle();
        let silence = Silence::new(self.settings.keep_alive, now);
        Ok(Stream { writer: Writer::get(reader, &self.settings), silence, number: stream.number() })
    }

    /// Appends to the body of a response what there is, one message or as many as fit into `room` bytes.
    /// Whether the response is complete; if not, and nothing was appended, wait until it is
    /// [ready](Self::next_ready). See each time whether [the head](Stream::take_head) is there.
    pub fn write(&mut self, stream: &mut Stream, room: usize, out: &mut Vec<u8>) -> bool {
        if stream.writer.is_get(&self.router) {
            // What was marked while the client was slow.
            self.settle();
        }
        stream.writer.write(&mut self.router, room, out)
    }

    /// A stream that has something to write, or is over: its number. Each is told once.
    pub fn next_ready(&mut self) -> Option<u64> {
        self.ready.pop().map(StreamId::number)
    }

    /// Bytes that a call has written and its client has yet to read: above
    /// [`Limits::output_high_water`](crate::limits::Limits::output_high_water) let it wait.
    #[must_use]
    pub fn backlog(&self, request: RequestKey) -> usize {
        self.router.backlog(&self.connection, request)
    }

    /// Shows that a response is alive, if it was silent for too long.
    pub fn keep_alive(&mut self, stream: &mut Stream, now: Instant, out: &mut Vec<u8>) {
        if stream.silence.is_over(now) {
            stream.writer.keep_alive(&mut self.router, out);
        }
    }

    /// The client of a response is gone. That cancels nothing: it may come back for the rest.
    pub fn disconnect(&mut self, mut stream: Stream) {
        stream.writer.release(&mut self.router);
    }

    /// Ends the response of a call, which goes on: the client comes back for the rest. Whether that was
    /// done: only 2025-11-25 has it.
    pub fn close_stream(&mut self, request: RequestKey) -> bool {
        let stream = self.router.let_go(&self.connection, request);
        if let Some(stream) = stream {
            note(&mut self.ready, stream);
        }
        stream.is_some()
    }

    /// A `tasks/result` request waits for the end of this task: what belongs to the task is said on its
    /// stream, unless there is a GET stream.
    pub fn await_task(&mut self, pending: &Pending<TaskResult>, task_id: &str) {
        let Some(stream) = self.connection.slot(pending.key()).map(|slot| slot.stream) else { return };
        let stream = StreamId::from_number(stream);
        if self.router.await_task(task_id, stream) {
            note(&mut self.ready, stream);
        }
    }

    /// See [`Connection::ask`].
    ///
    /// # Errors
    ///
    /// See [`AskError`].
    pub fn ask(
        &mut self,
        request: RequestKey,
        question: &InputRequest,
        now: Instant,
    ) -> Result<AskKey, AskError> {
        self.through(|connection, lines| connection.ask(request, question, now, lines))
    }

    /// See [`Connection::ask_for_task`].
    ///
    /// # Errors
    ///
    /// See [`AskError`].
    pub fn ask_for_task(
        &mut self,
        question: &InputRequest,
        task: &str,
        now: Instant,
    ) -> Result<AskKey, AskError> {
        self.through(|connection, lines| connection.ask_for_task(question, task, now, lines))
    }

    /// Marks a change for the GET stream, which is told when it can take it. See [`Connection::publish`].
    pub fn publish(&mut self, change: &Change<'_>) {
        self.connection.publish(change);
        self.settle();
    }

    /// See [`Connection::notify`]. It goes to the GET stream.
    pub fn notify(&mut self, method: &str, params: impl FnOnce(&mut Vec<u8>)) -> Delivery {
        self.through(|connection, lines| connection.notify(method, lines, params))
    }

    /// See [`Connection::end_task`].
    pub fn end_task(&mut self, key: RequestKey) {
        self.connection.end_task(key);
    }

    /// See [`Connection::abandon`].
    pub fn abandon(&mut self, key: RequestKey) -> Delivery {
        self.through(|connection, lines| connection.abandon(key, lines))
    }

    /// The moment at which to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.connection.next_deadline()
    }

    /// Lets time pass. Call it until it returns `None`.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Event<'static>> {
        self.through(|connection, lines| connection.handle_timeout(now, lines))
    }

    /// Whether nobody waits for anything of it: no request is open, and no response.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.connection.in_flight() == 0 && !self.router.has_readers()
    }

    /// Begins a graceful end: the GET stream ends once it is written. Calls go on.
    pub fn close(&mut self) {
        self.connection.close(&mut self.lines);
        self.router.close();
        self.settle();
    }

    /// The session is over, as after a DELETE: all responses are complete with what was written, or are 404.
    /// Drop it when they are.
    pub fn end(&mut self) {
        self.router.end();
    }

    /// Does something with the machine, and moves what it writes into the streams.
    fn through<T>(&mut self, use_it: impl FnOnce(&mut Connection, &mut Vec<u8>) -> T) -> T {
        let done = use_it(&mut self.connection, &mut self.lines);
        self.settle();
        done
    }

    /// Moves what the machine wrote into the streams.
    fn settle(&mut self) {
        let Self { router, connection, lines, ready, .. } = self;
        router.settle(connection, lines, |stream| note(ready, stream));
    }
}

fn note(ready: &mut Vec<StreamId>, stream: StreamId) {
    if !ready.contains(&stream) {
        ready.push(stream);
    }
}

pub(crate) fn not_resumable() -> Response {
    Response::refused(400, "`Last-Event-ID` names no event that can be resumed from")
}

pub(crate) fn already_open() -> Response {
    Response::refused(409, "the session has a GET stream already")
}

impl Sealed for Session {
    fn slot(&self, key: RequestKey) -> Option<&Slot> {
        self.connection.slot(key)
    }

    fn finish(
        &mut self,
        key: RequestKey,
        granted: bool,
        _: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>, &Slot, &Config) -> End,
    ) -> Delivery {
        self.through(|connection, lines| connection.finish(key, granted, lines, write))
    }

    fn bridge(&mut self, key: RequestKey, input: &InputRequired, _: &mut Vec<u8>) -> Delivery {
        self.through(|connection, lines| connection.bridge(key, input, lines))
    }

    fn begin_task(&mut self, key: RequestKey, task: &[u8]) {
        self.connection.begin_task(key, task);
    }
}

impl Channel for Session {
    fn progress_of(&mut self, key: RequestKey, progress: Progress<'_>, _: &mut Vec<u8>) -> Delivery {
        self.through(|connection, lines| connection.progress_of(key, progress, lines))
    }

    fn log_of(&mut self, key: RequestKey, log: Log<'_>, _: &mut Vec<u8>) -> Delivery {
        self.through(|connection, lines| connection.log_of(key, log, lines))
    }
}
