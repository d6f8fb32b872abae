//! Writing a script as an exchange: what is played is what is written, so that a file replays just what was found.

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::requests;
use super::script::{Body, Cuts, Message, Operation, Script};
use crate::exchange::Transport;
use crate::http::{Mirrors, expected};
use crate::revision::Revision;

/// How long a cancelled call is listened to, in milliseconds. It would run far longer.
const SILENCE: u64 = 60;

/// The text of the exchange.
pub(super) fn exchange(script: &Script) -> String {
    let Script { seed, number, revision, transport, tools, .. } = script;
    let about = format!("Script {number} of the seed {seed}.");
    let mut head = json!({
        "exchange": script.name(),
        "about": about,
        "side": "server",
        "revisions": [revision.as_str()],
        "transports": [transport.as_str()],
        "requires": ["S-BASE-01"],
    });
    if !tools.is_empty() {
        head["needs"] = json!({"tools": tools});
    }
    let mut page = Page { script, steps: vec![head], owed: Vec::new(), bound: 0 };
    for operation in &script.operations {
        page.operation(operation);
    }
    page.settle();
    page.alive();
    page.steps.iter().map(|step| format!("{step}\n")).collect()
}

struct Page<'s> {
    script: &'s Script,
    steps: Vec<Value>,
    /// Expectations that are not written yet.
    owed: Vec<Value>,
    /// How many cursors have a name.
    bound: usize,
}

impl Page<'_> {
    fn operation(&mut self, operation: &Operation) {
        match operation {
            Operation::Say(messages, cuts) => self.say(messages, cuts),
            Operation::Await => self.settle(),
            Operation::Pages { method, hops } => self.pages(method, *hops),
            Operation::Cancel(id) => self.cancel(id),
            Operation::Stop { id, form } => {
                let params = json!({"name": "slow", "arguments": {"ms": 20_000}});
                let text = form.write(&self.whole(id, "tools/call", params));
                self.steps.push(json!({"send_text": format!("{text}\n")}));
                self.alive();
                self.cancel(id);
                self.alive();
                let ids = ["S-STDIO-04", "S-HTTP-15", "S-CANCEL-06", "C04"];
                let of = json!({"id": id, "$rest": true});
                self.steps.push(json!({"expect_nothing": SILENCE, "of": of, "requires": ids}));
            }
        }
    }

    /// A request with all that the revision asks for.
    fn whole(&self, id: &Value, method: &str, params: Value) -> Value {
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        if self.script.revision.is_modern() {
            message["params"]["_meta"] = requests::meta(self.script.revision);
        }
        message
    }

    fn say(&mut self, messages: &[Message], cuts: &Cuts) {
        if self.script.transport == Transport::Stdio {
            let line = |message: &Message| {
                let end = if message.form.carriage { "\r\n" } else { "\n" };
                format!("{}{end}", message.text())
            };
            let text: String = messages.iter().map(line).collect();
            self.split(cuts, text.len(), 0);
            self.steps.push(json!({"send_text": text}));
        } else {
            for (index, message) in messages.iter().enumerate() {
                let text = message.text();
                self.split(cuts, text.len(), index as u64);
                let headers = self.headers(message);
                let mut step = json!({"send_text": format!("{text}\n")});
                if !headers.is_empty() {
                    step["headers"] = Value::Object(headers);
                }
                self.steps.push(step);
            }
        }
        for message in messages {
            let (Some(Value::Object(owed)), Some(id)) = (&message.owed, message.id()) else { continue };
            let mut pattern = owed.clone();
            pattern.insert("id".to_owned(), id.clone());
            let mut expectation = json!({"expect": pattern, "requires": message.requires});
            // JSON lets a reader limit the precision of numbers [RFC 8259, section 6].
            let beyond_doubles = id.as_f64().is_some_and(|id| id.abs() >= 9_007_199_254_740_992.0);
            if message.lenient || beyond_doubles {
                expectation["level"] = json!("should");
            }
            self.owed.push(expectation);
        }
    }

    fn split(&mut self, cuts: &Cuts, length: usize, part: u64) {
        match cuts {
            Cuts::None => {}
            Cuts::Every => self.steps.push(json!({"split": "every"})),
            Cuts::Some { seed, most } => {
                let cuts = Dice::of(*seed, &[part]).cuts(length, *most);
                self.steps.push(json!({"split": cuts}));
            }
        }
    }

    /// All that is owed comes, in any order; what else a server may say is for the rules to judge.
    fn settle(&mut self) {
        let mut owed = std::mem::take(&mut self.owed);
        let Some(first) = owed.first_mut() else { return };
        first["skip"] = skip();
        self.steps.push(json!({"unordered": owed}));
    }

    /// A request that is answered shows that the connection lives and that all before it was read.
    fn alive(&mut self) {
        let (method, ids) = requests::alive(self.script.revision.is_modern());
        self.steps.push(json!({"send": {"method": method}}));
        let expect = json!({"result": {"$rest": true}});
        self.steps.push(json!({"expect": expect, "requires": ids, "skip": skip()}));
    }

    fn pages(&mut self, method: &str, hops: usize) {
        let member = requests::member(method);
        for hop in 0..=hops {
            let params = match hop {
                0 => json!({}),
                _ => json!({"cursor": {"$optional": {"$ref": format!("cursor-{}", self.bound)}}}),
            };
            self.bound += 1;
            let cursor =
                json!({"$optional": {"$bind": format!("cursor-{}", self.bound), "$is": {"$type": "string"}}});
            let result = json!({member: {"$type": "array"}, "nextCursor": cursor, "$rest": true});
            self.steps.push(json!({"send": {"method": method, "params": params}}));
            self.steps.push(json!({"expect": {"result": result}, "requires": ["S-BASE-01"], "skip": skip()}));
        }
    }

    fn cancel(&mut self, id: &Value) {
        let params = json!({"requestId": id});
        self.steps.push(json!({"send": {"method": "notifications/cancelled", "params": params}}));
    }

    /// Some of the header lines of the message, in any case and with white space around the values. A name that is
    /// written here stands behind the others.
    fn headers(&self, message: &Message) -> Map<String, Value> {
        let (Some(seed), Body::Json(body)) = (message.headers, &message.body) else { return Map::new() };
        let Script { revision, .. } = *self.script;
        let mut dice = Dice::new(seed);
        let mut lines = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        if revision != Revision::V2024_11_05 {
            lines.push(("Accept".to_owned(), "application/json, text/event-stream".to_owned()));
        }
        if revision.is_modern() {
            expected(body, revision.as_str(), &Mirrors::default(), &mut lines);
        } else if revision >= Revision::V2025_06_18 {
            lines.push(("MCP-Protocol-Version".to_owned(), revision.as_str().to_owned()));
        }
        let mut headers = Map::new();
        let space = |dice: &mut Dice| (*dice.pick(&["", " ", "\t", "  \t "]).unwrap_or(&"")).to_owned();
        for (name, value) in lines {
            if dice.one_in(3) {
                continue;
            }
            // White space beside an empty value is all of it.
            let padded = format!("{}{value}{}", space(&mut dice), space(&mut dice));
            headers.insert(cased(&name, &mut dice), json!(padded));
        }
        if dice.one_in(3) {
            headers.insert(cased("Host", &mut dice), json!({"$ref": "authority"}));
        }
        headers
    }
}

fn cased(name: &str, dice: &mut Dice) -> String {
    let letter =
        |letter: char| if dice.one_in(2) { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() };
    name.chars().map(letter).collect()
}

/// Notifications, and requests of a legacy server.
fn skip() -> Value {
    json!({"method": {"$type": "string"}, "$rest": true})
}
