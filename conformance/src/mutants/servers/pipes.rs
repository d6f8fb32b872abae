//! A small server that behaves, or misbehaves in one named way.
//!
//! It is written against the wire alone and serves just enough of both eras for the suite to be judged by it.

mod calls;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};

use serde_json::{Value, json};

/// Serves lines with one fault, or none.
pub(crate) fn serve(fault: &'static str, input: PipeReader, output: PipeWriter) {
    Server::new(fault, output).serve(input);
}

struct Server {
    fault: &'static str,
    output: PipeWriter,
    revision: String,
    initialized: bool,
    started: bool,
    /// Open `slow` calls.
    slow: Vec<Value>,
    ran: u64,
    stopped: u64,
    /// Open listen requests and what they ask for.
    listens: BTreeMap<String, (Value, Value)>,
    subscribed: bool,
    level: usize,
    /// Calls that wait for an answer of the client, by the id of the request sent to it.
    asked: BTreeMap<u64, Value>,
    next: u64,
}

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

impl Server {
    fn new(fault: &'static str, output: PipeWriter) -> Self {
        Self {
            fault,
            output,
            revision: String::new(),
            initialized: false,
            started: false,
            slow: Vec::new(),
            ran: 0,
            stopped: 0,
            listens: BTreeMap::new(),
            subscribed: false,
            level: 0,
            asked: BTreeMap::new(),
            next: 1,
        }
    }

    fn is(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn serve(mut self, input: PipeReader) {
        let mut input = BufReader::new(input);
        if self.is("banner") {
            self.raw(b"server ready\n");
        }
        let mut first = true;
        loop {
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            if std::mem::take(&mut first) && line.starts_with(b"\xef\xbb\xbf") && !self.is("no-mark") {
                line.drain(..3);
            }
            if self.is("crash") && line.windows(4).any(|word| word == b"ping") {
                return;
            }
            self.line(&line);
        }
    }

    fn line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match serde_json::from_slice::<Value>(line) {
            Err(_) => self.nameless(-32700),
            Ok(Value::Array(items)) if self.revision == LEGACY[1] && !items.is_empty() => {
                items.into_iter().for_each(|item| self.message(item));
            }
            Ok(message) => self.message(message),
        }
    }

    fn message(&mut self, message: Value) {
        let id = message.get("id").cloned();
        if message.get("jsonrpc") != Some(&json!("2.0")) && !self.is("lax-version") {
            return match id {
                Some(id) => self.fail(id, -32600, Value::Null),
                None => self.nameless(-32600),
            };
        }
        let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
        match (message.get("method").and_then(Value::as_str), id) {
            (None, Some(id)) => self.answered(&id, &message),
            (None, None) => self.nameless(-32600),
            (Some(method), None) => self.notified(method, &params),
            (Some(method), Some(id)) => {
                let method = method.to_owned();
                self.request(&method, id, params);
            }
        }
    }

    fn notified(&mut self, method: &str, params: &Value) {
        match method {
            "notifications/initialized" => self.initialized = true,
            "notifications/cancelled" if !self.is("deaf-to-cancel") => {
                let id = params.get("requestId").cloned().unwrap_or_default();
                let before = self.slow.len();
                self.slow.retain(|open| *open != id);
                if self.slow.len() < before {
                    self.stopped += 1;
                    if self.is("answers-cancelled") {
                        self.fail(id, -32800, Value::Null);
                        return;
                    }
                }
                self.listens.remove(&id.to_string());
            }
            _ if self.is("answers-notifications") => self.nameless(-32601),
            _ => {}
        }
    }

    fn request(&mut self, method: &str, id: Value, params: Value) {
        let modern = params.pointer(&format!("/_meta/{}", VERSION.replace('/', "~1"))).is_some();
        if modern || self.revision.is_empty() && !matches!(method, "initialize" | "ping") {
            return self.modern(method, id, params);
        }
        self.legacy(method, id, params);
    }

    fn legacy(&mut self, method: &str, id: Value, params: Value) {
        match method {
            "initialize" => {
                let offered = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
                let known = LEGACY.contains(&offered) && !self.is("one-version");
                if !known && self.is("refuses-unknown-version") {
                    return self.fail(id, -32602, Value::Null);
                }
                self.revision = if known { offered } else { LEGACY[3] }.to_owned();
                let mut capabilities = self.capabilities();
                capabilities["logging"] = json!({});
                if self.is("undeclared-logging") {
                    capabilities.as_object_mut().unwrap().remove("logging");
                }
                let info = json!({"name": "mock", "version": "1"});
                let mut result = json!({"protocolVersion": self.revision, "capabilities": capabilities, "serverInfo": info});
                if self.is("nameless-server") {
                    result.as_object_mut().unwrap().remove("serverInfo");
                }
                self.succeed(id, result);
                if self.is("early-request") {
                    self.ask("roots/list", json!({}), Value::Null);
                }
            }
            "ping" if self.is("no-ping") => {}
            "ping" => self.succeed(id, json!({})),
            "logging/setLevel" => {
                let level = LEVELS.iter().position(|name| params["level"] == **name);
                match level {
                    Some(level) => {
                        self.level = level;
                        self.succeed(id, json!({}));
                    }
                    None if self.is("any-level") => self.succeed(id, json!({})),
                    None => self.fail(id, -32602, Value::Null),
                }
            }
            "resources/subscribe" => {
                self.subscribed = true;
                self.succeed(id, json!({}));
            }
            "resources/unsubscribe" => {
                self.subscribed = self.is("keeps-subscription");
                self.succeed(id, json!({}));
            }
            _ => self.common(method, id, &params, &json!({})),
        }
    }

    fn modern(&mut self, method: &str, id: Value, params: Value) {
        let version = params["_meta"][VERSION].clone();
        let capabilities = params["_meta"][CAPABILITIES].clone();
        let lax = self.is("lax-meta");
        if !version.is_string() || (!capabilities.is_object() && !lax) {
            return self.fail(id, -32602, Value::Null);
        }
        if version != MODERN && !self.is("any-version") {
            let data = json!({"supported": [MODERN], "requested": version});
            return self.fail(id, -32022, if self.is("bare-version-error") { Value::Null } else { data });
        }
        if self.is("knows-all-meta") && params["_meta"].get("dev.mcp/suite").is_some() {
            return self.fail(id, -32602, Value::Null);
        }
        match method {
            "server/discover" => {
                let capabilities = self.capabilities();
                self.succeed(id, json!({"supportedVersions": [MODERN], "capabilities": capabilities}));
            }
            "subscriptions/listen" => {
                let asked = params["notifications"].clone();
                self.listens.insert(id.to_string(), (id.clone(), asked.clone()));
                if !self.is("no-acknowledgment") {
                    let params = json!({"notifications": asked, "_meta": {"io.modelcontextprotocol/subscriptionId": id}});
                    self.notify("notifications/subscriptions/acknowledged", params);
                }
            }
            _ => self.common(method, id, &params, &capabilities),
        }
    }

    fn common(&mut self, method: &str, id: Value, params: &Value, declared: &Value) {
        match method {
            "tools/list" | "resources/list" | "resources/templates/list"
                if params.get("cursor").is_some() && !self.is("any-cursor") =>
            {
                self.fail(id, -32602, Value::Null);
            }
            "tools/list" => {
                let names = [
                    "echo",
                    "add",
                    "slow",
                    "counter",
                    "touch",
                    "test_simple_text",
                    "test_tool_with_progress",
                    "test_tool_with_logging",
                    "test_input_required_result_elicitation",
                    "test_input_required_result_list_roots",
                    "test_trigger_tool_change",
                ];
                let tool =
                    |name: &&str| json!({"name": name, "description": name, "inputSchema": schema(name)});
                let mut tools: Vec<_> = names.iter().map(tool).collect();
                if self.revision.is_empty() || self.revision.as_str() >= LEGACY[2] {
                    tools[1]["outputSchema"] =
                        json!({"type": "object", "properties": {"sum": {"type": "number"}}});
                }
                if self.revision.is_empty() || self.revision.as_str() >= LEGACY[1] {
                    tools[1]["annotations"] = json!({"readOnlyHint": true});
                }
                if self.is("other-add") {
                    tools[1]["inputSchema"]["properties"] = json!({"x": {}, "y": {}});
                }
                if self.is("null-schema") {
                    tools[0]["inputSchema"] = Value::Null;
                }
                self.succeed(id, json!({"tools": tools}));
            }
            "resources/list" => {
                let resource = |uri: &str| json!({"uri": uri, "name": uri});
                self.succeed(id, json!({"resources": [resource("test://static-text"), resource("test://static-binary"), resource("config://app")]}));
            }
            "resources/templates/list" => self.succeed(id, json!({"resourceTemplates": []})),
            "resources/read" => self.read(id, params),
            "tools/call" => self.call(id, params, declared),
            _ if self.is("odd-method-code") => self.fail(id, -32603, Value::Null),
            _ => self.fail(id, -32601, Value::Null),
        }
    }

    /// Tells every listen stream that asked.
    fn publish(&mut self, kind: &str, method: &str, params: Value) {
        for (id, asked) in self.listens.clone().into_values() {
            if asked.get(kind).is_none() && !self.is("unfiltered") {
                continue;
            }
            let mut params = params.clone();
            let tag = if self.is("tag-as-text") { json!(id.to_string()) } else { id };
            if !self.is("untagged") {
                params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": tag});
            }
            self.notify(method, params);
        }
    }

    fn ask(&mut self, method: &str, params: Value, call: Value) {
        let id = self.next;
        self.next += 1;
        self.asked.insert(id, call);
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn answered(&mut self, id: &Value, message: &Value) {
        let call = id.as_u64().and_then(|id| self.asked.remove(&id));
        match call {
            Some(call) if !call.is_null() => {
                let said = message.pointer("/result/roots/0/uri").cloned().unwrap_or_default();
                self.succeed(call, json!({"content": [{"type": "text", "text": said}]}));
            }
            Some(_) => {}
            None if message.get("result").is_none() && message.get("error").is_none() => {
                self.fail(id.clone(), -32600, Value::Null);
            }
            None => {}
        }
    }

    fn capabilities(&self) -> Value {
        json!({"tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true}})
    }

    fn succeed(&mut self, id: Value, mut result: Value) {
        let members = result.as_object_mut().unwrap();
        if self.revision.is_empty() {
            members.entry("resultType").or_insert(json!("complete"));
            if members.contains_key("tools")
                || members.contains_key("resources")
                || members.contains_key("resourceTemplates")
                || members.contains_key("contents")
                || members.contains_key("supportedVersions")
            {
                members.insert("ttlMs".to_owned(), json!(if self.fault == "negative-ttl" { -1 } else { 0 }));
                members.insert("cacheScope".to_owned(), json!("private"));
            }
            members.insert("_meta".to_owned(), json!({SERVER_INFO: {"name": "mock", "version": "1"}}));
            match self.fault {
                "no-result-type" => drop(members.remove("resultType")),
                "no-ttl" => drop(members.remove("ttlMs")),
                "anonymous" => drop(members.remove("_meta")),
                _ => {}
            }
        } else if self.is("legacy-result-type") {
            members.insert("resultType".to_owned(), json!("complete"));
        }
        match self.fault {
            "null-member" => drop(members.insert("nextCursor".to_owned(), Value::Null)),
            "odd-meta" => drop(members.insert("_meta".to_owned(), json!({"-x-": 1}))),
            _ => {}
        }
        let mut message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        match self.fault {
            "text-id" if id.is_number() => message["id"] = json!(id.to_string()),
            "no-version" => drop(message.as_object_mut().unwrap().remove("jsonrpc")),
            "both" => message["error"] = json!({"code": 1, "message": "m"}),
            _ => {}
        }
        self.write(&message);
        if self.is("twice") {
            self.write(&message);
        }
    }

    fn fail(&mut self, id: Value, code: i64, data: Value) {
        let mut error = json!({"code": code, "message": "refused", "data": data});
        if error["data"].is_null() {
            error.as_object_mut().unwrap().remove("data");
        }
        match self.fault {
            "text-code" => error["code"] = json!(code.to_string()),
            "reserved-code" => error["code"] = json!(-32050),
            "silent-errors" => return,
            _ => {}
        }
        self.write(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn nameless(&mut self, code: i64) {
        self.write(&json!({"jsonrpc": "2.0", "error": {"code": code, "message": "unreadable"}}));
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn write(&mut self, message: &Value) {
        if !std::mem::replace(&mut self.started, true) && self.is("writes-mark") {
            self.raw(b"\xef\xbb\xbf");
        }
        let mut bytes = message.to_string().into_bytes();
        if self.is("latin-1") {
            bytes.extend(b" \xe9");
        }
        bytes.push(b'\n');
        if self.is("blank-lines") {
            bytes.push(b'\n');
        }
        self.raw(&bytes);
    }

    fn raw(&mut self, bytes: &[u8]) {
        // The suite may have seen enough.
        let _ = self.output.write_all(bytes);
    }
}

/// The input schema of a tool.
fn schema(name: &str) -> Value {
    let of = |kind: &str, names: &[&str]| {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({"type": kind}))).collect();
        json!({"type": "object", "properties": properties, "required": names})
    };
    match name {
        "echo" => of("string", &["text"]),
        "add" => of("number", &["a", "b"]),
        "slow" => of("integer", &["ms"]),
        _ => json!({"type": "object"}),
    }
}
