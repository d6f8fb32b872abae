//! Where the messages of a legacy session go.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::task::Waker;

use crate::http::streams::{Pushed, Reader, StreamId, Streams};
use crate::limits::Limits;
use crate::model::ProtocolVersion;
use crate::server::channel::sealed::Sealed as _;
use crate::server::{Connection, RequestKey};

/// The streams of a session, and who writes them.
pub(crate) struct Streaming {
    pub(crate) streams: Streams,
    writers: Vec<(StreamId, Waker)>,
    readers: usize,
    /// Streams whose response is to end, though more will come.
    let_go: Vec<StreamId>,
    /// The GET stream is to end.
    closing: bool,
    /// The session is over: every stream ends.
    ended: bool,
}

impl Streaming {
    pub(crate) fn new(version: ProtocolVersion, limits: &Limits) -> Box<Self> {
        Box::new(Self {
            streams: Streams::new(version, limits),
            writers: Vec::new(),
            readers: 0,
            let_go: Vec::new(),
            closing: false,
            ended: false,
        })
    }

    /// Moves what the machine wrote into the streams, and wakes those who write them.
    pub(crate) fn settle(&mut self, connection: &mut Connection, out: &mut Vec<u8>) {
        // What changed waits as a mark until someone can hear of it.
        if self.streams.has_get_reader() {
            connection.flush_subscriptions(out);
        }
        let Self { streams, writers, .. } = self;
        connection.drain(out, |text, mark| {
            let stream = mark.stream.map(StreamId::from_number);
            let changed = match (stream, text.is_empty()) {
                (Some(stream), true) => {
                    streams.end(stream);
                    Some(stream)
                }
                _ => match streams.push(stream, text, mark.end.is_some()) {
                    Pushed::Ready(stream) => Some(stream),
                    Pushed::Kept | Pushed::Dropped => None,
                },
            };
            if let Some(at) = changed.and_then(|id| writers.iter().position(|(stream, _)| *stream == id)) {
                writers.swap_remove(at).1.wake();
            }
        });
    }

    /// Keeps the waker of the one who writes a stream.
    pub(crate) fn wait(&mut self, reader: &Reader, waker: &Waker) {
        match self.writers.iter_mut().find(|(stream, _)| *stream == reader.stream()) {
            Some((_, known)) => known.clone_from(waker),
            None => self.writers.push((reader.stream(), waker.clone())),
        }
    }

    pub(crate) const fn opened(&mut self) {
        self.readers += 1;
    }

    /// The response of a reader is over.
    pub(crate) fn closed(&mut self, reader: Reader) {
        self.readers = self.readers.saturating_sub(1);
        self.writers.retain(|(stream, _)| *stream != reader.stream());
        self.let_go.retain(|stream| *stream != reader.stream());
        self.streams.detach(reader);
    }

    /// The response of a request is to end before the answer: the client comes back for it. `false` if the
    /// revision has no such thing, or if nobody reads.
    pub(crate) fn let_go(&mut self, connection: &Connection, request: RequestKey) -> bool {
        let Some(slot) = connection.slot(request) else { return false };
        let stream = StreamId::from_number(slot.stream);
        let can = slot.version.has_priming_events() && self.streams.has_reader(stream);
        if can && !self.let_go.contains(&stream) {
            self.let_go.push(stream);
            if let Some(at) = self.writers.iter().position(|(id, _)| *id == stream) {
                self.writers.swap_remove(at).1.wake();
            }
        }
        can
    }

    /// Whether the response of this reader is to end. It is asked once.
    pub(crate) fn is_let_go(&mut self, reader: &Reader) -> bool {
        let at = self.let_go.iter().position(|stream| *stream == reader.stream());
        at.map(|at| self.let_go.swap_remove(at)).is_some()
    }

    pub(crate) const fn has_readers(&self) -> bool {
        self.readers > 0
    }

    pub(crate) const fn is_ended(&self) -> bool {
        self.ended
    }

    pub(crate) const fn is_closing(&self) -> bool {
        self.closing
    }

    pub(crate) fn end(&mut self) {
        self.ended = true;
        self.wake_all();
    }

    pub(crate) fn close_get(&mut self) {
        self.closing = true;
        self.wake_all();
    }

    fn wake_all(&mut self) {
        self.writers.drain(..).for_each(|(_, waker)| waker.wake());
    }

    /// Bytes that the reader of a request's stream has yet to be given.
    pub(crate) fn backlog(&self, connection: &Connection, request: RequestKey) -> usize {
        connection.slot(request).map_or(0, |slot| self.streams.pending_of(StreamId::from_number(slot.stream)))
    }
}
