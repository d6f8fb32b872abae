//! The client as futures, against the project's own server and against scripted ones.
#![allow(clippy::unwrap_used, clippy::panic)] // tests

mod basics;
