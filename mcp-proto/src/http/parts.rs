//! Heads of the crate `http`, which most HTTP stacks share.

use super::Head;

/// The authority is that of the target: `:authority` of HTTP/2, as HTTP stacks put it there, or an absolute
/// target of HTTP/1.
impl Head for ::http::request::Parts {
    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn path(&self) -> &str {
        self.uri.path()
    }

    fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    fn authority(&self) -> Option<&str> {
        self.uri.authority().map(::http::uri::Authority::as_str)
    }

    fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        self.headers.get_all(name).iter().map(::http::HeaderValue::as_bytes)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::http::head::Repeated;
    use crate::http::{Origins, media};

    fn parts(request: ::http::request::Builder) -> ::http::request::Parts {
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_request_of_http_1_is_a_head() {
        let request = ::http::Request::post("/mcp?a=b")
            .header("HOST", "localhost:8000")
            .header("Content-Type", "application/json")
            .header("accept", "application/json")
            .header("Accept", "text/event-stream;q=0")
            .header("X-Raw", &b"\xff"[..]);
        let head = parts(request);
        assert_eq!((head.method(), head.path(), head.query()), ("POST", "/mcp", Some("a=b")));
        assert_eq!(Head::authority(&head), None);
        assert_eq!(head.value("host"), Ok(Some(&b"localhost:8000"[..])));
        assert_eq!(head.value("accept"), Err(Repeated));
        assert_eq!(
            head.values("accept").collect::<Vec<_>>(),
            [&b"application/json"[..], b"text/event-stream;q=0"]
        );
        assert_eq!(head.value("x-raw"), Ok(Some(&b"\xff"[..])));
        assert_eq!(head.value("x-none"), Ok(None));
        assert_eq!(head.value("no header name"), Ok(None));
        assert_eq!(media::is_json(&head), Ok(()));
        let accepts = media::accepts(&head);
        assert!(accepts.json && !accepts.sse);
        assert_eq!(Origins::default().check(&head), Ok(()));
    }

    /// H14: a request of HTTP/2 has no `Host`.
    #[test]
    fn a_request_of_http_2_has_its_host_in_the_target() {
        let to = |uri: &str| parts(::http::Request::post(uri).version(::http::Version::HTTP_2));
        assert_eq!(Head::authority(&to("http://localhost:8000/mcp")), Some("localhost:8000"));
        assert_eq!(Origins::default().check(&to("http://localhost:8000/mcp")), Ok(()));
        assert_eq!(Origins::default().check(&to("http://[::1]:8000/mcp")), Ok(()));
        assert!(Origins::default().check(&to("http://evil.example/mcp")).is_err());
        assert!(Origins::default().check(&to("http://localhost@evil.example/mcp")).is_err());
        assert!(Origins::default().check(&to("http://evil.example@localhost/mcp")).is_err());
        let both = ::http::Request::post("http://localhost/mcp").header("host", "evil.example");
        assert!(Origins::default().check(&parts(both)).is_err());
    }
}
