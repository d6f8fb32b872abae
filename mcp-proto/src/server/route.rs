//! Where each message belongs, on a transport on which one connection has several streams.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::codec::Wrap;

/// Writes the messages of one connection, and notes on request which stream each of them belongs to.
///
/// A byte stream has nothing to tell apart and notes nothing. A session over HTTP has a stream for each POST
/// and one for what belongs to none: there the lines in `out` and the marks here stay in step.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    on: bool,
    marks: VecDeque<Mark>,
    /// The stream whose message is being handled.
    current: u64,
}

/// What is known of the next line in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Its length with the newline. 0 if nothing was written: a request ended without an answer.
    pub(crate) len: usize,
    /// The stream; `None` = the message belongs to no request.
    pub(crate) stream: Option<u64>,
    /// Nothing more will come on this stream.
    pub(crate) end: Option<End>,
    /// The 2025-11-25 task that it belongs to instead of a request.
    pub(crate) task: Option<TaskMark>,
}

/// A message in the course of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskMark {
    pub(crate) id: Box<str>,
    /// The client has to answer it.
    pub(crate) question: bool,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(unreachable_pub, unnameable_types, clippy::exhaustive_enums)] // named by the sealed half of `Channel`
pub enum End {
    /// With a result, or with nothing.
    Done,
    /// With an error of this code that a handler gave.
    Failed(i32),
    /// With an error of this code, before any handler saw the message.
    Refused(i32),
}

impl Routes {
    /// From now on, notes where each message belongs.
    pub(crate) const fn turn_on(&mut self) {
        self.on = true;
    }

    /// Whether the transport has several streams, as HTTP has.
    pub(crate) const fn is_on(&self) -> bool {
        self.on
    }

    /// What is handled next came on this stream.
    pub(crate) const fn set_current(&mut self, stream: u64) {
        self.current = stream;
    }

    /// The stream whose message is being handled.
    pub(crate) const fn current(&self) -> u64 {
        self.current
    }

    /// Writes a message in the course of what came on `stream`, or one that belongs to nothing.
    pub(crate) fn line(&mut self, out: &mut Vec<u8>, stream: Option<u64>, write: impl FnOnce(&mut Vec<u8>)) {
        let from = out.len();
        Wrap::Line.write(out, write);
        self.note(out.len() - from, stream, None);
    }

    /// [`line`](Self::line) for a message in the course of a task, which belongs to no request any more.
    pub(crate) fn task_line(
        &mut self,
        out: &mut Vec<u8>,
        task: &str,
        question: bool,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let from = out.len();
        Wrap::Line.write(out, write);
        self.note(out.len() - from, None, None);
        self.tag(task, question);
    }

    /// What was written last belongs to a task.
    pub(crate) fn tag(&mut self, task: &str, question: bool) {
        if let Some(mark) = self.marks.back_mut() {
            mark.task = Some(TaskMark { id: task.into(), question });
        }
    }

    /// [`line`](Self::line), if `write` wants it after all.
    pub(crate) fn line_if(
        &mut self,
        out: &mut Vec<u8>,
        stream: Option<u64>,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> bool {
        let from = out.len();
        let mut wanted = false;
        Wrap::Line.write(out, |out| wanted = write(out));
        if wanted {
            self.note(out.len() - from, stream, None);
        } else {
            out.truncate(from);
        }
        wanted
    }

    /// Writes the last message of a stream; `write` says how it ends.
    pub(crate) fn last(&mut self, out: &mut Vec<u8>, stream: u64, write: impl FnOnce(&mut Vec<u8>) -> End) {
        let from = out.len();
        let mut end = End::Done;
        Wrap::Line.write(out, |out| end = write(out));
        self.note(out.len() - from, Some(stream), Some(end));
    }

    /// A stream ends without a last message.
    pub(crate) fn end(&mut self, stream: u64) {
        self.note(0, Some(stream), Some(End::Done));
    }

    /// The mark of the next line.
    pub(crate) fn next(&mut self) -> Option<Mark> {
        self.marks.pop_front()
    }

    /// The end of the only line there is, if that line is the last of its request. Its mark is taken then.
    #[cfg(feature = "service")]
    pub(crate) fn take_sole_end(&mut self) -> Option<End> {
        if self.marks.len() > 1 {
            return None;
        }
        let end = self.marks.front()?.end?;
        self.marks.clear();
        Some(end)
    }

    fn note(&mut self, len: usize, stream: Option<u64>, end: Option<End>) {
        if self.on {
            self.marks.push_back(Mark { len, stream, end, task: None });
        }
    }
}
