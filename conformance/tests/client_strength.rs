//! The suite as a server is judged, too: a client that behaves passes, and each planted misbehaviour is found and
//! blamed on the requirement it breaks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod guest;

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use guest::Mock;
use mcp_conformance::exchange::Transport;
use mcp_conformance::hosting::Client;
use mcp_conformance::replay::Verdict;
use mcp_conformance::revision::Revision;
use mcp_conformance::run::{CellResult, Manner, Outcome, Plan, Selection, run};

fn play(fault: &'static str, transports: &[Transport], only: &str, revisions: Vec<Revision>) -> Outcome {
    let clients: Vec<Box<dyn Client>> = transports
        .iter()
        .map(|transport| Box::new(Mock { fault, transport: *transport }) as Box<dyn Client>)
        .collect();
    let plan = Plan::with_clients(Selection::new(revisions, Some(only.to_owned())), &[], &clients).unwrap();
    let manner = Manner::new(NonZeroUsize::new(8), false, None, None);
    run(&plan, &manner.with_patience(PATIENCE), |_| {})
}

/// How long a step waits for the client.
const PATIENCE: Duration = Duration::from_secs(20);

fn told(result: &CellResult) -> String {
    let place = format!("{} {} {}", result.exchange, result.revision, result.transport.as_str());
    let mut text = format!("{place}: {:?} {:?}", result.verdict, result.reason);
    for finding in &result.findings {
        let (line, requires) = (finding.line.unwrap_or(0), finding.requires.join(" "));
        text.push_str(&format!(
            "\n  line {line} [{requires}] expected {}, got {}",
            finding.expected, finding.got
        ));
    }
    if std::env::var_os("TRANSCRIPTS").is_some() {
        for entry in &result.transcript {
            text.push_str(&format!("\n    {:?} {:?} {}", entry.at, entry.direction, entry.text));
        }
    }
    text
}

#[test]
fn a_client_that_behaves_passes() {
    let only = std::env::var("ONLY").unwrap_or_else(|_| "client-*".to_owned());
    if let Some(folder) = std::env::var_os("EXCHANGES") {
        mcp_conformance::corpus::take_folder(folder.as_ref()).unwrap();
    }
    let results = play("", &[Transport::Stdio, Transport::Http], &only, Vec::new()).results;
    let wrong: Vec<_> = results.iter().filter(|result| result.verdict != Verdict::Passed).map(told).collect();
    assert!(wrong.is_empty(), "{}\n{} of {}", wrong.join("\n\n"), wrong.len(), results.len());
}

const V1: Revision = Revision::V2024_11_05;
const V2: Revision = Revision::V2025_03_26;
const V3: Revision = Revision::V2025_06_18;
const V4: Revision = Revision::V2025_11_25;
const V5: Revision = Revision::V2026_07_28;
const IO: Transport = Transport::Stdio;
const WEB: Transport = Transport::Http;

/// Fault, transport, exchange, revision, the requirement it breaks.
type Planted = (&'static str, Transport, &'static str, Revision, &'static str);

const PLANTED: &[Planted] = &[
    ("no-capabilities", IO, "client-tools/call", V5, "C-META-01"),
    ("no-client-info", IO, "client-tools/call", V5, "C-META-02"),
    ("float-id", IO, "client-tools/call", V5, "C-BASE-01"),
    ("one-id", IO, "client-envelope/ids-differ", V3, "LB-LIFE-07"),
    ("batches", IO, "client-tools/call", V4, "LC-BATCH-03"),
    ("nulls", IO, "client-tools/call", V5, "E09"),
    ("null-cursor", IO, "client-tools/call", V4, "E09"),
    ("json-only", WEB, "client-headers/media-types", V4, "C-HTTP-02"),
    ("no-version-header", WEB, "client-headers/standard", V5, "C-HDR-01"),
    ("no-version-header", WEB, "client-headers/version-of-the-session", V3, "LC-VER-01"),
    ("no-method-header", WEB, "client-headers/standard", V5, "C-HDR-03"),
    ("no-name-header", WEB, "client-headers/standard", V5, "C-HDR-04"),
    ("no-params", WEB, "client-headers/argument-of-text", V5, "C-HDR-07"),
    ("null-mirrored", WEB, "client-headers/argument-that-is-null-or-absent", V5, "C-HDR-18"),
    ("upper-booleans", WEB, "client-headers/argument-of-true-and-false", V5, "C-HDR-12"),
    ("float-numbers", WEB, "client-headers/argument-of-whole-numbers", V5, "C-HDR-12"),
    ("raw-edges", WEB, "client-headers/argument-with-white-space-at-its-edges", V5, "C-HDR-13"),
    ("raw-text", WEB, "client-headers/argument-beyond-ascii", V5, "C-HDR-13"),
    ("latin", WEB, "client-headers/name-beyond-ascii", V5, "C-HDR-05"),
    ("raw-sentinel", WEB, "client-headers/argument-that-looks-encoded", V5, "C-HDR-14"),
    ("no-empty", WEB, "client-headers/argument-that-is-empty", V5, "C-SEPX-03"),
    ("no-nested", WEB, "client-headers/argument-inside-an-object", V5, "C-HDR-07"),
    ("no-repair", WEB, "client-headers/mismatch-is-repaired-once", V5, "C-HDR-16"),
    ("keeps-bad-tools", WEB, "client-headers/annotation-that-stands-twice", V5, "C-HDR-08"),
    ("bad-tool-spoils", IO, "client-tools/one-tool-is-null", V4, "T05"),
    ("any-shape", IO, "client-tools/result-of-another-shape", V4, "C-TOOL-12"),
    ("no-validation", IO, "client-tools/structured-result-that-does-not-fit", V5, "T03"),
    ("errors-need-results", IO, "client-tools/error-needs-no-structured-result", V5, "T03"),
    ("state-trimmed", IO, "client-input/form", V5, "C-MRTR-03"),
    ("state-dropped", IO, "client-input/form", V5, "C-MRTR-03"),
    ("invents-state", IO, "client-input/no-state", V5, "C-MRTR-04"),
    ("retry-same-id", WEB, "client-input/form", V5, "C-MRTR-05"),
    ("no-input", IO, "client-input/form", V5, "C-MRTR-02"),
    ("changes-arguments", IO, "client-input/form", V5, "C-MRTR-06"),
    ("rounds-forever", IO, "client-input/rounds-without-an-end", V5, "C-MRTR-02"),
    ("odd-action", IO, "client-input/declined", V5, "C-WIRE-06"),
    ("no-defaults", IO, "client-input/defaults", V5, "C-ELIC-08"),
    ("content-for-a-url", IO, "client-input/address", V5, "C-WIRE-06"),
    ("odd-roots", IO, "client-requests/roots", V3, "C-ROOT-02"),
    ("empty-ends", IO, "client-pages/empty-cursor", V5, "C-PAGE-05"),
    ("trims-cursors", IO, "client-pages/pages-of-tools", V3, "C-PAGE-04"),
    ("first-page-only", IO, "client-pages/pages-of-prompts", V3, "C-PAGE-03"),
    ("pages-forever", IO, "client-pages/same-cursor-for-ever", V5, "P01"),
    ("any-result-type", IO, "client-results/result-type-is-unknown", V5, "C-BASE-04"),
    ("needs-result-type", IO, "client-results/result-type-is-absent", V5, "C-BASE-05"),
    ("one-token", IO, "client-progress/tokens-differ", V4, "C-PROG-02"),
    ("no-reset", IO, "client-progress/resets-the-timeout", V5, "C07"),
    ("no-cap", IO, "client-progress/does-not-reset-the-cap", V5, "C07"),
    ("silent-cancel", IO, "client-cancellation/timeout", V5, "B-CANCEL-02"),
    ("cancels-others", IO, "client-cancellation/by-the-caller", V4, "LB-CANCEL-01"),
    ("cancel-by-message", WEB, "client-cancellation/by-the-caller", V5, "B-CANCEL-02"),
    ("late-counts", IO, "client-cancellation/late-answer", V4, "C04"),
    ("cancels-initialize", IO, "client-lifecycle/handshake-without-an-answer", V4, "LC-CANCEL-01"),
    ("one-code", IO, "client-eras/probe-refused-with-invalid-params", V4, "LC-LIFE-01"),
    ("one-code", IO, "client-eras/probe-without-an-answer", V4, "LC-LIFE-01"),
    ("no-respawn", IO, "client-eras/server-exits-on-the-probe", V3, "LC-LIFE-01"),
    ("modern-error-is-legacy", IO, "client-eras/no-common-version", V5, "C-VER-01"),
    ("modern-error-is-legacy", WEB, "client-eras/header-mismatch-is-modern", V5, "C-COMPAT-05"),
    ("401-is-legacy", WEB, "client-eras/status-401-says-nothing", V5, "C-COMPAT-05"),
    ("any-version", IO, "client-lifecycle/unknown-version-settled", V4, "LC-LIFE-06"),
    ("no-initialized", IO, "client-lifecycle/initialized-before-anything-else", V2, "LC-LIFE-02"),
    ("declares-all", IO, "client-lifecycle/declares-nothing-by-itself", V5, "C-META-01"),
    ("asks-anything", IO, "client-lifecycle/uses-what-is-declared-only", V4, "LB-LIFE-03"),
    ("no-session", WEB, "client-sessions/id-on-every-request", V4, "LC-SESS-02"),
    ("old-session", WEB, "client-sessions/ended-by-the-server", V4, "LC-SESS-03"),
    ("no-new-session", WEB, "client-sessions/ended-by-the-server", V3, "LC-SESS-03"),
    ("no-delete", WEB, "client-sessions/ended-by-the-client", V3, "LC-SESS-04"),
    ("no-resume", WEB, "client-streams/resumed", V3, "LC-HTTP-04"),
    ("no-last-event-id", WEB, "client-streams/resumed", V3, "LC-HTTP-04"),
    ("no-retry-time", WEB, "client-streams/polled", V4, "LC-HTTP-02"),
    ("no-cr", WEB, "client-events/ends-of-lines-cr", V5, "C-HTTP-06"),
    ("cr-cut", WEB, "client-events/data-of-several-lines-cut-anywhere", V5, "C-HTTP-06"),
    ("no-bom", WEB, "client-events/byte-order-mark", V5, "C-HTTP-06"),
    ("data-joined", WEB, "client-events/data-of-several-lines", V5, "C-HTTP-06"),
    ("comments-are-data", WEB, "client-events/comments", V5, "C-HTTP-07"),
    ("event-without-end", WEB, "client-events/unfinished-last-event", V5, "C-HTTP-06"),
    ("only-events", WEB, "client-answers/json-with-a-charset", V5, "C-HTTP-06"),
    ("strict-ack", WEB, "client-answers/acknowledgment-by-204", V3, "H03"),
    ("follows-anywhere", WEB, "client-answers/redirect-elsewhere", V5, "C-AUTH-23"),
    ("answers-junk", IO, "client-envelope/junk-lines", V5, "S03"),
    ("dies-of-junk", IO, "client-envelope/junk-lines", V4, "S03"),
    ("takes-any-response", IO, "client-envelope/unknown-response", V5, "E07"),
    ("error-without-id-fails-all", IO, "client-envelope/error-without-id", V5, "E07"),
    ("needs-data", IO, "client-envelope/error-without-data", V5, "B-BASE-02"),
    ("no-batches", IO, "client-envelope/batch-of-responses", V2, "LB-BATCH-01"),
    ("silent", IO, "client-requests/ping", V1, "LB-PING-01"),
    ("odd-pong", IO, "client-requests/ping", V1, "LB-PING-01"),
    ("answers-twice", IO, "client-requests/ping", V4, "B-BASE-02"),
    ("answers-unknown", IO, "client-requests/unknown-method", V4, "E06"),
    ("any-mode", IO, "client-requests/elicitation-in-an-undeclared-mode", V4, "LC-ELIC-05"),
    ("samples-with-tools", IO, "client-requests/sampling-with-undeclared-tools", V4, "C-SAMP-14"),
    ("answers-modern", IO, "client-requests/none-in-the-modern-era", V5, "C-STDIO-03"),
    ("result-type-in-answers", IO, "client-requests/ping", V4, "V09"),
    ("silent-roots", IO, "client-requests/roots-that-change", V4, "LC-ROOT-02"),
    ("ignores-changes", IO, "client-cache/ends-with-a-change", V5, "C-CACHE-07"),
    ("cache-forever", IO, "client-cache/lifetime-of-zero", V5, "C-CACHE-03"),
    ("no-cache", IO, "client-cache/lifetime", V5, "C-CACHE-04"),
    ("untagged-counts", IO, "client-listen/foreign-tag", V5, "C-STDIO-04"),
    ("no-second-listen", IO, "client-listen/again-after-a-restart", V5, "C-SUBS-02"),
    ("no-poll", IO, "client-tasks/to-the-end", V5, "C-TASK-04"),
    ("polls-at-once", IO, "client-tasks/poll-interval", V5, "C-TASK-03"),
    ("answers-again", IO, "client-tasks/input-that-is-asked-again", V5, "C-TASK-12"),
    ("odd-keys", IO, "client-tasks/input", V5, "C-TASK-11"),
    ("ignores-input", IO, "client-tasks/input", V5, "C-TASK-07"),
    ("no-task-name", WEB, "client-tasks/to-the-end", V5, "C-TASK-14"),
    ("tasks-of-anything", IO, "client-tasks/of-another-request", V5, "C-TASK-02"),
    ("cancels-tasks-by-message", IO, "client-tasks/given-up", V5, "C-TASK-13"),
    ("tasks-anywhere", IO, "client-tasks/no-task-without-the-capability", V4, "LC-TASK-01"),
];

/// Each fault is found by the exchange that is meant to find it, under the requirement that it breaks.
#[test]
fn planted_faults_are_found_and_blamed() {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    // Most of the time goes by waiting for what a faulty client never says.
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                while let Some(planted) = PLANTED.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The lock is not held while others play.
                    let missed = missed(planted);
                    wrong.lock().unwrap().extend(missed);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}\n{} of {}", wrong.join("\n\n"), wrong.len(), PLANTED.len());
}

/// What went otherwise, if the fault was not found or another requirement was blamed.
fn missed((fault, transport, exchange, revision, id): &Planted) -> Option<String> {
    let outcome = play(fault, &[*transport], exchange, vec![*revision]);
    let result = &outcome.results[0];
    let blamed = result.findings.iter().any(|finding| finding.requires.iter().any(|cited| cited == id));
    let found = matches!(result.verdict, Verdict::Failed | Verdict::Warning);
    (!(found && blamed)).then(|| format!("{fault} [{id}]: {}", told(result)))
}
