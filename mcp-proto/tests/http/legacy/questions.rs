//! What the server asks in a session, and how it is answered.

use std::time::Duration;

use serde_json::{Value, json};

use super::{answer, net, text, yes};
use crate::harness::call;

/// Questions go out on the POST's stream; the answer is another POST.
#[test]
fn questions_go_out_on_the_stream_of_their_call() {
    for (version, tool, method, result, expected) in [
        (
            "2025-06-18",
            "confirm",
            "elicitation/create",
            json!({"action": "accept", "content": {"confirm": true}}),
            "true",
        ),
        (
            "2025-03-26",
            "sample",
            "sampling/createMessage",
            json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}),
            "m",
        ),
        ("2025-11-25", "roots", "roots/list", json!({"roots": [{"uri": "file:///a"}]}), "1"),
    ] {
        let (mut net, _) = net();
        let all = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        let session = net.session(version, all.clone());
        let other = net.session(version, all);
        let get = net.send(&session.get());
        let post = net.send(&session.post(&call(1, tool, json!({}))));
        let question = net.one(post);
        assert_eq!(question["method"], method);
        // Another session's answer under the same id answers nothing.
        let foreign = net.send(&other.post(&answer(&question, result.clone())));
        assert_eq!(net.status(foreign), 202);
        assert!(net.messages(post).is_empty());
        let got = net.send(&session.post(&answer(&question, result.clone())));
        assert_eq!((net.status(got), net.at(got).body.len()), (202, 0));
        assert_eq!(text(&net.one(post)), expected);
        assert!(net.is_done(post) && net.messages(get).is_empty());
        let twice = net.send(&session.post(&answer(&question, result)));
        assert_eq!(net.status(twice), 202);
    }
}

/// A question whose stream was cut is asked again to whoever resumes it.
#[test]
fn a_question_waits_for_the_client_to_come_back() {
    let (mut net, _) = net();
    let session = net.session("2025-11-25", json!({"elicitation": {}}));
    let post = net.send(&session.post(&call(1, "confirm", json!({}))));
    let events = net.events(post);
    let question: Value = serde_json::from_str(events[1].data.as_ref().unwrap()).unwrap();
    net.disconnect(post);
    let back = net.send(&session.resume(events[0].id.as_ref().unwrap()));
    assert_eq!(net.one(back), question);
    net.send(&session.post(&yes(&question)));
    assert_eq!(text(&net.one(back)), "true");
}

/// A question that is not answered in time is withdrawn where it was asked, and the call fails.
#[test]
fn a_question_that_times_out_is_withdrawn_on_its_stream() {
    let (mut net, _) = net();
    let session = net.session("2025-11-25", json!({"elicitation": {}}));
    let get = net.send(&session.get());
    net.events(get);
    let post = net.send(&session.post(&call(1, "confirm", json!({}))));
    let question = net.one(post);
    net.pass(Duration::from_secs(600));
    let messages = net.messages(post);
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0]["method"], "notifications/cancelled");
    assert_eq!(messages[0]["params"]["requestId"], question["id"]);
    assert_eq!(messages[1]["id"], 1);
    assert!(net.messages(get).is_empty());
}
