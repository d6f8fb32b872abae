//! Rounds by hand. [spec: basic/patterns/mrtr]

use mcp_proto::client::request::CallTool;
use mcp_proto::client::{CallError, Parked};
use mcp_proto::model::{InputResponses, Json};
use mcp_proto::service::client::{Paused, Turn};
use serde_json::{Value, json};

use crate::basics::client;
use crate::rig::{Rig, error, now, poll, text};

fn builder() -> mcp_proto::service::client::ClientBuilder {
    client().on_elicit(|_, _| async { panic!("by hand nobody else is asked") })
}

fn round(state: &str) -> Value {
    let form = json!({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}});
    json!({
        "resultType": "input_required", "requestState": state,
        "inputRequests": {"sure": {"method": "elicitation/create", "params": form}},
    })
}

fn accepted() -> InputResponses {
    [("sure", Json::parse(r#"{"action":"accept","content":{}}"#).unwrap())].into_iter().collect()
}

fn paused(turn: Result<Turn<CallTool>, CallError>) -> Paused<CallTool> {
    match turn.unwrap() {
        Turn::Input(paused) => paused,
        other => panic!("{other:?}"),
    }
}

fn begin() -> (mcp_proto::service::client::Client, Rig, Paused<CallTool>) {
    let (client, mut rig) = Rig::modern(builder(), json!({"tools": {}}));
    let mut call = client.call_tool("x", json!({"n": 1})).by_hand();
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    rig.answer(&request, round("first"));
    let paused = paused(now(call));
    assert_eq!(paused.requests().iter().map(|(key, _)| &**key).collect::<Vec<_>>(), ["sure"]);
    (client, rig, paused)
}

/// C-MRTR-03, C-MRTR-05: each round goes out under a fresh id, with the state as it came.
#[test]
fn rounds_are_answered_one_by_one() {
    let (_client, mut rig, first) = begin();
    let mut call = first.answer(accepted());
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    assert_eq!(request["params"]["requestState"], "first");
    assert_eq!(request["params"]["inputResponses"]["sure"]["action"], "accept");
    assert_eq!(request["params"]["arguments"]["n"], 1);
    rig.answer(&request, round("second"));
    let mut call = paused(now(call)).answer(accepted());
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    assert_eq!(request["params"]["requestState"], "second");
    rig.answer(&request, text("done"));
    assert!(matches!(now(call).unwrap(), Turn::Done(result) if result.texts() == "done"));
}

#[test]
fn a_question_without_an_answer_fails_the_call() {
    let (_client, mut rig, first) = begin();
    let mut call = first.answer(InputResponses::new());
    rig.nothing();
    let error = error(poll(&mut call));
    assert!(matches!(&error, CallError::Invalid(_)) && error.to_string().contains("sure"), "{error}");
}

#[test]
fn a_pause_that_is_dropped_is_the_end_of_the_call() {
    let (_client, mut rig, first) = begin();
    drop(first);
    // Nothing is open on the wire: the server does not wait.
    rig.nothing();
    assert_eq!(rig.at_work(), 0);
}

/// A call can be stored, and goes on in another process.
#[test]
fn a_call_is_parked_and_resumed_elsewhere() {
    let (_client, mut rig, first) = begin();
    let mut park = Box::pin(first.park());
    assert!(poll(&mut park).is_pending());
    rig.settle();
    let stored = serde_json::to_string(&now(park).unwrap()).unwrap();
    drop(rig);

    let parked: Parked = serde_json::from_str(&stored).unwrap();
    assert_eq!(parked.requests().unwrap().len(), 1);
    let (client, mut rig) = Rig::modern(builder(), json!({"tools": {}}));
    let wrong = client.resume::<mcp_proto::client::request::GetPrompt>(parked.clone(), accepted());
    assert!(matches!(now(wrong), Err(CallError::Invalid(_))));
    let mut call = client.resume::<CallTool>(parked, accepted());
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    assert_eq!(request["params"]["requestState"], "first");
    assert_eq!(request["params"]["name"], "x");
    rig.answer(&request, text("done"));
    assert_eq!(now(call).unwrap().texts(), "done");
}

/// A server that asks for ever is stopped.
#[test]
fn rounds_are_bounded() {
    let asking = client().on_elicit(|form, _| async move { Ok(form.accept_defaults()) });
    let (client, mut rig) = Rig::modern(asking, json!({"tools": {}}));
    let mut call = client.call_tool("x", ()).max_rounds(3);
    assert!(poll(&mut call).is_pending());
    let mut sent = 0;
    loop {
        let lines = rig.lines();
        let Some(request) = lines.first() else { break };
        sent += 1;
        rig.answer(request, round("again"));
    }
    assert_eq!(sent, 4);
    assert!(matches!(error(poll(&mut call)), CallError::TooManyRounds));
}

/// Options that would leave a decision to nobody do not count.
#[test]
fn what_is_not_by_hand_is_done() {
    use mcp_proto::client::{CallOptions, Rounds, TaskUse};
    let asking = client().on_elicit(|form, _| async move { Ok(form.accept_defaults()) });
    let (client, mut rig) = Rig::modern(asking, json!({"tools": {}}));
    let options = CallOptions::new().rounds(Rounds::Manual).tasks(TaskUse::Expose);
    let mut call = client.call_tool("x", ()).options(options);
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    rig.answer(&request, round("first"));
    let request = rig.one();
    rig.answer(&request, text("done"));
    assert_eq!(now(call).unwrap().texts(), "done");
}
