//! The obligations that exchanges cite: the specification's requirements, and cases from the field.
//!
//! Both tables are data (`requirements.tsv`, `cases.tsv`), part of the binary. A requirement has its source in
//! the specification. A case has none there, but implementations met it; nothing stronger than a warning
//! follows from it alone, whatever its word, unless its source is the schema of the revision.
//!
//! What no peer can see from outside has its reason in a third table (`unseen.tsv`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::exchange::Transport;
use crate::revision::{Revision, Selector};

/// How binding an obligation is, and so what its breach is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums, reason = "the specification's words leave two outcomes")]
pub enum Level {
    /// A breach is a warning: SHOULD and SHOULD NOT, and robustness that the field needs.
    Should,
    /// A breach is a failure: MUST and MUST NOT.
    Must,
}

/// The source of a case that has no page of the specification.
const FIELD_REPORT: &str = "field report";

/// One obligation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirement {
    /// The id that exchanges cite, such as `S-TOOL-06` or `E04`.
    pub id: &'static str,
    /// The revisions it binds.
    pub revisions: Selector,
    /// The revisions as the table writes them, with an extension where one is meant.
    pub scope: &'static str,
    /// Whom it binds: `server`, `client` or `both`.
    pub role: &'static str,
    /// The specification's word: `MUST`, `SHOULD NOT`, …; `ROBUST` for a case without such a word.
    pub word: &'static str,
    /// The part of the protocol.
    pub area: &'static str,
    /// What it asks for.
    pub text: &'static str,
    /// The page of the specification, or `field report`.
    pub source: &'static str,
}

impl Requirement {
    /// What a breach is counted as: a failure only where the specification demands it.
    #[must_use]
    pub fn level(&self) -> Level {
        if self.word.starts_with("MUST") && self.source != FIELD_REPORT { Level::Must } else { Level::Should }
    }

    /// Whether it says which number an error has.
    #[must_use]
    pub fn names_an_error_code(&self) -> bool {
        self.text.contains("-32")
    }

    /// Whether it says something about messages that travel so.
    #[must_use]
    pub fn concerns(&self, transport: Transport) -> bool {
        match self.area {
            "STDIO" => transport == Transport::Stdio,
            "HTTP" | "HDR" | "SESS" | "SSE" => transport == Transport::Http,
            _ => true,
        }
    }

    /// Whether it binds the revision.
    #[must_use]
    pub const fn applies(&self, revision: Revision) -> bool {
        self.revisions.contains(revision)
    }
}

/// Why an obligation cannot be checked from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unseen {
    /// The id of the obligation.
    pub id: &'static str,
    /// What it is instead: one of [`KINDS`].
    pub kind: &'static str,
    /// The reason, in one sentence.
    pub reason: &'static str,
}

/// The kinds of obligations that cannot be seen, each with what it means.
pub const KINDS: [(&str, &str); 7] = [
    ("judgement", "its author or operator alone can tell, as the text gives no measure"),
    ("inside", "what a process does with what it knows, without a trace in what it sends"),
    ("people", "what a person sees, is asked, or decides"),
    ("documents", "what is written in documents, designs and plans"),
    ("elsewhere", "what happens between the subject and others than its peer"),
    ("summary", "it repeats what rows of its own say"),
    ("void", "no message can keep or break it on this side"),
];

/// Every obligation that cannot be seen from outside, with the reason.
pub fn unseen() -> impl Iterator<Item = Unseen> {
    include_str!("../unseen.tsv").lines().skip(1).filter_map(|line| {
        let mut fields = line.split('\t');
        Some(Unseen { id: fields.next()?, kind: fields.next()?, reason: fields.next()? })
    })
}

/// Every requirement in the order of the table, then every case.
pub fn all() -> impl Iterator<Item = &'static Requirement> {
    TABLE.rows.iter()
}

/// The obligation with this id.
#[must_use]
pub fn by_id(id: &str) -> Option<&'static Requirement> {
    TABLE.by_id.get(id).map(|&row| &TABLE.rows[row])
}

/// The strongest level among the cited obligations that bind the revision; `None` if none does.
pub fn strongest<'i>(ids: impl IntoIterator<Item = &'i str>, revision: Revision) -> Option<Level> {
    ids.into_iter().filter_map(by_id).filter(|row| row.applies(revision)).map(Requirement::level).max()
}

struct Table {
    rows: Vec<Requirement>,
    by_id: BTreeMap<&'static str, usize>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let requirements = rows(include_str!("../requirements.tsv"));
    let rows: Vec<_> = requirements.chain(rows(include_str!("../cases.tsv"))).collect();
    let by_id = rows.iter().enumerate().map(|(row, requirement)| (requirement.id, row)).collect();
    Table { rows, by_id }
});

/// A row that does not fit is left out; the tests below hold the committed tables to having none.
fn rows(table: &'static str) -> impl Iterator<Item = Requirement> {
    table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split('\t');
        let mut next = || fields.next().filter(|field| !field.is_empty());
        let (id, scope, role) = (next()?, next()?, next()?);
        let (word, area, text, source) = (next()?, next()?, next()?, next()?);
        // An extension is written `REVISION+NAME`.
        let dates = scope.split(',').map(|part| part.split('+').next().unwrap_or(part));
        let revisions = dates.map(Revision::from_date).collect::<Option<Selector>>()?;
        Some(Requirement { id, revisions, scope, role, word, area, text, source })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_both_tables_is_read() {
        let lines = |text: &str| text.lines().count() - 1;
        let expected = lines(include_str!("../requirements.tsv")) + lines(include_str!("../cases.tsv"));
        assert_eq!(all().count(), expected);
        assert_eq!(TABLE.by_id.len(), expected, "ids are unique");
        assert!(expected > 880);
    }

    #[test]
    fn every_row_of_the_unseen_is_whole() {
        let table = include_str!("../unseen.tsv");
        assert_eq!(unseen().count(), table.lines().count() - 1);
        for line in table.lines().skip(1) {
            let fields: Vec<_> = line.split('\t').collect();
            assert!(matches!(fields.as_slice(), [_, _, reason] if reason.ends_with('.')), "{line}");
        }
        for row in unseen() {
            assert!(KINDS.iter().any(|(kind, _)| *kind == row.kind), "{}: no kind `{}`", row.id, row.kind);
        }
    }

    #[test]
    fn a_row_says_whom_it_binds_where_and_how_strongly() {
        let row = by_id("S-TASK-30").unwrap();
        assert!(row.applies(Revision::V2026_07_28) && !row.applies(Revision::V2025_11_25));
        assert_eq!((row.role, row.level()), ("server", Level::Must));
        assert_eq!(by_id("S-PAGE-03").unwrap().level(), Level::Should);
        assert_eq!(by_id("E10").unwrap().level(), Level::Should);
        assert_eq!(by_id("NO-SUCH-01"), None);
    }

    /// What nobody can look up accuses nobody.
    #[test]
    fn a_case_without_a_page_is_a_warning_whatever_its_word() {
        let levels = |id: &str| (by_id(id).unwrap().word, by_id(id).unwrap().level());
        assert_eq!(levels("M01"), ("MUST", Level::Should));
        assert_eq!(levels("W01"), ("MUST", Level::Must));
        assert!(all().all(|row| row.level() == Level::Should || row.source != FIELD_REPORT));
    }

    #[test]
    fn the_strongest_cited_level_that_binds_the_revision_counts() {
        let cited = ["S-RES-08", "LS-RES-01"];
        assert_eq!(strongest(cited, Revision::V2026_07_28), Some(Level::Must));
        assert_eq!(strongest(cited, Revision::V2025_06_18), Some(Level::Should));
        assert_eq!(strongest(["S-RES-08"], Revision::V2025_06_18), None);
    }
}
