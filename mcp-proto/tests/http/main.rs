//! The service over Streamable HTTP through its public interface: heads and bodies in and out, no sockets
//! and no runtime.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod auth;
mod exchange;
mod flow;
mod harness;
mod kit;
mod legacy;
mod model;
mod modern;
mod session;
mod size;
