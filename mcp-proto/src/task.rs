//! Tasks: calls that outlive their request, as a pure table. Both faces of them are made from it: the
//! tasks of 2025-11-25 (`tasks/result`, `tasks/list`) and the extension of 2026-07-28 (everything inlined
//! in `tasks/get`, input through `tasks/update`).
//!
//! ```text
//!            ask                    completed   a result, also one with isError
//!  working ------> input_required
//!     |    <------       |          failed      a JSON-RPC error
//!     |  last answer     |
//!     +--------+---------+          cancelled   by the requestor or by the worker
//!              v
//!           terminal  ------------> gone, when the time to live is over
//! ```
//!
//! A terminal status is final: what comes later is refused with [`Over`] and changes nothing.
//!
//! Two sides use a task. The *worker*, who carries the call out, has the [`TaskKey`] that
//! [`Table::create`] returned. The *requestor* has an id, as text, and is whoever authorization says it
//! is. To a requestor a task that never was, one of somebody else and one whose time is over are the
//! same: [`NoSuchTask`].
//!
//! Every call is complete: what it causes is in its return value. A driver that keeps `tasks/result`
//! requests waiting, or subscriptions, acts on each [`Changed`] and [`Expired`].

mod id;
mod table;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

use serde_json::value::RawValue;

use crate::time::UnixTime;

pub use crate::model::TaskStatus as Status;
pub use id::{TaskId, TaskKey};
pub use table::Table;

/// How the call of a task ended: what its response would have been.
#[derive(Debug, Clone)]
#[allow(clippy::exhaustive_enums)] // a response is one or the other
pub enum Outcome {
    /// A result.
    Result {
        /// The result object.
        json: Box<RawValue>,
        /// Whether it is a tool result with `isError: true`.
        is_error: bool,
    },
    /// An error.
    Error {
        /// The error object.
        json: Box<RawValue>,
    },
}

/// A task at one moment: all that either face shows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its id.
    pub id: TaskId,
    /// Its status in the extension's meaning. See [`core_status`](Self::core_status).
    pub status: Status,
    /// Words about the status, for people.
    pub status_message: Option<String>,
    /// When it was made.
    pub created_at: UnixTime,
    /// When anything in this snapshot last changed. Never goes back.
    pub last_updated_at: UnixTime,
    /// How long after `created_at` it is gone; `None` = never.
    pub ttl: Option<Duration>,
    /// How long a requestor should wait between two looks.
    pub poll_interval: Option<Duration>,
    /// The questions that are open, by key: `{"method": …, "params": …}` each. Not empty if and only if
    /// the status is `input_required`.
    pub input_requests: BTreeMap<String, Box<RawValue>>,
    /// How it ended. There if and only if the status is `completed` or `failed`.
    pub outcome: Option<Outcome>,
}

/// What the maker of a task decides.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// The wanted time to live. It is granted between one second, for a task must be there to be found,
    /// and [`Limits::max_task_ttl`](crate::limits::Limits::max_task_ttl); `None` = as long as may be.
    pub ttl: Option<Duration>,
    /// How long a requestor should wait between two looks.
    pub poll_interval: Option<Duration>,
    /// The first status message.
    pub status_message: Option<String>,
}

/// A task is no longer as it was. Who waits for its end or watches it has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "somebody may be waiting for this"]
pub struct Changed {
    /// The task.
    pub key: TaskKey,
    /// Its status now.
    pub status: Status,
}

/// A task's time is over; it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "somebody may be waiting for this"]
pub struct Expired {
    /// The task.
    pub key: TaskKey,
    /// Its status at last. If it is not terminal, the work has to be stopped, and who waits for the
    /// result has to be told that none will come.
    pub status: Status,
}

/// What an answer to questions came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "the worker waits for the answers"]
pub struct Answered<T> {
    /// The task.
    pub key: TaskKey,
    /// The answers to open questions, for the worker. All others are ignored: never asked, answered
    /// before, or withdrawn.
    pub accepted: alloc::vec::Vec<(String, T)>,
    /// The change, if there was an open question among those answered.
    pub changed: Option<Changed>,
}

/// What a requestor's cancellation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // the faces answer these two differently
#[must_use = "the work has to be stopped"]
pub enum Cancelled {
    /// The task is cancelled from now on; the work should be stopped.
    Now(Changed),
    /// It had ended before and stays as it was. 2025-11-25 answers with an error, the extension with its
    /// usual acknowledgement.
    TooLate(Status),
}

/// One page of a requestor's tasks, oldest first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Page<'t> {
    /// The tasks.
    pub tasks: alloc::vec::Vec<&'t Snapshot>,
    /// Where the next page starts, if there is one.
    pub next_cursor: Option<String>,
}

/// No such task for this requestor. `-32602` in both faces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // there must be no more to say
pub struct NoSuchTask;

/// No cursor of this table. `-32602`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // there is no more to say
pub struct InvalidCursor;

/// Why the worker's step had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // a task is there or not
pub enum Over {
    /// The task ended, with this status. A worker that finishes a cancelled task is the usual case.
    Ended(Status),
    /// The task expired.
    Gone,
}

/// Why a task could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreateError {
    /// The table holds as many tasks as it may.
    Full,
    /// This owner has as many tasks as one may have.
    OwnerFull,
    /// The source of randomness gave only ids that are taken: it is broken.
    NoFreshId,
}

/// Why questions could not be asked. None of them was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// The task is over.
    Over(Over),
    /// This key was used in this task before. A key is never used twice, not even after its answer.
    KeyUsed(String),
    /// The task has asked as many questions as one may ask.
    TooMany,
    /// There was no question.
    Nothing,
}

impl Outcome {
    /// The status that a task has with it.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Result { .. } => Status::Completed,
            Self::Error { .. } => Status::Failed,
        }
    }
}

impl Snapshot {
    /// The status in the meaning of 2025-11-25, where a tool result with `isError: true` is a failure.
    #[must_use]
    pub const fn core_status(&self) -> Status {
        match self.outcome {
            Some(Outcome::Result { is_error: true, .. }) => Status::Failed,
            _ => self.status,
        }
    }

    /// The moment from which it is gone.
    #[must_use]
    pub fn deadline(&self) -> Option<UnixTime> {
        self.ttl.map(|ttl| self.created_at.saturating_add(ttl))
    }
}

impl fmt::Display for NoSuchTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task not found or expired")
    }
}

impl fmt::Display for InvalidCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invalid cursor: use a nextCursor of tasks/list as it is, or leave it out")
    }
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(status) => write!(f, "the task is already {}", status.as_str()),
            Self::Gone => f.write_str("the task has expired"),
        }
    }
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "too many tasks",
            Self::OwnerFull => "too many tasks of this requestor",
            Self::NoFreshId => "no fresh task id could be made",
        })
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over(over) => over.fmt(f),
            Self::KeyUsed(key) => write!(f, "the input request key {key:?} was used before in this task"),
            Self::TooMany => f.write_str("too many input requests in one task"),
            Self::Nothing => f.write_str("no input request was given"),
        }
    }
}

impl core::error::Error for NoSuchTask {}
impl core::error::Error for InvalidCursor {}
impl core::error::Error for Over {}
impl core::error::Error for CreateError {}
impl core::error::Error for AskError {}

impl From<Over> for AskError {
    fn from(over: Over) -> Self {
        Self::Over(over)
    }
}
