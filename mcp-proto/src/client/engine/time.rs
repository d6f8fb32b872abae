//! Deadlines. [spec: basic/patterns/cancellation#timeouts]

use super::Engine;
use super::table::Stage;
use crate::client::error::CallError;
use crate::client::event::Event;
use crate::client::outbox::Outbox;
use crate::time::Instant;

impl Engine {
    /// The moment at which to call [`handle_timeout`](Self::handle_timeout), if nothing happens before.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        if !self.backlog.is_empty() {
            return Some(Instant::ZERO);
        }
        let call = self.table.next_deadline().map(|(at, _)| at);
        call.into_iter().chain(self.opening_due()).min()
    }

    /// Lets time pass. Call it until it returns `None`.
    pub(crate) fn handle_timeout<O: Outbox>(&mut self, now: Instant, out: &mut O) -> Option<Event<'static>> {
        if let Some(event) = self.backlog.pop_front() {
            return Some(event);
        }
        while let Some((at, id)) = self.table.next_deadline()
            && at <= now
        {
            let call = self.table.get(id)?;
            let over = [call.due, call.cap].into_iter().flatten().any(|at| at <= now);
            if over {
                let call = self.table.remove(id)?;
                self.queue.remove(&id);
                self.withdraw(&call, Some("timed out"), out);
                return Some(Event::Failed { call: id, error: CallError::TimedOut });
            }
            if matches!(call.stage, Stage::Task(_)) {
                self.poll(id, now, out);
            }
        }
        if self.opening_due().is_some_and(|due| due <= now) {
            return self.opening_timed_out(now, out).or_else(|| self.backlog.pop_front());
        }
        None
    }
}
