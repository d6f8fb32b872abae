//! What a subject says it offers, asked once a revision: the base for skipping what it does not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Connection, Event, Subject};
use crate::bind::Binder;
use crate::exchange::{Needs, Signature};
use crate::revision::Revision;
use crate::text::{printable, shorten};

/// A subject that takes longer to its first answer than this is not there.
const PATIENCE: Duration = Duration::from_secs(60);

/// A list of more pages is not read to its end.
const PAGES: usize = 100;

/// What a subject offers under one revision.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Declared {
    /// Why the subject does not serve the revision; `None` if it does.
    pub refusal: Option<String>,
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
    prompts: BTreeSet<String>,
    resources: BTreeSet<String>,
    templates: BTreeSet<String>,
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
        let mut asker =
            Asker { connection: Connection::open(subject.start()?), binder, revision, said: String::new() };
        let mut declared = Self::default();
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
            }
            Err(Refusal { answered, reason }) => {
                declared.answered = answered;
                declared.refusal = Some(reason);
            }
        }
        Ok(declared)
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
        missing.extend(needs.tools.iter().filter_map(|tool| self.lacks_tool(tool)));
        for (kind, wanted, there) in [
            ("prompt", &needs.prompts, &self.prompts),
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
            self.try_echo(asker);
        }
        if prompts {
            self.prompts = asker.names("prompts/list", "prompts", "name");
        }
        if resources {
            self.resources = asker.names("resources/list", "resources", "uri");
            self.templates = asker.names("resources/templates/list", "resourceTemplates", "uriTemplate");
        }
    }

    /// Many servers have an `echo` that says more than it was told. No schema shows that, one call does.
    fn try_echo(&mut self, asker: &mut Asker) {
        let fits = Signature::parse("echo(text:string)").is_ok_and(|echo| self.lacks_tool(&echo).is_none());
        if !fits {
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
        let [initialize, initialized] = self.binder.handshake();
        let result = self.request(&initialize)?;
        let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or("no version");
        if version != self.revision.as_str() {
            return Err(refuse(format!("it answers with {version}")));
        }
        self.write(&initialized);
        Ok(result)
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
            match self.connection.wait(until, false) {
                Some(Event::Line(line)) => {
                    let Some(message) = message_in(&line) else {
                        self.said.push_str(&format!("{}\n", printable(&line)));
                        continue;
                    };
                    if message.get("method").is_some_and(|method| method == "ping") {
                        let id = message.get("id").cloned().unwrap_or_default();
                        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
                    } else if answers(&message, request) {
                        return match (message.get("result"), message.get("error")) {
                            (Some(result), None) => Ok(result.clone()),
                            (_, error) => {
                                let error = error.unwrap_or(&Value::Null).to_string();
                                Err(Refusal {
                                    answered: true,
                                    reason: format!("it answers {}", shorten(&error, 200)),
                                })
                            }
                        };
                    }
                }
                Some(Event::Diagnostic(text)) if self.said.len() < 2_000 => {
                    self.said.push_str(&format!("{text}\n"));
                }
                Some(Event::End) => {
                    let exit = self.connection.exit_within(Duration::from_millis(200));
                    let exit = exit.map_or_else(|| "its output ended".to_owned(), |exit| exit.text);
                    return Err(silent(format!("{exit}\n{}", self.said.trim_end())));
                }
                _ => {}
            }
        }
        Err(silent(format!("no answer within {} s\n{}", PATIENCE.as_secs(), self.said.trim_end())))
    }

    fn write(&self, message: &Value) {
        let mut bytes = message.to_string().into_bytes();
        bytes.push(b'\n');
        self.connection.write(vec![bytes]);
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
