//! The fixture on standard input and output.

// Dead is the tests' side of it.
#[path = "../../../mcp-io/tests/suite/service.rs"]
#[allow(dead_code, clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
mod service;

#[tokio::main]
async fn main() -> Result<(), mcp_tokio::ServeError> {
    service::program(mcp_tokio::Tokio::current()).await
}
