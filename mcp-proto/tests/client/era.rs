//! Finding out what a server speaks. (revisions 2.4)

use mcp_proto::client::request::{CallTool, Ping};
use mcp_proto::client::{CallError, CallOptions, Event, Mode, Verdict, ViolationKind};
use mcp_proto::model::ProtocolVersion as V;
use serde_json::json;

use super::script::{LEGACY, Script, at, config, discovered, error, initialized, notification, result};

/// What was sent to a server, as `method version` lines.
fn opening(script: &mut Script) -> Vec<String> {
    script
        .sent()
        .iter()
        .map(|message| {
            let params = &message["params"];
            let version = params["protocolVersion"]
                .as_str()
                .or_else(|| params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str());
            format!("{} {}", message["method"].as_str().unwrap(), version.unwrap_or("-"))
        })
        .collect()
}

#[test]
fn a_modern_server_is_found_by_the_probe() {
    let mut script = Script::started(config().build());
    let probe = script.one();
    // S-STATE: every request says who asks, what it speaks and what it can do.
    assert_eq!(
        probe,
        json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1.0.0"},
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {"form": {}, "url": {}},
                "sampling": {"tools": {}, "context": {}},
                "roots": {},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            },
        }}})
    );
    assert!(script.client.server().is_none());
    let event = script.send(&result(&probe["id"], &discovered(&["2026-07-28", "2025-11-25"])));
    assert!(matches!(event, Some(Event::Ready)));
    assert!(script.sent().is_empty());
    let server = script.client.server().unwrap();
    assert_eq!(server.version, V::V2026_07_28);
    assert_eq!(server.identity.as_ref().unwrap().name, "fixture");
    assert_eq!(server.instructions.as_deref(), Some("Mind the gap."));
    assert!(server.capabilities.as_ref().unwrap().has_tools());
    assert_eq!(script.client.next_deadline(), None);
}

#[test]
fn a_server_that_refuses_the_probe_is_greeted() {
    // The fallback depends on no code: -32601 and -32602 are both common.
    for code in [-32601, -32602, -32600, -32000, -32002, 0, -1] {
        let mut script = Script::started(config().build());
        let probe = script.one();
        assert!(script.send(&error(&probe["id"], code, "")).is_none());
        let hello = script.one();
        // LC-LIFE-01, LC-LIFE-05, C-ELIC-05
        assert_eq!(
            hello,
            json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {
                    "elicitation": {"form": {}, "url": {}},
                    "sampling": {"tools": {}, "context": {}},
                    "roots": {"listChanged": true},
                    "extensions": {"io.modelcontextprotocol/tasks": {}},
                },
                "clientInfo": {"name": "host", "version": "1.0.0"},
            }})
        );
        for version in LEGACY {
            let mut script = Script::started(config().build());
            let probe = script.one();
            script.send(&error(&probe["id"], code, ""));
            let hello = script.one();
            // LC-LIFE-02
            assert!(matches!(
                script.send(&result(&hello["id"], &initialized(version.as_str()))),
                Some(Event::Ready)
            ));
            assert_eq!(script.one(), json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            assert_eq!(script.client.server().unwrap().version, version);
            assert_eq!(script.client.verdict(), Some(Verdict::new(version)));
        }
    }
}

#[test]
fn another_version_of_the_same_era_is_tried_and_no_fallback_made() {
    // C-VER-01: only revisions with a handshake in common: the one that the server prefers not, ours.
    let mut script = Script::started(config().build());
    let probe = script.one();
    let data = r#"{"supported":["2027-01-01","2025-06-18","2025-11-25"],"requested":"2026-07-28"}"#;
    assert!(script.send(&error(&probe["id"], -32022, data)).is_none());
    assert_eq!(opening(&mut script), ["initialize 2025-11-25"]);

    // None in common: the two versions are named.
    let mut script = Script::started(config().build());
    let probe = script.one();
    let data = r#"{"supported":["2027-01-01"],"requested":"2026-07-28"}"#;
    match script.send(&error(&probe["id"], -32022, data)) {
        Some(Event::Unusable(CallError::NoCommonVersion(mismatch))) => {
            assert_eq!((&*mismatch.offered, &*mismatch.supported[0]), ("2026-07-28", "2027-01-01"));
        }
        other => panic!("{other:?}"),
    }
    assert!(script.sent().is_empty());

    // The server says that it speaks what it just refused: behind one address there can be several, so that it is
    // tried once more, and not for ever.
    let mut script = Script::started(config().build());
    let data = r#"{"supported":["2026-07-28"],"requested":"2026-07-28"}"#;
    let probe = script.one();
    assert!(script.send(&error(&probe["id"], -32022, data)).is_none());
    let probe = script.one();
    assert_eq!(probe["method"], "server/discover");
    assert!(matches!(script.send(&error(&probe["id"], -32022, data)), Some(Event::Unusable(_))));
    assert!(script.sent().is_empty());

    // A refusal without a list is the end: the server is modern and says no.
    for data in ["", "{}", "[]", r#"{"supported":"2025-11-25"}"#] {
        let mut script = Script::started(config().build());
        let probe = script.one();
        let event = script.send(&error(&probe["id"], -32022, data));
        assert!(matches!(event, Some(Event::Unusable(CallError::Rpc(_)))), "{data}");
    }
}

#[test]
fn a_modern_refusal_for_another_reason_is_no_reason_to_fall_back() {
    for code in [-32020, -32021] {
        let mut script = Script::started(config().build());
        let probe = script.one();
        assert!(matches!(script.send(&error(&probe["id"], code, "")), Some(Event::Ready)));
        assert!(script.client.server().unwrap().version.is_modern());
        assert!(script.sent().is_empty());
    }
}

#[test]
fn a_server_with_handshakes_only_in_its_list_is_greeted_in_the_best_of_them() {
    let mut script = Script::started(config().build());
    let probe = script.one();
    assert!(script.send(&result(&probe["id"], &discovered(&["2025-03-26", "2025-06-18"]))).is_none());
    assert_eq!(opening(&mut script), ["initialize 2025-06-18"]);
}

#[test]
fn something_else_than_a_discover_result_is_that_of_a_lax_server() {
    for odd in ["{}", r#"{"ok":true}"#, "[]", "null", r#"{"supportedVersions":"x","capabilities":{}}"#] {
        let mut script = Script::started(config().build());
        let probe = script.one();
        assert!(script.send(&result(&probe["id"], odd)).is_none(), "{odd}");
        assert_eq!(opening(&mut script), ["initialize 2025-11-25"]);
    }
}

#[test]
fn silence_is_an_answer_and_a_late_one_is_ignored() {
    let mut script = Script::started(config().build());
    let probe = script.one();
    assert_eq!(script.client.next_deadline(), Some(at(11_000)));
    assert!(script.pass(10_999).is_empty() && script.sent().is_empty());
    assert!(script.pass(11_000).is_empty());
    // The probe is not cancelled: a legacy server knows neither.
    let hello = script.one();
    assert_eq!(hello["method"], "initialize");
    for late in [discovered(&["2026-07-28"]), "{}".to_owned()] {
        assert_eq!(script.strange(&result(&probe["id"], &late)), ViolationKind::Late);
    }
    assert_eq!(script.strange(&error(&probe["id"], -32601, "")), ViolationKind::Late);
    assert!(matches!(script.send(&result(&hello["id"], &initialized("2025-06-18"))), Some(Event::Ready)));
    assert_eq!(script.client.server().unwrap().version, V::V2025_06_18);
    assert_eq!(script.strange(&result(&probe["id"], &discovered(&["2026-07-28"]))), ViolationKind::Late);
    assert_eq!(script.client.server().unwrap().version, V::V2025_06_18);
}

#[test]
fn a_server_that_dies_of_the_probe_is_started_again_and_greeted() {
    let mut script = Script::started(config().build());
    script.one();
    let call =
        script.client.call(&CallTool::new("t"), &CallOptions::new(), script.now, &mut script.out).unwrap();
    assert!(matches!(script.client.eof(), Some(Event::Respawn)));
    assert!(script.due().is_empty());
    assert!(script.start().is_none());
    let hello = script.one();
    assert_eq!(hello["method"], "initialize");
    assert!(matches!(script.send(&result(&hello["id"], &initialized("2025-11-25"))), Some(Event::Ready)));
    // The call that waited is sent.
    let sent = script.sent();
    assert_eq!(
        (&sent[0]["method"], &sent[1]["method"]),
        (&json!("notifications/initialized"), &json!("tools/call"))
    );
    assert!(script.client.is_open(call));
    // LB-LIFE-07: no id comes twice, also over a restart.
    assert_eq!(sent[1]["id"], json!(3));

    // It dies of the handshake too: that is the end.
    let mut script = Script::started(config().build());
    assert!(matches!(script.client.eof(), Some(Event::Respawn)));
    assert!(script.start().is_none());
    assert!(matches!(script.client.eof(), Some(Event::Unusable(CallError::Closed))));
    assert!(script.start().is_none());
}

/// LC-LIFE-01, C-COMPAT-04: the refusal was its last word.
#[test]
fn a_server_that_refuses_the_probe_and_ends_is_started_again_and_greeted() {
    let mut script = Script::started(config().build());
    let probe = script.one();
    assert!(script.send(&error(&probe["id"], -32600, "")).is_none());
    assert_eq!(script.one()["method"], "initialize");
    assert!(matches!(script.client.eof(), Some(Event::Respawn)));
    assert!(script.start().is_none());
    let hello = script.one();
    assert_eq!(hello["method"], "initialize");
    assert!(matches!(script.send(&result(&hello["id"], &initialized("2025-11-25"))), Some(Event::Ready)));
    script.one();

    // Once it was of use, an end amid the handshake is one like others: a call that waits is kept.
    assert!(script.client.eof().is_none());
    assert!(script.start().is_none());
    script.one();
    let waits =
        script.client.call(&CallTool::new("t"), &CallOptions::new(), script.now, &mut script.out).unwrap();
    assert!(script.client.eof().is_none());
    assert!(script.due().is_empty() && script.client.is_open(waits));

    // Nothing was asked before the handshake: it is that which it does not bear.
    let mut script = Script::started(config().mode(Mode::Legacy).build());
    script.one();
    assert!(matches!(script.client.eof(), Some(Event::Unusable(CallError::Closed))));
}

#[test]
fn one_era_only() {
    let mut script = Script::started(config().mode(Mode::Legacy).build());
    assert_eq!(opening(&mut script), ["initialize 2025-11-25"]);

    let modern = || config().mode(Mode::Modern).build();
    let mut script = Script::started(modern());
    let probe = script.one();
    let event = script.send(&error(&probe["id"], -32601, ""));
    assert!(matches!(event, Some(Event::Unusable(CallError::NotModern))));
    assert!(script.sent().is_empty());

    let mut script = Script::started(modern());
    script.one();
    // There is nothing to fall back to, so that the server has the time to start that it has for `initialize`.
    assert_eq!(script.client.next_deadline(), Some(at(61_000)));
    let due = script.pass(61_000);
    assert!(matches!(due[..], [Event::Unusable(CallError::TimedOut)]), "{due:?}");

    let mut script = Script::started(modern());
    script.one();
    assert!(matches!(script.client.eof(), Some(Event::Unusable(CallError::Closed))));

    // A list of versions without one of that era.
    let mut script = Script::of(config().versions([V::V2025_06_18]).mode(Mode::Modern).build());
    assert!(matches!(script.start(), Some(Event::Unusable(CallError::NoCommonVersion(_)))));
    let mut script = Script::started(config().versions([V::V2025_06_18, V::V2025_03_26]).build());
    assert_eq!(opening(&mut script), ["initialize 2025-06-18"]);
}

#[test]
fn a_verdict_is_kept_and_assumed() {
    let script = Script::modern();
    let verdict = script.client.verdict().unwrap();
    let text = serde_json::to_string(&verdict).unwrap();
    assert_eq!(text, r#""2026-07-28""#);
    let kept: Verdict = serde_json::from_str(&text).unwrap();
    assert!(serde_json::from_str::<Verdict>(r#""2026-07-29""#).is_err());
    assert!(serde_json::from_str::<Verdict>("null").is_err());

    // Modern: nothing is asked.
    let mut script = Script::of(config().assume(kept).build());
    assert!(matches!(script.start(), Some(Event::Ready)));
    assert!(script.sent().is_empty());
    let server = script.client.server().unwrap();
    assert_eq!((server.version, &server.capabilities), (V::V2026_07_28, &None));
    script.tool("t", &CallOptions::new());

    // Legacy: the handshake at once, and if that fails the probe, once.
    let mut script = Script::started(config().assume(Verdict::new(V::V2025_06_18)).build());
    let hello = script.one();
    assert_eq!(hello["params"]["protocolVersion"], "2025-06-18");
    assert!(script.send(&error(&hello["id"], -32601, "")).is_none());
    let probe = script.one();
    assert_eq!(probe["method"], "server/discover");
    let mut copy = Script::started(config().assume(Verdict::new(V::V2025_06_18)).build());
    let hello = copy.one();
    copy.send(&error(&hello["id"], -32601, ""));
    copy.one();
    assert!(matches!(script.send(&result(&probe["id"], &discovered(&["2026-07-28"]))), Some(Event::Ready)));
    assert!(copy.send(&error(&probe["id"], -32601, "")).is_none());
    let hello = copy.one();
    assert_eq!(hello["method"], "initialize");
    assert!(matches!(copy.send(&error(&hello["id"], -32601, "")), Some(Event::Unusable(CallError::Rpc(_)))));

    // A revision that is not spoken here means nothing.
    let assumed = config().versions([V::V2026_07_28]).assume(Verdict::new(V::V2025_06_18));
    assert_eq!(opening(&mut Script::started(assumed.build())), ["server/discover 2026-07-28"]);
}

#[test]
fn a_version_that_cannot_be_used_ends_the_handshake() {
    // LC-LIFE-06, LB-LIFE-06
    for theirs in ["2023-01-01", "", "2026-07-28", "2025-06-18 "] {
        let mut script = Script::started(config().mode(Mode::Legacy).build());
        let hello = script.one();
        match script.send(&result(&hello["id"], &initialized(theirs))) {
            Some(Event::Unusable(CallError::NoCommonVersion(mismatch))) => {
                assert_eq!(mismatch.supported, [theirs]);
            }
            other => panic!("{other:?}"),
        }
        assert!(script.sent().is_empty(), "no `initialized` after a failed handshake");
        let call = script.client.call(&Ping::new(), &CallOptions::new(), script.now, &mut script.out);
        assert!(matches!(call, Err(CallError::NoCommonVersion(_))));
    }
    // A revision that the server knows and this client does not want.
    let mut script = Script::started(config().versions([V::V2025_11_25]).build());
    let hello = script.one();
    let event = script.send(&result(&hello["id"], &initialized("2025-06-18")));
    assert!(matches!(event, Some(Event::Unusable(CallError::NoCommonVersion(_)))));
    // The refusal of old revisions names what is served.
    let mut script = Script::started(config().mode(Mode::Legacy).build());
    let hello = script.one();
    let data = r#"{"supported":["2024-11-05","2025-03-26"],"requested":"2025-11-25"}"#;
    assert!(script.send(&error(&hello["id"], -32602, data)).is_none());
    assert_eq!(opening(&mut script), ["initialize 2025-03-26"]);
}

#[test]
fn a_server_without_handshakes_is_found_by_what_it_says_to_one() {
    // A modern-only server names its versions in whatever it answers to `initialize`.
    let mut script = Script::started(config().build());
    script.one();
    script.pass(11_000);
    let hello = script.one();
    let data = r#"{"supported":["2026-07-28"],"requested":"2025-11-25"}"#;
    assert!(script.send(&error(&hello["id"], -32022, data)).is_none());
    let probe = script.one();
    assert_eq!(probe["method"], "server/discover");
    assert!(matches!(script.send(&result(&probe["id"], &discovered(&["2026-07-28"]))), Some(Event::Ready)));
}

#[test]
fn c02_initialize_is_never_cancelled() {
    // LC-CANCEL-01
    let mut script = Script::started(config().mode(Mode::Legacy).build());
    let hello = script.one();
    let due = script.pass(61_000);
    assert!(matches!(due[..], [Event::Unusable(CallError::TimedOut)]), "{due:?}");
    assert!(script.sent().is_empty());
    assert_eq!(script.strange(&result(&hello["id"], &initialized("2025-11-25"))), ViolationKind::Late);
    assert!(script.client.server().is_none());
}

#[test]
fn a_handshake_that_cannot_be_read_is_the_end() {
    for odd in [
        "{}",
        "[]",
        r#"{"protocolVersion":5,"capabilities":{},"serverInfo":{"name":"a","version":"1"}}"#,
        r#"{"protocolVersion":"2025-06-18","capabilities":[],"serverInfo":{"name":"a","version":"1"}}"#,
    ] {
        let mut script = Script::started(config().mode(Mode::Legacy).build());
        let hello = script.one();
        let event = script.send(&result(&hello["id"], odd));
        assert!(matches!(event, Some(Event::Unusable(CallError::Malformed(_)))), "{odd}: {event:?}");
    }
}

#[test]
fn calls_that_come_early_wait_and_those_that_cannot_be_made_fail() {
    // LC-LIFE-03: nothing but the opening is sent before its answer.
    let options = CallOptions::new();
    let mut script = Script::started(config().build());
    let probe = script.one();
    let good = script.client.call(&CallTool::new("t"), &options, script.now, &mut script.out).unwrap();
    let old = script.client.call(&Ping::new(), &options, script.now, &mut script.out).unwrap();
    let gone = script.client.call(&CallTool::new("u"), &options, script.now, &mut script.out).unwrap();
    assert!(script.client.cancel(gone, None, &mut script.out));
    assert!(script.sent().is_empty());
    assert!(matches!(script.send(&result(&probe["id"], &discovered(&["2026-07-28"]))), Some(Event::Ready)));
    let sent = script.one();
    assert_eq!((&sent["method"], &sent["params"]["name"]), (&json!("tools/call"), &json!("t")));
    assert_eq!(script.client.next_deadline(), Some(at(0)));
    match &script.due()[..] {
        // `ping` went with the sessions.
        [Event::Failed { call, error: CallError::NotOffered(method) }] => {
            assert_eq!((*call, &**method), (old, "ping"));
        }
        other => panic!("{other:?}"),
    }
    assert!(script.client.is_open(good) && !script.client.is_open(old));

    // An unusable server fails what waits.
    let mut script = Script::started(config().mode(Mode::Modern).build());
    let probe = script.one();
    let call = script.client.call(&CallTool::new("t"), &options, script.now, &mut script.out).unwrap();
    assert!(matches!(script.send(&error(&probe["id"], -32601, "")), Some(Event::Unusable(_))));
    let due = script.due();
    assert!(
        matches!(due[..], [Event::Failed { call: c, error: CallError::NotModern }] if c == call),
        "{due:?}"
    );

    // And one that waits too long is over, without a word to the server.
    let mut script = Script::started(config().probe_timeout(std::time::Duration::from_secs(600)).build());
    script.one();
    script.client.call(&CallTool::new("t"), &options, script.now, &mut script.out).unwrap();
    let due = script.pass(61_000);
    assert!(matches!(due[..], [Event::Failed { error: CallError::TimedOut, .. }]), "{due:?}");
    assert!(script.sent().is_empty());
}

#[test]
fn notifications_before_the_server_is_known_harm_nothing() {
    let mut script = Script::started(config().build());
    script.one();
    for frame in [
        notification("notifications/message", r#"{"level":"info","data":"starting"}"#),
        notification("notifications/tools/list_changed", "{}"),
        notification("vendor/event", "{}"),
        notification("notifications/progress", r#"{"progressToken":1,"progress":1}"#),
        notification("notifications/cancelled", r#"{"requestId":1}"#),
    ] {
        let _ = script.send(&frame);
        assert!(script.sent().is_empty());
    }
    assert!(script.client.next_deadline().is_some());
}
