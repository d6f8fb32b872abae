//! Small servers that behave, or misbehave in one named way.

pub(super) mod pipes;
pub(super) mod sse;
pub(super) mod web;
