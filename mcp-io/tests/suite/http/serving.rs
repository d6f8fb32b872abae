//! What is served, and how it ends.

use std::future::{Future, poll_fn};
use std::net::TcpStream;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_io::{Serve, ServeError};
use mcp_proto::http::{Cors, HttpSse, Origins};
use serde_json::json;

use super::peer::{Head, Legacy, Peer, call, legacy_call, modern};
use super::served;
use crate::rt;
use crate::suite::client::text;
use crate::suite::service::{PATIENT, Stage, server};

#[test]
fn a_call_is_answered_with_json_and_the_connection_stays() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            for id in 1..=3 {
                peer.post(&call(id, "echo", json!({ "text": "snow ☃ man" })));
                let (head, answer) = peer.answer();
                assert_eq!((head.status, &answer["id"]), (200, &json!(id)));
                assert_eq!(text(&answer), "snow ☃ man");
            }
        })
        .await;
    });
}

/// Many at a time, on connections of their own and behind one another.
#[test]
fn calls_of_many_connections_run_side_by_side() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        rt::unblock(move || {
            let mut peers: Vec<_> = (0..20).map(|_| Peer::connect(address)).collect();
            for peer in &mut peers {
                peer.post(&call(1, "meet", json!({ "size": 20 })));
            }
            for peer in &mut peers {
                assert_eq!(text(&peer.answer().1), "met");
            }
        })
        .await;
    });
}

#[test]
fn a_legacy_session_lives_and_ends() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            let session = Legacy::open(&mut peer);
            session.post(&mut peer, &legacy_call(1, "echo", json!({ "text": "one" })));
            assert_eq!(text(&peer.answer().1), "one");

            let mut listener = Peer::connect(address);
            session.request(&mut listener, "GET", &[]);
            let head = listener.head().unwrap();
            assert!(head.status == 200 && head.is_events());
            session.post(&mut peer, &legacy_call(2, "change", json!({})));
            assert_eq!(text(&peer.answer().1), "changed");
            let event = listener.events().next().unwrap();
            assert_eq!(event.json()["method"], "notifications/tools/list_changed");

            session.request(&mut peer, "DELETE", &[]);
            assert_eq!(peer.status(), 204);
            assert_eq!(listener.events().count(), 0);
            session.post(&mut peer, &legacy_call(3, "echo", json!({ "text": "three" })));
            assert_eq!(peer.status(), 404);
        })
        .await;
    });
}

#[test]
fn clients_of_the_first_transport_are_served_where_it_is_said() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http.sse(HttpSse::default()));
        rt::unblock(move || {
            let mut stream = Peer::connect(address);
            stream.request("GET", "/sse", &[("accept", "text/event-stream")], "");
            assert!(stream.head().unwrap().is_events());
            let mut events = stream.events();
            let post_to = events.next().unwrap().data;
            let mut peer = Peer::connect(address);
            let initialize = json!({
                "jsonrpc": "2.0", "id": 1, "method": "initialize",
                "params": {
                    "protocolVersion": "2024-11-05", "capabilities": {},
                    "clientInfo": { "name": "suite", "version": "1" },
                },
            });
            peer.request("POST", &post_to, &[("content-type", "application/json")], &initialize.to_string());
            assert_eq!(peer.status(), 202);
            assert_eq!(events.next().unwrap().json()["result"]["protocolVersion"], "2024-11-05");
        })
        .await;
    });
}

#[test]
fn a_probe_is_told_that_the_server_is_ready() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http.readiness(Some("/ready")).path("/here"));
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            // A probe knows the address only.
            peer.request("GET", "/ready", &[("host", "10.1.2.3:80")], "");
            assert_eq!(peer.status(), 200);
            peer.request("DELETE", "/ready", &[], "");
            assert_eq!(peer.status(), 405);
            for (path, status) in [("/mcp", 404), ("/healthz", 404), ("/here/", 404), ("/here", 415)] {
                peer.request("POST", path, &[], "{}");
                assert_eq!(peer.status(), status, "{path}");
            }
        })
        .await;
    });
}

/// A probe hears of the end before it begins; whoever does not look is served until then.
#[test]
fn a_probe_is_told_of_the_end_before_it_begins() {
    rt::run(async {
        let stage = Stage::default();
        let (address, serving) = served(&stage, |http| http.lame_duck(PATIENT));
        let probe = move |peer: &mut Peer| {
            peer.request("GET", "/healthz", &[], "");
            peer.status()
        };
        let ready = rt::unblock(move || probe(&mut Peer::connect(address))).await;
        assert_eq!(ready, 200);
        stage.open("stop");
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            while probe(&mut peer) == 200 {}
            peer.post(&call(1, "echo", json!({ "text": "still here" })));
            assert_eq!(text(&peer.answer().1), "still here");
            assert_eq!(probe(&mut Peer::connect(address)), 503, "new connections are served, too");
        })
        .await;
        drop(serving);

        // Without that time the end begins at once.
        let stage = Stage::default();
        let (_, serving) = served(&stage, |http| http);
        stage.open("stop");
        serving.await.unwrap();
    });
}

/// The answers of all kinds say which page may read them.
#[test]
fn pages_may_read_answers_where_it_is_said() {
    rt::run(async {
        let stage = Stage::default();
        let origins = Origins::loopback().allow_origin("https://app.example").unwrap();
        let (address, _serving) = served(&stage, |http| http.cors(Cors::default()).origins(origins));
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            let page = ("origin", "https://app.example");
            let asks = [page, ("access-control-request-method", "POST")];
            peer.request("OPTIONS", "/mcp", &asks, "");
            let (head, _) = peer.answer();
            assert_eq!(head.status, 204);
            assert!(head.header("access-control-allow-headers").contains("Mcp-Session-Id"));
            let shared = |head: &Head| {
                assert_eq!(head.header("access-control-allow-origin"), "https://app.example");
                assert_eq!(head.header("vary"), "Origin");
            };
            shared(&head);
            peer.post_with(&[page], &call(1, "echo", json!({ "text": "read" })));
            let (head, answer) = peer.answer();
            assert_eq!((head.status, &*text(&answer)), (200, "read"));
            shared(&head);
            peer.request("POST", "/mcp", &[page], "{}");
            let (head, _) = peer.answer();
            assert_eq!(head.status, 415);
            shared(&head);
            // To others nothing is said of pages.
            peer.post(&call(2, "echo", json!({ "text": "read" })));
            let (head, _) = peer.answer();
            assert_eq!((head.status, head.header("access-control-allow-origin")), (200, ""));
            let evil = [("origin", "https://evil.example"), ("access-control-request-method", "POST")];
            peer.request("OPTIONS", "/mcp", &evil, "");
            let (head, _) = peer.answer();
            assert_eq!((head.status, head.header("access-control-allow-origin")), (403, ""));
            peer.post_with(&[page], &modern(3, "subscriptions/listen", json!({ "notifications": {} })));
            let head = peer.head().unwrap();
            assert!(head.is_events());
            shared(&head);
        })
        .await;
    });
}

/// S-SUBS-04: a subscription ends with its result, a call is answered, and no one is let in any more.
#[test]
fn shutdown_finishes_what_was_asked_for() {
    rt::run(async {
        let stage = Stage::default();
        let (address, serving) = served(&stage, |http| http.drain(Duration::from_secs(50)));
        let peers = rt::unblock(move || {
            let mut idle = Peer::connect(address);
            idle.post(&call(1, "echo", json!({ "text": "idle" })));
            idle.answer();
            let silent = Peer::connect(address);

            let mut listen = Peer::connect(address);
            let filter = json!({ "notifications": { "toolsListChanged": true } });
            listen.post(&modern(7, "subscriptions/listen", filter));
            assert!(listen.head().unwrap().is_events());
            let first = listen.events().next().unwrap().json();
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged");

            let mut session = Peer::connect(address);
            let legacy = Legacy::open(&mut session);
            legacy.request(&mut session, "GET", &[]);
            assert!(session.head().unwrap().is_events());

            let mut working = Peer::connect(address);
            working.post(&call(2, "gate", json!({ "text": "work" })));
            (idle, silent, listen, session, working)
        });
        let (mut idle, mut silent, mut listen, mut session, mut working) = peers.await;
        stage.crowd("work", 1).await;
        stage.open("stop");
        rt::unblock(move || {
            let last = listen.events().last().unwrap().json();
            assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(7), &json!("complete")));
            assert_eq!(session.events().count(), 0);
            for peer in [&mut idle, &mut silent, &mut listen, &mut session] {
                assert!(peer.is_over());
            }
        })
        .await;
        assert!(TcpStream::connect(address).is_err());
        stage.open("work");
        let answer = rt::unblock(move || {
            let answer = working.answer().1;
            assert!(working.is_over());
            answer
        });
        assert_eq!(text(&answer.await), "work");
        serving.await.unwrap();
    });
}

/// Z01: within a bound, for both eras.
#[test]
fn calls_that_never_end_are_cancelled_after_the_drain_time() {
    rt::run(async {
        let stage = Stage::default();
        let (address, serving) = served(&stage, |http| http.drain(Duration::from_millis(50)));
        let (mut first, mut second) = rt::unblock(move || {
            let (mut first, mut second) = (Peer::connect(address), Peer::connect(address));
            first.post(&call(1, "stuck", json!({})));
            Legacy::open(&mut second).post(&mut second, &legacy_call(1, "stuck", json!({})));
            (first, second)
        })
        .await;
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 2).await;
        stage.open("stop");
        serving.await.unwrap();
        rt::unblock(move || assert!(first.is_over() && second.is_over())).await;
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
    });
}

#[test]
fn dropping_the_future_ends_everything() {
    rt::run(async {
        let stage = Stage::default();
        let listener = rt::http().bind().unwrap();
        let (address, stop) = (listener.local_addr(), stage.clone());
        let serving = rt::spawn(async move {
            let mut stopped = pin!(stop.opened("abort"));
            let mut serving = pin!(server(&stop).serve(listener));
            poll_fn(|cx| {
                assert!(serving.as_mut().poll(cx).is_pending());
                stopped.as_mut().poll(cx)
            })
            .await;
        });
        let (mut first, mut second) = rt::unblock(move || {
            let (mut first, mut second) = (Peer::connect(address), Peer::connect(address));
            first.post(&call(1, "stuck", json!({})));
            Legacy::open(&mut second).post(&mut second, &legacy_call(1, "stuck", json!({})));
            (first, second)
        })
        .await;
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 2).await;
        stage.open("abort");
        serving.await;
        rt::unblock(move || assert!(first.is_over() && second.is_over())).await;
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
    });
}

/// S-HTTP-02: what other machines can reach has a name, and says which.
#[test]
fn an_address_that_others_can_reach_needs_its_names() {
    rt::run(async {
        let everywhere = || rt::Http::new(rt::RUNTIME, "0.0.0.0:0");
        let served = server(&Stage::default()).serve(everywhere()).await;
        assert!(matches!(served, Err(ServeError::Exposed(address)) if address.ip().is_unspecified()));
        let named = Origins::closed().allow_host("mcp.example").unwrap();
        assert!(everywhere().origins(named).bind().is_ok());

        let taken = rt::http().bind().unwrap();
        let again = rt::Http::new(rt::RUNTIME, taken.local_addr()).bind();
        assert!(matches!(again, Err(ServeError::Io(_))));
        assert_eq!(taken.url(), format!("http://{}/mcp", taken.local_addr()));
    });
}
