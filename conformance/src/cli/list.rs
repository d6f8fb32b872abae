//! `list`: the exchanges, or the requirements with what checks them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::Args;

use crate::revision::Revision;
use crate::{corpus, invariants, requirement};

#[derive(Debug, Args)]
pub(super) struct List {
    /// Every requirement row with the exchanges that check it
    #[arg(long)]
    requirements: bool,
}

impl List {
    pub(super) fn go(&self) -> Result<bool, String> {
        let text = if self.requirements { requirements()? } else { exchanges()? };
        // A reader such as `head` may have seen enough.
        let _ = io::stdout().write_all(text.as_bytes());
        Ok(true)
    }
}

fn exchanges() -> Result<String, String> {
    let mut text = String::new();
    let mut count = 0;
    for exchange in corpus::names().filter_map(corpus::load) {
        let head = exchange.map_err(|error| error.to_string())?.head;
        let dates: Vec<_> = head.revisions.revisions().map(Revision::as_str).collect();
        let transports: Vec<_> = head.transports.iter().map(|transport| transport.as_str()).collect();
        text.push_str(&format!(
            "{}\t{}\t{}\t{}\t{}\n",
            head.name,
            dates.join(","),
            transports.join(","),
            head.requires.join(","),
            head.about
        ));
        count += 1;
    }
    text.push_str(&format!("{count} exchanges\n"));
    Ok(text)
}

fn requirements() -> Result<String, String> {
    let mut citing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in corpus::names() {
        let Some(exchange) = corpus::load(name) else { continue };
        for id in exchange.map_err(|error| error.to_string())?.cited() {
            citing.entry(id.to_owned()).or_default().push(name.to_owned());
        }
    }
    let by_exchanges = citing.len();
    for (rule, id) in invariants::citing() {
        citing.entry(id.to_owned()).or_default().push(format!("invariant:{rule}"));
    }
    let unseen: BTreeMap<_, _> = requirement::unseen().map(|row| (row.id, row)).collect();
    let (mut text, mut open) = (String::new(), 0);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for row in requirement::all() {
        let shown = match (citing.get(row.id), unseen.get(row.id)) {
            (Some(checks), _) => checks.join(","),
            (None, Some(why)) => {
                *kinds.entry(why.kind).or_default() += 1;
                format!("unseen ({}): {}", why.kind, why.reason)
            }
            (None, None) => {
                open += 1;
                "-".to_owned()
            }
        };
        let fields = [row.id, row.scope, row.role, row.word, row.area, row.text, row.source, &shown];
        text.push_str(&fields.join("\t"));
        text.push('\n');
    }
    let by_invariants = citing.len() - by_exchanges;
    let cannot: usize = kinds.values().sum();
    let of_kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    text.push_str(&format!(
        "{} rows: {by_exchanges} checked by an exchange, {by_invariants} by an invariant alone, {cannot} cannot be \
         seen ({}), {open} open\n",
        requirement::all().count(),
        of_kinds.join(", "),
    ));
    Ok(text)
}
