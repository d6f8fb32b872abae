//! An open object: members by name, in the order in which they were written.

use alloc::vec::Vec;
use core::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
};

use super::Str;

/// The members of a JSON object whose names are not fixed, in the order in which they were written.
///
/// Names are unique: insertion replaces, and decoding refuses an object that names a member twice,
/// since peers differ in which of the two they take. Look-ups are linear, for objects are small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members<V>(Vec<(Str, V)>);

impl<V> Members<V> {
    /// An object without members.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a member at the end, or replaces the value of the one of this name, which is returned.
    pub fn insert(&mut self, name: impl Into<Str>, value: V) -> Option<V> {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => Some(core::mem::replace(old, value)),
            None => {
                self.0.push((name, value));
                None
            }
        }
    }

    /// Takes a member out; the others keep their order.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// Keeps only the members for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut V) -> bool) {
        self.0.retain_mut(|(name, value)| keep(name, value));
    }

    /// The value of a member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&V> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value of a member, to change it.
    #[must_use]
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        self.0.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Whether there is a member of this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Str, &V)> + '_ {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A name that occurs twice, found in O(n log n): the peer chose the number of members.
    fn duplicate(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

impl<V> Default for Members<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V, N: Into<Str>> FromIterator<(N, V)> for Members<V> {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(iter: I) -> Self {
        let mut members = Self::new();
        for (name, value) in iter {
            members.insert(name, value);
        }
        members
    }
}

impl<V> IntoIterator for Members<V> {
    type Item = (Str, V);
    type IntoIter = alloc::vec::IntoIter<(Str, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<V: Serialize> Serialize for Members<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Members<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for Object<V> {
            type Value = Members<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::new();
                while let Some(entry) = map.next_entry::<Str, V>()? {
                    members.0.push(entry);
                }
                match members.duplicate() {
                    Some(name) => Err(A::Error::custom(format_args!("duplicate member `{name}`"))),
                    None => Ok(members),
                }
            }
        }

        deserializer.deserialize_map(Object(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_insertion_replaces() {
        let text = r#"{"z":1,"a":2,"m":3}"#;
        let mut members: Members<u8> = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&members).unwrap(), text);
        assert_eq!(members.insert("a", 9), Some(2));
        assert_eq!(members.insert("b", 4), None);
        assert_eq!(serde_json::to_string(&members).unwrap(), r#"{"z":1,"a":9,"m":3,"b":4}"#);
        assert_eq!((members.remove("z"), members.get("z"), members.len()), (Some(1), None, 3));
    }

    #[test]
    fn one_name_twice_is_refused_also_when_escaped() {
        // E05
        for text in [r#"{"a":1,"b":2,"a":3}"#, "{\"a\":1,\"\\u0061\":2}"] {
            let error = serde_json::from_str::<Members<u8>>(text).unwrap_err();
            assert!(alloc::format!("{error}").contains("duplicate member `a`"), "{error}");
        }
        assert!(serde_json::from_str::<Members<u8>>(r#"{"a":1,"A":2}"#).is_ok());
        assert!(serde_json::from_str::<Members<u8>>("[]").is_err());
    }
}
