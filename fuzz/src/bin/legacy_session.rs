//! A session of a legacy client over HTTP against a small model of it: each message is on one stream, in
//! order; each answer on the stream of the request that it answers; whoever comes back after an event is sent
//! what followed it and nothing else; and after the end there is nothing.
//!
//! The first line chooses the revision. Each other line is one step: its first letter says which, the byte
//! after it which response, request or event it is about.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use mcp_proto::codec::{SseDecoder, SseFrame};
use mcp_proto::http::session::Stream;
use mcp_proto::http::{Endpoint, Events, Response, ResponseHead, Session, Settings, Taken};
use mcp_proto::limits::Limits;
use mcp_proto::model::{Implementation, InputRequest, ProtocolVersion, ServerCapabilities};
use mcp_proto::rpc::{self, Error, Message, Parsed};
use mcp_proto::server::{Channel, Config, Event, Pending, Progress, RequestKey};
use mcp_proto::time::Instant;
use mcp_proto_fuzz::{Input, Request};

const ID: &str = "s-1";
const IDLE: Duration = Duration::from_secs(60);

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let Some(mut world) = World::new(Input::new(input.line())) else { return };
    while !input.is_empty() {
        let mut step = Input::new(input.line());
        let letter = step.byte();
        world.step(letter, step.byte(), step.byte());
        world.check();
    }
    world.finish();
});

/// What a message is, as far as the model tells them apart.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Said {
    Progress { of: i64, step: i64 },
    Answer { of: i64 },
    Ask,
    Note(i64),
    Cancelled,
}

/// A response.
struct Reader {
    stream: Option<Stream>,
    number: u64,
    head: Option<ResponseHead>,
    decoder: SseDecoder,
    json: Vec<u8>,
    /// How many messages of its stream came before it.
    from: usize,
    got: Vec<Said>,
    is_stale: bool,
}

/// A request that a handler has.
struct Held {
    pending: Pending,
    key: RequestKey,
    id: i64,
    number: u64,
    is_plain: bool,
    steps: i64,
}

struct World {
    endpoint: Endpoint,
    session: Session,
    version: ProtocolVersion,
    now: Instant,
    used: Instant,
    readers: Vec<Reader>,
    held: Vec<Held>,
    /// What was said on each stream of a POST, by its number.
    said: BTreeMap<u64, Vec<Said>>,
    /// Streams on which nothing more comes.
    complete: Vec<u64>,
    /// What belongs to no request.
    loose: Vec<Said>,
    /// How much of it was sent on a GET that resumed nothing.
    loose_sent: usize,
    get: Option<u64>,
    /// Every id of an event, with its stream and how many messages came up to it.
    ids: BTreeMap<String, (u64, usize)>,
    asks: Vec<String>,
    requests: i64,
    notes: i64,
    is_over: bool,
    is_closing: bool,
}

impl World {
    fn new(mut choices: Input<'_>) -> Option<Self> {
        let (version, how) = (choices.byte(), choices.byte());
        let version = ProtocolVersion::ALL[usize::from(version) % 4];
        let mut limits = Limits::default();
        limits.client_request_timeout = None;
        // Nothing is forgotten here: what is, is another test's.
        limits.event_log_bytes = 1 << 24;
        limits.event_log_events = 1 << 16;
        limits.max_client_requests = 1 << 12;
        limits.max_in_flight = 1 << 12;
        let config = Config::builder(Implementation::new("server", "1"))
            .capabilities(ServerCapabilities::new().tools(true).resources(true, true).logging())
            .limits(limits)
            .build();
        let mut settings = Settings::default();
        settings.keep_alive = None;
        if how & 1 != 0 {
            settings.events = Events::Always;
        }
        let endpoint = Endpoint::new(config, settings);
        let now = Instant::from_origin(Duration::from_secs(1));
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"roots":{{}}}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
        );
        let head = head("POST", 3);
        let Taken::Initialize(post) = endpoint.take(&head, body.as_bytes()) else {
            panic!("it is `initialize`")
        };
        let (session, response) = Session::initialize(&endpoint, post, ID, now).expect("a session");
        assert_eq!(response.head.header("mcp-session-id"), Some(ID));
        Some(Self {
            endpoint,
            session,
            version,
            now,
            used: now,
            readers: Vec::new(),
            held: Vec::new(),
            said: BTreeMap::new(),
            complete: Vec::new(),
            loose: Vec::new(),
            loose_sent: 0,
            get: None,
            ids: BTreeMap::new(),
            asks: Vec::new(),
            requests: 0,
            notes: 0,
            is_over: false,
            is_closing: false,
        })
    }

    fn step(&mut self, letter: u8, choice: u8, more: u8) {
        match letter {
            b'p' => self.call(1 + choice % 3),
            b'i' => self.note(r#""method":"notifications/initialized""#),
            b'x' => {
                if let Some(held) = self.pick(choice) {
                    let (id, key, number) = (held.id, held.key, held.number);
                    self.note(&format!(
                        r#""method":"notifications/cancelled","params":{{"requestId":{id}}}"#
                    ));
                    if !self.is_over {
                        assert!(!self.session.connection().is_open(key));
                        self.complete.push(number);
                    }
                }
            }
            b'r' | b'f' => self.respond(choice, letter == b'r'),
            b'g' => {
                let Some(held) = self.pick_mut(choice) else { return };
                held.steps += 1;
                let (key, of, step, number, is_plain) =
                    (held.key, held.id, held.steps, held.number, held.is_plain);
                let delivery = self.session.progress_of(key, Progress::new(step as f64), &mut Vec::new());
                if delivery.is_written() {
                    self.say(number, is_plain, Said::Progress { of, step });
                }
            }
            b'a' => {
                let Some(held) = self.pick(choice) else { return };
                let (key, number, is_plain) = (held.key, held.number, held.is_plain);
                if self.session.ask(key, &InputRequest::ListRoots, self.now).is_ok() {
                    self.say(number, is_plain, Said::Ask);
                }
            }
            b'q' => {
                if !self.asks.is_empty() {
                    let id = self.asks.swap_remove(usize::from(choice) % self.asks.len());
                    self.note(&format!(r#""id":{id},"result":{{"roots":[]}}"#));
                }
            }
            b'k' => {
                self.notes += 1;
                let note = self.notes;
                let params =
                    |out: &mut Vec<u8>| out.extend_from_slice(format!("{{\"n\":{note}}}").as_bytes());
                if self.session.notify("notifications/own", params).is_written() {
                    self.loose.push(Said::Note(note));
                }
            }
            b'G' => self.open_get(),
            b'l' => self.resume(choice, more),
            b'w' => {
                let open: Vec<usize> = self.live().collect();
                if let Some(at) = open.get(usize::from(choice) % open.len().max(1)) {
                    self.write(*at, usize::from(more) * 16);
                }
            }
            b'W' => self.write_all(),
            b'd' => {
                let open: Vec<usize> = self.live().collect();
                if let Some(at) = open.get(usize::from(choice) % open.len().max(1))
                    && let Some(stream) = self.readers[*at].stream.take()
                {
                    self.session.disconnect(stream);
                }
            }
            b'c' => {
                if let Some(held) = self.pick(choice) {
                    let key = held.key;
                    let can = self.session.close_stream(key);
                    assert!(!can || self.version.has_priming_events());
                }
            }
            b't' => {
                self.now = self.now + Duration::from_secs(choice.into());
                while self.session.handle_timeout(self.now).is_some() {}
                // As a server does it that forgets who does not come back.
                if self.session.is_idle() && self.now.saturating_duration_since(self.used) >= IDLE {
                    self.over();
                }
            }
            b'C' => {
                self.is_closing = true;
                self.session.close();
            }
            b'D' => {
                assert!(matches!(self.endpoint.take(&head("DELETE", 3), b""), Taken::End(id) if id == ID));
                self.over();
            }
            _ => {}
        }
    }

    fn over(&mut self) {
        self.is_over = true;
        self.session.end();
    }

    fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.readers.len()).filter(|at| self.readers[*at].stream.is_some())
    }

    fn pick(&self, choice: u8) -> Option<&Held> {
        self.held.get(usize::from(choice) % self.held.len().max(1))
    }

    fn pick_mut(&mut self, choice: u8) -> Option<&mut Held> {
        let count = self.held.len().max(1);
        self.held.get_mut(usize::from(choice) % count)
    }

    fn say(&mut self, number: u64, is_plain: bool, said: Said) {
        // A client that takes no events can hear it elsewhere only.
        if is_plain && !matches!(said, Said::Answer { .. }) {
            // Nor does it hear anything once its response broke.
            if self.is_attached(number) {
                self.loose.push(said);
            }
        } else {
            self.said.entry(number).or_default().push(said);
        }
    }

    fn call(&mut self, accepts: u8) {
        self.requests += 1;
        let id = self.requests;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","_meta":{{"progressToken":{id}}}}}}}"#
        );
        let head = head("POST", accepts);
        let Taken::Session(ID, post) = self.endpoint.take(&head, body.as_bytes()) else {
            panic!("it belongs to the session")
        };
        self.used = self.now;
        match self.session.post(post, self.now) {
            Err(response) => self.refused(&response, 404),
            Ok((stream, event)) => {
                assert!(!self.is_over);
                let stream = stream.expect("a request has a response");
                let number = stream.number();
                assert!(self.said.insert(number, Vec::new()).is_none(), "a stream that was there");
                self.readers.push(Reader::new(stream, 0));
                match event {
                    Some(Event::Request(incoming)) => {
                        let key = incoming.pending.key();
                        let is_plain = accepts == 1;
                        let pending = incoming.pending;
                        self.held.push(Held { pending, key, id, number, is_plain, steps: 0 });
                    }
                    // The machine has answered.
                    _ => self.answered(id, number),
                }
            }
        }
    }

    fn answered(&mut self, id: i64, number: u64) {
        self.say(number, false, Said::Answer { of: id });
        self.complete.push(number);
    }

    fn note(&mut self, members: &str) {
        let body = format!(r#"{{"jsonrpc":"2.0",{members}}}"#);
        let head = head("POST", 3);
        let Taken::Session(ID, post) = self.endpoint.take(&head, body.as_bytes()) else {
            panic!("it belongs to the session")
        };
        self.used = self.now;
        match self.session.post(post, self.now) {
            Err(response) => self.refused(&response, 404),
            Ok((stream, _)) => assert!(stream.is_none(), "nobody waits for an answer"),
        }
    }

    fn refused(&self, response: &Response, status: u16) {
        assert!(self.is_over || status != 404, "it is not over: {response:?}");
        let expected = if self.is_over { 404 } else { status };
        assert_eq!(response.head.status, expected);
        assert!(matches!(
            rpc::parse(&response.body, &Limits::default()),
            Ok(Parsed::Message(Message::Error { .. }))
        ));
    }

    fn respond(&mut self, choice: u8, well: bool) {
        if self.held.is_empty() {
            return;
        }
        let held = self.held.swap_remove(usize::from(choice) % self.held.len());
        let out = &mut Vec::new();
        let was_open = self.session.connection().is_open(held.key);
        let delivery = if well {
            self.session.respond_raw(held.pending, b"{\"content\":[]}", out)
        } else {
            self.session.fail(held.pending, &Error::internal(), out)
        };
        assert!(out.is_empty(), "it goes into the streams");
        assert_eq!(delivery.is_written(), was_open);
        if was_open {
            self.answered(held.id, held.number);
        }
    }

    /// Whether the newest response of this stream goes on.
    fn is_attached(&self, number: u64) -> bool {
        let newest = self.readers.iter().rfind(|reader| reader.number == number);
        newest.is_some_and(|reader| reader.stream.is_some())
    }

    fn open_get(&mut self) {
        let head = head("GET", 2);
        assert!(matches!(self.endpoint.take(&head, b""), Taken::Stream { session: ID, last_event_id: None }));
        let is_taken = self.get.is_some_and(|number| self.is_attached(number));
        self.used = self.now;
        match self.session.get(self.now) {
            Err(response) => {
                assert!(is_taken || self.is_over);
                self.refused(&response, 409);
            }
            Ok(stream) => {
                assert!(!is_taken && !self.is_over);
                assert!(!self.said.contains_key(&stream.number()), "the stream of a POST");
                self.get = Some(stream.number());
                let from = self.loose_sent;
                self.readers.push(Reader::new(stream, from));
            }
        }
    }

    fn resume(&mut self, choice: u8, more: u8) {
        let at = usize::from(choice) + usize::from(more) * 256;
        let Some((id, (number, from))) = self.ids.iter().nth(at % self.ids.len().max(1)) else {
            // Nothing was ever sent.
            match self.session.resume("0-0", self.now) {
                Err(response) => self.refused(&response, 400),
                Ok(_) => panic!("an id that was never sent"),
            }
            return;
        };
        let (id, number, from) = (id.clone(), *number, *from);
        let head = head("GET", 2).with("last-event-id", id.as_bytes());
        let Taken::Stream { session: ID, last_event_id: Some(last) } = self.endpoint.take(&head, b"") else {
            panic!("it resumes a stream")
        };
        assert_eq!(last, id);
        self.used = self.now;
        match self.session.resume(last, self.now) {
            Err(response) => {
                assert!(self.is_over, "{id} was sent, and nothing is forgotten");
                self.refused(&response, 400);
            }
            Ok(stream) => {
                assert!(!self.is_over);
                assert_eq!(stream.number(), number, "another stream");
                for reader in &mut self.readers {
                    reader.is_stale |= reader.number == number && reader.stream.is_some();
                }
                self.readers.push(Reader::new(stream, from));
            }
        }
    }

    fn write(&mut self, at: usize, room: usize) {
        let Self { readers, session, .. } = self;
        let Some(mut stream) = readers[at].stream.take() else { return };
        let mut out = Vec::new();
        let done = session.write(&mut stream, room, &mut out);
        let reader = &mut readers[at];
        if let Some(head) = stream.take_head() {
            assert!(reader.head.is_none(), "a second head");
            reader.head = Some(head);
        }
        assert!(out.is_empty() || reader.head.is_some(), "bytes before the head");
        if !done {
            reader.stream = Some(stream);
        }
        self.got(at, &out, done);
    }

    fn got(&mut self, at: usize, bytes: &[u8], done: bool) {
        let Self { readers, ids, said, asks, loose, loose_sent, get, is_over, complete, .. } = self;
        let reader = &mut readers[at];
        assert!(!reader.is_stale || bytes.is_empty() || reader.head.is_some());
        let Some(head) = &reader.head else {
            assert!(done || bytes.is_empty());
            assert!(!done || reader.is_stale || *is_over, "a response without a head");
            return;
        };
        let is_get = !said.contains_key(&reader.number);
        let is_first = is_get && *get == Some(reader.number) || reader.from >= *loose_sent;
        match (head.status, head.header("content-type")) {
            (404, _) => {
                assert!(*is_over && done);
                return;
            }
            (202, None) => {
                assert!(done && bytes.is_empty() && complete.contains(&reader.number));
                return;
            }
            (200, Some("application/json")) => {
                assert!(!is_get);
                reader.json.extend_from_slice(bytes);
                assert!(done);
                reader.got.push(meaning(&reader.json, asks));
            }
            (200, Some("text/event-stream")) => {
                let mut rest = bytes;
                while let Some(frame) = reader.decoder.next_frame(&mut rest) {
                    let SseFrame::Event(event) = frame else { panic!("an event that is too long") };
                    if !event.data.is_empty() {
                        let found = meaning(event.data, asks);
                        if found != Said::Cancelled {
                            reader.got.push(found);
                        }
                    }
                    if let Some(id) = event.id {
                        let place = (reader.number, reader.from + reader.got.len());
                        let before = ids.insert(id.to_owned(), place);
                        assert!(before.is_none_or(|before| before == place), "the id {id} in two places");
                    }
                }
            }
            other => panic!("{other:?}"),
        }
        let all = if is_get { &*loose } else { &said[&reader.number] };
        let json = head.header("content-type") == Some("application/json");
        let expected = if json { all.last().map(std::slice::from_ref) } else { all.get(reader.from..) };
        let expected = expected.unwrap_or_default();
        assert!(
            expected.starts_with(&reader.got),
            "from {}: expected {expected:?}, got {:?}",
            reader.from,
            reader.got
        );
        if is_get && is_first {
            *loose_sent = (*loose_sent).max(reader.from + reader.got.len());
        }
    }

    fn write_all(&mut self) {
        for at in self.live().collect::<Vec<_>>() {
            for _ in 0..10_000 {
                let before = self.readers[at].got.len();
                self.write(at, 1 << 20);
                if self.readers[at].stream.is_none() || self.readers[at].got.len() == before {
                    break;
                }
            }
        }
    }

    fn check(&mut self) {
        while self.session.next_ready().is_some() {}
        let in_flight = self.held.iter().filter(|held| self.session.connection().is_open(held.key)).count();
        assert_eq!(self.session.connection().in_flight(), in_flight);
        assert!(self.session.next_deadline().is_none_or(|due| due > self.now));
    }

    /// Everything is answered; whoever has an id comes back for the rest; a last GET hears what is left.
    fn finish(&mut self) {
        while !self.held.is_empty() {
            self.respond(0, true);
        }
        self.write_all();
        if self.is_over {
            assert!(self.live().next().is_none(), "a response after the end of the session");
            self.open_get();
            self.call(3);
            self.note(r#""method":"notifications/initialized""#);
            return;
        }
        let mut last: BTreeMap<u64, (String, usize)> = BTreeMap::new();
        for (id, (number, from)) in &self.ids {
            let newest = last.entry(*number).or_insert_with(|| (id.clone(), *from));
            if newest.1 < *from {
                *newest = (id.clone(), *from);
            }
        }
        for (number, (id, from)) in last {
            let Some(all) = self.said.get(&number).map(Vec::len) else { continue };
            if !self.complete.contains(&number) {
                continue;
            }
            let Ok(stream) = self.session.resume(&id, self.now) else {
                panic!("{id} was sent, and nothing is forgotten")
            };
            self.readers.push(Reader::new(stream, from));
            self.write_all();
            let reader = self.readers.last().expect("it was pushed");
            assert!(reader.stream.is_none(), "the stream is complete and does not end");
            assert_eq!(reader.from + reader.got.len(), all, "lost on stream {number}");
        }
        if self.get.is_none_or(|number| !self.is_attached(number)) {
            self.open_get();
        }
        self.write_all();
        assert_eq!(self.loose_sent, self.loose.len(), "lost: {:?}", &self.loose[self.loose_sent..]);
    }
}

impl Reader {
    fn new(stream: Stream, from: usize) -> Self {
        let number = stream.number();
        Self {
            stream: Some(stream),
            number,
            head: None,
            decoder: SseDecoder::new(1 << 16),
            json: Vec::new(),
            from,
            got: Vec::new(),
            is_stale: false,
        }
    }
}

fn head(method: &str, accepts: u8) -> Request {
    let accepts = ["", "application/json", "text/event-stream", "application/json, text/event-stream"]
        [usize::from(accepts)];
    Request::new(method, "/mcp")
        .with("host", b"localhost")
        .with("content-type", b"application/json")
        .with("accept", accepts.as_bytes())
        .with("mcp-session-id", ID.as_bytes())
}

fn meaning(text: &[u8], asks: &mut Vec<String>) -> Said {
    let number = |params: &rpc::Params<'_>, member: &str| {
        let raw = params.members().get(member).expect("a member");
        raw.get().trim_end_matches(".0").parse::<i64>().expect("a number")
    };
    match rpc::parse(text, &Limits::default()) {
        Ok(Parsed::Message(Message::Result { id, .. } | Message::Error { id: Some(id), .. })) => {
            Said::Answer { of: id.as_i64().expect("a number") }
        }
        Ok(Parsed::Message(Message::Request { id, .. })) => {
            asks.push(id.to_string());
            Said::Ask
        }
        Ok(Parsed::Message(Message::Notification { method, params })) => match &*method {
            "notifications/progress" => {
                Said::Progress { of: number(&params, "progressToken"), step: number(&params, "progress") }
            }
            "notifications/own" => Said::Note(number(&params, "n")),
            "notifications/cancelled" => Said::Cancelled,
            other => panic!("{other}"),
        },
        other => panic!("{other:?}: {}", String::from_utf8_lossy(text)),
    }
}
