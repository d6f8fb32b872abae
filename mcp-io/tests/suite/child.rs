//! Servers that are children: their streams, and that nothing is left of them.

use std::future::{Future, poll_fn};
use std::io;
use std::path::Path;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use mcp_io::Io;
use mcp_io::client::{Child, Exit, Process, Stderr};

use super::client::{Client, echo, text};
use super::programs::program;
use crate::rt;

type Running = Process<rt::Runtime>;

/// What a child does that ignores what it is told, and so does what it has started. It says the number of that.
const STUBBORN: &str = "trap '' TERM; sleep 600 & echo $!; while :; do wait; done";

fn child(program: &str) -> Child<rt::Runtime> {
    Child::new(rt::RUNTIME, program)
}

fn shell(script: &str) -> Child<rt::Runtime> {
    child("sh").args(["-c", script])
}

fn hasty(child: Child<rt::Runtime>) -> Child<rt::Runtime> {
    child.shutdown_times(Duration::from_millis(50), Duration::from_millis(50))
}

/// What comes until the end, or until so many lines are there.
async fn lines(process: &mut Running, most: usize) -> Vec<String> {
    let mut text = Vec::new();
    loop {
        let mut buf = [0; 1024];
        let got = poll_fn(|cx| process.poll_read(cx, &mut buf)).await.unwrap();
        text.extend_from_slice(&buf[..got]);
        if got == 0 || text.iter().filter(|&&byte| byte == b'\n').count() >= most {
            return String::from_utf8(text).unwrap().lines().map(Into::into).collect();
        }
    }
}

async fn number(process: &mut Running) -> u32 {
    lines(process, 1).await[0].parse().unwrap()
}

/// The letter that stands for the state of a process; `None` if there is no such process.
fn state(id: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// A child of ours is away once its status is taken; what it has started, once it does not run.
fn is_away(ours: u32, its: u32) -> bool {
    state(ours).is_none() && matches!(state(its), None | Some('Z' | 'X'))
}

fn code(exit: &Exit) -> Option<i32> {
    exit.status.unwrap().code()
}

fn signal(exit: &Exit) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&exit.status.unwrap())
}

#[test]
fn a_child_is_spoken_with_and_ends_with_its_input() {
    rt::run(async {
        let fixture = program("fixture").get_program().to_owned();
        let process = Child::new(rt::RUNTIME, fixture).spawn().unwrap();
        let id = process.id().unwrap();
        let mut client = Client::new(process);
        client.send(echo(1, "one")).await;
        assert_eq!(text(&client.receive().await.unwrap()), "one");
        let mut process = client.into_io();
        let exit = process.shutdown().await;
        assert_eq!(code(&exit), Some(0), "{exit}");
        assert!(exit.last_words.starts_with("before"), "{exit}");
        assert_eq!((state(id), process.id()), (None, None));
        assert_eq!(code(&process.shutdown().await), Some(0));
        let written = poll_fn(|cx| process.poll_write(cx, b"x")).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    });
}

/// Z03: the end of the input comes first, and a child that goes by it gets no signal.
#[test]
fn the_steps_of_the_shutdown_come_one_by_one() {
    rt::run(async {
        let patient = |script: &str| shell(script).shutdown_times(Duration::from_secs(50), Duration::ZERO);
        let goes = patient("trap 'echo told >&2' TERM; cat >&2; sleep 0.1; echo goes >&2; exit 3");
        let exit = goes.spawn().unwrap().shutdown().await;
        assert_eq!((code(&exit), &*exit.last_words), (Some(3), "goes"));

        let told =
            shell("trap 'echo told >&2; exit 4' TERM; cat; echo end >&2; while :; do sleep 0.01; done");
        let told = told.shutdown_times(Duration::from_millis(300), Duration::from_secs(50));
        let exit = told.spawn().unwrap().shutdown().await;
        // The shell says that its `sleep` was told, too.
        assert!(exit.last_words.starts_with("end\n") && exit.last_words.ends_with("told"), "{exit}");
        assert_eq!(code(&exit), Some(4));

        let mut stubborn = hasty(shell(STUBBORN)).spawn().unwrap();
        let (id, its) = (stubborn.id().unwrap(), number(&mut stubborn).await);
        assert!(!is_away(id, its));
        let exit = stubborn.shutdown().await;
        assert_eq!(signal(&exit), Some(9));
        assert_eq!(exit.to_string(), "was ended by signal 9");
        assert_eq!(state(id), None);
        rt::eventually(|| is_away(id, its)).await;
    });
}

/// Z03: nothing is left of a child that is dropped, wherever that happens.
#[test]
fn a_child_that_is_dropped_is_gone() {
    let numbers = rt::run(async {
        let mut first = hasty(shell(STUBBORN)).spawn().unwrap();
        let numbers = (first.id().unwrap(), number(&mut first).await);
        drop(first);
        rt::eventually(|| is_away(numbers.0, numbers.1)).await;

        // In the middle of the shutdown.
        let mut second = shell(STUBBORN).shutdown_times(Duration::ZERO, Duration::from_millis(50));
        second = second.stderr(Stderr::Null);
        let mut second = second.spawn().unwrap();
        let numbers = (second.id().unwrap(), number(&mut second).await);
        {
            let mut shutdown = pin!(second.shutdown());
            assert!(poll_fn(|cx| Poll::Ready(shutdown.as_mut().poll(cx).is_pending())).await);
        }
        drop(second);
        rt::eventually(|| is_away(numbers.0, numbers.1)).await;

        let mut third = hasty(shell(STUBBORN)).spawn().unwrap();
        let numbers = (third.id().unwrap(), number(&mut third).await);
        // Where no runtime is.
        std::thread::spawn(|| drop(third)).join().unwrap();
        numbers
    });
    rt::run(rt::eventually(|| is_away(numbers.0, numbers.1)));
}

/// Z03: what it has started ends with it, and does not keep the stream open.
#[test]
fn a_child_that_ends_by_itself_leaves_nothing() {
    rt::run(async {
        let mut process =
            shell("sleep 600 & echo $!; echo 'Cannot open: no such thing' >&2; exit 7").spawn().unwrap();
        let id = process.id().unwrap();
        let all = lines(&mut process, usize::MAX).await;
        poll_fn(|cx| process.poll_end(cx)).await;
        let exit = process.shutdown().await;
        assert_eq!(exit.to_string(), "exited with status 7; its last words: Cannot open: no such thing");
        rt::eventually(|| is_away(id, all[0].parse().unwrap())).await;
    });
}

/// What a child wrote before it ended comes whole, also much of it, and so do the last of its words.
#[test]
fn nothing_that_was_written_is_lost() {
    rt::run(async {
        for _ in 0..20 {
            let script = "seq 1 20000; seq 1 20000 >&2; echo the end >&2";
            let mut process = shell(script).spawn().unwrap();
            let all = lines(&mut process, usize::MAX).await;
            assert_eq!((all.len(), all.last().map(|last| &**last)), (20_000, Some("20000")));
            let exit = process.shutdown().await;
            assert!(exit.last_words.ends_with("\n20000\nthe end"), "{exit}");
            assert!(exit.last_words.len() <= 8 << 10);
        }
    });
}

/// What a child writes to its standard error goes where it is said, and is its last words only if it was kept.
#[test]
fn standard_error_goes_where_it_is_said() {
    const INNER: &str = "MCP_SUITE_STDERR";
    let ways = [("inherit", Stderr::Inherit), ("null", Stderr::Null), ("capture", Stderr::Capture)];
    if let Ok(way) = std::env::var(INNER) {
        // Within the process that is looked at from outside.
        let (_, stderr) = ways.into_iter().find(|(name, _)| *name == way).unwrap();
        return rt::run(async {
            let exit = shell("echo said by the child >&2").stderr(stderr).spawn().unwrap().shutdown().await;
            let kept = if stderr == Stderr::Capture { "said by the child" } else { "" };
            assert_eq!(exit.last_words.trim(), kept, "{way}");
        });
    }
    let this = std::thread::current().name().unwrap().to_owned();
    for (way, stderr) in ways {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let inner = again.args(["--exact", &this, "--nocapture"]).env(INNER, way).output().unwrap();
        let errors = String::from_utf8_lossy(&inner.stderr);
        assert!(inner.status.success(), "{way}: {errors}");
        assert!(String::from_utf8_lossy(&inner.stdout).contains("1 passed"), "{way}");
        assert_eq!(errors.contains("said by the child"), stderr == Stderr::Inherit, "{way}: {errors}");
    }
}

#[test]
fn a_child_gets_the_environment_and_the_folder_that_are_said() {
    rt::run(async {
        let print = "echo $(pwd) ${CARGO_PKG_NAME-none} ${PATH:+path} ${MORE-none}";
        let said = async |child: Child<rt::Runtime>| lines(&mut child.spawn().unwrap(), 1).await[0].clone();
        let here = std::env::current_dir().unwrap().display().to_string();
        assert_eq!(said(shell(print)).await, format!("{here} none path none"));
        let name = std::env::var("CARGO_PKG_NAME").unwrap();
        let all = shell(print).env_all().env("MORE", "more").current_dir("/");
        assert_eq!(said(all).await, format!("/ {name} path more"));
        let bare = child("/bin/sh").args(["-c", print]).env("GONE", "x").env_clear().envs([("MORE", "m")]);
        assert!(said(bare).await.ends_with(" none path m"));
        assert!(said(shell(print).env_remove("PATH").env("MORE", "m")).await.ends_with("m"));
    });
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    rt::run(async {
        let error = child("/no/such/program").spawn().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("/no/such/program cannot be started: "), "{error}");
        let error = child("sh").current_dir("/no/such/folder").spawn().unwrap_err();
        assert_eq!(error.to_string(), "sh cannot be started: /no/such/folder is not a folder");
        assert!(!Path::new("/no/such/folder").exists());
    });
}
