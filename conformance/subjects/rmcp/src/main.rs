//! rmcp in both eras: `subject-rmcp --stdio` or `subject-rmcp --http`.
//!
//! Tools with arguments are routes with typed parameters, so that the SDK checks what they are called with.
#![allow(deprecated, reason = "subscribing and logging in the legacy era are marked so")]

mod ask;
mod jobs;
mod offer;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use rmcp::handler::server::router::tool::{ToolRoute, ToolRouter};
use rmcp::handler::server::tool::{ToolCallContext, schema_for_type};
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::*;
use rmcp::service::{Peer, RequestContext, SubscriptionSink};
use rmcp::task_manager::TaskManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServiceExt};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the exchanges ask of a server, whatever its SDK.
static CONTRACT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../contract.json")).expect("the contract is JSON")
});

/// What all connections share.
struct Shared {
    ran: AtomicU64,
    stopped: AtomicU64,
    version: AtomicU64,
    next: AtomicU64,
    /// The streams of modern subscriptions.
    sinks: Mutex<HashMap<u64, (SubscriptionFilter, SubscriptionSink)>>,
    /// Legacy sessions, with what they subscribed to.
    sessions: Mutex<HashMap<u64, Session>>,
    states: RequestStateCodec,
    tasks: TaskManager,
}

#[derive(Clone)]
struct Session {
    peer: Peer<RoleServer>,
    uris: HashSet<String>,
}

/// One of these serves one legacy session; in the modern era it has nothing of its own.
#[derive(Clone)]
struct Subject {
    shared: Arc<Shared>,
    id: u64,
    tools: Arc<ToolRouter<Subject>>,
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
struct Counts {
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

type Outcome<T = CallToolResult> = Result<T, ErrorData>;

/// A change of which subscribers hear.
#[derive(Clone, Copy)]
enum Change {
    Tools,
    Prompts,
    Resources,
    Config,
}

impl Subject {
    fn new(shared: Arc<Shared>) -> Self {
        let id = shared.next.fetch_add(1, SeqCst);
        Self { shared, id, tools: Arc::new(routes()) }
    }

    async fn slow(&self, ms: u64, context: &RequestContext<RoleServer>) -> CallToolResult {
        self.shared.ran.fetch_add(1, SeqCst);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(ms)) => text(format!("Waited {ms} ms")),
            () = context.ct.cancelled() => {
                self.shared.stopped.fetch_add(1, SeqCst);
                failure("stopped")
            }
        }
    }

    async fn flood(&self, n: u64, context: &RequestContext<RoleServer>) -> CallToolResult {
        for at in (1..=n).take_while(|_| !context.ct.is_cancelled()) {
            if context.meta.get_progress_token().is_some() {
                progress(context, at as f64, n as f64).await;
            } else {
                log(context, "info", Some("flood"), json!(at)).await;
            }
        }
        text(format!("Sent {n}"))
    }

    async fn tell(&self, change: Change) {
        let sinks: Vec<_> =
            self.shared.sinks.lock().map(|sinks| sinks.values().cloned().collect()).unwrap_or_default();
        for (filter, sink) in sinks {
            let _ = match change {
                Change::Tools if filter.tools_list_changed == Some(true) => {
                    sink.notify_tool_list_changed().await
                }
                Change::Prompts if filter.prompts_list_changed == Some(true) => {
                    sink.notify_prompt_list_changed().await
                }
                Change::Resources if filter.resources_list_changed == Some(true) => {
                    sink.notify_resource_list_changed().await
                }
                Change::Config
                    if filter.resource_subscriptions.iter().flatten().any(|uri| uri == "config://app") =>
                {
                    sink.notify_resource_updated("config://app").await
                }
                _ => Ok(()),
            };
        }
        let sessions: Vec<Session> =
            self.shared.sessions.lock().map(|all| all.values().cloned().collect()).unwrap_or_default();
        for session in sessions {
            let _ = match change {
                Change::Tools => session.peer.notify_tool_list_changed().await,
                Change::Prompts => session.peer.notify_prompt_list_changed().await,
                Change::Resources => session.peer.notify_resource_list_changed().await,
                Change::Config if session.uris.contains("config://app") => {
                    let changed = ResourceUpdatedNotificationParam::new("config://app");
                    session.peer.notify_resource_updated(changed).await
                }
                Change::Config => Ok(()),
            };
        }
    }
}

async fn progress(context: &RequestContext<RoleServer>, at: f64, total: f64) {
    if let Some(token) = context.meta.get_progress_token() {
        let progress = ProgressNotificationParam::new(token, at).with_total(total);
        let _ = context.peer.notify_progress(progress).await;
    }
}

async fn log(context: &RequestContext<RoleServer>, level: &str, logger: Option<&str>, data: Value) {
    // In the modern era each request says which messages it wants.
    let weight =
        |level: &Value| CONTRACT["levels"].as_array().and_then(|all| all.iter().position(|one| one == level));
    let wanted = context.meta.log_level().map(|wanted| json!(wanted));
    if ask::modern(context) && wanted.is_none_or(|wanted| weight(&json!(level)) < weight(&wanted)) {
        return;
    }
    let mut message = json!({"level": level, "data": data});
    if let Some(logger) = logger {
        message["logger"] = json!(logger);
    }
    let _ = context.peer.notify_logging_message(model(message)).await;
}

fn routes() -> ToolRouter<Subject> {
    let mut all = ToolRouter::new();
    all.add_route(ToolRoute::new(
        typed::<Echo>("echo", "Gives the text back"),
        |Parameters(p): Parameters<Echo>| async move { text(p.text) },
    ));
    all.add_route(ToolRoute::new(
        typed::<Add>("add", "Adds two numbers")
            .with_title("Addition")
            .with_annotations(model(json!({"readOnlyHint": true, "idempotentHint": true})))
            .with_output_schema::<Sum>(),
        |Parameters(p): Parameters<Add>| async move { Json(Sum { sum: p.a + p.b }) },
    ));
    all.add_route(ToolRoute::new_dyn(typed::<Slow>("slow", "Waits; stops when cancelled"), |mut call| {
        Box::pin(async move {
            let p: Slow = parameters(&mut call)?;
            Ok(call.service.slow(p.ms, &call.request_context).await.into())
        })
    }));
    all.add_route(ToolRoute::new_dyn(typed::<Flood>("flood", "Sends so many notifications"), |mut call| {
        Box::pin(async move {
            let p: Flood = parameters(&mut call)?;
            Ok(call.service.flood(p.n, &call.request_context).await.into())
        })
    }));
    all.add_route(ToolRoute::new_dyn(
        bare("counter", "How many calls of slow began, and how many were stopped")
            .with_output_schema::<Counts>(),
        |call: ToolCallContext<'_, Subject>| {
            Box::pin(async move {
                let shared = &call.service.shared;
                let counts = Counts { ran: shared.ran.load(SeqCst), stopped: shared.stopped.load(SeqCst) };
                Ok(CallToolResult::structured(json!(counts)).into())
            })
        },
    ));
    all.add_route(ToolRoute::new(
        typed::<Greet>("greet", "Greets at once, never as a task"),
        |Parameters(p): Parameters<Greet>| async move { text(format!("Hello, {}!", p.name)) },
    ));
    all.add_route(ToolRoute::new_dyn(
        bare("touch", "Changes config://app"),
        |call: ToolCallContext<'_, Subject>| {
            Box::pin(async move {
                let version = call.service.shared.version.fetch_add(1, SeqCst) + 1;
                call.service.tell(Change::Config).await;
                Ok(text(format!("config://app has version {version}")).into())
            })
        },
    ));
    for (name, kind, change) in [
        ("test_trigger_tool_change", "tools", Change::Tools),
        ("test_trigger_prompt_change", "prompts", Change::Prompts),
        ("test_trigger_resource_change", "resources", Change::Resources),
    ] {
        all.add_route(ToolRoute::new_dyn(
            bare(name, format!("Says that the list of {kind} changed")),
            move |call: ToolCallContext<'_, Subject>| {
                Box::pin(async move {
                    call.service.tell(change).await;
                    Ok(text(format!("Said that the list of {kind} changed")).into())
                })
            },
        ));
    }
    for (name, fixed) in CONTRACT["tools"].as_object().into_iter().flatten() {
        let mut result = fixed["result"].clone();
        // As the SDK's own constructors have it.
        result["resultType"] = json!("complete");
        let result: CallToolResult = model(result);
        all.add_route(ToolRoute::new_dyn(
            bare(name.clone(), fixed["description"].as_str().unwrap_or_default().to_owned()),
            move |_| {
                let result = result.clone();
                Box::pin(async move { Ok(result.into()) })
            },
        ));
    }
    let mut annotated = CONTRACT["annotatedTool"].clone();
    annotated["name"] = json!("test_annotated_tool");
    annotated["inputSchema"] = json!({"type": "object"});
    all.add_route(ToolRoute::new_dyn(model::<Tool>(annotated), |_| {
        Box::pin(async { Ok(text("annotated").into()) })
    }));
    all.add_route(ToolRoute::new_dyn(
        bare("test_tool_with_progress", "Reports progress: 0, 50 and 100 of 100"),
        |call: ToolCallContext<'_, Subject>| {
            Box::pin(async move {
                for at in [0.0, 50.0, 100.0] {
                    progress(&call.request_context, at, 100.0).await;
                }
                Ok(text("Tool with progress completed").into())
            })
        },
    ));
    all.add_route(ToolRoute::new_dyn(
        bare("test_tool_with_logging", "Logs three messages of level info"),
        |call: ToolCallContext<'_, Subject>| {
            Box::pin(async move {
                for message in ["Tool execution started", "Tool processing data", "Tool execution completed"]
                {
                    log(&call.request_context, "info", None, json!(message)).await;
                }
                Ok(text("Tool with logging completed").into())
            })
        },
    ));
    all.add_route(ToolRoute::new_dyn(
        bare("test_logging_tool", "Logs a message of each level"),
        |call: ToolCallContext<'_, Subject>| {
            Box::pin(async move {
                for level in CONTRACT["levels"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    log(&call.request_context, level, Some("test_logging_tool"), json!(level)).await;
                }
                Ok(text("Logged").into())
            })
        },
    ));
    all.add_route(ToolRoute::new_dyn(
        bare("test_request_meta", "Gives com.example/note of the request's _meta back"),
        |call: ToolCallContext<'_, Subject>| {
            Box::pin(async move {
                let meta = serde_json::to_value(&call.request_context.meta).unwrap_or_default();
                Ok(text(meta["com.example/note"].to_string()).into())
            })
        },
    ));
    for (name, schema) in [("json_schema_2020_12_tool", "everyKeyword"), ("mirror", "mirror")] {
        all.add_route(ToolRoute::new_dyn(
            Tool::new(name, "Gives its arguments back", object(CONTRACT["schemas"][schema].clone())),
            |call: ToolCallContext<'_, Subject>| {
                Box::pin(async move {
                    Ok(text(json!(call.arguments.clone().unwrap_or_default()).to_string()).into())
                })
            },
        ));
    }
    all.add_route(ToolRoute::new_dyn(
        Tool::new(
            "test_x_mcp_header",
            "Has an argument that HTTP clients repeat in a header",
            object(CONTRACT["schemas"]["mirrored"].clone()),
        ),
        |call: ToolCallContext<'_, Subject>| {
            Box::pin(async move {
                let region =
                    call.arguments.as_ref().and_then(|all| all.get("region")).and_then(Value::as_str);
                Ok(text(format!("region: {}", region.unwrap_or("none"))).into())
            })
        },
    ));
    all
}

/// What `Parameters` does for a closure that needs the whole call.
fn parameters<T: DeserializeOwned>(call: &mut ToolCallContext<'_, Subject>) -> Outcome<T> {
    use rmcp::handler::server::common::FromContextPart as _;
    Ok(Parameters::<T>::from_context_part(call)?.0)
}

fn bare(
    name: impl Into<std::borrow::Cow<'static, str>>,
    about: impl Into<std::borrow::Cow<'static, str>>,
) -> Tool {
    Tool::new(name, about, object(json!({"type": "object"})))
}

fn typed<T: JsonSchema + std::any::Any>(name: &'static str, about: &'static str) -> Tool {
    Tool::new(name, about, schema_for_type::<T>())
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

/// What the SDK has a type for, from how it is on the wire.
fn model<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what the contract says has the SDK's type")
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text.into())])
}

fn failure(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text.into())])
}

async fn http(shared: Arc<Shared>) -> Result<(), Box<dyn std::error::Error>> {
    let service: StreamableHttpService<Subject, LocalSessionManager> = StreamableHttpService::new(
        move || Ok(Subject::new(Arc::clone(&shared))),
        Arc::default(),
        StreamableHttpServerConfig::default()
            .with_allowed_origins(["http://127.0.0.1:*", "http://localhost:*"]),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shared = Arc::new(Shared {
        ran: AtomicU64::new(0),
        stopped: AtomicU64::new(0),
        version: AtomicU64::new(1),
        next: AtomicU64::new(1),
        sinks: Mutex::default(),
        sessions: Mutex::default(),
        states: RequestStateCodec::new(*b"a key for tests that guards nothing"),
        tasks: TaskManager::new(),
    });
    match std::env::args().nth(1).as_deref() {
        Some("--stdio") => {
            let running = Subject::new(shared).serve(rmcp::transport::stdio()).await?;
            running.waiting().await?;
        }
        Some("--http") => http(shared).await?,
        _ => return Err("expected --stdio or --http".into()),
    }
    Ok(())
}
