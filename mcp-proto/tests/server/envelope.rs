//! Frames that are no good requests: what is answered, what is dropped, and that the stream goes on.

use mcp_proto::model::{CallToolResult, ProtocolVersion as V};
use mcp_proto::server::{Channel, Event};
use serde_json::{Value, json};

use super::pair::{LEGACY, META, Pair, call, legacy, modern};

/// The stream still works: a request is served.
fn alive(pair: &mut Pair, version: V) {
    let key = pair.open(&call(version, "\"alive\"", "t"));
    assert!(pair.server.is_open(key));
    assert!(pair.send(&super::pair::cancel("\"alive\"")).is_some());
    pair.silent();
}

/// E04: -32700 for what is no JSON, else -32600; with the id where it can be read (S-BASE-04, S-BASE-05).
#[test]
fn e04_wrong_envelopes() {
    for version in [V::V2025_11_25, V::LATEST] {
        let mut pair = Pair::speaking(version);
        for (frame, id, code) in [
            (r#"{"id":1,"method":"tools/call"}"#, json!(1), -32600),
            (r#"{"jsonrpc":"1.0","id":2,"method":"tools/call"}"#, json!(2), -32600),
            (r#"{"jsonrpc":2.0,"id":3,"method":"tools/call"}"#, json!(3), -32600),
            (r#"{"jsonrpc":"2.0","id":4}"#, json!(4), -32600),
            (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, json!(5), -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"tools/call"}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call"}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"tools/call"}"#, Value::Null, -32600),
            ("null", Value::Null, -32600),
            ("\"x\"", Value::Null, -32600),
            ("17", Value::Null, -32600),
            ("{bad", Value::Null, -32700),
        ] {
            let answer = pair.error(frame);
            assert_eq!(answer["error"]["code"], code, "{frame}: {answer}");
            assert_eq!(answer["id"], id, "{frame}: {answer}");
            assert_eq!(answer.get("id").is_some(), !id.is_null(), "no null id on the wire: {answer}");
            assert!(answer["error"]["message"].is_string());
        }
        assert_eq!(pair.server.in_flight(), 0);
        alive(&mut pair, version);
    }
}

/// E04: until 2025-06-18 an error response has an id, so what has none to echo is dropped.
#[test]
fn e04_no_error_without_an_id_before_2025_11_25() {
    for version in LEGACY {
        let mut pair = Pair::session(version);
        for frame in ["{bad", "null", "[]", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "\u{feff}{}"] {
            let violation = pair.refused(frame);
            assert_eq!(violation.answered, version.allows_error_without_id(), "{version} {frame}");
            assert_eq!(pair.text().is_empty(), !violation.answered);
        }
        // What has an id is answered in every revision.
        assert_eq!(pair.error(r#"{"id":1,"method":"ping"}"#)["id"], 1);
        alive(&mut pair, version);
    }
}

/// S-BASE-04: an id that is longer than is kept is answered nevertheless, in every revision.
#[test]
fn an_id_that_is_too_long_is_refused_by_name() {
    for version in LEGACY.into_iter().chain([V::LATEST]) {
        let mut pair = Pair::speaking(version);
        for (id, echoed) in [
            ("x".repeat(257), "x".repeat(257)),
            ("\\u0061".repeat(300), "a".repeat(300)),
            ("y".repeat(100_000), "y".repeat(100_000)),
        ] {
            let violation = pair.refused(&call(version, &format!("\"{id}\""), "t"));
            assert!(violation.answered && violation.id.is_none(), "{version}");
            let answer = pair.message();
            assert_eq!(answer["id"], echoed, "{version}");
            assert_eq!(answer["error"]["code"], -32600);
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("`id`") && message.contains("256 bytes"), "{message}");
        }
        // Escapes do not count, and an answer to nobody is none.
        let key = pair.open(&call(version, &format!("\"{}\"", "\\u0061".repeat(256)), "t"));
        assert!(pair.server.is_open(key));
        let answer = format!(r#"{{"jsonrpc":"2.0","id":"{}","result":{{}}}}"#, "x".repeat(300));
        assert!(!pair.refused(&answer).answered);
        pair.silent();
        alive(&mut pair, version);
    }
}

/// E05: names are case-sensitive and compared after decoding. A look-alike is an unknown member, a member
/// given twice is refused whole.
#[test]
fn e05_look_alike_and_duplicate_members() {
    let mut pair = Pair::new();
    let frame = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call","method\u0000":"tools/call","params":{{{META}}}}}"#
    );
    assert_eq!(pair.request(&frame).method, "tools/list");
    for frame in [
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"safe",{META}}},"params":{{"name":"danger",{META}}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","m\u0065thod":"tools/call","params":{{{META}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"safe","name":"danger",{META}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{{META},{META}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{{META},"_meta":null}}}}"#),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}"#.into(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":null,"roots":{}}}}}"#.into(),
    ] {
        let answer = pair.error(&frame);
        assert_eq!(answer["id"], 2, "{frame}");
        assert!([-32600, -32602].contains(&answer["error"]["code"].as_i64().unwrap()), "{answer}");
    }
    assert_eq!(pair.server.in_flight(), 1);
}

/// E03: the id 1 and the id "1" are open side by side, and each answer carries its own.
#[test]
fn e03_ids_keep_their_type() {
    for version in [V::V2024_11_05, V::V2025_11_25, V::LATEST] {
        let mut pair = Pair::speaking(version);
        let calls = ["1", "\"1\"", "\"01\"", "\" 1\""].map(|id| pair.tool(&call(version, id, "t")).0);
        for (pending, id) in calls.into_iter().zip([json!(1), json!("1"), json!("01"), json!(" 1")]).rev() {
            assert!(pair.server.respond(pending, &CallToolResult::text("x"), &mut pair.out).is_written());
            assert_eq!(pair.message()["id"], id);
        }
    }
}

/// E06: `method` makes a request, also when it is empty.
#[test]
fn e06_an_empty_method_is_a_method_no_one_has() {
    for version in V::ALL {
        let mut pair = Pair::speaking(version);
        let frame = if version.is_modern() { modern("1", "", "") } else { legacy("1", "", "") };
        let incoming = pair.request(&frame);
        let refusal = incoming.not_found();
        use mcp_proto::server::Channel;
        assert!(pair.server.refuse(refusal, &mut pair.out).is_written());
        let answer = pair.message();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32601)));
    }
}

/// E06, E07: a response is never answered, however wrong it is.
#[test]
fn e06_responses_are_never_answered() {
    for version in V::ALL {
        let mut pair = Pair::speaking(version);
        for frame in [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-1,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"p"}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"q"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        ] {
            let violation = pair.refused(frame);
            assert!(!violation.answered, "{frame}");
            pair.silent();
        }
        alive(&mut pair, version);
    }
}

/// E08: notifications are never answered (B-BASE-04), whatever they are.
#[test]
fn e08_unknown_notifications_and_odd_params() {
    for version in V::ALL {
        let mut pair = Pair::speaking(version);
        for frame in [
            r#"{"jsonrpc":"2.0","method":"vendor/event","params":{"a":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","method":"initialize"}"#,
            r#"{"jsonrpc":"2.0","method":"ping","params":null}"#,
            r#"{"jsonrpc":"2.0","method":"x","params":[1]}"#,
            r#"{"jsonrpc":"2.0","method":"","params":7}"#,
        ] {
            assert!(matches!(pair.send(frame), Some(Event::Notification(_))), "{frame}");
            pair.silent();
        }
        alive(&mut pair, version);
    }
    let mut pair = Pair::session(V::V2025_06_18);
    assert!(pair.send(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#).is_none());
    assert_eq!(pair.message(), json!({"jsonrpc":"2.0","id":1,"result":{}}));
    for params in [r#"["echo"]"#, "7", "\"x\"", "true"] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}"#);
        let answer = pair.error(&frame);
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32602)), "{params}");
    }
    alive(&mut pair, V::V2025_06_18);
}

/// E10: nesting is bounded, the id is still known, and the next request is served.
#[test]
fn e10_deep_nesting() {
    let mut pair = Pair::new();
    for depth in [200, 100_000] {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let frame = modern("5", "tools/call", &format!(r#""name":"t","arguments":{deep}"#));
        let answer = pair.error(&frame);
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(5), &json!(-32600)));
        alive(&mut pair, V::LATEST);
    }
}

/// Ids are echoed exactly, with their type (S-BASE-01); legal escapes in names are read.
#[test]
fn ids_are_echoed_as_they_came() {
    let mut pair = Pair::new();
    for id in [
        "0",
        "-1",
        "1",
        "\"1\"",
        "\"\"",
        "9007199254740993",
        "18446744073709551616",
        "-9223372036854775809",
        "\"\\u0000\\n\"",
        "\"读🎉\"",
    ] {
        assert!(pair.send(&modern(id, "server\\/discover", "")).is_none());
        let text = pair.text();
        assert!(text.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#)), "{text}");
    }
}

/// A peer's text that is repeated in an error is cut.
#[test]
fn errors_do_not_repeat_a_megabyte() {
    let mut pair = Pair::new();
    let huge = "é".repeat(1 << 19);
    let frame = modern("1", &huge, "");
    let refusal = pair.request(&frame).not_found();
    use mcp_proto::server::Channel;
    assert!(pair.server.refuse(refusal, &mut pair.out).is_written());
    assert!(pair.text().len() < 1_000);
    let frame = modern("2", "tools/list", "").replace("2026-07-28", &huge);
    let answer = pair.error(&frame);
    assert_eq!(answer["error"]["code"], -32022);
    assert!(answer.to_string().len() < 1_000);
}
