//! What a client is, and how it calls: frozen once, shared by all its connections.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::limits::Limits;
use crate::model::view::write_or_empty;
use crate::model::{ClientCapabilities, Implementation, LoggingLevel, Meta, ProtocolVersion};
use crate::rpc::write_str;

/// The policy and identity of a client. Make one with [`Config::builder`] and share it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Config {
    /// Who this client is.
    pub identity: Implementation,
    /// What a server may ask of it.
    pub capabilities: ClientCapabilities,
    /// The revisions spoken, the preferred one first.
    pub versions: Vec<ProtocolVersion>,
    /// Which eras are tried.
    pub mode: Mode,
    /// What is known of the server from an earlier connection.
    pub assumed: Option<Verdict>,
    /// The bounds.
    pub limits: Limits,
    /// How long a server may be silent to `server/discover` before it is taken for a legacy one. Over HTTP, and
    /// where no legacy revision is spoken, silence says nothing and [`handshake_timeout`](Self::handshake_timeout)
    /// counts.
    pub probe_timeout: Duration,
    /// How long `initialize` may take, or `server/discover` where that is all there is to say.
    pub handshake_timeout: Duration,
    /// Whether a call for which the server declared no capability fails here instead of there. On by
    /// default, as the legacy revisions demand. [spec: basic/lifecycle]
    pub check_capabilities: bool,
    /// `"io.modelcontextprotocol/protocolVersion":` is written before, this after the version: who asks and
    /// what it can do, with a leading comma.
    pub(crate) modern_meta: Vec<u8>,
}

/// Which eras a client tries. [spec: basic/versioning]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_enums)] // there are two eras
pub enum Mode {
    /// Ask with `server/discover`, and fall back to the handshake if the server does not know it.
    #[default]
    Auto,
    /// `server/discover` only: a server that does not know it is refused.
    Modern,
    /// `initialize` only.
    Legacy,
}

/// What a connection found out about a server, to be kept between connections: the revision that both
/// speak. Serialises as its name. [spec: basic/versioning#dual-era]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Verdict(ProtocolVersion);

/// How one call is made. Cheap to clone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallOptions {
    /// How long to wait for an answer; `None` = no bound. 60 seconds. Time in which the server waits for
    /// this side does not count. [spec: basic/patterns/cancellation#timeouts]
    pub timeout: Option<Duration>,
    /// Whether each progress notification starts `timeout` anew. Asks the server for progress. Off.
    pub reset_on_progress: bool,
    /// How long the call may take with all its rounds, progress or not; `None` = no bound. 30 minutes.
    pub max_time: Option<Duration>,
    /// Whether the server is asked for progress. Off.
    pub progress: bool,
    /// Since 2026-07-28: which log messages of this call are wanted. None.
    pub log_level: Option<LoggingLevel>,
    /// Members of `_meta` besides those that the protocol sets.
    pub meta: Option<Meta>,
    /// Whether an answer that is still fresh may stand for a new one. On. [spec: server/utilities/caching]
    pub use_cache: bool,
    /// What happens when the server asks for input.
    pub rounds: Rounds,
    /// What happens when the call becomes a task.
    pub tasks: TaskUse,
    /// 2025-11-25: asks for a task that is kept for so many milliseconds, if the server has tasks.
    pub task_ttl_ms: Option<u64>,
}

/// What happens when a server asks for input. [spec: basic/patterns/mrtr]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // by hand or not
pub enum Rounds {
    /// Questions are events, and a round without questions is retried at once; after `max` rounds the call
    /// fails.
    Auto {
        /// Most rounds of one call. 8.
        max: u32,
    },
    /// Every round is an event, and none is too many.
    Manual,
}

/// What happens when a call becomes a task. [spec: extensions/tasks]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_enums)] // by hand or not
pub enum TaskUse {
    /// The machine asks for it until it is over: the call completes with the result of the task.
    #[default]
    Drive,
    /// The call completes with the task.
    Expose,
}

/// Collects what a [`Config`] needs.
#[derive(Debug)]
#[must_use]
pub struct ConfigBuilder(Config);

impl Config {
    /// A client with this identity that speaks every revision, can be asked for nothing, and finds out what
    /// its server speaks.
    pub fn builder(identity: Implementation) -> ConfigBuilder {
        ConfigBuilder(Self {
            identity,
            capabilities: ClientCapabilities::new(),
            versions: ProtocolVersion::ALL.iter().rev().copied().collect(),
            mode: Mode::Auto,
            assumed: None,
            limits: Limits::default(),
            probe_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(60),
            check_capabilities: true,
            modern_meta: Vec::new(),
        })
    }

    /// The preferred revision without a handshake, unless the mode excludes it.
    #[must_use]
    pub fn preferred_modern(&self) -> Option<ProtocolVersion> {
        self.modern().next()
    }

    /// The preferred revision with a handshake, unless the mode excludes it.
    #[must_use]
    pub fn preferred_legacy(&self) -> Option<ProtocolVersion> {
        self.legacy().next()
    }

    pub(crate) fn modern(&self) -> impl Iterator<Item = ProtocolVersion> + '_ {
        let on = self.mode != Mode::Legacy;
        self.versions.iter().copied().filter(move |version| on && version.is_modern())
    }

    pub(crate) fn legacy(&self) -> impl Iterator<Item = ProtocolVersion> + '_ {
        let on = self.mode != Mode::Modern;
        self.versions.iter().copied().filter(move |version| on && !version.is_modern())
    }
}

impl ConfigBuilder {
    /// What a server may ask of the client.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.0.capabilities = capabilities;
        self
    }

    /// The revisions spoken, the preferred one first. Duplicates are dropped; none at all means every one.
    pub fn versions(mut self, versions: impl IntoIterator<Item = ProtocolVersion>) -> Self {
        let mut given: Vec<ProtocolVersion> = Vec::new();
        for version in versions {
            if !given.contains(&version) {
                given.push(version);
            }
        }
        if !given.is_empty() {
            self.0.versions = given;
        }
        self
    }

    /// Which eras are tried.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.0.mode = mode;
        self
    }

    /// Takes what an earlier connection found out. With a modern verdict nothing is asked at the start, and
    /// with a legacy one `initialize` comes first, and `server/discover` only if that fails.
    pub fn assume(mut self, verdict: impl Into<Option<Verdict>>) -> Self {
        self.0.assumed = verdict.into();
        self
    }

    /// The bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.0.limits = limits;
        self
    }

    /// How long a server may be silent to `server/discover` before it is taken for a legacy one.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.0.probe_timeout = timeout;
        self
    }

    /// How long `initialize` may take, or `server/discover` where no other handshake is left.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.0.handshake_timeout = timeout;
        self
    }

    /// See [`Config::check_capabilities`].
    pub fn check_capabilities(mut self, on: bool) -> Self {
        self.0.check_capabilities = on;
        self
    }

    /// Freezes it.
    #[must_use]
    pub fn build(self) -> Arc<Config> {
        let Self(mut config) = self;
        let latest = ProtocolVersion::LATEST;
        let mut out = Vec::new();
        out.extend_from_slice(b",\"io.modelcontextprotocol/clientInfo\":");
        write_or_empty(&mut out, latest, &config.identity);
        out.extend_from_slice(b",\"io.modelcontextprotocol/clientCapabilities\":");
        // `listChanged` of roots went with the notification.
        write_or_empty(&mut out, latest, &config.capabilities.stateless());
        config.modern_meta = out;
        Arc::new(config)
    }
}

impl Verdict {
    /// The server speaks this revision.
    #[must_use]
    pub const fn new(version: ProtocolVersion) -> Self {
        Self(version)
    }

    /// The revision that both speak.
    #[must_use]
    pub const fn version(self) -> ProtocolVersion {
        self.0
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for Verdict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        ProtocolVersion::parse(&name)
            .map(Self)
            .ok_or_else(|| D::Error::custom("expected the name of a revision"))
    }
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            timeout: Some(Duration::from_secs(60)),
            reset_on_progress: false,
            max_time: Some(Duration::from_secs(30 * 60)),
            progress: false,
            log_level: None,
            meta: None,
            use_cache: true,
            rounds: Rounds::Auto { max: 8 },
            tasks: TaskUse::Drive,
            task_ttl_ms: None,
        }
    }
}

impl CallOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`timeout`](field@Self::timeout).
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Sets [`max_time`](field@Self::max_time).
    #[must_use]
    pub fn max_time(mut self, max_time: impl Into<Option<Duration>>) -> Self {
        self.max_time = max_time.into();
        self
    }

    /// Sets [`reset_on_progress`](field@Self::reset_on_progress).
    #[must_use]
    pub const fn reset_on_progress(mut self, on: bool) -> Self {
        self.reset_on_progress = on;
        self
    }

    /// Sets [`progress`](field@Self::progress).
    #[must_use]
    pub const fn progress(mut self, on: bool) -> Self {
        self.progress = on;
        self
    }

    /// Sets [`log_level`](field@Self::log_level).
    #[must_use]
    pub fn log_level(mut self, level: impl Into<Option<LoggingLevel>>) -> Self {
        self.log_level = level.into();
        self
    }

    /// Sets [`meta`](field@Self::meta).
    #[must_use]
    pub fn meta(mut self, meta: impl Into<Option<Meta>>) -> Self {
        self.meta = meta.into();
        self
    }

    /// Sets [`use_cache`](field@Self::use_cache).
    #[must_use]
    pub const fn use_cache(mut self, on: bool) -> Self {
        self.use_cache = on;
        self
    }

    /// Sets [`rounds`](field@Self::rounds).
    #[must_use]
    pub const fn rounds(mut self, rounds: Rounds) -> Self {
        self.rounds = rounds;
        self
    }

    /// Sets [`tasks`](field@Self::tasks).
    #[must_use]
    pub const fn tasks(mut self, tasks: TaskUse) -> Self {
        self.tasks = tasks;
        self
    }

    /// Sets [`task_ttl_ms`](field@Self::task_ttl_ms).
    #[must_use]
    pub fn task_ttl_ms(mut self, ttl_ms: impl Into<Option<u64>>) -> Self {
        self.task_ttl_ms = ttl_ms.into();
        self
    }
}

/// Appends the `_meta` that 2026-07-28 demands, without braces.
pub(crate) fn write_modern_meta(config: &Config, version: ProtocolVersion, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"io.modelcontextprotocol/protocolVersion\":");
    write_str(out, version.as_str());
    out.extend_from_slice(&config.modern_meta);
}
