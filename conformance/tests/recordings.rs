//! The committed recordings of servers of other projects: our client does with each what it did when it was recorded,
//! and each half holds against the other.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use mcp_conformance::exchange::{Exchange, Transport, parse};
use mcp_conformance::hosting::{self, Client, Guest, Invitation, Place, Setting};
use mcp_conformance::record::{Halves, halves};
use mcp_conformance::replay::{Entry, Finding, Replay, drive};
use mcp_conformance::requirement::Level;
use mcp_conformance::revision::Revision;
use mcp_conformance::subject::{Command, Exit, Life, Running, Subject};
use serde_json::Value;

const OWN: &str = env!("CARGO_BIN_EXE_mcp-conformance");

/// How long a step waits: far longer than anything takes, for the machine may have other work.
const PATIENCE: Duration = Duration::from_secs(60);

struct Recording {
    name: String,
    text: String,
    halves: Halves,
    server: Exchange,
    client: Exchange,
    revision: Revision,
    transport: Transport,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings")
}

fn recordings() -> Vec<Recording> {
    let root = root();
    let folders =
        fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = files.map(|file| read(&root, &file)).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

fn read(root: &Path, file: &PathBuf) -> Recording {
    let name = file.strip_prefix(root).unwrap().with_extension("").to_string_lossy().replace('\\', "/");
    let text = fs::read_to_string(file).unwrap();
    let halves = halves(&text)
        .unwrap_or_else(|e| panic!("{name}: {e}"))
        .unwrap_or_else(|| panic!("{name}: no recording"));
    let parsed =
        |(name, text): &(String, String)| parse(name, text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let (server, client) = (parsed(&halves.server), parsed(&halves.client));
    let revision = server.head.revisions.revisions().next().unwrap();
    let transport = server.head.transports[0];
    Recording { name, text, halves, server, client, revision, transport }
}

impl Recording {
    /// The eras that the recorded client tried.
    fn era(&self) -> &'static str {
        let messages = self.text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let first =
            messages.filter_map(|step| Some(step.get("client")?["method"].as_str()?.to_owned())).next();
        match (self.revision.is_modern(), first.as_deref()) {
            (true, _) => "modern",
            (false, Some("initialize")) => "legacy",
            (false, _) => "auto",
        }
    }

    fn play(&self, client: &dyn Client) -> (Vec<Finding>, Vec<Entry>) {
        let setting = Setting::new(&self.client, self.revision, Some(PATIENCE), None);
        let played = hosting::play(&setting, client).unwrap();
        assert_eq!(played.lacks, None, "{}", self.name);
        (played.findings, played.transcript)
    }
}

fn differs(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.level == Level::Must)
}

/// What differs from the recording, if something does.
fn wrong(what: &str, (findings, transcript): (Vec<Finding>, Vec<Entry>)) -> Option<String> {
    if !differs(&findings) {
        return None;
    }
    let mut told = format!("{what}:");
    for finding in findings {
        told.push_str(&format!(
            "\n  line {:?}: expected {}, got {}",
            finding.line, finding.expected, finding.got
        ));
    }
    for entry in transcript {
        told.push_str(&format!("\n    {:?} {:?} {}", entry.at, entry.direction, entry.text));
    }
    Some(told)
}

#[test]
fn there_are_recordings_of_six_peers_and_nothing_personal_is_in_them() {
    let all = recordings();
    let mut peers: Vec<_> = all.iter().map(|recording| recording.name.split_once('/').unwrap().0).collect();
    peers.dedup();
    assert!(peers.len() >= 6, "{peers:?}");
    for recording in &all {
        let Recording { name, text, halves, .. } = recording;
        let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(head["exchange"], **name);
        assert!(text.lines().count() <= 100, "{name}: one reads it");
        for personal in ["/home/", "/root", "/Users/", "\\Users\\", "bearer ", "Bearer "] {
            assert!(!text.contains(personal), "{name}: {personal}");
        }
        for line in text.lines() {
            short(name, &serde_json::from_str(line).unwrap());
        }
        assert_eq!(
            (&*halves.server.0, &*halves.client.0),
            (&*format!("{name}/server"), &*format!("{name}/client"))
        );
    }
}

/// What other projects have written for people is not ours to copy.
fn short(name: &str, value: &Value) {
    match value {
        Value::String(text) => assert!(text.len() <= 300, "{name}: {text}"),
        Value::Array(items) => items.iter().for_each(|item| short(name, item)),
        Value::Object(members) => {
            let prose = |of: &str| members.get(of).and_then(Value::as_str);
            assert_eq!((prose("description"), prose("instructions")), (None, None), "{name}");
            // A state may be long.
            if members.contains_key("$bind") {
                return;
            }
            members.values().for_each(|value| short(name, value));
        }
        _ => {}
    }
}

/// The suite is the recorded server.
#[test]
fn our_client_does_the_same_with_the_recorded_servers_on_both_runtimes() {
    let mut problems = Vec::new();
    for recording in recordings() {
        for runtime in ["tokio", "smol"] {
            let probe = format!("{OWN} probe --runtime {runtime} --era {}", recording.era());
            let only = format!("{}/client", recording.name);
            let mut suite = process::Command::new(OWN);
            suite.args(["run", "--exchanges"]).arg(root()).args(["--only", &only]);
            match recording.transport {
                Transport::Http => suite.args(["--client", &format!("{probe} --url")]),
                _ => suite.args(["--client-stdio", &probe]),
            };
            let output = suite.output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout);
            if told.lines().last() != Some("1 passed, 0 failed, 0 skipped") {
                let errors = String::from_utf8_lossy(&output.stderr);
                problems.push(format!("{only} on {runtime}: {told}{errors}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// The suite is both: the recorded server for the recorded client.
#[test]
fn each_half_of_a_recording_holds_against_the_other() {
    let mut problems = Vec::new();
    for recording in recordings() {
        let what = format!("{} with itself", recording.name);
        let recorded = Recorded {
            exchange: recording.server.clone(),
            revision: recording.revision,
            transport: recording.transport,
            outcome: Outcome::default(),
        };
        let (mut findings, mut transcript) = recording.play(&recorded);
        let (theirs, more) = recorded.outcome();
        findings.extend(theirs);
        transcript.extend(more);
        problems.extend(wrong(&what, (findings, transcript)));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// A half that says something else is noticed.
#[test]
fn a_server_that_answers_otherwise_than_recorded_is_noticed() {
    let mut recording = recordings().into_iter().find(|recording| recording.name.contains("memory")).unwrap();
    let (name, text) = &recording.halves.server;
    let other = text.replace("\"serverInfo\":{\"name\":\"", "\"serverInfo\":{\"name\":\"x");
    assert_ne!(*text, other);
    recording.server = parse(name, &other).unwrap();
    let recorded = Recorded {
        exchange: recording.server.clone(),
        revision: recording.revision,
        transport: recording.transport,
        outcome: Outcome::default(),
    };
    recording.play(&recorded);
    let (findings, _) = recorded.outcome();
    assert!(differs(&findings) && findings[0].expected.contains("serverInfo"), "{findings:?}");
}

type Outcome = Arc<Mutex<Option<(Vec<Finding>, Vec<Entry>)>>>;

/// The recorded client as a client of the suite.
#[derive(Debug)]
struct Recorded {
    exchange: Exchange,
    revision: Revision,
    transport: Transport,
    outcome: Outcome,
}

impl Recorded {
    /// What came out of it, once it has.
    fn outcome(&self) -> (Vec<Finding>, Vec<Entry>) {
        loop {
            if let Some(outcome) = self.outcome.lock().unwrap().take() {
                return outcome;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Client for Recorded {
    fn name(&self) -> String {
        "the recorded client".to_owned()
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn start(&self, invitation: &Invitation) -> io::Result<Guest> {
        let subject: Box<dyn Subject> = match &invitation.place {
            Place::Relay(address) => {
                let words = [OWN, "relay", &address.to_string()].map(str::to_owned).to_vec();
                Box::new(Command::own(words, "-"))
            }
            Place::Url(url) => Box::new(Running::at(url).map_err(io::Error::other)?),
        };
        let link = subject.start(self.revision)?;
        let (exchange, revision, transport) = (self.exchange.clone(), self.revision, self.transport);
        let outcome = Arc::clone(&self.outcome);
        thread::spawn(move || {
            let replay = Replay::new(&exchange, revision, transport, None).unwrap().with_patience(PATIENCE);
            let played = drive(replay, link);
            *outcome.lock().unwrap() = Some(played);
        });
        let life = Box::new(Until(Arc::clone(&self.outcome)));
        Ok(Guest::new(Box::new(io::empty()), None, life))
    }
}

struct Until(Outcome);

impl Life for Until {
    fn exit(&mut self) -> Option<Exit> {
        let done = self.0.lock().unwrap().is_some();
        done.then(|| Exit { code: Some(0), text: "exit code 0".to_owned() })
    }

    fn kill(&mut self) {}
}
