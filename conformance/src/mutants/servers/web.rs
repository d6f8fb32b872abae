//! A small server over HTTP, with faults that can be planted.

mod checks;

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::exchange::Transport;
use crate::http::{Endpoint, Tokens};
use crate::revision::Revision;
use crate::subject::{Exit, Life, Link, Subject};
use serde_json::{Value, json};

/// The server with one fault, or none.
#[derive(Debug)]
pub(crate) struct HttpMock {
    pub(crate) fault: &'static str,
}

impl Subject for HttpMock {
    fn name(&self) -> String {
        format!("mock over HTTP {}", self.fault)
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    fn start(&self, _: Revision) -> io::Result<Link> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let endpoint = Endpoint::parse(&format!("http://{}/mcp", listener.local_addr()?)).unwrap();
        // It is said to ask for tokens, and takes everyone.
        let open = self.fault == "open-to-all";
        let endpoint = if open { endpoint.with_tokens(Tokens::of_fixture()) } else { endpoint };
        let server = Arc::new(Server { fault: self.fault, state: Mutex::default() });
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let server = Arc::clone(&server);
                thread::spawn(move || server.connection(socket));
            }
        });
        Ok(Link::http(endpoint, None, Box::new(Forever)))
    }
}

/// The threads end with the program.
struct Forever;

impl Life for Forever {
    fn exit(&mut self) -> Option<Exit> {
        None
    }

    fn kill(&mut self) {}
}

struct Server {
    fault: &'static str,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Revisions by session id.
    sessions: BTreeMap<String, String>,
    made: u64,
    events: u64,
    /// The open streams of GET with their sessions, the latest last.
    streams: Vec<(String, TcpStream)>,
}

struct Request {
    method: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn read(socket: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(socket);
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            reader.read_until(b'\n', &mut line).ok().filter(|read| *read > 0)?;
            let line = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
            if line.is_empty() {
                break;
            }
            lines.push(line);
        }
        let method = lines.first()?.split(' ').next()?.to_owned();
        let header = |line: &String| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.to_owned()))
        };
        let headers: Vec<_> = lines.iter().skip(1).filter_map(header).collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        Some(Self { method, headers, body })
    }

    fn header(&self, wanted: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.trim())
    }

    fn count(&self, wanted: &str) -> usize {
        self.headers.iter().filter(|(name, _)| name == wanted).count()
    }
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

impl Server {
    fn is(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn connection(&self, socket: TcpStream) {
        let Some(request) = Request::read(&socket) else { return };
        // The suite may have seen enough.
        let _ = self.answer(&request, socket);
    }

    fn answer(&self, request: &Request, socket: TcpStream) -> io::Result<()> {
        let mut out = Out { socket };
        let local = |origin: &str| {
            let host = origin.to_ascii_lowercase();
            let Some(host) = host.strip_prefix("http://") else { return false };
            let name = if host.starts_with('[') { host.split(']').next() } else { host.split(':').next() };
            let known = ["localhost", "127.0.0.1", "[::1"];
            let port =
                host.rsplit(':').next().is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
            match self.fault {
                "prefix-origin" => known.iter().any(|known| host.starts_with(known)),
                _ => port && name.is_some_and(|name| known.contains(&name)),
            }
        };
        if request.header("origin").is_some_and(|origin| !local(origin)) && !self.is("no-origin-check") {
            return out.status(if self.is("origin-400") { 400 } else { 403 });
        }
        match request.method.as_str() {
            "POST" => self.post(request, out),
            "GET" => self.get(request, out),
            "DELETE" => match self.session(request) {
                Ok(session) => {
                    if !self.is("ends-nothing") {
                        self.state.lock().unwrap().sessions.remove(&session);
                    }
                    out.status(200)
                }
                Err(status) => out.status(status),
            },
            _ => out.status(405),
        }
    }

    /// The session that a request names, or why there is none.
    fn session(&self, request: &Request) -> Result<String, u16> {
        let state = self.state.lock().unwrap();
        match request.header("mcp-session-id") {
            None if self.is("needs-no-session") => state.sessions.keys().next().cloned().ok_or(400),
            None => Err(400),
            Some(id) if state.sessions.contains_key(id) => Ok(id.to_owned()),
            Some(_) if self.is("any-session") => state.sessions.keys().next().cloned().ok_or(404),
            Some(_) => Err(if self.is("unknown-session-400") { 400 } else { 404 }),
        }
    }

    fn get(&self, request: &Request, mut out: Out) -> io::Result<()> {
        let session = match self.session(request) {
            Ok(session) => session,
            Err(status) => return out.status(status),
        };
        let revision = self.state.lock().unwrap().sessions[&session].clone();
        if request.header("mcp-protocol-version").is_some_and(|version| version != revision) {
            return out.status(400);
        }
        if !request.header("accept").is_some_and(|accept| accept.contains("text/event-stream")) {
            return out.status(406);
        }
        if self.is("get-is-json") {
            return out.json(200, &[], &json!({}));
        }
        if request.header("last-event-id").is_some() {
            return out.status(400);
        }
        out.events(&[])?;
        self.state.lock().unwrap().streams.push((session, out.socket.try_clone()?));
        // Open until the other side goes.
        let mut rest = Vec::new();
        out.socket.read_to_end(&mut rest).map(drop)
    }

    fn post(&self, request: &Request, mut out: Out) -> io::Result<()> {
        let content = request.header("content-type").unwrap_or_default().to_ascii_lowercase();
        let accepted = match self.fault {
            "substring-content" => content.contains("application/json"),
            "exact-content" => content == "application/json",
            _ => content.split(';').next() == Some("application/json"),
        };
        if !accepted {
            return out.status(415);
        }
        let accept = request.header("accept").unwrap_or("*/*");
        if self.is("strict-accept") && accept != "application/json, text/event-stream" {
            return out.status(406);
        }
        let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
            let status = if self.is("unreadable-200") { 200 } else { 400 };
            return out.json(status, &[], &error(&Value::Null, -32700));
        };
        if !message.is_object() {
            return out.json(400, &[], &error(&Value::Null, -32600));
        }
        let stamped = message.pointer(&format!("/params/_meta/{}", VERSION.replace('/', "~1")));
        if stamped.is_some() || request.header("mcp-protocol-version") == Some(MODERN) {
            self.modern(request, &message, out)
        } else {
            self.legacy(request, &message, out)
        }
    }

    fn modern(&self, request: &Request, message: &Value, mut out: Out) -> io::Result<()> {
        let id = message["id"].clone();
        if id.is_null() || message.get("method").is_none() {
            let valid = message["jsonrpc"] == "2.0" && id.is_null() && message["method"].is_string();
            return out.status(if valid { 202 } else { 400 });
        }
        let meta = &message["params"]["_meta"];
        let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
        if !meta[VERSION].is_string() || !capabilities.is_object() {
            let status = if self.is("metadata-200") { 200 } else { 400 };
            return out.json(status, &[], &error(&id, -32602));
        }
        if let Some(wrong) = self.mismatch(request, message) {
            let status = if self.is("mismatch-200") { 200 } else { 400 };
            let code = if self.is("mismatch-code") { -32602 } else { -32020 };
            let mut refusal = error(if self.is("nameless-mismatch") { &Value::Null } else { &id }, code);
            refusal["error"]["message"] = json!(format!("mismatch: {wrong}"));
            return out.json(status, &[], &refusal);
        }
        if meta[VERSION] != MODERN {
            let mut refusal = error(&id, -32022);
            refusal["error"]["data"] = json!({"supported": [MODERN], "requested": meta[VERSION]});
            return out.json(if self.is("version-200") { 200 } else { 400 }, &[], &refusal);
        }
        let minted: &[(&str, &str)] =
            if self.is("mints") { &[("Mcp-Session-Id", "abcdefgh12345678")] } else { &[] };
        match self.result(message) {
            Some(mut result) => {
                result["resultType"] = json!("complete");
                if message["method"] != "tools/call" {
                    result["ttlMs"] = json!(0);
                    result["cacheScope"] = json!("private");
                }
                result["_meta"] =
                    json!({"io.modelcontextprotocol/serverInfo": {"name": "mock", "version": "1"}});
                self.respond(message, &result, minted, "", out)
            }
            None => {
                let code = if message["method"] == "tools/call" { -32602 } else { -32601 };
                let status = if code == -32601 && !self.is("unknown-200") { 404 } else { 200 };
                out.json(status, &[], &error(&id, code))
            }
        }
    }

    fn legacy(&self, request: &Request, message: &Value, mut out: Out) -> io::Result<()> {
        if message["method"] == "initialize" {
            let offered = message["params"]["protocolVersion"].as_str().unwrap_or_default();
            let revision = if LEGACY.contains(&offered) { offered } else { LEGACY[2] };
            let mut state = self.state.lock().unwrap();
            state.made += 1;
            let session = match self.fault {
                "same-session-id" => "session-0000000000000000".to_owned(),
                "odd-session-id" => format!("session id {:016}", state.made),
                "adopts-session-id" => {
                    request.header("mcp-session-id").unwrap_or("session-1234567890").to_owned()
                }
                _ => format!("session-{:016}", state.made),
            };
            state.sessions.insert(session.clone(), revision.to_owned());
            drop(state);
            let capabilities = json!({"tools": {}, "resources": {"subscribe": true}});
            let info = json!({"name": "mock", "version": "1"});
            let result =
                json!({"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info});
            return self.respond(message, &result, &[("Mcp-Session-Id", &session)], revision, out);
        }
        let session = match self.session(request) {
            Ok(session) => session,
            Err(status) => return out.status(status),
        };
        let revision = self.state.lock().unwrap().sessions[&session].clone();
        let version = request.header("mcp-protocol-version");
        let dated = revision.as_str() >= LEGACY[1];
        if dated && version.is_some_and(|version| version != revision) && !self.is("any-version") {
            return out.status(400);
        }
        if message.get("id").is_none() || message.get("method").is_none() {
            let valid = message["jsonrpc"] == "2.0"
                && (message.get("method").is_some() || message.get("id").is_some());
            return match self.fault {
                _ if !valid && self.fault != "accepts-anything" => out.status(400),
                "notification-200" => out.status(200),
                "notification-204" => out.status(204),
                "notification-has-body" => out.json(202, &[], &json!({})),
                _ => out.status(202),
            };
        }
        if message["params"]["name"] == "touch" {
            self.tell(&session);
        }
        let result = self.resources(message).or_else(|| self.result(message));
        match result {
            Some(result) => self.respond(message, &result, &[], &revision, out),
            None => out.json(200, &[], &error(&message["id"], -32601)),
        }
    }

    /// What legacy sessions have besides.
    fn resources(&self, message: &Value) -> Option<Value> {
        let resource = json!({"uri": "config://app", "name": "app"});
        Some(match message["method"].as_str()? {
            "resources/list" => json!({"resources": [resource]}),
            "resources/templates/list" => json!({"resourceTemplates": []}),
            "resources/subscribe" => json!({}),
            _ => return None,
        })
    }

    /// Tells a session that its resource has changed, on its latest stream.
    fn tell(&self, session: &str) {
        let params = json!({"uri": "config://app"});
        let told = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params});
        let mut state = self.state.lock().unwrap();
        let ids: Vec<_> = (1..=2).map(|at| state.events + at).collect();
        state.events += 2;
        let most = if self.is("broadcasts") { 2 } else { 1 };
        let own = state.streams.iter_mut().rev().filter(|(of, _)| of == session).take(most);
        for ((_, socket), id) in own.zip(ids) {
            let _ = write!(socket, "id: {id}\ndata: {told}\n\n");
        }
    }

    fn result(&self, message: &Value) -> Option<Value> {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let arguments = &message["params"]["arguments"];
        Some(match message["method"].as_str()? {
            "ping" if message["params"]["_meta"].is_null() => json!({}),
            "server/discover" => json!({"supportedVersions": [MODERN], "capabilities": {"tools": {}}}),
            "tools/list" => {
                let header = json!({"type": "string", "x-mcp-header": "Region"});
                let schema = json!({"type": "object", "properties": {"region": header}});
                let echo = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
                json!({"tools": [
                    {"name": "echo", "inputSchema": echo},
                    {"name": "test_x_mcp_header", "inputSchema": schema},
                    {"name": "test_tool_with_progress", "inputSchema": {"type": "object"}},
                    {"name": "touch", "inputSchema": {"type": "object"}},
                ]})
            }
            "tools/call" => match message["params"]["name"].as_str()? {
                "echo" => text(arguments["text"].as_str()?),
                "test_x_mcp_header" => {
                    text(&format!("region: {}", arguments["region"].as_str().unwrap_or("none")))
                }
                "test_tool_with_progress" | "touch" => text("done"),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn respond(
        &self,
        message: &Value,
        result: &Value,
        headers: &[(&str, &str)],
        revision: &str,
        mut out: Out,
    ) -> io::Result<()> {
        let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let token = &message["params"]["_meta"]["progressToken"];
        if token.is_null() {
            return match self.fault {
                "html-answers" => out.send(200, "text/html", headers, response.to_string().as_bytes()),
                "result-with-500" => out.json(500, headers, &response),
                _ => out.json(200, headers, &response),
            };
        }
        let proxy: &[(&str, &str)] = if self.is("buffers") { &[] } else { &[("X-Accel-Buffering", "no")] };
        out.events(proxy)?;
        let primes = revision == LEGACY[2] && !self.is("no-priming");
        if primes || self.is("primes-always") {
            out.event(&self.event_id(revision), "")?;
        }
        for value in [0, 50, 100] {
            let params = json!({"progressToken": token, "progress": value, "total": 100});
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
            out.event(&self.event_id(revision), &progress.to_string())?;
        }
        if self.is("foreign-message") {
            let foreign = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            out.event("", &foreign.to_string())?;
        }
        out.event(&self.event_id(revision), &response.to_string())?;
        if self.is("hangs-open") {
            let mut rest = Vec::new();
            out.socket.read_to_end(&mut rest)?;
        }
        Ok(())
    }

    fn event_id(&self, revision: &str) -> String {
        if revision.is_empty() {
            return String::new();
        }
        let mut state = self.state.lock().unwrap();
        state.events += 1;
        if self.is("ids-repeat") { "7".to_owned() } else { state.events.to_string() }
    }
}

struct Out {
    socket: TcpStream,
}

impl Out {
    fn status(&mut self, status: u16) -> io::Result<()> {
        write!(self.socket, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")
    }

    fn json(&mut self, status: u16, headers: &[(&str, &str)], body: &Value) -> io::Result<()> {
        self.send(status, "application/json", headers, body.to_string().as_bytes())
    }

    fn send(&mut self, status: u16, kind: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        write!(
            self.socket,
            "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{more}Content-Length: {length}\r\n\r\n"
        )?;
        self.socket.write_all(body)
    }

    fn events(&mut self, headers: &[(&str, &str)]) -> io::Result<()> {
        let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        write!(self.socket, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{more}\r\n")
    }

    fn event(&mut self, id: &str, data: &str) -> io::Result<()> {
        let id = if id.is_empty() { String::new() } else { format!("id: {id}\n") };
        write!(self.socket, "{id}data: {data}\n\n")
    }
}

fn error(id: &Value, code: i64) -> Value {
    let mut error = json!({"jsonrpc": "2.0", "error": {"code": code, "message": "refused"}});
    if !id.is_null() {
        error["id"] = id.clone();
    }
    error
}
