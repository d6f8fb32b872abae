//! Values to a URI.

use alloc::string::String;

use super::key::{self, is_reserved, is_unreserved};
use super::{Expression, Modifier, Operator, Part, UriTemplate, Value, Variable};

impl UriTemplate {
    /// Makes a URI. `value` is asked for each variable as it occurs; a variable without a value is left
    /// out together with its name and separator.
    #[must_use]
    pub fn expand<'v>(&self, mut value: impl FnMut(&str) -> Option<Value<'v>>) -> String {
        let mut out = String::with_capacity(self.source.len());
        for part in &self.parts {
            match part {
                Part::Literal(literal) => encode(&mut out, &literal.text, Allow::ReservedAndEncoded),
                Part::Expression(expression) => expression.expand(&mut out, &mut value),
            }
        }
        out
    }
}

impl Expression {
    fn expand<'v>(&self, out: &mut String, value: &mut impl FnMut(&str) -> Option<Value<'v>>) {
        let mut before = self.operator.first();
        for variable in &self.variables {
            let Some(value) = value(&variable.name).filter(|value| !value.is_undefined()) else { continue };
            out.extend(before);
            before = Some(self.operator.separator());
            if variable.modifier == Modifier::Explode {
                explode(out, self.operator, variable, &value);
            } else {
                whole(out, self.operator, variable, &value);
            }
        }
    }
}

impl Value<'_> {
    const fn is_undefined(&self) -> bool {
        match self {
            Self::Text(_) | Self::Encoded(_) => false,
            Self::List(items) => items.is_empty(),
            Self::Pairs(pairs) => pairs.is_empty(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Allow {
    Unreserved,
    Reserved,
    /// Percent-encoded characters stay.
    ReservedAndEncoded,
}

impl Allow {
    const fn in_values_of(operator: Operator) -> Self {
        if operator.allows_reserved() { Self::Reserved } else { Self::Unreserved }
    }
}

/// A variable without `*`.
fn whole(out: &mut String, operator: Operator, variable: &Variable, value: &Value<'_>) {
    let allow = Allow::in_values_of(operator);
    let from = if operator.is_named() { name(out, &variable.name) } else { out.len() };
    match value {
        Value::Text(text) => encode(out, prefix(text, variable.modifier, allow), allow),
        Value::Encoded(text) if operator.allows_reserved() => {
            let allow = Allow::ReservedAndEncoded;
            encode(out, prefix(text, variable.modifier, allow), allow);
        }
        Value::Encoded(text) => encode(out, prefix(text, variable.modifier, allow), allow),
        Value::List(items) => join(out, ',', items, |out, item| encode(out, item, allow)),
        Value::Pairs(pairs) => join(out, ',', pairs, |out, (key, value)| {
            encode(out, key, allow);
            out.push(',');
            encode(out, value, allow);
        }),
    }
    drop_equals_before_nothing(out, operator, from);
}

/// A variable with `*`.
fn explode(out: &mut String, operator: Operator, variable: &Variable, value: &Value<'_>) {
    let allow = Allow::in_values_of(operator);
    let separator = operator.separator();
    match value {
        Value::Text(_) | Value::Encoded(_) => whole(out, operator, variable, value),
        Value::List(items) => join(out, separator, items, |out, item| {
            let from = if operator.is_named() { name(out, &variable.name) } else { out.len() };
            encode(out, item, allow);
            drop_equals_before_nothing(out, operator, from);
        }),
        Value::Pairs(pairs) => join(out, separator, pairs, |out, (key, value)| {
            encode(out, key, allow);
            out.push('=');
            let from = out.len();
            encode(out, value, allow);
            drop_equals_before_nothing(out, operator, from);
        }),
    }
}

/// Writes `name=`; where the value begins.
fn name(out: &mut String, name: &str) -> usize {
    out.push_str(name);
    out.push('=');
    out.len()
}

/// `;a` has no `=` in front of an empty value; `?a=` has.
fn drop_equals_before_nothing(out: &mut String, operator: Operator, value_from: usize) {
    if operator == Operator::Parameter && out.len() == value_from {
        out.pop();
    }
}

fn join<T>(out: &mut String, separator: char, items: &[T], mut write: impl FnMut(&mut String, &T)) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(separator);
        }
        write(out, item);
    }
}

/// As many characters as the modifier says. An encoded character is one, however many bytes it has.
fn prefix(text: &str, modifier: Modifier, allow: Allow) -> &str {
    let Modifier::Prefix(length) = modifier else { return text };
    let mut end = 0;
    for _ in 0..length {
        match next(&text[end..], allow) {
            Some((_, bytes)) => end += bytes,
            None => break,
        }
    }
    &text[..end]
}

fn encode(out: &mut String, mut text: &str, allow: Allow) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    while let Some((literally, length)) = next(text, allow) {
        let (unit, rest) = text.split_at(length);
        text = rest;
        if literally {
            out.push_str(unit);
            continue;
        }
        for byte in unit.bytes() {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// Whether the first character of `text` is written as it is, and how many bytes it has.
fn next(text: &str, allow: Allow) -> Option<(bool, usize)> {
    let first = text.chars().next()?;
    if allow == Allow::ReservedAndEncoded
        && let Some((_, length)) = key::encoded(text)
    {
        return Some((true, length));
    }
    let literally = is_unreserved(first) || (allow != Allow::Unreserved && is_reserved(first));
    Some((literally, first.len_utf8()))
}
