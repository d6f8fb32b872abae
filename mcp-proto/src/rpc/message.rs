//! The envelope: what kind of message a frame holds.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::id::{NoId, str_from_json};
use super::members::{Object, Shape};
use super::scan::{Fault, Scanner};
use super::{Error, Members, RequestId, write_str};
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

/// A frame that holds no message. The error is what the peer should be told, with the id if it could be read:
/// also that of a request whose fault is its long id, which nobody could tell apart otherwise.
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
    /// Whether the frame has a `method`: whatever is wrong with it, it answers nothing.
    pub has_method: bool,
    /// Whether there is nothing wrong with the frame but an id longer than [`Limits::max_id`].
    pub is_id_too_long: bool,
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
        let mut scanner = Scanner::new(json);
        params.read(&mut scanner, super::members::MOST).ok()?;
        scanner.end().ok()?;
        matches!(params.object.shape, Shape::Object { .. }).then_some(params)
    }

    fn read(&mut self, scanner: &mut Scanner<'b>, max: usize) -> Result<(), Fault> {
        self.object.read(scanner, Some(&mut self.meta), max)
    }

    /// The members but `_meta`.
    #[must_use]
    pub const fn members(&self) -> &Members<'b> {
        &self.object.members
    }

    /// The members but `_meta`, as the text of one object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = Vec::from(*b"{");
        for (name, value) in self.members().iter() {
            if text.len() > 1 {
                text.push(b',');
            }
            write_str(&mut text, name);
            text.push(b':');
            text.extend_from_slice(value.get().as_bytes());
        }
        text.push(b'}');
        // Of what was text every part is.
        String::from_utf8(text).unwrap_or_default()
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
    let mut scanner = Scanner::new(text);
    if scanner.peek() == Some(b'[') {
        return parse_batch(scanner, limits).map_err(|fault| syntax(text, fault))?.map(Parsed::Batch);
    }
    let mut envelope = Envelope::default();
    envelope.read(&mut scanner, limits.max_members).map_err(|fault| syntax(text, fault))?;
    envelope.classify(&scanner, limits).map(Parsed::Message)
}

fn parse_batch<'b>(mut scanner: Scanner<'b>, limits: &Limits) -> Result<Result<Batch<'b>, Malformed>, Fault> {
    let (mut items, mut too_many) = (Vec::new(), false);
    scanner.array(|scanner| {
        let item = scanner.value()?;
        too_many |= items.len() == limits.max_batch;
        if !too_many {
            items.push(item);
        }
        Ok(())
    })?;
    scanner.end()?;
    let refuse = |message| Err(Malformed::anonymous(Error::invalid_request(message)));
    Ok(if too_many {
        refuse("Invalid request: the batch holds too many messages")
    } else if items.is_empty() {
        refuse("Invalid request: the batch is empty")
    } else {
        Ok(Batch { items: items.into_iter() })
    })
}

#[cold]
fn syntax(text: &str, fault: Fault) -> Malformed {
    let (line, column) = fault.place(text);
    Malformed::anonymous(Error::parse_error(alloc::format!("Parse error at line {line} column {column}")))
}

impl Malformed {
    fn anonymous(error: Error) -> Self {
        Self { id: None, error, is_response: false, has_method: false, is_id_too_long: false }
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
    /// A top-level value of another type is noted, not an error: it is JSON, so the answer is -32600.
    fn read(&mut self, scanner: &mut Scanner<'b>, max_members: usize) -> Result<(), Fault> {
        if scanner.peek() == Some(b'{') {
            self.object = true;
            scanner.object(|scanner, name| {
                let slot = match &*name {
                    "jsonrpc" => &mut self.jsonrpc,
                    "id" => &mut self.id,
                    "method" => &mut self.method,
                    "result" => &mut self.result,
                    "error" => &mut self.error,
                    "params" => {
                        if core::mem::replace(&mut self.has_params, true) {
                            self.repeated = true;
                            self.params = Params::default();
                        }
                        return self.params.read(scanner, max_members);
                    }
                    // Names are case-sensitive: a look-alike is just another unknown member.
                    _ => return scanner.value().map(drop),
                };
                self.repeated |= slot.replace(scanner.value()?).is_some();
                Ok(())
            })?;
        } else {
            scanner.value()?;
        }
        scanner.end()
    }

    fn classify(self, scanner: &Scanner<'b>, limits: &Limits) -> Result<Message<'b>, Malformed> {
        let id = self.id.map(|raw| RequestId::read(raw.get(), limits.max_id));
        let is_id_too_long = matches!(id, Some(Err(NoId::TooLong)));
        let id = id.and_then(Result::ok);
        let is_response = self.method.is_none() && (self.result.is_some() || self.error.is_some());
        let has_method = self.method.is_some();
        let bad = |id: Option<RequestId>, message: &'static str| {
            let error = Error::invalid_request(message);
            Err(Malformed { id, error, is_response, has_method, is_id_too_long: false })
        };
        let too_long = |id: Option<RequestId>| {
            let message = alloc::format!(
                "Invalid {}: expected an `id` of at most {} bytes, found a longer one",
                if is_response { "response" } else { "request" },
                limits.max_id
            );
            let error = Error::invalid_request(message);
            Err(Malformed { id, error, is_response, has_method, is_id_too_long })
        };
        if !self.object {
            return bad(None, "Invalid request: expected an object");
        }
        if self.repeated {
            return bad(id, "Invalid request: a member is given twice");
        }
        if scanner.went_deeper_than(limits.max_depth) {
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
                // It can be read, though it is not kept: it goes back as it came.
                (Some(raw), None) if is_id_too_long => too_long(RequestId::parse(raw.get(), usize::MAX)),
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
            (_, _, _, _) if is_id_too_long => too_long(None),
            (_, _, _, _) => bad(None, "Invalid response: `id` must be a string or an integer"),
        }
    }
}

#[cfg(test)]
mod tests;
