//! The suite over HTTP is judged, too: a server that behaves passes, and each planted misbehaviour is found and
//! blamed on the requirement it breaks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "mock/http.rs"]
mod http;

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use http::HttpMock;
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
    let subjects: Vec<Box<dyn Subject>> = vec![Box::new(HttpMock { fault })];
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

const LEGACY: Revision = Revision::V2025_06_18;
const LATEST: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

/// Fault, exchange, revision, the requirement it breaks, and whether that is a warning only.
const PLANTED: [(&str, &str, Revision, &str, Verdict); 51] = [
    ("no-version-check", "headers/version-differs", MODERN, "S-HDR-01", Verdict::Failed),
    ("version-may-lack", "headers/version-missing", MODERN, "H07", Verdict::Failed),
    ("no-method-check", "headers/method-differs", MODERN, "S-HDR-20", Verdict::Failed),
    ("no-method-check", "headers/method-missing", MODERN, "H07", Verdict::Failed),
    ("no-name-check", "headers/name-of-a-tool-differs", MODERN, "S-HDR-20", Verdict::Failed),
    ("no-name-check", "headers/name-of-a-tool-missing", MODERN, "H07", Verdict::Failed),
    ("values-in-any-case", "headers/name-of-a-tool-in-other-case", MODERN, "B-HDR-05", Verdict::Failed),
    ("first-line-counts", "headers/name-twice-with-two-values", MODERN, "H07", Verdict::Failed),
    ("no-decoding", "headers/name-of-a-tool-in-base64", MODERN, "S-HDR-12", Verdict::Failed),
    ("markers-in-any-case", "headers/name-with-markers-in-upper-case", MODERN, "S-SEPX-03", Verdict::Failed),
    ("undecodable-is-literal", "headers/name-that-does-not-decode", MODERN, "S-SEPX-02", Verdict::Failed),
    ("mismatch-200", "headers/method-missing", MODERN, "S-HDR-22", Verdict::Failed),
    ("mismatch-code", "headers/method-missing", MODERN, "S-HDR-23", Verdict::Failed),
    ("nameless-mismatch", "headers/id-of-text-in-a-refusal", MODERN, "S-BASE-04", Verdict::Failed),
    ("version-200", "headers/version-unknown", MODERN, "S-HDR-02", Verdict::Failed),
    ("no-argument-check", "params/differs", MODERN, "S-HDR-14", Verdict::Failed),
    ("argument-may-lack", "params/missing", MODERN, "S-HDR-19", Verdict::Failed),
    ("surplus-header", "params/without-its-argument", MODERN, "H08", Verdict::Failed),
    ("values-in-any-case", "params/differs-in-case", MODERN, "S-HDR-14", Verdict::Failed),
    ("no-decoding", "params/beyond-ascii", MODERN, "S-HDR-12", Verdict::Failed),
    ("no-trim", "params/white-space-around", MODERN, "S-SEPX-04", Verdict::Failed),
    ("raw-text", "params/raw-beyond-ascii", MODERN, "S-HDR-13", Verdict::Failed),
    ("unknown-200", "statuses/ping", MODERN, "S-HDR-03", Verdict::Failed),
    ("unknown-200", "tools/unknown-method", MODERN, "S-HDR-03", Verdict::Failed),
    ("metadata-200", "statuses/no-capabilities", MODERN, "S-META-02", Verdict::Failed),
    ("unreadable-200", "statuses/not-json", LEGACY, "E04", Verdict::Warning),
    ("accepts-anything", "statuses/wrong-jsonrpc", LEGACY, "LS-HTTP-03", Verdict::Failed),
    ("notification-200", "statuses/accepted-notification", LEGACY, "LS-HTTP-02", Verdict::Failed),
    ("notification-204", "ping/answers", LEGACY, "LS-HTTP-02", Verdict::Failed),
    ("notification-has-body", "ping/answers", LEGACY, "LS-HTTP-02", Verdict::Failed),
    ("html-answers", "answers/json-or-events", MODERN, "S-HTTP-08", Verdict::Failed),
    ("result-with-500", "tools/list", MODERN, "S-HTTP-08", Verdict::Failed),
    ("hangs-open", "answers/ends-after-the-response", LATEST, "S-HTTP-11", Verdict::Warning),
    ("foreign-message", "progress/steps", MODERN, "S-HTTP-09", Verdict::Failed),
    ("buffers", "progress/steps", MODERN, "S-HTTP-12", Verdict::Warning),
    ("ids-repeat", "answers/event-ids-differ", LATEST, "LS-HTTP-16", Verdict::Failed),
    ("primes-always", "answers/no-priming-before-it-existed", MODERN, "H12", Verdict::Warning),
    ("no-priming", "answers/priming", LATEST, "LS-HTTP-04", Verdict::Warning),
    ("get-is-json", "ping/answers", LEGACY, "LS-HTTP-10", Verdict::Failed),
    ("any-session", "sessions/unknown", LEGACY, "LS-SESS-04", Verdict::Failed),
    ("unknown-session-400", "sessions/unknown", LEGACY, "H04", Verdict::Failed),
    ("needs-no-session", "sessions/missing", LEGACY, "LS-SESS-03", Verdict::Warning),
    ("same-session-id", "sessions/ids-differ", LATEST, "LS-SESS-06", Verdict::Failed),
    ("odd-session-id", "ping/answers", LEGACY, "LS-SESS-02", Verdict::Failed),
    ("adopts-session-id", "sessions/handshake-under-a-stale-id", LEGACY, "LS-SESS-01", Verdict::Warning),
    ("ends-nothing", "sessions/ended", LEGACY, "LS-SESS-04", Verdict::Failed),
    ("open-to-all", "auth/each-request-has-its-token", MODERN, "S-SEC-09", Verdict::Failed),
    ("open-to-all", "statuses/metadata-by-the-challenge", LATEST, "S-AUTHD-02", Verdict::Failed),
    ("broadcasts", "methods/two-streams", LEGACY, "LS-HTTP-15", Verdict::Failed),
    ("any-version", "versions/unknown", LEGACY, "LS-VER-02", Verdict::Failed),
    ("mints", "sessions/modern-needs-none", MODERN, "S-COMPAT-03", Verdict::Warning),
];

/// What is robust or fixed by later revisions alone.
const OTHERS: [(&str, &str, Revision, &str, Verdict); 7] = [
    ("no-origin-check", "origins/foreign", LATEST, "S-HTTP-03", Verdict::Failed),
    ("origin-400", "origins/foreign", LATEST, "S-HTTP-03", Verdict::Failed),
    ("origin-400", "origins/foreign", LEGACY, "", Verdict::Passed),
    ("prefix-origin", "origins/look-alike", LATEST, "S-HTTP-02", Verdict::Failed),
    ("strict-accept", "media/accept-anything", MODERN, "H01", Verdict::Warning),
    ("substring-content", "media/content-in-a-parameter", MODERN, "H02", Verdict::Warning),
    ("exact-content", "media/content-with-charset", LEGACY, "H02", Verdict::Warning),
];

#[test]
fn each_planted_misbehaviour_is_found_and_blamed() {
    thread::scope(|scope| {
        for planted in PLANTED.into_iter().chain(OTHERS) {
            scope.spawn(move || is_found(planted));
        }
    });
}

fn is_found(
    (fault, exchange, revision, requirement, verdict): (&'static str, &str, Revision, &str, Verdict),
) {
    let outcome = play(fault, exchange, vec![revision], 1);
    let [result] = outcome.results.as_slice() else { panic!("{fault}: not one result") };
    assert_eq!(result.verdict, verdict, "{fault}: {} {:?}", told(result), result.reason);
    let blamed = result.findings.iter().any(|finding| finding.requires.iter().any(|id| id == requirement));
    assert!(blamed || verdict == Verdict::Passed, "{fault}: not blamed on {requirement}: {}", told(result));
}
