//! Playing exchanges with planted faults: which catches which.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::{Bench, Mutant, layer};
use crate::corpus;
use crate::exchange::{Side, Transport};
use crate::replay::Verdict;
use crate::revision::Revision;
use crate::run::{CellResult, Manner, Plan, Selection, run};

/// How long a step waits for a server: it answers at once or never.
const PATIENCE: Duration = Duration::from_secs(4);

/// The same for a client, which has times of its own.
const PATIENCE_WITH_CLIENTS: Duration = Duration::from_secs(20);

/// So many exchanges of an area at a time.
const AREA_JOBS: usize = 4;

/// An exchange with a subject that has no fault: bench, transport, exchange, revision.
type Sound = (Bench, Transport, &'static str, Revision);

/// What plays exchanges with faulty subjects.
#[derive(Debug)]
pub struct Judge {
    /// This program, which is started as the fixture.
    program: PathBuf,
    /// Whether exchanges of all areas are tried where that of the table and its area catch nothing.
    everywhere: bool,
    /// What was found of exchanges with servers without a fault.
    sound: Mutex<BTreeMap<Sound, bool>>,
}

/// What became of one fault.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Judgement {
    /// The fault.
    pub mutant: &'static Mutant,
    /// What caught it.
    pub by: Option<Catch>,
    /// Whether that is what the table says.
    pub as_shown: bool,
    /// What happened instead, if it is not.
    pub told: String,
}

/// How a fault was caught.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Catch {
    /// The exchange.
    pub exchange: &'static str,
    /// The revision.
    pub revision: Revision,
    /// The requirement that was blamed.
    pub requirement: String,
    /// Whether the exchange failed, or gave a warning.
    pub verdict: Verdict,
}

impl Judgement {
    /// One line: `caught NAME by EXCHANGE REVISION (REQUIREMENT)`, or `SURVIVED NAME: …`.
    #[must_use]
    pub fn line(&self) -> String {
        let name = self.mutant.label();
        match &self.by {
            Some(Catch { exchange, revision, requirement, .. }) => {
                format!("caught {name} by {exchange} {revision} ({requirement})")
            }
            None => format!("SURVIVED {name}: {}", self.told),
        }
    }
}

impl Judge {
    /// A judge that starts this program as the fixture.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self { program, everywhere: false, sound: Mutex::default() }
    }

    /// Looks for what catches a fault in all areas, if the table is wrong.
    #[must_use]
    pub const fn everywhere(mut self, everywhere: bool) -> Self {
        self.everywhere = everywhere;
        self
    }

    /// Judges so many faults at a time. `tell` is called for each, in their order.
    pub fn judge(
        &self,
        mutants: &[&'static Mutant],
        jobs: NonZeroUsize,
        mut tell: impl FnMut(&Judgement),
    ) -> Vec<Judgement> {
        let next = AtomicUsize::new(0);
        let mut judged: Vec<Option<Judgement>> = mutants.iter().map(|_| None).collect();
        thread::scope(|scope| {
            let (done, finished) = mpsc::channel();
            for _ in 0..jobs.get().min(mutants.len()) {
                let (done, next) = (done.clone(), &next);
                scope.spawn(move || {
                    while let Some((index, mutant)) = pick(mutants, next) {
                        if done.send((index, self.one(mutant))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(done);
            let mut told = 0;
            for (index, judgement) in finished {
                judged[index] = Some(judgement);
                while let Some(Some(judgement)) = judged.get(told) {
                    tell(judgement);
                    told += 1;
                }
            }
        });
        judged.into_iter().flatten().collect()
    }

    /// Plays the exchange of the table first, then those of its area, up to the first that catches the fault.
    fn one(&self, mutant: &'static Mutant) -> Judgement {
        let told = match self.as_shown(mutant) {
            Ok(catch) => {
                return Judgement { mutant, by: Some(catch), as_shown: true, told: String::new() };
            }
            Err(told) => told,
        };
        let by = self.areas(mutant).into_iter().find_map(|area| self.in_area(mutant, area));
        Judgement { mutant, by, as_shown: false, told }
    }

    fn as_shown(&self, mutant: &'static Mutant) -> Result<Catch, String> {
        let results = self.play(mutant, mutant.name, mutant.exchange, mutant.revision, 1)?;
        let result = results.first().ok_or("the exchange was not played")?;
        let told = || told(result);
        let blamed = result.findings.iter().flat_map(|finding| &finding.requires);
        if result.verdict != mutant.verdict || !blamed.into_iter().any(|id| id == mutant.requirement) {
            return Err(told());
        }
        if !self.is_sound(mutant, mutant.exchange, mutant.revision) {
            return Err(format!("without the fault it is no better: {}", told()));
        }
        let requirement = mutant.requirement.to_owned();
        let (exchange, revision) = (mutant.exchange, mutant.revision);
        Ok(Catch { exchange, revision, requirement, verdict: result.verdict })
    }

    /// The areas in which other exchanges are tried, that of the table first.
    fn areas(&self, mutant: &Mutant) -> Vec<&'static str> {
        let area = |name: &'static str| name.split('/').next().unwrap_or(name);
        let own = area(mutant.exchange);
        let mut areas = vec![own];
        if self.everywhere {
            let clients = mutant.side() == Side::Client;
            let all: BTreeSet<_> = corpus::names().map(area).collect();
            areas.extend(
                all.into_iter().filter(|area| *area != own && area.starts_with("client-") == clients),
            );
        }
        areas
    }

    fn in_area(&self, mutant: &'static Mutant, area: &'static str) -> Option<Catch> {
        let results = self.play(mutant, mutant.name, area, mutant.revision, AREA_JOBS).ok()?;
        results.iter().find_map(|result| {
            let found = matches!(result.verdict, Verdict::Failed | Verdict::Warning);
            let finding = result.findings.first().filter(|_| found)?;
            let requirement = finding.requires.first()?.clone();
            let sound = self.is_sound(mutant, result.exchange, result.revision);
            let (exchange, revision, verdict) = (result.exchange, result.revision, result.verdict);
            sound.then_some(Catch { exchange, revision, requirement, verdict })
        })
    }

    /// Whether the exchange finds nothing where no fault is planted. The tests hold the small client and the small
    /// server over HTTP to that; of the others it is seen here.
    fn is_sound(&self, mutant: &'static Mutant, exchange: &'static str, revision: Revision) -> bool {
        let none = match mutant.bench {
            Bench::Client | Bench::Web => return true,
            Bench::Fixture => layer::NONE,
            _ => "",
        };
        let key = (mutant.bench, mutant.transport, exchange, revision);
        let known =
            |this: &Self| this.sound.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        if let Some(sound) = known(self) {
            return sound;
        }
        let played = self.play(mutant, none, exchange, revision, 1);
        let sound = played.is_ok_and(|results| {
            !results.is_empty() && results.iter().all(|result| result.verdict == Verdict::Passed)
        });
        self.sound.lock().unwrap_or_else(PoisonError::into_inner).insert(key, sound);
        sound
    }

    fn play(
        &self,
        mutant: &Mutant,
        fault: &'static str,
        only: &'static str,
        revision: Revision,
        jobs: usize,
    ) -> Result<Vec<CellResult>, String> {
        let (mut subjects, mut clients) = (Vec::new(), Vec::new());
        match mutant.bench {
            Bench::Client => clients.push(super::client(mutant.transport, fault)),
            Bench::Fixture => {
                let exchange = corpus::load(only).and_then(Result::ok);
                let asks = exchange.map_or(only == "auth", |exchange| !exchange.head.needs.tokens.is_empty());
                subjects.push(super::fixture(&self.program, mutant.transport, asks, fault));
            }
            bench => subjects.push(super::server(bench, fault)),
        }
        let selection = Selection::new(vec![revision], Some(only.to_owned()));
        let plan = Plan::with_clients(selection, &subjects, &clients)?;
        let patience = if mutant.bench == Bench::Client { PATIENCE_WITH_CLIENTS } else { PATIENCE };
        let manner = Manner::new(NonZeroUsize::new(jobs), false, None, None).with_patience(patience);
        Ok(run(&plan, &manner, |_| {}).results)
    }
}

fn pick(mutants: &[&'static Mutant], next: &AtomicUsize) -> Option<(usize, &'static Mutant)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    mutants.get(index).map(|mutant| (index, *mutant))
}

/// What came out of an exchange, for whoever wonders.
fn told(result: &CellResult) -> String {
    let place = format!("{} {} {}", result.exchange, result.revision, result.verdict.as_str());
    let mut text = match &result.reason {
        Some(reason) => format!("{place} ({reason})"),
        None => place,
    };
    for finding in &result.findings {
        let (line, requires) = (finding.line.unwrap_or(0), finding.requires.join(" "));
        let (expected, got) = (&finding.expected, &finding.got);
        text.push_str(&format!("; line {line} [{requires}] expected {expected}, got {got}"));
    }
    crate::text::shorten(&text, 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault that does nothing, as far as an exchange can see.
    static NO_FAULT: Mutant = Mutant {
        name: "",
        bench: Bench::Pipes,
        fault: "Is none.",
        transport: Transport::Stdio,
        exchange: "ping/answers",
        revision: Revision::V2025_06_18,
        requirement: "LB-PING-01",
        verdict: Verdict::Failed,
    };

    #[test]
    fn what_no_exchange_catches_has_survived() {
        let judged = Judge::new(PathBuf::new()).judge(&[&NO_FAULT], NonZeroUsize::MIN, |_| {});
        assert_eq!((judged.len(), &judged[0].by, judged[0].as_shown), (1, &None, false));
        assert!(judged[0].line().starts_with("SURVIVED pipes/: ping/answers 2025-06-18 passed"));
    }

    /// Blamed on something else it is caught, but not as the table says.
    #[test]
    fn a_fault_that_is_blamed_on_another_requirement_is_not_caught_as_shown() {
        static WRONG: Mutant = Mutant { name: "no-ping", requirement: "S-BASE-01", ..NO_FAULT };
        let judged = Judge::new(PathBuf::new()).judge(&[&WRONG], NonZeroUsize::MIN, |_| {});
        assert!(!judged[0].as_shown && judged[0].told.contains("LB-PING-01"), "{}", judged[0].told);
    }
}
