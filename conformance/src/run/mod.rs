//! Running exchanges against subjects: which cells there are, who plays them, what came out.

mod baseline;
mod plan;
mod pool;
mod work;

pub use baseline::Baseline;
pub use plan::{Plan, Selection};
pub use work::{Manner, Outcome, Totals, run};

use std::time::Duration;

use crate::exchange::{Side, Transport};
use crate::replay::{Entry, Finding, Verdict};
use crate::revision::Revision;

/// What came out of one exchange in one cell.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CellResult {
    /// The exchange.
    pub exchange: &'static str,
    /// The side under test.
    pub side: Side,
    /// The revision.
    pub revision: Revision,
    /// The transport.
    pub transport: Transport,
    /// The runtime of the subject.
    pub runtime: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the baseline lists this failure.
    pub known: bool,
    /// What was found; the gravest first.
    pub findings: Vec<Finding>,
    /// What the subject lacks, if it was skipped.
    pub reason: Option<String>,
    /// What the exchange checks.
    pub requires: Vec<String>,
    /// What passed on the wire; kept only where something was found.
    pub transcript: Vec<Entry>,
    /// How long it took.
    pub elapsed: Duration,
}
