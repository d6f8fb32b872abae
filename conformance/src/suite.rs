//! A run as a value: what is under test, which exchanges, how, and what came out. For the tests of an implementation,
//! and what the command line is made of.
//!
//! ```no_run
//! use mcp_conformance::suite::Suite;
//!
//! // In a test: env!("CARGO_BIN_EXE_my-server") is the server of the package.
//! Suite::stdio(["target/debug/my-server", "--stdio"]).check();
//! ```
//!
//! A server that lives in the test needs no program:
//!
//! ```
//! use mcp_conformance::mutants;
//! use mcp_conformance::suite::Suite;
//!
//! // In place of this small server: yours, which reads `input` to its end and writes to `output`.
//! let suite = Suite::in_process("mine", |input, output| mutants::serve("", input, output));
//! let report = suite.only("tools/unknown-tool").run()?;
//! assert!(report.outcome.is_good(), "{report}");
//! # Ok::<(), String>(())
//! ```

use std::fmt;
use std::io::{PipeReader, PipeWriter};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::corpus;
use crate::exchange::Transport;
use crate::hosting::{Client, Program};
use crate::report::{self, Terminal};
use crate::revision::Revision;
use crate::run::{self, Baseline, Manner, Outcome, Plan, Selection};
use crate::schema::Schemas;
use crate::subject::{Command, Pipes, Served, Subject};
use crate::torture::{self, Torture};

/// What is under test, and how.
#[derive(Debug, Default)]
#[must_use = "nothing is played before `run` or `check`"]
pub struct Suite {
    subjects: Vec<Box<dyn Subject>>,
    clients: Vec<Box<dyn Client>>,
    traffic: Traffic,
    revisions: Vec<Revision>,
    only: Option<String>,
    jobs: Option<NonZeroUsize>,
    strict: bool,
    patience: Option<Duration>,
    exchanges: Option<PathBuf>,
    baseline: Option<PathBuf>,
    schemas: Option<PathBuf>,
    report: Option<PathBuf>,
}

/// What is played.
#[derive(Debug, Default, Clone, Copy)]
enum Traffic {
    #[default]
    Exchanges,
    /// What the server lists.
    Explored {
        call_destructive: bool,
    },
    Random {
        time: Option<Duration>,
        seed: Option<u64>,
        scripts: Option<u64>,
    },
}

/// What came out, and what is told of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The results.
    pub outcome: Outcome,
    text: String,
}

/// One line a failure, the closing table, the counts.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Suite {
    /// A server program over its pipes: the program and its arguments. It is started anew for most exchanges.
    pub fn stdio<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Self {
        Self::server(Command::own(words.into_iter().map(Into::into).collect(), "-"))
    }

    /// A server program over HTTP: one that takes a free port and says `listening on http://127.0.0.1:PORT/mcp` on its
    /// standard error. For one that runs already there is [`Running`](crate::subject::Running).
    pub fn http<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Self {
        Self::server(Served::own(words.into_iter().map(Into::into).collect(), "-"))
    }

    /// A server in this process: `serve` is called on a thread of its own for each instance, reads messages, a line each,
    /// from the one and writes messages to the other, and returns after the end of its input. Instances live side by
    /// side, and must not share what exchanges can see.
    pub fn in_process(
        name: &str,
        serve: impl Fn(PipeReader, PipeWriter) + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::server(Pipes::new(name, serve))
    }

    /// Any server.
    pub fn server(subject: impl Subject + 'static) -> Self {
        Self::of(vec![Box::new(subject)], Vec::new())
    }

    /// A client program over HTTP: the program and its arguments, to which the URL of the suite is appended. What it is
    /// told in its environment is described in the README of this package.
    pub fn client<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Self {
        let words = words.into_iter().map(Into::into).collect();
        Self::of(Vec::new(), vec![Box::new(Program::own(words, "-", Transport::Http))])
    }

    /// Any servers and clients.
    pub fn of(subjects: Vec<Box<dyn Subject>>, clients: Vec<Box<dyn Client>>) -> Self {
        Self { subjects, clients, ..Self::default() }
    }

    /// Only this revision; once more for a further one. A revision named here is not skipped if the server lacks it.
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revisions.push(revision);
        self
    }

    /// Only exchanges whose name fits (`*` stands for any run), those of an area (`tools`), or those that cite a
    /// requirement.
    pub fn only(mut self, pattern: &str) -> Self {
        self.only = Some(pattern.to_owned());
        self
    }

    /// So many cells at a time; as fits the machine by default. It changes no verdict.
    pub fn jobs(mut self, jobs: NonZeroUsize) -> Self {
        self.jobs = Some(jobs);
        self
    }

    /// A warning, which is the breach of a SHOULD, is a failure.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Waits this long for a message where the exchange does not say; 10 seconds by default, 20 for clients.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// The failures that this file lists do not count, and those among them that no longer fail do.
    pub fn baseline(mut self, file: impl Into<PathBuf>) -> Self {
        self.baseline = Some(file.into());
        self
    }

    /// Also holds messages against `DIR/<revision>/schema.json`.
    pub fn schemas(mut self, folder: impl Into<PathBuf>) -> Self {
        self.schemas = Some(folder.into());
        self
    }

    /// Writes `report.json`, `junit.xml` and `report.html` into this folder.
    pub fn report(mut self, folder: impl Into<PathBuf>) -> Self {
        self.report = Some(folder.into());
        self
    }

    /// The exchanges of this folder (`AREA/NAME.jsonl`) in place of the built-in ones. Process-wide: it may be said once.
    pub fn exchanges(mut self, folder: impl Into<PathBuf>) -> Self {
        self.exchanges = Some(folder.into());
        self
    }

    /// In place of exchanges, everything that the server lists. Tools that may destroy something are called only if that is
    /// said.
    pub fn explore(mut self, call_destructive: bool) -> Self {
        self.traffic = Traffic::Explored { call_destructive };
        self
    }

    /// In place of exchanges, random traffic: for so long, or so many scripts, whatever ends first. The seed decides
    /// it; without one any number will do, which the report tells.
    pub fn torture(mut self, time: Option<Duration>, seed: Option<u64>, scripts: Option<u64>) -> Self {
        self.traffic = Traffic::Random { time, seed, scripts };
        self
    }

    /// Plays it.
    ///
    /// # Errors
    ///
    /// A subject cannot be started, a file cannot be read or written, or nothing fits what was selected.
    pub fn run(&self) -> Result<Report, String> {
        self.go(|_| Terminal::text(self.strict))
    }

    /// Plays it, for a test.
    ///
    /// # Panics
    ///
    /// Something failed, nothing ran, or it could not be played. The message is the report.
    #[track_caller]
    #[allow(clippy::panic, reason = "how tests fail")]
    pub fn check(&self) {
        match self.run() {
            Ok(report) if report.outcome.is_good() => {}
            Ok(report) => panic!("{report}"),
            Err(problem) => panic!("{problem}"),
        }
    }

    /// Plays it, and tells it on standard output. Whether it is good.
    pub(crate) fn tell(&self) -> Result<bool, String> {
        self.go(|cells| Terminal::new(cells, self.strict)).map(|report| report.outcome.is_good())
    }

    fn go(&self, terminal: impl FnOnce(usize) -> Terminal) -> Result<Report, String> {
        if let Some(folder) = &self.exchanges {
            corpus::take_folder(folder)?;
        }
        let schemas = self.schemas.as_deref().map(Schemas::load).transpose()?;
        let baseline = self.baseline.as_deref().map(Baseline::load).transpose()?;
        let mut manner = Manner::new(self.jobs, self.strict, baseline.as_ref(), schemas.as_ref());
        manner.patience = self.patience;
        let selection = Selection::new(self.revisions.clone(), self.only.clone());
        let (plan, outcome, mut terminal) = match self.traffic {
            Traffic::Exchanges => {
                let plan = Plan::with_clients(selection, &self.subjects, &self.clients)?;
                let mut terminal = terminal(plan.len());
                let outcome = run::run(&plan, &manner, |result| terminal.result(result));
                (plan, outcome, terminal)
            }
            Traffic::Explored { call_destructive } => {
                let plan = Plan::exploring(selection, &self.subjects, call_destructive)?;
                let mut terminal = terminal(plan.len());
                let outcome = run::run(&plan, &manner, |result| terminal.result(result));
                for name in torture::keep(&plan, &outcome, &self.faults())? {
                    terminal.say(&self.replays(name));
                }
                (plan, outcome, terminal)
            }
            Traffic::Random { time, seed, scripts } => {
                let mut plan = Plan::without_exchanges(selection, &self.subjects)?;
                let mut terminal = terminal(0);
                let seed = seed.unwrap_or_else(by_the_clock);
                let orders = Torture::new(seed, time, scripts, self.faults());
                let endured = torture::torture(&plan, &manner, &orders, |result| terminal.result(result))?;
                for (name, exchange) in endured.exchanges {
                    terminal.say(&self.replays(name));
                    plan.adopt(name, exchange);
                }
                let (scripts, messages) = (endured.scripts, endured.messages);
                terminal.say(&format!("{scripts} scripts with {messages} messages, --seed {seed}"));
                (plan, Outcome::of(endured.results), terminal)
            }
        };
        if let Some(folder) = &self.report {
            report::write(folder, &plan, &outcome)?;
            terminal.say(&format!("reports in {}", folder.display()));
        }
        let text = terminal.finish(&plan, &outcome);
        Ok(Report { outcome, text })
    }

    /// Where exchanges go that show a fault.
    fn faults(&self) -> PathBuf {
        let beside = |report: &PathBuf| report.join("exchanges");
        self.report.as_ref().map_or_else(|| Path::new("mcp-conformance-faults").to_owned(), beside)
    }

    /// How the exchange of that name is played once more.
    fn replays(&self, name: &str) -> String {
        format!("      to replay it: run --exchanges {} --only {name}", self.faults().display())
    }
}

fn by_the_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}
