//! One server with everything that the tests need.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use mcp_proto::limits::Limits;
use mcp_proto::model::{CreateMessage, LoggingLevel, SamplingMessage, TaskSupport};
use mcp_proto::service::{Ctx, NoArguments, Progress, Server, Service, prompt, resource, tool};

/// A door that handlers wait at.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<(bool, Vec<Waker>)>>);

impl Gate {
    pub(crate) fn open(&self) {
        let wakers = {
            let mut state = self.0.lock().unwrap();
            state.0 = true;
            std::mem::take(&mut state.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn pass(&self) -> impl Future<Output = ()> + Send + use<> {
        let gate = self.clone();
        poll_fn(move |cx| {
            let mut state = gate.0.lock().unwrap();
            if state.0 {
                return Poll::Ready(());
            }
            state.1.push(cx.waker().clone());
            Poll::Pending
        })
    }
}

/// What the handlers did.
#[derive(Clone, Default)]
pub(crate) struct Kit {
    pub(crate) gate: Gate,
    /// A second door.
    pub(crate) after: Gate,
    /// Handlers that began.
    pub(crate) began: Arc<AtomicUsize>,
    /// Handlers that were dropped at the gate.
    pub(crate) dropped: Arc<AtomicUsize>,
    /// Messages that `flood` has sent.
    pub(crate) sent: Arc<AtomicUsize>,
}

struct Guard(Arc<AtomicUsize>, bool);
impl Drop for Guard {
    fn drop(&mut self) {
        if !self.1 {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Add {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Region {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: Option<String>,
    #[schemars(extend("x-mcp-header" = "Count"))]
    count: Option<i64>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    confirm: bool,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Tone {
    tone: String,
}

impl Kit {
    pub(crate) fn began(&self) -> usize {
        self.began.load(Ordering::SeqCst)
    }

    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }

    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    async fn wait(self) -> String {
        self.began.fetch_add(1, Ordering::SeqCst);
        let mut guard = Guard(Arc::clone(&self.dropped), false);
        self.gate.pass().await;
        guard.1 = true;
        "opened".into()
    }

    pub(crate) fn service(&self) -> Service {
        self.service_with(Limits::default())
    }

    pub(crate) fn service_with(&self, limits: Limits) -> Service {
        self.server().limits(limits).build().unwrap()
    }

    pub(crate) fn server(&self) -> Server {
        let (kit, kit2, kit3, kit4, kit5, kit6, kit7) = (
            self.clone(),
            self.clone(),
            self.clone(),
            self.clone(),
            self.clone(),
            self.clone(),
            self.clone(),
        );
        Server::new("demo", "1")
            .logging(true)
            .subscriptions(true)
            .tool("add", |_, p: Add| async move { Ok(format!("{}", p.a + p.b)) })
            .tool("wait", move |_, _: NoArguments| {
                let kit = kit.clone();
                async move { Ok(kit.wait().await) }
            })
            .tool("steps", move |ctx: Ctx, _: NoArguments| {
                let kit = kit2.clone();
                async move {
                    ctx.progress(Progress::new(1.0).of(2.0)).await;
                    ctx.log(LoggingLevel::Error, "half").await;
                    kit.gate.pass().await;
                    ctx.progress(Progress::new(2.0).of(2.0)).await;
                    kit.after.pass().await;
                    Ok("stepped")
                }
            })
            .tool("lets_go", |ctx: Ctx, _: NoArguments| async move {
                let done = ctx.close_stream();
                ctx.progress(Progress::new(1.0)).await;
                Ok(format!("{done}"))
            })
            .tool("big", |_, _: NoArguments| async move { Ok("x".repeat(100_000)) })
            .tool("chatty", |ctx: Ctx, _: NoArguments| async move {
                ctx.progress(Progress::new(1.0)).await;
                Ok("said")
            })
            .tool("flood", move |ctx: Ctx, _: NoArguments| {
                let kit = kit3.clone();
                async move {
                    let text = "x".repeat(1000);
                    for step in 1..=5000 {
                        ctx.progress(Progress::new(f64::from(step)).message(&text)).await;
                        kit.sent.fetch_add(1, Ordering::SeqCst);
                    }
                    Ok("flooded")
                }
            })
            .tool("region", move |_, p: Region| {
                kit4.began.fetch_add(1, Ordering::SeqCst);
                async move { Ok(format!("{:?} {:?}", p.region, p.count)) }
            })
            .add(
                tool("confirm", |ctx, _: NoArguments| async move {
                    let answer: Confirm = ctx.ask("sure", "Sure?").await?;
                    Ok(format!("{}", answer.confirm))
                })
                .task(TaskSupport::Forbidden),
            )
            .tool("sample", |ctx, _: NoArguments| async move {
                let answer =
                    ctx.sample("model", CreateMessage::new([SamplingMessage::user("hi")], 10)).await?;
                Ok(format!("{}", answer.model))
            })
            .tool("roots", |ctx, _: NoArguments| async move {
                let roots = ctx.roots("roots").await?;
                Ok(format!("{}", roots.len()))
            })
            .tool("change", |ctx: Ctx, _: NoArguments| async move {
                ctx.changes().tools();
                ctx.changes().tools();
                Ok("changed")
            })
            .add(
                tool("job", move |ctx: Ctx, _: NoArguments| {
                    let kit = kit5.clone();
                    async move {
                        ctx.progress(Progress::new(1.0)).await;
                        Ok(kit.wait().await)
                    }
                })
                .task(TaskSupport::Required),
            )
            .add(
                tool("job_asks", |ctx, _: NoArguments| async move {
                    let answer: Confirm = ctx.ask("sure", "Sure?").await?;
                    Ok(format!("{}", answer.confirm))
                })
                .task(TaskSupport::Required),
            )
            .add(
                tool("job_waits_and_asks", move |ctx, _: NoArguments| {
                    let kit = kit6.clone();
                    async move {
                        kit.gate.pass().await;
                        let answer: Confirm = ctx.ask("sure", "Sure?").await?;
                        Ok(format!("{}", answer.confirm))
                    }
                })
                .task(TaskSupport::Required),
            )
            .tool("panics", move |_, p: Region| {
                kit7.began.fetch_add(1, Ordering::SeqCst);
                async move {
                    assert!(p.region.is_none(), "on purpose");
                    Ok("no region")
                }
            })
            .add(resource("doc://a", |ctx: Ctx, ()| async move {
                let _ = ctx;
                Ok("text")
            }))
            .add(prompt("greet", |_, p: Tone| async move { Ok(format!("be {}", p.tone)) }))
    }
}
