//! What every adapter has to prove, on tokio; then what is tokio's own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // also outside of the test functions

#[path = "../../mcp-io/tests/suite/mod.rs"]
mod suite;

use mcp_io::Serve;
use mcp_proto::service::NoArguments;
use mcp_tokio::{Tokio, duplex, pair, stream};
use suite::client::{Client, call, echo, text};
use suite::service::{Stage, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt, split};

mod rt {
    use std::future::Future;
    use std::net::SocketAddr;
    use std::path::Path;
    use std::time::Duration;

    use mcp_tokio::{Listen, Tcp, Tokio, Unix};
    use tokio::net::{TcpListener, UnixListener};
    use tokio::time::timeout;

    pub(crate) type Runtime = Tokio;
    pub(crate) const RUNTIME: Tokio = Tokio::current();
    pub(crate) const PROGRAMS: &str = "tokio-";

    pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async { timeout(Duration::from_secs(300), future).await.expect("it hangs") })
    }

    pub(crate) fn spawn<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> {
        let task = tokio::spawn(future);
        async { task.await.unwrap() }
    }

    pub(crate) fn unblock<T: Send + 'static>(
        call: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = T> {
        let task = tokio::task::spawn_blocking(call);
        async { task.await.unwrap() }
    }

    pub(crate) async fn pause() {
        tokio::task::yield_now().await;
    }

    pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) fn unix(path: &Path) -> Listen<Tokio, Unix> {
        mcp_tokio::unix(UnixListener::bind(path).unwrap())
    }

    #[cfg(feature = "http")]
    pub(crate) use mcp_tokio::Http;

    #[cfg(feature = "http")]
    pub(crate) fn http() -> Http {
        mcp_tokio::http("127.0.0.1:0")
    }

    pub(crate) fn tcp() -> (Listen<Tokio, Tcp>, SocketAddr) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        (mcp_tokio::tcp(TcpListener::from_std(listener).unwrap()), address)
    }
}

/// A whole exchange over tokio's own traits.
async fn exchange(mut client: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin) {
    client.write_all(echo(1, "one").as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(text(&serde_json::from_str(&answer).unwrap()), "one");
}

#[test]
fn streams_of_tokio_are_served() {
    rt::run(async {
        let (theirs, ours) = tokio::io::duplex(64);
        let served = rt::spawn(server(&Stage::default()).serve(duplex(theirs)));
        exchange(ours).await;
        served.await.unwrap();

        let (theirs, ours) = tokio::io::duplex(64);
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

/// The runtime of the handlers may be another than that of the stream.
#[test]
fn handlers_run_where_they_are_told_to() {
    let handlers = tokio::runtime::Builder::new_multi_thread().thread_name("handlers").build().unwrap();
    rt::run(async {
        let (theirs, ours) = mcp_io::pair(1 << 10);
        let transport = mcp_io::ByteStream::new(Tokio::on(handlers.handle().clone()), theirs);
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
}
