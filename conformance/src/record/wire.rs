//! The heads of HTTP/1.1 as they pass.

use super::tape::Headers;
use crate::http::framing::HEAD_LIMIT;

/// The head of a request.
#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Headers,
}

/// The head of an answer.
#[derive(Debug)]
pub(crate) struct AnswerHead {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
}

/// The head at the front of the bytes and how long it is, once it is complete.
pub(crate) fn request(bytes: &[u8]) -> Result<Option<(RequestHead, usize)>, String> {
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
pub(crate) fn answer(bytes: &[u8]) -> Result<Option<(AnswerHead, usize)>, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_one_once_it_is_complete() {
        let (head, length) = answer(b"HTTP/1.1 204 None\r\nA: b\r\n\r\nrest").unwrap().unwrap();
        assert_eq!((head.status, &*head.headers, length), (204, &[("A".to_owned(), "b".to_owned())][..], 27));
        assert!(request(b"nonsense\r\n\r\n").is_err() && request(b"POST / HTTP").unwrap().is_none());
    }
}
