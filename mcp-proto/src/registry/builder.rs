//! Collecting what a server offers.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::entry::{Definition, Entry};
use super::error::BuildError;
use super::list::{List, Paging};
use super::{Kind, Registry, Terms};
use crate::model::{CacheScope, Prompt, Resource, ResourceTemplate, Tool};

/// Collects what a server offers. `H` is whatever answers for an item; the registry never looks at it.
///
/// Items are listed in the order in which they are added.
#[must_use]
pub struct RegistryBuilder<H> {
    tools: Vec<Draft<Tool, H>>,
    resources: Vec<Draft<Resource, H>>,
    templates: Vec<Draft<ResourceTemplate, H>>,
    prompts: Vec<Draft<Prompt, H>>,
    page_size: usize,
    cursor_secret: Vec<u8>,
    hints: [(u64, CacheScope); 4],
    flags: Flags,
}

type Draft<D, H> = (D, H, Terms);

/// What the capabilities say besides what is there.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flags {
    pub(crate) tools_list_changed: bool,
    pub(crate) resources_list_changed: bool,
    pub(crate) prompts_list_changed: bool,
    pub(crate) subscribe: bool,
}

impl<H> Default for RegistryBuilder<H> {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            page_size: usize::MAX,
            cursor_secret: Vec::new(),
            hints: [(0, CacheScope::default()); 4],
            flags: Flags::default(),
        }
    }
}

impl<H> RegistryBuilder<H> {
    /// Adds a tool for everyone.
    pub fn tool(self, tool: Tool, handler: H) -> Self {
        self.tool_with(tool, handler, Terms::new())
    }

    /// Adds a tool.
    pub fn tool_with(mut self, tool: Tool, handler: H, terms: impl Into<Terms>) -> Self {
        self.tools.push((tool, handler, terms.into()));
        self
    }

    /// Adds a resource for everyone.
    pub fn resource(self, resource: Resource, handler: H) -> Self {
        self.resource_with(resource, handler, Terms::new())
    }

    /// Adds a resource.
    pub fn resource_with(mut self, resource: Resource, handler: H, terms: impl Into<Terms>) -> Self {
        self.resources.push((resource, handler, terms.into()));
        self
    }

    /// Adds a resource template for everyone.
    pub fn template(self, template: ResourceTemplate, handler: H) -> Self {
        self.template_with(template, handler, Terms::new())
    }

    /// Adds a resource template.
    pub fn template_with(mut self, template: ResourceTemplate, handler: H, terms: impl Into<Terms>) -> Self {
        self.templates.push((template, handler, terms.into()));
        self
    }

    /// Adds a prompt for everyone.
    pub fn prompt(self, prompt: Prompt, handler: H) -> Self {
        self.prompt_with(prompt, handler, Terms::new())
    }

    /// Adds a prompt.
    pub fn prompt_with(mut self, prompt: Prompt, handler: H, terms: impl Into<Terms>) -> Self {
        self.prompts.push((prompt, handler, terms.into()));
        self
    }

    /// The most items of a page, for all lists. 0 stands for no bound, as it is without this call: a list
    /// is one page, since not every client asks for a second one.
    pub const fn page_size(mut self, items: usize) -> Self {
        self.page_size = if items == 0 { usize::MAX } else { items };
        self
    }

    /// A secret that cursors depend on; the same in every process that serves the same clients.
    ///
    /// Without it a cursor depends on the names of all items alone, hidden ones included: whoever guesses
    /// them all can check the guess.
    pub fn cursor_secret(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.cursor_secret = secret.into();
        self
    }

    /// For how long clients may keep the list of this kind, in milliseconds, and who may share it. At
    /// first 0 and [`Private`](CacheScope::Private). A list with items that are not for everyone is
    /// always private. Since 2026-07-28; older revisions are not told. [spec: server/utilities/caching]
    pub const fn cache(mut self, kind: Kind, ttl_ms: u64, scope: CacheScope) -> Self {
        self.hints[kind as usize] = (ttl_ms, scope);
        self
    }

    /// Declares that changes of the list of this kind will be told. Resources and their templates are
    /// told of together.
    pub const fn list_changed(mut self, kind: Kind) -> Self {
        match kind {
            Kind::Tool => self.flags.tools_list_changed = true,
            Kind::Resource | Kind::ResourceTemplate => self.flags.resources_list_changed = true,
            Kind::Prompt => self.flags.prompts_list_changed = true,
        }
        self
    }

    /// Declares that changes of single resources will be told to those who subscribe.
    pub const fn subscribe(mut self) -> Self {
        self.flags.subscribe = true;
        self
    }

    /// Checks everything and writes the lists for every revision.
    ///
    /// # Errors
    ///
    /// The first item that breaks a rule; see [`Problem`](super::Problem).
    pub fn build(self) -> Result<Registry<H>, BuildError> {
        let Self { tools, resources, templates, prompts, page_size, cursor_secret, hints, flags } = self;
        let paging = |kind: Kind| {
            let (ttl_ms, scope) = hints[kind as usize];
            Paging { page_size, cursor_secret: &cursor_secret, ttl_ms, scope }
        };
        Ok(Registry::new(
            list(tools, &paging(Kind::Tool))?,
            list(resources, &paging(Kind::Resource))?,
            list(templates, &paging(Kind::ResourceTemplate))?,
            list(prompts, &paging(Kind::Prompt))?,
            flags,
        ))
    }
}

fn list<D: Definition, H>(drafts: Vec<Draft<D, H>>, paging: &Paging<'_>) -> Result<List<D, H>, BuildError> {
    let mut entries = Vec::with_capacity(drafts.len());
    for (definition, handler, terms) in drafts {
        let name = String::from(definition.key());
        let entry = Entry::new(definition, handler, terms);
        entries.push(entry.map_err(|problem| BuildError { kind: D::KIND, name, problem })?);
    }
    List::new(entries, paging)
}

impl<H> fmt::Debug for RegistryBuilder<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Handlers need not be printable, and the secret must not be.
        f.debug_struct("RegistryBuilder")
            .field("tools", &self.tools.len())
            .field("resources", &self.resources.len())
            .field("templates", &self.templates.len())
            .field("prompts", &self.prompts.len())
            .field("page_size", &self.page_size)
            .finish_non_exhaustive()
    }
}
