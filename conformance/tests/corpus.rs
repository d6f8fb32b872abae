//! Every committed exchange keeps to the format and cites what exists.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::collections::BTreeSet;

use mcp_conformance::corpus;
use mcp_conformance::exchange::{Act, Action, Exchange, HostStep, Side, Step, Transport};
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
