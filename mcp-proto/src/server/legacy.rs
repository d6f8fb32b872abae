//! The session of a client that made a handshake: what it declared, what it subscribed to, and what it
//! was asked. Modern requests on the same stream never touch it.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde_json::value::RawValue;

use super::channel::{splice, write_related_task};
use super::config::{Config, write_or_empty};
use super::event::Resumed;
use super::features::ClientFeatures;
use super::pending::RequestKey;
use super::subscription::{Listen, Lists};
use crate::model::LoggingLevel;
use crate::model::method::ServerMethod;
use crate::model::{Implementation, InputRequest, ProtocolVersion, Str, TASKS_EXTENSION};
use crate::rpc::{
    Error, Members, Params, RequestId, Short, unfit, write_notification, write_request, write_str,
};
use crate::time::Instant;

/// The state of one handshake.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) version: ProtocolVersion,
    pub(crate) features: ClientFeatures,
    pub(crate) client: Implementation,
    /// The client said that the handshake is over.
    pub(crate) initialized: bool,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) listen: Listen,
    next_ask: i64,
    asks: BTreeMap<i64, Ask>,
    waits_for_clock: bool,
}

/// A request of ours that the client has not answered.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) request: Option<RequestKey>,
    deadline: Option<Instant>,
    /// It was asked where the time is not known: the deadline is counted from the next look at the clock.
    without_clock: bool,
    /// The key in `inputResponses` if the machine asked on behalf of a parked call.
    pub(crate) bridge: Option<Str>,
}

/// A call whose questions were sent to the client as requests.
#[derive(Debug)]
pub(crate) struct Parked {
    method: ServerMethod,
    /// The params as members, without the braces and without what a retry adds.
    members: String,
    answers: Vec<(Str, Box<str>)>,
    pub(crate) waiting: usize,
    pub(crate) rounds: u32,
    state: Option<Str>,
}

impl Session {
    /// Reads `initialize` and settles the version. [spec: 2025-11-25 basic/lifecycle]
    ///
    /// # Errors
    ///
    /// `-32602` if the params do not fit, `-32022` naming what is served if no revision with a handshake is.
    pub(crate) fn open(params: &Params<'_>, config: &Config) -> Result<Self, Error> {
        let members = params.members();
        let Some(latest) = config.latest_legacy() else {
            // Whatever else is wrong, the client learns what is spoken here. [spec: basic/versioning]
            let offered = members.text("protocolVersion").ok().flatten().unwrap_or_default();
            return Err(unsupported_version(config, ProtocolVersion::LATEST, &offered));
        };
        params.check()?;
        let offered = members.required_text("protocolVersion")?;
        let capabilities = members.required_object("capabilities")?;
        let features = ClientFeatures::from_json(capabilities.get())
            .ok_or_else(|| unfit("capabilities", "an object with distinct members", Some(capabilities)))?;
        let client = members.required_object("clientInfo")?;
        let client = crate::rpc::de::from_str(client.get()).map_err(|e| {
            Error::invalid_params(alloc::format!("Invalid params in /params/clientInfo: {e}"))
        })?;
        let version = config.served(&offered).filter(|v| !v.is_modern()).unwrap_or(latest);
        let has = &config.capabilities;
        let lists = Lists {
            tools: has.has_tools_list_changed(),
            prompts: has.has_prompts_list_changed(),
            resources: has.has_resources_list_changed(),
        };
        Ok(Self {
            version,
            // A capability counts only if the negotiated revision has it.
            features: features.of(version),
            client,
            initialized: false,
            log_level: None,
            listen: Listen::legacy(lists),
            next_ask: 0,
            asks: BTreeMap::new(),
            waits_for_clock: false,
        })
    }

    /// Appends the result of `initialize`.
    pub(crate) fn write_initialize_result(&self, config: &Config, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"protocolVersion\":");
        write_str(out, self.version.as_str());
        out.extend_from_slice(b",\"capabilities\":");
        if self.version.has_core_tasks() && config.capabilities.has_extension(TASKS_EXTENSION) {
            // Tasks are a capability here. The extension is one of 2026-07-28.
            let capabilities = config.capabilities.clone().without_extension(TASKS_EXTENSION);
            write_or_empty(out, self.version, &capabilities);
        } else {
            write_or_empty(out, self.version, &config.capabilities);
        }
        out.extend_from_slice(b",\"serverInfo\":");
        write_or_empty(out, self.version, &config.info);
        if let Some(instructions) = &config.instructions {
            out.extend_from_slice(b",\"instructions\":");
            write_str(out, instructions);
        }
        out.push(b'}');
    }

    pub(crate) fn open_asks(&self) -> usize {
        self.asks.len()
    }

    /// Whether the revision has words for a question.
    pub(crate) fn expresses(&self, request: &InputRequest) -> bool {
        request.write_params(&mut Vec::new(), self.version).is_ok()
    }

    /// Appends one question as a request and returns its number. With the id of a task it is tied to it.
    /// The revision [must express](Self::expresses) it.
    pub(crate) fn ask(
        &mut self,
        ask: Ask,
        request: &InputRequest,
        task: Option<&str>,
        out: &mut Vec<u8>,
    ) -> i64 {
        let number = self.register(ask);
        let version = self.version;
        write_request(out, &number.into(), request.method(), |out| {
            let start = out.len();
            if let Some(task) = task {
                out.push(b'{');
                write_related_task(out, task);
                out.push(b'}');
            }
            splice(out, start, |out| request.write_params(out, version).is_ok());
        });
        number
    }

    /// Appends a `ping` and returns its number.
    pub(crate) fn ping(&mut self, deadline: Option<Instant>, out: &mut Vec<u8>) -> i64 {
        let number = self.register(Ask::new(None, deadline));
        write_request(out, &number.into(), "ping", |_| {});
        number
    }

    fn register(&mut self, ask: Ask) -> i64 {
        self.next_ask += 1;
        self.waits_for_clock |= ask.without_clock;
        self.asks.insert(self.next_ask, ask);
        self.next_ask
    }

    /// Nothing that was asked will be answered.
    pub(crate) fn forget_asks(&mut self) -> impl Iterator<Item = Ask> + use<> {
        core::mem::take(&mut self.asks).into_values()
    }

    /// Takes the request of ours that a response answers.
    pub(crate) fn answered(&mut self, id: &RequestId) -> Option<(i64, Ask)> {
        let number = id.as_i64()?;
        Some((number, self.asks.remove(&number)?))
    }

    /// Whether there are questions whose time has not begun.
    pub(crate) fn waits_for_clock(&self) -> bool {
        self.waits_for_clock && !self.asks.is_empty()
    }

    /// Lets the time of such questions begin.
    pub(crate) fn start_clocks(&mut self, now: Instant, timeout: Option<Duration>) {
        if core::mem::take(&mut self.waits_for_clock) {
            for ask in self.asks.values_mut().filter(|ask| ask.without_clock) {
                ask.without_clock = false;
                ask.deadline = timeout.map(|timeout| now + timeout);
            }
        }
    }

    /// The earliest deadline of a request of ours.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.asks.values().filter_map(|ask| ask.deadline).min()
    }

    /// Gives up one request of ours that is due. The client is to be told.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<(i64, Ask)> {
        let number = *self.asks.iter().find(|(_, ask)| ask.deadline.is_some_and(|d| d <= now))?.0;
        Some((number, self.asks.remove(&number)?))
    }

    /// Withdraws the questions of a call that is over; `frame` wraps one message.
    pub(crate) fn withdraw(&mut self, request: RequestKey, mut frame: impl FnMut(i64)) {
        self.asks.retain(|number, ask| {
            let keep = ask.request != Some(request);
            if !keep {
                frame(*number);
            }
            keep
        });
    }
}

impl Ask {
    pub(crate) const fn new(request: Option<RequestKey>, deadline: Option<Instant>) -> Self {
        Self { request, deadline, without_clock: false, bridge: None }
    }

    /// A question of a parked call, by its key in `inputResponses`.
    pub(crate) const fn without_clock(request: RequestKey, key: Str) -> Self {
        Self { request: Some(request), deadline: None, without_clock: true, bridge: Some(key) }
    }
}

impl Parked {
    /// Keeps the params of a call whose answer may be questions.
    pub(crate) fn new(method: ServerMethod, params: &Members<'_>) -> Self {
        // Two quotes, a colon and a comma for each; escapes in names are rare.
        let len = params.iter().map(|(name, value)| name.len() + value.get().len() + 4).sum();
        let mut members = Vec::with_capacity(len);
        for (name, value) in params.iter() {
            if matches!(name, "inputResponses" | "requestState") {
                continue;
            }
            write_str(&mut members, name);
            members.push(b':');
            members.extend_from_slice(value.get().as_bytes());
            members.push(b',');
        }
        Self {
            method,
            members: String::from_utf8(members).unwrap_or_default(),
            answers: Vec::new(),
            waiting: 0,
            rounds: 0,
            state: None,
        }
    }

    /// A new round of questions. Answers of earlier rounds are in the state, if the handler put them there.
    pub(crate) fn begin_round(&mut self, questions: usize, state: Option<Str>) {
        self.waiting = questions;
        self.rounds += 1;
        self.state = state;
        self.answers.clear();
    }

    /// Takes one answer. Whether it was the last.
    pub(crate) fn take_answer(&mut self, key: Str, answer: &RawValue) -> bool {
        self.answers.push((key, answer.get().into()));
        self.waiting = self.waiting.saturating_sub(1);
        self.waiting == 0
    }

    /// The call with its answers.
    pub(crate) fn resume(
        &self,
        key: RequestKey,
        version: ProtocolVersion,
        features: ClientFeatures,
    ) -> Resumed {
        let mut params = Vec::with_capacity(self.members.len() + 64);
        params.push(b'{');
        params.extend_from_slice(self.members.as_bytes());
        if let Some(state) = &self.state {
            params.extend_from_slice(b"\"requestState\":");
            write_str(&mut params, state);
            params.push(b',');
        }
        params.extend_from_slice(b"\"inputResponses\":{");
        for (at, (name, answer)) in self.answers.iter().enumerate() {
            if at > 0 {
                params.push(b',');
            }
            write_str(&mut params, name);
            params.push(b':');
            params.extend_from_slice(answer.as_bytes());
        }
        params.extend_from_slice(b"}}");
        Resumed {
            key,
            method: self.method,
            params: String::from_utf8(params).unwrap_or_default(),
            version,
            features,
        }
    }
}

/// Appends `notifications/cancelled` for a request of ours.
pub(crate) fn write_cancelled(out: &mut Vec<u8>, number: i64, reason: &str) {
    write_notification(out, "notifications/cancelled", |out| {
        out.extend_from_slice(b"{\"requestId\":");
        RequestId::from(number).write(out);
        out.extend_from_slice(b",\"reason\":");
        write_str(out, reason);
        out.push(b'}');
    });
}

/// The refusal of a version, naming those that are served.
pub(crate) fn unsupported_version(config: &Config, version: ProtocolVersion, requested: &str) -> Error {
    let mut data = Vec::new();
    data.extend_from_slice(b"{\"supported\":[");
    let mut names = String::new();
    for (at, served) in config.versions.iter().enumerate() {
        if at > 0 {
            data.push(b',');
            names.push_str(", ");
        }
        write_str(&mut data, served.as_str());
        names.push_str(served.as_str());
    }
    data.extend_from_slice(b"],\"requested\":");
    write_str(&mut data, &alloc::format!("{}", Short(requested)));
    data.push(b'}');
    let error = Error::new(
        version.unsupported_version_code(),
        alloc::format!("Unsupported protocol version; this server speaks {names}"),
    );
    match serde_json::from_slice::<&RawValue>(&data) {
        Ok(data) => error.with_data(data),
        Err(_) => error,
    }
}
