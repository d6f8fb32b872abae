//! The envelope: what is taken for a message is one, can be written and read again, and does not depend on
//! the order of its members.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_proto::limits::Limits;
use mcp_proto::rpc::{
    Error, Malformed, Members, Message, Params, Parsed, RequestId, code, parse, write_error,
    write_notification, write_request, write_str,
};
use mcp_proto_fuzz::{Entries, Input, shuffle};
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let (bounds, order) = (input.byte(), input.byte());
    let frame = input.rest();
    let limits = limits(bounds);
    let found = view(&limits, frame);

    // RFC 8259 by another reader. It refuses some texts that the grammar allows (half characters, numbers
    // out of range, deep nesting), which this one may take.
    let text = str::from_utf8(frame);
    let value = text.ok().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let is_json = text.is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    match &found {
        View::Malformed { code: code::PARSE_ERROR, id, is_response, .. } => {
            assert!(value.is_none(), "this is JSON");
            assert!(id.is_none() && !is_response);
        }
        View::Malformed { code, .. } => assert!(is_json && *code == code::INVALID_REQUEST),
        _ => assert!(is_json, "this is no JSON"),
    }
    let Ok(text) = text else { return };
    if let Some(value) = &value {
        agrees(&found, value, text);
    }

    match &found {
        View::Batch(items) => {
            assert!(!items.is_empty() && items.len() <= limits.max_batch);
            for item in items {
                let _ = view(&limits, item.as_bytes());
            }
        }
        View::Malformed { .. } => {}
        message => {
            let again = message.write();
            assert_eq!(view(&limits, again.as_bytes()), *message, "{again}");
        }
    }

    let Ok(members) = serde_json::from_str::<Entries>(text) else { return };
    let mut shuffled = members.clone();
    shuffle(&mut shuffled.0, order);
    let other = view(&limits, shuffled.write(order, 2).as_bytes());
    if members.is_unique() {
        assert_eq!(other, found, "{}", shuffled.write(order, 2));
    } else {
        assert!(matches!(other, View::Malformed { .. }) == matches!(found, View::Malformed { .. }));
    }
});

fn limits(choice: u8) -> Limits {
    let mut limits = Limits::default();
    if choice & 1 != 0 {
        // Absent params are written as an empty object.
        limits.max_depth = 2 + usize::from(choice >> 4);
        limits.max_members = usize::from(choice >> 2);
        limits.max_id = usize::from(choice >> 3);
        limits.max_batch = usize::from(choice >> 5);
    }
    limits
}

/// All that can be seen of a frame, owned and in an order of its own.
#[derive(Debug, PartialEq)]
enum View {
    Request { id: RequestId, method: String, params: Seen },
    Notification { method: String, params: Seen },
    Result { id: RequestId, result: String },
    Error { id: Option<RequestId>, code: i32, message: String, data: Option<String> },
    Batch(Vec<String>),
    Malformed { id: Option<RequestId>, code: i32, message: String, is_response: bool },
}

/// Params that can be used, or why they cannot.
type Seen = Result<Usable, i32>;

#[derive(Debug, PartialEq)]
struct Usable {
    members: Vec<(String, String)>,
    meta: Option<Vec<(String, String)>>,
}

fn view(limits: &Limits, frame: &[u8]) -> View {
    match parse(frame, limits) {
        Ok(Parsed::Message(Message::Request { id, method, params })) => {
            View::Request { id, method: method.into_owned(), params: seen(&params) }
        }
        Ok(Parsed::Message(Message::Notification { method, params })) => {
            View::Notification { method: method.into_owned(), params: seen(&params) }
        }
        Ok(Parsed::Message(Message::Result { id, result })) => {
            View::Result { id, result: result.get().to_owned() }
        }
        Ok(Parsed::Message(Message::Error { id, error: Error { code, message, data, .. } })) => {
            let data = data.map(|data| data.get().to_owned());
            View::Error { id, code, message: message.into_owned(), data }
        }
        Ok(Parsed::Batch(batch)) => View::Batch(batch.map(|item| item.get().to_owned()).collect()),
        Ok(other) => panic!("unknown: {other:?}"),
        Err(Malformed { id, error, is_response, .. }) => {
            // Where a text stops being JSON depends on its order.
            let message = if error.code == code::PARSE_ERROR { "".into() } else { error.message };
            View::Malformed { id, code: error.code, message: message.into_owned(), is_response }
        }
    }
}

fn seen(params: &Params<'_>) -> Seen {
    params.check().map_err(|error| error.code)?;
    let sorted = |members: &Members<'_>| {
        let mut all: Vec<_> =
            members.iter().map(|(name, value)| (name.to_owned(), value.get().to_owned())).collect();
        all.sort();
        assert!(all.iter().all(|(name, value)| members.get(name).is_some_and(|found| found.get() == value)));
        all
    };
    Ok(Usable { members: sorted(params.members()), meta: params.has_meta().then(|| sorted(params.meta())) })
}

impl View {
    fn write(&self) -> String {
        let mut out = Vec::new();
        match self {
            Self::Request { id, method, params } => {
                write_request(&mut out, id, method, |out| write_params(out, params));
            }
            Self::Notification { method, params } => {
                write_notification(&mut out, method, |out| write_params(out, params));
            }
            Self::Result { id, result } => {
                out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                id.write(&mut out);
                out.extend_from_slice(b",\"result\":");
                out.extend_from_slice(result.as_bytes());
                out.push(b'}');
            }
            Self::Error { id, code, message, data } => {
                let mut error = Error::new(*code, message.clone());
                error.data = data.clone().map(|data| RawValue::from_string(data).expect("JSON"));
                write_error(&mut out, id.as_ref(), &error);
            }
            Self::Batch(_) | Self::Malformed { .. } => unreachable!(),
        }
        String::from_utf8(out).expect("UTF-8")
    }
}

/// What cannot be used is written as an array.
fn write_params(out: &mut Vec<u8>, params: &Seen) {
    let Ok(Usable { members, meta }) = params else {
        out.extend_from_slice(b"[]");
        return;
    };
    let write = |out: &mut Vec<u8>, (name, value): &(String, String)| {
        out.push(if out.last() == Some(&b'{') { b' ' } else { b',' });
        write_str(out, name);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    };
    out.push(b'{');
    members.iter().for_each(|member| write(out, member));
    if let Some(meta) = meta {
        let mut inner = b"{".to_vec();
        meta.iter().for_each(|member| write(&mut inner, member));
        inner.push(b'}');
        write(out, &("_meta".to_owned(), String::from_utf8(inner).expect("UTF-8")));
    }
    out.push(b'}');
}

/// What the other reader found is what was found. Of a member given twice it keeps the last.
fn agrees(found: &View, value: &Value, text: &str) {
    let same_id = |id: &RequestId| match &value["id"] {
        Value::String(text) => assert_eq!(id.as_str(), Some(text.as_str())),
        // This reader takes `-0` for a fraction.
        Value::Number(number) if id.as_i64() == Some(0) => assert_eq!(number.as_f64(), Some(0.0)),
        Value::Number(number) if id.as_i64().is_some() => assert_eq!(number.as_i64(), id.as_i64()),
        Value::Number(_) => assert!(text.contains(&id.to_string())),
        other => panic!("{other} is no id"),
    };
    match found {
        View::Request { id, method, params } => {
            same_id(id);
            assert_eq!(value["method"], **method);
            if let Ok(Usable { members, meta }) = params {
                let count = value["params"].as_object().map_or(0, serde_json::Map::len);
                let has_meta = value["params"].get("_meta").is_some();
                assert_eq!(members.len() + usize::from(has_meta), count);
                assert!(meta.is_none() || has_meta);
                for (name, raw) in members {
                    assert_eq!(serde_json::from_str::<Value>(raw).expect("JSON"), value["params"][name]);
                }
            }
        }
        View::Notification { method, .. } => {
            assert_eq!(value["method"], **method);
            assert!(value.get("id").is_none());
        }
        View::Result { id, result } => {
            same_id(id);
            assert_eq!(serde_json::from_str::<Value>(result).expect("JSON"), value["result"]);
        }
        View::Error { id, code, message, .. } => {
            id.iter().for_each(same_id);
            assert_eq!(value["error"]["code"], *code);
            assert_eq!(value["error"]["message"], **message);
        }
        View::Batch(items) => assert_eq!(items.len(), value.as_array().expect("an array").len()),
        View::Malformed { .. } => {}
    }
}
