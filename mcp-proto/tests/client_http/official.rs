//! What the official suite asks of clients, scenario by scenario, and the repair of headers.

use mcp_proto::client::{CallError, CallOptions, request};
use mcp_proto::model::InputResponses;
use serde_json::{Value, json};

use crate::driver::*;

fn list(driver: &mut Driver, tools: &Value) -> Value {
    let call = driver.call(&request::ListTools::new());
    let sent = driver.one();
    assert_eq!((&*sent.rpc(), sent.header("mcp-name")), ("tools/list", None));
    driver.json(
        &sent,
        200,
        &result(&sent, json!({"tools": tools, "ttlMs": 300_000, "cacheScope": "public"})),
    );
    let Seen::Complete(done, listed) = driver.event() else { panic!() };
    assert_eq!(done, call);
    listed
}

fn tool(name: &str, properties: &Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

fn custom() -> Value {
    let annotated = |kind: &str, header: &str| json!({"type": kind, "x-mcp-header": header});
    json!([
        tool(
            "test_custom_headers",
            &json!({
                "region": annotated("string", "Region"), "priority": annotated("integer", "Priority"),
                "verbose": annotated("boolean", "Verbose"), "debug": annotated("boolean", "Debug"),
                "empty_val": annotated("string", "EmptyVal"), "method_val": annotated("string", "Method"),
                "float_val": {"type": "number"}, "non_ascii_val": annotated("string", "NonAscii"),
                "whitespace_val": annotated("string", "Whitespace"), "tab_val": annotated("string", "Tab"),
                "crlf_val": annotated("string", "CrLf"), "query": {"type": "string"},
            })
        ),
        tool("plain", &json!({}))
    ])
}

/// http-custom-headers; C-HDR-07, C-HDR-15, C-HDR-18, C-HDR-19
#[test]
fn annotated_arguments_are_mirrored_once_the_tool_was_listed() {
    let mut driver = Driver::modern();
    let arguments = json!({"region": "us-west1", "priority": 42, "verbose": null, "debug": true,
        "empty_val": "", "method_val": "test-method", "float_val": 2.5, "non_ascii_val": "Hello, 世界",
        "whitespace_val": " padded ", "tab_val": "\tindented", "crlf_val": "line1\r\nline2", "query": "SELECT 1"});
    // Before, there is nothing to mirror. [spec: basic/transports/streamable-http#client-behavior]
    driver.tool("test_custom_headers", arguments.clone());
    let sent = driver.one();
    assert!(!sent.request.headers.iter().any(|(name, _)| name.starts_with("mcp-param-")));
    list(&mut driver, &custom());
    driver.tool("test_custom_headers", arguments);
    let sent = driver.one();
    let mut mirrored: Vec<(&str, &str)> = sent
        .request
        .headers
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("mcp-param-")?, &**value)))
        .collect();
    mirrored.sort_unstable();
    assert_eq!(
        mirrored,
        [
            ("crlf", "=?base64?bGluZTENCmxpbmUy?="),
            ("debug", "true"),
            ("emptyval", ""),
            ("method", "test-method"),
            ("nonascii", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            ("priority", "42"),
            ("region", "us-west1"),
            ("tab", "=?base64?CWluZGVudGVk?="),
            ("whitespace", "=?base64?IHBhZGRlZCA=?="),
        ]
    );
    assert_eq!(sent.header("mcp-name"), Some("test_custom_headers"));
}

/// http-invalid-tool-headers; C-HDR-08, C-HDR-09, C-HDR-10
#[test]
fn tools_with_bad_annotations_are_left_out_with_a_reason() {
    let mut driver = Driver::modern();
    let bad = |header: Value| json!({"v": {"type": "string", "x-mcp-header": header}});
    let tools = json!([
        tool("valid_tool", &bad(json!("Region"))),
        tool("invalid_empty", &bad(json!(""))),
        tool("invalid_space_in_name", &bad(json!("My Region"))),
        tool("invalid_colon_in_name", &bad(json!("a:b"))),
        tool("invalid_object", &json!({"v": {"type": "object", "x-mcp-header": "V"}})),
        tool("invalid_array", &json!({"v": {"type": "array", "x-mcp-header": "V"}})),
        tool("invalid_null", &json!({"v": {"type": "null", "x-mcp-header": "V"}})),
        tool("invalid_number_header", &json!({"v": {"type": "number", "x-mcp-header": "V"}})),
        tool(
            "invalid_duplicate_diff_case",
            &json!({"a": {"type": "string", "x-mcp-header": "Region"},
            "b": {"type": "string", "x-mcp-header": "REGION"}})
        ),
    ]);
    let call = driver.call(&request::ListTools::new());
    let sent = driver.one();
    let body = result(&sent, json!({"tools": tools, "ttlMs": 0, "cacheScope": "public"})).to_string();
    // What the driver gets is borrowed, so it is looked at here.
    let (mut client, now) = (driver.client, driver.now);
    let mut out = Vec::new();
    let headers = [("content-type", "application/json")];
    let mut reader = client.head(sent.exchange, 200, &headers[..], now, &mut out);
    assert!(reader.next_frame(&mut body.as_bytes()).is_none());
    let Some(mcp_proto::client::Event::Complete(done)) = client.end(&mut reader, Ok(()), now, &mut out)
    else {
        panic!()
    };
    assert_eq!(done.call, call);
    let decoded = done.decode::<request::ListTools>().unwrap();
    assert_eq!(decoded.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["valid_tool"]);
    let page = done.tools().unwrap();
    assert_eq!(page.faults.len(), 8, "{:?}", page.faults);
    assert!(page.faults.iter().any(|fault| fault.to_string().contains("invalid_number_header")));
}

/// C-HDR-07: also of a call whose params were written by hand, for the headers are read from the body.
#[test]
fn annotated_arguments_of_a_raw_call_are_mirrored() {
    let mut driver = Driver::modern();
    list(&mut driver, &custom());
    let params = r#"{"arguments":{"region":"eu","priority":1},"name":"test_\u0063ustom_headers"}"#;
    let raw = request::Custom::new("tools/call").params(mcp_proto::model::Json::parse(params).unwrap());
    driver.call(&raw);
    let sent = driver.one();
    assert_eq!(sent.header("mcp-name"), Some("test_custom_headers"));
    assert_eq!(sent.header("mcp-param-region"), Some("eu"));
    assert_eq!(sent.header("mcp-param-priority"), Some("1"));
}

/// sep-2322-client-request-state; C-MRTR-03 to C-MRTR-06; heads of later rounds mirror the same.
#[test]
fn rounds_echo_the_state_and_nothing_else_does() {
    let verdict = mcp_proto::client::Verdict::new(mcp_proto::model::ProtocolVersion::V2026_07_28);
    let mut driver = Driver::new(config().assume(verdict).capabilities(all()).build(), settings());
    driver.events();
    let properties = json!({"region": {"type": "string", "x-mcp-header": "Region"}});
    list(&mut driver, &json!([tool("test_mrtr_echo_state", &properties)]));
    let state = "opaque \"state\" \\ ü\u{1f600}";
    let call = driver.tool("test_mrtr_echo_state", json!({"region": "ü"}));
    let first = driver.one();
    driver.json(
        &first,
        200,
        &result(
            &first,
            json!({"resultType": "input_required", "requestState": state, "inputRequests": {"confirm": {
                "method": "elicitation/create", "params": {"mode": "form", "message": "Sure?", "requestedSchema": {
                    "type": "object", "properties": {"confirmed": {"type": "boolean"}}}}}}}),
        ),
    );
    let Seen::Input(of, round) = driver.event() else { panic!() };
    assert_eq!((of, round.requests.len()), (call, 1));
    driver.tool("test_mrtr_unrelated", json!({}));
    let unrelated = driver.one().body();
    assert!(unrelated["params"].get("requestState").is_none());
    assert!(unrelated["params"].get("inputResponses").is_none());
    let responses = InputResponses::new().answer("confirm", decline()).unwrap();
    driver.with(|client, now, out| client.answer(call, &responses, now, out).unwrap());
    let second = driver.one();
    assert_eq!(second.body()["params"]["requestState"], state);
    assert_eq!(second.body()["params"]["arguments"], first.body()["params"]["arguments"]);
    assert!(second.id() != first.id());
    for name in ["mcp-method", "mcp-name", "mcp-protocol-version", "mcp-param-region"] {
        assert!(second.header(name).is_some(), "{name}");
        assert_eq!(second.header(name), first.header(name), "{name}");
    }
    driver.json(&second, 200, &result(&second, text("done")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
    // Without `resultType` it is complete.
    let call = driver.tool("test_mrtr_no_result_type", json!({}));
    let sent = driver.one();
    driver.json(&sent, 200, &json!({"jsonrpc": "2.0", "id": sent.id(), "result": text("plain")}));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
    assert!(driver.sent().is_empty());
}

/// elicitation-sep1034-client-defaults: the question comes on the stream of the session.
#[test]
fn questions_come_on_the_stream_of_the_session() {
    let (mut driver, stream) = Driver::legacy("2025-11-25");
    let call = driver.tool("test_client_elicitation_defaults", json!({}));
    let sent = driver.one();
    driver.sse(&sent);
    driver.event_of(
        &stream,
        &json!({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {
            "message": "Who?", "requestedSchema": {"type": "object", "properties": {
                "name": {"type": "string", "default": "John Doe"}, "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5}, "verified": {"type": "boolean", "default": true}}}}}),
    );
    let Seen::Asked(asked) = driver.event() else { panic!() };
    let answer = accept(&json!({
        "name": "John Doe", "age": 30, "score": 95.5, "verified": true}));
    driver.with(|client, now, out| {
        assert!(client.respond(asked.ask, Ok(answer), now, out));
    });
    let answer = driver.one();
    assert_eq!(answer.body()["id"], 0);
    assert_eq!(answer.body()["result"]["content"]["score"], 95.5);
    assert_eq!(answer.header("mcp-session-id"), Some("s-1"));
    driver.status(&answer, 202);
    driver.event_of(&sent, &result(&sent, text("done")));
    assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
}

/// C-HDR-16
#[test]
fn headers_that_do_not_fit_are_repaired_once() {
    for status in [400, 200] {
        let mut driver = Driver::modern();
        let call = driver.tool("t", json!({"region": "r", "zone": "z"}));
        let also = driver.tool("t", json!({"region": "x"}));
        let [first, second] = &driver.sent()[..] else { panic!() };
        assert_eq!(first.header("mcp-param-region"), None);
        driver.json(first, status, &error(first, -32020, None));
        driver.json(second, status, &error(second, -32020, None));
        assert!(driver.events().is_empty());
        // One list for both, page by page.
        let page = driver.one();
        assert_eq!(page.rpc(), "tools/list");
        driver.json(&page, 200, &result(&page, json!({"tools": [], "nextCursor": "2"})));
        let page = driver.one();
        assert_eq!((&*page.rpc(), &page.body()["params"]["cursor"]), ("tools/list", &json!("2")));
        let properties = json!({"region": {"type": "string", "x-mcp-header": "Region"}});
        driver.json(&page, 200, &result(&page, json!({"tools": [tool("t", &properties)]})));
        let [again, also_again] = &driver.sent()[..] else { panic!() };
        assert_eq!(again.header("mcp-param-region"), Some("r"));
        assert_eq!(again.body()["params"]["arguments"], first.body()["params"]["arguments"]);
        assert!(again.id() != first.id());
        driver.json(again, 200, &result(again, text("A")));
        assert!(matches!(driver.event(), Seen::Complete(done, _) if done == call));
        // Not twice.
        driver.json(also_again, status, &error(also_again, -32020, None));
        assert!(
            matches!(driver.event(), Seen::Failed(f, CallError::Rpc(e)) if f == also && e.code == -32020)
        );
        assert!(driver.sent().is_empty());
    }
}

#[test]
fn a_repair_may_fail() {
    for how in 0..4 {
        let mut driver = Driver::modern();
        let call = driver.tool("t", json!({}));
        let sent = driver.one();
        driver.json(&sent, 400, &error(&sent, -32020, None));
        let page = driver.one();
        match how {
            0 => driver.lost(&page),
            1 => driver.json(&page, 200, &error(&page, -32603, None)),
            2 => driver.status(&page, 500),
            _ => driver.respond(&page, 200, &[("content-type", "application/json")], "{"),
        }
        assert!(
            matches!(driver.event(), Seen::Failed(f, CallError::Rpc(e)) if f == call && e.code == -32020),
            "{how}"
        );
        assert!(driver.sent().is_empty());
    }
    // A call that is given up meanwhile is not made again.
    let mut driver = Driver::modern();
    let call = driver.tool("t", json!({}));
    let sent = driver.one();
    driver.json(&sent, 400, &error(&sent, -32020, None));
    let page = driver.one();
    assert!(driver.with(|client, now, out| client.cancel(call, None, now, out)));
    driver.json(&page, 200, &result(&page, json!({"tools": []})));
    assert!(driver.sent().is_empty() && driver.events().is_empty());
    // Nor is what is no call of a tool.
    driver.call_with(&request::ReadResource::new("doc://a"), &CallOptions::default());
    let sent = driver.one();
    driver.json(&sent, 400, &error(&sent, -32020, None));
    assert!(matches!(driver.event(), Seen::Failed(_, CallError::Rpc(_))));
}
