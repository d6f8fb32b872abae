//! Between the fixture and the wire: what spoils what passes, or lets through what would have been refused.
//!
//! The fixture runs in a process of its own, with this one in front of it. A fault sees each message in its turn, in
//! either direction, and over HTTP each request and the head of each answer. What it leaves alone passes as it is.

mod asks;
mod calls;
mod course;
mod envelope;
mod eras;
mod lists;
mod message;
mod stdio;
mod web;
mod web_checks;
mod web_faults;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::Value;

use self::web::{Answered, Asked};
use crate::fixture::Options;

/// The fault that is none: the layer alone.
pub(crate) const NONE: &str = "none";

/// What a fault does with a message.
type OfMessage = fn(&mut Turn<'_>, Value);

/// What a fault does, and where.
#[derive(Clone, Copy)]
enum Plant {
    /// Nothing.
    Nowhere,
    /// With what the fixture says.
    Down(OfMessage),
    /// With what the fixture hears.
    Up(OfMessage),
    /// With both, first what it hears.
    Both(OfMessage, OfMessage),
    /// With a line of the input that may be no message: whether it passes.
    Line(fn(&mut Memory, &mut Vec<u8>) -> Passage),
    /// With a line of the output.
    Output(fn(&mut Memory, &mut Vec<u8>)),
    /// With the end of the input.
    End(stdio::Ending),
    /// With a request over HTTP.
    Ask(fn(&mut Asked, &mut Memory)),
    /// With the head of an answer over HTTP.
    Answer(fn(&Asked, &mut Answered, &mut Memory)),
    /// With a request, and with the head of its answer.
    Exchange(fn(&mut Asked, &mut Memory), fn(&Asked, &mut Answered, &mut Memory)),
}

/// What becomes of a line of the input.
enum Passage {
    /// It goes on.
    Passes,
    /// It is lost.
    Lost,
    /// The process ends with this exit code.
    Fatal(i32),
}

/// One message that passes, and what goes on in its place.
struct Turn<'m> {
    memory: &'m mut Memory,
    /// The request that the message answers; null if it answers none.
    request: Value,
    onward: Vec<Value>,
    back: Vec<Value>,
}

impl<'m> Turn<'m> {
    fn new(memory: &'m mut Memory, request: Value) -> Self {
        Self { memory, request, onward: Vec::new(), back: Vec::new() }
    }

    /// Passes it on.
    fn on(&mut self, message: Value) {
        self.onward.push(message);
    }

    /// Says something to the side where the message comes from.
    fn back(&mut self, message: Value) {
        self.back.push(message);
    }
}

/// What a fault keeps, for as long as the process lives.
#[derive(Debug, Default)]
struct Memory {
    /// Over a byte stream: the requests of the client without a response, by their ids.
    pending: BTreeMap<String, Value>,
    count: u64,
    kept: Vec<Value>,
    named: BTreeMap<String, Value>,
    texts: BTreeMap<String, String>,
}

fn plants() -> impl Iterator<Item = &'static (&'static str, Plant)> {
    let messages = envelope::FAULTS.iter().chain(eras::FAULTS).chain(lists::FAULTS).chain(calls::FAULTS);
    messages.chain(course::FAULTS).chain(asks::FAULTS).chain(web_faults::FAULTS).chain(web_checks::FAULTS)
}

/// The names of the faults.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    plants().map(|(name, _)| *name)
}

/// Serves the fixture with a fault.
///
/// # Errors
///
/// There is no such fault, or the fixture cannot be started.
pub(crate) fn serve(options: &Options, fault: &str) -> Result<(), String> {
    let fault = fault.strip_prefix("fixture/").unwrap_or(fault);
    let known = plants().find(|(name, _)| *name == fault).map(|(_, plant)| *plant);
    let plant = match known {
        Some(plant) => plant,
        None if fault == NONE => Plant::Nowhere,
        None => return Err(format!("`--mutant {fault}`: there is no such fault")),
    };
    let own = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut fixture = Command::new(own);
    fixture.args(["serve", "--runtime", &options.runtime, "--many", &options.many.to_string()]);
    if let Some(threads) = options.threads {
        fixture.args(["--threads", &threads.to_string()]);
    }
    match &options.http {
        None => stdio::serve(plant, fixture.arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped())),
        Some(address) => {
            let asks = options.tokens.then_some("--tokens");
            let strict = options.strict.then_some("--strict");
            fixture.args(["--http", "127.0.0.1:0"]).args(asks).args(strict);
            web::serve(
                plant,
                fixture.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()),
                address,
            )
        }
    }
}
