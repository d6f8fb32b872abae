//! Whatever a server sends, and however it arrives.

use mcp_proto::client::request::{CallTool, ListTools, ReadResource};
use mcp_proto::client::{CallId, CallOptions, Event, Mode, Rounds};
use mcp_proto::codec::{Frame, LineBuffer};
use mcp_proto::model::{InputResponses, Json, SubscriptionFilter};
use mcp_proto::rpc::{self, Error};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::script::{Script, config, discovered, initialized};

/// One step of a server that means no good, or of the driver.
#[derive(Debug, Clone)]
enum Step {
    /// A frame, which may name one of the ids in use.
    Frame(String, u8),
    Bytes(Vec<u8>),
    Call(u8),
    Cancel(u8),
    Answer(u8),
    Respond(u8),
    Listen,
    Pass(u16),
    Eof,
}

/// Pieces of frames that a server could send. `ID` is replaced by a number that is likely in use.
fn frame() -> impl Strategy<Value = String> {
    let result = prop_oneof![
        Just(r#"{"resultType":"complete","content":[]}"#.to_owned()),
        Just(r#"{"resultType":"input_required","requestState":"s"}"#.to_owned()),
        Just(r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}"#.to_owned()),
        Just(r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}},"requestState":""}"#.to_owned()),
        Just(r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,"pollIntervalMs":0}"#.to_owned()),
        Just(r#"{"taskId":"t","status":"completed","createdAt":"x","lastUpdatedAt":"x","ttlMs":1,"result":{"content":[]}}"#.to_owned()),
        Just(r#"{"taskId":"t","status":"input_required","createdAt":"x","lastUpdatedAt":"x","ttlMs":1,"inputRequests":{"q":{"method":"roots/list"}}}"#.to_owned()),
        Just(r#"{"task":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}"#.to_owned()),
        Just(r#"{"resultType":"zzz"}"#.to_owned()),
        Just(r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}},null],"nextCursor":"","ttlMs":9999,"cacheScope":"public"}"#.to_owned()),
        Just(discovered(&["2026-07-28"])),
        Just(discovered(&["2025-06-18"])),
        Just(initialized("2025-11-25")),
        Just(initialized("2025-03-26")),
        Just(initialized("1999-01-01")),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
        Just("null".to_owned()),
    ];
    let error = prop_oneof![
        Just(r#"{"code":-32601,"message":"m"}"#),
        Just(
            r#"{"code":-32022,"message":"m","data":{"supported":["2025-11-25","2026-07-28"],"requested":"x"}}"#
        ),
        Just(r#"{"code":-32022,"message":"m"}"#),
        Just(r#"{"code":-32042,"message":"m","data":{"elicitations":[]}}"#),
        Just(r#"{"code":"x"}"#),
    ];
    let notification = prop_oneof![
        Just(("notifications/progress", r#"{"progressToken":ID,"progress":1}"#)),
        Just(("notifications/progress", r#"{"progressToken":"ID","progress":-1e308}"#)),
        Just(("notifications/message", r#"{"level":"info","data":{}}"#)),
        Just(("notifications/cancelled", r#"{"requestId":ID}"#)),
        Just((
            "notifications/tools/list_changed",
            r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}"#
        )),
        Just((
            "notifications/resources/updated",
            r#"{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":ID}}"#
        )),
        Just((
            "notifications/subscriptions/acknowledged",
            r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}"#
        )),
        Just((
            "notifications/tasks",
            r#"{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":1,"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}"#
        )),
        Just((
            "notifications/tasks/status",
            r#"{"taskId":"t","status":"completed","createdAt":"x","lastUpdatedAt":"x","ttl":1}"#
        )),
        Just(("notifications/elicitation/complete", r#"{"elicitationId":"e"}"#)),
        Just(("vendor/x", "[1]")),
    ];
    let request = prop_oneof![
        Just(("ping", "{}")),
        Just(("roots/list", "{}")),
        Just(("sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#)),
        Just(("elicitation/create", r#"{"message":"m"}"#)),
        Just(("tasks/get", r#"{"taskId":"t"}"#)),
    ];
    prop_oneof![
        6 => result.prop_map(|result| format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{result}}}"#)),
        2 => error.prop_map(|error| format!(r#"{{"jsonrpc":"2.0","id":ID,"error":{error}}}"#)),
        3 => notification.prop_map(|(method, params)| format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)),
        2 => request.prop_map(|(method, params)| format!(r#"{{"jsonrpc":"2.0","id":ID,"method":"{method}","params":{params}}}"#)),
        1 => Just(r#"{"jsonrpc":"2.0","id":ID}"#.to_owned()),
        1 => Just(r#"{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}"#.to_owned()),
        1 => Just(r#"[{"jsonrpc":"2.0","id":ID,"result":{}},{"jsonrpc":"2.0","method":"ping","id":ID},7]"#.to_owned()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (frame(), 0u8..24).prop_map(|(frame, pick)| Step::Frame(frame, pick)),
        // Nearly valid: one byte is another.
        2 => (frame(), 0u8..24, any::<prop::sample::Index>(), any::<u8>()).prop_map(|(frame, id, at, byte)| {
            let mut bytes = frame.replace("ID", &id.to_string()).into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            Step::Bytes(bytes)
        }),
        1 => vec(any::<u8>(), 0..40).prop_map(Step::Bytes),
        4 => any::<u8>().prop_map(Step::Call),
        1 => any::<u8>().prop_map(Step::Cancel),
        2 => any::<u8>().prop_map(Step::Answer),
        1 => any::<u8>().prop_map(Step::Respond),
        1 => Just(Step::Listen),
        2 => (0u16..40_000).prop_map(Step::Pass),
        1 => (0u8..5).prop_map(|n| if n == 0 { Step::Eof } else { Step::Call(n) }),
    ]
}

/// What a careful driver knows of its calls.
#[derive(Default)]
struct Model {
    calls: Vec<CallId>,
    listens: Vec<CallId>,
    asks: Vec<mcp_proto::client::AskId>,
    used: std::collections::BTreeSet<i64>,
}

impl Model {
    fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::Complete(done) => self.over(done.call),
            Event::Failed { call, .. } => self.over(*call),
            Event::ListenEnded { subscription, lost } => {
                assert!(!lost);
                self.over(*subscription);
            }
            Event::Progress { call, .. } | Event::InputRequired { call, .. } => {
                assert!(self.calls.contains(call));
            }
            Event::Acknowledged { subscription, .. } => assert!(self.listens.contains(subscription)),
            Event::Asked(asked) => self.asks.push(asked.ask),
            _ => {}
        }
    }

    /// A call ends exactly once.
    fn over(&mut self, call: CallId) {
        let open = self.calls.iter().position(|known| *known == call).map(|at| self.calls.remove(at));
        let open = open.or_else(|| {
            self.listens.iter().position(|known| *known == call).map(|at| self.listens.remove(at))
        });
        assert_eq!(open, Some(call), "it ended twice, or never began");
    }

    /// Every line is a message; no id of ours comes twice; nothing is answered in 2026-07-28.
    fn check(&mut self, script: &mut Script) {
        let modern = script.client.server().is_some_and(|server| server.version.is_modern());
        for line in
            std::mem::take(&mut script.out).split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
        {
            assert!(rpc::parse(line, &Default::default()).is_ok());
            let message: Value = serde_json::from_slice(line).unwrap();
            if message.get("method").is_none() {
                assert!(!modern, "{message}");
            } else if let Some(id) = message.get("id") {
                assert!(self.used.insert(id.as_i64().unwrap()), "{message}");
            }
        }
        assert_eq!(script.client.open_calls(), self.calls.len() + self.listens.len());
        for call in self.calls.iter().chain(&self.listens) {
            assert!(script.client.is_open(*call));
        }
    }
}

fn run(mode: Mode, steps: &[Step]) {
    let mut script = Script::of(config().mode(mode).build());
    let mut model = Model::default();
    let hear = |model: &mut Model, script: &mut Script, event: Option<Event<'static>>| {
        if let Some(Event::Batch(batch)) = event {
            for member in batch {
                if let Some(event) = script.client.handle_member(member, script.now, &mut script.out) {
                    model.hear(&event);
                }
            }
        } else if let Some(event) = event {
            model.hear(&event);
        }
    };
    let event = script.start();
    hear(&mut model, &mut script, event);
    for step in steps {
        match step {
            Step::Frame(frame, pick) => {
                // Mostly an id that was used lately.
                let recent = model.used.iter().rev().nth(usize::from(pick % 4)).copied();
                let id = recent.filter(|_| *pick < 20).unwrap_or_else(|| i64::from(*pick));
                let event = script.send(&frame.replace("ID", &id.to_string()));
                hear(&mut model, &mut script, event);
            }
            Step::Bytes(bytes) => {
                let bytes: &'static [u8] = bytes.clone().leak();
                let event = script.client.handle(bytes, script.now, &mut script.out);
                hear(&mut model, &mut script, event);
            }
            Step::Call(kind) => {
                let mut options = CallOptions::new().progress(kind & 1 == 0).reset_on_progress(kind & 2 == 0);
                if kind & 4 == 0 {
                    options = options.rounds(Rounds::Manual).task_ttl_ms(5);
                }
                let call = match kind % 3 {
                    0 => script.client.call(&CallTool::new("t"), &options, script.now, &mut script.out),
                    1 => script.client.call(&ListTools::new(), &options, script.now, &mut script.out),
                    _ => script.client.call(&ReadResource::new("a:b"), &options, script.now, &mut script.out),
                };
                model.calls.extend(call);
            }
            Step::Cancel(at) => {
                let all: Vec<CallId> = model.calls.iter().chain(&model.listens).copied().collect();
                if let Some(call) = all.get(usize::from(*at) % all.len().max(1)) {
                    assert!(script.client.cancel(*call, None, &mut script.out));
                    model.over(*call);
                }
            }
            Step::Answer(at) => {
                if let Some(call) = model.calls.get(usize::from(*at) % model.calls.len().max(1)).copied() {
                    let given: InputResponses = ["a", "q"]
                        .map(|key| (key, Json::parse(r#"{"roots":[]}"#).unwrap()))
                        .into_iter()
                        .collect();
                    if at % 5 == 0 {
                        if let Some(parked) = script.client.park(call) {
                            model.over(call);
                            let again = script.client.resume(
                                parked,
                                &given,
                                &CallOptions::new(),
                                script.now,
                                &mut script.out,
                            );
                            model.calls.extend(again);
                        }
                    } else {
                        let _ = script.client.answer(call, &given, script.now, &mut script.out);
                    }
                }
            }
            Step::Respond(at) => {
                if let Some(ask) = model.asks.get(usize::from(*at) % model.asks.len().max(1)) {
                    script.client.respond(*ask, Err(Error::internal()), &mut script.out);
                }
            }
            Step::Listen => {
                let filter = SubscriptionFilter::new().tools_list_changed().resource("a:b");
                let id = script.client.listen(filter, &CallOptions::new(), script.now, &mut script.out);
                model.listens.extend(id);
            }
            Step::Pass(millis) => {
                let until = script.now.since_origin().as_millis() as u64 + u64::from(*millis);
                for event in script.pass(until) {
                    model.hear(&event);
                }
                // What is due is done: time goes on.
                assert!(script.client.next_deadline().is_none_or(|due| due > script.now));
            }
            Step::Eof => {
                if let Some(event) = script.client.eof() {
                    model.hear(&event);
                }
                for event in script.due() {
                    model.hear(&event);
                }
                let event = script.start();
                hear(&mut model, &mut script, event);
            }
        }
        for event in script.due() {
            model.hear(&event);
        }
        model.check(&mut script);
    }
    // The end of all: whatever is open ends, but for what waits for a new stream.
    let _ = script.client.eof();
    for event in script.pass(u64::MAX / 4) {
        model.hear(&event);
    }
    model.check(&mut script);
    assert!(script.client.next_deadline().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// A hostile server meets a busy client: no panic, every call ends once, every line is good.
    #[test]
    fn whatever_a_server_sends(modern in any::<bool>(), steps in vec(step(), 0..60)) {
        // A good beginning, so that the rest is reached.
        let opening = if modern { discovered(&["2026-07-28"]) } else { initialized("2025-03-26") };
        let opening = Step::Frame(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{opening}}}"#), 0);
        let mode = if modern { Mode::Auto } else { Mode::Legacy };
        run(mode, &[&[opening], &steps[..]].concat());
    }

    /// The same without a good beginning.
    #[test]
    fn whatever_a_server_begins_with(steps in vec(step(), 0..30)) {
        run(Mode::Auto, &steps);
    }

    /// However the bytes are cut, the events are the same.
    #[test]
    fn any_split_of_the_bytes(cuts in vec(any::<prop::sample::Index>(), 0..12), frames in vec((frame(), 1u8..6), 1..12)) {
        let mut bytes = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}}\r\n", discovered(&["2026-07-28"])).into_bytes();
        for (frame, id) in frames {
            bytes.extend(frame.replace("ID", &id.to_string()).bytes());
            bytes.push(b'\n');
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        let whole = transcript(&[&bytes]);
        let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(&transcript(&parts), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&transcript(&single), &whole);
    }
}

/// Everything that happens when these parts arrive one after the other.
fn transcript(parts: &[&[u8]]) -> Vec<String> {
    let mut script = Script::started(config().build());
    for _ in 0..3 {
        script.client.call(&CallTool::new("t"), &CallOptions::new(), script.now, &mut script.out).unwrap();
    }
    let mut lines = LineBuffer::new(1 << 20);
    let mut heard = Vec::new();
    for part in parts {
        lines.extend(part);
        while let Some(line) = lines.next_frame() {
            let Frame::Line(frame) = line else { continue };
            let event = script.client.handle(frame, script.now, &mut script.out);
            heard.push(format!("{event:?}"));
            heard.push(String::from_utf8(std::mem::take(&mut script.out)).unwrap());
        }
    }
    heard
}

#[test]
fn the_machine_wakes_only_when_it_says() {
    // A driver that looks at the clock all the time sees the same as one that sleeps until it is due.
    let play = |lazy: bool| {
        let mut script = Script::modern();
        let mut seen = Vec::new();
        let options = |millis| {
            CallOptions::new().timeout(std::time::Duration::from_millis(millis)).reset_on_progress(true)
        };
        let (_, a) = script.tool("t", &options(700));
        script.tool("u", &options(1_500));
        let due: Vec<u64> = if lazy { Vec::new() } else { (1_000..4_000).step_by(50).collect() };
        let mut clock = due.into_iter();
        loop {
            let next = if lazy {
                script.client.next_deadline().map(|due| due.since_origin().as_millis() as u64)
            } else {
                clock.next()
            };
            let Some(next) = next else { break };
            for event in script.pass(next) {
                seen.push(format!("{next} {event:?}"));
            }
            if next == 1_700 {
                seen.push(format!("{:?}", script.sent()));
            }
        }
        assert!(a["id"].is_i64());
        (seen, script.sent())
    };
    assert_eq!(play(true), play(false));
}
