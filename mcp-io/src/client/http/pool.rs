//! The connections to one origin.
//!
//! An exchange of HTTP/1 has a connection for itself until its body has ended; HTTP/2 has room for many on one.
//! Nothing that is waited for can depend on what waits: whoever answers a question of the server may have a
//! connection more than there are otherwise, for the calls whose handlers ask hold all of those.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_proto::time::Instant;

use super::agent::Lane;
use super::connection::{Connection, Http1, Http2};
use super::queue::{Place, Queue};
use crate::{Runtime, Timer};

/// Exchanges on one connection of HTTP/2 before there is another. Servers commonly allow a hundred.
const STREAMS: usize = 96;

/// How long the connection of an exchange that is over may take to be ready for the next.
const RETURNED_WITHIN: Duration = Duration::from_millis(100);

pub(super) struct Pool<R> {
    runtime: R,
    most: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    idle: Vec<Idle>,
    shared: Vec<Http2>,
    /// Connections that are there or on their way.
    open: usize,
    /// On their way.
    dialing: usize,
    /// Soon to be ready for another exchange, most likely: worth waiting for.
    returning: usize,
    /// What the origin speaks, as soon as that is known.
    speaks: Option<Speaks>,
    waiting: Queue,
    sweeping: bool,
}

struct Idle {
    connection: Http1,
    until: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    Http1,
    Http2,
}

/// The right to have a connection. When it is dropped, somebody else may have one.
pub(super) struct Slot(Weak<Mutex<State>>);

/// The right to make one; others may have to wait for what comes of it.
pub(super) struct Dial {
    pub(super) slot: Option<Slot>,
    state: Arc<Mutex<State>>,
}

pub(super) enum Lease {
    Used(Connection),
    Dial(Dial),
}

impl<R: Runtime> Pool<R> {
    pub(super) fn new(runtime: R, most: usize, speaks: Option<Speaks>) -> Self {
        let state = State { speaks, ..State::default() };
        Self { runtime, most: most.max(1), state: Arc::new(Mutex::new(state)) }
    }

    /// A connection, or the right to make one. `fresh`: nothing that was used before.
    pub(super) fn lease(&self, lane: Lane, fresh: bool) -> impl Future<Output = Lease> + Send + use<'_, R> {
        Leasing { pool: self, lane, fresh, place: None }
    }

    /// Others may use it as well.
    pub(super) fn share(&self, connection: Http2) {
        let mut state = lock(&self.state);
        state.speaks = Some(Speaks::Http2);
        state.shared.push(connection);
    }

    pub(super) fn speaks_http1(&self) {
        lock(&self.state).speaks = Some(Speaks::Http1);
    }

    /// The exchange is over. As soon as the connection is ready for another it may be used for one, for so long.
    pub(super) fn give_back(self: &Arc<Self>, mut connection: Http1, keep: Duration) {
        if keep.is_zero() {
            return;
        }
        if connection.is_ready() {
            return self.keep(connection, keep, 0);
        }
        lock(&self.state).returning += 1;
        let pool = Arc::clone(self);
        self.runtime.spawn(async move {
            let mut timer = pool.runtime.timer(pool.runtime.now() + RETURNED_WITHIN);
            let ready = poll_fn(|cx| match connection.sender.poll_ready(cx) {
                Poll::Ready(ready) => Poll::Ready(ready.is_ok()),
                // The server has answered without reading what it was sent, and still does not.
                Poll::Pending => timer.poll(cx).map(|()| false),
            });
            match ready.await {
                true => pool.keep(connection, keep, 1),
                // Its place is free for somebody else.
                false => lock(&pool.state).returning -= 1,
            }
        });
    }

    fn keep(&self, connection: Http1, keep: Duration, returned: usize) {
        let until = self.runtime.now() + keep;
        let mut state = lock(&self.state);
        state.returning -= returned;
        state.idle.push(Idle { connection, until });
        let sweep = !std::mem::replace(&mut state.sweeping, true);
        state.waiting.wake_one();
        drop(state);
        if sweep {
            let (state, within) = (Arc::downgrade(&self.state), self.runtime.clone());
            self.runtime.spawn(async move { sweep_idle(&state, &within, until).await });
        }
    }
}

/// Closes what was not used for too long. It ends once nothing is left.
async fn sweep_idle<R: Runtime>(state: &Weak<Mutex<State>>, runtime: &R, mut next: Instant) {
    let mut timer = runtime.timer(next);
    loop {
        poll_fn(|cx| timer.poll(cx)).await;
        let Some(state) = state.upgrade() else { return };
        let now = runtime.now();
        let mut state = lock(&state);
        let (kept, over) = std::mem::take(&mut state.idle).into_iter().partition(|idle| idle.until > now);
        state.idle = kept;
        let soonest = state.idle.iter().map(|idle| idle.until).min();
        state.sweeping = soonest.is_some();
        drop(state);
        drop::<Vec<_>>(over);
        match soonest {
            Some(soonest) => next = soonest,
            None => return,
        }
        timer.reset(next);
    }
}

impl State {
    /// What is no longer of use goes to `over`, to be dropped outside of the lock.
    fn used(&mut self, now: Instant, most: usize, over: &mut Vec<Connection>) -> Option<Connection> {
        let mut at = 0;
        while at < self.shared.len() {
            match self.shared[at].is_open() {
                true => at += 1,
                false => over.push(Connection::Http2(self.shared.swap_remove(at))),
            }
        }
        let least = self.shared.iter().min_by_key(|shared| shared.active());
        if let Some(least) = least.filter(|least| least.active() < STREAMS || self.open >= most) {
            return Some(Connection::Http2(least.clone()));
        }
        while let Some(Idle { connection, until }) = self.idle.pop() {
            if until > now && connection.is_ready() {
                return Some(Connection::Http1(connection));
            }
            over.push(Connection::Http1(connection));
        }
        None
    }

    /// Whether another connection may be made for the one who waits at `place`.
    fn may_dial(&self, lane: Lane, most: usize, place: Option<Place>) -> bool {
        if self.waiting.others(place) < self.returning {
            return false;
        }
        let most = match lane {
            Lane::Call => most,
            Lane::Reply => most.saturating_mul(2),
        };
        // Unless it is known that each exchange needs one, the next may be enough for all.
        self.open < most && (self.speaks == Some(Speaks::Http1) || self.dialing == 0)
    }
}

struct Leasing<'p, R> {
    pool: &'p Pool<R>,
    lane: Lane,
    fresh: bool,
    /// It waits there, or has been woken.
    place: Option<Place>,
}

impl<R: Runtime> Future for Leasing<'_, R> {
    type Output = Lease;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Lease> {
        let Self { pool, lane, fresh, place } = &mut *self;
        let now = pool.runtime.now();
        let mut over = Vec::new();
        let mut state = lock(&pool.state);
        let used = match fresh {
            true => None,
            false => state.used(now, pool.most, &mut over),
        };
        let lease = match used {
            Some(connection) => Lease::Used(connection),
            None if state.may_dial(*lane, pool.most, *place) => {
                (state.open, state.dialing) = (state.open + 1, state.dialing + 1);
                let slot = Some(Slot(Arc::downgrade(&pool.state)));
                Lease::Dial(Dial { slot, state: Arc::clone(&pool.state) })
            }
            None => {
                match place.and_then(|place| state.waiting.waker(place)) {
                    Some(waker) => waker.clone_from(cx.waker()),
                    // Whoever was woken in vain does not have to begin anew, nor does a reply have to wait.
                    None if place.is_some() || *lane == Lane::Reply => {
                        *place = Some(state.waiting.push_front(cx.waker().clone()));
                    }
                    None => *place = Some(state.waiting.push_back(cx.waker().clone())),
                }
                return Poll::Pending;
            }
        };
        if let Some(place) = place.take() {
            state.waiting.leave(place);
        }
        drop(state);
        Poll::Ready(lease)
    }
}

impl<R> Drop for Leasing<'_, R> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut state = lock(&self.pool.state);
        // If it was woken, somebody else needs to be instead.
        if !state.waiting.leave(place) {
            state.waiting.wake_one();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(state) = self.0.upgrade() {
            let mut state = lock(&state);
            state.open -= 1;
            state.waiting.wake_one();
        }
    }
}

impl Drop for Dial {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.dialing -= 1;
        if state.speaks != Some(Speaks::Http1) || state.dialing == 0 {
            state.waiting.wake_all();
        }
        drop(state);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
