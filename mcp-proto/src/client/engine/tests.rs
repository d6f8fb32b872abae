//! What only a transport with several streams can show.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::Engine;
use crate::client::config::{CallOptions, Config, Verdict};
use crate::client::error::CallError;
use crate::client::event::{CallId, Event, ViolationKind};
use crate::client::outbox::{About, Answering, Notice, Origin, Outbox, Purpose};
use crate::client::request::{CallTool, ListTools, ReadResource};
use crate::http::mirror::name_member;
use crate::limits::Limits;
use crate::model::{Implementation, Json, LoggingLevel, ProtocolVersion, SubscriptionFilter};
use crate::rpc::{self, Parsed};
use crate::time::Instant;

/// Notes what goes out, and where to.
#[derive(Default)]
struct Posts {
    /// Wire id, subject, header arguments and body.
    requests: Vec<(i64, Option<String>, Vec<String>, String)>,
    notices: Vec<String>,
    abandoned: Vec<i64>,
}

impl Outbox for Posts {
    fn request(&mut self, about: &About<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut body = Vec::new();
        write(&mut body);
        let headers = about.headers.iter().map(|header| header.name().to_string()).collect();
        // What `Mcp-Name` says is read in the message.
        let message: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let subject =
            name_member(about.method).and_then(|member| message["params"][member].as_str()).map(String::from);
        self.requests.push((about.wire, subject, headers, String::from_utf8(body).unwrap()));
    }

    fn notification(&mut self, about: &Notice<'_>, _: impl FnOnce(&mut Vec<u8>)) {
        self.notices.push(about.method.to_string());
    }

    fn response(&mut self, _: Answering, _: impl FnOnce(&mut Vec<u8>)) {}

    /// As over HTTP.
    fn abandon(&mut self, wire: i64, version: ProtocolVersion) -> bool {
        self.abandoned.push(wire);
        !version.is_modern()
    }
}

const NOW: Instant = Instant::from_origin(Duration::from_secs(1));

fn engine(version: ProtocolVersion) -> (Engine, Posts) {
    let config: Arc<Config> =
        Config::builder(Implementation::new("host", "1")).assume(Verdict::new(version)).build();
    let (mut engine, mut out) = (Engine::new(config, true), Posts::default());
    let event = engine.start(NOW, &mut out);
    if !version.is_modern() {
        let hello = out.requests.pop().unwrap().0;
        let frame = alloc::format!(
            r#"{{"jsonrpc":"2.0","id":{hello},"result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{}},"resources":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
        );
        assert!(matches!(send(&mut engine, &mut out, &frame, Origin::Response(hello)), Some(Event::Ready)));
        out.notices.clear();
    } else {
        assert!(matches!(event, Some(Event::Ready)));
    }
    (engine, out)
}

fn send<'b>(engine: &mut Engine, out: &mut Posts, frame: &'b str, origin: Origin) -> Option<Event<'b>> {
    match rpc::parse(frame.as_bytes(), &Limits::default()) {
        Ok(Parsed::Message(message)) => engine.handle(message, origin, NOW, out),
        Ok(_) => panic!("no batch"),
        Err(malformed) => Some(engine.malformed(malformed, origin, NOW, out)),
    }
}

/// Calls a tool; its name and its id on the wire.
fn tool(engine: &mut Engine, out: &mut Posts) -> (CallId, i64) {
    let options = CallOptions::new().progress(true).log_level(LoggingLevel::Debug);
    let call = engine.call(&CallTool::new("t"), &options, NOW, out).unwrap();
    (call, out.requests.pop().unwrap().0)
}

fn kind(event: Option<Event<'_>>) -> ViolationKind {
    match event {
        Some(Event::Violation(violation)) => violation.kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_counts_only_where_it_is_due() {
    let (mut engine, mut out) = engine(ProtocolVersion::LATEST);
    let ((a, wire_a), (b, wire_b)) = (tool(&mut engine, &mut out), tool(&mut engine, &mut out));
    let answer = |wire: i64| alloc::format!(r#"{{"jsonrpc":"2.0","id":{wire},"result":{{"content":[]}}}}"#);
    let to_b = answer(wire_b);
    assert_eq!(kind(send(&mut engine, &mut out, &to_b, Origin::Response(wire_a))), ViolationKind::Misplaced);
    // What cannot be read harms only its own call.
    let broken = alloc::format!(r#"{{"jsonrpc":"2.0","id":{wire_b}}}"#);
    assert_eq!(
        kind(send(&mut engine, &mut out, &broken, Origin::Response(wire_a))),
        ViolationKind::Malformed
    );
    let to_a = answer(wire_a);
    assert!(
        matches!(send(&mut engine, &mut out, &to_a, Origin::Response(wire_a)), Some(Event::Complete(done)) if done.call == a)
    );
    // An error without an id is about the request whose response it is.
    let anonymous = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"q"}}"#;
    assert!(matches!(
        send(&mut engine, &mut out, anonymous, Origin::Response(wire_b)),
        Some(Event::Failed { call, error: CallError::Rpc(_) }) if call == b
    ));
    assert_eq!(
        kind(send(&mut engine, &mut out, anonymous, Origin::Response(wire_b))),
        ViolationKind::AnonymousError
    );
}

#[test]
fn notifications_count_only_on_their_own_response() {
    let (mut engine, mut out) = engine(ProtocolVersion::LATEST);
    let ((a, wire_a), (_, wire_b)) = (tool(&mut engine, &mut out), tool(&mut engine, &mut out));
    let progress = alloc::format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{wire_a},"progress":1}}}}"#
    );
    let stray = send(&mut engine, &mut out, &progress, Origin::Response(wire_b));
    assert_eq!(kind(stray), ViolationKind::UnknownProgress);
    assert!(matches!(
        send(&mut engine, &mut out, &progress, Origin::Response(wire_a)),
        Some(Event::Progress { call, .. }) if call == a
    ));
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    assert!(matches!(
        send(&mut engine, &mut out, log, Origin::Response(wire_a)),
        Some(Event::Log { call: Some(call), .. }) if call == a
    ));
    // A change is told on the stream of its subscription.
    let filter = SubscriptionFilter::new().tools_list_changed();
    engine.listen(filter, &CallOptions::new(), NOW, &mut out).unwrap();
    let wire = out.requests.pop().unwrap().0;
    let ack = alloc::format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"toolsListChanged":true}},"_meta":{{"io.modelcontextprotocol/subscriptionId":{wire}}}}}}}"#
    );
    let stray = send(&mut engine, &mut out, &ack, Origin::Response(wire_a));
    assert_eq!(kind(stray), ViolationKind::UnknownSubscription);
    assert!(matches!(
        send(&mut engine, &mut out, &ack, Origin::Response(wire)),
        Some(Event::Acknowledged { .. })
    ));
}

#[test]
fn a_lost_stream_ends_a_call_and_only_interrupts_a_subscription() {
    let (mut engine, mut out) = engine(ProtocolVersion::LATEST);
    let (call, wire) = tool(&mut engine, &mut out);
    let lost = || CallError::Lost("reset".into());
    assert!(matches!(
        engine.fail_wire(wire, lost(), NOW, &mut out),
        Some(Event::Failed { call: failed, error: CallError::Lost(_) }) if failed == call
    ));
    assert!(engine.fail_wire(wire, lost(), NOW, &mut out).is_none());
    let id =
        engine.listen(SubscriptionFilter::new().resource("a:b"), &CallOptions::new(), NOW, &mut out).unwrap();
    let (wire, .., body) = out.requests.pop().unwrap();
    assert!(matches!(
        engine.fail_wire(wire, lost(), NOW, &mut out),
        Some(Event::ListenEnded { subscription, lost: true }) if subscription == id
    ));
    engine.relisten(id, NOW, &mut out).unwrap();
    let (again, .., same) = out.requests.pop().unwrap();
    assert_ne!(again, wire);
    assert_eq!(same.replace(&alloc::format!("\"id\":{again}"), &alloc::format!("\"id\":{wire}")), body);
    assert!(engine.relisten(id, NOW, &mut out).is_err());
}

#[test]
fn letting_go_is_said_as_the_transport_wants_it() {
    // C-CANCEL-05 over HTTP: the stream is closed; in a session it is a notification.
    for version in [ProtocolVersion::LATEST, ProtocolVersion::V2025_06_18] {
        let (mut engine, mut out) = engine(version);
        let (call, wire) = tool(&mut engine, &mut out);
        assert!(engine.cancel(call, None, &mut out));
        assert_eq!(out.abandoned, [wire]);
        assert_eq!(out.notices.is_empty(), version.is_modern());
    }
}

#[test]
fn a_request_is_sent_again_under_a_fresh_id() {
    let (mut engine, mut out) = engine(ProtocolVersion::LATEST);
    let (call, wire) = tool(&mut engine, &mut out);
    assert!(engine.resend(wire, NOW, &mut out));
    let (again, ..) = out.requests.pop().unwrap();
    assert!(again > wire && engine.is_open(call));
    assert_eq!(engine.table.purpose(again), Some(Purpose::Call(call)));
    assert!(!engine.resend(wire, NOW, &mut out));
}

#[test]
fn the_arguments_that_headers_repeat_are_those_of_the_list() {
    let (mut engine, mut out) = engine(ProtocolVersion::LATEST);
    let (_, wire) = tool(&mut engine, &mut out);
    let _ = wire;
    engine.call(&ListTools::new(), &CallOptions::new(), NOW, &mut out).unwrap();
    let (wire, ..) = out.requests.pop().unwrap();
    let page = alloc::format!(
        r#"{{"jsonrpc":"2.0","id":{wire},"result":{{"resultType":"complete","tools":[
        {{"name":"t","inputSchema":{{"type":"object","properties":{{"region":{{"type":"string","x-mcp-header":"Region"}}}}}}}},
        {{"name":"bad","inputSchema":{{"type":"object","properties":{{"n":{{"type":"number","x-mcp-header":"N"}}}}}}}}
        ],"ttlMs":0,"cacheScope":"public"}}}}"#
    );
    let Some(Event::Complete(done)) = send(&mut engine, &mut out, &page, Origin::Response(wire)) else {
        panic!("no result")
    };
    // H08: one whose annotation is wrong is left out, and reported.
    let tools = done.tools().unwrap();
    assert_eq!((tools.page.tools.len(), tools.faults.len()), (1, 1));
    assert!(tools.faults[0].to_string().contains("bad"));
    assert_eq!(done.decode::<ListTools>().unwrap().tools.len(), 1);
    let request = CallTool::new("t").arguments(Json::parse(r#"{"region":"eu"}"#).unwrap());
    engine.call(&request, &CallOptions::new(), NOW, &mut out).unwrap();
    let (_, subject, headers, _) = out.requests.pop().unwrap();
    assert_eq!((subject.as_deref(), &headers[..]), (Some("t"), &["Region".to_string()][..]));
}

#[test]
fn what_one_caller_may_see_another_may_not() {
    // B-CACHE-01
    let (mut engine, mut out) = engine(ProtocolVersion::LATEST);
    let mut read = |engine: &mut Engine, uri: &'static str, scope: &str| {
        engine.call(&ReadResource::new(uri), &CallOptions::new(), NOW, &mut out).unwrap();
        let Some((wire, ..)) = out.requests.pop() else {
            assert!(
                matches!(engine.handle_timeout(NOW, &mut out), Some(Event::Complete(done)) if done.cached)
            );
            return false;
        };
        let frame = alloc::format!(
            r#"{{"jsonrpc":"2.0","id":{wire},"result":{{"contents":[],"ttlMs":60000,"cacheScope":"{scope}"}}}}"#
        );
        assert!(matches!(send(engine, &mut out, &frame, Origin::Response(wire)), Some(Event::Complete(_))));
        true
    };
    for (uri, scope) in [("a:own", "private"), ("a:odd", "zzz"), ("a:all", "public")] {
        assert!(read(&mut engine, uri, scope));
        assert!(!read(&mut engine, uri, scope));
    }
    engine.change_context();
    assert!(read(&mut engine, "a:own", "private") && read(&mut engine, "a:odd", "zzz"));
    assert!(!read(&mut engine, "a:all", "public"));
}

#[test]
fn a_poll_that_breaks_is_made_again_and_not_for_ever() {
    let config = Config::builder(Implementation::new("host", "1"))
        .capabilities(
            crate::model::ClientCapabilities::new()
                .extension(crate::model::TASKS_EXTENSION, Json::empty_object()),
        )
        .assume(Verdict::new(ProtocolVersion::LATEST))
        .build();
    let (mut engine, mut out) = (Engine::new(config, true), Posts::default());
    let _ = engine.start(NOW, &mut out);
    let (call, wire) = tool(&mut engine, &mut out);
    let created = alloc::format!(
        r#"{{"jsonrpc":"2.0","id":{wire},"result":{{"resultType":"task","taskId":"t1","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,"pollIntervalMs":1000}}}}"#
    );
    assert!(matches!(
        send(&mut engine, &mut out, &created, Origin::Response(wire)),
        Some(Event::TaskStatus { .. })
    ));
    for n in 1..=5u64 {
        let now = engine.next_deadline().unwrap();
        assert_eq!(now, NOW + Duration::from_secs(n));
        assert!(engine.handle_timeout(now, &mut out).is_none());
        let (wire, subject, ..) = out.requests.pop().unwrap();
        assert_eq!(subject.as_deref(), Some("t1")); // C-TASK-14
        let event = engine.fail_wire(wire, CallError::Lost("reset".into()), now, &mut out);
        match event {
            None => assert!(n < 5),
            Some(Event::Failed { call: failed, error: CallError::Lost(_) }) => {
                assert!(n == 5 && failed == call);
            }
            other => panic!("{other:?}"),
        }
    }
}
