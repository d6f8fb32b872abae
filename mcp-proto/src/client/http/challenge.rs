//! Reading `WWW-Authenticate`: what a server asks for when it says 401 or 403.
//! [spec: basic/authorization#protected-resource-metadata-discovery-requirements]

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// The longest header value that is read, in bytes.
const MAX_VALUE: usize = 16 << 10;
/// The most challenges of a response, and the most parameters of one of them.
const MOST: usize = 32;

/// One challenge: a scheme and its parameters. [RFC 9110 section 11.6.1]
///
/// What cannot be read is left out; a server that answers 401 with nonsense still answers 401.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    scheme: Box<str>,
    parameters: Vec<(Box<str>, Box<str>)>,
    token68: Option<Box<str>>,
}

impl Challenge {
    /// Reads the values of all `WWW-Authenticate` headers of a response, each of which may hold several
    /// challenges.
    pub fn parse_all<'h>(values: impl IntoIterator<Item = &'h [u8]>) -> Vec<Self> {
        let mut found = Vec::new();
        for value in values {
            Reader { rest: &value[..value.len().min(MAX_VALUE)] }.challenges(&mut found);
        }
        found
    }

    /// The scheme as it was sent: `Bearer`. Letter case does not count.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Whether bearer tokens are asked for.
    #[must_use]
    pub fn is_bearer(&self) -> bool {
        self.scheme.eq_ignore_ascii_case("bearer")
    }

    /// A parameter. Letter case of the name does not count; of several the first counts.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    /// What stands behind the scheme in place of parameters.
    #[must_use]
    pub fn token68(&self) -> Option<&str> {
        self.token68.as_deref()
    }

    /// Where the metadata of the protected resource are. Not checked: it is what the server sent.
    #[must_use]
    pub fn resource_metadata(&self) -> Option<&str> {
        self.parameter("resource_metadata")
    }

    /// The scopes that the operation needs, separated by spaces.
    #[must_use]
    pub fn scope(&self) -> Option<&str> {
        self.parameter("scope")
    }

    /// What is wrong with the token: `invalid_token`, `insufficient_scope`.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.parameter("error")
    }

    /// The same for developers.
    #[must_use]
    pub fn error_description(&self) -> Option<&str> {
        self.parameter("error_description")
    }
}

struct Reader<'h> {
    rest: &'h [u8],
}

impl<'h> Reader<'h> {
    fn challenges(mut self, found: &mut Vec<Challenge>) {
        while found.len() < MOST {
            self.skip(b" \t,");
            if self.rest.is_empty() {
                return;
            }
            let scheme = self.token();
            if scheme.is_empty() {
                self.skip_element();
                continue;
            }
            let blank = self.skip(b" \t");
            let mut challenge = Challenge { scheme: text(scheme), parameters: Vec::new(), token68: None };
            match self.rest.first() {
                None | Some(b',') => {}
                Some(_) if !blank => self.skip_element(), // no scheme is followed by anything else
                Some(_) => {
                    challenge.token68 = self.token68();
                    if challenge.token68.is_none() {
                        self.parameters(&mut challenge.parameters);
                    }
                }
            }
            found.push(challenge);
        }
    }

    /// Up to the next thing that is no parameter, which is the next challenge.
    fn parameters(&mut self, parameters: &mut Vec<(Box<str>, Box<str>)>) {
        loop {
            self.skip(b" \t,");
            let start = self.rest;
            let name = self.token();
            self.skip(b" \t");
            let Some((b'=', after)) = self.rest.split_first() else {
                if name.is_empty() && !self.rest.is_empty() {
                    self.skip_element();
                    continue;
                }
                self.rest = start;
                return;
            };
            self.rest = after;
            self.skip(b" \t");
            let value = match self.rest.first() {
                Some(b'"') => self.quoted(),
                _ => Some(self.until_comma()).filter(|value| !value.is_empty()).map(text),
            };
            match value {
                Some(value) if !name.is_empty() && parameters.len() < MOST => {
                    parameters.push((text(name), value));
                }
                _ => {}
            }
            self.skip_element();
        }
    }

    /// `abc123==` and nothing else before the comma.
    fn token68(&mut self) -> Option<Box<str>> {
        let all = self.rest;
        let is_part =
            |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
        let body = all.iter().take_while(|b| is_part(b)).count();
        let end = body + all[body..].iter().take_while(|b| **b == b'=').count();
        let after = all[end..].iter().find(|b| !matches!(b, b' ' | b'\t'));
        if body == 0 || !matches!(after, None | Some(b',')) {
            return None;
        }
        self.rest = &all[end..];
        Some(text(&all[..end]))
    }

    fn token(&mut self) -> &'h [u8] {
        let is_tchar = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
        let (token, rest) = self.rest.split_at(self.rest.iter().take_while(|b| is_tchar(b)).count());
        self.rest = rest;
        token
    }

    /// Values that should have been quoted are read as far as they go.
    fn until_comma(&mut self) -> &'h [u8] {
        let end = self.rest.iter().position(|b| matches!(b, b',' | b' ' | b'\t')).unwrap_or(self.rest.len());
        let (value, rest) = self.rest.split_at(end);
        self.rest = rest;
        value
    }

    /// `None` if the string has no end.
    fn quoted(&mut self) -> Option<Box<str>> {
        let mut value = Vec::new();
        let mut bytes = self.rest.iter().enumerate().skip(1);
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text(&value));
                }
                b'\\' => value.extend(bytes.next().map(|(_, escaped)| *escaped)),
                byte => value.push(*byte),
            }
        }
        self.rest = &[];
        None
    }

    fn skip(&mut self, any: &[u8]) -> bool {
        let count = self.rest.iter().take_while(|b| any.contains(b)).count();
        self.rest = &self.rest[count..];
        count > 0
    }

    /// Up to the next comma outside of a quoted string.
    fn skip_element(&mut self) {
        while let Some((first, rest)) = self.rest.split_first() {
            match first {
                b',' => return,
                b'"' => drop(self.quoted()),
                _ => self.rest = rest,
            }
        }
    }
}

fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into_owned().into_boxed_str()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(value: &str) -> Vec<Challenge> {
        Challenge::parse_all([value.as_bytes()])
    }

    fn one(value: &str) -> Challenge {
        let mut found = all(value);
        assert_eq!(found.len(), 1, "{value}: {found:#?}");
        found.remove(0)
    }

    #[test]
    fn a_challenge_of_the_specification() {
        let challenge = one("Bearer error=\"insufficient_scope\", scope=\"files:read files:write\", \
             resource_metadata=\"https://h/.well-known/oauth-protected-resource\", \
             error_description=\"Say \\\"please\\\", twice\"");
        assert!(challenge.is_bearer());
        assert_eq!(challenge.error(), Some("insufficient_scope"));
        assert_eq!(challenge.scope(), Some("files:read files:write"));
        assert_eq!(challenge.resource_metadata(), Some("https://h/.well-known/oauth-protected-resource"));
        assert_eq!(challenge.error_description(), Some("Say \"please\", twice"));
        assert_eq!(challenge.parameter("realm"), None);
    }

    #[test]
    fn our_own_challenges_are_read() {
        use crate::http::{ProtectedResource, TokenState};
        use crate::server::Scopes;
        let resource = ProtectedResource::builder("https://example.com/mcp")
            .authorization_server("https://as.example.com")
            .scopes_supported(["a", "b"])
            .build()
            .unwrap();
        let head = resource.challenge_unauthorized(&Scopes::NONE, TokenState::Invalid);
        let challenge = one(head.header("www-authenticate").unwrap());
        assert_eq!(challenge.error(), Some("invalid_token"));
        assert_eq!(challenge.scope(), Some("a b"));
        assert_eq!(challenge.resource_metadata(), Some(resource.metadata_url()));
    }

    #[test]
    fn several_challenges_in_one_header_and_in_many() {
        let found = Challenge::parse_all([
            &b"Basic realm=\"a, b\", Bearer scope=\"x\" , DPoP algs=\"ES256\""[..],
            b"Negotiate abc/123==, NTLM, newauth",
        ]);
        let schemes: Vec<_> = found.iter().map(Challenge::scheme).collect();
        assert_eq!(schemes, ["Basic", "Bearer", "DPoP", "Negotiate", "NTLM", "newauth"]);
        assert_eq!(found[0].parameter("REALM"), Some("a, b"));
        assert_eq!(found[1].scope(), Some("x"));
        assert_eq!(found[3].token68(), Some("abc/123=="));
        assert!(found[4].token68().is_none() && found[4].parameters.is_empty());
    }

    #[test]
    fn what_is_loosely_written_is_read() {
        for value in [
            "bearer scope=x",
            "BEARER  scope = x",
            "Bearer,, scope=x",
            "Bearer scope=\"x\"",
            "Bearer a=\"\\\"\", scope=x",
            "Bearer url=https://h/a?b=c, scope=x",
            "Bearer (bad), scope=x",
            "Bearer =\"y\", scope=x",
            "Bearer scope=\"x\" junk, c=d",
        ] {
            // An empty list element after the scheme ends the challenge, as far as anyone can tell.
            let found = all(value);
            if value.contains(",,") {
                assert_eq!(found[0].scheme(), "Bearer");
                continue;
            }
            assert_eq!(found[0].scope(), Some("x"), "{value}: {found:#?}");
        }
        assert_eq!(one("Bearer scope=\"unfinished").scope(), None);
        assert_eq!(all(""), []);
        assert_eq!(all(" ,,\t"), []);
        assert_eq!(one("Bearer").scope(), None);
    }

    #[test]
    fn what_is_read_is_bounded() {
        assert!(all(&"a, ".repeat(10_000)).len() <= MOST);
        let many: String = (0..1000).map(|n| alloc::format!("p{n}=\"v\", ")).collect();
        assert!(one(&alloc::format!("Bearer {many}")).parameters.len() <= MOST);
    }

    proptest! {
        #[test]
        fn nothing_panics(value in any::<Vec<u8>>()) {
            let _ = Challenge::parse_all([&value[..]]);
        }

        #[test]
        fn nothing_panics_on_what_looks_right(value in "([A-Za-z]{1,3}|[ ,=\"\\\\]){0,40}") {
            let _ = all(&value);
        }

        #[test]
        fn a_quoted_value_is_read(value in "[ -~]{0,30}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let challenge = one(&alloc::format!("Bearer x=\"{quoted}\""));
            prop_assert_eq!(challenge.parameter("x"), Some(&*value));
        }
    }
}
