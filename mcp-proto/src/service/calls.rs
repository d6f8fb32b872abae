//! The calls of one stream that run, and the questions they have asked.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::call::Call;
use crate::model::Str;
use crate::server::{AskKey, RequestKey};

#[derive(Default)]
pub(crate) struct Calls {
    running: BTreeMap<RequestKey, Arc<Call>>,
    asked: BTreeMap<AskKey, (Arc<Call>, Str)>,
    /// Set once no answer can come any more.
    input_ended: bool,
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn start(&mut self, call: &Arc<Call>) {
        self.running.insert(call.key, Arc::clone(call));
    }

    pub(crate) fn end(&mut self, key: RequestKey) -> Option<Arc<Call>> {
        self.asked.retain(|_, (call, _)| call.key != key);
        self.running.remove(&key)
    }

    pub(crate) fn asked(&mut self, ask: AskKey, call: &Arc<Call>, key: Str) {
        self.asked.insert(ask, (Arc::clone(call), key));
    }

    pub(crate) fn answered(&mut self, ask: AskKey) -> Option<(Arc<Call>, Str)> {
        self.asked.remove(&ask)
    }

    pub(crate) fn can_ask(&self) -> bool {
        !self.input_ended
    }

    /// No answer can come any more: the questions that wait for one.
    pub(crate) fn input_ended(&mut self) -> Vec<(Arc<Call>, Str)> {
        self.input_ended = true;
        core::mem::take(&mut self.asked).into_values().collect()
    }

    pub(crate) fn take_all(&mut self) -> Vec<Arc<Call>> {
        self.asked.clear();
        core::mem::take(&mut self.running).into_values().collect()
    }
}
