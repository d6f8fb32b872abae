//! What goes on under a request's key when a 2025-11-25 client has got its task.
//! [spec: 2025-11-25 basic/utilities/tasks#task-progress-notifications]

use alloc::string::String;
use alloc::vec::Vec;

use super::Connection;
use crate::model::ProtocolVersion;
use crate::rpc::{Members, ProgressToken};
use crate::server::channel::{Log, Progress, write_progress};
use crate::server::pending::{Delivery, RequestKey};

/// A request that was answered with a task: its token stays valid while the task goes on.
#[derive(Debug)]
pub(super) struct TaskLink {
    id: String,
    pub(super) progress_token: Option<ProgressToken>,
    progress: Option<f64>,
}

impl Connection {
    /// The task that a request of 2025-11-25 has become is over: nothing more is said of it.
    pub fn end_task(&mut self, key: RequestKey) {
        self.tasks.remove(&key);
    }

    /// Bounded, for the driver may forget to end them.
    pub(super) fn link_task(&mut self, key: RequestKey, task: &[u8]) {
        let id = core::str::from_utf8(task)
            .ok()
            .and_then(Members::from_json)
            .and_then(|task| Some(String::from(task.text("taskId").ok()??)));
        if self.tasks.len() < self.config.limits.max_tasks
            && let Some(id) = id
            && let Some(slot) = self.inflight.get_mut(key)
        {
            let (progress_token, progress) = (slot.progress_token.take(), slot.progress);
            self.tasks.insert(key, TaskLink { id, progress_token, progress });
        }
    }

    pub(super) fn task_progress(
        &mut self,
        key: RequestKey,
        progress: Progress<'_>,
        out: &mut Vec<u8>,
    ) -> Delivery {
        let Some(TaskLink { id, progress_token, progress: last }) = self.tasks.get_mut(&key) else {
            return Delivery::Discarded;
        };
        // The stream of the request ended with its answer.
        let written = self.routes.line_if(out, None, |out| {
            let (version, token) = (ProtocolVersion::V2025_11_25, progress_token.as_ref());
            write_progress(out, version, Some(id), token, last, progress).is_written()
        });
        if written {
            self.routes.tag(id, false);
            Delivery::Written
        } else {
            Delivery::Discarded
        }
    }

    pub(super) fn task_log(&mut self, key: RequestKey, log: Log<'_>, out: &mut Vec<u8>) -> Delivery {
        let Some(id) = self.tasks.get(&key).map(|task| task.id.clone()) else { return Delivery::Discarded };
        self.log_legacy(log, None, Some(&id), out)
    }
}
