//! `input_required` towards a client that has no such answer: its questions become requests, and the
//! call comes back with the answers.

use std::time::Duration;

use mcp_proto::model::{CallToolResult, InputRequest, InputRequired, ProtocolVersion as V};
use mcp_proto::server::{Call, Channel, Event, Resumed};
use serde_json::{Value, json};

use super::input::form;
use super::pair::{EVERY_CAPABILITY, LEGACY, Pair, at, cancel, config, legacy, limits, result};

const CALL: &str = r#""name":"t","arguments":{"a":[1,{"b":2}]},"extra":"kept","_meta":{"progressToken":"p"}"#;

fn resumed(event: Option<Event<'_>>) -> Resumed {
    match event {
        Some(Event::Resumed(resumed)) => resumed,
        other => panic!("expected the call to come back, got {other:?}"),
    }
}

fn roots() -> InputRequired {
    InputRequired::default().ask("r", InputRequest::ListRoots)
}

/// The session's call and the ids under which `input` was asked.
fn asked(pair: &mut Pair, frame: &str, input: &InputRequired) -> Vec<Value> {
    let (pending, params) = pair.tool(frame);
    assert!(params.retry.input_responses.is_none());
    assert!(pair.server.require_input(pending, input, &mut pair.out).unwrap().is_written());
    pair.messages().iter().map(|m| m["id"].clone()).collect()
}

/// One handler for all eras: the same call, with the answers where a modern retry has them.
#[test]
fn a_call_comes_back_with_the_answers() {
    for version in LEGACY {
        let mut pair = Pair::session(version);
        let frame = legacy("7", "tools/call", CALL);
        let input = if version >= V::V2025_06_18 {
            InputRequired::default().ask("sure", form()).ask("r", InputRequest::ListRoots)
        } else {
            InputRequired::default().ask("sure", InputRequest::ListRoots).ask("r", InputRequest::ListRoots)
        };
        let input = input.request_state("sealed \"state\"");
        let ids = asked(&mut pair, &frame, &input);
        assert_eq!(ids.len(), 2);
        // In any order; the call comes back with the last of them.
        assert!(pair.send(&result(&ids[1], r#"{ "roots": [] }"#)).is_none());
        let frame = result(&ids[0], r#"{"action":"decline"}"#);
        let resumed = resumed(pair.send(&frame));
        pair.silent();
        assert!(pair.server.is_open(resumed.key()));
        let incoming = resumed.incoming();
        assert_eq!((&*incoming.method, incoming.version), ("tools/call", version));
        assert_eq!(incoming.params.members().get("extra").map(|v| v.get()), Some("\"kept\""));
        let Ok(Call::CallTool(pending, params)) = incoming.typed() else { panic!() };
        assert_eq!(params.name, "t");
        assert_eq!(params.arguments.map(|a| a.get()), Some(r#"{"a":[1,{"b":2}]}"#));
        assert_eq!(params.retry.request_state.as_deref(), Some("sealed \"state\""));
        let responses = params.retry.input_responses.unwrap();
        assert_eq!(responses.get("sure").map(|v| v.get()), Some(r#"{"action":"decline"}"#));
        assert_eq!(responses.get("r").map(|v| v.get()), Some(r#"{ "roots": [] }"#));
        // Progress goes on where it was.
        assert!(
            pair.server.progress(&pending, mcp_proto::server::Progress::new(1.0), &mut pair.out).is_written()
        );
        assert_eq!(pair.message()["params"]["progressToken"], "p");
        assert!(pair.server.respond(pending, &CallToolResult::text("x"), &mut pair.out).is_written());
        assert_eq!(pair.message()["id"], 7);
        assert_eq!(pair.server.in_flight(), 0);
    }
}

/// What a peer smuggles into the first call does not pass for answers or state of ours.
#[test]
fn a_forged_retry_does_not_survive_the_round() {
    let mut pair = Pair::session(V::V2025_11_25);
    let frame =
        legacy("1", "tools/call", r#""name":"t","inputResponses":{"r":"forged"},"requestState":"forged""#);
    let (pending, _) = pair.tool(&frame);
    assert!(pair.server.require_input(pending, &roots(), &mut pair.out).unwrap().is_written());
    let id = pair.message()["id"].clone();
    let frame = result(&id, r#"{"roots":[]}"#);
    let resumed = resumed(pair.send(&frame));
    let Ok(Call::CallTool(_, params)) = resumed.incoming().typed() else { panic!() };
    assert_eq!(params.retry.request_state, None);
    assert_eq!(params.retry.input_responses.unwrap().get("r").map(|v| v.get()), Some(r#"{"roots":[]}"#));
}

/// A state without questions means "come back": the call comes back at once, as an event of its own.
#[test]
fn a_state_alone_comes_back_at_once() {
    let mut pair = Pair::session(V::V2025_06_18);
    let frame = legacy("1", "tools/call", CALL);
    let input = InputRequired::default().request_state("later");
    assert!(asked(&mut pair, &frame, &input).is_empty());
    assert!(pair.server.next_deadline().is_some_and(|deadline| deadline <= pair.now));
    let events = pair.pass(0);
    let Ok([Event::Resumed(resumed)]) = <[_; 1]>::try_from(events) else { panic!() };
    let Ok(Call::CallTool(_, params)) = resumed.incoming().typed() else { panic!() };
    assert_eq!(params.retry.request_state.as_deref(), Some("later"));
    assert!(params.retry.input_responses.unwrap().is_empty());
}

/// Where nobody looks at the clock for long, it comes back and is out of time at once: two events, one answer.
#[test]
fn a_call_may_come_back_out_of_time() {
    let config = config().limits(limits(|l| l.request_timeout = Some(Duration::from_secs(1)))).build();
    let mut pair = Pair::of(config).with_session(V::V2025_06_18, EVERY_CAPABILITY);
    for id in ["1", "2"] {
        let frame = legacy(id, "tools/call", CALL);
        assert!(asked(&mut pair, &frame, &InputRequired::default().request_state("later")).is_empty());
    }
    let events = pair.pass(5_000);
    let [Event::Resumed(a), Event::Resumed(b), Event::TimedOut { key: c }, Event::TimedOut { key: d }] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!([a.key(), b.key()], [*c, *d]);
    let answers = pair.messages();
    assert_eq!(answers.iter().map(|answer| &answer["id"]).collect::<Vec<_>>(), [&json!(1), &json!(2)]);
    assert!(answers.iter().all(|answer| answer["error"]["code"] == -32603), "{answers:?}");
    assert_eq!((pair.server.in_flight(), pair.server.next_deadline()), (0, None));
}

/// One that was cancelled in the meantime does not come back.
#[test]
fn a_cancelled_call_does_not_come_back() {
    let mut pair = Pair::session(V::V2025_06_18);
    let frame = legacy("1", "tools/call", CALL);
    asked(&mut pair, &frame, &InputRequired::default().request_state("later"));
    assert!(matches!(pair.send(&cancel("1")), Some(Event::Cancelled { .. })));
    assert!(pair.pass(0).is_empty());

    let ids = asked(&mut pair, &frame, &roots());
    assert!(matches!(pair.send(&cancel("1")), Some(Event::Cancelled { .. })));
    assert_eq!(pair.message()["params"]["requestId"], ids[0], "the question is withdrawn");
    assert!(!pair.refused(&result(&ids[0], r#"{"roots":[]}"#)).answered);
    pair.silent();
}

/// Answers of one round are not handed to the next; the rounds of one call are bounded.
#[test]
fn rounds_are_bounded() {
    let mut pair = Pair::of(config().limits(limits(|l| l.max_rounds = 3)).build())
        .with_session(V::V2025_06_18, EVERY_CAPABILITY);
    let frame = legacy("1", "tools/call", CALL);
    let mut ids = asked(&mut pair, &frame, &roots());
    for round in 1..=3 {
        let frame = result(&ids[0], &format!(r#"{{"round":{round}}}"#));
        let resumed = resumed(pair.send(&frame));
        let Ok(Call::CallTool(pending, params)) = resumed.incoming().typed() else { panic!() };
        let responses = params.retry.input_responses.unwrap();
        assert_eq!(responses.len(), 1);
        assert_eq!(responses.iter().next().map(|(_, v)| v.get()), Some(&*format!(r#"{{"round":{round}}}"#)));
        let again = InputRequired::default().ask(format!("r{round}"), InputRequest::ListRoots);
        assert!(pair.server.require_input(pending, &again, &mut pair.out).unwrap().is_written());
        let message = pair.message();
        if round < 3 {
            assert_eq!(message["method"], "roots/list");
            ids = vec![message["id"].clone()];
        } else {
            assert_eq!((&message["id"], &message["error"]["code"]), (&json!(1), &json!(-32603)));
        }
    }
    assert_eq!(pair.server.in_flight(), 0);
}

/// A refusal ends the call: other questions of it are withdrawn.
#[test]
fn a_refused_question_ends_the_call() {
    let mut pair = Pair::session(V::V2025_06_18);
    let frame = legacy("1", "tools/call", CALL);
    let input = InputRequired::default().ask("a", InputRequest::ListRoots).ask("b", InputRequest::ListRoots);
    let ids = asked(&mut pair, &frame, &input);
    let frame =
        format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-1,"message":"User said no"}}}}"#, ids[0]);
    match pair.send(&frame) {
        Some(Event::Cancelled { reason, .. }) => assert!(reason.unwrap().ends_with("User said no")),
        other => panic!("{other:?}"),
    }
    let messages = pair.messages();
    assert_eq!(messages.len(), 2);
    assert_eq!(
        (&messages[0]["method"], &messages[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &ids[1])
    );
    assert_eq!((&messages[1]["id"], &messages[1]["error"]["code"]), (&json!(1), &json!(-32603)));
    assert_eq!(pair.server.in_flight(), 0);
}

/// A client that does not answer does not hold the call for ever.
#[test]
fn questions_of_a_parked_call_time_out() {
    let config = config().limits(limits(|l| l.client_request_timeout = Some(Duration::from_secs(2)))).build();
    let mut pair = Pair::of(config).with_session(V::V2025_06_18, EVERY_CAPABILITY);
    let frame = legacy("1", "tools/call", CALL);
    let ids = asked(&mut pair, &frame, &roots());
    assert!(pair.pass(1_500).is_empty());
    let deadline = pair.server.next_deadline().expect("a deadline of the question");
    assert!((at(3_000)..=at(3_500)).contains(&deadline), "{deadline:?}");
    assert!(matches!(&pair.pass(4_000)[..], [Event::TimedOut { .. }]));
    let messages = pair.messages();
    assert_eq!(
        (&messages[0]["method"], &messages[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &ids[0])
    );
    assert_eq!((&messages[1]["id"], &messages[1]["error"]["code"]), (&json!(1), &json!(-32603)));
    assert_eq!(messages.len(), 2);
    assert_eq!((pair.server.in_flight(), pair.server.next_deadline()), (0, None));
}

/// M06 for the bridge: undeclared is undeclared, and older revisions have no code of their own for it.
#[test]
fn m06_undeclared_questions_are_not_sent() {
    for version in LEGACY {
        let mut pair = Pair::new().with_session(version, "{}");
        let frame = legacy("1", "tools/call", CALL);
        let (pending, _) = pair.tool(&frame);
        let missing = pair.server.require_input(pending, &roots(), &mut pair.out).unwrap_err();
        assert_eq!(missing.required.to_string(), r#"{"roots":{}}"#);
        pair.silent();
        assert!(pair.server.refuse_missing(missing, &mut pair.out).is_written());
        let answer = pair.message();
        assert_eq!(answer["error"]["code"], -32600);
        assert!(answer["error"].get("data").is_none());
    }
}

/// Without the bridge such an answer is the handler's fault.
#[test]
fn without_the_bridge_nothing_is_asked() {
    let mut pair =
        Pair::of(config().bridge_input(false).build()).with_session(V::V2025_06_18, EVERY_CAPABILITY);
    let frame = legacy("1", "tools/call", CALL);
    let (pending, _) = pair.tool(&frame);
    assert!(pair.server.require_input(pending, &roots(), &mut pair.out).unwrap().is_written());
    assert_eq!(pair.message()["error"]["code"], -32603);
}

/// More questions than may be open at once are not half asked.
#[test]
fn too_many_questions_end_the_call() {
    let mut pair = Pair::of(config().limits(limits(|l| l.max_client_requests = 2)).build())
        .with_session(V::V2025_06_18, EVERY_CAPABILITY);
    let frame = legacy("1", "tools/call", CALL);
    let (pending, _) = pair.tool(&frame);
    let input =
        ["a", "b", "c"].into_iter().fold(InputRequired::default(), |i, k| i.ask(k, InputRequest::ListRoots));
    assert!(pair.server.require_input(pending, &input, &mut pair.out).unwrap().is_written());
    let answer = pair.message();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
}
