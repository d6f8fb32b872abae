//! Faults of statuses, headers and sessions over HTTP.

use serde_json::{Value, json};

use super::message::{error, is_modern, is_request, key, method, put, take};
use super::web::{Answered, Asked, header, replace};
use super::{Memory, Plant};

const SESSION: &str = "Mcp-Session-Id";

pub(super) const FAULTS: &[(&str, Plant)] = &[
    ("unknown-method-400", Plant::Answer(unknown_method_400)),
    ("errors-500", Plant::Answer(errors_500)),
    ("no-body-in-refusals", Plant::Answer(no_body_in_refusals)),
    ("capability-200", Plant::Answer(capability_200)),
    ("notification-201", Plant::Answer(notification_201)),
    ("refused-notification-202", Plant::Answer(refused_notification_202)),
    ("streams-of-bytes", Plant::Answer(streams_of_bytes)),
    ("stream-404", Plant::Ask(stream_404)),
    ("put-is-post", Plant::Ask(put_is_post)),
    ("modern-get-opens", Plant::Ask(modern_get_opens)),
    ("modern-delete-accepted", Plant::Ask(modern_delete_accepted)),
    ("session-numbers", Plant::Exchange(number_to_session, session_to_number)),
    ("session-survives", Plant::Ask(session_survives)),
    ("sessions-for-all-requests", Plant::Answer(sessions_for_all_requests)),
    ("answers-from-a-cache", Plant::Exchange(cached, cache)),
    ("answers-by-id", Plant::Answer(answers_by_id)),
    ("one-map-of-ids", Plant::Exchange(one_map_begins, one_map_ends)),
    ("cancels-in-any-session", Plant::Exchange(cancels_in_any_session, note_session)),
    ("disconnect-ignored", Plant::Ask(disconnect_ignored)),
    ("resumption-forgets", Plant::Ask(resumption_forgets)),
    ("challenge-lost", Plant::Answer(challenge_lost)),
    ("scope-is-401", Plant::Answer(scope_is_401)),
    ("challenge-without-scope", Plant::Answer(challenge_without_scope)),
    ("metadata-without-issuer", Plant::Answer(metadata_without_issuer)),
    ("metadata-for-members", Plant::Ask(metadata_for_members)),
];

fn code(answered: &Answered) -> Option<i64> {
    serde_json::from_slice::<Value>(&answered.body).ok()?.pointer("/error/code")?.as_i64()
}

fn unknown_method_400(_: &Asked, answered: &mut Answered, _: &mut Memory) {
    if answered.status == 404 && code(answered) == Some(-32601) {
        answered.status = 400;
    }
}

/// What is the client's fault is called the server's.
fn errors_500(_: &Asked, answered: &mut Answered, _: &mut Memory) {
    if code(answered).is_some() {
        answered.status = 500;
    }
}

/// A refusal is a status alone.
fn no_body_in_refusals(_: &Asked, answered: &mut Answered, _: &mut Memory) {
    if answered.status >= 400 {
        answered.body.clear();
        replace(&mut answered.headers, "Content-Type", None);
    }
}

fn capability_200(_: &Asked, answered: &mut Answered, _: &mut Memory) {
    if code(answered) == Some(-32021) {
        answered.status = 200;
    }
}

fn notification_201(_: &Asked, answered: &mut Answered, _: &mut Memory) {
    if answered.status == 202 {
        answered.status = 201;
    }
}

/// A notification is accepted even where it is refused.
fn refused_notification_202(asked: &Asked, answered: &mut Answered, _: &mut Memory) {
    if method(&asked.message).starts_with("notifications/") && answered.status >= 400 {
        *answered = Answered::empty(202);
    }
}

fn streams_of_bytes(_: &Asked, answered: &mut Answered, _: &mut Memory) {
    if answered.is_stream() {
        replace(&mut answered.headers, "Content-Type", Some("application/octet-stream"));
    }
}

/// There is no stream of a session, and the endpoint is said not to be there.
fn stream_404(asked: &mut Asked, _: &mut Memory) {
    if asked.method == "GET" && header(&asked.headers, SESSION).is_some() {
        asked.reply = Some(Answered::empty(404));
    }
}

fn put_is_post(asked: &mut Asked, _: &mut Memory) {
    if asked.method == "PUT" || asked.method == "PATCH" {
        asked.method = "POST".to_owned();
        let (name, version) = (method(&asked.message).to_owned(), "2026-07-28");
        replace(&mut asked.headers, "Mcp-Method", Some(&name));
        replace(&mut asked.headers, "MCP-Protocol-Version", Some(version));
    }
}

fn is_without_session(asked: &Asked, method: &str) -> bool {
    asked.method == method && header(&asked.headers, SESSION).is_none() && asked.target.starts_with("/mcp")
}

/// A GET without a session opens a stream.
fn modern_get_opens(asked: &mut Asked, _: &mut Memory) {
    if is_without_session(asked, "GET") {
        let mut stream = Answered::empty(200);
        stream.headers.push(("Content-Type".to_owned(), "text/event-stream".to_owned()));
        asked.reply = Some(stream);
    }
}

/// A DELETE without a session is accepted.
fn modern_delete_accepted(asked: &mut Asked, _: &mut Memory) {
    if is_without_session(asked, "DELETE") {
        asked.reply = Some(Answered::empty(204));
    }
}

/// Sessions are numbered from 1.
fn session_to_number(_: &Asked, answered: &mut Answered, memory: &mut Memory) {
    let Some(session) = header(&answered.headers, SESSION).map(str::to_owned) else { return };
    let known = memory.texts.iter().find(|(_, known)| **known == session).map(|(number, _)| number.clone());
    let number = known.unwrap_or_else(|| (memory.texts.len() + 1).to_string());
    replace(&mut answered.headers, SESSION, Some(&number));
    memory.texts.insert(number, session);
}

fn number_to_session(asked: &mut Asked, memory: &mut Memory) {
    let session = header(&asked.headers, SESSION).and_then(|number| memory.texts.get(number));
    if let Some(session) = session {
        replace(&mut asked.headers, SESSION, Some(session));
    }
}

/// The end of a session is confirmed, and the session goes on.
fn session_survives(asked: &mut Asked, _: &mut Memory) {
    if asked.method == "DELETE" {
        asked.reply = Some(Answered::empty(204));
    }
}

/// Every answer to a modern request opens a session.
fn sessions_for_all_requests(asked: &Asked, answered: &mut Answered, memory: &mut Memory) {
    if is_modern(&asked.message) {
        memory.count += 1;
        let session = format!("0123456789abcdef-{}", memory.count);
        replace(&mut answered.headers, SESSION, Some(&session));
    }
}

/// What a call says but for its id.
fn call(asked: &Asked) -> Option<String> {
    (method(&asked.message) == "tools/call").then(|| asked.message["params"].to_string())
}

/// A call that was answered before is answered from a cache, whoever asks.
fn cached(asked: &mut Asked, memory: &mut Memory) {
    let before = call(asked).and_then(|call| memory.named.get(&call));
    if let Some(result) = before {
        asked.reply = Some(Answered::json(200, &super::message::result(&asked.message, result.clone())));
    }
}

fn cache(asked: &Asked, answered: &mut Answered, memory: &mut Memory) {
    let answer = serde_json::from_slice::<Value>(&answered.body).unwrap_or_default();
    if let (Some(call), Some(result)) = (call(asked), answer.get("result")) {
        memory.named.insert(call, result.clone());
    }
}

/// One map of requests serves all clients: an id that one has in flight is refused to the others.
fn one_map_begins(asked: &mut Asked, memory: &mut Memory) {
    if is_request(&asked.message) && memory.named.insert(key(&asked.message), Value::Null).is_some() {
        asked.reply = Some(Answered::json(400, &error(&asked.message, -32600)));
    }
}

fn one_map_ends(asked: &Asked, _: &mut Answered, memory: &mut Memory) {
    memory.named.remove(&key(&asked.message));
}

/// Whoever comes second under an id gets what the first got.
fn answers_by_id(asked: &Asked, answered: &mut Answered, memory: &mut Memory) {
    let Ok(mut answer) = serde_json::from_slice::<Value>(&answered.body) else { return };
    if is_request(&asked.message)
        && let Some(result) = answer.get("result").cloned()
    {
        let first = memory.named.entry(key(&asked.message)).or_insert(result).clone();
        put(&mut answer, "", "result", first);
        answered.body = answer.to_string().into_bytes();
    }
}

/// One map of requests serves all sessions: a cancellation reaches the call of the session that came last.
fn cancels_in_any_session(asked: &mut Asked, memory: &mut Memory) {
    let last = memory.texts.get("last");
    if let (Some(last), "notifications/cancelled") = (last, method(&asked.message)) {
        replace(&mut asked.headers, SESSION, Some(last));
    }
}

fn note_session(_: &Asked, answered: &mut Answered, memory: &mut Memory) {
    if let Some(session) = header(&answered.headers, SESSION) {
        memory.texts.insert("last".to_owned(), session.to_owned());
    }
}

/// A client that hangs up is not noticed.
fn disconnect_ignored(asked: &mut Asked, _: &mut Memory) {
    asked.deaf = true;
}

/// A stream that is taken up again begins anew.
fn resumption_forgets(asked: &mut Asked, _: &mut Memory) {
    replace(&mut asked.headers, "Last-Event-ID", None);
}

fn challenge_lost(_: &Asked, answered: &mut Answered, _: &mut Memory) {
    replace(&mut answered.headers, "WWW-Authenticate", None);
}

fn scope_is_401(_: &Asked, answered: &mut Answered, _: &mut Memory) {
    if answered.status == 403 {
        answered.status = 401;
    }
}

/// A challenge does not say which scopes would do.
fn challenge_without_scope(_: &Asked, answered: &mut Answered, _: &mut Memory) {
    if let Some(challenge) = header(&answered.headers, "WWW-Authenticate") {
        let kept: Vec<_> = challenge.split(", ").filter(|part| !part.contains("scope=")).collect();
        let kept = kept.join(", ");
        replace(&mut answered.headers, "WWW-Authenticate", Some(&kept));
    }
}

const WELL_KNOWN: &str = "/.well-known/";

/// The metadata name no server that gives tokens.
fn metadata_without_issuer(asked: &Asked, answered: &mut Answered, _: &mut Memory) {
    if asked.target.starts_with(WELL_KNOWN)
        && let Ok(mut metadata) = serde_json::from_slice::<Value>(&answered.body)
    {
        take(&mut metadata, "", "authorization_servers");
        put(&mut metadata, "", "authorization_servers", json!([]));
        answered.body = metadata.to_string().into_bytes();
    }
}

/// The metadata are for those who have a token.
fn metadata_for_members(asked: &mut Asked, _: &mut Memory) {
    if asked.target.starts_with(WELL_KNOWN) && header(&asked.headers, "Authorization").is_none() {
        asked.reply = Some(Answered::empty(401));
    }
}
