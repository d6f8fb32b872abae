//! A response of a legacy session: JSON or a stream of events, decided as late as possible.

use alloc::vec::Vec;
use core::time::Duration;

use super::endpoint::{Events, Settings, unknown_session};
use super::head::ResponseHead;
use super::media::Accepts;
use super::reply::events_head;
use super::response::Response;
use super::router::Router;
use super::streams::{Progress, Reader};
use crate::codec::sse::write_comment;

/// Writes one stream, or what is left of one, into the body of a response.
#[derive(Debug)]
pub(crate) struct Writer {
    /// `None` once the response is complete.
    reader: Option<Reader>,
    accepts: Accepts,
    events: Events,
    retry: Option<Duration>,
    /// It is a stream of events.
    begun: bool,
    /// The answer to a GET.
    get: bool,
    /// A single request was posted: a response is owed, unless the client cancels it.
    asked: bool,
    head: Option<ResponseHead>,
}

impl Writer {
    /// Of a POST.
    pub(crate) const fn post(reader: Reader, accepts: Accepts, asked: bool, settings: &Settings) -> Self {
        let (events, retry) = (settings.events, settings.retry);
        Self { reader: Some(reader), accepts, events, retry, begun: false, get: false, asked, head: None }
    }

    /// Of a GET.
    pub(crate) const fn get(reader: Reader, settings: &Settings) -> Self {
        let (events, retry) = (settings.events, settings.retry);
        let accepts = Accepts { json: false, sse: true };
        Self {
            reader: Some(reader),
            accepts,
            events,
            retry,
            begun: false,
            get: true,
            asked: false,
            head: None,
        }
    }

    /// The reader, while the response is not complete.
    pub(crate) const fn reader(&self) -> Option<&Reader> {
        self.reader.as_ref()
    }

    /// Whether it is the one who hears what belongs to no request.
    pub(crate) fn is_get(&self, router: &Router) -> bool {
        self.reader.as_ref().is_some_and(|reader| router.streams.is_get(reader))
    }

    /// The head, once, as soon as it is decided.
    pub(crate) const fn take_head(&mut self) -> Option<ResponseHead> {
        self.head.take()
    }

    /// The client is gone, or its response is over.
    pub(crate) fn release(&mut self, router: &mut Router) {
        if let Some(reader) = self.reader.take() {
            router.closed(reader);
        }
    }

    /// Appends what there is to write, up to `room` bytes or one message. Whether the response is complete.
    pub(crate) fn write(&mut self, router: &mut Router, room: usize, out: &mut Vec<u8>) -> bool {
        let Some(reader) = &self.reader else { return true };
        if router.is_ended() {
            if !self.begun {
                self.respond(unknown_session(None), out);
            }
            self.release(router);
            return true;
        }
        if self.accepts.sse && router.is_let_go(reader) {
            self.begin(router, out);
            let Some(reader) = &self.reader else { return true };
            while router.streams.write(reader, room, out) == Progress::More {}
            self.release(router);
            return true;
        }
        let may_be_json =
            self.accepts.json && !self.begun && (!self.accepts.sse || self.events == Events::WhenNeeded);
        if may_be_json && let Some(text) = router.streams.take_single(reader) {
            self.respond(Response::json(200, text), out);
            self.release(router);
            return true;
        }
        let is_over = router.streams.is_over(reader);
        if !self.accepts.sse {
            if is_over {
                // For a client that takes no events only the last message counts.
                let answer = router.streams.take_last(reader);
                let none = Response::accepted;
                self.respond(answer.map_or_else(none, |text| Response::json(200, text)), out);
                self.release(router);
            }
            return is_over;
        }
        if !self.begun && !self.get && router.streams.pending(reader) == 0 {
            if is_over {
                // There was nothing to answer; or the request was cancelled, and a request is answered with
                // JSON or a stream. An event with an id would make the client come back for more.
                // [spec: 2025-11-25 basic/transports#sending-messages-to-the-server]
                let none = if self.asked { Response::empty(events_head(200)) } else { Response::accepted() };
                self.respond(none, out);
                self.release(router);
            }
            return is_over;
        }
        self.begin(router, out);
        let Some(reader) = &self.reader else { return true };
        let closing = router.is_closing() && router.streams.is_get(reader);
        let progress = router.streams.write(reader, room, out);
        let over = match progress {
            Progress::Pending => closing,
            Progress::More => false,
            Progress::Finished | Progress::Stale => true,
        };
        if over {
            self.release(router);
        }
        over
    }

    /// Shows that the response is alive, if that can be shown: a JSON answer cannot be begun.
    pub(crate) fn keep_alive(&mut self, router: &mut Router, out: &mut Vec<u8>) {
        if self.reader.is_some() && self.accepts.sse && !self.begin(router, out) {
            write_comment(out, "");
        }
    }

    /// Makes the response a stream of events. Whether it was none before.
    fn begin(&mut self, router: &mut Router, out: &mut Vec<u8>) -> bool {
        let Some(reader) = &self.reader else { return false };
        if core::mem::replace(&mut self.begun, true) {
            return false;
        }
        self.head = Some(events_head(200));
        router.streams.prime(reader, self.retry, out);
        true
    }

    fn respond(&mut self, mut response: Response, out: &mut Vec<u8>) {
        self.head = Some(response.head);
        out.append(&mut response.body);
    }
}
