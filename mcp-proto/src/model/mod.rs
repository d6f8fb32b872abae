//! The protocol's types. The vocabulary is that of 2026-07-28; older revisions are views of it, made
//! where bytes are written.

pub mod version;

pub use version::{Era, ProtocolVersion};
