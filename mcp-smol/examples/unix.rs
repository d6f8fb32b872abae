//! A server on a Unix socket: many clients, until one of them says stop.
//!
//! ```text
//! cargo run -p mcp-smol --example smol-unix -- /tmp/demo.sock
//! ```

use mcp_proto::service::{NoArguments, Server};
use mcp_smol::{Serve, unix};
use smol::net::unix::UnixListener;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected the path of the socket")?;
    let socket = unix(UnixListener::bind(&path)?);
    let (stop, stopped) = smol::channel::bounded(1);
    let server = Server::new("demo", "1.0.0")
        .tool("hello", |_, _: NoArguments| async move { Ok("Hello!") })
        .tool("stop", move |_, _: NoArguments| {
            let _ = stop.try_send(());
            async { Ok("This answer still comes.") }
        });
    let stopped = async {
        let _ = stopped.recv().await;
    };
    let served = smol::block_on(server.serve_until(socket, stopped));
    std::fs::remove_file(&path)?;
    Ok(served?)
}
