//! The suite as a server: exchanges that are played with a client program.
//!
//! A [`Client`] is started with an address and a plan; [`play`] is its server for one exchange. The steps of an
//! exchange say what the server sees and says; what most exchanges do not care for the server does by itself.
//! Every message and request of the client is held against rules that need no exchange.

mod client;
mod game;
mod house;
mod informed;
mod relay;
mod rules;
mod schema;
mod stage;
mod steps;
mod talk;

pub use client::{Client, Guest, Invitation, Place, Program};
pub use game::{Played, Setting, play};
pub use relay::relay;
