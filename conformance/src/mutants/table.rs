//! The planted faults, one row a fault and an exchange that is to catch it: `mutants.tsv`, part of the binary.

use std::sync::LazyLock;

use super::{Bench, Mutant};
use crate::exchange::Transport;
use crate::replay::Verdict;
use crate::revision::Revision;

const TABLE: &str = include_str!("../../mutants.tsv");

static ROWS: LazyLock<Vec<Mutant>> = LazyLock::new(|| TABLE.lines().skip(1).filter_map(row).collect());

/// Every row, in the order of the table.
pub(super) fn all() -> &'static [Mutant] {
    &ROWS
}

/// A row that does not fit is left out; the test below holds the committed table to having none.
fn row(line: &'static str) -> Option<Mutant> {
    let mut fields = line.split('\t').filter(|field| !field.is_empty());
    let bench = match fields.next()? {
        "pipes" => Bench::Pipes,
        "web" => Bench::Web,
        "sse" => Bench::Sse,
        "client" => Bench::Client,
        "fixture" => Bench::Fixture,
        _ => return None,
    };
    let name = fields.next()?;
    let transport = match fields.next()? {
        "stdio" => Transport::Stdio,
        "http" => Transport::Http,
        _ => return None,
    };
    let (exchange, revision) = (fields.next()?, Revision::from_date(fields.next()?)?);
    let requirement = fields.next()?;
    let verdict = match fields.next()? {
        "failed" => Verdict::Failed,
        "warning" => Verdict::Warning,
        _ => return None,
    };
    let fault = fields.next()?;
    Some(Mutant { name, bench, fault, transport, exchange, revision, requirement, verdict })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::layer;
    use super::*;
    use crate::exchange::Side;
    use crate::{corpus, requirement};

    #[test]
    fn every_row_is_whole() {
        for line in TABLE.lines().skip(1) {
            let mutant = row(line).unwrap_or_else(|| panic!("{line}"));
            assert!(mutant.fault.ends_with('.'), "{line}");
            let exchange = corpus::load(mutant.exchange).unwrap_or_else(|| panic!("no exchange: {line}"));
            let head = exchange.unwrap().head;
            assert_eq!(head.side, mutant.side(), "{line}");
            assert!(head.revisions.contains(mutant.revision), "{line}");
            assert!(head.transports.contains(&mutant.transport), "{line}");
            let requirement = requirement::by_id(mutant.requirement);
            assert!(requirement.is_some_and(|row| row.applies(mutant.revision)), "{line}");
        }
    }

    #[test]
    fn there_are_many_faults_of_both_sides() {
        let of = |side| -> BTreeSet<_> {
            all().iter().filter(|mutant| mutant.side() == side).map(Mutant::label).collect()
        };
        let fixture: BTreeSet<_> =
            all().iter().filter(|mutant| mutant.bench == Bench::Fixture).map(Mutant::label).collect();
        assert!(of(Side::Server).len() >= 150, "{}", of(Side::Server).len());
        assert!(of(Side::Client).len() >= 100, "{}", of(Side::Client).len());
        assert!(fixture.len() >= 40, "{}", fixture.len());
    }

    #[test]
    fn each_fault_of_the_layer_is_in_the_table() {
        let named: BTreeSet<_> =
            all().iter().filter(|mutant| mutant.bench == Bench::Fixture).map(|mutant| mutant.name).collect();
        let planted: BTreeSet<_> = layer::names().collect();
        assert_eq!(named, planted);
    }
}
