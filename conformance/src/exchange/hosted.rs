//! Exchanges for clients: what the subject is asked to do, what the suite's server has, and the steps as that
//! server sees them.

use base64::Engine as _;
use serde_json::{Map, Value};

use super::fields::{Fields, brief, string, whole};
use super::head::{self, Transport};
use super::http;
use super::step::{Cuts, Times};
use crate::pattern::{Pattern, template};
use crate::requirement::Level;
use crate::revision::Selector;

/// What an exchange for clients has beside its head.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hosted {
    /// What the subject is asked to do, as a template.
    pub plan: Value,
    /// What the server has: lists and capabilities.
    pub serves: Map<String, Value>,
    /// The revisions of the server, if not just the one of the cell.
    pub speaks: Option<Selector>,
    /// How the server behaves over HTTP.
    pub manners: Manners,
    /// Whether the server process goes on when its input has ended.
    pub lingers: bool,
    /// The steps.
    pub steps: Vec<HostStep>,
}

/// How the suite's server behaves over HTTP where the exchange does not say.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Manners {
    /// Whether a legacy session has an id.
    pub session: bool,
    /// Whether a legacy session has a stream.
    pub get: bool,
    /// Whether answers are event streams.
    pub events: bool,
    /// How notifications and responses are acknowledged, in place of 202.
    pub ack: Option<Response>,
}

/// One step.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HostStep {
    /// The line of the file it stands on, from 1.
    pub line: usize,
    /// The revisions on which the step runs.
    pub only: Selector,
    /// The transport on which the step runs, if not on every one.
    pub over: Option<Transport>,
    /// The requirements this step checks, where they are fewer than the head's.
    pub requires: Vec<String>,
    /// What a breach in this step counts as at most.
    pub level: Option<Level>,
    /// A remark for the reader of a report.
    pub note: Option<String>,
    /// What to do.
    pub act: Act,
}

/// What a step does.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Act {
    /// Waits for a message of the client.
    Expect(Await),
    /// Waits for an HTTP request without a message.
    Request(Plain),
    /// Answers a request of the client.
    Answer(Reply),
    /// Sends a notification or a request.
    Tell(Tell),
    /// Answers an HTTP request as it stands.
    Respond {
        /// The request; the latest if not named.
        to: Option<String>,
        /// The answer.
        response: Response,
    },
    /// Writes bytes as they stand.
    Write {
        /// The answer they are a part of; the output of the server if not named.
        on: Option<String>,
        /// The bytes, or a template for text.
        what: Written,
        /// Where the write is cut in separate ones.
        split: Option<Cuts>,
    },
    /// Ends an answer properly.
    End(String),
    /// Ends a connection in the middle of an answer.
    Cut(String),
    /// The client closes a connection, or the input of the server.
    Closed {
        /// The request, or `input`.
        of: String,
        /// Milliseconds to wait, if not the default.
        within: Option<u64>,
    },
    /// The server process exits with this code.
    Exit(u64),
    /// The client starts the server once more.
    Started,
    /// From now on such requests are answered at once.
    Standing {
        /// Answers by method, as templates.
        answers: Vec<(String, Value)>,
        /// How many there may be.
        most: Option<u64>,
    },
    /// Writes the same text over and over.
    Flood {
        /// The text, as a template.
        text: Value,
        /// The answer it is a part of; the output of the server if not named.
        on: Option<String>,
        /// How many bytes at most.
        most: u64,
    },
    /// The next line that the client prints.
    Reported {
        /// What it holds.
        pattern: Pattern,
        /// The name of the step it tells of, if the pattern says it.
        name: Option<String>,
        /// Milliseconds to wait, if not the default.
        within: Option<u64>,
    },
    /// Nothing that fits arrives for a while.
    Nothing {
        /// Milliseconds.
        millis: u64,
        /// What may not arrive; without it, anything that the server does not answer by itself.
        of: Option<Pattern>,
    },
    /// Messages that may come in any order.
    Unordered(Vec<HostStep>),
    /// Lets time pass.
    Wait(u64),
}

impl Act {
    /// Whether the server says or does something, and nothing is waited for.
    pub(crate) const fn says(&self) -> bool {
        !matches!(
            self,
            Self::Expect(_)
                | Self::Request(_)
                | Self::Unordered(_)
                | Self::Reported { .. }
                | Self::Nothing { .. }
                | Self::Wait(_)
                | Self::Closed { .. }
                | Self::Started
        )
    }
}

/// A message to wait for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Await {
    /// The method; `None` for the answer to a request of the server.
    pub method: Option<String>,
    /// The pattern for the message.
    pub pattern: Pattern,
    /// For an answer: the name of the request.
    pub of: Option<String>,
    /// A name for it.
    pub name: Option<String>,
    /// Milliseconds to wait, if not the default.
    pub within: Option<u64>,
    /// How many such messages, if not exactly one.
    pub times: Option<Times>,
    /// Over HTTP: headers with which it comes.
    pub headers: Vec<(String, Pattern)>,
}

/// An HTTP request without a message.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plain {
    /// The method.
    pub method: String,
    /// The path, if it matters.
    pub path: Option<Pattern>,
    /// Headers with which it comes.
    pub headers: Vec<(String, Pattern)>,
    /// A name for it.
    pub name: Option<String>,
    /// Whether it goes to the other origin.
    pub elsewhere: bool,
    /// Milliseconds to wait, if not the default.
    pub within: Option<u64>,
}

/// An answer to a request of the client.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Reply {
    /// The request; the latest if not named.
    pub to: Option<String>,
    /// Over HTTP: the answer or stream on which it goes, if not that of its request.
    pub on: Option<String>,
    /// `result` or `error`, and `id` or `jsonrpc` where they are wrong; a template.
    pub body: Value,
    /// Over HTTP: whether it is sent as an event.
    pub events: Option<bool>,
    /// Over HTTP: the status.
    pub status: Option<u64>,
    /// Over HTTP: header lines in place of those that belong to it.
    pub headers: Map<String, Value>,
    /// Lines of its event.
    pub event: Map<String, Value>,
    /// Whether the stream is left open after it.
    pub open: bool,
}

/// A message of the server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tell {
    /// The message, as a template.
    pub message: Value,
    /// The request over whose answer it goes, or `session`.
    pub on: Option<String>,
    /// A name for a request.
    pub name: Option<String>,
    /// Lines of its event.
    pub event: Map<String, Value>,
}

/// An HTTP answer as it stands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Response {
    /// The status.
    pub status: u64,
    /// Header lines, as templates.
    pub headers: Map<String, Value>,
    /// The body, as a template; what is no text is sent as JSON.
    pub body: Option<Value>,
    /// Whether more of the body follows.
    pub open: bool,
}

/// Something to write as it stands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Written {
    /// A template for text.
    Text(Value),
    /// Bytes.
    Bytes(Vec<u8>),
}

const STEPS: &str = "`expect`, `request`, `answer`, `tell`, `respond`, `write`, `write_bytes`, `end`, `cut`, \
                     `closed`, `exit`, `started`, `standing`, `flood`, `reported`, `nothing`, `unordered` or `wait`";

impl Hosted {
    /// Takes what belongs to a client's exchange out of its head; the rest is read as any head.
    pub(super) fn take(head: &mut Map<String, Value>) -> Result<Self, String> {
        let plan = head.remove("plan").ok_or("head: expected a member `plan`, got none")?;
        template::check(&plan)?;
        let serves = match head.remove("serves") {
            None => Map::new(),
            Some(Value::Object(serves)) => serves,
            Some(other) => return Err(wrong("serves", "an object", &other)),
        };
        template::check(&Value::Object(serves.clone()))?;
        let speaks = match head.remove("speaks") {
            None => None,
            Some(Value::String(text)) => {
                Some(Selector::parse(&text).map_err(|error| format!("`speaks`: {error}"))?)
            }
            Some(other) => return Err(wrong("speaks", "revisions", &other)),
        };
        let manners = Manners::read(head.remove("http"))?;
        let lingers = head.remove("lingers").is_some_and(|lingers| lingers == Value::Bool(true));
        Ok(Self { plan, serves, speaks, manners, lingers, steps: Vec::new() })
    }
}

impl Manners {
    fn read(value: Option<Value>) -> Result<Self, String> {
        let mut fields = Fields::of("http", value.unwrap_or_else(|| Value::Object(Map::new())))?;
        let manners = Self {
            session: fields.boolean("session")?.unwrap_or(true),
            get: fields.boolean("get")?.unwrap_or(true),
            events: fields.boolean("events")?.unwrap_or(false),
            ack: fields.value("ack").map(Response::read).transpose()?,
        };
        fields.finish()?;
        Ok(manners)
    }
}

impl HostStep {
    pub(super) fn read(line: usize, value: Value) -> Result<Self, String> {
        let mut fields = Fields::of("step", value)?;
        let only = match fields.string("only")? {
            None => Selector::ALL,
            Some(text) => Selector::parse(&text).map_err(|error| format!("`only`: {error}"))?,
        };
        let over = http::over(&mut fields)?;
        let requires = fields.strings("requires")?;
        let level = head::level(&mut fields)?;
        let note = fields.string("note")?;
        let act = Act::read(line, &mut fields)?;
        fields.finish()?;
        Ok(Self { line, only, over, requires, level, note, act })
    }

    /// The step and the steps inside it.
    #[must_use]
    pub fn all(&self) -> Vec<&Self> {
        let inner: &[Self] = if let Act::Unordered(steps) = &self.act { steps } else { &[] };
        std::iter::once(self).chain(inner).collect()
    }
}

impl Act {
    fn read(line: usize, fields: &mut Fields) -> Result<Self, String> {
        if let Some(pattern) = fields.value("expect") {
            return Await::read(pattern, fields).map(Self::Expect);
        }
        if let Some(method) = fields.string("request")? {
            return Plain::read(method, fields).map(Self::Request);
        }
        if let Some(body) = fields.value("answer") {
            return Reply::read(body, fields).map(Self::Answer);
        }
        if let Some(message) = fields.value("tell") {
            return Tell::read(message, fields).map(Self::Tell);
        }
        if let Some(response) = fields.value("respond") {
            return Ok(Self::Respond { to: fields.string("to")?, response: Response::read(response)? });
        }
        if let Some(act) = Self::writing(fields)? {
            return Ok(act);
        }
        if let Some(of) = fields.string("end")? {
            return Ok(Self::End(of));
        }
        if let Some(of) = fields.string("cut")? {
            return Ok(Self::Cut(of));
        }
        if let Some(of) = fields.string("closed")? {
            return Ok(Self::Closed { of, within: fields.count("within")? });
        }
        if let Some(code) = fields.count("exit")? {
            return Ok(Self::Exit(code));
        }
        if fields.boolean("started")?.is_some() {
            return Ok(Self::Started);
        }
        if let Some(answers) = fields.value("standing") {
            template::check(&answers)?;
            let Value::Object(answers) = answers else {
                return Err(wrong("standing", "answers by method", &answers));
            };
            return Ok(Self::Standing {
                answers: answers.into_iter().collect(),
                most: fields.count("most")?,
            });
        }
        if let Some(pattern) = fields.value("reported") {
            let name = pattern.get("as").and_then(Value::as_str).map(str::to_owned);
            let pattern = Pattern::parse(open(pattern))?;
            return Ok(Self::Reported { pattern, name, within: fields.count("within")? });
        }
        if let Some(millis) = fields.count("nothing")? {
            let of = fields.value("of").map(|of| Pattern::parse(open(of))).transpose()?;
            return Ok(Self::Nothing { millis, of });
        }
        if let Some(steps) = fields.value("unordered") {
            let Value::Array(steps) = steps else {
                return Err(wrong("unordered", "an array of steps", &steps));
            };
            let steps =
                steps.into_iter().map(|step| HostStep::read(line, step)).collect::<Result<Vec<_>, _>>()?;
            if !steps.iter().all(|step| matches!(step.act, Self::Expect(_) | Self::Request(_))) {
                return Err("`unordered`: expected `expect` and `request` steps only".to_owned());
            }
            return Ok(Self::Unordered(steps));
        }
        if let Some(millis) = fields.count("wait")? {
            return Ok(Self::Wait(millis));
        }
        Err(format!("step: expected one of {STEPS}"))
    }

    fn writing(fields: &mut Fields) -> Result<Option<Self>, String> {
        if let Some(text) = fields.value("flood") {
            template::check(&text)?;
            let most = whole("most", &fields.required("most")?)?;
            return Ok(Some(Self::Flood { text, on: fields.string("on")?, most }));
        }
        let what = if let Some(text) = fields.value("write") {
            template::check(&text)?;
            Written::Text(text)
        } else if let Some(text) = fields.string("write_bytes")? {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            Written::Bytes(bytes.map_err(|error| format!("`write_bytes`: expected base64, got {error}"))?)
        } else {
            return Ok(None);
        };
        let split = fields.value("split").map(|cuts| Cuts::read(&cuts)).transpose()?;
        Ok(Some(Self::Write { on: fields.string("on")?, what, split }))
    }
}

impl Await {
    fn read(pattern: Value, fields: &mut Fields) -> Result<Self, String> {
        let method = match pattern.get("method") {
            Some(Value::String(method)) => Some(method.clone()),
            Some(other) => return Err(wrong("method", "a method name", other)),
            None if ["result", "error", "$oneOf"].iter().any(|name| pattern.get(*name).is_some()) => None,
            None => return Err(wrong("expect", "an object with `method`, `result` or `error`", &pattern)),
        };
        let of = fields.string("for")?;
        if method.is_none() && of.is_none() {
            return Err("`expect`: expected `for` with an answer of the client".to_owned());
        }
        Ok(Self {
            method,
            pattern: Pattern::parse(open(pattern))?,
            of,
            name: fields.string("as")?,
            within: fields.count("within")?,
            times: fields.value("times").map(Times::read).transpose()?,
            headers: http::header_patterns(fields.value("headers"))?,
        })
    }
}

impl Plain {
    fn read(method: String, fields: &mut Fields) -> Result<Self, String> {
        Ok(Self {
            method,
            path: fields.value("path").map(Pattern::parse).transpose()?,
            headers: http::header_patterns(fields.value("headers"))?,
            name: fields.string("as")?,
            elsewhere: fields.boolean("elsewhere")?.unwrap_or(false),
            within: fields.count("within")?,
        })
    }
}

impl Reply {
    fn read(body: Value, fields: &mut Fields) -> Result<Self, String> {
        template::check(&body)?;
        if !body.is_object() {
            return Err(wrong("answer", "an object with `result` or `error`", &body));
        }
        Ok(Self {
            to: fields.string("to")?,
            on: fields.string("on")?,
            body,
            events: fields.boolean("events")?,
            status: fields.count("status")?,
            headers: http::headers(fields.value("headers"))?,
            event: http::headers(fields.value("event"))?,
            open: fields.boolean("open")?.unwrap_or(false),
        })
    }
}

impl Tell {
    fn read(message: Value, fields: &mut Fields) -> Result<Self, String> {
        template::check(&message)?;
        Ok(Self {
            message,
            on: fields.string("on")?,
            name: fields.string("as")?,
            event: http::headers(fields.value("event"))?,
        })
    }
}

impl Response {
    fn read(value: Value) -> Result<Self, String> {
        let mut fields = Fields::of("respond", value)?;
        let body = fields.value("body");
        body.as_ref().map_or(Ok(()), template::check)?;
        let response = Self {
            status: fields.count("status")?.unwrap_or(200),
            headers: http::headers(fields.value("headers"))?,
            body,
            open: fields.boolean("open")?.unwrap_or(false),
        };
        fields.finish()?;
        Ok(response)
    }
}

/// A pattern in which further members are free wherever an object is written.
fn open(pattern: Value) -> Value {
    match pattern {
        Value::Array(items) => Value::Array(items.into_iter().map(open).collect()),
        Value::Object(members) => {
            let operator = template::operator(&members).map(|(name, _)| name.to_owned());
            match operator.as_deref() {
                None => {
                    let mut opened: Map<_, _> =
                        members.into_iter().map(|(name, value)| (name, open(value))).collect();
                    opened.insert("$rest".to_owned(), Value::Bool(true));
                    Value::Object(opened)
                }
                Some("$rest") => Value::Object(members),
                Some(
                    "$oneOf" | "$all" | "$not" | "$optional" | "$contains" | "$unordered" | "$json" | "$bind",
                ) => Value::Object(members.into_iter().map(|(name, value)| (name, open(value))).collect()),
                Some("$byRevision") => {
                    let choices = |value| match value {
                        Value::Object(choices) => Value::Object(
                            choices.into_iter().map(|(name, value)| (name, open(value))).collect(),
                        ),
                        other => other,
                    };
                    Value::Object(members.into_iter().map(|(name, value)| (name, choices(value))).collect())
                }
                Some(_) => Value::Object(members),
            }
        }
        plain => plain,
    }
}

fn wrong(name: &str, expected: &str, got: &Value) -> String {
    format!("`{name}`: expected {expected}, got {}", brief(got))
}

/// A name in the head of a client's exchange.
pub(super) fn is_client(head: &Value) -> bool {
    head.get("side").cloned().and_then(|side| string("side", side).ok()).as_deref() == Some("client")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_of_a_pattern_are_open_but_for_what_is_literal() {
        assert_eq!(
            open(json!({"a": [{"b": 1}], "c": {"$literal": {"d": 1}}, "e": {"$oneOf": [{"f": 1}]}})),
            json!({"a": [{"b": 1, "$rest": true}], "c": {"$literal": {"d": 1}},
                "e": {"$oneOf": [{"f": 1, "$rest": true}]}, "$rest": true})
        );
        let choice = json!({"$byRevision": {"legacy": {"a": 1}, "*": {"$absent": true}}});
        assert_eq!(
            open(choice),
            json!({"$byRevision": {"legacy": {"a": 1, "$rest": true}, "*": {"$absent": true}}})
        );
    }

    #[test]
    fn a_step_that_is_none_says_what_was_expected() {
        let problem = |step: Value| HostStep::read(2, step).unwrap_err();
        assert!(problem(json!({"expects": {}})).contains("expected one of `expect`"));
        assert!(problem(json!({"expect": {"params": {}}})).contains("`method`, `result` or `error`"));
        assert!(problem(json!({"expect": {"result": {}}})).contains("`for`"));
        assert!(problem(json!({"unordered": [{"wait": 1}]})).contains("`expect` and `request`"));
        assert!(problem(json!({"wait": 1, "so": 2})).contains("got `so`"));
    }
}
