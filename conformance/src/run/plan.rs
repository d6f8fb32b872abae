//! Which exchanges meet which subjects under which revisions.

use std::io;
use std::thread;

use crate::exchange::{Exchange, Needs, Side, Transport, parse};
use crate::hosting::Client;
use crate::revision::Revision;
use crate::subject::{Declared, Subject};
use crate::text::glob;
use crate::{corpus, torture};

/// What the user asked for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Selection {
    /// The revisions; all that the subject serves if empty.
    pub revisions: Vec<Revision>,
    /// A pattern for names, or a requirement id.
    pub only: Option<String>,
}

impl Selection {
    /// What the user asked for.
    #[must_use]
    pub const fn new(revisions: Vec<Revision>, only: Option<String>) -> Self {
        Self { revisions, only }
    }
}

/// The cells to play.
#[derive(Debug)]
pub struct Plan<'s> {
    pub(super) exchanges: Vec<(&'static str, Exchange)>,
    pub(super) subjects: &'s [Box<dyn Subject>],
    /// What each subject declares, by revision.
    pub(super) declared: Vec<Vec<(Revision, Declared)>>,
    pub(super) cells: Vec<Cell>,
    /// The clients, and the cells in which they meet the suite as their server.
    pub(super) clients: &'s [Box<dyn Client>],
    pub(super) hosted: Vec<HostedCell>,
    selection: Selection,
    /// The texts of exchanges that were made for the subjects.
    sources: Vec<String>,
}

/// One exchange with one client under one revision.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostedCell {
    pub(super) exchange: usize,
    pub(super) client: usize,
    pub(super) revision: Revision,
}

/// One exchange against one subject under one revision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) exchange: usize,
    pub(super) subject: usize,
    /// The place in what the subject declares.
    pub(super) declared: usize,
}

impl<'s> Plan<'s> {
    /// Reads the exchanges, asks the subjects what they offer, and lays out the cells.
    ///
    /// # Errors
    ///
    /// A subject cannot be started or speaks none of the revisions, or nothing is selected.
    pub fn new(selection: Selection, subjects: &'s [Box<dyn Subject>]) -> Result<Self, String> {
        Self::with_clients(selection, subjects, &[])
    }

    /// The same, with clients as subjects, too.
    ///
    /// # Errors
    ///
    /// A subject cannot be started or speaks none of the revisions, or nothing is selected.
    pub fn with_clients(
        selection: Selection,
        subjects: &'s [Box<dyn Subject>],
        clients: &'s [Box<dyn Client>],
    ) -> Result<Self, String> {
        let mut transports: Vec<_> = subjects.iter().map(|subject| subject.transport()).collect();
        transports.dedup();
        let guests: Vec<_> = clients.iter().map(|client| client.transport()).collect();
        let exchanges = exchanges(selection.only.as_deref(), &transports, &guests)?;
        let subjects =
            if exchanges.iter().any(|(_, exchange)| exchange.hosted.is_none()) { subjects } else { &[] };
        let wanted: &[Revision] =
            if selection.revisions.is_empty() { &Revision::ALL } else { &selection.revisions };
        let mut declared = Vec::new();
        for subject in subjects {
            declared.push(ask(subject.as_ref(), wanted, !selection.revisions.is_empty())?);
        }
        let (cells, hosted) = (Vec::new(), Vec::new());
        let sources = Vec::new();
        let mut plan = Self { exchanges, subjects, declared, cells, clients, hosted, selection, sources };
        plan.lay_out();
        if plan.is_empty() {
            return Err("no exchange fits this selection".to_owned());
        }
        Ok(plan)
    }

    /// Asks the subjects what they offer, and lays out no cells: what is played is made up on the way.
    ///
    /// # Errors
    ///
    /// A subject cannot be started or speaks none of the revisions.
    pub fn without_exchanges(selection: Selection, subjects: &'s [Box<dyn Subject>]) -> Result<Self, String> {
        let wanted: &[Revision] =
            if selection.revisions.is_empty() { &Revision::ALL } else { &selection.revisions };
        let named = !selection.revisions.is_empty();
        let declared: Result<_, _> =
            subjects.iter().map(|subject| ask(subject.as_ref(), wanted, named)).collect();
        let (exchanges, cells, hosted) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self {
            exchanges,
            subjects,
            declared: declared?,
            cells,
            clients: &[],
            hosted,
            selection,
            sources: Vec::new(),
        })
    }

    /// Asks the subjects what they offer, and makes exchanges of what each lists. Tools that may destroy something are
    /// called only with `destructive`.
    ///
    /// # Errors
    ///
    /// A subject cannot be started or speaks none of the revisions, or offers nothing.
    pub fn exploring(
        selection: Selection,
        subjects: &'s [Box<dyn Subject>],
        destructive: bool,
    ) -> Result<Self, String> {
        let only = selection.only.clone();
        let mut plan = Self::without_exchanges(selection, subjects)?;
        for (subject, declared) in plan.declared.iter().enumerate() {
            let meant = subjects[subject].meets(&Needs::default());
            for (place, (revision, declared)) in declared.iter().enumerate() {
                if declared.refusal.is_some() || !meant {
                    continue;
                }
                let transport = subjects[subject].transport();
                for text in torture::exchanges(declared, *revision, transport, destructive) {
                    let exchange = parse("explore", &text).map_err(|error| error.to_string())?;
                    let head = &exchange.head;
                    if only.as_deref().is_some_and(|pattern| !fits(pattern, &head.name, &head.requires)) {
                        continue;
                    }
                    let name: &'static str = Box::leak(head.name.clone().into_boxed_str());
                    plan.cells.push(Cell { exchange: plan.exchanges.len(), subject, declared: place });
                    plan.exchanges.push((name, exchange));
                    plan.sources.push(text);
                }
            }
        }
        if plan.is_empty() {
            return Err("the subject offers nothing that fits this selection".to_owned());
        }
        Ok(plan)
    }

    /// The text of the exchange of the cell with this number, if it was made on the way.
    pub(crate) fn source(&self, cell: usize) -> Option<&str> {
        self.sources.get(self.cells.get(cell)?.exchange).map(String::as_str)
    }

    /// The subjects with what each declares, by revision; those revisions alone that it serves.
    pub(crate) fn served(&self) -> impl Iterator<Item = (&'s dyn Subject, Revision, &Declared)> {
        self.subjects.iter().zip(&self.declared).flat_map(|(subject, declared)| {
            let served = declared.iter().filter(|(_, declared)| declared.refusal.is_none());
            served.map(move |(revision, declared)| (subject.as_ref(), *revision, declared))
        })
    }

    /// Takes in an exchange that was made up on the way, for the reports.
    pub(crate) fn adopt(&mut self, name: &'static str, exchange: Exchange) {
        self.exchanges.push((name, exchange));
    }

    /// How many cells there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len() + self.hosted.len()
    }

    /// Whether there is no cell; a plan that could be made has some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.hosted.is_empty()
    }

    /// The revisions of the cells, oldest first.
    #[must_use]
    pub fn revisions(&self) -> Vec<Revision> {
        let mut revisions: Vec<_> = self.declared.iter().flatten().map(|(revision, _)| *revision).collect();
        revisions.extend(self.hosted.iter().map(|cell| cell.revision));
        revisions.sort();
        revisions.dedup();
        revisions
    }

    /// The exchange with this name.
    #[must_use]
    pub fn exchange(&self, name: &str) -> Option<&Exchange> {
        self.exchanges.iter().find(|(known, _)| *known == name).map(|(_, exchange)| exchange)
    }

    /// The name of each subject, and how it calls itself.
    #[must_use]
    pub fn subjects(&self) -> Vec<(String, String, Option<String>)> {
        let identity =
            |index: usize| self.declared[index].iter().find_map(|(_, declared)| declared.identity.clone());
        let named = self.subjects.iter().enumerate();
        let clients = self.clients.iter().map(|client| (client.name(), client.runtime().to_owned(), None));
        named
            .map(|(index, subject)| (subject.name(), subject.runtime().to_owned(), identity(index)))
            .chain(clients)
            .collect()
    }

    /// Why the cell is skipped, if it is. A revision that the user named is not skipped.
    pub(super) fn skip(&self, cell: Cell) -> Option<String> {
        let (revision, declared) = &self.declared[cell.subject][cell.declared];
        if let Some(refusal) = &declared.refusal {
            let named = self.selection.revisions.contains(revision) && !declared.unreachable;
            return (!named).then(|| format!("revision {revision} ({refusal})"));
        }
        let needs = &self.exchanges[cell.exchange].1.head.needs;
        let serves = |needed: &Revision| {
            let found = self.declared[cell.subject].iter().find(|(revision, _)| revision == needed);
            found.is_some_and(|(_, declared)| declared.refusal.is_none())
        };
        if let Some(missing) = needs.revisions.iter().find(|needed| !serves(needed)) {
            return Some(format!("revision {missing} as well"));
        }
        if self.subjects[cell.subject].is_shared() && self.exchanges[cell.exchange].1.head.fresh {
            return Some("an instance on which nothing was done before".to_owned());
        }
        declared.lacks(needs)
    }

    fn lay_out(&mut self) {
        for (subject, declared) in self.declared.iter().enumerate() {
            for (exchange, (_, parsed)) in self.exchanges.iter().enumerate() {
                if parsed.head.side == Side::Client {
                    continue;
                }
                for (place, (revision, _)) in declared.iter().enumerate() {
                    let travels = parsed.head.transports.contains(&self.subjects[subject].transport());
                    let meant = self.subjects[subject].meets(&parsed.head.needs);
                    if travels && meant && parsed.head.revisions.contains(*revision) {
                        self.cells.push(Cell { exchange, subject, declared: place });
                    }
                }
            }
        }
        let wanted = |revision: &Revision| {
            self.selection.revisions.is_empty() || self.selection.revisions.contains(revision)
        };
        // By exchange, so that those with long waits do not come last.
        for (exchange, (_, parsed)) in self.exchanges.iter().enumerate() {
            let head = &parsed.head;
            if head.side != Side::Client {
                continue;
            }
            for (client, subject) in self.clients.iter().enumerate() {
                if head.transports.contains(&subject.transport()) {
                    let revisions = head.revisions.revisions().filter(wanted);
                    self.hosted.extend(revisions.map(|revision| HostedCell { exchange, client, revision }));
                }
            }
        }
    }
}

/// The exchanges that fit the pattern, and one of the transports of a server or a client.
fn exchanges(
    only: Option<&str>,
    servers: &[Transport],
    clients: &[Transport],
) -> Result<Vec<(&'static str, Exchange)>, String> {
    let mut selected = Vec::new();
    // One exchange is named: the others need not be read.
    let one = only.filter(|only| corpus::text(only).is_some());
    for name in corpus::names().filter(|name| one.is_none_or(|one| one == *name)) {
        let Some(parsed) = corpus::load(name) else { continue };
        let exchange = parsed.map_err(|error| error.to_string())?;
        let head = &exchange.head;
        let transports = if head.side == Side::Server { servers } else { clients };
        let here = head.transports.iter().any(|transport| transports.contains(transport));
        if here && only.is_none_or(|pattern| fits(pattern, name, &head.requires)) {
            selected.push((name, exchange));
        }
    }
    if selected.is_empty() {
        let pattern = only.unwrap_or_default();
        return Err(format!("`--only {pattern}`: no exchange has such a name or cites such a requirement"));
    }
    Ok(selected)
}

/// A name, a pattern with `*`, an area, or a requirement id.
fn fits(pattern: &str, name: &str, requires: &[String]) -> bool {
    glob(pattern, name)
        || name.strip_prefix(pattern.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
        || requires.iter().any(|id| id == pattern)
}

/// A revision that the user named counts as served: that the subject refuses it is a fault to report.
fn ask(
    subject: &dyn Subject,
    revisions: &[Revision],
    named: bool,
) -> Result<Vec<(Revision, Declared)>, String> {
    let cannot = |problem: &str| format!("cannot start `{}`: {}", subject.name(), problem.trim_end());
    let mut answers: Vec<(Revision, Declared)> = Vec::new();
    let asked: Vec<io::Result<Declared>> = thread::scope(|scope| {
        let ask = |revision: &Revision| {
            let revision = *revision;
            scope.spawn(move || Declared::ask(subject, revision))
        };
        let asking: Vec<_> = revisions.iter().map(ask).collect();
        let lost = || io::Error::other("the thread that asked has panicked");
        asking.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(lost()))).collect()
    });
    for (revision, declared) in revisions.iter().zip(asked) {
        answers.push((*revision, declared.map_err(|error| cannot(&error.to_string()))?));
    }
    if answers.iter().all(|(_, declared)| !declared.answered) {
        let reason =
            answers.iter().rev().find_map(|(_, declared)| declared.refusal.clone()).unwrap_or_default();
        return Err(cannot(&reason));
    }
    if !named && answers.iter().all(|(_, declared)| declared.refusal.is_some()) {
        let reasons: Vec<_> = answers
            .iter()
            .map(|(revision, declared)| {
                format!("{revision}: {}", declared.refusal.as_deref().unwrap_or_default())
            })
            .collect();
        return Err(format!("`{}` serves none of the revisions\n{}", subject.name(), reasons.join("\n")));
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_a_name_a_pattern_or_a_requirement() {
        let requires = ["S-TOOL-06".to_owned()];
        let fits = |pattern| fits(pattern, "tools/list", &requires);
        assert!(fits("tools/list") && fits("tools") && fits("tools/") && fits("*/list") && fits("S-TOOL-06"));
        assert!(
            !fits("list") && !fits("tools/li") && !fits("tool") && !fits("prompts/*") && !fits("S-TOOL-0")
        );
    }
}
