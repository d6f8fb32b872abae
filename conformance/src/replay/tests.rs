//! The replayer without a driver: what it asks for and what it makes of what it is told.

use std::time::Duration;

use super::{Next, Replay, Verdict};
use crate::exchange::{Exchange, Transport, parse};
use crate::requirement::Level;
use crate::revision::Revision;

const START: Duration = Duration::ZERO;

fn exchange(head: &str, steps: &[&str]) -> Exchange {
    let head = format!(
        r#"{{"exchange":"a/b","about":"A.","side":"server","revisions":["*"],"transports":["stdio"],"requires":["S-BASE-01","S-RES-08"]{head}}}"#
    );
    parse("a/b", &format!("{head}\n{}", steps.join("\n"))).unwrap()
}

fn modern(exchange: &Exchange) -> Replay<'_> {
    Replay::new(exchange, Revision::V2026_07_28, Transport::Stdio, None).unwrap()
}

/// What is written until the replay waits or ends.
fn written(replay: &mut Replay<'_>, now: Duration) -> (Vec<String>, Next) {
    let mut all = Vec::new();
    loop {
        match replay.next(now) {
            Next::Write(pieces) => all.push(String::from_utf8(pieces.concat()).unwrap()),
            other => return (all, other),
        }
    }
}

const CALL: &str = r#"{"send":{"method":"tools/call","params":{"name":"x"}},"as":"call"}"#;
const FAILS: &str = r#"{"expect":{"error":{"code":-32602,"message":{"$type":"string"}}}}"#;
const ERROR: &[u8] = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}"#;

#[test]
fn a_response_that_fits_ends_a_step() {
    let exchange = exchange("", &[CALL, FAILS]);
    let mut replay = modern(&exchange);
    let (sent, next) = written(&mut replay, START);
    assert!(
        sent[0].ends_with("}\n")
            && sent[0].contains("\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"")
    );
    assert_eq!(next, Next::Wait { until: Duration::from_secs(10), exit: false });
    replay.received(ERROR, START);
    assert_eq!(replay.next(START), Next::Finished);
    assert_eq!(replay.into_parts().0, []);
}

/// The specification recommends most numbers of errors, and demands few.
#[test]
fn the_number_of_an_error_counts_as_the_rows_that_name_one() {
    let level = |cited: &str, revision, error: &[u8]| {
        let text = r#"{"exchange":"a/b","about":"A.","side":"server","revisions":["*"],"transports":["stdio"],"requires":[CITED],"handshake":false}"#;
        let text = text.replace("CITED", cited);
        let exchange = parse("a/b", &format!("{text}\n{CALL}\n{FAILS}")).unwrap();
        let mut replay = Replay::new(&exchange, revision, Transport::Stdio, None).unwrap();
        written(&mut replay, START);
        replay.received(error, START);
        written(&mut replay, START);
        replay.into_parts().0.iter().map(|finding| finding.level).max()
    };
    let other = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m"}}"#;
    let (modern, legacy) = (Revision::V2026_07_28, Revision::V2025_11_25);
    assert_eq!(level(r#""S-RES-11""#, modern, ERROR), None);
    // A MUST that asks for a check and says nothing of the answer; a SHOULD that names the number.
    assert_eq!(level(r#""S-RES-11""#, modern, other), Some(Level::Should));
    assert_eq!(level(r#""S-RES-11","S-PROMPT-08""#, modern, other), Some(Level::Should));
    // A MUST that names it, where it binds.
    assert_eq!(level(r#""S-RES-11","S-RES-08""#, modern, other), Some(Level::Must));
    assert_eq!(level(r#""S-RES-11","S-RES-08""#, legacy, other), Some(Level::Should));
    let result = br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#;
    assert_eq!(level(r#""S-RES-11""#, modern, result), Some(Level::Must));
}

#[test]
fn a_difference_is_told_with_its_line_and_place() {
    let exchange = exchange("", &[CALL, FAILS]);
    let mut replay = modern(&exchange);
    written(&mut replay, START);
    replay.received(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}"#, START);
    assert_eq!(replay.next(START), Next::Finished);
    let (findings, transcript) = replay.into_parts();
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(
        (finding.line, finding.requires.as_slice(), finding.level),
        (Some(3), ["S-BASE-01".to_owned(), "S-RES-08".to_owned()].as_slice(), Level::Must)
    );
    assert_eq!(finding.expected, "/error/code: -32602");
    assert!(finding.got.starts_with("-32601 in {"), "{}", finding.got);
    assert_eq!(transcript.len(), 2);
}

#[test]
fn silence_is_a_failure_when_the_time_is_over_and_at_once_when_the_output_has_ended() {
    let exchange = exchange("", &[CALL, FAILS]);
    let mut late = modern(&exchange);
    written(&mut late, START);
    assert_eq!(late.next(Duration::from_secs(11)), Next::Finished);
    assert_eq!(late.into_parts().0[0].got, "nothing in time");
    let mut ended = modern(&exchange);
    written(&mut ended, START);
    ended.ended("the output ended", START);
    assert_eq!(ended.next(START), Next::Finished);
    assert_eq!(ended.into_parts().0[0].got, "the output ended");
}

/// A slow start is no silence; after the first words it is.
#[test]
fn the_first_words_may_take_longer() {
    let exchange = exchange("", &[CALL, FAILS]);
    let mut replay = modern(&exchange).with_startup(Duration::from_secs(30));
    let (_, next) = written(&mut replay, START);
    assert_eq!(next, Next::Wait { until: Duration::from_secs(30), exit: false });
    assert_ne!(replay.next(Duration::from_secs(20)), Next::Finished);
    assert_eq!(replay.next(Duration::from_secs(31)), Next::Finished);
}

#[test]
fn a_level_that_is_written_makes_a_warning_of_silence_and_the_exchange_goes_on() {
    let step = FAILS.replace("}}}}", "}}},\"level\":\"should\"}");
    let exchange = exchange(
        "",
        &[CALL, &step, r#"{"send":{"method":"tools/list"}}"#, r#"{"expect":{"result":{"tools":[]}}}"#],
    );
    let mut replay = modern(&exchange);
    written(&mut replay, START);
    let (sent, _) = written(&mut replay, Duration::from_secs(11));
    assert!(sent[0].contains("tools/list"));
    replay.received(br#"{"jsonrpc":"2.0","id":2,"result":{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}"#, START);
    assert_eq!(replay.next(START), Next::Finished);
    assert_eq!(Verdict::of(&replay.into_parts().0), Verdict::Warning);
}

#[test]
fn the_legacy_handshake_opens_the_session_and_a_ping_of_the_server_is_answered() {
    let exchange = exchange("", &[CALL, FAILS]);
    let mut replay = Replay::new(&exchange, Revision::V2025_06_18, Transport::Stdio, None).unwrap();
    let (sent, _) = written(&mut replay, START);
    assert!(sent[0].contains("\"initialize\"") && sent[0].contains("\"2025-06-18\""));
    replay.received(br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#, START);
    assert_eq!(written(&mut replay, START).0, ["{\"id\":\"p\",\"jsonrpc\":\"2.0\",\"result\":{}}\n"]);
    replay.received(br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"logging":{}},"serverInfo":{"name":"s","version":"1"}}}"#, START);
    let (sent, _) = written(&mut replay, START);
    assert!(sent[0].contains("notifications/initialized") && sent[1].contains("tools/call"));
    // A log message may come at any time and is passed over.
    replay.received(
        br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#,
        START,
    );
    replay.received(br#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"m"}}"#, START);
    assert_eq!(replay.next(START), Next::Finished);
    assert_eq!(replay.into_parts().0, []);
}

#[test]
fn another_version_in_the_handshake_is_a_failure() {
    let exchange = exchange("", &[CALL, FAILS]);
    let mut replay = Replay::new(&exchange, Revision::V2025_06_18, Transport::Stdio, None).unwrap();
    written(&mut replay, START);
    replay.received(br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#, START);
    assert_eq!(replay.next(START), Next::Finished);
    assert!(replay.into_parts().0[0].requires.contains(&"LS-LIFE-03".to_owned()));
}

#[test]
fn responses_are_matched_by_id_in_any_order_and_requests_can_be_answered() {
    let steps = [
        r#"{"send":{"method":"tools/call","params":{"name":"a"}},"as":"a"}"#,
        r#"{"send":{"method":"tools/call","params":{"name":"b"}},"as":"b"}"#,
        r#"{"expect":{"method":"roots/list"},"as":"roots"}"#,
        r#"{"answer":{"result":{"roots":[]}},"to":"roots"}"#,
        r#"{"expect":{"result":{"content":[]}},"for":"a"}"#,
        r#"{"expect":{"error":{"code":5,"message":"m"}},"for":"b"}"#,
    ];
    let exchange = exchange(r#","client":{"roots":{}}"#, &steps);
    let mut replay = Replay::new(&exchange, Revision::V2025_06_18, Transport::Stdio, None).unwrap();
    written(&mut replay, START);
    replay.received(br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#, START);
    written(&mut replay, START);
    replay.received(br#"{"jsonrpc":"2.0","id":3,"error":{"code":5,"message":"m"}}"#, START);
    replay.received(br#"{"jsonrpc":"2.0","id":77,"method":"roots/list"}"#, START);
    assert_eq!(
        written(&mut replay, START).0,
        ["{\"id\":77,\"jsonrpc\":\"2.0\",\"result\":{\"roots\":[]}}\n"]
    );
    replay.received(br#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#, START);
    assert_eq!(replay.next(START), Next::Finished);
    assert_eq!(replay.into_parts().0, []);
}

#[test]
fn a_response_during_is_a_breach_and_a_message_nobody_wants_too() {
    let exchange = exchange(
        "",
        &[r#"{"during":{"method":"tools/call","params":{"name":"slow"}},"steps":[{"wait":50}]}"#, FAILS],
    );
    let mut early = modern(&exchange);
    written(&mut early, START);
    early.received(ERROR, START);
    assert_eq!(early.next(START), Next::Finished);
    assert!(early.into_parts().0[0].expected.contains("no response before"));
    let mut noisy = modern(&exchange);
    written(&mut noisy, START);
    written(&mut noisy, Duration::from_millis(51));
    noisy.received(br#"{"jsonrpc":"2.0","method":"notifications/vendor","params":{}}"#, START);
    assert_eq!(noisy.next(START), Next::Finished);
    assert!(noisy.into_parts().0[0].got.starts_with("unasked: "));
}

#[test]
fn several_messages_are_counted() {
    let progress = r#"{"expect":{"method":"notifications/progress","params":{"progressToken":"t","progress":{"$type":"number"}}},"times":{"min":2}}"#;
    let call = r#"{"send":{"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t"}}}}"#;
    let exchange = exchange("", &[call, progress, FAILS]);
    let note = |value: u8| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":{value}}}}}"#
        )
    };
    let mut replay = modern(&exchange);
    written(&mut replay, START);
    replay.received(note(1).as_bytes(), START);
    replay.received(note(2).as_bytes(), START);
    replay.received(ERROR, START);
    assert_eq!(replay.next(START), Next::Finished);
    assert_eq!(replay.into_parts().0, []);
    // One is too few; the response that is there already shows that no more will come.
    let mut short = modern(&exchange);
    written(&mut short, START);
    short.received(note(1).as_bytes(), START);
    short.received(ERROR, START);
    assert_eq!(short.next(START), Next::Wait { until: Duration::from_secs(1), exit: false });
    assert_eq!(short.next(Duration::from_secs(1)), Next::Finished);
    assert!(short.into_parts().0[0].expected.contains("(1 of at least 2 came)"));
}

#[test]
fn bytes_are_cut_and_polling_repeats() {
    let steps = [
        r#"{"split":[3]}"#,
        r#"{"send_text":"{\"a\":1}\n"}"#,
        r#"{"poll":{"method":"tasks/get","params":{"taskId":"t"}},"until":{"result":{"status":"completed","$rest":true}},"every":20}"#,
    ];
    let exchange = exchange("", &steps);
    let mut replay = modern(&exchange);
    assert_eq!(replay.next(START), Next::Write(vec![b"{\"a".to_vec(), b"\":1}\n".to_vec()]));
    assert!(matches!(replay.next(START), Next::Write(_)));
    let result = |id: u8, status: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","taskId":"t","status":"{status}","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"s","version":"1"}}}}}}}}"#
        )
    };
    replay.received(result(1, "working").as_bytes(), START);
    assert_eq!(replay.next(START), Next::Wait { until: Duration::from_millis(20), exit: false });
    assert!(matches!(replay.next(Duration::from_millis(20)), Next::Write(_)));
    replay.received(result(2, "completed").as_bytes(), START);
    assert_eq!(replay.next(Duration::from_millis(21)), Next::Finished);
    assert_eq!(replay.into_parts().0, []);
}

#[test]
fn nothing_means_nothing_and_an_exit_is_waited_for() {
    let exchange = exchange(
        "",
        &[r#"{"expect_nothing":100}"#, r#"{"close":"stdin"}"#, r#"{"expect_exit":500,"code":0}"#],
    );
    let mut replay = modern(&exchange);
    assert_eq!(replay.next(START), Next::Wait { until: Duration::from_millis(100), exit: false });
    let later = Duration::from_millis(100);
    assert_eq!(replay.next(later), Next::CloseInput);
    assert_eq!(replay.next(later), Next::Wait { until: Duration::from_millis(600), exit: true });
    replay.exited(crate::subject::Exit { code: Some(1), text: "exit code 1".to_owned() }, later);
    assert_eq!(replay.next(later), Next::Finished);
    assert_eq!(replay.into_parts().0[0].got, "exit code 1");
}
