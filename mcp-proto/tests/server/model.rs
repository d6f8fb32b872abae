//! The machine held against a small model of what a server owes, over random conversations in both eras
//! at once. The model is naive on purpose: lists that are searched, no bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcp_proto::model::method::{CallTool, Listen, Subscribe};
use mcp_proto::model::{CallToolResult, EmptyResult, InputRequest, InputRequired, SubscriptionFilter};
use mcp_proto::rpc::Error;
use mcp_proto::server::{
    AskError, Call, Change, Channel, Delivery, Event, Incoming, Pending, Progress, RequestKey,
};
use mcp_proto::time::Instant;
use proptest::prelude::*;
use serde_json::Value;

use super::pair::{
    EVERY_CAPABILITY, Pair, cancel, config, initialize, legacy, limits, modern, modern_of, result,
};

const IN_FLIGHT: usize = 3;
const LISTENS: usize = 2;
const URIS: usize = 2;
const QUESTIONS: usize = 3;
const ROUNDS: u32 = 2;
const REQUEST_TIMEOUT: Duration = Duration::from_millis(50);
const QUESTION_TIMEOUT: Duration = Duration::from_millis(30);

/// Few ids, so that they collide; two of them differ in their type only.
const IDS: [&str; 5] = ["0", "1", "\"1\"", "\"\"", "2"];
const RESOURCES: [&str; 3] = ["a:1", "a:2", "a:3"];

#[derive(Debug, Clone, Copy)]
enum Op {
    // What the client sends.
    Initialize { id: usize, era: usize },
    Initialized,
    Request { modern: bool, id: usize, what: What, flawed: bool },
    Cancel { id: usize },
    Answer { nth: usize, ok: bool },
    Garbage,
    // What the driver does; `nth` picks one of the rights to answer that it holds.
    Respond { nth: usize },
    Fail { nth: usize },
    Abandon { nth: usize },
    Progress { nth: usize, value: i8 },
    Ask { nth: usize },
    AskClient,
    RequireInput { nth: usize, questions: usize },
    Publish { resource: usize },
    Flush,
    Pass { millis: u64 },
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Call,
    Listen,
    Subscribe(usize),
    Own,
    Foreign,
    Unknown,
}

fn op() -> impl Strategy<Value = Op> {
    let what = prop_oneof![
        6 => Just(What::Call),
        3 => Just(What::Listen),
        3 => (0..RESOURCES.len()).prop_map(What::Subscribe),
        1 => Just(What::Own),
        1 => Just(What::Foreign),
        1 => Just(What::Unknown),
    ];
    let id = 0..IDS.len();
    let nth = 0..8usize;
    prop_oneof![
        1 => (id.clone(), 0..4usize).prop_map(|(id, era)| Op::Initialize { id, era }),
        1 => Just(Op::Initialized),
        12 => (any::<bool>(), id.clone(), what, prop::bool::weighted(0.1))
            .prop_map(|(modern, id, what, flawed)| Op::Request { modern, id, what, flawed }),
        3 => id.prop_map(|id| Op::Cancel { id }),
        4 => (nth.clone(), prop::bool::weighted(0.8)).prop_map(|(nth, ok)| Op::Answer { nth, ok }),
        1 => Just(Op::Garbage),
        6 => nth.clone().prop_map(|nth| Op::Respond { nth }),
        1 => nth.clone().prop_map(|nth| Op::Fail { nth }),
        1 => nth.clone().prop_map(|nth| Op::Abandon { nth }),
        4 => (nth.clone(), -2..6i8).prop_map(|(nth, value)| Op::Progress { nth, value }),
        2 => nth.clone().prop_map(|nth| Op::Ask { nth }),
        1 => Just(Op::AskClient),
        3 => (nth, 0..3usize).prop_map(|(nth, questions)| Op::RequireInput { nth, questions }),
        4 => (0..=RESOURCES.len()).prop_map(|resource| Op::Publish { resource }),
        3 => Just(Op::Flush),
        3 => (0..30u64).prop_map(|millis| Op::Pass { millis }),
        1 => prop::bool::weighted(0.1).prop_map(|close| if close { Op::Close } else { Op::Flush }),
    ]
}

/// A message of the server, as far as the model cares.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Out {
    Result(String),
    Error(String, i64),
    Questions(String),
    Acknowledged(String),
    Progress(String, String),
    Tools(Option<String>),
    Updated(Option<String>, String),
    Asked,
    Withdrawn(i64),
    Ended(String),
}

fn read(message: &Value) -> Out {
    let id = || message["id"].to_string();
    let params = &message["params"];
    let tag = || params["_meta"].get("io.modelcontextprotocol/subscriptionId").map(Value::to_string);
    if let Some(error) = message.get("error") {
        return Out::Error(id(), error["code"].as_i64().unwrap());
    }
    if message.get("result").is_some_and(|r| r["resultType"] == "input_required") {
        return Out::Questions(id());
    }
    match message["method"].as_str() {
        None => Out::Result(id()),
        Some("notifications/subscriptions/acknowledged") => Out::Acknowledged(tag().expect("a tag")),
        Some("notifications/progress") => {
            Out::Progress(params["progressToken"].to_string(), params["progress"].to_string())
        }
        Some("notifications/tools/list_changed") => Out::Tools(tag()),
        Some("notifications/resources/updated") => {
            Out::Updated(tag(), params["uri"].as_str().unwrap().into())
        }
        Some("notifications/cancelled") => match params["requestId"].as_i64() {
            Some(number) if params["reason"] != "the server is closing" => Out::Withdrawn(number),
            _ => Out::Ended(params["requestId"].to_string()),
        },
        Some("roots/list") => Out::Asked,
        Some(other) => panic!("unexpected {other}: {message}"),
    }
}

/// A right to answer that the driver holds. It may outlive its request.
enum Held {
    Call(Pending<CallTool>),
    Listen(Pending<Listen>, SubscriptionFilter),
    Subscribe(Pending<Subscribe>),
    Other(Pending),
}

impl Held {
    fn key(&self) -> RequestKey {
        match self {
            Self::Call(p) => p.key(),
            Self::Listen(p, _) => p.key(),
            Self::Subscribe(p) => p.key(),
            Self::Other(p) => p.key(),
        }
    }
}

/// An open request.
#[derive(Debug)]
struct Open {
    key: RequestKey,
    id: String,
    modern: bool,
    what: What,
    token: bool,
    progress: Option<i8>,
    deadline: Option<Instant>,
    rounds: u32,
    /// How many answers the parked call waits for.
    waits: Option<usize>,
    /// What an open subscription wants, each with its mark.
    listens: Option<BTreeMap<&'static str, bool>>,
}

#[derive(Debug, Default)]
struct Session {
    initialized: bool,
    tools: bool,
    uris: BTreeMap<&'static str, bool>,
}

#[derive(Debug)]
struct Question {
    number: i64,
    call: Option<RequestKey>,
    parked: bool,
    deadline: Instant,
}

struct World {
    pair: Pair,
    held: Vec<Held>,
    open: Vec<Open>,
    session: Option<Session>,
    questions: Vec<Question>,
    closed: bool,
    /// What the step owes.
    expected: Vec<Out>,
    /// Questions that the step asks, in order.
    asking: Vec<(Option<RequestKey>, bool)>,
}

impl World {
    fn new() -> Self {
        let limits = limits(|l| {
            l.max_in_flight = IN_FLIGHT;
            l.max_listens = LISTENS;
            l.max_subscribed_uris = URIS;
            l.max_client_requests = QUESTIONS;
            l.max_rounds = ROUNDS;
            l.request_timeout = Some(REQUEST_TIMEOUT);
            l.client_request_timeout = Some(QUESTION_TIMEOUT);
        });
        Self {
            pair: Pair::of(config().limits(limits).build()),
            held: Vec::new(),
            open: Vec::new(),
            session: None,
            questions: Vec::new(),
            closed: false,
            expected: Vec::new(),
            asking: Vec::new(),
        }
    }

    fn by_id(&self, id: &str) -> Option<usize> {
        self.open.iter().position(|open| open.id == id)
    }

    fn by_key(&self, key: RequestKey) -> Option<usize> {
        self.open.iter().position(|open| open.key == key)
    }

    fn owe(&mut self, out: Out) {
        self.expected.push(out);
    }

    /// The request is over: what was asked for it is taken back.
    fn end(&mut self, key: RequestKey) -> Option<Open> {
        let at = self.by_key(key)?;
        let over: Vec<i64> =
            self.questions.iter().filter(|q| q.call == Some(key)).map(|q| q.number).collect();
        self.questions.retain(|q| q.call != Some(key));
        self.expected.extend(over.into_iter().map(Out::Withdrawn));
        Some(self.open.remove(at))
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Initialize { id, era } => {
                let id = IDS[id];
                let version = super::pair::LEGACY[era];
                self.owe(match (&self.session, self.by_id(id)) {
                    (None, None) => Out::Result(id.into()),
                    _ => Out::Error(id.into(), -32600),
                });
                if self.session.is_none() && self.by_id(id).is_none() {
                    self.session = Some(Session::default());
                }
                let frame = initialize(id, version.as_str(), EVERY_CAPABILITY);
                let event = self.pair.send(&frame);
                assert!(matches!(event, None | Some(Event::Rejected(_))), "{event:?}");
            }
            Op::Initialized => {
                let event = self.pair.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
                match (&mut self.session, event) {
                    (Some(session), Some(Event::Initialized)) => session.initialized = true,
                    (None, Some(Event::Notification(_))) => {}
                    (_, event) => panic!("{event:?}"),
                }
            }
            Op::Request { modern, id, what, flawed } => self.request(modern, IDS[id], what, flawed),
            Op::Cancel { id } => {
                let open = self.by_id(IDS[id]).map(|at| self.open[at].key);
                let frame = cancel(IDS[id]);
                match (self.pair.send(&frame), open) {
                    (Some(Event::Cancelled { key, .. }), Some(open)) => assert_eq!(key, open),
                    (None, None) => {}
                    (event, open) => panic!("{event:?}, {open:?}"),
                }
                open.and_then(|key| self.end(key));
            }
            Op::Answer { nth, ok } => self.answer(nth, ok),
            Op::Garbage => {
                self.pair.refused("{\"garbage\":");
                let told = self.pair.messages();
                assert!(told.iter().all(|m| m["error"]["code"] == -32700 && m.get("id").is_none()));
            }
            Op::Respond { nth } => self.respond(nth, true),
            Op::Fail { nth } => self.respond(nth, false),
            Op::Abandon { nth } => {
                let Some(key) = self.pick(nth).map(|at| self.held[at].key()) else { return };
                let parked = self.by_key(key).is_none();
                let delivery = self.pair.server.abandon(key, &mut self.pair.out);
                assert_eq!(delivery.is_written(), !parked);
                if let Some(open) = self.end(key) {
                    self.owe(Out::Error(open.id, -32603));
                }
            }
            Op::Progress { nth, value } => {
                let Some(at) = self.pick(nth) else { return };
                let key = self.held[at].key();
                let delivery =
                    self.pair.server.progress_of(key, Progress::new(f64::from(value)), &mut self.pair.out);
                let open = self.by_key(key).map(|at| &mut self.open[at]);
                let owed =
                    open.filter(|o| o.token && o.progress.is_none_or(|last| value > last)).map(|open| {
                        open.progress = Some(value);
                        Out::Progress(open.id.clone(), value.to_string())
                    });
                assert_eq!(delivery.is_written(), owed.is_some());
                self.expected.extend(owed);
            }
            Op::Ask { nth } => {
                let Some(at) = self.pick(nth) else { return };
                let key = self.held[at].key();
                let owed = match self.by_key(key).map(|at| &self.open[at]) {
                    None => Err(AskError::RequestOver),
                    Some(open) if open.modern => Err(AskError::Modern),
                    Some(_) if self.questions.len() >= QUESTIONS => Err(AskError::TooMany),
                    Some(_) => Ok(()),
                };
                let Pair { server, out, now } = &mut self.pair;
                assert_eq!(server.ask(key, &InputRequest::ListRoots, *now, out).map(drop), owed);
                if owed.is_ok() {
                    self.owe(Out::Asked);
                    self.asking.push((Some(key), false));
                }
            }
            Op::AskClient => {
                let owed = match &self.session {
                    None => Err(AskError::Modern),
                    Some(session) if !session.initialized => Err(AskError::TooEarly),
                    Some(_) if self.questions.len() >= QUESTIONS => Err(AskError::TooMany),
                    Some(_) => Ok(()),
                };
                let Pair { server, out, now } = &mut self.pair;
                assert_eq!(server.ask_client(&InputRequest::ListRoots, *now, out).map(drop), owed);
                if owed.is_ok() {
                    self.owe(Out::Asked);
                    self.asking.push((None, false));
                }
            }
            Op::RequireInput { nth, questions } => self.require_input(nth, questions),
            Op::Publish { resource } => {
                let change = RESOURCES.get(resource).map_or(Change::Tools, |uri| Change::Resource(uri));
                let name = RESOURCES.get(resource).copied().unwrap_or("tools");
                self.pair.server.publish(&change);
                for listens in self.open.iter_mut().filter_map(|o| o.listens.as_mut()) {
                    listens.entry(name).and_modify(|due| *due = true);
                }
                if let Some(session) = &mut self.session {
                    session.uris.entry(name).and_modify(|due| *due = true);
                    session.tools |= name == "tools";
                }
            }
            Op::Flush => {
                self.pair.server.flush_subscriptions(&mut self.pair.out);
                self.flushed();
            }
            Op::Pass { millis } => {
                self.pair.now = self.pair.now + Duration::from_millis(millis);
                self.tick();
            }
            Op::Close => {
                self.pair.server.close(&mut self.pair.out);
                self.flushed();
                self.closed = true;
                let ended: Vec<_> = self.open.iter().filter(|o| o.listens.is_some()).map(|o| o.key).collect();
                for key in ended {
                    let open = self.end(key).unwrap();
                    self.owe(Out::Ended(open.id.clone()));
                    self.owe(Out::Result(open.id));
                }
            }
        }
    }

    fn request(&mut self, is_modern: bool, id: &str, what: What, flawed: bool) {
        let method = match (what, is_modern) {
            (What::Call, _) => "tools/call",
            (What::Listen, true) | (What::Foreign, false) => "subscriptions/listen",
            (What::Listen, false) => "prompts/list",
            (What::Subscribe(_), _) => "resources/subscribe",
            (What::Own, true) => "server/discover",
            (What::Own, false) | (What::Foreign, true) => "ping",
            (What::Unknown, _) => "x/y",
        };
        let uri = match what {
            What::Subscribe(nth) => RESOURCES[nth],
            _ => RESOURCES[0],
        };
        let params = format!(
            r#""name":"t","uri":"{uri}","notifications":{{"toolsListChanged":true,"resourceSubscriptions":["{}"]}}"#,
            RESOURCES[0]
        );
        let token = format!(r#""progressToken":{id}"#);
        let has_token = what == What::Call;
        let frame = match (is_modern, has_token) {
            (true, true) => modern_of(id, method, &params, "{}", &token),
            (true, false) => modern(id, method, &params),
            (false, true) => legacy(id, method, &format!(r#"{params},"_meta":{{{token}}}"#)),
            (false, false) => legacy(id, method, &params),
        };
        let frame = if flawed && is_modern { frame.replace("clientCapabilities", "x") } else { frame };
        // What the server must do, in the order in which it must look.
        let calls = self.open.iter().filter(|open| open.listens.is_none()).count();
        let granted = self.session.as_ref().map_or(0, |s| s.uris.len());
        let about_to =
            self.open.iter().filter(|open| !open.modern && matches!(open.what, What::Subscribe(_))).count();
        let known = self.session.as_ref().is_some_and(|s| s.uris.contains_key(uri));
        let flawed = if is_modern { flawed } else { self.session.is_none() && method != "ping" };
        let owed = if flawed {
            Some(Out::Error(id.into(), -32602))
        } else if what == What::Foreign || (is_modern && matches!(what, What::Subscribe(_))) {
            Some(Out::Error(id.into(), -32601))
        } else if self.by_id(id).is_some() {
            Some(Out::Error(id.into(), -32600))
        } else if what == What::Own {
            Some(Out::Result(id.into()))
        } else if calls >= IN_FLIGHT || (method == "subscriptions/listen" && self.closed) {
            Some(Out::Error(id.into(), -32603))
        } else if matches!(what, What::Subscribe(_)) && !known && granted + about_to >= URIS {
            Some(Out::Error(id.into(), -32602))
        } else {
            None
        };
        match (self.pair.send(&frame), owed) {
            (None | Some(Event::Rejected(_)), Some(owed)) => self.owe(owed),
            (Some(Event::Request(incoming)), None) => {
                assert_eq!(incoming.version.is_modern(), is_modern);
                let listen = method == "subscriptions/listen";
                self.open.push(Open {
                    key: incoming.pending.key(),
                    id: id.into(),
                    modern: is_modern,
                    what,
                    token: has_token,
                    progress: None,
                    deadline: (!listen).then_some(self.pair.now + REQUEST_TIMEOUT),
                    rounds: 0,
                    waits: None,
                    listens: None,
                });
                self.hold(incoming);
            }
            (event, owed) => panic!("{frame}: {event:?}, owed {owed:?}"),
        }
    }

    fn hold(&mut self, incoming: Incoming<'_>) {
        self.held.push(match incoming.typed().unwrap() {
            Call::CallTool(pending, _) => Held::Call(pending),
            Call::Listen(pending, params) => Held::Listen(pending, params.notifications),
            Call::Subscribe(pending, _) => Held::Subscribe(pending),
            Call::Other(incoming) => Held::Other(incoming.pending),
            Call::ListPrompts(pending, _) => {
                // Answered with an error only, so its type does not matter.
                let key = pending.key();
                assert!(self.pair.server.abandon(key, &mut self.pair.out).is_written());
                let open = self.end(key).unwrap();
                self.owe(Out::Error(open.id, -32603));
                return;
            }
            other => panic!("{other:?}"),
        });
    }

    fn pick(&self, nth: usize) -> Option<usize> {
        (!self.held.is_empty()).then(|| nth % self.held.len())
    }

    fn respond(&mut self, nth: usize, well: bool) {
        let Some(at) = self.pick(nth) else { return };
        let held = self.held.swap_remove(at);
        let key = held.key();
        let listening = self.open.iter().filter(|o| o.listens.is_some()).count();
        let Pair { server, out, .. } = &mut self.pair;
        let error = Error::internal();
        let (delivery, well) = match held {
            Held::Call(p) if well => (server.respond(p, &CallToolResult::text("x"), out), true),
            Held::Subscribe(p) if well => (server.respond(p, &EmptyResult::new(), out), true),
            Held::Other(p) if well => (server.respond_raw(p, b"{}", out), true),
            Held::Listen(p, filter) if well => {
                let delivery = server.acknowledge(p, &filter, out);
                if !self.closed && listening < LISTENS {
                    if let Some(at) = self.by_key(key) {
                        let open = &mut self.open[at];
                        open.listens = Some(BTreeMap::from([("tools", false), (RESOURCES[0], false)]));
                        let id = open.id.clone();
                        self.owe(Out::Acknowledged(id));
                        assert_eq!(delivery, Delivery::Written);
                    } else {
                        assert_eq!(delivery, Delivery::Discarded);
                    }
                    return;
                }
                (delivery, false)
            }
            Held::Call(p) => (server.fail(p, &error, out), false),
            Held::Subscribe(p) => (server.fail(p, &error, out), false),
            Held::Other(p) => (server.fail(p, &error, out), false),
            Held::Listen(p, _) => (server.fail(p, &error, out), false),
        };
        let Some(open) = self.end(key) else {
            assert_eq!(delivery, Delivery::Discarded);
            return;
        };
        assert_eq!(delivery, Delivery::Written);
        self.owe(if well { Out::Result(open.id) } else { Out::Error(open.id, -32603) });
        if let (What::Subscribe(nth), true) = (open.what, well) {
            self.session.as_mut().unwrap().uris.entry(RESOURCES[nth]).or_insert(false);
        }
    }

    fn require_input(&mut self, nth: usize, questions: usize) {
        let Some(at) = self.pick(nth) else { return };
        if !matches!(self.held[at], Held::Call(_)) {
            return;
        }
        let Held::Call(pending) = self.held.swap_remove(at) else { unreachable!() };
        let key = pending.key();
        let mut input = InputRequired::default().request_state("s");
        for n in 0..questions {
            input = input.ask(format!("q{n}"), InputRequest::ListRoots);
        }
        let outcome = self.pair.server.require_input(pending, &input, &mut self.pair.out);
        let Some(at) = self.by_key(key) else {
            assert!(matches!(outcome, Ok(Delivery::Discarded)));
            return;
        };
        if self.open[at].modern {
            // These requests declare no capabilities.
            if questions == 0 {
                assert!(matches!(outcome, Ok(Delivery::Written)));
                let open = self.end(key).unwrap();
                self.owe(Out::Questions(open.id));
            } else {
                let missing = outcome.expect_err("a capability is missing");
                assert!(self.pair.server.refuse_missing(missing, &mut self.pair.out).is_written());
                let open = self.end(key).unwrap();
                self.owe(Out::Error(open.id, -32021));
            }
            return;
        }
        assert!(matches!(outcome, Ok(Delivery::Written)));
        if self.open[at].rounds >= ROUNDS || self.questions.len() + questions > QUESTIONS {
            let open = self.end(key).unwrap();
            self.owe(Out::Error(open.id, -32603));
            return;
        }
        self.open[at].rounds += 1;
        self.open[at].waits = Some(questions);
        for _ in 0..questions {
            self.owe(Out::Asked);
            self.asking.push((Some(key), true));
        }
    }

    fn answer(&mut self, nth: usize, ok: bool) {
        if self.questions.is_empty() {
            // A response to nothing, in both shapes.
            assert!(!self.pair.refused(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#).answered);
            return;
        }
        let at = nth % self.questions.len();
        let question = self.questions.remove(at);
        let frame = if ok {
            result(&question.number.into(), "{}")
        } else {
            format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-1,"message":"no"}}}}"#, question.number)
        };
        let event = self.pair.send(&frame);
        let Some(key) = question.call.filter(|_| question.parked) else {
            match event {
                Some(Event::Answer(answer)) => {
                    assert_eq!((answer.request, answer.outcome.is_ok()), (question.call, ok));
                }
                other => panic!("{other:?}"),
            }
            return;
        };
        if !ok {
            assert!(matches!(event, Some(Event::Cancelled { key: cancelled, .. }) if cancelled == key));
            let open = self.end(key).unwrap();
            self.owe(Out::Error(open.id, -32603));
            return;
        }
        let at = self.by_key(key).expect("a question of a call that is over is withdrawn");
        let waits = self.open[at].waits.as_mut().expect("it waits");
        *waits -= 1;
        if *waits == 0 {
            self.open[at].waits = None;
            match event {
                Some(Event::Resumed(resumed)) => {
                    assert_eq!(resumed.key(), key);
                    self.hold(resumed.incoming());
                }
                other => panic!("{other:?}"),
            }
        } else {
            assert!(event.is_none(), "{event:?}");
        }
    }

    fn flushed(&mut self) {
        let mut due = Vec::new();
        let subscribers = self.open.iter_mut().filter_map(|o| Some((o.id.clone(), o.listens.as_mut()?)));
        for (id, listens) in subscribers {
            for (name, mark) in listens {
                if core::mem::take(mark) {
                    let tag = Some(id.clone());
                    due.push(if *name == "tools" {
                        Out::Tools(tag)
                    } else {
                        Out::Updated(tag, (*name).into())
                    });
                }
            }
        }
        if let Some(session) = &mut self.session {
            due.extend(core::mem::take(&mut session.tools).then_some(Out::Tools(None)));
            for (name, mark) in &mut session.uris {
                if core::mem::take(mark) {
                    due.push(Out::Updated(None, (*name).into()));
                }
            }
        }
        self.expected.extend(due);
    }

    /// What is due by now, in the model and in the machine.
    fn tick(&mut self) {
        let now = self.pair.now;
        let mut ended = BTreeSet::new();
        let mut given_up = Vec::new();
        for at in (0..self.open.len()).rev() {
            // A state without questions: the call comes back at once, and may then still be too late.
            if self.open[at].waits == Some(0) {
                self.open[at].waits = None;
            }
        }
        let late: Vec<_> =
            self.open.iter().filter(|o| o.deadline.is_some_and(|d| d <= now)).map(|o| o.key).collect();
        for key in late {
            let open = self.end(key).unwrap();
            self.owe(Out::Error(open.id, -32603));
            ended.insert(key);
        }
        while let Some(at) = self.questions.iter().position(|q| q.deadline <= now) {
            let question = self.questions.remove(at);
            self.owe(Out::Withdrawn(question.number));
            if let Some(key) = question.call.filter(|_| question.parked) {
                let open = self.end(key).unwrap();
                self.owe(Out::Error(open.id, -32603));
                ended.insert(key);
            } else {
                given_up.push(question.call);
            }
        }
        for event in self.pair.pass(0) {
            match event {
                Event::TimedOut { key } => assert!(ended.remove(&key)),
                Event::Answer(answer) => {
                    let at = given_up.iter().position(|call| *call == answer.request).expect("it was due");
                    given_up.remove(at);
                    assert!(answer.outcome.is_err());
                }
                Event::Resumed(resumed) => self.hold(resumed.incoming()),
                other => panic!("{other:?}"),
            }
        }
        assert!(ended.is_empty() && given_up.is_empty(), "{ended:?} {given_up:?}");
    }

    /// What must hold after every step.
    fn check(&mut self) {
        let messages = self.pair.messages();
        let mut seen: Vec<_> = messages.iter().map(read).collect();
        let asked: Vec<i64> = messages
            .iter()
            .filter(|m| m["method"] == "roots/list")
            .map(|m| m["id"].as_i64().unwrap())
            .collect();
        let ended = |m: &Out| if let Out::Ended(id) = m { Some(id.clone()) } else { None };
        for (at, id) in seen.iter().enumerate().filter_map(|(at, m)| Some((at, ended(m)?))) {
            let result = seen.iter().position(|m| *m == Out::Result(id.clone()));
            assert!(result.is_some_and(|result| result > at), "the result is the last word: {seen:?}");
        }
        seen.sort();
        self.expected.sort();
        assert_eq!(seen, self.expected);
        self.expected.clear();
        assert_eq!(asked.len(), self.asking.len());
        let deadline = self.pair.now + QUESTION_TIMEOUT;
        for (number, (call, parked)) in asked.into_iter().zip(self.asking.drain(..)) {
            assert!(self.questions.iter().all(|q| q.number != number), "LB-LIFE-07");
            self.questions.push(Question { number, call, parked, deadline });
        }
        if self.pair.server.next_deadline().is_some_and(|deadline| deadline <= self.pair.now) {
            self.tick();
            return self.check();
        }
        // The clock wakes the driver when something is due and not before.
        let mut deadlines: Vec<_> = self.open.iter().filter_map(|open| open.deadline).collect();
        deadlines.extend(self.questions.iter().map(|q| q.deadline));
        assert_eq!(self.pair.server.next_deadline(), deadlines.into_iter().min());

        let server = &self.pair.server;
        assert_eq!(server.in_flight(), self.open.len());
        let listening = self.open.iter().filter(|o| o.listens.is_some()).count();
        assert_eq!(server.subscriptions(), listening);
        assert!(self.open.len() - listening <= IN_FLIGHT && listening <= LISTENS);
        assert!(self.open.iter().all(|open| server.is_open(open.key)));
        assert!(self.held.iter().all(|held| {
            server.is_open(held.key()) == self.open.iter().any(|open| open.key == held.key())
        }));
        assert_eq!(server.session_version().is_some(), self.session.is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2 * ProptestConfig::default().cases))]

    /// One answer for each request and none after a cancellation or for an unknown one (S-CANCEL-06,
    /// B-CANCEL-07); bounds; progress that grows (S-PROG-01); the acknowledgment first, tags, coalescing
    /// (S-SUBS-02, S-META-07); modern requests that leave the session alone (S-STATE-01).
    #[test]
    fn the_machine_does_what_the_model_says(ops in prop::collection::vec(op(), 1..120)) {
        let mut world = World::new();
        for op in ops {
            world.step(op);
            world.check();
        }
    }
}

/// The generator reaches what the model is about: without this, a test of nothing would pass.
#[test]
fn conversations_of_the_model_are_not_trivial() {
    let mut world = World::new();
    let call = |modern, id| Op::Request { modern, id, what: What::Call, flawed: false };
    for op in [
        Op::Initialize { id: 0, era: 3 },
        Op::Initialized,
        call(false, 0),
        Op::RequireInput { nth: 0, questions: 2 },
        Op::Answer { nth: 0, ok: true },
        Op::Answer { nth: 0, ok: true },
        Op::Progress { nth: 0, value: 1 },
        Op::RequireInput { nth: 0, questions: 0 },
        Op::Request { modern: true, id: 1, what: What::Listen, flawed: false },
        Op::Respond { nth: 1 },
        Op::Publish { resource: 0 },
        Op::Flush,
        call(true, 2),
        Op::Cancel { id: 2 },
        Op::Respond { nth: 1 },
        Op::Pass { millis: 60 },
        Op::Close,
    ] {
        world.step(op);
        world.check();
    }
    assert!(world.closed && world.open.is_empty() && world.session.is_some());
}
