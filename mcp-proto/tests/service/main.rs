//! The service layer through its public interface: lines in, lines out, no runtime.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod asks;
mod auth;
mod basics;
mod harness;
#[cfg(feature = "jwt")]
mod jwt;
mod tasks;
#[cfg(feature = "tracing")]
mod trace;
#[cfg(feature = "validate")]
mod validate;
