//! The steps of an exchange.

use base64::Engine as _;
use serde_json::{Map, Value};

use super::fields::{Fields, brief, whole};
use super::head::{self, Transport};
use super::http::{self, HttpStep, Watch, Watched};
use crate::pattern::{Pattern, template};
use crate::requirement::Level;
use crate::revision::Selector;

/// One step.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Step {
    /// The line of the file it stands on, from 1; a nested step has the line of the outer one.
    pub line: usize,
    /// What to do.
    pub action: Action,
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
}

/// What a step does.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Action {
    /// Sends a message, bound to the revision.
    Send(Send),
    /// Waits for a message and holds it against a pattern.
    Expect(Expect),
    /// Answers a request of the subject.
    Answer(Answer),
    /// Writes bytes as they stand.
    SendBytes(Vec<u8>),
    /// Writes text as it stands; no line end is added.
    SendText(Text),
    /// Cuts what the next step writes at these places: in separate writes, over HTTP in chunks of a body.
    Split(Cuts),
    /// Ends the subject's input.
    CloseInput,
    /// Waits for the subject to exit.
    ExpectExit(ExpectExit),
    /// Nothing may arrive for a while.
    ExpectNothing(ExpectNothing),
    /// Expectations that may be met in any order.
    Unordered(Vec<Step>),
    /// A request that stays unanswered while further steps run.
    During {
        /// The request.
        send: Send,
        /// What happens meanwhile.
        steps: Vec<Step>,
    },
    /// Repeats a request until its response fits.
    Poll(Poll),
    /// Lets time pass.
    Wait {
        /// Milliseconds.
        millis: u64,
    },
    /// A raw HTTP exchange; runs on that transport only.
    Http(Box<HttpStep>),
    /// A look at an answer that an HTTP exchange left open; runs on that transport only.
    Watch(Watch),
}

/// A message to send.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Send {
    /// The message as a template: the binder adds `jsonrpc`, an id and the era's metadata.
    pub message: Value,
    /// A name for the request, for later steps.
    pub name: Option<String>,
    /// Text written just before the message.
    pub lead: String,
    /// Text written after the message, in place of the line end.
    pub end: String,
    /// Over HTTP: header lines in place of those that belong to the message, as templates.
    pub headers: Map<String, Value>,
}

/// Text to write as it stands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Text {
    /// The text, a template.
    pub text: Value,
    /// Over HTTP: header lines in place of those that belong to the message, as templates.
    pub headers: Map<String, Value>,
}

/// A message to wait for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Expect {
    /// What kind of message is wanted.
    pub kind: Kind,
    /// The pattern for the message without `jsonrpc`, and without `id` unless the pattern names it.
    pub pattern: Pattern,
    /// The pattern for the id, where the exchange writes one.
    pub id: Option<Pattern>,
    /// For a response: the name of the request; else the latest request without an awaited answer.
    pub of: Option<String>,
    /// For a request of the subject: a name to answer it by.
    pub name: Option<String>,
    /// Milliseconds to wait, if not the default.
    pub within: Option<u64>,
    /// How many such messages, if not exactly one.
    pub times: Option<Times>,
    /// Messages to pass over while waiting.
    pub skip: Vec<Pattern>,
    /// Over HTTP: the status with which the response came.
    pub status: Option<Pattern>,
    /// Over HTTP: headers with which the response came, by name in lower case.
    pub headers: Vec<(String, Pattern)>,
}

/// The kind of message an expectation wants.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The response to a request of ours.
    Response,
    /// A response whose id the pattern itself names.
    Identified,
    /// A notification or request with this method.
    Call(String),
}

/// A number of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Times {
    /// At least this many.
    pub min: u64,
    /// At most this many.
    pub max: Option<u64>,
}

/// An answer to a request of the subject.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Answer {
    /// The name given when the request was expected; else the latest one.
    pub to: Option<String>,
    /// `result` or `error`, as a template.
    pub body: Value,
}

/// Places at which a write is cut in separate writes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cuts {
    /// Before these byte offsets.
    At(Vec<usize>),
    /// Around every byte.
    Every,
}

/// A wait for the end of the subject.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ExpectExit {
    /// Milliseconds.
    pub within: u64,
    /// The exit code, if one is asked for.
    pub code: Option<i64>,
}

/// A time in which nothing may arrive.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExpectNothing {
    /// Milliseconds.
    pub millis: u64,
    /// What may not arrive; without it, anything that a peer may not send unasked.
    pub of: Option<Pattern>,
}

/// A request to repeat.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Poll {
    /// The request.
    pub send: Send,
    /// The pattern its response must come to fit.
    pub until: Pattern,
    /// Milliseconds between two requests.
    pub every: u64,
    /// Milliseconds in all.
    pub within: u64,
}

const STEPS: &str = "`send`, `expect`, `answer`, `send_bytes`, `send_text`, `split`, `close`, `expect_exit`, \
                     `expect_nothing`, `unordered`, `during`, `poll`, `wait`, `http`, `stream` or `hang_up`";

impl Step {
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
        let action = Action::read(line, &mut fields)?;
        fields.finish()?;
        Ok(Self { line, action, only, over, requires, level, note })
    }
}

impl Action {
    fn read(line: usize, fields: &mut Fields) -> Result<Self, String> {
        if let Some(message) = fields.value("send") {
            return Ok(Self::Send(Send::read(message, fields)?));
        }
        // An `http` step has an `expect` of its own.
        if let Some(request) = fields.value("http") {
            return HttpStep::read(request, fields).map(|step| Self::Http(Box::new(step)));
        }
        if let Some(of) = fields.string("stream")? {
            return Watch::read(of, fields).map(Self::Watch);
        }
        if let Some(of) = fields.string("hang_up")? {
            return Ok(Self::Watch(Watch { of, what: Watched::HangUp }));
        }
        if let Some(pattern) = fields.value("expect") {
            return Ok(Self::Expect(Expect::read(pattern, fields)?));
        }
        if let Some(body) = fields.value("answer") {
            return Ok(Self::Answer(Answer::read(body, fields)?));
        }
        if let Some(text) = fields.string("send_bytes")? {
            return bytes(&text).map(Self::SendBytes);
        }
        if let Some(text) = fields.value("send_text") {
            template::check(&text)?;
            let headers = http::headers(fields.value("headers"))?;
            return Ok(Self::SendText(Text { text, headers }));
        }
        if let Some(cuts) = fields.value("split") {
            return Cuts::read(&cuts).map(Self::Split);
        }
        if let Some(what) = fields.string("close")? {
            return match what.as_str() {
                "stdin" => Ok(Self::CloseInput),
                other => Err(format!("`close`: expected `stdin`, got `{other}`")),
            };
        }
        if let Some(within) = fields.count("expect_exit")? {
            let code = fields.value("code");
            let code = code.map(|code| code.as_i64().ok_or_else(|| wrong("code", "a whole number", &code)));
            return Ok(Self::ExpectExit(ExpectExit { within, code: code.transpose()? }));
        }
        if let Some(millis) = fields.count("expect_nothing")? {
            let of = fields.value("of").map(Pattern::parse).transpose()?;
            return Ok(Self::ExpectNothing(ExpectNothing { millis, of }));
        }
        if let Some(steps) = fields.value("unordered") {
            let steps = nested(line, "unordered", steps)?;
            if !steps.iter().all(|step| matches!(step.action, Self::Expect(_))) {
                return Err("`unordered`: expected `expect` steps only".to_owned());
            }
            return Ok(Self::Unordered(steps));
        }
        if let Some(message) = fields.value("during") {
            let send = Send::read(message, fields)?;
            let steps = nested(line, "steps", fields.required("steps")?)?;
            return Ok(Self::During { send, steps });
        }
        if let Some(message) = fields.value("poll") {
            let send = Send::read(message, fields)?;
            let until = Pattern::parse(fields.required("until")?)?;
            let every = fields.count("every")?.unwrap_or(50);
            let within = fields.count("within")?.unwrap_or(10_000);
            return Ok(Self::Poll(Poll { send, until, every, within }));
        }
        if let Some(millis) = fields.count("wait")? {
            return Ok(Self::Wait { millis });
        }
        Err(format!("step: expected one of {STEPS}"))
    }
}

impl Send {
    fn read(message: Value, fields: &mut Fields) -> Result<Self, String> {
        template::check(&message)?;
        if !message.is_object() {
            return Err(wrong("send", "a message object", &message));
        }
        Ok(Self {
            message,
            name: fields.string("as")?,
            lead: fields.string("lead")?.unwrap_or_default(),
            end: fields.string("end")?.unwrap_or_else(|| "\n".to_owned()),
            headers: http::headers(fields.value("headers"))?,
        })
    }
}

impl Expect {
    fn read(pattern: Value, fields: &mut Fields) -> Result<Self, String> {
        let kind = Kind::of(&pattern)?;
        let id = pattern.get("id").cloned().map(Pattern::parse).transpose()?;
        let skip = match fields.value("skip") {
            None => Vec::new(),
            Some(Value::Array(items)) => items.into_iter().map(Pattern::parse).collect::<Result<_, _>>()?,
            Some(one) => vec![Pattern::parse(one)?],
        };
        Ok(Self {
            kind,
            pattern: Pattern::parse(pattern)?,
            id,
            of: fields.string("for")?,
            name: fields.string("as")?,
            within: fields.count("within")?,
            times: fields.value("times").map(Times::read).transpose()?,
            skip,
            status: fields.value("status").map(Pattern::parse).transpose()?,
            headers: http::header_patterns(fields.value("headers"))?,
        })
    }
}

impl Kind {
    fn of(pattern: &Value) -> Result<Self, String> {
        let Value::Object(members) = pattern else {
            return Err(wrong("expect", "an object with `result`, `error` or `method`", pattern));
        };
        match members.get("method") {
            Some(Value::String(method)) => Ok(Self::Call(method.clone())),
            Some(other) => Err(wrong("method", "a method name", other)),
            None if members.contains_key("id") => Ok(Self::Identified),
            None if ["result", "error", "$oneOf", "$byRevision", "$any"]
                .iter()
                .any(|name| members.contains_key(*name)) =>
            {
                Ok(Self::Response)
            }
            None => Err(wrong("expect", "an object with `result`, `error` or `method`", pattern)),
        }
    }
}

impl Times {
    pub(super) fn read(value: Value) -> Result<Self, String> {
        if let Some(times) = value.as_u64() {
            return Ok(Self { min: times, max: Some(times) });
        }
        let mut fields = Fields::of("times", value)?;
        let times = Self { min: fields.count("min")?.unwrap_or(0), max: fields.count("max")? };
        fields.finish()?;
        Ok(times)
    }
}

impl Answer {
    fn read(body: Value, fields: &mut Fields) -> Result<Self, String> {
        template::check(&body)?;
        let complete = body.as_object().is_some_and(|members| {
            members.contains_key("result")
                || members.contains_key("error")
                || members.contains_key("$byRevision")
        });
        if !complete {
            return Err(wrong("answer", "an object with `result` or `error`", &body));
        }
        Ok(Self { to: fields.string("to")?, body })
    }
}

impl Cuts {
    /// The bytes, cut at these places.
    pub(crate) fn pieces(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        match self {
            Self::Every => bytes.iter().map(|byte| vec![*byte]).collect(),
            Self::At(offsets) => {
                let inner = offsets.iter().copied().filter(|offset| (1..bytes.len()).contains(offset));
                let bounds: Vec<_> = std::iter::once(0).chain(inner).chain([bytes.len()]).collect();
                bounds.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
            }
        }
    }

    pub(super) fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) if text == "every" => Ok(Self::Every),
            Value::Array(offsets) => {
                let offset = |value| whole("split", value).map(|offset| offset as usize);
                let offsets = offsets.iter().map(offset).collect::<Result<Vec<_>, _>>()?;
                if offsets.is_sorted_by(|a, b| a < b) {
                    Ok(Self::At(offsets))
                } else {
                    Err(wrong("split", "ascending byte offsets", value))
                }
            }
            other => Err(wrong("split", "byte offsets or `every`", other)),
        }
    }
}

fn nested(line: usize, name: &str, steps: Value) -> Result<Vec<Step>, String> {
    match steps {
        Value::Array(steps) => steps.into_iter().map(|step| Step::read(line, step)).collect(),
        other => Err(wrong(name, "an array of steps", &other)),
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .map_err(|error| format!("`send_bytes`: expected standard base64, got {error}"))
}

fn wrong(name: &str, expected: &str, got: &Value) -> String {
    format!("`{name}`: expected {expected}, got {}", brief(got))
}
