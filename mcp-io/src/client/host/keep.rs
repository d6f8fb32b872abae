//! What is done for one server, as long as it is one of the host's.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mcp_proto::client::Change;
use mcp_proto::model::SubscriptionFilter;
use mcp_proto::service::client::{Client, ClientBuilder, Heard, Restart, Subscription};

use super::events::{Happened, ServerState};
use super::members::{Control, Next, Number, Shared};
use crate::client::{ConnectError, Target};
use crate::{Runtime, Timer};

/// How long a server that is not there is left alone, at first and at most. Each time it is twice as long.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// A connection that lasts for so long was a good one.
const GOOD: Duration = Duration::from_secs(60);

/// One server.
pub(super) struct Keeper {
    pub(super) shared: Arc<Shared>,
    pub(super) number: Number,
    pub(super) control: Arc<Control>,
}

impl Keeper {
    /// Connects it, and again whenever the connection has ended.
    pub(super) async fn keep<R: Runtime, T: Target + Clone>(
        &self,
        runtime: &R,
        builder: ClientBuilder,
        target: T,
    ) {
        let builder = self.heard(builder);
        let mut pause = PAUSE.0;
        let mut verdict = None;
        loop {
            let client = match verdict.take() {
                Some(verdict) => builder.clone().assume(verdict),
                None => builder.clone(),
            };
            let connecting = target.clone().connect(client);
            let (why, again) = match self.control.unless(false, connecting).await {
                Next::Done(Ok(client)) => {
                    let begun = runtime.now();
                    if !self.watch(&client).await {
                        return client.close().await;
                    }
                    if runtime.now().saturating_duration_since(begun) >= GOOD {
                        pause = PAUSE.0;
                    }
                    // Once: if it is another server by now, the next try finds that out.
                    verdict = client.verdict();
                    (None, true)
                }
                // Another time it would be the same.
                Next::Done(Err(why @ (ConnectError::Settings(_) | ConnectError::Build(_)))) => {
                    (Some(why), false)
                }
                Next::Done(Err(why)) => (Some(why), true),
                Next::Gone | Next::Hurry => return,
            };
            let state = ServerState::Away { why: why.map(Arc::new), again };
            self.shared.stands(self.number, state, None);
            let mut timer = runtime.timer(runtime.now() + pause);
            let waiting = async {
                match again {
                    true => poll_fn(|cx| timer.poll(cx)).await,
                    false => pending().await,
                }
            };
            match self.control.unless(true, waiting).await {
                Next::Done(()) => pause = (pause * 2).min(PAUSE.1),
                Next::Hurry => pause = PAUSE.0,
                Next::Gone => return,
            }
            self.shared.stands(self.number, ServerState::Connecting, None);
        }
    }

    /// A client that someone else has connected. There is no other once its connection has ended.
    pub(super) async fn accompany(&self, client: Client) {
        if !self.watch(&client).await {
            return;
        }
        drop(client);
        self.shared.stands(self.number, ServerState::Away { why: None, again: false }, None);
        self.control.unless(false, pending::<()>()).await;
    }

    /// What it says is said to the host, too.
    fn heard(&self, builder: ClientBuilder) -> ClientBuilder {
        let number = self.number;
        let [logs, notifications] = [(); 2].map(|()| Arc::downgrade(&self.shared));
        builder
            .on_log(move |message| {
                if let Some(shared) = logs.upgrade() {
                    shared.say(number, Happened::Log(message));
                }
            })
            .on_notification(move |method, params| {
                if let Some(shared) = notifications.upgrade() {
                    let what = Happened::Notification { method: method.into(), params: params.clone() };
                    shared.say(number, what);
                }
            })
    }

    /// Passes on what changes, until the connection has ended: then `true`. `false` if the server was taken out.
    async fn watch(&self, client: &Client) -> bool {
        self.shared.stands(self.number, ServerState::Ready, Some(client.clone()));
        let mut closed = pin!(client.closed());
        let mut restarts = client.restarts();
        let mut changes = pin!(self.changes(client));
        let mut listens = true;
        let both = poll_fn(|cx| {
            if closed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            while let Poll::Ready(Some(step)) = restarts.poll_next(cx) {
                let state = match step {
                    Restart::Begun => ServerState::Restarting,
                    Restart::Done => ServerState::Ready,
                };
                self.shared.state(self.number, state);
            }
            listens = listens && changes.as_mut().poll(cx).is_pending();
            Poll::Pending
        });
        self.control.unless(false, both).await == Next::Done(())
    }

    /// Listens for as long as the server lets us.
    async fn changes(&self, client: &Client) {
        let server = client.server();
        let has = server.capabilities.as_ref();
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = has.is_none_or(|has| has.has_tools_list_changed());
        filter.prompts_list_changed = has.is_none_or(|has| has.has_prompts_list_changed());
        filter.resources_list_changed = has.is_none_or(|has| has.has_resources_list_changed());
        if filter.is_empty() {
            return;
        }
        let Ok(mut subscription) = client.listen(filter).await else { return };
        self.shared.tells(self.number, &subscription.granted());
        while let Some(Ok(heard)) = subscription.next().await {
            match heard {
                Heard::Changed(change) => self.shared.say(self.number, Happened::Changed(change)),
                // Its tools are asked for each time they are wanted.
                Heard::Silence => self.shared.tells(self.number, &SubscriptionFilter::new()),
                _ => self.anything(&subscription),
            }
        }
        self.shared.tells(self.number, &SubscriptionFilter::new());
    }

    /// Whatever it would tell of may have changed.
    fn anything(&self, subscription: &Subscription) {
        let granted = subscription.granted();
        self.shared.tells(self.number, &granted);
        for (changed, change) in [
            (granted.tools_list_changed, Change::Tools),
            (granted.prompts_list_changed, Change::Prompts),
            (granted.resources_list_changed, Change::Resources),
        ] {
            if changed {
                self.shared.say(self.number, Happened::Changed(change));
            }
        }
    }
}
