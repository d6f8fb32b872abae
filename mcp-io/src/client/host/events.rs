//! What happens to servers, for those who want to know.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_proto::client::Change;
use mcp_proto::model::{Json, LogMessage};

use crate::client::ConnectError;

/// Most events of one server that wait to be heard, and most bytes of text in them. A server says as much as it likes.
const MOST: usize = 256;
const MOST_TEXT: usize = 64 << 10;

/// Something happened to a server of a [`Host`](super::Host), or it says something.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HostEvent {
    /// The name of the server, as it was added.
    pub server: Arc<str>,
    /// What.
    pub what: Happened,
}

/// What happened to a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Happened {
    /// It stands otherwise with it now.
    State(ServerState),
    /// It was taken out, or replaced. The last that is heard of it.
    Removed,
    /// A list of it changed, or may have: a list of tools will be asked for when it is wanted next. Several changes of
    /// one list that were not heard yet are one.
    Changed(Change),
    /// It logs.
    Log(LogMessage),
    /// A notification that the specification does not have.
    #[non_exhaustive]
    Notification {
        /// What it is called.
        method: String,
        /// What it says, an object.
        params: Json,
    },
}

/// How it stands with a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ServerState {
    /// It is being connected. Calls of its tools are refused meanwhile.
    Connecting,
    /// It can be called.
    Ready,
    /// It is a child that has ended and is being started again: see [`Child::restart`](crate::client::Child::restart).
    /// Calls of its tools wait for it.
    Restarting,
    /// It is not there.
    #[non_exhaustive]
    Away {
        /// Why it could not be connected; `None` if the connection has ended.
        why: Option<Arc<ConnectError>>,
        /// Whether it is tried again by itself, after a while.
        again: bool,
    },
}

/// What happens from now on. See [`Host::events`](super::Host::events).
pub struct HostEvents {
    queue: Arc<Queue>,
}

#[derive(Default)]
pub(super) struct Queue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// In the order in which they came.
    events: BTreeMap<u64, HostEvent>,
    /// Which of them are of a server.
    of: HashMap<Arc<str>, Own>,
    next: u64,
    missed: u64,
    ended: bool,
    waker: Option<Waker>,
}

/// The events of one server.
#[derive(Default)]
struct Own {
    /// Each with the bytes of text in it.
    at: VecDeque<(u64, usize)>,
    /// Of all of them.
    text: usize,
}

impl HostEvent {
    fn text(&self) -> usize {
        match &self.what {
            Happened::Changed(Change::Resource(uri)) => uri.len(),
            Happened::Log(message) => {
                let logger = message.logger.as_ref().map_or(0, |logger| logger.len());
                let meta = message
                    .meta
                    .as_ref()
                    .map_or(0, |meta| serde_json::to_string(meta).map_or(0, |json| json.len()));
                logger + message.data.get().len() + meta
            }
            Happened::Notification { method, params } => method.len() + params.get().len(),
            Happened::State(_) | Happened::Removed | Happened::Changed(_) => 0,
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is to be woken then.
    #[must_use]
    pub(super) fn push(&self, event: HostEvent) -> Option<Waker> {
        let mut waiting = self.lock();
        let Waiting { events, of, next, missed, .. } = &mut *waiting;
        let own = of.entry(Arc::clone(&event.server)).or_default();
        if let Happened::Changed(change) = &event.what
            && own
                .at
                .iter()
                .any(|(at, _)| matches!(&events[at].what, Happened::Changed(other) if other == change))
        {
            return None;
        }
        let text = event.text();
        own.at.push_back((*next, text));
        own.text += text;
        events.insert(*next, event);
        *next += 1;
        // A server that talks too much pushes out no other's. The newest says most: it stays, whatever it takes.
        while (own.at.len() > MOST || (own.at.len() > 1 && own.text > MOST_TEXT))
            && let Some((oldest, text)) = own.at.pop_front()
        {
            events.remove(&oldest);
            own.text -= text;
            *missed += 1;
        }
        waiting.waker.take()
    }

    /// Nothing more will come. Who is to be woken then.
    #[must_use]
    pub(super) fn end(&self) -> Option<Waker> {
        let mut waiting = self.lock();
        waiting.ended = true;
        waiting.waker.take()
    }
}

impl HostEvents {
    pub(super) const fn new(queue: Arc<Queue>) -> Self {
        Self { queue }
    }

    /// The next event; `None` once the host is gone.
    pub async fn next(&mut self) -> Option<HostEvent> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`next`](Self::next) for those who poll: what a `Stream` needs.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<HostEvent>> {
        let mut waiting = self.queue.lock();
        if let Some((_, event)) = waiting.events.pop_first() {
            if let Some(own) = waiting.of.get_mut(&event.server) {
                own.text -= own.at.pop_front().map_or(0, |(_, text)| text);
                if own.at.is_empty() {
                    waiting.of.remove(&event.server);
                }
            }
            return Poll::Ready(Some(event));
        }
        if waiting.ended {
            return Poll::Ready(None);
        }
        match &mut waiting.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// How many events were left out since this was last asked: of a server of which 256 wait, or 64 KiB of text, the
    /// oldest go.
    pub fn missed(&mut self) -> u64 {
        std::mem::take(&mut self.queue.lock().missed)
    }
}

impl fmt::Debug for HostEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostEvents").field("waiting", &self.queue.lock().events.len()).finish_non_exhaustive()
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("is being connected"),
            Self::Ready => f.write_str("is ready"),
            Self::Restarting => f.write_str("is being started again"),
            Self::Away { why: Some(why), .. } => write!(f, "is not there: {why}"),
            Self::Away { why: None, .. } => f.write_str("is not there: its connection has ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(server: &str, text: &str) -> HostEvent {
        let data = Json::from_serialize(&text).unwrap();
        let message = LogMessage::new(mcp_proto::model::LoggingLevel::Info, data);
        HostEvent { server: server.into(), what: Happened::Log(message) }
    }

    fn changed(server: &str, change: Change) -> HostEvent {
        HostEvent { server: server.into(), what: Happened::Changed(change) }
    }

    fn next(events: &mut HostEvents) -> Option<HostEvent> {
        match events.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_server_that_talks_too_much_pushes_out_no_other() {
        let queue = Arc::<Queue>::default();
        let mut events = HostEvents::new(Arc::clone(&queue));
        let _ = queue.push(changed("quiet", Change::Tools));
        for n in 0..=MOST {
            let _ = queue.push(log("loud", &n.to_string()));
        }
        let _ = queue.push(changed("quiet", Change::Tools));
        let _ = queue.push(changed("quiet", Change::Prompts));
        assert_eq!((events.missed(), events.missed()), (1, 0));
        let all: Vec<_> = std::iter::from_fn(|| next(&mut events)).collect();
        assert_eq!(all.len(), MOST + 2);
        assert!(matches!(&all[0].what, Happened::Changed(Change::Tools)) && &*all[0].server == "quiet");
        let Happened::Log(first) = &all[1].what else { panic!("{all:?}") };
        assert_eq!(first.data.get(), "\"1\"");
        assert!(matches!(&all[MOST + 1].what, Happened::Changed(Change::Prompts)));
        // What was heard may happen again.
        let _ = queue.push(changed("quiet", Change::Tools));
        assert!(next(&mut events).is_some());
        assert!(queue.lock().of.is_empty());
        // Much text counts like many events. The newest is heard in any case.
        for text in ["x".repeat(MOST_TEXT / 2), "y".repeat(MOST_TEXT / 2), "z".repeat(2 * MOST_TEXT)] {
            let _ = queue.push(changed("quiet", Change::Tools));
            let _ = queue.push(log("loud", &text));
        }
        assert_eq!(events.missed(), 2);
        assert!(matches!(next(&mut events).unwrap().what, Happened::Changed(Change::Tools)));
        let Happened::Log(last) = next(&mut events).unwrap().what else { panic!() };
        assert!(last.data.get().starts_with("\"z") && next(&mut events).is_none());
        assert!(queue.lock().of.is_empty());
    }
}
