//! Which requests a client sent after it knew that its session is over.
//!
//! Requests on two connections may pass each other, however long ago they were sent. So only what must have been sent
//! later counts as sent later: no client is accused for a request that was on its way.

use std::collections::BTreeSet;

use super::stage::{Conn, WebRequest};

/// What is known since the latest session ended.
#[derive(Debug, Default)]
pub(super) struct Informed {
    /// Connections on which there was a request since the client began anew: the next one on each was sent after the
    /// answer to that one.
    since: BTreeSet<Conn>,
    /// The connection that was made to begin anew, if one was. Connections are numbered in the order in which they were made.
    opener: Option<Conn>,
    /// All connections with a request.
    seen: BTreeSet<Conn>,
}

impl Informed {
    /// A session is over.
    pub(super) fn over(&mut self) {
        self.since.clear();
        self.opener = None;
    }

    /// Takes note of a request. Whether it was sent by a client that knows.
    pub(super) fn learn(&mut self, conn: Conn, web: &WebRequest, any_over: bool) -> bool {
        let is_first = self.seen.insert(conn);
        let knows = self.since.contains(&conn) || self.opener.is_some_and(|opener| conn > opener);
        // Nobody opens a session who believes to have one.
        let begins = any_over && web.method == "POST" && is_initialize(&web.body);
        if begins && self.since.is_empty() && is_first {
            self.opener = Some(conn);
        }
        if begins || !self.since.is_empty() {
            self.since.insert(conn);
        }
        knows
    }
}

fn is_initialize(body: &[u8]) -> bool {
    let message = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    message.get("method").and_then(serde_json::Value::as_str) == Some("initialize")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(informed: &mut Informed, conn: Conn, method: &str, any_over: bool) -> bool {
        let web = WebRequest {
            method: "POST".to_owned(),
            target: "/mcp".to_owned(),
            headers: Vec::new(),
            body: format!("{{\"method\":\"{method}\"}}").into_bytes(),
            elsewhere: false,
            informed: false,
        };
        informed.learn(conn, &web, any_over)
    }

    /// LC-SESS-03
    #[test]
    fn what_crossed_the_end_of_a_session_is_no_proof() {
        let mut informed = Informed::default();
        for (conn, method) in [(1, "initialize"), (2, "tools/call")] {
            assert!(!sent(&mut informed, conn, method, false));
        }
        // The session is over; the client begins anew on the connection of the refusal.
        assert!(!sent(&mut informed, 2, "initialize", true));
        // These were on their way: on one that was there before, and on one that was made meanwhile.
        assert!(!sent(&mut informed, 1, "ping", true) && !sent(&mut informed, 3, "ping", true));
        // Those were not.
        assert!(sent(&mut informed, 2, "ping", true));
        assert!(sent(&mut informed, 1, "ping", true) && sent(&mut informed, 3, "ping", true));
    }

    #[test]
    fn connections_for_one_request_each_are_in_their_order() {
        let mut informed = Informed::default();
        for conn in 1..4 {
            assert!(!sent(&mut informed, conn, "tools/call", false));
        }
        assert!(!sent(&mut informed, 6, "initialize", true));
        assert!(!sent(&mut informed, 5, "ping", true) && !sent(&mut informed, 4, "ping", true));
        assert!(sent(&mut informed, 7, "ping", true));
    }
}
