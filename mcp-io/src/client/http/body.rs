//! The body of a response, as it comes.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use hyper::body::Incoming;

use super::Failure;
use super::connection::{Active, Http1};
use super::dial::lost;
use super::pool::Pool;
use crate::Runtime;

/// The body of a response. Dropping it before its end closes the connection (HTTP/1) or resets the stream (HTTP/2):
/// to a server of 2026-07-28 that cancels the request.
pub struct Body<R: Runtime> {
    incoming: Incoming,
    from: Option<From<R>>,
}

/// What the exchange runs on.
pub(super) enum From<R: Runtime> {
    Http1 { connection: Http1, pool: Arc<Pool<R>>, keep: Duration },
    Http2 { _active: Active },
}

impl<R: Runtime> Body<R> {
    pub(super) fn new(incoming: Incoming, from: From<R>) -> Self {
        let mut body = Self { incoming, from: Some(from) };
        if body.incoming.is_end_stream() {
            body.end();
        }
        body
    }

    /// The next piece, never empty; `None` at the end.
    ///
    /// # Errors
    /// [`Failure::Lost`] if the body is cut off or is none. Nothing follows then.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        loop {
            let frame = match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                None => {
                    self.end();
                    return Poll::Ready(None);
                }
                Some(Err(error)) => {
                    self.from = None;
                    return Poll::Ready(Some(Err(lost(true, &error))));
                }
                Some(Ok(frame)) => frame,
            };
            if self.incoming.is_end_stream() {
                self.end();
            }
            // Trailers say nothing here.
            if let Ok(data) = frame.into_data()
                && !data.is_empty()
            {
                return Poll::Ready(Some(Ok(data)));
            }
        }
    }

    /// The next piece, never empty; `None` at the end.
    ///
    /// # Errors
    /// As [`poll_chunk`](Self::poll_chunk).
    pub async fn chunk(&mut self) -> Option<Result<Bytes, Failure>> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    fn end(&mut self) {
        if let Some(From::Http1 { connection, pool, keep }) = self.from.take() {
            pool.give_back(connection, keep);
        }
    }
}

// What is in it is polled by reference.
impl<R: Runtime> Unpin for Body<R> {}

impl<R: Runtime> fmt::Debug for Body<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("ended", &self.from.is_none()).finish_non_exhaustive()
    }
}
