//! A byte stream within the process, for tests and for a client that lives beside its server.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::Io;

/// Two ends of one stream; each direction holds at most `capacity` bytes (at least one) before the writer
/// has to wait. Dropping an end is the end of the stream for the other's reads, and a broken pipe for its
/// writes.
#[must_use]
pub fn pair(capacity: usize) -> (MemoryStream, MemoryStream) {
    let pipe = || Arc::new(Pipe { capacity: capacity.max(1), state: Mutex::default() });
    let (there, back) = (pipe(), pipe());
    let near = MemoryStream { input: Arc::clone(&back), output: Arc::clone(&there) };
    (near, MemoryStream { input: there, output: back })
}

/// One end of a [`pair`].
#[derive(Debug)]
pub struct MemoryStream {
    input: Arc<Pipe>,
    output: Arc<Pipe>,
}

#[derive(Debug)]
struct Pipe {
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bytes: VecDeque<u8>,
    /// No more will be written.
    ended: bool,
    /// Nobody reads any more.
    broken: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let wakers = [state.reader.take(), state.writer.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Io for MemoryStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.input.lock();
        if state.bytes.is_empty() && !state.ended {
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let got = state.bytes.read(buf);
        let writer = state.writer.take();
        drop(state);
        writer.into_iter().for_each(Waker::wake);
        Poll::Ready(got)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.output.lock();
        if state.broken || state.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = self.output.capacity - state.bytes.len();
        if room == 0 {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let written = state.bytes.write(&buf[..buf.len().min(room)]);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        Poll::Ready(written)
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.change(|state| state.ended = true);
        Poll::Ready(Ok(()))
    }
}

impl Drop for MemoryStream {
    fn drop(&mut self) {
        self.output.change(|state| state.ended = true);
        self.input.change(|state| state.broken = true);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn bytes_wait_within_the_capacity_and_ends_are_seen() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let cx = &mut Context::from_waker(&waker);
        let (mut a, mut b) = pair(4);
        let mut buf = [0; 8];
        assert!(b.poll_read(cx, &mut buf).is_pending());
        assert!(matches!(a.poll_write(cx, b"hello"), Poll::Ready(Ok(4))));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(a.poll_write(cx, b"o").is_pending());
        assert!(matches!(b.poll_read(cx, &mut buf), Poll::Ready(Ok(4))));
        assert_eq!((&buf[..4], count.0.load(Ordering::Relaxed)), (&b"hell"[..], 2));
        assert!(a.poll_close(cx).is_ready());
        assert!(matches!(b.poll_read(cx, &mut buf), Poll::Ready(Ok(0))));
        assert!(matches!(b.poll_write(cx, b"x"), Poll::Ready(Ok(1))));
        drop(a);
        assert!(
            matches!(b.poll_write(cx, b"x"), Poll::Ready(Err(e)) if e.kind() == io::ErrorKind::BrokenPipe)
        );
    }
}
