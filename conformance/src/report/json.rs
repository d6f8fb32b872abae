//! `report.json`, for programs.

use serde_json::{Value, json};

use crate::replay::Verdict;
use crate::run::{CellResult, Outcome, Plan};

pub(super) fn report(plan: &Plan<'_>, outcome: &Outcome) -> String {
    let totals = outcome.totals();
    let subjects = plan.subjects();
    let (command, _, identity) = subjects.first().cloned().unwrap_or_default();
    let runtimes: Vec<_> = subjects.iter().map(|(_, runtime, _)| runtime.as_str()).collect();
    let mut transports: Vec<_> = outcome.results.iter().map(|result| result.transport.as_str()).collect();
    transports.sort_unstable();
    transports.dedup();
    let report = json!({
        "format": 1,
        "subject": {
            "name": identity.unwrap_or_else(|| command.clone()),
            "command": command,
            "runtimes": runtimes,
            "transports": transports,
            "revisions": plan.revisions().iter().map(|revision| revision.as_str()).collect::<Vec<_>>(),
        },
        "totals": {
            "passed": totals.passed,
            "failed": totals.failed + totals.known,
            "skipped": totals.skipped,
            "warnings": totals.warnings,
        },
        "results": outcome.results.iter().map(result).collect::<Vec<_>>(),
    });
    format!("{report:#}\n")
}

/// `step` is the line of the exchange's file, from 1; null where nothing was found or no step was current.
fn result(result: &CellResult) -> Value {
    let finding = result.findings.first();
    let requires =
        finding.map(|finding| &finding.requires).filter(|ids| !ids.is_empty()).unwrap_or(&result.requires);
    let skipped = result.verdict == Verdict::Skipped;
    let (expected, got) = if skipped {
        (result.reason.clone(), Some("not declared".to_owned()))
    } else {
        (finding.map(|finding| finding.expected.clone()), finding.map(|finding| finding.got.clone()))
    };
    json!({
        "exchange": result.exchange,
        "revision": result.revision.as_str(),
        "transport": result.transport.as_str(),
        "runtime": result.runtime,
        "outcome": result.verdict.as_str(),
        "requires": requires,
        "step": finding.and_then(|finding| finding.line),
        "expected": expected,
        "got": got,
    })
}
