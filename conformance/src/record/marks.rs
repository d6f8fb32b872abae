//! What differs from run to run is marked in the messages of a recording.
//!
//! `{"$bind": NAME, "value": V}` is the first place of a value that stands in others, too, which are
//! `{"$ref": NAME}`; `{"$type": "string", "value": V}` is a value that is another one each time. A member of a
//! message whose own name begins with `$` has a second one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::tape::Party;

/// Members whose values a program makes up, and what they are called when bound.
const MADE_UP: [(&str, &str); 8] = [
    ("cursor", "cursor"),
    ("nextCursor", "cursor"),
    ("requestState", "state"),
    ("taskId", "task"),
    ("progressToken", "progress"),
    ("elicitationId", "elicitation"),
    ("createdAt", "time"),
    ("lastUpdatedAt", "time"),
];

/// A shorter text may be there twice by chance.
const UNLIKELY: usize = 8;

/// A longer text of a server is written for people.
const LONG: usize = 300;

/// A value as the key under which it is found again.
type Key = String;

struct Seen {
    places: usize,
    called: &'static str,
    name: Option<String>,
}

/// Marks the messages of the steps. `without_prose` leaves open what servers say to people at length.
pub(super) fn mark(steps: &mut [Map<String, Value>], without_prose: bool) {
    let mut seen: BTreeMap<Key, Seen> = BTreeMap::new();
    for (_, message) in steps.iter().filter_map(said) {
        made_up(message, "", &mut seen);
    }
    for (_, message) in steps.iter().filter_map(said) {
        count(message, "", &mut seen);
    }
    let mut marker = Marker { seen, names: BTreeMap::new(), without_prose };
    for step in steps {
        for party in [Party::Client, Party::Server] {
            if let Some(message) = step.get_mut(party.as_str()).filter(|message| message.is_object()) {
                marker.mark(message, "", party);
            }
        }
    }
}

/// Who says a message, and the message.
pub(super) fn said(step: &Map<String, Value>) -> Option<(Party, &Value)> {
    let by = |party: Party| step.get(party.as_str()).map(|message| (party, message));
    by(Party::Client).or_else(|| by(Party::Server)).filter(|(_, message)| message.is_object())
}

fn key(value: &Value, of: &str) -> Option<Key> {
    let named = MADE_UP.iter().any(|(name, _)| *name == of);
    match value {
        Value::String(text) if named || text.len() >= UNLIKELY => Some(value.to_string()),
        // A number stands for itself elsewhere.
        Value::Number(_) if named => Some(format!("{of}:{value}")),
        _ => None,
    }
}

fn made_up(value: &Value, of: &str, seen: &mut BTreeMap<Key, Seen>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| made_up(item, of, seen)),
        Value::Object(members) => members.iter().for_each(|(name, value)| made_up(value, name, seen)),
        leaf => {
            let named = MADE_UP.iter().find(|(name, _)| *name == of).map(|(_, called)| *called);
            let called = named.or_else(|| leaf.as_str().filter(|text| is_id(text)).map(|_| "id"));
            if let (Some(called), Some(key)) = (called, key(leaf, of)) {
                seen.entry(key).or_insert(Seen { places: 0, called, name: None });
            }
        }
    }
}

fn count(value: &Value, of: &str, seen: &mut BTreeMap<Key, Seen>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| count(item, of, seen)),
        Value::Object(members) => members.iter().for_each(|(name, value)| count(value, name, seen)),
        leaf => {
            if let Some(found) = key(leaf, of).and_then(|key| seen.get_mut(&key)) {
                found.places += 1;
            }
        }
    }
}

struct Marker {
    seen: BTreeMap<Key, Seen>,
    names: BTreeMap<&'static str, u32>,
    without_prose: bool,
}

impl Marker {
    fn mark(&mut self, value: &mut Value, of: &str, party: Party) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.mark(item, of, party)),
            Value::Object(members) => {
                for (name, mut value) in std::mem::take(members) {
                    self.mark(&mut value, &name, party);
                    let name = if name.starts_with('$') { format!("${name}") } else { name };
                    members.insert(name, value);
                }
            }
            leaf => {
                if let Some(mark) = self.of(leaf, of, party) {
                    *leaf = mark;
                }
            }
        }
    }

    fn of(&mut self, leaf: &Value, of: &str, party: Party) -> Option<Value> {
        if let Some(seen) = key(leaf, of).and_then(|key| self.seen.get_mut(&key)) {
            if seen.places < 2 {
                let kind = if leaf.is_string() { "string" } else { "number" };
                return Some(json!({"$type": kind, "value": leaf}));
            }
            if let Some(name) = &seen.name {
                return Some(json!({"$ref": name}));
            }
            let number = self.names.entry(seen.called).or_default();
            *number += 1;
            let name = format!("{}-{number}", seen.called);
            seen.name = Some(name.clone());
            return Some(json!({"$bind": name, "value": leaf}));
        }
        let text = leaf.as_str()?;
        if self.without_prose && party == Party::Server {
            if matches!(of, "data" | "blob") && text.len() > LONG {
                return Some(json!({"$base64": true}));
            }
            if matches!(of, "description" | "instructions") || text.len() > LONG {
                return Some(json!({"$type": "string"}));
            }
        }
        changes(text).then(|| json!({"$type": "string", "value": text}))
    }
}

/// Whether the text is a UUID.
fn is_id(text: &str) -> bool {
    text.len() == 36 && id_at(text.as_bytes())
}

/// Whether a UUID or a time of day stands in the text.
fn changes(text: &str) -> bool {
    let bytes = text.as_bytes();
    (0..bytes.len()).any(|at| id_at(&bytes[at..]) || time_at(&bytes[at..]))
}

fn fits(bytes: &[u8], form: &[u8]) -> bool {
    bytes.len() >= form.len()
        && bytes.iter().zip(form).all(|(byte, form)| match form {
            b'x' => byte.is_ascii_hexdigit(),
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        })
}

fn id_at(bytes: &[u8]) -> bool {
    fits(bytes, b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

fn time_at(bytes: &[u8]) -> bool {
    fits(bytes, b"0000-00-00T00:00:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(steps: Value, without_prose: bool) -> Value {
        let mut steps: Vec<Map<String, Value>> = serde_json::from_value(steps).unwrap();
        mark(&mut steps, without_prose);
        serde_json::to_value(steps).unwrap()
    }

    #[test]
    fn a_value_that_comes_back_is_bound_and_one_that_does_not_has_its_type() {
        let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let steps = json!([
            {"server": {"result": {"nextCursor": "c1", "at": "2026-01-02T03:04:05Z", "n": id, "x": 1}}},
            {"client": {"params": {"cursor": "c1", "text": "c1", "_meta": {"progressToken": 1}, "x": 1}}},
            {"server": {"params": {"progressToken": 1, "progress": 1}}},
            {"server": {"result": {"requestState": "never-used", "said": format!("see {id}")}}},
        ]);
        let marked = marked(steps, false);
        let result = &marked[0]["server"]["result"];
        assert_eq!(result["nextCursor"], json!({"$bind": "cursor-1", "value": "c1"}));
        assert_eq!(result["at"], json!({"$type": "string", "value": "2026-01-02T03:04:05Z"}));
        assert_eq!(result["n"], json!({"$type": "string", "value": id}));
        let params = &marked[1]["client"]["params"];
        assert_eq!((&params["cursor"], &params["x"]), (&json!({"$ref": "cursor-1"}), &json!(1)));
        assert_eq!(params["_meta"]["progressToken"], json!({"$bind": "progress-1", "value": 1}));
        assert_eq!(
            marked[2]["server"]["params"],
            json!({"progressToken": {"$ref": "progress-1"}, "progress": 1})
        );
        let last = &marked[3]["server"]["result"];
        assert_eq!(last["requestState"], json!({"$type": "string", "value": "never-used"}));
        assert_eq!(last["said"]["$type"], "string");
    }

    #[test]
    fn prose_is_left_open_if_wanted_and_names_with_a_dollar_are_told_apart() {
        let steps = json!([{"server": {"result": {
            "description": "What it does.", "inputSchema": {"$schema": "s"}, "blob": "A".repeat(400),
        }}}]);
        let open = marked(steps.clone(), true);
        let result = &open[0]["server"]["result"];
        assert_eq!(result["description"], json!({"$type": "string"}));
        assert_eq!(result["inputSchema"], json!({"$$schema": "s"}));
        assert_eq!(result["blob"], json!({"$base64": true}));
        assert_eq!(marked(steps, false)[0]["server"]["result"]["description"], "What it does.");
    }
}
