//! One endpoint for all revisions: what becomes of a request is decided here, before anything runs.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::cors::Cors;
use super::era::{self, Refusal, Route};
use super::head::Head;
use super::media::{self, Accepts};
use super::mirror;
use super::origin::Origins;
use super::response::Response;
use super::value;
use crate::model::ProtocolVersion;
use crate::model::meta::key as meta_key;
use crate::model::method::ServerMethod;
use crate::rpc::{self, Error, Message, Params, Parsed, RequestId, code, str_from_json};
use crate::server::Config;

/// What an endpoint is set to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Who may talk to it. By default those on this machine.
    pub origins: Origins,
    /// When an answer is a stream of events.
    pub events: Events,
    /// How long a stream may be silent at most, for proxies cut off what is silent: so often a comment shows
    /// that it is alive, whatever else is sent. 15 seconds; `None` = never.
    pub keep_alive: Option<Duration>,
    /// How long a legacy client should wait before it comes back to a stream that was cut.
    pub retry: Option<Duration>,
    /// Where clients of 2024-11-05 find the transport that they know. Off by default.
    pub sse: Option<HttpSse>,
    /// Refuses what clients must not do though its meaning is clear: an `Accept` of a POST that does not take
    /// both JSON and events (406), and in a session of 2025-06-18 or later an `MCP-Protocol-Version` that is
    /// missing or is not the negotiated one (400). Off by default: then the answer is of a type that the client
    /// takes, and the session's version counts, whichever served one a header names.
    pub strict: bool,
    /// Lets the pages of allowed [origins](Self::origins) read what they are answered, and answers the browsers
    /// that ask beforehand. Off by default.
    pub cors: Option<Cors>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            origins: Origins::loopback(),
            events: Events::WhenNeeded,
            keep_alive: Some(Duration::from_secs(15)),
            retry: Some(Duration::from_secs(1)),
            sse: None,
            strict: false,
            cors: None,
        }
    }
}

impl Settings {
    /// Serves the transport of 2024-11-05, too: a stream at `/sse`, whose messages go to `/messages`.
    #[must_use]
    pub fn with_sse(mut self) -> Self {
        self.sse = Some(HttpSse::default());
        self
    }

    /// Lets the pages of allowed origins read what they are answered.
    #[must_use]
    pub fn with_cors(mut self) -> Self {
        self.cors = Some(Cors::default());
        self
    }
}

/// The two URLs of the transport of 2024-11-05. [spec: 2024-11-05 basic/transports#http-with-sse]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpSse {
    /// The path of the stream: `/sse`.
    pub stream: Cow<'static, str>,
    /// The path that messages are posted to: `/messages`. The stream tells it to its client.
    pub messages: Cow<'static, str>,
}

impl Default for HttpSse {
    fn default() -> Self {
        Self { stream: Cow::Borrowed("/sse"), messages: Cow::Borrowed("/messages") }
    }
}

/// When an answer is a stream of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Events {
    /// If something precedes the answer, or if it takes longer than the keep-alive time; JSON otherwise.
    #[default]
    WhenNeeded,
    /// Always, where the client takes it.
    Always,
}

/// The rules of one URL.
///
/// Call [`admit`](Self::admit) with the head, then look at the caller's token if you ask for one, then read
/// the body and call [`take`](Self::take).
#[derive(Debug, Clone)]
pub struct Endpoint {
    config: Arc<Config>,
    settings: Settings,
}

/// What a request is, and where it goes.
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // made in order to be matched
pub enum Taken<'r> {
    /// It is answered with this. Nothing has run.
    Refused(Response),
    /// A message of 2026-07-28: to an [`Exchange`](super::Exchange) of its own.
    Modern(Post<'r>),
    /// `initialize` of a legacy client: to a [`Session`](super::Session) of its own.
    Initialize(Post<'r>),
    /// Messages for the session of that id. The answer is 404 if there is no such session.
    Session(&'r str, Post<'r>),
    /// The GET stream of the session of that id, or a stream that is resumed.
    Stream {
        /// The session.
        session: &'r str,
        /// The last event that the client saw, if it resumes one.
        last_event_id: Option<&'r str>,
    },
    /// The end of the session of that id.
    End(&'r str),
}

/// The messages of a POST.
#[derive(Debug)]
#[non_exhaustive]
pub struct Post<'r> {
    pub(crate) parsed: Parsed<'r>,
    pub(crate) accepts: Accepts,
}

impl Post<'_> {
    /// The id of the request, if it is one.
    #[must_use]
    pub fn request_id(&self) -> Option<&RequestId> {
        id_of(&self.parsed)
    }

    /// Whether the client waits for an answer: there is a request in it.
    #[must_use]
    pub fn has_request(&self) -> bool {
        match &self.parsed {
            Parsed::Message(message) => matches!(message, Message::Request { .. }),
            // What is in an array is seen when it is handled.
            Parsed::Batch(_) => true,
        }
    }
}

impl Endpoint {
    /// The endpoint of a server.
    #[must_use]
    pub const fn new(config: Arc<Config>, settings: Settings) -> Self {
        Self { config, settings }
    }

    /// What the server is.
    #[must_use]
    pub const fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// What the endpoint is set to.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The methods that there are.
    const fn methods(legacy: bool) -> &'static str {
        if legacy { "GET, POST, DELETE" } else { "POST" }
    }

    /// Looks at the head alone: by whom, to whom, and with which method. Needs no body.
    ///
    /// # Errors
    ///
    /// The answer: 403, 405, or if [`Settings::cors`] is set, what a browser wants to know before a page sends
    /// something (204).
    #[allow(clippy::result_large_err)] // the error is what is sent
    pub fn admit(&self, head: &impl Head) -> Result<(), Response> {
        self.settings.origins.check(head).map_err(|refused| Response::refused(403, refused))?;
        if let Some(answer) = self.preflight(head) {
            return Err(answer);
        }
        let legacy = self.config.latest_legacy().is_some();
        match self.settings.sse.as_ref().filter(|_| legacy) {
            Some(sse) if head.path() == sse.stream => return only(head, "GET"),
            Some(sse) if head.path() == sse.messages => return only(head, "POST"),
            _ => {}
        }
        match head.method() {
            "POST" => Ok(()),
            "GET" | "DELETE" if legacy && !self.is_modern(head) => Ok(()),
            _ => Err(Response::method_not_allowed(Self::methods(legacy))),
        }
    }

    /// The answer to a browser that asks what a page may send, if [`Settings::cors`] is set and that is what it
    /// asks. Whether the page may send anything at all is said by [`Origins::check`].
    #[must_use]
    pub fn preflight(&self, head: &impl Head) -> Option<Response> {
        let cors = self.settings.cors.filter(|_| Cors::is_preflight(head))?;
        let legacy = self.config.latest_legacy().is_some();
        Some(cors.preflight(head, Self::methods(legacy)))
    }

    /// What to add to the head of every response, whatever it is, so that the page which asked may read it.
    /// Nothing if [`Settings::cors`] is not set.
    #[must_use]
    pub fn cors_headers(&self, head: &impl Head) -> Vec<(&'static str, Cow<'static, str>)> {
        match self.settings.cors {
            Some(_) => Cors::shared(head, &self.settings.origins),
            None => Vec::new(),
        }
    }

    /// Whether a head names a revision that has nothing but POST.
    fn is_modern(&self, head: &impl Head) -> bool {
        let version = head.value("mcp-protocol-version").ok().flatten();
        version
            .and_then(|raw| core::str::from_utf8(raw).ok())
            .and_then(|name| self.config.served(name.trim()))
            .is_some_and(|version| version.is_modern())
    }

    /// Looks at the whole request, which was [admitted](Self::admit).
    pub fn take<'r>(&self, head: &'r impl Head, body: &'r [u8]) -> Taken<'r> {
        match head.method() {
            "POST" => self.post(head, body),
            "GET" => self.stream(head),
            _ => match self.session(head) {
                Ok(id) => Taken::End(id),
                Err(response) => Taken::Refused(response),
            },
        }
    }

    fn post<'r>(&self, head: &'r impl Head, body: &'r [u8]) -> Taken<'r> {
        if let Err(why) = media::is_json(head) {
            return Taken::Refused(Response::refused(415, why));
        }
        let accepts = media::accepts(head);
        let takes =
            if self.settings.strict { accepts.json && accepts.sse } else { accepts.json || accepts.sse };
        if !takes {
            let why = "expected `Accept: application/json, text/event-stream`";
            return Taken::Refused(Response::refused(406, why));
        }
        let parsed = match rpc::parse(body, &self.config.limits) {
            Ok(parsed) => parsed,
            Err(malformed) => {
                return Taken::Refused(Response::error(400, malformed.id.as_ref(), &malformed.error));
            }
        };
        let kind = match &parsed {
            Parsed::Batch(_) => era::Body::Batch,
            Parsed::Message(Message::Request { method, params, .. })
            | Parsed::Message(Message::Notification { method, params }) => {
                era::Body::Call { method, stamped: params.meta().get(meta_key::PROTOCOL_VERSION).is_some() }
            }
            Parsed::Message(_) => era::Body::Response,
        };
        let route = era::classify(head, kind, &self.config.versions);
        match route {
            Route::Modern => self.modern(head, Post { parsed, accepts }),
            Route::Initialize => Taken::Initialize(Post { parsed, accepts }),
            Route::Session { id, .. } => Taken::Session(id, Post { parsed, accepts }),
            Route::Sessionless { .. } => {
                let error = Error::invalid_request("Invalid request: expected the header `Mcp-Session-Id`");
                Taken::Refused(Response::error(400, id_of(&parsed), &error))
            }
            Route::Refused(refusal) => Taken::Refused(self.refused(refusal, id_of(&parsed))),
        }
    }

    /// Whether a request of a session names the version that the session has settled on, where that is
    /// [asked for](Settings::strict). [spec: 2025-06-18 basic/transports#protocol-version-header]
    ///
    /// # Errors
    ///
    /// The answer: 400.
    #[allow(clippy::result_large_err)] // the error is what is sent
    pub fn check_session_version(&self, head: &impl Head, settled: ProtocolVersion) -> Result<(), Response> {
        if !self.settings.strict || !settled.has_version_header() {
            return Ok(());
        }
        let named = head.value("mcp-protocol-version").ok().flatten().and_then(|raw| value::plain(raw).ok());
        if named == Some(settled.as_str()) {
            return Ok(());
        }
        let found = match named {
            Some(name) => alloc::format!("{}", rpc::Short(name)),
            None => "none".into(),
        };
        let why = alloc::format!("expected `MCP-Protocol-Version: {settled}`, as negotiated; found {found}");
        Err(Response::refused(400, why))
    }

    /// What the headers of a 2026-07-28 request must say. The body's own faults come first, and the machine
    /// finds those. [spec: basic/transports/streamable-http#request-metadata]
    fn modern<'r>(&self, head: &impl Head, post: Post<'r>) -> Taken<'r> {
        if let Parsed::Message(Message::Request { id, method, params }) = &post.parsed {
            if let Some(version) = complete(params)
                && let Err(error) = mirror::check_standard(head, method, params, &version)
            {
                return Taken::Refused(Response::error(400, Some(id), &error));
            }
            if ServerMethod::parse(method) == Some(ServerMethod::Listen) && !post.accepts.sse {
                let why = "Invalid request: a subscription needs `Accept: text/event-stream`";
                return Taken::Refused(Response::error(406, Some(id), &Error::invalid_request(why)));
            }
        }
        Taken::Modern(post)
    }

    fn stream<'r>(&self, head: &'r impl Head) -> Taken<'r> {
        if !media::accepts(head).sse {
            return Taken::Refused(Response::refused(406, "expected `Accept: text/event-stream`"));
        }
        let session = match self.session(head) {
            Ok(session) => session,
            Err(response) => return Taken::Refused(response),
        };
        match head.value("last-event-id").map(|raw| raw.map(core::str::from_utf8)) {
            Ok(None) => Taken::Stream { session, last_event_id: None },
            Ok(Some(Ok(id))) => Taken::Stream { session, last_event_id: Some(id) },
            _ => Taken::Refused(Response::refused(400, "`Last-Event-ID` is no id of an event")),
        }
    }

    /// The session that a request without a body names.
    #[allow(clippy::result_large_err)] // the error is what is sent
    fn session<'r>(&self, head: &'r impl Head) -> Result<&'r str, Response> {
        match era::classify(head, era::Body::Response, &self.config.versions) {
            Route::Session { id, .. } => Ok(id),
            Route::Refused(refusal) => Err(self.refused(refusal, None)),
            _ => Err(self.refused(Refusal::NoSession, None)),
        }
    }

    fn refused(&self, refusal: Refusal<'_>, id: Option<&RequestId>) -> Response {
        let versions = || {
            let names: Vec<_> = self.config.versions.iter().map(|v| v.as_str()).collect();
            names.join(", ")
        };
        let (status, why) = match refusal {
            Refusal::UnknownSession => return unknown_session(id),
            Refusal::Repeated(name) => (400, alloc::format!("`{name}` stands more than once")),
            Refusal::UnsupportedVersion(found) => (
                400,
                alloc::format!(
                    "`MCP-Protocol-Version: {}` is not served; served: {}",
                    rpc::Short(found),
                    versions()
                ),
            ),
            Refusal::NoVersion => {
                (400, alloc::format!("expected `MCP-Protocol-Version`: one of {}", versions()))
            }
            Refusal::NotInRevision(version) => {
                (400, alloc::format!("{version} has no such message from a client"))
            }
            Refusal::NoSession => (400, "expected the header `Mcp-Session-Id`".into()),
        };
        Response::error(status, id, &Error::invalid_request(alloc::format!("Invalid request: {why}")))
    }
}

#[allow(clippy::result_large_err)] // the error is what is sent
fn only(head: &impl Head, method: &'static str) -> Result<(), Response> {
    if head.method() == method { Ok(()) } else { Err(Response::method_not_allowed(method)) }
}

/// The answer to whoever names a session that is not there, was never there, or belongs to someone else.
#[must_use]
pub fn unknown_session(id: Option<&RequestId>) -> Response {
    Response::error(404, id, &Error::new(code::INVALID_REQUEST, "Unknown session: initialize a new one"))
}

fn id_of<'p>(parsed: &'p Parsed<'_>) -> Option<&'p RequestId> {
    match parsed {
        Parsed::Message(Message::Request { id, .. }) => Some(id),
        _ => None,
    }
}

/// The version that a request names, if its metadata is complete.
fn complete<'b>(params: &Params<'b>) -> Option<alloc::borrow::Cow<'b, str>> {
    params.check().ok()?;
    let meta = params.meta();
    let version = str_from_json(meta.get(meta_key::PROTOCOL_VERSION)?.get())?;
    meta.get(meta_key::CLIENT_CAPABILITIES).filter(|raw| raw.get().starts_with('{'))?;
    Some(version)
}
