//! One item of the registry.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use super::error::Problem;
use super::uri_template::UriTemplate;
use super::{Access, Terms};
use crate::model::view::{self, WriteError};
use crate::model::{HeaderArgument, Prompt, ProtocolVersion, Resource, ResourceTemplate, Tool, ToolName};
use crate::rpc::Error;
use crate::server::{Change, Principal, Scopes};

/// What kinds of items there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Named by its name.
    Tool,
    /// Named by its URI.
    Resource,
    /// Named by its URI template.
    ResourceTemplate,
    /// Named by its name.
    Prompt,
}

impl Kind {
    /// What to publish when the list of this kind has changed.
    #[must_use]
    pub const fn change(self) -> Change<'static> {
        match self {
            Self::Tool => Change::Tools,
            Self::Resource | Self::ResourceTemplate => Change::Resources,
            Self::Prompt => Change::Prompts,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource template",
            Self::Prompt => "prompt",
        })
    }
}

/// What is offered: a [`Tool`], [`Resource`], [`ResourceTemplate`] or [`Prompt`], and nothing else.
pub trait Definition: sealed::Sealed {}

pub(crate) mod sealed {
    use super::{Kind, Problem, ProtocolVersion, Vec, WriteError};

    #[allow(unreachable_pub, unnameable_types)] // the seal: reachable by no one, on purpose
    pub trait Sealed {
        const KIND: Kind;
        /// The member that holds the items in the answer to the list request.
        const MEMBER: &'static str;
        /// The name of that answer in the official schema.
        const RESULT: &'static str;
        /// What the registry has to know besides the definition.
        type Parsed;
        /// What clients call it by.
        fn key(&self) -> &str;
        fn parse(&self) -> Result<Self::Parsed, Problem>;
        fn write(&self, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), WriteError>;
    }
}
use sealed::Sealed;

/// An item with its handler.
pub struct Entry<D: Definition, H> {
    definition: D,
    parsed: D::Parsed,
    handler: H,
    access: Access,
    completes: bool,
    scopes: Scopes,
    enabled: AtomicBool,
}

/// A tool with its handler.
pub type ToolEntry<H> = Entry<Tool, H>;
/// A resource with its handler.
pub type ResourceEntry<H> = Entry<Resource, H>;
/// A resource template with its handler.
pub type ResourceTemplateEntry<H> = Entry<ResourceTemplate, H>;
/// A prompt with its handler.
pub type PromptEntry<H> = Entry<Prompt, H>;

impl<D: Definition, H> Entry<D, H> {
    pub(crate) fn new(definition: D, handler: H, terms: Terms) -> Result<Self, Problem> {
        let Terms { access, disabled, completes, scopes } = terms;
        let parsed = definition.parse()?;
        let enabled = AtomicBool::new(!disabled);
        Ok(Self { definition, parsed, handler, access, completes, scopes, enabled })
    }

    /// The item as it was registered.
    #[must_use]
    pub const fn definition(&self) -> &D {
        &self.definition
    }

    /// What answers for it.
    #[must_use]
    pub const fn handler(&self) -> &H {
        &self.handler
    }

    /// Who may see it.
    #[must_use]
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// Whether its handler completes arguments.
    #[must_use]
    pub const fn completes(&self) -> bool {
        self.completes
    }

    /// What a token must allow for it to be used.
    #[must_use]
    pub const fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Whether it is switched on.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire)
    }

    /// The one check that lists and uses share: whether the item exists for this caller.
    #[must_use]
    pub fn is_visible(&self, principal: Option<&Principal>) -> bool {
        self.is_enabled() && self.access.allows(principal)
    }

    pub(crate) fn key(&self) -> &str {
        self.definition.key()
    }

    /// Whether it was the other way before.
    pub(crate) fn set_enabled(&self, on: bool) -> bool {
        self.enabled.swap(on, Ordering::AcqRel) != on
    }
}

impl<H> Entry<Tool, H> {
    /// The arguments that clients mirror into HTTP headers, ordered by path.
    #[must_use]
    pub fn header_arguments(&self) -> &[HeaderArgument] {
        &self.parsed
    }
}

impl<H> Entry<ResourceTemplate, H> {
    /// The URI template.
    #[must_use]
    pub const fn uri_template(&self) -> &UriTemplate {
        &self.parsed
    }
}

impl<H> Entry<Prompt, H> {
    /// Checks that no required argument is missing. Arguments that the prompt does not know are no error.
    /// [spec: server/prompts#error-handling]
    ///
    /// # Errors
    ///
    /// `-32602` with the name of the first argument that is missing.
    pub fn check_arguments(&self, given: &[(Cow<'_, str>, Cow<'_, str>)]) -> Result<(), Error> {
        let required = self.definition.arguments.iter().flatten().filter(|a| a.required == Some(true));
        for argument in required {
            if !given.iter().any(|(name, _)| *name == argument.name) {
                return Err(Error::invalid_params(alloc::format!(
                    "Invalid params at /params/arguments: missing required argument \"{}\"",
                    argument.name
                )));
            }
        }
        Ok(())
    }
}

impl<D: Definition + fmt::Debug, H> fmt::Debug for Entry<D, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("definition", &self.definition)
            .field("access", &self.access)
            .field("completes", &self.completes)
            .field("enabled", &self.is_enabled())
            .finish_non_exhaustive()
    }
}

impl Definition for Tool {}
impl Definition for Resource {}
impl Definition for ResourceTemplate {}
impl Definition for Prompt {}

impl Sealed for Tool {
    const KIND: Kind = Kind::Tool;
    const MEMBER: &'static str = "tools";
    const RESULT: &'static str = "ListToolsResult";
    type Parsed = Vec<HeaderArgument>;

    fn key(&self) -> &str {
        &self.name
    }

    fn parse(&self) -> Result<Vec<HeaderArgument>, Problem> {
        ToolName::parse(self.name.clone()).map_err(Problem::ToolName)?;
        if !self.input_schema.root_is_object_type() {
            return Err(Problem::InputSchema);
        }
        self.input_schema.header_arguments().map_err(Problem::Header)
    }

    fn write(&self, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), WriteError> {
        view::write(out, version, self.fitted(version).as_ref().unwrap_or(self))
    }
}

impl Sealed for Resource {
    const KIND: Kind = Kind::Resource;
    const MEMBER: &'static str = "resources";
    const RESULT: &'static str = "ListResourcesResult";
    type Parsed = ();

    fn key(&self) -> &str {
        &self.uri
    }

    fn parse(&self) -> Result<(), Problem> {
        check_uri(&self.uri)
    }

    fn write(&self, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), WriteError> {
        view::write(out, version, self)
    }
}

impl Sealed for ResourceTemplate {
    const KIND: Kind = Kind::ResourceTemplate;
    const MEMBER: &'static str = "resourceTemplates";
    const RESULT: &'static str = "ListResourceTemplatesResult";
    type Parsed = UriTemplate;

    fn key(&self) -> &str {
        &self.uri_template
    }

    fn parse(&self) -> Result<UriTemplate, Problem> {
        UriTemplate::parse(&self.uri_template).map_err(Problem::Template)
    }

    fn write(&self, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), WriteError> {
        view::write(out, version, self)
    }
}

impl Sealed for Prompt {
    const KIND: Kind = Kind::Prompt;
    const MEMBER: &'static str = "prompts";
    const RESULT: &'static str = "ListPromptsResult";
    type Parsed = ();

    fn key(&self) -> &str {
        &self.name
    }

    fn parse(&self) -> Result<(), Problem> {
        if self.name.is_empty() {
            return Err(Problem::NoName);
        }
        let mut names = BTreeSet::new();
        for argument in self.arguments.iter().flatten() {
            if argument.name.is_empty() {
                return Err(Problem::NoArgumentName);
            }
            if !names.insert(&*argument.name) {
                return Err(Problem::DuplicateArgument(String::from(&*argument.name)));
            }
        }
        Ok(())
    }

    fn write(&self, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), WriteError> {
        view::write(out, version, self)
    }
}

/// The alphabet of RFC 3986 and a scheme; the rest is the scheme's own business.
fn check_uri(uri: &str) -> Result<(), Problem> {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme).as_bytes();
    let in_scheme = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    if !scheme.first().is_some_and(u8::is_ascii_alphabetic) || !scheme.iter().all(in_scheme) {
        return Err(Problem::NoScheme);
    }
    for (at, c) in uri.char_indices() {
        let fits = match c {
            '%' => {
                uri.as_bytes().get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
            }
            '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' => false,
            _ => c.is_ascii_graphic(),
        };
        if !fits {
            return Err(Problem::UriCharacter(c));
        }
    }
    Ok(())
}
