//! Streamable HTTP from the client's side, without sockets.

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
