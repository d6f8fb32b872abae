//! Replaying one exchange: steps and received messages in, writes and a verdict out.
//!
//! [`Replay`] does no input or output and has no clock; a driver writes what it asks for and tells it what
//! arrives. Its shape is that of the exchanges: a list of operations, one current at a time, and an inbox.

mod driver;
mod expect;
mod findings;
mod machine;
mod online;
#[cfg(test)]
mod tests;
mod transcript;

pub(crate) use driver::drive_through;
pub use driver::{drive, drive_on};
pub use findings::{Finding, Verdict};
pub use machine::{Next, Replay, Session};
pub use transcript::{Direction, Entry};
