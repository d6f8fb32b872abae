//! Saying something to a client: over the output of the server program, as the answer to a POST, or as an event.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::stage::{Conn, Stage};
use crate::exchange::{Cuts, Transport};

/// Header lines in their order.
pub(super) type Lines = Vec<(String, String)>;

/// What has been sent of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing yet.
    Waiting,
    /// A head, and a body whose end is told by chunks.
    Open,
    /// All of it.
    Done,
}

/// The answers that are under way, by connection.
#[derive(Debug)]
pub(super) struct Voice {
    transport: Transport,
    states: BTreeMap<Conn, State>,
}

impl Voice {
    pub(super) const fn new(transport: Transport) -> Self {
        Self { transport, states: BTreeMap::new() }
    }

    /// A request has come on this connection.
    pub(super) fn asked(&mut self, conn: Conn) {
        self.states.insert(conn, State::Waiting);
    }

    pub(super) fn state(&self, conn: Conn) -> Option<State> {
        self.states.get(&conn).copied()
    }

    /// The connection is over.
    pub(super) fn gone(&mut self, conn: Conn) {
        self.states.remove(&conn);
    }

    /// A whole answer, or the head of one that stays open.
    pub(super) fn respond(
        &mut self,
        stage: &Stage,
        conn: Conn,
        (status, headers): (u64, &Lines),
        body: &[u8],
        open: bool,
    ) -> bool {
        let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let sized = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if open {
            text.push_str("Transfer-Encoding: chunked\r\n\r\n");
        } else if sized || (matches!(status, 204 | 304) && body.is_empty()) {
            text.push_str("\r\n");
        } else {
            text.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        }
        let mut bytes = text.into_bytes();
        if open && !body.is_empty() {
            bytes.extend(chunk(body));
        } else if !open {
            bytes.extend_from_slice(body);
        }
        self.states.insert(conn, if open { State::Open } else { State::Done });
        stage.write(conn, &bytes)
    }

    /// Opens an answer of events, if it is not open yet.
    pub(super) fn stream(&mut self, stage: &Stage, conn: Conn, (status, more): (u64, &Lines)) -> bool {
        if self.state(conn) == Some(State::Open) {
            return true;
        }
        let mut headers = vec![
            ("Content-Type".to_owned(), "text/event-stream".to_owned()),
            ("Cache-Control".to_owned(), "no-store".to_owned()),
        ];
        overlay(&mut headers, more);
        self.respond(stage, conn, (status, &headers), b"", true)
    }

    /// A part of an answer that is open, or bytes for the output of the server program.
    pub(super) fn write(&self, stage: &Stage, conn: Conn, bytes: &[u8]) -> bool {
        match self.transport {
            Transport::Stdio => stage.print(conn, bytes),
            Transport::Http if bytes.is_empty() => true,
            Transport::Http => stage.write(conn, &chunk(bytes)),
        }
    }

    /// The proper end of an answer.
    pub(super) fn end(&mut self, stage: &Stage, conn: Conn) -> bool {
        if self.state(conn) != Some(State::Open) {
            return true;
        }
        self.states.insert(conn, State::Done);
        stage.write(conn, b"0\r\n\r\n")
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// Puts lines in place of those with the same name. An empty value takes one away.
pub(super) fn overlay(lines: &mut Lines, more: &Lines) {
    for (name, value) in more {
        lines.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        lines.push((name.clone(), value.clone()));
    }
}

/// A message as an event; `lines` are further lines of it by name.
pub(super) fn event(message: &Value, lines: &Map<String, Value>) -> Vec<u8> {
    let mut text = String::new();
    for (name, value) in lines {
        match value {
            Value::String(value) => text.push_str(&format!("{name}: {value}\n")),
            other => text.push_str(&format!("{name}: {other}\n")),
        }
    }
    if !lines.contains_key("event") {
        text.push_str("event: message\n");
    }
    if !message.is_null() {
        text.push_str(&format!("data: {message}\n"));
    }
    text.push('\n');
    text.into_bytes()
}

/// The bytes in the pieces in which they are written.
pub(super) fn pieces(bytes: &[u8], cuts: Option<&Cuts>) -> Vec<Vec<u8>> {
    match cuts {
        None => vec![bytes.to_vec()],
        Some(Cuts::Every) => bytes.iter().map(|byte| vec![*byte]).collect(),
        Some(Cuts::At(offsets)) => {
            let mut pieces = Vec::new();
            let mut at = 0;
            for offset in offsets.iter().copied().filter(|offset| *offset < bytes.len()) {
                pieces.push(bytes[at..offset].to_vec());
                at = offset;
            }
            pieces.push(bytes[at..].to_vec());
            pieces
        }
    }
}

const fn reason(status: u64) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_an_event_with_its_lines() {
        let lines = Map::from_iter([("id".to_owned(), json!("7")), ("retry".to_owned(), json!(500))]);
        let text = String::from_utf8(event(&json!({"a": 1}), &lines)).unwrap();
        assert_eq!(text, "id: 7\nretry: 500\nevent: message\ndata: {\"a\":1}\n\n");
        assert_eq!(event(&Value::Null, &Map::from_iter([("event".to_owned(), json!("x"))])), b"event: x\n\n");
    }

    #[test]
    fn a_write_is_cut_where_it_is_told() {
        assert_eq!(pieces(b"abcd", Some(&Cuts::At(vec![1, 3, 9]))), [&b"a"[..], b"bc", b"d"]);
        assert_eq!(pieces(b"ab", Some(&Cuts::Every)), [b"a", b"b"]);
    }
}
