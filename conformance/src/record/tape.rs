//! What has passed, in order, as the steps of a recording. Secrets are replaced when it comes in.

use serde_json::{Map, Value, json};

use super::secrets::Secrets;
use super::{marks, plan};
use crate::exchange::Transport;
use crate::revision::Revision;

/// A longer message is passed on, but not recorded.
pub(super) const MESSAGE_LIMIT: usize = 16 << 20;

/// So much is recorded; the rest is passed on only.
const TAPE_LIMIT: usize = 256 << 20;

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Party {
    Client,
    Server,
}

impl Party {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// Header lines as they came.
pub(super) type Headers = Vec<(String, String)>;

/// A recording under way.
#[derive(Debug)]
pub(super) struct Tape {
    transport: Transport,
    secrets: Secrets,
    steps: Vec<Map<String, Value>>,
    size: usize,
    /// The target of the first request: the endpoint.
    endpoint: Option<String>,
}

impl Tape {
    pub(super) fn new(transport: Transport, redact: &[String]) -> Result<Self, String> {
        let secrets = Secrets::new(redact)?;
        Ok(Self { transport, secrets, steps: Vec::new(), size: 0, endpoint: None })
    }

    /// A line over stdio, without its end.
    pub(super) fn line(&mut self, party: Party, line: Line<'_>) {
        match line {
            Line::Whole(bytes) if bytes.trim_ascii().is_empty() => {}
            Line::Whole(bytes) => self.said(party, bytes, &Map::new()),
            Line::TooLong => self.push(step(party, json!("(a line that is too long)"))),
        }
    }

    /// The client has closed the input of the server.
    pub(super) fn closed(&mut self) {
        self.push(Map::from_iter([("close".to_owned(), json!("client"))]));
    }

    /// The server has exited.
    pub(super) fn exited(&mut self, code: u8) {
        self.push(Map::from_iter([("exit".to_owned(), json!(code))]));
    }

    /// A whole HTTP request.
    pub(super) fn request(
        &mut self,
        number: u64,
        method: &str,
        target: &str,
        headers: &Headers,
        body: &[u8],
    ) {
        let mut more = Map::from_iter([("request".to_owned(), json!(number))]);
        if method != "POST" {
            more.insert("method".to_owned(), json!(method));
        }
        let path = self.secrets.text(target);
        if *self.endpoint.get_or_insert_with(|| path.clone()) != path {
            more.insert("path".to_owned(), json!(path));
        }
        more.insert("headers".to_owned(), self.headers(headers));
        self.said(Party::Client, body, &more);
    }

    /// A whole answer that is no stream.
    pub(super) fn answer(&mut self, number: u64, status: u16, headers: &Headers, body: &[u8]) {
        let more = self.head(number, status, headers);
        self.said(Party::Server, body, &more);
    }

    /// The head of an answer that is a stream of events.
    pub(super) fn opened(&mut self, number: u64, status: u16, headers: &Headers) {
        let mut more = self.head(number, status, headers);
        more.insert("open".to_owned(), json!(true));
        more.insert("server".to_owned(), Value::Null);
        self.push(more);
    }

    /// An event of a stream.
    pub(super) fn event(&mut self, number: u64, name: &str, id: Option<&str>, data: &[u8]) {
        let mut event = Map::new();
        if name != "message" {
            event.insert("event".to_owned(), json!(name));
        }
        if let Some(id) = id {
            event.insert("id".to_owned(), json!(self.secrets.text(id)));
        }
        let more = Map::from_iter([
            ("request".to_owned(), json!(number)),
            ("event".to_owned(), Value::Object(event)),
        ]);
        self.said(Party::Server, data, &more);
    }

    /// The server has ended a stream.
    pub(super) fn ended(&mut self, number: u64) {
        self.push(Map::from_iter([("end".to_owned(), json!(number))]));
    }

    /// A connection was closed before its answer was complete.
    pub(super) fn cut(&mut self, number: u64, by: Party) {
        self.push(Map::from_iter([("cut".to_owned(), json!(number)), ("by".to_owned(), json!(by.as_str()))]));
    }

    /// The recording: a head, and a step a line.
    pub(super) fn written(&mut self, name: &str, without_prose: bool) -> String {
        let mut steps = self.steps.clone();
        // What turned out to be a secret may have been said before.
        for step in &mut steps {
            self.secrets.again(step);
        }
        let revision = revision(&steps);
        let mut head = json!({
            "exchange": name,
            "about": format!("What {} said.", named(&steps)),
            "recorded": true,
            "revisions": [revision.as_str()],
            "transports": [self.transport.as_str()],
        });
        head["plan"] = plan::infer(&steps);
        marks::mark(&mut steps, without_prose);
        let mut text = format!("{head}\n");
        for step in steps {
            text.push_str(&Value::Object(step).to_string());
            text.push('\n');
        }
        text
    }

    fn head(&mut self, number: u64, status: u16, headers: &Headers) -> Map<String, Value> {
        Map::from_iter([
            ("request".to_owned(), json!(number)),
            ("status".to_owned(), json!(status)),
            ("headers".to_owned(), self.headers(headers)),
        ])
    }

    /// The headers that say something of the exchange, in lower case.
    fn headers(&mut self, headers: &Headers) -> Value {
        let mut kept: Map<String, Value> = Map::new();
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            if OF_THE_CONNECTION.contains(&name.as_str()) {
                continue;
            }
            let value = json!(self.secrets.header(&name, value));
            match kept.get_mut(&name) {
                None => {
                    kept.insert(name, value);
                }
                Some(Value::Array(values)) => values.push(value),
                Some(first) => *first = json!([first.take(), value]),
            }
        }
        Value::Object(kept)
    }

    /// Bytes that should be a message, or a batch of them; text if they are not.
    fn said(&mut self, party: Party, bytes: &[u8], more: &Map<String, Value>) {
        let messages = match serde_json::from_slice::<Value>(bytes) {
            Ok(message @ Value::Object(_)) => vec![message],
            Ok(Value::Array(items)) if !items.is_empty() && items.iter().all(Value::is_object) => items,
            _ if bytes.is_empty() => vec![Value::Null],
            _ if bytes.len() >= MESSAGE_LIMIT => vec![json!("(a body that is too long)")],
            _ => vec![json!(String::from_utf8_lossy(bytes))],
        };
        for mut message in messages {
            self.secrets.replace(&mut message);
            let mut said = step(party, message);
            said.extend(more.clone());
            self.push(said);
        }
    }

    fn push(&mut self, step: Map<String, Value>) {
        if self.size > TAPE_LIMIT {
            return;
        }
        self.size += step.iter().map(|(name, value)| name.len() + value.to_string().len()).sum::<usize>();
        self.steps.push(step);
        if self.size > TAPE_LIMIT {
            super::say("the recording is full; what follows is passed on only");
        }
    }
}

/// Headers of one connection, and those that name the two programs and the time.
const OF_THE_CONNECTION: [&str; 15] = [
    "accept-encoding",
    "accept-language",
    "connection",
    "content-length",
    "date",
    "host",
    "keep-alive",
    "origin",
    "proxy-connection",
    "referer",
    "sec-fetch-mode",
    "te",
    "transfer-encoding",
    "user-agent",
    "via",
];

fn step(party: Party, message: Value) -> Map<String, Value> {
    Map::from_iter([(party.as_str().to_owned(), message)])
}

/// The revision that was settled, or else the last that a client used.
pub(super) fn revision(steps: &[Map<String, Value>]) -> Revision {
    let said = |party: &str, at: &str| {
        let texts = steps.iter().filter_map(|step| step.get(party)?.pointer(at)?.as_str());
        texts.filter_map(Revision::from_date).next_back()
    };
    said("server", "/result/protocolVersion")
        .or_else(|| said("client", "/params/_meta/io.modelcontextprotocol~1protocolVersion"))
        .or_else(|| said("client", "/params/protocolVersion"))
        .unwrap_or(Revision::V2025_11_25)
}

/// How the server calls itself.
fn named(steps: &[Map<String, Value>]) -> String {
    let places = ["/result/serverInfo", "/result/_meta/io.modelcontextprotocol~1serverInfo"];
    let found = steps.iter().find_map(|step| {
        let message = step.get("server")?;
        let info = places.iter().find_map(|at| message.pointer(at))?;
        Some((info.get("name")?.as_str()?.to_owned(), info.get("version").and_then(Value::as_str)))
    });
    match found {
        Some((name, Some(version))) => format!("the server {name} {version}"),
        Some((name, None)) => format!("the server {name}"),
        None => "a server".to_owned(),
    }
}

/// A line, unless it is too long to be kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Line<'b> {
    Whole(&'b [u8]),
    TooLong,
}

/// Cuts bytes into lines, however they come.
#[derive(Debug, Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
    overflow: bool,
}

impl Lines {
    pub(super) fn take(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.keep(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.end(&mut tell);
        }
        self.keep(bytes);
    }

    /// What is left is a line, too.
    pub(super) fn end(&mut self, mut tell: impl FnMut(Line<'_>)) {
        if std::mem::take(&mut self.overflow) {
            tell(Line::TooLong);
        } else if !self.rest.is_empty() {
            tell(Line::Whole(self.rest.strip_suffix(b"\r").unwrap_or(&self.rest)));
        }
        self.rest.clear();
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.overflow |= self.rest.len() + bytes.len() > MESSAGE_LIMIT;
        if self.overflow {
            self.rest.clear();
        } else {
            self.rest.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_however_they_come() {
        let text = b"{\"a\":1}\n\nno message\r\n{\"half\":";
        for size in [1, 2, 3, 7, text.len()] {
            let (mut lines, mut told) = (Lines::default(), Vec::new());
            for piece in text.chunks(size) {
                lines.take(piece, |line| told.push(format!("{line:?}")));
            }
            lines.end(|line| told.push(format!("{line:?}")));
            let whole = |text: &[u8]| format!("{:?}", Line::Whole(text));
            assert_eq!(told, [whole(b"{\"a\":1}"), whole(b"no message"), whole(b"{\"half\":")]);
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_kept() {
        let (mut lines, mut long) = (Lines::default(), 0);
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..40 {
            lines.take(&piece, |_| panic!("no line has ended"));
            assert!(lines.rest.len() <= MESSAGE_LIMIT);
        }
        lines.take(b"\nnext\n", |line| long += usize::from(matches!(line, Line::TooLong)));
        assert_eq!(long, 1);
    }
}
