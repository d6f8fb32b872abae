//! Typed values from JSON text, strictly: the one way this crate turns parameters, results and tool
//! arguments into types.
//!
//! What [`from_str`] does beyond `serde_json::from_str`:
//!
//! - An array is not a struct. Derived `Deserialize` takes `["2.0", 1]` for an object; here only an
//!   object will do, at any depth.
//! - A number without a fractional part is an integer, whatever its spelling: `30`, `30.0` and `3e1`
//!   are the same argument, as JSON Schema has it. Digits are exact: nothing passes through a float.
//! - An error says where (JSON pointer), what was expected and what came, in words that a person or a
//!   model can repair the call from.
//!
//! Two passes keep the common case cheap. The first knows no places and allocates nothing of its own;
//! only when it fails does a second one run that follows the path, reads integers from their digits,
//! and either finds that all is well (`30.0`) or can say what is not.
//!
//! Untagged, flattened and internally tagged types buffer their input on their own and so escape these
//! rules; do not decode them here.

mod exact;
mod fault;

#[cfg(test)]
mod tests;

use alloc::string::{String, ToString};
use core::cell::RefCell;
use core::fmt;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use exact::Width;
pub use fault::DecodeError;
use fault::Fault;

/// Decodes one JSON text.
///
/// Borrowing works as with `serde_json`: `&str` only without escapes, `Cow<str>` always, `&RawValue`
/// for a part that stays text. Nesting is bounded at 128, except inside a `RawValue`.
///
/// # Errors
///
/// [`DecodeError`] when the text is no JSON or does not fit `T`.
pub fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, DecodeError> {
    match pass(text, At(None)) {
        Ok(value) => Ok(value),
        Err(_) => explain(text),
    }
}

#[cold]
fn explain<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, DecodeError> {
    let root = Frame { trace: &Trace::default(), place: Place::Root };
    pass(text, At(Some(&root))).map_err(|fault| fault.locate(Place::Root).into_error())
}

fn pass<'de, T: Deserialize<'de>>(text: &'de str, at: At<'_>) -> Result<T, Fault> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = T::deserialize(Decoder { inner: &mut json, at })?;
    json.end().map_err(|e| at.take(e))?;
    Ok(value)
}

/// Where in the value the decoder is: a list on the stack.
#[derive(Clone, Copy)]
enum Place<'p> {
    Root,
    Member(&'p Self, &'p str),
    Item(&'p Self, usize),
}

/// What the second pass keeps: the fault that is on its way up. It travels beside the error of
/// `serde_json`, which could carry only its text.
#[derive(Default)]
struct Trace {
    fault: RefCell<Option<Fault>>,
}

/// A level of the second pass.
struct Frame<'p> {
    trace: &'p Trace,
    place: Place<'p>,
}

/// Where the decoder is in the second pass; nowhere in the first, which so carries one null pointer.
#[derive(Clone, Copy)]
struct At<'p>(Option<&'p Frame<'p>>);

impl At<'_> {
    /// Hands a fault of ours to the parser that called us. The first one stands: a visitor of ours may
    /// sit inside another.
    #[cold]
    fn note<E: de::Error>(self, fault: Fault) -> E {
        if let Some(Frame { trace, place }) = self.0 {
            trace.fault.borrow_mut().get_or_insert_with(|| fault.locate(*place));
        }
        E::custom("")
    }

    /// Takes over an error of the parser: a fault of ours that passed through it, or one of its own.
    #[cold]
    fn take<E: de::Error>(self, error: E) -> Fault {
        let Some(Frame { trace, place }) = self.0 else { return Fault::untold() };
        trace.fault.take().unwrap_or_else(|| Fault::of_parser(&error.to_string())).locate(*place)
    }
}

/// A deserializer of `serde_json` with the rules of this module.
struct Decoder<'p, D> {
    inner: D,
    at: At<'p>,
}

macro_rules! guided {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let at = self.at;
            self.inner.$method(Guide { visitor, at }).map_err(|e| at.take(e))
        }
    )*};
}

macro_rules! integers {
    ($range:expr; $($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let at = self.at;
            let Some(frame) = at.0 else {
                return self.inner.$method(Guide { visitor, at }).map_err(|e| at.take(e));
            };
            let number = <&'de RawValue>::deserialize(self.inner).map_err(|e| at.take(e))?.get();
            exact::visit(number, $range, visitor).map_err(|fault| fault.locate(frame.place))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Decoder<'_, D> {
    type Error = Fault;

    guided! {
        deserialize_any deserialize_bool deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option deserialize_unit
        deserialize_seq deserialize_map deserialize_identifier deserialize_ignored_any
    }

    integers! { Width::Usual;
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }
    integers! { Width::Signed128; deserialize_i128 }
    integers! { Width::Unsigned128; deserialize_u128 }

    /// An object and nothing else.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    /// The name of a variant, or an object with that name as its only member.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let at = self.at;
        self.inner.deserialize_any(Choice { visitor, variants, at }).map_err(|e| at.take(e))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_unit(visitor)
    }

    /// The name goes through: that of `RawValue` means something to `serde_json`.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let at = self.at;
        self.inner.deserialize_newtype_struct(name, Guide { visitor, at }).map_err(|e| at.take(e))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// A visitor that puts the rules around whatever is nested in what it is shown.
struct Guide<'p, V> {
    visitor: V,
    at: At<'p>,
}

macro_rules! shown {
    ($($method:ident: $type:ty),* $(,)?) => {$(
        fn $method<E: de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.$method(value).map_err(|fault| self.at.note(fault))
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Guide<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    shown! {
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64,
        visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8],
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit().map_err(|fault| self.at.note(fault))
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none().map_err(|fault| self.at.note(fault))
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let Self { visitor, at } = self;
        visitor.visit_some(Decoder { inner, at }).map_err(|fault| at.note(fault))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let Self { visitor, at } = self;
        visitor.visit_newtype_struct(Decoder { inner, at }).map_err(|fault| at.note(fault))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let Self { visitor, at } = self;
        let expected = at.0.map(|_| fault::wording(&visitor));
        let mut items = Items { inner, at, index: 0 };
        let value = visitor.visit_seq(&mut items).map_err(|fault| at.note(fault))?;
        // The parser would call what is left over a syntax error.
        if let Some(expected) = expected
            && items.inner.next_element::<IgnoredAny>()?.is_some()
        {
            return Err(at.note(Fault::surplus(items.index, &expected)));
        }
        Ok(value)
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let Self { visitor, at } = self;
        visitor.visit_map(Members { inner, at, key: String::new() }).map_err(|fault| at.note(fault))
    }
}

/// A visitor of an enum's value: what `serde_json` would do, with errors that name the choices.
struct Choice<'p, V> {
    visitor: V,
    variants: &'static [&'static str],
    at: At<'p>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Choice<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fault::one_of(self.variants, f)
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<V::Value, E> {
        self.visitor.visit_enum(StrDeserializer::new(name)).map_err(|fault| self.at.note(fault))
    }

    fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<V::Value, E> {
        self.visitor.visit_enum(BorrowedStrDeserializer::new(name)).map_err(|fault| self.at.note(fault))
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let Self { visitor, variants, at } = self;
        let mut members = Members { inner, at, key: String::new() };
        let value = visitor
            .visit_enum(MapAccessDeserializer::new(&mut members))
            .map_err(|fault| at.note(fault.or_choices(variants)))?;
        if members.inner.next_key::<IgnoredAny>()?.is_some() {
            return Err(at.note(Fault::surplus_variant()));
        }
        Ok(value)
    }
}

struct Items<'p, A> {
    inner: A,
    at: At<'p>,
    index: usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<'_, A> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Fault> {
        let at = self.at;
        let Some(Frame { trace, place }) = at.0 else {
            return self.inner.next_element_seed(Seed { seed, at }).map_err(|e| at.take(e));
        };
        let frame = Frame { trace, place: Place::Item(place, self.index) };
        let at = At(Some(&frame));
        self.index += 1;
        self.inner.next_element_seed(Seed { seed, at }).map_err(|e| at.take(e))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

struct Members<'p, A> {
    inner: A,
    at: At<'p>,
    /// The key whose value is next. Only the second pass writes it.
    key: String,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<'_, A> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Fault> {
        let at = self.at;
        if at.0.is_none() {
            return self.inner.next_key_seed(seed).map_err(|e| at.take(e));
        }
        self.key.clear();
        self.inner.next_key_seed(Key { inner: seed, at, text: &mut self.key }).map_err(|e| at.take(e))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let at = self.at;
        let Some(Frame { trace, place }) = at.0 else {
            return self.inner.next_value_seed(Seed { seed, at }).map_err(|e| at.take(e));
        };
        let frame = Frame { trace, place: Place::Member(place, &self.key) };
        let at = At(Some(&frame));
        self.inner.next_value_seed(Seed { seed, at }).map_err(|e| at.take(e))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

struct Seed<'p, S> {
    seed: S,
    at: At<'p>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let Self { seed, at } = self;
        seed.deserialize(Decoder { inner, at }).map_err(|fault| at.note(fault))
    }
}

/// A member's name on its way through a seed, a deserializer or a visitor: writes it down.
struct Key<'k, T> {
    inner: T,
    at: At<'k>,
    text: &'k mut String,
}

impl<'k, T> Key<'k, T> {
    fn and<U>(self, other: U) -> (T, Key<'k, U>) {
        (self.inner, Key { inner: other, at: self.at, text: self.text })
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let at = self.at;
        let (seed, key) = self.and(deserializer);
        seed.deserialize(key).map_err(|fault| at.note(fault))
    }
}

macro_rules! keys {
    ($($method:ident($($arg:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value, Fault> {
            let at = self.at;
            let (inner, key) = self.and(visitor);
            inner.$method($($arg,)* key).map_err(|e| at.take(e))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Key<'_, D> {
    type Error = Fault;

    keys! {
        deserialize_any() deserialize_bool() deserialize_char() deserialize_str() deserialize_string()
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64()
        deserialize_option() deserialize_unit() deserialize_seq() deserialize_map()
        deserialize_identifier() deserialize_ignored_any()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let at = self.at;
        self.inner.deserialize_bytes(Guide { visitor, at }).map_err(|e| at.take(e))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let at = self.at;
        self.deserialize_str(Choice { visitor, variants, at })
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! key_shown {
    ($($method:ident: $type:ty),* $(,)?) => {$(
        fn $method<E: de::Error>(self, value: $type) -> Result<V::Value, E> {
            *self.text = value.to_string();
            self.inner.$method(value).map_err(|fault| self.at.note(fault))
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Key<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    key_shown! {
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64,
        visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let at = self.at;
        let (visitor, key) = self.and(deserializer);
        visitor.visit_some(key).map_err(|fault| at.note(fault))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let at = self.at;
        let (visitor, key) = self.and(deserializer);
        visitor.visit_newtype_struct(key).map_err(|fault| at.note(fault))
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        // Reached for a key that is a `RawValue`: its text comes as a map of one member.
        let at = self.at;
        self.inner.visit_map(Members { inner, at, key: String::new() }).map_err(|fault| at.note(fault))
    }
}
