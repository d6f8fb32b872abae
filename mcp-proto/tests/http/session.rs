//! A session without the service: what someone with a loop of their own drives.

use std::time::Duration;

use mcp_proto::http::session::{Session, Stream};
use mcp_proto::http::{Endpoint, Response, Settings, Taken};
use mcp_proto::model::method::CallTool;
use mcp_proto::model::{CallToolResult, Implementation, ServerCapabilities};
use mcp_proto::server::{Call, Change, Channel, Config, Event, Pending, Progress};
use mcp_proto::time::Instant;
use serde_json::{Value, json};

use crate::harness::{Request, call, events, initialize};

fn endpoint() -> Endpoint {
    let config = Config::builder(Implementation::new("demo", "1"))
        .capabilities(ServerCapabilities::new().tools(true).resources(true, true))
        .build();
    Endpoint::new(config, Settings::default())
}

const NOW: Instant = Instant::ZERO;

fn open(endpoint: &Endpoint, version: &str) -> Session {
    let request = Request::post(initialize(version, json!({"elicitation": {}})).to_string());
    let Taken::Initialize(post) = endpoint.take(&request, &request.body) else { panic!("no handshake") };
    let (session, response) = Session::initialize(endpoint, post, "abc", NOW).unwrap();
    assert_eq!(response.head.header("mcp-session-id"), Some("abc"));
    assert_eq!((session.id(), session.is_idle()), ("abc", true));
    session
}

/// The stream of a POST, and the calls in it.
fn send(
    endpoint: &Endpoint,
    session: &mut Session,
    request: &Request,
) -> Result<(Option<Stream>, Vec<Pending<CallTool>>), Response> {
    let request = request.clone().with("Mcp-Session-Id", "abc");
    let Taken::Session("abc", post) = endpoint.take(&request, &request.body) else { panic!("no session") };
    let (stream, event) = session.post(post, NOW)?;
    let mut all = Vec::new();
    match event {
        Some(Event::Batch(batch)) => all.extend(batch.filter_map(|one| session.handle_member(one, NOW))),
        event => all.extend(event),
    }
    let calls = all.into_iter().filter_map(|event| match event {
        Event::Request(incoming) => match incoming.typed() {
            Ok(Call::CallTool(pending, _)) => Some(pending),
            other => panic!("{other:?}"),
        },
        _ => None,
    });
    Ok((stream, calls.collect()))
}

fn post(message: &Value) -> Request {
    Request::post(message.to_string())
}

fn ready(session: &mut Session) -> Vec<u64> {
    let mut all: Vec<_> = std::iter::from_fn(|| session.next_ready()).collect();
    all.sort_unstable();
    all
}

fn text(session: &mut Session, stream: &mut Stream) -> (bool, String) {
    let mut out = Vec::new();
    let over = session.write(stream, 1 << 16, &mut out);
    (over, String::from_utf8(out).unwrap())
}

#[test]
fn each_answer_is_on_its_own_stream() {
    let endpoint = endpoint();
    let mut session = open(&endpoint, "2025-11-25");
    let mut untouched = Vec::new();
    let (one, mut first) = send(&endpoint, &mut session, &post(&call(1, "a", json!({})))).unwrap();
    let (two, mut second) = send(&endpoint, &mut session, &post(&call(2, "b", json!({})))).unwrap();
    let (mut one, mut two) = (one.unwrap(), two.unwrap());
    let mut get = session.get(NOW).unwrap();
    assert_eq!(session.get(NOW).unwrap_err().head.status, 409);
    ready(&mut session);
    let (first, second) = (first.remove(0), second.remove(0));
    assert!(session.progress(&first, Progress::new(1.0), &mut untouched).is_written());
    assert_eq!(ready(&mut session), [one.number()]);
    session.publish(&Change::Tools);
    session.publish(&Change::Tools);
    assert_eq!(ready(&mut session), [get.number()]);
    assert!(session.respond(second, &CallToolResult::text("b"), &mut untouched).is_written());
    assert_eq!(ready(&mut session), [two.number()]);
    assert!(untouched.is_empty());
    // The second is JSON, for nothing came before its answer.
    let (over, body) = text(&mut session, &mut two);
    assert!(over && body.contains("\"id\":2"));
    let head = two.take_head().unwrap();
    assert_eq!((head.status, head.header("content-type")), (200, Some("application/json")));
    // The first is a stream, which its client leaves and comes back to.
    let (over, body) = text(&mut session, &mut one);
    let last = events(body.as_bytes()).pop().unwrap();
    assert!(!over && body.contains("notifications/progress"));
    assert_eq!(one.take_head().unwrap().header("content-type"), Some("text/event-stream"));
    session.disconnect(one);
    let mut back = session.resume(&last.id.unwrap(), NOW).unwrap();
    assert!(session.respond(first, &CallToolResult::text("a"), &mut untouched).is_written());
    let (over, body) = text(&mut session, &mut back);
    assert!(over && body.contains("\"id\":1") && !body.contains("progress"));
    assert_eq!(session.resume("77-1", NOW).unwrap_err().head.status, 400);
    let (over, body) = text(&mut session, &mut get);
    assert!(!over && body.matches("list_changed").count() == 1, "{body}");
    // Graceful: what is due goes out, then the stream ends.
    session.publish(&Change::Tools);
    session.close();
    let (over, body) = text(&mut session, &mut get);
    assert!(over && body.contains("list_changed"));
    assert!(session.is_idle());
}

#[test]
fn batches_and_what_is_no_request() {
    let endpoint = endpoint();
    let mut session = open(&endpoint, "2025-03-26");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert!(send(&endpoint, &mut session, &post(&note)).unwrap().0.is_none());
    let batch = json!([call(1, "a", json!({})), note, call(2, "b", json!({}))]);
    let (stream, calls) = send(&endpoint, &mut session, &post(&batch)).unwrap();
    let mut stream = stream.unwrap();
    for pending in calls {
        assert_eq!(text(&mut session, &mut stream), (false, String::new()));
        let _ = session.respond(pending, &CallToolResult::text("x"), &mut Vec::new());
    }
    let (over, body) = text(&mut session, &mut stream);
    let array: Value = serde_json::from_str(&body).unwrap();
    assert!(over && array.as_array().unwrap().len() == 2);
    // S08: nowhere else.
    let mut session = open(&endpoint, "2025-06-18");
    assert_eq!(send(&endpoint, &mut session, &post(&batch)).unwrap_err().head.status, 400);
}

#[test]
fn keep_alive_and_the_end() {
    let endpoint = endpoint();
    let mut session = open(&endpoint, "2025-11-25");
    let (stream, _calls) = send(&endpoint, &mut session, &post(&call(1, "a", json!({})))).unwrap();
    let mut begun = stream.unwrap();
    let (stream, _calls) = send(&endpoint, &mut session, &post(&call(2, "a", json!({})))).unwrap();
    let mut undecided = stream.unwrap();
    let due = begun.next_deadline().unwrap();
    assert_eq!(due, NOW + Duration::from_secs(15));
    let mut out = Vec::new();
    session.keep_alive(&mut begun, NOW, &mut out);
    assert!(out.is_empty() && begun.take_head().is_none());
    session.keep_alive(&mut begun, due, &mut out);
    assert_eq!(begun.take_head().unwrap().status, 200);
    assert!(events(&out)[0].id.is_some());
    session.end();
    assert_eq!(text(&mut session, &mut begun), (true, String::new()));
    assert!(text(&mut session, &mut undecided).0);
    assert_eq!(undecided.take_head().unwrap().status, 404);
    assert_eq!(undecided.next_deadline(), None);
    assert_eq!(session.get(NOW).unwrap_err().head.status, 404);
    assert_eq!(send(&endpoint, &mut session, &post(&call(3, "a", json!({})))).unwrap_err().head.status, 404);
    // A handshake that fails is answered, and there is no session.
    let bad = post(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}));
    let Taken::Initialize(taken) = endpoint.take(&bad, &bad.body) else { panic!("no handshake") };
    assert_eq!(Session::initialize(&endpoint, taken, "x", NOW).unwrap_err().head.status, 400);
}
