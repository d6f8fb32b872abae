//! Results of tools against their schemas, with the feature `validate`.

use std::task::Poll;

use mcp_proto::client::CallError;
use mcp_proto::model::OutputCheck;
use serde_json::json;

use crate::basics::client;
use crate::rig::{Rig, error, now, poll};

/// C-TOOL-08, C-TOOL-13: what a tool promises is checked, and nothing is fetched for it.
#[test]
fn results_keep_what_their_tool_promises() {
    let (client, mut rig) = Rig::modern(client(), json!({"tools": {}}));
    let mut list = client.tools();
    assert!(poll(&mut list).is_pending());
    let request = rig.one();
    let input = json!({"type": "object"});
    let number = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let elsewhere = json!({"$ref": "https://example.com/schema.json"});
    rig.answer(
        &request,
        json!({"tools": [
            {"name": "promises", "inputSchema": input, "outputSchema": number},
            {"name": "elsewhere", "inputSchema": input, "outputSchema": elsewhere},
            {"name": "free", "inputSchema": input},
        ]}),
    );
    assert_eq!(now(list).unwrap().len(), 3);
    let mut call = |name: &'static str, result: serde_json::Value| {
        let mut call = client.call_tool(name, ());
        assert!(poll(&mut call).is_pending());
        let request = rig.one();
        rig.answer(&request, result);
        poll(&mut call)
    };
    assert!(call("promises", json!({"content": [], "structuredContent": {"n": 5}})).is_ready());
    for bad in [json!({"content": [], "structuredContent": {"n": "x"}}), json!({"content": []})] {
        let why = error(call("promises", bad));
        assert!(matches!(&why, CallError::Malformed(_)), "{why}");
        assert!(why.to_string().contains("/result/structuredContent"), "{why}");
    }
    let mut checked = |name, result| match call(name, result) {
        Poll::Ready(Ok(result)) => result.output,
        other => panic!("{name}: {other:?}"),
    };
    let fits = json!({"content": [], "structuredContent": {"n": 5}});
    assert_eq!(checked("promises", fits), OutputCheck::Fits);
    let failed = json!({"content": [], "isError": true});
    assert_eq!(checked("promises", failed), OutputCheck::Unpromised);
    let free = json!({"content": [], "structuredContent": {"n": "x"}});
    assert_eq!(checked("free", free), OutputCheck::Unpromised);
    // T07: what could not be checked is handed over, and says so.
    let why = checked("elsewhere", json!({"content": [], "structuredContent": 5}));
    assert!(matches!(&why, OutputCheck::Unchecked(why) if why.contains("https://example.com")), "{why:?}");
}
