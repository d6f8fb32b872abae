//! The types of the model: what is read is written, and read again as the same, in every revision.
//!
//! The first line names the type (anything else stands for one of them), the rest is its JSON.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use mcp_proto::client::request;
use mcp_proto::limits::Limits;
use mcp_proto::model::method::{self, Method};
use mcp_proto::model::*;
use mcp_proto::rpc::{Error, Params, RequestId, de};
use mcp_proto_fuzz::Input;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

fuzz_target!(|data: &[u8]| -> Corpus {
    let mut input = Input::new(data);
    let name = input.line();
    let Ok(text) = str::from_utf8(input.rest()) else { return Corpus::Reject };
    let known = KINDS.iter().position(|(known, _)| known.as_bytes() == name);
    let sum = name.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31) ^ usize::from(*byte));
    (KINDS[known.unwrap_or(sum % KINDS.len())].1)(text);
    Corpus::Keep
});

type Check = fn(&str);

macro_rules! kinds {
    ($($how:ident: $($name:ident)+;)+) => {
        &[$($((stringify!($name), $how::<$name> as Check),)+)+]
    };
}

const NAMED: &[(&str, Check)] = kinds! {
    value: Annotations ContentBlock ResourceContents
        Resource ResourceTemplate Icon Implementation
        ClientCapabilities ServerCapabilities PrimitiveSchema FormSchema ElicitForm ElicitUrl ElicitResult
        InputRequest InputRequests InputResponses Json JsonSchema Meta LogMessage ResourceUpdated
        SubscriptionFilter SubscriptionsAcknowledged ElicitationComplete Prompt PromptArgument PromptMessage
        Root ListRootsResult SamplingMessage SamplingBlock SamplingContent ModelPreferences ModelHint
        ToolChoice CreateMessage CreateMessageResult Tool ToolAnnotations ToolExecution Task Completion
        CompletionReference RequiredCapabilities RequiredElicitations ResourceNotFoundData
        UnsupportedVersionData Role TaskStatus LoggingLevel CacheScope;
    result: CallToolResult CompleteResult DiscoverResult InitializeResult EmptyResult ListToolsResult
        ListResourcesResult ListResourceTemplatesResult ListPromptsResult ReadResourceResult GetPromptResult
        ListenResult InputRequired CreateTaskResult LegacyTaskResult
        ListTasksResult;
};

const OTHERS: &[(&str, Check)] = &[
    ("DetailedTask", detailed),
    ("ProgressParams", progress),
    ("Error", error),
    ("RequestId", id),
    ("params", params),
    ("elicitation/create", |text| asked(InputKind::Elicit, text)),
    ("sampling/createMessage", |text| asked(InputKind::CreateMessage, text)),
    ("answer to elicitation/create", |text| answered(InputKind::Elicit, text)),
    ("answer to sampling/createMessage", |text| answered(InputKind::CreateMessage, text)),
    ("answer to roots/list", |text| answered(InputKind::ListRoots, text)),
];

static KINDS: std::sync::LazyLock<Vec<(&str, Check)>> =
    std::sync::LazyLock::new(|| NAMED.iter().chain(OTHERS).copied().collect());

fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    match de::from_str(text) {
        Ok(value) => {
            assert!(is_json(text), "this is no JSON");
            Some(value)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a value that was read can be written")
}

fn again<T: DeserializeOwned>(written: &str) -> T {
    assert!(is_json(written), "{written}");
    de::from_str(written).unwrap_or_else(|error| panic!("{written}: {error}"))
}

fn value<T: Serialize + DeserializeOwned>(given: &str) {
    let Some(value) = read::<T>(given) else { return };
    let written = text(&value);
    assert_eq!(text(&again::<T>(&written)), written, "read and written again");
    for version in ProtocolVersion::ALL {
        let view = |value: &T| {
            let mut out = Vec::new();
            view::write(&mut out, version, value).expect("it can be written");
            String::from_utf8(out).expect("UTF-8")
        };
        let old = view(&value);
        assert!(is_json(&old), "{old}");
        // What a peer of that revision makes of it, and passes on.
        let theirs = de::from_str::<T>(&old);
        let theirs = theirs.unwrap_or_else(|error| panic!("{version}: {old}: {error}"));
        assert_eq!(view(&theirs), old, "{version}");
    }
}

fn result<T: ResultBody + DeserializeOwned + Clone>(given: &str) {
    result_in::<T>(given, |_| true);
}

/// The one answer that is another type in 2025-11-25.
fn detailed(given: &str) {
    result_in::<DetailedTask>(given, |version| !version.has_core_tasks());
    let Some(value) = read::<DetailedTask>(given) else { return };
    let mut out = Vec::new();
    value.write(ProtocolVersion::V2025_11_25, &mut out).expect("it can be written");
    let task = again::<Task>(str::from_utf8(&out).expect("UTF-8"));
    assert_eq!(task.task_id, value.task.task_id);
}

fn result_in<T: ResultBody + DeserializeOwned + Clone>(given: &str, is_in: fn(ProtocolVersion) -> bool) {
    let Some(value) = read::<T>(given) else { return };
    let written = text(&value);
    assert_eq!(text(&again::<T>(&written)), written, "read and written again");
    if let Some(meta) = value.meta() {
        let meta = text(meta);
        assert_eq!(text(&again::<Meta>(&meta)), meta);
    }
    for version in ProtocolVersion::ALL.into_iter().filter(|version| is_in(*version)) {
        let view = |value: &T| {
            let mut out = Vec::new();
            let done = value.write(version, &mut out);
            assert!(done.is_ok() || out.is_empty(), "bytes of what cannot be written");
            done.ok().map(|()| String::from_utf8(out).expect("UTF-8"))
        };
        let Some(old) = view(&value) else { continue };
        assert!(is_json(&old), "{old}");
        // What a peer of that revision makes of it, and passes on.
        let theirs = de::from_str::<T>(&old);
        let theirs = theirs.unwrap_or_else(|error| panic!("{version}: {old}: {error}"));
        assert_eq!(view(&theirs).as_deref(), Some(&*old), "{version}");
    }
}

fn progress(given: &str) {
    let Some(value) = read::<ProgressParams>(given) else { return };
    let written = text(&value.progress.params(&value.progress_token));
    let other = again::<ProgressParams>(&written);
    assert_eq!(other.progress_token, value.progress_token);
    assert_eq!(text(&other.progress.params(&other.progress_token)), written);
}

fn error(given: &str) {
    let Some(error) = Error::from_json(given) else { return };
    let write = |error: &Error| {
        let mut out = Vec::new();
        error.write(&mut out);
        String::from_utf8(out).expect("UTF-8")
    };
    let written = write(&error);
    let other = Error::from_json(&written).unwrap_or_else(|| panic!("{written}"));
    assert_eq!((other.code, &other.message), (error.code, &error.message));
    assert_eq!(write(&other), written);
}

fn id(given: &str) {
    let Some(id) = RequestId::parse(given, 256) else { return };
    let mut out = Vec::new();
    id.write(&mut out);
    let written = str::from_utf8(&out).expect("UTF-8");
    // An escape may be longer than what it stands for.
    assert_eq!(RequestId::parse(written, 4 * 256).as_ref(), Some(&id), "{written}");
    assert_eq!(text(&id), written);
    if let Some(number) = id.as_i64() {
        assert_eq!(RequestId::from(number), id);
    }
}

fn asked(kind: InputKind, given: &str) {
    let Ok(request) = InputRequest::decode(kind, given) else { return };
    assert_eq!(request.kind(), kind);
    let _ = request.needs();
    for version in ProtocolVersion::ALL {
        let write = |request: &InputRequest| {
            let mut out = Vec::new();
            let done = request.write_params(&mut out, version);
            assert!(done.is_ok() || out.is_empty(), "bytes of what cannot be written");
            done.ok().map(|()| String::from_utf8(out).expect("UTF-8"))
        };
        let Some(old) = write(&request) else { continue };
        let theirs = InputRequest::decode(kind, &old).unwrap_or_else(|e| panic!("{version}: {old}: {e}"));
        assert_eq!(write(&theirs).as_deref(), Some(&*old), "{version}");
    }
}

fn answered(kind: InputKind, given: &str) {
    let Ok(response) = InputResponse::decode_as(kind, given) else { return };
    for version in ProtocolVersion::ALL {
        let write = |response: &InputResponse| {
            let mut out = Vec::new();
            let done = response.write(&mut out, version);
            assert!(done.is_ok() || out.is_empty(), "bytes of what cannot be written");
            done.ok().map(|()| String::from_utf8(out).expect("UTF-8"))
        };
        let Some(old) = write(&response) else { continue };
        let theirs = InputResponse::decode_as(kind, &old).unwrap_or_else(|e| panic!("{version}: {old}: {e}"));
        assert_eq!(write(&theirs).as_deref(), Some(&*old), "{version}");
    }
}

/// What a server reads of the params is what a client writes with them.
fn params(given: &str) {
    // More members than a message may have are no params.
    if given.len() > Limits::default().max_message {
        return;
    }
    let Some(params) = Params::from_json(given) else { return };
    let whole = params.to_json();
    let other = Params::from_json(&whole).unwrap_or_else(|| panic!("{whole}"));
    assert_eq!(other.to_json(), whole);

    if let Ok(read) = method::CallTool::decode(&params) {
        let mut request = request::CallTool::new(read.name.into_owned());
        request.arguments = read.arguments.map(|raw| Json::parse(raw.get()).expect("it is JSON"));
        trip::<method::CallTool>(&request, |again| {
            assert_eq!(again.name, request.name);
            assert_eq!(again.arguments.map(|raw| raw.get()), request.arguments.as_ref().map(Json::get));
        });
    }
    if let Ok(read) = method::GetPrompt::decode(&params) {
        let mut request = request::GetPrompt::new(read.name.into_owned());
        for (name, value) in &read.arguments {
            request = request.argument(name.clone().into_owned(), value.clone().into_owned());
        }
        trip::<method::GetPrompt>(&request, |again| assert_eq!(again.arguments, read.arguments));
    }
    if let Ok(read) = method::ReadResource::decode(&params) {
        let request = request::ReadResource::new(read.uri.into_owned());
        trip::<method::ReadResource>(&request, |again| assert_eq!(again.uri, request.uri));
    }
    if let Ok(read) = method::ListTools::decode(&params) {
        let mut request = request::ListTools::new();
        request.cursor = read.cursor.map(|cursor| cursor.into_owned().into());
        trip::<method::ListTools>(&request, |again| assert_eq!(again.cursor, request.cursor));
    }
    if let Ok(read) = method::Complete::decode(&params) {
        let reference = match &read.reference {
            method::CompletionReference::Prompt(name) => {
                CompletionReference::prompt(name.clone().into_owned())
            }
            method::CompletionReference::Resource(uri) => {
                CompletionReference::resource(uri.clone().into_owned())
            }
            other => panic!("{other:?}"),
        };
        let mut request =
            request::Complete::new(reference, read.argument.into_owned(), read.value.into_owned());
        for (name, value) in &read.context {
            request = request.known(name.clone().into_owned(), value.clone().into_owned());
        }
        trip::<method::Complete>(&request, |again| {
            assert_eq!(
                (&*again.argument, &*again.value),
                (&*request.argument.name, &*request.argument.value)
            );
            assert_eq!((again.context, again.reference), (read.context, read.reference));
        });
    }
    if let Ok(read) = method::GetTask::decode(&params) {
        let request = request::GetTask::new(read.task_id.into_owned());
        trip::<method::GetTask>(&request, |again| assert_eq!(again.task_id, request.task_id));
    }
    if let Ok(read) = method::Listen::decode(&params) {
        let filter = text(&read.notifications);
        assert_eq!(text(&again::<SubscriptionFilter>(&filter)), filter);
    }
    let _ = method::UpdateTask::decode(&params);
}

fn trip<M: Method>(request: &impl Serialize, check: impl FnOnce(M::Params<'_>)) {
    let written = text(request);
    let params = Params::from_json(&written).unwrap_or_else(|| panic!("{written}"));
    match M::decode(&params) {
        Ok(read) => check(read),
        Err(error) => panic!("{written}: {error:?}"),
    }
}
