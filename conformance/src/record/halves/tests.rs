use serde_json::{Value, json};

use super::halves;
use crate::exchange::parse;

/// The steps of both halves of these steps, each half read as an exchange.
fn both(revision: &str, transport: &str, steps: &[Value]) -> [Vec<Value>; 2] {
    let head = json!({"exchange": "a/b", "about": "A.", "recorded": true, "revisions": [revision],
        "transports": [transport], "plan": {"steps": []}});
    let lines = std::iter::once(&head).chain(steps).map(|line| format!("{line}\n"));
    let halves = halves(&lines.collect::<String>()).unwrap().unwrap();
    [halves.server, halves.client].map(|(name, text)| {
        let exchange = parse(&name, &text).unwrap();
        assert!(exchange.head.recorded && exchange.head.name == name);
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
    })
}

#[test]
fn what_one_side_made_up_is_bound_by_the_other() {
    let [server, client] = both(
        "2025-11-25",
        "stdio",
        &[
            json!({"client": {"id": 1, "method": "a", "params": {"token": {"$bind": "t", "value": "T"}}}}),
            json!({"server": {"id": 1, "result": {"token": {"$ref": "t"}, "next": {"$bind": "c", "value": "C"},
                "at": {"$type": "string", "value": "now"}, "open": {"$type": "string"}}}}),
            json!({"client": {"id": 2, "method": "a", "params": {"next": {"$ref": "c"}, "token": {"$ref": "t"}}}}),
        ],
    );
    // The suite is the client: it says what it said, and learns what the server makes up.
    assert_eq!(server[0]["send"]["params"], json!({"token": "T"}));
    let result =
        json!({"token": "T", "next": {"$bind": "c"}, "at": {"$type": "string"}, "open": {"$type": "string"}});
    assert_eq!(server[1], json!({"expect": {"result": result}, "for": "c1"}));
    assert_eq!(server[2]["send"]["params"], json!({"next": {"$ref": "c"}, "token": "T"}));
    // The suite is the server.
    assert_eq!(client[0]["expect"]["params"], json!({"token": {"$bind": "t"}}));
    let result = json!({"token": {"$ref": "t"}, "next": "C", "at": "now", "open": "text"});
    assert_eq!(client[1], json!({"answer": {"result": result}, "to": "c1"}));
    assert_eq!(client[2]["expect"]["params"], json!({"next": "C", "token": {"$ref": "t"}}));
}

#[test]
fn a_member_whose_name_begins_with_a_dollar_means_nothing_else() {
    let [server, client] = both(
        "2025-11-25",
        "stdio",
        &[
            json!({"client": {"id": 1, "method": "a"}}),
            json!({"server": {"id": 1, "result": {"exact": {"$$ref": "x"}, "open": {"$$ref": "x", "d": {"$type": "string"}}}}}),
        ],
    );
    let expected =
        json!({"exact": {"$literal": {"$ref": "x"}}, "open": {"d": {"$type": "string"}, "$rest": true}});
    assert_eq!(server[1]["expect"]["result"], expected);
    let said =
        json!({"exact": {"$literal": {"$ref": "x"}}, "open": {"$literal": {"$ref": "x", "d": "text"}}});
    assert_eq!(client[1]["answer"]["result"], said);
}

#[test]
fn a_refusal_without_a_response_is_one_of_http() {
    let [server, client] = both(
        "2025-11-25",
        "http",
        &[
            json!({"client": {"id": 1, "method": "server/discover"}, "request": 1, "headers": {"accept": "x", "user": "y"}}),
            json!({"server": {"id": null, "error": {"code": 1, "message": "no"}}, "request": 1, "status": 400,
                "headers": {"content-type": "application/json", "x-powered-by": "z"}}),
        ],
    );
    assert_eq!(server[0]["http"]["message"]["method"], "server/discover");
    assert_eq!((server[0]["expect"]["status"].as_u64(), server.len()), (Some(400), 1));
    assert_eq!(client[0]["headers"], json!({"accept": "x"}));
    let response = json!({"status": 400, "headers": {"content-type": "application/json"},
        "body": {"id": null, "error": {"code": 1, "message": "no"}}});
    assert_eq!(client[1], json!({"respond": response, "to": "c1"}));
}

#[test]
fn streams_and_their_ends_are_those_of_the_requests() {
    let stream = |number: u64| json!({"server": null, "request": number, "status": 200, "open": true});
    let tag = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": 5}});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": tag});
    let [server, client] = both(
        "2026-07-28",
        "http",
        &[
            json!({"client": {"id": 5, "method": "subscriptions/listen", "params": {"_meta": {}}}, "request": 1}),
            stream(1),
            json!({"server": told, "request": 1, "event": {"id": "7"}}),
            json!({"cut": 1, "by": "client"}),
            json!({"client": {"id": 6, "method": "tools/call"}, "request": 2}),
            stream(2),
            json!({"cut": 2, "by": "server"}),
        ],
    );
    assert_eq!(server[1]["expect"]["params"], tag);
    assert_eq!(server[2], json!({"hang_up": "c1"}));
    // What this client did not say is not added for it.
    assert_eq!(server[3]["send"]["params"], json!({"$absent": true}));
    assert_eq!(server[4], json!({"stream": "c2", "ends": 10_000}));
    let meta = &client[1]["tell"]["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], json!({"$id": "c1"}));
    assert_eq!((&client[1]["on"], &client[1]["event"]), (&json!("c1"), &json!({"id": "7"})));
    assert_eq!(client[2], json!({"closed": "c1"}));
    assert_eq!(client[4], json!({"cut": "c2"}));
}

#[test]
fn questions_cancellations_and_noise_are_on_the_side_that_made_them() {
    let [server, client] = both(
        "2025-11-25",
        "stdio",
        &[
            json!({"server": "warming up"}),
            json!({"client": {"id": 1, "method": "tools/call"}}),
            json!({"server": {"id": 9, "method": "roots/list"}}),
            json!({"client": {"id": 9, "result": {"roots": []}}}),
            json!({"client": {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "r"}}}),
            json!({"exit": 3}),
        ],
    );
    assert_eq!(server[1], json!({"expect": {"method": "roots/list"}, "as": "s2"}));
    assert_eq!(server[2], json!({"answer": {"result": {"roots": []}}, "to": "s2"}));
    assert_eq!(server[3]["send"]["params"], json!({"requestId": 1, "reason": "r"}));
    assert_eq!(server[4], json!({"expect_exit": 10_000, "code": 3}));
    assert_eq!(client[0], json!({"write": "warming up\n"}));
    assert_eq!(client[3], json!({"expect": {"result": {"roots": []}}, "for": "s2"}));
    assert_eq!(client[4]["expect"]["params"], json!({"requestId": {"$id": "c1"}}));
    assert_eq!(client[5], json!({"exit": 3}));
}

#[test]
fn what_is_no_recording_is_told_apart_from_a_broken_one() {
    assert_eq!(halves(""), Ok(None));
    assert_eq!(halves("{\"exchange\":\"a/b\"}\n"), Ok(None));
    let head =
        r#"{"exchange":"a/b","recorded":true,"revisions":["2025-11-25"],"transports":["stdio"],"plan":{}}"#;
    assert!(halves(&format!("{head}\n[]")).unwrap_err().contains("line 2: expected one JSON object"));
    assert!(
        halves(&format!("{head}\n{{\"said\":1}}")).unwrap_err().contains("step 1: expected one of `client`")
    );
    assert!(halves(&head.replace(",\"plan\":{}", "")).unwrap_err().contains("`plan`"));
    assert!(halves(&head.replace("2025-11-25", "2025-11-26")).unwrap_err().contains("revision"));
}
