//! Lists, page by page; definitions of tools.

use mcp_proto::client::request::{ListPrompts, ListResources, ListTools};
use mcp_proto::client::{CallOptions, PageError, Pages};
use mcp_proto::limits::Limits;
use serde_json::json;

use super::script::{Script, result};

/// Walks a list whose pages name these cursors; returns the cursors that were sent.
fn walk(cursors: &[Option<&str>], max: usize) -> (Vec<Option<String>>, Option<PageError>) {
    let mut script = Script::modern();
    let mut pages = Pages::new(ListTools::new(), max);
    let mut sent = Vec::new();
    while let Some(request) = pages.next() {
        let (_, message) = script.call(&request, &CallOptions::new());
        sent.push(message["params"].get("cursor").map(|cursor| cursor.as_str().unwrap().to_owned()));
        let mut page = json!({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "public"});
        if let Some(cursor) = cursors[(sent.len() - 1) % cursors.len()] {
            page["nextCursor"] = json!(cursor);
        }
        let done = script.completed(&result(&message["id"], &page.to_string()));
        if let Err(error) = pages.turn(&done.decode::<ListTools>().unwrap()) {
            assert!(pages.next().is_none());
            return (sent, Some(error));
        }
    }
    (sent, None)
}

#[test]
fn p01_an_empty_cursor_is_one_and_loops_end() {
    // C-PAGE-01 to C-PAGE-05
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(walk(&[None], 9), (vec![None], None));
    assert_eq!(walk(&[Some(""), None], 9), (vec![None, some("")], None));
    let odd = " {\"a\":1}\u{0}é";
    assert_eq!(walk(&[Some(odd), None], 9), (vec![None, some(odd)], None));
    let (sent, error) = walk(&[Some("x")], 9);
    assert_eq!((sent, error), (vec![None, some("x")], Some(PageError::RepeatedCursor("x".into()))));
    let (sent, error) = walk(&[Some("a"), Some("b"), Some("a")], 9);
    assert_eq!((sent.len(), error), (3, Some(PageError::RepeatedCursor("a".into()))));
    let fresh: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let fresh: Vec<Option<&str>> = fresh.iter().map(|text| Some(&**text)).collect();
    assert_eq!(walk(&fresh, 7).1, Some(PageError::TooMany(7)));
    // `null` is no cursor.
    let mut script = Script::modern();
    let (_, sent) = script.call(&ListPrompts::new(), &CallOptions::new());
    let done = script.completed(&result(&sent["id"], r#"{"prompts":[],"nextCursor":null}"#));
    let mut pages = Pages::new(ListPrompts::new(), 9);
    pages.turn(&done.decode::<ListPrompts>().unwrap()).unwrap();
    assert!(pages.next().is_none());
}

#[test]
fn a_walk_begins_again() {
    // C-CACHE-12: after an invalid cursor.
    let mut pages = Pages::new(ListResources::new(), 3);
    let page = |cursor: &str| mcp_proto::model::ListResourcesResult::new([]).next_cursor(cursor.to_owned());
    pages.turn(&page("a")).unwrap();
    assert_eq!(pages.next().unwrap().cursor.as_deref(), Some("a"));
    assert_eq!(pages.next().unwrap().cursor.as_deref(), Some("a"), "it stays due");
    pages.restart();
    assert_eq!(pages.next().unwrap().cursor, None);
    pages.turn(&page("a")).unwrap();
    // A server that refuses its own cursors again and again meets the bound.
    pages.restart();
    assert!(matches!(pages.turn(&page("a")), Err(PageError::TooMany(3))));
    assert_eq!(pages.walked(), 3);
}

#[test]
fn t05_one_bad_tool_does_not_cost_the_others() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(5000), "}".repeat(5000));
    let page =
        r#"{"resultType":"complete","tools":[
        {"name":"good","inputSchema":{"type":"object"}},
        {"name":"a","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#"}},
        {"name":"b","inputSchema":null},
        {"name":"c","inputSchema":{"type":"string"}},
        null,
        {"inputSchema":{"type":"object"}},
        {"name":"old","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"x":{}},"properties":{"z":{},"a":{}}},"outputSchema":{"x":1.0}}
        ],"ttlMs":0,"cacheScope":"public"}"#
    .replace('\n', "");
    let mut script = Script::modern();
    let (_, sent) = script.call(&ListTools::new(), &CallOptions::new());
    let done = script.completed(&result(&sent["id"], &page));
    let tools = done.tools().unwrap();
    let names: Vec<&str> = tools.page.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["good", "old"]);
    let faults: Vec<&str> = tools.faults.iter().map(|fault| &fault.pointer[..8]).collect();
    assert_eq!(faults, ["/tools/1", "/tools/2", "/tools/3", "/tools/4", "/tools/5"]);
    assert!(tools.faults.iter().all(|fault| !fault.message.is_empty()));
    assert_eq!(done.decode::<ListTools>().unwrap().tools.len(), 2);
    // Schemas are kept word for word.
    assert_eq!(
        tools.page.tools[1].input_schema.get(),
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"x":{}},"properties":{"z":{},"a":{}}}"#
    );
    // And known when the tool is called.
    let (_, sent) = script.tool("old", &CallOptions::new());
    let done = script.completed(&result(&sent["id"], r#"{"content":[]}"#));
    assert_eq!(done.tool().unwrap().output_schema.as_ref().unwrap().get(), r#"{"x":1.0}"#);
    let (_, sent) = script.tool("a", &CallOptions::new());
    assert!(script.completed(&result(&sent["id"], r#"{"content":[]}"#)).tool().is_none());
    // No list at all, and one that is too deep to be a message.
    let (_, sent) = script.call(&ListTools::new(), &CallOptions::new());
    let done = script.completed(&result(&sent["id"], r#"{"tools":null}"#));
    assert!(done.tools().is_err() && done.decode::<ListTools>().is_err());
    let (_, sent) = script.call(&ListTools::new(), &CallOptions::new());
    script.failed(&result(&sent["id"], &format!(r#"{{"tools":[{{"name":"d","inputSchema":{deep}}}]}}"#)));
}

#[test]
fn definitions_are_bounded_and_replaced() {
    let limits = super::script::limits(|limits| {
        limits.max_tools = 2;
        limits.max_tool_bytes = 2000;
    });
    let mut script = Script::modern_of(super::script::config().limits(limits).build());
    let list = |script: &mut Script, tools: serde_json::Value| {
        let (_, sent) = script.call(&ListTools::new(), &CallOptions::new().use_cache(false));
        script.completed(&result(&sent["id"], &json!({"tools": tools}).to_string()));
    };
    let known = |script: &mut Script, name: &'static str| {
        let (_, sent) = script.tool(name, &CallOptions::new());
        let done = script.completed(&result(&sent["id"], r#"{"content":[]}"#));
        done.tool().map(|tool| tool.description.clone().unwrap_or_default())
    };
    let tool = |name: &str, text: &str| json!({"name": name, "description": text, "inputSchema": {"type": "object"}});
    list(&mut script, json!([tool("a", "1"), tool("b", "1"), tool("c", "1")]));
    assert_eq!(known(&mut script, "a").as_deref(), Some("1"));
    assert_eq!(known(&mut script, "c"), None);
    list(&mut script, json!([tool("a", "2")]));
    assert_eq!(known(&mut script, "a").as_deref(), Some("2"));
    list(&mut script, json!([tool("a", &"x".repeat(3000))]));
    assert_eq!(known(&mut script, "a"), None);
    // Whatever part of it is long.
    for (member, long) in [
        ("title", json!("x".repeat(3000))),
        ("annotations", json!({"title": "x".repeat(3000)})),
        ("icons", json!([{"src": "x".repeat(3000)}])),
        ("_meta", json!({"x": "x".repeat(3000)})),
        ("outputSchema", json!({"type": "object", "description": "x".repeat(3000)})),
    ] {
        let mut large = tool("a", "");
        large[member] = long;
        list(&mut script, json!([large]));
        assert_eq!(known(&mut script, "a"), None, "{member}");
    }
    list(&mut script, json!([tool("c", "3")]));
    assert_eq!(known(&mut script, "c").as_deref(), Some("3"));
    assert!(Limits::default().max_pages > 1);
}
