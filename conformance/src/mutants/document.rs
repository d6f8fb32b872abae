//! The table of planted faults for people, and the judgements for programs.

use std::path::Path;

use serde_json::json;

use super::{Bench, Judgement, all};
use crate::exchange::Side;
use crate::replay::Verdict;
use crate::requirement;

/// The benches in the order of the document, each with what is said of it.
const BENCHES: [(Bench, &str, &str); 5] = [
    (
        Bench::Fixture,
        "The fixture",
        "Planted into the fixture, which has everything: `mcp-conformance serve --mutant NAME` is that server.",
    ),
    (Bench::Pipes, "A small server over stdio", "Planted into a server that is written for this purpose."),
    (Bench::Web, "A small server over HTTP", "Planted into a server that is written for this purpose."),
    (Bench::Sse, "A small server of HTTP+SSE", "Planted into the transport of 2024-11-05."),
    (Bench::Client, "A small client", "Planted into a client that is written for this purpose."),
];

/// The document, as Markdown.
#[must_use]
pub fn document() -> String {
    let mut text = "# Planted faults\n\n\
        What shows that small faults do not slip through: each of these is planted into a peer, and the exchange beside\n\
        it has to catch it and to blame it on the requirement that it breaks. `mcp-conformance mutants` plays them all.\n\
        A row is written in `mutants.tsv`; this page is made of it (`mcp-conformance mutants --table`).\n"
        .to_owned();
    for (bench, title, about) in BENCHES {
        let rows: Vec<_> = all().filter(|mutant| mutant.bench == bench).collect();
        text.push_str(&format!("\n## {title}\n\n{about}\n\n"));
        text.push_str("| Name | Fault | Over | Caught by | Under | Breaks |\n|---|---|---|---|---|---|\n");
        for row in &rows {
            let warns = if row.verdict == Verdict::Warning { ", a warning" } else { "" };
            text.push_str(&format!(
                "| `{}` | {} | {} | `{}` | {} | {}{warns} |\n",
                row.name,
                row.fault.replace('|', "\\|"),
                row.transport.as_str(),
                row.exchange,
                row.revision,
                row.requirement,
            ));
        }
    }
    text
}

/// Writes `mutants.json` into the folder, which is made if it is not there.
///
/// # Errors
///
/// Names the file that cannot be written.
pub fn report(folder: &Path, judgements: &[Judgement]) -> Result<(), String> {
    let rows = judgements.iter().map(|judgement| {
        let mutant = judgement.mutant;
        let by = judgement.by.as_ref().map(|by| {
            json!({
                "exchange": by.exchange,
                "revision": by.revision.as_str(),
                "requirement": by.requirement,
                "page": requirement::by_id(&by.requirement).map(|row| row.source),
                "outcome": by.verdict.as_str(),
            })
        });
        json!({
            "name": mutant.label(),
            "side": if mutant.side() == Side::Server { "server" } else { "client" },
            "transport": mutant.transport.as_str(),
            "fault": mutant.fault,
            "outcome": if by.is_some() { "caught" } else { "survived" },
            "by": by,
            "as_shown": judgement.as_shown,
            "told": judgement.told,
        })
    });
    let caught = judgements.iter().filter(|judgement| judgement.by.is_some()).count();
    let report = json!({
        "format": 1,
        "totals": {"caught": caught, "survived": judgements.len() - caught},
        "mutants": rows.collect::<Vec<_>>(),
    });
    let problem = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(|error| problem(folder, error))?;
    let path = folder.join("mutants.json");
    std::fs::write(&path, format!("{report:#}\n")).map_err(|error| problem(&path, error))
}
