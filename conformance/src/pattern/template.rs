//! Templates: JSON to send, in which operators stand for values known only at that time.

use serde_json::{Map, Value};

use super::Scope;
use crate::revision::Selector;
use crate::text::shorten;

/// The operators of templates.
const OPERATORS: [&str; 9] =
    ["$ref", "$optional", "$id", "$revision", "$byRevision", "$absent", "$literal", "$concat", "$repeat"];

/// The operator that an object is: its only member apart from `at` starts with `$`.
pub(crate) fn operator(members: &Map<String, Value>) -> Option<(&str, &Value)> {
    let mut operators = members.iter().filter(|(name, _)| name.starts_with('$'));
    let (name, argument) = operators.next()?;
    Some((name, argument))
}

/// Checks that every operator in the template is known and has a fitting argument.
pub(crate) fn check(template: &Value) -> Result<(), String> {
    match template {
        Value::Array(items) => items.iter().try_for_each(check),
        Value::Object(members) => {
            let Some((name, argument)) = operator(members) else {
                return members.values().try_for_each(check);
            };
            let expected = |what: &str| Err(format!("`{name}`: expected {what}, got {argument}"));
            let further: Vec<_> = members.keys().filter(|key| *key != name).collect();
            if further.iter().any(|key| !(name == "$ref" && *key == "at")) {
                return Err(format!("`{name}`: expected no other member beside it, got {further:?}"));
            }
            match name {
                "$ref" | "$id" if !argument.is_string() => expected("a name"),
                "$optional" if optional(argument).is_none() => expected("a `$ref`"),
                "$optional" => check(argument),
                "$revision" | "$absent" if *argument != Value::Bool(true) => expected("true"),
                "$byRevision" => by_revision(argument)?.iter().try_for_each(|(_, value)| check(value)),
                "$concat" => match argument {
                    Value::Array(parts) => parts.iter().try_for_each(check),
                    _ => expected("an array"),
                },
                "$repeat" if repeat(argument).is_none() => expected("`text` and `times`"),
                _ if OPERATORS.contains(&name) => Ok(()),
                _ => Err(format!("`{name}`: expected one of {}", OPERATORS.join(", "))),
            }
        }
        _ => Ok(()),
    }
}

/// The choices of a `$byRevision`, narrowest selector first.
pub(crate) fn by_revision(argument: &Value) -> Result<Vec<(Selector, &Value)>, String> {
    let Value::Object(choices) = argument else {
        return Err(format!("`$byRevision`: expected an object, got {argument}"));
    };
    let mut parsed = Vec::new();
    for (text, value) in choices {
        let selector = Selector::parse(text).map_err(|error| format!("`$byRevision`: {error}"))?;
        parsed.push((selector, value));
    }
    parsed.sort_by_key(|(selector, _)| selector.rank());
    for (index, (one, _)) in parsed.iter().enumerate() {
        if parsed[..index].iter().any(|(other, _)| other.rank() == one.rank() && other.overlaps(*one)) {
            return Err("`$byRevision`: two choices of the same form overlap".to_owned());
        }
    }
    Ok(parsed)
}

/// The value a template stands for; `None` where it says `$absent`.
///
/// # Errors
///
/// Says which name is not bound, or which parts do not fit together.
pub(crate) fn fill(template: &Value, scope: &Scope) -> Result<Option<Value>, String> {
    match template {
        Value::Array(items) => {
            let mut filled = Vec::with_capacity(items.len());
            for item in items {
                filled.extend(fill(item, scope)?);
            }
            Ok(Some(Value::Array(filled)))
        }
        Value::Object(members) => match operator(members) {
            Some((name, argument)) => apply(name, argument, members, scope),
            None => {
                let mut filled = Map::new();
                for (name, value) in members {
                    if let Some(value) = fill(value, scope)? {
                        filled.insert(name.clone(), value);
                    }
                }
                Ok(Some(Value::Object(filled)))
            }
        },
        plain => Ok(Some(plain.clone())),
    }
}

fn apply(
    name: &str,
    argument: &Value,
    members: &Map<String, Value>,
    scope: &Scope,
) -> Result<Option<Value>, String> {
    let text = argument.as_str().unwrap_or_default();
    match name {
        "$ref" => {
            let value =
                scope.values.get(text).ok_or_else(|| format!("`$ref`: nothing is bound to `{text}`"))?;
            let Some(at) = members.get("at").and_then(Value::as_str) else { return Ok(Some(value.clone())) };
            let part = value.pointer(at);
            part.cloned().map(Some).ok_or_else(|| format!("`$ref`: `{text}` has nothing at `{at}`"))
        }
        "$optional" => {
            let bound = optional(argument).is_some_and(|name| scope.values.contains_key(name));
            if bound { fill(argument, scope) } else { Ok(None) }
        }
        "$id" => {
            let id = scope.ids.get(text).cloned();
            id.map(Some).ok_or_else(|| format!("`$id`: no request is named `{text}`"))
        }
        "$revision" => Ok(Some(Value::from(scope.revision.as_str()))),
        "$absent" => Ok(None),
        "$literal" => Ok(Some(argument.clone())),
        "$byRevision" => {
            let choices = by_revision(argument)?;
            let choice = choices.iter().find(|(selector, _)| selector.contains(scope.revision));
            let (_, value) =
                choice.ok_or_else(|| format!("`$byRevision`: nothing for {}", scope.revision))?;
            fill(value, scope)
        }
        "$repeat" => {
            let (part, times) = repeat(argument).ok_or("`$repeat`: expected `text` and `times`")?;
            Ok(Some(Value::from(part.repeat(times))))
        }
        "$concat" => {
            let parts = argument.as_array().ok_or("`$concat`: expected an array")?;
            let mut joined = String::new();
            for part in parts {
                match fill(part, scope)? {
                    Some(Value::String(text)) => joined.push_str(&text),
                    Some(other) => joined.push_str(&other.to_string()),
                    None => {}
                }
            }
            Ok(Some(Value::from(joined)))
        }
        _ => Err(format!("`{name}`: no such operator ({})", shorten(&argument.to_string(), 40))),
    }
}

/// The name of the `$ref` that a `$optional` holds.
fn optional(argument: &Value) -> Option<&str> {
    argument.get("$ref")?.as_str()
}

/// Bounded so that a file cannot ask for all memory.
fn repeat(argument: &Value) -> Option<(&str, usize)> {
    let text = argument.get("text")?.as_str()?;
    let times = usize::try_from(argument.get("times")?.as_u64()?).ok()?;
    (argument.as_object()?.len() == 2 && text.len().checked_mul(times)? <= 64 << 20).then_some((text, times))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::revision::Revision;

    fn scope() -> Scope {
        let mut scope = Scope::new(Revision::V2025_06_18);
        scope.values.insert("state".to_owned(), json!({"token": "abc", "n": [1, 2]}));
        scope.ids.insert("call".to_owned(), json!(7));
        scope
    }

    #[test]
    fn operators_are_replaced_wherever_they_stand() {
        let template = json!({
            "a": [{"$ref": "state", "at": "/n/1"}, {"$id": "call"}, {"$absent": true}],
            "b": {"$revision": true},
            "c": {"$absent": true},
            "d": {"$concat": [{"$ref": "state", "at": "/token"}, "-", 5]},
            "e": {"$byRevision": {"legacy": 1, "2025-06-18": 2, "*": 3}},
            "f": {"$literal": {"$ref": "#/x"}},
            "g": {"$repeat": {"text": "ab", "times": 3}},
            "h": {"$optional": {"$ref": "state", "at": "/token"}},
            "i": {"$optional": {"$ref": "never"}},
        });
        check(&template).unwrap();
        let expected = json!({
            "a": [2, 7], "b": "2025-06-18", "d": "abc-5", "e": 2, "f": {"$ref": "#/x"}, "g": "ababab",
            "h": "abc"
        });
        assert_eq!(fill(&template, &scope()).unwrap(), Some(expected));
    }

    #[test]
    fn a_template_that_cannot_be_filled_says_why() {
        let fails = |template: Value| fill(&template, &scope()).unwrap_err();
        assert!(fails(json!({"$ref": "x"})).contains("nothing is bound to `x`"));
        assert!(fails(json!({"$ref": "state", "at": "/z"})).contains("has nothing at `/z`"));
        assert!(fails(json!({"$id": "x"})).contains("no request is named `x`"));
        assert!(fails(json!({"$byRevision": {"modern": 1}})).contains("nothing for 2025-06-18"));
    }

    #[test]
    fn a_wrong_template_is_refused_when_read() {
        let refused = |template: Value| check(&template).unwrap_err();
        assert!(refused(json!({"a": [{"$nope": 1}]})).contains("`$nope`: expected one of $ref"));
        assert!(refused(json!({"$ref": 5})).contains("expected a name, got 5"));
        assert!(refused(json!({"$optional": 5})).contains("expected a `$ref`, got 5"));
        assert!(refused(json!({"$ref": "a", "b": 1})).contains("no other member"));
        assert!(refused(json!({"$repeat": {"text": "a", "times": 1_000_000_000}})).contains("`times`"));
        assert!(refused(json!({"$byRevision": {"modern": 1, "2099": 2}})).contains("got `2099`"));
        assert!(
            refused(json!({"$byRevision": {"2024-11-05..2025-06-18": 1, "2025-03-26..2025-11-25": 2}}))
                .contains("overlap")
        );
    }
}
