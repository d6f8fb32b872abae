//! The first line of an exchange.

use serde_json::Value;

use super::fields::{Fields, brief};
use super::signature::Signature;
use crate::http::TokenKind;
use crate::pattern::template;
use crate::requirement::{self, Level};
use crate::revision::{Revision, Selector};

/// The head of an exchange: what it is about and where it applies.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Head {
    /// The name, `area/what-it-shows`; equal to the path of the file without its ending.
    pub name: String,
    /// One sentence for the reader of a report.
    pub about: String,
    /// The side under test.
    pub side: Side,
    /// The revisions it covers.
    pub revisions: Selector,
    /// The transports it covers.
    pub transports: Vec<Transport>,
    /// Ids of the requirements and cases it checks.
    pub requires: Vec<String>,
    /// What the subject must offer, else the exchange is skipped.
    pub needs: Needs,
    /// What a breach counts as at most; without it, what the cited requirements say.
    pub level: Option<Level>,
    /// The capabilities the client side declares, as a template; `{}` if the head names none.
    pub client_capabilities: Value,
    /// Whether the replayer opens a legacy session before the first step.
    pub handshake: bool,
    /// Whether the exchange leaves no trace, so that others may be played on the same instance.
    pub reuse: bool,
    /// Whether it counts on an instance that nothing was played on before.
    pub fresh: bool,
    /// Whether it is a half of a recording: what it holds is what one peer said, and cites nothing.
    pub recorded: bool,
}

/// The side under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a connection has two sides")]
pub enum Side {
    /// The subject is a server; the suite speaks as the client.
    Server,
    /// The subject is a client.
    Client,
}

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Transport {
    /// One message a line over the pipes of a process.
    Stdio,
    /// Streamable HTTP.
    Http,
}

impl Transport {
    /// The name used in exchanges and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

/// What a subject must offer for an exchange to say anything about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// Paths into the declared server capabilities, such as `tools` or `resources.subscribe`.
    pub capabilities: Vec<String>,
    /// Extensions by id, declared under `extensions`.
    pub extensions: Vec<String>,
    /// Tools that `tools/list` gives.
    pub tools: Vec<Signature>,
    /// Names that `prompts/list` gives.
    pub prompts: Vec<String>,
    /// URIs that `resources/list` gives.
    pub resources: Vec<String>,
    /// URI templates that `resources/templates/list` gives.
    pub templates: Vec<String>,
    /// Revisions that the subject serves as well, beside the one of the cell.
    pub revisions: Vec<Revision>,
    /// What the subject offers over HTTP.
    pub http: Vec<Offer>,
    /// Access tokens of the subject, over HTTP.
    pub tokens: Vec<TokenKind>,
}

/// Something that a server may offer over HTTP, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Offer {
    /// Its sessions have ids.
    Session,
    /// A GET opens a stream of the session.
    Stream,
    /// A DELETE ends a session.
    Ending,
    /// The events of its streams have ids.
    EventIds,
    /// It is reached by a loopback address, so that it knows its own names.
    Loopback,
    /// The metadata of a protected resource are at the well-known path with the path of the endpoint behind it.
    MetadataAtPath,
    /// They are at the well-known path alone.
    MetadataAtRoot,
    /// It asks for tokens, and has no metadata at either.
    NoMetadata,
}

impl Offer {
    const ALL: [Self; 8] = [
        Self::Session,
        Self::Stream,
        Self::Ending,
        Self::EventIds,
        Self::Loopback,
        Self::MetadataAtPath,
        Self::MetadataAtRoot,
        Self::NoMetadata,
    ];

    /// The name used in exchanges and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Stream => "stream",
            Self::Ending => "ending",
            Self::EventIds => "event-ids",
            Self::Loopback => "loopback",
            Self::MetadataAtPath => "metadata-at-path",
            Self::MetadataAtRoot => "metadata-at-root",
            Self::NoMetadata => "no-metadata",
        }
    }
}

impl Needs {
    fn read(value: Value) -> Result<Self, String> {
        let mut fields = Fields::of("needs", value)?;
        let needs = Self {
            capabilities: fields.strings("capabilities")?,
            extensions: fields.strings("extensions")?,
            tools: fields
                .strings("tools")?
                .iter()
                .map(|text| Signature::parse(text))
                .collect::<Result<_, _>>()?,
            prompts: fields.strings("prompts")?,
            resources: fields.strings("resources")?,
            templates: fields.strings("templates")?,
            revisions: fields
                .strings("revisions")?
                .iter()
                .map(|date| served(date))
                .collect::<Result<_, _>>()?,
            http: fields.strings("http")?.iter().map(|name| offer(name)).collect::<Result<_, _>>()?,
            tokens: fields.strings("tokens")?.iter().map(|name| token(name)).collect::<Result<_, _>>()?,
        };
        fields.finish()?;
        Ok(needs)
    }
}

impl Head {
    pub(super) fn read(value: Value) -> Result<Self, String> {
        let mut fields = Fields::of("head", value)?;
        let name = text(&mut fields, "exchange")?;
        let about = text(&mut fields, "about")?;
        let side = match text(&mut fields, "side")?.as_str() {
            "server" => Side::Server,
            "client" => Side::Client,
            other => return Err(format!("`side`: expected `server` or `client`, got `{other}`")),
        };
        let revisions = revisions(fields.strings("revisions")?)?;
        let transports = transports(fields.strings("transports")?)?;
        let recorded = fields.boolean("recorded")?.unwrap_or(false);
        let requires = fields.strings("requires")?;
        if requires.is_empty() && !recorded {
            return Err("`requires`: expected at least one requirement id, got none".to_owned());
        }
        let needs = fields.value("needs").map(Needs::read).transpose()?.unwrap_or_default();
        let level = level(&mut fields)?;
        let client_capabilities = match fields.value("client") {
            None => Value::Object(serde_json::Map::new()),
            Some(value) => {
                template::check(&value)?;
                value
            }
        };
        let handshake = fields.boolean("handshake")?.unwrap_or(true);
        let reuse = fields.boolean("reuse")?.unwrap_or(false);
        let fresh = fields.boolean("fresh")?.unwrap_or(false);
        fields.finish()?;
        Ok(Self {
            name,
            about,
            side,
            revisions,
            transports,
            requires,
            needs,
            level,
            client_capabilities,
            handshake,
            reuse,
            fresh,
            recorded,
        })
    }

    /// What a breach of the exchange as a whole counts as under the revision.
    ///
    /// The strongest cited obligation that binds the revision decides; the head's own level lowers it.
    #[must_use]
    pub fn level_on(&self, revision: Revision) -> Level {
        let cited = requirement::strongest(self.requires.iter().map(String::as_str), revision);
        cited.unwrap_or(Level::Should).min(self.level.unwrap_or(Level::Must))
    }
}

pub(super) fn level(fields: &mut Fields) -> Result<Option<Level>, String> {
    match fields.string("level")?.as_deref() {
        None => Ok(None),
        Some("must") => Ok(Some(Level::Must)),
        Some("should") => Ok(Some(Level::Should)),
        Some(other) => Err(format!("`level`: expected `must` or `should`, got `{other}`")),
    }
}

fn text(fields: &mut Fields, name: &'static str) -> Result<String, String> {
    let value = fields.required(name)?;
    match value {
        Value::String(text) if !text.is_empty() => Ok(text),
        other => Err(format!("`{name}`: expected a string that is not empty, got {}", brief(&other))),
    }
}

fn served(date: &str) -> Result<Revision, String> {
    Revision::from_date(date).ok_or_else(|| format!("`needs`: expected the date of a revision, got `{date}`"))
}

fn offer(name: &str) -> Result<Offer, String> {
    let known = || Offer::ALL.map(Offer::as_str).join("`, `");
    let found = Offer::ALL.into_iter().find(|offer| offer.as_str() == name);
    found.ok_or_else(|| format!("`needs.http`: expected one of `{}`, got `{name}`", known()))
}

fn token(name: &str) -> Result<TokenKind, String> {
    let known = || TokenKind::ALL.map(TokenKind::as_str).join("`, `");
    let found = TokenKind::from_name(name);
    found.ok_or_else(|| format!("`needs.tokens`: expected one of `{}`, got `{name}`", known()))
}

fn revisions(names: Vec<String>) -> Result<Selector, String> {
    let mut selected: Option<Selector> = None;
    for name in names {
        let more = Selector::parse(&name).map_err(|error| format!("`revisions`: {error}"))?;
        selected = Some(selected.map_or(more, |so_far| so_far.or(more)));
    }
    selected.ok_or_else(|| "`revisions`: expected at least one revision, got none".to_owned())
}

fn transports(names: Vec<String>) -> Result<Vec<Transport>, String> {
    if names.is_empty() {
        return Err("`transports`: expected `stdio`, `http` or both, got none".to_owned());
    }
    let transport = |name: String| match name.as_str() {
        "stdio" => Ok(Transport::Stdio),
        "http" => Ok(Transport::Http),
        other => Err(format!("`transports`: expected `stdio` or `http`, got `{other}`")),
    };
    names.into_iter().map(transport).collect()
}
