//! Reading the members of one JSON object, with errors that say which member, what was expected, what came.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The members of one object of the format; each is taken once, and none may be left over.
pub(crate) struct Fields {
    what: &'static str,
    members: BTreeMap<String, Value>,
    known: Vec<&'static str>,
}

impl Fields {
    pub(crate) fn of(what: &'static str, value: Value) -> Result<Self, String> {
        match value {
            Value::Object(members) => Ok(Self::from_map(what, members)),
            other => Err(format!("{what}: expected an object, got {}", brief(&other))),
        }
    }

    pub(crate) fn from_map(what: &'static str, members: Map<String, Value>) -> Self {
        Self { what, members: members.into_iter().collect(), known: Vec::new() }
    }

    pub(crate) fn value(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.members.remove(name)
    }

    pub(crate) fn required(&mut self, name: &'static str) -> Result<Value, String> {
        let what = self.what;
        self.value(name).ok_or_else(|| format!("{what}: expected a member `{name}`, got none"))
    }

    pub(crate) fn string(&mut self, name: &'static str) -> Result<Option<String>, String> {
        self.value(name).map(|value| string(name, value)).transpose()
    }

    pub(crate) fn strings(&mut self, name: &'static str) -> Result<Vec<String>, String> {
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items.into_iter().map(|item| string(name, item)).collect(),
            Some(other) => Err(format!("`{name}`: expected an array of strings, got {}", brief(&other))),
        }
    }

    pub(crate) fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(format!("`{name}`: expected true or false, got {}", brief(&other))),
        }
    }

    pub(crate) fn count(&mut self, name: &'static str) -> Result<Option<u64>, String> {
        self.value(name).map(|value| whole(name, &value)).transpose()
    }

    /// Fails if a member was not asked for.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.members.keys().next() {
            None => Ok(()),
            Some(name) => {
                Err(format!("{}: expected one of `{}`, got `{name}`", self.what, self.known.join("`, `")))
            }
        }
    }
}

pub(crate) fn string(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(format!("`{name}`: expected a string, got {}", brief(&other))),
    }
}

pub(crate) fn whole(name: &str, value: &Value) -> Result<u64, String> {
    value
        .as_u64()
        .ok_or_else(|| format!("`{name}`: expected a whole number, 0 or more, got {}", brief(value)))
}

/// The value as compact JSON, cut where it gets long.
pub(crate) fn brief(value: &Value) -> String {
    crate::text::shorten(&value.to_string(), 200)
}
