//! The scenarios of the official suite's client leg, by name.

use std::time::Duration;

use mcp_proto::client::CallError;
use mcp_proto::client::request::CallTool;
use mcp_proto::model::{InputRequest, InputResponses, Json, Tool};
use mcp_proto::service::client::{Client, ClientBuilder, Refusal, Turn};
use serde_json::{Value, json};

use super::runtime::{Runtime, Target};

/// What tells which scenario is played.
const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";

/// Plays the scenario that the environment names.
///
/// # Errors
///
/// There is none, or it is not known.
pub(super) fn go(runtime: Runtime, target: &Target) -> Result<bool, String> {
    let name = std::env::var(SCENARIO).map_err(|_| format!("expected the variable {SCENARIO}"))?;
    let scenario = Scenario::parse(&name).ok_or_else(|| format!("the scenario {name:?} is not known"))?;
    let context = super::context()?.unwrap_or_default();
    runtime.run(async {
        let client = runtime.connect(declared(), target, None).await?;
        let played = scenario.play(&client, &context).await;
        client.close().await;
        played.map(|()| true).map_err(|error| format!("{name}: {error}"))
    })?
}

/// The client under test: it can be asked for much, and takes every form as it is first shown.
fn declared() -> ClientBuilder {
    Client::new("mcp-conformance-client", env!("CARGO_PKG_VERSION"))
        .on_elicit(|form, _| async move { Ok(form.accept_defaults()) })
        .on_sample(|_, _| async { Err(Refusal::by_user()) })
        .roots([])
        .timeout(Duration::from_secs(30))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    /// Connecting and listing is all.
    Listing,
    ToolsCall,
    FormDefaults,
    Reconnection,
    RequestState,
    Everything,
    CustomHeaders,
    SchemaEcho,
}

impl Scenario {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "initialize" | "request-metadata" | "json-schema-ref-no-deref" => Self::Listing,
            "tools_call" => Self::ToolsCall,
            "elicitation-sep1034-client-defaults" => Self::FormDefaults,
            "sse-retry" => Self::Reconnection,
            "sep-2322-client-request-state" => Self::RequestState,
            "http-standard-headers" | "http-invalid-tool-headers" => Self::Everything,
            "http-custom-headers" => Self::CustomHeaders,
            "json-schema-2020-12-preservation" => Self::SchemaEcho,
            _ => return None,
        })
    }

    async fn play(self, client: &Client, context: &Value) -> Result<(), String> {
        match self {
            Self::Listing => {
                if client.server().capabilities.as_ref().is_none_or(|has| has.has_tools()) {
                    told(client.tools().await)?;
                }
            }
            Self::ToolsCall => {
                told(client.tools().await)?;
                told(client.call_tool("add_numbers", json!({"a": 5, "b": 3})).await)?;
            }
            Self::FormDefaults => {
                told(client.tools().await)?;
                told(client.call_tool("test_client_elicitation_defaults", ()).await)?;
            }
            Self::Reconnection => {
                told(client.call_tool("test_reconnection", ()).await)?;
            }
            Self::RequestState => request_state(client).await?,
            Self::Everything => everything(client).await?,
            Self::CustomHeaders => {
                told(client.tools().await)?;
                let calls = context["toolCalls"].as_array().ok_or("expected `toolCalls` in the context")?;
                for call in calls {
                    let name = call["name"].as_str().unwrap_or_default().to_owned();
                    told(client.call_tool(name, &call["arguments"]).await)?;
                }
            }
            Self::SchemaEcho => schema_echo(client).await?,
        }
        Ok(())
    }
}

fn told<T>(result: Result<T, CallError>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// Another call is made while one waits for its answers; then the rounds that have no state.
async fn request_state(client: &Client) -> Result<(), String> {
    told(client.tools().await)?;
    let turn = told(client.call_tool("test_mrtr_echo_state", ()).by_hand().await)?;
    let Turn::Input(paused) = turn else { return Err("expected to be asked for input".to_owned()) };
    told(client.call_tool("test_mrtr_unrelated", ()).await)?;
    let answers: InputResponses =
        paused.requests().iter().filter_map(|(key, request)| Some((key.clone(), yes(request)?))).collect();
    told(paused.answer(answers).await)?;
    told(client.call(CallTool::new("test_mrtr_no_state")).await)?;
    told(client.call(CallTool::new("test_mrtr_no_result_type")).await)?;
    Ok(())
}

/// Every form is accepted with "yes" wherever that fits.
fn yes(request: &InputRequest) -> Option<Json> {
    let InputRequest::ElicitForm(form) = request else { return None };
    let mut content = form.defaults();
    for (name, field) in form.requested_schema.properties().iter() {
        let field = serde_json::to_value(field).ok()?;
        if field["type"] == "boolean" {
            content.insert(name.clone(), Json::from_serialize(&true).ok()?);
        }
    }
    Json::from_serialize(&json!({"action": "accept", "content": content})).ok()
}

/// Calls, reads and gets all that is listed.
async fn everything(client: &Client) -> Result<(), String> {
    for tool in told(client.tools().await)? {
        told(client.call_tool(tool.name.clone(), arguments(&tool)).await)?;
    }
    let server = client.server();
    let has = server.capabilities.as_ref();
    if has.is_none_or(|has| has.has_resources()) {
        for resource in told(client.resources().await)? {
            told(client.read_resource(resource.uri).await)?;
        }
    }
    if has.is_none_or(|has| has.has_prompts()) {
        for prompt in told(client.prompts().await)? {
            let takes = prompt.arguments.into_iter().flatten();
            let required = takes.filter(|argument| argument.required == Some(true));
            let arguments: Vec<_> = required.map(|argument| (argument.name, "a")).collect();
            told(client.get_prompt(prompt.name, arguments).await)?;
        }
    }
    Ok(())
}

/// The least that a tool takes.
fn arguments(tool: &Tool) -> Value {
    let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    let mut arguments = json!({});
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        arguments[name] = match schema["properties"][name]["type"].as_str() {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("a"),
        };
    }
    arguments
}

/// Sends the schema of the other tool back as it came.
async fn schema_echo(client: &Client) -> Result<(), String> {
    let tools = told(client.tools().await)?;
    let other = tools.iter().find(|tool| *tool.name != *"json_schema_echo");
    let other = other.ok_or("expected a tool besides json_schema_echo")?;
    let schema = other.input_schema.as_json().clone();
    let arguments = std::collections::BTreeMap::from([("schema", schema)]);
    told(client.call_tool("json_schema_echo", arguments).await)?;
    Ok(())
}
