//! Every committed exchange keeps to the format and cites what exists.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};

use mcp_conformance::corpus;
use mcp_conformance::exchange::{Act, Action, Exchange, HostStep, Side, Step, Transport};
use mcp_conformance::invariants;
use mcp_conformance::requirement::{self, Level};

fn exchanges() -> Vec<(&'static str, Exchange)> {
    corpus::names()
        .map(|name| (name, corpus::load(name).unwrap().unwrap_or_else(|e| panic!("{e}"))))
        .collect()
}

fn steps(steps: &[Step]) -> Vec<&Step> {
    let mut all = Vec::new();
    for step in steps {
        all.push(step);
        match &step.action {
            Action::Unordered(inner) | Action::During { steps: inner, .. } => all.extend(self::steps(inner)),
            _ => {}
        }
    }
    all
}

#[test]
fn every_exchange_parses_and_bears_the_name_of_its_file() {
    let all = exchanges();
    assert!(!all.is_empty());
    for (name, exchange) in &all {
        assert_eq!(*name, exchange.head.name, "exchanges/{name}.jsonl");
        let (area, what) = name.split_once('/').unwrap_or_else(|| panic!("{name}: expected area/name"));
        assert!(!area.is_empty() && !what.contains('/'), "{name}: expected one folder");
        assert!(exchange.head.about.ends_with('.'), "{name}: `about` is a sentence");
    }
    let abouts: BTreeSet<_> = all.iter().map(|(_, exchange)| &exchange.head.about).collect();
    assert_eq!(abouts.len(), all.len(), "two exchanges say they show the same");
}

/// What an exchange reports as a fault is a breach of something that binds that side on that revision.
#[test]
fn every_cited_id_exists_and_applies() {
    for (name, exchange) in exchanges() {
        let side = match exchange.head.side {
            Side::Server => "server",
            Side::Client => "client",
        };
        for id in exchange.cited() {
            let row = requirement::by_id(id).unwrap_or_else(|| panic!("{name}: no requirement `{id}`"));
            assert!(row.role == "both" || row.role == side, "{name}: {id} binds the {}", row.role);
            // What a client of the latest revision does with an older server is told by the latest revision.
            let elsewhere = exchange.head.side == Side::Client && row.area == "COMPAT";
            let overlaps = row.revisions.overlaps(exchange.head.revisions);
            assert!(elsewhere || overlaps, "{name}: {id} applies nowhere here");
        }
        for revision in exchange.head.revisions.revisions() {
            let ids = exchange.head.requires.iter().map(String::as_str);
            assert!(requirement::strongest(ids, revision).is_some(), "{name}: cites nothing for {revision}");
        }
    }
}

/// What is to be checked and is not, yet. Rows leave the list, none enters.
const OPEN: &[&str] = &[
    "C-BASE-02",
    "B-ERR-03",
    "B-JSCH-04",
    "B-JSCH-05",
    "B-JSCH-08",
    "C-HTTP-04",
    "C-CACHE-09",
    "B-CACHE-01",
    "C-ELIC-07",
    "C-ELIC-14",
    "C-SAMP-05",
    "C-AUTH-02",
    "C-AUTH-03",
    "C-AUTH-04",
    "C-AUTH-05",
    "C-AUTH-06",
    "C-AUTH-10",
    "C-AUTH-11",
    "C-AUTH-12",
    "C-AUTH-13",
    "C-AUTH-14",
    "C-AUTH-15",
    "C-AUTH-16",
    "C-AUTH-17",
    "C-AUTH-19",
    "C-AUTH-26",
    "C-AUTHD-01",
    "C-AUTHD-02",
    "C-AUTHD-03",
    "C-AUTHD-04",
    "C-AUTHD-05",
    "C-AUTHD-06",
    "C-AUTHD-07",
    "C-AUTHD-08",
    "C-AUTHD-09",
    "C-AUTHD-10",
    "C-REG-02",
    "C-REG-03",
    "C-REG-04",
    "C-REG-05",
    "C-REG-08",
    "C-REG-11",
    "C-REG-13",
    "C-REG-14",
    "C-REG-15",
    "C-AUTHS-01",
    "C-AUTHS-02",
    "C-AUTHS-03",
    "C-AUTHS-04",
    "C-AUTHS-05",
    "C-AUTHS-06",
    "C-AUTHS-07",
    "C-AUTHS-08",
    "C-AUTHS-09",
    "C-AUTHS-10",
    "C-SEC-01",
    "C-SEC-09",
    "C-SEC-10",
    "C-SEC-12",
    "C-SEC-15",
    "C-TASK-09",
    "C-TASK-14",
    "C-WIRE-01",
    "C-WIRE-02",
    "LC-LIFE-04",
    "LC-BATCH-01",
    "LC-BATCH-02",
    "LC-BATCH-03",
    "LC-SSE-01",
    "LC-TASK-02",
    "LC-TASK-03",
    "LB-TASK-06",
    "LC-AUTH-01",
    "LC-AUTH-02",
    "LC-AUTH-03",
    "LC-AUTH-04",
];

/// Each MUST has an exchange or a rule that finds its breach, or a reason why nobody can.
#[test]
fn every_must_is_checked_or_cannot_be_seen() {
    let mut checked: BTreeSet<String> = invariants::citing().map(|(_, id)| id.to_owned()).collect();
    for (_, exchange) in exchanges() {
        checked.extend(exchange.cited().into_iter().map(str::to_owned));
    }
    let unseen: BTreeMap<_, _> = requirement::unseen().map(|row| (row.id, row.reason)).collect();
    assert_eq!(unseen.len(), requirement::unseen().count(), "a reason stands twice");
    for id in unseen.keys().chain(OPEN) {
        assert!(requirement::by_id(id).is_some(), "no requirement `{id}`");
        assert!(
            !checked.contains(*id) || OPEN.contains(id),
            "{id}: has a check and a reason why it has none"
        );
        assert!(!(OPEN.contains(id) && unseen.contains_key(id)), "{id}: open, and has a reason");
    }
    for row in requirement::all().filter(|row| row.level() == Level::Must) {
        let known = checked.contains(row.id) || unseen.contains_key(row.id) || OPEN.contains(&row.id);
        assert!(known, "{}: neither a check nor a reason: {}", row.id, row.text);
    }
    for (rule, id) in invariants::citing() {
        assert!(requirement::by_id(id).is_some(), "invariant {rule}: no requirement `{id}`");
    }
}

#[test]
fn a_level_is_written_only_where_it_lowers_one() {
    for (name, exchange) in exchanges() {
        if exchange.head.level == Some(Level::Must) {
            let ids = || exchange.head.requires.iter().map(String::as_str);
            for revision in exchange.head.revisions.revisions() {
                let strongest = requirement::strongest(ids(), revision);
                assert_eq!(strongest, Some(Level::Must), "{name}: nothing cited is a MUST on {revision}");
            }
        }
    }
}

#[test]
fn steps_of_one_transport_stand_where_only_that_is_meant() {
    for (name, exchange) in exchanges() {
        for step in steps(&exchange.steps) {
            let raw = matches!(step.action, Action::Http(_) | Action::Watch(_));
            let bytes = matches!(step.action, Action::CloseInput | Action::Split(_) | Action::ExpectExit(_));
            let everywhere = |transport| match step.over {
                Some(over) => over == transport,
                None => exchange.head.transports == [transport],
            };
            assert!(!raw || everywhere(Transport::Http), "{name} line {}", step.line);
            assert!(!bytes || everywhere(Transport::Stdio), "{name} line {}", step.line);
            let travels = step.over.is_none_or(|over| exchange.head.transports.contains(&over));
            assert!(travels, "{name} line {}: runs nowhere", step.line);
        }
    }
}

/// What a client is asked and told over one transport alone stands where only that is meant, and each exchange
/// for clients bears the area that says so.
#[test]
fn exchanges_for_clients_keep_to_their_transport() {
    for (name, exchange) in exchanges() {
        assert_eq!(name.starts_with("client-"), exchange.head.side == Side::Client, "{name}");
        for step in exchange.hosted.iter().flat_map(|hosted| &hosted.steps).flat_map(HostStep::all) {
            let web = matches!(step.act, Act::Request(_) | Act::Respond { .. } | Act::End(_) | Act::Cut(_));
            let pipes = matches!(step.act, Act::Exit(_) | Act::Started);
            let everywhere = |transport| match step.over {
                Some(over) => over == transport,
                None => exchange.head.transports == [transport],
            };
            assert!(!web || everywhere(Transport::Http), "{name} line {}", step.line);
            assert!(!pipes || everywhere(Transport::Stdio), "{name} line {}", step.line);
            let travels = step.over.is_none_or(|over| exchange.head.transports.contains(&over));
            assert!(travels, "{name} line {}: runs nowhere", step.line);
        }
    }
}

/// An exchange that expects nothing shows nothing.
#[test]
fn every_exchange_expects_something_on_every_revision() {
    for (name, exchange) in exchanges() {
        for revision in exchange.head.revisions.revisions() {
            let hosted = exchange.hosted.iter().flat_map(|hosted| &hosted.steps);
            let looks = hosted.flat_map(HostStep::all).any(|step| {
                step.only.contains(revision)
                    && !matches!(
                        step.act,
                        Act::Answer(_)
                            | Act::Tell(_)
                            | Act::Respond { .. }
                            | Act::Write { .. }
                            | Act::End(_)
                            | Act::Cut(_)
                            | Act::Exit(_)
                            | Act::Flood { .. }
                            | Act::Wait(_)
                    )
            });
            let expects = looks
                || steps(&exchange.steps).iter().any(|step| {
                    step.only.contains(revision)
                        && matches!(
                            step.action,
                            Action::Expect(_)
                                | Action::ExpectExit(_)
                                | Action::ExpectNothing(_)
                                | Action::Poll(_)
                                | Action::Http(_)
                                | Action::Watch(_)
                        )
                });
            assert!(expects, "{name}: expects nothing on {revision}");
        }
    }
}

/// What shares an instance must not write bytes, choose ids, or change what others see.
#[test]
fn what_shares_an_instance_leaves_no_trace() {
    let harmless = [
        "ping",
        "server/discover",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    ];
    let traces = ["slow", "touch", "counter", "flood", "deploy"];
    for (name, exchange) in exchanges().into_iter().filter(|(_, exchange)| exchange.head.reuse) {
        assert!(exchange.head.handshake, "{name}: opens its own session");
        for step in steps(&exchange.steps) {
            let (message, waits) = match &step.action {
                Action::Send(send) => (Some(&send.message), false),
                Action::Expect(_) | Action::Unordered(_) => (None, false),
                _ => (None, true),
            };
            assert!(!waits, "{name} line {}: more than requests and their responses", step.line);
            let Some(message) = message else { continue };
            let method = &message["method"];
            let known = method.as_str().is_none_or(|method| harmless.contains(&method));
            assert!(known && message.get("id").is_none(), "{name} line {}: {message}", step.line);
            let tool = message["params"]["name"].as_str().unwrap_or_default();
            assert!(!traces.contains(&tool) && !tool.starts_with("test_trigger"), "{name}: calls {tool}");
        }
    }
}
