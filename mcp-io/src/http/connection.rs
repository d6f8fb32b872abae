//! One connection.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;

use super::io::{Stream, Version, Within};
use super::{HttpBody, Responder, Responding};
use crate::{Io, Runtime, Timer};

/// Most bytes of a head, of any version.
const MAX_HEAD: usize = 32 << 10;
/// Most bytes that a connection of HTTP/1 keeps before it reads or writes on.
const MAX_BUFFER: usize = 64 << 10;
/// Most requests of one connection of HTTP/2 at once.
const MAX_STREAMS: u32 = 128;
/// A connection of HTTP/2 that is silent for so long is asked whether it is there.
const ARE_YOU_THERE: Duration = Duration::from_secs(30);

impl<R: Runtime> Responder<R> {
    /// Serves a connection that you have accepted, of TLS for example: HTTP/1 or HTTP/2, as the peer speaks,
    /// until it hangs up; once `ending` completes, until what was asked for is answered.
    ///
    /// Dropping the future ends the connection at once.
    ///
    /// # Errors
    /// Those of `io`, and what the peer did that is no HTTP.
    pub async fn serve_connection<I: Io + 'static>(
        &self,
        io: I,
        ending: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        serve(self.clone(), io, ending).await
    }
}

async fn serve<R: Runtime, I: Io + 'static>(
    responder: Responder<R>,
    io: I,
    ending: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (runtime, header_timeout) = (responder.runtime().clone(), responder.head_within());
    let mut ending = pin!(ending);
    let refused = Arc::new(AtomicBool::new(false));
    let mut io = Stream::new(io, runtime.clone(), Arc::clone(&refused));
    let version = {
        let mut version = pin!(io.version());
        let mut timer = runtime.timer(runtime.now() + header_timeout);
        poll_fn(|cx| {
            if let Poll::Ready(version) = version.as_mut().poll(cx) {
                return Poll::Ready(version);
            }
            if ending.as_mut().poll(cx).is_ready() || timer.poll(cx).is_ready() {
                return Poll::Ready(Ok(None));
            }
            Poll::Pending
        })
        .await?
    };
    let within = Within(runtime);
    match version {
        None => Ok(()),
        Some(Version::Http1) => {
            let connection = http1::Builder::new()
                .timer(within)
                .header_read_timeout(header_timeout)
                .max_buf_size(MAX_BUFFER)
                .max_header_size(MAX_HEAD)
                .serve_connection(io, Noting { responder, refused });
            finish(pin!(connection), ending, |connection| connection.graceful_shutdown()).await
        }
        Some(Version::Http2) => {
            let connection = http2::Builder::new(within.clone())
                .timer(within)
                .max_concurrent_streams(MAX_STREAMS)
                .max_header_list_size(MAX_HEAD as u32)
                .max_send_buf_size(MAX_BUFFER)
                .keep_alive_interval(ARE_YOU_THERE)
                .serve_connection(io, responder);
            finish(pin!(connection), ending, |connection| connection.graceful_shutdown()).await
        }
    }
}

/// Notes when a request is refused that has a body.
struct Noting<R> {
    responder: Responder<R>,
    refused: Arc<AtomicBool>,
}

impl<R: Runtime> Service<Request<Incoming>> for Noting<R> {
    type Response = Response<HttpBody<R>>;
    type Error = Infallible;
    type Future = Responding<R>;

    fn call(&self, request: Request<Incoming>) -> Responding<R> {
        let (responder, refused) = (self.responder.clone(), Arc::clone(&self.refused));
        Box::pin(async move {
            let has_body = !request.body().is_end_stream();
            let response = responder.respond(request).await;
            if has_body && !response.status().is_success() {
                refused.store(true, Ordering::Relaxed);
            }
            Ok(response)
        })
    }
}

async fn finish<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<&mut C>,
    mut ending: Pin<&mut impl Future<Output = ()>>,
    end: impl Fn(Pin<&mut C>),
) -> io::Result<()> {
    let mut told = false;
    poll_fn(|cx: &mut Context<'_>| {
        if !told && ending.as_mut().poll(cx).is_ready() {
            told = true;
            end(connection.as_mut());
        }
        connection.as_mut().poll(cx).map_err(io::Error::other)
    })
    .await
}
