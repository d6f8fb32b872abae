//! Rounds of input within one call. (revisions 4)

use mcp_proto::client::request::{CallTool, GetPrompt, ListTools, ReadResource};
use mcp_proto::client::{CallError, CallOptions, Event, Parked, Rounds, ViolationKind};
use mcp_proto::model::{ClientCapabilities, ElicitResult, InputRequest, InputResponses, Json, Meta};
use serde_json::{Value, json};

use super::script::{Script, at, config, discovered, error, notification, result};

/// An `input_required` with one question by form under each key, and this state.
fn questions(keys: &[&str], state: Option<&str>) -> String {
    let form = json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": "Sure?",
        "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
    }});
    let mut all = json!({"resultType": "input_required"});
    if !keys.is_empty() {
        all["inputRequests"] = keys
            .iter()
            .map(|key| ((*key).to_owned(), form.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into();
    }
    if let Some(state) = state {
        all["requestState"] = json!(state);
    }
    all.to_string()
}

fn accept() -> Json {
    Json::parse(r#"{"action":"accept","content":{"ok":true}}"#).unwrap()
}

fn answers(keys: &[&'static str]) -> InputResponses {
    keys.iter().map(|key| (*key, accept())).collect()
}

const DONE: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#;

#[test]
fn a_round_is_answered_with_the_same_params_and_the_exact_state() {
    // C-MRTR-01, C-MRTR-02, C-MRTR-03, C-MRTR-05: nothing of the state is understood.
    let state = "\u{0}\"\\ é🎉\u{2028}{\"a\":1}=== \n";
    let mut script = Script::modern();
    let request = CallTool::new("deploy").arguments(Json::parse(r#"{"n":1.0}"#).unwrap());
    let options = CallOptions::new().meta(Meta::new().with("com.example/a", "x"));
    let (call, first) = script.call(&request, &options);
    let (asked, round) = script.asked(&result(&first["id"], &questions(&["a", "b"], Some(state))));
    assert_eq!(asked, call);
    assert!(script.sent().is_empty(), "nothing is sent before the answers are there");
    assert!(
        matches!(round.requests.get("a"), Some(InputRequest::ElicitForm(form)) if form.message == "Sure?")
    );

    // Each question has to be answered; what was not asked is not sent.
    let failed = script.client.answer(call, &answers(&["a"]), script.now, &mut script.out);
    assert!(matches!(failed, Err(CallError::Invalid(reason)) if reason.contains("\"b\"")));
    let given = answers(&["a"])
        .answer("b", ElicitResult::decline())
        .unwrap()
        .answer("zzz", ElicitResult::decline())
        .unwrap();
    script.client.answer(call, &given, script.now, &mut script.out).unwrap();
    let second = script.one();
    assert_ne!(second["id"], first["id"]);
    let mut expected = first["params"].clone();
    expected["inputResponses"] =
        json!({"a": {"action": "accept", "content": {"ok": true}}, "b": {"action": "decline"}});
    expected["requestState"] = json!(state);
    assert_eq!(second["params"], expected);

    // The answer to the first round is over.
    assert_eq!(script.strange(&result(&first["id"], DONE)), ViolationKind::Late);
    let done = script.completed(&result(&second["id"], DONE));
    assert_eq!(done.call, call);
    assert_eq!(script.client.open_calls(), 0);
    let over = script.client.answer(call, &given, script.now, &mut script.out);
    assert!(matches!(over, Err(CallError::NoSuchCall)));
}

#[test]
fn what_a_round_does_not_bring_the_retry_does_not_carry() {
    // C-MRTR-04: no state in, none out; and none of the round before.
    let mut script = Script::modern();
    let (call, first) = script.call(&GetPrompt::new("p").argument("x", "1"), &CallOptions::new());
    script.asked(&result(&first["id"], &questions(&["a"], Some("one"))));
    script.client.answer(call, &answers(&["a"]), script.now, &mut script.out).unwrap();
    let second = script.one();
    assert_eq!(second["params"]["requestState"], "one");
    script.asked(&result(&second["id"], &questions(&["b"], None)));
    script.client.answer(call, &answers(&["b"]), script.now, &mut script.out).unwrap();
    let third = script.one();
    assert_eq!(third["params"].get("requestState"), None);
    assert_eq!(
        third["params"]["inputResponses"],
        json!({"b": {"action": "accept", "content": {"ok": true}}})
    );
    assert_eq!(third["params"]["arguments"], json!({"x": "1"}));
    // An empty state is a state.
    let (_, round) = script.asked(&result(&third["id"], &questions(&["c"], Some(""))));
    assert_eq!(round.requests.len(), 1);
    script.client.answer(call, &answers(&["c"]), script.now, &mut script.out).unwrap();
    assert_eq!(script.one()["params"]["requestState"], "");
}

#[test]
fn a_state_alone_is_retried_at_once_and_not_for_ever() {
    let mut script = Script::modern();
    let (call, mut sent) = script.call(&ReadResource::new("a:b"), &CallOptions::new());
    for n in 1..=8 {
        let state = format!("s{n}");
        assert!(script.send(&result(&sent["id"], &questions(&[], Some(&state)))).is_none());
        sent = script.one();
        assert_eq!(sent["params"]["requestState"], json!(state));
        assert_eq!(sent["params"].get("inputResponses"), None);
        assert_eq!(sent["params"]["uri"], "a:b");
    }
    let (failed, error) = script.failed(&result(&sent["id"], &questions(&[], Some("s9"))));
    assert_eq!(failed, call);
    assert!(matches!(error, CallError::TooManyRounds));
    assert!(script.sent().is_empty());
}

#[test]
fn rounds_are_counted_together_and_by_hand_there_is_no_bound() {
    let mut script = Script::modern();
    let options = CallOptions::new().rounds(Rounds::Auto { max: 2 });
    let (call, first) = script.tool("t", &options);
    script.asked(&result(&first["id"], &questions(&["a"], None)));
    script.client.answer(call, &answers(&["a"]), script.now, &mut script.out).unwrap();
    let sent = script.one();
    assert!(script.send(&result(&sent["id"], &questions(&[], Some("s")))).is_none());
    let sent = script.one();
    let (_, error) = script.failed(&result(&sent["id"], &questions(&["a"], None)));
    assert!(matches!(error, CallError::TooManyRounds));

    let options = CallOptions::new().rounds(Rounds::Manual);
    let (call, mut sent) = script.tool("t", &options);
    for n in 0..50 {
        let keys: &[&'static str] = if n % 2 == 0 { &[] } else { &["a"] };
        let (_, round) = script.asked(&result(&sent["id"], &questions(keys, Some("s"))));
        assert_eq!(round.requests.len(), keys.len());
        script.client.answer(call, &answers(keys), script.now, &mut script.out).unwrap();
        sent = script.one();
    }
    script.completed(&result(&sent["id"], DONE));
}

/// A server that asks and asks is not saved by a store in between.
#[test]
fn rounds_of_a_parked_call_count_on() {
    let mut script = Script::modern();
    let options = CallOptions::new().rounds(Rounds::Auto { max: 2 });
    let (mut call, mut sent) = script.tool("t", &options);
    for _ in 0..2 {
        script.asked(&result(&sent["id"], &questions(&["a"], Some("s"))));
        let stored = serde_json::to_string(&script.client.park(call).unwrap()).unwrap();
        let parked: Parked = serde_json::from_str(&stored).unwrap();
        let (client, now, out) = (&mut script.client, script.now, &mut script.out);
        call = client.resume(parked, &answers(&["a"]), &options, now, out).unwrap();
        sent = script.one();
    }
    let (failed, error) = script.failed(&result(&sent["id"], &questions(&["a"], Some("s"))));
    assert!(failed == call && matches!(error, CallError::TooManyRounds), "{error}");
}

#[test]
fn questions_of_one_round_are_bounded() {
    let limits = super::script::limits(|limits| limits.max_members = 8);
    let mut script = Script::modern_of(config().limits(limits).build());
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let (call, sent) = script.tool("t", &CallOptions::new());
    script.asked(&result(&sent["id"], &questions(&keys[..8], None)));
    assert!(script.client.cancel(call, None, &mut script.out));
    let (call, sent) = script.tool("t", &CallOptions::new());
    let (failed, error) = script.failed(&result(&sent["id"], &questions(&keys, None)));
    assert!(failed == call && matches!(error, CallError::Malformed(_)), "{error}");
}

#[test]
fn parallel_calls_do_not_mix() {
    // C-MRTR-06
    let mut script = Script::modern();
    let options = CallOptions::new();
    let (a, first_a) = script.tool("t", &options);
    let (b, first_b) = script.tool("t", &options);
    script.asked(&result(&first_b["id"], &questions(&["k"], Some("of b"))));
    let (c, first_c) = script.tool("t", &options);
    assert_eq!(first_c["params"].get("requestState"), None);
    assert_eq!(first_c["params"].get("inputResponses"), None);
    script.asked(&result(&first_a["id"], &questions(&["k"], Some("of a"))));
    let answer = |script: &mut Script, call, action: &str| {
        let given: InputResponses = [("k", Json::parse(action).unwrap())].into_iter().collect();
        script.client.answer(call, &given, script.now, &mut script.out).unwrap();
        script.one()
    };
    let second_a = answer(&mut script, a, r#"{"action":"accept"}"#);
    let second_b = answer(&mut script, b, r#"{"action":"decline"}"#);
    assert_eq!(
        (&second_a["params"]["requestState"], &second_a["params"]["inputResponses"]["k"]["action"]),
        (&json!("of a"), &json!("accept"))
    );
    assert_eq!(
        (&second_b["params"]["requestState"], &second_b["params"]["inputResponses"]["k"]["action"]),
        (&json!("of b"), &json!("decline"))
    );
    let ids: std::collections::BTreeSet<i64> = [&first_a, &first_b, &first_c, &second_a, &second_b]
        .iter()
        .map(|sent| sent["id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids.len(), 5);
    for (sent, call) in [(&second_b, b), (&first_c, c), (&second_a, a)] {
        assert_eq!(script.completed(&result(&sent["id"], DONE)).call, call);
    }
}

#[test]
fn only_what_was_declared_may_be_asked() {
    // S-MRTR-13 is the server's; a client that gets it anyway does not show it to anyone.
    let capabilities = ClientCapabilities::new().form_elicitation();
    let mut script = Script::modern_of(config().capabilities(capabilities).build());
    for (method, params) in [
        ("elicitation/create", r#"{"mode":"url","message":"m","url":"https://example.com"}"#),
        ("sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#),
        ("roots/list", "{}"),
    ] {
        let (call, sent) = script.tool("t", &CallOptions::new());
        let asks = format!(
            r#"{{"resultType":"input_required","inputRequests":{{"k":{{"method":"{method}","params":{params}}}}},"requestState":"s"}}"#
        );
        let (failed, error) = script.failed(&result(&sent["id"], &asks));
        assert_eq!(failed, call);
        assert!(matches!(error, CallError::Undeclared(_)), "{method}: {error:?}");
    }
}

#[test]
fn odd_rounds_are_the_servers_fault() {
    let mut script = Script::modern();
    for (odd, place) in [
        (r#"{"resultType":"input_required"}"#, "/result"),
        (r#"{"resultType":"input_required","inputRequests":{}}"#, "/result"),
        (r#"{"resultType":"input_required","inputRequests":[],"requestState":"s"}"#, "/result/inputRequests"),
        (r#"{"resultType":"input_required","requestState":5}"#, "/result/requestState"),
        (
            r#"{"resultType":"input_required","inputRequests":{"a":{"method":"tools/call"}}}"#,
            "/result/inputRequests/a",
        ),
        (
            r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"a":{"method":"roots/list"}}}"#,
            "/result/inputRequests",
        ),
    ] {
        let (_, sent) = script.tool("t", &CallOptions::new());
        match script.failed(&result(&sent["id"], odd)).1 {
            CallError::Malformed(reason) => assert!(reason.contains(place), "{odd}: {reason}"),
            other => panic!("{odd}: {other:?}"),
        }
    }
    // A list cannot ask. Nor can a server of a legacy revision.
    let (_, sent) = script.call(&ListTools::new(), &CallOptions::new());
    let (_, error) = script.failed(&result(&sent["id"], &questions(&["a"], None)));
    assert!(matches!(error, CallError::UnknownResultType(kind) if kind == "input_required"));
    let mut script = Script::legacy(mcp_proto::model::ProtocolVersion::V2025_11_25);
    let (_, sent) = script.tool("t", &CallOptions::new());
    let (_, error) = script.failed(&result(&sent["id"], &questions(&["a"], None)));
    assert!(matches!(error, CallError::UnknownResultType(_)));
}

#[test]
fn time_does_not_pass_while_this_side_thinks() {
    let minutes = |n: u64| std::time::Duration::from_secs(60 * n);
    let options = CallOptions::new().timeout(minutes(1)).max_time(minutes(2));
    let mut script = Script::modern();
    let (call, first) = script.tool("t", &options);
    script.now = at(30_000);
    script.asked(&result(&first["id"], &questions(&["a"], None)));
    assert_eq!(script.client.next_deadline(), None);
    assert!(script.pass(3_600_000).is_empty());
    script.client.answer(call, &answers(&["a"]), script.now, &mut script.out).unwrap();
    let second = script.one();
    // A new minute for this answer; half a minute of two is spent.
    assert_eq!(script.client.next_deadline(), Some(at(3_660_000)));
    script.now = at(3_659_000);
    script.asked(&result(&second["id"], &questions(&["a"], None)));
    script.client.answer(call, &answers(&["a"]), script.now, &mut script.out).unwrap();
    script.one();
    assert_eq!(script.client.next_deadline(), Some(at(3_600_000 + 91_000)));
    let due = script.pass(3_700_000);
    assert!(matches!(due[..], [Event::Failed { error: CallError::TimedOut, .. }]), "{due:?}");
}

#[test]
fn a_parked_call_goes_on_in_another_process() {
    let mut script = Script::modern();
    let options = CallOptions::new().rounds(Rounds::Manual);
    let (call, first) = script.call(
        &CallTool::new("deploy").arguments(Json::parse(r#"{"n":12345678901234567890123}"#).unwrap()),
        &options,
    );
    assert!(script.client.park(call).is_none(), "it does not wait for us");
    script.asked(&result(&first["id"], &questions(&["a"], Some("sealed\u{7f}"))));
    let parked = script.client.park(call).unwrap();
    assert!(!script.client.is_open(call) && script.client.open_calls() == 0);
    assert!(script.client.park(call).is_none());
    let stored = serde_json::to_string(&parked).unwrap();
    drop(script);

    let parked: Parked = serde_json::from_str(&stored).unwrap();
    assert_eq!(parked.method(), "tools/call");
    assert_eq!(parked.requests().unwrap().len(), 1);
    assert_eq!(parked.task_id(), None);
    let mut other = Script::modern();
    let early =
        other.client.resume(parked.clone(), &InputResponses::new(), &options, other.now, &mut other.out);
    assert!(matches!(early, Err(CallError::Invalid(_))));
    let call =
        other.client.resume(parked.clone(), &answers(&["a"]), &options, other.now, &mut other.out).unwrap();
    let out = String::from_utf8(other.out.clone()).unwrap();
    assert!(out.contains(r#""arguments":{"n":12345678901234567890123}"#), "{out}");
    let sent = other.one();
    assert_eq!(sent["params"]["requestState"], "sealed\u{7f}");
    assert_eq!(sent["params"]["inputResponses"]["a"]["action"], "accept");
    assert_eq!(other.completed(&result(&sent["id"], DONE)).call, call);

    // Also before it is known what the server speaks.
    let mut early = Script::started(config().build());
    let probe = early.one();
    early.client.resume(parked, &answers(&["a"]), &options, early.now, &mut early.out).unwrap();
    assert!(early.out.is_empty());
    early.send(&result(&probe["id"], &discovered(&["2026-07-28"])));
    assert_eq!(early.one()["params"]["requestState"], "sealed\u{7f}");

    // Not on a server that knows no rounds.
    let parked: Parked = serde_json::from_str(&stored).unwrap();
    let mut old = Script::legacy(mcp_proto::model::ProtocolVersion::V2025_11_25);
    let failed = old.client.resume(parked, &answers(&["a"]), &options, old.now, &mut old.out);
    assert!(matches!(failed, Err(CallError::NotOffered(_))) && old.out.is_empty());

    // A store is not trusted with more than a failed call.
    for (from, to) in [(r#""params":"{"#, r#""params":"["#), (r#""requests":"{"#, r#""requests":"["#)] {
        let broken: Parked = serde_json::from_str(&stored.replace(from, to)).unwrap();
        let mut script = Script::modern();
        let failed = script.client.resume(broken, &answers(&["a"]), &options, script.now, &mut script.out);
        assert!(matches!(failed, Err(CallError::Invalid(_))), "{failed:?}");
    }
}

#[test]
fn a_call_that_waits_for_input_can_be_given_up_in_silence() {
    let mut script = Script::modern();
    let (call, first) = script.tool("t", &CallOptions::new());
    script.asked(&result(&first["id"], &questions(&["a"], Some("s"))));
    assert!(script.client.cancel(call, Some("no"), &mut script.out));
    // C-CANCEL-03: there is nothing in progress that could be cancelled.
    assert!(script.sent().is_empty());
    assert!(!script.client.cancel(call, None, &mut script.out));
}

#[test]
fn a_refused_version_within_a_call_is_corrected_once_or_twice() {
    let mut script = Script::modern();
    let (call, first) = script.tool("t", &CallOptions::new());
    let data = r#"{"supported":["2026-07-28"],"requested":"2026-07-28"}"#;
    let (failed, error_) = script.failed(&error(&first["id"], -32022, data));
    assert!(failed == call && matches!(error_, CallError::Rpc(error) if error.code == -32022));
}

#[test]
fn progress_of_a_round_that_is_over_is_nobodys() {
    let mut script = Script::modern();
    let options = CallOptions::new().progress(true);
    let (call, first) = script.tool("t", &options);
    let token = first["params"]["_meta"]["progressToken"].clone();
    script.asked(&result(&first["id"], &questions(&["a"], None)));
    let progress = |token: &Value| {
        notification("notifications/progress", &format!(r#"{{"progressToken":{token},"progress":1}}"#))
    };
    assert_eq!(script.strange(&progress(&token)), ViolationKind::UnknownProgress);
    script.client.answer(call, &answers(&["a"]), script.now, &mut script.out).unwrap();
    let second = script.one();
    // C-PROG-02
    let fresh = second["params"]["_meta"]["progressToken"].clone();
    assert_ne!(fresh, token);
    assert!(matches!(script.send(&progress(&fresh)), Some(Event::Progress { call: c, .. }) if c == call));
}
