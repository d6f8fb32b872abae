//! Results held against what their tool promises, with the feature `validate`.

use std::net::TcpListener;

use mcp_proto::client::request::ListTools;
use mcp_proto::client::{CallOptions, InvalidOutput};
use mcp_proto::model::OutputCheck;
use serde_json::json;

use super::script::{Script, result};

/// What becomes of this result of a tool with this output schema.
fn check(schema: &serde_json::Value, body: &str) -> Result<OutputCheck, InvalidOutput> {
    let mut script = Script::modern();
    let (_, sent) = script.call(&ListTools::new(), &CallOptions::new());
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema});
    script.completed(&result(&sent["id"], &json!({"tools": [tool]}).to_string()));
    let (_, sent) = script.tool("t", &CallOptions::new());
    script.completed(&result(&sent["id"], body)).check_output()
}

#[test]
fn t03_what_a_tool_promises_it_must_keep() {
    // C-TOOL-08, C-TOOL-12
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for (body, good) in [
        (r#"{"content":[],"isError":true}"#, true),
        (r#"{"content":[],"isError":true,"structuredContent":{"error":"x"}}"#, true),
        (r#"{"content":[]}"#, false),
        (r#"{"content":[],"structuredContent":{"n":"str"}}"#, false),
        (r#"{"content":[],"structuredContent":null}"#, false),
        (r#"{"content":[],"structuredContent":{"n":1,"extra":2}}"#, true),
        (r#"{"content":[],"structuredContent":{"n":1.0}}"#, true),
    ] {
        assert_eq!(check(&schema, body).is_ok(), good, "{body}");
    }
    assert_eq!(check(&schema, r#"{"content":[]}"#), Err(InvalidOutput::Missing));
    match check(&schema, r#"{"content":[],"structuredContent":{"n":"str"}}"#) {
        Err(InvalidOutput::Mismatch(reason)) => assert!(reason.starts_with("at /n: "), "{reason}"),
        other => panic!("{other:?}"),
    }
    // Any JSON can be promised, also `null`.
    assert!(check(&json!({"type": "null"}), r#"{"content":[],"structuredContent":null}"#).is_ok());
}

#[test]
fn t07_nothing_is_fetched() {
    // C-TOOL-13
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let there = format!("http://{}/x.json", listener.local_addr().unwrap());
    let body = r#"{"content":[],"structuredContent":{"n":1}}"#;
    for outside in [there.as_str(), "file:///etc/passwd"] {
        for schema in [json!({"$ref": outside}), json!({"properties": {"n": {"$ref": outside}}})] {
            assert!(matches!(check(&schema, body), Ok(OutputCheck::Unchecked(_))), "{schema}");
        }
    }
    assert!(listener.accept().is_err(), "nobody came");
    // Whatever it promises, it is not nothing.
    assert_eq!(check(&json!({"$ref": there}), r#"{"content":[]}"#), Err(InvalidOutput::Missing));
    // Its own parts, also in circles, and a dialect by its name.
    let inside = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"n": {"$ref": "#/definitions/n"}, "again": {"$ref": "#"}}, "definitions": {"n": {"type": "integer"}}});
    assert_eq!(check(&inside, body), Ok(OutputCheck::Fits));
    assert!(check(&inside, r#"{"content":[],"structuredContent":{"again":{"n":"x"}}}"#).is_err());
}

#[test]
fn a_tool_that_was_never_listed_promises_nothing() {
    let mut script = Script::modern();
    let (_, sent) = script.tool("t", &CallOptions::new());
    let done = script.completed(&result(&sent["id"], r#"{"content":[]}"#));
    assert_eq!(done.check_output(), Ok(OutputCheck::Unpromised));
}
