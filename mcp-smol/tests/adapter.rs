//! What every adapter has to prove, on smol; then what is smol's own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // also outside of the test functions

#[path = "../../mcp-io/tests/suite/mod.rs"]
mod suite;

use std::sync::Arc;

use mcp_io::Serve;
use mcp_proto::service::NoArguments;
use mcp_smol::{Smol, duplex, pair, stream};
use smol::io::{AsyncReadExt, AsyncWriteExt, split};
use suite::client::{Client, call, echo, text};
use suite::service::{Stage, server};

mod rt {
    use std::future::Future;
    use std::net::SocketAddr;
    use std::path::Path;
    use std::time::Duration;

    use mcp_smol::{Listen, Smol, Tcp, Unix};
    use smol::future::FutureExt;
    use smol::net::unix::UnixListener;

    pub(crate) type Runtime = Smol;
    pub(crate) const RUNTIME: Smol = Smol::current();
    pub(crate) const PROGRAMS: &str = "smol-";

    pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
        smol::block_on(future.or(async {
            smol::Timer::after(Duration::from_secs(300)).await;
            panic!("it hangs")
        }))
    }

    pub(crate) fn spawn<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> {
        smol::spawn(future)
    }

    pub(crate) fn unblock<T: Send + 'static>(
        call: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = T> {
        smol::unblock(call)
    }

    pub(crate) async fn pause() {
        smol::future::yield_now().await;
    }

    pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) {
        while !condition() {
            smol::Timer::after(Duration::from_millis(1)).await;
        }
    }

    pub(crate) fn unix(path: &Path) -> Listen<Smol, Unix> {
        mcp_smol::unix(UnixListener::bind(path).unwrap())
    }

    #[cfg(feature = "http")]
    pub(crate) use mcp_smol::Http;

    #[cfg(feature = "http")]
    pub(crate) fn http() -> Http {
        mcp_smol::http("127.0.0.1:0")
    }

    pub(crate) fn tcp() -> (Listen<Smol, Tcp>, SocketAddr) {
        let listener = smol::Async::<std::net::TcpListener>::bind(([127, 0, 0, 1], 0)).unwrap();
        let address = listener.get_ref().local_addr().unwrap();
        (mcp_smol::tcp(listener.into()), address)
    }
}

/// A whole exchange over the traits of `futures-io`.
async fn exchange(mut client: impl smol::io::AsyncRead + smol::io::AsyncWrite + Unpin) {
    client.write_all(echo(1, "one").as_bytes()).await.unwrap();
    client.close().await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(text(&serde_json::from_str(&answer).unwrap()), "one");
}

#[test]
fn streams_of_smol_are_served() {
    rt::run(async {
        let (theirs, ours) = smol::net::unix::UnixStream::pair().unwrap();
        let served = rt::spawn(server(&Stage::default()).serve(duplex(theirs)));
        exchange(ours).await;
        served.await.unwrap();

        let (theirs, ours) = smol::net::unix::UnixStream::pair().unwrap();
        let (input, output) = split(theirs);
        let served = rt::spawn(server(&Stage::default()).serve(stream(input, output)));
        exchange(ours).await;
        served.await.unwrap();

        let (transport, ours) = pair(64);
        let served = rt::spawn(server(&Stage::default()).serve(transport));
        exchange(ours).await;
        served.await.unwrap();
    });
}

/// The executor of the handlers may be another than that of the stream.
#[test]
fn handlers_run_where_they_are_told_to() {
    let executor = Arc::new(smol::Executor::new());
    let (stop, stopped) = smol::channel::bounded::<()>(1);
    let handlers = std::thread::Builder::new().name("handlers".into()).spawn({
        let executor = Arc::clone(&executor);
        move || smol::block_on(executor.run(stopped.recv()))
    });
    rt::run(async {
        let (theirs, ours) = mcp_io::pair(1 << 10);
        let transport = mcp_io::ByteStream::new(Smol::on(executor), theirs);
        let server = server(&Stage::default()).tool("where", |_, _: NoArguments| async {
            rt::pause().await;
            Ok(std::thread::current().name().unwrap_or_default().to_owned())
        });
        let served = rt::spawn(server.serve(transport));
        let mut client = Client::new(ours);
        client.send(call(1, "where", &serde_json::json!({}))).await;
        client.finish().await;
        assert_eq!(client.rest().await, [(1, "handlers".into())]);
        served.await.unwrap();
    });
    drop(stop);
    let _ = handlers.unwrap().join().unwrap();
}
