//! What a subject says it offers, asked once a revision: the base for skipping what it does not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Connection, Event, Subject};
use crate::bind::Binder;
use crate::exchange::{Needs, Offer, Signature};
use crate::http::{Answer, Mirrors, Purpose, TokenKind, Tokens, Web};
use crate::revision::Revision;
use crate::text::{printable, shorten};

/// A subject that takes longer to its first answer than this is not there.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stream that does not say within this time where to post never does.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// How long the answer to the end of a session is waited for.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where the metadata of a protected resource are. [RFC 9728, section 3]
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// A list of more pages is not read to its end.
const PAGES: usize = 100;

/// What a subject offers under one revision.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Declared {
    /// Why the subject does not serve the revision; `None` if it does.
    pub refusal: Option<String>,
    /// Whether it was not asked, as the suite cannot reach it in that revision.
    pub unreachable: bool,
    /// Whether the subject gave any answer at all.
    pub answered: bool,
    /// How long the first answer took.
    pub startup: Duration,
    /// The declared server capabilities.
    pub capabilities: Value,
    /// The name and version it goes by, where it says so.
    pub identity: Option<String>,
    /// The listed tools by name.
    tools: BTreeMap<String, Value>,
    /// Why a tool is not the one of this name that the exchanges mean, as its answer shows.
    others: BTreeMap<&'static str, String>,
    /// The listed prompts by name.
    prompts: BTreeMap<String, Value>,
    resources: BTreeSet<String>,
    templates: BTreeSet<String>,
    /// What it offers over HTTP.
    offers: BTreeSet<Offer>,
    /// What opens it over HTTP.
    tokens: Tokens,
}

impl Declared {
    /// Asks an instance of the subject.
    ///
    /// # Errors
    ///
    /// The subject cannot be started.
    pub fn ask(subject: &dyn Subject, revision: Revision) -> io::Result<Self> {
        let capabilities = if revision.is_modern() {
            json!({"roots": {}, "sampling": {}, "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
        } else {
            json!({"roots": {"listChanged": true}, "sampling": {}, "elicitation": {}})
        };
        let binder = Binder::new(revision, &capabilities).map_err(io::Error::other)?;
        let mut declared = Self::default();
        if let Some(reason) = subject.unreachable(revision) {
            (declared.refusal, declared.unreachable) = (Some(reason), true);
            return Ok(declared);
        }
        let connection = Connection::open(subject.start(revision)?);
        let web =
            connection.endpoint().map(|endpoint| Web::new(endpoint.clone(), revision, Mirrors::default()));
        declared.tokens = connection.endpoint().map(|endpoint| endpoint.tokens.clone()).unwrap_or_default();
        let mut asker = Asker { connection, web, binder, revision, said: String::new() };
        let opened = asker.open();
        declared.startup = asker.connection.now();
        match opened {
            Ok(result) => {
                declared.answered = true;
                declared.capabilities = result.get("capabilities").cloned().unwrap_or_default();
                let info = result.get("serverInfo");
                let info = info.or_else(|| result.pointer("/_meta/io.modelcontextprotocol~1serverInfo"));
                declared.identity = info.and_then(identity);
                declared.read_lists(&mut asker);
                declared.offers = asker.offers(declared.tools.contains_key("test_tool_with_progress"));
            }
            Err(Refusal { answered, reason }) => {
                declared.answered = answered;
                declared.refusal = Some(reason);
            }
        }
        if asker.leave() {
            declared.offers.insert(Offer::Ending);
        }
        Ok(declared)
    }

    /// Which arguments the listed tools want to see in headers.
    pub(crate) fn mirrors(&self) -> Mirrors {
        Mirrors::of(self.tools.values())
    }

    /// The definitions of the listed tools by name.
    pub(crate) const fn tools(&self) -> &BTreeMap<String, Value> {
        &self.tools
    }

    /// The definitions of the listed prompts by name.
    pub(crate) const fn prompts(&self) -> &BTreeMap<String, Value> {
        &self.prompts
    }

    /// The URIs of the listed resources.
    pub(crate) const fn resources(&self) -> &BTreeSet<String> {
        &self.resources
    }

    /// The listed URI templates.
    pub(crate) const fn templates(&self) -> &BTreeSet<String> {
        &self.templates
    }

    /// Whether the tool that this signature means is there.
    pub(crate) fn has_tool(&self, signature: &str) -> bool {
        Signature::parse(signature).is_ok_and(|tool| self.lacks_tool(&tool).is_none())
    }

    /// What is needed and not there, in words; `None` if all is there.
    #[must_use]
    pub fn lacks(&self, needs: &Needs) -> Option<String> {
        let declares = |path: &str| crate::invariants::declares(&self.capabilities, path);
        let mut missing: Vec<String> = Vec::new();
        missing.extend(
            needs.capabilities.iter().filter(|path| !declares(path)).map(|path| format!("capability {path}")),
        );
        let extensions = self.capabilities.get("extensions");
        let undeclared = |id: &&String| extensions.is_none_or(|all| all.get(id.as_str()).is_none());
        missing.extend(needs.extensions.iter().filter(undeclared).map(|id| format!("extension {id}")));
        let withheld = |offer: &&Offer| !self.offers.contains(offer);
        missing
            .extend(needs.http.iter().filter(withheld).map(|offer| format!("{} over HTTP", offer.as_str())));
        let unknown = |kind: &&TokenKind| self.tokens.of(**kind).is_none();
        missing.extend(
            needs.tokens.iter().filter(unknown).map(|kind| format!("token `{}` (`--token`)", kind.as_str())),
        );
        missing.extend(needs.tools.iter().filter_map(|tool| self.lacks_tool(tool)));
        let prompts: BTreeSet<String> = self.prompts.keys().cloned().collect();
        for (kind, wanted, there) in [
            ("prompt", &needs.prompts, &prompts),
            ("resource", &needs.resources, &self.resources),
            ("template", &needs.templates, &self.templates),
        ] {
            missing.extend(
                wanted.iter().filter(|name| !there.contains(*name)).map(|name| format!("{kind} {name}")),
            );
        }
        (!missing.is_empty()).then(|| missing.join(", "))
    }

    fn lacks_tool(&self, tool: &Signature) -> Option<String> {
        let Some(listed) = self.tools.get(&tool.name) else { return Some(format!("tool {tool}")) };
        let differs = tool.differs(listed).or_else(|| self.others.get(tool.name.as_str()).cloned())?;
        Some(format!("tool {tool}: the one that is listed {differs}"))
    }

    fn read_lists(&mut self, asker: &mut Asker) {
        let has = |path: &str| self.capabilities.get(path).is_some();
        let (tools, prompts, resources) = (has("tools"), has("prompts"), has("resources"));
        if tools {
            self.tools = asker.list("tools/list", "tools", "name");
            if let Some(web) = &mut asker.web {
                web.mirror(self.mirrors());
            }
            self.try_echo(asker);
        }
        if prompts {
            self.prompts = asker.list("prompts/list", "prompts", "name");
        }
        if resources {
            self.resources = asker.names("resources/list", "resources", "uri");
            self.templates = asker.names("resources/templates/list", "resourceTemplates", "uriTemplate");
        }
    }

    /// Many servers have an `echo` that says more than it was told. No schema shows that, one call does.
    fn try_echo(&mut self, asker: &mut Asker) {
        if !self.has_tool("echo(text:string)") {
            return;
        }
        let params = json!({"name": "echo", "arguments": {"text": "suite"}});
        let Ok(result) = asker.call("tools/call", params) else { return };
        let said = result.pointer("/content/0/text").and_then(Value::as_str);
        let failed = result.get("isError") == Some(&Value::Bool(true));
        if let Some(said) = said.filter(|said| !failed && *said != "suite" && said.contains("suite")) {
            let said = shorten(&json!(said).to_string(), 60);
            self.others.insert("echo", format!("gives {said} back for \"suite\""));
        }
    }
}

/// Why there is no result.
struct Refusal {
    answered: bool,
    reason: String,
}

struct Asker {
    connection: Connection,
    /// Over HTTP.
    web: Option<Web>,
    binder: Binder,
    revision: Revision,
    /// Standard error so far, for the case that nothing else comes.
    said: String,
}

impl Asker {
    /// The opening result: that of the handshake, or of discovery.
    fn open(&mut self) -> Result<Value, Refusal> {
        let refuse = |reason: String| Refusal { answered: true, reason };
        if self.revision.is_modern() {
            let result = self.call("server/discover", json!({}))?;
            let served = result.get("supportedVersions").and_then(Value::as_array);
            let serves =
                served.is_some_and(|all| all.iter().any(|version| version == self.revision.as_str()));
            let got = || shorten(&result.get("supportedVersions").unwrap_or(&Value::Null).to_string(), 100);
            return if serves { Ok(result) } else { Err(refuse(format!("it serves {}", got()))) };
        }
        self.connect()?;
        let [initialize, initialized] = self.binder.handshake();
        let result = self.request(&initialize)?;
        let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or("no version");
        if version != self.revision.as_str() {
            return Err(refuse(format!("it answers with {version}")));
        }
        self.write(&initialized);
        Ok(result)
    }

    /// Opens the stream of a session, if the transport is that of 2024-11-05.
    fn connect(&mut self) -> Result<(), Refusal> {
        let Some(web) = self.web.as_mut().filter(|web| web.is_sse()) else { return Ok(()) };
        let (stream, order) = web.connect();
        self.connection.carry_out(order);
        let until = self.connection.now() + CONNECT_PATIENCE;
        let status = |asker: &Self| asker.web.as_ref().and_then(|web| web.streams.get(&stream)?.status);
        while self.connection.now() < until {
            if let Some(messages) = self.web.as_ref().and_then(Web::messages) {
                let refused = |problem| Refusal {
                    answered: status(self).is_some(),
                    reason: format!("no `endpoint` event on its stream: {problem}"),
                };
                return messages.map(|_| ()).map_err(refused);
            }
            if let Some(Event::Answer(stream, answer)) = self.connection.wait(until, false) {
                self.answer(stream, answer);
            }
        }
        let reason = format!("no `endpoint` event on its stream within {} s", CONNECT_PATIENCE.as_secs());
        Err(Refusal { answered: status(self).is_some(), reason })
    }

    /// What the server offers over HTTP, where that is free.
    fn offers(&mut self, makes_progress: bool) -> BTreeSet<Offer> {
        let mut offers = BTreeSet::new();
        let Some(web) = &mut self.web else { return offers };
        let host = &web.endpoint.host;
        if host == "localhost" || host == "::1" || host.starts_with("127.") {
            offers.insert(Offer::Loopback);
        }
        if !web.endpoint.tokens.is_empty() {
            let path = web.endpoint.target.split('?').next().unwrap_or_default().to_owned();
            for (offer, path) in [(Offer::MetadataAtPath, path.as_str()), (Offer::MetadataAtRoot, "")] {
                if self.finds(&format!("{WELL_KNOWN}{path}")) {
                    offers.insert(offer);
                }
            }
            if !offers.contains(&Offer::MetadataAtPath) && !offers.contains(&Offer::MetadataAtRoot) {
                offers.insert(Offer::NoMetadata);
            }
        }
        let Some(web) = self.web.as_mut().filter(|web| !self.revision.is_modern() && !web.is_sse()) else {
            return offers;
        };
        if web.session.is_some() {
            offers.insert(Offer::Session);
        }
        let (stream, order) = web.listen();
        self.connection.carry_out(order);
        self.await_head(stream);
        let open = |web: &Web| web.streams.get(&stream).is_some_and(|get| get.is_good() && get.is_events());
        if self.web.as_ref().is_some_and(open) {
            offers.insert(Offer::Stream);
        }
        if makes_progress {
            let meta = json!({"progressToken": "suite"});
            let call = json!({"name": "test_tool_with_progress", "arguments": {}, "_meta": meta});
            let _ = self.call("tools/call", call);
        }
        let with_ids = |web: &Web| web.streams.values().any(|stream| stream.last_event_id().is_some());
        if self.web.as_ref().is_some_and(with_ids) {
            offers.insert(Offer::EventIds);
        }
        if let Some(order) = self.web.as_mut().and_then(|web| web.hang_up(stream)) {
            self.connection.carry_out(order);
        }
        offers
    }

    fn await_head(&mut self, stream: u64) {
        let until = self.connection.now() + PATIENCE;
        let head = |web: &Web| web.streams.get(&stream).is_none_or(|get| get.ended || get.status.is_some());
        while self.web.as_ref().is_some_and(|web| !head(web)) && self.connection.now() < until {
            if let Some(Event::Answer(stream, answer)) = self.connection.wait(until, false) {
                self.answer(stream, answer);
            }
        }
    }

    /// Whether something is there for everyone.
    fn finds(&mut self, path: &str) -> bool {
        let Some(web) = &mut self.web else { return false };
        let purpose = Purpose::Step { id: None, method: None };
        let (stream, order) = web.request("GET", Some(path), &Vec::new(), None, purpose);
        self.connection.carry_out(order);
        self.await_head(stream);
        self.web.as_ref().and_then(|web| web.streams.get(&stream)).is_some_and(|get| get.status == Some(200))
    }

    fn names(&mut self, method: &str, member: &str, key: &str) -> BTreeSet<String> {
        self.list(method, member, key).into_keys().collect()
    }

    /// The items of every page by their key.
    fn list(&mut self, method: &str, member: &str, key: &str) -> BTreeMap<String, Value> {
        let mut all = BTreeMap::new();
        let mut params = json!({});
        for _ in 0..PAGES {
            let Ok(page) = self.call(method, params) else { break };
            let items = page.get(member).and_then(Value::as_array).into_iter().flatten();
            all.extend(items.filter_map(|item| Some((item.get(key)?.as_str()?.to_owned(), item.clone()))));
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => break,
            }
        }
        all
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, Refusal> {
        let request = self.binder.request(method, params);
        self.request(&request)
    }

    fn request(&mut self, request: &Value) -> Result<Value, Refusal> {
        self.write(request);
        let until = self.connection.now() + PATIENCE;
        let silent = |reason: String| Refusal { answered: false, reason };
        while self.connection.now() < until {
            let texts = match self.connection.wait(until, false) {
                Some(Event::Line(line)) => vec![line],
                Some(Event::Answer(stream, answer)) => self.answer(stream, answer),
                Some(Event::Diagnostic(text)) if self.said.len() < 2_000 => {
                    self.said.push_str(&format!("{text}\n"));
                    continue;
                }
                Some(Event::End) => {
                    let exit = self.connection.exit_within(Duration::from_millis(200));
                    let exit = exit.map_or_else(|| "its output ended".to_owned(), |exit| exit.text);
                    return Err(silent(format!("{exit}\n{}", self.said.trim_end())));
                }
                _ => continue,
            };
            for text in texts {
                if let Some(outcome) = self.outcome(&text, request) {
                    return outcome;
                }
            }
            let id = request.get("id").unwrap_or(&Value::Null);
            if let Some(web) = &self.web
                && let Some(reason) = web.lost(id)
            {
                let answered = web.carrier(id).and_then(|stream| web.streams.get(&stream)?.status).is_some();
                return Err(Refusal { answered, reason: format!("it gives {reason}") });
            }
        }
        Err(silent(format!("no answer within {} s\n{}", PATIENCE.as_secs(), self.said.trim_end())))
    }

    /// What the request came to, if this message tells.
    fn outcome(&mut self, text: &[u8], request: &Value) -> Option<Result<Value, Refusal>> {
        let Some(message) = message_in(text) else {
            self.said.push_str(&format!("{}\n", printable(text)));
            return None;
        };
        if message.get("method").is_some_and(|method| method == "ping") {
            let id = message.get("id").cloned().unwrap_or_default();
            self.write(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
            return None;
        }
        if !answers(&message, request) {
            return None;
        }
        Some(match (message.get("result"), message.get("error")) {
            (Some(result), None) => Ok(result.clone()),
            (_, error) => {
                let error = shorten(&error.unwrap_or(&Value::Null).to_string(), 200);
                Err(Refusal { answered: true, reason: format!("it answers {error}") })
            }
        })
    }

    /// The texts of the messages in a part of an answer.
    fn answer(&mut self, stream: u64, answer: Answer) -> Vec<Vec<u8>> {
        let Some(web) = &mut self.web else { return Vec::new() };
        let texts = web.take(stream, answer);
        for text in &texts {
            if let Some(message) = message_in(text) {
                web.carried(stream, &message);
            }
        }
        texts
    }

    fn write(&mut self, message: &Value) {
        let mut bytes = message.to_string().into_bytes();
        let Some(web) = &mut self.web else {
            bytes.push(b'\n');
            return self.connection.write(vec![bytes]);
        };
        let headers = web.headers(message);
        let (stream, order) = web.post(Some(message), &bytes, &headers);
        self.connection.carry_out(order);
        // What follows a notification must not overtake it.
        let until = self.connection.now() + PATIENCE;
        let is_notice = |web: &Web| {
            web.streams.get(&stream).is_some_and(|sent| sent.purpose == Purpose::Notice && !sent.ended)
        };
        while self.web.as_ref().is_some_and(is_notice) && self.connection.now() < until {
            if let Some(Event::Answer(stream, answer)) = self.connection.wait(until, false) {
                self.answer(stream, answer);
            }
        }
    }

    /// Ends the session, if there is one that can be ended; whether it was.
    fn leave(&mut self) -> bool {
        let Some((stream, order)) = self.web.as_mut().and_then(Web::farewell) else { return false };
        self.connection.carry_out(order);
        let until = self.connection.now() + FAREWELL;
        while self.connection.now() < until {
            match self.connection.wait(until, false) {
                Some(Event::Answer(answered, Answer::Head { status, .. })) if answered == stream => {
                    return (200..300).contains(&status);
                }
                _ => {}
            }
        }
        false
    }
}

/// Whether it is the response, read leniently: a wrong type of the id is for the exchanges to report.
fn answers(message: &Value, request: &Value) -> bool {
    let plain = |message: &Value| message.get("id").map(|id| id.to_string().trim_matches('"').to_owned());
    let nameless = message.get("id").is_none_or(Value::is_null);
    let response = message.get("result").is_some() || message.get("error").is_some();
    response && (nameless || plain(message) == plain(request))
}

/// The message in a line, read leniently: whether the line is right is for the exchanges to say.
fn message_in(line: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(line);
    let mut values =
        serde_json::Deserializer::from_str(text.trim_start_matches('\u{feff}')).into_iter::<Value>();
    values.next()?.ok().filter(Value::is_object)
}

fn identity(info: &Value) -> Option<String> {
    let name = info.get("name")?.as_str()?;
    let version = info.get("version").and_then(Value::as_str).unwrap_or_default();
    Some(format!("{name} {version}").trim_end().to_owned())
}
