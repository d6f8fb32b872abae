//! Streamable HTTP from the client's side, without sockets: what to send, and what the answers mean.
//!
//! A [`Client`] is what a [`Connection`](super::Connection) is on a byte stream, with the same calls and
//! events. What it wants done are [`Action`]s: requests to send, and responses to drop. It finds out what a
//! server speaks by status and body, repeats in the headers of a request what its body says, keeps the
//! session of a legacy server and begins another when that is lost, takes up streams again that broke, and
//! goes back to HTTP+SSE of 2024-11-05 where nothing else is served.
//!
//! ```
//! use mcp_proto::client::http::{Action, Client, Request, Settings, Url};
//! use mcp_proto::client::{CallOptions, Config, Event, request};
//! use mcp_proto::model::Implementation;
//! use mcp_proto::time::Instant;
//!
//! /// Sends a request and waits for all of its response: status, type and body.
//! fn send(request: &Request) -> (u16, &'static str, String) {
//! #   let message: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
//! #   let result = match request.header("mcp-method") {
//! #       Some("server/discover") => r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}"#,
//! #       _ => r#""content":[{"type":"text","text":"3"}]"#,
//! #   };
//! #   let id = &message["id"];
//! #   let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{result}}}}}"#);
//! #   (200, "application/json", body)
//!     // … with the HTTP library of your choice
//! }
//!
//! let config = Config::builder(Implementation::new("my-host", "1.0.0")).build();
//! let mut client = Client::new(config, Settings::new(Url::parse("http://localhost:8000/mcp")?));
//! let (now, mut actions) = (Instant::ZERO, Vec::new());
//! client.start(now, &mut actions);
//! let call = client.call(
//!     &request::CallTool::with("add", &serde_json::json!({"a": 1, "b": 2}))?,
//!     &CallOptions::default(),
//!     now,
//!     &mut actions,
//! )?;
//! let mut answer = None;
//! while !actions.is_empty() {
//!     for action in std::mem::take(&mut actions) {
//!         let Action::Open { exchange, request } = action else { continue };
//!         let (status, kind, body) = send(&request);
//!         let headers = [("content-type", kind)];
//!         let mut reader = client.head(exchange, status, &headers[..], now, &mut actions);
//!         let mut body = body.as_bytes();
//!         while let Some(frame) = reader.next_frame(&mut body) {
//!             client.handle(frame, now, &mut actions);
//!         }
//!         if let Some(Event::Complete(done)) = client.end(&mut reader, Ok(()), now, &mut actions) {
//!             assert_eq!(done.call, call);
//!             answer = Some(done.decode::<request::CallTool>()?);
//!         }
//!     }
//! }
//! assert_eq!(client.server().unwrap().version.as_str(), "2026-07-28");
//! assert_eq!(answer.unwrap().content.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [spec: basic/transports/streamable-http]

mod action;
mod auth;
mod challenge;
mod client;
mod era;
mod fields;
mod reader;
mod redirect;
mod refused;
mod repair;
mod request;
mod response;
mod resume;
mod settings;
mod traffic;
mod url;

pub use action::{Action, ExchangeId, Lost};
pub use auth::Unauthorized;
pub use challenge::Challenge;
pub use client::Client;
pub use fields::Fields;
pub use reader::{Frame, Reader};
pub use redirect::BadRedirect;
pub use request::{InvalidToken, Request, Token};
pub use resume::Reconnect;
pub use settings::{InvalidHeader, Settings};
pub use url::{InvalidUrl, Url};
