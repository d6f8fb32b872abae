//! A thread that looks again and again until something holds.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How long to wait between two looks: at first, and at most.
const FIRST: Duration = Duration::from_millis(2);
const MOST: Duration = Duration::from_millis(100);

/// Rings once. The thread ends then, or soon after this is dropped.
pub(super) struct Bell(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    rung: bool,
    waker: Option<Waker>,
}

impl Bell {
    pub(super) fn new(is_over: impl FnMut() -> bool + Send + 'static) -> io::Result<Self> {
        let state = Arc::<Mutex<State>>::default();
        let at = Arc::downgrade(&state);
        std::thread::Builder::new().name("mcp-child".into()).spawn(move || look(is_over, &at))?;
        Ok(Self(state))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        if state.rung {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

fn look(mut is_over: impl FnMut() -> bool, at: &Weak<Mutex<State>>) {
    let mut pause = FIRST;
    while at.strong_count() > 0 {
        if is_over() {
            let Some(state) = at.upgrade() else { return };
            let mut state = lock(&state);
            state.rung = true;
            let waker = state.waker.take();
            drop(state);
            waker.into_iter().for_each(Waker::wake);
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(MOST);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct Told(mpsc::Sender<()>);

    impl std::task::Wake for Told {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }

    #[test]
    fn it_rings_once_that_holds_and_its_thread_ends() {
        let (tell, told) = mpsc::channel();
        let waker = Waker::from(Arc::new(Told(tell)));
        let (say, said) = mpsc::channel();
        let is_over = move || said.recv().unwrap_or(true);
        let mut bell = Bell::new(is_over).unwrap();
        assert!(bell.poll(&mut Context::from_waker(&waker)).is_pending());
        say.send(false).unwrap();
        say.send(true).unwrap();
        told.recv().unwrap();
        assert!(bell.poll(&mut Context::from_waker(Waker::noop())).is_ready());

        let (tell, told) = mpsc::channel::<()>();
        let never = move || {
            let _ = &tell;
            false
        };
        drop(Bell::new(never).unwrap());
        // What the thread holds is dropped with it.
        assert!(told.recv().is_err());
    }
}
