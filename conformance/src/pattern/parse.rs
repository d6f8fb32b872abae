//! Compiling a pattern from JSON.

use base64::Engine as _;
use regex::Regex;
use serde_json::{Map, Value};

use super::{Base64, Node, Pattern, Type, template};

const OPERATORS: &str = "$any, $type, $match, $bind, $ref, $id, $revision, $rest, $oneOf, $all, $not, $absent, \
                         $optional, $base64, $count, $contains, $unordered, $number, $json, $byRevision, \
                         $literal, $concat, $repeat, $conforms";

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// Names the operator, what was expected and what came.
    pub fn parse(value: Value) -> Result<Self, String> {
        let node = match value {
            Value::Object(members) => match template::operator(&members).map(|(name, _)| name.to_owned()) {
                Some(name) if name != "$rest" => operator(&name, members)?,
                _ => object(members)?,
            },
            Value::Array(items) => array(items)?,
            plain => Node::Exact(plain),
        };
        Ok(Self { node })
    }

    pub(super) const fn of(node: Node) -> Self {
        Self { node }
    }
}

fn object(members: Map<String, Value>) -> Result<Node, String> {
    let mut compiled = Vec::with_capacity(members.len());
    let mut rest = None;
    for (name, value) in members {
        if name == "$rest" {
            rest = Some(rest_of(value)?);
        } else if name.starts_with('$') {
            return Err(format!("`{name}`: expected no other member beside it"));
        } else {
            compiled.push((name, Pattern::parse(value)?));
        }
    }
    Ok(Node::Object { members: compiled, rest })
}

fn array(values: Vec<Value>) -> Result<Node, String> {
    let mut items = Vec::with_capacity(values.len());
    let mut rest = None;
    for value in values {
        if rest.is_some() {
            return Err("`$rest`: expected it to be the last element".to_owned());
        }
        match value {
            Value::Object(mut members) if members.len() == 1 && members.contains_key("$rest") => {
                rest = Some(rest_of(members.remove("$rest").unwrap_or_default())?);
            }
            other => items.push(Pattern::parse(other)?),
        }
    }
    Ok(Node::Array { items, rest })
}

/// `true` leaves the further members or elements open; a pattern holds for each of them.
fn rest_of(value: Value) -> Result<Box<Pattern>, String> {
    match value {
        Value::Bool(true) => Ok(Box::new(Pattern::of(Node::Any))),
        Value::Object(_) => Pattern::parse(value).map(Box::new),
        other => Err(format!("`$rest`: expected true or a pattern object, got {other}")),
    }
}

fn operator(name: &str, mut members: Map<String, Value>) -> Result<Node, String> {
    let argument = members.remove(name).unwrap_or_default();
    let beside: &[&str] = match name {
        "$bind" => &["$is"],
        "$ref" => &["at"],
        _ => &[],
    };
    if let Some(other) = members.keys().find(|key| !beside.contains(&key.as_str())) {
        return Err(format!("`{name}`: expected no other member beside it, got `{other}`"));
    }
    let expected = |what: &str| format!("`{name}`: expected {what}, got {argument}");
    match name {
        "$any" | "$absent" if argument != Value::Bool(true) => Err(expected("true")),
        "$any" => Ok(Node::Any),
        "$absent" => Ok(Node::Absent),
        "$literal" => Ok(Node::Exact(argument)),
        "$ref" | "$id" | "$revision" | "$concat" | "$repeat" => {
            members.insert(name.to_owned(), argument);
            let computed = Value::Object(members);
            template::check(&computed)?;
            Ok(Node::Computed(computed))
        }
        "$type" => types(&argument).map(Node::Type).ok_or_else(|| {
            expected(
                "the name of a JSON type (null, boolean, integer, number, string, array, object) or several",
            )
        }),
        "$match" => {
            let text = argument.as_str().ok_or_else(|| expected("a regular expression"))?;
            Regex::new(text).map(Node::Matches).map_err(|error| format!("`$match`: {error}"))
        }
        "$bind" => {
            let bound = argument.as_str().ok_or_else(|| expected("a name"))?.to_owned();
            let is = members.remove("$is").map_or(Ok(Pattern::of(Node::Any)), Pattern::parse)?;
            Ok(Node::Bind { name: bound, is: Box::new(is) })
        }
        "$oneOf" => patterns(name, argument).map(Node::OneOf),
        "$all" => patterns(name, argument).map(Node::All),
        "$unordered" => patterns(name, argument).map(Node::Unordered),
        "$contains" => match argument {
            Value::Array(_) => patterns(name, argument).map(Node::Contains),
            one => Ok(Node::Contains(vec![Pattern::parse(one)?])),
        },
        "$not" => Ok(Node::Not(Box::new(Pattern::parse(argument)?))),
        "$optional" => Ok(Node::Optional(Box::new(Pattern::parse(argument)?))),
        "$json" => Ok(Node::Json(Box::new(Pattern::parse(argument)?))),
        "$base64" => base64(&argument)
            .map(Node::Base64)
            .ok_or_else(|| expected("true, the decoded text, or {\"prefix\": base64 of the first bytes}")),
        "$count" => count(argument),
        "$conforms" => jsonschema::validator_for(&argument)
            .map(|validator| Node::Conforms(validator.into()))
            .map_err(|error| format!("`$conforms`: expected a JSON Schema, got one with {error}")),
        "$number" => number(&argument).ok_or_else(|| expected("`min`, `max` or both")),
        "$byRevision" => {
            let choices = template::by_revision(&argument)?;
            let compile = |(selector, value): (_, &Value)| Ok((selector, Pattern::parse(value.clone())?));
            choices.into_iter().map(compile).collect::<Result<_, String>>().map(Node::ByRevision)
        }
        _ => Err(format!("`{name}`: expected one of {OPERATORS}")),
    }
}

fn patterns(name: &str, argument: Value) -> Result<Vec<Pattern>, String> {
    match argument {
        Value::Array(items) if !items.is_empty() => items.into_iter().map(Pattern::parse).collect(),
        other => Err(format!("`{name}`: expected an array of patterns, got {other}")),
    }
}

fn types(argument: &Value) -> Option<Vec<Type>> {
    let one = |value: &Value| {
        let name = value.as_str()?;
        Type::ALL.into_iter().find(|kind| kind.as_str() == name)
    };
    match argument {
        Value::Array(names) if !names.is_empty() => names.iter().map(one).collect(),
        name => one(name).map(|kind| vec![kind]),
    }
}

fn base64(argument: &Value) -> Option<Base64> {
    match argument {
        Value::Bool(true) => Some(Base64::Any),
        Value::String(text) => Some(Base64::Bytes(text.clone().into_bytes())),
        Value::Object(members) if members.len() == 1 => {
            let prefix = members.get("prefix")?.as_str()?;
            base64::engine::general_purpose::STANDARD.decode(prefix).ok().map(Base64::Prefix)
        }
        _ => None,
    }
}

fn count(argument: Value) -> Result<Node, String> {
    let wrong = |got: &Value| format!("`$count`: expected `min`, `max` and `each`, got {got}");
    if let Some(exactly) = argument.as_u64() {
        return Ok(Node::Count { min: exactly, max: Some(exactly), each: None });
    }
    let Value::Object(mut members) = argument else { return Err(wrong(&argument)) };
    let each = members.remove("each").map(Pattern::parse).transpose()?.map(Box::new);
    let bound =
        |value: Option<Value>| value.map(|value| value.as_u64().ok_or_else(|| wrong(&value))).transpose();
    let (min, max) = (bound(members.remove("min"))?, bound(members.remove("max"))?);
    match members.keys().next() {
        Some(other) => Err(format!("`$count`: expected `min`, `max` and `each`, got `{other}`")),
        None => Ok(Node::Count { min: min.unwrap_or(0), max, each }),
    }
}

fn number(argument: &Value) -> Option<Node> {
    let members = argument.as_object()?;
    let bounds = ["min", "max"];
    if members.is_empty()
        || members.iter().any(|(key, value)| !bounds.contains(&key.as_str()) || !value.is_number())
    {
        return None;
    }
    let [min, max] = bounds.map(|name| members.get(name).and_then(Value::as_f64));
    Some(Node::Number { min, max })
}
