//! A server over HTTP, with an end in order.
//!
//! ```sh
//! cargo run -p mcp-tokio --features http --example tokio-http -- 127.0.0.1:8000
//! ```

use std::env;

use mcp_proto::service::{NoArguments, Server};
use mcp_tokio::{Serve, ServeError, http};

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    let server = Server::new("demo", "1.0.0").tool("hello", |_, _: NoArguments| async { Ok("Hello!") });
    server
        .serve_until(http(address), async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await
}
