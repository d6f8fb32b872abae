//! The suite inside a test, as other projects use it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs;
use std::num::NonZeroUsize;
use std::panic;
use std::path::Path;

use mcp_conformance::mutants;
use mcp_conformance::replay::Verdict;
use mcp_conformance::revision::Revision;
use mcp_conformance::suite::Suite;

const MODERN: Revision = Revision::V2026_07_28;

/// The small server of this package stands for what a user has.
fn small(fault: &'static str) -> Suite {
    Suite::in_process("small", move |input, output| mutants::serve(fault, input, output))
}

#[test]
fn a_server_in_the_test_is_played_against() {
    let report = small("").only("tools/unknown-tool").run().unwrap();
    assert!(report.outcome.is_good(), "{report}");
    assert_eq!(report.outcome.results.len(), Revision::ALL.len());
    assert!(report.to_string().ends_with("5 passed, 0 failed, 0 skipped\n"), "{report}");
    // A revision that does not have what is to be played.
    let none = small("").revision(MODERN).only("ping/answers").run();
    assert!(!none.is_ok_and(|report| report.outcome.is_good()));
}

#[test]
fn a_fault_fails_the_test_with_the_report() {
    let suite = small("wrong-sum").revision(MODERN).only("tools/structured-sum");
    let report = suite.run().unwrap();
    assert_eq!(report.outcome.results[0].verdict, Verdict::Failed);
    let failure = panic::catch_unwind(panic::AssertUnwindSafe(|| suite.check())).unwrap_err();
    let said = failure.downcast::<String>().unwrap();
    for part in ["FAIL  tools/structured-sum 2026-07-28 stdio", "[S-TOOL-13", "0 passed, 1 failed, 0 skipped"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn what_cannot_be_played_is_no_success() {
    let suite = small("").only("no/such/exchange");
    panic::catch_unwind(panic::AssertUnwindSafe(|| suite.check())).unwrap_err();
    let suite = Suite::stdio(["/no/such/program"]).only("tools/list");
    assert!(suite.run().unwrap_err().contains("/no/such/program"));
    let suite = Suite::in_process("silent", |_, _| {}).revision(MODERN).only("tools/list");
    assert!(!suite.run().is_ok_and(|report| report.outcome.is_good()));
}

#[test]
fn options_are_those_of_the_command_line() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("suite");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let known = folder.join("known.txt");
    fs::write(&known, "tools/structured-sum 2026-07-28\n").unwrap();
    let suite = || small("wrong-sum").revision(MODERN).only("tools/structured-sum");
    let report = suite().baseline(&known).report(&folder).jobs(NonZeroUsize::MIN).run().unwrap();
    assert!(report.outcome.is_good(), "{report}");
    assert!(report.to_string().contains("1 known failures"), "{report}");
    for name in ["report.json", "junit.xml", "report.html"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    let cured = small("").revision(MODERN).only("tools/structured-sum").baseline(&known).run().unwrap();
    assert!(!cured.outcome.is_good(), "an entry that no longer fails: {cured}");
    let explored = small("takes-all").revision(MODERN).report(&folder).explore(false).run().unwrap();
    assert!(explored.to_string().contains("FAIL  explore/refuse-add"), "{explored}");
    let random = small("").revision(MODERN).report(&folder).torture(None, Some(7), Some(20)).run().unwrap();
    assert!(random.outcome.is_good(), "{random}");
    assert!(random.to_string().contains("20 scripts with "), "{random}");
    assert!(random.to_string().contains("--seed 7"), "{random}");
}

#[test]
fn programs_are_started() {
    let own = env!("CARGO_BIN_EXE_mcp-conformance");
    let stdio = Suite::stdio([own, "serve", "--runtime", "std", "--stdio"]);
    stdio.revision(MODERN).only("tools/list").check();
    let http = Suite::http([own, "serve", "--runtime", "tokio", "--http", "127.0.0.1:0"]);
    http.revision(MODERN).only("tools/list").check();
    let client = Suite::client([own, "client", "--runtime", "tokio"]);
    client.revision(MODERN).only("client-tools/*").jobs(NonZeroUsize::MIN).check();
}
