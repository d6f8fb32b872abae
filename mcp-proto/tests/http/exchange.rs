//! One POST of 2026-07-28 without the service.

use std::time::Duration;

use mcp_proto::http::{Endpoint, Events, Exchange, Settings, Taken};
use mcp_proto::model::{CallToolResult, Implementation, ServerCapabilities};
use mcp_proto::server::{Call, Change, Channel, Config, Event, Progress};
use mcp_proto::time::Instant;
use serde_json::{Value, json};

use crate::harness::{Request, events, modern};

fn endpoint(events: Events) -> Endpoint {
    let config = Config::builder(Implementation::new("demo", "1"))
        .capabilities(ServerCapabilities::new().tools(true))
        .build();
    let mut settings = Settings::default();
    settings.events = events;
    Endpoint::new(config, settings)
}

fn start<'r>(endpoint: &Endpoint, request: &'r Request, out: &mut Vec<u8>) -> (Exchange, Option<Event<'r>>) {
    let Taken::Modern(post) = endpoint.take(request, &request.body) else { panic!("not modern") };
    Exchange::start(endpoint, post, Instant::ZERO, out)
}

fn tool() -> Request {
    let params = json!({"name": "a", "arguments": {}, "_meta": {"progressToken": 1}});
    Request::modern(&modern(1, "tools/call", params, json!({})))
}

#[test]
fn json_or_events() {
    for (always, accept, progress, sse) in [
        (false, "*/*", false, false),
        (false, "*/*", true, true),
        (true, "*/*", false, true),
        (true, "application/json", true, false),
        (false, "text/event-stream", false, true),
    ] {
        let endpoint = endpoint(if always { Events::Always } else { Events::WhenNeeded });
        let request = tool().set("Accept", accept);
        let mut out = Vec::new();
        let (mut exchange, event) = start(&endpoint, &request, &mut out);
        let Some(Event::Request(incoming)) = event else { panic!("no request") };
        let Ok(Call::CallTool(pending, _)) = incoming.typed() else { panic!("no call") };
        assert!(exchange.take_head().is_none() && !exchange.is_over());
        if progress {
            let _ = exchange.progress(&pending, Progress::new(1.0), &mut out);
            assert_eq!(exchange.take_head().is_some(), sse);
        }
        let _ = exchange.respond(pending, &CallToolResult::text("x"), &mut out);
        assert!(exchange.is_over());
        assert_eq!(exchange.take_head().is_some(), !(progress && sse));
        let last: Value = if sse {
            let all = events(&out);
            assert_eq!(all.len(), 1 + usize::from(progress));
            serde_json::from_str(all.last().unwrap().data.as_ref().unwrap()).unwrap()
        } else {
            serde_json::from_slice(&out).unwrap()
        };
        assert_eq!(last["id"], 1);
        assert_eq!(exchange.next_deadline(), None);
    }
}

/// S-HTTP-06: 202 without a body, whatever the client takes and the endpoint prefers.
#[test]
fn a_notification_is_accepted() {
    let mut message = modern(1, "notifications/made-up", json!({}), json!({}));
    message.as_object_mut().unwrap().remove("id");
    for events in [Events::WhenNeeded, Events::Always] {
        for accept in ["*/*", "application/json", "text/event-stream"] {
            let endpoint = endpoint(events);
            let request = Request::modern(&message).set("Accept", accept);
            let mut out = Vec::new();
            let (mut exchange, _) = start(&endpoint, &request, &mut out);
            assert_eq!(exchange.take_head().unwrap().status, 202, "{accept} {events:?}");
            assert!(out.is_empty() && exchange.is_over());
        }
    }
}

#[test]
fn a_subscription_from_acknowledgment_to_result() {
    let endpoint = endpoint(Events::WhenNeeded);
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let request = Request::modern(&modern("s", "subscriptions/listen", filter, json!({})));
    let mut out = Vec::new();
    let (mut exchange, event) = start(&endpoint, &request, &mut out);
    let Some(Event::Request(incoming)) = event else { panic!("no request") };
    let Ok(Call::Listen(pending, params)) = incoming.typed() else { panic!("no subscription") };
    let _ = exchange.acknowledge(pending, &params.notifications, &mut out);
    assert_eq!(exchange.take_head().unwrap().status, 200);
    assert!(exchange.publish(&Change::Tools) && exchange.publish(&Change::Tools));
    exchange.flush_subscriptions(&mut out);
    let due = Instant::ZERO + Duration::from_secs(15);
    assert_eq!(exchange.next_deadline(), Some(due));
    assert!(exchange.handle_timeout(due, &mut out).is_none());
    exchange.close(&mut out);
    assert!(exchange.is_over());
    let all = events(&out);
    assert_eq!((all.len(), all[2].comments), (4, 1));
    let method = |at: usize| serde_json::from_str::<Value>(all[at].data.as_ref().unwrap()).unwrap();
    assert_eq!(method(0)["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(method(1)["method"], "notifications/tools/list_changed");
    assert_eq!(method(3)["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
}

/// S-HTTP-15: nothing is said of a request whose client is gone.
#[test]
fn what_the_client_left_is_discarded() {
    let endpoint = endpoint(Events::WhenNeeded);
    let request = tool();
    let mut out = Vec::new();
    let (mut exchange, event) = start(&endpoint, &request, &mut out);
    let Some(Event::Request(incoming)) = event else { panic!("no request") };
    let Ok(Call::CallTool(pending, _)) = incoming.typed() else { panic!("no call") };
    assert_eq!(exchange.peer_closed(), Some(pending.key()));
    assert!(!exchange.progress(&pending, Progress::new(1.0), &mut out).is_written());
    assert!(!exchange.respond(pending, &CallToolResult::text("x"), &mut out).is_written());
    assert!(out.is_empty() && exchange.peer_closed().is_none());
}
