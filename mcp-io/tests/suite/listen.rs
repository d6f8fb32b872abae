//! Listening sockets. The clients are plain threads with blocking sockets.

use std::future::{Future, poll_fn};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_io::{Accept, ByteStream, Listen, MemoryStream, Runtime, Serve, ServeError, Timer};
use mcp_proto::service::{Principal, Server};
use mcp_proto::time::Instant;
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

/// A runtime that writes down how far away each timer is set, and on which a second passes at once. Its
/// clock stands still but for that: a machine that is busy meanwhile must not shorten what is written down.
#[derive(Clone, Default)]
struct Hasty(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    now: Option<Instant>,
    set: Vec<Duration>,
}

struct Alarm {
    runtime: Hasty,
    inner: <rt::Runtime as Runtime>::Timer,
    soon: Option<Instant>,
}

impl Hasty {
    /// The deadline if it is soon.
    fn note(&self, deadline: Instant) -> Option<Instant> {
        let away = deadline.saturating_duration_since(self.now());
        self.0.lock().unwrap().set.push(away);
        (away < Duration::from_secs(1)).then_some(deadline)
    }

    fn set(&self) -> Vec<Duration> {
        self.0.lock().unwrap().set.clone()
    }
}

impl Runtime for Hasty {
    type Timer = Alarm;
    type Fd = <rt::Runtime as Runtime>::Fd;

    fn now(&self) -> Instant {
        *self.0.lock().unwrap().now.get_or_insert_with(|| rt::RUNTIME.now())
    }

    fn timer(&self, deadline: Instant) -> Alarm {
        Alarm { soon: self.note(deadline), inner: rt::RUNTIME.timer(deadline), runtime: self.clone() }
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        rt::RUNTIME.spawn(future);
    }

    fn watch(&self, end: mcp_io::End) -> std::io::Result<Self::Fd> {
        rt::RUNTIME.watch(end)
    }
}

impl Timer for Alarm {
    fn reset(&mut self, deadline: Instant) {
        self.soon = self.runtime.note(deadline);
        self.inner.reset(deadline);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.soon else { return self.inner.poll(cx) };
        let mut noted = self.runtime.0.lock().unwrap();
        noted.now = noted.now.max(Some(deadline));
        Poll::Ready(())
    }
}

/// 99 failures in a row are waited out, as often as they come, each with a pause of 0.1 s.
#[test]
fn a_failure_to_accept_is_waited_out() {
    rt::run(async {
        let failures = || (0..99).map(|_| Err(std::io::ErrorKind::Other.into()));
        let ((theirs, ours), (their_second, our_second)) = (mcp_io::pair(1 << 10), mcp_io::pair(1 << 10));
        // The last comes first.
        let accepted = std::iter::once(Ok(their_second)).chain(failures());
        let shaky = Shaky(accepted.chain(std::iter::once(Ok(theirs))).chain(failures()).collect());
        let hasty = Hasty::default();
        let _served = rt::spawn(server(&Stage::default()).serve(Listen::new(hasty.clone(), shaky)));
        for ours in [ours, our_second] {
            let mut client = Client::new(ours);
            client.send(echo(1, "patience")).await;
            assert_eq!(text(&client.receive().await.unwrap()), "patience");
        }
        let pauses = hasty.set();
        assert_eq!(pauses.len(), 198);
        assert!(pauses.iter().all(|pause| *pause == Duration::from_millis(100)), "{pauses:?}");
    });
}

/// After the hundredth failure in a row the caller is told.
#[test]
fn a_socket_that_only_fails_ends_the_server() {
    rt::run(async {
        let shaky = Shaky((0..150).map(|_| Err(std::io::ErrorKind::OutOfMemory.into())).collect());
        let hasty = Hasty::default();
        let served = server(&Stage::default()).serve(Listen::new(hasty.clone(), shaky)).await;
        let Err(ServeError::Io(error)) = served else { panic!("{served:?}") };
        assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
        assert_eq!(hasty.set().len(), 99);
    });
}

/// The time to finish is the one that was set, on a socket and on a stream.
#[test]
fn the_drain_time_is_the_one_that_was_set() {
    rt::run(async {
        for socket in [true, false] {
            let (stage, hasty) = (Stage::default(), Hasty::default());
            let (theirs, ours) = mcp_io::pair(1 << 10);
            let drain = Duration::from_secs(40);
            let service = Server::build(server(&stage)).unwrap();
            let (stop, runtime) = (stage.clone(), hasty.clone());
            let served = rt::spawn(async move {
                let shutdown = async move { stop.opened("stop").await };
                if socket {
                    let listen = Listen::new(runtime, Shaky(vec![Ok(theirs)])).drain(drain);
                    service.serve_until(listen, shutdown).await
                } else {
                    service.serve_until(ByteStream::new(runtime, theirs).drain(drain), shutdown).await
                }
            });
            let mut client = Client::new(ours);
            client.send(gate(1, "a")).await;
            stage.crowd("a", 1).await;
            stage.open("stop");
            rt::eventually(|| hasty.set().contains(&drain)).await;
            stage.open("a");
            assert_eq!(client.rest().await, [(1, "a".into())]);
            served.await.unwrap();
        }
    });
}

/// Connections leave in another order than they came, and none is forgotten at the end.
#[test]
fn connections_may_leave_in_any_order() {
    rt::run(async {
        let stage = Stage::default();
        let (theirs, ours): (Vec<_>, Vec<_>) = (0..4).map(|_| mcp_io::pair(1 << 10)).unzip();
        let shaky = Shaky(theirs.into_iter().rev().map(Ok).collect());
        let (stop, listen) = (stage.clone(), Listen::new(rt::RUNTIME, shaky).max_connections(3));
        let served = rt::spawn(server(&stage).serve_until(listen, async move { stop.opened("stop").await }));
        let mut clients = ours.into_iter().map(Client::new);
        let [mut first, mut second, mut third, mut fourth] = std::array::from_fn(|_| clients.next().unwrap());
        first.finish().await;
        // It was let in when the first had left.
        fourth.send(echo(1, "in")).await;
        assert_eq!(text(&fourth.receive().await.unwrap()), "in");
        third.finish().await;
        assert_eq!(third.receive().await, None);
        stage.open("stop");
        assert_eq!((second.receive().await, fourth.receive().await), (None, None));
        served.await.unwrap();
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
