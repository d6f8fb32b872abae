//! Requests that are not let in, and clients that mean harm.

use std::time::Duration;

use mcp_proto::http::{Origins, ProtectedResource};
use mcp_proto::server::Principal;
use mcp_proto::service::{Authorizer, BoxFuture, TokenError, TokenVerifier, Verified};
use serde_json::json;

use super::peer::{Peer, call, json_headers};
use super::served;
use crate::rt;
use crate::suite::client::text;
use crate::suite::service::Stage;

/// S-HTTP-02, S-HTTP-03
#[test]
fn strangers_are_refused() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            let message = call(1, "echo", json!({ "text": "evil" }));
            for (name, value) in [("origin", "https://evil.example"), ("host", "evil.example")] {
                peer.post_with(&[(name, value)], &message);
                assert_eq!(peer.status(), 403, "{name}");
            }
            peer.post_with(&[("origin", "http://localhost:3000")], &message);
            assert_eq!(peer.status(), 200);
            peer.request("PUT", "/mcp", &[], "");
            let (head, _) = peer.answer();
            assert_eq!((head.status, head.header("allow")), (405, "GET, POST, DELETE"));
        })
        .await;
    });
}

#[test]
fn names_that_are_allowed_are_let_in() {
    rt::run(async {
        let stage = Stage::default();
        let origins = Origins::closed().allow_host("mcp.example").unwrap();
        let (address, _serving) = served(&stage, |http| http.origins(origins));
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            let message = call(1, "echo", json!({ "text": "one" }));
            peer.post_with(&[("host", "mcp.example")], &message);
            assert_eq!(peer.status(), 200);
            peer.post_with(&[("host", "localhost")], &message);
            assert_eq!(peer.status(), 403);
        })
        .await;
    });
}

/// A body that is too long is not read, whether it says so or not.
#[test]
fn a_body_that_is_too_long_is_refused() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            let long = ("content-length", "99999999");
            let headers = [json_headers(), vec![long]].concat();
            peer.request("POST", "/mcp", &headers, "");
            let (head, answer) = peer.answer();
            assert_eq!((head.status, &answer["error"]["code"]), (413, &json!(-32600)));

            let mut peer = Peer::connect(address);
            let headers = [json_headers(), vec![("expect", "100-continue"), long]].concat();
            peer.request("POST", "/mcp", &headers, "");
            assert_eq!(peer.status(), 413);

            let mut peer = Peer::connect(address);
            let headers = [json_headers(), vec![("transfer-encoding", "chunked")]].concat();
            peer.request("POST", "/mcp", &headers, "");
            let piece = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
            for _ in 0..16 {
                peer.send(&piece);
            }
            peer.send("1\r\n \r\n");
            assert_eq!(peer.status(), 413);
        })
        .await;
    });
}

/// A client that sends all before it reads hears the answer, not that the connection was reset.
#[test]
fn a_refusal_reaches_a_client_that_still_sends() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        rt::unblock(move || {
            let length = 40 << 20;
            let mut peer = Peer::connect(address);
            let headers = [json_headers(), vec![("content-length", "41943040")]].concat();
            peer.request("POST", "/mcp", &headers, "");
            peer.send(vec![b' '; length]);
            assert_eq!(peer.status(), 413);
            assert!(peer.is_over());
        })
        .await;
    });
}

#[test]
fn a_body_in_pieces_is_put_together() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            let message = call(1, "echo", json!({ "text": "pieces" })).to_string();
            let headers = [
                json_headers(),
                vec![
                    ("transfer-encoding", "chunked"),
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", "echo"),
                ],
            ]
            .concat();
            peer.request("POST", "/mcp", &headers, "");
            for piece in message.as_bytes().chunks(50) {
                peer.send(format!("{:x}\r\n", piece.len()));
                peer.send(piece);
                peer.send("\r\n");
            }
            peer.send("0\r\n\r\n");
            assert_eq!(text(&peer.answer().1), "pieces");
        })
        .await;
    });
}

#[test]
fn what_is_no_http_is_hung_up_on() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        rt::unblock(move || {
            let many: String = (0..200).map(|n| format!("x-{n}: y\r\n")).collect();
            let long = format!("x-long: {}\r\n", "y".repeat(100 << 10));
            let heads = [
                "\r\n\r\n\0\x01\x02\x03\r\n\r\n".to_owned(),
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".to_owned(),
                "POST /mcp HTTP/9.9\r\nhost: localhost\r\n\r\n".to_owned(),
                "POST /mcp HTTP/1.1\r\nhost: local\0host\r\n\r\n".to_owned(),
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"
                    .to_owned(),
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n".to_owned(),
                format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"),
                format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{long}\r\n"),
                "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_owned(),
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nno frame at all".to_owned(),
            ];
            for head in heads {
                let mut peer = Peer::connect(address);
                let shown = head.escape_debug().to_string();
                let shown = &shown[..shown.len().min(100)];
                // The server may hang up before it has all.
                let _ = std::io::Write::write_all(&mut peer.stream, head.as_bytes());
                if !head.starts_with("PRI * HTTP/2.0\r\n\r\nSM") {
                    if let Some(head) = peer.head() {
                        assert!((400..500).contains(&head.status), "{shown}: {head:?}");
                        peer.body();
                    }
                    assert!(peer.is_over(), "{shown}");
                } else {
                    // Settings and a farewell, in frames.
                    while !peer.is_over() {
                        peer.forget();
                    }
                }
            }
            let mut peer = Peer::connect(address);
            peer.post(&call(1, "echo", json!({ "text": "fine" })));
            assert_eq!(text(&peer.answer().1), "fine");
        })
        .await;
    });
}

/// Neither the head nor the body may take for ever, nor may a connection be kept open for nothing.
#[test]
fn slow_clients_are_not_waited_for() {
    rt::run(async {
        let stage = Stage::default();
        let soon = Duration::from_millis(50);
        let (address, _serving) = served(&stage, |http| http.header_timeout(soon));
        let (for_bodies, _serving) = served(&stage, |http| http.body_timeout(soon));
        rt::unblock(move || {
            for begun in ["", "P", "PRI * HTTP", "POST /mcp HTTP/1.1\r\nhost:"] {
                let mut peer = Peer::connect(address);
                peer.send(begun);
                if let Some(head) = peer.head() {
                    assert_eq!(head.status, 408, "{begun:?}");
                    peer.body();
                }
                assert!(peer.is_over(), "{begun:?}");
            }
            // On a busy machine a whole head may come too late as well; not for ever.
            loop {
                let mut idle = Peer::connect(address);
                idle.post(&call(1, "echo", json!({ "text": "one" })));
                let in_time = idle.head().is_some_and(|head| head.status == 200);
                idle.body();
                assert!(idle.is_over());
                if in_time {
                    break;
                }
            }
            let mut peer = Peer::connect(for_bodies);
            let headers = [json_headers(), vec![("content-length", "100")]].concat();
            peer.request("POST", "/mcp", &headers, "");
            peer.send("{");
            assert_eq!(peer.status(), 408);
            assert!(peer.is_over());
        })
        .await;
    });
}

#[test]
fn no_more_requests_than_allowed_are_handled_at_once() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http.max_in_flight(1));
        let mut first = rt::unblock(move || {
            let mut first = Peer::connect(address);
            first.post(&call(1, "gate", json!({ "text": "first" })));
            first
        })
        .await;
        stage.crowd("first", 1).await;
        let gate = stage.clone();
        rt::unblock(move || {
            let mut second = Peer::connect(address);
            let message = call(2, "echo", json!({ "text": "second" }));
            second.post(&message);
            let (head, _) = second.answer();
            assert_eq!((head.status, head.header("retry-after")), (503, "1"));
            second.request("GET", "/healthz", &[], "");
            assert_eq!(second.status(), 200);
            gate.open("first");
            assert_eq!(text(&first.answer().1), "first");
            second.post(&message);
            assert_eq!(text(&second.answer().1), "second");
        })
        .await;
    });
}

#[test]
fn no_more_connections_than_allowed_are_served_at_once() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http.max_connections(1));
        rt::unblock(move || {
            let (mut first, mut second) = (Peer::connect(address), Peer::connect(address));
            second.post(&call(2, "echo", json!({ "text": "second" })));
            first.post(&call(1, "echo", json!({ "text": "first" })));
            assert_eq!(text(&first.answer().1), "first");
            second.stream.set_nonblocking(true).unwrap();
            let why = second.stream.peek(&mut [0]).unwrap_err();
            assert_eq!(why.kind(), std::io::ErrorKind::WouldBlock);
            second.stream.set_nonblocking(false).unwrap();
            drop(first);
            assert_eq!(text(&second.answer().1), "second");
        })
        .await;
    });
}

struct Door;

impl TokenVerifier for Door {
    fn verify(&self, token: &str) -> BoxFuture<Result<Verified, TokenError>> {
        let verified = match token {
            "good" => Ok(Verified::new(Principal::new("alice"), ["http://localhost/mcp"])),
            _ => Err(TokenError::Invalid("unknown".into())),
        };
        Box::pin(async move {
            // It asks someone.
            rt::pause().await;
            verified
        })
    }
}

#[test]
fn tokens_are_asked_for() {
    rt::run(async {
        let stage = Stage::default();
        let resource = ProtectedResource::builder("http://localhost/mcp")
            .authorization_server("http://localhost:9000")
            .build()
            .unwrap();
        let authorizer = Authorizer::new(resource, Door);
        let (address, _serving) = served(&stage, |http| http.authorizer(authorizer));
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            let who = call(1, "who", json!({}));
            peer.post(&who);
            let (head, _) = peer.answer();
            assert_eq!(head.status, 401);
            assert!(head.header("www-authenticate").starts_with("Bearer"));
            peer.post_with(&[("authorization", "Bearer bad")], &who);
            assert_eq!(peer.status(), 401);
            peer.post_with(&[("authorization", "Bearer good")], &who);
            assert_eq!(text(&peer.answer().1), "alice");
            peer.request("GET", "/.well-known/oauth-protected-resource/mcp", &[], "");
            assert_eq!(peer.answer().1["resource"], "http://localhost/mcp");
        })
        .await;
    });
}
