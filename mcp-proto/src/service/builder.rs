//! Declaring a server. What it can do follows from what is registered.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::Ctx;
use super::error::ToolError;
use super::handler::{
    self, Completer, CompletionRequest, Custom, CustomRequest, FromVariables, IntoContents, IntoPrompt,
    IntoToolResult, PromptCall, ResourceRead, ToolCall,
};
use super::scope::{Implies, Scoped};
use super::{Inner, PromptEntry, ResourceEntry, Service, ToolEntry, schema};
use crate::limits::Limits;
use crate::model::LoggingLevel;
use crate::model::TASKS_EXTENSION;
use crate::model::{
    Annotations, CacheScope, Icon, Implementation, Json, JsonSchema as Schema, Meta, Prompt, ProtocolVersion,
    Resource, ResourceTemplate, Str, TaskSupport, Tool, ToolAnnotations, ToolExecution,
};
use crate::registry::uri_template::UriTemplate;
use crate::registry::{Access, Kind, Registry, Terms};
use crate::server::{Config, Principal};
use crate::state::KeyRing;

/// A server in the making. [`build`](Self::build) checks it and gives the [`Service`] that streams are
/// opened on; the adapters' `serve` does both.
#[must_use]
pub struct Server {
    info: Implementation,
    instructions: Option<Str>,
    versions: Vec<ProtocolVersion>,
    limits: Limits,
    default_log_level: LoggingLevel,
    logging: bool,
    subscriptions: bool,
    page_size: Option<usize>,
    cache: Cache,
    keys: Option<KeyRing>,
    audience: Option<String>,
    state_ttl: Duration,
    task_ttl: Option<Duration>,
    task_poll: Duration,
    tools: Vec<ToolDef>,
    resources: Vec<ResourceDef>,
    prompts: Vec<PromptDef>,
    custom: Vec<(Str, Custom)>,
    extensions: Vec<(Str, Json)>,
    experimental: Vec<(Str, Json)>,
    on_notification: Option<NotificationHandler>,
    implies: Option<Implies>,
}

/// What a handler of notifications gets: the method and the params.
pub(crate) type NotificationHandler = Arc<dyn Fn(&str, &[(String, Json)]) + Send + Sync>;

#[derive(Debug, Clone, Copy)]
struct Cache {
    ttl_ms: u64,
    scope: CacheScope,
}

/// A server that cannot be built, and why.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// An item is wrong or stands twice.
    Registry(crate::registry::BuildError),
    /// The handler of a resource takes another number of variables than its template has.
    Variables {
        /// The template.
        template: Str,
        /// What the handler takes.
        takes: usize,
        /// What the template has.
        has: usize,
    },
    /// A completion is for an argument or variable that the item does not have.
    Completion {
        /// The prompt or template.
        item: Str,
        /// The argument.
        argument: Str,
    },
    /// A scope that an item needs is none, or is `offline_access`, which no resource may ask for.
    Scope {
        /// The tool, resource or prompt.
        item: Str,
        /// The scope.
        scope: Str,
    },
    /// A custom method has a name of the specification, or stands twice.
    Method(Str),
    /// A schema cannot be used for validation.
    Schema {
        /// The tool.
        tool: Str,
        /// What is wrong.
        why: String,
    },
    /// The operating system gives no randomness for the keys that sign input state.
    NoRandomness,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(error) => error.fmt(f),
            Self::Variables { template, takes, has } => write!(
                f,
                "resource {template:?}: the handler takes {takes} variables, the template has {has}"
            ),
            Self::Completion { item, argument } => {
                write!(f, "completion for {argument:?} of {item:?}: there is no such argument")
            }
            Self::Scope { item, scope } => {
                write!(f, "{item:?} needs {scope:?}: that is no scope of a resource")
            }
            Self::Method(name) => write!(f, "custom method {name:?}: the name is taken"),
            Self::Schema { tool, why } => write!(f, "tool {tool:?}: {why}"),
            Self::NoRandomness => f.write_str("the operating system gives no randomness"),
        }
    }
}

impl core::error::Error for BuildError {}

impl From<crate::registry::BuildError> for BuildError {
    fn from(error: crate::registry::BuildError) -> Self {
        Self::Registry(error)
    }
}

/// Who may see and use an item.
macro_rules! access_setters {
    () => {
        /// Only callers with one of these roles see the item; for all others it does not exist.
        pub fn roles(mut self, roles: impl IntoIterator<Item = impl Into<Str>>) -> Self {
            self.terms.access = Access::any_role(roles);
            self
        }

        /// Only callers that `visible` accepts see the item; for all others it does not exist.
        pub fn visible_to(
            mut self,
            visible: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static,
        ) -> Self {
            self.terms.access = Access::when(visible);
            self
        }

        /// What the caller's token must allow for the item to be used: all of these scopes. Without them the
        /// call is refused before any work is done, and over HTTP the client is told which it needs, so that
        /// it can ask its user. The item is listed all the same, for nobody asks for what cannot be seen.
        ///
        /// Callers that no token speaks for, as on stdio, are not asked for scopes.
        /// [spec: basic/authorization#scope-challenge-handling]
        pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<Str>>) -> Self {
            self.scoped.scopes.extend(scopes.into_iter().map(Into::into));
            self
        }

        /// For a caller whose token lacks one of the [scopes](Self::scopes) the item does not exist: it is
        /// not listed, and using it gives the error of an unknown name instead of a challenge.
        pub fn hide_without_scope(mut self) -> Self {
            self.scoped.hide = true;
            self
        }

        /// Nobody sees the item until it is shown with [`Service::show`].
        pub fn hidden(mut self) -> Self {
            self.terms.disabled = true;
            self
        }
    };
}

/// A tool with its handler. Made by [`tool`].
#[must_use]
pub struct ToolDef {
    pub(crate) tool: Tool,
    call: ToolCall,
    terms: Terms,
    scoped: Scoped,
    validated: bool,
    decides: bool,
}

/// A tool whose arguments have the type `P`: its schema, and its description unless one is set, come from
/// the type; arguments that do not fit never reach the handler.
/// [spec: server/tools]
pub fn tool<P, R, F, Fut>(name: impl Into<Str>, handler: F) -> ToolDef
where
    P: DeserializeOwned + JsonSchema,
    R: IntoToolResult,
    F: Fn(Ctx, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    let mut tool = Tool::new(name, schema::arguments::<P>());
    tool.description = schema::description::<P>().map(Str::Owned);
    tool.output_schema = R::output_schema();
    ToolDef {
        tool,
        call: handler::tool_call(handler),
        terms: Terms::new(),
        scoped: Scoped::default(),
        validated: false,
        decides: false,
    }
}

/// A tool with a schema written by hand. The handler gets the arguments as JSON. With the feature
/// `validate` they are checked against the schema first, and structured results against the output schema.
pub fn raw_tool<R, F, Fut>(name: impl Into<Str>, input_schema: Schema, handler: F) -> ToolDef
where
    R: IntoToolResult,
    F: Fn(Ctx, Json) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    let mut tool = Tool::new(name, input_schema);
    tool.output_schema = R::output_schema();
    ToolDef {
        tool,
        call: handler::raw_tool_call(handler),
        terms: Terms::new(),
        scoped: Scoped::default(),
        validated: true,
        decides: false,
    }
}

impl ToolDef {
    access_setters!();

    /// The name for people.
    pub fn title(mut self, title: impl Into<Str>) -> Self {
        self.tool.title = Some(title.into());
        self
    }

    /// What the tool does, for the model.
    pub fn description(mut self, description: impl Into<Str>) -> Self {
        self.tool.description = Some(description.into());
        self
    }

    /// Hints on what the tool does to the world.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.tool.annotations = Some(annotations);
        self
    }

    /// Icons.
    pub fn icons(mut self, icons: impl Into<Vec<Icon>>) -> Self {
        self.tool.icons = Some(icons.into());
        self
    }

    /// Metadata of the tool.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.tool.meta = Some(meta);
        self
    }

    /// Another input schema than the one of the handler's type.
    pub fn input_schema(mut self, schema: Schema) -> Self {
        self.tool.input_schema = schema;
        self.validated = true;
        self
    }

    /// Another output schema than the one of the handler's result.
    pub fn output_schema(mut self, schema: Schema) -> Self {
        self.tool.output_schema = Some(schema);
        self.validated = true;
        self
    }

    /// Checks arguments against the schema before they are decoded (feature `validate`): for ranges,
    /// patterns and other rules that the type does not have.
    pub fn validated(mut self) -> Self {
        self.validated = true;
        self
    }

    /// Whether calls may or must run as tasks. Where a client can have tasks, calls then start as one.
    pub fn task(mut self, support: TaskSupport) -> Self {
        self.tool.execution = Some(ToolExecution::new(support));
        self
    }

    /// The handler decides with [`Ctx::become_task`] when a call becomes a task: after its questions, or
    /// if it takes long. A 2025-11-25 client that asks for a task gets one at once.
    pub fn becomes_task(mut self) -> Self {
        self.decides = true;
        self.task(TaskSupport::Optional)
    }
}

/// A resource or resource template with its handler. Made by [`resource`].
#[must_use]
pub struct ResourceDef {
    uri: Str,
    is_template: bool,
    resource: Resource,
    read: Box<dyn FnOnce(Option<Str>) -> ResourceRead>,
    takes: Option<usize>,
    completers: Vec<(Str, Completer)>,
    terms: Terms,
    scoped: Scoped,
}

/// A resource, or a template if `uri` has `{variables}`. The name is the URI unless one is set.
/// [spec: server/resources]
pub fn resource<V, R, F, Fut>(uri: impl Into<Str>, handler: F) -> ResourceDef
where
    V: FromVariables + 'static,
    R: IntoContents + 'static,
    F: Fn(Ctx, V) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    let uri = uri.into();
    ResourceDef {
        is_template: uri.contains('{'),
        resource: Resource::new(uri.clone(), uri.clone()),
        uri,
        read: Box::new(move |mime_type| handler::resource_read(handler, mime_type)),
        takes: V::COUNT,
        completers: Vec::new(),
        terms: Terms::new(),
        scoped: Scoped::default(),
    }
}

impl ResourceDef {
    access_setters!();

    /// The name for programs.
    pub fn name(mut self, name: impl Into<Str>) -> Self {
        self.resource.name = name.into();
        self
    }

    /// The name for people.
    pub fn title(mut self, title: impl Into<Str>) -> Self {
        self.resource.title = Some(title.into());
        self
    }

    /// What it is.
    pub fn description(mut self, description: impl Into<Str>) -> Self {
        self.resource.description = Some(description.into());
        self
    }

    /// The MIME type, also of the contents.
    pub fn mime_type(mut self, mime_type: impl Into<Str>) -> Self {
        self.resource.mime_type = Some(mime_type.into());
        self
    }

    /// The size in bytes. Not for templates.
    pub fn size(mut self, size: u64) -> Self {
        self.resource.size = Some(size);
        self
    }

    /// Hints for the client.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.resource.annotations = Some(annotations);
        self
    }

    /// Icons.
    pub fn icons(mut self, icons: impl Into<Vec<Icon>>) -> Self {
        self.resource.icons = Some(icons.into());
        self
    }

    /// Metadata.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.resource.meta = Some(meta);
        self
    }

    /// Completes a variable of the template. Values beyond 100 are cut and announced.
    pub fn complete<F, Fut>(mut self, variable: impl Into<Str>, complete: F) -> Self
    where
        F: Fn(Ctx, CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, ToolError>> + Send + 'static,
    {
        self.terms.completes = true;
        self.completers.push((variable.into(), handler::completer(complete)));
        self
    }
}

/// A prompt with its handler. Made by [`prompt`].
#[must_use]
pub struct PromptDef {
    prompt: Prompt,
    call: PromptCall,
    completers: Vec<(Str, Completer)>,
    terms: Terms,
    scoped: Scoped,
}

/// A prompt whose arguments are the fields of `P`, all of them strings.
/// [spec: server/prompts]
pub fn prompt<P, R, F, Fut>(name: impl Into<Str>, handler: F) -> PromptDef
where
    P: DeserializeOwned + JsonSchema,
    R: IntoPrompt,
    F: Fn(Ctx, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    let mut prompt = Prompt::new(name);
    prompt.description = schema::description::<P>().map(Str::Owned);
    let arguments = handler::prompt_arguments::<P>();
    if !arguments.is_empty() {
        prompt.arguments = Some(arguments);
    }
    PromptDef {
        prompt,
        call: handler::prompt_call(handler),
        completers: Vec::new(),
        terms: Terms::new(),
        scoped: Scoped::default(),
    }
}

impl PromptDef {
    access_setters!();

    /// The name for people.
    pub fn title(mut self, title: impl Into<Str>) -> Self {
        self.prompt.title = Some(title.into());
        self
    }

    /// What it is for.
    pub fn description(mut self, description: impl Into<Str>) -> Self {
        self.prompt.description = Some(description.into());
        self
    }

    /// Icons.
    pub fn icons(mut self, icons: impl Into<Vec<Icon>>) -> Self {
        self.prompt.icons = Some(icons.into());
        self
    }

    /// Metadata.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.prompt.meta = Some(meta);
        self
    }

    /// Completes an argument. Values beyond 100 are cut and announced.
    pub fn complete<F, Fut>(mut self, argument: impl Into<Str>, complete: F) -> Self
    where
        F: Fn(Ctx, CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, ToolError>> + Send + 'static,
    {
        self.terms.completes = true;
        self.completers.push((argument.into(), handler::completer(complete)));
        self
    }
}

impl Server {
    /// A server that offers nothing yet.
    pub fn new(name: impl Into<Str>, version: impl Into<Str>) -> Self {
        Self::with_info(Implementation::new(name, version))
    }

    /// A server with everything it says of itself: title, description, website, icons.
    pub fn with_info(info: Implementation) -> Self {
        Self {
            info,
            instructions: None,
            versions: ProtocolVersion::ALL.to_vec(),
            limits: Limits::default(),
            default_log_level: LoggingLevel::Info,
            logging: true,
            subscriptions: true,
            page_size: None,
            cache: Cache { ttl_ms: 0, scope: CacheScope::Public },
            keys: None,
            audience: None,
            state_ttl: Duration::from_secs(3600),
            task_ttl: Some(Duration::from_secs(3600)),
            task_poll: Duration::from_secs(1),
            tools: Vec::new(),
            resources: Vec::new(),
            prompts: Vec::new(),
            custom: Vec::new(),
            extensions: Vec::new(),
            experimental: Vec::new(),
            on_notification: None,
            implies: None,
        }
    }

    /// Adds a tool: [`tool`] with nothing but a name and a handler.
    pub fn tool<P, R, F, Fut>(self, name: impl Into<Str>, handler: F) -> Self
    where
        P: DeserializeOwned + JsonSchema,
        R: IntoToolResult,
        F: Fn(Ctx, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        self.add(tool(name, handler))
    }

    /// Adds a resource or template: [`resource`] with nothing but a URI and a handler.
    pub fn resource<V, R, F, Fut>(self, uri: impl Into<Str>, handler: F) -> Self
    where
        V: FromVariables + 'static,
        R: IntoContents + 'static,
        F: Fn(Ctx, V) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        self.add(resource(uri, handler))
    }

    /// Adds a prompt: [`prompt`] with nothing but a name and a handler.
    pub fn prompt<P, R, F, Fut>(self, name: impl Into<Str>, handler: F) -> Self
    where
        P: DeserializeOwned + JsonSchema,
        R: IntoPrompt,
        F: Fn(Ctx, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        self.add(prompt(name, handler))
    }

    /// Adds a [`ToolDef`], [`ResourceDef`] or [`PromptDef`].
    #[allow(clippy::should_implement_trait)] // nothing is summed up here
    pub fn add(mut self, item: impl Into<Item>) -> Self {
        match item.into().0 {
            AnyItem::Tool(tool) => self.tools.push(tool),
            AnyItem::Resource(resource) => self.resources.push(resource),
            AnyItem::Prompt(prompt) => self.prompts.push(prompt),
        }
        self
    }

    /// Serves a method that the specification does not have. The result must serialise to an object.
    pub fn method<R, F, Fut>(mut self, name: impl Into<Str>, handler: F) -> Self
    where
        R: Serialize,
        F: Fn(Ctx, CustomRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        self.custom.push((name.into(), handler::custom(handler)));
        self
    }

    /// Hears of notifications that the machine does not handle itself: custom ones, and
    /// `notifications/roots/list_changed`.
    pub fn on_notification(mut self, hear: impl Fn(&str, &[(String, Json)]) + Send + Sync + 'static) -> Self {
        self.on_notification = Some(Arc::new(hear));
        self
    }

    /// Says which scopes stand for narrower ones: `implies(granted, needed)` is asked of two scopes that
    /// differ. Without it every scope stands for itself alone.
    /// [spec: basic/authorization#step-up-authorization-flow]
    pub fn scope_hierarchy(mut self, implies: impl Fn(&str, &str) -> bool + Send + Sync + 'static) -> Self {
        self.implies = Some(Arc::new(implies));
        self
    }

    /// Declares an extension with its settings. `settings` must be a JSON object.
    pub fn extension(mut self, id: impl Into<Str>, settings: Json) -> Self {
        self.extensions.push((id.into(), settings));
        self
    }

    /// Declares an experimental capability. `settings` must be a JSON object.
    pub fn experimental(mut self, name: impl Into<Str>, settings: Json) -> Self {
        self.experimental.push((name.into(), settings));
        self
    }

    /// How to use the server, for the model.
    pub fn instructions(mut self, instructions: impl Into<Str>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// The revisions to serve. All by default.
    pub fn versions(mut self, versions: impl IntoIterator<Item = ProtocolVersion>) -> Self {
        self.versions = versions.into_iter().collect();
        self
    }

    /// The bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The least level of log messages for a legacy client that never set one. `info` by default.
    pub fn default_log_level(mut self, level: LoggingLevel) -> Self {
        self.default_log_level = level;
        self
    }

    /// Whether log messages are offered. On by default.
    pub fn logging(mut self, on: bool) -> Self {
        self.logging = on;
        self
    }

    /// Whether clients may subscribe to changes of lists and resources. On by default.
    pub fn subscriptions(mut self, on: bool) -> Self {
        self.subscriptions = on;
        self
    }

    /// Items on a page of a list. Without it a list is one page.
    pub fn page_size(mut self, items: usize) -> Self {
        self.page_size = Some(items);
        self
    }

    /// For how long clients may keep lists and the discover result, in milliseconds, and who may share
    /// them. A list that is not the same for everyone is `private` whatever is said here.
    pub fn cache(mut self, ttl_ms: u64, scope: CacheScope) -> Self {
        self.cache = Cache { ttl_ms, scope };
        self
    }

    /// The keys that sign input state. Without them each process has a random one: enough for one process,
    /// not for several behind one address.
    pub fn state_keys(mut self, keys: KeyRing) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Whom the input state is for. The server's name by default; several servers that share keys need
    /// different ones.
    pub fn state_audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// How long a client may take between two rounds of a call. An hour by default.
    pub fn state_ttl(mut self, ttl: Duration) -> Self {
        self.state_ttl = ttl;
        self
    }

    /// How long tasks are kept, and how often clients should ask. An hour and a second by default.
    pub fn tasks(mut self, ttl: Option<Duration>, poll: Duration) -> Self {
        self.task_ttl = ttl;
        self.task_poll = poll;
        self
    }

    /// Checks everything and freezes it.
    ///
    /// # Errors
    ///
    /// See [`BuildError`]: names, duplicates, schemas, variables, completions.
    pub fn build(self) -> Result<Service, BuildError> {
        let mut registry = Registry::builder();
        for kind in [Kind::Tool, Kind::Resource, Kind::ResourceTemplate, Kind::Prompt] {
            registry = registry.cache(kind, self.cache.ttl_ms, self.cache.scope);
            if self.subscriptions {
                registry = registry.list_changed(kind);
            }
        }
        if self.subscriptions {
            registry = registry.subscribe();
        }
        if let Some(items) = self.page_size {
            registry = registry.page_size(items);
        }
        let mut completers: BTreeMap<(Str, Str), Completer> = BTreeMap::new();
        let (mut tools, mut resources, mut prompts) = (Vec::new(), Vec::new(), Vec::new());
        let mut counted = Vec::new();
        let mut any_task = false;
        for mut def in self.tools {
            let task = def.tool.execution.as_ref().and_then(|e| e.task_support).unwrap_or_default();
            any_task |= task != TaskSupport::Forbidden;
            if def.validated {
                def.call = super::validate::wrap(&def.tool, def.call)
                    .map_err(|why| BuildError::Schema { tool: def.tool.name.clone(), why })?;
            }
            let terms = def.scoped.apply(def.terms, &def.tool.name, self.implies.as_ref())?;
            registry = registry.tool_with(def.tool, tools.len(), terms);
            tools.push(ToolEntry { call: def.call, task, decides: def.decides });
        }
        for def in self.resources {
            let name = def.uri.clone();
            let read = (def.read)(def.resource.mime_type.clone());
            let terms = def.scoped.apply(def.terms, &name, self.implies.as_ref())?;
            let mut variables = Vec::new();
            if def.is_template {
                // A template that does not parse is the registry's to report.
                if let Ok(template) = UriTemplate::parse(&name) {
                    variables.extend(template.variables().map(String::from));
                }
                let template = template_of(def.uri, def.resource);
                registry = registry.template_with(template, resources.len(), terms);
            } else {
                registry = registry.resource_with(def.resource, resources.len(), terms);
            }
            for (argument, completer) in def.completers {
                if !variables.iter().any(|v| *v == argument) {
                    return Err(BuildError::Completion { item: name, argument });
                }
                completers.insert((name.clone(), argument), completer);
            }
            resources.push(ResourceEntry { read });
            counted.push((name, def.takes, variables.len()));
        }
        for def in self.prompts {
            let name = def.prompt.name.clone();
            for (argument, completer) in def.completers {
                if !def.prompt.arguments.iter().flatten().any(|a| a.name == argument) {
                    return Err(BuildError::Completion { item: name, argument });
                }
                completers.insert((name.clone(), argument), completer);
            }
            let terms = def.scoped.apply(def.terms, &name, self.implies.as_ref())?;
            registry = registry.prompt_with(def.prompt, prompts.len(), terms);
            prompts.push(PromptEntry { call: def.call });
        }
        let mut custom = BTreeMap::new();
        for (name, handler) in self.custom {
            let taken = crate::model::method::ServerMethod::parse(&name).is_some();
            if taken || custom.insert(name.clone(), handler).is_some() {
                return Err(BuildError::Method(name));
            }
        }
        let registry = registry.build()?;
        for (template, takes, has) in counted {
            if let Some(takes) = takes.filter(|takes| *takes != has) {
                return Err(BuildError::Variables { template, takes, has });
            }
        }
        let mut capabilities = registry.capabilities();
        if self.logging {
            capabilities = capabilities.logging();
        }
        for (name, settings) in self.experimental {
            capabilities = capabilities.experimental(name, settings);
        }
        for (id, settings) in self.extensions {
            capabilities = capabilities.extension(id, settings);
        }
        if any_task {
            capabilities =
                capabilities.extension(TASKS_EXTENSION, Json::empty_object()).core_tasks(true, true);
        }
        let audience = self.audience.unwrap_or_else(|| self.info.name.clone().into_owned());
        let mut config = Config::builder(self.info)
            .capabilities(capabilities)
            .versions(self.versions)
            .limits(self.limits)
            .default_log_level(self.default_log_level)
            .discover_cache(self.cache.ttl_ms, self.cache.scope)
            .bridge_input(false);
        if let Some(instructions) = self.instructions {
            config = config.instructions(instructions);
        }
        Service::assemble(Inner::new(
            config.build(),
            registry,
            (tools, resources, prompts),
            completers,
            custom,
            self.keys,
            audience,
            self.state_ttl,
            (self.task_ttl, self.task_poll),
            self.on_notification,
            self.implies,
        )?)
    }
}

/// A template with what was said of the resource.
fn template_of(uri: Str, resource: Resource) -> ResourceTemplate {
    let mut template = ResourceTemplate::new(uri, resource.name);
    template.title = resource.title;
    template.description = resource.description;
    template.mime_type = resource.mime_type;
    template.annotations = resource.annotations;
    template.icons = resource.icons;
    template.meta = resource.meta;
    template
}

/// Something that [`Server::add`] takes.
pub struct Item(AnyItem);

enum AnyItem {
    Tool(ToolDef),
    Resource(ResourceDef),
    Prompt(PromptDef),
}

impl From<ToolDef> for Item {
    fn from(tool: ToolDef) -> Self {
        Self(AnyItem::Tool(tool))
    }
}

impl From<ResourceDef> for Item {
    fn from(resource: ResourceDef) -> Self {
        Self(AnyItem::Resource(resource))
    }
}

impl From<PromptDef> for Item {
    fn from(prompt: PromptDef) -> Self {
        Self(AnyItem::Prompt(prompt))
    }
}

macro_rules! opaque_debug {
    ($($t:ty: $name:literal),*) => { $(
        impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)
            }
        }
    )* };
}

opaque_debug!(Server: "Server", ToolDef: "ToolDef", ResourceDef: "ResourceDef", PromptDef: "PromptDef", Item: "Item");
