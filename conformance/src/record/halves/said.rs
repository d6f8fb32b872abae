//! A message of a recording as one side of an exchange: what the suite says, or what its peer has to say.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Half;
use crate::record::tape::Party;

impl Half<'_> {
    /// As the subject has to say it.
    pub(super) fn pattern(&self, value: &Value) -> Value {
        match mark(value) {
            Some(Mark::As(pattern)) => return pattern.clone(),
            Some(Mark::Bind(name)) => return json!({"$bind": name}),
            Some(Mark::Ref(name)) => {
                return match self.recording.bound.get(name) {
                    Some((party, value)) if *party != self.subject => literal(value),
                    _ => json!({"$ref": name}),
                };
            }
            Some(Mark::Type(kind)) => return json!({"$type": kind}),
            Some(Mark::Base64) => return json!({"$base64": true}),
            None => {}
        }
        match value {
            Value::Array(items) => items.iter().map(|item| self.pattern(item)).collect(),
            Value::Object(members) => {
                let special = members.keys().any(|name| name.starts_with('$'));
                if special && !has_marks(value) {
                    return json!({"$literal": unmarked(value)});
                }
                let kept = members.iter().filter(|(name, _)| !name.starts_with('$'));
                let mut kept: Map<_, _> =
                    kept.map(|(name, value)| (name.clone(), self.pattern(value))).collect();
                if special {
                    kept.insert("$rest".to_owned(), json!(true));
                }
                Value::Object(kept)
            }
            plain => plain.clone(),
        }
    }

    /// As the suite says it.
    pub(super) fn template(&self, value: &Value) -> Value {
        match mark(value) {
            Some(Mark::As(template)) => return template.clone(),
            Some(Mark::Ref(name)) => {
                return match self.recording.bound.get(name) {
                    Some((party, _)) if *party == self.subject => json!({"$ref": name}),
                    Some((_, value)) => literal(value),
                    None => Value::Null,
                };
            }
            Some(_) => return literal(&unmarked(value)),
            None => {}
        }
        match value {
            Value::Array(items) => items.iter().map(|item| self.template(item)).collect(),
            Value::Object(members) if members.keys().any(|name| name.starts_with('$')) => {
                json!({"$literal": unmarked(value)})
            }
            Value::Object(members) => {
                members.iter().map(|(name, value)| (name.clone(), self.template(value))).collect()
            }
            plain => plain.clone(),
        }
    }
}

/// A mark of a recording.
enum Mark<'v> {
    Bind(&'v str),
    Ref(&'v str),
    Type(&'v str),
    Base64,
    /// Put in here: what it is in the exchange.
    As(&'v Value),
}

fn mark(value: &Value) -> Option<Mark<'_>> {
    let members = value.as_object()?;
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    text("$bind")
        .map(Mark::Bind)
        .or_else(|| text("$ref").map(Mark::Ref))
        .or_else(|| text("$type").map(Mark::Type))
        .or_else(|| members.get("$base64").map(|_| Mark::Base64))
        .or_else(|| members.get("$as").map(Mark::As))
}

fn has_marks(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_marks),
        Value::Object(members) => mark(value).is_some() || members.values().any(has_marks),
        _ => false,
    }
}

/// The value as it was said; something of its kind where that is left open.
pub(super) fn unmarked(value: &Value) -> Value {
    match mark(value) {
        Some(Mark::Bind(_) | Mark::Type(_)) if value.get("value").is_some() => return value["value"].clone(),
        Some(Mark::Type(kind)) => {
            return match kind {
                "string" => json!("text"),
                "boolean" => json!(true),
                "array" => json!([]),
                "object" => json!({}),
                "null" => Value::Null,
                _ => json!(1),
            };
        }
        Some(Mark::Base64) => return json!("AAAA"),
        _ => {}
    }
    match value {
        Value::Array(items) => items.iter().map(unmarked).collect(),
        Value::Object(members) => {
            let named = |(name, value): (&String, &Value)| {
                (
                    name.strip_prefix("$$").map_or_else(|| name.clone(), |name| format!("${name}")),
                    unmarked(value),
                )
            };
            members.iter().map(named).collect()
        }
        plain => plain.clone(),
    }
}

/// A value that means nothing but itself.
pub(super) fn literal(value: &Value) -> Value {
    fn is_special(value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(is_special),
            Value::Object(members) => {
                members.iter().any(|(name, value)| name.starts_with('$') || is_special(value))
            }
            _ => false,
        }
    }
    if is_special(value) { json!({"$literal": value}) } else { value.clone() }
}

pub(super) fn bindings(value: &Value, party: Party, bound: &mut BTreeMap<String, (Party, Value)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| bindings(item, party, bound)),
        Value::Object(members) => {
            if let Some(Mark::Bind(name)) = mark(value) {
                let value = members.get("value").cloned().unwrap_or_default();
                bound.entry(name.to_owned()).or_insert((party, value));
            }
            members.values().for_each(|value| bindings(value, party, bound));
        }
        _ => {}
    }
}
