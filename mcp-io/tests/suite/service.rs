//! A server whose handlers show what an adapter does. Tests and the programs that they start share it.

use std::collections::HashMap;
use std::future::{Future, pending, poll_fn};
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use mcp_io::{Runtime, Serve, ServeError, Stdio, StdioIo};
use mcp_proto::model::LoggingLevel;
use mcp_proto::service::{Ctx, NoArguments, Progress, Server, ToolError};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Size {
    size: usize,
}

/// What the handlers and the test share.
#[derive(Clone, Default)]
pub(crate) struct Stage {
    /// Handlers of `stuck` that run.
    pub(crate) stuck: Arc<AtomicUsize>,
    /// What handlers of `flood` have sent.
    pub(crate) steps: Arc<AtomicUsize>,
    gates: Arc<Mutex<HashMap<String, Gate>>>,
}

#[derive(Default)]
struct Gate {
    waiting: usize,
    open: bool,
    wakers: Vec<Waker>,
}

impl Stage {
    /// Lets the handlers of `gate` that wait there go on.
    pub(crate) fn open(&self, name: &str) {
        self.change(name, |gate| gate.open = true);
    }

    /// Completes when a gate is open.
    pub(crate) async fn opened(&self, name: &str) {
        self.until(name, |gate| gate.open).await;
    }

    /// Completes when so many handlers wait at a gate.
    pub(crate) async fn crowd(&self, name: &str, size: usize) {
        self.until(name, |gate| gate.waiting >= size).await;
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Gate)) {
        let wakers = {
            let mut gates = self.gates.lock().unwrap();
            let gate = gates.entry(name.to_owned()).or_default();
            change(gate);
            std::mem::take(&mut gate.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn until(&self, name: &str, is_over: impl Fn(&Gate) -> bool) -> impl Future<Output = ()> {
        poll_fn(move |cx| {
            let mut gates = self.gates.lock().unwrap();
            let gate = gates.entry(name.to_owned()).or_default();
            if is_over(gate) {
                return Poll::Ready(());
            }
            gate.wakers.push(cx.waker().clone());
            Poll::Pending
        })
    }
}

/// A drain time that does not end before the answers are taken, however busy the machine is.
pub(crate) const PATIENT: Duration = Duration::from_secs(100);

/// What a program of an adapter does. As `fixture taken` it tries it first while the standard streams are
/// in other hands, as `fixture full` while no descriptor is left; as `fixture hasty` it waits for nobody after the
/// end of the input.
pub(crate) async fn program<R: Runtime>(runtime: R) -> Result<(), ServeError> {
    let how = std::env::args().nth(1).unwrap_or_default();
    // Without an end of line it stays in this process until somebody passes it on.
    print!("before");
    let drain = if how == "hasty" { Duration::from_millis(50) } else { PATIENT };
    let serve = || server(&Stage::default()).serve(Stdio::new(runtime.clone()).drain(drain));
    if how == "taken" {
        let _taken = StdioIo::claim(&runtime)?;
        let Err(ServeError::Io(error)) = serve().await else {
            panic!("the standard streams have two owners")
        };
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    }
    if how == "full" {
        let mut files = Vec::new();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            files.push(file);
        }
        let Err(ServeError::Io(error)) = serve().await else { panic!("served without a descriptor left") };
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
    }
    serve().await?;
    if how == "hasty" {
        // The client may not read, and standard output blocks again.
        return Ok(());
    }
    // The client may be gone.
    let _ = writeln!(std::io::stdout(), "served");
    Ok(())
}

struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) fn server(stage: &Stage) -> Server {
    let (gates, meetings, stuck) = (stage.clone(), stage.clone(), Arc::clone(&stage.stuck));
    let (walks, floods, stuck_steps) = (stage.clone(), Arc::clone(&stage.steps), Arc::clone(&stage.stuck));
    Server::new("fixture", "1.0.0")
        // Answers in its first poll.
        .tool("echo", |_, p: Text| async move { Ok::<_, ToolError>(p.text) })
        .tool("blob", |_, p: Size| async move { Ok::<_, ToolError>("x".repeat(p.size)) })
        // Waits for the test to open the gate of that name.
        .tool("gate", move |_, p: Text| {
            let stage = gates.clone();
            async move {
                stage.change(&p.text, |gate| gate.waiting += 1);
                stage.opened(&p.text).await;
                Ok::<_, ToolError>(p.text)
            }
        })
        // Waits until so many handlers do.
        .tool("meet", move |_, p: Size| {
            let stage = meetings.clone();
            async move {
                stage.change("meet", |gate| gate.waiting += 1);
                stage.crowd("meet", p.size).await;
                Ok::<_, ToolError>("met")
            }
        })
        // Never ends by itself.
        .tool("stuck", move |_, _: NoArguments| {
            let counted = Counted::new(&stuck);
            async move {
                let _counted = counted;
                pending::<()>().await;
                Ok::<_, ToolError>("never")
            }
        })
        // Makes a step, then waits for its gate.
        .tool("steps", move |ctx: Ctx, p: Text| {
            let stage = walks.clone();
            async move {
                ctx.progress(Progress::new(1.0)).await;
                stage.opened(&p.text).await;
                Ok::<_, ToolError>(p.text)
            }
        })
        .tool("stuck_steps", move |ctx: Ctx, _: NoArguments| {
            let counted = Counted::new(&stuck_steps);
            async move {
                let _counted = counted;
                ctx.progress(Progress::new(1.0)).await;
                pending::<()>().await;
                Ok::<_, ToolError>("never")
            }
        })
        // So many steps, of 32 KiB each.
        .tool("flood", move |ctx: Ctx, p: Size| {
            let steps = Arc::clone(&floods);
            async move {
                let message = "x".repeat(32 << 10);
                for step in 0..p.size {
                    ctx.progress(Progress::new(step as f64).message(&message)).await;
                    steps.fetch_add(1, Ordering::SeqCst);
                }
                Ok::<_, ToolError>("flooded")
            }
        })
        .tool("change", |ctx: Ctx, _: NoArguments| async move {
            ctx.changes().tools();
            Ok::<_, ToolError>("changed")
        })
        // Logs something of little weight, and something of much.
        .tool("log", |ctx: Ctx, _: NoArguments| async move {
            ctx.log(LoggingLevel::Info, "light").await;
            ctx.log(LoggingLevel::Error, "heavy").await;
            Ok::<_, ToolError>("logged")
        })
        .tool("who", |ctx, _: NoArguments| async move {
            Ok::<_, ToolError>(ctx.principal().map_or_else(|| "nobody".into(), |who| who.id().to_owned()))
        })
        // Prints, and starts a child that prints and reads.
        .tool("print", |_, p: Text| async move {
            println!("printed: {}", p.text);
            print!("printed without an end: {}", p.text);
            let script = format!("echo child: {}; cat; echo child read all", p.text);
            let status = std::process::Command::new("sh").args(["-c", &script]).status();
            match status {
                Ok(status) if status.success() => Ok("printed"),
                other => Err(ToolError::new(format!("{other:?}"))),
            }
        })
}
