//! The connection: era, handshake, messages in and out.

mod hearing;
mod saying;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{PipeWriter, Write};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::hosting::{Invitation, Place};
use serde_json::{Map, Value, json};

use super::jobs::{Job, Kind};
use super::wire::{PROBE, Pipes, Said, Web, pair};

pub(crate) const MODERN: &str = "2026-07-28";

pub(crate) enum Way {
    Pipes(Option<Pipes>),
    Web(Web),
}

pub(crate) struct Client {
    pub(crate) fault: &'static str,
    place: Place,
    pub(crate) way: Way,
    heard: Receiver<Said>,
    tell: std::sync::mpsc::Sender<Said>,
    url: String,
    /// Over HTTP+SSE: where messages are posted.
    posts: Option<String>,
    output: PipeWriter,
    pub(crate) plan: Value,
    /// The revision at hand; none before the era is known.
    pub(crate) version: Option<String>,
    pub(crate) server: Value,
    session: Option<String>,
    stream: Option<u64>,
    next: i64,
    pub(crate) jobs: Vec<Job>,
    /// Wire ids to jobs.
    pub(crate) open: BTreeMap<i64, usize>,
    /// Numbers of HTTP requests to wire ids.
    numbers: BTreeMap<u64, i64>,
    resumed: BTreeSet<u64>,
    heads: BTreeMap<u64, Vec<(String, String)>>,
    pub(crate) tools: BTreeMap<String, Value>,
    pub(crate) cache: BTreeMap<String, (Value, Instant)>,
    pub(crate) notes: Vec<Value>,
    pub(crate) roots: Option<Value>,
    pub(crate) level: Option<String>,
    broken: Option<String>,
    again: bool,
    junk: usize,
}

/// Runs a client to the end of its plan.
pub(crate) fn run(fault: &'static str, invitation: &Invitation, output: PipeWriter) {
    let (tell, heard) = pair();
    let (way, url) = match &invitation.place {
        Place::Url(url) => (Way::Web(Web::new(fault, tell.clone())), url.clone()),
        Place::Relay(address) => (Way::Pipes(Pipes::start(*address, &tell)), String::new()),
    };
    let plan = invitation.context["plan"].clone();
    let roots = plan["answers"].get("roots").cloned();
    let mut client = Client {
        fault,
        place: invitation.place.clone(),
        way,
        heard,
        tell,
        url,
        posts: None,
        output,
        plan,
        version: None,
        server: Value::Null,
        session: None,
        stream: None,
        next: 1,
        jobs: Vec::new(),
        open: BTreeMap::new(),
        numbers: BTreeMap::new(),
        resumed: BTreeSet::new(),
        heads: BTreeMap::new(),
        tools: BTreeMap::new(),
        cache: BTreeMap::new(),
        notes: Vec::new(),
        roots,
        level: None,
        broken: None,
        again: false,
        junk: 0,
    };
    if let Err(problem) = client.connect() {
        client.broken = Some(problem);
    }
    client.follow();
    client.close();
}

impl Client {
    pub(crate) fn is(&self, fault: &str) -> bool {
        self.fault == fault
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.version.as_deref() == Some(MODERN)
    }

    pub(crate) fn print(&mut self, report: &Value) {
        let _ = writeln!(self.output, "{report}");
    }

    fn follow(&mut self) {
        let steps = self.plan["steps"].as_array().cloned().unwrap_or_default();
        for step in steps {
            if let Some(problem) = self.broken.clone() {
                let report = json!({"step": "connect", "as": step.get("as"), "ok": false, "error": problem});
                self.print(&report);
                continue;
            }
            self.step(&step);
        }
        while self.jobs.iter().any(|job| !job.is_done() && !matches!(job.kind, Kind::Listen { .. })) {
            if !self.pump(Instant::now() + Duration::from_secs(20)) {
                break;
            }
        }
    }

    fn close(&mut self) {
        let session = self.session.clone();
        match &mut self.way {
            Way::Pipes(Some(pipes)) => pipes.close(),
            Way::Pipes(None) => {}
            Way::Web(web) => {
                if session.is_some() && web.fault != "no-delete" {
                    let headers = self.session_headers();
                    if let Way::Web(web) = &mut self.way {
                        let url = self.url.clone();
                        let number = web.send(&url, "DELETE", &headers, None);
                        let until = Instant::now() + Duration::from_secs(2);
                        while Instant::now() < until {
                            match self.heard.recv_timeout(Duration::from_secs(2)) {
                                Ok(Said::End(ended, ..)) if ended == number => break,
                                Ok(_) => {}
                                Err(_) => break,
                            }
                        }
                    }
                }
                if let Way::Web(web) = &mut self.way {
                    web.close();
                }
            }
        }
    }

    fn connect(&mut self) -> Result<(), String> {
        self.version = Some(MODERN.to_owned());
        let probe = self.request("server/discover", json!({}), Kind::Raw);
        self.wait(probe, PROBE * if matches!(self.way, Way::Web(_)) { 10 } else { 1 });
        self.jobs[probe].ended = true;
        let outcome = self.jobs[probe].outcome.clone();
        let status = self.jobs[probe].status;
        if matches!(&self.way, Way::Web(_))
            && matches!(status, 401 | 403 | 500..)
            && !self.is("401-is-legacy")
        {
            return Err(format!("status {status}"));
        }
        if let Some(Ok(result)) = &outcome
            && result.get("resultType").is_some()
        {
            self.server = result["capabilities"].clone();
            return Ok(());
        }
        if let Some(Err(error)) = &outcome {
            let code = error["code"].as_i64().unwrap_or(0);
            if code == -32022 && !self.is("modern-error-is-legacy") {
                let supported = error["data"]["supported"].as_array().cloned().unwrap_or_default();
                if supported.iter().any(|version| version == MODERN) {
                    let again = self.request("server/discover", json!({}), Kind::Raw);
                    self.wait(again, Duration::from_secs(5));
                    self.jobs[again].ended = true;
                    return match self.jobs[again].outcome.clone() {
                        Some(Ok(result)) => {
                            self.server = result["capabilities"].clone();
                            Ok(())
                        }
                        other => Err(format!("{other:?}")),
                    };
                }
                if !supported.iter().any(|version| version.as_str().is_some_and(|date| date < MODERN)) {
                    return Err("no common version".to_owned());
                }
            } else if matches!(code, -32020 | -32021) && !self.is("modern-error-is-legacy") {
                return Ok(());
            } else if self.is("one-code") && code != -32601 {
                return Err("not -32601".to_owned());
            }
        }
        if self.is("one-code") && outcome.is_none() && matches!(self.way, Way::Pipes(_)) {
            return Err("no answer".to_owned());
        }
        self.open.clear();
        if std::mem::take(&mut self.again) {
            if self.is("no-respawn") {
                return Err("gone".to_owned());
            }
            self.respawn();
        }
        self.handshake()
    }

    fn respawn(&mut self) {
        if let Place::Relay(address) = self.place {
            self.way = Way::Pipes(Pipes::start(address, &self.tell));
        }
    }

    fn handshake(&mut self) -> Result<(), String> {
        self.version = None;
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": self.capabilities(),
            "clientInfo": {"name": "guest", "version": "1"},
        });
        let mut job = self.request("initialize", params.clone(), Kind::Raw);
        let limit = self.plan["timeout"].as_u64().unwrap_or(5_000);
        self.wait(job, Duration::from_millis(limit));
        if matches!(self.jobs[job].status, 400 | 404 | 405)
            && self.jobs[job].outcome.is_none()
            && self.posts.is_none()
        {
            self.fall_back_to_sse()?;
            job = self.request("initialize", params, Kind::Raw);
            self.wait(job, Duration::from_secs(5));
        }
        if self.jobs[job].outcome.is_none() && std::mem::take(&mut self.again) && !self.is("no-respawn") {
            self.jobs[job].ended = true;
            self.respawn();
            return self.handshake();
        }
        self.jobs[job].ended = true;
        let Some(Ok(result)) = self.jobs[job].outcome.clone() else {
            if self.is("cancels-initialize") {
                self.notify("notifications/cancelled", json!({"requestId": self.jobs[job].id}));
            }
            return Err(format!("no handshake: {:?}", self.jobs[job].outcome));
        };
        let version = result["protocolVersion"].as_str().unwrap_or_default().to_owned();
        let known = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
        if !known.contains(&version.as_str()) && !self.is("any-version") {
            return Err(format!("version {version}"));
        }
        self.version = Some(version);
        self.server = result["capabilities"].clone();
        if !self.is("no-initialized") {
            self.notify("notifications/initialized", Value::Null);
        }
        if self.posts.is_none() && matches!(self.way, Way::Web(_)) && !self.is("no-get") {
            self.listen_to_session(None);
        }
        Ok(())
    }

    fn listen_to_session(&mut self, last: Option<String>) {
        let mut headers = self.session_headers();
        headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
        if let Some(last) = last {
            headers.push(("Last-Event-ID".to_owned(), last));
        }
        let url = self.url.clone();
        if let Way::Web(web) = &mut self.way {
            self.stream = Some(web.send(&url, "GET", &headers, None));
        }
    }

    fn fall_back_to_sse(&mut self) -> Result<(), String> {
        let url = self.url.clone();
        if let Way::Web(web) = &mut self.way {
            let headers = [("Accept".to_owned(), "text/event-stream".to_owned())];
            self.stream = Some(web.send(&url, "GET", &headers, None));
        }
        let until = Instant::now() + Duration::from_secs(2);
        while self.posts.is_none() && Instant::now() < until {
            match self.heard.recv_timeout(Duration::from_secs(2)) {
                Ok(Said::Event(kind, data)) if kind == "endpoint" => {
                    let rest = url.trim_start_matches("http://");
                    let authority = rest.split('/').next().unwrap_or_default();
                    self.posts =
                        Some(if data.starts_with('/') { format!("http://{authority}{data}") } else { data });
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if self.posts.is_some() { Ok(()) } else { Err("no server of any era".to_owned()) }
    }

    pub(crate) fn capabilities(&self) -> Value {
        let answers = &self.plan["answers"];
        let mut capabilities = json!({});
        if answers.get("roots").is_some() {
            capabilities["roots"] = if self.is_modern() { json!({}) } else { json!({"listChanged": true}) };
        }
        if answers.get("sampling").is_some() || self.is("declares-all") {
            capabilities["sampling"] = json!({});
        }
        if answers.get("elicitation").is_some() || answers.get("form").is_some() {
            capabilities["elicitation"] = json!({"form": {}});
        }
        if answers.get("url").is_some() {
            capabilities["elicitation"]["url"] = json!({});
        }
        if self.plan["tasks"] == true && self.is_modern() {
            capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        if self.is("nulls") {
            capabilities["experimental"] = Value::Null;
            capabilities["roots"] = Value::Null;
        }
        capabilities
    }
}

pub(crate) fn object(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Object(Map::from_iter(pairs.into_iter().map(|(name, value)| (name.to_owned(), value))))
}
