//! TLS by rustls, on any byte stream. Certificates are always verified.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::agent::{Options, Versions};
use crate::Io;

fn provider() -> Arc<CryptoProvider> {
    #[cfg(feature = "tls-aws-lc")]
    return Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    #[cfg(not(feature = "tls-aws-lc"))]
    return Arc::new(rustls::crypto::ring::default_provider());
}

/// What is trusted, and what is offered to be spoken.
pub(super) fn config(options: &Options) -> Result<Arc<ClientConfig>, String> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut given = Vec::new();
    for root in &options.roots {
        // DER is a SEQUENCE, which no text begins with.
        if root.first() == Some(&0x30) {
            given.push(CertificateDer::from(root.clone()));
            continue;
        }
        let before = given.len();
        for certificate in CertificateDer::pem_slice_iter(root) {
            given.push(certificate.map_err(|error| format!("a root certificate cannot be read: {error}"))?);
        }
        if given.len() == before {
            return Err("a root certificate was expected in PEM or DER, and there is none".into());
        }
    }
    let mut config = if options.system_roots {
        let verifier = Verifier::new_with_extra_roots(given, provider())
            .map_err(|error| format!("the certificates that this system trusts cannot be had: {error}"))?;
        // "Dangerous" is what one could give instead of this.
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        for certificate in given {
            roots.add(certificate).map_err(|error| format!("a root certificate cannot be used: {error}"))?;
        }
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    let (h1, h2) = (b"http/1.1".to_vec(), b"h2".to_vec());
    config.alpn_protocols = match options.versions {
        Versions::Auto => vec![h2, h1],
        Versions::Http1 => vec![h1],
        Versions::Http2 => vec![h2],
    };
    Ok(Arc::new(config))
}

pub(super) struct TlsStream<I> {
    io: I,
    tls: ClientConnection,
    closing: bool,
}

impl<I: Io> TlsStream<I> {
    /// Agrees on keys with `host`, which may be an address, and proves that it is it.
    pub(super) async fn connect(io: I, config: Arc<ClientConfig>, host: &str) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut stream = Self { io, tls, closing: false };
        poll_fn(|cx| stream.poll_handshake(cx)).await?;
        Ok(stream)
    }

    pub(super) fn is_http2(&self) -> bool {
        self.tls.alpn_protocol() == Some(b"h2")
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_send(cx))?;
            if !self.tls.is_handshaking() {
                return self.io.poll_flush(cx);
            }
            ready!(self.io.poll_flush(cx))?;
            if ready!(self.poll_receive(cx))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Reads once and understands it.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let got = match self.tls.read_tls(&mut Through { io: &mut self.io, cx }) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            got => got?,
        };
        if let Err(error) = self.tls.process_new_packets() {
            // The peer is told why, if it wants to hear.
            let _ = self.poll_send(cx);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(got))
    }

    /// Writes what is due.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Through { io: &mut self.io, cx }) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: Io> Io for TlsStream<I> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.tls.reader().read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                got => return Poll::Ready(got),
            }
            ready!(self.poll_receive(cx))?;
            // An answer to what came, such as new keys, does not hold up what is read.
            if let Poll::Ready(Err(error)) = self.poll_send(cx) {
                return Poll::Ready(Err(error));
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let taken = self.tls.writer().write(buf)?;
            let sent = self.poll_send(cx)?;
            if taken > 0 {
                return Poll::Ready(Ok(taken));
            }
            // There is no room for more.
            ready!(sent);
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        self.io.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closing {
            self.closing = true;
            self.tls.send_close_notify();
        }
        ready!(self.poll_flush(cx))?;
        self.io.poll_close(cx)
    }
}

/// Bytes to read from and to write to, within one poll.
struct Through<'t, 'c, I> {
    io: &'t mut I,
    cx: &'t mut Context<'c>,
}

impl<I: Io> Read for Through<'_, '_, I> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        at_once(self.io.poll_read(self.cx, buf))
    }
}

impl<I: Io> Write for Through<'_, '_, I> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        at_once(self.io.poll_write(self.cx, buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        at_once(self.io.poll_flush(self.cx))
    }
}

fn at_once<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
    match polled {
        Poll::Ready(done) => done,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
