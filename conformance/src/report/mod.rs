//! Reports of a run: the terminal, JSON, JUnit XML, and a page for people.

mod html;
mod json;
mod junit;
mod progress;
mod terminal;

pub use progress::Progress;
pub use terminal::Terminal;

use std::path::Path;

use crate::exchange::Side;
use crate::replay::Finding;
use crate::requirement;
use crate::run::{CellResult, Outcome, Plan};

/// Writes `report.json`, `junit.xml` and `report.html` into the folder, which is made if it is not there.
///
/// # Errors
///
/// Names the file that cannot be written.
pub fn write(folder: &Path, plan: &Plan<'_>, outcome: &Outcome) -> Result<(), String> {
    let problem = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(|error| problem(folder, error))?;
    for (name, text) in [
        ("report.json", json::report(plan, outcome)),
        ("junit.xml", junit::report(outcome)?),
        ("report.html", html::report(plan, outcome)),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| problem(&path, error))?;
    }
    Ok(())
}

/// What the finding breaks: the ids, and the page of the first.
fn breaks(finding: &Finding) -> String {
    let page = finding.requires.iter().find_map(|id| requirement::by_id(id)).map(|row| row.source);
    match (finding.requires.is_empty(), page) {
        (true, _) => finding.rule.unwrap_or("no requirement").to_owned(),
        (false, None) => finding.requires.join(" "),
        (false, Some(page)) => format!("{}: {}", finding.requires.join(" "), first_page(page)),
    }
}

/// The first of several pages that a source names.
fn first_page(source: &str) -> &str {
    source.split(" ; ").next().unwrap_or(source)
}

/// A row of the closing table: the side under test, its runtime, the transport.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    side: &'static str,
    runtime: String,
    transport: &'static str,
}

impl Row {
    fn of(result: &CellResult) -> Self {
        let side = if result.side == Side::Server { "server" } else { "client" };
        Self { side, runtime: result.runtime.clone(), transport: result.transport.as_str() }
    }
}

/// The rows of the closing table, the servers first.
fn rows(outcome: &Outcome) -> Vec<Row> {
    let mut rows: Vec<_> = outcome.results.iter().map(Row::of).collect();
    rows.sort_by(|a, b| b.side.cmp(a.side).then(a.cmp(b)));
    rows.dedup();
    rows
}

fn in_row(result: &&CellResult, row: &Row) -> bool {
    Row::of(result) == *row
}
