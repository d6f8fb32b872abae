//! The members of one JSON object, found in one pass and borrowed from the frame.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use serde_json::value::RawValue;

use super::Error;
use super::id::str_from_json;
use super::scan::{Fault, Scanner};

/// How many members fit without an allocation. A modern `tools/call` has three in `params` and up to
/// six in `_meta`.
const INLINE: usize = 6;
/// Most members of an object that is read on its own. Names are compared with each other, so the number
/// is bounded.
pub(super) const MOST: usize = 1024;

/// The members of one object in the order received: name and raw value.
///
/// Unknown members are kept, so a gateway can pass them on untouched. Names are unique: an object that
/// repeats one is refused before it gets here.
#[derive(Clone, Default)]
pub struct Members<'b> {
    inline: [Option<Member<'b>>; INLINE],
    len: usize,
    rest: Vec<Member<'b>>,
}

type Member<'b> = (Cow<'b, str>, &'b RawValue);

impl<'b> Members<'b> {
    /// Reads an object. `None` if the text is no object, repeats a name, or has more than 1,024 members.
    #[must_use]
    pub fn from_json(json: &'b str) -> Option<Self> {
        let mut found = Object::default();
        let mut scanner = Scanner::new(json);
        found.read(&mut scanner, None, MOST).ok()?;
        scanner.end().ok()?;
        matches!(found.shape, Shape::Object { repeated: false, too_many: false }).then_some(found.members)
    }

    /// The raw value of a member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'b RawValue> {
        // Two plain loops: one over a chain asks at each step which half it is in.
        let named = |member: &&Member<'b>| &*member.0 == name;
        let inline = self.inline[..self.len].iter().flatten().find(named);
        inline.or_else(|| self.rest.iter().find(named)).map(|(_, value)| *value)
    }

    /// All members in the order received.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'b RawValue)> {
        self.inline.iter().flatten().chain(&self.rest).map(|(n, v)| (&**n, *v))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len + self.rest.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An optional string. `null` counts as absent, for peers send it.
    ///
    /// # Errors
    ///
    /// `-32602` if the value is no string.
    pub fn text(&self, name: &str) -> Result<Option<Cow<'b, str>>, Error> {
        match self.get(name) {
            None => Ok(None),
            Some(raw) if raw.get() == "null" => Ok(None),
            Some(raw) => str_from_json(raw.get()).map(Some).ok_or_else(|| unfit(name, "a string", Some(raw))),
        }
    }

    /// A required string.
    ///
    /// # Errors
    ///
    /// `-32602` if it is missing or no string.
    pub fn required_text(&self, name: &str) -> Result<Cow<'b, str>, Error> {
        self.text(name)?.ok_or_else(|| unfit(name, "a string", self.get(name)))
    }

    /// An optional object. `null` counts as absent, for peers send it.
    ///
    /// # Errors
    ///
    /// `-32602` if the value is no object.
    pub fn object(&self, name: &str) -> Result<Option<&'b RawValue>, Error> {
        match self.get(name) {
            None => Ok(None),
            Some(raw) if raw.get() == "null" => Ok(None),
            Some(raw) if raw.get().starts_with('{') => Ok(Some(raw)),
            Some(raw) => Err(unfit(name, "an object", Some(raw))),
        }
    }

    /// A required object.
    ///
    /// # Errors
    ///
    /// `-32602` if it is missing or no object.
    pub fn required_object(&self, name: &str) -> Result<&'b RawValue, Error> {
        self.object(name)?.ok_or_else(|| unfit(name, "an object", self.get(name)))
    }

    fn push(&mut self, name: Cow<'b, str>, value: &'b RawValue) {
        if let Some(slot) = self.inline.get_mut(self.len) {
            *slot = Some((name, value));
            self.len += 1;
        } else {
            self.rest.push((name, value));
        }
    }
}

/// `-32602` for a member of `params`: what was expected, what came, where.
pub(crate) fn unfit(name: &str, expected: &str, found: Option<&RawValue>) -> Error {
    let found = match found.map(|raw| raw.get().as_bytes()) {
        None => "nothing",
        Some([b'"', ..]) => "a string",
        Some([b'{', ..]) => "an object",
        Some([b'[', ..]) => "an array",
        Some([b't' | b'f', ..]) => "a boolean",
        Some([b'n', ..]) => "null",
        Some(_) => "a number",
    };
    Error::invalid_params(alloc::format!(
        "Invalid params at /params/{name}: expected {expected}, found {found}"
    ))
}

impl<'b> IntoIterator for Members<'b> {
    type Item = (Cow<'b, str>, &'b RawValue);
    type IntoIter = core::iter::Chain<
        core::iter::Flatten<core::array::IntoIter<Option<Member<'b>>, INLINE>>,
        alloc::vec::IntoIter<Member<'b>>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.inline.into_iter().flatten().chain(self.rest)
    }
}

impl fmt::Debug for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(n, v)| (n, v.get()))).finish()
    }
}

/// What stood where an object was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Shape {
    #[default]
    Absent,
    Null,
    Object {
        /// A name came twice.
        repeated: bool,
        /// More members than the limit; those above it were dropped.
        too_many: bool,
    },
    Array,
    Scalar,
}

/// An object, or what came instead of one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object<'b> {
    pub(crate) shape: Shape,
    pub(crate) members: Members<'b>,
}

impl<'b> Object<'b> {
    /// Reads the next value; one of another type is noted, not an error, for the id of the message may come
    /// later. With `meta`, the member `_meta` is read into that one instead.
    pub(super) fn read(
        &mut self,
        scanner: &mut Scanner<'b>,
        mut meta: Option<&mut Self>,
        max: usize,
    ) -> Result<(), Fault> {
        let other = match scanner.peek() {
            Some(b'{') => {
                let (mut repeated, mut too_many) = (false, false);
                scanner.object(|scanner, name| {
                    if name == "_meta"
                        && let Some(meta) = meta.as_deref_mut()
                    {
                        if meta.shape != Shape::Absent {
                            repeated = true;
                            *meta = Self::default();
                        }
                        return meta.read(scanner, None, max);
                    }
                    let value = scanner.value()?;
                    if self.members.len() >= max {
                        too_many = true;
                    } else {
                        repeated |= self.members.get(&name).is_some();
                        self.members.push(name, value);
                    }
                    Ok(())
                })?;
                self.shape = Shape::Object { repeated, too_many };
                return Ok(());
            }
            Some(b'[') => Shape::Array,
            Some(b'n') => Shape::Null,
            _ => Shape::Scalar,
        };
        scanner.value()?;
        self.shape = other;
        Ok(())
    }
}
