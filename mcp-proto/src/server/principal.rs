//! Who is asking.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Scopes;

/// The authenticated caller, as far as this library and the handlers need to know: something to compare,
/// roles, and the scopes of the token that came with the request. The token itself is not in here, so no
/// handler can pass it on. [spec: basic/authorization/security-considerations]
///
/// On stdio there is usually none. Input state, tasks and visibility are bound to it.
///
/// Two are equal if they have the same id: a caller stays the same when a new token allows more.
#[derive(Debug, Clone)]
pub struct Principal(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    id: String,
    roles: Vec<String>,
    scopes: Scopes,
}

impl Principal {
    /// A caller by an id that no other caller has.
    pub fn new(id: impl Into<String>) -> Self {
        Self(Arc::new(Inner { id: id.into(), roles: Vec::new(), scopes: Scopes::NONE }))
    }

    /// The same caller with roles.
    #[must_use]
    pub fn with_roles(mut self, roles: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Arc::make_mut(&mut self.0).roles = roles.into_iter().map(Into::into).collect();
        self
    }

    /// The same caller with the scopes of this request.
    #[must_use]
    pub fn with_scopes(mut self, scopes: Scopes) -> Self {
        Arc::make_mut(&mut self.0).scopes = scopes;
        self
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Whether the caller has a role.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        self.0.roles.iter().any(|r| r == role)
    }

    /// The scopes of the token that came with this request.
    #[must_use]
    pub fn scopes(&self) -> &Scopes {
        &self.0.scopes
    }

    /// Whether the token has this scope, by its name. A broader scope that stands for it does not count
    /// here.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.scopes.contains(scope)
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Principal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_up_leaves_the_caller_the_same() {
        let before = Principal::new("u").with_roles(["dev"]);
        let after = before.clone().with_scopes(Scopes::of(["a"]).unwrap());
        assert_eq!(before, after);
        assert!(after.has_role("dev") && after.has_scope("a") && !before.has_scope("a"));
        assert_ne!(before, Principal::new("v").with_roles(["dev"]));
    }
}
