//! The plan of a recorded client, as far as its messages show it: with it another client does the same once more.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::marks::said;
use super::tape::Party;

/// A plan for the client half of a recording.
pub(super) fn infer(steps: &[Map<String, Value>]) -> Value {
    let mut plan = Planner::default();
    for step in steps {
        plan.step(step);
    }
    plan.finish()
}

#[derive(Default)]
struct Planner {
    steps: Vec<Value>,
    answers: Map<String, Value>,
    declared: Value,
    token: Option<String>,
    /// Requests of the client that are open: what they are for, and the step they became.
    open: BTreeMap<String, (String, Option<usize>)>,
    /// By HTTP request: the id of the message it carried.
    carried: BTreeMap<u64, String>,
    /// The requests of the server.
    asked: BTreeMap<String, String>,
    listed: Vec<String>,
    subscriptions: u32,
}

impl Planner {
    fn step(&mut self, step: &Map<String, Value>) {
        if let Some(number) = step.get("cut").and_then(Value::as_u64)
            && step.get("by").is_some_and(|by| by == "client")
            && let Some(id) = self.carried.get(&number).cloned()
        {
            self.given_up(&id);
        }
        let Some((party, message)) = said(step) else { return };
        let method = message.get("method").and_then(Value::as_str);
        let id = message.get("id").map(Value::to_string);
        match (party, method, id) {
            (Party::Client, Some(method), Some(id)) => {
                if let Some(number) = step.get("request").and_then(Value::as_u64) {
                    self.carried.insert(number, id.clone());
                }
                let bearer = step.get("headers").and_then(|headers| headers.get("authorization"));
                if let Some(token) =
                    bearer.and_then(Value::as_str).and_then(|line| line.strip_prefix("Bearer "))
                {
                    self.token = Some(token.to_owned());
                }
                self.request(method, message.get("params").unwrap_or(&Value::Null), id);
            }
            (Party::Client, Some("notifications/cancelled"), None) => {
                if let Some(id) = message.pointer("/params/requestId") {
                    self.given_up(&id.to_string());
                }
            }
            (Party::Client, None, Some(id)) => {
                let asked = self.asked.get(&id).cloned().unwrap_or_default();
                self.answered(&asked, message.get("result").unwrap_or(&Value::Null));
            }
            (Party::Server, Some(method), Some(id)) => {
                self.asked.insert(id, method.to_owned());
            }
            (Party::Server, Some("notifications/progress"), None) => {
                for (_, step) in self.open.values() {
                    let step = step.and_then(|index| self.steps.get_mut(index));
                    if let Some(step) = step.filter(|step| step.get("progress").is_some()) {
                        step["cancel"] = json!("progress");
                    }
                }
            }
            (Party::Server, None, Some(id)) => {
                // It was not given up.
                if let Some((_, Some(index))) = self.open.remove(&id)
                    && let Some(Value::Object(step)) = self.steps.get_mut(index)
                {
                    step.remove("cancel");
                }
            }
            _ => {}
        }
    }

    fn request(&mut self, method: &str, params: &Value, id: String) {
        let capabilities = params
            .pointer("/_meta/io.modelcontextprotocol~1clientCapabilities")
            .or_else(|| params.get("capabilities").filter(|_| method == "initialize"));
        if let Some(capabilities) = capabilities {
            self.declared = capabilities.clone();
        }
        for (_, answer) in params.get("inputResponses").and_then(Value::as_object).into_iter().flatten() {
            self.input(answer);
        }
        let again = params.get("inputResponses").is_some() || params.get("requestState").is_some();
        let step = if again { None } else { self.act(method, params) };
        let index = step.map(|mut step| {
            if params.pointer("/_meta/progressToken").is_some() {
                step["progress"] = json!(true);
            }
            self.steps.push(step);
            self.steps.len() - 1
        });
        self.open.insert(id, (method.to_owned(), index));
    }

    fn act(&mut self, method: &str, params: &Value) -> Option<Value> {
        let part = |name: &str| params.get(name).cloned();
        Some(match method {
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                // Further pages belong to the first.
                if params.get("cursor").is_some() {
                    return None;
                }
                let kind = if method == "resources/templates/list" {
                    "templates"
                } else {
                    method.split('/').next().unwrap_or_default()
                };
                let again = self.listed.iter().any(|listed| listed == kind);
                self.listed.push(kind.to_owned());
                if again { json!({"list": kind, "fresh": true}) } else { json!({"list": kind}) }
            }
            "tools/call" => {
                let mut step = json!({"call": part("name")?});
                if let Some(arguments) = part("arguments") {
                    step["arguments"] = arguments;
                }
                if params.get("task").is_some() {
                    step["task"] = json!(true);
                }
                step
            }
            "resources/read" => json!({"read": part("uri")?}),
            "resources/subscribe" => json!({"subscribe": part("uri")?}),
            "resources/unsubscribe" => json!({"unsubscribe": part("uri")?}),
            "prompts/get" => match part("arguments") {
                Some(arguments) => json!({"prompt": part("name")?, "arguments": arguments}),
                None => json!({"prompt": part("name")?}),
            },
            "completion/complete" => {
                let members = ["ref", "argument", "context"];
                let complete = members.iter().filter_map(|name| Some(((*name).to_owned(), part(name)?)));
                json!({"complete": complete.collect::<Map<_, _>>()})
            }
            "logging/setLevel" => json!({"level": part("level")?}),
            "ping" => json!({"ping": true}),
            "subscriptions/listen" => {
                self.subscriptions += 1;
                let name = format!("subscription-{}", self.subscriptions);
                json!({"listen": part("notifications").unwrap_or_else(|| json!({})), "as": name})
            }
            _ => return None,
        })
    }

    fn given_up(&mut self, id: &str) {
        let Some((method, index)) = self.open.remove(id) else { return };
        let Some(step) = index.and_then(|index| self.steps.get_mut(index)) else { return };
        if method == "subscriptions/listen" {
            let name = step["as"].clone();
            self.steps.push(json!({"unlisten": name}));
        } else if step.get("cancel").is_none() {
            step["cancel"] = json!(100);
        }
    }

    fn answered(&mut self, method: &str, result: &Value) {
        match method {
            "elicitation/create" | "sampling/createMessage" | "roots/list" => self.input(result),
            _ => {}
        }
    }

    /// What the client said when it was asked: a form, a sample, or roots.
    fn input(&mut self, result: &Value) {
        if let Some(roots) = result.get("roots") {
            self.answers.insert("roots".to_owned(), roots.clone());
        } else if result.get("role").is_some() {
            self.answers.insert("sampling".to_owned(), result.clone());
        } else if let Some(action) = result.get("action").and_then(Value::as_str) {
            match result.get("content") {
                Some(Value::Object(content)) => {
                    let form = self.answers.entry("elicitation").or_insert_with(|| json!({}));
                    if let Value::Object(form) = form {
                        form.extend(content.clone());
                    }
                }
                _ if action == "accept" => {
                    self.answers.insert("url".to_owned(), json!("accept"));
                }
                _ => {
                    self.answers.insert("form".to_owned(), json!(action));
                }
            }
        }
    }

    /// What was declared has to be declared again, though nobody asked.
    fn finish(mut self) -> Value {
        let declares = |at: &str| self.declared.pointer(at).is_some();
        let mut defaults = Vec::new();
        let form =
            declares("/elicitation/form") || (declares("/elicitation") && !declares("/elicitation/url"));
        if form && !self.answers.contains_key("form") {
            defaults.push(("elicitation", json!({})));
        }
        if declares("/elicitation/url") {
            defaults.push(("url", json!("accept")));
        }
        if declares("/sampling") {
            let content = json!({"type": "text", "text": "text"});
            defaults.push(("sampling", json!({"role": "assistant", "model": "none", "content": content})));
        }
        if declares("/roots") {
            defaults.push(("roots", json!([])));
        }
        let tasks = declares("/tasks") || declares("/extensions/io.modelcontextprotocol~1tasks");
        for (name, answer) in defaults {
            self.answers.entry(name).or_insert(answer);
        }
        let mut plan = json!({"steps": self.steps});
        if !self.answers.is_empty() {
            plan["answers"] = Value::Object(self.answers);
        }
        if tasks {
            plan["tasks"] = json!(true);
        }
        if let Some(token) = self.token {
            plan["token"] = json!(token);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_what_the_client_did() {
        let steps: Vec<Map<String, Value>> = serde_json::from_value(json!([
            {"client": {"id": 0, "method": "initialize", "params": {"capabilities": {"elicitation": {}, "roots": {}}}}},
            {"client": {"id": 1, "method": "tools/list"}},
            {"server": {"id": 1, "result": {"tools": [], "nextCursor": "a"}}},
            {"client": {"id": 2, "method": "tools/list", "params": {"cursor": "a"}}},
            {"client": {"id": 3, "method": "tools/call", "params": {"name": "t", "arguments": {"a": 1},
                "_meta": {"progressToken": 3}}}},
            {"server": {"method": "notifications/progress", "params": {"progressToken": 3, "progress": 1}}},
            {"client": {"method": "notifications/cancelled", "params": {"requestId": 3}}},
            {"client": {"id": 4, "method": "tools/call", "params": {"name": "ask"}}},
            {"server": {"id": "s", "method": "elicitation/create", "params": {}}},
            {"client": {"id": "s", "result": {"action": "accept", "content": {"ok": true}}}},
            {"server": {"id": 4, "result": {"content": []}}},
            {"client": {"id": 5, "method": "tools/list"}},
        ]))
        .unwrap();
        let plan = infer(&steps);
        let expected = json!([
            {"list": "tools"},
            {"call": "t", "arguments": {"a": 1}, "progress": true, "cancel": "progress"},
            {"call": "ask"},
            {"list": "tools", "fresh": true},
        ]);
        assert_eq!(plan["steps"], expected);
        assert_eq!(plan["answers"], json!({"elicitation": {"ok": true}, "roots": []}));
    }
}
