//! The revisions of the protocol, the two eras, and selections of revisions.

use std::fmt;

/// A published revision of the Model Context Protocol.
///
/// The order is the order of publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
    /// 2026-07-28.
    V2026_07_28,
}

/// The two families of revisions, which differ in how a connection works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the protocol has two eras; a third would change every caller")]
pub enum Era {
    /// A handshake opens a session; both sides send requests. Up to 2025-11-25.
    Legacy,
    /// Every request carries its own metadata; only the client sends requests. From 2026-07-28 on.
    Modern,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The date that names the revision on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision that a date names.
    #[must_use]
    pub fn from_date(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == date)
    }

    /// The era the revision belongs to.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether the revision belongs to the modern era.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self.era() == Era::Modern
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A selection of revisions, written as text.
///
/// Forms, joined by commas: a date; a range of dates `A..B` with both ends, either of which may be left
/// out; `legacy`; `modern`; `*` for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selector {
    bits: u8,
    breadth: Breadth,
}

/// How specific a selector is: with several that fit, the narrower form wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Breadth {
    Dates,
    Range,
    Era,
    All,
}

impl Selector {
    /// Selects every revision.
    pub const ALL: Self = Self { bits: 0b1_1111, breadth: Breadth::All };

    /// Reads a selector.
    ///
    /// # Errors
    ///
    /// Says which part is not one of the forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut bits = 0;
        let mut breadth = Breadth::Dates;
        for part in text.split(',').map(str::trim) {
            let (more, form) = Self::part(part)?;
            bits |= more;
            breadth = breadth.max(form);
        }
        Ok(Self { bits, breadth })
    }

    /// Whether the revision is selected.
    #[must_use]
    pub const fn contains(self, revision: Revision) -> bool {
        self.bits & revision.bit() != 0
    }

    /// The selected revisions, oldest first.
    pub fn revisions(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |revision| self.contains(*revision))
    }

    /// Whether some revision is in both selections.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.bits & other.bits != 0
    }

    /// The union of two selections.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { bits: self.bits | other.bits, breadth: self.breadth.max(other.breadth) }
    }

    /// Of several selectors that contain a revision, the one with the lowest rank applies.
    pub(crate) fn rank(self) -> (u8, u32) {
        (self.breadth as u8, self.bits.count_ones())
    }

    fn part(part: &str) -> Result<(u8, Breadth), String> {
        let date = |text: &str| {
            Revision::from_date(text).ok_or_else(|| {
                format!("expected a revision, a range `A..B`, `legacy`, `modern` or `*`, got `{text}`")
            })
        };
        let span = |from: usize, to: usize| {
            Revision::ALL[from..=to].iter().fold(0, |bits, revision| bits | revision.bit())
        };
        match part {
            "*" => Ok((Self::ALL.bits, Breadth::All)),
            "legacy" => Ok((span(0, 3), Breadth::Era)),
            "modern" => Ok((span(4, 4), Breadth::Era)),
            _ => match part.split_once("..") {
                None => Ok((date(part)?.bit(), Breadth::Dates)),
                Some((from, to)) => {
                    let from = if from.is_empty() { 0 } else { date(from)? as usize };
                    let to = if to.is_empty() { 4 } else { date(to)? as usize };
                    if from > to {
                        return Err(format!("the range `{part}` is empty"));
                    }
                    Ok((span(from, to), Breadth::Range))
                }
            },
        }
    }
}

impl FromIterator<Revision> for Selector {
    fn from_iter<I: IntoIterator<Item = Revision>>(revisions: I) -> Self {
        let bits = revisions.into_iter().fold(0, |bits, revision| bits | revision.bit());
        Self { bits, breadth: Breadth::Dates }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_name_dates_ranges_and_eras() {
        let dates = |text: &str| {
            Selector::parse(text).unwrap().revisions().map(Revision::as_str).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(dates("2025-06-18"), "2025-06-18");
        assert_eq!(dates("2025-03-26..2025-11-25"), "2025-03-26 2025-06-18 2025-11-25");
        assert_eq!(dates("..2025-03-26"), "2024-11-05 2025-03-26");
        assert_eq!(dates("2025-11-25.."), "2025-11-25 2026-07-28");
        assert_eq!(dates("2024-11-05, modern"), "2024-11-05 2026-07-28");
        assert_eq!(dates("legacy"), "2024-11-05 2025-03-26 2025-06-18 2025-11-25");
        assert_eq!(Selector::parse("*").unwrap(), Selector::ALL);
    }

    #[test]
    fn wrong_selectors_say_what_was_expected() {
        assert!(Selector::parse("2025-06-19").unwrap_err().contains("got `2025-06-19`"));
        assert!(Selector::parse("2025-11-25..2024-11-05").unwrap_err().contains("empty"));
        assert!(Selector::parse("").is_err());
    }

    #[test]
    fn the_narrower_form_has_the_lower_rank() {
        let rank = |text: &str| Selector::parse(text).unwrap().rank();
        assert!(rank("2025-06-18") < rank("2025-06-18..2025-11-25"));
        assert!(rank("2024-11-05..2025-11-25") < rank("legacy"));
        assert!(rank("legacy") < rank("*"));
    }
}
