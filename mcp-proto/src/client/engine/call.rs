//! Calls: from the params of the caller to bytes, and to their end.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::open::Phase;
use super::table::{Call, How, Stage};
use super::{Engine, write};
use crate::client::config::CallOptions;
use crate::client::error::CallError;
use crate::client::event::{CallId, Event};
use crate::client::gate;
use crate::client::outbox::{About, Notice, Outbox, Purpose};
use crate::client::request::Request;
use crate::http::mirror;
use crate::model::method::ServerMethod;
use crate::model::{Meta, ProtocolVersion, Str};
use crate::rpc::{self, Members, RequestId, write_str};
use crate::time::Instant;

impl Engine {
    /// Makes a call. It waits if it is not known yet what the server speaks.
    pub(crate) fn call<R: Request, O: Outbox>(
        &mut self,
        request: &R,
        options: &CallOptions,
        now: Instant,
        out: &mut O,
    ) -> Result<CallId, CallError> {
        let known = ServerMethod::parse(request.method());
        if matches!(known, Some(ServerMethod::Initialize | ServerMethod::Listen)) {
            return Err(CallError::NotOffered(Str::Owned(String::from(request.method()))));
        }
        let (params, legacy_params, meta) = self.params(request, known)?;
        let mut how = How::of(options);
        if let Some(meta) = meta {
            let all = how.meta.get_or_insert_default();
            for (name, value) in meta.iter() {
                all.insert(String::from(name), value.clone());
            }
        }
        let method = if R::METHOD.is_empty() {
            Str::Owned(String::from(request.method()))
        } else {
            Str::Borrowed(R::METHOD)
        };
        let call = Call {
            known,
            legacy_params,
            subject: subject(request, &params),
            cap: options.max_time.map(|most| now + most),
            ..Call::new(method, params.into_boxed_str(), Stage::Queued, how, now)
        };
        self.open_call(call, now, out)
    }

    /// Takes a call in, and sends it if that is possible now.
    pub(super) fn open_call<O: Outbox>(
        &mut self,
        call: Call,
        now: Instant,
        out: &mut O,
    ) -> Result<CallId, CallError> {
        if self.table.len() >= self.config.limits.max_calls {
            return Err(CallError::TooManyCalls);
        }
        match &self.phase {
            Phase::Unusable(error) => Err(error.clone()),
            Phase::Ready => {
                self.offered(&call)?;
                let cached = self.cached(&call, now);
                let id = self.table.insert(call);
                match cached {
                    Some(json) => self.complete_cached(id, json),
                    None => self.send(id, now, out),
                }
                Ok(id)
            }
            _ => {
                let id = self.table.insert(call);
                self.queue.insert(id);
                Ok(id)
            }
        }
    }

    /// The params as text; before the version is settled, in two forms if they differ.
    #[allow(clippy::type_complexity)] // used once
    fn params<R: Request>(
        &self,
        request: &R,
        known: Option<ServerMethod>,
    ) -> Result<(String, Option<Box<str>>, Option<Meta>), CallError> {
        if let Some(version) = self.version() {
            let (params, meta) = write::params(request, version)?;
            return Ok((params, None, meta));
        }
        let (params, meta) = write::params(request, ProtocolVersion::LATEST)?;
        // Only one method has params that differ.
        let oldest = self.config.legacy().min().filter(|_| known == Some(ServerMethod::Complete));
        let legacy = match oldest {
            Some(version) => Some(write::params(request, version)?.0.into_boxed_str()),
            None => None,
        };
        Ok((params, legacy, meta))
    }

    /// Whether the server has what is called.
    fn offered(&self, call: &Call) -> Result<(), CallError> {
        let Some(facts) = &self.facts else { return Ok(()) };
        // What was parked may be resumed where there is nothing of the kind.
        let goes_on = match &call.stage {
            Stage::Task(_) => facts.version.has_method(ServerMethod::GetTask),
            _ => call.retry.is_none() || facts.version.is_modern(),
        };
        if !goes_on {
            return Err(CallError::NotOffered(call.method.clone()));
        }
        let Some(known) = call.known else { return Ok(()) };
        let capabilities = facts.capabilities.as_ref().filter(|_| self.config.check_capabilities);
        if gate::offers(facts.version, capabilities, known) {
            Ok(())
        } else {
            Err(CallError::NotOffered(call.method.clone()))
        }
    }

    /// Sends a call that waited.
    pub(super) fn release<O: Outbox>(&mut self, id: CallId, now: Instant, out: &mut O) {
        let Some(call) = self.table.get(id) else { return };
        if let Err(error) = self.offered(call) {
            self.table.remove(id);
            return self.fail_later(id, error);
        }
        let legacy = self.version().is_some_and(|version| !version.is_modern());
        self.table.update(id, |call| {
            if let Some(params) = call.legacy_params.take().filter(|_| legacy) {
                call.params = params;
            }
        });
        if let Some(json) = self.table.get(id).and_then(|call| self.cached(call, now)) {
            return self.complete_cached(id, json);
        }
        self.send(id, now, out);
    }

    /// Sends a call under a fresh id.
    pub(super) fn send<O: Outbox>(&mut self, id: CallId, now: Instant, out: &mut O) {
        let Some(version) = self.version() else { return };
        let epoch = self.cache.epoch();
        match self.table.get(id).map(|call| &call.stage) {
            // It was resumed.
            Some(Stage::Task(_)) => return self.plan_poll(id, Some(now)),
            None => return,
            Some(Stage::Listen(_)) if !version.is_modern() => {
                return self.listen_legacy(id, version, now, out);
            }
            Some(_) => {}
        }
        let asks_task = self.table.get(id).is_some_and(|call| self.asks_task(call, version));
        let listens = self.table.get(id).is_some_and(|call| matches!(call.stage, Stage::Listen(_)));
        let wire = self.table.open_wire(if listens { Purpose::Listen(id) } else { Purpose::Call(id) });
        let progress = self.table.update(id, |call| {
            if !listens {
                call.stage = Stage::Sent;
            }
            if listens && call.due.is_none() {
                // It is opened again.
                call.expect_answer(now);
            }
            call.wire = Some(wire);
            call.epoch = epoch;
            call.asks_task = asks_task;
            call.how.progress
        });
        let Some(progress) = progress else { return };
        if progress {
            self.table.use_token(id, wire);
        }
        self.write_call(id, wire, version, out);
    }

    fn write_call<O: Outbox>(&self, id: CallId, wire: i64, version: ProtocolVersion, out: &mut O) {
        let Some(call) = self.table.get(id) else { return };
        let headers = match (self.mirrors, call.known, &call.subject) {
            (true, Some(ServerMethod::CallTool), Some(name)) => self.tools.headers(name),
            _ => &[],
        };
        let about = About {
            wire,
            purpose: self.table.purpose(wire).unwrap_or(Purpose::Aside),
            method: &call.method,
            version,
            headers,
        };
        let config = &self.config;
        out.request(&about, |out| write::call(config, call, wire, version, out));
    }

    /// Sends a request that no caller made: `params` is an object. Its id on the wire.
    pub(super) fn send_own<O: Outbox>(
        &mut self,
        purpose: Purpose,
        method: &'static str,
        version: ProtocolVersion,
        params: &str,
        out: &mut O,
    ) -> i64 {
        let wire = self.table.open_wire(purpose);
        let about = About { wire, purpose, method, version, headers: &[] };
        let config = &self.config;
        out.request(&about, |out| write::own(config, wire, method, version, out, params));
        wire
    }

    /// Sends what a request asked once more, under a fresh id: after the transport corrected something.
    pub(crate) fn resend<O: Outbox>(&mut self, wire: i64, now: Instant, out: &mut O) -> bool {
        match self.table.close_wire(wire) {
            Some(Purpose::Call(id) | Purpose::Listen(id)) => {
                self.send(id, now, out);
                true
            }
            Some(Purpose::Poll(id) | Purpose::Update(id) | Purpose::Outcome(id)) => {
                self.poll(id, now, out);
                true
            }
            _ => false,
        }
    }

    /// A call waits again until the server is ready.
    pub(super) fn requeue(&mut self, id: CallId) {
        if self.table.update(id, |call| call.stage = Stage::Queued).is_some() {
            self.queue.insert(id);
        }
    }

    /// Gives up a call: the server is told, and its answer will be ignored. Returns whether it was open.
    pub(crate) fn cancel<O: Outbox>(&mut self, id: CallId, reason: Option<&str>, out: &mut O) -> bool {
        let Some(call) = self.table.remove(id) else { return false };
        self.queue.remove(&id);
        self.withdraw(&call, reason, out);
        true
    }

    /// Tells the server that nobody waits for a call any more.
    pub(super) fn withdraw<O: Outbox>(&mut self, call: &Call, reason: Option<&str>, out: &mut O) {
        let Some(version) = self.version() else { return };
        self.leave_listen(call, out);
        if let Some(wire) = call.wire
            && out.abandon(wire, version)
        {
            write_cancelled(wire, version, reason, out);
        }
        if let Stage::Task(task) = &call.stage {
            // A task is cancelled by its own method only.
            self.cancel_task(&task.id, version, out);
        }
    }

    /// Sends a notification, if it is known what the server speaks.
    pub(crate) fn notify<O: Outbox>(
        &mut self,
        method: &str,
        out: &mut O,
        params: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        let Some(version) = self.version() else { return false };
        out.notification(&Notice { method, version }, |out| rpc::write_notification(out, method, params));
        true
    }

    /// A request will not be answered, or not with anything that can be read.
    pub(crate) fn fail_wire<O: Outbox>(
        &mut self,
        wire: i64,
        error: CallError,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'static>> {
        match self.table.close_wire(wire)? {
            Purpose::Probe => self.probed(Err(error), now, out),
            Purpose::Handshake => self.initialized(Err(error), now, out),
            Purpose::Listen(id) if matches!(error, CallError::Lost(_) | CallError::Closed) => {
                self.listen_lost(id)
            }
            Purpose::Call(call) | Purpose::Listen(call) | Purpose::Outcome(call) => self.fail(call, error),
            Purpose::Poll(id) | Purpose::Update(id) => self.poll_failed(id, error, now),
            Purpose::Subscribe(id) => self.subscribed(id, wire, false),
            Purpose::Aside => None,
        }
    }

    pub(super) fn fail(&mut self, call: CallId, error: CallError) -> Option<Event<'static>> {
        self.table.remove(call)?;
        Some(Event::Failed { call, error })
    }

    /// Every open call fails; those that can be sent again on a new stream may be kept.
    pub(super) fn fail_all(&mut self, error: &CallError, keep: bool) {
        let ids: Vec<CallId> = self
            .table
            .iter()
            .filter(|(_, call)| !(keep && matches!(call.stage, Stage::Listen(_) | Stage::Queued)))
            .map(|(id, _)| id)
            .collect();
        for id in ids {
            self.table.remove(id);
            self.fail_later(id, error.clone());
        }
        if keep {
            let lost: Vec<CallId> = self
                .table
                .iter()
                .filter(|(id, call)| matches!(call.stage, Stage::Listen(_)) && !self.queue.contains(id))
                .map(|(id, _)| id)
                .collect();
            for id in lost {
                self.queue_listen_again(id);
            }
        } else {
            self.queue.clear();
        }
    }
}

/// What a request is about: as its type says, or as the params do that somebody wrote by hand.
fn subject<R: Request>(request: &R, params: &str) -> Option<Box<str>> {
    if let Some(subject) = request.subject() {
        return Some(Box::from(subject));
    }
    let member = mirror::name_member(request.method())?;
    let subject = Members::from_json(params)?.text(member).ok()??;
    Some(Box::from(&*subject))
}

fn write_cancelled<O: Outbox>(wire: i64, version: ProtocolVersion, reason: Option<&str>, out: &mut O) {
    let notice = Notice { method: "notifications/cancelled", version };
    out.notification(&notice, |out| {
        rpc::write_notification(out, notice.method, |out| {
            out.extend_from_slice(b"{\"requestId\":");
            RequestId::from(wire).write(out);
            if let Some(reason) = reason {
                out.extend_from_slice(b",\"reason\":");
                write_str(out, reason);
            }
            out.push(b'}');
        });
    });
}
