//! The envelope: what kind of message a frame holds.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::id::{CowStr, str_from_json};
use super::members::{Object, ObjectSeed, Shape};
use super::{Error, Members, RequestId};
use crate::limits::Limits;

/// What one frame holds.
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // the large one is the usual one, and a box would be an allocation
pub enum Parsed<'b> {
    /// One message.
    Message(Message<'b>),
    /// An array. Only 2025-03-26 has those.
    Batch(Batch<'b>),
}

/// One JSON-RPC message, borrowed from its frame.
#[derive(Debug)]
#[non_exhaustive]
pub enum Message<'b> {
    /// Wants one answer.
    Request {
        /// Unique among the sender's open requests.
        id: RequestId,
        /// May be empty: that is a method no one has, not a missing one.
        method: Cow<'b, str>,
        /// The params, not yet decoded.
        params: Params<'b>,
    },
    /// Wants none.
    Notification {
        /// The method.
        method: Cow<'b, str>,
        /// The params, not yet decoded.
        params: Params<'b>,
    },
    /// A success response.
    Result {
        /// The request it answers.
        id: RequestId,
        /// The raw result.
        result: &'b RawValue,
    },
    /// An error response.
    Error {
        /// The request it answers; absent if the peer could not read it.
        id: Option<RequestId>,
        /// The error.
        error: Error,
    },
}

/// A frame that holds no message. The error is what the peer should be told, with the id if it could be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Malformed {
    /// The id, if there was a readable one.
    pub id: Option<RequestId>,
    /// `-32700` if the bytes are no JSON, else `-32600`.
    pub error: Error,
    /// Whether the frame looks like a response (it has a `result` or `error` and no `method`): a response
    /// is never answered.
    pub is_response: bool,
}

/// The `params` of a request or notification.
#[derive(Debug, Clone, Default)]
pub struct Params<'b> {
    object: Object<'b>,
    meta: Object<'b>,
}

impl<'b> Params<'b> {
    /// Reads params from the JSON text of an object. `None` if it is no object.
    #[must_use]
    pub fn from_json(json: &'b str) -> Option<Self> {
        let mut params = Self::default();
        let mut de = serde_json::Deserializer::from_str(json);
        params.seed(super::members::MOST).deserialize(&mut de).ok()?;
        de.end().ok()?;
        matches!(params.object.shape, Shape::Object { .. }).then_some(params)
    }

    fn seed(&mut self, max: usize) -> ObjectSeed<'_, 'b> {
        ObjectSeed { into: &mut self.object, meta: Some(&mut self.meta), max }
    }

    /// The members but `_meta`.
    #[must_use]
    pub const fn members(&self) -> &Members<'b> {
        &self.object.members
    }

    /// The members of `_meta`.
    #[must_use]
    pub const fn meta(&self) -> &Members<'b> {
        &self.meta.members
    }

    /// Whether there is a `_meta` object.
    #[must_use]
    pub const fn has_meta(&self) -> bool {
        matches!(self.meta.shape, Shape::Object { .. })
    }

    /// Whether `params` and `_meta` have a shape that can be used: objects, or absent. `null` counts as
    /// absent, for peers send it.
    ///
    /// # Errors
    ///
    /// `-32602`, saying what came instead of an object.
    pub fn check(&self) -> Result<(), Error> {
        for (object, at) in [(&self.object, "/params"), (&self.meta, "/params/_meta")] {
            let found = match object.shape {
                Shape::Absent | Shape::Null | Shape::Object { repeated: false, too_many: false } => continue,
                Shape::Array => "expected an object, found an array",
                Shape::Scalar => "expected an object, found another value",
                Shape::Object { repeated: true, .. } => "a member is given twice",
                Shape::Object { too_many: true, .. } => "too many members",
            };
            return Err(Error::invalid_params(alloc::format!("Invalid params at {at}: {found}")));
        }
        Ok(())
    }
}

/// The messages of a batch, still raw. [spec: 2025-03-26 basic#batching]
#[derive(Debug)]
pub struct Batch<'b> {
    items: alloc::vec::IntoIter<&'b RawValue>,
}

impl<'b> Batch<'b> {
    /// The messages that are left, without taking them.
    pub fn iter(&self) -> impl Iterator<Item = &'b RawValue> + '_ {
        self.items.as_slice().iter().copied()
    }

    /// How many messages are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.len() == 0
    }
}

impl<'b> Iterator for Batch<'b> {
    type Item = &'b RawValue;
    fn next(&mut self) -> Option<&'b RawValue> {
        self.items.next()
    }
}

/// Reads one frame.
///
/// # Errors
///
/// [`Malformed`] if the frame holds no message: no JSON, no object, a wrong `jsonrpc`, an unusable `id`
/// or `method`, a member given twice, a result together with an error, or more nesting than
/// [`Limits::max_depth`].
pub fn parse<'b>(frame: &'b [u8], limits: &Limits) -> Result<Parsed<'b>, Malformed> {
    let Ok(text) = core::str::from_utf8(frame) else {
        return Err(Malformed::anonymous(Error::parse_error("Parse error: the message is not UTF-8")));
    };
    if text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('[') {
        return parse_batch(text, limits).map(Parsed::Batch);
    }
    let mut envelope = Envelope::default();
    let mut de = serde_json::Deserializer::from_str(text);
    EnvelopeSeed { into: &mut envelope, max_members: limits.max_members }
        .deserialize(&mut de)
        .and_then(|()| de.end())
        .map_err(|e| Malformed::anonymous(syntax(&e)))?;
    envelope.classify(text, limits).map(Parsed::Message)
}

fn parse_batch<'b>(text: &'b str, limits: &Limits) -> Result<Batch<'b>, Malformed> {
    struct Items {
        max: usize,
    }
    impl<'de> Visitor<'de> for Items {
        type Value = Option<Vec<&'de RawValue>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = seq.next_element()? {
                if items.len() == self.max {
                    while seq.next_element::<IgnoredAny>()?.is_some() {}
                    return Ok(None);
                }
                items.push(item);
            }
            Ok(Some(items))
        }
    }
    let mut de = serde_json::Deserializer::from_str(text);
    let items = de
        .deserialize_seq(Items { max: limits.max_batch })
        .and_then(|items| de.end().map(|()| items))
        .map_err(|e| Malformed::anonymous(syntax(&e)))?;
    let refuse = |message| Err(Malformed::anonymous(Error::invalid_request(message)));
    match items {
        None => refuse("Invalid request: the batch holds too many messages"),
        Some(items) if items.is_empty() => refuse("Invalid request: the batch is empty"),
        Some(items) => Ok(Batch { items: items.into_iter() }),
    }
}

fn syntax(e: &serde_json::Error) -> Error {
    Error::parse_error(alloc::format!("Parse error at line {} column {}", e.line(), e.column()))
}

impl Malformed {
    fn anonymous(error: Error) -> Self {
        Self { id: None, error, is_response: false }
    }
}

#[derive(Default)]
struct Envelope<'b> {
    /// The top-level value is an object.
    object: bool,
    repeated: bool,
    jsonrpc: Option<&'b RawValue>,
    id: Option<&'b RawValue>,
    method: Option<&'b RawValue>,
    result: Option<&'b RawValue>,
    error: Option<&'b RawValue>,
    has_params: bool,
    params: Params<'b>,
}

impl<'b> Envelope<'b> {
    fn classify(self, text: &str, limits: &Limits) -> Result<Message<'b>, Malformed> {
        let id = self.id.and_then(|raw| RequestId::parse(raw.get(), limits.max_id));
        let is_response = self.method.is_none() && (self.result.is_some() || self.error.is_some());
        let bad = |id: Option<RequestId>, message: &'static str| {
            Err(Malformed { id, error: Error::invalid_request(message), is_response })
        };
        if !self.object {
            return bad(None, "Invalid request: expected an object");
        }
        if self.repeated {
            return bad(id, "Invalid request: a member is given twice");
        }
        if deeper_than(text.as_bytes(), limits.max_depth) {
            return bad(id, "Invalid request: nested too deeply");
        }
        if self
            .jsonrpc
            .is_none_or(|v| v.get() != "\"2.0\"" && str_from_json(v.get()).as_deref() != Some("2.0"))
        {
            return bad(id, "Invalid request: `jsonrpc` must be \"2.0\"");
        }
        if self.method.is_some() && (self.result.is_some() || self.error.is_some()) {
            return bad(id, "Invalid request: both a method and a result or error");
        }
        if let Some(method) = self.method {
            let Some(method) = str_from_json(method.get()) else {
                return bad(id, "Invalid request: `method` must be a string");
            };
            return match (self.id, id) {
                (None, _) => Ok(Message::Notification { method, params: self.params }),
                (Some(_), Some(id)) => Ok(Message::Request { id, method, params: self.params }),
                (Some(_), None) => bad(None, "Invalid request: `id` must be a string or an integer"),
            };
        }
        // Some peers write the member that does not apply as null.
        let error = self.error.filter(|e| e.get() != "null" || self.result.is_none());
        match (self.result, error, self.id, id) {
            (Some(result), None, Some(_), Some(id)) => Ok(Message::Result { id, result }),
            (None, Some(error), raw, id) if id.is_some() || raw.is_none_or(|v| v.get() == "null") => {
                let Some(error) = Error::from_json(error.get()) else {
                    return bad(id, "Invalid response: `error` needs an integer code and a message");
                };
                Ok(Message::Error { id, error })
            }
            (Some(_), Some(_), _, id) => bad(id, "Invalid response: both a result and an error"),
            (None, None, _, id) => bad(id, "Invalid request: neither a method nor a result nor an error"),
            (_, _, _, _) => bad(None, "Invalid response: `id` must be a string or an integer"),
        }
    }
}

struct EnvelopeSeed<'a, 'b> {
    into: &'a mut Envelope<'b>,
    max_members: usize,
}

impl<'de> DeserializeSeed<'de> for EnvelopeSeed<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// A top-level value of another type is noted, not an error: it is JSON, so the answer is -32600.
macro_rules! not_an_object {
    ($($visit:ident: $t:ty),*) => { $(fn $visit<E>(self, _: $t) -> Result<(), E> { Ok(()) })* };
}

impl<'de> Visitor<'de> for EnvelopeSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let into = self.into;
        into.object = true;
        while let Some(CowStr(name)) = map.next_key::<CowStr<'de>>()? {
            let slot = match &*name {
                "jsonrpc" => &mut into.jsonrpc,
                "id" => &mut into.id,
                "method" => &mut into.method,
                "result" => &mut into.result,
                "error" => &mut into.error,
                "params" => {
                    into.repeated |= core::mem::replace(&mut into.has_params, true);
                    into.params = Params::default();
                    map.next_value_seed(into.params.seed(self.max_members))?;
                    continue;
                }
                // Names are case-sensitive: a look-alike is just another unknown member.
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            into.repeated |= slot.replace(map.next_value()?).is_some();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    not_an_object!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);
}

/// Whether valid JSON nests deeper than `max`. Counting every opening bracket is an upper bound that costs
/// next to nothing; only a text with many of them is walked.
fn deeper_than(json: &[u8], max: usize) -> bool {
    // `[` and `{` differ in one bit. Counted in bytes, of which many fit into a register.
    let opening: usize = json
        .chunks(255)
        .map(|chunk| usize::from(chunk.iter().map(|b| u8::from(b | 0x20 == b'{')).sum::<u8>()))
        .sum();
    if opening <= max {
        return false;
    }
    let (mut depth, mut at) = (0usize, 0usize);
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while let Some(step) = memchr::memchr2(b'"', b'\\', json.get(at..).unwrap_or_default()) {
                    at += step;
                    if json[at] == b'"' {
                        break;
                    }
                    at += 2;
                }
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests;
