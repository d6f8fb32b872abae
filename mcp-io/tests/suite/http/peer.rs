//! A client of HTTP/1.1 on a blocking socket, and the messages it sends.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// One connection.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
    /// Of the body that is being read: how much of it, or of the chunk, is to come.
    left: Left,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Left {
    Nothing,
    Bytes(usize),
    Chunk(usize),
}

/// The head of a response, names in lower case.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(crate) fn is_events(&self) -> bool {
        self.header("content-type").starts_with("text/event-stream")
    }
}

/// One event of a stream. Comments and events without data are left out.
#[derive(Debug, Default, Clone)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

impl Peer {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        Self { stream, unread: Vec::new(), left: Left::Nothing }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    pub(crate) fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head += "host: localhost\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            head += &format!("content-length: {}\r\n", body.len());
        }
        self.send(head + "\r\n" + body);
    }

    /// Posts a message to the endpoint, with the headers that 2026-07-28 wants for it.
    pub(crate) fn post(&mut self, message: &Value) {
        self.post_with(&[], message);
    }

    pub(crate) fn post_with(&mut self, more: &[(&str, &str)], message: &Value) {
        let mut headers = json_headers();
        let meta = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        if let Some(version) = meta.as_str() {
            headers.push(("mcp-protocol-version", version));
            headers.push(("mcp-method", message["method"].as_str().unwrap()));
            if let Some(name) = message["params"]["name"].as_str() {
                headers.push(("mcp-name", name));
            }
        }
        headers.extend_from_slice(more);
        self.request("POST", "/mcp", &headers, &message.to_string());
    }

    /// What comes next; 0 bytes at the end.
    fn fill(&mut self) -> usize {
        let mut buf = [0; 16 << 10];
        // A connection that is reset has ended too.
        let got = match self.stream.read(&mut buf) {
            Ok(got) => got,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("nothing comes: {error}"),
        };
        self.unread.extend_from_slice(&buf[..got]);
        got
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|pair| pair == b"\r\n") {
                let line = String::from_utf8(self.unread[..end].to_vec()).unwrap();
                self.unread.drain(..end + 2);
                return Some(line);
            }
            if self.fill() == 0 {
                assert!(self.unread.is_empty(), "half a line: {:?}", self.unread.escape_ascii().to_string());
                return None;
            }
        }
    }

    /// The head of the next response; `None` at the end.
    pub(crate) fn head(&mut self) -> Option<Head> {
        assert_eq!(self.left, Left::Nothing, "the body before is not read");
        let line = self.line()?;
        let status = line.strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
        let mut headers = BTreeMap::new();
        loop {
            let line = self.line().unwrap();
            let Some((name, value)) = line.split_once(':') else { break };
            let known = headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            assert_eq!(known, None, "{name} twice");
        }
        self.left = match headers.get("content-length") {
            Some(length) if length != "0" => Left::Bytes(length.parse().unwrap()),
            None if headers.contains_key("transfer-encoding") => Left::Chunk(0),
            _ => Left::Nothing,
        };
        Some(Head { status, headers })
    }

    /// The next piece of the body; `None` once it is complete or cut off.
    pub(crate) fn piece(&mut self) -> Option<Vec<u8>> {
        let size = match self.left {
            Left::Nothing => return None,
            Left::Bytes(left) | Left::Chunk(left) if left > 0 => left,
            _ => {
                let Some(line) = self.line() else {
                    self.left = Left::Nothing;
                    return None;
                };
                usize::from_str_radix(&line, 16).unwrap()
            }
        };
        if size == 0 {
            assert_eq!(self.line().unwrap(), "");
            self.left = Left::Nothing;
            return None;
        }
        if self.unread.is_empty() && self.fill() == 0 {
            self.left = Left::Nothing;
            return None;
        }
        let piece: Vec<_> = self.unread.drain(..self.unread.len().min(size)).collect();
        let left = size - piece.len();
        self.left = match self.left {
            Left::Bytes(_) if left == 0 => Left::Nothing,
            Left::Bytes(_) => Left::Bytes(left),
            _ => {
                if left == 0 {
                    assert_eq!(self.line().unwrap(), "");
                }
                Left::Chunk(left)
            }
        };
        Some(piece)
    }

    pub(crate) fn body(&mut self) -> Vec<u8> {
        std::iter::from_fn(|| self.piece()).flatten().collect()
    }

    /// The next response, whose body is JSON or nothing.
    pub(crate) fn answer(&mut self) -> (Head, Value) {
        let head = self.head().expect("a response");
        let body = self.body();
        if body.is_empty() {
            return (head, Value::Null);
        }
        assert_eq!(head.header("content-type"), "application/json");
        (head, serde_json::from_slice(&body).unwrap())
    }

    pub(crate) fn status(&mut self) -> u16 {
        self.answer().0.status
    }

    /// The events of the body that has begun, one at a time.
    pub(crate) fn events(&mut self) -> Events<'_> {
        Events { peer: self, text: Vec::new(), seen: 0 }
    }

    /// Drops what came.
    pub(crate) fn forget(&mut self) {
        self.unread.clear();
    }

    /// Whether the connection ends here.
    pub(crate) fn is_over(&mut self) -> bool {
        self.unread.is_empty() && self.fill() == 0
    }
}

pub(crate) struct Events<'p> {
    peer: &'p mut Peer,
    text: Vec<u8>,
    /// So much of it holds no end of an event.
    seen: usize,
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.text[self.seen..].windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<_> = self.text.drain(..self.seen + end + 2).collect();
                self.seen = 0;
                let mut event = Event::default();
                for line in String::from_utf8(block).unwrap().lines() {
                    match line.split_once(": ") {
                        Some(("id", id)) => event.id = id.into(),
                        Some(("data", data)) => event.data += data,
                        _ => {}
                    }
                }
                if !event.data.is_empty() {
                    return Some(event);
                }
            }
            self.seen = self.text.len().saturating_sub(1);
            self.text.extend(self.peer.piece()?);
        }
    }
}

pub(crate) fn json_headers() -> Vec<(&'static str, &'static str)> {
    vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
}

/// A request of 2026-07-28.
pub(crate) fn modern(id: u64, method: &str, mut params: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "suite", "version": "1" },
        "progressToken": "steps",
    });
    params["_meta"] = meta;
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    modern(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// A call of the legacy era.
pub(crate) fn legacy_call(id: u64, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "steps" } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// A session of 2025-11-25.
pub(crate) struct Legacy(pub(crate) String);

impl Legacy {
    /// Opens one.
    pub(crate) fn open(peer: &mut Peer) -> Self {
        peer.post(&json!({
            "jsonrpc": "2.0", "id": "init", "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": { "name": "suite", "version": "1" },
            },
        }));
        let (head, answer) = peer.answer();
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        let session = Self(head.header("mcp-session-id").to_owned());
        session.post(peer, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!(peer.status(), 202);
        session
    }

    pub(crate) fn headers(&self) -> [(&str, &str); 2] {
        [("mcp-session-id", &self.0), ("mcp-protocol-version", "2025-11-25")]
    }

    pub(crate) fn post(&self, peer: &mut Peer, message: &Value) {
        peer.post_with(&self.headers(), message);
    }

    /// GET or DELETE.
    pub(crate) fn request(&self, peer: &mut Peer, method: &str, more: &[(&str, &str)]) {
        let mut headers = vec![("accept", "text/event-stream")];
        headers.extend(self.headers());
        headers.extend_from_slice(more);
        peer.request(method, "/mcp", &headers, "");
    }
}
