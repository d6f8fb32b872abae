//! The two exchanges that a recording is: one for servers, in which the suite says what the client said, and one for
//! clients, in which it says what the server said.

mod said;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use self::said::{bindings, literal, unmarked};
use super::tape::Party;

/// The exchanges of a recording, in the format of exchanges.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Halves {
    /// Its name, `NAME/server`, and its text.
    pub server: (String, String),
    /// Its name, `NAME/client`, and its text.
    pub client: (String, String),
}

/// The exchanges of a recording; `None` if the text is none.
///
/// # Errors
///
/// Names the line, what was expected and what came.
pub fn halves(text: &str) -> Result<Option<Halves>, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((_, first)) = lines.next() else { return Ok(None) };
    let Ok(Value::Object(head)) = serde_json::from_str::<Value>(first) else { return Ok(None) };
    if head.get("recorded") != Some(&Value::Bool(true)) {
        return Ok(None);
    }
    let mut steps = Vec::new();
    for (index, line) in lines {
        let step = serde_json::from_str::<Map<String, Value>>(line);
        steps.push(step.map_err(|error| format!("line {}: expected one JSON object: {error}", index + 1))?);
    }
    Recording::new(head, steps).map(|recording| Some(recording.halves()))
}

/// The members of the head that both halves have.
const COMMON: [&str; 3] = ["about", "revisions", "transports"];

struct Recording {
    head: Map<String, Value>,
    name: String,
    steps: Vec<Map<String, Value>>,
    modern: bool,
    /// Who said a bound value first, and what it was.
    bound: BTreeMap<String, (Party, Value)>,
    /// By HTTP request: whether it carried no message.
    plain: BTreeMap<u64, String>,
    /// Requests of the client that were answered, and the HTTP request over whose answer that came.
    answered: BTreeMap<String, Option<u64>>,
}

impl Recording {
    fn new(head: Map<String, Value>, steps: Vec<Map<String, Value>>) -> Result<Self, String> {
        let name = head.get("exchange").and_then(Value::as_str);
        let name = name.ok_or("head: expected a member `exchange`, got none")?.to_owned();
        if !head.get("plan").is_some_and(Value::is_object) {
            return Err("head: expected a member `plan`, got none".to_owned());
        }
        let revision = head.get("revisions").and_then(|revisions| revisions.get(0)).and_then(Value::as_str);
        let revision = revision.and_then(crate::revision::Revision::from_date);
        let modern = revision.ok_or("head: expected one revision in `revisions`")?.is_modern();
        let mut recording = Self {
            head,
            name,
            steps,
            modern,
            bound: BTreeMap::new(),
            plain: BTreeMap::new(),
            answered: BTreeMap::new(),
        };
        for (place, step) in recording.steps.iter().enumerate() {
            let known = ["client", "server", "close", "exit", "end", "cut"];
            if !known.iter().any(|name| step.contains_key(*name)) {
                let got = Value::Object(step.clone());
                return Err(format!(
                    "step {}: expected one of `{}`, got {got}",
                    place + 1,
                    known.join("`, `")
                ));
            }
            let number = step.get("request").and_then(Value::as_u64);
            for party in [Party::Client, Party::Server] {
                let Some(message) = step.get(party.as_str()) else { continue };
                bindings(message, party, &mut recording.bound);
                if let (Party::Client, Some(number), false) = (party, number, message.is_object()) {
                    let method = step.get("method").and_then(Value::as_str).unwrap_or("POST");
                    recording.plain.insert(number, method.to_owned());
                }
                if let (Party::Server, Some(id), None) = (party, message.get("id"), message.get("method")) {
                    recording.answered.insert(id.to_string(), number);
                }
            }
        }
        Ok(recording)
    }

    fn halves(&self) -> Halves {
        let server = Half::new(self, Party::Server).play();
        let client = Half::new(self, Party::Client).play();
        let common = |side: Party| {
            let mut head = Map::from_iter([
                ("exchange".to_owned(), json!(format!("{}/{}", self.name, side.as_str()))),
                ("side".to_owned(), json!(side.as_str())),
                ("recorded".to_owned(), json!(true)),
                ("requires".to_owned(), json!([])),
                ("handshake".to_owned(), json!(false)),
            ]);
            head.extend(
                COMMON.iter().filter_map(|name| Some(((*name).to_owned(), self.head.get(*name)?.clone()))),
            );
            head
        };
        let mut head_of_server = common(Party::Server);
        head_of_server.insert("client".to_owned(), self.capabilities());
        let mut head_of_client = common(Party::Client);
        head_of_client.insert("plan".to_owned(), literal(&self.head["plan"]));
        if self.steps.iter().any(|step| step.contains_key("request")) {
            let sessions = |step: &Map<String, Value>| {
                let headers = step.get("headers").filter(|_| step.contains_key("status"));
                headers.is_some_and(|headers| headers.get("mcp-session-id").is_some())
            };
            let streams = |step: &Map<String, Value>| {
                let number = step.get("request").and_then(Value::as_u64);
                let asked = number.and_then(|number| self.plain.get(&number));
                step.contains_key("open") && asked.is_some_and(|method| method == "GET")
            };
            let manners = json!({
                "session": self.steps.iter().any(sessions),
                "get": self.steps.iter().any(streams),
            });
            head_of_client.insert("http".to_owned(), manners);
        }
        let text = |head: Map<String, Value>, steps: Vec<Value>| {
            let lines = std::iter::once(Value::Object(head)).chain(steps).map(|line| format!("{line}\n"));
            lines.collect::<String>()
        };
        Halves {
            server: (format!("{}/server", self.name), text(head_of_server, server)),
            client: (format!("{}/client", self.name), text(head_of_client, client)),
        }
    }

    /// What the client declared.
    fn capabilities(&self) -> Value {
        let places = ["/params/_meta/io.modelcontextprotocol~1clientCapabilities", "/params/capabilities"];
        let said = self.steps.iter().filter_map(|step| step.get("client"));
        let found = said.filter_map(|message| places.iter().find_map(|at| message.pointer(at))).next_back();
        found.map_or_else(|| json!({}), |found| literal(&unmarked(found)))
    }
}

/// One half under way: the steps of the exchange in which one side is the subject.
struct Half<'r> {
    recording: &'r Recording,
    subject: Party,
    steps: Vec<Value>,
    /// Names of the requests of either side, by id; the latest with it.
    client: BTreeMap<String, String>,
    server: BTreeMap<String, String>,
    /// By HTTP request: the name of what it carried.
    carried: BTreeMap<u64, String>,
    /// Names of requests that open a session.
    opens: BTreeSet<String>,
    closed: bool,
    count: u32,
}

impl<'r> Half<'r> {
    const fn new(recording: &'r Recording, subject: Party) -> Self {
        Self {
            recording,
            subject,
            steps: Vec::new(),
            client: BTreeMap::new(),
            server: BTreeMap::new(),
            carried: BTreeMap::new(),
            opens: BTreeSet::new(),
            closed: false,
            count: 0,
        }
    }

    fn play(mut self) -> Vec<Value> {
        for (place, step) in self.recording.steps.iter().enumerate() {
            if let Some(message) = step.get("client") {
                self.by_client(place, step, message);
            } else if let Some(message) = step.get("server") {
                self.by_server(step, message);
            } else if step.contains_key("close") {
                self.closed = true;
            } else if let Some(code) = step.get("exit") {
                self.exits(code);
            } else {
                self.broken_off(step);
            }
        }
        // An exchange has a step, even if nothing was said.
        if self.steps.is_empty() {
            self.steps.push(json!({"wait": 0}));
        }
        self.steps
    }

    fn is_subject(&self, party: Party) -> bool {
        self.subject == party
    }

    fn name(&mut self, of: &str) -> String {
        self.count += 1;
        format!("{of}{}", self.count)
    }

    fn by_client(&mut self, place: usize, step: &Map<String, Value>, message: &Value) {
        let Value::Object(members) = message else {
            if let (Value::String(text), false, false) =
                (message, self.is_subject(Party::Client), step.contains_key("request"))
            {
                self.steps.push(json!({"send_text": format!("{text}\n")}));
            }
            return;
        };
        let number = step.get("request").and_then(Value::as_u64);
        let id = members.get("id").map(Value::to_string);
        let method = members.get("method").and_then(Value::as_str);
        match (method, id) {
            (Some(method), Some(id)) => {
                let name = self.name("c");
                if method == "initialize" {
                    self.opens.insert(name.clone());
                }
                self.client.insert(id.clone(), name.clone());
                if let Some(number) = number {
                    self.carried.insert(number, name.clone());
                }
                let refusal = number.and_then(|number| self.recording.refusal(place, number, &id));
                if self.is_subject(Party::Client) {
                    let mut expected = json!({"expect": self.expected(message), "as": name});
                    self.headers(step, &mut expected);
                    self.steps.push(expected);
                } else if let Some(status) = refusal {
                    let message = self.said(message);
                    self.steps.push(json!({"http": {"message": message}, "expect": {"status": status}}));
                } else {
                    let mut sent = json!({"send": self.said(message), "as": name});
                    // Those that the definition of the tool asks for.
                    let mirrored = mirrored(step);
                    if !mirrored.is_empty() {
                        sent["headers"] = literal(&Value::Object(mirrored));
                    }
                    self.steps.push(sent);
                }
            }
            (Some(_), None) if self.is_subject(Party::Client) => {
                let mut expected = json!({"expect": self.expected(message)});
                self.headers(step, &mut expected);
                self.steps.push(expected);
            }
            (Some(_), None) => self.steps.push(json!({"send": self.said(message)})),
            (None, id) => {
                let Some(name) = id.and_then(|id| self.server.get(&id)).cloned() else { return };
                if self.is_subject(Party::Client) {
                    self.steps.push(json!({"expect": self.expected(message), "for": name}));
                } else {
                    self.steps.push(json!({"answer": self.body(message), "to": name}));
                }
            }
        }
    }

    fn by_server(&mut self, step: &Map<String, Value>, message: &Value) {
        let number = step.get("request").and_then(Value::as_u64);
        let Value::Object(members) = message else { return self.no_message(step, message, number) };
        let id = members.get("id").map(Value::to_string);
        let is_call = members.contains_key("method");
        match (is_call, id) {
            (true, id) => {
                let name = id.map(|id| {
                    let name = self.name("s");
                    self.server.insert(id, name.clone());
                    name
                });
                let mut told = if self.is_subject(Party::Server) {
                    json!({"expect": self.expected(message)})
                } else {
                    let mut told = json!({"tell": self.said(message)});
                    if let Some(on) = number.and_then(|number| self.place(number)) {
                        told["on"] = json!(on);
                    }
                    self.event(step, &mut told);
                    told
                };
                if let Some(name) = name {
                    told["as"] = json!(name);
                }
                self.steps.push(told);
            }
            (false, id) => {
                let name = id.as_ref().and_then(|id| self.client.get(id)).cloned();
                let Some(name) = name else { return self.no_message(step, message, number) };
                let own = number.is_some_and(|number| self.carried.get(&number) == Some(&name));
                let status = step.get("status").filter(|_| own);
                let mut answer = if self.is_subject(Party::Server) {
                    json!({"expect": self.expected(message), "for": name})
                } else {
                    let mut answer = json!({"answer": self.body(message), "to": name});
                    if own {
                        answer["events"] = json!(step.contains_key("event"));
                    }
                    self.event(step, &mut answer);
                    answer
                };
                if let Some(status) = status {
                    answer["status"] = status.clone();
                }
                self.steps.push(answer);
            }
        }
    }

    /// What the server says that answers no request by its id: a refusal over HTTP, an event without data, or noise.
    fn no_message(&mut self, step: &Map<String, Value>, message: &Value, number: Option<u64>) {
        if self.is_subject(Party::Server) {
            return;
        }
        let Some(number) = number else {
            let text = message.as_str().map_or_else(|| unmarked(message).to_string(), str::to_owned);
            self.steps.push(json!({"write": format!("{text}\n")}));
            return;
        };
        let Some(name) = self.carried.get(&number).cloned() else { return };
        if step.contains_key("event") {
            // It is there for its id. Before the answer that opens a session it would take the place of its headers.
            if message.is_null() && !self.opens.contains(&name) {
                let mut told = json!({"tell": null, "on": name});
                self.event(step, &mut told);
                told["event"]["data"] = json!("");
                self.steps.push(told);
            }
            return;
        }
        let Some(status) = step.get("status").filter(|_| !step.contains_key("open")) else { return };
        let mut response = json!({"status": status});
        let headers = step.get("headers").and_then(Value::as_object).cloned().unwrap_or_default();
        let kept = headers.into_iter().filter(|(name, _)| {
            matches!(name.as_str(), "content-type" | "www-authenticate" | "allow" | "location")
        });
        response["headers"] = Value::Object(kept.collect());
        if !message.is_null() {
            response["body"] = literal(&unmarked(message));
        }
        self.steps.push(json!({"respond": response, "to": name}));
    }

    fn broken_off(&mut self, step: &Map<String, Value>) {
        let number = |name: &str| step.get(name).and_then(Value::as_u64);
        let Some(name) = number("end").or_else(|| number("cut")).and_then(|number| self.carried.get(&number))
        else {
            return;
        };
        let answered =
            |(id, known): (&String, &String)| known == name && self.recording.answered.contains_key(id);
        if self.client.iter().any(answered) {
            return;
        }
        let by_client = step.get("by").is_some_and(|by| by == "client");
        let done = match (self.subject, step.contains_key("end")) {
            (Party::Client, true) => json!({"end": name}),
            (Party::Client, false) if by_client => json!({"closed": name}),
            (Party::Client, false) => json!({"cut": name}),
            (Party::Server, false) if by_client => json!({"hang_up": name}),
            (Party::Server, _) => json!({"stream": name, "ends": 10_000}),
        };
        self.steps.push(done);
    }

    fn exits(&mut self, code: &Value) {
        if self.closed {
            return;
        }
        self.steps.push(if self.is_subject(Party::Client) {
            json!({"exit": code})
        } else {
            json!({"expect_exit": 10_000, "code": code})
        });
    }

    /// Where over HTTP the suite's server says something.
    fn place(&self, number: u64) -> Option<String> {
        let stream = self.recording.plain.get(&number).map(|_| "session".to_owned());
        stream.or_else(|| self.carried.get(&number).cloned())
    }

    fn event(&self, step: &Map<String, Value>, told: &mut Value) {
        if let Some(event) = step.get("event").and_then(Value::as_object).filter(|event| !event.is_empty()) {
            told["event"] = literal(&Value::Object(event.clone()));
        }
    }

    /// The headers in which a client of another version is the same.
    fn headers(&self, step: &Map<String, Value>, expected: &mut Value) {
        let Some(headers) = step.get("headers").and_then(Value::as_object) else { return };
        let same = |name: &str| {
            matches!(name, "accept" | "content-type" | "authorization" | "mcp-protocol-version")
                || name.starts_with("mcp-method")
                || name.starts_with("mcp-name")
                || name.starts_with("mcp-param-")
        };
        let kept: Map<_, _> = headers
            .iter()
            .filter(|(name, value)| same(name) && value.is_string())
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect();
        if !kept.is_empty() {
            expected["headers"] = Value::Object(kept);
        }
    }

    /// A message that the subject has to say.
    fn expected(&self, message: &Value) -> Value {
        let mut message = message.clone();
        let cancels = message.get("method").is_some_and(|method| method == "notifications/cancelled");
        if let Value::Object(members) = &mut message {
            members.remove("jsonrpc");
            members.remove("id");
            if cancels && let Some(Value::Object(params)) = members.get_mut("params") {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                let known = self.client.get(&id).filter(|_| self.is_subject(Party::Client));
                let mark = known.map_or_else(|| json!({"$any": true}), |name| json!({"$id": name}));
                params.insert("requestId".to_owned(), json!({"$as": mark}));
                if self.is_subject(Party::Client) {
                    params.remove("reason");
                }
            }
            if self.is_subject(Party::Client) {
                loosen(members);
            }
        }
        self.pattern(&message)
    }

    /// A message that the suite says.
    fn said(&self, message: &Value) -> Value {
        let mut message = message.clone();
        if let Value::Object(members) = &mut message {
            if self.is_subject(Party::Client) {
                self.tag(members);
            } else {
                self.without_additions(members);
            }
        }
        self.template(&message)
    }

    /// The result or error that the suite says.
    fn body(&self, message: &Value) -> Value {
        let Value::Object(mut members) = message.clone() else { return json!({}) };
        members.remove("jsonrpc");
        members.remove("id");
        if self.is_subject(Party::Client) {
            self.tag(&mut members);
            // The suite's server adds what is missing in the modern era; this one had not said it.
            if let (true, Some(Value::Object(result))) = (self.recording.modern, members.get_mut("result")) {
                for name in ["resultType", "ttlMs", "cacheScope", "_meta"] {
                    result.entry(name).or_insert_with(|| json!({"$as": {"$absent": true}}));
                }
                if let Some(Value::Object(meta)) =
                    result.get_mut("_meta").filter(|meta| meta.get("$as").is_none())
                {
                    for name in ["serverInfo", "subscriptionId"] {
                        let name = format!("io.modelcontextprotocol/{name}");
                        meta.entry(name).or_insert_with(|| json!({"$as": {"$absent": true}}));
                    }
                }
            }
        }
        self.template(&Value::Object(members))
    }

    /// A message of the server on a subscription bears the id that the client gave it.
    fn tag(&self, members: &mut Map<String, Value>) {
        const TAG: &str = "io.modelcontextprotocol/subscriptionId";
        for part in ["params", "result"] {
            let Some(meta) = members.get_mut(part).and_then(|part| part.get_mut("_meta")) else { continue };
            let name = meta.get(TAG).and_then(|id| self.client.get(&id.to_string()));
            if let Some(name) = name {
                meta[TAG] = json!({"$as": {"$id": name}});
            }
        }
    }

    /// The suite's client adds what is missing in the modern era; this one had not said it.
    fn without_additions(&self, members: &mut Map<String, Value>) {
        let asks = members.contains_key("method") && members.contains_key("id");
        if !self.recording.modern || !asks {
            return;
        }
        let absent = || json!({"$as": {"$absent": true}});
        match members.get_mut("params") {
            None => {
                members.insert("params".to_owned(), absent());
            }
            Some(Value::Object(params)) => match params.get_mut("_meta") {
                None => {
                    params.insert("_meta".to_owned(), absent());
                }
                Some(Value::Object(meta)) => {
                    for name in ["protocolVersion", "clientInfo", "clientCapabilities"] {
                        meta.entry(format!("io.modelcontextprotocol/{name}")).or_insert_with(absent);
                    }
                }
                Some(_) => {}
            },
            Some(_) => {}
        }
    }
}

impl Recording {
    /// The status with which a request was answered that has no response.
    fn refusal(&self, place: usize, number: u64, id: &str) -> Option<Value> {
        let rest = self.steps.get(place + 1..).unwrap_or_default();
        let same = |step: &&Map<String, Value>| step.get("request").and_then(Value::as_u64) == Some(number);
        let first = rest.iter().find(|step| same(step) && step.contains_key("status"))?;
        let open = first.contains_key("open");
        let response = first.get("server").and_then(|message| message.get("id")).map(Value::to_string);
        let responds = response.as_deref() == Some(id);
        // Over HTTP+SSE it comes elsewhere.
        let elsewhere = self.answered.get(id).is_some_and(|over| *over != Some(number));
        (!open && !responds && !elsewhere).then(|| first["status"].clone())
    }
}

fn mirrored(step: &Map<String, Value>) -> Map<String, Value> {
    let headers = step.get("headers").and_then(Value::as_object).into_iter().flatten();
    let mirrored = headers.filter(|(name, _)| name.starts_with("mcp-param-"));
    mirrored.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A client of another version calls itself otherwise.
fn loosen(members: &mut Map<String, Value>) {
    let anyone = || json!({"$as": {"$type": "object"}});
    let Some(Value::Object(params)) = members.get_mut("params") else { return };
    if params.contains_key("clientInfo") {
        params.insert("clientInfo".to_owned(), anyone());
    }
    const INFO: &str = "io.modelcontextprotocol/clientInfo";
    if let Some(Value::Object(meta)) = params.get_mut("_meta")
        && meta.contains_key(INFO)
    {
        meta.insert(INFO.to_owned(), anyone());
    }
}

#[cfg(test)]
mod tests;
