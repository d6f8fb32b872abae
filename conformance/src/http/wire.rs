//! Reading an answer off a socket.

use std::io::{ErrorKind, Read};

use super::Answer;
use super::framing::{Framing, HEAD_LIMIT};

/// More of a body is not read.
const BODY_LIMIT: u64 = 64 << 20;

/// Reads one answer to its end and tells it piece by piece, until `tell` wants no more.
pub(crate) fn read(mut socket: impl Read, is_head: bool, mut tell: impl FnMut(Answer) -> bool) {
    let mut buffer = vec![0; 64 << 10];
    let mut head = Vec::new();
    let (status, headers, rest) = loop {
        match parse(&head) {
            Ok(Some(parsed)) => break parsed,
            Ok(None) if head.len() > HEAD_LIMIT => {
                tell(Answer::End(Some("a head without an end".to_owned())));
                return;
            }
            Ok(None) => {}
            Err(problem) => {
                tell(Answer::End(Some(problem)));
                return;
            }
        }
        match socket.read(&mut buffer) {
            Ok(0) if head.is_empty() => {
                tell(Answer::End(Some("the connection was closed without an answer".to_owned())));
                return;
            }
            Ok(0) => {
                tell(Answer::End(Some("the connection was closed inside the head".to_owned())));
                return;
            }
            Ok(read) => head.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                tell(Answer::End(Some(format!("no answer: {error}"))));
                return;
            }
        }
    };
    let framing = match Framing::of_answer(status, &headers, is_head) {
        Ok(framing) => framing,
        Err(problem) => {
            tell(Answer::Head { status, headers });
            tell(Answer::End(Some(problem)));
            return;
        }
    };
    if tell(Answer::Head { status, headers }) {
        body(socket, framing, rest, &mut buffer, &mut tell);
    }
}

fn body(
    mut socket: impl Read,
    mut framing: Framing,
    first: Vec<u8>,
    buffer: &mut [u8],
    tell: &mut impl FnMut(Answer) -> bool,
) {
    let mut total = 0;
    let mut piece = first;
    loop {
        let mut data = Vec::new();
        let done = framing.take(&piece, |bytes| data.extend_from_slice(bytes));
        total += data.len() as u64;
        if !data.is_empty() && !tell(Answer::Body(data)) {
            return;
        }
        match done {
            Ok((_, false)) => {}
            Ok((_, true)) => {
                tell(Answer::End(None));
                return;
            }
            Err(problem) => {
                tell(Answer::End(Some(problem)));
                return;
            }
        }
        if total > BODY_LIMIT {
            tell(Answer::End(Some(format!("more than {BODY_LIMIT} bytes of body"))));
            return;
        }
        piece = loop {
            match socket.read(buffer) {
                Ok(0) => {
                    let problem = match framing {
                        Framing::UntilClose => None,
                        _ => Some("the connection was closed inside the body".to_owned()),
                    };
                    tell(Answer::End(problem));
                    return;
                }
                Ok(read) => break buffer[..read].to_vec(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    tell(Answer::End(Some(format!("the body broke off: {error}"))));
                    return;
                }
            }
        };
    }
}

type Parsed = (u16, Vec<(String, String)>, Vec<u8>);

/// The head, if it is complete; interim answers (1xx) are passed over.
fn parse(bytes: &[u8]) -> Result<Option<Parsed>, String> {
    let mut from = 0;
    loop {
        let mut lines = [httparse::EMPTY_HEADER; 128];
        let mut response = httparse::Response::new(&mut lines);
        let parsed = response.parse(&bytes[from..]).map_err(|error| {
            let shown = crate::text::shorten(&crate::text::printable(&bytes[from..]), 200);
            format!("no HTTP answer ({error}): {shown}")
        })?;
        let httparse::Status::Complete(length) = parsed else { return Ok(None) };
        let status = response.code.unwrap_or_default();
        if (100..200).contains(&status) && status != 101 {
            from += length;
            continue;
        }
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = response.headers.iter().map(|line| (line.name.to_owned(), text(line.value))).collect();
        return Ok(Some((status, headers, bytes[from + length..].to_vec())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte a read.
    struct Slow<'b>(&'b [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn answer(bytes: &[u8]) -> (Option<u16>, String, Option<String>) {
        let both = [read_all(bytes), read_all(Slow(bytes))];
        assert_eq!(both[0], both[1], "depends on how it was cut");
        both[0].clone()
    }

    fn read_all(socket: impl Read) -> (Option<u16>, String, Option<String>) {
        let (mut status, mut body, mut end) = (None, Vec::new(), Some("no end".to_owned()));
        read(socket, false, |answer| {
            match answer {
                Answer::Head { status: code, .. } => status = Some(code),
                Answer::Body(bytes) => body.extend(bytes),
                // What was there when it was seen depends on the pieces.
                Answer::End(problem) => end = problem.map(|text| text.split(':').next().unwrap().to_owned()),
            }
            true
        });
        (status, String::from_utf8(body).unwrap(), end)
    }

    #[test]
    fn every_framing_is_read() {
        let good = |bytes: &[u8]| {
            let (status, body, end) = answer(bytes);
            assert_eq!(end, None);
            (status.unwrap(), body)
        };
        assert_eq!(good(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"), (200, "ab".to_owned()));
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nT: v\r\n\r\n";
        assert_eq!(good(chunked), (200, "abc".to_owned()));
        assert_eq!(good(b"HTTP/1.0 200 OK\r\n\r\nall"), (200, "all".to_owned()));
        assert_eq!(good(b"HTTP/1.1 204 No Content\r\n\r\n"), (204, String::new()));
        let interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(good(interim), (202, String::new()));
    }

    #[test]
    fn what_breaks_off_is_told() {
        for (bytes, problem) in [
            (&b""[..], "without an answer"),
            (b"HTTP/1.1 200", "inside the head"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "inside the body"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "a chunk size"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "longer than its size"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "no number"),
            (b"SSH-2.0-OpenSSH\r\n", "no HTTP answer"),
        ] {
            let end = answer(bytes).2.unwrap();
            assert!(end.contains(problem), "{end}");
        }
    }
}
