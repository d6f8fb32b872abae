//! Server-sent events, both ways. To come.
