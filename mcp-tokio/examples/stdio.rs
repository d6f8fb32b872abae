//! A server on standard input and output: what a client starts as a child process.
//!
//! ```text
//! cargo run -p mcp-tokio --example tokio-stdio
//! ```
#![allow(clippy::print_stdout)] // to show where it goes

use mcp_proto::service::{Server, Structured};
use mcp_tokio::{Serve, ServeError, stdio};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    Server::new("demo", "1.0.0")
        .tool("add", |_, p: Add| async move {
            println!("goes to standard error: standard output belongs to the protocol");
            Ok(Structured(Sum { sum: p.a + p.b }))
        })
        .resource("greeting://{name}", |_, (name,): (String,)| async move { Ok(format!("Hello, {name}!")) })
        .serve(stdio())
        .await
}
