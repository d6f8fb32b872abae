//! Every revision, from both ends.

use mcp_proto::client::request;
use mcp_proto::client::{CallError, Mode};
use mcp_proto::model::{CompletionReference, ProtocolVersion};
use mcp_proto::service::client::{Client, ClientBuilder, ToolFailure};
use mcp_proto::service::{Server, Service, Structured, ToolError, prompt};
use serde_json::{Value, json};

use crate::rig::block_on;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    sum: f64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Review {
    code: String,
}

pub(crate) fn demo() -> Service {
    Server::new("demo", "1.0.0")
        .instructions("Add things.")
        .tool("add", |_, p: Add| async move { Ok(Structured(Sum { sum: p.a + p.b })) })
        .tool("fail", |_, _: mcp_proto::service::NoArguments| async move {
            Err::<String, _>(ToolError::new("out of paper"))
        })
        .resource("greeting://{name}", |_, (name,): (String,)| async move { Ok(format!("Hello, {name}!")) })
        .resource("greeting://all", |_, (): ()| async move { Ok("Hello, all!".to_owned()) })
        .add(
            prompt("review", |_, p: Review| async move { Ok(format!("Review this:\n{}", p.code)) })
                .complete("code", |_, request| async move { Ok(vec![format!("{}()", request.value)]) }),
        )
        .build()
        .unwrap()
}

pub(crate) fn client() -> ClientBuilder {
    Client::new("test", "1.0.0")
}

/// A client that speaks this revision alone.
pub(crate) fn speaking(version: ProtocolVersion) -> ClientBuilder {
    client().versions([version]).mode(if version.is_modern() { Mode::Modern } else { Mode::Legacy })
}

#[test]
fn every_revision_can_do_everything() {
    for version in ProtocolVersion::ALL {
        let done = block_on(speaking(version).in_memory(&demo(), async |client| {
            let server = client.server();
            assert_eq!(server.version, version);
            assert_eq!(server.name(), Some("demo"));
            assert_eq!(server.instructions.as_deref(), Some("Add things."));
            assert_eq!(client.verdict().unwrap().version(), version);
            client.ping().await?;

            let tools = client.tools().await?;
            assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["add", "fail"]);
            assert!(tools.faults.is_empty());
            let sum = client.call_tool("add", json!({"a": 1, "b": 2})).await?;
            assert_eq!(sum.texts(), r#"{"sum":3.0}"#);
            assert_eq!(sum.into_structured::<Sum>().unwrap().sum, 3.0);
            let failed = client.call_tool("fail", ()).await?;
            assert!(matches!(failed.ok(), Err(ToolFailure::Failed(why)) if why == "out of paper"));

            assert_eq!(client.resources().await?.items[0].uri, "greeting://all");
            assert_eq!(client.resource_templates().await?.items[0].uri_template, "greeting://{name}");
            let greeting = client.read_resource("greeting://Ann").await?;
            assert_eq!(greeting.as_text(), Some("Hello, Ann!"));

            assert_eq!(client.prompts().await?[0].name, "review");
            let review = client.get_prompt("review", [("code", "x = 1")]).await?;
            assert!(serde_json::to_string(&review).unwrap().contains("x = 1"));
            let reference = CompletionReference::prompt("review");
            let completed = client.complete(reference, "code", "f").await?;
            assert_eq!(completed.completion.values, ["f()"]);

            let unknown = client.call(request::Custom::new("nothing/known")).await;
            assert!(matches!(unknown, Err(CallError::Rpc(error)) if error.code == -32601));
            Ok::<_, CallError>(())
        }));
        done.unwrap().unwrap_or_else(|error| panic!("{version}: {error}"));
    }
}

#[test]
fn both_eras_find_each_other() {
    let found = block_on(client().in_memory(&demo(), async |client| client.server().version)).unwrap();
    assert_eq!(found, ProtocolVersion::LATEST);
    let old = Server::new("old", "1").versions([ProtocolVersion::V2025_03_26]).build().unwrap();
    let found = block_on(client().in_memory(&old, async |client| client.server().version)).unwrap();
    assert_eq!(found, ProtocolVersion::V2025_03_26);
    let none = block_on(speaking(ProtocolVersion::LATEST).in_memory(&old, async |_| ())).unwrap_err();
    assert!(matches!(none, CallError::NotModern | CallError::NoCommonVersion(_)), "{none}");
}

#[test]
fn what_cannot_be_sent_is_an_error_of_the_call() {
    let done = block_on(client().in_memory(&demo(), async |client| {
        for bad in [json!(1), json!([1]), json!("x")] {
            let error = client.call_tool("add", bad).await.unwrap_err();
            assert!(matches!(&error, CallError::Invalid(_)), "{error}");
        }
        let refused = client.call_tool("add", json!({"a": 1})).await.unwrap();
        assert!(refused.failed(), "{refused:?}");
        assert!(client.call_tool("add", json!({"a": 1, "b": 1})).await.is_ok(), "it goes on");
        let wrong = client.call_tool("add", json!({"a": 1, "b": 1})).await.unwrap();
        let unfit = wrong.into_structured::<Vec<Value>>().unwrap_err();
        assert!(unfit.to_string().contains("/structuredContent"), "{unfit}");
    }));
    done.unwrap();
}
