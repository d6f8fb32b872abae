//! How a server introduces itself, and which rules a message falls under.

use mcp_proto::model::{CacheScope, Implementation, ProtocolVersion as V, ServerCapabilities};
use mcp_proto::server::{Channel, Config, Event};
use serde_json::json;

use super::pair::{
    EVERY_CAPABILITY, LEGACY, Pair, call, config, initialize, legacy, modern, modern_of, notification,
};

/// V01, LS-LIFE-03, LS-LIFE-04, LS-LIFE-05: a served version is echoed, any other is answered with the
/// latest that has a handshake.
#[test]
fn v01_versions_are_negotiated_not_refused() {
    for version in LEGACY {
        Pair::new().with_session(version, "{}");
    }
    for offered in ["2099-01-01", "2026-07-28", "1999-01-01-x", "", "2025-11-25 "] {
        let mut pair = Pair::new();
        assert!(pair.send(&initialize("1", offered, "{}")).is_none());
        assert_eq!(pair.message()["result"]["protocolVersion"], "2025-11-25", "{offered}");
        assert_eq!(pair.server.session_version(), Some(V::V2025_11_25));
    }
    // A server that does not serve all: the latest of those it serves.
    let some = || config().versions([V::V2025_06_18, V::V2024_11_05, V::LATEST]).build();
    for (offered, answered) in
        [("2024-11-05", "2024-11-05"), ("2025-11-25", "2025-06-18"), ("2025-03-26", "2025-06-18")]
    {
        let mut pair = Pair::of(some());
        assert!(pair.send(&initialize("1", offered, "{}")).is_none());
        assert_eq!(pair.message()["result"]["protocolVersion"], answered);
    }
}

/// LS-LIFE-01, LS-LIFE-06, B-WIRE-02: what the handshake says, in the words of each revision.
#[test]
fn initialize_says_what_the_revision_has() {
    let info = Implementation::new("fixture", "1.0.0").title("A fixture").description("For tests");
    for version in LEGACY {
        let mut pair = Pair::of(
            Config::builder(info.clone())
                .capabilities(
                    ServerCapabilities::new()
                        .tools(true)
                        .resources(true, false)
                        .completions()
                        .core_tasks(true, true),
                )
                .instructions("Mind the gap.")
                .build(),
        );
        assert!(pair.send(&initialize("1", version.as_str(), "{}")).is_none());
        let answer = pair.message();
        let result = &answer["result"];
        assert_eq!(result["instructions"], "Mind the gap.");
        assert_eq!(result["serverInfo"]["name"], "fixture");
        assert_eq!(result["serverInfo"]["version"], "1.0.0");
        assert_eq!(result["serverInfo"].get("title").is_some(), version >= V::V2025_06_18);
        assert_eq!(result["serverInfo"].get("description").is_some(), version >= V::V2025_11_25);
        let has = &result["capabilities"];
        assert_eq!(has["tools"], json!({"listChanged": true}));
        assert_eq!(has["resources"], json!({"subscribe": true}));
        assert_eq!(has.get("completions").is_some(), version >= V::V2025_03_26);
        assert_eq!(has.get("tasks").is_some(), version == V::V2025_11_25);
        assert!(has.get("prompts").is_none() && has.get("logging").is_none());
        // V09: nothing of the modern era.
        for member in ["resultType", "ttlMs", "cacheScope", "_meta", "supportedVersions"] {
            assert!(result.get(member).is_none(), "{member} in {result}");
        }
    }
}

/// S-VER-02, S-WIRE-03, S-CACHE-01, S-BASE-03, S-META-06.
#[test]
fn discover_says_what_there_is() {
    let info = Implementation::new("fixture", "1.0.0").title("A fixture").description("For tests");
    let config = Config::builder(info)
        .capabilities(ServerCapabilities::new().tools(false).logging())
        .discover_cache(60_000, CacheScope::Private)
        .build();
    let mut pair = Pair::of(config);
    assert!(pair.send(&modern("\"d\"", "server/discover", "")).is_none());
    assert_eq!(
        pair.message(),
        json!({"jsonrpc": "2.0", "id": "d", "result": {
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/serverInfo":
                {"name": "fixture", "version": "1.0.0", "title": "A fixture", "description": "For tests"}},
            "supportedVersions": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
            "capabilities": {"tools": {}, "logging": {}},
            "ttlMs": 60_000,
            "cacheScope": "private",
        }})
    );
    // It needs metadata like any other request, and leaves no session.
    assert_eq!(pair.error(&legacy("1", "server/discover", ""))["error"]["code"], -32602);
    assert_eq!(pair.server.session_version(), None);
    assert_eq!(pair.server.in_flight(), 0);
}

/// V02, LB-PING-01: ping before the handshake, requests between the answer to `initialize` and
/// `initialized`; anything else before the handshake is an error and not the end.
#[test]
fn v02_requests_around_the_handshake() {
    let mut pair = Pair::new();
    assert!(pair.send(&legacy("0", "ping", "")).is_none());
    assert_eq!(pair.message(), json!({"jsonrpc": "2.0", "id": 0, "result": {}}));
    let early = pair.error(&legacy("1", "tools/list", ""));
    assert_eq!((&early["id"], &early["error"]["code"]), (&json!(1), &json!(-32602)));
    assert!(early["error"]["message"].as_str().unwrap().contains("initialize"), "{early}");
    // Before a handshake there is nothing that could be initialized.
    assert!(matches!(pair.send(&notification("notifications/initialized")), Some(Event::Notification(_))));

    assert!(pair.send(&initialize("2", "2025-06-18", "{}")).is_none());
    assert_eq!(pair.message()["id"], 2);
    assert!(pair.send(&legacy("3", "logging/setLevel", r#""level":"error""#)).is_none());
    assert_eq!(pair.message(), json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
    let frame = legacy("4", "tools/list", "");
    assert_eq!(pair.request(&frame).version, V::V2025_06_18);
    assert!(matches!(pair.send(&notification("notifications/initialized")), Some(Event::Initialized)));
    pair.silent();
}

/// V03: a second `initialize` is refused and changes nothing.
#[test]
fn v03_a_second_initialize_changes_nothing() {
    let mut pair = Pair::new().with_session(V::V2025_06_18, EVERY_CAPABILITY);
    for (again, capabilities) in [("2025-03-26", "{}"), ("2025-06-18", EVERY_CAPABILITY)] {
        let answer = pair.error(&initialize("2", again, capabilities));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32600)));
    }
    assert_eq!(pair.server.session_version(), Some(V::V2025_06_18));
    assert_eq!(pair.server.session_client().map(|c| &*c.name), Some("client"));
    let frame = call(V::V2025_06_18, "3", "t");
    assert!(pair.request(&frame).features.sampling);
}

/// A handshake that cannot be read leaves no session.
#[test]
fn initialize_with_unfit_params() {
    let mut pair = Pair::new();
    for params in [
        "",
        r#""protocolVersion":5,"capabilities":{},"clientInfo":{"name":"c","version":"1"}"#,
        r#""protocolVersion":"2025-06-18","capabilities":[],"clientInfo":{"name":"c","version":"1"}"#,
        r#""protocolVersion":"2025-06-18","capabilities":{"roots":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}"#,
        r#""protocolVersion":"2025-06-18","capabilities":{}"#,
        r#""protocolVersion":"2025-06-18","capabilities":{},"clientInfo":["c","1"]"#,
        r#""protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c"}"#,
    ] {
        let answer = pair.error(&legacy("1", "initialize", params));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32602)), "{params}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("/params"), "{answer}");
        assert_eq!(pair.server.session_version(), None);
    }
    pair.with_session(V::V2025_06_18, "{}");
}

/// V04, S-META-01: also the first request of a stream is refused by name of what is missing, and the next
/// one is served.
#[test]
fn v04_incomplete_metadata() {
    let meta = |meta: &str| format!(r#""_meta":{{{meta}}}"#);
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    for (members, pointer) in [
        (meta(version), "clientCapabilities"),
        (
            meta(&format!(r#"{version},"io.modelcontextprotocol/clientCapabilities":null"#)),
            "clientCapabilities",
        ),
        (
            meta(&format!(r#"{version},"io.modelcontextprotocol/clientCapabilities":[]"#)),
            "clientCapabilities",
        ),
        (
            meta(&format!(r#"{version},"io.modelcontextprotocol/clientCapabilities":true"#)),
            "clientCapabilities",
        ),
        (meta(&format!(r#""io.modelcontextprotocol/protocolVersion":5,{capabilities}"#)), "protocolVersion"),
        (
            meta(&format!(r#""io.modelcontextprotocol/protocolVersion":null,{capabilities}"#)),
            "protocolVersion",
        ),
        (meta(capabilities), "protocolVersion"),
        (meta(""), "protocolVersion"),
        (String::new(), "protocolVersion"),
        (r#""_meta":null"#.into(), "protocolVersion"),
        (r#""_meta":[]"#.into(), "_meta"),
    ] {
        let mut pair = Pair::new();
        let answer = pair.error(&legacy("1", "tools/list", &members));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32602)), "{members}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(pointer), "{answer}");
        pair.open(&modern("2", "tools/list", ""));
    }
    // Who asks is not needed; what it says is not looked at (B-META-06).
    let mut pair = Pair::new();
    pair.open(&modern_of("1", "tools/list", "", "{}", r#""io.modelcontextprotocol/clientInfo":7"#));
}

/// V04, S-VER-01, S-WIRE-01: a version that is not served.
#[test]
fn v04_unknown_version() {
    let mut pair = Pair::new();
    for requested in ["2099-01-01", "2025-11-25", ""] {
        let frame = modern("1", "tools/list", "").replace("2026-07-28", requested);
        let answer = pair.error(&frame);
        assert_eq!(answer["error"]["code"], -32022);
        assert_eq!(
            answer["error"]["data"],
            json!({"supported": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"], "requested": requested})
        );
    }
}

/// V08, S-COMPAT-01: a modern-only server names its versions in whatever it answers to `initialize`.
#[test]
fn v08_initialize_sent_to_a_modern_only_server() {
    for frame in [initialize("1", "2025-11-25", "{}"), legacy("1", "initialize", "")] {
        let mut pair = Pair::of(config().versions([V::LATEST]).build());
        let answer = pair.error(&frame);
        assert_eq!(answer["id"], 1);
        assert!(answer["error"].to_string().contains("2026-07-28"), "{answer}");
        assert_eq!(pair.server.session_version(), None);
        // No ping without a handshake era, and a modern request goes on as ever.
        assert_eq!(pair.error(&legacy("2", "ping", ""))["error"]["code"], -32602);
        pair.open(&modern("3", "tools/list", ""));
    }
}

/// V08: a server of handshakes only does not know what a modern stamp means. `server/discover` is a method
/// it does not have, and after the handshake the stamp is one unknown key of `_meta`.
#[test]
fn v08_discover_sent_to_a_legacy_only_server() {
    let mut pair = Pair::of(config().versions(LEGACY).build());
    let answer = pair.error(&modern("1", "server/discover", ""));
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32601)));
    assert_eq!(pair.error(&modern("2", "tools/list", ""))["error"]["code"], -32602);
    let mut pair = pair.with_session(V::V2025_06_18, "{}");
    assert_eq!(pair.error(&modern("3", "server/discover", ""))["error"]["code"], -32601);
    let frame = modern("4", "tools/list", "");
    assert_eq!(pair.request(&frame).version, V::V2025_06_18);
}

/// The era is decided for each message: both at once on one stream, neither changes the other
/// (S-STATE-01).
#[test]
fn both_eras_share_a_stream() {
    let mut pair = Pair::new();
    let first = modern("1", "tools/list", "");
    let first = pair.request(&first);
    let mut pair = pair.with_session(V::V2025_03_26, EVERY_CAPABILITY);
    let second = legacy("2", "tools/list", "");
    let second = pair.request(&second);
    let third = modern("3", "tools/list", "");
    let third = pair.request(&third);
    assert_eq!([first.version, second.version, third.version], [V::LATEST, V::V2025_03_26, V::LATEST]);
    // What the session declared is no capability of a modern request (S-META-03).
    assert!(second.features.roots && !first.features.roots && !third.features.roots);
    // A method of the other era is a method that does not exist, also when its name is known.
    for (frame, code) in [
        (modern("4", "initialize", ""), -32601),
        (modern("4", "ping", ""), -32601),
        (modern("4", "logging/setLevel", r#""level":"info""#), -32601),
        (modern("4", "resources/subscribe", r#""uri":"a:b""#), -32601),
        (modern("4", "resources/unsubscribe", r#""uri":"a:b""#), -32601),
        (modern("4", "tasks/result", r#""taskId":"x""#), -32601),
        (modern("4", "tasks/list", ""), -32601),
        (legacy("4", "server/discover", ""), -32601),
        (legacy("4", "subscriptions/listen", r#""notifications":{}"#), -32601),
        (legacy("4", "tasks/update", r#""taskId":"x","inputResponses":{}"#), -32601),
    ] {
        assert_eq!(pair.error(&frame)["error"]["code"], code, "{frame}");
    }
    assert_eq!(pair.server.in_flight(), 3);
}

/// Methods need the capability that the server declared; in 2024-11-05 completion had none.
#[test]
fn methods_need_their_capability() {
    for version in V::ALL {
        let mut pair = Pair::of(Config::builder(Implementation::new("bare", "0")).build());
        if !version.is_modern() {
            pair = pair.with_session(version, "{}");
        }
        for method in [
            "tools/list",
            "tools/call",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "resources/subscribe",
            "prompts/list",
            "prompts/get",
            "completion/complete",
            "logging/setLevel",
            "tasks/get",
            "tasks/cancel",
            "tasks/list",
        ] {
            let frame = if version.is_modern() { modern("1", method, "") } else { legacy("1", method, "") };
            assert_eq!(pair.error(&frame)["error"]["code"], -32601, "{version} {method}");
        }
        // A method that the specification does not have is the driver's.
        let frame = if version.is_modern() { modern("1", "x/y", "") } else { legacy("1", "x/y", "") };
        assert_eq!(pair.request(&frame).method, "x/y");
    }
}

/// V09, S-BASE-03: `resultType` in modern answers only.
#[test]
fn v09_result_type_by_era() {
    use mcp_proto::model::CallToolResult;
    for version in V::ALL {
        let mut pair = Pair::speaking(version);
        let frame = call(version, "1", "t");
        let (pending, _) = pair.tool(&frame);
        assert!(pair.server.respond(pending, &CallToolResult::text("hi"), &mut pair.out).is_written());
        let answer = pair.message();
        assert_eq!(answer["result"]["content"], json!([{"type": "text", "text": "hi"}]));
        if version.is_modern() {
            assert_eq!(answer["result"]["resultType"], "complete");
            let info = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
            assert_eq!(info, &json!({"name": "fixture", "version": "1.0.0"}), "S-META-06");
        } else {
            for member in ["resultType", "_meta", "ttlMs", "cacheScope"] {
                assert!(answer["result"].get(member).is_none(), "{member} in {answer}");
            }
        }
    }
}
