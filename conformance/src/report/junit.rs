//! `junit.xml`, for build servers: one suite a revision and runtime, one case an exchange.

use std::collections::BTreeMap;
use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::breaks;
use crate::exchange::Side;
use crate::replay::{Finding, Verdict};
use crate::run::{CellResult, Outcome, Totals};

pub(super) fn report(outcome: &Outcome) -> Result<String, String> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 1);
    suites(&mut writer, outcome).map_err(|error| format!("junit.xml: {error}"))?;
    String::from_utf8(writer.into_inner()).map_err(|error| format!("junit.xml: {error}"))
}

fn suites(writer: &mut Writer<Vec<u8>>, outcome: &Outcome) -> io::Result<()> {
    let mut suites: BTreeMap<String, Vec<&CellResult>> = BTreeMap::new();
    for result in &outcome.results {
        let side = if result.side == Side::Server { "" } else { " client" };
        let name = format!("{} {} {}{side}", result.revision, result.transport.as_str(), result.runtime);
        suites.entry(name).or_default().push(result);
    }
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let totals = counts(outcome.results.iter());
    let root = writer.create_element("testsuites").with_attribute(("name", "mcp-conformance"));
    root.with_attributes(pairs(&totals)).write_inner_content(|writer| {
        for (name, results) in &suites {
            let totals = counts(results.iter().copied());
            let suite = writer.create_element("testsuite").with_attribute(("name", name.as_str()));
            suite.with_attributes(pairs(&totals)).write_inner_content(|writer| {
                results.iter().try_for_each(|result| case(writer, name, result))
            })?;
        }
        Ok(())
    })?;
    Ok(())
}

fn case(writer: &mut Writer<Vec<u8>>, suite: &str, result: &CellResult) -> io::Result<()> {
    let time = format!("{:.3}", result.elapsed.as_secs_f64());
    let element = writer.create_element("testcase").with_attributes([
        ("name", result.exchange),
        ("classname", suite),
        ("time", time.as_str()),
    ]);
    match result.verdict {
        Verdict::Passed => drop(element.write_empty()?),
        Verdict::Skipped => {
            let reason = result.reason.clone().unwrap_or_default();
            element.write_inner_content(|writer| {
                writer
                    .create_element("skipped")
                    .with_attribute(("message", clean(&reason).as_str()))
                    .write_empty()?;
                Ok(())
            })?;
        }
        // JUnit knows no warnings: they are output of a case that passed.
        Verdict::Warning => {
            element.write_inner_content(|writer| {
                let text: Vec<_> = result.findings.iter().map(told).collect();
                writer
                    .create_element("system-out")
                    .write_text_content(BytesText::new(&clean(&text.join("\n"))))?;
                Ok(())
            })?;
        }
        Verdict::Failed => {
            element.write_inner_content(|writer| {
                for finding in &result.findings {
                    let message = clean(&format!("expected {}, got {}", finding.expected, finding.got));
                    let failure = writer.create_element("failure");
                    let failure =
                        failure.with_attributes([("message", message.as_str()), ("type", &*breaks(finding))]);
                    failure.write_text_content(BytesText::new(&clean(&told(finding))))?;
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn told(finding: &Finding) -> String {
    let line = finding.line.map_or_else(String::new, |line| format!("line {line}: "));
    format!("{line}expected {}, got {} [{}]", finding.expected, finding.got, breaks(finding))
}

fn counts<'r>(results: impl Iterator<Item = &'r CellResult>) -> [String; 3] {
    let totals = Totals::of(results);
    let failed = totals.failed + totals.known;
    let tests = totals.passed + totals.warnings + totals.skipped + failed;
    [tests, failed, totals.skipped].map(|count| count.to_string())
}

fn pairs(counts: &[String; 3]) -> [(&str, &str); 3] {
    [("tests", counts[0].as_str()), ("failures", &counts[1]), ("skipped", &counts[2])]
}

/// XML has no way to write most control characters.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}
