//! The loop of a client: one future for each byte stream.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_proto::service::client::Link;
use mcp_proto::time::Instant;

use crate::drive::{Alarm, ReadSize};
use crate::{Io, Runtime};

/// Turns of the loop within one poll.
const TURNS: usize = 32;

/// How long a server may take to read what is due when the client is closed, and how long what it still says is
/// waited for once it reads nothing any more.
const LINGER: Duration = Duration::from_secs(1);

/// Why the loop has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nothing is wanted of the server any more.
    Here,
    /// The server has closed its end or broken off. The link knows.
    There,
}

/// Drives `link`, which was started, until it is done or the stream has ended.
pub(super) async fn drive<R: Runtime, I: Io>(link: &mut Link, io: &mut I, runtime: &R) -> Ended {
    let alarm = Alarm::new(runtime);
    let mut stream = Stream {
        link,
        io,
        runtime,
        alarm,
        room: ReadSize::default(),
        flushed: true,
        last: None,
        deaf: false,
        yielded: false,
    };
    let ended = poll_fn(|cx| stream.poll(cx)).await;
    match ended {
        Ended::Here => {
            let mut alarm = Alarm::new(runtime);
            let deadline = runtime.now() + LINGER;
            poll_fn(|cx| match io.poll_close(cx) {
                Poll::Ready(_) => Poll::Ready(()),
                Poll::Pending => alarm.poll_until(cx, deadline),
            })
            .await;
        }
        Ended::There => link.end_of_input(runtime.now()),
    }
    ended
}

/// There is no server, until `deadline`. Whether one is still wanted then; less is waited for if none is.
pub(super) async fn outlast<R: Runtime>(link: &mut Link, runtime: &R, deadline: Instant) -> bool {
    let mut idle = Idle::new(link, runtime);
    let mut alarm = Alarm::new(runtime);
    poll_fn(|cx| match idle.poll(cx) {
        Poll::Ready(()) => Poll::Ready(false),
        Poll::Pending if runtime.now() >= deadline => Poll::Ready(true),
        Poll::Pending => alarm.poll_until(cx, deadline).map(|()| true),
    })
    .await
}

/// There is no server, until `future` has come to its end.
pub(super) async fn meanwhile<R: Runtime, F: Future>(link: &mut Link, runtime: &R, future: F) -> F::Output {
    let mut idle = Idle::new(link, runtime);
    let mut future = pin!(future);
    poll_fn(|cx| {
        let _ = idle.poll(cx);
        future.as_mut().poll(cx)
    })
    .await
}

/// A link without a stream: calls are made, and given up.
struct Idle<'l, R: Runtime> {
    link: &'l mut Link,
    runtime: &'l R,
    alarm: Alarm<'l, R>,
}

impl<'l, R: Runtime> Idle<'l, R> {
    const fn new(link: &'l mut Link, runtime: &'l R) -> Self {
        Self { link, runtime, alarm: Alarm::new(runtime) }
    }

    /// Ready once nothing is wanted any more.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS {
            self.link.process(self.runtime.now());
            while let Some(job) = self.link.next_job() {
                self.runtime.spawn(job);
            }
            if self.link.is_done() {
                return Poll::Ready(());
            }
            if self.link.poll_calls(cx).is_ready() {
                continue;
            }
            let Some(due) = self.link.next_deadline() else { return Poll::Pending };
            if self.alarm.poll_until(cx, due).is_pending() {
                return Poll::Pending;
            }
            self.link.handle_timeout(self.runtime.now());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

struct Stream<'s, R: Runtime, I> {
    link: &'s mut Link,
    io: &'s mut I,
    runtime: &'s R,
    alarm: Alarm<'s, R>,
    room: ReadSize,
    flushed: bool,
    /// By when it has to be over.
    last: Option<Instant>,
    /// The server reads nothing any more.
    deaf: bool,
    /// Others were let run before the calls that have come are made.
    yielded: bool,
}

impl<R: Runtime, I: Io> Stream<'_, R, I> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        for _ in 0..TURNS {
            let wrote = self.write(cx);
            let Ok(read) = self.read(cx) else { return Poll::Ready(Ended::There) };
            self.spawn_jobs();
            if self.link.is_done() {
                return Poll::Ready(Ended::Here);
            }
            if wrote || read {
                continue;
            }
            if self.link.poll_calls(cx).is_ready() {
                // Runtimes run at once whoever is woken: it would be the first call of many, alone.
                if !std::mem::replace(&mut self.yielded, true) && self.link.expects_calls() {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                self.yielded = false;
                self.process();
                continue;
            }
            if self.link.is_closing() || self.deaf {
                let ended = if self.link.is_closing() { Ended::Here } else { Ended::There };
                let deadline = *self.last.get_or_insert_with(|| self.runtime.now() + LINGER);
                if self.alarm.poll_until(cx, deadline).is_ready() {
                    return Poll::Ready(ended);
                }
            } else if let Some(deadline) = self.link.next_deadline()
                && self.alarm.poll_until(cx, deadline).is_ready()
            {
                self.link.handle_timeout(self.runtime.now());
                continue;
            }
            return Poll::Pending;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether anything was written. A server that takes nothing may still have something to say.
    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        let pending = self.link.output();
        if self.deaf {
            let left = pending.len();
            self.link.advance(left);
            return false;
        }
        let written = match pending.is_empty() {
            true => Poll::Pending,
            false => self.io.poll_write(cx, pending),
        };
        match written {
            Poll::Ready(Ok(written @ 1..)) => {
                self.link.advance(written);
                self.flushed = false;
                if self.link.holds_back() {
                    self.process();
                }
                return true;
            }
            Poll::Ready(_) => self.deaf = true,
            Poll::Pending if !self.flushed => match self.io.poll_flush(cx) {
                Poll::Ready(Ok(())) => self.flushed = true,
                Poll::Ready(Err(_)) => self.deaf = true,
                Poll::Pending => {}
            },
            Poll::Pending => {}
        }
        // What was not written is forgotten in the next turn.
        self.deaf
    }

    /// Whether anything came; an error at the end of the stream, however it ends.
    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if !self.link.wants_input() {
            return Ok(false);
        }
        let buf = self.link.spare(self.room.0);
        let len = buf.len();
        let got = match self.io.poll_read(cx, buf) {
            Poll::Pending => return Ok(false),
            Poll::Ready(got) => got?,
        };
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.link.commit(got);
        self.room.adapt(got, len);
        self.process();
        Ok(true)
    }

    fn process(&mut self) {
        self.link.process(self.runtime.now());
        self.spawn_jobs();
    }

    fn spawn_jobs(&mut self) {
        while let Some(job) = self.link.next_job() {
            self.runtime.spawn(job);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::{Wake, Waker};

    use mcp_proto::client::Mode;
    use mcp_proto::service::client::Client;
    use serde_json::{Value, json};

    use super::*;
    use crate::Timer;

    /// Time stands still, and nothing is spawned.
    #[derive(Clone)]
    struct Still;

    struct Never;

    impl Timer for Never {
        fn reset(&mut self, _: Instant) {}

        fn poll(&mut self, _: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }
    }

    impl Runtime for Still {
        type Timer = Never;
        #[cfg(unix)]
        type Fd = Wire;

        fn now(&self) -> Instant {
            Instant::from_origin(Duration::ZERO)
        }

        fn timer(&self, _: Instant) -> Never {
            Never
        }

        fn spawn(&self, _: impl Future<Output = ()> + Send + 'static) {
            unreachable!("there are no responders")
        }

        #[cfg(unix)]
        fn watch(&self, _: crate::End) -> io::Result<Wire> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// A server that answers all that comes in one write with one write, and counts how many messages those had.
    #[derive(Clone, Default)]
    struct Wire(Arc<Mutex<Traffic>>);

    #[derive(Default)]
    struct Traffic {
        writes: Vec<usize>,
        answers: VecDeque<Vec<u8>>,
    }

    impl Wire {
        fn writes(&self) -> Vec<usize> {
            self.0.lock().unwrap().writes.clone()
        }
    }

    impl Io for Wire {
        fn poll_read(&mut self, _: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
            let Some(answers) = self.0.lock().unwrap().answers.pop_front() else { return Poll::Pending };
            buf[..answers.len()].copy_from_slice(&answers);
            Poll::Ready(Ok(answers.len()))
        }

        fn poll_write(&mut self, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            let lines = buf.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let requests: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
            let mut answers = Vec::new();
            for request in &requests {
                let result = match request["method"].as_str() {
                    Some("server/discover") => json!({
                        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                        "serverInfo": { "name": "wire", "version": "1" }, "ttlMs": 0, "cacheScope": "private",
                    }),
                    _ => json!({ "resultType": "complete", "content": [] }),
                };
                let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
                answers.extend_from_slice(format!("{answer}\n").as_bytes());
            }
            let mut wire = self.0.lock().unwrap();
            wire.writes.push(requests.len());
            wire.answers.push_back(answers);
            Poll::Ready(Ok(buf.len()))
        }
    }

    #[derive(Default)]
    struct Bell(AtomicBool);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn calls_of_those_who_were_answered_together_go_out_together() {
        let (wire, bell) = (Wire::default(), Arc::new(Bell::default()));
        let waker = Waker::from(Arc::clone(&bell));
        let cx = &mut Context::from_waker(&waker);
        let (connecting, mut link) = Client::new("test", "1").mode(Mode::Modern).link();
        let mut connecting = pin!(connecting);
        link.start(Still.now());
        let mut io = wire.clone();
        let mut driving = pin!(drive(&mut link, &mut io, &Still));
        assert!(driving.as_mut().poll(cx).is_pending());
        let Poll::Ready(Ok(client)) = connecting.as_mut().poll(cx) else { panic!("it is not connected") };

        let mut calls: Vec<_> = (0..3).map(|_| client.call_tool("any", json!({}))).collect();
        for call in &mut calls {
            assert!(Pin::new(call).poll(cx).is_pending());
        }
        assert!(driving.as_mut().poll(cx).is_pending());
        assert_eq!(wire.writes(), [1, 3]);
        for call in &mut calls {
            assert!(matches!(Pin::new(call).poll(cx), Poll::Ready(Ok(_))));
        }

        // The runtime runs the driver as soon as the first of them calls again.
        let mut calls: Vec<_> = (0..3).map(|_| client.call_tool("any", json!({}))).collect();
        assert!(Pin::new(&mut calls[0]).poll(cx).is_pending());
        bell.0.store(false, Ordering::Relaxed);
        assert!(driving.as_mut().poll(cx).is_pending());
        assert_eq!((wire.writes().len(), bell.0.load(Ordering::Relaxed)), (2, true), "it lets others run");
        for call in &mut calls[1..] {
            assert!(Pin::new(call).poll(cx).is_pending());
        }
        assert!(driving.as_mut().poll(cx).is_pending());
        assert_eq!(wire.writes(), [1, 3, 3]);
        for call in &mut calls {
            assert!(matches!(Pin::new(call).poll(cx), Poll::Ready(Ok(_))));
        }

        // If nobody else calls it waits no longer, and one alone is never kept waiting.
        for (polls, writes) in [(2, 4), (1, 5)] {
            let mut call = client.call_tool("any", json!({}));
            assert!(Pin::new(&mut call).poll(cx).is_pending());
            for _ in 0..polls {
                assert!(driving.as_mut().poll(cx).is_pending());
            }
            assert_eq!(wire.writes().len(), writes);
            assert!(matches!(Pin::new(&mut call).poll(cx), Poll::Ready(Ok(_))));
        }
    }
}
