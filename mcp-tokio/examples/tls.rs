//! TLS before the endpoint, with rustls. HTTP/2 is agreed on where the client has it.
//!
//! ```sh
//! cargo run -p mcp-tokio --features http --example tokio-tls -- 127.0.0.1:8443
//! curl --insecure https://localhost:8443/healthz
//! ```

use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use mcp_proto::http::Settings;
use mcp_proto::service::http::HttpService;
use mcp_proto::service::{BuildError, NoArguments, Server};
use mcp_tokio::{Duplex, Responder, Tokio};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// How long a client may take to agree on keys.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long calls may go on after the end was announced.
const DRAIN: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8443".into());
    let listener = TcpListener::bind(address).await?;
    // Where others come, the certificate comes from a file.
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der())?;
    let tls = tls(own.cert.der().clone(), key)?;
    serve(listener, tls, mount()?, async {
        let _ = tokio::signal::ctrl_c().await;
    })
    .await;
    Ok(())
}

pub(crate) fn tls(
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
) -> Result<TlsAcceptor, Box<dyn Error>> {
    let mut config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

pub(crate) fn mount() -> Result<Responder, BuildError> {
    let service =
        Server::new("demo", "1.0.0").tool("hello", |_, _: NoArguments| async { Ok("Hello!") }).build()?;
    Ok(Responder::new(HttpService::new(&service, Settings::default()), Tokio::current()))
}

pub(crate) async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    mcp: Responder,
    shutdown: impl Future<Output = ()>,
) {
    let mut shutdown = pin!(shutdown);
    let (end, ending) = watch::channel(false);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Ok((stream, _)) = listener.accept() => {
                let (tls, mcp, ending) = (tls.clone(), mcp.clone(), ending.clone());
                connections.spawn(async move { connection(stream, tls, mcp, ending).await });
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    mcp.close();
    let _ = end.send(true);
    let _ = timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
}

async fn connection(
    stream: TcpStream,
    tls: TlsAcceptor,
    mcp: Responder,
    mut ending: watch::Receiver<bool>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let stream = timeout(HANDSHAKE, tls.accept(stream)).await??;
    let ending = async move {
        let _ = ending.wait_for(|over| *over).await;
    };
    mcp.serve_connection(Duplex::new(stream), ending).await
}
