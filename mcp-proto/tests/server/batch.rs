//! Arrays of 2025-03-26: answers in one array, when the last is there. (LB-BATCH-01)

use mcp_proto::model::{CallToolResult, EmptyResult, InputRequest, ProtocolVersion as V};
use mcp_proto::rpc::Error;
use mcp_proto::server::{Call, Change, Channel, Event, Incoming};
use serde_json::{Value, json};

use super::pair::{EVERY_CAPABILITY, Pair, cancel, config, initialize, legacy, limits, modern};

/// Hands over every member and returns what came of each.
fn batch<'b>(pair: &mut Pair, frame: &'b str) -> Vec<Option<Event<'b>>> {
    let Some(Event::Batch(members)) = pair.send(frame) else { panic!("expected a batch") };
    let Pair { server, now, out } = pair;
    members.map(|member| server.handle_member(member, *now, out)).collect()
}

fn request(event: Option<Event<'_>>) -> Incoming<'_> {
    match event {
        Some(Event::Request(incoming)) => incoming,
        other => panic!("expected a request, got {other:?}"),
    }
}

fn session() -> Pair {
    Pair::session(V::V2025_03_26)
}

fn ids(array: &Value) -> Vec<&Value> {
    array
        .as_array()
        .unwrap_or_else(|| panic!("expected an array, got {array}"))
        .iter()
        .map(|m| &m["id"])
        .collect()
}

fn respond(pair: &mut Pair, incoming: Incoming<'_>) {
    let refusal = incoming.not_found();
    assert!(pair.server.fail(refusal.pending, &Error::internal(), &mut pair.out).is_written());
}

/// S08: answers to 1 and 2 in one array, none for the notification.
#[test]
fn s08_answers_leave_as_one_array() {
    let mut pair = session();
    let frame =
        format!(r#"[{},{},{}]"#, legacy("1", "ping", ""), cancel("99"), legacy("2", "tools/list", ""));
    let mut events = batch(&mut pair, &frame);
    pair.silent();
    let list = request(events.remove(2));
    assert!(events.iter().all(Option::is_none));
    respond(&mut pair, list);
    assert_eq!(ids(&pair.message()), [1, 2]);
    assert_eq!(pair.server.in_flight(), 0);
}

/// In any order of answering, and in between other traffic; each batch on its own.
#[test]
fn batches_do_not_mix() {
    let mut pair = session();
    let frames = [
        format!("[{},{}]", legacy("1", "tools/list", ""), legacy("2", "tools/list", "")),
        format!("[{},{}]", legacy("3", "tools/list", ""), legacy("4", "tools/list", "")),
    ];
    let mut first = batch(&mut pair, &frames[0]);
    let alone = legacy("5", "tools/list", "");
    let alone = pair.request(&alone);
    let mut second = batch(&mut pair, &frames[1]);
    respond(&mut pair, request(second.pop().unwrap()));
    respond(&mut pair, request(first.pop().unwrap()));
    pair.silent();
    respond(&mut pair, alone);
    assert_eq!(pair.message()["id"], 5, "outside of a batch there is no array");
    respond(&mut pair, request(second.pop().unwrap()));
    assert_eq!(ids(&pair.message()), [4, 3]);
    respond(&mut pair, request(first.pop().unwrap()));
    assert_eq!(ids(&pair.message()), [2, 1]);
    // A place that is free is used again.
    assert!(batch(&mut pair, &format!("[{}]", legacy("6", "ping", "")))[0].is_none());
    assert_eq!(ids(&pair.message()), [6]);
}

/// A member that is answered before the next one is handed over.
#[test]
fn answered_between_members() {
    let mut pair = session();
    let frame = format!("[{},{}]", legacy("1", "tools/list", ""), legacy("2", "tools/list", ""));
    let Some(Event::Batch(members)) = pair.send(&frame) else { panic!() };
    for member in members {
        pair.silent();
        let event = pair.server.handle_member(member, pair.now, &mut pair.out);
        respond(&mut pair, request(event));
    }
    assert_eq!(ids(&pair.message()), [1, 2]);
}

/// Nothing but notifications and responses: nothing comes back, not even `[]`.
#[test]
fn s08_nothing_to_answer_is_silence() {
    let mut pair = session();
    let Pair { server, now, out } = &mut pair;
    server.ask_client(&InputRequest::ListRoots, *now, out).unwrap();
    let id = pair.message()["id"].clone();
    let frame = format!(
        r#"[{{"jsonrpc":"2.0","method":"notifications/x"}},{},{{"jsonrpc":"2.0","id":77,"result":{{}}}}]"#,
        super::pair::result(&id, r#"{"roots":[]}"#)
    );
    let events = batch(&mut pair, &frame);
    assert!(matches!(
        &events[..],
        [Some(Event::Notification(_)), Some(Event::Answer(_)), Some(Event::Rejected(_))]
    ));
    pair.silent();
    for empty in ["[]", " [ ] "] {
        let violation = pair.refused(empty);
        assert_eq!((violation.error.code, violation.answered), (-32600, false));
        pair.silent();
    }
}

/// A member that is cancelled has no answer; the array does not wait for it.
#[test]
fn cancelled_members_are_left_out() {
    let mut pair = session();
    // From outside.
    let frame = format!("[{},{}]", legacy("1", "tools/list", ""), legacy("2", "tools/list", ""));
    let mut events = batch(&mut pair, &frame);
    respond(&mut pair, request(events.pop().unwrap()));
    pair.silent();
    assert!(matches!(pair.send(&cancel("1")), Some(Event::Cancelled { .. })));
    assert_eq!(ids(&pair.message()), [2]);
    // From inside of the batch, as the last member, and with nothing else to answer.
    let frame = format!("[{},{}]", legacy("3", "tools/list", ""), cancel("3"));
    let events = batch(&mut pair, &frame);
    assert!(matches!(&events[..], [Some(Event::Request(_)), Some(Event::Cancelled { .. })]));
    pair.silent();
    let frame = format!("[{},{},{}]", legacy("4", "ping", ""), legacy("5", "tools/list", ""), cancel("5"));
    batch(&mut pair, &frame);
    assert_eq!(ids(&pair.message()), [4]);
    assert_eq!(pair.server.in_flight(), 0);
}

/// What a member ends elsewhere is told elsewhere: withdrawn questions are messages of their own, and an
/// array that is complete now is not put into this one.
#[test]
fn only_answers_go_into_the_array() {
    let mut pair = session();
    // A call outside of a batch, with a question open.
    let key = pair.open(&legacy("1", "tools/call", "\"name\":\"t\""));
    let Pair { server, now, out } = &mut pair;
    server.ask(key, &InputRequest::ListRoots, *now, out).unwrap();
    let asked = pair.message()["id"].clone();
    let frame = format!("[{},{}]", cancel("1"), legacy("2", "ping", ""));
    batch(&mut pair, &frame);
    let messages = pair.messages();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(
        (&messages[0]["method"], &messages[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &asked)
    );
    assert_eq!(ids(&messages[1]), [2]);
    // A batch that waits for its last answer, whose request a member of another batch cancels.
    let frame = format!("[{},{}]", legacy("3", "ping", ""), legacy("4", "tools/list", ""));
    batch(&mut pair, &frame);
    pair.silent();
    let frame = format!("[{},{}]", cancel("4"), legacy("5", "ping", ""));
    batch(&mut pair, &frame);
    let messages = pair.messages();
    assert_eq!(messages.iter().map(ids).collect::<Vec<_>>(), [[&json!(3)], [&json!(5)]], "{messages:?}");
}

/// Members that are no good requests are answered like single ones; what has no id cannot be answered in
/// this revision.
#[test]
fn malformed_members() {
    let mut pair = session();
    let frame = format!(
        r#"[1,"x",null,[],[{}],{{"jsonrpc":"2.0","id":2}},{{"jsonrpc":"1.0","id":3,"method":"ping"}},{{"jsonrpc":"2.0","id":null,"method":"ping"}},{}]"#,
        legacy("1", "tools/call", "\"name\":\"t\""),
        legacy("4", "ping", "")
    );
    let events = batch(&mut pair, &frame);
    assert!(events[..8].iter().all(|e| matches!(e, Some(Event::Rejected(_)))), "{events:?}");
    let array = pair.message();
    assert_eq!(ids(&array), [2, 3, 4]);
    assert_eq!(array[0]["error"]["code"], -32600);
    assert_eq!(pair.server.in_flight(), 0, "nothing of a batch in a batch runs");
}

/// LC-BATCH: `initialize` has no place in a batch, nor has a request of a revision without batches.
#[test]
fn foreign_members_are_refused() {
    let mut pair = session();
    let listen = modern("3", "subscriptions/listen", r#""notifications":{}"#);
    let frame = format!(
        "[{},{},{listen},{}]",
        initialize("1", "2025-03-26", "{}"),
        modern("2", "tools/call", "\"name\":\"t\""),
        legacy("4", "ping", "")
    );
    let events = batch(&mut pair, &frame);
    assert!(events[..3].iter().all(|e| matches!(e, Some(Event::Rejected(_)))), "{events:?}");
    let array = pair.message();
    assert_eq!(ids(&array), [1, 2, 3, 4]);
    assert!((0..3).all(|n| array[n]["error"]["code"] == -32600), "{array}");
    assert_eq!(pair.server.session_version(), Some(V::V2025_03_26));
    // Before the handshake there are no batches, not even of a handshake.
    let mut pair = Pair::new();
    assert_eq!(pair.error(&format!("[{}]", initialize("1", "2025-03-26", "{}")))["error"]["code"], -32600);
    assert_eq!(pair.server.session_version(), None);
}

/// The same id twice in one batch: the second is refused, both answers are in the array.
#[test]
fn the_same_id_twice() {
    let mut pair = session();
    let frame = format!("[{},{}]", legacy("1", "tools/list", ""), legacy("1", "tools/list", ""));
    let mut events = batch(&mut pair, &frame);
    assert!(matches!(events.pop(), Some(Some(Event::Rejected(_)))));
    respond(&mut pair, request(events.pop().unwrap()));
    let array = pair.message();
    assert_eq!(ids(&array), [1, 1]);
}

/// Progress and logs are messages of their own and do not wait for the array.
#[test]
fn notifications_do_not_wait() {
    let mut pair = session();
    let frame = format!("[{}]", super::pair::call_with_token(V::V2025_03_26, "1", "\"p\""));
    let event = batch(&mut pair, &frame).remove(0);
    let Ok(Call::CallTool(pending, _)) = request(event).typed() else { panic!() };
    assert!(
        pair.server.progress(&pending, mcp_proto::server::Progress::new(1.0), &mut pair.out).is_written()
    );
    assert_eq!(pair.message()["params"]["progressToken"], "p");
    assert!(pair.server.respond(pending, &CallToolResult::text("x\ny"), &mut pair.out).is_written());
    let array = pair.message();
    assert_eq!(array[0]["result"]["content"][0]["text"], "x\ny");
}

/// What an answer does, it does in a batch too.
#[test]
fn subscribing_in_a_batch() {
    let mut pair = session();
    let frame = format!("[{}]", legacy("1", "resources/subscribe", r#""uri":"u:1""#));
    let event = batch(&mut pair, &frame).remove(0);
    let Ok(Call::Subscribe(pending, _)) = request(event).typed() else { panic!() };
    assert!(pair.server.respond(pending, &EmptyResult::new(), &mut pair.out).is_written());
    assert_eq!(ids(&pair.message()), [1]);
    pair.server.publish(&Change::Resource("u:1"));
    pair.server.flush_subscriptions(&mut pair.out);
    assert_eq!(pair.message()["params"]["uri"], "u:1");
}

/// Members that are not handed over are as if they had not been sent, and other traffic goes on.
#[test]
fn a_batch_that_is_not_handed_over() {
    let mut pair = session();
    let frame = format!(
        "[{},{},{}]",
        legacy("1", "ping", ""),
        legacy("2", "ping", ""),
        legacy("3", "tools/list", "")
    );
    let Some(Event::Batch(mut members)) = pair.send(&frame) else { panic!() };
    assert!(pair.server.handle_member(members.next().unwrap(), pair.now, &mut pair.out).is_none());
    pair.silent();
    let single = legacy("4", "tools/list", "");
    let single = pair.request(&single);
    assert_eq!(ids(&pair.message()), [1], "what was answered is told");
    respond(&mut pair, single);
    assert_eq!(pair.message()["id"], 4);
    // Late members are handled each on its own.
    for member in members {
        let event = pair.server.handle_member(member, pair.now, &mut pair.out);
        if let Some(event) = event {
            respond(&mut pair, request(Some(event)));
        }
    }
    let messages = pair.messages();
    assert_eq!(messages.iter().map(|m| m["id"].clone()).collect::<Vec<_>>(), [2, 3]);
}

/// Bounds: members of a batch, open requests, and a deadline that passes.
#[test]
fn bounds_of_a_batch() {
    let config = config()
        .limits(limits(|l| {
            l.max_batch = 3;
            l.max_in_flight = 2;
            l.request_timeout = Some(std::time::Duration::from_secs(1));
        }))
        .build();
    let mut pair = Pair::of(config).with_session(V::V2025_03_26, EVERY_CAPABILITY);
    let frame = format!("[{0},{0},{0},{0}]", cancel("1"));
    assert_eq!(pair.refused(&frame).error.code, -32600);
    let frame = format!(
        "[{},{},{}]",
        legacy("1", "tools/list", ""),
        legacy("2", "tools/list", ""),
        legacy("3", "tools/list", "")
    );
    let events = batch(&mut pair, &frame);
    assert!(matches!(events[2], Some(Event::Rejected(_))));
    pair.silent();
    assert_eq!(pair.pass(5_000).len(), 2);
    let array = pair.message();
    assert_eq!(ids(&array), [3, 1, 2]);
    assert_eq!(pair.server.in_flight(), 0);
}
