//! The client as futures, without a runtime.
//!
//! A [`Client`] is declared, connected by an adapter (`mcp-tokio`, `mcp-smol`, or whoever drives a [`Link`]),
//! and then called.

mod builder;
mod by_hand;
mod call;
mod handle;
mod http;
mod hub;
mod link;
mod list;
mod listen;
mod machine;
mod memory;
mod outputs;
mod respond;
mod result;
mod shared;
mod slot;

pub use builder::ClientBuilder;
pub use by_hand::{ByHand, Paused, Turn};
pub use call::Call;
pub use handle::{Client, Connecting};
pub use http::HttpLink;
pub use link::Link;
pub use list::{List, ListFault, Listed, Listing};
pub use listen::{Heard, Listen, Subscription};
pub use respond::{Asking, Job, Refusal};
pub use result::ToolFailure;
