//! Faults of lines, ids, and the frame around what is said.
#![allow(clippy::ptr_arg, reason = "the type of what a fault does with a line")]

use serde_json::{Value, json};

use super::message::{calls, error, is_request, is_result, key, method, put, result, take, texts};
use super::stdio::Ending;
use super::{Memory, Passage, Plant, Turn};

pub(super) const FAULTS: &[(&str, Plant)] = &[
    ("numbers-as-doubles", Plant::Down(numbers_as_doubles)),
    ("falsy-id-is-none", Plant::Up(falsy_id_is_none)),
    ("empty-method-is-a-response", Plant::Up(empty_method_is_a_response)),
    ("id-in-use-replaces", Plant::Both(id_in_use_begins, id_in_use_replaces)),
    ("crossed-answers", Plant::Down(crossed_answers)),
    ("late-line", Plant::Down(late_line)),
    ("numbered-notifications", Plant::Down(numbered_notifications)),
    ("wordless-errors", Plant::Down(wordless_errors)),
    ("errors-are-results", Plant::Down(errors_are_results)),
    ("notifications-answered", Plant::Up(notifications_answered)),
    ("any-case-of-method", Plant::Up(any_case_of_method)),
    ("last-look-alike-counts", Plant::Up(last_look_alike_counts)),
    ("pretty-printed", Plant::Output(pretty_printed)),
    ("log-line-a-request", Plant::Output(log_line_a_request)),
    ("cut-at-64-kib", Plant::Line(cut_at_64_kib)),
    ("ends-at-a-blank-line", Plant::Line(ends_at_a_blank_line)),
    ("ends-at-bad-utf-8", Plant::Line(ends_at_bad_utf_8)),
    ("ends-at-what-is-no-json", Plant::Line(ends_at_what_is_no_json)),
    ("replaces-beyond-the-plane", Plant::Down(replaces_beyond_the_plane)),
    ("batch-lost", Plant::Line(batch_lost)),
    ("batch-unpacked", Plant::Line(batch_unpacked)),
    ("abrupt-end", Plant::End(Ending::Abrupt)),
    ("never-ends", Plant::End(Ending::Stays)),
    ("ends-with-code-1", Plant::End(Ending::Code(1))),
];

/// Ids pass through a floating point number.
fn numbers_as_doubles(turn: &mut Turn<'_>, mut message: Value) {
    if let Some(id) = message.get("id").and_then(Value::as_i64) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // that is the fault
        let rounded = id as f64 as i64;
        message["id"] = json!(rounded);
    }
    turn.on(message);
}

/// A request whose id is zero or empty is taken for a notification.
fn falsy_id_is_none(turn: &mut Turn<'_>, message: Value) {
    let falsy = message.get("id").is_some_and(|id| *id == json!(0) || *id == json!(""));
    if !(falsy && is_request(&message)) {
        turn.on(message);
    }
}

fn empty_method_is_a_response(turn: &mut Turn<'_>, message: Value) {
    if message.get("method").is_none_or(|method| method != "") {
        turn.on(message);
    }
}

/// A second request under an id in flight takes the place of the first, whose answer is lost.
fn id_in_use_begins(turn: &mut Turn<'_>, message: Value) {
    if is_request(&message) {
        let open = turn.memory.named.entry(key(&message)).or_insert_with(|| json!(0));
        *open = json!(open.as_u64().unwrap_or_default() + 1);
    }
    turn.on(message);
}

fn id_in_use_replaces(turn: &mut Turn<'_>, message: Value) {
    if message.get("method").is_none()
        && let Some(open) = turn.memory.named.get_mut(&key(&message))
    {
        let left = open.as_u64().unwrap_or_default();
        *open = json!(left.saturating_sub(1));
        if left > 1 {
            return;
        }
    }
    turn.on(message);
}

/// Of two requests in flight each gets the answer of the other.
fn crossed_answers(turn: &mut Turn<'_>, mut message: Value) {
    if is_result(&message) {
        let own = key(&message);
        let other = turn.memory.texts.remove(&own).or_else(|| {
            let mut others = turn.memory.pending.keys().filter(|id| !turn.memory.texts.contains_key(*id));
            let other = others.next().cloned()?;
            turn.memory.texts.insert(other.clone(), own);
            Some(other)
        });
        if let Some(id) = other.and_then(|id| serde_json::from_str(&id).ok()) {
            message["id"] = id;
        }
    }
    turn.on(message);
}

/// What a tool gives, and a pong, is written when there is more to write.
fn late_line(turn: &mut Turn<'_>, message: Value) {
    if matches!(method(&turn.request), "ping" | "tools/call") && turn.memory.kept.is_empty() {
        return turn.memory.kept.push(message);
    }
    turn.memory.kept.pop().into_iter().for_each(|message| turn.onward.push(message));
    turn.on(message);
}

fn numbered_notifications(turn: &mut Turn<'_>, mut message: Value) {
    if message.get("id").is_none() && method(&message).starts_with("notifications/") {
        message["id"] = json!(turn.memory.count);
        turn.memory.count += 1;
    }
    turn.on(message);
}

fn wordless_errors(turn: &mut Turn<'_>, mut message: Value) {
    take(&mut message, "/error", "message");
    turn.on(message);
}

/// What went wrong is told in a result.
fn errors_are_results(turn: &mut Turn<'_>, mut message: Value) {
    if let Some(error) = take(&mut message, "", "error") {
        put(&mut message, "", "result", json!({"error": error}));
    }
    turn.on(message);
}

fn notifications_answered(turn: &mut Turn<'_>, message: Value) {
    if message.get("id").is_none() && method(&message).starts_with("notifications/") {
        turn.back(result(&json!({"id": null}), json!({})));
    }
    turn.on(message);
}

fn any_case_of_method(turn: &mut Turn<'_>, mut message: Value) {
    let lower = method(&message).to_lowercase();
    if ["tools/list", "tools/call", "server/discover", "ping"].contains(&lower.as_str()) {
        put(&mut message, "", "method", json!(lower));
    }
    turn.on(message);
}

/// Members are read without regard to letter case, the last one counts.
fn last_look_alike_counts(turn: &mut Turn<'_>, mut message: Value) {
    for place in ["", "/params"] {
        let Some(Value::Object(members)) = message.pointer_mut(place) else { continue };
        for name in ["method", "name", "arguments"] {
            let alike =
                |known: &&String| *known != name && known.to_lowercase().trim_end_matches('\0') == name;
            let found = members.keys().find(alike).cloned();
            if let Some(value) = found.and_then(|known| members.remove(&known)) {
                members.insert(name.to_owned(), value);
            }
        }
    }
    turn.on(message);
}

/// What a tool gives has line ends inside.
fn pretty_printed(_: &mut Memory, line: &mut Vec<u8>) {
    let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
    if let (Some(_), Ok(mut pretty)) =
        (message.pointer("/result/content"), serde_json::to_vec_pretty(&message))
    {
        pretty.push(b'\n');
        *line = pretty;
    }
}

/// Standard output has a log, too.
fn log_line_a_request(memory: &mut Memory, line: &mut Vec<u8>) {
    memory.count += 1;
    line.extend_from_slice(format!("[info] {} messages written\n", memory.count).as_bytes());
}

/// A line is read into a buffer of 64 KiB, and what does not fit is lost.
fn cut_at_64_kib(_: &mut Memory, line: &mut Vec<u8>) -> Passage {
    if line.len() > 64 << 10 { Passage::Lost } else { Passage::Passes }
}

fn ends_at_a_blank_line(_: &mut Memory, line: &mut Vec<u8>) -> Passage {
    if line.trim_ascii().is_empty() { Passage::Fatal(0) } else { Passage::Passes }
}

fn ends_at_bad_utf_8(_: &mut Memory, line: &mut Vec<u8>) -> Passage {
    if std::str::from_utf8(line).is_err() { Passage::Fatal(101) } else { Passage::Passes }
}

fn ends_at_what_is_no_json(_: &mut Memory, line: &mut Vec<u8>) -> Passage {
    let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    let broken = std::str::from_utf8(text).is_ok() && serde_json::from_slice::<Value>(text).is_err();
    if broken && !text.is_empty() { Passage::Fatal(1) } else { Passage::Passes }
}

/// Characters of four bytes come back as replacements.
fn replaces_beyond_the_plane(turn: &mut Turn<'_>, mut message: Value) {
    if calls(&turn.request, "echo") {
        texts(&mut message, &mut |text| *text = text.replace(|c: char| c.len_utf8() == 4, "\u{fffd}"));
    }
    turn.on(message);
}

/// Batches get no answer even where they exist.
fn batch_lost(_: &mut Memory, line: &mut Vec<u8>) -> Passage {
    if line.trim_ascii().starts_with(b"[") { Passage::Lost } else { Passage::Passes }
}

/// The messages of an array run, whatever the revision.
fn batch_unpacked(_: &mut Memory, line: &mut Vec<u8>) -> Passage {
    if let Ok(Value::Array(messages)) = serde_json::from_slice(line) {
        let lines = messages.iter().flat_map(|message| format!("{message}\n").into_bytes());
        *line = lines.collect();
    }
    Passage::Passes
}

/// Says no to a request in place of the fixture.
pub(super) fn refuse(turn: &mut Turn<'_>, request: &Value, code: i64) {
    turn.memory.pending.remove(&key(request));
    turn.back(error(request, code));
}

/// Answers a request in place of the fixture.
pub(super) fn answer(turn: &mut Turn<'_>, request: &Value, members: Value) {
    turn.memory.pending.remove(&key(request));
    turn.back(result(request, members));
}
