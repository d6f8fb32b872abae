//! The program `mcp-conformance`.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp_conformance::cli::main()
}
