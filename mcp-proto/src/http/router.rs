//! Where the messages of a legacy session go: from the machine, which notes whose they are, to its streams.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::streams::{Pushed, Reader, StreamId, Streams};
use crate::limits::Limits;
use crate::model::ProtocolVersion;
use crate::server::channel::sealed::Sealed as _;
use crate::server::route::{Mark, TaskMark};
use crate::server::{Connection, RequestKey};

/// Bytes that a silent session may keep for what it will write.
const MOST_SPARE: usize = 256;

/// The streams of a session, and what belongs on which of them.
///
/// Most messages name their stream, or belong to no request and go to the GET stream. Two kinds need care:
///
/// * A client that takes no events cannot hear what precedes its answer on the POST: that goes to the GET
///   stream instead.
/// * What belongs to a 2025-11-25 task belongs to no request, but many clients have no GET stream and wait
///   for the task with `tasks/result`: without the former it goes there. A question waits for one of both.
#[derive(Debug)]
pub(crate) struct Router {
    pub(crate) streams: Streams,
    /// POSTs whose client takes no events.
    plain: Vec<StreamId>,
    /// Streams of `tasks/result` requests that wait, with their tasks.
    results: Vec<(Box<str>, StreamId)>,
    /// Questions of tasks that nobody can hear yet. As many as may be open at once, at most.
    held: VecDeque<(Box<str>, Box<[u8]>)>,
    most_held: usize,
    readers: usize,
    /// Streams whose response is to end, though more will come.
    let_go: Vec<StreamId>,
    closing: bool,
    ended: bool,
}

impl Router {
    pub(crate) fn new(version: ProtocolVersion, limits: &Limits) -> Self {
        Self {
            streams: Streams::new(version, limits),
            plain: Vec::new(),
            results: Vec::new(),
            held: VecDeque::new(),
            most_held: limits.max_client_requests,
            readers: 0,
            let_go: Vec::new(),
            closing: false,
            ended: false,
        }
    }

    /// Moves what the machine wrote into the streams. `woken` hears which have something to write, or are
    /// over.
    pub(crate) fn settle(
        &mut self,
        connection: &mut Connection,
        lines: &mut Vec<u8>,
        mut woken: impl FnMut(StreamId),
    ) {
        // What changed waits as a mark until someone can hear of it.
        if self.streams.get_pending() == Some(0) {
            connection.flush_subscriptions(lines);
        }
        connection.drain(lines, |text, mark| {
            if let Some(stream) = self.route(text, &mark) {
                woken(stream);
            }
        });
        // A session may be silent for long after one large message.
        if lines.capacity() > MOST_SPARE {
            *lines = Vec::new();
        }
    }

    /// A POST came. `events`: its client takes them.
    pub(crate) fn open_post(&mut self, events: bool) -> Reader {
        let (stream, reader) = self.streams.open_post();
        if !events {
            self.plain.push(stream);
        }
        self.readers += 1;
        reader
    }

    /// The GET stream, if nobody reads it.
    pub(crate) fn open_get(&mut self) -> Option<Reader> {
        let reader = self.streams.open_get().ok()?;
        self.readers += 1;
        for (_, question) in core::mem::take(&mut self.held) {
            self.streams.push(None, &question, false);
        }
        Some(reader)
    }

    /// A stream that goes on after an event. `None` if it cannot.
    pub(crate) fn resume(&mut self, last_event_id: &str) -> Option<Reader> {
        let reader = self.streams.resume(last_event_id).ok()?;
        self.readers += 1;
        Some(reader)
    }

    /// The response of a reader is over.
    pub(crate) fn closed(&mut self, reader: Reader) {
        self.readers = self.readers.saturating_sub(1);
        for streams in [&mut self.plain, &mut self.let_go] {
            streams.retain(|stream| *stream != reader.stream());
        }
        self.streams.detach(reader);
    }

    pub(crate) const fn has_readers(&self) -> bool {
        self.readers > 0
    }

    /// A `tasks/result` request waits on a stream. Whether something is to be written there now.
    pub(crate) fn await_task(&mut self, task: &str, stream: StreamId) -> bool {
        if self.plain.contains(&stream) {
            return false;
        }
        self.results.push((task.into(), stream));
        let (mine, others) =
            core::mem::take(&mut self.held).into_iter().partition::<VecDeque<_>, _>(|(of, _)| **of == *task);
        self.held = others;
        for (_, question) in &mine {
            self.streams.push(Some(stream), question, false);
        }
        !mine.is_empty()
    }

    /// The response of a request is to end before the answer: the client comes back for it. The stream, if
    /// the revision has such a thing and somebody reads it.
    pub(crate) fn let_go(&mut self, connection: &Connection, request: RequestKey) -> Option<StreamId> {
        let slot = connection.slot(request)?;
        let stream = StreamId::from_number(slot.stream);
        let can = slot.version.has_priming_events() && self.streams.has_reader(stream);
        if !can || self.plain.contains(&stream) {
            return None;
        }
        if !self.let_go.contains(&stream) {
            self.let_go.push(stream);
        }
        Some(stream)
    }

    /// Whether the response of this reader is to end.
    pub(crate) fn is_let_go(&self, reader: &Reader) -> bool {
        self.let_go.contains(&reader.stream())
    }

    pub(crate) const fn is_ended(&self) -> bool {
        self.ended
    }

    pub(crate) const fn is_closing(&self) -> bool {
        self.closing
    }

    /// The session is over: every stream ends.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        self.held.clear();
    }

    /// The GET stream ends once it is written.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// Bytes that the reader of a request's messages has yet to be given.
    pub(crate) fn backlog(&self, connection: &Connection, request: RequestKey) -> usize {
        let Some(slot) = connection.slot(request) else { return 0 };
        let stream = StreamId::from_number(slot.stream);
        if self.plain.contains(&stream) {
            self.streams.get_pending().unwrap_or(0)
        } else {
            self.streams.pending_of(stream)
        }
    }

    fn route(&mut self, text: &[u8], mark: &Mark) -> Option<StreamId> {
        let own = mark.stream.map(StreamId::from_number);
        if let (Some(stream), true) = (own, mark.end.is_some()) {
            self.results.retain(|(_, at)| *at != stream);
        }
        let to = match (own, &mark.task) {
            (Some(stream), _) if text.is_empty() => {
                self.streams.end(stream);
                return Some(stream);
            }
            (Some(stream), _) if mark.end.is_none() && self.plain.contains(&stream) => None,
            (None, Some(task)) if self.streams.get_pending().is_none() => match self.awaits(task) {
                None if task.question => {
                    self.hold(task, text);
                    return None;
                }
                found => found,
            },
            (own, _) => own,
        };
        match self.streams.push(to, text, mark.end.is_some()) {
            Pushed::Ready(stream) => Some(stream),
            Pushed::Kept | Pushed::Dropped => None,
        }
    }

    /// The stream on which a client waits for a task and listens.
    fn awaits(&self, task: &TaskMark) -> Option<StreamId> {
        let mut waiting = self.results.iter().filter(|(id, _)| *id == task.id).map(|(_, stream)| *stream);
        waiting.find(|stream| self.streams.has_reader(*stream))
    }

    fn hold(&mut self, task: &TaskMark, text: &[u8]) {
        // The oldest has timed out.
        if self.held.len() >= self.most_held {
            self.held.pop_front();
        }
        self.held.push_back((task.id.clone(), text.into()));
    }
}
