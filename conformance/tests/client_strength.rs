//! The suite as a server is judged, too: a client that behaves passes, and each planted misbehaviour is found and
//! blamed on the requirement it breaks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod guest;

use std::num::NonZeroUsize;
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
    run(&plan, &manner.with_patience(Duration::from_secs(5)), |_| {})
}

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
    let results = play("", &[Transport::Stdio, Transport::Http], &only, Vec::new()).results;
    let good = |result: &&CellResult| result.verdict == Verdict::Passed;
    let wrong: Vec<_> = results.iter().filter(|result| !good(result)).map(told).collect();
    assert!(wrong.is_empty(), "{}\n{} of {}", wrong.join("\n\n"), wrong.len(), results.len());
}
