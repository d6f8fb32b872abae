//! Checks that are missing over HTTP: requests are mended on their way, so that the fixture takes what it would have
//! refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::message::{is_modern, is_request, method, text};
use super::web::{Answered, Asked, header, replace};
use super::{Memory, Plant};

const SESSION: &str = "Mcp-Session-Id";

pub(super) const FAULTS: &[(&str, Plant)] = &[
    ("origin-unchecked", Plant::Ask(origin_unchecked)),
    ("origin-of-any-part", Plant::Ask(origin_of_any_part)),
    ("origin-null-trusted", Plant::Ask(origin_null_trusted)),
    ("origin-of-posts-only", Plant::Ask(origin_of_posts_only)),
    ("origin-of-requests-only", Plant::Ask(origin_of_requests_only)),
    ("host-unchecked", Plant::Ask(host_unchecked)),
    ("host-by-prefix", Plant::Ask(host_by_prefix)),
    ("content-unchecked", Plant::Ask(content_unchecked)),
    ("mends-standard-headers", Plant::Ask(mends_standard_headers)),
    ("name-unchecked-for-prompts", Plant::Ask(name_unchecked_for_prompts)),
    ("name-unchecked-for-resources", Plant::Ask(name_unchecked_for_resources)),
    ("mends-argument-headers", Plant::Ask(mends_argument_headers)),
    ("falsy-arguments-unchecked", Plant::Ask(falsy_arguments_unchecked)),
    ("inner-arguments-unchecked", Plant::Ask(inner_arguments_unchecked)),
    ("session-unchecked", Plant::Exchange(session_unchecked, note_session)),
    ("session-by-prefix", Plant::Exchange(session_by_prefix, note_session)),
    ("session-not-needed", Plant::Exchange(session_not_needed, note_session)),
    ("session-not-needed-to-read", Plant::Exchange(session_not_needed_to_read, note_session)),
    ("sessions-shared", Plant::Exchange(sessions_shared, note_session)),
    ("version-of-sessions-unchecked", Plant::Ask(version_of_sessions_unchecked)),
    ("first-of-a-batch", Plant::Ask(first_of_a_batch)),
    ("any-token", Plant::Ask(any_token)),
    ("token-never-expires", Plant::Ask(token_never_expires)),
    ("token-of-another-server", Plant::Ask(token_of_another_server)),
    ("scopes-unchecked", Plant::Ask(scopes_unchecked)),
    ("token-from-the-query", Plant::Ask(token_from_the_query)),
    ("session-is-authorization", Plant::Ask(session_is_authorization)),
    ("session-of-any-user", Plant::Ask(session_of_any_user)),
];

fn said<'a>(asked: &'a Asked, name: &str) -> &'a str {
    header(&asked.headers, name).unwrap_or_default()
}

fn without_origin(asked: &mut Asked) {
    replace(&mut asked.headers, "Origin", None);
}

fn origin_unchecked(asked: &mut Asked, _: &mut Memory) {
    without_origin(asked);
}

/// An origin is trusted that has a trusted one somewhere in it.
fn origin_of_any_part(asked: &mut Asked, _: &mut Memory) {
    let origin = said(asked, "Origin");
    if origin.contains("localhost") || origin.contains("127.0.0.1") {
        without_origin(asked);
    }
}

fn origin_null_trusted(asked: &mut Asked, _: &mut Memory) {
    if said(asked, "Origin") == "null" {
        without_origin(asked);
    }
}

fn origin_of_posts_only(asked: &mut Asked, _: &mut Memory) {
    if asked.method != "POST" {
        without_origin(asked);
    }
}

/// Whoever sends no request needs no origin.
fn origin_of_requests_only(asked: &mut Asked, _: &mut Memory) {
    if asked.method == "POST" && !is_request(&asked.message) {
        without_origin(asked);
    }
}

fn host_unchecked(asked: &mut Asked, _: &mut Memory) {
    replace(&mut asked.headers, "Host", Some("127.0.0.1"));
}

fn host_by_prefix(asked: &mut Asked, _: &mut Memory) {
    let host = said(asked, "Host");
    if host.starts_with("localhost") || host.starts_with("127.0.0.1") {
        replace(&mut asked.headers, "Host", Some("127.0.0.1"));
    }
}

fn content_unchecked(asked: &mut Asked, _: &mut Memory) {
    if asked.method == "POST" {
        replace(&mut asked.headers, "Content-Type", Some("application/json"));
    }
}

/// What a header of base64 says, which stands for any text.
fn encoded(value: &str) -> String {
    format!("=?base64?{}?=", STANDARD.encode(value))
}

fn mend_name(asked: &mut Asked, places: &[&str]) {
    let named = places.iter().map(|place| text(&asked.message, place)).find(|name| !name.is_empty());
    if let Some(name) = named.map(encoded) {
        replace(&mut asked.headers, "Mcp-Name", Some(&name));
    }
}

/// The message alone counts, whatever the headers say of it.
fn mends_standard_headers(asked: &mut Asked, _: &mut Memory) {
    if is_modern(&asked.message) {
        let name = method(&asked.message).to_owned();
        let version = text(&asked.message, super::message::VERSION).to_owned();
        replace(&mut asked.headers, "Mcp-Method", Some(&name));
        replace(&mut asked.headers, "MCP-Protocol-Version", Some(&version));
        mend_name(asked, &["/params/name", "/params/uri", "/params/taskId"]);
    }
}

fn name_unchecked_for_prompts(asked: &mut Asked, _: &mut Memory) {
    if is_modern(&asked.message) && method(&asked.message) == "prompts/get" {
        mend_name(asked, &["/params/name"]);
    }
}

fn name_unchecked_for_resources(asked: &mut Asked, _: &mut Memory) {
    if is_modern(&asked.message) && method(&asked.message) == "resources/read" {
        mend_name(asked, &["/params/uri"]);
    }
}

/// Arguments that are mirrored, and into which headers.
const MIRRORED: [(&str, &str); 5] = [
    ("region", "Mcp-Param-Region"),
    ("place", "Mcp-Param-Place"),
    ("count", "Mcp-Param-Count"),
    ("dry", "Mcp-Param-Dry"),
    ("inner/zone", "Mcp-Param-Zone"),
];

/// Writes the headers of those arguments that fit anew.
fn mend_arguments(asked: &mut Asked, fits: fn(&str, &Value) -> bool) {
    if method(&asked.message) != "tools/call" {
        return;
    }
    for (argument, name) in MIRRORED {
        let value = asked.message.pointer(&format!("/params/arguments/{argument}")).cloned();
        let value = value.filter(|value| !value.is_null());
        if !fits(argument, value.as_ref().unwrap_or(&Value::Null)) {
            continue;
        }
        let mended = value.map(|value| match value {
            Value::String(text) => encoded(&text),
            other => other.to_string(),
        });
        replace(&mut asked.headers, name, mended.as_deref());
    }
}

fn mends_argument_headers(asked: &mut Asked, _: &mut Memory) {
    mend_arguments(asked, |_, _| true);
}

/// What is zero, false or empty counts as absent.
fn falsy_arguments_unchecked(asked: &mut Asked, _: &mut Memory) {
    mend_arguments(asked, |_, value| [Value::from(0), Value::from(false), Value::from("")].contains(value));
}

fn inner_arguments_unchecked(asked: &mut Asked, _: &mut Memory) {
    mend_arguments(asked, |argument, _| argument.contains('/'));
}

/// Keeps the ids of sessions in the order in which they were opened.
fn note_session(_: &Asked, answered: &mut Answered, memory: &mut Memory) {
    if let Some(session) = header(&answered.headers, SESSION) {
        let session = Value::from(session);
        if !memory.kept.contains(&session) {
            memory.kept.push(session);
        }
    }
}

fn latest(memory: &Memory) -> Option<&str> {
    memory.kept.last().and_then(Value::as_str)
}

/// An id that is none of a session stands for the session that was opened last.
fn session_unchecked(asked: &mut Asked, memory: &mut Memory) {
    let unknown = header(&asked.headers, SESSION).is_some_and(|id| !memory.kept.contains(&Value::from(id)));
    if let (Some(session), true) = (latest(memory), unknown && method(&asked.message) != "initialize") {
        replace(&mut asked.headers, SESSION, Some(session));
    }
}

/// An id that begins with that of a session is as good.
fn session_by_prefix(asked: &mut Asked, memory: &mut Memory) {
    let given = said(asked, SESSION).to_owned();
    let meant = memory.kept.iter().filter_map(Value::as_str).find(|known| given.starts_with(known));
    if let Some(session) = meant {
        replace(&mut asked.headers, SESSION, Some(session));
    }
}

/// A legacy request that names no session belongs to the one that was opened last.
fn session_not_needed(asked: &mut Asked, memory: &mut Memory) {
    let legacy =
        asked.method == "POST" && !is_modern(&asked.message) && method(&asked.message) != "initialize";
    if let (Some(session), true, None) = (latest(memory), legacy, header(&asked.headers, SESSION)) {
        replace(&mut asked.headers, SESSION, Some(session));
    }
}

/// A GET that names no session opens the stream of the one that was opened last.
fn session_not_needed_to_read(asked: &mut Asked, memory: &mut Memory) {
    if let (Some(session), "GET", None) =
        (latest(memory), asked.method.as_str(), header(&asked.headers, SESSION))
    {
        replace(&mut asked.headers, SESSION, Some(session));
    }
}

/// All sessions are one.
fn sessions_shared(asked: &mut Asked, memory: &mut Memory) {
    let first = memory.kept.first().and_then(Value::as_str);
    let known = header(&asked.headers, SESSION).is_some_and(|id| memory.kept.contains(&Value::from(id)));
    if let (Some(first), true) = (first, known && asked.method != "DELETE") {
        replace(&mut asked.headers, SESSION, Some(first));
    }
}

fn version_of_sessions_unchecked(asked: &mut Asked, _: &mut Memory) {
    if header(&asked.headers, SESSION).is_some() && !is_modern(&asked.message) {
        replace(&mut asked.headers, "MCP-Protocol-Version", None);
    }
}

/// Of an array the first message is served.
fn first_of_a_batch(asked: &mut Asked, _: &mut Memory) {
    if let Some(first) = asked.message.get(0).cloned() {
        asked.rewrite(first);
    }
}

const FIRST: &str = "Bearer suite-first";

/// Whoever asks is the first user if the condition holds of the credentials.
fn trust(asked: &mut Asked, trusted: impl Fn(&str) -> bool) {
    if trusted(said(asked, "Authorization")) {
        replace(&mut asked.headers, "Authorization", Some(FIRST));
    }
}

/// What is in the place of a token is not looked at.
fn any_token(asked: &mut Asked, _: &mut Memory) {
    const KNOWN: [&str; 5] = ["first", "second", "narrow", "expired", "elsewhere"];
    trust(asked, |said| {
        let token = said.strip_prefix("Bearer ");
        token.is_some_and(|token| !KNOWN.contains(&token.trim_start_matches("suite-")))
    });
}

fn token_never_expires(asked: &mut Asked, _: &mut Memory) {
    trust(asked, |said| said == "Bearer suite-expired");
}

fn token_of_another_server(asked: &mut Asked, _: &mut Memory) {
    trust(asked, |said| said == "Bearer suite-elsewhere");
}

fn scopes_unchecked(asked: &mut Asked, _: &mut Memory) {
    trust(asked, |said| said == "Bearer suite-narrow");
}

fn token_from_the_query(asked: &mut Asked, _: &mut Memory) {
    let queried = asked.target.contains("access_token=suite-first");
    trust(asked, |said| said.is_empty() && queried);
    if queried && let Some((path, _)) = asked.target.split_once('?') {
        asked.target = path.to_owned();
    }
}

/// Whoever knows the id of a session needs no token.
fn session_is_authorization(asked: &mut Asked, _: &mut Memory) {
    let in_session = header(&asked.headers, SESSION).is_some();
    trust(asked, |said| said.is_empty() && in_session);
}

/// Nobody looks whose session it is.
fn session_of_any_user(asked: &mut Asked, _: &mut Memory) {
    let in_session = header(&asked.headers, SESSION).is_some();
    trust(asked, |said| said == "Bearer suite-second" && in_session);
}
