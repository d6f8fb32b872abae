//! What a server says that answers nothing: kept until a step asks for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_proto::client::Change;
use mcp_proto::service::client::Heard as Told;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Most notifications and log messages that are kept.
const MOST: usize = 10_000;

/// Notifications and log messages, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    kept: Mutex<Kept>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    notifications: Vec<(String, Value)>,
    logs: Vec<Value>,
}

impl Heard {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn notification(&self, method: impl Into<String>, params: Value) {
        let mut kept = self.lock();
        if kept.notifications.len() < MOST {
            kept.notifications.push((method.into(), params));
        }
        drop(kept);
        self.0.news.notify_waiters();
    }

    pub(super) fn log(&self, message: Value) {
        let mut kept = self.lock();
        if kept.logs.len() < MOST {
            kept.logs.push(message.clone());
        }
        drop(kept);
        self.notification("notifications/message", message);
    }

    pub(super) fn change(&self, change: &Change) {
        match change {
            Change::Tools => self.notification("notifications/tools/list_changed", json!({})),
            Change::Prompts => self.notification("notifications/prompts/list_changed", json!({})),
            Change::Resources => self.notification("notifications/resources/list_changed", json!({})),
            Change::Resource(uri) => {
                self.notification("notifications/resources/updated", json!({"uri": uri}));
            }
            _ => {}
        }
    }

    pub(super) fn told(&self, told: &Told) {
        match told {
            Told::Changed(change) => self.change(change),
            Told::Task(task) => {
                self.notification("notifications/tasks", serde_json::to_value(task).unwrap_or_default());
            }
            _ => {}
        }
    }

    /// The log messages so far: those of a step come after.
    pub(super) fn logged(&self) -> usize {
        self.lock().logs.len()
    }

    pub(super) fn logs_since(&self, mark: usize) -> Vec<Value> {
        self.lock().logs.get(mark..).map(<[Value]>::to_vec).unwrap_or_default()
    }

    /// The params of the next notification with this method that was not told yet.
    pub(super) async fn watch(&self, method: &str) -> Value {
        loop {
            let news = self.0.news.notified();
            let mut news = std::pin::pin!(news);
            // Registered before it is looked: what comes in between wakes.
            news.as_mut().enable();
            if let Some(params) = self.take(method) {
                return params;
            }
            news.await;
        }
    }

    fn take(&self, method: &str) -> Option<Value> {
        let notifications = &mut self.lock().notifications;
        let at = notifications.iter().position(|(name, _)| name == method)?;
        Some(notifications.remove(at).1)
    }
}
