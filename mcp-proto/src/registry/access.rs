//! Who may see an item.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use crate::model::Str;
use crate::server::{Principal, Scopes};

/// Who may see an item: list it, use it, complete its arguments, subscribe to it.
///
/// To everyone else the item does not exist.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Access {
    /// Everyone, also without a principal.
    #[default]
    Everyone,
    /// Principals with at least one of these roles.
    AnyRole(Box<[Str]>),
    /// Those for whom this is true; `None` is a caller without a principal. It is asked often: for each
    /// item of each list, and for each use. It must give the same answer while nothing has changed.
    When(Arc<Predicate>),
}

type Predicate = dyn Fn(Option<&Principal>) -> bool + Send + Sync;

impl Access {
    /// Principals with at least one of these roles.
    #[must_use]
    pub fn any_role(roles: impl IntoIterator<Item = impl Into<Str>>) -> Self {
        Self::AnyRole(roles.into_iter().map(Into::into).collect())
    }

    /// Those for whom `predicate` is true.
    #[must_use]
    pub fn when(predicate: impl Fn(Option<&Principal>) -> bool + Send + Sync + 'static) -> Self {
        Self::When(Arc::new(predicate))
    }

    /// Whether this caller may see the item.
    #[must_use]
    pub fn allows(&self, principal: Option<&Principal>) -> bool {
        match self {
            Self::Everyone => true,
            Self::AnyRole(roles) => principal.is_some_and(|p| roles.iter().any(|role| p.has_role(role))),
            Self::When(predicate) => predicate(principal),
        }
    }

    pub(crate) const fn is_everyone(&self) -> bool {
        matches!(self, Self::Everyone)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everyone => f.write_str("Everyone"),
            Self::AnyRole(roles) => f.debug_tuple("AnyRole").field(roles).finish(),
            Self::When(_) => f.write_str("When(_)"),
        }
    }
}

/// The terms on which an item is offered. By default everyone sees it, from the start.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Terms {
    /// Who may see it.
    pub access: Access,
    /// It starts switched off; see [`Registry::set_enabled`](super::Registry::set_enabled).
    pub disabled: bool,
    /// Its handler completes arguments; one is enough for the capability `completions`.
    pub completes: bool,
    /// What a token must allow for the item to be used. It is seen without: the registry itself never looks
    /// at this.
    pub scopes: Scopes,
}

impl Terms {
    /// Everyone, from the start, without completion.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets who may see the item.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// The item starts switched off.
    #[must_use]
    pub fn disabled(mut self) -> Self {
        self.disabled = true;
        self
    }

    /// The item's handler completes arguments.
    #[must_use]
    pub fn completes(mut self) -> Self {
        self.completes = true;
        self
    }

    /// Sets what a token must allow for the item to be used.
    #[must_use]
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }
}

impl From<Access> for Terms {
    fn from(access: Access) -> Self {
        Self::new().access(access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_access_asks_its_question() {
        let admin = Principal::new("a").with_roles(["admin", "dev"]);
        let plain = Principal::new("b");
        let seen = |access: &Access| [None, Some(&plain), Some(&admin)].map(|who| access.allows(who));
        assert_eq!(seen(&Access::Everyone), [true, true, true]);
        assert_eq!(seen(&Access::any_role(["ops", "dev"])), [false, false, true]);
        assert_eq!(seen(&Access::any_role(["Admin"])), [false, false, false]);
        assert_eq!(seen(&Access::any_role([""; 0])), [false, false, false]);
        assert_eq!(seen(&Access::when(|p| p.is_none_or(|p| p.id() == "b"))), [true, true, false]);
    }
}
