//! Handlers on threads of their own, over stdin and stdout, with nothing but the standard library.
//!
//! ```text
//!   reader thread ──bytes──►┐                       ┌──bytes──► writer thread
//!                           ├──► this thread: owns ─┤
//!   worker threads ─answers►┘    the machine        └──work───► worker threads
//! ```
//!
//! One thread owns the machine, so nothing is locked. It never blocks on the client: it waits for the next
//! message or the next deadline. The reader stops while too much output waits, so that a client which does
//! not read is slowed down instead of buffered for.
#![allow(clippy::disallowed_methods, clippy::print_stderr)] // a driver owns the clock and the terminal

mod tools;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{self, Duration};

use mcp_proto::codec::{Frame, LineBuffer};
use mcp_proto::model::CallToolResult;
use mcp_proto::model::method::CallTool;
use mcp_proto::server::{
    Call, Channel, Connection, Delivery, Event, Incoming, Pending, Progress, RequestKey,
};
use mcp_proto::time::Instant;

/// How long accepted calls may go on after the end of the input.
const DRAIN: Duration = Duration::from_secs(5);

fn main() -> io::Result<()> {
    serve(io::stdin(), io::stdout())
}

/// What the other threads tell the one that owns the machine.
enum Message {
    Read(Vec<u8>),
    InputEnded,
    Progress {
        key: RequestKey,
        step: u32,
        steps: u32,
    },
    /// The right to answer travels to the worker and back.
    Done {
        pending: Pending<CallTool>,
        result: CallToolResult,
    },
}

/// Serves one stream until its end.
pub(crate) fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let config = tools::config();
    let backlog = Arc::new(Backlog::default());
    // Bounded: a reader that is faster than the machine waits.
    let (messages, inbox) = mpsc::sync_channel(64);
    let (outbox, to_write) = mpsc::channel();
    let high_water = config.limits.output_high_water;
    let reader = (Arc::clone(&backlog), messages.clone());
    // Not joined: it may sit in a read that never returns.
    thread::spawn(move || read(input, &reader.0, high_water, &reader.1));
    let writer = {
        let backlog = Arc::clone(&backlog);
        thread::spawn(move || write(output, &to_write, &backlog))
    };
    let driver = Driver {
        lines: LineBuffer::new(config.limits.max_message),
        server: Connection::new(config),
        out: Vec::new(),
        start: time::Instant::now(),
        messages,
        running: BTreeMap::new(),
    };
    driver.run(&inbox, &outbox, &backlog);
    drop(outbox);
    // The last answers are out when the writer is done.
    writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
}

struct Driver {
    server: Connection,
    lines: LineBuffer,
    out: Vec<u8>,
    start: time::Instant,
    messages: SyncSender<Message>,
    /// The calls that run, each with its flag for "stop".
    running: BTreeMap<RequestKey, Arc<AtomicBool>>,
}

impl Driver {
    fn now(&self) -> Instant {
        Instant::from_origin(self.start.elapsed())
    }

    fn run(mut self, inbox: &Receiver<Message>, outbox: &Sender<Vec<u8>>, backlog: &Backlog) {
        let mut give_up_at = None;
        loop {
            // Wake for the machine's next deadline, or for our own.
            let deadline = self.server.next_deadline().into_iter().chain(give_up_at).min();
            let message = match deadline {
                Some(deadline) => match inbox.recv_timeout(deadline - self.now()) {
                    Err(RecvTimeoutError::Disconnected) => return,
                    message => message.ok(),
                },
                None => match inbox.recv() {
                    Err(_) => return,
                    message => message.ok(),
                },
            };
            match message {
                Some(Message::Read(bytes)) => {
                    self.lines.extend(&bytes);
                    self.frames(false);
                }
                Some(Message::InputEnded) => {
                    self.frames(true);
                    self.server.end_of_input(&mut self.out);
                    give_up_at = Some(self.now() + DRAIN);
                }
                Some(Message::Progress { key, step, steps }) => {
                    let progress = Progress::new(step.into()).of(steps.into());
                    let _ = self.server.progress_of(key, progress, &mut self.out);
                }
                Some(Message::Done { pending, result }) => {
                    self.running.remove(&pending.key());
                    // Discarded if the client gave up in the meantime.
                    let _ = self.server.respond(pending, &result, &mut self.out);
                }
                None => {}
            }
            while let Some(event) = self.server.handle_timeout(self.now(), &mut self.out) {
                self.event(event);
            }
            if !self.out.is_empty() {
                backlog.add(self.out.len());
                if outbox.send(core::mem::take(&mut self.out)).is_err() {
                    return; // the client is gone
                }
            }
            if let Some(at) = give_up_at
                && (self.server.in_flight() == 0 || at <= self.now())
            {
                return;
            }
        }
    }

    fn frames(&mut self, ended: bool) {
        // The buffer lends the frame while the rest of the driver is at work on it.
        let mut lines = core::mem::replace(&mut self.lines, LineBuffer::new(0));
        while let Some(frame) = if ended { lines.finish() } else { lines.next_frame() } {
            let now = self.now();
            let event = match frame {
                Frame::Line(line) => self.server.handle(line, now, &mut self.out),
                Frame::TooLong { .. } => Some(self.server.refuse_oversized(&mut self.out)),
            };
            match event {
                Some(Event::Batch(members)) => {
                    for member in members {
                        if let Some(event) = self.server.handle_member(member, now, &mut self.out) {
                            self.event(event);
                        }
                    }
                }
                Some(event) => self.event(event),
                None => {}
            }
        }
        self.lines = lines;
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Request(incoming) => self.request(incoming),
            Event::Cancelled { key, .. } | Event::TimedOut { key } => {
                if let Some(stop) = self.running.remove(&key) {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            Event::Rejected(violation) => eprintln!("refused: {}", violation.error),
            _ => {}
        }
    }

    fn request(&mut self, incoming: Incoming<'_>) {
        let Self { server, out, .. } = self;
        let version = incoming.version;
        let _: Delivery = match incoming.typed() {
            Ok(Call::ListTools(pending, params)) => match tools::list(params.cursor.as_deref()) {
                Ok(result) => server.respond(pending, &result, out),
                Err(error) => server.fail(pending, &error, out),
            },
            Ok(Call::CallTool(pending, params)) => match tools::call(version, &params) {
                Ok(tools::Work::Done(result)) => server.respond(pending, &result, out),
                Ok(tools::Work::Slow { steps }) => return self.start(pending, steps),
                Err(error) => server.fail(pending, &error, out),
            },
            Ok(Call::Listen(pending, _)) => server.acknowledge(pending, &Default::default(), out),
            Ok(Call::Other(incoming)) => server.refuse(incoming.not_found(), out),
            Err(refusal) => server.refuse(refusal, out),
            Ok(_) => Delivery::Discarded,
        };
    }

    /// Gives a call to a thread. `max_in_flight` bounds how many there are.
    fn start(&mut self, pending: Pending<CallTool>, steps: u32) {
        let stop = Arc::new(AtomicBool::new(false));
        self.running.insert(pending.key(), Arc::clone(&stop));
        let messages = self.messages.clone();
        thread::spawn(move || {
            for step in 1..=steps {
                thread::sleep(tools::STEP);
                if stop.load(Ordering::Relaxed) {
                    return; // the right to answer is dropped: the request is over
                }
                let key = pending.key();
                if messages.send(Message::Progress { key, step, steps }).is_err() {
                    return;
                }
            }
            let result = CallToolResult::text(format!("{steps} steps"));
            let _ = messages.send(Message::Done { pending, result });
        });
    }
}

/// How many bytes of output wait to be written.
#[derive(Default)]
struct Backlog {
    bytes: Mutex<usize>,
    less: Condvar,
}

impl Backlog {
    fn add(&self, bytes: usize) {
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
    }

    fn written(&self, bytes: usize) {
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
        self.less.notify_all();
    }

    fn wait_below(&self, mark: usize) {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let _below =
            self.less.wait_while(bytes, |bytes| *bytes >= mark).unwrap_or_else(PoisonError::into_inner);
    }
}

fn read(mut input: impl Read, backlog: &Backlog, high_water: usize, messages: &SyncSender<Message>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        backlog.wait_below(high_water);
        let message = match input.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => Message::InputEnded,
            Ok(read) => Message::Read(buffer[..read].to_vec()),
        };
        let ended = matches!(message, Message::InputEnded);
        if messages.send(message).is_err() || ended {
            return;
        }
    }
}

fn write(mut output: impl Write, chunks: &Receiver<Vec<u8>>, backlog: &Backlog) -> io::Result<()> {
    for chunk in chunks {
        let written = output.write_all(&chunk).and_then(|()| output.flush());
        // Also when it failed: a reader that waits must see the end.
        backlog.written(chunk.len());
        written?;
    }
    Ok(())
}
