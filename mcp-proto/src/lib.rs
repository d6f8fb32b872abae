//! The Model Context Protocol as a state machine: bytes or messages in; responses, notifications,
//! signed input state and task events out. No runtime, clock or socket.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

pub mod client;
pub mod codec;
pub mod http;
pub mod limits;
pub mod model;
pub mod random;
pub mod registry;
pub mod rpc;
pub mod server;
#[cfg(feature = "service")]
pub mod service;
pub mod state;
pub mod task;
pub mod time;
