//! Whether the headers of a request say what its body says. Something on the way may have decided by the
//! headers; the body decides here; so they must not differ. Since 2026-07-28.
//! [spec: basic/transports/streamable-http#request-metadata]

mod arguments;
mod integer;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Display};

pub use self::arguments::check_arguments;
pub(crate) use self::arguments::mirrored;
use super::head::{Head, Repeated};
use super::printable;
use super::value;
use crate::model::HeaderArgument;
use crate::model::method::ServerMethod;
use crate::rpc::{Error, Params, Short, code, str_from_json};

/// Checks the headers that every request has: `MCP-Protocol-Version` against the version that its `_meta`
/// names, `Mcp-Method` against its method, and for methods that name something `Mcp-Name` against that name.
///
/// A body without that name, or with a name that is no string, is not refused here: there is nothing to
/// compare with, and the method's own check of its params says better what is wrong. It always comes later.
///
/// For requests only: what headers a notification has is not laid down.
///
/// # Errors
///
/// `-32020`, with status 400: a header is missing, stands there twice, cannot be decoded, or says something
/// else than the body.
pub fn check_standard(
    head: &impl Head,
    method: &str,
    params: &Params<'_>,
    requested_version: &str,
) -> Result<(), Error> {
    let literal = |raw| value::plain(raw).map(Cow::Borrowed);
    let version = head.value("mcp-protocol-version");
    same(
        "MCP-Protocol-Version",
        "/params/_meta/io.modelcontextprotocol~1protocolVersion",
        requested_version,
        version,
        literal,
    )?;
    same("Mcp-Method", "/method", method, head.value("mcp-method"), literal)?;
    let Some((member, at)) = named_by(method) else { return Ok(()) };
    let Some(name) = params.members().get(member).and_then(|raw| str_from_json(raw.get())) else {
        return Ok(());
    };
    same("Mcp-Name", at, &name, head.value("mcp-name"), value::decode)
}

/// The member of `params` that is mirrored into `Mcp-Name`, and where that is in the message.
#[must_use]
pub fn name_member(method: &str) -> Option<&'static str> {
    named_by(method).map(|(member, _)| member)
}

fn named_by(method: &str) -> Option<(&'static str, &'static str)> {
    Some(match ServerMethod::parse(method)? {
        ServerMethod::CallTool | ServerMethod::GetPrompt => ("name", "/params/name"),
        ServerMethod::ReadResource => ("uri", "/params/uri"),
        ServerMethod::GetTask | ServerMethod::UpdateTask | ServerMethod::CancelTask => {
            ("taskId", "/params/taskId")
        }
        _ => return None,
    })
}

/// The `Mcp-Param-*` headers of a call, kept until its tool is known. [`value`](Self::value) looks them up
/// for [`check_arguments`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParamHeaders(Vec<ParamHeader>);

/// The name in lower case, and the value if there is one alone.
type ParamHeader = (Box<str>, Result<Box<[u8]>, Repeated>);

impl ParamHeaders {
    /// Keeps the headers that annotated arguments are mirrored into. Others need not be kept: those that
    /// no argument has are ignored.
    #[must_use]
    pub fn collect<'a>(head: &impl Head, annotated: impl IntoIterator<Item = &'a HeaderArgument>) -> Self {
        let kept = annotated.into_iter().filter_map(|argument| {
            let name = header_name(argument);
            let value = head.value(&name).map(|value| value.map(Box::from)).transpose()?;
            Some((name.into_boxed_str(), value))
        });
        Self(kept.collect())
    }

    /// The value of a header by its name in lower case.
    ///
    /// # Errors
    ///
    /// [`Repeated`]: it came more than once.
    pub fn value(&self, name: &str) -> Result<Option<&[u8]>, Repeated> {
        match self.0.iter().find(|(n, _)| **n == *name) {
            None => Ok(None),
            Some((_, value)) => value.as_ref().map(|value| Some(&**value)).map_err(|repeated| *repeated),
        }
    }
}

/// The name, in lower case, of the header that an argument is mirrored into.
#[must_use]
pub fn header_name(argument: &HeaderArgument) -> String {
    let mut name = String::from("mcp-param-");
    name.extend(argument.name().chars().map(|c| c.to_ascii_lowercase()));
    name
}

/// Whether a header is there once and says `expected`, which stands at `at` in the body.
fn same<'h>(
    name: &str,
    at: &str,
    expected: &str,
    raw: Result<Option<&'h [u8]>, Repeated>,
    read: impl FnOnce(&'h [u8]) -> Result<Cow<'h, str>, value::Undecodable>,
) -> Result<(), Error> {
    let quoted = || format!("{} at {at}", Quoted(expected));
    match raw {
        Err(Repeated) => Err(mismatch(name, quoted(), "the header more than once")),
        Ok(None) => Err(mismatch(name, quoted(), "no such header")),
        Ok(Some(raw)) => match read(raw) {
            Err(undecodable) => Err(mismatch(name, quoted(), undecodable)),
            Ok(found) if found == expected => Ok(()),
            Ok(_) => Err(mismatch(name, quoted(), Raw(raw))),
        },
    }
}

/// A peer's text in quotes, cut to a length that is safe to repeat.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", format!("{}", Short(self.0)))
    }
}

/// A header's value as it came.
struct Raw<'a>(&'a [u8]);

impl Display for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", printable(value::trim(self.0)))
    }
}

fn mismatch(name: &str, expected: impl Display, found: impl Display) -> Error {
    Error::new(
        code::HEADER_MISMATCH,
        format!("Header mismatch: {}: expected {expected}, found {found}", Short(name)),
    )
}

#[cfg(test)]
mod tests;
