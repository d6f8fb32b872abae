//! The suite over HTTP is judged, too: a server that behaves passes, and each planted misbehaviour is found and
//! blamed on the requirement it breaks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod planted;

use std::num::NonZeroUsize;
use std::time::Duration;

use mcp_conformance::mutants::{Bench, server};
use mcp_conformance::replay::Verdict;
use mcp_conformance::revision::Revision;
use mcp_conformance::run::{CellResult, Manner, Outcome, Plan, Selection, run};
use mcp_conformance::subject::Subject;

/// What the mock has.
const REACH: [&str; 8] =
    ["headers/*", "params/*", "statuses/*", "media/*", "answers/*", "methods/*", "sessions/*", "versions/*"];

/// What the mock may do and does not: it takes no stream up again, and ends none with its session.
const BEYOND: [&str; 2] = ["answers/resumed", "sessions/ended-stream"];

fn play(fault: &'static str, only: &str, revisions: Vec<Revision>, jobs: usize) -> Outcome {
    let subjects: Vec<Box<dyn Subject>> = vec![server(Bench::Web, fault)];
    let plan = Plan::new(Selection::new(revisions, Some(only.to_owned())), &subjects).unwrap();
    let manner = Manner::new(NonZeroUsize::new(jobs), false, None, None);
    // The mock answers at once or never, so the faults need not be waited for as long as a real peer.
    let manner = if fault.is_empty() { manner } else { manner.with_patience(Duration::from_secs(4)) };
    run(&plan, &manner, |_| {})
}

fn told(result: &CellResult) -> String {
    format!("{} {}: {:#?} {:#?}", result.exchange, result.revision, result.findings, result.transcript)
}

#[test]
fn a_server_that_behaves_passes() {
    let (mut passed, mut wrong) = (0, Vec::new());
    for name in REACH {
        for result in play("", name, Vec::new(), 12).results {
            let beyond = BEYOND.contains(&result.exchange);
            let good = matches!(result.verdict, Verdict::Passed | Verdict::Skipped);
            if !good && !beyond {
                wrong.push(told(&result));
            }
            passed += usize::from(result.verdict == Verdict::Passed);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(passed > 200, "{passed} passed: the mock has lost something");
}

#[test]
fn each_planted_misbehaviour_is_found_and_blamed() {
    planted::are_caught(Bench::Web, 57);
}

/// The status of the refusal was fixed by a later revision.
#[test]
fn what_the_revision_leaves_open_is_no_misbehaviour() {
    let outcome = play("origin-400", "origins/foreign", vec![Revision::V2025_06_18], 1);
    let [result] = outcome.results.as_slice() else { panic!("not one result") };
    assert_eq!(result.verdict, Verdict::Passed, "{}", told(result));
}
