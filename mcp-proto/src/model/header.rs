//! Tool arguments that are mirrored into HTTP headers: the annotation `x-mcp-header`.
//! [spec: basic/transports/streamable-http#custom-headers-from-tool-parameters]
//!
//! The server checks its annotations when tools are registered; a client leaves out the tools whose
//! annotations are invalid. Both read them here.

use alloc::{
    boxed::Box,
    collections::BTreeSet,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use serde_json::{Map, Value};

use super::JsonSchema;
use crate::rpc::PointerToken;

/// The annotation's name in a schema.
const ANNOTATION: &str = "x-mcp-header";

/// An argument that a client mirrors into the header `Mcp-Param-{name}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderArgument {
    name: Box<str>,
    path: Box<[Box<str>]>,
    kind: HeaderArgumentType,
}

impl HeaderArgument {
    /// The name without `Mcp-Param-`, as annotated; header names are compared ignoring case.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The member names that lead from `arguments` to the value; at least one.
    pub fn path(&self) -> impl ExactSizeIterator<Item = &str> {
        self.path.iter().map(|step| &**step)
    }

    /// What the value is.
    #[must_use]
    pub const fn argument_type(&self) -> HeaderArgumentType {
        self.kind
    }
}

names! {
    /// The types whose values can stand in a header.
    pub enum HeaderArgumentType {
        /// From -(2^53-1) to 2^53-1; written in decimal.
        Integer = "integer",
        /// Written as it is, or in base64 if a header cannot hold it.
        String = "string",
        /// Written as `true` or `false`.
        Boolean = "boolean",
    }
}

/// An `x-mcp-header` annotation that makes the definition of its tool invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidHeaderArgument {
    /// Where the annotation stands in the schema: a JSON pointer.
    pub pointer: String,
    /// What is wrong with it.
    pub problem: HeaderArgumentProblem,
}

/// What is wrong with an `x-mcp-header` annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderArgumentProblem {
    /// The schema could not be searched: it is nested too deeply.
    TooDeep,
    /// The value is no string.
    NoString,
    /// The name is empty.
    Empty,
    /// The name holds a character that no header name has.
    Character(char),
    /// Another argument has the same name, ignoring case.
    Duplicate(String),
    /// The argument's `type` is not one of `integer`, `string`, `boolean`; this is its JSON, if any.
    Type(Option<String>),
    /// The annotation is not on an argument that `properties` alone lead to.
    Unreachable,
}

impl JsonSchema {
    /// The arguments that are to be mirrored into HTTP headers, ordered by path.
    ///
    /// # Errors
    ///
    /// The first annotation that breaks a rule. One is enough to make the whole tool invalid.
    pub fn header_arguments(&self) -> Result<Vec<HeaderArgument>, InvalidHeaderArgument> {
        if !self.get().contains(ANNOTATION) && !self.get().contains("\\u") {
            return Ok(Vec::new()); // most schemas; `\u` could spell the name
        }
        let root: Map<String, Value> = serde_json::from_str(self.get()).map_err(|_| {
            InvalidHeaderArgument { pointer: String::new(), problem: HeaderArgumentProblem::TooDeep }
        })?;
        let mut search = Search::default();
        search.schema(&root, true)?;
        search.found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(search.found)
    }
}

/// Keywords whose value is a schema or an array of schemas.
const SCHEMAS: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value has schemas by name, besides `properties`.
const NAMED_SCHEMAS: &[&str] =
    &["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties"];

#[derive(Default)]
struct Search {
    found: Vec<HeaderArgument>,
    names: BTreeSet<String>,
    /// The steps from the root of the schema, for messages.
    pointer: Vec<String>,
    /// The property names among them.
    path: Vec<Box<str>>,
}

/// Depth is bounded by the JSON parser; what is no schema (`const`, `default`, unknown keywords) is not
/// searched, for there the name means nothing.
impl Search {
    /// `reachable` while `properties` alone lead here from the root.
    fn schema(&mut self, schema: &Map<String, Value>, reachable: bool) -> Result<(), InvalidHeaderArgument> {
        if let Some(annotation) = schema.get(ANNOTATION) {
            let argument = self.annotation(annotation, schema, reachable);
            let argument = argument.map_err(|problem| {
                self.pointer.push(ANNOTATION.into());
                InvalidHeaderArgument { pointer: pointer(&self.pointer), problem }
            })?;
            self.found.push(argument);
        }
        for (keyword, value) in schema {
            self.pointer.push(keyword.clone());
            match value {
                Value::Object(named) if keyword == "properties" => self.named(named, reachable)?,
                Value::Object(named) if NAMED_SCHEMAS.contains(&&**keyword) => self.named(named, false)?,
                Value::Object(schema) if SCHEMAS.contains(&&**keyword) => self.schema(schema, false)?,
                Value::Array(schemas) if SCHEMAS.contains(&&**keyword) => {
                    for (at, schema) in schemas.iter().enumerate() {
                        let Value::Object(schema) = schema else { continue };
                        self.pointer.push(at.to_string());
                        self.schema(schema, false)?;
                        self.pointer.pop();
                    }
                }
                _ => {}
            }
            self.pointer.pop();
        }
        Ok(())
    }

    fn named(&mut self, named: &Map<String, Value>, reachable: bool) -> Result<(), InvalidHeaderArgument> {
        for (name, schema) in named {
            let Value::Object(schema) = schema else { continue };
            self.pointer.push(name.clone());
            self.path.push(name.as_str().into());
            self.schema(schema, reachable)?;
            self.path.pop();
            self.pointer.pop();
        }
        Ok(())
    }

    fn annotation(
        &mut self,
        annotation: &Value,
        schema: &Map<String, Value>,
        reachable: bool,
    ) -> Result<HeaderArgument, HeaderArgumentProblem> {
        use HeaderArgumentProblem as P;
        let Value::String(name) = annotation else { return Err(P::NoString) };
        if name.is_empty() {
            return Err(P::Empty);
        }
        if let Some(odd) = name.chars().find(|c| !is_tchar(*c)) {
            return Err(P::Character(odd));
        }
        if !reachable || self.path.is_empty() {
            return Err(P::Unreachable);
        }
        let kind = schema.get("type");
        let kind = kind
            .and_then(Value::as_str)
            .and_then(HeaderArgumentType::parse)
            .ok_or_else(|| P::Type(kind.map(Value::to_string)))?;
        if !self.names.insert(name.to_ascii_lowercase()) {
            return Err(P::Duplicate(name.clone()));
        }
        Ok(HeaderArgument { name: name.as_str().into(), path: self.path.clone().into(), kind })
    }
}

/// A character of an HTTP token. [RFC 9110 section 5.6.2]
const fn is_tchar(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(
            c,
            '!' | '#' | '$' | '%' | '&' | '\'' | '*' | '+' | '-' | '.' | '^' | '_' | '`' | '|' | '~'
        )
}

fn pointer(steps: &[String]) -> String {
    steps.iter().map(|step| format!("/{}", PointerToken(step))).collect()
}

impl fmt::Display for InvalidHeaderArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pointer {
            "" => self.problem.fmt(f),
            pointer => write!(f, "{pointer}: {}", self.problem),
        }
    }
}

impl fmt::Display for HeaderArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep => f.write_str("the schema is nested too deeply to be searched for `x-mcp-header`"),
            Self::NoString => f.write_str("expected a header name, found something that is no string"),
            Self::Empty => f.write_str("expected a header name, found an empty string"),
            Self::Character(c) => write!(f, "a header name cannot hold {c:?}"),
            Self::Duplicate(name) => {
                write!(f, "another argument has the header name {name:?} (case does not count)")
            }
            Self::Type(Some(found)) => {
                write!(f, "expected an argument of type integer, string or boolean, found {found}")
            }
            Self::Type(None) => {
                f.write_str("expected an argument of type integer, string or boolean, found no `type`")
            }
            Self::Unreachable => {
                f.write_str("only arguments that `properties` alone lead to can be mirrored")
            }
        }
    }
}

impl core::error::Error for InvalidHeaderArgument {}
impl core::error::Error for HeaderArgumentProblem {}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: &str) -> Result<Vec<HeaderArgument>, InvalidHeaderArgument> {
        JsonSchema::parse(schema).unwrap().header_arguments()
    }

    fn seen(schema: &str) -> Vec<String> {
        of(schema)
            .unwrap()
            .iter()
            .map(|a| format!("{}={}:{}", a.name(), a.path().collect::<Vec<_>>().join("."), a.argument_type()))
            .collect()
    }

    fn problem(schema: &str) -> HeaderArgumentProblem {
        of(schema).unwrap_err().problem
    }

    /// An input schema whose one property `p` is this.
    fn property(schema: &str) -> String {
        format!(r#"{{"type":"object","properties":{{"p":{schema}}}}}"#)
    }

    /// H08: the valid ones, nested objects included.
    #[test]
    fn arguments_are_found_by_path() {
        assert_eq!(seen(r#"{"type":"object"}"#), [""; 0]);
        assert_eq!(
            seen(
                r#"{"type":"object","properties":{
                    "s":{"type":"string","x-mcp-header":"Region"},
                    "plain":{"type":"string"},
                    "any":true,
                    "a":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"dry-run"}}},
                    "n":{"x-mcp-header":"N!#$%&'*+-.^_`|~9","type":"integer"}}}"#
            ),
            ["dry-run=a.b:boolean", "N!#$%&'*+-.^_`|~9=n:integer", "Region=s:string"]
        );
        // The name spelled with an escape is the same name.
        assert_eq!(seen(&property(r#"{"type":"string","x-mcp-\u0068eader":"A"}"#)), ["A=p:string"]);
    }

    /// The name is an annotation only where a schema stands.
    #[test]
    fn data_and_names_are_no_annotations() {
        for free in [
            property(r#"{"type":"object","default":{"x-mcp-header":""},"enum":[{"x-mcp-header":1}]}"#),
            r#"{"type":"object","properties":{"x-mcp-header":{"type":"number"}}}"#.into(),
            r#"{"type":"object","examples":[{"x-mcp-header":""}],"x-own":{"x-mcp-header":""}}"#.into(),
            r#"{"type":"object","description":"x-mcp-header"}"#.into(),
        ] {
            assert_eq!(seen(&free), [""; 0], "{free}");
        }
    }

    /// S-HDR-05, S-HDR-06, S-HDR-07
    #[test]
    fn names_are_tokens() {
        use HeaderArgumentProblem as P;
        let named = |name: &str| problem(&property(&format!(r#"{{"type":"string","x-mcp-header":{name}}}"#)));
        assert_eq!(named(r#""""#), P::Empty);
        for (name, odd) in [
            (r#""A B""#, ' '),
            (r#""x:y""#, ':'),
            (r#""a\r\nb""#, '\r'),
            (r#""é""#, 'é'),
            (r#""a\u007f""#, '\u{7f}'),
        ] {
            assert_eq!(named(name), P::Character(odd));
        }
        for none in ["1", "null", "true", r#"["A"]"#, "{}"] {
            assert_eq!(named(none), P::NoString, "{none}");
        }
    }

    /// S-HDR-08, also across levels.
    #[test]
    fn names_are_unique_ignoring_case() {
        let twice = r#"{"type":"object","properties":{
            "a":{"type":"string","x-mcp-header":"Region"},
            "b":{"type":"object","properties":{"c":{"type":"string","x-mcp-header":"region"}}}}}"#;
        assert!(
            matches!(problem(twice), HeaderArgumentProblem::Duplicate(name) if name.eq_ignore_ascii_case("region"))
        );
    }

    /// S-HDR-09
    #[test]
    fn types_are_integer_string_or_boolean() {
        for (with, found) in [
            (r#""type":"number","#, Some(r#""number""#)),
            (r#""type":"object","#, Some(r#""object""#)),
            (r#""type":["string","null"],"#, Some(r#"["string","null"]"#)),
            ("", None),
        ] {
            let schema = property(&format!(r#"{{{with}"x-mcp-header":"A"}}"#));
            assert_eq!(problem(&schema), HeaderArgumentProblem::Type(found.map(Into::into)));
        }
    }

    /// S-HDR-10
    #[test]
    fn only_properties_lead_to_an_argument() {
        let inner = r#"{"type":"string","x-mcp-header":"A"}"#;
        for keyword in
            ["items", "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames"]
        {
            let schema = property(&format!(r#"{{"{keyword}":{inner}}}"#));
            let error = of(&schema).unwrap_err();
            assert_eq!(error.problem, HeaderArgumentProblem::Unreachable, "{keyword}");
            assert_eq!(error.pointer, format!("/properties/p/{keyword}/x-mcp-header"));
        }
        for keyword in ["oneOf", "anyOf", "allOf", "prefixItems", "items"] {
            // `properties` below such a keyword do not make it reachable again.
            let schema = format!(r#"{{"type":"object","{keyword}":[{{"properties":{{"a/b":{inner}}}}}]}}"#);
            let error = of(&schema).unwrap_err();
            assert_eq!(error.problem, HeaderArgumentProblem::Unreachable, "{keyword}");
            assert_eq!(error.pointer, format!("/{keyword}/0/properties/a~1b/x-mcp-header"));
        }
        for keyword in ["$defs", "definitions", "patternProperties", "dependentSchemas"] {
            let schema = format!(
                r##"{{"type":"object","properties":{{"p":{{"$ref":"#/{keyword}/d"}}}},"{keyword}":{{"d":{inner}}}}}"##
            );
            assert_eq!(problem(&schema), HeaderArgumentProblem::Unreachable, "{keyword}");
        }
        assert_eq!(problem(r#"{"type":"object","x-mcp-header":"A"}"#), HeaderArgumentProblem::Unreachable);
    }

    #[test]
    fn a_hostile_depth_is_an_error() {
        let deep =
            format!("{}{}", r#"{"not":"#.repeat(5_000), r#"{"x-mcp-header":"A"}"#) + &"}".repeat(5_000);
        assert_eq!(problem(&deep), HeaderArgumentProblem::TooDeep);
    }

    #[test]
    fn errors_say_where_and_what() {
        let error = of(&property(r#"{"type":"number","x-mcp-header":"A"}"#)).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"/properties/p/x-mcp-header: expected an argument of type integer, string or boolean, found "number""#
        );
    }
}
