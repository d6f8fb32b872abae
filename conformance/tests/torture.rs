//! Random traffic finds what it is there to find, and accuses nobody who does as the specification says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use mcp_conformance::exchange::{Exchange, parse};
use mcp_conformance::mutants::{self, Bench};
use mcp_conformance::replay::{Replay, Verdict, drive};
use mcp_conformance::revision::Revision;
use mcp_conformance::run::{Manner, Outcome, Plan, Selection, run};
use mcp_conformance::subject::{Command, Exit, Life, Link, Served, Subject};
use mcp_conformance::torture::{Endured, Torture, torture};

const LEGACY: Revision = Revision::V2025_06_18;
const MODERN: Revision = Revision::V2026_07_28;

/// The mock answers at once or never, so the faults need not be waited for as long as a real peer.
const PATIENCE: Duration = Duration::from_secs(3);

/// What takes all of the machine is played alone, lest it slow down the others.
static TURN: Mutex<()> = Mutex::new(());

/// The mock behind a reader with one fault.
#[derive(Debug)]
struct Behind {
    fault: &'static str,
}

impl Subject for Behind {
    fn name(&self) -> String {
        format!("mock behind {}", self.fault)
    }

    fn start(&self, _: Revision) -> io::Result<Link> {
        let (input, write) = io::pipe()?;
        let (read, output) = io::pipe()?;
        let (inner, fault) = (io::pipe()?, self.fault);
        thread::spawn(move || spoil(fault, input, inner.1));
        thread::spawn(move || mutants::serve("", inner.0, output));
        Ok(Link::new(Box::new(write), Box::new(read), None, Box::new(Unending)))
    }
}

/// The threads end with their input.
struct Unending;

impl Life for Unending {
    fn exit(&mut self) -> Option<Exit> {
        None
    }

    fn kill(&mut self) {}
}

/// Passes on what comes, as a reader with this fault would understand it.
fn spoil(fault: &str, input: PipeReader, mut output: PipeWriter) {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let mut begun: Vec<u8> = Vec::new();
    loop {
        if matches!(fault, "reads-one-a-write" | "takes-a-write-for-a-line") {
            let mut piece = vec![0; 1 << 16];
            let Ok(count @ 1..) = input.read(&mut piece) else { return };
            piece.truncate(count);
            if fault == "takes-a-write-for-a-line" && !piece.ends_with(b"\n") {
                piece.push(b'\n');
            }
            if fault == "reads-one-a-write" {
                begun.extend(piece);
                let whole = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                let lines: Vec<u8> = begun.drain(..whole).collect();
                // Of several requests the first alone is seen.
                let mut asked = false;
                let seen = |line: &&[u8]| {
                    let request = line.windows(4).any(|name| name == b"\"id\"");
                    !request || !std::mem::replace(&mut asked, true)
                };
                piece =
                    lines.split_inclusive(|byte| *byte == b'\n').filter(seen).flatten().copied().collect();
            }
            if output.write_all(&piece).is_err() {
                return;
            }
            continue;
        }
        let mut line = Vec::new();
        let Ok(1..) = input.read_until(b'\n', &mut line) else { return };
        let text = String::from_utf8_lossy(&line).into_owned();
        let at = |name: &str| text.find(name);
        let read = match fault {
            "crashes-deep" if text.contains(&"[".repeat(130)) || text.contains(&"{\"a\":".repeat(130)) => {
                return;
            }
            "wants-the-method-first"
                if at("\"params\"").is_some_and(|params| at("\"method\"") > Some(params)) =>
            {
                None
            }
            "wants-no-space" if text.starts_with([' ', '\t']) => None,
            "keeps-escapes" => Some(text.replace("\\u", "\\\\u")),
            "loses-beyond-doubles" => Some(text.replace("\"id\":9223372036854", "\"id\":9223372036000")),
            _ => Some(text),
        };
        if let Some(text) = read
            && output.write_all(text.as_bytes()).is_err()
        {
            return;
        }
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("torture").join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn endure(subjects: Vec<Box<dyn Subject>>, revisions: Vec<Revision>, scripts: u64, name: &str) -> Endured {
    let plan = Plan::without_exchanges(Selection::new(revisions, None), &subjects).unwrap();
    let manner = Manner::new(None, false, None, None);
    let sound = matches!(name, "fixture" | "good");
    let manner = if sound { manner } else { manner.with_patience(PATIENCE) };
    let orders = Torture::new(1, None, Some(scripts), folder(name));
    torture(&plan, &manner, &orders, |_| {}).unwrap()
}

fn told(endured: &Endured) -> String {
    let failed = endured.results.iter().filter(|result| result.verdict != Verdict::Passed);
    let told = failed.map(|result| {
        format!("{} {}: {:#?} {:#?}", result.exchange, result.runtime, result.findings, result.transcript)
    });
    told.collect::<Vec<_>>().join("\n\n")
}

#[test]
fn a_server_that_behaves_is_not_accused() {
    let _alone = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let endured = endure(vec![mutants::server(Bench::Pipes, "")], Vec::new(), 400, "good");
    assert_eq!((endured.scripts, endured.results.len()), (400, 5), "{}", told(&endured));
    assert!(endured.results.iter().all(|result| result.verdict == Verdict::Passed), "{}", told(&endured));
    assert!(endured.messages > 1_000);
}

/// Every runtime and transport of the fixture, in every revision.
#[test]
fn the_fixture_survives_two_thousand_scripts() {
    let _alone = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let own = env!("CARGO_BIN_EXE_mcp-conformance");
    let words = |runtime: &str, transport: &[&str]| -> Vec<String> {
        // Lists of many pages cost the most time, so only one of them has such.
        let many = if runtime == "std" { "250" } else { "0" };
        let serve = [own, "serve", "--runtime", runtime, "--many", many];
        serve.iter().chain(transport).map(|word| (*word).to_owned()).collect()
    };
    let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
    for runtime in ["std", "tokio", "smol"] {
        subjects.push(Box::new(Command::own(words(runtime, &["--stdio"]), runtime)));
    }
    for runtime in ["tokio", "smol"] {
        let served = Served::own(words(runtime, &["--http", "127.0.0.1:0"]), runtime);
        subjects.push(Box::new(served.with_sse("/sse")));
    }
    let endured = endure(subjects, Vec::new(), 2_000, "fixture");
    assert!(endured.results.iter().all(|result| result.verdict == Verdict::Passed), "{}", told(&endured));
    assert_eq!((endured.scripts, endured.results.len()), (2_000, 25));
}

/// Fault, whether it is one of the mock itself, revision, and a requirement of which one is cited.
const PLANTED: [(&str, bool, Revision, &str, Verdict); 11] = [
    ("text-id", true, LEGACY, "S-BASE-01", Verdict::Failed),
    ("twice", true, MODERN, "S-BASE-01", Verdict::Failed),
    ("answers-cancelled", true, MODERN, "S-STDIO-04", Verdict::Failed),
    ("answers-cancelled", true, LEGACY, "S-CANCEL-06", Verdict::Warning),
    ("reads-one-a-write", false, LEGACY, "", Verdict::Failed),
    ("takes-a-write-for-a-line", false, MODERN, "", Verdict::Failed),
    ("keeps-escapes", false, LEGACY, "", Verdict::Failed),
    ("crashes-deep", false, MODERN, "", Verdict::Failed),
    ("wants-the-method-first", false, MODERN, "", Verdict::Failed),
    ("wants-no-space", false, LEGACY, "", Verdict::Failed),
    ("loses-beyond-doubles", false, MODERN, "", Verdict::Failed),
];

#[test]
fn each_planted_fault_is_found_and_its_file_replays_it() {
    let _alone = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        for planted in PLANTED {
            scope.spawn(move || is_found(planted));
        }
    });
}

fn is_found((fault, inside, revision, requirement, verdict): (&'static str, bool, Revision, &str, Verdict)) {
    let subject = || -> Box<dyn Subject> {
        if inside { mutants::server(Bench::Pipes, fault) } else { Box::new(Behind { fault }) }
    };
    let name = format!("{fault}-{revision}");
    let endured = endure(vec![subject()], vec![revision], 40, &name);
    let found = endured.results.iter().find(|result| {
        let cites = |id: &String| requirement.is_empty() || id == requirement;
        result.verdict == verdict && result.findings.iter().any(|finding| finding.requires.iter().any(cites))
    });
    let found = found.unwrap_or_else(|| panic!("{name}: not found: {}", told(&endured)));
    // A mock with a name of its own for what it runs on has it in the file's.
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("torture").join(&name);
    let file = file.join(format!("{}.jsonl", found.exchange));
    let text = fs::read_to_string(&file).unwrap();
    let exchange = parse(found.exchange, &text).unwrap();
    assert_eq!(exchange.head.name, found.exchange);
    assert!(exchange.steps.len() < 14, "{name}: not small:\n{text}");
    assert_ne!(replayed(&exchange, revision, subject().as_ref()), Verdict::Passed, "{name}:\n{text}");
    let own = env!("CARGO_BIN_EXE_mcp-conformance");
    let words = [own, "serve", "--runtime", "std", "--stdio"].map(str::to_owned).to_vec();
    let fixture = Command::own(words, "std");
    assert_eq!(replayed(&exchange, revision, &fixture), Verdict::Passed, "{name}:\n{text}");
}

fn replayed(exchange: &Exchange, revision: Revision, subject: &dyn Subject) -> Verdict {
    let replay = Replay::new(exchange, revision, subject.transport(), None).unwrap();
    let (findings, _) = drive(replay.with_patience(Duration::from_secs(5)), subject.start(revision).unwrap());
    Verdict::of(&findings)
}

fn explored(fault: &'static str, destructive: bool) -> Outcome {
    let subjects: Vec<Box<dyn Subject>> = vec![mutants::server(Bench::Pipes, fault)];
    let selection = Selection::new(vec![LEGACY, MODERN], None);
    let plan = Plan::exploring(selection, &subjects, destructive).unwrap();
    run(&plan, &Manner::new(None, false, None, None).with_patience(PATIENCE), |_| {})
}

/// What the mock lists is enough to find that it does not do as it says.
#[test]
fn a_server_is_held_against_what_it_lists() {
    let _alone = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let good = explored("", false);
    for result in &good.results {
        assert_eq!(result.verdict, Verdict::Passed, "{} {:#?}", result.exchange, result.findings);
    }
    let made: Vec<_> = good.results.iter().map(|result| result.exchange).collect();
    for name in ["explore/tools-list", "explore/call-add", "explore/refuse-add", "explore/resources"] {
        assert!(made.contains(&name), "{made:?}");
    }
    assert!(!made.contains(&"explore/call-touch"), "a tool that may destroy something");
    for (fault, exchange, requirement) in
        [("takes-all", "explore/refuse-add", "S-TOOL-15"), ("sum-as-text", "explore/call-add", "S-TOOL-13")]
    {
        let outcome = explored(fault, false);
        let failed: Vec<_> =
            outcome.results.iter().filter(|result| result.verdict == Verdict::Failed).collect();
        assert_eq!(failed.len(), 2, "{fault}, once in each era: {failed:#?}");
        for result in failed {
            assert_eq!(result.exchange, exchange);
            assert!(result.findings[0].requires.iter().any(|id| id == requirement), "{:#?}", result.findings);
        }
    }
}
