//! Headers that repeat what a body says: what is written is read, and a request passes if its headers say
//! what a second reader makes of its arguments.
//!
//! The first line is the arguments of a call (and params, and a text), the second the schema of the tool,
//! each of the others a header: its name, a colon, its value.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use mcp_proto::http::{Head, mirror, value};
use mcp_proto::model::{HeaderArgument, JsonSchema};
use mcp_proto::rpc::{Error, Params, code};
use mcp_proto_fuzz::{Entries, Input, Request};
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| -> Corpus {
    let mut input = Input::new(data);
    let (first, schema) = (input.line(), input.line());
    let mut head = Request::new("POST", "/mcp");
    while !input.is_empty() {
        let line = input.line();
        let end = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(end);
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let value = value.get(1..).unwrap_or_default();
        read(value);
        head = head.with(&name, value);
    }
    read(first);
    let Ok(first) = str::from_utf8(first) else { return Corpus::Keep };
    written(first);
    standard(first, &head);
    let Some(annotated) =
        str::from_utf8(schema).ok().and_then(|text| JsonSchema::parse(text).ok()?.header_arguments().ok())
    else {
        return Corpus::Keep;
    };
    names(&annotated);
    if let Ok(raw) = serde_json::from_str::<&RawValue>(first)
        && raw.get().starts_with('{')
    {
        arguments(raw, &annotated, &head);
    }
    Corpus::Keep
});

/// What was read of a header is read of it again once it is written.
fn read(raw: &[u8]) {
    let Ok(text) = value::decode(raw) else { return };
    let again = written(&text);
    // What needs no encoding has one form.
    if !again.starts_with("=?base64?") {
        let is_plain = raw.trim_ascii() == again.as_bytes();
        assert!(is_plain || raw.trim_ascii().starts_with(b"=?base64?"), "{again:?}");
    }
}

fn written(text: &str) -> String {
    let header = value::encode(text);
    assert!(header.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{header:?}");
    assert!(!header.starts_with(' ') && !header.ends_with(' '), "{header:?}");
    assert_eq!(value::decode(header.as_bytes()).as_deref(), Ok(text), "{header:?}");
    assert_eq!(value::decode(format!("\t {header} ").as_bytes()).as_deref(), Ok(text), "{header:?}");
    header.into_owned()
}

/// A request passes if and only if the three headers say what its body says.
fn standard(params: &str, head: &Request) {
    let Some(params) = Params::from_json(params) else { return };
    for method in ["tools/call", "resources/read", "tasks/get", "tools/list"] {
        let version = "2026-07-28";
        let plain = |name: &str| match head.value(name) {
            Ok(Some(raw)) => str::from_utf8(raw).ok().map(|text| text.trim_matches([' ', '\t'])),
            _ => None,
        };
        let text = |member: &str| {
            let raw = params.members().get(member)?;
            serde_json::from_str::<String>(raw.get()).ok()
        };
        let name = mirror::name_member(method).and_then(text);
        let decoded = || match head.value("mcp-name") {
            Ok(Some(raw)) => value::decode(raw).ok().map(|text| text.into_owned()),
            _ => None,
        };
        let expected = plain("mcp-protocol-version") == Some(version)
            && plain("mcp-method") == Some(method)
            && name.as_ref().is_none_or(|name| decoded().as_ref() == Some(name));
        let found = mirror::check_standard(head, method, &params, version);
        assert_eq!(found.is_ok(), expected, "{method}: {found:?}");
        assert!(found.is_ok() || found.is_err_and(|error| error.code == code::HEADER_MISMATCH));
    }
}

fn names(annotated: &[HeaderArgument]) {
    let mut names: Vec<_> = annotated.iter().map(mirror::header_name).collect();
    assert!(names.iter().all(|name| {
        name.strip_prefix("mcp-param-")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic()))
    }));
    names.sort();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

/// What the second reader makes of an argument.
enum Wanted {
    Nothing,
    Text(String),
    Boolean(bool),
    Number(i64),
    /// Nothing that a header can repeat.
    Unfit,
}

fn wanted(arguments: &Value, argument: &HeaderArgument) -> Option<Wanted> {
    let mut at = arguments;
    for step in argument.path() {
        match at.as_object().and_then(|object| object.get(step)) {
            Some(inner) => at = inner,
            None => return Some(Wanted::Nothing),
        }
    }
    Some(match at {
        Value::Null => Wanted::Nothing,
        Value::String(text) => Wanted::Text(text.clone()),
        Value::Bool(value) => Wanted::Boolean(*value),
        Value::Number(number) => match whole(&number.to_string())? {
            Some(number) => Wanted::Number(number),
            None => Wanted::Unfit,
        },
        Value::Array(_) | Value::Object(_) => Wanted::Unfit,
    })
}

/// `None` if this reader is not exact enough to say.
fn whole(text: &str) -> Option<Option<i64>> {
    if text.len() > 15 || text.contains(['e', 'E']) {
        return None;
    }
    let Ok(number) = serde_json::from_str::<f64>(text) else { return Some(None) };
    Some((number.fract() == 0.0).then_some(number as i64))
}

fn arguments(raw: &RawValue, annotated: &[HeaderArgument], head: &Request) {
    let check = |head: &Request| {
        let found = mirror::check_arguments(|name| head.value(name), Some(raw), annotated);
        let kept = mirror::ParamHeaders::collect(head, annotated);
        let again = mirror::check_arguments(|name| kept.value(name), Some(raw), annotated);
        let said = |found: &Result<(), Error>| found.as_ref().err().map(|error| error.message.clone());
        assert_eq!(said(&found), said(&again), "headers that were kept");
        found
    };
    let found = check(head);
    let Ok(value) = serde_json::from_str::<Value>(raw.get()) else { return };
    if !is_unique(raw.get()) {
        return;
    }
    let Some(all) = annotated.iter().map(|argument| wanted(&value, argument)).collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let mut expected = Some(true);
    let mut exact = Request::new("POST", "/mcp");
    let mut exists = Vec::new();
    for (argument, wanted) in annotated.iter().zip(&all) {
        let name = mirror::header_name(argument);
        let header = head.value(&name);
        let given = || match header {
            Ok(Some(raw)) => value::decode(raw).ok().map(|text| text.into_owned()),
            _ => None,
        };
        let fits = match wanted {
            Wanted::Nothing => Some(header == Ok(None)),
            Wanted::Text(text) => Some(given().as_ref() == Some(text)),
            Wanted::Boolean(value) => Some(given() == Some(value.to_string())),
            Wanted::Number(value) => match given() {
                Some(text) => whole(&text).map(|number| number == Some(*value)),
                None => Some(false),
            },
            Wanted::Unfit => Some(false),
        };
        expected = expected.and_then(|so_far| fits.map(|fits| so_far && fits));
        let text = match wanted {
            Wanted::Text(text) => text.clone(),
            Wanted::Boolean(value) => value.to_string(),
            Wanted::Number(value) => value.to_string(),
            Wanted::Nothing | Wanted::Unfit => continue,
        };
        exact = exact.with(&name, value::encode(&text).as_bytes());
        exists.push((name, text));
    }
    if let Some(expected) = expected {
        assert_eq!(found.is_ok(), expected, "{found:?}");
    }

    // What a client writes passes, and nothing that differs from it in one header.
    if all.iter().any(|wanted| matches!(wanted, Wanted::Unfit)) {
        assert!(check(&exact).is_err());
        return;
    }
    assert!(check(&exact).is_ok());
    for (name, text) in exists {
        let lost = exact.clone().without(&name);
        let twice = exact.clone().with(&name, value::encode(&text).as_bytes());
        let other = lost.clone().with(&name, value::encode(&format!("{text}x")).as_bytes());
        for head in [lost, twice, other] {
            let error = check(&head).expect_err("a header that says something else");
            assert_eq!(error.code, code::HEADER_MISMATCH);
        }
    }
}

/// Whether no object in it has a member twice.
fn is_unique(json: &str) -> bool {
    if let Ok(entries) = serde_json::from_str::<Entries>(json) {
        return entries.is_unique() && entries.0.iter().all(|(_, inner)| is_unique(inner));
    }
    match serde_json::from_str::<Vec<&RawValue>>(json) {
        Ok(items) => items.iter().all(|item| is_unique(item.get())),
        Err(_) => true,
    }
}
