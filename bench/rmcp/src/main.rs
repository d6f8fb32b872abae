//! `bench-rmcp RUNTIME ERA DEPTH CALLS (URL | COMMAND…)`: see ../README.md.

use std::error::Error;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{Peer, RoleClient};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Map, Value};

type Failure = Box<dyn Error + Send + Sync>;

/// Calls before it counts.
const WARM_UP: usize = 500;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let mut next = |what| args.next().ok_or(format!("expected {what}"));
    match (next("a runtime")?.as_str(), next("an era")?.as_str()) {
        ("tokio", "legacy") => {}
        // It knows 2026-07-28 as a server only.
        (runtime, era) => return Err(format!("expected tokio and legacy, got {runtime} and {era}").into()),
    }
    let (depth, calls): (usize, usize) = (next("a depth")?.parse()?, next("a number of calls")?.parse()?);
    let target: Vec<_> = args.collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(depth, calls, &target))
}

async fn measure(depth: usize, calls: usize, target: &[String]) -> Result<(), Failure> {
    let (program, args) = target.split_first().ok_or("expected a URL or a command")?;
    let client = match program.starts_with("http://") {
        true => ().serve(StreamableHttpClientTransport::from_uri(program.clone())).await?,
        false => {
            let mut command = tokio::process::Command::new(program);
            command.args(args);
            ().serve(TokioChildProcess::new(command)?).await?
        }
    };
    let mut before = Duration::ZERO;
    for calls in [WARM_UP, calls] {
        before = cpu()?;
        let callers: Vec<_> =
            (0..depth).map(|_| tokio::spawn(call(client.peer().clone(), calls / depth))).collect();
        for caller in callers {
            caller.await??;
        }
    }
    println!("{:.3}", (cpu()? - before).as_secs_f64() * 1e6 / (calls / depth * depth) as f64);
    client.cancel().await?;
    Ok(())
}

async fn call(client: Peer<RoleClient>, calls: usize) -> Result<(), Failure> {
    let text = "x".repeat(64);
    for _ in 0..calls {
        let arguments = Map::from_iter([("text".to_owned(), Value::from(text.as_str()))]);
        let result = client.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments)).await?;
        let back = result.content.first().and_then(|content| content.as_text());
        if result.is_error == Some(true) || back.is_none_or(|back| back.text != text) {
            return Err(format!("expected the text that was sent, got {result:?}").into());
        }
    }
    Ok(())
}

/// What this process has used so far, that of its children left out.
fn cpu() -> Result<Duration, Failure> {
    let used = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = |time: TimeVal| time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64;
    Ok(Duration::from_micros(micros(used.user_time()) + micros(used.system_time())))
}
