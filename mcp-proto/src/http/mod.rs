//! Streamable HTTP, without sockets: a request's head and body in, a response's head and body out.
//!
//! [`Endpoint`] says what becomes of a request; an [`Exchange`] is one POST of 2026-07-28 and its response, a
//! [`Session`] all that a client of an older revision sends and is sent. The rest looks at heads alone and keeps no state:
//!
//! | Question | Answer |
//! |---|---|
//! | May this page or host name talk to the server? | [`Origins::check`] |
//! | May a page read what it is answered? | [`Endpoint::cors_headers`] |
//! | Is the body JSON, and what may the answer be? | [`media::is_json`], [`media::accepts`] |
//! | Which era does the request belong to? | [`era::classify`] |
//! | Do its headers say what its body says? | [`mirror::check_standard`], [`mirror::check_arguments`] |
//! | How is text written into a header? | [`value::encode`], [`value::decode`] |
//!
//! [spec: basic/transports/streamable-http]

pub mod auth;
pub mod bearer;
pub mod cors;
pub mod endpoint;
pub mod era;
pub(crate) mod exchange;
pub mod head;
pub mod media;
pub mod mirror;
pub mod origin;
#[cfg(feature = "http")]
mod parts;
pub(crate) mod reply;
mod response;
pub(crate) mod router;
pub mod session;
pub(crate) mod streams;
pub mod value;
pub(crate) mod writer;

pub use auth::{InvalidResource, InvalidUrl, ProtectedResource, ProtectedResourceBuilder, TokenState};
pub use bearer::{BadAuthorization, bearer};
pub use cors::Cors;
pub use endpoint::{Endpoint, Events, HttpSse, Post, Settings, Taken};
pub use exchange::Exchange;
pub use head::{Head, ResponseHead};
pub use origin::Origins;
pub use response::Response;
pub use session::Session;

/// A peer's bytes, printable and cut to a length that is safe to repeat.
fn printable(bytes: &[u8]) -> alloc::string::String {
    use alloc::string::ToString;
    const MOST: usize = 64;
    let mut text = bytes[..bytes.len().min(MOST)].escape_ascii().to_string();
    if bytes.len() > MOST {
        text.push('…');
    }
    text
}

#[cfg(test)]
pub(crate) mod testing {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::Head;

    /// A head for tests: a target and headers, names in any case.
    #[derive(Debug, Clone)]
    pub(crate) struct TestHead {
        pub(crate) method: &'static str,
        pub(crate) path: &'static str,
        pub(crate) query: Option<String>,
        pub(crate) authority: Option<&'static str>,
        pub(crate) headers: Vec<(&'static str, Vec<u8>)>,
    }

    impl TestHead {
        pub(crate) const fn new() -> Self {
            Self { method: "POST", path: "/mcp", query: None, authority: None, headers: Vec::new() }
        }

        pub(crate) fn with(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
            self.headers.push((name, value.as_ref().to_vec()));
            self
        }

        pub(crate) fn without(mut self, name: &str) -> Self {
            self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
            self
        }

        pub(crate) const fn to(mut self, authority: &'static str) -> Self {
            self.authority = Some(authority);
            self
        }
    }

    impl Head for TestHead {
        fn method(&self) -> &str {
            self.method
        }
        fn path(&self) -> &str {
            self.path
        }
        fn query(&self) -> Option<&str> {
            self.query.as_deref()
        }
        fn authority(&self) -> Option<&str> {
            self.authority
        }
        fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
            assert_eq!(name, name.to_ascii_lowercase(), "names are asked for in lower case");
            let name = String::from(name);
            self.headers.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(&name)).map(|(_, v)| &v[..])
        }
    }
}
