//! One call: answers, faults, time, cancellation, progress.

use std::time::Duration;

use mcp_proto::client::request::{
    CallTool, Complete, Custom, Discover, GetPrompt, ListPrompts, ListTools, Ping, SetLevel, Subscribe,
};
use mcp_proto::client::{CallError, CallOptions, Event, ViolationKind};
use mcp_proto::model::{
    CompletionReference, Json, LoggingLevel, Meta, PromptReference, ProtocolVersion as V,
};
use serde_json::{Value, json};

use super::script::{LEGACY, Script, at, config, error, limits, notification, result};

const DONE: &str = r#"{"resultType":"complete","content":[]}"#;

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn progress(token: &Value, value: &str) -> String {
    notification("notifications/progress", &format!(r#"{{"progressToken":{token},"progress":{value}}}"#))
}

#[test]
fn requests_are_those_of_the_revision() {
    let options =
        CallOptions::new().meta(Meta::new().with("com.example/trace", "x")).log_level(LoggingLevel::Debug);
    let request = CallTool::with("add", &json!({"a": 1})).unwrap();
    let mut script = Script::modern();
    let (_, sent) = script.call(&request, &options);
    // C-BASE-01, C-BASE-03
    assert!(sent["id"].is_i64());
    assert_eq!(sent["params"]["name"], "add");
    assert_eq!(sent["params"]["arguments"], json!({"a": 1}));
    let meta = &sent["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "debug");
    assert_eq!(meta["com.example/trace"], "x");
    assert_eq!(meta.get("progressToken"), None);
    for version in LEGACY {
        let mut script = Script::legacy(version);
        let (_, sent) = script.call(&request, &options);
        assert_eq!(
            sent["params"],
            json!({"name": "add", "arguments": {"a": 1}, "_meta": {"com.example/trace": "x"}}),
            "{version}"
        );
        let (_, sent) = script.call(&Ping::new(), &CallOptions::new());
        assert_eq!(sent.get("params"), None, "{version}");
        let (_, sent) = script.call(&ListTools::new(), &CallOptions::new());
        assert_eq!(sent.get("params"), None, "{version}");
        let (_, sent) = script.call(&SetLevel::new(LoggingLevel::Error), &CallOptions::new());
        assert_eq!(
            (&sent["method"], &sent["params"]),
            (&json!("logging/setLevel"), &json!({"level": "error"}))
        );
        let (_, sent) = script.call(&Subscribe::new("a:b"), &CallOptions::new());
        assert_eq!(
            (&sent["method"], &sent["params"]),
            (&json!("resources/subscribe"), &json!({"uri": "a:b"}))
        );
    }
}

#[test]
fn params_are_fitted_to_the_revision_whenever_it_is_settled() {
    let reference = CompletionReference::Prompt(match CompletionReference::prompt("p") {
        CompletionReference::Prompt(prompt) => titled(prompt),
        _ => unreachable!(),
    });
    let request = Complete::new(reference, "a", "b").known("c", "d");
    for version in LEGACY.into_iter().chain([V::LATEST]) {
        let mut script = Script::speaking(version);
        let (_, sent) = script.call(&request, &CallOptions::new());
        let new = version >= V::V2025_06_18;
        assert_eq!(sent["params"].get("context").is_some(), new, "{version}");
        assert_eq!(sent["params"]["ref"].get("title").is_some(), new, "{version}");
    }
    // A call that waits is fitted when it leaves.
    let mut script = Script::started(config().build());
    let probe = script.one();
    script.client.call(&request, &CallOptions::new(), script.now, &mut script.out).unwrap();
    script.send(&error(&probe["id"], -32601, ""));
    let hello = script.one();
    script.send(&result(&hello["id"], &super::script::initialized("2024-11-05")));
    let sent = script.sent();
    assert_eq!(
        sent[1]["params"],
        json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "b"}})
    );
}

fn titled(mut prompt: PromptReference) -> PromptReference {
    prompt.title = Some("P".into());
    prompt
}

#[test]
fn params_must_be_an_object_and_never_break_a_line() {
    // B-STDIO-01, C-STDIO-02
    let mut script = Script::modern();
    for bad in ["[]", "5", "null", "\"x\""] {
        let request = Custom::new("vendor/x").params(Json::parse(bad).unwrap());
        let failed = script.client.call(&request, &CallOptions::new(), script.now, &mut script.out);
        assert!(matches!(failed, Err(CallError::Invalid(_))), "{bad}");
    }
    assert!(script.out.is_empty());
    let params =
        Json::parse("{\n \"a\" : 1 , \"_meta\": {\"com.example/x\": 1,\n\"progressToken\":\"mine\"}}")
            .unwrap();
    let (_, sent) = script.call(&Custom::new("vendor/x").params(params), &CallOptions::new());
    assert_eq!((&sent["method"], &sent["params"]["a"]), (&json!("vendor/x"), &json!(1)));
    assert_eq!(sent["params"]["_meta"]["com.example/x"], 1);
    assert_eq!(sent["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(sent["params"]["_meta"].get("progressToken"), None);
    // `initialize` and `subscriptions/listen` have ways of their own.
    for method in ["initialize", "subscriptions/listen"] {
        let failed =
            script.client.call(&Custom::new(method), &CallOptions::new(), script.now, &mut script.out);
        assert!(matches!(failed, Err(CallError::NotOffered(_))));
    }
    // A raw value with line breaks inside of arguments.
    let raw = serde_json::value::RawValue::from_string("{\"a\":\n[1,\r\n2]}".to_owned()).unwrap();
    let (_, sent) = script.call(&CallTool::with("t", &raw).unwrap(), &CallOptions::new());
    assert_eq!(sent["params"]["arguments"], json!({"a": [1, 2]}));
}

#[test]
fn what_the_server_did_not_declare_is_not_called() {
    // LB-LIFE-03
    let options = CallOptions::new();
    let facts = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}"#;
    let mut script = Script::started(config().build());
    let probe = script.one();
    script.send(&result(&probe["id"], facts));
    let failed = script.client.call(&ListPrompts::new(), &options, script.now, &mut script.out);
    assert!(matches!(failed, Err(CallError::NotOffered(method)) if method == "prompts/list"));
    assert!(script.out.is_empty());
    script.call(&ListTools::new(), &options);
    // Unknown methods are the caller's business.
    script.call(&Custom::new("vendor/x"), &options);

    let mut script = Script::started(config().check_capabilities(false).build());
    let probe = script.one();
    script.send(&result(&probe["id"], facts));
    script.call(&ListPrompts::new(), &options);
    // What the revision does not have stays out of reach.
    let failed = script.client.call(&Ping::new(), &options, script.now, &mut script.out);
    assert!(matches!(failed, Err(CallError::NotOffered(_))));

    // A discover of the driver teaches the machine more.
    let mut script = Script::modern();
    let (_, sent) = script.call(&Discover::new(), &options);
    let done = script.completed(&result(&sent["id"], facts));
    assert_eq!(done.decode::<Discover>().unwrap().supported_versions, ["2026-07-28"]);
    assert!(!script.client.server().unwrap().capabilities.as_ref().unwrap().has_prompts());
}

#[test]
fn an_answer_is_read_by_what_was_called() {
    let mut script = Script::modern();
    let (call, sent) = script.tool("t", &CallOptions::new());
    let body = r#"{"resultType":"complete","content":[{"type":"text","text":"3"}],"structuredContent":null,"isError":true,"new":1,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
    let done = script.completed(&result(&sent["id"], body));
    assert_eq!((done.call, done.method(), done.cached), (call, "tools/call", false));
    assert_eq!(done.result.get(), body);
    let answer = done.decode::<CallTool>().unwrap();
    // `null` is a value of its own.
    assert!(answer.structured_content.unwrap().is_null());
    assert_eq!(answer.is_error, Some(true));
    assert_eq!(done.meta().unwrap().server_info().unwrap().name, "s");
    let wrong = done.decode::<GetPrompt>().unwrap_err().to_string();
    assert!(wrong.contains("prompts/get") && wrong.contains("tools/call"), "{wrong}");
    assert_eq!(done.decode::<Custom>().unwrap().get(), body);
    // What cannot be read says where.
    let (_, sent) = script.tool("t", &CallOptions::new());
    let done =
        script.completed(&result(&sent["id"], r#"{"resultType":"complete","content":[{"type":"zzz"}]}"#));
    assert!(done.decode::<CallTool>().unwrap_err().to_string().contains("/content/0"));
}

#[test]
fn kinds_of_results() {
    // C-BASE-04, C-BASE-05, B-BASE-03, C-TASK-02
    let good = ["{}", r#"{"resultType":"complete"}"#, r#"{"result\u0054ype":"compl\u0065te","x":1}"#];
    let task = r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null}"#;
    for version in LEGACY.into_iter().chain([V::LATEST]) {
        for kind in good {
            let mut script = Script::speaking(version);
            let (_, sent) = script.call(&GetPrompt::new("p"), &CallOptions::new());
            script.completed(&result(&sent["id"], kind));
        }
        for kind in [r#"{"resultType":"zzz"}"#, r#"{"resultType":""}"#, r#"{"resultType":"Complete"}"#, task]
        {
            let mut script = Script::speaking(version);
            let (call, sent) = script.call(&GetPrompt::new("p"), &CallOptions::new());
            let (failed, error) = script.failed(&result(&sent["id"], kind));
            assert!(failed == call && matches!(error, CallError::UnknownResultType(_)), "{kind}: {error:?}");
        }
        for kind in [r#"{"resultType":5}"#, r#"{"resultType":null}"#, "[]", "null", "5", r#"{"a":1,"a":2}"#] {
            let mut script = Script::speaking(version);
            let (call, sent) = script.call(&GetPrompt::new("p"), &CallOptions::new());
            let (failed, error) = script.failed(&result(&sent["id"], kind));
            assert!(failed == call && matches!(error, CallError::Malformed(_)), "{kind}: {error:?}");
            assert_eq!(script.client.open_calls(), 0);
        }
    }
}

#[test]
fn e03_an_id_as_a_string_of_its_digits_is_taken_and_no_other() {
    let mut script = Script::modern();
    let (call, sent) = script.tool("t", &CallOptions::new());
    let id = sent["id"].as_i64().unwrap();
    for odd in [
        format!("\" {id}\""),
        format!("\"0{id}\""),
        format!("\"+{id}\""),
        format!("\"{id}.0\""),
        "\"\"".into(),
    ] {
        let odd: Value = serde_json::from_str(&odd).unwrap();
        assert_eq!(script.strange(&result(&odd, DONE)), ViolationKind::UnknownResponse, "{odd}");
    }
    assert_eq!(script.completed(&result(&json!(id.to_string()), DONE)).call, call);
}

#[test]
fn e06_an_answer_that_is_neither_or_both_ends_the_call() {
    for odd in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":-1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":ID}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":5}"#,
        r#"{"jsonrpc":"1.0","id":ID,"result":{}}"#,
        r#"{"id":ID,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}"#,
        &format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{}1{}}}"#, "[".repeat(300), "]".repeat(300)),
    ] {
        for version in [V::V2025_11_25, V::LATEST] {
            let mut script = Script::speaking(version);
            let (call, sent) = script.tool("t", &CallOptions::new());
            let (failed, error) = script.failed(&odd.replace("ID", &sent["id"].to_string()));
            assert!(failed == call && matches!(error, CallError::Malformed(_)), "{odd}: {error:?}");
            // C-STDIO-03: nothing is ever said to that.
            assert!(script.sent().is_empty());
            script.tool("t", &CallOptions::new());
        }
    }
    // `error: null` beside a result is how some write "no error".
    let mut script = Script::modern();
    let (_, sent) = script.tool("t", &CallOptions::new());
    let both = format!(r#"{{"jsonrpc":"2.0","id":{},"error":null,"result":{DONE}}}"#, sent["id"]);
    script.completed(&both);
}

#[test]
fn e07_answers_that_nobody_waits_for_harm_nothing() {
    // C-CANCEL-04, B-CANCEL-05
    for version in [V::V2024_11_05, V::LATEST] {
        let mut script = Script::speaking(version);
        let (call, sent) = script.tool("t", &CallOptions::new());
        for unknown in [json!(999), json!(-1), json!(0), json!("x"), json!(u64::MAX)] {
            assert_eq!(script.strange(&result(&unknown, DONE)), ViolationKind::UnknownResponse, "{unknown}");
        }
        // One that is too long to be read is no other case.
        let long = json!("x".repeat(300));
        assert_eq!(script.strange(&result(&long, DONE)), ViolationKind::UnknownResponse);
        assert_eq!(script.strange(&error(&long, -32603, "")), ViolationKind::UnknownResponse);
        assert_eq!(
            script.strange(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"p"}}"#),
            ViolationKind::AnonymousError
        );
        assert_eq!(
            script.strange(r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"q"}}"#),
            ViolationKind::AnonymousError
        );
        assert_eq!(script.strange(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#), ViolationKind::Malformed);
        assert_eq!(script.completed(&result(&sent["id"], DONE)).call, call);
        assert_eq!(script.strange(&result(&sent["id"], DONE)), ViolationKind::Late);
        assert_eq!(script.strange(&error(&sent["id"], -32603, "")), ViolationKind::Late);
        let (_, sent) = script.tool("t", &CallOptions::new());
        script.completed(&result(&sent["id"], DONE));
        assert!(script.sent().is_empty());
    }
}

#[test]
fn s03_e08_noise_between_the_messages() {
    let mut script = Script::modern();
    let (call, sent) = script.tool("t", &CallOptions::new());
    for noise in [
        "Server v9 ready",
        "[info] got line",
        "",
        "   ",
        r#"{"level":"info","msg":"json but not rpc"}"#,
        "null",
        "\u{feff}{}",
        "[1,2]",
        "[]",
    ] {
        assert!(matches!(script.strange(noise), ViolationKind::Malformed | ViolationKind::Batch), "{noise}");
    }
    let bytes = script.client.handle(b"\xff\xfe", script.now, &mut script.out);
    assert!(matches!(bytes, Some(Event::Violation(_))));
    assert!(script.sent().is_empty(), "no line is answered: that would be an endless storm");
    match script.send(r#"{"jsonrpc":"2.0","method":"vendor/event","params":{"a":1}}"#) {
        Some(Event::Notification(notice)) => {
            assert_eq!((&*notice.method, notice.params.members().len()), ("vendor/event", 1));
        }
        other => panic!("{other:?}"),
    }
    let _ = script.send(r#"{"jsonrpc":"2.0","method":"vendor/event","params":null}"#);
    let _ = script.send(r#"{"jsonrpc":"2.0","method":"vendor/event","params":[1]}"#);
    assert_eq!(script.completed(&result(&sent["id"], DONE)).call, call);
}

#[test]
fn a_request_of_a_modern_server_is_never_answered() {
    // S-BASE-08 is the server's; C-STDIO-03 is ours.
    let mut script = Script::modern();
    for method in ["ping", "roots/list", "sampling/createMessage", "elicitation/create", "zzz"] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
        assert_eq!(script.strange(&frame), ViolationKind::Request);
    }
    assert!(script.sent().is_empty());
}

#[test]
fn c01_c04_a_cancelled_call_is_over() {
    // C-CANCEL-01, C-STDIO-05, LB-CANCEL-01
    for version in LEGACY.into_iter().chain([V::LATEST]) {
        let mut script = Script::speaking(version);
        let options = CallOptions::new().progress(true);
        let (call, sent) = script.tool("t", &options);
        assert!(script.client.cancel(call, Some("the \"user\" left"), &mut script.out));
        assert_eq!(
            script.one(),
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": sent["id"], "reason": "the \"user\" left"}})
        );
        // C-CANCEL-03: not twice.
        assert!(!script.client.cancel(call, None, &mut script.out));
        assert!(script.sent().is_empty());
        assert_eq!(script.strange(&progress(&sent["id"], "1")), ViolationKind::UnknownProgress);
        assert_eq!(script.strange(&result(&sent["id"], DONE)), ViolationKind::Late);
        assert!(script.due().is_empty() && script.client.next_deadline().is_none());
        let (_, sent) = script.tool("t", &options);
        script.completed(&result(&sent["id"], DONE));
    }
}

#[test]
fn c07_progress_resets_the_time_and_a_cap_still_applies() {
    // B-CANCEL-01 to B-CANCEL-04, LB-LIFE-05
    for version in [V::V2025_03_26, V::LATEST] {
        let mut script = Script::speaking(version);
        let options = CallOptions::new()
            .timeout(Duration::from_millis(200))
            .max_time(seconds(1))
            .reset_on_progress(true);
        let (call, sent) = script.tool("t", &options);
        // The server is asked for progress although nobody listens.
        let token = sent["params"]["_meta"]["progressToken"].clone();
        assert_eq!(token, sent["id"]);
        for n in 1..10u64 {
            assert!(script.pass(1_000 + 100 * n).is_empty(), "{n}");
            let event = script.send(&progress(&token, &n.to_string()));
            assert!(matches!(event, Some(Event::Progress { call: c, .. }) if c == call));
            assert_eq!(script.client.next_deadline(), Some(at((1_000 + 100 * n + 200).min(2_000))));
        }
        assert!(script.pass(1_999).is_empty());
        let due = script.pass(2_000);
        assert!(
            matches!(due[..], [Event::Failed { call: c, error: CallError::TimedOut }] if c == call),
            "{due:?}"
        );
        // B-CANCEL-02: exactly one cancellation.
        let cancel = script.one();
        assert_eq!(
            (&cancel["method"], &cancel["params"]["requestId"]),
            (&json!("notifications/cancelled"), &sent["id"])
        );
        assert_eq!(script.client.next_deadline(), None);

        // Without the option progress changes nothing, and a silent server meets the cap.
        let options = CallOptions::new().timeout(Duration::from_millis(200)).progress(true);
        let (_, sent) = script.tool("t", &options);
        script.pass(2_150);
        let _ = script.send(&progress(&sent["id"], "1"));
        assert_eq!(script.client.next_deadline(), Some(at(2_200)));
        script.pass(2_200);
        script.one();
        let options = CallOptions::new().timeout(seconds(5)).max_time(Duration::from_millis(300));
        script.tool("t", &options);
        assert_eq!(script.client.next_deadline(), Some(at(2_500)));
        let options = CallOptions::new().timeout(None).max_time(None);
        script.tool("t", &options);
        script.pass(u64::MAX / 2);
        assert_eq!((script.client.open_calls(), script.client.next_deadline()), (1, None));
    }
}

#[test]
fn c06_progress_is_exact_growing_and_known() {
    // C-PROG-01, B-PROG-01
    let mut script = Script::modern();
    let (_, silent) = script.tool("t", &CallOptions::new());
    assert_eq!(silent["params"]["_meta"].get("progressToken"), None);
    assert_eq!(script.strange(&progress(&silent["id"], "1")), ViolationKind::UnknownProgress);
    let (call, sent) = script.tool("t", &CallOptions::new().progress(true));
    let token = &sent["params"]["_meta"]["progressToken"];
    let mut heard = Vec::new();
    for (value, good) in [
        ("-1.5", true),
        ("0", true),
        ("1", true),
        ("1", false),
        ("0.5", false),
        ("1.0", false),
        ("2.5", true),
        ("1e300", true),
    ] {
        match script.send(&progress(token, value)) {
            Some(Event::Progress { call: c, progress }) => {
                assert!(good && c == call);
                heard.push(progress.progress);
            }
            Some(Event::Violation(violation)) => {
                assert!(!good && violation.kind == ViolationKind::StaleProgress, "{value}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(heard, [-1.5, 0.0, 1.0, 2.5, 1e300]);
    for odd in [
        json!(token.to_string()),
        json!("tool-call-4"),
        json!(-1),
        json!(0),
        json!(9_007_199_254_740_993_u64),
    ] {
        assert_eq!(script.strange(&progress(&odd, "1e301")), ViolationKind::UnknownProgress, "{odd}");
    }
    for odd in [
        r#"{"progress":1}"#,
        r#"{"progressToken":null,"progress":1}"#,
        "{}",
        r#"{"progressToken":1,"progress":"x"}"#,
        r#"{"progressToken":1,"progress":1e999}"#,
        r#"{"progressToken":1.5,"progress":1}"#,
    ] {
        assert_eq!(
            script.strange(&notification("notifications/progress", odd)),
            ViolationKind::Params,
            "{odd}"
        );
    }
    let full = notification(
        "notifications/progress",
        &format!(r#"{{"progressToken":{token},"progress":1e301,"total":2e301,"message":"half"}}"#),
    );
    match script.send(&full) {
        Some(Event::Progress { progress, .. }) => {
            assert_eq!((progress.total, progress.message.as_deref()), (Some(2e301), Some("half")));
        }
        other => panic!("{other:?}"),
    }
    script.completed(&result(&sent["id"], DONE));
    assert_eq!(script.strange(&progress(token, "1e302")), ViolationKind::UnknownProgress);
}

#[test]
fn messages_come_in_the_order_of_the_wire() {
    let mut script = Script::modern();
    let (_, sent) = script.tool("t", &CallOptions::new().progress(true).log_level(LoggingLevel::Info));
    let log = notification("notifications/message", r#"{"level":"info","logger":"db","data":{"a":1}}"#);
    let mut heard = Vec::new();
    for frame in
        [progress(&sent["id"], "1"), log.clone(), progress(&sent["id"], "2"), log, result(&sent["id"], DONE)]
    {
        heard.push(match script.send(&frame) {
            Some(Event::Progress { progress, .. }) => progress.progress.to_string(),
            Some(Event::Log { call, message }) => {
                assert_eq!(call, None, "a stream does not tell");
                format!("{}:{}:{}", message.level, message.logger.unwrap(), message.data)
            }
            Some(Event::Complete(_)) => "done".to_owned(),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(heard, ["1", "info:db:{\"a\":1}", "2", "info:db:{\"a\":1}", "done"]);
    for odd in [r#"{"level":"loud","data":1}"#, r#"{"data":1}"#, "{}", r#"{"level":"info"}"#] {
        assert_eq!(
            script.strange(&notification("notifications/message", odd)),
            ViolationKind::Params,
            "{odd}"
        );
    }
}

#[test]
fn errors_reach_the_caller_as_they_are() {
    // C-ERR-01, B-ERR-03
    let mut script = Script::modern();
    for code in [-32601, -32602, -32603, -32002, -32021, 7, i32::MIN] {
        let (call, sent) = script.tool("t", &CallOptions::new());
        match script.failed(&error(&sent["id"], code, r#"{"x":1}"#)) {
            (failed, CallError::Rpc(error)) => {
                assert!(failed == call && error.code == code);
                assert_eq!(error.data.unwrap().get(), r#"{"x":1}"#);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_user_is_sent_to_a_url_first() {
    // LS-ELIC-06: -32042 is a code of 2025-11-25 only.
    let data = r#"{"elicitations":[{"mode":"url","message":"m","url":"https://example.com/a","elicitationId":"e1"}]}"#;
    let mut script = Script::legacy(V::V2025_11_25);
    let (call, sent) = script.tool("t", &CallOptions::new());
    match script.failed(&error(&sent["id"], -32042, data)) {
        (failed, CallError::UrlElicitationRequired(urls)) => {
            assert!(failed == call);
            assert_eq!(
                (&*urls[0].url, urls[0].elicitation_id.as_deref()),
                ("https://example.com/a", Some("e1"))
            );
        }
        other => panic!("{other:?}"),
    }
    match script.send(&notification("notifications/elicitation/complete", r#"{"elicitationId":"e1"}"#)) {
        Some(Event::ElicitationComplete { elicitation_id }) => assert_eq!(elicitation_id, "e1"),
        other => panic!("{other:?}"),
    }
    for (version, data) in [(V::LATEST, data), (V::V2025_11_25, "{}"), (V::V2025_11_25, "")] {
        let mut script = Script::speaking(version);
        let (_, sent) = script.tool("t", &CallOptions::new());
        let (_, error) = script.failed(&error(&sent["id"], -32042, data));
        assert!(matches!(error, CallError::Rpc(error) if error.code == -32042));
    }
}

#[test]
fn the_end_of_the_stream_ends_every_call() {
    for version in [V::V2025_11_25, V::LATEST] {
        let mut script = Script::speaking(version);
        let (a, _) = script.tool("t", &CallOptions::new());
        let (b, _) = script.tool("t", &CallOptions::new());
        assert!(script.client.eof().is_none());
        assert_eq!(script.client.next_deadline(), Some(at(0)));
        match &script.due()[..] {
            [
                Event::Failed { call: x, error: CallError::Closed },
                Event::Failed { call: y, error: CallError::Closed },
            ] => {
                assert_eq!((*x, *y), (a, b));
            }
            other => panic!("{other:?}"),
        }
        assert!(script.client.server().is_none());
        assert_eq!((script.client.open_calls(), script.client.next_deadline()), (0, None));
        assert!(script.client.eof().is_none());
        // Again, on a new stream: the verdict is known.
        let waiting = script
            .client
            .call(&CallTool::new("t"), &CallOptions::new(), script.now, &mut script.out)
            .unwrap();
        let event = script.start();
        if version.is_modern() {
            assert!(matches!(event, Some(Event::Ready)));
            assert!(script.client.server().unwrap().capabilities.is_some(), "what was found out is kept");
        } else {
            let hello = script.one();
            assert!(matches!(
                script.send(&result(&hello["id"], &super::script::initialized("2025-11-25"))),
                Some(Event::Ready)
            ));
            script.sent().remove(1);
        }
        assert!(script.client.is_open(waiting));
    }
}

#[test]
fn e10_very_many_calls() {
    let mut script = Script::modern_of(config().limits(limits(|limits| limits.max_calls = 25_000)).build());
    let options = CallOptions::new().progress(true);
    let mut calls = Vec::new();
    for _ in 0..25_000 {
        calls.push(script.client.call(&CallTool::new("t"), &options, script.now, &mut script.out).unwrap());
    }
    let more = script.client.call(&CallTool::new("t"), &options, script.now, &mut script.out);
    assert!(matches!(more, Err(CallError::TooManyCalls)));
    script.out.clear();
    // A third answered last to first, a third cancelled, a third timed out.
    for n in (0..8_000).rev() {
        assert_eq!(script.completed(&result(&json!(n + 2), DONE)).call, calls[n as usize]);
    }
    for call in &calls[8_000..16_000] {
        assert!(script.client.cancel(*call, None, &mut script.out));
    }
    assert_eq!(script.pass(61_000).len(), 9_000);
    assert_eq!((script.client.open_calls(), script.client.next_deadline()), (0, None));
    script.out.clear();
    for n in (0..25_000).step_by(10) {
        assert_eq!(script.strange(&result(&json!(n + 2), DONE)), ViolationKind::Late);
    }
}

#[test]
fn very_many_calls_that_wait() {
    let mut script = Script::started(config().build());
    let probe = script.one();
    let call = |script: &mut Script| {
        script.client.call(&CallTool::new("t"), &CallOptions::new(), script.now, &mut script.out).unwrap()
    };
    let calls: Vec<_> = (0..25_000).map(|_| call(&mut script)).collect();
    for call in calls[10..].iter().rev() {
        assert!(script.client.cancel(*call, None, &mut script.out));
    }
    assert!(matches!(
        script.send(&result(&probe["id"], &super::script::discovered(&["2026-07-28"]))),
        Some(Event::Ready)
    ));
    assert_eq!(script.sent().len(), 10);
}
