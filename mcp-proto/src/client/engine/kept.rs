//! Answers that stand for new ones.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;

use serde_json::value::RawValue;

use super::Engine;
use super::table::Call;
use crate::client::cache::{hints, is_cacheable};
use crate::client::event::{CallId, Event};
use crate::time::Instant;

impl Engine {
    /// An answer to this call that is still fresh.
    pub(super) fn cached(&self, call: &Call, now: Instant) -> Option<Box<RawValue>> {
        let method = call.known.filter(|method| is_cacheable(*method))?;
        if !call.how.keep || call.retry.is_some() {
            return None;
        }
        self.cache.get(method, &call.params, now).map(ToOwned::to_owned)
    }

    /// A call is answered without the server.
    pub(super) fn complete_cached(&mut self, id: CallId, json: Box<RawValue>) {
        let Some(call) = self.table.remove(id) else { return };
        let mut completed = self.completed(id, call.method, call.subject.as_deref(), Cow::Owned(json));
        completed.cached = true;
        self.backlog.push_back(Event::Complete(completed));
    }

    /// Keeps an answer, if its server says for how long. Never that of a call with rounds.
    pub(super) fn keep(&mut self, call: &Call, result: &RawValue, now: Instant) {
        let Some(method) = call.known.filter(|method| is_cacheable(*method)) else { return };
        if call.retry.is_some()
            || call.rounds > 0
            || !self.version().is_some_and(|version| version.is_modern())
        {
            return;
        }
        let (ttl, scope) = hints(result.get());
        self.cache.put(method, &call.params, result, ttl, scope, call.epoch, now);
    }

    /// Someone else calls from now on.
    pub(crate) fn change_context(&mut self) {
        self.cache.change_context();
    }
}
