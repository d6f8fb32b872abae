//! One byte stream.

use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_io::{ByteStream, Io, MemoryStream, Serve, ServeError, pair};
use mcp_proto::limits::Limits;
use mcp_proto::service::{NoArguments, Principal, Server};
use serde_json::json;

use super::client::{Client, call, echo, gate, text};
use super::service::{PATIENT, Stage, server};
use crate::rt;

type Transport = ByteStream<rt::Runtime, MemoryStream>;

fn streams() -> (Transport, Client) {
    let (server, client) = pair(64 << 10);
    (ByteStream::new(rt::RUNTIME, server).drain(PATIENT), Client::new(client))
}

#[test]
fn requests_are_answered() {
    rt::run(async {
        let (transport, mut client) = streams();
        let served = rt::spawn(server(&Stage::default()).serve(transport));
        client.send(echo(1, "one")).await;
        let answer = client.receive().await.unwrap();
        assert_eq!((&answer["id"], text(&answer)), (&json!(1), "one".into()));
        client.send(echo(2, "two") + &echo(3, "three")).await;
        client.finish().await;
        assert_eq!(client.rest().await, [(2, "two".into()), (3, "three".into())]);
        served.await.unwrap();
    });
}

#[test]
fn a_message_may_come_in_any_pieces() {
    rt::run(async {
        let (transport, mut client) = streams();
        let served = rt::spawn(server(&Stage::default()).serve(transport));
        let message = echo(1, "snow ☃ man");
        for byte in message.as_bytes().chunks(1) {
            client.send(byte).await;
            rt::pause().await;
        }
        assert_eq!(text(&client.receive().await.unwrap()), "snow ☃ man");
        client.finish().await;
        served.await.unwrap();
    });
}

/// Messages far longer than any buffer on the way, in both directions.
#[test]
fn long_messages_pass() {
    rt::run(async {
        let (transport, mut client) = streams();
        let served = rt::spawn(server(&Stage::default()).serve(transport));
        let long = "long ".repeat(200_000);
        client.send(echo(1, &long)).await;
        assert!(text(&client.receive().await.unwrap()) == long);
        client.finish().await;
        served.await.unwrap();
    });
}

/// Z01, S-STDIO-05: what was accepted is answered after the end of the input, also the last line if it
/// lacks its end; then the stream is closed.
#[test]
fn the_end_of_input_finishes_accepted_work() {
    rt::run(async {
        let stage = Stage::default();
        let (transport, mut client) = streams();
        let served = rt::spawn(server(&stage).serve(transport));
        let half = gate(2, "b");
        client.send(gate(1, "a") + half.trim_end()).await;
        client.finish().await;
        stage.crowd("b", 1).await;
        stage.open("b");
        assert_eq!(text(&client.receive().await.unwrap()), "b");
        stage.open("a");
        assert_eq!(client.rest().await, [(1, "a".into())]);
        served.await.unwrap();
    });
}

/// Z01: within a bound.
#[test]
fn a_handler_that_never_ends_is_dropped_after_the_drain_time() {
    rt::run(async {
        let stage = Stage::default();
        let (transport, mut client) = streams();
        let served = rt::spawn(server(&stage).serve(transport.drain(Duration::from_millis(50))));
        client.send(call(1, "stuck", &json!({})) + &echo(2, "fine")).await;
        client.finish().await;
        assert_eq!(client.rest().await, [(2, "fine".into())]);
        served.await.unwrap();
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
    });
}

/// Z01: a peer that does not take what it is owed is waited for no longer than that.
#[test]
fn a_peer_that_does_not_read_cannot_hold_the_end_up() {
    rt::run(async {
        let (transport, mut client) = streams();
        let served = rt::spawn(server(&Stage::default()).serve(transport.drain(Duration::from_millis(50))));
        client.send(call(1, "blob", &json!({ "size": 100_000 }))).await;
        client.finish().await;
        served.await.unwrap();
    });
}

/// Far more output than the high-water mark, from requests that one read takes.
fn burst() -> String {
    (1..=40).map(|id| call(id, "blob", &json!({ "size": 100_000 }))).collect()
}

fn all_of(burst: &[(u64, String)]) -> bool {
    burst.iter().map(|(id, _)| *id).eq(1..=40) && burst.iter().all(|(_, text)| text.len() == 100_000)
}

/// What waits for the peer to read goes on once it does, though nothing more comes from it.
#[test]
fn a_burst_is_answered_whole_though_nothing_follows() {
    rt::run(async {
        let (transport, mut client) = streams();
        let _served = rt::spawn(server(&Stage::default()).serve(transport));
        client.send(burst()).await;
        let mut answers = Vec::new();
        while answers.len() < 40 {
            let answer = client.receive().await.unwrap();
            answers.push((answer["id"].as_u64().unwrap(), text(&answer)));
        }
        assert!(all_of(&answers));
    });
}

/// The end of the input loses nothing of a burst, its last line has no end.
#[test]
fn a_burst_is_answered_whole_though_the_input_ends() {
    rt::run(async {
        let (transport, mut client) = streams();
        let served = rt::spawn(server(&Stage::default()).serve(transport));
        client.send(burst().trim_end()).await;
        client.finish().await;
        assert!(all_of(&client.rest().await));
        served.await.unwrap();
    });
}

/// Z01: the end of the input is seen though nobody reads the answers and more requests stand before it.
#[test]
fn the_end_of_input_is_seen_behind_what_must_wait() {
    rt::run(async {
        let (transport, mut client) = streams();
        let served = rt::spawn(server(&Stage::default()).serve(transport.drain(Duration::from_millis(50))));
        client.send(burst() + &echo(41, &"x".repeat(200_000))).await;
        client.finish().await;
        served.await.unwrap();
    });
}

/// A stream whose peer reads no more, but may write.
struct Deaf(MemoryStream, io::ErrorKind);

impl Io for Deaf {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_read(cx, buf)
    }

    fn poll_write(&mut self, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(self.1.into()))
    }
}

/// A stream that passes nothing on before it is told to, as a buffered writer, is not closed by its peer in
/// order, as a TLS stream may, and perhaps never gets its own end through.
struct Lazy {
    io: MemoryStream,
    kept: Vec<u8>,
    ends: bool,
}

impl Io for Lazy {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match self.io.poll_read(cx, buf) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            other => other,
        }
    }

    fn poll_write(&mut self, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.kept.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.kept.is_empty() {
            let written = std::task::ready!(self.io.poll_write(cx, &self.kept))?;
            self.kept.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ends { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

/// Less than an answer fits, so that a flush takes several turns.
fn lazy(ends: bool) -> (ByteStream<rt::Runtime, Lazy>, Client) {
    let (theirs, ours) = pair(16);
    let lazy = Lazy { io: theirs, kept: Vec::new(), ends };
    (ByteStream::new(rt::RUNTIME, lazy).drain(PATIENT), Client::new(ours))
}

#[test]
fn a_stream_is_flushed() {
    rt::run(async {
        let (transport, mut client) = lazy(true);
        let served = rt::spawn(server(&Stage::default()).serve(transport));
        client.send(echo(1, "one")).await;
        assert_eq!(text(&client.receive().await.unwrap()), "one");
        client.send(echo(2, "two").trim_end()).await;
        client.finish().await;
        assert_eq!(client.rest().await, [(2, "two".into())]);
        served.await.unwrap();
    });
}

/// The end of the stream is not waited for beyond the drain time.
#[test]
fn an_end_that_never_gets_through_is_not_waited_for() {
    rt::run(async {
        let (transport, mut client) = lazy(false);
        let served = rt::spawn(server(&Stage::default()).serve(transport.drain(Duration::from_millis(50))));
        client.send(echo(1, "one")).await;
        assert_eq!(text(&client.receive().await.unwrap()), "one");
        client.finish().await;
        assert_eq!(client.receive().await, None);
        served.await.unwrap();
    });
}

/// The answer that is the last thing to do is passed on too, however long the peer takes for it.
#[test]
fn a_last_answer_is_flushed_before_the_stream_is_closed() {
    rt::run(async {
        let (transport, mut client) = lazy(true);
        let served = rt::spawn(server(&Stage::default()).serve(transport));
        // Answered without a handler, so that nothing else keeps the stream.
        client.send(r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#).await;
        client.finish().await;
        assert_eq!(client.receive().await.unwrap()["id"], 1);
        assert_eq!(client.receive().await, None);
        served.await.unwrap();
    });
}

/// A stream on which there is always more.
struct Endless(Arc<AtomicUsize>);

impl Io for Endless {
    fn poll_read(&mut self, _: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        buf.fill(b'\n');
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_write(&mut self, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }
}

#[test]
fn a_stream_without_pause_lets_others_run() {
    rt::run(async {
        let reads = Arc::<AtomicUsize>::default();
        let endless = ByteStream::new(rt::RUNTIME, Endless(Arc::clone(&reads)));
        let flag = Arc::new(Flag::default());
        let mut served = pin!(server(&Stage::default()).serve(endless));
        let waker = Waker::from(Arc::clone(&flag));
        for _ in 0..10 {
            let before = reads.load(Ordering::SeqCst);
            assert!(served.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert!((1..=100).contains(&(reads.load(Ordering::SeqCst) - before)));
            assert!(flag.0.swap(false, Ordering::SeqCst), "nobody wakes it");
        }
    });
}

/// Z02: a broken pipe is an end, not an error; calls of a peer that is gone are cancelled.
#[test]
fn a_broken_pipe_is_a_quiet_end() {
    rt::run(async {
        for kind in [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset] {
            let stage = Stage::default();
            let (theirs, ours) = pair(64 << 10);
            let served = rt::spawn(server(&stage).serve(ByteStream::new(rt::RUNTIME, Deaf(theirs, kind))));
            let mut client = Client::new(ours);
            client.send(call(1, "stuck", &json!({})) + &echo(2, "lost")).await;
            served.await.unwrap();
            rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
        }
    });
}

/// Any other failure is the caller's to know.
#[test]
fn other_failures_are_errors() {
    rt::run(async {
        let (theirs, ours) = pair(64 << 10);
        let deaf = Deaf(theirs, io::ErrorKind::StorageFull);
        let served = rt::spawn(server(&Stage::default()).serve(ByteStream::new(rt::RUNTIME, deaf)));
        Client::new(ours).send(echo(1, "lost")).await;
        let ServeError::Io(error) = served.await.unwrap_err() else { panic!() };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    });
}

#[test]
fn a_server_that_cannot_be_built_serves_nothing() {
    rt::run(async {
        let (transport, mut client) = streams();
        let twice = server(&Stage::default()).tool("echo", |_, _: NoArguments| async { Ok("again") });
        assert!(matches!(twice.serve(transport).await, Err(ServeError::Build(_))));
        assert_eq!(client.receive().await, None);
    });
}

#[test]
fn handlers_of_one_stream_run_side_by_side() {
    rt::run(async {
        let (transport, mut client) = streams();
        let served = rt::spawn(server(&Stage::default()).serve(transport));
        for id in 1..=16 {
            client.send(call(id, "meet", &json!({ "size": 16 }))).await;
        }
        client.finish().await;
        assert_eq!(client.rest().await, (1..=16).map(|id| (id, "met".into())).collect::<Vec<_>>());
        served.await.unwrap();
    });
}

#[test]
fn shutdown_ends_as_the_end_of_input_does() {
    rt::run(async {
        let stage = Stage::default();
        let (transport, mut client) = streams();
        let stop = stage.clone();
        let shutdown = async move { stop.crowd("stop", 1).await };
        let served = rt::spawn(server(&stage).serve_until(transport, shutdown));
        client.send(gate(1, "a")).await;
        stage.crowd("a", 1).await;
        client.send(gate(2, "stop")).await;
        stage.crowd("stop", 1).await;
        stage.open("a");
        stage.open("stop");
        assert_eq!(client.rest().await, [(1, "a".into()), (2, "stop".into())]);
        served.await.unwrap();
    });
}

#[test]
fn dropping_the_future_stops_everything() {
    rt::run(async {
        let stage = Stage::default();
        let (transport, mut client) = streams();
        client.send(call(1, "stuck", &json!({}))).await;
        {
            let mut served = pin!(server(&stage).serve(transport));
            poll_fn(|cx| {
                assert!(served.as_mut().poll(cx).is_pending());
                match stage.stuck.load(Ordering::SeqCst) {
                    0 => Poll::Pending,
                    _ => Poll::Ready(()),
                }
            })
            .await;
        }
        assert_eq!(client.receive().await, None);
        rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
    });
}

#[test]
fn deadlines_of_the_session_are_kept() {
    rt::run(async {
        let (transport, mut client) = streams();
        let mut limits = Limits::default();
        limits.request_timeout = Some(Duration::from_millis(100));
        let stage = Stage::default();
        let served = rt::spawn(server(&stage).limits(limits).serve(transport));
        // The deadline of a call that is answered leaves an alarm behind that goes off too early. On a busy
        // machine it may not be answered in time; not for ever.
        let mut next = 0;
        loop {
            let name = next.to_string();
            client.send(gate(next, &name)).await;
            stage.crowd(&name, 1).await;
            stage.open(&name);
            next += 1;
            let answer = client.receive().await.unwrap();
            if answer.get("error").is_none() {
                assert_eq!(text(&answer), name);
                break;
            }
        }
        for id in next..next + 2 {
            client.send(call(id, "stuck", &json!({}))).await;
            let answer = client.receive().await.unwrap();
            assert_eq!(answer["id"], id);
            assert!(answer["error"]["code"].is_i64(), "{answer}");
        }
        client.finish().await;
        served.await.unwrap();
    });
}

#[test]
fn handlers_know_whose_stream_it_is() {
    rt::run(async {
        let (transport, mut client) = streams();
        let transport = transport.principal(Principal::new("ada"));
        let served = rt::spawn(server(&Stage::default()).serve(transport));
        client.send(call(1, "who", &json!({}))).await;
        client.finish().await;
        assert_eq!(client.rest().await, [(1, "ada".into())]);
        served.await.unwrap();
    });
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Polls both until neither has been woken: then neither will go on without the other.
fn settle(
    server: &mut dyn FnMut(&mut Context<'_>) -> bool,
    client: &mut dyn FnMut(&mut Context<'_>) -> bool,
) {
    let flag = Arc::new(Flag(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&flag));
    let cx = &mut Context::from_waker(&waker);
    while flag.0.swap(false, Ordering::SeqCst) {
        while client(cx) {}
        if server(cx) {
            return;
        }
    }
}

/// Reads once. Whether anything came.
fn count_lines(io: &mut MemoryStream, cx: &mut Context<'_>, buf: &mut [u8], lines: &mut usize) -> bool {
    let Poll::Ready(got) = io.poll_read(cx, buf) else { return false };
    let got = got.unwrap();
    *lines += buf[..got].iter().filter(|&&byte| byte == b'\n').count();
    got > 0
}

/// A client that writes for ever and never reads is stopped; once it reads, nothing is lost.
#[test]
fn a_client_that_never_reads_is_accepted_no_more_from() {
    rt::run(async {
        const CAPACITY: usize = 64 << 10;
        for request in
            [echo(7, "small"), echo(7, &"x".repeat(3000)), call(7, "blob", &json!({ "size": 9000 }))]
        {
            let (theirs, mut ours) = pair(CAPACITY);
            let transport = ByteStream::new(rt::RUNTIME, theirs).drain(PATIENT);
            let mut served = pin!(server(&Stage::default()).serve(transport));
            let mut serve = |cx: &mut Context<'_>| served.as_mut().poll(cx).is_ready();
            let mut written = 0;
            settle(&mut serve, &mut |cx| {
                let at = written % request.len();
                match ours.poll_write(cx, &request.as_bytes()[at..]) {
                    Poll::Ready(some) => written += some.unwrap(),
                    Poll::Pending => return false,
                }
                assert!(written < 16 << 20, "accepts without end");
                true
            });
            assert!(written - CAPACITY < 2 << 20, "accepted {written} bytes");
            assert!(written > CAPACITY, "accepted nothing");

            // The rest of the last request, and the answers to all of them.
            let mut rest = &request.as_bytes()[written % request.len()..];
            if rest.len() == request.len() {
                rest = &[];
            }
            let (mut answers, mut buf, mut over) = (0, vec![0; CAPACITY], false);
            settle(&mut serve, &mut |cx| {
                let mut moved = false;
                if !rest.is_empty()
                    && let Poll::Ready(some) = ours.poll_write(cx, rest)
                {
                    rest = &rest[some.unwrap()..];
                    moved = true;
                }
                if rest.is_empty() && !over {
                    over = ours.poll_close(cx).is_ready();
                }
                let got = count_lines(&mut ours, cx, &mut buf, &mut answers);
                moved || got
            });
            let cx = &mut Context::from_waker(Waker::noop());
            while count_lines(&mut ours, cx, &mut buf, &mut answers) {}
            assert_eq!(answers, written.div_ceil(request.len()));
        }
    });
}

/// Trap 10: the framing is not in the future. The loop is polled again and again for no reason.
#[test]
fn needless_polls_change_nothing() {
    rt::run(async {
        let (transport, mut client) = streams();
        let served = rt::spawn(async move {
            let mut served = pin!(server(&Stage::default()).serve(transport));
            let mut polls = 0;
            poll_fn(|cx| {
                polls += 1;
                if polls < 1000 {
                    cx.waker().wake_by_ref();
                }
                served.as_mut().poll(cx)
            })
            .await
        });
        for id in 0..100 {
            let message = echo(id, "again");
            let (a, b) = message.split_at(id as usize);
            client.send(a).await;
            rt::pause().await;
            client.send(b).await;
            assert_eq!(client.receive().await.unwrap()["id"], id);
        }
        client.finish().await;
        served.await.unwrap();
    });
}

/// A service is cheap to clone and serves many streams; one that never ends keeps none of the others.
#[test]
fn one_service_serves_many_streams() {
    rt::run(async {
        let service = Server::build(server(&Stage::default())).unwrap();
        let (idle, _keep) = streams();
        let (other, mut client) = streams();
        let _idle = rt::spawn(service.clone().serve_until(idle, pending()));
        let served = rt::spawn(service.serve(other));
        client.send(echo(1, "one")).await;
        client.finish().await;
        assert_eq!(client.rest().await, [(1, "one".into())]);
        served.await.unwrap();
    });
}
