//! What only HTTP knows and does: statuses, sessions, headers.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::open::Phase;
use super::table::Stage;
use super::{Engine, write};
use crate::client::error::CallError;
use crate::client::event::{CallId, Event, ServerFacts};
use crate::client::outbox::{About, Outbox, Purpose};
use crate::model::method::ServerMethod;
use crate::rpc::write_str;
use crate::time::Instant;

impl Engine {
    /// Nothing will come of this server: it cannot be reached, or it refuses for a reason that says nothing
    /// about what it speaks.
    pub(crate) fn give_up(&mut self, error: CallError) -> Event<'static> {
        self.leave_opening();
        self.unusable(error)
    }

    /// [`start`](Self::start) begins again, later. Calls wait.
    pub(crate) fn suspend(&mut self) {
        self.leave_opening();
        self.phase = Phase::Idle;
    }

    /// Something must come first on this side. Calls wait, and their time does not count until
    /// [`go_on`](Self::go_on).
    pub(crate) fn suspend_all(&mut self) {
        self.suspend();
        for call in self.queue.clone() {
            self.table.update(call, |call| call.due = None);
        }
    }

    /// What had to come first is there.
    pub(crate) fn go_on<O: Outbox>(&mut self, now: Instant, out: &mut O) -> Option<Event<'static>> {
        for call in self.queue.clone() {
            self.table.update(call, |call| call.expect_answer(now));
        }
        self.start(now, out)
    }

    /// A request waits for something on this side: its answer is not due.
    pub(crate) fn hold(&mut self, wire: i64) {
        if let Some(Purpose::Call(call) | Purpose::Listen(call)) = self.table.purpose(wire) {
            self.table.update(call, |call| call.due = None);
        }
    }

    /// A request that was held is sent.
    pub(crate) fn let_go(&mut self, wire: i64, now: Instant) {
        if let Some(Purpose::Call(call) | Purpose::Listen(call)) = self.table.purpose(wire) {
            self.table.update(call, |call| call.expect_answer(now));
        }
    }

    fn leave_opening(&mut self) {
        if let Phase::Probing { wire, .. } | Phase::Handshake { wire, .. } = self.phase {
            self.table.close_wire(wire);
        }
    }

    /// The server speaks what it was asked in, though it does not tell more.
    pub(crate) fn go_on_modern<O: Outbox>(&mut self, now: Instant, out: &mut O) -> Option<Event<'static>> {
        let Phase::Probing { version, .. } = self.phase else { return None };
        self.leave_opening();
        Some(self.ready(ServerFacts::bare(version), now, out))
    }

    /// Whatever is open fails, event by event, and nothing begins any more.
    pub(crate) fn end(&mut self, error: &CallError) {
        self.leave_opening();
        self.asks.clear();
        self.fail_all(error, false);
        self.table.forget_wires();
        self.phase = Phase::Unusable(error.clone());
    }

    /// What was remembered of the server may not hold: asks it. If it is another, the call that it refused is made again,
    /// else the refusal is its answer. Whether that is possible.
    pub(crate) fn ask_again<O: Outbox>(
        &mut self,
        wire: i64,
        refusal: CallError,
        now: Instant,
        out: &mut O,
    ) -> bool {
        if !self.is_ready() || self.config.preferred_legacy().is_none() {
            return false;
        }
        let Some(Purpose::Call(call) | Purpose::Listen(call)) = self.table.purpose(wire) else {
            return false;
        };
        self.table.close_wire(wire);
        self.wait_again(call);
        self.doubted = Some((call, refusal));
        self.verdict = None;
        self.facts = None;
        self.phase = Phase::Idle;
        let event = self.start(now, out);
        self.backlog.extend(event);
        true
    }

    /// The session of a legacy server is over. Begins another: what was `refused` because of that is sent in
    /// it; the `undecided` may still be refused so; whatever else is open fails, but subscriptions.
    pub(crate) fn renew<O: Outbox>(
        &mut self,
        refused: &[i64],
        undecided: &[i64],
        error: &CallError,
        now: Instant,
        out: &mut O,
    ) {
        let Some(version) = self.version().filter(|version| !version.is_modern()) else { return };
        self.asks.clear();
        for wire in refused {
            self.wait_for_ready(*wire);
        }
        let kept: BTreeSet<CallId> =
            undecided.iter().filter_map(|wire| self.table.purpose(*wire)?.call()).collect();
        let all: Vec<CallId> = self.table.iter().map(|(id, _)| id).filter(|id| !kept.contains(id)).collect();
        for id in all {
            match self.table.get(id).map(|call| &call.stage) {
                Some(Stage::Listen(_)) if !self.queue.contains(&id) => self.queue_listen_again(id),
                Some(Stage::Sent | Stage::Task(_)) => {
                    self.table.remove(id);
                    self.fail_later(id, error.clone());
                }
                _ => {}
            }
        }
        self.initialize(version, Vec::new(), now, out);
    }

    /// Sends what a request asked once more, under a fresh id; as soon as the server is ready.
    pub(crate) fn resend_when_ready<O: Outbox>(&mut self, wire: i64, now: Instant, out: &mut O) -> bool {
        if self.is_ready() { self.resend(wire, now, out) } else { self.wait_for_ready(wire) }
    }

    fn wait_for_ready(&mut self, wire: i64) -> bool {
        match self.table.close_wire(wire) {
            Some(Purpose::Call(call) | Purpose::Listen(call)) => {
                self.wait_again(call);
                true
            }
            _ => false,
        }
    }

    fn wait_again(&mut self, call: CallId) {
        self.table.drop_token(call);
        match self.table.get(call).map(|call| &call.stage) {
            Some(Stage::Listen(_)) => self.queue_listen_again(call),
            Some(_) => self.requeue(call),
            None => {}
        }
    }

    /// Asks for a page of tools, for the sake of what headers repeat. `None` if that is not possible.
    pub(crate) fn list_tools<O: Outbox>(&mut self, cursor: Option<&str>, out: &mut O) -> Option<i64> {
        let version = self.version()?;
        let method = ServerMethod::ListTools.as_str();
        let wire = self.table.open_wire(Purpose::Aside);
        let mut params = Vec::from(*b"{");
        if let Some(cursor) = cursor {
            params.extend_from_slice(b"\"cursor\":");
            write_str(&mut params, cursor);
        }
        params.push(b'}');
        let params = String::from_utf8(params).unwrap_or_default();
        let about = About { wire, purpose: Purpose::Aside, method, version, headers: &[] };
        let config = &self.config;
        out.request(&about, |out| write::own(config, wire, method, version, out, &params));
        Some(wire)
    }

    /// The answer to [`list_tools`](Self::list_tools).
    pub(crate) fn learn_tools(&mut self, wire: i64, page: &str) {
        self.table.close_wire(wire);
        self.tools.learn(page);
    }

    /// A request whose answer does not matter will have none.
    pub(crate) fn forget(&mut self, wire: i64) {
        self.table.close_wire(wire);
    }
}
