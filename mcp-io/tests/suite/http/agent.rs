//! Requests of ours: connections that are kept and shared, and servers that do as they please.

use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use mcp_io::client::http::{Agent, Body, Failure, Lane, Options, Versions};
use serde_json::{Value, json};

use super::peer::call;
use super::served;
use crate::rt;
use crate::suite::client::text;
use crate::suite::service::Stage;

type Http = Agent<rt::Runtime>;
type Request = http::Request<bytes::Bytes>;
type Response = http::Response<Body<rt::Runtime>>;

fn agent(set: impl FnOnce(&mut Options)) -> Http {
    let mut options = Options::default();
    set(&mut options);
    Agent::new(rt::RUNTIME, options).unwrap()
}

fn plain() -> Http {
    agent(|_| {})
}

fn request(method: &str, at: &str, body: &str) -> Request {
    http::Request::builder().method(method).uri(at).body(body.to_owned().into()).unwrap()
}

/// A call of a tool of the suite's server.
fn tool(at: &str, name: &str, arguments: Value) -> Request {
    let request = http::Request::post(at)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", name);
    request.body(call(1, name, arguments).to_string().into()).unwrap()
}

async fn all(response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(chunk) = body.chunk().await {
        bytes.extend_from_slice(&chunk?);
    }
    Ok(bytes)
}

async fn answer(http: &Http, request: Request) -> String {
    let response = http.send(request, Lane::Call).await.unwrap();
    assert_eq!(response.status(), 200);
    text(&serde_json::from_slice(&all(response).await.unwrap()).unwrap())
}

fn at(address: SocketAddr) -> String {
    format!("http://{address}/mcp")
}

/// A server that does with the n-th connection what `serve` does, each in a thread.
pub(super) struct Raw {
    pub(super) at: String,
    accepted: Arc<AtomicUsize>,
}

impl Raw {
    pub(super) fn new(serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("http://{}/", listener.local_addr().unwrap());
        let accepted = Arc::<AtomicUsize>::default();
        let (count, serve) = (Arc::clone(&accepted), Arc::new(serve));
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (n, serve) = (count.fetch_add(1, Ordering::SeqCst), Arc::clone(&serve));
                std::thread::spawn(move || serve(n, stream));
            }
        });
        Self { at, accepted }
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// Reads the head of a request, and a body that is said to be there. `false` at the end.
pub(super) fn heard(stream: &mut TcpStream) -> bool {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head
        .split_once("content-length: ")
        .map_or(0, |(_, rest)| rest.split_once('\r').unwrap().0.parse().unwrap());
    stream.read_exact(&mut vec![0; length]).is_ok()
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[test]
fn a_thousand_calls_at_once_share_connections() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http.max_connections(32));
        for (versions, most) in [(Versions::Http1, 16), (Versions::Http2, 16)] {
            let http = agent(|options| (options.versions, options.max_connections) = (versions, most));
            let calls = (0..1000).map(|n| {
                let http = http.clone();
                rt::spawn(async move {
                    let said =
                        answer(&http, tool(&at(address), "echo", json!({ "text": n.to_string() }))).await;
                    assert_eq!(said, n.to_string());
                })
            });
            for call in calls.collect::<Vec<_>>() {
                call.await;
            }
        }
    });
}

#[test]
fn a_connection_is_used_again_and_no_more_are_made_than_allowed() {
    rt::run(async {
        let (busy, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let seen = Arc::clone(&most);
        let server = Raw::new(move |_, mut stream| {
            while heard(&mut stream) {
                most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
                busy.fetch_sub(1, Ordering::SeqCst);
                stream.write_all(OK).unwrap();
            }
        });
        let http = agent(|options| options.max_connections = 3);
        for _ in 0..5 {
            let response = http.send(request("POST", &server.at, "x"), Lane::Call).await.unwrap();
            assert_eq!(all(response).await.unwrap(), b"ok");
        }
        assert_eq!(server.accepted(), 1);
        let many = (0..60).map(|_| {
            let (http, request) = (http.clone(), request("POST", &server.at, "x"));
            rt::spawn(async move { all(http.send(request, Lane::Call).await.unwrap()).await.unwrap() })
        });
        for one in many.collect::<Vec<_>>() {
            assert_eq!(one.await, b"ok");
        }
        assert_eq!((server.accepted(), seen.load(Ordering::SeqCst)), (3, 3));
    });
}

/// Whoever answers the question of a handler must not wait for the call that the handler serves.
#[test]
fn a_reply_passes_where_calls_hold_all_connections() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        let http = agent(|options| options.max_connections = 1);
        let (first, request) = (http.clone(), tool(&at(address), "gate", json!({ "text": "open" })));
        let held = rt::spawn(async move { answer(&first, request).await });
        stage.crowd("open", 1).await;
        let second = tool(&at(address), "echo", json!({ "text": "second" }));
        let mut waiting = pin!(http.send(second, Lane::Call));
        assert!(poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await);
        let reply =
            http.send(tool(&at(address), "echo", json!({ "text": "reply" })), Lane::Reply).await.unwrap();
        assert_eq!(reply.status(), 200);
        stage.open("open");
        assert_eq!(held.await, "open");
        all(reply).await.unwrap();
        assert_eq!(waiting.await.unwrap().status(), 200);
    });
}

/// What may have been done is not done again.
#[test]
fn a_request_that_was_sent_is_repeated_only_if_it_changes_nothing() {
    rt::run(async {
        let requests = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&requests);
        let server = Raw::new(move |n, mut stream| {
            while heard(&mut stream) {
                // A kept connection is closed once the second request is there.
                if count.fetch_add(1, Ordering::SeqCst) % 2 == 1 && n % 2 == 0 {
                    return;
                }
                stream.write_all(OK).unwrap();
            }
        });
        let http = plain();
        let get = || request("GET", &server.at, "");
        all(http.send(get(), Lane::Call).await.unwrap()).await.unwrap();
        assert_eq!(all(http.send(get(), Lane::Call).await.unwrap()).await.unwrap(), b"ok");
        assert_eq!((server.accepted(), requests.load(Ordering::SeqCst)), (2, 3));

        let server = Raw::new(|_, mut stream| {
            if heard(&mut stream) {
                stream.write_all(OK).unwrap();
            }
            heard(&mut stream);
        });
        all(http.send(get_at(&server.at), Lane::Call).await.unwrap()).await.unwrap();
        let failure = http.send(request("POST", &server.at, "x"), Lane::Call).await.unwrap_err();
        assert!(matches!(failure, Failure::Lost { sent: true, .. }), "{failure:?}");
        assert_eq!(server.accepted(), 1);
    });
}

fn get_at(at: &str) -> Request {
    request("GET", at, "")
}

#[test]
fn an_idle_connection_is_closed() {
    rt::run(async {
        let ended = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&ended);
        let server = Raw::new(move |_, mut stream| {
            while heard(&mut stream) {
                stream.write_all(OK).unwrap();
            }
            count.fetch_add(1, Ordering::SeqCst);
        });
        let http = agent(|options| options.idle_timeout = Duration::from_millis(20));
        all(http.send(get_at(&server.at), Lane::Call).await.unwrap()).await.unwrap();
        rt::eventually(|| ended.load(Ordering::SeqCst) == 1).await;
        all(http.send(get_at(&server.at), Lane::Call).await.unwrap()).await.unwrap();
        assert_eq!(server.accepted(), 2);
        // The last handle takes its connections with it.
        let http = plain();
        all(http.send(get_at(&server.at), Lane::Call).await.unwrap()).await.unwrap();
        drop(http);
        rt::eventually(|| ended.load(Ordering::SeqCst) == 3).await;
    });
}

/// H15: whoever does not wait any more says so by closing.
#[test]
fn dropping_closes_the_exchange() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        for versions in [Versions::Http1, Versions::Http2] {
            let http = agent(|options| options.versions = versions);
            let stuck = || stage.stuck.load(Ordering::SeqCst);
            {
                let mut sent = pin!(http.send(tool(&at(address), "stuck", json!({})), Lane::Call));
                poll_fn(|cx| {
                    let _ = sent.as_mut().poll(cx).is_ready();
                    match stuck() {
                        1 => Poll::Ready(()),
                        _ => {
                            cx.waker().wake_by_ref();
                            Poll::Pending
                        }
                    }
                })
                .await;
            }
            rt::eventually(|| stuck() == 0).await;

            let mut events = tool(&at(address), "stuck_steps", json!({}));
            *events.body_mut() = {
                let mut call = call(1, "stuck_steps", json!({}));
                call["params"]["_meta"]["progressToken"] = json!(1);
                call.to_string().into()
            };
            let response = http.send(events, Lane::Call).await.unwrap();
            let mut body = response.into_body();
            assert!(body.chunk().await.unwrap().unwrap().starts_with(b"data: "));
            assert_eq!(stuck(), 1);
            drop(body);
            rt::eventually(|| stuck() == 0).await;
        }
    });
}

/// Whatever a server does, it is an error of that exchange.
#[test]
fn servers_that_speak_no_http_are_errors() {
    rt::run(async {
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(1 << 20));
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(10_000));
        let heads: [&[u8]; 8] = [
            b"",
            b"\0\xFF\0\xFF garbage\r\n\r\n",
            b"HTTP/1.1",
            b"HTTP/1.1 200 OK\r\ncontent-le",
            b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
            b"SSH-2.0-OpenSSH_9.9\r\n",
            endless.as_bytes(),
            many.as_bytes(),
        ];
        let answer = |bytes: Vec<u8>| {
            Raw::new(move |_, mut stream| {
                heard(&mut stream);
                let _ = stream.write_all(&bytes);
            })
        };
        let http = plain();
        for head in heads {
            let server = answer(head.to_vec());
            let failure = http.send(request("POST", &server.at, "x"), Lane::Call).await.unwrap_err();
            assert!(matches!(failure, Failure::Lost { sent: true, .. }), "{failure:?}");
        }
        let bodies: [&[u8]; 5] = [
            b"content-length: 3\r\n\r\nok",
            b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
            b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\nzzz\r\n",
            b"transfer-encoding: chunked\r\n\r\n",
            b"transfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFF\r\n",
        ];
        for body in bodies {
            let server = answer([b"HTTP/1.1 200 OK\r\n", body].concat());
            let response = http.send(request("POST", &server.at, "x"), Lane::Call).await.unwrap();
            let failure = all(response).await.unwrap_err();
            assert!(matches!(failure, Failure::Lost { sent: true, .. }), "{failure:?}");
        }
        // One that never ends is the reader's to end.
        let server = Raw::new(|_, mut stream| {
            heard(&mut stream);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(&[b'x'; 1024]).is_ok() {}
        });
        let mut body = http.send(get_at(&server.at), Lane::Call).await.unwrap().into_body();
        let mut got = 0;
        while got < 1 << 20 {
            let chunk = body.chunk().await.unwrap().unwrap();
            assert!(chunk.len() <= 1 << 16);
            got += chunk.len();
        }
    });
}

#[test]
fn hosts_that_cannot_be_reached_are_errors() {
    rt::run(async {
        let http = plain();
        let failure = async |at: &str| http.send(get_at(at), Lane::Call).await.unwrap_err();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused = failure(&format!("http://localhost:{}/", free.port())).await;
        assert!(matches!(&refused, Failure::Connect(host, _) if host == "localhost"), "{refused:?}");
        for at in ["/mcp", "ftp://localhost/", "http://me:hunter2@localhost/"] {
            let failure = failure(at).await;
            assert!(matches!(failure, Failure::Address(_)), "{failure:?}");
            assert!(!failure.to_string().contains("hunter2"));
        }
    });
}

#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
mod tls {
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    use super::*;

    /// A server that proves to be `name`, and its certificate.
    fn secure(name: &str) -> (Raw, Vec<u8>) {
        let own = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_no_client_auth();
        let config = Arc::new(config.with_single_cert(vec![own.cert.der().clone()], key).unwrap());
        let server = Raw::new(move |_, stream| {
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(tls, stream);
            let mut request = Vec::new();
            let mut buf = [0; 1024];
            while let Ok(got @ 1..) = stream.read(&mut buf) {
                request.extend_from_slice(&buf[..got]);
                if request.ends_with(b"END") {
                    let body = vec![b'x'; 1 << 20];
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                    stream.write_all(&[head.into_bytes(), body].concat()).unwrap();
                    request.clear();
                }
            }
        });
        let at = server.at.replace("http://127.0.0.1", "https://localhost");
        (Raw { at, ..server }, own.cert.der().to_vec())
    }

    fn pem(der: &[u8]) -> Vec<u8> {
        use base64::Engine;
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        let lines: Vec<_> =
            text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n")).into_bytes()
    }

    fn trusting(der: &[u8]) -> Http {
        agent(|options| (options.roots, options.system_roots) = (vec![der.to_vec()], false))
    }

    #[test]
    fn much_passes_encrypted_both_ways() {
        rt::run(async {
            let (server, der) = secure("localhost");
            for http in [trusting(&der), agent(|options| options.roots.push(pem(&der)))] {
                let before = server.accepted();
                for _ in 0..3 {
                    let body = "y".repeat(1 << 20) + "END";
                    let response = http.send(request("POST", &server.at, &body), Lane::Call).await.unwrap();
                    assert_eq!(all(response).await.unwrap().len(), 1 << 20);
                }
                assert_eq!(server.accepted(), before + 1);
            }
        });
    }

    #[test]
    fn a_host_that_does_not_prove_to_be_it_gets_nothing() {
        rt::run(async {
            let (server, der) = secure("localhost");
            let (other, other_der) = secure("other.example");
            let refused = [(&server, &other_der), (&other, &other_der)];
            for (server, der) in refused {
                let failure = trusting(der).send(get_at(&server.at), Lane::Call).await.unwrap_err();
                assert!(matches!(failure, Failure::Tls(..)), "{failure:?}");
            }
            let system = plain().send(get_at(&server.at), Lane::Call).await.unwrap_err();
            assert!(matches!(system, Failure::Tls(..)), "{system:?}");
            // An address is not the name.
            let by_address = server.at.replace("localhost", "127.0.0.1");
            let failure = trusting(&der).send(get_at(&by_address), Lane::Call).await.unwrap_err();
            assert!(matches!(failure, Failure::Tls(..)), "{failure:?}");

            // Who speaks no TLS, and who says nothing.
            let plain = Raw::new(|_, mut stream| drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")));
            let at = plain.at.replace("http:", "https:");
            let failure = trusting(&der).send(get_at(&at), Lane::Call).await.unwrap_err();
            assert!(matches!(failure, Failure::Tls(..)), "{failure:?}");
            let silent = Raw::new(|_, mut stream| drop(stream.read_to_end(&mut Vec::new())));
            let hasty = agent(|options| options.connect_timeout = Duration::from_millis(50));
            let failure =
                hasty.send(get_at(&silent.at.replace("http:", "https:")), Lane::Call).await.unwrap_err();
            assert!(matches!(failure, Failure::TimedOut(_)), "{failure:?}");
        });
    }

    #[test]
    fn a_certificate_that_is_none_is_told() {
        for pem in ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let options = |options: &mut Options| {
                (options.roots, options.system_roots) = (vec![pem.as_bytes().to_vec()], false);
            };
            let mut set = Options::default();
            options(&mut set);
            let failure = Agent::new(rt::RUNTIME, set).unwrap_err();
            assert!(matches!(failure, Failure::Settings(_)), "{failure:?}");
        }
    }
}
