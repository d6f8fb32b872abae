//! Answering: what a handler may do with the right to answer, whatever the transport is.

use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::config::Config;
use super::event::Refusal;
use super::features::ClientFeatures;
use super::inflight::Slot;
use super::pending::{Delivery, Pending, RequestKey};
use super::route::End;
use crate::model::LoggingLevel;
use crate::model::method::{MayBecomeTask, MayRequireInput, Method};
use crate::model::result::ResultBody;
use crate::model::{InputRequired, Meta, ProtocolVersion, view};
use crate::rpc::{self, Error, ProgressToken, code, write_notification, write_str};

/// How far a call has come. [spec: basic/patterns/progress]
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Must grow with every message; one that does not is not sent.
    pub progress: f64,
    /// Where it ends, if known.
    pub total: Option<f64>,
    /// What is going on.
    pub message: Option<&'a str>,
}

impl<'a> Progress<'a> {
    /// Progress without a total.
    #[must_use]
    pub const fn new(progress: f64) -> Self {
        Self { progress, total: None, message: None }
    }

    /// With the number at which it ends.
    #[must_use]
    pub const fn of(mut self, total: f64) -> Self {
        self.total = Some(total);
        self
    }

    /// With a word on what is going on.
    #[must_use]
    pub const fn message(mut self, message: &'a str) -> Self {
        self.message = Some(message);
        self
    }
}

/// A log message. [spec: server/utilities/logging]
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Log<'a> {
    /// How bad it is.
    pub level: LoggingLevel,
    /// Who says so.
    pub logger: Option<&'a str>,
    /// Any JSON.
    pub data: &'a RawValue,
}

impl<'a> Log<'a> {
    /// A message with any JSON as its data.
    #[must_use]
    pub const fn new(level: LoggingLevel, data: &'a RawValue) -> Self {
        Self { level, logger: None, data }
    }

    /// With the name of who says so.
    #[must_use]
    pub const fn logger(mut self, logger: &'a str) -> Self {
        self.logger = Some(logger);
        self
    }

    /// Appends the notification, tied to a task if there is one.
    pub(crate) fn write(&self, task: Option<&str>, out: &mut Vec<u8>) {
        write_notification(out, "notifications/message", |out| {
            out.push(b'{');
            if let Some(task) = task {
                write_related_task(out, task);
                out.extend_from_slice(b"},");
            }
            out.extend_from_slice(b"\"level\":");
            write_str(out, self.level.as_str());
            if let Some(logger) = self.logger {
                out.extend_from_slice(b",\"logger\":");
                write_str(out, logger);
            }
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(self.data.get().as_bytes());
            out.push(b'}');
        });
    }
}

/// The client did not declare what a question needs. The request is still open: answer it otherwise, or
/// refuse it with [`Channel::refuse_missing`].
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct MissingCapability<M> {
    /// The right to answer.
    pub pending: Pending<M>,
    /// All that would have to be declared besides.
    pub required: ClientFeatures,
}

/// Why a request could not become a task. It is still open.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub enum NoTask<M> {
    /// 2026-07-28: the client did not declare the extension. Answer otherwise, or refuse it with
    /// [`Channel::refuse_missing`].
    MissingCapability(MissingCapability<M>),
    /// 2025-11-25: the request did not ask for a task, and only those that do get one. Before, there are
    /// no tasks. Answer otherwise.
    NotAsked(Pending<M>),
}

impl<M> NoTask<M> {
    /// The right to answer otherwise.
    pub fn into_pending(self) -> Pending<M> {
        match self {
            Self::MissingCapability(missing) => missing.pending,
            Self::NotAsked(pending) => pending,
        }
    }
}

impl<M> MissingCapability<M> {
    /// The error to answer with: `-32021` with `data.requiredCapabilities` in 2026-07-28; older revisions
    /// have no code for it and get `-32600`.
    #[must_use]
    pub fn error(&self, version: ProtocolVersion) -> Error {
        missing_capability(self.required, version)
    }
}

/// See [`MissingCapability::error`].
#[must_use]
pub fn missing_capability(required: ClientFeatures, version: ProtocolVersion) -> Error {
    let error = Error::new(
        version.missing_capability_code(),
        alloc::format!("The client did not declare a capability that this needs: {required}"),
    );
    let data = alloc::format!(r#"{{"requiredCapabilities":{required}}}"#);
    match serde_json::from_str::<&RawValue>(&data) {
        Ok(data) if error.code == code::MISSING_REQUIRED_CLIENT_CAPABILITY => error.with_data(data),
        _ => error,
    }
}

/// Answers and messages for open requests. Implemented by each transport's machine and by nothing else.
pub trait Channel: sealed::Sealed {
    /// Answers with a result.
    fn respond<M: Method>(&mut self, pending: Pending<M>, result: &M::Result, out: &mut Vec<u8>) -> Delivery {
        self.finish(pending.key, true, out, |out, slot, config| {
            write_result(out, slot, config, "complete", result.meta(), |out| {
                result.write(slot.version, out).is_ok()
            })
        })
    }

    /// Answers with a result whose members are written already: the JSON text of an object as the
    /// request's revision has it, without `resultType`. It may have a `_meta` only in a legacy answer.
    fn respond_raw<M>(&mut self, pending: Pending<M>, body: &[u8], out: &mut Vec<u8>) -> Delivery {
        self.finish(pending.key, true, out, |out, slot, config| {
            write_result(out, slot, config, "complete", None, |out| {
                out.extend_from_slice(body);
                true
            })
        })
    }

    /// Answers with what `body` appends: the JSON text of an object as the request's revision has it,
    /// without `resultType` and `_meta`; or with the error it returns.
    fn respond_with<M>(
        &mut self,
        pending: Pending<M>,
        out: &mut Vec<u8>,
        body: impl FnOnce(&mut Vec<u8>, ProtocolVersion) -> Result<(), Error>,
    ) -> Delivery {
        self.finish(pending.key, true, out, |out, slot, config| {
            let start = out.len();
            let mut failed = None;
            let end =
                write_result(out, slot, config, "complete", None, |out| match body(out, slot.version) {
                    Ok(()) => true,
                    Err(error) => {
                        failed = Some(error);
                        false
                    }
                });
            let Some(error) = failed else { return end };
            out.truncate(start);
            rpc::write_error(out, Some(&slot.id), &error);
            End::Failed(error.code)
        })
    }

    /// Answers with questions. Only compiles for the methods that the specification allows it for.
    ///
    /// Towards a legacy client the questions are sent as requests, and the call comes back as
    /// [`Event::Resumed`](super::Event::Resumed) when they are answered.
    ///
    /// # Errors
    ///
    /// The client did not declare what one of the questions needs; nothing was written.
    fn require_input<M: MayRequireInput>(
        &mut self,
        pending: Pending<M>,
        input: &InputRequired,
        out: &mut Vec<u8>,
    ) -> Result<Delivery, MissingCapability<M>> {
        let Some(slot) = self.slot(pending.key) else { return Ok(Delivery::Discarded) };
        if let Some(required) = slot.features.missing(input.input_requests.iter().map(|(_, q)| q)) {
            return Err(MissingCapability { pending, required });
        }
        if !slot.version.is_modern() {
            return Ok(self.bridge(pending.key, input, out));
        }
        Ok(self.finish(pending.key, true, out, |out, slot, config| {
            // An answer that asks for nothing is none: it becomes an error of ours.
            write_result(out, slot, config, "input_required", input.meta(), |out| {
                !input.is_empty() && view::write(out, slot.version, input).is_ok()
            })
        }))
    }

    /// Answers with a task: `body` is the JSON text of the task object as the request's revision has it.
    /// Only compiles for the methods that the specification allows it for. The task must be readable
    /// before this is called.
    ///
    /// In 2025-11-25 progress and log messages of the task go on under the request's key, until
    /// [`Connection::end_task`](super::Connection::end_task); tasks of 2026-07-28 have neither.
    ///
    /// # Errors
    ///
    /// The client did not declare the tasks extension (2026-07-28), or the request did not ask for a task
    /// (before); nothing was written.
    fn become_task<M: MayBecomeTask>(
        &mut self,
        pending: Pending<M>,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Delivery, NoTask<M>> {
        let Some(slot) = self.slot(pending.key) else { return Ok(Delivery::Discarded) };
        if slot.asks_task {
            self.begin_task(pending.key, body);
        } else if !slot.version.is_modern() {
            return Err(NoTask::NotAsked(pending));
        } else if !slot.features.tasks_extension {
            let required = ClientFeatures::TASKS;
            return Err(NoTask::MissingCapability(MissingCapability { pending, required }));
        }
        Ok(self.finish(pending.key, true, out, |out, slot, config| {
            write_result(out, slot, config, "task", None, |out| {
                if slot.version.has_core_tasks() {
                    out.extend_from_slice(b"{\"task\":");
                    out.extend_from_slice(body);
                    out.push(b'}');
                } else {
                    out.extend_from_slice(body);
                }
                true
            })
        }))
    }

    /// Answers with an error.
    fn fail<M>(&mut self, pending: Pending<M>, error: &Error, out: &mut Vec<u8>) -> Delivery {
        self.finish(pending.key, false, out, |out, slot, _| {
            rpc::write_error(out, Some(&slot.id), error);
            End::Failed(error.code)
        })
    }

    /// Answers with the error that a refusal carries.
    fn refuse(&mut self, refusal: Refusal, out: &mut Vec<u8>) -> Delivery {
        self.fail(refusal.pending, &refusal.error, out)
    }

    /// Answers that the client lacks a capability.
    fn refuse_missing<M>(&mut self, missing: MissingCapability<M>, out: &mut Vec<u8>) -> Delivery {
        let Some(slot) = self.slot(missing.pending.key) else { return Delivery::Discarded };
        let error = missing.error(slot.version);
        self.fail(missing.pending, &error, out)
    }

    /// Reports progress. Discarded unless the request carries a token and the value has grown.
    fn progress<M>(&mut self, pending: &Pending<M>, progress: Progress<'_>, out: &mut Vec<u8>) -> Delivery {
        self.progress_of(pending.key, progress, out)
    }

    /// Logs in the course of a request. Discarded below the level that the client asked for.
    fn log<M>(&mut self, pending: &Pending<M>, log: Log<'_>, out: &mut Vec<u8>) -> Delivery {
        self.log_of(pending.key, log, out)
    }

    /// [`progress`](Self::progress) by the request's name, for those who keep the right to answer elsewhere.
    fn progress_of(&mut self, key: RequestKey, progress: Progress<'_>, out: &mut Vec<u8>) -> Delivery;

    /// [`log`](Self::log) by the request's name.
    fn log_of(&mut self, key: RequestKey, log: Log<'_>, out: &mut Vec<u8>) -> Delivery;
}

pub(crate) mod sealed {
    use super::{Config, Delivery, End, InputRequired, RequestKey, Slot};
    use alloc::vec::Vec;

    #[allow(unreachable_pub, unnameable_types)] // the seal: reachable by no one, on purpose
    pub trait Sealed {
        fn slot(&self, key: RequestKey) -> Option<&Slot>;
        /// Takes the request out of the table and writes its answer; `granted` unless it is an error.
        fn finish(
            &mut self,
            key: RequestKey,
            granted: bool,
            out: &mut Vec<u8>,
            write: impl FnOnce(&mut Vec<u8>, &Slot, &Config) -> End,
        ) -> Delivery;
        /// Keeps what the task of a 2025-11-25 request needs from it; `task` is the JSON text of the task.
        fn begin_task(&mut self, key: RequestKey, task: &[u8]);
        /// Sends the questions to a legacy client.
        fn bridge(&mut self, key: RequestKey, input: &InputRequired, out: &mut Vec<u8>) -> Delivery;
    }
}

/// Appends a result response. `body` appends an object; what belongs to every result of the revision is put
/// in front of its members without copying them. A body that cannot be written becomes `-32603`.
pub(crate) fn write_result(
    out: &mut Vec<u8>,
    slot: &Slot,
    config: &Config,
    result_type: &str,
    meta: Option<&Meta>,
    body: impl FnOnce(&mut Vec<u8>) -> bool,
) -> End {
    let start = out.len();
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    slot.id.write(out);
    out.extend_from_slice(b",\"result\":");
    let open = out.len();
    if slot.version.is_modern() {
        out.extend_from_slice(b"{\"resultType\":\"");
        out.extend_from_slice(result_type.as_bytes());
        out.extend_from_slice(b"\",");
        out.extend_from_slice(&config.modern_meta);
        write_meta_members(out, meta, true);
        out.push(b'}');
    } else if let Some(meta) = meta.filter(|m| !m.is_empty()) {
        out.extend_from_slice(b"{\"_meta\":{");
        write_meta_members(out, Some(meta), false);
        out.push(b'}');
    }
    if !splice(out, open, body) {
        out.truncate(start);
        rpc::write_error(out, Some(&slot.id), &Error::internal());
        return End::Failed(code::INTERNAL_ERROR);
    }
    out.push(b'}');
    End::Done
}

/// Appends the object that `body` writes, joined to the members that stand since `open`, if any.
pub(crate) fn splice(out: &mut Vec<u8>, open: usize, body: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
    let at = out.len();
    if !body(out) || out.get(at) != Some(&b'{') {
        return false;
    }
    if at > open {
        // `{"a":1` + `{"b":2}` -> `{"a":1,"b":2}`: the second brace becomes the comma.
        let empty = out[at + 1..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'}');
        out[at] = if empty { b' ' } else { b',' };
        if empty {
            out.truncate(at);
            out.push(b'}');
        }
    }
    true
}

fn write_meta_members(out: &mut Vec<u8>, meta: Option<&Meta>, mut comma: bool) {
    for (key, value) in meta.into_iter().flat_map(Meta::iter) {
        if core::mem::replace(&mut comma, true) {
            out.push(b',');
        }
        write_str(out, key);
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
    }
}

/// Appends a number as JSON writes it shortest: whole numbers without a fraction. The number is finite.
pub(crate) fn write_number(out: &mut Vec<u8>, number: f64) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number > -EXACT && number < EXACT && (number as i64) as f64 == number {
        out.extend_from_slice(itoa::Buffer::new().format(number as i64).as_bytes());
    } else if let Ok(text) = serde_json::to_vec(&number) {
        out.extend_from_slice(&text);
    }
}

/// Appends `"_meta":{` and what ties a message to a task of 2025-11-25, without what closes it.
pub(crate) fn write_related_task(out: &mut Vec<u8>, task: &str) {
    out.extend_from_slice(b"\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":");
    write_str(out, task);
    out.push(b'}');
}

/// Appends `notifications/progress`, as the revision has it, tied to a task if there is one. Discarded
/// without a token or without growth over `last`.
pub(crate) fn write_progress(
    out: &mut Vec<u8>,
    version: ProtocolVersion,
    task: Option<&str>,
    token: Option<&ProgressToken>,
    last: &mut Option<f64>,
    value: Progress<'_>,
) -> Delivery {
    let Some(token) = token else { return Delivery::Discarded };
    let grows = last.is_none_or(|last| value.progress > last);
    if !value.progress.is_finite() || !grows {
        return Delivery::Discarded;
    }
    *last = Some(value.progress);
    write_notification(out, "notifications/progress", |out| {
        out.push(b'{');
        if let Some(task) = task {
            write_related_task(out, task);
            out.extend_from_slice(b"},");
        }
        out.extend_from_slice(b"\"progressToken\":");
        token.write(out);
        out.extend_from_slice(b",\"progress\":");
        write_number(out, value.progress);
        if let Some(total) = value.total.filter(|t| t.is_finite()) {
            out.extend_from_slice(b",\"total\":");
            write_number(out, total);
        }
        if let Some(message) = value.message.filter(|_| version.has_progress_message()) {
            out.extend_from_slice(b",\"message\":");
            write_str(out, message);
        }
        out.push(b'}');
    });
    Delivery::Written
}
