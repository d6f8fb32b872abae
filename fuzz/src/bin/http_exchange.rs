//! The server's side of HTTP, whatever the request: it is refused with a status and an error that say so, or
//! it is answered once, in a form that the client takes.
//!
//! The first line chooses what the endpoint is, the second what its handlers do, one letter a step. Then comes
//! the request: its first line, its headers, an empty line, its body.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use mcp_proto::codec::{SseDecoder, SseFrame};
use mcp_proto::http::{
    Endpoint, Events, Exchange, Head, HttpSse, Origins, Response, ResponseHead, Session, Settings, Taken,
    bearer, media,
};
use mcp_proto::limits::Limits;
use mcp_proto::model::method::{CallTool, Listen};
use mcp_proto::model::{
    CallToolResult, Implementation, InputRequest, InputRequired, LoggingLevel, ProtocolVersion,
    ServerCapabilities, SubscriptionFilter,
};
use mcp_proto::rpc::{self, Error, Message, Parsed, RequestId};
use mcp_proto::server::{Call, Change, Channel, Config, Event, Log, Pending, Progress, RequestKey};
use mcp_proto::time::Instant;
use mcp_proto_fuzz::{Input, Request};
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let mut choices = Input::new(input.line());
    let script = input.line();
    let request = Request::read(&mut input);
    let body = input.rest();

    let endpoint = endpoint(&mut choices);
    let shared = endpoint.cors_headers(&request);
    shared.iter().for_each(|(name, value)| header(name, value));
    let _ = bearer(&request);
    if let Err(response) = endpoint.admit(&request) {
        refused(&response, &[204, 403, 405]);
        return;
    }
    assert!(matches!(request.method(), "POST" | "GET" | "DELETE"));
    match endpoint.take(&request, body) {
        Taken::Refused(response) => refused(&response, &[400, 404, 406, 415]),
        Taken::Modern(post) => {
            assert_eq!(request.method(), "POST");
            let accepts = media::accepts(&request);
            let (asks, parsed) = (post.has_request(), rpc::parse(body, &endpoint.config().limits));
            let id = post.request_id().cloned();
            assert!(matches!(parsed, Ok(Parsed::Message(_))), "2026-07-28 has no batches");
            let mut out = Vec::new();
            let now = Instant::from_origin(Duration::from_secs(1));
            let (exchange, event) = Exchange::start(&endpoint, post, now, &mut out);
            let mut world =
                World { exchange, now, out, seen: Seen::default(), held: None, key: None, is_gone: false };
            world.event(event);
            world.look();
            for letter in script {
                world.step(*letter);
                world.look();
            }
            world.finish();
            if !world.is_gone {
                world.seen.check(asks, id.as_ref(), accepts.json, accepts.sse);
            }
        }
        Taken::Initialize(post) => {
            let id = post.request_id().cloned();
            match Session::initialize(&endpoint, post, "fresh", Instant::ZERO) {
                Ok((session, response)) => {
                    assert_eq!(response.head.status, 200);
                    assert_eq!(response.head.header("mcp-session-id"), Some("fresh"));
                    assert!(session.connection().session_version().is_some_and(|v| !v.is_modern()));
                    let mut seen = Seen::default();
                    seen.head = Some(response.head);
                    seen.body = response.body;
                    seen.is_over = true;
                    let accepts = media::accepts(&request);
                    seen.check(true, id.as_ref(), accepts.json, accepts.sse);
                }
                Err(response) if response.head.status == 202 => assert!(response.body.is_empty()),
                Err(response) => assert_eq!(response.head.status, 400, "{response:?}"),
            }
        }
        Taken::Session(id, _) | Taken::End(id) | Taken::Stream { session: id, .. } => {
            assert!(!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()));
            assert!(endpoint.config().versions.iter().any(|version| !version.is_modern()));
        }
        other => panic!("{other:?}"),
    }
});

fn endpoint(choices: &mut Input<'_>) -> Endpoint {
    let (versions, settings) = (choices.byte(), choices.byte());
    let mut limits = Limits::default();
    limits.max_rounds = 2;
    limits.request_timeout = Some(Duration::from_secs(20));
    let capabilities = ServerCapabilities::new()
        .tools(true)
        .prompts(true)
        .resources(true, true)
        .completions()
        .logging()
        .core_tasks(true, true);
    let mut config =
        Config::builder(Implementation::new("fuzzed", "1")).capabilities(capabilities).limits(limits);
    let all = ProtocolVersion::ALL;
    config = match versions % 4 {
        1 => config.versions([ProtocolVersion::V2026_07_28]),
        2 => config.versions(all.into_iter().filter(|version| !version.is_modern())),
        3 => config.versions([all[usize::from(versions / 4) % 4], ProtocolVersion::V2026_07_28]),
        _ => config.versions(all),
    };
    let mut set = Settings::default();
    if settings & 1 != 0 {
        set.events = Events::Always;
    }
    if settings & 2 != 0 {
        set.sse = Some(HttpSse::default());
    }
    set.strict = settings & 4 != 0;
    if settings & 8 != 0 {
        set = set.with_cors();
    }
    if settings & 16 != 0 {
        set.origins = Origins::loopback().allow_origin("https://example.com").expect("an origin");
    }
    Endpoint::new(Arc::clone(&config.build()), set)
}

/// No peer can put anything into a head but what a head can hold.
fn header(name: &str, value: &str) {
    assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
    assert!(value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')), "{name}: {value:?}");
}

/// A refusal says in JSON what was expected.
fn refused(response: &Response, statuses: &[u16]) {
    let Response { head, body, .. } = response;
    assert!(statuses.contains(&head.status), "{head:?}");
    head.headers.iter().for_each(|(name, value)| header(name, value));
    assert_eq!(head.header("allow").is_some(), matches!(head.status, 405), "{head:?}");
    if head.status == 204 {
        assert!(body.is_empty());
        return;
    }
    assert_eq!(head.header("content-type"), Some("application/json"));
    match rpc::parse(body, &Limits::default()) {
        Ok(Parsed::Message(Message::Error { error, .. })) => assert!(!error.message.is_empty()),
        other => panic!("{other:?}"),
    }
}

enum Held {
    Call(Pending<CallTool>),
    Listen(Pending<Listen>, SubscriptionFilter),
    Other(Pending),
}

struct World {
    exchange: Exchange,
    now: Instant,
    out: Vec<u8>,
    seen: Seen,
    held: Option<Held>,
    key: Option<RequestKey>,
    is_gone: bool,
}

impl World {
    fn event(&mut self, event: Option<Event<'_>>) {
        match event {
            Some(Event::Request(incoming)) => {
                assert!(incoming.version.is_modern());
                self.key = Some(incoming.pending.key());
                match incoming.typed() {
                    Ok(Call::CallTool(pending, _)) => self.held = Some(Held::Call(pending)),
                    Ok(Call::Listen(pending, params)) => {
                        self.held = Some(Held::Listen(pending, params.notifications));
                    }
                    Ok(other) => self.held = Some(Held::Other(other.into_pending())),
                    Err(refusal) => assert!(self.exchange.refuse(refusal, &mut self.out).is_written()),
                }
            }
            None | Some(Event::Notification(_) | Event::Rejected(_) | Event::Cancelled { .. }) => {}
            other => panic!("{other:?}"),
        }
    }

    fn step(&mut self, letter: u8) {
        let Self { exchange, out, .. } = self;
        let was_over = exchange.is_over() || self.is_gone;
        match letter {
            b'r' | b'f' => {
                let error = Error::new(-32602, "no");
                let delivery = match self.held.take() {
                    Some(Held::Call(pending)) if letter == b'r' => {
                        exchange.respond(pending, &CallToolResult::text("x"), out)
                    }
                    Some(Held::Listen(pending, filter)) if letter == b'r' => {
                        let _ = exchange.acknowledge(pending, &filter, out);
                        return;
                    }
                    Some(Held::Other(pending)) if letter == b'r' => exchange.respond_raw(pending, b"{}", out),
                    Some(Held::Call(pending)) => exchange.fail(pending, &error, out),
                    Some(Held::Listen(pending, _)) => exchange.fail(pending, &error, out),
                    Some(Held::Other(pending)) => exchange.fail(pending, &error, out),
                    None => return,
                };
                assert_eq!(delivery.is_written(), !was_over, "an answer is written if it is awaited");
            }
            b'q' => {
                let needs = InputRequired::default().request_state("s").ask("r", InputRequest::ListRoots);
                match self.held.take() {
                    Some(Held::Call(pending)) => match exchange.require_input(pending, &needs, out) {
                        Ok(delivery) => assert_eq!(delivery.is_written(), !was_over),
                        Err(missing) => assert!(exchange.refuse_missing(missing, out).is_written()),
                    },
                    other => self.held = other,
                }
            }
            b'p' | b'l' => {
                let Some(key) = self.key else { return };
                let before = exchange.is_over();
                let data: &RawValue = serde_json::from_str("[1]").expect("JSON");
                let delivery = if letter == b'p' {
                    exchange.progress_of(key, Progress::new(1.0), out)
                } else {
                    exchange.log_of(key, Log::new(LoggingLevel::Error, data), out)
                };
                assert!(!(delivery.is_written() && (before || self.is_gone)), "after the answer");
            }
            b'n' => {
                let Some(key) = self.key else { return };
                let delivery = exchange.abandon(key, out);
                assert!(!(delivery.is_written() && was_over));
            }
            b'x' => {
                self.look();
                self.is_gone = true;
                let gone = self.exchange.peer_closed();
                assert!(gone.is_none() || gone == self.key);
            }
            b't' => {
                self.now = self.now + Duration::from_secs(16);
                for _ in 0..100 {
                    if self.exchange.handle_timeout(self.now, &mut self.out).is_none() {
                        break;
                    }
                }
                assert!(self.exchange.next_deadline().is_none_or(|due| due > self.now), "time stands still");
            }
            b'u' => {
                let _ = exchange.publish(&Change::Tools);
                let _ = exchange.publish(&Change::Resource("a:1"));
                exchange.flush_subscriptions(out);
            }
            b'c' => exchange.close(out),
            _ => {}
        }
    }

    fn look(&mut self) {
        if self.is_gone {
            // What is written now goes nowhere.
            self.out.clear();
            return;
        }
        let was_over = self.seen.is_over;
        if let Some(head) = self.exchange.take_head() {
            assert!(self.seen.head.is_none(), "a second head");
            self.seen.head = Some(head);
        }
        assert!(self.seen.head.is_some() || self.out.is_empty(), "bytes before the head");
        assert!(!was_over || self.out.is_empty(), "bytes after the end");
        self.seen.body.append(&mut self.out);
        self.seen.is_over = self.exchange.is_over();
    }

    fn finish(&mut self) {
        self.step(b'c');
        self.look();
        self.step(b'f');
        self.look();
        self.step(b'n');
        self.look();
        self.step(b'c');
        self.look();
        assert!(self.exchange.is_over() || self.is_gone, "a response without an end");
        assert!(self.is_gone || self.exchange.next_deadline().is_none());
    }
}

/// A response.
#[derive(Default)]
struct Seen {
    head: Option<ResponseHead>,
    body: Vec<u8>,
    is_over: bool,
}

impl Seen {
    /// One answer, the last message, of a type that the client takes.
    fn check(&self, asks: bool, id: Option<&RequestId>, json: bool, sse: bool) {
        assert!(self.is_over);
        let head = self.head.as_ref().expect("a response has a head");
        head.headers.iter().for_each(|(name, value)| header(name, value));
        if !asks {
            assert_eq!((head.status, &*self.body), (202, &b""[..]));
            return;
        }
        assert!(matches!(head.status, 200 | 400 | 404), "{head:?}");
        let messages: Vec<Vec<u8>> = match head.header("content-type") {
            Some("application/json") => {
                assert!(json, "the client does not take JSON");
                vec![self.body.clone()]
            }
            Some("text/event-stream") => {
                assert!(sse, "the client does not take events");
                events(&self.body)
            }
            other => panic!("{other:?}"),
        };
        let mut answers = 0;
        for message in &messages {
            match rpc::parse(message, &Limits::default()) {
                Ok(Parsed::Message(Message::Notification { .. })) => {
                    assert_eq!(answers, 0, "after the answer")
                }
                Ok(Parsed::Message(Message::Result { id: of, .. })) => {
                    assert_eq!((Some(&of), head.status), (id, 200));
                    answers += 1;
                }
                Ok(Parsed::Message(Message::Error { id: of, .. })) => {
                    assert_eq!(of.as_ref(), id);
                    answers += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(answers, 1, "{messages:?}");
    }
}

fn events(body: &[u8]) -> Vec<Vec<u8>> {
    let (mut decoder, mut all, mut rest) = (SseDecoder::new(usize::MAX), Vec::new(), body);
    while let Some(frame) = decoder.next_frame(&mut rest) {
        match frame {
            SseFrame::Event(event) => {
                assert!(event.id.is_none(), "nothing is resumed in 2026-07-28");
                all.push(event.data.to_vec());
            }
            SseFrame::TooLong { .. } => panic!("a torn event"),
        }
    }
    all
}
