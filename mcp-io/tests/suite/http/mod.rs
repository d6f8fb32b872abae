//! Streamable HTTP.

mod agent;
#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
mod alpn;
mod connect;
mod h2;
mod hostile;
mod mounted;
mod peer;
mod serving;
mod streams;
mod tokens;

use std::future::Future;
use std::net::SocketAddr;

use mcp_io::{Serve, ServeError};

use super::service::{PATIENT, Stage, server};
use crate::rt;

/// Serves the suite's server as `set` says until the gate `stop` is open.
fn served(
    stage: &Stage,
    set: impl FnOnce(rt::Http) -> rt::Http,
) -> (SocketAddr, impl Future<Output = Result<(), ServeError>>) {
    let listener = set(rt::http().drain(PATIENT)).bind().unwrap();
    let address = listener.local_addr();
    let stop = stage.clone();
    let serving = server(stage).serve_until(listener, async move { stop.opened("stop").await });
    (address, rt::spawn(serving))
}
