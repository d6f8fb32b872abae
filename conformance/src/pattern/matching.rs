//! Holding a value against a pattern.

use std::fmt;

use base64::Engine as _;
use serde_json::{Map, Value};

use super::scope::Implied;
use super::{Base64, Node, Pattern, Scope, template};
use crate::text::shorten;

/// Where and how a value differs from a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// JSON pointer into the value; empty for the value itself.
    pub at: String,
    /// What the pattern asks for there.
    pub expected: String,
    /// What is there.
    pub got: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() { "the message" } else { &self.at };
        write!(f, "at {at}: expected {}, got {}", self.expected, self.got)
    }
}

impl std::error::Error for Mismatch {}

impl Pattern {
    /// Holds the value against the pattern. Values are bound in the scope only if the whole pattern fits.
    ///
    /// # Errors
    ///
    /// The first difference found, members in the order of the pattern.
    pub fn matches(&self, value: &Value, scope: &mut Scope) -> Result<(), Mismatch> {
        let kept = scope.values.clone();
        let outcome = Matcher { scope, path: String::new() }.at(self, Some(value));
        if outcome.is_err() {
            scope.values = kept;
        }
        outcome
    }
}

impl Pattern {
    /// Holds the value, or its absence, against the pattern, as [`matches`](Self::matches) does.
    ///
    /// # Errors
    ///
    /// The first difference found.
    pub fn holds(&self, value: Option<&Value>, scope: &mut Scope) -> Result<(), Mismatch> {
        let kept = scope.values.clone();
        let outcome = Matcher { scope, path: String::new() }.at(self, value);
        if outcome.is_err() {
            scope.values = kept;
        }
        outcome
    }

    /// Whether the value, or its absence, fits. Values are bound in the scope if so.
    #[must_use]
    pub fn fits(&self, value: Option<&Value>, scope: &mut Scope) -> bool {
        let kept = scope.values.clone();
        let fits = Matcher { scope, path: String::new() }.at(self, value).is_ok();
        if !fits {
            scope.values = kept;
        }
        fits
    }

    /// Whether the pattern is an object that names the member, or a choice among such.
    #[must_use]
    pub fn names(&self, member: &str) -> bool {
        match &self.node {
            Node::Object { members, .. } => members.iter().any(|(name, _)| name == member),
            Node::OneOf(patterns) | Node::All(patterns) => patterns.iter().any(|one| one.names(member)),
            _ => false,
        }
    }
}

struct Matcher<'s> {
    scope: &'s mut Scope,
    path: String,
}

type Outcome = Result<(), Mismatch>;

impl Matcher<'_> {
    /// `None` is a member that is not there.
    fn at(&mut self, pattern: &Pattern, value: Option<&Value>) -> Outcome {
        match &pattern.node {
            Node::Absent => match value {
                None => Ok(()),
                Some(value) => Err(self.mismatch("no such member".to_owned(), Some(value))),
            },
            Node::Optional(inner) => match (value, &inner.node) {
                (Some(_), _) => self.at(inner, value),
                // What an earlier message held must not stand for what this one lacks.
                (None, Node::Bind { name, .. }) => {
                    self.scope.values.remove(name);
                    Ok(())
                }
                (None, _) => Ok(()),
            },
            Node::ByRevision(choices) => {
                let revision = self.scope.revision;
                match choices.iter().find(|(selector, _)| selector.contains(revision)) {
                    Some((_, chosen)) => self.at(chosen, value),
                    None => Err(self.mismatch(format!("a choice for {revision}"), value)),
                }
            }
            Node::OneOf(choices) => self.one_of(pattern, choices, value),
            Node::All(patterns) => patterns.iter().try_for_each(|pattern| self.at(pattern, value)),
            Node::Not(inner) => {
                let kept = self.scope.values.clone();
                let fits = self.at(inner, value).is_ok();
                self.scope.values = kept;
                if fits { Err(self.mismatch(format!("anything but {inner}"), value)) } else { Ok(()) }
            }
            Node::Bind { name, is } => {
                self.at(is, value)?;
                let value = value.ok_or_else(|| self.mismatch(is.to_string(), None))?;
                self.scope.values.insert(name.clone(), value.clone());
                Ok(())
            }
            _ => match value {
                None => Err(self.mismatch(pattern.to_string(), None)),
                Some(value) => self.present(pattern, value),
            },
        }
    }

    fn present(&mut self, pattern: &Pattern, value: &Value) -> Outcome {
        let fits = match &pattern.node {
            Node::Exact(expected) => return self.exact(expected, value),
            Node::Computed(template) => {
                return match template::fill(template, self.scope) {
                    Ok(Some(expected)) => self.exact(&expected, value),
                    Ok(None) => Err(self.mismatch("no such member".to_owned(), Some(value))),
                    Err(problem) => Err(self.mismatch(problem, Some(value))),
                };
            }
            Node::Object { members, rest } => {
                let Value::Object(found) = value else {
                    return Err(self.mismatch(pattern.to_string(), Some(value)));
                };
                return self.object(members, rest.as_deref(), found);
            }
            Node::Array { items, rest } => {
                let Value::Array(found) = value else {
                    return Err(self.mismatch(pattern.to_string(), Some(value)));
                };
                return self.array(pattern, items, rest.as_deref(), found);
            }
            Node::Count { min, max, each } => {
                let size = match value {
                    Value::Array(items) => items.len(),
                    Value::Object(members) => members.len(),
                    Value::String(text) => text.chars().count(),
                    _ => return Err(self.mismatch(pattern.to_string(), Some(value))),
                } as u64;
                if size < *min || max.is_some_and(|max| size > max) {
                    let got = format!("{size} items: {}", shorten(&value.to_string(), 400));
                    return Err(Mismatch { at: self.path.clone(), expected: pattern.to_string(), got });
                }
                return match (each, value) {
                    (Some(each), Value::Array(items)) => self.each(each, items),
                    _ => Ok(()),
                };
            }
            Node::Contains(wanted) => {
                let Value::Array(items) = value else {
                    return Err(self.mismatch(pattern.to_string(), Some(value)));
                };
                return self.contains(wanted, items, value);
            }
            Node::Unordered(wanted) => {
                let Value::Array(items) = value else {
                    return Err(self.mismatch(pattern.to_string(), Some(value)));
                };
                return self.unordered(pattern, wanted, items, value);
            }
            Node::Json(inner) => {
                let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
                return match parsed {
                    Some(parsed) => self.at(inner, Some(&parsed)),
                    None => Err(self.mismatch("a string that holds JSON".to_owned(), Some(value))),
                };
            }
            Node::Conforms(validator) => {
                let Err(error) = validator.validate(value) else { return Ok(()) };
                let at = format!("{}{}", self.path, error.instance_path());
                let expected = format!("what the schema allows: {}", shorten(&error.to_string(), 300));
                return Err(Mismatch { at, expected, got: shorten(&error.instance().to_string(), 400) });
            }
            Node::Any => true,
            Node::Type(types) => types.iter().any(|kind| kind.fits(value)),
            Node::Matches(regex) => value.as_str().is_some_and(|text| regex.is_match(text)),
            Node::Base64(wanted) => value.as_str().is_some_and(|text| wanted.fits(text)),
            Node::Number { min, max } => value.as_f64().is_some_and(|number| {
                min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max)
            }),
            // Handled in `at`, which also knows absence.
            _ => return self.at(pattern, Some(value)),
        };
        if fits { Ok(()) } else { Err(self.mismatch(pattern.to_string(), Some(value))) }
    }

    fn exact(&mut self, expected: &Value, value: &Value) -> Outcome {
        match (expected, value) {
            (Value::Object(wanted), Value::Object(found)) => {
                for (name, wanted) in wanted {
                    match found.get(name) {
                        Some(value) => self.within(name, |matcher| matcher.exact(wanted, value))?,
                        None => return self.within(name, |m| Err(m.mismatch(wanted.to_string(), None))),
                    }
                }
                match found.iter().find(|(name, _)| !wanted.contains_key(*name)) {
                    Some((name, value)) => self.surplus(name, value),
                    None => Ok(()),
                }
            }
            (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
                for (index, (wanted, value)) in wanted.iter().zip(found).enumerate() {
                    self.within(&index.to_string(), |matcher| matcher.exact(wanted, value))?;
                }
                Ok(())
            }
            _ if same(expected, value) => Ok(()),
            _ => Err(self.mismatch(expected.to_string(), Some(value))),
        }
    }

    fn object(
        &mut self,
        members: &[(String, Pattern)],
        rest: Option<&Pattern>,
        found: &Map<String, Value>,
    ) -> Outcome {
        for (name, pattern) in members {
            self.within(name, |matcher| matcher.at(pattern, found.get(name)))?;
        }
        for (name, value) in found {
            if members.iter().any(|(known, _)| known == name) {
                continue;
            }
            match (rest, self.scope.implied(&self.path, name)) {
                (_, Some(Implied::Anything)) => {}
                (_, Some(Implied::Text(text))) => {
                    self.within(name, |matcher| matcher.exact(&Value::from(text), value))?;
                }
                (Some(rest), None) => self.within(name, |matcher| matcher.at(rest, Some(value)))?,
                (None, None) => return self.surplus(name, value),
            }
        }
        Ok(())
    }

    fn array(
        &mut self,
        whole: &Pattern,
        items: &[Pattern],
        rest: Option<&Pattern>,
        found: &[Value],
    ) -> Outcome {
        for (index, pattern) in items.iter().enumerate() {
            self.within(&index.to_string(), |matcher| matcher.at(pattern, found.get(index)))?;
        }
        if found.len() <= items.len() {
            return Ok(());
        }
        match rest {
            None => {
                let got =
                    format!("{} elements: {}", found.len(), shorten(&Value::from(found).to_string(), 400));
                Err(Mismatch { at: self.path.clone(), expected: whole.to_string(), got })
            }
            Some(rest) => {
                for (index, value) in found.iter().enumerate().skip(items.len()) {
                    self.within(&index.to_string(), |matcher| matcher.at(rest, Some(value)))?;
                }
                Ok(())
            }
        }
    }

    fn each(&mut self, pattern: &Pattern, items: &[Value]) -> Outcome {
        for (index, item) in items.iter().enumerate() {
            self.within(&index.to_string(), |matcher| matcher.at(pattern, Some(item)))?;
        }
        Ok(())
    }

    fn contains(&mut self, wanted: &[Pattern], items: &[Value], whole: &Value) -> Outcome {
        for pattern in wanted {
            if !items.iter().any(|item| self.tries(pattern, item)) {
                return Err(self.mismatch(format!("an element {pattern}"), Some(whole)));
            }
        }
        Ok(())
    }

    fn unordered(&mut self, whole: &Pattern, wanted: &[Pattern], items: &[Value], value: &Value) -> Outcome {
        let mut open: Vec<&Value> = items.iter().collect();
        for pattern in wanted {
            match open.iter().position(|item| self.tries(pattern, item)) {
                Some(index) => {
                    open.remove(index);
                }
                None => return Err(self.mismatch(format!("an element {pattern}"), Some(value))),
            }
        }
        if open.is_empty() { Ok(()) } else { Err(self.mismatch(whole.to_string(), Some(value))) }
    }

    fn one_of(&mut self, whole: &Pattern, choices: &[Pattern], value: Option<&Value>) -> Outcome {
        let kept = self.scope.values.clone();
        let mut deepest: Option<Mismatch> = None;
        for choice in choices {
            match self.at(choice, value) {
                Ok(()) => return Ok(()),
                Err(mismatch) => {
                    self.scope.values.clone_from(&kept);
                    if deepest.as_ref().is_none_or(|so_far| mismatch.at.len() > so_far.at.len()) {
                        deepest = Some(mismatch);
                    }
                }
            }
        }
        // A difference deep inside one choice tells more than that none of them fits.
        match deepest {
            Some(mismatch) if mismatch.at.matches('/').count() > self.path.matches('/').count() + 1 => {
                Err(mismatch)
            }
            _ => Err(self.mismatch(whole.to_string(), value)),
        }
    }

    fn tries(&mut self, pattern: &Pattern, value: &Value) -> bool {
        let kept = self.scope.values.clone();
        let fits = self.at(pattern, Some(value)).is_ok();
        if !fits {
            self.scope.values = kept;
        }
        fits
    }

    fn surplus(&mut self, name: &str, value: &Value) -> Outcome {
        self.within(name, |matcher| Err(matcher.mismatch("no such member".to_owned(), Some(value))))
    }

    fn within(&mut self, step: &str, inner: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(&step.replace('~', "~0").replace('/', "~1"));
        let outcome = inner(self);
        self.path.truncate(length);
        outcome
    }

    fn mismatch(&self, expected: String, got: Option<&Value>) -> Mismatch {
        let got = got.map_or_else(|| "nothing".to_owned(), |value| shorten(&value.to_string(), 400));
        Mismatch { at: self.path.clone(), expected: shorten(&expected, 400), got }
    }
}

impl Base64 {
    /// The standard alphabet with padding, nothing else.
    fn fits(&self, text: &str) -> bool {
        let Ok(decoded) = base64::engine::general_purpose::STANDARD.decode(text) else { return false };
        match self {
            Self::Any => true,
            Self::Bytes(bytes) => decoded == *bytes,
            Self::Prefix(bytes) => decoded.starts_with(bytes),
        }
    }
}

/// Equality of JSON values, numbers by value: 3 and 3.0 are the same number.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64()))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::revision::Revision;

    fn hold(pattern: Value, value: &Value) -> Result<Scope, String> {
        let mut scope = Scope::new(Revision::V2025_11_25);
        let pattern = Pattern::parse(pattern).unwrap();
        pattern.matches(value, &mut scope).map(|()| scope).map_err(|mismatch| mismatch.to_string())
    }

    fn fits(pattern: Value, value: Value) {
        if let Err(problem) = hold(pattern, &value) {
            panic!("{problem}");
        }
    }

    fn differs(pattern: Value, value: Value, expected: &str) {
        assert_eq!(hold(pattern, &value).map(drop).unwrap_err(), expected);
    }

    #[test]
    fn an_optional_member_that_is_gone_takes_its_value_along() {
        let mut scope = Scope::new(Revision::V2026_07_28);
        let pattern = Pattern::parse(json!({"state": {"$optional": {"$bind": "s"}}})).unwrap();
        pattern.matches(&json!({"state": "a"}), &mut scope).unwrap();
        assert_eq!(scope.values.get("s"), Some(&json!("a")));
        pattern.matches(&json!({}), &mut scope).unwrap();
        assert_eq!(scope.values.get("s"), None);
    }

    #[test]
    fn a_value_conforms_to_a_schema_or_is_told_where_it_does_not() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let pattern = json!({"a": {"$conforms": schema}});
        fits(pattern.clone(), json!({"a": {"n": 1}}));
        let problem = hold(pattern.clone(), &json!({"a": {"n": "x"}})).map(drop).unwrap_err();
        assert!(problem.starts_with("at /a/n: expected what the schema allows: "), "{problem}");
        assert!(hold(pattern, &json!({"b": 1})).is_err());
        assert!(
            Pattern::parse(json!({"$conforms": {"type": 5}})).unwrap_err().contains("expected a JSON Schema")
        );
    }

    #[test]
    fn a_plain_value_is_exact() {
        fits(json!({"a": [1, "x", null]}), json!({"a": [1, "x", null]}));
        fits(json!(3), json!(3.0));
        differs(json!({"a": 1}), json!({"a": 2}), "at /a: expected 1, got 2");
        differs(json!({"a": 1}), json!({"a": 1, "b": 0}), "at /b: expected no such member, got 0");
        differs(json!({"a": 1}), json!({}), "at /a: expected 1, got nothing");
        differs(json!([1]), json!([1, 2]), "at the message: expected [1], got 2 elements: [1,2]");
        differs(json!([1, 2]), json!([1]), "at /1: expected 2, got nothing");
        differs(json!("1"), json!(1), "at the message: expected \"1\", got 1");
        differs(
            json!(9_007_199_254_740_993_u64),
            json!(9_007_199_254_740_992_u64),
            "at the message: expected 9007199254740993, got 9007199254740992",
        );
        differs(json!({"a/b": {"c~": 1}}), json!({"a/b": {"c~": 2}}), "at /a~1b/c~0: expected 1, got 2");
    }

    #[test]
    fn types_regular_expressions_and_numbers() {
        fits(json!({"$any": true}), json!(null));
        fits(json!({"$type": "integer"}), json!(5.0));
        differs(json!({"$type": "integer"}), json!(5.5), "at the message: expected integer, got 5.5");
        differs(
            json!({"$type": ["string", "null"]}),
            json!(1),
            "at the message: expected string or null, got 1",
        );
        fits(json!({"$match": "^a.c$"}), json!("abc"));
        differs(
            json!({"$match": "^a$"}),
            json!("b"),
            "at the message: expected a string that matches /^a$/, got \"b\"",
        );
        fits(json!({"$number": {"min": 0, "max": 1}}), json!(0.5));
        differs(
            json!({"$number": {"min": 0}}),
            json!(-1),
            "at the message: expected a number, at least 0, got -1",
        );
    }

    #[test]
    fn absence_is_written_out() {
        fits(json!({"a": {"$absent": true}}), json!({}));
        differs(
            json!({"a": {"$absent": true}}),
            json!({"a": null}),
            "at /a: expected no such member, got null",
        );
        fits(json!({"a": {"$optional": 1}}), json!({}));
        differs(json!({"a": {"$optional": 1}}), json!({"a": 2}), "at /a: expected 1, got 2");
        differs(json!({"a": {"$any": true}}), json!({}), "at /a: expected any value, got nothing");
    }

    #[test]
    fn rest_leaves_members_and_elements_open() {
        fits(json!({"a": 1, "$rest": true}), json!({"a": 1, "b": 2}));
        fits(json!([1, {"$rest": true}]), json!([1, 2, 3]));
        fits(json!({"$rest": {"$type": "string"}}), json!({"a": "x"}));
        differs(json!({"$rest": {"$type": "string"}}), json!({"a": 1}), "at /a: expected string, got 1");
        differs(json!([{"$rest": {"$type": "string"}}]), json!(["a", 1]), "at /1: expected string, got 1");
        assert!(Pattern::parse(json!([{"$rest": true}, 1])).unwrap_err().contains("last element"));
    }

    #[test]
    fn a_bound_value_is_kept_if_the_whole_fits_and_must_return() {
        let mut scope = Scope::new(Revision::V2025_11_25);
        let bind =
            Pattern::parse(json!({"s": {"$bind": "state", "$is": {"$type": "string"}}, "n": 1})).unwrap();
        assert!(bind.matches(&json!({"s": "x", "n": 2}), &mut scope).is_err());
        assert!(scope.values.is_empty());
        bind.matches(&json!({"s": "x", "n": 1}), &mut scope).unwrap();
        let again = Pattern::parse(json!([{"$ref": "state"}, {"$not": {"$ref": "state"}}])).unwrap();
        again.matches(&json!(["x", "y"]), &mut scope).unwrap();
        let mismatch = again.matches(&json!(["x", "x"]), &mut scope).unwrap_err();
        assert_eq!(mismatch.at, "/1");
        assert!(again.matches(&json!(["y", "x"]), &mut scope).is_err());
    }

    #[test]
    fn one_of_reports_the_closest_choice() {
        let choices = json!({"$oneOf": [{"error": {"code": 1}}, {"result": {"a": {"b": 2}}}]});
        fits(choices.clone(), json!({"error": {"code": 1}}));
        differs(choices.clone(), json!({"result": {"a": {"b": 3}}}), "at /result/a/b: expected 2, got 3");
        differs(
            choices,
            json!({}),
            "at the message: expected one of {\"error\":{\"code\":1}} | {\"result\":{\"a\":{\"b\":2}}}, got {}",
        );
    }

    #[test]
    fn arrays_by_count_content_and_in_any_order() {
        fits(json!({"$count": {"min": 2, "each": {"$type": "integer"}}}), json!([1, 2]));
        differs(
            json!({"$count": {"min": 3}}),
            json!([1]),
            "at the message: expected at least 3 items, got 1 items: [1]",
        );
        differs(json!({"$count": {"each": 1}}), json!([1, 2]), "at /1: expected 1, got 2");
        fits(
            json!({"$contains": {"name": "b", "$rest": true}}),
            json!([{"name": "a"}, {"name": "b", "x": 1}]),
        );
        differs(json!({"$contains": 3}), json!([1]), "at the message: expected an element 3, got [1]");
        fits(json!({"$unordered": [1, 2]}), json!([2, 1]));
        differs(
            json!({"$unordered": [1, 2]}),
            json!([2, 1, 3]),
            "at the message: expected in any order [1,2], got [2,1,3]",
        );
        differs(json!({"$unordered": [1, 2]}), json!([2]), "at the message: expected an element 1, got [2]");
    }

    /// R03: the URL-safe alphabet, missing padding and line breaks are not standard base64.
    #[test]
    fn base64_is_standard_and_padded() {
        fits(json!({"$base64": true}), json!("+/8="));
        fits(json!({"$base64": "hi"}), json!("aGk="));
        fits(json!({"$base64": {"prefix": "iVBORw=="}}), json!("iVBORw0KGgo="));
        for wrong in ["-_8=", "+/8", "+/8=\n", "aGk"] {
            differs(
                json!({"$base64": true}),
                json!(wrong),
                &format!("at the message: expected standard base64, got {}", json!(wrong)),
            );
        }
        differs(
            json!({"$base64": "ho"}),
            json!("aGk="),
            "at the message: expected base64 of \"ho\", got \"aGk=\"",
        );
    }

    #[test]
    fn the_revision_chooses_and_absence_can_be_chosen() {
        let pattern = json!({"code": {"$byRevision": {"legacy": -32002, "2026-07-28": -32602}}, "x": {"$byRevision": {"modern": 1, "*": {"$absent": true}}}});
        fits(pattern.clone(), json!({"code": -32002}));
        differs(pattern, json!({"code": -32602}), "at /code: expected -32002, got -32602");
    }

    #[test]
    fn json_inside_a_string_and_literals() {
        fits(json!({"$json": {"sum": 5}}), json!("{\"sum\": 5}"));
        differs(
            json!({"$json": {"sum": 5}}),
            json!("{"),
            "at the message: expected a string that holds JSON, got \"{\"",
        );
        fits(json!({"$literal": {"$ref": "#/a"}}), json!({"$ref": "#/a"}));
        fits(json!({"$repeat": {"text": "ab", "times": 2}}), json!("abab"));
        fits(json!({"$all": [{"$type": "string"}, {"$not": "x"}]}), json!("y"));
    }

    #[test]
    fn implied_members_are_tolerated_where_they_belong() {
        let mut scope = Scope::new(Revision::V2026_07_28);
        scope.implied = vec![
            ("/result", "_meta", Implied::Anything),
            ("/result", "resultType", Implied::Text("complete")),
        ];
        let pattern = Pattern::parse(json!({"result": {"a": {}}})).unwrap();
        pattern
            .matches(&json!({"result": {"a": {}, "_meta": {"x": 1}, "resultType": "complete"}}), &mut scope)
            .unwrap();
        let mismatch = pattern.matches(&json!({"result": {"a": {"_meta": {}}}}), &mut scope).unwrap_err();
        assert_eq!(mismatch.at, "/result/a/_meta");
        let mismatch =
            pattern.matches(&json!({"result": {"a": {}, "resultType": "task"}}), &mut scope).unwrap_err();
        assert_eq!(
            (mismatch.at.as_str(), mismatch.expected.as_str()),
            ("/result/resultType", "\"complete\"")
        );
    }

    #[test]
    fn a_member_is_named_by_an_object_or_one_of_several() {
        let names = |pattern: Value| Pattern::parse(pattern).unwrap().names("id");
        assert!(names(json!({"id": 1})));
        assert!(names(json!({"$oneOf": [{"id": 1}, {"error": {"id": 1}}]})));
        assert!(!names(json!({"result": {"id": 1}})));
        assert!(!names(json!({"$oneOf": [{"result": {}}, {"error": {}}]})));
    }

    #[test]
    fn a_wrong_pattern_says_what_was_expected() {
        let refused = |pattern: Value| Pattern::parse(pattern).unwrap_err();
        assert!(refused(json!({"$any": false})).contains("`$any`: expected true, got false"));
        assert!(refused(json!({"$type": "text"})).contains("the name of a JSON type"));
        assert!(refused(json!({"$match": "("})).contains("`$match`"));
        assert!(refused(json!({"$bind": "a", "b": 1})).contains("got `b`"));
        assert!(refused(json!({"$wat": 1})).contains("`$wat`: expected one of $any"));
        assert!(refused(json!({"$oneOf": []})).contains("an array of patterns"));
        assert!(refused(json!({"$count": {"least": 1}})).contains("got `least`"));
        assert!(refused(json!({"$number": {}})).contains("`min`, `max`"));
        assert!(refused(json!({"a": 1, "$rest": 5})).contains("`$rest`"));
    }
}
