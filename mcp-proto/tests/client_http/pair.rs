//! The client against the project's own server, over all revisions.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_proto::client::http::{Action, Client, ExchangeId, Lost, Reader, Request as Sent};
use mcp_proto::client::{CallId, CallOptions, Event, Verdict, request};
use mcp_proto::http::{HttpSse, Settings};
use mcp_proto::model::{InputRequest, InputResponses, ProtocolVersion, SubscriptionFilter};
use mcp_proto::time::Instant;
use serde_json::{Value, json};

use crate::driver::{accept, all, config, settings};
use crate::harness::{Got, Net, Request};
use crate::kit::Kit;

/// Both sides, and what is between them: every body is cut into pieces of this size.
struct Pair {
    client: Client,
    net: Net,
    open: BTreeMap<ExchangeId, Open>,
    piece: usize,
    seen: Vec<Note>,
    requests: Vec<(&'static str, String)>,
    now: Duration,
}

struct Open {
    got: Got,
    reader: Option<Reader>,
    read: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Note {
    Ready,
    Text(CallId, String),
    Result(CallId, Value),
    Failed(CallId, String),
    Input(CallId, Vec<String>),
    Asked(mcp_proto::client::AskId),
    Progress(CallId),
    Acknowledged(CallId),
    Changed(Option<CallId>),
    Ended(CallId),
    Other(String),
}

impl Pair {
    fn new(kit: &Kit, version: &str, piece: usize) -> Self {
        let version = ProtocolVersion::parse(version).unwrap();
        let mut server = Settings::default();
        // What the client sends is strictly right.
        server.strict = piece == 7;
        if version == ProtocolVersion::V2024_11_05 {
            server.sse = Some(HttpSse::default());
        }
        let config = config().versions([version]).capabilities(all()).build();
        let mut settings = settings();
        if version == ProtocolVersion::V2024_11_05 {
            let stream = HttpSse::default().stream;
            settings.url = settings.url.join(&stream).unwrap();
        }
        let mut pair = Self {
            client: Client::new(config, settings),
            net: Net::with(&kit.service(), server),
            open: BTreeMap::new(),
            piece,
            seen: Vec::new(),
            requests: Vec::new(),
            now: Duration::from_secs(1),
        };
        pair.with(|client, now, out| drop(client.start(now, out)));
        pair
    }

    fn time(&self) -> Instant {
        Instant::from_origin(self.now)
    }

    fn with<T>(&mut self, use_it: impl FnOnce(&mut Client, Instant, &mut Vec<Action>) -> T) -> T {
        let mut out = Vec::new();
        let now = self.time();
        let done = use_it(&mut self.client, now, &mut out);
        self.run(out);
        done
    }

    fn run(&mut self, mut out: Vec<Action>) {
        for _ in 0..1000 {
            let now = self.time();
            let mut moved = !out.is_empty();
            for action in std::mem::take(&mut out) {
                match action {
                    Action::Open { exchange, request } => {
                        self.requests
                            .push((request.method, String::from_utf8_lossy(&request.body).into_owned()));
                        let got = self.net.send(&convert(&request));
                        self.open.insert(exchange, Open { got, reader: None, read: 0 });
                    }
                    Action::Close(exchange) => {
                        if let Some(open) = self.open.remove(&exchange) {
                            self.net.disconnect(open.got);
                        }
                    }
                }
            }
            self.net.settle();
            let ids: Vec<ExchangeId> = self.open.keys().copied().collect();
            for id in ids {
                moved |= self.pump(id, now, &mut out);
            }
            while self.client.next_deadline().is_some_and(|at| at <= now) {
                let event = self.client.handle_timeout(now, &mut out);
                moved |= event.is_some();
                self.seen.extend(event.as_ref().map(note));
                if event.is_none() {
                    break;
                }
            }
            if !moved && out.is_empty() {
                return;
            }
        }
        panic!("they do not come to rest");
    }

    fn pump(&mut self, id: ExchangeId, now: Instant, out: &mut Vec<Action>) -> bool {
        let Some(open) = self.open.get_mut(&id) else { return false };
        let got = open.got;
        let server = self.net.at(got);
        let Some(head) = &server.head else { return false };
        let mut moved = false;
        if open.reader.is_none() {
            let headers: Vec<(&str, &str)> =
                head.headers.iter().map(|(name, value)| (*name, &**value)).collect();
            open.reader = Some(self.client.head(id, head.status, &headers[..], now, out));
            moved = true;
        }
        let reader = open.reader.as_mut().unwrap();
        let fresh = server.body[open.read..].to_vec();
        let is_done = server.done;
        open.read += fresh.len();
        for mut piece in fresh.chunks(self.piece) {
            moved = true;
            while let Some(frame) = reader.next_frame(&mut piece) {
                let event = self.client.handle(frame, now, out);
                self.seen.extend(event.as_ref().map(note));
            }
        }
        if is_done {
            let mut open = self.open.remove(&id).unwrap();
            let event = self.client.end(open.reader.as_mut().unwrap(), Ok(()), now, out);
            self.seen.extend(event.as_ref().map(note));
            moved = true;
        }
        moved
    }

    /// Every response that has begun breaks.
    fn cut(&mut self) {
        let mut out = Vec::new();
        let now = self.time();
        for (_, mut open) in std::mem::take(&mut self.open) {
            self.net.disconnect(open.got);
            if let Some(reader) = &mut open.reader {
                let event = self.client.end(reader, Err(Lost("cut".into())), now, &mut out);
                assert!(event.is_none());
            }
        }
        self.run(out);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.net.pass(time);
        self.run(Vec::new());
    }

    fn seen(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.seen)
    }

    fn tool(&mut self, name: &str, arguments: &Value) -> CallId {
        let request = request::CallTool::with(name.to_owned(), arguments).unwrap();
        self.with(|client, now, out| {
            client.call(&request, &CallOptions::default().progress(true), now, out).unwrap()
        })
    }
}

fn convert(request: &Sent) -> Request {
    let path = match &*request.url.target() {
        "/mcp" => "/mcp",
        target => String::leak(target.to_owned()),
    };
    let mut converted = Request {
        method: request.method,
        path,
        headers: vec![("Host".into(), request.url.authority().into())],
        body: request.body.to_vec(),
    };
    for (name, value) in &request.headers {
        converted = converted.with(name, value.as_bytes());
    }
    converted
}

fn note(event: &Event<'_>) -> Note {
    match event {
        Event::Ready => Note::Ready,
        Event::Complete(done) => {
            let result: Value = serde_json::from_str(done.result.get()).unwrap();
            match result["content"][0]["text"].as_str() {
                Some(text) => Note::Text(done.call, text.into()),
                None => Note::Result(done.call, result),
            }
        }
        Event::Failed { call, error } => Note::Failed(*call, error.to_string()),
        Event::InputRequired { call, round } => {
            Note::Input(*call, round.requests.iter().map(|(key, _)| key.to_string()).collect())
        }
        Event::Asked(asked) => match &asked.request {
            InputRequest::ElicitForm(_) => Note::Asked(asked.ask),
            other => Note::Other(format!("{other:?}")),
        },
        Event::Progress { call, .. } => Note::Progress(*call),
        Event::Acknowledged { subscription, .. } => Note::Acknowledged(*subscription),
        Event::Changed { subscription, .. } => Note::Changed(*subscription),
        Event::ListenEnded { subscription, .. } => Note::Ended(*subscription),
        other => Note::Other(format!("{other:?}")),
    }
}

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

fn each(test: impl Fn(&mut Pair, &Kit, &str)) {
    for version in REVISIONS {
        for piece in [1, 7, 100_000] {
            let kit = Kit::default();
            let mut pair = Pair::new(&kit, version, piece);
            let seen = pair.seen();
            assert_eq!(seen, [Note::Ready], "{version}");
            assert_eq!(pair.client.server().unwrap().version.as_str(), version);
            test(&mut pair, &kit, version);
        }
    }
}

#[test]
fn calls_are_answered() {
    each(|pair, _, version| {
        let call = pair.tool("add", &json!({"a": 1, "b": 2}));
        assert_eq!(pair.seen(), [Note::Text(call, "3".into())], "{version}");
        let call = pair.tool("chatty", &json!({}));
        assert_eq!(pair.seen(), [Note::Progress(call), Note::Text(call, "said".into())], "{version}");
        let call = pair.tool("big", &json!({}));
        assert!(matches!(&pair.seen()[..], [Note::Text(of, text)] if *of == call && text.len() == 100_000));
        let call = pair.tool("none", &json!({}));
        assert!(matches!(&pair.seen()[..], [Note::Failed(of, _)] if *of == call), "{version}");
        let read = request::ReadResource::new("doc://a");
        let call =
            pair.with(|client, now, out| client.call(&read, &CallOptions::default(), now, out).unwrap());
        assert!(matches!(&pair.seen()[..], [Note::Result(of, _)] if *of == call), "{version}");
    });
}

/// C-HDR-07: the server checks what the client mirrors.
#[test]
fn mirrored_arguments_are_what_the_server_wants() {
    each(|pair, kit, version| {
        // Unlisted: a modern server refuses, the client lists and tries again.
        let call = pair.tool("region", &json!({"region": "é", "count": 5}));
        let text = "Some(\"é\") Some(5)";
        assert_eq!(pair.seen(), [Note::Text(call, text.into())], "{version}");
        let call = pair.tool("region", &json!({"region": null}));
        assert_eq!(pair.seen(), [Note::Text(call, "None None".into())], "{version}");
        assert_eq!(kit.began(), 2);
    });
}

#[test]
fn the_user_is_asked() {
    each(|pair, _, version| {
        if version < "2025-06-18" {
            return; // there was no elicitation
        }
        let call = pair.tool("confirm", &json!({}));
        let answer = accept(&json!({"confirm": true}));
        match &pair.seen()[..] {
            [Note::Input(of, keys)] if *of == call => {
                assert_eq!(version, "2026-07-28");
                let mut answers = InputResponses::new();
                for key in keys {
                    answers = answers.answer(key.clone(), answer.clone()).unwrap();
                }
                pair.with(|client, now, out| client.answer(call, &answers, now, out).unwrap());
            }
            [Note::Asked(ask)] => {
                assert!(pair.with(|client, now, out| client.respond(*ask, Ok(answer), now, out)));
            }
            other => panic!("{version}: {other:?}"),
        }
        assert_eq!(pair.seen(), [Note::Text(call, "true".into())], "{version}");
    });
}

/// H15
#[test]
fn a_call_that_is_given_up_is_stopped() {
    each(|pair, kit, version| {
        let call = pair.tool("wait", &json!({}));
        assert_eq!((kit.began(), kit.dropped()), (1, 0));
        assert!(pair.with(|client, now, out| client.cancel(call, None, now, out)));
        assert_eq!(kit.dropped(), 1, "{version}");
        assert_eq!(pair.seen(), [], "{version}");
        let call = pair.tool("add", &json!({"a": 1, "b": 2}));
        assert_eq!(pair.seen(), [Note::Text(call, "3".into())], "{version}");
    });
}

#[test]
fn changes_are_told() {
    each(|pair, _, version| {
        let filter: SubscriptionFilter = serde_json::from_value(json!({"toolsListChanged": true})).unwrap();
        let id =
            pair.with(|client, now, out| client.listen(filter, &CallOptions::default(), now, out).unwrap());
        assert_eq!(pair.seen(), [Note::Acknowledged(id)], "{version}");
        let call = pair.tool("change", &json!({}));
        let seen = pair.seen();
        assert!(seen.contains(&Note::Text(call, "changed".into())), "{version}: {seen:?}");
        assert!(seen.contains(&Note::Changed(Some(id))), "{version}: {seen:?}");
    });
}

/// LC-HTTP-01: the server closes the stream, and the client comes back for the answer.
#[test]
fn a_stream_that_the_server_closes_is_taken_up_again() {
    each(|pair, _, version| {
        let call = pair.tool("lets_go", &json!({}));
        for _ in 0..20 {
            pair.pass(Duration::from_secs(1));
        }
        let seen = pair.seen();
        let text = if version == "2025-11-25" { "true" } else { "false" };
        assert_eq!(seen.last(), Some(&Note::Text(call, text.into())), "{version}: {seen:?}");
    });
}

/// LC-HTTP-04, C-HTTP-08: the connection breaks in the middle of an answer.
#[test]
fn an_answer_is_taken_up_where_it_broke() {
    each(|pair, kit, version| {
        let call = pair.tool("steps", &json!({}));
        assert_eq!(pair.seen()[0], Note::Progress(call), "{version}");
        pair.cut();
        kit.gate.open();
        kit.after.open();
        pair.run(Vec::new());
        for _ in 0..3 {
            pair.pass(Duration::from_secs(1));
        }
        let seen = pair.seen();
        if version == "2026-07-28" {
            let why = "the connection broke: cut".to_owned();
            assert_eq!(seen, [Note::Failed(call, why)], "nothing is taken up again");
        } else if version == "2024-11-05" {
            let why = "the connection ended".to_owned();
            assert_eq!(seen, [Note::Failed(call, why), Note::Ready]);
            let call = pair.tool("add", &json!({"a": 1, "b": 2}));
            assert_eq!(pair.seen(), [Note::Text(call, "3".into())]);
        } else {
            assert_eq!(seen.last(), Some(&Note::Text(call, "stepped".into())), "{version}: {seen:?}");
            assert!(seen.contains(&Note::Progress(call)), "{version}: {seen:?}");
        }
    });
}

/// LC-SESS-03, LC-SESS-04: against a server that forgets, and one that is told the end.
#[test]
fn sessions_are_replaced_and_ended() {
    each(|pair, kit, version| {
        if matches!(version, "2024-11-05" | "2026-07-28") {
            return; // there are no sessions, or none beyond a stream
        }
        pair.tool("wait", &json!({}));
        kit.gate.open();
        pair.run(Vec::new());
        pair.seen();
        // The server restarts.
        pair.net = Net::new(&kit.service());
        pair.open.clear();
        let call = pair.tool("add", &json!({"a": 1, "b": 2}));
        let seen = pair.seen();
        assert_eq!(seen.last(), Some(&Note::Text(call, "3".into())), "{version}: {seen:?}");
        pair.with(|client, now, out| client.close(now, out));
        assert!(pair.client.is_closed());
        assert_eq!(pair.requests.last().map(|(method, _)| *method), Some("DELETE"));
    });
}

/// C-COMPAT-01: the verdict spares the question.
#[test]
fn eras_are_found_and_remembered() {
    let kit = Kit::default();
    let service = kit.service();
    let mut first: Option<Verdict> = None;
    for round in 0..2 {
        let client = Client::new(config().assume(first).build(), settings());
        let mut pair = Pair {
            client,
            net: Net::new(&service),
            open: BTreeMap::new(),
            piece: 100,
            seen: Vec::new(),
            requests: Vec::new(),
            now: Duration::from_secs(1),
        };
        let event = pair.with(|client, now, out| client.start(now, out).is_some());
        assert_eq!(event, round == 1);
        let call = pair.tool("add", &json!({"a": 1, "b": 2}));
        assert!(pair.seen().contains(&Note::Text(call, "3".into())));
        assert_eq!(pair.requests.len(), 2 - round);
        first = pair.client.verdict();
        assert_eq!(first, Some(Verdict::new(ProtocolVersion::V2026_07_28)));
    }
}
