//! A URI to values, in time linear in the URI.
//!
//! A table per place in the template, filled from the end of the URI to its start, says for each position
//! how the rest of the template fits the rest of the URI: not at all, or with so many variables left out.
//! Then one walk forward follows the smallest numbers. There is nothing to go back on.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::key::{self, Key};
use super::named::{Name, Named, Pair};
use super::{Expression, Literal, MAX_URI, Modifier, Operator, Part, UriTemplate, Variable};

/// The values of a template's variables in a URI, percent-decoded exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captures<'t> {
    values: Vec<Captured<'t>>,
}

/// The value of one variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured<'t> {
    name: &'t str,
    text: String,
    /// Empty if the text is the only item.
    items: Vec<Item>,
    /// How many characters the longest occurrence could have, `None` if any number.
    prefix: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    key: Option<String>,
    value: String,
}

impl UriTemplate {
    /// The values that make this template into `uri`, or `None` if there are none.
    ///
    /// What one can rely on:
    ///
    /// - The time is linear in the URI, whatever the URI.
    /// - Characters are compared by meaning: `é` in the template matches `%C3%A9`, and `%61` is `a`. But an
    ///   encoded reserved character is data and never stands for the raw one. `%` without two
    ///   hexadecimal digits is no match, and neither are encoded bytes in a variable that are not UTF-8.
    /// - A value is any text without `/`, `?` and `#` in `{a}`, `{.a}`, `{/a}` and `{;a}` (without `;` in the
    ///   last), any text without `&` and `#` in `{?a}` and `{&a}`, and any text at all in `{+a}` and
    ///   `{#a}`. A value may be empty. A variable whose operator did not occur has no value.
    /// - Variables of `{?a,b}`, `{&a,b}` and `{;a,b}` may come in any order, each once. A name that the
    ///   template does not know is no match, unless a variable with `*` is there to take it.
    /// - Every URI that [`expand`](Self::expand) makes of texts and lists is matched, and expanding the
    ///   captured values makes it again, with the pairs of `{?a,b}`, `{&a,b}` and `{;a,b}` in the order of
    ///   the template. The URI may have them in another, if a value of `{+rest}` looks like a pair:
    ///   `{?b,a}{+rest}` on `?a=1&b=2` is `b` and `a`. (Names that occur twice are only checked to agree.)
    ///
    /// Where several sets of values fit, first those are looked for that `expand` would have written so,
    /// with every reserved character encoded; then, since people write URIs by hand, any that fit.
    /// Among them, those that leave out the least (a set of names counts as one); among them, each
    /// variable in turn takes as much as it can. So `{name}{.extension}` on `a.b.c` is `a.b` and `c`.
    #[must_use]
    pub fn matches(&self, uri: &str) -> Option<Captures<'_>> {
        if uri.len() > MAX_URI || !self.may_match(uri) {
            return None;
        }
        let uri = key::collect(uri)?;
        self.captures(&uri, Writing::Exact).or_else(|| self.captures(&uri, Writing::ByHand))
    }

    /// Most URIs are told apart by their beginning, without any memory.
    fn may_match(&self, uri: &str) -> bool {
        match self.parts.first() {
            Some(Part::Literal(literal)) => {
                let mut uri = key::keys(uri);
                literal.keys.iter().all(|key| uri.next() == Some(Ok(*key)))
            }
            _ => true,
        }
    }

    fn captures(&self, uri: &[Key], writing: Writing) -> Option<Captures<'_>> {
        let mut tables = Tables::default();
        let mut steps = Vec::new();
        // From the end of the template, for each table is filled from the one after it.
        let mut after = tables.last(uri.len());
        let mut parts = &self.parts[..];
        while let Some((step, rest)) = Step::split_last(parts) {
            let start = step.fill(self, uri, writing, after, &mut tables);
            steps.push((step, start, after));
            (after, parts) = (start, rest);
        }
        if tables.at(after, 0) == NO_FIT {
            return None;
        }
        let mut walk = Walk {
            template: self,
            uri,
            writing,
            tables: &tables,
            at: 0,
            captures: Captures { values: Vec::new() },
        };
        for (step, start, after) in steps.iter().rev() {
            walk.step(step, *start, *after)?;
        }
        Some(walk.captures)
    }
}

impl<'t> Captures<'t> {
    /// The value of the variable called `name`.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Captured<'t>> {
        self.values.iter().find(|value| value.name == name)
    }

    /// The text of the variable called `name`.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value(name).map(Captured::text)
    }

    /// All variables that have a value.
    pub fn iter(&self) -> impl Iterator<Item = &Captured<'t>> {
        self.values.iter()
    }

    /// One more item of a variable with `*`.
    fn add(&mut self, variable: &'t Variable, item: Item) {
        if let Some(known) = self.values.iter_mut().find(|value| value.name == variable.name) {
            known.text.push(',');
            known.text.push_str(&item.value);
            known.items.push(item);
        } else {
            let text = item.value.clone();
            self.values.push(Captured { name: &variable.name, text, items: vec![item], prefix: None });
        }
    }

    /// `None` if a variable that occurs twice has two different values.
    fn insert(&mut self, new: Captured<'t>) -> Option<()> {
        let Some(known) = self.values.iter_mut().find(|value| value.name == new.name) else {
            self.values.push(new);
            return Some(());
        };
        let (long, short) = if known.prefix.is_none_or(|known| new.prefix.is_some_and(|new| new <= known)) {
            (known, new)
        } else {
            let short = core::mem::replace(known, new);
            (known, short)
        };
        let length = short.prefix.map_or(usize::MAX, usize::from);
        long.text.chars().take(length).eq(short.text.chars()).then_some(())
    }
}

impl<'t> Captured<'t> {
    /// The variable's name.
    #[must_use]
    pub const fn name(&self) -> &'t str {
        self.name
    }

    /// The whole value as text, with the separators of a list as they stand in the URI (those of
    /// repeated `name=value` as commas).
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value as a list: its parts between raw separators, which are commas without `*` in the
    /// template, else those of the operator. An encoded separator is part of an item.
    pub fn items(&self) -> impl Iterator<Item = &str> {
        let only = self.items.is_empty().then_some(&*self.text);
        only.into_iter().chain(self.items.iter().map(|item| &*item.value))
    }

    /// The names and values that `{?a*}`, `{&a*}` or `{;a*}` took; those of a list are all called `a`.
    /// Nothing for other variables.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.items.iter().filter_map(|item| Some((item.key.as_deref()?, &*item.value)))
    }

    /// Whether the text, taken as a path relative to a directory, could lead somewhere else: it has a `..`
    /// segment, starts at a root or a drive, or contains NUL. Both `/` and `\` count as separators.
    ///
    /// Decoding brings such paths to light (`..%2F..%2Fetc`), it does not refuse them: a template need not
    /// name files. Whoever opens files asks this first. Symbolic links are another matter.
    #[must_use]
    pub fn may_leave_directory(&self) -> bool {
        let text = self.text.as_bytes();
        let separator = |byte: &u8| matches!(byte, b'/' | b'\\');
        text.contains(&0)
            || text.first().is_some_and(separator)
            || matches!(text, [drive, b':', ..] if drive.is_ascii_alphabetic())
            || text.split(separator).any(|segment| segment == b"..")
    }

    fn new(variable: &'t Variable, value: &[Key], separator: char) -> Self {
        let mut items = Vec::new();
        if value.iter().any(|key| key.delimits(separator)) {
            let parts = value.split(|key| key.delimits(separator));
            items.extend(parts.map(|part| Item { key: None, value: text(part) }));
        }
        let prefix = if let Modifier::Prefix(length) = variable.modifier { Some(length) } else { None };
        Self { name: &variable.name, text: text(value), items, prefix }
    }
}

/// How strictly reserved characters are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// As [`UriTemplate::expand`] writes: reserved characters only where they separate.
    Exact,
    /// Reserved characters also within values, as far as they cannot be mistaken.
    ByHand,
}

/// A stretch of the template that is matched as one.
#[derive(Debug, Clone, Copy)]
enum Step<'t> {
    Literal(&'t Literal),
    Positional(&'t Expression),
    /// Expressions with names that share a separator, such as `{?a}{&b}`: one set in any order.
    Named(&'t [Part]),
}

impl<'t> Step<'t> {
    fn split_last(parts: &'t [Part]) -> Option<(Self, &'t [Part])> {
        let (last, rest) = parts.split_last()?;
        let expression = match last {
            Part::Literal(literal) => return Some((Self::Literal(literal), rest)),
            Part::Expression(expression) => expression,
        };
        if !expression.operator.is_named() {
            return Some((Self::Positional(expression), rest));
        }
        // `{?a}` begins a set; `{&a}` and `{;a}` may go on with one.
        let mut operator = expression.operator;
        let mut start = rest.len();
        while operator != Operator::Query
            && let Some(Part::Expression(before)) = rest[..start].last()
            && before.operator.is_named()
            && before.operator.separator() == operator.separator()
        {
            operator = before.operator;
            start -= 1;
        }
        Some((Self::Named(&parts[start..]), &parts[..start]))
    }

    /// Adds the tables of this step, given the one of what comes after it; which of them is its start.
    fn fill(
        &self,
        template: &'t UriTemplate,
        uri: &[Key],
        writing: Writing,
        after: Table,
        tables: &mut Tables,
    ) -> Table {
        match self {
            Self::Literal(literal) => literal.fill(uri, after, tables),
            Self::Positional(expression) => expression.fill(uri, writing, after, tables),
            Self::Named(parts) => Named::of(parts, template, writing).fill(uri, after, tables),
        }
    }
}

/// How many variables have to be left out.
pub(super) type Cost = u8;
pub(super) const NO_FIT: Cost = Cost::MAX;

/// A column of [`Tables`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Table(usize);

impl Table {
    /// The one that was added so many before it.
    pub(super) const fn before(self, count: usize) -> Self {
        Self(self.0 - count)
    }
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    /// One more than the URI has characters.
    length: usize,
    costs: Vec<Cost>,
}

impl Tables {
    fn last(&mut self, uri_length: usize) -> Table {
        self.length = uri_length + 1;
        let table = self.add();
        self.set(table, uri_length, 0);
        table
    }

    pub(super) fn add(&mut self) -> Table {
        let table = Table(self.costs.len() / self.length);
        self.costs.resize(self.costs.len() + self.length, NO_FIT);
        table
    }

    pub(super) fn at(&self, table: Table, position: usize) -> Cost {
        self.costs[table.0 * self.length + position]
    }

    pub(super) fn set(&mut self, table: Table, position: usize, cost: Cost) {
        self.costs[table.0 * self.length + position] = cost;
    }
}

/// There are at most twice as many things to leave out as variables, which is less than `NO_FIT`.
pub(super) fn plus(cost: Cost, left_out: usize) -> Cost {
    cost.saturating_add(Cost::try_from(left_out).unwrap_or(NO_FIT))
}

impl Literal {
    fn fill(&self, uri: &[Key], after: Table, tables: &mut Tables) -> Table {
        let start = tables.add();
        let mut matched = 0;
        for (at, key) in uri.iter().enumerate() {
            while matched > 0 && (matched == self.keys.len() || self.keys[matched] != *key) {
                matched = self.borders[matched - 1];
            }
            matched += usize::from(self.keys[matched] == *key);
            if matched == self.keys.len() {
                let cost = tables.at(after, at + 1);
                tables.set(start, at + 1 - matched, cost);
            }
        }
        start
    }
}

impl Expression {
    /// The table of the start is added last; before it, for each variable from the last to the first, that
    /// of its end, that of its inside, and that of where it or a later one begins.
    fn fill(&self, uri: &[Key], writing: Writing, after: Table, tables: &mut Tables) -> Table {
        let mut next_begin = None;
        for (index, variable) in self.variables.iter().enumerate().rev() {
            let (end, inside, begin) = (tables.add(), tables.add(), tables.add());
            let left_out = self.variables.len() - 1 - index;
            let mut window = Window::new(variable.modifier.limit());
            for at in (0..=uri.len()).rev() {
                let key = uri.get(at);
                let mut cost = plus(tables.at(after, at), left_out);
                if let Some(next) = next_begin
                    && key.is_some_and(|key| key.delimits(self.operator.separator()))
                {
                    cost = cost.min(tables.at(next, at + 1));
                }
                tables.set(end, at, cost);
                let goes_on = key.is_some_and(|key| variable.allows(self.operator, writing, *key));
                let cost = window.push(at, cost, goes_on);
                tables.set(inside, at, cost);
                let later = next_begin.map_or(NO_FIT, |next| plus(tables.at(next, at), 1));
                tables.set(begin, at, cost.min(later));
            }
            next_begin = Some(begin);
        }
        let start = tables.add();
        for at in 0..=uri.len() {
            let cost = match self.operator.first() {
                None => tables.at(self.begin(start, 0), at),
                Some(first) => {
                    let skipped = plus(tables.at(after, at), self.variables.len());
                    let begins = uri.get(at).is_some_and(|key| key.delimits(first));
                    if begins { skipped.min(tables.at(self.begin(start, 0), at + 1)) } else { skipped }
                }
            };
            tables.set(start, at, cost);
        }
        start
    }

    fn begin(&self, start: Table, variable: usize) -> Table {
        debug_assert!(variable < self.variables.len());
        start.before(1 + 3 * variable)
    }

    fn inside(&self, start: Table, variable: usize) -> Table {
        self.begin(start, variable).before(1)
    }

    fn end(&self, start: Table, variable: usize) -> Table {
        self.begin(start, variable).before(2)
    }
}

/// The smallest cost among the places where a variable that begins here can end.
pub(super) struct Window {
    limit: usize,
    /// From the nearest to the farthest, each smaller than the one before.
    costs: VecDeque<(usize, Cost)>,
}

impl Window {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, costs: VecDeque::new() }
    }

    /// Moves on to `at`, which is one before the last; `goes_on` says whether the variable can contain
    /// what stands there.
    pub(super) fn push(&mut self, at: usize, cost: Cost, goes_on: bool) -> Cost {
        if !goes_on {
            self.costs.clear();
        }
        while self.costs.front().is_some_and(|(_, farther)| *farther >= cost) {
            self.costs.pop_front();
        }
        self.costs.push_front((at, cost));
        while self.costs.back().is_some_and(|(farthest, _)| farthest - at > self.limit) {
            self.costs.pop_back();
        }
        self.costs.back().map_or(NO_FIT, |(_, cost)| *cost)
    }
}

impl Variable {
    /// What stands between the items of a list.
    fn item_separator(&self, operator: Operator) -> char {
        if self.modifier == Modifier::Explode { operator.separator() } else { ',' }
    }

    /// Whether a value may contain `key`, where variables go by position.
    fn allows(&self, operator: Operator, writing: Writing, key: Key) -> bool {
        if operator.allows_reserved() && writing == Writing::Exact && key.is_encoded_delimiter() {
            return false;
        }
        let Some(c) = key.delimiter() else { return key.char().is_some() };
        let separates = c == self.item_separator(operator);
        let by_hand = writing == Writing::ByHand && !matches!(c, '/' | '?' | '#');
        operator.allows_reserved() || separates || by_hand
    }
}

/// Forward along the smallest costs.
struct Walk<'t, 'm> {
    template: &'t UriTemplate,
    uri: &'m [Key],
    writing: Writing,
    tables: &'m Tables,
    at: usize,
    captures: Captures<'t>,
}

impl<'t> Walk<'t, '_> {
    /// `None` if the values do not go together.
    fn step(&mut self, step: &Step<'t>, start: Table, after: Table) -> Option<()> {
        match step {
            Step::Literal(literal) => {
                self.at += literal.keys.len();
                Some(())
            }
            Step::Positional(expression) => self.positional(expression, start, after),
            Step::Named(parts) => self.named(&Named::of(parts, self.template, self.writing), start, after),
        }
    }

    fn positional(&mut self, expression: &'t Expression, start: Table, after: Table) -> Option<()> {
        let count = expression.variables.len();
        if let Some(first) = expression.operator.first() {
            let skipped = plus(self.tables.at(after, self.at), count);
            if !self.next_is(first) || self.tables.at(expression.begin(start, 0), self.at + 1) > skipped {
                return Some(());
            }
            self.at += 1;
        }
        for (index, variable) in expression.variables.iter().enumerate() {
            let (inside, end) = (expression.inside(start, index), expression.end(start, index));
            if self.tables.at(inside, self.at) > self.tables.at(expression.begin(start, index), self.at) {
                continue;
            }
            let operator = expression.operator;
            let writing = self.writing;
            let from = self.at;
            self.take(inside, end, variable.modifier.limit(), |key| variable.allows(operator, writing, key));
            let separator = variable.item_separator(operator);
            self.captures.insert(Captured::new(variable, &self.uri[from..self.at], separator))?;
            let left_out = plus(self.tables.at(after, self.at), count - 1 - index);
            if index + 1 == count
                || !self.next_is(operator.separator())
                || self.tables.at(expression.begin(start, index + 1), self.at + 1) > left_out
            {
                break;
            }
            self.at += 1;
        }
        Some(())
    }

    fn named(&mut self, set: &Named<'t>, start: Table, after: Table) -> Option<()> {
        let Some((mut from, mut extra)) = set.begin(self.uri.get(self.at)) else { return Some(()) };
        let mut used = vec![false; set.variables().len()];
        let mut left_out = plus(self.tables.at(after, self.at), 1);
        loop {
            let pair = self.pair(set, self.at + 1, from, start);
            let Some(pair) = pair.filter(|pair| plus(pair.cost, extra) <= left_out) else { return Some(()) };
            let slot = match pair.name {
                Name::Unknown => None,
                Name::Of(named) => {
                    let of_name = |(index, variable): &(usize, &&Variable)| {
                        variable.name == named.name
                            && (variable.modifier == Modifier::Explode || !used[*index])
                    };
                    match set.variables().iter().enumerate().find(of_name) {
                        Some((index, _)) => Some(index),
                        // Once more than in the template. What comes after may have it.
                        None if left_out == plus(pair.cost, extra) => return Some(()),
                        None => return None,
                    }
                }
            };
            let name = &self.uri[self.at + 1..pair.name_end];
            self.at = pair.name_end;
            let value_from = pair.value.map_or(self.at, |(at, _)| at);
            if let Some((at, inside)) = pair.value {
                self.at = at + set.least();
                let modifier = pair.name.modifier();
                self.take(inside, set.more(start), set.limit(modifier), |key| set.allows(modifier, key));
            }
            let value = &self.uri[value_from..self.at];
            match slot {
                Some(slot) if pair.name.modifier() != Modifier::Explode => {
                    used[slot] = true;
                    self.captures.insert(Captured::new(set.variables()[slot], value, ','))?;
                }
                _ => {
                    let own = slot.map(|slot| set.variables()[slot]);
                    let key = own.map_or_else(|| text(name), |own| own.name.clone());
                    self.captures
                        .add(own.or_else(|| set.exploded())?, Item { key: Some(key), value: text(value) });
                }
            }
            if !set.goes_on_with(self.uri.get(self.at)) {
                return Some(());
            }
            (from, extra, left_out) = (0, 0, self.tables.at(after, self.at));
        }
    }

    fn pair(&self, set: &Named<'t>, at: usize, from: usize, start: Table) -> Option<Pair<'t>> {
        let name = self.uri[at..]
            .iter()
            .take_while(|key| set.allows(Modifier::Explode, **key) && !key.delimits('='));
        let equals = at + name.count();
        let equals = self.uri.get(equals).is_some_and(|key| key.delimits('=')).then_some(equals);
        set.pair(self.uri, at, from, equals, start, self.tables)
    }

    /// Takes the longest value that has the cost of its inside where it ends.
    fn take(&mut self, inside: Table, end: Table, limit: usize, allows: impl Fn(Key) -> bool) {
        let cost = self.tables.at(inside, self.at);
        let run = self.uri[self.at..].iter().take(limit).take_while(|key| allows(**key)).count();
        if let Some(at) = (self.at..=self.at + run).rev().find(|at| self.tables.at(end, *at) == cost) {
            self.at = at;
        }
    }

    fn next_is(&self, c: char) -> bool {
        self.uri.get(self.at).is_some_and(|key| key.delimits(c))
    }
}

fn text(keys: &[Key]) -> String {
    keys.iter().filter_map(|key| key.char()).collect()
}

impl Key {
    /// Whether it is this separator, which may be the unreserved `.`.
    pub(super) fn delimits(self, separator: char) -> bool {
        self == Self::raw(separator)
    }
}
