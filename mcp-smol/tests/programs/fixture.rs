//! The fixture on standard input and output.

// Dead is the tests' side of it.
#[path = "../../../mcp-io/tests/suite/service.rs"]
#[allow(dead_code, clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
mod service;

fn main() -> Result<(), mcp_smol::ServeError> {
    smol::block_on(service::program(mcp_smol::Smol::current()))
}
