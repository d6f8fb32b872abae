//! What is heard of a server that is started again.

use alloc::sync::Arc;
use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll, ready};

use super::shared::{Place, Shared};

/// A step of a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // it begins and it ends
pub enum Restart {
    /// The server has ended and is being started again. Calls wait meanwhile.
    Begun,
    /// It is there again, and was told what it has to know: what is subscribed to, and what is to be logged.
    Done,
}

/// Tells from now on when the server is started again. See [`Client::restarts`](super::Client::restarts).
pub struct Restarts {
    place: Place,
    seen: u64,
}

impl Restarts {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        // One that has begun is told.
        Self { place: Place::new(shared), seen: shared.turns() & !1 }
    }

    /// The next step; `None` when the connection is over. Of several restarts that were not heard yet the last
    /// is told.
    pub async fn next(&mut self) -> Option<Restart> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`next`](Self::next) for those who poll: what a `Stream` needs.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Restart>> {
        let Some(turns) = ready!(self.place.poll_turn(self.seen, cx)) else { return Poll::Ready(None) };
        let missed = turns.saturating_sub(self.seen).saturating_sub(1) / 2 * 2;
        self.seen += missed + 1;
        Poll::Ready(Some(if self.seen % 2 == 1 { Restart::Begun } else { Restart::Done }))
    }
}

impl fmt::Debug for Restarts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restarts").field("seen", &self.seen).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use core::task::Waker;

    use super::*;
    use crate::client::ServerFacts;
    use crate::model::ProtocolVersion;

    #[test]
    fn no_restart_is_missed_whole() {
        let shared = Shared::new();
        let facts = ServerFacts {
            version: ProtocolVersion::V2025_11_25,
            identity: None,
            capabilities: None,
            instructions: None,
        };
        // Before it was of use it is not started again, it is started.
        shared.restarting();
        shared.ready(Some(&facts), None);
        let mut restarts = Restarts::new(&shared);
        let mut next = || match restarts.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(step) => Some(step),
            Poll::Pending => None,
        };
        assert_eq!(next(), None);
        shared.restarting();
        shared.restarting();
        let mut late = Restarts::new(&shared);
        assert_eq!(next(), Some(Some(Restart::Begun)));
        assert_eq!(next(), None);
        for _ in 0..3 {
            shared.ready(Some(&facts), None);
            shared.restarting();
        }
        assert_eq!([next(), next(), next()], [Some(Some(Restart::Done)), Some(Some(Restart::Begun)), None]);
        shared.ready(Some(&facts), None);
        shared.ready(Some(&facts), None);
        shared.gone();
        assert_eq!([next(), next(), next()], [Some(Some(Restart::Done)), Some(None), Some(None)]);
        let cx = &mut Context::from_waker(Waker::noop());
        assert_eq!(late.poll_next(cx), Poll::Ready(Some(Restart::Begun)));
        assert_eq!(late.poll_next(cx), Poll::Ready(Some(Restart::Done)));
    }
}
