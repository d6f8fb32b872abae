//! What is under test: something that can be started and spoken to over a byte stream.

mod connection;
mod declared;
mod process;

pub use declared::Declared;
pub use process::Command;

pub use connection::Connection;

pub(crate) use connection::Event;

use std::fmt;
use std::io::{self, Read, Write};

/// Something under test. Each start gives a fresh instance that shares nothing with the others.
pub trait Subject: fmt::Debug + Sync {
    /// What reports call it.
    fn name(&self) -> String;

    /// The runtime it runs on, where the suite knows; `-` for a foreign program.
    fn runtime(&self) -> &str {
        "-"
    }

    /// Starts an instance.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    fn start(&self) -> io::Result<Link>;
}

/// The streams of one instance.
#[allow(clippy::exhaustive_structs, reason = "built by every implementation of `Subject`")]
pub struct Link {
    /// What the instance reads.
    pub input: Box<dyn Write + Send>,
    /// What it writes.
    pub output: Box<dyn Read + Send>,
    /// Its standard error.
    pub diagnostics: Option<Box<dyn Read + Send>>,
    /// Its life.
    pub life: Box<dyn Life>,
}

impl Link {
    /// A link from its parts.
    #[must_use]
    pub fn new(
        input: Box<dyn Write + Send>,
        output: Box<dyn Read + Send>,
        diagnostics: Option<Box<dyn Read + Send>>,
        life: Box<dyn Life>,
    ) -> Self {
        Self { input, output, diagnostics, life }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// The life of one instance.
pub trait Life: Send {
    /// How it ended, if it has.
    fn exit(&mut self) -> Option<Exit>;

    /// Ends it, and whatever it started, at once.
    fn kill(&mut self);
}

/// How an instance ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "built by every implementation of `Life`")]
pub struct Exit {
    /// The exit code, unless a signal ended it.
    pub code: Option<i64>,
    /// For the reader: `exit code 1`, `signal 9`.
    pub text: String,
}
