//! Whether a request is served, by the rules of its era, and what the machine answers itself.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Connection;
use crate::model::meta::key as meta_key;
use crate::model::method::{ServerMethod, decode_level};
use crate::model::{LoggingLevel, ProtocolVersion};
use crate::rpc::{self, Error, Params, PointerToken, RequestId, str_from_json};
use crate::server::channel::write_result;
use crate::server::config::Config;
use crate::server::event::{Event, Incoming};
use crate::server::features::ClientFeatures;
use crate::server::inflight::{Kind, Slot};
use crate::server::legacy::{Parked, Session, unsupported_version};
use crate::server::pending::Pending;
use crate::server::route::End;
use crate::time::Instant;

impl Connection {
    pub(super) fn request<'b>(
        &mut self,
        id: RequestId,
        method: Cow<'b, str>,
        params: Params<'b>,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<Event<'b>> {
        let known = ServerMethod::parse(&method);
        // A server of handshakes only does not know what the stamp means.
        let stamped = self.modern
            || (self.config.is_modern() && params.meta().get(meta_key::PROTOCOL_VERSION).is_some());
        let admitted = if stamped {
            self.admit_modern(&params)
        } else if known == Some(ServerMethod::Initialize) {
            return self.initialize(id, &params, out);
        } else {
            self.admit_legacy(known, &params)
        };
        let (version, features) = match admitted {
            Ok(admitted) => admitted,
            Err(error) => return Some(self.reject(Some(id), error, out)),
        };
        if version.is_modern() && self.batches.current().is_some() {
            let error = Error::invalid_request("Invalid request: its revision has no batches");
            return Some(self.reject(Some(id), error, out));
        }
        if known.is_some_and(|known| !self.config.offers(version, known)) {
            return Some(self.reject(Some(id), Error::method_not_found(&method), out));
        }
        if let Err(error) = params.check() {
            return Some(self.reject(Some(id), error, out));
        }
        if self.inflight.find(&id).is_some() {
            let error =
                Error::invalid_request("Invalid request: the id belongs to a request that is still open");
            return Some(self.reject(Some(id), error, out));
        }
        if let Some(known) = known
            && let Some(answer) = self.answer_here(known, version, &params)
        {
            return match answer {
                Ok(body) => {
                    let slot = self.slot_of(id, version, features, &params, None);
                    let (config, routes) = (&self.config, &mut self.routes);
                    self.batches.answer(slot.batch, slot.stream, routes, out, |out| {
                        write_result_of_machine(out, &slot, config, body)
                    });
                    None
                }
                Err(error) => Some(self.reject(Some(id), error, out)),
            };
        }
        if self.inflight.len() - self.listens >= self.config.limits.max_in_flight {
            let error =
                Error::new(rpc::code::INTERNAL_ERROR, "Too many requests are open on this connection");
            return Some(self.reject(Some(id), error, out));
        }
        if known == Some(ServerMethod::Listen) && self.closed {
            let error = Error::new(rpc::code::INTERNAL_ERROR, "The server is closing");
            return Some(self.reject(Some(id), error, out));
        }
        let kind = match self.kind_of(known, version, &params) {
            Ok(kind) => kind,
            Err(error) => return Some(self.reject(Some(id), error, out)),
        };
        // A subscription is meant to stay open.
        let timeout = self.config.limits.request_timeout.filter(|_| known != Some(ServerMethod::Listen));
        let mut slot = self.slot_of(id, version, features, &params, timeout.map(|t| now + t));
        slot.kind = kind;
        self.batches.opened(slot.batch);
        let key = self.inflight.insert(slot);
        Some(Event::Request(Incoming { pending: Pending::new(key), method, params, version, features }))
    }

    /// What 2026-07-28 demands of every request. [spec: basic#meta]
    fn admit_modern(&self, params: &Params<'_>) -> Result<(ProtocolVersion, ClientFeatures), Error> {
        params.check()?;
        let meta = params.meta();
        let missing = |name: &str, expected: &str| {
            Error::invalid_params(alloc::format!(
                "Invalid params at /params/_meta/{}: expected {expected}",
                PointerToken(name)
            ))
        };
        let version = meta
            .get(meta_key::PROTOCOL_VERSION)
            .and_then(|raw| str_from_json(raw.get()))
            .ok_or_else(|| missing(meta_key::PROTOCOL_VERSION, "a string"))?;
        let features = meta
            .get(meta_key::CLIENT_CAPABILITIES)
            .filter(|raw| raw.get().starts_with('{'))
            .and_then(|raw| ClientFeatures::from_json(raw.get()))
            .ok_or_else(|| missing(meta_key::CLIENT_CAPABILITIES, "an object"))?;
        if let Some(level) = meta.get(meta_key::LOG_LEVEL)
            && level.get() != "null"
            && str_from_json(level.get()).and_then(|level| LoggingLevel::parse(&level)).is_none()
        {
            return Err(missing(meta_key::LOG_LEVEL, "a logging level such as \"info\""));
        }
        match self.config.served(&version) {
            Some(served) if served.is_modern() => Ok((served, features)),
            _ => Err(unsupported_version(&self.config, ProtocolVersion::LATEST, &version)),
        }
    }

    /// What the session knows. Before it, only `ping` is served.
    fn admit_legacy(
        &self,
        known: Option<ServerMethod>,
        params: &Params<'_>,
    ) -> Result<(ProtocolVersion, ClientFeatures), Error> {
        match (&self.session, self.config.latest_legacy()) {
            (Some(session), _) => Ok((session.version, session.features)),
            (None, Some(latest)) if known == Some(ServerMethod::Ping) => {
                Ok((latest, ClientFeatures::default()))
            }
            (None, Some(latest)) if !self.config.is_modern() => match known {
                Some(known) if !latest.has_method(known) => Err(Error::method_not_found(known.as_str())),
                _ => Err(Error::invalid_params("Invalid params: expected `initialize` first")),
            },
            (None, _) => {
                params.check()?;
                Err(Error::invalid_params(alloc::format!(
                    "Invalid params at /params/_meta/{}: expected a protocol version, or `initialize` first",
                    PointerToken(meta_key::PROTOCOL_VERSION)
                )))
            }
        }
    }

    /// The methods that the machine answers itself.
    fn answer_here(
        &mut self,
        method: ServerMethod,
        version: ProtocolVersion,
        params: &Params<'_>,
    ) -> Option<Result<Body, Error>> {
        match method {
            ServerMethod::Discover => Some(Ok(Body::Discover)),
            ServerMethod::Ping => Some(Ok(Body::Empty)),
            ServerMethod::SetLevel if !version.is_modern() => {
                Some(decode_level(params.members()).map(|level| {
                    if let Some(session) = &mut self.session {
                        session.log_level = Some(level);
                    }
                    Body::Empty
                }))
            }
            _ => None,
        }
    }

    fn initialize(
        &mut self,
        id: RequestId,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'static>> {
        if self.session.is_some() {
            let error = Error::invalid_request("Invalid request: the session is initialized already");
            return Some(self.reject(Some(id), error, out));
        }
        if self.inflight.find(&id).is_some() {
            let error =
                Error::invalid_request("Invalid request: the id belongs to a request that is still open");
            return Some(self.reject(Some(id), error, out));
        }
        match Session::open(params, &self.config) {
            Ok(session) => {
                let stream = self.routes.current();
                self.routes.last(out, stream, |out| {
                    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                    id.write(out);
                    out.extend_from_slice(b",\"result\":");
                    session.write_initialize_result(&self.config, out);
                    out.push(b'}');
                    End::Done
                });
                self.session = Some(session);
                None
            }
            Err(error) => Some(self.reject(Some(id), error, out)),
        }
    }

    fn slot_of(
        &self,
        id: RequestId,
        version: ProtocolVersion,
        features: ClientFeatures,
        params: &Params<'_>,
        deadline: Option<Instant>,
    ) -> Slot {
        let meta = params.meta();
        let text = |name: &str| meta.get(name).and_then(|raw| str_from_json(raw.get()));
        Slot {
            id,
            version,
            features,
            progress_token: meta
                .get(meta_key::PROGRESS_TOKEN)
                .and_then(|raw| RequestId::parse(raw.get(), self.config.limits.max_id)),
            progress: None,
            log_level: if version.is_modern() {
                text(meta_key::LOG_LEVEL).and_then(|level| LoggingLevel::parse(&level))
            } else {
                None
            },
            asks_task: version.has_core_tasks()
                && params.members().get("task").is_some_and(|task| task.get().starts_with('{')),
            deadline,
            batch: self.batches.current(),
            stream: self.routes.current(),
            kind: Kind::Call,
        }
    }

    fn kind_of(
        &self,
        method: Option<ServerMethod>,
        version: ProtocolVersion,
        params: &Params<'_>,
    ) -> Result<Kind, Error> {
        use ServerMethod as M;
        Ok(match method {
            Some(method @ (M::CallTool | M::GetPrompt | M::ReadResource))
                if self.config.bridge_input && !version.is_modern() =>
            {
                Kind::Bridged(Box::new(Parked::new(method, params.members())))
            }
            Some(method @ (M::Subscribe | M::Unsubscribe)) => {
                let uri = params.members().required_text("uri")?;
                let limits = &self.config.limits;
                if uri.len() > limits.max_uri {
                    return Err(Error::invalid_params("Invalid params at /params/uri: too long"));
                }
                if method == M::Subscribe && !self.has_room_for(&uri) {
                    return Err(Error::invalid_params("Too many resources are subscribed to"));
                }
                Kind::Subscribe { uri: uri.into(), on: method == M::Subscribe }
            }
            _ => Kind::Call,
        })
    }

    /// Whether the session may subscribe to one more resource. Those that are about to be granted count.
    fn has_room_for(&self, uri: &str) -> bool {
        let Some(session) = &self.session else { return false };
        let about_to = self.inflight.slots().filter(|s| matches!(s.kind, Kind::Subscribe { on: true, .. }));
        session.listen.subscribes_to(uri)
            || session.listen.uri_count() + about_to.count() < self.config.limits.max_subscribed_uris
    }
}

/// The results that the machine writes itself.
enum Body {
    Empty,
    Discover,
}

fn write_result_of_machine(out: &mut Vec<u8>, slot: &Slot, config: &Config, body: Body) -> End {
    match body {
        Body::Empty => write_result(out, slot, config, "complete", None, |out| {
            out.extend_from_slice(b"{}");
            true
        }),
        Body::Discover => {
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            slot.id.write(out);
            out.extend_from_slice(b",\"result\":{\"resultType\":\"complete\",");
            out.extend_from_slice(&config.discover);
            out.extend_from_slice(b"}}");
            End::Done
        }
    }
}
