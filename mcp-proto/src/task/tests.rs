use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::limits::Limits;
use crate::random::{PredictableRandom, Random};

const ALICE: Option<&str> = Some("alice");
const BOB: Option<&str> = Some("bob");

fn at(millis: u64) -> UnixTime {
    UnixTime::from_millis(millis)
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.into()).unwrap()
}

fn result(is_error: bool) -> Outcome {
    Outcome::Result { json: raw(r#"{"content":[]}"#), is_error }
}

fn error() -> Outcome {
    Outcome::Error { json: raw(r#"{"code":-32603,"message":"limit"}"#) }
}

struct Fixture {
    table: Table,
    random: PredictableRandom,
}

impl Fixture {
    fn new() -> Self {
        Self { table: Table::new(&Limits::default()), random: PredictableRandom::for_tests(1) }
    }

    fn create(&mut self, owner: Option<&str>, ttl: Option<u64>, now: u64) -> (TaskKey, String) {
        let options = Options { ttl: ttl.map(Duration::from_millis), ..Options::default() };
        let key = self.table.create(owner, options, &mut self.random, at(now)).unwrap();
        (key, key.id().to_string())
    }

    fn ask(&mut self, key: TaskKey, names: &[&str], now: u64) -> Result<Changed, AskError> {
        let question = |name: &&str| (String::from(*name), raw(r#"{"method":"roots/list"}"#));
        self.table.ask(key, names.iter().map(question), at(now))
    }

    fn status(&self, key: TaskKey) -> Status {
        self.table.task(key, at(0)).unwrap().status
    }
}

/// LB-TASK-08, LB-TASK-32, S-TASK-39: ids carry 128 bits of the injected source, and have one spelling.
#[test]
fn ids_are_random_and_have_one_spelling() {
    struct Fixed(u8);
    impl Random for Fixed {
        fn fill(&mut self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }
    let mut table = Table::new(&Limits::default());
    let key = table.create(None, Options::default(), &mut Fixed(0xab), at(0)).unwrap();
    let id = key.id().to_string();
    assert_eq!(id, "ab".repeat(16));
    assert!(table.get(None, &id, at(0)).is_ok());
    for other in [id.to_uppercase(), format!(" {id}"), format!("{id}ab"), id[1..].into(), String::new()] {
        assert_eq!(table.get(None, &other, at(0)).err(), Some(NoSuchTask), "{other}");
    }
    assert_eq!(format!("{key:?}"), "TaskKey(TaskId(ababab…))");
    // A broken source is told, not looped on.
    let again = table.create(None, Options::default(), &mut Fixed(0xab), at(0));
    assert_eq!(again.err(), Some(CreateError::NoFreshId));
    assert!(table.create(None, Options::default(), &mut Fixed(0xac), at(0)).is_ok());
}

/// S-TASK-06, LB-TASK-09, LB-TASK-15, K01: a new task can be read at once and has every member.
#[test]
fn a_new_task_is_complete() {
    let mut f = Fixture::new();
    let options = Options {
        ttl: Some(Duration::from_secs(60)),
        poll_interval: Some(Duration::from_secs(5)),
        status_message: Some("begun".into()),
    };
    let key = f.table.create(ALICE, options, &mut f.random, at(1000)).unwrap();
    let task = f.table.get(ALICE, &key.id().to_string(), at(1000)).unwrap();
    assert_eq!((task.status, task.core_status()), (Status::Working, Status::Working));
    assert_eq!((task.created_at, task.last_updated_at), (at(1000), at(1000)));
    assert_eq!((task.ttl, task.deadline()), (Some(Duration::from_secs(60)), Some(at(61_000))));
    assert_eq!(task.poll_interval, Some(Duration::from_secs(5)));
    assert_eq!(task.status_message.as_deref(), Some("begun"));
    assert!(task.input_requests.is_empty() && task.outcome.is_none());
}

/// LB-TASK-16, LB-TASK-36, LB-TASK-39: the time to live is bounded, and what was granted is told.
#[test]
fn the_time_to_live_is_granted_within_bounds() {
    let granted = |max: Option<u64>, wanted: Option<u64>| {
        let limits = Limits { max_task_ttl: max.map(Duration::from_millis), ..Limits::default() };
        let mut f = Fixture { table: Table::new(&limits), random: PredictableRandom::for_tests(1) };
        let (key, _) = f.create(None, wanted, 0);
        let first = f.table.task(key, at(0)).unwrap().ttl;
        let longer = Some(Duration::from_secs(1_000_000));
        let _ = f.table.set_ttl(key, longer, at(0)).unwrap();
        assert_eq!(f.table.task(key, at(0)).unwrap().ttl, max.map(Duration::from_millis).or(longer));
        let _ = f.table.set_ttl(key, wanted.map(Duration::from_millis), at(0)).unwrap();
        assert_eq!(f.table.task(key, at(0)).unwrap().ttl, first);
        assert_eq!(f.table.next_deadline(), first.map(|ttl| at(0).saturating_add(ttl)));
        first.map(|ttl| ttl.as_millis())
    };
    assert_eq!(granted(Some(90_000), Some(60_000)), Some(60_000));
    assert_eq!(granted(Some(90_000), Some(90_001)), Some(90_000));
    assert_eq!(granted(Some(90_000), None), Some(90_000));
    assert_eq!(granted(Some(90_000), Some(0)), Some(1000));
    assert_eq!(granted(None, Some(100_000)), Some(100_000));
    assert_eq!(granted(None, None), None);
}

/// LB-TASK-31, LB-TASK-34, S-TASK-30, S-TASK-40: unknown, foreign and expired tasks are all the same.
#[test]
fn unknown_foreign_and_expired_are_one() {
    let mut f = Fixture::new();
    let (key, alices) = f.create(ALICE, Some(1000), 0);
    let (_, nobodys) = f.create(None, Some(1000), 0);
    let unknown = "0".repeat(32);
    for (owner, id, now) in [
        (BOB, &alices, 0),
        (None, &alices, 0),
        (Some(""), &alices, 0),
        (ALICE, &nobodys, 0),
        (Some(""), &nobodys, 0),
        (ALICE, &unknown, 0),
        (ALICE, &alices, 1000),
        (None, &nobodys, 5000),
    ] {
        assert_eq!(f.table.get(owner, id, at(now)).err(), Some(NoSuchTask));
        assert_eq!(f.table.cancel(owner, id, at(now)).err(), Some(NoSuchTask));
        assert_eq!(f.table.answer(owner, id, [("a", 1)], at(now)).err(), Some(NoSuchTask));
    }
    assert_eq!(f.status(key), Status::Working);
    assert!(f.table.get(ALICE, &alices, at(999)).is_ok());
    assert!(f.table.get(None, &nobodys, at(999)).is_ok());
}

/// K02, LB-TASK-10, LB-TASK-26..28: a terminal task stays what it is, whoever comes late.
#[test]
fn a_terminal_status_is_final() {
    for ended in [Status::Completed, Status::Failed, Status::Cancelled] {
        let mut f = Fixture::new();
        let (key, id) = f.create(ALICE, None, 0);
        let changed = match ended {
            Status::Completed => f.table.finish(key, result(false), None, at(1)).unwrap(),
            Status::Failed => f.table.finish(key, error(), Some("limit".into()), at(1)).unwrap(),
            _ => match f.table.cancel(ALICE, &id, at(1)).unwrap() {
                Cancelled::Now(changed) => changed,
                Cancelled::TooLate(_) => panic!("it was working"),
            },
        };
        assert_eq!(changed, Changed { key, status: ended });
        let before = format!("{:?}", f.table.task(key, at(1)).unwrap());

        let over = Over::Ended(ended);
        assert_eq!(f.table.cancel(ALICE, &id, at(2)).unwrap(), Cancelled::TooLate(ended));
        assert_eq!(f.table.finish(key, result(false), None, at(2)).unwrap_err(), over);
        assert_eq!(f.table.finish(key, error(), None, at(2)).unwrap_err(), over);
        assert_eq!(f.table.stop(key, None, at(2)).unwrap_err(), over);
        assert_eq!(f.table.describe(key, Some("more".into()), at(2)).unwrap_err(), over);
        assert_eq!(f.table.set_ttl(key, None, at(2)).unwrap_err(), over);
        assert_eq!(f.table.set_poll_interval(key, None, at(2)).unwrap_err(), over);
        assert_eq!(f.table.close_question(key, "a", at(2)).unwrap_err(), over);
        assert_eq!(f.ask(key, &["a"], 2).unwrap_err(), AskError::Over(over));
        let answered = f.table.answer(ALICE, &id, [("a", 1)], at(2)).unwrap();
        assert!(answered.accepted.is_empty() && answered.changed.is_none());
        assert_eq!(format!("{:?}", f.table.task(key, at(2)).unwrap()), before);
    }
}

/// K02: whichever of cancel and finish comes first decides, and there is one change to be told.
#[test]
fn cancel_and_finish_race_to_one_end() {
    let mut coin = PredictableRandom::for_tests(5);
    for _ in 0..200 {
        let mut f = Fixture::new();
        let (key, id) = f.create(ALICE, None, 0);
        let cancel_first = crate::random::bytes::<1>(&mut coin)[0].is_multiple_of(2);
        if cancel_first {
            assert!(matches!(f.table.cancel(ALICE, &id, at(1)), Ok(Cancelled::Now(_))));
            assert_eq!(
                f.table.finish(key, result(false), None, at(1)).unwrap_err(),
                Over::Ended(Status::Cancelled)
            );
        } else {
            assert!(f.table.finish(key, result(false), None, at(1)).is_ok());
            assert_eq!(f.table.cancel(ALICE, &id, at(1)).unwrap(), Cancelled::TooLate(Status::Completed));
        }
        let task = f.table.get(ALICE, &id, at(1)).unwrap();
        assert_eq!(task.status, if cancel_first { Status::Cancelled } else { Status::Completed });
        assert_eq!(task.outcome.is_some(), !cancel_first);
    }
}

/// K03, LB-TASK-18, LB-TASK-30, S-TASK-13, S-TASK-15, S-TASK-36..38: the payload is kept as it was, and
/// each face has its own word for a tool's error.
#[test]
fn outcomes_keep_their_payload_and_the_faces_their_words() {
    let tool_error = r#"{"content":[{"type":"text","text":"no \u0041ccess"}],"isError":true}"#;
    for (outcome, json, extension, core) in [
        (result(false), r#"{"content":[]}"#, Status::Completed, Status::Completed),
        (
            Outcome::Result { json: raw(tool_error), is_error: true },
            tool_error,
            Status::Completed,
            Status::Failed,
        ),
        (error(), r#"{"code":-32603,"message":"limit"}"#, Status::Failed, Status::Failed),
    ] {
        let mut f = Fixture::new();
        let (key, id) = f.create(ALICE, None, 0);
        assert_eq!(f.table.finish(key, outcome, Some("said".into()), at(1)).unwrap().status, extension);
        let task = f.table.get(ALICE, &id, at(1)).unwrap();
        assert_eq!((task.status, task.core_status()), (extension, core));
        assert_eq!(task.status_message.as_deref(), Some("said"));
        match task.outcome.as_ref().unwrap() {
            Outcome::Result { json: kept, .. } | Outcome::Error { json: kept } => {
                assert_eq!(kept.get(), json);
            }
        }
    }
}

/// K03: who waits for the result of a task that expires hears of it, once, also when it had not ended.
#[test]
fn expiry_is_told_once() {
    let mut f = Fixture::new();
    let (working, _) = f.create(ALICE, Some(2000), 0);
    let (done, _) = f.create(ALICE, Some(1000), 0);
    let (eternal_as_may_be, _) = f.create(BOB, None, 0);
    let _ = f.table.finish(done, result(false), None, at(1)).unwrap();
    assert_eq!(f.table.next_deadline(), Some(at(1000)));
    assert_eq!(f.table.expire(at(999)), None);
    // Out of time means out of reach, expired or not.
    assert!(f.table.task(working, at(2000)).is_none());
    assert_eq!(f.table.finish(working, result(false), None, at(2000)).unwrap_err(), Over::Gone);
    assert_eq!(f.table.expire(at(2000)), Some(Expired { key: done, status: Status::Completed }));
    assert_eq!(f.table.expire(at(2000)), Some(Expired { key: working, status: Status::Working }));
    assert_eq!(f.table.expire(at(2000)), None);
    assert_eq!(f.table.next_deadline(), Some(at(24 * 60 * 60 * 1000)));
    assert_eq!(f.table.len(), 1);
    assert!(f.table.task(eternal_as_may_be, at(2000)).is_some());
    assert_eq!(f.table.stop(done, None, at(0)).unwrap_err(), Over::Gone);
}

/// LB-TASK-11, LB-TASK-14, S-TASK-11, S-TASK-12, S-TASK-22: partial answers leave the rest open, surplus
/// ones are ignored, the last one lets the work go on.
#[test]
fn partial_answers_keep_the_rest_open() {
    let mut f = Fixture::new();
    let (key, id) = f.create(ALICE, None, 0);
    assert_eq!(f.ask(key, &["a", "b"], 1).unwrap().status, Status::InputRequired);
    assert_eq!(f.ask(key, &["c"], 2).unwrap().status, Status::InputRequired);
    let open = |f: &Fixture| {
        f.table.get(ALICE, &id, at(0)).unwrap().input_requests.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(open(&f), ["a", "b", "c"]);

    let answered = f.table.answer(ALICE, &id, [("x", 0), ("b", 1), ("b", 2)], at(3)).unwrap();
    assert_eq!(answered.accepted, [("b".into(), 1)]);
    assert_eq!(answered.changed, Some(Changed { key, status: Status::InputRequired }));
    assert_eq!(open(&f), ["a", "c"]);
    let again = f.table.answer(ALICE, &id, [("b", 9)], at(4)).unwrap();
    assert!(again.accepted.is_empty() && again.changed.is_none());
    assert_eq!(f.table.task(key, at(4)).unwrap().last_updated_at, at(3));

    assert_eq!(
        f.table.close_question(key, "c", at(5)),
        Ok(Some(Changed { key, status: Status::InputRequired }))
    );
    assert_eq!(f.table.close_question(key, "c", at(5)), Ok(None));
    let last = f.table.answer(ALICE, &id, [("a", 7)], at(6)).unwrap();
    assert_eq!((last.key, last.changed), (key, Some(Changed { key, status: Status::Working })));
    assert_eq!((f.status(key), open(&f).len()), (Status::Working, 0));
}

/// S-TASK-17..19.
#[test]
fn a_key_is_used_once_in_the_life_of_a_task() {
    let mut f = Fixture::new();
    let (key, id) = f.create(ALICE, None, 0);
    let (other, _) = f.create(ALICE, None, 0);
    let used = |name: &str| Err(AskError::KeyUsed(name.into()));
    assert!(f.ask(key, &["a", "b"], 1).is_ok());
    assert_eq!(f.ask(key, &["c", "a"], 1), used("a"), "open");
    let _ = f.table.answer(ALICE, &id, [("a", 1)], at(2)).unwrap();
    let _ = f.table.close_question(key, "b", at(2)).unwrap();
    assert_eq!(f.ask(key, &["a"], 3), used("a"), "answered");
    assert_eq!(f.ask(key, &["b"], 3), used("b"), "taken back");
    assert_eq!(f.ask(key, &["d", "d"], 3), used("d"), "twice at once");
    assert_eq!(f.ask(key, &[], 3), Err(AskError::Nothing));
    assert_eq!(f.status(key), Status::Working);
    // What was refused was not asked.
    assert!(f.ask(key, &["c", "d"], 3).is_ok());
    assert!(f.ask(other, &["a"], 3).is_ok());

    let names: Vec<String> = (0..300).map(|n| format!("n{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(f.ask(key, &names, 4), Err(AskError::TooMany));
    assert!(f.ask(key, &names[..252], 4).is_ok());
    assert_eq!(f.ask(key, &["z"], 4), Err(AskError::TooMany));
}

/// An end takes the open questions with it.
#[test]
fn nothing_is_asked_by_an_ended_task() {
    let mut f = Fixture::new();
    let (key, id) = f.create(ALICE, None, 0);
    assert!(f.ask(key, &["a"], 1).is_ok());
    assert!(matches!(f.table.cancel(ALICE, &id, at(2)), Ok(Cancelled::Now(_))));
    assert!(f.table.task(key, at(2)).unwrap().input_requests.is_empty());
}

/// LB-TASK-36, LB-TASK-39.
#[test]
fn the_table_is_bounded() {
    let limits = Limits { max_tasks: 4, max_tasks_per_owner: 2, ..Limits::default() };
    let mut f = Fixture { table: Table::new(&limits), random: PredictableRandom::for_tests(1) };
    let mut create = |owner: Option<&str>, now| {
        f.table.create(
            owner,
            Options { ttl: Some(Duration::from_secs(1)), ..Options::default() },
            &mut f.random,
            at(now),
        )
    };
    assert!(create(ALICE, 0).is_ok() && create(ALICE, 0).is_ok());
    assert_eq!(create(ALICE, 0), Err(CreateError::OwnerFull));
    assert!(create(None, 500).is_ok() && create(None, 500).is_ok());
    assert_eq!(create(BOB, 500), Err(CreateError::Full));
    while f.table.expire(at(1000)).is_some() {}
    let mut create = |owner: Option<&str>| f.table.create(owner, Options::default(), &mut f.random, at(1000));
    // Tasks without a name are bounded only together.
    assert!(create(ALICE).is_ok() && create(None).is_ok());
    assert_eq!(f.table.len(), 4);
}

fn pages(table: &Table, owner: &str, size: usize, now: UnixTime) -> Vec<TaskId> {
    let (mut ids, mut cursor) = (vec![], None::<String>);
    for _ in 0..100 {
        let page = table.list(owner, cursor.as_deref(), size, now).unwrap();
        assert!(page.tasks.len() <= size.max(1));
        ids.extend(page.tasks.iter().map(|task| task.id));
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return ids,
        }
    }
    panic!("the pages never end");
}

/// LB-TASK-23..25, LB-TASK-29, LB-TASK-35.
#[test]
fn lists_are_paged_complete_and_private() {
    let mut f = Fixture::new();
    let alices: Vec<TaskId> = (0..7).map(|n| f.create(ALICE, Some(2000 + 1000 * n), 0).0.id()).collect();
    let bobs: Vec<TaskId> = (0..2).map(|_| f.create(BOB, None, 0).0.id()).collect();
    f.create(None, None, 0);
    for size in [0, 1, 2, 3, 7, 8, usize::MAX] {
        assert_eq!(pages(&f.table, "alice", size, at(0)), alices);
        assert_eq!(pages(&f.table, "alice", size, at(3000)), alices[2..]);
        assert_eq!(pages(&f.table, "bob", size, at(0)), bobs);
        assert!(pages(&f.table, "carol", size, at(0)).is_empty());
    }

    // The task that a page ended with may go before the next page is asked for.
    let cursor = f.table.list("alice", None, 2, at(0)).unwrap().next_cursor.unwrap();
    while f.table.expire(at(4000)).is_some() {}
    let next = f.table.list("alice", Some(&cursor), 2, at(4000)).unwrap();
    assert_eq!(next.tasks.iter().map(|t| t.id).collect::<Vec<_>>(), alices[3..5]);
    let cursor2 = next.next_cursor;
    let late = f.create(ALICE, None, 4000).0.id();
    let next = f.table.list("alice", cursor2.as_deref(), 9, at(4000)).unwrap();
    assert_eq!(next.tasks.last().unwrap().id, late);
    assert_eq!(next.next_cursor, None);

    let foreign = f.table.list("bob", None, 1, at(0)).unwrap().next_cursor.unwrap();
    let beyond = format!("{}{:016x}", &cursor[..16], 99);
    let signed = format!("{}+{}", &cursor[..16], &cursor[17..]);
    for bad in [foreign.as_str(), &beyond, &signed, "", "x", &cursor[1..], &format!("{cursor}0"), "é"] {
        assert_eq!(f.table.list("alice", Some(bad), 2, at(4000)).err(), Some(InvalidCursor), "{bad}");
    }
    assert_eq!(f.table.list("carol", Some(&cursor), 2, at(4000)).err(), Some(InvalidCursor));
}

/// The table against a plain list of tasks, after every step.
#[derive(Debug, Clone)]
enum Step {
    Create(usize, Option<u64>),
    Ask(usize, Vec<usize>),
    Answer(usize, usize, Vec<usize>),
    Close(usize, usize),
    Finish(usize, u8),
    Cancel(usize, usize),
    Stop(usize),
    Describe(usize),
    SetTtl(usize, Option<u64>),
    Wait(u64),
    ClockBack(u64),
    Expire,
}

const OWNERS: [Option<&str>; 3] = [None, ALICE, BOB];
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn step() -> impl Strategy<Value = Step> {
    let names = || prop::collection::vec(0usize..6, 0..3);
    let ttl = || prop::option::of(0u64..9000);
    prop_oneof![
        4 => (0usize..3, ttl()).prop_map(|(o, t)| Step::Create(o, t)),
        4 => (0usize..8, names()).prop_map(|(t, n)| Step::Ask(t, n)),
        4 => (0usize..8, 0usize..3, names()).prop_map(|(t, o, n)| Step::Answer(t, o, n)),
        1 => (0usize..8, 0usize..6).prop_map(|(t, n)| Step::Close(t, n)),
        2 => (0usize..8, 0u8..3).prop_map(|(t, k)| Step::Finish(t, k)),
        2 => (0usize..8, 0usize..3).prop_map(|(t, o)| Step::Cancel(t, o)),
        1 => (0usize..8).prop_map(Step::Stop),
        1 => (0usize..8).prop_map(Step::Describe),
        1 => (0usize..8, ttl()).prop_map(|(t, ttl)| Step::SetTtl(t, ttl)),
        3 => (0u64..2500).prop_map(Step::Wait),
        1 => (0u64..700).prop_map(Step::ClockBack),
        1 => Just(Step::Expire),
    ]
}

#[derive(Debug)]
struct Model {
    key: TaskKey,
    owner: Option<&'static str>,
    created: u64,
    updated: u64,
    ttl: u64,
    status: Status,
    message: Option<String>,
    open: BTreeSet<&'static str>,
    used: BTreeSet<&'static str>,
    tool_error: bool,
    removed: bool,
}

impl Model {
    fn there(&self, now: u64) -> bool {
        !self.removed && self.created + self.ttl > now
    }

    fn over(&self, now: u64) -> Option<Over> {
        match self.status {
            _ if !self.there(now) => Some(Over::Gone),
            status if status.is_terminal() => Some(Over::Ended(status)),
            _ => None,
        }
    }

    fn touch(&mut self, now: u64) -> Changed {
        self.updated = self.updated.max(now);
        Changed { key: self.key, status: self.status }
    }

    fn end(&mut self, status: Status, message: Option<String>, now: u64) -> Changed {
        (self.status, self.message) = (status, message);
        self.open.clear();
        self.touch(now)
    }

    fn close(&mut self, name: &str) -> bool {
        let open = self.open.remove(name);
        if open && self.open.is_empty() {
            self.status = Status::Working;
        }
        open
    }
}

const MAX_TTL: u64 = 6000;

fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let limits = Limits {
        max_tasks: 5,
        max_tasks_per_owner: 3,
        max_task_inputs: 4,
        max_task_ttl: Some(Duration::from_millis(MAX_TTL)),
        ..Limits::default()
    };
    let mut f = Fixture { table: Table::new(&limits), random: PredictableRandom::for_tests(3) };
    let mut model: Vec<Model> = vec![];
    let mut now = 1000u64;
    let granted = |ttl: Option<u64>| ttl.unwrap_or(MAX_TTL).clamp(1000, MAX_TTL);
    for step in steps {
        // Steps name tasks from the newest backwards, so that most of them hit one that is there.
        let newest = model.len();
        let pick = |n: usize| newest.checked_sub(1 + n % newest.max(1));
        match step.clone() {
            Step::Create(owner, ttl) => {
                let owner = OWNERS[owner];
                let held = model.iter().filter(|t| !t.removed).count();
                let of_owner = model.iter().filter(|t| !t.removed && t.owner == owner).count();
                let options = Options { ttl: ttl.map(Duration::from_millis), ..Options::default() };
                match f.table.create(owner, options, &mut f.random, at(now)) {
                    Ok(key) => {
                        prop_assert!(held < 5 && (owner.is_none() || of_owner < 3));
                        model.push(Model {
                            key,
                            owner,
                            created: now,
                            updated: now,
                            ttl: granted(ttl),
                            status: Status::Working,
                            message: None,
                            open: BTreeSet::new(),
                            used: BTreeSet::new(),
                            tool_error: false,
                            removed: false,
                        });
                    }
                    Err(CreateError::Full) => prop_assert_eq!(held, 5),
                    Err(CreateError::OwnerFull) => prop_assert!(owner.is_some() && of_owner == 3),
                    Err(other) => prop_assert!(false, "{}", other),
                }
            }
            Step::Ask(task, names) => {
                let Some(task) = pick(task).map(|n| &mut model[n]) else { continue };
                let names: Vec<&'static str> = names.into_iter().map(|n| NAMES[n]).collect();
                let distinct: BTreeSet<_> = names.iter().copied().collect();
                let outcome = f.ask(task.key, &names, now);
                if let Some(over) = task.over(now) {
                    prop_assert_eq!(outcome, Err(AskError::Over(over)));
                } else if names.is_empty() {
                    prop_assert_eq!(outcome, Err(AskError::Nothing));
                } else if distinct.len() < names.len() || !distinct.is_disjoint(&task.used) {
                    prop_assert!(matches!(outcome, Err(AskError::KeyUsed(_) | AskError::TooMany)));
                } else if task.used.len() + distinct.len() > 4 {
                    prop_assert_eq!(outcome, Err(AskError::TooMany));
                } else {
                    task.used.extend(&distinct);
                    task.open.extend(&distinct);
                    task.status = Status::InputRequired;
                    prop_assert_eq!(outcome, Ok(task.touch(now)));
                }
            }
            Step::Answer(task, owner, names) => {
                let Some(task) = pick(task).map(|n| &mut model[n]) else { continue };
                let answers = names.iter().map(|n| (NAMES[*n], *n));
                let outcome = f.table.answer(OWNERS[owner], &task.key.id().to_string(), answers, at(now));
                if OWNERS[owner] != task.owner || !task.there(now) {
                    prop_assert_eq!(outcome, Err(NoSuchTask));
                } else {
                    let mut accepted = vec![];
                    for n in names {
                        if task.close(NAMES[n]) {
                            accepted.push((String::from(NAMES[n]), n));
                        }
                    }
                    let changed = (!accepted.is_empty()).then(|| task.touch(now));
                    prop_assert_eq!(outcome, Ok(Answered { key: task.key, accepted, changed }));
                }
            }
            Step::Close(task, name) => {
                let Some(task) = pick(task).map(|n| &mut model[n]) else { continue };
                let outcome = f.table.close_question(task.key, NAMES[name], at(now));
                match task.over(now) {
                    Some(over) => prop_assert_eq!(outcome, Err(over)),
                    None => {
                        let changed = task.close(NAMES[name]).then(|| task.touch(now));
                        prop_assert_eq!(outcome, Ok(changed));
                    }
                }
            }
            Step::Finish(task, kind) => {
                let Some(task) = pick(task).map(|n| &mut model[n]) else { continue };
                let ending = if kind == 0 { error() } else { result(kind == 1) };
                let status = ending.status();
                let outcome = f.table.finish(task.key, ending, Some("end".into()), at(now));
                match task.over(now) {
                    Some(over) => prop_assert_eq!(outcome, Err(over)),
                    None => {
                        task.tool_error = kind == 1;
                        prop_assert_eq!(outcome, Ok(task.end(status, Some("end".into()), now)));
                    }
                }
            }
            Step::Cancel(task, owner) => {
                let Some(task) = pick(task).map(|n| &mut model[n]) else { continue };
                let outcome = f.table.cancel(OWNERS[owner], &task.key.id().to_string(), at(now));
                prop_assert_eq!(
                    outcome,
                    match task.over(now) {
                        _ if OWNERS[owner] != task.owner => Err(NoSuchTask),
                        Some(Over::Gone) => Err(NoSuchTask),
                        Some(Over::Ended(status)) => Ok(Cancelled::TooLate(status)),
                        None => Ok(Cancelled::Now(task.end(Status::Cancelled, None, now))),
                    }
                );
            }
            Step::Stop(task) => {
                let Some(task) = pick(task).map(|n| &mut model[n]) else { continue };
                let outcome = f.table.stop(task.key, Some("stop".into()), at(now));
                match task.over(now) {
                    Some(over) => prop_assert_eq!(outcome, Err(over)),
                    None => {
                        prop_assert_eq!(outcome, Ok(task.end(Status::Cancelled, Some("stop".into()), now)));
                    }
                }
            }
            Step::Describe(task) => {
                let Some(task) = pick(task).map(|n| &mut model[n]) else { continue };
                let outcome = f.table.describe(task.key, Some("words".into()), at(now));
                match task.over(now) {
                    Some(over) => prop_assert_eq!(outcome, Err(over)),
                    None => {
                        task.message = Some("words".into());
                        prop_assert_eq!(outcome, Ok(task.touch(now)));
                    }
                }
            }
            Step::SetTtl(task, ttl) => {
                let Some(task) = pick(task).map(|n| &mut model[n]) else { continue };
                let outcome = f.table.set_ttl(task.key, ttl.map(Duration::from_millis), at(now));
                match task.over(now) {
                    Some(over) => prop_assert_eq!(outcome, Err(over)),
                    None => {
                        task.ttl = granted(ttl);
                        prop_assert_eq!(outcome, Ok(task.touch(now)));
                    }
                }
            }
            Step::Wait(millis) => now += millis,
            Step::ClockBack(millis) => now = now.saturating_sub(millis),
            Step::Expire => {
                let mut due: Vec<_> = model.iter_mut().filter(|t| !t.removed && !t.there(now)).collect();
                due.iter_mut().for_each(|task| task.removed = true);
                let due: BTreeSet<_> = due.iter().map(|t| (t.key, t.status.as_str())).collect();
                let mut told = BTreeSet::new();
                while let Some(expired) = f.table.expire(at(now)) {
                    prop_assert!(told.insert((expired.key, expired.status.as_str())), "told twice");
                }
                prop_assert_eq!(told, due);
            }
        }
        check(&f.table, &model, now)?;
    }
    Ok(())
}

/// All that can be seen of the table is what the model says.
fn check(table: &Table, model: &[Model], now: u64) -> Result<(), TestCaseError> {
    let held = || model.iter().filter(|task| !task.removed);
    prop_assert_eq!(table.len(), held().count());
    prop_assert_eq!(table.is_empty(), held().next().is_none());
    prop_assert_eq!(table.next_deadline(), held().map(|task| at(task.created + task.ttl)).min());
    for task in model {
        let id = task.key.id().to_string();
        for owner in OWNERS {
            let seen = table.get(owner, &id, at(now));
            prop_assert_eq!(seen.is_ok(), owner == task.owner && task.there(now));
        }
        let Some(seen) = table.task(task.key, at(now)) else {
            prop_assert!(!task.there(now));
            continue;
        };
        prop_assert!(task.there(now));
        prop_assert_eq!(seen.status, task.status);
        prop_assert_eq!(&seen.status_message, &task.message);
        prop_assert_eq!((seen.created_at, seen.last_updated_at), (at(task.created), at(task.updated)));
        prop_assert_eq!(seen.ttl, Some(Duration::from_millis(task.ttl)));
        prop_assert!(seen.input_requests.keys().eq(&task.open));
        prop_assert_eq!(seen.status == Status::InputRequired, !seen.input_requests.is_empty());
        prop_assert_eq!(
            seen.outcome.is_some(),
            matches!(seen.status, Status::Completed | Status::Failed),
            "an outcome belongs to completed and failed"
        );
        let core = if task.tool_error { Status::Failed } else { task.status };
        prop_assert_eq!(seen.core_status(), core);
    }
    for owner in ["alice", "bob"] {
        let of_owner = model
            .iter()
            .filter(|t| t.owner == Some(owner) && t.there(now))
            .map(|t| t.key.id())
            .collect::<Vec<_>>();
        for size in [1, 2, 10] {
            prop_assert_eq!(&pages(table, owner, size, at(now)), &of_owner);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2 * ProptestConfig::default().cases))]

    #[test]
    fn the_table_is_the_model(steps in prop::collection::vec(step(), 1..60)) {
        run(steps)?;
    }

    #[test]
    fn no_text_from_a_peer_makes_it_panic(text in "[0-9a-fA-F+é]{0,40}") {
        let mut f = Fixture::new();
        f.create(ALICE, None, 0);
        let _ = f.table.get(ALICE, &text, at(0));
        let _ = f.table.list("alice", Some(&text), 1, at(0));
    }
}
