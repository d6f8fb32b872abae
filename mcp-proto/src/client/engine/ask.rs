//! Requests of legacy servers. [spec: 2025-11-25 client/elicitation, client/sampling, client/roots]

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Engine;
use super::open::Phase;
use crate::client::event::{AskId, Asked, Event, Violation, ViolationKind};
use crate::client::outbox::{Answering, Origin, Outbox};
use crate::model::meta::key;
use crate::model::{
    ClientCapabilities, InputKind, InputRequest, InputResponse, ProtocolVersion, check_tool_use,
};
use crate::rpc::{self, Error, Members, Params, RequestId, code};

/// The requests that wait for an answer of the driver.
#[derive(Debug, Default)]
pub(super) struct Asks {
    next: u64,
    open: BTreeMap<AskId, Ask>,
    by_id: BTreeMap<RequestId, AskId>,
}

#[derive(Debug)]
struct Ask {
    id: RequestId,
    kind: InputKind,
    /// 2025-11-25: the task that it belongs to, as the text of the member.
    task: Option<Box<str>>,
}

impl Asks {
    fn open(&mut self, ask: Ask) -> AskId {
        self.next += 1;
        let name = AskId(self.next);
        self.by_id.insert(ask.id.clone(), name);
        self.open.insert(name, ask);
        name
    }

    fn take(&mut self, name: AskId) -> Option<Ask> {
        let ask = self.open.remove(&name)?;
        self.by_id.remove(&ask.id);
        Some(ask)
    }

    /// The server takes back a request.
    pub(super) fn withdraw(&mut self, id: &RequestId) -> Option<AskId> {
        let name = *self.by_id.get(id)?;
        self.take(name)?;
        Some(name)
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.by_id.clear();
    }
}

impl Engine {
    pub(super) fn request<'b, O: Outbox>(
        &mut self,
        id: RequestId,
        method: Cow<'b, str>,
        params: Params<'b>,
        origin: Origin,
        out: &mut O,
    ) -> Option<Event<'b>> {
        let version = match (&self.phase, self.version()) {
            (_, Some(version)) if !version.is_modern() => Some(version),
            (Phase::Handshake { .. }, _) => None,
            // In 2026-07-28 there are no such requests, and nothing is ever answered.
            _ => {
                let detail = alloc::format!("a request for {}", rpc::Short(&method));
                return Some(Event::Violation(Violation::new(ViolationKind::Request, detail, Some(id))));
            }
        };
        if &*method == "ping" {
            out.response(Answering::Machine, |out| {
                write_result(out, &id, |out| out.extend_from_slice(b"{}"));
            });
            return None;
        }
        let admitted = match version {
            Some(version) => self.admit(&id, &method, &params, version),
            None => {
                Err(Error::invalid_request("Invalid request: only `ping` before the end of the handshake"))
            }
        };
        match admitted {
            Ok(request) => {
                let related = params.meta().get(key::RELATED_TASK);
                let task = related.map(|raw| Box::from(raw.get()));
                let of_task = related
                    .and_then(|raw| Members::from_json(raw.get())?.text("taskId").ok()?)
                    .and_then(|task| self.table.by_task(&task));
                let call = of_task.or_else(|| self.call_of(origin));
                let ask = self.asks.open(Ask { id, kind: request.kind(), task });
                Some(Event::Asked(Asked { ask, request, call }))
            }
            Err(error) => {
                out.response(Answering::Machine, |out| rpc::write_error(out, Some(&id), &error));
                Some(Event::Violation(Violation::new(ViolationKind::Request, error, Some(id))))
            }
        }
    }

    /// Whether this side said that it can be asked this.
    fn admit(
        &self,
        id: &RequestId,
        method: &str,
        params: &Params<'_>,
        version: ProtocolVersion,
    ) -> Result<InputRequest, Error> {
        let Some(kind) = InputKind::parse(method) else { return Err(Error::method_not_found(method)) };
        params.check()?;
        if !supports(&self.config.capabilities, kind, version) {
            return Err(Error::method_not_found(method));
        }
        if self.asks.by_id.contains_key(id) {
            let message = "Invalid request: the id belongs to a request that is still open";
            return Err(Error::invalid_request(message));
        }
        if self.asks.open.len() >= self.config.limits.max_asks {
            return Err(Error::new(code::INTERNAL_ERROR, "Too many requests are open"));
        }
        let request = InputRequest::decode(kind, &params.to_json()).map_err(|fault| {
            Error::invalid_params(alloc::format!("Invalid params {}", fault.within("/params")))
        })?;
        // An undeclared mode or option of a method that is declared. [spec: 2025-11-25 client/elicitation]
        if self.config.capabilities.missing(&request.needs()).is_some() {
            return Err(Error::invalid_params("Invalid params: this client did not declare what that needs"));
        }
        if let InputRequest::CreateMessage(message) = &request {
            check_tool_use(&message.messages).map_err(|fault| {
                Error::invalid_params(alloc::format!("Invalid params at /params/messages: {fault}"))
            })?;
        }
        Ok(request)
    }

    /// Answers a request of the server. Returns whether anything was written: the server may have taken the
    /// request back.
    pub(crate) fn respond<O: Outbox>(
        &mut self,
        name: AskId,
        answer: Result<InputResponse, Error>,
        out: &mut O,
    ) -> bool {
        let Some(version) = self.version() else { return false };
        let Some(ask) = self.asks.take(name) else { return false };
        let answer = match answer {
            Ok(answer) if answer.kind() == ask.kind => {
                let mut result = Vec::new();
                match answer.write(&mut result, version) {
                    Ok(()) => Ok(result),
                    Err(_) => Err(Error::internal()),
                }
            }
            Ok(_) => Err(Error::internal()),
            Err(error) => Err(error),
        };
        out.response(Answering::Ask(name), |out| match answer {
            Ok(result) => write_result(out, &ask.id, |out| {
                out.extend_from_slice(&result);
                if let Some(task) = &ask.task {
                    relate(out, task);
                }
            }),
            Err(error) => rpc::write_error(out, Some(&ask.id), &error),
        });
        true
    }
}

fn supports(has: &ClientCapabilities, kind: InputKind, version: ProtocolVersion) -> bool {
    match kind {
        InputKind::Elicit => {
            version.has_elicitation() && (has.supports_form_elicitation() || has.supports_url_elicitation())
        }
        InputKind::CreateMessage => has.supports_sampling(),
        InputKind::ListRoots => has.supports_roots(),
    }
}

fn write_result(out: &mut Vec<u8>, id: &RequestId, result: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write(out);
    out.extend_from_slice(b",\"result\":");
    result(out);
    out.push(b'}');
}

/// Says in the object just written which task it belongs to.
fn relate(out: &mut Vec<u8>, task: &str) {
    if out.pop() == Some(b'}') {
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        out.extend_from_slice(b"\"_meta\":{\"io.modelcontextprotocol/related-task\":");
        out.extend_from_slice(task.as_bytes());
        out.extend_from_slice(b"}}");
    }
}
