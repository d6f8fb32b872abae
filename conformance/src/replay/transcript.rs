//! What passed on the wire in one replay, for the reader of a report.

use std::time::Duration;

/// One line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// When, counted from the start of the replay.
    pub at: Duration,
    /// Who said it.
    pub direction: Direction,
    /// The text: a message, a piece of one, or what happened. Long ones are cut.
    pub text: String,
    /// The line of the exchange that was current.
    pub line: Option<usize>,
}

/// Who put a line into a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Direction {
    /// The suite wrote it to the subject.
    Sent,
    /// The subject wrote it.
    Received,
    /// The subject's standard error.
    Diagnostic,
    /// Something that is not a message, such as an exit.
    Event,
}
