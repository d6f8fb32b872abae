//! The fixture on standard input and output.

#[path = "../../../mcp-io/tests/suite/service.rs"]
#[allow(dead_code, clippy::unwrap_used, clippy::print_stdout)] // dead is the tests' side of it
mod service;

use std::io::Write;

use mcp_tokio::{Serve, stdio};

#[tokio::main]
async fn main() -> Result<(), mcp_tokio::ServeError> {
    service::server(&service::Stage::default()).serve(stdio()).await?;
    // The client may be gone.
    let _ = writeln!(std::io::stdout(), "served");
    Ok(())
}
