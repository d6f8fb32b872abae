//! Recorded exchanges of the Model Context Protocol, and what replays them against an implementation.
//!
//! The suite judges implementations by what they put on the wire and knows none of them: but for the fixture, the
//! [`probe`], and the decoder of event streams nothing here uses the protocol core of this workspace. [`exchange`] and [`pattern`] are the format, [`requirement`] the obligations
//! that exchanges cite, [`corpus`] the exchanges themselves; [`suite`] is a run for the tests of an implementation;
//! [`replay`] plays one of them against a [`subject`],
//! with [`bind`] making its messages fit the revision and [`invariants`] watching every message. [`mutants`] shows that
//! they find what they are there to find.

pub mod bind;
pub mod cli;
pub mod corpus;
pub mod exchange;
pub mod fixture;
pub mod hosting;
pub mod http;
pub mod invariants;
pub mod mutants;
pub mod pattern;
pub mod probe;
pub mod record;
pub mod replay;
pub mod report;
pub mod requirement;
pub mod revision;
pub mod run;
pub mod schema;
pub mod subject;
pub mod suite;
mod text;
pub mod torture;
