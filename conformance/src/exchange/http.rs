//! The steps of the HTTP transport.

use serde_json::{Map, Value};

use super::fields::{Fields, brief, string};
use crate::pattern::{Pattern, template};

/// One HTTP request and what its answer has to be.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpStep {
    /// The method; `POST` if there is a body or a message, else `GET`.
    pub method: Option<String>,
    /// The path, that of the endpoint if absent; a template.
    pub path: Option<Value>,
    /// The header lines; templates by name. An array is as many lines.
    pub headers: Map<String, Value>,
    /// The body, a template: text as it stands, anything else as JSON.
    pub body: Option<Value>,
    /// A message in place of the body: bound to the revision, and with the headers that belong to it.
    pub message: Option<Value>,
    /// What the answer has to be.
    pub expect: HttpExpect,
    /// A name for the answer. It then stays open, and only its head is looked at, if at all.
    pub name: Option<String>,
    /// Milliseconds to wait, if not the default.
    pub within: Option<u64>,
}

/// What an HTTP answer has to be. What is not named is free.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HttpExpect {
    /// The status.
    pub status: Option<Pattern>,
    /// Headers by name in lower case.
    pub headers: Vec<(String, Pattern)>,
    /// The body: JSON where its type says so, else text; not there if it is empty.
    pub body: Option<Pattern>,
    /// The response to the JSON-RPC request, whether it came as JSON or on an event stream.
    pub message: Option<Pattern>,
    /// The events of an event stream, in order.
    pub events: Option<Pattern>,
    /// Whether the answer has to be complete within the time.
    pub end: bool,
}

/// A look at an answer that was given a name.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Watch {
    /// The name.
    pub of: String,
    /// What to wait for.
    pub what: Watched,
}

/// What an open answer has to do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Watched {
    /// These events come, in order.
    Events {
        /// One pattern an event.
        patterns: Vec<Pattern>,
        /// Events to pass over. One without data is always passed over if it is not wanted.
        skip: Vec<Pattern>,
        /// Milliseconds to wait, if not the default.
        within: Option<u64>,
    },
    /// No event that fits comes for so many milliseconds.
    Nothing {
        /// Milliseconds.
        millis: u64,
        /// What may not come; any event with data if absent.
        of: Option<Pattern>,
    },
    /// It ends within so many milliseconds.
    End(u64),
    /// It is complete, and is this.
    Answer(Box<HttpExpect>),
    /// It is closed from this side.
    HangUp,
}

impl HttpStep {
    pub(super) fn read(request: Value, outer: &mut Fields) -> Result<Self, String> {
        let mut fields = Fields::of("http", request)?;
        let method = fields.string("method")?;
        let path = fields.value("path");
        let headers = headers(fields.value("headers"))?;
        let (body, message) = (fields.value("body"), fields.value("message"));
        fields.finish()?;
        if body.is_some() && message.is_some() {
            return Err("`http`: expected `body` or `message`, got both".to_owned());
        }
        for template in path.iter().chain(&body).chain(&message) {
            template::check(template)?;
        }
        let expect = outer.value("expect").map(HttpExpect::read).transpose()?.unwrap_or_default();
        let (name, within) = (outer.string("as")?, outer.count("within")?);
        Ok(Self { method, path, headers, body, message, expect, name, within })
    }
}

impl HttpExpect {
    /// Whether anything is expected.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.status.is_none()
            && self.headers.is_empty()
            && self.body.is_none()
            && self.message.is_none()
            && self.events.is_none()
            && !self.end
    }

    fn read(value: Value) -> Result<Self, String> {
        let mut fields = Fields::of("expect of `http`", value)?;
        let pattern = |fields: &mut Fields, name| fields.value(name).map(Pattern::parse).transpose();
        let expect = Self {
            status: pattern(&mut fields, "status")?,
            headers: header_patterns(fields.value("headers"))?,
            body: pattern(&mut fields, "body")?,
            message: pattern(&mut fields, "message")?,
            events: pattern(&mut fields, "events")?,
            end: fields.boolean("end")?.unwrap_or(false),
        };
        fields.finish()?;
        Ok(expect)
    }
}

impl Watch {
    pub(super) fn read(of: String, fields: &mut Fields) -> Result<Self, String> {
        let what = match fields.value("expect") {
            Some(Value::Array(events)) => Watched::Events {
                patterns: events.into_iter().map(Pattern::parse).collect::<Result<_, _>>()?,
                skip: match fields.value("skip") {
                    None => Vec::new(),
                    Some(Value::Array(items)) => {
                        items.into_iter().map(Pattern::parse).collect::<Result<_, _>>()?
                    }
                    Some(one) => vec![Pattern::parse(one)?],
                },
                within: fields.count("within")?,
            },
            Some(answer @ Value::Object(_)) => Watched::Answer(Box::new(HttpExpect::read(answer)?)),
            Some(other) => {
                return Err(format!(
                    "`expect`: expected an array of events or an answer, got {}",
                    brief(&other)
                ));
            }
            None => match (fields.count("nothing")?, fields.count("ends")?) {
                (Some(millis), None) => {
                    Watched::Nothing { millis, of: fields.value("of").map(Pattern::parse).transpose()? }
                }
                (None, Some(millis)) => Watched::End(millis),
                _ => return Err("`stream`: expected one of `expect`, `nothing`, `ends`".to_owned()),
            },
        };
        Ok(Self { of, what })
    }
}

/// Header lines by name, as templates.
pub(super) fn headers(value: Option<Value>) -> Result<Map<String, Value>, String> {
    match value {
        None => Ok(Map::new()),
        Some(Value::Object(headers)) => {
            headers.values().try_for_each(template::check)?;
            Ok(headers)
        }
        Some(other) => Err(format!("`headers`: expected an object, got {}", brief(&other))),
    }
}

/// Patterns by header name.
pub(super) fn header_patterns(value: Option<Value>) -> Result<Vec<(String, Pattern)>, String> {
    match value {
        None => Ok(Vec::new()),
        Some(Value::Object(headers)) => headers
            .into_iter()
            .map(|(name, pattern)| Ok((name.to_ascii_lowercase(), Pattern::parse(pattern)?)))
            .collect(),
        Some(other) => Err(format!("`headers`: expected an object, got {}", brief(&other))),
    }
}

/// A transport by name.
pub(super) fn over(fields: &mut Fields) -> Result<Option<super::Transport>, String> {
    match fields.value("over").map(|value| string("over", value)).transpose()?.as_deref() {
        None => Ok(None),
        Some("stdio") => Ok(Some(super::Transport::Stdio)),
        Some("http") => Ok(Some(super::Transport::Http)),
        Some(other) => Err(format!("`over`: expected `stdio` or `http`, got `{other}`")),
    }
}
