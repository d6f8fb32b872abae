//! Whole lists, of good servers and of bad ones.

use std::task::Poll;

use mcp_proto::client::{CallError, PageError};
use mcp_proto::limits::Limits;
use mcp_proto::service::client::ListFault;
use mcp_proto::service::{NoArguments, Server};
use serde_json::json;

use crate::basics::client;
use crate::rig::{Rig, block_on, error, now, poll};

#[test]
fn every_page_is_fetched() {
    let mut server = Server::new("many", "1").page_size(7);
    for at in 0..50 {
        server = server.tool(format!("tool-{at:02}"), |_, _: NoArguments| async { Ok("") });
    }
    let tools = block_on(client().in_memory(&server.build().unwrap(), async |client| client.tools().await))
        .unwrap()
        .unwrap();
    assert_eq!(tools.len(), 50);
    assert!(tools.faults.is_empty());
    assert!((&tools).into_iter().enumerate().all(|(at, tool)| tool.name == format!("tool-{at:02}")));
}

fn resource(name: &str) -> serde_json::Value {
    json!({"name": name, "uri": format!("a:{name}")})
}

/// C-PAGE-02, C-PAGE-05: a list without end is cut, and what came is kept.
#[test]
fn a_list_without_end_is_cut() {
    let mut limits = Limits::default();
    limits.max_pages = 3;
    let (client, mut rig) = Rig::modern(client().limits(limits), json!({"resources": {}}));
    let mut list = client.resources();
    let mut pages = 0;
    let found = loop {
        if let Poll::Ready(found) = poll(&mut list) {
            break found.unwrap();
        }
        let request = rig.one();
        pages += 1;
        rig.answer(&request, json!({"resources": [resource("x")], "nextCursor": format!("{pages}")}));
    };
    assert_eq!((pages, found.len()), (3, 3));
    assert_eq!(found.faults, [ListFault::Endless(PageError::TooMany(3))]);

    let mut list = client.resources();
    let found = loop {
        if let Poll::Ready(found) = poll(&mut list) {
            break found.unwrap();
        }
        let request = rig.one();
        rig.answer(&request, json!({"resources": [resource("x")], "nextCursor": ""}));
    };
    assert_eq!(found.len(), 2);
    assert_eq!(found.faults, [ListFault::Endless(PageError::RepeatedCursor("".into()))]);
}

/// C-CACHE-12: a cursor that is refused under way begins the walk anew, but not for ever.
#[test]
fn a_refused_cursor_begins_anew() {
    let (client, mut rig) = Rig::modern(client(), json!({"resources": {}}));
    let mut list = client.resources();
    assert!(poll(&mut list).is_pending());
    let request = rig.one();
    rig.answer(&request, json!({"resources": [resource("old")], "nextCursor": "2", "ttlMs": 60000}));
    assert!(poll(&mut list).is_pending());
    let request = rig.one();
    assert_eq!(request["params"]["cursor"], "2");
    rig.fail(&request, -32602, "Invalid cursor");
    assert!(poll(&mut list).is_pending());
    let request = rig.one();
    assert_eq!(request["params"]["cursor"], json!(null));
    rig.answer(&request, json!({"resources": [resource("new")]}));
    assert_eq!(now(list).unwrap().items[0].name, "new");

    let mut list = client.resources();
    let mut walks = 0;
    let refused = loop {
        if let Poll::Ready(found) = poll(&mut list) {
            break found.unwrap_err();
        }
        let request = rig.one();
        if request["params"]["cursor"].is_null() {
            walks += 1;
            rig.answer(&request, json!({"resources": [], "nextCursor": "2"}));
        } else {
            rig.fail(&request, -32602, "Invalid cursor");
        }
    };
    assert_eq!(walks, 3);
    assert!(matches!(refused, CallError::Rpc(_)));

    // The first page is refused: that is no cursor's fault.
    let mut list = client.resources();
    assert!(poll(&mut list).is_pending());
    let request = rig.one();
    rig.fail(&request, -32602, "Invalid params");
    assert!(matches!(error(poll(&mut list)), CallError::Rpc(_)));
}

/// One bad tool does not cost the others.
#[test]
fn one_bad_tool_does_not_cost_the_others() {
    let (client, mut rig) = Rig::modern(client(), json!({"tools": {}}));
    let mut list = client.tools();
    assert!(poll(&mut list).is_pending());
    let request = rig.one();
    let good = json!({"name": "good", "inputSchema": {"type": "object"}});
    rig.answer(&request, json!({"tools": [{"name": 5}, good, {"name": "bare"}]}));
    let found = now(list).unwrap();
    assert_eq!(found.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["good"]);
    assert_eq!(found.faults.len(), 2);
    assert!(matches!(&found.faults[0], ListFault::Item(fault) if fault.to_string().contains("/tools/0")));
}

#[test]
fn a_list_that_is_given_up_is_cancelled() {
    let (client, mut rig) = Rig::modern(client(), json!({"prompts": {}}));
    let mut list = client.prompts();
    assert!(poll(&mut list).is_pending());
    rig.one();
    drop(list);
    assert_eq!(rig.one()["method"], "notifications/cancelled");
}
