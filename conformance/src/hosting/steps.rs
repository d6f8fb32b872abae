//! The steps of an exchange for clients.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::game::{Arrival, Call, Failure, Flow, Game};
use super::house;
use super::stage::Conn;
use super::talk::{self, Lines, State};
use crate::bind::META;
use crate::exchange::{Act, Await, HostStep, Plain, Reply, Response, Tell, Transport, Written};
use crate::pattern::{Pattern, template};
use crate::replay::Direction;
use crate::revision::{Revision, Selector};
use crate::text::shorten;

/// A flood is written in pieces of about so many bytes.
const FLOOD_PIECE: usize = 16 << 10;

/// What an expectation makes of an arrival.
enum Look {
    /// It is of another kind.
    Other,
    Fits,
    Differs(String, String),
}

impl Game<'_> {
    /// Does the current step, or says what it waits for.
    pub(super) fn step(&mut self) -> Flow {
        let Some(step) = self.current() else { return Flow::Next };
        if !self.runs(step) {
            return Flow::Next;
        }
        let now = self.stage.now();
        let begun = match self.begun {
            Some(begun) => begun,
            None => {
                self.begun = Some(now);
                self.taken.clear();
                self.recent.clear();
                now
            }
        };
        let done = match &step.act {
            Act::Expect(awaited) => return self.expect(step, awaited, begun),
            Act::Request(plain) => return self.request(step, plain, begun),
            Act::Unordered(steps) => return self.unordered(step, steps, begun),
            Act::Reported { pattern, name, within } => {
                return self.reported(step, pattern, name.as_deref(), begun + self.limit(*within));
            }
            Act::Nothing { millis, of } => {
                // What the client does after it heard something is counted from when that was said.
                let from = self.said.unwrap_or(begun);
                return self.nothing(step, from + Duration::from_millis(*millis), of.as_ref());
            }
            Act::Wait(millis) => {
                let until = begun + Duration::from_millis(*millis);
                return if now < until { Flow::Wait(until) } else { Flow::Next };
            }
            Act::Closed { of, within } => return self.closes(step, of, begun + self.limit(*within)),
            Act::Started => return self.starts(step, begun + self.patience),
            Act::Tell(tell) => return self.tell(step, tell, begun),
            Act::Answer(reply) => self.answer(reply),
            Act::Respond { to, response } => self.find(to.as_deref()).map(|index| {
                let conn = self.calls[index].conn;
                self.calls[index].answered = true;
                let call = self.calls[index].clone();
                self.dropped(&call, response);
                self.respond(conn, response);
            }),
            Act::Write { on: Some(on), what, .. } if on == "stderr" => self.place(None).and_then(|conn| {
                let text = String::from_utf8_lossy(&self.bytes(what)?).into_owned();
                self.note(Direction::Sent, &text);
                self.stage.complain(conn, &text);
                Ok(())
            }),
            Act::Write { on, what, split } => self.place(on.as_deref()).and_then(|conn| {
                let bytes = self.bytes(what)?;
                self.overheard(&bytes);
                self.note(Direction::Sent, &crate::text::printable(&bytes));
                for piece in talk::pieces(&bytes, split.as_ref()) {
                    self.voice.write(&self.stage, conn, &piece);
                }
                Ok(())
            }),
            Act::Flood { text, on, most } => self.place(on.as_deref()).and_then(|conn| {
                let text = self.text(text)?;
                // Short ones many at a time: it is the client that is to be kept busy.
                let text = text.repeat((FLOOD_PIECE / text.len().max(1)).max(1));
                let mut sent = 0;
                while sent < *most && self.voice.write(&self.stage, conn, text.as_bytes()) {
                    sent += text.len() as u64;
                }
                self.note(Direction::Sent, &format!("{sent} bytes of `{}`", shorten(&text, 100)));
                Ok(())
            }),
            Act::End(of) => self.place(Some(of)).map(|conn| {
                self.note(Direction::Sent, "the end of the answer");
                self.voice.end(&self.stage, conn);
                self.forget(of);
            }),
            Act::Cut(of) => self.place(Some(of)).map(|conn| {
                self.note(Direction::Event, "the connection is cut");
                self.stage.cut(conn);
                self.forget(of);
            }),
            Act::Exit(code) => {
                self.note(Direction::Event, &format!("the server program exits with {code}"));
                if let Some(conn) = self.process.take() {
                    self.stage.leave(conn, *code as u8);
                    // What it was told last it never read.
                    self.inbox.retain(|arrival| arrival.conn != conn);
                }
                Ok(())
            }
            Act::Standing { answers, most } => {
                for (method, answer) in answers {
                    self.standing.insert(method.clone(), (answer.clone(), *most, 0));
                    // The client may have been faster.
                    let is_due = |arrival: &Arrival| arrival.method() == Some(method) && arrival.asks();
                    while let Some(index) = self.inbox.iter().position(is_due)
                        && let Some(arrival) = self.inbox.remove(index)
                    {
                        self.stand(method, arrival.into());
                    }
                }
                Ok(())
            }
        };
        match done {
            Ok(()) => Flow::Next,
            Err(problem) => {
                let expected = "an exchange that can be played".to_owned();
                self.failed(step, Failure::Broken, expected, problem)
            }
        }
    }

    /// Whether the next step that looks at messages wants this one. What the suite says in between could not
    /// have caused it.
    pub(super) fn is_wanted(&mut self, arrival: &Arrival) -> bool {
        let steps = self.hosted.steps.get(self.at..).unwrap_or_default();
        for (ahead, step) in steps.iter().filter(|step| self.runs(step)).enumerate() {
            let candidates: Vec<&HostStep> = match &step.act {
                Act::Expect(_) | Act::Request(_) => vec![step],
                Act::Unordered(steps) => {
                    let here = |index: usize| ahead > 0 || !self.taken.contains(&index);
                    steps.iter().enumerate().filter(|(index, _)| here(*index)).map(|(_, step)| step).collect()
                }
                Act::Reported { .. }
                | Act::Nothing { .. }
                | Act::Wait(_)
                | Act::Closed { .. }
                | Act::Started => {
                    continue;
                }
                _ => return false,
            };
            return candidates.iter().any(|step| {
                let kept = self.scope.clone();
                let look = self.look(step, arrival);
                self.scope = kept;
                matches!(look, Look::Fits)
            });
        }
        false
    }

    /// Holds an arrival against an expectation; values are bound if it fits.
    fn look(&mut self, step: &HostStep, arrival: &Arrival) -> Look {
        match &step.act {
            Act::Expect(awaited) => self.look_at_message(awaited, arrival),
            Act::Request(plain) => self.look_at_request(plain, arrival),
            _ => Look::Other,
        }
    }

    fn look_at_message(&mut self, awaited: &Await, arrival: &Arrival) -> Look {
        let ours = match &awaited.method {
            Some(method) => arrival.method() == Some(method.as_str()),
            None => {
                let wanted = self.own.iter().rev().find(|(name, _)| *name == awaited.of).map(|(_, id)| id);
                arrival.method().is_none() && wanted.is_some() && arrival.message.get("id") == wanted
            }
        };
        if !ours {
            return Look::Other;
        }
        if let Err(mismatch) = awaited.pattern.matches(&arrival.message, &mut self.scope) {
            let message = shorten(&arrival.message.to_string(), 300);
            return Look::Differs(
                format!("{}: {}", mismatch.at, mismatch.expected),
                format!("{} in {message}", mismatch.got),
            );
        }
        self.look_at_headers(&awaited.headers, arrival)
    }

    fn look_at_request(&mut self, plain: &Plain, arrival: &Arrival) -> Look {
        let elsewhere = arrival.message.get("elsewhere").is_some();
        if arrival.plain() != Some(plain.method.as_str()) || elsewhere != plain.elsewhere {
            return Look::Other;
        }
        if let Some(path) = &plain.path
            && let Err(mismatch) = path.matches(&arrival.message["path"], &mut self.scope)
        {
            return Look::Differs(format!("path {}", mismatch.expected), mismatch.got);
        }
        self.look_at_headers(&plain.headers, arrival)
    }

    fn look_at_headers(&mut self, headers: &[(String, Pattern)], arrival: &Arrival) -> Look {
        let Some(web) = &arrival.web else { return Look::Fits };
        for (name, pattern) in headers {
            let value = web.header(name).map(Value::from);
            if let Err(mismatch) = pattern.holds(value.as_ref(), &mut self.scope) {
                return Look::Differs(format!("header {name}: {}", mismatch.expected), mismatch.got);
            }
        }
        Look::Fits
    }

    fn expect(&mut self, step: &HostStep, awaited: &Await, begun: Duration) -> Flow {
        let (min, max) = awaited.times.map_or((1, Some(1)), |times| (times.min, times.max));
        let mut index = 0;
        while index < self.inbox.len() && max.is_none_or(|max| (self.taken.len() as u64) < max) {
            let arrival = self.inbox[index].clone();
            match self.look_at_message(awaited, &arrival) {
                Look::Other => index += 1,
                Look::Fits => {
                    self.inbox.remove(index);
                    self.taken.push(index);
                    self.called(awaited.name.clone(), arrival);
                }
                Look::Differs(expected, got) => {
                    self.inbox.remove(index);
                    return self.failed(step, Failure::Differs, expected, got);
                }
            }
        }
        if self.taken.len() as u64 >= min {
            return Flow::Next;
        }
        let expected = format!("{}", awaited.pattern);
        self.still(step, begun + self.limit(awaited.within), expected)
    }

    fn request(&mut self, step: &HostStep, plain: &Plain, begun: Duration) -> Flow {
        for index in 0..self.inbox.len() {
            let arrival = self.inbox[index].clone();
            match self.look_at_request(plain, &arrival) {
                Look::Other => {}
                Look::Fits => {
                    self.inbox.remove(index);
                    self.called(plain.name.clone(), arrival);
                    return Flow::Next;
                }
                Look::Differs(expected, got) => {
                    self.inbox.remove(index);
                    return self.failed(step, Failure::Differs, expected, got);
                }
            }
        }
        let expected = format!("a {} request", plain.method);
        self.still(step, begun + self.limit(plain.within), expected)
    }

    fn unordered(&mut self, step: &HostStep, steps: &[HostStep], begun: Duration) -> Flow {
        let mut index = 0;
        while index < self.inbox.len() {
            let arrival = self.inbox[index].clone();
            let mut differs = None;
            let mut fits = None;
            for (place, inner) in steps.iter().enumerate() {
                if self.taken.contains(&place) || !self.runs(inner) {
                    continue;
                }
                match self.look(inner, &arrival) {
                    Look::Fits => {
                        fits = Some(place);
                        break;
                    }
                    Look::Differs(expected, got) => differs = Some((expected, got)),
                    Look::Other => {}
                }
            }
            match (fits, differs) {
                (Some(place), _) => {
                    self.inbox.remove(index);
                    self.taken.push(place);
                    let name = match &steps[place].act {
                        Act::Expect(awaited) => awaited.name.clone(),
                        Act::Request(plain) => plain.name.clone(),
                        _ => None,
                    };
                    self.called(name, arrival);
                }
                (None, Some((expected, got))) => {
                    self.inbox.remove(index);
                    return self.failed(step, Failure::Differs, expected, got);
                }
                (None, None) => index += 1,
            }
        }
        let missing = (0..steps.len()).find(|place| !self.taken.contains(place) && self.runs(&steps[*place]));
        let Some(missing) = missing else { return Flow::Next };
        let (expected, within) = match &steps[missing].act {
            Act::Expect(awaited) => (awaited.pattern.to_string(), awaited.within),
            Act::Request(plain) => (format!("a {} request", plain.method), plain.within),
            _ => (String::new(), None),
        };
        self.still(step, begun + self.limit(within), expected)
    }

    fn reported(&mut self, step: &HostStep, pattern: &Pattern, name: Option<&str>, until: Duration) -> Flow {
        let named =
            |report: &Value| name.is_none_or(|name| report.get("as").and_then(Value::as_str) == Some(name));
        let Some(index) = self.reports.iter().position(named) else {
            return self.still(step, until, format!("the client tells {pattern}"));
        };
        let report = self.reports.remove(index).unwrap_or_default();
        match pattern.matches(&report, &mut self.scope) {
            Ok(()) => Flow::Next,
            Err(mismatch) => {
                let expected = format!("the client tells {}: {}", mismatch.at, mismatch.expected);
                let got = format!("{} in {}", mismatch.got, shorten(&report.to_string(), 400));
                self.failed(step, Failure::Differs, expected, got)
            }
        }
    }

    fn nothing(&mut self, step: &HostStep, until: Duration, of: Option<&Pattern>) -> Flow {
        // What came too late to count counts not, however late it is looked at.
        let waiting = self.inbox.iter().map(|arrival| (arrival.at, &arrival.message));
        let recent = self.recent.iter().map(|(at, message)| (*at, message));
        let in_time = |(at, message): (Duration, &Value)| (at <= until).then(|| message.clone());
        let all: Vec<Value> = match of {
            Some(_) => waiting.chain(recent).filter_map(in_time).collect(),
            None => waiting.filter_map(in_time).filter(|message| message.get("id").is_some()).collect(),
        };
        let found = all.into_iter().find(|message| match of {
            Some(pattern) => pattern.fits(Some(message), &mut self.scope.clone()),
            None => true,
        });
        if let Some(found) = found {
            let expected = of.map_or_else(|| "nothing".to_owned(), |of| format!("nothing like {of}"));
            return self.failed(step, Failure::Differs, expected, found.to_string());
        }
        if self.stage.now() >= until || self.is_over() { Flow::Next } else { Flow::Wait(until) }
    }

    fn closes(&mut self, step: &HostStep, of: &str, until: Duration) -> Flow {
        let conn = match of {
            "input" => self.process,
            name => {
                self.calls.iter().rev().find(|call| call.name.as_deref() == Some(name)).map(|call| call.conn)
            }
        };
        if conn.is_none_or(|conn| self.closed.contains(&conn)) {
            return Flow::Next;
        }
        self.still(step, until, format!("the client closes the connection of `{of}`"))
    }

    fn starts(&mut self, step: &HostStep, until: Duration) -> Flow {
        if self.starts.0 > self.starts.1 {
            self.starts.1 += 1;
            return Flow::Next;
        }
        self.still(step, until, "the client starts the server once more".to_owned())
    }

    /// Waits on, unless nothing can come any more.
    fn still(&mut self, step: &HostStep, until: Duration, expected: String) -> Flow {
        let over = self.is_over();
        if self.stage.now() < until && !over {
            return Flow::Wait(until);
        }
        let got = if over { "the end of the client" } else { "nothing in time" };
        self.failed(step, Failure::Broken, expected, got.to_owned())
    }

    fn limit(&self, within: Option<u64>) -> Duration {
        within.map_or(self.patience, Duration::from_millis)
    }

    /// Keeps what was taken, so that it can be answered.
    fn called(&mut self, name: Option<String>, arrival: Arrival) {
        let id = arrival.message.get("id").cloned();
        if let (Some(name), Some(id)) = (&name, &id) {
            self.scope.ids.insert(name.clone(), id.clone());
        }
        let answered = arrival.plain().is_none() && (id.is_none() || arrival.method().is_none());
        let Arrival { conn, message, web, .. } = arrival;
        self.calls.push(Call { name, conn, message, web, answered });
    }

    /// The call with this name; without one the latest that has no answer.
    fn find(&self, name: Option<&str>) -> Result<usize, String> {
        let fits = |call: &Call| match name {
            Some(name) => call.name.as_deref() == Some(name),
            None => !call.answered,
        };
        self.calls.iter().rposition(fits).ok_or_else(|| match name {
            Some(name) => format!("no request is named `{name}`"),
            None => "no request is open".to_owned(),
        })
    }

    /// Where bytes go.
    fn place(&self, on: Option<&str>) -> Result<Conn, String> {
        if self.transport == Transport::Stdio {
            return self.process.ok_or_else(|| "no server program runs".to_owned());
        }
        match on {
            Some("session") => self.stream.ok_or_else(|| "the session has no stream".to_owned()),
            Some(name) => self.find(Some(name)).map(|index| self.calls[index].conn),
            None => self.find(None).map(|index| self.calls[index].conn),
        }
    }

    fn answer(&mut self, reply: &Reply) -> Result<(), String> {
        let index = self.find(reply.to.as_deref())?;
        self.calls[index].answered = true;
        let call = self.calls[index].clone();
        let mut body = reply.body.clone();
        house::complete(&mut body, self.serves_modern(&call), call.method(), &call.message);
        let message = self.finished(body, &call)?;
        self.ledger.sent(&message);
        self.say(&call, &message, reply)
    }

    /// Whether the server answers this call by the rules of the modern era.
    fn serves_modern(&self, call: &Call) -> bool {
        let speaks = |speaks: Selector| speaks.revisions().any(Revision::is_modern);
        call.is_modern() && (self.revision.is_modern() || self.hosted.speaks.is_some_and(speaks))
    }

    /// The answer with what every answer has.
    fn finished(&self, body: Value, call: &Call) -> Result<Value, String> {
        Ok(template::fill(&whole(body, call), &self.scope)?.unwrap_or_default())
    }

    fn say(&mut self, call: &Call, message: &Value, reply: &Reply) -> Result<(), String> {
        self.note(Direction::Sent, &message.to_string());
        if self.transport == Transport::Stdio {
            let conn = self.process.ok_or("no server program runs")?;
            self.stage.print(conn, format!("{message}\n").as_bytes());
            return Ok(());
        }
        let one_stream = self.revision == Revision::V2024_11_05 && !call.is_modern();
        let conn = match reply.on.as_deref() {
            // A client that has left gets no answer; what it told is judged.
            _ if one_stream => match self.stream {
                Some(stream) => stream,
                None => return Ok(()),
            },
            Some(on) => self.place(Some(on))?,
            None => call.conn,
        };
        let mut lines: Lines = Vec::new();
        for (name, value) in &reply.headers {
            let filled = template::fill(value, &self.scope)?.unwrap_or_default();
            lines.push((name.clone(), plain(&filled)));
        }
        if call.method() == "initialize" && !call.is_modern() && message.get("result").is_some() {
            self.offer_session(&mut lines);
        }
        let events = reply.events.unwrap_or(self.hosted.manners.events);
        if one_stream || events || reply.on.is_some() || self.voice.state(conn) == Some(State::Open) {
            self.voice.stream(&self.stage, conn, (reply.status.unwrap_or(200), &lines));
            let event = self.event_lines(&reply.event)?;
            self.voice.write(&self.stage, conn, &talk::event(message, &event));
            if !reply.open && !one_stream && self.stream != Some(conn) {
                self.voice.end(&self.stage, conn);
            }
            return Ok(());
        }
        let mut headers: Lines = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        talk::overlay(&mut headers, &lines);
        let status = reply.status.unwrap_or_else(|| status(message, call));
        self.voice.respond(&self.stage, conn, (status, &headers), message.to_string().as_bytes(), false);
        Ok(())
    }

    /// A handshake that an exchange answers opens a session, too, unless it says otherwise.
    fn offer_session(&mut self, lines: &mut Lines) {
        let written = lines.iter().find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
        match written.map(|(_, id)| id.clone()) {
            Some(id) => self.ledger.session = Some(id),
            None if self.hosted.manners.session && self.revision > Revision::V2024_11_05 => {
                let id = self.new_session();
                lines.push(("Mcp-Session-Id".to_owned(), id));
            }
            None => {}
        }
    }

    pub(super) fn say_by_house(&mut self, call: Call, mut body: Value, headers: Lines) {
        house::complete(&mut body, self.serves_modern(&call), call.method(), &call.message);
        let message = whole(body, &call);
        self.ledger.sent(&message);
        if call.method() == "initialize" {
            // The header is there already.
            let text = message.to_string();
            if self.transport == Transport::Http && self.revision != Revision::V2024_11_05 {
                self.note(Direction::Sent, &text);
                let mut lines = vec![("Content-Type".to_owned(), "application/json".to_owned())];
                talk::overlay(&mut lines, &headers);
                if self.hosted.manners.events {
                    self.voice.stream(&self.stage, call.conn, (200, &headers));
                    self.voice.write(&self.stage, call.conn, &talk::event(&message, &Map::new()));
                    self.voice.end(&self.stage, call.conn);
                } else {
                    let status = status(&message, &call);
                    self.voice.respond(&self.stage, call.conn, (status, &lines), text.as_bytes(), false);
                }
                return;
            }
        }
        let reply = reply_of_house();
        let _ = self.say(&call, &message, &reply);
    }

    /// An answer that stands for every request with the method.
    pub(super) fn stand(&mut self, method: &str, call: Call) {
        let Some((answer, most, count)) = self.standing.get_mut(method) else { return };
        *count += 1;
        let (mut body, most, count) = (answer.clone(), *most, *count);
        if most.is_some_and(|most| count > most) {
            if most.is_some_and(|most| count == most + 1)
                && let Some(step) = self.hosted.steps.get(self.at.min(self.hosted.steps.len() - 1))
            {
                let expected = format!("at most {} times `{method}`", most.unwrap_or_default());
                self.failed(step, Failure::Differs, expected, format!("{count} times"));
            }
            return;
        }
        self.scope.values.insert("n".to_owned(), json!(count));
        house::complete(&mut body, self.serves_modern(&call), call.method(), &call.message);
        let Ok(message) = self.finished(body, &call) else { return };
        self.ledger.sent(&message);
        let _ = self.say(&call, &message, &reply_of_house());
    }

    fn tell(&mut self, step: &HostStep, tell: &Tell, begun: Duration) -> Flow {
        let conn = match self.way(tell) {
            Some(conn) => conn,
            None if self.stage.now() < begun + self.patience && !self.is_over() => {
                return Flow::Wait(begun + self.patience);
            }
            None => {
                self.lacks = Some("a stream of the session".to_owned());
                return Flow::Stop;
            }
        };
        match self.told(tell, conn) {
            Ok(()) => Flow::Next,
            Err(problem) => self.failed(step, Failure::Broken, "a message to send".to_owned(), problem),
        }
    }

    /// The connection on which a message of the server goes.
    fn way(&self, tell: &Tell) -> Option<Conn> {
        if self.transport == Transport::Stdio {
            return self.process;
        }
        if self.revision == Revision::V2024_11_05 {
            return self.stream;
        }
        let method = tell.message.get("method").and_then(Value::as_str).unwrap_or_default();
        let open = |listen: bool| {
            let fits = |call: &&Call| {
                let dead = self.closed.contains(&call.conn);
                !call.answered && !dead && (call.method() == "subscriptions/listen") == listen
            };
            self.calls.iter().rev().find(fits).map(|call| call.conn)
        };
        let changed = method.ends_with("list_changed")
            || matches!(
                method,
                "notifications/resources/updated"
                    | "notifications/subscriptions/acknowledged"
                    | "notifications/tasks"
            );
        match tell.on.as_deref() {
            Some("session") => self.stream,
            Some(on) => self.place(Some(on)).ok(),
            None if changed && self.revision.is_modern() => open(true),
            None if changed => self.stream,
            None => open(false).or_else(|| open(true)).or(self.stream),
        }
    }

    fn told(&mut self, tell: &Tell, conn: Conn) -> Result<(), String> {
        let mut message = tell.message.clone();
        let on = |call: &&Call| match tell.on.as_deref() {
            Some(name) => call.name.as_deref() == Some(name),
            None => call.conn == conn || self.transport == Transport::Stdio,
        };
        let listens = |call: &&Call| on(call) && call.method() == "subscriptions/listen" && !call.answered;
        let listen = self.calls.iter().rev().find(listens).and_then(|call| call.message.get("id")).cloned();
        if let Value::Object(members) = &mut message {
            members.entry("jsonrpc").or_insert_with(|| json!("2.0"));
            let method = members.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
            if !method.starts_with("notifications/") && !members.contains_key("id") && tell.name.is_some() {
                members.insert("id".to_owned(), json!(self.next_id));
                self.next_id += 1;
            }
            let tagged = ["notifications/progress", "notifications/message", "notifications/cancelled"];
            if let Some(id) =
                listen.filter(|_| self.revision.is_modern() && !tagged.contains(&method.as_str()))
            {
                let params = members.entry("params").or_insert_with(|| json!({}));
                if let Value::Object(params) = params {
                    let meta = params.entry("_meta").or_insert_with(|| json!({}));
                    if let Value::Object(meta) = meta {
                        meta.entry(format!("{META}subscriptionId")).or_insert(id);
                    }
                }
            }
        }
        let message = template::fill(&message, &self.scope)?.unwrap_or_default();
        if message.get("method").is_some()
            && let Some(id) = message.get("id")
        {
            self.own.push((tell.name.clone(), id.clone()));
            if let Some(name) = &tell.name {
                self.scope.ids.insert(name.clone(), id.clone());
            }
        }
        self.ledger.sent(&message);
        self.note(Direction::Sent, &message.to_string());
        if self.transport == Transport::Stdio {
            self.stage.print(conn, format!("{message}\n").as_bytes());
            return Ok(());
        }
        let event = self.event_lines(&tell.event)?;
        self.voice.stream(&self.stage, conn, (200, &Vec::new()));
        self.voice.write(&self.stage, conn, &talk::event(&message, &event));
        Ok(())
    }

    fn event_lines(&self, lines: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        match template::fill(&Value::Object(lines.clone()), &self.scope)? {
            Some(Value::Object(lines)) => Ok(lines),
            _ => Ok(Map::new()),
        }
    }

    /// An answer as it stands.
    pub(super) fn respond(&mut self, conn: Conn, response: &Response) {
        let mut headers: Lines = Vec::new();
        let text = |value: &Value| plain(value);
        for (name, value) in &response.headers {
            match template::fill(value, &self.scope) {
                Ok(Some(Value::Array(values))) => {
                    headers.extend(values.iter().map(|value| (name.clone(), text(value))));
                }
                Ok(Some(value)) => headers.push((name.clone(), text(&value))),
                _ => {}
            }
        }
        let body = response.body.as_ref().and_then(|body| template::fill(body, &self.scope).ok().flatten());
        let typed = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if body.as_ref().is_some_and(|body| !body.is_string()) && !typed {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        let bytes = body.as_ref().map(plain).unwrap_or_default().into_bytes();
        self.overheard(&bytes);
        self.note(Direction::Sent, &format!("{} {}", response.status, String::from_utf8_lossy(&bytes)));
        self.voice.respond(&self.stage, conn, (response.status, &headers), &bytes, response.open);
    }

    /// An answer without a message.
    pub(super) fn reply(&mut self, conn: Conn, status: u64, headers: &[(&str, &str)], body: &str) {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers: Lines = headers.iter().map(own).collect();
        self.note(Direction::Sent, format!("{status} {body}").trim_end());
        self.voice.respond(&self.stage, conn, (status, &headers), body.as_bytes(), false);
    }

    /// What a refusal says about the session, and that the request is not open any more.
    fn dropped(&mut self, call: &Call, response: &Response) {
        if response.open {
            return;
        }
        let rpc = response.body.as_ref().is_some_and(|body| body.get("jsonrpc").is_some());
        let bears = call.web.as_ref().is_some_and(|web| web.header("mcp-session-id").is_some());
        if response.status == 404 && bears && !rpc {
            self.session_is_over();
        }
        if let Some(id) = call.message.get("id") {
            // What is redirected comes once more as it was.
            if (300..400).contains(&response.status) {
                self.ledger.forget(id);
            } else {
                self.ledger.dropped(id);
            }
        }
    }

    fn forget(&mut self, name: &str) {
        if let Ok(index) = self.find(Some(name)) {
            let open = !self.calls[index].answered;
            self.calls[index].answered = true;
            if let Some(id) = self.calls[index].message.get("id").filter(|_| open) {
                self.ledger.dropped(id);
            }
        }
    }

    /// Messages in what is sent as it stands.
    fn overheard(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        for line in text.lines() {
            let line = line.strip_prefix("data:").unwrap_or(line).trim();
            if line.starts_with('{')
                && let Ok(message) = serde_json::from_str::<Value>(line)
            {
                self.ledger.sent(&message);
            }
        }
    }

    fn bytes(&self, what: &Written) -> Result<Vec<u8>, String> {
        match what {
            Written::Text(text) => self.text(text).map(String::into_bytes),
            Written::Bytes(bytes) => Ok(bytes.clone()),
        }
    }

    fn text(&self, text: &Value) -> Result<String, String> {
        template::fill(text, &self.scope).map(|filled| filled.as_ref().map(plain).unwrap_or_default())
    }
}

/// The answer with its version and id, where it has no others.
fn whole(mut body: Value, call: &Call) -> Value {
    if let Value::Object(members) = &mut body {
        members.entry("jsonrpc").or_insert_with(|| json!("2.0"));
        let id = call.message.get("id").cloned().unwrap_or_default();
        members.entry("id").or_insert(id);
    }
    body
}

/// The status with which an answer comes.
fn status(message: &Value, call: &Call) -> u64 {
    let code = message.pointer("/error/code").and_then(Value::as_i64);
    match code.filter(|_| call.is_modern()) {
        Some(-32601) => 404,
        Some(-32022..=-32020) => 400,
        _ => 200,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn reply_of_house() -> Reply {
    Reply {
        to: None,
        on: None,
        body: Value::Null,
        events: None,
        status: None,
        headers: Map::new(),
        event: Map::new(),
        open: false,
    }
}
