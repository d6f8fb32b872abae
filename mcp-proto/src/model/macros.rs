//! Two small macros that keep the type files readable.

/// Chained setters for optional members: `title: Str` becomes `fn title(self, impl Into<Str>) -> Self`.
macro_rules! setters {
    ($($field:ident: $ty:ty),+ $(,)?) => {$(
        #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$ty>) -> Self {
            self.$field = Some($field.into());
            self
        }
    )+};
}

pub(crate) use setters;

/// The same for numbers and flags, which are taken as they are, so that literals need no type.
macro_rules! plain_setters {
    ($($field:ident: $ty:ty),+ $(,)?) => {$(
        #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $field(mut self, $field: $ty) -> Self {
            self.$field = Some($field);
            self
        }
    )+};
}

/// A type whose only value is one JSON string, for members such as `type`.
macro_rules! literal {
    ($($name:ident = $text:literal),+ $(,)?) => {$(
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub(crate) struct $name;

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($text)
            }
        }
    )+};
}

/// A closed set of JSON strings as an enum: `as_str`, `parse`, `Display`, `Serialize`, `Deserialize`.
macro_rules! names {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        $vis enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every value, in the order of the declaration.
            #[allow(dead_code)] // not every private set is listed
            $vis const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the wire.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The value of this name; names are compared exactly.
            #[must_use]
            $vis fn parse(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Name;
                impl serde::de::Visitor<'_> for Name {
                    type Value = $name;
                    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        f.write_str(concat!("one of" $(, " `", $text, "`")+))
                    }
                    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<$name, E> {
                        $name::parse(name).ok_or_else(|| E::unknown_variant(name, &[$($text),+]))
                    }
                }
                deserializer.deserialize_str(Name)
            }
        }
    };
}

/// The setter of the two caching hints, which belong together.
macro_rules! cache_setter {
    () => {
        /// Says how long the answer stays fresh, in milliseconds, and who may share it. Since
        /// 2026-07-28; older revisions are not told.
        #[must_use]
        pub const fn cache(mut self, ttl_ms: u64, scope: super::CacheScope) -> Self {
            self.ttl_ms = ttl_ms;
            self.cache_scope = scope;
            self
        }
    };
}

/// The answer of a method that lists, page by page.
macro_rules! list_result {
    ($(#[$doc:meta])* $name:ident { $(#[$items_doc:meta])* $items:ident: $item:ident } $(fitted by $fitted:ident)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            $(#[$items_doc])*
            pub $items: alloc::vec::Vec<$item>,
            /// Where the next page starts; absent on the last. An empty string is a cursor too.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub next_cursor: Option<super::Str>,
            /// How long the answer stays fresh, in milliseconds; 0 = not at all. Since 2026-07-28.
            #[serde(default, deserialize_with = "super::number::millis")]
            pub ttl_ms: u64,
            /// Who may share a cached answer. Since 2026-07-28.
            #[serde(default, deserialize_with = "super::result::scope")]
            pub cache_scope: super::CacheScope,
            /// Metadata, written with the envelope.
            #[serde(rename = "_meta", default, skip_serializing)]
            pub meta: Option<super::Meta>,
        }

        impl $name {
            $(#[$items_doc])*
            #[must_use]
            pub fn new($items: impl Into<alloc::vec::Vec<$item>>) -> Self {
                Self { $items: $items.into(), ..Self::default() }
            }

            setters! { next_cursor: super::Str, meta: super::Meta }
            cache_setter! {}
        }

        impl super::ResultBody for $name {
            fn meta(&self) -> Option<&super::Meta> {
                self.meta.as_ref()
            }
            $(
                fn fitted(&self, version: super::ProtocolVersion) -> alloc::borrow::Cow<'_, Self> {
                    $fitted(self, version)
                }
            )?
        }
    };
}
