//! Calls that wait outside of the machine.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::model::{InputRequests, Str};
use crate::rpc::de::{self, DecodeError};

/// A call that waits for input, or that has become a task, taken out of the machine with
/// [`park`](super::Connection::park). It can be stored, and
/// [resumed](super::Connection::resume) by another process, even on another connection to the same server.
/// [spec: basic/patterns/mrtr]
///
/// It holds the params of the call and what the server gave to be echoed: treat it like both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Parked {
    pub(crate) method: Str,
    pub(crate) params: String,
    pub(crate) subject: Option<String>,
    pub(crate) requests: String,
    pub(crate) state: Option<Str>,
    pub(crate) task_id: Option<Str>,
    pub(crate) rounds: u32,
}

impl Parked {
    /// The method of the call.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// What is asked; nothing if the call is a task.
    ///
    /// # Errors
    ///
    /// It was changed where it was stored.
    pub fn requests(&self) -> Result<InputRequests, DecodeError> {
        de::from_str(&self.requests)
    }

    /// The task, if the call has become one.
    #[must_use]
    pub fn task_id(&self) -> Option<&str> {
        self.task_id.as_deref()
    }
}
