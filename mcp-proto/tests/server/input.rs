//! `input_required`: what may be asked of whom.

use mcp_proto::model::{
    BooleanSchema, CallToolResult, CreateMessage, ElicitForm, ElicitUrl, FormSchema, IncludeContext,
    InputRequest, InputRequired, Json, JsonSchema, Meta, ProtocolVersion as V, SamplingMessage, Tool,
};
use mcp_proto::server::{Call, Channel, Delivery};
use serde_json::json;

use super::pair::{LEGACY, Pair, call, modern_of};

pub(super) fn form() -> InputRequest {
    ElicitForm::new("Sure?", FormSchema::new().required("ok", BooleanSchema::new())).into()
}

pub(super) fn url() -> InputRequest {
    ElicitUrl::new("Pay", "https://example.com/pay").elicitation_id("e-1").into()
}

pub(super) fn sample() -> CreateMessage {
    CreateMessage::new([SamplingMessage::user("hi")], 5)
}

fn asking(capabilities: &str) -> String {
    modern_of("1", "tools/call", "\"name\":\"t\"", capabilities, "")
}

/// M06, S-META-04, S-MRTR-13, S-WIRE-02: what the request did not declare is not asked for; the error
/// names it.
#[test]
fn m06_capabilities_gate_questions() {
    let with_tools = || InputRequest::from(sample().tools([Tool::new("t", JsonSchema::any_object())]));
    let with_context = || InputRequest::from(sample().include_context(IncludeContext::ThisServer));
    let cases: [(&str, InputRequest, Option<serde_json::Value>); 15] = [
        ("{}", form(), Some(json!({"elicitation": {"form": {}}}))),
        ("{}", url(), Some(json!({"elicitation": {"url": {}}}))),
        (r#"{"elicitation":{}}"#, form(), None),
        (r#"{"elicitation":{}}"#, url(), Some(json!({"elicitation": {"url": {}}}))),
        (r#"{"elicitation":{"url":{}}}"#, form(), Some(json!({"elicitation": {"form": {}}}))),
        (r#"{"elicitation":{"url":{}}}"#, url(), None),
        (r#"{"elicitation":{"form":{}}}"#, form(), None),
        (r#"{"elicitation":{"form":{}}}"#, url(), Some(json!({"elicitation": {"url": {}}}))),
        ("{}", sample().into(), Some(json!({"sampling": {}}))),
        (r#"{"sampling":{}}"#, sample().into(), None),
        (r#"{"sampling":{}}"#, with_tools(), Some(json!({"sampling": {"tools": {}}}))),
        (r#"{"sampling":{"tools":{}}}"#, with_tools(), None),
        (r#"{"sampling":{"tools":{}}}"#, with_context(), Some(json!({"sampling": {"context": {}}}))),
        ("{}", InputRequest::ListRoots, Some(json!({"roots": {}}))),
        (r#"{"roots":{}}"#, InputRequest::ListRoots, None),
    ];
    // One stream for all: what an earlier request declared has no effect (S-STATE-01).
    let mut pair = Pair::new();
    for (capabilities, question, required) in cases {
        let frame = asking(capabilities);
        let (pending, _) = pair.tool(&frame);
        let key = pending.key();
        let method = question.method();
        let input = InputRequired::default().ask("q", question);
        let Pair { server, out, .. } = &mut pair;
        match (server.require_input(pending, &input, out), required) {
            (Ok(delivery), None) => {
                assert!(delivery.is_written());
                let answer = pair.message();
                assert_eq!(answer["result"]["resultType"], "input_required");
                assert_eq!(answer["result"]["inputRequests"]["q"]["method"], method);
            }
            (Err(missing), Some(required)) => {
                // The request is still open and can be answered otherwise, or refused like this:
                assert!(server.is_open(key) && out.is_empty());
                assert!(server.refuse_missing(missing, out).is_written());
                let answer = pair.message();
                assert_eq!(answer["error"]["code"], -32021);
                assert_eq!(answer["error"]["data"], json!({"requiredCapabilities": required}));
            }
            (outcome, required) => panic!("{capabilities} {method}: {outcome:?}, {required:?}"),
        }
        assert_eq!(pair.server.in_flight(), 0);
    }
}

/// M06: one question that may not be asked keeps all of them back.
#[test]
fn m06_one_undeclared_kind_stops_the_round() {
    let mut pair = Pair::new();
    let frame = asking(r#"{"elicitation":{}}"#);
    let (pending, _) = pair.tool(&frame);
    let input = InputRequired::default().ask("a", form()).ask("b", InputRequest::ListRoots);
    let missing = pair.server.require_input(pending, &input, &mut pair.out).unwrap_err();
    pair.silent();
    assert_eq!(missing.required.to_string(), r#"{"roots":{}}"#);
    // The handler may still do without.
    let Pair { server, out, .. } = &mut pair;
    assert!(server.respond(missing.pending, &CallToolResult::text("without"), out).is_written());
    assert_eq!(pair.message()["result"]["content"][0]["text"], "without");
}

/// S-META-04: the error names all that the round needs and the client did not declare, not the first only.
#[test]
fn all_missing_capabilities_are_named() {
    let mut pair = Pair::new();
    let frame = asking(r#"{"elicitation":{"form":{}},"sampling":{"context":{}}}"#);
    let (pending, _) = pair.tool(&frame);
    let with_tools = sample().tools([Tool::new("t", JsonSchema::any_object())]);
    let input = InputRequired::default()
        .ask("a", form())
        .ask("b", url())
        .ask("c", with_tools)
        .ask("d", InputRequest::ListRoots);
    let missing = pair.server.require_input(pending, &input, &mut pair.out).unwrap_err();
    assert!(pair.server.refuse_missing(missing, &mut pair.out).is_written());
    assert_eq!(
        pair.message()["error"]["data"],
        json!({"requiredCapabilities": {"elicitation": {"url": {}}, "sampling": {"tools": {}}, "roots": {}}})
    );
}

/// S-MRTR-01, S-WIRE-14: the whole answer, with state and metadata; no cache hints on it.
#[test]
fn the_shape_of_input_required() {
    let mut pair = Pair::new();
    let frame = asking(r#"{"elicitation":{"form":{},"url":{}},"roots":{}}"#);
    let (pending, _) = pair.tool(&frame);
    let input = InputRequired::default()
        .ask("sure", form())
        .ask("roots", InputRequest::ListRoots)
        .request_state("opaque")
        .meta(Meta::new().with("com.example/x", Json::parse("1").unwrap()));
    assert!(pair.server.require_input(pending, &input, &mut pair.out).unwrap().is_written());
    assert_eq!(
        pair.message(),
        json!({"jsonrpc": "2.0", "id": 1, "result": {
            "resultType": "input_required",
            "_meta": {
                "io.modelcontextprotocol/serverInfo": {"name": "fixture", "version": "1.0.0"},
                "com.example/x": 1,
            },
            "inputRequests": {
                "sure": {"method": "elicitation/create", "params": {"mode": "form", "message": "Sure?",
                    "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}}},
                "roots": {"method": "roots/list"},
            },
            "requestState": "opaque",
        }})
    );
}

/// S-MRTR-02: the three methods that may ask do ask.
#[test]
fn prompts_and_resources_may_ask_too() {
    let mut pair = Pair::new();
    let capabilities = r#"{"roots":{}}"#;
    let input = InputRequired::default().ask("r", InputRequest::ListRoots);
    let frame = modern_of("1", "prompts/get", "\"name\":\"p\"", capabilities, "");
    let Ok(Call::GetPrompt(pending, _)) = pair.request(&frame).typed() else { panic!() };
    assert!(pair.server.require_input(pending, &input, &mut pair.out).unwrap().is_written());
    let frame = modern_of("2", "resources/read", "\"uri\":\"a:b\"", capabilities, "");
    let Ok(Call::ReadResource(pending, _)) = pair.request(&frame).typed() else { panic!() };
    assert!(pair.server.require_input(pending, &input, &mut pair.out).unwrap().is_written());
    let messages = pair.messages();
    assert!(messages.iter().all(|m| m["result"]["inputRequests"]["r"]["method"] == "roots/list"));
    assert_eq!(messages.len(), 2);
}

/// S-MRTR-12: an answer that asks for nothing and carries nothing is a fault of ours, and the client is
/// told so instead of being left with it.
#[test]
fn nothing_to_ask_is_an_internal_error() {
    for version in V::ALL {
        let mut pair = Pair::speaking(version);
        let frame = call(version, "1", "t");
        let (pending, _) = pair.tool(&frame);
        let delivery = pair.server.require_input(pending, &InputRequired::default(), &mut pair.out).unwrap();
        assert!(delivery.is_written());
        assert_eq!(pair.message()["error"]["code"], -32603, "{version}");
        assert_eq!(pair.server.next_deadline(), None);
    }
}

/// M06, S-MRTR-15, S-MRTR-16, S-MRTR-17: what a retry brings along.
#[test]
fn m06_answers_of_a_retry() {
    let mut pair = Pair::new();
    let retry = |members: &str| modern_of("1", "tools/call", &format!("\"name\":\"t\"{members}"), "{}", "");
    let frame = retry(r#","inputResponses":{"unknown":{"x":1},"a\u0062":null},"requestState":"s\"""#);
    let (pending, params) = pair.tool(&frame);
    let responses = params.retry.input_responses.unwrap();
    assert_eq!(
        responses.iter().map(|(n, v)| (n, v.get())).collect::<Vec<_>>(),
        [("unknown", r#"{"x":1}"#), ("ab", "null")]
    );
    assert_eq!(params.retry.request_state.as_deref(), Some("s\""));
    drop(pending);
    pair.send(&super::pair::cancel("1"));
    let frame = retry(r#","inputResponses":{}"#);
    let (_, params) = pair.tool(&frame);
    assert!(params.retry.input_responses.is_some_and(|r| r.is_empty()));
    pair.send(&super::pair::cancel("1"));
    for bad in [
        r#","inputResponses":[]"#,
        r#","inputResponses":"x""#,
        r#","requestState":7"#,
        r#","inputResponses":{"a":1,"a":2}"#,
    ] {
        let frame = retry(bad);
        let refusal = pair.request(&frame).typed().unwrap_err();
        assert!(pair.server.refuse(refusal, &mut pair.out).is_written());
        assert_eq!(pair.message()["error"]["code"], -32602, "{bad}");
    }
}

/// A question after the end is discarded, also where it could not have been asked.
#[test]
fn questions_after_the_end_are_discarded() {
    for version in [V::LATEST, LEGACY[3]] {
        let mut pair = Pair::speaking(version);
        let frame = call(version, "1", "t");
        let (pending, _) = pair.tool(&frame);
        pair.send(&super::pair::cancel("1"));
        let input = InputRequired::default().ask("q", form());
        assert_eq!(pair.server.require_input(pending, &input, &mut pair.out).unwrap(), Delivery::Discarded);
        pair.silent();
    }
}
