//! The machine does not depend on how it is driven: when the clock is looked at, how bytes are cut, in
//! which order members come.

use std::fmt::Write;
use std::time::Duration;

use mcp_proto::codec::{Frame, LineBuffer};
use mcp_proto::model::method::CallTool;
use mcp_proto::model::{CallToolResult, InputRequest, InputRequired};
use mcp_proto::server::{Call, Change, Channel, Connection, Event, Incoming, Pending, Progress, RequestKey};
use proptest::prelude::*;
use serde_json::Value;

use super::pair::{
    EVERY_CAPABILITY, at, cancel, config, initialize, legacy, limits, modern, modern_of, notification, result,
};

/// When the driver looks at the clock.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Clock {
    /// Only when the machine asked for it.
    Lazy,
    /// Every millisecond, and before and after everything else.
    Greedy,
}

/// A driver with a few tools, and a record of all that happened on its stream.
struct Driver {
    server: Connection,
    lines: LineBuffer,
    out: Vec<u8>,
    now: u64,
    clock: Clock,
    /// Tools at work: when they are done, and what they say on the way.
    at_work: Vec<(u64, Pending<CallTool>)>,
    names: Vec<RequestKey>,
    record: String,
}

impl Driver {
    fn new(clock: Clock) -> Self {
        let limits = limits(|l| {
            l.request_timeout = Some(Duration::from_millis(40));
            l.client_request_timeout = Some(Duration::from_millis(25));
            l.max_message = 2_000;
            l.max_in_flight = 8;
        });
        Self {
            lines: LineBuffer::new(limits.max_message),
            server: Connection::new(config().limits(limits).build()),
            out: Vec::new(),
            now: 1_000,
            clock,
            at_work: Vec::new(),
            names: Vec::new(),
            record: String::new(),
        }
    }

    /// What happens over time if the client sends this. Times are in milliseconds and grow.
    fn run<B: AsRef<[u8]>>(mut self, script: &[(u64, B)]) -> String {
        for (time, bytes) in script {
            self.wait_until(1_000 + time);
            self.lines.extend(bytes.as_ref());
            self.read();
        }
        self.wait_until(2_000);
        while let Some(frame) = self.lines.finish() {
            let _ = frame;
        }
        self.server.end_of_input(&mut self.out);
        self.note("end of input");
        self.record
    }

    /// Timers first, then tools, then what the client sent.
    fn wait_until(&mut self, time: u64) {
        while self.now < time {
            let deadline = self.server.next_deadline().map(|d| d.since_origin().as_millis() as u64);
            let done = self.at_work.iter().map(|(done, _)| *done).min();
            let next = match self.clock {
                Clock::Greedy => self.now + 1,
                Clock::Lazy => deadline.into_iter().chain(done).min().unwrap_or(time).clamp(self.now, time),
            };
            self.now = next.max(self.now);
            self.look_at_the_clock();
            while let Some(at) = self.at_work.iter().position(|(done, _)| *done <= self.now) {
                let (_, pending) = self.at_work.remove(at);
                let _ = self.server.respond(pending, &CallToolResult::text("done"), &mut self.out);
                self.note("done");
            }
            self.look_at_the_clock();
            if self.clock == Clock::Lazy && next == time {
                break;
            }
        }
    }

    fn look_at_the_clock(&mut self) {
        let due = |server: &Connection, now| server.next_deadline().is_some_and(|d| d <= at(now));
        if self.clock == Clock::Greedy || due(&self.server, self.now) {
            while let Some(event) = self.server.handle_timeout(at(self.now), &mut self.out) {
                self.event(event);
            }
        }
    }

    fn read(&mut self) {
        loop {
            let mut lines = core::mem::replace(&mut self.lines, LineBuffer::new(0));
            let more = match lines.next_frame() {
                Some(Frame::Line(line)) => {
                    self.frame(line);
                    true
                }
                Some(Frame::TooLong { .. }) => {
                    let event = self.server.refuse_oversized(&mut self.out);
                    self.event(event);
                    true
                }
                None => false,
            };
            self.lines = lines;
            self.look_at_the_clock();
            if !more {
                return;
            }
        }
    }

    fn frame(&mut self, frame: &[u8]) {
        match self.server.handle(frame, at(self.now), &mut self.out) {
            Some(Event::Batch(batch)) => {
                for member in batch {
                    if let Some(event) = self.server.handle_member(member, at(self.now), &mut self.out) {
                        self.event(event);
                    }
                }
                self.note("batch");
            }
            Some(event) => self.event(event),
            None => self.note("handled"),
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Request(incoming) => {
                self.names.push(incoming.pending.key());
                self.request(incoming);
            }
            Event::Resumed(resumed) => {
                self.note("resumed");
                self.request(resumed.incoming());
            }
            Event::Cancelled { key, reason } => {
                self.at_work.retain(|(_, pending)| pending.key() != key);
                let name = self.name(key);
                self.note(&format!("cancelled {name} {reason:?}"));
            }
            Event::TimedOut { key } => {
                self.at_work.retain(|(_, pending)| pending.key() != key);
                let name = self.name(key);
                self.note(&format!("timed out {name}"));
            }
            Event::Answer(answer) => {
                let call = answer.request.map(|key| self.name(key));
                self.note(&format!("answer {call:?} {:?}", answer.outcome.map(|raw| raw.get().to_owned())));
            }
            Event::Rejected(violation) => self.note(&format!("rejected {violation:?}")),
            Event::Notification(notice) => self.note(&format!("notification {}", notice.method)),
            other => self.note(&format!("{other:?}")),
        }
    }

    fn request(&mut self, incoming: Incoming<'_>) {
        self.note(&format!("request {} {} {:?}", incoming.method, incoming.version, incoming.features));
        let Self { server, out, now, .. } = self;
        let delivery = match incoming.typed() {
            Err(refusal) => server.refuse(refusal, out),
            Ok(Call::CallTool(pending, params)) => {
                let arguments = params.arguments.map_or("{}", |raw| raw.get());
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                match &*params.name {
                    "slow" => {
                        let delivery = server.progress(&pending, Progress::new(0.5), out);
                        self.at_work.push((*now + arguments["ms"].as_u64().unwrap_or(1), pending));
                        delivery
                    }
                    "never" => {
                        let _ = server.ask(pending.key(), &InputRequest::ListRoots, at(*now), out);
                        self.at_work.push((u64::MAX, pending));
                        mcp_proto::server::Delivery::Discarded
                    }
                    "ask" if params.retry.input_responses.is_none() => {
                        let input =
                            InputRequired::default().ask("r", InputRequest::ListRoots).request_state("s");
                        match server.require_input(pending, &input, out) {
                            Ok(delivery) => delivery,
                            Err(missing) => server.refuse_missing(missing, out),
                        }
                    }
                    "touch" => {
                        server.publish(&Change::Tools);
                        server.publish(&Change::Resource("a:1"));
                        server.respond(pending, &CallToolResult::text("touched"), out)
                    }
                    _ => {
                        let text = arguments["text"].as_str().unwrap_or_default().to_owned();
                        server.respond(pending, &CallToolResult::text(text), out)
                    }
                }
            }
            Ok(Call::Listen(pending, params)) => server.acknowledge(pending, &params.notifications, out),
            Ok(Call::Other(incoming)) => server.refuse(incoming.not_found(), out),
            Ok(Call::ListTools(pending, _)) => server.respond_raw(pending, br#"{"tools":[]}"#, out),
            Ok(other) => panic!("{other:?}"),
        };
        self.server.flush_subscriptions(&mut self.out);
        self.note(&format!("{delivery:?}"));
    }

    fn name(&self, key: RequestKey) -> usize {
        self.names.iter().position(|name| *name == key).unwrap()
    }

    fn note(&mut self, what: &str) {
        let now = self.now;
        writeln!(self.record, "{now} {what}").unwrap();
        let written = String::from_utf8(core::mem::take(&mut self.out)).unwrap();
        for line in written.lines() {
            writeln!(self.record, "{now} < {line}").unwrap();
        }
    }
}

/// What clients send, good and bad.
fn message() -> impl Strategy<Value = String> {
    let id = prop_oneof![Just("1"), Just("\"1\""), Just("2"), Just("3"), Just("\"é\"")];
    (0..20u8, id, 1..60u64).prop_map(|(kind, id, ms)| {
        let slow = format!(r#""name":"slow","arguments":{{"ms":{ms}}}"#);
        let slow_with_token = format!(r#"{slow},"_meta":{{"progressToken":"t"}}"#);
        match kind {
            0 | 1 => initialize("\"init\"", "2025-03-26", EVERY_CAPABILITY),
            2 => initialize("\"init\"", "2025-11-25", EVERY_CAPABILITY),
            3 => notification("notifications/initialized"),
            4 => modern(id, "tools/call", r#""name":"echo","arguments":{"text":"读🎉\\n\u00e9"}"#),
            5 => modern_of(id, "tools/call", &slow, "{}", "\"progressToken\":1"),
            6 => legacy(id, "tools/call", &slow_with_token),
            7 => legacy(id, "tools/call", "\"name\":\"ask\""),
            8 => modern_of(id, "tools/call", "\"name\":\"ask\"", r#"{"roots":{}}"#, ""),
            9 => modern(id, "tools/call", "\"name\":\"never\""),
            10 => legacy(id, "tools/call", "\"name\":\"never\""),
            11 => cancel(id),
            12 => result(&Value::from(ms % 4), r#"{"roots":[]}"#),
            13 => modern(
                id,
                "subscriptions/listen",
                r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}"#,
            ),
            14 => modern(id, "tools/call", "\"name\":\"touch\""),
            15 => format!("[{},{}]", legacy(id, "tools/call", &slow), legacy("9", "ping", "")),
            16 => "{\"jsonrpc\":\"2.0\",\"id\":".into(),
            17 => format!("{}{}", legacy(id, "ping", ""), " ".repeat(ms as usize * 60)),
            18 => modern(id, "server/discover", ""),
            _ => modern(id, "tools/list", "").replace("clientCapabilities", "x"),
        }
    })
}

/// Messages with the gaps between them.
fn script() -> impl Strategy<Value = Vec<(u64, String)>> {
    let ending = prop_oneof![4 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\n\n")];
    prop::collection::vec((0..15u64, message(), ending), 1..30).prop_map(|messages| {
        let mut time = 0;
        messages
            .into_iter()
            .map(|(gap, message, ending)| {
                time += gap;
                (time, format!("{message}{ending}"))
            })
            .collect()
    })
}

proptest! {
    /// `next_deadline` says enough: who only wakes when it says so misses nothing.
    #[test]
    fn lazy_and_greedy_drivers_see_the_same(script in script()) {
        let lazy = Driver::new(Clock::Lazy).run(&script);
        let greedy = Driver::new(Clock::Greedy).run(&script);
        prop_assert_eq!(lazy, greedy);
    }

    /// S05 for whole conversations: the cuts between reads do not matter.
    #[test]
    fn any_split_of_the_bytes_gives_the_same(
        script in script(),
        cuts in prop::collection::vec(1usize..200, 1..40),
    ) {
        let bytes: Vec<u8> = script.into_iter().flat_map(|(_, line)| line.into_bytes()).collect();
        let whole = Driver::new(Clock::Lazy).run(&[(0, bytes.clone())]);
        let mut rest = &bytes[..];
        let mut split = Vec::new();
        for cut in cuts.into_iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (head, tail) = rest.split_at(cut.min(rest.len()));
            split.push((0, head.to_vec()));
            rest = tail;
        }
        prop_assert_eq!(&whole, &Driver::new(Clock::Lazy).run(&split));
        let bytewise: Vec<_> = bytes.iter().map(|byte| (0, vec![*byte])).collect();
        prop_assert_eq!(&whole, &Driver::new(Clock::Lazy).run(&bytewise));
    }

    /// JSON objects have no order: neither the envelope, nor params, nor metadata.
    #[test]
    fn the_order_of_members_does_not_matter(script in script(), seed in any::<u64>()) {
        let mut seed = seed | 1;
        // Without the lines that are too long only for their white space.
        let script: Vec<_> =
            script.iter().map(|(time, line)| (*time, format!("{}\n", line.trim_end()))).collect();
        let shuffled: Vec<_> = script
            .iter()
            .map(|(time, line)| match serde_json::from_str::<Value>(line) {
                Ok(value) => (*time, format!("{}\n", shuffle(&value, 3, &mut seed))),
                Err(_) => (*time, line.clone()),
            })
            .collect();
        let plain = Driver::new(Clock::Lazy).run(&script);
        prop_assert_eq!(plain, Driver::new(Clock::Lazy).run(&shuffled));
    }
}

/// The JSON text with the members of the outer `depth` objects in another order.
fn shuffle(value: &Value, depth: usize, seed: &mut u64) -> String {
    match value {
        Value::Object(object) if depth > 0 => {
            let mut members: Vec<_> = object
                .iter()
                .map(|(name, value)| format!("{}:{}", Value::from(&**name), shuffle(value, depth - 1, seed)))
                .collect();
            for at in (1..members.len()).rev() {
                *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                members.swap(at, (*seed >> 33) as usize % (at + 1));
            }
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(|v| shuffle(v, depth, seed)).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// The scripts reach what they are about: timeouts, answers, questions, arrays.
#[test]
fn scripts_are_not_trivial() {
    let line = |time, text: String| (time, format!("{text}\n"));
    let record = Driver::new(Clock::Lazy).run(&[
        line(0, initialize("\"init\"", "2025-03-26", EVERY_CAPABILITY)),
        line(0, notification("notifications/initialized")),
        line(
            1,
            legacy("1", "tools/call", r#""name":"slow","arguments":{"ms":7},"_meta":{"progressToken":"t"}"#),
        ),
        line(2, legacy("2", "tools/call", "\"name\":\"ask\"")),
        line(5, result(&1.into(), "{}")),
        line(5, modern("3", "tools/call", "\"name\":\"never\"")),
        line(
            20,
            format!(
                "[{},{}]",
                legacy("4", "tools/call", r#""name":"slow","arguments":{"ms":3}"#),
                legacy("9", "ping", "")
            ),
        ),
    ]);
    for expected in [
        "1001 < {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"",
        "1008 < {\"jsonrpc\":\"2.0\",\"id\":1,\"result\"",
        "1005 resumed",
        "1045 timed out 2",
        "1023 < [{",
    ] {
        assert!(record.contains(expected), "{expected} in\n{record}");
    }
}
