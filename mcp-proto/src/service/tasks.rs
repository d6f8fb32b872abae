//! Calls that go on as tasks, with both faces: the core tasks of 2025-11-25 and the extension of
//! 2026-07-28.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use core::time::Duration;

use serde_json::value::RawValue;

use super::call::Call;
use super::error::Reply;
use super::session::Shared;
use super::{Service, ToolEntry};
use crate::limits::Limits;
use crate::model::method::{
    CallTool, CancelTask, GetTask, ListTasks, TaskResult, UpdateTask, UpdateTaskParams,
};
use crate::model::{
    CallToolResult, InputRequest, ProtocolVersion, ResultBody as _, Str, Task, TaskSupport, meta, view,
};
use crate::rpc::{Error, Members, code, unfit, write_str};
use crate::server::channel::sealed::Sealed as _;
use crate::server::{
    Change, Channel, ClientFeatures, NoTask, Pending, Principal, RequestKey, Scopes, Untyped,
    missing_capability, write_related_task,
};
use crate::task::{Cancelled, Changed, Options, Outcome, Snapshot, Status, Table, TaskId, TaskKey};
use crate::time::{Instant, UnixTime};

/// Tasks on a page of `tasks/list`.
const PAGE: usize = 50;

/// The tasks of a service, and who waits for them.
pub(crate) struct Tasks {
    table: Table,
    ttl: Option<Duration>,
    poll: Duration,
    running: BTreeMap<TaskId, Running>,
    /// Of tasks whose tool needs scopes: whose they are, and which.
    scoped: BTreeMap<TaskId, (Option<String>, Scopes)>,
    /// `tasks/result` requests that wait for the end.
    waiting: Vec<(TaskId, Weak<Shared>, RequestKey)>,
}

struct Running {
    call: Weak<Call>,
    version: ProtocolVersion,
}

impl Tasks {
    pub(crate) fn new(limits: &Limits, ttl: Option<Duration>, poll: Duration) -> Self {
        let (running, scoped) = (BTreeMap::new(), BTreeMap::new());
        Self { table: Table::new(limits), ttl, poll, running, scoped, waiting: Vec::new() }
    }

    /// What this caller's token has to allow for a look at a task. None for a task of someone else, which is
    /// as unknown as one that never was.
    pub(crate) fn scopes(&self, id: &str, principal: Option<&Principal>) -> Option<&Scopes> {
        let (owner, scopes) = self.scoped.get(&TaskId::parse(id)?)?;
        let caller = principal.map(owner_of);
        (owner.is_none() || *owner == caller).then_some(scopes)
    }

    pub(crate) fn forget_waiter(&mut self, key: RequestKey) {
        self.waiting.retain(|(_, _, waiter)| *waiter != key);
    }
}

/// Whether a call starts as a task.
///
/// # Errors
///
/// The tool needs one and the client cannot have it, or the other way round.
pub(crate) fn wanted(
    tool: &ToolEntry,
    asked: bool,
    version: ProtocolVersion,
    features: ClientFeatures,
) -> Result<bool, Error> {
    if version.has_core_tasks() {
        return match (tool.task, asked) {
            (TaskSupport::Forbidden, true) => {
                Err(Error::new(code::METHOD_NOT_FOUND, "This tool does not run as a task"))
            }
            (TaskSupport::Required, false) => {
                Err(Error::new(code::METHOD_NOT_FOUND, "This tool only runs as a task"))
            }
            (_, asked) => Ok(asked),
        };
    }
    if tool.task == TaskSupport::Required && !(version.has_tasks_extension() && features.tasks_extension) {
        return Err(missing_capability(ClientFeatures::TASKS, version));
    }
    Ok(tool.task != TaskSupport::Forbidden && !tool.decides && features.tasks_extension)
}

/// The wanted time to live of `params.task`: `None` = not said, `Some(None)` = without end.
///
/// # Errors
///
/// `-32602` if it is no whole number of milliseconds.
pub(crate) fn ttl_of(task: &str) -> Result<Option<Option<Duration>>, Error> {
    let members =
        Members::from_json(task).ok_or_else(|| unfit("task", "an object with distinct members", None))?;
    match members.get("ttl") {
        None => Ok(None),
        Some(raw) if raw.get() == "null" => Ok(Some(None)),
        Some(raw) => match crate::rpc::de::from_str::<u64>(raw.get()) {
            Ok(millis) => Ok(Some(Some(Duration::from_millis(millis)))),
            Err(_) => Err(unfit("task/ttl", "a whole number of milliseconds", Some(raw))),
        },
    }
}

impl Call {
    /// Whether the handler may decide for a task: in 2025-11-25 that is the client's to say.
    pub(crate) fn can_become_task(&self) -> bool {
        self.version.has_tasks_extension() && self.features.tasks_extension
    }

    /// Whom a task belongs to. Without a principal, a task of the extension belongs to whoever knows its
    /// id; a core task to the session, which can list it.
    fn task_owner(&self) -> Option<String> {
        owner(&self.shared, self.version)
    }
}

fn owner(shared: &Shared, version: ProtocolVersion) -> Option<String> {
    match &shared.principal {
        Some(principal) => Some(owner_of(principal)),
        None if version.has_core_tasks() => {
            Some(alloc::format!("session {}", shared.lock().connection.number()))
        }
        None => None,
    }
}

fn owner_of(principal: &Principal) -> String {
    alloc::format!("principal {}", principal.id())
}

/// Makes the call a task: readable before the client hears of it.
pub(crate) fn create(call: &Arc<Call>) -> Result<(), Error> {
    let service = &call.shared.service;
    let owner = call.task_owner();
    let now = service.now(&call.shared);
    let mut tasks = service.tasks();
    let (ttl, scopes) = {
        let mut inner = call.lock();
        (inner.task_ttl.unwrap_or(tasks.ttl), core::mem::take(&mut inner.scopes))
    };
    let options = Options { ttl, poll_interval: Some(tasks.poll), status_message: None };
    let key = service
        .with_random(|random| tasks.table.create(owner.as_deref(), options, random, now))
        .map_err(|_| Error::new(code::INTERNAL_ERROR, "Too many tasks"))?;
    if !scopes.is_empty() {
        tasks.scoped.insert(key.id(), (owner, scopes));
    }
    tasks.running.insert(key.id(), Running { call: Arc::downgrade(call), version: call.version });
    let mut body = Vec::new();
    if let Some(task) = tasks.table.task(key, now) {
        write_task(&mut body, task, call.version, false);
    }
    drop(tasks);
    call.lock().task = Some(key);
    let mut state = call.shared.lock();
    let state = &mut *state;
    // From here on the call does not depend on its stream.
    state.calls.end(call.key);
    match state.connection.become_task(Pending::<CallTool>::new(call.key), &body, &mut state.out) {
        Ok(delivery) => {
            state.wake_driver();
            if delivery.is_written() { Ok(()) } else { Err(Error::internal()) }
        }
        Err(NoTask::MissingCapability(missing)) => Err(missing.error(call.version)),
        Err(_) => Err(Error::internal()),
    }
}

/// Puts the questions of a task to its client.
pub(crate) fn ask(call: &Arc<Call>, questions: Vec<(Str, InputRequest)>) {
    let service = &call.shared.service;
    let Some(key) = call.lock().task else { return };
    let now = service.now(&call.shared);
    let mut json = Vec::new();
    for (name, question) in &questions {
        let mut params = Vec::new();
        if question.write_params(&mut params, call.version).is_err() {
            params.extend_from_slice(b"{}");
        }
        let mut text = String::from("{\"method\":\"");
        text.push_str(question.method());
        text.push_str("\",\"params\":");
        text.push_str(core::str::from_utf8(&params).unwrap_or("{}"));
        text.push('}');
        if let Ok(raw) = RawValue::from_string(text) {
            json.push((name.clone().into_owned(), raw));
        }
    }
    let asked = service.tasks().table.ask(key, json, now);
    match asked {
        Ok(changed) => service.task_changed(changed, now),
        Err(why) => {
            let error = Error::new(code::INTERNAL_ERROR, alloc::format!("{why}"));
            for (name, _) in &questions {
                call.deliver(name, Err(error.clone()));
            }
            return;
        }
    }
    if !call.version.has_core_tasks() {
        return;
    }
    // 2025-11-25: questions are requests of the server, tied to the task.
    for (name, question) in questions {
        let mut state = call.shared.lock();
        let state = &mut *state;
        let question = super::ask::with_elicitation_id(&question, call.version, service);
        let sent = if state.calls.can_ask() {
            state.connection.ask_for_task(&question, &key.id().to_string(), state.now, &mut state.out).ok()
        } else {
            None
        };
        match sent {
            Some(ask) => {
                state.calls.asked(ask, call, name);
                state.wake_driver();
            }
            None => call.deliver(&name, Err(super::ask::connection_closed())),
        }
    }
}

/// A question of a core task was answered by the client.
pub(crate) fn answered(call: &Call, name: &str) {
    let Some(key) = call.lock().task else { return };
    let service = &call.shared.service;
    let now = service.now(&call.shared);
    let closed = service.tasks().table.close_question(key, name, now);
    if let Ok(Some(changed)) = closed {
        service.task_changed(changed, now);
    }
}

/// Nothing more is said of a task that is over.
fn end(call: &Call) {
    call.shared.lock().connection.end_task(call.key);
}

/// The call of a task is over.
pub(crate) fn finish(call: &Call, reply: Reply) {
    let service = &call.shared.service;
    let Some(key) = call.lock().task else { return };
    let (outcome, message) = outcome_of(reply, call.version);
    let now = service.now(&call.shared);
    end(call);
    let finished = service.tasks().table.finish(key, outcome, message, now);
    // One that was cancelled or has expired stays as it is.
    if let Ok(changed) = finished {
        service.task_changed(changed, now);
    }
    service.tasks().running.remove(&key.id());
}

fn outcome_of(reply: Reply, version: ProtocolVersion) -> (Outcome, Option<String>) {
    let error = |error: &Error| {
        let mut out = Vec::new();
        error.write(&mut out);
        (Outcome::Error { json: raw(out) }, Some(error.message.clone().into_owned()))
    };
    match reply {
        Reply::Tool(result) => match result_json(&result, version) {
            Some(json) => {
                let message = result.failed().then(|| String::from("The tool reported an error"));
                (Outcome::Result { json, is_error: result.failed() }, message)
            }
            None => error(&Error::internal()),
        },
        Reply::Error(failure) => error(&failure),
        _ => error(&Error::internal()),
    }
}

/// The result as the response of the call would have held it.
fn result_json(result: &CallToolResult, version: ProtocolVersion) -> Option<Box<RawValue>> {
    let mut body = Vec::new();
    result.write(version, &mut body).ok()?;
    let mut out = Vec::with_capacity(body.len() + 32);
    out.push(b'{');
    if version.is_modern() {
        out.extend_from_slice(b"\"resultType\":\"complete\",");
    }
    if let Some(meta) = result.meta() {
        out.extend_from_slice(b"\"_meta\":");
        view::write(&mut out, version, meta).ok()?;
        out.push(b',');
    }
    out.extend_from_slice(body.strip_prefix(b"{")?);
    RawValue::from_string(String::from_utf8(out).ok()?).ok()
}

fn raw(json: Vec<u8>) -> Box<RawValue> {
    String::from_utf8(json).ok().and_then(|text| RawValue::from_string(text).ok()).unwrap_or_default()
}

fn no_such_task() -> Error {
    Error::invalid_params("Unknown task")
}

fn demand_extension(version: ProtocolVersion, features: ClientFeatures) -> Result<(), Error> {
    if version.has_tasks_extension() && !features.tasks_extension {
        return Err(missing_capability(ClientFeatures::TASKS, version));
    }
    Ok(())
}

fn answer<M>(shared: &Shared, pending: Pending<M>, body: Result<Vec<u8>, Error>) {
    let mut state = shared.lock();
    let state = &mut *state;
    let _ = match body {
        Ok(body) => state.connection.respond_raw(pending, &body, &mut state.out),
        Err(error) => state.connection.fail(pending, &error, &mut state.out),
    };
    state.wake_driver();
}

/// `tasks/get`
pub(crate) fn get(
    shared: &Shared,
    pending: Pending<GetTask>,
    id: &str,
    version: ProtocolVersion,
    features: ClientFeatures,
) {
    let service = &shared.service;
    let body = demand_extension(version, features).and_then(|()| {
        let owner = owner(shared, version);
        let now = service.now(shared);
        let tasks = service.tasks();
        let task = tasks.table.get(owner.as_deref(), id, now).map_err(|_| no_such_task())?;
        let mut out = Vec::new();
        write_task(&mut out, task, version, true);
        Ok(out)
    });
    answer(shared, pending, body);
}

/// `tasks/update`
pub(crate) fn update(
    shared: &Shared,
    pending: Pending<UpdateTask>,
    params: &UpdateTaskParams<'_>,
    version: ProtocolVersion,
    features: ClientFeatures,
) {
    let service = &shared.service;
    let now = service.now(shared);
    let outcome = demand_extension(version, features).and_then(|()| {
        let owner = owner(shared, version);
        let owner = owner.as_deref();
        let mut tasks = service.tasks();
        let task = tasks.table.get(owner, &params.task_id, now).map_err(|_| no_such_task())?;
        let call = tasks.running.get(&task.id).and_then(|running| running.call.upgrade());
        if let Some(call) = &call {
            // All or none: after an error the client can send the same again, mended.
            call.lock().asks.check(&params.input_responses)?;
        }
        let answers: Vec<_> = params.input_responses.iter().collect();
        let answered =
            tasks.table.answer(owner, &params.task_id, answers, now).map_err(|_| no_such_task())?;
        Ok((answered, call))
    });
    match outcome {
        Ok((answered, call)) => {
            answer(shared, pending, Ok(b"{}".to_vec()));
            if let Some(changed) = answered.changed {
                service.task_changed(changed, now);
            }
            for (name, raw) in answered.accepted {
                if let Some(call) = &call {
                    call.deliver(&name, Ok(raw.to_owned()));
                }
            }
        }
        Err(error) => answer(shared, pending, Err(error)),
    }
}

/// `tasks/cancel`
pub(crate) fn cancel(
    shared: &Shared,
    pending: Pending<CancelTask>,
    id: &str,
    version: ProtocolVersion,
    features: ClientFeatures,
) {
    let service = &shared.service;
    let now = service.now(shared);
    let outcome = demand_extension(version, features).and_then(|()| {
        let owner = owner(shared, version);
        service.tasks().table.cancel(owner.as_deref(), id, now).map_err(|_| no_such_task())
    });
    let body = match outcome {
        Ok(Cancelled::Now(changed)) => {
            let call = service.tasks().running.get(&changed.key.id()).and_then(|r| r.call.upgrade());
            if let Some(call) = call {
                end(&call);
                call.cancel();
            }
            service.task_changed(changed, now);
            service.tasks().running.remove(&changed.key.id());
            Ok(())
        }
        // The extension acknowledges, the core refuses. [spec: 2025-11-25 basic/utilities/tasks#task-cancellation]
        Ok(_) if version.has_tasks_extension() => Ok(()),
        Ok(_) => Err(Error::invalid_params("The task has ended")),
        Err(error) => Err(error),
    };
    let body = body.map(|()| {
        let mut out = Vec::new();
        let owner = owner(shared, version);
        let tasks = service.tasks();
        match tasks.table.get(owner.as_deref(), id, now) {
            Ok(task) if version.has_core_tasks() => write_task(&mut out, task, version, false),
            _ => out.extend_from_slice(b"{}"),
        }
        out
    });
    answer(shared, pending, body);
}

/// `tasks/result` of 2025-11-25: waits for the end.
pub(crate) fn result(shared: &Arc<Shared>, pending: Pending<TaskResult>, id: &str) {
    let service = &shared.service;
    let version = ProtocolVersion::LATEST_LEGACY;
    let owner = owner(shared, version);
    let now = service.now(shared);
    let mut tasks = service.tasks();
    let body = match tasks.table.get(owner.as_deref(), id, now) {
        Err(_) => Err(no_such_task()),
        Ok(task) => match final_result(task) {
            Some(body) => body,
            None => {
                let key = task.id;
                tasks.waiting.push((key, Arc::downgrade(shared), pending.key()));
                drop(tasks);
                let mut state = shared.lock();
                let state = &mut *state;
                if let (Some(streaming), Some(slot)) =
                    (&mut state.streaming, state.connection.slot(pending.key()))
                {
                    streaming.await_task(&key.to_string(), slot.stream);
                }
                return;
            }
        },
    };
    drop(tasks);
    answer(shared, pending, body);
}

/// `tasks/list` of 2025-11-25.
pub(crate) fn list(shared: &Shared, pending: Pending<ListTasks>, cursor: Option<&str>) {
    let service = &shared.service;
    let version = ProtocolVersion::LATEST_LEGACY;
    let owner = owner(shared, version).unwrap_or_default();
    let now = service.now(shared);
    let tasks = service.tasks();
    let body = match tasks.table.list(&owner, cursor, PAGE, now) {
        Err(_) => Err(unfit("cursor", "a cursor of this list", None)),
        Ok(page) => {
            let mut out = b"{\"tasks\":[".to_vec();
            for (at, task) in page.tasks.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_task(&mut out, task, version, false);
            }
            out.push(b']');
            if let Some(next) = &page.next_cursor {
                out.extend_from_slice(b",\"nextCursor\":");
                write_str(&mut out, next);
            }
            out.push(b'}');
            Ok(out)
        }
    };
    drop(tasks);
    answer(shared, pending, body);
}

/// What `tasks/result` answers; `None` while the task goes on. The underlying result, tied to the task.
fn final_result(task: &Snapshot) -> Option<Result<Vec<u8>, Error>> {
    match (&task.outcome, task.status) {
        (Some(Outcome::Result { json, .. }), _) => {
            let members = Members::from_json(json.get()).unwrap_or_default();
            let own =
                members.get("_meta").and_then(|meta| Members::from_json(meta.get())).unwrap_or_default();
            let mut out = b"{".to_vec();
            write_related_task(&mut out, &task.id.to_string());
            write_members(&mut out, own.iter().filter(|(name, _)| *name != meta::key::RELATED_TASK));
            out.push(b'}');
            write_members(&mut out, members.iter().filter(|(name, _)| *name != "_meta"));
            out.push(b'}');
            Some(Ok(out))
        }
        (Some(Outcome::Error { json }), _) => {
            Some(Err(Error::from_json(json.get()).unwrap_or_else(Error::internal)))
        }
        (None, Status::Cancelled) => Some(Err(Error::invalid_params("The task was cancelled"))),
        _ => None,
    }
}

/// Appends members to an object that has one already.
fn write_members<'b>(out: &mut Vec<u8>, members: impl Iterator<Item = (&'b str, &'b RawValue)>) {
    for (name, value) in members {
        out.push(b',');
        write_str(out, name);
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
    }
}

/// Appends a task as the revision has it. `detailed`: with the result, error or open questions (extension).
fn write_task(out: &mut Vec<u8>, task: &Snapshot, version: ProtocolVersion, detailed: bool) {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let core = version.has_core_tasks();
    let mut wire = Task::new(task.id.to_string(), task.created_at.to_rfc3339())
        .status(if core { task.core_status() } else { task.status })
        .last_updated_at(task.last_updated_at.to_rfc3339());
    wire.status_message = task.status_message.clone().map(Str::Owned);
    wire.ttl_ms = task.ttl.map(millis);
    wire.poll_interval_ms = task.poll_interval.map(millis);
    // A task always has a JSON form in the revisions that have tasks.
    if wire.write(out, version).is_err() || core || !detailed {
        return;
    }
    // What the status brings along is JSON already: its place is before the closing brace.
    out.pop();
    match (&task.outcome, task.status) {
        (Some(Outcome::Result { json, .. }), _) => write_member(out, "result", json.get()),
        (Some(Outcome::Error { json }), _) => write_member(out, "error", json.get()),
        (None, Status::InputRequired) => {
            let questions = serde_json::to_string(&task.input_requests).unwrap_or_else(|_| "{}".into());
            write_member(out, "inputRequests", &questions);
        }
        _ => {}
    }
    out.push(b'}');
}

fn write_member(out: &mut Vec<u8>, name: &str, json: &str) {
    out.push(b',');
    write_str(out, name);
    out.push(b':');
    out.extend_from_slice(json.as_bytes());
}

impl Service {
    /// The wall clock, or the time of the last turn of the stream or of any HTTP request if there is none.
    pub(crate) fn now(&self, shared: &Shared) -> UnixTime {
        match self.0.clock.get() {
            Some(clock) => clock(),
            // A call that has become a task may outlive all turns of its own exchange.
            None => shared.lock().unix.max(UnixTime::from_millis(self.0.seen.load(Ordering::Relaxed))),
        }
    }

    /// It is this late for all streams.
    pub(crate) fn saw(&self, now: UnixTime) {
        self.0.seen.fetch_max(now.as_millis(), Ordering::Relaxed);
    }

    /// Tells whoever waits for or watches a task.
    fn task_changed(&self, changed: Changed, now: UnixTime) {
        let mut tasks = self.tasks();
        let Some(task) = tasks.table.task(changed.key, now).cloned() else { return };
        let watched = tasks.running.get(&changed.key.id()).and_then(|r| Some((r.call.upgrade()?, r.version)));
        let waiting = match final_result(&task) {
            Some(_) => take_waiting(&mut tasks.waiting, changed.key),
            None => Vec::new(),
        };
        drop(tasks);
        for (shared, key) in waiting {
            if let Some(body) = final_result(&task) {
                answer(&shared, Pending::<TaskResult>::new(key), body);
            }
        }
        let mut body = Vec::new();
        write_task(&mut body, &task, ProtocolVersion::LATEST, true);
        if let Ok(body) = core::str::from_utf8(&body) {
            self.publish(&Change::Task { id: &task.id.to_string(), body });
        }
        if let Some((call, version)) = watched.filter(|(_, version)| version.has_core_tasks()) {
            let mut state = call.shared.lock();
            let state = &mut *state;
            let _ = state.connection.notify("notifications/tasks/status", &mut state.out, |out| {
                write_task(out, &task, version, false);
            });
            state.wake_driver();
        }
    }

    /// When a task expires, on the clock of the stream.
    pub(crate) fn next_task_deadline(&self, now: Instant, unix: UnixTime) -> Option<Instant> {
        let at = self.tasks().table.next_deadline()?;
        Some(now + Duration::from_millis(at.as_millis().saturating_sub(unix.as_millis()).saturating_add(1)))
    }

    /// Removes the tasks whose time is over.
    pub(crate) fn expire_tasks(&self, unix: UnixTime) {
        loop {
            let mut tasks = self.tasks();
            let Some(expired) = tasks.table.expire(unix) else { return };
            tasks.scoped.remove(&expired.key.id());
            let call = tasks.running.remove(&expired.key.id()).and_then(|running| running.call.upgrade());
            let waiting = take_waiting(&mut tasks.waiting, expired.key);
            drop(tasks);
            if let Some(call) = call {
                end(&call);
                call.cancel();
            }
            for (shared, key) in waiting {
                answer(&shared, Pending::<Untyped>::new(key), Err(no_such_task()));
            }
        }
    }

    /// Those of the tasks that exist for this caller.
    pub(crate) fn owned_tasks(&self, ids: &[Str], shared: &Shared, version: ProtocolVersion) -> Vec<Str> {
        let owner = owner(shared, version);
        let now = self.now(shared);
        let tasks = self.tasks();
        ids.iter().filter(|id| tasks.table.get(owner.as_deref(), id, now).is_ok()).cloned().collect()
    }
}

fn take_waiting(
    waiting: &mut Vec<(TaskId, Weak<Shared>, RequestKey)>,
    key: TaskKey,
) -> Vec<(Arc<Shared>, RequestKey)> {
    let mut taken = Vec::new();
    waiting.retain(|(task, shared, request)| {
        if *task == key.id() {
            taken.extend(shared.upgrade().map(|shared| (shared, *request)));
        }
        *task != key.id()
    });
    taken
}
