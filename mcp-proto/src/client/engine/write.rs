//! Requests as they go out: the params of the caller, what a retry adds, and `_meta` by era.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::table::Call;
use crate::client::config::{Config, write_modern_meta};
use crate::client::error::CallError;
use crate::model::meta::key;
use crate::model::{Meta, ProtocolVersion, view};
use crate::rpc::{self, Params, RequestId, write_str};

/// The params of a request as one object, and the `_meta` that stood in it.
pub(crate) fn params<T: Serialize + ?Sized>(
    value: &T,
    version: ProtocolVersion,
) -> Result<(String, Option<Meta>), CallError> {
    // Most fit, and grow no further.
    let mut out = Vec::with_capacity(256);
    view::write(&mut out, version, value)?;
    let text = String::from_utf8(out).map_err(CallError::malformed_params)?;
    // A raw value of the caller may hold spaces around, and line breaks, which would end the message.
    let text = if text.starts_with('{') && memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
        text
    } else {
        let raw = crate::model::Json::parse(text.trim()).map_err(CallError::malformed_params)?;
        if !raw.is_object() {
            return Err(CallError::malformed_params("the params must be an object"));
        }
        String::from(raw.get())
    };
    if !text.contains("_meta") && !text.contains("\\u") {
        return Ok((text, None));
    }
    let split = Params::from_json(&text)
        .ok_or_else(|| CallError::malformed_params("the params must be an object"))?;
    split.check().map_err(CallError::malformed_params)?;
    if !split.has_meta() {
        return Ok((text, None));
    }
    let meta = split
        .meta()
        .iter()
        .map(|(name, value)| {
            (String::from(name), crate::model::Json::from(alloc::borrow::ToOwned::to_owned(value)))
        })
        .collect();
    Ok((split.to_json(), Some(meta)))
}

/// Appends the request of a call.
pub(crate) fn call(config: &Config, call: &Call, wire: i64, version: ProtocolVersion, out: &mut Vec<u8>) {
    request(out, wire, &call.method, version, |members| {
        members.object(&call.params);
        if let Some(retry) = &call.retry {
            if let Some(responses) = &retry.responses {
                members.name("inputResponses");
                members.out.extend_from_slice(responses.as_bytes());
            }
            if let Some(state) = &retry.state {
                members.name("requestState");
                write_str(members.out, state);
            }
        }
        if call.asks_task {
            members.name("task");
            let mut task = Object::begin(members.out);
            if let Some(ttl) = call.how.task_ttl_ms {
                task.name("ttl");
                task.out.extend_from_slice(itoa::Buffer::new().format(ttl).as_bytes());
            }
            task.end();
        }
        let token = call.how.progress.then_some(wire);
        meta(config, call, token, version, members);
    });
}

fn meta(
    config: &Config,
    call: &Call,
    token: Option<i64>,
    version: ProtocolVersion,
    members: &mut Object<'_>,
) {
    let own = call.how.meta.as_deref().filter(|meta| !meta.is_empty());
    if !version.is_modern() && own.is_none() && token.is_none() {
        return;
    }
    members.name("_meta");
    let mut object = Object::begin(members.out);
    if version.is_modern() {
        object.next();
        write_modern_meta(config, version, object.out);
        if let Some(level) = call.how.log_level {
            object.name(key::LOG_LEVEL);
            write_str(object.out, level.as_str());
        }
    }
    if let Some(token) = token {
        object.name(key::PROGRESS_TOKEN);
        RequestId::from(token).write(object.out);
    }
    for (name, value) in own.into_iter().flat_map(Meta::iter) {
        // What the machine sets is not the caller's.
        if !matches!(
            name,
            key::PROTOCOL_VERSION
                | key::CLIENT_INFO
                | key::CLIENT_CAPABILITIES
                | key::LOG_LEVEL
                | key::PROGRESS_TOKEN
        ) {
            object.name(name);
            object.out.extend_from_slice(value.get().as_bytes());
        }
    }
    object.end();
}

/// Appends a request of the machine itself; `params` adds members besides `_meta`.
pub(crate) fn own(
    config: &Config,
    wire: i64,
    method: &str,
    version: ProtocolVersion,
    out: &mut Vec<u8>,
    params: &str,
) {
    request(out, wire, method, version, |members| {
        members.object(params);
        if version.is_modern() {
            members.name("_meta");
            members.out.push(b'{');
            write_modern_meta(config, version, members.out);
            members.out.push(b'}');
        }
    });
}

/// Without any params there is none: the legacy revisions leave it out.
fn request(
    out: &mut Vec<u8>,
    wire: i64,
    method: &str,
    version: ProtocolVersion,
    params: impl FnOnce(&mut Object<'_>),
) {
    rpc::write_request(out, &wire.into(), method, |out| {
        let start = out.len();
        let mut members = Object::begin(out);
        params(&mut members);
        if members.empty && !version.is_modern() {
            members.out.truncate(start);
        } else {
            members.end();
        }
    });
}

/// An object that is being written.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> Object<'o> {
    fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    fn next(&mut self) {
        if !core::mem::replace(&mut self.empty, false) {
            self.out.push(b',');
        }
    }

    fn name(&mut self, name: &str) {
        self.next();
        write_str(self.out, name);
        self.out.push(b':');
    }

    /// The members of another object, given as its text.
    fn object(&mut self, text: &str) {
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default().trim();
        if !inner.is_empty() {
            self.next();
            self.out.extend_from_slice(inner.as_bytes());
        }
    }

    fn end(self) {
        self.out.push(b'}');
    }
}
