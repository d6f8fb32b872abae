//! Progress: only where it was asked for, only forwards, only before the answer.

use mcp_proto::model::{CallToolResult, ProtocolVersion as V};
use mcp_proto::server::{Channel, Delivery, Progress};
use serde_json::{Value, json};

use super::pair::{Pair, call, call_with_token};

/// C06, S-PROG-01, S-PROG-03, S-WIRE-04: the token comes back as it was given, the values grow.
#[test]
fn c06_tokens_are_echoed_and_values_grow() {
    for version in V::ALL {
        for token in ["0", "\"0\"", "\"abc\"", "\"\"", "9007199254740993", "-1"] {
            let mut pair = Pair::speaking(version);
            let frame = call_with_token(version, "1", token);
            let (pending, _) = pair.tool(&frame);
            let key = pending.key();
            let Pair { server, out, .. } = &mut pair;
            let written: Vec<_> = [1.0, 1.0, 0.5, 2.5, 2.0, f64::NAN, f64::INFINITY]
                .map(|value| server.progress(&pending, Progress::new(value), out).is_written())
                .into();
            assert_eq!(written, [true, false, false, true, false, false, false]);
            let exact: Value = serde_json::from_str(token).unwrap();
            let messages = pair.messages();
            assert_eq!(
                messages,
                [1.0, 2.5].map(|value| {
                    let value = if value == 1.0 { json!(1) } else { json!(value) };
                    json!({"jsonrpc": "2.0", "method": "notifications/progress",
                        "params": {"progressToken": exact, "progress": value}})
                }),
            );
            // S-PROG-04: nothing after the answer.
            let Pair { server, out, .. } = &mut pair;
            assert!(server.respond(pending, &CallToolResult::text("x"), out).is_written());
            assert_eq!(server.progress_of(key, Progress::new(9.0), out), Delivery::Discarded);
            assert_eq!(pair.messages().len(), 1);
        }
    }
}

/// C06: without a token, or with something that is none, nothing is sent; the call itself is fine.
#[test]
fn c06_no_token_no_progress() {
    for version in V::ALL {
        let mut pair = Pair::speaking(version);
        let mut frames = vec![call(version, "1", "t")];
        let long = format!("\"{}\"", "x".repeat(300));
        frames.extend(["null", "1.5", "{}", "[1]", "true", &long].map(|t| call_with_token(version, "1", t)));
        for frame in frames {
            let (pending, _) = pair.tool(&frame);
            let Pair { server, out, .. } = &mut pair;
            assert_eq!(server.progress(&pending, Progress::new(1.0), out), Delivery::Discarded);
            assert!(server.respond(pending, &CallToolResult::text("x"), out).is_written());
            assert_eq!(pair.message()["id"], 1);
        }
    }
}

/// Requests that share a token do not share their progress.
#[test]
fn progress_belongs_to_one_request() {
    let mut pair = Pair::new();
    let frames = [call_with_token(V::LATEST, "1", "7"), call_with_token(V::LATEST, "2", "8")];
    let (one, _) = pair.tool(&frames[0]);
    let (two, _) = pair.tool(&frames[1]);
    let Pair { server, out, .. } = &mut pair;
    for (pending, value) in [(&one, 5.0), (&two, 1.0), (&one, 6.0), (&two, 2.0)] {
        assert!(server.progress(pending, Progress::new(value), out).is_written());
    }
    let seen: Vec<_> = pair
        .messages()
        .iter()
        .map(|m| (m["params"]["progressToken"].clone(), m["params"]["progress"].clone()))
        .collect();
    assert_eq!(
        seen,
        [(json!(7), json!(5)), (json!(8), json!(1)), (json!(7), json!(6)), (json!(8), json!(2))]
    );
}

/// `total` and `message`, the latter since 2025-03-26.
#[test]
fn the_parts_of_progress() {
    for version in V::ALL {
        let mut pair = Pair::speaking(version);
        let frame = call_with_token(version, "1", "7");
        let (pending, _) = pair.tool(&frame);
        let progress = Progress::new(0.25).of(1e3).message("a \"quarter\"");
        assert!(pair.server.progress(&pending, progress, &mut pair.out).is_written());
        let mut params = json!({"progressToken": 7, "progress": 0.25, "total": 1000});
        if version >= V::V2025_03_26 {
            params["message"] = json!("a \"quarter\"");
        }
        assert_eq!(pair.message()["params"], params);
        let progress = Progress::new(0.5).of(f64::INFINITY);
        assert!(pair.server.progress(&pending, progress, &mut pair.out).is_written());
        assert_eq!(pair.message()["params"], json!({"progressToken": 7, "progress": 0.5}));
    }
}
