//! The body of a response, in whatever pieces it comes: one JSON text, or events.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::ExchangeId;
use crate::codec::{SseDecoder, SseEvent, SseFrame};

/// The most that is read of a body which is no message, in bytes: enough to say what it was. 4 KiB.
const MAX_OTHER: usize = 4 << 10;

/// Reads the body of one response. [`Client::head`](super::Client::head) makes it; its driver owns it, feeds it what comes, and
/// hands on the frames that it finds.
///
/// What one can rely on: the frames depend on the bytes alone, never on how they were cut; memory is bounded
/// by [`Limits::max_message`](crate::limits::Limits::max_message), however long the body is.
#[derive(Debug)]
#[must_use = "the answer is in the body"]
pub struct Reader {
    exchange: ExchangeId,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Whatever it is, it means nothing.
    Nothing,
    Json(Text),
    /// Not said to be JSON, which it may be nevertheless.
    Other(Text),
    Events(SseDecoder),
}

#[derive(Debug)]
struct Text {
    bytes: Vec<u8>,
    max: usize,
    is_over: bool,
}

/// What a response is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nothing,
    Json,
    Other,
    Events,
}

/// A part of a body that means something. Hand it to [`Client::handle`](super::Client::handle).
#[must_use = "a frame that is dropped is a message that is lost"]
pub struct Frame<'d> {
    pub(crate) exchange: ExchangeId,
    pub(crate) content: Part<'d>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'d> {
    /// The data of an event, or a whole body.
    Message(&'d [u8]),
    /// A whole body that is not said to be JSON.
    Other(&'d [u8]),
    /// 2024-11-05: where messages are to be sent.
    Endpoint(&'d [u8]),
    /// A message is longer than this. It was dropped.
    TooLong(usize),
}

impl Reader {
    pub(crate) fn new(exchange: ExchangeId, kind: Kind, max_message: usize) -> Self {
        let text = |max| Text { bytes: Vec::new(), max, is_over: false };
        let content = match kind {
            Kind::Nothing => Content::Nothing,
            Kind::Json => Content::Json(text(max_message)),
            Kind::Other => Content::Other(text(max_message.min(MAX_OTHER))),
            Kind::Events => Content::Events(SseDecoder::new(max_message)),
        };
        Self { exchange, content }
    }

    /// The exchange whose response this is.
    #[must_use]
    pub const fn exchange(&self) -> ExchangeId {
        self.exchange
    }

    /// The next frame, or `None` when all of `input` is consumed and more is needed. What was consumed is
    /// taken off the front of `input`.
    #[must_use]
    pub fn next_frame(&mut self, input: &mut &[u8]) -> Option<Frame<'_>> {
        let exchange = self.exchange;
        let frame = |content| Some(Frame { exchange, content });
        match &mut self.content {
            Content::Nothing => {}
            Content::Json(text) => {
                if text.push(input) {
                    *input = &[];
                    return frame(Part::TooLong(text.max));
                }
            }
            Content::Other(text) => drop(text.push(input)),
            Content::Events(decoder) => return next_event(decoder, input).and_then(frame),
        }
        *input = &[];
        None
    }

    /// The last frame, once the body has ended as it should.
    #[must_use]
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        let content = match &mut self.content {
            Content::Json(text) if !text.is_over && !text.is_blank() => Part::Message(&text.bytes),
            Content::Other(text) if !text.is_blank() => Part::Other(&text.bytes),
            // What is left of an event is none: it was not ended.
            _ => return None,
        };
        Some(Frame { exchange: self.exchange, content })
    }

    /// The id to go on from; empty if there is none.
    pub(crate) fn last_event_id(&self) -> &str {
        match &self.content {
            Content::Events(decoder) => decoder.last_event_id(),
            _ => "",
        }
    }

    /// How long to wait before asking again.
    pub(crate) const fn retry(&self) -> Option<Duration> {
        match &self.content {
            Content::Events(decoder) => decoder.retry(),
            _ => None,
        }
    }
}

impl Text {
    /// Whether it has become too long just now.
    fn push(&mut self, part: &[u8]) -> bool {
        if self.is_over {
            return false;
        }
        let room = self.max - self.bytes.len();
        self.is_over = part.len() > room;
        if self.is_over {
            self.bytes.extend_from_slice(&part[..room]);
        } else {
            self.bytes.extend_from_slice(part);
        }
        self.is_over
    }

    fn is_blank(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }
}

/// The next event that means something; the others are skipped, however many they are.
fn next_event<'d>(decoder: &'d mut SseDecoder, input: &mut &[u8]) -> Option<Part<'d>> {
    // The borrow of a frame that is returned from within a loop would last for all of the loop. So the
    // decoder is asked for what comes, and lends it once it is known to be wanted.
    loop {
        match decoder.next_frame(input)? {
            SseFrame::Event(event) if !is_message(&event) && !is_endpoint(&event) => {}
            SseFrame::Event(_) => break,
            SseFrame::TooLong { limit } => return Some(Part::TooLong(limit)),
        }
    }
    let event = decoder.current()?;
    Some(if is_endpoint(&event) { Part::Endpoint(event.data) } else { Part::Message(event.data) })
}

/// Whether an event holds a message. Its name does not matter much, for the revisions do not fix it; but
/// what has another name than the usual one must look like a message.
fn is_message(event: &SseEvent<'_>) -> bool {
    // Empty data is there for the id, or to show that someone is there.
    !event.data.iter().all(u8::is_ascii_whitespace)
        && (event.name == "message" || event.data.windows(9).any(|part| part == b"\"jsonrpc\""))
}

fn is_endpoint(event: &SseEvent<'_>) -> bool {
    event.name == "endpoint"
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, bytes) = match self.content {
            Part::Message(bytes) => ("message", bytes),
            Part::Other(bytes) => ("other", bytes),
            Part::Endpoint(bytes) => ("endpoint", bytes),
            Part::TooLong(_) => ("too long", &b""[..]),
        };
        write!(f, "Frame({:?}, {kind}: {})", self.exchange, String::from_utf8_lossy(bytes))
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::format;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq)]
    enum Seen {
        Message(Vec<u8>),
        Other(Vec<u8>),
        Endpoint(Vec<u8>),
        TooLong(usize),
    }

    fn seen(frame: &Frame<'_>) -> Seen {
        match frame.content {
            Part::Message(bytes) => Seen::Message(bytes.to_owned()),
            Part::Other(bytes) => Seen::Other(bytes.to_owned()),
            Part::Endpoint(bytes) => Seen::Endpoint(bytes.to_owned()),
            Part::TooLong(limit) => Seen::TooLong(limit),
        }
    }

    fn read<'c>(kind: Kind, max: usize, chunks: impl IntoIterator<Item = &'c [u8]>) -> Vec<Seen> {
        let mut reader = Reader::new(ExchangeId(1), kind, max);
        let mut all = Vec::new();
        for mut chunk in chunks {
            while let Some(frame) = reader.next_frame(&mut chunk) {
                all.push(seen(&frame));
            }
            assert!(chunk.is_empty());
        }
        all.extend(reader.finish().as_ref().map(seen));
        all
    }

    fn message(text: &str) -> Seen {
        Seen::Message(text.as_bytes().to_vec())
    }

    /// C-HTTP-06
    #[test]
    fn a_json_body_is_one_message() {
        assert_eq!(read(Kind::Json, 99, [&b"{\"a\""[..], b":1}"]), [message("{\"a\":1}")]);
        assert_eq!(read(Kind::Json, 99, []), []);
        assert_eq!(read(Kind::Json, 99, [&b" \r\n"[..]]), []);
        assert_eq!(read(Kind::Json, 3, [&b"12"[..], b"3"]), [message("123")]);
        assert_eq!(read(Kind::Json, 3, [&b"12"[..], b"34", b"56"]), [Seen::TooLong(3)]);
        assert_eq!(read(Kind::Nothing, 9, [&b"whatever"[..]]), []);
    }

    #[test]
    fn other_bodies_are_read_as_far_as_it_helps() {
        assert_eq!(read(Kind::Other, 99, [&b"<html>"[..]]), [Seen::Other(b"<html>".to_vec())]);
        let long = vec![b'x'; 2 * MAX_OTHER];
        let found = read(Kind::Other, 1 << 20, [&long[..], &long]);
        assert_eq!(found, [Seen::Other(long[..MAX_OTHER].to_vec())]);
    }

    /// C-HTTP-07, H12: a flood of events that mean nothing costs neither memory nor stack.
    #[test]
    fn what_is_no_message_is_skipped() {
        let mut body = b"\xef\xbb\xbfid: a-1\r\nretry: 50\r\ndata: \r\n\r\n".to_vec();
        for _ in 0..50_000 {
            body.extend_from_slice(b": k\n\nevent: ping\ndata: {}\n\ndata\r\rdata:  \n\n");
        }
        body.extend_from_slice(b"event: odd\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1}\n\ndata: half");
        let mut reader = Reader::new(ExchangeId(7), Kind::Events, 200);
        let mut chunk = &body[..];
        let frame = reader.next_frame(&mut chunk).unwrap();
        assert_eq!(frame.exchange, ExchangeId(7));
        assert_eq!(seen(&frame), message("{\"jsonrpc\":\"2.0\",\n\"id\":1}"));
        assert!(reader.next_frame(&mut chunk).is_none());
        assert!(reader.finish().is_none(), "half an event is none");
        assert_eq!((reader.last_event_id(), reader.retry()), ("a-1", Some(Duration::from_millis(50))));
    }

    #[test]
    fn endpoints_and_giants_are_told_apart() {
        let body =
            format!("event: endpoint\ndata: /messages?x=1\n\ndata: {}\n\ndata: {{}}\n\n", "x".repeat(99));
        assert_eq!(
            read(Kind::Events, 50, [body.as_bytes()]),
            [Seen::Endpoint(b"/messages?x=1".to_vec()), Seen::TooLong(50), message("{}")]
        );
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(
            body in "((data|event|id|: c|retry): ?(\\{\"jsonrpc\":1\\}|endpoint|x{0,40}|[0-9])?(\r|\n|\r\n){1,2}){0,12}",
            at in any::<prop::sample::Index>(), then in any::<prop::sample::Index>(),
            kind in prop::sample::select(vec![Kind::Nothing, Kind::Json, Kind::Other, Kind::Events]),
        ) {
            let body = body.as_bytes();
            let whole = read(kind, 60, [body]);
            let (a, b) = body.split_at(at.index(body.len() + 1));
            let (b, c) = b.split_at(then.index(b.len() + 1));
            prop_assert_eq!(&read(kind, 60, [a, b, c]), &whole);
            prop_assert_eq!(&read(kind, 60, body.chunks(1)), &whole);
        }

        #[test]
        fn nothing_panics(body in any::<Vec<u8>>(), max in 0_usize..20) {
            for kind in [Kind::Nothing, Kind::Json, Kind::Other, Kind::Events] {
                let _ = read(kind, max, [&body[..]]);
            }
        }
    }
}
