//! Streams that can only block: a thread of their own for each, so that no thread of the runtime waits
//! and the end of the runtime waits for none.

use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

const ROOM: usize = 64 << 10;

/// Reads when asked to, and no more than was asked for. A read that is under way when this is dropped
/// goes on; what it yields is lost.
pub(super) struct Reader {
    desk: Arc<Desk<ReadState>>,
}

/// Writes one piece at a time. What was taken is written, also when this is dropped.
pub(super) struct Writer {
    desk: Arc<Desk<WriteState>>,
}

/// Where the thread and the loop meet.
#[derive(Default)]
struct Desk<T> {
    state: Mutex<T>,
    changed: Condvar,
}

#[derive(Default)]
struct ReadState {
    wanted: bool,
    dropped: bool,
    bytes: Vec<u8>,
    taken: usize,
    end: Option<io::Result<()>>,
    waker: Option<Waker>,
}

#[derive(Default)]
struct WriteState {
    bytes: Vec<u8>,
    busy: bool,
    dropped: bool,
    failed: Option<io::Error>,
    waker: Option<Waker>,
}

impl<T> Desk<T> {
    fn lock(&self) -> MutexGuard<'_, T> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    pub(super) fn new(input: Box<dyn Read + Send>) -> io::Result<Self> {
        let desk = Arc::<Desk<ReadState>>::default();
        let at = Arc::clone(&desk);
        std::thread::Builder::new().name("mcp-stdin".into()).spawn(move || read_all(input, &at))?;
        Ok(Self { desk })
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.desk.lock();
        let waiting = &state.bytes[state.taken..];
        if !waiting.is_empty() {
            let some = waiting.len().min(buf.len());
            buf[..some].copy_from_slice(&waiting[..some]);
            state.taken += some;
            return Poll::Ready(Ok(some));
        }
        match &mut state.end {
            // An error is told once, then it is the end.
            Some(end) => Poll::Ready(std::mem::replace(end, Ok(())).map(|()| 0)),
            None => {
                state.waker = Some(cx.waker().clone());
                state.wanted = true;
                drop(state);
                self.desk.changed.notify_one();
                Poll::Pending
            }
        }
    }
}

fn read_all(mut input: Box<dyn Read + Send>, desk: &Desk<ReadState>) {
    let mut buf = vec![0; ROOM];
    loop {
        let mut state = desk.lock();
        while !state.wanted {
            if state.dropped {
                return;
            }
            state = desk.wait(state);
        }
        drop(state);
        let got = loop {
            match input.read(&mut buf) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                got => break got,
            }
        };
        let mut state = desk.lock();
        state.wanted = false;
        state.taken = 0;
        state.bytes.clear();
        match got {
            Ok(0) => state.end = Some(Ok(())),
            Ok(got) => state.bytes.extend_from_slice(&buf[..got]),
            Err(error) => state.end = Some(Err(error)),
        }
        let (waker, ended) = (state.waker.take(), state.end.is_some());
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        if ended {
            return;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.desk.lock().dropped = true;
        self.desk.changed.notify_one();
    }
}

impl Writer {
    pub(super) fn new(output: Box<dyn Write + Send>) -> io::Result<Self> {
        let desk = Arc::<Desk<WriteState>>::default();
        let at = Arc::clone(&desk);
        std::thread::Builder::new().name("mcp-stdout".into()).spawn(move || write_all(output, &at))?;
        Ok(Self { desk })
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = std::task::ready!(self.poll_idle(cx))?;
        let some = buf.len().min(ROOM);
        state.bytes.extend_from_slice(&buf[..some]);
        state.busy = true;
        drop(state);
        self.desk.changed.notify_one();
        Poll::Ready(Ok(some))
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_idle(cx).map_ok(|_| ())
    }

    fn poll_idle(&self, cx: &mut Context<'_>) -> Poll<io::Result<MutexGuard<'_, WriteState>>> {
        let mut state = self.desk.lock();
        if let Some(error) = &state.failed {
            return Poll::Ready(Err(io::Error::new(error.kind(), error.to_string())));
        }
        if state.busy {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(state))
    }
}

fn write_all(mut output: Box<dyn Write + Send>, desk: &Desk<WriteState>) {
    let mut bytes = Vec::new();
    loop {
        let mut state = desk.lock();
        while !state.busy {
            if state.dropped {
                return;
            }
            state = desk.wait(state);
        }
        std::mem::swap(&mut bytes, &mut state.bytes);
        drop(state);
        let result = output.write_all(&bytes).and_then(|()| output.flush());
        bytes.clear();
        let mut state = desk.lock();
        state.busy = false;
        state.failed = result.err();
        let (waker, failed) = (state.waker.take(), state.failed.is_some());
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        if failed {
            return;
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.desk.lock().dropped = true;
        self.desk.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Wake;
    use std::thread::Thread;

    use super::*;

    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn block_on<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut future = poll_fn(|cx| poll(cx));
        loop {
            match std::pin::Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return value,
                Poll::Pending => std::thread::park(),
            }
        }
    }

    #[test]
    fn the_thread_reads_to_the_end_and_no_further_than_asked() {
        let (input, mut output) = std::io::pipe().unwrap();
        let mut reader = Reader::new(Box::new(input)).unwrap();
        let mut buf = [0; 2];
        output.write_all(b"abc").unwrap();
        assert_eq!(block_on(|cx| reader.poll_read(cx, &mut buf)).unwrap(), 2);
        assert_eq!(block_on(|cx| reader.poll_read(cx, &mut buf)).unwrap(), 1);
        drop(output);
        assert_eq!(block_on(|cx| reader.poll_read(cx, &mut buf)).unwrap(), 0);
        assert_eq!(block_on(|cx| reader.poll_read(cx, &mut buf)).unwrap(), 0);
    }

    #[test]
    fn what_is_flushed_is_written_and_failure_is_told() {
        let (mut input, output) = std::io::pipe().unwrap();
        let mut writer = Writer::new(Box::new(output)).unwrap();
        assert_eq!(block_on(|cx| writer.poll_write(cx, b"abc")).unwrap(), 3);
        block_on(|cx| writer.poll_flush(cx)).unwrap();
        let mut buf = [0; 8];
        assert_eq!(input.read(&mut buf).unwrap(), 3);
        drop(input);
        let why = loop {
            if let Err(why) = block_on(|cx| writer.poll_write(cx, b"abc")) {
                break why;
            }
        };
        assert_eq!(why.kind(), io::ErrorKind::BrokenPipe);
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_failure_to_read_is_told_once_and_is_the_end() {
        let mut reader = Reader::new(Box::new(Broken)).unwrap();
        let why = block_on(|cx| reader.poll_read(cx, &mut [0])).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::StorageFull);
        assert_eq!(block_on(|cx| reader.poll_read(cx, &mut [0])).unwrap(), 0);
    }

    /// What a peer does not take lies with the caller, not here.
    #[test]
    fn one_piece_at_a_time_is_taken() {
        let (mut input, output) = std::io::pipe().unwrap();
        let mut writer = Writer::new(Box::new(output)).unwrap();
        let bytes = vec![7; 3 * ROOM];
        assert_eq!(block_on(|cx| writer.poll_write(cx, &bytes)).unwrap(), ROOM);
        // A pipe may hold one piece, so a reader is needed for the second to be taken.
        let reader = std::thread::spawn(move || input.read_to_end(&mut Vec::new()).unwrap());
        assert_eq!(block_on(|cx| writer.poll_write(cx, &bytes[ROOM..])).unwrap(), ROOM);
        block_on(|cx| writer.poll_flush(cx)).unwrap();
        drop(writer);
        assert_eq!(reader.join().unwrap(), 2 * ROOM);
    }

    #[test]
    fn what_was_taken_is_written_after_the_drop() {
        let (mut input, output) = std::io::pipe().unwrap();
        let mut writer = Writer::new(Box::new(output)).unwrap();
        assert_eq!(block_on(|cx| writer.poll_write(cx, b"abc")).unwrap(), 3);
        drop(writer);
        let mut all = Vec::new();
        input.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"abc");
    }
}
