//! The exchange format: one JSON Lines file holds a head and steps.
//!
//! An exchange is written once for many cells of revision and transport; `README.md` of this package
//! documents every member and step. This module is the format alone: it reads and checks, and knows nothing of
//! replaying.

mod fields;
mod head;
mod hosted;
mod http;
mod parse;
mod signature;
mod step;

pub use head::{Head, Needs, Offer, Side, Transport};
pub use hosted::{Act, Await, HostStep, Hosted, Manners, Plain, Reply, Response, Tell, Written};
pub use http::{HttpExpect, HttpStep, Watch, Watched};
pub use parse::{ParseError, parse};
pub use signature::{Argument, Signature};
pub use step::{
    Action, Answer, Cuts, Expect, ExpectExit, ExpectNothing, Kind, Poll, Send, Step, Text, Times,
};

/// A parsed exchange.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Exchange {
    /// The first line of the file.
    pub head: Head,
    /// The further lines, in order.
    pub steps: Vec<Step>,
    /// What an exchange for clients has; its steps are there, too.
    pub hosted: Option<Hosted>,
}

impl Exchange {
    /// Every id the head or a step cites, each once, in the order of the file.
    #[must_use]
    pub fn cited(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.head.requires.iter().map(String::as_str).collect();
        collect(&self.steps, &mut ids);
        let hosted = self.hosted.iter().flat_map(|hosted| &hosted.steps);
        ids.extend(hosted.flat_map(HostStep::all).flat_map(|step| &step.requires).map(String::as_str));
        let mut seen = std::collections::BTreeSet::new();
        ids.retain(|id| seen.insert(*id));
        ids
    }
}

fn collect<'e>(steps: &'e [Step], ids: &mut Vec<&'e str>) {
    for step in steps {
        ids.extend(step.requires.iter().map(String::as_str));
        if let Action::Unordered(inner) | Action::During { steps: inner, .. } = &step.action {
            collect(inner, ids);
        }
    }
}
