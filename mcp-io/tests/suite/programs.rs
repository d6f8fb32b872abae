//! Programs with the protocol on their standard streams.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{call, echo, text};
use crate::rt;

/// The fixture beside this test. `cargo test` builds both; with `--test adapter` it builds the test only, and
/// an old fixture stays as it is.
pub(super) fn program(name: &str) -> Command {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples");
    path.push(format!("{}{name}", rt::PROGRAMS));
    Command::new(path)
}

fn start(stdin: impl Into<Stdio>, stdout: impl Into<Stdio>) -> Child {
    program("fixture").stdin(stdin).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap()
}

/// How it ended. One that does not is killed, for nothing would tell.
fn status_of(mut child: Child) -> ExitStatus {
    for _ in 0..60_000 {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap()
}

fn print(id: u64) -> String {
    call(id, "print", &json!({ "text": format!("no. {id}") }))
}

/// All of standard output and of standard error, and how it ended.
fn finish(mut child: Child, stdout: impl Read) -> (Vec<String>, String, ExitStatus) {
    let lines = BufReader::new(stdout).lines().map(Result::unwrap).collect();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    (lines, errors, child.wait().unwrap())
}

/// S-STDIO-01: what handlers and their children print goes to standard error, while the server runs and no
/// longer.
fn assert_prints_are_kept_apart((lines, errors, status): (Vec<String>, String, ExitStatus)) {
    let (last, messages) = lines.split_last().unwrap();
    let mut answers: Vec<_> = messages
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|answer| (answer["id"].as_u64().unwrap(), text(&answer)))
        .collect();
    answers.sort();
    assert_eq!(answers, [(1, "one".into()), (2, "printed".into()), (3, "printed".into())]);
    for id in 2..=3 {
        for printed in ["printed: no. ", "printed without an end: no. ", "child: no. "] {
            assert!(errors.contains(&format!("{printed}{id}")), "{errors}");
        }
    }
    assert_eq!(errors.matches("child read all").count(), 2, "{errors}");
    assert_eq!(last, "served");
    assert!(status.success(), "{status}");
}

#[test]
fn pipes() {
    let mut child = start(Stdio::piped(), Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all((echo(1, "one") + &print(2) + print(3).trim_end()).as_bytes()).unwrap();
    drop(stdin);
    let stdout = child.stdout.take().unwrap();
    assert_prints_are_kept_apart(finish(child, stdout));
}

/// Node starts its children on socket pairs.
#[test]
fn sockets() {
    let ((input, theirs), (output, their_output)) =
        (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
    let child = start(OwnedFd::from(theirs), OwnedFd::from(their_output));
    (&input).write_all((echo(1, "one") + &print(2) + print(3).trim_end()).as_bytes()).unwrap();
    input.shutdown(Shutdown::Write).unwrap();
    assert_prints_are_kept_apart(finish(child, output));
}

#[test]
fn one_socket_for_both_directions() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let child = start(OwnedFd::from(theirs.try_clone().unwrap()), OwnedFd::from(theirs));
    (&ours).write_all((echo(1, "one") + &print(2) + print(3).trim_end()).as_bytes()).unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    assert_prints_are_kept_apart(finish(child, ours));
}

/// Neither end of a file can be waited for.
#[test]
fn files() {
    let folder = std::env::temp_dir();
    let [input, output] =
        ["in", "out"].map(|name| folder.join(format!("{}files-{}-{name}", rt::PROGRAMS, std::process::id())));
    std::fs::write(&input, echo(1, "one") + &print(2) + print(3).trim_end()).unwrap();
    let mut child = start(File::open(&input).unwrap(), File::create(&output).unwrap());
    child.wait().unwrap();
    let all = finish(child, File::open(&output).unwrap());
    let _ = (std::fs::remove_file(&input), std::fs::remove_file(&output));
    assert_prints_are_kept_apart(all);
}

/// What the program had printed and not passed on goes to standard error when the server begins, not later.
#[test]
fn what_was_printed_before_goes_out_at_once() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let mut command = program("fixture");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(OwnedFd::from(theirs));
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut printed = [0; 6];
    (&ours).read_exact(&mut printed).unwrap();
    assert_eq!(&printed, b"before");
    drop(child.stdin.take());
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!(output, "served\n");
    let mut rest = Vec::new();
    (&ours).read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
    assert!(child.wait().unwrap().success());
}

/// `2>&1`: then there is no place for what is printed.
#[test]
fn standard_error_that_is_the_protocol_gets_nothing() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let [stdin, stdout, stderr] = [(); 3].map(|()| OwnedFd::from(theirs.try_clone().unwrap()));
    drop(theirs);
    let mut child = program("fixture").stdin(stdin).stdout(stdout).stderr(stderr).spawn().unwrap();
    (&ours).write_all((print(1) + &echo(2, "two")).as_bytes()).unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    let lines: Vec<_> = BufReader::new(ours).lines().map(Result::unwrap).collect();
    assert_eq!(lines.last().unwrap(), "served");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(child.wait().unwrap().success());
}

/// Trap 13: a process that shares the streams notices nothing.
#[test]
fn the_mode_of_shared_streams_stays_as_it_was() {
    let (their_input, mut input) = std::io::pipe().unwrap();
    let (output, their_output) = std::io::pipe().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let streams: [[OwnedFd; 2]; 2] =
        [[their_input.into(), their_output.into()], [theirs.try_clone().unwrap().into(), theirs.into()]];
    let mut output = BufReader::new(output);
    let mut received = BufReader::new(ours.try_clone().unwrap());
    for (pipes, [stdin, stdout]) in [true, false].into_iter().zip(streams) {
        let copies = [stdin.try_clone().unwrap(), stdout.try_clone().unwrap()];
        let mut child = start(stdin, stdout);
        let mut line = String::new();
        if pipes {
            input.write_all(echo(1, "one").as_bytes()).unwrap();
            output.read_line(&mut line).unwrap();
        } else {
            (&ours).write_all(echo(1, "one").as_bytes()).unwrap();
            received.read_line(&mut line).unwrap();
        }
        assert!(line.contains("one"), "{line}");
        for fd in &copies {
            let mode = rustix::fs::fcntl_getfl(fd.as_fd()).unwrap();
            assert!(!mode.contains(rustix::fs::OFlags::NONBLOCK), "{mode:?}");
        }
        // It waits for input: only its end ends it.
        assert!(child.try_wait().unwrap().is_none());
        if pipes {
            input = std::io::pipe().unwrap().1;
        } else {
            ours.shutdown(Shutdown::Write).unwrap();
        }
        drop(copies);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn the_standard_streams_have_one_owner_at_a_time() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut taken = program("fixture");
    taken.arg("taken").stdin(OwnedFd::from(theirs.try_clone().unwrap())).stdout(OwnedFd::from(theirs));
    let child = taken.stderr(Stdio::piped()).spawn().unwrap();
    // It holds their end.
    drop(taken);
    (&ours).write_all((echo(1, "one") + &print(2) + print(3).trim_end()).as_bytes()).unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    assert_prints_are_kept_apart(finish(child, ours));
}

/// A failure to take them leaves them for the next who tries.
#[test]
fn the_standard_streams_are_free_after_a_failure() {
    let fixture = program("fixture").get_program().to_owned();
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 40; exec \"$0\" full"]).arg(fixture);
    let mut child =
        limited.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all((echo(1, "one") + &print(2) + print(3).trim_end()).as_bytes()).unwrap();
    drop(stdin);
    let stdout = child.stdout.take().unwrap();
    assert_prints_are_kept_apart(finish(child, stdout));
}

/// Z02: the client's end of standard output is closed first, as when the client is killed.
#[test]
fn a_closed_standard_output_ends_the_program_in_order() {
    let mut child = start(Stdio::piped(), Stdio::piped());
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(echo(1, "one").as_bytes()).unwrap();
    let status = child.wait().unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(status.success(), "{status} {errors}");
    drop(stdin);
}

/// Z01: the client closes standard input, keeps standard output open and does not read it.
#[test]
fn a_client_that_does_not_read_cannot_keep_the_program() {
    let mut requests: String = (1..=40).map(|id| call(id, "blob", &json!({ "size": 100_000 }))).collect();
    requests += &echo(41, &"x".repeat(100_000));
    let hasty = |stdin: Stdio, stdout: Stdio| {
        let mut hasty = program("fixture");
        hasty.arg("hasty").stdin(stdin).stdout(stdout).stderr(Stdio::null()).spawn().unwrap()
    };
    // The writers are threads, for a program that reads too little would stop them.
    let mut child = hasty(Stdio::piped(), Stdio::piped());
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take());
    let all = requests.clone();
    let writer = std::thread::spawn(move || input.write_all(all.as_bytes()));
    assert!(status_of(child).success());
    writer.join().unwrap().unwrap();
    drop(output);

    let ((mut input, theirs), (output, their_output)) =
        (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
    let child = hasty(OwnedFd::from(theirs).into(), OwnedFd::from(their_output).into());
    let writer = std::thread::spawn(move || input.write_all(requests.as_bytes()));
    assert!(status_of(child).success());
    writer.join().unwrap().unwrap();
    drop(output);
}

/// Much more than the pipes hold, both ways at once.
#[test]
fn a_flood_passes_whole() {
    const COUNT: u64 = 5000;
    let mut child = start(Stdio::piped(), Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for id in 1..=COUNT {
            stdin.write_all(echo(id, &"flood ".repeat(50)).as_bytes()).unwrap();
        }
    });
    let stdout = child.stdout.take().unwrap();
    let (lines, _, status) = finish(child, stdout);
    writer.join().unwrap();
    assert_eq!(lines.len() as u64, COUNT + 1);
    for (id, line) in (1..=COUNT).zip(&lines) {
        assert_eq!(serde_json::from_str::<Value>(line).unwrap()["id"], id);
    }
    assert!(status.success(), "{status}");
}
