//! Servers that are spoken to over HTTP: one that runs already, and a program that is started for each exchange.

use std::io::{self, BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::process::{self, Process};
use super::{Exit, Life, Link, Subject};
use crate::exchange::{Needs, Transport};
use crate::http::{Endpoint, Tokens};
use crate::revision::Revision;

/// A program that does not say where it listens within this time does not listen.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A server that runs already. All exchanges meet the same instance.
#[derive(Debug, Clone)]
pub struct Running {
    /// Of Streamable HTTP.
    endpoint: Option<Endpoint>,
    /// Of the transport of 2024-11-05.
    sse: Option<Endpoint>,
}

impl Running {
    /// The server at this URL of Streamable HTTP.
    ///
    /// # Errors
    ///
    /// The URL is none of an MCP endpoint over HTTP.
    pub fn at(url: &str) -> Result<Self, String> {
        Ok(Self { endpoint: Some(Endpoint::parse(url)?), sse: None })
    }

    /// The server whose stream of the transport of 2024-11-05 is at this URL.
    ///
    /// # Errors
    ///
    /// The URL is none of an MCP endpoint over HTTP.
    pub fn at_sse(url: &str) -> Result<Self, String> {
        Ok(Self { endpoint: None, sse: Some(Endpoint::parse(url)?.sse()) })
    }

    /// The same server, which is at the URLs of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { endpoint: self.endpoint.or(other.endpoint), sse: self.sse.or(other.sse) }
    }

    /// The same server, which asks for tokens.
    #[must_use]
    pub fn with_tokens(self, tokens: &Tokens) -> Self {
        let with = |endpoint: Endpoint| endpoint.with_tokens(tokens.clone());
        Self { endpoint: self.endpoint.map(with), sse: self.sse.map(with) }
    }

    const fn endpoint(&self, revision: Revision) -> Option<&Endpoint> {
        match revision {
            Revision::V2024_11_05 => self.sse.as_ref(),
            _ => self.endpoint.as_ref(),
        }
    }
}

impl Subject for Running {
    fn name(&self) -> String {
        let both = [&self.endpoint, &self.sse].into_iter().flatten().map(Endpoint::to_string);
        both.collect::<Vec<_>>().join(" and ")
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn unreachable(&self, revision: Revision) -> Option<String> {
        let option = if revision == Revision::V2024_11_05 { "`--sse`" } else { "`--http`" };
        self.endpoint(revision).is_none().then(|| format!("no URL of its transport was given ({option})"))
    }

    fn start(&self, revision: Revision) -> io::Result<Link> {
        let endpoint = self.endpoint(revision).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Link::http(endpoint.clone(), None, Box::new(Elsewhere)))
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
    /// Where the stream of the transport of 2024-11-05 is.
    sse: Option<String>,
    /// What it asks for.
    tokens: Tokens,
}

impl Served {
    /// A program of the suite's own, on a runtime that reports name.
    #[must_use]
    pub fn own(words: Vec<String>, runtime: &str) -> Self {
        Self { words, runtime: runtime.to_owned(), sse: None, tokens: Tokens::default() }
    }

    /// It asks for these tokens, and is there for the exchanges that need them alone.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = tokens;
        self
    }

    /// It has the transport of 2024-11-05 beside, with the stream at this path.
    #[must_use]
    pub fn with_sse(mut self, path: &str) -> Self {
        self.sse = Some(path.to_owned());
        self
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

    fn meets(&self, needs: &Needs) -> bool {
        self.tokens.is_empty() == needs.tokens.is_empty()
    }

    fn unreachable(&self, revision: Revision) -> Option<String> {
        let lacks = revision == Revision::V2024_11_05 && self.sse.is_none();
        lacks.then(|| "it does not have the transport of 2024-11-05".to_owned())
    }

    fn start(&self, revision: Revision) -> io::Result<Link> {
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
            Ok(Ok((mut endpoint, diagnostics))) => {
                if let (Revision::V2024_11_05, Some(path)) = (revision, &self.sse) {
                    endpoint.target.clone_from(path);
                    endpoint = endpoint.sse();
                }
                let endpoint = endpoint.with_tokens(self.tokens.clone());
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
pub(crate) fn address(diagnostics: &mut impl BufRead) -> Result<Endpoint, String> {
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
