//! The client's side: servers that are started as children of this process.

mod child;

pub use child::{Child, Exit, Process, Stderr};
