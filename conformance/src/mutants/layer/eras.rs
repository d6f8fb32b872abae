//! Faults of versions, capabilities and metadata, and of what belongs to the other era.

use serde_json::{Value, json};

use super::envelope::{answer, refuse};
use super::message::{CAPABILITIES, VERSION, is_modern, is_request, is_result, lists, method, put, take};
use super::{Plant, Turn};

const META: &str = "/params/_meta";
const VERSION_NAME: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_NAME: &str = "io.modelcontextprotocol/clientCapabilities";

pub(super) const FAULTS: &[(&str, Plant)] = &[
    ("echoes-any-version", Plant::Down(echoes_any_version)),
    ("legacy-cache-hints", Plant::Down(legacy_cache_hints)),
    ("undeclared-tools", Plant::Down(undeclared_tools)),
    ("undeclared-logging", Plant::Down(undeclared_logging)),
    ("undeclared-completions", Plant::Down(undeclared_completions)),
    ("declares-what-it-lacks", Plant::Up(declares_what_it_lacks)),
    ("remembers-version", Plant::Up(remembers_version)),
    ("remembers-capabilities", Plant::Up(remembers_capabilities)),
    ("discovery-differs", Plant::Down(discovery_differs)),
    ("discovery-names-other-versions", Plant::Down(discovery_names_other_versions)),
    ("unknown-requested", Plant::Down(unknown_requested)),
    ("version-checked-at-discovery-only", Plant::Up(version_checked_at_discovery_only)),
    ("modern-ping", Plant::Up(modern_ping)),
    ("early-ping-refused", Plant::Up(early_ping_refused)),
    ("waits-for-initialized", Plant::Up(waits_for_initialized)),
    ("client-info-needed", Plant::Up(client_info_needed)),
    ("pages-without-type", Plant::Down(pages_without_type)),
];

/// A handshake settles on whatever version was asked for.
fn echoes_any_version(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "initialize" && is_result(&message) {
        let asked = turn.request["params"]["protocolVersion"].clone();
        put(&mut message, "/result", "protocolVersion", asked);
    }
    turn.on(message);
}

fn legacy_cache_hints(turn: &mut Turn<'_>, mut message: Value) {
    if lists(&turn.request) && !is_modern(&turn.request) {
        put(&mut message, "/result", "ttlMs", json!(60_000));
        put(&mut message, "/result", "cacheScope", json!("public"));
    }
    turn.on(message);
}

fn undeclare(turn: &mut Turn<'_>, mut message: Value, capability: &str) {
    take(&mut message, "/result/capabilities", capability);
    turn.on(message);
}

fn undeclared_tools(turn: &mut Turn<'_>, message: Value) {
    undeclare(turn, message, "tools");
}

fn undeclared_logging(turn: &mut Turn<'_>, message: Value) {
    undeclare(turn, message, "logging");
}

fn undeclared_completions(turn: &mut Turn<'_>, message: Value) {
    undeclare(turn, message, "completions");
}

/// Subscriptions to resources are declared, and there is no such method.
fn declares_what_it_lacks(turn: &mut Turn<'_>, message: Value) {
    match method(&message) {
        "resources/subscribe" => refuse(turn, &message, -32601),
        _ => turn.on(message),
    }
}

/// The version of an earlier request stands for one that has none.
fn remembers_version(turn: &mut Turn<'_>, mut message: Value) {
    match message.pointer(VERSION) {
        Some(version) => {
            let version = version.clone();
            turn.memory.named.insert("version".to_owned(), version);
        }
        None if message.pointer(CAPABILITIES).is_some() => {
            let version = turn.memory.named.get("version").cloned();
            // It was told which at the first message, or knows but one.
            put(&mut message, META, VERSION_NAME, version.unwrap_or_else(|| json!("2026-07-28")));
        }
        None => {}
    }
    turn.on(message);
}

/// What one request declares counts for all that follow.
fn remembers_capabilities(turn: &mut Turn<'_>, mut message: Value) {
    if let Some(Value::Object(declared)) = message.pointer(CAPABILITIES).cloned() {
        let known = turn.memory.named.entry("capabilities".to_owned()).or_insert_with(|| json!({}));
        for (name, value) in declared {
            put(known, "", &name, value);
        }
        let known = known.clone();
        put(&mut message, META, CAPABILITIES_NAME, known);
    }
    turn.on(message);
}

/// What is offered changes from one discovery to the next.
fn discovery_differs(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "server/discover" && is_result(&message) {
        turn.memory.count += 1;
        if turn.memory.count > 1 {
            take(&mut message, "/result/capabilities", "prompts");
        }
    }
    turn.on(message);
}

fn discovery_names_other_versions(turn: &mut Turn<'_>, mut message: Value) {
    if method(&turn.request) == "server/discover" {
        put(&mut message, "/result", "supportedVersions", json!(["2025-11-25"]));
    }
    turn.on(message);
}

/// The refusal of a version names the one that is served as the one that was asked for.
fn unknown_requested(turn: &mut Turn<'_>, mut message: Value) {
    put(&mut message, "/error/data", "requested", json!("2026-07-28"));
    turn.on(message);
}

/// Only discovery looks at the version.
fn version_checked_at_discovery_only(turn: &mut Turn<'_>, mut message: Value) {
    if is_modern(&message) && method(&message) != "server/discover" {
        put(&mut message, META, VERSION_NAME, json!("2026-07-28"));
    }
    turn.on(message);
}

fn modern_ping(turn: &mut Turn<'_>, message: Value) {
    if method(&message) == "ping" && is_modern(&message) {
        return answer(turn, &message, json!({"resultType": "complete"}));
    }
    turn.on(message);
}

/// Before the handshake even a ping is refused.
fn early_ping_refused(turn: &mut Turn<'_>, message: Value) {
    match method(&message) {
        "initialize" => turn.memory.count = 1,
        "ping" if turn.memory.count == 0 => return refuse(turn, &message, -32600),
        _ => {}
    }
    turn.on(message);
}

/// Between the handshake and the word that it is complete all requests are refused.
fn waits_for_initialized(turn: &mut Turn<'_>, message: Value) {
    match method(&message) {
        "initialize" => turn.memory.count = 1,
        "notifications/initialized" => turn.memory.count = 2,
        "ping" => {}
        _ if turn.memory.count == 1 && is_request(&message) => return refuse(turn, &message, -32600),
        _ => {}
    }
    turn.on(message);
}

/// A request that does not say who asks is refused.
fn client_info_needed(turn: &mut Turn<'_>, message: Value) {
    let named = message.pointer("/params/_meta/io.modelcontextprotocol~1clientInfo").is_some();
    if is_modern(&message) && is_request(&message) && !named {
        return refuse(turn, &message, -32602);
    }
    turn.on(message);
}

/// Further pages of a list lack what every result has.
fn pages_without_type(turn: &mut Turn<'_>, mut message: Value) {
    if lists(&turn.request) && turn.request.pointer("/params/cursor").is_some() {
        take(&mut message, "/result", "resultType");
    }
    turn.on(message);
}
