//! One JSON value has many texts: members in another order, white space, characters as escapes.

use serde_json::{Map, Value};

use super::dice::Dice;

/// How a message is written. All forms of a message mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Form {
    /// What decides where the form leaves a choice.
    pub(super) seed: u64,
    /// Members stand in another order.
    pub(super) shuffled: bool,
    /// White space stands between the tokens, none of it a line end.
    pub(super) spaced: bool,
    /// Characters are written as `\u` escapes, also in names.
    pub(super) escaped: bool,
    /// Over a byte stream: the line ends with CR LF.
    pub(super) carriage: bool,
}

impl Form {
    pub(super) fn any(dice: &mut Dice) -> Self {
        let seed = dice.roll();
        let mut often = || dice.one_in(2);
        Self { seed, shuffled: often(), spaced: often(), escaped: often(), carriage: often() && often() }
    }

    /// Each makes a form simpler in one respect, the first in all.
    pub(super) const SIMPLER: [fn(Self) -> Self; 5] = [
        |_| Self { seed: 0, shuffled: false, spaced: false, escaped: false, carriage: false },
        |form| Self { shuffled: false, ..form },
        |form| Self { spaced: false, ..form },
        |form| Self { escaped: false, ..form },
        |form| Self { carriage: false, ..form },
    ];

    /// The text of the value, without the line end.
    pub(super) fn write(self, value: &Value) -> String {
        if !(self.shuffled || self.spaced || self.escaped) {
            return value.to_string();
        }
        let mut writer = Writer { form: self, dice: Dice::new(self.seed), text: String::new() };
        writer.space();
        writer.value(value);
        writer.space();
        writer.text
    }
}

struct Writer {
    form: Form,
    dice: Dice,
    text: String,
}

impl Writer {
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => self.array(items),
            Value::Object(members) => self.object(members),
            plain => self.text.push_str(&plain.to_string()),
        }
    }

    fn array(&mut self, items: &[Value]) {
        self.text.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.space();
            self.value(item);
            self.space();
        }
        self.text.push(']');
    }

    fn object(&mut self, members: &Map<String, Value>) {
        let mut order: Vec<_> = members.iter().collect();
        // The order of a map depends on how the JSON library was built.
        order.sort_unstable_by_key(|(name, _)| *name);
        if self.form.shuffled {
            self.dice.shuffle(&mut order);
        }
        self.text.push('{');
        for (index, (name, value)) in order.into_iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.space();
            self.string(name);
            self.space();
            self.text.push(':');
            self.space();
            self.value(value);
            self.space();
        }
        self.text.push('}');
    }

    fn space(&mut self) {
        if self.form.spaced {
            for _ in 0..self.dice.below(3) {
                self.text.push(if self.dice.one_in(3) { '\t' } else { ' ' });
            }
        }
    }

    fn string(&mut self, text: &str) {
        if !self.form.escaped {
            self.text.push_str(&Value::from(text).to_string());
            return;
        }
        self.text.push('"');
        for character in text.chars() {
            // In long texts few, so that they stay about as long as they are.
            let escape = self.dice.one_in(if text.len() > 4_000 { 50 } else { 3 });
            let short = match character {
                '"' => Some("\\\""),
                '\\' => Some("\\\\"),
                '/' => Some("\\/"),
                '\u{8}' => Some("\\b"),
                '\u{c}' => Some("\\f"),
                '\n' => Some("\\n"),
                '\r' => Some("\\r"),
                '\t' => Some("\\t"),
                _ => None,
            };
            let must = character < ' ' || character == '"' || character == '\\';
            match short {
                Some(short) if must && !escape => self.text.push_str(short),
                Some(short) if escape && self.dice.one_in(2) => self.text.push_str(short),
                _ if must || escape => self.code(character),
                _ => self.text.push(character),
            }
        }
        self.text.push('"');
    }

    fn code(&mut self, character: char) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            let digits =
                if self.dice.one_in(2) { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
            self.text.push_str(&digits);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_means_the_same_and_stays_on_one_line() {
        let value =
            json!({"id": i64::MIN, "a": [{"b": null, "é\"\\/\n": "\u{0}\u{2028}🎉 x"}, [], {}], "z": 0.5});
        let mut dice = Dice::new(3);
        let mut texts = std::collections::BTreeSet::new();
        for _ in 0..300 {
            let form = Form::any(&mut dice);
            let text = form.write(&value);
            assert!(!text.contains(['\n', '\r']), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value, "{text}");
            assert_eq!(text, form.write(&value), "the same form, the same text");
            texts.insert(text);
        }
        assert!(texts.len() > 200, "{}", texts.len());
        assert!(
            texts.iter().any(|text| text.contains("\\ud83c") || text.contains("\\uD83C")),
            "surrogate pairs"
        );
        assert_eq!(Form::default().write(&value), value.to_string());
    }
}
