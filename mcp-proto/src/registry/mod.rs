//! What a server offers: tools, resources, resource templates and prompts, each with its handler.
//!
//! A [`Registry`] answers list requests from bytes that were written once, finds what a request names,
//! and decides who may see what. It never calls a handler: it hands out `&H`.
//!
//! ```
//! use mcp_proto::model::{JsonSchema, ProtocolVersion, Tool};
//! use mcp_proto::registry::Registry;
//!
//! let registry = Registry::builder()
//!     .tool(Tool::new("add", JsonSchema::any_object()), "the handler of add")
//!     .build()?;
//!
//! let version = ProtocolVersion::LATEST;
//! let mut out = Vec::new();
//! registry.list_tools(version, None, None, &mut out)?;
//! assert!(out.starts_with(br#"{"tools":[{"name":"add","#));
//!
//! assert_eq!(*registry.tool(version, None, "add")?.handler(), "the handler of add");
//! assert_eq!(registry.tool(version, None, "sub").unwrap_err().message, "Unknown tool: sub");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod builder;
mod cursor;
mod entry;
mod error;
mod list;
#[cfg(test)]
mod tests;
pub mod uri_template;

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

pub use access::{Access, Terms};
pub use builder::RegistryBuilder;
pub use entry::{Definition, Entry, Kind, PromptEntry, ResourceEntry, ResourceTemplateEntry, ToolEntry};
pub use error::{BuildError, Problem};

use builder::Flags;
use list::List;
use uri_template::Captures;

use crate::model::method::CompletionReference;
use crate::model::{Prompt, ProtocolVersion, Resource, ResourceTemplate, ServerCapabilities, Tool};
use crate::rpc::Error;
use crate::server::{Principal, Scopes};

/// What a server offers. Frozen, but for the [switches](Self::set_enabled); share it.
///
/// Every answer depends on who asks. An item that is switched off, or not for the caller, does not exist
/// for the caller: lists leave it out, and naming it gives the error that any unknown name gives.
pub struct Registry<H> {
    tools: List<Tool, H>,
    resources: List<Resource, H>,
    templates: List<ResourceTemplate, H>,
    prompts: List<Prompt, H>,
    /// Positions of templates, those first that pin down most of a URI.
    by_specificity: Vec<u32>,
    flags: Flags,
}

/// What a URI leads to.
#[non_exhaustive]
pub enum ResourceMatch<'a, H> {
    /// A resource that has this URI.
    Resource(&'a ResourceEntry<H>),
    /// A template that this URI follows, and the values of its variables.
    Template(&'a ResourceTemplateEntry<H>, Captures<'a>),
}

impl<'a, H> ResourceMatch<'a, H> {
    /// What answers for it.
    #[must_use]
    pub const fn handler(&self) -> &'a H {
        match self {
            Self::Resource(entry) => entry.handler(),
            Self::Template(entry, _) => entry.handler(),
        }
    }

    /// What a token must allow for it to be read.
    #[must_use]
    pub const fn scopes(&self) -> &'a Scopes {
        match self {
            Self::Resource(entry) => entry.scopes(),
            Self::Template(entry, _) => entry.scopes(),
        }
    }

    /// The values of the template's variables.
    #[must_use]
    pub const fn captures(&self) -> Option<&Captures<'a>> {
        match self {
            Self::Resource(_) => None,
            Self::Template(_, captures) => Some(captures),
        }
    }
}

/// What arguments can be completed of.
#[non_exhaustive]
pub enum Completable<'a, H> {
    /// Arguments of a prompt.
    Prompt(&'a PromptEntry<H>),
    /// Variables of a URI template, which the client names by the template itself.
    Template(&'a ResourceTemplateEntry<H>),
    /// A resource: it has no arguments, but asking is allowed. There are no suggestions.
    Resource(&'a ResourceEntry<H>),
}

impl<'a, H> Completable<'a, H> {
    /// What a token must allow for it to be used, and so for its arguments to be completed.
    #[must_use]
    pub const fn scopes(&self) -> &'a Scopes {
        match self {
            Self::Prompt(entry) => entry.scopes(),
            Self::Template(entry) => entry.scopes(),
            Self::Resource(entry) => entry.scopes(),
        }
    }

    /// What answers for it, if that was said to [complete](Terms::completes) arguments; otherwise there are
    /// no suggestions.
    #[must_use]
    pub fn completer(&self) -> Option<&'a H> {
        match self {
            Self::Prompt(entry) => entry.completes().then_some(entry.handler()),
            Self::Template(entry) => entry.completes().then_some(entry.handler()),
            Self::Resource(_) => None,
        }
    }
}

impl<H> Registry<H> {
    /// Starts to collect.
    pub fn builder() -> RegistryBuilder<H> {
        RegistryBuilder::default()
    }

    pub(crate) fn new(
        tools: List<Tool, H>,
        resources: List<Resource, H>,
        templates: List<ResourceTemplate, H>,
        prompts: List<Prompt, H>,
        flags: Flags,
    ) -> Self {
        let mut by_specificity: Vec<u32> = (0..).take(templates.entries().len()).collect();
        // Stable: of equals, the one registered first.
        by_specificity
            .sort_by_key(|at| Reverse(templates.entries()[*at as usize].uri_template().specificity()));
        Self { tools, resources, templates, prompts, by_specificity, flags }
    }

    /// Switches an item on or off for everyone, to offer things step by step. An item that does not exist
    /// cannot change.
    ///
    /// Returns whether that changed anything: then [`Kind::change`] is to be
    /// [published](crate::server::Connection::publish).
    pub fn set_enabled(&self, kind: Kind, name: &str, on: bool) -> bool {
        match kind {
            Kind::Tool => self.tools.get(name).is_some_and(|e| e.set_enabled(on)),
            Kind::Resource => self.resources.get(name).is_some_and(|e| e.set_enabled(on)),
            Kind::ResourceTemplate => self.templates.get(name).is_some_and(|e| e.set_enabled(on)),
            Kind::Prompt => self.prompts.get(name).is_some_and(|e| e.set_enabled(on)),
        }
    }

    /// Appends the answer to `tools/list`: a JSON object as the revision has it, without `resultType`
    /// and `_meta`. Items come in the order of registration. [spec: server/tools#listing-tools]
    ///
    /// # Errors
    ///
    /// `-32602` if the cursor is not one of this list; an empty one never is. `out` is as it was.
    pub fn list_tools(
        &self,
        version: ProtocolVersion,
        principal: Option<&Principal>,
        cursor: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.tools.write_page(version, principal, cursor, out)
    }

    /// Appends the answer to `resources/list`; see [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    ///
    /// `-32602` if the cursor is not one of this list.
    pub fn list_resources(
        &self,
        version: ProtocolVersion,
        principal: Option<&Principal>,
        cursor: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.resources.write_page(version, principal, cursor, out)
    }

    /// Appends the answer to `resources/templates/list`; see [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    ///
    /// `-32602` if the cursor is not one of this list.
    pub fn list_templates(
        &self,
        version: ProtocolVersion,
        principal: Option<&Principal>,
        cursor: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.templates.write_page(version, principal, cursor, out)
    }

    /// Appends the answer to `prompts/list`; see [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    ///
    /// `-32602` if the cursor is not one of this list.
    pub fn list_prompts(
        &self,
        version: ProtocolVersion,
        principal: Option<&Principal>,
        cursor: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.prompts.write_page(version, principal, cursor, out)
    }

    /// The tool of this name. [spec: server/tools#error-handling]
    ///
    /// # Errors
    ///
    /// `-32602` if there is none for this caller.
    pub fn tool(
        &self,
        _version: ProtocolVersion,
        principal: Option<&Principal>,
        name: &str,
    ) -> Result<&ToolEntry<H>, Error> {
        self.tools.visible(principal, name).ok_or_else(|| error::unknown_tool(name))
    }

    /// The prompt of this name. See also [`PromptEntry::check_arguments`](Entry::check_arguments).
    /// [spec: server/prompts#error-handling]
    ///
    /// # Errors
    ///
    /// `-32602` if there is none for this caller.
    pub fn prompt(
        &self,
        _version: ProtocolVersion,
        principal: Option<&Principal>,
        name: &str,
    ) -> Result<&PromptEntry<H>, Error> {
        self.prompts.visible(principal, name).ok_or_else(|| error::unknown_prompt(name))
    }

    /// What this URI leads to: the resource that has it, else, of the templates that it follows, the one
    /// that pins down most of it. To read it or to subscribe to it. [spec: server/resources#error-handling]
    ///
    /// # Errors
    ///
    /// `-32002`, since 2026-07-28 `-32602`, with `data.uri`, if there is nothing for this caller.
    pub fn resource(
        &self,
        version: ProtocolVersion,
        principal: Option<&Principal>,
        uri: &str,
    ) -> Result<ResourceMatch<'_, H>, Error> {
        self.find_resource(principal, uri).ok_or_else(|| error::resource_not_found(version, uri))
    }

    /// Whether this URI leads anywhere: what a `subscriptions/listen` may ask for.
    #[must_use]
    pub fn offers_resource(&self, principal: Option<&Principal>, uri: &str) -> bool {
        self.find_resource(principal, uri).is_some()
    }

    /// What a `completion/complete` is about. [spec: server/utilities/completion#error-handling]
    ///
    /// # Errors
    ///
    /// `-32602` if there is no such thing for this caller.
    pub fn completion(
        &self,
        _version: ProtocolVersion,
        principal: Option<&Principal>,
        reference: &CompletionReference<'_>,
    ) -> Result<Completable<'_, H>, Error> {
        match reference {
            CompletionReference::Prompt(name) => {
                let entry =
                    self.prompts.visible(principal, name).ok_or_else(|| error::unknown_prompt(name))?;
                Ok(Completable::Prompt(entry))
            }
            CompletionReference::Resource(uri) => {
                if let Some(entry) = self.templates.visible(principal, uri) {
                    return Ok(Completable::Template(entry));
                }
                let entry = self.resources.visible(principal, uri);
                entry.map(Completable::Resource).ok_or_else(|| error::unknown_reference(uri))
            }
        }
    }

    /// All tools in order, whoever may see them.
    #[must_use]
    pub fn tools(&self) -> &[ToolEntry<H>] {
        self.tools.entries()
    }

    /// All resources in order, whoever may see them.
    #[must_use]
    pub fn resources(&self) -> &[ResourceEntry<H>] {
        self.resources.entries()
    }

    /// All resource templates in order, whoever may see them.
    #[must_use]
    pub fn templates(&self) -> &[ResourceTemplateEntry<H>] {
        self.templates.entries()
    }

    /// All prompts in order, whoever may see them.
    #[must_use]
    pub fn prompts(&self) -> &[PromptEntry<H>] {
        self.prompts.entries()
    }

    /// What is to be declared for what is registered: it does not depend on switches or on the caller.
    #[must_use]
    pub fn capabilities(&self) -> ServerCapabilities {
        let mut all = ServerCapabilities::new();
        if !self.tools.is_empty() {
            all = all.tools(self.flags.tools_list_changed);
        }
        if !self.resources.is_empty() || !self.templates.is_empty() {
            all = all.resources(self.flags.subscribe, self.flags.resources_list_changed);
        }
        if !self.prompts.is_empty() {
            all = all.prompts(self.flags.prompts_list_changed);
        }
        let completes =
            self.prompts().iter().any(Entry::completes) || self.templates().iter().any(Entry::completes);
        if completes { all.completions() } else { all }
    }

    fn find_resource(&self, principal: Option<&Principal>, uri: &str) -> Option<ResourceMatch<'_, H>> {
        if let Some(entry) = self.resources.visible(principal, uri) {
            return Some(ResourceMatch::Resource(entry));
        }
        self.by_specificity
            .iter()
            .map(|at| &self.templates.entries()[*at as usize])
            .filter(|entry| entry.is_visible(principal))
            .find_map(|entry| Some(ResourceMatch::Template(entry, entry.uri_template().matches(uri)?)))
    }
}

impl<H> fmt::Debug for ResourceMatch<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(entry) => f.debug_tuple("Resource").field(entry).finish(),
            Self::Template(entry, captures) => {
                f.debug_tuple("Template").field(entry).field(captures).finish()
            }
        }
    }
}

impl<H> fmt::Debug for Completable<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prompt(entry) => f.debug_tuple("Prompt").field(entry).finish(),
            Self::Template(entry) => f.debug_tuple("Template").field(entry).finish(),
            Self::Resource(entry) => f.debug_tuple("Resource").field(entry).finish(),
        }
    }
}

impl<H> fmt::Debug for Registry<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("tools", &self.tools)
            .field("resources", &self.resources)
            .field("templates", &self.templates)
            .field("prompts", &self.prompts)
            .finish_non_exhaustive()
    }
}
