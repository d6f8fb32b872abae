//! What messages hold beyond the types of their members: schemas, prompts, questions, tasks.

use serde_json::{Value, json};

use super::{B, C, D, E, blames, breaks, error, keeps, ledger, notification, request, response};
use crate::requirement::Level;

/// B-JSCH-06, S-HDR-05 to S-HDR-11.
#[test]
pub(super) fn published_schemas_are_valid_and_their_annotations_can_be_mirrored() {
    let listed = |revision, schema: Value| {
        let mut open = ledger(revision, json!({}), &[request("tools/list", json!({}))]);
        let tools =
            json!({"tools": [{"name": "t", "inputSchema": schema}], "ttlMs": 0, "cacheScope": "public"});
        let mut message = response(revision, tools);
        if revision != E {
            message["result"].as_object_mut().unwrap().retain(|name, _| name == "tools");
        }
        open.received(&message)
    };
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let good = object(json!({
        "a": {"type": "string", "x-mcp-header": "A"},
        "b": {"type": "object", "properties": {"c": {"type": "integer", "x-mcp-header": "B-c"}}},
        "x-mcp-header": {"type": "string"},
        "d": {"const": {"x-mcp-header": "not an annotation"}},
    }));
    assert_eq!(listed(E, good), []);
    for (id, schema) in [
        ("S-HDR-05", object(json!({"a": {"type": "string", "x-mcp-header": ""}}))),
        ("S-HDR-06", object(json!({"a": {"type": "string", "x-mcp-header": "a b"}}))),
        ("S-HDR-06", object(json!({"a": {"type": "string", "x-mcp-header": 5}}))),
        ("S-HDR-07", object(json!({"a": {"type": "string", "x-mcp-header": "a\r\nb"}}))),
        (
            "S-HDR-08",
            object(
                json!({"a": {"type": "string", "x-mcp-header": "X"}, "b": {"type": "string", "x-mcp-header": "x"}}),
            ),
        ),
        ("S-HDR-09", object(json!({"a": {"type": "number", "x-mcp-header": "A"}}))),
        (
            "S-HDR-10",
            object(json!({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}})),
        ),
        ("S-HDR-11", object(json!({"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}}))),
        (
            "S-HDR-11",
            json!({"type": "object", "$defs": {"a": {"type": "string", "x-mcp-header": "A"}}, "properties": {"b": {"$ref": "#/$defs/a"}}}),
        ),
        (
            "S-HDR-11",
            json!({"type": "object", "if": {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}}),
        ),
    ] {
        let breaches = listed(E, schema.clone());
        assert_eq!(breaches.len(), 1, "{schema}: {breaches:#?}");
        blames(&breaches, &[id]);
        // The annotation came with 2026-07-28.
        assert_eq!(listed(D, schema), []);
    }
    let odd = object(json!({"a": {"type": "strnig"}}));
    blames(&listed(D, odd.clone()), &["B-JSCH-06"]);
    assert_eq!(listed(C, odd), []);
    let older = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"a": {"items": [{}]}}});
    let breaches = listed(D, older.clone());
    blames(&breaches, &["B-JSCH-03"]);
    assert_eq!((breaches.len(), breaches[0].level), (1, Level::Should));
    let mut invalid = older;
    invalid["properties"]["a"]["minItems"] = json!(-1);
    blames(&listed(D, invalid), &["B-JSCH-06"]);
}

#[test]
pub(super) fn extensions_have_prefixes_and_uris_schemes() {
    let discovered = |extensions: Value| {
        let mut open = ledger(E, json!({}), &[request("server/discover", json!({}))]);
        let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"extensions": extensions}, "ttlMs": 0, "cacheScope": "public"});
        open.received(&response(E, result))
    };
    assert_eq!(discovered(json!({"io.modelcontextprotocol/tasks": {}, "com.example/": {}})), []);
    for bad in ["tasks", "-x/tasks", "com.example/-x"] {
        blames(&discovered(json!({bad: {}})), &["B-EXT-01"]);
    }
    let read = |uri: &str| {
        let mut open = ledger(C, json!({}), &[request("resources/read", json!({}))]);
        open.received(&response(C, json!({"contents": [{"uri": uri, "text": ""}]})))
    };
    for good in ["file:///a", "git+ssh://x", "a1.b-c:d", "no-scheme"] {
        assert_eq!(read(good), []);
    }
    let blob = response(C, json!({"contents": [{"uri": "a://b", "blob": "a-b_"}]}));
    let read_blob = ledger(C, json!({}), &[request("resources/read", json!({}))]).received(&blob);
    blames(&read_blob, &["S-RES-13", "R03"]);
    for bad in ["my_scheme://a", "1x:a", ":a", "a b:c"] {
        blames(&read(bad), &["S-RES-07"]);
    }
}

#[test]
pub(super) fn a_prompt_embeds_what_can_be_used() {
    let prompt = |content: Value| {
        let mut open = ledger(D, json!({}), &[request("prompts/get", json!({}))]);
        open.received(&response(D, json!({"messages": [{"role": "user", "content": content}]})))
    };
    assert_eq!(prompt(json!({"type": "image", "data": "AAAA", "mimeType": "image/png"})), []);
    assert_eq!(
        prompt(
            json!({"type": "resource", "resource": {"uri": "a://b", "text": "", "mimeType": "text/plain"}})
        ),
        []
    );
    for (kind, id) in [("image", "S-PROMPT-05"), ("audio", "S-PROMPT-06")] {
        blames(&prompt(json!({"type": kind, "data": "_-", "mimeType": "a/b"})), &[id, "R03"]);
        blames(&prompt(json!({"type": kind, "data": "AAAA", "mimeType": "png"})), &[id]);
    }
    blames(
        &prompt(json!({"type": "resource", "resource": {"uri": "a://b", "mimeType": "a/b"}})),
        &["S-PROMPT-07"],
    );
    let untyped = prompt(json!({"type": "resource", "resource": {"uri": "a://b", "text": ""}}));
    blames(&untyped, &["S-PROMPT-07"]);
    assert_eq!(untyped[0].level, Level::Should);
}

/// S-SAMP-02 to S-SAMP-07, B-SAMP-03.
#[test]
pub(super) fn the_messages_for_a_model_answer_each_tool_use() {
    let asks = |revision, messages: Value| {
        let mut open = ledger(revision, json!({"sampling": {"tools": {}}}), &[]);
        let params = json!({"messages": messages, "maxTokens": 1});
        open.received(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": params}),
        )
    };
    let used =
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "t", "input": {}}]});
    let result = |id: &str| json!({"type": "tool_result", "toolUseId": id, "content": []});
    let text = json!({"type": "text", "text": "x"});
    let user = |content: Value| json!({"role": "user", "content": content});
    assert_eq!(asks(D, json!([user(text.clone()), used, user(json!([result("u")]))])), []);
    for (id, messages) in [
        ("S-SAMP-04", json!([used, user(json!([result("u"), text]))])),
        ("S-SAMP-05", json!([used, user(text.clone())])),
        ("S-SAMP-06", json!([used])),
        ("S-SAMP-06", json!([used, {"role": "assistant", "content": [result("u")]}])),
        ("S-SAMP-07", json!([user(json!([result("v")]))])),
    ] {
        blames(&asks(D, messages), &[id]);
    }
    let embedded = |params: Value| {
        let declared = json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}}});
        let mut open = ledger(E, json!({}), &[request("tools/call", declared)]);
        let asked = json!({"k": {"method": "sampling/createMessage", "params": params}});
        open.received(&response(E, json!({"resultType": "input_required", "inputRequests": asked})))
    };
    let message = user(text);
    assert_eq!(embedded(json!({"messages": [message], "maxTokens": 1})), []);
    blames(&embedded(json!({"messages": [{"role": "user"}], "maxTokens": 1})), &["B-SAMP-03", "S-WIRE-14"]);
    let context = embedded(json!({"messages": [message], "maxTokens": 1, "includeContext": "thisServer"}));
    blames(&context, &["S-SAMP-02", "S-SAMP-03"]);
    assert!(context.iter().all(|breach| breach.level == Level::Should));
}

#[test]
pub(super) fn a_user_is_asked_for_no_secret_and_sent_to_an_address() {
    let asks = |revision, params: Value| {
        let mut open = ledger(revision, json!({"elicitation": {"form": {}, "url": {}}}), &[]);
        open.received(&json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}))
    };
    let form = |name: &str, field: Value| json!({"message": "m", "requestedSchema": {"type": "object", "properties": {name: field}}});
    assert_eq!(asks(D, form("token_count", json!({"type": "string", "description": "How many"}))), []);
    for secret in ["password", "api_key", "creditCardNumber"] {
        let breaches = asks(D, form(secret, json!({"type": "string"})));
        blames(&breaches, &["S-ELIC-01", "S-ELIC-02"]);
        assert_eq!(breaches[0].level, Level::Should);
        blames(&asks(C, form(secret, json!({"type": "string"}))), &["LS-ELIC-01"]);
    }
    blames(&asks(D, form("a", json!({"type": "string", "description": "See https://x/"}))), &["S-ELIC-21"]);
    let url = |url: &str| json!({"mode": "url", "message": "m", "url": url, "elicitationId": "e"});
    for good in ["https://x/", "http://localhost:1/", "http://127.0.0.1/", "app:open"] {
        assert_eq!(asks(D, url(good)), []);
    }
    for bad in ["x", "a b://c", "https:", "https://a b/"] {
        blames(&asks(D, url(bad)), &["S-ELIC-07"]);
    }
    blames(&asks(D, url("http://example.com/")), &["S-ELIC-22"]);
    blames(&asks(D, json!({"mode": "url", "message": "m", "elicitationId": "e"})), &["S-ELIC-06"]);
}

/// LS-ELIC-05, LS-ELIC-06, LS-ELIC-09.
#[test]
pub(super) fn where_the_user_has_to_go_is_told_whole() {
    let refused = |data: Value| {
        ledger(D, json!({}), &[request("tools/call", json!({}))]).received(&error(-32042, data))
    };
    let whole = json!({"mode": "url", "elicitationId": "e", "url": "https://x/", "message": "m"});
    assert_eq!(refused(json!({"elicitations": [whole]})), []);
    let without = |name: &str| {
        let mut one = whole.clone();
        one.as_object_mut().unwrap().remove(name);
        refused(json!({"elicitations": [one]}))
    };
    blames(&refused(json!({})), &["LS-ELIC-05", "LS-ELIC-06"]);
    blames(&refused(json!({"elicitations": []})), &["LS-ELIC-05"]);
    blames(&without("elicitationId"), &["LS-ELIC-09"]);
    blames(&without("mode"), &["LS-ELIC-09"]);
    blames(&without("url"), &["S-ELIC-06"]);
    // The code is free in other revisions of the era.
    let mut earlier = ledger(C, json!({}), &[request("tools/call", json!({}))]);
    assert_eq!(earlier.received(&error(-32042, json!({}))), []);
}

#[test]
pub(super) fn tasks_differ_and_so_do_their_questions() {
    let declared = json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}});
    let task = |id: i64, status: &str| {
        let mut made = response(
            E,
            json!({"resultType": "task", "taskId": "t", "status": status, "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null}),
        );
        made["id"] = json!(id);
        made
    };
    let ask = |id: i64, method: &str| {
        let mut ask = request(method, declared.clone());
        ask["id"] = json!(id);
        ask
    };
    let calls = [
        ask(1, "tools/call"),
        ask(2, "tools/call"),
        ask(3, "tasks/get"),
        ask(4, "tasks/get"),
        ask(5, "tasks/get"),
    ];
    let mut open = ledger(E, json!({}), &calls);
    keeps(&mut open, &task(1, "working"));
    blames(&open.received(&task(2, "working")), &["S-TASK-39"]);
    let asks = |id: i64, text: &str, field: &str| {
        let mut told = task(id, "input_required");
        told["result"]["resultType"] = json!("complete");
        let form = json!({"message": text, "requestedSchema": {"type": "object", "properties": {field: {"type": "string"}}}});
        told["result"]["inputRequests"] = json!({"k": {"method": "elicitation/create", "params": form}});
        told
    };
    keeps(&mut open, &asks(3, "One", "a"));
    keeps(&mut open, &asks(4, "Still one", "a"));
    blames(&open.received(&asks(5, "Two", "b")), &["S-TASK-19", "S-TASK-17"]);
    let mut misplaced = ledger(E, json!({}), &[request("prompts/get", declared)]);
    blames(&misplaced.received(&task(1, "working")), &["S-TASK-04"]);
}

/// LB-TASK-01, LB-TASK-08, LB-PROG-01, LB-PROG-02.
#[test]
pub(super) fn progress_of_a_task_keeps_its_token_and_ends_with_it() {
    let call = |id: i64| {
        let mut call = request("tools/call", json!({"task": {}, "_meta": {"progressToken": "p"}}));
        call["id"] = json!(id);
        call
    };
    let get = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "tasks/get", "params": {"taskId": "t"}});
    let task = |status: &str| json!({"taskId": "t", "status": status, "createdAt": "x", "lastUpdatedAt": "x", "ttl": null});
    let made = |id: i64| json!({"jsonrpc": "2.0", "id": id, "result": {"task": task("working")}});
    let progress = |token: &str, value: i64| {
        notification("notifications/progress", json!({"progressToken": token, "progress": value}))
    };
    let start = || {
        let mut open = ledger(D, json!({}), &[call(1), call(2), get(3)]);
        open.server = Some(json!({"tasks": {"requests": {"tools": {"call": {}}}}}));
        keeps(&mut open, &made(1));
        open
    };
    blames(&start().received(&made(2)), &["LB-TASK-08"]);
    let mut open = start();
    keeps(&mut open, &progress("p", 1));
    blames(&open.received(&progress("q", 2)), &["LB-PROG-01", "S-PROG-03"]);
    let mut ended = task("completed");
    ended["taskId"] = json!("t");
    keeps(&mut open, &json!({"jsonrpc": "2.0", "id": 3, "result": ended}));
    blames(&open.received(&progress("p", 2)), &["LB-PROG-02"]);
    open.sent(&get(4));
    let again = json!({"jsonrpc": "2.0", "id": 4, "result": task("working")});
    blames(&open.received(&again), &["LB-TASK-09", "LB-TASK-10"]);
    let mut related = task("working");
    related["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": "t"}});
    let told = start().received(&json!({"jsonrpc": "2.0", "id": 3, "result": related}));
    blames(&told, &["LB-TASK-21"]);
    let mut undeclared = ledger(D, json!({}), &[call(1)]);
    blames(&undeclared.received(&made(1)), &["LB-TASK-01", "LB-TASK-07"]);
}

#[test]
pub(super) fn a_server_cancels_a_task_of_the_client_as_one() {
    let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    let ask = |id: i64, params: &Value| json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
    let mut as_task = form.clone();
    as_task["task"] = json!({});
    let asked = ledger(D, json!({"elicitation": {}}), &[]).received(&ask(1, &as_task));
    blames(&asked, &["LB-TASK-02", "LB-TASK-03"]);
    assert_eq!(asked[0].level, Level::Should);
    let tasks = json!({"requests": {"elicitation": {"create": {}}}});
    let mut open = ledger(D, json!({"elicitation": {}, "tasks": tasks}), &[]);
    keeps(&mut open, &ask(1, &form));
    keeps(&mut open, &ask(2, &as_task));
    let cancel = |id: i64| notification("notifications/cancelled", json!({"requestId": id}));
    keeps(&mut open, &cancel(1));
    breaks(&mut open, &cancel(2), "LB-CANCEL-02", "/params/requestId");
}

/// LS-LIFE-06, S-COMPL-01, S-RES-01, S-PROMPT-01, S-SEPX-01.
#[test]
pub(super) fn what_is_offered_was_declared() {
    for (method, result, id) in [
        ("prompts/list", json!({"prompts": [{"name": "p"}]}), "S-PROMPT-01"),
        ("resources/list", json!({"resources": [{"uri": "a://b", "name": "r"}]}), "S-RES-01"),
        (
            "resources/templates/list",
            json!({"resourceTemplates": [{"uriTemplate": "a://{b}", "name": "r"}]}),
            "S-RES-01",
        ),
        ("completion/complete", json!({"completion": {"values": ["v"]}}), "S-COMPL-01"),
    ] {
        let mut open = ledger(B, json!({}), &[request(method, json!({}))]);
        open.server = Some(json!({}));
        blames(&open.received(&response(B, result)), &[id, "LS-LIFE-06"]);
    }
    let embedded = json!({"content": [{"type": "resource", "resource": {"uri": "a://b", "text": ""}}]});
    let mut open = ledger(D, json!({}), &[request("tools/call", json!({}))]);
    keeps(&mut open, &response(D, embedded.clone()));
    let mut open = ledger(D, json!({}), &[request("tools/call", json!({}))]);
    open.server = Some(json!({"tools": {}}));
    blames(&open.received(&response(D, embedded)), &["S-TOOL-11"]);
    let structured = |result: Value| {
        ledger(E, json!({}), &[request("tools/call", json!({}))]).received(&response(E, result))
    };
    assert_eq!(
        structured(json!({"content": [{"type": "text", "text": "[1]"}], "structuredContent": [1]})),
        []
    );
    blames(&structured(json!({"content": [], "structuredContent": [1]})), &["S-SEPX-01"]);
}

#[test]
pub(super) fn errors_are_short_and_of_their_own_range() {
    let refused = |code: i64, text: &str| {
        let mut refused = error(code, json!({}));
        refused["error"]["message"] = json!(text);
        ledger(E, json!({}), &[request("tools/call", json!({}))]).received(&refused)
    };
    for code in [-32700, -32600, -32603, -31999, 404, 1] {
        assert_eq!(refused(code, "m"), []);
    }
    for code in [-32768, -32604, -32100] {
        blames(&refused(code, "m"), &["B-ERR-07"]);
    }
    let long = refused(-32603, "Traceback\n  File x\n");
    blames(&long, &["S-BASE-07"]);
    assert_eq!(long[0].level, Level::Should);
}
