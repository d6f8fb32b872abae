//! Events to bytes.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// Appends one event.
///
/// `data` is split at its line endings (CR, LF, CRLF) into as many data lines; a reader joins them with
/// LF. For JSON that is a change of white space only. Empty `data` makes a priming event, which a reader
/// sees for its id.
///
/// # Errors
///
/// [`InvalidField`] if `id` or `event` cannot be sent; nothing is written then.
pub fn write_event(
    out: &mut Vec<u8>,
    id: Option<&str>,
    event: Option<&str>,
    data: &[u8],
) -> Result<(), InvalidField> {
    if let Some(id) = id {
        check("id", id, b"\r\n\0")?;
    }
    if let Some(event) = event {
        check("event", event, b"\r\n")?;
    }
    if let Some(id) = id {
        write_line(out, b"id: ", id.as_bytes());
    }
    if let Some(event) = event {
        write_line(out, b"event: ", event.as_bytes());
    }
    write_lines(out, b"data: ", data);
    out.push(b'\n');
    Ok(())
}

/// Appends a comment, which a reader ignores: something to send when a connection must not look idle.
/// Line endings in `text` make several comment lines.
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
    write_lines(out, b": ", text.as_bytes());
    out.push(b'\n');
}

/// Appends how long a reader should wait before it reconnects (LS-HTTP-05), in whole milliseconds.
pub fn write_retry(out: &mut Vec<u8>, wait: Duration) {
    write_line(out, b"retry: ", itoa::Buffer::new().format(wait.as_millis()).as_bytes());
    out.push(b'\n');
}

/// An id or event name contains a byte that would end its line, or for which readers ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidField {
    /// `id` or `event`.
    pub field: &'static str,
    /// Where the byte is.
    pub at: usize,
    /// The byte: CR, LF or NUL.
    pub byte: u8,
}

impl fmt::Display for InvalidField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, at, byte } = self;
        write!(
            f,
            "expected an event-stream `{field}` without line ending or NUL, found byte {byte:#04x} at {at}"
        )
    }
}

impl core::error::Error for InvalidField {}

fn check(field: &'static str, value: &str, forbidden: &[u8]) -> Result<(), InvalidField> {
    match value.bytes().enumerate().find(|(_, byte)| forbidden.contains(byte)) {
        Some((at, byte)) => Err(InvalidField { field, at, byte }),
        None => Ok(()),
    }
}

fn write_lines(out: &mut Vec<u8>, prefix: &[u8], mut text: &[u8]) {
    while let Some(at) = memchr::memchr2(b'\r', b'\n', text) {
        write_line(out, prefix, &text[..at]);
        let ending = if text[at..].starts_with(b"\r\n") { 2 } else { 1 };
        text = &text[at + ending..];
    }
    write_line(out, prefix, text);
}

fn write_line(out: &mut Vec<u8>, prefix: &[u8], line: &[u8]) {
    out.extend_from_slice(prefix);
    out.extend_from_slice(line);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;
    use crate::codec::{SseDecoder, SseFrame};

    #[test]
    fn events_are_written_by_the_letter() {
        let write = |id, event, data: &str| {
            let mut out = Vec::new();
            write_event(&mut out, id, event, data.as_bytes()).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(write(None, None, "{}"), "data: {}\n\n");
        assert_eq!(write(Some("7"), Some("message"), "{}"), "id: 7\nevent: message\ndata: {}\n\n");
        assert_eq!(write(Some("7"), None, ""), "id: 7\ndata: \n\n", "priming");
        assert_eq!(write(None, None, "a\nb\r\nc\rd"), "data: a\ndata: b\ndata: c\ndata: d\n\n");
        assert_eq!(write(None, None, "\n"), "data: \ndata: \n\n");

        let mut out = Vec::new();
        write_comment(&mut out, "keep\nalive");
        write_retry(&mut out, Duration::from_millis(1500));
        assert_eq!(out, b": keep\n: alive\n\nretry: 1500\n\n");
        let mut decoder = SseDecoder::new(9);
        assert_eq!(decoder.next_frame(&mut &out[..]), None);
        assert_eq!(decoder.retry(), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn fields_that_cannot_be_sent_are_refused() {
        for (id, event, field, at, byte) in [
            (Some("a\nb"), None, "id", 1, b'\n'),
            (Some("\r"), None, "id", 0, b'\r'),
            (Some("ab\0"), None, "id", 2, 0),
            (Some("a"), Some("x\ndata: smuggled"), "event", 1, b'\n'),
            (None, Some("x\r"), "event", 1, b'\r'),
        ] {
            let mut out = Vec::new();
            let refused = write_event(&mut out, id, event, b"{}").unwrap_err();
            assert_eq!(refused, InvalidField { field, at, byte });
            assert_eq!(out, b"", "nothing is written");
        }
        let shown = format!("{}", check("id", "a\n", b"\n").unwrap_err());
        assert_eq!(shown, "expected an event-stream `id` without line ending or NUL, found byte 0x0a at 1");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            id in proptest::option::of("[^\r\n\0]{0,8}"),
            name in proptest::option::of("[^\r\n]{1,8}"),
            data in "[a-c \r\n:]{0,20}",
        ) {
            let mut out = Vec::new();
            write_comment(&mut out, &data);
            write_event(&mut out, id.as_deref(), name.as_deref(), data.as_bytes()).unwrap();
            let data = data.replace("\r\n", "\n").replace('\r', "\n");
            let name = name.as_deref().unwrap_or("message");
            let (mut rest, mut decoder) = (&out[..], SseDecoder::new(99));
            let Some(SseFrame::Event(event)) = decoder.next_frame(&mut rest) else { panic!("an event") };
            prop_assert_eq!((event.name, event.data, event.id), (name, data.as_bytes(), id.as_deref()));
            prop_assert_eq!(decoder.next_frame(&mut rest), None);
        }
    }
}
