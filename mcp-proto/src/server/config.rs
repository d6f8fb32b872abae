//! What a server is: frozen once, shared by all its connections.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::limits::Limits;
use crate::model::LoggingLevel;
use crate::model::TASKS_EXTENSION;
use crate::model::method::ServerMethod;
pub(crate) use crate::model::view::write_or_empty;
use crate::model::{CacheScope, Implementation, ProtocolVersion, ServerCapabilities, Str};
use crate::rpc::write_str;

/// The policy and identity of a server. Make one with [`Config::builder`] and share it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Config {
    /// Who this server is.
    pub info: Implementation,
    /// What it offers. Methods that need a capability which is not declared are answered `-32601`.
    pub capabilities: ServerCapabilities,
    /// How to use it, for the model.
    pub instructions: Option<Str>,
    /// The revisions served, oldest first.
    pub versions: Vec<ProtocolVersion>,
    /// The bounds.
    pub limits: Limits,
    /// The least level of log messages for a legacy client that never set one.
    pub default_log_level: LoggingLevel,
    /// Whether an `input_required` towards a legacy client becomes requests to that client, and the call
    /// comes back once they are answered. Costs a copy of the params of such calls.
    pub bridge_input: bool,
    gates: Gates,
    /// `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{…}`, without what closes it.
    pub(crate) modern_meta: Vec<u8>,
    /// The members of the discover result, with a leading comma.
    pub(crate) discover: Vec<u8>,
}

/// The capabilities as flags, for they are asked about with every request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gates {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) resource_subscriptions: bool,
    pub(crate) completions: bool,
    pub(crate) logging: bool,
    core_tasks: bool,
    tasks_extension: bool,
}

impl Gates {
    fn of(has: &ServerCapabilities) -> Self {
        Self {
            tools: has.has_tools(),
            prompts: has.has_prompts(),
            resources: has.has_resources(),
            resource_subscriptions: has.has_resource_subscriptions(),
            completions: has.has_completions(),
            logging: has.has_logging(),
            core_tasks: has.has_core_tasks(),
            tasks_extension: has.has_extension(TASKS_EXTENSION),
        }
    }
}

/// Collects what a [`Config`] needs.
#[derive(Debug)]
#[must_use]
pub struct ConfigBuilder {
    config: Config,
    discover_ttl_ms: u64,
    discover_scope: CacheScope,
}

impl Config {
    /// A server with this identity, no capabilities, all revisions, default limits.
    pub fn builder(info: Implementation) -> ConfigBuilder {
        ConfigBuilder {
            config: Self {
                info,
                capabilities: ServerCapabilities::default(),
                instructions: None,
                versions: ProtocolVersion::ALL.to_vec(),
                limits: Limits::default(),
                default_log_level: LoggingLevel::Info,
                bridge_input: true,
                gates: Gates::default(),
                modern_meta: Vec::new(),
                discover: Vec::new(),
            },
            discover_ttl_ms: 0,
            discover_scope: CacheScope::Public,
        }
    }

    /// The revision of that name, if it is served.
    #[must_use]
    pub fn served(&self, name: &str) -> Option<ProtocolVersion> {
        ProtocolVersion::parse(name).filter(|v| self.versions.contains(v))
    }

    /// The newest revision with a handshake that is served.
    #[must_use]
    pub fn latest_legacy(&self) -> Option<ProtocolVersion> {
        self.versions.iter().copied().filter(|v| !v.is_modern()).max()
    }

    /// Whether requests without a handshake are served.
    #[must_use]
    pub fn is_modern(&self) -> bool {
        self.versions.iter().any(|v| v.is_modern())
    }

    pub(crate) const fn gates(&self) -> Gates {
        self.gates
    }

    /// Whether the revision has the method and the capabilities declare it.
    #[must_use]
    pub fn offers(&self, version: ProtocolVersion, method: ServerMethod) -> bool {
        use ServerMethod as M;
        let has = &self.gates;
        version.has_method(method)
            && match method {
                M::Initialize | M::Discover | M::Ping | M::Listen => true,
                M::SetLevel => has.logging,
                M::ListTools | M::CallTool => has.tools,
                M::ListResources | M::ListResourceTemplates | M::ReadResource => has.resources,
                M::Subscribe | M::Unsubscribe => has.resource_subscriptions,
                M::ListPrompts | M::GetPrompt => has.prompts,
                M::Complete => has.completions,
                M::GetTask | M::UpdateTask | M::CancelTask | M::TaskResult | M::ListTasks => {
                    self.offers_tasks(version)
                }
            }
    }

    /// Whether tasks are offered in the form that the revision has.
    #[must_use]
    pub fn offers_tasks(&self, version: ProtocolVersion) -> bool {
        if version.has_tasks_extension() {
            self.gates.tasks_extension
        } else {
            version.has_core_tasks() && self.gates.core_tasks
        }
    }
}

impl ConfigBuilder {
    /// What the server offers.
    pub fn capabilities(mut self, capabilities: ServerCapabilities) -> Self {
        self.config.capabilities = capabilities;
        self
    }

    /// How to use the server, for the model.
    pub fn instructions(mut self, instructions: impl Into<Str>) -> Self {
        self.config.instructions = Some(instructions.into());
        self
    }

    /// The revisions served. Duplicates are dropped; none at all means every one.
    pub fn versions(mut self, versions: impl IntoIterator<Item = ProtocolVersion>) -> Self {
        let mut versions: Vec<_> = versions.into_iter().collect();
        versions.sort_unstable();
        versions.dedup();
        if versions.is_empty() {
            versions.extend(ProtocolVersion::ALL);
        }
        self.config.versions = versions;
        self
    }

    /// The bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// The least level of log messages for a legacy client that never set one.
    pub fn default_log_level(mut self, level: LoggingLevel) -> Self {
        self.config.default_log_level = level;
        self
    }

    /// See [`Config::bridge_input`]. On by default.
    pub fn bridge_input(mut self, on: bool) -> Self {
        self.config.bridge_input = on;
        self
    }

    /// For how long a client may keep the discover result, in milliseconds, and who may share it.
    pub fn discover_cache(mut self, ttl_ms: u64, scope: CacheScope) -> Self {
        self.discover_ttl_ms = ttl_ms;
        self.discover_scope = scope;
        self
    }

    /// Freezes it.
    #[must_use]
    pub fn build(self) -> Arc<Config> {
        let Self { mut config, discover_ttl_ms, discover_scope } = self;
        let latest = ProtocolVersion::LATEST;
        config.gates = Gates::of(&config.capabilities);
        // Results carry name, title and version; the rest of the identity is in the discover result only,
        // for icons can be large.
        let mut brief = Implementation::new(config.info.name.clone(), config.info.version.clone());
        brief.title.clone_from(&config.info.title);
        let head = |info: &Implementation| {
            let mut out = Vec::new();
            out.extend_from_slice(b"\"_meta\":{\"io.modelcontextprotocol/serverInfo\":");
            write_or_empty(&mut out, latest, info);
            out
        };
        config.modern_meta = head(&brief);
        let mut out = head(&config.info);
        out.extend_from_slice(b"},\"supportedVersions\":[");
        for (at, version) in config.versions.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_str(&mut out, version.as_str());
        }
        out.extend_from_slice(b"],\"capabilities\":");
        write_or_empty(&mut out, latest, &config.capabilities);
        if let Some(instructions) = &config.instructions {
            out.extend_from_slice(b",\"instructions\":");
            write_str(&mut out, instructions);
        }
        out.extend_from_slice(b",\"ttlMs\":");
        out.extend_from_slice(itoa::Buffer::new().format(discover_ttl_ms).as_bytes());
        out.extend_from_slice(b",\"cacheScope\":");
        write_str(&mut out, discover_scope.as_str());
        config.discover = out;
        Arc::new(config)
    }
}
