//! The report on the terminal: one line a failure, a table, the counts.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

use super::{breaks, in_row, rows};
use crate::replay::{Finding, Verdict};
use crate::requirement::Level;
use crate::run::{CellResult, Outcome, Plan, Totals};
use crate::text::shorten;

/// More reasons why cells are skipped are counted as one.
const REASONS: usize = 30;

/// Tells results as they come: with a bar where a person looks, as plain lines elsewhere.
#[derive(Debug)]
pub struct Terminal {
    out: Out,
    color: bool,
    /// Warnings by what they say, told at the end: many exchanges can meet the same one.
    warnings: BTreeMap<String, (String, usize)>,
    strict: bool,
}

/// Where lines go.
#[derive(Debug)]
enum Out {
    /// Standard output, above a bar if a person looks.
    Standard(Option<ProgressBar>),
    Text(String),
}

impl Terminal {
    /// A report on standard output for this many cells.
    #[must_use]
    pub fn new(cells: usize, strict: bool) -> Self {
        let person = io::stdout().is_terminal() && io::stderr().is_terminal();
        let bar = person.then(|| {
            let bar = ProgressBar::new(cells as u64);
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let color = person && std::env::var_os("NO_COLOR").is_none();
        Self { out: Out::Standard(bar), color, warnings: BTreeMap::new(), strict }
    }

    /// The same report as a text, which [`finish`](Self::finish) gives.
    pub(crate) const fn text(strict: bool) -> Self {
        Self { out: Out::Text(String::new()), color: false, warnings: BTreeMap::new(), strict }
    }

    /// Tells one result.
    pub fn result(&mut self, result: &CellResult) {
        if let Out::Standard(Some(bar)) = &self.out {
            bar.inc(1);
            bar.set_message(format!("{} {}", result.exchange, result.revision));
        }
        for finding in &result.findings {
            if finding.level == Level::Must || self.strict {
                let word = if result.known { "known" } else { "FAIL" };
                let line = line(word, result, finding);
                self.print(&if self.color { format!("\x1b[31m{line}\x1b[0m") } else { line });
            } else {
                // An invariant says the same wherever it is broken.
                let what = finding.rule.unwrap_or(&finding.expected);
                let key = format!("{} {what}", finding.requires.join(" "));
                let warning = self.warnings.entry(key).or_insert_with(|| (line("warn", result, finding), 0));
                warning.1 += 1;
            }
        }
    }

    /// Tells something else that the reader wants to know.
    pub fn say(&mut self, line: &str) {
        self.print(line);
    }

    /// Tells the end: warnings, stale entries of the baseline, the table, the counts. What was told is the value, unless it
    /// went to standard output.
    pub fn finish(mut self, plan: &Plan<'_>, outcome: &Outcome) -> String {
        if let Out::Standard(Some(bar)) = &self.out {
            bar.finish_and_clear();
        }
        for (line, times) in std::mem::take(&mut self.warnings).values() {
            let further = if *times > 1 { format!(" (and {} times more)", times - 1) } else { String::new() };
            self.print(&format!("{line}{further}"));
        }
        for entry in &outcome.stale {
            self.print(&format!("FAIL  the baseline lists `{entry}`, which does not fail any more"));
        }
        self.print("");
        for line in table(plan, outcome) {
            self.print(&line);
        }
        self.print("");
        for line in skipped(outcome) {
            self.print(&line);
        }
        let totals = outcome.totals();
        if totals.warnings > 0 {
            self.print(&format!("{} with warnings only", totals.warnings));
        }
        if totals.known > 0 {
            self.print(&format!("{} known failures of the baseline", totals.known));
        }
        self.print(&format!(
            "{} passed, {} failed, {} skipped",
            totals.passed, totals.failed, totals.skipped
        ));
        match self.out {
            Out::Standard(_) => String::new(),
            Out::Text(text) => text,
        }
    }

    fn print(&mut self, line: &str) {
        match &mut self.out {
            Out::Standard(Some(bar)) if !bar.is_finished() => bar.println(line),
            // A reader that has gone away is no failure of the run.
            Out::Standard(_) => drop(writeln!(io::stdout(), "{line}")),
            Out::Text(text) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
}

fn line(word: &str, result: &CellResult, finding: &Finding) -> String {
    let place = finding.line.map_or_else(String::new, |line| format!(" line {line}"));
    let runtime = if result.runtime == "-" { String::new() } else { format!(" {}", result.runtime) };
    let text = format!(
        "{word:<5} {} {} {}{runtime}{place}: expected {}, got {} [{}]",
        result.exchange,
        result.revision,
        result.transport.as_str(),
        finding.expected,
        finding.got,
        breaks(finding)
    );
    text.replace('\n', " | ")
}

/// Runtime and transport down, revisions across, `passed/failed/skipped` in the cells. Which side is examined is said
/// where there are clients.
fn table(plan: &Plan<'_>, outcome: &Outcome) -> Vec<String> {
    let revisions = plan.revisions();
    let rows = rows(outcome);
    let sides = rows.iter().any(|row| row.side == "client");
    let head = |runtime: &str, transport: &str, side: &str| {
        let mut line = vec![runtime.to_owned(), transport.to_owned()];
        line.extend(sides.then(|| side.to_owned()));
        line
    };
    let mut lines = vec![head("runtime", "transport", "side")];
    lines[0].extend(revisions.iter().map(ToString::to_string));
    for row in rows {
        let mut line = head(&row.runtime, row.transport, row.side);
        for revision in &revisions {
            let cells =
                outcome.results.iter().filter(|result| in_row(result, &row) && result.revision == *revision);
            line.push(cell(Totals::of(cells)));
        }
        lines.push(line);
    }
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width =
        |column: usize| lines.iter().filter_map(|line| line.get(column)).map(String::len).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text: Vec<_> = lines
        .iter()
        .map(|line| {
            let cells: Vec<_> =
                line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            cells.join("  ").trim_end().to_owned()
        })
        .collect();
    text.push("(passed/failed/skipped; +w: with warnings only)".to_owned());
    text
}

/// Why cells are skipped: each reason with how many there are, the most frequent first.
fn skipped(outcome: &Outcome) -> Vec<String> {
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for result in outcome.results.iter().filter(|result| result.verdict == Verdict::Skipped) {
        let lacks = result.reason.as_deref().unwrap_or("no reason");
        *reasons.entry((result.transport.as_str(), lacks)).or_default() += 1;
    }
    if reasons.is_empty() {
        return Vec::new();
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|((transport, reason), count)| (std::cmp::Reverse(*count), *transport, *reason));
    let mut lines = vec!["skipped, as the subject lacks:".to_owned()];
    let (shown, rest) = reasons.split_at(reasons.len().min(REASONS));
    lines.extend(shown.iter().map(|((transport, reason), count)| {
        let reason = shorten(&reason.replace('\n', " | "), 300);
        format!("{count:>6}  {transport:<5}  {reason}")
    }));
    if !rest.is_empty() {
        let cells: usize = rest.iter().map(|(_, count)| count).sum();
        lines.push(format!("{cells:>6}  for {} further reasons (see report.json of `--report`)", rest.len()));
    }
    lines.push(String::new());
    lines
}

fn cell(totals: Totals) -> String {
    let warnings = if totals.warnings > 0 { format!(" +{}w", totals.warnings) } else { String::new() };
    format!("{}/{}/{}{warnings}", totals.passed, totals.failed + totals.known, totals.skipped)
}

/// The worst verdict among results, for a summary cell.
pub(super) fn worst<'r>(results: impl Iterator<Item = &'r CellResult>) -> Option<Verdict> {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::Skipped => 0,
        Verdict::Passed => 1,
        Verdict::Warning => 2,
        Verdict::Failed => 3,
    };
    results.map(|result| result.verdict).max_by_key(rank)
}
