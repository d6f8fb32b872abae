//! One byte stream as a transport.

use std::future::Future;
use std::time::Duration;

use mcp_proto::server::Principal;
use mcp_proto::service::Service;

use crate::{Io, Runtime, ServeError, Settings, Transport, drive};

/// One byte stream: a message a line in each direction, as on stdio. `[spec: basic/transports/stdio]`
///
/// A server can be served on it, and a client can be [connected](crate::client::Connect) to it.
#[derive(Debug)]
pub struct ByteStream<R, I> {
    runtime: R,
    io: I,
    settings: Settings,
}

impl<R: Runtime, I: Io> ByteStream<R, I> {
    /// `io` on `runtime`.
    pub fn new(runtime: R, io: I) -> Self {
        Self { runtime, io, settings: Settings::default() }
    }

    pub(crate) fn into_parts(self) -> (R, I) {
        (self.runtime, self.io)
    }

    /// Who is at the other end. No one in particular by default.
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.settings.principal = Some(principal);
        self
    }

    /// The time from the end of the input to the end of the stream, at most: for accepted calls and for a peer
    /// that reads slowly. See [`Settings::drain`]. 5 seconds by default.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.settings.drain = drain;
        self
    }

    /// Where handlers and timers run, if not where the future of `serve` is polled.
    #[must_use]
    pub fn runtime(mut self, runtime: R) -> Self {
        self.runtime = runtime;
        self
    }
}

impl<R: Runtime, I: Io> Transport for ByteStream<R, I> {
    async fn run(
        self,
        service: Service,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        Ok(drive(&service, self.io, &self.runtime, self.settings, shutdown).await?)
    }
}
