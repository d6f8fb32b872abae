use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_proto::model::{
    CreateMessage, ElicitForm, ElicitUrl, FormSchema, MultiSelectSchema, SamplingMessage,
};
use mcp_proto::service::{AskError, NoArguments, Principal, Server, Service};
use serde_json::{Value, json};

use crate::harness::{Client, request};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Deploy {
    env: String,
}
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    ok: bool,
}
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Region {
    region: String,
}

fn deploy() -> (Service, Arc<AtomicUsize>) {
    let quotes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&quotes);
    let service = Server::new("demo", "1")
        .tool("deploy", move |ctx, p: Deploy| {
            let quotes = Arc::clone(&counted);
            async move {
                let price: usize =
                    ctx.step("price", || async { quotes.fetch_add(1, Ordering::SeqCst) + 40 }).await;
                let sure: Confirm = ctx.ask("confirm", format!("Deploy {} for {price}?", p.env)).await?;
                let r: Region = ctx.ask("region", "Which region?").await?;
                Ok(format!("{} {} {price}", sure.ok, r.region))
            }
        })
        .tool("polite", |ctx, _: NoArguments| async move {
            Ok(match ctx.ask::<Confirm>("confirm", "Sure?").await {
                Ok(_) => "yes",
                Err(AskError::Declined) => "no",
                Err(AskError::Cancelled) => "gone",
                Err(_) => "cannot",
            })
        })
        .tool("both", |ctx, _: NoArguments| async move {
            let model = ctx.sample("model", CreateMessage::new([SamplingMessage::user("hi")], 10));
            let roots = ctx.roots("roots");
            let (_, roots) = (model.await?, roots.await?);
            Ok(format!("{}", roots.len()))
        })
        .build()
        .unwrap();
    (service, quotes)
}

fn forms() -> Value {
    json!({"elicitation": {}})
}

fn retry(answer: &Value, key: &str, content: Value) -> Value {
    json!({"name":"deploy","arguments":{"env":"prod"},"requestState":answer["result"]["requestState"],
           "inputResponses":{key:{"action":"accept","content":content}}})
}

#[test]
fn a_modern_call_asks_in_rounds_and_steps_run_once() {
    let (service, quotes) = deploy();
    let mut client = Client::new(&service);
    let first = client.modern(1, "tools/call", json!({"name":"deploy","arguments":{"env":"prod"}}), forms());
    assert_eq!(first["result"]["resultType"], "input_required");
    assert_eq!(
        first["result"]["inputRequests"],
        json!({"confirm":{"method":"elicitation/create","params":{"mode":"form","message":"Deploy prod for 40?",
            "requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}}})
    );
    // Another stream, even another process with the same keys, can go on.
    let mut client = Client::new(&service);
    let second = client.modern(2, "tools/call", retry(&first, "confirm", json!({"ok":true})), forms());
    assert_eq!(second["result"]["inputRequests"]["region"]["params"]["message"], "Which region?");
    let last = client.modern(3, "tools/call", retry(&second, "region", json!({"region":"eu"})), forms());
    assert_eq!(last["result"]["content"][0]["text"], "true eu 40");
    assert_eq!(quotes.load(Ordering::SeqCst), 1);
}

#[test]
fn state_is_bound_to_its_call() {
    let (service, _) = deploy();
    let mut client = Client::of(&service, Some(Principal::new("u1")));
    let first = client.modern(1, "tools/call", json!({"name":"deploy","arguments":{"env":"prod"}}), forms());
    let good = retry(&first, "confirm", json!({"ok":true}));
    let mut other = Client::of(&service, Some(Principal::new("u2")));
    assert_eq!(other.modern(2, "tools/call", good.clone(), forms())["error"]["code"], -32602);
    let mut tampered = good.clone();
    tampered["requestState"] = json!(format!("{}-TAMPERED", good["requestState"].as_str().unwrap()));
    let mut elsewhere = good.clone();
    elsewhere["arguments"]["env"] = json!("test");
    let mut polite = good.clone();
    polite["name"] = json!("polite");
    for bad in [tampered, elsewhere, polite] {
        assert_eq!(client.modern(3, "tools/call", bad, forms())["error"]["code"], -32602);
    }
    client.pass(std::time::Duration::from_secs(3601));
    assert_eq!(client.modern(4, "tools/call", good, forms())["error"]["code"], -32602);
}

/// M03: every way to answer, and to answer wrongly.
#[test]
fn m03_answers_of_every_kind() {
    let (service, _) = deploy();
    let mut client = Client::new(&service);
    for (answer, outcome) in [
        (json!({"action":"accept","content":{"ok":true}}), Some("yes")),
        (json!({"action":"decline"}), Some("no")),
        (json!({"action":"decline","content":{"x":1}}), Some("no")),
        (json!({"action":"cancel","content":null}), Some("gone")),
        (json!({"action":"accept"}), None),
        (json!({"action":"accept","content":{"ok":"x"}}), None),
        (json!({"action":"maybe"}), None),
        (json!(12345), None),
    ] {
        let first = client.modern(1, "tools/call", json!({"name":"polite"}), forms());
        let params = json!({"name":"polite","requestState":first["result"]["requestState"],
                            "inputResponses":{"confirm":answer,"unknown":{}}});
        let last = client.modern(2, "tools/call", params, forms());
        match outcome {
            Some(text) => assert_eq!(last["result"]["content"][0]["text"], text),
            None => assert_eq!(last["error"]["code"], -32602, "{last}"),
        }
    }
    // A missing answer is asked for again.
    let again =
        client.modern(3, "tools/call", json!({"name":"polite","inputResponses":{"wrong":{}}}), forms());
    assert_eq!(again["result"]["resultType"], "input_required");
}

/// M06: the capability counts on this request alone.
#[test]
fn m06_capabilities_gate_questions() {
    let (service, _) = deploy();
    let mut client = Client::new(&service);
    client.modern(1, "tools/call", json!({"name":"deploy","arguments":{"env":"p"}}), forms());
    let refused = client.modern(2, "tools/call", json!({"name":"deploy","arguments":{"env":"p"}}), json!({}));
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], json!({"elicitation":{"form":{}}}));
    let polite = client.modern(3, "tools/call", json!({"name":"polite"}), json!({"elicitation":{"url":{}}}));
    assert_eq!(polite["result"]["content"][0]["text"], "cannot");
}

/// The same handler in a legacy session: the questions are requests, the handler waits.
#[test]
fn a_legacy_call_asks_by_requests() {
    for version in ["2025-06-18", "2025-11-25"] {
        let (service, quotes) = deploy();
        let mut client = Client::legacy(&service, version, forms());
        client.send(&json!({"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"deploy","arguments":{"env":"prod"}}}));
        let question = client.one();
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["mode"].is_null(), version == "2025-06-18");
        client.send(
            &json!({"jsonrpc":"2.0","id":question["id"],"result":{"action":"accept","content":{"ok":true}}}),
        );
        let question = client.one();
        client.send(&json!({"jsonrpc":"2.0","id":question["id"],"result":{"action":"accept","content":{"region":"us"}}}));
        assert_eq!(client.one()["result"]["content"][0]["text"], "true us 40");
        assert_eq!(quotes.load(Ordering::SeqCst), 1);
    }
    // A revision without elicitation cannot be asked.
    let (service, _) = deploy();
    let mut client = Client::legacy(&service, "2025-03-26", forms());
    client.send(&json!({"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"deploy","arguments":{"env":"p"}}}));
    assert_eq!(client.one()["result"]["isError"], true);
}

#[test]
fn a_cancelled_legacy_call_withdraws_its_question() {
    let (service, _) = deploy();
    let mut client = Client::legacy(&service, "2025-11-25", forms());
    client.send(&json!({"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"polite"}}));
    let question = client.one();
    client.send(&json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}));
    let withdrawn = client.one();
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    client.send(&json!({"jsonrpc":"2.0","id":question["id"],"result":{"action":"decline"}}));
    assert!(client.take().is_empty());
    client.end_of_input();
    assert!(client.is_done());
}

/// Nobody can answer any more: the handler learns it, the call ends.
#[test]
fn a_question_at_the_end_of_input_is_given_up() {
    let (service, _) = deploy();
    let mut client = Client::legacy(&service, "2025-11-25", forms());
    client.send(&json!({"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"polite"}}));
    client.one();
    client.end_of_input();
    assert_eq!(client.one()["result"]["content"][0]["text"], "cannot");
    assert!(client.is_done());
}

#[test]
fn sampling_and_roots_are_asked_alike() {
    let (service, _) = deploy();
    let mut client = Client::new(&service);
    let all = json!({"sampling":{},"roots":{}});
    let first = client.modern(1, "tools/call", json!({"name":"both"}), all.clone());
    assert_eq!(first["result"]["inputRequests"]["model"]["method"], "sampling/createMessage");
    let second = client.modern(
        2,
        "tools/call",
        json!({"name":"both","requestState":first["result"]["requestState"],
        "inputResponses":{"model":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}}}),
        all.clone(),
    );
    assert_eq!(second["result"]["inputRequests"], json!({"roots":{"method":"roots/list"}}));
    let last = client.modern(
        3,
        "tools/call",
        json!({"name":"both","requestState":second["result"]["requestState"],
        "inputResponses":{"roots":{"roots":[{"uri":"file:///a"}]}}}),
        all,
    );
    assert_eq!(last["result"]["content"][0]["text"], "1");
    let _ = request(1, "x", json!({}), json!({}));
}

/// A form that the client's revision has no words for is not asked in fewer words.
#[test]
fn a_form_that_a_revision_cannot_express() {
    let service = Server::new("demo", "1")
        .tool("tags", |ctx, _: NoArguments| async move {
            let several = FormSchema::new().required("tags", MultiSelectSchema::new(["a", "b"]));
            Ok(ctx.ask_form("tags", ElicitForm::new("Which?", several)).await?)
        })
        .build()
        .unwrap();
    for (version, asks) in [("2025-06-18", false), ("2025-11-25", true)] {
        let mut client = Client::legacy(&service, version, forms());
        client.send(&json!({"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"tags"}}));
        let seen = client.one();
        assert_eq!(seen["method"] == "elicitation/create", asks, "{seen}");
        assert_eq!(seen["result"]["isError"] == true, !asks, "{seen}");
    }
}

/// LS-ELIC-02: an elicitation by URL has the id it was given, and its end is told under that id; newer
/// revisions know neither.
#[test]
fn an_elicitation_by_url_is_completed() {
    let service = Server::new("demo", "1")
        .tool("sign_in", |ctx, _: NoArguments| async move {
            let url = ElicitUrl::new("Please sign in", "https://example.com/").elicitation_id("e-1");
            ctx.ask_url("sign_in", url).await?;
            ctx.elicitation_complete("e-1");
            Ok("done")
        })
        .build()
        .unwrap();
    let capabilities = json!({"elicitation":{"url":{}}});
    let mut client = Client::legacy(&service, "2025-11-25", capabilities.clone());
    client.send(&json!({"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"sign_in"}}));
    let question = client.one();
    assert_eq!(question["params"]["elicitationId"], "e-1");
    client.send(&json!({"jsonrpc":"2.0","id":question["id"],"result":{"action":"accept"}}));
    let seen = client.take();
    assert_eq!(seen[0]["method"], "notifications/elicitation/complete");
    assert_eq!(seen[0]["params"], json!({"elicitationId":"e-1"}));
    assert_eq!(seen[1]["result"]["content"][0]["text"], "done");
    let mut client = Client::new(&service);
    let first = client.modern(1, "tools/call", json!({"name":"sign_in"}), capabilities.clone());
    assert!(first["result"]["inputRequests"]["sign_in"]["params"]["elicitationId"].is_null());
    let retry = json!({"name":"sign_in","requestState":first["result"]["requestState"],
        "inputResponses":{"sign_in":{"action":"accept"}}});
    let last = client.modern(2, "tools/call", retry, capabilities);
    assert_eq!(last["result"]["content"][0]["text"], "done");
}

/// Only three methods may be answered with `input_required`: elsewhere a handler cannot ask, and goes on.
#[test]
fn a_custom_method_cannot_ask() {
    let service = Server::new("demo", "1")
        .method("demo/ask", |ctx, _| async move {
            let asked = ctx.ask::<Confirm>("sure", "Sure?").await;
            Ok(json!({"refused": matches!(asked, Err(AskError::Refused(_)))}))
        })
        .build()
        .unwrap();
    let mut client = Client::new(&service);
    let answer = client.modern(1, "demo/ask", json!({}), forms());
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["refused"], true);
}
