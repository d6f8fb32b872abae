//! What a list of tools publishes: schemas that are valid, and annotations of arguments that can be mirrored.

use std::collections::BTreeSet;

use serde_json::Value;

use super::shape::escape;
use super::{Breach, Ledger};
use crate::revision::Revision;

/// A schema is not looked into more deeply than this.
const DEPTH: usize = 64;

/// Members whose contents are values, not schemas.
const VALUES: [&str; 5] = ["const", "enum", "default", "examples", "required"];

/// Members whose members are schemas under names of the author's.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Holds the schemas of the listed tools against the rules, which came with 2025-11-25.
pub(super) fn check(ledger: &Ledger, modern: bool, result: &Value, breaches: &mut Vec<Breach>) {
    if ledger.revision < Revision::V2025_11_25 {
        return;
    }
    for (index, tool) in result.get("tools").and_then(Value::as_array).into_iter().flatten().enumerate() {
        for name in ["inputSchema", "outputSchema"] {
            let Some(schema) = tool.get(name).filter(|schema| schema.is_object()) else { continue };
            let at = format!("/result/tools/{index}/{name}");
            valid(ledger, schema, &at, breaches);
            if modern && name == "inputSchema" {
                let mut walk = Annotations { ledger, names: BTreeSet::new(), breaches };
                walk.schema(schema, &at, true, 0);
            }
        }
    }
}

/// A schema is valid in the dialect that it names, or in 2020-12. Dialects that are not known here pass.
fn valid(ledger: &Ledger, schema: &Value, at: &str, breaches: &mut Vec<Breach>) {
    let dialect = schema.get("$schema").and_then(Value::as_str).map(|uri| uri.trim_end_matches('#'));
    let held = match dialect {
        None | Some("https://json-schema.org/draft/2020-12/schema") => {
            jsonschema::draft202012::meta::validate(schema)
        }
        Some("http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft-07/schema") => {
            jsonschema::draft7::meta::validate(schema)
        }
        Some(_) => Ok(()),
    };
    if let Err(error) = held {
        let at = format!("{at}{}", error.instance_path());
        let expected = format!("a valid schema: {error}");
        breaches.push(ledger.must("valid-schema", &["B-JSCH-06"], &at, &expected, schema));
    }
    if dialect.is_some_and(|uri| !uri.contains("/draft/2020-12/")) {
        let expected = "a schema in the dialect 2020-12";
        let got = &schema["$schema"];
        breaches.push(ledger.should("dialect", &["B-JSCH-03"], &format!("{at}/$schema"), expected, got));
    }
}

/// The annotations `x-mcp-header` of one input schema.
struct Annotations<'l> {
    ledger: &'l Ledger,
    /// In lower case.
    names: BTreeSet<String>,
    breaches: &'l mut Vec<Breach>,
}

impl Annotations<'_> {
    /// `reached`: whether only `properties` lead here from the root.
    fn schema(&mut self, schema: &Value, at: &str, reached: bool, depth: usize) {
        let Value::Object(members) = schema else { return };
        if depth > DEPTH {
            return;
        }
        if let Some(name) = members.get("x-mcp-header") {
            self.annotation(schema, name, &format!("{at}/x-mcp-header"), reached && depth > 0);
        }
        for (member, value) in members {
            let at = format!("{at}/{}", escape(member));
            match value {
                Value::Object(schemas) if NAMED.contains(&member.as_str()) => {
                    for (name, schema) in schemas {
                        let reached = reached && member == "properties";
                        self.schema(schema, &format!("{at}/{}", escape(name)), reached, depth + 1);
                    }
                }
                Value::Object(_) if !VALUES.contains(&member.as_str()) => {
                    self.schema(value, &at, false, depth + 1);
                }
                Value::Array(schemas) if !VALUES.contains(&member.as_str()) => {
                    for (index, schema) in schemas.iter().enumerate() {
                        self.schema(schema, &format!("{at}/{index}"), false, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }

    fn annotation(&mut self, schema: &Value, name: &Value, at: &str, reached: bool) {
        if !reached {
            let ids = ["S-HDR-10", "S-HDR-11"];
            self.must(&ids, at, "an annotation that `properties` alone lead to", name);
        }
        let Some(text) = name.as_str() else { return self.must(&["S-HDR-06"], at, "a string", name) };
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if text.is_empty() {
            self.must(&["S-HDR-05"], at, "a name that is not empty", name);
        } else if text.chars().any(char::is_control) {
            self.must(&["S-HDR-07", "S-HDR-06"], at, "a name without control characters", name);
        } else if !text.chars().all(token) {
            self.must(&["S-HDR-06"], at, "a token of HTTP", name);
        }
        if !self.names.insert(text.to_ascii_lowercase()) {
            self.must(&["S-HDR-08"], at, "a name that stands once, in whatever case", name);
        }
        let kind = schema.get("type").unwrap_or(&Value::Null);
        if !["string", "integer", "boolean"].iter().any(|good| kind == good) {
            self.must(&["S-HDR-09"], at, "an annotation of a string, an integer or a boolean", kind);
        }
    }

    fn must(&mut self, ids: &[&'static str], at: &str, expected: &str, got: &Value) {
        self.breaches.push(self.ledger.must("header-annotation", ids, at, expected, got));
    }
}
