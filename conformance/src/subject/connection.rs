//! One running instance: threads that read and write its streams, a channel of what happens, a clock.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::{Exit, Life, Link};

/// A longer line is not read to its end.
const LINE_LIMIT: u64 = 64 << 20;

/// Between two pieces of a write that is to arrive in pieces.
const PIECE_PAUSE: Duration = Duration::from_micros(300);

/// How often the life of an instance is looked at while its end is waited for.
const LIFE_PAUSE: Duration = Duration::from_millis(5);

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
}

/// A running instance. Dropping it ends the instance.
pub struct Connection {
    events: Receiver<Event>,
    input: Option<Sender<Vec<Vec<u8>>>>,
    life: Box<dyn Life>,
    started: Instant,
    exit_told: bool,
}

impl Connection {
    /// Starts to read and write.
    #[must_use]
    pub fn open(link: Link) -> Self {
        let Link { input, output, diagnostics, life } = link;
        let (tell, events) = mpsc::channel();
        if let Some(diagnostics) = diagnostics {
            let tell = tell.clone();
            thread::spawn(move || read_diagnostics(diagnostics, &tell));
        }
        thread::spawn(move || read_lines(output, &tell));
        let (write, pieces) = mpsc::channel();
        thread::spawn(move || write_pieces(input, &pieces));
        Self { events, input: Some(write), life, started: Instant::now(), exit_told: false }
    }

    /// The time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Queues pieces to write. An instance that does not read is noticed by its silence.
    pub(crate) fn write(&self, pieces: Vec<Vec<u8>>) {
        if let Some(input) = &self.input {
            let _ = input.send(pieces);
        }
    }

    /// Ends the instance's input after what is queued.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
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
        self.input = None;
        self.life.kill();
    }
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
