//! A value as one revision has it, written at the edge.
//!
//! Types of the model know nothing of older revisions. A [`View`] serialises a value and leaves out the
//! members that the revision lacks, by the table of [`ProtocolVersion::has_member`]; what has to change
//! in *values* is done before, by [`ResultBody::fitted`](super::ResultBody::fitted).

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use serde::{
    Serialize, Serializer,
    ser::{
        SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};

use super::{
    ProtocolVersion,
    version::{self, Row},
};

/// Appends the JSON of `value` to `out` as `version` has it. On an error `out` is as it was.
pub fn write<T: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    version: ProtocolVersion,
    value: &T,
) -> Result<(), WriteError> {
    let before = out.len();
    append(out, &View::new(version, value)).map_err(|error| {
        out.truncate(before);
        WriteError(error.to_string())
    })
}

/// Types of the model always serialise; should one ever not, `{}` keeps the message well-formed.
pub(crate) fn write_or_empty<T: Serialize + ?Sized>(out: &mut Vec<u8>, version: ProtocolVersion, value: &T) {
    if write(out, version, value).is_err() {
        out.extend_from_slice(b"{}");
    }
}

#[cfg(feature = "std")]
fn append<T: Serialize>(out: &mut Vec<u8>, value: &T) -> serde_json::Result<()> {
    serde_json::to_writer(out, value)
}

/// `serde_json` has its writer only with `std`.
#[cfg(not(feature = "std"))]
fn append<T: Serialize>(out: &mut Vec<u8>, value: &T) -> serde_json::Result<()> {
    serde_json::to_vec(value).map(|bytes| out.extend_from_slice(&bytes))
}

/// A value has no JSON form in the revision: a number that is not finite, or content that cannot be said
/// in an older revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteError(String);

impl WriteError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write the message: {}", self.0)
    }
}

impl core::error::Error for WriteError {}

/// A value as one revision has it. Serialising it leaves out what the revision lacks.
#[derive(Debug, Clone, Copy)]
pub struct View<'a, T: ?Sized> {
    version: ProtocolVersion,
    value: &'a T,
}

impl<'a, T: ?Sized> View<'a, T> {
    /// `value` as `version` has it.
    #[must_use]
    pub const fn new(version: ProtocolVersion, value: &'a T) -> Self {
        Self { version, value }
    }
}

impl<T: Serialize + ?Sized> Serialize for View<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Filter { inner: serializer, version: self.version, rows: &[] })
    }
}

/// Wraps a serializer, or what a serializer makes for the parts of a compound value. `rows` are the
/// members of the object being written that not every revision has.
struct Filter<S> {
    inner: S,
    version: ProtocolVersion,
    rows: &'static [Row],
}

impl<S> Filter<S> {
    const fn view<'a, T: ?Sized>(&self, value: &'a T) -> View<'a, T> {
        View::new(self.version, value)
    }

    fn drops(&self, member: &str) -> bool {
        self.rows.iter().any(|row| row.member == member && !row.span.contains(self.version))
    }

    fn drops_key<K: Serialize + ?Sized>(&self, key: &K) -> bool {
        self.rows.iter().any(|row| !row.span.contains(self.version) && key_is(key, row.member))
    }
}

macro_rules! forward {
    ($($method:ident: $ty:ty),+ $(,)?) => {$(
        fn $method(self, v: $ty) -> Result<S::Ok, S::Error> {
            self.inner.$method(v)
        }
    )+};
}

impl<S: Serializer> Serializer for Filter<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Filter<S::SerializeSeq>;
    type SerializeTuple = Filter<S::SerializeTuple>;
    type SerializeTupleStruct = Filter<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Filter<S::SerializeTupleVariant>;
    type SerializeMap = Filter<S::SerializeMap>;
    type SerializeStruct = Filter<S::SerializeStruct>;
    type SerializeStructVariant = Filter<S::SerializeStructVariant>;

    forward! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_f32: f32, serialize_f64: f64, serialize_char: char, serialize_str: &str,
        serialize_bytes: &[u8], serialize_unit_struct: &'static str,
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let view = self.view(value);
        self.inner.serialize_some(&view)
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    /// The name is lent to a map within, so that open objects are filtered like structs.
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        value.serialize(Self { rows: version::rows(name), ..self })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let view = self.view(value);
        self.inner.serialize_newtype_variant(name, index, variant, &view)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        let Self { inner, version, .. } = self;
        Ok(Filter { inner: inner.serialize_seq(len)?, version, rows: &[] })
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        let Self { inner, version, .. } = self;
        Ok(Filter { inner: inner.serialize_tuple(len)?, version, rows: &[] })
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        let Self { inner, version, .. } = self;
        Ok(Filter { inner: inner.serialize_tuple_struct(name, len)?, version, rows: &[] })
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let Self { inner, version, .. } = self;
        Ok(Filter { inner: inner.serialize_tuple_variant(name, index, variant, len)?, version, rows: &[] })
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        let Self { inner, version, rows } = self;
        // Members may be left out, so the length is not known; a length of 0 writes `{}` at once.
        Ok(Filter { inner: inner.serialize_map(if rows.is_empty() { len } else { None })?, version, rows })
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeStruct, S::Error> {
        let Self { inner, version, .. } = self;
        Ok(Filter { inner: inner.serialize_struct(name, len)?, version, rows: version::rows(name) })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let Self { inner, version, .. } = self;
        Ok(Filter { inner: inner.serialize_struct_variant(name, index, variant, len)?, version, rows: &[] })
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.collect_str(value)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! forward_items {
    ($($trait:ident::$method:ident),+ $(,)?) => {$(
        impl<C: $trait> $trait for Filter<C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
                let view = self.view(value);
                self.inner.$method(&view)
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        }
    )+};
}

forward_items! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

impl<C: SerializeStruct> SerializeStruct for Filter<C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), C::Error> {
        if self.drops(name) {
            return self.inner.skip_field(name);
        }
        let view = self.view(value);
        self.inner.serialize_field(name, &view)
    }

    fn skip_field(&mut self, name: &'static str) -> Result<(), C::Error> {
        self.inner.skip_field(name)
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}

impl<C: SerializeStructVariant> SerializeStructVariant for Filter<C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), C::Error> {
        let view = self.view(value);
        self.inner.serialize_field(name, &view)
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}

impl<C: SerializeMap> SerializeMap for Filter<C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<(), C::Error> {
        if !self.rows.is_empty() && self.drops_key(key) {
            return Ok(());
        }
        let view = self.view(value);
        self.inner.serialize_entry(key, &view)
    }

    fn serialize_key<K: Serialize + ?Sized>(&mut self, key: &K) -> Result<(), C::Error> {
        self.inner.serialize_key(key)
    }

    fn serialize_value<V: Serialize + ?Sized>(&mut self, value: &V) -> Result<(), C::Error> {
        let view = self.view(value);
        self.inner.serialize_value(&view)
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}

/// A key shown as text, whatever string type it has.
struct KeyText<'a, K: ?Sized>(&'a K);

impl<K: Serialize + ?Sized> fmt::Display for KeyText<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}

/// What is left of a text once the pieces written were taken from its front.
struct Rest<'a>(Option<&'a str>);

impl fmt::Write for Rest<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.0 = self.0.and_then(|rest| rest.strip_prefix(piece));
        Ok(())
    }
}

fn key_is<K: Serialize + ?Sized>(key: &K, name: &str) -> bool {
    let mut rest = Rest(Some(name));
    fmt::write(&mut rest, format_args!("{}", KeyText(key))).is_ok() && rest.0 == Some("")
}

#[cfg(test)]
mod tests {
    use serde::ser::Serializer;

    use super::*;
    use crate::model::{Json, Members, ProtocolVersion as V};

    fn text<T: Serialize + ?Sized>(version: V, value: &T) -> String {
        let mut out = b"kept".to_vec();
        write(&mut out, version, value).unwrap();
        String::from_utf8(out).unwrap().strip_prefix("kept").unwrap().to_string()
    }

    #[derive(Serialize)]
    struct Implementation {
        name: &'static str,
        title: Option<Inner>,
        website: Json,
    }

    #[derive(Serialize)]
    #[serde(rename = "Icon")]
    struct Inner {
        src: u8,
        theme: (u8, Json),
    }

    struct Open(Members<Json>);

    impl Serialize for Open {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_newtype_struct("ServerCapabilities", &self.0)
        }
    }

    #[test]
    fn members_are_left_out_at_any_depth_and_raw_text_passes() {
        let raw = Json::parse(r#"{"title":1.0, "x":12345678901234567890123}"#).unwrap();
        let value = [Implementation {
            name: "n",
            title: Some(Inner { src: 1, theme: (2, raw.clone()) }),
            website: raw.clone(),
        }];
        let r = raw.get();
        let old = alloc::format!(r#"[{{"name":"n","website":{r}}}]"#);
        let new = alloc::format!(r#"[{{"name":"n","title":{{"src":1,"theme":[2,{r}]}},"website":{r}}}]"#);
        assert_eq!(text(V::V2025_03_26, &value), old);
        assert_eq!(text(V::V2025_06_18, &value), new);
        assert_eq!(text(V::V2026_07_28, &value), new);
        assert_eq!(text(V::V2026_07_28, &value), serde_json::to_string(&value).unwrap());
    }

    #[test]
    fn open_objects_are_filtered_by_name_too() {
        let open = |names: &[&'static str]| Open(names.iter().map(|n| (*n, Json::empty_object())).collect());
        let all = open(&["tools", "completions", "tasks", "x-own"]);
        assert_eq!(text(V::V2024_11_05, &all), r#"{"tools":{},"x-own":{}}"#);
        assert_eq!(text(V::V2025_11_25, &all), r#"{"tools":{},"completions":{},"tasks":{},"x-own":{}}"#);
        // S-TASK-47
        assert_eq!(text(V::V2026_07_28, &all), r#"{"tools":{},"completions":{},"x-own":{}}"#);
        assert_eq!(text(V::V2024_11_05, &open(&["completions"])), "{}");
        assert_eq!(text(V::V2024_11_05, &open(&[])), "{}");
    }

    #[test]
    fn an_error_leaves_no_bytes() {
        struct Fails;
        impl Serialize for Fails {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("a number must be finite"))
            }
        }
        for version in V::ALL {
            let mut out = b"kept".to_vec();
            let error = write(&mut out, version, &[Ok(1), Err(Fails)]).unwrap_err();
            assert_eq!(out, b"kept");
            assert_eq!(error.to_string(), "cannot write the message: a number must be finite");
        }
    }
}
