//! Every bound in one place. A peer can make none of them larger.

use core::time::Duration;

/// Bounds on what a peer may make this side hold, with safe defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Longest message in bytes, without its line ending. 16 MiB.
    pub max_message: usize,
    /// Deepest nesting of arrays and objects in a message. 128.
    pub max_depth: usize,
    /// Most members in `params` or `_meta` of one message. 256.
    pub max_members: usize,
    /// Longest request id or progress token in bytes. 256.
    pub max_id: usize,
    /// Most requests of one connection that may be open at once; one more is refused. 256.
    pub max_in_flight: usize,
    /// Most messages in one 2025-03-26 batch. 64.
    pub max_batch: usize,
    /// Most open `subscriptions/listen` requests of one connection. 1,024.
    pub max_listens: usize,
    /// Most resource URIs one listen request or one legacy session may subscribe to. 1,024.
    pub max_subscribed_uris: usize,
    /// Longest resource URI in bytes that may be read or subscribed to. 8 KiB.
    pub max_uri: usize,
    /// Most requests this side may have open towards a legacy client. 64.
    pub max_client_requests: usize,
    /// Client: most calls that may be open at once, waiting ones included; one more is refused. 131,072.
    pub max_calls: usize,
    /// Client: most requests of a legacy server that may be open at once; one more is refused. 64.
    pub max_asks: usize,
    /// Client: most pages of one list. 1,000.
    pub max_pages: usize,
    /// Client: most tools of which definitions are kept. 4,096.
    pub max_tools: usize,
    /// Client: most bytes of tool definitions that are kept. 8 MiB.
    pub max_tool_bytes: usize,
    /// Client: most results that are kept for as long as their server says they are fresh. 256.
    pub max_cached: usize,
    /// Client: most bytes of such results and of what they are found by. 4 MiB.
    pub max_cached_bytes: usize,
    /// Rounds of questions within one call before it fails. 16.
    pub max_rounds: u32,
    /// How long a request may stay open before it is answered with an error; `None` = no bound.
    pub request_timeout: Option<Duration>,
    /// How long a legacy client may take to answer a request of ours; `None` = no bound. 10 minutes,
    /// for a person may be thinking.
    pub client_request_timeout: Option<Duration>,
    /// Longest `requestState` in bytes, made or taken. 64 KiB.
    pub max_state: usize,
    /// Most tasks at a time, of all requestors together. 4,096.
    pub max_tasks: usize,
    /// Most tasks of one requestor with a name at a time, ended ones included until they expire. 256.
    pub max_tasks_per_owner: usize,
    /// Longest time from the beginning of a task until it is gone, ended or not; `None` = no bound.
    /// 24 hours.
    pub max_task_ttl: Option<Duration>,
    /// Most questions that one task may ask in its life. 256.
    pub max_task_inputs: usize,
    /// Most legacy sessions over HTTP at a time; those that are idle longest make room for new ones. 10,000.
    pub max_sessions: usize,
    /// How long a legacy session over HTTP may go unused before it ends; `None` = no bound. 30 minutes.
    pub session_idle: Option<Duration>,
    /// Output that may wait before the driver should stop reading. 1 MiB.
    pub output_high_water: usize,
    /// Most bytes that a legacy HTTP session keeps so that a client can resume an event stream, a fixed
    /// cost for each event and stream included. What a connected client has yet to be sent is not part
    /// of it. A message that is larger is not kept at all. 256 KiB.
    pub event_log_bytes: usize,
    /// Most events that a legacy HTTP session keeps for the same purpose. 1,024.
    pub event_log_events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message: 16 << 20,
            max_depth: 128,
            max_members: 256,
            max_id: 256,
            max_in_flight: 256,
            max_batch: 64,
            max_listens: 1024,
            max_subscribed_uris: 1024,
            max_uri: 8 << 10,
            max_client_requests: 64,
            max_calls: 1 << 17,
            max_asks: 64,
            max_pages: 1000,
            max_tools: 4096,
            max_tool_bytes: 8 << 20,
            max_cached: 256,
            max_cached_bytes: 4 << 20,
            max_rounds: 16,
            request_timeout: None,
            client_request_timeout: Some(Duration::from_secs(600)),
            max_state: 64 << 10,
            max_tasks: 4096,
            max_tasks_per_owner: 256,
            max_task_ttl: Some(Duration::from_secs(24 * 60 * 60)),
            max_task_inputs: 256,
            max_sessions: 10_000,
            session_idle: Some(Duration::from_secs(30 * 60)),
            output_high_water: 1 << 20,
            event_log_bytes: 256 << 10,
            event_log_events: 1024,
        }
    }
}
