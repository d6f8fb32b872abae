//! The command line.

mod list;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use mcp_proto::client::Mode;

use crate::exchange::Transport;
use crate::fixture::{self, Options};
use crate::hosting::{self, Client, Program};
use crate::http::Tokens;
use crate::mutants::Planted;
use crate::revision::Revision;
use crate::subject::{Command, Running, Served, Subject};
use crate::suite::Suite;
use crate::{probe, record};
use list::List;

/// Replays recorded exchanges of the Model Context Protocol against an implementation.
#[derive(Debug, Parser)]
#[command(name = "mcp-conformance", version, about)]
struct Line {
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run the exchanges against a subject; against the servers and clients of this program if none is named
    Run(Box<Run>),
    /// Be the fixture server
    Serve(Serve),
    /// Be a client under test: does what the environment names, the suite's plan or a scenario of the official suite
    Client(UnderTest),
    /// Connect to a server, list everything, then do what a plan names
    #[command(after_help = PLAN)]
    Probe(Probe),
    /// Record what passes between a client and a server
    Record(Record),
    /// List the exchanges, or the requirements and what checks them
    List(List),
    /// Plant each known fault in the fixture and show which exchange catches it
    Mutants(Planted),
    /// Be the server program that a client over stdio starts: the suite speaks through it
    #[command(hide = true)]
    Relay {
        /// Where the suite is
        address: SocketAddr,
    },
}

#[derive(Debug, Default, Args)]
struct Run {
    /// Start a server and speak over its pipes
    #[arg(long, value_name = "CMD ARGS", group = "target")]
    stdio: Option<String>,
    /// Speak to a running server
    #[arg(long, value_name = "URL", group = "target")]
    http: Option<String>,
    /// The URL of the running server's stream of 2024-11-05 (HTTP+SSE); alone or beside `--http`
    #[arg(long, value_name = "URL", conflicts_with_all = ["stdio", "client", "client_stdio"])]
    sse: Option<String>,
    /// An access token of the running server; `KIND=TOKEN` for one of another kind: second, narrow, expired, elsewhere
    #[arg(long, value_name = "[KIND=]TOKEN", conflicts_with_all = ["stdio", "client", "client_stdio"])]
    token: Vec<String>,
    /// Start a client that is given the suite's URL
    #[arg(long, value_name = "CMD ARGS", group = "target")]
    client: Option<String>,
    /// Start a client that starts the suite as its stdio server
    #[arg(long, value_name = "CMD ARGS", group = "target")]
    client_stdio: Option<String>,
    /// The clients of this program on every runtime and transport, without its servers
    #[arg(long, group = "target")]
    clients: bool,
    /// Only this revision; may be repeated
    #[arg(long, value_name = "R", value_parser = revision)]
    revision: Vec<Revision>,
    /// Only exchanges whose name fits (`*` stands for any run) or that cite this requirement
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// The exchanges of this folder in place of the built-in ones
    #[arg(long, value_name = "DIR")]
    exchanges: Option<PathBuf>,
    /// How many subjects at a time
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Write report.json, junit.xml and report.html into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Also hold messages against DIR/<revision>/schema.json
    #[arg(long, value_name = "DIR")]
    schemas: Option<PathBuf>,
    /// Known failures: lines `exchange [revision]`, or an earlier report.json
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Warnings are failures
    #[arg(long)]
    strict: bool,
    /// In place of the exchanges, use all that the server lists, whatever it is
    #[arg(long, conflicts_with_all = ["client", "client_stdio", "clients", "exchanges", "torture"])]
    explore: bool,
    /// Also call tools that may destroy something: those that do not say `readOnlyHint: true` or `destructiveHint: false`
    #[arg(long, requires = "explore")]
    call_destructive: bool,
    /// In place of the exchanges, random traffic for so long
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["client", "client_stdio", "clients", "only", "exchanges", "baseline"])]
    torture: Option<u64>,
    /// What decides the random traffic: the same seed, the same scripts
    #[arg(long, value_name = "N", requires = "torture")]
    seed: Option<u64>,
    /// At most so many scripts of random traffic
    #[arg(long, value_name = "N", requires = "torture")]
    scripts: Option<u64>,
}

#[derive(Debug, Args)]
struct Serve {
    /// What the server runs on
    #[arg(long)]
    runtime: Runtime,
    /// Serve over standard input and output
    #[arg(long, required_unless_present = "http", conflicts_with = "http")]
    stdio: bool,
    /// Serve HTTP on this loopback address
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Ask every request over HTTP for one of the suite's tokens
    #[arg(long, conflicts_with = "stdio")]
    tokens: bool,
    /// Refuse over HTTP what clients must not do though its meaning is clear
    #[arg(long, conflicts_with = "stdio")]
    strict: bool,
    /// Plant this fault
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
    /// Worker threads of the runtime
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// So many further tools, and pages of 100
    #[arg(long, value_name = "N", default_value_t = 0)]
    many: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Runtime {
    Std,
    Tokio,
    Smol,
}

impl Runtime {
    const ALL: [Self; 3] = [Self::Std, Self::Tokio, Self::Smol];

    /// Those that serve HTTP.
    const OVER_HTTP: [Self; 2] = [Self::Tokio, Self::Smol];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Std => "std",
            Self::Tokio => "tokio",
            Self::Smol => "smol",
        }
    }
}

/// What `probe --help` says of plans.
const PLAN: &str = r#"A plan is JSON; every member is optional, and they are done in this order:
  tool       {"name", "arguments"}                        call it; once more at the end
  resource   URI                                          read it
  prompt     {"name", "arguments"}                        get it
  complete   [{"ref", "argument", "context"}]             complete
  mrtr       {"name", "arguments", "answers"}             call a tool that asks
  subscribe  {"uri", "trigger": {"name", "arguments"}}    hear of a change
  slow       {"name", "arguments", "cancelAfterMs"}       call it and give it up
or `steps` and `answers`, step by step: see the README of mcp-conformance.

Prints one JSON object a step: {"step":"tools/call","ok":true,"result":{…}}, or "ok":false with "error" and "code".
Exit code 1 if a step failed."#;

#[derive(Debug, Args)]
struct Probe {
    /// What the client runs on
    #[arg(long)]
    runtime: ClientRuntime,
    /// Which eras are tried
    #[arg(long, default_value = "auto")]
    era: Era,
    /// What to do
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// A bearer token to send
    #[arg(long, value_name = "T")]
    token: Option<String>,
    /// The server's URL
    #[arg(long, value_name = "URL", group = "server")]
    url: Option<String>,
    /// The URL of the stream of a server of 2024-11-05
    #[arg(long, value_name = "URL", group = "server")]
    sse: Option<String>,
    /// The server's program and its arguments
    #[arg(last = true, value_name = "CMD ARGS", group = "server", required_unless_present_any = ["url", "sse"])]
    command: Vec<String>,
}

#[derive(Debug, Args)]
struct Record {
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Be the server program, and pass everything on to this one
    #[arg(long, value_name = "CMD ARGS", group = "between", required_unless_present = "http")]
    stdio: Option<String>,
    /// Pass requests on to the server at this URL
    #[arg(long, value_name = "UPSTREAM", group = "between")]
    http: Option<String>,
    /// Where requests come from: PORT of the loopback interface (0: a free one), or HOST:PORT
    #[arg(long, value_name = "ADDR", conflicts_with = "stdio", default_value = "0")]
    listen: String,
    /// Also replace the values of members and headers with this name; may be repeated
    #[arg(long, value_name = "NAME")]
    redact: Vec<String>,
    /// Leave open what the server says to people: descriptions, instructions, long texts
    #[arg(long)]
    without_prose: bool,
}

impl Record {
    fn go(self) -> Result<ExitCode, String> {
        let between = match (self.stdio, self.http) {
            (Some(command), _) => record::Between::Stdio(command),
            (None, Some(upstream)) => record::Between::Http { upstream, listen: self.listen },
            (None, None) => return Err("expected `--stdio` or `--http`".to_owned()),
        };
        let Self { out, redact, without_prose, .. } = self;
        record::Recorder { out, redact, without_prose, between }.go()
    }
}

#[derive(Debug, Args)]
struct UnderTest {
    /// What the client runs on
    #[arg(long)]
    runtime: ClientRuntime,
    /// Where the suite serves
    url: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ClientRuntime {
    Tokio,
    Smol,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Era {
    Auto,
    Modern,
    Legacy,
}

impl ClientRuntime {
    const fn of_probe(self) -> probe::Runtime {
        match self {
            Self::Tokio => probe::Runtime::Tokio,
            Self::Smol => probe::Runtime::Smol,
        }
    }
}

impl Probe {
    fn go(self) -> Result<bool, String> {
        let target = match self.url.or(self.sse) {
            Some(url) => probe::Target::Url(url),
            None => probe::Target::Command(self.command),
        };
        let mode = match self.era {
            Era::Auto => Mode::Auto,
            Era::Modern => Mode::Modern,
            Era::Legacy => Mode::Legacy,
        };
        let Self { plan, token, .. } = self;
        probe::Probe { runtime: self.runtime.of_probe(), mode, plan, token, target }.go()
    }
}

/// Does what the command line says. 0: good; 1: a failure; 2: unusable arguments, or a subject that cannot be
/// started.
#[must_use]
pub fn main() -> ExitCode {
    let done = match Line::parse().task.unwrap_or_else(|| Task::Run(Box::default())) {
        Task::Run(run) => (*run).go(),
        Task::Serve(serve) => fixture::serve(&serve.options()).map(|()| true),
        Task::List(list) => list.go(),
        Task::Client(client) => probe::under_test(client.runtime.of_probe(), &client.url),
        Task::Probe(probe) => probe.go(),
        Task::Record(record) => match record.go() {
            Ok(code) => return code,
            Err(problem) => Err(problem),
        },
        Task::Mutants(mutants) => mutants.go(),
        Task::Relay { address } => {
            return hosting::relay(address).map_or_else(|_| ExitCode::from(2), ExitCode::from);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            let _ = writeln!(io::stderr(), "mcp-conformance: {problem}");
            ExitCode::from(2)
        }
    }
}

impl Run {
    fn go(self) -> Result<bool, String> {
        let clients = self.clients()?;
        let subjects = if clients.is_empty() || self.is_of_own() { self.subjects()? } else { Vec::new() };
        let mut suite = Suite::of(subjects, clients);
        if self.explore {
            suite = suite.explore(self.call_destructive);
        } else if let Some(seconds) = self.torture {
            suite = suite.torture(Some(Duration::from_secs(seconds)), self.seed, self.scripts);
        }
        suite = self.revision.into_iter().fold(suite, Suite::revision);
        suite = self.only.iter().fold(suite, |suite, pattern| suite.only(pattern));
        suite = self.jobs.into_iter().fold(suite, Suite::jobs);
        suite = self.baseline.into_iter().fold(suite, Suite::baseline);
        suite = self.schemas.into_iter().fold(suite, Suite::schemas);
        suite = self.exchanges.into_iter().fold(suite, Suite::exchanges);
        suite = self.report.into_iter().fold(suite, Suite::report);
        if self.strict { suite.strict().tell() } else { suite.tell() }
    }

    fn clients(&self) -> Result<Vec<Box<dyn Client>>, String> {
        let program = |option: &str, line: &str, transport| -> Result<Vec<Box<dyn Client>>, String> {
            let program =
                Program::parse(line, transport).map_err(|problem| format!("`{option}`: {problem}"))?;
            Ok(vec![Box::new(program)])
        };
        match (&self.client, &self.client_stdio) {
            (Some(line), _) => program("--client", line, Transport::Http),
            (None, Some(line)) => program("--client-stdio", line, Transport::Stdio),
            (None, None) if self.clients || self.is_of_own() => own_clients(),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// Whether no subject is named: then this program's servers and clients are played.
    const fn is_of_own(&self) -> bool {
        let server = self.stdio.is_some() || self.http.is_some() || self.sse.is_some();
        !server && self.client.is_none() && self.client_stdio.is_none() && !self.clients
    }

    fn subjects(&self) -> Result<Vec<Box<dyn Subject>>, String> {
        let at = |option: &str, url: &Option<String>, at: fn(&str) -> Result<Running, String>| {
            url.as_deref().map(at).transpose().map_err(|problem| format!("`{option}`: {problem}"))
        };
        let running = at("--http", &self.http, Running::at)?;
        let running = [running, at("--sse", &self.sse, Running::at_sse)?].into_iter().flatten();
        let tokens = Tokens::parse(&self.token).map_err(|problem| format!("`--token`: {problem}"))?;
        if let Some(running) = running.reduce(Running::and) {
            return Ok(vec![Box::new(running.with_tokens(&tokens))]);
        }
        if !self.token.is_empty() {
            return Err("`--token`: expected `--http` or `--sse` beside it".to_owned());
        }
        if let Some(line) = &self.stdio {
            let command = Command::parse(line).map_err(|problem| format!("`--stdio`: {problem}"))?;
            return Ok(vec![Box::new(command)]);
        }
        let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let words = |runtime: Runtime, transport: &[&str]| {
            // With many tools the lists have pages, which some exchanges need.
            let serve = ["serve", "--runtime", runtime.as_str(), "--many", "250"];
            let own = own.to_string_lossy().into_owned();
            let arguments = serve.iter().chain(transport).map(|word| (*word).to_owned());
            std::iter::once(own).chain(arguments).collect::<Vec<_>>()
        };
        let mut fixtures: Vec<Box<dyn Subject>> = Vec::new();
        for runtime in Runtime::ALL {
            fixtures.push(Box::new(Command::own(words(runtime, &["--stdio"]), runtime.as_str())));
        }
        for runtime in Runtime::OVER_HTTP {
            let plain = words(runtime, &["--http", "127.0.0.1:0"]);
            fixtures.push(Box::new(Served::own(plain, runtime.as_str()).with_sse("/sse")));
            let asking = words(runtime, &["--http", "127.0.0.1:0", "--tokens"]);
            let asking = Served::own(asking, runtime.as_str()).with_sse("/sse");
            fixtures.push(Box::new(asking.with_tokens(Tokens::of_fixture())));
        }
        Ok(fixtures)
    }
}

/// The clients of this program.
fn own_clients() -> Result<Vec<Box<dyn Client>>, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let own = own.to_string_lossy().into_owned();
    let mut clients: Vec<Box<dyn Client>> = Vec::new();
    for (task, transport) in [("probe", Transport::Stdio), ("client", Transport::Http)] {
        for runtime in ["tokio", "smol"] {
            let words = [own.as_str(), task, "--runtime", runtime].map(str::to_owned).to_vec();
            clients.push(Box::new(Program::own(words, runtime, transport)));
        }
    }
    Ok(clients)
}

impl Serve {
    fn options(self) -> Options {
        Options {
            runtime: self.runtime.as_str().to_owned(),
            http: self.http,
            tokens: self.tokens,
            strict: self.strict,
            mutant: self.mutant,
            threads: self.threads,
            many: self.many,
        }
    }
}

fn revision(text: &str) -> Result<Revision, String> {
    let known = || Revision::ALL.map(Revision::as_str).join(", ");
    Revision::from_date(text).ok_or_else(|| format!("expected one of {}", known()))
}
