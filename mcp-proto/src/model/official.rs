//! The model against the official schemas and examples, which are looked for in `../shared` beside the
//! repository. Without them these tests say so and pass.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)] // helpers of tests are no tests

mod examples;
mod samples;

use std::{eprintln, fs, path::PathBuf};

use alloc::{format, string::String, vec::Vec};
use serde_json::{Map, Value};

use super::ProtocolVersion as V;

/// A directory of the official material.
fn shared(path: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/spec/schema");
    let found = root.join(path);
    if !found.exists() {
        eprintln!("skipped: no {}", found.display());
        return None;
    }
    Some(found)
}

fn read(path: &PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The official schema of a revision, or of the tasks extension.
struct Schema {
    document: Value,
    definitions: &'static str,
}

impl Schema {
    fn of(directory: &str) -> Option<Self> {
        let document = read(&shared(directory)?.join("schema.json"));
        let definitions = if document.get("$defs").is_some() { "$defs" } else { "definitions" };
        Some(Self { document, definitions })
    }

    fn definition(&self, name: &str) -> Option<&Value> {
        self.document[self.definitions].get(name)
    }

    /// The members of an object. Params that older revisions do not define by name are found in their
    /// request or notification.
    fn members(&self, name: &str) -> Option<Map<String, Value>> {
        if let Some(found) = self.definition(name) {
            return found.get("properties").and_then(Value::as_object).cloned();
        }
        let inline = match name {
            "ElicitRequestFormParams" => "ElicitRequest",
            "LegacyTitledEnumSchema" => return self.members("EnumSchema"),
            _ => name.strip_suffix("Params")?,
        };
        let pointer = format!("/{}/{inline}/properties/params/properties", self.definitions);
        self.document.pointer(&pointer).and_then(Value::as_object).cloned()
    }

    /// A validator of one definition in which objects have no members but those that are defined: the
    /// official schemas leave most objects open, and so would not notice a member of another revision.
    fn closed(&self, pointer: &str) -> jsonschema::Validator {
        let mut document = self.document.clone();
        let object = document.as_object_mut().unwrap();
        for (name, definition) in object[self.definitions].as_object_mut().unwrap() {
            // Metadata is open by nature, and these are parts that others add to.
            let part = ["NotificationParams", "Result", "Task", "Error"].contains(&&**name);
            close(definition, part || name.ends_with("MetaObject"));
        }
        object.retain(|key, _| key == self.definitions || key == "$schema");
        object.insert("$ref".into(), format!("#/{}/{pointer}", self.definitions).into());
        jsonschema::validator_for(&document).unwrap()
    }
}

/// Closes every object with named members, unless it is said to be open or is only a part of one.
fn close(schema: &mut Value, part: bool) {
    match schema {
        Value::Object(object) => {
            let open = object.contains_key("additionalProperties") || object.contains_key("allOf");
            if object.get("properties").is_some_and(Value::is_object) && !part && !open {
                object.insert("additionalProperties".into(), false.into());
            }
            for (key, inner) in object {
                close(inner, key == "allOf" || (part && matches!(&**key, "anyOf")));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| close(inner, part)),
        _ => {}
    }
}

/// The objects that this crate writes as structs of that name, and the members it never writes.
const OBJECTS: &[(&str, &[&str])] = &[
    ("Annotations", &[]),
    ("AudioContent", &[]),
    ("BlobResourceContents", &[]),
    ("BooleanSchema", &[]),
    ("CallToolResult", &["_meta", "resultType"]),
    ("ClientCapabilities", &[]),
    ("CompleteResult", &["_meta", "resultType"]),
    ("CreateMessageRequestParams", &["_meta", "task"]),
    ("CreateMessageResult", &[]),
    ("DiscoverResult", &["_meta", "resultType"]),
    ("ElicitRequestFormParams", &["_meta", "task"]),
    ("ElicitRequestURLParams", &["_meta", "task"]),
    ("ElicitResult", &[]),
    ("EmbeddedResource", &[]),
    ("GetPromptResult", &["_meta", "resultType"]),
    ("Icon", &[]),
    ("ImageContent", &[]),
    ("Implementation", &[]),
    ("InitializeResult", &["_meta"]),
    ("InputRequiredResult", &["_meta", "resultType"]),
    ("LegacyTitledEnumSchema", &[]),
    ("ListPromptsResult", &["_meta", "resultType"]),
    ("ListResourceTemplatesResult", &["_meta", "resultType"]),
    ("ListResourcesResult", &["_meta", "resultType"]),
    ("ListRootsResult", &[]),
    ("ListToolsResult", &["_meta", "resultType"]),
    ("LoggingMessageNotificationParams", &["_meta"]),
    ("ModelHint", &[]),
    ("ModelPreferences", &[]),
    ("NumberSchema", &[]),
    ("ProgressNotificationParams", &["_meta"]),
    ("Prompt", &[]),
    ("PromptArgument", &[]),
    ("PromptMessage", &[]),
    ("PromptReference", &[]),
    ("ReadResourceResult", &["_meta", "resultType"]),
    ("Resource", &[]),
    ("ResourceLink", &[]),
    ("ResourceTemplate", &[]),
    ("ResourceTemplateReference", &[]),
    ("ResourceUpdatedNotificationParams", &["_meta"]),
    ("Root", &[]),
    ("SamplingMessage", &[]),
    ("ServerCapabilities", &[]),
    ("StringSchema", &[]),
    ("SubscriptionFilter", &[]),
    ("SubscriptionsAcknowledgedNotificationParams", &["_meta"]),
    ("TextContent", &[]),
    ("TextResourceContents", &[]),
    ("TitledSingleSelectEnumSchema", &[]),
    ("Tool", &[]),
    ("ToolAnnotations", &[]),
    ("ToolChoice", &[]),
    ("ToolExecution", &[]),
    ("ToolResultContent", &[]),
    ("ToolUseContent", &[]),
];

/// The one place where the table says more than a schema: capability sets are open, and 2025-11-25 has
/// extensions by its prose and its peers.
const BEYOND: &[(&str, &str, V)] = &[
    ("ClientCapabilities", "extensions", V::V2025_11_25),
    ("ServerCapabilities", "extensions", V::V2025_11_25),
];

#[test]
fn the_table_of_members_is_that_of_the_schemas() {
    let mut revisions = Vec::new();
    for version in V::ALL {
        let Some(schema) = Schema::of(version.as_str()) else { return };
        revisions.push((version, schema));
    }
    let mut compared = 0;
    for (object, never) in OBJECTS {
        let mut all: Vec<String> = Vec::new();
        for (_, schema) in &revisions {
            all.extend(
                schema
                    .members(object)
                    .into_iter()
                    .flat_map(|members| members.into_iter().map(|(name, _)| name)),
            );
        }
        all.sort_unstable();
        all.dedup();
        assert!(!all.is_empty(), "no revision has {object}");
        for (version, schema) in &revisions {
            let Some(members) = schema.members(object) else { continue };
            for member in all.iter().filter(|member| !never.contains(&&***member)) {
                let expected =
                    members.contains_key(member) || BEYOND.contains(&(*object, &**member, *version));
                assert_eq!(version.has_member(object, member), expected, "{version} {object}.{member}");
                compared += 1;
            }
        }
        // A row for a member that no revision has is a slip of the pen.
        for row in super::version::rows(object) {
            assert!(all.iter().any(|member| member == row.member), "{object}.{}", row.member);
        }
    }
    assert!(compared > 700, "{compared}");
}
