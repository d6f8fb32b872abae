//! What comes over HTTP, and on which stream.

use serde_json::{Value, json};

use super::{A, D, E, blames, error, keeps, ledger, notification, request, response};
use crate::http::{Purpose, Stream};
use crate::requirement::Level;

/// An answer over HTTP with this status and content type.
fn stream(purpose: Purpose, status: u16, media: &str) -> Stream {
    let mut stream = Stream::new(purpose);
    stream.status = Some(status);
    stream.headers.push(("Content-Type".to_owned(), media.to_owned()));
    stream
}

fn of_request(method: &str) -> Purpose {
    Purpose::Request { id: json!(1), method: method.to_owned() }
}

#[test]
pub(super) fn what_comes_over_http_keeps_to_the_transport() {
    const EVENTS: &str = "text/event-stream";
    const JSON: &str = "application/json";
    let open = |revision, method: &str| ledger(revision, json!({}), &[request(method, json!({}))]);
    blames(&open(A, "ping").answered(&stream(Purpose::Downstream, 200, JSON)), &["LS-SSE-01"]);
    blames(&open(D, "ping").answered(&stream(Purpose::Notice, 200, JSON)), &["LS-HTTP-02"]);
    let mut notice = stream(Purpose::Notice, 202, JSON);
    assert_eq!(open(D, "ping").closed(&notice), []);
    notice.body = b"{}".to_vec();
    blames(&open(D, "ping").closed(&notice), &["LS-HTTP-02"]);
    blames(&open(E, "ping").answered(&stream(Purpose::Notice, 200, JSON)), &["S-HTTP-06"]);
    blames(&open(D, "ping").answered(&stream(of_request("ping"), 200, "text/html")), &["S-HTTP-08"]);
    blames(&open(D, "ping").answered(&stream(Purpose::Listening, 200, JSON)), &["LS-HTTP-10"]);
    blames(&open(E, "ping").answered(&stream(of_request("ping"), 200, EVENTS)), &["S-HTTP-12"]);
    let mut opened = stream(of_request("ping"), 200, JSON);
    assert_eq!(open(D, "ping").answered(&opened), []);
    opened.headers.push(("Mcp-Session-Id".to_owned(), "a b".to_owned()));
    blames(&open(D, "ping").answered(&opened), &["LS-SESS-02"]);
    blames(&open(E, "ping").answered(&opened), &["S-COMPAT-03"]);
    blames(&[open(D, "ping").repeated_event("7")], &["LS-HTTP-16"]);

    assert_eq!(open(D, "tasks/get").answered(&stream(of_request("tasks/get"), 200, JSON)), []);
    blames(&open(D, "tasks/get").answered(&stream(of_request("tasks/get"), 200, EVENTS)), &["LS-TASK-03"]);
    let mut done = stream(of_request("tools/call"), 200, EVENTS);
    let progress = notification("notifications/progress", json!({"progressToken": 9, "progress": 1}));
    blames(&open(E, "tools/call").carried(&done, &progress), &["S-HTTP-09"]);
    done.answered = true;
    blames(&open(E, "tools/call").carried(&done, &progress), &["S-HTTP-11"]);
    let mut two = open(D, "ping");
    let mut other = request("ping", json!({}));
    other["id"] = json!(2);
    two.sent(&other);
    let foreign = json!({"jsonrpc": "2.0", "id": 2, "result": {}});
    blames(&two.carried(&stream(of_request("ping"), 200, EVENTS), &foreign), &["S-BASE-01", "LS-HTTP-06"]);
    blames(&two.carried(&stream(Purpose::Listening, 200, EVENTS), &foreign), &["LS-HTTP-12"]);
    let result = response(E, json!({}));
    blames(&open(E, "ping").carried(&stream(of_request("ping"), 500, JSON), &result), &["S-HTTP-08"]);

    let with_code = |code, ids: &[&str]| {
        let refused = error(code, json!({}));
        blames(&open(E, "ping").carried(&stream(of_request("ping"), 200, JSON), &refused), ids);
    };
    with_code(-32601, &["S-HDR-03"]);
    with_code(-32020, &["S-HDR-22", "S-HDR-15"]);
    with_code(-32021, &["S-META-05"]);
    with_code(-32022, &["S-HDR-02"]);
    with_code(-32602, &["S-META-02"]);
    let nothing = open(D, "ping").text(b"nothing").unwrap_err();
    blames(&[*nothing], &["S-HTTP-08", "B-BASE-02"]);
    blames(&[*open(D, "ping").text(b"\"\xff\"").unwrap_err()], &["B-TRANS-01"]);
    blames(&[*open(D, "ping").text(b"5").unwrap_err()], &["B-BASE-02"]);
    blames(&[*open(D, "ping").text(b"[{}]").unwrap_err()], &["S08", "B-BASE-02"]);
}

#[test]
pub(super) fn messages_stay_on_their_streams() {
    const EVENTS: &str = "text/event-stream";
    let call = |id: i64, token: &str| {
        let mut call = request("tools/call", json!({"_meta": {"progressToken": token}}));
        call["id"] = json!(id);
        call
    };
    let progress =
        |token: &str| notification("notifications/progress", json!({"progressToken": token, "progress": 1}));
    let two = ledger(D, json!({}), &[call(1, "a"), call(2, "b")]);
    let own = stream(of_request("tools/call"), 200, EVENTS);
    assert_eq!(two.carried(&own, &progress("a")), []);
    blames(&two.carried(&own, &progress("b")), &["LS-HTTP-08"]);
    let listening = stream(Purpose::Listening, 200, EVENTS);
    assert_eq!(two.carried(&listening, &notification("notifications/tools/list_changed", json!({}))), []);
    blames(&two.carried(&listening, &progress("a")), &["LS-HTTP-11"]);
    let mut done = own.clone();
    done.answered = true;
    blames(&two.carried(&done, &progress("a")), &["LS-HTTP-09"]);

    let log = notification("notifications/message", json!({"level": "info", "data": 1}));
    let asks = |method: &str, meta: Value| ledger(E, json!({}), &[request(method, json!({"_meta": meta}))]);
    let asked = asks("tools/call", json!({"io.modelcontextprotocol/logLevel": "info"}));
    assert_eq!(asked.carried(&own, &log), []);
    blames(&asks("tools/call", json!({})).carried(&own, &log), &["S-LOG-03"]);
    let listen = stream(of_request("subscriptions/listen"), 200, EVENTS);
    let open = asks("subscriptions/listen", json!({}));
    blames(&open.carried(&listen, &log), &["S-TASK-28"]);
    blames(&open.carried(&listen, &progress("a")), &["S-TASK-28", "S-HTTP-09"]);

    let declared = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let secrets = ["suite-first"];
    assert_eq!(asked.leaked(&log, secrets.into_iter()), None);
    let loud = notification(
        "notifications/message",
        json!({"level": "info", "data": {"auth": "Bearer suite-first"}}),
    );
    blames(asked.leaked(&loud, secrets.into_iter()).as_slice(), &["S-LOG-09"]);
    let mut asking = asks("tools/call", declared);
    keeps(&mut asking, &response(E, json!({"resultType": "input_required", "requestState": "s"})));
    let after = asking.carried(&done, &log);
    blames(&after, &["S-SEPX-07"]);
    assert!(after.iter().any(|breach| breach.level == Level::Must && breach.rule == "after-response"));
}
