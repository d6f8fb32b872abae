//! Faults of what happens meanwhile: order, progress, cancellation, logs, and changes that are told.

use serde_json::{Value, json};

use super::message::{is_modern, is_request, key, method, notification, put, take, text};
use super::{Plant, Turn};

pub(super) const FAULTS: &[(&str, Plant)] = &[
    ("one-at-a-time", Plant::Both(one_at_a_time, next_in_line)),
    ("progress-out-of-order", Plant::Down(progress_out_of_order)),
    ("progress-stands-still", Plant::Down(progress_stands_still)),
    ("progress-after-the-result", Plant::Down(progress_after_the_result)),
    ("progress-token-as-text", Plant::Down(progress_token_as_text)),
    ("falsy-token-is-none", Plant::Up(falsy_token_is_none)),
    ("progress-to-all", Plant::Up(progress_to_all)),
    ("progress-of-another", Plant::Down(progress_of_another)),
    ("deaf-to-cancellation", Plant::Up(deaf_to_cancellation)),
    ("cancels-by-look", Plant::Up(cancels_by_look)),
    ("falsy-id-cannot-be-cancelled", Plant::Up(falsy_id_cannot_be_cancelled)),
    ("answers-after-cancellation", Plant::Up(answers_after_cancellation)),
    ("unknown-cancellation-refused", Plant::Up(unknown_cancellation_refused)),
    ("logs-each-request", Plant::Up(logs_each_request)),
    ("level-is-debug", Plant::Up(level_is_debug)),
    ("level-stays", Plant::Up(level_stays)),
    ("any-level", Plant::Up(any_level)),
    ("logs-without-level", Plant::Down(logs_without_level)),
    ("change-untagged", Plant::Down(change_untagged)),
    ("tag-as-text", Plant::Down(tag_as_text)),
    ("change-before-acknowledgment", Plant::Down(change_before_acknowledgment)),
    ("acknowledges-everything", Plant::Down(acknowledges_everything)),
    ("listens-to-everything", Plant::Up(listens_to_everything)),
    ("changes-to-all", Plant::Down(changes_to_all)),
    ("unsubscribes-nothing", Plant::Up(unsubscribes_nothing)),
    ("changes-lost", Plant::Down(changes_lost)),
];

/// A request waits until the one before is answered.
fn one_at_a_time(turn: &mut Turn<'_>, message: Value) {
    if is_request(&message) {
        turn.memory.count += 1;
        if turn.memory.count > 1 {
            return turn.memory.kept.push(message);
        }
    }
    turn.on(message);
}

fn next_in_line(turn: &mut Turn<'_>, message: Value) {
    if message.get("method").is_none() && message.get("id").is_some() {
        turn.memory.count = turn.memory.count.saturating_sub(1);
        if !turn.memory.kept.is_empty() {
            let next = turn.memory.kept.remove(0);
            turn.back(next);
        }
    }
    turn.on(message);
}

fn is_progress(message: &Value) -> bool {
    method(message) == "notifications/progress"
}

/// Every second report overtakes the one before.
fn progress_out_of_order(turn: &mut Turn<'_>, message: Value) {
    if is_progress(&message) && turn.memory.kept.is_empty() {
        return turn.memory.kept.push(message);
    }
    turn.on(message);
    let held: Vec<_> = turn.memory.kept.drain(..).collect();
    held.into_iter().for_each(|message| turn.on(message));
}

fn progress_stands_still(turn: &mut Turn<'_>, mut message: Value) {
    if is_progress(&message) {
        put(&mut message, "/params", "progress", json!(1));
    }
    turn.on(message);
}

/// The last report comes behind the response.
fn progress_after_the_result(turn: &mut Turn<'_>, message: Value) {
    if is_progress(&message) {
        let before = turn.memory.kept.pop();
        turn.memory.kept.push(message);
        return before.into_iter().for_each(|message| turn.on(message));
    }
    turn.on(message);
    let held = turn.memory.kept.pop();
    held.into_iter().for_each(|message| turn.on(message));
}

fn progress_token_as_text(turn: &mut Turn<'_>, mut message: Value) {
    if is_progress(&message) {
        let token = message["params"]["progressToken"].to_string();
        put(&mut message, "/params", "progressToken", json!(token.trim_matches('"')));
    }
    turn.on(message);
}

/// A token that is zero or empty counts as none.
fn falsy_token_is_none(turn: &mut Turn<'_>, mut message: Value) {
    let token = message.pointer("/params/_meta/progressToken");
    if token.is_some_and(|token| *token == json!(0) || *token == json!("")) {
        take(&mut message, "/params/_meta", "progressToken");
    }
    turn.on(message);
}

/// Requests that want no progress get some, under a token that was made up.
fn progress_to_all(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message) == "tools/call" && message.pointer("/params/_meta/progressToken").is_none() {
        if message.pointer("/params/_meta").is_none() {
            put(&mut message, "/params", "_meta", json!({}));
        }
        put(&mut message, "/params/_meta", "progressToken", json!("made-up"));
    }
    turn.on(message);
}

/// Of two calls in flight all reports bear the token of the first.
fn progress_of_another(turn: &mut Turn<'_>, mut message: Value) {
    if is_progress(&message) {
        let token = message["params"]["progressToken"].clone();
        let first = turn.memory.named.entry("token".to_owned()).or_insert(token).clone();
        put(&mut message, "/params", "progressToken", first);
    }
    turn.on(message);
}

fn is_cancellation(message: &Value) -> bool {
    method(message) == "notifications/cancelled"
}

fn deaf_to_cancellation(turn: &mut Turn<'_>, message: Value) {
    if !is_cancellation(&message) {
        turn.on(message);
    }
}

/// The id "7" cancels the request 7.
fn cancels_by_look(turn: &mut Turn<'_>, mut message: Value) {
    if is_cancellation(&message)
        && let Ok(number) = text(&message, "/params/requestId").parse::<i64>()
    {
        put(&mut message, "/params", "requestId", json!(number));
    }
    turn.on(message);
}

fn falsy_id_cannot_be_cancelled(turn: &mut Turn<'_>, message: Value) {
    let id = message.pointer("/params/requestId");
    let falsy = id.is_some_and(|id| *id == json!(0) || *id == json!(""));
    if !(is_cancellation(&message) && falsy) {
        turn.on(message);
    }
}

/// A call that is cancelled is answered with an error.
fn answers_after_cancellation(turn: &mut Turn<'_>, message: Value) {
    if is_cancellation(&message) {
        let id = message["params"]["requestId"].clone();
        if turn.memory.pending.contains_key(&id.to_string()) {
            turn.back(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32800, "message": "cancelled"}}));
        }
    }
    turn.on(message);
}

/// A cancellation that names no request in flight is answered with an error.
fn unknown_cancellation_refused(turn: &mut Turn<'_>, message: Value) {
    if is_cancellation(&message) {
        let id = message["params"]["requestId"].to_string();
        if !turn.memory.pending.contains_key(&id) {
            turn.back(
                json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32602, "message": "no such id"}}),
            );
        }
    }
    turn.on(message);
}

/// The log has a line for each request, whoever wants to read it.
fn logs_each_request(turn: &mut Turn<'_>, message: Value) {
    if is_request(&message) && is_modern(&message) {
        turn.back(notification("notifications/message", json!({"level": "info", "data": method(&message)})));
    }
    turn.on(message);
}

fn level_is_debug(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message) == "logging/setLevel" && message.pointer("/params/level").is_some() {
        put(&mut message, "/params", "level", json!("debug"));
    }
    turn.on(message);
}

/// The level that one request asked for counts for those after it.
fn level_stays(turn: &mut Turn<'_>, mut message: Value) {
    const LEVEL: &str = "io.modelcontextprotocol/logLevel";
    if is_modern(&message) {
        match message.pointer("/params/_meta").and_then(|meta| meta.get(LEVEL)).cloned() {
            Some(level) => {
                turn.memory.named.insert(LEVEL.to_owned(), level);
            }
            None => {
                if let Some(level) = turn.memory.named.get(LEVEL).cloned() {
                    put(&mut message, "/params/_meta", LEVEL, level);
                }
            }
        }
    }
    turn.on(message);
}

fn any_level(turn: &mut Turn<'_>, mut message: Value) {
    const LEVELS: [&str; 8] =
        ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    if method(&message) == "logging/setLevel" && !LEVELS.contains(&text(&message, "/params/level")) {
        put(&mut message, "/params", "level", json!("info"));
    }
    turn.on(message);
}

fn logs_without_level(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message) == "notifications/message" {
        take(&mut message, "/params", "level");
    }
    turn.on(message);
}

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

fn tags(message: &Value) -> bool {
    message.get("method").is_some()
        && message.pointer("/params/_meta").is_some_and(|meta| meta.get(TAG).is_some())
}

/// A change does not say which subscription it belongs to.
fn change_untagged(turn: &mut Turn<'_>, mut message: Value) {
    if tags(&message) && !method(&message).ends_with("acknowledged") {
        take(&mut message, "/params", "_meta");
    }
    turn.on(message);
}

/// The id of a subscription comes back as a string whatever it was.
fn tag_as_text(turn: &mut Turn<'_>, mut message: Value) {
    if tags(&message) {
        let tag = message["params"]["_meta"][TAG].to_string();
        put(&mut message, "/params/_meta", TAG, json!(tag.trim_matches('"')));
    }
    turn.on(message);
}

/// A subscription begins with a change, then comes its acknowledgment.
fn change_before_acknowledgment(turn: &mut Turn<'_>, message: Value) {
    if method(&message).ends_with("/acknowledged") {
        let meta = message["params"]["_meta"].clone();
        let asked = message["params"]["notifications"].clone();
        if asked.get("toolsListChanged").is_some() {
            turn.on(notification("notifications/tools/list_changed", json!({"_meta": meta})));
        }
    }
    turn.on(message);
}

/// The acknowledgment names more than was asked for.
fn acknowledges_everything(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message).ends_with("/acknowledged") {
        put(&mut message, "/params/notifications", "promptsListChanged", json!(true));
        put(&mut message, "/params/notifications", "toolsListChanged", json!(true));
    }
    turn.on(message);
}

/// A subscription to one resource hears of all.
fn listens_to_everything(turn: &mut Turn<'_>, mut message: Value) {
    if method(&message) == "subscriptions/listen"
        && let Some(Value::Array(uris)) = message.pointer_mut("/params/notifications/resourceSubscriptions")
    {
        uris.push(json!("config://app"));
    }
    turn.on(message);
}

/// Changes of resources are told to all, subscribed or not.
fn changes_to_all(turn: &mut Turn<'_>, message: Value) {
    let touched = super::message::calls(&turn.request, "touch") && !is_modern(&turn.request);
    turn.on(message);
    if touched {
        turn.on(notification("notifications/resources/updated", json!({"uri": "config://app"})));
    }
}

fn unsubscribes_nothing(turn: &mut Turn<'_>, message: Value) {
    if method(&message) == "resources/unsubscribe" {
        return super::envelope::answer(turn, &message, json!({}));
    }
    turn.on(message);
}

/// Of two changes the second is not told.
fn changes_lost(turn: &mut Turn<'_>, message: Value) {
    if method(&message).ends_with("/updated") || method(&message).ends_with("list_changed") {
        let id = format!("{}{}", method(&message), key(&message));
        if turn.memory.texts.insert(id, String::new()).is_some() {
            return;
        }
    }
    turn.on(message);
}
