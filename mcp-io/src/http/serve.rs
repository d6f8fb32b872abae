//! HTTP as a transport.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use mcp_proto::http::{Cors, Events, HttpSse, Origins, Settings};
use mcp_proto::service::http::HttpService;
use mcp_proto::service::{Authorizer, Service};

use super::Responder;
use super::respond::{Options, SWEEP};
use crate::house::{self, Guest, House, Phase};
use crate::{Accept, Runtime, ServeError, Timer, Transport};

/// A socket of the system as one of a runtime.
pub trait FromStd: Accept + Sized {
    /// Takes over a socket that does not block.
    ///
    /// # Errors
    /// The system's.
    fn from_std(listener: TcpListener) -> io::Result<Self>;
}

/// Streamable HTTP on an address, as a transport. [spec: basic/transports/streamable-http]
///
/// It speaks HTTP/1.1 and, with those who begin that way, HTTP/2. Encryption is the business of what stands
/// before it.
///
/// It ends when `shutdown` completes (see [`Serve::serve_until`](crate::Serve::serve_until)): the socket is
/// closed, subscriptions end with their results, and calls have the [drain time](Self::drain) to be
/// answered. Dropping the future of `serve` drops everything at once.
pub struct Http<R, L> {
    runtime: R,
    at: io::Result<Vec<SocketAddr>>,
    settings: Settings,
    /// They were said.
    origins: bool,
    authorizer: Option<Authorizer>,
    options: Options,
    max_connections: usize,
    lame_duck: Duration,
    drain: Duration,
    listener: std::marker::PhantomData<fn() -> L>,
}

impl<R: Runtime, L: FromStd> Http<R, L> {
    /// At the first of these addresses that is free.
    pub fn new(runtime: R, address: impl ToSocketAddrs) -> Self {
        Self {
            runtime,
            at: address.to_socket_addrs().map(Iterator::collect),
            settings: Settings::default(),
            origins: false,
            authorizer: None,
            options: Options::default(),
            max_connections: 1024,
            lame_duck: Duration::ZERO,
            drain: Duration::from_secs(5),
            listener: std::marker::PhantomData,
        }
    }

    /// The path of the endpoint; 404 elsewhere. `/mcp` by default.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.options.path = Some(path.into());
        self
    }

    /// Under which names the server is called, and which web pages may call it. By default those of this
    /// machine. It has to be said for an address that other machines can reach.
    #[must_use]
    pub fn origins(mut self, origins: Origins) -> Self {
        self.settings.origins = origins;
        self.origins = true;
        self
    }

    /// Serves clients of 2024-11-05, too, at paths of their own. Off by default.
    #[must_use]
    pub fn sse(mut self, sse: HttpSse) -> Self {
        self.settings.sse = Some(sse);
        self
    }

    /// Refuses what clients must not do though its meaning is clear. Off by default; see
    /// [`Settings::strict`].
    #[must_use]
    pub const fn strict(mut self, strict: bool) -> Self {
        self.settings.strict = strict;
        self
    }

    /// Lets the web pages of allowed [origins](Self::origins) read what they are answered (CORS). Off by default.
    #[must_use]
    pub const fn cors(mut self, cors: Cors) -> Self {
        self.settings.cors = Some(cors);
        self
    }

    /// Asks every request for a token.
    #[must_use]
    pub fn authorizer(mut self, authorizer: Authorizer) -> Self {
        self.authorizer = Some(authorizer);
        self
    }

    /// When an answer is a stream of events. If need be, by default.
    #[must_use]
    pub const fn events(mut self, events: Events) -> Self {
        self.settings.events = events;
        self
    }

    /// How long a stream may be silent before a comment shows that it is alive. 15 seconds by default;
    /// `None` = never.
    #[must_use]
    pub const fn keep_alive(mut self, most: Option<Duration>) -> Self {
        self.settings.keep_alive = most;
        self
    }

    /// Where a probe is told whether the server is ready, with 200. `None` = nowhere. `/healthz` by default.
    #[must_use]
    pub fn readiness(mut self, path: Option<&str>) -> Self {
        self.options.readiness = path.map(Into::into);
        self
    }

    /// Most connections at once; more wait in the socket's queue. 1,024 by default.
    #[must_use]
    pub fn max_connections(mut self, most: usize) -> Self {
        self.max_connections = most.max(1);
        self
    }

    /// Most requests at once, streams included; one more is answered with 503. 4,096 by default.
    #[must_use]
    pub const fn max_in_flight(mut self, most: usize) -> Self {
        self.options.max_in_flight = most;
        self
    }

    /// Most bytes of the bodies of all requests together that are read and not handed over yet; a request that
    /// would bring more is answered with 503. 256 MiB by default. A body that alone is longer gets 413.
    #[must_use]
    pub const fn body_budget(mut self, most: usize) -> Self {
        self.options.body_budget = most;
        self
    }

    /// The time that a client has to send the head of a request; also how long a connection of HTTP/1 may
    /// stay open unused. 30 seconds by default.
    #[must_use]
    pub const fn header_timeout(mut self, most: Duration) -> Self {
        self.options.header_timeout = most;
        self
    }

    /// The time that a client has to send the body of a request. 30 seconds by default.
    #[must_use]
    pub const fn body_timeout(mut self, most: Duration) -> Self {
        self.options.body_timeout = most;
        self
    }

    /// How long everything is served on after `shutdown`, while a probe is told that the server is not ready: so
    /// long does what distributes requests need to notice. Not at all by default.
    #[must_use]
    pub const fn lame_duck(mut self, time: Duration) -> Self {
        self.lame_duck = time;
        self
    }

    /// The time from `shutdown`, or from the end of the [lame-duck](Self::lame_duck) time, to the end, at most: for calls that were accepted and for peers that read
    /// slowly. 5 seconds by default.
    #[must_use]
    pub const fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Where connections, handlers and timers run, if not where the future of `serve` is polled.
    #[must_use]
    pub fn runtime(mut self, runtime: R) -> Self {
        self.runtime = runtime;
        self
    }

    /// Binds the address now, so that it is known before serving begins. Otherwise serving does it.
    ///
    /// # Errors
    /// [`ServeError::Exposed`] if other machines can reach the address and [`origins`](Self::origins) was not
    /// said; [`ServeError::Io`] if the address is not free.
    pub fn bind(mut self) -> Result<HttpListener<R, L>, ServeError> {
        let at = std::mem::replace(&mut self.at, Ok(Vec::new()))?;
        if let Some(exposed) = at.iter().find(|address| !address.ip().is_loopback())
            && !self.origins
        {
            return Err(ServeError::Exposed(*exposed));
        }
        let socket = TcpListener::bind(&*at)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(HttpListener { http: self, socket, address })
    }
}

/// An [`Http`] that is bound.
pub struct HttpListener<R, L> {
    http: Http<R, L>,
    socket: TcpListener,
    address: SocketAddr,
}

impl<R: Runtime, L: FromStd> HttpListener<R, L> {
    /// The address, with the port that the system chose for port 0.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Asks every request for a token: for a resource whose URI has the port that the system chose.
    #[must_use]
    pub fn authorizer(mut self, authorizer: Authorizer) -> Self {
        self.http.authorizer = Some(authorizer);
        self
    }

    /// The URL of the endpoint at that address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.http.options.path.as_deref().unwrap_or("/"))
    }
}

impl<R: Runtime, L: FromStd> Transport for Http<R, L> {
    async fn run(
        self,
        service: Service,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        self.bind()?.run(service, shutdown).await
    }
}

impl<R: Runtime, L: FromStd> Transport for HttpListener<R, L> {
    async fn run(
        self,
        service: Service,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let Http { runtime, settings, authorizer, options, max_connections, lame_duck, drain, .. } =
            self.http;
        let mut listener = L::from_std(self.socket)?;
        let http = match authorizer {
            Some(authorizer) => HttpService::with_authorizer(&service, settings, authorizer),
            None => HttpService::new(&service, settings),
        };
        let responder = Responder::with_options(http, runtime.clone(), options);
        let _end = End(responder.service().clone());
        let house = House::default();
        let each = |connection: L::Connection, guest: Guest| {
            let responder = responder.clone();
            let io = L::open(connection);
            runtime.spawn(async move {
                guest.run(|ending| responder.serve_connection(io, ending)).await;
            });
        };
        let (mut shutdown, mut lame) = (pin!(shutdown), None);
        let shutdown = poll_fn(|cx| {
            if lame.is_none() {
                std::task::ready!(shutdown.as_mut().poll(cx));
                responder.unready();
                lame = Some(runtime.timer(runtime.now() + lame_duck));
            }
            match &mut lame {
                Some(timer) if lame_duck > Duration::ZERO => timer.poll(cx),
                _ => Poll::Ready(()),
            }
        });
        let accepted = {
            let mut accepting =
                pin!(house::accept(&runtime, &mut listener, &house, max_connections, shutdown, each));
            let mut timer = runtime.timer(runtime.now() + SWEEP);
            poll_fn(|cx| {
                while timer.poll(cx).is_ready() {
                    responder.sweep();
                    timer.reset(runtime.now() + SWEEP);
                }
                accepting.as_mut().poll(cx)
            })
            .await
        };
        drop(listener);
        responder.close();
        house.end(Phase::Ending);
        let mut timer = runtime.timer(runtime.now() + drain);
        poll_fn(|cx| {
            if house.poll_fewer_than(cx, 1).is_ready() {
                return Poll::Ready(());
            }
            timer.poll(cx)
        })
        .await;
        house.end(Phase::Gone);
        poll_fn(|cx| house.poll_fewer_than(cx, 1)).await;
        Ok(accepted?)
    }
}

/// Whatever still runs for a session is cancelled when serving is over.
struct End(HttpService);

impl Drop for End {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<R, L> fmt::Debug for Http<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("at", &self.at).field("options", &self.options).finish_non_exhaustive()
    }
}

impl<R, L> fmt::Debug for HttpListener<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpListener").field("address", &self.address).finish_non_exhaustive()
    }
}
