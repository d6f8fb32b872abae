//! What is under test: something that can be started and spoken to, over a byte stream or over HTTP.

mod connection;
mod declared;
mod pipes;
pub(crate) mod process;
pub(crate) mod served;

pub use declared::Declared;
pub use pipes::Pipes;
pub use process::Command;
pub use served::{Running, Served};

pub use connection::Connection;

pub(crate) use connection::Event;

use std::fmt;
use std::io::{self, Read, Write};

use crate::exchange::{Needs, Transport};
use crate::http::Endpoint;
use crate::revision::Revision;

/// Something under test. Each start gives a fresh instance that shares nothing with the others.
pub trait Subject: fmt::Debug + Sync {
    /// What reports call it.
    fn name(&self) -> String;

    /// The runtime it runs on, where the suite knows; `-` for a foreign program.
    fn runtime(&self) -> &str {
        "-"
    }

    /// How messages reach it.
    fn transport(&self) -> Transport {
        Transport::Stdio
    }

    /// Whether every start gives the same instance, so that one exchange may see what another does.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether exchanges with these needs are meant for it.
    fn meets(&self, _: &Needs) -> bool {
        true
    }

    /// Why it cannot be spoken to in the revision, whatever it serves.
    fn unreachable(&self, revision: Revision) -> Option<String> {
        let unknown = self.transport() == Transport::Http && revision == Revision::V2024_11_05;
        unknown
            .then(|| "2024-11-05 has a transport of its own over HTTP, and no URL of it (`--sse`)".to_owned())
    }

    /// Starts an instance that is to be spoken to in the revision.
    ///
    /// # Errors
    ///
    /// It cannot be started, or not be reached in the revision.
    fn start(&self, revision: Revision) -> io::Result<Link>;
}

/// The way to one instance.
pub struct Link {
    way: Way,
    diagnostics: Option<Box<dyn Read + Send>>,
    life: Box<dyn Life>,
}

enum Way {
    /// What the instance reads, and what it writes.
    Pipes(Box<dyn Write + Send>, Box<dyn Read + Send>),
    Http(Endpoint),
}

impl Link {
    /// A link over a byte stream: what the instance reads, what it writes, its standard error, its life.
    #[must_use]
    pub fn new(
        input: Box<dyn Write + Send>,
        output: Box<dyn Read + Send>,
        diagnostics: Option<Box<dyn Read + Send>>,
        life: Box<dyn Life>,
    ) -> Self {
        Self { way: Way::Pipes(input, output), diagnostics, life }
    }

    /// A link over HTTP.
    #[must_use]
    pub fn http(endpoint: Endpoint, diagnostics: Option<Box<dyn Read + Send>>, life: Box<dyn Life>) -> Self {
        Self { way: Way::Http(endpoint), diagnostics, life }
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
