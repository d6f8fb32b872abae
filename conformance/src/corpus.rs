//! The exchanges that are part of the binary.

use crate::exchange::{Exchange, ParseError, parse};

include!(concat!(env!("OUT_DIR"), "/corpus.rs"));

/// The names of all embedded exchanges, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// Parses the embedded exchange with this name.
///
/// # Errors
///
/// Names the file, the line and what was expected. The tests hold the committed exchanges to parsing.
pub fn load(name: &str) -> Option<Result<Exchange, ParseError>> {
    let index = FILES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    let (name, text) = FILES[index];
    Some(parse(&format!("exchanges/{name}.jsonl"), text))
}

/// The text of the embedded exchange with this name.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    let index = FILES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(FILES[index].1)
}
