//! The client as futures, without a runtime.
//!
//! ```text
//!   Client::new(name, version)          ClientBuilder: responders, roots, versions
//!     │
//!     ├── mcp_tokio, mcp_smol: connect ──────────────┐
//!     ├── in_memory: a server in the same future     ├──► Client: calls, lists, subscriptions
//!     └── link, http_link ──► Connecting ────────────┘
//!                        └──► Link, HttpLink: for whoever has the bytes
//! ```
//!
//! # Calls
//!
//! ```
//! use mcp_proto::service::client::Client;
//! use mcp_proto::service::{Server, Structured};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add { a: f64, b: f64 }
//! #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
//! struct Sum { sum: f64 }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::new("demo", "1.0.0")
//!     .tool("add", |_, p: Add| async move { Ok(Structured(Sum { sum: p.a + p.b })) })
//!     .build()?;
//! let test = Client::new("my-host", "1.0.0").in_memory(&server, async |client| {
//!     for tool in client.tools().await? {
//!         println!("{}", tool.name);
//!     }
//!     let result = client.call_tool("add", json!({ "a": 1, "b": 2 })).await?;
//!     let Sum { sum } = result.into_structured()?;
//!     assert_eq!(sum, 3.0);
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! });
//! test.await??;
//! # Ok(())
//! # }
//! # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
//! # let std::task::Poll::Ready(done) = std::pin::pin!(example()).poll(&mut cx) else { panic!("it waits") };
//! # done.unwrap();
//! ```
//!
//! A call is a future. It is made when it is awaited, and given up when it is dropped: then the server is
//! told. Options are chained before: see [`Client::call`]. Every failure is a
//! [`CallError`](crate::client::CallError); a tool that says that it failed is a result.
//!
//! # What servers ask
//!
//! A responder is registered once and serves every era: rounds of input in 2026-07-28, questions of tasks,
//! and the requests of older servers. What is registered is what servers are told that they may ask.
//!
//! ```
//! use mcp_proto::model::{ElicitForm, Root};
//! use mcp_proto::service::client::{Client, Refusal};
//!
//! let client = Client::new("my-host", "1.0.0")
//!     .on_elicit(|form: ElicitForm, asking| async move {
//!         let server = asking.server().and_then(|server| server.name()).unwrap_or("a server");
//!         println!("{server} asks: {}", form.message);
//!         Ok(form.accept_defaults()) // a real one lets the user fill in the form, or decline
//!     })
//!     .on_sample(|_, _| async { Err(Refusal::by_user()) })
//!     .roots([Root::new("file:///home/ann/project")]);
//! # let _ = client;
//! ```
//!
//! The questions of one round are put side by side. A responder whose answer is no longer wanted is dropped;
//! one that fails or panics ends the call that asked. To decide on each round oneself, or to store a call
//! that waits for an answer and go on in another process: [`Call::by_hand`].
//!
//! # Driving it
//!
//! [`Link`] and [`HttpLink`] are all that an adapter sees. They hold the machine; handles and responders leave
//! word for them and never lock it. Nothing here reads a clock, opens a socket or starts a thread.

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
mod restarts;
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
pub use restarts::{Restart, Restarts};
pub use result::ToolFailure;
