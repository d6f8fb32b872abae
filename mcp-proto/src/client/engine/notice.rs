//! Notifications of the server.

use alloc::borrow::{Cow, ToOwned};

use serde::de::DeserializeOwned;

use super::Engine;
use super::response::wire_of;
use crate::client::event::{CallId, Change, Event, Notice, ViolationKind};
use crate::client::outbox::{Origin, Outbox, Purpose};
use crate::model::meta::key;
use crate::model::{
    DetailedTask, ElicitationComplete, LogMessage, Progress, ProgressParams, ResourceUpdated, Str,
    SubscriptionsAcknowledged, Task,
};
use crate::rpc::de::DecodeError;
use crate::rpc::{Params, RequestId, de};
use crate::time::Instant;

impl Engine {
    pub(super) fn notification<'b, O: Outbox>(
        &mut self,
        method: Cow<'b, str>,
        params: Params<'b>,
        origin: Origin,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        match &*method {
            "notifications/cancelled" => self.cancelled_by_server(&params, origin),
            "notifications/progress" => self.progress(&params, origin, now),
            "notifications/message" => self.log(&params, origin),
            "notifications/tools/list_changed" => self.changed(&params, Change::Tools, origin),
            "notifications/prompts/list_changed" => self.changed(&params, Change::Prompts, origin),
            "notifications/resources/list_changed" => self.changed(&params, Change::Resources, origin),
            "notifications/resources/updated" => match read::<ResourceUpdated>(&params) {
                Ok(updated) => self.changed(&params, Change::Resource(updated.uri), origin),
                Err(fault) => unreadable(&method, &fault),
            },
            "notifications/subscriptions/acknowledged" => match read::<SubscriptionsAcknowledged>(&params) {
                Ok(ack) => match self.subscription(&params, origin) {
                    Ok(id) => self.acknowledged(id, ack.notifications),
                    Err(detail) => Some(Event::violation(ViolationKind::UnknownSubscription, detail)),
                },
                Err(fault) => unreadable(&method, &fault),
            },
            "notifications/elicitation/complete" => match read::<ElicitationComplete>(&params) {
                Ok(done) => Some(Event::ElicitationComplete { elicitation_id: done.elicitation_id }),
                Err(fault) => unreadable(&method, &fault),
            },
            "notifications/tasks/status" => match read::<Task>(&params) {
                Ok(task) => Some(self.task_status(task, now)),
                Err(fault) => unreadable(&method, &fault),
            },
            "notifications/tasks" => match read::<DetailedTask>(&params) {
                Ok(task) => match self.subscription(&params, origin) {
                    Ok(id) => self.task_notice(id, task, now, out),
                    Err(detail) => Some(Event::violation(ViolationKind::UnknownSubscription, detail)),
                },
                Err(fault) => unreadable(&method, &fault),
            },
            _ => Some(Event::Notification(Notice { method, params })),
        }
    }

    /// The server ends a subscription, or takes back a request. What names neither is ignored.
    /// [spec: basic/patterns/cancellation]
    fn cancelled_by_server(&mut self, params: &Params<'_>, origin: Origin) -> Option<Event<'static>> {
        params.check().ok()?;
        let id = RequestId::parse(params.members().get("requestId")?.get(), self.config.limits.max_id)?;
        let reason =
            params.members().text("reason").ok().flatten().map(|reason| Str::Owned(reason.into_owned()));
        if let Some(ask) = self.asks.withdraw(&id) {
            return Some(Event::AskCancelled { ask, reason });
        }
        let wire = wire_of(&id)?;
        match self.table.purpose(wire) {
            Some(Purpose::Listen(listen)) if self.accepts(wire, origin) => {
                self.table.note_cancelled(wire);
                self.listen_ended(listen)
            }
            _ => None,
        }
    }

    fn progress(&mut self, params: &Params<'_>, origin: Origin, now: Instant) -> Option<Event<'static>> {
        let params: ProgressParams = match read(params) {
            Ok(params) => params,
            Err(fault) => return unreadable("notifications/progress", &fault),
        };
        let unknown = || {
            let detail = alloc::format!("progress for {}", params.progress_token);
            Some(Event::violation(ViolationKind::UnknownProgress, detail))
        };
        // Ours are numbers, and "1" is not 1.
        let Some(token) = params.progress_token.as_i64() else { return unknown() };
        let Some(call) = self.table.by_token(token) else { return unknown() };
        if let Origin::Response(wire) = origin
            && self.table.purpose(wire).and_then(Purpose::call) != Some(call)
        {
            return unknown();
        }
        let progress: Progress = params.progress;
        let grows = self.table.update(call, |call| {
            if call.progress.is_some_and(|last| progress.progress <= last) {
                return false;
            }
            call.progress = Some(progress.progress);
            if call.how.reset_on_progress && call.due.is_some() {
                call.expect_answer(now);
            }
            true
        });
        if grows != Some(true) {
            let detail = alloc::format!("progress went to {}", progress.progress);
            return Some(Event::violation(ViolationKind::StaleProgress, detail));
        }
        Some(Event::Progress { call, progress })
    }

    fn log(&mut self, params: &Params<'_>, origin: Origin) -> Option<Event<'static>> {
        let message: LogMessage = match read(params) {
            Ok(message) => message,
            Err(fault) => return unreadable("notifications/message", &fault),
        };
        let call = self.call_of(origin);
        Some(Event::Log { call, message })
    }

    /// The call on whose response a message came.
    pub(super) fn call_of(&self, origin: Origin) -> Option<CallId> {
        match origin {
            Origin::Response(wire) => self.table.purpose(wire).and_then(Purpose::call),
            Origin::Shared => None,
        }
    }

    fn changed(&mut self, params: &Params<'_>, change: Change, origin: Origin) -> Option<Event<'static>> {
        self.cache.invalidate(&change);
        if self.version().is_some_and(|version| !version.is_modern()) {
            return self.told_all(change);
        }
        match self.subscription(params, origin) {
            Ok(id) => self.told(id, change),
            Err(detail) => Some(Event::violation(ViolationKind::UnknownSubscription, detail)),
        }
    }

    /// The subscription that a notification is tagged with.
    fn subscription(&self, params: &Params<'_>, origin: Origin) -> Result<CallId, &'static str> {
        let Some(tag) = params.meta().get(key::SUBSCRIPTION_ID) else {
            return Err("a notification without a subscription");
        };
        let wire = RequestId::parse(tag.get(), self.config.limits.max_id).as_ref().and_then(wire_of);
        let purpose =
            wire.filter(|wire| self.accepts(*wire, origin)).and_then(|wire| self.table.purpose(wire));
        match purpose {
            Some(Purpose::Listen(id)) => Ok(id),
            _ => Err("a notification of a subscription that is not open"),
        }
    }

    /// 2025-11-25: a task told where it stands. It is asked at once if that is news.
    fn task_status(&mut self, task: Task, now: Instant) -> Event<'static> {
        let call = self.table.by_task(&task.task_id);
        if let Some(id) = call {
            self.hurry(id, &task, now);
        }
        Event::TaskStatus { call, task }
    }

    /// 2026-07-28: a subscription told where a task stands, with its outcome.
    fn task_notice<'b, O: Outbox>(
        &mut self,
        subscription: CallId,
        task: DetailedTask,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        match self.table.by_task(&task.task.task_id) {
            Some(id) => self.task_told(id, task, now, out),
            None => Some(Event::TaskStatus { call: Some(subscription), task: task.task }),
        }
    }
}

/// Reads params, which were split into members already.
fn read<T: DeserializeOwned>(params: &Params<'_>) -> Result<T, DecodeError> {
    params.check().map_err(|error| DecodeError::new(error.message.into_owned()))?;
    de::from_str(&params.to_json()).map_err(|fault| fault.within("/params"))
}

fn unreadable(method: &str, fault: &DecodeError) -> Option<Event<'static>> {
    Some(Event::violation(ViolationKind::Params, alloc::format!("{}: {fault}", method.to_owned())))
}
