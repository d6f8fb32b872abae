//! Any interleaving of POSTs, ends of handlers, disconnects and resumptions of several sessions: each request
//! is answered once, on its own stream, after its own messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use mcp_proto::service::{Ctx, Progress, Server, Service};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Got, Net, Session, call, events};
use crate::kit::Gate;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: usize,
}

type Gates = Arc<Mutex<BTreeMap<usize, [Gate; 2]>>>;

fn service(gates: &Gates) -> Service {
    let gates = Arc::clone(gates);
    Server::new("model", "1")
        .tool("work", move |ctx: Ctx, Number { n }: Number| {
            let [first, second] = gates.lock().unwrap().entry(n).or_default().clone();
            async move {
                first.pass().await;
                ctx.progress(Progress::new(n as f64 + 1.0)).await;
                second.pass().await;
                Ok(format!("{n}"))
            }
        })
        .build()
        .unwrap()
}

#[derive(Debug, Clone)]
enum Op {
    Post { session: usize },
    Step { call: usize },
    Disconnect { call: usize },
    Resume { call: usize },
    Pause { call: usize },
    Get { session: usize },
    Change,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..3usize).prop_map(|session| Op::Post { session }),
        8 => (0..12usize).prop_map(|call| Op::Step { call }),
        2 => (0..12usize).prop_map(|call| Op::Disconnect { call }),
        3 => (0..12usize).prop_map(|call| Op::Resume { call }),
        1 => (0..12usize).prop_map(|call| Op::Pause { call }),
        1 => (0..3usize).prop_map(|session| Op::Get { session }),
        1 => Just(Op::Change),
    ]
}

struct Call {
    session: usize,
    /// Its responses, the newest last.
    responses: Vec<Got>,
    steps: usize,
}

/// The events of a response so far.
fn seen(net: &mut Net, got: Got) -> Vec<(Option<String>, Option<Value>)> {
    if !net.has_head(got) {
        return Vec::new();
    }
    let body = net.at(got).body.clone();
    if !net.is_sse(got) {
        return if body.is_empty() { Vec::new() } else { vec![(None, serde_json::from_slice(&body).ok())] };
    }
    let value = |data: String| serde_json::from_str(&data).ok();
    events(&body).into_iter().map(|event| (event.id, event.data.and_then(value))).collect()
}

fn run(version: &str, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let gates = Gates::default();
    let mut net = Net::new(&service(&gates));
    let sessions: Vec<Session> = (0..3).map(|_| net.session(version, json!({}))).collect();
    let mut gets: Vec<(usize, Got)> = Vec::new();
    let mut calls: Vec<Call> = Vec::new();
    for op in ops {
        match op {
            Op::Post { session } => {
                let n = calls.len();
                // Equal ids in different sessions.
                let id = calls.iter().filter(|call| call.session == session).count();
                let got = net.send(&sessions[session].post(&call(id, "work", json!({"n": n}))));
                calls.push(Call { session, responses: vec![got], steps: 0 });
            }
            Op::Step { call } if call < calls.len() => {
                let gate = gates.lock().unwrap()[&call].clone();
                if let Some(gate) = gate.get(calls[call].steps) {
                    gate.open();
                    calls[call].steps += 1;
                }
                net.settle();
            }
            Op::Disconnect { call } if call < calls.len() => {
                let newest = *calls[call].responses.last().unwrap();
                net.disconnect(newest);
            }
            Op::Pause { call } if call < calls.len() => {
                let newest = *calls[call].responses.last().unwrap();
                let open = net.at(newest);
                if open.paused {
                    open.resume();
                } else {
                    open.paused = true;
                }
                net.settle();
            }
            Op::Resume { call } if call < calls.len() => {
                let newest = *calls[call].responses.last().unwrap();
                let last = seen(&mut net, newest).into_iter().rev().find_map(|(id, _)| id);
                if let Some(id) = last {
                    let got = net.send(&sessions[calls[call].session].resume(&id));
                    prop_assert_eq!(net.status(got), 200);
                    calls[call].responses.push(got);
                }
            }
            Op::Get { session } => {
                let got = net.send(&sessions[session].get());
                let open = gets.iter().any(|(of, _)| *of == session);
                prop_assert_eq!(net.status(got), if open { 409 } else { 200 });
                if !open {
                    gets.push((session, got));
                }
            }
            Op::Change => net.http.service().changes().tools(),
            _ => {}
        }
    }
    // Everything ends, and everyone reads.
    for gate in gates.lock().unwrap().values() {
        gate.iter().for_each(Gate::open);
    }
    for call in &calls {
        for got in &call.responses {
            net.at(*got).resume();
        }
    }
    net.settle();
    prop_assert_eq!(net.jobs(), 0);
    let mut ids = BTreeSet::new();
    let mut ordinal = [0; 3];
    for (n, call) in calls.iter().enumerate() {
        let id = ordinal[call.session];
        ordinal[call.session] += 1;
        let mut all = Vec::new();
        for got in &call.responses {
            prop_assert!(net.is_done(*got), "a response of call {} does not end", n);
            all.extend(seen(&mut net, *got));
        }
        // Whoever was cut off and did not come back misses the end; nobody hears anything twice, for each
        // resumption was from the last event of the newest response.
        let messages: Vec<Value> = all.iter().filter_map(|(_, message)| message.clone()).collect();
        let expected = [json!(n + 1), json!(format!("{n}"))];
        let found: Vec<Value> = messages
            .iter()
            .map(|m| {
                if m["method"] == "notifications/progress" {
                    m["params"]["progress"].clone()
                } else {
                    assert_eq!(m["id"], id);
                    m["result"]["content"][0]["text"].clone()
                }
            })
            .collect();
        let newest = *call.responses.last().unwrap();
        let complete = net.at(newest).exchange.is_none() && found.len() == 2;
        prop_assert!(complete || expected.starts_with(&found), "call {}: {:?}", n, found);
        if complete {
            prop_assert_eq!(&found[..], &expected[..]);
        }
        for (event, _) in all {
            if let Some(event) = event {
                prop_assert!(ids.insert((call.session, event)), "an id twice (LS-HTTP-16)");
            }
        }
    }
    for (session, got) in gets {
        for (event, message) in seen(&mut net, got) {
            if let Some(message) = message {
                prop_assert_eq!(&message["method"], "notifications/tools/list_changed");
            }
            if let Some(event) = event {
                prop_assert!(ids.insert((session, event)));
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_request_is_answered_once_on_its_own_stream(
        version in prop_oneof![Just("2025-06-18"), Just("2025-11-25")],
        ops in proptest::collection::vec(op(), 1..60),
    ) {
        run(version, ops)?;
    }
}
