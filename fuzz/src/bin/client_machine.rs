//! A client's machine between a server that means no good and a driver that does anything, held against a
//! ledger: each call ends once, every line that leaves is a message, no id of ours comes twice, nothing is
//! answered in 2026-07-28, and time goes on.
//!
//! Each line is one step; its first letter says which. `r` sends the rest of its line as it is, with `$`
//! standing for the id that was used last and `%` for the one before.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use mcp_proto::client::request::{CallTool, ListTools, ReadResource};
use mcp_proto::client::{AskId, CallId, CallOptions, Config, Connection, Event, Rounds};
use mcp_proto::limits::Limits;
use mcp_proto::model::{
    ClientCapabilities, Implementation, InputResponses, Json, SubscriptionFilter, TASKS_EXTENSION,
};
use mcp_proto::rpc::{self, Error, Message, Parsed};
use mcp_proto::time::Instant;
use mcp_proto_fuzz::Input;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let mut world = World::new();
    while !input.is_empty() {
        let line = input.line();
        if line == b"E" {
            break;
        }
        world.step(line);
        world.check();
    }
    world.finish();
});

struct World {
    client: Connection,
    now: Instant,
    out: Vec<u8>,
    calls: BTreeSet<CallId>,
    asks: Vec<AskId>,
    used: BTreeSet<i64>,
}

impl World {
    fn new() -> Self {
        let capabilities = ClientCapabilities::new()
            .form_elicitation()
            .roots()
            .sampling()
            .extension(TASKS_EXTENSION, Json::empty_object());
        let config = Config::builder(Implementation::new("host", "1")).capabilities(capabilities).build();
        let mut world = Self {
            client: Connection::new(config),
            now: Instant::ZERO,
            out: Vec::new(),
            calls: BTreeSet::new(),
            asks: Vec::new(),
            used: BTreeSet::new(),
        };
        world.start();
        world.check();
        world
    }

    fn start(&mut self) {
        if let Some(event) = self.client.start(self.now, &mut self.out) {
            self.hear(event);
        }
    }

    fn step(&mut self, line: &[u8]) {
        let Some((letter, rest)) = line.split_first() else { return };
        let choice = rest.first().copied().unwrap_or(0);
        let mut options = CallOptions::new().progress(choice & 1 != 0).reset_on_progress(choice & 2 != 0);
        if choice & 4 != 0 {
            options = options.rounds(Rounds::Manual).task_ttl_ms(5);
        }
        let picked = self.calls.iter().nth(usize::from(choice) % self.calls.len().max(1)).copied();
        let given: InputResponses = ["a", "b"]
            .into_iter()
            .filter_map(|key| Some((key, Json::parse(r#"{"roots":[]}"#).ok()?)))
            .collect();
        match letter {
            b'r' => {
                let frame = self.frame(rest);
                let event = self.client.handle(&frame, self.now, &mut self.out);
                match event {
                    Some(Event::Batch(batch)) => {
                        for member in batch {
                            if let Some(event) = self.client.handle_member(member, self.now, &mut self.out) {
                                hear(&mut self.calls, &mut self.asks, event);
                            }
                        }
                    }
                    Some(event) => hear(&mut self.calls, &mut self.asks, event),
                    None => {}
                }
            }
            b'c' => {
                let (client, now, out) = (&mut self.client, self.now, &mut self.out);
                let call = match choice % 3 {
                    0 => client.call(&CallTool::new("t"), &options, now, out),
                    1 => client.call(&ListTools::new(), &options, now, out),
                    _ => client.call(&ReadResource::new("a:b"), &options, now, out),
                };
                self.calls.extend(call);
            }
            b'l' => {
                let filter = SubscriptionFilter::new().tools_list_changed().resource("a:b").task("t");
                self.calls.extend(self.client.listen(filter, &options, self.now, &mut self.out));
            }
            b'x' => {
                if let Some(call) = picked {
                    assert!(self.client.cancel(call, None, &mut self.out));
                    self.calls.remove(&call);
                }
            }
            b'a' => {
                if let Some(call) = picked {
                    let _ = self.client.answer(call, &given, self.now, &mut self.out);
                }
            }
            b'p' => {
                if let Some(parked) = picked.and_then(|call| {
                    let parked = self.client.park(call)?;
                    assert!(self.calls.remove(&call));
                    Some(parked)
                }) {
                    self.calls.extend(self.client.resume(parked, &given, &options, self.now, &mut self.out));
                }
            }
            b'q' => {
                if let Some(ask) = self.asks.get(usize::from(choice) % self.asks.len().max(1)) {
                    self.client.respond(*ask, Err(Error::internal()), &mut self.out);
                }
            }
            b't' => self.now = self.now + Duration::from_millis(u64::from(choice) * 500),
            b'e' => {
                if let Some(event) = self.client.eof() {
                    self.hear(event);
                }
                self.due();
                self.start();
            }
            _ => {}
        }
        self.due();
    }

    /// A frame in which the ids stand that were used last.
    fn frame(&self, rest: &[u8]) -> Vec<u8> {
        let last = self.used.iter().next_back().copied().unwrap_or(0).to_string();
        let before = self.used.iter().rev().nth(1).copied().unwrap_or(0).to_string();
        let mut frame = Vec::with_capacity(rest.len());
        for byte in rest {
            match byte {
                b'$' => frame.extend_from_slice(last.as_bytes()),
                b'%' => frame.extend_from_slice(before.as_bytes()),
                other => frame.push(*other),
            }
        }
        frame
    }

    fn due(&mut self) {
        for _ in 0..100_000 {
            match self.client.handle_timeout(self.now, &mut self.out) {
                Some(event) => self.hear(event),
                None => {
                    assert!(
                        self.client.next_deadline().is_none_or(|due| due > self.now),
                        "time stands still"
                    );
                    return;
                }
            }
        }
        panic!("there is no end of what is due");
    }

    fn hear(&mut self, event: Event<'_>) {
        hear(&mut self.calls, &mut self.asks, event);
    }

    fn check(&mut self) {
        let modern = self.client.server().is_some_and(|server| server.version.is_modern());
        for line in std::mem::take(&mut self.out).split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
        {
            match rpc::parse(line, &Limits::default()) {
                Ok(Parsed::Message(Message::Request { id, .. })) => {
                    let id = id.as_i64().expect("ours are numbers");
                    assert!(self.used.insert(id), "the id {id} came before");
                }
                Ok(Parsed::Message(Message::Notification { .. })) => {}
                Ok(Parsed::Message(_)) => assert!(!modern, "an answer in 2026-07-28"),
                other => panic!("no message: {other:?}"),
            }
        }
        assert_eq!(self.client.open_calls(), self.calls.len());
        assert!(self.calls.iter().all(|call| self.client.is_open(*call)));
    }

    fn finish(&mut self) {
        if let Some(event) = self.client.eof() {
            self.hear(event);
        }
        self.now = self.now + Duration::from_secs(1 << 40);
        self.due();
        self.check();
        assert!(self.client.next_deadline().is_none());
    }
}

/// Each call ends once.
fn hear(calls: &mut BTreeSet<CallId>, asks: &mut Vec<AskId>, event: Event<'_>) {
    match event {
        Event::Complete(done) => assert!(calls.remove(&done.call), "it ended before"),
        Event::Failed { call, .. } => assert!(calls.remove(&call), "it ended before"),
        Event::ListenEnded { subscription, .. } => assert!(calls.remove(&subscription), "it ended before"),
        Event::Progress { call, .. } | Event::InputRequired { call, .. } => assert!(calls.contains(&call)),
        Event::Asked(asked) => asks.push(asked.ask),
        _ => {}
    }
}
