//! A small server on rmcp, in both eras: `rmcp-small --stdio` or `rmcp-small --http`.
//!
//! The handler is written out, without macros: what it offers is in one place, and its lists come in pages.
#![allow(deprecated, reason = "subscribing in the legacy era is marked so")]

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::broadcast;

const TONES: [&str; 3] = ["formal", "friendly", "frank"];
const USERS: [&str; 3] = ["ada", "alan", "grace"];
const PAGE: usize = 4;

/// What all connections share.
struct Shared {
    ran: AtomicU64,
    stopped: AtomicU64,
    touched: AtomicU64,
    changed: broadcast::Sender<&'static str>,
    /// Opened before a subscription is acknowledged, which comes before `listen`: a change in between is heard, too.
    opened: Mutex<Vec<broadcast::Receiver<&'static str>>>,
    states: RequestStateCodec,
    tasks: TaskManager,
}

/// One of these serves one legacy session; in the modern era it has nothing of its own.
#[derive(Clone)]
struct Small {
    shared: Arc<Shared>,
    subscribed: Arc<Mutex<HashSet<String>>>,
}

impl Small {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, subscribed: Arc::default() }
    }

    async fn slow(&self, ms: u64, context: &RequestContext<RoleServer>) -> CallToolResult {
        self.shared.ran.fetch_add(1, SeqCst);
        let token = context.meta.get_progress_token();
        for step in 0..=4_u32 {
            if let Some(token) = &token {
                let progress = ProgressNotificationParam::new(token.clone(), f64::from(step)).with_total(4.0);
                let _ = context.peer.notify_progress(progress).await;
            }
            if step == 4 {
                break;
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(ms / 4)) => {}
                () = context.ct.cancelled() => {
                    self.shared.stopped.fetch_add(1, SeqCst);
                    return CallToolResult::error(vec![ContentBlock::text("stopped")]);
                }
            }
        }
        text(format!("waited {ms} ms"))
    }

    /// In the legacy era each question is a request to the client, in the modern one a round of its own.
    async fn deploy(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let env = argument(request, "env").as_str().unwrap_or_default().to_owned();
        let modern =
            context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let mut answers: JsonObject = match &request.request_state {
            Some(state) => self
                .shared
                .states
                .open_json(state)
                .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?,
            None => JsonObject::new(),
        };
        for (key, kind) in [("confirm", "boolean"), ("region", "string")] {
            if answers.contains_key(key) {
                continue;
            }
            let given = if modern {
                request.input_responses.as_ref().and_then(|responses| responses.get(key)).cloned()
            } else {
                let asked = context
                    .peer
                    .create_elicitation(question(&env, key, kind))
                    .await
                    .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                Some(json!({"action": asked.action, "content": asked.content}))
            };
            let Some(given) = given else {
                let asked = ElicitRequest::new(question(&env, key, kind));
                let requests = [(key.to_owned(), InputRequest::Elicitation(asked))];
                let state = self
                    .shared
                    .states
                    .seal_json(&answers)
                    .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                let round = InputRequiredResult::new(Some(requests.into_iter().collect()), Some(state));
                return Ok(round.into());
            };
            if given["action"] != "accept" {
                let refusal = ContentBlock::text(format!("{key}: {}", given["action"]));
                return Ok(CallToolResult::error(vec![refusal]).into());
            }
            answers.insert(key.to_owned(), given["content"][key].clone());
        }
        let region = answers["region"].as_str().unwrap_or_default();
        let confirm = &answers["confirm"];
        Ok(text(format!("Deploy to {env}: confirm={confirm}, region={region}")).into())
    }

    /// The same question once more, in a task of the extension.
    fn research(&self, topic: String) -> CallToolResponse {
        let options = TaskOptions::new().with_poll_interval_ms(50).with_ttl_ms(60_000);
        let task = self.shared.tasks.spawn(options, move |context| {
            Box::pin(async move {
                context.set_status_message("looking");
                tokio::time::sleep(Duration::from_millis(100)).await;
                let asked = ElicitRequest::new(question(&topic, "region", "string"));
                let given = context.request_input("region", InputRequest::Elicitation(asked)).await?;
                let region = given["content"]["region"].as_str().ok_or(TaskExit::Cancelled)?;
                Ok(text(format!("{topic} in {region}")))
            })
        });
        CallToolResponse::Task(CreateTaskResult::new(task))
    }
}

impl ServerHandler for Small {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("rmcp-small", "1.0.0"))
            .with_instructions("A server to try clients with.")
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let from: usize = match request.and_then(|params| params.cursor) {
            Some(cursor) => {
                cursor.parse().map_err(|_| ErrorData::invalid_params("not a cursor of ours", None))?
            }
            None => 0,
        };
        let all = tools();
        let mut page = ListToolsResult::with_all_items(all.iter().skip(from).take(PAGE).cloned().collect());
        page.next_cursor = (from + PAGE < all.len()).then(|| (from + PAGE).to_string());
        Ok(page)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let shared = &self.shared;
        let result = match request.name.as_ref() {
            "echo" => text(argument(&request, "text").as_str().unwrap_or_default().to_owned()),
            "add" => {
                let sum = ["a", "b"].map(|key| argument(&request, key).as_i64().unwrap_or(0));
                CallToolResult::structured(json!({"sum": sum[0] + sum[1]}))
            }
            "counter" => CallToolResult::structured(json!({
                "ran": shared.ran.load(SeqCst),
                "stopped": shared.stopped.load(SeqCst),
            })),
            "slow" => self.slow(argument(&request, "ms").as_u64().unwrap_or(0), &context).await,
            "touch" => {
                let times = shared.touched.fetch_add(1, SeqCst) + 1;
                let _ = shared.changed.send("config://app");
                let here = self.subscribed.lock().is_ok_and(|uris| uris.contains("config://app"));
                if here {
                    let changed = ResourceUpdatedNotificationParam::new("config://app");
                    let _ = context.peer.notify_resource_updated(changed).await;
                }
                text(format!("touched {times} times"))
            }
            "deploy" => return self.deploy(&request, &context).await,
            "research" => {
                return Ok(self.research(argument(&request, "topic").as_str().unwrap_or_default().to_owned()));
            }
            other => {
                return Err(ErrorData::invalid_params(format!("no tool {other}"), None));
            }
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let config = Resource::new("config://app", "config").with_mime_type("application/json");
        Ok(ListResourcesResult::with_all_items(vec![config]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let user = ResourceTemplate::new("users://{id}", "user").with_mime_type("text/plain");
        Ok(ListResourceTemplatesResult::with_all_items(vec![user]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = if request.uri == "config://app" {
            let state = json!({"touched": self.shared.touched.load(SeqCst)}).to_string();
            ResourceContents::text(state, &request.uri).with_mime_type("application/json")
        } else if let Some(id) = request.uri.strip_prefix("users://") {
            ResourceContents::text(format!("user {id}"), &request.uri).with_mime_type("text/plain")
        } else {
            return Err(ErrorData::resource_not_found("no such resource", Some(json!({"uri": request.uri}))));
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let tone = PromptArgument::new("tone").with_required(true);
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("greet", Some("Greets"), Some(vec![tone]))]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != "greet" {
            return Err(ErrorData::invalid_params("no such prompt", None));
        }
        let arguments = request.arguments.unwrap_or_default();
        let tone = arguments.get("tone").and_then(Value::as_str).unwrap_or("");
        let message = PromptMessage::new_text(Role::User, format!("Greet me in a {tone} tone."));
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let known = match &request.r#ref {
            Reference::Prompt(prompt) if prompt.name == "greet" => TONES.as_slice(),
            Reference::Resource(template) if template.uri == "users://{id}" => USERS.as_slice(),
            _ => &[],
        };
        let values = known
            .iter()
            .filter(|value| value.starts_with(&request.argument.value))
            .map(ToString::to_string)
            .collect();
        let completion = CompletionInfo::with_all_values(values)
            .map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(completion))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.shared.opened.lock().ok()?.push(self.shared.changed.subscribe());
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let opened = self.shared.opened.lock().ok().and_then(|mut opened| opened.pop());
        let mut changes = opened.unwrap_or_else(|| self.shared.changed.subscribe());
        let wanted = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => match change {
                    Ok(uri) if wanted.iter().any(|wanted| wanted == uri) => {
                        let _ = context.sink().notify_resource_updated(uri).await;
                    }
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return Ok(()),
                },
            }
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let Ok(mut uris) = self.subscribed.lock() {
            uris.insert(request.uri);
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let Ok(mut uris) = self.subscribed.lock() {
            uris.remove(&request.uri);
        }
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.shared.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.cancel_task(&request.task_id)
    }
}

fn tools() -> Vec<Tool> {
    let tool = |name: &'static str, about: &'static str, properties: Value| {
        let required: Vec<_> =
            properties.as_object().into_iter().flat_map(|all| all.keys().cloned()).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Tool::new(name, about, object(schema))
    };
    let result = |properties: Value| Arc::new(object(json!({"type": "object", "properties": properties})));
    vec![
        tool("echo", "Says it again", json!({"text": {"type": "string"}})),
        tool("add", "Adds", json!({"a": {"type": "integer"}, "b": {"type": "integer"}}))
            .with_raw_output_schema(result(json!({"sum": {"type": "integer"}}))),
        tool("counter", "How many calls of slow ran and were stopped", json!({})),
        tool("slow", "Waits, with progress", json!({"ms": {"type": "integer", "x-mcp-header": "Ms"}})),
        tool("touch", "Changes config://app", json!({})),
        tool("deploy", "Asks twice", json!({"env": {"type": "string", "x-mcp-header": "Env"}})),
        tool("research", "Runs as a task and asks once", json!({"topic": {"type": "string"}})),
    ]
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

fn argument(request: &CallToolRequestParams, key: &str) -> Value {
    request.arguments.as_ref().and_then(|arguments| arguments.get(key)).cloned().unwrap_or_default()
}

fn text(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn question(about: &str, key: &str, kind: &str) -> ElicitRequestParams {
    let schema = json!({"type": "object", "properties": {key: {"type": kind}}, "required": [key]});
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("{about}: {key}?"),
        requested_schema: serde_json::from_value(schema).expect("a form of one field"),
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn http(shared: Arc<Shared>) -> Outcome {
    let service: StreamableHttpService<Small, LocalSessionManager> = StreamableHttpService::new(
        move || Ok(Small::new(Arc::clone(&shared))),
        Arc::default(),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let shared = Arc::new(Shared {
        ran: AtomicU64::new(0),
        stopped: AtomicU64::new(0),
        touched: AtomicU64::new(0),
        changed: broadcast::channel(16).0,
        opened: Mutex::default(),
        states: RequestStateCodec::new(*b"a key for tests that guards nothing"),
        tasks: TaskManager::new(),
    });
    match std::env::args().nth(1).as_deref() {
        Some("--stdio") => {
            let running = Small::new(shared).serve(rmcp::transport::stdio()).await?;
            running.waiting().await?;
        }
        Some("--http") => http(shared).await?,
        _ => return Err("expected --stdio or --http".into()),
    }
    Ok(())
}
