//! The suite as a server is judged, too: a client that behaves passes, and each planted misbehaviour is found and
//! blamed on the requirement it breaks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod planted;

use std::num::NonZeroUsize;
use std::time::Duration;

use mcp_conformance::exchange::Transport;
use mcp_conformance::hosting::Client;
use mcp_conformance::mutants::{Bench, client};
use mcp_conformance::replay::Verdict;
use mcp_conformance::revision::Revision;
use mcp_conformance::run::{CellResult, Manner, Outcome, Plan, Selection, run};

fn play(fault: &'static str, transports: &[Transport], only: &str, revisions: Vec<Revision>) -> Outcome {
    let clients: Vec<Box<dyn Client>> =
        transports.iter().map(|transport| client(*transport, fault)).collect();
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

/// Each fault is found by the exchange that is meant to find it, under the requirement that it breaks.
#[test]
fn planted_faults_are_found_and_blamed() {
    planted::are_caught(Bench::Client, 108);
}
