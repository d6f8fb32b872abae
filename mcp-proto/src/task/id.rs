//! Names of tasks.

use core::fmt;

use crate::random::{self, Random};

/// The id of a task: 128 random bits, on the wire 32 lower-case hexadecimal digits.
///
/// Who knows it and is taken for the owner can use the task, so `Debug` shows only the beginning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub(super) [u8; 16]);

/// The right to carry a task out, as [`Table::create`](super::Table::create) gave it. Cannot be made
/// from an id that a requestor sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey(pub(super) TaskId);

impl TaskId {
    pub(super) fn random(random: &mut dyn Random) -> Self {
        Self(random::bytes(random))
    }

    /// Reads an id from the wire. There is one way to write each.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
        let mut id = [0; 16];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = [pair[0], pair[1]].map(|digit| match digit {
                b'0'..=b'9' => Some(digit - b'0'),
                b'a'..=b'f' => Some(digit - b'a' + 10),
                _ => None,
            });
            *byte = high? << 4 | low?;
        }
        Some(Self(id))
    }
}

impl TaskKey {
    /// The task's id.
    #[must_use]
    pub const fn id(self) -> TaskId {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, ..] = self.0;
        write!(f, "TaskId({a:02x}{b:02x}{c:02x}…)")
    }
}
