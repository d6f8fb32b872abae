//! The servers of a host, as its handles and the tasks of the servers see them.

use std::collections::{HashMap, HashSet};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use mcp_proto::client::Change;
use mcp_proto::model::{SubscriptionFilter, Tool};
use mcp_proto::service::client::Client;

use super::Offered;
use super::events::{Happened, HostEvent, Queue, ServerState};
use super::names::{alias, within};
use crate::client::connect::Report;

/// Names a server in a host. One that is added in the place of another has a number of its own.
pub(super) type Number = u64;

#[derive(Default)]
pub(super) struct Shared(Mutex<Members>);

#[derive(Default)]
pub(super) struct Members {
    pub(super) all: Vec<Member>,
    next: Number,
    listeners: Vec<Weak<Queue>>,
    /// Of those who wait until it is known how it stands with all.
    waiting: Vec<Waker>,
    /// To be woken once nobody has the lock.
    woken: Vec<Waker>,
}

pub(super) struct Member {
    pub(super) number: Number,
    pub(super) name: Arc<str>,
    pub(super) alias: String,
    pub(super) state: ServerState,
    /// It was ready or away once.
    is_settled: bool,
    pub(super) client: Option<Client>,
    /// Its tools. They are kept for as long as it would tell that they change.
    pub(super) tools: Option<Arc<[Offered]>>,
    tells: bool,
    /// Grows whenever what is asked for now may be old when it comes.
    pub(super) epoch: u64,
    /// Which tool an offered name stands for, where it does not say it itself.
    pub(super) renamed: HashMap<String, String>,
    pub(super) control: Arc<Control>,
    /// Says when nothing is left of it.
    pub(super) end: Report<()>,
}

impl Shared {
    /// Looks at the servers, or changes something.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Members) -> T) -> T {
        let mut members = self.lock();
        let got = act(&mut members);
        if members.all.iter().all(|member| member.is_settled) {
            let Members { woken, waiting, .. } = &mut *members;
            woken.append(waiting);
        }
        let woken = std::mem::take(&mut members.woken);
        drop(members);
        woken.into_iter().for_each(Waker::wake);
        got
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A change to a server, unless it was taken out, and what is to be told of it.
    fn change(&self, number: Number, change: impl FnOnce(&mut Member) -> Option<Happened>) {
        self.with(|members| {
            let Some(member) = members.all.iter_mut().find(|member| member.number == number) else { return };
            if let Some(what) = change(member) {
                let server = Arc::clone(&member.name);
                members.tell(&HostEvent { server, what });
            }
        });
    }

    /// It stands otherwise with a server; the client that is there, if one is.
    pub(super) fn stands(&self, number: Number, state: ServerState, client: Option<Client>) {
        let mut old = None;
        self.change(number, |member| {
            member.is_settled |= !matches!(state, ServerState::Connecting);
            old = std::mem::replace(&mut member.client, client);
            member.state = state.clone();
            member.tells = false;
            member.forget();
            Some(Happened::State(state))
        });
        // It may wake someone, who may look here.
        drop(old);
    }

    /// It stands otherwise with a server whose client is there.
    pub(super) fn state(&self, number: Number, state: ServerState) {
        self.change(number, |member| {
            member.state = state.clone();
            Some(Happened::State(state))
        });
    }

    /// It tells of these changes from now on.
    pub(super) fn tells(&self, number: Number, granted: &SubscriptionFilter) {
        self.change(number, |member| {
            member.tells = granted.tools_list_changed;
            member.forget();
            None
        });
    }

    pub(super) fn say(&self, number: Number, what: Happened) {
        self.change(number, |member| {
            if matches!(what, Happened::Changed(Change::Tools)) {
                member.forget();
            }
            Some(what)
        });
    }

    /// Ready once it is known how it stands with all.
    pub(super) fn poll_settled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut members = self.lock();
        if members.all.iter().all(|member| member.is_settled) {
            return Poll::Ready(());
        }
        if !members.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            members.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Members {
    /// A server of this name; one that had it makes room. `end` is said by whoever keeps it.
    pub(super) fn add(&mut self, name: &str, end: Report<()>) -> (Number, Arc<Control>, Option<Member>) {
        let place = self.all.iter().position(|member| &*member.name == name).unwrap_or(self.all.len());
        let old = self.remove(name);
        let alias = match &old {
            Some(old) => old.alias.clone(),
            None => alias(name, &self.all.iter().map(|member| &*member.alias).collect::<HashSet<_>>()),
        };
        let control = Arc::new(Control::default());
        self.next += 1;
        let member = Member {
            number: self.next,
            name: name.into(),
            alias,
            state: ServerState::Connecting,
            is_settled: false,
            client: None,
            tools: None,
            tells: false,
            epoch: 0,
            renamed: HashMap::new(),
            control: Arc::clone(&control),
            end,
        };
        self.tell(&HostEvent {
            server: Arc::clone(&member.name),
            what: Happened::State(ServerState::Connecting),
        });
        self.all.insert(place, member);
        (self.next, control, old)
    }

    /// Takes a server out. Its task ends.
    pub(super) fn remove(&mut self, name: &str) -> Option<Member> {
        let at = self.all.iter().position(|member| &*member.name == name)?;
        let member = self.all.remove(at);
        self.woken.extend(member.control.tell(|told| told.gone = true));
        self.tell(&HostEvent { server: Arc::clone(&member.name), what: Happened::Removed });
        Some(member)
    }

    /// Takes all of them out.
    pub(super) fn clear(&mut self) -> Vec<Member> {
        let names: Vec<_> = self.all.iter().map(|member| Arc::clone(&member.name)).collect();
        names.iter().filter_map(|name| self.remove(name)).collect()
    }

    /// Nothing more happens.
    pub(super) fn end(&mut self) {
        for queue in self.listeners.drain(..).filter_map(|queue| queue.upgrade()) {
            self.woken.extend(queue.end());
        }
    }

    pub(super) fn listen(&mut self) -> Arc<Queue> {
        let queue = Arc::<Queue>::default();
        self.listeners.push(Arc::downgrade(&queue));
        queue
    }

    fn tell(&mut self, event: &HostEvent) {
        let Self { listeners, woken, .. } = self;
        listeners.retain(|queue| {
            let Some(queue) = queue.upgrade() else { return false };
            woken.extend(queue.push(event.clone()));
            true
        });
    }

    pub(super) fn find(&self, name: &str) -> Option<&Member> {
        self.all.iter().find(|member| &*member.name == name)
    }

    pub(super) fn of_alias(&self, alias: &str) -> Option<&Member> {
        self.all.iter().find(|member| member.alias == alias)
    }

    /// What a server has, asked for in `epoch`, under the names that it is offered under.
    pub(super) fn listed(&mut self, number: Number, epoch: u64, tools: Vec<Tool>) -> Option<Arc<[Offered]>> {
        let member = self.all.iter_mut().find(|member| member.number == number)?;
        let (mut offered, mut used) = (Vec::new(), HashSet::new());
        for tool in tools {
            let own = within(&member.alias, &tool.name);
            let name = format!("{}__{own}", member.alias);
            // Of two that a server calls the same, the first.
            if !used.insert(name.clone()) {
                continue;
            }
            if own != tool.name {
                member.renamed.insert(name.clone(), tool.name.clone().into_owned());
            }
            offered.push(Offered { name, server: Arc::clone(&member.name), tool });
        }
        member.renamed.retain(|name, _| used.contains(name));
        let offered: Arc<[Offered]> = offered.into();
        if member.tells && member.epoch == epoch {
            member.tools = Some(Arc::clone(&offered));
        }
        Some(offered)
    }
}

impl Member {
    fn forget(&mut self) {
        self.tools = None;
        self.epoch += 1;
    }
}

/// What the task of a server is told.
#[derive(Default)]
pub(super) struct Control(Mutex<Told>);

#[derive(Default)]
pub(super) struct Told {
    gone: bool,
    hurry: bool,
    waker: Option<Waker>,
}

/// Why a task goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    /// The server was taken out.
    Gone,
    /// Someone does not want to wait.
    Hurry,
    /// What it waited for.
    Done(T),
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, tell: impl FnOnce(&mut Told)) -> Option<Waker> {
        let mut told = self.lock();
        tell(&mut told);
        told.waker.take()
    }

    /// The task is not to wait any longer before it tries again.
    pub(super) fn hurry(&self) {
        let waker = self.tell(|told| told.hurry = true);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits for `future`, unless the server is taken out; or someone is in a hurry, if that means anything.
    pub(super) async fn unless<F: Future>(&self, hurry: bool, future: F) -> Next<F::Output> {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let mut told = self.lock();
            if told.gone {
                return Poll::Ready(Next::Gone);
            }
            // What was said before it meant anything means nothing.
            if std::mem::take(&mut told.hurry) && hurry {
                return Poll::Ready(Next::Hurry);
            }
            told.waker = Some(cx.waker().clone());
            drop(told);
            future.as_mut().poll(cx).map(Next::Done)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use mcp_proto::model::JsonSchema;

    use super::*;

    fn tools() -> Vec<Tool> {
        let schema = JsonSchema::parse(r#"{"type":"object"}"#).unwrap();
        ["a", "a.b", "a"].map(|name| Tool::new(name, schema.clone())).into()
    }

    /// What was asked for before a change, and comes after it, is not kept.
    #[test]
    fn tools_are_kept_only_while_changes_are_told() {
        let shared = Shared::default();
        let (number, ..) = shared.with(|members| members.add("s", Report::new()));
        let epoch = || shared.with(|members| members.all[0].epoch);
        let listed = |epoch| {
            let tools = shared.with(|members| members.listed(number, epoch, tools())).unwrap();
            assert_eq!(tools.len(), 2);
            shared.with(|members| members.all[0].tools.is_some())
        };
        let granted = SubscriptionFilter::new();
        let mut tells = granted.clone();
        tells.tools_list_changed = true;
        assert!(!listed(epoch()));
        let before = epoch();
        shared.tells(number, &tells);
        assert!(!listed(before) && listed(epoch()));
        shared.say(number, Happened::Changed(Change::Prompts));
        assert!(shared.with(|members| members.all[0].tools.is_some()));
        let before = epoch();
        shared.say(number, Happened::Changed(Change::Tools));
        assert!(!listed(before) && listed(epoch()));
        shared.tells(number, &granted);
        assert!(!listed(epoch()));
        shared.tells(number, &tells);
        assert!(listed(epoch()));
        shared.stands(number, ServerState::Connecting, None);
        assert!(!listed(epoch()));
        assert_eq!(shared.with(|members| members.all[0].renamed.len()), 1);
        // It was taken out meanwhile.
        shared.with(|members| drop(members.remove("s")));
        assert!(shared.with(|members| members.listed(number, 0, tools())).is_none());
    }
}
