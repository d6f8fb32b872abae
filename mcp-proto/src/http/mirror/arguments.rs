//! `Mcp-Param-*`: the arguments of a call that its headers repeat.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Quoted, Raw, header_name, integer, mismatch};
use crate::http::head::Repeated;
use crate::http::value;
use crate::model::HeaderArgument;
use crate::rpc::{CowStr, Error, str_from_json};

/// Checks the headers `Mcp-Param-*` of a `tools/call` against its arguments: one for each annotated argument
/// that has a value, and none for one that is absent or null. Text is compared exactly, whole numbers by
/// value (`42.0` is `42`). Headers that no argument is annotated with are ignored.
///
/// `lookup` finds a header by its name in lower case: `|name| head.value(name)`, or the same of
/// [`ParamHeaders`](super::ParamHeaders). `arguments` is the member of the params; what is no object has no
/// values, for the check of the params refuses it. A value is compared as what it is, not as what its schema
/// wants: that too is checked elsewhere.
///
/// # Errors
///
/// `-32020`, with status 400: a header is missing, stands there twice, cannot be decoded, says something else
/// than the argument, or repeats what is not there; or the argument is nothing that a header can repeat: a
/// list, an object, a fraction, a number beyond 2^53-1, or given twice. `-32602` if the arguments cannot be
/// read.
pub fn check_arguments<'h>(
    lookup: impl Fn(&str) -> Result<Option<&'h [u8]>, Repeated>,
    arguments: Option<&RawValue>,
    annotated: &[HeaderArgument],
) -> Result<(), Error> {
    if annotated.is_empty() {
        return Ok(());
    }
    let mut wanted: Vec<Wanted<'_, '_>> = annotated.iter().map(Wanted::new).collect();
    wanted.sort_by(|a, b| a.argument.path().cmp(b.argument.path()));
    if let Some(arguments) = arguments {
        search(arguments.get(), &mut wanted, 0).map_err(|_| {
            Error::invalid_params("Invalid params at /params/arguments: the object cannot be read")
        })?;
    }
    wanted.iter().try_for_each(|wanted| wanted.check(lookup(&header_name(wanted.argument))))
}

/// What a client writes into the headers `Mcp-Param-*` of a `tools/call`: the name of each header, in lower
/// case, and its encoded value, for each annotated argument that has one. The other direction of [`check_arguments`].
///
/// What no header can repeat is left out: the check of the other side says better what is wrong with it.
/// [spec: basic/transports/streamable-http#client-behavior]
pub(crate) fn mirrored(arguments: Option<&RawValue>, annotated: &[HeaderArgument]) -> Vec<(String, String)> {
    let mut wanted: Vec<Wanted<'_, '_>> = annotated.iter().map(Wanted::new).collect();
    wanted.sort_by(|a, b| a.argument.path().cmp(b.argument.path()));
    let found = arguments.is_none_or(|arguments| search(arguments.get(), &mut wanted, 0).is_ok());
    let values = wanted.iter().filter(|wanted| found && !wanted.twice).filter_map(|wanted| {
        let value = match wanted.found?.get() {
            "null" => return None,
            json => Body::read(json).ok()?,
        };
        let value = match value {
            Body::Integer(value) => format!("{value}"),
            Body::Boolean(value) => format!("{value}"),
            Body::Text(value) => value::encode(&value).into_owned(),
        };
        Some((header_name(wanted.argument), value))
    });
    values.collect()
}

/// An annotated argument and what the call has for it.
struct Wanted<'a, 'b> {
    argument: &'a HeaderArgument,
    found: Option<&'b RawValue>,
    /// How many steps of its path have been seen.
    steps: usize,
    /// One of them came twice.
    twice: bool,
}

impl<'a> Wanted<'a, '_> {
    const fn new(argument: &'a HeaderArgument) -> Self {
        Self { argument, found: None, steps: 0, twice: false }
    }

    fn check(&self, header: Result<Option<&[u8]>, Repeated>) -> Result<(), Error> {
        let differs = |expected: &dyn fmt::Display, found: &dyn fmt::Display| {
            let name = format!("Mcp-Param-{}", self.argument.name());
            let expected = format!("{expected} at {}", self.pointer());
            Err(mismatch(&name, expected, found))
        };
        let body = match self.found.map(RawValue::get) {
            _ if self.twice => return differs(&"one value", &"the argument more than once"),
            None | Some("null") => None,
            Some(json) => match Body::read(json) {
                Ok(body) => Some(body),
                Err(found) => return differs(&"an integer, string or boolean", &found),
            },
        };
        let raw = match (header, &body) {
            (Ok(None), None) => return Ok(()),
            (Ok(Some(raw)), _) => raw,
            (Ok(None), Some(body)) => return differs(body, &"no such header"),
            (Err(Repeated), Some(body)) => return differs(body, &"the header more than once"),
            (Err(Repeated), None) => return differs(&"no header, as there is no value", &"more than one"),
        };
        let Some(body) = body else {
            return differs(&"no header, as there is no value", &Raw(raw));
        };
        match value::decode(raw) {
            Err(undecodable) => differs(&body, &undecodable),
            Ok(text) if body.is(&text) => Ok(()),
            Ok(_) => differs(&body, &Raw(raw)),
        }
    }

    fn pointer(&self) -> String {
        let mut pointer = String::from("/params/arguments");
        for step in self.argument.path() {
            pointer.push('/');
            pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        }
        pointer
    }
}

/// A value that a header can repeat.
enum Body<'b> {
    Integer(i64),
    Boolean(bool),
    Text(alloc::borrow::Cow<'b, str>),
}

impl<'b> Body<'b> {
    /// `Err` says what it is instead.
    fn read(json: &'b str) -> Result<Self, &'static str> {
        match json.as_bytes() {
            b"true" => Ok(Self::Boolean(true)),
            b"false" => Ok(Self::Boolean(false)),
            [b'"', ..] => str_from_json(json).map(Self::Text).ok_or("text with half a character"),
            [b'{', ..] => Err("an object"),
            [b'[', ..] => Err("an array"),
            _ => integer::parse(json).map(Self::Integer).ok_or("a fraction, or a number beyond 2^53-1"),
        }
    }

    fn is(&self, header: &str) -> bool {
        match self {
            Self::Integer(value) => integer::parse(header) == Some(*value),
            Self::Boolean(value) => header == if *value { "true" } else { "false" },
            Self::Text(value) => header == value,
        }
    }
}

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Text(value) => Quoted(value).fmt(f),
        }
    }
}

/// Looks for the values in one object. All of `wanted` have the same path up to `depth`, longer than that,
/// and are ordered by what follows. One pass for each level of the annotated paths, whatever the call holds.
fn search<'b>(json: &'b str, wanted: &mut [Wanted<'_, 'b>], depth: usize) -> serde_json::Result<()> {
    if !json.starts_with('{') {
        return Ok(());
    }
    let mut de = serde_json::Deserializer::from_str(json);
    de.deserialize_map(Search { wanted, depth })?;
    de.end()
}

struct Search<'s, 'a, 'b> {
    wanted: &'s mut [Wanted<'a, 'b>],
    depth: usize,
}

impl<'b> Visitor<'b> for Search<'_, '_, 'b> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'b>>(self, mut map: A) -> Result<(), A::Error> {
        let depth = self.depth;
        while let Some(CowStr(name)) = map.next_key::<CowStr<'b>>()? {
            let step = |wanted: &Wanted<'_, '_>| wanted.argument.path().nth(depth).cmp(&Some(&*name));
            let first = self.wanted.partition_point(|wanted| step(wanted).is_lt());
            let after = self.wanted.partition_point(|wanted| step(wanted).is_le());
            let here = &mut self.wanted[first..after];
            if here.is_empty() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = map.next_value::<&'b RawValue>()?;
            // A member given twice is not looked into again: that keeps the work bounded.
            if here.iter().any(|wanted| wanted.twice) {
                continue;
            }
            if here.iter().any(|wanted| wanted.steps > depth) {
                here.iter_mut().for_each(|wanted| wanted.twice = true);
                continue;
            }
            here.iter_mut().for_each(|wanted| wanted.steps = depth + 1);
            let ends = here.partition_point(|wanted| wanted.argument.path().len() == depth + 1);
            here[..ends].iter_mut().for_each(|wanted| wanted.found = Some(value));
            search(value.get(), &mut here[ends..], depth + 1).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}
