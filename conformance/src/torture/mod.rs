//! Randomised traffic, judged by what holds for every server.
//!
//! A seed and a number give a script: requests of what the subject declares, right and plainly wrong ones,
//! notifications and cancellations, written in any of the forms that JSON and the transports leave free, cut and joined
//! anywhere, in flight side by side. A script is written as an exchange and played as one, so that the rules that hold
//! for exchanges hold for it, and so that what was found is replayed by its file. What a script expects is what the
//! specification fixes: each request gets its response, what is plainly invalid an error of its kind, and a request at
//! the end an answer. All else is free, and nothing depends on how fast a subject is.
//!
//! A script that found something is played again on an instance of its own, and made smaller while it still does.

mod dice;
mod draw;
mod explore;
mod form;
mod play;
mod render;
mod requests;
mod script;
mod shrink;
mod survey;
#[cfg(test)]
mod tests;
mod values;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::exchange::{Exchange, Needs, Side, Transport};
use crate::replay::{Entry, Finding, Verdict};
use crate::requirement::Level;
use crate::run::{CellResult, Manner, Outcome, Plan};
pub(crate) use explore::exchanges;
use play::{Played, Player};
use script::{Body, Cuts, Kind, Message, Operation, Script};
use shrink::Symptom;
use survey::{Limits, Survey};

/// So many scripts share a connection.
const CHAIN: usize = 20;

/// A script that found something is played at most so many times more.
const TRIES: usize = 150;

/// While a script is made smaller, what did not come within this time does not come. What is left is played once more
/// with all patience.
const HASTE: Duration = Duration::from_secs(1);

/// After so many different faults in one cell nothing more is learned there.
const FAULTS: usize = 12;

/// What is asked for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Torture {
    /// What decides every script.
    pub seed: u64,
    /// How long to go on; a script that runs is finished.
    pub time: Option<Duration>,
    /// How many scripts to play in all.
    pub scripts: Option<u64>,
    /// The folder for exchanges that show a fault, in a folder `torture` of its own.
    pub folder: PathBuf,
}

impl Torture {
    /// Scripts of this seed until time or number is over; one of both should be given.
    #[must_use]
    pub const fn new(seed: u64, time: Option<Duration>, scripts: Option<u64>, folder: PathBuf) -> Self {
        Self { seed, time, scripts, folder }
    }
}

/// What came of it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Endured {
    /// One result for each cell in which nothing was found, and one for each fault.
    pub results: Vec<CellResult>,
    /// How many scripts were played.
    pub scripts: u64,
    /// How many messages they had.
    pub messages: u64,
    /// The exchanges that show a fault, by name; each is a file in the folder, too.
    pub exchanges: Vec<(&'static str, Exchange)>,
}

/// One subject in one revision, and what is known of it so far.
#[derive(Debug)]
struct Cell<'p> {
    player: Player<'p>,
    survey: Survey,
    so_far: Mutex<SoFar>,
}

#[derive(Debug, Default)]
struct SoFar {
    scripts: u64,
    messages: u64,
    elapsed: Duration,
    symptoms: Vec<Symptom>,
    results: Vec<CellResult>,
    exchanges: Vec<(&'static str, Exchange)>,
}

/// Plays scripts against every subject of the plan in every revision that it serves, several at a time. `tell` is
/// called for each fault as it is found.
///
/// # Errors
///
/// A subject cannot be started, or a file cannot be written.
pub fn torture(
    plan: &Plan<'_>,
    manner: &Manner<'_>,
    orders: &Torture,
    mut tell: impl FnMut(&CellResult),
) -> Result<Endured, String> {
    let begun = Instant::now();
    let plain = plan.served().filter(|(subject, ..)| subject.meets(&Needs::default()));
    let cells = plain.map(|(subject, revision, declared)| {
        let player = Player::new(subject, revision, declared, manner.patience, manner.schemas);
        let transport = subject.transport();
        let survey = Survey::of(declared, revision, transport, false);
        Cell { player, survey, so_far: Mutex::default() }
    });
    let mut cells: Vec<_> = cells.collect();
    if cells.is_empty() {
        return Err("no subject serves one of these revisions".to_owned());
    }
    try_limits(&mut cells)?;
    let more = || orders.time.is_none_or(|time| begun.elapsed() < time);
    let next = AtomicU64::new(0);
    let (tell_finding, found) = mpsc::channel::<CellResult>();
    // Chains of one cell have an instance each, too.
    let jobs = manner.servers_at_a_time();
    let done: Result<(), String> = thread::scope(|scope| {
        let work = || {
            let tell = tell_finding.clone();
            let (cells, next, more) = (&cells, &next, &more);
            scope.spawn(move || {
                while let Some((cell, from, count)) =
                    item(cells, next.fetch_add(1, Ordering::Relaxed), orders)
                {
                    // Each cell is visited once, however short the time is.
                    if from > 0 && (!more() || cells.iter().all(Cell::is_full)) {
                        break;
                    }
                    cell.chain(orders, manner, from, count, more, &tell)?;
                }
                Ok(())
            })
        };
        let threads: Vec<_> = (0..jobs).map(|_| work()).collect();
        drop(tell_finding);
        found.iter().for_each(|result| tell(&result));
        let lost = || Err("a thread that played scripts has panicked".to_owned());
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| lost()))
    });
    done?;
    let mut endured = Endured::default();
    for cell in cells {
        cell.close(orders, &mut endured);
    }
    Ok(endured)
}

/// The chain with this number: the cell, the number of its first script, and how many it has.
fn item<'c, 'p>(cells: &'c [Cell<'p>], number: u64, orders: &Torture) -> Option<(&'c Cell<'p>, u64, usize)> {
    let (chain, cell) = (number / cells.len() as u64, (number % cells.len() as u64) as usize);
    let left = orders.scripts.map(|scripts| scripts.saturating_sub(number * CHAIN as u64));
    let count = left.map_or(CHAIN, |left| left.min(CHAIN as u64) as usize);
    (count > 0).then(|| (&cells[cell], chain * CHAIN as u64, count))
}

fn try_limits(cells: &mut [Cell<'_>]) -> Result<(), String> {
    let tried = |cell: &mut Cell<'_>| {
        cell.survey.limits = limits(&cell.player, &cell.survey)?;
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = cells.iter_mut().map(|cell| scope.spawn(move || tried(cell))).collect();
        let lost = || Err("a thread that tried a limit has panicked".to_owned());
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| lost()))
    })
}

/// Tries what no text says how much of it a subject has to take. What is refused is not sent again.
fn limits(player: &Player<'_>, survey: &Survey) -> Result<Limits, String> {
    let takes = |pad: usize, cuts: Cuts| -> Result<bool, String> {
        let (method, requires) = requests::alive(survey.revision.is_modern());
        let mut params = serde_json::json!({"_meta": {}});
        if survey.revision.is_modern() {
            params["_meta"] = requests::meta(survey.revision);
        }
        params["_meta"]["com.example/pad"] = "x".repeat(pad).into();
        let body = serde_json::json!({"jsonrpc": "2.0", "id": "trial", "method": method, "params": params});
        let message = Message {
            kind: Kind::Ping,
            body: Body::Json(body),
            form: form::Form::default(),
            headers: None,
            owed: Some(serde_json::json!({"result": {"$rest": true}})),
            requires,
            lenient: false,
        };
        let Survey { revision, transport, .. } = *survey;
        let operations = vec![Operation::Say(vec![message], cuts)];
        let trial = Script { seed: 0, number: 0, revision, transport, tools: Vec::new(), operations };
        Ok(player.alone(&render::exchange(&trial), None)?.findings.is_empty())
    };
    let over_http = survey.transport == Transport::Http;
    let text = if takes(Limits::MOST.text, Cuts::None)? { Limits::MOST } else { Limits::LEAST }.text;
    let chunks = over_http && takes(8, Cuts::Some { seed: 1, most: 3 })?;
    Ok(Limits { text, chunks })
}

impl Cell<'_> {
    /// Plays a chain of scripts; one that finds something ends the instance, and the next one begins another.
    fn chain(
        &self,
        orders: &Torture,
        manner: &Manner<'_>,
        from: u64,
        count: usize,
        more: impl Fn() -> bool,
        tell: &mpsc::Sender<CellResult>,
    ) -> Result<(), String> {
        if self.is_full() {
            return Ok(());
        }
        let begun = Instant::now();
        let scripts: Vec<_> = (from..from + count as u64)
            .map(|number| draw::script(&self.survey, orders.seed, number))
            .collect();
        let texts: Vec<_> = scripts.iter().map(render::exchange).collect();
        let mut start = 0;
        while start < texts.len() && (start == 0 || more()) {
            // Where silence is known, more of it is not waited for as long.
            let silent = self.so_far().symptoms.contains(&Symptom::Silent);
            let patience = if silent { haste(manner) } else { None };
            let chained = self.player.chain(&texts[start..], patience, &more)?;
            let end = start + chained.played;
            if !chained.findings.is_empty() {
                self.examine(orders, manner, &scripts[start..end], chained.findings, tell)?;
            } else if !chained.spent && end < texts.len() {
                start = end;
                break;
            }
            start = end;
        }
        let mut so_far = self.so_far();
        so_far.scripts += start as u64;
        so_far.messages +=
            scripts[..start].iter().map(|script| script.messages().count() as u64).sum::<u64>();
        so_far.elapsed += begun.elapsed();
        Ok(())
    }

    /// The last of these scripts found something, on an instance on which the others were played before.
    fn examine(
        &self,
        orders: &Torture,
        manner: &Manner<'_>,
        scripts: &[Script],
        mut findings: Vec<Finding>,
        tell: &mpsc::Sender<CellResult>,
    ) -> Result<(), String> {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        let (Some(finding), Some(last)) = (findings.first(), scripts.last()) else { return Ok(()) };
        let symptom = Symptom::of(finding);
        {
            let mut so_far = self.so_far();
            if so_far.symptoms.contains(&symptom) || so_far.symptoms.len() >= FAULTS {
                return Ok(());
            }
            so_far.symptoms.push(symptom.clone());
        }
        let shows = |script: &Script, patience: Option<Duration>| -> Option<Played> {
            let played = self.player.alone(&render::exchange(script), patience).ok()?;
            played.findings.iter().any(|finding| Symptom::of(finding) == symptom).then_some(played)
        };
        let all = joined(scripts);
        let found = [last, &all].into_iter().find_map(|script| Some((script, shows(script, None)?)));
        let Some((script, played)) = found else {
            // What was seen once and not again on the same traffic is told, and accuses nobody.
            findings.iter_mut().for_each(|finding| {
                finding.level = Level::Should;
                finding.expected.push_str(" (seen once, and not when the scripts were played again)");
            });
            return self.conclude(orders, manner, &all, Played { findings, transcript: Vec::new() }, tell);
        };
        let small = shrink::shrink(script, TRIES, |smaller| shows(smaller, haste(manner)).is_some());
        match shows(&small, None) {
            Some(played) => self.conclude(orders, manner, &small, played, tell),
            None => self.conclude(orders, manner, script, played, tell),
        }
    }

    /// Writes the exchange and keeps the result.
    fn conclude(
        &self,
        orders: &Torture,
        manner: &Manner<'_>,
        script: &Script,
        played: Played,
        tell: &mpsc::Sender<CellResult>,
    ) -> Result<(), String> {
        let text = render::exchange(script);
        let name = self.free_name(script);
        let text = text.replacen(&script.name(), &name, 1);
        write(&orders.folder, &name, &text)?;
        let exchange = play::read(&text)?;
        let name: &'static str = Box::leak(name.into_boxed_str());
        let verdict = match Verdict::of(&played.findings) {
            Verdict::Warning if manner.strict => Verdict::Failed,
            verdict => verdict,
        };
        let result = self.result(name, verdict, played.findings, played.transcript);
        let mut so_far = self.so_far();
        so_far.results.push(result.clone());
        so_far.exchanges.push((name, exchange));
        drop(so_far);
        // Whoever listens has gone only when all is over.
        let _ = tell.send(result);
        Ok(())
    }

    /// Subjects on several runtimes find things in the same script.
    fn free_name(&self, script: &Script) -> String {
        let runtime = self.player.subject.runtime();
        let name = script.name();
        if runtime == "-" { name } else { format!("{name}-{runtime}") }
    }

    fn result(
        &self,
        name: &'static str,
        verdict: Verdict,
        findings: Vec<Finding>,
        transcript: Vec<Entry>,
    ) -> CellResult {
        CellResult {
            exchange: name,
            side: Side::Server,
            revision: self.player.revision,
            transport: self.player.subject.transport(),
            runtime: self.player.subject.runtime().to_owned(),
            verdict,
            known: false,
            findings,
            reason: None,
            requires: vec!["S-BASE-01".to_owned()],
            transcript,
            elapsed: Duration::ZERO,
        }
    }

    /// Adds what came of the cell.
    fn close(self, orders: &Torture, endured: &mut Endured) {
        let so_far = std::mem::take(&mut *self.so_far());
        endured.scripts += so_far.scripts;
        endured.messages += so_far.messages;
        if so_far.results.is_empty() {
            let name: &'static str = Box::leak(format!("torture/seed-{}", orders.seed).into_boxed_str());
            let mut passed = self.result(name, Verdict::Passed, Vec::new(), Vec::new());
            passed.elapsed = so_far.elapsed;
            endured.results.push(passed);
        }
        endured.results.extend(so_far.results);
        endured.exchanges.extend(so_far.exchanges);
    }

    /// Whether enough was found here.
    fn is_full(&self) -> bool {
        self.so_far().symptoms.len() >= FAULTS
    }

    fn so_far(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shorter patience, which decides nothing.
fn haste(manner: &Manner<'_>) -> Option<Duration> {
    Some(manner.patience.map_or(HASTE, |patience| (patience / 4).min(HASTE)))
}

/// Scripts of one chain as one script.
fn joined(scripts: &[Script]) -> Script {
    let mut all = scripts[scripts.len() - 1].clone();
    let mut operations = Vec::new();
    for script in scripts {
        all.tools.extend(
            script.tools.iter().filter(|tool| !all.tools.contains(*tool)).cloned().collect::<Vec<_>>(),
        );
        operations.extend(script.operations.iter().cloned());
        operations.push(Operation::Await);
    }
    all.operations = operations;
    all
}

/// Writes the exchanges that were made on the way and show a fault into the folder; their names.
pub(crate) fn keep(plan: &Plan<'_>, outcome: &Outcome, folder: &Path) -> Result<Vec<&'static str>, String> {
    let mut kept = Vec::new();
    for (number, result) in outcome.results.iter().enumerate() {
        if let Some(text) = plan.source(number).filter(|_| result.verdict == Verdict::Failed) {
            write(folder, result.exchange, text)?;
            kept.push(result.exchange);
        }
    }
    Ok(kept)
}

/// Writes an exchange into the folder, under its name.
fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = folder.join(format!("{name}.jsonl"));
    let problem = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(area) = path.parent() {
        std::fs::create_dir_all(area).map_err(problem)?;
    }
    std::fs::write(&path, text).map_err(problem)
}
