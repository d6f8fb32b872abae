//! Playing one exchange with a client: events in, words of the server and a verdict out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, Invitation};
use super::house::House;
use super::informed::Informed;
use super::rules::Ledger;
use super::stage::{Conn, Doors, Event, Stage, WebRequest};
use super::talk::Voice;
use crate::exchange::{Exchange, HostStep, Hosted, Transport};
use crate::invariants::Breach;
use crate::pattern::{Scope, template};
use crate::replay::{Direction, Entry, Finding};
use crate::requirement::{self, Level};
use crate::revision::Revision;
use crate::schema::Schemas;
use crate::subject::Exit;
use crate::text::{printable, shorten};

/// How long something is waited for if the step does not say: no verdict is to depend on how busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

/// The connections of a client end with it, and then nothing more can come; unless a program that it left behind has
/// them, too.
const LAST_BREATH: Duration = Duration::from_secs(3);

/// More of a transcript says nothing new.
const TRANSCRIPT_ENTRIES: usize = 400;
const TRANSCRIPT_TEXT: usize = 2_000;

/// Where an exchange is played.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Setting<'e> {
    /// The exchange.
    pub exchange: &'e Exchange,
    /// The revision of the server.
    pub revision: Revision,
    /// How long something is waited for where the exchange does not say.
    pub patience: Option<Duration>,
    /// The official schemas, if messages are held against them.
    pub schemas: Option<&'e Schemas>,
}

impl<'e> Setting<'e> {
    /// An exchange under a revision.
    #[must_use]
    pub const fn new(
        exchange: &'e Exchange,
        revision: Revision,
        patience: Option<Duration>,
        schemas: Option<&'e Schemas>,
    ) -> Self {
        Self { exchange, revision, patience, schemas }
    }
}

/// What came out of it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Played {
    /// What was found.
    pub findings: Vec<Finding>,
    /// What passed.
    pub transcript: Vec<Entry>,
    /// What the client lacks, if it said so.
    pub lacks: Option<String>,
}

/// Plays an exchange with a client to its end.
///
/// # Errors
///
/// The client cannot be started, or the exchange cannot be played.
pub fn play(setting: &Setting<'_>, client: &dyn Client) -> Result<Played, String> {
    let hosted = setting.exchange.hosted.as_ref().ok_or("an exchange for servers")?;
    let head = &setting.exchange.head;
    let transport = client.transport();
    let doors = Doors::open(transport).map_err(|error| error.to_string())?;
    let mut scope = Scope::new(setting.revision);
    if let Some(other) = doors.other() {
        let address = doors.address();
        for (name, value) in [
            ("url", json!(format!("http://{address}/mcp"))),
            ("authority", json!(address.to_string())),
            ("port", json!(address.port())),
            ("target", json!("/mcp")),
            ("elsewhere", json!(format!("http://{other}/mcp"))),
        ] {
            scope.values.insert(name.to_owned(), value);
        }
    }
    let plan = template::fill(&hosted.plan, &scope)?.unwrap_or_default();
    let house = House::new(hosted, setting.revision, head.handshake, &scope)?;
    let invitation = Invitation {
        place: Stage::place(&doors, transport),
        scenario: head.name.clone(),
        revision: setting.revision,
        context: json!({"name": head.name, "plan": plan}),
    };
    let stage = Stage::set(doors, transport, client, &invitation).map_err(|error| error.to_string())?;
    let mut game = Game {
        exchange: setting.exchange,
        hosted,
        revision: setting.revision,
        transport,
        patience: setting.patience.unwrap_or(PATIENCE),
        schemas: setting.schemas,
        stage,
        voice: Voice::new(transport),
        house,
        ledger: Ledger::new(setting.revision, transport),
        scope,
        at: 0,
        begun: None,
        said: None,
        taken: Vec::new(),
        inbox: VecDeque::new(),
        reports: VecDeque::new(),
        recent: Vec::new(),
        calls: Vec::new(),
        own: Vec::new(),
        next_id: 1,
        sessions: 0,
        standing: BTreeMap::new(),
        process: None,
        starts: (0, 1),
        stream: None,
        informed: Informed::default(),
        live: BTreeSet::new(),
        closed: BTreeSet::new(),
        silent: false,
        exit: None,
        unsealed: None,
        findings: Vec::new(),
        transcript: Vec::new(),
        lacks: None,
    };
    game.run();
    Ok(Played { findings: game.findings, transcript: game.transcript, lacks: game.lacks })
}

/// One exchange under way.
pub(super) struct Game<'e> {
    pub(super) exchange: &'e Exchange,
    pub(super) hosted: &'e Hosted,
    pub(super) revision: Revision,
    pub(super) transport: Transport,
    pub(super) patience: Duration,
    schemas: Option<&'e Schemas>,
    pub(super) stage: Stage,
    pub(super) voice: Voice,
    house: House,
    pub(super) ledger: Ledger,
    pub(super) scope: Scope,
    /// The current step, and when it began.
    pub(super) at: usize,
    pub(super) begun: Option<Duration>,
    /// When the step before began, if it was something that the server says: the client cannot have heard it before.
    pub(super) said: Option<Duration>,
    /// Which alternatives of the current step were met, or how often it was.
    pub(super) taken: Vec<usize>,
    pub(super) inbox: VecDeque<Arrival>,
    pub(super) reports: VecDeque<Value>,
    /// What arrived since the current step began, whoever dealt with it.
    pub(super) recent: Vec<(Duration, Value)>,
    pub(super) calls: Vec<Call>,
    /// Requests of the server: name and id.
    pub(super) own: Vec<(Option<String>, Value)>,
    pub(super) next_id: u64,
    sessions: u64,
    /// By method: the answer, how many there may be, how many there were.
    pub(super) standing: BTreeMap<String, (Value, Option<u64>, u64)>,
    /// The server program at hand.
    pub(super) process: Option<Conn>,
    /// How often it was started, and how often that was expected.
    pub(super) starts: (usize, usize),
    /// The stream of the session.
    pub(super) stream: Option<Conn>,
    /// Which requests were sent by a client that knows of the end of its session.
    informed: Informed,
    /// Connections that are not at their end.
    live: BTreeSet<Conn>,
    pub(super) closed: BTreeSet<Conn>,
    silent: bool,
    exit: Option<Exit>,
    /// After the end of the client: how many of the listeners may still have connections that it made.
    unsealed: Option<usize>,
    pub(super) findings: Vec<Finding>,
    transcript: Vec<Entry>,
    pub(super) lacks: Option<String>,
}

/// Something of the client that waits for a step.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) at: Duration,
    pub(super) conn: Conn,
    /// The message; for an HTTP request without one `{"http": METHOD, "path": …}`.
    pub(super) message: Value,
    pub(super) web: Option<WebRequest>,
}

/// A request that a step took.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) name: Option<String>,
    pub(super) conn: Conn,
    pub(super) message: Value,
    pub(super) web: Option<WebRequest>,
    pub(super) answered: bool,
}

impl From<Arrival> for Call {
    fn from(arrival: Arrival) -> Self {
        let Arrival { conn, message, web, .. } = arrival;
        Self { name: None, conn, message, web, answered: false }
    }
}

impl Arrival {
    /// Whether it is a request.
    pub(super) fn asks(&self) -> bool {
        self.message.get("method").is_some() && self.message.get("id").is_some()
    }

    pub(super) fn method(&self) -> Option<&str> {
        self.message.get("method").and_then(Value::as_str)
    }

    pub(super) fn plain(&self) -> Option<&str> {
        self.message.get("http").and_then(Value::as_str)
    }
}

impl Call {
    pub(super) fn method(&self) -> &str {
        self.message.get("method").and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn is_modern(&self) -> bool {
        self.message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some()
    }
}

/// What a step comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next one.
    Next,
    /// Something has to happen until this time.
    Wait(Duration),
    /// The exchange cannot go on.
    Stop,
}

/// How a step was not met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Differs,
    Broken,
}

impl<'e> Game<'e> {
    fn run(&mut self) {
        loop {
            match self.step() {
                Flow::Next => {
                    let begun = self.begun.take();
                    let step = self.current().filter(|step| self.runs(step));
                    if let Some(step) = step {
                        self.said = begun.filter(|_| step.act.says());
                    }
                    self.at += 1;
                }
                Flow::Wait(until) => {
                    self.hear(until);
                    if self.lacks.is_some() {
                        return;
                    }
                }
                Flow::Stop => return,
            }
            if self.at >= self.hosted.steps.len() {
                break;
            }
        }
        if !self.findings.iter().any(|finding| finding.level == Level::Must) {
            self.end();
        }
    }

    /// The steps are done: the client has to come to its end.
    fn end(&mut self) {
        let until = self.stage.now() + self.patience;
        while !self.is_over() && self.lacks.is_none() {
            if self.stage.now() >= until {
                let expected = "the client exits when its plan is done".to_owned();
                self.breach(Level::Must, "end", expected, "it still runs".to_owned());
                return;
            }
            self.hear(until);
        }
        if self.lacks.is_some() {
            return;
        }
        while let Some((at, event)) = self.stage.wait(self.stage.now()) {
            self.take(at, event);
        }
        let exit = self.exit.clone();
        if let Some(exit) = exit.filter(|exit| exit.code.is_none_or(|code| code == 101)) {
            let expected = "the client ends by itself".to_owned();
            self.breach(Level::Must, "crash", expected, exit.text);
        }
        let ignorable = |arrival: &Arrival| {
            arrival.message.get("id").is_none() && arrival.plain().is_none()
                || matches!(arrival.method(), Some("subscriptions/listen"))
        };
        if let Some(left) = self.inbox.iter().find(|arrival| !ignorable(arrival)).cloned() {
            let got = shorten(&left.message.to_string(), 300);
            self.breach(Level::Must, "unasked", "nothing that the exchange does not ask for".to_owned(), got);
        }
        for breach in self.ledger.finish() {
            self.found(breach);
        }
    }

    /// The step at hand, if it runs here.
    pub(super) fn current(&self) -> Option<&'e HostStep> {
        self.hosted.steps.get(self.at)
    }

    pub(super) fn runs(&self, step: &HostStep) -> bool {
        step.only.contains(self.revision) && step.over.is_none_or(|over| over == self.transport)
    }

    /// Whether nothing more can come from the client.
    pub(super) fn is_over(&self) -> bool {
        self.silent && self.exit.is_some() && self.unsealed == Some(0) && self.live.is_empty()
    }

    /// Waits for one event and takes it.
    fn hear(&mut self, until: Duration) {
        let now = self.stage.now();
        let mut until = until;
        if self.silent {
            if self.exit.is_none() {
                self.exit = self.stage.exit();
                if let Some(exit) = self.exit.clone() {
                    self.note(Direction::Event, &exit.text);
                    self.unsealed = Some(self.stage.seal());
                }
            }
            if self.exit.is_some() {
                until = until.min(now + LAST_BREATH);
            } else {
                until = until.min(now + Duration::from_millis(5));
            }
        }
        match self.stage.wait(until) {
            Some((at, event)) => self.take(at, event),
            // What its end left open is not closed any more.
            None if self.exit.is_some() && self.stage.now() >= now + LAST_BREATH => {
                self.live.clear();
                self.unsealed = Some(0);
            }
            None => {}
        }
    }

    fn take(&mut self, at: Duration, event: Event) {
        match event {
            Event::Accepted(conn) => drop(self.live.insert(conn)),
            Event::Sealed => self.unsealed = self.unsealed.map(|count| count.saturating_sub(1)),
            Event::Opened(conn) => {
                self.note(Direction::Event, "the server program starts");
                self.live.insert(conn);
                self.process = Some(conn);
                self.starts.0 += 1;
                self.ledger.restarted();
            }
            Event::Line(conn, line) => self.line(at, conn, &line),
            Event::Closed(conn) => self.gone(conn),
            Event::Request(conn, mut web) => {
                self.live.insert(conn);
                self.closed.remove(&conn);
                web.informed = self.informed.learn(conn, &web, !self.ledger.over.is_empty());
                self.voice.asked(conn);
                self.web(at, conn, web);
            }
            Event::Bad(conn, problem) => {
                self.note(Direction::Received, &problem);
                self.breach(Level::Must, "http", "HTTP".to_owned(), problem);
                self.stage.cut(conn);
            }
            Event::Said(line) => self.told_by_client(at, &line),
            Event::Silent => self.silent = true,
            Event::Diagnostic(text) => self.note(Direction::Diagnostic, &text),
        }
    }

    fn gone(&mut self, conn: Conn) {
        self.live.remove(&conn);
        self.closed.insert(conn);
        self.voice.gone(conn);
        if self.transport == Transport::Stdio && self.process == Some(conn) {
            self.note(Direction::Event, "the input of the server program ends");
            if !self.hosted.lingers {
                self.stage.leave(conn, 0);
            }
        }
        if self.stream == Some(conn) {
            self.stream = None;
        }
    }

    fn told_by_client(&mut self, at: Duration, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        self.note(Direction::Event, &format!("tells {}", printable(line)));
        match serde_json::from_slice::<Value>(line) {
            Ok(report) if report.is_object() => {
                if let Some(lacks) = report.get("unsupported") {
                    self.lacks = Some(lacks.as_str().map_or_else(|| lacks.to_string(), str::to_owned));
                }
                self.recent.push((at, report.clone()));
                self.reports.push_back(report);
            }
            _ => {
                let expected = "one JSON object a line on the standard output of the client".to_owned();
                self.breach(Level::Must, "report", expected, shorten(&printable(line), 300));
            }
        }
    }

    fn line(&mut self, at: Duration, conn: Conn, line: &[u8]) {
        if self.process != Some(conn) {
            return;
        }
        self.note(Direction::Received, &printable(line));
        if line.trim_ascii().is_empty() {
            return;
        }
        match self.ledger.read(line) {
            Ok(messages) => {
                for message in messages {
                    self.message(at, conn, message, None);
                }
            }
            Err(breach) => self.found(breach),
        }
    }

    fn web(&mut self, at: Duration, conn: Conn, web: WebRequest) {
        let lines = |(name, value): &(String, String)| format!("{name}: {value}");
        let head: Vec<_> = web.headers.iter().map(lines).collect();
        let text = format!("{} {}\n{}\n{}", web.method, web.target, head.join("\n"), printable(&web.body));
        self.note(Direction::Received, text.trim_end());
        let posted = self.posts_to(&web);
        if web.method != "POST" || web.elsewhere || !posted {
            for breach in self.ledger.requested(&web) {
                self.found(breach);
            }
            let mut message = json!({"http": web.method, "path": web.target});
            if let Some(last) = web.header("last-event-id") {
                message["resumes"] = json!(last);
            }
            if web.elsewhere {
                message["elsewhere"] = json!(true);
            }
            self.recent.push((at, message.clone()));
            self.plain(Arrival { at, conn, message, web: Some(web) });
            return;
        }
        match self.ledger.read(&web.body) {
            Ok(messages) => {
                for message in messages {
                    self.message(at, conn, message, Some(web.clone()));
                }
            }
            Err(breach) => {
                self.found(breach);
                self.reply(conn, 400, &[], "");
            }
        }
    }

    /// Whether a POST there is one of a message.
    fn posts_to(&self, web: &WebRequest) -> bool {
        let path = web.target.split('?').next().unwrap_or_default();
        if self.revision == Revision::V2024_11_05 { path == "/messages" } else { path.starts_with("/mcp") }
    }

    fn message(&mut self, at: Duration, conn: Conn, message: Value, web: Option<WebRequest>) {
        for breach in self.ledger.received(&message, web.as_ref()) {
            self.found(breach);
        }
        if let Some(schemas) = self.schemas {
            for breach in super::schema::check(schemas, &self.ledger, self.revision, &message) {
                self.found(breach);
            }
        }
        self.recent.push((at, message.clone()));
        let arrival = Arrival { at, conn, message, web };
        let asks = arrival.asks();
        // Over HTTP+SSE answers come on the one stream.
        if arrival.web.is_some() && (!asks || self.revision == Revision::V2024_11_05) {
            self.acknowledge(conn);
        }
        if !asks || self.is_wanted(&arrival) {
            self.inbox.push_back(arrival);
            return;
        }
        let method = arrival.method().unwrap_or_default().to_owned();
        let call = Call::from(arrival.clone());
        if self.standing.contains_key(&method) {
            self.stand(&method, call);
        } else if let Some(body) =
            self.house.answer(&arrival.message).filter(|_| !self.exchange.head.recorded)
        {
            self.by_house(&method, call, body);
        } else {
            self.inbox.push_back(arrival);
        }
    }

    fn acknowledge(&mut self, conn: Conn) {
        let Some(ack) = &self.hosted.manners.ack else {
            self.reply(conn, 202, &[], "");
            return;
        };
        let ack = ack.clone();
        self.respond(conn, &ack);
    }

    fn by_house(&mut self, method: &str, call: Call, body: Value) {
        let mut headers = Vec::new();
        let opens = method == "initialize" && body.get("result").is_some();
        let legacy = self.revision > Revision::V2024_11_05 && self.transport == Transport::Http;
        if opens && legacy && self.hosted.manners.session {
            headers.push(("Mcp-Session-Id".to_owned(), self.new_session()));
        }
        // A server of the sessions' time knows no request without one.
        let stranger = self.transport == Transport::Http && !self.revision.is_modern() && call.is_modern();
        if stranger && self.hosted.speaks.is_none() {
            self.reply(call.conn, 400, &[("Content-Type", "text/plain")], "no session");
            return;
        }
        self.say_by_house(call, body, headers);
    }

    pub(super) fn new_session(&mut self) -> String {
        self.sessions += 1;
        let id = format!("session-{}", self.sessions);
        self.ledger.session = Some(id.clone());
        self.scope.values.insert("session".to_owned(), json!(id));
        id
    }

    /// A GET, a DELETE, or something that is sent to where no messages go.
    fn plain(&mut self, arrival: Arrival) {
        if self.is_wanted(&arrival) {
            self.inbox.push_back(arrival);
            return;
        }
        let conn = arrival.conn;
        let elsewhere = arrival.message.get("elsewhere").is_some();
        match arrival.plain() {
            _ if elsewhere => {
                self.reply(conn, 404, &[], "");
                self.inbox.push_back(arrival);
            }
            Some("GET") if self.revision == Revision::V2024_11_05 => {
                self.voice.stream(&self.stage, conn, (200, &Vec::new()));
                self.stream = Some(conn);
                let text = b"event: endpoint\ndata: /messages?session=1\n\n";
                self.voice.write(&self.stage, conn, text);
                self.note(Direction::Sent, &String::from_utf8_lossy(text));
            }
            Some("GET") if self.ledger.in_use() && self.hosted.manners.get && !self.revision.is_modern() => {
                self.note(Direction::Sent, "200 text/event-stream");
                self.voice.stream(&self.stage, conn, (200, &Vec::new()));
                self.stream = Some(conn);
            }
            // What was sent before it may come after it, so the session is not over for the rules.
            Some("DELETE") if !self.revision.is_modern() => self.reply(conn, 200, &[], ""),
            _ => self.reply(conn, 405, &[("Allow", "POST")], ""),
        }
    }

    pub(super) fn session_is_over(&mut self) {
        if let Some(id) = self.ledger.session.take() {
            self.ledger.over.push(id);
            self.informed.over();
        }
    }

    pub(super) fn note(&mut self, direction: Direction, text: &str) {
        if self.transcript.len() < TRANSCRIPT_ENTRIES {
            self.transcript.push(Entry {
                at: self.stage.now(),
                direction,
                text: shorten(text, TRANSCRIPT_TEXT),
                line: self.current().map(|step| step.line),
            });
        }
    }

    /// A rule was broken.
    pub(super) fn found(&mut self, breach: Breach) {
        let at = if breach.at.is_empty() { String::new() } else { format!("{}: ", breach.at) };
        self.findings.push(Finding {
            level: breach.level,
            requires: breach.requires.iter().map(|id| (*id).to_owned()).collect(),
            line: self.current().map(|step| step.line),
            rule: Some(breach.rule),
            expected: format!("{at}{}", breach.expected),
            got: breach.got,
        });
    }

    fn breach(&mut self, level: Level, rule: &'static str, expected: String, got: String) {
        let level = level.min(self.exchange.head.level.unwrap_or(Level::Must));
        let requires = self.cited(None);
        let line = self.current().map(|step| step.line);
        self.findings.push(Finding { level, requires, line, rule: Some(rule), expected, got });
    }

    /// A step was not met. Whether the exchange goes on.
    pub(super) fn failed(
        &mut self,
        step: &HostStep,
        failure: Failure,
        expected: String,
        got: String,
    ) -> Flow {
        let written = step.level.or(self.exchange.head.level);
        let requires = self.cited(Some(step));
        let level = match failure {
            Failure::Broken => written.unwrap_or(Level::Must),
            Failure::Differs if self.exchange.head.recorded => Level::Must,
            Failure::Differs => {
                let ids = requires.iter().map(String::as_str);
                let cited = requirement::strongest(ids, self.revision).unwrap_or(Level::Should);
                cited.min(written.unwrap_or(Level::Must))
            }
        };
        let (line, expected, got) = (Some(step.line), shorten(&expected, 600), shorten(&got, 600));
        self.findings.push(Finding { level, requires, line, rule: None, expected, got });
        if written == Some(Level::Should) { Flow::Next } else { Flow::Stop }
    }

    /// What is cited and binds here; all of it if nothing does.
    fn cited(&self, step: Option<&HostStep>) -> Vec<String> {
        let own = step.map(|step| &step.requires).filter(|ids| !ids.is_empty());
        let ids = own.unwrap_or(&self.exchange.head.requires);
        let binds = |id: &&String| {
            requirement::by_id(id)
                .is_some_and(|row| row.applies(self.revision) && row.concerns(self.transport))
        };
        let binding: Vec<_> = ids.iter().filter(binds).cloned().collect();
        if binding.is_empty() { ids.clone() } else { binding }
    }
}
