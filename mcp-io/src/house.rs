//! The connections of one socket, and their end.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::{Accept, Runtime, Timer};

/// How long to wait when the system has no room for one more connection, and how often.
const PAUSE: Duration = Duration::from_millis(100);
const MOST_FAILURES: u32 = 100;

/// Accepts connections until `shutdown` completes.
pub(crate) async fn accept<R: Runtime, L: Accept>(
    runtime: &R,
    listener: &mut L,
    house: &House,
    most: usize,
    shutdown: impl Future<Output = ()> + Send,
    mut each: impl FnMut(L::Connection, Guest) + Send,
) -> io::Result<()> {
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
            match std::task::ready!(listener.poll_accept(cx)) {
                Ok(connection) => {
                    failures = 0;
                    each(connection, house.admit());
                }
                Err(error) => {
                    failures += 1;
                    if failures == MOST_FAILURES {
                        return Poll::Ready(Err(error));
                    }
                    pause = Some(runtime.timer(runtime.now() + PAUSE));
                }
            }
        }
    })
    .await
}

/// All connections of one socket, from the side of the one who accepts them.
#[derive(Default)]
pub(crate) struct House(Arc<Mutex<Rooms>>);

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
pub(crate) enum Phase {
    #[default]
    Open,
    /// Finish what is accepted.
    Ending,
    /// Stop now.
    Gone,
}

pub(crate) struct Guest {
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

    pub(crate) fn end(&self, phase: Phase) {
        let guests = lock(&self.0).guests.clone();
        for room in guests {
            let mut room = lock(&room);
            room.phase = phase;
            let waker = room.waker.take();
            drop(room);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    pub(crate) fn poll_fewer_than(&self, cx: &mut Context<'_>, most: usize) -> Poll<()> {
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
    /// Runs the connection to its end, or until it is to stop. What it is given completes once it is to
    /// finish.
    pub(crate) async fn run<F: Future>(self, connection: impl FnOnce(Ending) -> F) {
        let mut connection = pin!(connection(Ending(Arc::clone(&self.room))));
        poll_fn(|cx| {
            if poll_phase(&self.room, cx, Phase::Gone).is_ready() {
                return Poll::Ready(());
            }
            // An error of one connection is that connection's.
            connection.as_mut().poll(cx).map(|_| ())
        })
        .await;
    }
}

/// Completes when a connection is to finish what it has accepted. To be polled by the task of [`Guest::run`].
pub(crate) struct Ending(Arc<Mutex<Room>>);

impl Future for Ending {
    type Output = ();

    fn poll(self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        poll_phase(&self.0, cx, Phase::Ending)
    }
}

fn poll_phase(room: &Mutex<Room>, cx: &mut Context<'_>, phase: Phase) -> Poll<()> {
    let mut room = lock(room);
    if room.phase >= phase {
        return Poll::Ready(());
    }
    match &mut room.waker {
        Some(waker) => waker.clone_from(cx.waker()),
        none => *none = Some(cx.waker().clone()),
    }
    Poll::Pending
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
