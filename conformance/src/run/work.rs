//! Playing the cells of a plan, several at a time, with the results in the order of the plan.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::plan::{Cell, HostedCell};
use super::pool::Pool;
use super::{Baseline, CellResult, Plan};
use crate::exchange::Side;
use crate::hosting::{self, Setting};
use crate::replay::{Finding, Replay, Verdict, drive};
use crate::requirement::Level;
use crate::revision::Revision;
use crate::schema::Schemas;

/// What came out of a run.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// One result a cell, in the order of the plan.
    pub results: Vec<CellResult>,
    /// Entries of the baseline that no longer fail.
    pub stale: Vec<String>,
}

/// The counts of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Cells that passed without a warning.
    pub passed: usize,
    /// Cells that failed and that no baseline knows.
    pub failed: usize,
    /// Cells that were skipped.
    pub skipped: usize,
    /// Cells with warnings only.
    pub warnings: usize,
    /// Failures that the baseline knows.
    pub known: usize,
}

impl Outcome {
    /// Results that came about without a plan of cells.
    pub(crate) const fn of(results: Vec<CellResult>) -> Self {
        Self { results, stale: Vec::new() }
    }

    /// The counts.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals::of(&self.results)
    }

    /// Whether the run is good: something ran, nothing failed, no baseline entry is stale.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let totals = self.totals();
        let ran = totals.passed + totals.warnings + totals.known > 0;
        ran && totals.failed == 0 && self.stale.is_empty()
    }
}

impl Totals {
    /// Counts results.
    #[must_use]
    pub fn of<'r>(results: impl IntoIterator<Item = &'r CellResult>) -> Self {
        let mut totals = Self::default();
        for result in results {
            match result.verdict {
                Verdict::Passed => totals.passed += 1,
                Verdict::Warning => totals.warnings += 1,
                Verdict::Skipped => totals.skipped += 1,
                Verdict::Failed if result.known => totals.known += 1,
                Verdict::Failed => totals.failed += 1,
            }
        }
        totals
    }
}

/// How cells are played.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Manner<'m> {
    /// How many at a time; as fits the machine if `None`, with more cells of clients than of servers.
    pub jobs: Option<NonZeroUsize>,
    /// Whether a warning is a failure.
    pub strict: bool,
    /// The known failures.
    pub baseline: Option<&'m Baseline>,
    /// The official schemas.
    pub schemas: Option<&'m Schemas>,
    /// How long a message is waited for where the exchange does not say; 10 seconds if `None`, 20 for clients.
    pub patience: Option<Duration>,
}

impl<'m> Manner<'m> {
    /// How cells are played.
    #[must_use]
    pub const fn new(
        jobs: Option<NonZeroUsize>,
        strict: bool,
        baseline: Option<&'m Baseline>,
        schemas: Option<&'m Schemas>,
    ) -> Self {
        Self { jobs, strict, baseline, schemas, patience: None }
    }

    /// How many servers are played at a time.
    pub(crate) fn servers_at_a_time(&self) -> usize {
        // Most of the time goes by waiting for the subject.
        let fitting = || thread::available_parallelism().map_or(2, NonZeroUsize::get) * 2;
        self.jobs.map_or_else(fitting, NonZeroUsize::get)
    }

    /// Waits this long for a message where the exchange does not say.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }
}

/// Plays every cell. `tell` is called for each result, in the order of the plan, as soon as it is its turn.
pub fn run(plan: &Plan<'_>, manner: &Manner<'_>, mut tell: impl FnMut(&CellResult)) -> Outcome {
    // Most of the time goes by waiting for the subject. A client makes its server wait more than a server its client,
    // so the cells of both are played side by side, and more of clients.
    let cores = thread::available_parallelism().map_or(2, NonZeroUsize::get);
    let (servers, clients) = match manner.jobs {
        Some(jobs) => (jobs.get().min(plan.len()), 0),
        None => ((cores * 2).min(plan.cells.len()), (cores * 8).min(plan.hosted.len())),
    };
    let next = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let turns: Vec<RwLock<()>> = plan.subjects.iter().map(|_| RwLock::default()).collect();
    let mut results: Vec<Option<CellResult>> = (0..plan.len()).map(|_| None).collect();
    thread::scope(|scope| {
        let (done, finished) = mpsc::channel();
        for number in 0..servers + clients {
            let done = done.clone();
            let ([next, next_hosted], turns) = (&next, &turns);
            scope.spawn(move || {
                let mut pool = Pool::default();
                let of_server = || {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    plan.cells.get(index).map(|cell| (index, cell))
                };
                while let Some((index, cell)) = (number < servers).then(of_server).flatten() {
                    // On an instance that all share, what leaves a trace is played alone.
                    let shared = plan.subjects[cell.subject].is_shared();
                    let quiet = plan.exchanges[cell.exchange].1.head.reuse;
                    let turn = &turns[cell.subject];
                    let beside = (shared && quiet).then(|| turn.read());
                    let alone = (shared && !quiet).then(|| turn.write());
                    let result = play(plan, *cell, manner, &mut pool);
                    drop((beside, alone));
                    if done.send((index, result)).is_err() {
                        return;
                    }
                }
                drop(pool);
                let of_client = || {
                    let index = next_hosted.fetch_add(1, Ordering::Relaxed);
                    plan.hosted.get(index).map(|cell| (index, cell))
                };
                while let Some((index, cell)) = of_client() {
                    if done.send((plan.cells.len() + index, host(plan, *cell, manner))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let mut told = 0;
        for (index, result) in finished {
            results[index] = Some(result);
            while let Some(Some(result)) = results.get(told) {
                tell(result);
                told += 1;
            }
        }
    });
    let results: Vec<_> = results.into_iter().flatten().collect();
    let stale = manner.baseline.map(|baseline| stale(baseline, &results)).unwrap_or_default();
    Outcome { results, stale }
}

fn play<'s>(plan: &'s Plan<'_>, cell: Cell, manner: &Manner<'s>, pool: &mut Pool) -> CellResult {
    let (name, exchange) = &plan.exchanges[cell.exchange];
    let subject = &plan.subjects[cell.subject];
    let (revision, ref declared) = plan.declared[cell.subject][cell.declared];
    // The start that was seen, with room for a machine that has more to do now.
    let startup = (declared.startup * 5 + Duration::from_secs(5)).min(Duration::from_secs(120));
    let started = Instant::now();
    let mut result = CellResult {
        exchange: name,
        side: Side::Server,
        revision,
        transport: subject.transport(),
        runtime: subject.runtime().to_owned(),
        verdict: Verdict::Skipped,
        known: false,
        findings: Vec::new(),
        reason: plan.skip(cell),
        requires: exchange.head.requires.clone(),
        transcript: Vec::new(),
        elapsed: started.elapsed(),
    };
    if result.reason.is_some() {
        return result;
    }
    let prepare = |replay: Replay<'s>| {
        let replay = match manner.patience {
            Some(patience) => replay.with_patience(patience),
            None => replay,
        };
        replay.with_startup(startup).with_mirrors(declared.mirrors())
    };
    // What was found on an instance that had others before has to be found on a fresh one, too.
    let key = (cell.subject, revision);
    if exchange.head.reuse && pool.passes(key, exchange, subject.as_ref(), manner.schemas, prepare) {
        result.verdict = Verdict::Passed;
        result.elapsed = started.elapsed();
        return result;
    }
    let played = Replay::new(exchange, revision, subject.transport(), manner.schemas).and_then(|replay| {
        Ok(drive(prepare(replay), subject.start(revision).map_err(|error| error.to_string())?))
    });
    match played {
        Ok((findings, transcript)) => {
            result.findings = findings;
            result.findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
            if !result.findings.is_empty() {
                result.transcript = transcript;
            }
        }
        Err(problem) => result.findings.push(Finding::unplayable(problem)),
    }
    result.verdict = match Verdict::of(&result.findings) {
        Verdict::Warning if manner.strict => Verdict::Failed,
        verdict => verdict,
    };
    let failed = result.verdict == Verdict::Failed;
    result.known = failed && manner.baseline.is_some_and(|baseline| baseline.knows(name, revision));
    result.elapsed = started.elapsed();
    result
}

/// Plays an exchange with a client.
fn host(plan: &Plan<'_>, cell: HostedCell, manner: &Manner<'_>) -> CellResult {
    let (name, exchange) = &plan.exchanges[cell.exchange];
    let client = &plan.clients[cell.client];
    let started = Instant::now();
    let mut result = CellResult {
        exchange: name,
        side: Side::Client,
        revision: cell.revision,
        transport: client.transport(),
        runtime: client.runtime().to_owned(),
        verdict: Verdict::Skipped,
        known: false,
        findings: Vec::new(),
        reason: None,
        requires: exchange.head.requires.clone(),
        transcript: Vec::new(),
        elapsed: started.elapsed(),
    };
    let setting = Setting::new(exchange, cell.revision, manner.patience, manner.schemas);
    match hosting::play(&setting, client.as_ref()) {
        Ok(played) => {
            result.reason = played.lacks;
            result.findings = played.findings;
            result.findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
            if !result.findings.is_empty() {
                result.transcript = played.transcript;
            }
        }
        Err(problem) => result.findings.push(Finding::unplayable(problem)),
    }
    result.verdict = match Verdict::of(&result.findings) {
        Verdict::Passed if result.reason.is_some() => Verdict::Skipped,
        Verdict::Warning if manner.strict => Verdict::Failed,
        verdict => verdict,
    };
    let failed = result.verdict == Verdict::Failed;
    result.known = failed && manner.baseline.is_some_and(|baseline| baseline.knows(name, cell.revision));
    result.elapsed = started.elapsed();
    result
}

fn stale(baseline: &Baseline, results: &[CellResult]) -> Vec<String> {
    let cells = |wanted: fn(&CellResult) -> bool| -> Vec<(&'static str, Revision)> {
        results
            .iter()
            .filter(|result| wanted(result))
            .map(|result| (result.exchange, result.revision))
            .collect()
    };
    let failed = cells(|result| result.verdict == Verdict::Failed);
    let ran = cells(|result| result.verdict != Verdict::Skipped);
    baseline.stale(&failed, &ran)
}

impl Finding {
    /// The exchange could not be played at all.
    fn unplayable(problem: String) -> Self {
        let expected = "an instance of the subject that speaks".to_owned();
        Self {
            level: Level::Must,
            requires: Vec::new(),
            line: None,
            rule: Some("start"),
            expected,
            got: problem,
        }
    }
}
