//! The server's machines: bytes in, events and bytes out.

mod batch;
pub(crate) mod channel;
mod config;
mod connection;
mod event;
mod features;
pub(crate) mod inflight;
mod legacy;
mod pending;
mod principal;
pub(crate) mod route;
mod scope;
mod subscription;

#[cfg(feature = "service")]
#[cfg(feature = "service")]
pub(crate) use channel::write_related_task;
pub use channel::{Channel, Log, MissingCapability, NoTask, Progress, missing_capability};
pub use config::{Config, ConfigBuilder};
pub use connection::{AskError, Connection};
pub use event::{Answer, Call, Event, Incoming, Notice, Refusal, Resumed, Violation};
pub use features::ClientFeatures;
pub use pending::{AskKey, Delivery, Pending, RequestKey, Untyped};
pub use principal::Principal;
pub use scope::{InvalidScope, Scopes};
pub use subscription::Change;
