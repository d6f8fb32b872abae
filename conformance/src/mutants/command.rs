//! `mutants` on the command line.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;

use clap::Args;

use super::{Judge, Mutant, all, document, report};
use crate::report::Progress;
use crate::text::glob;

/// What is asked of `mutants`.
#[derive(Debug, Args)]
pub(crate) struct Planted {
    /// Only faults whose name or exchange fits (`*` stands for any run) or that break this requirement
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// How many faults at a time
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Write mutants.json into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Try all exchanges where that of the table and its area catch nothing
    #[arg(long)]
    everywhere: bool,
    /// Only print the table of faults as Markdown
    #[arg(long)]
    table: bool,
}

impl Planted {
    /// Plays them. Whether all were caught.
    pub(crate) fn go(self) -> Result<bool, String> {
        if self.table {
            let _ = io::stdout().write_all(document().as_bytes());
            return Ok(true);
        }
        let fits = |mutant: &&Mutant| {
            self.only.as_deref().is_none_or(|only| {
                let places = [mutant.label(), mutant.name.to_owned(), mutant.exchange.to_owned()];
                places.iter().any(|place| glob(only, place)) || mutant.requirement == only
            })
        };
        let chosen: Vec<_> = all().filter(fits).collect();
        if chosen.is_empty() {
            return Err(format!("`--only {}`: no fault fits", self.only.unwrap_or_default()));
        }
        let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        // Most of the time goes by waiting.
        let fitting = || thread::available_parallelism().map_or(2, NonZeroUsize::get) * 2;
        let jobs = self.jobs.or_else(|| NonZeroUsize::new(fitting())).unwrap_or(NonZeroUsize::MIN);
        let judge = Judge::new(own).everywhere(self.everywhere);
        let mut progress = Progress::new(chosen.len());
        let judgements = judge.judge(&chosen, jobs, |judgement| progress.line(&judgement.line()));
        if let Some(folder) = &self.report {
            report(folder, &judgements)?;
        }
        let survived = judgements.iter().filter(|judgement| judgement.by.is_none()).count();
        progress.finish(&format!("{} caught, {survived} survived", judgements.len() - survived));
        Ok(survived == 0)
    }
}
