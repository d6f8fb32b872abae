//! Drawing scripts: the same seed, number and survey give the same script.

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::form::Form;
use super::script::{Body, Cuts, Kind, Message, Operation, Script};
use super::survey::{ADD, ECHO, SLOW, Survey};
use super::{CHAIN, requests};
use crate::exchange::{Signature, Transport};

/// Draws one script.
pub(super) fn script(survey: &Survey, seed: u64, number: u64) -> Script {
    let dice = Dice::of(seed, &[number, survey.revision as u64, survey.transport as u64]);
    // Scripts of a chain share a connection, on which no id may come twice.
    let next = 1_000 + (number % CHAIN as u64) as i64 * 1_000;
    let mut draw = Draw { survey, dice, next, first: number.is_multiple_of(CHAIN as u64), tools: Vec::new() };
    let mut operations = Vec::new();
    for _ in 0..draw.dice.between(2, 7) {
        draw.operation(&mut operations);
    }
    let Draw { tools, .. } = draw;
    let Survey { revision, transport, .. } = *survey;
    Script { seed, number, revision, transport, tools, operations }
}

struct Draw<'s> {
    survey: &'s Survey,
    dice: Dice,
    /// What makes the next id one of its own.
    next: i64,
    /// Whether ids that there is only one of are still free.
    first: bool,
    tools: Vec<String>,
}

impl Draw<'_> {
    fn operation(&mut self, operations: &mut Vec<Operation>) {
        match self.dice.below(24) {
            0 | 1 => operations.push(Operation::Await),
            2 if !self.survey.lists.is_empty() => {
                let method = *self.dice.pick(&self.survey.lists).unwrap_or(&"tools/list");
                operations.push(Operation::Pages { method, hops: self.dice.between(1, 3) });
            }
            3 => self.raced(operations),
            4 if self.survey.revision.is_modern() => self.listen(operations),
            // It takes time to see that nothing comes.
            5 if self.survey.slows && self.dice.one_in(4) => {
                self.need(SLOW);
                operations.push(Operation::Stop { id: self.id(), form: Form::any(&mut self.dice) });
            }
            _ => {
                let count = *self.dice.pick(&[1, 1, 1, 2, 2, 3, 5]).unwrap_or(&1);
                let mut messages: Vec<_> = (0..count).flat_map(|_| self.messages()).collect();
                self.dice.shuffle(&mut messages);
                operations.push(self.say(messages));
            }
        }
    }

    fn say(&mut self, messages: Vec<Message>) -> Operation {
        let whole = self.survey.transport == Transport::Http && !self.survey.limits.chunks;
        let long = messages.iter().map(|message| message.text().len()).sum::<usize>() > 700;
        let cuts = match self.dice.below(6) {
            _ if whole => Cuts::None,
            // That takes its time.
            0 if !long && self.dice.one_in(16) => Cuts::Every,
            0..=2 => Cuts::Some { seed: self.dice.roll(), most: self.dice.between(1, 6) },
            _ => Cuts::None,
        };
        Operation::Say(messages, cuts)
    }

    /// A request that is cancelled at once, or after something else was said.
    fn raced(&mut self, operations: &mut Vec<Operation>) {
        let mut raced = self.work();
        (raced.kind, raced.owed) = (Kind::Raced, None);
        let id = raced.id().cloned().unwrap_or_default();
        let mut messages = self.messages();
        messages.push(raced);
        operations.push(self.say(messages));
        if self.dice.one_in(2) {
            let between = self.messages();
            operations.push(self.say(between));
        }
        operations.push(Operation::Cancel(id));
    }

    fn listen(&mut self, operations: &mut Vec<Operation>) {
        let params = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
        let mut listen = self.request(Kind::Listen, "subscriptions/listen", params, None, &["S-BASE-01"]);
        listen.owed = None;
        let id = listen.id().cloned().unwrap_or_default();
        operations.push(self.say(vec![listen]));
        let meanwhile = self.messages();
        operations.push(self.say(meanwhile));
        operations.push(Operation::Cancel(id));
    }

    /// One drawn message, or two that belong together.
    fn messages(&mut self) -> Vec<Message> {
        let one = match self.dice.below(32) {
            0 => return self.twin(),
            1 | 2 => self.notice(),
            3 => self.spoiled(),
            4 => self.odd(),
            5 if self.dice.one_in(2) => self.deep(),
            6 if self.dice.one_in(2) => self.huge(),
            7 => self.unknown(),
            8 | 9 => self.no_method(),
            10 | 11 => self.odd_params(),
            12..=14 => self.ping(),
            _ => self.work(),
        };
        vec![one]
    }

    fn ping(&mut self) -> Message {
        let modern = self.survey.revision.is_modern();
        let (method, ids) = requests::alive(modern);
        self.request(Kind::Ping, method, json!({}), Some(json!({"result": {"$rest": true}})), ids)
    }

    /// A request that the subject declares, and that is right or plainly wrong.
    fn work(&mut self) -> Message {
        let survey = self.survey;
        for _ in 0..8 {
            let drawn = match self.dice.below(14) {
                0..=2 if survey.echoes => Some(self.echo(None)),
                3 if survey.adds => Some(self.add()),
                4 | 5 => self.call(),
                6 => self.refused(),
                7 => self.list(),
                8 => self.read(),
                9 => self.prompt(),
                10 if survey.completes => self.complete(),
                11 if survey.logs => Some(self.level()),
                12 => self.missing(),
                13 if survey.subscribes => self.subscribe(),
                _ => None,
            };
            if let Some(message) = drawn {
                return message;
            }
        }
        self.ping()
    }

    fn echo(&mut self, length: Option<usize>) -> Message {
        self.need(ECHO);
        let length = length.unwrap_or_else(|| *self.dice.pick(&[0, 1, 5, 20, 60, 300]).unwrap_or(&5));
        let said = super::values::text(&mut self.dice, length);
        let block = json!({"type": "text", "text": said, "$rest": true});
        let owed = json!({"result": {"content": [block], "isError": {"$optional": false}, "$rest": true}});
        let params = json!({"name": "echo", "arguments": {"text": said}});
        self.request(Kind::Echo, "tools/call", params, Some(owed), &["B-BASE-02", "S-BASE-01"])
    }

    fn add(&mut self) -> Message {
        self.need(ADD);
        let mut term = || self.dice.below(2_000_001) as i64 - 1_000_000;
        let (a, b) = (term(), term());
        let mut result =
            json!({"content": {"$type": "array"}, "isError": {"$optional": false}, "$rest": true});
        if self.survey.sums {
            result["structuredContent"] = json!({"sum": a + b});
        }
        let params = json!({"name": "add", "arguments": {"a": a, "b": b}});
        self.request(Kind::Add, "tools/call", params, Some(json!({"result": result})), &["S-BASE-01"])
    }

    fn call(&mut self) -> Option<Message> {
        let survey = self.survey;
        let tool = self.dice.pick(&survey.tools)?;
        let arguments = self.dice.pick(&tool.arguments.valid)?.clone();
        self.need(&tool.name);
        let params = json!({"name": tool.name, "arguments": arguments});
        Some(self.request(Kind::Call, "tools/call", params, Some(json!({"$rest": true})), &["S-BASE-01"]))
    }

    fn refused(&mut self) -> Option<Message> {
        let survey = self.survey;
        let tool = self.dice.pick(&survey.tools)?;
        let arguments = self.dice.pick(&tool.arguments.invalid)?.clone();
        self.need(&tool.name);
        let params = json!({"name": tool.name, "arguments": arguments});
        let owed = requests::refusal();
        Some(self.request(Kind::Refused, "tools/call", params, Some(owed), &["S-TOOL-15", "T02"]))
    }

    fn list(&mut self) -> Option<Message> {
        let method = *self.dice.pick(&self.survey.lists)?;
        if self.dice.one_in(4) {
            let cursor = self.no_such();
            let owed = requests::error(&[-32602]);
            let params = json!({"cursor": cursor});
            return Some(self.request(Kind::NoCursor, method, params, Some(owed), &["S-PAGE-03"]));
        }
        let owed = json!({"result": {requests::member(method): {"$type": "array"}, "$rest": true}});
        Some(self.request(Kind::List, method, json!({}), Some(owed), &["S-BASE-01"]))
    }

    fn read(&mut self) -> Option<Message> {
        let uri = self.dice.pick(&self.survey.resources)?.clone();
        let params = json!({"uri": uri});
        Some(self.request(Kind::Read, "resources/read", params, Some(json!({"$rest": true})), &["S-BASE-01"]))
    }

    fn prompt(&mut self) -> Option<Message> {
        let survey = self.survey;
        let (name, arguments) = self.dice.pick(&survey.prompts)?;
        // What is given may come back where not every text can stand.
        let values = ["test://static-text", "https://example.com/1", "urn:example:a-b"];
        let given: Map<_, _> = arguments
            .iter()
            .map(|argument| (argument.clone(), json!(*self.dice.pick(&values).unwrap_or(&values[0]))))
            .collect();
        let params = json!({"name": name, "arguments": given});
        Some(self.request(Kind::Prompt, "prompts/get", params, Some(json!({"$rest": true})), &["S-BASE-01"]))
    }

    fn complete(&mut self) -> Option<Message> {
        let survey = self.survey;
        let with_arguments: Vec<_> =
            survey.prompts.iter().filter(|(_, arguments)| !arguments.is_empty()).collect();
        let (name, arguments) = self.dice.pick(&with_arguments)?;
        let argument = self.dice.pick(arguments)?;
        let length = self.dice.below(4);
        let value = super::values::text(&mut self.dice, length);
        let params = json!({"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": argument, "value": value}});
        let open = Some(json!({"$rest": true}));
        Some(self.request(Kind::Complete, "completion/complete", params, open, &["S-BASE-01"]))
    }

    fn level(&mut self) -> Message {
        let levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
        let level = *self.dice.pick(&levels).unwrap_or(&"info");
        let owed = Some(json!({"result": {"$rest": true}}));
        self.request(Kind::Level, "logging/setLevel", json!({"level": level}), owed, &["LS-LOG-02"])
    }

    fn subscribe(&mut self) -> Option<Message> {
        let uri = self.dice.pick(&self.survey.resources)?.clone();
        let method = if self.dice.one_in(2) { "resources/subscribe" } else { "resources/unsubscribe" };
        let open = Some(json!({"$rest": true}));
        Some(self.request(Kind::Read, method, json!({"uri": uri}), open, &["S-BASE-01"]))
    }

    /// Something that is named and is not there.
    fn missing(&mut self) -> Option<Message> {
        let survey = self.survey;
        let has = |list: &str| survey.lists.contains(&list);
        let name = self.no_such();
        Some(match self.dice.below(3) {
            0 if has("tools/list") => {
                let params = json!({"name": name, "arguments": {}});
                self.request(Kind::NoTool, "tools/call", params, Some(requests::error(&[-32602])), &["T02"])
            }
            1 if has("prompts/list") => {
                let owed = Some(requests::error(&[-32602]));
                self.request(
                    Kind::NoPrompt,
                    "prompts/get",
                    json!({"name": name}),
                    owed,
                    &["S-PROMPT-08", "M02"],
                )
            }
            2 if has("resources/list") => {
                let owed = Some(requests::error(&[-32002, -32602]));
                let ids = &["LS-RES-01", "S-RES-08", "S-RES-10"];
                let params = json!({"uri": format!("test://no-such/{}", self.next)});
                self.request(Kind::NoResource, "resources/read", params, owed, ids)
            }
            _ => return None,
        })
    }

    /// A name that nothing has. It may come back in the message of an error, which is one sentence.
    fn no_such(&mut self) -> String {
        let length = self.dice.between(1, 12);
        let name = super::values::text(&mut self.dice, length);
        format!("no-such-{}", name.replace(|c: char| c.is_control() || c.is_whitespace(), "-"))
    }

    fn no_method(&mut self) -> Message {
        let methods = ["no/such-method", "tools", "TOOLS/LIST", "tools/list/", "no such method", "x"];
        let method = *self.dice.pick(&methods).unwrap_or(&"no/such-method");
        self.request(Kind::NoMethod, method, json!({}), Some(requests::error(&[-32601])), &["W02"])
    }

    fn odd_params(&mut self) -> Message {
        let has = |list: &str| self.survey.lists.contains(&list);
        let mut all: Vec<(&str, Value, &'static [&'static str])> = Vec::new();
        if has("tools/list") {
            all.push(("tools/call", json!({"arguments": {}}), &["T02", "S-TOOL-15"]));
            all.push(("tools/call", json!({"name": 5, "arguments": {}}), &["T02", "S-TOOL-15"]));
            all.push(("tools/list", json!({"cursor": {"a": 1}}), &["P01"]));
        }
        if has("resources/list") {
            all.push(("resources/read", json!({}), &["E08"]));
        }
        if self.survey.logs {
            all.push(("logging/setLevel", json!({"level": "loud"}), &["LS-LOG-01"]));
        }
        let Some((method, params, ids)) = self.dice.pick(&all).cloned() else { return self.no_method() };
        let modern = self.survey.revision.is_modern();
        let codes: &[i64] = match method {
            // Over HTTP the name that is missing is missed in the headers first.
            _ if modern && self.survey.transport == Transport::Http => &[-32602, -32020],
            // No resource is there either.
            "resources/read" if !modern => &[-32602, -32002],
            _ => &[-32602],
        };
        let mut message = self.request(Kind::OddParams, method, params, Some(requests::error(codes)), ids);
        message.lenient = ids == ["P01"];
        message
    }

    fn unknown(&mut self) -> Message {
        let mut message = self.ping();
        (message.kind, message.requires) = (Kind::Unknown, &["E08"]);
        let extra = super::values::anything(&mut self.dice, 3);
        if let Body::Json(body) = &mut message.body {
            body["trace"] = extra.clone();
            body["params"]["trace"] = extra;
        }
        message
    }

    fn huge(&mut self) -> Message {
        let most = self.survey.limits.text;
        // The longest ones cost the most time, and one in a while is enough.
        let long = if self.dice.one_in(4) { most } else { 65_537 };
        let sizes = [long, 65_536, 32_768, 8_192, 8_191, 4_096, 4_095, 1_024];
        let size = (*self.dice.pick(&sizes).unwrap_or(&4_096)).min(most);
        let mut message = if self.survey.echoes {
            // As text a character takes up to six bytes, but for a few escapes.
            self.echo(Some(size / 6))
        } else {
            let mut ping = self.ping();
            if let Body::Json(body) = &mut ping.body {
                body["params"]["_meta"]["com.example/pad"] = json!("x".repeat(size));
            }
            ping
        };
        (message.kind, message.requires) = (Kind::Huge, &["S04"]);
        message
    }

    /// Beyond what a reader has to take: it may be refused, and that without an id, but the connection lives.
    fn deep(&mut self) -> Message {
        let depth = *self.dice.pick(&[140, 160, 600, 600, 5_000, 60_000]).unwrap_or(&140);
        let mut message = self.ping();
        let (open, close) = if self.dice.one_in(2) { ("[", "]") } else { ("{\"a\":", "}") };
        let last = if open == "[" { "" } else { "1" };
        let nested = format!("{}{last}{}", open.repeat(depth), close.repeat(depth));
        if let Body::Json(body) = &mut message.body {
            body["params"]["_meta"]["com.example/deep"] = json!("<deep>");
            let text = body.to_string().replace("\"<deep>\"", &nested);
            message.body = Body::Text(text);
        }
        (message.kind, message.form, message.owed) = (Kind::Deep, Form::default(), None);
        message
    }

    fn notice(&mut self) -> Message {
        let (kind, method, params) = if self.dice.one_in(2) {
            let request_id = json!(format!("no-such-{}", self.next));
            (Kind::Stray, "notifications/cancelled", json!({"requestId": request_id, "reason": "gone"}))
        } else {
            (Kind::Notice, "notifications/no/such", json!({"a": super::values::anything(&mut self.dice, 3)}))
        };
        let body = Body::Json(json!({"jsonrpc": "2.0", "method": method, "params": params}));
        let form = Form::any(&mut self.dice);
        Message { kind, body, form, headers: None, owed: None, requires: &["B-BASE-04"], lenient: false }
    }

    fn spoiled(&mut self) -> Message {
        let whole = self.ping().text();
        let cut = self.dice.between(1, whole.len().saturating_sub(1));
        let cut = (0..=cut).rev().find(|at| whole.is_char_boundary(*at)).unwrap_or(1);
        let texts = ["{bad", "nul", "{\"jsonrpc\":\"2.0\",}", "}{", "\"", &whole[..cut]];
        let text = (*self.dice.pick(&texts).unwrap_or(&"{bad")).to_owned();
        // White space alone is no message, and one that is whole is not spoiled.
        let text = if text.trim().is_empty() { "{".to_owned() } else { text };
        self.raw(Kind::Spoiled, Body::Text(text))
    }

    fn odd(&mut self) -> Message {
        let mut old = self.ping();
        if let Body::Json(body) = &mut old.body {
            body["jsonrpc"] = json!("1.0");
        }
        let old = old.text();
        let texts = ["5", "\"text\"", "null", "true", "{}", "{\"jsonrpc\":\"2.0\"}", old.as_str()];
        let text = (*self.dice.pick(&texts).unwrap_or(&"5")).to_owned();
        self.raw(Kind::Odd, Body::Text(text))
    }

    fn raw(&self, kind: Kind, body: Body) -> Message {
        let form = Form::default();
        Message { kind, body, form, headers: None, owed: None, requires: &["E04"], lenient: true }
    }

    /// The second takes no answer away from the first, and what becomes of it is not said.
    fn twin(&mut self) -> Vec<Message> {
        let mut first = self.ping();
        (first.kind, first.lenient) = (Kind::Twin, true);
        first.owed = (self.survey.transport == Transport::Stdio).then(|| json!({"$rest": true}));
        let mut second = first.clone();
        (second.owed, second.form) = (None, Form::any(&mut self.dice));
        vec![first, second]
    }

    fn request(
        &mut self,
        kind: Kind,
        method: &str,
        params: Value,
        owed: Option<Value>,
        requires: &'static [&'static str],
    ) -> Message {
        let mut body = json!({"jsonrpc": "2.0", "id": self.id(), "method": method, "params": params});
        let modern = self.survey.revision.is_modern();
        if modern {
            body["params"]["_meta"] = requests::meta(self.survey.revision);
        }
        if self.dice.one_in(4) {
            body["params"]["_meta"]["progressToken"] = self.id();
        }
        if modern && self.dice.one_in(6) {
            body["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        }
        if self.dice.one_in(3) {
            body["params"]["_meta"]["com.example/note"] = super::values::anything(&mut self.dice, 5);
        }
        let headers =
            (self.survey.transport == Transport::Http && self.dice.one_in(2)).then(|| self.dice.roll());
        let form = Form::any(&mut self.dice);
        Message { kind, body: Body::Json(body), form, headers, owed, requires, lenient: false }
    }

    /// An id, or a progress token, that nothing else on the connection has.
    fn id(&mut self) -> Value {
        let own = self.next;
        self.next += 1;
        match self.dice.below(14) {
            0 => json!(-own),
            1 => json!(i64::MAX - own),
            2 => json!(i64::MIN + own),
            3 => json!(9_007_199_254_740_992 + own),
            4 => json!(own.to_string()),
            5 => json!(format!("a\"b\\c/\n\u{0}{own}")),
            6 => json!(format!("é—🎉\u{2028}{own}")),
            7 => json!(format!(" {own} ")),
            // Servers bound what an id may take, and as escapes it takes six times as much.
            8 => json!(format!("{own}{}", "x".repeat(30))),
            9 if std::mem::take(&mut self.first) => {
                if self.dice.one_in(2) {
                    json!("")
                } else {
                    json!(0)
                }
            }
            _ => json!(own),
        }
    }

    /// A name that `needs` has no way to write is left out there.
    fn need(&mut self, tool: &str) {
        let written = Signature::parse(tool).is_ok();
        if written && !self.tools.iter().any(|known| known == tool) {
            self.tools.push(tool.to_owned());
        }
    }
}
