//! The wire of typical conversations, revision by revision, byte for byte.

use std::fmt::Write;
use std::time::Duration;

use mcp_proto::model::{
    CacheScope, CallToolResult, ContentBlock, EmptyResult, GetPromptResult, Implementation, InputRequest,
    InputRequired, JsonSchema, ListToolsResult, LoggingLevel, PromptMessage, ProtocolVersion as V,
    ReadResourceResult, Resource, ResourceContents, Role, TextResourceContents, Tool, ToolAnnotations,
};
use mcp_proto::server::{AskError, Call, Change, Channel, Event, Incoming, Log, Progress};
use serde_json::value::to_raw_value;

use super::input::{form, sample, url};
use super::pair::{
    EVERY_CAPABILITY, LEGACY, Pair, cancel, config, initialize, legacy, limits, modern, modern_of,
    notification, result,
};

/// A conversation as it is written down: `→` to the server, `←` from it.
struct Flow {
    pair: Pair,
    text: String,
}

impl Flow {
    fn new() -> Self {
        let limits = limits(|l| {
            l.max_in_flight = 4;
            l.request_timeout = Some(Duration::from_secs(60));
        });
        Self { pair: Pair::of(config().limits(limits).build()), text: String::new() }
    }

    fn title(&mut self, title: &str) {
        writeln!(self.text, "\n# {title}").unwrap();
    }

    fn send<'b>(&mut self, frame: &'b str) -> Option<Event<'b>> {
        writeln!(self.text, "→ {frame}").unwrap();
        let event = self.pair.send(frame);
        self.flush();
        event
    }

    /// A request that the machine answers itself.
    fn own(&mut self, frame: &str) {
        match self.send(frame) {
            None | Some(Event::Rejected(_) | Event::Initialized | Event::Cancelled { .. }) => {}
            other => panic!("{other:?}"),
        }
    }

    fn request(&mut self, frame: &str, handle: impl FnOnce(&mut Pair, Call<'_>)) {
        match self.send(frame) {
            Some(Event::Request(incoming)) => self.handle(incoming, handle),
            other => panic!("{other:?}"),
        }
    }

    fn handle(&mut self, incoming: Incoming<'_>, handle: impl FnOnce(&mut Pair, Call<'_>)) {
        match incoming.typed() {
            Ok(call) => handle(&mut self.pair, call),
            Err(refusal) => assert!(self.pair.server.refuse(refusal, &mut self.pair.out).is_written()),
        }
        self.flush();
    }

    fn act(&mut self, act: impl FnOnce(&mut Pair)) {
        act(&mut self.pair);
        self.flush();
    }

    fn flush(&mut self) {
        for line in self.pair.text().lines() {
            writeln!(self.text, "← {line}").unwrap();
        }
    }

    /// The id of the newest request of the server.
    fn asked(&self) -> serde_json::Value {
        let line = self.text.lines().rev().find(|l| l.starts_with("← ") && l.contains("\"method\"")).unwrap();
        serde_json::from_str::<serde_json::Value>(&line["← ".len()..]).unwrap()["id"].clone()
    }
}

fn tools() -> ListToolsResult {
    let tool = Tool::new(
        "add",
        JsonSchema::parse(r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#).unwrap(),
    )
    .title("Add")
    .description("Adds")
    .output_schema(JsonSchema::parse(r#"{"type":"object"}"#).unwrap())
    .annotations(ToolAnnotations::new().read_only_hint(true));
    ListToolsResult::new([tool]).next_cursor("c").cache(5_000, CacheScope::Public)
}

fn respond(pair: &mut Pair, call: Call<'_>) {
    let Pair { server, out, .. } = pair;
    let delivery = match call {
        Call::ListTools(pending, _) => server.respond(pending, &tools(), out),
        Call::CallTool(pending, _) => {
            let result = CallToolResult::structured(&serde_json::json!({"sum": 3}))
                .unwrap()
                .with(ContentBlock::audio(b"ab", "audio/wav"))
                .with(ContentBlock::resource_link(Resource::new("file:///x", "x")));
            server.respond(pending, &result, out)
        }
        Call::ReadResource(pending, _) => {
            let contents: ResourceContents = TextResourceContents::new("a:1", "text").into();
            server.respond(pending, &ReadResourceResult::new([contents]).cache(0, CacheScope::Private), out)
        }
        Call::GetPrompt(pending, _) => {
            let message = PromptMessage::new(Role::User, ContentBlock::text("Review"));
            server.respond(pending, &GetPromptResult::new([message]), out)
        }
        Call::Subscribe(pending, _) => server.respond(pending, &EmptyResult::new(), out),
        Call::Listen(pending, params) => server.acknowledge(pending, &params.notifications, out),
        Call::Other(incoming) => server.refuse(incoming.not_found(), out),
        other => panic!("{other:?}"),
    };
    assert!(delivery.is_written());
}

fn legacy_conversation(version: V) -> String {
    let mut flow = Flow::new();
    flow.title("handshake");
    flow.own(&legacy("0", "ping", ""));
    flow.own(&initialize("1", version.as_str(), EVERY_CAPABILITY));
    flow.own(&notification("notifications/initialized"));

    flow.title("answers");
    flow.request(&legacy("2", "tools/list", ""), respond);
    flow.request(&legacy("\"3\"", "tools/call", r#""name":"add","arguments":{"a":1}"#), respond);
    flow.request(&legacy("4", "resources/read", r#""uri":"a:1""#), respond);
    flow.request(&legacy("5", "prompts/get", r#""name":"review""#), respond);

    flow.title("errors");
    flow.request(&legacy("6", "x/y", ""), respond);
    flow.request(&legacy("7", "tools/call", r#""name":5"#), respond);
    flow.own(&legacy("8", "server/discover", ""));
    flow.own(r#"{"jsonrpc":"2.0","id":9}"#);
    flow.own("[]");
    flow.own("{");

    flow.title("progress, logs, cancellation");
    flow.own(&legacy("10", "logging/setLevel", r#""level":"info""#));
    let slow = legacy("11", "tools/call", r#""name":"slow","_meta":{"progressToken":"p"}"#);
    flow.request(&slow, |pair, call| {
        let Call::CallTool(pending, _) = call else { panic!() };
        let data = to_raw_value("working").unwrap();
        let Pair { server, out, .. } = pair;
        assert!(server.progress(&pending, Progress::new(1.0).of(2.0).message("half"), out).is_written());
        assert!(server.log(&pending, Log::new(LoggingLevel::Info, &data).logger("slow"), out).is_written());
        assert!(!server.log(&pending, Log::new(LoggingLevel::Debug, &data), out).is_written());
    });
    flow.own(&cancel("11"));
    flow.request(&legacy("12", "tools/call", r#""name":"never""#), |_, call| drop(call));
    flow.act(|pair| assert_eq!(pair.pass(100_000).len(), 1));

    flow.title("questions");
    for question in [sample().into(), form(), url(), InputRequest::ListRoots] {
        let kind = format!("{question:?}").split(['(', ' ']).next().unwrap().to_owned();
        let frame = legacy("20", "tools/call", r#""name":"asking""#);
        let mut asked = false;
        flow.request(&frame, |pair, call| {
            let Call::CallTool(pending, _) = call else { panic!() };
            let Pair { server, out, now } = pair;
            match server.ask(pending.key(), &question, *now, out) {
                Ok(_) => asked = true,
                Err(AskError::MissingCapability(_)) => {}
                Err(other) => panic!("{other}"),
            }
        });
        if asked {
            let answer = result(&flow.asked(), "{}");
            assert!(matches!(flow.send(&answer), Some(Event::Answer(_))));
        } else {
            writeln!(flow.text, "({kind} cannot be asked)").unwrap();
        }
        flow.own(&cancel("20"));
    }
    let call = legacy("21", "tools/call", r#""name":"bridged","arguments":{"x":1}"#);
    flow.request(&call, |pair, call| {
        let Call::CallTool(pending, _) = call else { panic!() };
        let input = InputRequired::default().ask("r", InputRequest::ListRoots).request_state("s");
        assert!(pair.server.require_input(pending, &input, &mut pair.out).unwrap().is_written());
    });
    let answer = result(&flow.asked(), r#"{"roots":[]}"#);
    let Some(Event::Resumed(resumed)) = flow.send(&answer) else { panic!() };
    flow.handle(resumed.incoming(), respond);

    flow.title("changes");
    flow.request(&legacy("30", "resources/subscribe", r#""uri":"a:1""#), respond);
    flow.act(|pair| {
        for change in [Change::Tools, Change::Prompts, Change::Resources, Change::Resource("a:1")] {
            pair.server.publish(&change);
        }
        pair.server.flush_subscriptions(&mut pair.out);
    });
    flow.act(|pair| {
        let _ = pair.server.elicitation_complete("e-1", &mut pair.out);
    });

    flow.title("batch");
    let batch = format!("[{},{}]", legacy("40", "ping", ""), legacy("41", "tools/list", ""));
    if let Some(Event::Batch(members)) = flow.send(&batch) {
        for member in members {
            let Pair { server, out, now } = &mut flow.pair;
            if let Some(Event::Request(incoming)) = server.handle_member(member, *now, out) {
                flow.handle(incoming, respond);
            }
        }
    }

    flow.title("end");
    flow.act(|pair| pair.server.end_of_input(&mut pair.out));
    flow.text
}

#[test]
fn legacy_conversations() {
    for version in LEGACY {
        insta::assert_snapshot!(format!("conversation_{version}"), legacy_conversation(version));
    }
}

#[test]
fn modern_conversation() {
    let mut flow = Flow::new();
    flow.title("introduction");
    flow.own(&modern("1", "server/discover", ""));

    flow.title("answers");
    flow.request(&modern("2", "tools/list", ""), respond);
    flow.request(&modern("\"3\"", "tools/call", r#""name":"add","arguments":{"a":1}"#), respond);
    flow.request(&modern("4", "resources/read", r#""uri":"a:1""#), respond);
    flow.request(&modern("5", "prompts/get", r#""name":"review""#), respond);

    flow.title("errors");
    flow.request(&modern("6", "x/y", ""), respond);
    flow.request(&modern("7", "tools/call", r#""name":5"#), respond);
    flow.own(&modern("8", "initialize", ""));
    flow.own(&legacy("9", "tools/list", ""));
    flow.own(&modern("10", "tools/list", "").replace("2026-07-28", "2027-01-01"));
    flow.own(r#"{"jsonrpc":"2.0","id":11}"#);
    flow.own("[]");
    flow.own("{");
    flow.request(&modern("12", "tools/call", r#""name":"asking""#), |pair, call| {
        let Call::CallTool(pending, _) = call else { panic!() };
        let input = InputRequired::default().ask("sure", form());
        let missing = pair.server.require_input(pending, &input, &mut pair.out).unwrap_err();
        assert!(pair.server.refuse_missing(missing, &mut pair.out).is_written());
    });
    for id in ["13", "14", "15", "16"] {
        assert!(flow.pair.send(&modern(id, "tools/call", r#""name":"never""#)).is_some());
    }
    flow.own(&modern("17", "tools/call", r#""name":"add""#));
    flow.act(|pair| assert_eq!(pair.pass(100_000).len(), 4));

    flow.title("progress, logs, cancellation");
    let meta = r#""progressToken":7,"io.modelcontextprotocol/logLevel":"info""#;
    let slow = modern_of("20", "tools/call", r#""name":"slow""#, "{}", meta);
    flow.request(&slow, |pair, call| {
        let Call::CallTool(pending, _) = call else { panic!() };
        let data = to_raw_value("working").unwrap();
        let Pair { server, out, .. } = pair;
        assert!(server.progress(&pending, Progress::new(1.0).of(2.0).message("half"), out).is_written());
        assert!(server.log(&pending, Log::new(LoggingLevel::Info, &data).logger("slow"), out).is_written());
        assert!(!server.log(&pending, Log::new(LoggingLevel::Debug, &data), out).is_written());
    });
    flow.own(&cancel("20"));

    flow.title("questions");
    let asking = modern_of("30", "tools/call", r#""name":"asking""#, EVERY_CAPABILITY, "");
    flow.request(&asking, |pair, call| {
        let Call::CallTool(pending, _) = call else { panic!() };
        let input = InputRequired::default()
            .ask("sure", form())
            .ask("pay", url())
            .ask("think", sample())
            .ask("where", InputRequest::ListRoots)
            .request_state("sealed");
        assert!(pair.server.require_input(pending, &input, &mut pair.out).unwrap().is_written());
    });
    let answers = r#""name":"asking","inputResponses":{"sure":{"action":"decline"}},"requestState":"sealed""#;
    flow.request(&modern_of("31", "tools/call", answers, EVERY_CAPABILITY, ""), respond);

    flow.title("task");
    flow.request(&modern_of("40", "tools/call", r#""name":"long""#, EVERY_CAPABILITY, ""), |pair, call| {
        let Call::CallTool(pending, _) = call else { panic!() };
        let task = br#"{"taskId":"t","status":"working","createdAt":"2026-07-28T00:00:00.000Z","lastUpdatedAt":"2026-07-28T00:00:00.000Z","ttlMs":null}"#;
        assert!(pair.server.become_task(pending, task, &mut pair.out).unwrap().is_written());
    });

    flow.title("changes");
    let wanted =
        r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"],"taskIds":["t"]}"#;
    flow.request(&modern("\"l\"", "subscriptions/listen", wanted), respond);
    flow.act(|pair| {
        for change in [Change::Tools, Change::Prompts, Change::Resource("a:1"), Change::Tools] {
            pair.server.publish(&change);
        }
        pair.server.publish(&Change::Task { id: "t", body: r#"{"taskId":"t","status":"completed"}"# });
        pair.server.flush_subscriptions(&mut pair.out);
    });

    flow.title("end");
    flow.act(|pair| pair.server.end_of_input(&mut pair.out));
    insta::assert_snapshot!("conversation_2026-07-28", flow.text);
}

/// A server of little: what is not set is not on the wire. (E09)
#[test]
fn e09_nothing_optional_is_null() {
    let config = || mcp_proto::server::Config::builder(Implementation::new("bare", "0")).build();
    let mut texts = vec![modern_and_all(Pair::of(config()))];
    for version in LEGACY {
        let mut pair = Pair::of(config());
        assert!(pair.send(&initialize("1", version.as_str(), "{}")).is_none());
        texts.push(pair.text());
        texts.push(legacy_conversation(version).lines().filter(|l| l.starts_with('←')).collect());
    }
    for text in texts {
        assert!(!text.contains("null"), "{text}");
    }
}

fn modern_and_all(mut pair: Pair) -> String {
    assert!(pair.send(&modern("1", "server/discover", "")).is_none());
    pair.refused(&modern("2", "tools/call", ""));
    pair.refused("{");
    let frame = modern("3", "x/y", "");
    let refusal = pair.request(&frame).not_found();
    assert!(pair.server.refuse(refusal, &mut pair.out).is_written());
    pair.text()
}
