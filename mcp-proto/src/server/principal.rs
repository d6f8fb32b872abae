//! Who is asking.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The authenticated caller, as far as this library needs to know: something to compare, and roles.
///
/// On stdio there is usually none. Input state, tasks and visibility are bound to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal(Arc<Inner>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    id: String,
    roles: Vec<String>,
}

impl Principal {
    /// A caller by an id that no other caller has.
    pub fn new(id: impl Into<String>) -> Self {
        Self(Arc::new(Inner { id: id.into(), roles: Vec::new() }))
    }

    /// The same caller with roles.
    #[must_use]
    pub fn with_roles(self, roles: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(Arc::new(Inner { id: self.0.id.clone(), roles: roles.into_iter().map(Into::into).collect() }))
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
}
