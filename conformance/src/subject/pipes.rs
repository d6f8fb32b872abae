//! A server in this process, on pipes.

use std::fmt;
use std::io::{self, PipeReader, PipeWriter};
use std::thread::{self, JoinHandle};

use super::{Exit, Life, Link, Subject};
use crate::revision::Revision;

/// A function that serves what it reads from the one on the other, and returns after the end of its input.
pub struct Pipes<F> {
    name: String,
    serve: F,
}

impl<F: Fn(PipeReader, PipeWriter) + Clone + Send + Sync + 'static> Pipes<F> {
    /// Each instance is a call of the function, on a thread of its own.
    pub fn new(name: &str, serve: F) -> Self {
        Self { name: name.to_owned(), serve }
    }
}

impl<F> fmt::Debug for Pipes<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipes").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<F: Fn(PipeReader, PipeWriter) + Clone + Send + Sync + 'static> Subject for Pipes<F> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn start(&self, _: Revision) -> io::Result<Link> {
        let (input, write) = io::pipe()?;
        let (read, output) = io::pipe()?;
        let serve = self.serve.clone();
        let thread = thread::Builder::new().spawn(move || serve(input, output))?;
        let running = Running { thread: Some(thread), exit: None };
        Ok(Link::new(Box::new(write), Box::new(read), None, Box::new(running)))
    }
}

/// A return is an exit with code 0; a panic one with that of a Rust program, and its message is on standard error as that
/// of any thread.
struct Running {
    thread: Option<JoinHandle<()>>,
    exit: Option<Exit>,
}

impl Life for Running {
    fn exit(&mut self) -> Option<Exit> {
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            self.exit = Some(match thread.join() {
                Ok(()) => Exit { code: Some(0), text: "the end of the function".to_owned() },
                Err(_) => Exit { code: Some(101), text: "a panic".to_owned() },
            });
        }
        self.exit.clone()
    }

    /// A thread cannot be ended; it ends with its input.
    fn kill(&mut self) {}
}
