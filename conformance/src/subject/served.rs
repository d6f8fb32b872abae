//! Servers that are spoken to over HTTP: one that runs already, and a program that is started for each exchange.

use std::io::{self, BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::process::{self, Process};
use super::{Exit, Life, Link, Subject};
use crate::exchange::Transport;
use crate::http::Endpoint;

/// A program that does not say where it listens within this time does not listen.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A server that runs already. All exchanges meet the same instance.
#[derive(Debug, Clone)]
pub struct Running {
    endpoint: Endpoint,
}

impl Running {
    /// The server at this URL.
    ///
    /// # Errors
    ///
    /// The URL is none of an MCP endpoint over HTTP.
    pub fn at(url: &str) -> Result<Self, String> {
        Endpoint::parse(url).map(|endpoint| Self { endpoint })
    }
}

impl Subject for Running {
    fn name(&self) -> String {
        self.endpoint.to_string()
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn start(&self) -> io::Result<Link> {
        Ok(Link::http(self.endpoint.clone(), None, Box::new(Elsewhere)))
    }
}

/// The life of what was not started here.
struct Elsewhere;

impl Life for Elsewhere {
    fn exit(&mut self) -> Option<Exit> {
        None
    }

    fn kill(&mut self) {}
}

/// A program that serves HTTP on a port of its choice and says so on standard error:
/// `listening on http://127.0.0.1:PORT/mcp`.
#[derive(Debug, Clone)]
pub struct Served {
    words: Vec<String>,
    runtime: String,
}

impl Served {
    /// A program of the suite's own, on a runtime that reports name.
    #[must_use]
    pub fn own(words: Vec<String>, runtime: &str) -> Self {
        Self { words, runtime: runtime.to_owned() }
    }
}

impl Subject for Served {
    fn name(&self) -> String {
        self.words.join(" ")
    }

    fn runtime(&self) -> &str {
        &self.runtime
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    fn start(&self) -> io::Result<Link> {
        let mut command = process::command(&self.words)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let diagnostics = child.stderr.take().ok_or_else(|| io::Error::other("the child has no pipe"))?;
        let mut life = Process::new(child);
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let mut diagnostics = BufReader::new(diagnostics);
            let _ = tell.send(address(&mut diagnostics).map(|endpoint| (endpoint, diagnostics)));
        });
        match told.recv_timeout(START_LIMIT) {
            Ok(Ok((endpoint, diagnostics))) => {
                Ok(Link::http(endpoint, Some(Box::new(diagnostics)), Box::new(life)))
            }
            Ok(Err(said)) => Err(io::Error::other(said)),
            Err(_) => {
                life.kill();
                Err(io::Error::other(format!("no address within {} s", START_LIMIT.as_secs())))
            }
        }
    }
}

/// The address in the first line that has one; what was said instead, if there is none.
fn address(diagnostics: &mut impl BufRead) -> Result<Endpoint, String> {
    let mut said = String::new();
    while said.len() < 4_000 {
        let mut line = Vec::new();
        if diagnostics.by_ref().take(4_000).read_until(b'\n', &mut line).map_or(0, |read| read) == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        if let Some(url) = line.trim().strip_prefix("listening on ") {
            return Endpoint::parse(url);
        }
        said.push_str(&line);
    }
    Err(format!("expected `listening on URL` on standard error, got `{}`", said.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_standard_error() {
        let found = address(&mut &b"warming up\nlistening on http://127.0.0.1:8/mcp\nmore\n"[..]).unwrap();
        assert_eq!((found.port, &*found.target), (8, "/mcp"));
        assert!(address(&mut &b"cannot bind\n"[..]).unwrap_err().contains("got `cannot bind`"));
    }
}
