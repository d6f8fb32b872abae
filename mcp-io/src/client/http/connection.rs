//! One connection, as the pool has it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderValue, Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};

use super::io::{Stream, Wire};
use super::pool::Slot;
use crate::http::io::Within;
use crate::{Io, Runtime};

/// Most bytes of the head of a response.
const MAX_HEAD: usize = 64 << 10;
/// A connection of HTTP/2 that is silent for so long is asked whether it is there.
const ARE_YOU_THERE: Duration = Duration::from_secs(20);

/// The body of a request.
#[derive(Debug, Clone)]
pub(super) struct Full(Option<Bytes>);

impl Full {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl http_body::Body for Full {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// A connection of HTTP/1: one exchange at a time.
pub(super) struct Http1 {
    pub(super) sender: http1::SendRequest<Full>,
    _slot: Slot,
}

/// A connection of HTTP/2: many at a time.
#[derive(Clone)]
pub(super) struct Http2 {
    sender: http2::SendRequest<Full>,
    active: Arc<AtomicUsize>,
    _slot: Arc<Slot>,
}

/// An exchange runs on a connection of HTTP/2.
pub(super) struct Active(Arc<AtomicUsize>);

pub(super) enum Connection {
    Http1(Http1),
    Http2(Http2),
}

/// Why there is no response.
pub(super) struct Unsent {
    pub(super) error: hyper::Error,
    /// The request, if nothing of it was sent.
    pub(super) request: Option<Box<Request<Full>>>,
}

impl Connection {
    pub(super) async fn http1<R: Runtime, I: Io + 'static>(
        runtime: &R,
        wire: Wire<I>,
        slot: Slot,
    ) -> hyper::Result<Self> {
        let handshake = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(Stream::new(wire));
        let (sender, connection) = handshake.await?;
        // How it ends is seen by those who use it.
        runtime.spawn(async { drop(connection.await) });
        Ok(Self::Http1(Http1 { sender, _slot: slot }))
    }

    pub(super) async fn http2<R: Runtime, I: Io + 'static>(
        runtime: &R,
        wire: Wire<I>,
        slot: Slot,
    ) -> hyper::Result<Self> {
        let within = Within(runtime.clone());
        let handshake = http2::Builder::new(within.clone())
            .timer(within)
            .max_header_list_size(MAX_HEAD as u32)
            .keep_alive_interval(ARE_YOU_THERE)
            .handshake(Stream::new(wire));
        let (sender, connection) = handshake.await?;
        runtime.spawn(async { drop(connection.await) });
        Ok(Self::Http2(Http2 { sender, active: Arc::default(), _slot: Arc::new(slot) }))
    }
}

impl Http1 {
    /// Whether it could be used now.
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    pub(super) async fn send(&mut self, mut request: Request<Full>) -> Result<Response<Incoming>, Unsent> {
        let absolute = request.uri().clone();
        if let Err(error) = poll_fn(|cx| self.sender.poll_ready(cx)).await {
            return Err(Unsent { error, request: Some(request.into()) });
        }
        let path = absolute.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from(path);
        if let Some(authority) = absolute.authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            request.headers_mut().entry(HOST).or_insert(host);
        }
        self.sender.try_send_request(request).await.map_err(|mut failed| {
            let request = failed.take_message().map(|mut request| {
                *request.uri_mut() = absolute;
                request.into()
            });
            Unsent { error: failed.into_error(), request }
        })
    }
}

impl Http2 {
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// One more exchange.
    pub(super) fn enter(&self) -> Active {
        self.active.fetch_add(1, Ordering::Relaxed);
        Active(Arc::clone(&self.active))
    }

    pub(super) async fn send(&mut self, request: Request<Full>) -> Result<Response<Incoming>, Unsent> {
        if let Err(error) = self.sender.ready().await {
            return Err(Unsent { error, request: Some(request.into()) });
        }
        self.sender.try_send_request(request).await.map_err(|mut failed| {
            let request = failed.take_message().map(Into::into);
            Unsent { error: failed.into_error(), request }
        })
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
