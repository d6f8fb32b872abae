//! Known failures: they do not fail a run, and an entry that no longer fails does.

use std::path::Path;

use serde_json::Value;

use crate::revision::Revision;

/// A list of known failures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    exchange: String,
    /// `None` stands for every revision.
    revision: Option<Revision>,
}

impl Baseline {
    /// Reads a baseline: a line `exchange` or `exchange revision` each, or the `report.json` of a run.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line is neither.
    pub fn load(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('{') {
            return Self::of_report(text);
        }
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<_> = line.split_whitespace().collect();
            let wrong =
                || format!("line {}: expected `exchange` or `exchange revision`, got `{line}`", index + 1);
            let revision = match words.as_slice() {
                [] => continue,
                [_] => None,
                [_, date] => Some(Revision::from_date(date).ok_or_else(wrong)?),
                _ => return Err(wrong()),
            };
            entries.push(Entry { exchange: words[0].to_owned(), revision });
        }
        Ok(Self { entries })
    }

    fn of_report(text: &str) -> Result<Self, String> {
        let report: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let results = report.get("results").and_then(Value::as_array);
        let results = results.ok_or("expected a report with `results`, got none")?;
        let failed =
            results.iter().filter(|result| result.get("outcome").is_some_and(|word| word == "failed"));
        let entry = |result: &Value| {
            let exchange = result.get("exchange")?.as_str()?.to_owned();
            Some(Entry { exchange, revision: Revision::from_date(result.get("revision")?.as_str()?) })
        };
        let mut entries: Vec<_> = failed.filter_map(entry).collect();
        entries.dedup();
        Ok(Self { entries })
    }

    /// Whether the failure is known.
    #[must_use]
    pub fn knows(&self, exchange: &str, revision: Revision) -> bool {
        self.entries.iter().any(|entry| entry.covers(exchange, revision))
    }

    /// The entries that none of the failures is covered by, among those that ran.
    pub(super) fn stale(
        &self,
        failures: &[(&'static str, Revision)],
        ran: &[(&'static str, Revision)],
    ) -> Vec<String> {
        let covers_none = |entry: &Entry, cells: &[(&'static str, Revision)]| {
            !cells.iter().any(|(exchange, revision)| entry.covers(exchange, *revision))
        };
        let stale =
            self.entries.iter().filter(|entry| covers_none(entry, failures) && !covers_none(entry, ran));
        stale.map(Entry::to_text).collect()
    }
}

impl Entry {
    fn covers(&self, exchange: &str, revision: Revision) -> bool {
        self.exchange == exchange && self.revision.is_none_or(|known| known == revision)
    }

    fn to_text(&self) -> String {
        self.revision
            .map_or_else(|| self.exchange.clone(), |revision| format!("{} {revision}", self.exchange))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_is_lines_or_an_earlier_report() {
        let lines = Baseline::parse("# known\ntools/list\n\nping/answers 2025-06-18 # why\n").unwrap();
        assert!(lines.knows("tools/list", Revision::V2024_11_05));
        assert!(lines.knows("ping/answers", Revision::V2025_06_18));
        assert!(!lines.knows("ping/answers", Revision::V2025_11_25));
        let report = r#"{"results":[{"exchange":"a/b","revision":"2025-06-18","outcome":"failed"},{"exchange":"c/d","revision":"2025-06-18","outcome":"passed"}]}"#;
        let report = Baseline::parse(report).unwrap();
        assert!(report.knows("a/b", Revision::V2025_06_18) && !report.knows("c/d", Revision::V2025_06_18));
        assert!(Baseline::parse("a b c").unwrap_err().contains("line 1"));
        assert!(Baseline::parse("a 2025-01-01").unwrap_err().contains("line 1"));
    }

    #[test]
    fn an_entry_that_ran_and_did_not_fail_is_stale() {
        let baseline = Baseline::parse("a/b\nc/d 2025-06-18\ne/f").unwrap();
        let (a, c) = (("a/b", Revision::V2025_06_18), ("c/d", Revision::V2025_06_18));
        assert_eq!(baseline.stale(&[a], &[a, c]), ["c/d 2025-06-18"]);
    }
}
