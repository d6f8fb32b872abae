//! The known members of what a server sends, method by method.

use serde_json::Value;

use super::shape::{Difference, Field, Kind, Shape, Walk, escape};
use super::{Breach, Ledger};
use crate::revision::Revision;
use crate::revision::Revision::{V2025_03_26 as B, V2025_06_18 as C, V2025_11_25 as D, V2026_07_28 as E};
use Shape::{
    Any, Base64, Block, Blocks, Bool, Int, List, Map, Num, Obj, ObjectSchema, Record, Str, StrOrInt, Words,
};

/// Whether a complete result of the method bears cache hints in the modern era.
pub(crate) fn cacheable(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    )
}

pub(super) fn result(ledger: &Ledger, method: &str, result: &Value, breaches: &mut Vec<Breach>) {
    let (shape, wire): (&Shape, &'static str) = match method {
        "initialize" => (&INITIALIZE, "LS-LIFE-01"),
        "server/discover" => (&DISCOVER, "S-WIRE-03"),
        "tools/list" => (&TOOLS, "S-WIRE-05"),
        "resources/list" => (&RESOURCES, "S-WIRE-05"),
        "resources/templates/list" => (&TEMPLATES, "S-WIRE-05"),
        "prompts/list" => (&PROMPTS, "S-WIRE-05"),
        "tools/call" => (&TOOL_RESULT, "S-WIRE-11"),
        "resources/read" => (&READ, "S-WIRE-06"),
        "prompts/get" => (&PROMPT_RESULT, "S-WIRE-10"),
        "completion/complete" => (&COMPLETION, "S-WIRE-15"),
        "tasks/get" => (&TASK, "S-WIRE-17"),
        "tasks/cancel" if ledger.revision == D => (&TASK, "LB-TASK-15"),
        "tasks/list" if ledger.revision == D => (&TASK_LIST, "LB-TASK-15"),
        _ => return,
    };
    let mut found = Vec::new();
    let mut walk = Walk { revision: ledger.revision, found: &mut found };
    walk.hold(shape, result, "/result");
    match method {
        "prompts/get" => embedded(ledger, result, breaches),
        "server/discover" => extensions(ledger, result, breaches),
        _ => {}
    }
    schemes(ledger, result, "/result", breaches);
    match method {
        "tasks/get" if ledger.revision == D && result.get("ttl").is_none() => {
            walk.differs(Kind::Type, "a member `ttl`, null if there is no limit", result, "/result");
        }
        "tools/call" => {
            let structured = result.get("structuredContent");
            if let Some(value) = structured.filter(|value| !value.is_object() && !ledger.modern()) {
                walk.differs(Kind::Structured, "an object", value, "/result/structuredContent");
            }
        }
        "tools/list" => {
            for (index, tool) in
                result.get("tools").and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                let at = format!("/result/tools/{index}/outputSchema");
                let schema = tool.get("outputSchema").filter(|schema| !schema.is_null());
                if let Some(schema) = schema.filter(|_| (C..=D).contains(&ledger.revision)) {
                    walk.hold(&ObjectSchema, schema, &at);
                }
            }
        }
        _ => {}
    }
    let values = result.pointer("/completion/values").and_then(Value::as_array).map_or(0, Vec::len);
    report(ledger, wire, found, breaches);
    let undeclared = |server: &Value| !super::declares(server, "completions");
    if values > 0 && !ledger.modern() && ledger.server.as_ref().is_some_and(undeclared) {
        let expected = "no completion, as `completions` is not declared";
        let ids = ["S-COMPL-01", "LS-LIFE-06"];
        // The capability came with 2025-03-26.
        if ledger.revision >= B {
            let at = "/result/completion/values";
            breaches.push(ledger.must("completion-declared", &ids, at, expected, &Value::from(values)));
        }
    }
    if values > 100 {
        let got = Value::from(values);
        let ids = ["S-WIRE-15", "M01"];
        breaches.push(ledger.must(
            "completion-size",
            &ids,
            "/result/completion/values",
            "at most 100 values",
            &got,
        ));
    }
}

pub(super) fn notification(ledger: &Ledger, method: &str, params: &Value, breaches: &mut Vec<Breach>) {
    let (shape, wire): (&Shape, &'static str) = match method {
        "notifications/progress" => (&PROGRESS, "S-WIRE-04"),
        "notifications/message" => (&MESSAGE, "S-WIRE-13"),
        "notifications/resources/updated" => (&UPDATED, "S-WIRE-09"),
        "notifications/cancelled" => (&CANCELLED, "B-WIRE-01"),
        "notifications/subscriptions/acknowledged" => (&ACKNOWLEDGED, "S-WIRE-08"),
        "notifications/elicitation/complete" => (&ELICITATION_COMPLETE, "LS-ELIC-04"),
        "notifications/tasks/status" => (&TASK, "LB-TASK-15"),
        "notifications/tasks" => (&TASK, "S-WIRE-17"),
        _ => return,
    };
    let mut found = Vec::new();
    Walk { revision: ledger.revision, found: &mut found }.hold(shape, params, "/params");
    report(ledger, wire, found, breaches);
}

/// The params of a request for input, wherever it stands.
pub(super) fn input_request(
    ledger: &Ledger,
    method: &str,
    params: &Value,
    at: &str,
    breaches: &mut Vec<Breach>,
) {
    let url = params.get("mode").is_some_and(|mode| mode == "url");
    let (shape, wire): (&Shape, &'static str) = match method {
        "sampling/createMessage" => (&SAMPLING, "S-WIRE-14"),
        "elicitation/create" if url => (&ELICITATION_URL, "S-ELIC-06"),
        "elicitation/create" => (&ELICITATION_FORM, "S-ELIC-05"),
        _ => return,
    };
    let at = format!("{at}/params");
    let mut found = Vec::new();
    let mut walk = Walk { revision: ledger.revision, found: &mut found };
    walk.hold(shape, params, &at);
    if url && ledger.revision == D {
        let elicitation = params.get("elicitationId").unwrap_or(&Value::Null);
        if !elicitation.is_string() {
            walk.differs(Kind::Type, "a member `elicitationId`", params, &at);
        }
    }
    if method == "elicitation/create" && !url {
        flat(&mut walk, params.get("requestedSchema"), &format!("{at}/requestedSchema"));
    }
    report(ledger, wire, found, breaches);
}

/// A form asks for primitives, and from 2025-11-25 on for choices of several.
fn flat(walk: &mut Walk<'_>, schema: Option<&Value>, at: &str) {
    let Some(Value::Object(properties)) = schema.and_then(|schema| schema.get("properties")) else { return };
    for (name, property) in properties {
        let at = format!("{at}/properties/{}", escape(name));
        let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
        let primitive = ["string", "number", "integer", "boolean"].contains(&kind);
        let several = kind == "array" && walk.revision >= D && property.get("items").is_some();
        if !primitive && !several {
            walk.differs(Kind::Type, "the schema of a primitive", property, &at);
        }
    }
}

pub(super) fn task(ledger: &Ledger, task: &Value, at: &str, breaches: &mut Vec<Breach>) {
    let mut found = Vec::new();
    Walk { revision: ledger.revision, found: &mut found }.hold(&TASK, task, at);
    report(ledger, "S-WIRE-17", found, breaches);
}

fn report(ledger: &Ledger, wire: &'static str, found: Vec<Difference>, breaches: &mut Vec<Breach>) {
    for Difference { kind, at, expected, got } in found {
        breaches.push(match kind {
            Kind::Type if wire == "S-ELIC-05" && at.contains("/requestedSchema") => {
                ledger.must("known-members", &[wire, "S-WIRE-16", "W01"], &at, &expected, &got)
            }
            Kind::Type => ledger.must("known-members", &[wire, "W01"], &at, &expected, &got),
            Kind::Base64 => ledger.must("base64", &["R03", "S-RES-13"], &at, &expected, &got),
            Kind::Image64 if wire == "S-WIRE-10" => {
                ledger.must("base64", &["R03", "S-PROMPT-05"], &at, &expected, &got)
            }
            Kind::Audio64 if wire == "S-WIRE-10" => {
                ledger.must("base64", &["R03", "S-PROMPT-06"], &at, &expected, &got)
            }
            Kind::Image64 | Kind::Audio64 => ledger.must("base64", &["R03"], &at, &expected, &got),
            // Older peers pass over members they do not know.
            Kind::Early => ledger.should("revision-members", &["LS-TOOL-02"], &at, &expected, &got),
            Kind::EarlyContent => ledger.must("content-type", &["LS-TOOL-02", "W01"], &at, &expected, &got),
            Kind::Structured => {
                ledger.must("structured-object", &["LS-TOOL-01", "W01"], &at, &expected, &got)
            }
        });
    }
}

/// Members whose contents are the peer's own business.
const OPAQUE: [&str; 13] = [
    "structuredContent",
    "data",
    "inputSchema",
    "outputSchema",
    "requestedSchema",
    "_meta",
    "experimental",
    "extensions",
    "arguments",
    "input",
    "metadata",
    "frontmatter",
    "argument",
];

/// An absent member is left out, not written as null.
pub(super) fn nulls(ledger: &Ledger, message: &Value, breaches: &mut Vec<Breach>) {
    fn walk(value: &Value, at: &mut String, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let length = at.len();
                    at.push('/');
                    at.push_str(&escape(name));
                    // The id of an error may be null, and a time to live without end is.
                    let meant = (length == 0 && name == "id") || name == "ttl" || name == "ttlMs";
                    if value.is_null() && !meant && !OPAQUE.contains(&name.as_str()) {
                        found.push(at.clone());
                    } else if !OPAQUE.contains(&name.as_str()) {
                        walk(value, at, found);
                    }
                    at.truncate(length);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    let length = at.len();
                    at.push_str(&format!("/{index}"));
                    walk(value, at, found);
                    at.truncate(length);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(message, &mut String::new(), &mut found);
    for at in found {
        let expected = "a value, or no member at all";
        breaches.push(ledger.must("no-null", &["E09"], &at, expected, &Value::Null));
    }
}

/// What a prompt embeds can be used: a media has a type, a resource a text or bytes.
fn embedded(ledger: &Ledger, result: &Value, breaches: &mut Vec<Breach>) {
    let messages = result.get("messages").and_then(Value::as_array);
    for (index, message) in messages.into_iter().flatten().enumerate() {
        let Some(block) = message.get("content") else { continue };
        let at = format!("/result/messages/{index}/content");
        let typed = |value: &Value| {
            let mime = value.get("mimeType").and_then(Value::as_str).unwrap_or_default();
            mime.split_once('/').is_some_and(|(kind, of)| !kind.is_empty() && !of.is_empty())
        };
        let id = match block.get("type").and_then(Value::as_str) {
            Some("image") => "S-PROMPT-05",
            Some("audio") => "S-PROMPT-06",
            Some("resource") => {
                let resource = block.get("resource").unwrap_or(&Value::Null);
                if resource.get("text").is_none() && resource.get("blob").is_none() {
                    let expected = "`text` or `blob`";
                    let at = format!("{at}/resource");
                    breaches.push(ledger.must("embedded", &["S-PROMPT-07"], &at, expected, resource));
                } else if !typed(resource) {
                    // The page asks for it, the schema does not.
                    let expected = "a MIME type";
                    let at = format!("{at}/resource");
                    breaches.push(ledger.should("embedded", &["S-PROMPT-07"], &at, expected, resource));
                }
                continue;
            }
            _ => continue,
        };
        if block.get("mimeType").is_some_and(Value::is_string) && !typed(block) {
            let got = &block["mimeType"];
            breaches.push(ledger.must("mime-type", &[id], &format!("{at}/mimeType"), "a MIME type", got));
        }
    }
}

/// Extensions are named as `_meta` members are, with a prefix.
fn extensions(ledger: &Ledger, result: &Value, breaches: &mut Vec<Breach>) {
    let named = result.pointer("/capabilities/extensions").and_then(Value::as_object);
    for (name, value) in named.into_iter().flatten() {
        if !name.contains('/') || meta_key_problem(name).is_some() {
            let at = format!("/result/capabilities/extensions/{}", escape(name));
            let expected = "an extension named `prefix.of.labels/name`";
            breaches.push(ledger.must("extension-names", &["B-EXT-01"], &at, expected, value));
        }
    }
}

/// The scheme of each URI of a resource keeps to RFC 3986.
fn schemes(ledger: &Ledger, value: &Value, at: &str, breaches: &mut Vec<Breach>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let at = format!("{at}/{}", escape(name));
                match value {
                    Value::String(uri) if name == "uri" => {
                        let scheme = uri.split_once(':').map(|(scheme, _)| scheme);
                        if scheme.is_some_and(|scheme| !super::asks::is_scheme(scheme)) {
                            let expected = "a scheme of letters, digits, `+`, `-` and `.`";
                            breaches.push(ledger.must("uri-scheme", &["S-RES-07"], &at, expected, value));
                        }
                    }
                    _ if OPAQUE.contains(&name.as_str()) => {}
                    _ => schemes(ledger, value, &at, breaches),
                }
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                schemes(ledger, value, &format!("{at}/{index}"), breaches);
            }
        }
        _ => {}
    }
}

/// Names of `_meta` members keep to the grammar, which 2025-06-18 brought.
pub(super) fn meta_keys(ledger: &Ledger, message: &Value, breaches: &mut Vec<Breach>) {
    if ledger.revision < C {
        return;
    }
    for place in ["/result/_meta", "/params/_meta"] {
        let Some(Value::Object(meta)) = message.pointer(place) else { continue };
        for (name, value) in meta {
            if let Some(id) = meta_key_problem(name) {
                let at = format!("{place}/{}", escape(name));
                let expected = "a name of the form `prefix.of.labels/name`";
                breaches.push(ledger.must("meta-keys", &[id], &at, expected, value));
            }
        }
    }
}

/// What the name of a `_meta` member breaks.
fn meta_key_problem(key: &str) -> Option<&'static str> {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphabetic)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    let name = name.as_bytes();
    let ends = [name.first(), name.last()];
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    match prefix {
        Some(prefix) if prefix.contains('/') || prefix.split('.').any(str::is_empty) => Some("B-META-02"),
        Some(prefix) if !prefix.split('.').all(label) => Some("B-META-03"),
        _ if !ends.into_iter().flatten().all(u8::is_ascii_alphanumeric) || !name.iter().all(inside) => {
            Some("B-META-05")
        }
        _ => None,
    }
}

const fn needed(name: &'static str, shape: &'static Shape) -> Field {
    Field::needed(name, shape)
}

const fn maybe(name: &'static str, shape: &'static Shape) -> Field {
    Field::maybe(name, shape)
}

const ROLE: Shape = Words(&["user", "assistant"]);
const LEVEL: Shape =
    Words(&["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]);

static IMPLEMENTATION: Shape = Record(&[
    needed("name", &Str),
    needed("version", &Str),
    maybe("title", &Str).since(C),
    maybe("icons", &ICONS).since(D),
    maybe("description", &Str).since(D),
    maybe("websiteUrl", &Str).since(D),
]);
static ICONS: Shape = List(&Record(&[
    needed("src", &Str),
    maybe("mimeType", &Str),
    maybe("sizes", &List(&Str)),
    maybe("theme", &Words(&["light", "dark"])),
]));
static CAPABILITIES: Shape = Record(&[
    maybe("experimental", &Map(&Obj)),
    maybe("logging", &Obj),
    maybe("completions", &Obj),
    maybe("prompts", &Record(&[maybe("listChanged", &Bool)])),
    maybe("resources", &Record(&[maybe("subscribe", &Bool), maybe("listChanged", &Bool)])),
    maybe("tools", &Record(&[maybe("listChanged", &Bool)])),
    maybe("tasks", &Obj),
    maybe("extensions", &Map(&Obj)),
]);
static INITIALIZE: Shape = Record(&[
    needed("protocolVersion", &Str),
    needed("capabilities", &CAPABILITIES),
    needed("serverInfo", &IMPLEMENTATION),
    maybe("instructions", &Str),
]);
static DISCOVER: Shape = Record(&[
    needed("supportedVersions", &List(&Str)),
    needed("capabilities", &CAPABILITIES),
    maybe("instructions", &Str),
]);
static ANNOTATIONS: Shape =
    Record(&[maybe("audience", &List(&ROLE)), maybe("priority", &Num), maybe("lastModified", &Str).since(C)]);
static TOOLS: Shape = Record(&[needed("tools", &List(&TOOL)), maybe("nextCursor", &Str)]);
static TOOL: Shape = Record(&[
    needed("name", &Str),
    maybe("title", &Str).since(C),
    maybe("description", &Str),
    needed("inputSchema", &ObjectSchema),
    maybe("outputSchema", &Obj).since(C),
    maybe("annotations", &TOOL_HINTS).since(B),
    maybe("icons", &ICONS).since(D),
    maybe("execution", &Record(&[maybe("taskSupport", &Words(&["forbidden", "optional", "required"]))]))
        .since(D),
    maybe("_meta", &Obj).since(C),
]);
static TOOL_HINTS: Shape = Record(&[
    maybe("title", &Str),
    maybe("readOnlyHint", &Bool),
    maybe("destructiveHint", &Bool),
    maybe("idempotentHint", &Bool),
    maybe("openWorldHint", &Bool),
]);
static RESOURCE_FIELDS: [Field; 9] = [
    needed("uri", &Str),
    needed("name", &Str),
    maybe("title", &Str).since(C),
    maybe("description", &Str),
    maybe("mimeType", &Str),
    maybe("size", &Int),
    maybe("annotations", &ANNOTATIONS),
    maybe("icons", &ICONS).since(D),
    maybe("_meta", &Obj).since(C),
];
static RESOURCES: Shape =
    Record(&[needed("resources", &List(&Record(&RESOURCE_FIELDS))), maybe("nextCursor", &Str)]);
static TEMPLATES: Shape = Record(&[needed("resourceTemplates", &List(&TEMPLATE)), maybe("nextCursor", &Str)]);
static TEMPLATE: Shape = Record(&[
    needed("uriTemplate", &Str),
    needed("name", &Str),
    maybe("title", &Str).since(C),
    maybe("description", &Str),
    maybe("mimeType", &Str),
    maybe("annotations", &ANNOTATIONS),
    maybe("icons", &ICONS).since(D),
    maybe("_meta", &Obj).since(C),
]);
static PROMPTS: Shape = Record(&[needed("prompts", &List(&PROMPT)), maybe("nextCursor", &Str)]);
static PROMPT: Shape = Record(&[
    needed("name", &Str),
    maybe("title", &Str).since(C),
    maybe("description", &Str),
    maybe("arguments", &List(&PROMPT_ARGUMENT)),
    maybe("icons", &ICONS).since(D),
    maybe("_meta", &Obj).since(C),
]);
static PROMPT_ARGUMENT: Shape = Record(&[
    needed("name", &Str),
    maybe("title", &Str).since(C),
    maybe("description", &Str),
    maybe("required", &Bool),
]);
static TOOL_RESULT: Shape = Record(&[
    needed("content", &List(&Block)),
    maybe("isError", &Bool),
    maybe("structuredContent", &Any).since(C),
]);
static CONTENTS: Shape = Record(&[
    needed("uri", &Str),
    maybe("mimeType", &Str),
    maybe("text", &Str),
    maybe("blob", &Base64),
    maybe("_meta", &Obj).since(C),
]);
static READ: Shape = Record(&[needed("contents", &List(&CONTENTS))]);
static PROMPT_RESULT: Shape = Record(&[
    maybe("description", &Str),
    needed("messages", &List(&Record(&[needed("role", &ROLE), needed("content", &Block)]))),
]);
static COMPLETION: Shape = Record(&[needed(
    "completion",
    &Record(&[needed("values", &List(&Str)), maybe("total", &Int), maybe("hasMore", &Bool)]),
)]);
static STATUS: Shape = Words(&["working", "input_required", "completed", "failed", "cancelled"]);
static TASK: Shape = Record(&[
    needed("taskId", &Str),
    needed("status", &STATUS),
    maybe("statusMessage", &Str),
    needed("createdAt", &Str),
    needed("lastUpdatedAt", &Str),
    needed("ttlMs", &Int).since(E).or_null(),
    maybe("pollIntervalMs", &Int),
    maybe("ttl", &Int).or_null(),
    maybe("pollInterval", &Int),
]);
static TASK_LIST: Shape = Record(&[needed("tasks", &List(&TASK)), maybe("nextCursor", &Str)]);
static PROGRESS: Shape = Record(&[
    needed("progressToken", &StrOrInt),
    needed("progress", &Num),
    maybe("total", &Num),
    maybe("message", &Str).since(B),
]);
static MESSAGE: Shape = Record(&[needed("level", &LEVEL), maybe("logger", &Str), needed("data", &Any)]);
static UPDATED: Shape = Record(&[needed("uri", &Str)]);
static CANCELLED: Shape = Record(&[needed("requestId", &StrOrInt), maybe("reason", &Str)]);
static ACKNOWLEDGED: Shape = Record(&[needed(
    "notifications",
    &Record(&[
        maybe("toolsListChanged", &Bool),
        maybe("promptsListChanged", &Bool),
        maybe("resourcesListChanged", &Bool),
        maybe("resourceSubscriptions", &List(&Str)),
        maybe("taskIds", &List(&Str)),
    ]),
)]);
static ELICITATION_COMPLETE: Shape = Record(&[needed("elicitationId", &Str)]);
static ELICITATION_FORM: Shape = Record(&[
    needed("message", &Str),
    maybe("mode", &Words(&["form"])),
    needed("requestedSchema", &ObjectSchema),
]);
static ELICITATION_URL: Shape = Record(&[needed("message", &Str), needed("url", &Str)]);
static SAMPLING: Shape = Record(&[
    needed("messages", &List(&Record(&[needed("role", &ROLE), needed("content", &Blocks)]))),
    needed("maxTokens", &Int),
    maybe("systemPrompt", &Str),
    maybe("temperature", &Num),
    maybe("includeContext", &Words(&["none", "thisServer", "allServers"])),
    maybe("stopSequences", &List(&Str)),
    maybe("modelPreferences", &Obj),
    maybe("metadata", &Obj),
    maybe("tools", &List(&TOOL)).since(D),
    maybe("toolChoice", &Record(&[maybe("mode", &Words(&["auto", "required", "none"]))])).since(D),
]);

/// Content types: the revision that brought each, and its members.
pub(super) static BLOCKS: [(&str, Revision, &[Field]); 7] = [
    ("text", Revision::V2024_11_05, &[needed("text", &Str), maybe("annotations", &ANNOTATIONS)]),
    (
        "image",
        Revision::V2024_11_05,
        &[needed("data", &Base64), needed("mimeType", &Str), maybe("annotations", &ANNOTATIONS)],
    ),
    ("audio", B, &[needed("data", &Base64), needed("mimeType", &Str), maybe("annotations", &ANNOTATIONS)]),
    ("resource", Revision::V2024_11_05, &[needed("resource", &CONTENTS), maybe("annotations", &ANNOTATIONS)]),
    ("resource_link", C, &RESOURCE_FIELDS),
    ("tool_use", D, &[needed("id", &Str), needed("name", &Str), needed("input", &Obj)]),
    (
        "tool_result",
        D,
        &[needed("toolUseId", &Str), needed("content", &List(&Block)), maybe("isError", &Bool)],
    ),
];
