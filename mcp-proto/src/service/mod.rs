//! Handlers as futures, without a runtime: declare tools, resources and prompts as typed functions, and
//! give each byte stream a [`Session`] that an adapter drives.
//!
//! ```
//! use mcp_proto::service::{Server, Structured, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add { a: f64, b: f64 }
//! #[derive(serde::Serialize, schemars::JsonSchema)]
//! struct Sum { sum: f64 }
//!
//! let service = Server::new("demo", "1.0.0")
//!     .tool("add", |_, p: Add| async move { Ok(Structured(Sum { sum: p.a + p.b })) })
//!     .resource("greeting://{name}", |_, (name,): (String,)| async move { Ok(format!("Hello, {name}!")) })
//!     .build()?;
//! # Ok::<(), mcp_proto::service::BuildError>(())
//! ```

mod ask;
pub mod auth;
mod builder;
mod bus;
mod call;
mod calls;
pub mod client;
mod dispatch;
mod error;
mod handler;
pub mod http;
mod job;
#[cfg(feature = "jwt")]
pub mod jwt;
mod schema;
mod scope;
mod session;
mod tasks;
#[cfg(feature = "tracing")]
mod trace;
mod validate;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use core::time::Duration;
use std::sync::{Mutex, OnceLock, PoisonError};

pub use ask::{Ask, AskError};
pub use auth::{Audience, Authorizer, Denial, Denied, TokenError, TokenVerifier, Verified};
pub use builder::{
    BuildError, Item, PromptDef, ResourceDef, Server, ToolDef, prompt, raw_tool, resource, tool,
};
pub use bus::{ChangeBus, Changes};
pub use call::{BoxFuture, Cancelled, Ctx};
pub use error::ToolError;
pub use handler::{
    CompletionRequest, CustomRequest, FromVariables, IntoContents, IntoPrompt, IntoToolResult, NoArguments,
    PromptRequest, ResourceRequest, Structured,
};
pub use job::Job;
pub use schema::Elicit;
pub use scope::InsufficientScope;
pub use session::Session;

pub use crate::registry::Kind;
pub use crate::server::{InvalidScope, Principal, Progress, Scopes};

use crate::model::method::{CompleteParams, CompletionReference, ServerMethod};
use crate::model::{ProtocolVersion, Str, TaskSupport};
use crate::random::{OsRandom, Random};
use crate::registry::{Completable, Registry};
use crate::rpc::{Error, Params, code};
use crate::server::{Change, Config, RequestKey};
use crate::state::{Binding, Digest, KeyRing, Sealed, UnverifiedState};
use crate::time::UnixTime;
use handler::{Completer, Custom, PromptCall, ResourceRead, ToolCall};
use session::Shared;

/// A server that is ready: open a [`Session`] of it for each byte stream. Cheap to clone.
#[derive(Clone)]
pub struct Service(Arc<Inner>);

pub(crate) struct Inner {
    config: Arc<Config>,
    registry: Registry<usize>,
    tools: Vec<ToolEntry>,
    resources: Vec<ResourceEntry>,
    prompts: Vec<PromptEntry>,
    completers: BTreeMap<(Str, Str), Completer>,
    custom: BTreeMap<Str, Custom>,
    keys: KeyRing,
    audience: String,
    state_ttl: Duration,
    random: Mutex<OsRandom>,
    tasks: Mutex<tasks::Tasks>,
    clock: OnceLock<Clock>,
    bus: OnceLock<Box<dyn ChangeBus>>,
    /// The newest time that HTTP requests came at, in milliseconds.
    seen: AtomicU64,
    on_notification: Option<builder::NotificationHandler>,
    implies: Option<scope::Implies>,
    sessions: Mutex<Vec<Weak<Shared>>>,
}

/// The wall clock of the one who runs the service.
type Clock = Box<dyn Fn() -> UnixTime + Send + Sync>;

pub(crate) struct ToolEntry {
    pub(crate) call: ToolCall,
    pub(crate) task: TaskSupport,
    /// The handler decides when a call becomes a task.
    pub(crate) decides: bool,
}

pub(crate) struct ResourceEntry {
    pub(crate) read: ResourceRead,
}

pub(crate) struct PromptEntry {
    pub(crate) call: PromptCall,
}

impl Inner {
    #[allow(clippy::too_many_arguments)] // one caller: the builder's last step
    fn new(
        config: Arc<Config>,
        registry: Registry<usize>,
        (tools, resources, prompts): (Vec<ToolEntry>, Vec<ResourceEntry>, Vec<PromptEntry>),
        completers: BTreeMap<(Str, Str), Completer>,
        custom: BTreeMap<Str, Custom>,
        keys: Option<KeyRing>,
        audience: String,
        state_ttl: Duration,
        (task_ttl, task_poll): (Option<Duration>, Duration),
        on_notification: Option<builder::NotificationHandler>,
        implies: Option<scope::Implies>,
    ) -> Result<Self, BuildError> {
        let mut random = OsRandom::new().map_err(|_| BuildError::NoRandomness)?;
        let keys = keys.unwrap_or_else(|| KeyRing::random(&mut random));
        Ok(Self {
            tasks: Mutex::new(tasks::Tasks::new(&config.limits, task_ttl, task_poll)),
            config,
            registry,
            tools,
            resources,
            prompts,
            completers,
            custom,
            keys,
            audience,
            state_ttl,
            random: Mutex::new(random),
            clock: OnceLock::new(),
            bus: OnceLock::new(),
            seen: AtomicU64::new(0),
            on_notification,
            implies,
            sessions: Mutex::new(Vec::new()),
        })
    }
}

impl Service {
    fn assemble(inner: Inner) -> Result<Self, BuildError> {
        Ok(Self(Arc::new(inner)))
    }

    /// What the server is.
    #[must_use]
    pub fn config(&self) -> &Arc<Config> {
        &self.0.config
    }

    /// The wall clock, for tasks that change between two turns of a stream. Adapters set it; the first one
    /// counts. Without it the time of the stream's last turn is used.
    pub fn use_clock(&self, clock: impl Fn() -> UnixTime + Send + Sync + 'static) {
        let _ = self.0.clock.set(Box::new(clock));
    }

    /// Shows an item that was hidden, and tells subscribers of the list. Whether it was hidden.
    pub fn show(&self, kind: Kind, name: &str) -> bool {
        self.switch(kind, name, true)
    }

    /// Hides an item: it is neither listed nor can it be used until it is shown again. Subscribers of the
    /// list are told. Whether it was visible.
    pub fn hide(&self, kind: Kind, name: &str) -> bool {
        self.switch(kind, name, false)
    }

    fn switch(&self, kind: Kind, name: &str, on: bool) -> bool {
        let changed = self.0.registry.set_enabled(kind, name, on);
        if changed {
            self.publish(&match kind {
                Kind::Tool => Change::Tools,
                Kind::Prompt => Change::Prompts,
                _ => Change::Resources,
            });
        }
        changed
    }

    /// Ends every subscription of every stream with its result.
    pub(crate) fn close_all(&self) {
        for session in self.live_sessions() {
            let mut state = session.lock();
            let state = &mut *state;
            state.connection.close(&mut state.out);
            state.wake_driver();
        }
    }

    pub(crate) fn register(&self, session: &Arc<Shared>) {
        let mut sessions = self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        // Swept when it would grow, so that the cost is spread over the registrations.
        if sessions.len() == sessions.capacity() {
            sessions.retain(|session| session.strong_count() > 0);
        }
        sessions.push(Arc::downgrade(session));
    }

    pub(crate) fn registry(&self) -> &Registry<usize> {
        &self.0.registry
    }

    pub(crate) fn tool(&self, at: usize) -> &ToolEntry {
        &self.0.tools[at]
    }

    pub(crate) fn resource(&self, at: usize) -> &ResourceEntry {
        &self.0.resources[at]
    }

    pub(crate) fn prompt(&self, at: usize) -> &PromptEntry {
        &self.0.prompts[at]
    }

    pub(crate) fn custom(&self, method: &str) -> Option<&Custom> {
        self.0.custom.get(method)
    }

    pub(crate) fn tasks(&self) -> std::sync::MutexGuard<'_, tasks::Tasks> {
        self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.with_random(|random| random.fill(&mut bytes));
        bytes
    }

    pub(crate) fn with_random<T>(&self, use_it: impl FnOnce(&mut dyn Random) -> T) -> T {
        use_it(&mut *self.0.random.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The completer for an argument; an argument without one completes to nothing.
    fn completer(
        &self,
        params: &CompleteParams<'_>,
        version: ProtocolVersion,
        principal: Option<&Principal>,
    ) -> Result<Completer, Error> {
        let found = self.0.registry.completion(version, principal, &params.reference)?;
        self.enforce(found.scopes(), principal)?;
        let known = match found {
            Completable::Prompt(prompt) => {
                prompt.definition().arguments.iter().flatten().any(|a| a.name == params.argument)
            }
            Completable::Template(template) => {
                template.uri_template().variables().any(|v| v == params.argument)
            }
            _ => true,
        };
        let (CompletionReference::Prompt(item) | CompletionReference::Resource(item)) = &params.reference;
        if !known {
            return Err(Error::invalid_params("Invalid params at /params/argument/name: no such argument"));
        }
        let key = (Str::Owned(item.clone().into_owned()), Str::Owned(params.argument.clone().into_owned()));
        let none = || handler::completer(|_, _| core::future::ready(Ok(Vec::new())));
        Ok(self.0.completers.get(&key).cloned().unwrap_or_else(none))
    }

    fn notified(&self, method: &str, params: &Params<'_>) {
        if let Some(hear) = &self.0.on_notification {
            let members: Vec<_> = params
                .members()
                .iter()
                .map(|(name, value)| {
                    (String::from(name), crate::model::Json::from(alloc::borrow::ToOwned::to_owned(value)))
                })
                .collect();
            hear(method, &members);
        }
    }

    /// Signs the state of a parked call.
    fn seal(
        &self,
        call: &call::Call,
        method: ServerMethod,
        target: &str,
        arguments: Digest,
        journal: &[u8],
    ) -> Result<String, Error> {
        let unix = self.now(&call.shared);
        let binding = self.binding(&call.shared, method, target, arguments);
        self.with_random(|random| {
            self.0.keys.seal(&binding, journal, unix.saturating_add(self.0.state_ttl), random)
        })
        .map(Sealed::into_string)
        .map_err(|_| Error::new(code::INTERNAL_ERROR, "The state of the call is too large"))
    }

    /// Opens the state of a retry; answers without a state are a call's first round.
    fn unseal(
        &self,
        shared: &Shared,
        method: ServerMethod,
        target: &str,
        arguments: impl FnOnce() -> Digest,
        state: Option<&str>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(state) = state else { return Ok(None) };
        let unix = self.now(shared);
        let binding = self.binding(shared, method, target, arguments());
        let opened = UnverifiedState::new(state).open(&self.0.keys, &binding, unix)?;
        Ok(Some(opened.into_payload()))
    }

    fn binding<'a>(
        &'a self,
        shared: &'a Shared,
        method: ServerMethod,
        target: &'a str,
        arguments: Digest,
    ) -> Binding<'a> {
        Binding {
            audience: &self.0.audience,
            principal: shared.principal.as_ref().map(Principal::id),
            method: method.as_str(),
            target,
            arguments,
        }
    }

    pub(crate) fn forget_waiter(&self, key: RequestKey) {
        self.tasks().forget_waiter(key);
    }
}

impl core::fmt::Debug for Service {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Service").field("info", &self.0.config.info).finish_non_exhaustive()
    }
}
