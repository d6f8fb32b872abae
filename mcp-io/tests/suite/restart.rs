//! Children that end while their client is in use.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use mcp_io::client::{Child, Connect, ConnectError, Exit, Host, ServerState};
use mcp_proto::client::{CallError, Change, Mode};
use mcp_proto::model::{LoggingLevel, SubscriptionFilter};
use mcp_proto::service::client::{ClientBuilder, Heard};
use serde_json::json;

use super::by_hand::ByHand;
use super::connect::{Note, client, echo};
use super::host::{ready, state};
use super::programs::program;
use crate::rt;

/// The fixture, which can be killed, and how often it was started.
struct Rig {
    clock: ByHand,
    note: Note,
    exits: Arc<Mutex<Vec<Exit>>>,
}

impl Rig {
    fn new(name: &str) -> Self {
        Self { clock: ByHand::default(), note: Note::new(name), exits: Arc::default() }
    }

    /// It does not start a second time if it is mortal.
    fn child(&self, mortal: bool) -> Child<ByHand> {
        self.child_of("sh", mortal)
    }

    fn child_of(&self, shell: impl AsRef<std::ffi::OsStr>, mortal: bool) -> Child<ByHand> {
        let script = r#"if [ "$MORTAL" = true ] && [ -e "$NOTE" ]; then END=1; fi
            echo $$ >>"$NOTE"
            [ "$END" ] && exit 1
            exec "$FIXTURE""#;
        let seen = Arc::clone(&self.exits);
        Child::new(self.clock.clone(), shell)
            .args(["-c", script])
            .env("FIXTURE", program("fixture").get_program())
            .env("NOTE", &self.note.0)
            .env("MORTAL", mortal.to_string())
            .on_exit(move |exit| seen.lock().unwrap().push(exit.clone()))
    }

    fn starts(&self) -> Vec<String> {
        self.note.read().unwrap_or_default().lines().map(Into::into).collect()
    }

    fn kill(&self) {
        let starts = self.starts();
        let id = starts.last().unwrap();
        assert!(std::process::Command::new("kill").args(["-9", id]).status().unwrap().success());
    }

    fn exits(&self) -> usize {
        self.exits.lock().unwrap().len()
    }

    /// The child has ended so many times, and is left alone for a while now.
    async fn pauses(&self, exits: usize, pause: u64) {
        let pause = Some(Duration::from_millis(pause));
        rt::eventually(|| self.exits() == exits && self.clock.waits() == pause).await;
    }

    /// Nothing is left: no task, no child, no number of one that nobody has asked for its status.
    async fn ended_after(self, exits: usize) {
        rt::eventually(|| Arc::strong_count(&self.exits) == 1).await;
        assert_eq!((self.exits(), self.starts().len()), (exits, exits));
        for id in self.starts() {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            assert!(!status.contains(&format!("\nPPid:\t{}\n", std::process::id())), "{status}");
        }
    }
}

/// Polls it once: a call is made with that.
async fn begin<F: Future + Unpin>(future: &mut F) {
    poll_fn(|cx| {
        assert!(pin!(&mut *future).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

fn modern() -> ClientBuilder {
    client().mode(Mode::Modern)
}

fn of_tools() -> SubscriptionFilter {
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = true;
    filter
}

/// C-STDIO-07, C-SUBS-02: it is started again. What was sent has failed, and is not sent again; what it speaks is not
/// asked again; subscriptions go on.
#[test]
fn a_child_that_ends_while_it_is_used_is_started_again() {
    rt::run(async {
        for mode in [Mode::Modern, Mode::Legacy, Mode::Auto] {
            let rig = Rig::new("killed");
            let client = client().mode(mode).connect(rig.child(false)).await.unwrap();
            let (server, verdict) = (client.server(), client.verdict());
            let mut changes = client.listen(of_tools()).await.unwrap();
            let mut stuck = client.call_tool("stuck", ());
            begin(&mut stuck).await;
            assert_eq!(echo(&client, "on").await, "on");
            rig.kill();
            assert!(matches!(stuck.await, Err(CallError::Closed)), "{mode:?}");
            assert_eq!(echo(&client, "again").await, "again");
            assert_eq!((rig.exits(), rig.starts().len()), (1, 2));
            assert_eq!((client.server(), client.verdict()), (server, verdict));
            assert_eq!(changes.next().await.unwrap().unwrap(), Heard::Gap);
            client.call_tool("change", ()).await.unwrap();
            assert_eq!(changes.next().await.unwrap().unwrap(), Heard::Changed(Change::Tools));
            client.close().await;
            assert!(matches!(changes.next().await, Some(Err(CallError::Closed))));
            drop((client, changes));
            rig.ended_after(2).await;
        }
    });
}

/// What a legacy server is to log it is told again.
#[test]
fn the_level_outlives_the_child() {
    rt::run(async {
        for mode in [Mode::Legacy, Mode::Modern] {
            let rig = Rig::new("level");
            let logs = Arc::new(Mutex::new(Vec::new()));
            let heard = Arc::clone(&logs);
            let hears = client().mode(mode).on_log(move |message| {
                heard.lock().unwrap().push(message.data.get().to_owned());
            });
            let client = hears.connect(rig.child(false)).await.unwrap();
            client.set_level(LoggingLevel::Error).await.unwrap();
            for starts in 1..=2 {
                client.call_tool("log", ()).await.unwrap();
                assert_eq!(std::mem::take(&mut *logs.lock().unwrap()), ["\"heavy\""], "{mode:?} {starts}");
                if starts == 1 {
                    rig.kill();
                    rt::eventually(|| rig.starts().len() == 2).await;
                }
            }
            client.close().await;
            drop(client);
            rig.ended_after(2).await;
        }
    });
}

/// Z03: a server that is being started again is not ready, and calls of its tools wait.
#[test]
fn a_host_tells_that_a_child_is_started_again() {
    rt::run(async {
        let rig = Rig::new("host");
        let host = Host::new(rig.clock.clone(), modern());
        let mut events = host.events();
        let now = || host.servers()[0].state.clone();
        host.add("child", rig.child(false));
        host.ready().await;
        assert!(matches!(now(), ServerState::Ready));
        ready(&mut events, "child").await;
        rig.kill();
        assert!(matches!(state(&mut events, "child").await, ServerState::Restarting));
        assert!(matches!(state(&mut events, "child").await, ServerState::Ready));
        rt::eventually(|| rig.starts().len() == 2).await;
        rig.kill();
        assert!(matches!(state(&mut events, "child").await, ServerState::Restarting));
        rig.pauses(2, 100).await;
        assert!(matches!(now(), ServerState::Restarting));
        let mut call = host.call_tool("child__echo", json!({ "text": "x" })).unwrap();
        begin(&mut call).await;
        rig.clock.pass(Duration::from_millis(100));
        assert_eq!(call.await.unwrap().content[0].as_text(), Some("x"));
        assert!(matches!(state(&mut events, "child").await, ServerState::Ready));
        host.close().await;
        drop((host, events));
        rig.ended_after(3).await;
    });
}

/// A subscription that is asked for while there is no server is opened on the next.
#[test]
fn a_subscription_waits_for_the_next_start() {
    rt::run(async {
        let rig = Rig::new("waits");
        let client = modern().connect(rig.child(false)).await.unwrap();
        rig.kill();
        rt::eventually(|| rig.starts().len() == 2).await;
        rig.kill();
        rig.pauses(2, 100).await;
        let mut listen = client.listen(of_tools());
        begin(&mut listen).await;
        rig.clock.pass(Duration::from_millis(100));
        let mut changes = listen.await.unwrap();
        assert!(changes.granted().tools_list_changed);
        client.call_tool("change", ()).await.unwrap();
        assert_eq!(changes.next().await.unwrap().unwrap(), Heard::Changed(Change::Tools));
        client.close().await;
        drop((client, changes));
        rig.ended_after(3).await;
    });
}

#[test]
fn a_child_that_ends_is_left_alone_if_that_is_wanted() {
    rt::run(async {
        let rig = Rig::new("left");
        let client = client().connect(rig.child(false).restart(false)).await.unwrap();
        rig.kill();
        client.closed().await;
        assert!(matches!(client.call_tool("echo", ()).await, Err(CallError::Closed)));
        rig.ended_after(1).await;
    });
}

/// Six ends in a row are enough. What waits has its end then, or when its time is over.
#[test]
fn a_child_that_keeps_ending_is_given_up() {
    rt::run(async {
        let rig = Rig::new("given-up");
        let client = client().connect(rig.child(true)).await.unwrap();
        rig.kill();
        for (exits, pause) in [(2, 100), (3, 200), (4, 400)] {
            rig.pauses(exits, pause).await;
            rig.clock.pass(Duration::from_millis(pause));
        }
        rig.pauses(5, 800).await;
        let mut hasty = client.call_tool("echo", json!({ "text": "" })).timeout(Duration::from_millis(1));
        begin(&mut hasty).await;
        rig.pauses(5, 1).await;
        rig.clock.pass(Duration::from_millis(1));
        assert!(matches!(hasty.await, Err(CallError::TimedOut)));
        let mut waits = client.call_tool("echo", json!({ "text": "" }));
        begin(&mut waits).await;
        rig.pauses(5, 799).await;
        rig.clock.pass(Duration::from_millis(799));
        assert!(matches!(waits.await, Err(CallError::Closed)));
        client.closed().await;
        assert!(matches!(client.call_tool("echo", ()).await, Err(CallError::Closed)));
        rig.ended_after(6).await;
    });
}

/// A child that ends at the first question, and again at the greeting, was never of use. Nobody may be left to hear.
#[test]
fn a_child_that_cannot_be_used_is_started_twice_at_most() {
    rt::run(async {
        for dropped in [false, true] {
            let rig = Rig::new(if dropped { "useless-dropped" } else { "useless" });
            std::fs::write(&rig.note.0, "").unwrap();
            let mut connecting = Box::pin(client().connect(rig.child(true)));
            if dropped {
                begin(&mut connecting).await;
                drop(connecting);
                let exits = Arc::clone(&rig.exits);
                rt::eventually(|| Arc::strong_count(&exits) == 2).await;
                let ended = exits.lock().unwrap().len();
                assert!((1..=2).contains(&ended));
                drop(exits);
                rig.ended_after(ended).await;
            } else {
                let failed = connecting.await.unwrap_err();
                assert!(matches!(failed, ConnectError::Ended(_)), "{failed:?}");
                rig.ended_after(2).await;
            }
        }
    });
}

/// Nobody wants the child any more while it is left alone: no time has to pass.
#[test]
fn a_client_is_closed_while_its_child_is_left_alone() {
    rt::run(async {
        for dropped in [false, true] {
            let rig = Rig::new(if dropped { "dropped-apart" } else { "closed-apart" });
            let client = client().connect(rig.child(true)).await.unwrap();
            rig.kill();
            rig.pauses(2, 100).await;
            let mut waits = client.call_tool("echo", json!({ "text": "" }));
            begin(&mut waits).await;
            if dropped {
                drop((waits, client));
            } else {
                client.close().await;
                assert!(matches!(waits.await, Err(CallError::Closed)));
            }
            rig.ended_after(2).await;
        }
    });
}

/// A child that has run for a while has not failed to start. One that cannot be started may be being replaced.
#[test]
fn ends_are_counted_only_if_they_come_soon() {
    rt::run(async {
        let rig = Rig::new("seldom");
        let program = Note::new("program");
        let place = || std::os::unix::fs::symlink("/bin/sh", &program.0).unwrap();
        place();
        let client = client().connect(rig.child_of(&program.0, false)).await.unwrap();
        for n in 0..8 {
            assert_eq!(echo(&client, "on").await, "on");
            rig.clock.pass(Duration::from_secs(10));
            rig.kill();
            rt::eventually(|| rig.exits() == n + 1).await;
        }
        assert_eq!(echo(&client, "on").await, "on");
        std::fs::remove_file(&program.0).unwrap();
        rig.kill();
        rig.pauses(9, 100).await;
        rig.clock.pass(Duration::from_millis(100));
        rig.pauses(9, 200).await;
        place();
        rig.clock.pass(Duration::from_millis(200));
        assert_eq!(echo(&client, "replaced").await, "replaced");
        client.close().await;
        drop(client);
        rig.ended_after(10).await;
    });
}
