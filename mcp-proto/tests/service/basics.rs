use mcp_proto::model::LoggingLevel;
use mcp_proto::server::Change;
use mcp_proto::service::{
    CompletionRequest, Kind, NoArguments, Principal, Progress, Server, Service, Structured, ToolError,
    prompt, resource, tool,
};
use serde_json::{Value, json};

use crate::harness::{Client, request, turns};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

/// Adds two numbers.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    /// How to greet.
    tone: String,
    name: Option<String>,
}

pub(crate) fn demo() -> Server {
    Server::new("demo", "1.0.0")
        .tool("echo", |_, p: Echo| async move { Ok(p.text) })
        .tool("add", |_, p: Add| async move { Ok(Structured(Sum { sum: p.a + p.b })) })
        .tool("boom", |_, _: NoArguments| async move { if true { panic!("secret") } else { Ok("") } })
        .tool("fails", |_, _: NoArguments| async move {
            Err::<String, _>(ToolError::from(std::io::Error::other("disk on fire")))
        })
        .tool("work", |ctx, _: NoArguments| async move {
            for at in [1.0, 1.0, 0.5, 2.5] {
                ctx.progress(Progress::new(at).of(3.0)).await;
            }
            ctx.log(LoggingLevel::Debug, "quiet").await;
            ctx.log(LoggingLevel::Warning, "loud").await;
            turns(2).await;
            Ok("done")
        })
        .add(tool("secret", |_, _: NoArguments| async move { Ok("gold") }).roles(["admin"]))
        .resource("config://app", |_, ()| async move { Ok("on") })
        .add(
            resource("users://{id}", |_, (id,): (String,)| async move { Ok(format!("user {id}")) })
                .mime_type("text/plain")
                .complete("id", |_, r: CompletionRequest| async move {
                    Ok(r.filter((0..150).map(|n| n.to_string())))
                }),
        )
        .add(prompt("greet", |_, p: Greet| async move {
            Ok(format!("Greet {} in a {} tone", p.name.unwrap_or_else(|| "all".into()), p.tone))
        }))
}

fn service() -> Service {
    demo().build().unwrap()
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

#[test]
fn typed_tools_in_both_eras() {
    let mut modern = Client::new(&service());
    let answer = modern.modern(1, "tools/call", call("add", json!({"a": 2, "b": 3.0})), json!({}));
    assert_eq!(answer["result"]["structuredContent"], json!({"sum": 5}));
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"sum":5}"#);
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "demo");
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::legacy(&service(), version, json!({}));
        client.send(&json!({"jsonrpc":"2.0","id":7,"method":"tools/call","params":call("echo", json!({"text":"hé"}))}));
        assert_eq!(
            client.one(),
            json!({"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"hé"}]}})
        );
    }
}

#[test]
fn lists_are_derived() {
    let mut client = Client::new(&service());
    let tools = client.modern(1, "tools/list", json!({}), json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "add", "boom", "fails", "work"]);
    assert_eq!(tools[1]["description"], "Adds two numbers.");
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(tools[1]["outputSchema"]["properties"]["sum"]["type"], "integer");
    let prompts = client.modern(2, "prompts/list", json!({}), json!({}));
    assert_eq!(
        prompts["result"]["prompts"][0]["arguments"],
        json!([{"name":"name","required":false},{"name":"tone","description":"How to greet.","required":true}])
    );
    let discover = client.modern(3, "server/discover", json!({}), json!({}));
    assert_eq!(
        discover["result"]["capabilities"],
        json!({"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},
               "prompts":{"listChanged":true},"completions":{},"logging":{}})
    );
}

/// Formats of Rust's numbers are not JSON Schema: strict validators of hosts refuse them.
#[test]
fn schemas_have_no_formats_of_their_own() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Numbers {
        format: u8,
        ratio: f32,
        many: Vec<Option<i64>>,
    }
    let service = Server::new("demo", "1").tool("n", |_, _: Numbers| async move { Ok("") }).build().unwrap();
    let mut client = Client::new(&service);
    let list = client.modern(1, "tools/list", json!({}), json!({}));
    let schema = &list["result"]["tools"][0]["inputSchema"];
    assert_eq!(schema["properties"]["format"], json!({"type": "integer", "minimum": 0, "maximum": 255}));
    assert_eq!(schema["properties"]["ratio"], json!({"type": "number"}));
    assert_eq!(schema["properties"]["many"]["items"], json!({"type": ["integer", "null"]}));
}

/// T01, T02, T06: what does not fit never reaches the handler, and says where.
#[test]
fn t02_wrong_calls() {
    let mut client = Client::new(&service());
    let mut id = 0;
    let mut ask = |params: Value| {
        id += 1;
        client.modern(id, "tools/call", params, json!({}))
    };
    let unknown = ask(call("nope", json!({})));
    assert_eq!(unknown["error"]["code"], -32602);
    let wrong = ask(call("add", json!({"a": "x", "b": 1})));
    assert_eq!(wrong["result"]["isError"], true);
    let text = wrong["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("/a") && text.contains("expected"), "{text}");
    assert_eq!(ask(call("add", json!({"a": 1.5, "b": 1})))["result"]["isError"], true);
    assert_eq!(ask(json!({"name": "add"}))["result"]["isError"], true);
    assert_eq!(ask(json!({"name": "add", "arguments": [1, 2]}))["error"]["code"], -32602);
    assert_eq!(ask(json!({"arguments": {}}))["error"]["code"], -32602);
    let boom = ask(call("boom", json!({})));
    assert_eq!(boom["error"]["code"], -32603);
    assert!(!boom.to_string().contains("secret"));
    let fails = ask(call("fails", json!({})));
    assert_eq!(fails["result"]["content"][0]["text"], "disk on fire");
    assert_eq!(fails["result"]["isError"], true);
    // Older revisions demand an error. [S-TOOL: until 2025-06-18]
    let mut old = Client::legacy(&service(), "2025-06-18", json!({}));
    old.send(
        &json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":call("add", json!({"a":"x","b":1}))}),
    );
    assert_eq!(old.one()["error"]["code"], -32602);
}

/// C06: the token as it came, growing values only, nothing after the answer; logs only when asked for.
#[test]
fn c06_progress_and_logs() {
    let mut client = Client::new(&service());
    for token in [json!(0), json!("0"), json!("abc"), json!(9007199254740993_i64)] {
        let mut message = request(1, "tools/call", call("work", json!({})), json!({}));
        message["params"]["_meta"]["progressToken"] = token.clone();
        client.send(&message);
        let seen = client.take();
        let progress: Vec<_> = seen[..seen.len() - 1].iter().map(|m| m["params"].clone()).collect();
        assert_eq!(
            progress,
            [
                json!({"progressToken":token,"progress":1,"total":3}),
                json!({"progressToken":token,"progress":2.5,"total":3})
            ]
        );
        assert_eq!(seen.last().unwrap()["result"]["content"][0]["text"], "done");
    }
    let mut message = request(1, "tools/call", call("work", json!({})), json!({}));
    message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
    client.send(&message);
    let seen = client.take();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0]["params"], json!({"level":"warning","data":"loud"}));
    let mut legacy = Client::legacy(&service(), "2025-06-18", json!({}));
    legacy.send(&json!({"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}));
    legacy.send(&json!({"jsonrpc":"2.0","id":2,"method":"tools/call","params":call("work", json!({}))}));
    let levels: Vec<_> = legacy.take().iter().map(|m| m["params"]["level"].clone()).collect();
    assert_eq!(levels, [Value::Null, json!("debug"), json!("warning"), Value::Null]);
}

/// C04: a cancelled call is answered by nothing, and its handler is dropped.
#[test]
fn c04_cancelled_calls() {
    let service = Server::new("demo", "1")
        .tool("forever", |_, _: NoArguments| async move {
            std::future::pending::<()>().await;
            Ok("never")
        })
        .build()
        .unwrap();
    let mut client = Client::new(&service);
    client.send(&request(5, "tools/call", call("forever", json!({})), json!({})));
    client.send(&json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}));
    client.send(&request(6, "server/discover", json!({}), json!({})));
    assert_eq!(client.one()["id"], 6);
    client.end_of_input();
    assert!(client.is_done());
}

/// An item that is not for the caller does not exist, whatever the method.
#[test]
fn roles_hide_and_refuse_alike() {
    let service = demo()
        .add(resource("vault://gold", |_, ()| async move { Ok("gold") }).roles(["admin"]))
        .build()
        .unwrap();
    let ask = |client: &mut Client, method: &str, params: Value| client.modern(1, method, params, json!({}));
    let mut guest = Client::of(&service, Some(Principal::new("guest")));
    let mut admin = Client::of(&service, Some(Principal::new("root").with_roles(["admin"])));
    let hidden = ask(&mut guest, "tools/call", call("secret", json!({})));
    let unknown = ask(&mut guest, "tools/call", call("absent", json!({})));
    assert_eq!(hidden["error"]["code"], unknown["error"]["code"]);
    assert_eq!(
        hidden["error"]["message"].as_str().unwrap().replace("secret", "absent"),
        unknown["error"]["message"].as_str().unwrap()
    );
    assert_eq!(
        ask(&mut admin, "tools/call", call("secret", json!({})))["result"]["content"][0]["text"],
        "gold"
    );
    assert_eq!(ask(&mut guest, "resources/read", json!({"uri":"vault://gold"}))["error"]["code"], -32602);
    assert_eq!(ask(&mut guest, "tools/list", json!({}))["result"]["cacheScope"], "private");
    let listed = |answer: &Value| answer["result"]["tools"].to_string().contains("secret");
    assert!(!listed(&ask(&mut guest, "tools/list", json!({}))));
    assert!(listed(&ask(&mut admin, "tools/list", json!({}))));
    let filter = json!({"notifications":{"resourceSubscriptions":["vault://gold","config://app"]}});
    let acked = ask(&mut guest, "subscriptions/listen", filter);
    assert_eq!(acked["params"]["notifications"], json!({"resourceSubscriptions":["config://app"]}));
}

#[test]
fn resources_prompts_and_completion() {
    let mut client = Client::new(&service());
    let read = client.modern(1, "resources/read", json!({"uri":"users://a%2Fb"}), json!({}));
    assert_eq!(
        read["result"]["contents"],
        json!([{"uri":"users://a%2Fb","mimeType":"text/plain","text":"user a/b"}])
    );
    let absent = client.modern(2, "resources/read", json!({"uri":"none://x"}), json!({}));
    assert_eq!(
        (absent["error"]["code"].clone(), absent["error"]["data"]["uri"].clone()),
        (json!(-32602), json!("none://x"))
    );
    let prompt = json!({"name":"greet","arguments":{"tone":"warm"}});
    let got = client.modern(3, "prompts/get", prompt, json!({}));
    assert_eq!(got["result"]["messages"][0]["content"]["text"], "Greet all in a warm tone");
    // M02
    for bad in
        [json!({"name":"greet"}), json!({"name":"none"}), json!({"name":"greet","arguments":{"tone":5}})]
    {
        assert_eq!(client.modern(4, "prompts/get", bad, json!({}))["error"]["code"], -32602);
    }
    // M01
    let complete = |client: &mut Client, value: &str| {
        client.modern(
            5,
            "completion/complete",
            json!({"ref":{"type":"ref/resource","uri":"users://{id}"},
            "argument":{"name":"id","value":value}}),
            json!({}),
        )["result"]["completion"]
            .clone()
    };
    let all = complete(&mut client, "");
    assert_eq!(
        (all["values"].as_array().unwrap().len(), all["hasMore"].clone(), all["total"].clone()),
        (100, json!(true), json!(150))
    );
    assert_eq!(complete(&mut client, "14")["values"].as_array().unwrap().len(), 11);
}

/// Progressive exposure: shown and hidden while the server runs, and subscribers of both eras are told once.
#[test]
fn items_are_shown_and_hidden() {
    let service =
        demo().add(tool("later", |_, _: NoArguments| async move { Ok("now") }).hidden()).build().unwrap();
    let mut modern = Client::new(&service);
    let mut legacy = Client::legacy(&service, "2025-11-25", json!({}));
    modern.modern(1, "subscriptions/listen", json!({"notifications":{"toolsListChanged":true}}), json!({}));
    let absent = modern.modern(2, "tools/call", call("later", json!({})), json!({}));
    assert_eq!(absent["error"]["code"], -32602);
    assert!(service.show(Kind::Tool, "later"));
    service.changes().tools();
    assert_eq!(
        modern.one(),
        json!({"jsonrpc":"2.0","method":"notifications/tools/list_changed",
               "params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}})
    );
    assert_eq!(legacy.one(), json!({"jsonrpc":"2.0","method":"notifications/tools/list_changed"}));
    let there = modern.modern(3, "tools/call", call("later", json!({})), json!({}));
    assert_eq!(there["result"]["content"][0]["text"], "now");
    assert!(!service.show(Kind::Tool, "later") && service.hide(Kind::Tool, "later"));
}

/// Other processes hear of what changes here, and what they tell is told here and not back to them.
#[test]
fn a_bus_joins_processes() {
    #[derive(Clone, Default)]
    struct Bus(std::sync::Arc<std::sync::Mutex<Vec<String>>>);
    impl mcp_proto::service::ChangeBus for Bus {
        fn publish(&self, change: &Change<'_>) {
            self.0.lock().unwrap().push(format!("{change:?}"));
        }
    }
    let service = demo().build().unwrap();
    let bus = Bus::default();
    service.use_bus(bus.clone());
    let mut client = Client::new(&service);
    let filter = json!({"notifications":{"toolsListChanged":true,"resourceSubscriptions":["config://app"]}});
    let acknowledged = client.modern(1, "subscriptions/listen", filter.clone(), json!({}));
    assert_eq!(acknowledged["params"]["notifications"], filter["notifications"]);
    let watched = ["notifications/tools/list_changed", "notifications/resources/updated"];
    service.changes().tools();
    assert_eq!(client.one()["method"], watched[0]);
    assert_eq!(*bus.0.lock().unwrap(), ["Tools"]);
    service.deliver(&Change::Tools);
    assert_eq!(client.one()["method"], watched[0]);
    // After a loss everything that is watched counts as changed, once.
    service.deliver(&Change::Gap);
    service.deliver(&Change::Gap);
    let told: Vec<_> = client.take().iter().map(|message| message["method"].clone()).collect();
    assert_eq!(told, watched);
    assert_eq!(bus.0.lock().unwrap().len(), 1, "what came from others is not told to them");
}

#[test]
fn custom_methods_are_served() {
    let service = demo()
        .method("demo/double", |_, r| async move {
            #[derive(serde::Deserialize)]
            struct N {
                n: i64,
            }
            let N { n } = r.decode()?;
            Ok(json!({"n": n * 2}))
        })
        .build()
        .unwrap();
    let mut client = Client::new(&service);
    assert_eq!(client.modern(1, "demo/double", json!({"n":4}), json!({}))["result"]["n"], 8);
    assert_eq!(client.modern(2, "demo/double", json!({"n":"x"}), json!({}))["error"]["code"], -32602);
    assert_eq!(client.modern(3, "demo/triple", json!({}), json!({}))["error"]["code"], -32601);
}

#[test]
fn what_cannot_be_built_says_so() {
    let wrong =
        Server::new("d", "1").resource("a://{x}/{y}", |_, (x,): (String,)| async move { Ok(x) }).build();
    assert_eq!(
        wrong.unwrap_err().to_string(),
        r#"resource "a://{x}/{y}": the handler takes 1 variables, the template has 2"#
    );
    for wrong in [
        Server::new("d", "1").tool("a b", |_, _: NoArguments| async move { Ok("") }),
        demo().tool("echo", |_, _: NoArguments| async move { Ok("") }),
        demo().method("tools/call", |_, _| async move { Ok(json!({})) }),
        demo().add(
            prompt("p", |_, _: NoArguments| async move { Ok("") })
                .complete("x", |_, _| async move { Ok(vec![]) }),
        ),
    ] {
        assert!(!wrong.build().unwrap_err().to_string().is_empty());
    }
}

/// A burst costs no more memory than the high-water mark and one answer, also when the input ends with it,
/// and nothing of it is lost.
#[test]
fn a_burst_waits_for_its_answers_to_be_written() {
    const COUNT: usize = 50;
    let mut limits = mcp_proto::limits::Limits::default();
    let now = mcp_proto::time::Instant::ZERO;
    let unix = mcp_proto::time::UnixTime::from_millis(crate::harness::EPOCH);
    for (high_water, ends) in [(0, false), (5000, false), (5000, true)] {
        limits.output_high_water = high_water;
        let blob = |_, _: NoArguments| async move { Ok("x".repeat(1000)) };
        let service = Server::new("demo", "1").limits(limits.clone()).tool("blob", blob).build().unwrap();
        let mut session = mcp_proto::service::Session::new(&service);
        let lines: Vec<_> = (0..COUNT as u64)
            .map(|id| request(id, "tools/call", call("blob", json!({})), json!({})).to_string())
            .collect();
        let end = if ends { "" } else { "\n" };
        let bytes = lines.join("\n") + end;
        session.spare(bytes.len()).copy_from_slice(bytes.as_bytes());
        session.commit(bytes.len());
        session.process(now, unix);
        if ends {
            session.end_of_input(now, unix, std::time::Duration::from_secs(5));
            assert!(!session.wants_input());
        }
        let (mut ids, mut rounds) = (Vec::new(), 0);
        while !session.output().is_empty() {
            assert!(session.output().len() < high_water + 2000, "{}", session.output().len());
            assert!(!session.is_done());
            for line in session.output().split_inclusive(|byte| *byte == b'\n') {
                ids.push(serde_json::from_slice::<Value>(line).unwrap()["id"].as_u64().unwrap());
            }
            session.advance(usize::MAX);
            assert!(session.holds_back() || ids.len() == COUNT, "{ids:?}");
            session.process(now, unix);
            rounds += 1;
        }
        assert!(ids.into_iter().eq(0..COUNT as u64));
        assert!(rounds > 5);
        assert!(!session.holds_back());
        assert_eq!(session.is_done(), ends);
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Query {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: Option<String>,
    place: Place,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    #[schemars(extend("x-mcp-header" = "Zone"))]
    zone: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Ratio {
    #[schemars(extend("x-mcp-header" = "Ratio"))]
    ratio: f64,
}

/// S-HDR-05 to S-HDR-11: a tool that clients would have to leave out is not built.
#[test]
fn header_annotations_of_types_are_checked() {
    let wrong = Server::new("d", "1").tool("share", |_, p: Ratio| async move { Ok(p.ratio.to_string()) });
    assert_eq!(
        wrong.build().unwrap_err().to_string(),
        "tool `share`: invalid `x-mcp-header` in the input schema: /properties/ratio/x-mcp-header: \
         expected an argument of type integer, string or boolean, found \"number\""
    );
    // An optional argument and one inside of a struct are fine.
    let service = Server::new("d", "1")
        .tool("query", |_, p: Query| async move {
            Ok(format!("{}/{}", p.region.as_deref().unwrap_or("any"), p.place.zone))
        })
        .build()
        .unwrap();
    let mut client = Client::new(&service);
    let tools = client.modern(1, "tools/list", json!({}), json!({}));
    let schema = &tools["result"]["tools"][0]["inputSchema"];
    assert_eq!(schema["properties"]["region"], json!({"type":"string","x-mcp-header":"Region"}));
    assert_eq!(schema["properties"]["place"]["properties"]["zone"]["x-mcp-header"], "Zone");
    assert_eq!(schema["required"], json!(["place"]));
    let call = json!({"name":"query","arguments":{"region":null,"place":{"zone":7}}});
    let answer = client.modern(2, "tools/call", call, json!({}));
    assert_eq!(answer["result"]["content"][0]["text"], "any/7");
}
