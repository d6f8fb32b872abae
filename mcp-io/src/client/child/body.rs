//! The child itself, and its end whatever happens to us.

use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::system;

#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// From the end of its input to the signal that tells it to end.
    pub(super) closed: Duration,
    /// From there to the signal that ends it.
    pub(super) told: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { closed: Duration::from_secs(2), told: Duration::from_secs(2) }
    }
}

/// What was done to end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// At most its input is closed.
    Closed,
    Told,
    Killed,
}

/// A child whose status is not taken. Dropped, it is ended by a thread: no runtime may be left to do it.
pub(super) struct Body {
    child: Option<Arc<Mutex<std::process::Child>>>,
    times: Times,
    step: Step,
}

impl Body {
    pub(super) fn new(child: std::process::Child, times: Times) -> Self {
        Self { child: Some(Arc::new(Mutex::new(child))), times, step: Step::Closed }
    }

    pub(super) const fn child(&self) -> Option<&Arc<Mutex<std::process::Child>>> {
        self.child.as_ref()
    }

    pub(super) fn terminate(&mut self) {
        self.step = Step::Told;
        if let Some(child) = &self.child {
            system::terminate(&mut lock(child));
        }
    }

    pub(super) fn kill(&mut self) {
        self.step = Step::Killed;
        if let Some(child) = &self.child {
            system::kill(&mut lock(child));
        }
    }

    /// Takes the status. Whatever the child has left behind is ended before: afterwards its number may be
    /// somebody else's. `None` if it is still on its way, or if somebody else has taken it.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        if self.child.as_ref().is_some_and(|child| system::is_over(&mut lock(child))) {
            self.kill();
            let child = self.child.take()?;
            return lock(&child).wait().ok();
        }
        None
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if self.reap().is_some() {
            return;
        }
        let Some(child) = self.child.take() else { return };
        let (times, step, ours) = (self.times, self.step, Arc::clone(&child));
        let ending = std::thread::Builder::new().name("mcp-child-end".into());
        if ending.spawn(move || end(&ours, times, step)).is_err() {
            end(&child, times, Step::Told.max(step));
        }
    }
}

/// All steps from `step` on.
fn end(child: &Mutex<std::process::Child>, times: Times, step: Step) {
    if step == Step::Closed && !is_over_within(child, times.closed) {
        system::terminate(&mut lock(child));
    }
    if step <= Step::Told {
        is_over_within(child, times.told);
    }
    let mut child = lock(child);
    system::kill(&mut child);
    let _ = child.wait();
}

fn is_over_within(child: &Mutex<std::process::Child>, most: Duration) -> bool {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if system::is_over(&mut lock(child)) {
            return true;
        }
        let left = most.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

pub(super) fn lock(child: &Mutex<std::process::Child>) -> MutexGuard<'_, std::process::Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}
