//! Faults of what tools, resources, prompts and completion give, and of what they take.

use serde_json::{Value, json};

use super::envelope::answer;
use super::message::{calls, is_result, method, put, take, text};
use super::{Plant, Turn};

pub(super) const FAULTS: &[(&str, Plant)] = &[
    ("stale-result", Plant::Down(stale_result)),
    ("results-pile-up", Plant::Down(results_pile_up)),
    ("no-content", Plant::Down(no_content)),
    ("structure-as-text", Plant::Down(structure_as_text)),
    ("structure-before-it-existed", Plant::Down(structure_before_it_existed)),
    ("error-flag-lost", Plant::Down(error_flag_lost)),
    ("tool-error-is-protocol-error", Plant::Down(tool_error_is_protocol_error)),
    ("unknown-tool-code", Plant::Down(unknown_tool_code)),
    ("tool-names-in-any-case", Plant::Up(tool_names_in_any_case)),
    ("arguments-made-up", Plant::Up(arguments_made_up)),
    ("numbers-from-text", Plant::Up(numbers_from_text)),
    ("cuts-fractions", Plant::Up(cuts_fractions)),
    ("needs-plain-integers", Plant::Down(needs_plain_integers)),
    ("trims-text", Plant::Up(trims_text)),
    ("url-safe-base64", Plant::Down(url_safe_base64)),
    ("data-uris", Plant::Down(data_uris)),
    ("template-for-uri", Plant::Down(template_for_uri)),
    ("decodes-twice", Plant::Up(decodes_twice)),
    ("decodes-never", Plant::Down(decodes_never)),
    ("uris-in-any-case", Plant::Up(uris_in_any_case)),
    ("missing-is-internal", Plant::Down(missing_is_internal)),
    ("prompt-arguments-made-up", Plant::Up(prompt_arguments_made_up)),
    ("unknown-prompt-is-empty", Plant::Down(unknown_prompt_is_empty)),
    ("roles-of-models", Plant::Down(roles_of_models)),
    ("all-completions", Plant::Down(all_completions)),
    ("always-more", Plant::Down(always_more)),
    ("prefix-ignored", Plant::Up(prefix_ignored)),
    ("context-ignored", Plant::Up(context_ignored)),
    ("completes-anything", Plant::Up(completes_anything)),
];

/// A tool gives what it gave the first time.
fn stale_result(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "tools/call" && is_result(&message) {
        let tool = text(&turn.request, "/params/name").to_owned();
        let first = turn.memory.named.entry(tool).or_insert_with(|| message["result"].clone());
        message["result"] = first.clone();
    }
    turn.on(message);
}

/// Each result of a tool has all earlier ones in it, whoever they were for.
fn results_pile_up(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "tools/call"
        && let Some(Value::Array(content)) = message.pointer_mut("/result/content")
    {
        turn.memory.kept.append(content);
        content.clone_from(&turn.memory.kept);
    }
    turn.on(message);
}

/// A structured result stands alone.
fn no_content(turn: &mut Turn<'_>, mut message: Value) {
    if message.pointer("/result/structuredContent").is_some() {
        take(&mut message, "/result", "content");
    }
    turn.on(message);
}

fn structure_as_text(turn: &mut Turn<'_>, mut message: Value) {
    if let Some(structure) = take(&mut message, "/result", "structuredContent") {
        put(&mut message, "/result", "structuredContent", json!(structure.to_string()));
    }
    turn.on(message);
}

/// Structured results go to every client, whether its revision has them or not.
fn structure_before_it_existed(turn: &mut Turn<'_>, mut message: Value) {
    if calls(&turn.request, "add")
        && is_result(&message)
        && message.pointer("/result/structuredContent").is_none()
    {
        put(&mut message, "/result", "structuredContent", json!({"sum": 0}));
    }
    turn.on(message);
}

/// A tool that failed seems to have succeeded.
fn error_flag_lost(turn: &mut Turn<'_>, mut message: Value) {
    take(&mut message, "/result", "isError");
    turn.on(message);
}

/// A tool that failed breaks the request.
fn tool_error_is_protocol_error(turn: &mut Turn<'_>, mut message: Value) {
    if message.pointer("/result/isError").is_some_and(|failed| *failed == json!(true)) {
        take(&mut message, "", "result");
        put(&mut message, "", "error", json!({"code": -32603, "message": "the tool failed"}));
    }
    turn.on(message);
}

fn unknown_tool_code(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "tools/call" {
        put(&mut message, "/error", "code", json!(-32601));
    }
    turn.on(message);
}

fn tool_names_in_any_case(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message) == "tools/call" {
        let lower = text(&message, "/params/name").to_lowercase();
        put(&mut message, "/params", "name", json!(lower));
    }
    turn.on(message);
}

/// Arguments that are missing have some value.
fn arguments_made_up(turn: &mut Turn<'_>, mut message: Value) {
    for (tool, argument, value) in
        [("echo", "text", json!("")), ("add", "a", json!(0)), ("add", "b", json!(0))]
    {
        if calls(&message, tool) {
            if !message["params"]["arguments"].is_object() {
                put(&mut message, "/params", "arguments", json!({}));
            }
            if message.pointer(&format!("/params/arguments/{argument}")).is_none_or(Value::is_null) {
                put(&mut message, "/params/arguments", argument, value);
            }
        }
    }
    turn.on(message);
}

/// A text of digits is as good as a number.
fn numbers_from_text(turn: &mut Turn<'_>, mut message: Value) {
    if let Some(Value::Object(arguments)) = message.pointer_mut("/params/arguments") {
        for argument in arguments.values_mut() {
            if let Some(number) = argument.as_str().and_then(|text| text.parse::<i64>().ok()) {
                *argument = json!(number);
            }
        }
    }
    turn.on(message);
}

/// Of a number that is to be whole what is behind the point is cut off.
fn cuts_fractions(turn: &mut Turn<'_>, mut message: Value) {
    for argument in ["ms", "n", "seconds", "count"] {
        let number = message.pointer(&format!("/params/arguments/{argument}")).and_then(Value::as_f64);
        if let Some(number) = number {
            #[allow(clippy::cast_possible_truncation)] // that is the fault
            put(&mut message, "/params/arguments", argument, json!(number as i64));
        }
    }
    turn.on(message);
}

/// 5.0 is no whole number.
fn needs_plain_integers(turn: &mut Turn<'_>, mut message: Value) {
    let arguments = turn.request.pointer("/params/arguments").and_then(Value::as_object);
    let whole = |value: &Value| value.is_f64() && value.as_f64().is_some_and(|number| number.fract() == 0.0);
    if (calls(&turn.request, "slow") || calls(&turn.request, "flood"))
        && arguments.is_some_and(|all| all.values().any(whole))
    {
        take(&mut message, "", "result");
        put(&mut message, "", "error", json!({"code": -32602, "message": "no whole number"}));
    }
    turn.on(message);
}

fn trims_text(turn: &mut Turn<'_>, mut message: Value) {
    if calls(&message, "echo") {
        let trimmed: String =
            text(&message, "/params/arguments/text").split_whitespace().collect::<Vec<_>>().join(" ");
        put(&mut message, "/params/arguments", "text", json!(trimmed));
    }
    turn.on(message);
}

/// Does something to each block of content that has bytes.
fn blobs(message: &mut Value, change: fn(&mut Value, &str)) {
    for (place, name) in [("/result/content", "data"), ("/result/contents", "blob")] {
        for block in message.pointer_mut(place).and_then(Value::as_array_mut).into_iter().flatten() {
            if block.get(name).is_some() {
                change(block, name);
            }
        }
    }
}

/// Bytes are written in the alphabet for URLs, without padding.
fn url_safe_base64(turn: &mut Turn<'_>, mut message: Value) {
    blobs(&mut message, |block, name| {
        let data = text(block, &format!("/{name}")).replace('+', "-").replace('/', "_");
        put(block, "", name, json!(data.trim_end_matches('=')));
    });
    turn.on(message);
}

/// Bytes are written as a URI.
fn data_uris(turn: &mut Turn<'_>, mut message: Value) {
    blobs(&mut message, |block, name| {
        let data = format!("data:{};base64,{}", text(block, "/mimeType"), text(block, &format!("/{name}")));
        put(block, "", name, json!(data));
    });
    turn.on(message);
}

/// What a template gives bears the template in place of the URI.
fn template_for_uri(turn: &mut Turn<'_>, mut message: Value) {
    if text(&turn.request, "/params/uri").starts_with("test://template/") {
        put(&mut message, "/result/contents/0", "uri", json!("test://template/{id}/data"));
    }
    turn.on(message);
}

fn decodes_twice(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message) == "resources/read" {
        let once = text(&message, "/params/uri").replace("%25", "%");
        put(&mut message, "/params", "uri", json!(once));
    }
    turn.on(message);
}

/// A variable of a template is taken as it stands in the URI.
fn decodes_never(turn: &mut Turn<'_>, mut message: Value) {
    let uri = text(&turn.request, "/params/uri");
    let variable = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    if let Some(variable) = variable.filter(|variable| variable.contains('%')) {
        let data = json!({"id": variable, "templateTest": true, "data": format!("Data for ID: {variable}")});
        put(&mut message, "/result/contents/0", "text", json!(data.to_string()));
    }
    turn.on(message);
}

fn uris_in_any_case(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message) == "resources/read" {
        let lower = text(&message, "/params/uri").to_lowercase().trim_end_matches('/').to_owned();
        put(&mut message, "/params", "uri", json!(lower));
    }
    turn.on(message);
}

fn missing_is_internal(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "resources/read" {
        put(&mut message, "/error", "code", json!(-32603));
    }
    turn.on(message);
}

/// Arguments that a prompt needs and did not get are empty.
fn prompt_arguments_made_up(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message) == "prompts/get" {
        if message.pointer("/params/arguments").is_none() {
            put(&mut message, "/params", "arguments", json!({}));
        }
        for name in ["arg1", "arg2", "tone", "resourceUri"] {
            if message.pointer("/params/arguments").is_some_and(|all| all.get(name).is_none()) {
                put(&mut message, "/params/arguments", name, json!(""));
            }
        }
    }
    turn.on(message);
}

fn unknown_prompt_is_empty(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "prompts/get" && take(&mut message, "", "error").is_some() {
        put(&mut message, "", "result", json!({"messages": []}));
    }
    turn.on(message);
}

/// Messages of prompts have the role that models know.
fn roles_of_models(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "prompts/get" {
        put(&mut message, "/result/messages/0", "role", json!("system"));
    }
    turn.on(message);
}

/// There is no end to what is suggested.
fn all_completions(turn: &mut Turn<'_>, mut message: Value) {
    if let Some(Value::Array(values)) = message.pointer_mut("/result/completion/values")
        && values.len() == 100
    {
        values.extend((100..150).map(|at| json!(format!("user{at}"))));
        put(&mut message, "/result/completion", "hasMore", json!(false));
    }
    turn.on(message);
}

fn always_more(turn: &mut Turn<'_>, mut message: Value) {
    put(&mut message, "/result/completion", "hasMore", json!(true));
    turn.on(message);
}

fn prefix_ignored(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message) == "completion/complete" && message.pointer("/params/argument/value").is_some() {
        put(&mut message, "/params/argument", "value", json!(""));
    }
    turn.on(message);
}

fn context_ignored(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message) == "completion/complete" {
        take(&mut message, "/params", "context");
    }
    turn.on(message);
}

/// What there is not has no suggestions, and that is no error.
fn completes_anything(turn: &mut Turn<'_>, message: Value) {
    let place = ["/params/ref/name", "/params/ref/uri"].map(|place| text(&message, place)).concat();
    if method(&message) == "completion/complete" && (place.contains("no-such") || place.contains("unknown")) {
        let mut nothing = json!({"completion": {"values": []}});
        if super::message::is_modern(&message) {
            put(&mut nothing, "", "resultType", json!("complete"));
        }
        return answer(turn, &message, nothing);
    }
    turn.on(message);
}
