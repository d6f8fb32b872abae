//! A client over HTTP between a server that means no good and a driver that does anything: each call ends
//! once, everything that leaves is a sound request to the one origin, no name is used twice, time goes on, and
//! after the end there is nothing.
//!
//! The first line chooses what the client assumes. Each other line is one step: its first letter says which,
//! the next byte which of the open requests it is about. In what the server sends, `^` stands for the end of a
//! line, `$` for the id of the message that was sent with the request, `%` for the id before it.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use mcp_proto::client::http::{Action, Client, ExchangeId, Lost, Reader, Request, Settings, Token, Url};
use mcp_proto::client::request::{CallTool, ListTools, ReadResource};
use mcp_proto::client::{AskId, CallId, CallOptions, Config, Event, Rounds, Verdict};
use mcp_proto::limits::Limits;
use mcp_proto::model::{
    ClientCapabilities, Implementation, InputResponses, Json, ProtocolVersion, SubscriptionFilter,
    TASKS_EXTENSION,
};
use mcp_proto::rpc::{self, Error, Message, Parsed};
use mcp_proto::time::Instant;
use mcp_proto_fuzz::Input;

const URL: &str = "http://localhost:8000/mcp?k=v";

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let mut world = World::new(Input::new(input.line()));
    while !input.is_empty() {
        let line = input.line();
        if line == b"E" {
            break;
        }
        world.step(line);
        world.settle();
    }
    world.finish();
});

/// A request that is not over.
struct Open {
    request: Request,
    id: Option<i64>,
    reader: Option<Reader>,
}

struct World {
    client: Client,
    now: Instant,
    actions: Vec<Action>,
    open: BTreeMap<ExchangeId, Open>,
    named: BTreeSet<ExchangeId>,
    calls: BTreeSet<CallId>,
    asks: Vec<AskId>,
    lost: Vec<CallId>,
    sessions: BTreeSet<String>,
    has_token: bool,
    is_closed: bool,
    last: i64,
}

impl World {
    fn new(mut choices: Input<'_>) -> Self {
        let (assumed, how) = (choices.byte(), choices.byte());
        let capabilities = ClientCapabilities::new()
            .form_elicitation()
            .roots()
            .sampling()
            .extension(TASKS_EXTENSION, Json::empty_object());
        let mut limits = Limits::default();
        limits.max_message = 4096;
        limits.max_pages = 4;
        let verdict =
            ProtocolVersion::ALL.get(usize::from(assumed) % 8).map(|version| Verdict::new(*version));
        let config = Config::builder(Implementation::new("host", "1"))
            .capabilities(capabilities)
            .limits(limits)
            .assume(verdict)
            .build();
        let settings = Settings::new(Url::parse(URL).expect("a URL"))
            .gets_tokens(how & 1 != 0)
            .listen(how & 2 == 0)
            .header("x-own", "yes")
            .expect("a header");
        let mut world = Self {
            client: Client::new(config, settings),
            now: Instant::from_origin(Duration::from_secs(1)),
            actions: Vec::new(),
            open: BTreeMap::new(),
            named: BTreeSet::new(),
            calls: BTreeSet::new(),
            asks: Vec::new(),
            lost: Vec::new(),
            sessions: BTreeSet::new(),
            has_token: false,
            is_closed: false,
            last: 0,
        };
        let event = world.client.start(world.now, &mut world.actions);
        world.heard(event);
        world.settle();
        world
    }

    fn step(&mut self, line: &[u8]) {
        let Some((letter, rest)) = line.split_first() else { return };
        let mut input = Input::new(rest);
        let choice = input.byte();
        let mut options = CallOptions::new().progress(choice & 1 != 0).reset_on_progress(choice & 2 != 0);
        if choice & 4 != 0 {
            options = options.rounds(Rounds::Manual).task_ttl_ms(5);
        }
        let call = self.calls.iter().nth(usize::from(choice) % self.calls.len().max(1)).copied();
        let at = self.open.keys().nth(usize::from(choice) % self.open.len().max(1)).copied();
        let given: InputResponses = ["a", "b"]
            .into_iter()
            .filter_map(|key| Some((key, Json::parse(r#"{"roots":[]}"#).ok()?)))
            .collect();
        let (client, now, out) = (&mut self.client, self.now, &mut self.actions);
        match letter {
            b'c' => {
                let with = CallTool::with("t", &serde_json::json!({"r": "é", "n": 5})).expect("JSON");
                let call = match choice % 3 {
                    0 => client.call(&with, &options, now, out),
                    1 => client.call(&ListTools::new(), &options, now, out),
                    _ => client.call(&ReadResource::new("a:b"), &options, now, out),
                };
                assert!(!(self.is_closed && call.is_ok()), "a call after the end");
                self.calls.extend(call);
            }
            b'L' => {
                let filter = SubscriptionFilter::new().tools_list_changed().resource("a:b").task("t");
                self.calls.extend(client.listen(filter, &options, now, out));
            }
            b'R' => {
                let lost = self.lost.get(usize::from(choice) % self.lost.len().max(1)).copied();
                if let Some(lost) = lost
                    && client.relisten(lost, now, out).is_ok()
                {
                    assert!(self.calls.contains(&lost), "it was over");
                }
            }
            b'x' => {
                if let Some(call) = call {
                    assert!(client.cancel(call, None, now, out));
                    self.calls.remove(&call);
                }
            }
            b'a' => {
                if let Some(call) = call {
                    let _ = client.answer(call, &given, now, out);
                }
            }
            b'p' => {
                if let Some(call) = call
                    && let Some(parked) = client.park(call)
                {
                    self.calls.remove(&call);
                    self.calls.extend(client.resume(parked, &given, &options, now, out));
                }
            }
            b'q' => {
                if let Some(ask) = self.asks.get(usize::from(choice) % self.asks.len().max(1)) {
                    client.respond(*ask, Err(Error::internal()), now, out);
                }
            }
            b'n' => {
                client.notify("notifications/own", now, out, |out| out.extend_from_slice(b"{}"));
            }
            b't' => self.now = now + Duration::from_millis(u64::from(choice) * 500),
            b'u' => {
                self.has_token = true;
                client.authorize(Token::bearer("secret").expect("a token"), now, out);
            }
            b'd' => client.decline(now, out),
            b'C' => {
                self.is_closed = true;
                client.close(now, out);
            }
            b'h' => {
                if let Some(at) = at {
                    self.head(at, input);
                }
            }
            b'b' => {
                if let Some(at) = at {
                    let body = self.fill(at, input.rest());
                    self.body(at, &body);
                }
            }
            b'e' | b'k' => {
                if let Some(at) = at {
                    self.end(at, *letter == b'e');
                }
            }
            b'l' => {
                if let Some(at) = at {
                    self.open.remove(&at);
                    self.client.lost(at, Lost("no connection".into()), self.now, &mut self.actions);
                }
            }
            // What a good server would say.
            b'g' => {
                if let Some(at) = at {
                    self.good(at, input.byte());
                }
            }
            _ => {}
        }
    }

    fn head(&mut self, at: ExchangeId, mut input: Input<'_>) {
        const STATUSES: [u16; 16] =
            [200, 202, 400, 401, 403, 404, 405, 406, 301, 307, 303, 429, 500, 503, 204, 100];
        let status = STATUSES[usize::from(input.byte()) % STATUSES.len()];
        let kind = ["application/json", "text/event-stream", "text/html", "APPLICATION/json;charset=utf-8"];
        let kind = kind.get(usize::from(input.byte()) % 5).copied();
        let more = String::from_utf8_lossy(input.rest()).into_owned();
        let mut fields: Vec<(&str, &str)> = kind.into_iter().map(|kind| ("Content-Type", kind)).collect();
        fields.extend(more.split('^').filter_map(|field| field.split_once(':')));
        self.begin(at, status, &fields);
    }

    fn begin(&mut self, at: ExchangeId, status: u16, fields: &[(&str, &str)]) {
        let Some(open) = self.open.get_mut(&at).filter(|open| open.reader.is_none()) else { return };
        let given = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
        self.sessions.extend(given.map(|(_, id)| id.trim_matches([' ', '\t']).to_owned()));
        open.reader = Some(self.client.head(at, status, fields, self.now, &mut self.actions));
        self.acted();
    }

    fn body(&mut self, at: ExchangeId, body: &[u8]) {
        let Some(mut open) = self.open.remove(&at) else { return };
        if let Some(reader) = &mut open.reader {
            let mut rest = body;
            while let Some(frame) = reader.next_frame(&mut rest) {
                let (client, now, out) = (&mut self.client, self.now, &mut self.actions);
                let event = client.handle(frame, now, out);
                let heard = &mut (&mut self.calls, &mut self.asks, &mut self.lost);
                take(client, at, event, now, out, heard);
            }
            assert!(rest.is_empty(), "a reader takes all");
        }
        // It may have been closed meanwhile.
        self.open.insert(at, open);
        self.acted();
    }

    fn end(&mut self, at: ExchangeId, well: bool) {
        let Some(mut open) = self.open.remove(&at) else { return };
        let outcome = if well { Ok(()) } else { Err(Lost("cut".into())) };
        let (client, now, out) = (&mut self.client, self.now, &mut self.actions);
        match &mut open.reader {
            Some(reader) => {
                let event = client.end(reader, outcome, now, out);
                let heard = &mut (&mut self.calls, &mut self.asks, &mut self.lost);
                take(client, at, event, now, out, heard);
            }
            None => client.lost(at, Lost("no response".into()), now, out),
        }
    }

    fn good(&mut self, at: ExchangeId, how: u8) {
        let Some(open) = self.open.get(&at) else { return };
        let method = method(&open.request);
        let id = open.id.unwrap_or(0);
        let versions = ProtocolVersion::ALL;
        let result = match &*method {
            "" | "notifications/initialized" | "notifications/cancelled" | "notifications/own" => {
                let is_get = open.request.method == "GET";
                self.begin(at, if is_get { 200 } else { 202 }, &[("content-type", "text/event-stream")]);
                if !is_get {
                    self.end(at, true);
                }
                return;
            }
            "server/discover" => r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{"subscribe":true}},"ttlMs":9,"cacheScope":"private""#.to_owned(),
            "initialize" => format!(
                r#""protocolVersion":"{}","capabilities":{{"tools":{{}},"resources":{{"subscribe":true}}}},"serverInfo":{{"name":"s","version":"1"}}"#,
                versions[usize::from(how) % versions.len()]
            ),
            "tools/list" => r#""tools":[{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}}]"#.to_owned(),
            "resources/read" => r#""contents":[{"uri":"a:b","text":"x"}]"#.to_owned(),
            _ => r#""content":[]"#.to_owned(),
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{result}}}}}"#);
        if how & 8 != 0 {
            self.begin(at, 200, &[("content-type", "text/event-stream")]);
            self.body(at, format!("id: {how}\nretry: 10\ndata: {body}\n\n").as_bytes());
        } else {
            self.begin(at, 200, &[("content-type", "application/json"), ("mcp-session-id", "s-1")]);
            self.body(at, body.as_bytes());
        }
        self.end(at, true);
    }

    fn fill(&self, at: ExchangeId, rest: &[u8]) -> Vec<u8> {
        let id = self.open.get(&at).and_then(|open| open.id).unwrap_or(self.last).to_string();
        let before = (self.last - 1).to_string();
        let mut body = Vec::with_capacity(rest.len());
        for byte in rest {
            match byte {
                b'^' => body.push(b'\n'),
                b'$' => body.extend_from_slice(id.as_bytes()),
                b'%' => body.extend_from_slice(before.as_bytes()),
                other => body.push(*other),
            }
        }
        body
    }

    fn heard(&mut self, event: Option<Event<'_>>) {
        hear(&mut (&mut self.calls, &mut self.asks, &mut self.lost), event);
    }

    /// Does what the client wants done.
    fn acted(&mut self) {
        for action in std::mem::take(&mut self.actions) {
            match action {
                Action::Open { exchange, request } => {
                    assert!(self.named.insert(exchange), "a name that was used");
                    let id = self.sound(&request);
                    self.last = id.unwrap_or(self.last);
                    self.open.insert(exchange, Open { request, id, reader: None });
                }
                Action::Close(exchange) => {
                    assert!(self.named.contains(&exchange), "it was never opened");
                    self.open.remove(&exchange);
                }
            }
        }
    }

    /// The id of the message in it, if it is a request.
    fn sound(&self, request: &Request) -> Option<i64> {
        assert!(matches!(request.method, "POST" | "GET" | "DELETE"));
        assert_eq!(request.url.origin(), "http://localhost:8000");
        for (name, value) in &request.headers {
            assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':'), "{name:?}");
            let is_fit = value.as_bytes().iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
            assert!(is_fit, "{name}: {value:?}");
            let times = request.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).count();
            assert_eq!(times, 1, "{name} twice");
        }
        if let Some(session) = request.header("mcp-session-id") {
            assert!(self.sessions.contains(session), "a session that no server gave: {session:?}");
        }
        assert_eq!(request.header("x-own"), Some("yes"));
        assert!(request.header("authorization").is_none() || self.has_token);
        if request.method != "POST" {
            assert!(request.body.is_empty());
            return None;
        }
        let parsed = match rpc::parse(&request.body, &Limits::default()) {
            Ok(Parsed::Message(message)) => message,
            other => panic!("no message: {other:?}"),
        };
        let is_modern = request.header("mcp-protocol-version") == Some("2026-07-28");
        match parsed {
            Message::Request { id, method, .. } => {
                assert_eq!(request.header("mcp-method"), is_modern.then_some(&*method));
                assert!(!self.is_closed, "{method} after the end");
                Some(id.as_i64().expect("ours are numbers"))
            }
            Message::Notification { .. } => None,
            answer => {
                assert!(!is_modern, "an answer in 2026-07-28: {answer:?}");
                None
            }
        }
    }

    fn settle(&mut self) {
        for _ in 0..100_000 {
            self.acted();
            let event = self.client.handle_timeout(self.now, &mut self.actions);
            if event.is_none() && self.actions.is_empty() {
                assert!(self.client.next_deadline().is_none_or(|due| due > self.now), "time stands still");
                assert_eq!(self.client.open_calls(), self.calls.len());
                assert!(self.calls.iter().all(|call| self.client.is_open(*call)));
                return;
            }
            self.heard(event);
        }
        panic!("there is no end of what is due");
    }

    fn finish(&mut self) {
        self.is_closed = true;
        self.client.close(self.now, &mut self.actions);
        self.settle();
        assert!(self.calls.is_empty(), "a call without an end");
        for _ in 0..4 {
            self.now = self.now + Duration::from_secs(60);
            self.settle();
        }
        assert!(self.client.is_closed(), "it does not come to an end");
        assert!(self.open.is_empty() && self.client.next_deadline().is_none());
        let event = self.client.start(self.now, &mut self.actions);
        self.heard(event);
    }
}

fn method(request: &Request) -> String {
    match rpc::parse(&request.body, &Limits::default()) {
        Ok(Parsed::Message(Message::Request { method, .. } | Message::Notification { method, .. })) => {
            method.into_owned()
        }
        _ => String::new(),
    }
}

type Heard<'w> = (&'w mut BTreeSet<CallId>, &'w mut Vec<AskId>, &'w mut Vec<CallId>);

fn take(
    client: &mut Client,
    at: ExchangeId,
    event: Option<Event<'_>>,
    now: Instant,
    out: &mut Vec<Action>,
    heard: &mut Heard<'_>,
) {
    match event {
        Some(Event::Batch(batch)) => {
            for member in batch {
                let event = client.handle_member(at, member, now, out);
                hear(heard, event);
            }
        }
        event => hear(heard, event),
    }
}

/// Each call ends once.
fn hear((calls, asks, lost): &mut Heard<'_>, event: Option<Event<'_>>) {
    match event {
        Some(Event::Complete(done)) => assert!(calls.remove(&done.call), "it ended before"),
        Some(Event::Failed { call, .. }) => assert!(calls.remove(&call), "it ended before"),
        // It can be opened again, and until then it is there.
        Some(Event::ListenEnded { subscription, lost: true }) => {
            assert!(calls.contains(&subscription), "it ended before");
            lost.push(subscription);
        }
        Some(Event::ListenEnded { subscription, .. }) => {
            assert!(calls.remove(&subscription), "it ended before");
        }
        Some(Event::Progress { call, .. } | Event::InputRequired { call, .. }) => {
            assert!(calls.contains(&call));
        }
        Some(Event::Asked(asked)) => asks.push(asked.ask),
        _ => {}
    }
}
