//! One request over HTTP and what is read from its answer.

use std::time::Duration;

use mcp_proto::codec::{SseDecoder, SseFrame};
use serde_json::{Value, json};

use super::Answer;
use crate::text::read_json;

/// A longer event is dropped.
const EVENT_LIMIT: usize = 64 << 20;

/// What a request is for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Purpose {
    /// It carries a JSON-RPC request.
    Request { id: Value, method: String },
    /// It carries an array.
    Batch,
    /// It carries a notification or a response.
    Notice,
    /// It carries something that is no message, or one that may be refused.
    Odd,
    /// A GET for the messages that belong to no request.
    Listening,
    /// A GET that goes on with the stream of this request.
    Resumed { id: Value },
    /// A request that an exchange wrote; the id, if it carries a JSON-RPC request.
    Step { id: Option<Value>, method: Option<String> },
    /// The end of a session.
    Farewell,
    /// The stream of a session of 2024-11-05: where to post, and everything that the server says.
    Downstream,
}

/// A request and its answer so far.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) purpose: Purpose,
    pub(crate) status: Option<u16>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    decoder: Option<SseDecoder>,
    /// The events so far; kept for requests that an exchange wrote.
    pub(crate) events: Vec<Value>,
    /// How many messages came.
    pub(crate) count: usize,
    /// Whether the response to the request it carries has come.
    pub(crate) answered: bool,
    pub(crate) ended: bool,
    /// How it ended, if not as it should.
    pub(crate) problem: Option<String>,
    /// Closed from this side.
    pub(crate) hung_up: bool,
    /// The ids of its events since they were last looked at.
    pub(crate) event_ids: Vec<String>,
    /// Whether an event without data came.
    pub(crate) primed: bool,
    /// Whether what it brings about comes on the stream of the session.
    pub(crate) posted: bool,
    /// Where messages are to be posted to, as the stream of a session says.
    pub(crate) post_to: Option<String>,
}

impl Stream {
    pub(crate) const fn new(purpose: Purpose) -> Self {
        Self {
            purpose,
            status: None,
            headers: Vec::new(),
            body: Vec::new(),
            decoder: None,
            events: Vec::new(),
            count: 0,
            answered: false,
            ended: false,
            problem: None,
            hung_up: false,
            event_ids: Vec::new(),
            primed: false,
            posted: false,
            post_to: None,
        }
    }

    /// The values of a header, joined as one.
    pub(crate) fn header(&self, wanted: &str) -> Option<String> {
        let values: Vec<_> = self
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.as_str())
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// The media type without its parameters, in lower case; empty if there is none.
    pub(crate) fn media(&self) -> String {
        let content = self.header("content-type").unwrap_or_default();
        content.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    pub(crate) fn is_events(&self) -> bool {
        self.media() == "text/event-stream"
    }

    pub(crate) fn is_good(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    pub(crate) fn retry(&self) -> Option<Duration> {
        self.decoder.as_ref().and_then(SseDecoder::retry)
    }

    pub(crate) fn last_event_id(&self) -> Option<String> {
        let id = self.decoder.as_ref()?.last_event_id();
        (!id.is_empty()).then(|| id.to_owned())
    }

    /// Takes a part of the answer; the texts of the messages in it.
    pub(crate) fn take(&mut self, answer: Answer) -> Vec<Vec<u8>> {
        match answer {
            Answer::Head { status, headers } => {
                self.status = Some(status);
                self.headers = headers;
                if self.is_events() {
                    self.decoder = Some(SseDecoder::new(EVENT_LIMIT));
                }
                Vec::new()
            }
            Answer::Body(bytes) if self.decoder.is_some() => self.events(&bytes),
            Answer::Body(bytes) => {
                self.body.extend(bytes);
                Vec::new()
            }
            Answer::End(problem) => {
                self.ended = true;
                self.problem = problem;
                let json = self.media() == "application/json";
                // An error status may come with a body that is JSON-RPC whatever its type says.
                let likely = !self.is_good() && self.body.trim_ascii().starts_with(b"{\"jsonrpc\"");
                // A post that was taken is answered elsewhere; what else it says means nothing.
                let taken = self.posted && self.is_good();
                let whole = self.decoder.is_none() && !taken && !self.body.trim_ascii().is_empty();
                if whole && (json || likely) { vec![self.body.clone()] } else { Vec::new() }
            }
        }
    }

    fn events(&mut self, mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let keep = matches!(self.purpose, Purpose::Step { .. });
        let downstream = self.purpose == Purpose::Downstream;
        let Some(decoder) = &mut self.decoder else { return Vec::new() };
        let mut messages = Vec::new();
        while let Some(frame) = decoder.next_frame(&mut bytes) {
            let event = match frame {
                SseFrame::Event(event) => event,
                SseFrame::TooLong { .. } => continue,
            };
            self.event_ids.extend(event.id.map(str::to_owned));
            self.primed |= event.data.is_empty();
            if downstream && event.name == "endpoint" {
                self.post_to = Some(String::from_utf8_lossy(event.data).into_owned());
                continue;
            }
            if keep {
                let mut seen = json!({"event": event.name, "data": String::from_utf8_lossy(event.data)});
                if let Some(id) = event.id {
                    seen["id"] = json!(id);
                }
                if let Ok(message) = read_json(event.data) {
                    seen["message"] = message;
                }
                self.events.push(seen);
            }
            // No name is fixed for the events that carry messages.
            if !event.data.is_empty() {
                messages.push(event.data.to_vec());
            }
        }
        messages
    }

    /// What came, in words, where a message was waited for.
    pub(crate) fn told(&self) -> String {
        let status = match self.status {
            Some(status) => format!("status {status}"),
            None => "no answer".to_owned(),
        };
        let problem = self.problem.as_ref().map(|problem| format!(", {problem}")).unwrap_or_default();
        let body = String::from_utf8_lossy(&self.body);
        let body = match body.trim() {
            "" => String::new(),
            text => format!(": {}", crate::text::shorten(text, 200)),
        };
        format!("{status} {}{problem}{body}", self.media()).trim_end().to_owned()
    }
}
