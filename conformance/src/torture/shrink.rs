//! Making a script smaller while it still shows the same fault.

use serde_json::Value;

use super::form::Form;
use super::script::{Body, Cuts, Message, Operation, Script};
use crate::replay::Finding;

/// What a finding is known by. Two with the same symptom are taken for one fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Symptom {
    /// A rule is broken that needs no exchange.
    Rule(&'static str, Vec<String>),
    /// The subject ended, or closed a connection without an answer.
    Ended,
    /// Nothing came.
    Silent,
    /// Something else came than these ask for.
    Differs(Vec<String>),
}

impl Symptom {
    pub(super) fn of(finding: &Finding) -> Self {
        let got = finding.got.as_str();
        match finding.rule {
            Some(rule) => Self::Rule(rule, finding.requires.clone()),
            None if got.starts_with("the output ended") || got.starts_with("no response") => Self::Ended,
            None if got.starts_with("nothing in time") => Self::Silent,
            None => Self::Differs(finding.requires.clone()),
        }
    }
}

/// Asks whether a script still shows the fault, a bounded number of times.
struct Trial<F> {
    fails: F,
    left: usize,
}

impl<F: FnMut(&Script) -> bool> Trial<F> {
    /// Takes the smaller script if it shows the fault.
    fn takes(&mut self, script: &mut Script, smaller: Script) -> bool {
        if self.left == 0 || smaller == *script {
            return false;
        }
        self.left -= 1;
        let taken = (self.fails)(&smaller);
        if taken {
            *script = smaller;
        }
        taken
    }
}

/// The smallest script that was found with at most so many tries.
pub(super) fn shrink(script: &Script, tries: usize, fails: impl FnMut(&Script) -> bool) -> Script {
    let mut best = script.clone();
    let mut trial = Trial { fails, left: tries };
    loop {
        let before = best.clone();
        fewer_operations(&mut best, &mut trial);
        fewer_messages(&mut best, &mut trial);
        plainer(&mut best, &mut trial);
        if best == before || trial.left == 0 {
            return best;
        }
    }
}

/// Takes operations away: halves, then quarters, and so on to one.
fn fewer_operations<F: FnMut(&Script) -> bool>(best: &mut Script, trial: &mut Trial<F>) {
    let mut size = best.operations.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < best.operations.len() {
            let mut smaller = best.clone();
            let end = (at + size).min(smaller.operations.len());
            smaller.operations.drain(at..end);
            if !trial.takes(best, smaller) {
                at += size;
            }
        }
        size /= 2;
    }
}

/// Takes messages away, one by one.
fn fewer_messages<F: FnMut(&Script) -> bool>(best: &mut Script, trial: &mut Trial<F>) {
    for operation in (0..best.operations.len()).rev() {
        let mut at = 0;
        while let Operation::Say(messages, _) = &best.operations[operation]
            && messages.len() > 1
            && at < messages.len()
        {
            let mut smaller = best.clone();
            if let Operation::Say(messages, _) = &mut smaller.operations[operation] {
                messages.remove(at);
            }
            if !trial.takes(best, smaller) {
                at += 1;
            }
        }
    }
}

/// Writes what is left more plainly: uncut, in the usual order, without what is beside the point.
fn plainer<F: FnMut(&Script) -> bool>(best: &mut Script, trial: &mut Trial<F>) {
    for operation in 0..best.operations.len() {
        let count = match &best.operations[operation] {
            Operation::Say(messages, _) => messages.len(),
            Operation::Stop { .. } => {
                let mut smaller = best.clone();
                if let Operation::Stop { form, .. } = &mut smaller.operations[operation] {
                    *form = Form::default();
                }
                trial.takes(best, smaller);
                continue;
            }
            _ => continue,
        };
        let mut uncut = best.clone();
        if let Operation::Say(_, cuts) = &mut uncut.operations[operation] {
            *cuts = Cuts::None;
        }
        trial.takes(best, uncut);
        for message in 0..count {
            let change = |change: &dyn Fn(&mut Message), best: &mut Script, trial: &mut Trial<F>| {
                let mut smaller = best.clone();
                if let Operation::Say(messages, _) = &mut smaller.operations[operation] {
                    change(&mut messages[message]);
                }
                trial.takes(best, smaller)
            };
            change(&|message| message.headers = None, best, trial);
            for simpler in Form::SIMPLER {
                change(&|message| message.form = simpler(message.form), best, trial);
            }
            for extra in
                ["com.example/note", "com.example/pad", "progressToken", "io.modelcontextprotocol/logLevel"]
            {
                change(&|message| without(message, extra), best, trial);
            }
            while let Some(text) = longest(best, operation, message) {
                let characters: Vec<_> = text.chars().collect();
                let (first, second) = characters.split_at(characters.len() / 2);
                let halves = [first, second].map(|half| half.iter().collect::<String>());
                let shorter = |half: &String| change(&|message| replace(message, &text, half), best, trial);
                if !halves.iter().any(shorter) {
                    break;
                }
            }
        }
    }
}

fn without(message: &mut Message, extra: &str) {
    if let Body::Json(body) = &mut message.body
        && let Some(Value::Object(meta)) = body.pointer_mut("/params/_meta")
    {
        meta.remove(extra);
    }
}

/// The longest text among the arguments, if it can be shorter.
fn longest(script: &Script, operation: usize, message: usize) -> Option<String> {
    let Operation::Say(messages, _) = &script.operations[operation] else { return None };
    let Body::Json(body) = &messages[message].body else { return None };
    let arguments = body.pointer("/params/arguments")?.as_object()?;
    let texts = arguments.values().filter_map(Value::as_str);
    texts.max_by_key(|text| text.len()).filter(|text| text.chars().count() > 1).map(str::to_owned)
}

/// The other text in its place, in what is sent and in what is owed.
fn replace(message: &mut Message, text: &str, other: &str) {
    if let Body::Json(body) = &mut message.body
        && let Some(arguments) = body.pointer_mut("/params/arguments")
    {
        exchange(arguments, text, other);
    }
    if let Some(owed) = &mut message.owed {
        exchange(owed, text, other);
    }
}

fn exchange(value: &mut Value, text: &str, other: &str) {
    match value {
        Value::String(found) if found == text => other.clone_into(found),
        Value::Array(items) => items.iter_mut().for_each(|item| exchange(item, text, other)),
        Value::Object(members) => members.values_mut().for_each(|value| exchange(value, text, other)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::script::Kind;
    use super::*;
    use crate::exchange::Transport;
    use crate::revision::Revision;

    fn say(text: &str) -> Message {
        let body =
            json!({"id": 1, "params": {"arguments": {"text": text}, "_meta": {"com.example/note": 1}}});
        let form = Form { seed: 1, shuffled: true, spaced: true, escaped: true, carriage: true };
        let owed = Some(json!({"result": {"content": [{"text": text}]}}));
        Message {
            kind: Kind::Echo,
            body: Body::Json(body),
            form,
            headers: Some(1),
            owed,
            requires: &[],
            lenient: false,
        }
    }

    fn script(operations: Vec<Operation>) -> Script {
        let (revision, transport) = (Revision::V2025_06_18, Transport::Stdio);
        Script { seed: 1, number: 2, revision, transport, tools: Vec::new(), operations }
    }

    #[test]
    fn what_does_not_matter_goes_and_what_does_stays() {
        let mut operations: Vec<_> =
            (0..9).map(|_| Operation::Say(vec![say("abc"), say("def")], Cuts::Every)).collect();
        operations.insert(5, Operation::Say(vec![say("x"), say("some text with a ! in it")], Cuts::Every));
        operations.push(Operation::Await);
        let escaped = |script: &Script| {
            let marked = |body: &Body| matches!(body, Body::Json(body) if body.to_string().contains('!'));
            script.messages().any(|message| message.form.escaped && marked(&message.body))
        };
        let mut asked = 0;
        let small = shrink(&script(operations), 500, |script| {
            asked += 1;
            escaped(script)
        });
        assert!(asked <= 500, "{asked}");
        let [Operation::Say(messages, Cuts::None)] = small.operations.as_slice() else { panic!("{small:?}") };
        let [message] = messages.as_slice() else { panic!("{messages:?}") };
        let Body::Json(body) = &message.body else { panic!("{message:?}") };
        assert_eq!(body["params"], json!({"arguments": {"text": "!"}, "_meta": {}}));
        assert_eq!(
            message.owed,
            Some(json!({"result": {"content": [{"text": "!"}]}})),
            "what is owed follows"
        );
        assert_eq!(message.form, Form { seed: 1, escaped: true, ..Form::default() });
        assert_eq!(message.headers, None);
    }

    #[test]
    fn the_number_of_tries_is_bounded() {
        let operations = (0..60).map(|_| Operation::Say(vec![say("abc")], Cuts::None)).collect();
        let mut asked = 0;
        shrink(&script(operations), 25, |_| {
            asked += 1;
            false
        });
        assert_eq!(asked, 25);
    }
}
