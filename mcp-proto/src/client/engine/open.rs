//! Finding out what the server speaks. [spec: basic/versioning#dual-era]
//!
//! ```text
//!              ┌───────────── other version ─────────────┐
//!   Idle ──► Probing ── DiscoverResult ───────────────► Ready
//!              │ any other error, silence, end of stream   ▲
//!              └──────────────► Handshake ─────────────────┘
//! ```

use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::Engine;
use crate::client::config::{Mode, Verdict};
use crate::client::error::{CallError, VersionMismatch};
use crate::client::event::{Event, ServerFacts};
use crate::client::outbox::{Notice, Outbox, Purpose};
use crate::model::method::ServerMethod;
use crate::model::view::write_or_empty;
use crate::model::{DiscoverResult, InitializeResult, ProtocolVersion, ServerCapabilities, Str};
use crate::rpc::{self, Error, code, de, write_str};
use crate::time::Instant;

/// How far it is.
#[derive(Debug)]
pub(super) enum Phase {
    /// Not started, or the stream ended.
    Idle,
    /// `server/discover` is on its way.
    Probing { wire: i64, version: ProtocolVersion, due: Instant, tried: Vec<ProtocolVersion> },
    /// `initialize` is on its way.
    Handshake { wire: i64, version: ProtocolVersion, due: Instant, tried: Vec<ProtocolVersion> },
    /// It is known what the server speaks.
    Ready,
    /// The server cannot be used.
    Unusable(CallError),
}

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";
/// Most times that one revision is offered to a server that says it speaks it.
const MOST_TRIES: usize = 2;

impl Engine {
    /// Begins, or begins again on a new stream.
    pub(crate) fn start<O: Outbox>(&mut self, now: Instant, out: &mut O) -> Option<Event<'static>> {
        if !matches!(self.phase, Phase::Idle) {
            return None;
        }
        let modern = self.config.preferred_modern();
        let legacy = self.config.preferred_legacy();
        match (self.verdict.map(Verdict::version), modern, legacy) {
            (Some(version), ..) if self.config.modern().any(|ours| ours == version) => {
                // On another stream it is still the same server.
                let known = self.facts.take().filter(|facts| facts.version == version);
                Some(self.ready(known.unwrap_or_else(|| ServerFacts::bare(version)), now, out))
            }
            (Some(version), _, Some(_)) if self.config.legacy().any(|ours| ours == version) => {
                self.initialize(version, Vec::new(), now, out);
                None
            }
            (_, Some(version), _) => {
                self.probe(version, Vec::new(), now, out);
                None
            }
            (_, None, Some(version)) => {
                self.initialize(version, Vec::new(), now, out);
                None
            }
            (_, None, None) => Some(self.unusable(VersionMismatch::error("no revision", Vec::new()))),
        }
    }

    /// What the transport learned: the server does not know `server/discover`.
    pub(crate) fn fall_back<O: Outbox>(
        &mut self,
        reason: CallError,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'static>> {
        if let Phase::Probing { wire, .. } = self.phase {
            self.table.close_wire(wire);
        }
        // An assumed handshake that failed has had its turn.
        match self.config.preferred_legacy() {
            Some(version) => {
                self.initialize(version, Vec::new(), now, out);
                None
            }
            None if self.config.mode == Mode::Modern => Some(self.unusable(match reason {
                CallError::TimedOut | CallError::Closed => reason,
                _ => CallError::NotModern,
            })),
            None => Some(self.unusable(reason)),
        }
    }

    fn probe<O: Outbox>(
        &mut self,
        version: ProtocolVersion,
        mut tried: Vec<ProtocolVersion>,
        now: Instant,
        out: &mut O,
    ) {
        tried.push(version);
        let wire = self.send_own(Purpose::Probe, DISCOVER, version, "{}", out);
        // Silence is an answer where there is another handshake to go on with. Else a server that takes long to
        // start would be given up for nothing.
        let falls_back = !self.mirrors && self.config.preferred_legacy().is_some();
        let due = now + if falls_back { self.config.probe_timeout } else { self.config.handshake_timeout };
        self.phase = Phase::Probing { wire, version, due, tried };
    }

    pub(super) fn initialize<O: Outbox>(
        &mut self,
        version: ProtocolVersion,
        mut tried: Vec<ProtocolVersion>,
        now: Instant,
        out: &mut O,
    ) {
        tried.push(version);
        let mut params = Vec::new();
        params.extend_from_slice(b"{\"protocolVersion\":");
        write_str(&mut params, version.as_str());
        params.extend_from_slice(b",\"capabilities\":");
        write_or_empty(&mut params, version, &self.config.capabilities);
        params.extend_from_slice(b",\"clientInfo\":");
        write_or_empty(&mut params, version, &self.config.identity);
        params.push(b'}');
        let params = alloc::string::String::from_utf8(params).unwrap_or_default();
        let wire = self.send_own(Purpose::Handshake, INITIALIZE, version, &params, out);
        let due = now + self.config.handshake_timeout;
        self.phase = Phase::Handshake { wire, version, due, tried };
    }

    /// The answer to the probe, or its lack.
    pub(super) fn probed<'b, O: Outbox>(
        &mut self,
        outcome: Result<&'b RawValue, CallError>,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        let Phase::Probing { version, tried, .. } = &mut self.phase else { return None };
        let (version, tried) = (*version, core::mem::take(tried));
        match outcome {
            Ok(result) => match de::from_str::<DiscoverResult>(result.get()) {
                Ok(found) => self.discovered(&found, version, tried, now, out),
                // Something answers whatever it is asked. [spec: basic/versioning#dual-era]
                Err(fault) => self.fall_back(CallError::malformed(fault), now, out),
            },
            Err(CallError::Rpc(error)) if is_modern(&error) => {
                if error.code != code::UNSUPPORTED_PROTOCOL_VERSION {
                    // It knows the era and refuses to tell more: then the calls will see.
                    return Some(self.ready(ServerFacts::bare(version), now, out));
                }
                match supported(&error) {
                    Some(supported) => self.choose(supported, version, tried, now, out),
                    None => Some(self.unusable(CallError::Rpc(error))),
                }
            }
            Err(error) => self.fall_back(error, now, out),
        }
    }

    fn discovered<O: Outbox>(
        &mut self,
        found: &DiscoverResult,
        version: ProtocolVersion,
        tried: Vec<ProtocolVersion>,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'static>> {
        let chosen = self.config.modern().find(|ours| names(&found.supported_versions, *ours));
        match chosen {
            Some(chosen) => {
                let facts = ServerFacts::discovered(chosen, found);
                Some(self.ready(facts, now, out))
            }
            // A server that names no version at all answered this one.
            None if found.supported_versions.is_empty() => {
                let facts = ServerFacts::discovered(version, found);
                Some(self.ready(facts, now, out))
            }
            None => self.choose(found.supported_versions.clone(), version, tried, now, out),
        }
    }

    /// Goes on with what the server says it speaks; no revision is tried more than twice.
    fn choose<'b, O: Outbox>(
        &mut self,
        supported: Vec<Str>,
        version: ProtocolVersion,
        tried: Vec<ProtocolVersion>,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        // A server may refuse a revision and name it: behind one address there can be several.
        let times = |ours: &ProtocolVersion| tried.iter().filter(|tried| *tried == ours).count();
        let fresh = |ours: &ProtocolVersion| names(&supported, *ours) && times(ours) < MOST_TRIES;
        let modern = self.config.modern().find(fresh);
        let legacy = self.config.legacy().find(fresh);
        match (modern, legacy) {
            (Some(other), _) => self.probe(other, tried, now, out),
            // A server that serves both lists the revisions with a handshake too.
            (None, Some(other)) => self.initialize(other, tried, now, out),
            (None, None) => return Some(self.unusable(VersionMismatch::error(version.as_str(), supported))),
        }
        None
    }

    /// The answer to `initialize`, or its lack.
    pub(super) fn initialized<'b, O: Outbox>(
        &mut self,
        outcome: Result<&'b RawValue, CallError>,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'b>> {
        let Phase::Handshake { version, tried, .. } = &mut self.phase else { return None };
        let (version, tried) = (*version, core::mem::take(tried));
        match outcome {
            Ok(result) => {
                let found = match de::from_str::<InitializeResult>(result.get()) {
                    Ok(found) => found,
                    Err(fault) => return Some(self.unusable(CallError::malformed(fault))),
                };
                let theirs = ProtocolVersion::parse(&found.protocol_version);
                let Some(agreed) = theirs.filter(|theirs| self.config.legacy().any(|ours| ours == *theirs))
                else {
                    let answered = Vec::from([found.protocol_version]);
                    return Some(self.unusable(VersionMismatch::error(version.as_str(), answered)));
                };
                let notice = Notice { method: "notifications/initialized", version: agreed };
                let facts = ServerFacts {
                    version: agreed,
                    identity: Some(found.server_info),
                    capabilities: Some(found.capabilities),
                    instructions: found.instructions,
                };
                out.notification(&notice, |out| rpc::write_notification(out, notice.method, |_| {}));
                let logs = facts.capabilities.as_ref().is_some_and(ServerCapabilities::has_logging);
                let level = self.level.as_ref().filter(|_| logs).map(|(_, params)| params.clone());
                if let Some(params) = level {
                    // Of the session before nothing is left; calls that wait may change it again.
                    self.send_own(Purpose::Aside, ServerMethod::SetLevel.as_str(), agreed, &params, out);
                }
                Some(self.ready(facts, now, out))
            }
            Err(CallError::Rpc(error)) if supported(&error).is_some() => {
                let supported = supported(&error).unwrap_or_default();
                self.choose(supported, version, tried, now, out)
            }
            Err(error) => {
                // What was remembered may be out of date. [spec: basic/versioning#dual-era]
                let assumed = self.verdict.take().is_some();
                match self.config.preferred_modern() {
                    Some(modern) if assumed && !matches!(error, CallError::Closed) => {
                        self.probe(modern, tried, now, out);
                        None
                    }
                    _ => Some(self.unusable(error)),
                }
            }
        }
    }

    /// It is known what the server speaks: what waits is sent.
    pub(super) fn ready<O: Outbox>(
        &mut self,
        facts: ServerFacts,
        now: Instant,
        out: &mut O,
    ) -> Event<'static> {
        // The server is what was remembered: what it refused it may have done before, and is not asked for again.
        if let Some((call, refusal)) = self.doubted.take()
            && facts.version.is_modern()
            && self.queue.remove(&call)
        {
            self.table.remove(call);
            self.fail_later(call, refusal);
        }
        self.verdict = Some(Verdict::new(facts.version));
        self.facts = Some(facts);
        self.phase = Phase::Ready;
        while let Some(call) = self.queue.pop_first() {
            self.release(call, now, out);
        }
        Event::Ready
    }

    /// Nothing will come of this server.
    pub(super) fn unusable(&mut self, error: CallError) -> Event<'static> {
        self.phase = Phase::Unusable(error.clone());
        self.fail_all(&error, false);
        Event::Unusable(error)
    }

    /// Learns from a `server/discover` of the driver.
    pub(super) fn learn(&mut self, result: &RawValue) {
        if let Some(facts) = &mut self.facts
            && let Ok(found) = de::from_str::<DiscoverResult>(result.get())
        {
            *facts = ServerFacts::discovered(facts.version, &found);
        }
    }

    /// The server does not serve the version any more: goes on with another, if there is one.
    pub(super) fn renegotiate(&mut self, error: &Error) -> Option<ProtocolVersion> {
        let current = self.version()?;
        let supported = supported(error)?;
        let other = self.config.modern().find(|ours| *ours != current && names(&supported, *ours))?;
        self.verdict = Some(Verdict::new(other));
        if let Some(facts) = &mut self.facts {
            facts.version = other;
        }
        Some(other)
    }

    pub(super) fn opening_due(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Probing { due, .. } | Phase::Handshake { due, .. } => Some(*due),
            _ => None,
        }
    }

    /// The server took too long to say what it speaks. `initialize` is never cancelled, and the answer to a
    /// probe may still come: it is ignored.
    pub(super) fn opening_timed_out<O: Outbox>(
        &mut self,
        now: Instant,
        out: &mut O,
    ) -> Option<Event<'static>> {
        match self.phase {
            Phase::Probing { wire, version, .. } => {
                self.table.close_wire(wire);
                out.abandon(wire, version);
                if self.mirrors {
                    // Over HTTP silence says nothing about what a server speaks: an older one refuses.
                    return Some(self.unusable(CallError::TimedOut));
                }
                self.probed(Err(CallError::TimedOut), now, out)
            }
            Phase::Handshake { wire, version, .. } => {
                self.table.close_wire(wire);
                out.abandon(wire, version);
                self.initialized(Err(CallError::TimedOut), now, out)
            }
            _ => None,
        }
    }

    pub(super) fn stream_ended(&mut self) -> Option<Event<'static>> {
        self.table.forget_wires();
        self.asks.clear();
        self.cache.clear();
        match core::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Probing { .. } if self.config.preferred_legacy().is_some() => {
                // Some servers end at the first message they do not know.
                self.verdict = self.config.preferred_legacy().map(Verdict::new);
                Some(Event::Respawn)
            }
            // Others refuse it first, and end then: what was said after it they have not read.
            Phase::Handshake { version, .. }
                if self.verdict.is_none() && self.config.preferred_modern().is_some() =>
            {
                self.verdict = Some(Verdict::new(version));
                Some(Event::Respawn)
            }
            Phase::Unusable(error) => {
                self.phase = Phase::Unusable(error);
                None
            }
            Phase::Probing { .. } | Phase::Handshake { .. } if self.facts.is_none() => {
                Some(self.unusable(CallError::Closed))
            }
            // What it has done before it may do again.
            Phase::Probing { .. } | Phase::Handshake { .. } | Phase::Idle | Phase::Ready => {
                self.fail_all(&CallError::Closed, true);
                None
            }
        }
    }
}

impl ServerFacts {
    pub(super) const fn bare(version: ProtocolVersion) -> Self {
        Self { version, identity: None, capabilities: None, instructions: None }
    }

    fn discovered(version: ProtocolVersion, found: &DiscoverResult) -> Self {
        Self {
            version,
            identity: found.meta.as_ref().and_then(crate::model::Meta::server_info),
            capabilities: Some(found.capabilities.clone()),
            instructions: found.instructions.clone(),
        }
    }
}

fn names(supported: &[Str], version: ProtocolVersion) -> bool {
    supported.iter().any(|name| name == version.as_str())
}

/// Codes that only a server of 2026-07-28 has.
pub(crate) const fn is_modern(error: &Error) -> bool {
    matches!(
        error.code,
        code::UNSUPPORTED_PROTOCOL_VERSION | code::MISSING_REQUIRED_CLIENT_CAPABILITY | code::HEADER_MISMATCH
    )
}

/// The versions that a refusal names.
fn supported(error: &Error) -> Option<Vec<Str>> {
    #[derive(serde::Deserialize)]
    struct Data {
        supported: Vec<Str>,
    }
    let data: Data = de::from_str(error.data.as_ref()?.get()).ok()?;
    Some(data.supported)
}
