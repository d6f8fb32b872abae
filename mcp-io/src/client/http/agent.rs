//! Requests, each on whatever connection is free.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Incoming;

use super::body::From;
use super::connection::{Connection, Full, Unsent};
use super::dial::{CONNECT_TIMEOUT, Tls, dial, lost};
use super::pool::{Lease, Pool, Speaks};
use super::{Body, Failure, Network};

/// Tries on connections that turn out to be closed before anything was sent. Then a fresh one is made.
const MOST_STALE: usize = 3;

/// Sends requests over HTTP/1.1 and HTTP/2, and keeps connections for the next. Cheap to clone: all clones share
/// their connections.
///
/// No proxy is used, whatever the environment says. Redirects are not followed: a response is handed on as it is.
///
/// A connection that was kept may have been closed by the server just when it is used again. A request of which
/// nothing was sent then is sent on another connection. Once something may have been sent, only those that change
/// nothing (`GET`, `HEAD`, `OPTIONS`) are repeated, once; for a `POST` it is [`Failure::Lost`] with `sent`, for a tool may
/// have been called. To make that rare, connections are kept for a shorter time than servers commonly do, and never
/// longer than the server says that it will.
pub struct Agent<R: Network>(Arc<Inner<R>>);

struct Inner<R: Network> {
    runtime: R,
    options: Options,
    tls: Option<Tls>,
    pools: Mutex<HashMap<Origin, Arc<Pool<R>>>>,
}

/// How requests are sent.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// What is spoken. [`Versions::Auto`] by default.
    pub versions: Versions,
    /// Most connections to one origin; who wants one more waits. 64 by default. Replies to the server may have as
    /// many again.
    pub max_connections: usize,
    /// How long a connection of HTTP/1 is kept unused. 4 seconds by default: common servers close theirs after 5.
    pub idle_timeout: Duration,
    /// The time for all of looking up, connecting and agreeing on keys. 10 seconds by default.
    pub connect_timeout: Duration,
    /// Certificates in PEM (any number in each) or DER that are trusted besides, or
    /// [alone](Self::system_roots). None by default.
    pub roots: Vec<Vec<u8>>,
    /// Whether the certificates are trusted that this system trusts, and by its own rules where it has some. So by
    /// default.
    pub system_roots: bool,
}

/// Versions of HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Versions {
    /// HTTP/2 if the server offers it when keys are agreed on, else HTTP/1.1; without encryption HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only, without encryption too: the server is known to speak it.
    Http2,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // one side waits for the other, or the other for it
pub enum Lane {
    /// It may take long.
    Call,
    /// It is short, and calls may wait for it: the answer to a question, a notification, the end of a session.
    Reply,
}

/// Where connections lead.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) secure: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            versions: Versions::Auto,
            max_connections: 64,
            idle_timeout: Duration::from_secs(4),
            connect_timeout: CONNECT_TIMEOUT,
            roots: Vec::new(),
            system_roots: true,
        }
    }
}

impl<R: Network> Agent<R> {
    /// Sends from `runtime`.
    ///
    /// # Errors
    /// [`Failure::Settings`] if a root certificate cannot be read or those of the system cannot be had.
    pub fn new(runtime: R, options: Options) -> Result<Self, Failure> {
        #[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
        let tls = Some(super::tls::config(&options).map_err(Failure::Settings)?);
        #[cfg(not(any(feature = "tls-ring", feature = "tls-aws-lc")))]
        let tls = None;
        Ok(Self(Arc::new(Inner { runtime, options, tls, pools: Mutex::default() })))
    }

    /// Sends `request`, whose URI is absolute, and waits for the head of the response. Its body comes as it does.
    ///
    /// Dropping the future, or the body before its end, closes the exchange. There is no limit to the time that the
    /// server has for its response: drop it.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn send(&self, request: Request<Bytes>, lane: Lane) -> Result<Response<Body<R>>, Failure> {
        let (origin, tls) = self.origin(request.uri())?;
        let pool = self.pool(&origin);
        let repeatable = request.method().is_safe().then(|| request.clone());
        let mut request = request.map(Full::new);
        let mut stale = 0;
        loop {
            let fresh = stale > MOST_STALE;
            let (mut connection, used) = match pool.lease(lane, fresh).await {
                Lease::Used(connection) => (connection, true),
                Lease::Dial(mut making) => {
                    let Some(slot) = making.slot.take() else { continue };
                    let Inner { runtime, options, .. } = &*self.0;
                    let (connection, speaks) = dial(runtime, options, tls.clone(), &origin, slot).await?;
                    match (&connection, speaks) {
                        (Connection::Http2(shared), Speaks::Http2) => pool.share(shared.clone()),
                        _ => pool.speaks_http1(),
                    }
                    (connection, false)
                }
            };
            let Unsent { error, request: back } = match self.on(&mut connection, request).await {
                Ok((response, active)) => return Ok(self.response(response, connection, active, &pool)),
                Err(unsent) => unsent,
            };
            request = match (back, &repeatable) {
                (Some(back), _) if stale <= MOST_STALE => *back,
                (None, Some(again)) if used && stale <= MOST_STALE => {
                    stale = MOST_STALE;
                    again.clone().map(Full::new)
                }
                (back, _) => return Err(lost(back.is_none(), &error)),
            };
            stale += 1;
        }
    }

    async fn on(
        &self,
        connection: &mut Connection,
        request: Request<Full>,
    ) -> Result<(Response<Incoming>, Option<super::connection::Active>), Unsent> {
        match connection {
            Connection::Http1(connection) => Ok((connection.send(request).await?, None)),
            Connection::Http2(connection) => {
                let active = connection.enter();
                Ok((connection.send(request).await?, Some(active)))
            }
        }
    }

    fn response(
        &self,
        response: Response<Incoming>,
        connection: Connection,
        active: Option<super::connection::Active>,
        pool: &Arc<Pool<R>>,
    ) -> Response<Body<R>> {
        let (head, incoming) = response.into_parts();
        let from = match (connection, active) {
            (Connection::Http1(connection), _) => {
                let keep = keep(&head.headers, self.0.options.idle_timeout);
                From::Http1 { connection, pool: Arc::clone(pool), keep }
            }
            (Connection::Http2(connection), active) => {
                From::Http2 { _active: active.unwrap_or_else(|| connection.enter()) }
            }
        };
        Response::from_parts(head, Body::new(incoming, from))
    }

    fn pool(&self, origin: &Origin) -> Arc<Pool<R>> {
        let Inner { runtime, options, pools, .. } = &*self.0;
        let mut pools = pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(origin) {
            return Arc::clone(pool);
        }
        let speaks = match (options.versions, origin.secure) {
            (Versions::Http2, _) => Some(Speaks::Http2),
            (Versions::Http1, _) | (Versions::Auto, false) => Some(Speaks::Http1),
            (Versions::Auto, true) => None,
        };
        let pool = Arc::new(Pool::new(runtime.clone(), options.max_connections, speaks));
        pools.insert(origin.clone(), Arc::clone(&pool));
        pool
    }

    /// Where `uri` leads, and how it is encrypted.
    fn origin(&self, uri: &Uri) -> Result<(Origin, Option<Tls>), Failure> {
        let refuse = |why: &str| Err(Failure::Address(format!("{}: {why}", WithoutSecrets(uri))));
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return refuse("a whole address was expected, as in https://host/path");
        };
        let secure = match scheme {
            scheme if *scheme == Scheme::HTTPS => true,
            scheme if *scheme == Scheme::HTTP => false,
            _ => return refuse("http or https was expected"),
        };
        if authority.as_str().contains('@') {
            return refuse("a name or a password is not sent from an address");
        }
        if secure && self.0.tls.is_none() {
            return refuse("https needs the feature tls-ring or tls-aws-lc");
        }
        let host = authority.host();
        if host.is_empty() {
            return refuse("it names no host");
        }
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tls = self.0.tls.clone().filter(|_| secure);
        Ok((Origin { secure, host: host.to_ascii_lowercase(), port }, tls))
    }

    /// Whether `https` can be spoken.
    pub(super) fn has_tls(&self) -> bool {
        self.0.tls.is_some()
    }
}

/// How long a connection may be kept. The server says when it will close it; before that it must not be used any
/// more.
fn keep(headers: &HeaderMap, most: Duration) -> Duration {
    let said = headers.get("keep-alive").and_then(|value| value.to_str().ok()).and_then(|value| {
        let parameters = value.split(',').filter_map(|parameter| parameter.split_once('='));
        let timeout = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("timeout"));
        timeout.map(|(_, seconds)| seconds.trim().parse::<u64>()).next()?.ok()
    });
    match said {
        Some(seconds) => Duration::from_secs(seconds).saturating_sub(Duration::from_secs(1)).min(most),
        None => most,
    }
}

/// A URI without what may be a password.
struct WithoutSecrets<'u>(&'u Uri);

impl fmt::Display for WithoutSecrets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        match (text.split_once("://"), text.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, rest))) => write!(f, "{scheme}://…@{rest}"),
            _ => f.write_str(&text),
        }
    }
}

impl<R: Network> Clone for Agent<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Network> fmt::Debug for Agent<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("versions", &self.versions)
            .field("max_connections", &self.max_connections)
            .field("idle_timeout", &self.idle_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("roots", &self.roots.len())
            .field("system_roots", &self.system_roots)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_kept_no_longer_than_the_server_says() {
        let kept = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("keep-alive", value.parse().unwrap());
            keep(&headers, Duration::from_secs(4)).as_secs()
        };
        assert_eq!(keep(&HeaderMap::new(), Duration::from_secs(4)).as_secs(), 4);
        let cases = [("timeout=5", 4), ("timeout=3, max=100", 2), ("max=1,Timeout = 2", 1), ("timeout=1", 0)];
        for (value, seconds) in cases.into_iter().chain([("timeout=0", 0), ("timeout=x", 4), ("x", 4)]) {
            assert_eq!(kept(value), seconds, "{value}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let shown = |uri: &str| WithoutSecrets(&uri.parse().unwrap()).to_string();
        assert_eq!(shown("https://me:secret@host:1/p"), "https://…@host:1/p");
        assert_eq!(shown("https://host/p"), "https://host/p");
    }
}
