//! The suite is judged, too: a server that behaves passes, and each planted misbehaviour is found and blamed on
//! the requirement it breaks.
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
const REACH: [&str; 20] = [
    "lifecycle/handshake",
    "lifecycle/quiet-before-initialized",
    "lifecycle/unknown-version-offered",
    "lifecycle/discover",
    "lifecycle/meta-without-capabilities",
    "lifecycle/unknown-version-requested",
    "envelope/missing-jsonrpc",
    "envelope/byte-order-mark",
    "envelope/reserved-meta-keys",
    "ping/answers",
    "tools/list",
    "tools/unknown-tool",
    "tools/simple-text",
    "tools/structured-sum",
    "resources/not-found",
    "resources/traversal",
    "pagination/invalid-cursor",
    "progress/steps",
    "cancellation/slow-call",
    "shutdown/end-of-input",
];

/// The mock answers at once or never, so the faults need not be waited for as long as a real peer.
const PATIENCE: Duration = Duration::from_secs(4);

fn play(fault: &'static str, only: &str, revisions: Vec<Revision>, jobs: usize) -> Outcome {
    play_on(server(Bench::Pipes, fault), fault, only, revisions, jobs)
}

fn play_on(
    subject: Box<dyn Subject>,
    fault: &str,
    only: &str,
    revisions: Vec<Revision>,
    jobs: usize,
) -> Outcome {
    let subjects = vec![subject];
    let plan = Plan::new(Selection::new(revisions, Some(only.to_owned())), &subjects).unwrap();
    let manner = Manner::new(NonZeroUsize::new(jobs), false, None, None);
    let manner = if fault.is_empty() { manner } else { manner.with_patience(PATIENCE) };
    run(&plan, &manner, |_| {})
}

fn told(result: &CellResult) -> String {
    format!("{} {}: {:#?} {:#?}", result.exchange, result.revision, result.findings, result.transcript)
}

#[test]
fn a_server_that_behaves_passes() {
    for name in REACH {
        for result in play("", name, Vec::new(), 5).results {
            assert_eq!(result.verdict, Verdict::Passed, "{}", told(&result));
        }
    }
}

const LEGACY: Revision = Revision::V2025_06_18;
const MODERN: Revision = Revision::V2026_07_28;

#[test]
fn each_planted_misbehaviour_is_found_and_blamed() {
    planted::are_caught(Bench::Pipes, 46);
}

/// A server may have tools of its own under the names that the exchanges use.
#[test]
fn a_tool_that_is_another_one_is_not_judged() {
    for (other, exchange, reason) in [
        ("other-add", "tools/structured-sum", "tool add(a, b): the one that is listed takes no `a`"),
        ("other-add", "tools/argument-missing", "tool add(a, b): the one that is listed takes no `a`"),
        (
            "other-echo",
            "tools/text-beyond-ascii",
            "tool echo(text): the one that is listed gives \"You said: suite\" back for \"suite\"",
        ),
    ] {
        for result in play(other, exchange, vec![LEGACY, MODERN], 1).results {
            assert_eq!(result.verdict, Verdict::Skipped, "{}", told(&result));
            assert_eq!(result.reason.as_deref(), Some(reason));
        }
        let outcome = play("", exchange, vec![LEGACY, MODERN], 1);
        assert!(outcome.results.iter().all(|result| result.verdict != Verdict::Skipped), "{exchange}");
    }
}

#[test]
fn jobs_change_no_verdict() {
    let verdicts = |jobs| -> Vec<_> {
        let outcome = play("late-progress", "progress", Vec::new(), jobs);
        outcome.results.iter().map(|result| (result.exchange, result.revision, result.verdict)).collect()
    };
    assert_eq!(verdicts(1), verdicts(8));
}

/// What the mock has behind the transport of 2024-11-05.
const OVER_SSE: [&str; 9] = [
    "sse/*",
    "lifecycle/handshake",
    "ping/answers",
    "tools/list",
    "tools/unknown-tool",
    "tools/simple-text",
    "progress/steps",
    "cancellation/slow-call",
    "pagination/invalid-cursor",
];

#[test]
fn a_server_of_the_old_transport_that_behaves_passes() {
    for name in OVER_SSE {
        let outcome = play_on(server(Bench::Sse, ""), "", name, Vec::new(), 5);
        let of_2024 = outcome
            .results
            .iter()
            .filter(|result| result.revision == Revision::V2024_11_05)
            .collect::<Vec<_>>();
        assert!(!of_2024.is_empty(), "{name}");
        for result in of_2024 {
            assert_eq!(result.verdict, Verdict::Passed, "{}", told(result));
        }
        let later = outcome.results.iter().filter(|result| result.revision != Revision::V2024_11_05);
        assert!(later.into_iter().all(|result| result.verdict == Verdict::Skipped), "{name}");
    }
}

#[test]
fn each_planted_misbehaviour_of_the_old_transport_is_found_and_blamed() {
    planted::are_caught(Bench::Sse, 6);
}

/// Events of type `message` need not say so.
#[test]
fn what_is_as_good_is_no_misbehaviour() {
    for exchange in ["ping/answers", "sse/answers-on-the-stream"] {
        let subject = server(Bench::Sse, "unnamed-events");
        let outcome = play_on(subject, "unnamed-events", exchange, vec![Revision::V2024_11_05], 1);
        let [result] = outcome.results.as_slice() else { panic!("{exchange}: not one result") };
        assert_eq!(result.verdict, Verdict::Passed, "{}", told(result));
    }
}
