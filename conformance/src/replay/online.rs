//! The replayer over HTTP: messages become requests, answers become messages, and some steps look at the answers
//! themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::findings::{Failure, Finding};
use super::machine::{Next, Progress, Replay};
use super::transcript::Direction;
use crate::bind::implied;
use crate::exchange::{Cuts, Expect, HttpExpect, HttpStep, Offer, Step, Watch, Watched};
use crate::http::{Answer, Headers, Order, Purpose, Stream};
use crate::pattern::{Mismatch, Pattern, Scope, template};
use crate::requirement::Level;
use crate::text::{printable, shorten};

/// How long a client waits before it takes up a stream again, if the server says nothing else.
const RETRY: Duration = Duration::from_millis(500);

/// A server that asks for a longer wait is not waited for.
const RETRY_LIMIT: Duration = Duration::from_secs(5);

/// What a replay over HTTP keeps in mind.
#[derive(Debug, Default)]
pub(super) struct Online {
    /// The request whose answer has to be there before anything else is done, and until when it is waited for.
    pub(super) gate: Option<(u64, Duration)>,
    /// Whether the stream of the session is to be opened after the gate.
    then_listen: bool,
    /// Streams to take up again, and when.
    due: Vec<(Duration, u64)>,
    /// Answers that steps have named, and how many of their events were looked at.
    names: BTreeMap<String, (u64, usize)>,
    /// Event ids of the session.
    event_ids: BTreeSet<String>,
    /// Ids of responses, and the stream on which each came.
    came: Vec<(Value, u64)>,
}

impl Online {
    /// When something is to be done that no message brings about.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due.iter().map(|(at, _)| *at).min()
    }
}

impl<'e> Replay<'e> {
    /// What an exchange may refer to: where the server is, and the session that the replayer has opened.
    pub(super) fn bind_addresses(&mut self) {
        let Some(web) = &self.web else { return };
        let endpoint = &web.endpoint;
        let mut bind = |name: &str, value: Value| {
            self.scope.values.insert(name.to_owned(), value);
        };
        bind("authority", json!(endpoint.authority));
        bind("port", json!(endpoint.port.to_string()));
        bind("target", json!(endpoint.target));
        for (kind, token) in endpoint.tokens.iter() {
            bind(&format!("{}-token", kind.as_str()), json!(token));
        }
        if let Some(Ok(messages)) = web.messages() {
            bind("messages", json!(messages));
        }
        if let Some(session) = &web.session {
            bind("session", json!(session));
        }
    }

    /// Opens the stream of a session of 2024-11-05, which says where to post.
    pub(super) fn connect(&mut self, begun: Duration, now: Duration) -> Progress {
        let deadline = self.until(begun + self.patience);
        let Some(web) = &mut self.web else { return Progress::Done };
        if self.waiting.stream.is_none() {
            let (stream, order) = web.connect();
            self.waiting.stream = Some(stream);
            self.order(order, now);
            return Progress::Until(deadline);
        }
        let got = match web.messages() {
            Some(Ok(_)) => {
                self.bind_addresses();
                return Progress::Done;
            }
            Some(Err(problem)) => problem,
            None if now < deadline => return Progress::Until(deadline),
            None => "nothing in time".to_owned(),
        };
        self.found(Finding {
            level: Level::Must,
            requires: ["LS-SSE-01", "LS-SSE-02"].map(str::to_owned).to_vec(),
            line: None,
            rule: Some("endpoint"),
            expected: "the stream of a session: an `endpoint` event with the URI to post to".to_owned(),
            got,
        });
        Progress::Done
    }

    /// Until when to wait before the next step may run; `None` if nothing holds it up.
    pub(super) fn held_up(&mut self, now: Duration) -> Option<Duration> {
        if self.finished {
            return None;
        }
        while let Some(index) = self.online.due.iter().position(|(at, _)| *at <= now) {
            let (_, stream) = self.online.due.remove(index);
            if let Some((_, order)) = self.web.as_mut().and_then(|web| web.resume(stream)) {
                self.order(order, now);
            }
        }
        let (stream, deadline) = self.online.gate?;
        let known = self.web.as_ref().and_then(|web| web.streams.get(&stream));
        let settled = known.is_none_or(|stream| {
            stream.ended || (stream.purpose == Purpose::Listening && stream.status.is_some())
        });
        if !settled && now < deadline {
            return Some(self.online.due().map_or(deadline, |due| deadline.min(due)));
        }
        self.online.gate = None;
        if std::mem::take(&mut self.online.then_listen)
            && let Some((stream, order)) = self.web.as_mut().map(crate::http::Web::listen)
        {
            self.order(order, now);
            self.online.gate = Some((stream, now + self.patience));
        }
        None
    }

    /// Sends a message as a request of its own, with the exchange's headers in place of its own.
    pub(super) fn post(
        &mut self,
        message: Option<&Value>,
        headers: &Map<String, Value>,
        now: Duration,
    ) -> Result<(), String> {
        let (Some(web), Some(message)) = (&mut self.web, message) else { return Ok(()) };
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        if method == "notifications/cancelled" && self.revision.is_modern() && !web.has_session() {
            // What cancels a modern request is the end of its connection.
            let stream = message.pointer("/params/requestId").and_then(|id| web.carrier(id));
            if let Some(order) = stream.and_then(|stream| web.hang_up(stream)) {
                self.order(order, now);
            }
            return Ok(());
        }
        let mut lines = web.headers(message);
        overlay(&mut lines, headers, &self.scope)?;
        let body = framed(message.to_string().as_bytes(), self.cuts.take(), &mut lines);
        let (stream, order) = web.post(Some(message), &body, &lines);
        let streams = !web.is_sse() && web.has_session() && !web.listens();
        let opens = method == "notifications/initialized" && streams;
        self.online.then_listen |= opens;
        self.sent(stream, order, now);
        Ok(())
    }

    /// Sends bytes, each line as the body of a request, with the exchange's headers in place of its own. With cuts the
    /// body comes in chunks.
    pub(super) fn post_bytes(
        &mut self,
        bytes: &[u8],
        headers: &Map<String, Value>,
        now: Duration,
    ) -> Result<(), String> {
        let cuts = self.cuts.take();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            self.post_line(line, headers, cuts, now)?;
        }
        Ok(())
    }

    fn post_line(
        &mut self,
        body: &[u8],
        headers: &Map<String, Value>,
        cuts: Option<&Cuts>,
        now: Duration,
    ) -> Result<(), String> {
        let Some(web) = &mut self.web else { return Ok(()) };
        let message = serde_json::from_slice::<Value>(body).ok();
        let first = match &message {
            Some(Value::Array(items)) => items.iter().find(|item| item.is_object()),
            other => other.as_ref(),
        };
        let mut lines = web.headers(first.unwrap_or(&Value::Null));
        overlay(&mut lines, headers, &self.scope)?;
        let body = framed(body, cuts, &mut lines);
        let (stream, order) = web.post(message.as_ref(), &body, &lines);
        self.sent(stream, order, now);
        Ok(())
    }

    fn sent(&mut self, stream: u64, order: Order, now: Duration) {
        let purpose = self.web.as_ref().and_then(|web| web.streams.get(&stream)).map(|known| &known.purpose);
        // Requests are in flight side by side; what has no response must not be overtaken by what follows.
        if !matches!(purpose, Some(Purpose::Request { .. } | Purpose::Batch)) {
            self.online.gate = Some((stream, now + self.patience));
        }
        self.order(order, now);
    }

    fn order(&mut self, order: Order, now: Duration) {
        let next = match order {
            Order::Request { stream, bytes, is_head } => {
                self.note(now, Direction::Sent, &printable(&bytes));
                Next::Request { stream, bytes, is_head }
            }
            Order::HangUp { stream } => {
                self.note(now, Direction::Event, &format!("connection {stream} closed from this side"));
                Next::HangUp { stream }
            }
        };
        self.output.push_back(next);
    }

    /// A part of an answer to a request.
    pub(crate) fn answered(&mut self, number: u64, answer: Answer, now: Duration) {
        let Some(web) = &mut self.web else { return };
        let Some(known) = web.streams.get_mut(&number) else { return };
        if known.hung_up {
            known.ended |= matches!(answer, Answer::End(_));
            return;
        }
        let (is_head, is_end) = (matches!(answer, Answer::Head { .. }), matches!(answer, Answer::End(_)));
        let texts = web.take(number, answer);
        let Some(stream) = web.streams.get(&number).cloned() else { return };
        self.spoken = true;
        if is_head || (is_end && stream.problem.is_some()) {
            self.note(now, Direction::Event, &stream.told());
        }
        if is_head {
            self.bind_addresses();
            for breach in self.ledger.answered(&stream) {
                self.breach(breach);
            }
        }
        self.event_ids(number);
        for text in texts {
            self.note(now, Direction::Received, &printable(&text));
            if matches!(stream.purpose, Purpose::Step { .. }) {
                // What an exchange sends by itself it also reads by itself.
                if let (Some(web), Ok(message)) = (&mut self.web, serde_json::from_slice::<Value>(&text)) {
                    web.carried(number, &message);
                }
                continue;
            }
            // A refusal may say why, without an id.
            let refusal = matches!(stream.purpose, Purpose::Notice | Purpose::Listening | Purpose::Farewell);
            let listens = stream.purpose == Purpose::Listening;
            if refusal && !stream.is_events() && (listens || !stream.is_good()) {
                continue;
            }
            match self.ledger.text(&text) {
                Ok(messages) => messages.into_iter().for_each(|message| self.arrived(number, message, now)),
                Err(breach) => self.breach(*breach),
            }
        }
        if is_end {
            for breach in self.ledger.closed(&stream) {
                self.breach(breach);
            }
            if self.web.as_ref().is_some_and(|web| web.resumes(number)) {
                let wait = stream.retry().unwrap_or(RETRY).min(RETRY_LIMIT);
                self.online.due.push((now + wait, number));
            }
        }
    }

    fn arrived(&mut self, number: u64, mut message: Value, now: Duration) {
        let Some(web) = &mut self.web else { return };
        // A legacy request that is refused before it is read as a message has an answer without an id.
        if let Some(stream) = web.streams.get(&number)
            && let Purpose::Request { id, .. } = &stream.purpose
            && !stream.is_good()
            && !self.ledger.is_modern(id).unwrap_or(true)
            && message.get("error").is_some()
            && message.get("id").is_none_or(Value::is_null)
        {
            message["id"] = id.clone();
        }
        let breaches = web.streams.get(&number).map(|stream| self.ledger.carried(stream, &message));
        web.carried(number, &message);
        let leak = self.ledger.leaked(&message, web.endpoint.tokens.iter().map(|(_, token)| token));
        if let Some(breach) = leak {
            self.breach(breach);
        }
        for breach in breaches.into_iter().flatten() {
            self.breach(breach);
        }
        if message.get("method").is_none() {
            let id = message.get("id").cloned().unwrap_or_default();
            self.online.came.push((id, number));
        }
        self.message(message, now);
    }

    /// Ids tell events of a session apart, so none may come twice. Exchanges that have nothing to do with ids leave
    /// that to those that need them: one fault would hide all else. A stream that replays is left alone.
    fn event_ids(&mut self, number: u64) {
        if !self.exchange.head.needs.http.contains(&Offer::EventIds) {
            return;
        }
        let Some(stream) = self.web.as_mut().and_then(|web| web.streams.get_mut(&number)) else { return };
        let ids = std::mem::take(&mut stream.event_ids);
        if matches!(stream.purpose, Purpose::Step { .. } | Purpose::Resumed { .. }) {
            return;
        }
        for id in ids {
            if !self.online.event_ids.insert(id.clone()) {
                let breach = self.ledger.repeated_event(&id);
                self.breach(breach);
            }
        }
    }

    /// Why no response can come any more that is waited for.
    pub(super) fn lost(&self) -> Option<String> {
        let web = self.web.as_ref()?;
        self.waiting.id.iter().chain(self.waiting.ids.iter().flatten()).find_map(|id| web.lost(id))
    }

    /// Whether all answers are complete, but for streams that stay open.
    pub(crate) fn is_quiet(&self) -> bool {
        self.web.as_ref().is_some_and(crate::http::Web::is_quiet)
    }

    /// The request that ends the session, if there is one.
    pub(crate) fn farewell(&mut self) -> Option<(u64, Order)> {
        self.web.as_mut().and_then(crate::http::Web::farewell)
    }

    /// Holds the head with which a response came against what the expectation says of it.
    pub(super) fn hold_head(&mut self, step: &Step, expect: &Expect, message: &Value) {
        if expect.status.is_none() && expect.headers.is_empty() {
            return;
        }
        let id = message.get("id").cloned().unwrap_or_default();
        let came = self.online.came.iter().rev().find(|(known, _)| *known == id).map(|(_, stream)| *stream);
        let Some(web) = &self.web else { return };
        let Some(stream) = came.and_then(|number| web.streams.get(&number)).cloned() else { return };
        if let Err((what, mismatch)) = self.head_fits(expect.status.as_ref(), &expect.headers, &stream) {
            self.differs(step, &what, &mismatch, &stream);
        }
    }

    fn head_fits(
        &mut self,
        status: Option<&Pattern>,
        headers: &[(String, Pattern)],
        stream: &Stream,
    ) -> Result<(), (String, Mismatch)> {
        if let Some(pattern) = status {
            let got = stream.status.map(Value::from);
            pattern
                .holds(got.as_ref(), &mut self.scope)
                .map_err(|mismatch| ("the status".to_owned(), mismatch))?;
        }
        for (name, pattern) in headers {
            let got = stream.header(name).map(Value::from);
            pattern
                .holds(got.as_ref(), &mut self.scope)
                .map_err(|mismatch| (format!("the header `{name}`"), mismatch))?;
        }
        Ok(())
    }

    fn differs(&mut self, step: &Step, what: &str, mismatch: &Mismatch, stream: &Stream) {
        let at = if mismatch.at.is_empty() { String::new() } else { format!(" at {}", mismatch.at) };
        let expected = format!("{what}{at}: {}", mismatch.expected);
        let got = format!("{} in {}", mismatch.got, shorten(&stream.told(), 300));
        self.failed(Some(step), Failure::of(mismatch), expected, got);
    }

    /// A request that the exchange wrote, and its answer.
    pub(super) fn http(
        &mut self,
        step: &'e Step,
        http: &'e HttpStep,
        begun: Duration,
        now: Duration,
    ) -> Progress {
        let deadline = begun + http.within.map_or(self.patience, Duration::from_millis);
        let Some(number) = self.waiting.stream else {
            return match self.request(http, now) {
                Ok(number) => {
                    self.waiting.stream = Some(number);
                    if let Some(name) = &http.name {
                        self.online.names.insert(name.clone(), (number, 0));
                    }
                    Progress::Until(deadline)
                }
                Err(problem) => self.unusable(step, problem),
            };
        };
        if http.name.is_some() && http.expect.is_empty() {
            return Progress::Done;
        }
        let open = http.name.is_some() && http.expect.message.is_none();
        self.complete(step, &http.expect, (number, open, deadline), now)
    }

    /// Waits for an answer, or for its head alone, and holds it against what it has to be.
    fn complete(
        &mut self,
        step: &Step,
        expect: &HttpExpect,
        (number, open, deadline): (u64, bool, Duration),
        now: Duration,
    ) -> Progress {
        let known = self.web.as_ref().and_then(|web| web.streams.get(&number)).cloned();
        let Some(stream) = known else { return Progress::Done };
        let answered = stream.answered && !expect.end;
        let enough = stream.ended || answered || (open && stream.status.is_some());
        if !enough && now < deadline {
            return Progress::Until(deadline);
        }
        if stream.status.is_none() || !enough {
            let expected = if stream.answered { "an answer that ends" } else { "a complete HTTP answer" };
            let got = format!("nothing more in time: {}", stream.told());
            let got = if stream.ended { stream.told() } else { got };
            return self.failed(Some(step), Failure::Broken, expected.to_owned(), got);
        }
        if let Err((what, mismatch)) = self.answer_fits(expect, &stream) {
            self.differs(step, &what, &mismatch, &stream);
        }
        Progress::Done
    }

    fn answer_fits(&mut self, expect: &HttpExpect, stream: &Stream) -> Result<(), (String, Mismatch)> {
        self.head_fits(expect.status.as_ref(), &expect.headers, stream)?;
        if let Some(pattern) = &expect.body {
            let body = body(stream);
            pattern
                .holds(body.as_ref(), &mut self.scope)
                .map_err(|mismatch| ("the body".to_owned(), mismatch))?;
        }
        if let Some(pattern) = &expect.events {
            let events = stream.is_events().then(|| Value::Array(stream.events.clone()));
            pattern
                .holds(events.as_ref(), &mut self.scope)
                .map_err(|mismatch| ("the events".to_owned(), mismatch))?;
        }
        if let Some(pattern) = &expect.message {
            let Purpose::Step { id, method } = &stream.purpose else { return Ok(()) };
            let mut view = response(stream, id.as_ref());
            if let Some(Value::Object(members)) = &mut view {
                members.remove("jsonrpc");
                if !pattern.names("id") {
                    members.remove("id");
                }
            }
            self.scope.implied = implied(self.revision, method.as_deref());
            pattern
                .holds(view.as_ref(), &mut self.scope)
                .map_err(|mismatch| ("the message".to_owned(), mismatch))?;
        }
        Ok(())
    }

    fn request(&mut self, http: &HttpStep, now: Duration) -> Result<u64, String> {
        let Some(web) = &mut self.web else {
            return Err("an `http` step runs on that transport only".to_owned());
        };
        let (mut lines, mut body, mut message) = (web.credentials(), None, None);
        if let Some(template) = &http.message {
            let bound = self.binder.fill(template, &self.scope)?;
            lines = web.headers(&bound);
            body = Some(bound.to_string().into_bytes());
            message = Some(bound);
        } else if let Some(template) = &http.body {
            let filled = template::fill(template, &self.scope)?.unwrap_or_default();
            body = Some(match filled {
                Value::String(text) => text.into_bytes(),
                other => other.to_string().into_bytes(),
            });
            message = body.as_deref().and_then(|body| serde_json::from_slice(body).ok());
        }
        overlay(&mut lines, &http.headers, &self.scope)?;
        let path = match &http.path {
            None => None,
            Some(path) => {
                let path = template::fill(path, &self.scope)?;
                path.as_ref().and_then(Value::as_str).map(|path| web.endpoint.resolve(path)).transpose()?
            }
        };
        let method = http.method.as_deref().unwrap_or_else(|| if body.is_some() { "POST" } else { "GET" });
        let part = |name: &str| message.as_ref().and_then(|message| message.get(name)).cloned();
        let purpose = Purpose::Step {
            id: part("id"),
            method: part("method").and_then(|method| method.as_str().map(str::to_owned)),
        };
        let (stream, order) = web.request(method, path.as_deref(), &lines, body.as_deref(), purpose);
        self.order(order, now);
        Ok(stream)
    }

    /// A look at an answer that was left open.
    pub(super) fn watch(
        &mut self,
        step: &'e Step,
        watch: &'e Watch,
        begun: Duration,
        now: Duration,
    ) -> Progress {
        let named = self.online.names.get(&watch.of).copied();
        let carries = |id: &Value| self.web.as_ref().and_then(|web| web.carrier(id));
        let sent = self.scope.ids.get(&watch.of).and_then(carries).map(|number| (number, 0));
        let Some((number, seen)) = named.or(sent) else {
            return self.unusable(step, format!("no answer is named `{}`", watch.of));
        };
        let known = self.web.as_ref().and_then(|web| web.streams.get(&number)).cloned();
        let Some(stream) = known else { return Progress::Done };
        match &watch.what {
            Watched::HangUp => {
                if let Some(order) = self.web.as_mut().and_then(|web| web.hang_up(number)) {
                    self.order(order, now);
                }
                Progress::Done
            }
            Watched::Answer(expect) => {
                let deadline = begun + self.patience;
                self.complete(step, expect, (number, false, deadline), now)
            }
            Watched::End(millis) => {
                let deadline = begun + Duration::from_millis(*millis);
                if stream.ended {
                    return Progress::Done;
                }
                if now < deadline {
                    return Progress::Until(deadline);
                }
                let expected = format!("the end of `{}` within {millis} ms", watch.of);
                self.failed(Some(step), Failure::Differs, expected, "it is still open".to_owned())
            }
            Watched::Nothing { millis, of } => {
                let mut scope = self.scope.clone();
                let unwanted = |event: &&Value| match of {
                    Some(pattern) => pattern.fits(Some(event), &mut scope),
                    None => event["data"] != "",
                };
                if let Some(event) = stream.events.iter().skip(seen).find(unwanted) {
                    let got = shorten(&event.to_string(), 300);
                    let expected = format!("nothing on `{}` for {millis} ms", watch.of);
                    return self.failed(Some(step), Failure::Differs, expected, got);
                }
                let deadline = begun + Duration::from_millis(*millis);
                if now < deadline { Progress::Until(deadline) } else { Progress::Done }
            }
            Watched::Events { patterns, skip, within } => {
                let deadline = begun + within.map_or(self.patience, Duration::from_millis);
                self.events(step, watch, (patterns, skip), (number, seen, deadline), now)
            }
        }
    }

    fn events(
        &mut self,
        step: &'e Step,
        watch: &'e Watch,
        (patterns, skip): (&'e [Pattern], &'e [Pattern]),
        (number, mut seen, deadline): (u64, usize, Duration),
        now: Duration,
    ) -> Progress {
        let known = self.web.as_ref().and_then(|web| web.streams.get(&number)).cloned();
        let Some(stream) = known else { return Progress::Done };
        while let (Some(pattern), Some(event)) =
            (patterns.get(self.waiting.taken as usize), stream.events.get(seen))
        {
            seen += 1;
            match pattern.holds(Some(event), &mut self.scope) {
                Ok(()) => self.waiting.taken += 1,
                Err(_) if event["data"] == "" => {}
                Err(_) if skip.iter().any(|skip| skip.fits(Some(event), &mut self.scope)) => {}
                Err(mismatch) => {
                    self.differs(step, &format!("an event of `{}`", watch.of), &mismatch, &stream);
                    return Progress::Done;
                }
            }
            self.online.names.insert(watch.of.clone(), (number, seen));
        }
        let Some(pattern) = patterns.get(self.waiting.taken as usize) else { return Progress::Done };
        if !stream.ended && now < deadline {
            return Progress::Until(deadline);
        }
        let got =
            if stream.ended { format!("its end: {}", stream.told()) } else { "nothing in time".to_owned() };
        let expected = format!("an event of `{}`: {pattern}", watch.of);
        self.failed(Some(step), Failure::Broken, expected, got)
    }
}

/// A body as it is, or in chunks where it is cut. [RFC 9112, section 7.1]
fn framed(body: &[u8], cuts: Option<&Cuts>, lines: &mut Headers) -> Vec<u8> {
    let Some(cuts) = cuts else { return body.to_vec() };
    lines.push(("Transfer-Encoding".to_owned(), "chunked".to_owned()));
    let mut chunks = Vec::new();
    for piece in cuts.pieces(body).iter().filter(|piece| !piece.is_empty()) {
        chunks.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        chunks.extend_from_slice(piece);
        chunks.extend_from_slice(b"\r\n");
    }
    chunks.extend_from_slice(b"0\r\n\r\n");
    chunks
}

/// Puts the exchange's headers in place of those that belong to the message.
fn overlay(lines: &mut Headers, headers: &Map<String, Value>, scope: &Scope) -> Result<(), String> {
    for (name, template) in headers {
        lines.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match template::fill(template, scope)? {
            None => {}
            Some(Value::Array(values)) => {
                lines.extend(values.iter().map(|value| (name.clone(), text(value))));
            }
            Some(value) => lines.push((name.clone(), text(&value))),
        }
    }
    Ok(())
}

/// The body as a pattern sees it.
fn body(stream: &Stream) -> Option<Value> {
    if stream.body.is_empty() {
        return None;
    }
    let text = || Value::from(String::from_utf8_lossy(&stream.body).into_owned());
    let json = stream.media().ends_with("json");
    Some(if json { serde_json::from_slice(&stream.body).unwrap_or_else(|_| text()) } else { text() })
}

/// The response among what came: that with the id, or without one the last response.
fn response(stream: &Stream, id: Option<&Value>) -> Option<Value> {
    let events = stream.events.iter().filter_map(|event| event.get("message"));
    let whole = serde_json::from_slice::<Value>(&stream.body).ok();
    let mut all: Vec<&Value> = events.chain(&whole).collect();
    all.retain(|message| message.is_object() && message.get("method").is_none());
    let named = all.iter().rev().find(|message| id.is_some() && message.get("id") == id);
    named.or_else(|| all.last()).map(|message| (*message).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_cut_comes_in_chunks() {
        let mut lines = Headers::new();
        assert_eq!(framed(b"abcdefghijklmn", None, &mut lines), b"abcdefghijklmn");
        assert!(lines.is_empty());
        let cuts = Cuts::At(vec![3, 99]);
        let body = framed(b"abcdefghijklmn", Some(&cuts), &mut lines);
        assert_eq!(body, b"3\r\nabc\r\nb\r\ndefghijklmn\r\n0\r\n\r\n");
        assert_eq!(lines, [("Transfer-Encoding".to_owned(), "chunked".to_owned())]);
    }
}
