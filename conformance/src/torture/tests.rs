//! The generator by itself: what it draws, and that it draws the same again.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::dice::Dice;
use super::draw;
use super::render;
use super::script::{Cuts, Kind, Operation, Script};
use super::survey::{Limits, Survey, Tool};
use super::values::Arguments;
use super::{CHAIN, joined};
use crate::exchange::{Action, Transport, parse};
use crate::revision::Revision;

/// A subject that has everything.
fn survey(revision: Revision, transport: Transport) -> Survey {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let arguments = Arguments::of(&schema, &mut Dice::new(1));
    Survey {
        revision,
        transport,
        tools: vec![Tool { name: "t".to_owned(), arguments, gives: None }],
        prompts: vec![("p".to_owned(), vec!["a".to_owned()])],
        resources: vec!["test://a".to_owned()],
        lists: vec!["tools/list", "prompts/list", "resources/list", "resources/templates/list"],
        completes: true,
        logs: !revision.is_modern(),
        subscribes: !revision.is_modern(),
        echoes: true,
        adds: true,
        sums: true,
        slows: true,
        limits: Limits { text: 10_000, chunks: true },
    }
}

fn cells() -> impl Iterator<Item = Survey> {
    let of = |revision| [Transport::Stdio, Transport::Http].map(|transport| survey(revision, transport));
    Revision::ALL.into_iter().flat_map(of)
}

fn scripts(survey: &Survey, count: u64) -> impl Iterator<Item = Script> {
    (0..count).map(|number| draw::script(survey, 7, number))
}

#[test]
fn the_same_seed_and_number_give_the_same_script() {
    for survey in cells() {
        for script in scripts(&survey, 50) {
            let again = draw::script(&survey, 7, script.number);
            assert_eq!(script, again);
            assert_eq!(render::exchange(&script), render::exchange(&again));
            let other = draw::script(&survey, 8, script.number);
            assert_ne!(script.operations, other.operations, "another seed");
        }
        let all: Vec<_> = scripts(&survey, 50).map(|script| format!("{:?}", script.operations)).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "another number");
    }
}

#[test]
fn everything_is_drawn() {
    let everywhere = [
        Kind::Ping,
        Kind::List,
        Kind::NoCursor,
        Kind::Read,
        Kind::NoResource,
        Kind::Prompt,
        Kind::NoPrompt,
        Kind::Complete,
        Kind::Echo,
        Kind::Add,
        Kind::Call,
        Kind::Refused,
        Kind::NoTool,
        Kind::NoMethod,
        Kind::OddParams,
        Kind::Unknown,
        Kind::Huge,
        Kind::Deep,
        Kind::Notice,
        Kind::Stray,
        Kind::Twin,
        Kind::Raced,
        Kind::Spoiled,
        Kind::Odd,
    ];
    for survey in cells() {
        let drawn: Vec<_> = scripts(&survey, 400).collect();
        let kinds: BTreeSet<_> =
            drawn.iter().flat_map(Script::messages).map(|message| message.kind).collect();
        let of_the_era = if survey.revision.is_modern() { Kind::Listen } else { Kind::Level };
        for kind in everywhere.iter().chain([&of_the_era]) {
            assert!(kinds.contains(kind), "{} {:?}: no {kind:?}", survey.revision, survey.transport);
        }
        let done =
            |test: fn(&Operation) -> bool| drawn.iter().any(|script| script.operations.iter().any(test));
        assert!(done(|operation| matches!(operation, Operation::Await)));
        assert!(done(|operation| matches!(operation, Operation::Pages { .. })));
        assert!(done(|operation| matches!(operation, Operation::Cancel(_))));
        assert!(done(|operation| matches!(operation, Operation::Stop { .. })));
        assert!(
            done(|operation| matches!(operation, Operation::Say(messages, _) if messages.len() > 2)),
            "joined"
        );
        assert!(done(|operation| matches!(operation, Operation::Say(_, Cuts::Some { .. }))), "cut");
        assert!(done(|operation| matches!(operation, Operation::Say(_, Cuts::Every))), "byte by byte");
    }
}

#[test]
fn every_script_is_an_exchange() {
    for survey in cells() {
        for script in scripts(&survey, 120) {
            let text = render::exchange(&script);
            let exchange = parse(&script.name(), &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(exchange.head.name, script.name());
            assert!(exchange.head.revisions.contains(script.revision));
            let last = exchange.steps.last().map(|step| &step.action);
            assert!(matches!(last, Some(Action::Expect(_))), "the connection has to live at the end");
        }
    }
}

/// What is awaited is told apart by its id, on one connection of many scripts.
#[test]
fn no_id_comes_twice_in_a_chain_but_that_of_twins() {
    for survey in cells() {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut kinds = BTreeSet::new();
        for script in scripts(&survey, CHAIN as u64) {
            let own = script.messages().filter(|message| message.kind != Kind::Twin);
            for id in own.filter_map(|message| message.id()) {
                assert!(seen.insert(id.to_string()), "{id} twice");
                kinds.insert(if id.is_string() {
                    "text"
                } else if id.as_i64() < Some(0) {
                    "negative"
                } else {
                    "number"
                });
            }
        }
        assert_eq!(kinds.len(), 3, "{kinds:?}");
    }
}

/// A long text that comes back is held against itself, and what is owed has the id of what was sent.
#[test]
fn what_is_owed_belongs_to_what_is_sent() {
    let survey = survey(Revision::V2026_07_28, Transport::Stdio);
    let mut echoed = 0;
    for script in scripts(&survey, 60) {
        for message in script.messages().filter(|message| message.kind == Kind::Echo) {
            let sent: Value = serde_json::from_str(&message.text()).unwrap();
            let owed = message.owed.as_ref().unwrap();
            assert_eq!(sent["params"]["arguments"]["text"], owed["result"]["content"][0]["text"]);
            assert!(sent["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string());
            echoed += 1;
        }
    }
    assert!(echoed > 20, "{echoed}");
}

#[test]
fn a_chain_is_one_script_as_well() {
    let survey = survey(Revision::V2025_06_18, Transport::Stdio);
    let all: Vec<_> = scripts(&survey, 6).collect();
    let one = joined(&all);
    let count = |script: &Script| script.messages().count();
    assert_eq!(count(&one), all.iter().map(count).sum::<usize>());
    assert!(parse("joined", &render::exchange(&one)).is_ok());
    let tools: BTreeSet<_> = all.iter().flat_map(|script| &script.tools).collect();
    assert_eq!(one.tools.iter().collect::<BTreeSet<_>>(), tools);
}
