//! What only sessions have: requests of the server, batches, subscriptions by method.

use mcp_proto::client::request::{CallTool, Ping, SetLevel};
use mcp_proto::client::{Asked, CallOptions, Event, ViolationKind};
use mcp_proto::model::{
    ClientCapabilities, CreateMessageResult, ElicitResult, InputRequest, InputResponse, ListRootsResult,
    LoggingLevel, ProtocolVersion as V, Root, SamplingContent,
};
use mcp_proto::rpc::{self, code};
use serde_json::{Value, json};

use super::script::{LEGACY, Script, ask, config, error, initialized, limits, notification, result};

const FORM: &str =
    r#"{"message":"Sure?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}"#;
const URL: &str = r#"{"mode":"url","message":"Go","url":"https://example.com","elicitationId":"e1"}"#;
const SAMPLE: &str = r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5}"#;

/// A request that reaches the driver.
fn asked(script: &mut Script, frame: &str) -> Asked {
    match script.send(frame) {
        Some(Event::Asked(asked)) => asked,
        other => panic!("expected a question, got {other:?} and {:?}", script.sent()),
    }
}

/// A request that the machine refuses, with the code it answers.
fn refused(script: &mut Script, frame: &str) -> i64 {
    assert_eq!(script.strange(frame), ViolationKind::Request, "{frame}");
    script.one()["error"]["code"].as_i64().unwrap()
}

#[test]
fn the_server_asks_and_is_answered() {
    for version in LEGACY {
        let mut script = Script::legacy(version);
        let roots = asked(&mut script, &ask("\"r-1\"", "roots/list", "{}"));
        assert_eq!((roots.request, roots.call), (InputRequest::ListRoots, None));
        let sample = asked(&mut script, &ask("0", "sampling/createMessage", SAMPLE));
        assert!(matches!(sample.request, InputRequest::CreateMessage(_)));
        // Out of order, and each under the id of the server, with its type.
        let answer = CreateMessageResult::new("m1", "ho");
        assert!(script.client.respond(sample.ask, Ok(answer.into()), &mut script.out));
        assert_eq!(
            script.one(),
            json!({"jsonrpc": "2.0", "id": 0, "result": {"role": "assistant", "content": {"type": "text", "text": "ho"}, "model": "m1"}})
        );
        let answer = ListRootsResult::new([Root::new("file:///home")]);
        assert!(script.client.respond(roots.ask, Ok(answer.into()), &mut script.out));
        assert_eq!(
            script.one(),
            json!({"jsonrpc": "2.0", "id": "r-1", "result": {"roots": [{"uri": "file:///home"}]}})
        );
        // Once.
        assert!(!script.client.respond(roots.ask, Ok(ListRootsResult::default().into()), &mut script.out));
        assert!(script.sent().is_empty());
        if version.has_elicitation() {
            let form = asked(&mut script, &ask("1", "elicitation/create", FORM));
            assert!(matches!(form.request, InputRequest::ElicitForm(_)), "C-ELIC-07");
            assert!(script.client.respond(form.ask, Ok(ElicitResult::decline().into()), &mut script.out));
            assert_eq!(script.one()["result"], json!({"action": "decline"}));
        } else {
            assert_eq!(refused(&mut script, &ask("1", "elicitation/create", FORM)), -32601);
        }
    }
    let mut script = Script::legacy(V::V2025_11_25);
    let url = asked(&mut script, &ask("1", "elicitation/create", URL));
    match &url.request {
        InputRequest::ElicitUrl(url) => assert_eq!(url.elicitation_id.as_deref(), Some("e1")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_what_was_declared_can_be_asked() {
    // LC-ELIC-05, LC-ROOT-03, C-SAMP-14, C-SAMP-15
    let tools = r#"{"messages":[],"maxTokens":5,"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
    let choice = r#"{"messages":[],"maxTokens":5,"toolChoice":{"mode":"auto"}}"#;
    let context = r#"{"messages":[],"maxTokens":5,"includeContext":"thisServer"}"#;
    let none = ClientCapabilities::new;
    for (capabilities, method, params, code) in [
        (none(), "roots/list", "{}", -32601),
        (none(), "sampling/createMessage", SAMPLE, -32601),
        (none(), "elicitation/create", FORM, -32601),
        (none().form_elicitation(), "elicitation/create", URL, -32602),
        (none().url_elicitation(), "elicitation/create", FORM, -32602),
        (none().sampling(), "sampling/createMessage", tools, -32602),
        (none().sampling(), "sampling/createMessage", choice, -32602),
        (none().sampling(), "sampling/createMessage", context, -32602),
        (none().roots(), "tasks/get", r#"{"taskId":"t"}"#, -32601),
        (none().roots(), "vendor/x", "{}", -32601),
        (none().roots(), "", "{}", -32601),
    ] {
        let mut script = Script::legacy_of(config().capabilities(capabilities), V::V2025_11_25);
        assert_eq!(refused(&mut script, &ask("1", method, params)), code, "{method} {params}");
    }
}

#[test]
fn questions_that_cannot_be_read_are_refused() {
    // LC-SAMP-03, M07
    let result_alone = r#"{"messages":[{"role":"user","content":[{"type":"tool_result","toolUseId":"u","content":[]}]}],"maxTokens":5}"#;
    let mut script = Script::legacy(V::V2025_11_25);
    for (method, params) in [
        ("sampling/createMessage", "{}"),
        ("sampling/createMessage", r#"{"messages":{},"maxTokens":5}"#),
        ("sampling/createMessage", result_alone),
        ("elicitation/create", r#"{"message":"m"}"#),
        ("elicitation/create", r#"{"mode":"zzz","message":"m"}"#),
        ("elicitation/create", r#"{"message":5,"requestedSchema":{"type":"object","properties":{}}}"#),
        ("elicitation/create", "[]"),
    ] {
        assert_eq!(refused(&mut script, &ask("1", method, params)), -32602, "{method} {params}");
    }
    // A frame that is no message at all gets no answer.
    assert_eq!(
        script.strange(r#"{"jsonrpc":"2.0","id":{},"method":"roots/list"}"#),
        ViolationKind::Malformed
    );
    assert_eq!(script.strange(r#"{"jsonrpc":"2.0","id":1,"method":7}"#), ViolationKind::Malformed);
    assert!(script.sent().is_empty());
}

/// What a session is to log is of that session: the next one is told the same, before what waits.
#[test]
fn the_level_is_set_again_after_a_restart() {
    let set = |script: &mut Script, level: LoggingLevel| {
        let (_, sent) = script.call(&SetLevel::new(level), &CallOptions::new());
        assert_eq!(sent["method"], "logging/setLevel");
        sent["id"].clone()
    };
    let restart = |script: &mut Script, answer: &str| {
        script.client.eof();
        script.due();
        script.start();
        let hello = script.one();
        assert_eq!(hello["method"], "initialize");
        let call = CallTool::new("t");
        script.client.call(&call, &CallOptions::new(), script.now, &mut script.out).unwrap();
        script.send(&result(&hello["id"], answer));
        let sent = script.sent();
        assert_eq!(sent[0]["method"], "notifications/initialized");
        assert_eq!(sent.last().unwrap()["method"], "tools/call");
        sent[1..sent.len() - 1].to_vec()
    };
    let hello = initialized("2025-11-25");
    let mut script = Script::legacy(V::V2025_11_25);
    assert!(restart(&mut script, &hello).is_empty(), "nobody said anything");
    // One that is refused does not count, and of two the later one does, whatever is answered first.
    let (one, two) = (set(&mut script, LoggingLevel::Debug), set(&mut script, LoggingLevel::Warning));
    script.completed(&result(&two, "{}"));
    script.completed(&result(&one, "{}"));
    let refused = set(&mut script, LoggingLevel::Error);
    assert!(matches!(script.send(&error(&refused, -32602, "")), Some(Event::Failed { .. })));
    for _ in 0..2 {
        let [again] = &restart(&mut script, &hello)[..] else { panic!() };
        assert_eq!(
            (&again["method"], &again["params"]),
            (&json!("logging/setLevel"), &json!({"level": "warning"}))
        );
        assert!(script.send(&result(&again["id"], "{}")).is_none(), "nobody waits for that");
    }
    // One that logs no more is not told.
    let mute = hello.replace(r#""logging":{},"#, "");
    assert!(restart(&mut script, &mute).is_empty());
    let [_] = &restart(&mut script, &hello)[..] else { panic!() };
    let newer = set(&mut script, LoggingLevel::Info);
    script.completed(&result(&newer, "{}"));
    let [again] = &restart(&mut script, &hello)[..] else { panic!() };
    assert_eq!(again["params"], json!({"level": "info"}));
}

/// A question is never left without an answer because of its id.
#[test]
fn a_question_with_an_id_that_is_too_long_is_refused() {
    let mut script = Script::legacy(V::V2025_11_25);
    let id = "x".repeat(300);
    let question = ask(&format!("\"{id}\""), "roots/list", "{}");
    assert_eq!(script.strange(&question), ViolationKind::Request);
    let [answer] = &script.sent()[..] else { panic!() };
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32600)));
    let mut script = Script::modern();
    assert_eq!(script.strange(&question), ViolationKind::Request);
    assert!(script.sent().is_empty(), "there are no such requests");
}

#[test]
fn a_malformed_request_does_not_end_the_call_of_the_same_number() {
    let mut script = Script::legacy(V::V2025_11_25);
    let (call, sent) = script.tool("t", &CallOptions::new());
    let same = format!(r#"{{"jsonrpc":"2.0","id":{},"method":7}}"#, sent["id"]);
    assert_eq!(script.strange(&same), ViolationKind::Malformed);
    let same = ask(&sent["id"].to_string(), "roots/list", "{}");
    asked(&mut script, &same);
    assert_eq!(script.completed(&result(&sent["id"], r#"{"content":[]}"#)).call, call);
}

#[test]
fn a_ping_is_answered_at_once_also_during_the_handshake() {
    // LB-PING-01
    for version in LEGACY {
        let mut script = Script::started(config().mode(mcp_proto::client::Mode::Legacy).build());
        let hello = script.one();
        assert!(script.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).is_none());
        assert_eq!(script.one(), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        // Anything else has to wait.
        assert_eq!(refused(&mut script, &ask("1", "roots/list", "{}")), i64::from(code::INVALID_REQUEST));
        script.send(&result(&hello["id"], &initialized(version.as_str())));
        script.one();
        for params in ["", r#","params":null"#, r#","params":{"_meta":{}}"#] {
            let frame = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping"{params}}}"#);
            assert!(script.send(&frame).is_none());
            assert_eq!(script.one(), json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
        }
        let (_, sent) = script.call(&Ping::new(), &CallOptions::new());
        script.completed(&result(&sent["id"], "{}")).decode::<Ping>().unwrap();
    }
}

#[test]
fn the_server_takes_a_question_back() {
    let mut script = Script::legacy(V::V2025_06_18);
    let question = asked(&mut script, &ask("5", "elicitation/create", FORM));
    let other = asked(&mut script, &ask("\"5\"", "elicitation/create", FORM));
    for unknown in [r#"{"requestId":6}"#, "{}", r#"{"requestId":{}}"#, r#"{"requestId":null}"#, "[]"] {
        // B-CANCEL-07
        assert!(script.send(&notification("notifications/cancelled", unknown)).is_none());
    }
    match script.send(&notification("notifications/cancelled", r#"{"requestId":5,"reason":"late"}"#)) {
        Some(Event::AskCancelled { ask, reason }) => {
            assert_eq!((ask, reason.as_deref()), (question.ask, Some("late")));
        }
        other => panic!("{other:?}"),
    }
    // LB-CANCEL-03
    assert!(!script.client.respond(question.ask, Ok(ElicitResult::cancel().into()), &mut script.out));
    assert!(script.sent().is_empty());
    assert!(script.client.respond(other.ask, Ok(ElicitResult::cancel().into()), &mut script.out));
    assert_eq!(script.one()["id"], "5");
    // The id may be used again, for it is over.
    asked(&mut script, &ask("5", "elicitation/create", FORM));
}

#[test]
fn a_refusal_is_an_error_and_a_wrong_kind_of_answer_is_ours() {
    // LC-SAMP-02
    let mut script = Script::legacy(V::V2025_11_25);
    let question = asked(&mut script, &ask("1", "sampling/createMessage", SAMPLE));
    let refusal = rpc::Error::new(code::SAMPLING_REFUSED, "User rejected sampling request");
    assert!(script.client.respond(question.ask, Err(refusal), &mut script.out));
    assert_eq!(script.one()["error"]["code"], -1);
    let question = asked(&mut script, &ask("2", "sampling/createMessage", SAMPLE));
    let wrong = InputResponse::from(ElicitResult::decline());
    assert!(script.client.respond(question.ask, Ok(wrong), &mut script.out));
    assert_eq!(script.one()["error"]["code"], -32603);
}

#[test]
fn m07_an_answer_is_that_of_the_revision() {
    for version in LEGACY {
        let mut script = Script::legacy(version);
        let question = asked(&mut script, &ask("1", "sampling/createMessage", SAMPLE));
        let blocks = SamplingContent::Many(vec!["a".into(), "b".into()]);
        let answer = CreateMessageResult::new("m1", blocks);
        assert!(script.client.respond(question.ask, Ok(answer.into()), &mut script.out));
        let content = script.one()["result"]["content"].clone();
        assert_eq!(content.is_array(), version >= V::V2025_11_25, "{version}: {content}");
    }
}

#[test]
fn questions_are_bounded() {
    let mut script = Script::legacy_of(config().limits(limits(|limits| limits.max_asks = 3)), V::V2025_11_25);
    let mut open = Vec::new();
    for id in 0..3 {
        open.push(asked(&mut script, &ask(&id.to_string(), "roots/list", "{}")).ask);
    }
    assert_eq!(refused(&mut script, &ask("9", "roots/list", "{}")), -32603);
    // An id that is in use.
    assert_eq!(refused(&mut script, &ask("1", "roots/list", "{}")), -32600);
    assert!(script.client.respond(open[0], Ok(ListRootsResult::default().into()), &mut script.out));
    script.one();
    asked(&mut script, &ask("9", "roots/list", "{}"));
    // The end of the stream ends them.
    script.client.eof();
    assert!(!script.client.respond(open[1], Ok(ListRootsResult::default().into()), &mut script.out));
    assert!(script.sent().is_empty());
}

#[test]
fn arrays_are_read_in_the_one_revision_that_has_them() {
    // LB batch: 2025-03-26 receives them.
    for version in LEGACY {
        let mut script = Script::legacy(version);
        let (call, sent) = script.tool("t", &CallOptions::new());
        let array = format!(
            r#"[{},{},{},5,[1]]"#,
            notification("notifications/message", r#"{"level":"info","data":1}"#),
            result(&sent["id"], r#"{"content":[]}"#),
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        );
        if version != V::V2025_03_26 {
            assert_eq!(script.strange(&array), ViolationKind::Batch);
            assert!(script.client.is_open(call) && script.sent().is_empty());
            continue;
        }
        let Some(Event::Batch(batch)) = script.send(&array) else { panic!("no batch") };
        assert_eq!(batch.len(), 5);
        let mut heard = Vec::new();
        for member in batch {
            heard.push(match script.client.handle_member(member, script.now, &mut script.out) {
                Some(Event::Log { .. }) => "log",
                Some(Event::Complete(done)) => {
                    assert_eq!(done.call, call);
                    "done"
                }
                Some(Event::Violation(violation)) => match violation.kind {
                    ViolationKind::Batch => "inner",
                    _ => "odd",
                },
                None => "ping",
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(heard, ["log", "done", "ping", "odd", "inner"]);
        assert_eq!(script.one()["id"], 1);
        assert_eq!(script.strange("[]"), ViolationKind::Malformed);
    }
}

#[test]
fn changed_roots_are_told() {
    // LC-ROOT-02
    let mut script = Script::started(config().mode(mcp_proto::client::Mode::Legacy).build());
    let hello = script.one();
    assert!(!script.client.notify("notifications/roots/list_changed", &mut script.out, |_| {}));
    assert!(script.sent().is_empty());
    script.send(&result(&hello["id"], &initialized("2025-06-18")));
    script.one();
    assert!(script.client.notify("notifications/roots/list_changed", &mut script.out, |_| {}));
    assert_eq!(script.one(), json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
}

#[test]
fn what_belongs_to_a_task_says_so() {
    // LB-TASK-12
    let mut script = Script::legacy(V::V2025_11_25);
    let related = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}"#;
    let question = asked(&mut script, &ask("1", "roots/list", &format!("{{{related}}}")));
    assert!(script.client.respond(question.ask, Ok(ListRootsResult::default().into()), &mut script.out));
    let meta: Value = json!({"io.modelcontextprotocol/related-task": {"taskId": "t1"}});
    assert_eq!(script.one()["result"], json!({"roots": [], "_meta": meta}));
}
