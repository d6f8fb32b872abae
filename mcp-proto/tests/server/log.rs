//! Log messages: where they go, and from which level on.

use mcp_proto::model::{Implementation, LoggingLevel as L, ProtocolVersion as V, ServerCapabilities};
use mcp_proto::server::{Channel, Config, Log};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::pair::{LEGACY, Pair, call, config, legacy, modern_of};

fn data() -> Box<RawValue> {
    to_raw_value(&json!({"n": 1})).unwrap()
}

fn call_with_level(id: &str, level: &str) -> String {
    modern_of(
        id,
        "tools/call",
        "\"name\":\"t\"",
        "{}",
        &format!(r#""io.modelcontextprotocol/logLevel":{level}"#),
    )
}

/// S-LOG-02, S-LOG-03, S-WIRE-13: a modern request is logged for only if it asks, from its level on, and
/// what one asks says nothing about another.
#[test]
fn a_modern_request_sets_its_own_level() {
    let mut pair = Pair::new();
    let data = data();
    let frames =
        [call(V::LATEST, "1", "t"), call_with_level("2", "\"warning\""), call_with_level("3", "\"debug\"")];
    let (quiet, _) = pair.tool(&frames[0]);
    let (warning, _) = pair.tool(&frames[1]);
    let (debug, _) = pair.tool(&frames[2]);
    let Pair { server, out, .. } = &mut pair;
    for (pending, level, written) in [
        (&quiet, L::Emergency, false),
        (&warning, L::Notice, false),
        (&warning, L::Warning, true),
        (&warning, L::Error, true),
        (&debug, L::Debug, true),
    ] {
        let delivery = server.log(pending, Log::new(level, &data).logger("l"), out);
        assert_eq!(delivery.is_written(), written, "{level:?}");
    }
    // There is no place for messages of no request.
    assert!(!server.log_session(Log::new(L::Emergency, &data), out).is_written());
    let messages = pair.messages();
    assert_eq!(messages.len(), 3);
    assert_eq!(
        messages[0],
        json!({"jsonrpc": "2.0", "method": "notifications/message",
            "params": {"level": "warning", "logger": "l", "data": {"n": 1}}})
    );
}

/// S-LOG-04: an unknown level is -32602; an absent one is just that.
#[test]
fn an_unknown_level_is_refused() {
    let mut pair = Pair::new();
    for level in ["\"loud\"", "\"\"", "\"Debug\"", "7", "{}"] {
        let answer = pair.error(&call_with_level("1", level));
        assert_eq!(answer["error"]["code"], -32602, "{level}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("logLevel"), "{answer}");
    }
    pair.open(&call_with_level("1", "null"));
}

/// `logging/setLevel` sets the level of the session; without it the server's own level holds.
#[test]
fn a_session_has_one_level() {
    for version in LEGACY {
        let mut pair = Pair::of(config().default_log_level(L::Warning).build()).with_session(version, "{}");
        let data = data();
        let frame = call(version, "1", "t");
        let (pending, _) = pair.tool(&frame);
        let Pair { server, out, .. } = &mut pair;
        assert!(!server.log(&pending, Log::new(L::Info, &data), out).is_written());
        assert!(server.log(&pending, Log::new(L::Warning, &data), out).is_written());
        assert!(server.log_session(Log::new(L::Error, &data), out).is_written());
        assert_eq!(pair.messages().len(), 2);
        assert!(pair.send(&legacy("2", "logging/setLevel", r#""level":"critical""#)).is_none());
        assert_eq!(pair.message(), json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
        let Pair { server, out, .. } = &mut pair;
        assert!(!server.log_session(Log::new(L::Error, &data), out).is_written());
        assert!(server.log(&pending, Log::new(L::Critical, &data), out).is_written());
        assert_eq!(pair.messages().len(), 1);
        // LS-LOG-01, and the level stays.
        for level in [r#""level":"loud""#, r#""level":3"#, ""] {
            let answer = pair.error(&legacy("3", "logging/setLevel", level));
            assert_eq!(answer["error"]["code"], -32602, "{level}");
        }
        assert!(!pair.server.log_session(Log::new(L::Error, &data), &mut pair.out).is_written());
    }
}

/// S-LOG-01: without the capability nothing is logged, in any revision.
#[test]
fn no_capability_no_messages() {
    let data = data();
    for version in V::ALL {
        let config = Config::builder(Implementation::new("f", "1"))
            .capabilities(ServerCapabilities::new().tools(false))
            .build();
        let mut pair = Pair::of(config);
        let frame = if version.is_modern() {
            call_with_level("1", "\"debug\"")
        } else {
            pair = pair.with_session(version, "{}");
            call(version, "1", "t")
        };
        let (pending, _) = pair.tool(&frame);
        let Pair { server, out, .. } = &mut pair;
        assert!(!server.log(&pending, Log::new(L::Emergency, &data), out).is_written(), "{version}");
        assert!(!server.log_session(Log::new(L::Emergency, &data), out).is_written(), "{version}");
    }
}
