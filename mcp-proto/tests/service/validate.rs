//! Schemas written by hand, with the feature `validate`.

use std::io::ErrorKind;
use std::net::TcpListener;

use mcp_proto::model::{Json, JsonSchema};
use mcp_proto::service::{BuildError, Server, Structured, ToolDef, raw_tool};
use serde_json::{Value, json};

use crate::harness::Client;

fn schema(value: &Value) -> JsonSchema {
    JsonSchema::parse(&value.to_string()).unwrap()
}

fn with_input(input: &Value) -> ToolDef {
    raw_tool("t", schema(input), |_, arguments: Json| async move { Ok(arguments.get().to_owned()) })
}

fn build(tool: ToolDef) -> Result<mcp_proto::service::Service, BuildError> {
    Server::new("demo", "1").add(tool).build()
}

/// T07: what a schema refers to outside of itself is not fetched, over the network or from the disk. The
/// server is not built, and the error names the tool and the reference.
#[test]
fn t07_nothing_outside_of_a_schema_is_fetched() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let file = std::env::temp_dir().join(format!("mcp-t07-{}.json", std::process::id()));
    // It would do if it were read.
    std::fs::write(&file, r#"{"type":"string"}"#).unwrap();
    let outside = [
        format!("http://{address}/x.json"),
        format!("http://{address}/x.json#/$defs/a"),
        format!("file://{}", file.display()),
        "other.json".to_owned(),
    ];
    for reference in &outside {
        let input = |keyword: &str| json!({"type": "object", "properties": {"a": {keyword: reference}}});
        for tool in [
            with_input(&input("$ref")),
            with_input(&input("$dynamicRef")),
            with_input(&json!({"type": "object"})).output_schema(schema(&input("$ref"))),
            with_input(&json!({"type": "object", "$defs": {"unused": {"$ref": reference}}})),
        ] {
            match build(tool) {
                Err(BuildError::Schema { tool, why }) => {
                    assert_eq!(tool, "t");
                    assert!(why.contains(reference.split('#').next().unwrap()), "{why}");
                }
                other => panic!("{reference}: {other:?}"),
            }
        }
    }
    // Nor is what says how a schema is to be read: one that cannot be read so is refused.
    let own_dialect = json!({"$schema": format!("http://{address}/meta"), "type": "object"});
    assert!(matches!(build(with_input(&own_dialect)), Err(BuildError::Schema { .. })));
    for known in ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"] {
        let input = json!({"$schema": known, "type": "object", "required": ["a"]});
        assert_eq!(call(&input, &json!({"a": 1})), Ok(()));
        call(&input, &json!({})).unwrap_err();
    }
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "somebody came");
    std::fs::remove_file(&file).unwrap();
}

/// Calls a tool of this schema. The error is the text for the model.
fn call(input: &Value, arguments: &Value) -> Result<(), String> {
    let mut client = Client::new(&build(with_input(input)).unwrap());
    let params = json!({"name": "t", "arguments": arguments});
    let answer = client.modern(1, "tools/call", params, json!({}));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    match answer["result"]["isError"].as_bool() {
        Some(true) => Err(text),
        _ => {
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), *arguments);
            Ok(())
        }
    }
}

/// T07: references within a schema are followed, in a circle too.
#[test]
fn t07_references_within_a_schema_are_followed() {
    let local = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/short"}},
        "$defs": {"short": {"type": "string", "maxLength": 2}},
    });
    assert_eq!(call(&local, &json!({"a": "ab"})), Ok(()));
    let why = call(&local, &json!({"a": "abc"})).unwrap_err();
    assert!(why.contains("/a"), "{why}");

    for reference in [json!({"$ref": "#"}), json!({"$dynamicRef": "#node"})] {
        let tree = json!({
            "$dynamicAnchor": "node",
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": reference}},
            "required": ["name"],
        });
        assert_eq!(call(&tree, &json!({"name": "a", "children": [{"name": "b", "children": []}]})), Ok(()));
        let why = call(&tree, &json!({"name": "a", "children": [{"name": "b", "children": [{}]}]}));
        assert!(why.as_ref().is_err_and(|why| why.contains("/children/0/children/0")), "{why:?}");
    }
}

/// A tool that does not keep what its output schema says is the server's fault.
#[test]
fn structured_results_are_held_to_the_output_schema() {
    let output = json!({"type": "object", "properties": {"n": {"maximum": 9}}, "required": ["n"]});
    let tool = raw_tool("t", JsonSchema::any_object(), |_, arguments: Json| async move {
        Ok(Structured(serde_json::from_str::<Value>(arguments.get()).unwrap()))
    });
    let mut client = Client::new(&build(tool.output_schema(schema(&output))).unwrap());
    let mut call = |id, arguments: Value| {
        client.modern(id, "tools/call", json!({"name": "t", "arguments": arguments}), json!({}))
    };
    assert_eq!(call(1, json!({"n": 9}))["result"]["structuredContent"], json!({"n": 9}));
    for (id, wrong) in [(2, json!({"n": 10})), (3, json!({}))] {
        let answer = call(id, wrong);
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
    }
}
