//! Clients of servers in memory, in children and at the other end of streams.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_io::client::{Child, Connect, ConnectError, Exit, Memory};
use mcp_io::{ByteStream, Serve};
use mcp_proto::client::{CallError, Mode};
use mcp_proto::model::ProtocolVersion;
use mcp_proto::service::client::{Client, ClientBuilder};
use serde_json::json;

use super::programs::program;
use super::service::{Stage, server};
use crate::rt;

pub(crate) fn client() -> ClientBuilder {
    Client::new("suite", "1")
}

pub(crate) async fn echo(client: &Client, text: &str) -> String {
    let result = client.call_tool("echo", json!({ "text": text })).await.unwrap();
    result.content[0].as_text().unwrap().to_owned()
}

pub(super) fn fixture() -> Child<rt::Runtime> {
    Child::new(rt::RUNTIME, program("fixture").get_program())
}

pub(super) fn shell(script: &str) -> Child<rt::Runtime> {
    Child::new(rt::RUNTIME, "sh").args(["-c", script])
}

pub(super) fn is_alive(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    !matches!(stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()), None | Some('Z' | 'X'))
}

/// A file that a script writes its number to.
pub(super) struct Note(pub(super) std::path::PathBuf);

impl Note {
    pub(super) fn new(name: &str) -> Self {
        let name = format!("{}connect-{name}-{}", rt::PROGRAMS, std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    pub(super) fn read(&self) -> Option<String> {
        std::fs::read_to_string(&self.0).ok().filter(|text| text.ends_with('\n'))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_server_in_memory_is_called_in_both_eras() {
    rt::run(async {
        for mode in [Mode::Auto, Mode::Legacy] {
            let memory = Memory::new(rt::RUNTIME, server(&Stage::default()));
            let client = client().mode(mode).connect(memory).await.unwrap();
            assert_eq!(client.server().version.is_modern(), mode == Mode::Auto);
            assert_eq!(echo(&client, "hello").await, "hello");
            client.close().await;
            assert!(matches!(client.call_tool("echo", ()).await, Err(CallError::Closed)));
        }
    });
}

#[test]
fn a_stream_is_called_and_its_end_fails_what_is_open() {
    rt::run(async {
        let (theirs, ours) = mcp_io::pair(512);
        let stage = Stage::default();
        let stop = stage.clone();
        let transport = ByteStream::new(rt::RUNTIME, theirs).drain(Duration::ZERO);
        let serving = server(&stage).serve_until(transport, async move { stop.opened("stop").await });
        let serving = rt::spawn(serving);
        let client = client().connect(ByteStream::new(rt::RUNTIME, ours)).await.unwrap();
        // More than the pipe holds, both ways at once.
        let texts: Vec<_> = (0..50).map(|n| format!("{n} ").repeat(500)).collect();
        let calls = texts.iter().map(|text| {
            let (client, text) = (client.clone(), text.clone());
            rt::spawn(async move { assert_eq!(echo(&client, &text).await, text) })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await;
        }
        let stuck = client.clone();
        let stuck = rt::spawn(async move { stuck.call_tool("stuck", ()).await });
        rt::eventually(|| stage.stuck.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
        stage.open("stop");
        assert!(matches!(stuck.await, Err(CallError::Closed | CallError::Rpc(_))));
        client.closed().await;
        serving.await.unwrap();
    });
}

/// A call that is dropped is cancelled at the server.
#[test]
fn dropping_a_call_cancels_it() {
    rt::run(async {
        let stage = Stage::default();
        let client = client().connect(Memory::new(rt::RUNTIME, server(&stage))).await.unwrap();
        let stuck = || stage.stuck.load(std::sync::atomic::Ordering::SeqCst);
        let (calling, dropped) = (client.clone(), stage.clone());
        let calling = rt::spawn(async move {
            let mut call = std::pin::pin!(calling.call_tool("stuck", ()));
            let mut dropped = std::pin::pin!(dropped.opened("drop"));
            std::future::poll_fn(|cx| {
                assert!(call.as_mut().poll(cx).is_pending());
                dropped.as_mut().poll(cx)
            })
            .await;
        });
        rt::eventually(|| stuck() == 1).await;
        stage.open("drop");
        calling.await;
        rt::eventually(|| stuck() == 0).await;
        assert_eq!(echo(&client, "on").await, "on");
    });
}

#[test]
fn a_child_is_called_and_gone_once_the_client_is_closed() {
    rt::run(async {
        let exits = Arc::<Mutex<Vec<Exit>>>::default();
        let seen = Arc::clone(&exits);
        let child = fixture().on_exit(move |exit| seen.lock().unwrap().push(exit.clone()));
        let client = client().connect(child).await.unwrap();
        let calls = (0..1000).map(|n| {
            let client = client.clone();
            rt::spawn(async move { assert_eq!(echo(&client, &n.to_string()).await, n.to_string()) })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await;
        }
        client.close().await;
        let exits = exits.lock().unwrap();
        assert_eq!(exits.len(), 1);
        assert!(exits[0].status.unwrap().success(), "{}", exits[0]);
    });
}

/// Z03, Z02: whatever ends the connection, the children end with it.
#[test]
fn no_child_outlives_its_client() {
    rt::run(async {
        let stubborn = |note: &Note| {
            let script = "trap '' TERM; sleep 600 & echo $! > $NOTE; while :; do wait; done";
            let hasty = Duration::from_millis(50);
            shell(script).env("NOTE", &note.0).shutdown_times(hasty, hasty)
        };
        // Connecting takes too long.
        let note = Note::new("late");
        let hasty =
            client().probe_timeout(Duration::from_millis(20)).handshake_timeout(Duration::from_millis(20));
        let failed = hasty.connect(stubborn(&note)).await.unwrap_err();
        assert!(matches!(failed, ConnectError::Failed(CallError::TimedOut)), "{failed:?}");
        rt::eventually(|| note.read().is_some_and(|id| !is_alive(&id))).await;

        // Nobody waits for it any more.
        let note = Note::new("dropped");
        {
            let mut connecting = std::pin::pin!(client().connect(stubborn(&note)));
            let waker = std::task::Waker::noop();
            assert!(connecting.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
            rt::eventually(|| note.read().is_some_and(|id| is_alive(&id))).await;
        }
        rt::eventually(|| note.read().is_some_and(|id| !is_alive(&id))).await;
    });
}

#[test]
fn a_child_that_ends_at_once_is_told_with_its_last_words() {
    rt::run(async {
        let failed = client().connect(shell("echo 'No such file: config' >&2; exit 3")).await.unwrap_err();
        let said = "the server exited with status 3; its last words: No such file: config";
        assert_eq!(failed.to_string(), said);
        assert!(matches!(failed, ConnectError::Ended(_)));
        let failed = client().connect(Child::new(rt::RUNTIME, "/no/such/program")).await.unwrap_err();
        assert!(matches!(failed, ConnectError::Start(_)), "{failed:?}");
    });
}

/// A legacy server that ends when it is asked for what it does not know is started again.
#[test]
fn a_server_that_ends_at_the_first_question_is_started_again() {
    rt::run(async {
        let starts = Arc::<Mutex<Vec<Exit>>>::default();
        let seen = Arc::clone(&starts);
        // A shell looks at the first line, and serves only who greets as of old.
        let script = r#"read -r line; case $line in *server/discover*) exit 1;; esac; { printf '%s\n' "$line"; cat; } | "$FIXTURE""#;
        let child = shell(script).env("FIXTURE", program("fixture").get_program());
        let child = child.on_exit(move |exit| seen.lock().unwrap().push(exit.clone()));
        let client = client().connect(child).await.unwrap();
        assert_eq!(client.server().version, ProtocolVersion::V2025_11_25);
        assert_eq!(starts.lock().unwrap().len(), 1);
        assert_eq!(echo(&client, "again").await, "again");
        client.close().await;
        assert_eq!(starts.lock().unwrap().len(), 2);
    });
}

/// Each of them is an end in time, whatever the server says or does not.
#[test]
fn servers_that_make_no_sense_are_errors() {
    rt::run(async {
        let hasty =
            || client().probe_timeout(Duration::from_millis(50)).handshake_timeout(Duration::from_millis(50));
        for script in [
            "cat >/dev/null",
            "cat",
            "echo hello; cat >/dev/null",
            "exec >&-; cat",
            "exec <&-; sleep 600",
            "exec </dev/null >/dev/null; sleep 600",
            "yes",
            "yes '{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}'",
            "head -c 20000000 /dev/zero; cat",
            "cat /dev/zero",
        ] {
            let child = shell(script).shutdown_times(Duration::from_millis(20), Duration::from_millis(20));
            let failed = hasty().connect(child).await.unwrap_err();
            let expected = matches!(failed, ConnectError::Failed(_) | ConnectError::Ended(_));
            assert!(expected, "{script}: {failed:?}");
        }
    });
}
