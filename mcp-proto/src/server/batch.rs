//! The arrays of 2025-03-26: answers are collected until the last one is there. [spec: 2025-03-26 basic#batching]

use alloc::vec::Vec;

use super::route::{End, Routes};

/// The batches of one stream whose answers have not left.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    /// A place is used again when its array has left; no request names it any more.
    places: Vec<Option<Reply>>,
    /// The batch whose members are being handed over.
    current: Option<u32>,
}

/// The answers to one batch.
#[derive(Debug)]
struct Reply {
    /// The stream that it came on.
    stream: u64,
    unread: usize,
    open: usize,
    /// What will stand between the brackets.
    answers: Vec<u8>,
}

impl Batches {
    /// An array of so many messages came.
    pub(crate) fn begin(&mut self, members: usize, routes: &mut Routes, out: &mut Vec<u8>) {
        self.give_up(routes, out);
        let reply = Reply { stream: routes.current(), unread: members, open: 0, answers: Vec::new() };
        let free = self.places.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[at] = Some(reply);
        self.current = Some(at as u32);
    }

    /// The batch whose member is being handled.
    pub(crate) const fn current(&self) -> Option<u32> {
        self.current
    }

    /// The member that was being handled is done with.
    pub(crate) fn member_read(&mut self, routes: &mut Routes, out: &mut Vec<u8>) {
        let current = self.current;
        let Some(reply) = self.reply(current) else { return };
        reply.unread = reply.unread.saturating_sub(1);
        if reply.unread == 0 {
            self.current = None;
            self.settle(current, routes, out);
        }
    }

    /// Members that were not handed over by now never will be.
    pub(crate) fn give_up(&mut self, routes: &mut Routes, out: &mut Vec<u8>) {
        let Some(current) = self.current.take() else { return };
        if let Some(reply) = self.reply(Some(current)) {
            reply.unread = 0;
        }
        self.settle(Some(current), routes, out);
    }

    /// A request of the batch waits for its answer.
    pub(crate) fn opened(&mut self, batch: Option<u32>) {
        if let Some(reply) = self.reply(batch) {
            reply.open += 1;
        }
    }

    /// A request of the batch is over.
    pub(crate) fn closed(&mut self, batch: Option<u32>, routes: &mut Routes, out: &mut Vec<u8>) {
        if let Some(reply) = self.reply(batch) {
            reply.open = reply.open.saturating_sub(1);
            self.settle(batch, routes, out);
        }
    }

    /// Puts the response that `write` appends where it belongs: into the array of its batch, or else on a
    /// line of its own, which ends `stream`.
    pub(crate) fn answer(
        &mut self,
        batch: Option<u32>,
        stream: u64,
        routes: &mut Routes,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> End,
    ) {
        match self.reply(batch) {
            Some(reply) => {
                if !reply.answers.is_empty() {
                    reply.answers.push(b',');
                }
                write(&mut reply.answers);
            }
            None => routes.last(out, stream, write),
        }
    }

    fn reply(&mut self, batch: Option<u32>) -> Option<&mut Reply> {
        self.places.get_mut(batch? as usize)?.as_mut()
    }

    /// Writes the array once every message was read and every request answered. Nothing to answer is
    /// nothing to write.
    fn settle(&mut self, batch: Option<u32>, routes: &mut Routes, out: &mut Vec<u8>) {
        let Some(place) = batch.and_then(|at| self.places.get_mut(at as usize)) else { return };
        if place.as_ref().is_none_or(|reply| reply.unread > 0 || reply.open > 0) {
            return;
        }
        let Some(Reply { stream, answers, .. }) = place.take() else { return };
        if answers.is_empty() {
            return routes.end(stream);
        }
        routes.last(out, stream, |out| {
            out.push(b'[');
            out.extend_from_slice(&answers);
            out.push(b']');
            End::Done
        });
    }
}
