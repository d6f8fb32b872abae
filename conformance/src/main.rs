//! The command line of the suite.
fn main() {}
