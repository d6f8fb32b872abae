//! Sets of `name=value` in any order: `{?a,b}`, `{&a,b}`, `{;a,b}`.

use alloc::vec::Vec;

use super::key::Key;
use super::matching::{Cost, NO_FIT, Table, Tables, Window, Writing, plus};
use super::{Modifier, Operator, Part, UriTemplate, Variable};

/// Adjacent expressions that share a separator.
#[derive(Debug)]
pub(super) struct Named<'t> {
    /// Of the first expression. The others have the same separator and may contain the same values.
    operator: Operator,
    /// How many variables belong to a `{?…}`, which can only be the first.
    in_query: usize,
    variables: Vec<&'t Variable>,
    template: &'t UriTemplate,
    writing: Writing,
}

/// One `name=value` in a URI.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'t> {
    pub(super) cost: Cost,
    pub(super) name: Name<'t>,
    /// Where the name ends.
    pub(super) name_end: usize,
    /// Where the value begins, and the table of its inside; `None` if there is no `=`.
    pub(super) value: Option<(usize, Table)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Name<'t> {
    Of(&'t Variable),
    /// For the variable with `*`.
    Unknown,
}

impl Name<'_> {
    pub(super) const fn modifier(self) -> Modifier {
        match self {
            Self::Of(variable) => variable.modifier,
            Self::Unknown => Modifier::Explode,
        }
    }
}

impl<'t> Named<'t> {
    pub(super) fn of(parts: &'t [Part], template: &'t UriTemplate, writing: Writing) -> Self {
        let mut set =
            Self { operator: Operator::Query, in_query: 0, variables: Vec::new(), template, writing };
        for part in parts {
            let Part::Expression(expression) = part else { continue };
            if set.variables.is_empty() {
                set.operator = expression.operator;
            }
            set.variables.extend(&expression.variables);
            if expression.operator == Operator::Query {
                set.in_query = set.variables.len();
            }
        }
        set
    }

    pub(super) fn variables(&self) -> &[&'t Variable] {
        &self.variables
    }

    /// The variable that takes names no other variable has.
    pub(super) fn exploded(&self) -> Option<&'t Variable> {
        self.variables.iter().find(|variable| variable.modifier == Modifier::Explode).copied()
    }

    /// If the set can begin with `key`: the first variable that may come next, and what that costs.
    /// `{?a}{&b}` without `a` begins with `&`.
    pub(super) fn begin(&self, key: Option<&Key>) -> Option<(usize, usize)> {
        let key = key?;
        if self.in_query > 0 && key.delimits('?') {
            Some((0, 0))
        } else if self.in_query < self.variables.len() && key.delimits(self.operator.separator()) {
            Some((self.in_query, usize::from(self.in_query > 0)))
        } else {
            None
        }
    }

    pub(super) fn goes_on_with(&self, key: Option<&Key>) -> bool {
        key.is_some_and(|key| key.delimits(self.operator.separator()))
    }

    /// Adds the tables: the place after a pair; the inside of a value, of which there are
    /// [`kinds`](Self::kinds); the start.
    pub(super) fn fill(&self, uri: &[Key], after: Table, tables: &mut Tables) -> Table {
        let more = tables.add();
        let mut values: Vec<_> = self
            .kinds()
            .map(|modifier| (tables.add(), modifier, Window::new(self.limit(modifier))))
            .collect();
        let start = tables.add();
        // The next `=` that a name from here on can have in front of it.
        let mut equals = None;
        for at in (0..=uri.len()).rev() {
            let key = uri.get(at);
            let pair = |tables: &Tables, from| match self.pair(uri, at + 1, from, equals, start, tables) {
                Some(pair) => pair.cost,
                None => NO_FIT,
            };
            let mut cost = tables.at(after, at);
            if self.goes_on_with(key) {
                cost = cost.min(pair(tables, 0));
            }
            tables.set(more, at, cost);
            for (value, modifier, window) in &mut values {
                let goes_on = key.is_some_and(|key| self.allows(*modifier, *key));
                tables.set(*value, at, window.push(at, cost, goes_on));
            }
            cost = plus(tables.at(after, at), 1);
            if let Some((from, extra)) = self.begin(key) {
                cost = cost.min(plus(pair(tables, from), extra));
            }
            tables.set(start, at, cost);
            if key.is_some_and(|key| key.delimits('=')) {
                equals = Some(at);
            } else if !key.is_some_and(|key| self.allows(Modifier::Explode, *key)) {
                equals = None;
            }
        }
        start
    }

    /// The pair that begins at `at`, for one of the variables from `from` on, given where the next `=` is.
    pub(super) fn pair(
        &self,
        uri: &[Key],
        at: usize,
        from: usize,
        equals: Option<usize>,
        start: Table,
        tables: &Tables,
    ) -> Option<Pair<'t>> {
        let rest = uri.get(at..)?;
        let mut best: Option<Pair<'t>> = None;
        let mut offer = |offered: Pair<'t>| {
            let better =
                best.is_none_or(|best| (offered.cost, best.name_end) < (best.cost, offered.name_end));
            if offered.cost != NO_FIT && better {
                best = Some(offered);
            }
        };
        for variable in &self.variables[from..] {
            if !rest.starts_with(&variable.keys) {
                continue;
            }
            let name_end = at + variable.keys.len();
            let name = Name::Of(variable);
            if uri.get(name_end).is_some_and(|key| key.delimits('=')) {
                offer(self.with_value(uri, name, name_end, start, tables));
            }
            if self.operator == Operator::Parameter || self.writing == Writing::ByHand {
                let cost = tables.at(self.more(start), name_end);
                offer(Pair { cost, name, name_end, value: None });
            }
        }
        if let Some(name_end) = equals.filter(|equals| *equals > at)
            && self.variables[from..].iter().any(|variable| variable.modifier == Modifier::Explode)
            && !self.is_variable(&uri[at..name_end])
        {
            offer(self.with_value(uri, Name::Unknown, name_end, start, tables));
        }
        best
    }

    fn with_value(
        &self,
        uri: &[Key],
        name: Name<'t>,
        name_end: usize,
        start: Table,
        tables: &Tables,
    ) -> Pair<'t> {
        let (modifier, from) = (name.modifier(), name_end + 1);
        let inside = self.inside(start, modifier);
        let first_fits = self.least() == 0 || uri.get(from).is_some_and(|key| self.allows(modifier, *key));
        let cost = if first_fits { tables.at(inside, from + self.least()) } else { NO_FIT };
        Pair { cost, name, name_end, value: Some((from, inside)) }
    }

    /// How many characters a value has at least: `expand` writes `;a` rather than `;a=`. The tables of
    /// values are about what comes after these.
    pub(super) fn least(&self) -> usize {
        usize::from(self.operator == Operator::Parameter && self.writing == Writing::Exact)
    }

    /// How many characters a value may have beyond the least.
    pub(super) fn limit(&self, modifier: Modifier) -> usize {
        modifier.limit().saturating_sub(self.least())
    }

    pub(super) fn more(&self, start: Table) -> Table {
        start.before(1 + self.kinds().count())
    }

    /// Whether a value may contain `key`. Names may contain what an exploded value may.
    pub(super) fn allows(&self, modifier: Modifier, key: Key) -> bool {
        let Some(c) = key.delimiter() else { return key.char().is_some() };
        match self.operator {
            _ if self.writing == Writing::Exact => c == ',' && modifier != Modifier::Explode,
            Operator::Parameter => !matches!(c, '/' | '?' | '#' | ';'),
            _ => !matches!(c, '&' | '#'),
        }
    }

    /// Whether it is the name of a variable anywhere in the template.
    fn is_variable(&self, name: &[Key]) -> bool {
        self.template.expressions().flat_map(|expression| &expression.variables).any(|v| v.keys == name)
    }

    fn inside(&self, start: Table, modifier: Modifier) -> Table {
        let kind = self.kinds().position(|kind| kind == modifier).unwrap_or(0);
        start.before(self.kinds().count() - kind)
    }

    /// Values differ in how long they may be and what they may contain. Two variables with the same
    /// prefix length share a kind, which is then there twice.
    fn kinds(&self) -> impl Iterator<Item = Modifier> {
        let all = [Modifier::Explode, Modifier::None].into_iter();
        let limited = self.variables.iter().map(|variable| variable.modifier);
        all.chain(limited.filter(|modifier| matches!(modifier, Modifier::Prefix(_))))
    }
}
