//! Many clients in one event loop: `mio` (epoll, kqueue, IOCP), a few worker threads, no runtime.
//!
//! ```sh
//! cargo run -p mcp-proto --example mio_loop -- 127.0.0.1:8765
//! ```
//!
//! Each client has a machine of its own; all share one `Config`. What a loop of another kind needs to do
//! stands in four places: `Peer::read`, `Peer::write`, `Loop::handle` and the deadline in `Loop::run`.
#![allow(clippy::disallowed_methods, clippy::print_stderr)] // a driver owns the clock and the terminal

mod tools;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{self, Duration};
use std::{env, thread};

use mcp_proto::codec::{Frame, LineBuffer, OutBuf};
use mcp_proto::model::CallToolResult;
use mcp_proto::model::method::CallTool;
use mcp_proto::server::{
    Call, Channel, Config, Connection, Delivery, Event, Incoming, Pending, Progress, RequestKey,
};
use mcp_proto::time::Instant;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

const LISTENER: Token = Token(0);
const WORKERS_SAY: Token = Token(1);
/// Peers are numbered from here.
const FIRST_PEER: usize = 2;
/// Most bytes that one peer may bring in before the others have their turn.
const TURN: usize = 256 << 10;
/// How long accepted calls may go on after a peer said its last word.
const DRAIN: Duration = Duration::from_secs(5);

fn main() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let listener = std::net::TcpListener::bind(address)?;
    eprintln!("listening on {}", listener.local_addr()?);
    serve(listener)
}

/// Serves for ever.
pub(crate) fn serve(listener: std::net::TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    Loop::new(TcpListener::from_std(listener))?.run()
}

/// One client.
struct Peer {
    stream: TcpStream,
    server: Connection,
    lines: LineBuffer,
    out: OutBuf,
    /// `mio` says once that a socket is ready; until an operation says `WouldBlock` it still is.
    readable: bool,
    writable: bool,
    /// The peer will send nothing more; calls may still run until then.
    input_ended: Option<Instant>,
    broken: bool,
    running: BTreeMap<RequestKey, Arc<AtomicBool>>,
}

/// A call for a worker.
struct Job {
    peer: usize,
    pending: Pending<CallTool>,
    steps: u32,
    stop: Arc<AtomicBool>,
}

/// What a worker has to say of a call.
enum Note {
    Progress { peer: usize, key: RequestKey, step: u32, steps: u32 },
    Done { peer: usize, pending: Pending<CallTool>, result: CallToolResult },
}

struct Loop {
    poll: Poll,
    listener: TcpListener,
    config: Arc<Config>,
    start: time::Instant,
    peers: BTreeMap<usize, Peer>,
    next_peer: usize,
    jobs: Sender<Job>,
    notes: Receiver<Note>,
}

impl Loop {
    fn new(mut listener: TcpListener) -> io::Result<Self> {
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WORKERS_SAY)?);
        let (jobs, queue) = mpsc::channel::<Job>();
        let (say, notes) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..4 {
            let (queue, say, waker) = (Arc::clone(&queue), say.clone(), Arc::clone(&waker));
            thread::spawn(move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { return };
                    work(job, |note| {
                        let _ = say.send(note);
                        let _ = waker.wake();
                    });
                }
            });
        }
        Ok(Self {
            poll,
            listener,
            config: tools::config(),
            start: time::Instant::now(),
            peers: BTreeMap::new(),
            next_peer: FIRST_PEER,
            jobs,
            notes,
        })
    }

    fn now(&self) -> Instant {
        Instant::from_origin(self.start.elapsed())
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        loop {
            // Sleep until something is ready or the earliest deadline of all peers has come. Who has work
            // left over from the last turn does not sleep.
            let now = self.now();
            let high_water = self.config.limits.output_high_water;
            let timeout = if self.peers.values().any(|peer| peer.wants_turn(high_water)) {
                Some(Duration::ZERO)
            } else {
                self.peers.values().filter_map(Peer::deadline).min().map(|deadline| deadline - now)
            };
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept()?,
                    WORKERS_SAY => {}
                    Token(number) => {
                        if let Some(peer) = self.peers.get_mut(&number) {
                            peer.readable |= event.is_readable() || event.is_read_closed();
                            peer.writable |= event.is_writable();
                        }
                    }
                }
            }
            while let Ok(note) = self.notes.try_recv() {
                self.note(note);
            }
            let now = self.now();
            let jobs = &self.jobs;
            self.peers.retain(|&number, peer| {
                peer.turn(number, now, high_water, jobs);
                let over = peer.is_over(now);
                if over {
                    // Its workers stop; what they still say finds nobody.
                    peer.running.values().for_each(|stop| stop.store(true, Ordering::Relaxed));
                    let _ = self.poll.registry().deregister(&mut peer.stream);
                }
                !over
            });
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // One that was gone before it was accepted is no reason to stop.
                Err(_) => return Ok(()),
            };
            let number = self.next_peer;
            self.next_peer += 1;
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut stream, Token(number), interest)?;
            self.peers.insert(
                number,
                Peer {
                    stream,
                    server: Connection::new(Arc::clone(&self.config)),
                    lines: LineBuffer::new(self.config.limits.max_message),
                    out: OutBuf::new(),
                    readable: true,
                    writable: true,
                    input_ended: None,
                    broken: false,
                    running: BTreeMap::new(),
                },
            );
        }
    }

    /// What a worker says goes to the peer it worked for, if that is still there.
    fn note(&mut self, note: Note) {
        match note {
            Note::Progress { peer, key, step, steps } => {
                if let Some(peer) = self.peers.get_mut(&peer) {
                    let progress = Progress::new(step.into()).of(steps.into());
                    let _ = peer.server.progress_of(key, progress, peer.out.bytes_mut());
                }
            }
            Note::Done { peer, pending, result } => {
                if let Some(peer) = self.peers.get_mut(&peer) {
                    peer.running.remove(&pending.key());
                    let _ = peer.server.respond(pending, &result, peer.out.bytes_mut());
                }
            }
        }
    }
}

impl Peer {
    /// Reads, handles and writes as far as it goes now.
    fn turn(&mut self, number: usize, now: Instant, high_water: usize, jobs: &Sender<Job>) {
        while let Some(event) = self.server.handle_timeout(now, self.out.bytes_mut()) {
            self.event(event, number, jobs);
        }
        self.write();
        if let Err(error) = self.read(number, now, high_water, jobs) {
            eprintln!("peer {number}: {error}");
            self.broken = true;
        }
        self.write();
    }

    fn read(&mut self, number: usize, now: Instant, high_water: usize, jobs: &Sender<Job>) -> io::Result<()> {
        let mut taken = 0;
        // Backpressure: a peer that does not read what it is sent is not read from.
        while self.may_read(high_water) && taken < TURN {
            let read = match self.stream.read(self.lines.spare(16 << 10)) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    break;
                }
                Err(error) => return Err(error),
            };
            taken += read;
            self.lines.commit(read);
            self.frames(read == 0, number, now, jobs);
            if read == 0 {
                // Accepted calls go on; questions and subscriptions end.
                self.server.end_of_input(self.out.bytes_mut());
                self.input_ended = Some(now);
            }
        }
        Ok(())
    }

    fn frames(&mut self, ended: bool, number: usize, now: Instant, jobs: &Sender<Job>) {
        let mut lines = core::mem::replace(&mut self.lines, LineBuffer::new(0));
        while let Some(frame) = if ended { lines.finish() } else { lines.next_frame() } {
            let event = match frame {
                Frame::Line(line) => self.server.handle(line, now, self.out.bytes_mut()),
                Frame::TooLong { .. } => Some(self.server.refuse_oversized(self.out.bytes_mut())),
            };
            match event {
                Some(Event::Batch(members)) => {
                    for member in members {
                        let event = self.server.handle_member(member, now, self.out.bytes_mut());
                        if let Some(event) = event {
                            self.event(event, number, jobs);
                        }
                    }
                }
                Some(event) => self.event(event, number, jobs),
                None => {}
            }
        }
        self.lines = lines;
    }

    fn write(&mut self) {
        // What changed is told when the stream can take it, and once however often it changed.
        if self.out.is_empty() {
            self.server.flush_subscriptions(self.out.bytes_mut());
        }
        while self.writable && !self.out.is_empty() {
            match self.stream.write(self.out.pending()) {
                Ok(0) => self.broken = true,
                Ok(written) => self.out.advance(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(_) => self.broken = true,
            }
            if self.broken {
                return;
            }
        }
    }

    fn event(&mut self, event: Event<'_>, number: usize, jobs: &Sender<Job>) {
        match event {
            Event::Request(incoming) => self.request(incoming, number, jobs),
            Event::Cancelled { key, .. } | Event::TimedOut { key } => {
                if let Some(stop) = self.running.remove(&key) {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            Event::Rejected(violation) => eprintln!("peer {number}: refused: {}", violation.error),
            _ => {}
        }
    }

    fn request(&mut self, incoming: Incoming<'_>, number: usize, jobs: &Sender<Job>) {
        let version = incoming.version;
        let out = self.out.bytes_mut();
        let server = &mut self.server;
        let _: Delivery = match incoming.typed() {
            Ok(Call::ListTools(pending, params)) => match tools::list(params.cursor.as_deref()) {
                Ok(result) => server.respond(pending, &result, out),
                Err(error) => server.fail(pending, &error, out),
            },
            Ok(Call::CallTool(pending, params)) => match tools::call(version, &params) {
                Ok(tools::Work::Done(result)) => server.respond(pending, &result, out),
                Ok(tools::Work::Slow { steps }) => {
                    // The queue is as long as all peers' `max_in_flight` allow.
                    let stop = Arc::new(AtomicBool::new(false));
                    self.running.insert(pending.key(), Arc::clone(&stop));
                    let _ = jobs.send(Job { peer: number, pending, steps, stop });
                    return;
                }
                Err(error) => server.fail(pending, &error, out),
            },
            Ok(Call::Listen(pending, _)) => server.acknowledge(pending, &Default::default(), out),
            Ok(Call::Other(incoming)) => server.refuse(incoming.not_found(), out),
            Err(refusal) => server.refuse(refusal, out),
            Ok(_) => Delivery::Discarded,
        };
    }

    fn may_read(&self, high_water: usize) -> bool {
        self.readable && self.input_ended.is_none() && self.out.len() < high_water
    }

    fn wants_turn(&self, high_water: usize) -> bool {
        self.may_read(high_water) || (self.writable && !self.out.is_empty())
    }

    fn deadline(&self) -> Option<Instant> {
        let drained = self.input_ended.map(|ended| ended + DRAIN);
        self.server.next_deadline().into_iter().chain(drained).min()
    }

    fn is_over(&self, now: Instant) -> bool {
        let drained = self.server.in_flight() == 0 && self.out.is_empty();
        self.broken || self.input_ended.is_some_and(|ended| drained || now >= ended + DRAIN)
    }
}

fn work(job: Job, say: impl Fn(Note)) {
    let Job { peer, pending, steps, stop } = job;
    for step in 1..=steps {
        thread::sleep(tools::STEP);
        if stop.load(Ordering::Relaxed) {
            return; // the right to answer is dropped: the request is over
        }
        say(Note::Progress { peer, key: pending.key(), step, steps });
    }
    let result = CallToolResult::text(format!("{steps} steps"));
    say(Note::Done { peer, pending, result });
}
