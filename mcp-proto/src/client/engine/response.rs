//! Answers to what this side asked.

use serde_json::value::RawValue;

use super::Engine;
use super::table::Stage;
use crate::client::error::CallError;
use crate::client::event::{CallId, Change, Completed, Event, Kind, Violation, ViolationKind};
use crate::client::outbox::{Origin, Outbox, Purpose};
use crate::model::method::ServerMethod;
use crate::model::{RequiredElicitations, Str, TASKS_EXTENSION};
use crate::rpc::{Error, Members, RequestId, code, de, str_from_json};
use crate::time::Instant;
use alloc::borrow::Cow;

/// What `resultType` says.
enum Type<'b> {
    Complete,
    InputRequired,
    Task,
    Unknown(Cow<'b, str>),
}

/// The request of ours that an id names. Ours are whole numbers; some servers answer with their digits as a
/// string, which can be nobody else's (E03).
pub(crate) fn wire_of(id: &RequestId) -> Option<i64> {
    if let Some(wire) = id.as_i64() {
        return Some(wire);
    }
    let text = id.as_str()?;
    let wire: i64 = text.parse().ok()?;
    (itoa::Buffer::new().format(wire) == text).then_some(wire)
}

impl Engine {
    /// Whether an answer to this request may come from there.
    pub(super) fn accepts(&self, wire: i64, origin: Origin) -> bool {
        match origin {
            Origin::Shared => true,
            Origin::Response(own) => own == wire,
        }
    }

    pub(super) fn response<'b, O: Outbox>(
        &mut self,
        id: RequestId,
        outcome: Result<&'b RawValue, Error>,
        origin: Origin,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        let strange = |kind, detail: &'static str| {
            Some(Event::Violation(Violation::new(kind, detail, Some(id.clone()))))
        };
        let Some(wire) = wire_of(&id) else {
            return strange(ViolationKind::UnknownResponse, "an answer with an id that was never used");
        };
        let Some(purpose) = self.table.purpose(wire) else {
            // A server that ends a subscription says so twice. [spec: basic/patterns/subscriptions#graceful-closure]
            if self.table.was_cancelled(wire) {
                return None;
            }
            return if self.table.was_used(wire) {
                strange(ViolationKind::Late, "an answer to a request that is over")
            } else {
                strange(ViolationKind::UnknownResponse, "an answer with an id that was never used")
            };
        };
        if !self.accepts(wire, origin) {
            return strange(ViolationKind::Misplaced, "an answer on the response to another request");
        }
        if let Ok(result) = outcome
            && !result.get().starts_with('{')
        {
            let error = CallError::malformed("at /result: expected an object");
            return self.fail_wire(wire, error, now, out);
        }
        self.table.close_wire(wire);
        let outcome = outcome.map_err(CallError::Rpc);
        match purpose {
            Purpose::Probe => self.probed(outcome, now, out),
            Purpose::Handshake => self.initialized(outcome, now, out),
            Purpose::Call(call) => self.answered(call, outcome, now, out),
            Purpose::Listen(call) => self.listen_answered(call, outcome),
            Purpose::Poll(call) => self.polled(call, outcome, now, out),
            Purpose::Outcome(call) => self.outcome(call, outcome),
            Purpose::Update(call) => self.updated(call, outcome, now),
            Purpose::Subscribe(call) => self.subscribed(call, wire, outcome.is_ok()),
            Purpose::Aside => None,
        }
    }

    /// An error about nothing that can be named. Over HTTP it is about the request that it answers.
    pub(super) fn anonymous_error<'b, O: Outbox>(
        &mut self,
        error: &Error,
        origin: Origin,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        if let Origin::Response(wire) = origin
            && self.table.purpose(wire).is_some()
        {
            return self.response(wire.into(), Err(error.clone()), origin, now, out);
        }
        Some(Event::Violation(Violation::new(ViolationKind::AnonymousError, error, None)))
    }

    fn answered<'b, O: Outbox>(
        &mut self,
        id: CallId,
        outcome: Result<&'b RawValue, CallError>,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        let result = match outcome {
            Ok(result) => result,
            Err(CallError::Rpc(error)) => return self.refused(id, error, now, out),
            Err(error) => return self.fail(id, error),
        };
        let kind = match read_type(result) {
            Ok(kind) => kind,
            Err(error) => return self.fail(id, error),
        };
        let call = self.table.get(id)?;
        let known = call.known;
        // 2025-11-25 says by the shape of the result that it is a task, and only where one was asked for.
        let became_task = call.asks_task && matches!(kind, Type::Complete) && has_task(result);
        match kind {
            _ if became_task => self.task_created(id, result, now),
            Type::Complete => self.complete(id, result, now),
            Type::InputRequired if may_require_input(known) && self.speaks_modern() => {
                self.input_required(id, result, now, out)
            }
            Type::Task if known == Some(ServerMethod::CallTool) && self.declares_tasks() => {
                self.task_created(id, result, now)
            }
            Type::InputRequired => self.fail(id, CallError::UnknownResultType("input_required".into())),
            Type::Task => self.fail(id, CallError::UnknownResultType("task".into())),
            Type::Unknown(kind) => self.fail(id, CallError::UnknownResultType(kind.into_owned())),
        }
    }

    fn speaks_modern(&self) -> bool {
        self.version().is_some_and(|version| version.is_modern())
    }

    /// Whether this side said that it knows the tasks extension.
    fn declares_tasks(&self) -> bool {
        self.speaks_modern() && self.config.capabilities.has_extension(TASKS_EXTENSION)
    }

    fn refused<'b, O: Outbox>(
        &mut self,
        id: CallId,
        error: Error,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        if error.code == code::UNSUPPORTED_PROTOCOL_VERSION
            && self.table.get(id).is_some_and(|call| call.version_retries < 2)
            && self.renegotiate(&error).is_some()
        {
            self.table.update(id, |call| call.version_retries += 1);
            self.send(id, now, out);
            return None;
        }
        if error.code == code::URL_ELICITATION_REQUIRED
            && self.version().is_some_and(|version| version.has_elicitation_ids())
            && let Some(data) = &error.data
            && let Ok(required) = de::from_str::<RequiredElicitations>(data.get())
        {
            return self.fail(id, CallError::UrlElicitationRequired(required.elicitations));
        }
        if error.code == code::INVALID_PARAMS {
            self.forget_pages(id);
        }
        self.fail(id, CallError::Rpc(error))
    }

    /// A cursor was refused: the list changed under the walk, and no page of it that was kept leads on.
    /// [spec: server/utilities/caching#pagination]
    fn forget_pages(&mut self, id: CallId) {
        let Some(call) = self.table.get(id) else { return };
        let change = match call.known {
            Some(ServerMethod::ListTools) => Change::Tools,
            Some(ServerMethod::ListPrompts) => Change::Prompts,
            Some(ServerMethod::ListResources | ServerMethod::ListResourceTemplates) => Change::Resources,
            _ => return,
        };
        if Members::from_json(&call.params).is_some_and(|params| params.get("cursor").is_some()) {
            self.cache.invalidate(&change);
        }
    }

    /// A call has its result.
    pub(super) fn complete<'b>(
        &mut self,
        id: CallId,
        result: &'b RawValue,
        now: Instant,
    ) -> Option<Event<'b>> {
        let call = self.table.remove(id)?;
        match call.known {
            Some(ServerMethod::Discover) => self.learn(result),
            Some(ServerMethod::ListTools) => self.tools.learn(result.get()),
            // Answers may come in another order than the calls were made in.
            Some(ServerMethod::SetLevel) if self.level.as_ref().is_none_or(|(last, _)| *last < id) => {
                self.level = Some((id, call.params.clone()));
            }
            _ => {}
        }
        self.keep(&call, result, now);
        Some(Event::Complete(self.completed(id, call.method, call.subject.as_deref(), Cow::Borrowed(result))))
    }

    pub(super) fn completed<'b>(
        &self,
        call: CallId,
        method: Str,
        subject: Option<&str>,
        result: Cow<'b, RawValue>,
    ) -> Completed<'b> {
        let of_tool = method == ServerMethod::CallTool.as_str();
        let tool = subject.filter(|_| of_tool).and_then(|name| self.tools.definition(name));
        Completed { call, result, cached: false, method, kind: Kind::Result, tool, mirrors: self.mirrors }
    }

    /// The stage of an open call, for those who ask whether it can be answered.
    pub(super) fn is_asking(&self, id: CallId) -> bool {
        self.table.get(id).is_some_and(|call| match &call.stage {
            Stage::Asking(_) => true,
            Stage::Task(task) => !task.open.is_empty(),
            _ => false,
        })
    }
}

const fn may_require_input(method: Option<ServerMethod>) -> bool {
    matches!(method, Some(ServerMethod::CallTool | ServerMethod::GetPrompt | ServerMethod::ReadResource))
}

/// Absent is complete. [spec: basic#resulttype]
fn read_type(result: &RawValue) -> Result<Type<'_>, CallError> {
    let members = Members::from_json(result.get())
        .ok_or_else(|| CallError::malformed("at /result: a member is given twice, or there are too many"))?;
    let Some(raw) = members.get("resultType") else { return Ok(Type::Complete) };
    let Some(kind) = str_from_json(raw.get()) else {
        return Err(CallError::malformed("at /result/resultType: expected a string"));
    };
    Ok(match &*kind {
        "complete" => Type::Complete,
        "input_required" => Type::InputRequired,
        "task" => Type::Task,
        _ => Type::Unknown(kind),
    })
}

fn has_task(result: &RawValue) -> bool {
    Members::from_json(result.get()).is_some_and(|members| members.get("task").is_some())
}
