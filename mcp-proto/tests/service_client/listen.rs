//! Subscriptions. [spec: basic/patterns/subscriptions]

use std::sync::{Arc, Mutex};

use mcp_proto::client::{CallError, Change};
use mcp_proto::model::{ProtocolVersion as V, SubscriptionFilter};
use mcp_proto::service::client::{Client, Heard, Subscription};
use mcp_proto::service::{NoArguments, Server};
use serde_json::{Value, json};

use crate::basics::{client, speaking};
use crate::rig::{Rig, block_on, error, now, poll};

fn filter() -> SubscriptionFilter {
    SubscriptionFilter::new().tools_list_changed().resource("a:b")
}

fn capabilities() -> Value {
    json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}})
}

fn acknowledge(rig: &mut Rig, request: &Value) {
    let granted = &request["params"]["notifications"];
    tagged(rig, request, "notifications/subscriptions/acknowledged", json!({"notifications": granted}));
}

fn tagged(rig: &mut Rig, request: &Value, method: &str, mut params: Value) {
    params["_meta"]["io.modelcontextprotocol/subscriptionId"] = request["id"].clone();
    rig.notify(method, params);
}

fn open(client: &Client, rig: &mut Rig) -> (Subscription, Value) {
    let mut listen = client.listen(filter());
    assert!(poll(&mut listen).is_pending());
    let request = rig.one();
    assert_eq!(request["method"], "subscriptions/listen");
    assert!(poll(&mut listen).is_pending());
    acknowledge(rig, &request);
    (now(listen).unwrap(), request)
}

fn heard(subscription: &mut Subscription) -> Vec<Heard> {
    let mut heard = Vec::new();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    while let std::task::Poll::Ready(Some(next)) = subscription.poll_next(&mut cx) {
        heard.push(next.unwrap());
    }
    heard
}

#[test]
fn changes_are_heard_once_however_often_they_are_told() {
    let (client, mut rig) = Rig::modern(client(), capabilities());
    let (mut subscription, request) = open(&client, &mut rig);
    assert_eq!(subscription.granted(), filter());
    for _ in 0..1000 {
        tagged(&mut rig, &request, "notifications/tools/list_changed", json!({}));
        tagged(&mut rig, &request, "notifications/resources/updated", json!({"uri": "a:b"}));
    }
    let all = [Heard::Changed(Change::Tools), Heard::Changed(Change::Resource("a:b".into()))];
    assert_eq!(heard(&mut subscription), all);
    // More different things than anyone waits for are one gap.
    for at in 0..1000 {
        tagged(&mut rig, &request, "notifications/resources/updated", json!({"uri": format!("a:b/{at}")}));
    }
    let much = heard(&mut subscription);
    assert!(much.len() <= 256 && much[0] == Heard::Gap, "{}", much.len());
    // The server ends it.
    rig.answer(&request, json!({}));
    assert!(now(subscription.next()).is_none());
    assert!(now(subscription.next()).is_none());
}

#[test]
fn dropping_a_subscription_ends_it() {
    let (client, mut rig) = Rig::modern(client(), capabilities());
    let (subscription, request) = open(&client, &mut rig);
    drop(subscription);
    let cancelled = rig.one();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    // Before it was acknowledged, too.
    let mut listen = client.listen(filter());
    assert!(poll(&mut listen).is_pending());
    rig.one();
    drop(listen);
    assert_eq!(rig.one()["method"], "notifications/cancelled");
}

/// A restart of the server is a gap, and no end.
#[test]
fn a_subscription_survives_a_restart() {
    let (client, mut rig) = Rig::modern(client(), capabilities());
    let (mut subscription, _) = open(&client, &mut rig);
    rig.link.end_of_input(rig.time());
    rig.link.restart(rig.time());
    let again = rig.one();
    assert_eq!(again["method"], "subscriptions/listen");
    assert_eq!(heard(&mut subscription), []);
    acknowledge(&mut rig, &again);
    tagged(&mut rig, &again, "notifications/tools/list_changed", json!({}));
    assert_eq!(heard(&mut subscription), [Heard::Gap, Heard::Changed(Change::Tools)]);
    // Without a restart it ends.
    rig.link.end_of_input(rig.time());
    drop(rig);
    assert!(matches!(now(subscription.next()), Some(Err(CallError::Closed))));
    assert!(now(subscription.next()).is_none());
}

#[test]
fn a_subscription_that_is_refused_is_an_error() {
    let (client, mut rig) = Rig::modern(client(), capabilities());
    let mut listen = client.listen(filter());
    assert!(poll(&mut listen).is_pending());
    let request = rig.one();
    rig.fail(&request, -32602, "no");
    assert!(matches!(error(poll(&mut listen)), CallError::Rpc(_)));
    let mut listen = client.listen(filter()).timeout(std::time::Duration::from_secs(1));
    assert!(poll(&mut listen).is_pending());
    rig.one();
    rig.pass(std::time::Duration::from_secs(1));
    assert!(matches!(error(poll(&mut listen)), CallError::TimedOut));
}

/// The same subscription in every revision, against the project's own server.
#[test]
fn a_subscription_means_the_same_in_every_revision() {
    let service = Server::new("changing", "1")
        .resource("note://{name}", |_, (name,): (String,)| async move { Ok(name) })
        .tool("edit", |ctx, _: NoArguments| async move {
            ctx.changes().resource("note://a");
            ctx.changes().tools();
            Ok("edited")
        })
        .subscriptions(true)
        .build()
        .unwrap();
    for version in V::ALL {
        let changes = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&changes);
        let builder = speaking(version).on_change(move |change| told.lock().unwrap().push(change));
        let heard = block_on(builder.in_memory(&service, async |client| {
            let filter = SubscriptionFilter::new().resource("note://a").tools_list_changed();
            let mut subscription = client.listen(filter.clone()).await?;
            assert_eq!(subscription.granted(), filter, "{version}");
            // On a legacy server the subscription is one's word: a round trip later it is the server's.
            client.ping().await?;
            client.call_tool("edit", ()).await?;
            let mut heard = Vec::new();
            while heard.len() < 2 {
                match subscription.next().await.unwrap()? {
                    Heard::Changed(Change::Resource(uri)) => heard.push(uri.to_string()),
                    Heard::Changed(Change::Tools) => heard.push("tools".to_owned()),
                    other => panic!("{other:?}"),
                }
            }
            heard.sort();
            Ok::<_, CallError>(heard)
        }));
        assert_eq!(heard.unwrap().unwrap(), ["note://a", "tools"], "{version}");
        assert_eq!(*changes.lock().unwrap(), [Change::Tools], "{version}");
    }
}
