//! Our client as a tool: connects, lists everything, then does what a plan names. One JSON object a step.

mod client;
mod heard;
mod official;
mod perform;
mod plan;
mod runtime;

use std::fs;
use std::path::PathBuf;

use mcp_proto::client::Mode;
use serde_json::{Value, json};

use self::heard::Heard;
use self::perform::{Performance, tell};
use self::plan::Plan;
pub use self::runtime::{Runtime, Target};

/// What a client of the suite is told, in its environment.
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";

/// What is probed, and how.
#[derive(Debug, Clone)]
#[allow(clippy::exhaustive_structs)] // the options of the command line
pub struct Probe {
    /// What it runs on.
    pub runtime: Runtime,
    /// Which eras are tried.
    pub mode: Mode,
    /// The file of the plan. Without one: that of the suite which started this program, or a survey.
    pub plan: Option<PathBuf>,
    /// A bearer token to send.
    pub token: Option<String>,
    /// The server.
    pub target: Target,
}

impl Probe {
    /// Does it; says whether no step failed.
    ///
    /// # Errors
    ///
    /// There is no such plan, or it is none.
    pub fn go(&self) -> Result<bool, String> {
        let (plan, of_suite) = match &self.plan {
            Some(path) => {
                let text =
                    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
                let json =
                    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
                (Plan::read(&json).map_err(|problem| format!("{}: {problem}", path.display()))?, false)
            }
            None => match plan_of_suite()? {
                Some(plan) => (plan, true),
                None => (Plan::survey(), false),
            },
        };
        self.perform(&plan, !of_suite)
    }

    fn perform(&self, plan: &Plan, tells_connection: bool) -> Result<bool, String> {
        let heard = Heard::default();
        let client = client::declare(plan, self.mode, &heard)?;
        let token = self.token.as_deref().or(plan.token.as_deref());
        self.runtime.run(async {
            let client = match self.runtime.connect(client, &self.target, token).await {
                Ok(client) => client,
                Err(error) => {
                    tell(&json!({"step": "connect", "ok": false, "error": error}));
                    return false;
                }
            };
            if tells_connection {
                let server = client.server();
                tell(&json!({"step": "connect", "ok": true, "result": {
                    "version": server.version.as_str(),
                    "server": server.identity,
                    "capabilities": server.capabilities,
                    "instructions": server.instructions,
                }}));
            }
            let performance = Performance::new(client.clone(), self.runtime, heard, plan);
            let steps = survey_of(plan, &client);
            let good = performance.run(&steps).await;
            client.close().await;
            good
        })
    }
}

/// Without a plan only what the server has is listed.
fn survey_of(plan: &Plan, client: &mcp_proto::service::client::Client) -> Vec<plan::Step> {
    let server = client.server();
    let has = |kind: plan::Kind| {
        server.capabilities.as_ref().is_none_or(|has| match kind {
            plan::Kind::Tools => has.has_tools(),
            plan::Kind::Resources | plan::Kind::Templates => has.has_resources(),
            plan::Kind::Prompts => has.has_prompts(),
        })
    };
    let wanted = |step: &&plan::Step| match step.act {
        plan::Act::List(kind) => plan.is_exact || has(kind),
        _ => true,
    };
    plan.steps.iter().filter(wanted).cloned().collect()
}

/// Does what the suite asks of a client under test: the plan in its context, or a scenario of the official suite by
/// name. Says whether all went well.
///
/// # Errors
///
/// Nothing is asked, or nothing that is known.
pub fn under_test(runtime: Runtime, url: &str) -> Result<bool, String> {
    let target = Target::Url(url.to_owned());
    match plan_of_suite()? {
        Some(plan) => {
            let probe = Probe { runtime, mode: Mode::Auto, plan: None, token: None, target };
            probe.perform(&plan, false)
        }
        None => official::go(runtime, &target),
    }
}

fn context() -> Result<Option<Value>, String> {
    let Ok(text) = std::env::var(CONTEXT) else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| format!("the variable {CONTEXT}: {error}"))
}

fn plan_of_suite() -> Result<Option<Plan>, String> {
    let context = context()?;
    let plan = context.as_ref().and_then(|context| context.get("plan"));
    plan.map(Plan::read).transpose()
}
