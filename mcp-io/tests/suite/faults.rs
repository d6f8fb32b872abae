//! Faults of a stream at every step, for both sides: pieces of any size, pauses, ends and errors.
//!
//! What has to hold whatever happens: nothing is answered twice; nothing that was accepted stays unanswered while the
//! stream lives; what was cancelled is not answered; and nothing runs on once the stream has ended.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use mcp_io::client::Connect;
use mcp_io::{ByteStream, Io, MemoryStream, Serve, ServeError, pair};
use mcp_proto::client::{CallError, Mode};
use mcp_proto::service::Server;
use serde_json::{Value, json};

use super::client::{call, echo, gate, text};
use super::connect::{client, echo as called};
use super::service::{PATIENT, Stage, server};
use crate::rt;

/// What goes wrong, and at which step: the first has the number 0.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Nothing,
    /// From this read on the stream is at its end.
    End(usize),
    /// From this read on there is an error.
    Read(usize, io::ErrorKind),
    /// From this write on, also of what is flushed.
    Write(usize, io::ErrorKind),
}

/// A stream that takes and gives pieces of up to so many bytes, and pauses before each.
struct Faulty {
    io: MemoryStream,
    piece: usize,
    fault: Fault,
    reads: Way,
    writes: Way,
    /// Whether the fault came to pass.
    met: Arc<AtomicBool>,
}

/// One direction: how many steps there were, and whether it pauses.
#[derive(Default)]
struct Way {
    steps: usize,
    paused: bool,
}

impl Way {
    /// Whether it is time for a pause. It is over at once.
    fn pauses(&mut self, cx: &Context<'_>) -> bool {
        self.paused = !self.paused;
        if self.paused {
            cx.waker().wake_by_ref();
        }
        self.paused
    }
}

impl Faulty {
    fn new(io: MemoryStream, piece: usize, fault: Fault) -> Self {
        let (reads, writes) = (Way::default(), Way::default());
        Self { io, piece, fault, reads, writes, met: Arc::default() }
    }

    fn fails<T>(&self, how: io::Result<T>) -> Poll<io::Result<T>> {
        self.met.store(true, Ordering::SeqCst);
        Poll::Ready(how)
    }
}

impl Io for Faulty {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.reads.pauses(cx) {
            return Poll::Pending;
        }
        match self.fault {
            Fault::End(at) if self.reads.steps >= at => return self.fails(Ok(0)),
            Fault::Read(at, kind) if self.reads.steps >= at => return self.fails(Err(kind.into())),
            _ => {}
        }
        let most = buf.len().min(self.piece);
        let read = self.io.poll_read(cx, &mut buf[..most]);
        if matches!(read, Poll::Ready(Ok(1..))) {
            self.reads.steps += 1;
        }
        read
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.writes.pauses(cx) {
            return Poll::Pending;
        }
        if let Fault::Write(at, kind) = self.fault
            && self.writes.steps >= at
        {
            return self.fails(Err(kind.into()));
        }
        let written = self.io.poll_write(cx, &buf[..buf.len().min(self.piece)]);
        if written.is_ready() {
            self.writes.steps += 1;
        }
        written
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_close(cx)
    }
}

const GONE: [io::ErrorKind; 2] = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];

fn cancel(id: u64) -> String {
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    format!("{cancel}\n")
}

/// What is asked of a server: answers at once, one that waits, a long one, none. The last is one that never ends, which
/// is cancelled; not so where the input may end between the two, as it would be waited for then.
fn script(fault: Fault) -> Vec<String> {
    let mut lines = vec![
        echo(2, "one"),
        gate(3, "late"),
        call(4, "blob", &json!({ "size": 900 })),
        echo(6, "☃"),
        r#"{"jsonrpc":"2.0","id":8,"method":"no/such"}"#.to_owned() + "\n",
        echo(10, "last"),
    ];
    if !matches!(fault, Fault::End(_)) {
        lines.splice(2..2, [call(5, "stuck", &json!({})), cancel(5)]);
    }
    lines
}

/// Everything that comes, to the end of the stream or the error.
async fn hear(mut io: MemoryStream) -> Vec<u8> {
    let (mut all, mut buf) = (Vec::new(), [0; 4096]);
    loop {
        match poll_fn(|cx| io.poll_read(cx, &mut buf)).await {
            Ok(0) | Err(_) => return all,
            Ok(got) => all.extend_from_slice(&buf[..got]),
        }
    }
}

async fn say(io: &mut MemoryStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = poll_fn(|cx| io.poll_write(cx, bytes)).await?;
        bytes = &bytes[written..];
    }
    poll_fn(|cx| io.poll_close(cx)).await
}

/// The answers among the lines that are whole, by id; each is there once.
fn answers(heard: &[u8]) -> BTreeMap<u64, Value> {
    let whole = heard.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut answers = BTreeMap::new();
    for line in heard[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value = serde_json::from_slice(line).unwrap();
        let Some(id) = message["id"].as_u64() else { continue };
        assert!(answers.insert(id, message).is_none(), "{id} is answered twice");
    }
    answers
}

/// Plays the script to a server behind a faulty stream. What it answered, how it ended, and whether the fault came to pass.
async fn served(piece: usize, fault: Fault) -> (BTreeMap<u64, Value>, Result<(), ServeError>, bool) {
    let stage = Stage::default();
    // The gate is open at the end of what is said, whether it was heard or not.
    let late = stage.clone();
    let (theirs, mut ours) = pair(16 << 10);
    let faulty = Faulty::new(theirs, piece, fault);
    let met = Arc::clone(&faulty.met);
    let serving = server(&stage).serve(ByteStream::new(rt::RUNTIME, faulty).drain(PATIENT));
    let serving = rt::spawn(serving);
    // It may be gone before all is said.
    let _ = say(&mut ours, script(fault).concat().as_bytes()).await;
    late.open("late");
    let heard = answers(&hear(ours).await);
    let ended = serving.await;
    rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
    (heard, ended, met.load(Ordering::SeqCst))
}

/// However the bytes are cut and whatever the pauses, the answers are those of one read and one write.
#[test]
fn pieces_and_pauses_change_no_answer() {
    rt::run(async {
        for piece in [1, 2, 3, 7, 64, 1000, 1 << 20] {
            let (heard, ended, _) = served(piece, Fault::Nothing).await;
            ended.unwrap();
            let ids: Vec<_> = heard.keys().copied().collect();
            assert_eq!(ids, [2, 3, 4, 6, 8, 10], "pieces of {piece}");
            assert_eq!(
                (text(&heard[&2]), text(&heard[&3]), text(&heard[&6])),
                ("one".into(), "late".into(), "☃".into())
            );
            assert_eq!(text(&heard[&4]).len(), 900);
            assert!(heard[&8]["error"]["code"].is_i64());
        }
    });
}

/// Z01, Z02: the input ends after each piece of it. What was accepted before is answered.
#[test]
fn the_input_may_end_anywhere() {
    rt::run(async {
        // Where each message ends.
        let mut at = 0;
        let ends: Vec<_> = script(Fault::End(0))
            .iter()
            .map(|line| {
                at += line.len();
                let message: Value = serde_json::from_str(line).unwrap();
                (message["id"].as_u64().unwrap(), at)
            })
            .collect();
        let piece = 23;
        for end in 0.. {
            let (heard, ended, met) = served(piece, Fault::End(end)).await;
            ended.unwrap();
            for (id, at) in &ends {
                // The last line counts without its end, too.
                let accepted = *at <= end * piece + 1;
                assert_eq!(heard.contains_key(id), accepted, "{id} at the end after {} bytes", end * piece);
            }
            if !met {
                return;
            }
        }
    });
}

/// Z02: the peer is gone at each read; that is a quiet end.
#[test]
fn the_input_may_break_anywhere() {
    rt::run(async {
        for at in 0.. {
            let (heard, ended, met) = served(101, Fault::Read(at, GONE[at % 2])).await;
            ended.unwrap();
            assert!(!heard.contains_key(&5), "what was cancelled is answered");
            if !met {
                return;
            }
        }
    });
}

/// Z02: the peer is gone at each write.
#[test]
fn the_output_may_break_anywhere() {
    rt::run(async {
        for at in 0.. {
            let (heard, ended, met) = served(31, Fault::Write(at, GONE[at % 2])).await;
            ended.unwrap();
            if !met {
                assert_eq!(heard.len(), 6);
                return;
            }
            assert!(heard.len() < 6);
        }
    });
}

/// A failure that does not say that the peer has gone is told, wherever it comes.
#[test]
fn other_failures_are_told_wherever_they_come() {
    rt::run(async {
        let kind = io::ErrorKind::StorageFull;
        for at in [0, 1, 5, 20] {
            for fault in [Fault::Read(at, kind), Fault::Write(at, kind)] {
                let (_, ended, _) = served(31, fault).await;
                let Err(ServeError::Io(error)) = ended else { panic!("{fault:?}: {ended:?}") };
                assert_eq!(error.kind(), kind);
            }
        }
    });
}

/// A server that answers everything but what is stuck.
fn behind(io: MemoryStream, stage: &Stage) -> impl Future<Output = Result<(), ServeError>> + use<> {
    let server: Server = server(stage);
    rt::spawn(server.serve(ByteStream::new(rt::RUNTIME, io).drain(PATIENT)))
}

/// Calls through a faulty stream. How many were answered, and whether the fault came to pass.
async fn asked(mode: Mode, piece: usize, fault: Fault) -> (usize, bool) {
    let stage = Stage::default();
    let (theirs, ours) = pair(16 << 10);
    let faulty = Faulty::new(ours, piece, fault);
    let met = Arc::clone(&faulty.met);
    let serving = behind(theirs, &stage);
    let connected = client().mode(mode).connect(ByteStream::new(rt::RUNTIME, faulty)).await;
    let mut answered = 0;
    // A connection that cannot be made is an error, and leaves nothing behind.
    if let Ok(client) = connected {
        let calls: Vec<_> = (0..6)
            .map(|number| {
                let client = client.clone();
                rt::spawn(async move {
                    let text = format!("{number} ☃");
                    let outcome = client.call_tool("echo", json!({ "text": text })).await;
                    match outcome {
                        Ok(result) => {
                            assert_eq!(result.content[0].as_text(), Some(text.as_str()));
                            1
                        }
                        // Never the answer of another, and no other error.
                        Err(CallError::Closed) => 0,
                        Err(other) => panic!("{other:?}"),
                    }
                })
            })
            .collect();
        for call in calls {
            answered += call.await;
        }
        if answered == 6 && matches!(fault, Fault::Nothing) {
            assert_eq!(called(&client, "once more").await, "once more");
        }
        client.close().await;
        client.closed().await;
    }
    serving.await.unwrap();
    rt::eventually(|| stage.stuck.load(Ordering::SeqCst) == 0).await;
    (answered, met.load(Ordering::SeqCst))
}

#[test]
fn pieces_and_pauses_change_no_call() {
    rt::run(async {
        for mode in [Mode::Auto, Mode::Legacy] {
            for piece in [1, 3, 64, 1 << 20] {
                assert_eq!(asked(mode, piece, Fault::Nothing).await.0, 6, "pieces of {piece}");
            }
        }
    });
}

/// C07, Z02: whatever breaks at whichever step, each call ends once: with its own answer, or as closed.
#[test]
fn each_call_ends_wherever_the_stream_breaks() {
    rt::run(async {
        for mode in [Mode::Auto, Mode::Legacy] {
            let faults: [fn(usize) -> Fault; 3] =
                [Fault::End, |at| Fault::Read(at, GONE[at % 2]), |at| Fault::Write(at, GONE[at % 2])];
            for fault in faults {
                let mut whole = false;
                for at in 0.. {
                    let (answered, met) = asked(mode, 97, fault(at)).await;
                    whole |= answered == 6;
                    if !met {
                        break;
                    }
                }
                assert!(whole, "the last of them breaks nothing");
            }
        }
    });
}
