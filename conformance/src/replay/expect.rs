//! Expectations: which message an expectation takes, which it passes over, and which it must not see.

use std::time::Duration;

use serde_json::Value;

use super::findings::Failure;
use super::machine::{Progress, Replay};
use crate::bind::implied;
use crate::exchange::{Action, Expect, Kind, Poll, Step};
use crate::pattern::{Mismatch, Pattern};
use crate::text::shorten;

/// After the response to the latest request has come, how long a message is waited for that would belong
/// before it.
const GRACE: Duration = Duration::from_secs(1);

/// What the current operation remembers between two looks at the inbox.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The request whose response is awaited.
    pub(super) id: Option<Value>,
    /// How many messages were taken.
    pub(super) taken: u64,
    /// The HTTP request of a step.
    pub(super) stream: Option<u64>,
    /// Which of several expectations are met.
    met: Vec<bool>,
    /// The ids that belong to several expectations.
    pub(super) ids: Vec<Option<Value>>,
    /// When a repeated request is due.
    due: Option<Duration>,
    /// When the response to the latest request was seen while something else was waited for.
    overtaken: Option<Duration>,
}

/// What a look into the inbox gave.
enum Look {
    Found(Value),
    Unasked(Value),
    Nothing,
}

impl<'e> Replay<'e> {
    pub(super) fn expect(
        &mut self,
        step: &'e Step,
        expect: &'e Expect,
        begun: Duration,
        now: Duration,
    ) -> Progress {
        if expect.kind == Kind::Response && self.waiting.id.is_none() {
            match self.awaited(expect) {
                Ok(id) => self.waiting.id = Some(id),
                Err(problem) => return self.unusable(step, problem),
            }
        }
        let id = self.waiting.id.clone();
        let deadline = begun + expect.within.map_or(self.patience, Duration::from_millis);
        let (min, max) = expect.times.map_or((1, Some(1)), |times| (times.min, times.max));
        loop {
            if max.is_some_and(|max| self.waiting.taken >= max) {
                return Progress::Done;
            }
            let enough = expect.times.is_some() && self.waiting.taken >= min;
            match self.look(expect, id.as_ref(), enough) {
                Look::Found(message) => {
                    self.waiting.taken += 1;
                    self.hold_head(step, expect, &message);
                    if let Err(mismatch) = self.hold(expect, &message) {
                        let (expected, got) = told(&expect.pattern, &mismatch, &message);
                        self.failed(Some(step), Failure::of(&mismatch), expected, got);
                        // After a warning the exchange goes on, and answers what was asked.
                        self.note_asked(expect, &message);
                        if self.has_failed() {
                            return Progress::Done;
                        }
                    }
                }
                Look::Unasked(_) if enough => return Progress::Done,
                Look::Unasked(message) => {
                    let expected = wanted(expect, id.as_ref());
                    let got = format!("unasked: {}", shorten(&message.to_string(), 300));
                    return self.failed(Some(step), Failure::Broken, expected, got);
                }
                Look::Nothing => {
                    let deadline = self.overtaken(expect, deadline, now);
                    return match self.gone(deadline, now) {
                        Some(_) if enough => Progress::Done,
                        Some(got) => {
                            let count = if expect.times.is_some() {
                                format!(" ({} of at least {min} came)", self.waiting.taken)
                            } else {
                                String::new()
                            };
                            let expected = format!("{}{count}", wanted(expect, id.as_ref()));
                            self.failed(Some(step), Failure::missing(expect), expected, got)
                        }
                        None => Progress::Until(self.until(deadline)),
                    };
                }
            }
        }
    }

    pub(super) fn unordered(&mut self, steps: &'e [Step], begun: Duration, now: Duration) -> Progress {
        let expectations: Vec<(&Step, &Expect)> = steps
            .iter()
            .filter(|step| step.only.contains(self.revision))
            .filter_map(|step| match &step.action {
                Action::Expect(expect) => Some((step, expect)),
                _ => None,
            })
            .collect();
        if self.waiting.met.is_empty() {
            self.waiting.met = vec![false; expectations.len()];
            // The requests are awaited in the order in which they were sent.
            for (step, expect) in &expectations {
                let id = match expect.kind {
                    Kind::Response => match self.awaited(expect) {
                        Ok(id) => Some(id),
                        Err(problem) => return self.unusable(step, problem),
                    },
                    // What is lost is noticed before the time is over.
                    Kind::Identified => expect.id.as_ref().and_then(Pattern::exact).cloned(),
                    Kind::Call(_) => None,
                };
                self.waiting.ids.push(id);
            }
        }
        let mut index = 0;
        while index < self.inbox.len() {
            let message = self.inbox[index].clone();
            let mut closest: Option<(&Step, &Expect, Mismatch)> = None;
            let mut taken = None;
            for (place, (step, expect)) in expectations.iter().enumerate() {
                if self.waiting.met[place]
                    || !self.is_wanted(expect, self.waiting.ids[place].as_ref(), &message)
                {
                    continue;
                }
                match self.hold(expect, &message) {
                    Ok(()) => {
                        taken = Some(place);
                        break;
                    }
                    Err(mismatch) => closest = Some((step, expect, mismatch)),
                }
            }
            let skipped = expectations.iter().any(|(_, expect)| self.skips(expect, &message));
            match (taken, closest) {
                (Some(place), _) => {
                    self.waiting.met[place] = true;
                    self.inbox.remove(index);
                }
                (None, _) if skipped => {
                    self.inbox.remove(index);
                }
                (None, Some((step, expect, mismatch))) => {
                    self.inbox.remove(index);
                    let (expected, got) = told(&expect.pattern, &mismatch, &message);
                    return self.failed(Some(step), Failure::of(&mismatch), expected, got);
                }
                (None, None) if self.tolerated(&message) => {
                    self.inbox.remove(index);
                }
                (None, None) if message.get("method").is_some() => {
                    self.inbox.remove(index);
                    let got = format!("unasked: {}", shorten(&message.to_string(), 300));
                    let step = expectations.first().map(|(step, _)| *step);
                    return self.failed(
                        step,
                        Failure::Broken,
                        "one of the messages in any order".to_owned(),
                        got,
                    );
                }
                (None, None) => index += 1,
            }
        }
        let Some(open) = self.waiting.met.iter().position(|met| !met) else { return Progress::Done };
        let patience =
            |(_, expect): &(&Step, &Expect)| expect.within.map_or(self.patience, Duration::from_millis);
        let deadline = begun + expectations.iter().map(patience).max().unwrap_or(self.patience);
        match self.gone(deadline, now) {
            None => Progress::Until(self.until(deadline)),
            Some(got) => {
                let (step, expect) = expectations[open];
                let expected = wanted(expect, self.waiting.ids[open].as_ref());
                self.failed(Some(step), Failure::missing(expect), expected, got)
            }
        }
    }

    pub(super) fn poll(
        &mut self,
        step: &'e Step,
        poll: &'e Poll,
        begun: Duration,
        now: Duration,
    ) -> Progress {
        let deadline = begun + Duration::from_millis(poll.within);
        let Some(id) = self.waiting.id.clone() else {
            if self.waiting.due.is_some_and(|due| now < due) {
                return Progress::Until(self.waiting.due.unwrap_or(deadline));
            }
            let Some(id) = self.send(step, &poll.send, now) else { return Progress::Done };
            self.unawaited.retain(|open| *open != id);
            self.waiting.id = Some(id);
            return Progress::Until(deadline);
        };
        let response = |message: &Value| message.get("id") == Some(&id) && message.get("method").is_none();
        let Some(index) = self.inbox.iter().position(response) else {
            let expected = format!("a response that comes to fit {}", poll.until);
            return match self.gone(deadline.max(begun + self.patience), now) {
                Some(got) => self.failed(Some(step), Failure::Broken, expected, got),
                None => Progress::Until(self.until(deadline.max(begun + self.patience))),
            };
        };
        let message = self.inbox.remove(index).unwrap_or_default();
        match self.fits(&poll.until, &message, Some(&id)) {
            Ok(()) => Progress::Done,
            Err(mismatch) if now >= deadline => {
                let (expected, got) = told(&poll.until, &mismatch, &message);
                self.failed(
                    Some(step),
                    Failure::of(&mismatch),
                    format!("within {} ms {expected}", poll.within),
                    got,
                )
            }
            Err(_) => {
                let due = now + Duration::from_millis(poll.every);
                self.waiting = Waiting { due: Some(due), ..Waiting::default() };
                Progress::Until(due)
            }
        }
    }

    /// Messages that a legacy peer may send at any time.
    pub(super) fn tolerated(&self, message: &Value) -> bool {
        let unasked = [
            "notifications/cancelled",
            "notifications/tasks/status",
            "notifications/message",
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
        ];
        let method = message.get("method").and_then(Value::as_str);
        !self.revision.is_modern() && method.is_some_and(|method| unasked.contains(&method))
    }

    /// Whether the whole message, without `jsonrpc`, fits.
    pub(super) fn whole_fits(&mut self, pattern: &Pattern, message: &Value) -> bool {
        let mut view = message.clone();
        if let Value::Object(members) = &mut view {
            members.remove("jsonrpc");
        }
        self.scope.implied = implied(self.revision, None);
        pattern.matches(&view, &mut self.scope).is_ok()
    }

    /// The request that an expectation of a response means.
    fn awaited(&mut self, expect: &Expect) -> Result<Value, String> {
        let id = match &expect.of {
            Some(name) => {
                self.scope.ids.get(name).cloned().ok_or_else(|| format!("no request is named `{name}`"))?
            }
            None => self.unawaited.last().cloned().ok_or("no request is open that this could await")?,
        };
        self.unawaited.retain(|open| *open != id);
        Ok(id)
    }

    fn look(&mut self, expect: &'e Expect, id: Option<&Value>, enough: bool) -> Look {
        let mut index = 0;
        while index < self.inbox.len() {
            let message = self.inbox[index].clone();
            let is_call = message.get("method").is_some();
            let found = self.is_wanted(expect, id, &message);
            // A message that is skipped may have the method that is waited for, but then it does not fit.
            let skipped = self.skips(expect, &message) && !(found && self.hold(expect, &message).is_ok());
            if !skipped && found {
                self.inbox.remove(index);
                return Look::Found(message);
            }
            if skipped || (is_call && self.tolerated(&message)) {
                self.inbox.remove(index);
                continue;
            }
            // Streams have no order among them: a question may overtake the response that is waited for.
            if is_call
                && self.web.is_some()
                && message.get("id").is_some()
                && matches!(expect.kind, Kind::Response)
            {
                index += 1;
                continue;
            }
            if is_call {
                // Left for the next step if this one has enough.
                if !enough {
                    self.inbox.remove(index);
                }
                return Look::Unasked(message);
            }
            let latest = self.unawaited.last();
            if enough && latest.is_some() && message.get("id") == latest {
                return Look::Unasked(message);
            }
            index += 1;
        }
        Look::Nothing
    }

    fn is_wanted(&self, expect: &Expect, id: Option<&Value>, message: &Value) -> bool {
        let method = message.get("method").and_then(Value::as_str);
        match &expect.kind {
            Kind::Call(wanted) => method == Some(wanted),
            Kind::Response => method.is_none() && message.get("id") == id,
            Kind::Identified => {
                let mut scope = self.scope.clone();
                let pattern = expect.id.as_ref();
                method.is_none() && pattern.is_none_or(|pattern| pattern.fits(message.get("id"), &mut scope))
            }
        }
    }

    fn skips(&mut self, expect: &'e Expect, message: &Value) -> bool {
        expect.skip.iter().any(|pattern| self.whole_fits(pattern, message))
    }

    /// Holds a taken message against the pattern and notes a request of the subject.
    fn hold(&mut self, expect: &'e Expect, message: &Value) -> Result<(), Mismatch> {
        self.fits(&expect.pattern, message, None)?;
        self.note_asked(expect, message);
        Ok(())
    }

    fn note_asked(&mut self, expect: &Expect, message: &Value) {
        if let (Kind::Call(_), Some(id)) = (&expect.kind, message.get("id")) {
            self.asked.retain(|(_, known)| known != id);
            self.asked.push((expect.name.clone(), id.clone()));
        }
    }

    fn fits(&mut self, pattern: &Pattern, message: &Value, id: Option<&Value>) -> Result<(), Mismatch> {
        let mut view = message.clone();
        let id = id.or_else(|| message.get("id")).cloned().unwrap_or_default();
        if let Value::Object(members) = &mut view {
            members.remove("jsonrpc");
            if !pattern.names("id") {
                members.remove("id");
            }
        }
        let method = self.ledger.method_of(&id).map(str::to_owned);
        self.scope.implied = implied(self.revision, method.as_deref());
        pattern.matches(&view, &mut self.scope)
    }

    /// A message that belongs before a response is not waited for long once the response is there.
    fn overtaken(&mut self, expect: &Expect, deadline: Duration, now: Duration) -> Duration {
        let latest = self.unawaited.last();
        let there = latest.is_some_and(|id| {
            self.inbox.iter().any(|message| message.get("id") == Some(id) && message.get("method").is_none())
        });
        if !there || !matches!(expect.kind, Kind::Call(_)) {
            return deadline;
        }
        let since = *self.waiting.overtaken.get_or_insert(now);
        deadline.min(since + GRACE)
    }
}

/// Whether the step waits for a call of this method.
pub(super) fn mentions_call(action: &Action, method: &str) -> bool {
    match action {
        Action::Expect(expect) => matches!(&expect.kind, Kind::Call(wanted) if wanted == method),
        Action::Unordered(steps) | Action::During { steps, .. } => {
            steps.iter().any(|step| mentions_call(&step.action, method))
        }
        _ => false,
    }
}

fn wanted(expect: &Expect, id: Option<&Value>) -> String {
    let pattern = shorten(&expect.pattern.to_string(), 300);
    match (&expect.kind, id) {
        (Kind::Call(_), _) => pattern,
        (_, Some(id)) => format!("a response to request {id}: {pattern}"),
        (_, None) => format!("a response: {pattern}"),
    }
}

/// Where the difference is, and the message it is in.
fn told(pattern: &Pattern, mismatch: &Mismatch, message: &Value) -> (String, String) {
    if mismatch.at.is_empty() {
        return (pattern.to_string(), shorten(&message.to_string(), 400));
    }
    let whole = shorten(&message.to_string(), 400);
    (format!("{}: {}", mismatch.at, mismatch.expected), format!("{} in {whole}", mismatch.got))
}
