//! What the examples serve: three tools with fixed definitions, called by hand.

use std::sync::Arc;
use std::time::Duration;

use mcp_proto::model::method::CallToolParams;
use mcp_proto::model::{
    CacheScope, CallToolResult, Implementation, JsonSchema, ListToolsResult, ProtocolVersion,
    ServerCapabilities, Tool,
};
use mcp_proto::rpc::{Error, de};
use mcp_proto::server::Config;
use serde::Deserialize;

/// One for all streams of the process.
pub(crate) fn config() -> Arc<Config> {
    Config::builder(Implementation::new("three-tools", "1.0.0"))
        .capabilities(ServerCapabilities::new().tools(false))
        .instructions("`slow` takes its time and can be cancelled.")
        .build()
}

/// The answer to `tools/list`. All fits on one page, so a cursor is one that was never given.
pub(crate) fn list(cursor: Option<&str>) -> Result<ListToolsResult, Error> {
    if cursor.is_some() {
        return Err(Error::invalid_params("Invalid params at /params/cursor: unknown cursor"));
    }
    let tool = |name: &'static str, description: &'static str, schema: &str| {
        let schema = JsonSchema::parse(schema).unwrap_or_else(|_| JsonSchema::any_object());
        Tool::new(name, schema).description(description)
    };
    Ok(ListToolsResult::new([
        tool(
            "echo",
            "Says what it is told",
            r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#,
        ),
        tool(
            "add",
            "Adds two integers",
            r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#,
        ),
        tool(
            "slow",
            "Takes so many steps of ten milliseconds",
            r#"{"type":"object","properties":{"steps":{"type":"integer","minimum":0,"maximum":1000}},"required":["steps"]}"#,
        ),
    ])
    .cache(60_000, CacheScope::Public))
}

/// What a call comes to.
pub(crate) enum Work {
    /// It is done.
    Done(CallToolResult),
    /// It takes so many steps, each as long as [`STEP`].
    Slow { steps: u32 },
}

/// How long a step of `slow` takes.
pub(crate) const STEP: Duration = Duration::from_millis(10);

/// Starts a call.
///
/// An unknown tool is an error of the protocol. Arguments that do not fit are a result with `isError`, so
/// that a model can mend its call; revisions before 2025-11-25 have an error for it.
pub(crate) fn call(version: ProtocolVersion, params: &CallToolParams<'_>) -> Result<Work, Error> {
    #[derive(Deserialize)]
    struct Echo {
        text: String,
    }
    #[derive(Deserialize)]
    struct Add {
        a: i64,
        b: i64,
    }
    #[derive(Deserialize)]
    struct Slow {
        steps: u16,
    }
    let arguments = params.arguments.map_or("{}", |raw| raw.get());
    let work = match &*params.name {
        "echo" => de::from_str(arguments).map(|Echo { text }| Work::Done(CallToolResult::text(text))),
        "add" => de::from_str(arguments).map(|Add { a, b }| {
            Work::Done(match a.checked_add(b) {
                Some(sum) => CallToolResult::text(sum.to_string()),
                None => CallToolResult::error("The sum is out of range"),
            })
        }),
        "slow" => de::from_str(arguments).map(|Slow { steps }| Work::Slow { steps: steps.min(1_000).into() }),
        _ => return Err(Error::invalid_params("Unknown tool")),
    };
    match work {
        Ok(work) => Ok(work),
        Err(unfit) if version.reports_bad_arguments_as_result() => {
            Ok(Work::Done(CallToolResult::error(unfit.to_string())))
        }
        Err(unfit) => Err(Error::invalid_params(unfit.to_string())),
    }
}
