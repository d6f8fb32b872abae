//! Tasks on the wire: as the extension of 2026-07-28 has them, and as 2025-11-25 has them.
//! [spec: extensions/tasks]
//!
//! ```text
//!              2026-07-28                       2025-11-25
//! members      ttlMs, pollIntervalMs            ttl, pollInterval
//! creation     the task itself                  {"task": the task}
//! tasks/get    the task with its outcome        the task; the outcome by tasks/result
//! ```

use alloc::{boxed::Box, vec::Vec};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeStruct};

use super::{
    InputRequests, Json, Meta, ProtocolVersion, ResultBody, Str, json, number,
    view::{self, WriteError},
};
use crate::rpc;

names! {
    /// Where a task stands.
    pub enum TaskStatus {
        /// It is at work.
        Working = "working",
        /// It waits for answers of the client.
        InputRequired = "input_required",
        /// It has a result. In 2026-07-28 also if the result says that the tool failed.
        Completed = "completed",
        /// It has an error. In 2025-11-25 also if there is a result that says that the tool failed.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// Whether the task is over: no other status can follow.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Whether `next` may follow. A status may be told again.
    #[must_use]
    pub const fn can_become(self, next: Self) -> bool {
        !self.is_terminal() || self as u8 == next as u8
    }
}

/// Work that outlives its request.
///
/// Serialises as 2026-07-28 has it; [`Task::write`] writes it as any revision has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// Names the task. Hard to guess, for whoever knows it may ask for the task.
    pub task_id: Str,
    /// Where it stands.
    pub status: TaskStatus,
    /// More about the status, for people.
    pub status_message: Option<Str>,
    /// When it was made, as an ISO 8601 time.
    pub created_at: Str,
    /// When it last changed, as an ISO 8601 time.
    pub last_updated_at: Str,
    /// How long it is kept after it was made, in milliseconds; `None` = without bound, written as
    /// `null`.
    pub ttl_ms: Option<u64>,
    /// How long to wait before asking again, in milliseconds.
    pub poll_interval_ms: Option<u64>,
}

impl Task {
    /// A task at work, made at this ISO 8601 time, kept without bound.
    #[must_use]
    pub fn new(task_id: impl Into<Str>, created_at: impl Into<Str>) -> Self {
        let created_at = created_at.into();
        Self {
            task_id: task_id.into(),
            status: TaskStatus::Working,
            status_message: None,
            last_updated_at: created_at.clone(),
            created_at,
            ttl_ms: None,
            poll_interval_ms: None,
        }
    }

    setters! { status_message: Str }
    plain_setters! { ttl_ms: u64, poll_interval_ms: u64 }

    /// Sets where it stands.
    #[must_use]
    pub const fn status(mut self, status: TaskStatus) -> Self {
        self.status = status;
        self
    }

    /// Sets when it last changed, as an ISO 8601 time.
    #[must_use]
    pub fn last_updated_at(mut self, time: impl Into<Str>) -> Self {
        self.last_updated_at = time.into();
        self
    }

    /// The task as 2025-11-25 has it.
    #[must_use]
    pub const fn legacy(&self) -> LegacyTask<'_> {
        LegacyTask(self)
    }

    /// Appends the task object as `version` has it. Only for revisions that have tasks.
    pub fn write(&self, out: &mut Vec<u8>, version: ProtocolVersion) -> Result<(), WriteError> {
        if version.has_core_tasks() {
            view::write(out, version, &self.legacy())
        } else {
            view::write(out, version, self)
        }
    }

    fn members<S: SerializeStruct>(
        &self,
        object: &mut S,
        ttl: &'static str,
        poll: &'static str,
    ) -> Result<(), S::Error> {
        object.serialize_field("taskId", &self.task_id)?;
        object.serialize_field("status", &self.status)?;
        if let Some(message) = &self.status_message {
            object.serialize_field("statusMessage", message)?;
        }
        object.serialize_field("createdAt", &self.created_at)?;
        object.serialize_field("lastUpdatedAt", &self.last_updated_at)?;
        object.serialize_field(ttl, &self.ttl_ms)?; // K01: null is written
        if let Some(interval) = self.poll_interval_ms {
            object.serialize_field(poll, &interval)?;
        }
        Ok(())
    }
}

/// A task as 2025-11-25 has it, with `ttl` and `pollInterval`.
#[derive(Debug, Clone, Copy)]
pub struct LegacyTask<'a>(&'a Task);

const MEMBERS: usize = 7;

impl Serialize for Task {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Task", MEMBERS)?;
        self.members(&mut object, "ttlMs", "pollIntervalMs")?;
        object.end()
    }
}

impl Serialize for LegacyTask<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Task", MEMBERS)?;
        self.0.members(&mut object, "ttl", "pollInterval")?;
        object.end()
    }
}

/// The members of a task in both revisions, and those of its outcome.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a task")]
struct Members {
    task_id: Str,
    status: TaskStatus,
    status_message: Option<Str>,
    created_at: Str,
    last_updated_at: Str,
    #[serde(default, alias = "ttl", deserialize_with = "number::maybe_millis")]
    ttl_ms: Option<u64>,
    #[serde(default, alias = "pollInterval", deserialize_with = "number::maybe_millis")]
    poll_interval_ms: Option<u64>,
    input_requests: Option<InputRequests>,
    #[serde(default, deserialize_with = "json::present")]
    result: Option<Json>,
    error: Option<Json>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

/// Reads either form.
impl<'de> Deserialize<'de> for Task {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Members::deserialize(deserializer).map(Self::from)
    }
}

impl From<Members> for Task {
    fn from(members: Members) -> Self {
        Self {
            task_id: members.task_id,
            status: members.status,
            status_message: members.status_message,
            created_at: members.created_at,
            last_updated_at: members.last_updated_at,
            ttl_ms: members.ttl_ms,
            poll_interval_ms: members.poll_interval_ms,
        }
    }
}

/// A task with what its status brings along: the answer to `tasks/get` and the params of
/// `notifications/tasks`, with the tasks extension.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DetailedTask {
    /// The task.
    pub task: Task,
    /// What its status brings along.
    pub detail: TaskDetail,
    /// Metadata, written with the envelope.
    pub meta: Option<Meta>,
}

/// What the status of a task brings along.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TaskDetail {
    /// Nothing: it is at work, or was cancelled.
    None,
    /// `input_required`: all questions that are open.
    InputRequests(InputRequests),
    /// `completed`: the result, as the request would have been answered without a task; an object.
    Result(Json),
    /// `failed`: the error, as the request would have been answered without a task.
    Error(Box<rpc::Error>),
}

impl DetailedTask {
    /// A task whose status brings nothing along.
    #[must_use]
    pub const fn new(task: Task) -> Self {
        Self { task, detail: TaskDetail::None, meta: None }
    }

    /// The task waits for these answers.
    #[must_use]
    pub fn input_required(task: Task, requests: InputRequests) -> Self {
        Self::with(task.status(TaskStatus::InputRequired), TaskDetail::InputRequests(requests))
    }

    /// The task has this result: an object.
    #[must_use]
    pub fn completed(task: Task, result: Json) -> Self {
        Self::with(task.status(TaskStatus::Completed), TaskDetail::Result(result))
    }

    /// The task has this error.
    #[must_use]
    pub fn failed(task: Task, error: rpc::Error) -> Self {
        Self::with(task.status(TaskStatus::Failed), TaskDetail::Error(Box::new(error)))
    }

    setters! { meta: Meta }

    const fn with(task: Task, detail: TaskDetail) -> Self {
        Self { task, detail, meta: None }
    }
}

impl Serialize for DetailedTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("DetailedTask", MEMBERS + 1)?;
        self.task.members(&mut object, "ttlMs", "pollIntervalMs")?;
        match &self.detail {
            TaskDetail::None => {}
            TaskDetail::InputRequests(requests) => object.serialize_field("inputRequests", requests)?,
            TaskDetail::Result(result) => object.serialize_field("result", result)?,
            TaskDetail::Error(error) => object.serialize_field("error", &error_json::<S::Error>(error)?)?,
        }
        object.end()
    }
}

/// The error object as JSON.
fn error_json<E: serde::ser::Error>(error: &rpc::Error) -> Result<Json, E> {
    let mut out = Vec::new();
    error.write(&mut out);
    core::str::from_utf8(&out)
        .ok()
        .and_then(|text| Json::parse(text).ok())
        .ok_or_else(|| E::custom("no error object"))
}

/// A status that lacks what it must bring along is refused.
impl<'de> Deserialize<'de> for DetailedTask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members::deserialize(deserializer)?;
        let missing = D::Error::missing_field;
        let detail = match members.status {
            TaskStatus::Working | TaskStatus::Cancelled => TaskDetail::None,
            TaskStatus::InputRequired => {
                let requests = members.input_requests.take();
                TaskDetail::InputRequests(requests.ok_or_else(|| missing("inputRequests"))?)
            }
            TaskStatus::Completed => {
                let result = members.result.take().ok_or_else(|| missing("result"))?;
                if !result.is_object() {
                    return Err(D::Error::invalid_type(json::unexpected(&result), &"an object as `result`"));
                }
                TaskDetail::Result(result)
            }
            TaskStatus::Failed => {
                let error = members.error.take().ok_or_else(|| missing("error"))?;
                let error = rpc::Error::from_json(error.get());
                TaskDetail::Error(Box::new(
                    error.ok_or_else(|| D::Error::custom("expected an error object as `error`"))?,
                ))
            }
        };
        let meta = members.meta.take();
        Ok(Self { task: members.into(), detail, meta })
    }
}

impl ResultBody for DetailedTask {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// 2025-11-25 has the task alone, which has failed if its tool has.
    fn write(&self, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), WriteError> {
        if !version.has_core_tasks() {
            return view::write(out, version, self);
        }
        match &self.detail {
            TaskDetail::Result(result) if is_error(result) => {
                self.task.clone().status(TaskStatus::Failed).write(out, version)
            }
            _ => self.task.write(out, version),
        }
    }
}

fn is_error(result: &Json) -> bool {
    rpc::Members::from_json(result.get())
        .is_some_and(|result| result.get("isError").is_some_and(|flag| flag.get() == "true"))
}

/// Answer to `tasks/cancel`: in 2026-07-28 nothing but that the wish was heard, in 2025-11-25 the task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CancelTaskResult {
    /// The task as it is now.
    pub task: Task,
    /// Metadata, written with the envelope.
    pub meta: Option<Meta>,
}

impl CancelTaskResult {
    /// The task as it is now.
    #[must_use]
    pub const fn new(task: Task) -> Self {
        Self { task, meta: None }
    }

    setters! { meta: Meta }
}

/// As 2026-07-28 has it.
impl Serialize for CancelTaskResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_struct("CancelTaskResult", 0)?.end()
    }
}

impl ResultBody for CancelTaskResult {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    fn write(&self, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), WriteError> {
        if version.has_core_tasks() { self.task.write(out, version) } else { view::write(out, version, self) }
    }
}

/// The answer that a request has become a task. Serialises as 2026-07-28 has it;
/// [`ResultBody::write`] writes it as any revision has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task.
    pub task: Task,
    /// Metadata, written with the envelope.
    pub meta: Option<Meta>,
}

impl CreateTaskResult {
    /// The request has become this task.
    #[must_use]
    pub const fn new(task: Task) -> Self {
        Self { task, meta: None }
    }

    setters! { meta: Meta }
}

impl Serialize for CreateTaskResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.task.serialize(serializer)
    }
}

/// Reads either form.
impl<'de> Deserialize<'de> for CreateTaskResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", expecting = "a task")]
        struct Either {
            task: Option<Task>,
            task_id: Option<Str>,
            status: Option<TaskStatus>,
            status_message: Option<Str>,
            created_at: Option<Str>,
            last_updated_at: Option<Str>,
            #[serde(default, deserialize_with = "number::maybe_millis")]
            ttl_ms: Option<u64>,
            #[serde(default, deserialize_with = "number::maybe_millis")]
            poll_interval_ms: Option<u64>,
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }

        let flat = Either::deserialize(deserializer)?;
        if let Some(task) = flat.task {
            return Ok(Self { task, meta: flat.meta });
        }
        let missing = D::Error::missing_field;
        let task = Task {
            task_id: flat.task_id.ok_or_else(|| missing("taskId"))?,
            status: flat.status.ok_or_else(|| missing("status"))?,
            status_message: flat.status_message,
            created_at: flat.created_at.ok_or_else(|| missing("createdAt"))?,
            last_updated_at: flat.last_updated_at.ok_or_else(|| missing("lastUpdatedAt"))?,
            ttl_ms: flat.ttl_ms,
            poll_interval_ms: flat.poll_interval_ms,
        };
        Ok(Self { task, meta: flat.meta })
    }
}

impl ResultBody for CreateTaskResult {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    fn write(&self, version: ProtocolVersion, out: &mut Vec<u8>) -> Result<(), WriteError> {
        #[derive(Serialize)]
        struct Nested<'a> {
            task: LegacyTask<'a>,
        }

        if version.has_core_tasks() {
            view::write(out, version, &Nested { task: self.task.legacy() })
        } else {
            self.task.write(out, version)
        }
    }
}

/// Answer to `tasks/get` and `tasks/cancel` of 2025-11-25, and the params of its
/// `notifications/tasks/status`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LegacyTaskResult {
    /// The task.
    pub task: Task,
    /// Metadata, written with the envelope.
    pub meta: Option<Meta>,
}

impl LegacyTaskResult {
    /// This task.
    #[must_use]
    pub const fn new(task: Task) -> Self {
        Self { task, meta: None }
    }

    setters! { meta: Meta }
}

impl Serialize for LegacyTaskResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.task.legacy().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LegacyTaskResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members::deserialize(deserializer)?;
        let meta = members.meta.take();
        Ok(Self { task: members.into(), meta })
    }
}

impl ResultBody for LegacyTaskResult {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }
}

/// Answer to `tasks/list` of 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListTasksResult {
    /// One page of tasks.
    pub tasks: Vec<Task>,
    /// Where the next page starts; absent on the last.
    pub next_cursor: Option<Str>,
    /// Metadata, written with the envelope.
    #[serde(rename = "_meta")]
    pub meta: Option<Meta>,
}

impl ListTasksResult {
    /// One page of tasks.
    #[must_use]
    pub fn new(tasks: impl Into<Vec<Task>>) -> Self {
        Self { tasks: tasks.into(), ..Self::default() }
    }

    setters! { next_cursor: Str, meta: Meta }
}

impl Serialize for ListTasksResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Page<'a> {
            tasks: Vec<LegacyTask<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            next_cursor: &'a Option<Str>,
        }

        let tasks = self.tasks.iter().map(Task::legacy).collect();
        Page { tasks, next_cursor: &self.next_cursor }.serialize(serializer)
    }
}

impl ResultBody for ListTasksResult {
    fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use ProtocolVersion as V;

    use super::*;
    use crate::{model::InputRequest, rpc::de};

    fn task() -> Task {
        Task::new("t", "2026-01-01T00:00:00Z").poll_interval_ms(60_000)
    }

    const HEAD: &str = r#"{"taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z""#;

    fn json(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn each_revision_has_its_own_members() {
        // K01, E09
        let write = |version| {
            let mut out = Vec::new();
            CreateTaskResult::new(task()).write(version, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let new = alloc::format!(r#"{HEAD},"ttlMs":null,"pollIntervalMs":60000}}"#);
        let old = alloc::format!(r#"{HEAD},"ttl":null,"pollInterval":60000}}"#);
        assert_eq!(write(V::V2026_07_28), new);
        assert_eq!(json(&task()), new);
        assert_eq!(write(V::V2025_11_25), alloc::format!(r#"{{"task":{old}}}"#));
        assert_eq!(json(&LegacyTaskResult::new(task())), old);
        assert_eq!(
            json(&ListTasksResult::new([task()]).next_cursor("c")),
            alloc::format!(r#"{{"tasks":[{old}],"nextCursor":"c"}}"#)
        );
        for text in [write(V::V2026_07_28), write(V::V2025_11_25)] {
            assert_eq!(de::from_str::<CreateTaskResult>(&text).unwrap().task, task());
        }
        assert_eq!(de::from_str::<LegacyTaskResult>(&old).unwrap().task, task());
        let timed = old.replace("null", "5.0");
        assert_eq!(de::from_str::<Task>(&timed).unwrap().ttl_ms, Some(5));
    }

    #[test]
    fn a_status_brings_its_detail_along() {
        // S-TASK-11, S-TASK-13, S-TASK-15, S-TASK-37
        let requests = InputRequests::from_iter([("k", InputRequest::ListRoots)]);
        for (detailed, tail) in [
            (DetailedTask::new(task()), ""),
            (
                DetailedTask::input_required(task(), requests),
                r#","inputRequests":{"k":{"method":"roots/list"}}"#,
            ),
            (
                DetailedTask::completed(task(), Json::parse(r#"{"content":[]}"#).unwrap()),
                r#","result":{"content":[]}"#,
            ),
            (
                DetailedTask::failed(task(), rpc::Error::internal()),
                r#","error":{"code":-32603,"message":"Internal error"}"#,
            ),
        ] {
            let text = json(&detailed);
            let head = HEAD.replace("working", detailed.task.status.as_str());
            assert_eq!(text, alloc::format!(r#"{head},"ttlMs":null,"pollIntervalMs":60000{tail}}}"#));
            assert_eq!(json(&de::from_str::<DetailedTask>(&text).unwrap()), text);
        }
        let bare = |status: &str| alloc::format!(r#"{},"ttlMs":1}}"#, HEAD.replace("working", status));
        for (status, lacks) in
            [("input_required", "inputRequests"), ("completed", "result"), ("failed", "error")]
        {
            let error = de::from_str::<DetailedTask>(&bare(status)).unwrap_err().to_string();
            assert!(error.contains(lacks), "{error}");
        }
        assert!(de::from_str::<DetailedTask>(&bare("cancelled")).is_ok());
        assert!(de::from_str::<DetailedTask>(&bare("done")).is_err());
    }

    #[test]
    fn what_is_over_stays_over() {
        use TaskStatus as S;
        for from in S::ALL {
            for to in S::ALL {
                assert_eq!(from.can_become(*to), !from.is_terminal() || from == to, "{from} to {to}");
            }
        }
        assert!(S::Working.can_become(S::InputRequired) && !S::Cancelled.can_become(S::Completed)); // K02
    }
}
