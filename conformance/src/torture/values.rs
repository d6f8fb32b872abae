//! Texts with all that may be in one, and arguments that an input schema allows or forbids.

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::dice::Dice;

/// Schemas that are nested deeper are not followed.
const DEPTH: usize = 6;

/// So many tries for one value; what is then not found is not there.
const TRIES: usize = 24;

/// Characters at which readers and writers go wrong.
const ODD: [char; 24] = [
    '"',
    '\\',
    '/',
    '\n',
    '\r',
    '\t',
    '\u{0}',
    '\u{1f}',
    '\u{7f}',
    '\u{85}',
    '\u{a0}',
    'é',
    'ß',
    '\u{301}',
    '—',
    '\u{2028}',
    '\u{2029}',
    '世',
    '\u{feff}',
    '\u{fffd}',
    '\u{ffff}',
    '🎉',
    '\u{10000}',
    '\u{10ffff}',
];

/// A text of about so many characters.
pub(super) fn text(dice: &mut Dice, length: usize) -> String {
    // Long texts are runs: as hard for a reader, and cheap to make.
    if length > 400 {
        let unit: String = (0..dice.between(1, 40)).map(|_| character(dice)).collect();
        return unit.chars().cycle().take(length).collect();
    }
    (0..length).map(|_| character(dice)).collect()
}

fn character(dice: &mut Dice) -> char {
    if dice.one_in(3) {
        return *dice.pick(&ODD).unwrap_or(&'"');
    }
    char::from(b' ' + dice.below(95) as u8)
}

/// Any JSON value, nested at most so deep.
pub(super) fn anything(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => json!(dice.one_in(2)),
        2 => json!(*dice.pick(&[0, -1, 1, i64::MIN, i64::MAX, 9_007_199_254_740_993]).unwrap_or(&0)),
        3 => json!(*dice.pick(&[0.1, -1e300, 5e-324, 1.5, -0.0]).unwrap_or(&0.1)),
        4 | 5 => {
            let length = dice.below(12);
            json!(text(dice, length))
        }
        6 => (0..dice.below(4)).map(|_| anything(dice, depth - 1)).collect(),
        _ => {
            let member = |dice: &mut Dice| {
                let length = dice.between(1, 8);
                // A `$` at the start of a name means something in an exchange.
                (format!("m{}", text(dice, length)), anything(dice, depth - 1))
            };
            Value::Object((0..dice.below(4)).map(|_| member(dice)).collect())
        }
    }
}

/// Arguments for one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Arguments {
    /// The schema allows them.
    pub(super) valid: Vec<Value>,
    /// The schema forbids them.
    pub(super) invalid: Vec<Value>,
}

impl Arguments {
    /// Draws arguments for an input schema, and has a validator say which they are. None for a schema that cannot be
    /// compiled.
    pub(super) fn of(schema: &Value, dice: &mut Dice) -> Self {
        let Ok(validator) = jsonschema::validator_for(schema) else { return Self::default() };
        let mut found = Self::default();
        for attempt in 0..TRIES {
            let Some(value) = instance(schema, schema, dice, attempt == 0, DEPTH) else { continue };
            if value.is_object() && validator.is_valid(&value) && !found.valid.contains(&value) {
                found.valid.push(value);
            }
            if found.valid.len() == 6 {
                break;
            }
        }
        found.invalid = spoiled(schema, found.valid.first(), &validator, dice);
        found
    }
}

/// An instance that the schema is likely to allow; with `whole`, each optional property is there.
fn instance(root: &Value, schema: &Value, dice: &mut Dice, whole: bool, depth: usize) -> Option<Value> {
    let Value::Object(members) = schema else { return (*schema != Value::Bool(false)).then(|| json!("x")) };
    if depth == 0 {
        return None;
    }
    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.strip_prefix('#')?)?;
        return instance(root, target, dice, whole, depth - 1);
    }
    if let Some(fixed) = members.get("const") {
        return Some(fixed.clone());
    }
    if let Some(Value::Array(choices)) = members.get("enum") {
        return dice.pick(choices).cloned();
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = members.get(keyword) {
            let branch = dice.pick(branches)?;
            let inner = instance(root, branch, dice, whole, depth - 1)?;
            return Some(joined(inner, members, root, dice, whole, depth));
        }
    }
    if let Some(Value::Array(parts)) = members.get("allOf") {
        let mut all = json!({});
        for part in parts {
            let inner = instance(root, part, dice, whole, depth - 1)?;
            match (&mut all, inner) {
                (Value::Object(all), Value::Object(inner)) => all.extend(inner),
                (_, other) => return Some(other),
            }
        }
        return Some(joined(all, members, root, dice, whole, depth));
    }
    let kind = match members.get("type") {
        Some(Value::Array(kinds)) => dice.pick(kinds)?.as_str()?,
        Some(kind) => kind.as_str()?,
        None if members.contains_key("properties") => "object",
        None => return Some(json!(*dice.pick(&["x", "é", ""]).unwrap_or(&"x"))),
    };
    Some(match kind {
        "null" => Value::Null,
        "boolean" => json!(dice.one_in(2)),
        "integer" => json!(whole_number(members, dice)?),
        "number" => {
            let whole = json!(whole_number(members, dice)?);
            if dice.one_in(2) || members.contains_key("multipleOf") { whole } else { fraction(members, dice) }
        }
        "string" => string(members, dice),
        "array" => {
            let bound = |name: &str| members.get(name).and_then(Value::as_u64).map(|bound| bound as usize);
            let least = bound("minItems").unwrap_or(0);
            let most = bound("maxItems").unwrap_or(least + 2).max(least);
            let items = members.get("items").unwrap_or(&Value::Bool(true));
            let count = dice.between(least, most.min(least + 4));
            (0..count).map(|_| instance(root, items, dice, whole, depth - 1)).collect::<Option<Value>>()?
        }
        "object" => properties(members, root, dice, whole, depth),
        _ => return None,
    })
}

/// What stands beside a combination belongs to the instance, too.
fn joined(
    inner: Value,
    members: &Map<String, Value>,
    root: &Value,
    dice: &mut Dice,
    whole: bool,
    depth: usize,
) -> Value {
    let Value::Object(inner) = inner else { return inner };
    let mut all = properties(members, root, dice, whole, depth);
    if let Value::Object(all) = &mut all {
        all.extend(inner);
    }
    all
}

fn properties(
    members: &Map<String, Value>,
    root: &Value,
    dice: &mut Dice,
    whole: bool,
    depth: usize,
) -> Value {
    let required = names(members.get("required"));
    let mut made = Map::new();
    for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let needed = required.contains(&name.as_str());
        if (needed || whole || dice.one_in(2))
            && let Some(value) = instance(root, schema, dice, whole, depth - 1)
        {
            made.insert(name.clone(), value);
        }
    }
    Value::Object(made)
}

fn names(required: Option<&Value>) -> Vec<&str> {
    required.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A whole number within the bounds, near one of them or anywhere.
fn whole_number(members: &Map<String, Value>, dice: &mut Dice) -> Option<i64> {
    let bound = |name: &str| members.get(name).and_then(Value::as_f64).map(|bound| bound as i64);
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|low| low.saturating_add(1)));
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|high| high.saturating_sub(1)));
    // Small where nothing is said: many a number is a count, or a time to wait.
    let low = low.unwrap_or_else(|| high.map_or(0, |high| high.min(0).saturating_sub(10)));
    let high = high.unwrap_or_else(|| low.saturating_add(10));
    let span = usize::try_from(high.checked_sub(low)?).ok()?;
    let number = match dice.below(3) {
        0 => low,
        1 => high,
        _ => low.saturating_add(dice.below(span.saturating_add(1)) as i64),
    };
    let step = bound("multipleOf").filter(|step| *step > 0).unwrap_or(1);
    Some(number - number.rem_euclid(step))
}

fn fraction(members: &Map<String, Value>, dice: &mut Dice) -> Value {
    let bound = |name: &str| members.get(name).and_then(Value::as_f64);
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum")).unwrap_or(0.0);
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum")).unwrap_or(low + 10.0);
    json!(low + (high - low) * (0.25 + 0.125 * dice.below(4) as f64))
}

fn string(members: &Map<String, Value>, dice: &mut Dice) -> Value {
    let bound = |name: &str| members.get(name).and_then(Value::as_u64).map(|bound| bound as usize);
    match members.get("format").and_then(Value::as_str) {
        Some("date") => return json!("2026-02-28"),
        Some("date-time") => return json!("2026-02-28T23:59:59Z"),
        Some("time") => return json!("23:59:59Z"),
        Some("email") => return json!("a@example.com"),
        Some("uri" | "url" | "uri-reference") => return json!("https://example.com/a?b=c"),
        Some("uuid") => return json!("123e4567-e89b-12d3-a456-426614174000"),
        _ => {}
    }
    let least = bound("minLength").unwrap_or(0);
    let most = bound("maxLength").unwrap_or(least + 12).max(least);
    let length = dice.between(least, most.min(least + 12));
    json!(text(dice, length))
}

/// Arguments that are wrong in one way each, as the validator agrees.
fn spoiled(schema: &Value, valid: Option<&Value>, validator: &Validator, dice: &mut Dice) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    let Some(Value::Object(valid)) = valid else { return found };
    let mut add = |members: Map<String, Value>| {
        let value = Value::Object(members);
        if !validator.is_valid(&value) && !found.contains(&value) && found.len() < 12 {
            found.push(value);
        }
    };
    for name in names(schema.get("required")) {
        let mut less = valid.clone();
        less.remove(name);
        add(less);
    }
    let declared = schema.get("properties").and_then(Value::as_object);
    for (name, property) in declared.into_iter().flatten() {
        let bound = |keyword: &str| property.get(keyword).and_then(Value::as_i64);
        // Not true and not null: many languages take the one for 1, and the other for an argument that is not there.
        let mut odd = vec![json!("x"), json!(1.5), json!([1]), json!({"a": 1})];
        dice.shuffle(&mut odd);
        odd.truncate(2);
        odd.extend(bound("minimum").map(|low| json!(low.saturating_sub(1))));
        odd.extend(bound("maximum").map(|high| json!(high.saturating_add(1))));
        odd.extend(bound("maxLength").map(|most| json!("x".repeat((most as usize).min(4_096) + 1))));
        odd.extend(bound("minLength").filter(|least| *least > 0).map(|_| json!("")));
        odd.extend(property.get("enum").map(|_| json!("outside of the enumeration")));
        for value in odd {
            let mut other = valid.clone();
            other.insert(name.clone(), value);
            add(other);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: Value) -> Arguments {
        let arguments = Arguments::of(&schema, &mut Dice::new(9));
        assert_eq!(arguments, Arguments::of(&schema, &mut Dice::new(9)), "the same dice, the same arguments");
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(arguments.valid.iter().all(|value| validator.is_valid(value)));
        assert!(arguments.invalid.iter().all(|value| !validator.is_valid(value)));
        arguments
    }

    #[test]
    fn arguments_are_drawn_from_every_usual_keyword() {
        let arguments = of(json!({"type": "object", "required": ["n", "pick", "deep"], "properties": {
            "n": {"type": "integer", "minimum": 3, "maximum": 5},
            "pick": {"enum": ["a", "b"]},
            "short": {"type": "string", "minLength": 2, "maxLength": 4},
            "either": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
            "deep": {"$ref": "#/$defs/deep"}},
            "$defs": {"deep": {"type": "object", "properties": {"xs": {"type": "array", "items": {"type": "number"},
                "minItems": 1}}, "required": ["xs"]}}}));
        assert!(arguments.valid.len() > 2, "{arguments:?}");
        assert!(arguments.valid.iter().any(|value| value.get("either").is_some()));
        let wrong = |test: &dyn Fn(&Value) -> bool| arguments.invalid.iter().any(test);
        assert!(wrong(&|value| value.get("n").is_none()), "a required one is missing: {arguments:?}");
        assert!(wrong(&|value| value["n"] == 2 || value["n"] == 6), "out of bounds: {arguments:?}");
    }

    #[test]
    fn a_schema_that_allows_everything_has_no_wrong_arguments_and_one_that_is_none_has_none() {
        let open = of(json!({"type": "object"}));
        assert_eq!((open.valid, open.invalid), (vec![json!({})], Vec::new()));
        let broken = Arguments::of(&json!({"type": 5}), &mut Dice::new(1));
        assert_eq!(broken, Arguments::default());
    }

    #[test]
    fn a_text_has_the_length_that_was_asked_for() {
        let mut dice = Dice::new(2);
        for length in [0, 1, 12, 400, 401, 70_000] {
            assert_eq!(text(&mut dice, length).chars().count(), length);
        }
    }
}
