//! Plays the planted faults of one bench.

use std::num::NonZeroUsize;

use mcp_conformance::mutants::{self, Bench, Judge, Judgement};

/// So many at a time: most of the time goes by waiting for what a faulty peer never says.
const JOBS: usize = 12;

/// Each of them, so many, is caught by the exchange of the table, which blames it on the requirement of the table.
pub(crate) fn are_caught(bench: Bench, rows: usize) {
    let planted: Vec<_> = mutants::all().filter(|mutant| mutant.bench == bench).collect();
    assert!(planted.len() >= rows, "{} faults: some were lost", planted.len());
    let judge = Judge::new(env!("CARGO_BIN_EXE_mcp-conformance").into());
    let judged = judge.judge(&planted, NonZeroUsize::new(JOBS).unwrap(), |_| {});
    assert_eq!(judged.len(), planted.len());
    let told = |judgement: &Judgement| format!("{}\n  {}", judgement.line(), judgement.told);
    let wrong: Vec<_> = judged.iter().filter(|judgement| !judgement.as_shown).map(told).collect();
    assert!(wrong.is_empty(), "{}\n{} of {}", wrong.join("\n\n"), wrong.len(), judged.len());
}
