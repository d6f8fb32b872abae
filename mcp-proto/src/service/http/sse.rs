//! The transport of 2024-11-05: one stream of events down, and a URL of its own for each session to post to.
//! [spec: 2024-11-05 basic/transports#http-with-sse]

use alloc::sync::Arc;

use super::super::Principal;
use super::super::dispatch;
use super::super::session::Shared;
use super::exchange::Exchange;
use super::{HttpService, Reply, session_id};
use crate::http::endpoint::unknown_session;
use crate::http::{Head, HttpSse, Response, media};
use crate::model::meta::key as meta_key;
use crate::rpc::{self, Error, Message, Parsed};
use crate::server::Connection;
use crate::time::{Instant, UnixTime};

/// The member of the query that names the session.
const SESSION: &str = "session=";

impl HttpService {
    /// Handles a request to one of the URLs of this transport; `None` if it is to another.
    pub(super) fn sse(
        &self,
        head: &impl Head,
        body: &[u8],
        principal: Option<&Principal>,
        now: Instant,
        unix: UnixTime,
    ) -> Option<Reply> {
        let endpoint = &self.0.endpoint;
        endpoint.config().latest_legacy()?;
        let sse = endpoint.settings().sse.as_ref()?;
        if head.path() == sse.stream {
            return Some(self.sse_stream(head, sse, principal, now, unix));
        }
        (head.path() == sse.messages).then(|| self.sse_message(head, body, principal, now, unix))
    }

    fn sse_stream(
        &self,
        head: &impl Head,
        sse: &HttpSse,
        principal: Option<&Principal>,
        now: Instant,
        unix: UnixTime,
    ) -> Reply {
        if !media::accepts(head).sse {
            return Reply::Full(Response::refused(406, "expected `Accept: text/event-stream`"));
        }
        let service = &self.0.service;
        let config = service.config();
        let shared = Shared::new(service, principal.cloned(), Connection::new(Arc::clone(config)));
        shared.tick(now, unix);
        let id = session_id(&service.random_bytes());
        let (kept, dropped) = self.sessions().insert(&id, &shared, now, &config.limits);
        dropped.iter().for_each(|shared| super::end(shared));
        if !kept {
            return Reply::Full(super::too_many_sessions(None));
        }
        service.register(&shared);
        let post_to = alloc::format!("{}?{SESSION}{id}", sse.messages);
        Reply::Exchange(Exchange::sse(&shared, &self.0.endpoint, &post_to, now))
    }

    fn sse_message(
        &self,
        head: &impl Head,
        body: &[u8],
        principal: Option<&Principal>,
        now: Instant,
        unix: UnixTime,
    ) -> Reply {
        if let Err(why) = media::is_json(head) {
            return Reply::Full(Response::refused(415, why));
        }
        let query = head.query().unwrap_or_default();
        let id = query.split('&').find_map(|member| member.strip_prefix(SESSION)).unwrap_or_default();
        let Some(shared) = self.sessions().find(id, principal, now) else {
            return Reply::Full(unknown_session(None));
        };
        let parsed = match rpc::parse(body, &self.0.service.config().limits) {
            Ok(parsed) => parsed,
            Err(malformed) => {
                return Reply::Full(Response::error(400, malformed.id.as_ref(), &malformed.error));
            }
        };
        if let Parsed::Message(Message::Request { id, params, .. }) = &parsed
            && self.0.service.config().is_modern()
            && params.meta().get(meta_key::PROTOCOL_VERSION).is_some()
        {
            let why = "Invalid request: one that names its own version belongs to Streamable HTTP";
            return Reply::Full(Response::error(400, Some(id), &Error::invalid_request(why)));
        }
        if let Err(response) = self.permit(&parsed, principal) {
            return Reply::Full(response);
        }
        shared.tick(now, unix);
        let mut exchange = Exchange::accepted(&shared, &self.0.endpoint, now);
        let caller = Some(principal.cloned());
        dispatch::post(&shared, parsed, caller, 0, None, now, exchange.jobs_mut());
        shared.lock().wake_driver();
        exchange.into_reply()
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use core::task::{Context, Poll, Waker};

    use super::*;
    use crate::http::Settings;
    use crate::http::testing::TestHead;
    use crate::service::{NoArguments, Server};

    fn http() -> HttpService {
        let service = Server::new("s", "1").tool("hi", |_, _: NoArguments| async { Ok("hello") });
        HttpService::new(&service.build().unwrap(), Settings::default().with_sse())
    }

    fn ask(http: &HttpService, head: &TestHead, body: &str) -> Reply {
        match http.admit(head) {
            Ok(()) => http.handle(head, body.as_bytes(), None, Instant::ZERO, UnixTime::default()),
            Err(response) => Reply::Full(response),
        }
    }

    fn status(reply: Reply) -> u16 {
        match reply {
            Reply::Full(response) => response.head.status,
            Reply::Exchange(mut exchange) => {
                let head = exchange.poll_head(&mut Context::from_waker(Waker::noop()));
                let Poll::Ready(head) = head else { panic!("expected a head") };
                head.status
            }
        }
    }

    fn read(exchange: &mut Exchange) -> String {
        let mut out = Vec::new();
        let _ = exchange.poll_body(&mut Context::from_waker(Waker::noop()), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn head(method: &'static str, path: &'static str, query: Option<String>) -> TestHead {
        let mut head = TestHead::new().with("host", "localhost").with("content-type", "application/json");
        (head.method, head.path, head.query) = (method, path, query);
        head
    }

    /// The whole of the old transport: where to post, 202, and the answers as events named `message`.
    #[test]
    fn answers_come_on_the_stream() {
        let http = http();
        let Reply::Exchange(mut stream) = ask(&http, &head("GET", "/sse", None), "") else {
            panic!("expected a stream")
        };
        let first = read(&mut stream);
        let query = first.strip_prefix("event: endpoint\ndata: /messages?").unwrap().trim_end();
        let post = |body: &str| status(ask(&http, &head("POST", "/messages", Some(query.into())), body));
        let open = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05",
            "capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
        assert_eq!(post(open), 202);
        let opened = read(&mut stream);
        assert!(
            opened.starts_with("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":"),
            "{opened}"
        );
        assert!(opened.contains("\"protocolVersion\":\"2024-11-05\""), "{opened}");
        assert_eq!(post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), 202);
        assert_eq!(post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hi"}}"#), 202);
        assert!(read(&mut stream).contains("\"text\":\"hello\""));
        assert_eq!(post("{"), 400);
        // No header of this transport repeats what such a request says, so it would pass by what checks that.
        let stamped = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"hi","_meta":{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        assert_eq!((post(stamped), read(&mut stream)), (400, String::new()));
        // The stream is the session.
        drop(stream);
        assert_eq!(post(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#), 404);
    }

    #[test]
    fn other_methods_sessions_and_pages_are_refused() {
        let http = http();
        assert_eq!(status(ask(&http, &head("POST", "/sse", None), "{}")), 405);
        assert_eq!(status(ask(&http, &head("GET", "/messages", None), "")), 405);
        let unknown = Some(String::from("session=0123"));
        assert_eq!(status(ask(&http, &head("POST", "/messages", unknown), "{}")), 404);
        let foreign = head("GET", "/sse", None).with("origin", "http://evil.example");
        assert_eq!(status(ask(&http, &foreign, "")), 403);
    }

    /// Off unless it is asked for.
    #[test]
    fn it_is_off_by_default() {
        let service = Server::new("s", "1").build().unwrap();
        let http = HttpService::new(&service, Settings::default());
        assert!(!http.has_path("/sse") && !http.has_path("/messages"));
        assert_eq!(status(ask(&http, &head("GET", "/sse", None), "")), 400, "no session is named");
    }
}
