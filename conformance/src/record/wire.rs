//! HTTP/1.1 as it passes: where messages begin and end.

use super::tape::{Headers, MESSAGE_LIMIT};

/// A longer head is none.
pub(super) const HEAD_LIMIT: usize = 256 << 10;

/// How the end of a body is known.
#[derive(Debug)]
pub(super) enum Body {
    /// There are so many bytes more.
    Length(u64),
    /// Chunks.
    Chunks(Chunk),
    /// It ends with the connection.
    UntilClose,
}

/// Where in a chunked body the reader is.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    line: Vec<u8>,
    left: u64,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    Data,
    DataEnd,
    Trailer,
    Done,
}

impl Body {
    /// Takes what belongs to the body off the front of the bytes: how many, and whether it is complete.
    pub(super) fn take(&mut self, bytes: &[u8], data: &mut Vec<u8>) -> Result<(usize, bool), String> {
        match self {
            Self::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                keep(data, &bytes[..taken]);
                *left -= taken as u64;
                Ok((taken, *left == 0))
            }
            Self::UntilClose => {
                keep(data, bytes);
                Ok((bytes.len(), false))
            }
            Self::Chunks(chunk) => chunk.take(bytes, data),
        }
    }
}

/// A body that is too long to be recorded is not kept whole.
fn keep(data: &mut Vec<u8>, bytes: &[u8]) {
    let room = MESSAGE_LIMIT.saturating_sub(data.len()).min(bytes.len());
    data.extend_from_slice(&bytes[..room]);
}

impl Chunk {
    fn take(&mut self, bytes: &[u8], data: &mut Vec<u8>) -> Result<(usize, bool), String> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            if self.state == State::Data {
                let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len() - at);
                keep(data, &bytes[at..at + taken]);
                at += taken;
                self.left -= taken as u64;
                if self.left == 0 {
                    self.state = State::DataEnd;
                }
                continue;
            }
            let end = bytes[at..].iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(bytes.len() - at, |end| end + 1);
            self.line.extend_from_slice(&bytes[at..at + taken]);
            at += taken;
            if self.line.len() > HEAD_LIMIT {
                return Err("a chunk line without an end".to_owned());
            }
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                self.line(line.trim_ascii_end())?;
            }
        }
        Ok((at, self.state == State::Done))
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        self.state = match self.state {
            State::Size => {
                let text = String::from_utf8_lossy(line);
                let size = text.split(';').next().unwrap_or_default().trim();
                self.left =
                    u64::from_str_radix(size, 16).map_err(|_| format!("a chunk of `{text}` bytes"))?;
                if self.left == 0 { State::Trailer } else { State::Data }
            }
            State::DataEnd if line.is_empty() => State::Size,
            State::DataEnd => return Err("a chunk longer than its size".to_owned()),
            State::Trailer if line.is_empty() => State::Done,
            other => other,
        };
        Ok(())
    }
}

/// The head of a request.
#[derive(Debug)]
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Headers,
}

/// The head of an answer.
#[derive(Debug)]
pub(super) struct AnswerHead {
    pub(super) status: u16,
    pub(super) headers: Headers,
}

/// The value of a header, the first if there are several.
pub(super) fn header<'h>(headers: &'h Headers, wanted: &str) -> Option<&'h str> {
    headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
}

/// The head at the front of the bytes and how long it is, once it is complete.
pub(super) fn request(bytes: &[u8]) -> Result<Option<(RequestHead, usize)>, String> {
    let mut lines = [httparse::EMPTY_HEADER; 128];
    let mut head = httparse::Request::new(&mut lines);
    match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => {
            let read = RequestHead {
                method: head.method.unwrap_or_default().to_owned(),
                target: head.path.unwrap_or_default().to_owned(),
                headers: owned(head.headers),
            };
            Ok(Some((read, length)))
        }
        Ok(httparse::Status::Partial) if bytes.len() > HEAD_LIMIT => Err("a head without an end".to_owned()),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(error) => Err(format!("no HTTP request ({error})")),
    }
}

/// The same of an answer.
pub(super) fn answer(bytes: &[u8]) -> Result<Option<(AnswerHead, usize)>, String> {
    let mut lines = [httparse::EMPTY_HEADER; 128];
    let mut head = httparse::Response::new(&mut lines);
    match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => {
            let read = AnswerHead { status: head.code.unwrap_or_default(), headers: owned(head.headers) };
            Ok(Some((read, length)))
        }
        Ok(httparse::Status::Partial) if bytes.len() > HEAD_LIMIT => Err("a head without an end".to_owned()),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(error) => Err(format!("no HTTP answer ({error})")),
    }
}

fn owned(headers: &[httparse::Header<'_>]) -> Headers {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers.iter().map(|line| (line.name.to_owned(), text(line.value))).collect()
}

/// How the body of a request ends.
pub(super) fn request_body(headers: &Headers) -> Result<Body, String> {
    Ok(framed(headers)?.unwrap_or(Body::Length(0)))
}

/// How the body of an answer ends.
pub(super) fn answer_body(head: &AnswerHead, to_head: bool) -> Result<Body, String> {
    if to_head || matches!(head.status, 204 | 304) {
        return Ok(Body::Length(0));
    }
    Ok(framed(&head.headers)?.unwrap_or(Body::UntilClose))
}

fn framed(headers: &Headers) -> Result<Option<Body>, String> {
    if header(headers, "transfer-encoding")
        .is_some_and(|coding| coding.trim().to_ascii_lowercase().ends_with("chunked"))
    {
        return Ok(Some(Body::Chunks(Chunk::default())));
    }
    let length = header(headers, "content-length");
    let parsed = length.map(|text| text.trim().parse().map_err(|_| format!("a length of `{text}`")));
    Ok(parsed.transpose()?.map(Body::Length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_ends_where_it_says_however_it_is_cut() {
        let chunked = b"2\r\nab\r\n1;x=y\r\nc\r\n0\r\nT: v\r\n\r\nNEXT";
        for size in [1, 2, 5, chunked.len()] {
            let (mut body, mut data, mut used) = (Body::Chunks(Chunk::default()), Vec::new(), 0);
            for piece in chunked.chunks(size) {
                let (taken, done) = body.take(piece, &mut data).unwrap();
                used += taken;
                if done {
                    break;
                }
            }
            assert_eq!((data.as_slice(), &chunked[used..]), (&b"abc"[..], &b"NEXT"[..]), "by {size}");
        }
        let mut data = Vec::new();
        assert_eq!(Body::Length(3).take(b"abcdef", &mut data).unwrap(), (3, true));
        assert_eq!(Body::UntilClose.take(b"abc", &mut data).unwrap(), (3, false));
        assert!(Body::Chunks(Chunk::default()).take(b"zz\r\n", &mut data).is_err());
    }

    #[test]
    fn an_answer_without_a_length_ends_with_its_connection() {
        let head = |text: &[u8]| answer(text).unwrap().unwrap().0;
        let plain = head(b"HTTP/1.1 200 OK\r\n\r\n");
        assert!(matches!(answer_body(&plain, false), Ok(Body::UntilClose)));
        assert!(matches!(answer_body(&plain, true), Ok(Body::Length(0))));
        assert!(matches!(answer_body(&head(b"HTTP/1.1 204 None\r\n\r\n"), false), Ok(Body::Length(0))));
        assert!(request(b"nonsense\r\n\r\n").is_err() && request(b"POST / HTTP").unwrap().is_none());
    }
}
