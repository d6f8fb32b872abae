//! Tools that run as tasks of the extension where the client takes tasks.

use std::time::Duration;

use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskExit, TaskOptions};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::ask::{Question, form};
use crate::{CONTRACT, Subject, bare, failure, object, text};

pub(crate) fn tools() -> Vec<Tool> {
    let slow = json!({
        "type": "object",
        "properties": {"seconds": {"type": "integer", "minimum": 0}, "label": {"type": "string"}},
        "required": ["seconds", "label"],
    });
    let delete =
        json!({"type": "object", "properties": {"filename": {"type": "string"}}, "required": ["filename"]});
    vec![
        Tool::new("slow_compute", "Computes slowly", object(slow)),
        Tool::new("confirm_delete", "Deletes nothing, after a confirmation", object(delete)),
        bare("failing_job", "Only runs as a task, and reports an error"),
        bare("protocol_error_job", "Breaks with a protocol error"),
        bare("multi_input", "Asks two questions at once"),
    ]
}

fn confirm(message: String) -> Question {
    form(message, json!({"confirm": {"type": "boolean"}}))
}

impl Subject {
    /// `None` if it is not one of the tools that run as tasks.
    pub(crate) async fn job(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        if !tools().iter().any(|tool| tool.name == request.name) {
            return None;
        }
        let takes_tasks = context.client_capabilities().is_some_and(|can| can.supports_tasks());
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        let options = TaskOptions::new().with_poll_interval_ms(50).with_ttl_ms(60_000);
        let ask = |question: &Question| InputRequest::Elicitation(ElicitRequest::new(question.elicitation()));
        let tasks = &self.shared.tasks;
        let task = match &*request.name {
            "slow_compute" => {
                let (Some(seconds), Some(label)) =
                    (arguments["seconds"].as_u64(), arguments["label"].as_str())
                else {
                    return Some(Err(ErrorData::invalid_params("expected `seconds` and `label`", None)));
                };
                let result = text(format!("{label} computed in {seconds} s"));
                let wait = Duration::from_secs(seconds);
                if !takes_tasks {
                    tokio::time::sleep(wait).await;
                    return Some(Ok(result.into()));
                }
                tasks.spawn(options, move |task| {
                    Box::pin(async move {
                        tokio::select! {
                            () = task.cancelled() => Err(TaskExit::Cancelled),
                            () = tokio::time::sleep(wait) => Ok(result),
                        }
                    })
                })
            }
            "protocol_error_job" if !takes_tasks => {
                return Some(Err(ErrorData::internal_error("This job breaks", None)));
            }
            _ if !takes_tasks => {
                let needed = ClientCapabilities::builder().enable_tasks().build();
                return Some(Err(ErrorData::missing_required_client_capability(needed)));
            }
            "protocol_error_job" => tasks.spawn(options, |_| {
                Box::pin(async { Err(TaskExit::Error(ErrorData::internal_error("This job breaks", None))) })
            }),
            "failing_job" => {
                tasks.spawn(options, |_| Box::pin(async { Ok(failure("This job always fails")) }))
            }
            "confirm_delete" => {
                let file = arguments["filename"].as_str().unwrap_or_default().to_owned();
                let question = ask(&confirm(format!("Delete {file}?")));
                tasks.spawn(options, move |task| {
                    Box::pin(async move {
                        let answer = task.request_input("confirm", question).await?;
                        let sure = answer["content"]["confirm"] == true;
                        Ok(text(format!("{} {file}", if sure { "Deleted" } else { "Kept" })))
                    })
                })
            }
            _ => {
                let name = ask(&form("What is your name?", CONTRACT["forms"]["name"].clone()));
                let sure = ask(&confirm("Are you sure?".to_owned()));
                tasks.spawn(options, move |task| {
                    Box::pin(async move {
                        let (name, sure) = tokio::join!(
                            task.request_input("name", name),
                            task.request_input("confirm", sure)
                        );
                        let (name, sure) = (name?, sure?);
                        let sure = if sure["content"]["confirm"] == true { "sure" } else { "not sure" };
                        Ok(text(format!(
                            "{} is {sure}",
                            name["content"]["name"].as_str().unwrap_or_default()
                        )))
                    })
                })
            }
        };
        Some(Ok(CreateTaskResult::new(task).into()))
    }
}
