//! One running instance: threads that read and write its streams or sockets, a channel of what happens, a clock.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::{Exit, Life, Link, Way};
use crate::http::{Answer, Endpoint, Order, wire};

/// A longer line is not read to its end.
const LINE_LIMIT: u64 = 64 << 20;

/// Between two pieces of a write that is to arrive in pieces.
const PIECE_PAUSE: Duration = Duration::from_micros(300);

/// How often the life of an instance is looked at while its end is waited for.
const LIFE_PAUSE: Duration = Duration::from_millis(5);

/// A server that does not take a connection or a request within this time takes none.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// What an instance does.
#[derive(Debug)]
pub(crate) enum Event {
    /// A line of its output, without the line end.
    Line(Vec<u8>),
    /// A line of its standard error.
    Diagnostic(String),
    /// Its output has ended.
    End,
    /// It has exited.
    Exit(Exit),
    /// It answers a request over HTTP.
    Answer(u64, Answer),
}

/// A running instance. Dropping it ends the instance.
pub struct Connection {
    events: Receiver<Event>,
    peer: Peer,
    life: Box<dyn Life>,
    started: Instant,
    exit_told: bool,
}

enum Peer {
    Pipes(Option<Sender<Vec<Vec<u8>>>>),
    Http { endpoint: Endpoint, tell: Sender<Event>, sockets: BTreeMap<u64, TcpStream> },
}

impl Connection {
    /// Starts to read and write.
    #[must_use]
    pub fn open(link: Link) -> Self {
        let Link { way, diagnostics, life } = link;
        let (tell, events) = mpsc::channel();
        if let Some(diagnostics) = diagnostics {
            let tell = tell.clone();
            thread::spawn(move || read_diagnostics(diagnostics, &tell));
        }
        let peer = match way {
            Way::Pipes(input, output) => {
                thread::spawn(move || read_lines(output, &tell));
                let (write, pieces) = mpsc::channel();
                thread::spawn(move || write_pieces(input, &pieces));
                Peer::Pipes(Some(write))
            }
            Way::Http(endpoint) => Peer::Http { endpoint, tell, sockets: BTreeMap::new() },
        };
        Self { events, peer, life, started: Instant::now(), exit_told: false }
    }

    /// Where the instance is, if it is spoken to over HTTP.
    pub(crate) const fn endpoint(&self) -> Option<&Endpoint> {
        match &self.peer {
            Peer::Pipes(_) => None,
            Peer::Http { endpoint, .. } => Some(endpoint),
        }
    }

    /// Sends a request on a connection of its own, or closes one. What goes wrong is told as the end of an answer.
    pub(crate) fn carry_out(&mut self, order: Order) {
        let Peer::Http { endpoint, tell, sockets } = &mut self.peer else { return };
        match order {
            Order::Request { stream, bytes, is_head } => match send(endpoint, &bytes) {
                Ok((socket, reading)) => {
                    sockets.insert(stream, socket);
                    let tell = tell.clone();
                    thread::spawn(move || {
                        wire::read(reading, is_head, |answer| {
                            tell.send(Event::Answer(stream, answer)).is_ok()
                        });
                    });
                }
                Err(problem) => {
                    let _ = tell.send(Event::Answer(stream, Answer::End(Some(problem))));
                }
            },
            Order::HangUp { stream } => {
                if let Some(socket) = sockets.remove(&stream) {
                    let _ = socket.shutdown(Shutdown::Both);
                }
            }
        }
    }

    /// Forgets the connection of an answer that is complete.
    pub(crate) fn forget(&mut self, stream: u64) {
        if let Peer::Http { sockets, .. } = &mut self.peer
            && let Some(socket) = sockets.remove(&stream)
        {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// The time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Queues pieces to write. An instance that does not read is noticed by its silence.
    pub(crate) fn write(&self, pieces: Vec<Vec<u8>>) {
        if let Peer::Pipes(Some(input)) = &self.peer {
            let _ = input.send(pieces);
        }
    }

    /// Ends the instance's input after what is queued.
    pub(crate) fn close_input(&mut self) {
        if let Peer::Pipes(input) = &mut self.peer {
            *input = None;
        }
    }

    /// The next event until a point in time; with `exit`, the instance's end is one too.
    pub(crate) fn wait(&mut self, until: Duration, exit: bool) -> Option<Event> {
        loop {
            let left = until.saturating_sub(self.now());
            let slice = if exit { left.min(LIFE_PAUSE) } else { left };
            match self.events.recv_timeout(slice) {
                Ok(event) => return Some(event),
                Err(RecvTimeoutError::Disconnected) => thread::sleep(slice.min(LIFE_PAUSE)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if exit && let Some(exit) = self.exit() {
                return Some(Event::Exit(exit));
            }
            if self.now() >= until {
                return None;
            }
        }
    }

    /// How the instance ended, if it does within the time; told once.
    pub(crate) fn exit_within(&mut self, time: Duration) -> Option<Exit> {
        let until = self.now() + time;
        loop {
            if let Some(exit) = self.exit() {
                return Some(exit);
            }
            if self.exit_told || self.now() >= until {
                return None;
            }
            thread::sleep(LIFE_PAUSE);
        }
    }

    fn exit(&mut self) -> Option<Exit> {
        let exit = if self.exit_told { None } else { self.life.exit() };
        self.exit_told |= exit.is_some();
        exit
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("started", &self.started).finish_non_exhaustive()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close_input();
        if let Peer::Http { sockets, .. } = &self.peer {
            for socket in sockets.values() {
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
        self.life.kill();
    }
}

/// Connects and writes a request; the socket, and the same for reading.
fn send(endpoint: &Endpoint, bytes: &[u8]) -> Result<(TcpStream, TcpStream), String> {
    let failed = |error: io::Error| format!("cannot reach {}: {error}", endpoint.authority);
    let addresses = (&*endpoint.host, endpoint.port).to_socket_addrs().map_err(failed)?;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Ok(mut socket) => {
                let _ = socket.set_nodelay(true);
                socket.set_write_timeout(Some(CONNECT_LIMIT)).map_err(failed)?;
                let reading = socket.try_clone().map_err(failed)?;
                // A server may answer and close before it has read all.
                let _ = socket.write_all(bytes);
                return Ok((socket, reading));
            }
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

fn read_lines(output: Box<dyn Read + Send>, tell: &Sender<Event>) {
    let mut output = BufReader::with_capacity(64 << 10, output);
    loop {
        let mut line = Vec::new();
        match output.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) if line.last() == Some(&b'\n') => {
                line.pop();
            }
            Ok(_) => {}
        }
        if tell.send(Event::Line(line)).is_err() {
            return;
        }
    }
    let _ = tell.send(Event::End);
}

/// Only the beginning is kept; the rest is read so that the instance does not block.
fn read_diagnostics(diagnostics: Box<dyn Read + Send>, tell: &Sender<Event>) {
    let mut diagnostics = BufReader::new(diagnostics);
    let mut left = 16 << 10;
    loop {
        let mut line = Vec::new();
        match diagnostics.by_ref().take(4 << 10).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(read) if read <= left => {
                left -= read;
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                let _ = tell.send(Event::Diagnostic(text));
            }
            Ok(_) => left = 0,
        }
    }
}

fn write_pieces(mut input: Box<dyn Write + Send>, queue: &Receiver<Vec<Vec<u8>>>) {
    for pieces in queue {
        let several = pieces.len() > 1;
        for piece in pieces {
            // An instance that reads no more is noticed by its end or its silence.
            if input.write_all(&piece).and_then(|()| input.flush()).is_err() {
                return;
            }
            if several {
                thread::sleep(PIECE_PAUSE);
            }
        }
    }
}
