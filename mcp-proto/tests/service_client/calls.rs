//! Calls: options, cancellation, progress, caches, and many at a time.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_proto::client::request::{self, CallTool};
use mcp_proto::client::{CallError, CallOptions};
use mcp_proto::model::{LoggingLevel, Meta};
use mcp_proto::service::client::{Call, Client, Subscription};
use mcp_proto::service::{NoArguments, Progress, Server};
use serde_json::{Value, json};

use crate::basics::{client, speaking};
use crate::rig::{Flag, Rig, block_on, error, now, poll, text};

fn tools() -> Value {
    json!({"tools": {}})
}

#[test]
fn handles_and_calls_go_anywhere() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    fn sent<T: Send + Unpin>() {}
    shared::<Client>();
    sent::<Call<'static, CallTool>>();
    sent::<Subscription>();
    sent::<mcp_proto::service::client::Link>();
}

#[test]
fn nothing_is_sent_before_a_call_is_awaited() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let call = client.call_tool("x", ());
    rig.nothing();
    drop(call);
    rig.nothing();
    // Awaited and dropped before the driver had a turn.
    let mut call = client.call_tool("x", ());
    assert!(poll(&mut call).is_pending());
    drop(call);
    rig.nothing();
}

#[test]
fn a_call_wakes_the_driver_and_the_answer_wakes_the_call() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let (driver, caller) = (Arc::new(Flag::default()), Arc::new(Flag::default()));
    let waker = Waker::from(Arc::clone(&driver));
    assert!(rig.link.poll_ready(&mut Context::from_waker(&waker)).is_pending());
    let mut call = client.call_tool("x", ());
    let waker = Waker::from(Arc::clone(&caller));
    let mut cx = Context::from_waker(&waker);
    assert!(std::pin::pin!(&mut call).as_mut().poll(&mut cx).is_pending());
    assert!(driver.take());
    let request = rig.one();
    assert!(!caller.take());
    rig.answer(&request, text("done"));
    assert!(caller.take());
    assert_eq!(now(call).unwrap().texts(), "done");
}

/// C-CANCEL-01, C-CANCEL-04, C-STDIO-05: in either era; a late answer is nobody's.
#[test]
fn dropping_a_call_cancels_it() {
    for legacy in [false, true] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let violations = Arc::clone(&seen);
        let builder = client().on_violation(move |violation| violations.lock().unwrap().push(violation.kind));
        let (client, mut rig) =
            if legacy { Rig::legacy(builder, tools()) } else { Rig::modern(builder, tools()) };
        let (mut one, mut two) = (client.call_tool("one", ()), client.call_tool("two", ()));
        assert!(poll(&mut one).is_pending() && poll(&mut two).is_pending());
        let sent = rig.lines();
        assert_eq!(sent.len(), 2);
        drop(one);
        let cancelled = rig.one();
        assert_eq!(cancelled["method"], "notifications/cancelled");
        assert_eq!(cancelled["params"]["requestId"], sent[0]["id"]);
        rig.answer(&sent[0], text("late"));
        rig.answer(&sent[1], text("two"));
        assert_eq!(now(two).unwrap().texts(), "two");
        assert_eq!(*seen.lock().unwrap(), [mcp_proto::client::ViolationKind::Late]);
        rig.nothing();
    }
}

#[test]
fn a_call_that_is_over_is_not_cancelled() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let mut call = client.call_tool("x", ());
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    rig.answer(&request, text("done"));
    // Answered, but never looked at.
    drop(call);
    rig.nothing();
}

#[test]
fn time_runs_from_when_a_call_is_made() {
    let (client, mut rig) = Rig::modern(client(), tools());
    // The link has been idle for long.
    rig.now += Duration::from_secs(3600);
    let mut call = client.call_tool("x", ()).timeout(Duration::from_secs(5));
    assert!(poll(&mut call).is_pending());
    rig.one();
    assert!(poll(&mut call).is_pending());
    rig.pass(Duration::from_secs(4));
    assert!(poll(&mut call).is_pending());
    rig.pass(Duration::from_secs(1));
    assert!(matches!(error(poll(&mut call)), CallError::TimedOut));
    assert_eq!(rig.one()["method"], "notifications/cancelled");
}

#[test]
fn options_reach_the_wire() {
    let (client, mut rig) = Rig::modern(client().timeout(Duration::from_secs(3)), tools());
    let meta = Meta::default().with("com.example/x", mcp_proto::model::Json::string("y"));
    let mut call = client.call_tool("x", ()).meta(meta).log_level(LoggingLevel::Debug).on_progress(|_| {});
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    let meta = &request["params"]["_meta"];
    assert_eq!(meta["com.example/x"], "y");
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "debug");
    assert_eq!(meta["progressToken"], request["id"]);
    assert_eq!(request["params"]["arguments"], Value::Null);
    // The default of the client.
    rig.pass(Duration::from_secs(3));
    assert!(matches!(error(poll(&mut call)), CallError::TimedOut));
}

/// C-PROG-02: in order, before the result, heard where the call is awaited.
#[test]
fn progress_comes_in_order_and_before_the_result() {
    let service = Server::new("demo", "1")
        .tool("count", |ctx, _: NoArguments| async move {
            for step in 1..=5 {
                ctx.progress(Progress::new(f64::from(step))).await;
            }
            Ok("counted")
        })
        .build()
        .unwrap();
    for version in mcp_proto::model::ProtocolVersion::ALL {
        let mut heard = Vec::new();
        let result = block_on(speaking(version).in_memory(&service, async |client| {
            client.call_tool("count", ()).on_progress(|progress| heard.push(progress.progress)).await
        }))
        .unwrap()
        .unwrap();
        assert_eq!(result.texts(), "counted");
        assert_eq!(heard, [1.0, 2.0, 3.0, 4.0, 5.0], "{version}");
    }
}

#[test]
fn progress_that_nobody_hears_is_bounded_and_the_newest_stays() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let mut heard = Vec::new();
    let mut call = client.call_tool("x", ()).on_progress(|progress| heard.push(progress.progress));
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    for step in 1..=1000 {
        rig.notify("notifications/progress", json!({"progressToken": request["id"], "progress": step}));
    }
    rig.answer(&request, text("done"));
    now(call).unwrap();
    assert_eq!(heard.len(), 256);
    assert_eq!((heard[0], heard[255]), (745.0, 1000.0));
}

#[test]
fn progress_can_hold_off_the_timeout() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let mut call = client.call_tool("x", ()).timeout(Duration::from_secs(2)).reset_on_progress();
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    for step in 1..=5 {
        rig.pass(Duration::from_secs(1));
        rig.notify("notifications/progress", json!({"progressToken": request["id"], "progress": step}));
    }
    assert!(poll(&mut call).is_pending());
    rig.pass(Duration::from_secs(2));
    assert!(matches!(error(poll(&mut call)), CallError::TimedOut));
}

#[test]
fn levels_of_logs_mean_the_same_in_every_revision() {
    let service = || {
        Server::new("demo", "1")
            .tool("chat", |ctx, _: NoArguments| async move {
                ctx.log(LoggingLevel::Debug, "detail").await;
                ctx.log(LoggingLevel::Error, "trouble").await;
                Ok("said")
            })
            .default_log_level(LoggingLevel::Emergency)
            .build()
            .unwrap()
    };
    for version in mcp_proto::model::ProtocolVersion::ALL {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let logs = Arc::clone(&seen);
        block_on(
            speaking(version)
                .on_log(move |log| logs.lock().unwrap().push(log.data.get().to_owned()))
                .in_memory(&service(), async |client| {
                    client.call_tool("chat", ()).await?;
                    client.set_level(LoggingLevel::Warning).await?;
                    client.call_tool("chat", ()).await
                }),
        )
        .unwrap()
        .unwrap();
        assert_eq!(*seen.lock().unwrap(), ["\"trouble\""], "{version}");
    }
}

/// C-CACHE-04: fresh answers stand for new ones, unless the call says otherwise. [spec: server/utilities/caching]
#[test]
fn fresh_answers_are_used_again() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let page = json!({"tools": [], "ttlMs": 60000, "cacheScope": "public", "resultType": "complete"});
    let mut list = client.tools();
    assert!(poll(&mut list).is_pending());
    let request = rig.one();
    rig.answer(&request, page.clone());
    assert!(now(list).unwrap().is_empty());
    let mut again = client.tools();
    assert!(poll(&mut again).is_pending());
    rig.nothing();
    now(again).unwrap();
    let mut anew = client.tools().no_cache();
    assert!(poll(&mut anew).is_pending());
    let request = rig.one();
    assert_eq!(request["method"], "tools/list");
    rig.answer(&request, page);
    now(anew).unwrap();
}

#[test]
fn an_answer_that_does_not_fit_is_the_servers_fault_and_says_where() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let mut call = client.call_tool("x", ());
    assert!(poll(&mut call).is_pending());
    let request = rig.one();
    rig.answer(&request, json!({"content": [{"type": "text", "text": 5}]}));
    let error = error(poll(&mut call)).to_string();
    assert!(error.contains("/result/content/0/text"), "{error}");
}

#[test]
fn a_request_whose_params_panic_costs_nobody_else() {
    struct Mine;
    impl serde::Serialize for Mine {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("mine")
        }
    }
    impl request::Request for Mine {
        type Result = mcp_proto::model::Json;
        const METHOD: &'static str = "com.example/mine";
    }
    let (client, mut rig) = Rig::modern(client(), tools());
    let (mut mine, mut other) = (client.call(Mine), client.call_tool("x", ()));
    assert!(poll(&mut mine).is_pending() && poll(&mut other).is_pending());
    let request = rig.one();
    assert!(matches!(error(poll(&mut mine)), CallError::Invalid(_)));
    rig.answer(&request, text("other"));
    assert_eq!(now(other).unwrap().texts(), "other");
}

/// Calls wait while the server does not read, but answers are still read: or both sides would wait.
#[test]
fn a_server_that_does_not_read_slows_calls_down_but_not_answers() {
    let mut limits = mcp_proto::limits::Limits::default();
    limits.output_high_water = 10_000;
    let (client, mut rig) = Rig::modern(client().limits(limits), tools());
    let big = json!({"data": "x".repeat(4000)});
    let mut calls: Vec<_> = (0..10).map(|_| client.call_tool("x", &big)).collect();
    for call in &mut calls {
        assert!(poll(call).is_pending());
    }
    rig.settle();
    assert!((10_000..20_000).contains(&rig.link.output().len()), "{}", rig.link.output().len());
    assert!(rig.link.wants_input());
    // One that is given up before it was made is never made.
    drop(calls.remove(5));
    let mut made = Vec::new();
    while made.len() < 9 {
        let more = rig.lines();
        assert!(!more.is_empty());
        made.extend(more);
    }
    rig.nothing();
    for request in &made {
        rig.answer(request, text("done"));
    }
    for call in calls {
        now(call).unwrap();
    }
}

/// A server that asks and does not read its answers is not read either.
#[test]
fn a_flood_of_requests_stops_the_reading() {
    let mut limits = mcp_proto::limits::Limits::default();
    limits.output_high_water = 1000;
    let (_client, mut rig) = Rig::legacy(client().limits(limits), tools());
    for id in 0..100 {
        rig.ask(json!(id), "ping", json!({}));
    }
    assert!(!rig.link.wants_input());
    let waiting = rig.link.output().len();
    assert!(waiting < 1100, "{waiting}");
    assert_eq!(rig.lines().len() + rig.lines().len() + rig.lines().len() + rig.lines().len(), 100);
    assert!(rig.link.wants_input());
}

#[test]
fn options_of_the_machine_can_be_given_whole() {
    let (client, mut rig) = Rig::modern(client(), tools());
    let options = CallOptions::new().timeout(None).max_time(Duration::from_secs(9));
    let mut call = client.call(request::CallTool::new("x")).options(options);
    assert!(poll(&mut call).is_pending());
    rig.one();
    rig.pass(Duration::from_secs(8));
    assert!(poll(&mut call).is_pending());
    rig.pass(Duration::from_secs(1));
    assert!(matches!(error(poll(&mut call)), CallError::TimedOut));
}

/// 2025-03-26: answers, news and questions may come in one array.
#[test]
fn a_batch_is_taken_apart() {
    let (mut connecting, link) = speaking(mcp_proto::model::ProtocolVersion::V2025_03_26).link();
    let mut rig = Rig::of(link);
    rig.link.start(rig.time());
    let hello = rig.one();
    rig.answer(
        &hello,
        json!({
            "protocolVersion": "2025-03-26", "capabilities": tools(),
            "serverInfo": {"name": "old", "version": "1"},
        }),
    );
    assert_eq!(rig.one()["method"], "notifications/initialized");
    let client = now(&mut connecting).unwrap();
    let mut heard = Vec::new();
    let mut one = client.call_tool("one", ()).on_progress(|progress| heard.push(progress.progress));
    let mut two = client.call_tool("two", ());
    assert!(poll(&mut one).is_pending() && poll(&mut two).is_pending());
    let sent = rig.lines();
    let (first, second) = (&sent[0]["id"], &sent[1]["id"]);
    let progress = json!({"progressToken": first, "progress": 1});
    rig.send(&json!([
        {"jsonrpc": "2.0", "id": second, "result": text("two")},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress},
        {"jsonrpc": "2.0", "id": 9, "method": "ping"},
        {"jsonrpc": "2.0", "id": first, "result": text("one")},
    ]));
    assert_eq!((now(one).unwrap().texts(), now(two).unwrap().texts()), ("one".into(), "two".into()));
    assert_eq!(heard, [1.0]);
    assert_eq!(rig.one()["id"], 9);
}
