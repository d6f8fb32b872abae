//! Faults of lists: their pages, their entries, and how long they hold.

use serde_json::{Value, json};

use super::message::{is_result, lists, method, put, take};
use super::{Plant, Turn};

pub(super) const FAULTS: &[(&str, Plant)] = &[
    ("last-page-goes-on", Plant::Down(last_page_goes_on)),
    ("first-page-again", Plant::Up(first_page_again)),
    ("empty-cursor-is-none", Plant::Up(empty_cursor_is_none)),
    ("bad-cursor-is-none", Plant::Up(bad_cursor_is_none)),
    ("bad-cursor-is-internal", Plant::Down(bad_cursor_is_internal)),
    ("scope-by-page", Plant::Down(scope_by_page)),
    ("lifetime-as-text", Plant::Down(lifetime_as_text)),
    ("scope-of-another-word", Plant::Down(scope_of_another_word)),
    ("reads-without-hints", Plant::Down(reads_without_hints)),
    ("order-changes", Plant::Down(order_changes)),
    ("list-follows-calls", Plant::Down(list_follows_calls)),
    ("prompts-follow-calls", Plant::Down(prompts_follow_calls)),
    ("tool-twice", Plant::Down(tool_twice)),
    ("schema-of-no-object", Plant::Down(schema_of_no_object)),
    ("nameless-resource", Plant::Down(nameless_resource)),
    ("templates-as-resources", Plant::Down(templates_as_resources)),
    ("titles-before-they-existed", Plant::Down(titles_before_they_existed)),
    ("arguments-as-names", Plant::Down(arguments_as_names)),
];

/// The result of a list, with the name of the member that holds it.
fn of_list<'m>(turn: &Turn<'_>, message: &'m mut Value, wanted: &str) -> Option<&'m mut Vec<Value>> {
    let member = match wanted {
        "resources/templates/list" => "resourceTemplates",
        "resources/list" => "resources",
        "prompts/list" => "prompts",
        _ => "tools",
    };
    if method(&turn.request) != wanted {
        return None;
    }
    message.get_mut("result")?.get_mut(member)?.as_array_mut()
}

/// The last page names a cursor, too: that of the end.
fn last_page_goes_on(turn: &mut Turn<'_>, mut message: Value) {
    if lists(&turn.request) && is_result(&message) && message["result"].get("nextCursor").is_none() {
        put(&mut message, "/result", "nextCursor", json!(""));
    }
    turn.on(message);
}

/// Whatever the cursor, the first page is given.
fn first_page_again(turn: &mut Turn<'_>, mut message: Value) {
    if lists(&message) {
        take(&mut message, "/params", "cursor");
    }
    turn.on(message);
}

fn empty_cursor_is_none(turn: &mut Turn<'_>, mut message: Value) {
    if message.pointer("/params/cursor").is_some_and(|cursor| cursor == "") {
        take(&mut message, "/params", "cursor");
    }
    turn.on(message);
}

/// A cursor that was not given out stands for the start.
fn bad_cursor_is_none(turn: &mut Turn<'_>, mut message: Value) {
    if message
        .pointer("/params/cursor")
        .is_some_and(|cursor| cursor.as_str().is_none_or(|text| text.len() < 30))
    {
        take(&mut message, "/params", "cursor");
    }
    turn.on(message);
}

fn bad_cursor_is_internal(turn: &mut Turn<'_>, mut message: Value) {
    if lists(&turn.request) {
        put(&mut message, "/error", "code", json!(-32603));
    }
    turn.on(message);
}

/// Pages after the first may be shared, the first may not.
fn scope_by_page(turn: &mut Turn<'_>, mut message: Value) {
    if lists(&turn.request) && is_result(&message) {
        let later = turn.request.pointer("/params/cursor").is_some();
        put(&mut message, "/result", "cacheScope", json!(if later { "public" } else { "private" }));
    }
    turn.on(message);
}

fn lifetime_as_text(turn: &mut Turn<'_>, mut message: Value) {
    if let Some(time) = take(&mut message, "/result", "ttlMs") {
        put(&mut message, "/result", "ttlMs", json!(time.to_string()));
    }
    turn.on(message);
}

fn scope_of_another_word(turn: &mut Turn<'_>, mut message: Value) {
    if message.pointer("/result/cacheScope").is_some() {
        put(&mut message, "/result", "cacheScope", json!("shared"));
    }
    turn.on(message);
}

fn reads_without_hints(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "resources/read" {
        take(&mut message, "/result", "ttlMs");
        take(&mut message, "/result", "cacheScope");
    }
    turn.on(message);
}

/// Tools are listed in another order each time.
fn order_changes(turn: &mut Turn<'_>, mut message: Value) {
    if let Some(tools) = of_list(turn, &mut message, "tools/list") {
        let by = turn.memory.count % tools.len().max(1) as u64;
        tools.rotate_left(usize::try_from(by).unwrap_or_default());
        turn.memory.count += 1;
    }
    turn.on(message);
}

/// A tool that was called is no longer listed.
fn list_follows_calls(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "tools/call" {
        let called = turn.request["params"]["name"].clone();
        turn.memory.kept.push(called);
    }
    if let Some(tools) = of_list(turn, &mut message, "tools/list") {
        tools.retain(|tool| !turn.memory.kept.contains(&tool["name"]));
    }
    turn.on(message);
}

/// A prompt that was asked for is no longer listed.
fn prompts_follow_calls(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "prompts/get" {
        let asked = turn.request["params"]["name"].clone();
        turn.memory.kept.push(asked);
    }
    if let Some(prompts) = of_list(turn, &mut message, "prompts/list") {
        prompts.retain(|prompt| !turn.memory.kept.contains(&prompt["name"]));
    }
    turn.on(message);
}

fn tool_twice(turn: &mut Turn<'_>, mut message: Value) {
    if let Some(tools) = of_list(turn, &mut message, "tools/list")
        && let Some(first) = tools.first().cloned()
    {
        tools.push(first);
    }
    turn.on(message);
}

/// Tools without arguments are listed with a schema that takes anything.
fn schema_of_no_object(turn: &mut Turn<'_>, mut message: Value) {
    for tool in of_list(turn, &mut message, "tools/list").into_iter().flatten() {
        if tool.pointer("/inputSchema/properties").is_none_or(|all| *all == json!({})) {
            put(tool, "", "inputSchema", json!({}));
        }
    }
    turn.on(message);
}

fn nameless_resource(turn: &mut Turn<'_>, mut message: Value) {
    for resource in of_list(turn, &mut message, "resources/list").into_iter().flatten() {
        take(resource, "", "name");
    }
    turn.on(message);
}

/// Templates stand among the resources.
fn templates_as_resources(turn: &mut Turn<'_>, mut message: Value) {
    if let Some(resources) = of_list(turn, &mut message, "resources/list") {
        resources.push(json!({"uri": "test://template/{id}/data", "name": "template"}));
    }
    turn.on(message);
}

/// Titles are sent to clients of revisions that had none.
fn titles_before_they_existed(turn: &mut Turn<'_>, mut message: Value) {
    if !super::message::is_modern(&turn.request) {
        for tool in of_list(turn, &mut message, "tools/list").into_iter().flatten() {
            put(tool, "", "title", json!("A tool"));
        }
    }
    turn.on(message);
}

/// The arguments of a prompt are listed by their names alone.
fn arguments_as_names(turn: &mut Turn<'_>, mut message: Value) {
    for prompt in of_list(turn, &mut message, "prompts/list").into_iter().flatten() {
        if let Some(Value::Array(arguments)) = prompt.get_mut("arguments") {
            arguments.iter_mut().for_each(|argument| *argument = argument["name"].take());
        }
    }
    turn.on(message);
}
