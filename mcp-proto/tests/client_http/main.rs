//! The client's side of HTTP, as its drivers see it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod auth;
mod closing;
mod driver;
mod era;
mod hostile;
mod legacy;
mod modern;
mod official;
mod pair;

#[allow(dead_code, unreachable_pub)] // shared with the tests of the server
#[path = "../http/harness.rs"]
mod harness;
#[allow(dead_code, unreachable_pub)]
#[path = "../http/kit.rs"]
mod kit;
