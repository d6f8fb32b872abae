//! The error object of a response, and the codes.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use serde_json::value::RawValue;

/// Error codes, by name. [spec: basic#error-codes]
pub mod code {
    /// The bytes are no JSON.
    pub const PARSE_ERROR: i32 = -32700;
    /// The JSON is no request.
    pub const INVALID_REQUEST: i32 = -32600;
    /// The method is not offered.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The params do not fit the method.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The receiver failed.
    pub const INTERNAL_ERROR: i32 = -32603;
    /// Until 2025-11-25: the resource does not exist.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// 2025-11-25 only: the user has to visit a URL first.
    pub const URL_ELICITATION_REQUIRED: i32 = -32042;
    /// Since 2026-07-28: a header and the body disagree.
    pub const HEADER_MISMATCH: i32 = -32020;
    /// Since 2026-07-28: the client did not declare what the answer needs.
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i32 = -32021;
    /// Since 2026-07-28: the version is not served.
    pub const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;
    /// Until 2025-11-25: the user refused to sample.
    pub const SAMPLING_REFUSED: i32 = -1;
}

/// The `error` member of a response.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Error {
    /// One of [`code`], or a code of the application.
    pub code: i32,
    /// One concise sentence.
    pub message: Cow<'static, str>,
    /// Anything more, as JSON.
    pub data: Option<Box<RawValue>>,
}

impl Error {
    /// An error with a code and a sentence.
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// `-32700`
    #[must_use]
    pub fn parse_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::PARSE_ERROR, message)
    }

    /// `-32600`
    #[must_use]
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// `-32601`, naming the method.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, alloc::format!("Method not found: {}", Short(method)))
    }

    /// `-32602`
    #[must_use]
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// `-32603`. Says nothing of what happened inside: that belongs into the log.
    #[must_use]
    pub fn internal() -> Self {
        Self::new(code::INTERNAL_ERROR, "Internal error")
    }

    /// The same error with `data`. A value that does not serialise leaves the error as it was.
    #[must_use]
    pub fn with_data(mut self, data: &(impl serde::Serialize + ?Sized)) -> Self {
        self.data =
            serde_json::to_string(data).ok().and_then(|s| RawValue::from_string(s).ok()).or(self.data);
        self
    }

    /// Reads an error object as a peer sent it. `None` if it has no integer `code` or no `message`.
    #[must_use]
    pub fn from_json(json: &str) -> Option<Self> {
        let members = super::Members::from_json(json)?;
        Some(Self {
            code: members.get("code")?.get().parse().ok()?,
            message: Cow::Owned(super::id::str_from_json(members.get("message")?.get())?.into_owned()),
            data: members.get("data").map(ToOwned::to_owned),
        })
    }

    /// Appends the error object.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"code\":");
        out.extend_from_slice(itoa::Buffer::new().format(self.code).as_bytes());
        out.extend_from_slice(b",\"message\":");
        super::write_str(out, &self.message);
        if let Some(data) = &self.data {
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(data.get().as_bytes());
        }
        out.push(b'}');
    }
}

use alloc::borrow::ToOwned;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl core::error::Error for Error {}

/// A peer's text, cut to a length that is safe to repeat.
pub(crate) struct Short<'a>(pub(crate) &'a str);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 64;
        match self.0.char_indices().nth(MOST) {
            Some((cut, _)) => write!(f, "{}…", &self.0[..cut]),
            None => f.write_str(self.0),
        }
    }
}

/// A name as a token of a JSON pointer. (RFC 6901, section 3)
pub(crate) struct PointerToken<'a>(pub(crate) &'a str);

impl fmt::Display for PointerToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(['~', '/']) {
            if let Some(plain) = part.strip_suffix('~') {
                write!(f, "{plain}~0")?;
            } else if let Some(plain) = part.strip_suffix('/') {
                write!(f, "{plain}~1")?;
            } else {
                f.write_str(part)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    #[test]
    fn names_in_pointers_are_escaped() {
        for (name, token) in
            [("", ""), ("a", "a"), ("a/b~c", "a~1b~0c"), ("~1", "~01"), ("//~~", "~1~1~0~0"), ("é/", "é~1")]
        {
            assert_eq!(PointerToken(name).to_string(), token);
        }
    }

    #[test]
    fn errors_round_trip() {
        let error = Error::invalid_params("Unknown \"tool\"").with_data(&[1, 2]);
        let mut out = Vec::new();
        error.write(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, r#"{"code":-32602,"message":"Unknown \"tool\"","data":[1,2]}"#);
        let back = Error::from_json(&text).unwrap();
        assert_eq!((back.code, &*back.message), (-32602, "Unknown \"tool\""));
        assert_eq!(back.data.unwrap().get(), "[1,2]");
        for bad in ["[]", "{}", r#"{"code":1}"#, r#"{"code":1.5,"message":"x"}"#, r#"{"code":1,"message":2}"#]
        {
            assert!(Error::from_json(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_peers_text_is_cut() {
        let text = Error::method_not_found(&"é".repeat(1000)).to_string();
        assert!(text.chars().count() < 120 && text.contains('…'));
    }
}
