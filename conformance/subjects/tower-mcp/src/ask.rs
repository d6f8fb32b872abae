//! Tools that ask: in the legacy era each question is a request to the client, in the modern one a part of a round.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tower_mcp::protocol::{ElicitRequestParams, InputRequest, InputRequiredResult, ListRootsParams};
use tower_mcp::{
    CallToolResult, Error, NoParams, Prompt, PromptBuilder, RequestContext, RequestOutcome, Tool, ToolBuilder,
};

use crate::{CONTRACT, model, says, user};

#[derive(Clone)]
enum Question {
    Form { message: String, fields: Value, required: Vec<String> },
    Model(Value),
    Roots,
}

type Groups = Vec<Vec<(&'static str, Question)>>;

fn form(message: impl Into<String>, fields: Value) -> Question {
    let required = fields.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    Question::Form { message: message.into(), fields, required }
}

fn optional(message: &str, fields: &str, required: &[&str]) -> Question {
    let required = required.iter().map(ToString::to_string).collect();
    Question::Form { message: message.to_owned(), fields: forms(fields), required }
}

fn forms(name: &str) -> Value {
    CONTRACT["forms"][name].clone()
}

fn sample(prompt: &str, more: Value) -> Question {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let mut params = json!({"messages": [message], "maxTokens": 100});
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    Question::Model(params)
}

impl Question {
    fn elicitation(message: &str, fields: &Value, required: &[String]) -> tower_mcp::ElicitFormParams {
        let schema = json!({"type": "object", "properties": fields, "required": required});
        model(json!({"mode": "form", "message": message, "requestedSchema": schema}))
    }

    fn request(&self) -> InputRequest {
        match self {
            Self::Form { message, fields, required } => {
                InputRequest::Elicit(ElicitRequestParams::Form(Self::elicitation(message, fields, required)))
            }
            Self::Model(params) => InputRequest::CreateMessage(model(params.clone())),
            Self::Roots => InputRequest::ListRoots(ListRootsParams::default()),
        }
    }

    async fn ask(&self, ctx: &RequestContext) -> Result<Value, String> {
        let answer = match self {
            Self::Form { message, fields, required } => {
                let answer = ctx.elicit_form(Self::elicitation(message, fields, required)).await;
                serde_json::to_value(answer.map_err(|error| error.to_string())?)
            }
            Self::Model(params) => {
                let answer = ctx.sample(model(params.clone())).await;
                serde_json::to_value(answer.map_err(|error| error.to_string())?)
            }
            Self::Roots => return Err("the SDK has no way to ask for roots in this era".to_owned()),
        };
        answer.map_err(|error| error.to_string())
    }

    /// Whether it is an answer to this question.
    fn fits(&self, answer: &Value) -> bool {
        match self {
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

enum Round {
    Done(Map<String, Value>),
    More(InputRequiredResult),
    Failed(String),
}

async fn rounds(ctx: &RequestContext, groups: &Groups) -> Result<Round, Error> {
    let codec = ctx.request_state_codec().ok_or_else(|| Error::internal("no codec"))?;
    let modern = ctx.per_request_meta().is_some();
    let mut answers: Map<String, Value> = match ctx.request_state() {
        Some(state) => codec
            .decode(state)
            .map_err(|error| Error::invalid_params(format!("invalid requestState: {error}")))?,
        None => Map::new(),
    };
    for group in groups {
        let mut missing = Vec::new();
        for (key, question) in group {
            if answers.contains_key(*key) {
                continue;
            }
            if !modern {
                match question.ask(ctx).await {
                    Ok(answer) if question.fits(&answer) => drop(answers.insert((*key).to_owned(), answer)),
                    Ok(_) => return Ok(Round::Failed(format!("{key}: not an answer to the question"))),
                    Err(error) => return Ok(Round::Failed(format!("{key}: {error}"))),
                }
                continue;
            }
            match ctx.input_responses().and_then(|all| all.get(*key)).map(|answer| json!(answer)) {
                Some(answer) if question.fits(&answer) => drop(answers.insert((*key).to_owned(), answer)),
                _ => missing.push(((*key).to_owned(), question.request())),
            }
        }
        if !missing.is_empty() {
            let state = codec.encode(&answers).map_err(|error| Error::internal(error.to_string()))?;
            let requests = missing.into_iter().collect();
            return Ok(Round::More(InputRequiredResult::with_requests(requests).with_request_state(state)));
        }
    }
    Ok(Round::Done(answers))
}

async fn run(
    ctx: RequestContext,
    tool: &str,
    argument: &str,
) -> Result<RequestOutcome<CallToolResult>, Error> {
    let groups = questions(tool, argument, &ctx);
    Ok(match rounds(&ctx, &groups).await? {
        Round::Done(answers) => RequestOutcome::Complete(done(tool, argument, &answers)),
        Round::More(more) => RequestOutcome::input_required(more),
        Round::Failed(why) => RequestOutcome::Complete(CallToolResult::error(why)),
    })
}

fn questions(tool: &str, argument: &str, ctx: &RequestContext) -> Groups {
    let capital = || sample("What is the capital of France?", json!({}));
    let name = || form("What is your name?", forms("name"));
    let greeting = || sample("Write a short greeting", json!({}));
    match tool {
        "deploy" => vec![
            vec![(
                "confirm",
                form(format!("Deploy to {argument}?"), json!({"confirm": {"type": "boolean"}})),
            )],
            vec![("region", form("To which region?", json!({"region": {"type": "string"}})))],
        ],
        "test_sampling" => vec![vec![("model", sample(argument, json!({})))]],
        "test_elicitation" => vec![vec![("user", form(argument, forms("person")))]],
        "test_elicitation_sep1034_defaults" => {
            vec![vec![("form", optional("Please fill in", "defaults", &[]))]]
        }
        "test_elicitation_sep1330_enums" => vec![vec![("form", optional("Please choose", "choices", &[]))]],
        "test_elicitation_constraints" => {
            vec![vec![("form", optional("Please fill in", "bounds", &["code", "count"]))]]
        }
        "test_sampling_tools" => {
            vec![vec![("model", sample("What is the weather?", CONTRACT["weather"].clone()))]]
        }
        "test_missing_capability" => vec![vec![("model", capital())]],
        "test_input_required_result_sampling" => vec![vec![("capital_question", capital())]],
        "test_streaming_elicitation" => vec![vec![("confirm", form("Go on?", forms("ok")))]],
        "test_input_required_result_elicitation" => vec![vec![("user_name", name())]],
        "test_input_required_result_list_roots" => vec![vec![("client_roots", Question::Roots)]],
        "test_input_required_result_multiple_inputs" => {
            vec![vec![("user_name", name()), ("greeting", greeting()), ("client_roots", Question::Roots)]]
        }
        "test_input_required_result_multi_round" => vec![
            vec![("step1", form("Step 1: What is your name?", forms("name")))],
            vec![(
                "step2",
                form("Step 2: What is your favorite color?", json!({"color": {"type": "string"}})),
            )],
        ],
        "test_input_required_result_capabilities" => {
            let can = ctx
                .per_request_meta()
                .and_then(|meta| meta.client_capabilities.as_ref().map(|can| json!(can)));
            let can = can.unwrap_or_default();
            let mut group = Vec::new();
            if !can["elicitation"].is_null() {
                group.push(("user_name", name()));
            }
            if !can["sampling"].is_null() {
                group.push(("greeting", greeting()));
            }
            vec![group]
        }
        _ => vec![vec![("confirm", form("Please confirm", forms("ok")))]],
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

fn done(tool: &str, argument: &str, answers: &Map<String, Value>) -> CallToolResult {
    let field = |key: &str, name: &str| {
        let value = answers.get(key).map(|answer| answer["content"][name].clone()).unwrap_or_default();
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    let null = Value::Null;
    let answer = |key: &str| answers.get(key).unwrap_or(&null);
    match tool {
        "test_elicitation" => return CallToolResult::text(format!("User response: {}", did(answer("user")))),
        "test_elicitation_sep1034_defaults"
        | "test_elicitation_sep1330_enums"
        | "test_elicitation_constraints" => {
            return CallToolResult::text(format!("Elicitation completed: {}", did(answer("form"))));
        }
        _ => {}
    }
    let declined =
        answers.iter().find(|(_, answer)| answer.get("action").is_some_and(|action| action != "accept"));
    if let Some((key, answer)) = declined {
        return CallToolResult::error(format!("{key}: {}", answer["action"]));
    }
    CallToolResult::text(match tool {
        "deploy" => {
            let (confirm, region) = (field("confirm", "confirm"), field("region", "region"));
            format!("Deploy to {argument}: confirm={confirm}, region={region}")
        }
        "test_sampling" => format!("LLM response: {}", said(answer("model"))),
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
        _ => format!("confirm={}", field("confirm", "ok")),
    })
}

#[derive(Deserialize, JsonSchema)]
struct Deploy {
    env: String,
}
#[derive(Deserialize, JsonSchema)]
struct Sampling {
    prompt: String,
}
#[derive(Deserialize, JsonSchema)]
struct Elicitation {
    message: String,
}

pub(crate) fn tools() -> Vec<Tool> {
    let mut all = vec![
        ToolBuilder::new("deploy")
            .description("Deploys, after two questions")
            .mrtr_handler(|ctx, p: Deploy| async move { run(ctx, "deploy", &p.env).await })
            .build(),
        ToolBuilder::new("test_sampling")
            .description("Asks the client's model")
            .mrtr_handler(|ctx, p: Sampling| async move { run(ctx, "test_sampling", &p.prompt).await })
            .build(),
        ToolBuilder::new("test_elicitation")
            .description("Asks the user for a name and an address")
            .mrtr_handler(|ctx, p: Elicitation| async move { run(ctx, "test_elicitation", &p.message).await })
            .build(),
    ];
    for name in [
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_elicitation_constraints",
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
    ] {
        all.push(
            ToolBuilder::new(name)
                .description("Asks the client")
                .mrtr_handler(move |ctx, _: NoParams| async move { run(ctx, name, "").await })
                .build(),
        );
    }
    all
}

pub(crate) fn prompt() -> Prompt {
    PromptBuilder::new("test_input_required_result_prompt")
        .description("Asks the user first")
        .mrtr_handler(|ctx, _| async move {
            let question =
                form("What context should the prompt use?", json!({"context": {"type": "string"}}));
            Ok(match rounds(&ctx, &vec![vec![("user_context", question)]]).await? {
                Round::More(more) => RequestOutcome::input_required(more),
                Round::Done(answers) if answers["user_context"]["action"] == "accept" => {
                    let said =
                        answers["user_context"]["content"]["context"].as_str().unwrap_or_default().to_owned();
                    RequestOutcome::Complete(says(json!([user(json!(format!("Use this context: {said}")))])))
                }
                _ => return Err(Error::invalid_params("the user said nothing")),
            })
        })
        .build()
}
