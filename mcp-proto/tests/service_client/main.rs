//! The client as futures, against the project's own server and against scripted ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod asks;
mod basics;
mod calls;
mod ends;
mod http;
mod listen;
mod lists;
mod many;
mod memory;
mod rig;
mod rounds;
mod tasks;
mod threads;
#[cfg(feature = "validate")]
mod validate;
