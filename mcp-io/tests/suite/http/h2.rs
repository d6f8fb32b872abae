//! HTTP/2 with prior knowledge, in frames of our own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::peer::{call, json_headers};
use super::served;
use crate::rt;
use crate::suite::client::text;
use crate::suite::service::Stage;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200` in the table of every peer. [RFC 7541, appendix A]
const STATUS_200: u8 = 0x88;

struct Peer(TcpStream);

impl Peer {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let mut peer = Self(stream);
        peer.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        peer.frame(SETTINGS, 0, 0, &[]);
        peer
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).unwrap();
    }

    fn post(&mut self, stream: u32, authority: &str, more: &[(&str, &str)], message: &Value) {
        let mut headers =
            vec![(":method", "POST"), (":scheme", "http"), (":path", "/mcp"), (":authority", authority)];
        headers.extend(json_headers());
        headers.extend([("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call")]);
        headers.push(("mcp-name", message["params"]["name"].as_str().unwrap()));
        headers.extend_from_slice(more);
        let mut block = Vec::new();
        for (name, value) in headers {
            // A literal that goes into no table.
            block.push(0);
            for text in [name, value] {
                block.push(text.len() as u8);
                block.extend(text.bytes());
            }
        }
        self.frame(HEADERS, END_HEADERS, stream, &block);
        self.frame(DATA, END_STREAM, stream, message.to_string().as_bytes());
    }

    /// The next response: its stream, the first byte of its head, its body. Responses do not interleave
    /// here.
    fn answer(&mut self) -> (u32, u8, Value) {
        let (mut status, mut body) = (0, Vec::new());
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).unwrap();
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            self.0.read_exact(&mut payload).unwrap();
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            match head[3] {
                HEADERS => status = payload[0],
                DATA => body.extend(payload),
                // Code 0: the rest of the request is not wanted.
                RST_STREAM => assert_eq!(payload, [0; 4], "stream {stream} was reset"),
                _ => continue,
            }
            if head[4] & END_STREAM != 0 {
                return (stream, status, serde_json::from_slice(&body).unwrap());
            }
        }
    }
}

/// H14: the host of HTTP/2 stands in `:authority`.
#[test]
fn http_2_is_spoken_with_those_who_begin_so() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        rt::unblock(move || {
            let mut peer = Peer::connect(address);
            let message = call(1, "echo", json!({ "text": "frames" }));
            peer.post(1, "localhost:80", &[], &message);
            let (stream, status, answer) = peer.answer();
            assert_eq!((stream, status, text(&answer)), (1, STATUS_200, "frames".into()));
            for (stream, authority, more) in [
                (3, "evil.example", &[][..]),
                (5, "localhost", &[("host", "evil.example")]),
                (7, "localhost", &[("origin", "https://evil.example")]),
            ] {
                peer.post(stream, authority, more, &message);
                let (answered, status, answer) = peer.answer();
                assert_eq!((answered, &answer["error"]["code"]), (stream, &json!(-32600)));
                assert_ne!(status, STATUS_200);
            }
        })
        .await;
    });
}

/// S-HTTP-13: a stream that is reset cancels its call, and nothing else.
#[test]
fn a_stream_that_is_reset_cancels_its_call() {
    rt::run(async {
        let stage = Stage::default();
        let (address, _serving) = served(&stage, |http| http);
        let mut peer = rt::unblock(move || {
            let mut peer = Peer::connect(address);
            peer.post(1, "localhost", &[], &call(1, "stuck", json!({})));
            peer.post(3, "localhost", &[], &call(2, "gate", json!({ "text": "stay" })));
            peer
        })
        .await;
        stage.crowd("stay", 1).await;
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 1).await;
        peer.frame(RST_STREAM, 0, 1, &8u32.to_be_bytes());
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
        stage.open("stay");
        rt::unblock(move || {
            let (stream, status, answer) = peer.answer();
            assert_eq!((stream, status, text(&answer)), (3, STATUS_200, "stay".into()));
            peer.post(5, "localhost", &[], &call(3, "stuck", json!({})));
            peer.0.set_nonblocking(true).unwrap();
        })
        .await;
        // The peer is gone, and its calls with it.
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
    });
}

/// What runs for a connection that is dropped ends, though it runs beside it.
#[test]
fn the_streams_of_a_lost_connection_end() {
    rt::run(async {
        let stage = Stage::default();
        let (address, serving) = served(&stage, |http| http.drain(Duration::from_millis(50)));
        for _ in 0..2 {
            let peer = rt::unblock(move || {
                let mut peer = Peer::connect(address);
                peer.post(1, "localhost", &[], &call(1, "stuck", json!({})));
                peer.post(3, "localhost", &[], &call(1, "stuck_steps", json!({})));
                peer
            })
            .await;
            rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 2).await;
            drop(peer);
            rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
        }
        let _peer = rt::unblock(move || {
            let mut peer = Peer::connect(address);
            peer.post(1, "localhost", &[], &call(1, "stuck", json!({})));
            peer
        })
        .await;
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 1).await;
        stage.open("stop");
        serving.await.unwrap();
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
    });
}
