//! How the small client reaches a server: lines over a relay, or POSTs that are in flight side by side.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Something that came from the server.
#[derive(Debug)]
pub(crate) enum Said {
    /// A message, over HTTP with the number of the request on whose answer it came.
    Message(u64, Value),
    /// A line that is none.
    Junk(String),
    /// The head of an answer.
    Head(u64, Vec<(String, String)>),
    /// An event without a message: its type, its data.
    Event(String, String),
    /// The end of an answer: status, body where it was no message, the last event id, the retry time.
    End(u64, u16, String, Option<String>, Option<u64>),
    /// The server program has gone.
    Gone,
}

/// Lines to a server program.
pub(crate) struct Pipes {
    socket: TcpStream,
}

impl Pipes {
    pub(crate) fn start(address: SocketAddr, tell: &Sender<Said>) -> Option<Self> {
        let socket = TcpStream::connect(address).ok()?;
        let mut reader = socket.try_clone().ok()?;
        let tell = tell.clone();
        thread::spawn(move || {
            let mut buffer = Vec::new();
            loop {
                let mut head = [0; 5];
                if reader.read_exact(&mut head).is_err() {
                    break;
                }
                let [kind, length @ ..] = head;
                let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
                if reader.read_exact(&mut bytes).is_err() || kind == b'x' {
                    break;
                }
                if kind != b'o' {
                    continue;
                }
                let known = buffer.len();
                buffer.extend(bytes);
                if !buffer[known..].contains(&b'\n') {
                    if buffer.len() > 16 << 20 {
                        break;
                    }
                    continue;
                }
                let whole = buffer.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
                let rest = buffer.split_off(whole + 1);
                let lines = std::mem::replace(&mut buffer, rest);
                for line in lines.split_inclusive(|byte| *byte == b'\n') {
                    if line.trim_ascii().is_empty() {
                        continue;
                    }
                    let said = match serde_json::from_slice::<Value>(line) {
                        Ok(value) if value.is_object() || value.is_array() => Said::Message(0, value),
                        _ => Said::Junk(String::from_utf8_lossy(line).into_owned()),
                    };
                    if tell.send(said).is_err() {
                        return;
                    }
                }
            }
            let _ = reader.shutdown(Shutdown::Both);
            let _ = tell.send(Said::Gone);
        });
        Some(Self { socket })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    pub(crate) fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

/// Requests over HTTP, each on a connection of its own.
pub(crate) struct Web {
    pub(crate) fault: &'static str,
    tell: Sender<Said>,
    next: u64,
    sockets: BTreeMap<u64, TcpStream>,
}

impl Web {
    pub(crate) const fn new(fault: &'static str, tell: Sender<Said>) -> Self {
        Self { fault, tell, next: 1, sockets: BTreeMap::new() }
    }

    pub(crate) fn send(
        &mut self,
        url: &str,
        method: &str,
        headers: &[(String, String)],
        body: Option<&str>,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        let rest = url.trim_start_matches("http://");
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        head.push_str(body.unwrap_or_default());
        let tell = self.tell.clone();
        let Ok(mut socket) = TcpStream::connect(authority) else {
            let _ = tell.send(Said::End(number, 0, "cannot connect".to_owned(), None, None));
            return number;
        };
        let _ = socket.write_all(head.as_bytes());
        if let Ok(copy) = socket.try_clone() {
            self.sockets.insert(number, copy);
        }
        let fault = self.fault;
        thread::spawn(move || read(number, fault, socket, &tell));
        number
    }

    pub(crate) fn hang_up(&mut self, number: u64) {
        if let Some(socket) = self.sockets.remove(&number) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn close(&mut self) {
        for socket in self.sockets.values() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

pub(crate) fn pair() -> (Sender<Said>, Receiver<Said>) {
    channel()
}

/// Reads one answer.
fn read(number: u64, fault: &'static str, socket: TcpStream, tell: &Sender<Said>) {
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    let (mut status, mut headers, mut first) = (0, Vec::new(), true);
    loop {
        line.clear();
        if reader.read_line(&mut line).map_or(0, |read| read) == 0 {
            let _ = tell.send(Said::End(number, 0, "no answer".to_owned(), None, None));
            return;
        }
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        if first {
            status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
            first = false;
        } else if let Some((name, value)) = text.split_once(':') {
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let chunked = header("transfer-encoding").is_some_and(|coding| coding.contains("chunked"));
    let length = header("content-length").and_then(|length| length.parse::<usize>().ok());
    let media = header("content-type").unwrap_or_default();
    let _ = tell.send(Said::Head(number, headers.clone()));
    let events = media.starts_with("text/event-stream");
    let mut sse = Sse::new(fault);
    let mut body = Vec::new();
    let mut take = |bytes: &[u8]| {
        if events {
            for (kind, data) in sse.feed(bytes) {
                let message = serde_json::from_str::<Value>(&data).ok();
                let said = match message.filter(|message| message.is_object() || message.is_array()) {
                    Some(message) if kind.is_empty() || kind == "message" => Said::Message(number, message),
                    _ => Said::Event(kind, data),
                };
                let _ = tell.send(said);
            }
        } else {
            body.extend_from_slice(bytes);
        }
    };
    if chunked {
        loop {
            line.clear();
            if reader.read_line(&mut line).map_or(0, |read| read) == 0 {
                break;
            }
            let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            if size == 0 {
                break;
            }
            let mut chunk = vec![0; size + 2];
            if reader.read_exact(&mut chunk).is_err() {
                break;
            }
            take(&chunk[..size]);
        }
    } else if let Some(length) = length {
        let mut bytes = vec![0; length];
        if reader.read_exact(&mut bytes).is_ok() {
            take(&bytes);
        }
    } else if status != 204 && status != 202 {
        let mut bytes = Vec::new();
        let _ = reader.read_to_end(&mut bytes);
        take(&bytes);
    }
    if events && fault == "event-without-end" {
        for (_, data) in sse.feed(b"\n\n") {
            if let Ok(message) = serde_json::from_str(&data) {
                let _ = tell.send(Said::Message(number, message));
            }
        }
    }
    let (last, retry) = (sse.id.clone(), sse.retry);
    let mut text = String::from_utf8_lossy(&body).into_owned();
    if !events
        && (fault != "only-events" || status != 200)
        && let Ok(message) = serde_json::from_str::<Value>(&text)
        && (message.get("jsonrpc").is_some() || message.is_array())
    {
        let _ = tell.send(Said::Message(number, message));
        text = String::new();
    }
    let _ = tell.send(Said::End(number, status, text, last, retry));
}

/// Events by the letter, or nearly.
struct Sse {
    fault: &'static str,
    buffer: Vec<u8>,
    started: bool,
    event: String,
    data: Vec<String>,
    id: Option<String>,
    retry: Option<u64>,
    after_cr: bool,
}

impl Sse {
    const fn new(fault: &'static str) -> Self {
        Self {
            fault,
            buffer: Vec::new(),
            started: false,
            event: String::new(),
            data: Vec::new(),
            id: None,
            retry: None,
            after_cr: false,
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Vec<(String, String)> {
        self.buffer.extend_from_slice(bytes);
        let buffer = std::mem::take(&mut self.buffer);
        let (mut at, mut events) = (0, Vec::new());
        let cr = self.fault != "no-cr";
        loop {
            // The line feed of a pair may come later.
            if self.after_cr && self.fault != "cr-cut" && buffer.get(at) == Some(&b'\n') {
                at += 1;
            }
            let end = buffer[at..].iter().position(|byte| *byte == b'\n' || cr && *byte == b'\r');
            let Some(end) = end.map(|end| at + end) else {
                self.after_cr &= at == buffer.len();
                self.buffer = buffer[at..].to_vec();
                return events;
            };
            self.after_cr = buffer[end] == b'\r';
            let mut line = String::from_utf8_lossy(&buffer[at..end]).into_owned();
            at = end + 1;
            if self.fault == "no-cr" {
                line.truncate(line.trim_end_matches('\r').len());
            }
            if !std::mem::replace(&mut self.started, true) && self.fault != "no-bom" {
                line = line.trim_start_matches('\u{feff}').to_owned();
            }
            events.extend(self.line(&line));
        }
    }

    fn line(&mut self, line: &str) -> Option<(String, String)> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            let event = std::mem::take(&mut self.event);
            let between = if self.fault == "data-joined" { "\u{1}" } else { "\n" };
            return (!data.is_empty()).then(|| (event, data.join(between)));
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => self.data.push(value.to_owned()),
            "" if self.fault == "comments-are-data" => self.data.push(value.to_owned()),
            "event" => value.clone_into(&mut self.event),
            "id" => self.id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok(),
            _ => {}
        }
        None
    }
}

/// How long a probe is waited for.
pub(crate) const PROBE: Duration = Duration::from_millis(400);
