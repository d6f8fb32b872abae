//! `report.html`, for people: one page that needs nothing beside it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{first_page, in_row, rows};
use crate::corpus;
use crate::exchange::Side;
use crate::replay::{Direction, Entry, Finding, Verdict};
use crate::requirement::{self, Level};
use crate::run::{CellResult, Outcome, Plan, Totals};

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

pub(super) fn report(plan: &Plan<'_>, outcome: &Outcome) -> String {
    let mut page = String::new();
    let subjects = plan.subjects();
    let (command, _, identity) = subjects.first().cloned().unwrap_or_default();
    let title = identity.unwrap_or_else(|| command.clone());
    page.push_str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    let _ =
        write!(page, "<title>{} – conformance</title><style>{STYLE}</style></head><body>", escape(&title));
    summary(&mut page, &title, &command, outcome);
    filter(&mut page, outcome);
    failures(&mut page, plan, outcome);
    matrix(&mut page, plan, outcome);
    requirements(&mut page, plan, outcome);
    let _ = writeln!(page, "<script>{SCRIPT}</script></body></html>");
    page
}

fn summary(page: &mut String, title: &str, command: &str, outcome: &Outcome) {
    let totals = outcome.totals();
    let good = outcome.is_good();
    let verdict = if good { "conforms in all that ran" } else { "has faults" };
    let class = if good { "good" } else { "bad" };
    let _ = write!(
        page,
        "<header><h1>{}</h1><p class=\"verdict {class}\">{verdict}</p><p class=\"command\">{}</p><ul class=\"totals\">",
        escape(title),
        escape(command)
    );
    for (count, class, word) in [
        (totals.passed, "passed", "passed"),
        (totals.failed + totals.known, "failed", "failed"),
        (totals.warnings, "warning", "with warnings"),
        (totals.skipped, "skipped", "skipped"),
    ] {
        let _ = write!(page, "<li class=\"{class}\"><b>{count}</b> {word}</li>");
    }
    page.push_str("</ul>");
    bar(page, totals);
    page.push_str("</header>");
}

fn bar(page: &mut String, totals: Totals) {
    let parts = [
        (totals.passed, "passed"),
        (totals.warnings, "warning"),
        (totals.failed + totals.known, "failed"),
        (totals.skipped, "skipped"),
    ];
    page.push_str("<div class=\"bar\">");
    for (count, class) in parts {
        if count > 0 {
            let _ = write!(
                page,
                "<span class=\"{class}\" style=\"flex:{count}\" title=\"{count} {class}\"></span>"
            );
        }
    }
    page.push_str("</div>");
}

/// Every requirement that something broke, so that one can be picked.
fn filter(page: &mut String, outcome: &Outcome) {
    let broken: BTreeSet<&str> = outcome
        .results
        .iter()
        .flat_map(|result| &result.findings)
        .flat_map(|finding| &finding.requires)
        .map(String::as_str)
        .collect();
    page.push_str("<nav><label>Show <input id=\"filter\" type=\"search\" list=\"broken\" ");
    page.push_str("placeholder=\"requirement id, exchange or revision\" autocomplete=\"off\"></label><datalist id=\"broken\">");
    for id in broken {
        let text = requirement::by_id(id).map_or("", |row| row.text);
        let _ = write!(page, "<option value=\"{}\">{}</option>", escape(id), escape(text));
    }
    page.push_str("</datalist><label><input id=\"warnings\" type=\"checkbox\" checked> warnings</label>");
    page.push_str("<span id=\"shown\"></span></nav>");
}

fn failures(page: &mut String, plan: &Plan<'_>, outcome: &Outcome) {
    let mut found: Vec<&CellResult> =
        outcome.results.iter().filter(|result| !result.findings.is_empty()).collect();
    found.sort_by_key(|result| (std::cmp::Reverse(result.verdict), result.exchange, result.revision));
    if found.is_empty() {
        page.push_str("<section><h2>Findings</h2><p class=\"none\">Nothing was found.</p></section>");
        return;
    }
    page.push_str("<section id=\"findings\"><h2>Findings</h2>");
    for result in found {
        finding_of(page, plan, result);
    }
    page.push_str("</section>");
}

fn finding_of(page: &mut String, plan: &Plan<'_>, result: &CellResult) {
    let class = result.verdict.as_str();
    let ids: BTreeSet<&str> =
        result.findings.iter().flat_map(|finding| &finding.requires).map(String::as_str).collect();
    let words: Vec<_> = ids.iter().copied().collect();
    let open = if result.verdict == Verdict::Failed { " data-failed" } else { "" };
    let _ = write!(
        page,
        "<details class=\"finding {class}\" id=\"{}\" data-words=\"{} {} {}\"{open}><summary><span class=\"tag {class}\">{}</span> <b>{}</b> <span class=\"cell\">{} {} {}</span><span class=\"ids\">{}</span></summary>",
        anchor(result),
        escape(result.exchange),
        result.revision,
        escape(&words.join(" ")),
        if result.known { "known" } else { class },
        escape(result.exchange),
        result.revision,
        result.transport.as_str(),
        escape(result.runtime.trim_start_matches('-')),
        escape(&words.join(" "))
    );
    if let Some(exchange) = plan.exchange(result.exchange) {
        let _ = write!(page, "<p class=\"about\">{}</p>", escape(&exchange.head.about));
    }
    for finding in &result.findings {
        difference(page, finding);
    }
    timeline(page, result);
    page.push_str("</details>");
}

fn difference(page: &mut String, finding: &Finding) {
    let class = if finding.level == Level::Must { "failed" } else { "warning" };
    let place = match (finding.rule, finding.line) {
        (Some(rule), Some(line)) => format!("rule {rule}, seen at line {line}"),
        (Some(rule), None) => format!("rule {rule}"),
        (None, Some(line)) => format!("line {line} of the exchange"),
        (None, None) => String::new(),
    };
    let _ = write!(
        page,
        "<div class=\"difference {class}\"><p class=\"place\">{}</p><dl><dt>expected</dt><dd><code>{}</code></dd><dt>got</dt><dd><code>{}</code></dd></dl>",
        escape(&place),
        escape(&finding.expected),
        escape(&finding.got)
    );
    page.push_str("<ul class=\"breaks\">");
    for row in finding.requires.iter().filter_map(|id| requirement::by_id(id)) {
        let _ = write!(
            page,
            "<li><b>{}</b> <span class=\"word\">{}</span> {} <span class=\"page\">{}</span></li>",
            escape(row.id),
            escape(row.word),
            escape(row.text),
            escape(first_page(row.source))
        );
    }
    page.push_str("</ul></div>");
}

/// The suite on the left, the subject on the right, time downwards.
fn timeline(page: &mut String, result: &CellResult) {
    page.push_str(
        "<div class=\"timeline\"><div class=\"sides\"><span>suite</span><span>subject</span></div>",
    );
    let broken: Vec<Option<usize>> = result.findings.iter().map(|finding| finding.line).collect();
    for entry in &result.transcript {
        let class = match entry.direction {
            Direction::Sent => "sent",
            Direction::Received => "received",
            Direction::Diagnostic => "diagnostic",
            Direction::Event => "event",
        };
        let late =
            entry.direction == Direction::Received && entry.line.is_some() && broken.contains(&entry.line);
        let mark = if late { " broken" } else { "" };
        let _ = write!(
            page,
            "<div class=\"entry {class}{mark}\"><span class=\"at\">{}</span><pre>{}</pre></div>",
            time(entry),
            escape(&entry.text)
        );
    }
    page.push_str("</div><details class=\"source\"><summary>the exchange</summary><pre>");
    if let Some(text) = corpus::text(result.exchange) {
        for (index, line) in text.lines().enumerate() {
            let class = if broken.contains(&Some(index + 1)) { " class=\"broken\"" } else { "" };
            let _ = writeln!(page, "<span{class}><i>{}</i>{}</span>", index + 1, escape(line));
        }
    }
    page.push_str("</pre></details>");
}

fn time(entry: &Entry) -> String {
    format!("{} ms", entry.at.as_millis())
}

/// Exchanges down by area, cells across; a cell with a finding leads to it.
fn matrix(page: &mut String, plan: &Plan<'_>, outcome: &Outcome) {
    let (rows, revisions) = (rows(outcome), plan.revisions());
    page.push_str("<section><h2>Matrix</h2><table class=\"matrix\"><thead><tr><th></th>");
    for row in &rows {
        let side = if rows.iter().any(|other| other.side != row.side) { row.side } else { "" };
        let name = format!("{side} {} {}", row.runtime.trim_start_matches('-'), row.transport);
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = write!(page, "<th colspan=\"{}\">{}</th>", revisions.len(), escape(&name));
    }
    page.push_str("</tr><tr><th></th>");
    for _ in &rows {
        for revision in &revisions {
            let _ = write!(page, "<th class=\"date\"><span>{revision}</span></th>");
        }
    }
    page.push_str("</tr></thead><tbody>");
    let names: BTreeSet<&str> = outcome.results.iter().map(|result| result.exchange).collect();
    let mut area = "";
    for name in names {
        let (own, rest) = name.split_once('/').unwrap_or(("", name));
        if own != area {
            area = own;
            let of_area: Vec<_> = outcome
                .results
                .iter()
                .filter(|result| result.exchange.split('/').next() == Some(area))
                .collect();
            let totals = Totals::of(of_area.iter().copied());
            let span = rows.len() * revisions.len();
            let _ = write!(
                page,
                "<tr class=\"area\"><th>{}</th><td colspan=\"{span}\">{} passed, {} failed, {} skipped</td></tr>",
                escape(area),
                totals.passed + totals.warnings,
                totals.failed + totals.known,
                totals.skipped
            );
        }
        let about = plan.exchange(name).map_or("", |exchange| exchange.head.about.as_str());
        let _ = write!(
            page,
            "<tr data-words=\"{}\"><th title=\"{}\">{}</th>",
            escape(name),
            escape(about),
            escape(rest)
        );
        for row in &rows {
            for revision in &revisions {
                let here = outcome.results.iter().find(|result| {
                    result.exchange == name && result.revision == *revision && in_row(result, row)
                });
                cell(page, here);
            }
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></section>");
}

fn cell(page: &mut String, result: Option<&CellResult>) {
    let Some(result) = result else {
        page.push_str("<td class=\"none\"></td>");
        return;
    };
    let class = result.verdict.as_str();
    let sign = match result.verdict {
        Verdict::Passed => "✓",
        Verdict::Failed => "✗",
        Verdict::Warning => "!",
        Verdict::Skipped => "–",
    };
    let title = result.reason.as_ref().map_or_else(
        || format!("{class}, {} ms", result.elapsed.as_millis()),
        |reason| format!("skipped: the subject lacks {reason}"),
    );
    let sign = if result.findings.is_empty() {
        sign.to_owned()
    } else {
        format!("<a href=\"#{}\">{sign}</a>", anchor(result))
    };
    let _ = write!(page, "<td class=\"{class}\" title=\"{}\">{sign}</td>", escape(&title));
}

/// Which requirements this run looked at, and what it saw.
fn requirements(page: &mut String, plan: &Plan<'_>, outcome: &Outcome) {
    page.push_str(
        "<section><details><summary><h2>Requirements in this run</h2></summary><table class=\"rows\">",
    );
    for row in requirement::all() {
        let citing = |result: &&CellResult| {
            let cited =
                plan.exchange(result.exchange).is_some_and(|exchange| exchange.cited().contains(&row.id));
            let broken = result.findings.iter().any(|finding| finding.requires.iter().any(|id| id == row.id));
            cited || broken
        };
        let results: Vec<_> = outcome.results.iter().filter(citing).collect();
        if results.is_empty() {
            continue;
        }
        let broken = results.iter().any(|result| {
            result.findings.iter().any(|finding| finding.requires.iter().any(|id| id == row.id))
        });
        let worst = super::terminal::worst(results.iter().copied());
        let class = match worst {
            Some(Verdict::Skipped) | None => "skipped",
            _ if broken && row.level() == Level::Must => "failed",
            _ if broken => "warning",
            _ => "passed",
        };
        let _ = write!(
            page,
            "<tr class=\"{class}\" data-words=\"{}\"><th>{}</th><td>{}</td><td>{}</td><td class=\"page\">{}</td><td>{}</td></tr>",
            escape(row.id),
            escape(row.id),
            escape(row.word),
            escape(row.text),
            escape(first_page(row.source)),
            results.len()
        );
    }
    page.push_str("</table></details></section>");
}

fn anchor(result: &CellResult) -> String {
    let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    format!(
        "{}-{}-{}-{}-{}",
        if result.side == Side::Server { "server" } else { "client" },
        plain(result.exchange),
        result.revision,
        result.transport.as_str(),
        plain(&result.runtime)
    )
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
