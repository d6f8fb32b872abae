//! Each type in each revision, validated.

use std::{collections::BTreeMap, format, string::String, vec, vec::Vec};

use serde::Serialize;
use serde_json::{Value, json};

use super::{Schema, V};
use crate::{
    model::{meta::key, view::View, *},
    rpc::{self, ProgressToken},
};

/// Validates what is written, by definition and revision.
struct Judge {
    schemas: Vec<(V, Schema)>,
    tasks: Schema,
    validators: BTreeMap<(String, String), jsonschema::Validator>,
    judged: BTreeMap<V, usize>,
}

impl Judge {
    fn new() -> Option<Self> {
        let schemas = V::ALL.into_iter().map(|version| Some((version, Schema::of(version.as_str())?)));
        let schemas = schemas.collect::<Option<Vec<_>>>()?;
        let tasks = Schema::of("ext-tasks")?;
        Some(Self { schemas, tasks, validators: BTreeMap::new(), judged: BTreeMap::new() })
    }

    /// Holds `json` against a definition; returns false if the revision does not have it.
    fn judge(&mut self, version: V, definition: &str, json: &Value) -> bool {
        let (_, schema) = self.schemas.iter().find(|(v, _)| *v == version).unwrap();
        let pointer = match definition.strip_suffix("Params") {
            _ if schema.definition(definition).is_some() => String::from(definition),
            Some(message) if schema.definition(message).is_some() => format!("{message}/properties/params"),
            _ => return false,
        };
        let validator = self
            .validators
            .entry((String::from(version.as_str()), pointer.clone()))
            .or_insert_with(|| schema.closed(&pointer));
        assert!(!validator.is_valid(&json!([[]])), "{pointer} of {version} allows anything");
        let errors: Vec<String> =
            validator.iter_errors(json).map(|e| format!("{} {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{version} {pointer}: {json}\n{errors:#?}");
        *self.judged.entry(version).or_default() += 1;
        true
    }

    /// Writes a value as each revision has it and holds it against that revision's definition.
    fn value<T: Serialize>(&mut self, definition: &str, value: &T) {
        for version in V::ALL {
            let mut out = Vec::new();
            view::write(&mut out, version, value).unwrap();
            self.text(version, definition, &out);
        }
    }

    /// The same for a result: fitted before, and with the members of the envelope after.
    fn result<T: ResultBody + Clone>(&mut self, definition: &str, result: &T) {
        for version in V::ALL {
            let mut out = Vec::new();
            view::write(&mut out, version, &*result.fitted(version)).unwrap();
            let mut json: Value = serde_json::from_slice(&out).unwrap();
            no_odd_spellings(&out);
            let object = json.as_object_mut().unwrap();
            if let Some(meta) = result.meta() {
                object.insert("_meta".into(), serde_json::to_value(meta).unwrap());
            }
            if version.is_modern() {
                object.insert("resultType".into(), "complete".into());
            }
            self.judge(version, definition, &json);
        }
    }

    fn text(&mut self, version: V, definition: &str, text: &[u8]) -> bool {
        no_odd_spellings(text);
        self.judge(version, definition, &serde_json::from_slice(text).unwrap())
    }

    fn task(&mut self, definition: &str, json: &Value) {
        let validator = self.tasks.closed(definition);
        let errors: Vec<String> =
            validator.iter_errors(json).map(|e| format!("{} {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "tasks {definition}: {json}\n{errors:#?}");
    }
}

/// E09, T06: the samples hold neither a null nor a fraction of zero.
fn no_odd_spellings(text: &[u8]) {
    let text = core::str::from_utf8(text).unwrap();
    assert!(!text.contains(":null") && !text.contains(".0,") && !text.contains(".0}"), "{text}");
}

fn json_of(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

fn schema(text: &str) -> JsonSchema {
    JsonSchema::parse(text).unwrap()
}

fn meta() -> Meta {
    Meta::new().with("com.example/k", true)
}

fn annotations() -> Annotations {
    Annotations::new().audience([Role::User]).priority(1.0).last_modified("2025-01-12T15:00:58Z")
}

fn icon() -> Icon {
    Icon::new("https://example.com/i.png")
        .mime_type("image/png")
        .sizes(["48x48".into()])
        .theme(IconTheme::Dark)
}

fn implementation() -> Implementation {
    Implementation::new("n", "1")
        .title("N")
        .description("d")
        .website_url("https://example.com")
        .icons([icon()])
}

fn resource() -> Resource {
    Resource::new("file:///a", "a")
        .title("A")
        .description("d")
        .mime_type("text/plain")
        .size(3)
        .icons([icon()])
        .annotations(annotations())
        .meta(meta())
}

fn contents() -> [ResourceContents; 2] {
    [
        TextResourceContents::new("file:///a", "t").mime_type("text/plain").meta(meta()).into(),
        BlobResourceContents::new("file:///b", b"\xfb\xff").mime_type("x/y").meta(meta()).into(),
    ]
}

fn blocks() -> Vec<ContentBlock> {
    let [text, blob] = contents();
    let blocks = [
        ContentBlock::text("t"),
        ContentBlock::image(b"i", "image/png"),
        ContentBlock::audio(b"a", "audio/wav"),
        ContentBlock::embedded(text),
        ContentBlock::embedded(blob),
        ContentBlock::resource_link(resource()),
    ];
    let full = blocks.clone().into_iter().map(|block| block.annotations(annotations()).meta(meta()));
    full.chain(blocks).collect()
}

fn tool() -> Tool {
    let input = r#"{"type":"object","properties":{"a":{"type":"string"},"b":true},"required":["a"]}"#;
    Tool::new("t", schema(input))
        .title("T")
        .description("d")
        .output_schema(schema(r#"{"type":"object","properties":{"r":{"type":"number"}}}"#))
        .annotations(
            ToolAnnotations::new()
                .title("T")
                .read_only_hint(true)
                .destructive_hint(false)
                .idempotent_hint(true)
                .open_world_hint(false),
        )
        .icons([icon()])
        .execution(ToolExecution::new(TaskSupport::Optional))
        .meta(meta())
}

fn sampling() -> CreateMessage {
    CreateMessage::new([SamplingMessage::user("hi").meta(meta()), SamplingMessage::assistant("ho")], 100)
        .model_preferences(
            ModelPreferences::new()
                .hints([ModelHint::new("m")])
                .cost_priority(0.0)
                .speed_priority(0.5)
                .intelligence_priority(1.0),
        )
        .system_prompt("s")
        .include_context(IncludeContext::None)
        .temperature(1.0)
        .stop_sequences(["x".into()])
        .metadata(Json::empty_object())
}

fn form() -> FormSchema {
    FormSchema::new()
        .required(
            "s",
            StringSchema::new()
                .title("S")
                .description("d")
                .min_length(1)
                .max_length(2)
                .format(StringFormat::Date)
                .default("x"),
        )
        .optional("n", NumberSchema::new().title("N").description("d").minimum(0.0).maximum(2.5).default(1.0))
        .optional("i", NumberSchema::integer())
        .optional("b", BooleanSchema::new().title("B").description("d").default(true))
        .optional("e", SingleSelectSchema::new(["a", "b"]).title("E").description("d").default("a"))
        .optional("t", SingleSelectSchema::new([("a", "A")]).title("T").default("a"))
        .optional("l", SingleSelectSchema::new([("a", "A")]).legacy().default("a"))
}

fn choices() -> FormSchema {
    form()
        .optional(
            "m",
            MultiSelectSchema::new(["a", "b"])
                .title("M")
                .description("d")
                .min_items(1)
                .max_items(2)
                .default(["a".into()]),
        )
        .optional("mt", MultiSelectSchema::new([("a", "A")]).min_items(0).max_items(1))
}

#[test]
fn results_fit_every_revision() {
    let Some(mut judge) = Judge::new() else { return };
    let j = &mut judge;
    for content in [blocks(), Vec::new()] {
        let full = CallToolResult::new(content.clone()).is_error(true).meta(meta());
        j.result("CallToolResult", &CallToolResult::new(content));
        j.result("CallToolResult", &full.clone().structured_content(Json::parse(r#"{"a":1}"#).unwrap()));
        j.result("CallToolResult", &full.structured_content(Json::parse("[1]").unwrap()));
    }
    let any_output = tool().output_schema(schema(r#"{"anyOf":[{"type":"object"},{"type":"string"}]}"#));
    j.result(
        "ListToolsResult",
        &ListToolsResult::new([tool(), any_output, Tool::new("x", JsonSchema::any_object())])
            .next_cursor("")
            .meta(meta()),
    );
    j.result(
        "ListResourcesResult",
        &ListResourcesResult::new([resource(), Resource::new("a:b", "n")])
            .next_cursor("c")
            .cache(5, CacheScope::Public),
    );
    let template = ResourceTemplate::new("file:///{a}", "a")
        .title("A")
        .description("d")
        .mime_type("x/y")
        .icons([icon()])
        .annotations(annotations())
        .meta(meta());
    j.result(
        "ListResourceTemplatesResult",
        &ListResourceTemplatesResult::new([template, ResourceTemplate::new("a:{b}", "b")]),
    );
    j.result(
        "ReadResourceResult",
        &ReadResourceResult::new(contents()).cache(0, CacheScope::Private).meta(meta()),
    );
    let argument = PromptArgument::new("a").title("A").description("d").required(true);
    let prompt =
        Prompt::new("p").title("P").description("d").arguments([argument]).icons([icon()]).meta(meta());
    j.result("ListPromptsResult", &ListPromptsResult::new([prompt, Prompt::new("q")]).next_cursor("c"));
    let messages: Vec<PromptMessage> = blocks().into_iter().map(PromptMessage::user).collect();
    j.result("GetPromptResult", &GetPromptResult::new(messages).description("d").meta(meta()));
    j.result("CompleteResult", &CompleteResult::new((0..101).map(|i| format!("{i}"))));
    j.result("CompleteResult", &CompleteResult::from(Completion::new(["a"]).total(1).has_more(false)));
    j.result("EmptyResult", &EmptyResult::new().meta(meta()));
    j.result(
        "SubscriptionsListenResult",
        &ListenResult::new().meta(Meta::new().with(key::SUBSCRIPTION_ID, 7)),
    );
    j.result(
        "DiscoverResult",
        &DiscoverResult::new(["2026-07-28".into()], server()).instructions("i").cache(1, CacheScope::Public),
    );
    let legacy =
        InitializeResult::new("2025-11-25", server(), implementation()).instructions("i").meta(meta());
    j.result("InitializeResult", &legacy);
    assert!(judge.judged.values().all(|judged| *judged >= 16), "{:?}", judge.judged);
}

fn server() -> ServerCapabilities {
    ServerCapabilities::new()
        .tools(true)
        .prompts(true)
        .resources(true, true)
        .completions()
        .logging()
        .core_tasks(true, true)
        .experimental("x", Json::empty_object())
}

#[test]
fn values_fit_every_revision() {
    let Some(mut judge) = Judge::new() else { return };
    let j = &mut judge;
    j.value("Implementation", &implementation());
    j.value("Implementation", &Implementation::new("n", "1"));
    j.value("ServerCapabilities", &server());
    let client = ClientCapabilities::new()
        .form_elicitation()
        .url_elicitation()
        .sampling_tools()
        .sampling_context()
        .roots()
        .experimental("x", Json::empty_object());
    for version in V::ALL {
        // The inner members of a capability are open in every revision, but not in the closed schema.
        let plain = ClientCapabilities::new().sampling().roots_list_changed();
        let caps = if version.has_sampling_tools() { &client } else { &plain };
        let mut out = Vec::new();
        view::write(&mut out, version, caps).unwrap();
        assert!(j.text(version, "ClientCapabilities", &out));
    }
    j.value("LoggingMessageNotificationParams", &LogMessage::new(LoggingLevel::Alert, "x").logger("l"));
    let token = ProgressToken::from("t");
    let progress = Progress::new(1.0).total(2.0).message("m");
    j.value("ProgressNotificationParams", &progress.params(&token));
    j.value("ResourceUpdatedNotificationParams", &ResourceUpdated::new("file:///a"));
    let filter = SubscriptionFilter::new()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed()
        .resource("a:b");
    j.value("SubscriptionFilter", &filter);
    j.value(
        "SubscriptionsAcknowledgedNotificationParams",
        &SubscriptionsAcknowledged::new(filter.clone()).meta(meta()),
    );
    j.value("PromptReference", &CompletionReference::prompt("p"));
    j.value("ResourceTemplateReference", &CompletionReference::resource("a:{b}"));
    j.value("ResourceReference", &CompletionReference::resource("a:{b}"));
    j.value("Root", &Root::new("file:///a").name("a").meta(meta()));
    j.value("ListRootsResult", &ListRootsResult::new([Root::new("file:///a")]).meta(meta()));
    let content = Members::from_iter([("s", Json::from("x")), ("i", Json::from(1)), ("b", Json::from(true))]);
    j.value("ElicitResult", &ElicitResult::accept(content).meta(meta()));
    j.value("ElicitResult", &ElicitResult::decline());
    for answer in [
        CreateMessageResult::new("m", "a").stop_reason(stop_reason::END_TURN).meta(meta()),
        CreateMessageResult::new("m", vec!["a".into(), "b".into()]),
        CreateMessageResult::new("m", ToolUseContent::new("1", "t", Json::empty_object()).meta(meta())),
    ] {
        for version in V::ALL {
            let mut out = Vec::new();
            view::write(&mut out, version, &*answer.fitted(version)).unwrap();
            assert!(j.text(version, "CreateMessageResult", &out));
        }
    }
    let params = json!({"elicitationId": "e"});
    assert_eq!(serde_json::to_value(ElicitationComplete::new("e")).unwrap(), params);
    j.judge(
        V::V2025_11_25,
        "ElicitationCompleteNotification",
        &json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params}),
    );
}

#[test]
fn input_requests_fit_every_revision() {
    let Some(mut judge) = Judge::new() else { return };
    let j = &mut judge;
    let with_tools = sampling()
        .tools([tool(), Tool::new("x", JsonSchema::any_object())])
        .tool_choice(ToolChoice::new(ToolChoiceMode::Required));
    let result = ToolResultContent::new("1", blocks())
        .structured_content(Json::parse("[1]").unwrap())
        .is_error(true)
        .meta(meta());
    let uses_tools = CreateMessage::new(
        [
            SamplingMessage::assistant(vec![
                "x".into(),
                ToolUseContent::new("1", "t", Json::empty_object()).into(),
            ]),
            SamplingMessage::user(result),
        ],
        1,
    );
    let from_elsewhere = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"z":{"type":"string","default":"a"},"a":{"type":"string","oneOf":[{"const":"x","title":"X"}]}}}"#;
    for (definition, request, first) in [
        ("CreateMessageRequestParams", sampling().into(), V::V2024_11_05),
        ("CreateMessageRequestParams", with_tools.into(), V::V2024_11_05),
        ("CreateMessageRequestParams", uses_tools.into(), V::V2025_11_25),
        ("ElicitRequestFormParams", ElicitForm::new("m", form()).into(), V::V2025_06_18),
        (
            "ElicitRequestFormParams",
            ElicitForm::from_schema_json("m", from_elsewhere).unwrap().into(),
            V::V2025_06_18,
        ),
        ("ElicitRequestFormParams", ElicitForm::new("m", choices()).into(), V::V2025_11_25),
        (
            "ElicitRequestURLParams",
            ElicitUrl::new("m", "https://example.com").elicitation_id("e").into(),
            V::V2025_11_25,
        ),
    ] {
        let request: InputRequest = request;
        for version in V::ALL {
            let mut out = Vec::new();
            if version < first {
                assert!(
                    request.write_params(&mut out, version).is_err() && out.is_empty(),
                    "{version} {request:?}"
                );
                continue;
            }
            request.write_params(&mut out, version).unwrap();
            let older =
                if definition == "ElicitRequestFormParams" { "ElicitRequestParams" } else { definition };
            assert!(
                j.text(version, definition, &out) || j.text(version, older, &out),
                "{version} {definition}"
            );
            let back = InputRequest::decode(request.kind(), core::str::from_utf8(&out).unwrap()).unwrap();
            let mut again = Vec::new();
            back.write_params(&mut again, version).unwrap();
            assert_eq!(out, again, "{version}: reading and writing again changes nothing");
        }
        let required = InputRequired::default().ask("k", request).request_state("s");
        let mut json = serde_json::to_value(View::new(V::LATEST, &required)).unwrap();
        json["resultType"] = "input_required".into();
        assert!(j.judge(V::LATEST, "InputRequiredResult", &json));
    }
    let roots = InputRequired::default().ask("k", InputRequest::ListRoots);
    assert!(j.judge(V::LATEST, "InputRequests", &serde_json::to_value(&roots.input_requests).unwrap()));
}

#[test]
fn errors_and_tasks_fit_their_revision() {
    let Some(mut judge) = Judge::new() else { return };
    let j = &mut judge;
    let error = |code: i32, data: Value| json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m", "data": data}});

    let versions = UnsupportedVersionData::new(V::ALL, "x");
    assert!(j.judge(
        V::LATEST,
        "UnsupportedProtocolVersionError",
        &error(rpc::code::UNSUPPORTED_PROTOCOL_VERSION, json_of(&versions))
    ));
    let needed = RequiredCapabilities::new(ClientCapabilities::new().sampling_tools());
    assert!(j.judge(
        V::LATEST,
        "MissingRequiredClientCapabilityError",
        &error(rpc::code::MISSING_REQUIRED_CLIENT_CAPABILITY, json_of(&needed))
    ));
    let visit = RequiredElicitations::new([ElicitUrl::new("m", "https://example.com").elicitation_id("e")]);
    assert!(j.judge(
        V::V2025_11_25,
        "URLElicitationRequiredError",
        &error(rpc::code::URL_ELICITATION_REQUIRED, json_of(&visit))
    ));

    let task = Task::new("t", "2026-01-01T00:00:00Z").status_message("m").poll_interval_ms(5);
    let write = |version| {
        let mut out = Vec::new();
        CreateTaskResult::new(task.clone()).write(version, &mut out).unwrap();
        serde_json::from_slice::<Value>(&out).unwrap()
    };
    assert!(j.judge(V::V2025_11_25, "CreateTaskResult", &write(V::V2025_11_25)));
    for definition in ["GetTaskResult", "CancelTaskResult", "TaskStatusNotificationParams", "Task"] {
        assert!(j.judge(
            V::V2025_11_25,
            definition,
            &json_of(&LegacyTaskResult::new(task.clone().ttl_ms(9)))
        ));
    }
    assert!(j.judge(
        V::V2025_11_25,
        "ListTasksResult",
        &json_of(&ListTasksResult::new([task.clone()]).next_cursor("c"))
    ));

    let mut created = write(V::LATEST);
    j.task("Task", &created);
    created["resultType"] = "task".into();
    j.task("CreateTaskResult", &created);
    let ask = InputRequests::from_iter([("k", ElicitForm::new("m", form()).into())]);
    for detailed in [
        DetailedTask::new(task.clone()),
        DetailedTask::new(task.clone().status(TaskStatus::Cancelled)),
        DetailedTask::input_required(task.clone(), ask),
        DetailedTask::completed(task.clone(), Json::empty_object()),
        DetailedTask::failed(task, rpc::Error::internal()),
    ] {
        let mut json = json_of(&detailed);
        j.task("DetailedTask", &json);
        j.task("TaskStatusNotificationParams", &json);
        json["resultType"] = "complete".into();
        j.task("GetTaskResult", &json);
    }
    j.task("TaskSubscriptionNotifications", &json_of(&SubscriptionFilter::new().task("t")));
}
