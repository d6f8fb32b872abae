//! What a pattern or template is used with: the revision, the values bound so far, the ids of requests.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::revision::Revision;

/// The surroundings in which a pattern is matched or a template filled.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Scope {
    /// The revision of the cell.
    pub revision: Revision,
    /// Values that `$bind` has kept.
    pub values: BTreeMap<String, Value>,
    /// Ids of requests that were given a name.
    pub ids: BTreeMap<String, Value>,
    /// Members that a peer may add without the pattern naming them, by the JSON pointer of the object.
    pub implied: Vec<(&'static str, &'static str, Implied)>,
}

/// What an implied member may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "used inside this crate only")]
pub enum Implied {
    /// Anything; an invariant looks at it.
    Anything,
    /// Just this text.
    Text(&'static str),
}

impl Scope {
    /// A scope without bound values.
    #[must_use]
    pub const fn new(revision: Revision) -> Self {
        Self { revision, values: BTreeMap::new(), ids: BTreeMap::new(), implied: Vec::new() }
    }

    pub(super) fn implied(&self, at: &str, member: &str) -> Option<Implied> {
        self.implied
            .iter()
            .find(|(object, name, _)| *object == at && *name == member)
            .map(|(_, _, kind)| *kind)
    }
}
