//! Tools that ask: in the legacy era each question is a request to the client, in the modern one a part of a round.

use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::{CONTRACT, Subject, bare, failure, model, object, text};

pub(crate) enum Question {
    Form { message: String, fields: Value, required: Vec<String> },
    Url { id: String },
    Model(Value),
    Roots,
}

pub(crate) fn form(message: impl Into<String>, fields: Value) -> Question {
    let required = fields.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    Question::Form { message: message.into(), fields, required }
}

fn optional(message: &str, fields: Value, required: &[&str]) -> Question {
    let required = required.iter().map(ToString::to_string).collect();
    Question::Form { message: message.to_owned(), fields, required }
}

fn sample(prompt: &str, more: Value) -> Question {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let mut params = json!({"messages": [message], "maxTokens": 100});
    for (name, value) in object(more) {
        params[name] = value;
    }
    Question::Model(params)
}

impl Question {
    pub(crate) fn elicitation(&self) -> ElicitRequestParams {
        match self {
            Self::Form { message, fields, required } => ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: message.clone(),
                requested_schema: model(
                    json!({"type": "object", "properties": fields, "required": required}),
                ),
            },
            Self::Url { id } => ElicitRequestParams::UrlElicitationParams {
                meta: None,
                message: "Please sign in".to_owned(),
                url: "https://example.com/sign-in".to_owned(),
                elicitation_id: id.clone(),
            },
            Self::Model(_) | Self::Roots => unreachable!("not for the user"),
        }
    }

    fn request(&self) -> InputRequest {
        match self {
            Self::Form { .. } | Self::Url { .. } => {
                InputRequest::Elicitation(ElicitRequest::new(self.elicitation()))
            }
            Self::Model(params) => {
                InputRequest::CreateMessage(CreateMessageRequest::new(model(params.clone())))
            }
            Self::Roots => model(json!({"method": "roots/list"})),
        }
    }

    /// The capability of the client without which it cannot be asked.
    fn lacks(&self, context: &RequestContext<RoleServer>) -> Option<Value> {
        let can = context.client_capabilities().map(|can| json!(can)).unwrap_or_default();
        let elicitation = &can["elicitation"];
        let (has, needed) = match self {
            Self::Form { .. } => {
                let only_urls = elicitation["form"].is_null() && !elicitation["url"].is_null();
                (!elicitation.is_null() && !only_urls, json!({"elicitation": {"form": {}}}))
            }
            Self::Url { .. } => (!elicitation["url"].is_null(), json!({"elicitation": {"url": {}}})),
            Self::Model(params) if params.get("tools").is_some() => {
                (!can["sampling"]["tools"].is_null(), json!({"sampling": {"tools": {}}}))
            }
            Self::Model(_) => (!can["sampling"].is_null(), json!({"sampling": {}})),
            Self::Roots => (!can["roots"].is_null(), json!({"roots": {}})),
        };
        (!has).then_some(needed)
    }

    async fn ask(&self, context: &RequestContext<RoleServer>) -> Result<Value, String> {
        let said = |value: Result<Value, serde_json::Error>| value.map_err(|error| error.to_string());
        match self {
            Self::Form { .. } | Self::Url { .. } => {
                let answer = context.peer.create_elicitation(self.elicitation()).await;
                said(serde_json::to_value(answer.map_err(|error| error.to_string())?))
            }
            Self::Model(params) => {
                let answer = context.peer.create_message(model(params.clone())).await;
                said(serde_json::to_value(answer.map_err(|error| error.to_string())?))
            }
            Self::Roots => {
                let answer = context.peer.list_roots().await;
                said(serde_json::to_value(answer.map_err(|error| error.to_string())?))
            }
        }
    }

    /// Whether it is an answer to this question.
    fn fits(&self, answer: &Value) -> bool {
        match self {
            Self::Url { .. } => answer["action"].is_string(),
            Self::Model(_) => answer["content"].is_object() || answer["content"].is_array(),
            Self::Roots => answer["roots"].is_array(),
            Self::Form { .. } if answer["action"] != "accept" => answer["action"].is_string(),
            Self::Form { fields, required, .. } => {
                let content = &answer["content"];
                content.is_object()
                    && fields.as_object().into_iter().flatten().all(|(name, field)| match content.get(name) {
                        None => !required.contains(name),
                        Some(value) => match field["type"].as_str() {
                            Some("string") => value.is_string(),
                            Some("boolean") => value.is_boolean(),
                            Some("integer") => value.is_i64(),
                            Some("number") => value.is_number(),
                            _ => value.is_array(),
                        },
                    })
            }
        }
    }
}

/// The answers by their keys, or what has to be asked first.
pub(crate) enum Round {
    Done(JsonObject),
    More(InputRequiredResult),
    Failed(String),
}

pub(crate) fn modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

impl Subject {
    pub(crate) async fn rounds(
        &self,
        given: (Option<&InputResponses>, Option<&str>),
        context: &RequestContext<RoleServer>,
        groups: &[Vec<(&str, Question)>],
    ) -> Result<Round, ErrorData> {
        let (responses, state) = given;
        let mut answers: JsonObject = match state {
            Some(state) => self
                .shared
                .states
                .open_json(state)
                .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?,
            None => JsonObject::new(),
        };
        for group in groups {
            let mut missing = InputRequests::new();
            for (key, question) in group {
                if answers.contains_key(*key) {
                    continue;
                }
                if let Some(needed) = question.lacks(context) {
                    if modern(context) {
                        return Err(ErrorData::missing_required_client_capability(model(needed)));
                    }
                    return Ok(Round::Failed(format!("the client cannot be asked for {key}")));
                }
                if !modern(context) {
                    match question.ask(context).await {
                        Ok(answer) if question.fits(&answer) => {
                            drop(answers.insert((*key).to_owned(), answer))
                        }
                        Ok(_) => return Ok(Round::Failed(format!("{key}: not an answer to the question"))),
                        Err(error) => return Ok(Round::Failed(format!("{key}: {error}"))),
                    }
                    continue;
                }
                match responses.and_then(|all| all.get(*key)).map(|answer| json!(answer)) {
                    Some(answer) if question.fits(&answer) => drop(answers.insert((*key).to_owned(), answer)),
                    _ => drop(missing.insert((*key).to_owned(), question.request())),
                }
            }
            if !missing.is_empty() {
                let state = self.shared.states.seal_json(&answers);
                let state = state.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                return Ok(Round::More(InputRequiredResult::new(Some(missing), Some(state))));
            }
        }
        Ok(Round::Done(answers))
    }

    /// `None` if it is not one of the tools that ask.
    pub(crate) async fn ask(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        let argument = |name: &str| {
            let value = request.arguments.as_ref()?.get(name)?.as_str()?;
            Some(value.to_owned())
        };
        let forms = |name: &str| CONTRACT["forms"][name].clone();
        let capital = || sample("What is the capital of France?", json!({}));
        let name = || form("What is your name?", forms("name"));
        let groups: Vec<Vec<(&str, Question)>> = match &*request.name {
            "deploy" | "test_sampling" | "test_elicitation" => {
                let wanted = match &*request.name {
                    "deploy" => "env",
                    "test_sampling" => "prompt",
                    _ => "message",
                };
                let Some(said) = argument(wanted) else {
                    return Some(Err(ErrorData::invalid_params(
                        format!("expected `{wanted}`, a string"),
                        None,
                    )));
                };
                match wanted {
                    "env" => vec![
                        vec![(
                            "confirm",
                            form(format!("Deploy to {said}?"), json!({"confirm": {"type": "boolean"}})),
                        )],
                        vec![("region", form("To which region?", json!({"region": {"type": "string"}})))],
                    ],
                    "prompt" => vec![vec![("model", sample(&said, json!({})))]],
                    _ => vec![vec![("user", form(said, forms("person")))]],
                }
            }
            "test_elicitation_sep1034_defaults" => {
                vec![vec![("form", optional("Please fill in", forms("defaults"), &[]))]]
            }
            "test_elicitation_sep1330_enums" => {
                vec![vec![("form", optional("Please choose", forms("choices"), &[]))]]
            }
            "test_elicitation_constraints" => {
                vec![vec![("form", optional("Please fill in", forms("bounds"), &["code", "count"]))]]
            }
            "test_elicitation_url" => {
                let at = self.shared.next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                // Modern elicitations have no id, and the SDK leaves out an empty one.
                let id = if modern(context) { String::new() } else { format!("sign-in-{at}") };
                vec![vec![("sign_in", Question::Url { id })]]
            }
            "test_sampling_tools" => {
                vec![vec![("model", sample("What is the weather?", CONTRACT["weather"].clone()))]]
            }
            "test_missing_capability" => vec![vec![("model", capital())]],
            "test_input_required_result_sampling" => vec![vec![("capital_question", capital())]],
            "test_streaming_elicitation" => vec![vec![("confirm", form("Go on?", forms("ok")))]],
            "test_input_required_result_elicitation" => vec![vec![("user_name", name())]],
            "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
                vec![vec![("confirm", form("Please confirm", forms("ok")))]]
            }
            "test_input_required_result_list_roots" => vec![vec![("client_roots", Question::Roots)]],
            "test_input_required_result_multiple_inputs" => vec![vec![
                ("user_name", name()),
                ("greeting", sample("Write a short greeting", json!({}))),
                ("client_roots", Question::Roots),
            ]],
            "test_input_required_result_multi_round" => vec![
                vec![("step1", form("Step 1: What is your name?", forms("name")))],
                vec![(
                    "step2",
                    form("Step 2: What is your favorite color?", json!({"color": {"type": "string"}})),
                )],
            ],
            "test_input_required_result_capabilities" => {
                let can = context.client_capabilities().map(|can| json!(can)).unwrap_or_default();
                let mut group = Vec::new();
                if !can["elicitation"].is_null() {
                    group.push(("user_name", name()));
                }
                if !can["sampling"].is_null() {
                    group.push(("greeting", sample("Write a short greeting", json!({}))));
                }
                vec![group]
            }
            _ => return None,
        };
        let given = (request.input_responses.as_ref(), request.request_state.as_deref());
        let answers = match self.rounds(given, context, &groups).await {
            Ok(Round::Done(answers)) => answers,
            Ok(Round::More(more)) => return Some(Ok(more.into())),
            Ok(Round::Failed(why)) => return Some(Ok(failure(why).into())),
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(done(&request.name, argument("env"), &answers).into()))
    }
}

/// The texts of what a model said.
fn said(answer: &Value) -> String {
    let blocks = match &answer["content"] {
        Value::Array(blocks) => blocks.clone(),
        block => vec![block.clone()],
    };
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// What a user did with a form, and entered.
fn did(answer: &Value) -> String {
    let content =
        answer.get("content").filter(|content| !content.is_null()).cloned().unwrap_or_else(|| json!({}));
    format!("action={}, content={content}", answer["action"].as_str().unwrap_or_default())
}

fn done(tool: &str, env: Option<String>, answers: &JsonObject) -> CallToolResult {
    let field = |key: &str, name: &str| {
        let value = answers.get(key).map(|answer| answer["content"][name].clone()).unwrap_or_default();
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    let declined =
        answers.iter().find(|(_, answer)| answer.get("action").is_some_and(|action| action != "accept"));
    let tells = ["test_elicitation", "test_elicitation_url"].contains(&tool)
        || tool.starts_with("test_elicitation_sep")
        || tool == "test_elicitation_constraints";
    if let Some((key, answer)) = declined
        && !tells
    {
        return failure(format!("{key}: {}", answer["action"]));
    }
    let null = Value::Null;
    let answer = |key: &str| answers.get(key).unwrap_or(&null);
    text(match tool {
        "deploy" => format!(
            "Deploy to {}: confirm={}, region={}",
            env.unwrap_or_default(),
            field("confirm", "confirm"),
            field("region", "region")
        ),
        "test_sampling" => format!("LLM response: {}", said(answer("model"))),
        "test_elicitation" => format!("User response: {}", did(answer("user"))),
        "test_elicitation_url" => {
            format!("action={}", answer("sign_in")["action"].as_str().unwrap_or_default())
        }
        "test_sampling_tools" => format!(
            "stopReason={}, text={}",
            answer("model")["stopReason"].as_str().unwrap_or("none"),
            said(answer("model"))
        ),
        "test_missing_capability" => said(answer("model")),
        "test_input_required_result_sampling" => said(answer("capital_question")),
        "test_input_required_result_elicitation" => format!("Hello, {}!", field("user_name", "name")),
        "test_input_required_result_request_state" => {
            if answer("confirm")["content"]["ok"] == true { "state-ok" } else { "state-refused" }.to_owned()
        }
        "test_input_required_result_tampered_state" | "test_streaming_elicitation" => {
            format!("confirm={}", field("confirm", "ok"))
        }
        "test_input_required_result_list_roots" => {
            let roots = answer("client_roots")["roots"].as_array().cloned().unwrap_or_default();
            let uris: Vec<_> = roots.iter().filter_map(|root| root["uri"].as_str()).collect();
            format!("Roots: {}", uris.join(", "))
        }
        "test_input_required_result_multiple_inputs" => format!(
            "{}, {}: {} roots",
            said(answer("greeting")),
            field("user_name", "name"),
            answer("client_roots")["roots"].as_array().map_or(0, Vec::len)
        ),
        "test_input_required_result_multi_round" => {
            format!("{} likes {}", field("step1", "name"), field("step2", "color"))
        }
        "test_input_required_result_capabilities" => {
            let mut parts = Vec::new();
            if answers.contains_key("user_name") {
                parts.push(format!("name={}", field("user_name", "name")));
            }
            if answers.contains_key("greeting") {
                parts.push(format!("greeting={}", said(answer("greeting"))));
            }
            if parts.is_empty() { "Nothing can be asked".to_owned() } else { parts.join(", ") }
        }
        _ => format!("Elicitation completed: {}", did(answer("form"))),
    })
}

/// How the tools that ask are listed.
pub(crate) fn tools() -> Vec<Tool> {
    let with = |name: &'static str, about: &'static str, argument: &str| {
        let schema =
            json!({"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]});
        Tool::new(name, about, object(schema))
    };
    let mut all = vec![
        with("deploy", "Deploys, after two questions", "env"),
        with("test_sampling", "Asks the client's model", "prompt"),
        with("test_elicitation", "Asks the user for a name and an address", "message"),
    ];
    all.extend(
        [
            "test_elicitation_sep1034_defaults",
            "test_elicitation_sep1330_enums",
            "test_elicitation_constraints",
            "test_elicitation_url",
            "test_sampling_tools",
            "test_missing_capability",
            "test_streaming_elicitation",
            "test_input_required_result_elicitation",
            "test_input_required_result_sampling",
            "test_input_required_result_list_roots",
            "test_input_required_result_request_state",
            "test_input_required_result_multiple_inputs",
            "test_input_required_result_multi_round",
            "test_input_required_result_tampered_state",
            "test_input_required_result_capabilities",
        ]
        .map(|name| bare(name, "Asks the client")),
    );
    all
}
