//! A listening socket as a transport: every connection is a stream of its own.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_proto::server::Principal;
use mcp_proto::service::Service;

use crate::house::{self, Guest, House, Phase};
use crate::{Io, Runtime, ServeError, Settings, Transport, drive};

/// A socket that accepts connections.
pub trait Accept: Send {
    /// A connection as the runtime has it.
    type Connection: Send;
    /// A connection as the loop wants it.
    type Io: Io + 'static;
    /// Whether anyone who reaches the socket may be a web page: see [`Settings::json_only`].
    const OPEN_TO_BROWSERS: bool;

    /// The next connection.
    ///
    /// # Errors
    /// The system's. They are met with patience: the socket is asked again after a pause.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Connection>>;

    /// Makes a connection ready for the loop.
    fn open(connection: Self::Connection) -> Self::Io;
}

/// A listening socket. Serves any number of peers at once, each on a stream of its own.
///
/// It ends when `shutdown` completes (see [`Serve::serve_until`](crate::Serve::serve_until)): the socket
/// is closed, and every stream finishes the calls that it has accepted. Dropping the future of `serve`
/// drops the streams too.
pub struct Listen<R, L: Accept> {
    runtime: R,
    listener: L,
    settings: Settings,
    principal_of: Option<PrincipalOf<L::Connection>>,
    most: usize,
}

type PrincipalOf<C> = Box<dyn Fn(&C) -> Option<Principal> + Send + Sync>;

impl<R: Runtime, L: Accept> Listen<R, L> {
    /// `listener` on `runtime`.
    pub fn new(runtime: R, listener: L) -> Self {
        let settings = Settings { json_only: L::OPEN_TO_BROWSERS, ..Settings::default() };
        Self { runtime, listener, settings, principal_of: None, most: 1024 }
    }

    /// Tells who is at the other end of a connection, from the credentials of the process there or the
    /// like. No one in particular by default.
    #[must_use]
    pub fn principal_of(
        mut self,
        principal_of: impl Fn(&L::Connection) -> Option<Principal> + Send + Sync + 'static,
    ) -> Self {
        self.principal_of = Some(Box::new(principal_of));
        self
    }

    /// The time from the end of the input of a stream to the end of the stream, at most: for accepted calls and for a peer
    /// that reads slowly. See [`Settings::drain`]. 5 seconds by default.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.settings.drain = drain;
        self
    }

    /// Most connections at once; more wait in the socket's queue. 1,024 by default.
    #[must_use]
    pub fn max_connections(mut self, most: usize) -> Self {
        self.most = most.max(1);
        self
    }

    /// Where connections, handlers and timers run, if not where the future of `serve` is polled.
    #[must_use]
    pub fn runtime(mut self, runtime: R) -> Self {
        self.runtime = runtime;
        self
    }
}

impl<R: Runtime, L: Accept> Transport for Listen<R, L> {
    async fn run(
        self,
        service: Service,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let Self { runtime, mut listener, settings, principal_of, most } = self;
        let house = House::default();
        let each = |connection: L::Connection, guest: Guest| {
            let mut settings = settings.clone();
            settings.principal = principal_of.as_ref().and_then(|of| of(&connection));
            let (service, within) = (service.clone(), runtime.clone());
            let io = L::open(connection);
            runtime.spawn(async move {
                guest.run(|ending| drive(&service, io, &within, settings, ending)).await;
            });
        };
        let accepted = house::accept(&runtime, &mut listener, &house, most, shutdown, each).await;
        drop(listener);
        house.end(Phase::Ending);
        poll_fn(|cx| house.poll_fewer_than(cx, 1)).await;
        Ok(accepted?)
    }
}

impl<R: fmt::Debug, L: Accept + fmt::Debug> fmt::Debug for Listen<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listen").field("listener", &self.listener).finish_non_exhaustive()
    }
}
