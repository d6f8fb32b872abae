//! What a subject offers, as far as scripts make use of it.

use serde_json::Value;

use super::dice::Dice;
use super::values::Arguments;
use crate::exchange::Transport;
use crate::invariants::declares;
use crate::revision::Revision;
use crate::subject::Declared;

/// Tools that exchanges know by what they do, and that change nothing.
const KNOWN: [&str; 12] = [
    "counter()",
    "mirror(place,count,dry,inner,free)",
    "test_simple_text()",
    "test_image_content()",
    "test_audio_content()",
    "test_embedded_resource()",
    "test_multiple_content_types()",
    "test_tool_with_logging()",
    "test_tool_with_progress()",
    "test_error_handling()",
    "json_schema_2020_12_tool",
    "many_001()",
];

pub(super) const ECHO: &str = "echo(text:string)";
pub(super) const ADD: &str = "add(a:number,b:number)";
pub(super) const SLOW: &str = "slow(ms:integer|number)";

/// What a subject offers in one revision over one transport.
#[derive(Debug, Clone)]
pub(super) struct Survey {
    pub(super) revision: Revision,
    pub(super) transport: Transport,
    /// Tools that may be called.
    pub(super) tools: Vec<Tool>,
    /// Prompts with the names of their arguments.
    pub(super) prompts: Vec<(String, Vec<String>)>,
    pub(super) resources: Vec<String>,
    /// The lists that the declared capabilities have.
    pub(super) lists: Vec<&'static str>,
    pub(super) completes: bool,
    pub(super) logs: bool,
    pub(super) subscribes: bool,
    pub(super) echoes: bool,
    pub(super) adds: bool,
    /// Whether it says what the sum is called.
    pub(super) sums: bool,
    pub(super) slows: bool,
    pub(super) limits: Limits,
}

/// A tool that may be called, with arguments for it.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) arguments: Arguments,
    /// What its structured results conform to.
    pub(super) gives: Option<Value>,
}

/// What a subject takes of what no text says how much it has to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// The characters of the longest text.
    pub(super) text: usize,
    /// Whether the body of a request may come in chunks.
    pub(super) chunks: bool,
}

impl Limits {
    /// What every subject is expected to take.
    pub(super) const LEAST: Self = Self { text: 16 << 10, chunks: false };

    /// What is tried.
    pub(super) const MOST: Self = Self { text: 1 << 20, chunks: true };
}

impl Survey {
    /// With `all`, tools that may destroy something may be called, too.
    pub(super) fn of(declared: &Declared, revision: Revision, transport: Transport, all: bool) -> Self {
        let has = |path: &str| declares(&declared.capabilities, path);
        let tools = declared.tools().iter();
        let known = |name: &str| {
            let named = |signature: &&&str| signature.split('(').next() == Some(name);
            KNOWN.iter().find(named).is_some_and(|signature| declared.has_tool(signature))
        };
        let tools = tools.filter(|(name, tool)| all || known(name) || is_harmless(tool));
        let tools = tools.map(|(name, tool)| {
            let seed =
                name.bytes().fold(0_u64, |so_far, byte| so_far.wrapping_mul(31).wrapping_add(byte.into()));
            let schema = tool.get("inputSchema").unwrap_or(&Value::Null);
            let gives = tool.get("outputSchema").filter(|schema| schema.is_object()).cloned();
            Tool { name: name.clone(), arguments: Arguments::of(schema, &mut Dice::new(seed)), gives }
        });
        let lists = [
            ("tools", "tools/list"),
            ("prompts", "prompts/list"),
            ("resources", "resources/list"),
            ("resources", "resources/templates/list"),
        ];
        Self {
            revision,
            transport,
            tools: tools.collect(),
            prompts: declared
                .prompts()
                .iter()
                .map(|(name, prompt)| (name.clone(), arguments(prompt)))
                .collect(),
            resources: declared.resources().iter().cloned().collect(),
            lists: lists
                .iter()
                .filter(|(capability, _)| has(capability))
                .map(|(_, method)| *method)
                .collect(),
            completes: has("completions"),
            logs: has("logging") && !revision.is_modern(),
            subscribes: has("resources.subscribe") && !revision.is_modern(),
            echoes: declared.has_tool(ECHO),
            adds: declared.has_tool(ADD),
            sums: declared.has_tool("add(a:number,b:number)->sum"),
            slows: declared.has_tool(SLOW),
            limits: Limits::LEAST,
        }
    }
}

/// Whether its author says that a call changes nothing that one may miss. Without a word it may. [spec: server/tools]
pub(super) fn is_harmless(tool: &Value) -> bool {
    let says = |hint: &str, wanted: bool| {
        tool.pointer(&format!("/annotations/{hint}")).is_some_and(|value| *value == Value::Bool(wanted))
    };
    says("readOnlyHint", true) || says("destructiveHint", false)
}

fn arguments(prompt: &Value) -> Vec<String> {
    let listed = prompt.get("arguments").and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(|argument| argument.get("name")?.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `destructiveHint` is true unless it is written, and means nothing where the tool only reads.
    #[test]
    fn a_tool_that_may_destroy_is_not_called() {
        for (annotations, harmless) in [
            (json!({}), false),
            (json!({"readOnlyHint": true}), true),
            (json!({"readOnlyHint": true, "destructiveHint": true}), true),
            (json!({"readOnlyHint": false}), false),
            (json!({"destructiveHint": false}), true),
            (json!({"destructiveHint": true}), false),
            (json!({"idempotentHint": true}), false),
        ] {
            assert_eq!(
                is_harmless(&json!({"name": "t", "annotations": annotations})),
                harmless,
                "{annotations}"
            );
        }
        assert!(!is_harmless(&json!({"name": "t"})));
    }
}
