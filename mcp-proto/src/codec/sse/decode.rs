//! Bytes to events, by the letter of the HTML standard.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::codec::{BOM, RETAIN};

/// Reads the events of a stream. Owned by the caller; one for each stream and its resumptions.
///
/// ```
/// use mcp_proto::codec::{SseDecoder, SseFrame};
///
/// let mut decoder = SseDecoder::new(16 << 20);
/// let mut chunk = &b": ping\n\nid: 7\ndata: {\"id\":1}\n\ndata: {\"un"[..];
/// while let Some(frame) = decoder.next_frame(&mut chunk) {
///     match frame {
///         SseFrame::Event(event) => assert_eq!(event.data, b"{\"id\":1}"),
///         SseFrame::TooLong { limit } => eprintln!("skipped an event of more than {limit} bytes"),
///     }
/// }
/// assert_eq!(decoder.last_event_id(), "7");
/// ```
///
/// What one can rely on:
///
/// - The events depend on the bytes alone, never on how they were cut into chunks.
/// - An event is there with the byte that ends it. A CR is a line ending at once; an LF after it is
///   swallowed when it comes.
/// - Comments, unknown fields and events without data cost no memory, however many or long they are.
/// - Memory is bounded by a small multiple of the limit. When an event is done, no more than 64 KiB of
///   capacity stay, and the last id.
#[derive(Debug, Clone)]
pub struct SseDecoder {
    limit: usize,
    state: State,
    /// The last byte was a CR, so an LF now belongs to it.
    after_cr: bool,
    /// The event at hand was lent; its fields are cleared on the next call.
    lent: bool,
    /// The event at hand is over the limit and was reported.
    skipping: bool,
    /// The data lines, each followed by an LF.
    data: Vec<u8>,
    name: String,
    /// The `id` of the event at hand, if it has one. It counts when the event is complete.
    id: Option<String>,
    /// The value of the `event` or `id` line at hand.
    value: Vec<u8>,
    last_event_id: String,
    /// The event that is lent has an id, and `last_event_id` is it.
    has_id: bool,
    retry: Option<Duration>,
}

/// What [`SseDecoder`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // an event fits or it does not; a driver should handle both
pub enum SseFrame<'d> {
    /// An event with data, though the data may be empty.
    Event(SseEvent<'d>),
    /// An event is longer than the limit. Reported once, as soon as it is known; the event is dropped up
    /// to its end. Its id counts as seen: a peer that is asked to go on from an earlier one would only
    /// send the event again.
    TooLong {
        /// The most bytes that the fields of an event may have together.
        limit: usize,
    },
}

/// One event. Lent by the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent<'d> {
    /// The `event` field, `message` if there is none.
    pub name: &'d str,
    /// The `data` lines, joined by LF. Empty in a *priming* event, which exists for its id. Not known
    /// to be UTF-8: whoever parses it has to look, for replacing what is wrong would hide it.
    pub data: &'d [u8],
    /// The `id` field of this event, `None` if it has none; [`SseDecoder::last_event_id`] is the one to
    /// resume from.
    pub id: Option<&'d str>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// So many bytes of a byte order mark were seen.
    StreamStart(usize),
    /// In front of the colon.
    Name(FieldName),
    /// After the colon; one space is not part of the value.
    Space(Field),
    Value(Field),
}

impl State {
    const LINE_START: Self = Self::Name(FieldName::EMPTY);
}

#[derive(Debug, Clone, Copy)]
enum Field {
    Data,
    Event,
    Id,
    Retry(RetryValue),
    /// A comment or an unknown field.
    Other,
}

/// As much of a field's name as it takes to tell it from the known ones.
#[derive(Debug, Clone, Copy)]
struct FieldName {
    bytes: [u8; Self::MAX + 1],
    len: usize,
}

/// Milliseconds, as long as there are only digits.
#[derive(Debug, Clone, Copy)]
enum RetryValue {
    Empty,
    Millis(u64),
    Invalid,
}

impl SseDecoder {
    /// For events whose fields have up to `max_event` bytes together. Allocates nothing yet.
    #[must_use]
    pub const fn new(max_event: usize) -> Self {
        Self {
            limit: max_event,
            state: State::StreamStart(0),
            after_cr: false,
            lent: false,
            skipping: false,
            data: Vec::new(),
            name: String::new(),
            id: None,
            value: Vec::new(),
            last_event_id: String::new(),
            has_id: false,
            retry: None,
        }
    }

    /// The next event, or `None` when all of `input` is consumed and more is needed. What was consumed
    /// is taken off the front of `input`.
    #[must_use]
    pub fn next_frame(&mut self, input: &mut &[u8]) -> Option<SseFrame<'_>> {
        if core::mem::take(&mut self.lent) {
            self.clear_event();
        }
        while let Some(first) = input.first().copied() {
            if core::mem::take(&mut self.after_cr) && first == b'\n' {
                *input = &input[1..];
                continue;
            }
            match self.state {
                State::StreamStart(seen) => {
                    if first != BOM[seen] {
                        // The bytes of half a mark are the start of the first line.
                        let mut name = FieldName::EMPTY;
                        name.push(&BOM[..seen]);
                        self.state = State::Name(name);
                        continue;
                    }
                    *input = &input[1..];
                    self.state =
                        if seen + 1 == BOM.len() { State::LINE_START } else { State::StreamStart(seen + 1) };
                }
                State::Space(field) => {
                    if first == b' ' {
                        *input = &input[1..];
                    }
                    self.state = State::Value(field);
                }
                State::Name(mut name) => {
                    let (part, end) = split_off(input, memchr::memchr3(b':', b'\r', b'\n', input));
                    name.push(part);
                    self.state = State::Name(name);
                    match end {
                        None => {}
                        Some(b':') => self.state = State::Space(name.field()),
                        Some(end) => {
                            self.after_cr = end == b'\r';
                            self.state = State::LINE_START;
                            if name.len > 0 {
                                if !self.take_value(name.field(), b"", true) && self.overflow() {
                                    return Some(SseFrame::TooLong { limit: self.limit });
                                }
                            } else if self.end_event() {
                                return Some(self.lend_event());
                            }
                        }
                    }
                }
                State::Value(field) => {
                    let (part, end) = split_off(input, memchr::memchr2(b'\r', b'\n', input));
                    if let Some(end) = end {
                        self.after_cr = end == b'\r';
                    }
                    if !self.take_value(field, part, end.is_some()) && self.overflow() {
                        return Some(SseFrame::TooLong { limit: self.limit });
                    }
                }
            }
        }
        None
    }

    /// The event that is lent, again.
    pub(crate) fn current(&self) -> Option<SseEvent<'_>> {
        match self.lent.then(|| self.lend_event())? {
            SseFrame::Event(event) => Some(event),
            SseFrame::TooLong { .. } => None,
        }
    }

    /// Another stream begins, in place of one that ended: an event that was not complete is dropped.
    /// The id to resume from and the time to wait stay.
    pub fn restart(&mut self) {
        self.clear_event();
        self.value = Vec::new();
        self.state = State::StreamStart(0);
        self.after_cr = false;
        self.lent = false;
        self.skipping = false;
    }

    /// The id to send as `Last-Event-ID` when resuming; empty if there is none. That of the last
    /// complete event that had one, with or without data.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// How long the server wants a client to wait before it reconnects (LC-HTTP-02).
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The line of a field goes on with `part`, and may be ended by it. Whether that fits.
    fn take_value(&mut self, field: Field, part: &[u8], ended: bool) -> bool {
        let field = match field {
            Field::Data | Field::Event if self.skipping => Field::Other,
            Field::Retry(value) => Field::Retry(value.push(part)),
            field => field,
        };
        self.state = if ended { State::LINE_START } else { State::Value(field) };
        let fits = self.used(field).saturating_add(part.len()) <= self.limit;
        match field {
            Field::Data if fits => self.data.extend_from_slice(part),
            Field::Event | Field::Id if fits => self.value.extend_from_slice(part),
            Field::Data | Field::Event | Field::Id => return false,
            Field::Retry(_) | Field::Other => {}
        }
        if ended {
            self.end_value(field);
        }
        true
    }

    fn end_value(&mut self, field: Field) {
        match field {
            Field::Data => self.data.push(b'\n'),
            Field::Event => self.name = text(&self.value),
            Field::Id if !self.value.contains(&0) => self.id = Some(text(&self.value)),
            Field::Retry(RetryValue::Millis(millis)) => self.retry = Some(Duration::from_millis(millis)),
            Field::Id | Field::Retry(_) | Field::Other => {}
        }
        self.value.clear();
    }

    /// What counts against the limit while a line of `field` is read.
    fn used(&self, field: Field) -> usize {
        if self.skipping {
            return self.value.len();
        }
        // The LF behind the last data line is not part of the data unless another data line follows.
        let last_lf = !matches!(field, Field::Data) && !self.data.is_empty();
        let id = self.id.as_ref().map_or(0, String::len);
        self.data.len() - usize::from(last_lf) + self.name.len() + id + self.value.len()
    }

    /// Drops the event at hand. Whether that is news.
    fn overflow(&mut self) -> bool {
        if let State::Value(field) = &mut self.state {
            *field = Field::Other;
        }
        self.data = Vec::new();
        self.name = String::new();
        self.value = Vec::new();
        !core::mem::replace(&mut self.skipping, true)
    }

    /// A blank line. Whether there is an event to lend.
    fn end_event(&mut self) -> bool {
        self.has_id = self.id.is_some();
        if let Some(id) = self.id.take() {
            self.last_event_id = id;
        }
        self.lent = !core::mem::take(&mut self.skipping) && !self.data.is_empty();
        if !self.lent {
            self.clear_event();
        }
        self.lent
    }

    fn lend_event(&self) -> SseFrame<'_> {
        SseFrame::Event(SseEvent {
            name: if self.name.is_empty() { "message" } else { &self.name },
            data: self.data.strip_suffix(b"\n").unwrap_or(&self.data),
            id: self.has_id.then_some(&self.last_event_id),
        })
    }

    fn clear_event(&mut self) {
        self.data.clear();
        self.data.shrink_to(RETAIN);
        self.value.shrink_to(RETAIN);
        self.name.clear();
        self.id = None;
    }
}

impl FieldName {
    /// Length of the longest known name.
    const MAX: usize = 5;
    const EMPTY: Self = Self { bytes: [0; Self::MAX + 1], len: 0 };

    fn push(&mut self, part: &[u8]) {
        let free = &mut self.bytes[self.len..];
        let taken = part.len().min(free.len());
        free[..taken].copy_from_slice(&part[..taken]);
        self.len += taken;
    }

    fn field(&self) -> Field {
        match &self.bytes[..self.len] {
            b"data" => Field::Data,
            b"event" => Field::Event,
            b"id" => Field::Id,
            b"retry" => Field::Retry(RetryValue::Empty),
            _ => Field::Other,
        }
    }
}

impl RetryValue {
    fn push(self, part: &[u8]) -> Self {
        part.iter().fold(self, |value, byte| match (value, byte) {
            (Self::Empty, b'0'..=b'9') => Self::Millis(u64::from(byte - b'0')),
            (Self::Millis(millis), b'0'..=b'9') => {
                Self::Millis(millis.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
            }
            _ => Self::Invalid,
        })
    }
}

/// Takes what stands before `at` off the front of `input`, and the byte there. Without `at`, all.
fn split_off<'i>(input: &mut &'i [u8], at: Option<usize>) -> (&'i [u8], Option<u8>) {
    let all = *input;
    match at {
        Some(at) => {
            *input = &all[at + 1..];
            (&all[..at], Some(all[at]))
        }
        None => {
            *input = &[];
            (all, None)
        }
    }
}

/// The format says that a stream is decoded as UTF-8 with wrong sequences replaced.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::{format, vec};

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Owned {
        Event { name: String, data: Vec<u8>, id: Option<String> },
        TooLong,
    }

    fn owned(frame: SseFrame<'_>) -> Owned {
        match frame {
            SseFrame::Event(SseEvent { name, data, id }) => {
                Owned::Event { name: name.to_owned(), data: data.to_owned(), id: id.map(ToOwned::to_owned) }
            }
            SseFrame::TooLong { .. } => Owned::TooLong,
        }
    }

    fn event(name: &str, data: &str, id: Option<&str>) -> Owned {
        Owned::Event {
            name: name.to_owned(),
            data: data.as_bytes().to_owned(),
            id: id.map(ToOwned::to_owned),
        }
    }

    fn message(data: &str) -> Owned {
        event("message", data, None)
    }

    fn feed(decoder: &mut SseDecoder, mut bytes: &[u8], into: &mut Vec<Owned>) {
        while let Some(frame) = decoder.next_frame(&mut bytes) {
            into.push(owned(frame));
        }
        assert!(bytes.is_empty());
    }

    fn decode(bytes: impl AsRef<[u8]>) -> (Vec<Owned>, SseDecoder) {
        let mut decoder = SseDecoder::new(1 << 20);
        let mut found = Vec::new();
        feed(&mut decoder, bytes.as_ref(), &mut found);
        (found, decoder)
    }

    fn events(bytes: impl AsRef<[u8]>) -> Vec<Owned> {
        decode(bytes).0
    }

    #[test]
    fn lines_end_with_lf_cr_or_crlf() {
        for ending in ["\n", "\r", "\r\n"] {
            let stream = "data: a\ndata: b\n\ndata: c\n\n".replace('\n', ending);
            assert_eq!(events(stream), [message("a\nb"), message("c")], "{ending:?}");
        }
        assert_eq!(events("data: a\r\n\ndata: b\n\r\n"), [message("a"), message("b")]);
        assert_eq!(events("data: a\n\rdata: b\r\r"), [message("a"), message("b")], "LF CR are two endings");
    }

    #[test]
    fn a_cr_ends_the_event_without_waiting_for_an_lf() {
        let (found, mut decoder) = decode("data: a\r\n\r");
        assert_eq!(found, [message("a")]);
        let mut found = Vec::new();
        feed(&mut decoder, b"\ndata: b\n\n", &mut found);
        assert_eq!(found, [message("b")], "the LF belongs to the CR before it");
    }

    #[test]
    fn fields_by_the_letter() {
        assert_eq!(events("data:a\n\n"), [message("a")]);
        assert_eq!(events("data:  a\n\n"), [message(" a")], "one space is dropped");
        assert_eq!(events("data:\ta\n\n"), [message("\ta")], "a tab is not");
        assert_eq!(events("data\n\n"), [message("")], "no colon: empty value");
        assert_eq!(events("data\ndata\n\n"), [message("\n")]);
        assert_eq!(events("data: a:b\n\n"), [message("a:b")]);
        assert_eq!(events("Data: a\n data: b\ndata : c\ndatax: d\ndat: e\n\n"), [], "names are exact");
        assert_eq!(events("unknown: x\ndata: a\n\n"), [message("a")]);
        assert_eq!(events("event: e\ndata: a\n\ndata: b\n\n"), [event("e", "a", None), message("b")]);
        assert_eq!(events("event: e\nevent:\ndata: a\n\n"), [message("a")], "an empty name is no name");
        assert_eq!(events("event: e\n\ndata: a\n\n"), [message("a")], "a name lasts for its event only");
        assert_eq!(
            events(b"event: \xFF\ndata: \xFF\n\n"),
            [Owned::Event { name: "\u{fffd}".into(), data: vec![0xFF], id: None }]
        );
    }

    #[test]
    fn s01_one_leading_bom_is_dropped_and_only_there() {
        assert_eq!(events("\u{feff}data: a\n\n"), [message("a")]);
        assert_eq!(events("\u{feff}\u{feff}data: a\n\n"), [], "the second is part of the name");
        assert_eq!(events("data: a\n\n\u{feff}data: b\n\n"), [message("a")]);
        assert_eq!(events(b"\xEF\xBBdata: a\n\n"), [], "half a mark is not dropped");
        assert_eq!(events(b"\xEF\xBB\ndata: a\n\n"), [message("a")]);
    }

    #[test]
    fn comments_are_nothing() {
        assert_eq!(events(": c\n\n:\n:data: x\ndata: a\n: c\ndata: b\n\n"), [message("a\nb")]);
    }

    #[test]
    fn the_unfinished_last_event_is_dropped() {
        let (found, decoder) = decode("id: 1\ndata: a\n\nid: 2\ndata: b\n");
        assert_eq!(found, [event("message", "a", Some("1"))]);
        assert_eq!(decoder.last_event_id(), "1", "an event that did not arrive is asked for again");
    }

    #[test]
    fn h12_priming_event_gives_id_and_retry() {
        let (found, decoder) = decode("id: a-1\nretry: 50\ndata: \n\n");
        assert_eq!(found, [event("message", "", Some("a-1"))]);
        assert_eq!(decoder.last_event_id(), "a-1");
        assert_eq!(decoder.retry(), Some(Duration::from_millis(50)));
        // Without any data line there is no event, but the id counts.
        let (found, decoder) = decode("id: a-2\n\n");
        assert_eq!(found, []);
        assert_eq!(decoder.last_event_id(), "a-2");
    }

    #[test]
    fn ids_last_until_replaced() {
        let (found, decoder) = decode("id: 1\ndata: a\n\ndata: b\n\n");
        assert_eq!(found, [event("message", "a", Some("1")), message("b")]);
        assert_eq!(decoder.last_event_id(), "1");
        assert_eq!(decode("id: 1\ndata: a\n\nid\ndata: b\n\n").1.last_event_id(), "", "an empty id resets");
        assert_eq!(decode("id: 1\n\nid: 2\0\ndata: b\n\n").1.last_event_id(), "1", "NUL: ignored");
        assert_eq!(decode("id: 1\nid: 2\0\n\n").1.last_event_id(), "1");
        assert_eq!(decode("id:1\nid: 2\n\n").1.last_event_id(), "2");
    }

    #[test]
    fn retry_is_digits_only() {
        let retry = |field: &str| decode(format!("retry: 7\n{field}\n")).1.retry().map(|d| d.as_millis());
        assert_eq!(retry("retry: 50"), Some(50));
        assert_eq!(retry("retry:0"), Some(0));
        for ignored in ["retry", "retry:", "retry: ", "retry: -1", "retry: 1.5", "retry: 5s", "retry:  5"] {
            assert_eq!(retry(ignored), Some(7), "{ignored}");
        }
        assert_eq!(retry("retry: 99999999999999999999999"), Some(u128::from(u64::MAX)), "saturates");
        assert_eq!(decode("data: a\n\n").1.retry(), None);
    }

    #[test]
    fn restart_keeps_what_a_reconnect_needs() {
        let (_, mut decoder) = decode("retry: 9\nid: 1\ndata: a\n\nid: 2\nevent: x\ndata: half");
        decoder.restart();
        let mut found = Vec::new();
        feed(&mut decoder, "\u{feff}data: b\n\n".as_bytes(), &mut found);
        assert_eq!(found, [message("b")]);
        assert_eq!(decoder.last_event_id(), "1");
        assert_eq!(decoder.retry(), Some(Duration::from_millis(9)));
    }

    #[test]
    fn h12_a_flood_of_skippable_events_costs_no_stack_and_no_memory() {
        let mut stream = b"id: a-1\nretry: 50\ndata: \n\n".to_vec();
        for _ in 0..50_000 {
            stream.extend_from_slice(b": k\n\nevent: ping\nid: 9\n\nunknown: x\n\n");
        }
        stream.extend_from_slice(b"data: {}\n\n");
        let (found, decoder) = decode(&stream);
        assert_eq!(found, [event("message", "", Some("a-1")), message("{}")]);
        assert!(decoder.data.capacity() + decoder.value.capacity() + decoder.name.capacity() < 1024);
    }

    #[test]
    fn an_endless_comment_or_unknown_field_costs_no_memory() {
        for start in [":", "unknown:", "nameless", "retry:"] {
            let mut decoder = SseDecoder::new(10);
            let mut found = Vec::new();
            feed(&mut decoder, start.as_bytes(), &mut found);
            feed(&mut decoder, &vec![b'1'; 1 << 20], &mut found);
            feed(&mut decoder, b"\ndata: a\n\n", &mut found);
            assert_eq!(found, [message("a")]);
            assert!(decoder.value.capacity() + decoder.data.capacity() < 1024);
        }
    }

    fn limited(limit: usize, bytes: &str) -> (Vec<Owned>, SseDecoder) {
        let mut decoder = SseDecoder::new(limit);
        let mut found = Vec::new();
        feed(&mut decoder, bytes.as_bytes(), &mut found);
        (found, decoder)
    }

    #[test]
    fn s04_an_over_long_event_is_reported_once_and_reading_goes_on() {
        let after = "data: b\n\n";
        for long in [
            "data: 12345\n\n",
            "data: 12\ndata: 34\n\n",
            "data: 12345\ndata: 12345\nevent: 12345\n\n",
            "event: 12345\n\n",
            "id: 12345\n\n",
            "data\ndata\ndata\ndata\ndata\ndata\n\n",
            "event: 1\nid: 2\ndata: 345\n\n",
        ] {
            assert_eq!(limited(4, &format!("{long}{after}")).0, [Owned::TooLong, message("b")], "{long:?}");
        }
        for short in ["data: 1234\n\n", "data: 12\ndata: 3\n\n", "data\ndata\ndata\ndata\ndata\n\n"] {
            assert_eq!(limited(4, &format!("{short}{after}")).0.len(), 2, "{short:?}");
        }
        for order in ["event: 1\ndata: 23\nid: 4\n\n", "id: 4\nevent: 1\ndata: 23\n\n"] {
            assert_eq!(limited(4, order).0, [event("1", "23", Some("4"))], "whatever the order");
        }
    }

    #[test]
    fn the_id_of_an_over_long_event_counts_as_seen() {
        assert_eq!(limited(4, "id: 1\ndata: 12345\n\n").1.last_event_id(), "1");
        assert_eq!(limited(4, "data: 12345\nid: 1\n\n").1.last_event_id(), "1");
        assert_eq!(limited(4, "data: 12345\nid: 12345\n\n").0, [Owned::TooLong], "reported once");
        assert_eq!(limited(4, "data: 12345\nid: 1\n").1.last_event_id(), "", "not before its end");
    }

    #[test]
    fn s04_an_endless_event_does_not_grow() {
        let mut decoder = SseDecoder::new(1 << 16);
        let mut found = Vec::new();
        for _ in 0..1000 {
            feed(&mut decoder, b"data: ", &mut found);
            feed(&mut decoder, &[b'a'; 1000], &mut found);
            feed(&mut decoder, b"\nid: ", &mut found);
            feed(&mut decoder, &[b'a'; 1000], &mut found);
            feed(&mut decoder, b"\n", &mut found);
            assert!(decoder.data.capacity() + decoder.value.capacity() <= 4 << 16);
        }
        assert_eq!(found, [Owned::TooLong]);
        assert_eq!(decoder.data.capacity(), 0, "what is skipped is not kept");
    }

    #[test]
    fn capacity_shrinks_after_a_huge_event() {
        let (found, mut decoder) = decode(format!("data: {}\n\n", "a".repeat(1 << 19)));
        assert_eq!(found.len(), 1);
        assert!(decoder.next_frame(&mut &b""[..]).is_none());
        assert!(decoder.data.capacity() <= RETAIN, "{}", decoder.data.capacity());
    }

    /// The rules once more, over the whole stream, line by line.
    fn reference(limit: usize, bytes: &[u8]) -> (Vec<Owned>, String) {
        let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
        let mut lines = vec![Vec::new()];
        for (i, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' if i > 0 && bytes[i - 1] == b'\r' => {}
                b'\n' | b'\r' => lines.push(Vec::new()),
                byte => lines.last_mut().unwrap().push(*byte),
            }
        }
        // A line without its end matters only in that it may be known to be too long already.
        let unfinished = lines.pop().unwrap();
        if unfinished.splitn(2, |b| *b == b':').nth(1).is_some_and(|value| !matches!(value, b"" | b" ")) {
            lines.push(unfinished);
        }
        let (mut found, mut last_id) = (Vec::new(), String::new());
        let (mut data, mut name, mut id) = (Vec::<Vec<u8>>::new(), String::new(), None::<String>);
        let mut over = false;
        for line in lines {
            if line.is_empty() {
                last_id = id.clone().unwrap_or(last_id);
                if !over && !data.is_empty() {
                    let name = if name.is_empty() { "message".into() } else { name };
                    found.push(Owned::Event { name, data: data.join(&b'\n'), id });
                }
                (data, name, id, over) = (Vec::new(), String::new(), None, false);
                continue;
            }
            let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
            let value = line.get(colon + 1..).unwrap_or_default();
            let value = value.strip_prefix(b" ").unwrap_or(value);
            let joined = data.join(&b'\n').len();
            let fields = joined + name.len() + id.as_ref().map_or(0, String::len);
            let used = if over { 0 } else { fields } + value.len();
            let text = String::from_utf8_lossy(value).into_owned();
            let fits = match &line[..colon] {
                b"data" if !over => {
                    data.push(value.to_owned());
                    used + usize::from(data.len() > 1) <= limit
                }
                b"event" if !over => {
                    name = text;
                    used <= limit
                }
                b"id" if used > limit => false,
                b"id" if !value.contains(&0) => {
                    id = Some(text);
                    true
                }
                _ => true,
            };
            if !fits && !over {
                over = true;
                found.push(Owned::TooLong);
            }
        }
        (found, last_id)
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            6 => Just(&b"\n"[..]),
            4 => Just(&b"\r"[..]),
            2 => Just(&b"\r\n"[..]),
            4 => Just(&b"data: "[..]),
            2 => Just(&b"data"[..]),
            2 => Just(&b"event:"[..]),
            2 => Just(&b"id: "[..]),
            1 => Just(&b"id"[..]),
            1 => Just(&b"retry: 12"[..]),
            2 => Just(&b":"[..]),
            2 => Just(&b" "[..]),
            3 => Just(&b"a"[..]),
            1 => Just(&b"\0"[..]),
            1 => Just(BOM),
            1 => Just(&BOM[..2]),
            1 => Just("读".as_bytes()),
        ];
        proptest::collection::vec(piece, 0..50).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            bytes in stream(),
            limit in 0usize..12,
            cuts in proptest::collection::vec(1usize..9, 1..20),
        ) {
            let expected = reference(limit, &bytes);
            for cuts in [vec![usize::MAX], vec![1], cuts] {
                let mut decoder = SseDecoder::new(limit);
                let mut found = Vec::new();
                let mut rest = &bytes[..];
                for cut in cuts.into_iter().cycle() {
                    let (head, tail) = rest.split_at(cut.min(rest.len()));
                    feed(&mut decoder, head, &mut found);
                    rest = tail;
                    if rest.is_empty() {
                        break;
                    }
                }
                prop_assert_eq!(&(found, decoder.last_event_id().to_owned()), &expected);
            }
        }
    }
}
