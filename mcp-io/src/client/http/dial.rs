//! Making a connection.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mcp_proto::time::Instant;

use super::Network;
use super::agent::{Options, Origin, Versions};
use super::connection::Connection;
use super::io::Wire;
use super::pool::{Slot, Speaks};
use crate::{Runtime, Timer};

#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
pub(super) type Tls = Arc<rustls::ClientConfig>;
#[cfg(not(any(feature = "tls-ring", feature = "tls-aws-lc")))]
pub(super) type Tls = Arc<std::convert::Infallible>;

/// Why there is no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The address is none that can be asked, and why.
    Address(String),
    /// What was set cannot be used, and why.
    Settings(String),
    /// The name of the host could not be looked up.
    Resolve(String, io::Error),
    /// No address of the host could be connected to; the error of the last.
    Connect(String, io::Error),
    /// No agreement on encryption with the host, or it is not proven that it is the host.
    Tls(String, io::Error),
    /// There was no connection in time.
    TimedOut(String),
    /// The connection was lost or what came is no HTTP.
    Lost {
        /// Whether something of the request may have reached the server.
        sent: bool,
        /// What happened.
        error: io::Error,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) | Self::Settings(why) => f.write_str(why),
            Self::Resolve(host, error) => write!(f, "the address of {host} cannot be looked up: {error}"),
            Self::Connect(host, error) => write!(f, "{host} cannot be reached: {error}"),
            Self::Tls(host, error) => write!(f, "no secure connection to {host}: {error}"),
            Self::TimedOut(host) => write!(f, "no connection to {host} in time"),
            Self::Lost { error, .. } => write!(f, "the exchange failed: {error}"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Address(_) | Self::Settings(_) | Self::TimedOut(_) => None,
            Self::Resolve(_, error) | Self::Connect(_, error) | Self::Tls(_, error) => Some(error),
            Self::Lost { error, .. } => Some(error),
        }
    }
}

/// The text of an error with what is behind it: hyper's own says little.
pub(super) fn lost(sent: bool, error: &hyper::Error) -> Failure {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    Failure::Lost { sent, error: io::Error::other(text) }
}

/// Connects to `origin`.
pub(super) async fn dial<R: Network>(
    runtime: &R,
    options: &Options,
    tls: Option<Tls>,
    origin: &Origin,
    slot: Slot,
) -> Result<(Connection, Speaks), Failure> {
    let deadline = runtime.now() + options.connect_timeout;
    let timed_out = || Failure::TimedOut(origin.host.clone());
    let dialing = async {
        let tcp = reach(runtime, origin, deadline).await?;
        let (wire, speaks) = secure(tcp, options, tls, origin).await?;
        let connection = match speaks {
            Speaks::Http1 => Connection::http1(runtime, wire, slot).await,
            Speaks::Http2 => Connection::http2(runtime, wire, slot).await,
        };
        Ok((connection.map_err(|error| lost(false, &error))?, speaks))
    };
    within(runtime, deadline, dialing).await.unwrap_or_else(|| Err(timed_out()))
}

/// A TCP connection to the first address that takes one.
async fn reach<R: Network>(runtime: &R, origin: &Origin, deadline: Instant) -> Result<R::Tcp, Failure> {
    let resolved = runtime.resolve(&origin.host, origin.port).await;
    let addresses = resolved.map_err(|error| Failure::Resolve(origin.host.clone(), error))?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    let mut left = addresses.len() as u32;
    for address in addresses {
        // One that does not answer must not take the time of those that would.
        let now = runtime.now();
        let share = now + deadline.saturating_duration_since(now) / left.max(1);
        match within(runtime, share, runtime.connect(address)).await {
            Some(Ok(connection)) => return Ok(connection),
            Some(Err(error)) => last = error,
            None => last = io::ErrorKind::TimedOut.into(),
        }
        left = left.saturating_sub(1);
    }
    Err(Failure::Connect(origin.host.clone(), last))
}

async fn secure<I: crate::Io>(
    tcp: I,
    options: &Options,
    tls: Option<Tls>,
    origin: &Origin,
) -> Result<(Wire<I>, Speaks), Failure> {
    let Some(tls) = tls else {
        let speaks = match options.versions {
            Versions::Http2 => Speaks::Http2,
            _ => Speaks::Http1,
        };
        return Ok((Wire::Plain(tcp), speaks));
    };
    #[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
    {
        let stream = super::tls::TlsStream::connect(tcp, tls, &origin.host).await;
        let stream = stream.map_err(|error| Failure::Tls(origin.host.clone(), error))?;
        let speaks = match stream.is_http2() {
            true => Speaks::Http2,
            false if options.versions == Versions::Http2 => {
                let error = io::Error::other("the server does not speak HTTP/2");
                return Err(Failure::Tls(origin.host.clone(), error));
            }
            false => Speaks::Http1,
        };
        Ok((Wire::Tls(Box::new(stream)), speaks))
    }
    #[cfg(not(any(feature = "tls-ring", feature = "tls-aws-lc")))]
    {
        let _ = (tcp, origin);
        match *tls {}
    }
}

/// What `future` gives, if it does so in time.
async fn within<R: Runtime, F: Future>(runtime: &R, deadline: Instant, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut timer = runtime.timer(deadline);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => timer.poll(cx).map(|()| None),
    })
    .await
}

/// Shown where a duration is.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
