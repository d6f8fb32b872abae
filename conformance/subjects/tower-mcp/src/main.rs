//! tower-mcp in both eras: `subject-tower-mcp --stdio` or `subject-tower-mcp --http`.

mod ask;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_mcp::extract::{Context, Json, RawArgs, State};
use tower_mcp::protocol::{
    CompleteParams, CompleteResult, CompletionReference, LogLevel, LoggingMessageParams, ReadResourceResult,
};
use tower_mcp::{
    BidirectionalStdioTransport, BoxError, CallToolResult, GetPromptResult, HttpTransport, McpRouter, Prompt, PromptBuilder,
    RequestContext, RequestStateCodec, Resource, ResourceBuilder, ResourceTemplate, ResourceTemplateBuilder,
    Tool, ToolBuilder,
};

/// What the exchanges ask of a server, whatever its SDK.
static CONTRACT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../contract.json")).expect("the contract is JSON")
});

#[derive(Default)]
struct Counts {
    ran: AtomicU64,
    stopped: AtomicU64,
    version: AtomicU64,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}
#[derive(Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}
#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: f64,
}
#[derive(Deserialize, JsonSchema)]
struct Slow {
    ms: u64,
}
#[derive(Serialize, JsonSchema)]
struct Counted {
    ran: u64,
    stopped: u64,
}
#[derive(Deserialize, JsonSchema)]
struct Flood {
    n: u64,
}
#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

/// What the SDK has a type for, from how it is on the wire.
fn model<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what the contract says has the SDK's type")
}

fn list(name: &str) -> Vec<String> {
    model(CONTRACT[name].clone())
}

fn log(ctx: &RequestContext, level: &str, logger: Option<&str>, data: Value) {
    let level: LogLevel = model(json!(level));
    let message = LoggingMessageParams::new(level, data);
    ctx.send_log(match logger {
        Some(logger) => message.with_logger(logger),
        None => message,
    });
}

fn tools(counts: &Arc<Counts>) -> Vec<Tool> {
    let mut all = vec![
        ToolBuilder::new("echo")
            .description("Gives the text back")
            .handler(|p: Echo| async move { Ok(CallToolResult::text(p.text)) })
            .build(),
        ToolBuilder::new("add")
            .title("Addition")
            .description("Adds two numbers")
            .output_schema_for::<Sum>()
            .handler(|p: Add| async move { CallToolResult::from_serialize(&Sum { sum: p.a + p.b }) })
            .build(),
        ToolBuilder::new("greet")
            .description("Greets at once, never as a task")
            .handler(|p: Greet| async move { Ok(CallToolResult::text(format!("Hello, {}!", p.name))) })
            .build(),
    ];
    let shared = Arc::clone(counts);
    all.push(
        ToolBuilder::new("slow")
            .description("Waits; stops when the call is cancelled")
            .extractor_handler(
                shared,
                |State(counts): State<Arc<Counts>>, ctx: Context, Json(p): Json<Slow>| async move {
                    counts.ran.fetch_add(1, SeqCst);
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(p.ms)) => {
                            Ok(CallToolResult::text(format!("Waited {} ms", p.ms)))
                        }
                        () = ctx.cancelled() => {
                            counts.stopped.fetch_add(1, SeqCst);
                            Ok(CallToolResult::error("stopped"))
                        }
                    }
                },
            )
            .build(),
    );
    let shared = Arc::clone(counts);
    all.push(
        ToolBuilder::new("counter")
            .description("How many calls of slow began, and how many were stopped")
            .output_schema_for::<Counted>()
            .no_params_handler(move || {
                let counted = Counted { ran: shared.ran.load(SeqCst), stopped: shared.stopped.load(SeqCst) };
                async move { CallToolResult::from_serialize(&counted) }
            })
            .build(),
    );
    all.push(
        ToolBuilder::new("flood")
            .description("Sends so many notifications")
            .extractor_handler((), |ctx: Context, Json(p): Json<Flood>| async move {
                for at in (1..=p.n).take_while(|_| !ctx.is_cancelled()) {
                    if ctx.progress_token().is_some() {
                        ctx.report_progress(at as f64, Some(p.n as f64), None).await;
                    } else {
                        log(&ctx, "info", Some("flood"), json!(at));
                    }
                }
                Ok(CallToolResult::text(format!("Sent {}", p.n)))
            })
            .build(),
    );
    let shared = Arc::clone(counts);
    all.push(
        ToolBuilder::new("touch")
            .description("Changes config://app")
            .extractor_handler(
                shared,
                |State(counts): State<Arc<Counts>>, ctx: Context, _: RawArgs| async move {
                    let version = counts.version.fetch_add(1, SeqCst) + 2;
                    ctx.notify_resource_updated("config://app");
                    Ok(CallToolResult::text(format!("config://app has version {version}")))
                },
            )
            .build(),
    );
    for (name, fixed) in CONTRACT["tools"].as_object().into_iter().flatten() {
        let result: CallToolResult = model(fixed["result"].clone());
        all.push(
            ToolBuilder::new(name)
                .description(fixed["description"].as_str().unwrap_or_default())
                .no_params_handler(move || {
                    let result = result.clone();
                    async move { Ok(result) }
                })
                .build(),
        );
    }
    let annotated = &CONTRACT["annotatedTool"];
    let tool = ToolBuilder::new("test_annotated_tool")
        .title("Annotated tool")
        .description("Is listed with everything that a tool can be listed with")
        .annotations(model(annotated["annotations"].clone()))
        .icon_with_meta(
            annotated["icons"][0]["src"].as_str().unwrap_or_default(),
            Some("image/png".to_owned()),
            Some(vec!["1x1".to_owned()]),
        )
        .no_params_handler(|| async { Ok(CallToolResult::text("annotated")) })
        .build()
        .with_meta(annotated["_meta"].clone());
    all.push(tool.expect("the name of the metadata is valid"));
    all.push(
        ToolBuilder::new("test_tool_with_progress")
            .description("Reports progress: 0, 50 and 100 of 100")
            .extractor_handler((), |ctx: Context, _: RawArgs| async move {
                for at in [0.0, 50.0, 100.0] {
                    ctx.report_progress(at, Some(100.0), None).await;
                }
                Ok(CallToolResult::text("Tool with progress completed"))
            })
            .build(),
    );
    all.push(
        ToolBuilder::new("test_tool_with_logging")
            .description("Logs three messages of level info")
            .extractor_handler((), |ctx: Context, _: RawArgs| async move {
                for message in ["Tool execution started", "Tool processing data", "Tool execution completed"]
                {
                    log(&ctx, "info", None, json!(message));
                }
                Ok(CallToolResult::text("Tool with logging completed"))
            })
            .build(),
    );
    all.push(
        ToolBuilder::new("test_logging_tool")
            .description("Logs a message of each level")
            .extractor_handler((), |ctx: Context, _: RawArgs| async move {
                for level in list("levels") {
                    log(&ctx, &level, Some("test_logging_tool"), json!(level));
                }
                Ok(CallToolResult::text("Logged"))
            })
            .build(),
    );
    type Notice = fn(&RequestContext) -> bool;
    for (name, kind, notice) in [
        ("test_trigger_tool_change", "tools", RequestContext::notify_tools_list_changed as Notice),
        ("test_trigger_prompt_change", "prompts", RequestContext::notify_prompts_list_changed),
        ("test_trigger_resource_change", "resources", RequestContext::notify_resources_list_changed),
    ] {
        all.push(
            ToolBuilder::new(name)
                .description(format!("Says that the list of {kind} changed"))
                .extractor_handler((), move |ctx: Context, _: RawArgs| async move {
                    notice(&ctx);
                    Ok(CallToolResult::text(format!("Said that the list of {kind} changed")))
                })
                .build(),
        );
    }
    for (name, schema) in [("json_schema_2020_12_tool", "everyKeyword"), ("mirror", "mirror")] {
        all.push(
            ToolBuilder::new(name)
                .description("Gives its arguments back")
                .input_schema(CONTRACT["schemas"][schema].clone())
                .extractor_handler((), |RawArgs(args): RawArgs| async move {
                    Ok(CallToolResult::text(args.to_string()))
                })
                .build(),
        );
    }
    all.push(
        ToolBuilder::new("test_x_mcp_header")
            .description("Has an argument that HTTP clients repeat in a header")
            .input_schema(CONTRACT["schemas"]["mirrored"].clone())
            .extractor_handler((), |RawArgs(args): RawArgs| async move {
                Ok(CallToolResult::text(format!("region: {}", args["region"].as_str().unwrap_or("none"))))
            })
            .build(),
    );
    all.extend(ask::tools());
    all
}

fn resources(counts: &Arc<Counts>) -> Vec<Resource> {
    let contents = |contents: Value| -> ReadResourceResult { model(json!({"contents": [contents]})) };
    let counts = Arc::clone(counts);
    let binary = json!({"uri": "test://static-binary", "mimeType": "image/png", "blob": CONTRACT["png"]});
    vec![
        ResourceBuilder::new("config://app")
            .name("app")
            .title("Configuration")
            .mime_type("application/json")
            .handler(move || {
                let version = counts.version.load(SeqCst) + 1;
                let text = json!({"version": version}).to_string();
                let result =
                    contents(json!({"uri": "config://app", "mimeType": "application/json", "text": text}));
                async move { Ok(result) }
            })
            .build(),
        ResourceBuilder::new("test://static-text")
            .name("static-text")
            .title("Static text")
            .description("A text that never changes")
            .mime_type("text/plain")
            .size(48)
            .annotations(model(json!({"audience": ["user"], "priority": 0.5})))
            .text(CONTRACT["staticText"].as_str().unwrap_or_default()),
        ResourceBuilder::new("test://static-binary")
            .name("static-binary")
            .mime_type("image/png")
            .handler(move || {
                let result = contents(binary.clone());
                async move { Ok(result) }
            })
            .build(),
        ResourceBuilder::new("test://watched-resource")
            .name("watched-resource")
            .mime_type("text/plain")
            .text("Watch me"),
    ]
}

fn templates() -> Vec<ResourceTemplate> {
    let id = |vars: &HashMap<String, String>| vars.get("id").cloned().unwrap_or_default();
    vec![
        ResourceTemplateBuilder::new("test://template/{id}/data")
            .name("template-data")
            .mime_type("application/json")
            .handler(move |uri: String, vars: HashMap<String, String>| async move {
                let id = id(&vars);
                let text =
                    json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string();
                Ok(model(json!({"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]})))
            }),
        ResourceTemplateBuilder::new("users://{id}").name("users").mime_type("text/plain").handler(
            move |uri: String, vars: HashMap<String, String>| async move {
                let text = format!("User {}", id(&vars));
                Ok(model(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]})))
            },
        ),
    ]
}

pub(crate) fn says(messages: Value) -> GetPromptResult {
    model(json!({"messages": messages}))
}

pub(crate) fn user(content: Value) -> Value {
    match content {
        Value::String(text) => json!({"role": "user", "content": {"type": "text", "text": text}}),
        content => json!({"role": "user", "content": content}),
    }
}

fn prompts() -> Vec<Prompt> {
    let argument = |args: &HashMap<String, String>, name: &str| args.get(name).cloned().unwrap_or_default();
    vec![
        PromptBuilder::new("greet")
            .title("Greeting")
            .required_arg("tone", "In which tone")
            .handler(move |args| async move {
                Ok(says(json!([user(json!(format!("Greet me in a {} tone.", argument(&args, "tone"))))])))
            })
            .build(),
        PromptBuilder::new("test_simple_prompt")
            .description("A text")
            .handler(|_| async { Ok(says(json!([user(json!("This is a simple prompt for testing."))]))) })
            .build(),
        PromptBuilder::new("test_prompt_with_arguments")
            .description("A text with both arguments in it")
            .required_arg("arg1", "The first")
            .required_arg("arg2", "The second")
            .handler(move |args| async move {
                let (one, two) = (argument(&args, "arg1"), argument(&args, "arg2"));
                let text = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
                Ok(says(json!([user(json!(text))])))
            })
            .build(),
        PromptBuilder::new("test_prompt_with_embedded_resource")
            .description("A resource with the given URI, and a text")
            .required_arg("resourceUri", "The URI of the resource")
            .handler(move |args| async move {
                let text = "Embedded resource content for testing.";
                let uri = argument(&args, "resourceUri");
                let resource = json!({"uri": uri, "mimeType": "text/plain", "text": text});
                Ok(says(json!([
                    user(json!({"type": "resource", "resource": resource})),
                    user(json!("Please process the embedded resource above.")),
                ])))
            })
            .build(),
        PromptBuilder::new("test_prompt_with_image")
            .description("An image and a text")
            .handler(|_| async {
                Ok(says(json!([
                    user(json!({"type": "image", "data": CONTRACT["png"], "mimeType": "image/png"})),
                    user(json!("Please analyze the image above.")),
                ])))
            })
            .build(),
        ask::prompt(),
    ]
}

async fn complete(params: CompleteParams) -> tower_mcp::Result<CompleteResult> {
    let argument = params.argument.name.as_str();
    let known = match &params.reference {
        CompletionReference::Resource { uri } if uri == "users://{id}" && argument == "id" => {
            (1..=150).map(|id| id.to_string()).collect()
        }
        CompletionReference::Prompt { name, .. } => match (name.as_str(), argument) {
            ("greet", "tone") => list("tones"),
            ("test_prompt_with_arguments", "arg1") => list("firstArguments"),
            ("test_prompt_with_arguments", "arg2") => {
                let first =
                    params.context.as_ref().and_then(|context| context.arguments.as_ref()?.get("arg1"));
                first.into_iter().map(|first| format!("{first}-second")).collect()
            }
            _ => vec![],
        },
        _ => vec![],
    };
    let fits: Vec<_> = known.into_iter().filter(|one| one.starts_with(&params.argument.value)).collect();
    let (total, more) = (fits.len(), fits.len() > 100);
    let values: Vec<_> = fits.into_iter().take(100).collect();
    Ok(model(json!({"completion": {"values": values, "total": total, "hasMore": more}})))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let counts = Arc::new(Counts::default());
    let router = McpRouter::new()
        .server_info("subject-tower-mcp", "1.0.0")
        .instructions("A server to be tested. It keeps nothing.")
        .with_extension(RequestStateCodec::new(
            b"a key for tests that guards nothing",
            Duration::from_secs(300),
        )?)
        .completion_handler(complete)
        .tools(tools(&counts))
        .resources(resources(&counts))
        .prompts(prompts());
    let router = templates().into_iter().fold(router, McpRouter::resource_template);
    match std::env::args().nth(1).as_deref() {
        Some("--stdio") => BidirectionalStdioTransport::new(router).run().await?,
        Some("--http") => {
            let app = HttpTransport::new(router).with_sampling().into_router_at("/mcp");
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            eprintln!("listening on http://{}/mcp", listener.local_addr()?);
            axum::serve(listener, app).await?;
        }
        _ => return Err("expected --stdio or --http".into()),
    }
    Ok(())
}
