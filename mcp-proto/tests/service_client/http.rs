//! The same client over HTTP: the test is the network and the server.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_proto::client::http::{Action, ExchangeId, Lost, Request, Settings, Token, Url};
use mcp_proto::client::{CallError, Change, Mode};
use mcp_proto::model::{ElicitResult, SubscriptionFilter};
use mcp_proto::service::client::{Client, ClientBuilder, Heard, HttpLink, Job};
use mcp_proto::time::Instant;
use serde_json::{Value, json};

use crate::basics::client;
use crate::rig::{error, now, poll, text};

struct Net {
    link: HttpLink,
    now: Duration,
    jobs: Vec<Pin<Box<Job>>>,
    closed: Vec<ExchangeId>,
}

type Sent = (ExchangeId, Request);

fn body((_, request): &Sent) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn settings() -> Settings {
    Settings::new(Url::parse("https://example.com/mcp").unwrap())
}

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];
const EVENTS: &[(&str, &str)] = &[("Content-Type", "text/event-stream")];

impl Net {
    fn of(mut link: HttpLink) -> Self {
        let time = Duration::from_secs(1);
        link.start(Instant::from_origin(time));
        Self { link, now: time, jobs: Vec::new(), closed: Vec::new() }
    }

    fn modern(builder: ClientBuilder) -> (Client, Self) {
        let (connecting, link) = builder.mode(Mode::Modern).http_link(settings());
        let mut net = Self::of(link);
        net.discover();
        (now(connecting).unwrap(), net)
    }

    /// Connected to a server of 2025-11-25, with the stream of its session, which is not answered yet.
    fn legacy(builder: ClientBuilder) -> (Client, Self, Sent) {
        let (connecting, link) = builder.mode(Mode::Legacy).http_link(settings());
        let mut net = Self::of(link);
        let hello = net.one();
        let answer = json!({"jsonrpc": "2.0", "id": body(&hello)["id"], "result": {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "old", "version": "1"},
        }});
        let headers = [("Content-Type", "application/json"), ("Mcp-Session-Id", "s-1")];
        net.respond(&hello, 200, &headers, &answer.to_string());
        let client = now(connecting).unwrap();
        let initialized = net.one();
        net.respond(&initialized, 202, &[], "");
        let stream = net.one();
        assert_eq!(stream.1.method, "GET");
        (client, net, stream)
    }

    fn discover(&mut self) {
        let probe = self.one();
        assert_eq!(body(&probe)["method"], "server/discover");
        let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
        self.answer(&probe, json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities}));
    }

    fn time(&self) -> Instant {
        Instant::from_origin(self.now)
    }

    fn requests(&mut self) -> Vec<Sent> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut sent = Vec::new();
        for _ in 0..10 {
            self.link.process(self.time());
            while let Some(job) = self.link.next_job() {
                self.jobs.push(Box::pin(job));
            }
            self.jobs.retain_mut(|job| job.as_mut().poll(&mut cx).is_pending());
            while let Some(action) = self.link.next_action() {
                match action {
                    Action::Open { exchange, request } => sent.push((exchange, request)),
                    Action::Close(exchange) => self.closed.push(exchange),
                }
            }
        }
        sent
    }

    fn one(&mut self) -> Sent {
        let mut sent = self.requests();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    fn respond(&mut self, sent: &Sent, status: u16, headers: &[(&str, &str)], body: &str) {
        self.link.head(sent.0, status, headers, self.time());
        self.link.body(sent.0, body.as_bytes(), self.time());
        self.link.end(sent.0, Ok(()), self.time());
    }

    fn answer(&mut self, sent: &Sent, mut result: Value) {
        result["resultType"] = json!("complete");
        self.result(sent, &result);
    }

    fn result(&mut self, sent: &Sent, result: &Value) {
        let answer = json!({"jsonrpc": "2.0", "id": body(sent)["id"], "result": result});
        self.respond(sent, 200, JSON, &answer.to_string());
    }

    fn event(&mut self, sent: &Sent, message: &Value) {
        // In two pieces: where they are cut is nobody's business.
        let event = format!("data: {message}\n\n");
        let (one, two) = event.as_bytes().split_at(event.len() / 2);
        self.link.body(sent.0, one, self.time());
        self.link.body(sent.0, two, self.time());
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.link.handle_timeout(self.time());
    }
}

#[test]
fn calls_and_their_events() {
    let (client, mut net) = Net::modern(client());
    let mut heard = Vec::new();
    let mut call =
        client.call_tool("x", json!({"a": 1})).on_progress(|progress| heard.push(progress.progress));
    assert!(poll(&mut call).is_pending());
    let request = net.one();
    assert_eq!(request.1.header("mcp-name"), Some("x"));
    let id = body(&request)["id"].clone();
    net.link.head(request.0, 200, EVENTS, net.time());
    for step in [1, 2] {
        let params = json!({"progressToken": id, "progress": step});
        net.event(&request, &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    }
    net.event(&request, &json!({"jsonrpc": "2.0", "id": id, "result": text("done")}));
    net.link.end(request.0, Ok(()), net.time());
    assert_eq!(now(call).unwrap().texts(), "done");
    assert_eq!(heard, [1.0, 2.0]);
}

/// C-CANCEL-01: in 2026-07-28 closing the response says it.
#[test]
fn dropping_a_call_closes_its_response() {
    let (client, mut net) = Net::modern(client());
    let mut call = client.call_tool("x", ());
    assert!(poll(&mut call).is_pending());
    let request = net.one();
    drop(call);
    assert!(net.requests().is_empty());
    assert_eq!(net.closed, [request.0]);
    // What still comes means nothing.
    net.answer(&request, text("late"));
    assert!(net.requests().is_empty());
}

#[test]
fn rounds_go_through_the_responders() {
    let builder = client().on_elicit(|_, _| async { Ok(ElicitResult::decline()) });
    let (client, mut net) = Net::modern(builder);
    let mut call = client.call_tool("x", ());
    assert!(poll(&mut call).is_pending());
    let request = net.one();
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    net.result(
        &request,
        &json!({
            "resultType": "input_required", "requestState": "s",
            "inputRequests": {"a": {"method": "elicitation/create", "params": form}},
        }),
    );
    let retry = net.one();
    assert_eq!(body(&retry)["params"]["inputResponses"]["a"]["action"], "decline");
    net.answer(&retry, text("done"));
    assert_eq!(now(call).unwrap().texts(), "done");
}

#[test]
fn a_connection_that_breaks_fails_its_call_alone() {
    let (client, mut net) = Net::modern(client());
    let (mut one, mut two) = (client.call_tool("one", ()), client.call_tool("two", ()));
    assert!(poll(&mut one).is_pending() && poll(&mut two).is_pending());
    let sent = net.requests();
    net.link.end(sent[0].0, Err(Lost("refused".into())), net.time());
    net.answer(&sent[1], text("two"));
    net.requests();
    assert!(matches!(error(poll(&mut one)), CallError::Lost(why) if why == "refused"));
    assert_eq!(now(two).unwrap().texts(), "two");
}

const CHALLENGE: &[(&str, &str)] = &[("WWW-Authenticate", "Bearer scope=\"tools\"")];

/// C-AUTH-21, C-AUTH-27: a token is got once for all that wait for it, and they are sent again.
#[test]
fn tokens_are_got_when_they_are_asked_for() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let builder = client().on_unauthorized(move |why| {
        let mut log = log.lock().unwrap();
        log.push((why.status, why.bearer().unwrap().scope().map(str::to_owned)));
        let token = format!("token-{}", log.len());
        async move { Ok(Token::bearer(&token)?) }
    });
    let (connecting, link) = builder.mode(Mode::Modern).http_link(settings());
    let mut net = Net::of(link);
    let probe = net.one();
    assert_eq!(probe.1.header("authorization"), None);
    net.respond(&probe, 401, CHALLENGE, "");
    net.discover();
    let client = now(connecting).unwrap();
    let (mut one, mut two) = (client.call_tool("one", ()), client.call_tool("two", ()));
    assert!(poll(&mut one).is_pending() && poll(&mut two).is_pending());
    let sent = net.requests();
    assert_eq!(sent[0].1.header("authorization"), Some("Bearer token-1"));
    let more = [("WWW-Authenticate", "Bearer error=\"insufficient_scope\", scope=\"tools write\"")];
    net.respond(&sent[0], 403, &more, "");
    let again = net.one();
    assert_eq!(again.1.header("authorization"), Some("Bearer token-2"));
    net.answer(&again, text("one"));
    net.answer(&sent[1], text("two"));
    assert_eq!(now(one).unwrap().texts(), "one");
    assert_eq!(now(two).unwrap().texts(), "two");
    assert_eq!(*asked.lock().unwrap(), [(401, Some("tools".into())), (403, Some("tools write".into()))]);
}

/// One search is enough for all that are refused meanwhile.
#[test]
fn one_token_is_got_for_many() {
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let builder = client().on_unauthorized(move |_| {
        *count.lock().unwrap() += 1;
        async {
            let mut turns = 5;
            std::future::poll_fn(|_| {
                turns -= 1;
                if turns == 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
            Ok(Token::bearer("t")?)
        }
    });
    let (client, mut net) = Net::modern(builder);
    let (mut one, mut two) = (client.call_tool("one", ()), client.call_tool("two", ()));
    assert!(poll(&mut one).is_pending() && poll(&mut two).is_pending());
    let sent = net.requests();
    net.respond(&sent[0], 401, CHALLENGE, "");
    net.respond(&sent[1], 401, CHALLENGE, "");
    let again = net.requests();
    assert_eq!(again.len(), 2);
    for sent in &again {
        assert_eq!(sent.1.header("authorization"), Some("Bearer t"));
        net.answer(sent, text("done"));
    }
    assert_eq!((now(one).unwrap().texts(), now(two).unwrap().texts()), ("done".into(), "done".into()));
    assert_eq!(*asked.lock().unwrap(), 1);
}

#[test]
fn a_token_that_cannot_be_got_fails_what_waits_for_it() {
    for builder in [
        client().on_unauthorized(|_| async { Err(std::io::Error::other("offline").into()) }),
        client().on_unauthorized(|_| async { panic!("no") }),
        client(),
    ] {
        let (mut connecting, link) = builder.mode(Mode::Modern).http_link(settings());
        let mut net = Net::of(link);
        let probe = net.one();
        net.respond(&probe, 401, CHALLENGE, "");
        net.requests();
        let why = error(poll(&mut connecting));
        assert!(matches!(&why, CallError::Unauthorized(why) if why.status == 401), "{why}");
    }
}

/// A subscription whose stream breaks is opened again, later each time.
#[test]
fn a_subscription_is_opened_again() {
    let (client, mut net) = Net::modern(client());
    let mut listen = client.listen(SubscriptionFilter::new().tools_list_changed());
    assert!(poll(&mut listen).is_pending());
    let acknowledge = |net: &mut Net, request: &Sent| {
        let id = body(request)["id"].clone();
        net.link.head(request.0, 200, EVENTS, net.time());
        net.event(
            request,
            &json!({
                "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
                    "_meta": {"io.modelcontextprotocol/subscriptionId": id},
                    "notifications": {"toolsListChanged": true},
                },
            }),
        );
    };
    let request = net.one();
    acknowledge(&mut net, &request);
    let mut subscription = now(listen).unwrap();
    net.link.end(request.0, Err(Lost("cut".into())), net.time());
    let mut waits = Vec::new();
    for _ in 0..3 {
        assert!(net.requests().is_empty());
        let at = net.link.next_deadline().unwrap();
        waits.push((at.since_origin() - net.now).as_secs());
        net.pass(at.since_origin() - net.now);
        let again = net.one();
        assert_eq!(body(&again)["method"], "subscriptions/listen");
        net.link.end(again.0, Err(Lost("refused".into())), net.time());
    }
    assert_eq!(waits, [1, 2, 4]);
    net.pass(Duration::from_secs(8));
    let again = net.one();
    acknowledge(&mut net, &again);
    assert_eq!(now(subscription.next()).unwrap().unwrap(), Heard::Gap);
    let id = body(&again)["id"].clone();
    net.event(
        &again,
        &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": id},
        }}),
    );
    assert_eq!(now(subscription.next()).unwrap().unwrap(), Heard::Changed(Change::Tools));
}

/// LC-SESS-04: a legacy session is ended with the client.
#[test]
fn closing_ends_the_session() {
    let (client, mut net, stream) = Net::legacy(client());
    net.respond(&stream, 405, &[], "");
    drop(client);
    let end = net.one();
    assert_eq!((end.1.method, end.1.header("mcp-session-id")), ("DELETE", Some("s-1")));
    assert!(!net.link.is_done());
    net.respond(&end, 200, &[], "");
    net.requests();
    assert!(net.link.is_done());
}

/// LC-SESS-03: whoever waits for changes learns that none will be told, and when they are told again.
#[test]
fn a_stream_that_is_gone_is_told() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let (changes, losses) = (Arc::clone(&told), Arc::clone(&told));
    let hears = client()
        .on_change(move |change| changes.lock().unwrap().push(format!("{change:?}")))
        .on_stream_lost(move |why| losses.lock().unwrap().push(format!("{why:?}")));
    let (client, mut net, stream) = Net::legacy(hears);
    net.link.head(stream.0, 200, EVENTS, net.time());
    let mut listen = client.listen(SubscriptionFilter::new().tools_list_changed());
    assert!(poll(&mut listen).is_pending());
    assert!(net.requests().is_empty());
    let mut subscription = now(listen).unwrap();
    net.link.end(stream.0, Ok(()), net.time());
    net.pass(Duration::from_secs(1));
    let again = net.one();
    net.respond(&again, 400, &[], "");
    net.pass(Duration::ZERO);
    assert_eq!(now(subscription.next()).unwrap().unwrap(), Heard::Silence);
    assert!(poll(&mut std::pin::pin!(subscription.next())).is_pending());
    let [lost] = &std::mem::take(&mut *told.lock().unwrap())[..] else { panic!() };
    assert!(lost.starts_with("Http { status: 400"), "{lost}");
    net.pass(Duration::from_secs(60));
    assert!(net.requests().is_empty());
    let mut call = client.call_tool("t", ());
    assert!(poll(&mut call).is_pending());
    let request = net.one();
    net.result(&request, &text("fine"));
    let stream = net.one();
    assert_eq!(stream.1.method, "GET");
    net.link.head(stream.0, 200, EVENTS, net.time());
    net.pass(Duration::ZERO);
    assert_eq!(now(subscription.next()).unwrap().unwrap(), Heard::Gap);
    assert_eq!(*told.lock().unwrap(), ["Tools"]);
}
