//! What the types permit. What they forbid stands in `compile_fail/`.

use std::thread;

use mcp_proto::model::method::CallTool;
use mcp_proto::model::{CallToolResult, ProtocolVersion as V};
use mcp_proto::server::{Channel, Connection, Delivery, Event, Pending};

use super::pair::{Pair, call};

fn is_send<T: Send + 'static>() {}

/// The machine and the rights to answer can go to other threads.
#[test]
fn rights_and_machines_can_be_sent() {
    is_send::<Connection>();
    is_send::<Pending<CallTool>>();
    is_send::<Pending>();
    is_send::<Event<'static>>();
    let mut pair = Pair::new();
    let frame = call(V::LATEST, "1", "t");
    let (pending, _) = pair.tool(&frame);
    let (pending, text) = thread::spawn(|| (pending, "worked out elsewhere")).join().unwrap();
    assert!(pair.server.respond(pending, &CallToolResult::text(text), &mut pair.out).is_written());
    assert!(pair.text().contains("worked out elsewhere"));
}

/// The machine is free while events are alive: they borrow the frame only.
#[test]
fn events_do_not_borrow_the_machine() {
    let mut pair = Pair::new();
    let frames = ["1", "2"].map(|id| call(V::LATEST, id, "t"));
    let (one, two) = (pair.send(&frames[0]), pair.send(&frames[1]));
    for event in [two, one] {
        let Some(Event::Request(incoming)) = event else { panic!() };
        assert_eq!(pair.server.refuse(incoming.not_found(), &mut pair.out), Delivery::Written);
    }
    assert_eq!(pair.messages().iter().map(|m| m["id"].as_i64()).collect::<Vec<_>>(), [Some(2), Some(1)]);
}
