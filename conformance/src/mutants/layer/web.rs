//! The layer over HTTP: a request a connection.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use mcp_proto::codec::{SseDecoder, SseFrame};
use serde_json::Value;

use super::message::is_request;
use super::{Memory, OfMessage, Plant, Turn};
use crate::http::framing::Framing;
use crate::http::{Answer, wire as answers};
use crate::record::wire as requests;
use crate::subject::served;

/// A longer event is lost.
const EVENT_LIMIT: usize = 64 << 20;

type Headers = Vec<(String, String)>;

/// A request on its way to the fixture.
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Headers,
    pub(super) body: Vec<u8>,
    /// What it carries; null if that is no message.
    pub(super) message: Value,
    /// Whether the fixture is not told that the client has gone.
    pub(super) deaf: bool,
    /// What is answered in place of the fixture.
    pub(super) reply: Option<Answered>,
}

/// An answer on its way to the client. The body of a stream is not here.
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) headers: Headers,
    pub(super) body: Vec<u8>,
}

/// The first value of a header.
pub(super) fn header<'h>(headers: &'h Headers, wanted: &str) -> Option<&'h str> {
    headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
}

/// Puts one line in place of all with this name, or takes them away.
pub(super) fn replace(headers: &mut Headers, name: &str, value: Option<&str>) {
    headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
}

impl Asked {
    /// Puts another message in.
    pub(super) fn rewrite(&mut self, message: Value) {
        self.body = message.to_string().into_bytes();
        self.message = message;
    }

    fn bytes(&self) -> Vec<u8> {
        let mut headers = self.headers.clone();
        replace(&mut headers, "Transfer-Encoding", None);
        let has_body = !self.body.is_empty() || header(&headers, "Content-Length").is_some();
        let length = self.body.len().to_string();
        replace(&mut headers, "Content-Length", has_body.then_some(length.as_str()));
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        lines(&headers, &mut bytes);
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

impl Answered {
    /// An answer without a body.
    pub(super) const fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// An answer of JSON.
    pub(super) fn json(status: u16, message: &Value) -> Self {
        let kind = ("Content-Type".to_owned(), "application/json".to_owned());
        Self { status, headers: vec![kind], body: message.to_string().into_bytes() }
    }

    pub(super) fn is_stream(&self) -> bool {
        header(&self.headers, "Content-Type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    fn head(&self) -> Vec<u8> {
        let mut bytes = format!("HTTP/1.1 {} Planted\r\n", self.status).into_bytes();
        lines(&self.headers, &mut bytes);
        bytes
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.body.len().to_string();
        replace(&mut self.headers, "Content-Length", Some(&length));
        let mut bytes = self.head();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

fn lines(headers: &Headers, bytes: &mut Vec<u8>) {
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
}

struct Layer {
    plant: Plant,
    memory: Mutex<Memory>,
    /// The authority of the fixture, and that of the layer.
    inside: String,
    outside: String,
}

/// Serves for ever.
pub(super) fn serve(plant: Plant, fixture: &mut Command, address: &str) -> Result<(), String> {
    let mut child = fixture.spawn().map_err(|error| format!("cannot start the fixture: {error}"))?;
    let mut said = BufReader::new(child.stderr.take().ok_or("the fixture has no standard error")?);
    let endpoint = served::address(&mut said)?;
    thread::spawn(move || io::copy(&mut said, &mut io::stderr()));
    let listener = TcpListener::bind(address).map_err(|error| format!("`--http {address}`: {error}"))?;
    let outside = listener.local_addr().map_err(|error| error.to_string())?.to_string();
    let _ = writeln!(io::stderr(), "listening on http://{outside}{}", endpoint.target);
    let layer = Arc::new(Layer { plant, memory: Mutex::default(), inside: endpoint.authority, outside });
    for socket in listener.incoming().map_while(Result::ok) {
        let layer = Arc::clone(&layer);
        // Either side may have seen enough.
        thread::spawn(move || drop(layer.connection(&socket)));
    }
    child.wait().map(drop).map_err(|error| error.to_string())
}

impl Layer {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self, client: &TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut seen = Vec::new();
        let Some(mut asked) = read(client, &mut seen)? else { return self.opaque(client, &seen) };
        self.authority(&mut asked.headers, &self.outside, &self.inside);
        self.plant_up(&mut asked);
        if let Some(mut reply) = asked.reply.take() {
            (&mut &*client).write_all(&reply.bytes())?;
            return client.shutdown(Shutdown::Both);
        }
        let mut server = TcpStream::connect(&self.inside)?;
        server.set_nodelay(true)?;
        server.write_all(&asked.bytes())?;
        if !asked.deaf {
            let (mut gone, server) = (client.try_clone()?, server.try_clone()?);
            thread::spawn(move || {
                let _ = io::copy(&mut gone, &mut io::sink());
                let _ = server.shutdown(Shutdown::Both);
            });
        }
        let mut telling = Telling { layer: self, asked: &asked, client, answered: None, events: None };
        answers::read(server, asked.method == "HEAD", |answer| telling.tell(answer) || asked.deaf);
        client.shutdown(Shutdown::Both)
    }

    /// What is no request passes as it is.
    fn opaque(&self, client: &TcpStream, seen: &[u8]) -> io::Result<()> {
        let mut server = TcpStream::connect(&self.inside)?;
        server.write_all(seen)?;
        let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
        io::copy(&mut server, &mut &*client)?;
        client.shutdown(Shutdown::Both)
    }

    /// The fixture and its clients know each other by other ports than their own.
    fn authority(&self, headers: &mut Headers, from: &str, to: &str) {
        for (name, value) in headers {
            let named =
                ["Host", "Origin", "WWW-Authenticate"].iter().any(|known| known.eq_ignore_ascii_case(name));
            if named {
                *value = value.replace(from, to);
            }
        }
    }

    fn plant_up(&self, asked: &mut Asked) {
        let mut memory = self.memory();
        match self.plant {
            Plant::Ask(fault) | Plant::Exchange(fault, _) => fault(asked, &mut memory),
            Plant::Up(fault) | Plant::Both(fault, _) if asked.message.is_object() => {
                let mut turn = Turn::new(&mut memory, Value::Null);
                fault(&mut turn, asked.message.clone());
                match (turn.onward.into_iter().next(), turn.back.first()) {
                    (Some(message), _) if message == asked.message => {}
                    (Some(message), _) => asked.rewrite(message),
                    (None, Some(answer)) => asked.reply = Some(Answered::json(200, answer)),
                    (None, None) => asked.reply = Some(Answered::empty(202)),
                }
            }
            _ => {}
        }
    }

    fn plant_down(&self) -> Option<OfMessage> {
        match self.plant {
            Plant::Down(fault) | Plant::Both(_, fault) => Some(fault),
            _ => None,
        }
    }

    fn plant_answer(&self, asked: &Asked, answered: &mut Answered) {
        if let Plant::Answer(fault) | Plant::Exchange(_, fault) = self.plant {
            fault(asked, answered, &mut self.memory());
        }
    }

    /// What goes on in place of one message.
    fn spoiled(&self, fault: OfMessage, asked: &Asked, message: Value) -> Vec<Value> {
        let answers = is_request(&asked.message) && message.get("id") == asked.message.get("id");
        let request = if answers { asked.message.clone() } else { Value::Null };
        let mut memory = self.memory();
        let mut turn = Turn::new(&mut memory, request);
        fault(&mut turn, message);
        turn.onward
    }
}

/// Reads a request to its end; none if it is no request, or one that is cut short. `seen` is what was read.
fn read(mut client: &TcpStream, seen: &mut Vec<u8>) -> io::Result<Option<Asked>> {
    let mut buffer = vec![0; 64 << 10];
    let mut more = |seen: &mut Vec<u8>| -> io::Result<usize> {
        let read = client.read(&mut buffer)?;
        seen.extend_from_slice(&buffer[..read]);
        Ok(read)
    };
    let (head, length) = loop {
        match requests::request(seen) {
            Ok(Some(complete)) => break complete,
            Ok(None) if more(seen)? > 0 => {}
            _ => return Ok(None),
        }
    };
    let Ok(mut framing) = Framing::of_request(&head.headers) else { return Ok(None) };
    let (mut body, mut at) = (Vec::new(), length);
    loop {
        let Ok((taken, done)) = framing.take(&seen[at..], |bytes| body.extend_from_slice(bytes)) else {
            return Ok(None);
        };
        at += taken;
        if done {
            break;
        }
        if more(seen)? == 0 {
            return Ok(None);
        }
    }
    let message = serde_json::from_slice(&body).unwrap_or_default();
    let requests::RequestHead { method, target, headers } = head;
    Ok(Some(Asked { method, target, headers, body, message, deaf: false, reply: None }))
}

/// One answer on its way.
struct Telling<'l> {
    layer: &'l Layer,
    asked: &'l Asked,
    client: &'l TcpStream,
    answered: Option<Answered>,
    /// There is one once a stream is open.
    events: Option<SseDecoder>,
}

impl Telling<'_> {
    /// Whether the client still listens.
    fn tell(&mut self, answer: Answer) -> bool {
        match answer {
            Answer::Head { status, mut headers } => {
                for name in ["Transfer-Encoding", "Content-Length", "Connection", "Keep-Alive"] {
                    replace(&mut headers, name, None);
                }
                headers.push(("Connection".to_owned(), "close".to_owned()));
                self.layer.authority(&mut headers, &self.layer.inside, &self.layer.outside);
                let mut answered = Answered { status, headers, body: Vec::new() };
                if answered.is_stream() {
                    self.events = Some(SseDecoder::new(EVENT_LIMIT));
                    self.layer.plant_answer(self.asked, &mut answered);
                    return self.write(&answered.head());
                }
                self.answered = Some(answered);
                true
            }
            Answer::Body(bytes) => match (&mut self.answered, self.layer.plant_down()) {
                (Some(answered), _) => {
                    answered.body.extend_from_slice(&bytes);
                    true
                }
                (None, None) => self.write(&bytes),
                (None, Some(fault)) => self.stream(fault, &bytes),
            },
            Answer::End(problem) => {
                if let (Some(answered), None) = (self.answered.take(), problem) {
                    self.whole(answered);
                }
                false
            }
        }
    }

    /// An answer that is no stream.
    fn whole(&self, mut answered: Answered) {
        if let Ok(text) = std::str::from_utf8(&answered.body) {
            answered.body = text.replace(&self.layer.inside, &self.layer.outside).into_bytes();
        }
        let message = serde_json::from_slice::<Value>(&answered.body).unwrap_or_default();
        if let (Some(fault), true) = (self.layer.plant_down(), message.is_object()) {
            let mut onward = self.layer.spoiled(fault, self.asked, message.clone());
            match onward.len() {
                0 => return,
                1 if onward[0] == message => {}
                1 => answered.body = onward.remove(0).to_string().into_bytes(),
                _ => {
                    replace(&mut answered.headers, "Content-Type", Some("text/event-stream"));
                    answered.body = onward.iter().flat_map(|message| event("", message)).collect();
                }
            }
        }
        self.layer.plant_answer(self.asked, &mut answered);
        self.write(&answered.bytes());
    }

    fn stream(&mut self, fault: OfMessage, mut bytes: &[u8]) -> bool {
        let Some(mut decoder) = self.events.take() else { return false };
        let mut out = Vec::new();
        while let Some(frame) = decoder.next_frame(&mut bytes) {
            let SseFrame::Event(found) = frame else { continue };
            let mut fields = match found.id {
                Some(id) => format!("id: {id}\n"),
                None => String::new(),
            };
            if found.name != "message" {
                fields.push_str(&format!("event: {}\n", found.name));
            }
            match serde_json::from_slice::<Value>(found.data) {
                Ok(message) if message.is_object() => {
                    for message in self.layer.spoiled(fault, self.asked, message) {
                        out.extend(event(&fields, &message));
                    }
                }
                _ => {
                    let text = String::from_utf8_lossy(found.data);
                    out.extend_from_slice(format!("{fields}data: {text}\n\n").as_bytes());
                }
            }
        }
        self.events = Some(decoder);
        self.write(&out)
    }

    fn write(&self, bytes: &[u8]) -> bool {
        (&mut &*self.client).write_all(bytes).is_ok()
    }
}

fn event(fields: &str, message: &Value) -> Vec<u8> {
    format!("{fields}data: {message}\n\n").into_bytes()
}
