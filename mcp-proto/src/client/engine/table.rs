//! The table of calls: by name, by the id on the wire, by deadline. Nothing in it is slower than a logarithm.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use core::time::Duration;

use super::task::Driven;
use crate::client::config::{CallOptions, Rounds, TaskUse};
use crate::client::event::CallId;
use crate::client::outbox::Purpose;
use crate::model::method::ServerMethod;
use crate::model::{InputRequests, LoggingLevel, Meta, Str, SubscriptionFilter};
use crate::time::Instant;

/// A call that is open.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: Str,
    pub(crate) known: Option<ServerMethod>,
    /// The params as the text of one object, without `_meta` and without what a retry adds.
    pub(crate) params: Box<str>,
    /// The same for a revision with a handshake, if that differs and none is settled yet.
    pub(crate) legacy_params: Option<Box<str>>,
    pub(crate) subject: Option<Box<str>>,
    pub(crate) how: How,
    pub(crate) stage: Stage,
    /// The request on the wire that may be answered.
    pub(crate) wire: Option<i64>,
    /// The progress token that is in use: the id of the request that opted in.
    pub(crate) token: Option<i64>,
    /// The last progress.
    pub(crate) progress: Option<f64>,
    /// When an answer is due. Not while this side is at work.
    pub(crate) due: Option<Instant>,
    /// When the call is over, come what may.
    pub(crate) cap: Option<Instant>,
    /// What the retry brings along.
    pub(crate) retry: Option<Retry>,
    pub(crate) rounds: u32,
    /// How often it was sent again because the server refused the version.
    pub(crate) version_retries: u8,
    /// 2025-11-25: it asks for a task.
    pub(crate) asks_task: bool,
    /// The state of the cache when it was sent.
    pub(crate) epoch: u64,
}

/// What of the options a call needs later.
#[derive(Debug, Clone)]
pub(crate) struct How {
    pub(crate) timeout: Option<Duration>,
    pub(crate) reset_on_progress: bool,
    pub(crate) progress: bool,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) meta: Option<Box<Meta>>,
    pub(crate) keep: bool,
    pub(crate) rounds: Rounds,
    pub(crate) tasks: TaskUse,
    pub(crate) task_ttl_ms: Option<u64>,
}

/// Where a call stands.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Not sent: it is not known yet what the server speaks.
    Queued,
    /// Sent.
    Sent,
    /// The server waits for input.
    Asking(Box<Asking>),
    /// It has become a task.
    Task(Box<Driven>),
    /// It is a subscription.
    Listen(Box<Listening>),
}

/// What a call waits for on this side.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) requests: InputRequests,
    pub(crate) state: Option<Str>,
    pub(crate) since: Instant,
}

/// What goes with a retry.
#[derive(Debug, Clone)]
pub(crate) struct Retry {
    /// The text of the object `inputResponses`.
    pub(crate) responses: Option<String>,
    /// `requestState`, as it came.
    pub(crate) state: Option<Str>,
}

/// A subscription.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) filter: SubscriptionFilter,
    pub(crate) granted: Option<SubscriptionFilter>,
    /// On a legacy server: the resources for which it has not answered yet, by request.
    pub(crate) asked: BTreeMap<i64, Str>,
}

impl Listening {
    /// What the server said that it tells.
    pub(crate) fn acknowledged(&self) -> Option<&SubscriptionFilter> {
        self.granted.as_ref().filter(|_| self.asked.is_empty())
    }

    /// Nothing is granted any more.
    pub(crate) fn begin_again(&mut self) {
        self.granted = None;
        self.asked.clear();
    }
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    next_call: u64,
    next_wire: i64,
    /// Each in a place of its own: a tree moves its entries about, and these are large.
    calls: BTreeMap<CallId, Box<Call>>,
    wires: BTreeMap<i64, Purpose>,
    tokens: BTreeMap<i64, CallId>,
    tasks: BTreeMap<Str, CallId>,
    listens: BTreeSet<CallId>,
    deadlines: BTreeSet<(Instant, CallId)>,
    /// Of the newest subscriptions that the server has cancelled.
    cancelled: VecDeque<i64>,
}

/// So many cancelled subscriptions are remembered: their results follow at once, if at all.
const MOST_CANCELLED: usize = 16;

impl How {
    pub(crate) fn of(options: &CallOptions) -> Self {
        Self {
            timeout: options.timeout,
            reset_on_progress: options.reset_on_progress,
            progress: options.progress || options.reset_on_progress,
            log_level: options.log_level,
            meta: options.meta.clone().map(Box::new),
            keep: options.use_cache,
            rounds: options.rounds,
            tasks: options.tasks,
            task_ttl_ms: options.task_ttl_ms,
        }
    }
}

impl Call {
    /// One that was not sent yet. Its time begins.
    pub(crate) fn new(method: Str, params: Box<str>, stage: Stage, how: How, now: Instant) -> Self {
        let mut call = Self {
            method,
            known: None,
            params,
            legacy_params: None,
            subject: None,
            how,
            stage,
            wire: None,
            token: None,
            progress: None,
            due: None,
            cap: None,
            retry: None,
            rounds: 0,
            version_retries: 0,
            asks_task: false,
            epoch: 0,
        };
        call.expect_answer(now);
        call
    }

    /// The next moment at which something is to happen without the server.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let poll = match &self.stage {
            Stage::Task(task) => task.next_poll,
            // Time in which this side is at work does not count.
            Stage::Asking(_) => return None,
            _ => None,
        };
        let over = [self.due, self.cap].into_iter().flatten().min();
        [poll, over].into_iter().flatten().min()
    }

    /// Starts the time in which an answer is due.
    pub(crate) fn expect_answer(&mut self, now: Instant) {
        self.due = self.how.timeout.map(|timeout| now + timeout);
    }
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn next_call(&mut self) -> CallId {
        self.next_call += 1;
        CallId(self.next_call)
    }

    pub(crate) fn insert(&mut self, call: Call) -> CallId {
        let id = self.next_call();
        self.insert_as(id, call);
        id
    }

    fn insert_as(&mut self, id: CallId, call: Call) {
        if let Some(at) = call.deadline() {
            self.deadlines.insert((at, id));
        }
        match &call.stage {
            Stage::Listen(_) => {
                self.listens.insert(id);
            }
            Stage::Task(task) => {
                self.tasks.insert(task.id.clone(), id);
            }
            _ => {}
        }
        self.calls.insert(id, Box::new(call));
    }

    pub(crate) fn get(&self, id: CallId) -> Option<&Call> {
        self.calls.get(&id).map(Box::as_ref)
    }

    /// The subscriptions.
    pub(crate) fn listens(&self) -> impl Iterator<Item = CallId> + '_ {
        self.listens.iter().copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (CallId, &Call)> + '_ {
        self.calls.iter().map(|(id, call)| (*id, &**call))
    }

    /// Changes a call; its deadlines are kept up to date.
    pub(crate) fn update<T>(&mut self, id: CallId, change: impl FnOnce(&mut Call) -> T) -> Option<T> {
        let call = self.calls.get_mut(&id)?;
        let before = call.deadline();
        let result = change(call);
        let after = call.deadline();
        if before != after {
            if let Some(at) = before {
                self.deadlines.remove(&(at, id));
            }
            if let Some(at) = after {
                self.deadlines.insert((at, id));
            }
        }
        Some(result)
    }

    /// Takes a call out; what is on its way for it is answered to nobody.
    pub(crate) fn remove(&mut self, id: CallId) -> Option<Box<Call>> {
        let call = self.calls.remove(&id)?;
        if let Some(at) = call.deadline() {
            self.deadlines.remove(&(at, id));
        }
        if let Some(wire) = call.wire {
            self.wires.remove(&wire);
        }
        if let Some(token) = call.token {
            self.tokens.remove(&token);
        }
        self.listens.remove(&id);
        if let Stage::Task(task) = &call.stage {
            self.tasks.remove(&task.id);
            for wire in &task.updates {
                self.wires.remove(wire);
            }
        }
        Some(call)
    }

    /// A fresh id on the wire.
    pub(crate) fn open_wire(&mut self, purpose: Purpose) -> i64 {
        self.next_wire += 1;
        self.wires.insert(self.next_wire, purpose);
        self.next_wire
    }

    pub(crate) fn purpose(&self, wire: i64) -> Option<Purpose> {
        self.wires.get(&wire).copied()
    }

    /// An answer came, or none will.
    pub(crate) fn close_wire(&mut self, wire: i64) -> Option<Purpose> {
        let purpose = self.wires.remove(&wire)?;
        if let Some(id) = purpose.call() {
            self.update(id, |call| {
                if call.wire == Some(wire) {
                    call.wire = None;
                }
            });
        }
        Some(purpose)
    }

    pub(crate) fn forget_wires(&mut self) {
        self.wires.clear();
        self.tokens.clear();
        self.cancelled.clear();
        for call in self.calls.values_mut() {
            call.wire = None;
            call.token = None;
        }
    }

    /// The server has cancelled what this id stood for. It may send a result as well.
    pub(crate) fn note_cancelled(&mut self, wire: i64) {
        if self.cancelled.len() == MOST_CANCELLED {
            self.cancelled.pop_front();
        }
        self.cancelled.push_back(wire);
    }

    /// Whether this is the answer to what the server has cancelled. Once.
    pub(crate) fn was_cancelled(&mut self, wire: i64) -> bool {
        let at = self.cancelled.iter().position(|cancelled| *cancelled == wire);
        at.is_some_and(|at| self.cancelled.remove(at).is_some())
    }

    /// Whether an id was in use once.
    pub(crate) const fn was_used(&self, wire: i64) -> bool {
        wire >= 1 && wire <= self.next_wire
    }

    /// The request that opted in to progress; the token of the one before is out of use.
    pub(crate) fn use_token(&mut self, id: CallId, token: i64) {
        if let Some(call) = self.calls.get_mut(&id) {
            if let Some(old) = call.token.replace(token) {
                self.tokens.remove(&old);
            }
            call.progress = None;
            self.tokens.insert(token, id);
        }
    }

    pub(crate) fn drop_token(&mut self, id: CallId) {
        if let Some(call) = self.calls.get_mut(&id)
            && let Some(old) = call.token.take()
        {
            self.tokens.remove(&old);
        }
    }

    pub(crate) fn by_token(&self, token: i64) -> Option<CallId> {
        self.tokens.get(&token).copied()
    }

    /// A call has become a task.
    pub(crate) fn name_task(&mut self, task: Str, id: CallId) {
        self.tasks.insert(task, id);
    }

    pub(crate) fn by_task(&self, task: &str) -> Option<CallId> {
        self.tasks.get(task).copied()
    }

    pub(crate) fn next_deadline(&self) -> Option<(Instant, CallId)> {
        self.deadlines.first().copied()
    }
}
