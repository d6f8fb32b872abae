//! Faults that are planted into the fixture, which has everything, are found and blamed, too.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod planted;

use std::fs;
use std::path::Path;
use std::process::Command;

use mcp_conformance::mutants::{self, Bench};

#[test]
fn each_fault_planted_into_the_fixture_is_found_and_blamed() {
    planted::are_caught(Bench::Fixture, 150);
}

/// The page is made of the table, and nothing else.
#[test]
fn the_page_of_faults_is_that_of_the_table() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("MUTANTS.md")).unwrap();
    assert!(page == mutants::document(), "write it anew: mcp-conformance mutants --table > MUTANTS.md");
}

fn suite(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-conformance")).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn mutants_says_what_caught_each_and_how_many() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
    let place = folder.to_str().unwrap();
    let (code, text) = suite(&["mutants", "--only", "pipes/wrong-sum", "--report", place]);
    assert_eq!(code, Some(0), "{text}");
    let caught =
        "caught pipes/wrong-sum by tools/structured-sum 2025-06-18 (S-TOOL-13)\n1 caught, 0 survived\n";
    assert_eq!(text, caught);
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("mutants.json")).unwrap()).unwrap();
    assert_eq!(report["totals"], serde_json::json!({"caught": 1, "survived": 0}));
    assert_eq!(report["mutants"][0]["by"]["exchange"], "tools/structured-sum");
    assert_eq!(suite(&["mutants", "--only", "no-such-fault"]).0, Some(2));
}

/// The layer alone changes nothing that an exchange could see.
#[test]
fn the_layer_without_a_fault_is_transparent() {
    let own = env!("CARGO_BIN_EXE_mcp-conformance");
    for runtime in ["std", "tokio", "smol"] {
        let command = format!("{own} serve --runtime {runtime} --stdio --mutant none");
        for area in ["tools", "shutdown"] {
            let (code, text) = suite(&["run", "--stdio", &command, "--only", area]);
            assert_eq!(code, Some(0), "{runtime}: {text}");
        }
    }
}

#[test]
fn a_fault_that_there_is_not_is_refused() {
    let (code, text) = suite(&["serve", "--runtime", "std", "--stdio", "--mutant", "no-such-fault"]);
    assert_eq!(code, Some(2));
    assert!(text.contains("`--mutant no-such-fault`: there is no such fault"), "{text}");
}
