//! Subscriptions. [spec: basic/patterns/subscriptions]
//!
//! A legacy server has none: it tells changes of lists unasked, and those of resources after
//! `resources/subscribe`. The machine makes up for it, so that a subscription means the same in both eras.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::Engine;
use super::table::{Call, How, Listening, Stage};
use crate::client::config::CallOptions;
use crate::client::error::CallError;
use crate::client::event::{CallId, Change, Event, ViolationKind};
use crate::client::outbox::{Outbox, Purpose};
use crate::model::method::ServerMethod;
use crate::model::{ProtocolVersion, Str, SubscriptionFilter};
use crate::rpc::write_str;
use crate::time::Instant;

impl Engine {
    /// Opens a subscription.
    pub(crate) fn listen<O: Outbox>(
        &mut self,
        filter: SubscriptionFilter,
        options: &CallOptions,
        now: Instant,
        out: &mut O,
    ) -> Result<CallId, CallError> {
        let json = serde_json::to_string(&filter).map_err(CallError::malformed_params)?;
        let how = How { progress: false, reset_on_progress: false, log_level: None, ..How::of(options) };
        let method = Str::Borrowed(ServerMethod::Listen.as_str());
        let params = alloc::format!("{{\"notifications\":{json}}}").into_boxed_str();
        let stage = Stage::Listen(Box::new(Listening { filter, granted: None, asked: BTreeMap::new() }));
        let call = Call::new(method, params, stage, how, now);
        self.open_call(call, now, out)
    }

    /// Opens a subscription again whose stream broke.
    pub(crate) fn relisten<O: Outbox>(
        &mut self,
        id: CallId,
        now: Instant,
        out: &mut O,
    ) -> Result<(), CallError> {
        let call = self.table.get(id).ok_or(CallError::NoSuchCall)?;
        if call.wire.is_some() || !matches!(call.stage, Stage::Listen(_)) || self.queue.contains(&id) {
            return Err(CallError::NoSuchCall);
        }
        self.table.update(id, |call| {
            if let Stage::Listen(listening) = &mut call.stage {
                listening.begin_again();
            }
            call.expect_answer(now);
        });
        if self.is_ready() {
            self.send(id, now, out);
        } else {
            self.queue.insert(id);
        }
        Ok(())
    }

    /// A subscription is to be opened again when the server is ready again.
    pub(super) fn queue_listen_again(&mut self, id: CallId) {
        self.table.update(id, |call| {
            if let Stage::Listen(listening) = &mut call.stage {
                listening.begin_again();
            }
        });
        self.queue.insert(id);
    }

    /// The subscription on a server that has none. It is acknowledged when each resource is.
    pub(super) fn listen_legacy<O: Outbox>(
        &mut self,
        id: CallId,
        version: ProtocolVersion,
        now: Instant,
        out: &mut O,
    ) {
        let Some(Stage::Listen(listening)) = self.table.get(id).map(|call| &call.stage) else { return };
        let mut granted = listening.filter.clone();
        granted.task_ids.clear();
        if let Some(has) = self.facts.as_ref().and_then(|facts| facts.capabilities.as_ref()) {
            granted.tools_list_changed &= has.has_tools_list_changed();
            granted.prompts_list_changed &= has.has_prompts_list_changed();
            granted.resources_list_changed &= has.has_resources_list_changed();
            if !has.has_resource_subscriptions() {
                granted.resource_subscriptions.clear();
            }
        }
        let mut seen = BTreeSet::new();
        granted.resource_subscriptions.retain(|uri| seen.insert(uri.clone()));
        let mut asked = BTreeMap::new();
        for uri in &granted.resource_subscriptions {
            if !self.hears_resource(uri) {
                let purpose = Purpose::Subscribe(id);
                asked.insert(self.subscribe(purpose, "resources/subscribe", uri, version, out), uri.clone());
            }
        }
        let at_once = asked.is_empty();
        self.table.update(id, |call| {
            call.expect_answer(now);
            if at_once {
                call.due = None;
            }
            if let Stage::Listen(listening) = &mut call.stage {
                listening.granted = Some(granted.clone());
                listening.asked = asked;
            }
        });
        if at_once {
            self.backlog.push_back(Event::Acknowledged { subscription: id, granted });
        }
    }

    /// The answer to one `resources/subscribe` of a subscription. What was refused is not granted.
    pub(super) fn subscribed(&mut self, id: CallId, wire: i64, granted: bool) -> Option<Event<'static>> {
        let granted = self.table.update(id, |call| {
            let Stage::Listen(listening) = &mut call.stage else { return None };
            let uri = listening.asked.remove(&wire)?;
            let all = listening.granted.as_mut()?;
            if !granted {
                all.resource_subscriptions.retain(|own| *own != uri);
            }
            if !listening.asked.is_empty() {
                return None;
            }
            let all = all.clone();
            call.due = None;
            Some(all)
        })??;
        Some(Event::Acknowledged { subscription: id, granted })
    }

    /// Whether the server said that it tells of a resource, to a subscription that is still open.
    fn hears_resource(&self, uri: &str) -> bool {
        self.listening()
            .any(|(_, listening)| listening.acknowledged().is_some_and(|granted| names(granted, uri)))
    }

    /// Whether a subscription wants to hear of a resource, be it acknowledged or not.
    fn wants_resource(&self, uri: &str) -> bool {
        self.listening()
            .any(|(_, listening)| listening.granted.as_ref().is_some_and(|granted| names(granted, uri)))
    }

    fn listening(&self) -> impl Iterator<Item = (CallId, &Listening)> + '_ {
        self.table.listens().filter_map(|id| match &self.table.get(id)?.stage {
            Stage::Listen(listening) => Some((id, &**listening)),
            _ => None,
        })
    }

    fn subscribe<O: Outbox>(
        &mut self,
        purpose: Purpose,
        method: &'static str,
        uri: &str,
        version: ProtocolVersion,
        out: &mut O,
    ) -> i64 {
        let mut params = Vec::from(*b"{\"uri\":");
        write_str(&mut params, uri);
        params.push(b'}');
        let params = String::from_utf8(params).unwrap_or_default();
        self.send_own(purpose, method, version, &params, out)
    }

    /// A subscription that was taken out of the table is over: a legacy server is told where that matters.
    pub(super) fn leave_listen<O: Outbox>(&mut self, call: &Call, out: &mut O) {
        let Stage::Listen(listening) = &call.stage else { return };
        let Some(version) = self.version().filter(|version| !version.is_modern()) else { return };
        let Some(granted) = &listening.granted else { return };
        for uri in granted.resource_subscriptions.clone() {
            if !self.wants_resource(&uri) {
                self.subscribe(Purpose::Aside, "resources/unsubscribe", &uri, version, out);
            }
        }
    }

    /// The first message of a subscription.
    pub(super) fn acknowledged(&mut self, id: CallId, granted: SubscriptionFilter) -> Option<Event<'static>> {
        let first = self.table.update(id, |call| {
            let Stage::Listen(listening) = &mut call.stage else { return false };
            if listening.granted.is_some() {
                return false;
            }
            listening.granted = Some(granted.clone());
            call.due = None;
            true
        });
        if first == Some(true) {
            return Some(Event::Acknowledged { subscription: id, granted });
        }
        Some(Event::violation(ViolationKind::Unsubscribed, "a subscription was acknowledged twice"))
    }

    /// A change that one subscription is told of.
    pub(super) fn told(&mut self, id: CallId, change: Change) -> Option<Event<'static>> {
        let Stage::Listen(listening) = &self.table.get(id)?.stage else { return None };
        let Some(granted) = &listening.granted else {
            let detail = "a change before the subscription was acknowledged";
            return Some(Event::violation(ViolationKind::Unsubscribed, detail));
        };
        if !grants(granted, &change) {
            let detail = "a change that the subscription did not ask for";
            return Some(Event::violation(ViolationKind::Unsubscribed, detail));
        }
        Some(Event::Changed { subscription: Some(id), change })
    }

    /// A change that a legacy server tells unasked: each subscription to it hears of it.
    pub(super) fn told_all(&mut self, change: Change) -> Option<Event<'static>> {
        let mut told = self
            .listening()
            .filter(|(_, listening)| listening.acknowledged().is_some_and(|granted| grants(granted, &change)))
            .map(|(id, _)| Event::Changed { subscription: Some(id), change: change.clone() })
            .collect::<Vec<_>>()
            .into_iter();
        let first = told.next().unwrap_or(Event::Changed { subscription: None, change });
        for event in told {
            // One for the same that was not taken yet says it all.
            let waits = self.backlog.iter().rev().take(RECENT).any(|waiting| same(waiting, &event));
            if !waits && self.backlog.len() < self.config.limits.max_calls {
                self.backlog.push_back(event);
            }
        }
        Some(first)
    }

    /// The answer to `subscriptions/listen`: it has ended.
    pub(super) fn listen_answered<'b>(
        &mut self,
        id: CallId,
        outcome: Result<&'b RawValue, CallError>,
    ) -> Option<Event<'b>> {
        match outcome {
            Ok(_) => self.listen_ended(id),
            Err(error) => self.fail(id, error),
        }
    }

    pub(super) fn listen_ended(&mut self, id: CallId) -> Option<Event<'static>> {
        self.table.remove(id)?;
        Some(Event::ListenEnded { subscription: id, lost: false })
    }

    /// The stream of a subscription broke.
    pub(super) fn listen_lost(&mut self, id: CallId) -> Option<Event<'static>> {
        self.table.update(id, |call| {
            call.due = None;
            if let Stage::Listen(listening) = &mut call.stage {
                listening.begin_again();
            }
        })?;
        Some(Event::ListenEnded { subscription: id, lost: true })
    }
}

/// So many events that wait are looked at before another one joins them.
const RECENT: usize = 64;

fn same(a: &Event<'_>, b: &Event<'_>) -> bool {
    match (a, b) {
        (
            Event::Changed { subscription, change },
            Event::Changed { subscription: other, change: other_change },
        ) => subscription == other && change == other_change,
        _ => false,
    }
}

fn names(granted: &SubscriptionFilter, uri: &str) -> bool {
    granted.resource_subscriptions.iter().any(|own| own == uri)
}

fn grants(granted: &SubscriptionFilter, change: &Change) -> bool {
    match change {
        Change::Tools => granted.tools_list_changed,
        Change::Prompts => granted.prompts_list_changed,
        Change::Resources => granted.resources_list_changed,
        // It may be a part of what was subscribed to, and only the server knows what is part of what.
        Change::Resource(_) => !granted.resource_subscriptions.is_empty(),
    }
}
