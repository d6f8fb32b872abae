//! The configuration that hosts use: which servers there are, and how they are reached.

mod expand;
mod json;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::Child;
use crate::Runtime;
use expand::expand;
use json::{At, Json};

/// The servers of a host, as its users write them down:
///
/// ```json
/// {
///   "mcpServers": {
///     "files": { "command": "npx", "args": ["-y", "some-server", "/data"], "env": { "LEVEL": "debug" }, "cwd": "/" },
///     "team": { "type": "http", "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } }
///   }
/// }
/// ```
///
/// There is no standard for it; this is what the common hosts have in common. `servers` is taken for `mcpServers`, and
/// `transport` for `type`: `stdio`, `http` (or `streamable-http`, `streamableHttp`), `sse`. In every text, `${NAME}` is
/// what the environment has under that name, `${NAME:-else}` what is said there if it has nothing or an empty text, and
/// `${env:NAME}` the same as `${NAME}`. A name without a value is an error. Nothing else is special: `$NAME` and `~`
/// stay as they are.
///
/// One entry that is wrong does not harm the others. Members that are not known are kept by name, for hosts have their
/// own.
#[derive(Debug, Clone)]
pub struct Servers(Vec<(String, Result<Entry, ConfigError>)>);

/// One server of a configuration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// How it is reached.
    pub way: Way,
    /// Whether it is not to be used: `disabled`.
    pub disabled: bool,
    /// The names of members that mean nothing here.
    pub unknown: Vec<String>,
}

/// How a server of a configuration is reached.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Way {
    /// A program to be started.
    #[non_exhaustive]
    Program {
        /// Its name or path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables of its environment.
        env: BTreeMap<String, String>,
        /// Its working folder.
        cwd: Option<PathBuf>,
    },
    /// A server on the network.
    #[non_exhaustive]
    Url {
        /// Its address.
        url: String,
        /// What is sent with each request, in the order of the text.
        headers: Vec<(String, String)>,
        /// It is said to speak HTTP+SSE of 2024-11-05 only.
        sse: bool,
    },
}

/// What is wrong with a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    pointer: String,
    problem: String,
}

impl ConfigError {
    fn new(at: &At<'_>, problem: impl Into<String>) -> Self {
        Self { pointer: at.to_string(), problem: problem.into() }
    }

    /// The place in the text, as a JSON pointer. Empty for the whole.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.pointer
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pointer {
            "" => f.write_str(&self.problem),
            pointer => write!(f, "at {pointer}: {}", self.problem),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Servers {
    /// Reads a configuration, with the environment of this process.
    ///
    /// # Errors
    /// [`ConfigError`] if it is no JSON or has no servers. What is wrong with one of them is told in its place.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(text, |name| std::env::var(name).ok())
    }

    /// Reads a configuration, with `value` as what the names have for values.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let json = json::parse(text)?;
        let root = At::Root;
        let members = object(&json, &root)?;
        let found = |name| members.iter().find(|(member, _)| member == name);
        let (name, servers) = match (found("mcpServers"), found("servers")) {
            (Some(servers), None) | (None, Some(servers)) => servers,
            (Some(_), Some(_)) => {
                return Err(ConfigError::new(&root, "expected mcpServers or servers, found both"));
            }
            (None, None) => return Err(ConfigError::new(&root, "expected a member mcpServers, found none")),
        };
        let at = root.member(name);
        let read = |(name, entry): &(String, Json)| {
            let at = at.member(name);
            (name.clone(), Reading { at: &at, value: &value }.entry(entry))
        };
        Ok(Self(object(servers, &at)?.iter().map(read).collect()))
    }

    /// All of them by name, in the order of the text: what is to be used, or what is wrong with it.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Result<&Entry, &ConfigError>)> {
        self.0.iter().map(|(name, entry)| (&**name, entry.as_ref()))
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Result<&Entry, &ConfigError>> {
        self.iter().find(|(other, _)| *other == name).map(|(_, entry)| entry)
    }
}

impl Way {
    /// The program on `runtime`; `None` if it is none.
    #[must_use]
    pub fn child<R: Runtime>(&self, runtime: R) -> Option<Child<R>> {
        let Self::Program { command, args, env, cwd } = self else { return None };
        let child = Child::new(runtime, command).args(args).envs(env);
        Some(match cwd {
            Some(cwd) => child.current_dir(cwd),
            None => child,
        })
    }

    /// The server at the URL, from `runtime`; `None` if it is a program.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn remote<R: super::http::Network>(&self, runtime: R) -> Option<super::http::Remote<R>> {
        let Self::Url { url, headers, .. } = self else { return None };
        let remote = super::http::Remote::new(runtime, url);
        Some(headers.iter().fold(remote, |remote, (name, value)| remote.header(name, value)))
    }
}

/// One entry is being read.
struct Reading<'r, V> {
    at: &'r At<'r>,
    value: &'r V,
}

impl<V: Fn(&str) -> Option<String>> Reading<'_, V> {
    fn entry(&self, entry: &Json) -> Result<Entry, ConfigError> {
        const KNOWN: &[&str] =
            &["command", "args", "env", "cwd", "url", "headers", "type", "transport", "disabled"];
        let members = object(entry, self.at)?;
        let found =
            |name: &'static str| members.iter().find(|(member, _)| member == name).map(|(_, value)| value);
        let text = |name| found(name).map(|json| self.text(json, &self.at.member(name))).transpose();
        let kind = match (text("type")?, text("transport")?) {
            (Some(_), Some(_)) => {
                return Err(ConfigError::new(self.at, "expected type or transport, found both"));
            }
            (kind, transport) => kind.or(transport),
        };
        let way = match (text("command")?, text("url")?) {
            (Some(_), Some(_)) => {
                return Err(ConfigError::new(self.at, "expected command or url, found both"));
            }
            (None, None) => return Err(ConfigError::new(self.at, "expected command or url, found neither")),
            (Some(command), None) => {
                self.refuse(members, "command", &["headers"])?;
                self.kind(kind.as_deref(), &["stdio"])?;
                let command = self.filled(command, "command")?;
                let args = match found("args") {
                    Some(args) => self.texts(args, &self.at.member("args"))?,
                    None => Vec::new(),
                };
                let env = match found("env") {
                    Some(env) => self.pairs(env, &self.at.member("env"))?.into_iter().collect(),
                    None => BTreeMap::new(),
                };
                Way::Program { command, args, env, cwd: text("cwd")?.map(Into::into) }
            }
            (None, Some(url)) => {
                self.refuse(members, "url", &["args", "cwd"])?;
                self.kind(kind.as_deref(), &["http", "streamable-http", "streamableHttp", "sse"])?;
                let headers = match found("headers") {
                    Some(headers) => self.pairs(headers, &self.at.member("headers"))?,
                    None => Vec::new(),
                };
                Way::Url { url: self.filled(url, "url")?, headers, sse: kind.as_deref() == Some("sse") }
            }
        };
        let disabled = match found("disabled") {
            None => false,
            Some(Json::Bool(disabled)) => *disabled,
            Some(other) => return Err(expected("true or false", other, &self.at.member("disabled"))),
        };
        let unknown = members.iter().map(|(name, _)| name).filter(|name| !KNOWN.contains(&&***name));
        Ok(Entry { way, disabled, unknown: unknown.cloned().collect() })
    }

    /// What belongs to the other kind was not meant.
    fn refuse(&self, members: &[(String, Json)], with: &str, names: &[&str]) -> Result<(), ConfigError> {
        match members.iter().find(|(name, _)| names.contains(&&**name)) {
            None => Ok(()),
            Some((name, _)) => {
                Err(ConfigError::new(&self.at.member(name), format!("a server with {with} has none")))
            }
        }
    }

    fn kind(&self, kind: Option<&str>, expected: &[&str]) -> Result<(), ConfigError> {
        match kind {
            Some(kind) if !expected.contains(&kind) => {
                let problem = format!("expected {}, found {kind:?}", expected.join(" or "));
                Err(ConfigError::new(&self.at.member("type"), problem))
            }
            _ => Ok(()),
        }
    }

    fn filled(&self, text: String, name: &str) -> Result<String, ConfigError> {
        match text.trim().is_empty() {
            true => Err(ConfigError::new(&self.at.member(name), "expected a text, found an empty one")),
            false => Ok(text),
        }
    }

    fn text(&self, json: &Json, at: &At<'_>) -> Result<String, ConfigError> {
        match json {
            Json::Text(text) => {
                let expanded = expand(text, self.value).map_err(|problem| ConfigError::new(at, problem))?;
                match expanded.contains('\0') {
                    true => Err(ConfigError::new(at, "found a character 0, which no program can be given")),
                    false => Ok(expanded),
                }
            }
            other => Err(expected("a text", other, at)),
        }
    }

    fn texts(&self, json: &Json, at: &At<'_>) -> Result<Vec<String>, ConfigError> {
        match json {
            Json::Array(items) => {
                items.iter().enumerate().map(|(index, item)| self.text(item, &at.item(index))).collect()
            }
            other => Err(expected("an array of texts", other, at)),
        }
    }

    fn pairs(&self, json: &Json, at: &At<'_>) -> Result<Vec<(String, String)>, ConfigError> {
        let pair = |(name, value): &(String, Json)| {
            let at = at.member(name);
            match name.is_empty() || name.contains(['=', '\0']) {
                true => Err(ConfigError::new(&at, "expected the name of a variable or a header")),
                false => Ok((name.clone(), self.text(value, &at)?)),
            }
        };
        object(json, at)?.iter().map(pair).collect()
    }
}

fn object<'j>(json: &'j Json, at: &At<'_>) -> Result<&'j [(String, Json)], ConfigError> {
    match json {
        Json::Object(members) => Ok(members),
        other => Err(expected("an object", other, at)),
    }
}

fn expected(what: &str, found: &Json, at: &At<'_>) -> ConfigError {
    ConfigError::new(at, format!("expected {what}, found {}", found.kind()))
}

/// Names only where values may be secrets.
impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { command, args, env, cwd } => f
                .debug_struct("Program")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish(),
            Self::Url { headers, sse, .. } => f
                .debug_struct("Url")
                .field("headers", &headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
                .field("sse", sse)
                .finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests;
