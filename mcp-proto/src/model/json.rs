//! JSON that is kept as text: values whose shape is the application's business, and JSON Schemas.

use alloc::{
    borrow::{Cow, ToOwned},
    boxed::Box,
    string::String,
};
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Unexpected};
use serde_json::value::RawValue;

use crate::rpc::de::{self, DecodeError};

/// Any JSON value, kept as the text in which it was written.
///
/// Numbers keep all their digits and objects the order of their members. Only line breaks between
/// tokens are taken out, so that a value never breaks the framing of a line or of an event stream.
///
/// It can be decoded only with `serde_json`, as it is built on [`RawValue`].
#[derive(Clone)]
pub struct Json(Box<RawValue>);

/// A text that is no JSON, a value that has no JSON form, or a schema that is no object.
#[derive(Debug)]
pub struct InvalidJson(serde_json::Error);

impl Json {
    /// Checks that `text` is one JSON value. Does not recurse, whatever the depth of the text.
    pub fn parse(text: &str) -> Result<Self, InvalidJson> {
        RawValue::from_string(text.to_owned()).map(Self::from).map_err(InvalidJson)
    }

    /// The JSON of any value. Fails for maps with keys that are no strings.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, InvalidJson> {
        serde_json::value::to_raw_value(value).map(Self::from).map_err(InvalidJson)
    }

    /// `null`
    #[must_use]
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// `{}`
    #[must_use]
    pub fn empty_object() -> Self {
        Self::known("{}")
    }

    /// A JSON string.
    #[must_use]
    pub fn string(value: &str) -> Self {
        Self::from_serialize(value).unwrap_or_else(|_| Self::null()) // a string always has a JSON form
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The text as `serde_json` knows it.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads the value as a `T`, which may borrow from it, by the rules of [`de::from_str`].
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, DecodeError> {
        de::from_str(self.get())
    }

    /// Whether this is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.get().starts_with('{')
    }

    /// Whether this is an array.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.get().starts_with('[')
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// Whether this is a string.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.get().starts_with('"')
    }

    /// The value, if this is a string. Borrowed unless it has escapes.
    #[must_use]
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        if !self.is_string() {
            return None;
        }
        let inner = self.get().strip_prefix('"').and_then(|s| s.strip_suffix('"'));
        match inner {
            Some(s) if !s.contains('\\') => Some(Cow::Borrowed(s)),
            _ => self.decode::<String>().ok().map(Cow::Owned),
        }
    }

    /// The value, if this is `true` or `false`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The value, if this is a number. Digits beyond the precision of `f64` are lost.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.is_number().then(|| self.decode().ok()).flatten()
    }

    /// The value, if this is a whole number in range. `1.0` and `1e0` are whole numbers.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        if !self.is_number() {
            return None;
        }
        self.decode().ok()
    }

    /// Whether this is a number.
    #[must_use]
    pub fn is_number(&self) -> bool {
        matches!(self.get().as_bytes().first(), Some(b'-' | b'0'..=b'9'))
    }

    /// The schema that nothing satisfies, as an object.
    pub(crate) fn nothing_schema() -> Self {
        Self::known(r#"{"not":{}}"#)
    }

    /// For texts of this crate that are JSON for certain.
    fn known(text: &'static str) -> Self {
        Self(serde_json::from_str::<&RawValue>(text).unwrap_or(RawValue::NULL).to_owned())
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        if memchr::memchr2(b'\n', b'\r', raw.get().as_bytes()).is_none() {
            return Self(raw);
        }
        // A JSON string holds no raw line break, so each one stands between tokens and means nothing.
        let text: String = raw.get().chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
        Self(RawValue::from_string(text).unwrap_or(raw))
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::known(if value { "true" } else { "false" })
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self::from_serialize(&value).unwrap_or_else(|_| Self::null()) // an integer always has a JSON form
    }
}

impl From<&str> for Json {
    /// A JSON string, not JSON text: that is [`Json::parse`].
    fn from(value: &str) -> Self {
        Self::string(value)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

/// By text: `1` and `1.0` differ.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// For `deserialize_with` on an optional member: `null` is a value, not absence.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

impl fmt::Display for InvalidJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unexpected JSON: {}", self.0)
    }
}

impl core::error::Error for InvalidJson {}

/// A JSON Schema, kept as the text in which it was written. The default dialect is 2020-12.
/// [spec: basic#json-schema-usage]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonSchema(Json);

/// The root members of a schema that this crate looks at.
#[derive(Deserialize)]
struct Root {
    #[serde(default, rename = "type", deserialize_with = "present")]
    kind: Option<Json>,
}

impl JsonSchema {
    /// Checks that `text` is a JSON object. Whether it is a valid schema is not checked.
    pub fn parse(text: &str) -> Result<Self, InvalidJson> {
        Json::parse(text).and_then(Self::new)
    }

    /// The schema of a value that holds one: a `serde_json::Value`, a generated schema.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, InvalidJson> {
        Json::from_serialize(value).and_then(Self::new)
    }

    /// A schema must be an object: `true`, `false` and `null` are refused.
    pub fn new(json: Json) -> Result<Self, InvalidJson> {
        if json.is_object() {
            Ok(Self(json))
        } else {
            Err(InvalidJson(serde::de::Error::invalid_type(unexpected(&json), &"a JSON Schema object")))
        }
    }

    /// `{"type":"object"}`: any object, also for tools without arguments.
    #[must_use]
    pub fn any_object() -> Self {
        Self(Json::known(r#"{"type":"object"}"#))
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The schema as JSON.
    #[must_use]
    pub fn as_json(&self) -> &Json {
        &self.0
    }

    /// Whether the root says `"type":"object"`, which every input schema must, and before 2026-07-28
    /// also every output schema. [spec: server/tools#tool]
    #[must_use]
    pub fn root_is_object_type(&self) -> bool {
        self.0.decode::<Root>().is_ok_and(|root| root.kind.is_some_and(|kind| kind.get() == "\"object\""))
    }
}

impl Serialize for JsonSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        if json.is_object() {
            Ok(Self(json))
        } else {
            Err(serde::de::Error::invalid_type(unexpected(&json), &"a JSON Schema object"))
        }
    }
}

/// What a value is, for error messages.
pub(crate) fn described(json: &Json) -> &'static str {
    match json.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'n') => "null",
        Some(b't') => "true",
        Some(b'f') => "false",
        Some(b'"') => "a string",
        _ => "a number",
    }
}

/// The same for errors of serde.
pub(crate) fn unexpected(json: &Json) -> Unexpected<'static> {
    match json.get().as_bytes().first() {
        Some(b'{') => Unexpected::Map,
        Some(b'[') => Unexpected::Seq,
        Some(b'n') => Unexpected::Unit,
        _ => Unexpected::Other(described(json)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_but_line_breaks_between_tokens_go() {
        for text in [r#"{"b":1.0,"a":[ 1e2 ,12345678901234567890123]}"#, "null", r#""a\nb""#, "-0.0"] {
            assert_eq!(Json::parse(text).unwrap().get(), text);
        }
        let pretty = "{\r\n  \"a\\n\": [\n 1,\n 2\n]\n}\n";
        assert_eq!(Json::parse(pretty).unwrap().get(), "{  \"a\\n\": [ 1, 2]}");
        let inside: Json = serde_json::from_str(pretty).unwrap();
        assert!(!inside.get().contains('\n'));
        for bad in ["", "{", "1 2", "nul", "[1,]", "\"a\nb\""] {
            assert!(Json::parse(bad).is_err(), "{bad:?}");
        }
    }

    proptest::proptest! {
        /// Whatever a pretty printer does, the value is the same and stays on one line.
        #[test]
        fn a_value_never_breaks_a_line(text in "[\\x00-\\u{10FFFF}]{0,20}", numbers in proptest::collection::vec(proptest::num::i64::ANY, 0..5)) {
            let value = serde_json::json!({ &text: [text, { "n": numbers }] });
            let pretty = serde_json::to_string_pretty(&value).unwrap().replace("\n", "\r\n");
            let json = Json::parse(&pretty).unwrap();
            proptest::prop_assert!(!json.get().contains(['\n', '\r']));
            proptest::prop_assert_eq!(json.decode::<serde_json::Value>().unwrap(), value);
        }
    }

    #[test]
    fn depth_is_no_recursion() {
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        assert_eq!(Json::parse(&deep).unwrap().get(), deep);
    }

    #[test]
    fn scalars_are_read_without_confusion() {
        let json = |t: &str| Json::parse(t).unwrap();
        assert_eq!(json(r#""a\/bü""#).as_str().unwrap(), "a/bü");
        assert!(matches!(json("\"plain\"").as_str(), Some(Cow::Borrowed("plain"))));
        assert_eq!(json("1").as_str(), None);
        // T06
        assert_eq!(
            (json("30").as_i64(), json("30.0").as_i64(), json("3e1").as_i64()),
            (Some(30), Some(30), Some(30))
        );
        assert_eq!(
            (json("1.5").as_i64(), json("\"30\"").as_i64(), json("-0.0").as_i64()),
            (None, None, Some(0))
        );
        assert_eq!(json("9007199254740993").as_i64(), Some(9_007_199_254_740_993));
        assert_eq!((json("true").as_bool(), json("\"true\"").as_bool()), (Some(true), None));
        assert_eq!(Json::from("a\"b").get(), r#""a\"b""#);
        assert_eq!(
            (Json::null().get(), Json::empty_object().get(), Json::from(7).get()),
            ("null", "{}", "7")
        );
    }

    #[test]
    fn a_schema_is_an_object_and_knows_its_root_type() {
        for bad in ["true", "null", "[]", "\"object\"", "1"] {
            assert!(JsonSchema::parse(bad).is_err(), "S-TOOL-06: {bad}");
            assert!(serde_json::from_str::<JsonSchema>(bad).is_err(), "{bad}");
        }
        let root = |t: &str| JsonSchema::parse(t).unwrap().root_is_object_type();
        assert!(root(r#"{"properties":{},"type":"object"}"#));
        assert!(JsonSchema::any_object().root_is_object_type());
        for other in
            [r#"{}"#, r#"{"type":"array"}"#, r#"{"type":["object","null"]}"#, r#"{"a":{"type":"object"}}"#]
        {
            assert!(!root(other), "{other}");
        }
    }
}
