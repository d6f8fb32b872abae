//! `record`: a proxy between a client and a server that writes down what passes, as a recording.
//!
//! A recording is one file for both directions: its steps say what the client and the server said, and
//! [`halves`] makes of it an exchange for servers and one for clients. Nothing personal reaches the file: what is
//! secret is replaced while it is recorded.

mod file;
mod halves;
mod marks;
mod plan;
mod secrets;
mod stdio;
mod tape;
mod web;
pub(crate) mod wire;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use halves::{Halves, halves};

use self::file::Target;
use self::tape::Tape;

/// What is recorded, and how.
#[derive(Debug, Clone)]
#[allow(clippy::exhaustive_structs)] // the options of the command line
pub struct Recorder {
    /// The file.
    pub out: PathBuf,
    /// Further names of members whose values are replaced.
    pub redact: Vec<String>,
    /// Whether the texts that a server has for people are left open.
    pub without_prose: bool,
    /// What is between a client and its server.
    pub between: Between,
}

/// How client and server reach each other.
#[derive(Debug, Clone)]
#[allow(clippy::exhaustive_enums)] // the transports
pub enum Between {
    /// This command is the server; this program stands in its place.
    Stdio(String),
    /// The server has this URL; this program listens on the address.
    Http {
        /// Where requests go.
        upstream: String,
        /// Where they come from: `PORT` or `HOST:PORT`.
        listen: String,
    },
}

impl Recorder {
    /// Records until the server or, over HTTP, this program is ended. The exit code to end with: over stdio that of
    /// the server, 128 and the number of the signal if it was ended by one.
    ///
    /// # Errors
    ///
    /// The file cannot be written, which is found before anything is started; the server cannot be started or
    /// reached; the address is taken.
    pub fn go(&self) -> Result<ExitCode, String> {
        let target = Target::at(&self.out)?;
        let tape = Tape::new(self.between.transport(), &self.redact)?;
        let shared = Shared {
            tape: Arc::new(Mutex::new(tape)),
            target: Arc::new(target),
            without_prose: self.without_prose,
        };
        match &self.between {
            Between::Stdio(command) => stdio::record(command, &shared),
            Between::Http { upstream, listen } => web::record(upstream, listen, &shared),
        }
    }
}

impl Between {
    const fn transport(&self) -> crate::exchange::Transport {
        match self {
            Self::Stdio(_) => crate::exchange::Transport::Stdio,
            Self::Http { .. } => crate::exchange::Transport::Http,
        }
    }
}

/// What the threads of a proxy share.
#[derive(Debug, Clone)]
struct Shared {
    tape: Arc<Mutex<Tape>>,
    target: Arc<Target>,
    without_prose: bool,
}

impl Shared {
    fn tape(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what was recorded so far.
    fn save(&self) -> Result<(), String> {
        self.target.write(|name| self.tape().written(name, self.without_prose))
    }
}

/// Tells the person at the terminal.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "mcp-conformance: {text}");
}

/// Calls `tell` for each signal that asks this process to end, with its number; forever. From now on none of them ends it.
fn on_signals(mut tell: impl FnMut(i32) + Send + 'static) {
    use async_signal::{Signal, Signals};
    use smol::stream::StreamExt as _;

    #[cfg(unix)]
    let wanted = [Signal::Int, Signal::Term, Signal::Hup];
    #[cfg(not(unix))]
    let wanted = [Signal::Int];
    let Ok(mut signals) = Signals::new(wanted) else { return };
    std::thread::spawn(move || {
        smol::block_on(async {
            while let Some(Ok(signal)) = signals.next().await {
                tell(signal as i32);
            }
        });
    });
}
