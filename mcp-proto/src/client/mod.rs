//! The client's machines: bytes in, events and bytes out.
//!
//! A client is a [`Config`] and one [`Connection`] for each byte stream. See there for how they are driven.

mod cache;
mod config;
mod connection;
pub(crate) mod engine;
mod error;
mod event;
mod gate;
pub mod http;
pub(crate) mod outbox;
mod pages;
mod parked;
pub mod request;
mod tools;

pub use config::{CallOptions, Config, ConfigBuilder, Mode, Rounds, TaskUse, Verdict};
pub use connection::Connection;
pub use error::{CallError, VersionMismatch};
pub use event::{
    AskId, Asked, CallId, Change, Completed, Event, Notice, Round, ServerFacts, ToolPage, Violation,
    ViolationKind,
};
pub use pages::{PageError, Pages};
pub use parked::Parked;
