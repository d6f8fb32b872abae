//! The recorder as clients and servers meet it: nothing is changed on the way, nothing personal is written.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;

use mcp_conformance::record::halves;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

const OWN: &str = env!("CARGO_BIN_EXE_mcp-conformance");

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("record").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The head and the steps of a recording.
fn steps(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A recorder; it ends when this is dropped.
struct Recorder(Child);

impl Recorder {
    fn start(out: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(OWN);
        command.args(["record", "--out"]).arg(out).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// One between HTTP peers, and the address it listens on.
    fn listening(out: &Path, arguments: &[&str]) -> (Self, String) {
        let mut recorder = Self::start(out, arguments);
        let mut line = String::new();
        BufReader::new(recorder.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line}"));
        (recorder, url.strip_suffix("/mcp").unwrap().to_owned())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn wait(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn record(out: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut recorder = Recorder::start(out, arguments);
    recorder.0.stdin.take().unwrap().write_all(input).unwrap();
    let mut output = Output { status: ExitStatus::default(), stdout: Vec::new(), stderr: Vec::new() };
    recorder.0.stdout.take().unwrap().read_to_end(&mut output.stdout).unwrap();
    recorder.0.stderr.take().unwrap().read_to_end(&mut output.stderr).unwrap();
    output.status = recorder.wait();
    output
}

#[test]
fn every_byte_passes_over_stdio_and_the_end_is_that_of_the_server() {
    let out = folder("bytes").join("all.jsonl");
    let input =
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n\xff\xfe no message\n\n[1,\n{\"id\":\"half";
    let output = record(&out, &["--stdio", "sh -c 'cat; echo said >&2; exit 7'"], input);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, input);
    assert_eq!(output.stderr, b"said\n");
    let steps = steps(&out);
    let said = |party: &str| -> Vec<&Value> { steps.iter().filter_map(|step| step.get(party)).collect() };
    assert_eq!(said("client")[0]["method"], "ping");
    assert_eq!(said("client"), said("server"));
    assert_eq!(said("server")[3], "{\"id\":\"half");
    assert_eq!(steps.last().unwrap()["exit"], 7);
    assert_eq!(record(&out, &["--stdio", "sh -c 'kill -9 $$'"], b"").status.code(), Some(137));
}

/// The pieces of a message pass one by one, so each is a read of its own, and the secret in it is seen all the same.
#[test]
fn pieces_pass_at_once_and_a_secret_split_over_them_is_replaced() {
    let place = folder("pieces");
    let out = place.join("pieces.jsonl");
    let mut recorder = Recorder::start(&out, &["--stdio", "cat", "--redact", "badge"]);
    let (mut input, mut output) = (recorder.0.stdin.take().unwrap(), recorder.0.stdout.take().unwrap());
    let message = br#"{"id":1,"method":"x","params":{"access_token":"tok\u0065n-\"one\" 1","badge":"b-4711","home":"\/home\/ada\/x","text":"Bearer tok-en.two-22, by ada"}}"#;
    for piece in message.chunks(7).chain([&b"\n"[..]]) {
        input.write_all(piece).unwrap();
        let mut back = vec![0; piece.len()];
        output.read_exact(&mut back).unwrap();
        assert_eq!(back, piece);
    }
    drop(input);
    assert_eq!(recorder.wait().code(), Some(0));
    let text = fs::read_to_string(&out).unwrap();
    let params = steps(&out)[1]["client"]["params"].clone();
    assert_eq!(params["access_token"], "redacted-access-token-1");
    assert_eq!(params["badge"], "redacted-badge-1");
    assert_eq!(params["home"], "/home/user-1/x");
    assert_eq!(params["text"], "Bearer redacted-token-1, by user-1");
    for secret in ["one", "4711", "ada", "two"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    // Nothing else was left there.
    assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
}

#[test]
fn a_session_that_is_cut_is_written_and_the_server_ends_with_it() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let out = folder("cut").join("cut.jsonl");
        let server = "sh -c 'echo $$; exec sleep 1000'";
        let mut recorder = Recorder::start(&out, &["--stdio", server]);
        let mut line = String::new();
        let mut output = BufReader::new(recorder.0.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let server = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        test_kill_process(server).unwrap();
        recorder.signal(signal);
        assert_eq!(recorder.wait().code(), Some(code));
        assert!(test_kill_process(server).is_err(), "the server is there no more");
        let steps = steps(&out);
        assert_eq!(steps[1]["server"], line.trim());
        assert_eq!(steps.last().unwrap()["exit"], code);
    }
}

/// A server that does not care for the signal is ended all the same: at once if it comes a second time.
#[test]
fn a_server_that_does_not_listen_is_not_left_behind() {
    let out = folder("stubborn").join("stubborn.jsonl");
    let mut recorder =
        Recorder::start(&out, &["--stdio", "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done'"]);
    let mut line = String::new();
    BufReader::new(recorder.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    recorder.signal(Signal::TERM);
    recorder.signal(Signal::INT);
    assert_eq!(recorder.wait().code(), Some(137));
    assert!(test_kill_process(Pid::from_raw(line.trim().parse().unwrap()).unwrap()).is_err());
}

#[test]
fn what_cannot_be_recorded_is_told_before_anything_is_started() {
    let place = folder("refused");
    let mark = place.join("started");
    let server = format!("touch {}", mark.display());
    let missing = place.join("no/such/folder/x.jsonl");
    let good = place.join("x.jsonl");
    for (out, arguments, said) in [
        (&missing, &["--stdio", &server][..], "cannot be written"),
        (&place, &["--stdio", &server], "it is a folder"),
        (&good, &["--stdio", "/no/such/program"], "cannot start `/no/such/program`"),
        (&good, &["--stdio", "a 'b"], "closed quotes"),
        (&good, &["--http", "http://127.0.0.1:1/mcp"], "cannot be reached"),
        (&good, &["--http", "https://127.0.0.1:1/mcp"], "begins with `http://`"),
        (&good, &[], "--stdio"),
        (&good, &["--stdio", "cat", "--http", "http://127.0.0.1:1/mcp"], "cannot be used with"),
    ] {
        let output = record(out, arguments, b"");
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(said), "{arguments:?}: {told}");
    }
    assert!(!mark.exists() && !good.exists());
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nX-Odd:  a\r\nSet-Cookie: sid=c00kie-value; Path=/\r\nMCP-SESSION-ID: s3ssion-1d\r\nContent-Type: Text/Event-Stream\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn read_head(socket: &mut TcpStream) -> String {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

/// Each event is with the client before the server says the next, in the bytes in which it was sent.
#[test]
fn streams_of_events_pass_over_http_event_by_event() {
    let out = folder("events").join("events.jsonl");
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = upstream.local_addr().unwrap().to_string();
    let events = [
        "id: 1\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/message\",\"params\":{\"data\":\"s3ssion-1d of /Users/bob\"}}\n\n",
        ": a comment\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"password\":\"hunter-22\"}}\n\n",
    ];
    let (go_on, may_go_on) = mpsc::channel();
    let server = thread::spawn(move || {
        // The first connection only shows that the server is there.
        drop(upstream.accept().unwrap());
        let (mut socket, _) = upstream.accept().unwrap();
        let mut seen = read_head(&mut socket);
        let mut body = vec![0; 38];
        socket.read_exact(&mut body).unwrap();
        seen.push_str(&String::from_utf8(body).unwrap());
        let mut sent = CHUNKED.to_owned();
        socket.write_all(CHUNKED.as_bytes()).unwrap();
        for event in events {
            // In the middle of a line, of a secret, of a chunk.
            let text = chunk(event);
            let (first, second) = text.split_at(text.len() - 30);
            socket.write_all(first.as_bytes()).unwrap();
            socket.write_all(second.as_bytes()).unwrap();
            sent.push_str(&text);
            may_go_on.recv().unwrap();
        }
        socket.write_all(b"0\r\n\r\n").unwrap();
        // A second request on the same connection: its client leaves before the answer is complete.
        let get = read_head(&mut socket);
        socket.write_all(CHUNKED.as_bytes()).unwrap();
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        assert_eq!(rest, b"", "the end of the client is the end here");
        (seen, sent + "0\r\n\r\n", get)
    });
    let upstream_url = format!("http://{authority}/mcp");
    let (mut recorder, own) = Recorder::listening(&out, &["--http", &upstream_url, "--listen", "0"]);
    let mut client = TcpStream::connect(&own).unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#;
    let head = format!(
        "POST /mcp?api_key=k3y-of-mine HTTP/1.1\r\nHOST: {own}\r\naUTHORIZATION: Bearer t0ken-of-mine\r\nCookie: sid=c00kie-value\r\nAccept-Encoding: gzip\r\ncontent-length: 38\r\n\r\n"
    );
    client.write_all(format!("{head}{body} ").as_bytes()).unwrap();
    let mut expected = CHUNKED.to_owned();
    let mut got = Vec::new();
    for event in events {
        expected.push_str(&chunk(event));
        let mut part = vec![0; expected.len() - got.len()];
        client.read_exact(&mut part).unwrap();
        got.extend(part);
        assert_eq!(String::from_utf8_lossy(&got), expected);
        go_on.send(()).unwrap();
    }
    let mut end = [0; 5];
    client.read_exact(&mut end).unwrap();
    client.write_all(format!("GET /mcp HTTP/1.1\r\nHost: {own}\r\n\r\n").as_bytes()).unwrap();
    let mut second = vec![0; CHUNKED.len()];
    client.read_exact(&mut second).unwrap();
    drop(client);
    let (seen, sent, get) = server.join().unwrap();
    assert_eq!(String::from_utf8(got).unwrap() + "0\r\n\r\n", sent);
    let head = head
        .replace(&format!("HOST: {own}"), &format!("Host: {authority}"))
        .replace("Accept-Encoding: gzip\r\n", "");
    assert_eq!(seen, format!("{head}{body} "));
    assert!(get.starts_with("GET /mcp HTTP/1.1\r\n"));

    recorder.signal(Signal::TERM);
    assert_eq!(recorder.wait().code(), Some(0));
    let text = fs::read_to_string(&out).unwrap();
    let steps = steps(&out);
    assert_eq!(steps[1]["headers"]["authorization"], "Bearer redacted-token-1");
    assert_eq!(steps[1]["headers"]["cookie"], "sid=redacted-cookie-1");
    assert_eq!(steps[2]["headers"]["set-cookie"], "sid=redacted-cookie-1; Path=/");
    assert_eq!(steps[2]["headers"]["mcp-session-id"], "redacted-session-1");
    assert_eq!(steps[3]["server"]["params"]["data"], "redacted-session-1 of /Users/user-1");
    assert_eq!(steps[3]["event"]["id"], "1");
    assert_eq!(steps[4]["server"]["result"]["password"], "redacted-password-1");
    assert_eq!(steps[5]["end"], 1);
    assert_eq!((&steps[6]["method"], &steps[6]["client"]), (&"GET".into(), &Value::Null));
    assert_eq!((&steps[8]["cut"], &steps[8]["by"]), (&2.into(), &"client".into()));
    for secret in ["k3y", "t0ken", "c00kie", "s3ssion", "bob", "hunter"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(halves(&text).unwrap().is_some());
}

/// What `run` makes of recordings: they are two exchanges each, and both hold for whom they were made of.
#[test]
fn a_recording_of_the_fixture_is_replayed_in_both_directions() {
    let place = folder("fixture");
    let plan = place.join("plan.json");
    let steps = r#"{"steps":[{"list":"tools"},{"call":"echo","arguments":{"text":"a"}},{"call":"deploy","arguments":{"env":"x"}},{"call":"slow","arguments":{"ms":20},"progress":true},{"call":"none-such"},{"read":"config://app"}],"answers":{"elicitation":{"confirm":true,"region":"r"}}}"#;
    fs::write(&plan, steps).unwrap();
    let recordings = place.join("recordings/fixture");
    fs::create_dir_all(&recordings).unwrap();
    let probe = |era: &str, server: &[&str]| {
        let plan = plan.to_str().unwrap();
        let words = [&["probe", "--runtime", "tokio", "--era", era, "--plan", plan][..], server].concat();
        let output = Command::new(OWN).args(words).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(told.lines().count() == 7, "{told}{}", String::from_utf8_lossy(&output.stderr));
    };
    let fixture = format!("{OWN} serve --runtime std --stdio");
    for era in ["modern", "legacy"] {
        let out = recordings.join(format!("stdio-{era}.jsonl"));
        probe(era, &["--", OWN, "record", "--out", out.to_str().unwrap(), "--stdio", &fixture]);
    }
    let mut serve = Command::new(OWN);
    serve.args(["serve", "--runtime", "tokio", "--http", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut server = Recorder(serve.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let upstream = line.trim().strip_prefix("listening on ").unwrap().to_owned();
    for era in ["modern", "legacy"] {
        let out = recordings.join(format!("http-{era}.jsonl"));
        let (mut recorder, own) = Recorder::listening(&out, &["--http", &upstream]);
        probe(era, &["--url", &format!("http://{own}/mcp")]);
        recorder.signal(Signal::TERM);
        assert_eq!(recorder.wait().code(), Some(0));
    }
    let place = place.join("recordings");
    let run = |words: &[&str]| {
        let exchanges = ["run", "--exchanges", place.to_str().unwrap()];
        let output = Command::new(OWN).args([&exchanges[..], words].concat()).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {told}{errors}");
        told.lines().last().unwrap_or_default().to_owned()
    };
    // The server says the same to the suite that it has said to the client,
    assert_eq!(run(&["--stdio", &fixture]), "2 passed, 0 failed, 0 skipped");
    assert_eq!(run(&["--http", &upstream]), "2 passed, 0 failed, 0 skipped");
    // and the client says it to the suite.
    for (era, runtime) in [("modern", "tokio"), ("modern", "smol"), ("legacy", "tokio"), ("legacy", "smol")] {
        let only = format!("fixture/*-{era}/client");
        let probe = format!("{OWN} probe --runtime {runtime} --era {era}");
        let told = run(&["--only", &only, "--client-stdio", &probe]);
        assert_eq!(told, "1 passed, 0 failed, 0 skipped", "{era} {runtime}");
        let told = run(&["--only", &only, "--client", &format!("{probe} --url")]);
        assert_eq!(told, "1 passed, 0 failed, 0 skipped", "{era} {runtime}");
    }
}
