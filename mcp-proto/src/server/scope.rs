//! What an access token allows, in words that the authorization server made up.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::model::Str;
use crate::rpc::Short;

/// A set of scopes: those that a token has, or those that an operation needs. Cheap to clone.
///
/// Scopes are compared byte for byte, and the set has one order whatever order it was made in, so the same
/// operation is always challenged in the same words. [spec: basic/authorization]
///
/// ```
/// use mcp_proto::server::Scopes;
///
/// let granted = Scopes::parse("files:read files:write")?;
/// let needed = Scopes::of(["files:write"])?;
/// assert!(granted.covers(&needed));
/// assert!(!needed.covers(&granted));
/// assert_eq!(granted.to_string(), "files:read files:write");
/// # Ok::<(), mcp_proto::server::InvalidScope>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Scopes(Option<Arc<[Str]>>);

/// Text that is no scope: a scope has at least one character, all of them printable ASCII, none of them a
/// space, `"` or `\`. [RFC 6749, section 3.3]
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // there is nothing more to say
pub struct InvalidScope(pub String);

impl Scopes {
    /// None.
    pub const NONE: Self = Self(None);

    /// From single scopes. Repetitions count once.
    ///
    /// # Errors
    ///
    /// The first that is no scope.
    pub fn of(scopes: impl IntoIterator<Item = impl Into<Str>>) -> Result<Self, InvalidScope> {
        let mut all = Vec::new();
        for scope in scopes {
            let scope = scope.into();
            if !is_scope(&scope) {
                return Err(InvalidScope(scope.into_owned()));
            }
            all.push(scope);
        }
        Ok(Self::sorted(all))
    }

    /// From the form that `scope` members have: scopes with spaces between them. Empty text is no scope at
    /// all, which is fine.
    ///
    /// # Errors
    ///
    /// The first that is no scope.
    pub fn parse(text: &str) -> Result<Self, InvalidScope> {
        Self::of(text.split(' ').filter(|scope| !scope.is_empty()).map(ToOwned::to_owned))
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// All of them, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.as_slice().iter().map(|scope| &**scope)
    }

    /// Whether this one is among them.
    #[must_use]
    pub fn contains(&self, scope: &str) -> bool {
        self.as_slice().binary_search_by(|s| (**s).cmp(scope)).is_ok()
    }

    /// Whether everything that is needed is among them.
    #[must_use]
    pub fn covers(&self, needed: &Self) -> bool {
        needed.iter().all(|scope| self.contains(scope))
    }

    /// The same where a broad scope stands for narrower ones: `implies(granted, needed)` says so of two
    /// that differ. It is asked for pairs, so it must itself know what follows over several steps.
    #[must_use]
    pub fn covers_with(&self, needed: &Self, implies: impl Fn(&str, &str) -> bool) -> bool {
        needed.iter().all(|scope| self.contains(scope) || self.iter().any(|granted| implies(granted, scope)))
    }

    /// Those of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        Self::sorted(self.as_slice().iter().chain(other.as_slice()).cloned().collect())
    }

    /// All but this one.
    #[must_use]
    pub fn without(&self, scope: &str) -> Self {
        if !self.contains(scope) {
            return self.clone();
        }
        Self::sorted(self.as_slice().iter().filter(|s| *s != scope).cloned().collect())
    }

    fn as_slice(&self) -> &[Str] {
        self.0.as_deref().unwrap_or_default()
    }

    fn sorted(mut all: Vec<Str>) -> Self {
        all.sort_unstable();
        all.dedup();
        Self((!all.is_empty()).then(|| all.into()))
    }
}

/// As `scope` members have it: with spaces in between. Fit for a quoted string of a header as it is.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, scope) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl fmt::Display for InvalidScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = alloc::format!("{}", Short(&self.0));
        write!(f, "a scope is printable ASCII without space, `\"` and `\\`, not {found:?}")
    }
}

impl core::error::Error for InvalidScope {}

fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn scopes(text: &str) -> Scopes {
        Scopes::parse(text).unwrap()
    }

    #[test]
    fn one_order_for_one_set_s_auth_03() {
        assert_eq!(scopes("b  a b "), Scopes::of(["a", "b"]).unwrap());
        assert_eq!(scopes("z a m").to_string(), "a m z");
        assert!(scopes("").is_empty());
        assert_eq!(scopes(" "), Scopes::NONE);
        assert_eq!(scopes("a").union(&scopes("c b")).to_string(), "a b c");
        assert_eq!(scopes("a b").without("a").to_string(), "b");
        assert_eq!(scopes("a").without("a"), Scopes::NONE);
    }

    #[test]
    fn text_that_could_break_out_of_a_header_is_no_scope() {
        for bad in ["", "a b", "a\"b", "a\\b", "a\r\n", "ä", "\u{7f}"] {
            assert_eq!(Scopes::of([bad]), Err(InvalidScope(bad.into())));
        }
        assert!(Scopes::of(["!#~[]^,;='"]).is_ok());
        assert!(Scopes::parse("a\tb").is_err());
    }

    #[test]
    fn a_broad_scope_covers_narrow_ones_where_that_is_said_s_auth_17() {
        let granted = scopes("files:* mail");
        let implies = |granted: &str, needed: &str| {
            granted.strip_suffix('*').is_some_and(|area| needed.starts_with(area))
        };
        assert!(granted.covers_with(&scopes("files:read files:write mail"), implies));
        assert!(!granted.covers_with(&scopes("files:read mail:send"), implies));
        assert!(!granted.covers(&scopes("files:read")));
        assert!(Scopes::NONE.covers_with(&Scopes::NONE, |_, _| false));
        assert!(!Scopes::NONE.covers_with(&scopes("a"), |_, _| true));
        // Case and prefixes count.
        assert!(!scopes("Files:read").covers(&scopes("files:read")));
        assert!(!scopes("files:readwrite").covers(&scopes("files:read")));
    }
}
