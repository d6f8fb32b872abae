//! `bench-ours RUNTIME ERA DEPTH CALLS (URL | COMMAND…)`: see ../README.md.

use std::error::Error;
use std::time::Duration;

use mcp_proto::client::Mode;
use mcp_proto::service::client::{Client, ClientBuilder};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::json;

type Failure = Box<dyn Error + Send + Sync>;

/// Calls before it counts.
const WARM_UP: usize = 500;

/// Both adapters are the same but for their names.
macro_rules! measure {
    ($adapter:ident, $spawn:path, $plan:expr) => {{
        use $adapter::Connect as _;
        let plan = $plan;
        let client = match plan.target[0].starts_with("http://") {
            true => plan.client()?.connect($adapter::url(&plan.target[0])).await?,
            false => plan.client()?.connect($adapter::child(&plan.target[0]).args(&plan.target[1..])).await?,
        };
        let mut before = Duration::ZERO;
        for calls in [WARM_UP, plan.calls] {
            before = cpu()?;
            let callers: Vec<_> =
                (0..plan.depth).map(|_| $spawn(call(client.clone(), calls / plan.depth))).collect();
            for caller in callers {
                caller.await??;
            }
        }
        println!("{:.3}", (cpu()? - before).as_secs_f64() * 1e6 / plan.made() as f64);
        client.close().await;
        Ok(())
    }};
}

fn main() -> Result<(), Failure> {
    let plan = Plan::parse(std::env::args().skip(1))?;
    match plan.runtime.as_str() {
        "tokio" => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?
            .block_on(async { measure!(mcp_tokio, tokio::spawn, plan) }),
        "smol" => smol::block_on(async { measure!(mcp_smol, spawn_on_smol, plan) }),
        other => Err(format!("expected tokio or smol, got {other}").into()),
    }
}

struct Plan {
    runtime: String,
    era: String,
    depth: usize,
    calls: usize,
    target: Vec<String>,
}

impl Plan {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut next = |what| args.next().ok_or(format!("expected {what}"));
        let (runtime, era) = (next("a runtime")?, next("an era")?);
        let (depth, calls) = (next("a depth")?.parse()?, next("a number of calls")?.parse()?);
        let target: Vec<_> = args.collect();
        match target.is_empty() {
            true => Err("expected a URL or a command".into()),
            false => Ok(Self { runtime, era, depth, calls, target }),
        }
    }

    fn client(&self) -> Result<ClientBuilder, Failure> {
        let mode = match self.era.as_str() {
            "modern" => Mode::Modern,
            "legacy" => Mode::Legacy,
            other => return Err(format!("expected modern or legacy, got {other}").into()),
        };
        Ok(Client::new("bench", "1").mode(mode))
    }

    /// What is made of the calls: each caller makes as many as the others.
    const fn made(&self) -> usize {
        self.calls / self.depth * self.depth
    }
}

async fn call(client: Client, calls: usize) -> Result<(), Failure> {
    let text = "x".repeat(64);
    for _ in 0..calls {
        let result = client.call_tool("echo", json!({ "text": text })).await?;
        if result.is_error == Some(true) || result.texts() != text {
            return Err(format!("expected the text that was sent, got {result:?}").into());
        }
    }
    Ok(())
}

/// Runs at once, like the one of tokio, which tells of a task that panicked.
fn spawn_on_smol<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = Result<T, Failure>> {
    let task = smol::spawn(future);
    async { Ok(task.await) }
}

/// What this process has used so far, that of its children left out.
fn cpu() -> Result<Duration, Failure> {
    let used = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = |time: TimeVal| time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64;
    Ok(Duration::from_micros(micros(used.user_time()) + micros(used.system_time())))
}
