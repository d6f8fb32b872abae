//! A listening socket as a transport: every connection is a stream of its own.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_proto::server::Principal;
use mcp_proto::service::Service;

use crate::{Io, Runtime, ServeError, Settings, Timer, Transport, drive};

/// How long to wait when the system has no room for one more connection, and how often.
const PAUSE: Duration = Duration::from_millis(100);
const MOST_FAILURES: u32 = 100;

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
        let accepted = {
            let mut shutdown = pin!(shutdown);
            let mut failures = 0;
            let mut pause: Option<R::Timer> = None;
            poll_fn(|cx| {
                loop {
                    if shutdown.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(Ok(()));
                    }
                    if let Some(timer) = &mut pause {
                        std::task::ready!(timer.poll(cx));
                        pause = None;
                    }
                    std::task::ready!(house.poll_fewer_than(cx, most));
                    let connection = match std::task::ready!(listener.poll_accept(cx)) {
                        Ok(connection) => connection,
                        Err(error) => {
                            failures += 1;
                            if failures == MOST_FAILURES {
                                return Poll::Ready(Err(error));
                            }
                            pause = Some(runtime.timer(runtime.now() + PAUSE));
                            continue;
                        }
                    };
                    failures = 0;
                    let mut settings = settings.clone();
                    settings.principal = principal_of.as_ref().and_then(|of| of(&connection));
                    let guest = house.admit();
                    let (service, within) = (service.clone(), runtime.clone());
                    let io = L::open(connection);
                    runtime.spawn(async move { guest.serve(&service, io, &within, settings).await });
                }
            })
            .await
        };
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

/// All connections of one socket, from the side of the one who accepts them.
#[derive(Default)]
struct House(Arc<Mutex<Rooms>>);

#[derive(Default)]
struct Rooms {
    guests: Vec<Arc<Mutex<Room>>>,
    host: Option<Waker>,
}

/// One connection.
#[derive(Default)]
struct Room {
    phase: Phase,
    waker: Option<Waker>,
    /// Where in [`Rooms::guests`] it is.
    index: usize,
}

#[derive(Clone, Copy, Default, PartialEq, PartialOrd)]
enum Phase {
    #[default]
    Open,
    /// Finish what is accepted.
    Ending,
    /// Stop now.
    Gone,
}

struct Guest {
    house: Arc<Mutex<Rooms>>,
    room: Arc<Mutex<Room>>,
}

impl House {
    fn admit(&self) -> Guest {
        let mut rooms = lock(&self.0);
        let room = Arc::new(Mutex::new(Room { index: rooms.guests.len(), ..Room::default() }));
        rooms.guests.push(Arc::clone(&room));
        Guest { house: Arc::clone(&self.0), room }
    }

    fn end(&self, phase: Phase) {
        let guests = lock(&self.0).guests.clone();
        for room in guests {
            let mut room = lock(&room);
            room.phase = phase;
            let waker = room.waker.take();
            drop(room);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    fn poll_fewer_than(&self, cx: &mut Context<'_>, most: usize) -> Poll<()> {
        let mut rooms = lock(&self.0);
        if rooms.guests.len() < most {
            return Poll::Ready(());
        }
        rooms.host = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.end(Phase::Gone);
    }
}

impl Guest {
    async fn serve<R: Runtime>(self, service: &Service, io: impl Io, runtime: &R, settings: Settings) {
        let ending = poll_fn(|cx| self.poll_phase(cx, Phase::Ending));
        let mut driven = pin!(drive(service, io, runtime, settings, ending));
        poll_fn(|cx| {
            if self.poll_phase(cx, Phase::Gone).is_ready() {
                return Poll::Ready(());
            }
            // An error of one connection is that connection's.
            driven.as_mut().poll(cx).map(|_| ())
        })
        .await;
    }

    fn poll_phase(&self, cx: &mut Context<'_>, phase: Phase) -> Poll<()> {
        let mut room = lock(&self.room);
        if room.phase >= phase {
            return Poll::Ready(());
        }
        match &mut room.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut rooms = lock(&self.house);
        let index = lock(&self.room).index;
        rooms.guests.swap_remove(index);
        if let Some(moved) = rooms.guests.get(index) {
            lock(moved).index = index;
        }
        let host = rooms.host.take();
        drop(rooms);
        host.into_iter().for_each(Waker::wake);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
