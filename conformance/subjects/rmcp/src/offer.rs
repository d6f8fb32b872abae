//! What is listed, read and completed, and how calls find their tool.

use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::atomic::Ordering::SeqCst;

use rmcp::handler::server::tool::ToolCallContext;

use crate::ask::Round;
use crate::{CONTRACT, Session, Subject, ask, jobs, model};

const RESOURCES: [&str; 4] =
    ["config://app", "test://static-text", "test://static-binary", "test://watched-resource"];

impl Subject {
    fn all_tools(&self) -> Vec<Tool> {
        let mut all = self.tools.list_all();
        all.extend(ask::tools());
        all.extend(jobs::tools());
        all
    }
}

impl ServerHandler for Subject {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("subject-rmcp", "1.0.0"))
            .with_instructions("A server to be tested. It keeps nothing.")
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.all_tools().into_iter().find(|tool| tool.name == name)
    }

    async fn on_initialized(&self, context: rmcp::service::NotificationContext<RoleServer>) {
        if let Ok(mut sessions) = self.shared.sessions.lock() {
            sessions.insert(self.id, Session { peer: context.peer, uris: HashSet::new() });
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.all_tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(answer) = self.ask(&request, &context).await {
            return answer;
        }
        if let Some(answer) = self.job(&request, &context).await {
            return answer;
        }
        self.tools.call(ToolCallContext::new(self, request, context)).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let text = json!({
            "uri": "test://static-text",
            "name": "static-text",
            "title": "Static text",
            "description": "A text that never changes",
            "mimeType": "text/plain",
            "size": CONTRACT["staticText"].as_str().map_or(0, str::len),
            "annotations": {"audience": ["user"], "priority": 0.5},
        });
        Ok(ListResourcesResult::with_all_items(vec![
            Resource::new("config://app", "app")
                .with_title("Configuration")
                .with_mime_type("application/json"),
            model(text),
            Resource::new("test://static-binary", "static-binary").with_mime_type("image/png"),
            Resource::new("test://watched-resource", "watched-resource").with_mime_type("text/plain"),
        ]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![
            ResourceTemplate::new("test://template/{id}/data", "template-data")
                .with_mime_type("application/json"),
            ResourceTemplate::new("users://{id}", "users").with_mime_type("text/plain"),
        ]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let (mime_type, member, value) = match uri {
            "config://app" => {
                let version = self.shared.version.load(SeqCst);
                ("application/json", "text", json!({"version": version}).to_string())
            }
            "test://static-text" => ("text/plain", "text", string(&CONTRACT["staticText"])),
            "test://static-binary" => ("image/png", "blob", string(&CONTRACT["png"])),
            "test://watched-resource" => ("text/plain", "text", "Watch me".to_owned()),
            _ if id.is_some_and(|id| !id.is_empty() && !id.contains('/')) => {
                let not_found =
                    || ErrorData::resource_not_found("Resource not found", Some(json!({"uri": uri})));
                let id = decoded(id.unwrap_or_default()).ok_or_else(not_found)?;
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                ("application/json", "text", data.to_string())
            }
            _ => match uri.strip_prefix("users://").filter(|id| !id.is_empty() && !id.contains('/')) {
                Some(id) => ("text/plain", "text", format!("User {id}")),
                None => {
                    return Err(ErrorData::resource_not_found(
                        "Resource not found",
                        Some(json!({"uri": uri})),
                    ));
                }
            },
        };
        let contents = json!({"uri": uri, "mimeType": mime_type, member: value});
        Ok(ReadResourceResult::new(vec![model(contents)]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let needs = |names: &[&str]| {
            let arguments = names.iter().map(|name| PromptArgument::new(*name).with_required(true));
            Some(arguments.collect::<Vec<_>>())
        };
        Ok(ListPromptsResult::with_all_items(vec![
            Prompt::new("greet", Some("Greets"), needs(&["tone"])).with_title("Greeting"),
            Prompt::new("test_simple_prompt", Some("A text"), None),
            Prompt::new(
                "test_prompt_with_arguments",
                Some("A text with both arguments"),
                needs(&["arg1", "arg2"]),
            ),
            Prompt::new("test_prompt_with_embedded_resource", Some("A resource"), needs(&["resourceUri"])),
            Prompt::new("test_prompt_with_image", Some("An image and a text"), None),
            Prompt::new("test_input_required_result_prompt", Some("Asks the user first"), None),
        ]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.clone().unwrap_or_default();
        let argument = |name: &str| {
            let value = arguments.get(name).and_then(Value::as_str).map(str::to_owned);
            value.ok_or_else(|| ErrorData::invalid_params(format!("expected the argument `{name}`"), None))
        };
        let user = |content: Value| json!({"role": "user", "content": content});
        let says = |text: String| user(json!({"type": "text", "text": text}));
        let messages = match request.name.as_str() {
            "greet" => json!([says(format!("Greet me in a {} tone.", argument("tone")?))]),
            "test_simple_prompt" => json!([says("This is a simple prompt for testing.".to_owned())]),
            "test_prompt_with_arguments" => {
                let (one, two) = (argument("arg1")?, argument("arg2")?);
                json!([says(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))])
            }
            "test_prompt_with_embedded_resource" => {
                let text = "Embedded resource content for testing.";
                let resource =
                    json!({"uri": argument("resourceUri")?, "mimeType": "text/plain", "text": text});
                json!([
                    user(json!({"type": "resource", "resource": resource})),
                    says("Please process the embedded resource above.".to_owned()),
                ])
            }
            "test_prompt_with_image" => json!([
                user(json!({"type": "image", "data": CONTRACT["png"], "mimeType": "image/png"})),
                says("Please analyze the image above.".to_owned()),
            ]),
            "test_input_required_result_prompt" => {
                let question =
                    ask::form("What context should the prompt use?", json!({"context": {"type": "string"}}));
                let given = (request.input_responses.as_ref(), request.request_state.as_deref());
                match self.rounds(given, &context, &[vec![("user_context", question)]]).await? {
                    Round::More(more) => return Ok(more.into()),
                    Round::Done(answers) if answers["user_context"]["action"] == "accept" => {
                        let said = string(&answers["user_context"]["content"]["context"]);
                        json!([says(format!("Use this context: {said}"))])
                    }
                    _ => return Err(ErrorData::invalid_params("the user said nothing", None)),
                }
            }
            other => return Err(ErrorData::invalid_params(format!("no prompt {other}"), None)),
        };
        Ok(GetPromptResult::new(model(messages)).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let list = |name: &str| -> Vec<String> { model(CONTRACT[name].clone()) };
        let argument = request.argument.name.as_str();
        let known = match &request.r#ref {
            Reference::Resource(template) if template.uri == "users://{id}" && argument == "id" => {
                (1..=150).map(|id| id.to_string()).collect()
            }
            Reference::Prompt(prompt) => match (prompt.name.as_str(), argument) {
                ("greet", "tone") => list("tones"),
                ("test_prompt_with_arguments", "arg1") => list("firstArguments"),
                ("test_prompt_with_arguments", "arg2") => {
                    let context = request.context.as_ref().and_then(|context| context.get_argument("arg1"));
                    context.into_iter().map(|first| format!("{first}-second")).collect()
                }
                (
                    "test_simple_prompt" | "test_prompt_with_image" | "test_prompt_with_embedded_resource",
                    _,
                ) => vec![],
                (name, _) => return Err(ErrorData::invalid_params(format!("no prompt {name}"), None)),
            },
            Reference::Resource(template) if template.uri == "test://template/{id}/data" => vec![],
            _ => return Err(ErrorData::invalid_params("an unknown reference", None)),
        };
        let fits: Vec<_> = known.into_iter().filter(|one| one.starts_with(&request.argument.value)).collect();
        let total = u32::try_from(fits.len()).unwrap_or(u32::MAX);
        let values: Vec<_> = fits.into_iter().take(100).collect();
        let more = total > 100;
        let completion = CompletionInfo::with_pagination(values, Some(total), more)
            .map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(completion))
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.shared.next.fetch_add(1, SeqCst);
        if let Ok(mut sinks) = self.shared.sinks.lock() {
            sinks.insert(key, (context.accepted().clone(), context.sink().clone()));
        }
        context.cancelled().await;
        if let Ok(mut sinks) = self.shared.sinks.lock() {
            sinks.remove(&key);
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !RESOURCES.contains(&&*request.uri) {
            return Err(ErrorData::resource_not_found(
                "Resource not found",
                Some(json!({"uri": request.uri})),
            ));
        }
        if let Ok(mut sessions) = self.shared.sessions.lock() {
            sessions.entry(self.id).and_modify(|session| drop(session.uris.insert(request.uri)));
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let Ok(mut sessions) = self.shared.sessions.lock() {
            sessions.entry(self.id).and_modify(|session| drop(session.uris.remove(&request.uri)));
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

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The text without the escapes of a URI.
fn decoded(id: &str) -> Option<String> {
    let mut parts = id.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(part[2..].as_bytes());
    }
    String::from_utf8(bytes).ok()
}
