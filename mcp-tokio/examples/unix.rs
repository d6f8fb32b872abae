//! A server on a Unix socket: many clients, each known by its user id, until Ctrl-C.
//!
//! ```text
//! cargo run -p mcp-tokio --example tokio-unix -- /tmp/demo.sock
//! ```

use mcp_proto::service::{NoArguments, Principal, Server};
use mcp_tokio::{Serve, unix};
use tokio::net::{UnixListener, UnixStream};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected the path of the socket")?;
    let socket = unix(UnixListener::bind(&path)?).principal_of(user);
    let served = Server::new("demo", "1.0.0")
        .tool("whoami", |ctx, _: NoArguments| async move {
            Ok(ctx.principal().map_or_else(|| "nobody".into(), |who| who.id().to_owned()))
        })
        .serve_until(socket, async { drop(tokio::signal::ctrl_c().await) })
        .await;
    std::fs::remove_file(&path)?;
    Ok(served?)
}

fn user(connection: &UnixStream) -> Option<Principal> {
    let peer = connection.peer_cred().ok()?;
    Some(Principal::new(format!("uid {}", peer.uid())))
}
