//! JSON whose names are unique: of two entries under one name, neither can be taken for what was meant.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::ConfigError;

#[derive(Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number,
    Text(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Json {
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number => "a number",
            Self::Text(_) => "a text",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Json, ConfigError> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| ConfigError::new(&At::Root, error.to_string()))
}

/// A place: a list on the stack.
pub(super) enum At<'p> {
    Root,
    Member(&'p Self, &'p str),
    Item(&'p Self, usize),
}

impl<'p> At<'p> {
    pub(super) const fn member(&'p self, name: &'p str) -> Self {
        Self::Member(self, name)
    }

    pub(super) const fn item(&'p self, index: usize) -> Self {
        Self::Item(self, index)
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(of, name) => write!(f, "{of}/{}", name.replace('~', "~0").replace('/', "~1")),
            Self::Item(of, index) => write!(f, "{of}/{index}"),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = array.next_element()? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Json, A::Error> {
        let mut members = Vec::<(String, Json)>::new();
        while let Some((name, value)) = object.next_entry()? {
            if members.iter().any(|(other, _)| *other == name) {
                return Err(A::Error::custom(format_args!("expected each name once, found {name:?} twice")));
            }
            members.push((name, value));
        }
        Ok(Json::Object(members))
    }
}
