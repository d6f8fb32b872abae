//! The streams of a legacy session, and who waits for them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::task::Waker;

use crate::http::router::Router;
use crate::http::streams::{Reader, StreamId};
use crate::limits::Limits;
use crate::model::ProtocolVersion;
use crate::server::{Connection, RequestKey};

/// A [`Router`], and the wakers of those who write its streams.
pub(crate) struct Streaming {
    pub(crate) router: Router,
    /// By stream and number of the reader: one that was replaced may not have noticed yet.
    writers: Vec<(StreamId, u64, Waker)>,
}

impl Streaming {
    pub(crate) fn new(version: ProtocolVersion, limits: &Limits) -> Box<Self> {
        Box::new(Self { router: Router::new(version, limits), writers: Vec::new() })
    }

    /// Moves what the machine wrote into the streams, and wakes those who write them.
    pub(crate) fn settle(&mut self, connection: &mut Connection, out: &mut Vec<u8>) {
        let Self { router, writers } = self;
        router.settle(connection, out, |stream| wake(writers, stream));
    }

    /// Keeps the waker of the one who writes a stream.
    pub(crate) fn wait(&mut self, reader: &Reader, waker: &Waker) {
        let mine = |(stream, number, _): &&mut (StreamId, u64, Waker)| {
            *stream == reader.stream() && *number == reader.number()
        };
        match self.writers.iter_mut().find(mine) {
            Some((_, _, known)) => known.clone_from(waker),
            None => self.writers.push((reader.stream(), reader.number(), waker.clone())),
        }
    }

    /// The one who writes a stream need not wait any more.
    pub(crate) fn forget(&mut self, reader: &Reader) {
        self.writers.retain(|(stream, number, _)| *stream != reader.stream() || *number != reader.number());
    }

    /// A stream has another reader: the one before must notice.
    pub(crate) fn replaced(&mut self, reader: &Reader) {
        wake(&mut self.writers, reader.stream());
    }

    /// A `tasks/result` request waits on a stream.
    pub(crate) fn await_task(&mut self, task: &str, stream: u64) {
        let stream = StreamId::from_number(stream);
        if self.router.await_task(task, stream) {
            wake(&mut self.writers, stream);
        }
    }

    /// The response of a request is to end before the answer: the client comes back for it. `false` if the
    /// revision has no such thing, or if nobody reads.
    pub(crate) fn let_go(&mut self, connection: &Connection, request: RequestKey) -> bool {
        let stream = self.router.let_go(connection, request);
        if let Some(stream) = stream {
            wake(&mut self.writers, stream);
        }
        stream.is_some()
    }

    pub(crate) fn end(&mut self) {
        self.router.end();
        self.wake_all();
    }

    pub(crate) fn close_get(&mut self) {
        self.router.close();
        self.wake_all();
    }

    fn wake_all(&mut self) {
        self.writers.drain(..).for_each(|(_, _, waker)| waker.wake());
    }
}

fn wake(writers: &mut Vec<(StreamId, u64, Waker)>, stream: StreamId) {
    let mut at = 0;
    while let Some((of, _, _)) = writers.get(at) {
        if *of == stream {
            writers.swap_remove(at).2.wake();
        } else {
            at += 1;
        }
    }
}
