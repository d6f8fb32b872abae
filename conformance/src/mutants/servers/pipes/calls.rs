//! What the small server does for a call.

use serde_json::{Value, json};

use super::{LEGACY, Server};

impl Server {
    pub(super) fn read(&mut self, id: Value, params: &Value) {
        let uri = params["uri"].clone();
        let text = json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."});
        let blob = if self.is("url-safe-blob") { "_-8=" } else { "iVBORw0KGgo=" };
        match uri.as_str().unwrap_or_default() {
            "test://static-text" | "config://app" => self.succeed(id, json!({"contents": [text]})),
            "test://static-binary" => {
                self.succeed(id, json!({"contents": [{"uri": uri, "mimeType": "image/png", "blob": blob}]}));
            }
            path if self.is("climbs") && path.contains("etc/passwd") => {
                self.succeed(id, json!({"contents": [{"uri": uri, "text": "root:x:0:0"}]}));
            }
            _ if self.is("empty-for-missing") => self.succeed(id, json!({"contents": []})),
            _ => {
                let modern = self.revision.is_empty();
                let code = if modern && !self.is("retired-code") { -32602 } else { -32002 };
                self.fail(id, code, json!({"uri": uri}));
            }
        }
    }

    pub(super) fn call(&mut self, id: Value, params: &Value, declared: &Value) {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let token = params["_meta"].get("progressToken").cloned();
        let modern = self.revision.is_empty();
        match params["name"].as_str().unwrap_or_default() {
            "echo" => {
                let said = params["arguments"]["text"].as_str().unwrap_or_default();
                let said = if self.is("other-echo") { format!("You said: {said}") } else { said.to_owned() };
                self.succeed(id, text(&said));
            }
            // What does not fit the schema is refused in the result.
            "add"
                if ["a", "b"].iter().any(|name| !params["arguments"][name].is_number())
                    && !self.is("takes-all") =>
            {
                let mut refusal = text("expected two numbers");
                refusal["isError"] = json!(true);
                self.succeed(id, refusal);
            }
            "add" => {
                let sum = params["arguments"]["a"].as_i64().unwrap_or(0)
                    + params["arguments"]["b"].as_i64().unwrap_or(0);
                let sum = if self.is("wrong-sum") { sum + 1 } else { sum };
                let given = if self.is("sum-as-text") { json!(sum.to_string()) } else { json!(sum) };
                let mut result = text(&format!("{{\"sum\":{sum}}}"));
                if self.revision.is_empty() || self.revision.as_str() >= LEGACY[2] {
                    result["structuredContent"] = json!({"sum": given});
                }
                self.succeed(id, result);
            }
            "slow" => {
                self.ran += 1;
                self.slow.push(id);
            }
            "counter" => {
                let stopped = if self.is("never-stops") { 0 } else { self.stopped };
                let counts = json!({"ran": self.ran, "stopped": stopped});
                let mut result = text(&counts.to_string());
                if self.revision.is_empty() || self.revision.as_str() >= LEGACY[2] {
                    result["structuredContent"] = counts;
                }
                self.succeed(id, result);
            }
            "touch" => {
                self.succeed(id, text("touched"));
                if self.subscribed {
                    self.notify("notifications/resources/updated", json!({"uri": "config://app"}));
                }
                self.publish(
                    "resourceSubscriptions",
                    "notifications/resources/updated",
                    json!({"uri": "config://app"}),
                );
            }
            "test_simple_text" => {
                let said = if self.is("wrong-text") {
                    "This is a text."
                } else {
                    "This is a simple text response for testing."
                };
                if self.is("audio-always") {
                    return self.succeed(
                        id,
                        json!({"content": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]}),
                    );
                }
                if self.is("server-request") {
                    self.ask("ping", json!({}), Value::Null);
                }
                self.succeed(id, text(said));
            }
            "test_tool_with_progress" => {
                let values = if self.is("progress-falls") { [50, 0, 100] } else { [0, 50, 100] };
                if let Some(token) = token {
                    let token = if self.is("own-token") { json!("made-up") } else { token };
                    for value in values {
                        self.notify(
                            "notifications/progress",
                            json!({"progressToken": token, "progress": value, "total": 100}),
                        );
                    }
                    self.succeed(id, text("done"));
                    if self.is("late-progress") {
                        self.notify(
                            "notifications/progress",
                            json!({"progressToken": token, "progress": 200}),
                        );
                    }
                    return;
                }
                self.succeed(id, text("done"));
            }
            "test_tool_with_logging" => {
                for said in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                    let asked = if modern {
                        params["_meta"].get("io.modelcontextprotocol/logLevel").is_some()
                    } else {
                        self.level <= 1
                    };
                    if asked || self.is("always-logs") {
                        self.notify("notifications/message", json!({"level": "info", "data": said}));
                    }
                }
                self.succeed(id, text("done"));
            }
            "test_input_required_result_elicitation" if modern => self.elicit(id, params, declared),
            "test_input_required_result_list_roots" if !modern => {
                let method = if self.is("asks-undeclared") { "sampling/createMessage" } else { "roots/list" };
                let params = if self.is("asks-undeclared") {
                    json!({"messages": [], "maxTokens": 1})
                } else {
                    json!({})
                };
                self.ask(method, params, id);
            }
            "test_trigger_tool_change" => {
                self.publish("toolsListChanged", "notifications/tools/list_changed", json!({}));
                self.succeed(id, text("changed"));
            }
            _ if self.is("unknown-tool-result") => {
                self.succeed(id, json!({"content": [{"type": "text", "text": "?"}], "isError": true}));
            }
            _ => self.fail(id, -32602, Value::Null),
        }
    }

    pub(super) fn elicit(&mut self, id: Value, params: &Value, declared: &Value) {
        let form = json!({"method": "elicitation/create", "params": {"message": "What is your name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}});
        let name = params["inputResponses"]["user_name"]["content"]["name"].as_str();
        if let Some(name) = name {
            let said = format!("Hello, {name}!");
            return self.succeed(id, json!({"content": [{"type": "text", "text": said}]}));
        }
        if declared.get("elicitation").is_none() && !self.is("asks-undeclared") {
            return self.fail(id, -32021, json!({"requiredCapabilities": {"elicitation": {}}}));
        }
        let mut result = json!({"resultType": "input_required", "inputRequests": {"user_name": form}});
        if self.is("embedded-id") {
            result["inputRequests"]["user_name"]["id"] = json!(1);
        }
        self.succeed(id, result);
    }
}
