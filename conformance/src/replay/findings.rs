//! What a replay found, and what follows from it.

use crate::exchange::{Expect, Head, Kind, Step, Transport};
use crate::invariants::Breach;
use crate::pattern::Mismatch;
use crate::requirement::{self, Level};
use crate::revision::Revision;

/// One difference between what happened and what the exchange or an invariant asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What it counts as.
    pub level: Level,
    /// The obligations it breaks.
    pub requires: Vec<String>,
    /// The line of the exchange; `None` before the first step.
    pub line: Option<usize>,
    /// The name of the invariant, if it is one.
    pub rule: Option<&'static str>,
    /// What was expected, with the place in the message.
    pub expected: String,
    /// What came.
    pub got: String,
}

/// The verdict on one exchange in one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums, reason = "these four are the outcomes of the report format")]
pub enum Verdict {
    /// Everything fits.
    Passed,
    /// Only breaches of a SHOULD.
    Warning,
    /// A breach of a MUST.
    Failed,
    /// The subject lacks what the exchange needs.
    Skipped,
}

impl Verdict {
    /// The word of the report format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// What follows from the findings.
    #[must_use]
    pub fn of(findings: &[Finding]) -> Self {
        match findings.iter().map(|finding| finding.level).max() {
            None => Self::Passed,
            Some(Level::Should) => Self::Warning,
            Some(Level::Must) => Self::Failed,
        }
    }
}

/// How a step was not met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// Something came, and it differs.
    Differs,
    /// An error came, and only its number differs.
    Code,
    /// No response came to a request.
    Unanswered,
    /// Another message did not come, the subject ended, or something came that nobody waited for.
    Broken,
}

impl Failure {
    /// What kind of failure this difference is.
    pub(super) fn of(mismatch: &Mismatch) -> Self {
        if mismatch.at.ends_with("/error/code") { Self::Code } else { Self::Differs }
    }

    /// What kind of failure it is that this message did not come.
    pub(super) const fn missing(expect: &Expect) -> Self {
        match expect.kind {
            Kind::Response | Kind::Identified => Self::Unanswered,
            Kind::Call(_) => Self::Broken,
        }
    }
}

/// The level of a step's failure.
///
/// It counts as what is cited, and as no more than the step or the head writes: what breaks no MUST is no failure, be it a
/// difference or noise. A request is answered, though, whatever is in it: that is what JSON-RPC calls a request, and an
/// exchange whose request is none says so with its level. The number of an error counts as the cited rows that name one: most of the
/// specification's sentences about refusals name none, or recommend one.
pub(super) fn level(
    head: &Head,
    step: Option<&Step>,
    cell: (Revision, Transport),
    failure: Failure,
) -> Level {
    let written = step.and_then(|step| step.level).or(head.level);
    match failure {
        // What was recorded is what is expected.
        Failure::Differs | Failure::Code if head.recorded => Level::Must,
        Failure::Unanswered => written.unwrap_or(Level::Must),
        // Without citations there is nothing that could weigh it.
        Failure::Broken if requires(head, step).is_empty() => written.unwrap_or(Level::Must),
        Failure::Differs | Failure::Code | Failure::Broken => {
            let about = |row: &requirement::Requirement| {
                row.concerns(cell.1) && (failure != Failure::Code || row.names_an_error_code())
            };
            let ids = requires(head, step).iter().map(String::as_str);
            let concerning = ids.filter(|id| requirement::by_id(id).is_some_and(about));
            let cited = requirement::strongest(concerning, cell.0);
            cited.unwrap_or(Level::Should).min(written.unwrap_or(Level::Must))
        }
    }
}

fn requires<'e>(head: &'e Head, step: Option<&'e Step>) -> &'e [String] {
    step.map(|step| step.requires.as_slice()).filter(|ids| !ids.is_empty()).unwrap_or(&head.requires)
}

/// The cited obligations that bind the revision and concern the transport; all of them if none does.
pub(super) fn cited(head: &Head, step: Option<&Step>, cell: (Revision, Transport)) -> Vec<String> {
    let ids = requires(head, step);
    let binds =
        |id: &&String| requirement::by_id(id).is_some_and(|row| row.applies(cell.0) && row.concerns(cell.1));
    let binding: Vec<_> = ids.iter().filter(binds).cloned().collect();
    if binding.is_empty() { ids.to_vec() } else { binding }
}

impl Finding {
    pub(super) fn of_breach(breach: Breach, line: Option<usize>) -> Self {
        let at = if breach.at.is_empty() { String::new() } else { format!("{}: ", breach.at) };
        Self {
            level: breach.level,
            requires: breach.requires.iter().map(|id| (*id).to_owned()).collect(),
            line,
            rule: Some(breach.rule),
            expected: format!("{at}{}", breach.expected),
            got: breach.got,
        }
    }
}
