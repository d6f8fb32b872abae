//! A clock that a test moves.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_io::{Runtime, Timer};
use mcp_proto::time::Instant;

use crate::rt;

/// A runtime on which time passes only when it is told to.
#[derive(Clone, Default)]
pub(super) struct ByHand(Arc<Mutex<Hands>>);

#[derive(Default)]
struct Hands {
    now: Duration,
    next: u64,
    /// Who waits, and until when.
    waiting: BTreeMap<u64, (Instant, Waker)>,
}

pub(super) struct Alarm {
    runtime: ByHand,
    number: u64,
    deadline: Instant,
}

impl ByHand {
    /// How long from now on until the first of those who wait is due.
    pub(super) fn waits(&self) -> Option<Duration> {
        let hands = self.0.lock().unwrap();
        let first = hands.waiting.values().map(|(due, _)| *due).min()?;
        Some(first.saturating_duration_since(Instant::from_origin(hands.now)))
    }

    pub(super) fn pass(&self, time: Duration) {
        let mut hands = self.0.lock().unwrap();
        hands.now += time;
        let waiting = std::mem::take(&mut hands.waiting);
        drop(hands);
        waiting.into_values().for_each(|(_, waker)| waker.wake());
    }
}

impl Runtime for ByHand {
    type Timer = Alarm;
    type Fd = <rt::Runtime as Runtime>::Fd;

    fn now(&self) -> Instant {
        Instant::from_origin(self.0.lock().unwrap().now)
    }

    fn timer(&self, deadline: Instant) -> Alarm {
        let mut hands = self.0.lock().unwrap();
        hands.next += 1;
        Alarm { runtime: self.clone(), number: hands.next, deadline }
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        rt::RUNTIME.spawn(future);
    }

    fn watch(&self, end: mcp_io::End) -> std::io::Result<Self::Fd> {
        rt::RUNTIME.watch(end)
    }
}

impl Timer for Alarm {
    fn reset(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut hands = self.runtime.0.lock().unwrap();
        if Instant::from_origin(hands.now) >= self.deadline {
            hands.waiting.remove(&self.number);
            return Poll::Ready(());
        }
        hands.waiting.insert(self.number, (self.deadline, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.runtime.0.lock().unwrap().waiting.remove(&self.number);
    }
}
