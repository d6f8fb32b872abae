//! The suite is judged, too: a server that behaves passes, and each planted misbehaviour is found and blamed on
//! the requirement it breaks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod mock;
#[path = "mock/sse.rs"]
mod sse;

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use mcp_conformance::replay::Verdict;
use mcp_conformance::revision::Revision;
use mcp_conformance::run::{CellResult, Manner, Outcome, Plan, Selection, run};
use mcp_conformance::subject::Subject;
use mock::Mock;
use sse::SseMock;

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
    play_on(Box::new(Mock { fault }), fault, only, revisions, jobs)
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

/// Fault, exchange, revision, the requirement it breaks, and whether that is a warning only.
const PLANTED: [(&str, &str, Revision, &str, Verdict); 46] = [
    ("banner", "ping/answers", LEGACY, "S-STDIO-01", Verdict::Failed),
    ("writes-mark", "lifecycle/discover", MODERN, "S-STDIO-01", Verdict::Failed),
    ("blank-lines", "ping/answers", LEGACY, "S-STDIO-01", Verdict::Failed),
    ("latin-1", "ping/answers", LEGACY, "B-TRANS-01", Verdict::Failed),
    ("no-version", "tools/simple-text", MODERN, "B-BASE-02", Verdict::Failed),
    ("text-id", "tools/simple-text", MODERN, "S-BASE-01", Verdict::Failed),
    ("twice", "tools/simple-text", MODERN, "S-BASE-01", Verdict::Failed),
    ("both", "tools/simple-text", LEGACY, "LB-LIFE-09", Verdict::Failed),
    ("text-code", "tools/unknown-tool", MODERN, "S-BASE-06", Verdict::Failed),
    ("reserved-code", "tools/unknown-tool", MODERN, "B-ERR-04", Verdict::Failed),
    ("retired-code", "resources/not-found", MODERN, "B-ERR-06", Verdict::Failed),
    ("silent-errors", "tools/unknown-tool", LEGACY, "T02", Verdict::Failed),
    ("null-member", "tools/list", LEGACY, "E09", Verdict::Failed),
    ("null-schema", "tools/list", Revision::V2025_11_25, "W01", Verdict::Failed),
    ("odd-meta", "tools/simple-text", LEGACY, "B-META-05", Verdict::Failed),
    ("knows-all-meta", "envelope/reserved-meta-keys", MODERN, "B-META-01", Verdict::Failed),
    ("climbs", "resources/traversal", MODERN, "S-RES-15", Verdict::Failed),
    ("legacy-result-type", "ping/answers", LEGACY, "V09", Verdict::Failed),
    ("no-result-type", "tools/simple-text", MODERN, "S-BASE-03", Verdict::Failed),
    ("no-ttl", "tools/list", MODERN, "S-CACHE-01", Verdict::Failed),
    ("negative-ttl", "tools/list", MODERN, "S-CACHE-02", Verdict::Failed),
    ("anonymous", "tools/list", MODERN, "S-META-06", Verdict::Warning),
    ("server-request", "tools/simple-text", MODERN, "S-BASE-08", Verdict::Failed),
    ("audio-always", "tools/simple-text", Revision::V2024_11_05, "LS-TOOL-02", Verdict::Failed),
    ("own-token", "progress/steps", LEGACY, "S-PROG-03", Verdict::Failed),
    ("progress-falls", "progress/steps", LEGACY, "S-PROG-01", Verdict::Failed),
    ("late-progress", "progress/steps", MODERN, "S-PROG-04", Verdict::Failed),
    ("nameless-server", "lifecycle/handshake", LEGACY, "LS-LIFE-01", Verdict::Failed),
    ("one-version", "lifecycle/handshake", LEGACY, "LS-LIFE-03", Verdict::Failed),
    ("refuses-unknown-version", "lifecycle/unknown-version-offered", LEGACY, "LS-LIFE-04", Verdict::Failed),
    ("lax-meta", "lifecycle/meta-without-capabilities", MODERN, "S-META-01", Verdict::Failed),
    ("any-version", "lifecycle/unknown-version-requested", MODERN, "S-VER-01", Verdict::Failed),
    ("bare-version-error", "lifecycle/unknown-version-requested", MODERN, "S-WIRE-01", Verdict::Failed),
    ("lax-version", "envelope/missing-jsonrpc", LEGACY, "E04", Verdict::Failed),
    ("no-mark", "envelope/byte-order-mark", MODERN, "S01", Verdict::Warning),
    ("no-ping", "ping/answers", LEGACY, "LB-PING-01", Verdict::Failed),
    ("crash", "ping/answers", LEGACY, "LB-PING-01", Verdict::Failed),
    ("wrong-text", "tools/simple-text", MODERN, "S-WIRE-11", Verdict::Failed),
    ("wrong-sum", "tools/structured-sum", LEGACY, "S-TOOL-13", Verdict::Failed),
    ("unknown-tool-result", "tools/unknown-tool", LEGACY, "T02", Verdict::Failed),
    ("empty-for-missing", "resources/not-found", MODERN, "S-RES-10", Verdict::Failed),
    ("any-cursor", "pagination/invalid-cursor", LEGACY, "S-PAGE-03", Verdict::Warning),
    ("answers-cancelled", "cancellation/slow-call", LEGACY, "S-CANCEL-06", Verdict::Warning),
    ("answers-cancelled", "cancellation/slow-call", MODERN, "S-STDIO-04", Verdict::Failed),
    ("early-request", "lifecycle/quiet-before-initialized", LEGACY, "LS-LIFE-02", Verdict::Warning),
    ("silent-errors", "lifecycle/unknown-version-requested", MODERN, "S-VER-01", Verdict::Failed),
];

#[test]
fn each_planted_misbehaviour_is_found_and_blamed() {
    thread::scope(|scope| {
        for planted in PLANTED {
            scope.spawn(move || is_found(planted));
        }
    });
}

fn is_found(
    (fault, exchange, revision, requirement, verdict): (&'static str, &str, Revision, &str, Verdict),
) {
    let outcome = play(fault, exchange, vec![revision], 1);
    let [result] = outcome.results.as_slice() else { panic!("{fault}: not one result") };
    assert_eq!(result.verdict, verdict, "{fault}: {}", told(result));
    let blamed = result.findings.iter().any(|finding| finding.requires.iter().any(|id| id == requirement));
    assert!(blamed || verdict == Verdict::Passed, "{fault}: not blamed on {requirement}: {}", told(result));
    assert_eq!(outcome.is_good(), verdict != Verdict::Failed, "{fault}");
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
        let outcome = play_on(Box::new(SseMock { fault: "" }), "", name, Vec::new(), 5);
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

/// Fault of the transport, exchange, and the requirement it breaks; none for what is as good.
const PLANTED_OVER_SSE: [(&str, &str, &str); 8] = [
    ("no-endpoint", "ping/answers", "LS-SSE-02"),
    ("endpoint-as-message", "ping/answers", "B-BASE-02"),
    ("endpoint-elsewhere", "ping/answers", "LS-SSE-02"),
    ("plain-stream", "ping/answers", "LS-SSE-01"),
    ("one-for-all", "sse/sessions-apart", "S-BASE-01"),
    ("any-origin", "sse/foreign-origin", "S-HTTP-02"),
    ("unnamed-events", "ping/answers", ""),
    ("unnamed-events", "sse/answers-on-the-stream", ""),
];

#[test]
fn each_planted_misbehaviour_of_the_old_transport_is_found_and_blamed() {
    thread::scope(|scope| {
        for (fault, exchange, requirement) in PLANTED_OVER_SSE {
            scope.spawn(move || {
                let subject = Box::new(SseMock { fault });
                let outcome = play_on(subject, fault, exchange, vec![Revision::V2024_11_05], 1);
                let [result] = outcome.results.as_slice() else { panic!("{fault}: not one result") };
                let verdict = if requirement.is_empty() { Verdict::Passed } else { Verdict::Failed };
                assert_eq!(result.verdict, verdict, "{fault}: {}", told(result));
                let mut blamed = result.findings.iter().flat_map(|finding| &finding.requires);
                assert!(
                    requirement.is_empty() || blamed.any(|id| id == requirement),
                    "{fault}: not blamed on {requirement}: {}",
                    told(result)
                );
            });
        }
    });
}
