//! The client's side: servers that are started as children of this process.

mod child;
mod config;
#[cfg(feature = "http")]
pub mod http;

pub use child::{Child, Exit, Process, Stderr};
pub use config::{ConfigError, Entry, Servers, Target};
