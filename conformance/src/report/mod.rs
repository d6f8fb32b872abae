//! Reports of a run: the terminal, JSON, JUnit XML, and a page for people.

mod html;
mod json;
mod junit;
mod terminal;

pub use terminal::Terminal;

use std::path::Path;

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

/// The cells of a row of the closing table: a runtime and transport.
fn rows(outcome: &Outcome) -> Vec<(String, &'static str)> {
    let mut rows: Vec<_> =
        outcome.results.iter().map(|result| (result.runtime.clone(), result.transport.as_str())).collect();
    rows.sort();
    rows.dedup();
    rows
}

fn in_row(result: &&CellResult, row: &(String, &'static str)) -> bool {
    result.runtime == row.0 && result.transport.as_str() == row.1
}
