//! Rounds of input within a call. [spec: basic/patterns/mrtr]

use alloc::boxed::Box;
use alloc::string::String;
use core::mem;

use serde_json::value::RawValue;

use super::Engine;
use super::table::{Asking, Call, How, Retry, Stage};
use super::task::Driven;
use crate::client::config::{CallOptions, Rounds};
use crate::client::error::CallError;
use crate::client::event::{CallId, Event, Round};
use crate::client::outbox::Outbox;
use crate::client::parked::Parked;
use crate::model::method::ServerMethod;
use crate::model::{InputRequests, InputRequired, InputResponses, Json, Members, Str};
use crate::rpc::de;
use crate::time::Instant;

impl Engine {
    /// The server wants input before it answers.
    pub(super) fn input_required<'b, O: Outbox>(
        &mut self,
        id: CallId,
        result: &'b RawValue,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        let required: InputRequired = match de::from_str(result.get()) {
            Ok(required) => required,
            Err(fault) => return self.fail(id, CallError::malformed(fault.within("/result"))),
        };
        if required.is_empty() {
            let error = CallError::malformed("at /result: expected `inputRequests` or `requestState`");
            return self.fail(id, error);
        }
        let InputRequired { input_requests: requests, request_state: state, .. } = required;
        if let Err(error) = self.admit_round(id, &requests) {
            return self.fail(id, error);
        }
        let by_hand = self.table.get(id)?.how.rounds == Rounds::Manual;
        if requests.is_empty() && !by_hand {
            // "Again, perhaps elsewhere."
            self.table.update(id, |call| {
                call.retry = Some(Retry { responses: None, state });
                call.expect_answer(now);
            });
            self.send(id, now, out);
            return None;
        }
        let round = Round { requests: requests.clone(), of_task: false };
        self.table.drop_token(id);
        self.table.update(id, |call| {
            call.stage = Stage::Asking(Box::new(Asking { requests, state, since: now }));
        });
        Some(Event::InputRequired { call: id, round })
    }

    /// Counts a round, and checks that only what was declared is asked for.
    pub(super) fn admit_round(&mut self, id: CallId, requests: &InputRequests) -> Result<(), CallError> {
        if requests.len() > self.config.limits.max_members {
            return Err(CallError::malformed("too many questions at once"));
        }
        if let Some(missing) = self.config.capabilities.missing(&requests.needs()) {
            return Err(CallError::Undeclared(missing));
        }
        let rounds = self.table.update(id, |call| {
            call.rounds = call.rounds.saturating_add(1);
            (call.rounds, call.how.rounds)
        });
        match rounds {
            Some((rounds, Rounds::Auto { max })) if rounds > max => Err(CallError::TooManyRounds),
            _ => Ok(()),
        }
    }

    /// Gives what a call waits for: the call goes on under a fresh id. Each question of a round must be
    /// answered; a task may be answered bit by bit. What was not asked is left out.
    pub(crate) fn answer<O: Outbox>(
        &mut self,
        id: CallId,
        responses: &InputResponses,
        now: Instant,
        out: &mut O,
    ) -> Result<(), CallError> {
        if !self.is_asking(id) {
            return Err(CallError::NoSuchCall);
        }
        let Some(call) = self.table.get(id) else { return Err(CallError::NoSuchCall) };
        let Stage::Asking(asking) = &call.stage else {
            return self.answer_task(id, responses, now, out);
        };
        let responses = answers(&asking.requests, responses)?;
        self.table.update(id, |call| {
            if let Stage::Asking(asking) = mem::replace(&mut call.stage, Stage::Sent) {
                call.retry = Some(Retry { responses, state: asking.state });
                // The time of this side does not count.
                call.cap = call.cap.map(|cap| cap + (now - asking.since));
            }
            call.expect_answer(now);
        });
        self.send(id, now, out);
        Ok(())
    }

    /// Takes a call that waits for input, or that has become a task, out of the machine.
    pub(crate) fn park(&mut self, id: CallId) -> Option<Parked> {
        let waits = matches!(self.table.get(id)?.stage, Stage::Asking(_) | Stage::Task(_));
        if !waits {
            return None;
        }
        let call = self.table.remove(id)?;
        let (requests, state, task_id) = match call.stage {
            Stage::Asking(asking) => (asking.requests, asking.state, None),
            Stage::Task(task) => (InputRequests::new(), None, Some(task.id)),
            _ => return None,
        };
        Some(Parked {
            method: call.method,
            params: call.params.into(),
            subject: call.subject.map(String::from),
            requests: serde_json::to_string(&requests).ok()?,
            state,
            task_id,
            rounds: call.rounds,
        })
    }

    /// Goes on with a call that was parked, here or in another process.
    pub(crate) fn resume<O: Outbox>(
        &mut self,
        parked: Parked,
        responses: &InputResponses,
        options: &CallOptions,
        now: Instant,
        out: &mut O,
    ) -> Result<CallId, CallError> {
        let params = Json::parse(&parked.params).map_err(CallError::malformed_params)?;
        if !params.is_object() {
            return Err(CallError::malformed_params("the params must be an object"));
        }
        let requests = parked.requests().map_err(CallError::malformed_params)?;
        let (retry, stage) = match parked.task_id {
            None => {
                let responses = answers(&requests, responses)?;
                (Some(Retry { responses, state: parked.state }), Stage::Queued)
            }
            Some(id) => (None, Stage::Task(Box::new(Driven::resumed(id)))),
        };
        let how = How::of(options);
        let call = Call {
            known: ServerMethod::parse(&parked.method),
            subject: parked.subject.map(String::into_boxed_str),
            cap: options.max_time.map(|most| now + most),
            retry,
            rounds: parked.rounds,
            ..Call::new(parked.method, params.get().into(), stage, how, now)
        };
        self.open_call(call, now, out)
    }
}

/// The answers to these questions and no others, as the text of one object; `None` if nothing was asked.
fn answers(requests: &InputRequests, responses: &InputResponses) -> Result<Option<String>, CallError> {
    if requests.is_empty() {
        return Ok(None);
    }
    let mut given: Members<Json> = Members::new();
    for (key, _) in requests.iter() {
        match responses.members().get(key) {
            Some(answer) => {
                given.insert(key.clone(), answer.clone());
            }
            None => {
                return Err(CallError::malformed_params(alloc::format!(
                    "no answer to {:?}",
                    Str::as_ref(key)
                )));
            }
        }
    }
    serde_json::to_string(&given).map(Some).map_err(CallError::malformed_params)
}
