//! A server on standard input and output: what a client starts as a child process.
//!
//! ```text
//! cargo run -p mcp-smol --example smol-stdio
//! ```
#![allow(clippy::print_stdout)] // to show where it goes

use mcp_proto::service::{Server, Structured};
use mcp_smol::{Serve, ServeError, stdio};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: f64,
}

fn main() -> Result<(), ServeError> {
    let server = Server::new("demo", "1.0.0")
        .tool("add", |_, p: Add| async move {
            println!("goes to standard error: standard output belongs to the protocol");
            Ok(Structured(Sum { sum: p.a + p.b }))
        })
        .resource("greeting://{name}", |_, (name,): (String,)| async move { Ok(format!("Hello, {name}!")) });
    smol::block_on(server.serve(stdio()))
}
