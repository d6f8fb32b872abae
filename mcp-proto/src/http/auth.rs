//! The server as an OAuth 2.0 protected resource: what it says of itself, and its challenges.
//!
//! Everything here is text made of configuration. Nothing that a client sent comes back.
//!
//! [spec: basic/authorization]

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::ResponseHead;
use crate::model::Str;
use crate::rpc::write_str;
use crate::server::Scopes;

/// The first part of the path under which the metadata are. [RFC 9728, section 3]
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Refresh tokens are between client and authorization server: no resource asks for this scope.
const OFFLINE_ACCESS: &str = "offline_access";

/// The server as a protected resource. Cheap to clone.
///
/// ```
/// use mcp_proto::http::{ProtectedResource, TokenState};
/// use mcp_proto::server::Scopes;
///
/// let resource = ProtectedResource::builder("https://example.com/public/mcp")
///     .authorization_server("https://as.example.com")
///     .scopes_supported(["files:read"])
///     .build()?;
///
/// assert!(resource.is_metadata_path("/.well-known/oauth-protected-resource/public/mcp"));
/// assert!(resource.metadata().starts_with(br#"{"resource":"https://example.com/public/mcp","#));
///
/// let head = resource.challenge_unauthorized(&Scopes::NONE, TokenState::Absent);
/// assert_eq!(head.status, 401);
/// assert_eq!(
///     head.header("www-authenticate"),
///     Some("Bearer resource_metadata=\"https://example.com/.well-known/oauth-protected-resource/public/mcp\", \
///           scope=\"files:read\""),
/// );
/// # Ok::<(), mcp_proto::http::InvalidResource>(())
/// ```
#[derive(Debug, Clone)]
pub struct ProtectedResource(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    resource: Str,
    aliases: Vec<Str>,
    scopes: Scopes,
    /// The path of the metadata, without the origin.
    path: String,
    metadata_url: String,
    metadata: Vec<u8>,
}

/// What came with a request that is not authorized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // a request has a token or it has none
pub enum TokenState {
    /// No token: the challenge names no error.
    Absent,
    /// A token that is expired, revoked, malformed, for someone else, or invalid for another reason. The
    /// client is not told which.
    Invalid,
}

impl ProtectedResource {
    /// Starts with the canonical URI of the server: the one that clients name as `resource` and that
    /// tokens name as audience. It is used byte for byte, never normalised; write it without a slash at
    /// the end unless the slash means something. [spec: basic/authorization#canonical-server-uri]
    pub fn builder(resource: impl Into<Str>) -> ProtectedResourceBuilder {
        ProtectedResourceBuilder {
            resource: resource.into(),
            aliases: Vec::new(),
            authorization_servers: Vec::new(),
            scopes: Vec::new(),
            name: None,
            documentation: None,
        }
    }

    /// The canonical URI, as it was given.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.0.resource
    }

    /// Whether a token for this audience is for this server: it is the canonical URI or an
    /// [alias](ProtectedResourceBuilder::also_known_as), byte for byte.
    #[must_use]
    pub fn is_audience(&self, audience: &str) -> bool {
        self.0.resource == audience || self.0.aliases.iter().any(|alias| alias == audience)
    }

    /// The scopes that basic use needs.
    #[must_use]
    pub fn scopes_supported(&self) -> &Scopes {
        &self.0.scopes
    }

    /// The metadata document: JSON, made once. [RFC 9728, section 2]
    #[must_use]
    pub fn metadata(&self) -> &[u8] {
        &self.0.metadata
    }

    /// The head that goes with [`metadata`](Self::metadata). No authorization is asked for it.
    #[must_use]
    pub fn metadata_head(&self) -> ResponseHead {
        ResponseHead::new(200).with("content-type", "application/json")
    }

    /// Where the metadata are: what challenges point to.
    #[must_use]
    pub fn metadata_url(&self) -> &str {
        &self.0.metadata_url
    }

    /// Whether the metadata are to be served for this path of a `GET`: the well-known path with the path of
    /// the canonical URI behind it, or alone.
    /// [spec: basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements]
    #[must_use]
    pub fn is_metadata_path(&self, path: &str) -> bool {
        path == WELL_KNOWN || path == self.0.path
    }

    /// `401`: there is no token, or none that counts. `scopes` are those that the operation needs; without
    /// any the challenge names [those of basic use](Self::scopes_supported).
    #[must_use]
    pub fn challenge_unauthorized(&self, scopes: &Scopes, token: TokenState) -> ResponseHead {
        let scopes = if scopes.is_empty() { &self.0.scopes } else { scopes };
        let error = match token {
            TokenState::Absent => None,
            TokenState::Invalid => Some("invalid_token"),
        };
        self.challenge(401, error, scopes)
    }

    /// `403`: the token is good, but it allows too little. `scopes` are all that the operation needs, also
    /// those that the token has.
    #[must_use]
    pub fn challenge_insufficient_scope(&self, scopes: &Scopes) -> ResponseHead {
        self.challenge(403, Some("insufficient_scope"), scopes)
    }

    /// `400`: the authorization itself is [malformed](super::BadAuthorization).
    #[must_use]
    pub fn challenge_invalid_request(&self) -> ResponseHead {
        self.challenge(400, Some("invalid_request"), &Scopes::NONE)
    }

    fn challenge(&self, status: u16, error: Option<&str>, scopes: &Scopes) -> ResponseHead {
        let mut value = String::from("Bearer ");
        if let Some(error) = error {
            parameter(&mut value, "error", error);
        }
        parameter(&mut value, "resource_metadata", &self.0.metadata_url);
        let scopes = scopes.without(OFFLINE_ACCESS);
        if !scopes.is_empty() {
            parameter(&mut value, "scope", &scopes.to_string());
        }
        ResponseHead::new(status).with("www-authenticate", value)
    }
}

/// Appends `name="value"` as a quoted string. [RFC 9110, section 11.2]
fn parameter(out: &mut String, name: &str, value: &str) {
    if !out.ends_with(' ') {
        out.push_str(", ");
    }
    out.push_str(name);
    out.push_str("=\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

/// A [`ProtectedResource`] in the making.
#[derive(Debug, Clone)]
#[must_use]
pub struct ProtectedResourceBuilder {
    resource: Str,
    aliases: Vec<Str>,
    authorization_servers: Vec<Str>,
    scopes: Vec<Str>,
    name: Option<Str>,
    documentation: Option<Str>,
}

impl ProtectedResourceBuilder {
    /// Adds the issuer of an authorization server whose tokens are taken. At least one is needed; the
    /// client chooses.
    pub fn authorization_server(mut self, issuer: impl Into<Str>) -> Self {
        self.authorization_servers.push(issuer.into());
        self
    }

    /// The scopes that basic use needs, and no more: clients ask for all of them at first. What single
    /// operations need besides is challenged when they are used.
    pub fn scopes_supported(mut self, scopes: impl IntoIterator<Item = impl Into<Str>>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Adds another audience by which tokens may name this server: the same URI with a slash at the end or
    /// an upper-case host, if clients are known to ask for it, or what an authorization server without
    /// resource indicators writes there. Never one that other servers answer to as well.
    pub fn also_known_as(mut self, audience: impl Into<Str>) -> Self {
        self.aliases.push(audience.into());
        self
    }

    /// The name for people.
    pub fn name(mut self, name: impl Into<Str>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The URL of a page for developers.
    pub fn documentation(mut self, url: impl Into<Str>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Checks everything and writes the document.
    ///
    /// # Errors
    ///
    /// See [`InvalidResource`].
    pub fn build(self) -> Result<ProtectedResource, InvalidResource> {
        let (origin, path) =
            split_url(&self.resource).map_err(|why| InvalidResource::Resource(self.resource.clone(), why))?;
        if self.authorization_servers.is_empty() {
            return Err(InvalidResource::NoAuthorizationServer);
        }
        for issuer in &self.authorization_servers {
            split_url(issuer).map_err(|why| InvalidResource::AuthorizationServer(issuer.clone(), why))?;
        }
        if self.aliases.iter().any(|alias| alias.is_empty()) {
            return Err(InvalidResource::EmptyAlias);
        }
        let scopes = Scopes::of(self.scopes.iter().cloned())
            .map_err(|invalid| InvalidResource::Scope(invalid.0.into()))?;
        if scopes.contains(OFFLINE_ACCESS) {
            return Err(InvalidResource::OfflineAccess);
        }
        let path = format!("{WELL_KNOWN}{}", if path == "/" { "" } else { path });
        let metadata_url = format!("{origin}{path}");
        let metadata = self.document(&scopes);
        let Self { resource, aliases, .. } = self;
        Ok(ProtectedResource(Arc::new(Inner { resource, aliases, scopes, path, metadata_url, metadata })))
    }

    fn document(&self, scopes: &Scopes) -> Vec<u8> {
        let mut out = Vec::from(b"{\"resource\":");
        write_str(&mut out, &self.resource);
        out.extend_from_slice(b",\"authorization_servers\":");
        strings(&mut out, self.authorization_servers.iter().map(|issuer| &**issuer));
        if !scopes.is_empty() {
            out.extend_from_slice(b",\"scopes_supported\":");
            strings(&mut out, scopes.iter());
        }
        out.extend_from_slice(b",\"bearer_methods_supported\":[\"header\"]");
        for (name, value) in [("resource_name", &self.name), ("resource_documentation", &self.documentation)]
        {
            if let Some(value) = value {
                out.push(b',');
                write_str(&mut out, name);
                out.push(b':');
                write_str(&mut out, value);
            }
        }
        out.push(b'}');
        out
    }
}

fn strings<'a>(out: &mut Vec<u8>, all: impl Iterator<Item = &'a str>) {
    out.push(b'[');
    for (at, text) in all.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_str(out, text);
    }
    out.push(b']');
}

/// Why a configuration is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidResource {
    /// The canonical URI cannot be one.
    Resource(Str, InvalidUrl),
    /// No authorization server was named.
    NoAuthorizationServer,
    /// This cannot be an issuer.
    AuthorizationServer(Str, InvalidUrl),
    /// This is no scope.
    Scope(Str),
    /// `offline_access` is not a scope of resources.
    OfflineAccess,
    /// An alias is empty.
    EmptyAlias,
}

/// What is wrong with a URL of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidUrl {
    /// It is not `https`, nor `http` of this machine.
    Scheme,
    /// There is no host, or there is a user before it.
    Authority,
    /// It has a query or a fragment.
    QueryOrFragment,
    /// It has a character that has to be percent-encoded.
    Character,
}

impl fmt::Display for InvalidResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(url, why) => write!(f, "canonical URI {url:?}: {why}"),
            Self::NoAuthorizationServer => f.write_str("at least one authorization server must be named"),
            Self::AuthorizationServer(url, why) => write!(f, "authorization server {url:?}: {why}"),
            Self::Scope(scope) => {
                write!(f, "scope {scope:?}: a scope is printable ASCII without space, `\"` and `\\`")
            }
            Self::OfflineAccess => f.write_str("`offline_access` is not a scope of resources"),
            Self::EmptyAlias => f.write_str("an alias must not be empty"),
        }
    }
}

impl core::error::Error for InvalidResource {}

impl fmt::Display for InvalidUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "it must start with `https://`; `http://` is for loopback hosts only",
            Self::Authority => "it must have a host and no user",
            Self::QueryOrFragment => "it must have neither query nor fragment",
            Self::Character => "it has a character that must be percent-encoded",
        })
    }
}

/// Origin and path.
fn split_url(url: &str) -> Result<(&str, &str), InvalidUrl> {
    let (scheme, rest) = url.split_once("://").ok_or(InvalidUrl::Scheme)?;
    let secure = scheme.eq_ignore_ascii_case("https");
    if !secure && !scheme.eq_ignore_ascii_case("http") {
        return Err(InvalidUrl::Scheme);
    }
    if rest.contains(['?', '#']) {
        return Err(InvalidUrl::QueryOrFragment);
    }
    if !rest.bytes().all(|b| b.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&b)) {
        return Err(InvalidUrl::Character);
    }
    let host_end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(host_end);
    let host = host_of(authority);
    if host.is_empty() || authority.contains('@') {
        return Err(InvalidUrl::Authority);
    }
    if !secure && !is_loopback(host) {
        return Err(InvalidUrl::Scheme);
    }
    Ok((&url[..url.len() - path.len()], path))
}

fn host_of(authority: &str) -> &str {
    if authority.starts_with('[') {
        return authority.split_inclusive(']').next().unwrap_or_default();
    }
    authority.split(':').next().unwrap_or_default()
}

fn is_loopback(host: &str) -> bool {
    host == "[::1]"
        || host.eq_ignore_ascii_case("localhost")
        || host.parse::<core::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(uri: &'static str) -> ProtectedResource {
        ProtectedResource::builder(uri).authorization_server("https://as.example").build().unwrap()
    }

    fn challenge(head: &ResponseHead) -> &str {
        head.header("www-authenticate").unwrap()
    }

    #[test]
    fn metadata_stand_at_the_root_and_under_the_path_s_authd_02_a03() {
        for (uri, url, paths) in [
            ("https://h/public/mcp", "https://h/.well-known/oauth-protected-resource/public/mcp", true),
            ("https://h:8443", "https://h:8443/.well-known/oauth-protected-resource", false),
            ("https://h/", "https://h/.well-known/oauth-protected-resource", false),
            ("HTTPS://H/x/", "HTTPS://H/.well-known/oauth-protected-resource/x/", false),
            ("http://[::1]:80/mcp", "http://[::1]:80/.well-known/oauth-protected-resource/mcp", false),
        ] {
            let resource = resource(uri);
            assert_eq!(resource.metadata_url(), url);
            assert_eq!(resource.resource(), uri);
            assert!(resource.is_metadata_path("/.well-known/oauth-protected-resource"));
            assert_eq!(resource.is_metadata_path("/.well-known/oauth-protected-resource/public/mcp"), paths);
            let at = url.find("/.well").unwrap();
            assert!(resource.is_metadata_path(&url[at..]));
            for not in [
                "/",
                "/mcp",
                "/.well-known/oauth-protected-resource/",
                "/.well-known/oauth-protected-resourceful",
            ] {
                assert!(!resource.is_metadata_path(not));
            }
        }
    }

    #[test]
    fn the_document_says_what_was_configured_s_auth_01_s_authd_01() {
        let full = ProtectedResource::builder("https://h/mcp")
            .authorization_server("https://as.example/t1")
            .authorization_server("https://as2.example")
            .scopes_supported(["files:read", "a"])
            .name("Say \"hi\"")
            .documentation("https://h/docs")
            .build()
            .unwrap();
        assert_eq!(
            core::str::from_utf8(full.metadata()).unwrap(),
            "{\"resource\":\"https://h/mcp\",\
             \"authorization_servers\":[\"https://as.example/t1\",\"https://as2.example\"],\
             \"scopes_supported\":[\"a\",\"files:read\"],\"bearer_methods_supported\":[\"header\"],\
             \"resource_name\":\"Say \\\"hi\\\"\",\"resource_documentation\":\"https://h/docs\"}"
        );
        assert_eq!(
            resource("https://h").metadata(),
            b"{\"resource\":\"https://h\",\"authorization_servers\":[\"https://as.example\"],\
              \"bearer_methods_supported\":[\"header\"]}"
        );
        assert_eq!(full.metadata_head().header("content-type"), Some("application/json"));
    }

    #[test]
    fn challenges_have_the_words_of_the_rfc_s_auth_02_s_auth_07_s_auth_12() {
        let resource = ProtectedResource::builder("https://h/mcp")
            .authorization_server("https://as.example")
            .scopes_supported(["basic"])
            .build()
            .unwrap();
        let url = "resource_metadata=\"https://h/.well-known/oauth-protected-resource/mcp\"";
        let needed = Scopes::of(["files:write", "files:read"]).unwrap();

        let head = resource.challenge_unauthorized(&Scopes::NONE, TokenState::Absent);
        assert_eq!((head.status, challenge(&head)), (401, &*format!("Bearer {url}, scope=\"basic\"")));
        let head = resource.challenge_unauthorized(&needed, TokenState::Invalid);
        let expected = format!("Bearer error=\"invalid_token\", {url}, scope=\"files:read files:write\"");
        assert_eq!((head.status, challenge(&head)), (401, &*expected));
        let head = resource.challenge_insufficient_scope(&needed);
        let expected =
            format!("Bearer error=\"insufficient_scope\", {url}, scope=\"files:read files:write\"");
        assert_eq!((head.status, challenge(&head)), (403, &*expected));
        let head = resource.challenge_invalid_request();
        assert_eq!(
            (head.status, challenge(&head)),
            (400, &*format!("Bearer error=\"invalid_request\", {url}"))
        );
    }

    #[test]
    fn offline_access_is_never_asked_for_s_auth_10() {
        let refused = ProtectedResource::builder("https://h")
            .authorization_server("https://as.example")
            .scopes_supported(["a", "offline_access"])
            .build();
        assert_eq!(refused.unwrap_err(), InvalidResource::OfflineAccess);
        let needed = Scopes::of(["a", "offline_access"]).unwrap();
        let resource = resource("https://h");
        for head in [
            resource.challenge_insufficient_scope(&needed),
            resource.challenge_unauthorized(&needed, TokenState::Absent),
        ] {
            assert!(challenge(&head).ends_with(", scope=\"a\""), "{head:?}");
        }
    }

    #[test]
    fn audiences_are_compared_byte_for_byte_s_auth_05() {
        let resource = ProtectedResource::builder("https://h/mcp")
            .authorization_server("https://as.example")
            .also_known_as("https://H/mcp")
            .build()
            .unwrap();
        assert!(resource.is_audience("https://h/mcp"));
        assert!(resource.is_audience("https://H/mcp"), "B-AUTH-05");
        for other in ["", "https://h/mcp/", "https://h", "https://h/mcp2", "https://h/%6dcp", "HTTPS://h/mcp"]
        {
            assert!(!resource.is_audience(other), "{other}");
        }
    }

    #[test]
    fn what_cannot_be_served_is_refused() {
        let build = |uri: &'static str, issuer: &'static str| {
            ProtectedResource::builder(uri).authorization_server(issuer).build().unwrap_err()
        };
        for (uri, why) in [
            ("h.example", InvalidUrl::Scheme),
            ("ftp://h", InvalidUrl::Scheme),
            ("http://h.example/mcp", InvalidUrl::Scheme),
            ("http://127.0.0.1.evil.example", InvalidUrl::Scheme),
            ("https://", InvalidUrl::Authority),
            ("https:///mcp", InvalidUrl::Authority),
            ("https://:443", InvalidUrl::Authority),
            ("https://u@h", InvalidUrl::Authority),
            ("https://h#f", InvalidUrl::QueryOrFragment),
            ("https://h/?q", InvalidUrl::QueryOrFragment),
            ("https://h/a b", InvalidUrl::Character),
            ("https://h/\"", InvalidUrl::Character),
            ("https://h/\r\nx: y", InvalidUrl::Character),
        ] {
            assert_eq!(build(uri, "https://as.example"), InvalidResource::Resource(uri.into(), why));
            assert_eq!(build("https://h", uri), InvalidResource::AuthorizationServer(uri.into(), why));
        }
        let none = ProtectedResource::builder("https://h").build();
        assert_eq!(none.unwrap_err(), InvalidResource::NoAuthorizationServer);
        let scope = ProtectedResource::builder("https://h")
            .authorization_server("https://a")
            .scopes_supported(["a b"]);
        assert_eq!(scope.build().unwrap_err(), InvalidResource::Scope("a b".into()));
    }

    #[test]
    fn quoting_holds_for_any_text() {
        let mut out = String::from("Bearer ");
        parameter(&mut out, "a", "x\", b=\"\\");
        parameter(&mut out, "c", "");
        assert_eq!(out, r#"Bearer a="x\", b=\"\\", c="""#);
    }
}
