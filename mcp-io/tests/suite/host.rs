//! Many servers in one host.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_io::client::{
    Connect, ConnectError, Happened, Host, HostEvent, HostEvents, Memory, Refused, ServerState, Servers,
    Target,
};
use mcp_io::{ByteStream, Io, MemoryStream, Runtime as _, Serve};
use mcp_proto::client::{CallError, Change, Mode};
use mcp_proto::model::LoggingLevel;
use mcp_proto::service::client::{Client, ClientBuilder};
use mcp_proto::service::{Ctx, NoArguments, Server, Service, ToolError};
use serde_json::json;

use super::by_hand::ByHand;
use super::connect::{Note, client, fixture, is_alive, shell};
use super::programs::program;
use super::service::{Stage, server};
use crate::rt;

fn host() -> Host<rt::Runtime> {
    Host::new(rt::RUNTIME, client())
}

fn memory() -> Memory<rt::Runtime> {
    Memory::new(rt::RUNTIME, server(&Stage::default()))
}

/// A server that is reached or is not, as the test wants it, and what it was asked.
#[derive(Clone)]
struct Moody {
    service: Service,
    stage: Stage,
    mood: Arc<Mutex<Mood>>,
}

#[derive(Default)]
struct Mood {
    /// Why it cannot be reached.
    refusal: Option<fn() -> ConnectError>,
    tries: usize,
    written: Vec<u8>,
}

impl Moody {
    fn new(server: Server) -> Self {
        Self { service: server.build().unwrap(), stage: Stage::default(), mood: Arc::default() }
    }

    fn refuse(&self, refusal: Option<fn() -> ConnectError>) {
        self.mood.lock().unwrap().refusal = refusal;
    }

    /// Hangs up on the client that was the first, the second, …
    fn hang_up(&self, on: usize) {
        self.stage.open(&format!("end {on}"));
    }

    fn tries(&self) -> usize {
        self.mood.lock().unwrap().tries
    }

    /// How often it was sent this method.
    fn asked(&self, method: &str) -> usize {
        let written = self.mood.lock().unwrap().written.clone();
        String::from_utf8(written).unwrap().matches(&format!("\"{method}\"")).count()
    }
}

impl Target for Moody {
    async fn connect(self, client: ClientBuilder) -> Result<Client, ConnectError> {
        let number = {
            let mut mood = self.mood.lock().unwrap();
            mood.tries += 1;
            if let Some(refusal) = mood.refusal {
                return Err(refusal());
            }
            mood.tries
        };
        let (theirs, ours) = mcp_io::pair(1 << 12);
        let Self { service, stage, mood } = self;
        rt::RUNTIME.spawn(async move {
            let end = async move { stage.opened(&format!("end {number}")).await };
            let stream = ByteStream::new(rt::RUNTIME, theirs).drain(Duration::ZERO);
            service.serve_until(stream, end).await.unwrap();
        });
        ByteStream::new(rt::RUNTIME, Tap { stream: ours, mood, ahead: true }).connect(client).await
    }
}

/// Notes what is written. Before the first answer a notification comes in that nobody has sent.
struct Tap {
    stream: MemoryStream,
    mood: Arc<Mutex<Mood>>,
    ahead: bool,
}

impl Io for Tap {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        const NOTE: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"com.example/hi\",\"params\":{\"a\":1}}\n";
        if std::mem::take(&mut self.ahead) {
            buf[..NOTE.len()].copy_from_slice(NOTE.as_bytes());
            return Poll::Ready(Ok(NOTE.len()));
        }
        self.stream.poll_read(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.stream.poll_write(cx, buf);
        if let Poll::Ready(Ok(written)) = written {
            self.mood.lock().unwrap().written.extend_from_slice(&buf[..written]);
        }
        written
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_close(cx)
    }
}

/// The next event of this server for which there is something to say.
async fn next<T>(events: &mut HostEvents, server: &str, what: impl Fn(Happened) -> Option<T>) -> T {
    loop {
        let event = events.next().await.expect("the host is there");
        if &*event.server == server
            && let Some(found) = what(event.what)
        {
            return found;
        }
    }
}

pub(super) async fn state(events: &mut HostEvents, server: &str) -> ServerState {
    next(events, server, |what| match what {
        Happened::State(state) => Some(state),
        _ => None,
    })
    .await
}

pub(super) async fn ready(events: &mut HostEvents, server: &str) {
    while !matches!(state(events, server).await, ServerState::Ready) {}
}

async fn changed(events: &mut HostEvents, server: &str) -> Change {
    next(events, server, |what| match what {
        Happened::Changed(change) => Some(change),
        _ => None,
    })
    .await
}

fn at_once(events: &mut HostEvents) -> Option<HostEvent> {
    match events.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(event) => event,
        Poll::Pending => None,
    }
}

#[test]
fn a_host_offers_the_tools_of_many_servers() {
    rt::run(async {
        let host = host();
        for name in ["my files", "my-files", "bare"] {
            host.add(name, memory());
        }
        host.add("bare", Memory::new(rt::RUNTIME, Server::new("bare", "1")));
        host.ready().await;
        let offer = host.tools().await;
        // That it has no tools is no failure.
        assert!(offer.failures.is_empty(), "{:?}", offer.failures);
        let names: HashSet<_> = offer.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names.len(), offer.tools.len());
        assert!(names.contains("my-files__echo") && names.contains("my-files-2__echo"));
        let result = host.call_tool("my-files-2__echo", json!({ "text": "x" })).unwrap().await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("x"));
        for name in ["other__echo", "echo"] {
            assert!(matches!(host.call_tool(name, ()), Err(Refused::Unknown(unknown)) if unknown == name));
        }
        let servers = host.servers();
        let aliases: Vec<_> = servers.iter().map(|served| &*served.alias).collect();
        assert_eq!(aliases, ["my-files", "my-files-2", "bare"]);
        assert_eq!(servers[0].server.as_ref().unwrap().identity.as_ref().unwrap().name, "fixture");
        host.close().await;
        assert!(host.servers().is_empty() && host.tools().await.tools.is_empty());
    });
}

/// A tool whose name cannot be offered is called by its own all the same.
#[test]
fn a_tool_is_called_by_its_own_name() {
    rt::run(async {
        let odd = "a.tool__of.odd.name";
        let server =
            Server::new("odd", "1").tool(odd, |_, _: NoArguments| async { Ok::<_, ToolError>("odd") });
        let host = host();
        host.add("odd", Memory::new(rt::RUNTIME, server));
        host.ready().await;
        let offered = host.tools().await.tools.remove(0);
        assert!(offered.name != format!("odd__{odd}") && offered.tool.name == odd);
        let result = host.call_tool(&offered.name, ()).unwrap().await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("odd"));
    });
}

/// One that does not answer, one that cannot be reached and one that ends are no harm to the others.
#[test]
fn a_server_that_fails_harms_no_other() {
    rt::run(async {
        let (host, note) = (host(), Note::new("silent"));
        let mut events = host.events();
        let silent = shell("echo $$ > $NOTE; cat >/dev/null").env("NOTE", &note.0);
        host.add_with("silent", client().probe_timeout(Duration::from_secs(1000)), silent);
        host.add("none", mcp_io::client::Child::new(rt::RUNTIME, "/no/such/program"));
        host.add("good", memory());
        let moody = Moody::new(server(&Stage::default()));
        host.add("moody", moody.clone());
        let mut why = None;
        let mut left = HashSet::from(["none", "good", "moody"]);
        while !left.is_empty() {
            let event = events.next().await.unwrap();
            match event.what {
                Happened::State(ServerState::Ready) => assert!(left.remove(&*event.server)),
                Happened::State(ServerState::Away { why: reason, again, .. }) => {
                    assert!(left.remove(&*event.server) && again);
                    why = reason;
                }
                _ => {}
            }
        }
        assert!(matches!(&*why.unwrap(), ConnectError::Start(_)));
        moody.hang_up(1);
        while !matches!(state(&mut events, "moody").await, ServerState::Away { why: None, .. }) {}
        let offer = host.tools().await;
        assert!(offer.tools.iter().any(|offered| offered.name == "good__echo"));
        let failures: Vec<_> = offer.failures.iter().map(|(server, _)| &**server).collect();
        assert!(failures.starts_with(&["silent", "none"]), "{failures:?}");
        let Err(Refused::Away { server, state, .. }) = host.call_tool("silent__echo", ()) else { panic!() };
        assert!(&*server == "silent" && matches!(state, ServerState::Connecting));
        let Err(refused) = host.call_tool("none__echo", ()) else { panic!() };
        assert!(refused.to_string().contains("/no/such/program"), "{refused}");

        // Its child goes with it.
        rt::eventually(|| note.read().is_some()).await;
        assert!(host.remove("silent").await && !host.remove("silent").await);
        rt::eventually(|| !is_alive(&note.read().unwrap())).await;
        // It is not waited for any more.
        host.ready().await;
        host.close().await;
    });
}

/// What changes is told with the name of the server, and its tools are asked for again only then.
#[test]
fn tools_are_asked_for_again_when_they_change() {
    rt::run(async {
        for mode in [Mode::Modern, Mode::Legacy] {
            let host = Host::new(rt::RUNTIME, client().mode(mode));
            let [left, right] = [(); 2].map(|()| Moody::new(server(&Stage::default())));
            let mut events = host.events();
            host.add("left", left.clone());
            host.add("right", right.clone());
            ready(&mut events, "right").await;
            host.ready().await;
            // As soon as it is known that they tell of changes.
            let before = host.tools().await.tools.len();
            let lists = || (left.asked("tools/list"), right.asked("tools/list"));
            let mut seen = (0, 0);
            while lists() != seen {
                seen = lists();
                host.tools().await;
            }
            assert_eq!(host.tools().await.tools.len(), before);
            assert_eq!(lists(), seen);
            host.call_tool("left__change", ()).unwrap().await.unwrap();
            assert_eq!(changed(&mut events, "left").await, Change::Tools);
            assert_eq!(lists(), seen, "nobody has asked for them yet");
            assert_eq!(host.tools().await.tools.len(), before);
            assert_eq!(lists(), (seen.0 + 1, seen.1));
            host.tools().await;
            assert_eq!(lists(), (seen.0 + 1, seen.1), "{mode:?}");
        }
    });
}

/// A server that is gone is connected again, ever more seldom unless it was there for a while.
#[test]
fn a_server_that_is_gone_is_connected_again() {
    rt::run(async {
        let clock = ByHand::default();
        let host = Host::new(clock.clone(), client());
        let moody = Moody::new(server(&Stage::default()));
        let mut events = host.events();
        host.add("moody", moody.clone());
        ready(&mut events, "moody").await;
        let first = host.client("moody").unwrap();
        assert_eq!(host.tools().await.failures.len(), 0);
        moody.refuse(Some(|| ConnectError::Failed(CallError::Closed)));
        moody.hang_up(1);
        assert!(matches!(
            state(&mut events, "moody").await,
            ServerState::Away { why: None, again: true, .. }
        ));
        assert!(host.client("moody").is_none());
        for (tries, pause) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
            let pause = Duration::from_secs(pause);
            rt::eventually(|| clock.waits() == Some(pause)).await;
            assert_eq!(moody.tries(), tries + 1);
            clock.pass(pause);
            assert!(matches!(state(&mut events, "moody").await, ServerState::Connecting));
            let away = state(&mut events, "moody").await;
            let ServerState::Away { why: Some(why), again: true, .. } = away else { panic!("{away:?}") };
            assert!(matches!(&*why, ConnectError::Failed(CallError::Closed)));
        }
        moody.refuse(None);
        // Nobody has to wait for so long.
        rt::eventually(|| clock.waits() == Some(Duration::from_secs(60))).await;
        assert!(host.hurry("moody") && !host.hurry("other"));
        ready(&mut events, "moody").await;
        assert!(first.is_closed());
        let result = host.call_tool("moody__echo", json!({ "text": "x" })).unwrap().await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("x"));

        // It was there for a moment only, then for a minute.
        moody.hang_up(moody.tries());
        rt::eventually(|| clock.waits() == Some(Duration::from_secs(1))).await;
        clock.pass(Duration::from_secs(1));
        ready(&mut events, "moody").await;
        moody.hang_up(moody.tries());
        rt::eventually(|| clock.waits() == Some(Duration::from_secs(2))).await;
        clock.pass(Duration::from_secs(2));
        ready(&mut events, "moody").await;
        clock.pass(Duration::from_secs(60));
        moody.hang_up(moody.tries());
        rt::eventually(|| clock.waits() == Some(Duration::from_secs(1))).await;

        // What would be the same another time is not tried again by itself.
        moody.refuse(Some(|| ConnectError::Settings("no".into())));
        clock.pass(Duration::from_secs(1));
        while !matches!(state(&mut events, "moody").await, ServerState::Away { again: false, .. }) {}
        assert_eq!(clock.waits(), None);
        moody.refuse(None);
        assert!(host.hurry("moody"));
        ready(&mut events, "moody").await;
        host.close().await;
    });
}

/// What servers say is told with their names, and the client's own ears hear it, too.
#[test]
fn what_a_server_says_is_told_with_its_name() {
    rt::run(async {
        let own = Arc::new(Mutex::new(0));
        let heard = Arc::clone(&own);
        let logs = client().mode(Mode::Legacy).on_log(move |_| *heard.lock().unwrap() += 1);
        let host = Host::new(rt::RUNTIME, logs);
        let mut events = host.events();
        let says = |text: &'static str| {
            Server::new("says", "1").tool("say", move |ctx: Ctx, _: NoArguments| async move {
                ctx.log(LoggingLevel::Error, text).await;
                Ok::<_, ToolError>("said")
            })
        };
        for (name, text) in [("a", "of a"), ("b", "of b")] {
            host.add(name, Moody::new(says(text)));
        }
        host.ready().await;
        for (name, text) in [("b", "of b"), ("a", "of a")] {
            host.call_tool(&format!("{name}__say"), ()).unwrap().await.unwrap();
            let log = next(&mut events, name, |what| match what {
                Happened::Log(log) => Some(log),
                _ => None,
            });
            assert_eq!(log.await.data.get(), format!("\"{text}\""));
        }
        assert_eq!(*own.lock().unwrap(), 2);
        let mut others = host.events();
        host.add("c", Moody::new(says("of c")));
        let method = next(&mut others, "c", |what| match what {
            Happened::Notification { method, params, .. } => Some((method, params)),
            _ => None,
        });
        let (method, params) = method.await;
        assert_eq!((&*method, params.get()), ("com.example/hi", "{\"a\":1}"));
    });
}

/// A server in the place of another has its name, and nothing else of it.
#[test]
fn a_server_is_replaced() {
    rt::run(async {
        let host = host();
        for name in ["a.b", "a b"] {
            host.add(name, memory());
        }
        host.ready().await;
        let mut events = host.events();
        let old = host.client("a.b").unwrap();
        host.add("a.b", Memory::new(rt::RUNTIME, Server::new("new", "1")));
        assert!(matches!(at_once(&mut events).unwrap().what, Happened::Removed));
        assert!(matches!(at_once(&mut events).unwrap().what, Happened::State(ServerState::Connecting)));
        old.closed().await;
        host.ready().await;
        let servers = host.servers();
        assert_eq!((&*servers[0].name, &*servers[0].alias), ("a.b", "a-b"));
        assert_eq!(servers[0].server.as_ref().unwrap().identity.as_ref().unwrap().name, "new");
        assert!(host.tools().await.tools.iter().all(|offered| &*offered.server == "a b"));
    });
}

/// A client of elsewhere is one of the servers until its connection has ended.
#[test]
fn a_client_of_elsewhere_is_accompanied() {
    rt::run(async {
        let host = host();
        let mut events = host.events();
        let elsewhere = client().connect(memory()).await.unwrap();
        host.add_client("elsewhere", elsewhere.clone());
        ready(&mut events, "elsewhere").await;
        host.call_tool("elsewhere__echo", json!({ "text": "x" })).unwrap().await.unwrap();
        assert!(host.remove("elsewhere").await);
        assert!(!elsewhere.is_closed());
        host.add_client("elsewhere", elsewhere.clone());
        ready(&mut events, "elsewhere").await;
        elsewhere.close().await;
        let away = state(&mut events, "elsewhere").await;
        assert!(matches!(away, ServerState::Away { why: None, again: false, .. }), "{away:?}");
        let Err(Refused::Away { .. }) = host.call_tool("elsewhere__echo", ()) else { panic!() };
    });
}

/// Z03: the children of a host end with it, however it ends.
#[test]
fn no_child_outlives_its_host() {
    rt::run(async {
        for closed in [true, false] {
            let (exits, host) = (Arc::new(Mutex::new(0)), host());
            let mut events = host.events();
            for name in ["a", "b"] {
                let seen = Arc::clone(&exits);
                host.add(name, fixture().on_exit(move |_| *seen.lock().unwrap() += 1));
            }
            host.ready().await;
            if closed {
                host.close().await;
                assert_eq!(*exits.lock().unwrap(), 2);
            }
            let other = host.clone();
            drop(host);
            assert_eq!(other.servers().len(), if closed { 0 } else { 2 });
            drop(other);
            // After what happened before that nothing more comes.
            while events.next().await.is_some() {}
            rt::eventually(|| *exits.lock().unwrap() == 2).await;
        }
    });
}

/// Servers as users write them down. One that is wrong harms no other.
#[test]
fn the_servers_of_a_configuration_are_added() {
    rt::run(async {
        let program = program("fixture").get_program().to_str().unwrap().to_owned();
        let text = json!({ "mcpServers": {
            "good": { "command": program },
            "off": { "command": program, "disabled": true },
            "wrong": { "command": 5 },
        } });
        let host = host();
        let wrong = host.add_all(&Servers::parse(&text.to_string()).unwrap());
        let wrong: Vec<_> = wrong.iter().map(|(name, error)| (&**name, error.pointer())).collect();
        assert_eq!(wrong, [("wrong", "/mcpServers/wrong/command")]);
        assert_eq!(host.servers().len(), 1);
        host.ready().await;
        let result = host.call_tool("good__echo", json!({ "text": "x" })).unwrap().await.unwrap();
        assert_eq!(result.texts(), "x");
        host.close().await;
    });
}
