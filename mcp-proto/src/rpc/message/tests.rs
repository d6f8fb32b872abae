use alloc::string::{String, ToString};

use super::*;

fn limits() -> Limits {
    Limits::default()
}

/// The frame as one line: kind, id, method or code.
fn look(frame: &str) -> String {
    match parse(frame.as_bytes(), &limits()) {
        Ok(Parsed::Message(Message::Request { id, method, .. })) => alloc::format!("request {id} {method}"),
        Ok(Parsed::Message(Message::Notification { method, .. })) => alloc::format!("notification {method}"),
        Ok(Parsed::Message(Message::Result { id, result })) => alloc::format!("result {id} {}", result.get()),
        Ok(Parsed::Message(Message::Error { id, error })) => {
            alloc::format!("error {} {}", id.map_or_else(|| "-".into(), |i| i.to_string()), error.code)
        }
        Ok(Parsed::Batch(batch)) => alloc::format!("batch {}", batch.len()),
        Err(m) => alloc::format!(
            "bad {} {}{}",
            m.id.map_or_else(|| "-".into(), |i| i.to_string()),
            m.error.code,
            if m.is_response { " response" } else { "" }
        ),
    }
}

#[test]
fn messages_are_told_apart_by_what_is_there() {
    for (frame, seen) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, "request 1 a"),
        (r#"{"params":{"x":1},"method":"a","id":"1","jsonrpc":"2.0"}"#, "request \"1\" a"),
        (r#"{"jsonrpc":"2.0","method":"a","params":null}"#, "notification a"),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "result 1 null"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}"#, "error 1 -1"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}"#, "error - -1"),
        (r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"x"}}"#, "error - -1"),
        (r#"{"jsonrpc":"2.0","id":1,"error":null,"result":{}}"#, "result 1 {}"),
        (r#" [ {"a":1} , 2 ] "#, "batch 2"),
        // Legal escapes in names and values (trap 3).
        (r#"{"jsonrpc":"2\u002e0","id":1,"m\u0065thod":"tools\/call"}"#, "request 1 tools/call"),
    ] {
        assert_eq!(look(frame), seen, "{frame}");
    }
}

/// E04: -32700 only for what is no JSON; -32600 with the id where it can be read.
#[test]
fn e04_wrong_envelopes() {
    for (frame, seen) in [
        (r#"{"id":1,"method":"M"}"#, "bad 1 -32600"),
        (r#"{"jsonrpc":"1.0","id":2,"method":"M"}"#, "bad 2 -32600"),
        (r#"{"jsonrpc":2.0,"id":3,"method":"M"}"#, "bad 3 -32600"),
        (r#"{"jsonrpc":"2.0","id":4}"#, "bad 4 -32600"),
        (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, "bad 5 -32600"),
        (r#"{"method":7,"jsonrpc":"2.0","id":5}"#, "bad 5 -32600"),
        ("null", "bad - -32600"),
        ("\"x\"", "bad - -32600"),
        ("1", "bad - -32600"),
        ("1.5", "bad - -32600"),
        ("{bad", "bad - -32700"),
        ("", "bad - -32700"),
        (r#"{"jsonrpc":"2.0","id":3,"method":"M"}{"x":1}"#, "bad - -32700"),
        (r#"["2.0",1,"ping"]"#, "batch 3"),
        ("[]", "bad - -32600"),
        ("[1", "bad - -32700"),
        ("[1]x", "bad - -32700"),
    ] {
        assert_eq!(look(frame), seen, "{frame}");
    }
    assert!(matches!(parse(b"\xff\xfe", &limits()), Err(Malformed { error, .. }) if error.code == -32700));
}

/// Trap 2: an id that is null or of another type is no missing id.
#[test]
fn an_unusable_id_is_no_notification() {
    for id in ["null", "1.5", "true", "{}", "[1]"] {
        let frame = alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"M"}}"#);
        assert_eq!(look(&frame), "bad - -32600", "{frame}");
    }
}

/// An id is held against its bound as it is, however it is written; the fault says what it is about.
#[test]
fn ids_that_are_too_long() {
    let frame = |id: &str, rest: &str| alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}}}"#);
    let text = |len: usize| alloc::format!("\"{}\"", "x".repeat(len));
    let escaped = |len: usize| alloc::format!("\"{}\"", "\\u0061".repeat(len));
    let request = "\"method\":\"M\"";
    for id in [text(256), escaped(256), "9".repeat(256)] {
        let frame = frame(&id, request);
        assert!(matches!(parse(frame.as_bytes(), &limits()), Ok(Parsed::Message(Message::Request { .. }))));
    }
    for id in [text(257), escaped(257), text(100_000), escaped(100_000), "9".repeat(257)] {
        let bad = |rest| parse(frame(&id, rest).as_bytes(), &limits()).unwrap_err();
        let malformed = bad(request);
        assert_eq!(malformed.error.code, -32600);
        assert!(malformed.error.message.contains("`id` of at most 256 bytes"), "{}", malformed.error.message);
        assert!(malformed.is_id_too_long && malformed.has_method && !malformed.is_response);
        assert_eq!(malformed.id, RequestId::parse(&id, usize::MAX));
        for rest in ["\"result\":{}", "\"error\":{\"code\":-1,\"message\":\"x\"}"] {
            let malformed = bad(rest);
            assert!(malformed.is_id_too_long && malformed.is_response && malformed.id.is_none());
        }
        // Another fault comes first.
        let malformed = bad("\"method\":7");
        assert!(!malformed.is_id_too_long && malformed.id.is_none());
    }
}

/// E05: names are case-sensitive and compared after decoding; a true duplicate is refused.
#[test]
fn e05_look_alike_and_duplicate_names() {
    for (frame, seen) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call","method\u0000":"tools/call"}"#,
            "request 1 tools/list",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}}"#, "bad 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}"#, "bad 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, "bad 2 -32600"),
    ] {
        assert_eq!(look(frame), seen, "{frame}");
    }
}

/// E06: presence of `method` makes a request, whatever its value; never both a result and an error.
#[test]
fn e06_empty_method_and_mixed_responses() {
    for (frame, seen) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"","params":{}}"#, "request 1 "),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-1,"message":"x"}}"#,
            "bad 1 -32600 response",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#, "bad 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"error":null}"#, "bad 1 -32600 response"),
        (r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#, "bad 1 -32600 response"),
        (r#"{"jsonrpc":"2.0","id":{},"result":{}}"#, "bad - -32600 response"),
    ] {
        assert_eq!(look(frame), seen, "{frame}");
    }
}

/// E10: no recursion on the peer's depth, and the id is still known.
#[test]
fn e10_deep_nesting() {
    let deep = |n: usize| {
        alloc::format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"m","params":{{"a":{}1{}}}}}"#,
            r#"{"a":"#.repeat(n),
            "}".repeat(n)
        )
    };
    assert_eq!(look(&deep(126)), "request 5 m");
    assert_eq!(look(&deep(127)), "bad 5 -32600");
    assert_eq!(look(&deep(100_000)), "bad 5 -32600");
    // Brackets inside strings are no nesting.
    let text = alloc::format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"m","params":{{"a":"\\\"{}"}}}}"#,
        "[{".repeat(500)
    );
    assert_eq!(look(&text), "request 5 m");
}

#[test]
fn params_of_another_shape_are_noted_not_lost() {
    for (params, fine) in [
        ("{}", true),
        ("null", true),
        ("[1]", false),
        ("7", false),
        ("\"x\"", false),
        (r#"{"a":1,"a":2}"#, false),
        (r#"{"_meta":{}}"#, true),
        (r#"{"_meta":null}"#, true),
        (r#"{"_meta":[]}"#, false),
        (r#"{"_meta":{"a":1,"a":1}}"#, false),
        (r#"{"_meta":{},"_meta":{}}"#, false),
    ] {
        let frame = alloc::format!(r#"{{"params":{params},"jsonrpc":"2.0","id":1,"method":"m"}}"#);
        let Ok(Parsed::Message(Message::Request { params: seen, .. })) = parse(frame.as_bytes(), &limits())
        else {
            panic!("{frame}")
        };
        assert_eq!(seen.check().is_ok(), fine, "{frame}");
    }
}

#[test]
fn members_keep_their_order_and_spill() {
    let json = r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":{"x":[1, 2]}}"#;
    let members = Members::from_json(json).unwrap();
    assert_eq!(members.len(), 8);
    let seen: Vec<_> = members.iter().map(|(n, v)| alloc::format!("{n}={}", v.get())).collect();
    assert_eq!(seen.join(" "), "a=1 b=2 c=3 d=4 e=5 f=6 g=7 h={\"x\":[1, 2]}");
    assert!(members.get("x").is_none());
    assert!(Members::from_json("[1]").is_none() && Members::from_json(r#"{"a":1,"a":1}"#).is_none());
}

#[test]
fn limits_on_members_ids_and_batches() {
    let tight = Limits { max_members: 2, max_id: 4, max_batch: 2, ..Limits::default() };
    let parsed = |frame: &str| parse(frame.as_bytes(), &tight).map(|p| alloc::format!("{p:?}"));
    assert!(parsed(r#"{"jsonrpc":"2.0","id":"abcd","method":"m"}"#).is_ok());
    assert!(parsed(r#"{"jsonrpc":"2.0","id":"abcde","method":"m"}"#).is_err());
    assert!(parsed("[1,2]").is_ok() && parsed("[1,2,3]").is_err());
    for (params, fine) in [(r#"{"a":1,"b":2}"#, true), (r#"{"a":1,"b":2,"c":3}"#, false)] {
        let frame = alloc::format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        let Ok(Parsed::Message(Message::Request { params, .. })) = parse(frame.as_bytes(), &tight) else {
            panic!()
        };
        assert_eq!(params.check().is_ok(), fine);
    }
}
