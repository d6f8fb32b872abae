//! The client machine as its users see it: bytes in, events and bytes out, time as an argument.
//!
//! Only the public API is used. Names of tests carry the ids of field reports (`e07_…`), comments the ids
//! of the requirements they prove (`C-MRTR-03`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test says no by panicking

mod client;
