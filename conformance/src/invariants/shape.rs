//! A small language for the members that the revisions know, and their types.
//!
//! Unknown members are open in every revision and pass; a known member must have its type, and the ones a
//! message cannot do without must be there.

use base64::Engine as _;
use serde_json::Value;

use crate::revision::Revision;

/// What a value must be.
#[derive(Debug)]
pub(super) enum Shape {
    Any,
    Bool,
    /// Written without a fraction.
    Int,
    Num,
    Str,
    StrOrInt,
    /// Any object.
    Obj,
    /// One of these strings.
    Words(&'static [&'static str]),
    List(&'static Self),
    /// An object whose every member has this shape.
    Map(&'static Self),
    Record(&'static [Field]),
    /// A content block; its type says which members it has.
    Block,
    /// One block, or where the revision has it an array of them.
    Blocks,
    Base64,
    /// A JSON Schema whose root is an object type.
    ObjectSchema,
}

/// A known member of an object.
#[derive(Debug)]
pub(super) struct Field {
    name: &'static str,
    shape: &'static Shape,
    required: bool,
    nullable: bool,
    /// The revision that brought the member.
    since: Revision,
}

impl Field {
    pub(super) const fn needed(name: &'static str, shape: &'static Shape) -> Self {
        Self { name, shape, required: true, nullable: false, since: Revision::V2024_11_05 }
    }

    pub(super) const fn maybe(name: &'static str, shape: &'static Shape) -> Self {
        Self { name, shape, required: false, nullable: false, since: Revision::V2024_11_05 }
    }

    pub(super) const fn since(self, since: Revision) -> Self {
        Self { since, ..self }
    }

    pub(super) const fn or_null(self) -> Self {
        Self { nullable: true, ..self }
    }
}

/// A difference from a shape.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) kind: Kind,
    pub(super) at: String,
    pub(super) expected: String,
    pub(super) got: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A member is missing or has another type.
    Type,
    /// Not standard base64.
    Base64,
    /// Likewise, of an image.
    Image64,
    /// Likewise, of a sound.
    Audio64,
    /// A member that the revision does not have yet.
    Early,
    /// A content type that the revision does not have.
    EarlyContent,
    /// A structured value that is no object, where it must be one.
    Structured,
}

pub(super) struct Walk<'r> {
    pub(super) revision: Revision,
    pub(super) found: &'r mut Vec<Difference>,
}

impl Walk<'_> {
    pub(super) fn hold(&mut self, shape: &Shape, value: &Value, at: &str) {
        match shape {
            Shape::Any => {}
            Shape::Bool => self.is(value.is_boolean(), "a boolean", value, at),
            Shape::Int => self.is(value.is_i64() || value.is_u64(), "an integer", value, at),
            Shape::Num => self.is(value.is_number(), "a number", value, at),
            Shape::Str => self.is(value.is_string(), "a string", value, at),
            Shape::StrOrInt => {
                self.is(
                    value.is_string() || value.is_i64() || value.is_u64(),
                    "a string or an integer",
                    value,
                    at,
                );
            }
            Shape::Obj => self.is(value.is_object(), "an object", value, at),
            Shape::Words(words) => {
                let known = value.as_str().is_some_and(|text| words.contains(&text));
                self.is(known, &format!("one of {}", words.join(", ")), value, at);
            }
            Shape::List(item) => match value {
                Value::Array(items) => {
                    for (index, value) in items.iter().enumerate() {
                        self.hold(item, value, &format!("{at}/{index}"));
                    }
                }
                other => self.is(false, "an array", other, at),
            },
            Shape::Map(item) => match value {
                Value::Object(members) => {
                    for (name, value) in members {
                        self.hold(item, value, &format!("{at}/{}", escape(name)));
                    }
                }
                other => self.is(false, "an object", other, at),
            },
            Shape::Record(fields) => self.record(fields, value, at),
            Shape::Block => self.block(value, at),
            Shape::Blocks => match value {
                Value::Array(_) if self.revision >= Revision::V2025_11_25 => {
                    self.hold(&Shape::List(&Shape::Block), value, at);
                }
                one => self.block(one, at),
            },
            Shape::Base64 => {
                let standard = value
                    .as_str()
                    .is_some_and(|text| base64::engine::general_purpose::STANDARD.decode(text).is_ok());
                if !standard {
                    self.differs(Kind::Base64, "standard base64 with padding", value, at);
                }
            }
            Shape::ObjectSchema => {
                let root = value.get("type").unwrap_or(&Value::Null);
                self.is(root == "object", "a schema object with `type` \"object\"", value, at);
            }
        }
    }

    fn record(&mut self, fields: &[Field], value: &Value, at: &str) {
        let Value::Object(members) = value else { return self.is(false, "an object", value, at) };
        for field in fields {
            let place = format!("{at}/{}", escape(field.name));
            match members.get(field.name) {
                None if field.required && self.revision >= field.since => {
                    self.differs(Kind::Type, &format!("a member `{}`", field.name), value, at);
                }
                None => {}
                // A null in place of an absent member is a matter of its own.
                Some(Value::Null) if field.nullable || !field.required => {}
                Some(value) if self.revision < field.since => {
                    let expected = format!("no `{}` before {}", field.name, field.since);
                    self.differs(Kind::Early, &expected, value, &place);
                }
                Some(value) => self.hold(field.shape, value, &place),
            }
        }
    }

    fn block(&mut self, value: &Value, at: &str) {
        let Some(kind) = value.get("type").and_then(Value::as_str) else {
            return self.is(false, "a content block with a `type`", value, at);
        };
        let Some((_, since, fields)) = super::tables::BLOCKS.iter().find(|(name, ..)| *name == kind) else {
            return self.differs(Kind::EarlyContent, "a content type of this revision", value, at);
        };
        if self.revision < *since {
            return self.differs(
                Kind::EarlyContent,
                &format!("no `{kind}` content before {since}"),
                value,
                at,
            );
        }
        let before = self.found.len();
        self.record(fields, value, at);
        for found in self.found.iter_mut().skip(before).filter(|found| found.kind == Kind::Base64) {
            found.kind = match kind {
                "image" => Kind::Image64,
                "audio" => Kind::Audio64,
                _ => Kind::Base64,
            };
        }
        let structured = value.get("structuredContent");
        if let Some(structured) = structured.filter(|value| !value.is_object() && !self.revision.is_modern())
        {
            self.differs(Kind::Structured, "an object", structured, &format!("{at}/structuredContent"));
        }
    }

    fn is(&mut self, fits: bool, expected: &str, got: &Value, at: &str) {
        if !fits {
            self.differs(Kind::Type, expected, got, at);
        }
    }

    pub(super) fn differs(&mut self, kind: Kind, expected: &str, got: &Value, at: &str) {
        let (at, expected, got) = (at.to_owned(), expected.to_owned(), got.clone());
        self.found.push(Difference { kind, at, expected, got });
    }
}

pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
