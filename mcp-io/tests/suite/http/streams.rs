//! Streams of events, and clients that go away.

use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::peer::{Legacy, Peer, call, legacy_call};
use super::served;
use crate::rt;
use crate::suite::client::text;
use crate::suite::service::Stage;

/// What precedes the answer is sent while the handler still works.
#[test]
fn progress_makes_the_answer_a_stream() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        let gate = stage.clone();
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            peer.post(&call(1, "steps", json!({ "text": "go on" })));
            assert!(peer.head().unwrap().is_events());
            let mut events = peer.events();
            let progress = events.next().unwrap().json();
            assert_eq!(progress["params"], json!({ "progressToken": "steps", "progress": 1 }));
            gate.open("go on");
            assert_eq!(text(&events.next().unwrap().json()), "go on");
            assert!(events.next().is_none());
            // The connection stays.
            peer.post(&call(2, "echo", json!({ "text": "two" })));
            assert_eq!(text(&peer.answer().1), "two");
        })
        .await;
    });
}

/// S-HTTP-13: closing the response cancels the request, before its head is known and after.
#[test]
fn a_client_that_goes_away_cancels_its_call() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        let mut peer = rt::unblock(move || {
            let mut peer = Peer::connect(address);
            peer.post(&call(1, "stuck", json!({})));
            peer
        })
        .await;
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 1).await;
        peer.stream.shutdown(Shutdown::Both).unwrap();
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;

        peer = rt::unblock(move || {
            let mut peer = Peer::connect(address);
            peer.post(&call(1, "stuck_steps", json!({})));
            assert!(peer.head().unwrap().is_events());
            assert!(peer.events().next().is_some());
            peer
        })
        .await;
        assert_eq!(stage.stuck.load(Ordering::SeqCst), 1);
        drop(peer);
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
    });
}

/// LS-CANCEL-01: the call goes on, and its answer is fetched later.
#[test]
fn a_legacy_call_outlives_its_connection() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        let gate = stage.clone();
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            let session = Legacy::open(&mut peer);
            session.post(&mut peer, &legacy_call(5, "steps", json!({ "text": "later" })));
            assert!(peer.head().unwrap().is_events());
            let last = peer.events().next().unwrap();
            assert_eq!(last.json()["method"], "notifications/progress");
            drop(peer);
            gate.open("later");
            let mut again = Peer::connect(address);
            session.request(&mut again, "GET", &[("last-event-id", &last.id)]);
            assert!(again.head().unwrap().is_events());
            let answer = again.events().next().unwrap().json();
            assert_eq!((&answer["id"], text(&answer)), (&json!(5), "later".into()));
        })
        .await;
    });
}

/// A handler waits for a client that does not read: what is kept for it is bounded.
#[test]
fn a_slow_reader_slows_the_handler_down() {
    const STEPS: usize = 1000;
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        let mut peer = rt::unblock(move || {
            let mut peer = Peer::connect(address);
            // 32 KiB a step, so 32 MiB in all.
            peer.post(&call(1, "flood", json!({ "size": STEPS })));
            assert!(peer.head().unwrap().is_events());
            peer
        })
        .await;
        let mut before = usize::MAX;
        rt::eventually(|| {
            std::thread::sleep(Duration::from_millis(200));
            let now = stage.steps.load(Ordering::SeqCst);
            std::mem::replace(&mut before, now) == now
        })
        .await;
        assert!((1..STEPS / 2).contains(&before), "{before} steps were made");
        rt::unblock(move || {
            let events: Vec<_> = peer.events().map(|event| event.json()).collect();
            assert_eq!(events.len(), STEPS + 1);
            assert_eq!(text(&events[STEPS]), "flooded");
        })
        .await;
    });
}

/// A stream that is silent shows that it is alive.
#[test]
fn a_silent_stream_is_kept_alive() {
    rt::run(async {
        let stage = Stage::default();
        let often = Some(Duration::from_millis(20));
        let (address, _serving) = served(&stage, |http| http.keep_alive(often));
        let gate = stage.clone();
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            peer.post(&call(1, "gate", json!({ "text": "slow" })));
            assert!(peer.head().unwrap().is_events());
            let comments = [peer.piece().unwrap(), peer.piece().unwrap()].concat();
            assert!(comments.iter().filter(|&&byte| byte == b':').count() >= 2);
            gate.open("slow");
            assert_eq!(text(&peer.events().next().unwrap().json()), "slow");
        })
        .await;
    });
}
