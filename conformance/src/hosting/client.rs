//! Clients as subjects: programs that are told where a server is and what to do with it.

use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::exchange::Transport;
use crate::revision::Revision;
use crate::subject::Life;
use crate::subject::process::{self, Process};

/// A client under test. Each start is a run of its own.
pub trait Client: fmt::Debug + Sync {
    /// What reports call it.
    fn name(&self) -> String;

    /// The runtime it runs on, where the suite knows; `-` for a foreign program.
    fn runtime(&self) -> &str {
        "-"
    }

    /// How it reaches servers.
    fn transport(&self) -> Transport;

    /// Starts it.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    fn start(&self, invitation: &Invitation) -> io::Result<Guest>;
}

/// What a client is told at its start.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Invitation {
    /// Where the server is: over HTTP its URL; over stdio where a relay reaches it, see [`relay`](super::relay).
    pub place: Place,
    /// The name of the exchange.
    pub scenario: String,
    /// The revision of the server.
    pub revision: Revision,
    /// The context: the name and the plan.
    pub context: Value,
}

/// Where a server is.
#[derive(Debug, Clone)]
#[allow(clippy::exhaustive_enums, reason = "a server is an address or a program")]
pub enum Place {
    /// An endpoint over HTTP.
    Url(String),
    /// A relay at this address stands for the server program.
    Relay(SocketAddr),
}

/// A client that runs.
pub struct Guest {
    pub(super) output: Box<dyn Read + Send>,
    pub(super) diagnostics: Option<Box<dyn Read + Send>>,
    pub(super) life: Box<dyn Life>,
}

impl Guest {
    /// A client by its standard output, its standard error, and its life.
    #[must_use]
    pub fn new(
        output: Box<dyn Read + Send>,
        diagnostics: Option<Box<dyn Read + Send>>,
        life: Box<dyn Life>,
    ) -> Self {
        Self { output, diagnostics, life }
    }
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest").finish_non_exhaustive()
    }
}

/// A program that is a client.
#[derive(Debug, Clone)]
pub struct Program {
    words: Vec<String>,
    runtime: String,
    transport: Transport,
}

impl Program {
    /// Splits a command line as a shell would. No shell runs: variables and wildcards stand for themselves.
    ///
    /// # Errors
    ///
    /// The quotes do not close, there is no word, or no such program.
    pub fn parse(line: &str, transport: Transport) -> Result<Self, String> {
        let words = shlex::split(line)
            .ok_or_else(|| format!("expected a command with closed quotes, got `{line}`"))?;
        let program = words.first().ok_or("expected a command, got nothing")?;
        if !is_there(program) {
            return Err(format!("expected a program, found no `{program}`"));
        }
        Ok(Self::own(words, "-", transport))
    }

    /// A program of the suite's own, on a runtime that reports name.
    #[must_use]
    pub fn own(words: Vec<String>, runtime: &str, transport: Transport) -> Self {
        Self { words, runtime: runtime.to_owned(), transport }
    }
}

/// Whether there is such a program: a path, or a name to be looked for. Where names may lack their ending that is not
/// known.
fn is_there(program: &str) -> bool {
    if cfg!(not(unix)) {
        return true;
    }
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

impl Client for Program {
    fn name(&self) -> String {
        self.words.join(" ")
    }

    fn runtime(&self) -> &str {
        &self.runtime
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn start(&self, invitation: &Invitation) -> io::Result<Guest> {
        let mut words = self.words.clone();
        match &invitation.place {
            Place::Url(url) => words.push(url.clone()),
            Place::Relay(address) => {
                let own = std::env::current_exe()?.to_string_lossy().into_owned();
                words.extend(["--".to_owned(), own, "relay".to_owned(), address.to_string()]);
            }
        }
        let mut command = process::command(&words)?;
        command
            .env("MCP_CONFORMANCE_SCENARIO", &invitation.scenario)
            .env("MCP_CONFORMANCE_PROTOCOL_VERSION", invitation.revision.as_str())
            .env("MCP_CONFORMANCE_CONTEXT", invitation.context.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || io::Error::other("the child has no pipe");
        let output = child.stdout.take().ok_or_else(missing)?;
        let diagnostics = child.stderr.take().ok_or_else(missing)?;
        Ok(Guest::new(Box::new(output), Some(Box::new(diagnostics)), Box::new(Process::new(child))))
    }
}
