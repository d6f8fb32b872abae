//! Where the body of a message of HTTP/1.1 ends.

/// A longer head, or line of a chunk, is none.
pub(crate) const HEAD_LIMIT: usize = 256 << 10;

/// How the end of a body is known.
#[derive(Debug)]
pub(crate) enum Framing {
    /// There are so many bytes more.
    Length(u64),
    Chunks(Chunks),
    /// It ends with the connection.
    UntilClose,
}

/// Where in a chunked body the reader is.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// The line at hand: a size, the end of a chunk, or a trailer.
    line: Vec<u8>,
    /// Bytes left of the chunk.
    left: u64,
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
enum State {
    #[default]
    Size,
    Data,
    DataEnd,
    Trailer,
    Done,
}

/// The value of a header, the first if there are several.
pub(crate) fn header<'h>(headers: &'h [(String, String)], wanted: &str) -> Option<&'h str> {
    headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
}

impl Framing {
    /// That of a request.
    pub(crate) fn of_request(headers: &[(String, String)]) -> Result<Self, String> {
        Ok(Self::said(headers)?.unwrap_or(Self::Length(0)))
    }

    /// That of an answer, perhaps to a HEAD request.
    pub(crate) fn of_answer(
        status: u16,
        headers: &[(String, String)],
        to_head: bool,
    ) -> Result<Self, String> {
        if to_head || matches!(status, 204 | 304) {
            return Ok(Self::Length(0));
        }
        Ok(Self::said(headers)?.unwrap_or(Self::UntilClose))
    }

    fn said(headers: &[(String, String)]) -> Result<Option<Self>, String> {
        if header(headers, "transfer-encoding")
            .is_some_and(|coding| coding.trim().to_ascii_lowercase().ends_with("chunked"))
        {
            return Ok(Some(Self::Chunks(Chunks::default())));
        }
        let Some(length) = header(headers, "content-length") else { return Ok(None) };
        match length.trim().parse() {
            Ok(length) => Ok(Some(Self::Length(length))),
            Err(_) => Err(format!("a Content-Length that is no number: `{length}`")),
        }
    }

    /// Takes what belongs to the body off the front of the bytes, and tells `data` what of it is content: how many
    /// bytes it is, and whether the body is complete.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        mut data: impl FnMut(&[u8]),
    ) -> Result<(usize, bool), String> {
        match self {
            Self::Length(left) => {
                let taken = some(left, bytes);
                data(taken);
                Ok((taken.len(), *left == 0))
            }
            Self::Chunks(chunks) => chunks.take(bytes, data),
            Self::UntilClose => {
                data(bytes);
                Ok((bytes.len(), false))
            }
        }
    }
}

/// As many of the bytes as are left, which then are fewer.
fn some<'b>(left: &mut u64, bytes: &'b [u8]) -> &'b [u8] {
    let taken = &bytes[..usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len())];
    *left -= taken.len() as u64;
    taken
}

impl Chunks {
    fn take(&mut self, bytes: &[u8], mut data: impl FnMut(&[u8])) -> Result<(usize, bool), String> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            let rest = &bytes[at..];
            if self.state == State::Data {
                let taken = some(&mut self.left, rest);
                data(taken);
                at += taken.len();
                if self.left == 0 {
                    self.state = State::DataEnd;
                }
                continue;
            }
            let end = rest.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(rest.len(), |end| end + 1);
            self.line.extend_from_slice(&rest[..taken]);
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
                self.left = u64::from_str_radix(size, 16)
                    .map_err(|_| format!("a chunk size that is none: `{text}`"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_ends_where_it_says_however_it_is_cut() {
        let chunked = b"2\r\nab\r\n1;x=y\r\nc\r\n0\r\nT: v\r\n\r\nNEXT";
        for size in [1, 2, 5, chunked.len()] {
            let (mut body, mut data, mut used) = (Framing::Chunks(Chunks::default()), Vec::new(), 0);
            for piece in chunked.chunks(size) {
                let (taken, done) = body.take(piece, |bytes| data.extend_from_slice(bytes)).unwrap();
                used += taken;
                if done {
                    break;
                }
            }
            assert_eq!((data.as_slice(), &chunked[used..]), (&b"abc"[..], &b"NEXT"[..]), "by {size}");
        }
        let mut data = Vec::new();
        let mut keep = |bytes: &[u8]| data.extend_from_slice(bytes);
        assert_eq!(Framing::Length(3).take(b"abcdef", &mut keep).unwrap(), (3, true));
        assert_eq!(Framing::UntilClose.take(b"ghi", &mut keep).unwrap(), (3, false));
        assert!(Framing::Chunks(Chunks::default()).take(b"zz\r\n", &mut keep).is_err());
        assert_eq!(data, b"abcghi");
    }

    #[test]
    fn an_answer_without_a_length_ends_with_its_connection() {
        let length = vec![("content-LENGTH".to_owned(), " 7 ".to_owned())];
        let coded = vec![("Transfer-Encoding".to_owned(), "gzip, Chunked".to_owned()), length[0].clone()];
        assert!(matches!(Framing::of_answer(200, &[], false), Ok(Framing::UntilClose)));
        assert!(matches!(Framing::of_answer(200, &length, false), Ok(Framing::Length(7))));
        assert!(matches!(Framing::of_answer(200, &coded, false), Ok(Framing::Chunks(_))));
        assert!(matches!(Framing::of_answer(200, &length, true), Ok(Framing::Length(0))));
        assert!(matches!(Framing::of_answer(204, &[], false), Ok(Framing::Length(0))));
        assert!(matches!(Framing::of_request(&[]), Ok(Framing::Length(0))));
    }
}
