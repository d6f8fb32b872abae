//! Subscriptions: opened, told what changes, ended.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Connection;
use crate::model::method;
use crate::model::{ProtocolVersion, SubscriptionFilter};
use crate::rpc::{self, Error};
use crate::server::channel::{Channel, sealed};
use crate::server::config::write_or_empty;
use crate::server::inflight::{Kind, Slot};
use crate::server::pending::{Delivery, Pending};
use crate::server::route::End;
use crate::server::subscription::{Change, Listen, write_tag};

impl Connection {
    /// Marks a change for every subscriber on this stream that wants it. Nothing is written yet. Whether
    /// there is now something to [flush](Self::flush_subscriptions).
    pub fn publish(&mut self, change: &Change<'_>) -> bool {
        if self.listens > 0 {
            for slot in self.inflight.slots_mut() {
                if let Kind::Listen(listen) = &mut slot.kind {
                    self.any_due |= listen.mark(change);
                }
            }
        }
        if let Some(session) = &mut self.session {
            self.any_due |= session.listen.mark(change);
        }
        self.any_due
    }

    /// Writes the changes that were marked, each once however often it was published.
    pub fn flush_subscriptions(&mut self, out: &mut Vec<u8>) {
        if !core::mem::take(&mut self.any_due) {
            return;
        }
        let routes = &mut self.routes;
        for Slot { id, kind, stream, .. } in self.inflight.slots_mut() {
            if let Kind::Listen(listen) = kind {
                listen.flush(Some(id), |write| routes.line(out, Some(*stream), |out| write(out)));
            }
        }
        if let Some(session) = &mut self.session {
            session.listen.flush(None, |write| routes.line(out, None, |out| write(out)));
        }
    }

    /// Opens a subscription: acknowledges the part of the filter that is honored, and from then on writes
    /// what changes. It is registered before the acknowledgment is written, so nothing falls between.
    /// [spec: basic/patterns/subscriptions]
    pub fn acknowledge(
        &mut self,
        pending: Pending<method::Listen>,
        honored: &SubscriptionFilter,
        out: &mut Vec<u8>,
    ) -> Delivery {
        let limits = &self.config.limits;
        let uris = honored.resource_subscriptions.len() + honored.task_ids.len();
        let refusal = if self.closed {
            Some(Error::new(rpc::code::INTERNAL_ERROR, "The server is closing"))
        } else if self.listens >= limits.max_listens {
            Some(Error::new(rpc::code::INTERNAL_ERROR, "Too many subscriptions are open"))
        } else if uris > limits.max_subscribed_uris {
            Some(Error::invalid_params("Too many resources in one subscription"))
        } else {
            None
        };
        if let Some(error) = refusal {
            return self.fail(pending, &error, out);
        }
        let Some(slot) = self.inflight.get_mut(pending.key) else { return Delivery::Discarded };
        slot.kind = Kind::Listen(Box::new(Listen::new(honored)));
        self.listens += 1;
        let id = &slot.id;
        self.routes.line(out, Some(slot.stream), |out| {
            rpc::write_notification(out, "notifications/subscriptions/acknowledged", |out| {
                out.push(b'{');
                write_tag(out, id);
                out.extend_from_slice(b",\"notifications\":");
                write_or_empty(out, ProtocolVersion::LATEST, honored);
                out.push(b'}');
            });
        });
        Delivery::Written
    }

    /// Ends all subscriptions gracefully: each gets `notifications/cancelled` and then its result.
    /// Open calls go on. [spec: basic/patterns/subscriptions#ending, basic/patterns/cancellation]
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.closed = true;
        self.flush_subscriptions(out);
        let listens: Vec<_> = self
            .inflight
            .keys()
            .filter(|key| matches!(self.inflight.get(*key).map(|s| &s.kind), Some(Kind::Listen(_))))
            .collect();
        for key in listens {
            // Over HTTP the end of the response says the same. [spec: basic/patterns/cancellation]
            if let Some(slot) = self.inflight.get(key).filter(|_| !self.routes.is_on()) {
                self.routes.line(out, Some(slot.stream), |out| {
                    rpc::write_notification(out, "notifications/cancelled", |out| {
                        out.extend_from_slice(b"{\"requestId\":");
                        slot.id.write(out);
                        out.extend_from_slice(b",\"reason\":\"the server is closing\"}");
                    });
                });
            }
            let _ = sealed::Sealed::finish(self, key, true, out, |out, slot, config| {
                out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                slot.id.write(out);
                out.extend_from_slice(b",\"result\":{\"resultType\":\"complete\",");
                out.extend_from_slice(&config.modern_meta);
                out.extend_from_slice(b",\"io.modelcontextprotocol/subscriptionId\":");
                slot.id.write(out);
                out.extend_from_slice(b"}}}");
                End::Done
            });
        }
    }
}
