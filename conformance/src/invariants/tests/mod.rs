//! Each rule with a message that keeps it and one that breaks it.

mod contents;
mod http;

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Breach, Ledger, citing};
use crate::exchange::Transport;
use crate::requirement::Level;
use crate::revision::Revision;

const A: Revision = Revision::V2024_11_05;
const B: Revision = Revision::V2025_03_26;
const C: Revision = Revision::V2025_06_18;
const D: Revision = Revision::V2025_11_25;
const E: Revision = Revision::V2026_07_28;

thread_local! {
    /// What breaches of this test have cited, by rule.
    static CITED: RefCell<BTreeSet<(&'static str, &'static str)>> = const { RefCell::new(BTreeSet::new()) };
}

pub(super) fn note(rule: &'static str, ids: &[&'static str]) {
    CITED.with_borrow_mut(|cited| cited.extend(ids.iter().map(|id| (rule, *id))));
}

/// An obligation counts as checked by a rule only if a planted message was reported with it.
#[test]
fn every_citation_of_a_rule_is_planted_and_listed() {
    CITED.with_borrow_mut(BTreeSet::clear);
    a_line_is_one_message_in_utf8_without_a_mark();
    a_batch_comes_back_only_for_a_batch();
    the_envelope_is_that_of_json_rpc();
    a_response_answers_one_open_request_once();
    a_wrong_id_is_told_once_with_the_one_that_was_meant();
    an_error_without_an_id_needs_input_without_a_readable_one();
    results_belong_to_their_era();
    cache_hints_stand_on_the_six_results_that_bear_them();
    modern_error_codes_are_closed();
    input_is_required_where_it_may_be_and_of_what_was_declared();
    a_task_needs_the_extension_on_this_request();
    progress_is_for_a_live_token_and_increases();
    log_messages_need_a_reason();
    a_subscription_is_acknowledged_tagged_and_filtered();
    a_server_asks_only_in_the_legacy_era_and_only_what_was_negotiated();
    legacy_notifications_were_negotiated_too();
    known_members_have_their_types_and_their_time();
    a_list_offers_what_was_declared_and_each_name_once();
    meta_names_keep_to_the_grammar();
    both_eras_share_a_connection();
    a_session_follows_the_settled_version();
    http::what_comes_over_http_keeps_to_the_transport();
    http::messages_stay_on_their_streams();
    contents::published_schemas_are_valid_and_their_annotations_can_be_mirrored();
    contents::extensions_have_prefixes_and_uris_schemes();
    contents::a_prompt_embeds_what_can_be_used();
    contents::the_messages_for_a_model_answer_each_tool_use();
    contents::a_user_is_asked_for_no_secret_and_sent_to_an_address();
    contents::where_the_user_has_to_go_is_told_whole();
    contents::tasks_differ_and_so_do_their_questions();
    contents::progress_of_a_task_keeps_its_token_and_ends_with_it();
    contents::a_server_cancels_a_task_of_the_client_as_one();
    contents::what_is_offered_was_declared();
    contents::errors_are_short_and_of_their_own_range();
    members_of_every_method_have_their_types();
    let planted = CITED.take();
    let listed: BTreeSet<_> = citing().collect();
    // What stands in the rules but is never reported checks nothing.
    let rules = concat!(
        include_str!("../asks.rs"),
        include_str!("../calls.rs"),
        include_str!("../envelope.rs"),
        include_str!("../http.rs"),
        include_str!("../line.rs"),
        include_str!("../results.rs"),
        include_str!("../schemas.rs"),
        include_str!("../subscriptions.rs"),
        include_str!("../tables.rs"),
        include_str!("../tasks.rs"),
    );
    let ids = rules.split('"').filter(|text| crate::requirement::by_id(text).is_some());
    let never: Vec<_> = ids.filter(|id| !planted.iter().any(|(_, planted)| planted == id)).collect();
    assert!(never.is_empty(), "no planted message is reported with {never:?}");
    let of = |ids: &BTreeSet<(&str, &str)>| {
        ids.iter().map(|(rule, id)| format!("{rule} {id}")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(of(&planted), of(&listed));
}

/// A connection on which the requests have been sent.
fn ledger(revision: Revision, client: Value, sent: &[Value]) -> Ledger {
    let mut ledger = Ledger::new(revision, Transport::Stdio, client);
    if revision != E {
        ledger.sent(&json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {"capabilities": ledger.client}}));
        let capabilities =
            json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}, "logging": {}});
        let result = json!({"protocolVersion": revision.as_str(), "capabilities": capabilities, "serverInfo": {"name": "s", "version": "1"}});
        let breaches = ledger.received(&json!({"jsonrpc": "2.0", "id": "init", "result": result}));
        assert_eq!(breaches, []);
        ledger.sent(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }
    for message in sent {
        ledger.sent(message);
    }
    ledger
}

fn request(method: &str, mut params: Value) -> Value {
    if params["_meta"]["io.modelcontextprotocol/clientCapabilities"].is_null() {
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn response(revision: Revision, mut result: Value) -> Value {
    if revision == E {
        let own = json!({"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}});
        for (name, value) in own.as_object().unwrap() {
            result.as_object_mut().unwrap().entry(name.as_str()).or_insert(value.clone());
        }
    }
    json!({"jsonrpc": "2.0", "id": 1, "result": result})
}

fn error(code: i64, data: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m", "data": data}})
}

fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[track_caller]
fn keeps(ledger: &mut Ledger, message: &Value) {
    assert_eq!(ledger.received(message), [], "{message}");
}

#[track_caller]
fn breaks(ledger: &mut Ledger, message: &Value, id: &str, at: &str) -> Breach {
    let breaches = ledger.received(message);
    let breach = breaches.iter().find(|breach| breach.requires.contains(&id) && breach.at == at);
    breach.unwrap_or_else(|| panic!("no breach of {id} at {at}: {breaches:#?}")).clone()
}

#[track_caller]
fn blames(breaches: &[Breach], ids: &[&str]) {
    for id in ids {
        assert!(
            breaches.iter().any(|breach| breach.requires.contains(id)),
            "no breach of {id}: {breaches:#?}"
        );
    }
}

#[track_caller]
fn line_breaks(ledger: &mut Ledger, line: &[u8], id: &str) {
    let breach = ledger.line(line).unwrap_err();
    assert!(breach.requires.contains(&id), "{breach:?}");
}

#[test]
fn a_line_is_one_message_in_utf8_without_a_mark() {
    let fresh = |revision| ledger(revision, json!({}), &[]);
    assert_eq!(fresh(E).line(b"{\"a\":1}\r").unwrap(), [json!({"a": 1})]);
    line_breaks(&mut fresh(E), b"\xef\xbb\xbf{}", "S-STDIO-01");
    line_breaks(&mut fresh(B), b"{\"a\":\"\xff\"}", "B-TRANS-01");
    line_breaks(&mut fresh(A), b"{\"a\":\"\xff\"}", "S-STDIO-01");
    line_breaks(&mut fresh(C), b"", "S-STDIO-01");
    line_breaks(&mut fresh(C), b"server ready", "S-STDIO-01");
    line_breaks(&mut fresh(C), b"{} {}", "S-STDIO-01");
    line_breaks(&mut fresh(C), b"5", "B-BASE-02");
    line_breaks(&mut fresh(D), b"[{}]", "S08");
}

/// S08: an array may come back only where one was sent, under the one revision that has batches.
#[test]
fn a_batch_comes_back_only_for_a_batch() {
    let batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]);
    assert_eq!(
        ledger(B, json!({}), std::slice::from_ref(&batch)).line(b"[1,2]").unwrap(),
        [json!(1), json!(2)]
    );
    line_breaks(&mut ledger(B, json!({}), &[]), b"[1]", "S08");
    line_breaks(&mut ledger(B, json!({}), std::slice::from_ref(&batch)), b"[]", "S08");
    line_breaks(&mut ledger(C, json!({}), &[batch]), b"[1]", "S08");
}

#[test]
fn the_envelope_is_that_of_json_rpc() {
    let open = || ledger(D, json!({}), &[request("ping", json!({}))]);
    keeps(&mut open(), &json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    breaks(&mut open(), &json!({"id": 1, "result": {}}), "B-BASE-02", "/jsonrpc");
    breaks(&mut open(), &json!({"jsonrpc": 2.0, "id": 1, "result": {}}), "B-BASE-02", "/jsonrpc");
    breaks(&mut open(), &json!({"jsonrpc": "2.0", "id": 1, "result": {}, "x": 1}), "B-BASE-02", "/x");
    breaks(&mut open(), &json!({"jsonrpc": "2.0", "id": 1}), "S-BASE-02", "");
    let both = json!({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "m"}});
    breaks(&mut open(), &both, "S-BASE-02", "");
    breaks(&mut ledger(A, json!({}), &[request("ping", json!({}))]), &both, "LB-LIFE-09", "");
    breaks(&mut open(), &json!({"jsonrpc": "2.0", "id": 1, "result": []}), "S-BASE-02", "/result");
    breaks(&mut open(), &json!({"jsonrpc": "2.0", "id": 1.5, "result": {}}), "S-BASE-01", "/id");
    breaks(&mut open(), &json!({"jsonrpc": "2.0", "id": 1, "error": "no"}), "S-BASE-05", "/error");
    let error = |error: Value| json!({"jsonrpc": "2.0", "id": 1, "error": error});
    breaks(&mut open(), &error(json!({"code": 1.5, "message": "m"})), "S-BASE-06", "/error/code");
    breaks(&mut open(), &error(json!({"code": 1})), "S-BASE-05", "/error/message");
    breaks(&mut open(), &error(json!({"code": 1, "message": "m", "stack": ""})), "B-BASE-02", "/error/stack");
    let tagged = json!({"jsonrpc": "2.0", "id": 9, "method": "notifications/message", "params": {"level": "info", "data": 1}});
    breaks(&mut open(), &tagged, "B-BASE-05", "/id");
    breaks(&mut open(), &json!({"jsonrpc": "2.0", "id": null, "method": "ping"}), "LB-LIFE-08", "/id");
    breaks(&mut open(), &notification("notifications/x", json!([])), "B-BASE-02", "/params");
}

#[test]
fn a_response_answers_one_open_request_once() {
    let mut open = ledger(C, json!({}), &[request("ping", json!({}))]);
    breaks(&mut open, &json!({"jsonrpc": "2.0", "id": "1", "result": {}}), "S-BASE-01", "/id");
    breaks(&mut open, &json!({"jsonrpc": "2.0", "id": 2, "result": {}}), "S-BASE-01", "/id");
    keeps(&mut open, &json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let again = breaks(&mut open, &json!({"jsonrpc": "2.0", "id": 1, "result": {}}), "S-BASE-01", "/id");
    assert_eq!(again.rule, "one-response");
}

/// A wrong id is one fault: one breach, which says which id came and which should have come.
#[test]
fn a_wrong_id_is_told_once_with_the_one_that_was_meant() {
    let big = 9_007_199_254_740_993_u64;
    for (sent, got, expected) in [
        (json!(big), json!(9_007_199_254_740_992_u64), "the number 9007199254740993"),
        (json!(big), json!(9_007_199_254_740_992.0), "the number 9007199254740993"),
        (json!(7), json!("7"), "the number 7"),
        (json!("7"), json!(7), "the string \"7\""),
        (json!("a"), Value::Null, "the string \"a\""),
        (json!("a"), json!({}), "the string \"a\""),
        (json!("a"), json!("b"), "the string \"a\""),
    ] {
        for revision in [D, E] {
            let mut call = request("tools/call", json!({}));
            call["id"] = sent.clone();
            let mut ledger = ledger(revision, json!({}), &[call]);
            let mut answer = response(revision, json!({"content": []}));
            answer["id"] = got.clone();
            let breaches = ledger.received(&answer);
            let [breach] = breaches.as_slice() else { panic!("not one breach: {breaches:#?}") };
            assert!(breach.requires.contains(&"S-BASE-01") && breach.at == "/id", "{breach:?}");
            assert!(breach.expected.ends_with(expected), "{}", breach.expected);
            assert_eq!(breach.got, got.to_string());
            // JSON lets a reader limit the precision of numbers [RFC 8259, section 6]; an id is an integer all the same.
            let level = if sent == json!(big) && got.is_u64() { Level::Should } else { Level::Must };
            assert_eq!(breach.level, level);
        }
    }
    let two = [1, 2].map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    let answer = json!({"jsonrpc": "2.0", "id": 3, "result": {}});
    let breach = breaks(&mut ledger(D, json!({}), &two), &answer, "S-BASE-01", "/id");
    assert!(breach.expected.starts_with("the id of an open request"), "{}", breach.expected);
}

#[test]
fn an_error_without_an_id_needs_input_without_a_readable_one() {
    let nameless = json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "m"}});
    let mut quiet = ledger(D, json!({}), &[request("ping", json!({}))]);
    breaks(&mut quiet, &nameless, "S-BASE-04", "/id");
    quiet.sent_raw(b"{bad\n");
    keeps(&mut quiet, &nameless);
    breaks(&mut quiet, &nameless, "S-BASE-04", "/id");
    // A lenient reader may find the id in a line that is not JSON.
    quiet.sent_raw(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"ping\"}{\"x\":1}\n");
    keeps(&mut quiet, &json!({"jsonrpc": "2.0", "id": 77, "error": {"code": -32700, "message": "m"}}));
}

/// V09: what one era writes on results, the other does not.
#[test]
fn results_belong_to_their_era() {
    for name in ["resultType", "ttlMs", "cacheScope"] {
        let mut open = ledger(A, json!({}), &[request("ping", json!({}))]);
        breaks(&mut open, &response(A, json!({name: 1})), "V09", &format!("/result/{name}"));
    }
    let open = |method: &str| ledger(E, json!({}), &[request(method, json!({}))]);
    keeps(&mut open("completion/complete"), &response(E, json!({"completion": {"values": []}})));
    let bare = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}});
    breaks(&mut open("tools/call"), &bare, "S-BASE-03", "/result/resultType");
    breaks(
        &mut open("tools/call"),
        &response(E, json!({"content": [], "resultType": "zzz"})),
        "B-BASE-03",
        "/result/resultType",
    );
    let nameless =
        response(E, json!({"content": [], "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s"}}}));
    blames(&open("tools/call").received(&nameless), &["B-WIRE-02"]);
    let unnamed = response(E, json!({"content": [], "_meta": {}}));
    let breach = breaks(
        &mut open("tools/call"),
        &unnamed,
        "S-META-06",
        "/result/_meta/io.modelcontextprotocol~1serverInfo",
    );
    assert_eq!(breach.level, Level::Should);
}

#[test]
fn cache_hints_stand_on_the_six_results_that_bear_them() {
    let open = || ledger(E, json!({}), &[request("tools/list", json!({}))]);
    keeps(&mut open(), &response(E, json!({"tools": [], "ttlMs": 0, "cacheScope": "private"})));
    breaks(
        &mut open(),
        &response(E, json!({"tools": [], "cacheScope": "private"})),
        "S-CACHE-01",
        "/result/ttlMs",
    );
    breaks(
        &mut open(),
        &response(E, json!({"tools": [], "ttlMs": -1, "cacheScope": "private"})),
        "S-CACHE-02",
        "/result/ttlMs",
    );
    breaks(
        &mut open(),
        &response(E, json!({"tools": [], "ttlMs": 0, "cacheScope": "all"})),
        "S-CACHE-01",
        "/result/cacheScope",
    );
}

#[test]
fn modern_error_codes_are_closed() {
    let open = || ledger(E, json!({}), &[request("tools/call", json!({}))]);
    keeps(&mut open(), &error(-32602, json!({})));
    keeps(&mut open(), &error(-32021, json!({"requiredCapabilities": {"sampling": {}}})));
    keeps(&mut open(), &error(-32022, json!({"supported": ["2026-07-28"], "requested": "x"})));
    breaks(&mut open(), &error(-32002, json!({})), "B-ERR-06", "/error/code");
    breaks(&mut open(), &error(-32042, json!({})), "B-ERR-06", "/error/code");
    breaks(&mut open(), &error(-32050, json!({})), "B-ERR-04", "/error/code");
    breaks(&mut open(), &error(-32020, json!({})), "B-ERR-05", "/error/code");
    breaks(&mut open(), &error(-32021, json!({})), "S-WIRE-02", "/error/data/requiredCapabilities");
    breaks(&mut open(), &error(-32022, json!({"requested": "x"})), "S-WIRE-01", "/error/data/supported");
    breaks(&mut open(), &error(-32022, json!({"supported": ["a"]})), "S-WIRE-01", "/error/data/requested");
    assert_eq!(
        breaks(&mut open(), &error(-32001, json!({})), "B-ERR-02", "/error/code").level,
        Level::Should
    );
    keeps(&mut ledger(D, json!({}), &[request("resources/read", json!({}))]), &error(-32002, json!({})));
}

#[test]
fn input_is_required_where_it_may_be_and_of_what_was_declared() {
    let declared =
        json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}}}});
    let open = |method: &str| ledger(E, json!({}), &[request(method, declared.clone())]);
    let asks =
        |requests: Value| response(E, json!({"resultType": "input_required", "inputRequests": requests}));
    let form = json!({"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}});
    keeps(&mut open("tools/call"), &asks(json!({"k": form})));
    keeps(
        &mut open("tools/call"),
        &response(E, json!({"resultType": "input_required", "requestState": "s"})),
    );
    breaks(&mut open("tools/list"), &asks(json!({"k": form})), "S-MRTR-02", "/result/resultType");
    breaks(
        &mut open("tools/call"),
        &response(E, json!({"resultType": "input_required"})),
        "S-MRTR-12",
        "/result",
    );
    breaks(
        &mut open("tools/call"),
        &asks(json!({"k": {"method": "ping"}})),
        "S-MRTR-04",
        "/result/inputRequests/k/method",
    );
    breaks(
        &mut open("tools/call"),
        &asks(json!({"k": {"method": "roots/list"}})),
        "S-MRTR-13",
        "/result/inputRequests/k/method",
    );
    let mut url = form.clone();
    url["params"] = json!({"mode": "url", "message": "m", "url": "https://x/"});
    breaks(&mut open("tools/call"), &asks(json!({"k": url})), "S-MRTR-13", "/result/inputRequests/k/method");
    let mut wrapped = form.clone();
    wrapped["id"] = json!(1);
    breaks(&mut open("tools/call"), &asks(json!({"k": wrapped})), "S-WIRE-14", "/result/inputRequests/k/id");
    let mut nested = form;
    nested["params"]["requestedSchema"]["properties"]["a"] = json!({"type": "object"});
    breaks(
        &mut open("tools/call"),
        &asks(json!({"k": nested})),
        "S-ELIC-05",
        "/result/inputRequests/k/params/requestedSchema/properties/a",
    );
    let tools =
        json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1, "tools": []}});
    breaks(
        &mut open("tools/call"),
        &asks(json!({"k": tools})),
        "S-SAMP-01",
        "/result/inputRequests/k/method",
    );
}

#[test]
fn a_task_needs_the_extension_on_this_request() {
    let task = json!({"resultType": "task", "taskId": "t", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null});
    let declared = json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}});
    let open = |params: &Value| ledger(E, json!({}), &[request("tools/call", params.clone())]);
    keeps(&mut open(&declared), &response(E, task.clone()));
    breaks(&mut open(&json!({})), &response(E, task.clone()), "S-TASK-01", "/result/resultType");
    let mut nested = task.clone();
    nested["task"] = json!({});
    breaks(&mut open(&declared), &response(E, nested), "S-WIRE-18", "/result/task");
    let mut short = task;
    short.as_object_mut().unwrap().remove("ttlMs");
    breaks(&mut open(&declared), &response(E, short), "S-WIRE-17", "/result");
}

#[test]
fn progress_is_for_a_live_token_and_increases() {
    let open = |revision| {
        ledger(revision, json!({}), &[request("tools/call", json!({"_meta": {"progressToken": 0}}))])
    };
    let progress = |token: Value, value: f64| {
        notification("notifications/progress", json!({"progressToken": token, "progress": value}))
    };
    for revision in [A, E] {
        let mut open = open(revision);
        breaks(&mut open, &progress(json!("0"), 1.0), "S-PROG-03", "/params/progressToken");
        keeps(&mut open, &progress(json!(0), 1.0));
        keeps(&mut open, &progress(json!(0), 2.5));
        breaks(&mut open, &progress(json!(0), 2.5), "S-PROG-01", "/params/progress");
        open.received(&response(revision, json!({"content": []})));
        breaks(&mut open, &progress(json!(0), 3.0), "S-PROG-04", "/params/progressToken");
    }
}

#[test]
fn log_messages_need_a_reason() {
    let log = |level: &str| notification("notifications/message", json!({"level": level, "data": "x"}));
    let mut legacy = ledger(D, json!({}), &[]);
    keeps(&mut legacy, &log("debug"));
    legacy.server = Some(json!({}));
    breaks(&mut legacy, &log("debug"), "S-LOG-01", "/method");
    let open = |meta: Value| ledger(E, json!({}), &[request("tools/call", json!({"_meta": meta}))]);
    breaks(&mut open(json!({})), &log("error"), "S-LOG-02", "/params/level");
    let mut asked = open(json!({"io.modelcontextprotocol/logLevel": "warning"}));
    keeps(&mut asked, &log("warning"));
    breaks(&mut asked, &log("info"), "S-LOG-02", "/params/level");
    breaks(&mut asked, &log("loud"), "S-WIRE-13", "/params/level");
    asked.received(&response(E, json!({"content": []})));
    breaks(&mut asked, &log("error"), "S-LOG-02", "/params/level");
}

#[test]
fn a_subscription_is_acknowledged_tagged_and_filtered() {
    let asked = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["a://b"]}});
    let open = || ledger(E, json!({}), &[request("subscriptions/listen", asked.clone())]);
    let tagged = |method: &str, tag: Value, mut params: Value| {
        params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": tag});
        notification(method, params)
    };
    let tag = "/params/_meta/io.modelcontextprotocol~1subscriptionId";
    let acknowledge = |kinds: Value| {
        tagged("notifications/subscriptions/acknowledged", json!(1), json!({"notifications": kinds}))
    };
    let tools = |tag: Value| tagged("notifications/tools/list_changed", tag, json!({}));
    let mut live = open();
    keeps(&mut live, &acknowledge(json!({"toolsListChanged": true})));
    keeps(&mut live, &tools(json!(1)));
    keeps(&mut live, &tagged("notifications/resources/updated", json!(1), json!({"uri": "a://b/c"})));
    breaks(
        &mut live,
        &tagged("notifications/resources/updated", json!(1), json!({"uri": "z://"})),
        "S-SUBS-01",
        "/method",
    );
    breaks(
        &mut live,
        &tagged("notifications/prompts/list_changed", json!(1), json!({})),
        "S-SUBS-01",
        "/method",
    );
    breaks(&mut live, &tools(json!("1")), "S-META-07", tag);
    breaks(&mut live, &notification("notifications/tools/list_changed", json!({})), "S-META-07", tag);
    breaks(&mut live, &acknowledge(json!({})), "S-SUBS-02", "/method");
    breaks(&mut open(), &tools(json!(1)), "S-SUBS-03", "/method");
    breaks(
        &mut open(),
        &acknowledge(json!({"promptsListChanged": true})),
        "S-WIRE-08",
        "/params/notifications/promptsListChanged",
    );
    breaks(
        &mut live,
        &response(E, json!({})),
        "S-WIRE-07",
        "/result/_meta/io.modelcontextprotocol~1subscriptionId",
    );
    breaks(&mut live, &tools(json!(1)), "U01", tag);
    let cancel = |id: i64| notification("notifications/cancelled", json!({"requestId": id}));
    keeps(&mut open(), &cancel(1));
    breaks(&mut open(), &cancel(2), "S-CANCEL-03", "/params/requestId");
}

/// JSON-RPC 2.0, section 5: the id is null where the request is invalid.
#[test]
fn an_invalid_request_may_be_answered_without_its_id() {
    let nameless = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "m"}});
    let invalid = [
        json!({"jsonrpc": "2.0", "id": 1}),
        json!({"jsonrpc": "2.0", "id": 1, "method": 7}),
        json!({"id": 1, "method": "ping"}),
        json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": 7}),
    ];
    for sent in invalid {
        keeps(&mut ledger(D, json!({}), std::slice::from_ref(&sent)), &nameless);
        let with_its_id = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "m"}});
        keeps(&mut ledger(D, json!({}), &[sent]), &with_its_id);
    }
    breaks(&mut ledger(D, json!({}), &[request("ping", json!({}))]), &nameless, "S-BASE-04", "/id");
}

#[test]
fn half_a_surrogate_pair_is_json() {
    let line = br#"{"jsonrpc":"2.0","id":1,"result":{"x":"a\ud83d b"}}"#;
    assert_eq!(ledger(D, json!({}), &[request("ping", json!({}))]).line(line).unwrap().len(), 1);
    line_breaks(&mut ledger(D, json!({}), &[]), br#"{"x":"\ud83d"#, "B-BASE-02");
}

/// A rule weighs what the revision's text weighs: to keep to what was negotiated is a SHOULD at first.
#[test]
fn a_rule_is_no_stronger_than_what_the_revision_says() {
    let asks = json!({"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": {}});
    let level = |revision, id| breaks(&mut ledger(revision, json!({}), &[]), &asks, id, "/method").level;
    assert_eq!(level(B, "LB-LIFE-04"), Level::Should);
    let unknown = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}});
    let late = breaks(&mut ledger(D, json!({}), &[]), &unknown, "LB-LIFE-03", "/method");
    assert_eq!(late.level, Level::Must);
}

#[test]
fn a_server_asks_only_in_the_legacy_era_and_only_what_was_negotiated() {
    let asks = |method: &str, id: i64, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    breaks(
        &mut ledger(E, json!({"roots": {}}), &[]),
        &asks("roots/list", 1, json!({})),
        "S-BASE-08",
        "/method",
    );
    let mut open = ledger(D, json!({"roots": {}, "elicitation": {}}), &[]);
    keeps(&mut open, &asks("ping", 1, json!({})));
    keeps(&mut open, &asks("roots/list", 2, json!({})));
    breaks(&mut open, &asks("roots/list", 2, json!({})), "LB-LIFE-07", "/id");
    breaks(
        &mut open,
        &asks("sampling/createMessage", 3, json!({"messages": [], "maxTokens": 1})),
        "LB-LIFE-03",
        "/method",
    );
    breaks(
        &mut open,
        &asks(
            "elicitation/create",
            4,
            json!({"mode": "url", "message": "m", "url": "u", "elicitationId": "e"}),
        ),
        "S-ELIC-03",
        "/method",
    );
    breaks(&mut open, &asks("elicitation/create", 5, json!({"message": "m"})), "S-ELIC-05", "/params");
    breaks(&mut open, &asks("tools/list", 6, json!({})), "LB-LIFE-03", "/method");
    let cancel = |id: i64| notification("notifications/cancelled", json!({"requestId": id}));
    keeps(&mut open, &cancel(1));
    breaks(&mut open, &cancel(99), "LB-CANCEL-01", "/params/requestId");
    let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    breaks(
        &mut ledger(B, json!({"elicitation": {}}), &[]),
        &asks("elicitation/create", 1, form),
        "LB-LIFE-04",
        "/method",
    );
    let mut early = Ledger::new(C, Transport::Stdio, json!({"roots": {}}));
    assert_eq!(
        breaks(&mut early, &asks("roots/list", 1, json!({})), "LS-LIFE-02", "/method").level,
        Level::Should
    );
}

#[test]
fn legacy_notifications_were_negotiated_too() {
    let mut open = ledger(C, json!({}), &[]);
    keeps(&mut open, &notification("notifications/tools/list_changed", json!({})));
    breaks(
        &mut open,
        &notification("notifications/prompts/list_changed", json!({})),
        "LB-LIFE-03",
        "/method",
    );
    let updated = notification("notifications/resources/updated", json!({"uri": "a://b"}));
    breaks(&mut open, &updated, "LS-RES-02", "/params/uri");
    open.sent(&request("resources/subscribe", json!({"uri": "a://b"})));
    keeps(&mut open, &updated);
    breaks(
        &mut open,
        &notification("notifications/subscriptions/acknowledged", json!({"notifications": {}})),
        "V09",
        "/method",
    );
}

/// E09, W01, R03, LS-TOOL-01, LS-TOOL-02.
#[test]
fn known_members_have_their_types_and_their_time() {
    let open = |revision, method: &str| ledger(revision, json!({}), &[request(method, json!({}))]);
    let call = |revision, result: Value| (open(revision, "tools/call"), response(revision, result));
    let (mut ledger, message) =
        call(A, json!({"content": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]}));
    breaks(&mut ledger, &message, "LS-TOOL-02", "/result/content/0");
    let (mut ledger, message) =
        call(B, json!({"content": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]}));
    keeps(&mut ledger, &message);
    let (mut ledger, message) = call(B, json!({"content": [], "structuredContent": {}}));
    assert_eq!(breaks(&mut ledger, &message, "LS-TOOL-02", "/result/structuredContent").level, Level::Should);
    let (mut ledger, message) = call(C, json!({"content": [], "structuredContent": [1]}));
    breaks(&mut ledger, &message, "LS-TOOL-01", "/result/structuredContent");
    let (mut ledger, message) =
        call(E, json!({"content": [{"type": "text", "text": "[null]"}], "structuredContent": [null]}));
    keeps(&mut ledger, &message);
    let (mut ledger, message) =
        call(D, json!({"content": [{"type": "image", "data": "a-b_", "mimeType": "x/y"}]}));
    breaks(&mut ledger, &message, "R03", "/result/content/0/data");
    let (mut ledger, message) = call(D, json!({"content": [{"type": "text"}]}));
    breaks(&mut ledger, &message, "W01", "/result/content/0");
    let (mut ledger, message) =
        call(D, json!({"content": [{"type": "text", "text": "x", "annotations": null}]}));
    breaks(&mut ledger, &message, "E09", "/result/content/0/annotations");
    let (mut ledger, message) = call(D, json!({"content": [], "isError": "no"}));
    breaks(&mut ledger, &message, "W01", "/result/isError");
    let tools = json!({"tools": [{"name": "t", "inputSchema": {"type": "string"}}], "nextCursor": null});
    let mut list = open(D, "tools/list");
    breaks(&mut list, &response(D, tools), "E09", "/result/nextCursor");
    let mut list = open(D, "tools/list");
    breaks(
        &mut list,
        &response(D, json!({"tools": [{"name": "t", "inputSchema": {"type": "string"}}]})),
        "W01",
        "/result/tools/0/inputSchema",
    );
    let values: Vec<_> = (0..101).map(|n| n.to_string()).collect();
    let complete = response(C, json!({"completion": {"values": values}}));
    breaks(&mut open(C, "completion/complete"), &complete, "M01", "/result/completion/values");
}

#[test]
fn a_list_offers_what_was_declared_and_each_name_once() {
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}});
    for revision in [B, D, E] {
        let lists = |capabilities: Value| {
            let mut ledger = ledger(revision, json!({}), &[request("tools/list", json!({}))]);
            ledger.server = Some(capabilities.clone());
            ledger.discovered = Some(capabilities);
            ledger
        };
        let hints = |mut result: Value| {
            if revision == E {
                result["ttlMs"] = json!(0);
                result["cacheScope"] = json!("public");
            }
            response(revision, result)
        };
        let some = hints(json!({"tools": [tool]}));
        breaks(&mut lists(json!({})), &some, "S-TOOL-01", "/result/tools");
        keeps(&mut lists(json!({"tools": {}})), &some);
        keeps(&mut lists(json!({})), &hints(json!({"tools": []})));
        let twice = hints(json!({"tools": [tool, tool]}));
        if revision >= D {
            let breach =
                breaks(&mut lists(json!({"tools": {}})), &twice, "S-TOOL-10", "/result/tools/1/name");
            assert_eq!(breach.level, Level::Should);
        } else {
            keeps(&mut lists(json!({"tools": {}})), &twice);
        }
    }
}

#[test]
fn meta_names_keep_to_the_grammar() {
    let hold = |revision, key: &str| {
        let mut open = ledger(revision, json!({}), &[request("ping", json!({}))]);
        open.received(&response(revision, json!({"_meta": {key: 1}})))
    };
    for good in ["a", "com.example/x", "com.example/", "io.modelcontextprotocol/related-task", "a_b.c-d"] {
        assert_eq!(hold(C, good), [], "{good}");
    }
    for (bad, id) in [
        ("-a", "B-META-05"),
        ("a-", "B-META-05"),
        ("a b", "B-META-05"),
        ("com.example/-x", "B-META-05"),
        ("1com/x", "B-META-03"),
        ("com.ex_ample/x", "B-META-03"),
        ("com.ex-/x", "B-META-03"),
        ("com./x", "B-META-02"),
        ("/x", "B-META-02"),
        ("a/b/c", "B-META-02"),
    ] {
        assert!(hold(C, bad).iter().any(|breach| breach.requires == [id]), "{bad}");
        assert_eq!(hold(B, bad), [], "{bad}: the grammar came later");
    }
}

/// V09, S-BASE-03: a modern connection may have a legacy session beside it, and each answer is judged by the era
/// of its request.
#[test]
fn both_eras_share_a_connection() {
    let mut shared = Ledger::new(E, Transport::Stdio, json!({}));
    let stamped = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}});
    let ask =
        |id: &str, params: &Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping", "params": params});
    let answer = |id: &str, result: &Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let lost = |id: &str| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32002, "message": "m"}});
    let complete = response(E, json!({}))["result"].clone();
    let change = notification("notifications/tools/list_changed", json!({}));
    breaks(&mut shared, &change, "S-META-07", "/params/_meta/io.modelcontextprotocol~1subscriptionId");
    shared.sent(&json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {"capabilities": {"roots": {}}}}));
    let capabilities = json!({"tools": {"listChanged": true}});
    let opened = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "s", "version": "1"}});
    keeps(&mut shared, &answer("i", &opened));
    for id in ["l1", "l2", "l3"] {
        shared.sent(&ask(id, &json!({})));
    }
    for id in ["m1", "m2", "m3"] {
        shared.sent(&ask(id, &stamped));
    }
    assert_eq!(shared.revision_of(&answer("l1", &json!({}))), D);
    assert_eq!(shared.revision_of(&answer("m1", &json!({}))), E);
    assert_eq!(shared.revision_of(&change), D);
    keeps(&mut shared, &answer("l1", &json!({})));
    breaks(&mut shared, &answer("l2", &complete), "V09", "/result/resultType");
    keeps(&mut shared, &lost("l3"));
    keeps(&mut shared, &answer("m1", &complete));
    breaks(&mut shared, &answer("m2", &json!({})), "S-BASE-03", "/result/resultType");
    breaks(&mut shared, &lost("m3"), "B-ERR-06", "/error/code");
    keeps(&mut shared, &change);
}

/// A session is judged by the version that was settled on, not by the one that was offered.
#[test]
fn a_session_follows_the_settled_version() {
    let mut open = Ledger::new(A, Transport::Stdio, json!({}));
    open.sent(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}));
    let info = json!({"name": "s", "version": "1", "title": "S"});
    keeps(
        &mut open,
        &response(A, json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info})),
    );
    let mut open = Ledger::new(A, Transport::Stdio, json!({}));
    open.sent(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}));
    let old = response(A, json!({"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": info}));
    breaks(&mut open, &old, "LS-TOOL-02", "/result/serverInfo/title");
}

/// The members that a message cannot do without, method by method.
#[test]
fn members_of_every_method_have_their_types() {
    for (revision, method, id) in [
        (E, "server/discover", "S-WIRE-03"),
        (E, "tools/list", "S-WIRE-05"),
        (E, "tools/call", "S-WIRE-11"),
        (E, "resources/read", "S-WIRE-06"),
        (E, "prompts/get", "S-WIRE-10"),
        (E, "completion/complete", "S-WIRE-15"),
        (E, "tasks/get", "S-WIRE-17"),
        (D, "tasks/cancel", "LB-TASK-15"),
        (D, "tasks/list", "LB-TASK-15"),
        (D, "initialize", "LS-LIFE-01"),
    ] {
        let mut open = ledger(revision, json!({}), &[request(method, json!({}))]);
        blames(&open.received(&response(revision, json!({}))), &[id]);
    }
    for (revision, method, id) in [
        (E, "notifications/progress", "S-WIRE-04"),
        (E, "notifications/resources/updated", "S-WIRE-09"),
        (E, "notifications/cancelled", "B-WIRE-01"),
        (E, "notifications/subscriptions/acknowledged", "S-WIRE-08"),
        (D, "notifications/elicitation/complete", "LS-ELIC-04"),
        (D, "notifications/tasks/status", "LB-TASK-15"),
        (E, "notifications/tasks", "S-WIRE-17"),
    ] {
        let mut open = ledger(revision, json!({}), &[]);
        blames(&open.received(&notification(method, json!({}))), &[id]);
    }
}
