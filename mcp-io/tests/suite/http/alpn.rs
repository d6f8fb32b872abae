//! Clients of servers behind TLS: which version of HTTP is agreed on.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, ready};

use mcp_io::client::http::{Options, Remote, Versions};
use mcp_io::client::{Connect, ConnectError};
use mcp_io::http::{FromStd, Http};
use mcp_io::{Accept, Io, Serve};
use mcp_proto::client::Mode;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

use crate::rt;
use crate::suite::connect::{client, echo};
use crate::suite::service::{PATIENT, Stage, server};

/// A server's end of TLS on the socket of an adapter. It offers HTTP/2 or does not.
struct Secured<L, const H2: bool>(L);

struct Secure<I> {
    io: I,
    tls: ServerConnection,
    spoken: &'static Spoken,
}

/// What was agreed on, connection by connection.
#[derive(Default)]
struct Spoken(Mutex<Vec<String>>);

impl Spoken {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// One for each kind of server.
static SPOKEN: [OnceLock<Spoken>; 2] = [const { OnceLock::new() }; 2];

fn spoken(h2: bool) -> &'static Spoken {
    SPOKEN[usize::from(h2)].get_or_init(Spoken::default)
}

/// The certificate and the key of localhost.
fn own() -> &'static (CertificateDer<'static>, Vec<u8>) {
    static OWN: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    OWN.get_or_init(|| {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (own.cert.der().clone(), own.signing_key.serialize_der())
    })
}

fn config(h2: bool) -> Arc<ServerConfig> {
    let (certificate, key) = own();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.clone()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_no_client_auth();
    let mut config = config.with_single_cert(vec![certificate.clone()], key).unwrap();
    // What is first is wanted most.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if h2 {
        config.alpn_protocols.insert(0, b"h2".to_vec());
    }
    Arc::new(config)
}

impl<L: Accept, const H2: bool> Accept for Secured<L, H2> {
    type Connection = L::Connection;
    type Io = Secure<L::Io>;
    const OPEN_TO_BROWSERS: bool = L::OPEN_TO_BROWSERS;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<L::Connection>> {
        self.0.poll_accept(cx)
    }

    fn open(connection: L::Connection) -> Secure<L::Io> {
        let tls = ServerConnection::new(config(H2)).unwrap();
        Secure { io: L::open(connection), tls, spoken: spoken(H2) }
    }
}

impl<L: FromStd, const H2: bool> FromStd for Secured<L, H2> {
    fn from_std(listener: TcpListener) -> io::Result<Self> {
        L::from_std(listener).map(Self)
    }
}

/// A stream as rustls wants it, within one poll.
struct Through<'t, 'c, I>(&'t mut I, &'t mut Context<'c>);

fn at_once<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
    match polled {
        Poll::Ready(done) => done,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl<I: Io> Read for Through<'_, '_, I> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        at_once(self.0.poll_read(self.1, buf))
    }
}

impl<I: Io> Write for Through<'_, '_, I> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        at_once(self.0.poll_write(self.1, buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        at_once(self.0.poll_flush(self.1))
    }
}

fn polled<T>(done: io::Result<T>) -> Poll<io::Result<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}

impl<I: Io> Io for Secure<I> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.tls.reader().read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Some hang up without a word.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(0)),
                got => return Poll::Ready(got),
            }
            let was_handshaking = self.tls.is_handshaking();
            let came = self.tls.read_tls(&mut Through(&mut self.io, cx));
            if ready!(polled(came))? > 0 {
                let understood = self.tls.process_new_packets().map_err(io::Error::other);
                let _ = self.poll_flush(cx)?;
                understood?;
            }
            if was_handshaking && !self.tls.is_handshaking() {
                let protocol = self.tls.alpn_protocol().unwrap_or(b"none");
                self.spoken.0.lock().unwrap().push(String::from_utf8_lossy(protocol).into_owned());
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        // All that was taken goes out before more is.
        ready!(self.poll_flush(cx))?;
        let taken = self.tls.writer().write(buf)?;
        let _ = self.poll_flush(cx)?;
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.tls.wants_write() {
            let written = self.tls.write_tls(&mut Through(&mut self.io, cx));
            if ready!(polled(written))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
        self.io.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tls.send_close_notify();
        ready!(self.poll_flush(cx))?;
        self.io.poll_close(cx)
    }
}

/// The HTTP of the adapter, behind TLS.
fn http<R, L: FromStd, const H2: bool>(_: fn() -> Http<R, L>) -> Http<rt::Runtime, Secured<L, H2>> {
    Http::new(rt::RUNTIME, "127.0.0.1:0").drain(PATIENT)
}

/// Calls a server that has HTTP/2 or has not; what was agreed on.
async fn agreed<const H2: bool>(versions: Versions, mode: Mode) -> Result<Vec<String>, ConnectError> {
    let stage = Stage::default();
    let listener = http::<_, _, H2>(rt::http).bind().unwrap();
    let at = listener.url().replace("http://127.0.0.1", "https://localhost");
    let stop = stage.clone();
    let serving = server(&stage).serve_until(listener, async move { stop.opened("stop").await });
    let serving = rt::spawn(serving);
    let mut options = Options::default();
    options.versions = versions;
    (options.roots, options.system_roots) = (vec![own().0.to_vec()], false);
    // However busy the machine is.
    options.idle_timeout = PATIENT;
    let connected = client().mode(mode).connect(Remote::new(rt::RUNTIME, &at).options(options)).await;
    if let Ok(client) = &connected {
        assert_eq!(client.server().version.is_modern(), mode == Mode::Auto);
        let calls = (0..50).map(|n| {
            let (client, text) = (client.clone(), format!("{n} ").repeat(1000));
            rt::spawn(async move { assert_eq!(echo(&client, &text).await, text) })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await;
        }
        client.close().await;
    }
    stage.open("stop");
    serving.await.unwrap();
    let spoken = spoken(H2).take();
    connected.map(|_| spoken)
}

/// HTTP/2 where both have it, and no other where that is wanted.
#[test]
fn the_version_of_http_is_agreed_on_with_the_keys() {
    rt::run(async {
        for mode in [Mode::Auto, Mode::Legacy] {
            for versions in [Versions::Auto, Versions::Http2] {
                // All calls go over one connection.
                assert_eq!(agreed::<true>(versions, mode).await.unwrap(), ["h2"]);
            }
            for spoken in [
                agreed::<true>(Versions::Http1, mode).await.unwrap(),
                agreed::<false>(Versions::Auto, mode).await.unwrap(),
            ] {
                assert!(
                    !spoken.is_empty() && spoken.iter().all(|version| version == "http/1.1"),
                    "{spoken:?}"
                );
            }
        }
        let refused = agreed::<false>(Versions::Http2, Mode::Auto).await.unwrap_err();
        assert!(matches!(refused, ConnectError::Failed(_)), "{refused:?}");
    });
}
