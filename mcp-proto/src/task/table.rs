//! All tasks of one server, or of one client.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;
use core::time::Duration;

use serde_json::value::RawValue;

use super::{
    Answered, AskError, Cancelled, Changed, CreateError, Expired, InvalidCursor, NoSuchTask, Options,
    Outcome, Over, Page, Snapshot, Status, TaskId, TaskKey,
};
use crate::limits::Limits;
use crate::random::{Random, bytes};
use crate::time::UnixTime;

const MIN_TTL: Duration = Duration::from_secs(1);

/// The tasks that are there, with their owners and their ends.
///
/// Bounded by [`Limits`]: the number of tasks, those of one named owner, the time each may stay, the
/// questions each may ask. Nothing that is over its time can be had, whether [`expire`](Self::expire)
/// was called yet or not.
#[derive(Debug)]
pub struct Table {
    records: BTreeMap<TaskId, Record>,
    deadlines: BTreeSet<(UnixTime, TaskId)>,
    owned: BTreeMap<String, Owned>,
    max_tasks: usize,
    max_per_owner: usize,
    max_inputs: usize,
    max_ttl: Option<Duration>,
}

/// The tasks of one named owner, from the first one made until none is left.
#[derive(Debug)]
struct Owned {
    /// A random name for this stretch of time: cursors of an earlier one are void.
    epoch: u64,
    /// How many there were.
    made: u64,
    tasks: BTreeMap<u64, TaskId>,
}

#[derive(Debug)]
struct Record {
    snapshot: Snapshot,
    /// A named owner, and which of its tasks this is.
    owner: Option<(String, u64)>,
    /// Every key of a question there ever was, until the task ends.
    used_keys: BTreeSet<String>,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub const fn new(limits: &Limits) -> Self {
        Self {
            records: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            owned: BTreeMap::new(),
            max_tasks: limits.max_tasks,
            max_per_owner: limits.max_tasks_per_owner,
            max_inputs: limits.max_task_inputs,
            max_ttl: limits.max_task_ttl,
        }
    }

    /// How many tasks are held, including those whose time is over but who were not
    /// [expired](Self::expire) yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The moment at which [`expire`](Self::expire) has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<UnixTime> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Removes one task whose time is over. To be called until it returns `None`.
    #[must_use = "somebody may be waiting for this"]
    pub fn expire(&mut self, now: UnixTime) -> Option<Expired> {
        let (at, id) = *self.deadlines.first()?;
        if at > now {
            return None;
        }
        self.deadlines.pop_first();
        let record = self.records.remove(&id)?;
        if let Some((owner, order)) = record.owner
            && let Some(owned) = self.owned.get_mut(&owner)
        {
            owned.tasks.remove(&order);
            if owned.tasks.is_empty() {
                self.owned.remove(&owner);
            }
        }
        Some(Expired { key: TaskKey(id), status: record.snapshot.status })
    }
}

/// The worker's side.
impl Table {
    /// Makes a task that is `working`. It can be found from now on, so the answer may go out.
    ///
    /// `owner` is who the requestor is: the principal that authorization established, or, for a legacy
    /// connection without authorization, the connection itself. A task with `None` belongs to whoever
    /// knows its id and has no name either.
    ///
    /// # Errors
    ///
    /// [`CreateError`] when there are too many tasks.
    pub fn create(
        &mut self,
        owner: Option<&str>,
        options: Options,
        random: &mut dyn Random,
        now: UnixTime,
    ) -> Result<TaskKey, CreateError> {
        if self.records.len() >= self.max_tasks {
            return Err(CreateError::Full);
        }
        let owns = owner.and_then(|owner| self.owned.get(owner)).map_or(0, |owned| owned.tasks.len());
        if owner.is_some() && owns >= self.max_per_owner {
            return Err(CreateError::OwnerFull);
        }
        let id = (0..4)
            .map(|_| TaskId::random(random))
            .find(|id| !self.records.contains_key(id))
            .ok_or(CreateError::NoFreshId)?;
        let snapshot = Snapshot {
            id,
            status: Status::Working,
            status_message: options.status_message,
            created_at: now,
            last_updated_at: now,
            ttl: self.granted(options.ttl),
            poll_interval: options.poll_interval,
            input_requests: BTreeMap::new(),
            outcome: None,
        };
        self.deadlines.extend(snapshot.deadline().map(|at| (at, id)));
        let owner = owner.map(|owner| {
            let fresh =
                || Owned { epoch: u64::from_be_bytes(bytes(random)), made: 0, tasks: BTreeMap::new() };
            let owned = self.owned.entry(owner.to_owned()).or_insert_with(fresh);
            let order = owned.made;
            owned.made += 1;
            owned.tasks.insert(order, id);
            (owner.to_owned(), order)
        });
        self.records.insert(id, Record { snapshot, owner, used_keys: BTreeSet::new() });
        Ok(TaskKey(id))
    }

    /// The task, unless it is gone.
    #[must_use]
    pub fn task(&self, key: TaskKey, now: UnixTime) -> Option<&Snapshot> {
        self.records.get(&key.0).map(|record| &record.snapshot).filter(|task| !is_over(task, now))
    }

    /// Sets or removes the status message.
    ///
    /// # Errors
    ///
    /// [`Over`] when the task has ended.
    pub fn describe(
        &mut self,
        key: TaskKey,
        message: Option<String>,
        now: UnixTime,
    ) -> Result<Changed, Over> {
        let record = self.live(key, now)?;
        record.snapshot.status_message = message;
        Ok(record.touch(now))
    }

    /// Sets or removes the poll interval.
    ///
    /// # Errors
    ///
    /// [`Over`] when the task has ended.
    pub fn set_poll_interval(
        &mut self,
        key: TaskKey,
        interval: Option<Duration>,
        now: UnixTime,
    ) -> Result<Changed, Over> {
        let record = self.live(key, now)?;
        record.snapshot.poll_interval = interval;
        Ok(record.touch(now))
    }

    /// Changes the time to live, counted from the task's beginning, within the same bounds as at first.
    ///
    /// # Errors
    ///
    /// [`Over`] when the task has ended.
    pub fn set_ttl(&mut self, key: TaskKey, ttl: Option<Duration>, now: UnixTime) -> Result<Changed, Over> {
        let ttl = self.granted(ttl);
        let record = self.live(key, now)?;
        let old = record.snapshot.deadline();
        record.snapshot.ttl = ttl;
        let new = record.snapshot.deadline();
        let changed = record.touch(now);
        if let Some(old) = old {
            self.deadlines.remove(&(old, key.0));
        }
        self.deadlines.extend(new.map(|at| (at, key.0)));
        Ok(changed)
    }

    /// Asks the requestor: the task is `input_required` until every open question is answered or
    /// withdrawn. A key names one question for the life of the task.
    ///
    /// # Errors
    ///
    /// [`AskError`]; then none of the questions was asked.
    pub fn ask(
        &mut self,
        key: TaskKey,
        questions: impl IntoIterator<Item = (String, Box<RawValue>)>,
        now: UnixTime,
    ) -> Result<Changed, AskError> {
        let max = self.max_inputs;
        let record = self.live(key, now)?;
        let mut asked = BTreeMap::new();
        for (name, question) in questions {
            if record.used_keys.len() + asked.len() >= max {
                return Err(AskError::TooMany);
            }
            if record.used_keys.contains(&name) || asked.contains_key(&name) {
                return Err(AskError::KeyUsed(name));
            }
            asked.insert(name, question);
        }
        if asked.is_empty() {
            return Err(AskError::Nothing);
        }
        record.used_keys.extend(asked.keys().cloned());
        record.snapshot.input_requests.append(&mut asked);
        record.snapshot.status = Status::InputRequired;
        Ok(record.touch(now))
    }

    /// Closes an open question: it is taken back, or was answered by another way than
    /// [`answer`](Self::answer), such as the response to a request of 2025-11-25. `None` if it was not
    /// open; an answer to it is then to be ignored.
    ///
    /// # Errors
    ///
    /// [`Over`] when the task has ended.
    pub fn close_question(
        &mut self,
        key: TaskKey,
        name: &str,
        now: UnixTime,
    ) -> Result<Option<Changed>, Over> {
        let record = self.live(key, now)?;
        Ok(record.close_question(name).map(|_| record.touch(now)))
    }

    /// Ends the task with what the response of its call would have been. A failure should have a
    /// `message`.
    ///
    /// # Errors
    ///
    /// [`Over`] when the task has ended before: then nothing changes.
    pub fn finish(
        &mut self,
        key: TaskKey,
        outcome: Outcome,
        message: Option<String>,
        now: UnixTime,
    ) -> Result<Changed, Over> {
        let record = self.live(key, now)?;
        record.snapshot.status_message = message;
        Ok(record.end(outcome.status(), Some(outcome), now))
    }

    /// Ends the task as `cancelled` from the worker's side.
    ///
    /// # Errors
    ///
    /// [`Over`] when the task has ended before: then nothing changes.
    pub fn stop(&mut self, key: TaskKey, message: Option<String>, now: UnixTime) -> Result<Changed, Over> {
        let record = self.live(key, now)?;
        record.snapshot.status_message = message;
        Ok(record.end(Status::Cancelled, None, now))
    }

    fn live(&mut self, key: TaskKey, now: UnixTime) -> Result<&mut Record, Over> {
        match self.records.get_mut(&key.0) {
            Some(record) if !is_over(&record.snapshot, now) => match record.snapshot.status {
                status if status.is_terminal() => Err(Over::Ended(status)),
                _ => Ok(record),
            },
            _ => Err(Over::Gone),
        }
    }

    fn granted(&self, ttl: Option<Duration>) -> Option<Duration> {
        match (ttl, self.max_ttl) {
            (Some(ttl), Some(max)) => Some(ttl.max(MIN_TTL).min(max)),
            (Some(ttl), None) => Some(ttl.max(MIN_TTL)),
            (None, max) => max,
        }
    }
}

/// The requestor's side: `owner` is who makes the request now, `id` is what it sent.
impl Table {
    /// The task, for `tasks/get` and `tasks/result`.
    ///
    /// # Errors
    ///
    /// [`NoSuchTask`]
    pub fn get(&self, owner: Option<&str>, id: &str, now: UnixTime) -> Result<&Snapshot, NoSuchTask> {
        self.find(owner, id, now).and_then(|id| self.records.get(&id)).map(|r| &r.snapshot).ok_or(NoSuchTask)
    }

    /// Answers open questions, for `tasks/update`. With some still open, the task stays
    /// `input_required`; with the last it is `working` again.
    ///
    /// # Errors
    ///
    /// [`NoSuchTask`]
    pub fn answer<N: AsRef<str>, T>(
        &mut self,
        owner: Option<&str>,
        id: &str,
        answers: impl IntoIterator<Item = (N, T)>,
        now: UnixTime,
    ) -> Result<Answered<T>, NoSuchTask> {
        let (key, record) = self.find_mut(owner, id, now)?;
        let mut accepted = Vec::new();
        for (name, answer) in answers {
            accepted.extend(record.close_question(name.as_ref()).map(|name| (name, answer)));
        }
        let changed = (!accepted.is_empty()).then(|| record.touch(now));
        Ok(Answered { key, accepted, changed })
    }

    /// Cancels the task, for `tasks/cancel`, at once and for good. What has ended stays as it is.
    ///
    /// # Errors
    ///
    /// [`NoSuchTask`]
    pub fn cancel(&mut self, owner: Option<&str>, id: &str, now: UnixTime) -> Result<Cancelled, NoSuchTask> {
        let (_, record) = self.find_mut(owner, id, now)?;
        Ok(match record.snapshot.status {
            status if status.is_terminal() => Cancelled::TooLate(status),
            _ => {
                record.snapshot.status_message = None;
                Cancelled::Now(record.end(Status::Cancelled, None, now))
            }
        })
    }

    /// One page of at most `size` tasks of `owner`, for `tasks/list`. Only a requestor with a name can
    /// have its tasks listed. A task made while the pages are being read is on a later one.
    ///
    /// # Errors
    ///
    /// [`InvalidCursor`]
    pub fn list(
        &self,
        owner: &str,
        cursor: Option<&str>,
        size: usize,
        now: UnixTime,
    ) -> Result<Page<'_>, InvalidCursor> {
        let Some(owned) = self.owned.get(owner) else {
            return match cursor {
                None => Ok(Page { tasks: Vec::new(), next_cursor: None }),
                Some(_) => Err(InvalidCursor),
            };
        };
        let after = match cursor {
            None => Bound::Unbounded,
            Some(cursor) => Bound::Excluded(owned.place(cursor).ok_or(InvalidCursor)?),
        };
        let size = size.max(1);
        let mut rest = owned
            .tasks
            .range((after, Bound::Unbounded))
            .filter_map(|(order, id)| Some((*order, &self.records.get(id)?.snapshot)))
            .filter(|(_, task)| !is_over(task, now))
            .peekable();
        let page: Vec<_> = rest.by_ref().take(size).collect();
        let next_cursor = rest.peek().and_then(|_| page.last()).map(|(order, _)| owned.cursor(*order));
        Ok(Page { tasks: page.into_iter().map(|(_, task)| task).collect(), next_cursor })
    }

    fn find(&self, owner: Option<&str>, id: &str, now: UnixTime) -> Option<TaskId> {
        let id = TaskId::parse(id)?;
        let record = self.records.get(&id)?;
        let owned_by = record.owner.as_ref().map(|(owner, _)| owner.as_str());
        (owned_by == owner && !is_over(&record.snapshot, now)).then_some(id)
    }

    fn find_mut(
        &mut self,
        owner: Option<&str>,
        id: &str,
        now: UnixTime,
    ) -> Result<(TaskKey, &mut Record), NoSuchTask> {
        let id = self.find(owner, id, now).ok_or(NoSuchTask)?;
        Ok((TaskKey(id), self.records.get_mut(&id).ok_or(NoSuchTask)?))
    }
}

impl Owned {
    /// A cursor that goes on after task `order`. Neither part tells of other owners' tasks.
    fn cursor(&self, order: u64) -> String {
        format!("{:016x}{order:016x}", self.epoch)
    }

    fn place(&self, cursor: &str) -> Option<u64> {
        // Digits only: the parser below would also take a sign.
        let (epoch, order) = cursor.split_at_checked(16).filter(|_| TaskId::parse(cursor).is_some())?;
        let [epoch, order] = [epoch, order].map(|part| u64::from_str_radix(part, 16).ok());
        order.filter(|order| epoch == Some(self.epoch) && *order < self.made)
    }
}

impl Record {
    /// Notes that something changed.
    fn touch(&mut self, now: UnixTime) -> Changed {
        self.snapshot.last_updated_at = self.snapshot.last_updated_at.max(now);
        Changed { key: TaskKey(self.snapshot.id), status: self.snapshot.status }
    }

    /// Closes a question if it is open, and gives its name.
    fn close_question(&mut self, name: &str) -> Option<String> {
        let (name, _) = self.snapshot.input_requests.remove_entry(name)?;
        if self.snapshot.input_requests.is_empty() {
            self.snapshot.status = Status::Working;
        }
        Some(name)
    }

    fn end(&mut self, status: Status, outcome: Option<Outcome>, now: UnixTime) -> Changed {
        self.snapshot.status = status;
        self.snapshot.outcome = outcome;
        self.snapshot.input_requests = BTreeMap::new();
        self.used_keys = BTreeSet::new();
        self.touch(now)
    }
}

fn is_over(task: &Snapshot, now: UnixTime) -> bool {
    task.deadline().is_some_and(|deadline| deadline <= now)
}
