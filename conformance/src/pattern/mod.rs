//! Patterns: JSON that is exact, with every openness written out.
//!
//! A plain JSON value stands for itself; an object whose only members start with `$` is an operator. The README
//! of this package lists the operators.

mod matching;
mod parse;
mod scope;
pub(crate) mod template;

pub use matching::Mismatch;
pub use scope::{Implied, Scope};

use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use regex::Regex;
use serde_json::Value;

use crate::revision::Selector;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    node: Node,
}

#[derive(Debug, Clone)]
enum Node {
    /// A value that stands for itself.
    Exact(Value),
    /// An object with these members and, where `rest` is given, further ones.
    Object {
        members: Vec<(String, Pattern)>,
        rest: Option<Box<Pattern>>,
    },
    /// An array with these elements and, where `rest` is given, further ones.
    Array {
        items: Vec<Pattern>,
        rest: Option<Box<Pattern>>,
    },
    Any,
    Type(Vec<Type>),
    Matches(Regex),
    Bind {
        name: String,
        is: Box<Pattern>,
    },
    /// A value that is known only when the pattern is used.
    Computed(Value),
    OneOf(Vec<Pattern>),
    All(Vec<Pattern>),
    Not(Box<Pattern>),
    Absent,
    Optional(Box<Pattern>),
    Base64(Base64),
    /// An array, object or string of some size.
    Count {
        min: u64,
        max: Option<u64>,
        each: Option<Box<Pattern>>,
    },
    /// An array in which each of these is matched by some element.
    Contains(Vec<Pattern>),
    /// An array with exactly these elements in any order.
    Unordered(Vec<Pattern>),
    Number {
        min: Option<f64>,
        max: Option<f64>,
    },
    /// A string that holds JSON text.
    Json(Box<Pattern>),
    ByRevision(Vec<(Selector, Pattern)>),
    /// A value that a JSON Schema allows.
    Conforms(Arc<Validator>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

#[derive(Debug, Clone)]
enum Base64 {
    /// Anything that is well formed.
    Any,
    /// These bytes.
    Bytes(Vec<u8>),
    /// Bytes that begin so.
    Prefix(Vec<u8>),
}

impl Type {
    const ALL: [Self; 7] =
        [Self::Null, Self::Boolean, Self::Integer, Self::Number, Self::String, Self::Array, Self::Object];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// JSON Schema's view: a number without a fraction is an integer however it is written.
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

impl Pattern {
    /// The value, if the pattern is one that stands for itself.
    pub(crate) const fn exact(&self) -> Option<&Value> {
        match &self.node {
            Node::Exact(value) => Some(value),
            _ => None,
        }
    }
}

/// What the pattern asks for, in words short enough for one line of a report.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, items: &[Self], between: &str| {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    f.write_str(between)?;
                }
                write!(f, "{item}")?;
            }
            Ok(())
        };
        match &self.node {
            Node::Exact(value) | Node::Computed(value) => write!(f, "{value}"),
            Node::Object { members, rest } => {
                f.write_str("{")?;
                for (index, (name, pattern)) in members.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{}:{pattern}", Value::from(name.as_str()))?;
                }
                match rest {
                    Some(_) if members.is_empty() => f.write_str("…}"),
                    Some(_) => f.write_str(",…}"),
                    None => f.write_str("}"),
                }
            }
            Node::Array { items, rest } => {
                f.write_str("[")?;
                list(f, items, ",")?;
                f.write_str(match rest {
                    Some(_) if items.is_empty() => "…]",
                    Some(_) => ",…]",
                    None => "]",
                })
            }
            Node::Any => f.write_str("any value"),
            Node::Type(types) => {
                let names: Vec<_> = types.iter().map(|kind| kind.as_str()).collect();
                f.write_str(&names.join(" or "))
            }
            Node::Matches(regex) => write!(f, "a string that matches /{regex}/"),
            Node::Bind { is, .. } => write!(f, "{is}"),
            Node::OneOf(items) => {
                f.write_str("one of ")?;
                list(f, items, " | ")
            }
            Node::All(items) => list(f, items, " and "),
            Node::Not(item) => write!(f, "anything but {item}"),
            Node::Absent => f.write_str("no such member"),
            Node::Optional(item) => write!(f, "{item}, or nothing"),
            Node::Base64(Base64::Any) => f.write_str("standard base64"),
            Node::Base64(Base64::Bytes(bytes)) => write!(f, "base64 of \"{}\"", bytes.escape_ascii()),
            Node::Base64(Base64::Prefix(bytes)) => {
                write!(f, "base64 of bytes that begin with \"{}\"", bytes.escape_ascii())
            }
            Node::Count { min, max, each } => {
                match max {
                    Some(max) if max == min => write!(f, "{min} items")?,
                    Some(max) => write!(f, "{min} to {max} items")?,
                    None => write!(f, "at least {min} items")?,
                }
                each.as_ref().map_or(Ok(()), |each| write!(f, ", each {each}"))
            }
            Node::Contains(items) => {
                f.write_str("an array with ")?;
                list(f, items, " and ")
            }
            Node::Unordered(items) => {
                f.write_str("in any order [")?;
                list(f, items, ",")?;
                f.write_str("]")
            }
            Node::Number { min, max } => match (min, max) {
                (Some(min), Some(max)) => write!(f, "a number from {min} to {max}"),
                (Some(min), None) => write!(f, "a number, at least {min}"),
                (None, Some(max)) => write!(f, "a number, at most {max}"),
                (None, None) => f.write_str("a number"),
            },
            Node::Json(item) => write!(f, "JSON text of {item}"),
            Node::Conforms(_) => f.write_str("what the schema allows"),
            Node::ByRevision(choices) => {
                let items: Vec<_> = choices.iter().map(|(_, item)| item.to_string()).collect();
                write!(f, "by revision {}", items.join(" / "))
            }
        }
    }
}
