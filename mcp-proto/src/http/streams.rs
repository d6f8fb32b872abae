//! The event streams of one legacy session, and what it takes to resume them.
//! [spec: 2025-11-25 basic/transports#resumability-and-redelivery]
//!
//! A *stream* is a sequence of messages: one for each POST with requests, which ends with its last answer,
//! and one for what has nothing to do with any request, which a GET opens. A response that writes a stream
//! is its *reader*, at most one at a time. A stream outlives its readers: a disconnect cancels nothing.
//!
//! | Message | Goes to |
//! |---|---|
//! | answer to a request | the stream of the POST that brought it (LS-HTTP-06), never the GET stream (LS-HTTP-12) |
//! | notification or request of the server that belongs to a request | the same stream, before the answer (LS-HTTP-08) |
//! | anything else | the GET stream (LS-HTTP-11); kept for the next one while there is none |
//! | anything of a POST whose stream ended or is lost | nowhere: [`Pushed::Dropped`] |
//!
//! So a message is on one stream only (LS-HTTP-14, LS-HTTP-15). The id of an event names its stream and
//! its position there (LS-HTTP-16, LS-HTTP-17): `3-17` is message 17 of stream 3, `3-0` the priming event
//! before message 1, and `3-17-2` the priming event of reader 2, which goes on after message 17. Ids carry
//! no mark of the session: whoever asks has shown the session's id, and sees only what is that session's.
//!
//! An id from which not every later message of its stream can be sent is [`Unknown`]. Answer it with 400:
//! 404 would tell the client that the session is gone, and it would begin a new one.
//!
//! What is kept for resumption is bounded by [`Limits::event_log_bytes`] and
//! [`Limits::event_log_events`]. When it is too much, this goes, the oldest first in each case:
//!
//! 1. streams that ended and were sent completely;
//! 2. events that were sent;
//! 3. messages that were not sent, of streams without a reader. A POST stream that misses one is of no use
//!    any more and goes as a whole. The GET stream loses its past: what is left goes to the next GET.
//!
//! What a reader has yet to be sent is not touched by that. [`Streams::pending`] tells the driver when to
//! slow down. If it does not, a reader with more than [`Limits::output_high_water`] (GET) or also
//! [`Limits::max_message`] (POST) waiting is cut off by the next message: it is stale then.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::codec::sse::{write_event, write_retry};
use crate::limits::Limits;
use crate::model::version::ProtocolVersion;

/// A stream. Never used again within its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamId(u64);

impl StreamId {
    /// The stream of that number.
    pub(crate) const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

/// The response that writes a stream. It is stale once another one took over, or the stream is gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    stream: StreamId,
    number: u64,
}

impl Reader {
    /// The stream that is read.
    pub(crate) const fn stream(&self) -> StreamId {
        self.stream
    }

    /// How many read the stream before.
    #[cfg(feature = "service")]
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The reader of this stream has something to write.
    Ready(StreamId),
    /// Nobody reads the stream now. It is kept, within the bounds.
    Kept,
    /// Its stream has ended, or can never be read to its end. No one will see the message.
    Dropped,
}

/// How far a reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All there is was written; more may come.
    Pending,
    /// There was no room for everything.
    More,
    /// All was written, and no more comes. The response ends; the reader is no longer attached.
    Finished,
    /// This is not the stream's reader any more. The response ends.
    Stale,
}

/// There is a GET stream with a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AlreadyOpen;

/// The id was never sent in this session, or what followed it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unknown;

/// The streams of one session. Takes no memory of its own while there are none.
#[derive(Debug)]
pub(crate) struct Streams {
    version: ProtocolVersion,
    bounds: Bounds,
    next: u64,
    table: Option<Box<Table>>,
}

impl Streams {
    /// Of a session that speaks `version`.
    pub(crate) fn new(version: ProtocolVersion, limits: &Limits) -> Self {
        let bounds = Bounds {
            bytes: limits.event_log_bytes,
            events: limits.event_log_events,
            get_pending: limits.output_high_water,
            post_pending: limits.output_high_water.max(limits.max_message),
        };
        Self { version, bounds, next: 0, table: None }
    }

    /// A POST with requests came.
    pub(crate) fn open_post(&mut self) -> (StreamId, Reader) {
        let id = self.new_id();
        let mut stream = Stream::new(Kind::Post);
        let reader = stream.attach(id, 0);
        self.change(|table, _, _| table.insert(id, stream));
        (id, reader)
    }

    /// A GET without `Last-Event-ID` came. What the stream before it was not sent is sent on this one.
    ///
    /// # Errors
    ///
    /// [`AlreadyOpen`] while another response reads the GET stream.
    pub(crate) fn open_get(&mut self) -> Result<Reader, AlreadyOpen> {
        let current = self.table.as_ref().and_then(|table| table.get);
        let detached = match current {
            Some(id) if self.stream(id).is_some_and(|stream| stream.attached.is_some()) => {
                return Err(AlreadyOpen);
            }
            current => current,
        };
        let id = self.new_id();
        Ok(self.change(|table, _, _| {
            let mut stream = Stream::new(Kind::Get);
            if let Some(mut old) = detached.and_then(|id| table.remove(id)) {
                stream = old.split_unsent();
                // What was sent on it can still be sent again, but it gets no more.
                if let (Some(id), true) = (detached, old.exposed) {
                    old.ended = true;
                    table.insert(id, old);
                }
            }
            let reader = stream.attach(id, 0);
            table.get = Some(id);
            table.insert(id, stream);
            reader
        }))
    }

    /// A message for the stream of a POST, or, with `None`, one that belongs to no request. `message` is
    /// one JSON text. With `last`, a POST stream ends after it.
    pub(crate) fn push(&mut self, to: Option<StreamId>, message: &[u8], last: bool) -> Pushed {
        self.change(|table, bounds, next| {
            let Some(id) = to.or(table.get).or_else(|| table.open_waiting(bounds, next, message)) else {
                return Pushed::Dropped;
            };
            if table.streams.get(&id).is_some_and(|stream| stream.is_stuck(bounds)) {
                table.detach(id);
            }
            let Some(stream) = table.streams.get(&id).filter(|stream| !stream.ended) else {
                return Pushed::Dropped;
            };
            // Rather than make room that cannot suffice.
            if stream.attached.is_none() && !bounds.can_keep(message) {
                table.lose(id, next, 0);
                return Pushed::Dropped;
            }
            table.age += 1;
            let age = table.age;
            table.edit(id, |stream| stream.push(Event { age, data: message.into() }, last));
            // The message itself may have to go, and the GET stream may be another one then.
            table.evict(bounds, next);
            let id = if to.is_some() { Some(id) } else { table.get };
            match id.and_then(|id| Some((id, table.streams.get(&id)?))) {
                Some((id, stream)) if stream.attached.is_some() => Pushed::Ready(id),
                Some((_, stream)) if stream.events.back().is_some_and(|event| event.age == age) => {
                    Pushed::Kept
                }
                _ => Pushed::Dropped,
            }
        })
    }

    /// The stream ends without a last message: its request was cancelled.
    pub(crate) fn end(&mut self, stream: StreamId) {
        self.change(|table, _, _| table.edit(stream, |stream| stream.ended |= stream.kind == Kind::Post));
    }

    /// Whether the POST may yet be answered with one JSON text: nothing was written, and there is no
    /// message yet, or one that is the last. To begin with events, call [`prime`](Self::prime) or
    /// [`write`](Self::write).
    pub(crate) fn is_undecided(&self, reader: &Reader) -> bool {
        self.attached(reader).is_some_and(|stream| {
            let open =
                if stream.answered { stream.events.len() == 1 } else { stream.last() == 0 && !stream.ended };
            stream.kind == Kind::Post && !stream.exposed && open
        })
    }

    /// The answer to a POST, if it is the only message and nothing was written. The stream is gone then.
    pub(crate) fn take_single(&mut self, reader: &Reader) -> Option<Vec<u8>> {
        if !self.is_undecided(reader) || self.stream(reader.stream)?.events.is_empty() {
            return None;
        }
        let stream = self.change(|table, _, _| table.remove(reader.stream))?;
        stream.events.into_iter().next().map(|event| event.data.into_vec())
    }

    /// The last message of a POST that has ended, for a client that takes nothing else. The stream is gone
    /// then.
    pub(crate) fn take_last(&mut self, reader: &Reader) -> Option<Vec<u8>> {
        self.attached(reader).filter(|stream| stream.ended)?;
        let stream = self.change(|table, _, _| table.remove(reader.stream))?;
        stream.events.into_iter().next_back().map(|event| event.data.into_vec())
    }

    /// Whether no more comes for this reader, apart from what waits for it.
    pub(crate) fn is_over(&self, reader: &Reader) -> bool {
        self.attached(reader).is_none_or(|stream| stream.ended)
    }

    /// Bytes that wait for the reader of what belongs to no request, if there is one.
    pub(crate) fn get_pending(&self) -> Option<usize> {
        let get = self.table.as_ref().and_then(|table| table.get);
        get.and_then(|id| self.stream(id)?.attached.as_ref()).map(|attached| attached.pending)
    }

    /// Whether this reader reads what belongs to no request.
    pub(crate) fn is_get(&self, reader: &Reader) -> bool {
        self.table.as_ref().is_some_and(|table| table.get == Some(reader.stream))
            && self.attached(reader).is_some()
    }

    /// Whether a response reads this stream.
    pub(crate) fn has_reader(&self, stream: StreamId) -> bool {
        self.stream(stream).is_some_and(|stream| stream.attached.is_some())
    }

    /// Bytes that wait for the reader of a stream, if it has one.
    pub(crate) fn pending_of(&self, stream: StreamId) -> usize {
        let attached = self.stream(stream).and_then(|stream| stream.attached.as_ref());
        attached.map_or(0, |attached| attached.pending)
    }

    /// Bytes that wait for this reader, to hold against [`Limits::output_high_water`].
    pub(crate) fn pending(&self, reader: &Reader) -> usize {
        let attached = self.attached(reader).and_then(|stream| stream.attached.as_ref());
        attached.map_or(0, |attached| attached.pending)
    }

    /// Appends the priming event, and with it how long a client should wait before it comes back, if the
    /// revision has it (LS-HTTP-04, LS-HTTP-05). To be called before the first [`write`](Self::write).
    pub(crate) fn prime(&mut self, reader: &Reader, retry: Option<Duration>, out: &mut Vec<u8>) {
        if !self.version.has_priming_events() || self.attached(reader).is_none() {
            return;
        }
        self.change(|table, _, _| {
            table.edit(reader.stream, |stream| {
                let Some(attached) = &mut stream.attached else { return };
                if core::mem::replace(&mut attached.begun, true) {
                    return;
                }
                if let Some(wait) = retry {
                    write_retry(out, wait);
                    // One event with what follows.
                    out.pop();
                }
                let mark = (attached.number > 0).then_some(attached.number);
                stream.exposed = true;
                stream.primed |= mark.is_none();
                let id = EventId { stream: reader.stream, position: attached.cursor, mark };
                id.write_event(b"", out);
            });
        });
    }

    /// Appends events that this reader was not given, at least one if there is one, else as many as fit
    /// into `room` bytes.
    pub(crate) fn write(&mut self, reader: &Reader, room: usize, out: &mut Vec<u8>) -> Progress {
        if self.attached(reader).is_none() {
            return Progress::Stale;
        }
        self.change(|table, bounds, _| {
            let progress = table.edit(reader.stream, |stream| stream.write(reader.stream, room, bounds, out));
            if progress == Some(Progress::Finished) {
                table.detach(reader.stream);
            }
            progress.unwrap_or(Progress::Stale)
        })
    }

    /// The response is over, by accident or on purpose. What follows is kept for resumption, if the
    /// client has an id to resume from.
    #[allow(clippy::needless_pass_by_value)] // it is used up
    pub(crate) fn detach(&mut self, reader: Reader) {
        if self.attached(&reader).is_none() {
            return;
        }
        self.change(|table, _, _| table.detach(reader.stream));
    }

    /// A GET with `Last-Event-ID` came: its response reads the stream of that event from there on, and is
    /// the only one that does (LS-HTTP-18). The stream may have ended meanwhile.
    ///
    /// # Errors
    ///
    /// [`Unknown`]: the id was never sent, or not all that follows it is there any more.
    pub(crate) fn resume(&mut self, last_event_id: &str) -> Result<Reader, Unknown> {
        let event = EventId::parse(last_event_id).ok_or(Unknown)?;
        let id = event.stream;
        if !self.stream(id).is_some_and(|stream| stream.can_resume(&event)) {
            return Err(Unknown);
        }
        self.change(|table, _, _| table.edit(id, |stream| stream.attach(id, event.position))).ok_or(Unknown)
    }

    /// Bytes held for all streams, a fixed cost for each event and stream included.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.sums.bytes + table.sums.owed)
    }

    fn new_id(&mut self) -> StreamId {
        fresh(&mut self.next)
    }

    fn stream(&self, id: StreamId) -> Option<&Stream> {
        self.table.as_ref()?.streams.get(&id).map(|stream| &**stream)
    }

    fn attached(&self, reader: &Reader) -> Option<&Stream> {
        self.stream(reader.stream).filter(|stream| {
            stream.attached.as_ref().is_some_and(|attached| attached.number == reader.number)
        })
    }

    /// All that changes the table goes through here, so that the bounds hold and an empty one is let go.
    fn change<T>(&mut self, change: impl FnOnce(&mut Table, &Bounds, &mut u64) -> T) -> T {
        let table = self.table.get_or_insert_default();
        let done = change(table, &self.bounds, &mut self.next);
        table.evict(&self.bounds, &mut self.next);
        if table.streams.is_empty() {
            self.table = None;
        }
        done
    }
}

/// A stream id that was never used.
fn fresh(next: &mut u64) -> StreamId {
    let id = StreamId(*next);
    *next += 1;
    id
}

#[derive(Debug, Clone, Copy)]
struct Bounds {
    bytes: usize,
    events: usize,
    get_pending: usize,
    post_pending: usize,
}

impl Bounds {
    const fn can_keep(&self, message: &[u8]) -> bool {
        cost(message) <= self.bytes
    }
}

/// What is held apart from the bytes of a message: its entry, and what an allocation costs.
const EVENT_COST: usize = size_of::<Event>() + 24;
const STREAM_COST: usize = size_of::<Stream>() + 64;

const fn cost(message: &[u8]) -> usize {
    message.len() + EVENT_COST
}

#[derive(Debug, Default)]
struct Table {
    streams: BTreeMap<StreamId, Box<Stream>>,
    /// The stream that takes what belongs to no request. It may never have had a reader.
    get: Option<StreamId>,
    sums: Sums,
    /// Of the youngest event.
    age: u64,
}

/// What follows from the streams.
#[derive(Debug, Default)]
struct Sums {
    /// What can go when room is needed, in this order: one entry for each stream that has any.
    victims: BTreeSet<(Class, u64, StreamId)>,
    /// Bytes held, without what a reader has yet to be given.
    bytes: usize,
    /// Events held, without what a reader has yet to be given.
    events: usize,
    /// Bytes that readers have yet to be given.
    owed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Done,
    Sent,
    Unsent,
}

impl Sums {
    fn add(&mut self, share: &Share) {
        self.bytes += share.bytes;
        self.events += share.events;
        self.owed += share.owed;
    }

    fn sub(&mut self, share: &Share) {
        self.bytes -= share.bytes;
        self.events -= share.events;
        self.owed -= share.owed;
    }

    /// What a stream adds to the sums changes from `old` to `new`.
    fn replace(&mut self, id: StreamId, old: &Share, new: &Share) {
        self.add(new);
        self.sub(old);
        if old.victim != new.victim {
            if let Some((class, age)) = old.victim {
                self.victims.remove(&(class, age, id));
            }
            if let Some((class, age)) = new.victim {
                self.victims.insert((class, age, id));
            }
        }
    }
}

/// What one stream adds to the sums.
#[derive(Debug, Default)]
struct Share {
    bytes: usize,
    events: usize,
    owed: usize,
    victim: Option<(Class, u64)>,
}

impl Table {
    fn insert(&mut self, id: StreamId, stream: Stream) {
        self.sums.replace(id, &Share::default(), &stream.share());
        self.streams.insert(id, Box::new(stream));
    }

    fn remove(&mut self, id: StreamId) -> Option<Stream> {
        let stream = *self.streams.remove(&id)?;
        self.sums.replace(id, &stream.share(), &Share::default());
        if self.get == Some(id) {
            self.get = None;
        }
        Some(stream)
    }

    fn edit<T>(&mut self, id: StreamId, edit: impl FnOnce(&mut Stream) -> T) -> Option<T> {
        let stream = self.streams.get_mut(&id)?;
        let old = stream.share();
        let done = edit(stream);
        self.sums.replace(id, &old, &stream.share());
        Some(done)
    }

    /// A GET stream that waits for its first reader, if `message` can be kept.
    fn open_waiting(&mut self, bounds: &Bounds, next: &mut u64, message: &[u8]) -> Option<StreamId> {
        if !bounds.can_keep(message) {
            return None;
        }
        let id = fresh(next);
        self.get = Some(id);
        self.insert(id, Stream::new(Kind::Get));
        Some(id)
    }

    /// Nobody reads the stream now. One that nobody can resume is of no use, except that what belongs to
    /// no request goes to the next GET.
    fn detach(&mut self, id: StreamId) {
        self.edit(id, |stream| stream.attached = None);
        let Some(stream) = self.streams.get(&id) else { return };
        let wanted = stream.exposed || (stream.kind == Kind::Get && !stream.events.is_empty());
        if !wanted {
            self.remove(id);
        }
    }

    /// A stream without a reader loses `count` of its oldest unsent messages, and one that could not even
    /// be stored. What was sent is of no use then.
    fn lose(&mut self, id: StreamId, next: &mut u64, count: usize) {
        let Some(stream) = self.streams.get(&id) else { return };
        if stream.kind == Kind::Get && self.get == Some(id) && stream.exposed {
            let Some(mut old) = self.remove(id) else { return };
            let id = fresh(next);
            self.get = Some(id);
            self.insert(id, old.split_unsent());
            self.lose(id, next, count);
        } else if stream.kind == Kind::Get && stream.events.len() > count {
            self.edit(id, |stream| (0..count).for_each(|_| stream.pop_first()));
        } else {
            self.remove(id);
        }
    }

    /// Makes room.
    fn evict(&mut self, bounds: &Bounds, next: &mut u64) {
        while self.sums.bytes > bounds.bytes || self.sums.events > bounds.events {
            let Some((class, _, id)) = self.sums.victims.first().copied() else { return };
            match class {
                Class::Done => {
                    self.remove(id);
                }
                Class::Sent => {
                    self.edit(id, Stream::forget_first);
                }
                Class::Unsent => self.lose(id, next, 1),
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Post,
    Get,
}

#[derive(Debug)]
struct Event {
    /// Greater than that of any event that came before, on whatever stream.
    age: u64,
    data: Box<[u8]>,
}

#[derive(Debug)]
struct Stream {
    kind: Kind,
    /// No message follows the ones that are here.
    ended: bool,
    /// The last message is the last answer to the requests of the POST.
    answered: bool,
    /// A client may know an id of it.
    exposed: bool,
    /// The id of position 0 was sent.
    primed: bool,
    /// How often it was attached.
    readers: u64,
    attached: Option<Attached>,
    /// Messages before `events`, all of which were sent. Positions count from 1.
    forgotten: u64,
    /// The last position that was ever given to a reader.
    sent: u64,
    events: VecDeque<Event>,
    /// What `events` cost together.
    bytes: usize,
}

#[derive(Debug)]
struct Attached {
    number: u64,
    /// The last position that this reader was given, or has from an earlier one.
    cursor: u64,
    /// What the events behind the cursor cost.
    pending: usize,
    /// Something was written.
    begun: bool,
}

impl Stream {
    const fn new(kind: Kind) -> Self {
        Self {
            kind,
            ended: false,
            answered: false,
            exposed: false,
            primed: false,
            readers: 0,
            attached: None,
            forgotten: 0,
            sent: 0,
            events: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The position of the last message.
    fn last(&self) -> u64 {
        self.forgotten + self.events.len() as u64
    }

    fn share(&self) -> Share {
        let first = self.events.front().map_or(0, |event| event.age);
        let (given, pending) = match &self.attached {
            Some(attached) => (attached.cursor, attached.pending),
            None => (self.sent, 0),
        };
        let class = if self.attached.is_none() && self.ended && given == self.last() {
            Some(Class::Done)
        } else if given > self.forgotten {
            Some(Class::Sent)
        } else if self.attached.is_none() && !self.events.is_empty() {
            Some(Class::Unsent)
        } else {
            None
        };
        let counted = if self.attached.is_some() { given } else { self.last() };
        Share {
            bytes: STREAM_COST + self.bytes - pending,
            events: self.index(counted),
            owed: pending,
            victim: class.map(|class| (class, first)),
        }
    }

    /// Where the message after `position` is among `events`.
    fn index(&self, position: u64) -> usize {
        // No more than there are events.
        usize::try_from(position - self.forgotten).unwrap_or(usize::MAX)
    }

    /// The reader does not keep up, and nobody waited for it.
    fn is_stuck(&self, bounds: &Bounds) -> bool {
        let most = match self.kind {
            Kind::Get => bounds.get_pending,
            Kind::Post => bounds.post_pending,
        };
        self.attached.as_ref().is_some_and(|attached| attached.pending > most)
    }

    fn attach(&mut self, id: StreamId, cursor: u64) -> Reader {
        let number = self.readers;
        self.readers += 1;
        let pending = self.events.range(self.index(cursor)..).map(|event| cost(&event.data)).sum();
        self.attached = Some(Attached { number, cursor, pending, begun: false });
        Reader { stream: id, number }
    }

    fn push(&mut self, event: Event, last: bool) {
        let cost = cost(&event.data);
        self.bytes += cost;
        if let Some(attached) = &mut self.attached {
            attached.pending += cost;
        }
        self.answered = last && self.kind == Kind::Post;
        self.ended |= self.answered;
        self.events.push_back(event);
    }

    fn write(&mut self, id: StreamId, room: usize, bounds: &Bounds, out: &mut Vec<u8>) -> Progress {
        /// An event without id and data, about.
        const FRAME: usize = 32;
        let last = self.last();
        let first = self.attached.as_ref().map_or(last, |attached| self.index(attached.cursor) as u64);
        let Some(attached) = &mut self.attached else { return Progress::Stale };
        let start = out.len();
        let mut too_large = None;
        for event in self.events.range(usize::try_from(first).unwrap_or(usize::MAX)..) {
            let used = out.len() - start;
            if used > 0 && used + event.data.len() + FRAME > room {
                break;
            }
            attached.cursor += 1;
            attached.begun = true;
            attached.pending -= cost(&event.data);
            EventId { stream: id, position: attached.cursor, mark: None }.write_event(&event.data, out);
            if !bounds.can_keep(&event.data) {
                too_large = Some(attached.cursor);
            }
        }
        let cursor = attached.cursor;
        self.exposed |= out.len() > start;
        self.sent = self.sent.max(cursor);
        // It would take the place of all others, and then go itself.
        while too_large.is_some_and(|position| self.forgotten < position) {
            self.forget_first();
        }
        match (cursor == last, self.ended) {
            (false, _) => Progress::More,
            (true, false) => Progress::Pending,
            (true, true) => Progress::Finished,
        }
    }

    fn can_resume(&self, event: &EventId) -> bool {
        let sent = match event.mark {
            None if event.position == 0 => self.primed,
            None => true,
            Some(mark) => mark > 0 && mark < self.readers,
        };
        sent && self.exposed && event.position <= self.sent && event.position >= self.forgotten
    }

    /// The first event was sent, and cannot be sent again.
    fn forget_first(&mut self) {
        self.forgotten += 1;
        self.pop_first();
    }

    fn pop_first(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.bytes -= cost(&event.data);
        }
        // Paid for by as many events that were taken out.
        if self.events.len() * 4 < self.events.capacity() {
            self.events.shrink_to(self.events.len() * 2);
        }
    }

    /// What was never given to a reader, as a GET stream of its own.
    fn split_unsent(&mut self) -> Self {
        let mut tail = Self::new(Kind::Get);
        tail.events = self.events.split_off(self.index(self.sent));
        tail.bytes = tail.events.iter().map(|event| cost(&event.data)).sum();
        self.bytes -= tail.bytes;
        tail
    }
}

/// The id of an event, as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EventId {
    stream: StreamId,
    position: u64,
    /// The number of the reader whose priming event it is, except for the first reader.
    mark: Option<u64>,
}

impl EventId {
    /// The one text of an id, no other of the same meaning.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-').map(number);
        let (stream, position) = (parts.next()??, parts.next()??);
        let mark = match parts.next() {
            None => None,
            Some(mark) => Some(mark?),
        };
        parts.next().is_none().then_some(Self { stream: StreamId(stream), position, mark })
    }

    fn write_event(self, data: &[u8], out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(digits.format(self.stream.0).as_bytes());
        for part in [Some(self.position), self.mark].into_iter().flatten() {
            out.push(b'-');
            out.extend_from_slice(digits.format(part).as_bytes());
        }
        out.push(b'\n');
        let written = write_event(out, None, None, data);
        debug_assert!(written.is_ok(), "only an id or a name can be refused");
    }
}

fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    // An empty text is not a number either.
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;
