//! The client side of an endpoint: which requests to send, which streams are open, which session goes on.

use std::collections::BTreeMap;

use serde_json::Value;

use super::binding::{self, Headers, Mirrors};
use super::{Answer, Endpoint, Purpose, Stream};
use crate::revision::Revision;

/// So many times is a stream taken up again that the server has ended.
const RETURNS: usize = 5;

/// What the driver has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// Send these bytes on a connection of their own.
    Request { stream: u64, bytes: Vec<u8>, is_head: bool },
    /// Close that connection.
    HangUp { stream: u64 },
}

/// A client of one endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Web {
    pub(crate) endpoint: Endpoint,
    revision: Revision,
    mirrors: Mirrors,
    /// The id of the legacy session.
    pub(crate) session: Option<String>,
    /// The version that the handshake settled.
    settled: Option<String>,
    pub(crate) streams: BTreeMap<u64, Stream>,
    next: u64,
    returns: usize,
    /// Where the messages of a session of 2024-11-05 are posted to, or why that is nowhere.
    messages: Option<Result<String, String>>,
}

impl Web {
    pub(crate) const fn new(endpoint: Endpoint, revision: Revision, mirrors: Mirrors) -> Self {
        Self {
            endpoint,
            revision,
            mirrors,
            session: None,
            settled: None,
            streams: BTreeMap::new(),
            next: 1,
            returns: 0,
            messages: None,
        }
    }

    /// Opens the stream of a session of 2024-11-05.
    pub(crate) fn connect(&mut self) -> (u64, Order) {
        let headers = self.for_reading(None);
        self.request("GET", None, &headers, None, Purpose::Downstream)
    }

    /// Whether the transport is that of 2024-11-05.
    pub(crate) const fn is_sse(&self) -> bool {
        self.endpoint.is_sse
    }

    /// Where its messages are posted to, or why that is nowhere; `None` while it is not known.
    pub(crate) fn messages(&self) -> Option<Result<&str, String>> {
        if let Some(messages) = &self.messages {
            return Some(messages.as_deref().map_err(Clone::clone));
        }
        let downstream = self.downstream()?;
        let early = (downstream.count > 0).then(|| Err("another message first".to_owned()));
        downstream.ended.then(|| Err(downstream.told())).or(early)
    }

    fn downstream(&self) -> Option<&Stream> {
        self.streams.values().find(|stream| stream.purpose == Purpose::Downstream)
    }

    /// From now on arguments are mirrored by these definitions.
    pub(crate) fn mirror(&mut self, mirrors: Mirrors) {
        self.mirrors = mirrors;
    }

    /// The headers of a POST that carries the message.
    pub(crate) fn headers(&self, message: &Value) -> Headers {
        let mut headers = self.credentials();
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        if self.is_sse() {
            return headers;
        }
        headers.push(("Accept".to_owned(), "application/json, text/event-stream".to_owned()));
        let opens = message.get("method").is_some_and(|method| method == "initialize");
        let stamped = binding::is_stamped(message);
        if stamped || (self.revision.is_modern() && self.settled.is_none() && !opens) {
            binding::modern(message, self.revision.as_str(), &self.mirrors, &mut headers);
        } else if !opens {
            headers.extend(self.of_session());
        }
        headers
    }

    /// The headers of everything.
    pub(crate) fn credentials(&self) -> Headers {
        self.endpoint.credentials().into_iter().collect()
    }

    /// The headers of everything in a legacy session.
    fn of_session(&self) -> Headers {
        let mut headers = Vec::new();
        if let Some(session) = &self.session {
            headers.push(("Mcp-Session-Id".to_owned(), session.clone()));
        }
        // The header came with 2025-06-18.
        if let Some(version) = self.settled.as_deref().filter(|version| *version >= "2025-06-18") {
            headers.push(("MCP-Protocol-Version".to_owned(), version.to_owned()));
        }
        headers
    }

    /// Sends a message, or bytes that are none.
    pub(crate) fn post(&mut self, message: Option<&Value>, body: &[u8], headers: &Headers) -> (u64, Order) {
        let target = self.messages().and_then(Result::ok).map(str::to_owned);
        let (stream, order) = self.request("POST", target.as_deref(), headers, Some(body), purpose(message));
        let posted = self.is_sse();
        self.streams.entry(stream).and_modify(|sent| sent.posted = posted);
        (stream, order)
    }

    /// Asks for the messages of the session that belong to no request.
    pub(crate) fn listen(&mut self) -> (u64, Order) {
        let headers = self.for_reading(None);
        self.request("GET", None, &headers, None, Purpose::Listening)
    }

    /// Goes on with a stream that the server ended before it had said all, if it can be.
    pub(crate) fn resume(&mut self, stream: u64) -> Option<(u64, Order)> {
        let ended = self.streams.get(&stream)?;
        let last = ended.last_event_id();
        let purpose = match &ended.purpose {
            Purpose::Request { id, .. } | Purpose::Resumed { id } => Purpose::Resumed { id: id.clone() },
            Purpose::Listening => Purpose::Listening,
            _ => return None,
        };
        self.returns += 1;
        let headers = self.for_reading(last);
        Some(self.request("GET", None, &headers, None, purpose))
    }

    /// Whether the stream is one that a client of this revision takes up again.
    pub(crate) fn resumes(&self, stream: u64) -> bool {
        let Some(stream) = self.streams.get(&stream) else { return false };
        let goes_on = match &stream.purpose {
            Purpose::Request { .. } | Purpose::Resumed { .. } => {
                !stream.answered && stream.last_event_id().is_some()
            }
            Purpose::Listening => true,
            _ => false,
        };
        let legacy = !self.revision.is_modern() || self.settled.is_some();
        goes_on
            && legacy
            && stream.is_events()
            && stream.is_good()
            && !stream.hung_up
            && self.returns < RETURNS
    }

    /// Whether a stream for the messages of the session is open.
    pub(crate) fn listens(&self) -> bool {
        let open = |stream: &Stream| stream.purpose == Purpose::Listening && !stream.ended;
        self.streams.values().any(open)
    }

    /// Whether a legacy session goes on.
    pub(crate) const fn has_session(&self) -> bool {
        self.settled.is_some()
    }

    /// Ends the session.
    pub(crate) fn farewell(&mut self) -> Option<(u64, Order)> {
        self.session.as_ref()?;
        let headers = [self.credentials(), self.of_session()].concat();
        Some(self.request("DELETE", None, &headers, None, Purpose::Farewell))
    }

    fn for_reading(&self, last: Option<String>) -> Headers {
        let mut headers = self.credentials();
        headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
        headers.extend(self.of_session());
        headers.extend(last.map(|id| ("Last-Event-ID".to_owned(), id)));
        headers
    }

    /// Sends a request with these headers; `Host` and `Content-Length` are added where they are not written.
    pub(crate) fn request(
        &mut self,
        method: &str,
        target: Option<&str>,
        headers: &Headers,
        body: Option<&[u8]>,
        purpose: Purpose,
    ) -> (u64, Order) {
        let has = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let mut text = format!("{method} {} HTTP/1.1\r\n", target.unwrap_or(&self.endpoint.target));
        if !has("host") {
            text.push_str(&format!("Host: {}\r\n", self.endpoint.authority));
        }
        for (name, value) in headers {
            // A header that is taken away.
            if !name.is_empty() {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        if let Some(body) = body.filter(|_| !has("content-length") && !has("transfer-encoding")) {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        let stream = self.next;
        self.next += 1;
        self.streams.insert(stream, Stream::new(purpose));
        (stream, Order::Request { stream, bytes, is_head: method == "HEAD" })
    }

    /// Closes a stream from this side.
    pub(crate) fn hang_up(&mut self, stream: u64) -> Option<Order> {
        let known = self.streams.get_mut(&stream)?;
        known.hung_up = true;
        Some(Order::HangUp { stream })
    }

    /// The open stream that carries the request with this id.
    pub(crate) fn carrier(&self, id: &Value) -> Option<u64> {
        let carries = |stream: &Stream| match &stream.purpose {
            Purpose::Request { id: known, .. } | Purpose::Resumed { id: known } => known == id,
            _ => false,
        };
        self.streams.iter().rev().find(|(_, stream)| carries(stream)).map(|(number, _)| *number)
    }

    /// Takes a part of an answer; the texts of the messages in it.
    pub(crate) fn take(&mut self, stream: u64, answer: Answer) -> Vec<Vec<u8>> {
        let Some(known) = self.streams.get_mut(&stream) else { return Vec::new() };
        let is_head = matches!(answer, Answer::Head { .. });
        let texts = known.take(answer);
        let opens = matches!(&known.purpose, Purpose::Request { method, .. } if method == "initialize");
        if is_head && opens && known.is_good() {
            self.session = known.header("mcp-session-id");
        }
        if let (Some(reference), None) = (&known.post_to, &self.messages) {
            self.messages = Some(self.endpoint.resolve(reference));
        }
        texts
    }

    /// Notes a message that came on a stream.
    pub(crate) fn carried(&mut self, stream: u64, message: &Value) {
        let Some(known) = self.streams.get_mut(&stream) else { return };
        known.count += 1;
        let response = message.get("method").is_none();
        if known.purpose == Purpose::Downstream {
            // The post that brought it about, if it did.
            let carrier = message.get("id").filter(|_| response).and_then(|id| self.carrier(id));
            if let Some(carrier) = carrier {
                self.carried(carrier, message);
            }
            return;
        }
        match &known.purpose {
            Purpose::Request { id, method } if response => {
                known.answered |= message.get("id").is_none_or(|got| got == id || got.is_null());
                let version = message.pointer("/result/protocolVersion").and_then(Value::as_str);
                if let (true, Some(version)) = (method == "initialize", version) {
                    self.settled = Some(version.to_owned());
                }
            }
            Purpose::Resumed { id } | Purpose::Step { id: Some(id), .. } if response => {
                known.answered |= message.get("id") == Some(id);
            }
            _ => {}
        }
    }

    /// Why no response to the request with this id can come any more; `None` while it can.
    pub(crate) fn lost(&self, id: &Value) -> Option<String> {
        let number = self.carrier(id)?;
        let stream = self.streams.get(&number)?;
        if stream.posted && stream.is_good() {
            // What took the post answers on the stream of the session.
            let downstream = self.downstream().filter(|downstream| !stream.answered && downstream.ended)?;
            return Some(format!("no response: the stream of the session ended: {}", downstream.told()));
        }
        let gone = stream.ended && !stream.answered && !self.resumes(number);
        gone.then(|| format!("no response: {}", stream.told()))
    }

    /// Whether everything that was sent has its whole answer, but for streams that stay open by their nature.
    pub(crate) fn is_quiet(&self) -> bool {
        self.streams.values().all(|stream| {
            let stays = match &stream.purpose {
                Purpose::Listening | Purpose::Step { .. } | Purpose::Downstream => true,
                Purpose::Request { .. } if stream.posted && stream.is_good() && !stream.answered => {
                    return false;
                }
                Purpose::Request { method, .. } => method == "subscriptions/listen",
                _ => false,
            };
            stream.ended || stream.hung_up || stays
        })
    }
}

fn purpose(message: Option<&Value>) -> Purpose {
    let Some(message) = message else { return Purpose::Odd };
    if let Some(items) = message.as_array() {
        let requests = items.iter().any(|item| matches!(purpose(Some(item)), Purpose::Request { .. }));
        let notices = !items.is_empty() && items.iter().all(|item| purpose(Some(item)) == Purpose::Notice);
        return match (requests, notices) {
            (true, _) => Purpose::Batch,
            (_, true) => Purpose::Notice,
            _ => Purpose::Odd,
        };
    }
    let id = message.get("id");
    let named = id.filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    match (named, message.get("method").and_then(Value::as_str)) {
        (Some(id), Some(method)) => Purpose::Request { id: id.clone(), method: method.to_owned() },
        (Some(_), None) if message.get("result").is_some() || message.get("error").is_some() => {
            Purpose::Notice
        }
        (None, Some(_)) if id.is_none() => Purpose::Notice,
        _ => Purpose::Odd,
    }
}
