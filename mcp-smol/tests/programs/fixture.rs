//! The fixture on standard input and output.

#[path = "../../../mcp-io/tests/suite/service.rs"]
#[allow(dead_code, clippy::unwrap_used, clippy::print_stdout)] // dead is the tests' side of it
mod service;

use std::io::Write;

use mcp_smol::{Serve, stdio};

fn main() -> Result<(), mcp_smol::ServeError> {
    smol::block_on(service::server(&service::Stage::default()).serve(stdio()))?;
    // The client may be gone.
    let _ = writeln!(std::io::stdout(), "served");
    Ok(())
}
