//! Rules of the HTTP transport: statuses, content types, and which message belongs on which stream.

use serde_json::Value;

use super::{Breach, Ledger};
use crate::http::{Purpose, Stream};
use crate::requirement::Level;
use crate::revision::Revision;

const MODERN: Revision = Revision::V2026_07_28;

impl Ledger {
    /// Holds the head of an answer against the rules.
    pub(crate) fn answered(&self, stream: &Stream) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let status = stream.status.unwrap_or_default();
        let of = |rule, level, ids: &[&'static str], expected: &str, got: String| {
            self.http_breach(stream, level, rule, ids, expected, got)
        };
        match &stream.purpose {
            Purpose::Downstream if !stream.is_good() || !stream.is_events() => {
                let expected = "an event stream as the answer to GET";
                let got = format!("status {status} with content type `{}`", stream.media());
                breaches.push(of("endpoint", Level::Must, &["LS-SSE-01"], expected, got));
            }
            // Neither the status nor the body of a post is fixed there.
            _ if stream.posted => {}
            Purpose::Notice if stream.is_good() && status != 202 => {
                let ids = ["S-HTTP-06", "LS-HTTP-02"];
                let expected = "status 202 for a notification or response that is accepted";
                breaches.push(of("accepted", Level::Must, &ids, expected, format!("status {status}")));
            }
            Purpose::Request { .. } | Purpose::Batch if stream.is_good() => {
                let media = stream.media();
                // How a POST ends that gets no response, as it was cancelled, is not said.
                let open = match &stream.purpose {
                    Purpose::Request { id, .. } => self.cancelled.contains(id),
                    _ => !self.cancelled.is_empty(),
                };
                if !open && media != "application/json" && media != "text/event-stream" {
                    let expected = "application/json or text/event-stream as the answer to a request";
                    let got = format!("status {status} with content type `{media}`");
                    breaches.push(of("answer-type", Level::Must, &["S-HTTP-08"], expected, got));
                }
            }
            Purpose::Listening if stream.is_good() && !stream.is_events() => {
                let expected = "an event stream or 405 as the answer to GET";
                let got = format!("status {status} with content type `{}`", stream.media());
                breaches.push(of("get", Level::Must, &["LS-HTTP-10"], expected, got));
            }
            _ => {}
        }
        if let Purpose::Request { method, .. } = &stream.purpose
            && method == "tasks/get"
            && stream.is_events()
        {
            let expected = "a task as JSON, as its state is known at once";
            let got = format!("content type `{}`", stream.media());
            breaches.push(of("task-as-json", Level::Should, &["LS-TASK-03"], expected, got));
        }
        let modern = self.is_of_modern(stream);
        if stream.is_events() && stream.is_good() && modern {
            let buffering = stream.header("x-accel-buffering").unwrap_or_default();
            if !buffering.trim().eq_ignore_ascii_case("no") {
                let expected = "`X-Accel-Buffering: no` on an event stream";
                breaches.push(of(
                    "buffering",
                    Level::Should,
                    &["S-HTTP-12"],
                    expected,
                    format!("`{buffering}`"),
                ));
            }
        }
        if let Some(session) = stream.header("mcp-session-id") {
            let visible = session.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
            if modern {
                let expected = "no session for a modern request";
                breaches.push(of(
                    "no-session",
                    Level::Should,
                    &["S-COMPAT-03"],
                    expected,
                    format!("`{session}`"),
                ));
            } else if !visible || session.is_empty() {
                let expected = "a session id of visible ASCII";
                breaches.push(of(
                    "session-id",
                    Level::Must,
                    &["LS-SESS-02"],
                    expected,
                    format!("`{session}`"),
                ));
            }
        }
        breaches
    }

    /// Holds a message against the stream it came on.
    pub(crate) fn carried(&self, stream: &Stream, message: &Value) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let of = |rule, level, ids: &[&'static str], expected: &str, got: &Value| {
            let got = crate::text::shorten(&got.to_string(), 300);
            self.http_breach(stream, level, rule, ids, expected, got)
        };
        let modern = self.is_of_modern(stream);
        if message.get("method").is_some() {
            if stream.answered {
                let (level, ids): (_, &[&'static str]) = if self.asked_back(stream) {
                    (Level::Must, &["S-SEPX-07", "S-HTTP-11"])
                } else {
                    (Level::Should, &["S-HTTP-11", "LS-HTTP-09"])
                };
                let expected = "nothing on the stream after the response";
                breaches.push(of("after-response", level, ids, expected, message));
            }
            if modern {
                self.related(stream, message, &mut breaches);
            } else if let Some((id, expected)) = self.astray(stream, message) {
                breaches.push(of("astray", Level::Should, &[id], expected, message));
            }
            return breaches;
        }
        let answered = message.get("id").unwrap_or(&Value::Null);
        match &stream.purpose {
            // A numeric id that comes back as text is another rule's.
            Purpose::Request { id, .. } | Purpose::Resumed { id }
                if answered != id && self.is_modern(answered).is_some() =>
            {
                let level = if modern { Level::Must } else { Level::Should };
                let expected = format!("the response to {id} alone on the stream that its request opened");
                breaches.push(of("own-stream", level, &["S-BASE-01", "LS-HTTP-06"], &expected, message));
            }
            Purpose::Listening if stream.is_events() => {
                let expected = "no response on a GET stream that resumes nothing";
                breaches.push(of("no-response-on-get", Level::Must, &["LS-HTTP-12"], expected, message));
            }
            _ => {}
        }
        if let Some(status) = stream.status {
            if message.get("result").is_some() && !stream.is_good() {
                let expected = format!("an error status for an error only, not {status} with a result");
                breaches.push(of("status-of-result", Level::Must, &["S-HTTP-08"], &expected, message));
            }
            if modern && let Some(code) = message.pointer("/error/code").and_then(Value::as_i64) {
                self.status_of_error(stream, status, code, &mut breaches);
            }
        }
        breaches
    }

    /// A log message that holds one of the tokens of the requests.
    pub(crate) fn leaked<'t>(
        &self,
        message: &Value,
        mut tokens: impl Iterator<Item = &'t str>,
    ) -> Option<Breach> {
        let params = message.get("params").filter(|_| message["method"] == "notifications/message")?;
        let text = params.to_string();
        tokens.find(|token| text.contains(token)).map(|token| {
            let expected = "a log message without the token of a request";
            let got = format!("one with `{token}`");
            self.breach(Level::Must, "token-logged", &["S-LOG-09"], "/params", expected, got)
        })
    }

    /// An event id that came before in the session.
    pub(crate) fn repeated_event(&self, id: &str) -> Breach {
        let expected = "event ids that are unique in the session";
        self.breach(Level::Must, "event-ids", &["LS-HTTP-16"], "", expected, format!("`{id}` again"))
    }

    /// Holds the end of an answer against the rules.
    pub(crate) fn closed(&self, stream: &Stream) -> Vec<Breach> {
        let body = stream.body.trim_ascii();
        if stream.purpose == Purpose::Notice
            && !stream.posted
            && stream.status == Some(202)
            && !body.is_empty()
        {
            let got = crate::text::shorten(&crate::text::printable(body), 300);
            let expected = "no body with status 202";
            let ids = ["S-HTTP-06", "LS-HTTP-02"];
            return vec![self.http_breach(stream, Level::Must, "accepted", &ids, expected, got)];
        }
        Vec::new()
    }

    /// Whether the response that came on the stream asks for input.
    fn asked_back(&self, stream: &Stream) -> bool {
        let Purpose::Request { id, .. } = &stream.purpose else { return false };
        self.requests.iter().rev().find(|request| request.id == *id).is_some_and(|request| request.asked_back)
    }

    /// What is wrong with progress that comes on this stream of a legacy session.
    fn astray(&self, stream: &Stream, message: &Value) -> Option<(&'static str, &'static str)> {
        let token = message.pointer("/params/progressToken").filter(|token| !token.is_null())?;
        let given = self.requests.iter().rev().find(|request| request.token.as_ref() == Some(token))?;
        match &stream.purpose {
            Purpose::Request { id, .. } if given.id != *id => {
                Some(("LS-HTTP-08", "only what belongs to the request on its stream"))
            }
            Purpose::Listening if !given.answered => {
                Some(("LS-HTTP-11", "progress of a running request on the stream of its request"))
            }
            _ => None,
        }
    }

    /// A modern stream carries what belongs to its request, and nothing else.
    fn related(&self, stream: &Stream, message: &Value, breaches: &mut Vec<Breach>) {
        let Purpose::Request { id, method } = &stream.purpose else { return };
        let Some(request) = self.requests.iter().rev().find(|request| request.id == *id) else { return };
        let token = message.pointer("/params/progressToken");
        let foreign_token = token.is_some() && token != request.token.as_ref();
        let tag = message.pointer("/params/_meta/io.modelcontextprotocol~1subscriptionId");
        let foreign_tag = tag.is_some_and(|tag| tag != id);
        let untagged = message["method"] != "notifications/progress"
            && message["method"] != "notifications/message"
            && method != "subscriptions/listen";
        let unasked_log = message["method"] == "notifications/message"
            && request.params.pointer("/_meta/io.modelcontextprotocol~1logLevel").is_none();
        if unasked_log {
            let expected = "a log message on the stream of a request that set a level";
            let got = crate::text::shorten(&message.to_string(), 300);
            let ids: &[&'static str] =
                if method == "subscriptions/listen" { &["S-LOG-03", "S-TASK-28"] } else { &["S-LOG-03"] };
            breaches.push(self.http_breach(stream, Level::Must, "log-stream", ids, expected, got));
        }
        if foreign_token || foreign_tag || untagged {
            let expected = format!("only what belongs to request {id} on its stream");
            let got = crate::text::shorten(&message.to_string(), 300);
            let of_listen = method == "subscriptions/listen" && foreign_token;
            let ids: &[&'static str] = if of_listen { &["S-HTTP-09", "S-TASK-28"] } else { &["S-HTTP-09"] };
            breaches.push(self.http_breach(stream, Level::Must, "related", ids, &expected, got));
        }
    }

    /// The statuses that the modern revision fixes.
    fn status_of_error(&self, stream: &Stream, status: u16, code: i64, breaches: &mut Vec<Breach>) {
        let (wanted, ids): (u16, &[&'static str]) = match code {
            -32601 => (404, &["S-HDR-03"]),
            -32020 => (400, &["S-HDR-22", "S-HDR-15"]),
            // A handler may find out late, when the stream has begun.
            -32021 if stream.count == 0 => (400, &["S-META-05"]),
            -32022 => (400, &["S-HDR-02"]),
            -32602 if self.lacks_metadata(stream) => (400, &["S-META-02"]),
            _ => return,
        };
        if status != wanted {
            let expected = format!("status {wanted} with code {code}");
            breaches.push(self.http_breach(
                stream,
                Level::Must,
                "status-of-error",
                ids,
                &expected,
                format!("status {status}"),
            ));
        }
    }

    /// Whether the request lacks what each modern request has to have.
    fn lacks_metadata(&self, stream: &Stream) -> bool {
        let Purpose::Request { id, .. } = &stream.purpose else { return false };
        let request = self.requests.iter().rev().find(|request| request.id == *id);
        request.is_some_and(|request| {
            let meta = |name: &str| {
                request
                    .params
                    .get("_meta")
                    .and_then(|meta| meta.get(format!("io.modelcontextprotocol/{name}")))
            };
            meta("protocolVersion").is_none() || meta("clientCapabilities").is_none()
        })
    }

    fn is_of_modern(&self, stream: &Stream) -> bool {
        match &stream.purpose {
            Purpose::Request { id, .. } => self.is_modern(id).unwrap_or_else(|| self.modern()),
            _ => false,
        }
    }

    fn http_breach(
        &self,
        stream: &Stream,
        level: Level,
        rule: &'static str,
        ids: &[&'static str],
        expected: &str,
        got: String,
    ) -> Breach {
        let revision = if self.is_of_modern(stream) { MODERN } else { self.settled.unwrap_or(self.revision) };
        self.breach_in(revision, level, rule, ids, "", expected, got)
    }
}
