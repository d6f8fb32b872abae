//! Planted faults: what shows that the exchanges find what they are there to find.
//!
//! There are two sorts. Small peers are written to misbehave in one named way each: servers over pipes, over HTTP
//! and over HTTP+SSE, and clients. And between the fixture and the wire a layer can be put that spoils what
//! passes, or lets through what the fixture would have refused, so that one fault is planted into a server that has
//! everything (`serve --mutant NAME`).
//!
//! Each fault stands in a table (`mutants.tsv`) with the exchange that is to catch it and the requirement that it is to be
//! blamed on. A fault that none catches is a missing exchange.

#[allow(clippy::unwrap_used, clippy::panic, reason = "a peer that is faulty by purpose")]
mod clients;
mod command;
mod document;
mod judge;
pub(crate) mod layer;
#[allow(clippy::unwrap_used, clippy::panic, reason = "a peer that is faulty by purpose")]
mod servers;
mod table;

use std::io::{PipeReader, PipeWriter};
use std::path::Path;

use crate::exchange::{Side, Transport};
use crate::hosting::Client;
use crate::http::Tokens;
use crate::replay::Verdict;
use crate::revision::Revision;
use crate::subject::{Command, Pipes, Served, Subject};

pub(crate) use command::Planted;
pub use document::{document, report};
pub use judge::{Catch, Judge, Judgement};

/// Where a fault is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Bench {
    /// A small server over pipes.
    Pipes,
    /// A small server over Streamable HTTP.
    Web,
    /// A small server of the transport of 2024-11-05 over HTTP.
    Sse,
    /// A small client.
    Client,
    /// The fixture.
    Fixture,
}

impl Bench {
    /// Its name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pipes => "pipes",
            Self::Web => "web",
            Self::Sse => "sse",
            Self::Client => "client",
            Self::Fixture => "fixture",
        }
    }
}

/// One planted fault, and what is to catch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mutant {
    /// Its name on its bench.
    pub name: &'static str,
    /// Where it is planted.
    pub bench: Bench,
    /// What is wrong, in one sentence.
    pub fault: &'static str,
    /// How the faulty side is spoken to.
    pub transport: Transport,
    /// The exchange that catches it.
    pub exchange: &'static str,
    /// The revision under which it does.
    pub revision: Revision,
    /// The requirement that it is blamed on.
    pub requirement: &'static str,
    /// Whether it fails the exchange, or gives a warning only.
    pub verdict: Verdict,
}

impl Mutant {
    /// Its name in reports: `BENCH/NAME`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}/{}", self.bench.as_str(), self.name)
    }

    /// The side that is faulty.
    #[must_use]
    pub const fn side(&self) -> Side {
        match self.bench {
            Bench::Client => Side::Client,
            _ => Side::Server,
        }
    }
}

/// All of them, those of one bench after the other.
pub fn all() -> impl Iterator<Item = &'static Mutant> {
    table::all().iter()
}

/// The small server of this bench with one fault, or with none if that is empty.
///
/// # Panics
///
/// The bench is none of a small server.
#[must_use]
pub fn server(bench: Bench, fault: &'static str) -> Box<dyn Subject> {
    match bench {
        Bench::Pipes => {
            Box::new(Pipes::new(&format!("mock {fault}"), move |input, output| serve(fault, input, output)))
        }
        Bench::Web => Box::new(servers::web::HttpMock { fault }),
        Bench::Sse => Box::new(servers::sse::SseMock { fault }),
        Bench::Client | Bench::Fixture => unreachable!("no small server"),
    }
}

/// Serves as the small server over pipes does, on pipes of one's own, until its input ends.
pub fn serve(fault: &'static str, input: PipeReader, output: PipeWriter) {
    servers::pipes::serve(fault, input, output);
}

/// The small client with one fault, or with none if that is empty.
#[must_use]
pub fn client(transport: Transport, fault: &'static str) -> Box<dyn Client> {
    Box::new(clients::Mock { fault, transport })
}

/// The fixture of this program, with the layer that plants the fault; `none` plants none. Over HTTP it may
/// ask for tokens.
#[must_use]
pub fn fixture(program: &Path, transport: Transport, asks: bool, fault: &str) -> Box<dyn Subject> {
    let (runtime, way) = match transport {
        Transport::Stdio => ("std", &["--stdio"][..]),
        Transport::Http => ("tokio", &["--http", "127.0.0.1:0"][..]),
    };
    let program = program.to_string_lossy().into_owned();
    // With many tools the lists have pages, which some exchanges need.
    let words = ["serve", "--runtime", runtime, "--many", "250", "--mutant", fault];
    let tokens = if asks { &["--tokens"][..] } else { &[] };
    let words = words.iter().chain(way).chain(tokens).map(|word| (*word).to_owned());
    let words = std::iter::once(program).chain(words).collect();
    let served = |words| Served::own(words, runtime).with_sse("/sse");
    match transport {
        Transport::Stdio => Box::new(Command::own(words, runtime)),
        Transport::Http if asks => Box::new(served(words).with_tokens(Tokens::of_fixture())),
        Transport::Http => Box::new(served(words)),
    }
}
