//! Clients of servers at URLs.

use std::io::Write;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_io::Serve;
use mcp_io::client::http::{Agent, Options, Remote, Versions};
use mcp_io::client::{Connect, ConnectError};
use mcp_proto::client::{CallError, Change, Mode, Verdict};
use mcp_proto::http::HttpSse;
use mcp_proto::model::{ProtocolVersion, SubscriptionFilter};
use mcp_proto::service::client::{Client, ClientBuilder, Heard};
use serde_json::json;

use super::agent::{Raw, heard};
use super::served;
use crate::rt;
use crate::suite::connect::echo;
use crate::suite::service::{PATIENT, Stage, server};

fn client() -> ClientBuilder {
    Client::new("suite", "1")
}

fn remote(address: SocketAddr) -> Remote<rt::Runtime> {
    Remote::new(rt::RUNTIME, &format!("http://{address}/mcp"))
}

#[test]
fn a_server_is_called_in_both_eras_and_versions_of_http() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        for versions in [Versions::Auto, Versions::Http2] {
            for mode in [Mode::Auto, Mode::Legacy] {
                let mut options = Options::default();
                options.versions = versions;
                let client = client().mode(mode).connect(remote(address).options(options)).await.unwrap();
                assert_eq!(client.server().version.is_modern(), mode == Mode::Auto);
                let calls = (0..250).map(|n| {
                    let client = client.clone();
                    rt::spawn(async move { assert_eq!(echo(&client, &n.to_string()).await, n.to_string()) })
                });
                for call in calls.collect::<Vec<_>>() {
                    call.await;
                }
                client.close().await;
                assert!(matches!(client.call_tool("echo", ()).await, Err(CallError::Closed)));
            }
        }
    });
}

/// C-COMPAT-01: what a server speaks is asked once for all who connect to its URL.
#[test]
fn what_a_server_speaks_is_asked_once() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        let modern = Some(Verdict::new(ProtocolVersion::V2026_07_28));
        // A client that does not ask learns nothing.
        let known = remote(address);
        client().mode(Mode::Legacy).connect(known.clone()).await.unwrap();
        assert_eq!(known.verdict(), None);
        for asks in [true, false, false] {
            let client = client().connect(known.clone()).await.unwrap();
            // One that was not asked has not said what it can do.
            assert_eq!(client.server().capabilities.is_some(), asks);
            assert_eq!(known.verdict(), modern);
            assert_eq!(echo(&client, "x").await, "x");
        }
        // In another process, from what was stored.
        let stored = serde_json::to_string(&known.verdict()).unwrap();
        let stored: Option<Verdict> = serde_json::from_str(&stored).unwrap();
        let other = remote(address).assume(stored);
        let client = client().connect(other).await.unwrap();
        assert!(client.server().capabilities.is_none());
        assert_eq!(echo(&client, "x").await, "x");
    });
}

/// C-COMPAT-01: a verdict that does not hold any more repairs itself, and one about which nothing is known stays.
#[test]
fn a_wrong_verdict_repairs_itself() {
    use ProtocolVersion as V;
    rt::run(async {
        for (speaks, assumed) in [(V::V2026_07_28, V::V2025_11_25), (V::V2025_11_25, V::V2026_07_28)] {
            let stage = Stage::default();
            let listener = rt::http().drain(PATIENT).bind().unwrap();
            let known = remote(listener.local_addr()).assume(Verdict::new(assumed));
            let stop = stage.clone();
            let only = server(&stage).versions([speaks]);
            let _serving = rt::spawn(only.serve_until(listener, async move { stop.opened("stop").await }));
            for _ in 0..2 {
                let client = client().connect(known.clone()).await.unwrap();
                assert_eq!(echo(&client, "x").await, "x");
                assert_eq!(client.server().version, speaks);
                rt::eventually(|| known.verdict() == Some(Verdict::new(speaks))).await;
            }
        }
        let legacy = Verdict::new(V::V2025_11_25);
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let known = remote(gone).assume(legacy);
        assert!(client().connect(known.clone()).await.is_err());
        assert_eq!(known.verdict(), Some(legacy));
        let page = Raw::new(|_, mut stream| {
            while heard(&mut stream) {
                let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            }
        });
        let known = Remote::new(rt::RUNTIME, &page.at).assume(legacy);
        assert!(matches!(client().connect(known.clone()).await, Err(ConnectError::Failed(_))));
        assert_eq!(known.verdict(), None);
    });
}

#[test]
fn clients_of_one_agent_share_its_connections() {
    rt::run(async {
        let stage = Stage::default();
        // One more would wait in the queue of the socket for ever.
        let (address, _serving) = served(&stage, |http| http.max_connections(4));
        let mut options = Options::default();
        (options.max_connections, options.idle_timeout) = (2, Duration::from_secs(50));
        let agent = Agent::new(rt::RUNTIME, options).unwrap();
        let clients = (0..20).map(|n| {
            let remote = remote(address).agent(agent.clone());
            rt::spawn(async move {
                let client = client().connect(remote).await.unwrap();
                for call in 0..50 {
                    assert_eq!(echo(&client, &format!("{n} {call}")).await, format!("{n} {call}"));
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await;
        }
    });
}

/// H15: a modern server is told by the end of the exchange.
#[test]
fn dropping_a_call_cancels_it() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        for mode in [Mode::Auto, Mode::Legacy] {
            let client = client().mode(mode).connect(remote(address)).await.unwrap();
            let stuck = || stage.stuck.load(Ordering::SeqCst);
            {
                let mut call = pin!(client.call_tool("stuck", ()));
                std::future::poll_fn(|cx| {
                    assert!(call.as_mut().poll(cx).is_pending());
                    match stuck() {
                        1 => std::task::Poll::Ready(()),
                        _ => {
                            cx.waker().wake_by_ref();
                            std::task::Poll::Pending
                        }
                    }
                })
                .await;
            }
            rt::eventually(|| stuck() == 0).await;
            assert_eq!(echo(&client, "on").await, "on");
        }
    });
}

#[test]
fn progress_and_changes_are_heard_as_they_come() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        for mode in [Mode::Auto, Mode::Legacy] {
            let client = client().mode(mode).connect(remote(address)).await.unwrap();
            let gate = format!("{mode:?}");
            let (steps, opens, name) = (Arc::<Mutex<Vec<f64>>>::default(), stage.clone(), gate.clone());
            let seen = Arc::clone(&steps);
            let call = client.call_tool("steps", json!({ "text": gate })).on_progress(move |progress| {
                seen.lock().unwrap().push(progress.progress);
                // The answer comes only after this was heard.
                opens.open(&name);
            });
            call.await.unwrap();
            assert_eq!(*steps.lock().unwrap(), [1.0]);

            let mut changes = client.listen(SubscriptionFilter::new().tools_list_changed()).await.unwrap();
            client.call_tool("change", ()).await.unwrap();
            let heard = loop {
                if let Heard::Changed(change) = changes.next().await.unwrap().unwrap() {
                    break change;
                }
            };
            assert!(matches!(heard, Change::Tools), "{heard:?}");
        }
    });
}

#[test]
fn a_server_of_the_first_transport_is_called() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http.path("/elsewhere").sse(HttpSse::default()));
        let sse = Remote::new(rt::RUNTIME, &format!("http://{address}/sse"));
        let client = client().connect(sse).await.unwrap();
        assert!(!client.server().version.is_modern());
        assert_eq!(echo(&client, "old").await, "old");
        client.close().await;
    });
}

/// Each is an error that says what it is, and none keeps the client.
#[test]
fn servers_that_make_no_sense_are_errors() {
    rt::run(async {
        let sse = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        let answers = [
            String::new(),
            "garbage".into(),
            "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n".into(),
            "HTTP/1.1 403 No\r\ncontent-length: 2\r\n\r\nno".into(),
            "HTTP/1.1 307 There\r\nlocation: http://127.0.0.2/mcp\r\ncontent-length: 0\r\n\r\n".into(),
            "HTTP/1.1 307 Here\r\nlocation: /mcp\r\ncontent-length: 0\r\n\r\n".into(),
            format!("{json}content-length: 5\r\n\r\n{{\"a\""),
            format!("{json}content-length: 2\r\n\r\n[]"),
            format!("{sse}data: x\n\n"),
            format!("{sse}{}", ":\n".repeat(100_000)),
            format!("{sse}data: {}", "x".repeat(20_000_000)),
        ];
        let mut servers: Vec<_> = answers
            .map(|answer| {
                Raw::new(move |_, mut stream| {
                    heard(&mut stream);
                    let _ = stream.write_all(answer.as_bytes());
                })
            })
            .into();
        // Silence, and no end.
        servers.push(Raw::new(|_, mut stream| while heard(&mut stream) {}));
        servers.push(Raw::new(move |_, mut stream| {
            heard(&mut stream);
            let _ = stream.write_all(sse.as_bytes());
            while stream.write_all(b"data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n").is_ok() {}
        }));
        for (number, server) in servers.iter().enumerate() {
            let hasty = Duration::from_millis(200);
            let client = client().probe_timeout(hasty).handshake_timeout(hasty);
            let failed = client.connect(Remote::new(rt::RUNTIME, &server.at)).await.unwrap_err();
            assert!(matches!(failed, ConnectError::Failed(_)), "{number}: {failed:?}");
        }
    });
}

#[test]
fn what_cannot_be_an_address_is_told() {
    rt::run(async {
        let has_tls = cfg!(any(feature = "tls-ring", feature = "tls-aws-lc"));
        let https = if has_tls { "nonsense" } else { "https://localhost/" };
        for remote in [
            Remote::new(rt::RUNTIME, https),
            Remote::new(rt::RUNTIME, "ftp://localhost/"),
            Remote::new(rt::RUNTIME, "http://localhost/").bearer("a b"),
            Remote::new(rt::RUNTIME, "http://localhost/").header("host", "x"),
        ] {
            let failed = client().connect(remote).await.unwrap_err();
            assert!(matches!(failed, ConnectError::Settings(_)), "{failed:?}");
        }
    });
}
