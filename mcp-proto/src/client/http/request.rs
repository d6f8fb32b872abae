//! Requests to send: their heads say what their bodies say.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::Url;
use crate::http::{Head, mirror, value};
use crate::limits::Limits;
use crate::model::meta::key as meta_key;
use crate::model::{HeaderArgument, ProtocolVersion};
use crate::rpc::{Message, Params, Parsed, parse, str_from_json};

/// A header: the name in lower case, and a value that is fit for a header.
pub(crate) type Field = (Cow<'static, str>, Cow<'static, str>);

/// A request to send.
///
/// Send it as it is: the headers here, and besides those only what HTTP itself needs (`Host`,
/// `Content-Length`). Its URL always has the origin that the client was made for. Follow no redirects: the
/// client does that.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request {
    /// `POST`, `GET` or `DELETE`.
    pub method: &'static str,
    /// Where to.
    pub url: Url,
    /// Names in lower case, and values of visible ASCII and blanks.
    pub headers: Vec<Field>,
    /// The body; empty but for `POST`. Shared, for it may have to be sent again.
    pub body: Arc<[u8]>,
}

impl Request {
    fn new(method: &'static str, url: &Url) -> Self {
        Self { method, url: url.clone(), headers: Vec::new(), body: Arc::from([]) }
    }

    /// A message, on its way to a server that answers in either form. C-HTTP-02
    pub(crate) fn post(url: &Url, body: &[u8]) -> Self {
        let mut request = Self::new("POST", url);
        request.body = Arc::from(body);
        request.set("content-type", "application/json");
        request.set("accept", "application/json, text/event-stream");
        request
    }

    /// Opens or resumes a stream of events. LC-HTTP-03
    pub(crate) fn get(url: &Url, last_event_id: Option<&str>) -> Self {
        let mut request = Self::new("GET", url);
        request.set("accept", "text/event-stream");
        if let Some(id) = last_event_id {
            request.set("last-event-id", String::from(id));
        }
        request
    }

    /// Ends a session. LC-SESS-04
    pub(crate) fn delete(url: &Url) -> Self {
        Self::new("DELETE", url)
    }

    /// Adds a header. A value that no header can hold is left out: nothing that a peer sent can split a
    /// request.
    pub(crate) fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) {
        let value = value.into();
        if is_value(&value) {
            self.headers.push((name.into(), value));
        }
    }

    /// Adds what a request of 2026-07-28 says twice: all of it is read from the body, so that the two cannot
    /// differ. `annotated` are the annotated arguments of a tool by its name.
    /// [spec: basic/transports/streamable-http#request-metadata]
    pub(crate) fn mirror<'a>(
        &mut self,
        version: ProtocolVersion,
        limits: &Limits,
        annotated: impl FnOnce(&str) -> Option<&'a [HeaderArgument]>,
    ) {
        let body = Arc::clone(&self.body);
        let Ok(Parsed::Message(
            Message::Request { method, params, .. } | Message::Notification { method, params },
        )) = parse(&body, limits)
        else {
            return self.set("mcp-protocol-version", version.as_str());
        };
        let stamped = text(&params, true, meta_key::PROTOCOL_VERSION);
        self.set(
            "mcp-protocol-version",
            stamped.map_or(Cow::Borrowed(version.as_str()), |stamped| Cow::Owned(stamped.into_owned())),
        );
        let Some(name) = mirror::name_member(&method).and_then(|member| text(&params, false, member)) else {
            self.set("mcp-method", method.into_owned());
            return;
        };
        if &*method == "tools/call"
            && let Some(annotated) = annotated(&name)
        {
            let arguments = params.members().get("arguments");
            for (name, value) in mirror::mirrored(arguments, annotated) {
                self.set(name, value);
            }
        }
        self.set("mcp-method", method.into_owned());
        self.set("mcp-name", value::encode(&name).into_owned());
    }

    /// Adds what ties a request to a legacy session. LC-SESS-02, LC-VER-01
    pub(crate) fn belong(&mut self, session: Option<&str>, version: Option<ProtocolVersion>) {
        if let Some(id) = session {
            self.set("mcp-session-id", String::from(id));
        }
        if let Some(version) = version.filter(|version| version.has_version_header()) {
            self.set("mcp-protocol-version", version.as_str());
        }
    }

    /// The value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| *n == name).map(|(_, value)| &**value)
    }
}

fn text<'b>(params: &Params<'b>, meta: bool, name: &str) -> Option<Cow<'b, str>> {
    let members = if meta { params.meta() } else { params.members() };
    str_from_json(members.get(name)?.get())
}

/// Whether a header can hold this text and a reader sees the same text again.
pub(crate) fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim_matches(' ').len() == text.len()
}

/// Without the values of headers, some of which are secret, and without the body.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.url)
            .field("headers", &names)
            .field("body", &self.body.len())
            .finish()
    }
}

/// So that it can be handed to a server in the same process.
impl Head for Request {
    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        let target = self.url.raw_target();
        let path = target.find('?').map_or(target, |at| &target[..at]);
        if path.is_empty() { "/" } else { path }
    }

    fn query(&self) -> Option<&str> {
        self.url.raw_target().split_once('?').map(|(_, query)| query)
    }

    fn authority(&self) -> Option<&str> {
        Some(self.url.authority())
    }

    fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        let name = String::from(name);
        self.headers.iter().filter(move |(n, _)| *n == *name).map(|(_, value)| value.as_bytes())
    }
}

/// An access token. It is sent to the origin of the server and nowhere else, and it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(alloc::boxed::Box<str>);

impl Token {
    /// A bearer token.
    ///
    /// # Errors
    ///
    /// It is empty, or no header can hold it.
    pub fn bearer(token: &str) -> Result<Self, InvalidToken> {
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidToken);
        }
        Ok(Self(alloc::format!("Bearer {token}").into()))
    }

    /// The value of `Authorization`.
    pub(crate) fn authorization(&self) -> String {
        String::from(&*self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A token must be visible ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidToken;

impl fmt::Display for InvalidToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a token of visible ASCII")
    }
}

impl core::error::Error for InvalidToken {}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;
    use crate::http::{Endpoint, Settings, Taken};
    use crate::model::{Implementation, JsonSchema};
    use crate::server::Config;

    fn url() -> Url {
        Url::parse("http://localhost:8000/mcp").unwrap()
    }

    fn modern(method: &str, params: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{
                "io.modelcontextprotocol/protocolVersion":"2026-07-28",
                "io.modelcontextprotocol/clientCapabilities":{{}}}}{params}}}}}"#
        )
    }

    fn mirrored(body: &str, annotated: &[HeaderArgument]) -> Request {
        let mut request = Request::post(&url(), body.as_bytes());
        request.mirror(ProtocolVersion::LATEST, &Limits::default(), |_| Some(annotated));
        request
    }

    /// http-standard-headers of the official suite; C-HDR-01 to C-HDR-05, C-HTTP-02, C-HTTP-03: the project's own server
    /// takes what is written, whatever is named.
    #[test]
    fn heads_say_what_bodies_say() {
        let endpoint =
            Endpoint::new(Config::builder(Implementation::new("demo", "1")).build(), Settings::default());
        for (method, params, name) in [
            ("server/discover", "", None),
            ("tools/list", "", None),
            ("tools/call", r#","name":"test_headers""#, Some("test_headers")),
            ("tools/call", r#","name":"my-hyphenated-tool""#, Some("my-hyphenated-tool")),
            ("tools/call", r#","name":"Grüße""#, Some("=?base64?R3LDvMOfZQ==?=")),
            ("tools/call", r#","name":"a\u0062\n""#, Some("=?base64?YWIK?=")),
            (
                "resources/read",
                r#","uri":"file:///path/to/file%20name.txt""#,
                Some("file:///path/to/file%20name.txt"),
            ),
            (
                "resources/read",
                r#","uri":"https://example.com/resource?id=123""#,
                Some("https://example.com/resource?id=123"),
            ),
            ("prompts/get", r#","name":"test_prompt""#, Some("test_prompt")),
            ("prompts/get", r#","name":" ""#, Some("=?base64?IA==?=")),
            ("tasks/get", r#","taskId":"t-1""#, Some("t-1")),
            ("tasks/update", r#","taskId":"t-1","inputResponses":{}"#, Some("t-1")),
            ("tasks/cancel", r#","taskId":"t-1""#, Some("t-1")),
            ("completion/complete", r#","name":"no""#, None),
        ] {
            let request = mirrored(&modern(method, params), &[]);
            assert_eq!(request.header("mcp-method"), Some(method));
            assert_eq!(request.header("mcp-name"), name, "{method}");
            assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
            assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
            assert!(endpoint.admit(&request).is_ok());
            assert!(matches!(endpoint.take(&request, &request.body), Taken::Modern(_)), "{method}");
        }
    }

    /// C-HDR-02: the version of the body counts, whatever is spoken otherwise.
    #[test]
    fn the_version_is_that_of_the_body() {
        let body = modern("tools/list", "").replace("2026-07-28", "2027-01-01");
        assert_eq!(mirrored(&body, &[]).header("mcp-protocol-version"), Some("2027-01-01"));
        let raw = mirrored("no json", &[]);
        assert_eq!(raw.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(raw.header("mcp-method"), None);
        let note = mirrored(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, &[]);
        assert_eq!(note.header("mcp-method"), Some("notifications/x"));
    }

    /// C-HDR-15: also on a later round, whose arguments are the same.
    #[test]
    fn annotated_arguments_are_mirrored() {
        let schema: JsonSchema = serde_json::from_str(
            r#"{"type":"object","properties":{"a":{"type":"object","properties":
                {"region":{"type":"string","x-mcp-header":"Region"}}}}}"#,
        )
        .unwrap();
        let annotated = schema.header_arguments().unwrap();
        let call = r#","name":"t","arguments":{"a":{"region":"ü"}}"#;
        for more in ["", r#","requestState":"s","inputResponses":{}"#] {
            let request = mirrored(&modern("tools/call", &format!("{call}{more}")), &annotated);
            assert_eq!(request.header("mcp-param-region"), Some("=?base64?w7w=?="));
        }
        let prompt = mirrored(&modern("prompts/get", call), &annotated);
        assert_eq!(prompt.header("mcp-param-region"), None);
    }

    /// LC-SESS-02, LC-VER-01, LC-VER-02, LC-HTTP-03, LC-HTTP-04
    #[test]
    fn legacy_heads_name_session_and_version() {
        use ProtocolVersion as V;
        for (version, header) in [
            (V::V2024_11_05, None),
            (V::V2025_03_26, None),
            (V::V2025_06_18, Some("2025-06-18")),
            (V::V2025_11_25, Some("2025-11-25")),
        ] {
            for mut request in
                [Request::post(&url(), b"{}"), Request::get(&url(), Some("e-7")), Request::delete(&url())]
            {
                request.belong(Some("s-1"), Some(version));
                assert_eq!(request.header("mcp-session-id"), Some("s-1"));
                assert_eq!(request.header("mcp-protocol-version"), header);
                let resumes = (request.method == "GET").then_some("e-7");
                assert_eq!(request.header("last-event-id"), resumes);
            }
        }
        assert_eq!(Request::get(&url(), None).header("accept"), Some("text/event-stream"));
        let mut first = Request::post(&url(), b"{}");
        first.belong(None, None);
        assert_eq!(first.headers.len(), 2);
    }

    #[test]
    fn nothing_splits_a_request_and_no_secret_is_shown() {
        let request = Request::get(&url(), Some("a\r\nx: y"));
        assert_eq!(request.header("last-event-id"), None);
        for bad in ["", "a b", "a\n", "é"] {
            assert!(Token::bearer(bad).is_err());
        }
        let token = Token::bearer("secret").unwrap();
        let mut request = Request::delete(&url());
        request.set("authorization", token.authorization());
        assert_eq!(request.header("authorization"), Some("Bearer secret"));
        assert!(!format!("{request:?}{token:?}").contains("secret"));
        assert_eq!(InvalidToken.to_string(), "expected a token of visible ASCII");
    }
}
