//! The command line as other programs call it: exit codes, last lines, files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A server in a shell, which answers every request with the same line; enough to be called broken.
#[cfg(unix)]
const ECHO: &str = r#"sh -c 'while read -r line; do printf "%s\n" "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"serverInfo\":{\"name\":\"shell\",\"version\":\"1\"}}}"; done'"#;

fn suite(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mcp-conformance")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[test]
fn a_server_that_cannot_be_reached_is_a_failed_step() {
    for runtime in ["tokio", "smol"] {
        let output = suite(&["probe", "--runtime", runtime, "--url", "http://127.0.0.1:1/mcp"]);
        assert_eq!(output.status.code(), Some(1), "{runtime}");
        let line: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&line["step"], &line["ok"]), (&"connect".into(), &false.into()));
        assert!(line["error"].as_str().unwrap().contains("127.0.0.1"), "{line}");
    }
}

#[cfg(not(feature = "https"))]
#[test]
fn https_that_was_not_built_in_says_how_to_get_it() {
    for url in ["https://localhost:1/mcp", "HTTPS://localhost:1/mcp"] {
        let output = suite(&["probe", "--runtime", "tokio", "--url", url]);
        assert_eq!(output.status.code(), Some(1));
        let line: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(line["error"].as_str().unwrap().contains("`--features https`"), "{line}");
    }
}

/// Lets the probe do `steps` on the fixture, on each runtime, and looks at what it told of each after the connection.
fn probed(name: &str, steps: &Value, look: impl Fn(&Output, &[Value])) {
    let place = folder(name);
    fs::create_dir_all(&place).unwrap();
    let plan = place.join("plan.json");
    fs::write(&plan, serde_json::json!({ "steps": steps }).to_string()).unwrap();
    let own = env!("CARGO_BIN_EXE_mcp-conformance");
    for runtime in ["tokio", "smol"] {
        let options = ["probe", "--runtime", runtime, "--plan", plan.to_str().unwrap(), "--", own];
        let output = suite(&[&options[..], &["serve", "--runtime", "std", "--stdio"]].concat());
        let lines: Vec<Value> =
            text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["result"]["version"], "2026-07-28");
        look(&output, &lines[1..]);
    }
}

#[test]
fn a_plan_is_done_step_by_step() {
    let steps = serde_json::json!([
        {"call": "echo", "arguments": {"text": "a"}, "as": "one"},
        {"call": "none-such", "as": "two"},
    ]);
    probed("probe", &steps, |output, lines| {
        assert_eq!(output.status.code(), Some(1), "the second step fails");
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!((&lines[0]["as"], &lines[0]["ok"]), (&"one".into(), &true.into()));
        assert_eq!(lines[0]["result"]["content"][0]["text"], "a");
        assert_eq!((&lines[1]["ok"], &lines[1]["code"]), (&false.into(), &(-32602).into()));
    });
}

#[test]
fn a_step_is_done_again_until_it_says_what_is_waited_for() {
    let steps = serde_json::json!([
        {"call": "touch", "until": {"/content/0/text": "config://app has version 4"}},
        {"read": "config://app", "until": {"/contents/0/text": "{\"version\":5}"}, "most": 0},
        {"call": "touch"},
    ]);
    probed("probe-until", &steps, |output, lines| {
        assert_eq!(output.status.code(), Some(1), "the second step fails");
        assert_eq!(lines.len(), 3, "one line a step: {lines:?}");
        assert_eq!(lines[0]["result"]["content"][0]["text"], "config://app has version 4");
        let error = lines[1]["error"].as_str().unwrap();
        assert!(error.contains(r#"expected "{\"version\":5}" at `/contents/0/text`"#), "{error}");
        assert!(error.contains(r#"found "{\"version\":4}""#), "{error}");
        assert_eq!(lines[2]["result"]["content"][0]["text"], "config://app has version 5");
    });
}

#[test]
fn unusable_arguments_exit_with_2() {
    for (arguments, said) in [
        (&["run", "--revision", "2020-01-01"][..], "expected one of 2024-11-05"),
        (&["run", "--stdio", "a 'b"], "closed quotes"),
        (&["run", "--http", "ftp://127.0.0.1/"], "begins with `http://`"),
        (&["run", "--http", "http://127.0.0.1:1/mcp", "--only", "tools/list"], "cannot reach 127.0.0.1:1"),
        (&["run", "--stdio", "x", "--http", "y"], "cannot be used with"),
        (&["run", "--stdio", "x", "--sse", "y"], "cannot be used with"),
        (&["run", "--http", "http://127.0.0.1:1/mcp", "--token", "second=x"], "expected a token `first`"),
        (&["run", "--token", "x"], "expected `--http` or `--sse`"),
        (&["run", "--sse", "https://127.0.0.1/sse"], "`--sse`: expected a URL that begins with `http://`"),
        (&["run", "--stdio", "x", "--only", "no-such-exchange"], "no exchange has such a name"),
        (&["run", "--stdio", "x", "--schemas", "/no/such/folder"], "schema.json"),
        (&["run", "--stdio", "x", "--baseline", "/no/such/file"], "/no/such/file"),
        (
            &["run", "--client", "no-such-program-there"],
            "`--client`: expected a program, found no `no-such-program-there`",
        ),
        (
            &["run", "--client-stdio", "./no/such"],
            "`--client-stdio`: expected a program, found no `./no/such`",
        ),
        (&["client", "--runtime", "tokio", "http://127.0.0.1:1/mcp"], "MCP_CONFORMANCE_SCENARIO"),
        (&["probe", "--runtime", "smol"], "CMD ARGS"),
        (
            &["probe", "--runtime", "smol", "--plan", "/no/such/plan", "--url", "http://127.0.0.1:1/"],
            "/no/such/plan",
        ),
        (&["serve", "--runtime", "std"], "--stdio"),
    ] {
        let output = suite(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(said), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_subject_that_cannot_be_started_exits_with_2() {
    for (command, said) in
        [("/no/such/program", "cannot start"), ("sh -c 'echo broken >&2; exit 3'", "broken")]
    {
        let output = suite(&["run", "--stdio", command, "--only", "ping/answers"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
}

#[test]
fn the_lists_name_every_exchange_and_every_requirement() {
    let output = suite(&["list"]);
    let exchanges = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert!(exchanges.lines().any(|line| line.starts_with("tools/unknown-tool\t")));
    assert!(exchanges.lines().last().unwrap().ends_with(" exchanges"));
    let rows = text(&suite(&["list", "--requirements"]).stdout);
    let row = rows.lines().find(|line| line.starts_with("S-TOOL-13\t")).unwrap();
    assert!(row.contains("tools/structured-sum"), "{row}");
    let ends = |id: &str, end: &str| {
        let row = rows.lines().find(|line| line.starts_with(&format!("{id}\t"))).unwrap();
        assert!(row.split('\t').next_back().unwrap().starts_with(end), "{row}");
    };
    ends("B-META-05", "invariant:meta-keys");
    ends("S-TOOL-18", "unseen (judgement): ");
    assert!(rows.lines().count() > 880);
    assert!(rows.lines().last().unwrap().contains(" cannot be seen ("), "{rows}");
}

#[cfg(unix)]
#[test]
fn a_run_ends_with_a_table_and_counts_and_writes_its_reports() {
    let reports = folder("reports");
    let arguments = ["run", "--stdio", ECHO, "--revision", "2025-06-18", "--only", "lifecycle/handshake"];
    let output = suite(&[&arguments[..], &["--report", reports.to_str().unwrap()]].concat());
    let said = text(&output.stdout);
    // The second answer of the shell bears an id that is no longer open.
    assert_eq!(output.status.code(), Some(1), "{said}");
    let failure = said.lines().find(|line| line.starts_with("FAIL")).unwrap();
    for part in ["lifecycle/handshake", "2025-06-18", "expected", "got", "S-BASE-01", "basic/index.mdx"] {
        assert!(failure.contains(part), "{failure}");
    }
    assert!(said.lines().any(|line| line.starts_with("runtime") && line.contains("2025-06-18")));
    assert_eq!(said.lines().last(), Some("0 passed, 1 failed, 0 skipped"));

    let report: Value = serde_json::from_slice(&fs::read(reports.join("report.json")).unwrap()).unwrap();
    assert_eq!(report["format"], 1);
    assert_eq!(report["subject"]["name"], "shell 1");
    assert_eq!(report["totals"]["failed"], 1);
    let result = report["results"][0].as_object().unwrap();
    let mut members: Vec<_> = result.keys().map(String::as_str).collect();
    members.sort_unstable();
    let known =
        ["exchange", "expected", "got", "outcome", "requires", "revision", "runtime", "step", "transport"];
    assert_eq!(members, known);
    assert_eq!((&result["outcome"], &result["exchange"]), (&"failed".into(), &"lifecycle/handshake".into()));
    let junit = fs::read_to_string(reports.join("junit.xml")).unwrap();
    assert!(
        junit.contains("<testsuites name=\"mcp-conformance\" tests=\"1\" failures=\"1\" skipped=\"0\">"),
        "{junit}"
    );
    assert!(junit.contains("<failure message=\""), "{junit}");
    let page = fs::read_to_string(reports.join("report.html")).unwrap();
    assert!(page.contains("S-BASE-01") && page.contains("class=\"timeline\""));
    for elsewhere in ["http://", "https://", "src="] {
        assert!(!page.contains(elsewhere), "the page needs {elsewhere}");
    }
}

#[cfg(unix)]
#[test]
fn a_baseline_excuses_known_failures_and_notices_stale_entries() {
    let place = folder("baseline");
    fs::create_dir_all(&place).unwrap();
    let file = place.join("known");
    let run = |entries: &str, revision: &str| {
        fs::write(&file, entries).unwrap();
        let baseline = file.to_str().unwrap();
        suite(&[
            "run",
            "--stdio",
            ECHO,
            "--revision",
            revision,
            "--only",
            "lifecycle/handshake",
            "--baseline",
            baseline,
        ])
    };
    let output = run("lifecycle/handshake 2025-06-18\n", "2025-06-18");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert_eq!(text(&output.stdout).lines().last(), Some("0 passed, 0 failed, 0 skipped"));
    assert!(text(&output.stdout).contains("1 known failures"));
    assert_eq!(run("tools/list\n", "2025-06-18").status.code(), Some(1));
}

#[cfg(unix)]
#[test]
fn a_revision_the_subject_lacks_is_skipped_unless_it_was_named() {
    let only = ["--only", "lifecycle/handshake"];
    let all = suite(&[&["run", "--stdio", ECHO][..], &only].concat());
    let said = text(&all.stdout);
    assert_eq!(said.lines().last(), Some("0 passed, 1 failed, 3 skipped"), "{said}");
    let named = suite(&[&["run", "--stdio", ECHO, "--revision", "2024-11-05"][..], &only].concat());
    assert_eq!(text(&named.stdout).lines().last(), Some("0 passed, 1 failed, 0 skipped"));
}

/// On every runtime, and one that cannot be read is refused.
#[test]
fn the_fixture_serves_with_as_many_threads_as_it_is_told() {
    for runtime in ["std", "tokio", "smol"] {
        for threads in ["1", "3"] {
            let fixture = format!(
                "{} serve --runtime {runtime} --stdio --threads {threads}",
                env!("CARGO_BIN_EXE_mcp-conformance").replace('\\', "/")
            );
            let only = ["--only", "tools/quick-beside-slow", "--revision", "2026-07-28"];
            let output = suite(&[&["run", "--stdio", &fixture][..], &only].concat());
            let said = text(&output.stdout);
            assert_eq!(
                said.lines().last(),
                Some("1 passed, 0 failed, 0 skipped"),
                "{runtime} {threads}: {said}"
            );
        }
    }
    assert_eq!(suite(&["serve", "--runtime", "smol", "--stdio", "--threads", "x"]).status.code(), Some(2));
}

/// The fixture with tokens and its URL; it ends when this is dropped.
struct Fixture(std::process::Child, String);

impl Fixture {
    fn start(options: &[&str]) -> Self {
        Self::start_on("smol", options)
    }

    fn start_on(runtime: &str, options: &[&str]) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_mcp-conformance"))
            .args(["serve", "--runtime", runtime, "--http", "127.0.0.1:0"])
            .args(options)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self(server, url)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The tokens that the suite was told decide which exchanges are played.
#[test]
fn a_server_that_asks_for_tokens_is_played_with_those_that_were_given() {
    let fixture = Fixture::start(&["--tokens"]);
    let run = |only: &str, tokens: &[&str]| {
        let tokens = tokens.iter().flat_map(|token| ["--token", token]);
        let revision = ["--revision", "2025-11-25"];
        let target = ["run", "--http", &fixture.1, "--only", only];
        let output = suite(&target.into_iter().chain(revision).chain(tokens).collect::<Vec<_>>());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    // What needs no certain token is played with the first.
    let (code, said, _) = run("tools/simple-text", &["suite-first"]);
    assert_eq!((code, said.lines().last()), (Some(0), Some("1 passed, 0 failed, 0 skipped")), "{said}");
    let all = ["suite-first", "second=suite-second", "narrow=suite-narrow", "expired=suite-expired"];
    let (code, said, _) = run("auth", &[&all[..], &["elsewhere=suite-elsewhere"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.lines().last().unwrap().ends_with("passed, 0 failed, 0 skipped"), "{said}");
    // Those that need others say which.
    let (code, said, _) = run("auth", &["suite-first"]);
    assert_eq!(code, Some(0), "{said}");
    for lacks in
        ["token `expired` (`--token`)", "token `elsewhere` (`--token`)", "token `second` (`--token`)"]
    {
        assert!(said.contains(lacks), "{said}");
    }
    // Without one nothing is asked.
    let (code, _, said) = run("auth", &[]);
    assert_eq!(code, Some(1), "{said}");
}

/// Also what is played only where the fixture offers it.
#[test]
fn nothing_of_the_fixture_with_tokens_is_skipped() {
    let output = suite(&["run", "--only", "auth"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.lines().last().unwrap().ends_with("passed, 0 failed, 0 skipped"), "{said}");
    let without = suite(&["serve", "--runtime", "tokio", "--stdio", "--tokens"]);
    assert_eq!(without.status.code(), Some(2), "there are no tokens over stdio");
}

/// A server that is reached by its URLs alone: that of Streamable HTTP, and that of the stream of 2024-11-05.
#[test]
fn a_running_server_is_played_over_http() {
    let fixture = Fixture::start(&[]);
    let url = fixture.1.clone();
    let stream = url.replace("/mcp", "/sse");
    let run = |target: &[&str]| suite(&[&["run", "--only", "tools/simple-text"][..], target].concat());
    let outputs = [
        run(&["--http", &url]),
        run(&["--http", &url, "--sse", &stream]),
        run(&["--sse", &stream]),
        run(&["--http", &url, "--revision", "2024-11-05"]),
    ];
    drop(fixture);
    let said = outputs.each_ref().map(|output| text(&output.stdout));
    for (output, end) in outputs.iter().zip([
        "4 passed, 0 failed, 1 skipped",
        "5 passed, 0 failed, 0 skipped",
        "1 passed, 0 failed, 4 skipped",
    ]) {
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("-        http") && said.lines().last() == Some(end), "{said}");
    }
    // Why cells are skipped stands below the table, with how many there are.
    let reason = "     1  http   revision 2024-11-05 (no URL of its transport was given (`--sse`))";
    assert!(said[0].lines().any(|line| line == reason), "{}", said[0]);
    assert!(said[2].contains("(`--http`)") && !said[1].contains("skipped, as"), "{}", said[2]);
    // Nothing was played.
    assert_eq!(outputs[3].status.code(), Some(2), "{}", said[3]);
    assert!(text(&outputs[3].stderr).contains("no URL of its transport was given (`--sse`)"));
}

/// Asked to end, it answers what was asked for, lets nobody in any more, and ends well.
#[cfg(unix)]
#[test]
fn a_signal_ends_the_fixture_in_order() {
    use std::io::{Read, Write};

    use rustix::process::{Pid, Signal, kill_process};

    for (runtime, signal) in
        [("tokio", Signal::TERM), ("smol", Signal::TERM), ("tokio", Signal::INT), ("smol", Signal::INT)]
    {
        let mut fixture = Fixture::start_on(runtime, &[]);
        let address = fixture.1.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
        let call = |name: &str, arguments: &str| {
            let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments},"_meta":{{{meta}}}}}}}"#
            );
            let mut peer = std::net::TcpStream::connect(&address).unwrap();
            let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n";
            write!(peer, "{head}Mcp-Name: {name}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
            peer
        };
        let told = |mut peer: std::net::TcpStream| {
            let mut answer = String::new();
            peer.read_to_string(&mut answer).unwrap();
            answer
        };
        let working = call("slow", r#"{"ms":1000}"#);
        // It runs once it is counted.
        while !told(call("counter", "{}")).contains(r#""ran":1"#) {}
        kill_process(Pid::from_child(&fixture.0), signal).unwrap();
        let answer = told(working);
        assert!(answer.contains("Waited 1000 ms"), "{runtime}: {answer}");
        assert!(std::net::TcpStream::connect(&address).is_err());
        assert_eq!(fixture.0.wait().unwrap().code(), Some(0), "{runtime}");
    }
}
