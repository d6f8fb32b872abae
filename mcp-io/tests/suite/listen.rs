//! Listening sockets. The clients are plain threads with blocking sockets.

use std::future::{Future, poll_fn};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use mcp_io::{Accept, Listen, MemoryStream, Serve};
use mcp_proto::service::Principal;
use serde_json::{Value, json};

use super::client::{Client, call, echo, gate, text};
use super::service::{Stage, server};
use crate::rt;

struct Socket(PathBuf);

impl Socket {
    fn new(name: &str) -> Self {
        let name = format!("{}{name}-{}.sock", rt::PROGRAMS, std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.0).unwrap()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn receive(from: &mut impl BufRead) -> Option<Value> {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
}

#[test]
fn peers_of_a_socket_are_served_side_by_side_until_shutdown() {
    rt::run(async {
        let stage = Stage::default();
        let socket = Socket::new("many");
        let listen = rt::unix(&socket.0).principal_of(|_| Some(Principal::new("peer")));
        let stop = stage.clone();
        let served =
            rt::spawn(server(&stage).serve_until(listen, async move { stop.crowd("stop", 1).await }));
        let first = socket.connect();
        let second = socket.connect();
        let met = rt::unblock(move || {
            let ask = call(1, "meet", &json!({ "size": 2 }));
            for mut peer in [&first, &second] {
                peer.write_all(ask.as_bytes()).unwrap();
            }
            let (mut first, mut second) = (BufReader::new(first), BufReader::new(second));
            let answers = [receive(&mut first), receive(&mut second)].map(|a| text(&a.unwrap()));
            first.get_ref().write_all(call(2, "who", &json!({})).as_bytes()).unwrap();
            let who = text(&receive(&mut first).unwrap());
            first.get_ref().write_all(gate(3, "stop").as_bytes()).unwrap();
            (answers, who, first, second)
        });
        let (answers, who, mut first, mut second) = met.await;
        assert_eq!((answers, who.as_str()), (["met".into(), "met".into()], "peer"));
        stage.crowd("stop", 1).await;
        rt::eventually(|| UnixStream::connect(&socket.0).is_err()).await;
        stage.open("stop");
        let last =
            rt::unblock(move || (receive(&mut first), receive(&mut first), receive(&mut second))).await;
        assert_eq!(last.0.unwrap()["id"], 3);
        assert_eq!((last.1, last.2), (None, None));
        served.await.unwrap();
    });
}

#[test]
fn no_more_connections_than_allowed_are_served_at_once() {
    rt::run(async {
        let socket = Socket::new("few");
        let listen = rt::unix(&socket.0).max_connections(1);
        let _served = rt::spawn(server(&Stage::default()).serve(listen));
        let (first, second) = (socket.connect(), socket.connect());
        rt::unblock(move || {
            (&first).write_all(echo(1, "first").as_bytes()).unwrap();
            (&second).write_all(echo(2, "second").as_bytes()).unwrap();
            let mut first = BufReader::new(first);
            assert_eq!(receive(&mut first).unwrap()["id"], 1);
            second.set_nonblocking(true).unwrap();
            let why = (&second).read(&mut [0]).unwrap_err();
            assert_eq!(why.kind(), std::io::ErrorKind::WouldBlock);
            second.set_nonblocking(false).unwrap();
            drop(first);
            assert_eq!(receive(&mut BufReader::new(second)).unwrap()["id"], 2);
        })
        .await;
    });
}

#[test]
fn dropping_the_future_drops_the_connections() {
    rt::run(async {
        let stage = Stage::default();
        let socket = Socket::new("drop");
        let (listen, stop) = (rt::unix(&socket.0), stage.clone());
        let served = rt::spawn(async move {
            let mut stopped = pin!(stop.opened("abort"));
            let mut served = pin!(server(&stop).serve(listen));
            poll_fn(|cx| {
                assert!(served.as_mut().poll(cx).is_pending());
                stopped.as_mut().poll(cx)
            })
            .await;
        });
        let peer = socket.connect();
        (&peer).write_all(call(1, "stuck", &json!({})).as_bytes()).unwrap();
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 1).await;
        stage.open("abort");
        served.await;
        rt::unblock(move || assert_eq!((&peer).read(&mut [0]).unwrap(), 0)).await;
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
    });
}

/// A socket that fails for a while, as when the process has too many files open.
struct Shaky(Vec<std::io::Result<MemoryStream>>);

impl Accept for Shaky {
    type Connection = MemoryStream;
    type Io = MemoryStream;
    const OPEN_TO_BROWSERS: bool = false;

    fn poll_accept(&mut self, _: &mut Context<'_>) -> Poll<std::io::Result<MemoryStream>> {
        self.0.pop().map_or(Poll::Pending, Poll::Ready)
    }

    fn open(connection: MemoryStream) -> MemoryStream {
        connection
    }
}

#[test]
fn a_failure_to_accept_is_waited_out() {
    rt::run(async {
        let (theirs, ours) = mcp_io::pair(1 << 10);
        let shaky = Shaky(vec![Ok(theirs), Err(std::io::ErrorKind::Other.into())]);
        let _served = rt::spawn(server(&Stage::default()).serve(Listen::new(rt::RUNTIME, shaky)));
        let mut client = Client::new(ours);
        client.send(echo(1, "patience")).await;
        assert_eq!(text(&client.receive().await.unwrap()), "patience");
    });
}

/// What a web page can make a browser send to any port must not be taken for messages.
#[test]
fn a_browser_is_hung_up_on() {
    rt::run(async {
        let (listen, address) = rt::tcp();
        let _served = rt::spawn(server(&Stage::default()).serve(listen));
        rt::unblock(move || {
            let post = format!("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n{}", echo(1, "evil"));
            let mut browser = TcpStream::connect(address).unwrap();
            browser.write_all(post.as_bytes()).unwrap();
            let mut answer = Vec::new();
            // Reset or closed, but not a word.
            let _ = browser.read_to_end(&mut answer);
            assert_eq!(answer, b"");

            // Only what comes first is judged, and a byte order mark may stand before it.
            for before in ["\n ", "\u{feff}"] {
                let mut client = TcpStream::connect(address).unwrap();
                let second = echo(2, "half");
                let (head, tail) = second.split_at(9);
                client.write_all(format!("{before}{}{head}", echo(1, "good")).as_bytes()).unwrap();
                let mut answers = BufReader::new(client.try_clone().unwrap());
                assert_eq!(text(&receive(&mut answers).unwrap()), "good");
                client.write_all(tail.as_bytes()).unwrap();
                assert_eq!(text(&receive(&mut answers).unwrap()), "half");
            }
        })
        .await;
    });
}
