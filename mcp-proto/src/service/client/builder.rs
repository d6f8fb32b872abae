//! Declaring a client. What a server may ask of it follows from what is registered.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::catch_unwind;

use super::handle::Connecting;
use super::http::HttpLink;
use super::link::Link;
use super::respond::{Asking, Refusal, Responders, responder};
use super::shared::Shared;
use crate::client::http::{Settings, Token, Unauthorized};
use crate::client::{CallError, CallOptions, Change, Config, Mode, Verdict, Violation};
use crate::limits::Limits;
use crate::model::{
    ClientCapabilities, CreateMessage, CreateMessageResult, ElicitForm, ElicitResult, ElicitUrl,
    Implementation, Json, LogMessage, ProtocolVersion, Root, Str, TASKS_EXTENSION,
};

/// A client in the making. Cheap to clone: one can be connected to many servers.
///
/// The adapters' `connect` makes a [`Client`](super::Client) of it. Of what a client answers (`on_elicit`, `on_sample`,
/// `on_unauthorized`) the last that was set counts. What it hears (`on_log`, `on_change`, …) all hear that were set.
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    identity: Implementation,
    versions: Vec<ProtocolVersion>,
    mode: Mode,
    assumed: Option<Verdict>,
    limits: Limits,
    probe_timeout: Duration,
    handshake_timeout: Option<Duration>,
    check_capabilities: bool,
    tasks: bool,
    sampling_tools: bool,
    sampling_context: bool,
    roots: Option<Vec<Root>>,
    extensions: Vec<(Str, Json)>,
    options: CallOptions,
    hooks: Hooks,
}

/// What the user of a client wants to be called with.
#[derive(Clone, Default)]
pub(super) struct Hooks {
    pub(super) responders: Responders,
    on_change: Vec<Hook<Change>>,
    on_log: Vec<Hook<LogMessage>>,
    on_violation: Vec<Hook<Violation>>,
    on_stream_lost: Vec<Hook<CallError>>,
    on_elicitation_complete: Vec<Hook<Str>>,
    #[allow(clippy::type_complexity)] // used once
    on_notification: Vec<Arc<dyn Fn(&str, &Json) + Send + Sync>>,
}

type Hook<T> = Arc<dyn Fn(T) + Send + Sync>;

fn hear<T: Clone>(hooks: &[Hook<T>], what: T) {
    let Some((last, others)) = hooks.split_last() else { return };
    for hook in others {
        let what = what.clone();
        // A panic there is not the link's end.
        let _ = catch_unwind(AssertUnwindSafe(|| hook(what)));
    }
    let _ = catch_unwind(AssertUnwindSafe(|| last(what)));
}

impl Hooks {
    pub(super) fn log(&self, message: LogMessage) {
        hear(&self.on_log, message);
    }

    pub(super) const fn hears_changes(&self) -> bool {
        !self.on_change.is_empty()
    }

    pub(super) fn change(&self, change: Change) {
        hear(&self.on_change, change);
    }

    pub(super) fn violation(&self, violation: Violation) {
        hear(&self.on_violation, violation);
    }

    pub(super) fn stream_lost(&self, why: CallError) {
        hear(&self.on_stream_lost, why);
    }

    pub(super) fn elicitation_complete(&self, elicitation_id: Str) {
        hear(&self.on_elicitation_complete, elicitation_id);
    }

    pub(super) const fn hears_notifications(&self) -> bool {
        !self.on_notification.is_empty()
    }

    pub(super) fn notification(&self, method: &str, params: &Json) {
        for hook in &self.on_notification {
            let _ = catch_unwind(AssertUnwindSafe(|| hook(method, params)));
        }
    }
}

impl ClientBuilder {
    pub(super) fn new(identity: Implementation) -> Self {
        Self {
            identity,
            versions: Vec::new(),
            mode: Mode::Auto,
            assumed: None,
            limits: Limits::default(),
            probe_timeout: Duration::from_secs(10),
            handshake_timeout: None,
            check_capabilities: true,
            tasks: true,
            sampling_tools: false,
            sampling_context: false,
            roots: None,
            extensions: Vec::new(),
            options: CallOptions::default(),
            hooks: Hooks::default(),
        }
    }

    /// Lets servers ask the user by form. An answer that does not fit the form is not sent.
    /// [spec: client/elicitation]
    pub fn on_elicit<F, Fut>(mut self, respond: F) -> Self
    where
        F: Fn(ElicitForm, Asking) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, Refusal>> + Send + 'static,
    {
        self.hooks.responders.elicit = Some(responder(respond));
        self
    }

    /// Lets servers send the user to a URL. Show it in full and open it only with consent; it may come from
    /// anyone. [spec: client/elicitation#url-mode-elicitation-requests]
    pub fn on_elicit_url<F, Fut>(mut self, respond: F) -> Self
    where
        F: Fn(ElicitUrl, Asking) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, Refusal>> + Send + 'static,
    {
        self.hooks.responders.elicit_url = Some(responder(respond));
        self
    }

    /// Lets servers ask a model. [spec: client/sampling]
    pub fn on_sample<F, Fut>(mut self, respond: F) -> Self
    where
        F: Fn(CreateMessage, Asking) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, Refusal>> + Send + 'static,
    {
        self.hooks.responders.sample = Some(responder(respond));
        self
    }

    /// Says that the responder of [`on_sample`](Self::on_sample) lets the model use tools of the server.
    pub const fn sampling_tools(mut self) -> Self {
        self.sampling_tools = true;
        self
    }

    /// Says that the responder of [`on_sample`](Self::on_sample) adds context of other servers if asked.
    pub const fn sampling_context(mut self) -> Self {
        self.sampling_context = true;
        self
    }

    /// Lets servers ask for the files and folders to work on. They can be changed later, with
    /// [`set_roots`](super::Client::set_roots). [spec: client/roots]
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.roots = Some(roots.into_iter().collect());
        self
    }

    /// Gets access tokens. HTTP: called when the server asks for one, or for one that allows more; what was
    /// refused is sent again with it, once the token is there. One search at a time.
    /// [spec: basic/authorization]
    pub fn on_unauthorized<F, Fut>(mut self, get: F) -> Self
    where
        F: Fn(Unauthorized) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Token, Refusal>> + Send + 'static,
    {
        self.hooks.responders.token = Some(Arc::new(move |why| Box::pin(get(why))));
        self
    }

    /// Hears what servers log. What is logged at all: [`set_level`](super::Client::set_level).
    pub fn on_log(mut self, hear: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        self.hooks.on_log.push(Arc::new(hear));
        self
    }

    /// Hears when a list of the server changes, in every revision: where it takes a subscription, one is
    /// opened. Single resources: [`listen`](super::Client::listen).
    pub fn on_change(mut self, hear: impl Fn(Change) + Send + Sync + 'static) -> Self {
        self.hooks.on_change.push(Arc::new(hear));
        self
    }

    /// Hears what the server does wrong, for logs.
    pub fn on_violation(mut self, hear: impl Fn(Violation) + Send + Sync + 'static) -> Self {
        self.hooks.on_violation.push(Arc::new(hear));
        self
    }

    /// Hears that the stream is gone on which a legacy server over HTTP tells of changes and asks, and why. It
    /// is tried again when the server takes a call; until then, look at lists anew instead of waiting for
    /// changes.
    pub fn on_stream_lost(mut self, hear: impl Fn(CallError) + Send + Sync + 'static) -> Self {
        self.hooks.on_stream_lost.push(Arc::new(hear));
        self
    }

    /// Hears that what the user was sent to by URL is done, by the id of the elicitation. 2025-11-25.
    pub fn on_elicitation_complete(mut self, hear: impl Fn(Str) + Send + Sync + 'static) -> Self {
        self.hooks.on_elicitation_complete.push(Arc::new(hear));
        self
    }

    /// Hears notifications that the specification does not have: the method, and the params as an object.
    pub fn on_notification(mut self, hear: impl Fn(&str, &Json) + Send + Sync + 'static) -> Self {
        self.hooks.on_notification.push(Arc::new(hear));
        self
    }

    /// Which eras are tried. Both.
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The revisions spoken, the preferred one first. All.
    pub fn versions(mut self, versions: impl IntoIterator<Item = ProtocolVersion>) -> Self {
        self.versions = versions.into_iter().collect();
        self
    }

    /// Takes what an earlier connection found out: [`verdict`](super::Client::verdict).
    pub fn assume(mut self, verdict: impl Into<Option<Verdict>>) -> Self {
        self.assumed = verdict.into();
        self
    }

    /// What is [assumed](Self::assume).
    #[must_use]
    pub const fn assumed(&self) -> Option<Verdict> {
        self.assumed
    }

    /// The bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long a server on pipes may be silent to `server/discover` before it is taken for a legacy one. 10
    /// seconds.
    pub const fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_timeout = timeout;
        self
    }

    /// How long `initialize` may take, or `server/discover` where no other handshake is left. 60 seconds.
    pub const fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = Some(timeout);
        self
    }

    /// How calls are made that say nothing else.
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// How long calls wait for an answer. 60 seconds.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.options.timeout = timeout.into();
        self
    }

    /// Whether a call fails on this side if the server did not declare that it has what is called. On.
    pub const fn check_capabilities(mut self, on: bool) -> Self {
        self.check_capabilities = on;
        self
    }

    /// Whether servers may make tasks of calls, which are then polled to their end. On.
    /// [spec: extensions/tasks]
    pub const fn tasks(mut self, on: bool) -> Self {
        self.tasks = on;
        self
    }

    /// Declares an extension.
    pub fn extension(mut self, id: impl Into<Str>, settings: Json) -> Self {
        self.extensions.push((id.into(), settings));
        self
    }

    /// What servers are told that they may ask.
    #[must_use]
    pub fn capabilities(&self) -> ClientCapabilities {
        let mut has = ClientCapabilities::new();
        let Responders { elicit, elicit_url, sample, .. } = &self.hooks.responders;
        if elicit.is_some() {
            has = has.form_elicitation();
        }
        if elicit_url.is_some() {
            has = has.url_elicitation();
        }
        if sample.is_some() {
            has = has.sampling();
            if self.sampling_tools {
                has = has.sampling_tools();
            }
            if self.sampling_context {
                has = has.sampling_context();
            }
        }
        if self.roots.is_some() {
            has = has.roots_list_changed();
        }
        if self.tasks {
            has = has.extension(TASKS_EXTENSION, Json::empty_object());
        }
        self.extensions.iter().fold(has, |has, (id, settings)| has.extension(id.clone(), settings.clone()))
    }

    /// A connection over one byte stream, in two halves: the link is for the adapter that has the bytes, and
    /// the other half becomes the [`Client`](super::Client).
    pub fn link(self) -> (Connecting, Link) {
        let config = self.config();
        let shared = Shared::new();
        let connecting = Connecting::new(Arc::clone(&shared), self.options, config.limits.max_pages);
        (connecting, Link::new(config, shared, Box::new(self.hooks), self.roots.unwrap_or_default()))
    }

    /// A connection over HTTP, in two halves: the link is for the adapter that has the sockets, and the other
    /// half becomes the [`Client`](super::Client).
    pub fn http_link(self, settings: Settings) -> (Connecting, HttpLink) {
        let config = self.config();
        let shared = Shared::new();
        let settings = match self.hooks.responders.token {
            Some(_) => settings.gets_tokens(true),
            None => settings,
        };
        let connecting = Connecting::new(Arc::clone(&shared), self.options, config.limits.max_pages);
        let roots = self.roots.unwrap_or_default();
        (connecting, HttpLink::new(config, settings, shared, Box::new(self.hooks), roots))
    }

    fn config(&self) -> Arc<Config> {
        let mut config = Config::builder(self.identity.clone())
            .capabilities(self.capabilities())
            .versions(self.versions.iter().copied())
            .mode(self.mode)
            .assume(self.assumed)
            .limits(self.limits.clone())
            .probe_timeout(self.probe_timeout)
            .check_capabilities(self.check_capabilities);
        if let Some(timeout) = self.handshake_timeout {
            config = config.handshake_timeout(timeout);
        }
        config.build()
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("identity", &self.identity).finish_non_exhaustive()
    }
}
