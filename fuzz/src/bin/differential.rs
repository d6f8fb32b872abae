//! The same bytes in any pieces, and the same objects with their members in another order, mean the same to a
//! machine: the same events, the same answers.
//!
//! The first line chooses the machine, its revision and the order; the rest is what the peer sends.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use mcp_proto::client::http::{Action, Client, Settings, Url};
use mcp_proto::client::request::{CallTool, ListTools, ReadResource};
use mcp_proto::client::{self, CallOptions, Verdict};
use mcp_proto::codec::{Frame, LineBuffer};
use mcp_proto::model::{
    CallToolResult, ClientCapabilities, Implementation, ProtocolVersion, ServerCapabilities,
    SubscriptionFilter,
};
use mcp_proto::rpc::{self, Message, Parsed};
use mcp_proto::server::{self, Call, Channel};
use mcp_proto::time::Instant;
use mcp_proto_fuzz::{Entries, Input, pieces, shuffle};
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let mut choices = Input::new(input.line());
    let (machine, version, order, cuts) = (choices.byte(), choices.byte(), choices.byte(), choices.byte());
    let version = ProtocolVersion::ALL[usize::from(version) % ProtocolVersion::ALL.len()];
    let stream = input.rest();
    let run: fn(ProtocolVersion, &[u8], Option<u8>) -> Seen = match machine % 3 {
        0 => serve,
        1 => hear,
        _ => browse,
    };
    let whole = run(version, stream, None);
    for cuts in [0, cuts] {
        assert_eq!(run(version, stream, Some(cuts)), whole, "in pieces");
    }
    if machine % 3 < 2 {
        let other = permuted(stream, order);
        let found = run(version, &other, None);
        assert_eq!(found.normal(), whole.normal(), "{}", String::from_utf8_lossy(&other));
    }
});

/// What a machine said of it, and wrote.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    events: Vec<String>,
    out: Vec<u8>,
}

impl Seen {
    /// Without what may depend on the order: the words of an error, of several the first that is found, and
    /// the order of members that are passed on.
    fn normal(&self) -> (Vec<String>, Vec<Value>) {
        let events = self.events.iter().map(|event| event.split('\n').next().unwrap_or_default().to_owned());
        let lines = self.out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines = lines.map(|line| {
            let mut value: Value = serde_json::from_slice(line).expect("JSON");
            plain(&mut value);
            value
        });
        (events.collect(), lines.collect())
    }
}

fn plain(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Object(object) => {
            if let Some(error) = object.get_mut("error").and_then(Value::as_object_mut) {
                error.insert("message".into(), "".into());
            }
        }
        _ => {}
    }
}

/// Every line that is an object, with its members in another order.
fn permuted(stream: &[u8], order: u8) -> Vec<u8> {
    let mut all = Vec::with_capacity(stream.len());
    for line in stream.split_inclusive(|byte| *byte == b'\n') {
        let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
        let (text, ending) = line.split_at(end);
        let entries = str::from_utf8(text).ok().and_then(|text| serde_json::from_str::<Entries>(text).ok());
        match entries.filter(|entries| is_unique(entries, 2)) {
            Some(mut entries) => {
                shuffle(&mut entries.0, order);
                all.extend_from_slice(entries.write(order, 2).as_bytes());
            }
            None => all.extend_from_slice(text),
        }
        all.extend_from_slice(ending);
    }
    all
}

/// Of members that are given twice, the order counts.
fn is_unique(entries: &Entries, levels: usize) -> bool {
    entries.is_unique()
        && entries.0.iter().all(|(_, inner)| match serde_json::from_str::<Entries>(inner) {
            Ok(inner) if levels > 0 => is_unique(&inner, levels - 1),
            _ => true,
        })
}

fn frames(stream: &[u8], cuts: Option<u8>, mut take: impl FnMut(Option<&[u8]>)) {
    let mut lines = LineBuffer::new(4096);
    let mut say = |frame: Frame<'_>| match frame {
        Frame::Line(line) => take(Some(line)),
        Frame::TooLong { .. } => take(None),
    };
    let mut feed = |piece: &[u8]| {
        lines.extend(piece);
        while let Some(frame) = lines.next_frame() {
            say(frame);
        }
    };
    match cuts {
        None => feed(stream),
        Some(cuts) => pieces(stream, cuts).for_each(feed),
    }
    while let Some(frame) = lines.finish() {
        say(frame);
    }
}

/// A server's machine: every other call is answered late.
fn serve(version: ProtocolVersion, stream: &[u8], cuts: Option<u8>) -> Seen {
    let capabilities = ServerCapabilities::new().tools(true).prompts(true).resources(true, true).logging();
    let config = server::Config::builder(Implementation::new("s", "1")).capabilities(capabilities).build();
    let mut server = server::Connection::new(config);
    let (mut seen, now) = (Seen::default(), Instant::ZERO);
    if !version.is_modern() {
        let first = format!(
            r#"{{"jsonrpc":"2.0","id":"init","method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"roots":{{}}}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
        );
        assert!(server.handle(first.as_bytes(), now, &mut seen.out).is_none());
    }
    let mut late = None;
    frames(stream, cuts, |frame| {
        let Some(frame) = frame else {
            let _ = server.refuse_oversized(&mut seen.out);
            seen.events.push("too long".into());
            return;
        };
        let mut members = Vec::new();
        match server.handle(frame, now, &mut seen.out) {
            Some(server::Event::Batch(batch)) => members.extend(batch),
            Some(event) => served(&mut server, event, &mut late, &mut seen),
            None => seen.events.push("nothing".into()),
        }
        for member in members {
            if let Some(event) = server.handle_member(member, now, &mut seen.out) {
                served(&mut server, event, &mut late, &mut seen);
            }
        }
    });
    server.end_of_input(&mut seen.out);
    seen
}

fn served(
    server: &mut server::Connection,
    event: server::Event<'_>,
    late: &mut Option<server::Pending<mcp_proto::model::method::CallTool>>,
    seen: &mut Seen,
) {
    let said = match event {
        server::Event::Request(incoming) => {
            let method = incoming.method.to_string();
            let said = match incoming.typed() {
                Ok(Call::CallTool(pending, params)) => {
                    let said = format!(
                        "{:?} {:?}\n{:?}",
                        params.name,
                        params.retry.request_state,
                        params.arguments.map(|raw| raw.get().to_owned())
                    );
                    if let Some(before) = late.replace(pending) {
                        let _ = server.respond(before, &CallToolResult::text("x"), &mut seen.out);
                    }
                    said
                }
                Ok(Call::Listen(pending, params)) => {
                    let _ = server.acknowledge(pending, &params.notifications, &mut seen.out);
                    format!("{:?}", params.notifications)
                }
                Ok(other) => {
                    let _ = server.respond_raw(other.into_pending(), b"{}", &mut seen.out);
                    String::new()
                }
                Err(refusal) => {
                    let said = format!("refused {}", refusal.error.code);
                    let _ = server.refuse(refusal, &mut seen.out);
                    said
                }
            };
            format!("request {method} {said}")
        }
        server::Event::Notification(notice) => format!("notification {}", notice.method),
        server::Event::Rejected(violation) => {
            format!(
                "rejected {:?} {} {}\n{}",
                violation.id, violation.answered, violation.error.code, violation.error.message
            )
        }
        server::Event::Cancelled { reason, .. } => format!("cancelled {reason:?}"),
        server::Event::Answer(answer) => format!("answer {}", answer.outcome.is_ok()),
        server::Event::Initialized => "initialized".into(),
        other => format!("{other:?}"),
    };
    seen.events.push(said);
}

/// A client's machine with three calls open.
fn hear(version: ProtocolVersion, stream: &[u8], cuts: Option<u8>) -> Seen {
    let config = client::Config::builder(Implementation::new("c", "1"))
        .capabilities(ClientCapabilities::new().roots().sampling().form_elicitation())
        .assume(Verdict::new(version))
        .build();
    let mut client = client::Connection::new(config);
    let (mut seen, now) = (Seen::default(), Instant::from_origin(Duration::from_secs(1)));
    let _ = client.start(now, &mut seen.out);
    if !version.is_modern() {
        let id = first_id(&seen.out);
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{}},"resources":{{"subscribe":true}},"logging":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
        );
        assert!(client.handle(answer.as_bytes(), now, &mut seen.out).is_some());
    }
    let options = CallOptions::new().progress(true);
    let out = &mut seen.out;
    let mut calls = vec![
        client.call(&CallTool::new("t"), &options, now, out).expect("a call"),
        client.call(&ListTools::new(), &options, now, out).expect("a call"),
        client.call(&ReadResource::new("a:b"), &options, now, out).expect("a call"),
    ];
    calls.extend(client.listen(SubscriptionFilter::new().resource("a:b"), &options, now, out));
    frames(stream, cuts, |frame| {
        let Some(frame) = frame else {
            seen.events.push("too long".into());
            return;
        };
        match client.handle(frame, now, &mut seen.out) {
            Some(client::Event::Batch(batch)) => {
                for member in batch {
                    if let Some(event) = client.handle_member(member, now, &mut seen.out) {
                        seen.events.push(heard(&event, &calls));
                    }
                }
            }
            Some(event) => seen.events.push(heard(&event, &calls)),
            None => seen.events.push("nothing".into()),
        }
        for _ in 0..100 {
            let Some(event) = client.handle_timeout(now, &mut seen.out) else { break };
            seen.events.push(heard(&event, &calls));
        }
    });
    seen
}

fn first_id(out: &[u8]) -> String {
    match rpc::parse(out.split(|byte| *byte == b'\n').next().unwrap_or_default(), &Default::default()) {
        Ok(Parsed::Message(Message::Request { id, .. })) => id.to_string(),
        other => panic!("{other:?}"),
    }
}

/// What an event says: first what does not depend on the order of members.
fn heard(event: &client::Event<'_>, calls: &[client::CallId]) -> String {
    let of = |call: &client::CallId| calls.iter().position(|known| known == call);
    let raw = |raw: &RawValue| raw.get().to_owned();
    match event {
        client::Event::Complete(done) => {
            format!("complete {:?} {}\n{}", of(&done.call), done.cached, raw(&done.result))
        }
        client::Event::Failed { call, error } => {
            let kind = format!("{error:?}");
            let kind = kind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            format!("failed {:?} {kind}\n{error}", of(call))
        }
        client::Event::InputRequired { call, round } => format!("input {:?}\n{round:?}", of(call)),
        client::Event::Progress { call, progress } => format!("progress {:?} {progress:?}", of(call)),
        client::Event::Asked(asked) => format!("asked {:?}\n{:?}", asked.request.kind(), asked.request),
        client::Event::Violation(violation) => format!("violation {:?}\n{violation:?}", violation.kind),
        client::Event::ListenEnded { subscription, lost } => format!("ended {:?} {lost}", of(subscription)),
        client::Event::Changed { subscription, change } => {
            format!("changed {:?} {change:?}", subscription.as_ref().map(of))
        }
        other => {
            let all = format!("{other:?}");
            let kind = all.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            format!("{kind}\n{all}")
        }
    }
}

/// A client over HTTP: `stream` is the body of one response, of events if the revision is odd.
fn browse(version: ProtocolVersion, stream: &[u8], cuts: Option<u8>) -> Seen {
    let is_sse = stream.first().is_none_or(|byte| *byte != b'{' && *byte != b'[');
    let config = client::Config::builder(Implementation::new("c", "1"))
        .assume(Verdict::new(if version.is_modern() { version } else { ProtocolVersion::LATEST }))
        .build();
    let url = Url::parse("http://localhost/mcp").expect("a URL");
    let mut client = Client::new(config, Settings::new(url));
    let (mut seen, mut actions) = (Seen::default(), Vec::new());
    let now = Instant::from_origin(Duration::from_secs(1));
    let _ = client.start(now, &mut actions);
    let options = CallOptions::new().progress(true);
    let call = client.call(&CallTool::new("t"), &options, now, &mut actions).expect("a call");
    let Some(Action::Open { exchange, .. }) = actions.pop() else { panic!("nothing is sent") };
    let kind = if is_sse { "text/event-stream" } else { "application/json" };
    let fields = [("content-type", kind)];
    let mut reader = client.head(exchange, 200, &fields[..], now, &mut actions);
    let mut feed = |mut piece: &[u8]| {
        while let Some(frame) = reader.next_frame(&mut piece) {
            if let Some(event) = client.handle(frame, now, &mut actions) {
                seen.events.push(heard(&event, &[call]));
            }
        }
    };
    match cuts {
        None => feed(stream),
        Some(cuts) => pieces(stream, cuts).for_each(feed),
    }
    if let Some(event) = client.end(&mut reader, Ok(()), now, &mut actions) {
        seen.events.push(heard(&event, &[call]));
    }
    for _ in 0..100 {
        let Some(event) = client.handle_timeout(now, &mut actions) else { break };
        seen.events.push(heard(&event, &[call]));
    }
    for action in &actions {
        seen.events.push(match action {
            Action::Open { request, .. } => format!("{} {}", request.method, request.url),
            Action::Close(_) => "close".into(),
        });
    }
    seen
}
