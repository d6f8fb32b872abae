//! A server's machine in any conversation, held against a ledger: each request is answered once, a cancelled
//! one never, nothing is lost, and the bounds hold.
//!
//! Each line is one step; its first letter says which, the bytes after it choose. `r` sends the rest of its
//! line as it is.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use mcp_proto::limits::Limits;
use mcp_proto::model::method::{CallTool, Listen};
use mcp_proto::model::{Implementation, InputRequest, InputRequired, ServerCapabilities, SubscriptionFilter};
use mcp_proto::rpc::{self, Error, Message, Parsed, RequestId};
use mcp_proto::server::{
    Call, Change, Channel, Config, Connection, Event, Incoming, Pending, Progress, RequestKey,
};
use mcp_proto::time::Instant;
use mcp_proto_fuzz::Input;
use serde_json::Value;

const IN_FLIGHT: usize = 4;
const LISTENS: usize = 2;
const QUESTIONS: usize = 3;
const REQUEST_TIMEOUT: Duration = Duration::from_millis(100);

/// Few, so that they collide; two differ in their type only.
const IDS: [&str; 5] = ["0", "1", "\"1\"", "\"\"", "123456789012345678901234567890"];
const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01"];
const METHODS: [&str; 10] = [
    "tools/call",
    "subscriptions/listen",
    "resources/subscribe",
    "prompts/list",
    "ping",
    "server/discover",
    "logging/setLevel",
    "tasks/get",
    "resources/unsubscribe",
    "no/such",
];

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let mut world = World::new();
    while !input.is_empty() {
        let mut step = Input::new(input.line());
        let letter = step.byte();
        if letter == b'E' {
            break;
        }
        world.step(letter, step);
        world.check();
    }
    world.finish();
});

/// A right to answer. It may outlive its request.
enum Held {
    Call(Pending<CallTool>),
    Listen(Pending<Listen>, SubscriptionFilter),
    Other(Pending),
}

impl Held {
    fn key(&self) -> RequestKey {
        match self {
            Self::Call(pending) => pending.key(),
            Self::Listen(pending, _) => pending.key(),
            Self::Other(pending) => pending.key(),
        }
    }
}

/// An open request.
struct Open {
    key: RequestKey,
    id: RequestId,
    deadline: Option<Instant>,
    listening: bool,
    batch: Option<usize>,
}

struct World {
    server: Connection,
    now: Instant,
    out: Vec<u8>,
    limits: Limits,
    held: Vec<Held>,
    open: Vec<Open>,
    /// Answers that must leave, each with the batch that it may have to wait for.
    due: Vec<(RequestId, Option<usize>)>,
    /// Errors without an id that must leave, likewise.
    nameless: Vec<Option<usize>>,
    /// The number of the batch whose members are being handled, and how many there were.
    batch: Option<usize>,
    batches: usize,
    /// Questions that the client has not answered.
    asked: Vec<i64>,
    /// The most that the step may write.
    room: usize,
}

impl World {
    fn new() -> Self {
        let mut limits = Limits::default();
        limits.max_in_flight = IN_FLIGHT;
        limits.max_listens = LISTENS;
        limits.max_client_requests = QUESTIONS;
        limits.max_subscribed_uris = 2;
        limits.max_batch = 6;
        limits.max_rounds = 3;
        limits.request_timeout = Some(REQUEST_TIMEOUT);
        limits.client_request_timeout = Some(Duration::from_millis(60));
        let capabilities = ServerCapabilities::new()
            .tools(true)
            .prompts(true)
            .resources(true, true)
            .logging()
            .core_tasks(true, true);
        let config = Config::builder(Implementation::new("fuzzed", "1"))
            .capabilities(capabilities)
            .limits(limits.clone())
            .build();
        Self {
            server: Connection::new(config),
            now: Instant::from_origin(Duration::from_secs(1)),
            out: Vec::new(),
            limits,
            held: Vec::new(),
            open: Vec::new(),
            due: Vec::new(),
            nameless: Vec::new(),
            batch: None,
            batches: 0,
            asked: Vec::new(),
            room: 0,
        }
    }

    fn step(&mut self, letter: u8, mut input: Input<'_>) {
        self.room = 64 << 10;
        match letter {
            b'r' => self.send(input.rest()),
            b'i' => {
                let (id, version) = (id(input.byte()), VERSIONS[usize::from(input.byte()) % VERSIONS.len()]);
                self.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"roots":{{}}}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#).as_bytes());
            }
            b'n' => self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            b'q' => {
                let frame = request(&mut input);
                self.send(frame.as_bytes());
            }
            b'b' => {
                let mut frame = String::from("[");
                while !input.is_empty() {
                    frame += &request(&mut input);
                    frame += if input.is_empty() { "" } else { "," };
                }
                self.send((frame + "]").as_bytes());
            }
            b'c' => {
                let frame = format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}}"#,
                    id(input.byte())
                );
                self.send(frame.as_bytes());
            }
            b'a' => {
                let (nth, how) = (input.byte(), input.byte());
                let number = match self.asked.len() {
                    0 => 77,
                    many => self.asked[usize::from(nth) % many],
                };
                let outcome = match how % 4 {
                    0 => r#""error":{"code":-1,"message":"no"}"#,
                    1 => r#""result":[]"#,
                    2 => r#""result":{"roots":1}"#,
                    _ => r#""result":{"roots":[]}"#,
                };
                self.send(format!(r#"{{"jsonrpc":"2.0","id":{number},{outcome}}}"#).as_bytes());
            }
            b's' => self.respond(input.byte(), true),
            b'f' => self.respond(input.byte(), false),
            b'x' => {
                let Some(key) = self.pick(input.byte()).map(|at| self.held[at].key()) else { return };
                let delivery = self.server.abandon(key, &mut self.out);
                self.answered(key, delivery.is_written());
            }
            b'p' => {
                let Some(key) = self.pick(input.byte()).map(|at| self.held[at].key()) else { return };
                let before = self.out.len();
                let progress = Progress::new(f64::from(input.byte()));
                let delivery = self.server.progress_of(key, progress, &mut self.out);
                assert_eq!(delivery.is_written(), self.out.len() > before);
                assert!(!delivery.is_written() || self.by_key(key).is_some());
            }
            b'k' => {
                let Some(key) = self.pick(input.byte()).map(|at| self.held[at].key()) else { return };
                let asked = self.server.ask(key, &InputRequest::ListRoots, self.now, &mut self.out);
                assert!(asked.is_err() || self.by_key(key).is_some());
            }
            b'K' => drop(self.server.ask_client(&InputRequest::ListRoots, self.now, &mut self.out)),
            b'g' => drop(self.server.ping(self.now, &mut self.out)),
            b'w' => self.require_input(input.byte(), input.byte() % 4),
            b'P' => {
                let change = [Change::Tools, Change::Resource("a:1"), Change::Prompts];
                let _ = self.server.publish(&change[usize::from(input.byte()) % change.len()]);
            }
            b'F' => self.server.flush_subscriptions(&mut self.out),
            b't' => self.pass(Duration::from_millis(input.byte().into())),
            b'T' => {
                let deadline = self.server.next_deadline().unwrap_or(self.now);
                if deadline > self.now {
                    let soon = (deadline - self.now).saturating_sub(Duration::from_nanos(1));
                    self.pass(soon);
                    self.check();
                    self.pass(Duration::from_nanos(1));
                }
            }
            b'C' => {
                self.server.close(&mut self.out);
                self.settle();
            }
            b'o' => {
                let event = self.server.refuse_oversized(&mut self.out);
                self.event(None, Some(event));
            }
            _ => {}
        }
    }

    fn by_key(&self, key: RequestKey) -> Option<usize> {
        self.open.iter().position(|open| open.key == key)
    }

    fn pick(&self, nth: u8) -> Option<usize> {
        (!self.held.is_empty()).then(|| usize::from(nth) % self.held.len())
    }

    /// An answer was given for the request, or discarded.
    fn answered(&mut self, key: RequestKey, written: bool) {
        let at = self.by_key(key);
        assert_eq!(written, at.is_some(), "an answer to a request that is over, or none");
        if let Some(at) = at {
            let open = self.open.swap_remove(at);
            self.due.push((open.id, open.batch));
        }
    }

    /// What the machine ended on its own was answered.
    fn settle(&mut self) {
        while let Some(at) = self.open.iter().position(|open| !self.server.is_open(open.key)) {
            let open = self.open.swap_remove(at);
            self.due.push((open.id, open.batch));
        }
    }

    fn send(&mut self, frame: &[u8]) {
        self.room += 64 * frame.len();
        let message = rpc::parse(frame, &self.limits).ok();
        let event = self.server.handle(frame, self.now, &mut self.out);
        match event {
            Some(Event::Batch(batch)) => {
                assert!(matches!(message, Some(Parsed::Batch(_))));
                self.batch = Some(self.batches);
                self.batches += 1;
                for member in batch {
                    let message = rpc::parse(member.get().as_bytes(), &self.limits).ok();
                    let event = self.server.handle_member(member, self.now, &mut self.out);
                    self.event(message, event);
                }
                self.batch = None;
            }
            event => self.event(message, event),
        }
    }

    fn event(&mut self, message: Option<Parsed<'_>>, event: Option<Event<'_>>) {
        let message = message.map(|parsed| match parsed {
            Parsed::Message(message) => Ok(message),
            other => Err(other),
        });
        match (message, event) {
            (Some(Ok(Message::Request { id, .. })), Some(Event::Request(incoming))) => {
                self.opened(id, incoming);
            }
            (Some(Ok(Message::Request { id, .. })), None) => self.due.push((id, self.batch)),
            (Some(Ok(Message::Request { id, .. })), Some(Event::Rejected(violation))) => {
                assert!(violation.answered && violation.id.as_ref() == Some(&id), "{violation:?}");
                self.due.push((id, self.batch));
            }
            (Some(Ok(Message::Notification { .. })), Some(Event::Cancelled { key, .. })) => {
                let at = self.by_key(key).expect("only what is open can be cancelled");
                self.open.swap_remove(at);
                assert!(!self.server.is_open(key));
            }
            (
                Some(Ok(Message::Notification { .. })),
                None | Some(Event::Initialized | Event::Notification(_)),
            ) => {}
            (Some(Ok(Message::Notification { .. })), Some(Event::Rejected(violation))) => {
                assert!(!violation.answered, "{violation:?}");
            }
            (Some(Ok(Message::Result { id, .. } | Message::Error { id: Some(id), .. })), event) => {
                self.asked.retain(|number| id.as_i64() != Some(*number));
                match event {
                    None | Some(Event::Answer(_) | Event::Cancelled { .. } | Event::TimedOut { .. }) => {}
                    Some(Event::Resumed(resumed)) => self.hold(resumed.key(), resumed.incoming()),
                    Some(Event::Rejected(violation)) => assert!(!violation.answered, "{violation:?}"),
                    other => panic!("{other:?}"),
                }
                self.settle();
            }
            (Some(Ok(Message::Error { id: None, .. })), None) => {}
            (_, Some(Event::Rejected(violation))) if violation.answered => match violation.id {
                Some(id) => self.due.push((id, self.batch)),
                None => self.nameless.push(self.batch),
            },
            (_, Some(Event::Rejected(_))) => {}
            (message, event) => panic!("{message:?}: {event:?}"),
        }
    }

    fn opened(&mut self, id: RequestId, incoming: Incoming<'_>) {
        assert!(self.open.iter().all(|open| open.id != id), "{id} is open twice");
        let key = incoming.pending.key();
        let deadline = (incoming.method != "subscriptions/listen").then_some(self.now + REQUEST_TIMEOUT);
        self.open.push(Open { key, id, deadline, listening: false, batch: self.batch });
        self.hold(key, incoming);
    }

    fn hold(&mut self, key: RequestKey, incoming: Incoming<'_>) {
        assert!(self.held.iter().all(|held| held.key() != key), "two rights to answer");
        assert!(self.by_key(key).is_some() && incoming.pending.key() == key);
        match incoming.typed() {
            Ok(Call::CallTool(pending, _)) => self.held.push(Held::Call(pending)),
            Ok(Call::Listen(pending, params)) => self.held.push(Held::Listen(pending, params.notifications)),
            Ok(other) => self.held.push(Held::Other(other.into_pending())),
            Err(refusal) => {
                let delivery = self.server.refuse(refusal, &mut self.out);
                self.answered(key, delivery.is_written());
            }
        }
    }

    fn respond(&mut self, nth: u8, well: bool) {
        let Some(at) = self.pick(nth) else { return };
        let held = self.held.swap_remove(at);
        let key = held.key();
        let (server, out, error) = (&mut self.server, &mut self.out, Error::internal());
        let delivery = match held {
            Held::Call(pending) if well => server.respond_raw(pending, b"{\"content\":[]}", out),
            Held::Other(pending) if well => server.respond_raw(pending, b"{}", out),
            Held::Listen(pending, filter) if well => {
                let delivery = server.acknowledge(pending, &filter, out);
                if server.is_open(key) {
                    let at = self.by_key(key).expect("it was open before");
                    self.open[at].listening = true;
                    assert!(delivery.is_written());
                    return;
                }
                delivery
            }
            Held::Call(pending) => server.fail(pending, &error, out),
            Held::Other(pending) => server.fail(pending, &error, out),
            Held::Listen(pending, _) => server.fail(pending, &error, out),
        };
        self.answered(key, delivery.is_written());
    }

    fn require_input(&mut self, nth: u8, questions: u8) {
        let Some(at) = self.pick(nth) else { return };
        if !matches!(self.held[at], Held::Call(_)) {
            return;
        }
        let Held::Call(pending) = self.held.swap_remove(at) else { unreachable!() };
        let key = pending.key();
        let mut needs = InputRequired::default().request_state("s");
        for number in 0..questions {
            needs = needs.ask(format!("q{number}"), InputRequest::ListRoots);
        }
        let was_open = self.by_key(key).is_some();
        match self.server.require_input(pending, &needs, &mut self.out) {
            Ok(delivery) => assert_eq!(delivery.is_written(), was_open),
            Err(missing) => {
                assert!(was_open);
                assert!(self.server.refuse_missing(missing, &mut self.out).is_written());
            }
        }
        self.settle();
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        // A call may come back and be out of time at once.
        let most = 2 * self.open.len() + self.asked.len() + 1;
        for events in 0.. {
            assert!(events <= most, "time stands still");
            match self.server.handle_timeout(self.now, &mut self.out) {
                None => break,
                Some(Event::TimedOut { key }) => {
                    assert!(self.by_key(key).is_some());
                    self.settle();
                    assert!(self.by_key(key).is_none());
                }
                Some(Event::Answer(answer)) => assert!(answer.outcome.is_err()),
                Some(Event::Resumed(resumed)) => self.hold(resumed.key(), resumed.incoming()),
                Some(other) => panic!("{other:?}"),
            }
        }
        assert!(self.server.next_deadline().is_none_or(|deadline| deadline > self.now), "it was due");
        assert!(self.open.iter().all(|open| open.deadline.is_none_or(|deadline| deadline > self.now)));
    }

    /// What must hold after every step.
    fn check(&mut self) {
        assert!(self.out.len() <= self.room, "{} bytes at once", self.out.len());
        let out = std::mem::take(&mut self.out);
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.is_empty() || text.ends_with('\n'));
        for line in text.lines() {
            let _: Value = serde_json::from_str(line).expect("JSON");
            match rpc::parse(line.as_bytes(), &Limits::default()).expect("a message") {
                Parsed::Message(message) => self.seen(message),
                Parsed::Batch(batch) => self.seen_array(batch),
                other => panic!("{other:?}"),
            }
        }
        // An array leaves when its last answer is there, all others at once.
        assert!(self.due.iter().all(|(_, batch)| self.waits(*batch)), "lost: {:?}", self.due);
        assert!(self.nameless.iter().all(|batch| self.waits(*batch)), "an error is lost");

        let server = &self.server;
        assert_eq!(server.in_flight(), self.open.len());
        assert!(self.open.iter().all(|open| server.is_open(open.key)));
        let listening = self.open.iter().filter(|open| open.listening).count();
        assert_eq!(server.subscriptions(), listening);
        assert!(listening <= LISTENS && self.open.len() - listening <= IN_FLIGHT);
        assert!(self.asked.len() <= QUESTIONS, "{:?}", self.asked);
        let next = server.next_deadline();
        let deadlines = self.open.iter().filter_map(|open| open.deadline);
        assert!(
            deadlines.min().is_none_or(|first| next.is_some_and(|next| next <= first)),
            "nobody wakes it"
        );
        // The rights to answer requests that are over serve no further purpose.
        if self.held.len() > 64 {
            self.held.retain(|held| server.is_open(held.key()));
        }
    }

    fn waits(&self, batch: Option<usize>) -> bool {
        batch.is_some() && self.open.iter().any(|open| open.batch == batch)
    }

    /// It holds the answers to one batch, all of them.
    fn seen_array(&mut self, array: rpc::Batch<'_>) {
        let (mut ids, mut nameless) = (Vec::new(), 0);
        for member in array {
            match rpc::parse(member.get().as_bytes(), &Limits::default()).expect("a message") {
                Parsed::Message(Message::Result { id, .. } | Message::Error { id: Some(id), .. }) => {
                    ids.push(id)
                }
                Parsed::Message(Message::Error { id: None, .. }) => nameless += 1,
                other => panic!("no answer: {other:?}"),
            }
        }
        ids.sort();
        let of = |batch| {
            let mut due: Vec<_> =
                self.due.iter().filter(|(_, of)| *of == batch).map(|(id, _)| id.clone()).collect();
            due.sort();
            due == ids && self.nameless.iter().filter(|of| **of == batch).count() == nameless
        };
        let batch = (0..self.batches).map(Some).find(|batch| !self.waits(*batch) && of(*batch));
        let batch = batch.unwrap_or_else(|| panic!("{ids:?} and {nameless} more answer no batch"));
        self.due.retain(|(_, of)| *of != batch);
        self.nameless.retain(|of| *of != batch);
    }

    fn seen(&mut self, message: Message<'_>) {
        match message {
            Message::Result { id, .. } | Message::Error { id: Some(id), .. } => {
                let at = self.due.iter().position(|(due, batch)| *due == id && batch.is_none());
                let at = at.unwrap_or_else(|| panic!("an answer for {id} that nobody gave"));
                self.due.swap_remove(at);
            }
            Message::Error { id: None, .. } => {
                let at = self.nameless.iter().position(Option::is_none);
                self.nameless.swap_remove(at.expect("an error that nobody made"));
            }
            Message::Request { id, .. } => {
                let number = id.as_i64().expect("a number");
                assert!(!self.asked.contains(&number), "{number} is asked twice");
                self.asked.push(number);
            }
            Message::Notification { method, params } => {
                assert!(params.check().is_ok());
                let text = |name| params.members().get(name).map_or("", |value| value.get());
                if method == "notifications/cancelled" && text("reason") != "\"the server is closing\"" {
                    self.asked.retain(|number| number.to_string() != text("requestId"));
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// The end of the stream: all that is open ends, and nothing stays behind.
    fn finish(mut self) {
        self.room = 1 << 20;
        self.server.end_of_input(&mut self.out);
        self.asked.clear();
        self.settle();
        for key in self.open.iter().map(|open| open.key).collect::<Vec<_>>() {
            let delivery = self.server.abandon(key, &mut self.out);
            self.answered(key, delivery.is_written());
        }
        self.check();
        assert!(self.due.is_empty() && self.nameless.is_empty() && self.asked.is_empty());
        while !self.held.is_empty() {
            self.respond(0, true);
        }
        self.check();
        self.pass(Duration::from_secs(3600));
        assert_eq!((self.server.in_flight(), self.server.next_deadline()), (0, None));
        assert!(self.out.is_empty());
    }
}

fn id(choice: u8) -> &'static str {
    IDS[usize::from(choice) % IDS.len()]
}

/// A request of either era, from three choices.
fn request(input: &mut Input<'_>) -> String {
    let (id, method, how) = (id(input.byte()), input.byte(), input.byte());
    let method = METHODS[usize::from(method) % METHODS.len()];
    let mut meta = String::new();
    if how & 1 != 0 {
        let declared = if how & 8 != 0 { r#"{"roots":{}}"# } else { "{}" };
        meta = format!(
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{declared}"#
        );
    }
    if how & 2 != 0 {
        meta += if meta.is_empty() { "" } else { "," };
        meta += &format!(r#""progressToken":{id}"#);
    }
    let uri = if how & 4 != 0 { "a:1" } else { "a:2" };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"t","uri":"{uri}","taskId":"t","level":"info","notifications":{{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}},"_meta":{{{meta}}}}}}}"#
    )
}
