//! Calls that become tasks. [spec: extensions/tasks]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_proto::client::CallError;
use mcp_proto::client::request::{CallTool, GetTask};
use mcp_proto::model::{
    ElicitResult, InputResponses, Json, ProtocolVersion as V, TaskDetail, TaskStatus, TaskSupport,
};
use mcp_proto::service::client::Turn;
use mcp_proto::service::{NoArguments, Server, Service, tool};

use crate::basics::speaking;
use crate::rig::block_on;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    sure: bool,
}

fn service() -> Service {
    Server::new("tasks", "1")
        .add(tool("slow", |_, _: NoArguments| async { Ok("slow") }).task(TaskSupport::Required))
        .add(
            tool("asks", |ctx, _: NoArguments| async move {
                let first: Confirm = ctx.ask("first", "First?").await?;
                let second: Confirm = ctx.ask("second", "Second?").await?;
                Ok(format!("{} {}", first.sure, second.sure))
            })
            .task(TaskSupport::Required),
        )
        .add(
            tool("forever", |_, _: NoArguments| async {
                std::future::pending::<()>().await;
                Ok("never")
            })
            .task(TaskSupport::Required),
        )
        .build()
        .unwrap()
}

const WITH_TASKS: [V; 2] = [V::V2025_11_25, V::V2026_07_28];

/// C-TASK-01, C-TASK-04, LC-TASK-03: a call that becomes a task completes like any other.
#[test]
fn tasks_are_polled_to_their_end() {
    for version in WITH_TASKS {
        let mut seen = Vec::new();
        let result = block_on(speaking(version).in_memory(&service(), async |client| {
            // 2025-11-25 says in the list which tools must be tasks.
            client.tools().await?;
            client.call_tool("slow", ()).on_task(|task| seen.push(task.status)).await
        }));
        assert_eq!(result.unwrap().unwrap().texts(), "slow", "{version}");
        assert!(!seen.is_empty(), "{version}");
    }
}

/// C-TASK-07, C-TASK-10, C-TASK-12: each question of a task is answered once, by the same responders.
#[test]
fn questions_of_a_task_are_answered_once() {
    for version in WITH_TASKS {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let builder = speaking(version).on_elicit(move |form, cx| {
            log.lock().unwrap().push((form.message.to_string(), cx.is_of_task()));
            async { Ok(ElicitResult::accept_with(&Confirm { sure: true })?) }
        });
        let result = block_on(builder.in_memory(&service(), async |client| {
            client.tools().await?;
            client.call_tool("asks", ()).await
        }));
        assert_eq!(result.unwrap().unwrap().texts(), "true true", "{version}");
        let of_task = version.is_modern();
        let expected = [("First?".to_owned(), of_task), ("Second?".to_owned(), of_task)];
        assert_eq!(*asked.lock().unwrap(), expected, "{version}");
    }
}

#[test]
fn a_task_can_be_left_to_the_caller() {
    let status = block_on(speaking(V::LATEST).in_memory(&service(), async |client| {
        let turn = client.call(CallTool::new("slow")).by_hand().expose_task().await?;
        let Turn::Task(task) = turn else { panic!("{turn:?}") };
        let task = client.call(GetTask::new(task.task_id)).await?;
        assert!(matches!(task.detail, TaskDetail::Result(_)), "{task:?}");
        Ok::<_, CallError>(task.task.status)
    }));
    assert_eq!(status.unwrap().unwrap(), TaskStatus::Completed);
}

/// C-TASK-13: giving up a call that has become a task cancels the task.
#[test]
fn dropping_the_call_cancels_the_task() {
    for version in WITH_TASKS {
        let status = block_on(speaking(version).in_memory(&service(), async |client| {
            client.tools().await?;
            let id = Mutex::new(None);
            let mut call =
                client.call_tool("forever", ()).on_task(|task| *id.lock().unwrap() = Some(task.task_id));
            std::future::poll_fn(|cx| {
                let _ = std::pin::Pin::new(&mut call).poll(cx);
                if id.lock().unwrap().is_some() {
                    std::task::Poll::Ready(())
                } else {
                    std::task::Poll::Pending
                }
            })
            .await;
            drop(call);
            let id = id.into_inner().unwrap().unwrap();
            if version.is_modern() {
                client.call(GetTask::new(id)).await.map(|task| task.task.status)
            } else {
                client.call(mcp_proto::client::request::GetLegacyTask::new(id)).await.map(|task| task.status)
            }
        }));
        assert_eq!(status.unwrap().unwrap(), TaskStatus::Cancelled, "{version}");
    }
}

/// Time that takes minutes takes none here, and a bound on it holds.
#[test]
fn time_jumps_when_nothing_else_can_be_done() {
    let failed = block_on(speaking(V::LATEST).in_memory(&service(), async |client| {
        client.call_tool("forever", ()).max_time(Duration::from_secs(3600)).await
    }));
    assert!(matches!(failed.unwrap(), Err(CallError::TimedOut)));
}

/// C-TASK-05: a task that asks can be stored with its call, and goes on with the answers at hand.
#[test]
fn a_task_that_asks_is_parked_and_resumed() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let builder = speaking(V::LATEST).on_elicit(move |form, _| {
        log.lock().unwrap().push(form.message.to_string());
        async { Ok(ElicitResult::accept_with(&Confirm { sure: false })?) }
    });
    let result = block_on(builder.in_memory(&service(), async |client| {
        let turn = client.call_tool("asks", ()).by_hand().await?;
        let Turn::Input(paused) = turn else { panic!("{turn:?}") };
        assert!(paused.is_of_task() && paused.requests().contains("first"));
        let parked = paused.park().await?;
        assert!(parked.task_id().is_some());
        let answer = Json::parse(r#"{"action":"accept","content":{"sure":true}}"#).unwrap();
        let responses: InputResponses = [("first", answer)].into_iter().collect();
        client.resume::<CallTool>(parked, responses).await
    }));
    assert_eq!(result.unwrap().unwrap().texts(), "true false");
    assert_eq!(*asked.lock().unwrap(), ["Second?"]);
}
