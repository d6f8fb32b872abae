//! 2026-07-28: one POST, one response.

use std::time::Duration;

use mcp_proto::http::{Events, Settings};
use mcp_proto::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::harness::{Net, Request, call, initialize, modern};
use crate::kit::Kit;

fn net() -> Net {
    Net::new(&Kit::default().service())
}

fn tool(id: impl Into<Value>, name: &str, arguments: Value) -> Value {
    modern(
        id,
        "tools/call",
        json!({"name": name, "arguments": arguments, "_meta": {"progressToken": "p"}}),
        json!({}),
    )
}

fn logged(mut message: Value) -> Value {
    message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    message
}

/// H07, the pipeline of statuses: the first failure wins, and every error names the request.
#[test]
fn h07_the_first_failure_of_the_pipeline_wins() {
    let mut net = net();
    let ok = || modern(7, "tools/list", json!({}), json!({}));
    let named = |member: &str| {
        let mut message = ok();
        message["params"]["_meta"].as_object_mut().unwrap().remove(member);
        message
    };
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let mut other = ok();
    other["params"]["_meta"][version] = json!("v999.0.0");
    let unknown = modern(7, "unknown/method", json!({}), json!({}));
    let rows: Vec<(&str, Request, u16, i64)> = vec![
        ("fine", Request::modern(&ok()), 200, 0),
        (
            "no version",
            Request::modern(&named(version)).set("MCP-Protocol-Version", "2026-07-28"),
            400,
            -32602,
        ),
        ("no capabilities", Request::modern(&named(capabilities)), 400, -32602),
        ("no capabilities, no headers", Request::post(named(capabilities).to_string()), 400, -32602),
        ("no version header", Request::modern(&ok()).without("MCP-Protocol-Version"), 400, -32020),
        (
            "two version headers",
            Request::modern(&ok()).with("MCP-Protocol-Version", "2026-07-28"),
            400,
            -32020,
        ),
        ("no method header", Request::modern(&ok()).without("Mcp-Method"), 400, -32020),
        ("other method", Request::modern(&ok()).set("Mcp-Method", "tools/call"), 400, -32020),
        ("method in capitals", Request::modern(&ok()).set("Mcp-Method", "TOOLS/LIST"), 400, -32020),
        ("spaces around", Request::modern(&ok()).set("Mcp-Method", "  tools/list "), 200, 0),
        ("both unknown", Request::modern(&other), 400, -32022),
        ("body unknown", Request::modern(&other).set("MCP-Protocol-Version", "2026-07-28"), 400, -32020),
        ("header unknown", Request::modern(&ok()).set("MCP-Protocol-Version", "v999.0.0"), 400, -32020),
        ("unknown method", Request::modern(&unknown), 404, -32601),
        ("unknown method, wrong header", Request::modern(&unknown).set("Mcp-Method", "x"), 400, -32020),
    ];
    for (what, request, status, code) in rows {
        let (found, message) = net.ask(&request);
        assert_eq!(found, status, "{what}: {message}");
        assert_eq!(message["error"]["code"].as_i64().unwrap_or(0), code, "{what}: {message}");
        assert_eq!(message["id"], 7, "{what}: {message}");
    }
    let (_, message) = net.ask(&Request::modern(&other));
    let discovered = net.ask(&Request::modern(&modern(1, "server/discover", json!({}), json!({})))).1;
    assert_eq!(message["error"]["data"]["supported"], discovered["result"]["supportedVersions"]);
    assert_eq!(message["error"]["data"]["requested"], "v999.0.0");
}

/// What is only of the legacy era does not exist in a modern request (V08, the suite's list).
#[test]
fn methods_of_the_legacy_era_are_not_found() {
    let mut net = net();
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/result",
        "tasks/list",
        "unknown/method",
    ] {
        let (status, message) = net.ask(&Request::modern(&modern("i", method, json!({}), json!({}))));
        assert_eq!((status, &message["error"]["code"]), (404, &json!(-32601)), "{method}");
        assert_eq!(message["id"], "i");
    }
    assert_eq!(net.http.sessions_open(), 0);
}

/// H07: `Mcp-Name`, encoded or not, for the methods that name something.
#[test]
fn h07_the_name_is_mirrored() {
    let mut net = net();
    let add = || tool(1, "add", json!({"a": 1, "b": 2}));
    let request = || Request::modern(&add());
    assert_eq!(net.ask(&request()).0, 200);
    for (request, status) in [
        (request().without("Mcp-Name"), 400),
        (request().set("Mcp-Name", "sub"), 400),
        (request().set("Mcp-Name", "ADD"), 400),
        (request().set("Mcp-Name", " add "), 200),
        (request().set("Mcp-Name", "=?base64?YWRk?="), 200),
        (request().set("Mcp-Name", "=?base64?YWRk!?="), 400),
    ] {
        let (found, message) = net.ask(&request);
        assert_eq!(found, status, "{message}");
        if status == 400 {
            assert_eq!(message["error"]["code"], -32020);
        }
    }
    let read = modern(1, "resources/read", json!({"uri": "doc://a"}), json!({}));
    assert_eq!(net.ask(&Request::modern(&read)).0, 200);
    assert_eq!(net.ask(&Request::modern(&read).without("Mcp-Name")).0, 400);
    // What is not there needs no header: the params' own fault is told.
    let nameless = modern(1, "tools/call", json!({}), json!({}));
    assert_eq!(net.ask(&Request::modern(&nameless)).1["error"]["code"], -32602);
}

/// H08: arguments that are mirrored into headers, before the handler runs.
#[test]
fn h08_arguments_are_mirrored() {
    let kit = Kit::default();
    let mut net = Net::new(&kit.service());
    let region = |arguments: Value| Request::modern(&tool(1, "region", arguments));
    let good = || region(json!({"region": "Hello", "count": 42}));
    let refused = [
        good(),
        good().with("Mcp-Param-Region", "Hello"),
        good().with("Mcp-Param-Region", "hello").with("Mcp-Param-Count", "42"),
        good().with("Mcp-Param-Region", "Hello").with("Mcp-Param-Count", "43"),
        good().with("Mcp-Param-Region", "=?base64?SGVsbG8?=").with("Mcp-Param-Count", "42"),
        good().with("Mcp-Param-Region", "=?base64?SGVs!!!bG8=?=").with("Mcp-Param-Count", "42"),
        good()
            .with("Mcp-Param-Region", "Hello")
            .with("Mcp-Param-Region", "Hello")
            .with("Mcp-Param-Count", "42"),
        region(json!({})).with("Mcp-Param-Region", "Hello"),
    ];
    for request in refused {
        let (status, message) = net.ask(&request);
        assert_eq!((status, &message["error"]["code"]), (400, &json!(-32020)), "{:?}", request.headers);
        assert_eq!(message["id"], 1);
    }
    assert_eq!(kit.began(), 0, "a handler ran");
    for request in [
        good().with("mcp-param-region", "Hello").with("MCP-PARAM-COUNT", "42.0"),
        good().with("Mcp-Param-Region", "=?base64?SGVsbG8=?=").with("Mcp-Param-Count", "42"),
        region(json!({})),
        region(json!({"region": null})),
    ] {
        let (status, message) = net.ask(&request);
        assert_eq!(status, 200, "{message}");
    }
    assert_eq!(kit.began(), 4);
}

/// The suite's server-stateless table.
#[test]
fn the_discovery_needs_its_metadata_but_no_client_info() {
    let mut net = net();
    let discover = |meta: Value| {
        let message =
            json!({"jsonrpc": "2.0", "id": 3, "method": "server/discover", "params": {"_meta": meta}});
        Request::modern(&message).set("MCP-Protocol-Version", "2026-07-28")
    };
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    for meta in [json!({}), json!({capabilities: {}}), json!({version: "2026-07-28"})] {
        let (status, message) = net.ask(&discover(meta));
        assert_eq!((status, &message["error"]["code"], &message["id"]), (400, &json!(-32602), &json!(3)));
    }
    let bare = json!({"jsonrpc": "2.0", "id": 3, "method": "server/discover"});
    let (status, message) = net.ask(&Request::modern(&bare).set("MCP-Protocol-Version", "2026-07-28"));
    assert_eq!((status, &message["error"]["code"]), (400, &json!(-32602)));
    let (status, message) = net.ask(&discover(json!({version: "2026-07-28", capabilities: {}})));
    assert_eq!(status, 200);
    assert!(message["result"]["supportedVersions"].is_array());
    assert_eq!(message["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "demo");
}

/// The capability is named, and the status is 400.
#[test]
fn a_missing_capability_is_refused() {
    let mut net = net();
    let (status, message) = net.ask(&Request::modern(&tool(5, "sample", json!({}))));
    assert_eq!((status, &message["error"]["code"], &message["id"]), (400, &json!(-32021), &json!(5)));
    assert!(message["error"]["data"]["requiredCapabilities"]["sampling"].is_object());
    let (status, message) = net.ask(&Request::modern(&tool(5, "job", json!({}))));
    assert_eq!((status, &message["error"]["code"]), (400, &json!(-32021)));
}

/// H02, H01: what a body is and what an answer may be, before anything is parsed.
#[test]
fn h01_h02_media_types() {
    let mut net = net();
    let list = || Request::modern(&modern(1, "tools/list", json!({}), json!({})));
    for (request, status, sse) in [
        (list().set("Content-Type", "text/plain"), 415, false),
        (list().without("Content-Type"), 415, false),
        (list().set("Content-Type", "text/plain; x=application/json"), 415, false),
        (list().set("Content-Type", "Application/JSON; charset=utf-8"), 200, false),
        (list().set("Accept", "text/html"), 406, false),
        (list().set("Accept", "application/json"), 200, false),
        (list().set("Accept", "text/event-stream"), 200, true),
        (list().set("Accept", "*/*"), 200, false),
        (list().without("Accept"), 200, false),
        (list().set("Accept", "application/json;q=0, text/event-stream"), 200, true),
    ] {
        let got = net.send(&request);
        assert_eq!((net.status(got), net.is_sse(got)), (status, sse), "{:?}", request.headers);
        assert!(net.is_done(got));
        let message = net.one(got);
        assert_eq!(message["result"].is_object(), status == 200);
    }
}

/// JSON unless something precedes the answer; `Events::Always` where it is taken.
#[test]
fn json_or_events() {
    for always in [false, true] {
        let mut settings = Settings::default();
        settings.events = if always { Events::Always } else { Events::WhenNeeded };
        let mut net = Net::with(&Kit::default().service(), settings);
        for (name, accept, sse, count) in [
            ("add", "*/*", always, 1),
            ("add", "application/json", false, 1),
            ("add", "text/event-stream", true, 1),
            ("chatty", "*/*", true, 2),
            ("chatty", "application/json", false, 1),
            ("chatty", "text/event-stream", true, 2),
        ] {
            let arguments = json!({"a": 1, "b": 2});
            let got = net.send(&Request::modern(&tool(1, name, arguments)).set("Accept", accept));
            assert_eq!((net.status(got), net.is_sse(got)), (200, sse), "{name} {accept} {always}");
            let messages = net.messages(got);
            assert_eq!(messages.len(), count, "{messages:?}");
            assert_eq!(messages.last().unwrap()["id"], 1);
            if sse {
                assert_eq!(net.header(got, "x-accel-buffering").as_deref(), Some("no"), "S-HTTP-12");
                assert_eq!(net.header(got, "cache-control").as_deref(), Some("no-cache"));
                assert!(net.events(got).is_empty());
                // No event ids: there is no resumption.
                let body = String::from_utf8(net.at(got).body.clone()).unwrap();
                assert!(!body.contains("id: "), "{body}");
            }
        }
    }
}

/// S-HTTP-09, S-HTTP-11: what belongs to the request comes as it happens, then the answer, then the end.
#[test]
fn what_precedes_the_answer_is_streamed() {
    let kit = Kit::default();
    let mut net = Net::new(&kit.service());
    let got = net.send(&Request::modern(&logged(tool("x", "steps", json!({})))));
    assert!(net.is_sse(got));
    let messages = net.messages(got);
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["params"]["progress"], 1.0);
    assert_eq!(messages[1]["params"]["data"], "half");
    kit.gate.open();
    net.settle();
    assert_eq!(net.one(got)["params"]["progress"], 2.0);
    assert!(!net.is_done(got));
    kit.after.open();
    net.settle();
    assert_eq!(net.one(got)["result"]["content"][0]["text"], "stepped");
    assert!(net.is_done(got) && net.jobs() == 0);
}

/// Equal ids of different clients never cross, whatever the order of the answers.
#[test]
fn equal_ids_do_not_cross() {
    let kit = Kit::default();
    let mut net = Net::new(&kit.service());
    let waiting: Vec<_> = (0..5).map(|_| net.send(&Request::modern(&tool(1, "wait", json!({}))))).collect();
    let (_, quick) = net.ask(&Request::modern(&tool(1, "add", json!({"a": 2, "b": 3}))));
    assert_eq!(quick["result"]["content"][0]["text"], "5");
    kit.gate.open();
    net.settle();
    for got in waiting {
        assert_eq!(net.one(got)["result"]["content"][0]["text"], "opened");
    }
}

/// S-HTTP-13 to 15, H15: the client is gone, so the handler is.
#[test]
fn h15_a_closed_response_cancels_its_request() {
    let kit = Kit::default();
    let mut net = Net::new(&kit.service());
    let (gone, stays) = (
        net.send(&Request::modern(&tool(1, "wait", json!({})))),
        net.send(&Request::modern(&tool(1, "wait", json!({})))),
    );
    assert_eq!((kit.began(), kit.dropped()), (2, 0));
    net.disconnect(gone);
    assert_eq!((kit.dropped(), net.jobs()), (1, 1));
    kit.gate.open();
    net.settle();
    assert_eq!(net.one(stays)["id"], 1);
    assert_eq!(kit.dropped(), 1);
    // Before its job was taken over, too.
    let kit = Kit::default();
    let http = Net::new(&kit.service());
    let (now, unix) = http.time();
    let request = Request::modern(&tool(1, "wait", json!({})));
    drop(http.http.handle(&request, &request.body, None, now, unix));
    assert_eq!((kit.began(), kit.dropped()), (1, 1));
}

/// S-HTTP-06: what is no request is taken, whatever it says.
#[test]
fn notifications_are_accepted() {
    let mut net = net();
    for method in ["notifications/cancelled", "notifications/made-up"] {
        let mut message = modern(1, method, json!({"requestId": 1}), json!({}));
        message.as_object_mut().unwrap().remove("id");
        let got = net.send(&Request::modern(&message));
        assert_eq!(net.status(got), 202);
        assert!(net.at(got).body.is_empty() && net.is_done(got));
    }
}

/// Only POST where there is no legacy revision; and then sessions and event ids are ignored.
#[test]
fn a_modern_server_has_nothing_but_post() {
    let service = Kit::default().server().versions([ProtocolVersion::V2026_07_28]).build().unwrap();
    let mut net = Net::new(&service);
    for method in ["GET", "DELETE", "PUT", "HEAD", "OPTIONS"] {
        let got = net.send(&Request::new(method).with("Accept", "text/event-stream"));
        assert_eq!(net.status(got), 405);
        assert_eq!(net.header(got, "allow").as_deref(), Some("POST"));
    }
    let list = Request::modern(&modern(1, "tools/list", json!({}), json!({})))
        .with("Mcp-Session-Id", "abc")
        .with("Last-Event-ID", "0-1");
    assert_eq!(net.ask(&list).0, 200);
    // V08: whoever begins a handshake learns which versions there are.
    let (status, message) = net.ask(&Request::post(initialize("2025-11-25", json!({})).to_string()));
    assert_eq!(status, 400, "{message}");
    assert_eq!(message["id"], "init");
    for body in ["[]", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#] {
        let got = net.send(&Request::post(body));
        assert_eq!(net.status(got), 400);
    }
}

/// Bodies that are no message.
#[test]
fn malformed_bodies() {
    let mut net = net();
    for (body, code) in [("{", -32700), ("", -32700), ("1", -32600), (r#"{"jsonrpc":"2.0","id":1}"#, -32600)]
    {
        let (status, message) = net.ask(&Request::post(body));
        assert_eq!((status, &message["error"]["code"]), (400, &json!(code)), "{body}");
    }
    let too_large = net.http.too_large();
    assert_eq!(too_large.head.status, 413);
}

/// S-HTTP-03, H14: a page that may not talk to the server.
#[test]
fn h14_a_foreign_origin_is_refused_first() {
    let mut net = net();
    let list = || Request::modern(&modern(1, "tools/list", json!({}), json!({})));
    for request in [
        list().with("Origin", "https://evil.example"),
        list().set("Host", "evil.example"),
        list().with("Origin", "http://127.0.0.1.evil.com").set("Content-Type", "text/plain"),
        Request::new("PUT").with("Origin", "https://evil.example"),
    ] {
        let got = net.send(&request);
        assert_eq!(net.status(got), 403);
        assert!(net.one(got).get("id").is_none());
    }
    assert_eq!(net.ask(&list().with("Origin", "http://localhost:3000")).0, 200);
}

fn listen(id: impl Into<Value>, filter: Value) -> Request {
    Request::modern(&modern(id, "subscriptions/listen", json!({"notifications": filter}), json!({})))
}

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

/// Acknowledged first, tagged, coalesced, each kind only to those who asked.
#[test]
fn subscriptions_are_told_what_they_asked_for() {
    let mut net = net();
    let tools = net.send(&listen(1, json!({"toolsListChanged": true})));
    let prompts = net.send(&listen(1, json!({"promptsListChanged": true})));
    let docs = net.send(&listen("d", json!({"resourceSubscriptions": ["doc://a", "doc://none"]})));
    for (got, id) in [(tools, json!(1)), (prompts, json!(1)), (docs, json!("d"))] {
        assert!(net.is_sse(got) && net.status(got) == 200);
        let ack = net.one(got);
        assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(ack["params"]["_meta"][TAG], id);
    }
    let (_, changed) = net.ask(&Request::modern(&tool(9, "change", json!({}))));
    assert_eq!(changed["result"]["content"][0]["text"], "changed");
    let note = net.one(tools);
    assert_eq!(note["method"], "notifications/tools/list_changed");
    assert_eq!(note["params"]["_meta"][TAG], 1);
    assert!(net.messages(prompts).is_empty() && net.messages(docs).is_empty());
    // While the client does not read, many changes are one.
    net.at(tools).paused = true;
    for _ in 0..100 {
        net.http.service().changes().tools();
        net.http.service().changes().resource("doc://a");
    }
    net.settle();
    let updated = net.messages(docs);
    assert!(!updated.is_empty());
    assert!(
        updated.iter().all(|note| note["params"]["uri"] == "doc://a" && note["params"]["_meta"][TAG] == "d")
    );
    net.at(tools).resume();
    net.settle();
    assert_eq!(net.messages(tools).len(), 1);
    // The end: a tagged result, and no `notifications/cancelled` over HTTP.
    net.http.service().changes().tools();
    net.http.close();
    net.settle();
    let last = net.messages(tools);
    assert_eq!(last.len(), 2, "{last:?}");
    assert_eq!(last[0]["method"], "notifications/tools/list_changed");
    assert_eq!(last[1]["id"], 1);
    assert_eq!(last[1]["result"]["_meta"][TAG], 1);
    assert_eq!(last[1]["result"]["resultType"], "complete");
    for got in [tools, prompts, docs] {
        assert!(net.is_done(got));
    }
    // After that there are none.
    let after = net.send(&listen(2, json!({"toolsListChanged": true})));
    let _ = after;
}

/// A subscription without a stream of events cannot be.
#[test]
fn a_subscription_needs_events() {
    let mut net = net();
    let (status, message) =
        net.ask(&listen(1, json!({"toolsListChanged": true})).set("Accept", "application/json"));
    assert_eq!((status, &message["id"]), (406, &json!(1)));
    // One whose client left is forgotten.
    let got = net.send(&listen(1, json!({"toolsListChanged": true})));
    net.disconnect(got);
    net.http.service().changes().tools();
    net.settle();
}

/// Comments show that a silent stream is alive, and decide an answer that takes long.
#[test]
fn keep_alive_comments() {
    let kit = Kit::default();
    let mut net = Net::new(&kit.service());
    let both = net.send(&Request::modern(&tool(1, "wait", json!({}))));
    let json = net.send(&Request::modern(&tool(1, "wait", json!({}))).set("Accept", "application/json"));
    assert!(!net.has_head(both));
    net.pass(Duration::from_secs(14));
    assert!(!net.has_head(both));
    net.pass(Duration::from_secs(1));
    assert!(net.is_sse(both));
    let first = net.events(both);
    assert!(first.len() == 1 && first[0].comments == 1 && first[0].data.is_none());
    net.pass(Duration::from_secs(15));
    assert_eq!(net.events(both).len(), 1);
    assert!(!net.has_head(json));
    kit.gate.open();
    net.settle();
    assert_eq!(net.one(both)["id"], 1);
    assert_eq!(net.one(json)["id"], 1);
    assert!(!net.is_sse(json));
}

/// A request whose time is over is answered and its handler dropped.
#[test]
fn a_request_times_out() {
    let kit = Kit::default();
    let mut limits = mcp_proto::limits::Limits::default();
    limits.request_timeout = Some(Duration::from_secs(5));
    let mut net = Net::new(&kit.service_with(limits));
    let got = net.send(&Request::modern(&tool(1, "wait", json!({}))));
    net.pass(Duration::from_secs(5));
    assert_eq!(net.one(got)["error"]["code"], -32603);
    assert!(net.is_done(got));
    assert_eq!((kit.dropped(), net.jobs()), (1, 0));
}

fn tasks() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// A call that has become a task outlives its exchange, and later POSTs read and update it.
#[test]
fn a_task_outlives_its_exchange() {
    let kit = Kit::default();
    let mut net = Net::new(&kit.service());
    let start = |name: &str| Request::modern(&modern(1, "tools/call", json!({"name": name}), tasks()));
    let get = |id: &Value| Request::modern(&modern(2, "tasks/get", json!({"taskId": id}), tasks()));
    let (status, created) = net.ask(&start("job"));
    assert_eq!((status, &created["result"]["resultType"]), (200, &json!("task")));
    let id = created["result"]["taskId"].clone();
    assert_eq!(net.ask(&get(&id)).1["result"]["status"], "working");
    // Another one, whose client goes away with the answer unread.
    let unread = net.post_only(&start("job"));
    net.disconnect(unread);
    assert_eq!((kit.began(), kit.dropped()), (2, 0));
    net.pass(Duration::from_secs(7));
    kit.gate.open();
    net.settle();
    let (_, got) = net.ask(&get(&id));
    assert_eq!(got["result"]["status"], "completed", "{got}");
    assert_eq!(got["result"]["result"]["content"][0]["text"], "opened");
    assert_eq!(net.jobs(), 0);
    // Questions are read and answered by later POSTs.
    let (_, created) = net.ask(&start("job_asks"));
    let id = created["result"]["taskId"].clone();
    let (_, got) = net.ask(&get(&id));
    assert_eq!(got["result"]["status"], "input_required");
    let key = got["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answer =
        json!({"taskId": id, "inputResponses": {key: {"action": "accept", "content": {"confirm": true}}}});
    assert_eq!(net.ask(&Request::modern(&modern(3, "tasks/update", answer, tasks()))).0, 200);
    net.settle();
    let (_, got) = net.ask(&get(&id));
    assert_eq!(got["result"]["result"]["content"][0]["text"], "true", "{got}");
}

/// The clock of a task goes on with the server's, not with the exchange that began it.
#[test]
fn a_task_ends_when_it_ends() {
    let kit = Kit::default();
    let mut net = Net::new(&kit.service());
    let (_, created) = net.ask(&Request::modern(&modern(1, "tools/call", json!({"name": "job"}), tasks())));
    let id = created["result"]["taskId"].clone();
    net.pass(Duration::from_secs(60));
    net.sweep();
    kit.gate.open();
    net.settle();
    let (_, got) = net.ask(&Request::modern(&modern(2, "tasks/get", json!({"taskId": id}), tasks())));
    assert_eq!(got["result"]["createdAt"], "2026-07-28T09:30:01.000Z");
    assert_eq!(got["result"]["lastUpdatedAt"], "2026-07-28T09:31:01.000Z");
}

/// `input_required` and its retry are two POSTs.
#[test]
fn questions_take_two_posts() {
    let mut net = net();
    let ask = |extra: Value| {
        let mut params = json!({"name": "confirm"});
        for (name, value) in extra.as_object().unwrap() {
            params[name] = value.clone();
        }
        Request::modern(&modern(1, "tools/call", params, json!({"elicitation": {}})))
    };
    let (status, asked) = net.ask(&ask(json!({})));
    assert_eq!((status, &asked["result"]["resultType"]), (200, &json!("input_required")));
    let state = asked["result"]["requestState"].clone();
    let answers = json!({"sure": {"action": "accept", "content": {"confirm": false}}});
    let retry = ask(json!({"requestState": state, "inputResponses": answers}));
    let (_, done) = net.ask(&retry);
    assert_eq!(done["result"]["content"][0]["text"], "false");
    // A06: the state is of the one who got it.
    let someone = mcp_proto::service::Principal::new("someone");
    let got = net.handle(&retry, Some(someone));
    net.settle();
    assert_eq!(net.one(got)["error"]["code"], -32602);
}

/// Modern requests on a URL with sessions touch none of them.
#[test]
fn both_eras_share_a_url() {
    let mut net = net();
    let session = net.session("2025-11-25", json!({}));
    let modern = Request::modern(&modern("init", "tools/list", json!({}), json!({})))
        .with("Mcp-Session-Id", &session.id);
    assert_eq!(net.ask(&modern).1["result"]["resultType"], "complete");
    let (_, answer) = net.ask(&session.post(&call(1, "add", json!({"a": 1, "b": 1}))));
    assert!(answer["result"].get("resultType").is_none(), "V09: {answer}");
    assert_eq!(net.http.sessions_open(), 1);
}
