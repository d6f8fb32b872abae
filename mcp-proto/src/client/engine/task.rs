//! Calls that have become tasks, driven to their end. [spec: extensions/tasks]
//!
//! ```text
//!   2026-07-28   tasks/get … tasks/get (questions) … tasks/update … tasks/get (result)
//!   2025-11-25   tasks/get … tasks/get (over, or questions) … tasks/result
//! ```

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde_json::value::RawValue;

use super::Engine;
use super::table::{Call, Stage};
use crate::client::config::TaskUse;
use crate::client::error::CallError;
use crate::client::event::{CallId, Event, Kind, Round};
use crate::client::outbox::{Outbox, Purpose};
use crate::model::method::ServerMethod;
use crate::model::{
    CreateTaskResult, DetailedTask, InputRequests, InputResponses, Json, Members, ProtocolVersion, Str, Task,
    TaskDetail, TaskStatus, TaskSupport,
};
use crate::rpc::{de, write_str};
use crate::time::Instant;

/// How long to wait where the server does not say.
const USUAL: Duration = Duration::from_secs(1);
/// A server that wants to be asked more often than this is asked this often.
const LEAST: Duration = Duration::from_millis(20);
/// So many polls may fail one after the other before the call does.
const FAILURES: u32 = 5;

/// A task that the machine asks for.
#[derive(Debug)]
pub(crate) struct Driven {
    pub(crate) id: Str,
    status: TaskStatus,
    interval: Duration,
    /// When to ask next; `None` while an answer is due.
    pub(crate) next_poll: Option<Instant>,
    /// Questions that are not answered.
    pub(crate) open: InputRequests,
    /// Keys that were answered: none is answered twice.
    answered: BTreeSet<Str>,
    /// `tasks/update` on their way.
    pub(crate) updates: Vec<i64>,
    failures: u32,
}

impl Driven {
    fn new(task: &Task, now: Instant) -> Self {
        let mut driven = Self::resumed(task.task_id.clone());
        driven.follow(task);
        let wait = if task.status == TaskStatus::Working { driven.interval } else { Duration::ZERO };
        driven.next_poll = Some(now + wait);
        driven
    }

    /// A task of which only the name is known: it is asked for as soon as the server is ready.
    pub(super) const fn resumed(id: Str) -> Self {
        Self {
            id,
            status: TaskStatus::Working,
            interval: USUAL,
            next_poll: None,
            open: InputRequests::new(),
            answered: BTreeSet::new(),
            updates: Vec::new(),
            failures: 0,
        }
    }

    /// Takes over where the task stands. Whether that is new.
    fn follow(&mut self, task: &Task) -> bool {
        if let Some(interval) = task.poll_interval_ms {
            self.interval = Duration::from_millis(interval).max(LEAST);
        }
        core::mem::replace(&mut self.status, task.status) != task.status
    }
}

impl Engine {
    /// Whether a call asks for a task, as 2025-11-25 has it.
    pub(super) fn asks_task(&self, call: &Call, version: ProtocolVersion) -> bool {
        if !version.has_core_tasks() || call.known != Some(ServerMethod::CallTool) {
            return false;
        }
        let offered = self.facts.as_ref().and_then(|facts| facts.capabilities.as_ref());
        if !offered.is_some_and(crate::model::ServerCapabilities::has_core_tasks) {
            return false;
        }
        let wanted = call.how.task_ttl_ms.is_some();
        let tool = call.subject.as_deref().and_then(|name| self.tools.definition(name));
        match tool
            .map(|listed| listed.tool.execution.as_ref().and_then(|how| how.task_support).unwrap_or_default())
        {
            Some(TaskSupport::Forbidden) => false,
            Some(TaskSupport::Required) => true,
            Some(TaskSupport::Optional) | None => wanted,
        }
    }

    /// The answer to a call is a task.
    pub(super) fn task_created<'b>(
        &mut self,
        id: CallId,
        result: &'b RawValue,
        now: Instant,
    ) -> Option<Event<'b>> {
        let created: CreateTaskResult = match de::from_str(result.get()) {
            Ok(created) => created,
            Err(fault) => return self.fail(id, CallError::malformed(fault.within("/result"))),
        };
        if self.table.get(id)?.how.tasks == TaskUse::Expose {
            let call = self.table.remove(id)?;
            let mut completed =
                self.completed(id, call.method, call.subject.as_deref(), Cow::Borrowed(result));
            completed.kind = Kind::Task;
            return Some(Event::Complete(completed));
        }
        let task = created.task;
        if self.table.by_task(&task.task_id).is_some() {
            return self.fail(id, CallError::malformed("at /result/taskId: a task of another call"));
        }
        let driven = Driven::new(&task, now);
        self.table.name_task(driven.id.clone(), id);
        self.table.update(id, |call| {
            call.due = None;
            call.stage = Stage::Task(Box::new(driven));
        });
        Some(Event::TaskStatus { call: Some(id), task })
    }

    /// Asks where a task stands, or for its result.
    pub(super) fn poll<O: Outbox>(&mut self, id: CallId, now: Instant, out: &mut O) {
        let Some(version) = self.version() else { return self.plan_poll(id, None) };
        let Some(call) = self.table.get(id) else { return };
        let Stage::Task(task) = &call.stage else { return };
        let result_is_due = version.has_core_tasks() && task.status != TaskStatus::Working;
        let task_id = task.id.clone();
        let (purpose, method) = if result_is_due {
            (Purpose::Outcome(id), "tasks/result")
        } else {
            (Purpose::Poll(id), "tasks/get")
        };
        let wire = self.send_task(purpose, method, &task_id, "", version, out);
        self.table.update(id, |call| {
            call.wire = Some(wire);
            // The result comes when the task is over.
            call.due = if result_is_due { None } else { call.how.timeout.map(|timeout| now + timeout) };
            if let Stage::Task(task) = &mut call.stage {
                task.next_poll = None;
            }
        });
    }

    /// When a task is asked for next.
    pub(super) fn plan_poll(&mut self, id: CallId, at: Option<Instant>) {
        self.table.update(id, |call| {
            if let Stage::Task(driven) = &mut call.stage {
                driven.next_poll = at;
            }
        });
    }

    fn send_task<O: Outbox>(
        &mut self,
        purpose: Purpose,
        method: &'static str,
        task_id: &str,
        more: &str,
        version: ProtocolVersion,
        out: &mut O,
    ) -> i64 {
        let mut params = Vec::from(*b"{\"taskId\":");
        write_str(&mut params, task_id);
        params.extend_from_slice(more.as_bytes());
        params.push(b'}');
        let params = String::from_utf8(params).unwrap_or_default();
        self.send_own(purpose, method, version, &params, out)
    }

    /// Nobody waits for a task any more.
    pub(super) fn cancel_task<O: Outbox>(&mut self, task_id: &str, version: ProtocolVersion, out: &mut O) {
        self.send_task(Purpose::Aside, "tasks/cancel", task_id, "", version, out);
    }

    /// The answer to `tasks/get`.
    pub(super) fn polled<'b, O: Outbox>(
        &mut self,
        id: CallId,
        outcome: Result<&'b RawValue, CallError>,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        let result = match outcome {
            Ok(result) => result,
            Err(error) => return self.poll_failed(id, error, now),
        };
        let version = self.version()?;
        if version.has_core_tasks() {
            return match de::from_str::<Task>(result.get()) {
                Ok(task) => self.task_moved(id, task, now, out),
                Err(fault) => self.fail(id, CallError::malformed(fault.within("/result"))),
            };
        }
        match de::from_str::<DetailedTask>(result.get()) {
            Ok(task) => self.task_told(id, task, now, out),
            Err(fault) => self.fail(id, CallError::malformed(fault.within("/result"))),
        }
    }

    /// 2025-11-25: the task without its outcome.
    fn task_moved<'b, O: Outbox>(
        &mut self,
        id: CallId,
        task: Task,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        let news = self.follow(id, &task, now)?;
        if task.status != TaskStatus::Working && self.table.get(id)?.wire.is_none() {
            // Also when it waits for input: the questions come as requests of the server.
            self.poll(id, now, out);
        }
        news.then_some(Event::TaskStatus { call: Some(id), task })
    }

    /// 2026-07-28: the task with what its status brings along.
    pub(super) fn task_told<'b, O: Outbox>(
        &mut self,
        id: CallId,
        detailed: DetailedTask,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        let DetailedTask { task, detail, .. } = detailed;
        let news = self.follow(id, &task, now)?;
        match detail {
            TaskDetail::None if task.status == TaskStatus::Cancelled => {
                self.fail(id, CallError::TaskCancelled)
            }
            TaskDetail::None => news.then_some(Event::TaskStatus { call: Some(id), task }),
            TaskDetail::InputRequests(requests) => {
                let fresh = self.fresh_questions(id, requests)?;
                if fresh.is_empty() {
                    return news.then_some(Event::TaskStatus { call: Some(id), task });
                }
                if let Err(error) = self.admit_round(id, &fresh) {
                    let call = self.table.remove(id)?;
                    self.withdraw(&call, None, out);
                    return Some(Event::Failed { call: id, error });
                }
                let round = Round { requests: fresh.clone(), of_task: true };
                self.table.update(id, |call| {
                    if let Stage::Task(driven) = &mut call.stage {
                        for (key, request) in fresh {
                            driven.open.insert(key, request);
                        }
                    }
                });
                Some(Event::InputRequired { call: id, round })
            }
            TaskDetail::Result(result) => {
                let call = self.table.remove(id)?;
                let result = Cow::Owned(result.as_raw().to_owned());
                Some(Event::Complete(self.completed(id, call.method, call.subject.as_deref(), result)))
            }
            TaskDetail::Error(error) => self.fail(id, CallError::Rpc(*error)),
        }
    }

    /// Questions that were not asked before. [spec: extensions/tasks]
    fn fresh_questions(&self, id: CallId, requests: InputRequests) -> Option<InputRequests> {
        let Stage::Task(driven) = &self.table.get(id)?.stage else { return None };
        Some(
            requests
                .into_iter()
                .filter(|(key, _)| !driven.answered.contains(key) && !driven.open.contains(key))
                .collect(),
        )
    }

    /// Takes over where a task stands, and says when to ask again. Whether the status is new.
    fn follow(&mut self, id: CallId, task: &Task, now: Instant) -> Option<bool> {
        self.table.update(id, |call| {
            let Stage::Task(driven) = &mut call.stage else { return None };
            if driven.id != task.task_id {
                return Some(false);
            }
            let news = driven.follow(task);
            driven.failures = 0;
            if call.wire.is_none() {
                driven.next_poll = Some(now + driven.interval);
                call.due = None;
            }
            Some(news)
        })?
    }

    /// A task told where it stands: if that is news, it is asked at once.
    pub(super) fn hurry(&mut self, id: CallId, task: &Task, now: Instant) {
        let asked = self.table.get(id).is_some_and(|call| call.wire.is_some());
        if self.follow(id, task, now) == Some(true) && !asked {
            self.plan_poll(id, Some(now));
        }
    }

    /// A poll came to nothing: a broken connection is no broken task.
    pub(super) fn poll_failed(
        &mut self,
        id: CallId,
        error: CallError,
        now: Instant,
    ) -> Option<Event<'static>> {
        if !matches!(error, CallError::Lost(_)) {
            return self.fail(id, error);
        }
        let failures = self.table.update(id, |call| {
            let Stage::Task(driven) = &mut call.stage else { return FAILURES };
            driven.failures += 1;
            driven.next_poll = Some(now + driven.interval);
            call.due = None;
            driven.failures
        })?;
        if failures >= FAILURES { self.fail(id, error) } else { None }
    }

    /// The answer to `tasks/result`: that of the call.
    pub(super) fn outcome<'b>(
        &mut self,
        id: CallId,
        outcome: Result<&'b RawValue, CallError>,
    ) -> Option<Event<'b>> {
        let call = self.table.remove(id)?;
        let cancelled = matches!(&call.stage, Stage::Task(task) if task.status == TaskStatus::Cancelled);
        match outcome {
            Ok(result) => {
                let result = Cow::Borrowed(result);
                Some(Event::Complete(self.completed(id, call.method, call.subject.as_deref(), result)))
            }
            Err(_) if cancelled => Some(Event::Failed { call: id, error: CallError::TaskCancelled }),
            Err(error) => Some(Event::Failed { call: id, error }),
        }
    }

    /// Answers questions of a task; those that are not answered stay open.
    pub(super) fn answer_task<O: Outbox>(
        &mut self,
        id: CallId,
        responses: &InputResponses,
        now: Instant,
        out: &mut O,
    ) -> Result<(), CallError> {
        let Some(version) = self.version() else { return Err(CallError::NoSuchCall) };
        let given = self.table.update(id, |call| {
            let Stage::Task(driven) = &mut call.stage else { return Members::new() };
            let mut given: Members<Json> = Members::new();
            for (key, answer) in responses.members().iter() {
                if driven.open.remove(key).is_some() {
                    driven.answered.insert(key.clone());
                    given.insert(key.clone(), answer.clone());
                }
            }
            given
        });
        let given = given.unwrap_or_default();
        if given.is_empty() {
            return Err(CallError::malformed_params("no answer to what the task asks"));
        }
        let json = serde_json::to_string(&given).map_err(CallError::malformed_params)?;
        let Some(task_id) = self.table.get(id).and_then(|call| match &call.stage {
            Stage::Task(task) => Some(task.id.clone()),
            _ => None,
        }) else {
            return Err(CallError::NoSuchCall);
        };
        let more = alloc::format!(",\"inputResponses\":{json}");
        let wire = self.send_task(Purpose::Update(id), "tasks/update", &task_id, &more, version, out);
        self.table.update(id, |call| {
            if let Stage::Task(task) = &mut call.stage {
                task.updates.push(wire);
            }
        });
        let _ = now;
        Ok(())
    }

    /// The answer to `tasks/update`: the task may go on at once.
    pub(super) fn updated<'b>(
        &mut self,
        id: CallId,
        outcome: Result<&'b RawValue, CallError>,
        now: Instant,
    ) -> Option<Event<'b>> {
        self.table.update(id, |call| {
            if let Stage::Task(task) = &mut call.stage {
                task.updates.clear();
                if call.wire.is_none() {
                    task.next_poll = Some(now + task.interval);
                }
            }
        });
        match outcome {
            Ok(_) => None,
            Err(error) => self.fail(id, error),
        }
    }
}
