//! The client's machine against the server's.

use mcp_proto::client::request::{CallTool, Request};
use mcp_proto::client::{self, CallId, CallOptions};
use mcp_proto::model::method;
use mcp_proto::model::{
    BooleanSchema, CallToolResult, ElicitForm, ElicitResult, FormSchema, Implementation, InputKind,
    InputRequired, InputResponses, Json, LoggingLevel, ProtocolVersion as V, ServerCapabilities,
    SubscriptionFilter,
};
use mcp_proto::server::{self, Call, Change, Channel, Log, Progress};

use super::script::{LEGACY, Script, config};

const EVERY: [V; 5] = V::ALL;

/// Both ends of a stream, without the stream.
struct Pair {
    script: Script,
    server: server::Connection,
}

impl Pair {
    /// A server that speaks one revision and offers everything.
    fn new(version: V) -> Self {
        let capabilities =
            ServerCapabilities::new().tools(true).prompts(true).resources(true, true).completions().logging();
        let config = server::Config::builder(Implementation::new("fixture", "9"))
            .capabilities(capabilities)
            .versions([version])
            .build();
        Self { script: Script::started(config_of_client()), server: server::Connection::new(config) }
    }

    fn call<R: Request>(&mut self, request: &R, options: &CallOptions) -> CallId {
        let script = &mut self.script;
        script.client.call(request, options, script.now, &mut script.out).unwrap()
    }

    /// Hands what one side wrote to the other until both are silent. `serve` answers what comes to the server
    /// and `hear` what comes to the client.
    fn talk(
        &mut self,
        mut serve: impl FnMut(&mut server::Connection, server::Incoming<'_>, &mut Vec<u8>),
        mut hear: impl FnMut(&mut Script, client::Event<'static>),
    ) {
        let Self { script, server } = self;
        let mut back = Vec::new();
        for _ in 0..1000 {
            server.flush_subscriptions(&mut back);
            for line in std::mem::take(&mut script.out).split_inclusive(|b| *b == b'\n') {
                match server.handle(line, script.now, &mut back) {
                    Some(server::Event::Request(incoming)) => serve(server, incoming, &mut back),
                    Some(server::Event::Resumed(resumed)) => serve(server, resumed.incoming(), &mut back),
                    // The probe may be refused, and what follows from it.
                    Some(server::Event::Rejected(violation)) if script.client.server().is_some() => {
                        panic!("the client broke a rule: {violation:?}")
                    }
                    _ => {}
                }
            }
            while server.next_deadline().is_some_and(|at| at <= script.now) {
                match server.handle_timeout(script.now, &mut back) {
                    Some(server::Event::Resumed(resumed)) => serve(server, resumed.incoming(), &mut back),
                    Some(other) => panic!("{other:?}"),
                    None => break,
                }
            }
            for line in std::mem::take(&mut back).split_inclusive(|b| *b == b'\n') {
                if let Some(event) = script.send(std::str::from_utf8(line).unwrap().trim_end()) {
                    hear(script, event);
                }
            }
            for event in script.due() {
                hear(script, event);
            }
            if script.out.is_empty() && back.is_empty() {
                return;
            }
        }
        panic!("they never stop");
    }
}

fn config_of_client() -> std::sync::Arc<client::Config> {
    config().build()
}

#[test]
fn both_sides_find_each_other_in_every_revision() {
    for version in EVERY {
        let mut pair = Pair::new(version);
        let call = pair.call(&CallTool::new("add"), &CallOptions::new());
        let mut heard = Vec::new();
        pair.talk(
            |server, incoming, out| {
                let (pending, params) = incoming.decode::<method::CallTool>().unwrap();
                assert_eq!(params.name, "add");
                let _ = server.respond(pending, &CallToolResult::text("3"), out);
            },
            |_, event| match event {
                client::Event::Ready => heard.push("ready".to_owned()),
                client::Event::Complete(done) => {
                    assert_eq!(done.call, call);
                    heard.push(format!("{}", done.decode::<CallTool>().unwrap().content.len()));
                }
                other => panic!("{version}: {other:?}"),
            },
        );
        assert_eq!(heard, ["ready", "1"], "{version}");
        assert_eq!(pair.script.client.server().unwrap().version, version);
        assert_eq!((pair.script.client.open_calls(), pair.server.in_flight()), (0, 0));
    }
}

#[test]
fn a_question_finds_its_answer_in_both_eras() {
    for version in EVERY.into_iter().filter(|version| version.has_elicitation()) {
        let mut pair = Pair::new(version);
        let call = pair.call(&CallTool::new("deploy"), &CallOptions::new());
        let mut heard = Vec::new();
        pair.talk(
            |server, incoming, out| {
                let (pending, params) = incoming.decode::<method::CallTool>().unwrap();
                let answer = params.retry.input_responses.as_ref().and_then(|all| all.get("sure"));
                let Some(answer) = answer else {
                    let form =
                        ElicitForm::new("Sure?", FormSchema::new().required("ok", BooleanSchema::new()));
                    let required = InputRequired::default().ask("sure", form).request_state("s1");
                    let _ = server.require_input(pending, &required, out).unwrap();
                    return;
                };
                assert_eq!(params.retry.request_state.as_deref(), Some("s1"));
                let text = answer.get().to_owned();
                let _ = server.respond(pending, &CallToolResult::text(text), out);
            },
            |script, event| match event {
                client::Event::Ready => {}
                client::Event::InputRequired { call, round } => {
                    assert!(version.is_modern() && round.requests.len() == 1);
                    let given = InputResponses::new().answer("sure", ElicitResult::decline()).unwrap();
                    assert!(given.get("sure", InputKind::Elicit).unwrap().is_ok());
                    script.client.answer(call, &given, script.now, &mut script.out).unwrap();
                }
                client::Event::Asked(asked) => {
                    assert!(!version.is_modern());
                    assert!(script.client.respond(
                        asked.ask,
                        Ok(ElicitResult::decline().into()),
                        &mut script.out
                    ));
                }
                client::Event::Complete(done) => {
                    assert_eq!(done.call, call);
                    heard.push(done.result.get().to_owned());
                }
                other => panic!("{version}: {other:?}"),
            },
        );
        assert!(heard.len() == 1 && heard[0].contains("decline"), "{version}: {heard:?}");
    }
}

#[test]
fn progress_and_log_come_before_the_answer() {
    for version in EVERY {
        let mut pair = Pair::new(version);
        let options = CallOptions::new().progress(true).log_level(LoggingLevel::Debug);
        let call = pair.call(&CallTool::new("t"), &options);
        let mut heard = Vec::new();
        pair.talk(
            |server, incoming, out| {
                let (pending, _) = incoming.decode::<method::CallTool>().unwrap();
                let data = Json::from("working");
                for step in [1.0, 2.5] {
                    let _ = server.progress(&pending, Progress::new(step).of(5.0), out);
                    let _ = server.log(&pending, Log::new(LoggingLevel::Info, data.as_raw()), out);
                }
                let _ = server.respond(pending, &CallToolResult::default(), out);
            },
            |_, event| match event {
                client::Event::Progress { call: of, progress } => {
                    assert!(of == call && progress.total == Some(5.0));
                    heard.push(progress.progress.to_string());
                }
                client::Event::Log { message, .. } => heard.push(message.data.to_string()),
                client::Event::Complete(_) => heard.push("done".to_owned()),
                client::Event::Ready => {}
                other => panic!("{version}: {other:?}"),
            },
        );
        assert_eq!(heard, ["1", "\"working\"", "2.5", "\"working\"", "done"], "{version}");
    }
}

#[test]
fn a_subscription_hears_of_changes_in_both_eras() {
    for version in EVERY {
        let mut pair = Pair::new(version);
        let filter = SubscriptionFilter::new().tools_list_changed().resource("file:///a");
        let script = &mut pair.script;
        let id = script.client.listen(filter, &CallOptions::new(), script.now, &mut script.out).unwrap();
        let mut heard = Vec::new();
        for round in 0..2 {
            if round == 1 {
                pair.server.publish(&Change::Tools);
                pair.server.publish(&Change::Prompts);
                pair.server.publish(&Change::Resource("file:///a"));
                pair.server.publish(&Change::Resource("file:///z"));
            }
            pair.talk(
                |server, incoming, out| match incoming.typed().unwrap() {
                    Call::Listen(pending, params) => {
                        let _ = server.acknowledge(pending, &params.notifications, out);
                    }
                    Call::Subscribe(pending, _) => {
                        let _ = server.respond(pending, &Default::default(), out);
                    }
                    other => panic!("{other:?}"),
                },
                |_, event| match event {
                    client::Event::Ready => {}
                    client::Event::Acknowledged { subscription, granted } => {
                        assert!(subscription == id && granted.tools_list_changed);
                        heard.push("ack".to_owned());
                    }
                    client::Event::Changed { subscription, change } => {
                        // A legacy server tells of lists that nobody asked for.
                        if change != client::Change::Prompts {
                            assert_eq!(subscription, Some(id));
                            heard.push(format!("{change:?}"));
                        }
                    }
                    other => panic!("{version}: {other:?}"),
                },
            );
        }
        heard[1..].sort();
        assert_eq!(heard, ["ack", "Resource(\"file:///a\")", "Tools"], "{version}");
        // And cancels.
        let script = &mut pair.script;
        assert!(script.client.cancel(id, None, &mut script.out));
        let mut last = 0;
        pair.talk(
            |server, incoming, out| match incoming.typed().unwrap() {
                Call::Unsubscribe(pending, _) => {
                    last += 1;
                    let _ = server.respond(pending, &Default::default(), out);
                }
                other => panic!("{other:?}"),
            },
            |_, event| panic!("{event:?}"),
        );
        assert_eq!((last == 1, pair.server.subscriptions()), (!version.is_modern(), 0));
    }
}

#[test]
fn cancelled_calls_end_on_both_sides() {
    for version in LEGACY.into_iter().chain([V::LATEST]) {
        let mut pair = Pair::new(version);
        let calls: Vec<CallId> =
            (0..3).map(|_| pair.call(&CallTool::new("slow"), &CallOptions::new())).collect();
        let mut open = Vec::new();
        pair.talk(
            |_, incoming, _| open.push(incoming.pending),
            |_, event| assert!(matches!(event, client::Event::Ready)),
        );
        assert_eq!(pair.server.in_flight(), 3);
        let script = &mut pair.script;
        assert!(script.client.cancel(calls[1], Some("enough"), &mut script.out));
        pair.talk(|_, _, _| panic!(), |_, event| panic!("{event:?}"));
        assert_eq!(pair.server.in_flight(), 2);
        // The others by time.
        let due = pair.script.pass(61_000);
        assert_eq!(due.len(), 2);
        pair.talk(|_, _, _| panic!(), |_, event| panic!("{event:?}"));
        assert_eq!((pair.server.in_flight(), pair.script.client.open_calls()), (0, 0));
        // A late answer is discarded over there.
        let mut out = Vec::new();
        for pending in open {
            assert!(
                !server::Channel::fail(
                    &mut pair.server,
                    pending,
                    &mcp_proto::rpc::Error::internal(),
                    &mut out
                )
                .is_written()
            );
        }
        assert!(out.is_empty());
    }
}

#[test]
fn a_mixed_pair_agrees_on_what_both_speak() {
    for ours in EVERY {
        for theirs in EVERY {
            let mut pair = Pair::new(theirs);
            pair.script = Script::started(config().versions([ours]).build());
            let mut ready = None;
            pair.talk(
                |_, _, _| panic!(),
                |script, event| match event {
                    client::Event::Ready => ready = Some(script.client.server().unwrap().version),
                    client::Event::Unusable(_) => {}
                    other => panic!("{other:?}"),
                },
            );
            assert_eq!(ready, (ours == theirs).then_some(ours), "{ours} {theirs}");
        }
    }
}
