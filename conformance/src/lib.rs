//! Recorded exchanges of the Model Context Protocol, and what replays them against an implementation.
//!
//! The suite judges implementations by what they put on the wire and knows none of them: nothing here uses the
//! protocol core of this workspace. [`exchange`] and [`pattern`] are the format, [`requirement`] the obligations
//! that exchanges cite.

pub mod corpus;
pub mod exchange;
pub mod pattern;
pub mod requirement;
pub mod revision;
mod text;
