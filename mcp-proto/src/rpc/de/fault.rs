//! What went wrong, and its words.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use serde::de::{Error, Expected, Unexpected, Visitor};

use super::Place;
use crate::rpc::PointerToken;

/// Most characters of a peer's value, of one of its member names, or of a foreign message that are
/// repeated.
const ECHO: usize = 40;
const POINTER: usize = 200;
const FOREIGN: usize = 160;

/// Why a JSON text is not a value of the wanted type.
///
/// Displays as `at /a: expected a number, found the string "x"`. Peer text in it is cut short and free
/// of control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeError {
    /// JSON pointer (RFC 6901) to the failing place, empty for the whole value. A missing or repeated
    /// member is itself the place. Long names and long pointers are cut and end in `…`.
    pub pointer: String,
    /// What would have been right, if that can be said.
    pub expected: Option<String>,
    /// What was there instead, if that can be said.
    pub found: Option<String>,
    /// The fault in words, without the place.
    pub message: String,
}

impl DecodeError {
    /// A fault of the whole value, in words.
    pub(crate) const fn new(message: String) -> Self {
        Self { pointer: String::new(), expected: None, found: None, message }
    }

    /// The same fault in a value that is itself at `pointer` in a larger one.
    #[must_use]
    pub fn within(mut self, pointer: &str) -> Self {
        self.pointer.insert_str(0, pointer);
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str("at the root")?;
        } else {
            f.write_str("at ")?;
            for c in self.pointer.chars() {
                if c.is_control() { write!(f, "{}", c.escape_unicode())? } else { f.write_char(c)? }
            }
        }
        write!(f, ": {}", self.message)
    }
}

impl core::error::Error for DecodeError {}

/// The error type of the deserializers: a [`DecodeError`] on its way up, or, in the first pass, just
/// the news that there is one.
#[derive(Debug)]
pub(super) struct Fault(Option<Box<Details>>);

#[derive(Debug)]
struct Details {
    /// Set at the innermost level that knows.
    pointer: Option<String>,
    what: What,
}

#[derive(Debug)]
enum What {
    Mismatch { found: String, expected: String },
    Missing(&'static str),
    Twice(&'static str),
    Unknown { name: String, known: &'static [&'static str] },
    Other(String),
}

impl Fault {
    /// A fault nobody will read.
    pub(super) fn untold() -> Self {
        Self(None)
    }

    pub(super) fn mismatch(found: String, expected: String) -> Self {
        Self::new(What::Mismatch { found, expected })
    }

    /// An array went on after the item that should have been its last.
    pub(super) fn surplus(wanted: usize, expected: &str) -> Self {
        Self::mismatch(format!("more than {wanted} items"), expected.to_owned())
    }

    pub(super) fn surplus_variant() -> Self {
        Self::mismatch("an object with more members".to_owned(), "an object with one member".to_owned())
    }

    /// Reads the text of an error that the parser itself raised.
    pub(super) fn of_parser(text: &str) -> Self {
        let plain = text.rfind(" at line ").map_or(text, |end| &text[..end]);
        for kind in ["invalid type: ", "invalid value: "] {
            if let Some((found, expected)) =
                plain.strip_prefix(kind).and_then(|rest| rest.rsplit_once(", expected "))
            {
                return Self::mismatch(parser_found(found), plainly(expected));
            }
        }
        Self::new(What::Other(if plain.starts_with("recursion limit") {
            "nested too deeply".to_owned()
        } else if plain.contains("expected key to be a number") {
            "expected a member name that is a number".to_owned()
        } else {
            format!("invalid JSON: {}", cut(text, FOREIGN))
        }))
    }

    /// Says which variants there are, where `serde` would only say that there was none.
    pub(super) fn or_choices(mut self, variants: &'static [&'static str]) -> Self {
        if let Some(Details { pointer: None, what: What::Mismatch { expected, .. } }) = self.0.as_deref_mut()
            && expected == "enum"
        {
            *expected = OneOf(variants).to_string();
        }
        self
    }

    /// Says where, unless that is known already.
    pub(super) fn locate(mut self, place: Place<'_>) -> Self {
        if let Some(details) = &mut self.0
            && details.pointer.is_none()
        {
            let mut pointer = String::new();
            write_pointer(place, &mut pointer);
            match &details.what {
                What::Missing(name) | What::Twice(name) => push_token(name, &mut pointer),
                What::Unknown { name, .. } => push_token(name, &mut pointer),
                What::Mismatch { .. } | What::Other(_) => {}
            }
            details.pointer = Some(pointer);
        }
        self
    }

    pub(super) fn into_error(self) -> DecodeError {
        let (pointer, what) = match self.0 {
            Some(details) => (details.pointer.unwrap_or_default(), details.what),
            None => (String::new(), What::Other("no such value".to_owned())),
        };
        let (expected, found, message) = match what {
            What::Mismatch { found, expected } => {
                let message = format!("expected {expected}, found {found}");
                (Some(expected), Some(found), message)
            }
            What::Missing(_) => (None, None, "required, but missing".to_owned()),
            What::Twice(_) => (None, None, "given twice".to_owned()),
            What::Unknown { known, .. } => {
                let expected = OneOf(known).to_string();
                let message = format!("unknown member, expected {expected}");
                (Some(expected), None, message)
            }
            What::Other(message) => (None, None, message),
        };
        DecodeError { pointer, expected, found, message }
    }

    fn new(what: What) -> Self {
        Self(Some(Box::new(Details { pointer: None, what })))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_deref() {
            Some(details) => write!(f, "{:?}", details.what),
            None => f.write_str("decoding failed"),
        }
    }
}

impl core::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(What::Other(cut(&message.to_string(), FOREIGN)))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::mismatch(described(found), plainly(&expected.to_string()))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(len: usize, expected: &dyn Expected) -> Self {
        let found = if len == 1 { "1 item".to_owned() } else { format!("{len} items") };
        Self::mismatch(found, plainly(&expected.to_string()))
    }

    fn unknown_variant(name: &str, variants: &'static [&'static str]) -> Self {
        Self::mismatch(quoted(name), OneOf(variants).to_string())
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::new(What::Unknown { name: name.chars().take(ECHO + 1).collect(), known })
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(What::Missing(name))
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::new(What::Twice(name))
    }
}

/// What a visitor expects, in the words of JSON.
pub(super) fn wording<'de, V: Visitor<'de>>(visitor: &V) -> String {
    struct Expecting<'v, V>(&'v V);
    impl<'de, V: Visitor<'de>> Expected for Expecting<'_, V> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.expecting(f)
        }
    }
    let expecting: &dyn Expected = &Expecting(visitor);
    plainly(&expecting.to_string())
}

/// Describes a JSON value by its text.
pub(super) fn described_text(text: &str) -> String {
    match text.as_bytes().first() {
        Some(b'n') => "null".to_owned(),
        Some(b't' | b'f') => text.to_owned(),
        Some(b'[') => "an array".to_owned(),
        Some(b'{') => "an object".to_owned(),
        Some(b'"') => {
            serde_json::from_str::<String>(text).map_or_else(|_| "a string".to_owned(), |s| quoted(&s))
        }
        _ => format!("the number {}", cut(text, ECHO)),
    }
}

pub(super) fn one_of(names: &[&str], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}", OneOf(names))
}

struct OneOf<'n>(&'n [&'n str]);

impl fmt::Display for OneOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("nothing"),
            [only] => write!(f, "{only:?}"),
            [first, rest @ ..] => {
                write!(f, "one of {first:?}")?;
                rest.iter().try_for_each(|name| write!(f, ", {name:?}"))
            }
        }
    }
}

fn described(value: Unexpected<'_>) -> String {
    match value {
        Unexpected::Bool(b) => b.to_string(),
        Unexpected::Unsigned(n) => format!("the number {n}"),
        Unexpected::Signed(n) => format!("the number {n}"),
        Unexpected::Float(n) => format!("the number {n:?}"),
        Unexpected::Char(c) => quoted(c.encode_utf8(&mut [0; 4])),
        Unexpected::Str(s) => quoted(s),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "an array".to_owned(),
        Unexpected::Map => "an object".to_owned(),
        Unexpected::UnitVariant => "only the name".to_owned(),
        other => cut(&other.to_string(), ECHO),
    }
}

/// The same for what `serde_json` says in a message of its own.
fn parser_found(text: &str) -> String {
    let number = |rest: &str| format!("the number {}", cut(rest.trim_end_matches('`'), ECHO));
    if let Some(rest) = text.strip_prefix("string \"") {
        // The text was escaped once, as a Rust literal; it is shown as it is.
        let mut shown = cut_escaped(rest.strip_suffix('"').unwrap_or(rest));
        shown.insert_str(0, "the string \"");
        shown.push('"');
        return shown;
    }
    match text {
        "sequence" => "an array".to_owned(),
        "map" => "an object".to_owned(),
        "null" => "null".to_owned(),
        "boolean `true`" => "true".to_owned(),
        "boolean `false`" => "false".to_owned(),
        _ => text
            .strip_prefix("integer `")
            .or_else(|| text.strip_prefix("floating point `"))
            .or_else(|| text.strip_prefix("number `"))
            .map_or_else(|| cut(text, ECHO), number),
    }
}

/// The string as a literal, cut short.
fn quoted(text: &str) -> String {
    let mut out = String::from("the string \"");
    let start = out.len();
    for (i, c) in text.chars().enumerate() {
        if i == ECHO || out.len() - start > ECHO {
            out.push('…');
            break;
        }
        out.extend(c.escape_debug());
    }
    out.push('"');
    out
}

/// Cuts a text that has escapes in it, never within one.
fn cut_escaped(text: &str) -> String {
    let cut = cut(text, ECHO);
    let Some(kept) = cut.strip_suffix('…') else { return cut };
    let open = kept.rfind('\\').filter(|at| {
        let escape = &kept[*at..];
        escape.len() < 2 || (escape.starts_with("\\u{") && !escape.contains('}'))
    });
    let mut out = kept[..open.unwrap_or(kept.len())].to_owned();
    out.push('…');
    out
}

/// At most `most` characters, control characters replaced, `…` where something is gone.
fn cut(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let mut out: String = chars.by_ref().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

fn write_pointer(place: Place<'_>, out: &mut String) {
    // The list leads from the inside out and its length is bounded by the nesting.
    let mut tokens = Vec::new();
    let mut at = &place;
    loop {
        match at {
            Place::Root => break,
            Place::Member(parent, _) | Place::Item(parent, _) => {
                tokens.push(*at);
                at = parent;
            }
        }
    }
    for token in tokens.into_iter().rev() {
        match token {
            Place::Root => {}
            Place::Member(_, name) => push_token(name, out),
            Place::Item(_, index) => push_token(&index.to_string(), out),
        }
    }
}

fn push_token(name: &str, out: &mut String) {
    if out.len() > POINTER {
        if !out.ends_with('…') {
            out.push_str("/…");
        }
        return;
    }
    let cut = name.char_indices().nth(ECHO).map(|(at, _)| at);
    let _ = write!(out, "/{}", PointerToken(&name[..cut.unwrap_or(name.len())]));
    if cut.is_some() {
        out.push('…');
    }
}

/// Rust's names for things, in the words of JSON.
fn plainly(expected: &str) -> String {
    let integer =
        |least: &dyn fmt::Display, most: &dyn fmt::Display| format!("an integer from {least} to {most}");
    match expected {
        "i8" => integer(&i8::MIN, &i8::MAX),
        "i16" => integer(&i16::MIN, &i16::MAX),
        "i32" => integer(&i32::MIN, &i32::MAX),
        "i64" => integer(&i64::MIN, &i64::MAX),
        "u8" => integer(&0, &u8::MAX),
        "u16" => integer(&0, &u16::MAX),
        "u32" => integer(&0, &u32::MAX),
        "u64" => integer(&0, &u64::MAX),
        "isize" => integer(&isize::MIN, &isize::MAX),
        "usize" => integer(&0, &usize::MAX),
        "i128" => "an integer".to_owned(),
        "u128" => "an integer of at least 0".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "unit" => "null".to_owned(),
        "a map" | "map" => "an object".to_owned(),
        "a sequence" | "sequence" => "an array".to_owned(),
        "newtype variant" | "tuple variant" | "struct variant" => {
            "an object with a value for that name".to_owned()
        }
        "a character" => "a string of one character".to_owned(),
        _ => {
            let of_size = ["a tuple of size ", "an array of length "]
                .iter()
                .find_map(|prefix| expected.strip_prefix(prefix))
                .or_else(|| {
                    expected.strip_prefix("tuple ").and_then(|rest| rest.rsplit_once(" with ")).and_then(
                        |(_, size)| size.strip_suffix(" elements").or_else(|| size.strip_suffix(" element")),
                    )
                });
            match (of_size, expected.split_once(' ')) {
                (Some("1"), _) => "an array of 1 item".to_owned(),
                (Some(size), _) => format!("an array of {size} items"),
                (None, Some(("struct", _))) => "an object".to_owned(),
                (None, Some(("tuple", _))) => "an array".to_owned(),
                (None, _) => expected.to_owned(),
            }
        }
    }
}
