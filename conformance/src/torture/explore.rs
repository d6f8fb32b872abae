//! Exchanges made for one subject from what it lists: they need no tool that the suite knows.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::requests;
use super::survey::{Survey, Tool};
use crate::exchange::Transport;
use crate::http::{Mirrors, expected};
use crate::revision::Revision;
use crate::subject::Declared;

/// A tool may have work to do, in milliseconds.
const PATIENCE: u64 = 60_000;

/// So many items of a list are used.
const ITEMS: usize = 40;

/// The texts of the exchanges for a subject in one revision. Tools that may destroy something are called only with
/// `destructive`.
pub(crate) fn exchanges(
    declared: &Declared,
    revision: Revision,
    transport: Transport,
    destructive: bool,
) -> Vec<String> {
    let survey = Survey::of(declared, revision, transport, destructive);
    let mut made = Made { survey: &survey, names: BTreeSet::new(), texts: Vec::new() };
    for method in &survey.lists {
        made.list(method);
    }
    for tool in &survey.tools {
        made.calls(tool);
        made.refusals(tool);
        made.headers(tool, &declared.mirrors());
    }
    made.reads();
    for prompt in declared.prompts().values().take(ITEMS) {
        made.prompt(prompt);
    }
    if survey.completes {
        made.completions(declared);
    }
    made.texts
}

struct Made<'s> {
    survey: &'s Survey,
    names: BTreeSet<String>,
    texts: Vec<String>,
}

impl Made<'_> {
    /// An exchange, unless it has no steps.
    fn add(&mut self, name: &str, about: &str, requires: &[&str], steps: &[Value]) {
        if steps.is_empty() {
            return;
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '-' };
        let mut name = format!("explore/{}", name.chars().map(plain).collect::<String>());
        while !self.names.insert(name.clone()) {
            name.push('+');
        }
        let Survey { revision, transport, .. } = self.survey;
        let head = json!({
            "exchange": name,
            "about": about,
            "side": "server",
            "revisions": [revision.as_str()],
            "transports": [transport.as_str()],
            "requires": requires,
        });
        self.texts.push(std::iter::once(&head).chain(steps).map(|line| format!("{line}\n")).collect());
    }

    /// Every page, and in the modern era the first one once more: a list changes with nothing that a client does.
    fn list(&mut self, method: &str) {
        let member = requests::member(method);
        let page = |items: Value, cursor: usize| {
            let next =
                json!({"$optional": {"$bind": format!("cursor-{cursor}"), "$is": {"$type": "string"}}});
            expect(json!({"result": {member: items, "nextCursor": next, "$rest": true}}), &["W01"])
        };
        let mut steps =
            vec![send(method, json!({})), page(json!({"$bind": "first", "$is": {"$type": "array"}}), 0)];
        for hop in 0..4 {
            let cursor = json!({"$optional": {"$ref": format!("cursor-{hop}")}});
            steps.push(send(method, json!({"cursor": cursor})));
            steps.push(page(json!({"$type": "array"}), hop + 1));
        }
        if self.survey.revision.is_modern() {
            let ids: &[&str] = match member {
                "tools" => &["S-TOOL-03"],
                "prompts" => &["S-PROMPT-03"],
                _ => &["S-RES-03"],
            };
            steps.push(send(method, json!({})));
            let mut again = expect(json!({"result": {member: {"$ref": "first"}, "$rest": true}}), ids);
            // Something else may have changed it meanwhile.
            again["level"] = json!("should");
            steps.push(again);
        }
        let about = format!("{method} gives pages, and the same ones again.");
        self.add(&method.replace('/', "-"), &about, &["W01"], &steps);
    }

    fn calls(&mut self, tool: &Tool) {
        let structured = tool.gives.as_ref().filter(|_| self.survey.revision >= Revision::V2025_06_18);
        let mut good = json!({"content": {"$type": "array"}, "isError": {"$optional": false}, "$rest": true});
        if let Some(schema) = structured {
            good["structuredContent"] = json!({"$conforms": schema});
        }
        let other = json!({"$all": [{"$type": "string"}, {"$not": "complete"}]});
        let open = json!({"$oneOf": [
            {"result": good},
            {"result": {"content": {"$type": "array"}, "isError": true, "$rest": true}},
            {"result": {"resultType": other, "$rest": true}},
            {"error": {"$rest": true}},
        ]});
        let ids: &[&str] = if structured.is_some() { &["S-TOOL-13"] } else { &["W01"] };
        let steps = tool.arguments.valid.iter().flat_map(|arguments| {
            [
                send("tools/call", json!({"name": tool.name, "arguments": literal(arguments)})),
                expect(open.clone(), ids),
            ]
        });
        let about = format!("`{}` is called with arguments that its schema allows.", tool.name);
        self.add(&format!("call-{}", tool.name), &about, ids, &steps.collect::<Vec<_>>());
    }

    fn refusals(&mut self, tool: &Tool) {
        let ids = ["S-TOOL-15", "T02"];
        let open = json!({"$oneOf": [
            {"result": {"isError": true, "$rest": true}},
            {"error": {"code": {"$type": "integer"}, "$rest": true}},
        ]});
        let steps = tool.arguments.invalid.iter().flat_map(|arguments| {
            [
                send("tools/call", json!({"name": tool.name, "arguments": literal(arguments)})),
                expect(open.clone(), &ids),
            ]
        });
        let about = format!("`{}` refuses arguments that its schema forbids.", tool.name);
        self.add(&format!("refuse-{}", tool.name), &about, &ids, &steps.collect::<Vec<_>>());
    }

    /// A call whose headers say something else than its body is refused before it runs.
    fn headers(&mut self, tool: &Tool, mirrors: &Mirrors) {
        let over_http = self.survey.transport == Transport::Http && self.survey.revision.is_modern();
        let Some(arguments) = tool.arguments.valid.first().filter(|_| over_http) else { return };
        let params = json!({"name": tool.name, "arguments": literal(arguments)});
        let message = json!({"method": "tools/call", "params": params});
        let plain = json!({"method": "tools/call", "params": {"name": tool.name, "arguments": arguments}});
        let mut lines = Vec::new();
        expected(&plain, self.survey.revision.as_str(), mirrors, &mut lines);
        let mut steps = Vec::new();
        let mut refused = |name: &str, value: Value, ids: &[&str]| {
            let headers = Map::from_iter([(name.to_owned(), value)]);
            let error = json!({"error": {"code": -32020, "message": {"$type": "string"}, "$rest": true}});
            let expect = json!({"status": 400, "message": error});
            let http = json!({"message": message, "headers": headers});
            steps.push(json!({"http": http, "expect": expect, "requires": ids}));
        };
        refused("Mcp-Name", json!("no-such-tool"), &["S-HDR-20", "H07"]);
        refused("Mcp-Method", json!("tools/list"), &["S-HDR-20", "H07"]);
        for (name, _) in lines.iter().filter(|(name, _)| name.starts_with("Mcp-Param-")) {
            refused(name, json!({"$absent": true}), &["S-HDR-19", "H08"]);
        }
        let about = format!("A call of `{}` with other headers than its body is refused.", tool.name);
        self.add(&format!("headers-{}", tool.name), &about, &["S-HDR-20", "H07"], &steps);
    }

    /// What is listed is read; where it cannot be, an error says so.
    fn reads(&mut self) {
        let open = json!({"$oneOf": [
            {"result": {"contents": {"$type": "array"}, "$rest": true}},
            {"result": {"resultType": {"$all": [{"$type": "string"}, {"$not": "complete"}]}, "$rest": true}},
            {"error": {"$rest": true}},
        ]});
        let uris = self.survey.resources.iter().take(ITEMS);
        let steps = uris
            .flat_map(|uri| [send("resources/read", json!({"uri": uri})), expect(open.clone(), &["W01"])]);
        let steps: Vec<_> = steps.collect();
        self.add("resources", "What is listed is read.", &["W01"], &steps);
    }

    fn prompt(&mut self, prompt: &Value) {
        let Some(name) = prompt.get("name").and_then(Value::as_str) else { return };
        let listed = prompt.get("arguments").and_then(Value::as_array).into_iter().flatten();
        let (mut given, mut required) = (Map::new(), false);
        for argument in listed {
            let Some(name) = argument.get("name").and_then(Value::as_str) else { continue };
            given.insert(name.to_owned(), json!("1"));
            required |= argument.get("required") == Some(&Value::Bool(true));
        }
        let open = json!({"$oneOf": [
            {"result": {"messages": {"$type": "array"}, "$rest": true}},
            {"result": {"resultType": {"$all": [{"$type": "string"}, {"$not": "complete"}]}, "$rest": true}},
            {"error": {"$rest": true}},
        ]});
        let params = json!({"name": name, "arguments": literal(&Value::Object(given))});
        let mut steps = vec![send("prompts/get", params), expect(open, &["W01"])];
        if required {
            steps.push(send("prompts/get", json!({"name": name})));
            steps.push(expect(requests::error(&[-32602]), &["S-PROMPT-09"]));
        }
        let about = format!("The prompt `{name}` is there, with what it requires.");
        self.add(&format!("prompt-{name}"), &about, &["W01", "S-PROMPT-09"], &steps);
    }

    fn completions(&mut self, declared: &Declared) {
        let of_prompts = self.survey.prompts.iter().flat_map(|(name, arguments)| {
            arguments
                .iter()
                .map(move |argument| (json!({"type": "ref/prompt", "name": name}), argument.clone()))
        });
        let of_templates = declared.templates().iter().flat_map(|template| {
            let reference = json!({"type": "ref/resource", "uri": template});
            variables(template).into_iter().map(move |variable| (reference.clone(), variable))
        });
        let open = json!({"$oneOf": [
            {"result": {"completion": {"values": {"$count": {"max": 100, "each": {"$type": "string"}}}, "$rest": true}, "$rest": true}},
            {"error": {"$rest": true}},
        ]});
        let steps = of_prompts.chain(of_templates).take(ITEMS).flat_map(|(reference, name)| {
            let params = json!({"ref": reference, "argument": {"name": name, "value": ""}});
            [send("completion/complete", params), expect(open.clone(), &["S-WIRE-15", "W01"])]
        });
        let steps: Vec<_> = steps.collect();
        self.add("completions", "Arguments of what is listed are completed.", &["S-WIRE-15", "W01"], &steps);
    }
}

fn send(method: &str, params: Value) -> Value {
    json!({"send": {"method": method, "params": params}})
}

fn expect(pattern: Value, requires: &[&str]) -> Value {
    let skip = json!({"method": {"$type": "string"}, "$rest": true});
    json!({"expect": pattern, "requires": requires, "skip": skip, "within": PATIENCE})
}

/// A value in which a `$` means nothing.
fn literal(value: &Value) -> Value {
    if value.to_string().contains("\"$") { json!({"$literal": value}) } else { value.clone() }
}

/// The names of the simple variables of a URI template.
fn variables(template: &str) -> Vec<String> {
    let parts = template.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let names =
        parts.flat_map(|(inner, _)| inner.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']).split(','));
    names.map(|name| name.trim_end_matches('*').to_owned()).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_a_template_are_named() {
        assert_eq!(variables("users://{id}"), ["id"]);
        assert_eq!(variables("f:{+path}{?a,b*}"), ["path", "a", "b"]);
        assert!(variables("plain").is_empty() && variables("open{").is_empty());
    }

    #[test]
    fn a_dollar_in_arguments_means_nothing() {
        assert_eq!(literal(&json!({"a": 1})), json!({"a": 1}));
        assert_eq!(literal(&json!({"$ref": 1})), json!({"$literal": {"$ref": 1}}));
    }
}
