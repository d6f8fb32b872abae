//! Changes: from whoever makes them to whoever watches, on this process and on others.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use std::sync::PoisonError;

use super::Service;
use super::session::Shared;
use crate::server::Change;

/// Carries changes to other processes that serve the same clients.
///
/// What happens here has reached the subscribers of this process before the bus is told. What other
/// processes tell it goes to [`Service::deliver`]; if the connection to them was lost for a while,
/// [`Change::Gap`].
pub trait ChangeBus: Send + Sync {
    /// Something changed here. Must not wait: hand it to whoever sends it.
    fn publish(&self, change: &Change<'_>);
}

/// Tells subscribers of both eras, on every stream of the process, that something changed. Telling is
/// cheap: changes are marked and written once, however often they are told.
#[derive(Debug, Clone)]
pub struct Changes {
    service: Service,
}

impl Changes {
    /// The list of tools changed.
    pub fn tools(&self) {
        self.service.publish(&Change::Tools);
    }

    /// The list of prompts changed.
    pub fn prompts(&self) {
        self.service.publish(&Change::Prompts);
    }

    /// The list of resources or templates changed.
    pub fn resources(&self) {
        self.service.publish(&Change::Resources);
    }

    /// A resource changed.
    pub fn resource(&self, uri: &str) {
        self.service.publish(&Change::Resource(uri));
    }
}

impl Service {
    /// Tells subscribers that something changed.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes { service: self.clone() }
    }

    /// Tells other processes of what changes here, too. The first one counts.
    pub fn use_bus(&self, bus: impl ChangeBus + 'static) {
        let _ = self.0.bus.set(Box::new(bus));
    }

    /// Tells the subscribers of this process, and nobody else, of a change that another process told.
    pub fn deliver(&self, change: &Change<'_>) {
        for session in self.live_sessions() {
            session.publish(change);
        }
    }

    pub(crate) fn publish(&self, change: &Change<'_>) {
        self.deliver(change);
        // Tasks are those of one process.
        if let Some(bus) = self.0.bus.get().filter(|_| !matches!(change, Change::Task { .. })) {
            bus.publish(change);
        }
    }

    /// The streams that there are. None of them is locked while others are told.
    pub(crate) fn live_sessions(&self) -> Vec<Arc<Shared>> {
        let mut sessions = self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.iter().filter_map(Weak::upgrade).collect()
    }
}
