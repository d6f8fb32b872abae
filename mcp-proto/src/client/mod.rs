//! The client's machines: bytes in, events and bytes out.
//!
//! A client is a [`Config`], and one [`Connection`] for each byte stream; [`http`] is the same over Streamable
//! HTTP. Here both ends are in one program, and the "stream" is two buffers:
//!
//! ```
//! use mcp_proto::client::{CallOptions, Config, Connection, Event, request::CallTool};
//! use mcp_proto::model::{CallToolResult, Implementation, ServerCapabilities, method};
//! use mcp_proto::server::{self, Channel};
//! use mcp_proto::time::Instant;
//!
//! let now = Instant::ZERO; // a driver looks at its clock
//! let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
//! let mut client = Connection::new(Config::builder(Implementation::new("host", "1.0.0")).build());
//! # let capabilities = ServerCapabilities::new().tools(false);
//! # let config = server::Config::builder(Implementation::new("s", "1")).capabilities(capabilities).build();
//! # let mut server = server::Connection::new(config);
//! let mut answer = None;
//!
//! client.start(now, &mut to_server); // asks what the server speaks
//! let call = client.call(&CallTool::new("greet"), &CallOptions::new(), now, &mut to_server)?;
//! while answer.is_none() {
//! #   for line in std::mem::take(&mut to_server).split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
//! #       if let Some(server::Event::Request(incoming)) = server.handle(line, now, &mut to_client) {
//! #           let (pending, _) = incoming.decode::<method::CallTool>().map_err(|_| "params")?;
//! #           let _ = server.respond(pending, &CallToolResult::text("hello"), &mut to_client);
//! #       }
//! #   }
//!     for line in std::mem::take(&mut to_client).split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
//!         match client.handle(line, now, &mut to_server) {
//!             Some(Event::Complete(done)) if done.call == call => answer = Some(done.decode::<CallTool>()?),
//!             Some(Event::Failed { error, .. } | Event::Unusable(error)) => return Err(error.into()),
//!             _ => {}
//!         }
//!     }
//!     // A driver sleeps until `next_deadline`, or the next bytes.
//!     while let Some(event) = client.handle_timeout(now, &mut to_server) {
//! #       let _ = event;
//!         // … as above
//!     }
//! }
//! # assert_eq!(answer.map(|answer| answer.content.len()), Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
#[cfg(feature = "validate")]
pub use event::InvalidOutput;
pub use event::{
    AskId, Asked, CallId, Change, Completed, Event, Notice, Round, ServerFacts, ToolPage, Violation,
    ViolationKind,
};
pub use pages::{PageError, Pages};
pub use parked::Parked;
