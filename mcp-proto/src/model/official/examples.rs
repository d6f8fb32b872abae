//! The official examples of 2026-07-28, read and written again.

use std::{fs, string::String, vec::Vec};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{read, shared};
use crate::{model::*, rpc::de};

/// Folders of messages and params that are not of the model: envelopes, and what clients ask.
const ELSEWHERE: &[&str] = &[
    "CallToolRequest",
    "CallToolRequestParams",
    "CancelledNotification",
    "CancelledNotificationParams",
    "CompleteRequest",
    "CompleteRequestParams",
    "DiscoverRequest",
    "GetPromptRequest",
    "GetPromptRequestParams",
    "HeaderMismatchError",
    "InternalError",
    "InvalidParamsError",
    "ListPromptsRequest",
    "ListResourceTemplatesRequest",
    "ListResourcesRequest",
    "ListToolsRequest",
    "MethodNotFoundError",
    "PaginatedRequestParams",
    "ParseError",
    "PromptListChangedNotification",
    "ReadResourceRequest",
    "ResourceListChangedNotification",
    "SubscriptionsListenRequest",
    "ToolListChangedNotification",
];

type Again = fn(&str) -> Value;

fn again<T: for<'de> Deserialize<'de> + Serialize>(text: &str) -> Value {
    let value: T = de::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    serde_json::to_value(&value).unwrap()
}

/// A result: what the envelope writes is put back.
fn result<T: for<'de> Deserialize<'de> + ResultBody>(text: &str) -> Value {
    let body: T = de::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let given: Value = serde_json::from_str(text).unwrap();
    let mut json = serde_json::to_value(&body).unwrap();
    json["resultType"] = given["resultType"].clone();
    if let Some(meta) = body.meta() {
        json["_meta"] = serde_json::to_value(meta).unwrap();
    }
    json
}

fn progress(text: &str) -> Value {
    let params: ProgressParams = de::from_str(text).unwrap();
    serde_json::to_value(params.progress.params(&params.progress_token)).unwrap()
}

fn responses(text: &str) -> Value {
    let responses: InputResponses = de::from_str(text).unwrap();
    let read = |key: &str, json: &Json| {
        let kind =
            if json.get().contains("\"action\"") { InputKind::Elicit } else { InputKind::CreateMessage };
        responses.get(key, kind).unwrap().unwrap()
    };
    let read: Members<InputResponse> =
        responses.members().iter().map(|(key, json)| (key.clone(), read(key, json))).collect();
    serde_json::to_value(&read).unwrap()
}

/// Where in an example the value stands, and how it is read and written.
fn reader(folder: &str) -> Option<(&'static str, Again)> {
    Some(match folder {
        "AudioContent" | "EmbeddedResource" | "ImageContent" | "ResourceLink" | "TextContent" => {
            ("", again::<ContentBlock>)
        }
        "BlobResourceContents" | "TextResourceContents" => ("", again::<ResourceContents>),
        "BooleanSchema"
        | "NumberSchema"
        | "StringSchema"
        | "TitledMultiSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "UntitledSingleSelectEnumSchema" => ("", again::<PrimitiveSchema>),
        "CallToolResult" => ("", result::<CallToolResult>),
        "CallToolResultResponse" => ("/result", result::<CallToolResult>),
        "ClientCapabilities" => ("", again::<ClientCapabilities>),
        "CompleteResult" => ("", result::<CompleteResult>),
        "CompleteResultResponse" => ("/result", result::<CompleteResult>),
        "CreateMessageRequest" | "ElicitRequest" | "ListRootsRequest" => ("", again::<InputRequest>),
        "CreateMessageRequestParams" => ("", again::<CreateMessage>),
        "CreateMessageResult" => ("", again::<CreateMessageResult>),
        "DiscoverResult" => ("", result::<DiscoverResult>),
        "DiscoverResultResponse" => ("/result", result::<DiscoverResult>),
        "ElicitRequestFormParams" => ("", again::<ElicitForm>),
        "ElicitRequestURLParams" => ("", again::<ElicitUrl>),
        "ElicitResult" => ("", again::<ElicitResult>),
        "GetPromptResult" => ("", result::<GetPromptResult>),
        "GetPromptResultResponse" => ("/result", result::<GetPromptResult>),
        "InputRequests" => ("", again::<InputRequests>),
        "InputRequiredResult" => ("", result::<InputRequired>),
        "InputResponses" => ("", responses),
        "ListPromptsResult" => ("", result::<ListPromptsResult>),
        "ListPromptsResultResponse" => ("/result", result::<ListPromptsResult>),
        "ListResourceTemplatesResult" => ("", result::<ListResourceTemplatesResult>),
        "ListResourceTemplatesResultResponse" => ("/result", result::<ListResourceTemplatesResult>),
        "ListResourcesResult" => ("", result::<ListResourcesResult>),
        "ListResourcesResultResponse" => ("/result", result::<ListResourcesResult>),
        "ListRootsResult" => ("", again::<ListRootsResult>),
        "ListToolsResult" => ("", result::<ListToolsResult>),
        "ListToolsResultResponse" => ("/result", result::<ListToolsResult>),
        "LoggingMessageNotification" => ("/params", again::<LogMessage>),
        "LoggingMessageNotificationParams" => ("", again::<LogMessage>),
        "MissingRequiredClientCapabilityError" => ("/error/data", again::<RequiredCapabilities>),
        "ModelPreferences" => ("", again::<ModelPreferences>),
        "ProgressNotification" => ("/params", progress),
        "ProgressNotificationParams" => ("", progress),
        "ReadResourceResult" => ("", result::<ReadResourceResult>),
        "ReadResourceResultResponse" => ("/result", result::<ReadResourceResult>),
        "Resource" => ("", again::<Resource>),
        "ResourceUpdatedNotification" => ("/params", again::<ResourceUpdated>),
        "ResourceUpdatedNotificationParams" => ("", again::<ResourceUpdated>),
        "Root" => ("", again::<Root>),
        "SamplingMessage" => ("", again::<SamplingMessage>),
        "ServerCapabilities" => ("", again::<ServerCapabilities>),
        "SubscriptionsAcknowledgedNotification" => ("/params", again::<SubscriptionsAcknowledged>),
        "SubscriptionsListenResult" => ("", result::<ListenResult>),
        "SubscriptionsListenResultResponse" => ("/result", result::<ListenResult>),
        "Tool" => ("", again::<Tool>),
        "ToolResultContent" | "ToolUseContent" => ("", again::<SamplingBlock>),
        "UnsupportedProtocolVersionError" => ("/error/data", again::<UnsupportedVersionData>),
        _ => return None,
    })
}

/// What an example may say and this crate says otherwise: the mode of a form and the caching hints are
/// always written, and an embedded request has no id.
fn agreed(json: &mut Value) {
    match json {
        Value::Object(object) => {
            if object.contains_key("requestedSchema") {
                object.entry("mode").or_insert_with(|| "form".into());
            }
            if object.contains_key("contents") {
                object.entry("ttlMs").or_insert_with(|| 0.into());
                object.entry("cacheScope").or_insert_with(|| "private".into());
            }
            if object.get("method").is_some_and(|method| method == "roots/list") {
                object.remove("id");
            }
            object.values_mut().for_each(agreed);
        }
        Value::Array(items) => items.iter_mut().for_each(agreed),
        _ => {}
    }
}

#[test]
fn examples_are_read_and_written_again() {
    let Some(root) = shared("2026-07-28/examples") else { return };
    let (mut done, mut unknown) = (0, Vec::new());
    for folder in fs::read_dir(root).unwrap() {
        let folder = folder.unwrap();
        let name = String::from(folder.file_name().to_str().unwrap());
        if ELSEWHERE.contains(&&*name) {
            continue;
        }
        let Some((pointer, again)) = reader(&name) else {
            unknown.push(name);
            continue;
        };
        for file in fs::read_dir(folder.path()).unwrap() {
            let path = file.unwrap().path();
            let mut expected = read(&path).pointer(pointer).unwrap().clone();
            let got = again(&serde_json::to_string(&expected).unwrap());
            agreed(&mut expected);
            assert_eq!(got, expected, "{}", path.display());
            done += 1;
        }
    }
    assert!(unknown.is_empty(), "no type for {unknown:?}");
    assert!(done > 70, "{done}");
}
