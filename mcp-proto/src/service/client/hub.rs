//! Between the machine and everyone who waits: commands in, events out.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use super::builder::Hooks;
use super::listen::{Feed, Heard};
use super::machine::Machine;
use super::respond::{Address, Answer, Asking, Control, Given, Job};
use super::shared::{Command, Shared};
use super::slot::{News, Outcome, Slot};
use crate::client::http::Unauthorized;
use crate::client::{
    AskId, Asked, CallError, CallId, CallOptions, Change, Event, Notice, Round, Rounds, Violation,
};
use crate::model::method::ServerMethod;
use crate::model::{
    InputRequest, InputResponses, Json, ListRootsResult, LoggingLevel, Root, Str, SubscriptionFilter,
};
use crate::rpc::Batch;
use crate::time::Instant;

/// How long a subscription whose stream broke is left alone before it is opened again, at first and at most.
const RELISTEN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Commands for which there is always room, once there was.
const USUAL: usize = 64;

pub(super) struct Hub {
    pub(super) machine: Machine,
    pub(super) shared: Arc<Shared>,
    hooks: Box<Hooks>,
    open: BTreeMap<CallId, Open>,
    asks: BTreeMap<AskId, Arc<Control>>,
    /// A token is being got.
    authorization: Option<Arc<Control>>,
    pub(super) jobs: VecDeque<Job>,
    /// Calls that wait until output is written.
    held: VecDeque<Command>,
    /// Room for the next commands, empty.
    room: VecDeque<Command>,
    /// Calls that have ended since word was taken last.
    ended: usize,
    roots: Vec<Root>,
    /// 2026-07-28: what of logs is wanted in each call.
    level: Option<LoggingLevel>,
    /// Subscriptions to be opened again, and after how long the time before.
    relisten: BTreeMap<(Instant, CallId), Duration>,
    /// Whether there is a subscription for [`on_change`](super::ClientBuilder::on_change), and what was granted last.
    own: bool,
    own_granted: Option<SubscriptionFilter>,
    /// The server ended instead of answering the probe.
    pub(super) wants_restart: bool,
    pub(super) closing: bool,
    pub(super) unusable: bool,
}

enum Open {
    Call(Box<OpenCall>),
    Feed(Arc<Feed>, Duration),
    /// That of [`Hub::own`].
    Own(Duration),
}

struct OpenCall {
    slot: Arc<Slot>,
    by_hand: bool,
    is_of_task: bool,
    /// Questions whose responders are at work.
    asking: BTreeMap<Str, Arc<Control>>,
    /// Answers that wait for those of the other questions.
    answers: Vec<(Str, Json)>,
    /// By hand: answers for a task that has not asked again yet.
    prepared: Option<InputResponses>,
}

impl OpenCall {
    fn new(slot: Arc<Slot>, by_hand: bool) -> Box<Self> {
        let (asking, answers) = (BTreeMap::new(), Vec::new());
        Box::new(Self { slot, by_hand, is_of_task: false, asking, answers, prepared: None })
    }

    fn end(self, outcome: Outcome) {
        self.asking.values().for_each(|control| control.cancel());
        self.slot.finish(outcome);
    }
}

impl Hub {
    pub(super) fn new(machine: Machine, shared: Arc<Shared>, hooks: Box<Hooks>, roots: Vec<Root>) -> Self {
        Self {
            machine,
            shared,
            hooks,
            open: BTreeMap::new(),
            asks: BTreeMap::new(),
            authorization: None,
            jobs: VecDeque::new(),
            held: VecDeque::new(),
            room: VecDeque::new(),
            ended: 0,
            roots,
            level: None,
            relisten: BTreeMap::new(),
            own: false,
            own_granted: None,
            wants_restart: false,
            closing: false,
            unusable: false,
        }
    }

    /// Whether calls wait until output is written.
    pub(super) fn holds_back(&self) -> bool {
        !self.held.is_empty() && self.is_below_mark()
    }

    fn is_below_mark(&self) -> bool {
        self.machine.backlog() < self.machine.config().limits.output_high_water.max(1)
    }

    /// Whether more calls have ended than there is new word of: whoever made them may be about to call again.
    pub(super) fn expects_calls(&self) -> bool {
        self.ended > self.shared.len()
    }

    /// Does what handles and responders have left word of, and what is due.
    pub(super) fn work(&mut self, now: Instant) {
        let mut commands = self.shared.take(mem::take(&mut self.room));
        if !commands.is_empty() {
            self.ended = 0;
        }
        while let Some(command) = commands.pop_front() {
            match command {
                Command::Call { .. } | Command::Resume { .. } => self.held.push_back(command),
                other => self.obey(other, now),
            }
        }
        // A rush of calls leaves no more than a usual number needs.
        commands.shrink_to(USUAL);
        self.room = commands;
        if self.closing && !self.held.is_empty() {
            // Made while the client was being closed elsewhere.
            self.fail_all(&CallError::Closed);
        }
        while self.is_below_mark()
            && let Some(command) = self.held.pop_front()
        {
            self.obey(command, now);
        }
        self.settle(now);
    }

    /// Lets everything happen that is due.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some(entry) = self.relisten.first_entry()
            && entry.key().0 <= now
        {
            let ((_, subscription), wait) = entry.remove_entry();
            match self.open.get_mut(&subscription) {
                Some(Open::Feed(_, last) | Open::Own(last)) => *last = wait,
                _ => continue,
            }
            let _ = self.machine.relisten(subscription, now);
        }
        while self.machine.next_deadline().is_some_and(|at| at <= now) {
            match self.machine.handle_timeout(now) {
                Some(event) => drop(self.route(event, now)),
                None => break,
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let relisten = self.relisten.first_key_value().map(|((at, _), _)| *at);
        self.machine.next_deadline().into_iter().chain(relisten).min()
    }

    fn obey(&mut self, command: Command, now: Instant) {
        match command {
            Command::Call { request, mut options, slot, by_hand } => {
                if slot.is_dropped() {
                    return;
                }
                options.log_level = options.log_level.or(self.level);
                let called = request.call(&mut self.machine, &options, now);
                self.opened(called, slot, by_hand, None, now);
            }
            Command::Resume { parked, responses, options, slot } => {
                if slot.is_dropped() {
                    return;
                }
                let called = self.machine.resume(*parked, &responses, &options, now);
                self.opened(called, slot, options.rounds == Rounds::Manual, Some(responses), now);
            }
            Command::Next { slot, responses } => {
                let Some(call) = slot.call() else { return };
                let answered = self.machine.answer(call, &responses, now);
                if let Err(error) = answered {
                    self.machine.cancel(call, None, now);
                    self.end(call, Outcome::Failed(error));
                }
            }
            Command::Park { slot } => {
                let parked = slot.call().and_then(|call| {
                    self.open.remove(&call);
                    self.machine.park(call)
                });
                slot.finish(Outcome::Parked(parked));
            }
            Command::Listen { filter, options, feed } => {
                if feed.is_dropped() {
                    return;
                }
                match self.machine.listen(filter, &options, now) {
                    Ok(call) if feed.open(call) => {
                        self.open.insert(call, Open::Feed(feed, RELISTEN.0));
                    }
                    Ok(call) => drop(self.machine.cancel(call, None, now)),
                    Err(error) => feed.end(Err(error)),
                }
            }
            Command::Cancel(call) => {
                // The responders go first: whatever they ask of this side is void.
                if let Some(Open::Call(open)) = self.open.remove(&call) {
                    open.asking.values().for_each(|control| control.cancel());
                }
                self.machine.cancel(call, None, now);
            }
            Command::Answered { to, answer } => self.answered(to, answer, now),
            Command::Roots(roots) => {
                self.roots = roots;
                let legacy = self.machine.server().is_some_and(|server| !server.version.is_modern());
                if legacy && self.machine.config().capabilities.supports_roots_list_changed() {
                    self.machine.notify("notifications/roots/list_changed", None, now);
                }
            }
            Command::Notify { method, params } => {
                self.machine.notify(&method, params.as_deref(), now);
            }
            Command::Level(level) => self.level = Some(level),
            Command::Close => self.close(now),
        }
    }

    fn opened(
        &mut self,
        called: Result<CallId, CallError>,
        slot: Arc<Slot>,
        by_hand: bool,
        prepared: Option<InputResponses>,
        now: Instant,
    ) {
        match called {
            Ok(call) if slot.open(call) => {
                let mut open = OpenCall::new(slot, by_hand);
                open.prepared = prepared;
                self.open.insert(call, Open::Call(open));
            }
            Ok(call) => drop(self.machine.cancel(call, None, now)),
            Err(error) => slot.finish(Outcome::Failed(error)),
        }
    }

    /// Passes an event on to those whom it concerns. A batch comes back, for its messages are handled like
    /// others.
    pub(super) fn route<'b>(&mut self, event: Event<'b>, now: Instant) -> Option<Batch<'b>> {
        match event {
            Event::Ready => self.ready(now),
            Event::Unusable(error) => {
                self.unusable = true;
                self.shared.failed(&error);
            }
            Event::Respawn => self.wants_restart = true,
            Event::Complete(completed) => {
                if completed.method() == ServerMethod::Discover.as_str() {
                    self.shared.ready(self.machine.server(), self.machine.verdict());
                }
                self.end(completed.call, Outcome::Complete(completed.into_owned()));
            }
            Event::Failed { call, error } => self.end(call, Outcome::Failed(error)),
            Event::InputRequired { call, round } => self.round(call, round, now),
            Event::Progress { call, progress } => {
                if let Some(Open::Call(open)) = self.open.get(&call) {
                    open.slot.tell(News::Progress(progress));
                }
            }
            Event::TaskStatus { call, task } => match call.and_then(|call| self.open.get(&call)) {
                Some(Open::Call(open)) => open.slot.tell(News::Task(task)),
                Some(Open::Feed(feed, _)) => feed.hear(Heard::Task(task)),
                Some(Open::Own(_)) | None => {}
            },
            Event::Log { message, .. } => self.hooks.log(message),
            Event::Asked(Asked { ask, request, .. }) => self.asked(ask, request, now),
            Event::AskCancelled { ask, .. } => {
                if let Some(control) = self.asks.remove(&ask) {
                    control.cancel();
                }
            }
            Event::Changed { subscription, change } => {
                match subscription.and_then(|subscription| self.open.get(&subscription)) {
                    Some(Open::Feed(feed, _)) => feed.hear(Heard::Changed(change)),
                    _ => self.hooks.change(change),
                }
            }
            Event::Acknowledged { subscription, granted } => self.acknowledged(subscription, granted),
            Event::ListenEnded { subscription, lost } => self.listen_ended(subscription, lost, now),
            Event::ElicitationComplete { elicitation_id } => self.hooks.elicitation_complete(elicitation_id),
            Event::Notification(notice) => self.notification(&notice),
            Event::Batch(batch) => return Some(batch),
            Event::Unauthorized(why) => self.unauthorized(why, now),
            Event::StreamLost(why) => {
                self.tell_all(&Heard::Silence);
                self.hooks.stream_lost(why);
            }
            Event::StreamRestored => self.stream_restored(),
            Event::Violation(violation) => self.hooks.violation(violation),
        }
        None
    }

    pub(super) fn violation(&self, violation: Violation) {
        self.hooks.violation(violation);
    }

    fn ready(&mut self, now: Instant) {
        self.shared.ready(self.machine.server(), self.machine.verdict());
        if !self.hooks.hears_changes() || self.own {
            return;
        }
        let mut filter = SubscriptionFilter::new();
        let has = self.machine.server().and_then(|server| server.capabilities.as_ref());
        filter.tools_list_changed = has.is_none_or(|has| has.has_tools_list_changed());
        filter.prompts_list_changed = has.is_none_or(|has| has.has_prompts_list_changed());
        filter.resources_list_changed = has.is_none_or(|has| has.has_resources_list_changed());
        if filter.is_empty() {
            return;
        }
        if let Ok(call) = self.machine.listen(filter, &CallOptions::new(), now) {
            self.own = true;
            self.open.insert(call, Open::Own(RELISTEN.0));
        }
    }

    fn end(&mut self, call: CallId, outcome: Outcome) {
        match (self.open.remove(&call), outcome) {
            (Some(Open::Call(open)), outcome) => {
                self.ended += 1;
                open.end(outcome);
            }
            (Some(Open::Feed(feed, _)), Outcome::Failed(error)) => feed.end(Err(error)),
            _ => {}
        }
    }

    /// The server asks in the course of a call.
    fn round(&mut self, call: CallId, round: Round, now: Instant) {
        let Some(Open::Call(open)) = self.open.get_mut(&call) else { return };
        open.is_of_task = round.of_task;
        let mut round = round;
        // A task that was resumed asks again what was answered before.
        if let Some(given) = open.prepared.take().filter(|_| round.of_task) {
            let known = given.members().iter().filter(|(key, _)| round.requests.contains(key));
            let known: InputResponses = known.map(|(key, answer)| (key.clone(), answer.clone())).collect();
            if !known.members().is_empty() && self.machine.answer(call, &known, now).is_ok() {
                round.requests.retain(|key, _| !known.members().contains(key));
            }
            if round.requests.is_empty() {
                return;
            }
        }
        if open.by_hand {
            return open.slot.finish(Outcome::Input(round));
        }
        let questions: Vec<_> = round
            .requests
            .into_iter()
            .map(|(key, request)| (key, request, Arc::new(Control::default())))
            .collect();
        // All of them are known to be open before the first is answered.
        open.asking.extend(questions.iter().map(|(key, _, control)| (key.clone(), Arc::clone(control))));
        for (key, request, control) in questions {
            let to = Address::Round { call, key: key.clone() };
            self.ask(request, Some(key), round.of_task, to, control, now);
        }
    }

    /// A legacy server asks.
    fn asked(&mut self, ask: AskId, request: InputRequest, now: Instant) {
        let control = Arc::new(Control::default());
        self.asks.insert(ask, Arc::clone(&control));
        self.ask(request, None, false, Address::Ask(ask), control, now);
    }

    fn ask(
        &mut self,
        request: InputRequest,
        key: Option<Str>,
        is_of_task: bool,
        to: Address,
        control: Arc<Control>,
        now: Instant,
    ) {
        if matches!(request, InputRequest::ListRoots) {
            let roots = ListRootsResult::new(self.roots.clone());
            return self.answered(to, Ok(Given::from(roots)), now);
        }
        let asking = Asking { server: self.shared.server(), key, is_of_task };
        let future = self.hooks.responders.respond(request, asking);
        match Job::start(future, to.clone(), control, Arc::clone(&self.shared)) {
            Ok(answer) => self.answered(to, answer, now),
            Err(job) => self.jobs.push_back(job),
        }
    }

    /// What waits for a token is sent again when there is one; one search for it is enough for all.
    fn unauthorized(&mut self, why: Unauthorized, now: Instant) {
        if self.authorization.is_some() {
            return;
        }
        let control = Arc::new(Control::default());
        self.authorization = Some(Arc::clone(&control));
        let future = self.hooks.responders.token(why);
        match Job::start(future, Address::Authorization, control, Arc::clone(&self.shared)) {
            Ok(answer) => self.answered(Address::Authorization, answer, now),
            Err(job) => self.jobs.push_back(job),
        }
    }

    /// A responder has come to an end.
    fn answered(&mut self, to: Address, answer: Answer, now: Instant) {
        let answer = answer.map(|given| match given {
            Given::Response(response) => Some(response),
            Given::Token(token) => {
                self.machine.authorize(Some(token), now);
                None
            }
        });
        let answer = match (&to, answer) {
            (Address::Authorization, answer) => {
                self.authorization = None;
                if answer.is_err() {
                    self.machine.authorize(None, now);
                }
                return;
            }
            (_, Ok(Some(response))) => Ok(response),
            (_, Ok(None)) => return,
            (_, Err(refusal)) => Err(refusal),
        };
        let (call, key) = match to {
            Address::Authorization => return,
            Address::Ask(ask) => {
                if self.asks.remove(&ask).is_some() {
                    self.machine.respond(ask, answer.map_err(|refusal| refusal.error), now);
                }
                return;
            }
            Address::Round { call, key } => (call, key),
        };
        let Some(Open::Call(open)) = self.open.get_mut(&call) else { return };
        if open.asking.remove(&key).is_none() {
            return;
        }
        let given = answer.and_then(|response| Ok(Json::from_serialize(&response)?));
        let given = match given {
            Ok(given) => given,
            Err(refusal) => {
                self.machine.cancel(call, Some("a question cannot be answered"), now);
                let error = CallError::Unanswered(alloc::format!("{key:?}: {refusal}"));
                return self.end(call, Outcome::Failed(error));
            }
        };
        open.answers.push((key, given));
        // A task takes answers one by one, a round all at once.
        if !open.is_of_task && !open.asking.is_empty() {
            return;
        }
        let responses: InputResponses = mem::take(&mut open.answers).into_iter().collect();
        if let Err(error) = self.machine.answer(call, &responses, now) {
            self.machine.cancel(call, None, now);
            self.end(call, Outcome::Failed(error));
        }
    }

    fn acknowledged(&mut self, subscription: CallId, granted: SubscriptionFilter) {
        match self.open.get_mut(&subscription) {
            Some(Open::Feed(feed, wait)) => {
                *wait = RELISTEN.0;
                feed.granted(granted);
            }
            Some(Open::Own(wait)) => {
                *wait = RELISTEN.0;
                if self.own_granted.replace(granted).is_some() {
                    self.anything_changed();
                }
            }
            _ => {}
        }
    }

    fn tell_all(&self, heard: &Heard) {
        for open in self.open.values() {
            if let Open::Feed(feed, _) = open {
                feed.hear(heard.clone());
            }
        }
    }

    /// What [`on_change`](super::ClientBuilder::on_change) hears of may have changed.
    fn anything_changed(&self) {
        let Some(granted) = &self.own_granted else { return };
        for (changed, change) in [
            (granted.tools_list_changed, Change::Tools),
            (granted.prompts_list_changed, Change::Prompts),
            (granted.resources_list_changed, Change::Resources),
        ] {
            if changed {
                self.hooks.change(change);
            }
        }
    }

    /// Whatever changed while there was no stream was not told.
    fn stream_restored(&self) {
        self.tell_all(&Heard::Gap);
        self.anything_changed();
    }

    fn listen_ended(&mut self, subscription: CallId, lost: bool, now: Instant) {
        if lost && let Some(Open::Feed(_, wait) | Open::Own(wait)) = self.open.get(&subscription) {
            self.relisten.insert((now + *wait, subscription), (*wait * 2).min(RELISTEN.1));
            return;
        }
        if let Some(Open::Feed(feed, _)) = self.open.remove(&subscription) {
            feed.end(Ok(()));
        }
    }

    fn notification(&self, notice: &Notice<'_>) {
        if !self.hooks.hears_notifications() {
            return;
        }
        let params = Json::parse(&notice.params.to_json()).unwrap_or_else(|_| Json::empty_object());
        self.hooks.notification(&notice.method, &params);
    }

    /// The user of the client is done with it.
    fn close(&mut self, now: Instant) {
        self.closing = true;
        self.fail_all(&CallError::Closed);
        self.machine.close(now);
    }

    /// Whoever waits learns that it is in vain.
    pub(super) fn fail_all(&mut self, error: &CallError) {
        for control in mem::take(&mut self.asks).into_values().chain(self.authorization.take()) {
            control.cancel();
        }
        self.jobs.clear();
        let left = self.shared.end();
        for command in mem::take(&mut self.held).into_iter().chain(left) {
            match command {
                Command::Call { slot, .. }
                | Command::Resume { slot, .. }
                | Command::Next { slot, .. }
                | Command::Park { slot } => slot.finish(Outcome::Failed(error.clone())),
                Command::Listen { feed, .. } => feed.end(Err(error.clone())),
                _ => {}
            }
        }
        for open in mem::take(&mut self.open).into_values() {
            match open {
                Open::Call(open) => open.end(Outcome::Failed(error.clone())),
                Open::Feed(feed, _) => feed.end(Err(error.clone())),
                Open::Own(_) => {}
            }
        }
    }

    /// The stream ended: questions that came over it can no longer be answered.
    pub(super) fn stream_ended(&mut self) {
        for control in mem::take(&mut self.asks).into_values() {
            control.cancel();
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.fail_all(&CallError::Closed);
        self.shared.gone();
    }
}

impl core::fmt::Debug for Hub {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let server = self.machine.server().map(|server| server.version.to_string());
        f.debug_struct("Hub").field("server", &server).field("open", &self.open.len()).finish_non_exhaustive()
    }
}
