//! A server that does not find in the headers what is in the body: what is known of its tools is out of date.
//! They are listed again, and the calls are made once more. [spec: basic/transports/streamable-http#client-behavior]

use alloc::string::String;
use alloc::vec::Vec;

use super::client::Client;
use super::traffic::{Asked, Role};
use super::{Action, ExchangeId};
use crate::client::CallError;
use crate::client::outbox::Purpose;
use crate::rpc::{self, Members, Message, code, str_from_json};
use crate::time::Instant;

/// What is to be repaired.
#[derive(Debug, Default)]
pub(super) struct Repair {
    /// The request that lists the tools.
    list: Option<i64>,
    pages: usize,
    /// Calls that were refused, and how.
    calls: Vec<(i64, rpc::Error)>,
}

impl Client {
    /// Whether a refusal can be repaired. C-HDR-16
    pub(super) fn may_repair(&mut self, asked: &Asked, error: &rpc::Error) -> bool {
        let fits = error.code == code::HEADER_MISMATCH
            && asked.is_tool_call
            && asked.version.is_modern()
            && matches!(asked.purpose, Purpose::Call(_));
        fits && self.traffic.tries(asked.purpose).is_some_and(|tries| {
            tries.mirror += 1;
            tries.mirror <= 1
        })
    }

    pub(super) fn begin_repair(&mut self, wire: i64, error: rpc::Error, now: Instant, out: &mut Vec<Action>) {
        self.repair.calls.push((wire, error));
        if self.repair.list.is_none() {
            self.repair.pages = 0;
            self.list(None, now, out);
        }
    }

    fn list(&mut self, cursor: Option<&str>, now: Instant, out: &mut Vec<Action>) {
        self.repair.pages += 1;
        let wire = self.through(now, out, |engine, out| engine.list_tools(cursor, out));
        self.repair.list = wire;
        if wire.is_none() {
            self.give_up_repair(now, out);
        }
    }

    /// Whether an answer is about a repair, or begins one.
    pub(super) fn repairs(
        &mut self,
        id: ExchangeId,
        message: &Message<'_>,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some((wire, may)) = self.traffic.open.get(&id).and_then(|exchange| match &exchange.role {
            Role::Request(asked) => Some((asked.wire, asked.is_tool_call)),
            _ => None,
        }) else {
            return false;
        };
        match message {
            Message::Error { error, .. } if may && error.code == code::HEADER_MISMATCH => {
                let Some((Role::Request(asked), _)) = self.traffic.settle(id, now) else { return false };
                if self.may_repair(&asked, error) {
                    self.begin_repair(wire, error.clone(), now, out);
                    return true;
                }
                if let Some(exchange) = self.traffic.open.get_mut(&id) {
                    exchange.role = Role::Request(asked);
                }
                false
            }
            Message::Result { result, .. } if self.repair.list == Some(wire) => {
                self.traffic.forget_wire(wire);
                self.listed(wire, result.get(), now, out);
                true
            }
            Message::Error { .. } => self.repair_failed(wire, now, out),
            _ => false,
        }
    }

    fn listed(&mut self, wire: i64, result: &str, now: Instant, out: &mut Vec<Action>) {
        self.engine.learn_tools(wire, result);
        let cursor: Option<String> = Members::from_json(result).and_then(|members| {
            members.get("nextCursor").and_then(|raw| str_from_json(raw.get())).map(Into::into)
        });
        if let Some(cursor) = cursor
            && self.repair.pages < self.traffic.limits.max_pages
        {
            return self.list(Some(&cursor), now, out);
        }
        self.repair.list = None;
        for (wire, _) in core::mem::take(&mut self.repair.calls) {
            self.through(now, out, |engine, out| engine.resend(wire, now, out));
        }
    }

    /// Whether the request that failed was one of a repair: then the calls are refused as they were.
    pub(super) fn repair_failed(&mut self, wire: i64, now: Instant, out: &mut Vec<Action>) -> bool {
        if self.repair.list != Some(wire) {
            return false;
        }
        self.engine.forget(wire);
        self.give_up_repair(now, out);
        true
    }

    fn give_up_repair(&mut self, now: Instant, out: &mut Vec<Action>) {
        self.repair.list = None;
        for (wire, error) in core::mem::take(&mut self.repair.calls) {
            let event =
                self.through(now, out, |engine, out| engine.fail_wire(wire, CallError::Rpc(error), now, out));
            self.note_end(event.as_ref());
            self.backlog.extend(event);
        }
    }
}
