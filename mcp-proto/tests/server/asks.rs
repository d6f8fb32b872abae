//! Requests of ours towards a legacy client.

use std::time::Duration;

use mcp_proto::model::{
    CallToolResult, ElicitForm, FormSchema, InputRequest, InputRequired, MultiSelectSchema,
    ProtocolVersion as V,
};
use mcp_proto::server::{Answer, AskError, AskKey, Channel, Event};
use serde_json::json;

use super::input::{form, sample, url};
use super::pair::{EVERY_CAPABILITY, LEGACY, Pair, at, call, cancel, config, initialize, limits, result};

fn answer(event: Option<Event<'_>>) -> Answer<'_> {
    match event {
        Some(Event::Answer(answer)) => answer,
        other => panic!("expected an answer, got {other:?}"),
    }
}

/// E03: an answer under the digits of an id as text is no answer to it, and takes nothing from the true one.
#[test]
fn e03_an_answer_under_the_digits_of_the_id_is_none() {
    for version in LEGACY {
        let mut pair = Pair::session(version);
        let Pair { server, out, now } = &mut pair;
        let asked = server.ask_client(&InputRequest::ListRoots, *now, out).unwrap();
        let id = pair.message()["id"].clone();
        assert!(id.is_i64(), "{id}");
        for text in [id.to_string(), format!(" {id}"), format!("0{id}"), format!("{id}.0")] {
            assert!(!pair.refused(&result(&json!(text), r#"{"roots":[]}"#)).answered);
            pair.silent();
        }
        let frame = result(&id, r#"{"roots":[1]}"#);
        let got = answer(pair.send(&frame));
        assert_eq!((got.ask, got.outcome.unwrap().get()), (asked, r#"{"roots":[1]}"#));
    }
}

/// In the words of the revision, with an id of ours; the answer comes with the call it belongs to.
#[test]
fn questions_and_answers() {
    for version in LEGACY {
        let mut pair = Pair::session(version);
        let frame = call(version, "7", "t");
        let (pending, _) = pair.tool(&frame);
        let key = pending.key();
        let Pair { server, out, now } = &mut pair;
        let first = server.ask(key, &sample().into(), *now, out).unwrap();
        let second = server.ask(key, &InputRequest::ListRoots, *now, out).unwrap();
        let third = server.ask_client(&InputRequest::ListRoots, *now, out).unwrap();
        let fourth = server.ping(*now, out).unwrap();
        let asked = pair.messages();
        assert_eq!(
            asked.iter().map(|m| m["method"].as_str().unwrap()).collect::<Vec<_>>(),
            ["sampling/createMessage", "roots/list", "roots/list", "ping"]
        );
        let ids: Vec<_> = asked.iter().map(|m| m["id"].clone()).collect();
        assert!((1..4).all(|n| !ids[..n].contains(&ids[n])), "LB-LIFE-07: {ids:?}");
        assert_eq!(asked[0]["params"]["maxTokens"], 5);
        assert!(asked[3].get("params").is_none());

        // Out of order, and with an error among them.
        let frame = result(&ids[1], r#"{"roots":[]}"#);
        let got = answer(pair.send(&frame));
        assert_eq!((got.ask, got.request), (second, Some(key)));
        assert_eq!(got.outcome.unwrap().get(), r#"{"roots":[]}"#);
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-1,"message":"no"}}}}"#, ids[0]);
        let got = answer(pair.send(&frame));
        assert_eq!((got.ask, got.outcome.unwrap_err().code), (first, -1));
        for (id, ask) in [(&ids[2], third), (&ids[3], fourth)] {
            let frame = result(id, "{}");
            let got = answer(pair.send(&frame));
            assert_eq!((got.ask, got.request), (ask, None));
        }
        // Each is answered once.
        for id in &ids {
            pair.refused(&result(id, "{}"));
        }
        assert!(pair.server.respond(pending, &CallToolResult::text("x"), &mut pair.out).is_written());
        assert_eq!(pair.message()["id"], 7);
    }
}

/// A choice of several came with 2025-11-25: before, nothing is sent, rather than a form without fields.
#[test]
fn what_a_revision_has_no_words_for() {
    let several = FormSchema::new().required("tags", MultiSelectSchema::new(["a", "b"]));
    let question = InputRequest::from(ElicitForm::new("Which?", several));
    for version in [V::V2025_06_18, V::V2025_11_25] {
        let mut pair = Pair::session(version);
        let key = pair.open(&call(version, "1", "t"));
        let Pair { server, out, now } = &mut pair;
        let asked = server.ask(key, &question, *now, out).map(drop);
        let tied = server.ask_for_task(&question, "t", *now, out).map(drop);
        if version.has_elicitation_modes() {
            assert_eq!((asked, tied), (Ok(()), Ok(())));
        } else {
            assert_eq!((asked, tied), (Err(AskError::Inexpressible), Err(AskError::Inexpressible)));
            assert!(out.is_empty());
        }
    }
}

/// What the negotiated revision lacks, or the client did not declare, cannot be asked.
#[test]
fn what_cannot_be_asked() {
    for version in LEGACY {
        let mut pair = Pair::session(version);
        let key = pair.open(&call(version, "1", "t"));
        let Pair { server, out, now } = &mut pair;
        let ask = |server: &mut mcp_proto::server::Connection, out: &mut Vec<u8>, question| {
            server.ask(key, &question, *now, out).map(drop)
        };
        let form_asked = ask(server, out, form());
        let url_asked = ask(server, out, url());
        assert_eq!(form_asked.is_ok(), version >= V::V2025_06_18, "{version}");
        assert_eq!(url_asked.is_ok(), version >= V::V2025_11_25, "{version}");
        assert!(matches!(url_asked, Ok(()) | Err(AskError::MissingCapability(_))));

        let mut pair = Pair::new().with_session(version, "{}");
        let key = pair.open(&call(version, "1", "t"));
        let Pair { server, out, now } = &mut pair;
        for question in [form(), url(), sample().into(), InputRequest::ListRoots] {
            assert!(matches!(server.ask(key, &question, *now, out), Err(AskError::MissingCapability(_))));
            assert!(matches!(server.ask_client(&question, *now, out), Err(AskError::MissingCapability(_))));
        }
        pair.silent();
    }
}

/// S-BASE-08, S-STDIO-02: nobody asks a client of 2026-07-28, nor a stream without a handshake; a modern
/// request on a stream with a session is no way to the session's client.
#[test]
fn a_modern_client_is_never_asked() {
    let mut pair = Pair::new();
    let key = pair.open(&super::pair::modern_of("1", "tools/call", "\"name\":\"t\"", EVERY_CAPABILITY, ""));
    let Pair { server, out, now } = &mut pair;
    assert_eq!(server.ask(key, &InputRequest::ListRoots, *now, out), Err(AskError::Modern));
    assert_eq!(server.ask_client(&InputRequest::ListRoots, *now, out), Err(AskError::Modern));
    assert_eq!(server.ping(*now, out), Err(AskError::Modern));
    let mut pair = pair.with_session(V::V2025_11_25, EVERY_CAPABILITY);
    let Pair { server, out, now } = &mut pair;
    assert_eq!(server.ask(key, &InputRequest::ListRoots, *now, out), Err(AskError::Modern));
    assert!(!server.notify("x", out, |_| {}).is_written() || server.session_version().is_some());
}

/// LS-LIFE-02: before `initialized` only a ping goes out on its own account. In the course of a call that
/// the client made, it is asked all the same.
#[test]
fn no_question_before_the_handshake_is_over() {
    let mut pair = Pair::new();
    pair.send(&initialize("1", "2025-11-25", EVERY_CAPABILITY));
    pair.text();
    let Pair { server, out, now } = &mut pair;
    assert_eq!(server.ask_client(&InputRequest::ListRoots, *now, out), Err(AskError::TooEarly));
    assert!(out.is_empty());
    assert!(server.ping(*now, out).is_ok());
    pair.text();
    pair.send(&super::pair::notification("notifications/initialized"));
    let Pair { server, out, now } = &mut pair;
    assert!(server.ask_client(&InputRequest::ListRoots, *now, out).is_ok());
    assert_eq!(pair.message()["method"], "roots/list");
}

/// A client that does not answer: the question is taken back and the call hears of it. Other deadlines
/// stay as they are.
#[test]
fn questions_time_out() {
    let config = config().limits(limits(|l| l.client_request_timeout = Some(Duration::from_secs(2)))).build();
    let mut pair = Pair::of(config).with_session(V::V2025_06_18, EVERY_CAPABILITY);
    let key = pair.open(&call(V::V2025_06_18, "1", "t"));
    let ask = |pair: &mut Pair| {
        let Pair { server, out, now } = pair;
        server.ask(key, &InputRequest::ListRoots, *now, out).unwrap()
    };
    let first = ask(&mut pair);
    assert!(pair.pass(2_000).is_empty());
    let second = ask(&mut pair);
    let ids: Vec<_> = pair.messages().iter().map(|m| m["id"].clone()).collect();
    assert_eq!(pair.server.next_deadline(), Some(at(3_000)));
    assert!(pair.pass(2_999).is_empty());
    pair.silent();
    let timed_out = |events: Vec<Event<'static>>, ask: AskKey| match <[_; 1]>::try_from(events) {
        Ok([Event::Answer(answer)]) => {
            assert_eq!((answer.ask, answer.request), (ask, Some(key)));
            assert_eq!(answer.outcome.unwrap_err().code, -32603);
        }
        other => panic!("{other:?}"),
    };
    timed_out(pair.pass(3_000), first);
    let cancelled = pair.message();
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &ids[0])
    );
    // LB-CANCEL-04: a late answer is noted and that is all.
    assert!(!pair.refused(&result(&ids[0], "{}")).answered);
    pair.silent();
    timed_out(pair.pass(10_000), second);
    assert_eq!(pair.message()["params"]["requestId"], ids[1]);
    assert!(pair.server.is_open(key), "the call itself goes on");
    assert_eq!(pair.server.next_deadline(), None);
}

/// Questions are withdrawn when their call ends, whichever way (LB-CANCEL-01).
#[test]
fn questions_are_withdrawn_with_their_call() {
    for end in 0..4 {
        let config = config().limits(limits(|l| l.request_timeout = Some(Duration::from_secs(1)))).build();
        let mut pair = Pair::of(config).with_session(V::V2025_06_18, EVERY_CAPABILITY);
        let frame = call(V::V2025_06_18, "1", "t");
        let (pending, _) = pair.tool(&frame);
        let key = pending.key();
        let Pair { server, out, now } = &mut pair;
        server.ask(key, &InputRequest::ListRoots, *now, out).unwrap();
        server.ask_client(&InputRequest::ListRoots, *now, out).unwrap();
        let ids: Vec<_> = pair.messages().iter().map(|m| m["id"].clone()).collect();
        match end {
            0 => assert!(matches!(pair.send(&cancel("1")), Some(Event::Cancelled { .. }))),
            1 => {
                assert!(pair.server.respond(pending, &CallToolResult::text("x"), &mut pair.out).is_written());
            }
            2 => assert!(pair.server.abandon(key, &mut pair.out).is_written()),
            _ => assert_eq!(pair.pass(2_000).len(), 1),
        }
        let cancelled: Vec<_> = pair
            .messages()
            .into_iter()
            .filter(|m| m["method"] == "notifications/cancelled")
            .map(|m| m["params"]["requestId"].clone())
            .collect();
        assert_eq!(cancelled, ids[..1], "case {end}: its own and no other");
        let Pair { server, out, now } = &mut pair;
        assert_eq!(server.ask(key, &InputRequest::ListRoots, *now, out), Err(AskError::RequestOver));
    }
}

/// A response is matched by the exact id, as a number.
#[test]
fn a_response_has_the_id_of_its_request() {
    let mut pair = Pair::session(V::V2025_06_18);
    let Pair { server, out, now } = &mut pair;
    server.ask_client(&InputRequest::ListRoots, *now, out).unwrap();
    let id = pair.message()["id"].clone();
    for wrong in [json!(id.to_string()), json!(id.as_i64().unwrap() + 1), json!(-1), json!("")] {
        assert!(!pair.refused(&result(&wrong, "{}")).answered);
    }
    let frame = result(&id, "{}");
    answer(pair.send(&frame));
}

/// At the end of the input the questions end, for no answer can come; so do parked calls, others go on.
#[test]
fn no_answer_comes_after_the_end_of_the_input() {
    let version = V::V2025_06_18;
    let mut pair = Pair::session(version);
    let frames = ["1", "2", "3"].map(|id| call(version, id, "t"));
    let [parked, asking, later] = [0, 1, 2].map(|n| pair.tool(&frames[n]).0);
    let asking_key = asking.key();
    let roots = InputRequired::default().ask("r", InputRequest::ListRoots);
    let Pair { server, out, now } = &mut pair;
    assert!(server.require_input(parked, &roots, out).unwrap().is_written());
    server.ask(asking_key, &InputRequest::ListRoots, *now, out).unwrap();
    assert_eq!(pair.messages().len(), 2);
    pair.server.end_of_input(&mut pair.out);
    let ended = pair.message();
    assert_eq!((&ended["id"], &ended["error"]["code"]), (&json!(1), &json!(-32603)));
    assert!(pair.server.is_open(asking_key));
    let Pair { server, out, now } = &mut pair;
    assert_eq!(server.ask(asking_key, &InputRequest::ListRoots, *now, out), Err(AskError::InputEnded));
    assert_eq!(server.ping(*now, out), Err(AskError::InputEnded));
    assert!(server.require_input(later, &roots, out).unwrap().is_written());
    assert_eq!(pair.message()["error"]["code"], -32603);
    assert_eq!(pair.server.next_deadline(), None);
    assert!(pair.server.respond(asking, &CallToolResult::text("x"), &mut pair.out).is_written());
    assert_eq!((pair.message()["id"].clone(), pair.server.in_flight()), (json!(2), 0));
}
