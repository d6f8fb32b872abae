//! Media types: what a request's body is, and what its answer may be.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::endpoint::Events;
use super::head::{Head, Repeated};
use super::reply::events_head;
use super::response::Response;
use super::value::trim;
use crate::codec::Wrap;

/// What a client takes as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // the protocol has these two
pub struct Accepts {
    /// `application/json`
    pub json: bool,
    /// `text/event-stream`
    pub sse: bool,
}

impl Accepts {
    /// What is sent to a client that takes this, at an endpoint that answers so.
    #[must_use]
    pub const fn preferring(self, events: Events) -> Self {
        let always = matches!(events, Events::Always) && self.sse;
        Self { json: self.json && !always, sse: self.sse }
    }

    /// A JSON response as the client takes it: if it takes events only, as the one event of a stream.
    #[must_use]
    pub fn wrap(self, mut response: Response) -> Response {
        if self.json || !self.sse || response.body.is_empty() {
            return response;
        }
        let mut head = events_head(response.head.status);
        head.headers.extend(response.head.headers.into_iter().filter(|(name, _)| *name != "content-type"));
        let mut body = Vec::with_capacity(response.body.len() + 16);
        Wrap::Sse.write(&mut body, |out| out.append(&mut response.body));
        Response { head, body }
    }
}

/// Reads `Accept`: ranges with wildcards, weights, any letter case, in one header line or many.
/// [RFC 9110 section 12.5.1]
///
/// The most specific range decides, and a range of weight 0 refuses. Without the header, or with nothing
/// in it, everything is accepted. Parameters of a range are not compared, for our answers have none:
/// `application/json;v=2` asks for `application/json`. A weight that is no number counts as 1.
pub fn accepts(head: &impl Head) -> Accepts {
    let mut any = false;
    let (mut json, mut sse) = (Match::default(), Match::default());
    for line in head.values("accept") {
        for range in Split::new(line, b',') {
            let range = trim(range);
            if range.is_empty() {
                continue;
            }
            any = true;
            let mut parts = Split::new(range, b';');
            let (kind, subtype) = kind(parts.next().unwrap_or_default());
            let (mut zero, mut parameters) = (false, false);
            for part in parts {
                match parameter(part) {
                    Some((name, value)) if name.eq_ignore_ascii_case(b"q") => {
                        zero = is_zero(value);
                        break; // what follows a weight belongs to no media type
                    }
                    _ => parameters |= !trim(part).is_empty(),
                }
            }
            if zero && parameters {
                continue; // refuses a variant that is never sent
            }
            json.see(specificity(kind, subtype, b"application", b"json"), !zero);
            sse.see(specificity(kind, subtype, b"text", b"event-stream"), !zero);
        }
    }
    if any { Accepts { json: json.wanted, sse: sse.wanted } } else { Accepts { json: true, sse: true } }
}

/// The most specific range so far, and whether it wants the type.
#[derive(Default)]
struct Match {
    specificity: u8,
    wanted: bool,
}

impl Match {
    fn see(&mut self, specificity: u8, wanted: bool) {
        if specificity > self.specificity {
            *self = Self { specificity, wanted };
        } else if specificity > 0 && specificity == self.specificity {
            self.wanted |= wanted;
        }
    }
}

/// How exactly a range names a type; 0 if it does not.
fn specificity(range: &[u8], subrange: &[u8], kind: &[u8], subtype: &[u8]) -> u8 {
    if range == b"*" && subrange == b"*" {
        1
    } else if !range.eq_ignore_ascii_case(kind) {
        0
    } else if subrange == b"*" {
        2
    } else if subrange.eq_ignore_ascii_case(subtype) {
        3
    } else {
        0
    }
}

/// The two sides of `type/subtype`; a lone `*`, as old clients send it, stands for `*/*`.
fn kind(text: &[u8]) -> (&[u8], &[u8]) {
    let text = trim(text);
    match text.iter().position(|byte| *byte == b'/') {
        Some(slash) => (&text[..slash], &text[slash + 1..]),
        None if text == b"*" => (text, text),
        None => (text, b""),
    }
}

fn parameter(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = text.iter().position(|byte| *byte == b'=')?;
    Some((trim(&text[..equals]), trim(&text[equals + 1..])))
}

/// `0`, `0.`, `0.000`
fn is_zero(weight: &[u8]) -> bool {
    weight.contains(&b'0')
        && weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
        && weight.iter().filter(|byte| **byte == b'.').count() < 2
}

/// The parts between separators, which do not count inside of a quoted string.
struct Split<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Split<'a> {
    const fn new(text: &'a [u8], separator: u8) -> Self {
        Self { rest: Some(text), separator }
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a [u8];
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let (mut quoted, mut escaped) = (false, false);
        for (at, byte) in rest.iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ if !quoted && *byte == self.separator => {
                    self.rest = Some(&rest[at + 1..]);
                    return Some(&rest[..at]);
                }
                _ => {}
            }
        }
        self.rest = None;
        Some(rest)
    }
}

/// The media type that a `Content-Type` names, without its parameters.
pub(crate) fn essence(value: &[u8]) -> &[u8] {
    trim(Split::new(trim(value), b';').next().unwrap_or_default())
}

/// Whether `Content-Type` says `application/json`, in any letter case and with any parameters (JSON is
/// UTF-8 whatever they say).
///
/// Nothing else is taken for it. A web page may send other types, and a body without a type, to any server
/// without asking that server first; a request that does something must not look like those.
///
/// # Errors
///
/// What the header says instead. The status of the answer is 415.
pub fn is_json(head: &impl Head) -> Result<(), NotJson> {
    let value = match head.value("content-type") {
        Err(Repeated) => return Err(NotJson::Repeated),
        Ok(None) => return Err(NotJson::Absent),
        Ok(Some(value)) => value,
    };
    let mut parts = Split::new(trim(value), b';');
    let name = trim(parts.next().unwrap_or_default());
    // A comma would make it a list, whose members readers could choose from.
    let single = Split::new(value, b',').nth(1).is_none();
    let sound = parts.map(trim).all(|part| part.is_empty() || parameter(part).is_some_and(is_parameter));
    if name.eq_ignore_ascii_case(b"application/json") && single && sound {
        Ok(())
    } else {
        Err(NotJson::Other(super::printable(value)))
    }
}

fn is_parameter((name, value): (&[u8], &[u8])) -> bool {
    let quoted = |value: &[u8]| match value {
        // A quote that is not escaped ends the string; `Split` has seen to what follows.
        [b'"', inner @ .., b'"'] => {
            let mut escaped = false;
            let closed_early = inner.iter().any(|byte| match byte {
                _ if escaped => {
                    escaped = false;
                    false
                }
                b'\\' => {
                    escaped = true;
                    false
                }
                byte => *byte == b'"',
            });
            !closed_early && !escaped
        }
        _ => false,
    };
    is_token(name) && (is_token(value) || quoted(value))
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty()
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// A request's body is not said to be JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotJson {
    /// There is no `Content-Type`.
    Absent,
    /// `Content-Type` stands there more than once.
    Repeated,
    /// It says this, cut to a length that is safe to repeat.
    Other(String),
}

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected `Content-Type: application/json`, found ")?;
        match self {
            Self::Absent => f.write_str("no such header"),
            Self::Repeated => f.write_str("the header more than once"),
            Self::Other(found) => write!(f, "`{found}`"),
        }
    }
}

impl core::error::Error for NotJson {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;
    use crate::http::testing::TestHead;

    fn accept(lines: &[&str]) -> (bool, bool) {
        let head = lines.iter().fold(TestHead::new(), |head, line| head.with("Accept", line));
        let accepts = accepts(&head);
        (accepts.json, accepts.sse)
    }

    /// H01, and RFC 9110 section 12.5.1.
    #[test]
    fn accept_is_read_as_http_has_it() {
        for (lines, expected) in [
            (&["application/json, text/event-stream"][..], (true, true)),
            (&["text/event-stream;q=0.5, application/json"], (true, true)),
            (&["*/*"], (true, true)),
            (&["*"], (true, true)),
            (&["application/*, text/*"], (true, true)),
            (&["APPLICATION/JSON,TEXT/EVENT-STREAM"], (true, true)),
            (&["application/json", "text/event-stream"], (true, true)),
            (&[], (true, true)),
            (&[""], (true, true)),
            (&[" , ,"], (true, true)),
            (&["application/json"], (true, false)),
            (&["text/event-stream"], (false, true)),
            (&["text/*"], (false, true)),
            (&["application/*"], (true, false)),
            (&["text/html"], (false, false)),
            (&["application/json;q=0, text/event-stream;q=0"], (false, false)),
            (&["application/json;q=0.000 , text/event-stream ; Q=0."], (false, false)),
            (&["*/*;q=0"], (false, false)),
            // The most specific one decides, wherever it stands.
            (&["*/*, application/json;q=0"], (false, true)),
            (&["application/json;q=0, */*"], (false, true)),
            (&["*/*;q=0, application/json"], (true, false)),
            (&["text/*;q=0", "*/*"], (true, false)),
            (&["text/*;q=0, text/event-stream;q=0.1, */*;q=0"], (false, true)),
            // Parameters, quoted separators.
            (&["application/json;charset=utf-8"], (true, false)),
            (&["application/json ; charset=\"a,b;q=0\" ; q=1 , text/html"], (true, false)),
            (&["application/json;v=2;q=0, application/json"], (true, false)),
            (&["application/json;v=2;q=0, */*"], (true, true)),
            (&["text/html;x=\"application/json, */*\""], (false, false)),
            (&["text/html;x=\"\\\", application/json"], (false, false)),
            (&["application/json;q=0.001"], (true, false)),
            (&["application/json;q=.2"], (true, false)),
            (&["application/json;q=x"], (true, false)),
            (&["application/json;q="], (true, false)),
            // What only resembles.
            (&["application/json5, text/event-streams, application/jsonp"], (false, false)),
            (&["xapplication/json"], (false, false)),
            (&["*/json"], (false, false)),
            (&["json"], (false, false)),
        ] {
            assert_eq!(accept(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn hostile_accept_lines_are_only_text() {
        let bytes: Vec<u8> = (0..=255).collect();
        let _ = accepts(&TestHead::new().with("accept", &bytes));
        assert_eq!(accept(&[&",;=\"".repeat(50_000)]), (false, false));
        assert_eq!(accept(&[&alloc::format!("{}application/json", ";,".repeat(100_000))]), (true, false));
    }

    /// H02: a browser sends the look-alikes without asking first.
    #[test]
    fn only_json_is_json() {
        let content = |value: &str| is_json(&TestHead::new().with("Content-Type", value));
        for json in [
            "application/json",
            " application/json\t",
            "application/json; charset=utf-8",
            "application/json;CHARSET=\"UTF-8\"",
            "application/json ; charset=utf-8 ; a=\"x\\\"y\"",
            "Application/JSON",
            "application/json;",
            "application/json;;",
        ] {
            assert_eq!(content(json), Ok(()), "{json}");
        }
        for other in [
            "",
            "json",
            "text/plain",
            "text/plain; a=application/json",
            "text/plain; application/json",
            "text/plain, application/json",
            "application/json, text/plain",
            "application/json;a=b,text/plain",
            "application/json; text/plain",
            "application/json; a=\"b",
            "application/json; a=\"b\"c\"",
            "application/json; a=\"b\\\"",
            "application/json text/plain",
            "application/json-patch+json",
            "application/vnd.api+json",
            "application/jsonp",
            "application /json",
            "multipart/form-data; boundary=application/json",
        ] {
            assert!(matches!(content(other), Err(NotJson::Other(_))), "{other}");
        }
        assert_eq!(is_json(&TestHead::new()), Err(NotJson::Absent));
        let twice = TestHead::new().with("content-type", "application/json");
        assert_eq!(is_json(&twice.with("content-type", "application/json")), Err(NotJson::Repeated));
    }

    #[test]
    fn the_refusal_says_what_came() {
        let head = TestHead::new().with("content-type", b"text/\xff\x07");
        assert_eq!(
            is_json(&head).unwrap_err().to_string(),
            "expected `Content-Type: application/json`, found `text/\\xff\\x07`"
        );
        let head = TestHead::new().with("content-type", "x".repeat(9_000));
        assert!(is_json(&head).unwrap_err().to_string().len() < 200);
    }
}
