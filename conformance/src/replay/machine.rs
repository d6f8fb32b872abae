//! The replayer: operations, an inbox, and what follows from both.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::expect::Waiting;
use super::findings::{self, Failure, Finding, Verdict};
use super::online::Online;
use super::transcript::{Direction, Entry};
use crate::bind::Binder;
use crate::exchange::{Action, Answer, Cuts, Exchange, ExpectExit, ExpectNothing, Send, Step, Transport};
use crate::http::{Mirrors, Web};
use crate::invariants::{Breach, Ledger};
use crate::pattern::{Scope, template};
use crate::requirement::Level;
use crate::revision::Revision;
use crate::schema::Schemas;
use crate::subject::Exit;
use crate::text::{printable, shorten};

/// How long to wait for a message if the step does not say.
const PATIENCE: Duration = Duration::from_secs(10);

/// More of a transcript says nothing new.
const TRANSCRIPT_ENTRIES: usize = 400;
const TRANSCRIPT_TEXT: usize = 2_000;

/// What the driver has to do next.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// Write these pieces, each on its own.
    Write(Vec<Vec<u8>>),
    /// Send this HTTP request on a connection of its own; what comes back bears the number.
    Request {
        /// The number.
        stream: u64,
        /// Head and body.
        bytes: Vec<u8>,
        /// Whether an answer has no body whatever its head says.
        is_head: bool,
    },
    /// Close that connection.
    HangUp {
        /// The number.
        stream: u64,
    },
    /// End the subject's input.
    CloseInput,
    /// Wait for output until this time, then ask again.
    Wait {
        /// Counted from the start of the replay.
        until: Duration,
        /// Whether the end of the subject is waited for, too.
        exit: bool,
    },
    /// Nothing more; the verdict stands but for what still arrives.
    Finished,
}

/// What goes on from one exchange to the next where both are played on one instance.
#[derive(Debug, Clone)]
pub struct Session {
    binder: Binder,
    ledger: Ledger,
    web: Option<Web>,
}

/// One exchange replayed in one cell.
#[derive(Debug)]
pub struct Replay<'e> {
    pub(super) exchange: &'e Exchange,
    pub(super) revision: Revision,
    pub(super) binder: Binder,
    pub(super) scope: Scope,
    pub(super) ledger: Ledger,
    transport: Transport,
    /// Over HTTP: requests and streams.
    pub(super) web: Option<Web>,
    pub(super) online: Online,
    mirrors: Mirrors,
    schemas: Option<&'e Schemas>,
    operations: VecDeque<Operation<'e>>,
    /// When the current operation began.
    begun: Option<Duration>,
    pub(super) waiting: Waiting,
    pub(super) inbox: VecDeque<Value>,
    pub(super) output: VecDeque<Next>,
    /// Ids of requests whose response nobody awaited yet.
    pub(super) unawaited: Vec<Value>,
    /// Requests of the subject that an expectation took.
    pub(super) asked: Vec<(Option<String>, Value)>,
    /// The request of a `during`, while its steps run.
    guard: Option<(Value, &'e Step)>,
    pub(super) cuts: Option<&'e Cuts>,
    expects_ping: bool,
    /// How the subject's output ended.
    pub(super) ended: Option<String>,
    /// Whether the subject has said anything yet.
    pub(super) spoken: bool,
    /// How long its first words may take, counted from the start.
    startup: Duration,
    /// How long a message is waited for where the step does not say.
    pub(super) patience: Duration,
    exit: Option<Exit>,
    findings: Vec<Finding>,
    transcript: Vec<Entry>,
    pub(super) finished: bool,
}

#[derive(Debug, Clone, Copy)]
enum Operation<'e> {
    /// The stream of a session of 2024-11-05 over HTTP.
    Connect,
    /// The legacy handshake.
    Open,
    Step(&'e Step),
    /// The request of a `during`.
    Begin(&'e Step, &'e Send),
    /// Its steps are done.
    End,
    /// A request whose response shows that the subject has said all it had to say.
    Sync,
}

/// How far an operation got.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    /// Waits for output until then.
    Until(Duration),
    /// Waits for the subject's end until then.
    UntilExit(Duration),
}

impl<'e> Replay<'e> {
    /// A replay on a new connection.
    ///
    /// # Errors
    ///
    /// Says why the exchange cannot be bound to the revision.
    pub fn new(
        exchange: &'e Exchange,
        revision: Revision,
        transport: Transport,
        schemas: Option<&'e Schemas>,
    ) -> Result<Self, String> {
        let binder = Binder::new(revision, &exchange.head.client_capabilities)?;
        let ledger = Ledger::new(revision, transport, binder.capabilities().clone());
        let mut operations = VecDeque::new();
        if !revision.is_modern() && exchange.head.handshake {
            operations.push_back(Operation::Open);
        }
        unroll(&exchange.steps, (revision, transport), &mut operations);
        let expects_ping = operations.iter().any(|operation| match operation {
            Operation::Step(step) => super::expect::mentions_call(&step.action, "ping"),
            _ => false,
        });
        Ok(Self {
            exchange,
            revision,
            binder,
            scope: Scope::new(revision),
            ledger,
            transport,
            web: None,
            online: Online::default(),
            mirrors: Mirrors::default(),
            schemas,
            operations,
            begun: None,
            waiting: Waiting::default(),
            inbox: VecDeque::new(),
            output: VecDeque::new(),
            unawaited: Vec::new(),
            asked: Vec::new(),
            guard: None,
            cuts: None,
            expects_ping,
            ended: None,
            spoken: false,
            startup: PATIENCE,
            patience: PATIENCE,
            exit: None,
            findings: Vec::new(),
            transcript: Vec::new(),
            finished: false,
        })
    }

    /// A replay on an instance on which others were played.
    ///
    /// # Errors
    ///
    /// Says why the exchange cannot be bound to the revision.
    pub fn resume(
        exchange: &'e Exchange,
        revision: Revision,
        transport: Transport,
        schemas: Option<&'e Schemas>,
        session: Session,
    ) -> Result<Self, String> {
        let mut replay = Self::new(exchange, revision, transport, schemas)?;
        replay.binder = session.binder;
        replay.ledger = session.ledger;
        replay.web = session.web;
        replay.operations.retain(|operation| !matches!(operation, Operation::Open));
        replay.spoken = true;
        Ok(replay)
    }

    /// Ends with a request of its own, so that another exchange can follow on the same instance.
    #[must_use]
    pub fn with_sync(mut self) -> Self {
        self.operations.push_back(Operation::Sync);
        self
    }

    /// Drops what came and nobody waited for; every rule has seen it.
    pub(crate) fn clear(&mut self) {
        self.inbox.clear();
    }

    /// What the next exchange on this instance starts from, if it is as good as a fresh one: nothing was found,
    /// and nothing is left over.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        let clean = self.findings.is_empty() && self.inbox.is_empty() && self.ended.is_none();
        clean.then(|| Session {
            binder: self.binder.clone(),
            ledger: self.ledger.clone(),
            web: self.web.clone(),
        })
    }

    /// Mirrors arguments into headers as these definitions of tools say.
    #[must_use]
    pub(crate) fn with_mirrors(mut self, mirrors: Mirrors) -> Self {
        self.mirrors = mirrors;
        self
    }

    /// Learns where the subject is, before anything else.
    pub(crate) fn reach(&mut self, connection: &crate::subject::Connection) {
        let Some(endpoint) = connection.endpoint() else { return };
        let mirrors = std::mem::take(&mut self.mirrors);
        let (endpoint, revision) = (endpoint.clone(), self.revision);
        let web = self.web.get_or_insert_with(|| Web::new(endpoint, revision, Mirrors::default()));
        web.mirror(mirrors);
        if web.is_sse() && web.messages().is_none() {
            self.operations.push_front(Operation::Connect);
        }
        self.bind_addresses();
    }

    /// Gives the subject this long to its first words, so that a slow start is no silence.
    #[must_use]
    pub fn with_startup(mut self, startup: Duration) -> Self {
        self.startup = startup.max(self.patience);
        self
    }

    /// Waits this long for a message where the step does not say, in place of 10 seconds.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self.startup = patience;
        self
    }

    /// What to do next.
    pub fn next(&mut self, now: Duration) -> Next {
        loop {
            if let Some(next) = self.output.pop_front() {
                return next;
            }
            if let Some(until) = self.held_up(now) {
                return Next::Wait { until, exit: false };
            }
            if !self.output.is_empty() {
                continue;
            }
            let operation = match self.operations.front() {
                Some(operation) if !self.finished => *operation,
                _ => {
                    self.finished = true;
                    return Next::Finished;
                }
            };
            let begun = *self.begun.get_or_insert(now);
            match self.advance(operation, begun, now) {
                Progress::Done => {
                    self.operations.pop_front();
                    self.begun = None;
                    self.waiting = Waiting::default();
                }
                Progress::Until(until) if self.output.is_empty() && self.online.gate.is_none() => {
                    let until = self.online.due().map_or(until, |due| until.min(due));
                    return Next::Wait { until, exit: false };
                }
                Progress::UntilExit(until) => return Next::Wait { until, exit: true },
                Progress::Until(_) => {}
            }
        }
    }

    /// A line of the subject's output, without its end.
    pub fn received(&mut self, line: &[u8], now: Duration) {
        self.note(now, Direction::Received, &printable(line));
        self.spoken = true;
        let messages = match self.ledger.line(line) {
            Ok(messages) => messages,
            Err(breach) => return self.breach(*breach),
        };
        for message in messages {
            self.message(message, now);
        }
    }

    pub(super) fn breach(&mut self, breach: Breach) {
        let line = self.line();
        self.found(Finding::of_breach(breach, line));
    }

    /// The subject's output has ended; nothing more will arrive.
    pub fn ended(&mut self, how: &str, now: Duration) {
        if self.ended.is_none() {
            self.ended = Some(how.to_owned());
            self.note(now, Direction::Event, how);
        }
    }

    /// The subject has exited.
    pub fn exited(&mut self, exit: Exit, now: Duration) {
        if self.exit.is_none() {
            self.note(now, Direction::Event, &exit.text);
            self.exit = Some(exit);
        }
    }

    /// Text of the subject's standard error, for the transcript.
    pub fn diagnostic(&mut self, text: &str, now: Duration) {
        self.note(now, Direction::Diagnostic, text);
    }

    /// Whether a breach of a MUST was found.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        Verdict::of(&self.findings) == Verdict::Failed
    }

    /// The findings and the transcript.
    #[must_use]
    pub fn into_parts(self) -> (Vec<Finding>, Vec<Entry>) {
        (self.findings, self.transcript)
    }

    pub(super) fn message(&mut self, message: Value, now: Duration) {
        let line = self.line();
        let id = message.get("id").cloned().unwrap_or_default();
        let is_call = message.get("method").is_some();
        let method = if is_call { None } else { self.ledger.method_of(&id).map(str::to_owned) };
        let mut breaches = self.ledger.received(&message);
        if let Some(schemas) = self.schemas {
            breaches.extend(schemas.check(self.ledger.revision_of(&message), &message, method.as_deref()));
        }
        for breach in breaches {
            self.found(Finding::of_breach(breach, line));
        }
        if is_call
            && message["method"] == "ping"
            && !id.is_null()
            && !self.revision.is_modern()
            && !self.expects_ping
        {
            return self.write(&json!({"jsonrpc": "2.0", "id": id, "result": {}}), now);
        }
        if let Some((guard, step)) = self.guard.clone()
            && !is_call
            && id == guard
        {
            let got = shorten(&message.to_string(), 300);
            self.failed(
                Some(step),
                Failure::Differs,
                "no response before the steps in between are done".to_owned(),
                got,
            );
        }
        self.inbox.push_back(message);
    }

    fn advance(&mut self, operation: Operation<'e>, begun: Duration, now: Duration) -> Progress {
        match operation {
            Operation::Connect => self.connect(begun, now),
            Operation::Open => self.open(begun, now),
            Operation::Begin(step, send) => {
                if let Some(id) = self.send(step, send, now) {
                    self.guard = Some((id, step));
                }
                Progress::Done
            }
            Operation::End => {
                self.guard = None;
                Progress::Done
            }
            Operation::Sync => self.sync(begun, now),
            Operation::Step(step) => self.step(step, begun, now),
        }
    }

    fn step(&mut self, step: &'e Step, begun: Duration, now: Duration) -> Progress {
        match &step.action {
            Action::Send(send) => {
                self.send(step, send, now);
                Progress::Done
            }
            Action::Expect(expect) => self.expect(step, expect, begun, now),
            Action::Unordered(steps) => self.unordered(steps, begun, now),
            Action::Poll(poll) => self.poll(step, poll, begun, now),
            Action::Answer(answer) => self.answer(step, answer, now),
            Action::SendBytes(bytes) => self.raw(step, bytes, &Map::new(), now),
            Action::SendText(text) => match template::fill(&text.text, &self.scope) {
                Ok(Some(Value::String(filled))) => self.raw(step, filled.as_bytes(), &text.headers, now),
                Ok(other) => {
                    let got = other.unwrap_or_default().to_string();
                    self.failed(Some(step), Failure::Broken, "text to send".to_owned(), got)
                }
                Err(problem) => self.unusable(step, problem),
            },
            Action::Split(cuts) => {
                self.cuts = Some(cuts);
                Progress::Done
            }
            Action::CloseInput => {
                self.note(now, Direction::Event, "end of input");
                self.output.push_back(Next::CloseInput);
                Progress::Done
            }
            Action::ExpectExit(exit) => self.expect_exit(step, exit, begun, now),
            Action::ExpectNothing(nothing) => self.expect_nothing(step, nothing, begun, now),
            Action::Wait { millis } => until(begun + Duration::from_millis(*millis), now),
            Action::Http(http) => self.http(step, http, begun, now),
            Action::Watch(watch) => self.watch(step, watch, begun, now),
            // Unrolled when the replay was made.
            Action::During { .. } => Progress::Done,
        }
    }

    /// The legacy handshake: the offered version has to come back.
    fn open(&mut self, begun: Duration, now: Duration) -> Progress {
        let Some(id) = self.waiting.id.clone() else {
            let [initialize, _] = self.binder.handshake();
            self.waiting.id = initialize.get("id").cloned();
            self.write(&initialize, now);
            return Progress::Until(begun + self.patience);
        };
        let fail = |replay: &mut Self, expected: &str, got: String| {
            let cited = ["LS-LIFE-01", "LS-LIFE-03"].map(str::to_owned).to_vec();
            let (expected, line) = (format!("the handshake: {expected}"), None);
            replay.found(Finding {
                level: Level::Must,
                requires: cited,
                line,
                rule: Some("handshake"),
                expected,
                got,
            });
            Progress::Done
        };
        match self
            .inbox
            .iter()
            .position(|message| message.get("id") == Some(&id) && message.get("method").is_none())
        {
            Some(index) => {
                let response = self.inbox.remove(index).unwrap_or_default();
                let version = response.pointer("/result/protocolVersion").and_then(Value::as_str);
                if version != Some(self.revision.as_str()) {
                    let expected = format!("a result with protocolVersion \"{}\"", self.revision);
                    return fail(self, &expected, shorten(&response.to_string(), 300));
                }
                self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), now);
                Progress::Done
            }
            None => match self.gone(begun + self.patience, now) {
                Some(got) => fail(self, "a response to `initialize`", got),
                None => Progress::Until(self.until(begun + self.patience)),
            },
        }
    }

    fn sync(&mut self, begun: Duration, now: Duration) -> Progress {
        let Some(id) = self.waiting.id.clone() else {
            let method = if self.revision.is_modern() { "server/discover" } else { "ping" };
            let request = self.binder.request(method, json!({}));
            self.waiting.id = request.get("id").cloned();
            self.write(&request, now);
            return Progress::Until(begun + self.patience);
        };
        if let Some(index) = self.inbox.iter().position(|message| message.get("id") == Some(&id)) {
            self.inbox.remove(index);
            return Progress::Done;
        }
        match self.gone(begun + self.patience, now) {
            Some(got) => self.failed(None, Failure::Broken, "an instance that lives on".to_owned(), got),
            None => Progress::Until(begun + self.patience),
        }
    }

    /// Writes the message of a step; the id, if it is a request.
    pub(super) fn send(&mut self, step: &'e Step, send: &'e Send, now: Duration) -> Option<Value> {
        match self.binder.bind(send, &mut self.scope) {
            Ok(bound) => {
                // What stands around the message may spoil the line it is on.
                let harmless = |text: &str| text.trim_start_matches('\u{feff}').trim().is_empty();
                if harmless(&send.lead) && harmless(&send.end) {
                    self.ledger.sent(&bound.message);
                    if send.lead.contains('\u{feff}') {
                        self.ledger.may_be_unreadable();
                    }
                } else {
                    self.ledger.sent_raw(&bound.bytes);
                }
                self.unawaited.extend(bound.id.clone());
                if self.web.is_some() {
                    if let Err(problem) = self.post(Some(&bound.message), &send.headers, now) {
                        self.unusable(step, problem);
                    }
                } else {
                    self.put(bound.bytes, now);
                }
                bound.id
            }
            Err(problem) => {
                self.unusable(step, problem);
                None
            }
        }
    }

    fn answer(&mut self, step: &'e Step, answer: &'e Answer, now: Duration) -> Progress {
        let wanted = |(name, _): &(Option<String>, Value)| answer.to.is_none() || *name == answer.to;
        let Some(index) = self.asked.iter().rposition(wanted) else {
            return self
                .unusable(step, "no request of the subject was expected before this answer".to_owned());
        };
        let (_, id) = self.asked.remove(index);
        match template::fill(&answer.body, &self.scope) {
            Ok(body) => {
                let mut message = json!({"jsonrpc": "2.0", "id": id});
                if let (Value::Object(message), Some(Value::Object(body))) = (&mut message, body) {
                    message.extend(body);
                }
                self.write(&message, now);
                Progress::Done
            }
            Err(problem) => self.unusable(step, problem),
        }
    }

    fn raw(&mut self, step: &'e Step, bytes: &[u8], headers: &Map<String, Value>, now: Duration) -> Progress {
        self.ledger.sent_raw(bytes);
        if self.web.is_some() {
            if let Err(problem) = self.post_bytes(bytes, headers, now) {
                return self.unusable(step, problem);
            }
        } else {
            self.put(bytes.to_vec(), now);
        }
        Progress::Done
    }

    fn expect_exit(
        &mut self,
        step: &'e Step,
        wanted: &ExpectExit,
        begun: Duration,
        now: Duration,
    ) -> Progress {
        let within = Duration::from_millis(wanted.within);
        let Some(exit) = &self.exit else {
            if now < begun + within {
                return Progress::UntilExit(begun + within);
            }
            let expected = format!("an exit within {} ms", wanted.within);
            return self.failed(Some(step), Failure::Differs, expected, "still running".to_owned());
        };
        if wanted.code.is_some() && exit.code != wanted.code {
            let (expected, got) =
                (format!("exit code {}", wanted.code.unwrap_or_default()), exit.text.clone());
            return self.failed(Some(step), Failure::Differs, expected, got);
        }
        Progress::Done
    }

    fn expect_nothing(
        &mut self,
        step: &'e Step,
        nothing: &'e ExpectNothing,
        begun: Duration,
        now: Duration,
    ) -> Progress {
        let mut index = 0;
        while index < self.inbox.len() {
            let message = &self.inbox[index];
            let forbidden = match &nothing.of {
                Some(pattern) => self.whole_fits(pattern, &message.clone()),
                None => !self.tolerated(message),
            };
            if forbidden {
                let got = shorten(&self.inbox[index].to_string(), 300);
                let expected = nothing.of.as_ref().map_or_else(
                    || format!("nothing for {} ms", nothing.millis),
                    |pattern| format!("for {} ms no {pattern}", nothing.millis),
                );
                self.inbox.remove(index);
                return self.failed(Some(step), Failure::Differs, expected, got);
            }
            if self.inbox[index].get("method").is_some() {
                self.inbox.remove(index);
            } else {
                index += 1;
            }
        }
        until(begun + Duration::from_millis(nothing.millis), now)
    }

    /// What the replayer says when nothing more can come: the time is over or the output has ended.
    pub(super) fn gone(&self, deadline: Duration, now: Duration) -> Option<String> {
        if let Some(lost) = self.lost() {
            return Some(lost);
        }
        let left = match self.inbox.len() {
            0 => String::new(),
            _ => {
                let all: Vec<_> = self.inbox.iter().map(Value::to_string).collect();
                format!("; unclaimed: {}", shorten(&all.join(" "), 300))
            }
        };
        if let Some(how) = &self.ended {
            let exit = self.exit.as_ref().map(|exit| format!(", {}", exit.text)).unwrap_or_default();
            return Some(format!("{how}{exit}{left}"));
        }
        (now >= self.until(deadline)).then(|| format!("nothing in time{left}"))
    }

    /// Until when a message is waited for: longer than a step says while the subject is still starting.
    pub(super) fn until(&self, deadline: Duration) -> Duration {
        if self.spoken { deadline } else { deadline.max(self.startup) }
    }

    /// Notes that a step is not met; a breach of a MUST ends the exchange.
    pub(super) fn failed(
        &mut self,
        step: Option<&Step>,
        failure: Failure,
        expected: String,
        got: String,
    ) -> Progress {
        let head = &self.exchange.head;
        let cell = (self.revision, self.transport);
        let level = findings::level(head, step, cell, failure);
        let requires = findings::cited(head, step, cell);
        let line = step.map(|step| step.line);
        self.found(Finding { level, requires, line, rule: None, expected, got });
        Progress::Done
    }

    /// The exchange itself cannot go on.
    pub(super) fn unusable(&mut self, step: &Step, problem: String) -> Progress {
        self.failed(Some(step), Failure::Broken, "a step that can be done".to_owned(), problem)
    }

    pub(super) fn found(&mut self, mut finding: Finding) {
        // A recording shows whether a peer says the same once more, whatever rules it keeps.
        if self.exchange.head.recorded && finding.rule.is_some() {
            finding.level = Level::Should;
        }
        if finding.level == Level::Must {
            self.finished = true;
        }
        // The same warning twice says nothing new.
        if self.findings.len() < 20 && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn write(&mut self, message: &Value, now: Duration) {
        self.ledger.sent(message);
        if self.web.is_some() {
            // Without headers of an exchange there is nothing to fill.
            let _ = self.post(Some(message), &Map::new(), now);
            return;
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(b'\n');
        self.put(bytes, now);
    }

    fn put(&mut self, bytes: Vec<u8>, now: Duration) {
        self.note(now, Direction::Sent, printable(&bytes).trim_end_matches('\n'));
        let pieces = match self.cuts.take() {
            None => vec![bytes],
            Some(cuts) => cuts.pieces(&bytes),
        };
        self.output.push_back(Next::Write(pieces));
    }

    fn line(&self) -> Option<usize> {
        match self.operations.front() {
            Some(Operation::Step(step) | Operation::Begin(step, _)) => Some(step.line),
            _ => None,
        }
    }

    pub(super) fn note(&mut self, at: Duration, direction: Direction, text: &str) {
        if self.transcript.len() < TRANSCRIPT_ENTRIES {
            let (text, line) = (shorten(text, TRANSCRIPT_TEXT), self.line());
            self.transcript.push(Entry { at, direction, text, line });
        }
    }
}

fn until(deadline: Duration, now: Duration) -> Progress {
    if now >= deadline { Progress::Done } else { Progress::Until(deadline) }
}

fn unroll<'e>(steps: &'e [Step], cell: (Revision, Transport), operations: &mut VecDeque<Operation<'e>>) {
    let runs = |step: &&Step| step.only.contains(cell.0) && step.over.is_none_or(|over| over == cell.1);
    for step in steps.iter().filter(runs) {
        if let Action::During { send, steps } = &step.action {
            operations.push_back(Operation::Begin(step, send));
            unroll(steps, cell, operations);
            operations.push_back(Operation::End);
        } else {
            operations.push_back(Operation::Step(step));
        }
    }
}
